"""Convert between LPS and RAS, anatomical coordinate systems that differ in the sign of x and y."""

from __future__ import annotations

import numpy as np

from defgpa.arrays import Array

_SIGNS = np.array([-1.0, -1.0, 1.0])


def convert_space(points: Array, declared: str | None, target: str | None) -> Array:
    """Convert points (…, d) between spaces; return them as they are where one is unknown.

    Examples
    --------
    >>> convert_space(np.array([[1.0, 2.0, 3.0]]), "LPS", "RAS").tolist()
    [[-1.0, -2.0, 3.0]]
    """
    if declared is None or target is None or declared == target or points.shape[-1] != 3:
        return points
    return points * _SIGNS


def express_missing_code(code: float, dim: int, space: str | None) -> Array:
    """Return the points (k, d) that mean missing when all coordinates are ``code`` in the file.

    A program that shows RAS and stores LPS writes (1000, 1000, -1000) for -1000.
    """
    plain = np.full((1, dim), float(code))
    if space is None or dim != 3:
        return plain
    return np.concatenate([plain, plain * _SIGNS])
