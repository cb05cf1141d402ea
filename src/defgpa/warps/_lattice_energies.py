r"""What a free-form deformation is charged for: exact integrals over its lattice.

The functions of a lattice are products of splines on its axes, so every integral is a sum of
Kronecker products of small matrices of integrals on one axis:

    BendingEnergy   mean Σ_ab (∂_ab f)²               zero for affine maps
    Membrane        mean Σ_a (∂_a f − mean ∂_a f)²      zero for affine maps
    Laplacian       mean (Σ_a ∂_aa f)², with a share of the bending, without which it would be
                    zero for all harmonic maps

Means over the box of the lattice, derivatives in the shape's own units. The membrane measures
stretching against the mean stretching: warps are only known up to an affine frame, so that a
charge on the stretching itself would only shrink the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement, product
from typing import Protocol

import numpy as np

from defgpa._arrays import Array, symmetrised
from defgpa.warps._cubic_splines import integrals, products
from defgpa.warps._parameters import require_number

Cells = tuple[int, ...]


class LatticeEnergy(Protocol):
    """A quadratic form of the weights of a lattice."""

    def terms(self, cells: Cells) -> Iterator[tuple[Array, Array]]:
        """Orders (d,) of h in a term and its matrix (l, l), for cells of length 1."""
        ...


@dataclass(frozen=True)
class BendingEnergy:
    """Σ_ab (∂_ab f)², averaged over the lattice: as the thin-plate spline is charged."""

    def terms(self, cells: Cells) -> Iterator[tuple[Array, Array]]:
        """∂_aa f on each axis, and twice ∂_ab f on each pair."""
        units = np.eye(len(cells), dtype=int)
        for a, b in combinations_with_replacement(range(len(cells)), 2):
            orders = units[a] + units[b]
            yield 2 * orders, (1.0 if a == b else 2.0) * _mean_product(cells, orders, orders)


@dataclass(frozen=True)
class Membrane:
    """Σ_a (∂_a f − mean ∂_a f)², averaged over the lattice: uneven stretching."""

    def terms(self, cells: Cells) -> Iterator[tuple[Array, Array]]:
        """The variance of each first derivative."""
        for orders in np.eye(len(cells), dtype=int):
            mean = _mean(cells, orders)
            yield 2 * orders, _mean_product(cells, orders, orders) - np.outer(mean, mean)


@dataclass(frozen=True)
class Laplacian:
    """(1 − share) (Σ_a ∂_aa f)² + share Σ_ab (∂_ab f)², averaged over the lattice.

    Parameters
    ----------
    bending_share : float
        From 0 to 1. With 0, the Laplacian alone, every harmonic map of the shapes is a reference
        as good as any other: x² − y² costs as little as x.
    """

    bending_share: float = 0.1

    def terms(self, cells: Cells) -> Iterator[tuple[Array, Array]]:
        """The squares of ∂_aa f, the products of ∂_aa f and ∂_bb f, and the bending."""
        require_number(
            self.bending_share,
            "bending_share",
            "Laplacian",
            "a number from 0 to 1",
            lambda number: 0.0 <= number <= 1.0,
        )
        units = 2 * np.eye(len(cells), dtype=int)
        for first, second in product(units, units):
            mean = symmetrised(_mean_product(cells, first, second))
            yield first + second, (1.0 - self.bending_share) * mean
        for orders, mean in BendingEnergy().terms(cells):
            yield orders, self.bending_share * mean


def energy_matrix(energy: LatticeEnergy, cells: Cells, spacing: Array) -> Array:
    """(…, l, l): the energy for cells with sides ``spacing`` (…, d).

    A derivative by u = x / h brings 1 / h, and a mean knows no volume.
    """
    total: Array | float = 0.0
    for orders, matrix in energy.terms(cells):
        factor = np.prod(spacing ** -orders.astype(np.float64), axis=-1)
        total = total + np.multiply.outer(factor, matrix)
    return np.asarray(total)


def _mean_product(cells: Cells, first: Array, second: Array) -> Array:
    """(l, l): mean over the lattice of ∂^first f_i · ∂^second f_j."""
    axes = zip(cells, first, second, strict=True)
    return _kronecker([products(c, int(p), int(q)) / c for c, p, q in axes])


def _mean(cells: Cells, orders: Array) -> Array:
    """(l,): mean over the lattice of ∂^orders f_i."""
    axes = zip(cells, orders, strict=True)
    return _kronecker([integrals(c, int(q)) / c for c, q in axes])


def _kronecker(factors: list[Array]) -> Array:
    return reduce(lambda left, right: np.asarray(np.kron(left, right)), factors)
