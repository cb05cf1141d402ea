"""Integration: whether parts of a shape vary together.

Integration of modules is r-PLS (see `defgpa.statistics.covariation`), averaged over their pairs
(Bookstein et al. 2003; Adams & Collyer 2016); chance permutes the specimens independently in each
module. Relative eigenvalue variance measures integration without modules (Pavlicev et al. 2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from defgpa.arrays import Array, Index, Progress
from defgpa.errors import ShapeError
from defgpa.formatting import align_columns, format_column, format_number
from defgpa.statistics.box_cox import effect_size
from defgpa.statistics.covariation import (
    LANCZOS_NUMBERS,
    correlate_permuted,
    reduce_columns,
    require_specimens,
)
from defgpa.statistics.pairs import fill_pairs, list_pairs
from defgpa.statistics.partition import Partition, parse_partition
from defgpa.statistics.permutation import Permutations, p_value
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, build_sample
from defgpa.statistics.table import Row, Rows, Table, format_p


@dataclass(frozen=True, eq=False, repr=False)
class ModuleTest(Rows):
    """Integration or modularity of the modules of a shape.

    Attributes
    ----------
    statistic : {"r-PLS", "CR"}
        What was measured.
    modules : tuple of k str
        Names.
    observed, z, p : float
        Mean over the pairs of modules, its effect size and P. For CR small values, and negative
        Z, say that there are modules.
    pairs : array (k, k)
        The statistic of every pair of modules.
    interval : array (2,) or None
        95 % percentile interval from resampling specimens.
    permuted : array (n_permutations,)
        Under chance.
    provenance : Provenance
        Which coordinates were analysed.
    """

    _columns = ("a", "b", "value")

    statistic: str
    modules: tuple[str, ...]
    observed: float
    z: float
    p: float
    pairs: Array
    interval: Array | None
    permuted: Array
    provenance: Provenance

    def further_tables(self) -> dict[str, Table]:
        """Return the mean over pairs of modules and its test, as a table by name."""
        lower, upper = (np.nan, np.nan) if self.interval is None else self.interval.tolist()
        row = (self.statistic, self.observed, self.z, self.p, lower, upper)
        return {"test": (("statistic", "observed", "z", "p", "lower", "upper"), [row])}

    def _rows(self) -> list[Row]:
        return list_pairs(self.modules, self.pairs)

    def __str__(self) -> str:
        title = "Integration" if self.statistic == "r-PLS" else "Modularity"
        z, p = format_number(self.z), format_p(self.p)
        head = f"{title}: {self.statistic} {self.observed:.5f}, Z {z}, P {p}"
        if self.interval is not None:
            low, high = map(format_number, self.interval)
            head += f", 95 % interval {low} – {high}"
        a, b, values = zip(*self._rows(), strict=True)
        pairs = map(" – ".join, zip(a, b, strict=True))
        rows = list(zip(pairs, format_column(values), strict=True))
        chance = (
            "permutations of the specimens, independent in each module"
            if self.statistic == "r-PLS"
            else "assignments of landmarks to modules at random"
        )
        table = align_columns([("", self.statistic), *rows])
        return f"{head}\n{self.provenance}\n{len(self.permuted)} {chance}\n\n{table}"


def integration(
    x: Analysed,
    partition: Partition,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    space: str = "superimposed",
    superimpose: bool = True,
    progress: Progress | None = None,
) -> ModuleTest:
    """Test whether modules vary together, as geomorph's ``integration.test``.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed.
    partition : sequence of m labels, or mapping of module to landmarks
        The module of every landmark.
    n_permutations, seed, space, superimpose, progress
        As in `procrustes_anova`.

    Returns
    -------
    ModuleTest
        Integration or modularity of the modules of a shape.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(8, 2)) + 0.01 * rng.normal(size=(20, 8, 2))
    >>> x[:, [0, 5]] += 0.1 * rng.normal(size=(20, 1, 2))
    >>> integration(x, "aaaabbbb").p
    0.001
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    sample.warn_of_findings()
    names, codes = parse_partition(partition, sample.shapes.landmarks)
    require_specimens(sample)
    n = sample.shapes.n_shapes
    centred = sample.tangents - sample.tangents.mean(axis=0)
    blocks = [centred[:, codes == k].reshape(n, -1) for k in range(len(names))]
    pairs = list(combinations([reduce_columns(block)[0] for block in blocks], 2))
    identity = np.arange(n)[None]
    correlations = [float(correlate_permuted(*pair, identity)[0]) for pair in pairs]
    observed = float(np.mean(correlations))

    def correlate(orders: Index) -> Array:
        # a random order of (k − 1) n numbers ranks its parts in k − 1 independent orders; the first
        # module stays, and only the order of one module against another matters
        places = orders.reshape(len(orders), len(blocks) - 1, n).argsort(axis=2).swapaxes(0, 1)
        ranked = [np.tile(identity, (len(orders), 1)), *places]
        permuted = [
            correlate_permuted(X, Y, np.take_along_axis(second, first.argsort(axis=1), axis=1))
            for (X, Y), (first, second) in zip(pairs, combinations(ranked, 2), strict=True)
        ]
        return np.asarray(np.mean(permuted, axis=0))

    chance = permutations.each(n * (len(blocks) - 1), LANCZOS_NUMBERS, correlate)
    z, p = effect_size(observed, chance), p_value(observed, chance)
    table = fill_pairs(len(names), correlations)
    return ModuleTest("r-PLS", names, observed, z, p, table, None, chance, sample.provenance)


