r"""Cubic B-splines on one axis, and exact integrals of their products.

An axis of c cells of length 1 carries K = c + 3 functions, on the knots 0 0 0 0 1 2 … c c c c: the
cubic splines with two continuous derivatives, in their best conditioned local basis. On cell j
only the functions j … j + 3 differ from zero, each a cubic in t = u − j. They sum to one, and
with ξ_i the mean of their inner knots Σ_i ξ_i b_i(u) = u: constants and lines are among them.
Beyond the ends each function goes on along its tangent, which keeps both properties everywhere.
"""

from __future__ import annotations

from functools import cache
from math import factorial

import numpy as np
from numpy.polynomial.legendre import leggauss

from defgpa._arrays import Array, Index, frozen


@cache
def lattice_points(cells: int) -> Array:
    """(K,): ξ, where the weights of the functions sit on the axis."""
    knots = _knots(cells)
    return frozen((knots[1:-3] + knots[2:-2] + knots[3:-1]) / 3.0)


def cells_of(u: Array, cells: int) -> Index:
    """(…): the cell that u (…) lies in, or is nearest to; the first for NaN."""
    inside = np.nan_to_num(np.clip(u, 0.0, cells))
    return np.minimum(inside.astype(np.intp), cells - 1)


def local_splines(u: Array, cell: Index, cells: int, order: int) -> Array:
    """(…, 4): values (order 0) or slopes (order 1) at u (…) of the functions on its cell."""
    inside = np.clip(u, 0.0, cells)
    found = _combined(inside - cell, _pieces(cells), order, cell)
    beyond = u != inside
    if order == 0 and beyond.any():
        slopes = local_splines(u[beyond], cell[beyond], cells, 1)
        found[beyond] += (u - inside)[beyond, None] * slopes
    return found


def spread(cell: Index, local: Array, count: int) -> Array:
    """(…, K): the four local entries (…, 4) in their places among all K functions."""
    full = np.zeros((*cell.shape, count))
    np.put_along_axis(full, cell[..., None] + np.arange(4), local, axis=-1)
    return full


@cache
def products(cells: int, first: int, second: int) -> Array:
    """(K, K): ∫ b_i^(first) b_j^(second) du over the axis, exactly.

    Products of the pieces are of degree 6 at most: four Gauss nodes a cell.
    """
    nodes, weights = leggauss(4)
    total = np.zeros((cells + 3, cells + 3))
    for j in range(cells):
        cell = np.full(len(nodes), j)
        left, right = (
            _combined(0.5 * (nodes + 1.0), _pieces(cells), order, cell) for order in (first, second)
        )
        total[j : j + 4, j : j + 4] += (left.T * (0.5 * weights)) @ right
    return frozen(total)


@cache
def integrals(cells: int, order: int) -> Array:
    """(K,): ∫ b_i^(order) du over the axis."""
    return frozen(products(cells, order, 0).sum(axis=1))  # the functions themselves sum to one


def _knots(cells: int) -> Array:
    return np.concatenate([[0.0] * 3, np.arange(cells + 1.0), [float(cells)] * 3])


@cache
def _pieces(cells: int) -> Array:
    """(c, 4, 4): on each cell, the coefficients of 1, t, t², t³ (rows) of its four functions."""
    from scipy.interpolate import BSpline  # slow to load, and needed by lattices alone

    functions, starts = BSpline(_knots(cells), np.eye(cells + 3), 3), np.arange(float(cells))
    taylor = np.stack([functions(starts, nu=k) / factorial(k) for k in range(4)], axis=1)
    return frozen(np.stack([taylor[j, :, j : j + 4] for j in range(cells)]))


def _combined(t: Array, pieces: Array, order: int, cell: Index) -> Array:
    """(…, 4): derivatives at t (…) of the functions of each cell, by Horner's rule.

    Function by function: long loops over points are far faster than short ones over functions.
    """
    factors = {0: (1.0, 1.0, 1.0, 1.0), 1: (1.0, 2.0, 3.0), 2: (2.0, 6.0)}[order]
    found = np.empty((*t.shape, 4))
    for function in range(4):
        value: Array | float = 0.0
        for power in reversed(range(len(factors))):
            coefficients = factors[power] * pieces[:, power + order, function]
            value = value * t + coefficients[cell]
        found[..., function] = value
    return found
