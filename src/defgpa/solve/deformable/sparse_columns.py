r"""U of shapes whose columns are mostly zero: compressed rows, and small dense algebra.

A point of a lattice touches 4^d functions however many there are, so products with the columns
cost as much as the points, not as points times functions. Held in memory, or made again block by
block whenever they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from defgpa._arrays import Array, Index, blocks
from defgpa.solve.deformable.columns import careful_ridge
from defgpa.solve.deformable.elimination import (
    POOR_CONDITION,
    Batch,
    Ridge,
    ridge_from_normal_matrix,
)

_ENTRY_BYTES = 12  # a number and where it stands


@dataclass(frozen=True, eq=False)
class _SparseFactor:
    """U = columns @ combine of every shape of a batch."""

    batch: Batch
    ridge: Ridge
    combine: Array  # (b, r, l): mixing @ Y

    def _column_blocks(self, shape: int) -> Iterator[tuple[slice, csr_array]]:
        """Blocks of landmarks with the columns (p, r) of one shape of the batch."""
        raise NotImplementedError

    def project(self, block: Array) -> Array:
        """Uᵀ X = combineᵀ (columnsᵀ X)."""
        b, r, _ = self.combine.shape
        total = np.zeros((b, r, block.shape[1]))
        for shape in range(b):
            for landmarks, columns in self._column_blocks(shape):
                total[shape] += columns.T @ block[landmarks]
        return self.combine.mT @ total

    def expand(self, coefficients: Array, onto: Array, landmarks: slice = slice(None)) -> None:
        """Σ U C = Σ columns (combine C)."""
        for shape, own in enumerate(self.combine @ coefficients):
            onto += self._some_columns(shape, landmarks) @ own

    @property
    def landmarks_at_a_time(self) -> int:
        """The landmarks whose entries take one block."""
        return _landmarks_at_a_time(self.batch, 0)

    def _some_columns(self, shape: int, landmarks: slice | Index) -> csr_array:
        """(p, r): the columns of some landmarks."""
        raise NotImplementedError

    def gram(self) -> Array:
        """Σ U Uᵀ."""
        rows = self.transposed_rows()
        return rows.T @ rows

    def transposed_rows(self, landmarks: slice | Index = slice(None)) -> Array:
        """Uᵀ of some landmarks, formed."""
        both = enumerate(self.combine)
        return np.vstack([(self._some_columns(shape, landmarks) @ own).T for shape, own in both])


@dataclass(frozen=True, eq=False)
class SparseFactor(_SparseFactor):
    """The columns stay in memory."""

    columns: tuple[csr_array, ...]  # (m, r) of each shape

    def _column_blocks(self, shape: int) -> Iterator[tuple[slice, csr_array]]:
        yield slice(None), self.columns[shape]

    def _some_columns(self, shape: int, landmarks: slice | Index) -> csr_array:
        whole = self.columns[shape]
        all_of_them = isinstance(landmarks, slice) and landmarks == slice(None)
        return whole if all_of_them else whole[landmarks]

    def only(self, shape: int) -> SparseFactor:
        """One shape of the batch."""
        one = slice(shape, shape + 1)
        return SparseFactor(self.batch[one], self.ridge[one], self.combine[one], self.columns[one])


@dataclass(frozen=True, eq=False)
class StreamedSparseFactor(_SparseFactor):
    """The columns are made again whenever they are needed."""

    def _column_blocks(self, shape: int) -> Iterator[tuple[slice, csr_array]]:
        yield from _made_columns(self.batch, shape)

    def _some_columns(self, shape: int, landmarks: slice | Index) -> csr_array:
        return _seen_columns(self.batch, shape, landmarks)

    def only(self, shape: int) -> StreamedSparseFactor:
        """One shape of the batch."""
        one = slice(shape, shape + 1)
        return StreamedSparseFactor(self.batch[one], self.ridge[one], self.combine[one])


def sparse_factor(batch: Batch) -> SparseFactor:
    """U of dense shapes on a sparse basis, its columns held."""
    columns = tuple(_seen_columns(batch, shape, slice(None)) for shape in range(len(batch.shapes)))
    ridge = _ridge(batch, np.stack([normal_matrix(own) for own in columns]))
    return SparseFactor(batch, ridge, _combine(batch, ridge), columns)


def streamed_sparse_factor(batch: Batch) -> StreamedSparseFactor:
    """U of shapes too large to hold, from the columns of a block of landmarks at a time."""
    grams = [
        sum(normal_matrix(columns) for _, columns in _made_columns(batch, shape))
        for shape in range(len(batch.shapes))
    ]
    ridge = _ridge(batch, np.stack(grams))
    return StreamedSparseFactor(batch, ridge, _combine(batch, ridge))


def stored_bytes(batch: Batch) -> int:
    """What the columns of one shape of the batch would occupy."""
    return _ENTRY_BYTES * _row_entries(batch, 0) * batch.n_landmarks


def normal_matrix(columns: csr_array) -> Array:
    """(r, r): columnsᵀ columns.

    Where all rows have one pattern, shifted, those with the same shift are a dense block, and
    blocks are multiplied far faster than single entries.
    """
    counts = np.diff(columns.indptr)
    if not len(counts) or counts[0] == 0 or not (counts == counts[0]).all():
        return np.asarray((columns.T @ columns).toarray())
    places = columns.indices.reshape(len(counts), -1)
    pattern, shifts = places[0] - places[0, 0], places[:, 0]
    if not (places - shifts[:, None] == pattern).all():
        return np.asarray((columns.T @ columns).toarray())
    return _sum_of_blocks(columns.data.reshape(places.shape), shifts, pattern, columns.shape[1])


def _sum_of_blocks(entries: Array, shifts: Array, pattern: Array, size: int) -> Array:
    order = np.argsort(shifts, kind="stable")
    starts = np.flatnonzero(np.diff(shifts[order], prepend=-1))
    total = np.zeros((size, size))
    for rows in np.split(order, starts[1:]):
        block, places = entries[rows], shifts[rows[0]] + pattern
        total[np.ix_(places, places)] += block.T @ block
    return total


def _seen_columns(batch: Batch, shape: int, landmarks: slice | Index) -> csr_array:
    """(p, r): the columns of one shape; a hidden landmark keeps its place with zeros in it."""
    columns = batch.bases[shape].sparse_columns(batch.points[shape, landmarks])  # type: ignore[attr-defined]
    visible = batch.visible[shape, landmarks]
    if not visible.all():
        columns.data *= np.repeat(visible, np.diff(columns.indptr))
    return columns


def _made_columns(batch: Batch, shape: int) -> Iterator[tuple[slice, csr_array]]:
    for landmarks in blocks(batch.n_landmarks, _landmarks_at_a_time(batch, shape)):
        yield landmarks, _seen_columns(batch, shape, landmarks)


def _landmarks_at_a_time(batch: Batch, shape: int) -> int:
    """The landmarks whose entries take one block."""
    entry_bytes = _ENTRY_BYTES * _row_entries(batch, shape)
    return max(1, batch.tuning.sparse_block_bytes // entry_bytes)


def _row_entries(batch: Batch, shape: int) -> int:
    """How many functions a point touches."""
    one = batch.bases[shape].sparse_columns(batch.points[shape, :1])  # type: ignore[attr-defined]
    return max(1, int(one.nnz))


def _combine(batch: Batch, ridge: Ridge) -> Array:
    mixing = batch.mixing
    return ridge.inverse if mixing is None else mixing @ ridge.inverse


def _ridge(batch: Batch, grams: Array) -> Ridge:
    """The ridge of FᵀF = mixingᵀ (columnsᵀ columns) mixing; by QR where that is too poor."""
    penalty, mixing = batch.bases.penalty(), batch.mixing
    features = grams if mixing is None else mixing.mT @ grams @ mixing
    ridge = ridge_from_normal_matrix(features, penalty, batch.rounding)
    poor = ~(ridge.condition < POOR_CONDITION)
    return ridge.updated(poor, careful_ridge(batch, batch.columns, poor)) if poor.any() else ridge
