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

from defgpa.arrays import Array, Index, Mask
from defgpa.solvers.cost import ResidualCost
from defgpa.solvers.eigen import Preconditioner

SINGULAR = 1e-10  # smallest eigenvalue of P_JJ, of the weight of a landmark: below, Ŝ_J is open


@dataclass(frozen=True, eq=False)
class LeftOutForms:
    """The residual forms of n shapes without some of their landmarks.

    Several folds of one size have a leading axis ….
    """

    cross: Array  # (…, n, n_left_out, n_remaining): P_JK of each shape
    predictors: Array  # (…, n, n_left_out, n_remaining): −P_JJ⁻¹ P_JK
    singular: Mask  # (…, n): whether what remains of a shape leaves its warp open

    @cached_property
    def change(self) -> Array:
        """(…, n_remaining, n_remaining): Σ P' − Σ P_KK."""
        *lead, n, size, n_remaining = self.cross.shape
        flat = (*lead, n * size, n_remaining)
        return self.cross.reshape(flat).mT @ self.predictors.reshape(flat)

    def select(self, folds: Index | int) -> LeftOutForms:
        """Return the forms of one fold, or of some."""
        return LeftOutForms(self.cross[folds], self.predictors[folds], self.singular[folds])


def leave_out(rows: Array, visible: Mask, landmarks: Index, remaining: Index) -> LeftOutForms:
    """Leave landmarks out of n shapes; several folds of one size have a leading axis ….

    Parameters
    ----------
    rows : ndarray of shape (…, n, n_left_out, n_landmarks)
        The rows of the residual form of each shape for the landmarks to leave out.
    visible : ndarray of bool, shape (…, n, n_left_out)
        Which of them are visible in each shape.
    landmarks, remaining : ndarray of int, shape (…, n_left_out) and (…, n_remaining)
        Indices to leave out and to keep.

    Returns
    -------
    LeftOutForms
    """
    inner = np.take_along_axis(rows, landmarks[..., None, None, :], axis=-1)
    cross = np.take_along_axis(rows, remaining[..., None, None, :], axis=-1)
    if landmarks.shape[-1] == 1:
        pivots: Array = np.where(visible, inner[..., 0], 1.0)
        singular = ~(pivots[..., 0] > SINGULAR)
        pivots[singular] = 1.0
        return LeftOutForms(cross, -cross / pivots[..., None], singular)
    identity = np.eye(landmarks.shape[-1])
    inner = inner + ~visible[..., None] * identity
    singular = ~(np.linalg.eigvalsh(inner)[..., 0] > SINGULAR)
    inner[singular] = identity
    predictors = np.asarray(-np.linalg.solve(inner, cross), dtype=np.float64)
    return LeftOutForms(cross, predictors, singular)


@dataclass(frozen=True, eq=False)
class LeftOutCost:
    """P' = Σ P_i' of a fold, by products with the P of all landmarks.

    Of several folds of one size (a leading axis …) only the matrices can be asked for.
    """

    cost: ResidualCost
    remaining: Index  # (…, n_remaining)
    forms: LeftOutForms
    matrix: Array | None = None  # (n_landmarks, n_landmarks): P, where it is formed
    inverse: Preconditioner | None = None  # of P

    @property
    def n_landmarks(self) -> int:
        """The number of landmarks that remain."""
        return int(self.remaining.shape[-1])

    @property
    def n_shapes(self) -> int:
        """The number of shapes, n."""
        return self.cost.n_shapes

    @property
    def totals(self) -> Array:
        """(…, n_remaining): the total weight of each landmark that remains."""
        return np.asarray(self.cost.totals[self.remaining])

    @property
    def norm(self) -> float:
        """A bound of the spectrum."""
        return self.cost.norm

    def multiply(self, block: Array) -> Array:
        """Compute P' X for X (n_remaining, k)."""
        image = self.cost.multiply(self._extend(block))[self.remaining]
        n_remaining, forms = len(self.remaining), self.forms
        image += forms.cross.reshape(-1, n_remaining).T @ (
            forms.predictors.reshape(-1, n_remaining) @ block
        )
        return image

    def dense(self) -> Array:
        """Return P' itself, (…, n_remaining, n_remaining)."""
        matrix = self.cost.dense() if self.matrix is None else self.matrix
        inner = np.take(
            matrix, self.remaining[..., :, None] * len(matrix) + self.remaining[..., None, :]
        )
        inner += self.forms.change
        return inner

    def preconditioner(self) -> Preconditioner:
        """Return the approximate inverse of P, on the landmarks that remain."""
        inverse = self.cost.preconditioner() if self.inverse is None else self.inverse
        return _RestrictedInverse(inverse, self)

    def _extend(self, block: Array) -> Array:
        """Return columns (m, k) that are zero at the landmarks left out."""
        extended = np.zeros((self.cost.n_landmarks, block.shape[1]))
        extended[self.remaining] = block
        return extended


@dataclass(frozen=True, eq=False)
class _RestrictedInverse:
    inverse: Preconditioner
    fold: LeftOutCost

    def start(self, width: int) -> Array:
        return self.inverse.start(width)[self.fold.remaining]

    def correct(self, residuals: Array) -> Array:
        return self.inverse.correct(self.fold._extend(residuals))[self.fold.remaining]
