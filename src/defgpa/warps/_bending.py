r"""The thin-plate kernel, and coordinates of its splines in which bending is a sum of squares.

The weights w of a spline on control points C are those with C̃ᵀ w = 0, C̃ = [C 1], and its bending
is ± wᵀ K w, K = φ(‖c_i − c_j‖), with the sign that makes it positive: + in 2-D, − in 3-D. With N
an orthonormal basis of the null space of C̃ᵀ and L Lᵀ = ± NᵀKN,

    w = N L⁻ᵀ v,      bending ‖v‖².

On a grid both are cheap. N depends only on the affine class of C, which all grids of so many points
per axis share. And K, k × k, has k different entries: φ of the offsets from one corner.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from defgpa._arrays import Array, Index, frozen, inverse_of_lower, symmetrised
from defgpa.warps._affine import affine_columns
from defgpa.warps._control_points import Grid, places
from defgpa.warps._distances import TINY, squared_distances

MANY_CONTROLS = 1000  # beyond, what is kept for every grid would be too large
_ORDERS = 3  # of polynomials that are taken out of kernel columns: 1, x, x²


# the bending of Σ φ(‖x − c_k‖) w_k is this times wᵀ K w, K = φ(‖c_i − c_j‖)
BENDING_SIGN = {2: 1.0, 3: -1.0}


def thin_plate(squared: Array, dim: int, out: Array | None = None) -> Array:
    """φ of r²: r² log r² in 2-D, r in 3-D, both continuous at 0. Overwrites ``squared``."""
    target = squared if out is None else out
    if dim == 2:
        logarithm = np.log(np.maximum(squared, TINY))
        return np.multiply(squared, logarithm, out=target)
    return np.sqrt(squared, out=target)


def thin_plate_slope(squared: Array, dim: int) -> Array:
    """ψ with ∇φ = ψ · (x − c): 2 (1 + log r²) in 2-D, 1/r in 3-D, 0 at r = 0."""
    if dim == 2:
        # at r = 0 the gradient itself is 0: any finite slope will do
        return 2.0 * (1.0 + np.log(np.maximum(squared, TINY)))
    with np.errstate(divide="ignore"):
        slope = 1.0 / np.sqrt(squared)
    slope[squared == 0.0] = 0.0  # the cone's tip: the mean of the one-sided slopes
    return slope


def spline_mixing(controls: Array, ridge: float = 0.0) -> Array:
    """(…, k + d + 1, l): from bending coordinates and affine part to kernel and affine columns.

    ``controls`` (…, k, d) are the control points of each shape.
    """
    kernel = _signed(squared_distances(controls, controls), controls.shape[-1])
    return _mixing(kernel, affine_complement(controls), ridge)


def spline_mixing_on_grid(grid: Grid, ridge: float = 0.0) -> Array:
    """The ``spline_mixing`` of control points on grids, which share most of the work."""
    if np.prod(grid.counts) > MANY_CONTROLS:
        return spline_mixing(grid.points, ridge)
    return _mixing(_grid_kernel(grid), _grid_complement(grid.counts), ridge)


def _signed(squared: Array, dim: int) -> Array:
    """± φ, whose matrix is positive on the weights of a spline."""
    kernel = thin_plate(squared, dim)
    kernel *= BENDING_SIGN[dim]
    return kernel


@dataclass(frozen=True, eq=False)
class Complement:
    """N, the last columns of the reflection H = I − Y T Yᵀ: products with it cost a few columns.

    H takes the first q unit vectors to an orthonormal basis of some functions of the points, the
    affine ones for a spline, and so the others to one of what is orthogonal to them.
    """

    mirror: Array  # (…, k, q): Y
    inner: Array  # (…, q, q): T

    @property
    def _rest(self) -> Array:
        """(…, k − q, q): the rows of Y below the first q."""
        return self.mirror[..., self.inner.shape[-1] :, :]

    def applied(self, rows: Array) -> Array:
        """(…, k, j): N X for X (…, k − q, j)."""
        reflected = -self.mirror @ (self.inner @ (self._rest.mT @ rows))
        reflected[..., self.inner.shape[-1] :, :] += rows
        return reflected

    def restricted(self, kernel: Array) -> Array:
        """(…, k − q, k − q): NᵀKN of a symmetric K (…, k, k)."""
        q = self.inner.shape[-1]
        half = kernel[..., q:] - (kernel @ self.mirror) @ (self.inner @ self._rest.mT)
        half[..., q:, :] -= self._rest @ (self.inner @ (self.mirror.mT @ half))
        return symmetrised(half[..., q:, :])


def complement_of(functions: Array) -> Complement:
    """N, orthonormal, (…, k, k − q): orthogonal to q functions of k points, given as (…, k, q)."""
    basis = np.linalg.qr(functions)[0]
    q = basis.shape[-1]
    left, values, right = np.linalg.svd(basis[..., :q, :])
    # turned so that its first rows are symmetric and negative: I − A is then far from singular
    mirror = basis @ (right.mT @ left.mT)
    mirror[..., :q, :] += np.eye(q)
    inner = (left / (1.0 + values)[..., None, :]) @ left.mT
    return Complement(mirror, inner)


def affine_complement(points: Array) -> Complement:
    """The complement of every affine function of the points (…, k, d)."""
    return complement_of(affine_columns(points))


def _mixing(kernel: Array, complement: Complement, ridge: float) -> Array:
    """N L⁻ᵀ on the kernel columns, identity on the affine ones."""
    *lead, k, _ = kernel.shape
    q = complement.inner.shape[-1]
    kernel[..., np.arange(k), np.arange(k)] = ridge
    mixing = np.zeros((*lead, k + q, k))
    mixing[..., :k, :-q] = complement.applied(_inverse_root(complement.restricted(kernel)))
    mixing[..., k:, -q:] = np.eye(q)
    return mixing


def _inverse_root(energy: Array) -> Array:
    """X with Xᵀ E X = I: L⁻ᵀ of Cholesky, or of the eigenvectors where E is singular."""
    try:
        lower: Array = np.linalg.cholesky(energy)  # type: ignore[assignment]
    except np.linalg.LinAlgError:
        return _eigen_inverse_root(energy)
    return inverse_of_lower(lower).mT


def _eigen_inverse_root(energy: Array) -> Array:
    """X with Xᵀ E X = I on the directions that bend at all, by eigenvectors.

    Coincident control points leave directions without bending and without effect:
    their columns become zero, and the penalty keeps their weights at zero.
    """
    values, vectors = np.linalg.eigh(energy)
    floor = energy.shape[-1] * np.finfo(np.float64).eps * np.abs(values).max(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.where(values > floor, 1.0 / np.sqrt(values), 0.0)
    return vectors * root[..., None, :]


@lru_cache(maxsize=8)
def _grid_complement(counts: tuple[int, ...]) -> Complement:
    """N of every grid of so many points per axis."""
    return affine_complement(places(counts).astype(np.float64))


@dataclass(frozen=True, eq=False)
class Deflation:
    """An orthonormal N as `Complement` has, but with polynomials of low order in front.

    Kernels grow with the distance, so most of the columns Φ is a polynomial of low order in the
    control points. It cancels in the features, and the digits of ΦᵀΦ would be lost with it. In ΦN
    it stands in the first few columns, and all others are small.
    """

    polynomials: Complement  # the reflection I − Y T Yᵀ that takes q unit vectors to them
    bent: Array  # (q, q − d − 1): those of them that are orthogonal to all affine functions

    @property
    def _reflection(self) -> tuple[Array, Array]:
        """Y and T Yᵀ."""
        return self.polynomials.mirror, self.polynomials.inner @ self.polynomials.mirror.T

    def columns(self, columns: Array) -> Array:
        """(…, p, k + j − d − 1): [ΦN …] of columns [Φ …] (…, p, k + j), which are overwritten."""
        mirror, back = self._reflection
        (k, q), affine = mirror.shape, len(self.bent) - self.bent.shape[1]
        kernel = columns.mT[..., :k, :]  # as it lies in memory, the points side by side
        kernel -= back.T @ (mirror.T @ kernel)
        kernel[..., affine:q, :] = self.bent.T @ kernel[..., :q, :]
        return columns[..., affine:]

    def coefficients(self, rows: Array) -> Array:
        """(…, k + j − d − 1, l): coefficients of [ΦN …] for those of [Φ …], ``rows``."""
        mirror, back = self._reflection
        k, q = mirror.shape
        reflected = rows[..., :k, :] - back.T @ (mirror.T @ rows[..., :k, :])
        low = self.bent.T @ reflected[..., :q, :]
        return np.concatenate([low, reflected[..., q:, :], rows[..., k:, :]], axis=-2)


@lru_cache(maxsize=8)
def grid_deflation(counts: tuple[int, ...]) -> Deflation:
    """That of every grid of so many points per axis; as many orders as the points can tell."""
    place = places(counts) / (np.array(counts) - 1.0) - 0.5
    orders = [own for own in np.ndindex(*np.minimum(counts, _ORDERS)) if sum(own) < _ORDERS]
    powers = np.stack([np.prod(place**own, axis=1) for own in sorted(orders, key=sum)], axis=1)
    polynomials = complement_of(powers)
    basis = np.eye(len(place), len(orders))
    basis -= polynomials.mirror @ (polynomials.inner @ polynomials.mirror[: len(orders)].T)
    affine = powers[:, : len(counts) + 1].T @ basis
    return Deflation(polynomials, np.linalg.svd(affine)[2][len(affine) :].T)


def _grid_kernel(grid: Grid) -> Array:
    """(…, k, k): φ(‖c_i − c_j‖), looked up among the distances from the first point."""
    squared = (grid.step**2) @ (places(grid.counts).T ** 2).astype(np.float64)
    kernel = _signed(squared, len(grid.counts))
    return np.asarray(kernel.take(_offsets(grid.counts), axis=-1))


@lru_cache(maxsize=8)
def _offsets(counts: tuple[int, ...]) -> Index:
    """(k, k): of points i and j of a grid, the one that is as far from the first as they are."""
    place = places(counts)
    steps = np.abs(place[:, None, :] - place[None, :, :])
    return frozen(np.ravel_multi_index(tuple(np.moveaxis(steps, -1, 0)), counts))
