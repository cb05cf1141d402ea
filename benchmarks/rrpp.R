# Time permutation tests of shape in base R, and print the processor time of each in seconds.
#
#     Rscript benchmarks/rrpp.R [specimens] [landmarks] [permutations] [tests, joined by commas]
#
# The procedures as published, with what geomorph's and RRPP's code computes in every permutation and
# nothing else (no formulas, names, progress bars, effect sizes), so that these take at least as long:
#
#     anova      residuals of every term's reduced model permuted and added to what it fits; the new data
#                projected onto the reduced, the term's and the full model (Collyer, Sekora & Adams 2015)
#     pairwise   coefficients of permuted data, means of groups, and their distances
#     disparity  residuals of a model, their squares averaged over permuted groups
#     pls        first singular vectors of the permuted cross-covariance, correlation of the scores
#     modularity covariances within and between modules of landmarks at random (Adams 2016)
#     signal     the shapes permuted among the tips, their phylogenetic mean and whitened squares (Adams 2014)
#
# As in RRPP 2, data with more coordinates than specimens are first reduced to their principal components;
# not for modularity, which is of coordinates, and of which 1 in 50 permutations is timed and multiplied.

arguments <- commandArgs(trailingOnly = TRUE)
sizes <- replace(c(300, 1000, 999), seq_along(arguments[-4]), as.integer(arguments[-4]))
n <- sizes[1]; landmarks <- sizes[2]; count <- sizes[3]
set.seed(1)
coordinates <- matrix(rnorm(n * 3 * landmarks), n)
a <- gl(3, ceiling(n / 3), n)
b <- gl(2, 1, n)
halves <- rep(1:2, each = ceiling(landmarks / 2), length.out = landmarks)

center <- function(Y) Y - rep(colMeans(Y), each = nrow(Y))
reduce <- function(Y) if (ncol(Y) < nrow(Y)) center(Y) else prcomp(Y)$x[, -nrow(Y)]
basis <- function(columns) qr.Q(qr(columns))
squares <- function(U, Y) sum(crossprod(U, Y)^2)
share <- function(permuted, observed) (1 + rowSums(permuted >= observed)) / (1 + ncol(permuted))

anova <- function() {
  Y <- reduce(coordinates)
  models <- list(basis(matrix(1, n)), basis(model.matrix(~ a)), basis(model.matrix(~ a + b)),
                 basis(model.matrix(~ a * b)))
  full <- models[[4]]
  expected <- lapply(models[1:3], function(U) U %*% crossprod(U, Y))
  residuals <- lapply(expected, function(fit) Y - fit)
  df <- diff(sapply(models, ncol))
  ratios <- function(order) {
    total <- expected[[1]] + residuals[[1]][order, ]
    total <- sum(total^2) - c(squares(models[[1]], total), squares(full, total))
    c(sapply(1:3, function(j) {
      y <- expected[[j]] + residuals[[j]][order, ]
      gain <- squares(models[[j + 1]], y) - squares(models[[j]], y)
      c(F = gain / df[j] / ((sum(y^2) - squares(full, y)) / (n - ncol(full))), R2 = gain / total[1])
    }))
  }
  share(replicate(count, ratios(sample.int(n))), ratios(1:n))
}

pairwise <- function() {
  Y <- reduce(coordinates)
  X <- model.matrix(~ a * b)
  solve <- qr.coef(qr(X), diag(n))
  means <- unique(X)
  reduced <- basis(matrix(1, n))
  expected <- reduced %*% crossprod(reduced, Y)
  residuals <- Y - expected
  distances <- function(order) c(dist(means %*% (solve %*% (expected + residuals[order, ]))))
  share(replicate(count, distances(sample.int(n))), distances(1:n))
}

disparity <- function() {
  Y <- reduce(coordinates)
  U <- basis(model.matrix(~ b))
  lengths <- rowSums((Y - U %*% crossprod(U, Y))^2)
  differences <- function(order) c(dist(tapply(lengths[order], a, mean)))
  share(replicate(count, differences(sample.int(n))), differences(1:n))
}

pls <- function() {
  columns <- rep(halves, each = 3) == 1
  X <- reduce(coordinates[, columns])
  Y <- reduce(coordinates[, !columns])
  correlate <- function(order) {
    y <- Y[order, ]
    axes <- La.svd(crossprod(X, y) / (n - 1), 1, 1)
    cor(X %*% axes$u, y %*% c(axes$vt))
  }
  share(t(replicate(count, c(correlate(sample.int(n))))), c(correlate(1:n)))
}

modularity <- function() {
  Y <- center(coordinates)
  ratio <- function(modules) {
    X <- lapply(1:2, function(k) Y[, rep(modules, each = 3) == k])
    within <- sapply(X, function(x) { S <- crossprod(x); diag(S) <- 0; sum(S^2) })
    sqrt(sum(crossprod(X[[1]], X[[2]])^2) / sqrt(prod(within)))
  }
  replicate(ceiling(count / 50), ratio(sample(halves)))
}

signal <- function() {
  Y <- reduce(coordinates)
  ages <- cumsum(rexp(n))
  C <- outer(ages, ages, pmin) + diag(n)  # a tree with all its forks on one line
  values <- eigen(C, symmetric = TRUE)
  W <- values$vectors %*% (t(values$vectors) / sqrt(values$values))
  precision <- W %*% W
  weights <- colSums(precision) / sum(precision)
  expected <- (sum(diag(C)) - n / sum(precision)) / (n - 1)
  k <- function(order) {
    E <- Y[order, ]
    E <- E - rep(c(weights %*% E), each = n)
    sum(E^2) / sum((W %*% E)^2) / expected
  }
  share(t(replicate(count, k(sample.int(n)))), k(1:n))
}

tests <- list(anova = anova, pairwise = pairwise, disparity = disparity, pls = pls, modularity = modularity,
              signal = signal)
scale <- c(modularity = count / ceiling(count / 50))
chosen <- if (length(arguments) < 4) names(tests) else strsplit(arguments[4], ",")[[1]]
blas <- normalizePath(extSoftVersion()["BLAS"])
cat("BLAS", if (grepl("openblas", blas)) "OpenBLAS" else basename(blas), "\n")
for (name in chosen) {
  n_times <- if (name %in% c("anova", "pairwise", "disparity")) 3 else 1
  time <- min(replicate(n_times, sum(system.time(tests[[name]]())[1:2])))
  cat(name, time * if (name %in% names(scale)) scale[[name]] else 1, "\n")
}
