r"""Shapes are tied together by the landmarks they share.

Eliminating translations and reference from a rigid alignment of shapes with weights w_i leaves
one linear system, L S = B with

.. math:: L = \sum_i w_i C_i, \qquad C_i = \mathrm{diag}(v_i) - v_i v_i^\top / \lvert v_i \rvert,

where :math:`v_i` says what shape i sees and :math:`C_i` centres it. L is the Laplacian of a graph:
constants cost nothing, and nothing else is free while the shapes hang together. It is never formed
when all is seen, and otherwise factored on its smaller side, landmarks or shapes.

All references here have one coordinate a row: (d, m).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from defgpa._arrays import Array
from defgpa.solve.datum.fit import CentredShapes

Solver = Callable[[Array], Array]


def inner(shapes: CentredShapes, one: Array, other: Array) -> Array:
    """(n,): ⟨Y, C_i S⟩ for every shape, for centred Y and S."""
    if shapes.visible is None:
        return np.full(len(shapes.counts), np.vdot(one, other))
    whole = shapes.summed_over_seen((one * other).sum(axis=0)[np.newaxis])[:, 0]
    return whole - shapes.counts * (shapes.means(one) * shapes.means(other)).sum(axis=1)


def gathered(shapes: CentredShapes, weights: Array, reference: Array) -> Array:
    """(d, m): (Σ_i w_i C_i S)ᵀ, for a centred S."""
    if shapes.visible is None:
        return reference * weights.sum()
    w = weights[:, np.newaxis]
    centres = shapes.summed_over_viewers(w * shapes.means(reference))
    return reference * shapes.summed_over_viewers(w) - centres


def solver(shapes: CentredShapes, weights: Array) -> Solver:
    """B ↦ L⁺ B with L = Σ_i w_i C_i, for B (d, m) with centred rows."""
    if shapes.visible is None:
        total = weights.sum()
        return lambda B: B / total
    n, m = shapes.visible.shape
    # L = diag(c) − UᵀU
    c = weights @ shapes.visible
    U = shapes.visible * np.sqrt(weights / shapes.counts)[:, np.newaxis]
    if m <= n:
        return _solver_by_landmarks(c, U)
    return _solver_by_shapes(c, U, np.sqrt(weights * shapes.counts))


def _solver_by_landmarks(c: Array, U: Array) -> Solver:
    """L as an m × m matrix; its null vector 1 is lifted, and B does not meet it."""
    L = np.diag(c) - U.T @ U + c.mean() / len(c)
    factor = cho_factor(L, lower=True, overwrite_a=True, check_finite=False)
    return lambda B: cho_solve(factor, B.T, check_finite=False).T


def _solver_by_shapes(c: Array, U: Array, null: Array) -> Solver:
    """L⁺ = C⁻¹ + C⁻¹Uᵀ (I − U C⁻¹ Uᵀ)⁺ U C⁻¹ up to constants, with an n × n matrix only."""
    scaled = U / c
    G = np.eye(len(U)) - scaled @ U.T + np.outer(null, null) / (null @ null)
    factor = cho_factor(G, lower=True, overwrite_a=True, check_finite=False)

    def solve(B: Array) -> Array:
        S = B / c + cho_solve(factor, scaled @ B.T, check_finite=False).T @ scaled
        return S - S.mean(axis=1, keepdims=True)

    return solve
