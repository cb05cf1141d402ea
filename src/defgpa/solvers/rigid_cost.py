r"""The cost of a rigid alignment as a function of the motions of all shapes, with its derivatives.

Once translations and reference are eliminated, the cost

.. math:: f(Z) = \sum_i \lVert C_i D_i \rVert^2 - \langle B, S \rangle, \qquad
   B = \sum_i C_i D_i Z_i, \quad L S = B, \quad L = \sum_i s_i^2 C_i,

has, along :math:`Z_i \exp(t\,\Xi_i)` with :math:`\Xi_i` skew (plus a multiple of I that changes
the scale), the derivatives

.. math:: f' = -2 \sum_i \langle M_i, \Xi_i \rangle - \tau_i s_i^2 \lVert C_i S \rVert^2,
   \qquad M_i = Z_i^\top D_i^\top S, \quad \tau_i = \mathrm{tr}(\Xi_i) / d,

.. math:: f'' = \sum_i 4 \tau_i^2 s_i^2 \lVert C_i S \rVert^2 - 2 \langle M_i, \Xi_i^2 \rangle
   - 2 \langle E, L^+ E \rangle, \qquad
   E = \sum_i C_i D_i Z_i \Xi_i - 2 \tau_i s_i^2 C_i S .

The first two terms of f'' are one small block per shape; the last is the response of the reference.
Each costs two passes over the points.

L is the Laplacian of a graph: with :math:`C_i = \mathrm{diag}(\gamma_i) - \gamma_i \gamma_i^\top /
\lvert \gamma_i \rvert` and :math:`\gamma_i` the landmark weights of shape i, constants are free,
and nothing else is free while the shapes are linked by the landmarks they share. It is never formed
when all weights are 1, and otherwise factored on its smaller side, landmarks or shapes. All
references have one coordinate a row: (d, m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from defgpa.arrays import Array
from defgpa.procrustes import Motions
from defgpa.solvers.datum_space import CentredShapes, cross_products, sum_products

LaplacianSolver = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class MotionAlgebra:
    """The Lie algebra of a family of motions: the directions E_k of Z exp(Σ_k ξ_k E_k)."""

    generators: Array  # (p, d·d): the E_k, flattened
    traces: Array  # (p,): tr(E_k) / d, the rate at which log s changes
    products: Array  # (d·d, p·p): E_k E_l, made symmetric in k and l, flattened

    @staticmethod
    @cache
    def from_motions(motions: Motions, d: int) -> MotionAlgebra:
        """Build the algebra of rotations in d dimensions, and of changes of size where allowed."""
        E = [_make_rotation_generator(d, j, k) for j in range(d) for k in range(j)]
        if motions.scaling:
            E.append(np.eye(d))
        stack = np.stack(E)
        products = np.einsum("kab,lbc->acklb", stack, stack).sum(axis=-1)
        products = 0.5 * (products + products.swapaxes(2, 3))
        p = len(E)
        traces = np.trace(stack, axis1=1, axis2=2) / d
        return MotionAlgebra(stack.reshape(p, d * d), traces, products.reshape(d * d, p * p))

    @property
    def size(self) -> int:
        """p, the degrees of freedom of one shape."""
        return len(self.traces)

    def to_matrices(self, step: Array) -> Array:
        """Combine the generators: Ξ_i = Σ_k ξ_ik E_k, (n, d, d)."""
        d = round(self.generators.shape[1] ** 0.5)
        return (step @ self.generators).reshape(-1, d, d)

    def exponential(self, step: Array) -> Array:
        """Compute exp(Ξ_i) (n, d, d) by Rodrigues' formula, which holds in 2-D and 3-D."""
        growth = (step @ self.traces)[:, np.newaxis, np.newaxis]
        limited = np.clip(growth, -3.0, 3.0)  # no quadratic model of log s holds beyond
        identity = np.eye(round(self.generators.shape[1] ** 0.5))
        K = self.to_matrices(step) - growth * identity
        angle = np.sqrt(0.5 * (K * K).sum(axis=(1, 2)))[:, np.newaxis, np.newaxis]
        second = 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
        return np.exp(limited) * (identity + np.sinc(angle / np.pi) * K + second * (K @ K))


def _make_rotation_generator(d: int, j: int, k: int) -> Array:
    """Make the generator of rotations in the plane of axes j and k."""
    E = np.zeros((d, d))
    E[j, k], E[k, j] = -1.0, 1.0
    return E


