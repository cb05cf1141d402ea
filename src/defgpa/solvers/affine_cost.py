r"""The cost of an affine alignment as a function of the reference, with its derivatives.

Given :math:`S`, the best affine maps are regressions,
:math:`A_i = (S^\top C_i S)^{-1} S^\top C_i D_i`, that leave residuals
:math:`E_i = C_i (D_i - S A_i)`, and

.. math:: f(S) = \sum_i \langle E_i, D_i - S A_i \rangle, \qquad
   \nabla f = -2 \sum_i E_i A_i^\top .

When S moves by T, the maps respond by
:math:`N_i = (S^\top C_i S)^{-1} (T^\top E_i - S^\top C_i T A_i)`, so that

.. math:: \nabla^2 f\,[T] = 2 \sum_i C_i (T A_i + S N_i) A_i^\top - E_i N_i^\top .

Only the span of S and the constant counts, so steps are kept out of it: S is orthonormal and
centred, and T orthogonal to it and to the constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from defgpa.arrays import Array
from defgpa.solvers.datum_space import CentredShapes, cross_products, sum_products


@dataclass(frozen=True, eq=False)
class AffinePoint:
    """A reference, of which only the span counts, with the maps that are best for it.

    See :class:`defgpa.solvers.trust_region.Point`.
    """

    shapes: CentredShapes
    reference: Array  # (d, m): Sᵀ, centred and orthonormal
    maps: Array  # (n, d, d): A_i
    inverse_moments: Array  # (n, d, d): (SᵀC_iS)⁻¹
    residuals: Array  # (n·d, m): E_i = C_i (D_i − S A_i)
    cost: float

    @classmethod
    def from_reference(cls, shapes: CentredShapes, reference: Array) -> AffinePoint:
        """Compute the best maps onto the span of the rows of a reference (d, m)."""
        centred = reference - reference.mean(axis=1, keepdims=True)
        S = np.ascontiguousarray(np.linalg.qr(centred.T)[0].T)
        inverse_moments = _invert_moments(shapes, S)
        A = inverse_moments @ cross_products(shapes.rows, S).mT
        E = shapes.compute_residuals(A, S)
        return cls(shapes, S, A, inverse_moments, E, shapes.compute_cost(E))

    @cached_property
    def gradient(self) -> Array:
        """(d, m): −2 Σ_i A_i E_iᵀ."""
        return -2 * sum_products(self.residuals, self.maps.mT)

    @cached_property
    def relative_gradient(self) -> float:
        """The norm of the gradient over that of one of its two terms, 2 Σ_i D_i A_iᵀ."""
        terms = sum_products(self.shapes.rows, self.maps.mT)
        return float(np.linalg.norm(self.gradient) / (2 * np.linalg.norm(terms)))

    @cached_property
    def cost_scale(self) -> float:
        """Σ_i ‖C_i D_i‖², the cost of a reference of size 0."""
        return float(self.shapes.squared_sizes.sum())

    @cached_property
    def map_squares(self) -> Array:
        """(n, d, d): A_i A_iᵀ."""
        return self.maps @ self.maps.mT

    @cached_property
    def landmark_blocks(self) -> Array:
        """(m, d, d): Q_j = Σ_i γ_ij A_i A_iᵀ, half the Hessian of landmark j alone."""
        return _sum_per_landmark(self.shapes, self.map_squares)

    @cached_property
    def _inverse_blocks(self) -> Array:
        """(m, d, d): (2 Q_j)⁻¹, with a floor for landmarks that only nearly flat maps determine."""
        Q = self.landmark_blocks
        d = Q.shape[-1]
        floor = 1e-9 * np.trace(Q.mean(axis=0)) / d
        return 0.5 * np.linalg.inv(Q + floor * np.eye(d))

    @property
    def initial_radius(self) -> float:
        """A third of the size of the reference, in the metric of the preconditioner."""
        return float(0.3 * np.sqrt(2 * self.cost_scale))

    def hessian_product(self, step: Array) -> Array:
        """Multiply the Hessian with a step (d, m); the maps respond to it."""
        S, A, E = self.reference, self.maps, self.residuals
        torque = cross_products(E, step).mT
        response = self.inverse_moments @ (torque - _compute_moments(self.shapes, S, step) @ A)
        direct = _sum_images(self.shapes, step, self.map_squares, self.landmark_blocks)
        N = response @ A.mT
        responded = _sum_images(self.shapes, S, N, _sum_per_landmark(self.shapes, N))
        return self._project_out_span(2 * (direct + responded - sum_products(E, response.mT)))

    def precondition(self, gradient: Array) -> Array:
        """Multiply the inverse block of each landmark with its gradient, out of the span."""
        return self._project_out_span(np.einsum("jkl,lj->kj", self._inverse_blocks, gradient))

    def _project_out_span(self, change: Array) -> Array:
        """Remove from a change (d, m) of the reference what an affine change of frame does too."""
        S = self.reference
        change = change - change.mean(axis=1, keepdims=True)
        return change - (change @ S.T) @ S

    def retract(self, step: Array) -> AffinePoint:
        """Return the span of S plus a step (d, m)."""
        return AffinePoint.from_reference(self.shapes, self.reference + step)


def _invert_moments(shapes: CentredShapes, S: Array) -> Array:
    """Compute (SᵀC_iS)⁻¹ (n, d, d); a pseudo-inverse where the visible part of S is flat."""
    n, _, d = shapes.shape
    if shapes.weights is None:  # S is orthonormal and centred
        return np.broadcast_to(np.eye(d), (n, d, d))
    moments = _compute_moments(shapes, S, S)
    return np.asarray(np.linalg.pinv(moments, rcond=1e-12, hermitian=True), dtype=np.float64)


def _compute_moments(shapes: CentredShapes, S: Array, T: Array) -> Array:
    """Compute SᵀC_iT (n, d, d) for every shape, for S and T (d, m)."""
    d = len(S)
    products = shapes.sum_over_landmarks((S[:, np.newaxis] * T).reshape(d * d, -1))
    centroids = shapes.compute_centroids(S)[:, :, None] * shapes.compute_centroids(T)[:, None]
    return products.reshape(-1, d, d) - shapes.totals[:, np.newaxis, np.newaxis] * centroids


def _sum_per_landmark(shapes: CentredShapes, matrices: Array) -> Array:
    """Compute Σ_i γ_ij N_i (m, d, d) at every landmark, for matrices (n, d, d)."""
    n, m, d = shapes.shape
    return shapes.sum_over_shapes(matrices.reshape(n, d * d)).T.reshape(m, d, d)


def _sum_images(shapes: CentredShapes, S: Array, matrices: Array, landmark_sums: Array) -> Array:
    """Compute (Σ_i C_i S N_i)ᵀ (d, m) for matrices N (n, d, d), and their sums per landmark.

    Parameters
    ----------
    S : array (d, m)
        The reference.
    matrices, landmark_sums : array (n, d, d), (m, d, d)
    """
    centroids = np.squeeze(shapes.compute_centroids(S)[:, np.newaxis] @ matrices, axis=1)
    return np.einsum("kj,jkl->lj", S, landmark_sums) - shapes.sum_over_shapes(centroids)
