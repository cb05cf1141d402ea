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
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from defgpa._arrays import Array
from defgpa.solve.datum_space import CentredShapes


class Ties(Protocol):
    """Products with the C_i, and solutions with L."""

    def inner(self, one: Array, other: Array) -> Array:
        """⟨Y, C_i S⟩ for every shape."""
        ...

    def gathered(self, weights: Array, reference: Array) -> Array:
        """Σ_i w_i C_i S."""
        ...

    def solver(self, weights: Array) -> Callable[[Array], Array]:
        """B ↦ L⁺ B with L = Σ_i w_i C_i, for B with centred columns."""
        ...


@dataclass(frozen=True, eq=False)
class FullTies:
    """All C_i are the same, and leave what is centred as it is."""

    shapes: CentredShapes

    def inner(self, one: Array, other: Array) -> Array:
        """⟨Y, C_i S⟩ for every shape."""
        return np.full(len(self.shapes.counts), np.vdot(one, other))

    def gathered(self, weights: Array, reference: Array) -> Array:
        """Σ_i w_i C_i S."""
        return weights.sum() * reference

    def solver(self, weights: Array) -> Callable[[Array], Array]:
        """B ↦ L⁺ B."""
        total = weights.sum()
        return lambda B: B / total


@dataclass(frozen=True, eq=False)
class PartialTies:
    """L is the Laplacian of the graph in which a shape joins the landmarks it sees."""

    shapes: CentredShapes

    @property
    def visible(self) -> Array:
        """(n, m): ones and zeros."""
        assert self.shapes.visible is not None
        return self.shapes.visible

    def inner(self, one: Array, other: Array) -> Array:
        """⟨Y, C_i S⟩ for every shape."""
        V, counts = self.visible, self.shapes.counts
        means = (self.shapes.means(one) * self.shapes.means(other)).sum(axis=1)
        return V @ (one * other).sum(axis=0) - counts * means

    def gathered(self, weights: Array, reference: Array) -> Array:
        """Σ_i w_i C_i S."""
        means = self.shapes.means(reference) * weights[:, np.newaxis]
        return reference * (weights @ self.visible) - means.T @ self.visible

    def solver(self, weights: Array) -> Callable[[Array], Array]:
        """B ↦ L⁺ B."""
        n, m, _ = self.shapes.shape
        return self._by_landmarks(weights) if m <= n else self._by_shapes(weights)

    def _by_landmarks(self, weights: Array) -> Callable[[Array], Array]:
        """L = diag(c) − UᵀU as an m × m matrix; its null vector 1 is lifted, not met by B."""
        c, U = self._laplacian(weights)
        L = np.diag(c) - U.T @ U + c.mean() / len(c)
        factor = cho_factor(L, lower=True, overwrite_a=True, check_finite=False)
        return lambda B: cho_solve(factor, B.T, check_finite=False).T

    def _by_shapes(self, weights: Array) -> Callable[[Array], Array]:
        """L⁺ = C⁻¹ + C⁻¹Uᵀ (I − U C⁻¹ Uᵀ)⁺ U C⁻¹, up to constants: n × n only."""
        c, U = self._laplacian(weights)
        scaled = U / c
        null = np.sqrt(weights * self.shapes.counts)
        G = np.eye(len(weights)) - scaled @ U.T + np.outer(null, null) / (null @ null)
        factor = cho_factor(G, lower=True, overwrite_a=True, check_finite=False)

        def solve(B: Array) -> Array:
            lifted = cho_solve(factor, scaled @ B.T, check_finite=False)
            S = B / c + lifted.T @ scaled
            return S - S.mean(axis=1, keepdims=True)

        return solve

    def _laplacian(self, weights: Array) -> tuple[Array, Array]:
        """The c (m,) and U (n, m) with L = diag(c) − UᵀU."""
        V = self.visible
        return weights @ V, V * np.sqrt(weights / self.shapes.counts)[:, np.newaxis]


def ties_of(shapes: CentredShapes) -> Ties:
    """The ties of shapes that see everything, or of those with holes."""
    return FullTies(shapes) if shapes.visible is None else PartialTies(shapes)
