r"""The datum-space cost as a function of the reference alone, with its derivatives.

Given a reference :math:`S`, the best map of each shape is in closed form: a regression
:math:`A_i = (S^\top C_i S)^{-1} S^\top C_i D_i` among the affine maps, a singular value
decomposition of :math:`S^\top C_i D_i` among the motions. With these maps the cost

.. math:: f(S) = \sum_i \lVert C_i D_i \rVert^2 - 2 \langle A_i, S^\top C_i D_i \rangle
   + \langle A_i A_i^\top, S^\top C_i S \rangle

depends on the moments of the shapes with the reference only. As the maps are the best ones, its
gradient is that for maps that stand,

.. math:: \nabla f = 2 \sum_i C_i (S A_i - D_i) A_i^\top ,

and when S moves by T and the maps respond by :math:`N_i`, it moves by

.. math:: \nabla^2 f\,[T] = 2 \sum_i C_i T A_i A_i^\top + C_i S (N_i A_i^\top + A_i N_i^\top)
   - C_i D_i N_i^\top .

Translations are in the weighted centring :math:`C_i`. What changes the reference as a map of the
family would, costs nothing: steps are kept out of these directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from defgpa.arrays import Array
from defgpa.procrustes import Motions, find_nearest_orthogonal
from defgpa.solvers.datum_space import CentredShapes, multiply_landmarks

_TINY = np.finfo(np.float64).tiny
_SIGNS = {  # (p, d, d): antisymmetric matrices, one for each rotation
    2: np.array([[[0.0, 1.0], [-1.0, 0.0]]]),
    3: np.array(
        [
            [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]],
            [[0.0, 0.0, -1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
            [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
        ]
    ),
}


class MapFamily(Protocol):
    """Linear maps of a reference into shapes, from the moments of both.

    H (n, d, d) is Sᵀ C_i D_i, M (n, d, d) or (1, d, d) is Sᵀ C_i S.
    """

    def fit(self, H: Array, M: Array) -> Array:
        """Return the best maps A (n, d, d)."""
        ...

    def respond(self, A: Array, H: Array, M: Array, dH: Array, dM: Array) -> Array:
        """Return the change N (n, d, d) of the best maps when the moments change by dH and dM."""
        ...

    def list_free_directions(self, n_dims: int) -> Array:
        """Return a basis (p, d, d) of the X for which S and S + t S X cost the same."""
        ...


class AffineMaps:
    """All linear maps."""

    def fit(self, H: Array, M: Array) -> Array:
        """Return the best maps."""
        return np.asarray(np.linalg.inv(lift(M)) @ H)

    def respond(self, A: Array, H: Array, M: Array, dH: Array, dM: Array) -> Array:
        """Return the change of the best maps when the moments change."""
        return self.fit(dH - dM @ A, M)

    def list_free_directions(self, n_dims: int) -> Array:
        """Return all matrices with one entry."""
        return np.eye(n_dims**2).reshape(-1, n_dims, n_dims)


@dataclass(frozen=True)
class MotionMaps:
    """Rotations, times a scale or with reflections where the motions have them."""

    motions: Motions

    def fit(self, H: Array, M: Array) -> Array:
        """Return the best maps."""
        side = np.ones(len(H))
        if self.motions.reflections:
            side[np.linalg.det(H) < 0] = -1.0
        rotations, traces = find_nearest_orthogonal(H, side)
        if not self.motions.scaling:
            return rotations
        scales = np.maximum(traces / np.maximum(np.einsum("naa->n", M), _TINY), _TINY)
        return rotations * scales[:, np.newaxis, np.newaxis]

    def respond(self, A: Array, H: Array, M: Array, dH: Array, dM: Array) -> Array:
        r"""Return the change of the best maps when the moments change.

        RᵀH is symmetric at the best rotation R, and stays so when it turns by R Ω and H moves by
        dH: Ω RᵀH + RᵀH Ω is twice the antisymmetric part of Rᵀ dH.
        """
        n_dims = A.shape[-1]
        squared_scales = np.einsum("nab,nab->n", A, A)[:, np.newaxis, np.newaxis] / n_dims
        signs = _SIGNS[n_dims]
        torques = np.einsum("kab,nab->nk", signs, A.mT @ dH)
        turns = np.linalg.inv(lift(compute_stiffness(A, H))) @ torques[..., np.newaxis]
        change = A @ np.einsum("nk,kab->nab", turns[..., 0], signs)
        if self.motions.scaling:
            moved = np.einsum("nab,nab->n", A, dH)[:, np.newaxis, np.newaxis] / squared_scales
            traces = np.einsum("naa->n", M)[:, np.newaxis, np.newaxis]
            growth = (moved - np.einsum("naa->n", dM)[:, np.newaxis, np.newaxis]) / traces
            change += growth * A
        return change

    def list_free_directions(self, n_dims: int) -> Array:
        """Return antisymmetric matrices, and the identity where sizes are free."""
        identity = np.eye(n_dims)[np.newaxis]
        return np.concatenate([_SIGNS[n_dims], identity[: int(self.motions.scaling)]])


def compute_stiffness(A: Array, H: Array) -> Array:
    """Compute how firmly moments H (n, d, d) hold motions A (n, d, d) against small turns.

    Returns
    -------
    array (n, p, p)
        Half the Hessian of the cost of each shape in its angles: tr(P) − P with P = Aᵀ H, a number
        in the plane.
    """
    P = A.mT @ H
    traces = np.einsum("naa->n", P)[:, np.newaxis, np.newaxis]
    return traces if A.shape[-1] == 2 else traces * np.eye(3) - 0.5 * (P + P.mT)


def lift(matrices: Array) -> Array:
    """Add what rounding may have taken from positive semidefinite matrices (…, k, k)."""
    rounding = 1e-14 * np.abs(np.trace(matrices, axis1=-2, axis2=-1)) + _TINY
    return matrices + rounding[..., np.newaxis, np.newaxis] * np.eye(matrices.shape[-1])


@dataclass(frozen=True, eq=False)
class ReferencePoint:
    """A reference with the maps of a family that are best for it.

    See :class:`defgpa.solvers.trust_region.Point`.
    """

    shapes: CentredShapes
    family: MapFamily
    reference: Array  # (d, m): Sᵀ, about its mean
    cross: Array  # (n, d, d): H_i = Sᵀ C_i D_i
    spread: Array  # (n, d, d): M_i = Sᵀ C_i S
    maps: Array  # (n, d, d): A_i
    landmark_blocks: Array  # (m, d, d): Σ_i γ_ij A_i A_iᵀ, half the Hessian of landmark j alone
    cost: float
    gradient: Array  # (d, m)
    relative_gradient: float  # the norm of the gradient over that of one of its two terms

    @classmethod
    def from_reference(
        cls, shapes: CentredShapes, family: MapFamily, reference: Array
    ) -> ReferencePoint:
        """Compute the best maps of a reference (d, m), the cost and its gradient."""
        S = reference - reference.sum(axis=1, keepdims=True) / reference.shape[1]
        H, M = shapes.multiply(S), shapes.compute_moments(S, S)
        A = family.fit(H, M)
        squares = A @ A.mT
        cost = shapes.squared_sizes.sum() + np.sum(squares * M) - 2.0 * np.vdot(A, H)
        blocks = shapes.sum_at_landmarks(squares)
        term = shapes.combine(A)
        gradient = 2.0 * (shapes.sum_images(S, squares, blocks) - term)
        squares_ratio = np.vdot(gradient, gradient) / max(4.0 * np.vdot(term, term), _TINY)
        relative = float(np.sqrt(squares_ratio))
        return cls(shapes, family, S, H, M, A, blocks, float(cost), gradient, relative)

    @property
    def cost_scale(self) -> float:
        """Σ_i ‖C_i D_i‖², the cost of a reference of size 0."""
        return float(self.shapes.squared_sizes.sum())

    @cached_property
    def max_moments(self) -> Array:
        """(n,): ‖C_i D_i‖ ‖C_i S A_i‖, the largest that ⟨A_i, H_i⟩ can be."""
        images = np.sum(self.maps @ self.maps.mT * self.spread, axis=(1, 2))
        return np.sqrt(self.shapes.squared_sizes * np.maximum(images, _TINY))

    @cached_property
    def _inverse_blocks(self) -> Array:
        """(m, d, d): of twice the landmark blocks; a floor for those that flat maps determine."""
        mean = self.landmark_blocks.mean(axis=0)
        floor = 1e-9 * np.trace(mean) * np.eye(len(mean)) / len(mean)
        inverse = np.linalg.inv(lift(self.landmark_blocks + floor))
        return np.asarray(0.5 * inverse, dtype=np.float64)

    @cached_property
    def _free_directions(self) -> Array:
        """(p, d·m): an orthonormal basis of the changes of the reference that cost nothing."""
        X = self.family.list_free_directions(len(self.reference))
        directions = (X @ self.reference).reshape(len(X), -1)
        roots = np.linalg.cholesky(lift(directions @ directions.T))
        return np.asarray(np.linalg.inv(roots) @ directions, dtype=np.float64)

    def _project(self, change: Array) -> Array:
        """Remove from a change (d, m) of the reference what costs nothing."""
        centred = change - change.mean(axis=1, keepdims=True)
        basis = self._free_directions
        return centred - ((basis @ centred.ravel()) @ basis).reshape(change.shape)

    def hessian_product(self, step: Array) -> Array:
        """Multiply the Hessian with a step (d, m); the maps respond to it."""
        shapes, S, A = self.shapes, self.reference, self.maps
        half = shapes.compute_moments(step, S)
        N = self.family.respond(A, self.cross, self.spread, shapes.multiply(step), half + half.mT)
        turned = N @ A.mT
        turned = turned + turned.mT
        direct = shapes.sum_images(step, A @ A.mT, self.landmark_blocks)
        responded = shapes.sum_images(S, turned, shapes.sum_at_landmarks(turned))
        return self._project(2.0 * (direct + responded - shapes.combine(N)))

    def precondition(self, gradient: Array) -> Array:
        """Multiply the inverse block of each landmark with its gradient (d, m)."""
        return self._project(multiply_landmarks(self._inverse_blocks, gradient))

    def retract(self, step: Array) -> ReferencePoint:
        """Return the reference plus a step (d, m)."""
        return self.from_reference(self.shapes, self.family, self.reference + step)
