r"""Thin-plate splines: the smoothest warps through given control points.

A spline with control points c₁ … c_l is

    warp(x) = Σ_k φ(‖x − c_k‖) w_k + x A + a,      C̃ᵀ w = 0,  C̃ = [C 1],

with φ(r) = r² log r² in 2-D and r in 3-D, and bending ± tr(wᵀ K w), K = φ(‖c_i − c_j‖), + in 2-D
and − in 3-D. With N an orthonormal basis of the null space of C̃ᵀ and L Lᵀ = ± NᵀKN, it is free in
w = N L⁻ᵀ v, and its bending is ‖v‖²:

    features = [Φ 1 x̂] with Φ mixed by N L⁻ᵀ,      R = 8π · τ · p · diag(1 … 1, 0 … 0)

for p visible points. All of it in the shape's own units (centroid 0, RMS radius 1), where the
absolute θ of the paper is τ = θ / L^(4−d). The images of the control points, the weights the
paper works with, are warp(C); the cost P is the same for either.

The factor 8π is that of the published experiments, although the paper prints none. In 3-D
it makes the penalty the exact bending integral; in 2-D, with r² log r², half of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lstsq
from scipy.linalg.lapack import dgecon, dgetrf, dgetrs

from defgpa._arrays import Array, blocks
from defgpa.frames import Frames, frames_of
from defgpa.warps._affine import affine_column_gradients, affine_columns
from defgpa.warps._bending import (
    BENDING_SIGN,
    MANY_CONTROLS,
    Deflation,
    grid_deflation,
    spline_mixing,
    spline_mixing_on_grid,
    thin_plate,
    thin_plate_slope,
)
from defgpa.warps._control_points import (
    Grid,
    PointsPerAxis,
    per_axis_counts,
    principal_grid,
)
from defgpa.warps._distances import BLOCK_BYTES, squared_distances, wider_like
from defgpa.warps._parameters import Parameters, given_points, require_not_negative
from defgpa.warps._warp import Warp

BENDING = 8.0 * np.pi
DEFAULT_SMOOTHING = 1e-3
_FLAT_CONTROLS = 1e-9  # thickness over length: below, control points lie on a line or in a plane


@dataclass(frozen=True, eq=False)
class ThinPlateBasis:
    """The splines on given control points; one shape, or a stack of them."""

    controls: Array  # (…, k, d), in the shape's own units
    centre: Array  # (…, d)
    scale: Array  # (…,)
    # (…, k + d + 1, l): N L⁻ᵀ on the kernel columns, identity on the affine ones; None where the
    # weights are those of the columns themselves
    mixing: Array | None
    stiffness: Array  # (…,): 8π τ p, the price of one unit of bending
    grid: Grid | None = None  # where the controls lie on one

    @property
    def control_points(self) -> Array:
        """(…, k, d): the control points in the coordinates of the shape."""
        return self.controls * self.scale[..., None, None] + self.centre[..., None, :]

    def _normalised(self, points: Array) -> Array:
        return (points - self.centre[..., None, :]) / self.scale[..., None, None]

    def columns(self, points: Array) -> Array:
        """(…, p, k + d + 1): [Φ x̂ 1]."""
        if self.grid is not None:
            return self._columns_on_grid(self.grid, points)
        local = self._normalised(points)
        k, d = self.controls.shape[-2:]
        squared = squared_distances(local, self.controls)
        columns = wider_like(squared, k + d + 1)
        thin_plate(squared, d, out=columns[..., :k])
        columns[..., k:-1] = local
        columns[..., -1] = 1.0
        return columns

    def _columns_on_grid(self, grid: Grid, points: Array) -> Array:
        """[Φ x̂ 1], the points of a shape side by side in memory; a few shapes at a time."""
        *lead, p, d = points.shape
        k = self.controls.shape[-2]
        columns = np.empty((*lead, k + d + 1, p))
        local = columns[..., k:-1, :]
        np.subtract(points.mT, self.centre[..., None], out=local)
        local /= self.scale[..., None, None]
        columns[..., -1, :] = 1.0
        for part in blocks(lead[0], max(1, BLOCK_BYTES // (8 * k * p))) if lead else [...]:
            kernel = columns[part][..., :k, :]
            grid[part].fill_squared_distances(local[part], out=kernel)
            thin_plate(kernel, d)
        return columns.mT

    @property
    def deflation(self) -> Deflation | None:
        """What takes low orders out of the kernel columns, where all shapes share it."""
        if self.mixing is None or self.grid is None or self.controls.shape[-2] > MANY_CONTROLS:
            return None
        return grid_deflation(self.grid.counts)

    def features(self, points: Array) -> Array:
        """(…, p, l)."""
        columns = self.columns(points)
        return columns if self.mixing is None else columns @ self.mixing

    def column_gradients(self, points: Array) -> Array:
        """(…, p, d, k + d + 1)."""
        local = self._normalised(points)
        d = local.shape[-1]
        slope = thin_plate_slope(squared_distances(local, self.controls), d)
        offset = local[..., :, None, :] - self.controls[..., None, :, :]
        bent = np.swapaxes(slope[..., None] * offset, -1, -2) / self.scale[..., None, None, None]
        return np.concatenate([bent, affine_column_gradients(local, self.scale)], axis=-1)

    def penalty(self) -> Array:
        """(…, l, l): 8π τ p on the bending coordinates, nothing on the affine ones."""
        if self.mixing is None:
            sign = BENDING_SIGN[self.controls.shape[-1]]
            return (sign * self.stiffness)[..., None, None] * _bordered_kernel(self.controls)
        size, bending = self.mixing.shape[-1], self.mixing.shape[-1] - self.centre.shape[-1] - 1
        charged = np.zeros((size, size))
        charged[np.arange(bending), np.arange(bending)] = 1.0
        return self.stiffness[..., None, None] * charged

    def unmixed(self) -> ThinPlateBasis:
        """These splines by the coefficients of their columns [Φ x̂ 1]."""
        return replace(self, mixing=None)

    def inverted(self, warp: Warp) -> Warp:
        """The paper's approximate inverse: the spline that takes warp(C) back to C."""
        return interpolating_spline(warp(self.control_points), self.control_points)

    def __getitem__(self, shape: Any) -> ThinPlateBasis:
        return ThinPlateBasis(
            self.controls[shape],
            self.centre[shape],
            self.scale[shape],
            None if self.mixing is None else self.mixing[shape],
            self.stiffness[shape],
            None if self.grid is None else self.grid[shape],
        )


