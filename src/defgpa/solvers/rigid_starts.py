"""Starting references of a rigid alignment: in closed form, near the best ones.

The cost has several minima when the shapes differ about as much as they agree, or when every shape
may be mirrored. Then many references are improved at once, alternating the best motions for the
reference and the best reference for the motions, which takes a few products for all of them. Most
are soon given up; the lowest are worth a descent. The random ones are drawn in the canonical order,
so that the order in which the shapes are given has no effect.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from defgpa.arrays import Array, Index, Mask
from defgpa.errors import DegenerateShapeError
from defgpa.procrustes import Motions, fit_motions
from defgpa.solvers.datum_space import CentredShapes
from defgpa.threads import check_interruption

_MAX_SPECTRAL_SIZE = 256  # a dense Hermitian eigenproblem of that size is quick
_N_FIRST_ROUND, _N_SECOND_ROUND, _N_DESCENTS = 64, 12, 4  # starts that each stage keeps at most


def find_start(points: Array, shapes: CentredShapes, motions: Motions) -> Array:
    """Find a first reference (d, m) in closed form."""
    n, m, d = points.shape
    if np.isnan(points).any():
        return _grow_reference(points, shapes, motions)
    if d != 2 or min(n, m) > _MAX_SPECTRAL_SIZE or motions.reflections:
        return shapes.coordinates[_sort_canonically(shapes)[n // 2]]
    # In the plane a similarity is a complex number z, and the cost of all of them a Hermitian form:
    # its leading eigenvector is the optimum, and near that of rotations at unit modulus.
    D = shapes.rows[0::2] + 1j * shapes.rows[1::2]
    if n <= m:
        z = np.linalg.eigh(D @ D.conj().T)[1][:, -1].conj()
    else:
        z = D.conj() @ np.linalg.eigh(D.T @ D.conj())[1][:, -1]
    if not motions.scaling:
        z /= np.maximum(np.abs(z), np.finfo(np.float64).tiny)
    S = z @ D / n
    return np.stack([S.real, S.imag])


def _sort_canonically(shapes: CentredShapes) -> Index:
    """Sort shapes by Σ‖x‖⁴ / (Σ‖x‖²)², so that the order in which they are given has no effect."""
    n, d, m = shapes.coordinates.shape
    squares = (shapes.rows.reshape(n, d, m) ** 2).sum(axis=1) / shapes.squared_sizes[:, None]
    return np.argsort((squares**2).sum(axis=1), kind="stable")


def _grow_reference(points: Array, shapes: CentredShapes, motions: Motions) -> Array:
    """Let shapes join a growing reference, those that share the most landmarks with it first."""
    n, m, d = points.shape
    # about their centroids, so that a distant origin costs no digits
    centred = points - shapes.centroids[:, np.newaxis]
    visible = ~np.isnan(points[..., 0])
    waiting = np.ones(n, dtype=bool)
    order = _sort_canonically(shapes)
    joining = order[[visible.sum(axis=1)[order].argmax()]]
    moved = centred[joining]
    total, views = np.zeros((m, d)), np.zeros(m)
    while True:
        total += np.nan_to_num(moved, copy=False).sum(axis=0)
        views += visible[joining].sum(axis=0)
        waiting[joining] = False
        if not waiting.any():
            return total.T / views
        reference = np.where(views > 0, total.T / np.maximum(views, 1), np.nan).T
        candidates = np.flatnonzero(waiting)
        motion = fit_motions(centred[candidates], reference, motions=motions)
        if motions.reflections and not motion.determined.any():
            # planar shapes are their own mirror images: any side will do
            turns = replace(motions, reflections=False)
            motion = fit_motions(centred[candidates], reference, motions=turns)
        n_shared = (visible[candidates] & (views > 0)).sum(axis=1)
        n_usable = np.where(motion.determined, n_shared, 0)
        if not n_usable.any():
            raise DegenerateShapeError(
                f"Shape {shapes.format_names(candidates)} cannot be turned against the others: it "
                f"shares {int(n_shared.max())} landmarks with them at most, where {d}-D needs at "
                f"least {d} that do not all lie on one {'point' if d == 2 else 'line'}. Drop such "
                "shapes, or add landmarks."
            )
        chosen: Mask = 2 * n_usable >= n_usable.max()
        joining = candidates[chosen]
        moved = motion[chosen](centred[joining])


def find_further_starts(shapes: CentredShapes, motions: Motions) -> list[Array]:
    """Find up to four other references (d, m), the best first; none where the set is too large.

    Half of all begin at one of the shapes, half at the mean of shapes turned at random.
    """
    n, d, m = shapes.coordinates.shape
    # large sets have fewer minima, and their motions take longer to improve
    count = min(_N_FIRST_ROUND, 400_000 // (n * m * d), 16_000 // n)
    if count < _N_DESCENTS:
        return []
    # similarities start as motions of shapes of one size
    resized = shapes.resize(np.ones(n)) if motions.scaling else shapes
    rng, order = np.random.default_rng(0), _sort_canonically(shapes)
    targets = order[rng.permutation(n)[: count // 2]]
    random = np.empty((count - len(targets), n, d, d))
    random[:, order] = rng.normal(size=random.shape)
    turned = _average(resized, motions.find_nearest(random)[0], np.zeros((len(random), d, m)))
    references = np.concatenate([resized.coordinates[targets], turned])
    references = _alternate(resized, motions, references, rounds=6)[:_N_SECOND_ROUND]
    return list(_alternate(resized, motions, references, rounds=24)[:_N_DESCENTS])


def _alternate(shapes: CentredShapes, motions: Motions, references: Array, rounds: int) -> Array:
    """Alternate motions and references (k, d, m) for some rounds; return the best first."""
    n, d, m = shapes.coordinates.shape
    for _ in range(rounds):
        check_interruption()
        cross = (shapes.rows @ references.reshape(-1, m).T).reshape(n, d, -1, d)
        cross = cross.transpose(2, 0, 3, 1)
        rotations = motions.find_nearest(cross)[0]
        references = _average(shapes, rotations, references)
    # the cost of each, less that of a reference of size 0, with the motions to the last but one
    spread = [shapes.compute_moments(S, S).trace(axis1=1, axis2=2).mean() for S in references]
    cross = (shapes.rows @ references.reshape(-1, m).T).reshape(n, d, -1, d).transpose(2, 0, 3, 1)
    explained = 2.0 * (rotations * cross).sum(axis=(1, 2, 3)) - n * np.array(spread)
    return references[np.argsort(-explained, kind="stable")]


def _average(shapes: CentredShapes, rotations: Array, references: Array) -> Array:
    """Compute the means (k, d, m) of shapes that rotations (k, n, d, d) put onto references."""
    k, n, d, _ = rotations.shape
    sums = (rotations.transpose(0, 2, 1, 3).reshape(k * d, n * d) @ shapes.rows).reshape(k, d, -1)
    if shapes.weights is None:
        return sums / n
    centroids = references @ shapes.weights.T / shapes.totals
    means = (sums + centroids @ shapes.weights) / shapes.weights.sum(axis=0)
    return np.asarray(means - means.mean(axis=2, keepdims=True))
