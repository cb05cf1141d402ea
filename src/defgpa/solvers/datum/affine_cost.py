r"""The span of a reference under affine maps, as a point of a descent.

Given :math:`S`, the best affine maps are regressions,
:math:`A_i = (S^\top C_i S)^{-1} S^\top C_i D_i`, that leave residuals
:math:`E_i = C_i (D_i - S A_i)`, and

.. math:: f(S) = \sum_i \lVert E_i \rVert^2, \qquad \nabla f = -2 \sum_i E_i A_i^\top .

When S moves by T, the maps follow by
:math:`N_i = (S^\top C_i S)^{-1} (T^\top E_i - S^\top C_i T A_i)`, so that

.. math:: \nabla^2 f\,[T] = 2 \sum_i C_i (T A_i + S N_i) A_i^\top - E_i N_i^\top .

Only the span of S and the constant counts, so steps are kept out of it: S is orthonormal and
centred, and T orthogonal to it and to the constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from defgpa._arrays import Array
from defgpa.solvers.datum.fit import CentredShapes, against, combined, inverted


@dataclass(frozen=True, eq=False)
class Span:
    """A reference, of which only the span counts, with the maps that are best for it."""

    shapes: CentredShapes
    reference: Array  # (d, m): Sᵀ, centred and orthonormal
    maps: Array  # (n, d, d): A_i
    inverse_moments: Array  # (n, d, d): (SᵀC_iS)⁻¹
    residuals: Array  # (n·d, m): E_i = C_i (D_i − S A_i)
    cost: float

    @classmethod
    def at(cls, shapes: CentredShapes, reference: Array) -> Span:
        """The span of the rows of a (d, m) reference, with its best maps."""
        centred = reference - reference.mean(axis=1, keepdims=True)
        S = np.ascontiguousarray(np.linalg.qr(centred.T)[0].T)
        inverse = _inverse_moments(shapes, S)
        A = inverse @ against(shapes.rows, S).mT
        E = shapes.residual_rows(A, S)
        return cls(shapes, S, A, inverse, E, float(np.vdot(E, E)))

    @cached_property
    def gradient(self) -> Array:
        """(d, m): −2 Σ_i A_i E_iᵀ."""
        return -2 * combined(self.residuals, self.maps.mT)

    @cached_property
    def slope(self) -> float:
        """The gradient over ‖2 Σ_i D_i A_iᵀ‖, what pulls on the reference."""
        pull = combined(self.shapes.rows, self.maps.mT)
        return float(np.linalg.norm(self.gradient) / (2 * np.linalg.norm(pull)))

    @cached_property
    def cost_scale(self) -> float:
        """Σ_i ‖C_i D_i‖², which the cost is what is left of."""
        return float(self.shapes.spreads.sum())

    @cached_property
    def squares(self) -> Array:
        """(n, d, d): A_i A_iᵀ."""
        return self.maps @ self.maps.mT

    @cached_property
    def landmark_blocks(self) -> Array:
        """(m, d, d): Q_j = Σ_i A_i A_iᵀ over the shapes that see j: what holds landmark j."""
        return _per_landmark(self.shapes, self.squares)

    @cached_property
    def _inverse_blocks(self) -> Array:
        """(2 Q_j)⁻¹, with a floor for landmarks that only nearly flat maps hold."""
        Q = self.landmark_blocks
        d = Q.shape[-1]
        floor = 1e-9 * np.trace(Q.mean(axis=0)) / d
        return 0.5 * inverted(Q + floor * np.eye(d))

    @property
    def first_radius(self) -> float:
        """A third of the reference itself, in the metric of the preconditioner."""
        return float(0.3 * np.sqrt(2 * self.cost_scale))

    def curved(self, step: Array) -> Array:
        """The Hessian, the maps following the reference."""
        S, A, E = self.reference, self.maps, self.residuals
        turn = against(E, step).mT
        follow = self.inverse_moments @ (turn - _moments(self.shapes, S, step) @ A)
        held = _scattered(self.shapes, step, self.squares, self.landmark_blocks)
        N = follow @ A.mT
        carried = _scattered(self.shapes, S, N, _per_landmark(self.shapes, N))
        return self._out_of_span(2 * (held + carried - combined(E, follow.mT)))

    def preconditioned(self, slope: Array) -> Array:
        """What holds each landmark alone, kept to directions that change the span."""
        return self._out_of_span(np.einsum("jkl,lj->kj", self._inverse_blocks, slope))

    def _out_of_span(self, change: Array) -> Array:
        """A change of the reference without what an affine change of frame would do too."""
        S = self.reference
        change = change - change.mean(axis=1, keepdims=True)
        return change - (change @ S.T) @ S

    def moved(self, step: Array) -> Span:
        """The span of S plus a step."""
        return Span.at(self.shapes, self.reference + step)


def _inverse_moments(shapes: CentredShapes, S: Array) -> Array:
    """(n, d, d): (SᵀC_iS)⁻¹; a pseudo-inverse where a shape sees a flat part of S."""
    n, _, d = shapes.shape
    if shapes.visible is None:  # S is orthonormal and centred
        return np.broadcast_to(np.eye(d), (n, d, d))
    moments = _moments(shapes, S, S)
    return np.asarray(np.linalg.pinv(moments, rcond=1e-12, hermitian=True), dtype=np.float64)


def _moments(shapes: CentredShapes, S: Array, T: Array) -> Array:
    """(n, d, d): SᵀC_iT for every shape, for (d, m) arrays."""
    d = len(S)
    raw = shapes.summed_over_seen((S[:, np.newaxis] * T).reshape(d * d, -1)).reshape(-1, d, d)
    counts = shapes.counts[:, np.newaxis, np.newaxis]
    return raw - counts * shapes.means(S)[:, :, np.newaxis] * shapes.means(T)[:, np.newaxis]


def _per_landmark(shapes: CentredShapes, matrices: Array) -> Array:
    """(m, d, d): the sum of the matrices of the shapes that see a landmark."""
    n, m, d = shapes.shape
    return shapes.summed_over_viewers(matrices.reshape(n, d * d)).T.reshape(m, d, d)


def _scattered(shapes: CentredShapes, S: Array, matrices: Array, sums: Array) -> Array:
    """(d, m): (Σ_i C_i S N_i)ᵀ for matrices N_i, with their sums per landmark given."""
    centres = np.squeeze(shapes.means(S)[:, np.newaxis] @ matrices, axis=1)
    return np.einsum("kj,jkl->lj", S, sums) - shapes.summed_over_viewers(centres)
