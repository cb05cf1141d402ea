r"""A cheap approximation of the inverse of P, which corrects iterations on it.

With D = diag(c) − σI, σ just below zero, and Ũ a few columns, it is

    (P − σI)⁻¹ ≈ D^(−1/2) ( I + Ũ (I − ŨᵀŨ)⁻¹ Ũᵀ ) D^(−1/2).

Exactly so with Ũ = D^(−1/2) [U_1 … U_n], which is cheap where all features together are few.
Where they are many, the shapes resemble each other, and one of them stands for all: Ũ = U_1,
at an n-th of the price of a product with P. Soft warps leave many directions of U_1 nearly free,
and one shape cannot tell which of them cost the others something: there a second one is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from defgpa.arrays import Array, symmetrise
from defgpa.solvers.elimination import Factor, StoredFactor
from defgpa.tuning import Tuning

SHIFT = 1e-4  # times n: keeps the inverse finite on the constant vector


class FactoredCost(Protocol):
    """P = diag(totals) − Σ U Uᵀ, by products with the factors U of its shapes."""

    @property
    def totals(self) -> Array:
        """(m,): the total weight of each landmark."""
        ...

    @property
    def factors(self) -> Sequence[Factor]:
        """U of every batch."""
        ...

    @property
    def n_shapes(self) -> int:
        """The number of shapes."""
        ...

    @property
    def tuning(self) -> Tuning:
        """Sizes and thresholds."""
        ...

    def project_onto_features(self, block: Array) -> Array:
        """Compute Uᵀ X (nl, k)."""
        ...

    def expand_features(self, coefficients: Array) -> Array:
        """Compute U C (m, k)."""
        ...

    def find_most_complete(self, count: int) -> list[Factor]:
        """Return the factors, each of one shape, of those with the most visible landmarks."""
        ...

    def restrict_to_shape(self, factor: Factor) -> Self:
        """Return the cost of one shape alone, with the totals of all."""
        ...


@dataclass(frozen=True, eq=False)
class LowRankInverse:
    """D^(−1/2) (I + Ũ (I − ŨᵀŨ)⁻¹ Ũᵀ) D^(−1/2) ≈ (P − σI)⁻¹, by products with Ũ = diag(inner) U."""

    cost: FactoredCost  # whose U it is: that of all shapes, or of one
    outer: Array  # (m,): D^(−1/2)
    inner: Array  # (m,)
    modes: Array  # eigenvectors of ŨᵀŨ, ascending
    strengths: Array  # its eigenvalues, below 1

    def start(self, width: int) -> Array:
        """Return the strongest modes."""
        strongest = self.modes[:, ::-1][:, : 2 * width]
        return (self.outer * self.inner)[:, None] * self.cost.expand_features(strongest)

    def correct(self, residuals: Array) -> Array:
        """Multiply residuals (m, k) by the inverse."""
        scaled = self.outer[:, None] * residuals
        projected = self.cost.project_onto_features(self.inner[:, None] * scaled)
        gains = (self.modes.T @ projected) / (1.0 - self.strengths)[:, None]
        bent = self.cost.expand_features(self.modes @ gains)
        return self.outer[:, None] * (scaled + self.inner[:, None] * bent)


def make_preconditioner(cost: FactoredCost) -> LowRankInverse:
    """Make an inverse of P: exact where features are few, else of its most complete shape."""
    n_features = sum(b * l for b, _, l in (f.ridge.inverse.shape for f in cost.factors))
    if n_features <= cost.tuning.exact_inverse_features:
        return _invert_exactly(cost)
    first, *others = cost.find_most_complete(2)
    inverse = invert_from_one_shape(cost.restrict_to_shape(first))
    n_free = int((inverse.strengths > 1.0 - cost.tuning.nearly_free).sum())
    is_soft = n_free > first.batch.points.shape[-1] + 1  # affine maps are free always
    if is_soft and others and isinstance(first, StoredFactor):
        return _add_second_shape(others[0], inverse)
    return inverse


def _invert_exactly(cost: FactoredCost) -> LowRankInverse:
    outer = 1.0 / np.sqrt(cost.totals + SHIFT * cost.n_shapes)
    rows = np.vstack([factor.stack_rows() for factor in cost.factors]) * outer
    strengths, modes = np.linalg.eigh(symmetrise(rows @ rows.T))
    return LowRankInverse(cost, outer, outer, modes, strengths)


def _add_second_shape(second: Factor, inverse: LowRankInverse) -> LowRankInverse:
    """Use the mean cost of two shapes, I − (EᵀU_1U_1ᵀE + EᵀU_2U_2ᵀE) / 2, in directions E of one.

    E is an orthonormal basis of the columns of U_1.
    """
    clear = inverse.strengths > 1e-8  # below, a direction hardly moves the landmarks
    shares = inverse.strengths[clear]
    directions = inverse.modes[:, clear] / np.sqrt(shares)
    projected = second.project(inverse.cost.expand_features(directions))[0]
    mean = symmetrise(0.5 * (np.diag(shares) + projected.T @ projected))
    strengths, turn = np.linalg.eigh(mean)
    strengths = np.clip(strengths, 0.0, 1.0) / (1.0 + SHIFT)
    # 1/(1 − λ) − 1 = λ/(1 − λ), as E is orthonormal and U_1 is not
    return replace(inverse, modes=directions @ turn * np.sqrt(strengths), strengths=strengths)


def invert_from_one_shape(cost: FactoredCost) -> LowRankInverse:
    """Make the inverse from the only factor of a cost, one shape that stands for all n."""
    (factor,) = cost.factors
    strengths, modes = np.linalg.eigh(factor.ridge.gram(factor.batch.bases.penalty())[0])
    outer = 1.0 / np.sqrt(cost.totals + SHIFT * cost.n_shapes)
    return LowRankInverse(cost, outer, np.ones_like(outer), modes, strengths / (1.0 + SHIFT))
