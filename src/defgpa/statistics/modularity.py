"""Integration and modularity: whether parts of a shape vary together, or each on its own.

Integration is r-PLS between modules, averaged over their pairs (Bookstein et al. 2003), with
specimens permuted independently in each module. Modularity is the covariance ratio of two modules,

    CR = √( tr(S₁₂S₂₁) / √( tr(S₁₁°S₁₁°) tr(S₂₂°S₂₂°) ) ),

S° without its diagonal, averaged over pairs of modules and over rotations of the superimposed
shapes, on which the diagonal depends (Adams 2016). Below 1 modules covary less with each other than
within; chance assigns landmarks to modules at random. Relative eigenvalue variance Vrel measures
integration without modules (Pavlicev et al. 2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index, Progress
from defgpa.statistics.covariation import correlate_blocks
from defgpa.statistics.partition import parse_partition
from defgpa.statistics.permutation import Permutations, effect_size, p_value
from defgpa.statistics.sample import Analysed, Provenance, build_sample
from defgpa.statistics.table import Rows
from defgpa.tables import figure, lined_up

_N_ANGLES = 8  # in a quarter turn; CR is so smooth in the angle that more change nothing
_N_BOOTSTRAPS = 199


@dataclass(frozen=True, eq=False)
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

    def _rows(self) -> list[tuple[Any, ...]]:
        return [
            (self.modules[i], self.modules[j], float(self.pairs[i, j]))
            for i, j in combinations(range(len(self.modules)), 2)
        ]

    def __str__(self) -> str:
        title = "Integration" if self.statistic == "r-PLS" else "Modularity"
        head = (
            f"{title}: {self.statistic} {self.observed:.5f}, Z {figure(self.z)}, P {figure(self.p)}"
        )
        if self.interval is not None:
            head += f", 95 % interval {figure(self.interval[0])} – {figure(self.interval[1])}"
        rows = [(f"{a} – {b}", figure(value)) for a, b, value in self._rows()]
        return f"{head}\n{self.provenance}\n\n{lined_up([('', self.statistic), *rows])}"

    __repr__ = __str__


def integration(
    x: Analysed,
    partition: Any,
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
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    sample.warn_of_findings()
    names, codes = parse_partition(partition, sample.shapes.landmarks)
    n = sample.shapes.n_shapes
    centred = sample.tangents - sample.tangents.mean(axis=0)
    blocks = [centred[:, codes == k].reshape(n, -1) for k in range(len(names))]
    blocks = [_reduce_columns(block) for block in blocks]
    pairs = _fill_pairs(len(names), lambda i, j: correlate_blocks(blocks[i], blocks[j]))
    observed = _mean_of_pairs(pairs)

    def correlate(orders: Index) -> Array:
        values = np.empty(len(orders))
        for row, order in enumerate(orders):
            rng = np.random.default_rng(order[:8])  # further orders, for modules beyond the second
            permuted = [blocks[0], blocks[1][order], *(b[rng.permutation(n)] for b in blocks[2:])]
            both = combinations(permuted, 2)
            values[row] = np.mean([correlate_blocks(first, second) for first, second in both])
        return values

    chance = permutations.each(n, 1, correlate, held=n * 16)
    z, p = effect_size(observed, chance), p_value(observed, chance)
    return ModuleTest("r-PLS", names, observed, z, p, pairs, None, chance, sample.provenance)


def modularity(
    x: Analysed,
    partition: Any,
    n_permutations: int = 999,
    seed: int = 0,
    *,
    interval: bool = True,
    space: str = "superimposed",
    superimpose: bool = True,
    progress: Progress | None = None,
) -> ModuleTest:
    """Test whether modules vary independently, as geomorph's ``modularity.test``.

    Parameters
    ----------
    x, partition, n_permutations, seed, space, superimpose, progress
        As in `integration`.
    interval : bool
        Whether to resample specimens for an interval.
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    sample.warn_of_findings()
    names, codes = parse_partition(partition, sample.shapes.landmarks)
    centred = sample.tangents - sample.tangents.mean(axis=0)
    squares = _square_covariances(centred)
    pairs = _fill_pairs(len(names), lambda i, j: covariance_ratio(squares, codes, (i, j)))
    observed = _mean_of_pairs(pairs)

    def assign_at_random(orders: Index) -> Array:
        return np.array([_mean_ratio(squares, codes[order]) for order in orders])

    m = len(codes)
    chance = permutations.each(m, 1, assign_at_random, held=m * 16)
    z, p = effect_size(observed, chance), p_value(-observed, -chance)
    limits = _bootstrap_interval(centred, codes, seed) if interval else None
    return ModuleTest("CR", names, observed, z, p, pairs, limits, chance, sample.provenance)


