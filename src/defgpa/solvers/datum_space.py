r"""What the methods of the datum space share: centred shapes, and their result.

They measure the error where the landmarks were measured. The reference is mapped into each shape,

.. math:: \sum_{ij} \gamma_{ij} \lVert D_i[j] - (S[j] A_i + a_i) \rVert^2,

with landmark weights :math:`\gamma`, 0 for a missing landmark. The result states the inverse maps,
from each shape to the reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    """Shapes about their centroids, one coordinate of one shape a row, times its landmark weights.

    In this layout the sums over landmarks and over shapes that every method needs,
    Σ_j γ_ij D_i[j]ᵀ S[j] and Σ_i Γ_i D_i Z_i, are single matrix products.
    """

    rows: Array  # (n·d, m): row (i, k) is coordinate k of shape i, times γ_i
    centroids: Array  # (n, d)
    weights: Array | None  # (n, m): γ, 0 where a landmark is missing; None if all are 1
    totals: Array  # (n,): Σ_j γ_ij
    squared_sizes: Array  # (n,): Σ_j γ_ij ‖D_i[j]‖²
    names: Sequence[str]  # for errors; empty: shape_1, shape_2, …

    @classmethod
    def from_points(
        cls,
        points: Array,
        names: Sequence[str] = (),
        geometry: Geometry | None = None,
        weights: Array | None = None,
    ) -> CentredShapes:
        """Centre shapes (n, m, d) with NaN for missing landmarks; ``weights`` (n, m) are optional.

        ``geometry`` are those of the points, where they are known already.
        """
        n, m, d = points.shape
        geometry = geometry or measure_geometry(points, ~np.isnan(points[..., 0]))
        if weights is not None:
            return cls._from_weights(geometry, weights, names)
        visible = None if geometry.visible.all() else geometry.visible.astype(np.float64)
        if visible is not None:
            _require_visible(geometry.count, visible.sum(axis=0), names)
        coordinates = np.ascontiguousarray(geometry.centred.mT)
        squared_sizes = np.einsum("idm,idm->i", coordinates, coordinates)
        rows = coordinates.reshape(n * d, m)
        return cls(rows, geometry.centre, visible, geometry.count, squared_sizes, names)

    @classmethod
    def _from_weights(
        cls, geometry: Geometry, weights: Array, names: Sequence[str]
    ) -> CentredShapes:
        """Centre shapes about the centroids of their weighted landmarks."""
        weights = np.where(geometry.visible, weights, 0.0)
        totals = weights.sum(axis=1)
        _require_visible(totals, weights.sum(axis=0), names)
        shift = (weights[:, None] @ geometry.centred)[:, 0] / totals[:, None]
        coordinates = np.array(geometry.centred.mT, order="C")
        coordinates -= shift[..., None]
        weighted = weights[:, None] * coordinates
        squared_sizes = np.einsum("idm,idm->i", weighted, coordinates)
        rows = weighted.reshape(-1, weights.shape[1])
        return cls(rows, geometry.centre + shift, weights, totals, squared_sizes, names)

    @property
    def shape(self) -> tuple[int, int, int]:
        """n_shapes, n_landmarks and n_dims."""
        n_shapes, n_dims = self.centroids.shape
        return n_shapes, self.rows.shape[1], n_dims

    def format_names(self, shapes: Iterable[int]) -> str:
        """List the names of shapes for a message."""
        return format_names(_get_names(shapes, self.names))

    def require_size(self) -> None:
        """Raise a DegenerateShapeError that names the shapes that are one point."""
        empty = np.flatnonzero(~(self.squared_sizes > self.rounding**2))
        if len(empty):
            raise DegenerateShapeError(
                f"Shape {self.format_names(empty)} has one visible landmark only, or several on "
                "one point: it has no direction. Drop such shapes, or add landmarks."
            )

    @cached_property
    def n_visible(self) -> Array:
        """(n,): the number of landmarks of each shape that count."""
        return self.totals if self.weights is None else np.count_nonzero(self.weights, axis=1)

    @cached_property
    def _inverse_weights(self) -> Array:
        """(n, m): 1/γ, 0 where a landmark does not count."""
        weights = np.ones(self.rows.shape) if self.weights is None else self.weights
        return np.divide(1.0, weights, out=np.zeros_like(weights), where=weights > 0)

    @cached_property
    def scatter(self) -> Array:
        """(n, d, d): D_iᵀ Γ_i D_i."""
        n, m, d = self.shape
        weighted = self.rows.reshape(n, d, m)
        if self.weights is None:
            return weighted @ weighted.mT
        return weighted @ (weighted * self._inverse_weights[:, None]).mT

    @cached_property
    def rounding(self) -> Array:
        """(n,): how much of the size of each shape is rounding of its coordinates."""
        reach = np.abs(self.centroids).max(axis=1) + np.sqrt(self.squared_sizes / self.totals)
        return 32 * np.finfo(np.float64).eps * np.sqrt(self.totals) * reach

    @cached_property
    def canonical_order(self) -> Index:
        """(n,): the shapes sorted by Σ‖x‖⁴ / (Σ‖x‖²)², so that their given order has no effect."""
        n, m, d = self.shape
        squares = (self.rows.reshape(n, d, m) ** 2).sum(axis=1) / self.squared_sizes[:, None]
        return np.argsort((squares**2).sum(axis=1), kind="stable")

    def sum_over_landmarks(self, values: Array) -> Array:
        """Compute the weighted sum (n, k) of values (k, m) over the landmarks of each shape."""
        if self.weights is None:
            return np.broadcast_to(values.sum(axis=1), (len(self.totals), len(values)))
        return self.weights @ values.T

    def sum_over_shapes(self, values: Array) -> Array:
        """Compute the weighted sum (k, m) of values (n, k) over the shapes, at each landmark."""
        if self.weights is None:
            totals = values.sum(axis=0)[:, np.newaxis]
            return np.broadcast_to(totals, (len(totals), self.rows.shape[1]))
        return values.T @ self.weights

    def compute_centroids(self, reference: Array) -> Array:
        """Compute the centroid (n, d) of a reference (d, m) with the weights of each shape."""
        return self.sum_over_landmarks(reference) / self.totals[:, np.newaxis]

    def compute_residuals(self, matrices: Array, reference: Array) -> Array:
        """Compute the weighted residuals (n·d, m) Γ_i(D_i − S A_i) about the centroids."""
        n, m, d = self.shape
        fitted = np.ascontiguousarray(matrices.mT).reshape(n * d, d) @ reference
        if self.weights is not None:
            shift = self.compute_centroids(reference)[:, np.newaxis] @ matrices
            coordinates = fitted.reshape(n, d, m)
            coordinates -= shift.transpose(0, 2, 1)
            coordinates *= self.weights[:, np.newaxis]
        return np.subtract(self.rows, fitted, out=fitted)

    def compute_cost(self, residuals: Array) -> float:
        """Compute Σ γ ‖r‖² from the weighted residuals (n·d, m) γr."""
        if self.weights is None:
            return float(np.vdot(residuals, residuals))
        n, m, d = self.shape
        vectors = residuals.reshape(n, d, m)
        return float(np.vdot(np.einsum("idm,idm->im", vectors, vectors), self._inverse_weights))


def _get_names(shapes: Iterable[int], names: Sequence[str]) -> list[str]:
    return [names[i] if names else f"shape_{i + 1}" for i in shapes]


def _require_visible(totals: Array, views: Array, names: Sequence[str]) -> None:
    """Raise a DegenerateShapeError that names shapes and landmarks without any weight."""
    empty, absent = np.flatnonzero(totals == 0), np.flatnonzero(views == 0)
    if len(empty):
        culprits = format_names(_get_names(empty, names))
        raise DegenerateShapeError(f"Shape {culprits} has no visible landmark. Drop it.")
    if len(absent):
        culprits = format_names(absent + 1)
        raise DegenerateShapeError(f"Landmark {culprits} is missing in every shape. Drop it.")


def cross_products(rows: Array, reference: Array) -> Array:
    """Compute D_iᵀ S (n, d, d) of every shape, for rows (n·d, m) of D and a reference (d, m)."""
    d = len(reference)
    return (rows @ reference.T).reshape(-1, d, d)


def sum_products(rows: Array, matrices: Array) -> Array:
    """Compute (Σ_i D_i Z_i)ᵀ (d, m), for rows (n·d, m) of D and matrices Z (n, d, d)."""
    return np.ascontiguousarray(matrices).reshape(len(rows), -1).T @ rows


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
    shapes: CentredShapes,
    reference: Array,
    into_shapes: Array,
    into_reference: Array,
    iterations: int,
    gradient_norm: float,
) -> DatumSpaceFit:
    """Build the result from a reference (d, m) and the linear maps (n, d, d) in both directions."""
    cost = shapes.compute_cost(shapes.compute_residuals(into_shapes, reference))
    moved_centroids = (shapes.centroids[:, np.newaxis] @ into_reference)[:, 0]
    return DatumSpaceFit(
        reference=np.ascontiguousarray(reference.T),
        matrices=into_reference,
        offsets=shapes.compute_centroids(reference) - moved_centroids,
        cost=cost,
        rmse_datum=float(np.sqrt(cost / shapes.totals.sum())),
        iterations=iterations,
        gradient_norm=gradient_norm,
        converged=gradient_norm <= GRADIENT_TOLERANCE,
        totals=shapes.totals,
    )
