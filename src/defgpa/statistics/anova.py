"""Procrustes ANOVA: sums of squares of tangent coordinates, tested by permutation.

The terms of a formula enter one after the other; with RSS the residual sum of squares over all
coordinates, a term has

    SS = RSS_reduced − RSS_full,   R² = SS / SS_total,   F = MS / MS_residual,

P is the share of permutations of the reduced model's residuals (the observed order among them)
whose F is as large, and Z the standard score of F among all of them after a Box–Cox
transformation: the definitions of procD.lm in geomorph and RRPP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from defgpa.arrays import Array, Progress
from defgpa.diagnostics.findings import warn_about
from defgpa.errors import DefgpaError, format_names
from defgpa.io.covariates import Columns, collect_columns
from defgpa.statistics.design import design
from defgpa.statistics.dispersion import check_dispersion
from defgpa.statistics.permutation import Permutations
from defgpa.statistics.sample import Analysed, build_sample, impute_tangents
from defgpa.statistics.shape_model import ProcrustesAnova
from defgpa.statistics.species import TreeLike, match_tree
from defgpa.statistics.table import Effect, EffectTable, effect
from defgpa.statistics.variance_ratios import RESIDUAL, Ratios, Terms, permute_ratios, pool_ratios
from defgpa.statistics.whitening import find_whitening, whiten_shapes
from defgpa.threads import use_threads


def procrustes_anova(
    formula: str,
    x: Analysed,
    data: Columns | None = None,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    ss_type: int = 1,
    error: Mapping[str, str] | None = None,
    chance: str = "rotations",
    covariance: Array | None = None,
    tree: TreeLike | None = None,
    prune: bool = False,
    gls: str = "exact",
    space: str = "superimposed",
    superimpose: bool = True,
    n_imputations: int = 0,
    progress: Progress | None = None,
) -> ProcrustesAnova:
    """Test which factors and covariates shape depends on, as geomorph's ``procD.lm``.

    Parameters
    ----------
    formula : str
        ``"shape ~ species * site"``, ``"shape ~ log(size) + sex"``: as in R, read by the package
        formulaic. ``size`` is the centroid size unless the data have a column of that name;
        ``C(x)`` makes a factor of numbers.
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed, and the result says how many.
    data : mapping of str to sequence, or DataFrame
        One row per shape, in their order. What the files of the shapes say besides (``group``,
        the columns of a table) is known without.
    n_permutations : int
        Random orders, besides the observed one.
    seed : int
        Of the random orders: the same seed, the same P.
    ss_type : {1, 2, 3}
        Sums of squares: every term after those before it; after all that do not contain it; or
        after all others, with treatment contrasts, as RRPP.
    error : mapping of term to term, optional
        The term whose mean square is the denominator of a term's F, where that is not the
        residuals: ``{"species": "species:site"}`` for sites at random (RRPP's ``anova(error=)``).
    chance : {"rotations", "residuals"}
        How P of a term with an error term is found: what shape has in both is rotated at random;
        or residuals are permuted as for all other terms, as RRPP does, for which specimens must be
        exchangeable though those of a level of the error term are alike.
    covariance : array (n, n), optional
        Of the specimens, where they are not independent: generalised least squares.
    tree : Phylogeny, path or Newick text, optional
        Of the specimens, by name, or of the species that `average_species` gives: their covariance
        is that of Brownian motion along it (PGLS, geomorph's ``procD.pgls``).
    prune : bool
        Whether tips without a specimen, and specimens without a tip, are left out.
    gls : {"exact", "rrpp"}
        With a tree or covariance: generalised least squares as textbooks define them; or the
        figures of RRPP 2.1 and geomorph 4.1, see Notes.
    space : {"superimposed", "back_projected"}
        The specimens in their classical tangent space, whatever warps an alignment has; or its
        reference projected back into each, which holds only what the warps follow.
    superimpose : bool
        False for coordinates that have been superimposed before.
    n_imputations : int
        Where landmarks were completed, so many completions are drawn from their uncertainty: SS,
        R² and F are means over them, and P and Z are those of the mean F. 0 takes the expected
        completion alone, which understates the variance.
    progress : callable (done, total), optional
        Told how many permutations are done.

    Returns
    -------
    ProcrustesAnova
        Prints as a table; ``to_pandas``, ``predict``, ``pairwise``.

    Notes
    -----
    Where there are more coordinates than specimens, RRPP 2.1.2 replaces the whitened shapes L⁻¹Y,
    C = LLᵀ, by their principal components, and so subtracts their ordinary mean. The whitened
    intercept L⁻¹1 is not constant and cannot restore it, so sums of squares become larger, and
    depend on the order of the species. ``gls="rrpp"`` repeats this, to compare with published
    tables.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = np.array([[0, 0], [4, 0], [4, 3], [0, 3.0]]) + 0.1 * rng.normal(size=(12, 4, 2))
    >>> x[6:, 2] += 1.0
    >>> model = procrustes_anova("shape ~ kind", x, {"kind": list("aaaaaabbbbbb")})
    >>> model["kind"].df, bool(model["kind"].p < 0.01), bool(model["kind"].r_squared > 0.5)
    (1, True, True)
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    columns = {"size": sample.sizes, **collect_columns(sample.shapes, data)}
    if tree is not None:
        if covariance is not None:
            raise DefgpaError("Give either a 'tree' or a 'covariance' of the shapes, not both.")
        names = sample.shapes.names
        sample, phylogeny = match_tree(sample, tree, prune=prune)
        covariance = phylogeny.covariance
        columns = _select_rows(columns, [names.index(tip) for tip in phylogeny.tips], len(names))
    n = sample.shapes.n_shapes
    model = design(formula, columns, n, whitening=find_whitening(covariance, n, gls))
    if ss_type not in (1, 2, 3):
        raise DefgpaError(f"'ss_type' is 1, 2 or 3, the type of sums of squares; got {ss_type!r}.")
    model.require_residuals()
    sample.warn_of_findings()
    warn_about(check_dispersion(model.group_labels, sample.tangents))
    terms, against = model.build_terms(ss_type), _find_error_terms(model.terms, error or {})
    sample, draws = impute_tangents(sample, n_imputations, seed)
    with use_threads(n_values=sample.tangents.size * model.basis.shape[1] * n_permutations // 100):
        whitened = [whiten_shapes(model, draw.reshape(n, -1), gls) for draw in draws]
        ratios = pool_ratios(
            [permute_ratios(Y, terms, against, permutations, chance) for Y in whitened]
        )
    table = effect_table(model.terms, terms, ratios)
    return ProcrustesAnova(
        *(formula, table, sample.tangents, model, ratios, permutations, sample),
        *(ss_type, dict(error or {}), gls, chance),
    )


def _select_rows(columns: Columns, rows: Sequence[int], n: int) -> dict[str, object]:
    """Return the selected rows of columns with n entries; others unchanged, to be refused later."""
    return {
        head: np.asarray(values)[list(rows)] if len(values) == n else values
        for head, values in columns.items()
    }


def _find_error_terms(terms: Sequence[str], error: Mapping[str, str]) -> list[int]:
    """Return for every term the one whose mean square is the denominator of its F."""
    names = [*error.keys(), *error.values()]
    unknown = [name for name in names if name not in (*terms, "Residuals")]
    if unknown:
        raise DefgpaError(
            f"There is no term {format_names(unknown)} for 'error'. There are: {', '.join(terms)}, "
            "and 'Residuals'."
        )
    places = {"Residuals": RESIDUAL} | {term: k for k, term in enumerate(terms)}
    return [places[error.get(term, "Residuals")] for term in terms]


def effect_table(names: Sequence[str], terms: Terms, ratios: Ratios) -> EffectTable:
    """Return the rows of the terms, the residuals and the total."""
    total = ratios.total
    rows = [
        effect(name, df, float(ss), total, float(ratios.observed[k]), ratios.z(k), ratios.p(k))
        for k, (name, df, ss) in enumerate(zip(names, terms.df, ratios.sums, strict=True))
    ]
    if terms.residual_df:
        rows.append(effect("Residuals", terms.residual_df, ratios.residual, total))
    return EffectTable((*rows, Effect("Total", terms.n - 1, total)))
