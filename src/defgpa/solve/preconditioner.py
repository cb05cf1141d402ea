r"""A cheap idea of the cost, from all shapes or from one.

With D = diag(views) − σI, σ just below zero, and Ũ a few columns, both are

    (P − σI)⁻¹ ≈ D^(−1/2) ( I + Ũ (I − ŨᵀŨ)⁻¹ Ũᵀ ) D^(−1/2).

Exactly so with Ũ = D^(−1/2) [U_1 … U_n], which is cheap where all features together are few.
Where they are many, the shapes resemble each other, and one of them stands for all: Ũ = U_1,
at an n-th of the price of a product with P.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array, symmetrised
from defgpa._threads import blocks, in_blocks
from defgpa.solve.cost import EliminatedCost
from defgpa.solve.factors import Factor

_FEW = 200  # features of all shapes together, up to which the exact inverse is cheap
_SHIFT = 1e-4  # −σ / n: keeps the inverse finite on the constant vector


@dataclass(frozen=True, eq=False)
class LowRankInverse:
    """D^(−1/2) (I + Ũ (I − ŨᵀŨ)⁻¹ Ũᵀ) D^(−1/2), by products with Ũ = diag(inner) U."""

    factors: tuple[Factor, ...]  # U
    outer: Array  # (m,): D^(−1/2)
    inner: Array  # (m,)
    modes: Array  # eigenvectors of ŨᵀŨ, ascending
    strengths: Array  # its eigenvalues, below 1

    def start(self, width: int) -> Array:
        """The strongest modes, plus one generic column so that nothing is missed by symmetry."""
        strongest = self.modes[:, ::-1][:, : 2 * width]
        columns = (self.outer * self.inner)[:, None] * self._expand(strongest)
        generic = np.random.default_rng(0).normal(size=(len(self.outer), 1))
        return np.hstack([columns, generic])

    def correct(self, residuals: Array) -> Array:
        """The inverse times the residuals."""
        scaled = self.outer[:, None] * residuals
        seen = self.modes.T @ self._project(self.inner[:, None] * scaled)
        mixed = self.modes @ (seen / (1.0 - self.strengths)[:, None])
        return self.outer[:, None] * (scaled + self.inner[:, None] * self._expand(mixed))

    def _project(self, block: Array) -> Array:
        parts = [factor.project(block) for factor in self.factors]
        return np.concatenate([part.reshape(-1, block.shape[1]) for part in parts])

    def _expand(self, coefficients: Array) -> Array:
        image = np.zeros((len(self.outer), coefficients.shape[1]), order="F")
        start = 0
        for factor in self.factors:
            b, _, l = factor.ridge.inverse.shape
            own = coefficients[start : start + b * l].reshape(b, l, -1)
            self._add(factor, own, image)
            start += b * l
        return image

    @staticmethod
    def _add(factor: Factor, coefficients: Array, image: Array) -> None:
        parts = blocks(len(image), factor.landmarks_at_a_time)
        in_blocks(lambda rows: factor.expand(coefficients, image[rows], rows), parts)


def preconditioner(cost: EliminatedCost) -> LowRankInverse:
    """The exact inverse where it is cheap, that of one shape standing for all elsewhere."""
    shapes_and_features = [factor.ridge.inverse.shape for factor in cost.factors]
    if sum(b * l for b, _, l in shapes_and_features) <= _FEW:
        return _exact_inverse(cost)
    return _representative_inverse(cost)


def _exact_inverse(cost: EliminatedCost) -> LowRankInverse:
    outer = 1.0 / np.sqrt(cost.views + _SHIFT * cost.n_shapes)
    rows = np.vstack([factor.transposed_rows() for factor in cost.factors]) * outer
    strengths, modes = np.linalg.eigh(symmetrised(rows @ rows.T))
    return LowRankInverse(cost.factors, outer, outer, modes, strengths)


def _representative_inverse(cost: EliminatedCost) -> LowRankInverse:
    """With the shape that sees the most landmarks."""
    seen = [int(factor.batch.visible.sum(axis=1).max()) for factor in cost.factors]
    holder = cost.factors[int(np.argmax(seen))]
    factor = holder.only(int(np.argmax(holder.batch.visible.sum(axis=1))))
    return inverse_from_one(factor, cost.views, cost.n_shapes)


def inverse_from_one(factor: Factor, views: Array, n: int) -> LowRankInverse:
    """One shape stands for all n."""
    strengths, modes = np.linalg.eigh(factor.ridge.gram(factor.batch.bases.penalty())[0])
    outer = 1.0 / np.sqrt(views + _SHIFT * n)
    return LowRankInverse((factor,), outer, np.ones_like(outer), modes, strengths / (1.0 + _SHIFT))
