"""Gaps filled before statistics that need every landmark: the mean first, then what others say."""

from __future__ import annotations

import numpy as np

from defgpa._arrays import Array
from defgpa.procrustes import SIMILARITY, stacked
from defgpa.statistics.conditional import Dials, ShapeGaussian
from defgpa.statistics.tangent import rotated_onto_mean, unit_size

_ROUNDS_OF_MEAN = 20
_ROUNDS = 3
_FEWEST = 4  # specimens that statistics can be made of


def without_gaps(points: Array) -> Array:
    """Shapes (n, m, d), NaN where not seen, with estimates there; what is seen is untouched."""
    partial = np.flatnonzero(np.isnan(points[..., 0]).any(axis=1))
    whole = points if not len(partial) else _filled_with_mean(points)
    if len(points) <= _FEWEST:
        return whole
    for _ in range(_ROUNDS if len(partial) else 0):
        specimens = rotated_onto_mean(unit_size(whole))
        whole = whole.copy()
        for i in partial:
            others = ShapeGaussian(np.delete(specimens, i, axis=0), Dials())
            whole[i] = others.completed(points[i]).points
    return whole


def _filled_with_mean(points: Array) -> Array:
    """The mean over those that see a landmark, brought to every shape by a similarity."""
    seen = ~np.isnan(points[..., :1])
    fullest = points[int(seen.sum(axis=1).argmax())]
    mean = np.where(np.isnan(fullest), np.nanmean(fullest, axis=0), fullest)
    whole = points
    for _ in range(_ROUNDS_OF_MEAN):
        pose = stacked(points, mean, motions=SIMILARITY)
        whole = np.where(seen, points, pose.inverse()(np.broadcast_to(mean, points.shape)))
        mean = pose(whole).mean(axis=0)
    return whole
