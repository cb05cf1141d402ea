r"""Sums over the landmarks of centred shapes: all that proportions and poses ask of the points.

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

from defgpa.arrays import Array, Index, Mask
from defgpa.geometry import Geometry, Moments, compute_moments, compute_visible_scatters
from defgpa.solvers.datum_space import estimate_complete_sizes

THIN = 1e-7  # of the longest extent of a shape: below, it has no such direction


@dataclass(frozen=True, eq=False)
class CentredSums:
    """Sums over all landmarks of n shapes."""

    geometry: Geometry

    @property
    def centred(self) -> Array:
        """(n, m, d): D̄, missing points zero."""
        return self.geometry.centred

    @cached_property
    def rows(self) -> Array:
        """(n·d, m): (ΓD̄)ᵀ of all shapes below each other."""
        weighted = weigh_points(self.geometry.centred, self.geometry.weights)
        return np.ascontiguousarray(weighted.mT).reshape(-1, weighted.shape[1])

    @cached_property
    def masses(self) -> Array:
        """(n, m): Γ; or ones (1, m) where every shape has all landmarks and no weights."""
        if self.geometry.weights is not None:
            return self.geometry.weights
        visible = self.geometry.visible
        return np.asarray(visible[:1] if visible.all() else visible, dtype=np.float64)

    @property
    def is_uniform(self) -> bool:
        """Whether every landmark of every shape counts once."""
        return self.geometry.weights is None and len(self.masses) == 1

    @cached_property
    def squares(self) -> Array:
        """(n,): ‖Γ^½D̄‖²."""
        weighted = weigh_points(self.geometry.centred, self.geometry.weights)
        return np.einsum("nmd,nmd->n", weighted, self.geometry.centred)

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
        geometry = self.geometry
        return compute_moments(columns, geometry.centred, geometry.visible, geometry.weights)

    def complete_sizes(self, reference: Array, squared_scales: Array) -> Array:
        """Estimate the sizes (n,) of the shapes with their missing landmarks where S has them."""
        squares = np.einsum("nmd,nmd->n", self.geometry.centred, self.geometry.centred)
        visible = self.geometry.visible.astype(np.float64)
        return estimate_complete_sizes(squares, visible, reference, squared_scales)

    @property
    def mass(self) -> Array | None:
        """(n,): the total weight of each shape, if landmarks have weights."""
        return None if self.geometry.weights is None else self.geometry.weights.sum(axis=-1)


@dataclass(frozen=True, eq=False)
class FoldSums:
    """The same sums over what remains of n shapes in each of g folds of equal size."""

    shapes: CentredSums
    landmarks: Index  # (g, N): J
    remaining: Index  # (g, m'): K

    @cached_property
    def left_out(self) -> Array:
        """(g, n, N, d): the landmarks J about the centroid of those that remain."""
        return self._left_out - self.shift[:, :, None, :]

    @cached_property
    def _left_out(self) -> Array:
        return np.moveaxis(self.shapes.geometry.centred[:, self.landmarks], 1, 0)

    @cached_property
    def _left_masses(self) -> Array:
        """(g, n or 1, N)."""
        return np.moveaxis(self.shapes.masses[:, self.landmarks], 1, 0)

    @cached_property
    def totals(self) -> Array:
        """(g, n or 1): the weight of what remains of a shape."""
        return self.shapes.masses.sum(axis=1) - self._left_masses.sum(axis=2)

    @cached_property
    def shift(self) -> Array:
        """(g, n, d): t, by which the centroid moves."""
        moved = (self._left_masses[..., None, :] @ self._left_out)[..., 0, :]
        return -moved / np.where(self.totals > 0.0, self.totals, 1.0)[..., None]

    @cached_property
    def scatters(self) -> Array:
        """(g, n, d, d): D̄_KᵀΓD̄_K."""
        left = (self._left_out * self._left_masses[..., None]).mT @ self._left_out
        moved = self.totals[..., None, None] * self.shift[..., :, None] * self.shift[..., None, :]
        return np.asarray(self.shapes.geometry.scatter - left - moved)

    @cached_property
    def inverse_scatters(self) -> Array:
        """(g, n, d, d): (D̄_KᵀΓD̄_K)⁺."""
        return np.asarray(np.linalg.pinv(self.scatters, rcond=THIN**2, hermitian=True))

    @cached_property
    def squares(self) -> Array:
        """(g, n): ‖Γ^½D̄_K‖²."""
        return np.einsum("gndd->gn", self.scatters)

    @property
    def mass(self) -> Array | None:
        """(g, n): the total weight of what remains of each shape, if landmarks have weights."""
        return None if self.shapes.geometry.weights is None else self.totals

    def cross(self, columns: Array) -> Array:
        """Compute D̄_KᵀΓX (g, n, d, k) for columns X (g, m', k)."""
        padded = self._pad(columns)
        n, _, d = self.shapes.geometry.centred.shape
        g, k = len(columns), columns.shape[-1]
        products = np.moveaxis((self.shapes.rows @ padded).reshape(n, d, g, k), 2, 0)
        totals = (self.shapes.masses @ padded).reshape(-1, g, k)  # Σ γ x̃
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
        return Moments(
            self._scatter_columns(columns), self.cross(columns).mT, self.squares, self.mass
        )

    def complete_sizes(self, reference: Array, squared_scales: Array) -> Array:
        """Estimate the sizes (g, n) of the shapes with their missing landmarks where S has them."""
        if self.shapes.is_uniform:
            return np.sqrt(self.squares)
        centred, visible = self.centred, self.visible
        squares = np.einsum("gnmd,gnmd->gn", centred, centred)
        return estimate_complete_sizes(
            squares, visible.astype(np.float64), reference, squared_scales
        )

    @property
    def visible(self) -> Mask:
        """(g, n, m'): which of the remaining landmarks each shape has."""
        return np.moveaxis(self.shapes.geometry.visible[:, self.remaining], 1, 0)

    @property
    def centred(self) -> Array:
        """(g, n, m', d): D̄_K itself, missing points zero."""
        centred = np.moveaxis(self.shapes.geometry.centred[:, self.remaining], 1, 0)
        return np.asarray((centred - self.shift[:, :, None, :]) * self.visible[..., None])

    def sum_projections(self) -> Array:
        """Compute Σ (ΓQ)(ΓQ)ᵀ (g, m', m'), Q an orthonormal basis of D̄_K."""
        weights = self.shapes.geometry.weights
        if weights is not None:
            weights = np.moveaxis(weights[:, self.remaining], 1, 0)
        rows = weigh_points(orthonormalise(self.centred, self.scatters).mT, weights).mT
        flat = rows.reshape(len(rows), -1, rows.shape[-1])
        return np.asarray(flat.mT @ flat)

    def _pad(self, columns: Array) -> Array:
        """Return columns (g, m', k) of all folds beside each other, (m, g·k), zero at J."""
        g, _, k = columns.shape
        padded = np.zeros((self.shapes.masses.shape[1], g, k))
        padded[self.remaining, np.arange(g)[:, None]] = columns
        return padded.reshape(-1, g * k)

    def _scatter_columns(self, columns: Array) -> Array:
        """Compute X̄ᵀΓX̄ (g, n or 1, k, k) of columns X (g, m', k)."""
        if self.shapes.is_uniform:
            centred = columns - columns.mean(axis=-2, keepdims=True)
            return (centred.mT @ centred)[:, None]
        masses = np.moveaxis(self.shapes.masses[:, self.remaining], 1, 0)
        return compute_visible_scatters(columns, masses)


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
