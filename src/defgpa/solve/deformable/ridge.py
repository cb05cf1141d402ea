r"""Given the reference, every warp is a ridge regression.

For one shape with features F (rows of hidden landmarks zero) and penalty R the best weights
for a reference S are

    W = (FᵀF + R)⁻¹ Fᵀ S = Y Uᵀ S,     TᵀT = FᵀF + R,  Y = T⁻¹,  U = F Y,

and what they leave over is tr Sᵀ (E − U Uᵀ) S, E the diagonal of visibility. T is the Cholesky
factor; where that would lose too many digits (it squares the condition number of F), Y comes
from the singular values of [F; √R]; and where even those vanish the free directions are dropped
and counted, never silently. Both work on columns of unit length, so that however heavy smoothing
makes some of them, the others keep their digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array, Index, Mask, inverse_of_lower, symmetrised, transposed

POOR_CONDITION = 1e7  # of FᵀF + R: Cholesky then loses half the digits of P, QR does not


@dataclass(frozen=True, eq=False)
class Ridge:
    """The triangular factors of a stack of ridge regressions."""

    inverse: Array  # (b, l, l): Y, zero columns where a direction was dropped
    condition: Array  # (b,): of FᵀF + R with columns of unit length, estimated
    dropped: Index  # (b,): how many directions the data and the penalty leave free

    def __getitem__(self, part: slice) -> Ridge:
        return Ridge(self.inverse[part], self.condition[part], self.dropped[part])

    def gram(self, penalty: Array) -> Array:
        """(b, l, l): UᵀU = I − YᵀRY of each, without a pass over its landmarks; 0 if dropped."""
        kept = (np.abs(self.inverse).max(axis=-2) > 0.0).astype(np.float64)
        charged = transposed(self.inverse) @ penalty @ self.inverse
        return symmetrised(kept[:, :, None] * np.eye(kept.shape[-1]) - charged)

    def updated(self, chosen: Mask, other: Ridge) -> Ridge:
        """This with the entries ``chosen`` taken from ``other``."""
        inverse, condition = np.array(self.inverse), np.array(self.condition)
        dropped = np.array(self.dropped)
        inverse[chosen], condition[chosen] = other.inverse, other.condition
        dropped[chosen] = other.dropped
        return Ridge(inverse, condition, dropped)


def ridge_from_normal_matrix(normal: Array) -> Ridge:
    """By Cholesky of A = FᵀF + R; ``condition`` is infinite where that fails."""
    scale = _to_unit_length(np.einsum("bll->bl", normal))
    even = normal * scale[:, :, None] * scale[:, None, :]
    try:
        lower: Array = np.linalg.cholesky(even)  # type: ignore[assignment]
    except np.linalg.LinAlgError:
        return _one_by_one(normal)
    inverse = inverse_of_lower(lower)
    condition = _squared_norm(lower) * _squared_norm(inverse)
    return Ridge(
        scale[:, :, None] * transposed(inverse), condition, np.zeros(len(normal), dtype=int)
    )


def ridge_from_gram(gram: Array, mixing: Array | None, penalty: Array) -> Ridge:
    """By Cholesky of mixingᵀ G mixing + R, with G = columnsᵀ columns of the cheap columns.

    The columns are larger than the features made of them, and what cancels in the mixing has lost
    digits before: the condition counts that too (the norms overstate it by about ten).
    """
    if mixing is None:
        return ridge_from_normal_matrix(gram + penalty)
    ridge = ridge_from_normal_matrix(transposed(mixing) @ gram @ mixing + penalty)
    size = np.einsum("bii->b", gram) * _squared_norm(mixing @ ridge.inverse)
    return Ridge(ridge.inverse, np.maximum(ridge.condition, 0.1 * size), ridge.dropped)


def ridge_from_features(stacked: Array) -> Ridge:
    """By the singular values of the stacked [F; √R] (b, p + l, l): slow, and sure.

    Directions whose singular value drowns in rounding are dropped.
    """
    scale = _to_unit_length(np.einsum("bpl,bpl->bl", stacked, stacked))
    _, values, right = np.linalg.svd(stacked * scale[:, None, :], full_matrices=False)
    largest = values[:, :1]
    free = values <= 8 * max(stacked.shape[1:]) * np.finfo(np.float64).eps * largest
    with np.errstate(divide="ignore"):
        reciprocal = np.where(free, 0.0, 1.0 / values)
    smallest = np.where(free, np.inf, values).min(axis=1)
    return Ridge(
        scale[:, :, None] * transposed(right) * reciprocal[:, None, :],
        (largest[:, 0] / smallest) ** 2,
        free.sum(axis=1),
    )


def _to_unit_length(squares: Array) -> Array:
    """What makes columns with these squared lengths of unit length; a zero one is left alone."""
    return 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))


def with_penalty_rows(features: Array, penalty: Array) -> Array:
    """(b, p + l, l): [F; √R], whose Gram matrix is FᵀF + R.

    What rounding leaves of a zero eigenvalue of R is cut off: under heavy smoothing its root would
    charge what is meant to be free.
    """
    values, vectors = np.linalg.eigh(symmetrised(penalty))
    rounding = values.shape[-1] * np.finfo(np.float64).eps * np.abs(values).max(-1, keepdims=True)
    charges = np.where(values > rounding, values, 0.0)
    roots = np.sqrt(charges)[..., :, None] * transposed(vectors)
    return np.concatenate([features, roots], axis=-2)


def _one_by_one(normal: Array) -> Ridge:
    """When one matrix of a stack is singular, the others must not suffer."""
    b, l, _ = normal.shape
    if b == 1:
        return Ridge(np.zeros((1, l, l)), np.array([np.inf]), np.zeros(1, dtype=int))
    parts = [ridge_from_normal_matrix(one[None]) for one in normal]
    return Ridge(
        np.concatenate([part.inverse for part in parts]),
        np.concatenate([part.condition for part in parts]),
        np.concatenate([part.dropped for part in parts]),
    )


def _squared_norm(stack: Array) -> Array:
    return np.einsum("bij,bij->b", stack, stack)
