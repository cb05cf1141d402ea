"""Eigenvectors made unambiguous: ties settled by the data, signs by the vectors themselves."""

from __future__ import annotations

import numpy as np

from defgpa._arrays import Array, Mask, transposed

TIE = 1e-9  # relative to n: eigenvalues closer than this are one
_SYMMETRIC = 1e-6  # relative: far above rounding, far below the asymmetry of real shapes


def settled_ties(axes: Array, values: Array, shapes: Array, visible: Mask) -> Array:
    """Axes of (nearly) equal cost, turned among themselves to the principal axes of the data.

    Any rotation of them costs the same; this one makes copies of one rigid shape come back in its
    own proportions. ``shapes`` (n, m, d) are centred and of unit size, hidden points zero; as each
    shape is A_i of the axes, Σ A_i A_iᵀ has those principal axes.
    """
    return turned_ties(axes, values, in_axes(axes, shapes, visible))


def turned_ties(axes: Array, values: Array, seen: Array) -> Array:
    """The same, given the A_i (n, d, d) of all shapes."""
    axes = axes.copy()
    start = 0
    for stop in range(1, len(values) + 1):
        if stop < len(values) and values[stop] - values[start] <= TIE * len(seen):
            continue
        if stop - start > 1:
            tied = seen[:, start:stop]
            _, turn = np.linalg.eigh(np.einsum("nad,nbd->ab", tied, tied))
            axes[:, start:stop] = axes[:, start:stop] @ turn[:, ::-1]
        start = stop
    return axes


def in_axes(axes: Array, shapes: Array, visible: Mask) -> Array:
    """(n, d, d): A_i, the regression of each shape on the axes over what it sees."""
    if visible.all():
        return axes.T @ shapes
    own = recentred(axes, visible)
    return np.linalg.pinv(transposed(own) @ own, hermitian=True) @ transposed(own) @ shapes


def recentred(axes: Array, visible: Mask) -> Array:
    """The axes about the centroid of what each shape sees, hidden ones zero: (…, m, d)."""
    if visible.all():
        return axes - axes.mean(axis=0)
    weights = visible.astype(np.float64)
    means = weights @ axes / weights.sum(axis=1)[:, None]
    return np.asarray((axes - means[:, None, :]) * weights[..., None])


def with_settled_signs(axes: Array) -> Array:
    """Each axis with its heavier tail on the positive side.

    A symmetric axis has none: then the first of its largest entries is positive.
    """
    cubes = axes * axes * axes  # ** 3 goes through a logarithm
    skew, size = cubes.sum(axis=0), np.abs(cubes).sum(axis=0)
    among_largest = np.abs(axes) >= (1.0 - _SYMMETRIC) * np.abs(axes).max(axis=0)
    largest = np.take_along_axis(axes, among_largest.argmax(axis=0)[None], axis=0)[0]
    sign = np.where(np.abs(skew) > _SYMMETRIC * size, np.sign(skew), np.sign(largest))
    return np.asarray(axes * np.where(sign == 0, 1.0, sign))
