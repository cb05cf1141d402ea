r"""The leverage of landmarks: how strongly a warp is drawn to a landmark of its shape.

With features :math:`f` at the place of a landmark, its weight times
:math:`q = f^\top (B^\top \Gamma B + R)^{-1} f` is the share of the landmark in its own prediction,
between 0 and 1. A rejected landmark of weight zero has a :math:`q`, too: what its leverage would be
with a weight of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from defgpa.arrays import Array, Index, Mask
from defgpa.solvers.cost import ResidualCost
from defgpa.solvers.reference_cost import lift

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


def compute_map_leverage(
    places: Array, points: Array, weights: Array, invert_scatter: Callable[[Array], Array]
) -> Array:
    r"""Compute q (n, m) of maps that are fitted to points with weights.

    About the weighted centroid of a shape of total weight w, the leverage at x is
    :math:`1/w + x^\top M x`.

    Parameters
    ----------
    places, points : array (n, m, d)
        Where q is wanted, and where the landmarks are; NaN where missing.
    weights : array (n, m)
    invert_scatter : callable
        M (n, d, d) from the weighted scatter matrices (n, d, d): `invert_for_affine_maps` or
        `invert_for_similarities`.
    """
    totals = np.maximum(weights.sum(axis=1), _TINY)[:, np.newaxis]
    weighted_rows = weights[:, np.newaxis]
    # one coordinate a row, in which products and sums over landmarks are fast
    rows = np.array(points.mT, order="C")
    np.copyto(rows, 0.0, where=weighted_rows == 0)
    centres = rows @ weights[..., np.newaxis] / totals[..., np.newaxis]
    rows -= centres
    form = invert_scatter((weighted_rows * rows) @ rows.mT)
    offsets = np.subtract(places.mT, centres, out=rows)
    return np.asarray(1.0 / totals + np.einsum("ndm,ndm->nm", form @ offsets, offsets))


def invert_for_affine_maps(scatter: Array) -> Array:
    """Invert scatter matrices (n, d, d): the M of affine maps."""
    return np.asarray(np.linalg.inv(lift(scatter)))


def invert_for_similarities(scatter: Array) -> Array:
    r"""Compute the M (n, d, d) of similarities: exact in the plane, to first order in space.

    A turn by w moves x by w × x, where :math:`(e_a \times x) \cdot (e_b \times x) =
    \delta_{ab} \lVert x \rVert^2 - x_a x_b`; averaged over the three dimensions.
    """
    sizes = np.maximum(np.einsum("naa->n", scatter), _TINY)[:, np.newaxis, np.newaxis]
    identity = np.eye(scatter.shape[-1])
    if scatter.shape[-1] == 2:
        return identity / sizes
    turns = np.linalg.inv(lift(sizes * identity - scatter))
    traces = np.einsum("naa->n", turns)[:, np.newaxis, np.newaxis]
    return np.asarray((identity / sizes + traces * identity - turns) / 3.0)


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
