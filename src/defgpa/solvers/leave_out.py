r"""Leave landmarks out of fitted shapes without fitting them again.

A landmark that is left out may lie anywhere in the reference, so its cost is the minimum over its
position. Minimising the residual form tr SᵀPS of a shape over the rows J of S gives the Schur
complement, and the minimiser is where the warp of the remaining landmarks K puts those of J:

    P' = P_KK − P_KJ P_JJ⁻¹ P_JK,        Ŝ_J = −P_JJ⁻¹ P_JK S_K.

Both are exact: they equal a new ridge regression without the rows J, for the same features and
penalty. A landmark that is missing in a shape anyway has zero rows in P, and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from defgpa._arrays import Array, Index, Mask
from defgpa.solvers.cost import ResidualCost
from defgpa.solvers.eigen import Preconditioner

SINGULAR = 1e-10  # smallest eigenvalue of P_JJ, of the weight of a landmark: below, Ŝ_J is open


@dataclass(frozen=True, eq=False)
class LeftOutForms:
    """The residual forms of n shapes without some of their landmarks."""

    cross: Array  # (n, n_left_out, n_kept): P_JK of each shape
    predictors: Array  # (n, n_left_out, n_kept): −P_JJ⁻¹ P_JK
    singular: Mask  # (n,): whether what is kept of a shape leaves its warp open

    @cached_property
    def change(self) -> Array:
        """(n_kept, n_kept): Σ P' − Σ P_KK."""
        n_kept = self.cross.shape[-1]
        return self.cross.reshape(-1, n_kept).T @ self.predictors.reshape(-1, n_kept)


def leave_out(rows: Array, visible: Mask, landmarks: Index, kept: Index) -> LeftOutForms:
    """Leave landmarks out of n shapes.

    Parameters
    ----------
    rows : ndarray of shape (n, n_left_out, n_landmarks)
        The rows of the residual form of each shape for the landmarks to leave out.
    visible : ndarray of bool, shape (n, n_left_out)
        Which of them are visible in each shape.
    landmarks, kept : ndarray of int
        Indices to leave out and to keep.

    Returns
    -------
    LeftOutForms
    """
    inner, cross = rows[:, :, landmarks], rows[:, :, kept]
    if len(landmarks) == 1:
        pivots: Array = np.where(visible, inner[:, :, 0], 1.0)
        singular = ~(pivots[:, 0] > SINGULAR)
        pivots[singular] = 1.0
        return LeftOutForms(cross, -cross / pivots[:, :, None], singular)
    inner = inner + ~visible[:, :, None] * np.eye(len(landmarks))
    singular = ~(np.linalg.eigvalsh(inner)[:, 0] > SINGULAR)
    inner[singular] = np.eye(len(landmarks))
    predictors = np.asarray(-np.linalg.solve(inner, cross), dtype=np.float64)
    return LeftOutForms(cross, predictors, singular)


@dataclass(frozen=True, eq=False)
class LeftOutCost:
    """P' = Σ P_i' of a fold, by products with the P of all landmarks."""

    cost: ResidualCost
    kept: Index
    forms: LeftOutForms
    matrix: Array | None = None  # (n_landmarks, n_landmarks): P, where it is formed
    inverse: Preconditioner | None = None  # of P

    @property
    def n_landmarks(self) -> int:
        """The number of landmarks that are kept."""
        return len(self.kept)

    @property
    def n_shapes(self) -> int:
        """The number of shapes, n."""
        return self.cost.n_shapes

    @property
    def norm(self) -> float:
        """A bound of the spectrum."""
        return self.cost.norm

    def multiply(self, block: Array) -> Array:
        """Compute P' X for X (n_kept, k)."""
        image = self.cost.multiply(self._extend(block))[self.kept]
        n_kept, forms = len(self.kept), self.forms
        image += forms.cross.reshape(-1, n_kept).T @ (forms.predictors.reshape(-1, n_kept) @ block)
        return image

    def dense(self) -> Array:
        """Return P' itself."""
        matrix = self.cost.dense() if self.matrix is None else self.matrix
        return matrix.take(self.kept, axis=0).take(self.kept, axis=1) + self.forms.change

    def preconditioner(self) -> Preconditioner:
        """Return the approximate inverse of P, on the landmarks that are kept."""
        inverse = self.cost.preconditioner() if self.inverse is None else self.inverse
        return _RestrictedInverse(inverse, self)

    def _extend(self, block: Array) -> Array:
        """Return columns (m, k) that are zero at the landmarks left out."""
        extended = np.zeros((self.cost.n_landmarks, block.shape[1]))
        extended[self.kept] = block
        return extended


@dataclass(frozen=True, eq=False)
class _RestrictedInverse:
    inverse: Preconditioner
    fold: LeftOutCost

    def start(self, width: int) -> Array:
        return self.inverse.start(width)[self.fold.kept]

    def correct(self, residuals: Array) -> Array:
        return self.inverse.correct(self.fold._extend(residuals))[self.fold.kept]
