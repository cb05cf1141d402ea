r"""Leave landmarks out of fitted shapes without fitting them again.

A landmark that is left out may lie anywhere in the reference, so its cost is the minimum over its
position. Minimising the residual form tr SᵀPS of a shape over the rows J of S gives the Schur
complement, and the minimiser is where the warp of the remaining landmarks K puts those of J:

    P' = P_KK − P_KJ P_JJ⁻¹ P_JK,        Ŝ_J = −P_JJ⁻¹ P_JK S_K.

Both are exact: they equal a new ridge regression without the rows J, for the same features and
penalty. A landmark that is missing in a shape anyway has zero rows in P, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from defgpa.arrays import Array, Index, Mask, Stack
from defgpa.solvers.cost import ResidualCost
from defgpa.solvers.eigen import Cost, Preconditioner

SINGULAR = 1e-10  # smallest eigenvalue of P_JJ, of the weight of a landmark: below, Ŝ_J is open


@dataclass(frozen=True, eq=False)
class LeftOutForms(Stack):
    """The residual forms of n shapes without some of their landmarks.

    Several folds of one size have a leading axis ….
    """

    cross: Array  # (…, n, n_left_out, n_remaining): P_JK of each shape
    predictors: Array  # (…, n, n_left_out, n_remaining): −P_JJ⁻¹ P_JK
    singular: Mask  # (…, n): whether what remains of a shape leaves its warp open

    def predict(self, references: Array) -> Array:
        """Predict the landmarks left out (…, n, n_left_out, d) from references (…, n_remaining, d).

        By −P_JJ⁻¹ P_JK S_K.
        """
        return np.asarray(self.predictors @ references[..., None, :, :])


def leave_out(
    cost: ResidualCost, weights: Array, landmarks: Index, remaining: Index
) -> LeftOutForms:
    """Leave g folds of landmarks out of n shapes, by the rows of their residual forms.

    Parameters
    ----------
    cost : ResidualCost
        Of the shapes.
    weights : ndarray of shape (n, n_landmarks)
        Γ.
    landmarks, remaining : ndarray of int, shape (g, n_left_out) and (g, n_remaining)
        Indices to leave out and to keep.

    Returns
    -------
    LeftOutForms
    """
    (n, _), (g, size) = weights.shape, landmarks.shape
    rows = compute_residual_rows(cost, landmarks.ravel()).reshape(n, g, size, -1)
    rows = np.moveaxis(rows, 1, 0)
    visible = np.moveaxis(weights[:, landmarks] > 0.0, 1, 0)
    inner = np.take_along_axis(rows, landmarks[..., None, None, :], axis=-1)
    cross = np.take_along_axis(rows, remaining[..., None, None, :], axis=-1)
    if size == 1:
        pivots: Array = np.where(visible, inner[..., 0], 1.0)
        singular = ~(pivots[..., 0] > SINGULAR)
        pivots[singular] = 1.0
        return LeftOutForms(cross, -cross / pivots[..., None], singular)
    identity = np.eye(size)
    inner = inner + ~visible[..., None] * identity
    singular = ~(np.linalg.eigvalsh(inner)[..., 0] > SINGULAR)
    inner[singular] = identity
    predictors = np.asarray(-np.linalg.solve(inner, cross), dtype=np.float64)
    return LeftOutForms(cross, predictors, singular)


def compute_residual_rows(cost: ResidualCost, landmarks: Index) -> Array:
    """Compute the rows (n, p, m) of these landmarks of the residual form of every shape."""
    forms = []
    for factor in cost.factors:
        batch, features = factor.batch, factor.feature_rows(landmarks)
        form = -features.mT @ factor.stack_rows().reshape(*features.shape[:2], -1)
        weights = batch.visible if batch.weights is None else batch.weights
        form[:, np.arange(len(landmarks)), landmarks] += weights[:, landmarks]
        forms.append(form)
    return np.concatenate(forms)


@dataclass(frozen=True, eq=False)
class LeftOutFeatures(Stack):
    """Shapes without some of their landmarks, where P_i is too large to form: by its factor U_i.

    P_i' = Γ_K − U_iK M_i U_iKᵀ with M_i = I + U_iJᵀ P_JJ⁻¹ U_iJ, and Ŝ_J = P_JJ⁻¹ U_iJ U_iKᵀ S_K,
    for g folds of one size.
    """

    cost: ResidualCost
    landmarks: Index  # (g, n_left_out): J
    remaining: Index  # (g, n_remaining): K
    rows: Sequence[Array]  # of every batch (b, g, l, n_left_out): U_iJᵀ
    inverses: Array  # (n, g, n_left_out, n_left_out): P_JJ⁻¹
    singular: Mask  # (g, n): whether what remains of a shape leaves its warp open

    def predict(self, references: Array) -> Array:
        """Predict the landmarks left out (g, n, n_left_out, d) from references (g, n_remaining, d).

        The features of all folds are one product.
        """
        g, _, d = references.shape
        padded = np.zeros((self.cost.n_landmarks, g, d))
        padded[self.remaining, np.arange(g)[:, None]] = references
        projections = self.cost.project(padded.reshape(-1, g * d))
        images = [
            rows.mT @ np.moveaxis(projection.reshape(*projection.shape[:2], g, d), 2, 1)
            for rows, projection in zip(self.rows, projections, strict=True)
        ]
        return np.asarray(np.moveaxis(self.inverses @ np.concatenate(images), 0, 1))

    def __getitem__(self, folds: Index) -> LeftOutFeatures:
        return replace(
            self,
            landmarks=self.landmarks[folds],
            remaining=self.remaining[folds],
            rows=[rows[:, folds] for rows in self.rows],
            inverses=self.inverses[:, folds],
            singular=self.singular[folds],
        )


def leave_out_features(
    cost: ResidualCost, weights: Array, landmarks: Index, remaining: Index
) -> LeftOutFeatures:
    """Leave g folds of landmarks out of n shapes, by the rows of their features.

    Parameters are those of ``leave_out``.
    """
    g, size = landmarks.shape
    stacked = [factor.feature_rows(landmarks.ravel()) for factor in cost.factors]
    rows = [np.moveaxis(r.reshape(*r.shape[:2], g, size), 2, 1) for r in stacked]
    identity = np.eye(size)
    masses = weights[:, landmarks]
    inner = -np.concatenate([r.mT @ r for r in rows])
    inner += np.where(masses > 0.0, masses, 1.0)[..., None] * identity
    singular = ~(np.linalg.eigvalsh(inner)[..., 0] > SINGULAR)
    inner[singular] = identity
    return LeftOutFeatures(cost, landmarks, remaining, rows, np.linalg.inv(inner), singular.T)


@dataclass(frozen=True, eq=False)
class LeftOutCost(Cost):
    """P' = Σ P_i' of folds of one size (a leading axis …), where P is formed."""

    cost: ResidualCost  # of all landmarks
    remaining: Index  # (…, n_remaining)
    forms: LeftOutForms
    matrix: Array  # (n_landmarks, n_landmarks): P

    def multiply(self, block: Array) -> Array:
        """Compute P' X for X (n_remaining, k) of one fold."""
        return np.asarray(self.dense() @ block)

    def dense(self) -> Array:
        """Return P' itself, (…, n_remaining, n_remaining)."""
        inner = np.take(
            self.matrix,
            self.remaining[..., :, None] * len(self.matrix) + self.remaining[..., None, :],
        )
        *batch_shape, n, size, n_remaining = self.forms.cross.shape
        flat = (*batch_shape, n * size, n_remaining)
        inner += self.forms.cross.reshape(flat).mT @ self.forms.predictors.reshape(flat)
        return inner

    def preconditioner(self) -> Preconditioner:
        """Return the approximate inverse of P, on the landmarks that remain."""
        return _RestrictedInverse(self.cost.preconditioner(), self.remaining, len(self.matrix))


