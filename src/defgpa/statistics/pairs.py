"""Results for each pair of groups: symmetric matrices, and rows that tables have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array
from defgpa.formatting import format_column, format_fixed
from defgpa.statistics.table import Row, Rows, format_p_values


def fill_pairs(n_groups: int, values: ArrayLike, diagonal: float = float("nan")) -> Array:
    """Return a symmetric matrix (g, g) of the values of pairs, in the order of its upper triangle.

    Examples
    --------
    >>> fill_pairs(3, [1.0, 2.0, 3.0], 0.0).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]
    """
    matrix = np.full((n_groups, n_groups), diagonal)
    first, second = np.triu_indices(n_groups, 1)
    matrix[first, second] = matrix[second, first] = values
    return matrix


class PairRows(Rows):
    """A result with a row for each pair of groups, from the names of these and matrices (g, g)."""

    def _rows(self) -> list[Row]:
        names, *matrices = (getattr(self, name) for name in self._attributes)
        return list_pairs(names, *matrices)

    def cells(self) -> list[tuple[str, ...]]:
        """Return the pairs of groups as text, without a header."""
        return format_pairs(self._columns, self._rows())


def list_pairs(names: Sequence[object], *matrices: Array) -> list[Row]:
    """Return a row for each pair of names: both, and the entry of every matrix (g, g)."""
    first, second = np.triu_indices(len(names), 1)
    columns = (matrix[first, second].tolist() for matrix in matrices)
    pairs = combinations(names, 2)
    return [(*pair, *values) for pair, *values in zip(pairs, *columns, strict=True)]


def format_pairs(columns: Sequence[str], rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Format rows of pairs: their names in one cell, P with common decimals, angles in degrees."""
    cells = [[f"{a} – {b}" for a, b, *_ in rows]]
    for k, name in enumerate(columns[2:], 2):
        values = [row[k] for row in rows]
        if name.rpartition("_")[2] == "p":
            cells.append(format_p_values(values))
        elif name == "z":
            cells.append(format_fixed(values, 4))
        elif name == "angle":
            cells.append([f"{value:.1f}°" for value in values])
        else:
            cells.append(format_column(values))
    return list(zip(*cells, strict=True))
