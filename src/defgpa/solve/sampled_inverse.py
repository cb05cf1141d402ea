r"""A cheap idea of nI − UᵀU: the same from a sample of the landmarks.

The cost of the warps, cᵀ(nI − UᵀU)c, is a sum over landmarks plus the price of bending:

    nI − UᵀU = Σ_j ( n diag(u_1j u_1jᵀ, …) − u_j u_jᵀ ) + n diag(YᵀRY),      u_j = Uᵀe_j.

Some thousands of landmarks, weighted as if they were all, give the sum to a few per cent, also in
the directions in which it is small; and a matrix of this size is inverted in no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from defgpa._arrays import Array, Index, transposed
from defgpa._threads import blocks, in_blocks
from defgpa.solve.factors import CombinedColumns

_SAMPLED = 8  # landmarks for each feature of all shapes
_BLOCK = 1024  # of them
_SUMS = 4  # of blocks, each as large as the matrix: enough for some threads, and few to hold
_SHIFT = 1e-4  # times n: keeps the inverse finite
_ROUNDS = 6  # of inverse iteration: the sample need not be solved better than it agrees


@dataclass(frozen=True, eq=False)
class SampledInverse:
    """(A + shift)⁻¹ of the sampled matrix A, by its Cholesky factor."""

    factor: tuple[Array, bool]

    def start(self, width: int) -> Array:
        """The cheapest directions of the sample, and one that no symmetry can hide."""
        rng = np.random.default_rng(0)
        columns, generic = np.split(rng.normal(size=(len(self.factor[0]), width + 1)), [width], 1)
        for _ in range(_ROUNDS):
            columns, _ = np.linalg.qr(self.correct(columns))
        return np.hstack([columns, generic])

    def correct(self, residuals: Array) -> Array:
        """The inverse times the residuals."""
        return np.asarray(cho_solve(self.factor, residuals, check_finite=False))


def sampled_inverse(
    factors: Sequence[CombinedColumns], n: int, constant: Array, lift: float
) -> SampledInverse:
    """Of n shapes that see every landmark; the constant direction is charged ``lift``."""
    matrix = -_sampled_gram(factors)
    start = 0
    for factor in factors:
        for known in factor.ridge.gram(factor.batch.bases.penalty()):
            own = slice(start, start + len(known))
            # exactly n I would not fit the other terms: what one shape pays, the sample says too
            matrix[own, own] += n * (np.eye(len(known)) - known - matrix[own, own])
            start = own.stop
    matrix += lift * np.outer(constant, constant)
    matrix[np.diag_indices(len(matrix))] += _SHIFT * n
    return SampledInverse(cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False))


def _sampled_gram(factors: Sequence[CombinedColumns]) -> Array:
    """(nl, nl): UᵀU of a sample, weighted as if it were all landmarks."""
    m = factors[0].batch.n_landmarks
    size = _sample_size(m, sum(factor.of_ones.size for factor in factors))
    chosen: Index = np.sort(np.random.default_rng(0).choice(m, size, replace=False))

    def gram(part: slice) -> Array:
        total: Array | float = 0.0
        for here in blocks(part.stop - part.start, _BLOCK):
            rows = np.vstack([_rows(factor, chosen[part][here]) for factor in factors])
            total = total + rows @ rows.T
        return np.asarray(total)

    return np.sum(in_blocks(gram, blocks(size, -(-size // _SUMS))), axis=0) * (m / size)


def _sample_size(landmarks: int, features: int) -> int:
    return min(landmarks, _SAMPLED * features)


def _rows(factor: CombinedColumns, landmarks: Index) -> Array:
    """(b · l, p): Uᵀ of these landmarks."""
    rows = transposed(factor.batch.columns(landmarks) @ factor.combine)
    return rows.reshape(-1, len(landmarks))
