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

On a grid N and K are cheap. N depends only on the affine class of C, which all grids of so many
points per axis share. And K, k × k, has k different entries: φ of the offsets from one corner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lstsq
from scipy.linalg.lapack import dgecon, dgetrf, dgetrs

from defgpa.arrays import (
    Array,
    Index,
    compute_inverse_root,
    freeze,
    invert_lower,
    rms_radius,
    symmetrise,
)
from defgpa.geometry import Geometry
from defgpa.warps.affine import make_affine_column_gradients, make_affine_columns
from defgpa.warps.base import FactoredBasis, WarpFamily, normalize_points
from defgpa.warps.control_points import (
    Grid,
    PointsPerAxis,
    check_points_per_axis,
    make_control_points,
    make_grid_indices,
    make_principal_grid,
)
from defgpa.warps.distances import BLOCK_BYTES, TINY, compute_squared_distances
from defgpa.warps.parameters import DEFAULT_SMOOTHING, require_number
from defgpa.warps.warp import Warp

BENDING_SIGN = {2: 1.0, 3: -1.0}  # the bending of Σ φ(‖x − c_k‖) w_k is this times wᵀ K w
MANY_CONTROLS = 1000  # beyond, what is kept for every grid would be too large


@dataclass(frozen=True, eq=False)
class ThinPlateBasis(FactoredBasis):
    """The splines on given control points; one shape, or a stack of them."""

    controls: Array  # (…, k, d), in the shape's own units
    centre: Array  # (…, d)
    scale: Array  # (…,)
    ridge: float | None  # on the diagonal of K; None where weights are those of the columns
    stiffness: Array  # (…,): 8π τ p, the price of one unit of bending
    grid: Grid | None = None  # where the controls lie on one

    expensive = ("mixing",)

    @cached_property
    def mixing(self) -> Array | None:
        """(…, k + d + 1, k): N L⁻ᵀ on the kernel columns, identity on the affine ones."""
        if self.ridge is None:
            return None
        if self.grid is None or self.controls.shape[-2] > MANY_CONTROLS:
            return compute_spline_mixing(self.controls, self.ridge)
        kernel = _compute_grid_kernel(self.grid, self.ridge)
        return compute_mixing(
            kernel, _make_grid_complement(self.grid.counts), _compute_inverse_root
        )

    @property
    def control_points(self) -> Array:
        """(…, k, d): the control points in the coordinates of the shape."""
        return self.controls * self.scale[..., None, None] + self.centre[..., None, :]

    def columns(self, points: Array) -> Array:
        """Return [Φ x̂ 1], (…, p, k + d + 1)."""
        *batch_shape, p, d = points.shape
        k, grid = self.controls.shape[-2], self.grid
        if grid is None:
            local = normalize_points(points, self.centre, self.scale)
            squared = compute_squared_distances(local, self.controls)
            # in the order of the distances: the points side by side where there are many shapes
            if squared.flags.c_contiguous:
                columns = np.empty((*batch_shape, p, k + d + 1))
            else:
                columns = np.empty((*batch_shape, k + d + 1, p)).mT
            compute_thin_plate_kernel(squared, d, out=columns[..., :k])
            columns[..., k:-1] = local
            columns[..., -1] = 1.0
            return columns
        # a few shapes at a time, the points of a shape side by side
        columns = np.empty((*batch_shape, k + d + 1, p))
        local = columns[..., k:-1, :]
        np.subtract(points.mT, self.centre[..., None], out=local)
        local /= self.scale[..., None, None]
        columns[..., -1, :] = 1.0
        size = max(1, BLOCK_BYTES // (8 * k * p))
        for start in range(0, batch_shape[0] if batch_shape else 1, size):
            block = slice(start, start + size) if batch_shape else ...
            kernel = columns[block][..., :k, :]
            grid[block].fill_squared_distances(local[block], out=kernel)
            compute_thin_plate_kernel(kernel, d)
        return columns.mT

    def deflate(self) -> DeflatedSplines | None:
        """Return these splines in coordinates common to all shapes, if control points are few.

        Not where a grid is nearly flat: some of its points coincide then, and what neither bends
        nor moves anything is better left out by N L⁻ᵀ.
        """
        grid = self.grid
        if self.ridge is None or grid is None or self.controls.shape[-2] > MANY_CONTROLS:
            return None
        if (grid.step.min(axis=-1) < 1e-3 * grid.step.max(axis=-1)).any():
            return None
        return DeflatedSplines(self, make_grid_deflation(grid.counts))

    def column_gradients(self, points: Array) -> Array:
        """Return the derivatives of [Φ x̂ 1] by x, (…, p, d, k + d + 1)."""
        local = normalize_points(points, self.centre, self.scale)
        d = local.shape[-1]
        slope = compute_thin_plate_slope(compute_squared_distances(local, self.controls), d)
        offset = local[..., :, None, :] - self.controls[..., None, :, :]
        bent = np.swapaxes(slope[..., None] * offset, -1, -2) / self.scale[..., None, None, None]
        return np.concatenate([bent, make_affine_column_gradients(local, self.scale)], axis=-1)

    def penalty(self) -> Array:
        """Return 8π τ p on the bending coordinates, nothing on the affine ones, (…, l, l)."""
        k, d = self.controls.shape[-2:]
        if self.ridge is None:
            sign = BENDING_SIGN[d]
            return (sign * self.stiffness)[..., None, None] * _build_kernel_system(self.controls)
        return self.stiffness[..., None, None] * _make_bending_mask(k, k - d - 1)

    def unmix(self) -> ThinPlateBasis:
        """Return these splines by the coefficients of their columns [Φ x̂ 1]."""
        return replace(self, ridge=None)

    def invert(self, warp: Warp) -> Warp:
        """Return the paper's approximate inverse: the spline that takes warp(C) back to C."""
        return fit_interpolating_spline(warp(self.control_points), self.control_points)


@dataclass(frozen=True, eq=False)
class DeflatedSplines(FactoredBasis):
    """Splines on a grid by the columns [ΦN x̂ 1], N with polynomials of low order in front.

    Kernels grow with the distance, so most of the columns Φ is a polynomial of low order in the
    control points. It cancels in the features, and the digits of ΦᵀΦ would be lost with it. In ΦN
    it stands in the first few columns, and all others are small: they serve as features, and their
    bending is NᵀKN. N is the same for all grids of so many points per axis.
    """

    splines: ThinPlateBasis
    deflation: Deflation

    mixing = None

    def columns(self, points: Array) -> Array:
        """Return [ΦN x̂ 1], (…, p, k)."""
        return self.deflation.columns(self.splines.columns(points))

    def column_gradients(self, points: Array) -> Array:
        """Return the derivatives of [ΦN x̂ 1] by x, (…, p, d, k)."""
        return self.splines.column_gradients(points) @ self.deflation.matrix

    def penalty(self) -> Array:
        """Return 8π τ p NᵀKN on the weights of ΦN, nothing on the affine ones, (…, k, k)."""
        return self._penalty

    @cached_property
    def _penalty(self) -> Array:
        grid, ridge = self.splines.grid, self.splines.ridge
        assert grid is not None
        assert ridge is not None
        bending = self.deflation.restrict(_compute_grid_kernel(grid, ridge))
        k, bent = np.prod(grid.counts), bending.shape[-1]
        penalty = np.zeros((*bending.shape[:-2], k, k))
        penalty[..., :bent, :bent] = bending
        penalty *= self.splines.stiffness[..., None, None]
        return penalty

    def express_in_columns(self, weights: Array) -> tuple[ThinPlateBasis, Array]:
        """Return the splines by their columns [Φ x̂ 1], with coefficients (…, k + d + 1, j)."""
        return self.splines.unmix(), self.deflation.matrix @ weights


@dataclass(frozen=True, repr=False)
class ThinPlateSpline(WarpFamily[ThinPlateBasis]):
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

    def bases(self, geometry: Geometry) -> ThinPlateBasis:
        """Make the bases of n shapes, stacked."""
        if self.smoothing is not None and self.theta is not None:
            raise ValueError(
                "ThinPlateSpline takes 'smoothing' (relative) or 'theta' (the paper's), not both. "
                f"Got smoothing={self.smoothing!r} and theta={self.theta!r}."
            )
        for name in ("smoothing", "theta", "ridge"):
            if getattr(self, name) is not None:
                require_number(getattr(self, name), name, "ThinPlateSpline")
        dim, grid = geometry.points.shape[-1], None
        if self.control_points is None:
            counts = check_points_per_axis(self.points_per_axis, dim, "ThinPlateSpline")
            grid = make_principal_grid(geometry, counts)
            controls = grid.points
        else:
            points = make_control_points(self.control_points, geometry, "ThinPlateSpline")
            _check_spread(points)
            controls = normalize_points(points, geometry.centre, geometry.size)
        # the penalty of bending: 8π τ p, with τ = θ / L^(4−d) for the paper's θ
        if self.theta is None:
            tau = np.full(
                len(controls), DEFAULT_SMOOTHING if self.smoothing is None else self.smoothing
            )
        else:
            tau = self.theta / geometry.size ** (4 - dim)
        stiffness = 8.0 * np.pi * tau * geometry.mass
        return ThinPlateBasis(controls, geometry.centre, geometry.size, self.ridge, stiffness, grid)


def fit_interpolating_spline(sources: Array, targets: Array) -> Warp:
    """Fit the thin-plate spline, without smoothing, that takes each source point to its target.

    Solves [[K, C̃], [C̃ᵀ, 0]] [w; A] = [targets; 0] in the sources' own units.

    Parameters
    ----------
    sources : ndarray of shape (n_points, n_dims)
        Where the spline interpolates.
    targets : ndarray of shape (n_points, n_dims)
        The images of the sources.

    Returns
    -------
    Warp
        A warp of the plane or of space, callable on any points (p, d).
    """
    k, d = sources.shape
    centre, size = sources.mean(axis=0), rms_radius(sources)
    scale = np.asarray(size if size > 0.0 else 1.0)  # of points at one place: a translation
    local = (sources - centre) / scale
    system = _build_kernel_system(local)
    system[:k, k:] = make_affine_columns(local)
    system[k:, :k] = system[:k, k:].T
    images = np.vstack([targets, np.zeros((d + 1, d))])
    factors, pivots, singular = dgetrf(system)
    if singular or not dgecon(factors, np.linalg.norm(system, 1))[0] > np.finfo(np.float64).eps:
        weights = np.asarray(lstsq(system, images)[0])  # points that coincide
    else:
        weights = np.asarray(dgetrs(factors, pivots, images)[0])
    basis = ThinPlateBasis(local, centre, scale, ridge=None, stiffness=np.zeros_like(scale))
    return Warp(basis, weights)


@lru_cache(maxsize=8)
def _make_bending_mask(size: int, bending: int) -> Array:
    """Make a diagonal matrix (l, l): one for bending coordinates, zero for affine ones."""
    return freeze(np.diag(np.arange(size) < bending).astype(np.float64))


def _build_kernel_system(controls: Array) -> Array:
    """Build K with zeros for the affine part, (…, k + d + 1, k + d + 1)."""
    *batch_shape, k, d = controls.shape
    bordered = np.zeros((*batch_shape, k + d + 1, k + d + 1))
    bordered[..., :k, :k] = compute_thin_plate_kernel(
        compute_squared_distances(controls, controls), d
    )
    return bordered


def _check_spread(controls: Array) -> None:
    """Raise a ValueError unless the control points of every shape span its space."""
    k, d = controls.shape[-2:]
    extents = np.linalg.svd(controls - controls.mean(axis=-2, keepdims=True), compute_uv=False)
    if k <= d or not (extents[..., d - 1] > 1e-9 * extents[..., 0]).all():
        flat = "line" if d == 2 else "plane"
        raise ValueError(
            f"The 'control_points' parameter of ThinPlateSpline must hold at least {d + 1} points "
            f"in {d}-D that do not lie on a {flat}. Got {k} points"
            f"{'' if k <= d else f', all on a {flat}'}."
        )


def compute_thin_plate_kernel(squared: Array, dim: int, out: Array | None = None) -> Array:
    """Compute φ of r²: r² log r² in 2-D, r in 3-D, continuous at 0. Overwrite ``squared``."""
    target = squared if out is None else out
    if dim == 2:
        logarithm = np.log(np.maximum(squared, TINY))
        return np.multiply(squared, logarithm, out=target)
    return np.sqrt(squared, out=target)


def compute_thin_plate_slope(squared: Array, dim: int) -> Array:
    """Compute ψ with ∇φ = ψ · (x − c): 2 (1 + log r²) in 2-D, 1/r in 3-D, 0 at r = 0."""
    if dim == 2:
        # at r = 0 the gradient itself is 0: any finite slope will do
        return 2.0 * (1.0 + np.log(np.maximum(squared, TINY)))
    with np.errstate(divide="ignore"):
        slope = 1.0 / np.sqrt(squared)
    slope[squared == 0.0] = 0.0  # the cone's tip: the mean of the one-sided slopes
    return slope


def compute_spline_mixing(controls: Array, ridge: float = 0.0) -> Array:
    """Compute the map (…, k + d + 1, l) from bending and affine coordinates to the columns.

    ``controls`` (…, k, d) are the control points of each shape.
    """
    k, d = controls.shape[-2:]
    kernel = compute_thin_plate_kernel(compute_squared_distances(controls, controls), d)
    kernel *= BENDING_SIGN[d]
    kernel[..., np.arange(k), np.arange(k)] = ridge
    return compute_mixing(
        kernel, find_complement(make_affine_columns(controls)), _compute_inverse_root
    )


@dataclass(frozen=True, eq=False)
class Complement:
    """N, the last columns of the reflection H = I − Y T Yᵀ: products with it cost a few columns.

    H takes the first q unit vectors to an orthonormal basis of some functions of the points, the
    affine ones for a spline, and so the others to one of what is orthogonal to them.
    """

    mirror: Array  # (…, k, q): Y
    inner: Array  # (…, q, q): T

    def reflect(self, rows: Array) -> Array:
        """Return H X for X (…, k, j); N X for what stands in the rows of X beyond the first q."""
        return rows - self.mirror @ (self.inner @ (self.mirror.mT @ rows))


def find_complement(functions: Array) -> Complement:
    """Find N (…, k, k − q), orthonormal, orthogonal to q functions (…, k, q) of k points."""
    basis = np.linalg.qr(functions)[0]
    q = basis.shape[-1]
    left, values, right = np.linalg.svd(basis[..., :q, :])
    # turned so that its first rows are symmetric and negative: I − A is then far from singular
    mirror = basis @ (right.mT @ left.mT)
    mirror[..., :q, :] += np.eye(q)
    inner = (left / (1.0 + values)[..., None, :]) @ left.mT
    return Complement(mirror, inner)


def compute_mixing(kernel: Array, complement: Complement, root: Callable[[Array], Array]) -> Array:
    """Compute N X on the kernel columns, the identity on the q free ones, (…, k + q, r + q).

    ``root`` makes X (…, k − q, r) with Xᵀ E X = I of E = NᵀKN, K (…, k, k).
    """
    k, q = complement.mirror.shape[-2:]
    energy = complement.reflect(complement.reflect(kernel)[..., q:, :].mT)[..., q:, :]
    weights = root(0.5 * (energy + energy.mT))
    *batch_shape, _, r = weights.shape
    mixing = np.zeros((*batch_shape, k + q, r + q))
    mixing[..., q:k, :r] = weights
    mixing[..., :k, :r] = complement.reflect(mixing[..., :k, :r])
    mixing[..., k:, r:] = np.eye(q)
    return mixing


def _compute_inverse_root(energy: Array) -> Array:
    """Compute X with Xᵀ E X = I by Cholesky, or by eigenvectors where E is singular.

    Coincident control points leave directions without bending and without effect:
    their columns become zero, and the penalty keeps their weights at zero.
    """
    try:
        lower: Array = np.linalg.cholesky(energy)  # type: ignore[assignment]
    except np.linalg.LinAlgError:
        return compute_inverse_root(energy, energy.shape[-1] * float(np.finfo(np.float64).eps))
    return invert_lower(lower).mT


@lru_cache(maxsize=8)
def _make_grid_complement(counts: tuple[int, ...]) -> Complement:
    """Make N of every grid of so many points per axis."""
    return find_complement(make_affine_columns(make_grid_indices(counts).astype(np.float64)))


@dataclass(frozen=True, eq=False)
class Deflation:
    """Orthonormal columns N, as of `Complement`, that begin with polynomials of low order."""

    polynomials: Complement  # the reflection I − Y T Yᵀ that takes q unit vectors to them
    bent: Array  # (q, q − d − 1): those of them that are orthogonal to all affine functions

    def columns(self, columns: Array) -> Array:
        """Return [ΦN …] of columns [Φ …] (…, p, k + j), which are overwritten."""
        mirror, inner = self.polynomials.mirror, self.polynomials.inner
        (k, q), affine = mirror.shape, len(self.bent) - self.bent.shape[1]
        kernel = columns.mT[..., :k, :]  # as it lies in memory, the points side by side
        kernel -= (mirror @ inner) @ (mirror.T @ kernel)
        kernel[..., affine:q, :] = self.bent.T @ kernel[..., :q, :]
        return columns[..., affine:]

    @cached_property
    def matrix(self) -> Array:
        """(k + d + 1, k): N on the kernel columns, identity on the affine ones."""
        affine = len(self.bent) - self.bent.shape[1]
        return freeze(self.columns(np.eye(len(self.polynomials.mirror) + affine)))

    def restrict(self, kernel: Array) -> Array:
        """Return NᵀKN of a symmetric K (…, k, k), (…, k − d − 1, k − d − 1)."""
        half = self._combine_low_rows(self.polynomials.reflect(kernel))
        return symmetrise(self._combine_low_rows(self.polynomials.reflect(half.mT)))

    def _combine_low_rows(self, rows: Array) -> Array:
        """Replace the first q rows (…, k, j), of low order, by those orthogonal to affine ones."""
        q = len(self.bent)
        return np.concatenate([self.bent.T @ rows[..., :q, :], rows[..., q:, :]], axis=-2)


@lru_cache(maxsize=8)
def make_grid_deflation(counts: tuple[int, ...]) -> Deflation:
    """Make N of grids of so many points per axis, 1, x and x² first where points tell them."""
    place = make_grid_indices(counts) / (np.array(counts) - 1.0) - 0.5
    orders = [order for order in np.ndindex(*np.minimum(counts, 3)) if sum(order) < 3]
    powers = np.stack([np.prod(place**order, axis=1) for order in sorted(orders, key=sum)], axis=1)
    polynomials = find_complement(powers)
    basis = np.eye(len(place), len(orders))
    basis -= polynomials.mirror @ (polynomials.inner @ polynomials.mirror[: len(orders)].T)
    affine = powers[:, : len(counts) + 1].T @ basis
    return Deflation(polynomials, np.linalg.svd(affine)[2][len(affine) :].T)


def _compute_grid_kernel(grid: Grid, ridge: float = 0.0) -> Array:
    """Compute ± φ(‖c_i − c_j‖), looked up among the distances from the first point, (…, k, k)."""
    squared = (grid.step**2) @ (make_grid_indices(grid.counts).T ** 2).astype(np.float64)
    kernel = compute_thin_plate_kernel(squared, len(grid.counts))
    kernel *= BENDING_SIGN[len(grid.counts)]
    kernel[..., 0] = ridge
    return np.asarray(kernel.take(_find_grid_offsets(grid.counts), axis=-1))


@lru_cache(maxsize=8)
def _find_grid_offsets(counts: tuple[int, ...]) -> Index:
    """Find the grid point as far from the first as points i and j are from each other, (k, k)."""
    place = make_grid_indices(counts)
    steps = np.abs(place[:, None, :] - place[None, :, :])
    return freeze(np.ravel_multi_index(tuple(np.moveaxis(steps, -1, 0)), counts))
