r"""U of shapes whose columns are mostly zero: compressed rows, and small dense algebra.

A point of a lattice touches 4^d functions however many there are, so products with the columns
cost as much as the points, not as points times functions. Held in memory, or made again block by
block whenever they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from defgpa.arrays import Array
from defgpa.solvers.columns import fit_ridge
from defgpa.solvers.elimination import Batch, Factor
from defgpa.threads import split_range

_ENTRY_BYTES = 12  # a number and where it stands


@dataclass(frozen=True, eq=False)
class StreamedSparseFactor(Factor):
    """U = columns @ combine, the columns made again whenever they are needed."""

    combine: Array  # (b, r, l): mixing @ Y

    def project(self, block: Array) -> Array:
        """Compute Uᵀ X = combineᵀ (columnsᵀ X)."""
        b, r, _ = self.combine.shape
        total = np.zeros((b, r, block.shape[1]))
        for shape in range(b):
            for landmarks in self._blocks:
                total[shape] += self._columns(shape, landmarks).T @ block[landmarks]
        return self.combine.mT @ total

    def expand(self, coefficients: Array, onto: Array, landmarks: slice = slice(None)) -> None:
        """Add the rows of these landmarks of Σ U C = Σ columns (combine C) onto an image."""
        for shape, mixed in enumerate(self.combine @ coefficients):
            onto += self._columns(shape, landmarks) @ mixed

    @property
    def landmarks_at_a_time(self) -> int:
        """The landmarks whose entries take one block."""
        return _count_landmarks(self.batch)

    def stack_rows(self) -> Array:
        """Compute Uᵀ of all shapes below each other."""
        pairs = enumerate(self.combine)
        return np.vstack([(self._columns(i, slice(None)) @ mixed).T for i, mixed in pairs])

    @property
    def _blocks(self) -> list[slice]:
        """The landmarks whose columns are made at a time."""
        return split_range(self.batch.n_landmarks, self.landmarks_at_a_time)

    def _columns(self, shape: int, landmarks: slice) -> csr_array:
        """(p, r): the columns of one shape of the batch at some landmarks."""
        return _scale_columns(self.batch, shape, landmarks, 1.0)


@dataclass(frozen=True, eq=False)
class SparseFactor(StreamedSparseFactor):
    """U = columns @ combine, with the sparse columns in memory."""

    columns: tuple[csr_array, ...]  # (m, r) of each shape

    @property
    def _blocks(self) -> list[slice]:
        return [slice(None)]

    def _columns(self, shape: int, landmarks: slice) -> csr_array:
        columns = self.columns[shape]
        return columns if landmarks == slice(None) else columns[landmarks]


def store_sparse_factor(batch: Batch) -> SparseFactor:
    """Compute U of dense shapes on a sparse basis, its columns stored."""
    shapes = range(len(batch.shapes))
    rooted = [_scale_columns(batch, shape, slice(None), 0.5) for shape in shapes]
    gram = np.stack([multiply_by_transpose(columns) for columns in rooted])
    if batch.weights is not None:
        rooted = [_scale_columns(batch, shape, slice(None), 1.0) for shape in shapes]
    return SparseFactor(batch, *fit_ridge(batch, gram, batch.columns), tuple(rooted))


def stream_sparse_factor(batch: Batch) -> StreamedSparseFactor:
    """Compute U of shapes too large to store, from a block of landmarks at a time."""
    blocks = split_range(batch.n_landmarks, _count_landmarks(batch))
    grams = [
        sum(multiply_by_transpose(_scale_columns(batch, shape, block, 0.5)) for block in blocks)
        for shape in range(len(batch.shapes))
    ]
    return StreamedSparseFactor(batch, *fit_ridge(batch, np.stack(grams), batch.columns))


def count_storage_bytes(batch: Batch) -> int:
    """Return the bytes that the columns of one shape of the batch would occupy."""
    return _ENTRY_BYTES * _count_row_entries(batch) * batch.n_landmarks


def multiply_by_transpose(columns: csr_array) -> Array:
    """Compute columnsᵀ columns (r, r).

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
    return _sum_blocks(columns.data.reshape(places.shape), shifts, pattern, columns.shape[1])


def _sum_blocks(entries: Array, shifts: Array, pattern: Array, size: int) -> Array:
    """Sum blockᵀ block of entries (p, k) into a matrix (size, size), at the places of columns.

    Parameters
    ----------
    shifts : array (p,) of int
        Of every row: where its pattern begins.
    pattern : array (k,) of int
        Places of the entries beyond that.
    """
    order = np.argsort(shifts, kind="stable")
    starts = np.flatnonzero(np.diff(shifts[order], prepend=-1))
    total = np.zeros((size, size))
    for rows in np.split(order, starts[1:]):
        block, places = entries[rows], shifts[rows[0]] + pattern
        total[np.ix_(places, places)] += block.T @ block
    return total


def _scale_columns(batch: Batch, shape: int, landmarks: slice, power: float) -> csr_array:
    """Return Γ^power times the columns (p, r) of one shape; missing landmarks have zeros."""
    columns = batch.bases[shape].sparse_columns(batch.points[shape, landmarks])  # type: ignore[attr-defined]
    if batch.weights is not None:
        scale = batch.weights[shape, landmarks] ** power
        columns.data *= np.repeat(scale, np.diff(columns.indptr))
    elif not batch.visible[shape, landmarks].all():
        columns.data *= np.repeat(batch.visible[shape, landmarks], np.diff(columns.indptr))
    return columns


def _count_landmarks(batch: Batch) -> int:
    """Return how many landmarks have entries of one block."""
    return max(1, batch.tuning.sparse_block_bytes // (_ENTRY_BYTES * _count_row_entries(batch)))


def _count_row_entries(batch: Batch) -> int:
    """Return how many functions a point touches."""
    row = batch.bases[0].sparse_columns(batch.points[0, :1])  # type: ignore[attr-defined]
    return max(1, int(row.nnz))
