"""The inverse of a warp at given points, by Newton's method.

Solve warp(x) = y for x: steps J(x)⁻¹ (y − warp(x)), halved where they overshoot. Exact to the
tolerance where the warp is one-to-one; NaN where no solution is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array, compute_lengths


class Invertible(Protocol):
    """A map with values and Jacobians, which is what Newton's method needs."""

    def __call__(self, points: ArrayLike) -> Array:
        """Return the images of points."""
        ...

    def jacobian(self, points: ArrayLike) -> Array:
        """Return the derivatives of the images."""
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
    max_steps: int = 60
    max_halvings: int = 25  # of one step

    def __call__(self, targets: ArrayLike) -> Array:
        """Return the points (p, d) whose images are ``targets``; NaN where there is none."""
        goal = np.asarray(targets, dtype=np.float64)
        is_finite = ~np.isnan(goal).any(axis=1)
        start = np.full(goal.shape, np.nan)
        if is_finite.any():
            start[is_finite] = _find_affine_start(self.warp, goal[is_finite])
        solution = self.find_near(goal, start)
        failed = is_finite & np.isnan(solution).any(axis=1)
        if failed.any():
            solution[failed] = self.find_near(
                goal[failed], _find_spline_start(self.warp, goal[failed])
            )
        return solution

    def find_near(self, targets: ArrayLike, start: ArrayLike) -> Array:
        """Find points (p, d) whose images are ``targets`` from ``start``; NaN where that is NaN."""
        goal = np.asarray(targets, dtype=np.float64)
        solution = np.array(start, dtype=np.float64)
        is_finite = ~np.isnan(goal + solution).any(axis=1)
        if is_finite.any():
            solution[is_finite] = self._solve_system(goal[is_finite], solution[is_finite])
        solution[~is_finite] = np.nan
        return solution

    def _solve_system(self, goal: Array, points: Array) -> Array:
        size = float(np.abs(goal - goal.mean(axis=0)).max()) or 1.0
        residuals = goal - self.warp(points)
        for _ in range(self.max_steps):
            active = np.flatnonzero(compute_lengths(residuals) > self.tolerance * size)
            if not len(active):
                break
            moved, remaining = self._step_with_halving(
                points[active], goal[active], residuals[active]
            )
            improved = compute_lengths(remaining) < compute_lengths(residuals[active])
            points[active[improved]] = moved[improved]
            residuals[active[improved]] = remaining[improved]
            if not improved.any():
                break
        # rounding may stop the descent a little above the tolerance: that is still a solution
        points[~(compute_lengths(residuals) <= 1e3 * self.tolerance * size)] = np.nan
        return points

    def _step_with_halving(
        self, points: Array, goal: Array, residuals: Array
    ) -> tuple[Array, Array]:
        """Return every point after one damped Newton step, and its residual goal − warp(point).

        Parameters
        ----------
        points, goal, residuals : array (p, d)
            Current points, the images to reach, and goal − warp(points).

        Returns
        -------
        array (p, d), array (p, d)
        """
        step = _compute_newton_steps(self.warp.jacobian(points), residuals)
        moved = points + step
        remaining = goal - self.warp(moved)
        for _ in range(self.max_halvings):
            is_worse = ~(compute_lengths(remaining) < compute_lengths(residuals))
            if not is_worse.any():
                break
            step[is_worse] *= 0.5
            moved[is_worse] = points[is_worse] + step[is_worse]
            remaining[is_worse] = goal[is_worse] - self.warp(moved[is_worse])
        return moved, remaining


def _compute_newton_steps(jacobians: Array, residuals: Array) -> Array:
    """Return J⁻¹ r of every point; zero where J is singular, so that it counts as not improved."""
    singular = ~(np.abs(np.linalg.det(jacobians)) > np.finfo(np.float64).tiny)
    safe = np.where(singular[:, None, None], np.eye(jacobians.shape[-1]), jacobians)
    steps = np.linalg.solve(safe, residuals[..., None])[..., 0]
    return np.asarray(np.where(singular[:, None], 0.0, steps))


def _find_affine_start(warp: Invertible, goal: Array) -> Array:
    """Send the targets through the inverse of the affine map closest to the warp on its shape."""
    samples = sample_domain(warp, goal.shape[1])
    if samples is None:
        return goal.copy()
    images = warp(samples)
    design = np.column_stack([images, np.ones(len(images))])
    matrix, *_ = np.linalg.lstsq(design, samples, rcond=None)
    return np.column_stack([goal, np.ones(len(goal))]) @ matrix


def sample_domain(warp: Invertible, dim: int) -> Array | None:
    """Return points of the shape that the warp was made for, or a grid where its basis lies."""
    landmarks = getattr(warp, "landmarks", None)
    if landmarks is not None:
        visible = landmarks[~np.isnan(landmarks).any(axis=1)]
        return np.asarray(visible[:: 1 + len(visible) // 200])  # so many are enough
    basis = getattr(warp, "basis", None)
    centre, scale = getattr(basis, "centre", None), getattr(basis, "scale", None)
    if centre is None or scale is None:
        return None
    ticks = [np.linspace(-1.5, 1.5, 4)] * dim
    lattice = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, dim)
    return np.asarray(centre + scale * lattice)


def _find_spline_start(warp: Invertible, goal: Array) -> Array:
    """Map the targets by the approximate inverse of the warp, if it has one."""
    approximate_inverse = warp.inverse() if hasattr(warp, "inverse") else None
    if approximate_inverse is None or isinstance(approximate_inverse, NewtonInverse):
        return np.full(goal.shape, np.nan)
    return np.asarray(approximate_inverse(goal))
