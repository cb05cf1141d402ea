"""LPS and RAS, the two anatomical systems: they differ in the sign of x and y."""

from __future__ import annotations

import numpy as np

from defgpa._arrays import Array

SPACES = ("LPS", "RAS")


def in_space(points: Array, own: str | None, wanted: str | None) -> Array:
    """Points (…, d) of one system in another; as they are where one is not known, or in 2-D.

    >>> in_space(np.array([[1.0, 2.0, 3.0]]), "LPS", "RAS")
    array([[-1., -2.,  3.]])
    """
    if own is None or wanted is None or own == wanted or points.shape[-1] != 3:
        return points
    return points * np.array([-1.0, -1.0, 1.0])
