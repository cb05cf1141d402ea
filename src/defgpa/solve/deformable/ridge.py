r"""Given the reference, every warp is a ridge regression.

For one shape with features F (rows of hidden landmarks zero) and penalty R the best weights
for a reference S are

    W = (FᵀF + R)⁻¹ Fᵀ S = Y Uᵀ S,     TᵀT = FᵀF + R,  Y = T⁻¹,  U = F Y,

and what they leave over is tr Sᵀ (E − U Uᵀ) S, E the diagonal of visibility. T is the Cholesky
factor; where that would lose too many digits (it squares the condition number of F), a second
one of UᵀU + YᵀRY, which is nearly the identity, gives them back; and where the first fails, Y
comes from the singular values of [F; √R].

Columns are brought to unit length first, so that however heavy smoothing makes some of them, the
others keep their digits. Not so to judge the rank: features are measured in the size of the shape,
and a direction whose effect is rounding beside 1 is dropped and counted, never silently. The z of
a flat shape is not determined by being 1e-17 instead of 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array, Index, Mask, inverse_of_lower, symmetrised

POOR_CONDITION = 5e7  # of FᵀF + R, estimated: below, P keeps twelve digits with Cholesky
_HOPELESS = 1e13  # of FᵀF + R: a direction may be free, and only rounding in R charges it
_LIGHT = 1e-10  # of the longest feature: a column that is shorter may be nothing but rounding
_IN_DOUBT = 1e-3  # rounding² times a condition: rank is then judged by singular values
_ROUNDING = 1e-12  # of the size of the shape: an effect that is smaller says nothing


@dataclass(frozen=True, eq=False)
class Ridge:
    """The triangular factors of a stack of ridge regressions."""

    inverse: Array  # (b, l, l): Y, zero columns where a direction was dropped
    condition: Array  # (b,): of FᵀF + R with columns of unit length, estimated
    dropped: Index  # (b,): how many directions the data and the penalty leave free

    def __getitem__(self, part: slice | Mask) -> Ridge:
        return Ridge(self.inverse[part], self.condition[part], self.dropped[part])

    def gram(self, penalty: Array) -> Array:
        """(b, l, l): UᵀU = I − YᵀRY of each, without a pass over its landmarks; 0 if dropped."""
        kept = (np.abs(self.inverse).max(axis=-2) > 0.0).astype(np.float64)
        charged = self.inverse.mT @ penalty @ self.inverse
        return symmetrised(kept[:, :, None] * np.eye(kept.shape[-1]) - charged)

    def updated(self, chosen: Mask | Index, other: Ridge) -> Ridge:
        """This with the entries ``chosen`` taken from ``other``."""
        inverse, condition = np.array(self.inverse), np.array(self.condition)
        dropped = np.array(self.dropped)
        inverse[chosen], condition[chosen] = other.inverse, other.condition
        dropped[chosen] = other.dropped
        return Ridge(inverse, condition, dropped)


def ridge_from_normal_matrix(
    gram: Array, penalty: Array | float = 0.0, rounding: Array | float = 0.0
) -> Ridge:
    """By Cholesky of FᵀF + R; ``condition`` is infinite where that fails or rank is in doubt.

    ``rounding`` (b,) is that of the coordinates, of the size of each shape.
    """
    normal = gram + penalty
    squares = np.maximum(np.einsum("bll->bl", normal), 0.0)
    scale = _reciprocal(np.sqrt(squares))
    even = normal * scale[:, :, None] * scale[:, None, :]
    try:
        lower: Array = np.linalg.cholesky(even)  # type: ignore[assignment]
    except np.linalg.LinAlgError:
        return _one_by_one(gram, penalty, rounding)
    inverse = inverse_of_lower(lower)
    longest = np.einsum("bll->bl", gram).max(axis=1, initial=0.0)
    shortest = squares.min(axis=1, initial=np.inf)
    condition = _norm_bound(lower) * _norm_bound(inverse)
    # columns of their own lengths: what is rounding of coordinates may fill a short one, or add to
    # one that is the image of another
    blurred = condition * longest * np.asarray(rounding) ** 2 > _IN_DOUBT * shortest
    light = (shortest < _LIGHT**2 * longest) | blurred
    condition = np.where(light, np.inf, condition)
    return Ridge(scale[:, :, None] * inverse.mT, condition, np.zeros(len(normal), dtype=int))


def ridge_from_gram(
    gram: Array, mixing: Array | None, penalty: Array, rounding: Array | float = 0.0
) -> Ridge:
    """By Cholesky of mixingᵀ G mixing + R, with G = columnsᵀ columns of the cheap columns.

    The columns may be larger than the features made of them, and what cancels in the mixing has
    lost digits before. With Z = mixing @ Y, rounding of G is off by Σ_ij ‖c_i‖ ‖c_j‖ |Z_i| |Z_j| at
    most: the condition counts that too.
    """
    if mixing is None:
        return ridge_from_normal_matrix(gram, penalty, rounding)
    ridge = ridge_from_normal_matrix(mixing.mT @ gram @ mixing, penalty, rounding)
    lengths = np.sqrt(np.maximum(np.einsum("bii->bi", gram), 0.0))
    amplified = lengths[:, None, :] @ np.abs(mixing @ ridge.inverse)
    size = np.einsum("bil,bil->b", amplified, amplified)
    return Ridge(ridge.inverse, np.maximum(ridge.condition, size), ridge.dropped)


def second_ridge(first: Ridge, gram: Array, penalty: Array) -> Ridge:
    """The digits that Cholesky lost, from the Gram matrix UᵀU of the features U = F Y it gave.

    UᵀU + YᵀRY = I + E, E what was lost; its own Cholesky factor corrects Y. ``condition`` stays
    that of FᵀF + R, or is infinite where Y was too far off to be corrected.
    """
    charged = first.inverse.mT @ penalty @ first.inverse
    normal = gram + symmetrised(charged)
    second = ridge_from_normal_matrix(normal)
    far_off = np.abs(np.einsum("bll->bl", normal) - 1.0).max(axis=1, initial=0.0) > 0.5
    hopeless = ~(first.condition < _HOPELESS)
    unsound = hopeless | far_off | ~(second.condition < POOR_CONDITION)
    return Ridge(
        first.inverse @ second.inverse,
        np.where(unsound, np.inf, first.condition),
        second.dropped,
    )


def ridge_from_features(
    stacked: Array, count: Array | float = 0.0, rounding: Array | float = 0.0
) -> Ridge:
    """By the singular values of the stacked [F; √R] (b, p + l, l): slow, and sure.

    Directions whose effect drowns in rounding are dropped: beside that of a feature which is 1 at
    all ``count`` (b,) landmarks a shape sees, however short the column that rounding fills is.
    ``rounding`` (b,) is that of the coordinates, of the size of the shape: more than that of the
    algebra where a shape lies far from the origin.
    """
    lengths = np.sqrt(_squares(stacked))
    least = np.maximum(_rounding(stacked), rounding * np.ones(len(stacked)))
    ridge = _by_singular_values(stacked, lengths, least)
    # heavy columns shrink, light ones stay light
    beside = np.maximum(lengths, np.sqrt(count * np.ones(len(stacked)))[:, None])
    lightest = (lengths * _reciprocal(beside)).min(axis=1)
    faint = np.sqrt(ridge.condition) * least >= lightest
    doubtful = np.flatnonzero(faint | (ridge.dropped > 0))
    if not len(doubtful):
        return ridge
    judged = _by_singular_values(stacked[doubtful], beside[doubtful], least[doubtful])
    lacking = judged.dropped > 0
    return ridge.updated(doubtful[lacking], judged[lacking])


def _by_singular_values(stacked: Array, lengths: Array, least: Array) -> Ridge:
    """Y of the columns divided by ``lengths``; directions with values below ``least`` go."""
    scale = _reciprocal(lengths)
    _, values, right = np.linalg.svd(stacked * scale[:, None, :], full_matrices=False)
    largest = values[:, :1]
    free = values <= least[:, None] * largest
    with np.errstate(divide="ignore"):
        reciprocal = np.where(free, 0.0, 1.0 / values)
    smallest = values.min(axis=1, where=~free, initial=np.inf)
    return Ridge(
        scale[:, :, None] * right.mT * reciprocal[:, None, :],
        (largest[:, 0] / smallest) ** 2,
        free.sum(axis=1),
    )


def _rounding(stacked: Array) -> float:
    """The share of the largest singular value below which another one says nothing."""
    return max(_ROUNDING, 8 * max(stacked.shape[1:]) * float(np.finfo(np.float64).eps))


def _squares(stacked: Array) -> Array:
    """(b, l): squared lengths of columns."""
    return np.einsum("bpl,bpl->bl", stacked, stacked)


def _reciprocal(lengths: Array) -> Array:
    """What makes columns of these lengths of unit length; a zero one is left alone."""
    return 1.0 / np.where(lengths > 0.0, lengths, 1.0)


def with_penalty_rows(features: Array, penalty: Array) -> Array:
    """(b, p + l, l): [F; √R], whose Gram matrix is FᵀF + R.

    What rounding leaves of a zero eigenvalue of R is cut off: under heavy smoothing its root would
    charge what is meant to be free.
    """
    values, vectors = np.linalg.eigh(symmetrised(penalty))
    rounding = values.shape[-1] * np.finfo(np.float64).eps * np.abs(values).max(-1, keepdims=True)
    charges = np.where(values > rounding, values, 0.0)
    roots = np.sqrt(charges)[..., :, None] * vectors.mT
    return np.concatenate([features, roots], axis=-2)


def _one_by_one(gram: Array, penalty: Array | float, rounding: Array | float) -> Ridge:
    """When one matrix of a stack is singular, the others must not suffer."""
    b, l, _ = gram.shape
    if b == 1:
        return Ridge(np.zeros((1, l, l)), np.array([np.inf]), np.zeros(1, dtype=int))
    charges = np.broadcast_to(penalty, gram.shape)
    each = zip(gram, charges, np.broadcast_to(rounding, b), strict=True)
    parts = [ridge_from_normal_matrix(own[None], charge[None], r) for own, charge, r in each]
    return Ridge(
        np.concatenate([part.inverse for part in parts]),
        np.concatenate([part.condition for part in parts]),
        np.concatenate([part.dropped for part in parts]),
    )


def _squared_norm(stack: Array) -> Array:
    return np.einsum("bij,bij->b", stack, stack)


def _norm_bound(stack: Array) -> Array:
    """(b,): ‖·‖² from above, by ‖·‖₁ ‖·‖∞ or by the sum of squares, whichever is less."""
    sizes = np.abs(stack)
    rows, columns = sizes.sum(axis=-1).max(axis=-1), sizes.sum(axis=-2).max(axis=-1)
    return np.asarray(np.minimum(rows * columns, _squared_norm(stack)))
