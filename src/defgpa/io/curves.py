"""Equally spaced points along a digitised curve, however many it was digitised with."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from defgpa._arrays import Array
from defgpa.errors import ShapeError


def resample_curve(curve: ArrayLike, count: int, closed: bool = False) -> Array:
    """Place points at equal arc lengths on the spline through a curve.

    Parameters
    ----------
    curve : array (p, d)
        Points along the curve in their order; rows of NaN are passed over.
    count : int
        How many points to place.
    closed : bool
        Whether the curve returns to its first point, which is then placed once. The ends of an
        open curve are kept.

    Returns
    -------
    array (count, d)

    Examples
    --------
    >>> import numpy as np
    >>> turns = np.sort(np.random.default_rng(0).uniform(0, np.pi, 40))
    >>> turns[[0, -1]] = 0, np.pi
    >>> half = resample_curve(np.column_stack([np.cos(turns), np.sin(turns)]), 5)
    >>> np.degrees(np.arctan2(half[:, 1], half[:, 0])).round(1) + 0.0
    array([  0.,  45.,  90., 135., 180.])
    """
    if closed:
        points = np.asarray(curve, dtype=np.float64)
        return resample_curve(np.vstack([points, points[:1]]), count + 1)[:-1]
    points = np.asarray(curve, dtype=np.float64)
    points = points[~np.isnan(points[:, 0])]
    chords = np.linalg.norm(np.diff(points, axis=0), axis=1)
    points = points[np.concatenate([[True], chords > 0])]
    if len(points) < 2 or count < 2:
        raise ShapeError(
            f"A curve is resampled with at least 2 points through at least 2; got {count} through "
            f"{len(points)}."
        )
    knots = np.concatenate([[0.0], np.cumsum(chords[chords > 0])])
    spline = CubicSpline(knots, points)
    fine = np.concatenate(  # 64 samples of the spline between two points, to measure its length
        [np.linspace(a, b, 64, endpoint=False) for a, b in pairwise(knots)] + [knots[-1:]]
    )
    steps = np.linalg.norm(np.diff(spline(fine), axis=0), axis=1)
    length = np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(spline(np.interp(np.linspace(0.0, length[-1], count), length, fine)))
