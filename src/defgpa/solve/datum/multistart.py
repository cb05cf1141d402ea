r"""Other places for a rigid alignment to start from, where the usual one is in doubt.

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
from defgpa.procrustes import Motions
from defgpa.solve.datum.fit import CentredShapes
from defgpa.solve.datum.laplacian import solver

_MOST = 64  # poses
_NUMBERS = 400_000  # coordinates of all shapes, in all poses: larger sets have fewer minima
_MOTIONS = 16_000  # of all shapes, in all poses
_ROUNDS = (6, 24)  # of all poses, and of the few that are kept
_KEPT = 12
_RETURNED = 4


def other_starts(shapes: CentredShapes, motions: Motions) -> list[Array]:
    """A few first Z (n, d, d), the most promising first; none where there is too much to try."""
    n, m, d = shapes.shape
    count = min(_MOST, _NUMBERS // (n * m * d), _MOTIONS // n)
    if count < _RETURNED:
        return []
    # similarities start as motions of shapes of one size
    size = np.sqrt(shapes.spreads) if motions.scaling else np.ones(n)
    even = replace(
        shapes,
        rows=shapes.rows / np.repeat(size, d)[:, np.newaxis],
        spreads=shapes.spreads / size**2,
    )
    improve = _Improvement(even, motions)
    poses = improve(_first(even, motions, count), _ROUNDS[0])[:_KEPT]
    poses = improve(poses, _ROUNDS[1])[:_RETURNED]
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


class _Improvement:
    """Reference and motions by turns, for a stack of poses."""

    def __init__(self, shapes: CentredShapes, motions: Motions) -> None:
        self._shapes, self._motions = shapes, motions
        self._solve = solver(shapes, np.ones(shapes.shape[0]))

    def __call__(self, poses: Array, rounds: int) -> Array:
        """The poses after some rounds, the one that explains most first."""
        k, n, d, _ = poses.shape
        for _ in range(rounds):
            sums = poses.transpose(0, 3, 1, 2).reshape(k * d, n * d) @ self._shapes.rows
            references = self._solve(sums)
            explained = (sums * references).reshape(k, -1).sum(axis=1)
            poses = self._motions.nearest(_cross(self._shapes, references))[0]
        return poses[np.argsort(-explained, kind="stable")]
