r"""Every warp as independent modes (Demmler and Reinsch), which smoothing only damps.

With U = F Y, Yᵀ(FᵀF + R)Y = I, the matrix UᵀU = Q diag(λ) Qᵀ tells the share λ of the data in each
direction; the share of the penalty is 1 − λ. In the modes V = U Q a penalty c R gives

    F (FᵀF + cR)⁻¹ Fᵀ = V diag(g) Vᵀ,     g = 1 / (λ + c (1 − λ)),

so one decomposition serves all amounts of smoothing. For c = 1 it is not needed: g = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array, Index, Stack, blocks, concatenated, symmetrised
from defgpa.solvers.elimination import Batch, stored_factor


@dataclass(frozen=True, eq=False)
class Modes(Stack):
    """The modes of a stack of shapes, at their landmarks and at further points."""

    rows: Array  # (b, l, m): Vᵀ, zero where a landmark is hidden
    elsewhere: Array  # (b, N, l): the same modes at the further points
    share: Array | None  # (b, l): λ; None: not decomposed, only c = 1 can be asked for
    condition: Array  # (b,): of each shape's regression
    dropped: Index  # (b,): directions that neither data nor penalty determine

    def grams(self, factor: float, sets: int) -> Array:
        """(sets, m, m): Σ V diag(g) Vᵀ over each of so many equal parts of the stack."""
        rows = self.rows.reshape(sets, -1, self.rows.shape[-1])
        if self.share is None:
            return np.stack([own.T @ own for own in rows])
        roots = np.sqrt(self._gains(factor)).reshape(sets, -1, 1)
        return np.stack([_damped_gram(*own) for own in zip(rows, roots, strict=True)])

    def coefficients(self, factor: float, targets: Array) -> Array:
        """(b, l, k): diag(g) Vᵀ X, the weights of the warps in their modes, X (sets, m, k)."""
        sets, m, _ = targets.shape
        projected = self.rows.reshape(sets, -1, m) @ targets
        projected = projected.reshape(*self.rows.shape[:2], -1)
        return projected if self.share is None else self._gains(factor) * projected

    def _gains(self, factor: float) -> Array:
        """(b, l, 1): g."""
        assert self.share is not None
        return (1.0 / (self.share + factor * (1.0 - self.share)))[..., None]


def _damped_gram(rows: Array, roots: Array) -> Array:
    """(m, m): the Gram matrix of damped rows (r, m), a few at a time: they stay in the cache."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for part in blocks(len(rows), max(1, (1 << 20) // (8 * rows.shape[1]))):
        damped = roots[part] * rows[part]
        total += damped.T @ damped
    return total


def modes_of(batches: Sequence[Batch], elsewhere: Array, factors: Array) -> Modes:
    """The modes of all shapes of the batches, at further points (b, N, d)."""
    split = not np.array_equal(factors, [1.0])
    return concatenated([_modes(batch, elsewhere[batch.shapes], split) for batch in batches])


def _modes(batch: Batch, points: Array, split: bool) -> Modes:
    factor = stored_factor(batch)
    facts = factor.ridge.condition, factor.ridge.dropped
    elsewhere = batch.bases.features(points) @ factor.ridge.inverse
    if not split:
        return Modes(factor.rows, elsewhere, None, *facts)
    share, turn = np.linalg.eigh(symmetrised(factor.rows @ factor.rows.mT))
    # rounding may leave [0, 1], and a share above 1 would reward bending
    share = np.clip(share, 0.0, 1.0)
    return Modes(turn.mT @ factor.rows, elsewhere @ turn, share, *facts)
