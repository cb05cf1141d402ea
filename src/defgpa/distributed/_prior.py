"""The covariance prior on a cluster: Algorithm 1, with sums over blocks of landmarks.

The moments of all pairs of shapes add up over landmarks, so a worker that has one block of
landmarks of all shapes contributes its share, and the driver holds n² small matrices, no points.
Beyond ``PAIRS_UP_TO`` shapes the way leads through one shape, as on one machine.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np

from defgpa._arrays import Array, Mask
from defgpa.distributed import _work as work
from defgpa.distributed._cluster import Cluster
from defgpa.solve.prior.completion import (
    PAIRS_UP_TO,
    PairMoments,
    Similarities,
    averages,
    pair_moments,
    similarities,
    sums,
)


def completed_extents(
    cluster: Cluster, parts: list[Any], sizes: list[int], landmarks: list[slice]
) -> Array:
    """(n, d): singular values of the completed shapes; NaN for a shape that cannot be."""
    if sum(sizes) <= PAIRS_UP_TO:
        return _by_pairs(cluster, parts, landmarks)
    return _through_one_shape(cluster, parts)


def _by_pairs(cluster: Cluster, parts: list[Any], landmarks: list[slice]) -> Array:
    blocks = [cluster.submit(_landmark_block, rows, *parts) for rows in landmarks]
    while True:
        sums = cluster.results([cluster.submit(_sums, block) for block in blocks])
        holes = sum(int(missing) for _, _, missing in sums)
        total = sum(s for s, _, _ in sums)
        count = sum(c for _, c, _ in sums)
        centre = total / count[:, None]
        if holes == 0:
            break
        moments: PairMoments = reduce(
            add, cluster.results([cluster.submit(_moments, block, centre) for block in blocks])
        )
        maps = similarities(moments)
        filled = [cluster.submit(_filled, block, centre, maps) for block in blocks]
        after = cluster.results([cluster.submit(_sums, block) for block in filled])
        blocks = filled
        if sum(int(missing) for _, _, missing in after) == holes:
            return np.full((len(centre), centre.shape[1]), np.nan)
    scatter = sum(cluster.results([cluster.submit(_scatter, block, centre) for block in blocks]))
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(scatter)[:, ::-1], 0.0)))


def _through_one_shape(cluster: Cluster, parts: list[Any]) -> Array:
    guesses = parts
    while True:
        best = cluster.results([cluster.submit(_most_complete, part) for part in guesses])
        p = int(np.argmax([seen for seen, _ in best]))
        seed = cluster.results([cluster.submit(work.one_shape, guesses[p], best[p][1])])[0]
        shares = cluster.results([cluster.submit(_share_of_average, g, seed) for g in guesses])
        total, count = (sum(own) for own in zip(*shares, strict=True))
        with np.errstate(invalid="ignore", divide="ignore"):
            template = np.where(count[:, None] > 0, total / count[:, None], np.nan)
        filled = [cluster.submit(_carried, g, template) for g in guesses]
        holes = cluster.results([cluster.submit(_holes, g) for g in (*guesses, *filled)])
        before, after = sum(holes[: len(guesses)]), sum(holes[len(guesses) :])
        guesses = filled
        if after == 0:
            extents = cluster.results([cluster.submit(work.extents_of, g) for g in guesses])
            return np.concatenate([own for own, _, _ in extents])
        if after == before:
            return np.full((1, 2), np.nan)


def _landmark_block(landmarks: slice, *parts: Array) -> Array:
    return np.concatenate([part[:, landmarks] for part in parts])


def _sums(block: Array) -> tuple[Array, Array, int]:
    known = ~np.isnan(block[..., 0])
    return np.nansum(block, axis=1), known.sum(axis=1).astype(np.float64), int((~known).sum())


def _zeroed(block: Array, centre: Array) -> tuple[Array, Mask]:
    known = ~np.isnan(block[..., 0])
    return np.where(known[..., None], block - centre[:, None, :], 0.0), known


def _moments(block: Array, centre: Array) -> PairMoments:
    shapes, known = _zeroed(block, centre)
    return pair_moments(shapes, known, shapes, known)


def _filled(block: Array, centre: Array, maps: Similarities) -> Array:
    shapes, known = _zeroed(block, centre)
    guess = averages(maps, shapes, known) + centre[:, None, :]
    return np.where(known[..., None], block, guess)


def _scatter(block: Array, centre: Array) -> Array:
    centred = block - centre[:, None, :]
    return np.swapaxes(centred, -1, -2) @ centred


def _most_complete(part: Array) -> tuple[int, int]:
    seen = (~np.isnan(part[..., 0])).sum(axis=1)
    return int(seen.max()), int(seen.argmax())


def _share_of_average(part: Array, seed: Array) -> tuple[Array, Array]:
    """(m, d) sum and (m,) count of where the shapes of a part put each landmark of the seed."""
    shapes, known = _zeroed(part, np.nanmean(part, axis=1))
    target, seen = _zeroed(seed[None], np.nanmean(seed, axis=0)[None])
    maps = similarities(pair_moments(target, seen, shapes, known))
    (total,), (count,) = sums(maps, shapes, known)
    return total.T, count


def _carried(part: Array, template: Array) -> Array:
    """The holes of a part filled from the template, brought to each of its shapes."""
    centre = np.nanmean(part, axis=1)
    shapes, known = _zeroed(part, centre)
    reached = ~np.isnan(template[:, 0])
    source = np.where(reached[:, None], template, 0.0)[None]
    maps = similarities(pair_moments(shapes, known, source, reached[None]))
    guess = averages(maps, source, reached[None]) + centre[:, None, :]
    return np.where(known[..., None], part, guess)


def _holes(part: Array) -> int:
    return int(np.isnan(part[..., 0]).sum())
