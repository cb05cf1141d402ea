"""What the methods of the datum space have in common: their shapes, and their result.

They measure the error where the landmarks were measured: the reference is carried into each
shape, D_i ≈ S A_i + a_i, and the result is told the other way round, from datum to reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.errors import DegenerateShapeError, listed
from defgpa.frames import Frames
from defgpa.solvers.datum.trust_region import FLAT_GROUND


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

    @property
    def converged(self) -> bool:
        """Whether the descent ended on flat ground, as far as rounding lets one see."""
        return self.gradient_norm <= FLAT_GROUND


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
    names: Sequence[str]  # for errors; empty: shape_1, shape_2, …

    @classmethod
    def of(
        cls, points: Array, names: Sequence[str] = (), frames: Frames | None = None
    ) -> CentredShapes:
        """Points (n, m, d) with NaN for what is not seen, about the centres of their frames."""
        n, m, d = points.shape
        frames = frames or Frames.of(points, ~np.isnan(points[..., 0]))
        visible = None if frames.whole else frames.visible.astype(np.float64)
        if visible is not None:
            _require_seen(frames.count, visible.sum(axis=0), names)
        stack = np.ascontiguousarray(frames.centred.mT)
        spreads = np.einsum("idm,idm->i", stack, stack)
        rows = stack.reshape(n * d, m)
        return cls(rows, frames.centre, visible, frames.count, spreads, names)

    @property
    def shape(self) -> tuple[int, int, int]:
        """n, m, d."""
        n, d = self.centroids.shape
        return n, self.rows.shape[1], d

    def named(self, numbers: Iterable[int]) -> str:
        """These shapes, for a sentence."""
        return listed(_names(numbers, self.names))

    @cached_property
    def blur(self) -> Array:
        """(n,): how much of the size of a shape is rounding of its coordinates as written."""
        reach = np.abs(self.centroids).max(axis=1) + np.sqrt(self.spreads / self.counts)
        return 32 * np.finfo(np.float64).eps * np.sqrt(self.counts) * reach

    @cached_property
    def order(self) -> Index:
        """(n,): the shapes in an order of their own, Σ‖x‖⁴ / (Σ‖x‖²)², whatever they came in."""
        n, m, d = self.shape
        shares = (self.rows.reshape(n, d, m) ** 2).sum(axis=1) / self.spreads[:, np.newaxis]
        return np.argsort((shares**2).sum(axis=1), kind="stable")

    def summed_over_seen(self, values: Array) -> Array:
        """(n, k): the sums of (k, m) values over the landmarks each shape sees."""
        if self.visible is None:
            return np.broadcast_to(values.sum(axis=1), (len(self.counts), len(values)))
        return self.visible @ values.T

    def summed_over_viewers(self, values: Array) -> Array:
        """(k, m): the sums of (n, k) values over the shapes that see each landmark."""
        if self.visible is None:
            totals = values.sum(axis=0)[:, np.newaxis]
            return np.broadcast_to(totals, (len(totals), self.rows.shape[1]))
        return values.T @ self.visible

    def means(self, reference: Array) -> Array:
        """(n, d): the centroid of the part of a reference (d, m) that each shape sees."""
        return self.summed_over_seen(reference) / self.counts[:, np.newaxis]

    def residual_rows(self, matrices: Array, reference: Array) -> Array:
        """(n·d, m): D_i − S A_i, about the centroids and with hidden landmarks zero."""
        n, m, d = self.shape
        fitted = np.ascontiguousarray(matrices.mT).reshape(n * d, d) @ reference
        if self.visible is not None:
            shift = self.means(reference)[:, np.newaxis] @ matrices
            stack = fitted.reshape(n, d, m)
            stack -= shift.transpose(0, 2, 1)
            stack *= self.visible[:, np.newaxis]
        return np.subtract(self.rows, fitted, out=fitted)


def _names(numbers: Iterable[int], names: Sequence[str]) -> list[str]:
    return [names[i] if names else f"shape_{i + 1}" for i in numbers]


def _require_seen(counts: Array, views: Array, names: Sequence[str]) -> None:
    empty, lost = np.flatnonzero(counts == 0), np.flatnonzero(views == 0)
    if len(empty):
        culprits = listed(_names(empty, names))
        raise DegenerateShapeError(f"Shape {culprits} sees no landmark. Drop it.")
    if len(lost):
        raise DegenerateShapeError(f"Landmark {listed(lost + 1)} is seen in no shape. Drop it.")


def against(rows: Array, reference: Array) -> Array:
    """(n, d, d): D_iᵀ S, for rows (n·d, m) of D and a reference (d, m), one coordinate a row."""
    d = len(reference)
    return (rows @ reference.T).reshape(-1, d, d)


def combined(rows: Array, matrices: Array) -> Array:
    """(d, m): (Σ_i D_i Z_i)ᵀ, for rows (n·d, m) of D and matrices Z (n, d, d)."""
    return np.ascontiguousarray(matrices).reshape(len(rows), -1).T @ rows


def inverted(matrices: Array) -> Array:
    """The inverse of every matrix of a stack."""
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def completed_sizes(spreads: Array, seen: Array, reference: Array, scales: Array) -> Array:
    """(…, n): centroid sizes, with what a shape does not see taken from its fit to a reference.

    About the centroid of what it sees (…, n, m), a shape of squared size p (…, n) has the hidden
    points h_j = s (S[j] − S̄), with scales s² (…, n) and S (…, m, d); about its own, the whole has
    p + Σ‖h_j‖² − ‖Σ h_j‖² / m.
    """
    hidden = 1.0 - seen
    mean = seen @ reference / seen.sum(axis=-1, keepdims=True)
    count, total = hidden.sum(axis=-1, keepdims=True), hidden @ reference
    squares = hidden @ reference**2 - 2.0 * mean * total + count * mean**2
    shift = (total - count * mean) ** 2 / reference.shape[-2]
    return np.asarray(np.sqrt(spreads + scales * (squares - shift).sum(axis=-1)))


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
    moved = (shapes.centroids[:, np.newaxis] @ from_datum)[:, 0]
    return DatumSpaceFit(
        np.ascontiguousarray(reference.T),
        from_datum,
        shapes.means(reference) - moved,
        cost,
        float(np.sqrt(cost / shapes.counts.sum())),
        iterations,
        gradient_norm,
    )
