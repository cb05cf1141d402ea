"""Modularity: whether parts of a shape vary each on its own.

The covariance ratio of two modules with covariances S₁₁, S₂₂ and S₁₂,

    CR = √( tr(S₁₂S₂₁) / √( tr(S₁₁°S₁₁°) tr(S₂₂°S₂₂°) ) ),

S° without its diagonal, is averaged over pairs of modules and over rotations of the superimposed
shapes, on which only the diagonal depends (Adams 2016): in space, as in geomorph, about the third
principal axis of the mean shape. Below 1, modules covary less with each other than within. Chance
assigns landmarks to modules at random. Z compares hypotheses (`compare_effect_sizes`; Adams &
Collyer 2019).

With M the covariance of the coordinates of a landmark, its squared variances in a pose with axes a
sum up to Σ (aᵀMa)², which is linear in M⊗M: modules sum M⊗M of their landmarks, and poses come
last.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from defgpa.arrays import Array, Index, Progress
from defgpa.errors import ShapeError
from defgpa.statistics.box_cox import effect_size
from defgpa.statistics.integration import ModuleTest
from defgpa.statistics.pairs import fill_pairs
from defgpa.statistics.partition import Partition, parse_partition
from defgpa.statistics.permutation import Permutations, p_value
from defgpa.statistics.sample import Analysed, build_sample

_N_ANGLES = 16  # in a quarter turn; CR is so smooth in the angle that more change nothing
_N_BOOTSTRAPS = 999
_ROUNDING = 1e-12  # relative


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
    centred = _center_on_principal_axes(sample.tangents)
    n, m, d = centred.shape
    flat = centred.reshape(n, m * d)
    squares = np.empty((m, m))
    for rows in np.array_split(np.arange(m), -(-m // 64)):  # all covariances would be d² m² numbers
        covariances = (centred[:, rows].reshape(n, -1).T @ flat).reshape(len(rows), d, m, d)
        squares[rows] = np.einsum("mdle,mdle->ml", covariances, covariances)
    moments = np.einsum("nmd,nme->mde", centred, centred)
    pair_ratios = _compute_ratios_of(squares, moments, codes[None])[0]
    observed = float(pair_ratios.mean())

    def assign_at_random(orders: Index) -> Array:
        return np.asarray(_compute_ratios_of(squares, moments, codes[orders]).mean(axis=1))

    width = len(names) * (1 + _N_ANGLES)
    chance = permutations.each(m, width, assign_at_random)
    z, p = effect_size(observed, chance), p_value(-observed, -chance)
    limits = _bootstrap_interval(centred, codes, seed) if interval else None
    pairs = fill_pairs(len(names), pair_ratios)
    return ModuleTest("CR", names, observed, z, p, pairs, limits, chance, sample.provenance)


def _center_on_principal_axes(tangents: Array) -> Array:
    """Return deviations (n, m, d) from the mean shape, along its principal axes."""
    mean = tangents.mean(axis=0)
    return (tangents - mean) @ np.linalg.svd(mean - mean.mean(axis=0))[2].T


def _compute_ratios_of(squares: Array, moments: Array, codes: Index) -> Array:
    """Compute CR of every pair of k modules (b, k (k − 1) / 2), for b assignments of landmarks.

    Parameters
    ----------
    squares : array (m, m)
        Sums of squared covariances between two landmarks.
    moments : array (m, d, d)
        Covariances of the coordinates of every landmark.
    codes : array (b, m) of int
        The module of every landmark.
    """
    members = (codes[:, :, None] == np.arange(codes.max() + 1)).astype(np.float64)
    between = members.transpose(0, 2, 1) @ (squares @ members)
    return compute_ratios(between, _square_moments(moments) @ members, moments.shape[1])


def compute_ratios(between: Array, quartics: Array, d: int) -> Array:
    """Compute CR of every pair of k modules, averaged over rotations.

    Parameters
    ----------
    between : array (b, k, k)
        Sums of squared covariances between two modules, and within one, which no rotation changes.
    quartics : array (b, c, k)
        What `_square_moments` gives, summed over the landmarks of a module.
    d : int
        Dimension.

    Returns
    -------
    array (b, k (k − 1) / 2)
    """
    features, _ = _make_poses(d)
    totals = np.diagonal(between, axis1=1, axis2=2)
    within = totals[:, None, :] - features @ quartics  # without the variances, in every pose
    first, second = np.triu_indices(between.shape[1], 1)
    products = np.maximum(within[:, :, first] * within[:, :, second], np.finfo(np.float64).tiny)
    covariances = np.maximum(between, 0.0)[:, None, first, second]  # or rounding makes NaN
    return np.asarray(np.sqrt(covariances / np.sqrt(products)).mean(axis=1))


def _square_moments(moments: Array) -> Array:
    """Return what matters of M⊗M (c, m), with M (m, d, d) the covariances within landmarks."""
    flat = moments.reshape(len(moments), -1).T
    return _make_poses(moments.shape[1])[1] @ (flat[:, None] * flat).reshape(-1, flat.shape[1])


@lru_cache
def _make_poses(d: int) -> tuple[Array, Array]:
    """Return Σ a⊗a⊗a⊗a over the axes a of poses (r, d⁴), as a product (r, c) (c, d⁴).

    Poses are rotations of the first two axes over a quarter turn, after which these have changed
    places.
    """
    angles = np.linspace(0.0, np.pi / 2, _N_ANGLES, endpoint=False)
    cosine, sine = np.cos(angles), np.sin(angles)
    poses = np.tile(np.eye(d), (_N_ANGLES, 1, 1))
    poses[:, 0, :2] = np.column_stack([cosine, sine])
    poses[:, 1, :2] = np.column_stack([-sine, cosine])
    squares = np.einsum("rka,rkb->rkab", poses, poses).reshape(_N_ANGLES, d, -1)
    quartics = np.einsum("rkp,rkq->rpq", squares, squares).reshape(_N_ANGLES, -1)
    left, lengths, right = np.linalg.svd(quartics, full_matrices=False)
    c = int((lengths > _ROUNDING * lengths[0]).sum())
    return left[:, :c] * lengths[:c], right[:c]


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
        quartics = _square_moments(moments) @ members
        ratios.append(compute_ratios(between[None], quartics[None], d).mean())
    return np.quantile(ratios, [0.025, 0.975])
