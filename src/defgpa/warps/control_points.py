r"""Control points of a warp: given, or on a grid inside the principal box of a shape.

On each principal axis the grid has the interior positions k / (K + 1), k = 1 … K, of the bounding
box of the visible points. It does not touch the box, and turns with the shape. On a grid with its
own orthonormal axes the squared distance is a sum over the axes,

    ‖x − c_ijk‖² = (u − a_i)² + (v − b_j)² + (w − c_k)²,

so few squares make all of them. They are differences still: near a control point, where the kernel
has a logarithm or a square root, nothing cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array, Index, Stack, freeze
from defgpa.geometry import Geometry

PointsPerAxis = int | Sequence[int]


def make_control_points(
    control_points: ArrayLike | Callable[[Array], ArrayLike], geometry: Geometry, owner: str
) -> Array:
    """Return (n, k, d) control points: the same for all shapes, or made from their visible points.

    Raises
    ------
    ValueError
        If they are not finite points, or not equally many for all shapes.
    """
    n, _, d = geometry.points.shape
    if not callable(control_points):
        points = _check_points(control_points, d, owner)
        return np.broadcast_to(points, (n, *points.shape))
    by_shape = [
        _check_points(control_points(points[visible]), d, owner)
        for points, visible in zip(geometry.points, geometry.visible, strict=True)
    ]
    counts = {len(points) for points in by_shape}
    if len(counts) > 1:
        raise ValueError(
            f"The 'control_points' function of {owner} must make equally many points for every "
            f"shape. Got between {min(counts)} and {max(counts)} of them."
        )
    return np.stack(by_shape)


def _check_points(points: ArrayLike, n_dims: int, owner: str) -> Array:
    array = np.asarray(points, dtype=np.float64)
    has_size = array.ndim == 2 and array.shape[1] == n_dims and len(array) > 0
    if not has_size or not np.isfinite(array).all():
        raise ValueError(
            f"The 'control_points' parameter of {owner} must be finite points (k, {n_dims}). "
            f"Got an array of size {array.shape} instead."
        )
    return array


def check_points_per_axis(
    points_per_axis: PointsPerAxis, n_dims: int, owner: str
) -> tuple[int, ...]:
    """Return one count per axis, the longest principal axis first, or raise a ValueError."""
    numbers = np.asarray(points_per_axis)
    counts = np.tile(numbers, n_dims) if numbers.ndim == 0 else numbers
    # fewer than two layers lie in a plane, and control points must span the space
    if counts.shape != (n_dims,) or counts.dtype.kind not in "iu" or counts.min() < 2:
        raise ValueError(
            f"The 'points_per_axis' parameter of {owner} must be a whole number of at least 2, or "
            f"one per axis ({n_dims} of them). Got {points_per_axis!r} instead."
        )
    return tuple(int(count) for count in counts)


@lru_cache(maxsize=8)
def make_grid_indices(counts: tuple[int, ...]) -> Index:
    """Return the (Π counts, d) indices of the points of a grid; the last axis changes fastest."""
    return freeze(np.stack(np.unravel_index(np.arange(np.prod(counts)), counts), axis=-1))


@dataclass(frozen=True, eq=False)
class Grid(Stack):
    """The control points of one shape, or of a stack of them, in the shapes' own units."""

    counts: tuple[int, ...]  # points along each axis
    axes: Array  # (…, d, d): columns
    first: Array  # (…, d): the first point, along the axes
    step: Array  # (…, d): from one to the next

    @property
    def points(self) -> Array:
        """(…, k, d): all control points, the last axis changing fastest."""
        coordinates = (
            self.first[..., None, :] + make_grid_indices(self.counts) * self.step[..., None, :]
        )
        return coordinates @ self.axes.mT

    def fill_squared_distances(self, points: Array, out: Array) -> None:
        """Write ‖x − c‖² of points (…, d, p) to ``out`` (…, k, p), the points side by side."""
        # all axes at once up to the longest: few calls, each of which other threads may wait for
        indices = np.arange(max(self.counts))
        ticks = self.first[..., None] + indices * self.step[..., None]
        difference = (self.axes.mT @ points)[..., None, :] - ticks[..., None]
        np.square(difference, out=difference)
        first, *middle, total = [
            difference[..., axis, :count, :] for axis, count in enumerate(self.counts)
        ]
        for squares in reversed(middle):
            total = (squares[..., :, None, :] + total[..., None, :, :]).reshape(
                *squares.shape[:-2], -1, squares.shape[-1]
            )
        split = out.reshape(*out.shape[:-2], self.counts[0], -1, out.shape[-1])
        np.add(first[..., :, None, :], total[..., None, :, :], out=split)


def make_principal_grid(geometry: Geometry, counts: tuple[int, ...]) -> Grid:
    """Make a grid inside the principal box of every shape, at k / (K + 1), k = 1 … K."""
    low, high = geometry.principal_box
    size = geometry.size[:, None]
    step = (high - low) / (np.array(counts) + 1)
    return Grid(counts, geometry.axes, (low + step) / size, step / size)
