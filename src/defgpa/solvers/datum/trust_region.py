r"""Second-order descent: trust the quadratic model as far as it has kept its promises.

At a point with gradient g and curvature (Hessian) H, the step minimises
:math:`\langle g, s\rangle + \tfrac12 \langle s, Hs\rangle` within a radius, by preconditioned
conjugate gradients that stop at the border, or follow a direction of negative curvature to it
(Steihaug). A step is taken only if the cost falls, so the descent is monotone; near a minimum
it is Newton's method, and the gradient vanishes quadratically.

H is needed only as a product, and distances are measured by the preconditioner: a point knows
its own units.
"""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

import numpy as np

from defgpa._arrays import Array

_MOST_STEPS = 300
FLAT_GROUND = 1e-7  # a slope that rounding of the cost can hide


class Point(Protocol):
    """A place in the landscape of a cost."""

    @property
    def cost(self) -> float:
        """What is to be made small."""
        ...

    @property
    def gradient(self) -> Array:
        """The slope, an array of any shape."""
        ...

    @property
    def slope(self) -> float:
        """The norm of the gradient relative to its terms: 1 is steep, 0 is flat."""
        ...

    @property
    def cost_scale(self) -> float:
        """What the cost is a difference of: it is known to a few roundings of this."""
        ...

    @property
    def first_radius(self) -> float:
        """How far the quadratic model may be trusted at first."""
        ...

    def curved(self, step: Array) -> Array:
        """The Hessian times a step."""
        ...

    def preconditioned(self, slope: Array) -> Array:
        """An approximate, positive definite inverse of the Hessian times a slope."""
        ...

    def moved(self, step: Array) -> Self:
        """The place reached by a step."""
        ...


_P = TypeVar("_P", bound=Point)


def descend(point: _P) -> tuple[_P, int]:
    """The place where the relative gradient is below 1e-10, downhill, and the steps to it.

    Where rounding hides any further decrease before that, the descent ends too; the slope of the
    point it reached tells whether the ground is flat there.
    """
    tolerance = 1e-10
    if point.slope <= tolerance:
        return point, 0
    radius = point.first_radius
    for iteration in range(_MOST_STEPS):
        if point.slope <= tolerance:
            return point, iteration
        # quadratic convergence, but no closer than the tolerance asks
        forcing = max(min(0.1, point.slope), 0.1 * tolerance / point.slope)
        step, promise, at_border = _proposed(point, radius, forcing)
        reached = point.moved(step)
        noise = 64 * np.finfo(np.float64).eps * point.cost_scale
        if promise <= noise:
            # the cost no longer tells better from worse here, but the gradient does
            if reached.slope >= point.slope:
                return point, iteration
            point = reached
            continue
        kept = (point.cost - reached.cost) / promise
        # smaller after a broken promise, larger after a kept one that was cut short
        if kept < 0.25 or not np.isfinite(kept):
            radius /= 4
        elif kept > 0.75 and at_border:
            radius *= 2
        if kept > 0.1:  # else the step is not worth taking
            point = reached
    return point, _MOST_STEPS


def _proposed(point: Point, radius: float, forcing: float) -> tuple[Array, float, bool]:
    """Steihaug's step: conjugate gradients in the metric of the preconditioner.

    With it, by how much the quadratic model says the cost will fall, and whether the border cut it.
    """
    residual = -point.gradient
    direction = lift = point.preconditioned(residual)
    energy = start = float(np.vdot(residual, lift))  # ‖direction‖² in the metric
    step, length, along, promise = np.zeros_like(residual), 0.0, 0.0, 0.0
    if not energy > 0.0:  # nothing is left of the slope but rounding
        return step, promise, False
    size = energy
    for _ in range(500):
        bent = point.curved(direction)
        curvature = float(np.vdot(direction, bent))
        if abs(curvature) <= 1e-13 * size:
            break  # rounding: nothing is left but directions the cost does not depend on
        tau = _to_border(length, along, size, radius)
        if tau * curvature <= energy:  # the minimum along the direction lies beyond the border
            promise += tau * energy - 0.5 * tau**2 * curvature
            return step + tau * direction, promise, True
        alpha = energy / curvature
        step = step + alpha * direction
        promise += 0.5 * alpha * energy
        length += 2 * alpha * along + alpha**2 * size
        residual = residual - alpha * bent
        lift = point.preconditioned(residual)
        before, energy = energy, float(np.vdot(residual, lift))
        if energy <= forcing**2 * start:
            break
        beta = energy / before
        along = beta * (along + alpha * size)
        size = energy + beta**2 * size
        direction = lift + beta * direction
    return step, promise, False


def _to_border(length: float, along: float, size: float, radius: float) -> float:
    """The positive τ with length + 2 τ along + τ² size = radius²."""
    inside = max(radius**2 - length, 0.0)  # rounding may put the step a little beyond
    return float(inside / (along + np.sqrt(along**2 + size * inside)))
