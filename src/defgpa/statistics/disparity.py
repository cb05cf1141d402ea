"""Disparity: compare the Procrustes variances of groups about a model.

The Procrustes variance of a group is the mean squared distance of its specimens from what a model
expects of them (Zelditch et al. 2012; geomorph's ``morphol.disparity``). About ``shape ~ 1`` it is
measured from the grand mean, about ``shape ~ group`` from the mean of the group. Partial
disparities divide by N − 1 of all specimens instead, and add up to the variance of the sample
(Foote 1993). Under the null hypothesis the residuals of all groups are exchangeable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array, Index, Progress
from defgpa.errors import DefgpaError, format_names
from defgpa.formatting import align_columns, format_column
from defgpa.io.covariates import Columns, collect_columns
from defgpa.statistics.design import design
from defgpa.statistics.groups import encode_groups, join_labels
from defgpa.statistics.pairs import PairRows, fill_pairs
from defgpa.statistics.permutation import Permutations, reaches_observed
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, build_sample, impute_tangents
from defgpa.statistics.table import Table

_N_BOOTSTRAPS = 999


@dataclass(frozen=True, eq=False, repr=False)
class Disparity(PairRows):
    """Procrustes variances of groups, and their differences.

    Attributes
    ----------
    groups : tuple of g str
        Names.
    variances : array (g,)
        Procrustes variance, or partial disparity, of every group.
    intervals : array (g, 2)
        95 % percentile intervals from resampling the specimens of each group.
    differences, p : array (g, g)
        Absolute differences between groups, and P by permuting residuals; NaN on the diagonal.
    partial : bool
        Whether these are partial disparities.
    formula : str
        The model that variances are about.
    n_permutations : int
        Behind P.
    provenance : Provenance
        Which coordinates were analysed.
    """

    _columns = ("a", "b", "difference", "p")
    _attributes = ("groups", "differences", "p")

    groups: tuple[str, ...]
    variances: Array
    intervals: Array
    differences: Array
    p: Array
    partial: bool
    formula: str
    n_permutations: int
    provenance: Provenance

    def __str__(self) -> str:
        kind = "Partial disparities" if self.partial else "Procrustes variances"
        figures = np.column_stack([self.variances, self.intervals])
        columns = np.reshape(format_column(figures.ravel()), figures.shape).tolist()
        rows = [
            (name, value, f"{low} – {high}")
            for name, (value, low, high) in zip(self.groups, columns, strict=True)
        ]
        variances = align_columns([("", "variance", "95 % interval"), *rows])
        pairs = align_columns([("", "difference", "Pr(>d)"), *self.cells()])
        head = f"{kind} of groups, about {self.formula}"
        chance = f"{self.n_permutations} permutations of the residuals"
        return f"{head}\n{self.provenance}\n{chance}\n\n{variances}\n\n{pairs}"

    def further_tables(self) -> dict[str, Table]:
        """Return the variance of every group with its interval, as a table by name."""
        columns = (self.groups, self.variances.tolist(), *self.intervals.T.tolist())
        rows = list(zip(*columns, strict=True))
        return {"groups": (("group", "variance", "lower", "upper"), rows)}


def disparity(
    x: Analysed,
    groups: Sequence[object] | str,
    formula: str = "shape ~ 1",
    data: Columns | None = None,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    partial: bool = False,
    space: str = "superimposed",
    superimpose: bool = True,
    n_imputations: int = 0,
    progress: Progress | None = None,
) -> Disparity:
    """Compare the Procrustes variances of groups, as geomorph's ``morphol.disparity``.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed.
    groups : sequence of n labels, or str
        One label per specimen, or columns of the data: ``"species"``, ``"species:site"``.
    formula : str
        The model that variances are about; ``"shape ~ 1"`` for the grand mean.
    data : mapping of str to sequence, or DataFrame
        The columns that formula and groups name.
    partial : bool
        Whether to share out the variance of the sample instead.
    n_permutations, seed, space, superimpose, n_imputations, progress
        As in `procrustes_anova`; imputations average the squared residuals.

    Returns
    -------
    Disparity
        Procrustes variances of groups, and their differences.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> spread = np.repeat([0.02, 0.1], 10)[:, None, None]
    >>> x = rng.normal(size=(8, 2)) + spread * rng.normal(size=(20, 8, 2))
    >>> found = disparity(x, ["a"] * 10 + ["b"] * 10)
    >>> bool(found.variances[1] > 5 * found.variances[0]), bool(found.p[0, 1] < 0.01)
    (True, True)
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    n = sample.shapes.n_shapes
    columns = {"size": sample.sizes, **collect_columns(sample.shapes, data)}
    names, codes = encode_groups(join_labels(groups, columns), n, "groups")
    if len(names) < 2:
        raise DefgpaError(f"There must be at least 2 groups to compare; got only {names[0]!r}.")
    single = [name for name, count in zip(names, np.bincount(codes), strict=True) if count < 2]
    if single:
        raise DefgpaError(
            f"Group {format_names(single)} has one specimen, which varies from no other. Leave it "
            "out, or join it to another group."
        )
    sample.warn_of_findings()
    model = design(formula, columns, n)
    model.require_residuals()
    basis = model.basis
    sample, draws = impute_tangents(sample, n_imputations, seed)
    squares = np.zeros(n)
    for tangents in draws:
        Y = tangents.reshape(n, -1)
        squares += ((Y - basis @ (basis.T @ Y)) ** 2).sum(axis=1) / len(draws)

    divisors = np.full(len(names), n - 1.0) if partial else np.bincount(codes).astype(np.float64)
    membership = np.eye(len(names))[:, codes] / divisors[:, None]  # (g, n)
    variances = membership @ squares
    first, second = np.triu_indices(len(names), 1)
    observed = np.abs(variances[first] - variances[second])

    def count_larger(orders: Index) -> Array:
        permuted = squares[orders] @ membership.T
        differences = np.abs(permuted[:, first] - permuted[:, second])
        return np.asarray(reaches_observed(observed, differences).sum(axis=0)[None])

    counts = permutations.each(n, len(names), count_larger).sum(axis=0)
    differences = fill_pairs(len(names), observed, 0.0)
    p = fill_pairs(len(names), (1.0 + counts) / (1.0 + n_permutations))
    intervals = _bootstrap(squares, codes, divisors, seed)
    return Disparity(
        *(names, variances, intervals, differences, p, partial, formula, n_permutations),
        sample.provenance,
    )


def _bootstrap(squares: Array, codes: Index, divisors: Array, seed: int) -> Array:
    """Resample the specimens of each group, and return 95 % percentile intervals (g, 2).

    Parameters
    ----------
    squares : array (n,)
        Squared distance of every specimen from its expected shape.
    codes : array (n,) of int
        The group of every specimen.
    divisors : array (g,)
        By which the sum of a group becomes its variance.
    """
    rng = np.random.default_rng([seed, 1])
    intervals = []
    for group, divisor in enumerate(divisors):
        members = squares[codes == group]
        sums = rng.choice(members, size=(_N_BOOTSTRAPS, len(members))).sum(axis=1)
        intervals.append(np.quantile(sums / divisor, [0.025, 0.975]))
    return np.stack(intervals)
