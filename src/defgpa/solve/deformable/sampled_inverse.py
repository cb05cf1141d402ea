r"""A cheap idea of what warps cost, I − UᵀD⁻¹U: the same from a sample of the landmarks.

With U = [U_1 … U_n] (m × nl), D the views of the landmarks and u_j = Uᵀe_j, the quadratic form
that is left of the cost when the reference is the best for given warps is a sum over landmarks
plus the price of bending:

    I − UᵀD⁻¹U = Σ_j ( diag(u_1j u_1jᵀ, …) − u_j u_jᵀ / D_j ) + diag(YᵀRY).

Every term is positive semi-definite. Some thousands of landmarks, weighted as if they were all,
give the sum to a few per cent, also in the directions in which it is small; and a matrix of this
size is inverted in no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from defgpa._arrays import Array, Index, summed, transposed
from defgpa._threads import blocks, in_blocks
from defgpa.solve.deformable.factors import CombinedColumns, Factor

LARGEST = 4096  # features of all shapes: a matrix of this size is still small
_SAMPLED = 8  # landmarks for each feature of all shapes
_BLOCK = 1024  # of them
_SUMS = 4  # of blocks, each as large as the matrix: enough for some threads, and few to hold
SHIFT = 1e-4  # times n: keeps the inverse finite on the constant vector
_ROUNDS = 6  # of inverse iteration: the sample need not be solved better than it agrees


@dataclass(frozen=True, eq=False)
class SampledInverse:
    """(A + shift)⁻¹ of the sampled matrix A, by its Cholesky factor."""

    factor: tuple[Array, bool]

    def start(self, width: int) -> Array:
        """The cheapest directions of the sample."""
        columns = np.random.default_rng(0).normal(size=(len(self.factor[0]), width))
        for _ in range(_ROUNDS):
            columns, _ = np.linalg.qr(self.correct(columns))
        return columns

    def correct(self, residuals: Array) -> Array:
        """The inverse times the residuals."""
        return np.asarray(cho_solve(self.factor, residuals, check_finite=False))


def sampleable(factors: Sequence[Factor]) -> tuple[CombinedColumns, ...]:
    """The same factors, if all are made of columns and their features are few enough; or none."""
    columns = tuple(factor for factor in factors if isinstance(factor, CombinedColumns))
    return columns if len(columns) == len(factors) and n_features(columns) <= LARGEST else ()


def n_features(factors: Sequence[CombinedColumns]) -> int:
    """nl, of all shapes together."""
    return sum(factor.of_ones.size for factor in factors)


def sampled_inverse(
    factors: Sequence[CombinedColumns], n: int, constant: Array, lift: float
) -> SampledInverse:
    """Of nI − UᵀU of n shapes that see every landmark; the constant direction is charged."""
    views = np.full(factors[0].batch.n_landmarks, float(n))
    matrix = n * sampled_matrix(factors, views) + lift * np.outer(constant, constant)
    matrix[np.diag_indices(len(matrix))] += SHIFT * n
    return inverse_of(matrix)


def inverse_of(matrix: Array) -> SampledInverse:
    """By Cholesky; the matrix is overwritten."""
    return SampledInverse(cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False))


def sampled_matrix(factors: Sequence[CombinedColumns], views: Array) -> Array:
    """(nl, nl): I − UᵀD⁻¹U of a sample, D (m,) the views."""
    m, size = len(views), n_features(factors)
    count = _sample_size(m, size)
    chosen: Index = np.sort(np.random.default_rng(0).choice(m, count, replace=False))
    shapes = _own_parts(factors)

    def terms(part: slice) -> Array:
        total = np.zeros((size, size))
        for here in blocks(part.stop - part.start, _BLOCK):
            landmarks = chosen[part][here]
            rows = np.vstack([_rows(factor, landmarks) for factor in factors])
            for own in shapes:
                total[own, own] += rows[own] @ rows[own].T
            rows /= np.sqrt(views[landmarks])
            total -= rows @ rows.T
        return total

    matrix = summed(in_blocks(terms, blocks(count, -(-count // _SUMS))))
    matrix *= m / count
    known = (own for factor in factors for own in factor.ridge.gram(factor.batch.bases.penalty()))
    for own, exact in zip(shapes, known, strict=True):
        matrix[own, own] += np.eye(len(exact)) - exact  # YᵀRY, and 1 where a direction is dropped
    return matrix


def _own_parts(factors: Sequence[CombinedColumns]) -> list[slice]:
    """The rows of each shape."""
    sizes = [l for b, l in (factor.of_ones.shape for factor in factors) for _ in range(b)]
    ends = np.cumsum(sizes)
    return [slice(end - l, end) for l, end in zip(sizes, ends.tolist(), strict=True)]


def _sample_size(landmarks: int, features: int) -> int:
    return min(landmarks, _SAMPLED * features)


def _rows(factor: CombinedColumns, landmarks: Index) -> Array:
    """(b · l, p): Uᵀ of these landmarks."""
    rows = transposed(factor.batch.columns(landmarks) @ factor.combine)
    return rows.reshape(-1, len(landmarks))