@dataclass(frozen=True, repr=False)
class ThinPlateSpline(Parameters):
    r"""Thin-plate spline warps on a grid of control points, TPS_r in the paper.

    Parameters
    ----------
    points_per_axis : int or sequence of d int
        Control points along each principal axis of the shape, the longest axis first.
        For a nearly flat 3-D shape the paper uses ``(K, K, 2)``.
    control_points : array (k, d) or callable, optional
        Explicit control points instead of the grid, in the coordinates of the shapes; or a
        function that makes them from the visible points (p, d) of a shape.
    smoothing : float, optional
        τ, relative and dimensionless: θ = τ · L^(4−d), L the RMS radius of the shape.
        1e-3 if neither it nor ``theta`` is given.
    theta : float, optional
        θ, the absolute parameter of the paper, in the units of the data.
    ridge : float
        Added to the diagonal of the kernel matrix K in the shape's own units: the spline then
        passes near its control points instead of through them.

    Notes
    -----
    A shape with p visible points is charged 8π θ p times the bending of its warp.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(40, 2))
    >>> basis = ThinPlateSpline(points_per_axis=3).basis(points)
    >>> basis.features(points).shape
    (40, 9)
    """

    points_per_axis: PointsPerAxis = 5
    control_points: ArrayLike | Callable[[Array], ArrayLike] | None = None
    smoothing: float | None = None
    theta: float | None = None
    ridge: float = 0.0

    def basis(self, points: Array) -> ThinPlateBasis:
        """The spline basis of one shape (p, d)."""
        return self.bases(frames_of(np.asarray(points, dtype=np.float64)))[0]

    def smoothed(self, smoothing: float) -> ThinPlateSpline:
        """These splines with another relative smoothing."""
        return replace(self, smoothing=smoothing, theta=None)

    def bases(self, frames: Frames) -> ThinPlateBasis:
        """The bases of n shapes, stacked."""
        self._check()
        dim = frames.points.shape[-1]
        if self.control_points is None:
            counts = per_axis_counts(self.points_per_axis, dim, "ThinPlateSpline")
            on_grid = principal_grid(frames, counts)
            grid: Grid | None = on_grid
            controls, mixing = on_grid.points, spline_mixing_on_grid(on_grid, self.ridge)
        else:
            grid = None
            given = given_points(self.control_points, frames, "control_points", "ThinPlateSpline")
            _require_spread(given)
            controls = (given - frames.centre[:, None, :]) / frames.size[:, None, None]
            mixing = spline_mixing(controls, self.ridge)
        return ThinPlateBasis(
            controls,
            frames.centre,
            frames.size,
            mixing,
            stiffness=BENDING * self._relative_smoothing(frames) * frames.count,
            grid=grid,
        )

    def _relative_smoothing(self, frames: Frames) -> Array:
        """τ of each shape: as given, or θ / L^(4−d)."""
        if self.theta is not None:
            return self.theta / frames.size ** (4 - frames.points.shape[-1])
        tau = DEFAULT_SMOOTHING if self.smoothing is None else self.smoothing
        return np.full(len(frames.points), float(tau))

    def _check(self) -> None:
        if self.smoothing is not None and self.theta is not None:
            raise ValueError(
                "ThinPlateSpline takes 'smoothing' (relative) or 'theta' (the paper's), not both. "
                f"Got smoothing={self.smoothing!r} and theta={self.theta!r}."
            )
        for name in ("smoothing", "theta", "ridge"):
            if getattr(self, name) is not None:
                require_not_negative(getattr(self, name), name, "ThinPlateSpline")


