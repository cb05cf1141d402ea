r"""The motions of all shapes at once, as a point of a descent.

What is left of the cost of a rigid alignment when translations and reference are eliminated,

.. math:: f(Z) = \sum_i \lVert C_i D_i \rVert^2 - \langle B, S \rangle, \qquad
   B = \sum_i C_i D_i Z_i, \quad L S = B, \quad L = \sum_i s_i^2 C_i,

has, along :math:`Z_i \exp(t\,\Xi_i)` with :math:`\Xi_i` skew (plus a multiple of I that changes
the scale), the derivatives

.. math:: f' = -2 \sum_i \langle M_i, \Xi_i \rangle - \tau_i s_i^2 \lVert C_i S \rVert^2,
   \qquad M_i = Z_i^\top D_i^\top S, \quad \tau_i = \mathrm{tr}(\Xi_i) / d,

.. math:: f'' = \sum_i 4 \tau_i^2 s_i^2 \lVert C_i S \rVert^2 - 2 \langle M_i, \Xi_i^2 \rangle
   - 2 \langle E, L^+ E \rangle, \qquad
   E = \sum_i C_i D_i Z_i \Xi_i - 2 \tau_i s_i^2 C_i S .

The first two terms are one small block per shape; the last is what the reference gives by
following. Each costs two passes over the points.

L is the Laplacian of a graph: with :math:`C_i = \mathrm{diag}(v_i) - v_i v_i^\top / \lvert v_i
\rvert`, :math:`v_i` what shape i sees, constants cost nothing, and nothing else is free while the
shapes hang together by the landmarks they share. It is never formed when all is seen, and otherwise
factored on its smaller side, landmarks or shapes. All references have one coordinate a row: (d, m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from defgpa._arrays import Array
from defgpa.procrustes import Motions
from defgpa.solvers.datum.fit import CentredShapes, against, combined, inverted

Solver = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Algebra:
    """The directions a motion can move in: Z exp(Σ_k ξ_k E_k)."""

    generators: Array  # (p, d·d): the E_k, flattened
    traces: Array  # (p,): tr(E_k) / d, the rate at which log s changes
    products: Array  # (d·d, p·p): E_k E_l, made symmetric in k and l, flattened

    @staticmethod
    @cache
    def of(motions: Motions, d: int) -> Algebra:
        """Rotations in d dimensions, and a change of size if the family has it."""
        E = [_turn(d, j, k) for j in range(d) for k in range(j)]
        if motions.scaling:
            E.append(np.eye(d))
        stack = np.stack(E)
        products = np.einsum("kab,lbc->acklb", stack, stack).sum(axis=-1)
        products = 0.5 * (products + products.swapaxes(2, 3))
        p = len(E)
        traces = np.trace(stack, axis1=1, axis2=2) / d
        return Algebra(stack.reshape(p, d * d), traces, products.reshape(d * d, p * p))

    @property
    def size(self) -> int:
        """p, the degrees of freedom of one shape."""
        return len(self.traces)

    def element(self, step: Array) -> Array:
        """(n, d, d): Ξ_i = Σ_k ξ_ik E_k."""
        d = round(self.generators.shape[1] ** 0.5)
        return (step @ self.generators).reshape(-1, d, d)

    def exponential(self, step: Array) -> Array:
        """(n, d, d): exp(Ξ_i), by Rodrigues' formula, which holds in 2-D and 3-D."""
        growth = (step @ self.traces)[:, np.newaxis, np.newaxis]
        far = np.clip(growth, -3.0, 3.0)  # beyond, no quadratic model of log s is to be trusted
        identity = np.eye(round(self.generators.shape[1] ** 0.5))
        K = self.element(step) - growth * identity
        angle = np.sqrt(0.5 * (K * K).sum(axis=(1, 2)))[:, np.newaxis, np.newaxis]
        bend = 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
        return np.exp(far) * (identity + np.sinc(angle / np.pi) * K + bend * (K @ K))


def _turn(d: int, j: int, k: int) -> Array:
    """The generator of rotations in the plane of axes j and k."""
    E = np.zeros((d, d))
    E[j, k], E[k, j] = -1.0, 1.0
    return E


