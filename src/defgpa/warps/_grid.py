r"""Control points on a grid, and distances to all of them from distances along its axes.

On a grid with its own orthonormal axes the squared distance is a sum over the axes,

    ‖x − c_ijk‖² = (u − a_i)² + (v − b_j)² + (w − c_k)²,

so few squares make all of them. They are differences still: near a control point, where the kernel
has a logarithm or a square root, nothing cancels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from defgpa._arrays import Array, transposed
from defgpa.frames import Frames
from defgpa.warps._control_points import places


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
        return along @ transposed(self.axes)

    def fill_squared_distances(self, points: Array, out: Array) -> None:
        """‖x − c‖² of points (…, d, p), as (…, k, p): the points side by side in memory."""
        *others, last = self._squares(transposed(self.axes) @ points)
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
