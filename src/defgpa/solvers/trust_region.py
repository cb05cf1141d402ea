r"""Minimise a smooth cost by a trust-region Newton method.

At a point with gradient g and Hessian H, the step minimises the quadratic model
:math:`\langle g, s\rangle + \tfrac12 \langle s, Hs\rangle` within a radius, by preconditioned
conjugate gradients that stop at the boundary, or follow a direction of negative curvature to it
(Steihaug 1983). The radius shrinks where the model overestimates the reduction of the cost, and
grows where it holds. A step is accepted only if the cost falls; near a minimum the steps are
Newton's, and the gradient vanishes quadratically.

H is needed only as a product. Lengths are measured in the metric of the preconditioner.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np

from defgpa.arrays import Array
from defgpa.threads import check_interruption

GRADIENT_TOLERANCE = 1e-7  # relative; rounding of the cost can hide a smaller gradient
TARGET_GRADIENT = 1e-10  # relative; where the iteration stops if rounding allows
_MAX_ITERATIONS = 300
_MAX_CG_ITERATIONS = 500
_INITIAL_RADIUS = 0.3  # of the length of the domain: trust-region radius of the first step
_MIN_REDUCTION_RATIO = 0.1  # a step that achieves less of its prediction is rejected


class Point(Protocol):
    """A point of the domain of a cost, with what a Newton step from it needs."""

    @property
    def cost(self) -> float:
        """The value of the cost."""
        ...

    @property
    def gradient(self) -> Array:
        """The gradient, an array of any shape."""
        ...

    @property
    def relative_gradient(self) -> float:
        """The norm of the gradient relative to that of its terms, from 0 to about 1."""
        ...

    @property
    def cost_scale(self) -> float:
        """The size of the terms whose difference is the cost: it is known to a rounding of this.

        Half the squared length of the domain, in the metric of the preconditioner.
        """
        ...

    def hessian_product(self, step: Array) -> Array:
        """Multiply the Hessian with a step."""
        ...

    def precondition(self, gradient: Array) -> Array:
        """Multiply an approximate, positive definite inverse of the Hessian with a gradient."""
        ...

    def retract(self, step: Array) -> Self:
        """Return the point that a step leads to."""
        ...


class Step(NamedTuple):
    """The step of a trust region."""

    step: Array
    predicted_reduction: float  # of the cost, by the quadratic model
    at_boundary: bool


_P = TypeVar("_P", bound=Point)


def minimise(point: _P, target_gradient: float = TARGET_GRADIENT) -> tuple[_P, int]:
    """Find a local minimum from a point; return it with the number of iterations.

    Stops where the relative gradient is below a target, or where rounding hides any further
    decrease of the cost. The minimum is reached if ``relative_gradient`` is below
    ``GRADIENT_TOLERANCE``.
    """
    radius = _INITIAL_RADIUS * np.sqrt(2.0 * point.cost_scale)
    for iteration in range(_MAX_ITERATIONS):
        check_interruption()
        if point.relative_gradient <= target_gradient:
            return point, iteration
        # the accuracy that conjugate gradients need for quadratic convergence
        gradient = point.relative_gradient
        forcing = max(min(0.1, gradient), 0.1 * target_gradient / gradient)
        step, predicted_reduction, at_boundary = steihaug_step(point, radius, forcing)
        candidate = point.retract(step)
        rounding = 64 * np.finfo(np.float64).eps * point.cost_scale
        if predicted_reduction <= rounding:
            # the cost can no longer tell better from worse here, but the gradient can
            if candidate.relative_gradient >= point.relative_gradient:
                return point, iteration
            point = candidate
            continue
        reduction_ratio = (point.cost - candidate.cost) / predicted_reduction
        if reduction_ratio < 0.25 or not np.isfinite(reduction_ratio):
            radius /= 4
        elif reduction_ratio > 0.75 and at_boundary:
            radius *= 2
        if reduction_ratio > _MIN_REDUCTION_RATIO:
            point = candidate
    return point, _MAX_ITERATIONS


def steihaug_step(point: Point, radius: float, forcing: float) -> Step:
    """Minimise the quadratic model within a radius by preconditioned conjugate gradients.

    Stops where the residual has fallen by the factor ``forcing``, at the boundary, or along a
    direction of negative curvature.
    """
    residual = -point.gradient
    direction = preconditioned = point.precondition(residual)
    energy = initial_energy = float(np.vdot(residual, preconditioned))
    step, step_norm2, step_direction, reduction = np.zeros_like(residual), 0.0, 0.0, 0.0
    if not energy > 0.0:  # nothing is left of the gradient but rounding
        return Step(step, reduction, False)
    direction_norm2 = energy
    for _ in range(_MAX_CG_ITERATIONS):
        image = point.hessian_product(direction)
        curvature = float(np.vdot(direction, image))
        if abs(curvature) <= 1e-13 * direction_norm2:
            break  # rounding: only directions are left that the cost does not depend on
        # the τ > 0 of ‖step + τ direction‖ = radius; rounding may put the step a little beyond
        squared_margin = max(radius**2 - step_norm2, 0.0)
        root = np.sqrt(step_direction**2 + direction_norm2 * squared_margin)
        to_boundary = float(squared_margin / (step_direction + root))
        if to_boundary * curvature <= energy:  # the minimum along the direction lies beyond
            reduction += to_boundary * energy - 0.5 * to_boundary**2 * curvature
            return Step(step + to_boundary * direction, reduction, True)
        alpha = energy / curvature
        step = step + alpha * direction
        reduction += 0.5 * alpha * energy
        step_norm2 += 2 * alpha * step_direction + alpha**2 * direction_norm2
        residual = residual - alpha * image
        preconditioned = point.precondition(residual)
        previous_energy, energy = energy, float(np.vdot(residual, preconditioned))
        if energy <= forcing**2 * initial_energy:
            break
        beta = energy / previous_energy
        step_direction = beta * (step_direction + alpha * direction_norm2)
        direction_norm2 = energy + beta**2 * direction_norm2
        direction = preconditioned + beta * direction
    return Step(step, reduction, False)
