"""Modularity: whether parts of a shape vary each on its own.

The covariance ratio of two modules with covariances S₁₁, S₂₂ and S₁₂,

    CR = √( tr(S₁₂S₂₁) / √( tr(S₁₁°S₁₁°) tr(S₂₂°S₂₂°) ) ),

S° without its diagonal, is averaged over pairs of modules and over rotations of the superimposed
shapes, on which only the diagonal depends (Adams 2016). Below 1, modules covary less with each
other than within. Chance assigns landmarks to modules at random. Z compares hypotheses
(`compare_effect_sizes`; Adams & Collyer 2019).
"""

from __future__ import annotations

import numpy as np

from defgpa.arrays import Array, Index, Progress
from defgpa.errors import ShapeError
from defgpa.statistics.box_cox import effect_size
from defgpa.statistics.integration import ModuleTest, fill_pairs
from defgpa.statistics.partition import Partition, parse_partition
from defgpa.statistics.permutation import Permutations, p_value
from defgpa.statistics.sample import Analysed, build_sample

_N_ANGLES = 16  # in a quarter turn; CR is so smooth in the angle that more change nothing
_N_BOOTSTRAPS = 999


def modularity(
    x: Analysed,
    partition: Partition,
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
        Whether to resample specimens for a 95 % interval.

    Returns
    -------
    ModuleTest
        Integration or modularity of the modules of a shape.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(8, 2)) + 0.01 * rng.normal(size=(20, 8, 2))
    >>> x[:, :4] += 0.1 * rng.normal(size=(20, 1, 1)) * rng.normal(size=(4, 2))
    >>> x[:, 4:] += 0.1 * rng.normal(size=(20, 1, 1)) * rng.normal(size=(4, 2))
    >>> found = modularity(x, "aaaabbbb")
    >>> bool(found.observed < 1), bool(found.p < 0.1)
    (True, True)
    """
    permutations = Permutations(n_permutations, seed, progress)
    sample = build_sample(x, space=space, superimpose=superimpose)
    sample.warn_of_findings()
    names, codes = parse_partition(partition, sample.shapes.landmarks)
    single = [name for name, count in zip(names, np.bincount(codes), strict=True) if count < 2]
    if single:
        raise ShapeError(
            f"Module {single[0]!r} has one landmark, so nothing covaries within it. The covariance "
            "ratio is of modules of 2 landmarks or more."
        )
    centred = sample.tangents - sample.tangents.mean(axis=0)
    n, m, d = centred.shape
    flat = centred.reshape(n, m * d)
    squares = np.empty((m, m))
    for rows in np.array_split(np.arange(m), -(-m // 64)):  # all covariances would be d² m² numbers
        covariances = (centred[:, rows].reshape(n, -1).T @ flat).reshape(len(rows), d, m, d)
        squares[rows] = np.einsum("mdle,mdle->ml", covariances, covariances)
    variances = _compute_squared_variances(np.einsum("nmd,nme->mde", centred, centred))
    pair_ratios = compute_ratios(*_sum_modules(squares, variances, codes[None]))[0]
    observed = float(pair_ratios.mean())

    def assign_at_random(orders: Index) -> Array:
        sums = _sum_modules(squares, variances, codes[orders])
        return np.asarray(compute_ratios(*sums).mean(axis=1))

    width = len(names) * (1 + len(variances))
    chance = permutations.each(m, width, assign_at_random)
    z, p = effect_size(observed, chance), p_value(-observed, -chance)
    limits = _bootstrap_interval(centred, codes, seed) if interval else None
    pairs = fill_pairs(len(names), pair_ratios)
    return ModuleTest("CR", names, observed, z, p, pairs, limits, chance, sample.provenance)


def compute_ratios(between: Array, within: Array) -> Array:
    """Compute CR of every pair of k modules, averaged over rotations.

    Parameters
    ----------
    between : array (b, k, k)
        Sums of squared covariances between two modules, which no rotation changes.
    within : array (b, r, k)
        Sums of squared covariances within a module without its variances, in r poses.

    Returns
    -------
    array (b, k (k − 1) / 2)
    """
    first, second = np.triu_indices(between.shape[1], 1)
    products = np.maximum(within[:, :, first] * within[:, :, second], np.finfo(np.float64).tiny)
    covariances = np.maximum(between, 0.0)[:, None, first, second]  # or rounding makes NaN
    ratios = np.sqrt(covariances / np.sqrt(products))
    return np.asarray(ratios.mean(axis=1))


def _sum_modules(squares: Array, variances: Array, codes: Index) -> tuple[Array, Array]:
    """Sum squared covariances (m, m) over modules, for b assignments of landmarks (b, m).

    ``variances`` (r, m) are the squared variances of every landmark in r poses, which do not count
    within a module.
    """
    members = (codes[:, :, None] == np.arange(codes.max() + 1)).astype(np.float64)
    between = members.transpose(0, 2, 1) @ (squares @ members)
    totals = np.diagonal(between, axis1=1, axis2=2)
    return between, totals[:, None, :] - variances @ members


def _compute_squared_variances(moments: Array) -> Array:
    """Return the squared variances (r, m) of landmarks in r poses, summed over coordinates.

    Poses are rotations in the first plane over a quarter turn, after which axes have changed
    places. ``moments`` (m, d, d) are the covariances of the coordinates of every landmark.
    """
    angles = np.linspace(0.0, np.pi / 2, _N_ANGLES, endpoint=False)[:, None]
    cosine, sine = np.cos(angles), np.sin(angles)
    x, y, xy = moments[:, 0, 0], moments[:, 1, 1], moments[:, 0, 1]
    along = cosine**2 * x + sine**2 * y + 2 * cosine * sine * xy
    across = sine**2 * x + cosine**2 * y - 2 * cosine * sine * xy
    depth = sum(moments[:, k, k] ** 2 for k in range(2, moments.shape[1]))
    return np.asarray(along**2 + across**2 + depth)


def _bootstrap_interval(centred: Array, codes: Index, seed: int) -> Array:
    """Resample specimens (n, m, d) and return the 95 % percentile interval of CR (2,).

    Squared covariances of modules are products of their Gram matrices, so that no resample needs
    the covariances of landmarks.
    """
    n, m, d = centred.shape
    rng, k = np.random.default_rng([seed, 3]), int(codes.max()) + 1
    blocks = [centred[:, codes == module].reshape(n, -1) for module in range(k)]
    grams = np.stack([block @ block.T for block in blocks])
    products = np.einsum("nmd,nme->nmde", centred, centred).reshape(n, -1)
    ratios = []
    for _ in range(_N_BOOTSTRAPS):
        rows = rng.integers(n, size=n)
        shares = np.bincount(rows, minlength=n) / n
        resampled = grams - np.einsum("kij,i->kj", grams, shares)[:, None, :]
        resampled = resampled - np.einsum("kij,j->ki", resampled, shares)[:, :, None]
        weighted = resampled * np.sqrt(np.outer(shares, shares))
        flat = weighted.reshape(k, -1)
        between = flat @ flat.T
        mean = np.einsum("n,nmd->md", shares, centred)
        moments = (shares @ products).reshape(m, d, d) - mean[:, :, None] * mean[:, None, :]
        members = (codes[:, None] == np.arange(k)).astype(np.float64)
        within = np.diag(between) - _compute_squared_variances(moments) @ members
        ratios.append(compute_ratios(between[None], within[None]).mean())
    return np.quantile(ratios, [0.025, 0.975])
