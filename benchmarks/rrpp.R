# Time a Procrustes ANOVA by residual randomisation in base R, and print its processor time in seconds.
#
#     Rscript benchmarks/rrpp.R [specimens] [coordinates] [permutations]
#
# The procedure as published (Anderson & ter Braak 2003; Collyer, Sekora & Adams 2015): for every term
# the residuals of its reduced model are permuted and added to what that model fits, and the new data
# are projected onto the reduced, the term's and the full model. As in RRPP 2 the data are first reduced
# to their principal components where they have more coordinates than specimens, and the total of permuted
# data gives R2. geomorph's procD.lm does this and more (formulas, names, effect sizes), so it takes at
# least as long.

arguments <- as.integer(commandArgs(trailingOnly = TRUE))
sizes <- replace(c(300, 3000, 999), seq_along(arguments), arguments)
n <- sizes[1]
set.seed(1)
shapes <- matrix(rnorm(n * sizes[2]), n)
a <- gl(3, ceiling(n / 3), n)
b <- gl(2, 1, n)

basis <- function(columns) qr.Q(qr(columns))
squares <- function(U, Y) sum(crossprod(U, Y)^2)

test <- function(Y) {
  Y <- scale(Y, scale = FALSE)
  if (ncol(Y) >= n) Y <- Y %*% svd(Y, nu = 0, nv = n - 1)$v
  models <- list(basis(matrix(1, n)), basis(model.matrix(~ a)), basis(model.matrix(~ a + b)),
                 basis(model.matrix(~ a * b)))
  full <- models[[4]]
  expected <- lapply(models[1:3], function(U) U %*% crossprod(U, Y))
  residuals <- lapply(expected, function(fit) Y - fit)
  df <- diff(sapply(models, ncol))
  ratios <- function(order) {
    total <- expected[[1]] + residuals[[1]][order, ]
    total <- sum(total^2) - c(squares(models[[1]], total), squares(full, total))
    sapply(1:3, function(j) {
      y <- expected[[j]] + residuals[[j]][order, ]
      gain <- squares(models[[j + 1]], y) - squares(models[[j]], y)
      c(F = gain / df[j] / ((sum(y^2) - squares(full, y)) / (n - ncol(full))), R2 = gain / total[1])
    })
  }
  observed <- ratios(1:n)
  permuted <- replicate(sizes[3], ratios(sample.int(n)))
  (1 + rowSums(permuted >= c(observed), dims = 2)) / (1 + sizes[3])
}

time <- min(replicate(3, sum(system.time(test(shapes))[1:2])))
cat(basename(extSoftVersion()["BLAS"]), "\n")
cat(time, "\n")
