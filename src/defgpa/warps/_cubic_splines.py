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
from scipy.interpolate import BSpline

from defgpa._arrays import Array, Index, frozen


@cache
def lattice_points(cells: int) -> Array:
    """(K,): ξ, where the weights of the functions sit on the axis."""
    knots = _knots(cells)
    return frozen((knots[1:-3] + knots[2:-2] + knots[3:-1]) / 3.0)


def local_splines(u: Array, cells: int) -> tuple[Index, Array, Array]:
    """For u (…): the cell (…), and the values and slopes (…, 4) of the functions on it.

    NaN sits in the first cell, with NaN for values.
    """
    inside = np.clip(u, 0.0, cells)
    cell = np.minimum(np.nan_to_num(inside).astype(np.intp), cells - 1)
    pieces, t = _pieces(cells)[cell], inside - cell
    slopes = _combined(t, pieces, 1)
    values = _combined(t, pieces, 0) + (u - inside)[..., None] * slopes
    return cell, values, slopes


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
    for cell, piece in enumerate(_pieces(cells)):
        left, right = (_combined(0.5 * (nodes + 1.0), piece, q) for q in (first, second))
        total[cell : cell + 4, cell : cell + 4] += (left.T * (0.5 * weights)) @ right
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
    functions, starts = BSpline(_knots(cells), np.eye(cells + 3), 3), np.arange(float(cells))
    taylor = np.stack([functions(starts, nu=k) / factorial(k) for k in range(4)], axis=1)
    return frozen(np.stack([taylor[j, :, j : j + 4] for j in range(cells)]))


def _combined(t: Array, pieces: Array, order: int) -> Array:
    """(…, 4): the derivatives at t (…) of the functions with these pieces (…, 4, 4)."""
    one, zero = np.ones_like(t), np.zeros_like(t)
    powers = {
        0: (one, t, t**2, t**3),
        1: (zero, one, 2.0 * t, 3.0 * t**2),
        2: (zero, zero, 2.0 * one, 6.0 * t),
    }[order]
    return np.asarray(sum(power[..., None] * pieces[..., k, :] for k, power in enumerate(powers)))
