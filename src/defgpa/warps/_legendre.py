"""Polynomials of several variables as products of Legendre polynomials.

    q_e(u) = Π_a P_{e_a}(u_a),     e₁ + … + e_d ≤ degree

The same polynomials as the monomials u^e, but orthogonal on the box [−1, 1]^d: their columns stay
independent where powers nearly coincide.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from numpy.polynomial.legendre import legder, leggauss, legvander

from defgpa._arrays import Array, Index


@cache
def exponents(dim: int, degree: int) -> Index:
    """(q, d): all e with total degree at most ``degree``, the constant last, the affine before.

    Highest degree first, so that the last d + 1 are the affine ones in the order [u 1].
    """
    table = [e for e in product(range(degree + 1), repeat=dim) if sum(e) <= degree]
    ordered = sorted(table, key=lambda e: (-sum(e), [-k for k in e]))
    return np.array(ordered, dtype=np.intp).reshape(len(ordered), dim)


def polynomials(u: Array, degree: int) -> Array:
    """(…, p, q): q_e of points (…, p, d)."""
    return _products(_tables(u, degree, (0,) * u.shape[-1]), degree)


def polynomial_derivatives(u: Array, degree: int, orders: tuple[int, ...]) -> Array:
    """(…, p, q): derivatives of q_e, ``orders`` times by each coordinate."""
    return _products(_tables(u, degree, orders), degree)


def gauss_nodes(dim: int, count: int) -> tuple[Array, Array]:
    """Nodes (count^d, d) and weights of the *mean* over [−1, 1]^d, exact up to 2·count − 1."""
    ticks, weights = leggauss(count)
    nodes = np.stack(np.meshgrid(*[ticks] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    shares = np.stack(np.meshgrid(*[weights / 2.0] * dim, indexing="ij"), axis=-1)
    return nodes, shares.reshape(-1, dim).prod(axis=1)


def _tables(u: Array, degree: int, orders: tuple[int, ...]) -> list[Array]:
    """For each coordinate (…, p, degree + 1): P_0 … P_degree, differentiated."""
    return [
        legvander(u[..., axis], degree) @ _derivative(degree, order)
        for axis, order in enumerate(orders)
    ]


def _products(tables: list[Array], degree: int) -> Array:
    chosen = exponents(len(tables), degree)
    columns = tables[0][..., chosen[:, 0]]
    for axis in range(1, len(tables)):
        columns *= tables[axis][..., chosen[:, axis]]
    return columns


@cache
def _derivative(degree: int, order: int) -> Array:
    """(degree + 1, degree + 1): column k holds the Legendre coefficients of P_k^(order)."""
    matrix = np.zeros((degree + 1, degree + 1))
    for k, unit in enumerate(np.eye(degree + 1)):
        coefficients = legder(unit, order)
        matrix[: len(coefficients), k] = coefficients
    return matrix
