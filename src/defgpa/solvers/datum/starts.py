"""Where a rigid alignment of many shapes starts: in closed form, near the best one.

The cost of an alignment has several minima when the shapes differ about as much as they agree, or
when every shape may be mirrored. Then many poses are improved at once, by turns: the reference that
is best for the motions, the motions that are best for the reference. That is a few products for all
of them. Most are soon given up; those that have come lowest are worth a descent. Chance goes by the
shapes' own order, so that the one in which they are given does not matter.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from defgpa._arrays import Array
from defgpa.errors import DegenerateShapeError
from defgpa.procrustes import Motion, Motions, pairwise
from defgpa.solvers.datum.fit import CentredShapes, against
from defgpa.solvers.datum.rigid_cost import Solver, solver


def first_pose(points: Array, shapes: CentredShapes, motions: Motions) -> Array:
    """(n, d, d): a first Z_i for every shape, in closed form."""
    n, m, d = shapes.shape
    if shapes.visible is not None:
        return _grown_start(points, shapes, motions)
    # a dense Hermitian eigenproblem of that size is quick
    if d == 2 and min(n, m) <= 256 and not motions.reflections:
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
            raise DegenerateShapeError(
                f"Shape {shapes.named(left)} cannot be turned against the others: it shares "
                f"{int(shared.max())} landmarks with them at most, where {d}-D needs at least {d} "
                f"that do not all lie on one {'point' if d == 2 else 'line'}. Drop such shapes, or "
                "add landmarks."
            )
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


def other_starts(shapes: CentredShapes, motions: Motions) -> list[Array]:
    """Four other Z (n, d, d), the most promising first; none where there is too much to try."""
    n, m, d = shapes.shape
    # large sets have fewer minima, and their poses take longer to improve
    count = min(64, 400_000 // (n * m * d), 16_000 // n)
    if count < 4:
        return []
    # similarities start as motions of shapes of one size
    size = np.sqrt(shapes.spreads) if motions.scaling else np.ones(n)
    even = replace(
        shapes,
        rows=shapes.rows / np.repeat(size, d)[:, np.newaxis],
        spreads=shapes.spreads / size**2,
    )
    solve = solver(even, np.ones(n))
    poses = _improved(even, motions, solve, _first(even, motions, count), rounds=6)[:12]
    poses = _improved(even, motions, solve, poses, rounds=24)[:4]
    return list(poses * size[:, np.newaxis, np.newaxis] / np.sqrt(np.mean(size**2)))


def _first(shapes: CentredShapes, motions: Motions, count: int) -> Array:
    """(count, n, d, d): some with all shapes onto one of them, the others turned by chance."""
    n, _, d = shapes.shape
    rng = np.random.default_rng(0)
    chosen = shapes.order[rng.permutation(n)[: count // 2]]
    onto = shapes.rows.reshape(n, d, -1)[chosen].reshape(len(chosen) * d, -1)
    turned = np.empty((count - len(chosen), n, d, d))
    turned[:, shapes.order] = rng.normal(size=turned.shape)
    return motions.nearest(np.concatenate([_cross(shapes, onto), turned]))[0]


def _cross(shapes: CentredShapes, references: Array) -> Array:
    """(k, n, d, d): D_iᵀ S for references (k·d, m), one coordinate a row."""
    n, _, d = shapes.shape
    return (shapes.rows @ references.T).reshape(n, d, -1, d).transpose(2, 0, 1, 3)


def _improved(
    shapes: CentredShapes, motions: Motions, solve: Solver, poses: Array, rounds: int
) -> Array:
    """The poses after some rounds of reference and motions by turns, the best first."""
    k, n, d, _ = poses.shape
    for _ in range(rounds):
        sums = poses.transpose(0, 3, 1, 2).reshape(k * d, n * d) @ shapes.rows
        references = solve(sums)
        explained = (sums * references).reshape(k, -1).sum(axis=1)
        poses = motions.nearest(_cross(shapes, references))[0]
    return poses[np.argsort(-explained, kind="stable")]
