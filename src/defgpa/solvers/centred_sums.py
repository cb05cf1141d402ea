r"""Sums over the landmarks of centred shapes, all that proportions and poses depend on.

With the points D̄ of a shape about their centroid, weights Γ and columns X of any reference these
are D̄ᵀΓX, D̄ᵀΓD̄ and their like. Landmarks J that are left out only take their terms away, and
move the centroid of those that remain, K, by t = −Σ_J γ d̄ / Σ_K γ:

    Σ_K γ (d̄ − t) xᵀ  =  Σ γ d̄ x̃ᵀ − t Σ γ x̃ᵀ,        x̃ = x on K, 0 on J,

so the sums of all folds are one product with the points of all landmarks, of which no copy is made.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from defgpa.arrays import Array, Index
from defgpa.geometry import Geometry, Moments, compute_visible_scatters

THIN = 1e-7  # of the longest extent of a shape: below, it has no such direction


class CentredSums:
    """Sums over what remains of n shapes in each of g folds of equal size.

    Parameters
    ----------
    geometry : Geometry
        The shapes.
    left_out : ndarray of int, shape (g, n_left_out), optional
        The landmarks J of each fold; none by default, in the only fold.

    Attributes
    ----------
    remaining : ndarray of int, shape (g, n_remaining)
        K.
    points_left_out : ndarray of shape (g, n, n_left_out, d)
        About the centroid of the points that remain.
    scatters, squares : ndarray of shape (g, n, d, d) and (g, n)
        D̄_KᵀΓD̄_K, and its trace.
    mass : ndarray of shape (g, n) or None
        Mean weight of what remains of each shape, if there are weights.
    """

    def __init__(self, geometry: Geometry, left_out: Index | None = None) -> None:
        m = geometry.centred.shape[1]
        self.geometry = geometry
        self.left_out = np.empty((1, 0), dtype=np.intp) if left_out is None else left_out
        is_remaining = np.ones((len(self.left_out), m), dtype=bool)
        np.put_along_axis(is_remaining, self.left_out, False, axis=1)
        self.remaining = np.nonzero(is_remaining)[1].reshape(len(is_remaining), -1)
        weights, visible = geometry.weights, geometry.visible
        # every landmark of every shape counts once: then Γ is ones (1, m)
        self.is_uniform = weights is None and bool(visible.all())
        masses = visible[:1] if self.is_uniform else visible
        self.masses = masses.astype(np.float64) if weights is None else weights  # (n, m): Γ
        weighted = geometry.centred if weights is None else weights[..., None] * geometry.centred
        self.rows = np.ascontiguousarray(weighted.mT).reshape(-1, m)  # (n·d, m): (ΓD̄)ᵀ
        points = np.moveaxis(geometry.centred[:, self.left_out], 1, 0)
        masses_left_out = np.moveaxis(self.masses[:, self.left_out], 1, 0)
        totals = self.masses.sum(axis=1) - masses_left_out.sum(axis=2)
        moved = (masses_left_out[..., None, :] @ points)[..., 0, :]
        # (g, n, d): t
        self.shift = -moved / np.where(totals > 0.0, totals, 1.0)[..., None]
        self.points_left_out = points - self.shift[:, :, None, :]
        self.scatters = geometry.scatter - (points * masses_left_out[..., None]).mT @ points
        self.scatters -= (
            totals[..., None, None] * self.shift[..., :, None] * self.shift[..., None, :]
        )
        self.squares = np.einsum("gndd->gn", self.scatters)
        self.mass = None
        if weights is not None:
            n_visible = np.moveaxis(visible[:, self.remaining], 1, 0).sum(axis=-1)
            self.mass = totals / np.maximum(n_visible, 1)

    def cross(self, columns: Array) -> Array:
        """Compute D̄_KᵀΓX (g, n, d, k) for columns X (g, n_remaining, k)."""
        n, m, d = self.geometry.centred.shape
        g, _, k = columns.shape
        padded = np.zeros((m, g, k))  # zero at J
        padded[self.remaining, np.arange(g)[:, None]] = columns
        beside = padded.reshape(m, g * k)
        products = np.moveaxis((self.rows @ beside).reshape(n, d, g, k), 2, 0)
        totals = (self.masses @ beside).reshape(-1, g, k)  # Σ γ x̃
        return products - self.shift[..., None] * np.moveaxis(totals, 1, 0)[..., None, :]

    def combine(self, matrices: Array) -> Array:
        """Compute Σ ΓD̄_K,iM_i (g, n_remaining, k) for one matrix (g, n, d, k) per shape."""
        g, n, d, k = matrices.shape
        stacked = np.moveaxis(matrices, 0, 2).reshape(n * d, g * k)
        moved = (self.shift[..., None, :] @ matrices)[..., 0, :]  # (g, n, k)
        if self.is_uniform:
            moved = moved.sum(axis=1, keepdims=True)
        moved = np.moveaxis(moved, 0, 1).reshape(-1, g * k)
        image = self.rows.T @ stacked - self.masses.T @ moved
        folds = np.arange(g)[:, None]
        return np.ascontiguousarray(image.reshape(-1, g, k)[self.remaining, folds])

    def moments(self, columns: Array) -> Moments:
        """Compute the moments of what remains of the shapes with columns (g, n_remaining, k)."""
        masses = np.moveaxis(self.masses[:, self.remaining], 1, 0)
        scatters = compute_visible_scatters(columns, masses)
        return Moments(scatters, self.cross(columns).mT, self.squares, self.mass)

    @cached_property
    def points(self) -> Array:
        """(g, n, n_remaining, d): D̄_K itself, missing points zero."""
        visible = np.moveaxis(self.geometry.visible[:, self.remaining], 1, 0)
        centred = np.moveaxis(self.geometry.centred[:, self.remaining], 1, 0)
        return np.asarray((centred - self.shift[:, :, None, :]) * visible[..., None])

    @cached_property
    def inverse_scatters(self) -> Array:
        """(g, n, d, d): (D̄_KᵀΓD̄_K)⁺."""
        return np.asarray(np.linalg.pinv(self.scatters, rcond=THIN**2, hermitian=True))

    @cached_property
    def projections(self) -> Array:
        """(g, n_remaining, n_remaining): Σ (ΓQ)(ΓQ)ᵀ, Q an orthonormal basis of D̄_K."""
        basis = orthonormalise(self.points, self.scatters)
        if self.geometry.weights is not None:
            basis *= np.moveaxis(self.masses[:, self.remaining], 1, 0)[..., None]
        rows = basis.mT.reshape(len(basis), -1, basis.shape[-2])
        return np.asarray(rows.mT @ rows)


def orthonormalise(centred: Array, scatters: Array) -> Array:
    """Compute Q (…, m, d) of centred shapes (…, m, d), QᵀΓQ = I; flat directions are zero.

    ``scatters`` (…, d, d) are their D̄ᵀΓD̄.
    """
    values, axes = np.linalg.eigh(scatters)
    is_extended = values > THIN**2 * values[..., -1:]
    lengths = np.sqrt(np.where(is_extended, values, 1.0))
    return np.asarray(centred @ (axes * np.where(is_extended, 1.0 / lengths, 0.0)[..., None, :]))