def covariance_ratio(squares: Array, codes: Index, modules: tuple[int, int]) -> float:
    """Compute CR of two modules, averaged over rotations.

    Parameters
    ----------
    squares : array (r, m, m)
        Squared covariances between landmarks in r poses, from `_square_covariances`.
    codes : array (m,)
        The module of every landmark.
    modules : (int, int)
    """
    first, second = (codes == module for module in modules)
    between = squares[:, first][:, :, second].sum(axis=(1, 2))
    within = squares[:, first][:, :, first].sum(axis=(1, 2))
    within = within * squares[:, second][:, :, second].sum(axis=(1, 2))
    ratios = between / np.sqrt(np.maximum(within, np.finfo(np.float64).tiny))
    return float(np.sqrt(ratios).mean())


def _square_covariances(centred: Array) -> Array:
    """Sum the squared covariances (r, m, m) of the coordinates of two landmarks, in r poses.

    Variances are left out. Rotations are in the first plane, over a quarter turn, after which axes
    have changed places.
    """
    n, m, d = centred.shape
    flat = centred.reshape(n, m * d)
    covariance = (flat.T @ flat / (n - 1)).reshape(m, d, m, d)
    squares = np.empty((_N_ANGLES, m, m))
    for k in range(_N_ANGLES):
        angle = 0.5 * np.pi * k / _N_ANGLES
        rotation = np.eye(d)
        rotation[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        turned = np.einsum("mdle,da,eb->malb", covariance, rotation, rotation, optimize=True)
        posed = turned.reshape(m * d, m * d)
        np.fill_diagonal(posed, 0.0)
        squares[k] = (posed.reshape(m, d, m, d) ** 2).sum(axis=(1, 3))
    return squares


def _mean_ratio(squares: Array, codes: Index) -> float:
    k = int(codes.max()) + 1
    ratios = [covariance_ratio(squares, codes, pair) for pair in combinations(range(k), 2)]
    return float(np.mean(ratios))


def _bootstrap_interval(centred: Array, codes: Index, seed: int) -> Array:
    """Resample specimens (n, m, d) and return the 95 % percentile interval of CR (2,)."""
    rng, n = np.random.default_rng([seed, 3]), len(centred)
    ratios = []
    for _ in range(_N_BOOTSTRAPS):
        resampled = centred[rng.integers(n, size=n)]
        squares = _square_covariances(resampled - resampled.mean(axis=0))
        ratios.append(_mean_ratio(squares, codes))
    return np.quantile(ratios, [0.025, 0.975])


def relative_eigenvalue_variance(
    x: Analysed, *, space: str = "superimposed", superimpose: bool = True
) -> float:
    """Compute Vrel, the variance of eigenvalues over the largest it can be; 1 for a single axis."""
    sample = build_sample(x, space=space, superimpose=superimpose)
    n = sample.shapes.n_shapes
    flat = (sample.tangents - sample.tangents.mean(axis=0)).reshape(n, -1)
    variances = np.linalg.svd(flat, compute_uv=False) ** 2 / (n - 1)
    variances = variances[variances > 1e-12 * variances[0]]
    k, mean = len(variances), variances.mean()
    if k < 2:
        return 1.0
    return float(((variances - mean) ** 2).sum() / (k * (k - 1) * mean**2))


def _reduce_columns(block: Array) -> Array:
    """Rotate a block (n, p) to as few columns as it has dimensions; products of rows stay."""
    U, lengths, _ = np.linalg.svd(block, full_matrices=False)
    varying = lengths > 1e-12 * lengths[0]
    return np.asarray(U[:, varying] * lengths[varying])


def _fill_pairs(k: int, compute: Any) -> Array:
    pairs = np.full((k, k), np.nan)
    for i, j in combinations(range(k), 2):
        pairs[i, j] = pairs[j, i] = compute(i, j)
    return pairs


def _mean_of_pairs(pairs: Array) -> float:
    return float(pairs[np.triu_indices(len(pairs), 1)].mean())
