r"""Estimate landmark weights that keep gross errors out of a fit.

A deformable fit follows a displaced landmark, and the bent warp then hides the displacement. So
outliers are found by iteratively reweighted least squares with three precautions:

1. *Start* from similarities in the L1 norm, reference onto shape, so that a stray landmark is a
   stray response and never a lever; the reference is made of spatial medians.
2. *Score* each landmark by its residual when it is left out. With the weight :math:`\gamma`, the
   leverage :math:`\gamma q = 1 - P_{jj} / \gamma`, :math:`q = f^\top (B^\top \Gamma B + R)^{-1} f`,
   and its share :math:`\gamma / c_j` in the reference, the leave-one-out residual and its variance
   are

   .. math:: \frac{r}{(1 - \gamma q)(1 - \gamma / c_j)}, \qquad
             \sigma^2 \Bigl(1 + \frac{q}{1 - \gamma q} + \frac{1}{c_j - \gamma}\Bigr).

3. *Begin stiff*: the first rounds multiply the smoothing, so that neighbours which moved together
   cannot carry the warp with them; their weights fall slowly (Geman-McClure), the final ones cut.

Where there are few landmarks, a warp follows three neighbours that were shifted together, whatever
its smoothing. There similarities predict a landmark about as well as the warps of the other
landmarks do; where they do so, and most shapes have no landmark that is far off for them, one that
is far off for similarities is rejected, too.

No landmark is fitted again to score it: everything above comes from the weighted fit itself. The
score of a landmark is the same whether it is in the fit or not, so one that was left out comes back
by itself where it fits. Neighbours that were left out together do not: the warp has nothing to hold
on to there. So when the reference has come to rest, all but the grossest get their weights back for
one round, and must be rejected again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from defgpa.arrays import Array, Index, Mask
from defgpa.diagnostics.rejection import Rejection
from defgpa.procrustes import procrustes_distance
from defgpa.shapes import Shapes
from defgpa.solvers.datum_space import DatumSpaceFit
from defgpa.solvers.l1_superimposition import superimpose_in_l1
from defgpa.solvers.leverage import compute_map_leverage, find_expected_places
from defgpa.solvers.residual_scores import (
    FAINT,
    WeightedFit,
    judge_by_similarities,
    score_residuals,
    studentize,
    weigh_gradually,
)

_GROSS = 2.0  # of the rejection score: beyond, no second chance, and no part in the scales
_RETRIAL_ROUNDS = 4  # so many rounds remain after it
_NEGLIGIBLE_WEIGHT = 0.05  # share of its given weight below which a landmark is rejected
_LEAST_WEIGHT = 1e-3  # share of their given weight with which landmarks that are needed stay
ROUND_GRADIENT = 1e-6  # relative; at which the descent of a round stops, far below its step
_REFERENCE_TOL = 0.2  # of the standard error of the reference: a smaller step ends the rounds
_WEIGHT_TOL = 0.01  # of the largest weight: a smaller change ends the rounds


class Schedule(NamedTuple):
    """How the rounds of a robust fit depend on the family of its maps."""

    early_stiffness: tuple[float, ...]  # factors on the smoothing in the first rounds
    full_weight: float  # share of the rejection score up to which a landmark keeps its weight


OF_WARPS = Schedule((100.0, 10.0, 3.0, 1.0), 0.8)
# what is left of similarities and affine maps is deformation: no gap parts it from mistakes
OF_MAPS = Schedule((1.0,), 0.6)


@dataclass(frozen=True)
class Robust:
    """Settings of a robust fit.

    Parameters
    ----------
    rejection : float
        A landmark is rejected when its leave-one-out residual exceeds this many robust standard
        deviations.
    max_rejected_share : float
        A shape with a larger share of rejected landmarks is rejected as a whole.
    max_rounds : int
        Maximum number of weighted fits before the final one.

    Examples
    --------
    >>> Robust(rejection=4.0).max_rounds
    12
    """

    rejection: float = 5.0
    max_rejected_share: float = 0.4
    max_rounds: int = 12


@dataclass(frozen=True, eq=False)
class RobustWeights:
    """Weights that a robust fit ended with, and the landmarks it rejected.

    Attributes
    ----------
    weights : array (n, m)
        Landmark weights: the given ones, reduced where a landmark is suspicious, 0 in rejected
        shapes.
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
    fit: Callable[[Array, float, Array], WeightedFit],
    settings: Robust,
    schedule: Schedule = OF_MAPS,
) -> RobustWeights:
    """Estimate landmark weights by iteratively reweighted fits.

    Parameters
    ----------
    points : array (n, m, d)
        The shapes; NaN where a landmark is missing.
    given_weights : array (n, m)
        Weights of the landmarks before any is found suspicious; 0 where missing.
    fit : callable (weights, stiffness, start) -> WeightedFit
        A least-squares fit with these weights and the smoothing times ``stiffness``; it may begin
        at ``start``, a reference (m, d) near that of the last fit.
    settings : Robust
    schedule : Schedule

    Returns
    -------
    RobustWeights
    """
    n_dims, gross_score = points.shape[-1], _GROSS * settings.rejection
    early_stiffness, full_weight = schedule
    start = superimpose_in_l1(points, given_weights)
    rigid = judge_by_similarities(start, given_weights, settings.rejection)
    scores, is_far, _ = score_residuals(start.measure_distances(), n_dims, rigid.exchanged)
    weights = cut_weights(given_weights * weigh_gradually(scores), given_weights, scores, n_dims)
    is_rejected = is_far

    reference, has_retried, converged, n_rounds = None, False, False, 0
    while n_rounds < settings.max_rounds and not converged:
        is_early = n_rounds < len(early_stiffness)
        applied = fade_shapes(weights, is_rejected)
        near = start.reference if reference is None else reference
        fitted = fit(applied, early_stiffness[n_rounds] if is_early else 1.0, near)
        lengths, studentized = studentize(fitted, weights, is_rejected, points)
        gross = np.zeros_like(rigid.exchanged) if is_early else scores > gross_score
        scores, is_far, scale = score_residuals(studentized, n_dims, rigid.exchanged, gross)
        if not is_early and rigid.judges(lengths):
            scores = np.maximum(scores, rigid.scores)

        if is_early:
            shares = weigh_gradually(scores)
        else:
            shares = weigh_finally(scores / settings.rejection, full_weight)
        weights = cut_weights(given_weights * shares, given_weights, scores, n_dims)
        is_rejected = is_far
        if not is_early:
            share = _share_rejected(weights, given_weights)
            is_rejected = is_far | (share > settings.max_rejected_share)

        step = np.inf if reference is None else procrustes_distance(fitted.reference, reference)
        standard_error = scale * np.sqrt(n_dims / len(points))
        change = np.abs(fade_shapes(weights, is_rejected) - applied).max() / given_weights.max()
        has_settled = step < _REFERENCE_TOL * standard_error or change < _WEIGHT_TOL
        reference, n_rounds = fitted.reference, n_rounds + 1
        if has_retried:
            converged = bool(has_settled)
        elif not is_early and (has_settled or n_rounds == settings.max_rounds - _RETRIAL_ROUNDS):
            # neighbours that were left out together may fit together; exchanged ones always do
            is_retried = (scores < gross_score) & ~rigid.exchanged
            retried = np.where(is_retried, given_weights, weights)
            has_retried, converged = True, bool(has_settled and (retried == weights).all())
            weights = retried

    fitted = fit(fade_shapes(weights, is_rejected), 1.0, fitted.reference)
    lengths, studentized = studentize(fitted, weights, is_rejected, points)
    gross = scores > gross_score
    scores = score_residuals(studentized, n_dims, rigid.exchanged, gross).scores
    if rigid.judges(lengths):
        scores = np.maximum(scores, rigid.scores)
    return RobustWeights(
        weights=np.where(is_rejected[:, np.newaxis], 0.0, weights),
        scores=scores,
        rejected=_find_rejected(weights, given_weights) & ~is_rejected[:, np.newaxis],
        rejected_shapes=is_rejected,
        n_rounds=n_rounds + 1,
        converged=converged,
    )


