r"""The covariance of the reference (Algorithm 1) of many folds at once.

Only shapes with holes need more than their own singular values: the similarity of every shape k
onto shape i, on the landmarks both see. It depends on sums over those landmarks, and all of the
sums are entries of one small matrix per pair,

    M_ik = Σ_j [x_kj, γ_kj, ‖x_kj‖²]ᵀ [x_ij, γ_ij],

with x zero where not seen. A fold subtracts its own landmarks from it, and the completions of
all folds follow.
"""

from __future__ import annotations

import numpy as np

from defgpa._arrays import Array, Index, Mask
from defgpa.solve.completion import PAIRS_UP_TO, completed
from defgpa.solve.covariance import common_eigenvalues
from defgpa.warps._frames import Frames

_COLLINEAR = 1e-7  # as in the completion of one set of shapes


def fold_eigenvalues(
    points: Array, visible: Mask, folds: Index, training: Mask, extents: Array
) -> Array:
    """(g, d): Λ of every fold (g, N); NaN where some landmark cannot be estimated.

    ``points`` (n, m, d) are finite, ``visible`` (n, m) marks those that count, ``training``
    (g, m) what each fold keeps, ``extents`` (g, n, d) are the singular values of what is seen.
    """
    holes = ~visible.all(axis=1, where=training.any(axis=0))
    extents = extents.copy()
    if holes.any():
        complete = _by_pairs if len(points) <= PAIRS_UP_TO else _one_by_one
        extents[:, holes] = complete(points, visible, folds, training, holes)
    unknown = np.full(points.shape[2], np.nan)
    sure = np.isfinite(extents).all(axis=(1, 2))
    return np.stack([common_eigenvalues(e) if s else unknown for e, s in zip(extents, sure)])


def _by_pairs(
    points: Array, visible: Mask, folds: Index, training: Mask, holes: Mask
) -> Array:
    """(g, h, d): the singular values of the completed shapes, by pairs of shapes."""
    d = points.shape[2]
    seen = visible.astype(np.float64)
    centre = np.einsum("km,kmd->kd", seen, points) / seen.sum(axis=1)[:, None]
    x = np.where(visible[..., None], points - centre[:, None], 0.0)
    source = np.concatenate([x, seen[..., None], (x**2).sum(axis=-1, keepdims=True)], axis=-1)
    target = source[holes, :, : d + 1]
    sums = np.einsum("kma,imb->ikab", source, target, optimize=True)
    left = np.einsum("kgra,igrb->gikab", source[:, folds], target[:, folds], optimize=True)
    maps, trust = _similarities(sums - left)
    estimate = _averages(maps, trust, source[..., : d + 1])
    whole = np.where(visible[holes][..., None], x[holes], estimate)
    return _extents(whole, training)


def _similarities(sums: Array) -> tuple[Array, Array]:
    """(g, i, k, d + 1, d) maps [x 1] ↦ s x R + t of shape k onto shape i, and (g, i, k) trust."""
    d = sums.shape[-1] - 1
    count = np.maximum(sums[..., d, d], 1.0)[..., None]
    source_mean, target_mean = sums[..., :d, d] / count, sums[..., d, :d] / count
    cross = sums[..., :d, :d] - sums[..., :d, d, None] * target_mean[..., None, :]
    spread = sums[..., d + 1, d] - (sums[..., :d, d] * source_mean).sum(axis=-1)
    left, values, right = np.linalg.svd(cross)
    trusted = (sums[..., d, d] > d) & (values[..., 1] > _COLLINEAR * values[..., 0]) & (spread > 0)
    scale = values.sum(axis=-1) / np.where(trusted, spread, 1.0)
    maps = np.empty((*cross.shape[:-2], d + 1, d))
    maps[..., :d, :] = scale[..., None, None] * (left @ right)
    maps[..., d, :] = target_mean - np.einsum("...a,...ab->...b", source_mean, maps[..., :d, :])
    return maps, trusted.astype(np.float64)


def _averages(maps: Array, trust: Array, source: Array) -> Array:
    """(g, i, m, d): the mean of the trusted shapes that see a landmark; NaN where there is none."""
    g, i, k, _, d = maps.shape
    rows = np.moveaxis(source, 1, 0).reshape(source.shape[1], -1)  # (m, k (d + 1))
    total = rows @ (maps * trust[..., None, None]).reshape(g, i, -1, d)
    count = trust @ source[..., d]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(count[..., None] > 0, total / count[..., None], np.nan))


def _extents(whole: Array, training: Mask) -> Array:
    """(g, h, d): singular values of shapes (g, h, m, d) on the landmarks of each fold."""
    g, h, m, d = whole.shape
    kept = np.repeat(training, h, axis=0)
    stack = whole.reshape(g * h, m, d)
    unknown = np.isnan(stack[..., 0]) & kept
    stack = np.where(kept[..., None] & ~unknown[..., None], stack, 0.0)
    extents = Frames(stack, kept).extents
    extents[unknown.any(axis=1)] = np.nan
    return extents.reshape(g, h, d)


def _one_by_one(
    points: Array, visible: Mask, folds: Index, training: Mask, holes: Mask
) -> Array:
    """The same where pairs would be too many: fold by fold, the way of a single fit."""
    result = []
    for kept in training:
        whole = completed(points[:, kept], visible[:, kept])[holes]
        result.append(_extents(whole[None], np.ones((1, int(kept.sum())), dtype=bool))[0])
    return np.stack(result)
