"""What the workers do: pure functions, so that a lost result can always be made again.

A part is some whole shapes (b, m, d) with NaN; a block is the columns of one part for some of the
landmarks. Everything the driver receives is of the size of the reference, or smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from defgpa.arrays import Array, Index, Mask
from defgpa.geometry import Geometry, measure_geometry
from defgpa.solvers.columns import ridge_from_gram
from defgpa.solvers.elimination import (
    Batch,
    Ridge,
    append_penalty_rows,
    make_batches,
    ridge_from_features,
)
from defgpa.solvers.proportions import Moments, compute_moments
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


def points_of(part: Any) -> Array:
    """(b, m, d), from an array or from shapes."""
    return np.asarray(getattr(part, "points", part), dtype=np.float64)


def facts_of(part: Any) -> tuple[Mask, int, tuple[str, ...] | None, tuple[str, ...] | None]:
    """Who sees what (b, m), the dimension, and the names of shapes and landmarks if it has any."""
    points = points_of(part)
    names, landmarks = getattr(part, "names", None), getattr(part, "landmarks", None)
    return ~np.isnan(points[..., 0]), int(points.shape[2]), names, landmarks


def kept_landmarks(points: Array, landmarks: Index) -> Array:
    """(b, m', d): the points of these landmarks."""
    return np.ascontiguousarray(points[:, landmarks])


def measure_part(points: Array) -> Geometry:
    """Where the shapes of a part lie."""
    return measure_geometry(points, ~np.isnan(points[..., 0])).project_to_planes()


def extents_of(points: Array) -> tuple[Array, Mask, Mask, int]:
    """(b,) visible landmarks, (b,) whether they are on a line, or in one place; the rank."""
    geometry = measure_part(points)
    return geometry.count, geometry.is_collinear, geometry.is_coincident, geometry.rank


def landmark_block(landmarks: slice, *parts: Array) -> Array:
    """(n, p, d): some landmarks of all shapes."""
    return np.concatenate([part[:, landmarks] for part in parts])


def one_shape(points: Array, number: int) -> Array:
    """(m, d): one shape of a part."""
    return points[number]


def batches_of(points: Array, model: WarpModel) -> list[Batch]:
    """The shapes of a part with their bases."""
    return make_batches(measure_part(points), model)


def block_of(batches: list[Batch], landmarks: slice, stored: bool) -> list[Block]:
    """The columns of some landmarks."""
    cut = [batch.restrict_to_landmarks(landmarks) for batch in batches]
    return [Block(batch, batch.columns() if stored else None) for batch in cut]


def gram_of(blocks: list[Block]) -> list[Array]:
    """(b, r, r) per batch: columnsᵀ columns."""
    return [np.stack([own.T @ own for own in block.columns]) for block in blocks]


def triangle_of(blocks: list[Block]) -> list[Array]:
    """(b, l, l) per batch: the triangle of the QR decomposition of the features."""
    triangles = []
    for block in blocks:
        mixing = block.batch.mixing
        features = block.columns if mixing is None else block.columns @ mixing
        triangles.append(np.asarray(np.linalg.qr(features, mode="r")))
    return triangles


def ridges_of(batches: list[Batch], *grams: list[Array]) -> list[Ridge]:
    """The regressions, from the Gram matrices of all blocks."""
    return [
        ridge_from_gram(sum_of(*own), batch.mixing, batch.bases.penalty(), batch.rounding)[0]
        for batch, own in zip(batches, zip(*grams, strict=True), strict=True)
    ]


def sure_ridges_of(batches: list[Batch], *triangles: list[Array]) -> list[Ridge]:
    """The regressions from the triangles of all blocks, where Gram matrices lose digits."""
    return [
        ridge_from_features(
            append_penalty_rows(np.concatenate(own, axis=-2), batch.bases.penalty()),
            batch.total_weights,
            batch.rounding,
        )
        for batch, own in zip(batches, zip(*triangles, strict=True), strict=True)
    ]


def quality_of(ridges: list[Ridge]) -> tuple[Array, Index]:
    """(b,) conditions and (b,) free directions."""
    return (
        np.concatenate([ridge.condition for ridge in ridges]),
        np.concatenate([ridge.dropped for ridge in ridges]),
    )


def combine_of(batches: list[Batch], ridges: list[Ridge]) -> list[Array]:
    """(b, r, l) per batch: mixing @ Y."""
    return [batch.mix(ridge) for batch, ridge in zip(batches, ridges, strict=True)]


def project(blocks: list[Block], rows: Array) -> list[Array]:
    """(b, r, k) per batch: columnsᵀ X over the landmarks of a block."""
    return [(rows.T @ block.columns).mT for block in blocks]


def coefficients(combine: list[Array], *projections: list[Array]) -> list[Array]:
    """(b, r, k) per batch: combine combineᵀ Σ columnsᵀ X, the coefficients of the columns."""
    return [
        own @ (own.mT @ sum(parts[1:], parts[0]))
        for own, parts in zip(combine, zip(*projections, strict=True), strict=True)
    ]


def expand(blocks: list[Block], mixed: list[Array]) -> Array:
    """(p, k): Σ columns @ coefficients over the shapes of a part."""
    own = zip(blocks, mixed, strict=True)
    return sum_of(*[(block.columns @ weights).sum(axis=0) for block, weights in own])


def sum_of(*terms: Array) -> Array:
    """The sum of arrays."""
    return reduce(np.add, terms)


def moments_of(points: Array, axes: Array) -> Moments:
    """What the shapes of a part say about axes (m, k)."""
    geometry = measure_part(points)
    found = compute_moments(axes, geometry.centred, geometry.visible)
    whole = np.broadcast_to(found.axes, (len(points), *found.axes.shape[-2:]))
    return Moments(whole, found.cross, found.square)


def warps_of(batches: list[Batch], mixed: list[Array]) -> list[Warp]:
    """The warps of a part, in the columns of their bases: small enough to send."""
    warps = []
    for batch, weights in zip(batches, mixed, strict=True):
        bases = batch.bases.unmix()
        warps += [Warp(bases[number], own) for number, own in enumerate(weights)]
    return warps


def aligned_of(points: Array, warps: Sequence[Warp]) -> Array:
    """(b, m, d): the shapes of a part through their warps."""
    return np.stack([warp(own) for warp, own in zip(warps, points, strict=True)])


def squared_error(points: Array, warps: Sequence[Warp], reference: Array) -> tuple[float, int]:
    """Σ‖warp(D) − S‖² over what a part sees, and how many landmarks that are."""
    errors = aligned_of(points, warps) - reference
    seen = ~np.isnan(errors[..., 0])
    return float((errors[seen] ** 2).sum()), int(seen.sum())
