"""Which folds are ordinary: enough points, linked shapes, one reference and nothing to warn of.

Only those are solved in stacks. What the core would refuse or remark on is left to the core.
"""

from __future__ import annotations

import numpy as np

from defgpa._arrays import Array, Index, Mask
from defgpa.alignment import Alignment
from defgpa.checks.connectivity import linked_groups
from defgpa.frames import Frames
from defgpa.solve.eigen.signs import TIE
from defgpa.worries import AMBIGUOUS_GAP, HANDFUL

_FLAT = 1e-6  # second singular value of a shape, relative to the first


def fold_frames(points: Array, seen: Mask) -> Frames:
    """The frames of all shapes (n, m, d) of every fold, which see (g, n, m): g n of them."""
    few = ~enough(seen, points.shape[2])
    if few.any():
        seen = seen | few[..., None]  # anything finite will do
    g, n, m = seen.shape
    stack = np.broadcast_to(points, (g, *points.shape)).reshape(g * n, m, -1)
    return Frames(stack, seen.reshape(g * n, m))


def enough(seen: Mask, dim: int) -> Mask:
    """(g, n): whether a shape sees as many points as a warp needs."""
    return np.asarray(seen.sum(axis=2) > dim)


def well_posed(extents: Array, seen: Mask) -> Mask:
    """(g,): whether every shape of a fold has enough points, and not on a line."""
    wide = extents[..., 1] > _FLAT * extents[..., 0]
    return np.asarray((wide & enough(seen, extents.shape[-1])).all(axis=1))


def linked(visible: Mask, folds: Index, training: Mask, dim: int) -> Mask:
    """(g,): whether the shapes of a fold hang together.

    They do if they would with as many landmarks more asked for as the fold takes away.
    """
    shared, least = visible[:, visible.sum(axis=0) >= 2], dim + 1
    if shared.all() or len(linked_groups(shared, least + folds.shape[1])) == 1:
        return np.ones(len(folds), dtype=bool)
    return np.array([len(linked_groups(visible[:, kept], least)) == 1 for kept in training])


def untied(values: Array, n: int) -> Mask:
    """(g,): whether the eigenvalues (g, d) of the axes all differ, so that the axes are unique."""
    return np.asarray((np.diff(values, axis=1) > TIE * n).all(axis=1))


def unremarkable(values: Array, axes: Array, n: int, n_landmarks: int) -> Mask:
    """(…): a clear gap, and no axis that a handful of landmarks carries: nothing to warn of."""
    d = axes.shape[-1]
    gap = values[..., d] - values[..., d - 1]
    clear = gap > np.maximum(AMBIGUOUS_GAP * values[..., d], 1e3 * np.finfo(np.float64).eps * n)
    if n_landmarks < 4 * (d + 1):
        return np.asarray(clear)
    shares = np.partition(axes**2, -(d + 1), axis=-2)[..., -(d + 1) :, :].sum(axis=-2)
    return np.asarray(clear & (shares <= HANDFUL).all(axis=-1))


def is_unremarkable(full: Alignment) -> bool:
    """The same of the full alignment."""
    aligned = full.reference[full.shapes.views >= 2]
    if not (full.eigenvalues > 0.0).all():
        return False  # flat: the core knows what to make of that
    axes = aligned / np.sqrt(full.eigenvalues)
    return bool(unremarkable(full.diagnostics.spectrum, axes, full.shapes.n_shapes, len(aligned)))