@dataclass(frozen=True, eq=False)
class Pose:
    """All motions at once, with the reference that is best for them: a point of the descent."""

    shapes: CentredShapes
    algebra: Algebra
    Z: Array  # (n, d, d)
    weights: Array  # (n,): s_i²
    solve: Solver  # L⁺
    reference: Array  # (d, m): Sᵀ
    cost: float

    @classmethod
    def at(
        cls,
        shapes: CentredShapes,
        algebra: Algebra,
        Z: Array,
        solve: Solver | None = None,
    ) -> Pose:
        """The pose of given motions; L⁺ may be given where the weights did not change."""
        weights = squared_scales(Z)
        solve = solver(shapes, weights) if solve is None else solve
        B = combined(shapes.rows, Z)
        S = solve(B)
        cost = float(shapes.spreads.sum() - np.vdot(B, S))
        return cls(shapes, algebra, Z, weights, solve, S, cost)

    @cached_property
    def alignment(self) -> Array:
        """(n, d, d): M_i = Z_iᵀ D_iᵀ S; symmetric where the rotation of shape i is best."""
        return self.Z.mT @ against(self.shapes.rows, self.reference)

    @cached_property
    def sizes(self) -> Array:
        """(n,): s_i² ‖C_i S‖², which equals tr M_i where the scale of shape i is best."""
        spread = inner(self.shapes, self.reference, self.reference)
        return self.weights * np.maximum(spread, np.finfo(np.float64).tiny)

    @cached_property
    def gradient(self) -> Array:
        """(n, p): the derivative of the cost along every generator of every shape."""
        M = self.alignment.reshape(len(self.Z), -1)
        pull = M @ self.algebra.generators.T
        return -2 * (pull - self.sizes[:, np.newaxis] * self.algebra.traces)

    @cached_property
    def levers(self) -> Array:
        """(n,): ‖D_i‖ s_i ‖C_i S‖, the largest that tr M_i can be."""
        return np.sqrt(self.shapes.spreads * self.sizes)

    @cached_property
    def slope(self) -> float:
        """The torque on each shape over its lever; their RMS."""
        squares = np.einsum("ip,ip->i", self.gradient, self.gradient) / (2 * self.levers) ** 2
        return float(np.sqrt(squares.sum() / len(squares)))

    @property
    def disagreement(self) -> float:
        """1 − ρ², averaged over the shapes, ρ the correlation of each with its image of S.

        What is left of the cost where sizes do not count.
        """
        explained = np.einsum("ikk->i", self.alignment) / self.levers
        return 1.0 - float(explained @ explained) / len(explained)

    @cached_property
    def cost_scale(self) -> float:
        """Σ_i ‖C_i D_i‖², which the cost is what is left of."""
        return float(self.shapes.spreads.sum())

    @cached_property
    def blocks(self) -> Array:
        """(n, p, p): the Hessian while the reference is held still."""
        p, tau = self.algebra.size, self.algebra.traces
        M = self.alignment.reshape(len(self.Z), -1)
        still = -2 * (M @ self.algebra.products).reshape(-1, p, p)
        return still + 4 * self.sizes[:, np.newaxis, np.newaxis] * np.outer(tau, tau)

    @cached_property
    def _inverse_blocks(self) -> Array:
        """What the slope of each shape is preconditioned with; always positive definite."""
        try:
            np.linalg.cholesky(self.blocks)
        except np.linalg.LinAlgError:
            # far from a minimum a block can curve downwards: its size counts, not its sign
            values, vectors = np.linalg.eigh(self.blocks)
            size = np.abs(values)
            size = np.maximum(size, 0.1 * size.max(axis=1, keepdims=True))
            return (vectors / size[:, np.newaxis]) @ vectors.mT
        return inverted(self.blocks)

    @property
    def first_radius(self) -> float:
        """Half a radian for every shape, in the metric of the preconditioner."""
        return float(0.5 * np.sqrt(np.abs(self.alignment).sum()))

    def curved(self, step: Array) -> Array:
        """Blocks of the shapes, less what the reference gives by following them."""
        growth = self.weights * (step @ self.algebra.traces)
        change = combined(self.shapes.rows, self.Z @ self.algebra.element(step))
        change -= 2 * gathered(self.shapes, growth, self.reference)
        follow = self.solve(change)
        pull = (self.Z.mT @ against(self.shapes.rows, follow)).reshape(len(step), -1)
        swell = 2 * self.weights * inner(self.shapes, follow, self.reference)
        given = pull @ self.algebra.generators.T - swell[:, np.newaxis] * self.algebra.traces
        return np.einsum("ikl,il->ik", self.blocks, step) - 2 * given

    def preconditioned(self, slope: Array) -> Array:
        """Each shape answers for itself."""
        return np.einsum("ikl,il->ik", self._inverse_blocks, slope)

    def moved(self, step: Array) -> Pose:
        """The pose after a step (n, p): Z_i exp(Ξ_i)."""
        Z = self.Z @ self.algebra.exponential(step)
        constant = self.solve if not self.algebra.traces.any() else None
        return Pose.at(self.shapes, self.algebra, Z, constant)


def squared_scales(Z: Array) -> Array:
    """(n,): s_i² of Z_i = s_i R_i."""
    squares: Array = (Z * Z).sum(axis=(1, 2))
    return squares / Z.shape[-1]


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
