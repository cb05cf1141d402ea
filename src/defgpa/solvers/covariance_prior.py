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

The shapes come in parts (b, p, d), with NaN for what is not visible: blocks of landmarks of all
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

_MAX_PAIRED = 128  # shapes: 16,384 pairs


def covariance_prior(
    geometry: Geometry, names: Sequence[str], paired: int = _MAX_PAIRED, at_a_time: int = 512
) -> Array:
    """Estimate Λ (d,), the eigenvalues of the reference covariance, largest first.

    Up to ``paired`` shapes complete each other in pairs; more of them, ``at_a_time`` so that what
    they become stays in the cache, through one.
    """
    if geometry.visible.all():
        return compute_prior_of_complete(geometry)
    points = np.where(geometry.visible[..., None], geometry.points, np.nan)
    groups = split_range(len(points), at_a_time)
    return estimate_prior(
        lambda: LocalParts([points]),
        lambda: LocalParts([points[group] for group in groups]),
        names,
        geometry.mean_weights,
        paired,
    )


def compute_prior_of_complete(geometry: Geometry) -> Array:
    """Compute Λ (d,) of complete shapes; landmark weights count in their extents, too."""
    shares = geometry.mean_weights
    return compute_common_eigenvalues(geometry.extents / np.sqrt(shares)[:, np.newaxis], shares)


def estimate_prior(
    landmark_blocks: Callable[[], Parts],
    groups: Callable[[], Parts],
    names: Sequence[str],
    shares: Array,
    paired: int = _MAX_PAIRED,
) -> Array:
    """Estimate Λ (d,) of shapes that come in blocks of landmarks, or in groups of shapes.

    Shapes count by their mean landmark weights ``shares`` (n,); missing landmarks are completed
    from the others as they were measured, whatever the weight of each, and of many shapes equally.
    """
    if len(names) <= paired:
        parts = complete_by_pairs(landmark_blocks(), shares)
        extents = _compute_extents(sum(parts.results(_compute_scatter, _compute_centroids(parts))))
    else:
        parts = complete_through_one(groups())
        extents = _compute_extents(np.concatenate(parts.results(_compute_scatter)))
    incomplete = np.flatnonzero(np.isnan(extents).any(axis=1))
    if len(incomplete):
        raise DegenerateShapeError(
            f"Shape {format_names(names[int(i)] for i in incomplete)} shares only collinear or "
            "coincident landmarks with the others, so its missing landmarks cannot be estimated. "
            "Drop it, or state the proportions of the reference yourself: DefGPA(warp, "
            "proportions=[...])."
        )
    return compute_common_eigenvalues(extents, shares)


def compute_common_eigenvalues(extents: Array, shares: Array) -> Array:
    """Compute Λ from the singular values (…, n, d) of the shapes, largest first.

    ``shares`` (n,) says how much each shape counts.
    """
    lengths = np.linalg.norm(extents, axis=-1)
    directions = extents / lengths[..., None]
    _, vectors = np.linalg.eigh(directions.mT @ (shares[:, None] * directions))
    leading = np.abs(vectors[..., -1])  # all entries of the matrix are ≥ 0, so the vector is too
    mean_length = (shares * lengths).sum(axis=-1, keepdims=True) / shares.sum()
    return np.asarray((mean_length * leading) ** 2)