def weigh_finally(scores: Array, full_weight: float) -> Array:
    """Compute weights of one up to a score, with a cosine flank to zero at a score of one."""
    flank = np.clip((scores - full_weight) / (1.0 - full_weight), 0.0, 1.0)
    return 0.5 * (1.0 + np.cos(np.pi * flank))


def cut_weights(weights: Array, given_weights: Array, scores: Array, n_dims: int) -> Array:
    """Set negligible weights to zero, but leave enough landmarks to fit.

    A stray landmark of a small weight would still stretch the grid of control points. Every shape
    keeps 2 (d + 1) landmarks, every landmark 2 shapes: the least suspicious get a little weight
    where fewer are left.

    Parameters
    ----------
    weights, given_weights, scores : array (n, m)
        Estimated and given landmark weights, and residuals in standard deviations.
    """
    weights = np.where(weights < _NEGLIGIBLE_WEIGHT * given_weights, 0.0, weights)
    min_weights = _LEAST_WEIGHT * given_weights
    suspicion = np.where(given_weights > 0, scores, np.inf)
    n_needed = 2 * (n_dims + 1)
    for shape in np.flatnonzero((weights > 0).sum(axis=1) < n_needed):
        needed = np.argsort(suspicion[shape])[:n_needed]
        weights[shape, needed] = np.maximum(weights[shape, needed], min_weights[shape, needed])
    for landmark in np.flatnonzero((weights > 0).sum(axis=0) < 2):
        needed = np.argsort(suspicion[:, landmark])[:2]
        weights[needed, landmark] = np.maximum(
            weights[needed, landmark], min_weights[needed, landmark]
        )
    return weights


