r"""The covariance of the reference (Algorithm 1) of many folds at once.

Only shapes with holes need more than their own singular values: similarities of all shapes onto
them, on the landmarks both see. Those depend on sums over landmarks, entries of one small matrix
per pair,

    M_ik = Σ_j [x_kj, γ_kj, ‖x_kj‖²]ᵀ [x_ij, γ_ij],

with x zero where not seen. A fold subtracts its own landmarks from the sums over all.
"""

from __future__ import annotations

import numpy as np

from defgpa._arrays import Array, Index, Mask, transposed
from defgpa.frames import Frames
from defgpa.solve.prior.completion import (
    PAIRS_UP_TO,
    PairMoments,
    averages,
    completed,
    similarities,
)
from defgpa.solve.prior.covariance import common_eigenvalues


def fold_eigenvalues(
    points: Array, visible: Mask, folds: Index, training: Mask, extents: Array
) -> Array:
    """(g, d): Λ of every fold (g, N); NaN where some landmark cannot be estimated.

    ``points`` (n, m, d) are finite, ``visible`` (n, m) marks those that count, ``training``
    (g, m) what each fold keeps, ``extents`` (g, n, d) are the singular values of what is seen.
    """
    holes = np.asarray((~visible & training.any(axis=0)).any(axis=1))
    if holes.any():
        way = _completed_by_pairs if len(points) <= PAIRS_UP_TO else _completed_one_by_one
        extents = extents.copy()
        extents[:, holes] = _extents(way(points, visible, folds, training, holes), training)
    eigenvalues = np.full((len(folds), points.shape[2]), np.nan)
    known = np.isfinite(extents[..., 0]).all(axis=1)
    eigenvalues[known] = common_eigenvalues(extents[known])
    return eigenvalues


def _completed_by_pairs(
    points: Array, visible: Mask, folds: Index, training: Mask, holes: Mask
) -> Array:
    """(g, h, m, d): the shapes with holes, filled on the landmarks of each fold where possible."""
    seen = visible.astype(np.float64)
    centre = np.einsum("km,kmd->kd", seen, points) / seen.sum(axis=1)[:, None]
    x = np.where(visible[..., None], points - centre[:, None], 0.0)
    maps = similarities(_fold_moments(x, seen, folds, holes))
    estimate = averages(maps, x, visible).reshape(len(folds), -1, *x.shape[1:])
    return np.where(visible[holes][..., None], x[holes], estimate)


def _fold_moments(x: Array, seen: Array, folds: Index, holes: Mask) -> PairMoments:
    """The moments of all pairs (fold and shape with holes, shape), the fold left out."""
    n, m, d = x.shape
    source = np.concatenate([x, seen[..., None], (x**2).sum(axis=-1, keepdims=True)], axis=-1)
    rows = np.moveaxis(source, 1, 0)  # (m, k, d + 2)
    columns = rows[:, holes, : d + 1].reshape(m, -1)
    rows = rows.reshape(m, -1)
    sums = rows.T @ columns - transposed(rows[folds]) @ columns[folds]
    # (g, k, a, i, b) to (g i, k, a, b)
    sums = sums.reshape(len(folds), n, d + 2, -1, d + 1)
    sums = np.moveaxis(sums, 3, 1).reshape(-1, n, d + 2, d + 1)
    return PairMoments(
        common=sums[..., d, d],
        source_sum=sums[..., :d, d],
        target_sum=sums[..., d, :d],
        source_square=sums[..., d + 1, d],
        cross=sums[..., :d, :d],
    )


def _completed_one_by_one(
    points: Array, visible: Mask, folds: Index, training: Mask, holes: Mask
) -> Array:
    """The same where pairs would be too many: fold by fold, the way of a single fit."""
    whole = np.zeros((len(folds), int(holes.sum()), *points.shape[1:]))
    for own, kept in zip(whole, training, strict=True):
        own[:, kept] = completed(Frames.of(points[:, kept], visible[:, kept]))[holes]
    return whole


def _extents(whole: Array, training: Mask) -> Array:
    """(g, h, d): singular values of shapes (g, h, m, d) on the landmarks of each fold."""
    g, h, m, d = whole.shape
    kept = np.repeat(training, h, axis=0)
    stack = whole.reshape(g * h, m, d)
    unknown = np.isnan(stack[..., 0])
    extents = Frames(np.where(unknown[..., None], 0.0, stack), kept).extents
    extents[(unknown & kept).any(axis=1)] = np.nan
    return extents.reshape(g, h, d)