@dataclass(frozen=True, eq=False)
class LeftOutProducts(Cost):
    """P' = Σ P_i' of one fold by products with U, where P is not formed."""

    cost: ResidualCost  # of all landmarks
    remaining: Index  # (n_remaining,)
    rows: Sequence[Array]  # of every batch (b, l, n_left_out): U_iJᵀ
    inverses: Array  # (n, n_left_out, n_left_out): P_JJ⁻¹
    inverse: Preconditioner  # of P

    @classmethod
    def of(cls, fold: LeftOutFeatures, number: int, inverse: Preconditioner) -> LeftOutProducts:
        """Make the cost of one of several folds."""
        cost, remaining = fold.cost, fold.remaining[number]
        rows = [rows[:, number] for rows in fold.rows]
        inverses, totals = fold.inverses[:, number], cost.totals[remaining]
        return cls(totals, cost.n_shapes, cost, remaining, rows, inverses, inverse)

    def multiply(self, block: Array) -> Array:
        """Compute P' X = C_K X − Σ U_iK M_i U_iKᵀ X for X (n_remaining, k)."""
        projections = self.cost.project(extend(block, self.remaining, self.cost.n_landmarks))
        coefficients, first = [], 0
        for rows, projection in zip(self.rows, projections, strict=True):
            inverses = self.inverses[first : first + len(rows)]
            coefficients.append(projection + rows @ (inverses @ (rows.mT @ projection)))
            first += len(rows)
        image = self.cost.expand(coefficients)[self.remaining]
        return np.asarray(self.totals[:, None] * block - image)

    def preconditioner(self) -> Preconditioner:
        """Return the approximate inverse of P, on the landmarks that remain."""
        return _RestrictedInverse(self.inverse, self.remaining, self.cost.n_landmarks)


def extend(block: Array, remaining: Index, n_landmarks: int) -> Array:
    """Return columns (n_landmarks, k) that are zero at the landmarks left out."""
    extended = np.zeros((n_landmarks, block.shape[1]))
    extended[remaining] = block
    return extended


@dataclass(frozen=True, eq=False)
class _RestrictedInverse:
    inverse: Preconditioner
    remaining: Index
    n_landmarks: int

    def start(self, width: int) -> Array:
        return self.inverse.start(width)[self.remaining]

    def correct(self, residuals: Array) -> Array:
        extended = extend(residuals, self.remaining, self.n_landmarks)
        return self.inverse.correct(extended)[self.remaining]
