r"""U of shapes whose columns are mostly zero: compressed rows, and small dense algebra.

A point of a lattice touches 4^d functions however many there are, so products with the columns
cost as much as the points, not as points times functions. Held in memory, or made again block by
block whenever they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from defgpa._arrays import Array, blocks
from defgpa.solvers.columns import sound_ridge
from defgpa.solvers.elimination import Batch, Factor

_ENTRY_BYTES = 12  # a number and where it stands


@dataclass(frozen=True, eq=False)
class StreamedSparseFactor(Factor):
    """U = columns @ combine, the columns made again whenever they are needed."""

    combine: Array  # (b, r, l): mixing @ Y

    def project(self, block: Array) -> Array:
        """Uᵀ X = combineᵀ (columnsᵀ X)."""
        b, r, _ = self.combine.shape
        total = np.zeros((b, r, block.shape[1]))
        for shape in range(b):
            for landmarks in self._blocks:
                total[shape] += self._columns(shape, landmarks).T @ block[landmarks]
        return self.combine.mT @ total

    def expand(self, coefficients: Array, onto: Array, landmarks: slice = slice(None)) -> None:
        """Σ U C = Σ columns (combine C)."""
        for shape, own in enumerate(self.combine @ coefficients):
            onto += self._columns(shape, landmarks) @ own

    @property
    def landmarks_at_a_time(self) -> int:
        """The landmarks whose entries take one block."""
        return _landmarks_at_a_time(self.batch)

    def transposed_rows(self) -> Array:
        """Uᵀ, formed."""
        both = enumerate(self.combine)
        return np.vstack([(self._columns(shape, slice(None)) @ own).T for shape, own in both])

    @property
    def _blocks(self) -> list[slice]:
        """The landmarks whose columns are made at a time."""
        return blocks(self.batch.n_landmarks, self.landmarks_at_a_time)

    def _columns(self, shape: int, landmarks: slice) -> csr_array:
        """(p, r): the columns of one shape of the batch at some landmarks."""
        return _seen_columns(self.batch, shape, landmarks)


@dataclass(frozen=True, eq=False)
class SparseFactor(StreamedSparseFactor):
    """U = columns @ combine, the columns held."""

    columns: tuple[csr_array, ...]  # (m, r) of each shape

    @property
    def _blocks(self) -> list[slice]:
        return [slice(None)]

    def _columns(self, shape: int, landmarks: slice) -> csr_array:
        whole = self.columns[shape]
        return whole if landmarks == slice(None) else whole[landmarks]


def sparse_factor(batch: Batch) -> SparseFactor:
    """U of dense shapes on a sparse basis, its columns held."""
    columns = tuple(_seen_columns(batch, shape, slice(None)) for shape in range(len(batch.shapes)))
    gram = np.stack([normal_matrix(own) for own in columns])
    return SparseFactor(batch, *sound_ridge(batch, gram, batch.columns), columns)


def streamed_sparse_factor(batch: Batch) -> StreamedSparseFactor:
    """U of shapes too large to hold, from the columns of a block of landmarks at a time."""
    parts = blocks(batch.n_landmarks, _landmarks_at_a_time(batch))
    grams = [
        sum(normal_matrix(_seen_columns(batch, shape, own)) for own in parts)
        for shape in range(len(batch.shapes))
    ]
    return StreamedSparseFactor(batch, *sound_ridge(batch, np.stack(grams), batch.columns))


def stored_bytes(batch: Batch) -> int:
    """What the columns of one shape of the batch would occupy."""
    return _ENTRY_BYTES * _row_entries(batch) * batch.n_landmarks


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


def _seen_columns(batch: Batch, shape: int, landmarks: slice) -> csr_array:
    """(p, r): the columns of one shape; a hidden landmark keeps its place with zeros in it."""
    columns = batch.bases[shape].sparse_columns(batch.points[shape, landmarks])  # type: ignore[attr-defined]
    visible = batch.visible[shape, landmarks]
    if not visible.all():
        columns.data *= np.repeat(visible, np.diff(columns.indptr))
    return columns


def _landmarks_at_a_time(batch: Batch) -> int:
    """The landmarks whose entries take one block."""
    return max(1, batch.tuning.sparse_block_bytes // (_ENTRY_BYTES * _row_entries(batch)))


def _row_entries(batch: Batch) -> int:
    """How many functions a point touches."""
    one = batch.bases[0].sparse_columns(batch.points[0, :1])  # type: ignore[attr-defined]
    return max(1, int(one.nnz))
