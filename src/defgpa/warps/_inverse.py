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
    most_steps: int = 60
    most_halvings: int = 25  # of one step

    def __call__(self, targets: ArrayLike) -> Array:
        """(p, d): points whose images are ``targets``; NaN where there is none."""
        goal = np.asarray(targets, dtype=np.float64)
        known = ~np.isnan(goal).any(axis=1)
        start = np.full(goal.shape, np.nan)
        if known.any():
            start[known] = _affine_start(self.warp, goal[known])
        solution = self.near(goal, start)
        lost = known & np.isnan(solution).any(axis=1)
        if lost.any():
            solution[lost] = self.near(goal[lost], _spline_start(self.warp, goal[lost]))
        return solution

    def near(self, targets: ArrayLike, start: ArrayLike) -> Array:
        """(p, d): points whose images are ``targets``, sought from ``start``; NaN where that is."""
        goal = np.asarray(targets, dtype=np.float64)
        solution = np.array(start, dtype=np.float64)
        known = ~np.isnan(goal + solution).any(axis=1)
        if known.any():
            solution[known] = self._solved(goal[known], solution[known])
        solution[~known] = np.nan
        return solution

    def _solved(self, goal: Array, points: Array) -> Array:
        size = float(np.abs(goal - goal.mean(axis=0)).max()) or 1.0
        left = goal - self.warp(points)
        for _ in range(self.most_steps):
            active = np.flatnonzero(_lengths(left) > self.tolerance * size)
            if not len(active):
                break
            moved, less = self._step(points[active], goal[active], left[active])
            improved = _lengths(less) < _lengths(left[active])
            points[active[improved]] = moved[improved]
            left[active[improved]] = less[improved]
            if not improved.any():
                break
        # rounding may stop the descent a little above the tolerance: that is still a solution
        points[~(_lengths(left) <= 1e3 * self.tolerance * size)] = np.nan
        return points

    def _step(self, points: Array, goal: Array, left: Array) -> tuple[Array, Array]:
        """One damped Newton step of every point, and what it leaves of goal − warp(point)."""
        step = _newton_steps(self.warp.jacobian(points), left)
        moved = points + step
        less = goal - self.warp(moved)
        for _ in range(self.most_halvings):
            worse = ~(_lengths(less) < _lengths(left))
            if not worse.any():
                break
            step[worse] *= 0.5
            moved[worse] = points[worse] + step[worse]
            less[worse] = goal[worse] - self.warp(moved[worse])
        return moved, less


def _lengths(vectors: Array) -> Array:
    return np.asarray(np.linalg.norm(vectors, axis=1))


def _newton_steps(jacobians: Array, residuals: Array) -> Array:
    """J⁻¹ r of every point; zero where J is singular, so that the point counts as not improved."""
    singular = ~(np.abs(np.linalg.det(jacobians)) > np.finfo(np.float64).tiny)
    safe = np.where(singular[:, None, None], np.eye(jacobians.shape[-1]), jacobians)
    steps = np.linalg.solve(safe, residuals[..., None])[..., 0]
    return np.asarray(np.where(singular[:, None], 0.0, steps))


def _affine_start(warp: Invertible, goal: Array) -> Array:
    """The targets through the inverse of the affine map closest to the warp around its shape."""
    samples = _home(warp, goal.shape[1])
    if samples is None:
        return goal.copy()
    images = warp(samples)
    design = np.column_stack([images, np.ones(len(images))])
    matrix, *_ = np.linalg.lstsq(design, samples, rcond=None)
    return np.column_stack([goal, np.ones(len(goal))]) @ matrix


def _home(warp: Invertible, dim: int) -> Array | None:
    """Some points of the shape the warp was made for, or a grid where its basis says it lies."""
    landmarks = getattr(warp, "landmarks", None)
    if landmarks is not None:
        seen = landmarks[~np.isnan(landmarks).any(axis=1)]
        return np.asarray(seen[:: 1 + len(seen) // 200])  # so many tell it as well as all
    basis = getattr(warp, "basis", None)
    centre, scale = getattr(basis, "centre", None), getattr(basis, "scale", None)
    if centre is None or scale is None:
        return None
    ticks = [np.linspace(-1.5, 1.5, 4)] * dim
    lattice = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, dim)
    return np.asarray(centre + scale * lattice)


def _spline_start(warp: Invertible, goal: Array) -> Array:
    """The targets through the approximate inverse, if the warp has one; it follows its bends."""
    roughly = warp.inverse() if hasattr(warp, "inverse") else None
    if roughly is None or isinstance(roughly, NewtonInverse):
        return np.full(goal.shape, np.nan)
    return np.asarray(roughly(goal))
