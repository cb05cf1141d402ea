r"""Given the reference, every warp is a ridge regression: warps are eliminated, U is left.

For one shape with features F (rows of hidden landmarks zero) and penalty R the best weights
for a reference S are

    W = (FᵀF + R)⁻¹ Fᵀ S = Y Uᵀ S,     TᵀT = FᵀF + R,  Y = T⁻¹,  U = F Y,

and what they leave over is tr Sᵀ (E − U Uᵀ) S, E the diagonal of visibility. T is the Cholesky
factor; where that would lose too many digits (it squares the condition number of F), Y comes from
the singular values of [F; √R].

Columns are brought to unit length first, so that however heavy smoothing makes some of them, the
others keep their digits. Not so to judge the rank: features are measured in the size of the shape,
and a direction whose effect is rounding beside 1 is dropped and counted, never silently. The z of
a flat shape is not determined by being 1e-17 instead of 0.

Shapes go through this in batches: several whose bases have equally many features, so that their
algebra is one call for all of them. Here U is stored; ``columns`` holds that of large shapes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from defgpa._arrays import (
    USUAL_FEATURES,
    Array,
    Index,
    Mask,
    Stack,
    blocks,
    concatenated,
    in_blocks,
    inverse_of_lower,
    small_product,
    symmetrised,
)
from defgpa.errors import ShapeError
from defgpa.frames import Frames
from defgpa.tuning import DEFAULT, Tuning
from defgpa.warps import Basis, FactoredBasis, Warp, WarpFamily, WarpModel

POOR_CONDITION = 5e7  # of FᵀF + R, estimated: below, P keeps twelve digits with Cholesky


@dataclass(frozen=True, eq=False)
class Batch:
    """Some shapes and their bases."""

    shapes: Index  # (b,): which ones
    points: Array  # (b, m, d), finite
    visible: Mask  # (b, m)
    bases: FactoredBasis  # a stack of b
    rounding: Array  # (b,): of the coordinates, of the size of each shape
    tuning: Tuning = DEFAULT

    @property
    def n_landmarks(self) -> int:
        """m."""
        return int(self.points.shape[1])

    def __getitem__(self, part: slice) -> Batch:
        own = self.shapes[part], self.points[part], self.visible[part], self.bases[part]
        return Batch(*own, self.rounding[part], self.tuning)

    def deflated(self) -> Batch:
        """The batch by columns that lose fewer digits in products, where its bases have them."""
        deflated = self.bases.deflate()
        return self if deflated is None else replace(self, bases=deflated)

    @property
    def mixing(self) -> Array | None:
        """(b, r, l), or None for the identity: features = columns @ mixing."""
        return self.bases.mixing

    def combine(self, ridge: Ridge) -> Array:
        """(b, r, l): mixing @ Y, so that U = columns @ combine."""
        return ridge.inverse if self.mixing is None else self.mixing @ ridge.inverse

    def warps(self, weights: Array, landmarks: Iterable[Array]) -> list[Warp]:
        """The warps of the shapes, from their weights (b, l, d); each knows its landmarks."""
        told: list[Any] = [(self.bases[number], own) for number, own in enumerate(weights)]
        if not isinstance(self.bases, StackedBases):
            told = [basis.express_in_columns(own) for basis, own in told]
        both = zip(told, landmarks, strict=True)
        return [Warp(basis, own, landmarks=points) for (basis, own), points in both]

    def columns(self, landmarks: slice = slice(None)) -> Array:
        """(b, p, r): the columns of these landmarks; rows of hidden ones are zero."""
        return self._hidden_zeroed(self.bases.columns(self.points[:, landmarks]), landmarks)

    def features(self) -> Array:
        """(b, m, l): the features of all landmarks; rows of hidden ones are zero."""
        return self._hidden_zeroed(self.bases.features(self.points), slice(None))

    def _hidden_zeroed(self, rows: Array, landmarks: slice) -> Array:
        """A hidden landmark must neither pull nor be pulled: a zero row does both."""
        visible = self.visible[:, landmarks]
        if not visible.all():
            rows *= visible.astype(np.float64)[..., None]
        return rows


@dataclass(frozen=True, eq=False)
class StackedBases(FactoredBasis):
    """Bases that were made one by one, used as a stack."""

    members: tuple[Basis, ...]
    size: int  # l

    mixing = None

    def columns(self, points: Array) -> Array:
        """(b, p, l)."""
        own = zip(self.members, points, strict=True)
        return np.stack([np.array(b.features(x), dtype=np.float64) for b, x in own])

    features = columns

    def column_gradients(self, points: Array) -> Array:
        """Not known for features that are only a function."""
        raise NotImplementedError

    def penalty(self) -> Array:
        """(b, l, l)."""
        return np.stack([full_penalty(basis, self.size) for basis in self.members])

    def __getitem__(self, shape: Any) -> Any:
        if isinstance(shape, slice):
            return StackedBases(self.members[shape], self.size)
        return self.members[shape]


def full_penalty(basis: Basis, size: int) -> Array:
    """(l, l): the penalty of a basis, which may also state 0 or a multiple of the identity."""
    penalty = np.asarray(basis.penalty(), dtype=np.float64)
    if penalty.ndim == 0:
        return float(penalty) * np.eye(size)
    if penalty.shape != (size, size):
        raise ShapeError(
            f"The penalty of {type(basis).__name__} must be ({size}, {size}), one row per feature; "
            f"got size {penalty.shape}."
        )
    return penalty


def make_batches(frames: Frames, model: WarpModel, tuning: Tuning = DEFAULT) -> list[Batch]:
    """All shapes in batches, in order."""
    if isinstance(model, WarpFamily):
        n, numbers = len(frames.points), np.arange(len(frames.points))
        parts = blocks(n, _batch_size(frames, model, tuning))
        if len(parts) == 1:
            return [stacked_batch(frames, model, numbers, tuning)]
        return in_blocks(lambda p: stacked_batch(frames[p], model, numbers[p], tuning), parts)
    return _looped_batches(frames, model, tuning)


def stacked_batch(
    frames: Frames, model: WarpFamily[Any], shapes: Index, tuning: Tuning = DEFAULT
) -> Batch:
    """These shapes as one batch."""
    bases = model.bases(frames)
    return Batch(shapes, frames.points, frames.visible, bases, frames.rounding, tuning)


def _batch_size(frames: Frames, model: WarpFamily[Any], tuning: Tuning) -> int:
    """Shapes of a batch; as many as there are, where all their features are surely few."""
    n, m, _ = frames.points.shape
    if 8 * n * m * USUAL_FEATURES <= tuning.few_bytes:
        return n
    return _shapes_at_a_time(n, m, model.bases(frames[:1]).penalty().shape[-1], tuning)


def _shapes_at_a_time(n: int, m: int, features: int, tuning: Tuning) -> int:
    size = 8 * n * m * features
    if size <= tuning.few_bytes:
        return n
    # two or four threads then have equally much to do
    return -(-n // (4 * -(-size // (4 * tuning.batch_bytes))))


def _looped_batches(frames: Frames, model: WarpModel, tuning: Tuning) -> list[Batch]:
    """Consecutive shapes with equally many features share a batch."""
    points, visible = frames.points, frames.visible
    members = [model.basis(own[seen]) for own, seen in zip(points, visible, strict=True)]
    sizes = [
        np.shape(basis.features(own[seen]))[1]
        for basis, own, seen in zip(members, points, visible, strict=True)
    ]
    starts = np.flatnonzero(np.diff(sizes, prepend=-1))
    return [
        Batch(
            chosen[part],
            points[chosen[part]],
            visible[chosen[part]],
            StackedBases(tuple(members[i] for i in chosen[part]), sizes[chosen[0]]),
            frames.rounding[chosen[part]],
            tuning,
        )
        for chosen in np.split(np.arange(len(sizes)), starts[1:])
        for part in blocks(
            len(chosen), _shapes_at_a_time(len(chosen), points.shape[1], sizes[chosen[0]], tuning)
        )
    ]


@dataclass(frozen=True, eq=False)
class Ridge(Stack):
    """The triangular factors of a stack of ridge regressions."""

    inverse: Array  # (b, l, l): Y, zero columns where a direction was dropped
    condition: Array  # (b,): of FᵀF + R with columns of unit length, estimated
    dropped: Index  # (b,): how many directions the data and the penalty leave free

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
    # rounding of columns of unit length reaches P amplified by Σ_l (Σ_i |Y_il|)² at most: many
    # columns make that a closer estimate, in eighths, than the product of norms is
    amplified = 8.0 * np.square(np.abs(inverse).sum(axis=-1)).sum(axis=-1)
    condition = np.minimum(_norm_bound(lower) * _norm_bound(inverse), amplified)
    # columns of their own lengths: what is rounding of coordinates may fill a short one, or add to
    # one that is the image of another; 1e-10 of the longest may be rounding of the algebra. Then
    # rank is judged by singular values
    blurred = condition * longest * np.asarray(rounding) ** 2 > 1e-3 * shortest
    light = (shortest < 1e-20 * longest) | blurred
    condition = np.where(light, np.inf, condition)
    return Ridge(scale[:, :, None] * inverse.mT, condition, np.zeros(len(normal), dtype=int))


def ridge_from_features(
    stacked: Array, count: Array | float = 0.0, rounding: Array | float = 0.0
) -> Ridge:
    """By the singular values of the stacked [F; √R] (b, p + l, l): slow, and sure.

    Directions whose effect drowns in rounding are dropped: beside that of a feature which is 1 at
    all ``count`` (b,) landmarks a shape sees, however short the column that rounding fills is.
    ``rounding`` (b,) is that of the coordinates, of the size of the shape: more than that of the
    algebra where a shape lies far from the origin.
    """
    lengths = np.sqrt(np.einsum("bpl,bpl->bl", stacked, stacked))
    # of the largest singular value, or of the size of the shape: what is less says nothing
    algebra = max(1e-12, 8 * max(stacked.shape[1:]) * float(np.finfo(np.float64).eps))
    least = np.maximum(algebra, rounding * np.ones(len(stacked)))
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
    return concatenated(
        [ridge_from_normal_matrix(own[None], charge[None], r) for own, charge, r in each]
    )


def _norm_bound(stack: Array) -> Array:
    """(b,): ‖·‖² from above, by ‖·‖₁ ‖·‖∞ or by the sum of squares, whichever is less."""
    sizes = np.abs(stack)
    rows, columns = sizes.sum(axis=-1).max(axis=-1), sizes.sum(axis=-2).max(axis=-1)
    return np.asarray(np.minimum(rows * columns, np.einsum("bij,bij->b", stack, stack)))


@dataclass(frozen=True, eq=False)
class Factor(ABC):
    """U of a batch of shapes, in whatever form."""

    batch: Batch
    ridge: Ridge

    @abstractmethod
    def project(self, block: Array) -> Array:
        """(b, l, k): Uᵀ X for X (m, k)."""

    @abstractmethod
    def expand(self, coefficients: Array, onto: Array, landmarks: slice = slice(None)) -> None:
        """Add the rows of these landmarks of Σ U C, for C (b, l, k), onto an image (p, k)."""

    @property
    @abstractmethod
    def landmarks_at_a_time(self) -> int:
        """How many landmarks can be expanded with all that is made for it in the cache."""

    @abstractmethod
    def transposed_rows(self) -> Array:
        """(b · l, m): Uᵀ of all shapes of the batch."""

    def gram(self) -> Array:
        """(m, m): Σ U Uᵀ over the batch, one symmetric product."""
        rows = self.transposed_rows()
        return rows.T @ rows

    def only(self, shape: int) -> Self:
        """The factor of one shape of the batch, by its number in the batch."""
        one = slice(shape, shape + 1)
        return type(self)(*[getattr(self, own.name)[one] for own in fields(self)])


@dataclass(frozen=True, eq=False)
class StoredFactor(Factor):
    """Uᵀ itself, (b, l, m)."""

    rows: Array

    def project(self, block: Array) -> Array:
        """Uᵀ X."""
        b, l, _ = self.rows.shape
        # (Xᵀ U)ᵀ: BLAS reads U twice as fast from this side
        return small_product(block.T, self.transposed_rows().T).T.reshape(b, l, -1)

    def explained(self, block: Array) -> Array:
        """(m, k): Σ U Uᵀ X, some rows of Uᵀ at a time: in the cache when they are read again."""
        rows, points = self.transposed_rows(), np.ascontiguousarray(block.T)
        image, more = np.zeros(points.shape), np.empty(points.shape)
        for part in blocks(len(rows), max(4, self.batch.tuning.row_bytes // (8 * rows.shape[1]))):
            image += np.matmul(small_product(points, rows[part].T), rows[part], out=more)
        return image.T

    def expand(self, coefficients: Array, onto: Array, landmarks: slice = slice(None)) -> None:
        """Σ U C."""
        rows = self.transposed_rows()[:, landmarks]
        onto += (coefficients.reshape(len(rows), -1).T @ rows).T

    @property
    def landmarks_at_a_time(self) -> int:
        """The landmarks whose rows of U stay in the cache."""
        b, l, _ = self.rows.shape
        return max(1, self.batch.tuning.block_bytes // (8 * b * l))

    def transposed_rows(self) -> Array:
        """Uᵀ, a view."""
        return self.rows.reshape(-1, self.rows.shape[-1])


def stored_factor(batch: Batch) -> StoredFactor:
    """Uᵀ = Yᵀ Fᵀ of a batch of small shapes."""
    features, penalty = batch.features(), batch.bases.penalty()
    ridge = ridge_from_normal_matrix(features.mT @ features, penalty, batch.rounding)
    poor = ~(ridge.condition < POOR_CONDITION)
    if poor.any():
        stacked = with_penalty_rows(features[poor], penalty[poor])
        count = batch.visible[poor].sum(axis=1)
        sure = ridge_from_features(stacked, count, batch.rounding[poor])
        ridge = ridge.updated(poor, sure)
    return StoredFactor(batch, ridge, ridge.inverse.mT @ features.mT)
