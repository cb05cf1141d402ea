r"""Cubic B-splines on a lattice, and exact integrals of what they bend and stretch.

An axis of c cells of length 1 carries K = c + 3 functions, on the knots 0 0 0 0 1 2 … c c c c: the
cubic splines with two continuous derivatives, in their best conditioned local basis. On cell j
only the functions j … j + 3 differ from zero, each a cubic in t = u − j. They sum to one, and
with ξ_i the mean of their inner knots Σ_i ξ_i b_i(u) = u: constants and lines are among them.
Beyond the ends each function goes on along its tangent, which keeps both properties everywhere.

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
from functools import cache, reduce
from itertools import combinations_with_replacement, product
from math import factorial
from typing import Protocol

import numpy as np
from numpy.polynomial.legendre import leggauss

from defgpa.arrays import Array, Index, freeze, symmetrise
from defgpa.warps.parameters import require_number

Cells = tuple[int, ...]


class LatticeEnergy(Protocol):
    """A quadratic form of the weights of a lattice."""

    def terms(self, cells: Cells) -> Iterator[tuple[Array, Array]]:
        """Yield the orders (d,) of h in a term and its matrix (l, l), for cells of length 1."""
        ...


@dataclass(frozen=True)
class BendingEnergy:
    """Σ_ab (∂_ab f)², averaged over the lattice: as the thin-plate spline is charged."""

    def terms(self, cells: Cells) -> Iterator[tuple[Array, Array]]:
        """Yield the squares of ∂_aa f on each axis, and twice those of ∂_ab f on each pair."""
        units = np.eye(len(cells), dtype=int)
        for a, b in combinations_with_replacement(range(len(cells)), 2):
            orders = units[a] + units[b]
            yield (
                2 * orders,
                (1.0 if a == b else 2.0) * _compute_mean_product(cells, orders, orders),
            )


@dataclass(frozen=True)
class Membrane:
    """Σ_a (∂_a f − mean ∂_a f)², averaged over the lattice: uneven stretching."""

    def terms(self, cells: Cells) -> Iterator[tuple[Array, Array]]:
        """Yield the variance of each first derivative."""
        for orders in np.eye(len(cells), dtype=int):
            mean = _compute_mean(cells, orders)
            yield 2 * orders, _compute_mean_product(cells, orders, orders) - np.outer(mean, mean)


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
        """Yield the squares of ∂_aa f, the products of ∂_aa f and ∂_bb f, and the bending."""
        require_number(
            self.bending_share,
            "bending_share",
            "Laplacian",
            "a number from 0 to 1",
            lambda number: 0.0 <= number <= 1.0,
        )
        units = 2 * np.eye(len(cells), dtype=int)
        for first, second in product(units, units):
            mean = symmetrise(_compute_mean_product(cells, first, second))
            yield first + second, (1.0 - self.bending_share) * mean
        for orders, mean in BendingEnergy().terms(cells):
            yield orders, self.bending_share * mean


def build_energy_matrix(energy: LatticeEnergy, cells: Cells, spacing: Array) -> Array:
    """Build the energy for cells with sides ``spacing`` (…, d), (…, l, l).

    A derivative by u = x / h brings 1 / h, and a mean knows no volume.
    """
    total: Array | float = 0.0
    for orders, matrix in energy.terms(cells):
        factor = np.prod(spacing ** -orders.astype(np.float64), axis=-1)
        total = total + np.multiply.outer(factor, matrix)
    return np.asarray(total)


def _compute_mean_product(cells: Cells, first: Array, second: Array) -> Array:
    """Compute the mean over the lattice of ∂^first f_i · ∂^second f_j, (l, l)."""
    axes = zip(cells, first, second, strict=True)
    return _multiply_kronecker([integrate_products(c, int(p), int(q)) / c for c, p, q in axes])


def _compute_mean(cells: Cells, orders: Array) -> Array:
    """Compute the mean over the lattice of ∂^orders f_i, (l,)."""
    axes = zip(cells, orders, strict=True)
    return _multiply_kronecker([integrate_splines(c, int(q)) / c for c, q in axes])


def _multiply_kronecker(factors: list[Array]) -> Array:
    return reduce(lambda left, right: np.asarray(np.kron(left, right)), factors)


@cache
def make_lattice_points(cells: int) -> Array:
    """Return ξ (K,), where the weights of the functions sit on the axis."""
    knots = _make_knots(cells)
    return freeze((knots[1:-3] + knots[2:-2] + knots[3:-1]) / 3.0)


def find_cells(u: Array, cells: int) -> Index:
    """Find the cell that u (…) lies in, or is nearest to; the first for NaN."""
    clamped = np.nan_to_num(np.clip(u, 0.0, cells))
    return np.minimum(clamped.astype(np.intp), cells - 1)


def evaluate_splines(u: Array, cell: Index, cells: int, order: int) -> Array:
    """Evaluate the functions on the cell of u (…), or their slopes (order 1), (…, 4)."""
    clamped = np.clip(u, 0.0, cells)
    values = _evaluate_pieces(clamped - cell, _make_pieces(cells), order, cell)
    is_outside = u != clamped
    if order == 0 and is_outside.any():
        slopes = evaluate_splines(u[is_outside], cell[is_outside], cells, 1)
        values[is_outside] += (u - clamped)[is_outside, None] * slopes
    return values


@cache
def integrate_products(cells: int, first: int, second: int) -> Array:
    """Integrate ∫ b_i^(first) b_j^(second) du over the axis, exactly, (K, K).

    Products of the pieces are of degree 6 at most: four Gauss nodes a cell.
    """
    nodes, weights = leggauss(4)
    total = np.zeros((cells + 3, cells + 3))
    for j in range(cells):
        cell = np.full(len(nodes), j)
        left, right = (
            _evaluate_pieces(0.5 * (nodes + 1.0), _make_pieces(cells), order, cell)
            for order in (first, second)
        )
        total[j : j + 4, j : j + 4] += (left.T * (0.5 * weights)) @ right
    return freeze(total)


@cache
def integrate_splines(cells: int, order: int) -> Array:
    """Integrate ∫ b_i^(order) du over the axis, (K,)."""
    return freeze(
        integrate_products(cells, order, 0).sum(axis=1)
    )  # the functions themselves sum to one


def _make_knots(cells: int) -> Array:
    return np.concatenate([[0.0] * 3, np.arange(cells + 1.0), [float(cells)] * 3])


@cache
def _make_pieces(cells: int) -> Array:
    """Make the coefficients of 1, t, t², t³ (rows) of the functions of each cell, (c, 4, 4)."""
    from scipy.interpolate import BSpline  # slow to load, and needed by lattices alone

    functions, starts = BSpline(_make_knots(cells), np.eye(cells + 3), 3), np.arange(float(cells))
    taylor = np.stack([functions(starts, nu=k) / factorial(k) for k in range(4)], axis=1)
    return freeze(np.stack([taylor[j, :, j : j + 4] for j in range(cells)]))


def _evaluate_pieces(t: Array, pieces: Array, order: int, cell: Index) -> Array:
    """Evaluate derivatives at t (…) of the functions of each cell, by Horner's rule, (…, 4).

    Function by function: long loops over points are far faster than short ones over functions.

    Parameters
    ----------
    t : array (…)
        Places within their cells, 0 to 1.
    pieces : array (cells, 4, 4)
        Coefficients by cell, power and function.
    cell : array (…) of int
        The cell of each place.
    """
    factors = {0: (1.0, 1.0, 1.0, 1.0), 1: (1.0, 2.0, 3.0), 2: (2.0, 6.0)}[order]
    values = np.empty((*t.shape, 4))
    for function in range(4):
        value: Array | float = 0.0
        for power in reversed(range(len(factors))):
            coefficients = factors[power] * pieces[:, power + order, function]
            value = value * t + coefficients[cell]
        values[..., function] = value
    return values
