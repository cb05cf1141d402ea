r"""The inverse of the cost with all shapes in it, from a sample of the landmarks.

Soft warps through different holes do not resemble each other: no shape stands for all. With
U = [U_1 … U_n] (m × nl) and D the views of the landmarks (a little more: ``SHIFT``), it is

    (P − σI)⁻¹ = D⁻¹ ( D + U K⁻¹ Uᵀ ) D⁻¹,     K = I − UᵀD⁻¹U,

and K, the price of warps when the reference is the best for them, is a sum over landmarks plus the
price of bending; with u_j = Uᵀe_j

    K = Σ_j ( diag(u_1j u_1jᵀ, …) − u_j u_jᵀ / D_j ) + diag(YᵀRY).

Every term is positive semi-definite. Some thousands of landmarks, weighted as if they were all,
give the sum to a few per cent, also in the directions in which it is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from defgpa._arrays import Array, Index, blocks, in_blocks, summed
from defgpa.solve.deformable.elimination import Factor
from defgpa.solve.deformable.preconditioner import SHIFT, Factored
from defgpa.tuning import Tuning

_SAMPLED = 8  # landmarks for each feature of all shapes


@dataclass(frozen=True, eq=False)
class WholeInverse:
    """D⁻¹ (D + U K⁻¹ Uᵀ) D⁻¹, with K from a sample of the landmarks."""

    cost: Factored
    inverse_views: Array  # (m, 1): D⁻¹
    factor: tuple[Array, bool]  # K = L Lᵀ

    def start(self, width: int) -> Array:
        """References of the cheapest warps of the sample."""
        columns = np.random.default_rng(0).normal(size=(len(self.factor[0]), width))
        for _ in range(6):  # the sample need not be solved better than it agrees
            columns, _ = np.linalg.qr(self._solved(columns))
        return self.inverse_views * self.cost.stacked_image(columns)

    def correct(self, residuals: Array) -> Array:
        """The inverse times the residuals."""
        scaled = self.inverse_views * residuals
        seen = self.cost.stacked_projections(np.ascontiguousarray(scaled))
        return scaled + self.inverse_views * self.cost.stacked_image(self._solved(seen))

    def _solved(self, columns: Array) -> Array:
        """K⁻¹ times columns."""
        return np.asarray(cho_solve(self.factor, columns, check_finite=False))


def whole_inverse(cost: Factored, tuning: Tuning) -> WholeInverse | None:
    """Of many landmarks, and not too many features of all shapes together; None of others."""
    factors, few = cost.factors, len(cost.views) <= tuning.dense_landmarks  # LAPACK serves them
    if few or _n_features(factors) > tuning.whole_inverse_features:
        return None
    views = cost.views + SHIFT * cost.n_shapes
    matrix = sampled_matrix(factors, views, min(len(views), _SAMPLED * _n_features(factors)))
    matrix[np.diag_indices(len(matrix))] += 1e-10  # or rounding might make it indefinite
    factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    return WholeInverse(cost, 1.0 / views[:, None], factor)


def sampled_matrix(factors: Sequence[Factor], views: Array, count: int) -> Array:
    """(nl, nl): K from ``count`` landmarks, D (m,) the views."""
    m, size = len(views), _n_features(factors)
    chosen: Index = np.sort(np.random.default_rng(0).choice(m, count, replace=False))
    shapes = _own_parts(factors)

    def terms(part: slice) -> Array:
        total = np.zeros((size, size))
        for here in blocks(part.stop - part.start, 1024):
            landmarks = chosen[part][here]
            rows = np.vstack([factor.transposed_rows(landmarks) for factor in factors])
            for own in shapes:
                total[own, own] += rows[own] @ rows[own].T
            rows /= np.sqrt(views[landmarks])
            total -= rows @ rows.T
        return total

    # four sums, each as large as the matrix: enough for some threads, and few to hold
    matrix = summed(in_blocks(terms, blocks(count, -(-count // 4))))
    matrix *= m / count
    known = (own for factor in factors for own in factor.ridge.gram(factor.batch.bases.penalty()))
    for own, exact in zip(shapes, known, strict=True):
        matrix[own, own] += np.eye(len(exact)) - exact  # YᵀRY, and 1 where a direction is dropped
    return matrix


def _n_features(factors: Sequence[Factor]) -> int:
    """nl, of all shapes together."""
    return sum(len(own) * own.shape[-1] for own in _inverses(factors))


def _own_parts(factors: Sequence[Factor]) -> list[slice]:
    """The rows of each shape."""
    sizes = [own.shape[-1] for own in _inverses(factors) for _ in own]
    ends = np.cumsum(sizes)
    return [slice(end - l, end) for l, end in zip(sizes, ends.tolist(), strict=True)]


def _inverses(factors: Sequence[Factor]) -> list[Array]:
    """(b, l, l): Y of every batch."""
    return [factor.ridge.inverse for factor in factors]
