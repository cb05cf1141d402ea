r"""What a batch contributes to the cost: Uᵀ times vectors, and U times coefficients.

Three ways to hold the same U: as it is (small shapes), as its cheap columns and one small matrix
(U = columns @ combine; dense shapes), or not at all, the columns being made again block by block
whenever they are needed (huge shapes). The solver cannot tell which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from defgpa._arrays import Array, Mask, transposed
from defgpa._threads import blocks, in_blocks
from defgpa.solve.batches import Batch
from defgpa.solve.elimination import (
    POOR_CONDITION,
    Ridge,
    ridge_from_features,
    ridge_from_gram,
    ridge_from_normal_matrix,
    with_penalty_rows,
)

_BLOCK_BYTES = 1 << 20  # of columns: a block stays in cache while it is used
_STORED_BLOCK_BYTES = 32 << 20  # of columns in memory: enough for a thread to be worth its start


class Factor(Protocol):
    """U of a batch of shapes, in whatever form."""

    @property
    def batch(self) -> Batch:
        """The shapes."""
        ...

    @property
    def ridge(self) -> Ridge:
        """Their regressions."""
        ...

    def project(self, block: Array) -> Array:
        """(b, l, k): Uᵀ X for X (m, k)."""
        ...

    def expand(self, coefficients: Array) -> Array:
        """(m, k): Σ U C over the batch for C (b, l, k)."""
        ...

    def gram(self) -> Array:
        """(m, m): Σ U Uᵀ over the batch."""
        ...

    def transposed_rows(self) -> Array:
        """(b · l, m): Uᵀ of all shapes of the batch."""
        ...

    def only(self, shape: int) -> Factor:
        """The factor of one shape of the batch, by its number in the batch."""
        ...


@dataclass(frozen=True, eq=False)
class StoredFactor:
    """Uᵀ itself, (b, l, m)."""

    batch: Batch
    ridge: Ridge
    rows: Array

    def project(self, block: Array) -> Array:
        """Uᵀ X."""
        b, l, m = self.rows.shape
        return (self.rows.reshape(b * l, m) @ block).reshape(b, l, -1)

    def expand(self, coefficients: Array) -> Array:
        """Σ U C."""
        b, l, m = self.rows.shape
        return self.rows.reshape(b * l, m).T @ coefficients.reshape(b * l, -1)

    def gram(self) -> Array:
        """Σ U Uᵀ, one symmetric product for the whole batch."""
        rows = self.transposed_rows()
        return rows.T @ rows

    def transposed_rows(self) -> Array:
        """Uᵀ, a view."""
        b, l, m = self.rows.shape
        return self.rows.reshape(b * l, m)

    def only(self, shape: int) -> StoredFactor:
        """One shape of the batch."""
        one = slice(shape, shape + 1)
        return StoredFactor(self.batch[one], self.ridge[one], self.rows[one])


@dataclass(frozen=True, eq=False)
class _ColumnFactor:
    """U = columns @ combine, with the columns of one block of landmarks at a time."""

    batch: Batch
    ridge: Ridge
    combine: Array  # (b, r, l): mixing @ Y

    def _blocks(self) -> list[slice]:
        """Blocks of landmarks."""
        raise NotImplementedError

    def _columns(self, landmarks: slice) -> Array:
        """(b, p, r): the columns of one block."""
        raise NotImplementedError

    def project(self, block: Array) -> Array:
        """Uᵀ X = combineᵀ (columnsᵀ X)."""
        # Xᵀ columns, not columnsᵀ X: BLAS reads tall columns twice as fast from this side
        parts = in_blocks(lambda rows: block[rows].T @ self._columns(rows), self._blocks())
        total = parts[0]
        for part in parts[1:]:
            total += part
        return transposed(self.combine) @ transposed(total)

    def expand(self, coefficients: Array) -> Array:
        """Σ U C = Σ columns (combine C)."""
        mixed = self.combine @ coefficients
        image = np.empty((self.batch.n_landmarks, coefficients.shape[-1]))

        def fill(rows: slice) -> None:
            image[rows] = (self._columns(rows) @ mixed).sum(axis=0)

        in_blocks(fill, self._blocks())
        return image

    def gram(self) -> Array:
        """Σ U Uᵀ."""
        rows = self.transposed_rows()
        return rows.T @ rows

    def transposed_rows(self) -> Array:
        """Uᵀ, formed."""
        b, _, l = self.combine.shape
        rows = np.empty((b, l, self.batch.n_landmarks))
        for part in self._blocks():
            rows[:, :, part] = transposed(self._columns(part) @ self.combine)
        return rows.reshape(b * l, -1)


@dataclass(frozen=True, eq=False)
class ColumnFactor(_ColumnFactor):
    """The columns stay in memory, (b, m, r)."""

    columns: Array

    def _blocks(self) -> list[slice]:
        return _landmark_blocks(self.batch, _STORED_BLOCK_BYTES)

    def _columns(self, landmarks: slice) -> Array:
        return self.columns[:, landmarks]

    def only(self, shape: int) -> ColumnFactor:
        """One shape of the batch."""
        one = slice(shape, shape + 1)
        return ColumnFactor(self.batch[one], self.ridge[one], self.combine[one], self.columns[one])


@dataclass(frozen=True, eq=False)
class StreamedFactor(_ColumnFactor):
    """The columns are made again whenever they are needed."""

    def _blocks(self) -> list[slice]:
        return _landmark_blocks(self.batch, _BLOCK_BYTES)

    def _columns(self, landmarks: slice) -> Array:
        return self.batch.columns(landmarks)

    def only(self, shape: int) -> StreamedFactor:
        """One shape of the batch."""
        one = slice(shape, shape + 1)
        return StreamedFactor(self.batch[one], self.ridge[one], self.combine[one])


def stored_factor(batch: Batch) -> StoredFactor:
    """Uᵀ = Yᵀ Fᵀ of a batch of small shapes."""
    features, penalty = batch.features(), batch.bases.penalty()
    ridge = ridge_from_normal_matrix(transposed(features) @ features + penalty)
    poor = ~(ridge.condition < POOR_CONDITION)
    if poor.any():
        sure = ridge_from_features(with_penalty_rows(features[poor], penalty[poor]))
        ridge = ridge.updated(poor, sure)
    return StoredFactor(batch, ridge, transposed(ridge.inverse) @ transposed(features))


def column_factor(batch: Batch) -> ColumnFactor:
    """U of dense shapes through columnsᵀ columns and small algebra, never an m × l product."""
    columns = batch.columns()
    ridge = _ridge_from_blocks(batch, [(slice(None), columns)])
    return ColumnFactor(batch, ridge, _combine(batch, ridge), columns)


def streamed_factor(batch: Batch) -> StreamedFactor:
    """The same with the columns of a block of landmarks at a time."""
    ridge = _ridge_from_blocks(batch, _made_columns(batch))
    return StreamedFactor(batch, ridge, _combine(batch, ridge))


def _made_columns(batch: Batch) -> Iterator[tuple[slice, Array]]:
    for landmarks in _landmark_blocks(batch, _BLOCK_BYTES):
        yield landmarks, batch.columns(landmarks)


def _landmark_blocks(batch: Batch, n_bytes: int) -> list[slice]:
    """Blocks of landmarks whose columns take about so many bytes."""
    width = batch.bases.penalty().shape[-1] + batch.points.shape[-1] + 1
    return blocks(batch.n_landmarks, max(1, n_bytes // (8 * width * len(batch.shapes))))


def _combine(batch: Batch, ridge: Ridge) -> Array:
    mixing = batch.bases.mixing
    return ridge.inverse if mixing is None else mixing @ ridge.inverse


def _ridge_from_blocks(batch: Batch, column_blocks: object) -> Ridge:
    """The ridge of FᵀF = mixingᵀ (columnsᵀ columns) mixing, summed over blocks of landmarks."""
    penalty, mixing = batch.bases.penalty(), batch.bases.mixing
    gram: Array | float = 0.0
    for _, columns in column_blocks:  # type: ignore[attr-defined]
        gram = gram + np.stack([own.T @ own for own in columns])
    assert isinstance(gram, np.ndarray)
    ridge = ridge_from_gram(gram, mixing, penalty)
    poor = ~(ridge.condition < POOR_CONDITION)
    if poor.any():
        ridge = ridge.updated(poor, sure_ridge(batch, penalty, poor))
    return ridge


def sure_ridge(batch: Batch, penalty: Array, chosen: Mask) -> Ridge:
    """By QR of the features, block after block: the triangle of all rows so far stays small."""
    triangle = with_penalty_rows(np.empty((len(penalty), 0, penalty.shape[-1])), penalty)[chosen]
    mixing = batch.bases.mixing
    for _, columns in _made_columns(batch):
        features = columns[chosen] if mixing is None else columns[chosen] @ mixing[chosen]
        stacked = np.concatenate([triangle, features], axis=-2)
        triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
    return ridge_from_features(triangle)
