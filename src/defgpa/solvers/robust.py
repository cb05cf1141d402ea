r"""Estimate landmark weights that keep gross errors out of a fit.

A deformable fit follows a displaced landmark, and the bent warp then hides the displacement. So
outliers are found by iteratively reweighted least squares with three precautions:

1. *Start* from similarities in the L1 norm, reference onto shape, so that a stray landmark is a
   stray response and never a lever; the reference is made of spatial medians.
2. *Score* each landmark by its residual when it is left out. With the weight :math:`\gamma`, the
   leverage :math:`\gamma q`, :math:`q = f^\top (B^\top \Gamma B + R)^{-1} f`, and its share
   :math:`\gamma / c_j` in the reference, the leave-one-out residual and its variance are

   .. math:: \frac{r}{(1 - \gamma q)(1 - \gamma / c_j)}, \qquad
             \sigma^2 \Bigl(1 + \frac{q}{1 - \gamma q} + \frac{1}{c_j - \gamma}\Bigr).

3. *Begin stiff*: the first rounds multiply the smoothing, so that neighbours which moved together
   cannot carry the warp with them; their weights fall slowly (Geman-McClure), the final ones cut.

No landmark is fitted again to score it: everything above comes from the weighted fit itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from defgpa.arrays import Array, Mask
from defgpa.procrustes import SIMILARITY, fit_motions, procrustes_distance
from defgpa.solvers.rigid import fit_rigid

_EARLY_STIFFNESS = (100.0, 10.0, 3.0, 1.0)  # factors on the smoothing in the first rounds
_EARLY_SCALE = 3.0  # score at which a Geman-McClure weight is a quarter
_FULL_WEIGHT = 0.6  # share of the rejection score up to which a landmark keeps its weight
_REJECTED_WEIGHT = 0.25  # share of its prior weight below which a landmark counts as rejected
_NEGLIGIBLE_WEIGHT = 0.05  # share of its prior weight below which a landmark is left out of a fit
_FAINT = 1e-6  # share of their weight with which landmarks of a rejected shape stay in the fit
_PSEUDO_VIEWS = 6.0  # how strongly the scale of a landmark is drawn to the common scale
_RESIDUAL_FLOOR = 1e-3  # of the size of the reference: smaller residuals are never suspicious
_MAX_LEVEL = 4.0  # a shape whose median residual is so many times the usual is rejected whole
_REFERENCE_TOL = 0.1  # of the standard error of the reference: a smaller step ends the rounds
_MEDIAN_LENGTH = {1: 0.6744897501960817, 2: 1.1774100225154747, 3: 1.5381722544550522}  # of N(0, I)
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Robust:
    """Settings of a robust fit.

    Parameters
    ----------
    rejection : float
        A landmark is rejected when its leave-one-out residual exceeds this many robust standard
        deviations.
    readmission : float
        A rejected landmark returns only below this score.
    max_rejected_share : float
        A shape with a larger share of rejected landmarks is rejected as a whole.
    max_rounds : int
        Maximum number of weighted fits before the final one.

    Examples
    --------
    >>> Robust(rejection=4.0).readmission
    4.0
    """

    rejection: float = 5.0
    readmission: float = 4.0
    max_rejected_share: float = 0.4
    max_rounds: int = 12


class WeightedFit(NamedTuple):
    """What one weighted fit says about every landmark of every shape."""

    reference: Array  # (m, d)
    predicted: Array  # (n, m, d): each landmark through the warp of its shape, whatever its weight
    leverage: Array  # (n, m): q at the place of the landmark; its weight times q is its leverage
    expected_leverage: Array  # (n, m): q where the reference expects the landmark


@dataclass(frozen=True, eq=False)
class RobustWeights:
    """Weights that a robust fit ended with, and the landmarks it rejected.

    Attributes
    ----------
    weights : array (n, m)
        Landmark weights: the given ones, reduced where a landmark is suspicious.
    scores : array (n, m)
        Leave-one-out residuals in robust standard deviations; zero where missing.
    rejected : array (n, m) of bool
        Landmarks rejected one by one.
    rejected_shapes : array (n,) of bool
        Shapes rejected as a whole.
    n_rounds : int
        Number of weighted fits.
    converged : bool
        Whether the reference came to rest within the allowed rounds.
    """

    weights: Array
    scores: Array
    rejected: Mask
    rejected_shapes: Mask
    n_rounds: int
    converged: bool


def estimate_weights(
    points: Array,
    given_weights: Array,
    fit: Callable[[Array, float], WeightedFit],
    settings: Robust,
) -> RobustWeights:
    """Estimate landmark weights by iteratively reweighted fits.

    Parameters
    ----------
    points : array (n, m, d)
        The shapes; NaN where a landmark is missing.
    given_weights : array (n, m)
        Weights of the landmarks before any is found suspicious; 0 where missing.
    fit : callable (weights, stiffness) -> WeightedFit
        A least-squares fit with these weights and the smoothing times ``stiffness``.
    settings : Robust

    Returns
    -------
    RobustWeights
    """
    n_dims = points.shape[-1]
    distances = measure_robust_distances(points, given_weights)
    scores, levels, _ = score_residuals(distances, n_dims)
    weights = given_weights * weigh_gradually(scores)
    weights[levels > _MAX_LEVEL] = 0.0
    weights = cut_weights(weights, given_weights, scores, n_dims)

    reference, converged, n_rounds = None, False, 0
    for n_rounds in range(1, settings.max_rounds + 1):
        early = n_rounds <= len(_EARLY_STIFFNESS)
        stiffness = _EARLY_STIFFNESS[n_rounds - 1] if early else 1.0
        fitted = fit(keep_faint(weights, given_weights), stiffness)
        scores, levels, scales = score_residuals(studentize(fitted, weights, points), n_dims)
        if early:
            updated = given_weights * weigh_gradually(scores)
            updated[levels > _MAX_LEVEL] = 0.0
        else:
            updated = given_weights * weigh_finally(scores, weights, given_weights, settings)
            updated[find_rejected_shapes(updated, given_weights, levels, settings)] = 0.0
        updated = cut_weights(updated, given_weights, scores, n_dims)

        change = np.abs(updated - weights).max() / given_weights.max()
        step = np.inf if reference is None else procrustes_distance(fitted.reference, reference)
        standard_error = np.nanmedian(scales) * np.sqrt(n_dims / len(points))
        reference, weights = fitted.reference, updated
        converged = not early and (step < _REFERENCE_TOL * standard_error or change < 0.01)
        if converged:
            break

    fitted = fit(keep_faint(weights, given_weights), 1.0)
    scores, levels, _ = score_residuals(studentize(fitted, weights, points), n_dims)
    rejected_shapes = find_rejected_shapes(weights, given_weights, levels, settings)
    reduced = (weights < _REJECTED_WEIGHT * given_weights) & (scores > settings.rejection)
    return RobustWeights(
        weights=weights,
        scores=scores,
        rejected=reduced & ~rejected_shapes[:, np.newaxis],
        rejected_shapes=rejected_shapes,
        n_rounds=n_rounds + 1,
        converged=bool(converged),
    )


def measure_robust_distances(points: Array, weights: Array, max_rounds: int = 10) -> Array:
    """Measure how far each landmark lies from a superimposition that outliers cannot bend.

    Similarities of the reference onto each shape in the L1 norm (iteratively reweighted), in turn
    with a reference of spatial medians.

    Parameters
    ----------
    points : array (n, m, d)
        The shapes; NaN where a landmark is missing.
    weights : array (n, m)

    Returns
    -------
    array (n, m)
        Distances relative to the size of the reference; NaN where missing.
    """
    visible = weights > 0
    scaled = scale_by_medians(points, visible)
    reference = fit_rigid(scaled, SIMILARITY).reference
    for _ in range(max_rounds):
        superimposed = superimpose_in_l1(reference, scaled, np.where(visible, weights, 0.0))
        previous, reference = reference, compute_spatial_medians(superimposed, weights, reference)
        reference = reference - np.median(reference, axis=0)
        reference = reference / np.median(np.linalg.norm(reference, axis=1))
        if procrustes_distance(reference, previous) < 1e-4:
            break
    superimposed = superimpose_in_l1(reference, scaled, np.where(visible, weights, 0.0))
    size = np.sqrt(((reference - reference.mean(axis=0)) ** 2).sum(axis=1).mean())
    return np.where(visible, np.linalg.norm(superimposed - reference, axis=-1) / size, np.nan)


def scale_by_medians(points: Array, visible: Mask) -> Array:
    """Centre each shape on the median of its landmarks and bring its median radius to one."""
    shown = np.where(visible[..., np.newaxis], points, np.nan)
    centred = shown - np.nanmedian(shown, axis=1, keepdims=True)
    radii = np.nanmedian(np.linalg.norm(centred, axis=-1), axis=1)
    return centred / np.where(radii > 0, radii, 1.0)[:, np.newaxis, np.newaxis]


def superimpose_in_l1(reference: Array, points: Array, weights: Array, n_rounds: int = 8) -> Array:
    """Superimpose shapes on a reference by the similarities with the least sum of distances.

    The similarities run from the reference to each shape: a landmark far from its shape is a large
    residual then, not a lever.

    Parameters
    ----------
    reference : array (m, d)
    points : array (n, m, d)
        NaN where missing.
    weights : array (n, m)

    Returns
    -------
    array (n, m, d)
        The shapes in the pose of the reference.
    """
    reweighted = weights
    for _ in range(n_rounds):
        motion = fit_motions(reference, points, reweighted, SIMILARITY)
        residuals = np.linalg.norm(points - motion(reference), axis=-1)
        floors = 0.1 * np.nanmedian(residuals, axis=1, keepdims=True) + 1e-12
        reweighted = np.nan_to_num(weights / np.maximum(residuals, floors))
    return motion.inverse()(points)


def compute_spatial_medians(
    superimposed: Array, weights: Array, start: Array, n_rounds: int = 15
) -> Array:
    """Compute the point of each landmark with the least sum of distances (Weiszfeld).

    Parameters
    ----------
    superimposed : array (n, m, d)
        NaN where missing.
    weights : array (n, m)
    start : array (m, d)

    Returns
    -------
    array (m, d)
    """
    medians, points = start, np.nan_to_num(superimposed)
    for _ in range(n_rounds):
        residuals = np.linalg.norm(superimposed - medians, axis=-1)
        floors = 0.05 * np.nanmedian(residuals, axis=0) + 1e-12
        pulls = np.nan_to_num(weights / np.maximum(residuals, floors))
        totals = np.maximum(pulls.sum(axis=0), _TINY)[:, np.newaxis]
        medians = np.einsum("nm,nmd->md", pulls, points) / totals
    return medians


def studentize(fitted: WeightedFit, weights: Array, points: Array) -> Array:
    """Compute leave-one-out residual lengths that have one variance, whatever weight and leverage.

    The variance uses the leverage at the expected place: a stray landmark must not excuse itself
    by lying far off.

    Parameters
    ----------
    fitted : WeightedFit
    weights : array (n, m)
    points : array (n, m, d)
        NaN where missing.

    Returns
    -------
    array (n, m)
        Lengths relative to the size of the reference; NaN where missing.
    """
    totals, unit = weights.sum(axis=0), weights.max()
    size = np.sqrt((fitted.reference**2).sum(axis=1) @ totals / totals.sum())
    lengths = np.linalg.norm(fitted.reference - fitted.predicted, axis=-1) / size
    left_out = np.maximum(1.0 - weights * fitted.leverage, 1e-3)
    share = np.clip(weights / np.maximum(totals, _TINY), 0.0, 0.9)
    # r / ((1 - w q)(1 - w / c)), over the root of 1 + q / (1 - w q) + 1 / (c - w)
    kept = np.maximum(1.0 - weights * fitted.expected_leverage, 0.05)
    variance = 1.0 + unit * fitted.expected_leverage / kept
    variance = variance + unit / np.maximum(totals - weights, np.maximum(0.1 * totals, _TINY))
    studentized = lengths / left_out / (1.0 - share) / np.sqrt(variance)
    return np.where(np.isfinite(points[..., 0]), studentized, np.nan)


def score_residuals(lengths: Array, n_dims: int) -> tuple[Array, Array, Array]:
    """Divide residual lengths by robust scales of their landmark and shape.

    Parameters
    ----------
    lengths : array (n, m)
        NaN where missing.
    n_dims : int

    Returns
    -------
    scores : array (n, m)
        Zero where missing.
    levels : array (n,)
        Median score of each shape, 1 for an ordinary one.
    scales : array (n, m)
        Standard deviation of each residual in one dimension.
    """
    to_deviation = 1.0 / _MEDIAN_LENGTH[n_dims]
    common = max(to_deviation * float(np.nanmedian(lengths)), _RESIDUAL_FLOOR)
    counts = np.isfinite(lengths).sum(axis=0)
    own = to_deviation * _median_or(lengths, 0, common / to_deviation)
    pooled = (counts * own**2 + _PSEUDO_VIEWS * common**2) / (counts + _PSEUDO_VIEWS)
    scales = np.broadcast_to(np.maximum(np.sqrt(pooled), _RESIDUAL_FLOOR), lengths.shape)
    levels = to_deviation * _median_or(lengths / scales, 1, 1.0 / to_deviation)
    scales = scales * np.maximum(levels, 1.0)[:, np.newaxis]
    return np.nan_to_num(lengths / scales), levels, scales


def _median_or(values: Array, axis: int, default: float) -> Array:
    """Compute medians along an axis, skipping NaN, with a default where there is nothing else."""
    empty = np.isnan(values).all(axis=axis, keepdims=True)
    return np.nanmedian(np.where(empty, default, values), axis=axis)


def weigh_gradually(scores: Array) -> Array:
    """Compute Geman-McClure weights, which never vanish, so that a landmark can come back."""
    return 1.0 / (1.0 + (scores / _EARLY_SCALE) ** 2) ** 2


def weigh_finally(scores: Array, weights: Array, given_weights: Array, settings: Robust) -> Array:
    """Compute weights of one for what fits and zero for what does not, with a cosine flank.

    A landmark that is rejected now returns only below the stricter score of readmission.
    """
    out = weights < _REJECTED_WEIGHT * given_weights
    cut = np.where(out, settings.readmission, settings.rejection)
    flank = np.clip((scores / cut - _FULL_WEIGHT) / (1.0 - _FULL_WEIGHT), 0.0, 1.0)
    return 0.5 * (1.0 + np.cos(np.pi * flank))


def find_rejected_shapes(
    weights: Array, given_weights: Array, levels: Array, settings: Robust
) -> Mask:
    """Find shapes of which too many landmarks are rejected, or that fit badly as a whole."""
    visible = given_weights > 0
    rejected = visible & (weights < _REJECTED_WEIGHT * given_weights)
    share = rejected.sum(axis=1) / np.maximum(visible.sum(axis=1), 1)
    return (levels > _MAX_LEVEL) | (share > settings.max_rejected_share)


def cut_weights(weights: Array, given_weights: Array, scores: Array, n_dims: int) -> Array:
    """Set negligible weights to zero, but leave enough landmarks to fit.

    A stray landmark of a small weight would still stretch the grid of control points. Every shape
    that is not rejected as a whole keeps 2 (d + 1) landmarks, every landmark 2 shapes: the least
    suspicious get a little weight where fewer are left.
    """
    weights = np.where(weights < _NEGLIGIBLE_WEIGHT * given_weights, 0.0, weights)
    suspicion = np.where(given_weights > 0, scores, np.inf)
    counts = (weights > 0).sum(axis=1)
    n_needed = 2 * (n_dims + 1)
    for shape in np.flatnonzero((counts < n_needed) & (counts > 0)):
        needed = np.argsort(suspicion[shape])[:n_needed]
        weights[shape, needed] = np.maximum(
            weights[shape, needed], 1e-3 * given_weights[shape, needed]
        )
    for landmark in np.flatnonzero((weights > 0).sum(axis=0) < 2):
        needed = np.argsort(suspicion[:, landmark])[:2]
        weights[needed, landmark] = np.maximum(
            weights[needed, landmark], 1e-3 * given_weights[needed, landmark]
        )
    return weights


def keep_faint(weights: Array, given_weights: Array) -> Array:
    """Give the landmarks of rejected shapes so little weight that only their own warp feels it.

    The penalty of a warp is relative to the total weight of its shape, so a rejected shape still
    gets the warp that registers it onto the reference.
    """
    rejected = ~(weights > 0).any(axis=1, keepdims=True)
    return np.where(rejected, _FAINT * given_weights, weights)
