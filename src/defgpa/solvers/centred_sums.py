r"""Sums over the landmarks of centred shapes, all that proportions and poses depend on.

With the points D̄ of a shape about their centroid, weights Γ and columns X of any reference these
are D̄ᵀΓX, D̄ᵀΓD̄ and their like. Landmarks J that are left out only take their terms away, and
move the centroid of those that remain, K, by t = −Σ_J γ d̄ / Σ_K γ:

    Σ_K γ (d̄ − t) xᵀ  =  Σ γ d̄ x̃ᵀ − t Σ γ x̃ᵀ,        x̃ = x on K, 0 on J,

so the sums of all folds are one product with the points of all landmarks, of which no copy is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from defgpa.arrays import Array, Index, Mask, Stack
from defgpa.geometry import Geometry, Moments, compute_moments, compute_visible_scatters
from defgpa.solvers.datum_space import estimate_complete_sizes

THIN = 1e-7  # of the longest extent of a shape: below, it has no such direction


@dataclass(frozen=True, eq=False)
class CentredSums:
    """Sums over all landmarks of n shapes."""

    geometry: Geometry
    rows: Array  # (n·d, m): (ΓD̄)ᵀ of all shapes below each other
    masses: Array  # (n, m): Γ; or ones (1, m) where every shape has all landmarks and no weights
    squares: Array  # (n,): ‖Γ^½D̄‖²
    mass: Array | None  # (n,): mean weight of the landmarks of each shape, if they have weights
    is_uniform: bool  # whether every landmark of every shape counts once

    @classmethod
    def of(cls, geometry: Geometry) -> CentredSums:
        """Sum over the landmarks of shapes."""
        weights, visible = geometry.weights, geometry.visible
        weighted = weigh_points(geometry.centred, weights)
        masses = visible[:1] if visible.all() else visible
        return cls(
            geometry,
            np.ascontiguousarray(weighted.mT).reshape(-1, weighted.shape[1]),
            masses.astype(np.float64) if weights is None else weights,
            np.einsum("nmd,nmd->n", weighted, geometry.centred),
            None if weights is None else geometry.mean_weights,
            weights is None and bool(visible.all()),
        )

    @cached_property
    def inverse_scatters(self) -> Array:
        """(n, d, d): (D̄ᵀΓD̄)⁺."""
        return np.asarray(np.linalg.pinv(self.geometry.scatter, rcond=THIN**2, hermitian=True))

    def cross(self, columns: Array) -> Array:
        """Compute D̄ᵀΓX (n, d, k) for columns X (m, k)."""
        n, _, d = self.geometry.centred.shape
        return (self.rows @ columns).reshape(n, d, -1)

    def combine(self, matrices: Array) -> Array:
        """Compute Σ ΓD̄_iM_i (m, k) for one matrix (n, d, k) per shape."""
        return (matrices.reshape(len(self.rows), -1).T @ self.rows).T

    def moments(self, columns: Array) -> Moments:
        """Compute the moments of the shapes with columns (m, k)."""
        return compute_moments(columns, self.geometry)

    def complete_sizes(self, reference: Array, squared_scales: Array) -> Array:
        """Estimate the sizes (n,) of the shapes with their missing landmarks where S has them."""
        squares = np.einsum("nmd,nmd->n", self.geometry.centred, self.geometry.centred)
        visible = self.geometry.visible.astype(np.float64)
        return estimate_complete_sizes(squares, visible, reference, squared_scales)


@dataclass(frozen=True, eq=False)
class FoldSums(Stack):
    """The same sums over what remains of n shapes in each of g folds of equal size."""

    shapes: CentredSums
    landmarks: Index  # (g, N): J
    remaining: Index  # (g, m'): K
    left_out: Array  # (g, n, N, d): the landmarks J about the centroid of those that remain
    shift: Array  # (g, n, d): t, by which the centroid moves
    scatters: Array  # (g, n, d, d): D̄_KᵀΓD̄_K
    squares: Array  # (g, n): ‖Γ^½D̄_K‖²
    mass: Array | None  # (g, n): mean weight of what remains of each shape, if there are weights

    @classmethod
    def of(cls, shapes: CentredSums, landmarks: Index, remaining: Index) -> FoldSums:
        """Subtract the landmarks (g, N) of folds from the sums over shapes."""
        points = np.moveaxis(shapes.geometry.centred[:, landmarks], 1, 0)
        masses = np.moveaxis(shapes.masses[:, landmarks], 1, 0)
        totals = shapes.masses.sum(axis=1) - masses.sum(axis=2)
        moved = (masses[..., None, :] @ points)[..., 0, :]
        shift = -moved / np.where(totals > 0.0, totals, 1.0)[..., None]
        scatters = shapes.geometry.scatter - (points * masses[..., None]).mT @ points
        scatters -= totals[..., None, None] * shift[..., :, None] * shift[..., None, :]
        squares = np.einsum("gndd->gn", scatters)
        left_out, mass = points - shift[:, :, None, :], None
        if shapes.mass is not None:
            remain = np.moveaxis(shapes.geometry.visible[:, remaining], 1, 0)
            mass = totals / np.maximum(remain.sum(axis=-1), 1)
        return cls(shapes, landmarks, remaining, left_out, shift, scatters, squares, mass)

    @cached_property
    def inverse_scatters(self) -> Array:
        """(g, n, d, d): (D̄_KᵀΓD̄_K)⁺."""
        return np.asarray(np.linalg.pinv(self.scatters, rcond=THIN**2, hermitian=True))

    def cross(self, columns: Array) -> Array:
        """Compute D̄_KᵀΓX (g, n, d, k) for columns X (g, m', k)."""
        n, m, d = self.shapes.geometry.centred.shape
        g, _, k = columns.shape
        padded = np.zeros((m, g, k))  # zero at J
        padded[self.remaining, np.arange(g)[:, None]] = columns
        beside = padded.reshape(m, g * k)
        products = np.moveaxis((self.shapes.rows @ beside).reshape(n, d, g, k), 2, 0)
        totals = (self.shapes.masses @ beside).reshape(-1, g, k)  # Σ γ x̃
        return products - self.shift[..., None] * np.moveaxis(totals, 1, 0)[..., None, :]

    def combine(self, matrices: Array) -> Array:
        """Compute Σ ΓD̄_K,iM_i (g, m', k) for one matrix (g, n, d, k) per shape."""
        g, n, d, k = matrices.shape
        stacked = np.moveaxis(matrices, 0, 2).reshape(n * d, g * k)
        moved = (self.shift[..., None, :] @ matrices)[..., 0, :]  # (g, n, k)
        if self.shapes.is_uniform:
            moved = moved.sum(axis=1, keepdims=True)
        moved = np.moveaxis(moved, 0, 1).reshape(-1, g * k)
        image = self.shapes.rows.T @ stacked - self.shapes.masses.T @ moved
        folds = np.arange(g)[:, None]
        return np.ascontiguousarray(image.reshape(-1, g, k)[self.remaining, folds])

    def moments(self, columns: Array) -> Moments:
        """Compute the moments of what remains of the shapes with columns (g, m', k)."""
        if self.shapes.is_uniform:
            centred = columns - columns.mean(axis=-2, keepdims=True)
            scatters = (centred.mT @ centred)[:, None]
        else:
            masses = np.moveaxis(self.shapes.masses[:, self.remaining], 1, 0)
            scatters = compute_visible_scatters(columns, masses)
        return Moments(scatters, self.cross(columns).mT, self.squares, self.mass)

    def complete_sizes(self, reference: Array, squared_scales: Array) -> Array:
        """Estimate the sizes (g, n) of the shapes with their missing landmarks where S has them."""
        if self.shapes.is_uniform:
            return np.sqrt(self.squares)
        centred, visible = self.centre_points(), self._get_visible()
        squares = np.einsum("gnmd,gnmd->gn", centred, centred)
        return estimate_complete_sizes(
            squares, visible.astype(np.float64), reference, squared_scales
        )

    def centre_points(self) -> Array:
        """Compute D̄_K itself (g, n, m', d), missing points zero."""
        centred = np.moveaxis(self.shapes.geometry.centred[:, self.remaining], 1, 0)
        return np.asarray((centred - self.shift[:, :, None, :]) * self._get_visible()[..., None])

    def _get_visible(self) -> Mask:
        """Return which of the remaining landmarks each shape has, (g, n, m')."""
        return np.moveaxis(self.shapes.geometry.visible[:, self.remaining], 1, 0)

    @cached_property
    def projections(self) -> Array:
        """(g, m', m'): Σ (ΓQ)(ΓQ)ᵀ, Q an orthonormal basis of D̄_K: what anchors elastic folds."""
        weights = self.shapes.geometry.weights
        if weights is not None:
            weights = np.moveaxis(weights[:, self.remaining], 1, 0)
        rows = weigh_points(orthonormalise(self.centre_points(), self.scatters).mT, weights).mT
        flat = rows.reshape(len(rows), -1, rows.shape[-1])
        return np.asarray(flat.mT @ flat)


def weigh_points(points: Array, weights: Array | None) -> Array:
    """Multiply points (…, m, d) by the weights (…, m) of their landmarks, if there are any."""
    return points if weights is None else weights[..., None] * points


def orthonormalise(centred: Array, scatters: Array) -> Array:
    """Compute Qᵀ (…, d, m) of centred shapes (…, m, d), QᵀΓQ = I; flat directions are zero.

    ``scatters`` (…, d, d) are their D̄ᵀΓD̄.
    """
    values, axes = np.linalg.eigh(scatters)
    is_extended = values > THIN**2 * values[..., -1:]
    lengths = np.sqrt(np.where(is_extended, values, 1.0))
    scaled = axes * np.where(is_extended, 1.0 / lengths, 0.0)[..., None, :]
    return np.asarray((centred @ scaled).mT)
