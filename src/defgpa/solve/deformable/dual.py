r"""The same axes from a smaller matrix, where every shape sees every landmark.

With U = [U_1 … U_n] (m × nl), all features side by side, P = nI − U Uᵀ. Its cheapest axes are

    x = U c / √(n − σ),        (nI − UᵀU) c = σ c:

P x = n U c − U (UᵀU c) = σ U c. The matrix UᵀU is as large as all features together, not as the
landmarks. A product with it takes one pass over them instead of two (each block of landmarks gives
its rows of U c and takes them back at once), and no vector of m entries is held meanwhile.

The constant vector of warps with free translations, P1 = 0, is 1 = U c₁/n with c₁ = Uᵀ1. It is
lifted out of the way here as it is in P.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from defgpa._arrays import Array, small_product, summed
from defgpa._threads import blocks, in_blocks
from defgpa.solve.deformable.centering import LiftedCost
from defgpa.solve.deformable.cost import EliminatedCost
from defgpa.solve.deformable.factors import CombinedColumns
from defgpa.solve.deformable.sampled_inverse import n_features, sampleable, sampled_inverse
from defgpa.solve.eigen.solvers import Cost, Iterative, Spectrum

_PATIENCE = 150  # products, of which some dozens are usual
_TALL = 16  # landmarks for each feature of all shapes, from which this may be faster
_SAMPLE = 16  # times m, from which features squared, the size of the matrix, cost more to sample
_FREE = 1e-12  # 1ᵀP1 / 1ᵀ1 n: below, it is rounding, and translations are free
_BLUR = 100  # times the accuracy asked for: what rounding may hide
_BLOCK_BYTES = 10 << 20  # of the columns of all shapes: read twice while near the cache
_BLOCKS_AT_ONCE = 4  # enough for a thread to be worth its start


@dataclass(frozen=True, eq=False)
class DualCost:
    """nI − UᵀU, with the constant vector lifted."""

    cost: EliminatedCost
    factors: tuple[CombinedColumns, ...]  # those of the cost
    constant: Array  # (nl,): c₁, of unit length
    lift: float

    @property
    def n_shapes(self) -> int:
        """n, which bounds the spectrum."""
        return self.cost.n_shapes

    def multiply(self, block: Array) -> Array:
        """(nI − UᵀU) C, and the lift of what lies along the constant."""
        along = self.lift * np.outer(self.constant, self.constant @ block)
        return self.n_shapes * block - self._gathered(block) + along

    def axes(self, solver: Iterative, dim: int) -> Spectrum | None:
        """The ``dim`` cheapest axes of P; None where they are not found here."""
        inverse = sampled_inverse(self.factors, self.n_shapes, self.constant, self.lift)
        found = solver.with_budget(_PATIENCE).eigenpairs(self, inverse, dim)
        lengths = np.sqrt(np.maximum(self.n_shapes - found.values[:dim], 0.0))
        gap = found.values[dim] - found.values[dim - 1]
        if not found.converged or found.residuals[:dim].max() > _BLUR * solver.accuracy * gap:
            return None  # P itself loses fewer digits to rounding
        if lengths.min() <= 1e-3 * np.sqrt(self.n_shapes):
            return None
        image = self.cost.stacked_image(found.vectors[:, : dim + 1])
        image, image_of_next = image[:, :dim] / lengths, image[:, dim]
        return Spectrum(
            _orthonormal(image),
            found.values,
            # ‖P x − σ x‖ = ‖U r‖ / √(n − σ), and ‖U‖ ≤ √n
            found.residuals[:dim] * np.sqrt(self.n_shapes) / lengths,
            image_of_next,
            np.array(found.converged),
            "iterative",
            found.n_products,
        )

    def _gathered(self, block: Array) -> Array:
        """UᵀU C; the order of the sum does not depend on the threads."""
        combine = [own for factor in self.factors for own in factor.combine]
        by_shape = [own for batch in self.cost.by_batch(block) for own in batch]
        mixed = [(own @ c).T for own, c in zip(combine, by_shape, strict=True)]
        rows = max(1, _BLOCK_BYTES // (8 * sum(len(own) for own in combine)))

        def sums(landmarks: slice) -> list[Array]:
            totals = [np.zeros_like(own) for own in mixed]
            for start in range(landmarks.start, landmarks.stop, rows):
                part = slice(start, min(start + rows, landmarks.stop))
                columns = [own for factor in self.factors for own in factor.columns_of(part)]
                image = _image(mixed, columns)
                for total, own in zip(totals, columns, strict=True):
                    total += small_product(image, own)
            return totals

        parts = in_blocks(sums, blocks(self.cost.n_landmarks, _BLOCKS_AT_ONCE * rows))
        totals = [summed(own) for own in zip(*parts, strict=True)]
        return np.vstack([own.T @ total.T for own, total in zip(combine, totals, strict=True)])


def _image(mixed: list[Array], columns: list[Array]) -> Array:
    """(k, p): (Σ columns mixedᵀ)ᵀ over the shapes; the few columns first, as in any product."""
    image = mixed[0] @ columns[0].T
    for own, tall in zip(mixed[1:], columns[1:], strict=True):
        image += own @ tall.T
    return image


def _orthonormal(axes: Array) -> Array:
    """The axes, orthogonal but for the residuals, made so to rounding."""
    for _ in range(2):
        lower = np.linalg.cholesky(axes.T @ axes)
        axes = solve_triangular(lower, axes.T, lower=True).T
    return axes


def dual_cost(cost: EliminatedCost, centred: Cost) -> DualCost | None:
    """That of a cost, where it is much smaller than the landmarks and knows the constant vector."""
    factors, n, m = sampleable(cost.factors), cost.n_shapes, cost.n_landmarks
    if not factors or not isinstance(centred, LiftedCost) or not (cost.views == n).all():
        return None
    if n_features(factors) > min(m / _TALL, np.sqrt(_SAMPLE * m)):
        return None
    constant = np.concatenate([factor.of_ones.ravel() for factor in factors])
    length = float(np.linalg.norm(constant))
    if abs(1.0 - length**2 / (n * m)) > _FREE:  # 1ᵀP1 = nm − ‖c₁‖²
        return None
    return DualCost(cost, factors, constant / length, centred.lift)
