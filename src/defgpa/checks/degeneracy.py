"""Shapes whose points are too few, on a line, or all in one place determine no warp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from defgpa._arrays import Array, Mask
from defgpa.errors import DegenerateShapeError, listed
from defgpa.frames import Frames


def require_extended(frames: Frames, names: Sequence[str]) -> None:
    """A DegenerateShapeError that names the shapes whose points are too few or on a line."""
    one_place = (frames.count > 0) & ~(frames.size > 0.0)
    require_extents(frames.count, frames.on_a_line, one_place, names, frames.points.shape[-1])


def require_extents(
    count: Array, on_a_line: Mask, one_place: Mask, names: Sequence[str], dim: int
) -> None:
    """The same from how many points each shape sees, and whether they are on a line."""
    few = count < dim + 1
    if few.any():
        i = int(np.flatnonzero(few)[0])
        raise DegenerateShapeError(
            f"Shape {names[i]!r} has {int(count[i])} visible landmarks that another shape sees "
            f"too; a warp in {dim}-D needs at least {dim + 1}. Drop it ({int(few.sum())} of "
            f"{len(count)} shapes have too few)."
        )
    if on_a_line.any():
        culprits = [names[int(i)] for i in np.flatnonzero(on_a_line)]
        what = "coincident" if one_place[on_a_line].all() else "collinear"
        raise DegenerateShapeError(
            f"The visible landmarks of shape {listed(culprits)} are all {what}, which "
            f"determines no warp in {dim}-D. Check the coordinates, or drop such shapes."
        )
