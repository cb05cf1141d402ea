r"""A cheap approximation of the inverse of the cost, from all shapes or from one.

With D = diag(views) − σI, σ just below zero, and Ũ a few columns, both are

    (P − σI)⁻¹ ≈ D^(−1/2) ( I + Ũ (I − ŨᵀŨ)⁻¹ Ũᵀ ) D^(−1/2).

Exactly so with Ũ = D^(−1/2) [U_1 … U_n], which is cheap where all features together are few.
Where they are many, the shapes resemble each other, and one of them stands for all: Ũ = U_1,
at an n-th of the price of a product with P. Soft warps leave many directions of U_1 nearly free,
and one shape cannot tell which of them cost the others something: there a second one is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Protocol

import numpy as np

from defgpa._arrays import Array, symmetrised
from defgpa.solve.deformable.elimination import Factor, StoredFactor
from defgpa.tuning import Tuning

SHIFT = 1e-4  # times n: keeps the inverse finite on the constant vector
_NOTHING = 1e-8  # an eigenvalue of UᵀU: below, a direction hardly moves the landmarks


class Factored(Protocol):
    """P = diag(views) − U Uᵀ, with products with U of all shapes."""

    @property
    def views(self) -> Array:
        """(m,): shapes that see each landmark."""
        ...

    @property
    def factors(self) -> tuple[Factor, ...]:
        """U, by batches of shapes."""
        ...

    @property
    def n_shapes(self) -> int:
        """The number of shapes, n."""
        ...

    def stacked_projections(self, block: Array) -> Array:
        """(nl, k): Uᵀ X."""
        ...

    def stacked_image(self, coefficients: Array) -> Array:
        """(m, k): U C."""
        ...

    def of_one(self, factor: Factor) -> Factored:
        """The cost of one shape alone, with the views of all."""
        ...


@dataclass(frozen=True, eq=False)
class LowRankInverse:
    """D^(−1/2) (I + Ũ (I − ŨᵀŨ)⁻¹ Ũᵀ) D^(−1/2), by products with Ũ = diag(inner) U."""

    cost: Factored  # whose U it is: that of all shapes, or of one
    outer: Array  # (m,): D^(−1/2)
    inner: Array  # (m,)
    modes: Array  # eigenvectors of ŨᵀŨ, ascending
    strengths: Array  # its eigenvalues, below 1

    def start(self, width: int) -> Array:
        """The strongest modes."""
        strongest = self.modes[:, ::-1][:, : 2 * width]
        return (self.outer * self.inner)[:, None] * self.cost.stacked_image(strongest)

    def correct(self, residuals: Array) -> Array:
        """The inverse times the residuals."""
        scaled = self.outer[:, None] * residuals
        seen = self.modes.T @ self.cost.stacked_projections(self.inner[:, None] * scaled)
        mixed = self.modes @ (seen / (1.0 - self.strengths)[:, None])
        bent = self.cost.stacked_image(mixed)
        return self.outer[:, None] * (scaled + self.inner[:, None] * bent)


def preconditioner(cost: Factored, tuning: Tuning) -> LowRankInverse:
    """The exact inverse of few features, that of one shape standing for all elsewhere."""
    shapes_and_features = [factor.ridge.inverse.shape for factor in cost.factors]
    if sum(b * l for b, _, l in shapes_and_features) <= tuning.exact_inverse_features:
        return _exact_inverse(cost)
    return _representative_inverse(cost, tuning.nearly_free)


def _exact_inverse(cost: Factored) -> LowRankInverse:
    outer = 1.0 / np.sqrt(cost.views + SHIFT * cost.n_shapes)
    rows = np.vstack([factor.transposed_rows() for factor in cost.factors]) * outer
    strengths, modes = np.linalg.eigh(symmetrised(rows @ rows.T))
    return LowRankInverse(cost, outer, outer, modes, strengths)


def _representative_inverse(cost: Factored, nearly_free: float) -> LowRankInverse:
    """With the shape that sees the most landmarks, and the next one where it is soft."""
    most_seen = [
        (-int(seen), number, shape)
        for number, factor in enumerate(cost.factors)
        for shape, seen in enumerate(factor.batch.visible.sum(axis=1))
    ]
    first, *others = (cost.factors[own].only(shape) for _, own, shape in nsmallest(2, most_seen))
    alone = inverse_from_one(cost.of_one(first))
    free = int((alone.strengths > 1.0 - nearly_free).sum())
    soft = free > first.batch.points.shape[-1] + 1  # affine maps are free always
    if soft and others and isinstance(first, StoredFactor):
        return _seen_by(others[0], alone)
    return alone


def _seen_by(other: Factor, alone: LowRankInverse) -> LowRankInverse:
    """With the mean cost of two shapes, I − (EᵀU_1U_1ᵀE + EᵀU_2U_2ᵀE) / 2, in directions E of one.

    E is an orthonormal basis of the columns of U_1.
    """
    clear = alone.strengths > _NOTHING
    shares = alone.strengths[clear]
    directions = alone.modes[:, clear] / np.sqrt(shares)
    seen = other.project(alone.cost.stacked_image(directions))[0]
    strengths, turn = np.linalg.eigh(symmetrised(0.5 * (np.diag(shares) + seen.T @ seen)))
    strengths = np.clip(strengths, 0.0, 1.0) / (1.0 + SHIFT)
    # 1/(1 − λ) − 1 = λ/(1 − λ), as E is orthonormal and U_1 is not
    return replace(alone, modes=directions @ turn * np.sqrt(strengths), strengths=strengths)


def inverse_from_one(alone: Factored) -> LowRankInverse:
    """One shape, the only factor, stands for all n."""
    (factor,), n = alone.factors, alone.n_shapes
    strengths, modes = np.linalg.eigh(factor.ridge.gram(factor.batch.bases.penalty())[0])
    outer = 1.0 / np.sqrt(alone.views + SHIFT * n)
    return LowRankInverse(alone, outer, np.ones_like(outer), modes, strengths / (1.0 + SHIFT))
