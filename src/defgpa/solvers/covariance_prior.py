r"""How large, and in what proportions: the covariance of the reference, from the shapes.

The shape constraint SᵀS = Λ needs a Λ. Algorithm 1 of the paper takes it from rigidity: the
singular values √λ_i of each (completed, centred) shape, scaled to unit length, have a common
direction, the leading left singular vector of the d × n matrix of them; times their mean length.

What a shape does not see is first guessed by similarities between pairs of shapes. For every pair
the one (O(d): reflections allowed) that takes shape k onto shape i on the landmarks both see; a
landmark that shape i does not see is put at the average of where the shapes that do see it say,

    D̂_i[j] = Σ_k γ_kj (s R D_k[j] + t) / Σ_k γ_kj.

A pair with too few common landmarks, or collinear ones, says nothing; a landmark left without an
estimate is reached through shapes completed before. Of many shapes the n² pairs are
replaced by 2n: all shapes are averaged once in the frame of one of them, and that average is
carried to the others.

The shapes come in parts (b, p, d), with NaN for what is not known: blocks of landmarks of all
shapes, over which the moments of pairs add up, or groups of whole shapes. The parts may be here or
on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from defgpa.arrays import Array, Index, Mask
from defgpa.errors import DegenerateShapeError, format_names
from defgpa.geometry import Geometry
from defgpa.threads import map_blocks, split_range

_PAIRED = 128  # shapes: 16,384 pairs


def covariance_prior(
    geometry: Geometry, names: Sequence[str], paired: int = _PAIRED, at_a_time: int = 512
) -> Array:
    """(d,): Λ, the eigenvalues of the reference covariance, largest first.

    Up to ``paired`` shapes complete each other in pairs; more of them, ``at_a_time`` so that what
    they become stays in the cache, through one.
    """
    if geometry.is_complete:
        return common_eigenvalues(geometry.extents)
    points = np.where(geometry.visible[..., None], geometry.points, np.nan)
    parts = split_range(len(points), at_a_time)
    return prior_of_parts(
        lambda: LocalParts([points]),
        lambda: LocalParts([points[part] for part in parts]),
        names,
        paired,
    )


def prior_of_parts(
    landmark_blocks: Callable[[], Parts],
    groups: Callable[[], Parts],
    names: Sequence[str],
    paired: int = _PAIRED,
) -> Array:
    """(d,): Λ of shapes that come in blocks of landmarks, or in groups of whole shapes."""
    if len(names) <= paired:
        parts = completed_by_pairs(landmark_blocks())
        extents = _extents(sum(parts.results(_scatter, _centroids(parts))))
    else:
        parts = completed_through_one(groups())
        extents = _extents(np.concatenate(parts.results(_scatter)))
    stuck = np.flatnonzero(np.isnan(extents).any(axis=1))
    if len(stuck):
        raise DegenerateShapeError(
            f"Shape {format_names(names[int(i)] for i in stuck)} shares only collinear or "
            "coincident landmarks with the others, so its missing landmarks cannot be estimated. "
            "Drop it, or state the proportions of the reference yourself: DefGPA(warp, "
            "proportions=[...])."
        )
    return common_eigenvalues(extents)


def common_eigenvalues(extents: Array) -> Array:
    """Λ from the singular values (…, n, d) of the shapes, largest first; for stacks of sets too."""
    lengths = np.linalg.norm(extents, axis=-1)
    directions = extents / lengths[..., None]
    _, vectors = np.linalg.eigh(directions.mT @ directions)
    leading = np.abs(vectors[..., -1])  # all entries of the matrix are ≥ 0, so the vector is too
    return np.asarray((lengths.mean(axis=-1, keepdims=True) * leading) ** 2)


class Parts(Protocol):
    """Parts of shapes that can be mapped over, here or elsewhere."""

    def map(self, function: Callable[..., Array], *shared: Any) -> Self:
        """A function of each part, as parts again."""
        ...

    def results(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """What a function makes of each part."""
        ...


@dataclass(frozen=True, eq=False)
class LocalParts:
    """Parts in the memory of this machine."""

    parts: Sequence[Array]

    def map(self, function: Callable[..., Array], *shared: Any) -> LocalParts:
        """A function of each part, as parts again."""
        return LocalParts(self.results(function, *shared))

    def results(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """What a function makes of each part."""
        return map_blocks(lambda part: function(part, *shared), self.parts)


class PairMoments(NamedTuple):
    """Sums over the common landmarks of pairs (i, k); those of parts of the landmarks add up."""

    common: Array  # (i, k): how many
    source_sum: Array  # (i, k, d)
    target_sum: Array  # (i, k, d)
    source_square: Array  # (i, k)
    cross: Array  # (i, k, d, d): Σ x_k x_iᵀ


class Similarities(NamedTuple):
    """Maps x ↦ x @ linear + offset for pairs (i, k): shape k onto shape i."""

    linear: Array  # (i, k, d, d)
    offset: Array  # (i, k, d)
    trusted: Mask  # (i, k)


def completed_by_pairs(blocks: Parts) -> Parts:
    """Blocks of landmarks of all shapes with every hidden one estimated; NaN where none can be."""

    def filled(parts: Parts) -> Parts:
        centre = _centroids(parts)
        found = zip(*parts.results(_own_pair_moments, centre), strict=True)
        maps = similarities(PairMoments(*(np.sum(own, axis=0) for own in found)))
        return parts.map(_filled_by_pairs, centre, maps)

    return _while_it_helps(filled, blocks)


def completed_through_one(groups: Parts) -> Parts:
    """Groups of shapes with every hidden landmark taken from their average.

    That is made in the frame of the most complete of them; NaN where nothing can be estimated.
    """

    def filled(parts: Parts) -> Parts:
        seed = max(parts.results(_most_complete), key=lambda one: one[0])[1]
        totals, counts = zip(*parts.results(_share_of_average, seed), strict=True)
        return parts.map(_filled_from, _mean(np.sum(totals, axis=0), np.sum(counts, axis=0)))

    return _while_it_helps(filled, groups)


def _while_it_helps(filled: Callable[[Parts], Parts], parts: Parts) -> Parts:
    """The parts, filled again as long as landmarks are left and some are found."""
    before, holes = np.inf, sum(parts.results(_n_holes))
    while 0 < holes < before:
        parts = filled(parts)
        before, holes = holes, sum(parts.results(_n_holes))
    return parts


def _extents(scatter: Array) -> Array:
    """(n, d): singular values of shapes, from their scatter matrices; NaN where one has holes."""
    lost = np.asarray(np.isnan(scatter).any(axis=(1, 2)))
    values = np.linalg.eigvalsh(np.where(lost[:, None, None], 0.0, scatter))[:, ::-1]
    values[values <= 1e-14 * values[:, :1]] = 0.0  # a scatter matrix knows no more digits
    values[lost] = np.nan
    return np.sqrt(values)


def _n_holes(part: Array) -> int:
    """How many landmarks of a part are not known."""
    return int(np.isnan(part[..., 0]).sum())


def _centroids(blocks: Parts) -> Array:
    """(n, d): of what is known of each shape."""
    totals, counts = zip(*blocks.results(_sums), strict=True)
    return np.asarray(sum(totals) / np.maximum(sum(counts), 1)[:, None])


def _sums(block: Array) -> tuple[Array, Index]:
    return np.nansum(block, axis=1), (~np.isnan(block[..., 0])).sum(axis=1)


def _about(points: Array, centre: Array) -> tuple[Array, Mask]:
    """The points about a centre, zero where not known, and where they are."""
    known = ~np.isnan(points[..., 0])
    return np.where(known[..., None], points - centre[:, None, :], 0.0), known


def _own_pair_moments(block: Array, centre: Array) -> PairMoments:
    shapes, known = _about(block, centre)
    return pair_moments(shapes, known, shapes, known)


def _filled_by_pairs(block: Array, centre: Array, maps: Similarities) -> Array:
    shapes, known = _about(block, centre)
    guess = _mean(*sums(maps, shapes, known)) + centre[:, None, :]
    return np.where(known[..., None], block, guess)


def _scatter(part: Array, centre: Array | None = None) -> Array:
    """(b, d, d): about a centre, or about the mean of whole shapes."""
    centred = part - (part.mean(axis=1) if centre is None else centre)[:, None, :]
    return centred.mT @ centred


def _most_complete(group: Array) -> tuple[int, Array]:
    """How many landmarks the most complete shape of a group has, and the shape."""
    seen = (~np.isnan(group[..., 0])).sum(axis=1)
    return int(seen.max()), group[int(seen.argmax())]


def _share_of_average(group: Array, seed: Array) -> tuple[Array, Array]:
    """(d, m) sum and (m,) count of where the shapes of a group put each landmark of the seed."""
    shapes, known = _about(group, np.nanmean(group, axis=1))
    target, seen = _about(seed[None], np.nanmean(seed, axis=0)[None])
    (total,), (count,) = sums(
        similarities(pair_moments(target, seen, shapes, known)), shapes, known
    )
    return total, count


def _filled_from(group: Array, template: Array) -> Array:
    """The holes of a group filled from a template (m, d), brought to each of its shapes."""
    centre = np.nanmean(group, axis=1)
    shapes, known = _about(group, centre)
    source, reached = _about(template[None], np.zeros((1, template.shape[1])))
    back = similarities(pair_moments(shapes, known, source, reached))
    guess = _mean(*sums(back, source, reached)) + centre[:, None, :]
    return np.where(known[..., None], group, guess)


def pair_moments(targets: Array, seen: Mask, sources: Array, known: Mask) -> PairMoments:
    """Moments of every source (k, m, d) and target (i, m, d), centred, hidden points zero."""
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
    return np.ascontiguousarray(shapes.mT).reshape(-1, shapes.shape[1])


def similarities(moments: PairMoments) -> Similarities:
    """The similarity of every source onto every target, and whether it can be trusted."""
    d = moments.source_sum.shape[-1]
    common = np.maximum(moments.common, 1.0)
    source_mean = moments.source_sum / common[..., None]
    target_mean = moments.target_sum / common[..., None]
    means = source_mean[..., :, None] * target_mean[..., None, :]
    left, values, right = np.linalg.svd(moments.cross - common[..., None, None] * means)
    spread = moments.source_square - common * (source_mean * source_mean).sum(axis=-1)
    # about the second singular value over the first: less, and the landmarks lie on a line
    trusted = (moments.common > d) & (values[..., 1] > 1e-7 * values[..., 0]) & (spread > 0)
    scale = values.sum(axis=-1) / np.where(trusted, spread, 1.0)
    linear = scale[..., None, None] * (left @ right)
    offset = target_mean - (source_mean[..., None, :] @ linear)[..., 0, :]
    return Similarities(linear, offset, trusted)


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
    """(…, m, d): of sums (…, d, m) of so many (…, m) landmarks; NaN where there was none."""
    return (total / np.where(count > 0.0, count, np.nan)[..., None, :]).mT
