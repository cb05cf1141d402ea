"""Methods of completion: by the warp, by statistics, by a spline.

Each is a `Method`: it takes the number of a specimen and its points with NaN where they are missing
or held out, and returns the completed shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index, Mask, rms, rms_radius
from defgpa.completion.gaussian import (
    MIN_TRUST,
    Estimate,
    Hyperparameters,
    ShapeGaussian,
    choose_predictors,
    compute_gaussian_kernel,
    refill_gaps,
)
from defgpa.completion.holdouts import Holdout, choose_hyperparameters, compute_squared_errors
from defgpa.tangent_space import (
    measure_sizes,
    project_complete_shapes,
    rotate_onto_mean,
    scale_to_unit_size,
)
from defgpa.warps import fit_interpolating_spline

MIN_OTHERS = 3  # specimens besides one that statistics can be made of
MAX_SPECIMENS = 500  # that statistics are made of, unless shapes have more coordinates

Method = Callable[[int, Array], Estimate]


def estimate_by_statistics(
    complete: Array, points: Array, holdouts: Sequence[Holdout], trust: Array | None = None
) -> Method:
    """Estimate by the conditional mean of the Gaussian of all other specimens that show enough.

    With the best hyperparameters; small gaps of the specimens it is made of are estimated the same
    way.

    Parameters
    ----------
    complete, points : array (n, m, d)
        With a first estimate of what is missing, and NaN there.
    holdouts : sequence of Holdout
    trust : array (n, m), optional
        How far visible landmarks count; a specimen is estimated with its own row.
    """
    counted = hide_doubtful(points, trust)
    numbers = _choose_informative_specimens(counted)
    place = {int(number): k for k, number in enumerate(numbers)}
    usable = [
        replace(holdout, specimen=place[holdout.specimen])
        for holdout in holdouts
        if holdout.specimen in place
    ]
    start = rotate_onto_mean(scale_to_unit_size(complete[numbers]))
    hyperparameters = choose_hyperparameters(start, counted[numbers], usable)
    rows = None if trust is None else trust[numbers]
    refilled = refill_gaps(complete[numbers], points[numbers], hyperparameters, 2, rows)
    gaussian = ShapeGaussian(rotate_onto_mean(scale_to_unit_size(refilled)), hyperparameters)

    def estimate(i: int, shape: Array) -> Estimate:
        others = gaussian.without(place[i]) if i in place else gaussian
        return others.complete(shape, None if trust is None else trust[i])

    return estimate


def hide_doubtful(points: Array, trust: Array | None) -> Array:
    """Return points (n, m, d) with NaN where they count too little to judge estimates by."""
    return points if trust is None else np.where(trust[..., None] < MIN_TRUST, np.nan, points)


def _choose_informative_specimens(points: Array) -> Index:
    """Choose specimens with most of their landmarks; all of them if those are few.

    What is filled into a broken one is made of the others: it adds no information, and would leak
    to a holdout what was hidden from it. Of very many the most complete are chosen, so that the
    cost grows linearly with the number of specimens.
    """
    n, m, d = points.shape
    visible = (~np.isnan(points[..., 0])).mean(axis=1)
    informative = np.flatnonzero(visible > 0.5)
    if len(informative) <= max(MIN_OTHERS, n // 4):
        return np.arange(n)
    by_completeness = np.argsort(-visible[informative], kind="stable")[: max(MAX_SPECIMENS, m * d)]
    return np.sort(informative[by_completeness])


def estimate_by_warp(alignment: Alignment, points: Array, holdouts: Sequence[Holdout]) -> Method:
    """Estimate by warp⁻¹(S), corrected by a smooth field of its residuals at visible landmarks.

    The field is the conditional mean K_hs (K_ss + ρI)⁻¹ of the residuals, K Gaussian over the
    reference; of several, the one that predicts the residuals of the holdouts best.

    Parameters
    ----------
    alignment : Alignment
    points : array (n, m, d)
        Of its shapes, mirrored ones flipped.
    holdouts : sequence of Holdout
    """
    S = alignment.reference
    cases = []
    for holdout in holdouts:
        shape = holdout.hide(points)
        predictors = choose_predictors(S, ~np.isnan(shape[:, 0]))
        projected = _project_reference_back(alignment, holdout.specimen, shape)
        cases.append((holdout, shape, projected, predictors))

    def error(field: Hyperparameters) -> float:
        errors = [
            compute_squared_errors(
                _add_field(S, shape, projected, predictors, field),
                points[holdout.specimen],
                holdout.hidden,
            )
            for holdout, shape, projected, predictors in cases
        ]
        return float(np.concatenate(errors).sum())

    fields = [Hyperparameters(noise, reach=r) for r in (0.15, 0.3, 0.6) for noise in (0.03, 0.3, 3)]
    best = min(fields, key=error)

    def estimate(i: int, shape: Array) -> Estimate:
        missing, projected = np.isnan(shape[:, 0]), _project_reference_back(alignment, i, shape)
        predictors = choose_predictors(S, ~missing)
        K, factor = _make_field_kernels(S, missing, predictors, best)
        unexplained = 1.0 - np.einsum("hs,sh->h", K, cho_solve(factor, K.T))
        spread = np.sqrt(np.maximum(unexplained, 0.0) + best.noise)
        deviation = np.zeros(len(shape))
        deviation[missing] = spread * rms((shape - projected)[predictors])
        return Estimate(_add_field(S, shape, projected, predictors, best), deviation)

    return estimate


def _project_reference_back(alignment: Alignment, i: int, shape: Array) -> Array:
    """Project the reference back into specimen i, (m, d), from the landmarks left in ``shape``.

    Where a visible landmark is held out, its share in the reference S_j, about the mean of v
    images, is taken out: S_j + (S_j − image) / (v − 1).
    """
    shapes = alignment.shapes
    held_out = shapes.visible[i] & np.isnan(shape[:, 0]) & (shapes.views > 1)
    S = np.array(alignment.reference)
    S[held_out] += (S - alignment.aligned[i])[held_out] / (shapes.views[held_out, None] - 1)
    return np.asarray(alignment.register(shape).inverse()(S))


def _add_field(
    S: Array, shape: Array, projected: Array, predictors: Index, field: Hyperparameters
) -> Array:
    """Fill missing landmarks (m, d) by the projected reference plus the field of residuals.

    Parameters
    ----------
    S, shape, projected : array (m, d)
        The reference, a shape with NaN where missing, and the reference projected back into it.
    predictors : array (k,) of int
        The visible landmarks whose residuals the field interpolates.
    """
    missing, points = np.isnan(shape[:, 0]), np.array(shape)
    K, factor = _make_field_kernels(S, missing, predictors, field)
    points[missing] = projected[missing] + K @ cho_solve(factor, (shape - projected)[predictors])
    return points


def _make_field_kernels(
    S: Array, missing: Mask, predictors: Index, field: Hyperparameters
) -> tuple[Array, tuple[Array, bool]]:
    """Compute the kernels of a field on the reference: K_hs (h, s), and the factor of K_ss + ρI.

    Parameters
    ----------
    S : array (m, d)
        The reference.
    missing : array (m,) of bool
        The h landmarks to predict.
    predictors : array (s,) of int
        The landmarks to predict from.
    """
    width = field.reach * rms_radius(S)
    K_hs, K_ss = (
        compute_gaussian_kernel(S[rows], S[predictors], width) for rows in (missing, predictors)
    )
    return K_hs, cho_factor(K_ss + field.noise * np.eye(len(predictors)))


def estimate_by_spline(complete: Array, is_complete: Mask) -> Method:
    """Estimate by the thin-plate spline that takes the mean of the complete specimens to a shape.

    The mean is geomorph's: of tangent coordinates, each specimen at its own size again; of the
    shapes (n, m, d) that are complete, or of all where hardly any is.
    """
    numbers = np.flatnonzero(is_complete if is_complete.sum() > 1 else np.ones_like(is_complete))
    specimens = project_complete_shapes(complete[numbers])
    specimens *= measure_sizes(complete[numbers])[:, None, None]
    total = specimens.sum(axis=0)
    place = {int(number): k for k, number in enumerate(numbers)}

    def estimate(i: int, shape: Array) -> Estimate:
        mean = total / len(numbers)
        if i in place:
            mean = (total - specimens[place[i]]) / (len(numbers) - 1)
        visible = ~np.isnan(shape[:, 0])
        predictors = choose_predictors(mean, visible)
        points, distance = np.array(shape), np.zeros(len(shape))
        points[~visible] = fit_interpolating_spline(mean[predictors], shape[predictors])(
            mean[~visible]
        )
        width = rms_radius(shape[visible])
        distance[~visible] = cdist(mean[~visible], mean[predictors]).min(axis=1) * width
        return Estimate(points, distance)

    return estimate
