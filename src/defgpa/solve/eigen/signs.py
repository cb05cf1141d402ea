"""Signs of eigenvectors, made unambiguous by the vectors themselves."""

from __future__ import annotations

import numpy as np

from defgpa._arrays import Array

_SYMMETRIC = 1e-6  # relative: far above rounding, far below the asymmetry of real shapes


def settled_signs(axes: Array) -> Array:
    """(…, k): the sign that puts the heavier tail of each axis (…, m, k) on the positive side.

    A symmetric axis has none: then the first of its largest entries is positive.
    """
    cubes = axes * axes * axes  # ** 3 goes through a logarithm
    skew, size = cubes.sum(axis=-2), np.abs(cubes).sum(axis=-2)
    among_largest = np.abs(axes) >= (1.0 - _SYMMETRIC) * np.abs(axes).max(axis=-2, keepdims=True)
    first = among_largest.argmax(axis=-2)[..., None, :]
    largest = np.take_along_axis(axes, first, axis=-2)[..., 0, :]
    sign = np.where(np.abs(skew) > _SYMMETRIC * size, np.sign(skew), np.sign(largest))
    return np.asarray(np.where(sign == 0, 1.0, sign))
