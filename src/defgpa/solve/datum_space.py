"""What the methods of the datum space have in common: their shapes, and their result.

They measure the error where the landmarks were measured: the reference is carried into each
shape, D_i ≈ S A_i + a_i, and the result is told the other way round, from datum to reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array
from defgpa.errors import DegenerateShapeError, listed


@dataclass(frozen=True, eq=False)
class DatumSpaceFit:
    """A reference and one affine map x ↦ x @ matrix + offset per shape.

    Attributes
    ----------
    reference : array (m, d)
        The reference shape.
    matrices : array (n, d, d)
        Linear parts of the maps from each shape to the reference.
    offsets : array (n, d)
        Their translations.
    cost : float
        Σ‖D_i − (S A_i + a_i)‖² over what is seen, with x ↦ x A_i + a_i the inverse maps.
    rmse_datum : float
        The root of the cost per visible landmark.
    iterations : int
        Second-order steps after the closed-form start; 0 where that is the answer.
    gradient_norm : float
        What is left of the gradient, relative to its terms.
    """

    reference: Array
    matrices: Array
    offsets: Array
    cost: float
    rmse_datum: float
    iterations: int
    gradient_norm: float


@dataclass(frozen=True, eq=False)
class CentredShapes:
    """Shapes about the centroids of what they see, one coordinate of one shape a row.

    In this layout the sums over landmarks and over shapes that every method needs,
    Σ_j D_i[j]ᵀ S[j] and Σ_i D_i Z_i, are single matrix products.
    """

    rows: Array  # (n·d, m): row (i, k) is coordinate k of shape i; hidden landmarks are zero
    centroids: Array  # (n, d)
    visible: Array | None  # (n, m) ones and zeros, or None when everything is seen
    counts: Array  # (n,): landmarks seen
    spreads: Array  # (n,): ‖D_i‖² about the centroid

    @classmethod
    def of(cls, points: Array) -> CentredShapes:
        """Centre points (n, m, d) with NaN for what is not seen."""
        n, m, d = points.shape
        stack = np.array(points.transpose(0, 2, 1), order="C")
        sums = stack.sum(axis=2)
        if np.isfinite(sums).all():
            counts, visible = np.full(n, float(m)), None
            centroids = sums / m
            stack -= centroids[..., np.newaxis]
        else:
            visible = (~np.isnan(stack[:, 0])).astype(np.float64)
            counts = visible.sum(axis=1)
            _require_seen(counts, "shape", "sees no landmark")
            _require_seen(visible.sum(axis=0), "landmark", "is seen in no shape")
            centroids = np.nansum(stack, axis=2) / counts[:, np.newaxis]
            stack -= centroids[..., np.newaxis]
            stack[np.isnan(stack)] = 0.0
        return cls(
            stack.reshape(n * d, m), centroids, visible, counts, np.einsum("idm,idm->i", stack, stack)
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """n, m, d."""
        n, d = self.centroids.shape
        return n, self.rows.shape[1], d

    @property
    def n_seen(self) -> float:
        """κ, the number of visible landmarks in all shapes."""
        return float(self.counts.sum())

    def against(self, reference: Array) -> Array:
        """(n, d, d): H_i = D_iᵀ S, for a reference with one coordinate a row (d, m)."""
        n, _, d = self.shape
        return (self.rows @ reference.T).reshape(n, d, d)

    def combined(self, matrices: Array) -> Array:
        """(d, m): (Σ_i D_i Z_i)ᵀ for matrices Z (n, d, d)."""
        return matrices.reshape(-1, matrices.shape[-1]).T @ self.rows

    def means(self, reference: Array) -> Array:
        """(n, d): the centroid of the part of a centred reference (d, m) that each shape sees."""
        if self.visible is None:
            return np.zeros_like(self.centroids)
        return (self.visible @ reference.T) / self.counts[:, np.newaxis]

    def residual_rows(self, matrices: Array, reference: Array) -> Array:
        """(n·d, m): D_i − S A_i, about the centroids and with hidden landmarks zero."""
        n, m, d = self.shape
        fitted = transposed_rows(matrices) @ reference
        if self.visible is not None:
            shift = self.means(reference)[:, np.newaxis] @ matrices
            stack = fitted.reshape(n, d, m)
            stack -= shift.transpose(0, 2, 1)
            stack *= self.visible[:, np.newaxis]
        return np.subtract(self.rows, fitted, out=fitted)


def _require_seen(counts: Array, what: str, fault: str) -> None:
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        raise DegenerateShapeError(f"{what.capitalize()} number {listed(empty)} {fault}. Drop it.")


def transposed_rows(matrices: Array) -> Array:
    """(n·d, d): the transposes A_iᵀ of a stack one under the other."""
    d = matrices.shape[-1]
    return np.ascontiguousarray(matrices.transpose(0, 2, 1)).reshape(-1, d)


def fit_in_datum_space(
    shapes: CentredShapes,
    reference: Array,
    into_datum: Array,
    from_datum: Array,
    iterations: int,
    gradient_norm: float,
) -> DatumSpaceFit:
    """The result, from the reference (d, m) and the matrices A_i, A_i⁻¹ of both directions."""
    residual = shapes.residual_rows(into_datum, reference).ravel()
    cost = float(residual @ residual)
    moved = np.squeeze(shapes.centroids[:, np.newaxis] @ from_datum, axis=1)
    return DatumSpaceFit(
        np.ascontiguousarray(reference.T),
        from_datum,
        shapes.means(reference) - moved,
        cost,
        float(np.sqrt(cost / shapes.n_seen)),
        iterations,
        gradient_norm,
    )
