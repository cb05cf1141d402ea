r"""Control points: a grid inside the principal box of a shape.

On each principal axis the interior positions k / (K + 1), k = 1 … K, of the bounding box of the
visible points: the grid does not touch the box, and turns with the shape.

On a grid with its own orthonormal axes the squared distance is a sum over the axes,

    ‖x − c_ijk‖² = (u − a_i)² + (v − b_j)² + (w − c_k)²,

so few squares make all of them. They are differences still: near a control point, where the kernel
has a logarithm or a square root, nothing cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index, frozen
from defgpa.frames import Frames

PointsPerAxis = int | Sequence[int]


def per_axis_counts(points_per_axis: PointsPerAxis, dim: int, owner: str) -> tuple[int, ...]:
    """One count per axis; the longest principal axis first."""
    given = np.asarray(points_per_axis)
    counts = np.tile(given, dim) if given.ndim == 0 else given
    # fewer than two layers lie in a plane, and control points must span the space
    if counts.shape != (dim,) or counts.dtype.kind not in "iu" or counts.min() < 2:
        raise ValueError(
            f"The 'points_per_axis' parameter of {owner} must be a whole number of at least 2, or "
            f"one per axis ({dim} of them). Got {points_per_axis!r} instead."
        )
    return tuple(int(count) for count in counts)


@lru_cache(maxsize=8)
def places(counts: tuple[int, ...]) -> Index:
    """(Π counts, d): where each point of a grid is along each axis; the last changes fastest."""
    return frozen(np.stack(np.unravel_index(np.arange(np.prod(counts)), counts), axis=-1))


def control_grid(frames: Frames, counts: tuple[int, ...]) -> Array:
    """(n, Π counts, d): the grid of each shape, in the coordinates of the shape."""
    low, high = frames.box
    within = (places(counts) + 1) / (np.array(counts) + 1)
    local = low[:, None, :] + within * (high - low)[:, None, :]
    return local @ frames.axes.mT + frames.centre[:, None, :]


@dataclass(frozen=True, eq=False)
class Grid:
    """The control points of one shape, or of a stack of them, in the shapes' own units."""

    counts: tuple[int, ...]  # points along each axis
    axes: Array  # (…, d, d): columns
    first: Array  # (…, d): the first point, along the axes
    step: Array  # (…, d): from one to the next

    @property
    def points(self) -> Array:
        """(…, k, d): all of them, the last axis changing fastest."""
        along = self.first[..., None, :] + places(self.counts) * self.step[..., None, :]
        return along @ self.axes.mT

    def fill_squared_distances(self, points: Array, out: Array) -> None:
        """‖x − c‖² of points (…, d, p), as (…, k, p): the points side by side in memory."""
        *others, last = self._squares(self.axes.mT @ points)
        for own in others[:0:-1]:
            last = (own[..., :, None, :] + last[..., None, :, :]).reshape(
                *own.shape[:-2], -1, own.shape[-1]
            )
        split = out.reshape(*out.shape[:-2], self.counts[0], -1, out.shape[-1])
        np.add(others[0][..., :, None, :], last[..., None, :, :], out=split)

    def _squares(self, along: Array) -> list[Array]:
        """(…, K, p) for each axis: (u − a_i)² of the points (…, d, p) along the axes."""
        # all axes at once up to the longest: few calls, each of which other threads may wait for
        place = np.arange(max(self.counts))
        ticks = self.first[..., None] + place * self.step[..., None]
        difference = along[..., None, :] - ticks[..., None]
        np.square(difference, out=difference)
        return [difference[..., axis, :count, :] for axis, count in enumerate(self.counts)]

    def __getitem__(self, shape: Any) -> Grid:
        return Grid(self.counts, self.axes[shape], self.first[shape], self.step[shape])


def principal_grid(frames: Frames, counts: tuple[int, ...]) -> Grid:
    """Inside the principal box of every shape, not touching it: at k / (K + 1), k = 1 … K."""
    low, high = frames.box
    size = frames.size[:, None]
    step = (high - low) / (np.array(counts) + 1)
    return Grid(counts, frames.axes, (low + step) / size, step / size)
