"""Starting motions of a rigid alignment: in closed form, near the best ones.

The cost has several minima when the shapes differ about as much as they agree, or when every shape
may be mirrored. Then many sets of motions are improved at once, alternating the best reference for
the motions and the best motions for the reference, which takes a few products for all of them. Most
are soon given up; the lowest are worth a descent. The random ones are drawn in the canonical order,
so that the order in which the shapes are given has no effect.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from defgpa.arrays import Array, Index, Mask
from defgpa.errors import DegenerateShapeError
from defgpa.procrustes import Motion, Motions, fit_pairwise_motions
from defgpa.solvers.datum_space import CentredShapes, cross_products
from defgpa.solvers.rigid_cost import LaplacianSolver, compute_inner_products, factor_laplacian
from defgpa.threads import check_interruption

_MAX_SPECTRAL_SIZE = 256  # a dense Hermitian eigenproblem of that size is quick
_N_FIRST_ROUND, _N_SECOND_ROUND, _N_DESCENTS = 64, 12, 4  # starts that each stage keeps at most


def find_start(
    points: Array, shapes: CentredShapes, motions: Motions, reference: Array | None = None
) -> Array:
    """Find a first Z_i (n, d, d) of every shape: from a reference near the best, or without."""
    n, m, d = points.shape
    if reference is not None:
        return _start_from_reference(shapes, reference.T, motions)
    if np.isnan(points).any():
        return _start_by_growing(points, shapes, motions)
    if d == 2 and min(n, m) <= _MAX_SPECTRAL_SIZE and not motions.reflections:
        return _start_from_spectrum(shapes, motions)
    return _start_from_one_shape(shapes, motions)


def _start_from_reference(shapes: CentredShapes, reference: Array, motions: Motions) -> Array:
    """Move a reference (d, m) onto every shape."""
    cross = cross_products(shapes.rows, reference)
    R, _ = motions.find_nearest(cross)
    if not motions.scaling:
        return R
    squares = compute_inner_products(shapes, reference, reference)
    return R * _compute_scales(R, cross, squares)


def _compute_scales(R: Array, cross: Array, squares: Array) -> Array:
    """Compute the best scale (n, 1, 1) of a target of squared size (n) turned by R (n, d, d)."""
    scale = (R * cross).sum(axis=(1, 2)) / np.maximum(squares, np.finfo(np.float64).tiny)
    return np.maximum(scale, np.finfo(np.float64).eps)[:, np.newaxis, np.newaxis]


def _start_from_spectrum(shapes: CentredShapes, motions: Motions) -> Array:
    """Find the leading eigenvector of the Hermitian form that is the cost of plane similarities.

    In the plane a similarity is a complex number: the eigenvector is the optimum for similarities
    and, brought to unit modulus, a start for rotations.
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


