r"""Radial basis warps: one kernel, many centres, and polynomials that are free.

    warp(x) = Σ_k φ(‖x − c_k‖) w_k + Σ_e q_e(x) a_e

in the shape's own units (centroid 0, RMS radius 1). Two ways to charge the kernel weights, both
times τ p for p visible points:

    NativeNorm     tr(wᵀ K w), K = φ(‖c_i − c_j‖), subject to Qᵀw = 0, Q = q_e(c_k):
                   with N an orthonormal basis of the null space of Qᵀ and NᵀKN = V Σ Vᵀ, the
                   weights are w = N V Σ^(−1/2) v and the norm is ‖v‖², as for the thin-plate spline
    WeightRidge    ‖w‖², no condition

The centres lie on a grid, where one puts them, or at the landmarks themselves. Then, with
Gaussians, Π the projection off the affine functions and μ = τ p, a shape costs
P = μ Π (KΠ + μI)⁻¹, which is kernel GPA. A landmark that a shape does not see is no centre of
its warp: its kernel is not used.

The polynomials are free. Without them (``polynomial_degree=None``) so is nothing, not even a
translation: the reference is then centred by the soft constraint, or by ``ExactCentering``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpstrf, dtrtri

from defgpa.arrays import Array, Mask, compute_inverse_root
from defgpa.geometry import Geometry, measure_points
from defgpa.warps.base import FactoredBasis, WarpFamily, normalize_points
from defgpa.warps.box import make_principal_box
from defgpa.warps.control_points import (
    PointsPerAxis,
    check_points_per_axis,
    make_control_points,
    make_principal_grid,
)
from defgpa.warps.distances import compute_squared_distances
from defgpa.warps.kernels import DistanceQuantile, Gaussian, Kernel
from defgpa.warps.parameters import require_degree, require_number
from defgpa.warps.polynomial import (
    evaluate_polynomial_gradients,
    evaluate_polynomials,
    make_exponents,
)
from defgpa.warps.thin_plate import compute_mixing, find_complement
from defgpa.warps.warp import Warp

_MANY_CENTRES = 150  # beyond, far fewer functions than centres make up a smooth kernel


class KernelPenalty(Protocol):
    """The penalty of the weights of the kernels."""

    def matrix(self, kernel: Array) -> Array:
        """Return the matrix M (…, k, k) of the penalty tr wᵀMw of the weights; ``kernel`` is K."""
        ...

    def mixing(self, kernel: Array, border: Array) -> Array | None:
        """Return the map (…, k + q, l) from q free and other, charged coordinates to weights."""
        ...

    def require_valid(self, kernel: Kernel, degree: int | None) -> None:
        """Raise a ValueError if this penalty is not a norm for the kernel."""
        ...


@dataclass(frozen=True)
class NativeNorm:
    """The norm the kernel itself defines, tr(wᵀKw): the smoother the warp, the cheaper."""

    def matrix(self, kernel: Array) -> Array:
        """Return K."""
        return kernel

    def mixing(self, kernel: Array, border: Array) -> Array:
        """Return N V Σ^(−1/2) on the kernels, the identity on the polynomials."""
        # a wide smooth kernel leaves directions that are nothing but rounding
        root = partial(compute_inverse_root, negligible=1e-12)
        has_few = border.shape[-2] <= _MANY_CENTRES
        return compute_mixing(
            kernel, find_complement(border), root if has_few else _compute_low_rank_root
        )

    def require_valid(self, kernel: Kernel, degree: int | None) -> None:
        """Raise a ValueError if a conditionally positive definite kernel lacks its polynomials."""
        if kernel.order > (0 if degree is None else degree + 1):
            raise ValueError(
                f"The native norm of {kernel!r} needs a 'polynomial_degree' of at least "
                f"{kernel.order - 1} in RadialBasis. Got {degree!r} instead; "
                "penalty=WeightRidge() needs none."
            )


@dataclass(frozen=True)
class WeightRidge:
    """The plain size of the weights, ‖w‖²."""

    def matrix(self, kernel: Array) -> Array:
        """Return the identity."""
        return np.broadcast_to(np.eye(kernel.shape[-1]), kernel.shape)

    def mixing(self, kernel: Array, border: Array) -> None:
        """Return None: the weights themselves are the coordinates."""
        return

    def require_valid(self, kernel: Kernel, degree: int | None) -> None:
        """Accept every kernel: the ridge is always a norm."""


@dataclass(frozen=True, eq=False)
class RadialFunctions(FactoredBasis):
    """Kernels around given centres, and polynomials; one shape, or a stack of them."""

    kernel: Kernel
    degree: int | None  # of the polynomials
    controls: Array  # (…, k, d), in the shape's own units
    width: Array  # (…,), in the shape's own units
    centre: Array  # (…, d)
    scale: Array  # (…,)
    mixing: Array | None  # (…, k + q, l)
    stiffness: Array  # (…,): τ p
    charge: KernelPenalty

    @property
    def control_points(self) -> Array:
        """(…, k, d): the centres in the coordinates of the shape."""
        return self.controls * self.scale[..., None, None] + self.centre[..., None, :]

    def columns(self, points: Array) -> Array:
        """Return [Φ, q_e(x̂)], (…, p, k + q)."""
        x = normalize_points(points, self.centre, self.scale)
        return np.concatenate(
            [
                self.kernel.values(self._compute_squared_ratios(x)),
                make_free_columns(x, self.degree),
            ],
            axis=-1,
        )

    def column_gradients(self, points: Array) -> Array:
        """Return ∇φ = (dφ/ds) · 2 (x − c) / width², (…, p, d, k + q)."""
        x = normalize_points(points, self.centre, self.scale)
        slopes = (
            self.kernel.slopes(self._compute_squared_ratios(x))
            * (2.0 / self.width**2)[..., None, None]
        )
        offset = x[..., :, None, :] - self.controls[..., None, :, :]
        radial = np.swapaxes(slopes[..., None] * offset, -1, -2)
        free = make_free_column_gradients(x, self.degree)
        return np.concatenate([radial, free], axis=-1) / self.scale[..., None, None, None]

    def penalty(self) -> Array:
        """Return τ p on the charged coordinates, nothing on the polynomials, (…, l, l)."""
        k, d = self.controls.shape[-2:]
        q = _count_polynomials(d, self.degree)
        if self.mixing is not None:
            size = self.mixing.shape[-1]
            return self.stiffness[..., None, None] * np.diag(np.arange(size) < size - q)
        charged = np.zeros((*self.scale.shape, k + q, k + q))
        charged[..., :k, :k] = self.charge.matrix(
            self.kernel.values(self._compute_squared_ratios(self.controls))
        )
        return self.stiffness[..., None, None] * charged

    def invert(self, warp: Warp) -> Warp:
        """Fit an approximate inverse: the spline that takes images of a grid in the box back."""
        # the shape reaches beyond a grid of 5 × 5 centres by a quarter of its sides
        return make_principal_box(measure_points(self.control_points), padding=0.25)[
            0
        ].approximate_inverse(warp)

    def unmix(self) -> RadialFunctions:
        """Return these functions by the coefficients of their columns [Φ, q_e]."""
        return replace(self, mixing=None)

    def _compute_squared_ratios(self, x: Array) -> Array:
        """Compute s = (r / width)², (…, p, k)."""
        return compute_squared_distances(x, self.controls) / (self.width**2)[..., None, None]


@dataclass(frozen=True, repr=False)
class RadialBasis(WarpFamily[RadialFunctions]):
    """Radial basis warps: Gaussians, multiquadrics, Wendland functions, polyharmonic splines.

    Parameters
    ----------
    kernel : Kernel
        ``Gaussian()``, ``Multiquadric()``, ``InverseMultiquadric()``, ``WendlandC2()``,
        ``WendlandC4()``, ``Polyharmonic(exponent)``; the width belongs to the kernel.
    points_per_axis : int or sequence of d int
        Centres along each principal axis of the shape, the longest axis first.
    control_points : array (k, d), callable or "landmarks", optional
        Explicit centres instead of the grid, in the coordinates of the shapes; a function
        that makes them from the visible points (p, d) of a shape; or these points themselves.
    polynomial_degree : int or None
        Degree of the polynomials that are free: 1 for all affine maps, 0 for translations only,
        None for no polynomials at all.
    penalty : KernelPenalty
        ``NativeNorm()``, the norm that the kernel defines, or ``WeightRidge()``.
    smoothing : float
        τ, relative and dimensionless: a shape with p visible points is charged τ p times the
        penalty of its warp in the shape's own units (centroid 0, RMS radius 1).

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(40, 2))
    >>> RadialBasis(Gaussian(width=1.0), points_per_axis=4).basis(points).features(points).shape
    (40, 16)
    """

    kernel: Kernel = field(default_factory=Gaussian)
    points_per_axis: PointsPerAxis = 5
    control_points: ArrayLike | Callable[[Array], ArrayLike] | Literal["landmarks"] | None = None
    polynomial_degree: int | None = 1
    penalty: KernelPenalty = field(default_factory=NativeNorm)
    smoothing: float = 1e-3

    def bases(self, geometry: Geometry) -> RadialFunctions:
        """Make the bases of n shapes, stacked."""
        self._check()
        local = self._place_controls(geometry)
        visible = geometry.visible if self._at_landmarks else np.ones(local.shape[:-1], dtype=bool)
        width = _find_widths(self.kernel, local, visible)
        squared = compute_squared_distances(local, local) / (width**2)[:, None, None]
        kernel, border = (
            self.kernel.values(squared),
            make_free_columns(local, self.polynomial_degree),
        )
        mixing = self._compute_mixing(kernel, border, visible)
        return RadialFunctions(
            kernel=self.kernel,
            degree=self.polynomial_degree,
            controls=local,
            width=width,
            centre=geometry.centre,
            scale=geometry.size,
            mixing=mixing,
            stiffness=self.smoothing * geometry.mass,
            charge=self.penalty,
        )

    @property
    def _at_landmarks(self) -> bool:
        return isinstance(self.control_points, str)

    def _compute_mixing(self, kernel: Array, border: Array, visible: Mask) -> Array | None:
        """Compute the mixing of the penalty, zero for centres at missing landmarks.

        Parameters
        ----------
        kernel, border : array (n, k, k), (n, k, q)
            Kernel and polynomials at the centres of every shape.
        visible : array (n, k) of bool
        """
        if visible.all():
            return self.penalty.mixing(kernel, border)
        present, q = visible.astype(np.float64), border.shape[-1]
        pairs = present[:, :, None] * present[:, None, :]
        mixing = self.penalty.mixing(kernel * pairs, border * present[..., None])
        mask = np.concatenate([present, np.ones((len(present), q))], axis=-1)[..., None]
        return mask * (np.eye(mask.shape[-2]) if mixing is None else mixing)

    def _place_controls(self, geometry: Geometry) -> Array:
        """Return the centres (n, k, d) in the units of the shape, missing landmarks included."""
        d = geometry.points.shape[-1]
        if self.control_points is None:
            counts = check_points_per_axis(self.points_per_axis, d, "RadialBasis")
            controls = make_principal_grid(geometry, counts).points
        elif self._at_landmarks:
            controls = normalize_points(geometry.points, geometry.centre, geometry.size)
        else:
            points = make_control_points(self.control_points, geometry, "RadialBasis")
            controls = normalize_points(points, geometry.centre, geometry.size)
        n_centres = (
            int(geometry.count.min(initial=np.inf)) if self._at_landmarks else controls.shape[-2]
        )
        n_polynomials = _count_polynomials(d, self.polynomial_degree)
        if n_centres < n_polynomials:
            raise ValueError(
                f"RadialBasis with polynomials of degree {self.polynomial_degree} in {d}-D needs "
                f"at least {n_polynomials} centres. Got {n_centres} instead."
            )
        return controls

    def _check(self) -> None:
        require_number(self.smoothing, "smoothing", "RadialBasis")
        if self._at_landmarks and self.control_points != "landmarks":
            raise ValueError(
                "The 'control_points' parameter of RadialBasis must be points (k, d), a function "
                f"that makes them, or 'landmarks'. Got {self.control_points!r} instead."
            )
        if self.polynomial_degree is not None:
            require_degree(self.polynomial_degree, "polynomial_degree", "RadialBasis", 0, 4)
        if isinstance(self.kernel, (str, type)) or not hasattr(self.kernel, "slopes"):
            raise ValueError(
                "The 'kernel' parameter of RadialBasis must be a kernel such as Gaussian() or "
                f"Polyharmonic(3). Got {self.kernel!r} instead."
            )
        self.penalty.require_valid(self.kernel, self.polynomial_degree)


def landmark_kernel(quantile: float = 0.2, smoothing: float = 1e-3) -> RadialBasis:
    """Make the warps of kernel GPA: affine maps, and a Gaussian around every visible landmark.

    Parameters
    ----------
    quantile : float
        The width σ of exp(−r²/2σ²) is this quantile of the distances between the landmarks.
    smoothing : float
        τ, relative and dimensionless; the μ of kernel GPA is τ times the visible landmarks.

    Returns
    -------
    RadialBasis
        Radial basis warps: Gaussians, multiquadrics, Wendland functions, polyharmonic splines.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(40, 2))
    >>> landmark_kernel().basis(points).features(points).shape
    (40, 40)
    """
    width = DistanceQuantile(quantile, times=float(np.sqrt(2.0)))
    return RadialBasis(Gaussian(width), control_points="landmarks", smoothing=smoothing)


def make_free_columns(x: Array, degree: int | None) -> Array:
    """Make the polynomials (…, p, q) of points in the shape's units; none for degree None."""
    if degree is None:
        return np.empty((*x.shape[:-1], 0))
    return evaluate_polynomials(x, degree)


