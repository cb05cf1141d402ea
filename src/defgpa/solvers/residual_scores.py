"""Score landmarks by robust residuals: how far each is off, in standard deviations of its like."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from defgpa.arrays import Array, Mask, compute_lengths, median_of_finite
from defgpa.procrustes import procrustes_distance
from defgpa.solvers.l1_superimposition import Superimposition

_RIGID_ROUNDS = 8  # of reweighted similarities before any warp
_RIGID_TOL = 1e-3  # Procrustes distance below which a step of their reference ends the rounds
_RIGID_CAUTION = 1.2  # a landmark must be so many times as far off for similarities
_MAX_DOUBTED_SHARE = 1 / 3  # of the shapes: where more have such landmarks, shapes bend
_SIMILARITY_GAIN = (
    1.2  # of the residuals of warps: where those of similarities are smaller, they judge
)
_EXCHANGED_RATIO = 1 / 2  # of the squared distances of a pair to its places: so little if exchanged
_EXCHANGED_FACTOR = 2.0  # on the scores of such landmarks
_DOUBTFUL_LEVEL = 1.5  # of the median residual of a shape, against that of the others
_EARLY_SCALE = 3.0  # score at which a Geman-McClure weight is a quarter
_PSEUDO_VIEWS = 6.0  # how strongly the scale of a landmark is drawn to the common scale
_RESIDUAL_FLOOR = 1e-3  # of the size of the reference: smaller residuals are never suspicious
_MAX_LEVEL = 4.0  # a shape whose median residual is so many times the usual is rejected whole
_MEDIAN_LENGTH = {1: 0.6744897501960817, 2: 1.1774100225154747, 3: 1.5381722544550522}  # of N(0, I)
FAINT = 1e-6  # share of its weight with which a rejected shape stays in the fit
_TINY = np.finfo(np.float64).tiny


class WeightedFit(NamedTuple):
    """What one weighted fit says about every landmark of every shape."""

    reference: Array  # (m, d)
    predicted: Array  # (n, m, d): each landmark through the warp of its shape, whatever its weight
    leverage: Array  # (n, m): q; the weight of a landmark times q is its leverage


class RigidVerdict(NamedTuple):
    """What similarities say about every landmark of every shape."""

    median_length: float  # of the residuals, relative to the size of the reference
    scores: Array  # (n, m): zero where the shapes bend so much that similarities cannot judge
    exchanged: Mask  # (n, m): landmarks that lie in the place of another, and that one in theirs

    def judges(self, lengths: Array) -> bool:
        """Return whether similarities predict landmarks about as well as warps do (n, m).

        Then a landmark that is far off for similarities is wrong, though a warp may follow it.
        """
        return bool(
            self.scores.any() and self.median_length < _SIMILARITY_GAIN * np.nanmedian(lengths)
        )


def judge_by_similarities(
    start: Superimposition, given_weights: Array, rejection: float
) -> RigidVerdict:
    """Score landmarks by how similarities fit them, starting from a superimposition in the L1 norm.

    The L1 norm bears a third of wrong landmarks, but is drawn to them; weights that fall to
    nothing, from there on, are not.
    """
    rigid, n_dims = start, start.reference.shape[-1]
    exchanged = find_exchanged(rigid)
    for _ in range(_RIGID_ROUNDS):
        scores = score_residuals(rigid.measure_distances(), n_dims, exchanged).scores
        last, rigid = rigid, rigid.refit(given_weights * weigh_gradually(scores))
        exchanged = find_exchanged(rigid)
        if procrustes_distance(rigid.reference, last.reference) < _RIGID_TOL:
            break
    lengths = rigid.measure_distances()
    scores = score_residuals(lengths, n_dims, exchanged).scores / _RIGID_CAUTION
    if (scores > rejection).any(axis=1).mean() > _MAX_DOUBTED_SHARE:
        scores = np.zeros_like(scores)
    return RigidVerdict(float(np.nanmedian(lengths)), scores, exchanged)


def find_exchanged(rigid: Superimposition) -> Mask:
    """Find pairs of landmarks (n, m) of a shape that fit the places of each other far better.

    A side that was labelled as the other makes half of the residuals of a shape large. Their median
    must not excuse them.
    """
    distances = rigid.measure_distances()
    exchanged = np.zeros(distances.shape, dtype=bool)
    levels = median_of_finite(distances, 1)
    for shape in np.flatnonzero(levels > _DOUBTFUL_LEVEL * np.nanmedian(levels)):
        visible = np.flatnonzero(np.isfinite(distances[shape]))
        squares = cdist(rigid.superimposed[shape, visible], rigid.reference[visible], "sqeuclidean")
        in_place = np.diag(squares)
        totals = np.add.outer(in_place, in_place)
        ratios = np.divide(
            squares + squares.T, totals, out=np.ones_like(totals), where=totals > 0.0
        )
        partners = ratios.argmin(axis=1)
        is_mutual = partners[partners] == np.arange(len(partners))
        exchanged[shape, visible] = is_mutual & (ratios.min(axis=1) < _EXCHANGED_RATIO)
    return exchanged


def studentize(
    fitted: WeightedFit, weights: Array, is_rejected: Mask, points: Array
) -> tuple[Array, Array]:
    """Compute leave-one-out residual lengths, and with one variance whatever weight and leverage.

    Parameters
    ----------
    fitted : WeightedFit
        Of weights that are faint in rejected shapes.
    weights : array (n, m)
        Weights before that.
    is_rejected : array (n,) of bool
        Shapes that have no share in the reference.
    points : array (n, m, d)
        NaN where missing.

    Returns
    -------
    lengths, studentized : array (n, m)
        Relative to the size of the reference; NaN where missing.
    """
    in_reference = np.where(is_rejected[:, np.newaxis], 0.0, weights)
    totals, unit = in_reference.sum(axis=0), weights.max()
    size = np.sqrt((fitted.reference**2).sum(axis=1) @ totals / totals.sum())
    lengths = compute_lengths(fitted.reference - fitted.predicted) / size
    leverage = np.where(is_rejected[:, np.newaxis], FAINT, 1.0) * fitted.leverage
    # r / ((1 - w q)(1 - w / c)), over the root of 1 + q / (1 - w q) + 1 / (c - w)
    left_out = np.maximum(1.0 - weights * leverage, 1e-3)
    share = np.clip(in_reference / np.maximum(totals, _TINY), 0.0, 0.9)
    others = np.maximum(totals - in_reference, np.maximum(0.1 * totals, _TINY))
    variance = 1.0 + unit * leverage / np.maximum(left_out, 0.05) + unit / others
    lengths = np.where(np.isfinite(points[..., 0]), lengths / left_out / (1.0 - share), np.nan)
    return lengths, lengths / np.sqrt(variance)


class Scores(NamedTuple):
    """Residuals in robust standard deviations, with what they were divided by."""

    scores: Array  # (n, m), zero where missing
    is_far: Mask  # (n,): shapes whose median residual is far beyond that of the others
    scale: float  # the median standard deviation in one dimension over the landmarks


def score_residuals(
    lengths: Array, n_dims: int, exchanged: Mask, gross: Mask | None = None
) -> Scores:
    """Divide residual lengths by robust scales of their landmark and shape.

    Parameters
    ----------
    lengths : array (n, m)
        NaN where missing.
    n_dims : int
    exchanged : array (n, m) of bool
        Landmarks that have no part in the scales, and count as twice as far off: lying in the place
        of another is evidence, too.
    gross : array (n, m) of bool, optional
        Other landmarks without a part in the scales, which a tenth of them would raise by a tenth.
    """
    to_deviation = 1.0 / _MEDIAN_LENGTH[n_dims]
    usual = np.where(exchanged if gross is None else exchanged | gross, np.nan, lengths)
    common = max(to_deviation * float(np.nanmedian(usual)), _RESIDUAL_FLOOR)
    views = np.isfinite(usual).sum(axis=0)
    of_landmarks = to_deviation * _median_or(usual, 0, common / to_deviation)
    pooled = (views * of_landmarks**2 + _PSEUDO_VIEWS * common**2) / (views + _PSEUDO_VIEWS)
    scales = np.maximum(np.sqrt(pooled), _RESIDUAL_FLOOR)
    levels = to_deviation * _median_or(usual / scales, 1, 1.0 / to_deviation)
    scores = np.nan_to_num(lengths / scales) / np.maximum(levels, 1.0)[:, np.newaxis]
    scores *= np.where(exchanged, _EXCHANGED_FACTOR, 1.0)
    return Scores(scores, levels > _MAX_LEVEL, float(np.median(scales)))


def _median_or(values: Array, axis: int, default: float) -> Array:
    """Compute medians along an axis, skipping NaN, with a default where there is nothing else."""
    return np.nan_to_num(median_of_finite(values, axis), nan=default)


def weigh_gradually(scores: Array) -> Array:
    """Compute Geman-McClure weights, which never vanish, so that a landmark can come back."""
    ratios = np.minimum(scores / _EARLY_SCALE, 1e70)  # whose fourth power is still a number
    return 1.0 / (1.0 + ratios**2) ** 2
