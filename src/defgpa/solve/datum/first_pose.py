"""Where a rigid alignment of many shapes starts: in closed form, near the best one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.errors import DegenerateShapeError
from defgpa.procrustes import Motion, Motions, pairwise
from defgpa.solve.datum.fit import CentredShapes, against

_SPECTRAL_UP_TO = 256  # shapes or landmarks: the size of a dense Hermitian eigenproblem


def first_pose(points: Array, shapes: CentredShapes, motions: Motions) -> Array:
    """(n, d, d): a first Z_i for every shape, in closed form."""
    n, m, d = shapes.shape
    if shapes.visible is not None:
        return _grown_start(points, shapes, motions)
    if d == 2 and min(n, m) <= _SPECTRAL_UP_TO and not motions.reflections:
        return _spectral_start(shapes, motions)
    return _one_shape_start(shapes, motions)


def _spectral_start(shapes: CentredShapes, motions: Motions) -> Array:
    """In the plane a similarity is a complex number, and the cost of all is a Hermitian form.

    Its leading eigenvector is the optimum for similarities; of unit modulus, a start for rotations.
    """
    D = shapes.rows[0::2] + 1j * shapes.rows[1::2]
    n, m = D.shape
    if n <= m:
        z = np.linalg.eigh(D @ D.conj().T)[1][:, -1].conj()
    else:
        z = D.conj() @ np.linalg.eigh(D.T @ D.conj())[1][:, -1]
    if not motions.scaling:
        z /= np.maximum(np.abs(z), np.finfo(np.float64).tiny)
    return np.stack([z.real, z.imag, -z.imag, z.real], axis=1).reshape(n, 2, 2)


def _one_shape_start(shapes: CentredShapes, motions: Motions) -> Array:
    """Every shape onto one of them, in the middle of their own order."""
    n, _, d = shapes.shape
    one = shapes.order[n // 2]
    cross = against(shapes.rows, shapes.rows[one * d : (one + 1) * d])
    R, _ = motions.nearest(cross)
    if not motions.scaling:
        return R
    along = (R * cross).sum(axis=(1, 2)) / shapes.spreads[one]
    return R * np.maximum(along, np.finfo(np.float64).eps)[:, np.newaxis, np.newaxis]


def _grown_start(points: Array, shapes: CentredShapes, motions: Motions) -> Array:
    """Shapes join a growing reference, those that share most with it first."""
    n, _, d = points.shape
    # shapes are moved about their own centroids, so that far origins cost no digits
    local = points - shapes.centroids[:, np.newaxis]
    seen = ~np.isnan(points[..., 0])
    waiting = np.ones(n, dtype=bool)
    joining = shapes.order[[seen.sum(axis=1)[shapes.order].argmax()]]
    Z = np.broadcast_to(np.eye(d), (n, d, d)).copy()
    moved = local[joining]
    total, views = np.zeros_like(local[0]), np.zeros(points.shape[1])
    while True:
        total += np.nan_to_num(moved, copy=False).sum(axis=0)
        views += seen[joining].sum(axis=0)
        waiting[joining] = False
        if not waiting.any():
            return Z
        reference = np.where(views > 0, total.T / np.maximum(views, 1), np.nan).T
        left = np.flatnonzero(waiting)
        motion = _onto(local[left], reference, motions)
        shared = (seen[left] & (views > 0)).sum(axis=1)
        linked = np.where(motion.determined, shared, 0)
        if not linked.any():
            raise DegenerateShapeError(_unlinked(shapes.named(left), shared, d))
        chosen = 2 * linked >= linked.max()
        joining, motion = left[chosen], motion[chosen]
        Z[joining] = motion.rotation / motion.scale[:, np.newaxis, np.newaxis]
        moved = motion(local[joining])


def _onto(shapes: Array, reference: Array, motions: Motions) -> Motion:
    """Every shape onto the reference; points in one plane are turned where a mirror is open."""
    motion = pairwise(shapes, reference[np.newaxis], motions)[:, 0]
    if motions.reflections and not motion.determined.any():
        return _onto(shapes, reference, replace(motions, reflections=False))
    return motion


def _unlinked(left: str, shared: Index, d: int) -> str:
    return (
        f"Shape {left} cannot be turned against the others: it shares "
        f"{int(shared.max())} landmarks with them at most, where {d}-D needs at least {d} that do "
        f"not all lie on one {'point' if d == 2 else 'line'}. Drop such shapes, or add landmarks."
    )