def interpolating_spline(sources: Array, targets: Array) -> Warp:
    """The thin-plate spline, without smoothing, that takes each source point to its target.

    Solves [[K, C̃], [C̃ᵀ, 0]] [w; A] = [targets; 0] in the sources' own units.
    """
    frame = frames_of(sources)
    k, d = sources.shape
    local = (sources - frame.centre[0]) / frame.size[0]
    system = _bordered_kernel(local)
    system[:k, k:] = affine_columns(local)
    system[k:, :k] = system[:k, k:].T
    weights = _solved(system, np.vstack([targets, np.zeros((d + 1, d))]))
    basis = ThinPlateBasis(
        local, frame.centre[0], frame.size[0], mixing=None, stiffness=np.zeros_like(frame.size[0])
    )
    return Warp(basis, weights)


def _bordered_kernel(controls: Array) -> Array:
    """(…, k + d + 1, k + d + 1): K, and zero for the affine part."""
    *lead, k, d = controls.shape
    bordered = np.zeros((*lead, k + d + 1, k + d + 1))
    bordered[..., :k, :k] = thin_plate(squared_distances(controls, controls), d)
    return bordered


def _solved(system: Array, right: Array) -> Array:
    """The solution of a square system; least squares where points coincide."""
    factors, pivots, singular = dgetrf(system)
    if not singular:
        reciprocal_condition, _ = dgecon(factors, np.linalg.norm(system, 1))
        if reciprocal_condition > np.finfo(np.float64).eps:
            return np.asarray(dgetrs(factors, pivots, right)[0])
    return np.asarray(lstsq(system, right)[0])


def _require_spread(controls: Array) -> None:
    """A ValueError unless the control points of every shape span its space: C̃ of full rank."""
    k, d = controls.shape[-2:]
    extents = np.linalg.svd(controls - controls.mean(axis=-2, keepdims=True), compute_uv=False)
    if k <= d or not (extents[..., d - 1] > _FLAT_CONTROLS * extents[..., 0]).all():
        flat = "line" if d == 2 else "plane"
        raise ValueError(
            f"The 'control_points' parameter of ThinPlateSpline must hold at least {d + 1} points "
            f"in {d}-D that do not lie on a {flat}. Got {k} points"
            f"{'' if k <= d else f', all on a {flat}'}."
        )
