"""Deformations with an exact inverse: smooth, one-to-one, not affine.

Every deformation here has a closed-form inverse and a Jacobian determinant that keeps its
sign, and chains of them keep both properties. A shear slides points along one direction by a
wave of the coordinate across it; a bend rolls the space up around an axis; growth lengthens
everything past a line; an affine map does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from defgpa.arrays import Array

PointMap = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Deformation:
    """A map of the plane or of space that knows its exact inverse.

    Parameters
    ----------
    forward, backward : callables (p, d) -> (p, d)
        Inverse to each other.

    Examples
    --------
    >>> import numpy as np
    >>> slide = make_shear(along=np.array([0.0, 0.5]), across=np.array([2.0, 0.0]), phase=0.3)
    >>> points = np.array([[0.2, 0.4], [1.0, -0.3]])
    >>> bool(np.allclose(slide.inverse()(slide(points)), points))
    True
    """

    forward: PointMap
    backward: PointMap

    def __call__(self, points: Array) -> Array:
        return self.forward(points)

    def inverse(self) -> Deformation:
        """Return the exact inverse."""
        return Deformation(self.backward, self.forward)


def chain(*steps: Deformation) -> Deformation:
    """Compose deformations, the first one first."""
    return Deformation(
        partial(_apply_all, tuple(step.forward for step in steps)),
        partial(_apply_all, tuple(step.backward for step in reversed(steps))),
    )


def make_affine(linear: Array, shift: Array) -> Deformation:
    """Make the map x ↦ A x + t, with A (d, d) invertible."""
    inverse = np.asarray(np.linalg.inv(linear), dtype=np.float64)
    return Deformation(
        partial(_apply_affine, linear, shift), partial(_invert_affine, inverse, shift)
    )


def make_shear(along: Array, across: Array, phase: float) -> Deformation:
    """Make x ↦ x + sin(x·across + phase) along, with along ⟂ across: its Jacobian is 1."""
    return Deformation(
        partial(_apply_shear, along, across, phase), partial(_apply_shear, -along, across, phase)
    )


def make_bend(curvature: float, along: Array, towards: Array) -> Deformation:
    """Make the map that rolls the line through 0 along ``along`` onto a circle of this curvature.

    Lengths on that line are kept, and lines across it stay straight; ``along`` and ``towards``
    (the side the circle's centre is on) are orthonormal. One-to-one where, with κ the curvature,
    κ x·towards < 1 and |κ x·along| < π.
    """
    plane = np.stack([along, towards])
    return Deformation(
        partial(_apply_bend, curvature, plane), partial(_invert_bend, curvature, plane)
    )


def make_growth(rate: float, along: Array, past: float, softness: float) -> Deformation:
    """Make the map that stretches lengths along a unit vector by 1 + rate, past x·along = ``past``.

    The change sets in over a width ``softness``; ``rate`` > −1, and below 0 it is shrinkage.
    """
    return Deformation(
        partial(_apply_growth, rate, along, past, softness),
        partial(_invert_growth, rate, along, past, softness),
    )


def _apply_all(maps: tuple[PointMap, ...], points: Array) -> Array:
    for deformation_map in maps:
        points = deformation_map(points)
    return points


def _apply_affine(linear: Array, shift: Array, points: Array) -> Array:
    return points @ linear.T + shift


def _invert_affine(inverse: Array, shift: Array, points: Array) -> Array:
    return (points - shift) @ inverse.T


def _apply_shear(along: Array, across: Array, phase: float, points: Array) -> Array:
    return points + np.multiply.outer(np.sin(points @ across + phase), along)


def _apply_bend(curvature: float, plane: Array, points: Array) -> Array:
    """Bend points: (u, v) ↦ ((1/κ − v) sin κu, 1/κ − (1/κ − v) cos κu), also for κ = 0."""
    u, v = plane @ points.T
    angle = curvature * u
    bent_u = u * np.sinc(angle / np.pi) - v * np.sin(angle)
    bent_v = 0.5 * angle * u * np.sinc(0.5 * angle / np.pi) ** 2 + v * np.cos(angle)
    return points + np.stack([bent_u - u, bent_v - v], axis=1) @ plane


def _invert_bend(curvature: float, plane: Array, points: Array) -> Array:
    """Undo a bend: u = atan2(κu', 1 − κv')/κ, v = (1 − ϱ)/κ, ϱ/κ the distance from its centre."""
    if curvature == 0.0:
        return points.copy()
    u, v = plane @ points.T
    radius = np.hypot(curvature * u, 1.0 - curvature * v)
    flat_u = np.arctan2(curvature * u, 1.0 - curvature * v) / curvature
    flat_v = (2.0 * v - curvature * (u**2 + v**2)) / (1.0 + radius)
    return points + np.stack([flat_u - u, flat_v - v], axis=1) @ plane


def _apply_growth(rate: float, along: Array, past: float, softness: float, points: Array) -> Array:
    """Grow points past a line, v ↦ v + ½a (v + √(v² + s²)): slope 1 before it, 1 + a after."""
    v = points @ along - past
    return points + np.multiply.outer(0.5 * rate * (v + np.hypot(v, softness)), along)


def _invert_growth(rate: float, along: Array, past: float, softness: float, points: Array) -> Array:
    """Invert growth by the root of the quadratic that its equation becomes once squared."""
    w = points @ along - past
    root = np.sqrt(w**2 + (1.0 + rate) * softness**2)
    v = ((1.0 + 0.5 * rate) * w - 0.5 * rate * root) / (1.0 + rate)
    return points + np.multiply.outer(v - w, along)
