"""What the workers do: pure functions, so that a lost result can always be made again.

A part is some whole shapes (b, m, d) with NaN; a block is the columns of one part for some of the
landmarks. Everything the driver receives is of the size of the reference, or smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from defgpa.arrays import Array, Index, Mask
from defgpa.geometry import Geometry, Moments, compute_moments, measure_geometry
from defgpa.solvers.columns import ridge_from_gram
from defgpa.solvers.cost import make_batches
from defgpa.solvers.elimination import (
    Batch,
    Ridge,
    append_penalty_rows,
    ridge_from_features,
)
from defgpa.warps import Warp, WarpModel


@dataclass(frozen=True, eq=False)
class Block:
    """Some landmarks of one batch, with their columns if they are kept in memory."""

    batch: Batch
    stored: Array | None

    @property
    def columns(self) -> Array:
        """(b, p, r)."""
        return self.batch.columns() if self.stored is None else self.stored


def get_points(part: Any) -> Array:
    """Return the points (b, m, d) of an array or of shapes."""
    return np.asarray(getattr(part, "points", part), dtype=np.float64)


class PartFacts(NamedTuple):
    """What the driver knows about a part of the shapes."""

    visible: Mask  # (b, m)
    n_dims: int
    names: tuple[str, ...] | None
    landmarks: tuple[str, ...] | None
    weights: frozenset[float]  # the least and the largest of visible landmarks


def describe_part(part: Any) -> PartFacts:
    """Describe an array of points or shapes."""
    points = get_points(part)
    visible = ~np.isnan(points[..., 0])
    weights = getattr(part, "weights", visible.astype(np.float64))[visible]
    return PartFacts(
        visible,
        int(points.shape[2]),
        getattr(part, "names", None),
        getattr(part, "landmarks", None),
        frozenset([weights.min(), weights.max()] if len(weights) else []),
    )


def take_landmarks(points: Array, landmarks: Index) -> Array:
    """Return the points (b, m', d) of these landmarks."""
    return np.ascontiguousarray(points[:, landmarks])


def measure_part(points: Array) -> Geometry:
    """Measure the shapes of a part, planar ones in their planes."""
    return measure_geometry(points, ~np.isnan(points[..., 0])).project_to_planes()


def measure_extents(points: Array) -> Geometry:
    """Measure the shapes of a part, and return their extents without their points."""
    geometry, none = measure_part(points), slice(0)
    return replace(
        geometry,
        points=geometry.points[:, none],
        visible=geometry.visible[:, none],
        centred=geometry.centred[:, none],
    )


def join_landmarks(landmarks: slice, *parts: Array) -> Array:
    """Return some landmarks (n, p, d) of the shapes of all parts."""
    return np.concatenate([points[:, landmarks] for points in parts])


def take_shape(points: Array, number: int) -> Array:
    """Return the points (m, d) of one shape of a part."""
    return points[number]


def make_part_batches(points: Array, model: WarpModel) -> list[Batch]:
    """Put the shapes of a part into batches, with their bases."""
    return make_batches(measure_part(points), model)


def make_blocks(batches: list[Batch], landmarks: slice, stored: bool) -> list[Block]:
    """Make the columns of some landmarks."""
    cut = [batch.restrict_to_landmarks(landmarks) for batch in batches]
    return [Block(batch, batch.columns() if stored else None) for batch in cut]


def compute_grams(blocks: list[Block]) -> list[Array]:
    """Compute columnsᵀ columns (b, r, r) per batch."""
    return [np.stack([x.T @ x for x in block.columns]) for block in blocks]


def compute_triangles(blocks: list[Block]) -> list[Array]:
    """Compute the triangle (b, l, l) of the QR decomposition of the features, per batch."""
    triangles = []
    for block in blocks:
        mixing = block.batch.bases.mixing
        features = block.columns if mixing is None else block.columns @ mixing
        triangles.append(np.asarray(np.linalg.qr(features, mode="r")))
    return triangles


def fit_ridges(batches: list[Batch], *grams: list[Array]) -> list[Ridge]:
    """Fit the regressions from the Gram matrices of all blocks."""
    return [
        ridge_from_gram(
            add_arrays(*terms), batch.bases.mixing, batch.bases.penalty(), batch.rounding
        )[0]
        for batch, terms in zip(batches, zip(*grams, strict=True), strict=True)
    ]


def fit_ridges_accurately(batches: list[Batch], *triangles: list[Array]) -> list[Ridge]:
    """Fit the regressions from the triangles of all blocks, where Gram matrices lose digits."""
    return [
        ridge_from_features(
            append_penalty_rows(np.concatenate(rows, axis=-2), batch.bases.penalty()),
            batch.total_weights,
            batch.rounding,
        )
        for batch, rows in zip(batches, zip(*triangles, strict=True), strict=True)
    ]


def get_quality(ridges: list[Ridge]) -> tuple[Array, Index]:
    """Return the conditions (b,) and the rank deficiencies (b,)."""
    return (
        np.concatenate([ridge.condition for ridge in ridges]),
        np.concatenate([ridge.rank_deficiency for ridge in ridges]),
    )


def mix_ridges(batches: list[Batch], ridges: list[Ridge]) -> list[Array]:
    """Compute mixing @ Y (b, r, l) per batch."""
    return [batch.mix(ridge) for batch, ridge in zip(batches, ridges, strict=True)]


def project(blocks: list[Block], rows: Array) -> list[Array]:
    """Compute columnsᵀ X (b, r, k) over the landmarks of a block, per batch."""
    return [(rows.T @ block.columns).mT for block in blocks]


def combine_projections(combine: list[Array], *projections: list[Array]) -> list[Array]:
    """Compute the coefficients (b, r, k) of the columns, combine combineᵀ Σ columnsᵀ X."""
    return [
        mixed @ (mixed.mT @ sum(terms[1:], terms[0]))
        for mixed, terms in zip(combine, zip(*projections, strict=True), strict=True)
    ]


def expand(blocks: list[Block], coefficients: list[Array]) -> Array:
    """Compute Σ columns @ coefficients (p, k) over the shapes of a part."""
    pairs = zip(blocks, coefficients, strict=True)
    return add_arrays(*[(block.columns @ values).sum(axis=0) for block, values in pairs])


def add_arrays(*terms: Array) -> Array:
    """Add arrays."""
    return reduce(np.add, terms)


def compute_part_moments(points: Array, axes: Array) -> Moments:
    """Compute the moments of the shapes of a part with axes (m, k)."""
    geometry = measure_part(points)
    moments = compute_moments(axes, geometry)
    each = np.broadcast_to(moments.axes, (len(points), *moments.axes.shape[-2:]))
    return Moments(each, moments.cross, moments.square)


def make_part_warps(batches: list[Batch], coefficients: list[Array]) -> list[Warp]:
    """Make the warps of a part, in the columns of their bases: small enough to send."""
    warps = []
    for batch, values in zip(batches, coefficients, strict=True):
        bases = batch.bases.unmix()
        warps += [Warp(bases[number], weights) for number, weights in enumerate(values)]
    return warps


def apply_part_warps(points: Array, warps: Sequence[Warp]) -> Array:
    """Return the shapes (b, m, d) of a part through their warps."""
    return np.stack([warp(shape) for warp, shape in zip(warps, points, strict=True)])


def sum_square_errors(points: Array, warps: Sequence[Warp], reference: Array) -> tuple[float, int]:
    """Return Σ‖warp(D) − S‖² over the visible landmarks of a part, and their number."""
    errors = apply_part_warps(points, warps) - reference
    visible = ~np.isnan(errors[..., 0])
    return float((errors[visible] ** 2).sum()), int(visible.sum())
