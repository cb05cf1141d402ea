"""The two-way table of individuals and sides as sums over groups, whatever the balance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from defgpa.arrays import Array, Index


@dataclass(frozen=True, eq=False)
class TwoWay:
    """Individuals, sides and their interaction as sums over groups, whatever the balance.

    SS of individuals and of cells are those of group means; the side adds one column v, what
    individuals leave of it; the interaction is what the cells have besides.
    """

    width: ClassVar[int] = 64  # about as many numbers as a shape has

    codes: Index
    sides: Index

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.codes)

    @property
    def df(self) -> tuple[int, ...]:
        """k − 1, 1 and k − 1 for k individuals with two sides each."""
        k = int(self.codes.max())
        return k, 1, k

    @cached_property
    def _cells(self) -> csr_array:
        return build_averaging(2 * self.codes + self.sides)

    @cached_property
    def _individuals(self) -> csr_array:
        return build_averaging(self.codes)

    @cached_property
    def _side(self) -> Array:
        """v, the difference of the sides, of length 1."""
        v = np.where(self.sides == 1, 1.0, -1.0)
        v = v - (self._individuals @ v)[self.codes]
        return np.asarray(v / np.linalg.norm(v))

    @property
    def residual_df(self) -> int:
        """Degrees of freedom of replicates."""
        return self.n - 1 - sum(self.df)

    def center(self, Y: Array) -> Array:
        """Remove the mean from Y (n, p)."""
        return Y - Y.mean(axis=0)

    def compute_residuals(self, before: int, Y: Array) -> Array:
        """Return what a constant, then individuals, then sides leave."""
        left = Y - (Y.mean(axis=0) if before == 0 else (self._individuals @ Y)[self.codes])
        return left - np.outer(self._side, self._side @ left) if before == 2 else left

    def sums(self, E: Array, orders: Index, kept: Array | float = 0.0) -> tuple[Array, Array]:
        """Compute sums of squares (b, 3) of group means and (b,) of all terms together."""
        b, n = orders.shape
        rows = np.ascontiguousarray((E[orders] + kept).transpose(1, 0, 2)).reshape(n, -1)
        grand_squares = n * _sum_squares(rows.mean(axis=0)[None], b).sum(axis=0)
        counts = np.bincount(self.codes)
        individual = counts @ _sum_squares(self._individuals @ rows, b)
        cell_counts = np.bincount(2 * self.codes + self.sides)
        cells = cell_counts @ _sum_squares(self._cells @ rows, b)
        side = _sum_squares((self._side @ rows)[None], b)[0]
        interaction = np.maximum(cells - individual - side, 0.0)
        sums = np.stack([individual - grand_squares, side, interaction], axis=1)
        return sums, np.asarray(sums.sum(axis=1))


def build_averaging(codes: Index) -> csr_array:
    """Build the sparse matrix (g, n) that averages rows over every group."""
    counts = np.bincount(codes)
    n = len(codes)
    return csr_array((1.0 / counts[codes], (codes, np.arange(n))), shape=(len(counts), n))


def _sum_squares(means: Array, b: int) -> Array:
    """Compute squared lengths (g, b) of g means for b orders side by side."""
    return np.asarray((means.reshape(len(means), b, -1) ** 2).sum(axis=2))