def fade_shapes(weights: Array, is_rejected: Mask) -> Array:
    """Give rejected shapes so little weight that only their own warps feel it.

    The penalty of a warp is relative to the total weight of its shape, so a rejected shape still
    gets the warp that registers it onto the reference.
    """
    return weights * np.where(is_rejected, FAINT, 1.0)[:, np.newaxis]


def _find_rejected(weights: Array, given_weights: Array) -> Mask:
    """Return which visible landmarks (n, m) have lost their weight."""
    return (given_weights > 0) & (weights < _NEGLIGIBLE_WEIGHT * given_weights)


def _share_rejected(weights: Array, given_weights: Array) -> Array:
    """Return the share (n,) of the visible landmarks of each shape that are rejected."""
    n_visible = np.maximum((given_weights > 0).sum(axis=1), 1)
    return np.asarray(_find_rejected(weights, given_weights).sum(axis=1) / n_visible)


def predict_by_maps(
    fit: DatumSpaceFit,
    points: Array,
    weights: Array,
    invert_scatter: Callable[[Array], Array],
) -> WeightedFit:
    """Predict landmarks (n, m, d) by the affine maps of a datum-space fit."""
    predicted = points @ fit.matrices + fit.offsets[:, None]
    places = find_expected_places(fit.reference, points, weights)
    leverage = compute_map_leverage(places, points, weights, invert_scatter)
    return WeightedFit(fit.reference, predicted, leverage)


def spread_over_landmarks(estimated: RobustWeights, shapes: Shapes, shared: Index) -> Rejection:
    """Make the rejection on all landmarks from robust weights of the shared ones."""
    weights, scores = np.array(shapes.relative_weights), np.zeros(shapes.visible.shape)
    rejected = np.zeros(shapes.visible.shape, dtype=bool)
    weights[:, shared], scores[:, shared] = estimated.weights, estimated.scores
    rejected[:, shared] = estimated.rejected
    return Rejection(
        weights, scores, rejected, estimated.rejected_shapes, converged=estimated.converged
    )
