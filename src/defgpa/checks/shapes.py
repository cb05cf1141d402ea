"""What is asked of shapes before a fit: to be extended, to hang together, to fit into memory.

Points that are too few, on a line, or all in one place determine no warp. A landmark seen once
tells nothing about the reference. Shapes hang together when they share at least d + 1 landmarks
with what already hangs together; a set that falls apart has no common reference, however well the
algebra would go through.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from defgpa._arrays import Array, Index, Mask
from defgpa.errors import DegenerateShapeError, ShapeError, listed
from defgpa.frames import Frames
from defgpa.shapes import Shapes
from defgpa.tuning import DEFAULT, Tuning


def shared_landmarks(shapes: Shapes) -> Index:
    """The landmarks that at least two shapes see."""
    return np.flatnonzero(shapes.views >= 2)


def require_extended(frames: Frames, names: Sequence[str]) -> None:
    """A DegenerateShapeError that names the shapes whose points are too few or on a line."""
    require_extents(
        frames.count, frames.on_a_line, frames.in_one_place, names, frames.points.shape[-1]
    )


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


def require_linked(shapes: Shapes) -> None:
    """A ShapeError that lists the groups, if the shapes do not hang together."""
    require_linked_pattern(shapes.visible, shapes.names, shapes.dim)


def require_linked_pattern(visible: Mask, names: Sequence[str], dim: int) -> None:
    """The same for a visibility pattern (n, m)."""
    if visible.shape[1] <= dim:
        raise ShapeError(
            f"The shapes have {visible.shape[1]} common landmarks; aligning in {dim}-D needs at "
            f"least {dim + 1}."
        )
    if visible.all():
        return
    groups = linked_groups(visible, dim + 1)
    if len(groups) > 1:
        described = "; ".join(
            f"({number}) {listed(names[int(i)] for i in group)}"
            for number, group in enumerate(groups[:5], start=1)
        )
        more = f"; and {len(groups) - 5} more groups" if len(groups) > 5 else ""
        raise ShapeError(
            f"The shapes fall into {len(groups)} groups that share fewer than {dim + 1} "
            f"landmarks: {described}{more}. Align each group on its own, or add landmarks that "
            "link them."
        )


Links = Callable[[Mask], Mask]  # (g, m), what each of g groups shares with one: is it enough?


def linked_groups(visible: Mask, least: int) -> list[Index]:
    """Groups of shapes: two groups are one if what they see together shares ``least`` landmarks."""
    return groups_by(visible, lambda shared: shared.sum(axis=1) >= least)


def groups_by(visible: Mask, linked: Links) -> list[Index]:
    """Groups of shapes, the largest first: two groups are one if what they share links them."""
    groups = [(np.array([i]), seen) for i, seen in enumerate(visible)]
    merged = True
    while merged and len(groups) > 1:
        before = len(groups)
        groups = _merged_once(groups, linked)
        merged = len(groups) < before
    return [members for members, _ in sorted(groups, key=lambda group: -len(group[0]))]


def _merged_once(groups: list[tuple[Index, Mask]], links: Links) -> list[tuple[Index, Mask]]:
    """Each group in turn takes in all that are linked to it, until nothing more is."""
    remaining = np.array([seen for _, seen in groups])
    members = [own for own, _ in groups]
    result = []
    todo = np.ones(len(groups), dtype=bool)
    while todo.any():
        first = int(np.argmax(todo))
        todo[first] = False
        taken, seen = [first], remaining[first]
        while True:
            linked = todo & links(remaining & seen)
            if not linked.any():
                break
            taken.extend(np.flatnonzero(linked))
            seen = seen | remaining[linked].any(axis=0)
            todo &= ~linked
        result.append((np.sort(np.concatenate([members[g] for g in taken])), seen))
    return result


def require_memory(n_bytes: int, tuning: Tuning = DEFAULT) -> None:
    """A MemoryError in one sentence where so many bytes, and BLAS, cannot be had.

    Within a limit (``ulimit -v``) that is too low BLAS does not fail: it ends the process, or
    waits for memory that never comes.
    """
    limit, least = _left_below_limit(), n_bytes + tuning.workspace_bytes
    if limit is not None and least > limit:
        raise MemoryError(
            f"This fit takes at least {_megabytes(least)}, and the limit of this "
            f"process leaves {_megabytes(limit)}. Raise it (ulimit -v), or take fewer shapes or "
            "landmarks."
        )
    free = _available() if n_bytes > tuning.searched_bytes else None
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"This fit takes at least {_megabytes(n_bytes)}, and {_megabytes(free)} of memory are "
            "free. Free some, or take fewer shapes or landmarks."
        )


def _left_below_limit() -> int | None:
    """Bytes of address space that the process may still take; None: any, or not known."""
    if sys.platform == "win32":  # which knows no such limits
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return None
    return max(0, limit - pages * os.sysconf("SC_PAGE_SIZE"))


def _available() -> int | None:
    """Bytes of memory that are free, or would be on demand; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(own.split()[1]) << 10 for own in lines if own.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.0f} MB"