def make_free_column_gradients(x: Array, degree: int | None) -> Array:
    """Make the derivatives (…, p, d, q) of the polynomials by each scaled coordinate."""
    if degree is None:
        return np.empty((*x.shape, 0))
    return evaluate_polynomial_gradients(x, degree)


def _count_polynomials(dim: int, degree: int | None) -> int:
    return 0 if degree is None else len(make_exponents(dim, degree))


def _find_widths(kernel: Kernel, centres: Array, visible: Mask) -> Array:
    """Find the widths (n,) for the centres (n, k, d) that are visible."""
    if visible.all():
        return kernel.widths(centres)
    counts = visible.sum(axis=1)
    widths = np.empty(len(centres))
    for count in np.unique(counts):
        alike = counts == count
        visible_centres = centres[alike][visible[alike]].reshape(-1, count, centres.shape[-1])
        widths[alike] = kernel.widths(visible_centres)
    return widths


def _compute_low_rank_root(energy: Array) -> Array:
    """Compute X with Xᵀ E X = I on the directions that pivoted Cholesky finds, else zero.

    The kernels of many centres are nearly combinations of a few: after r of them, chosen
    greedily, nothing is left of the others, and r functions are enough.
    """
    roots = [_find_root_of_pivots(matrix) for matrix in energy.reshape(-1, *energy.shape[-2:])]
    rank = max(root.shape[-1] for root in roots)
    stacked = np.zeros((len(roots), energy.shape[-1], rank))
    for root, padded in zip(roots, stacked, strict=True):
        padded[:, : root.shape[-1]] = root
    return stacked.reshape(*energy.shape[:-1], rank)


def _find_root_of_pivots(energy: Array) -> Array:
    """Find L⁻ᵀ (k, r) of the r pivots, which leave 1e-13 of the largest kernel."""
    largest = float(np.diagonal(energy).max())
    factor, pivots, rank, _ = dpstrf(energy, tol=1e-13 * largest, lower=1)
    root = np.zeros((len(energy), rank))
    root[pivots[:rank] - 1] = dtrtri(np.tril(factor[:rank, :rank]), lower=1)[0].T
    return root
