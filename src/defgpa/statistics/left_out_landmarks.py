"""Distances of landmarks from their prediction by all other landmarks and specimens."""

from __future__ import annotations

import numpy as np

from defgpa.arrays import Array, Mask
from defgpa.completion.gaussian import Hyperparameters, ShapeGaussian, predict_left_out
from defgpa.errors import ShapeError
from defgpa.tangent_space import rotate_onto_mean, scale_to_unit_size

FAR_OUT = 3.0  # ranges of the quartiles, for a landmark to be flagged: there are very many of them
_MIN_SPECIMENS = 4  # specimens that predictions can be made from


def measure_from_predictions(completed: Array, visible: Mask) -> Array:
    """Measure the distance (n, m) of landmarks from their left-out prediction, at unit size."""
    if len(completed) < _MIN_SPECIMENS:
        raise ShapeError(
            f"Landmarks are predicted from at least {_MIN_SPECIMENS} specimens; there are "
            f"{len(completed)}."
        )
    specimens = rotate_onto_mean(scale_to_unit_size(completed))
    if specimens.std(axis=0).max() < 1e-12:  # rounding
        raise ShapeError("The shapes do not differ, so none of their landmarks can be odd.")
    step = -(-specimens.shape[1] // 400)  # landmarks that predict each other
    lengths = np.empty(specimens.shape[:2])
    for start in range(step):  # very many landmarks: each from those of its own share
        share = slice(start, None, step)
        lengths[:, share] = _measure_block(specimens[:, share], visible[:, share])
    return lengths


def _measure_block(specimens: Array, visible: Mask) -> Array:
    """Measure distances (n, m) of landmarks, few enough to predict each other, from predictions.

    A landmark out of place spoils the predictions of its neighbours. So specimens with an odd
    landmark are predicted again, the oddest landmark left out until the remaining ones agree.
    """
    lengths = _predict_each(specimens, visible)
    scores = lengths / compute_medians(lengths)
    worst, limit = np.nan_to_num(scores).max(axis=1), compute_limit(scores[visible], FAR_OUT)
    # at least three quarters say what is usual: those whose oddest landmark is the least odd
    is_sound = worst <= max(limit, float(np.quantile(worst, 0.75)))
    if is_sound.sum() < _MIN_SPECIMENS:
        return lengths
    lengths[is_sound] = _predict_each(specimens[is_sound], visible[is_sound])
    medians = compute_medians(lengths[is_sound])
    gaussian = ShapeGaussian(specimens[is_sound], Hyperparameters())
    for i in np.flatnonzero(~is_sound):
        shape = np.where(visible[i][:, None], specimens[i], np.nan)
        lengths[i] = _trim_and_predict(gaussian, shape, medians * limit)
    return lengths


def _predict_each(specimens: Array, visible: Mask) -> Array:
    lengths = np.linalg.norm(predict_left_out(specimens, Hyperparameters())[0], axis=2)
    return np.where(visible, lengths, np.nan)


def _trim_and_predict(gaussian: ShapeGaussian, shape: Array, limits: Array) -> Array:
    """Measure distances (m,) from predictions by those landmarks of a shape (m, d) that agree."""
    trimmed = shape.copy()
    residuals = np.linalg.norm(gaussian.predict_left_out(trimmed), axis=1)
    for _ in range(min(10, int((~np.isnan(shape[:, 0])).sum()) // 2)):
        excess = np.where(residuals > limits, residuals, 0.0)
        if not excess.any():
            break
        worst = int(excess.argmax())
        trimmed[worst] = np.nan
        residuals = np.linalg.norm(gaussian.predict_left_out(trimmed), axis=1)
    is_trimmed = np.isnan(trimmed[:, 0]) & ~np.isnan(shape[:, 0])
    if is_trimmed.any():
        predicted = gaussian.complete(trimmed).points
        size = np.linalg.norm(predicted - predicted.mean(axis=0))
        residuals[is_trimmed] = np.linalg.norm((shape - predicted)[is_trimmed], axis=1) / size
    return residuals


def compute_medians(lengths: Array) -> Array:
    """Compute the median (m,) of each landmark, no less than a tenth of that of all.

    A landmark that no specimen here has takes the median of all.
    """
    overall = np.nanmedian(lengths)
    medians = np.full(lengths.shape[1], overall)
    is_measured = ~np.isnan(lengths).all(axis=0)
    medians[is_measured] = np.nanmedian(lengths[:, is_measured], axis=0)
    return np.maximum(medians, 0.1 * overall)


def compute_limit(values: Array, ranges: float) -> float:
    """Compute Q3 and so many times the range of the quartiles above it."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high + ranges * (high - low))