@dataclass(frozen=True, eq=False)
class RigidPoint:
    """The motions of all shapes with the reference that is best for them: a point of the descent.

    See :class:`defgpa.solvers.trust_region.Point`.
    """

    shapes: CentredShapes
    algebra: MotionAlgebra
    Z: Array  # (n, d, d)
    squared_scales: Array  # (n,): s_i²
    solve_laplacian: LaplacianSolver  # L⁺
    reference: Array  # (d, m): Sᵀ
    cost: float

    @classmethod
    def from_motions(
        cls,
        shapes: CentredShapes,
        algebra: MotionAlgebra,
        Z: Array,
        solve_laplacian: LaplacianSolver | None = None,
    ) -> RigidPoint:
        """Compute the best reference for motions Z; L⁺ may be given where no scale has changed."""
        squared_scales = compute_squared_scales(Z)
        solve_laplacian = solve_laplacian or factor_laplacian(shapes, squared_scales)
        B = sum_products(shapes.rows, Z)
        S = solve_laplacian(B)
        cost = float(shapes.squared_sizes.sum() - np.vdot(B, S))
        return cls(shapes, algebra, Z, squared_scales, solve_laplacian, S, cost)

    @cached_property
    def moments(self) -> Array:
        """(n, d, d): M_i = Z_iᵀ D_iᵀ S; symmetric where the rotation of shape i is best."""
        return self.Z.mT @ cross_products(self.shapes.rows, self.reference)

    @cached_property
    def image_squares(self) -> Array:
        """(n,): s_i² ‖C_i S‖², which equals tr M_i where the scale of shape i is best."""
        squares = compute_inner_products(self.shapes, self.reference, self.reference)
        return self.squared_scales * np.maximum(squares, np.finfo(np.float64).tiny)

    @cached_property
    def gradient(self) -> Array:
        """(n, p): the derivative of the cost along every generator of every shape."""
        M = self.moments.reshape(len(self.Z), -1)
        torque = M @ self.algebra.generators.T
        return -2 * (torque - self.image_squares[:, np.newaxis] * self.algebra.traces)

    @cached_property
    def max_moments(self) -> Array:
        """(n,): ‖D_i‖ s_i ‖C_i S‖, the largest that tr M_i can be."""
        return np.sqrt(self.shapes.squared_sizes * self.image_squares)

    @cached_property
    def relative_gradient(self) -> float:
        """The gradient of each shape over the largest it can be; their RMS."""
        squares = np.einsum("ip,ip->i", self.gradient, self.gradient) / (2 * self.max_moments) ** 2
        return float(np.sqrt(squares.sum() / len(squares)))

    @property
    def disagreement(self) -> float:
        """1 − ρ², averaged over the shapes, ρ the correlation of each with its image of S."""
        correlations = np.einsum("ikk->i", self.moments) / self.max_moments
        return 1.0 - float(correlations @ correlations) / len(correlations)

    @cached_property
    def cost_scale(self) -> float:
        """Σ_i ‖C_i D_i‖², the cost of a reference of size 0."""
        return float(self.shapes.squared_sizes.sum())

    @cached_property
    def hessian_blocks(self) -> Array:
        """(n, p, p): the Hessian for a fixed reference."""
        p, tau = self.algebra.size, self.algebra.traces
        M = self.moments.reshape(len(self.Z), -1)
        rotations = -2 * (M @ self.algebra.products).reshape(-1, p, p)
        return rotations + 4 * self.image_squares[:, np.newaxis, np.newaxis] * np.outer(tau, tau)

    @cached_property
    def _inverse_blocks(self) -> Array:
        """(n, p, p): the preconditioner of each shape; always positive definite."""
        try:
            np.linalg.cholesky(self.hessian_blocks)
        except np.linalg.LinAlgError:
            # far from a minimum a block can be indefinite: take the absolute eigenvalues
            values, vectors = np.linalg.eigh(self.hessian_blocks)
            size = np.abs(values)
            size = np.maximum(size, 0.1 * size.max(axis=1, keepdims=True))
            return (vectors / size[:, np.newaxis]) @ vectors.mT
        return np.asarray(np.linalg.inv(self.hessian_blocks))

    @property
    def initial_radius(self) -> float:
        """Half a radian for every shape, in the metric of the preconditioner."""
        return float(0.5 * np.sqrt(np.abs(self.moments).sum()))

    def hessian_product(self, step: Array) -> Array:
        """Multiply the blocks with a step (n, p), less the response of the reference."""
        growth = self.squared_scales * (step @ self.algebra.traces)
        E = sum_products(self.shapes.rows, self.Z @ self.algebra.to_matrices(step))
        E -= 2 * apply_laplacian(self.shapes, growth, self.reference)
        response = self.solve_laplacian(E)
        torque = (self.Z.mT @ cross_products(self.shapes.rows, response)).reshape(len(step), -1)
        products = compute_inner_products(self.shapes, response, self.reference)
        scaling = 2 * self.squared_scales * products
        responded = torque @ self.algebra.generators.T - scaling[:, None] * self.algebra.traces
        return np.einsum("ikl,il->ik", self.hessian_blocks, step) - 2 * responded

    def precondition(self, gradient: Array) -> Array:
        """Multiply the inverse block of each shape with its gradient."""
        return np.einsum("ikl,il->ik", self._inverse_blocks, gradient)

    def retract(self, step: Array) -> RigidPoint:
        """Move along a step (n, p): Z_i exp(Ξ_i)."""
        Z = self.Z @ self.algebra.exponential(step)
        unchanged = None if self.algebra.traces.any() else self.solve_laplacian
        return RigidPoint.from_motions(self.shapes, self.algebra, Z, unchanged)


