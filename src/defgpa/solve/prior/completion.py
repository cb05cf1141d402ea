r"""A first guess at what was not seen, by similarities between pairs of shapes.

For every pair the similarity (O(d): reflections allowed) that takes shape k onto shape i on
the landmarks both see; a landmark that shape i does not see is put at the average of where the
shapes that do see it say it is,

    D̂_i[j] = Σ_k γ_kj (s R D_k[j] + t) / Σ_k γ_kj.

A pair with too few common landmarks, or collinear ones, says nothing; a landmark left without an
estimate is reached through shapes completed before. Beyond ``PAIRS_UP_TO`` shapes the n² pairs are
replaced by 2n: all shapes are averaged once in the frame of one of them, and that average is
carried to the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array, Mask, transposed
from defgpa._threads import blocks, in_blocks
from defgpa.frames import Frames
from defgpa.polar import nearest_orthogonal

PAIRS_UP_TO = 128  # shapes: 16,384 pairs
SHAPES_AT_A_TIME = 512  # so that what they become stays in the cache
_COLLINEAR = 1e-7  # about the second singular value of a cross-covariance over the first


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Sums over the common landmarks of pairs (i, k); those of parts of the landmarks add up."""

    common: Array  # (i, k): how many
    source_sum: Array  # (i, k, d)
    target_sum: Array  # (i, k, d)
    source_square: Array  # (i, k)
    cross: Array  # (i, k, d, d): Σ x_k x_iᵀ

    def __add__(self, other: PairMoments) -> PairMoments:
        return PairMoments(
            self.common + other.common,
            self.source_sum + other.source_sum,
            self.target_sum + other.target_sum,
            self.source_square + other.source_square,
            self.cross + other.cross,
        )


@dataclass(frozen=True, eq=False)
class Similarities:
    """Maps x ↦ x @ linear + offset for pairs (i, k): shape k onto shape i."""

    linear: Array  # (i, k, d, d)
    offset: Array  # (i, k, d)
    trusted: Mask  # (i, k)


def completed(frames: Frames) -> Array:
    """(n, m, d): the shapes about the centroids of what they see, every hidden landmark estimated.

    NaN where none can be.
    """
    guess, known = frames.centred, frames.visible
    while not known.all():
        estimate = (_all_pairs if len(guess) <= PAIRS_UP_TO else _through_one_shape)(guess, known)
        reached = known | ~np.isnan(estimate[..., 0])
        guess = _with_holes_from(estimate, guess, known, reached)
        if np.array_equal(reached, known):
            return np.where(known[..., None], guess, np.nan)
        known = reached
    return guess


def _with_holes_from(estimate: Array, guess: Array, known: Mask, reached: Mask) -> Array:
    """The guess with new estimates where nothing was known, and zero where nothing is still."""
    np.copyto(estimate, guess, where=known[..., None])
    if not reached.all():
        estimate[~reached] = 0.0
    return estimate


def _all_pairs(shapes: Array, known: Mask) -> Array:
    """Every shape estimated from every other."""
    return averages(similarities(pair_moments(shapes, known, shapes, known)), shapes, known)


def _through_one_shape(shapes: Array, known: Mask) -> Array:
    """The average in the frame of the most complete shape, carried to every other."""
    first = int(np.argmax(known.sum(axis=1)))
    seed, seed_known = shapes[first][None], known[first][None]
    parts = blocks(len(shapes), SHAPES_AT_A_TIME)

    def share(part: slice) -> tuple[Array, Array]:
        own = similarities(pair_moments(seed, seed_known, shapes[part], known[part]))
        return sums(own, shapes[part], known[part])

    totals, counts = zip(*in_blocks(share, parts), strict=True)
    average = _mean(np.sum(totals, axis=0), np.sum(counts, axis=0))
    reached = ~np.isnan(average[..., 0])
    template = np.where(reached[..., None], average, 0.0)
    carried = np.empty_like(shapes)

    def carry(part: slice) -> None:
        back = similarities(pair_moments(shapes[part], known[part], template, reached))
        carried[part] = averages(back, template, reached)

    in_blocks(carry, parts)
    return carried


def pair_moments(targets: Array, seen: Mask, sources: Array, known: Mask) -> PairMoments:
    """Of every source (k, m, d) and target (i, m, d), centred, hidden points zero."""
    (i, _, d), k = targets.shape, len(sources)
    v, w = seen.astype(np.float64), known.astype(np.float64)
    x, y = _rows(sources), _rows(targets)
    return PairMoments(
        v @ w.T,
        (v @ x.T).reshape(i, k, d),
        (y @ w.T).reshape(i, d, k).transpose(0, 2, 1),
        v @ (x * x).reshape(k, d, -1).sum(axis=1).T,
        (y @ x.T).reshape(i, d, k, d).transpose(0, 2, 3, 1),
    )


def _rows(shapes: Array) -> Array:
    """(n · d, m): one coordinate of one shape a row, so that sums over landmarks are products."""
    return np.ascontiguousarray(transposed(shapes)).reshape(-1, shapes.shape[1])


def similarities(moments: PairMoments) -> Similarities:
    """The similarity of every source onto every target, and whether it can be trusted."""
    d = moments.source_sum.shape[-1]
    common = np.maximum(moments.common, 1.0)
    source_mean = moments.source_sum / common[..., None]
    target_mean = moments.target_sum / common[..., None]
    means = source_mean[..., :, None] * target_mean[..., None, :]
    best = nearest_orthogonal(moments.cross - common[..., None, None] * means)
    spread = moments.source_square - common * (source_mean * source_mean).sum(axis=-1)
    trusted = (moments.common > d) & (best.breadth > _COLLINEAR) & (spread > 0)
    linear = (best.total / np.where(trusted, spread, 1.0))[..., None, None] * best.rotation
    offset = target_mean - (source_mean[..., None, :] @ linear)[..., 0, :]
    return Similarities(linear, offset, trusted)


def averages(pairs: Similarities, sources: Array, known: Mask) -> Array:
    """(i, m, d): the mean over the trusted sources that see a landmark; NaN where there is none."""
    return _mean(*sums(pairs, sources, known))


def sums(pairs: Similarities, sources: Array, known: Mask) -> tuple[Array, Array]:
    """(i, d, m) sum over the trusted sources that see a landmark, and (i, m) how many do."""
    trust = pairs.trusted.astype(np.float64)
    linear, offset = pairs.linear * trust[..., None, None], pairs.offset * trust[..., None]
    (i, k), d = trust.shape, sources.shape[-1]
    w = known.astype(np.float64)
    count = trust @ w  # (i, m)
    total = linear.transpose(0, 3, 1, 2).reshape(i * d, k * d) @ _rows(sources)
    # the translation is masked like the points: a shape that does not see a landmark has no say
    total += offset.transpose(0, 2, 1).reshape(i * d, k) @ w
    return total.reshape(i, d, -1), count


def _mean(total: Array, count: Array) -> Array:
    """(i, m, d): NaN where nothing was counted."""
    return transposed(total / np.where(count > 0.0, count, np.nan)[:, None, :])