class Parts(Protocol):
    """Parts of shapes that can be mapped over, here or elsewhere."""

    def map(self, function: Callable[..., Array], *shared: Any) -> Self:
        """Apply a function to each part, and return the parts it makes."""
        ...

    def results(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Apply a function to each part, and return the results."""
        ...


@dataclass(frozen=True, eq=False)
class LocalParts:
    """Parts in the memory of this machine."""

    parts: Sequence[Array]

    def map(self, function: Callable[..., Array], *shared: Any) -> LocalParts:
        """Apply a function to each part, and return the parts it makes."""
        return LocalParts(self.results(function, *shared))

    def results(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Apply a function to each part, and return the results."""
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
    trusted: Mask | Array  # (i, k): whether, or how much shape k counts


def complete_by_pairs(blocks: Parts, shares: Array | None = None) -> Parts:
    """Estimate every missing landmark from all other shapes, which count by their ``shares`` (n,).

    NaN where none can be.
    """

    def fill(parts: Parts) -> Parts:
        centre = _compute_centroids(parts)
        moments = zip(*parts.results(_compute_moments_among, centre), strict=True)
        maps = fit_pair_similarities(PairMoments(*(np.sum(terms, axis=0) for terms in moments)))
        if shares is not None:
            maps = maps._replace(trusted=maps.trusted * shares)
        return parts.map(_fill_by_pairs, centre, maps)

    return _fill_repeatedly(fill, blocks)


def complete_through_one(groups: Parts) -> Parts:
    """Estimate every missing landmark from the average of the shapes.

    That is made in the frame of the most complete of them; NaN where nothing can be estimated.
    """

    def fill(parts: Parts) -> Parts:
        seed = max(parts.results(_find_most_complete), key=lambda pair: pair[0])[1]
        totals, counts = zip(*parts.results(_sum_landmarks, seed), strict=True)
        return parts.map(_fill_from, _divide_sums(np.sum(totals, axis=0), np.sum(counts, axis=0)))

    return _fill_repeatedly(fill, groups)


def _fill_repeatedly(fill: Callable[[Parts], Parts], parts: Parts) -> Parts:
    """Fill missing landmarks again, as long as some are left and some are estimated."""
    before, holes = np.inf, sum(parts.results(_count_missing))
    while 0 < holes < before:
        parts = fill(parts)
        before, holes = holes, sum(parts.results(_count_missing))
    return parts


def _compute_extents(scatter: Array) -> Array:
    """Compute the singular values (n, d) of shapes from their scatter matrices; NaN for NaN."""
    lost = np.asarray(np.isnan(scatter).any(axis=(1, 2)))
    values = np.linalg.eigvalsh(np.where(lost[:, None, None], 0.0, scatter))[:, ::-1]
    values[values <= 1e-14 * values[:, :1]] = 0.0  # a scatter matrix knows no more digits
    values[lost] = np.nan
    return np.sqrt(values)


def _count_missing(part: Array) -> int:
    """Count the landmarks of a part that are missing."""
    return int(np.isnan(part[..., 0]).sum())


def _compute_centroids(blocks: Parts) -> Array:
    """Compute the centroids (n, d) of the visible landmarks of each shape."""
    totals, counts = zip(*blocks.results(_sum_points), strict=True)
    return np.asarray(sum(totals) / np.maximum(sum(counts), 1)[:, None])


def _sum_points(block: Array) -> tuple[Array, Index]:
    return np.nansum(block, axis=1), (~np.isnan(block[..., 0])).sum(axis=1)


def _center_about(points: Array, centre: Array) -> tuple[Array, Mask]:
    """Return points (n, m, d) about a centre, zero where missing, and which are visible (n, m)."""
    visible = ~np.isnan(points[..., 0])
    return np.where(visible[..., None], points - centre[:, None, :], 0.0), visible


def _compute_moments_among(block: Array, centre: Array) -> PairMoments:
    shapes, visible = _center_about(block, centre)
    return compute_pair_moments(shapes, visible, shapes, visible)


def _fill_by_pairs(block: Array, centre: Array, maps: Similarities) -> Array:
    shapes, visible = _center_about(block, centre)
    guess = _divide_sums(*sum_trusted(maps, shapes, visible)) + centre[:, None, :]
    return np.where(visible[..., None], block, guess)


def _compute_scatter(part: Array, centre: Array | None = None) -> Array:
    """Compute the scatter (b, d, d) about a centre, or about the mean of complete shapes."""
    centred = part - (part.mean(axis=1) if centre is None else centre)[:, None, :]
    return centred.mT @ centred


def _find_most_complete(group: Array) -> tuple[int, Array]:
    """Return the most complete shape (m, d) of a group, after the number of its landmarks."""
    counts = (~np.isnan(group[..., 0])).sum(axis=1)
    return int(counts.max()), group[int(counts.argmax())]


def _sum_landmarks(group: Array, seed: Array) -> tuple[Array, Array]:
    """Return the sum (d, m) and number (m,) of each landmark in the shapes, moved onto the seed."""
    shapes, visible = _center_about(group, np.nanmean(group, axis=1))
    target, target_visible = _center_about(seed[None], np.nanmean(seed, axis=0)[None])
    (total,), (count,) = sum_trusted(
        fit_pair_similarities(compute_pair_moments(target, target_visible, shapes, visible)),
        shapes,
        visible,
    )
    return total, count


def _fill_from(group: Array, template: Array) -> Array:
    """Fill missing landmarks of a group from a template (m, d), moved onto each of its shapes."""
    centre = np.nanmean(group, axis=1)
    shapes, visible = _center_about(group, centre)
    source, reached = _center_about(template[None], np.zeros((1, template.shape[1])))
    back = fit_pair_similarities(compute_pair_moments(shapes, visible, source, reached))
    guess = _divide_sums(*sum_trusted(back, source, reached)) + centre[:, None, :]
    return np.where(visible[..., None], group, guess)


def compute_pair_moments(
    targets: Array, target_visible: Mask, sources: Array, visible: Mask
) -> PairMoments:
    """Compute the moments of every source (k, m, d) and target (i, m, d), missing points zero."""
    (i, _, d), k = targets.shape, len(sources)
    v, w = target_visible.astype(np.float64), visible.astype(np.float64)
    x, y = _stack_coordinates(sources), _stack_coordinates(targets)
    return PairMoments(
        v @ w.T,
        (v @ x.T).reshape(i, k, d),
        (y @ w.T).reshape(i, d, k).transpose(0, 2, 1),
        v @ (x * x).reshape(k, d, -1).sum(axis=1).T,
        (y @ x.T).reshape(i, d, k, d).transpose(0, 2, 3, 1),
    )


def _stack_coordinates(shapes: Array) -> Array:
    """Stack the coordinates of shapes (n · d, m), so that sums over landmarks are products."""
    return np.ascontiguousarray(shapes.mT).reshape(-1, shapes.shape[1])


def fit_pair_similarities(moments: PairMoments) -> Similarities:
    """Fit the similarity of every source onto every target; say whether it can be trusted."""
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


def sum_trusted(pairs: Similarities, sources: Array, visible: Mask) -> tuple[Array, Array]:
    """Sum each landmark over the trusted sources that have it, (i, d, m), and count them (i, m)."""
    trust = pairs.trusted.astype(np.float64)
    linear, offset = pairs.linear * trust[..., None, None], pairs.offset * trust[..., None]
    (i, k), d = trust.shape, sources.shape[-1]
    w = visible.astype(np.float64)
    count = trust @ w  # (i, m)
    total = linear.transpose(0, 3, 1, 2).reshape(i * d, k * d) @ _stack_coordinates(sources)
    # the translation is masked like the points: a shape that does not see a landmark has no say
    total += offset.transpose(0, 2, 1).reshape(i * d, k) @ w
    return total.reshape(i, d, -1), count


def _divide_sums(total: Array, count: Array) -> Array:
    """Divide sums (…, d, m) by counts (…, m); return (…, m, d), NaN where nothing was counted."""
    return (total / np.where(count > 0.0, count, np.nan)[..., None, :]).mT
