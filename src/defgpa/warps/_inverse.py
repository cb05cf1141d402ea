"""The inverse of a warp at given points, by Newton's method.

Solve warp(x) = y for x: steps J(x)⁻¹ (y − warp(x)), halved where they overshoot. Exact to the
tolerance where the warp is one-to-one; NaN where no solution is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from defgpa._arrays import Array

_MOST_STEPS = 60
_MOST_HALVINGS = 25


class Invertible(Protocol):
    """What Newton's method needs: values and Jacobians."""

    def __call__(self, points: ArrayLike) -> Array:
        """Images of points."""
        ...

    def jacobian(self, points: ArrayLike) -> Array:
        """Derivatives of the images."""
        ...


@dataclass(frozen=True, eq=False)
class NewtonInverse:
    """The inverse of ``warp``, solved anew at every point it is asked for.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> points = np.random.default_rng(0).normal(size=(4, 30, 2)).cumsum(axis=0)
    >>> warp = defgpa.DefGPA(defgpa.Affine()).fit(points).warps_[0]
    >>> bool(np.allclose(warp.exact_inverse()(warp(points[0])), points[0]))
    True
    """

    warp: Invertible
    tolerance: float = 1e-12  # relative to the size of the images

    def __call__(self, targets: ArrayLike) -> Array:
        """(p, d): points whose images are ``targets``; NaN where there is none."""
        goal = np.asarray(targets, dtype=np.float64)
        known = ~np.isnan(goal).any(axis=1)
        solution = np.full(goal.shape, np.nan)
        if known.any():
            solution[known] = self._solved(goal[known])
        return solution

    def _solved(self, goal: Array) -> Array:
        points = _affine_start(self.warp, goal)
        size = float(np.abs(goal - goal.mean(axis=0)).max()) or 1.0
        error = self._error(points, goal)
        for _ in range(_MOST_STEPS):
            active = np.flatnonzero(error > self.tolerance * size)
            if not len(active):
                break
            moved, better = self._step(points[active], goal[active], error[active])
            improved = better < error[active]
            points[active[improved]] = moved[improved]
            error[active[improved]] = better[improved]
            if not improved.any():
                break
        # rounding may stop the descent a little above the tolerance: that is still a solution
        points[error > 1e3 * self.tolerance * size] = np.nan
        return points

    def _step(self, points: Array, goal: Array, error: Array) -> tuple[Array, Array]:
        """One damped Newton step of every point, and the error it leaves."""
        step = _newton_steps(self.warp.jacobian(points), goal - self.warp(points))
        moved = points + step
        left = self._error(moved, goal)
        for _ in range(_MOST_HALVINGS):
            worse = ~(left < error)
            if not worse.any():
                break
            step[worse] *= 0.5
            moved[worse] = points[worse] + step[worse]
            left[worse] = self._error(moved[worse], goal[worse])
        return moved, left

    def _error(self, points: Array, goal: Array) -> Array:
        return np.asarray(np.linalg.norm(self.warp(points) - goal, axis=1))


def _newton_steps(jacobians: Array, residuals: Array) -> Array:
    """J⁻¹ r of every point; zero where J is singular, so that the point counts as not improved."""
    singular = ~(np.abs(np.linalg.det(jacobians)) > np.finfo(np.float64).tiny)
    safe = np.where(singular[:, None, None], np.eye(jacobians.shape[-1]), jacobians)
    steps = np.linalg.solve(safe, residuals[..., None])[..., 0]
    return np.asarray(np.where(singular[:, None], 0.0, steps))


def _affine_start(warp: Invertible, goal: Array) -> Array:
    """The targets through the inverse of the affine map closest to the warp around its shape."""
    basis = getattr(warp, "basis", None)
    centre, scale = getattr(basis, "centre", None), getattr(basis, "scale", None)
    if centre is None or scale is None:
        return goal.copy()
    d = goal.shape[1]
    lattice = np.stack(np.meshgrid(*[np.linspace(-1.5, 1.5, 4)] * d), axis=-1).reshape(-1, d)
    samples = centre + scale * lattice
    images = warp(samples)
    design = np.column_stack([images, np.ones(len(images))])
    matrix, *_ = np.linalg.lstsq(design, samples, rcond=None)
    return np.column_stack([goal, np.ones(len(goal))]) @ matrix
