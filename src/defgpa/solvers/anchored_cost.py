"""P + κ Σ QQᵀ, the deformable cost with its shapes anchored, and its inverse.

Formed and factored up to some hundred landmarks; beyond, nothing of m × m: conjugate gradients
with the products of the deformable cost, preconditioned by one shape that stands for all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array, compute_inverse_root, invert_lower, symmetrise
from defgpa.solvers.centred_sums import CentredSums, orthonormalise
from defgpa.solvers.cost import ResidualCost
from defgpa.solvers.preconditioner import SHIFT, LowRankInverse


@dataclass(frozen=True, eq=False)
class RootInverse:
    """P⁺ = CᵀC of g folds, formed."""

    root: Array  # (g, m, m): C

    @classmethod
    def of(cls, costs: Array) -> RootInverse:
        """Invert costs (g, m, m) that do not charge the constant vector."""
        m = costs.shape[-1]
        # 1 lifted to the mean eigenvalue: B is orthogonal to it
        lifted = costs + (np.einsum("gmm->g", costs) / m**2)[:, None, None]
        try:
            lower = np.linalg.cholesky(lifted)
            pivots = np.einsum("gmm->gm", lower)
            # the square of a smaller pivot is an eigenvalue that may be rounding
            if (pivots.min(axis=1) >= 1e-5 * pivots.max(axis=1)).all():
                return cls(invert_lower(lower))
        except np.linalg.LinAlgError:
            pass  # some direction of the reference is free
        return cls(compute_inverse_root(symmetrise(lifted), 1e-12).mT)

    def solve(self, pulled: Array, start: Array, accuracy: Array) -> Array:
        """Compute CᵀC B (g, m, d), whatever the start and the accuracy."""
        return self.root.mT @ (self.root @ pulled)


@dataclass(frozen=True, eq=False)
class ConjugateGradients:
    """P⁺ of a fit, which is the only fold of its sums, by products with P."""

    cost: ResidualCost
    sums: CentredSums
    firmness: float
    preconditioner: LowRankInverse

    def multiply(self, block: Array) -> Array:
        """P X + κ Σ Q (Qᵀ X) of centred X, and centred: translations are free but for rounding."""
        anchored = self.sums.combine(self.sums.inverse_scatters @ self.sums.cross(block[None]))[0]
        image = self.cost.multiply(block) + self.firmness * anchored
        return np.asarray(image - image.mean(axis=0))

    def solve(self, pulled: Array, start: Array, accuracy: Array) -> Array:
        """Solve P S = B for S (1, m, d), from a start, to a relative accuracy (1,).

        Each column its own conjugate gradients, all with one product a step.
        """
        (target,), (first,) = pulled, start
        image = self.multiply(first)
        # the start as large as it should be: Sᵀ P S = Sᵀ B, column by column
        size = _divide(_multiply_columns(first, target), _multiply_columns(first, image))
        solution, residual = size * first, target - size * image
        direction = corrected = self._correct(residual)
        slope = _multiply_columns(residual, corrected)
        rounding = 1e-13 * np.linalg.norm(target)
        goal = max(float(accuracy[0]) * np.linalg.norm(target), rounding)
        for step in range(500):
            left = np.linalg.norm(residual)
            # a start that would do tells nothing of how far the end is
            if left <= goal and (step >= 2 or left <= rounding):
                break
            image = self.multiply(direction)
            length = _divide(slope, _multiply_columns(direction, image))
            solution = solution + length * direction
            residual = residual - length * image
            corrected = self._correct(residual)
            before, slope = slope, _multiply_columns(residual, corrected)
            direction = corrected + _divide(slope, before) * direction
        return np.asarray(solution[None])

    def _correct(self, residual: Array) -> Array:
        """Apply the preconditioner to centred vectors."""
        corrected = self.preconditioner.correct(residual)
        return np.asarray(corrected - corrected.mean(axis=0))


def _multiply_columns(left: Array, right: Array) -> Array:
    return np.einsum("md,md->d", left, right)


def _divide(numerator: Array, denominator: Array) -> Array:
    """Divide; 0 where the denominator is."""
    is_positive = np.abs(denominator) > np.finfo(np.float64).tiny
    return np.where(is_positive, numerator / np.where(is_positive, denominator, 1.0), 0.0)


Inverse = RootInverse | ConjugateGradients


def make_anchored_inverse(
    cost: ResidualCost, sums: CentredSums, firmness: float, dense: int
) -> Inverse:
    """Make P⁺ of a fit, formed up to ``dense`` landmarks."""
    if len(cost.totals) <= dense:
        return RootInverse.of(cost.dense() + firmness * sums.projections)
    preconditioner = invert_by_most_complete_shape(cost, sums, firmness)
    return ConjugateGradients(cost, sums, firmness, preconditioner)


def invert_by_most_complete_shape(
    cost: ResidualCost, sums: CentredSums, firmness: float
) -> LowRankInverse:
    """Return (D^½ (I − UUᵀ + κQQᵀ) D^½)⁻¹ of the shape with the most landmarks.

    Q = U C with C = UᵀQ, so that I − UUᵀ + κQQᵀ = I − ŨŨᵀ with Ũ = U (I − κCCᵀ)^½.
    """
    (factor,) = cost.find_most_complete(1)
    geometry, shape = sums.geometry, factor.batch.shapes[0]
    linear = factor.project(orthonormalise(geometry.centred[shape], geometry.scatter[shape]))[0]
    root = np.eye(len(linear)) - (1.0 - np.sqrt(1.0 - firmness)) * linear @ linear.T
    gram = factor.ridge.gram(factor.batch.bases.penalty())[0]
    strengths, modes = np.linalg.eigh(symmetrise(root @ gram @ root))
    outer = 1.0 / np.sqrt(cost.totals + SHIFT * cost.n_shapes)
    strengths = np.minimum(strengths, 1.0) / (1.0 + SHIFT)
    return LowRankInverse(
        cost.restrict_to_shape(factor), outer, np.ones_like(outer), root @ modes, strengths
    )
