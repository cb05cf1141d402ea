r"""The leverage of landmarks: how strongly a warp is drawn to a landmark of its shape.

With features :math:`f` at the place of a landmark, its weight times
:math:`q = f^\top (B^\top \Gamma B + R)^{-1} f` is the share of the landmark in its own prediction,
between 0 and 1. A rejected landmark of weight zero has a :math:`q`, too: what its leverage would be
with a weight of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from defgpa.arrays import Array
from defgpa.solvers.cost import ResidualCost

_TINY = np.finfo(np.float64).tiny


class Predictions(NamedTuple):
    """Landmarks through the warps of their shapes, with their leverage."""

    predicted: Array  # (n, m, d)
    leverage: Array  # (n, m): q


def predict_landmarks(
    cost: ResidualCost, coefficients: Sequence[Array], places: Array
) -> Predictions:
    """Predict landmarks at any places by the warps of their shapes.

    Parameters
    ----------
    cost : ResidualCost
        The shapes, in batches.
    coefficients : sequence of arrays (b, l, d)
        The warps of each batch.
    places : array (n, m, d)
        NaN where there is none.
    """
    predicted, leverage = np.full(places.shape, np.nan), np.full(places.shape[:2], np.nan)
    is_known = np.isfinite(places[..., 0])
    for factor, values in zip(cost.factors, coefficients, strict=True):
        batch = factor.batch
        known = is_known[batch.shapes]
        # any finite place will do where there is none: what comes of it is masked below
        somewhere = np.where(known[..., np.newaxis], places[batch.shapes], batch.points[:, :1])
        features = batch.bases.features(somewhere)
        predicted[batch.shapes] = features @ values
        leverage[batch.shapes] = ((features @ factor.ridge.inverse) ** 2).sum(axis=-1)
    predicted[~is_known], leverage[~is_known] = np.nan, np.nan
    return Predictions(predicted, leverage)


def compute_affine_leverage(places: Array, points: Array, weights: Array) -> Array:
    """Compute q (n, m) of affine maps that are fitted to points with weights.

    Parameters
    ----------
    places, points : array (n, m, d)
        Where q is wanted, and where the landmarks are; NaN where missing.
    weights : array (n, m)
    """
    offsets, scatter, totals = _centre(places, points, weights)
    inverse = np.linalg.pinv(scatter, hermitian=True)
    spread = np.einsum("nma,nab,nmb->nm", offsets, inverse, offsets)
    return np.asarray(1.0 / totals[:, np.newaxis] + spread)


def compute_similarity_leverage(places: Array, points: Array, weights: Array) -> Array:
    """Compute q (n, m) of similarities: exact in the plane, to first order in space.

    Parameters
    ----------
    places, points : array (n, m, d)
        Where q is wanted, and where the landmarks are; NaN where missing.
    weights : array (n, m)
    """
    offsets, scatter, totals = _centre(places, points, weights)
    total_squares = np.maximum(np.einsum("naa->n", scatter), _TINY)[:, np.newaxis]
    squares = (offsets**2).sum(axis=-1)
    if places.shape[-1] == 2:
        return np.asarray(1.0 / totals[:, np.newaxis] + squares / total_squares)
    inertia = total_squares[..., np.newaxis] * np.eye(3) - scatter
    inverse = np.linalg.pinv(inertia, hermitian=True)
    # a turn by w moves x by w × x; the trace of its 3 × 3 hat block, over 3
    turns = np.cross(np.eye(3), offsets[..., np.newaxis, :])
    rotation = np.einsum("nmac,nab,nmbc->nm", turns, inverse, turns)
    return np.asarray(1.0 / totals[:, np.newaxis] + (squares / total_squares + rotation) / 3.0)


def _centre(places: Array, points: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return places about the weighted centroids of points, their scatters, and total weights."""
    finite = np.where(weights[..., np.newaxis] > 0, points, 0.0)
    totals = np.maximum(weights.sum(axis=1), _TINY)
    centres = (weights[:, np.newaxis] @ finite)[:, 0] / totals[:, np.newaxis]
    centred = finite - centres[:, np.newaxis]
    scatter = centred.mT @ (weights[..., np.newaxis] * centred)
    return places - centres[:, np.newaxis], scatter, totals


def find_expected_places(reference: Array, points: Array, weights: Array) -> Array:
    """Find where each shape should have its landmarks, by the affine map of the reference onto it.

    Parameters
    ----------
    reference : array (m, d)
    points : array (n, m, d)
        NaN where missing.
    weights : array (n, m)

    Returns
    -------
    array (n, m, d)
    """
    design = np.column_stack([reference, np.ones(len(reference))])
    weighted = weights[..., np.newaxis] * design
    right = weighted.mT @ np.where(weights[..., np.newaxis] > 0, points, 0.0)
    return np.asarray(design @ (np.linalg.pinv(weighted.mT @ design, hermitian=True) @ right))