@dataclass(frozen=True, repr=False)
class EigenvalueVariance(Rows):
    """Integration of all coordinates together.

    Attributes
    ----------
    vrel : float
        Variance of the eigenvalues over the largest it can be: 0 to 1, for a single axis.
    z : float
        Effect size, ½ log(V / (1 − V)), above that of no integration (Conaway & Adams 2022).
    z_variance : float
        Of z, 1 / (n − 3): two samples differ by (z₁ − z₂) / √(sum of variances).
    shares : array (k,)
        The eigenvalues, as shares of their sum.
    provenance : Provenance
        Which coordinates were analysed.
    """

    _columns = ("vrel", "z", "z_variance")

    vrel: float
    z: float
    z_variance: float
    shares: Array
    provenance: Provenance

    def _rows(self) -> list[Row]:
        return [(self.vrel, self.z, self.z_variance)]

    def __str__(self) -> str:
        figures = f"Vrel {format_number(self.vrel)}, Z {format_number(self.z)}"
        deviation = format_number(float(np.sqrt(self.z_variance)))
        head = f"Integration of all landmarks: {figures} (standard error {deviation})"
        return f"{head}\n{self.provenance}"


def eigenvalue_variance(
    x: Analysed, *, space: str = "superimposed", superimpose: bool = True
) -> EigenvalueVariance:
    """Measure integration by the relative eigenvalue variance Vrel (``integration.Vrel``).

    Parameters
    ----------
    x, space, superimpose
        As in `integration`. At least 4 specimens.

    Returns
    -------
    EigenvalueVariance
        Integration of all coordinates together.
    """
    sample = build_sample(x, space=space, superimpose=superimpose)
    sample.warn_of_findings()
    n = sample.shapes.n_shapes
    if n < 4:
        raise ShapeError(f"Vrel needs at least 4 specimens; there are {n}.")
    flat = (sample.tangents - sample.tangents.mean(axis=0)).reshape(n, -1)
    variances = np.linalg.svd(flat, compute_uv=False) ** 2
    variances = variances[variances > 1e-12 * variances[0]]
    k = len(variances)
    vrel = float(variances.var(ddof=1) / (k * variances.mean() ** 2)) if k > 1 else 1.0
    unintegrated = (k + 2) / (k * (n - 1) + 2)
    z = 0.5 * _logit(min(vrel, 0.9995)) + 0.5 * abs(_logit(unintegrated))
    shares = variances / variances.sum()
    return EigenvalueVariance(vrel, z, 1.0 / (n - 3), shares, sample.provenance)


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))
