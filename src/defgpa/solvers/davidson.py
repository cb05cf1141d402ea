"""Block Davidson: a growing subspace, corrected by a cheap inverse.

Keep an orthonormal V and AV; the eigenpairs (θ, y) of VᵀAV give Ritz vectors Vy with residuals
r = A V y − θ V y; the corrections M r, M ≈ A⁻¹, are added to V. One product with A per new
column, none wasted; the space is restarted from its best vectors when it grows wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, qr

from defgpa.arrays import Array, multiply_thin, sum_arrays, symmetrise
from defgpa.threads import map_blocks, split_range

_MAX_WIDTH = 64


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """The smallest eigenvalues and their vectors, with guards."""

    values: Array
    vectors: Array
    residuals: Array
    n_products: int
    converged: bool


def find_bottom_eigenpairs(
    multiply: Callable[[Array], Array],
    correct: Callable[[Array], Array],
    start: Array,
    count: int,
    norm: float,
    accuracy: float,
    max_products: int,
) -> Eigenpairs:
    """Find the ``count`` smallest eigenpairs (and two guards) of a symmetric A with ‖A‖ ≤ ``norm``.

    A wanted vector has converged when its residual is below ``accuracy`` times its distance to the
    eigenvalues outside the wanted ones, or drowns in rounding.
    """
    floor = 8 * np.sqrt(len(start)) * np.finfo(np.float64).eps * norm
    space, images = _Columns(len(start)), _Columns(len(start))
    wanted = min(count + 2, len(start))
    new_vectors = _orthonormalise(start)
    if new_vectors.shape[1] < wanted:  # columns that depend on others
        chance = np.random.default_rng(1).normal(size=(len(start), wanted - new_vectors.shape[1]))
        new_vectors = np.hstack([new_vectors, _orthonormalise(chance, against=new_vectors)])
    space.append(new_vectors)
    images.append(multiply(new_vectors))
    n_products = new_vectors.shape[1]
    projected = _multiply_transpose(space.columns, images.columns)
    while True:
        values, vectors, errors = _find_ritz_pairs(space.columns, images.columns, projected, wanted)
        floor = max(floor, 4 * _estimate_rounding(projected, len(start)))
        residuals = np.linalg.norm(errors, axis=0)
        gap = values[count] - values[count - 1] if wanted > count else norm
        goal = np.full(wanted, max(accuracy * gap, floor))
        goal[count:] = max(0.1 * gap, floor)  # guards need only be good enough to show the gap
        open_ = residuals > goal
        if not open_.any() or n_products >= max_products:
            return Eigenpairs(values, vectors, residuals, n_products, not open_[:count].any())
        if space.width + wanted > min(_MAX_WIDTH, len(start)):
            best, image = _restart(space.columns, images.columns, projected, 2 * wanted)
            space.replace(best)
            images.replace(image)
            projected = _multiply_transpose(best, image)
        new_vectors = _orthonormalise(correct(errors[:, open_]), against=space.columns)
        if new_vectors.shape[1] == 0:
            return Eigenpairs(values, vectors, residuals, n_products, not open_[:count].any())
        space.append(new_vectors)
        images.append(multiply(new_vectors))
        projected = _grow_projection(projected, space.columns, images.columns)
        n_products += new_vectors.shape[1]


class _Columns:
    """Columns that grow in number where they are: fresh memory costs more than the products."""

    def __init__(self, size: int) -> None:
        self._room = np.empty((size, 2 * _MAX_WIDTH), order="F")
        self.width = 0

    @property
    def columns(self) -> Array:
        """(m, k): the columns stored so far."""
        return self._room[:, : self.width]

    def append(self, columns: Array) -> None:
        """Append columns (m, j)."""
        end = self.width + columns.shape[1]
        self._room[:, self.width : end] = columns
        self.width = end

    def replace(self, columns: Array) -> None:
        """Put other columns in the place of those stored so far."""
        self.width = 0
        self.append(columns)


def _grow_projection(projected: Array, space: Array, images: Array) -> Array:
    """Extend VᵀAV from that of the columns there were before the last ones came.

    Parameters
    ----------
    projected : array (k, k)
        VᵀAV of the first k columns.
    space, images : array (m, k + j)
        V and AV, with the last columns.
    """
    old, width = len(projected), space.shape[1]
    grown = np.empty((width, width))
    grown[:old, :old] = projected
    grown[:, old:] = _multiply_transpose(space, images[:, old:])
    grown[old:, :old] = _multiply_transpose(space[:, old:], images[:, :old])
    return grown


def _find_ritz_pairs(
    space: Array, images: Array, projected: Array, wanted: int
) -> tuple[Array, Array, Array]:
    """Return the Ritz values θ and vectors x of a space, and A x − θ x of each."""
    values, mixing = eigh(symmetrise(projected))
    values, mixing = values[:wanted], mixing[:, :wanted]
    vectors, errors = np.empty((2, wanted, len(space))).transpose(0, 2, 1)

    def fill(rows: slice) -> None:
        vectors[rows] = space[rows] @ mixing
        errors[rows] = images[rows] @ mixing - vectors[rows] * values

    map_blocks(fill, _split_rows(space))
    return values, vectors, errors


def _split_rows(columns: Array) -> list[slice]:
    """Return blocks of rows of tall columns, small enough to stay in the cache."""
    return split_range(len(columns), 16384)


def _multiply_transpose(left: Array, right: Array) -> Array:
    """Return leftᵀ right; the order of the sum does not depend on the threads."""
    return sum_arrays(
        map_blocks(lambda rows: multiply_thin(left[rows].T, right[rows]), _split_rows(left))
    )


def _remove_components(block: Array, against: Array) -> None:
    """Take what lies in the orthonormal columns ``against`` out of the block, in place."""
    share = _multiply_transpose(against, block)

    def subtract(rows: slice) -> None:
        block[rows] -= against[rows] @ share

    map_blocks(subtract, _split_rows(block))


def _estimate_rounding(projected: Array, size: int) -> float:
    """Estimate what rounding adds to a product, from the asymmetry of VᵀAV."""
    k = len(projected)
    skew = np.sum((projected - projected.T) ** 2) / max(1, 2 * k * (k - 1))
    return float(np.sqrt(size * skew))


def _restart(space: Array, images: Array, projected: Array, width: int) -> tuple[Array, Array]:
    """Return the best ``width`` directions of the space, and their images.

    Parameters
    ----------
    space, images : array (m, k)
        V and AV.
    projected : array (k, k)
        VᵀAV.
    """
    _, mixing = eigh(symmetrise(projected))
    mixing = mixing[:, :width]
    restarted, triangle = np.linalg.qr(space @ mixing)
    return restarted, images @ mixing @ np.linalg.inv(triangle)


def _orthonormalise(block: Array, against: Array | None = None) -> Array:
    """Return an orthonormal basis of the block outside ``against``, without dependent columns."""
    block = np.asfortranarray(
        block / np.maximum(np.linalg.norm(block, axis=0), np.finfo(np.float64).tiny)
    )
    if against is not None:
        for _ in range(2):  # once leaves rounding along ``against``, twice does not
            _remove_components(block, against)
    basis, triangle, _ = qr(block, mode="economic", pivoting=True, overwrite_a=True)
    is_independent = np.abs(np.diag(triangle)) > 1e-10
    basis = basis[:, is_independent]
    if against is not None and basis.size:
        _remove_components(basis, against)
        basis, _ = qr(basis, mode="economic", overwrite_a=True)
    return np.ascontiguousarray(basis)  # the order in which products with A are faster
