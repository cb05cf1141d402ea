r"""What the methods of the datum space share: centred shapes, and their result.

They measure the error where the landmarks were measured. The reference is mapped into each shape,

.. math:: \sum_{ij} \gamma_{ij} \lVert D_i[j] - (S[j] A_i + a_i) \rVert^2,

with landmark weights :math:`\gamma`, 0 for a missing landmark. The result states the inverse maps,
from each shape to the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from defgpa.arrays import Array, Index
from defgpa.errors import DegenerateShapeError, format_names
from defgpa.geometry import Geometry, measure_geometry
from defgpa.solvers.trust_region import GRADIENT_TOLERANCE


@dataclass(frozen=True, eq=False)
class DatumSpaceFit:
    """A reference and one affine map x ↦ x @ matrix + offset per shape.

    Attributes
    ----------
    reference : ndarray of shape (n_landmarks, n_dims)
        The reference shape.
    matrices : ndarray of shape (n_shapes, n_dims, n_dims)
        Linear parts of the maps from each shape to the reference.
    offsets : ndarray of shape (n_shapes, n_dims)
        Their translations.
    cost : float
        Σ γ ‖D_i − (S A_i + a_i)‖², with x ↦ x A_i + a_i the inverse maps.
    rmse_datum : float
        The root of the cost per unit of landmark weight.
    iterations : int
        Newton steps after the closed-form start; 0 where that is the answer.
    gradient_norm : float
        The norm of the gradient relative to that of its terms.
    converged : bool
        Whether the gradient vanishes, as far as rounding allows.
    totals : ndarray of shape (n_shapes,)
        Total landmark weight of each shape.
    """

    reference: Array
    matrices: Array
    offsets: Array
    cost: float
    rmse_datum: float
    iterations: int
    gradient_norm: float
    converged: bool
    totals: Array


@dataclass(frozen=True, eq=False)
class CentredShapes:
    """Shapes about their weighted centroids, with one coordinate of one shape a row.

    In this layout the sums over landmarks and over shapes that every method needs,
    Σ_j γ_ij D_i[j]ᵀ S[j] and Σ_i Γ_i D_i Z_i, are single matrix products. References have one
    coordinate a row, too: (d, m), about their mean.
    """

    coordinates: Array  # (n, d, m); anything finite where a landmark is missing
    rows: Array  # (n·d, m): row (i, k) is coordinate k of shape i, times γ_i
    centroids: Array  # (n, d)
    weights: Array | None  # (n, m): γ, 0 where a landmark is missing; None if all are 1
    totals: Array  # (n,): Σ_j γ_ij
    squared_sizes: Array  # (n,): Σ_j γ_ij ‖D_i[j]‖²
    names: Sequence[str]  # for errors

    @classmethod
    def from_points(
        cls,
        points: Array,
        names: Sequence[str] = (),
        geometry: Geometry | None = None,
        weights: Array | None = None,
    ) -> CentredShapes:
        """Centre shapes (n, m, d) with NaN for missing landmarks; ``weights`` (n, m) are optional.

        ``geometry`` is that of the points, where it is known already.
        """
        geometry = geometry or measure_geometry(points, ~np.isnan(points[..., 0]))
        labels = list(names) or [f"shape_{i + 1}" for i in range(len(points))]
        coordinates, centroids = np.array(geometry.centred.mT, order="C"), geometry.centre
        if weights is None and geometry.visible.all():
            weighted, totals = coordinates, geometry.count
        else:
            weights = np.asarray(geometry.visible * (1.0 if weights is None else weights))
            totals, views = weights.sum(axis=1), weights.sum(axis=0)
            if not totals.all():
                culprits = format_names([labels[i] for i in np.flatnonzero(totals == 0)])
                raise DegenerateShapeError(f"Shape {culprits} has no visible landmark. Drop it.")
            if not views.all():
                culprits = format_names(np.flatnonzero(views == 0) + 1)
                raise DegenerateShapeError(
                    f"Landmark {culprits} is missing in every shape. Drop it."
                )
            shift = coordinates @ weights[..., np.newaxis] / totals[:, np.newaxis, np.newaxis]
            coordinates -= shift
            weighted = weights[:, np.newaxis] * coordinates
            centroids = centroids + shift[..., 0]
        squared_sizes = np.einsum("idm,idm->i", weighted, coordinates)
        rows = weighted.reshape(-1, weighted.shape[2])
        return cls(coordinates, rows, centroids, weights, totals, squared_sizes, labels)

    @cached_property
    def rounding(self) -> Array:
        """(n,): how much of the size of each shape is rounding of its coordinates."""
        reach = np.abs(self.centroids).max(axis=1) + np.sqrt(self.squared_sizes / self.totals)
        return 32 * np.finfo(np.float64).eps * np.sqrt(self.totals) * reach

    def format_names(self, shapes: Index) -> str:
        """List the names of shapes for a message."""
        return format_names([self.names[shape] for shape in shapes])

    def resize(self, sizes: Array) -> CentredShapes:
        """Bring every shape to its size (n,)."""
        factors = sizes / np.sqrt(np.maximum(self.squared_sizes, np.finfo(np.float64).tiny))
        coordinates = self.coordinates * factors[:, np.newaxis, np.newaxis]
        rows = self.rows * np.repeat(factors, coordinates.shape[1])[:, np.newaxis]
        return replace(self, coordinates=coordinates, rows=rows, squared_sizes=sizes**2)

    def multiply(self, reference: Array) -> Array:
        """Compute Sᵀ Γ_i D_i (n, d, d) of every shape, for a reference (d, m)."""
        n_dims = len(reference)
        return (self.rows @ reference.T).reshape(-1, n_dims, n_dims).mT

    def combine(self, matrices: Array) -> Array:
        """Compute Σ_i A_i D_iᵀ Γ_i (d, m), for matrices A (n, d, d)."""
        stacked = matrices.transpose(1, 0, 2).reshape(matrices.shape[1], -1)
        return stacked @ self.rows

    def compute_centroids(self, reference: Array) -> Array:
        """Compute the centroid (n, d) of a reference (d, m) with the weights of each shape."""
        if self.weights is None:
            return np.zeros_like(self.centroids)
        return self.weights @ reference.T / self.totals[:, np.newaxis]

    def compute_moments(self, S: Array, T: Array) -> Array:
        """Compute Sᵀ C_i T (n, d, d) of every shape, for references S and T (d, m).

        C_i is the weighted centring of a shape; without weights, one matrix (1, d, d) for all.
        """
        if self.weights is None:
            return (S @ T.T)[np.newaxis]
        n_dims = len(S)
        products = (S[:, np.newaxis] * T).reshape(n_dims**2, -1)
        sums = (self.weights @ products.T).reshape(-1, n_dims, n_dims)
        centroids = (
            self.compute_centroids(S)[..., np.newaxis] * (self.compute_centroids(T)[:, np.newaxis])
        )
        return sums - self.totals[:, np.newaxis, np.newaxis] * centroids

    def sum_at_landmarks(self, matrices: Array) -> Array:
        """Compute Σ_i γ_ij Q_i (m, d, d) at every landmark, for matrices (n, d, d).

        Without weights, one sum (1, d, d) for all.
        """
        if self.weights is None:
            return matrices.sum(axis=0)[np.newaxis]
        sums = self.weights.T @ matrices.reshape(len(matrices), -1)
        return sums.reshape(-1, *matrices.shape[1:])

    def sum_images(self, reference: Array, matrices: Array, landmark_sums: Array) -> Array:
        """Compute Σ_i Q_i S C_i (d, m) of a reference S (d, m), for matrices Q (n, d, d).

        ``landmark_sums`` are those of the matrices.
        """
        images = multiply_landmarks(landmark_sums, reference)
        if self.weights is None:
            return images
        centroids = matrices @ self.compute_centroids(reference)[..., np.newaxis]
        return images - centroids[..., 0].T @ self.weights


def multiply_landmarks(matrices: Array, reference: Array) -> Array:
    """Multiply the matrix (m, d, d) of each landmark, or one (1, d, d), with a reference (d, m)."""
    if len(matrices) == 1:
        return matrices[0] @ reference
    return np.squeeze(matrices @ reference.T[..., np.newaxis], axis=2).T


def estimate_complete_sizes(
    squared_sizes: Array, visible: Array, reference: Array, squared_scales: Array
) -> Array:
    """Estimate the centroid sizes (…, n) that shapes would have with their missing landmarks.

    About the centroid of its visible landmarks (…, n, m), a shape of squared size p (…, n) has its
    missing ones at h_j = s (S[j] − S̄), with s² (…, n) and S (…, m, d); about its own, the complete
    shape has p + Σ‖h_j‖² − ‖Σ h_j‖² / m.
    """
    missing = 1.0 - visible
    mean = visible @ reference / visible.sum(axis=-1, keepdims=True)
    count, total = missing.sum(axis=-1, keepdims=True), missing @ reference
    squares = missing @ reference**2 - 2.0 * mean * total + count * mean**2
    shift = (total - count * mean) ** 2 / reference.shape[-2]
    return np.asarray(np.sqrt(squared_sizes + squared_scales * (squares - shift).sum(axis=-1)))


def build_fit(
    shapes: CentredShapes, reference: Array, maps: Array, iterations: int, gradient_norm: float
) -> DatumSpaceFit:
    """Build the result from a reference (d, m) and its linear maps (n, d, d) into the shapes."""
    centroids = shapes.compute_centroids(reference)
    images = maps.mT @ reference
    if shapes.weights is not None:
        images -= maps.mT @ centroids[..., np.newaxis]
    residuals = np.subtract(shapes.coordinates, images, out=images)
    weighted = residuals if shapes.weights is None else shapes.weights[:, np.newaxis] * residuals
    cost = float(np.vdot(weighted, residuals))
    matrices = np.asarray(np.linalg.inv(maps), dtype=np.float64)
    return DatumSpaceFit(
        reference=np.ascontiguousarray(reference.T),
        matrices=matrices,
        offsets=centroids - (shapes.centroids[:, np.newaxis] @ matrices)[:, 0],
        cost=cost,
        rmse_datum=float(np.sqrt(cost / shapes.totals.sum())),
        iterations=iterations,
        gradient_norm=gradient_norm,
        converged=gradient_norm <= GRADIENT_TOLERANCE,
        totals=shapes.totals,
    )
