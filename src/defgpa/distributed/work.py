"""What the workers do: pure functions, so that a lost result can always be made again.

A part is some whole shapes with their weights; a block is the columns of one part for some of the
landmarks. Everything the driver receives is of the size of the reference, or smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from defgpa.arrays import Array, Index, Mask
from defgpa.geometry import Geometry, Moments, compute_moments, measure_subset
from defgpa.shapes import Shapes
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
        """(b, p, r): the columns times Γ^½, for the regressions."""
        return self.batch.columns() if self.stored is None else self.stored

    @property
    def weighted_columns(self) -> Array:
        """(b, p, r): the columns times Γ, of which U is made."""
        if self.stored is None:
            return self.batch.weigh_columns()
        return self.stored if self.batch.weights is None else self.batch.weigh(self.stored.copy())


class Part(NamedTuple):
    """Some shapes of the set."""

    points: Array  # (b, m, d), NaN where missing
    weights: Array | None  # (b, m): relative to those of all parts; None: 1 where visible

    @property
    def visible(self) -> Mask:
        """(b, m): which landmarks each shape has."""
        return ~np.isnan(self.points[..., 0])


def weigh_points(points: Array, weights: Array, first: int) -> Shapes:
    """Give points their weights, checked; ``first`` is the number of the first shape."""
    names = [f"shape_{first + number}" for number in range(1, len(points) + 1)]
    return Shapes.specimens(points, names=names, weights=weights)


def make_part(source: Any, unit: float | None) -> Part:
    """Make a part of an array of points or of shapes, with weights in this unit if there is one."""
    points = _get_points(source)
    if unit is None:
        return Part(points, None)
    weights = getattr(source, "weights", None)
    visible = ~np.isnan(points[..., 0])
    return Part(points, (visible if weights is None else weights) / unit)


def _get_points(source: Any) -> Array:
    """Return the points (b, m, d) of an array or of shapes."""
    return np.asarray(getattr(source, "points", source), dtype=np.float64)


class PartFacts(NamedTuple):
    """What the driver knows about a part of the shapes."""

    visible: Mask  # (b, m)
    n_dims: int
    names: tuple[str, ...] | None
    landmarks: tuple[str, ...] | None
    weight_range: frozenset[float]  # the least and the largest weight of visible landmarks
    weight_sum: float  # of all weights, over the largest


def describe_part(source: Any) -> PartFacts:
    """Describe an array of points or shapes."""
    points = _get_points(source)
    visible = ~np.isnan(points[..., 0])
    weights = getattr(source, "weights", visible.astype(np.float64))[visible]
    largest = weights.max(initial=0.0)
    return PartFacts(
        visible,
        int(points.shape[2]),
        getattr(source, "names", None),
        getattr(source, "landmarks", None),
        frozenset([weights.min(), largest] if len(weights) else []),
        float((weights / largest).sum()) if len(weights) else 0.0,
    )


def take_landmarks(part: Part, landmarks: Index) -> Part:
    """Return the part on these landmarks."""
    points = np.ascontiguousarray(part.points[:, landmarks])
    return Part(points, None if part.weights is None else part.weights[:, landmarks])


def sum_weights(part: Part) -> Array:
    """Return the total weight (m,) of each landmark in a part."""
    weights = part.visible if part.weights is None else part.weights
    return np.asarray(weights.sum(axis=0, dtype=np.float64))


def measure_part(part: Part) -> Geometry:
    """Measure the shapes of a part, planar ones in their planes."""
    return measure_subset(part.points, part.visible, part.weights).project_to_planes()


def measure_extents(part: Part) -> Geometry:
    """Measure the shapes of a part, and return their extents without their points."""
    geometry, none = measure_part(part), slice(0)
    return replace(
        geometry,
        points=geometry.points[:, none],
        visible=geometry.visible[:, none],
        weights=None,
        centred=geometry.centred[:, none],
    )


def get_points(part: Part, landmarks: slice = slice(None)) -> Array:
    """Return some landmarks (b, p, d) of the shapes of a part."""
    return part.points[:, landmarks]


def join_landmarks(landmarks: slice, *parts: Part) -> Array:
    """Return some landmarks (n, p, d) of the shapes of all parts."""
    return np.concatenate([get_points(part, landmarks) for part in parts])


def take_shape(part: Part, number: int) -> Part:
    """Return one shape of a part."""
    shape = slice(number, number + 1)
    return Part(part.points[shape], None if part.weights is None else part.weights[shape])


def make_part_batches(part: Part, model: WarpModel) -> list[Batch]:
    """Put the shapes of a part into batches, with their bases."""
    return make_batches(measure_part(part), model)


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
    """Compute columnsᵀ Γ X (b, r, k) over the landmarks of a block, per batch."""
    return [(rows.T @ block.weighted_columns).mT for block in blocks]


def combine_projections(combine: list[Array], *projections: list[Array]) -> list[Array]:
    """Compute the coefficients (b, r, k) of the columns, combine combineᵀ Σ columnsᵀ Γ X."""
    return [
        shape_mixing @ (shape_mixing.mT @ sum(terms[1:], terms[0]))
        for shape_mixing, terms in zip(combine, zip(*projections, strict=True), strict=True)
    ]


def expand(blocks: list[Block], coefficients: list[Array]) -> Array:
    """Compute Σ Γ columns @ coefficients (p, k) over the shapes of a part."""
    pairs = zip(blocks, coefficients, strict=True)
    return add_arrays(*[(block.weighted_columns @ values).sum(axis=0) for block, values in pairs])


def add_arrays(*terms: Array) -> Array:
    """Add arrays."""
    return reduce(np.add, terms)


def compute_part_moments(part: Part, axes: Array) -> Moments:
    """Compute the moments of the shapes of a part with axes (m, k)."""
    moments = compute_moments(axes, measure_part(part))
    each = np.broadcast_to(moments.axes, (len(part.points), *moments.axes.shape[-2:]))
    return replace(moments, axes=each)


def make_part_warps(batches: list[Batch], coefficients: list[Array]) -> list[Warp]:
    """Make the warps of a part, in the columns of their bases: small enough to send."""
    warps = []
    for batch, values in zip(batches, coefficients, strict=True):
        bases = batch.bases.unmix()
        warps += [Warp(bases[number], weights) for number, weights in enumerate(values)]
    return warps


def apply_part_warps(part: Part, warps: Sequence[Warp]) -> Array:
    """Return the shapes (b, m, d) of a part through their warps."""
    return np.stack([warp(shape) for warp, shape in zip(warps, part.points, strict=True)])


def sum_square_errors(part: Part, warps: Sequence[Warp], reference: Array) -> tuple[float, float]:
    """Return Σ γ ‖warp(D) − S‖² over the visible landmarks of a part, and Σ γ."""
    errors = apply_part_warps(part, warps) - reference
    visible = ~np.isnan(errors[..., 0])
    weights = np.ones(visible.sum()) if part.weights is None else part.weights[visible]
    return float(weights @ (errors[visible] ** 2).sum(axis=1)), float(weights.sum())
