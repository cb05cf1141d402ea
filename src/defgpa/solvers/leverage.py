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

from defgpa.arrays import Array, Index, Mask
from defgpa.solvers.cost import ResidualCost

_TINY = np.finfo(np.float64).tiny


class Predictions(NamedTuple):
    """Landmarks through the warps of their shapes, with their leverage."""

    predicted: Array  # (n, m, d)
    leverage: Array  # (n, m): q


def predict_landmarks(
    cost: ResidualCost, coefficients: Sequence[Array], points: Array, places: Array
) -> Predictions:
    """Predict landmarks by the warps of their shapes, with the leverage at other places.

    Parameters
    ----------
    cost : ResidualCost
        The shapes, in batches.
    coefficients : sequence of arrays (b, l, d)
        The warps of each batch.
    points : array (n, m, d)
        The landmarks; NaN where missing.
    places : array (n, m, d)
        Where q is wanted: the landmarks, but for a few that are elsewhere.
    """
    predicted, leverage = np.full(points.shape, np.nan), np.full(points.shape[:2], np.nan)
    for factor, values in zip(cost.factors, coefficients, strict=True):
        batch, bases = factor.batch, factor.batch.bases
        visible = np.isfinite(points[batch.shapes, :, 0])
        # any finite place will do where there is none: what comes of it is masked below
        finite = np.where(visible[..., np.newaxis], points[batch.shapes], batch.points[:, :1])
        features = bases.features(finite)
        predicted[batch.shapes] = features @ values
        squares = ((features @ factor.ridge.inverse) ** 2).sum(axis=-1)
        is_elsewhere = visible & (finite != places[batch.shapes]).any(axis=-1)
        chosen = _gather(is_elsewhere)
        if chosen.size:
            moved = np.take_along_axis(places[batch.shapes], chosen[..., np.newaxis], axis=1)
            squared_lengths = ((bases.features(moved) @ factor.ridge.inverse) ** 2).sum(axis=-1)
            np.put_along_axis(squares, chosen, squared_lengths, axis=1)
        leverage[batch.shapes] = squares
    is_missing = ~np.isfinite(points[..., 0])
    predicted[is_missing], leverage[is_missing] = np.nan, np.nan
    return Predictions(predicted, leverage)


def _gather(chosen: Mask) -> Index:
    """Return indices (n, k) of the chosen landmarks of each shape, filled up with others."""
    return np.argsort(~chosen, axis=1, kind="stable")[:, : int(chosen.sum(axis=1).max())]


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
    spread = np.einsum("nmd,nmd->nm", offsets @ inverse, offsets)
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
    squares = np.einsum("nmd,nmd->nm", offsets, offsets)
    if places.shape[-1] == 2:
        return np.asarray(1.0 / totals[:, np.newaxis] + squares / total_squares)
    inertia = total_squares[..., np.newaxis] * np.eye(3) - scatter
    inverse = np.linalg.pinv(inertia, hermitian=True)
    # a turn by w moves x by w × x, and (e_a × x)·(e_b × x) = δ_ab ‖x‖² − x_a x_b; over 3 dimensions
    traces = np.einsum("naa->n", inverse)[:, np.newaxis]
    rotation = traces * squares - np.einsum("nmd,nmd->nm", offsets @ inverse, offsets)
    return np.asarray(1.0 / totals[:, np.newaxis] + (squares / total_squares + rotation) / 3.0)


def _centre(places: Array, points: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return places about the weighted centroids of points, their scatters, and total weights.

    Parameters
    ----------
    places, points, weights : array (n, m, d), (n, m, d), (n, m)

    Returns
    -------
    array (n, m, d), array (n, d, d), array (n,)
    """
    centred = np.where(weights[..., np.newaxis] > 0, points, 0.0)
    totals = np.maximum(weights.sum(axis=1), _TINY)
    centres = (weights[:, np.newaxis] @ centred)[:, 0] / totals[:, np.newaxis]
    # in place: fresh memory would take longer than what is computed
    centred -= centres[:, np.newaxis]
    scatter = centred.mT @ (weights[..., np.newaxis] * centred)
    return np.subtract(places, centres[:, np.newaxis], out=centred), scatter, totals


def find_expected_places(reference: Array, points: Array, weights: Array) -> Array:
    """Find where each shape should have the landmarks that have no weight in it.

    A stray landmark must not excuse itself by lying where the warp is loose: it is judged at the
    place where the affine map of the reference onto the shape has it.

    Parameters
    ----------
    reference : array (m, d)
    points : array (n, m, d)
        NaN where missing.
    weights : array (n, m)

    Returns
    -------
    array (n, m, d)
        The points themselves where they have weight.
    """
    design = np.column_stack([reference, np.ones(len(reference))])
    has_weight = weights > 0
    chosen, places = np.flatnonzero(~has_weight.all(axis=1)), points.copy()
    weighted, kept = weights[chosen, :, np.newaxis] * design, has_weight[chosen, :, np.newaxis]
    right = weighted.mT @ np.where(kept, points[chosen], 0.0)
    expected = design @ (np.linalg.pinv(weighted.mT @ design, hermitian=True) @ right)
    places[chosen] = np.where(kept, points[chosen], expected)
    return places