def compute_squared_scales(Z: Array) -> Array:
    """Compute s_i² (n,) of Z_i = s_i R_i."""
    squares: Array = (Z * Z).sum(axis=(1, 2))
    return squares / Z.shape[-1]


def compute_inner_products(shapes: CentredShapes, Y: Array, S: Array) -> Array:
    """Compute ⟨Y, C_i S⟩ (n,) for every shape, for centred Y and S (d, m)."""
    if shapes.weights is None:
        return np.full(len(shapes.totals), np.vdot(Y, S))
    products = shapes.sum_over_landmarks((Y * S).sum(axis=0)[np.newaxis])[:, 0]
    centroids = (shapes.compute_centroids(Y) * shapes.compute_centroids(S)).sum(axis=1)
    return products - shapes.totals * centroids


def apply_laplacian(shapes: CentredShapes, coefficients: Array, reference: Array) -> Array:
    """Compute (Σ_i c_i C_i S)ᵀ (d, m), for coefficients c (n,) and a centred reference (d, m)."""
    if shapes.weights is None:
        return reference * coefficients.sum()
    column = coefficients[:, np.newaxis]
    centroids = shapes.sum_over_shapes(column * shapes.compute_centroids(reference))
    return reference * shapes.sum_over_shapes(column) - centroids


def factor_laplacian(shapes: CentredShapes, coefficients: Array) -> LaplacianSolver:
    """Factor L = Σ_i c_i C_i; return B ↦ L⁺ B, for B (d, m) with centred rows."""
    if shapes.weights is None:
        total = coefficients.sum()
        return lambda B: B / total
    n, m = shapes.weights.shape
    # L = diag(degrees) − UᵀU
    degrees = coefficients @ shapes.weights
    U = shapes.weights * np.sqrt(coefficients / shapes.totals)[:, np.newaxis]
    if m <= n:
        return _factor_by_landmarks(degrees, U)
    return _factor_by_shapes(degrees, U, np.sqrt(coefficients * shapes.totals))


def _factor_by_landmarks(degrees: Array, U: Array) -> LaplacianSolver:
    """Factor L as an m × m matrix, its null vector 1 lifted; B is orthogonal to it."""
    L = np.diag(degrees) - U.T @ U + degrees.mean() / len(degrees)
    factor = cho_factor(L, lower=True, overwrite_a=True, check_finite=False)
    return lambda B: cho_solve(factor, B.T, check_finite=False).T


def _factor_by_shapes(degrees: Array, U: Array, null: Array) -> LaplacianSolver:
    """Factor L by Woodbury's formula with an n × n matrix only.

    With C = diag(degrees), L⁺ = C⁻¹ + C⁻¹Uᵀ (I − U C⁻¹ Uᵀ)⁺ U C⁻¹ up to constants.

    Parameters
    ----------
    degrees, U, null : array (m,), (n, m), (n,)
        The diagonal C; L = C − UᵀU; and the null vector of I − U C⁻¹ Uᵀ.
    """
    scaled = U / degrees
    G = np.eye(len(U)) - scaled @ U.T + np.outer(null, null) / (null @ null)
    factor = cho_factor(G, lower=True, overwrite_a=True, check_finite=False)

    def solve_laplacian(B: Array) -> Array:
        S = B / degrees + cho_solve(factor, scaled @ B.T, check_finite=False).T @ scaled
        return S - S.mean(axis=1, keepdims=True)

    return solve_laplacian
