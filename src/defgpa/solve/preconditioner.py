r"""A cheap idea of the cost, from all shapes or from one.

With D = diag(views) − σI, σ just below zero, and Ũ a few columns, both are

    (P − σI)⁻¹ ≈ D^(−1/2) ( I + Ũ (I − ŨᵀŨ)⁻¹ Ũᵀ ) D^(−1/2).

Exactly so with Ũ = D^(−1/2) [U_1 … U_n], which is cheap where all features together are few.
Where they are many, the shapes resemble each other, and one of them stands for all: Ũ = U_1,
at an n-th of the price of a product with P. Soft warps through different holes do not resemble
each other enough; for them there is the whole inverse at the price of a product, with ŨᵀŨ known
from a sample of the landmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array, symmetrised
from defgpa._threads import blocks, in_blocks
from defgpa.solve.cost import EliminatedCost
from defgpa.solve.factors import CombinedColumns, Factor
from defgpa.solve.sampled_inverse import LARGEST, SampledInverse, inverse_of, sampled_matrix

_FEW = 200  # features of all shapes together, up to which the exact inverse is cheap
_ROUNDING = 1e-10  # keeps K positive definite
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


@dataclass(frozen=True, eq=False)
class WholeInverse:
    """D⁻¹ (I + U K⁻¹ UᵀD⁻¹) with all shapes, K ≈ I − UᵀD⁻¹U."""

    cost: EliminatedCost
    inverse_views: Array  # (m, 1): D⁻¹
    small: SampledInverse  # K⁻¹

    def start(self, width: int) -> Array:
        """References of the cheapest warps of the sample, and one generic column."""
        warps = self.small.start(width)[:, :width]
        generic = np.random.default_rng(0).normal(size=(self.cost.n_landmarks, 1))
        return np.hstack([self._spread(warps), generic])

    def correct(self, residuals: Array) -> Array:
        """The inverse times the residuals."""
        scaled = self.inverse_views * residuals
        seen = self.cost.projections(np.ascontiguousarray(scaled))
        stacked = np.concatenate([own.reshape(-1, residuals.shape[1]) for own in seen])
        return scaled + self._spread(self.small.correct(stacked))

    def _spread(self, coefficients: Array) -> Array:
        """D⁻¹ U C."""
        return self.inverse_views * self.cost.image(self.cost.by_batch(coefficients))


def whole_inverse(cost: EliminatedCost) -> Callable[[], WholeInverse] | None:
    """How to make it, where it can be had and there is no exact one."""
    factors = [factor for factor in cost.factors if isinstance(factor, CombinedColumns)]
    size = sum(factor.of_ones.size for factor in factors)
    if len(factors) < len(cost.factors) or not _FEW < size <= LARGEST:
        return None

    def made() -> WholeInverse:
        views = cost.views + _SHIFT * cost.n_shapes
        matrix = sampled_matrix(factors, views)
        matrix[np.diag_indices(len(matrix))] += _ROUNDING
        return WholeInverse(cost, 1.0 / views[:, None], inverse_of(matrix))

    return made


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
