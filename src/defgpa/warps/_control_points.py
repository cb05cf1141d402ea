"""Control points: a grid inside the principal box of a shape.

On each principal axis the interior positions k / (K + 1), k = 1 … K, of the bounding box of the
visible points: the grid does not touch the box, and turns with the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from defgpa._arrays import Array, Index, frozen, transposed
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
    return local @ transposed(frames.axes) + frames.centre[:, None, :]