def _start_from_one_shape(shapes: CentredShapes, motions: Motions) -> Array:
    """Move every shape onto the one in the middle of their canonical order."""
    n, _, d = shapes.shape
    target = shapes.canonical_order[n // 2]
    cross = cross_products(shapes.rows, shapes.rows[target * d : (target + 1) * d])
    R, _ = motions.find_nearest(cross)
    if not motions.scaling:
        return R
    return R * _compute_scales(R, cross, shapes.squared_sizes[target])


def _start_by_growing(points: Array, shapes: CentredShapes, motions: Motions) -> Array:
    """Let shapes join a growing reference, those that share the most landmarks with it first."""
    n, m, d = points.shape
    # about their centroids, so that a distant origin costs no digits
    centred = points - shapes.centroids[:, np.newaxis]
    visible = ~np.isnan(points[..., 0])
    waiting = np.ones(n, dtype=bool)
    joining = shapes.canonical_order[[visible.sum(axis=1)[shapes.canonical_order].argmax()]]
    Z = np.broadcast_to(np.eye(d), (n, d, d)).copy()
    moved = centred[joining]
    total, views = np.zeros((m, d)), np.zeros(m)
    while True:
        total += np.nan_to_num(moved, copy=False).sum(axis=0)
        views += visible[joining].sum(axis=0)
        waiting[joining] = False
        if not waiting.any():
            return Z
        reference = np.where(views > 0, total.T / np.maximum(views, 1), np.nan).T
        candidates = np.flatnonzero(waiting)
        motion = _fit_motions(centred[candidates], reference, motions)
        n_shared = (visible[candidates] & (views > 0)).sum(axis=1)
        n_usable = np.where(motion.determined, n_shared, 0)
        _require_link(n_usable, n_shared, candidates, shapes)
        chosen: Mask = 2 * n_usable >= n_usable.max()
        joining, motion = candidates[chosen], motion[chosen]
        Z[joining] = motion.rotation / motion.scale[:, np.newaxis, np.newaxis]
        moved = motion(centred[joining])


def _require_link(
    n_usable: Index, n_shared: Index, candidates: Index, shapes: CentredShapes
) -> None:
    """Raise a DegenerateShapeError if none of the candidates can join the others.

    Parameters
    ----------
    n_usable, n_shared : array (k,) of int
        Landmarks that each candidate shares with the others; 0 usable where these fix no turn.
    candidates : array (k,) of int
    """
    d = shapes.shape[2]
    if not n_usable.any():
        raise DegenerateShapeError(
            f"Shape {shapes.format_names(candidates)} cannot be turned against the others: it "
            f"shares {int(n_shared.max())} landmarks with them at most, where {d}-D needs at least "
            f"{d} that do not all lie on one {'point' if d == 2 else 'line'}. Drop such shapes, or "
            "add landmarks."
        )


def _fit_motions(shapes: Array, reference: Array, motions: Motions) -> Motion:
    """Fit every shape to the reference; planar ones by rotations where a mirror image is open."""
    motion = fit_pairwise_motions(shapes, reference[np.newaxis], motions)[:, 0]
    if motions.reflections and not motion.determined.any():
        return _fit_motions(shapes, reference, replace(motions, reflections=False))
    return motion


def find_further_starts(shapes: CentredShapes, motions: Motions) -> list[Array]:
    """Find up to four other Z (n, d, d), the best first; none where the set is too large."""
    n, m, d = shapes.shape
    # large sets have fewer minima, and their motions take longer to improve
    count = min(_N_FIRST_ROUND, 400_000 // (n * m * d), 16_000 // n)
    if count < _N_DESCENTS:
        return []
    # similarities start as motions of shapes of one size
    size = np.sqrt(shapes.squared_sizes) if motions.scaling else np.ones(n)
    resized = replace(
        shapes,
        rows=shapes.rows / np.repeat(size, d)[:, np.newaxis],
        squared_sizes=shapes.squared_sizes / size**2,
    )
    solve_laplacian = factor_laplacian(resized, np.ones(n))
    starts = _draw_starts(resized, motions, count)
    starts = _alternate(resized, motions, solve_laplacian, starts, rounds=6)[:_N_SECOND_ROUND]
    starts = _alternate(resized, motions, solve_laplacian, starts, rounds=24)[:_N_DESCENTS]
    return list(starts * size[:, np.newaxis, np.newaxis] / np.sqrt(np.mean(size**2)))


def _draw_starts(shapes: CentredShapes, motions: Motions, count: int) -> Array:
    """Draw motions (count, n, d, d): half of all shapes onto one of them, half at random."""
    n, _, d = shapes.shape
    rng = np.random.default_rng(0)
    targets = shapes.canonical_order[rng.permutation(n)[: count // 2]]
    rows = shapes.rows.reshape(n, d, -1)[targets].reshape(len(targets) * d, -1)
    random = np.empty((count - len(targets), n, d, d))
    random[:, shapes.canonical_order] = rng.normal(size=random.shape)
    return motions.find_nearest(np.concatenate([_compute_cross_products(shapes, rows), random]))[0]


def _compute_cross_products(shapes: CentredShapes, references: Array) -> Array:
    """Compute D_iᵀ S (k, n, d, d) for references (k·d, m), one coordinate a row."""
    n, _, d = shapes.shape
    return (shapes.rows @ references.T).reshape(n, d, -1, d).transpose(2, 0, 1, 3)


def _alternate(
    shapes: CentredShapes,
    motions: Motions,
    solve_laplacian: LaplacianSolver,
    starts: Array,
    rounds: int,
) -> Array:
    """Alternate reference and motions (k, n, d, d) for some rounds; return the best first."""
    k, n, d, _ = starts.shape
    for _ in range(rounds):
        check_interruption()
        sums = starts.transpose(0, 3, 1, 2).reshape(k * d, n * d) @ shapes.rows
        references = solve_laplacian(sums)
        explained = (sums * references).reshape(k, -1).sum(axis=1)
        starts = motions.find_nearest(_compute_cross_products(shapes, references))[0]
    return starts[np.argsort(-explained, kind="stable")]
