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

from defgpa._arrays import Array, Mask, small_product, summed, transposed
from defgpa._threads import blocks, in_blocks
from defgpa.solve.deformable.batches import Batch
from defgpa.solve.deformable.ridge import (
    POOR_CONDITION,
    Ridge,
    ridge_from_features,
    ridge_from_gram,
    ridge_from_normal_matrix,
    with_penalty_rows,
)

_BLOCK_BYTES = 4 << 20  # of columns: larger blocks leave the cache, smaller ones wait for Python
_STORED_BLOCK_BYTES = 8 << 20  # of columns in memory: enough for a thread to be worth its start


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

    @property
    def landmarks_at_a_time(self) -> int:
        """Of so many landmarks what is made to expand them stays in the cache."""
        ...

    def expand(self, coefficients: Array, onto: Array, landmarks: slice = slice(None)) -> None:
        """Add the rows of these landmarks of Σ U C, for C (b, l, k), onto an image (p, k)."""
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
        return small_product(self.rows.reshape(b * l, m), block).reshape(b, l, -1)

    @property
    def landmarks_at_a_time(self) -> int:
        """Of so many U stays in the cache."""
        b, l, _ = self.rows.shape
        return max(1, _BLOCK_BYTES // (8 * b * l))

    def expand(self, coefficients: Array, onto: Array, landmarks: slice = slice(None)) -> None:
        """Σ U C."""
        b, l, m = self.rows.shape
        rows = self.rows.reshape(b * l, m)[:, landmarks]
        onto += rows.T @ coefficients.reshape(b * l, -1)

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
class CombinedColumns:
    """U = columns @ combine, with the columns of one block of landmarks at a time."""

    batch: Batch
    ridge: Ridge
    combine: Array  # (b, r, l): mixing @ Y
    of_ones: Array  # (b, l): Uᵀ1

    @property
    def landmarks_at_a_time(self) -> int:
        """Of so many the columns stay in the cache."""
        return _landmarks_in(self.batch, _BLOCK_BYTES)

    @property
    def _blocks(self) -> list[slice]:
        """Blocks of landmarks, to project."""
        return blocks(self.batch.n_landmarks, self.landmarks_at_a_time)

    def columns_of(self, landmarks: slice) -> Array:
        """(b, p, r): the columns of one block."""
        raise NotImplementedError

    def project(self, block: Array) -> Array:
        """Uᵀ X = combineᵀ (columnsᵀ X)."""

        def sums(rows: slice) -> Array:
            # Xᵀ columns, not columnsᵀ X: BLAS reads tall columns twice as fast from this side
            return np.stack([small_product(block[rows].T, own) for own in self.columns_of(rows)])

        total = summed(in_blocks(sums, self._blocks))
        return transposed(self.combine) @ transposed(total)

    def expand(self, coefficients: Array, onto: Array, landmarks: slice = slice(None)) -> None:
        """Σ U C = Σ columns (combine C)."""
        # the few columns first: BLAS is faster from this side here too
        mixed = transposed(self.combine @ coefficients)
        images = mixed @ transposed(self.columns_of(landmarks))
        onto += (images[0] if len(images) == 1 else images.sum(axis=0)).T

    def gram(self) -> Array:
        """Σ U Uᵀ."""
        rows = self.transposed_rows()
        return rows.T @ rows

    def transposed_rows(self) -> Array:
        """Uᵀ, formed."""
        b, _, l = self.combine.shape
        rows = np.empty((b, l, self.batch.n_landmarks))
        for part in self._blocks:
            rows[:, :, part] = transposed(self.columns_of(part) @ self.combine)
        return rows.reshape(b * l, -1)


@dataclass(frozen=True, eq=False)
class ColumnFactor(CombinedColumns):
    """The columns stay in memory, (b, m, r)."""

    columns: Array

    @property
    def _blocks(self) -> list[slice]:
        return _landmark_blocks(self.batch, _STORED_BLOCK_BYTES)

    def columns_of(self, landmarks: slice) -> Array:
        """Those of one block."""
        return self.columns[:, landmarks]

    def only(self, shape: int) -> ColumnFactor:
        """One shape of the batch."""
        one = slice(shape, shape + 1)
        return ColumnFactor(
            self.batch[one],
            self.ridge[one],
            self.combine[one],
            self.of_ones[one],
            self.columns[one],
        )


@dataclass(frozen=True, eq=False)
class StreamedFactor(CombinedColumns):
    """The columns are made again whenever they are needed."""

    def columns_of(self, landmarks: slice) -> Array:
        """Those of one block."""
        return self.batch.columns(landmarks)

    def only(self, shape: int) -> StreamedFactor:
        """One shape of the batch."""
        one = slice(shape, shape + 1)
        return StreamedFactor(
            self.batch[one], self.ridge[one], self.combine[one], self.of_ones[one]
        )


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
    columns = np.empty((len(batch.shapes), batch.n_landmarks, _width(batch)))

    def stored() -> Iterator[Array]:
        for landmarks in _landmark_blocks(batch, _BLOCK_BYTES):
            columns[:, landmarks] = batch.columns(landmarks)
            yield columns[:, landmarks]

    return ColumnFactor(batch, *_eliminated(batch, stored()), columns)


def streamed_factor(batch: Batch) -> StreamedFactor:
    """The same with the columns of a block of landmarks at a time."""
    return StreamedFactor(batch, *_eliminated(batch, _made_columns(batch)))


def _made_columns(batch: Batch) -> Iterator[Array]:
    for landmarks in _landmark_blocks(batch, _BLOCK_BYTES):
        yield batch.columns(landmarks)


def _landmark_blocks(batch: Batch, n_bytes: int) -> list[slice]:
    return blocks(batch.n_landmarks, _landmarks_in(batch, n_bytes))


def _landmarks_in(batch: Batch, n_bytes: int) -> int:
    """How many landmarks there are to so many bytes of columns."""
    return max(1, n_bytes // (8 * _width(batch) * len(batch.shapes)))


def _width(batch: Batch) -> int:
    """r, the number of columns."""
    mixing = batch.bases.mixing
    return int(batch.bases.penalty().shape[-1] if mixing is None else mixing.shape[-2])


def _eliminated(batch: Batch, column_blocks: Iterator[Array]) -> tuple[Ridge, Array, Array]:
    """The ridge of FᵀF = mixingᵀ (columnsᵀ columns) mixing; mixing @ Y; and Uᵀ1.

    One pass over the blocks of landmarks sums up what all of them take.
    """
    penalty, mixing = batch.bases.penalty(), batch.bases.mixing
    gram: Array | float = 0.0
    sums: Array | float = 0.0
    for columns in column_blocks:
        gram = gram + np.stack([own.T @ own for own in columns])
        sums = sums + columns.sum(axis=-2)
    assert isinstance(gram, np.ndarray)
    assert isinstance(sums, np.ndarray)
    ridge = ridge_from_gram(gram, mixing, penalty)
    poor = ~(ridge.condition < POOR_CONDITION)
    if poor.any():
        ridge = ridge.updated(poor, sure_ridge(batch, penalty, poor))
    combine = ridge.inverse if mixing is None else mixing @ ridge.inverse
    return ridge, combine, (sums[:, None, :] @ combine)[:, 0]


def sure_ridge(batch: Batch, penalty: Array, chosen: Mask) -> Ridge:
    """By QR of the features, block after block: the triangle of all rows so far stays small."""
    triangle = with_penalty_rows(np.empty((len(penalty), 0, penalty.shape[-1])), penalty)[chosen]
    mixing = batch.bases.mixing
    for columns in _made_columns(batch):
        features = columns[chosen] if mixing is None else columns[chosen] @ mixing[chosen]
        stacked = np.concatenate([triangle, features], axis=-2)
        triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
    return ridge_from_features(triangle)
