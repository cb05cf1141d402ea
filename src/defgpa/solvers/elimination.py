r"""Eliminate the warps: given the reference, every warp is a ridge regression.

For one shape with features F, penalty R and landmark weights Γ (0 where a landmark is missing) the
best coefficients for a reference S are

    W = (FᵀΓF + R)⁻¹ FᵀΓ S = Y Uᵀ S,     Yᵀ(FᵀΓF + R)Y = I,   U = ΓFY,

and what they leave over is tr SᵀPS with the residual form P = Γ − UUᵀ. Y is the inverse of the
Cholesky factor; where that would lose too many digits (it squares the condition number of F), it
comes from the singular values of [Γ^½F; √R].

Columns are brought to unit length first, so that however heavy smoothing makes some of them, the
others keep their digits. Not so to judge the rank: features are measured in the size of the shape,
and a direction whose effect is rounding beside 1 is dropped and counted, never silently. The z of
a flat shape is not determined by being 1e-17 instead of 0.

Shapes go through this in batches: several whose bases have equally many features, so that their
algebra is one call for all of them. Here U is stored; ``columns`` computes that of large shapes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from defgpa.arrays import (
    Array,
    Index,
    Mask,
    Stack,
    invert_lower,
    join_stacks,
    symmetrise,
)
from defgpa.errors import ShapeError
from defgpa.tuning import DEFAULT, Tuning
from defgpa.warps import Basis, FactoredBasis

POOR_CONDITION = 5e7  # of FᵀF + R, estimated: below, P keeps twelve digits with Cholesky


@dataclass(frozen=True, eq=False)
class Batch:
    """Some shapes and their bases."""

    shapes: Index  # (b,): which ones
    points: Array  # (b, m, d), finite
    visible: Mask  # (b, m)
    weights: Array | None  # (b, m): landmark weights; None: 1 for every visible landmark
    bases: FactoredBasis  # a stack of b
    rounding: Array  # (b,): of the coordinates, of the size of each shape
    tuning: Tuning = DEFAULT

    @property
    def n_landmarks(self) -> int:
        """The number of landmarks, m."""
        return int(self.points.shape[1])

    def __getitem__(self, part: slice) -> Batch:
        return Batch(
            self.shapes[part],
            self.points[part],
            self.visible[part],
            None if self.weights is None else self.weights[part],
            self.bases[part],
            self.rounding[part],
            self.tuning,
        )

    def restrict_to_landmarks(self, landmarks: slice) -> Batch:
        """Return the batch on some of the landmarks, with the same bases."""
        return replace(
            self,
            points=self.points[:, landmarks],
            visible=self.visible[:, landmarks],
            weights=None if self.weights is None else self.weights[:, landmarks],
        )

    def deflate(self) -> Batch:
        """Return the batch by columns that lose fewer digits in products, if there are such."""
        deflated = self.bases.deflate()
        return self if deflated is None else replace(self, bases=deflated)

    def mix(self, ridge: Ridge) -> Array:
        """Return mixing @ Y (b, r, l), so that U = columns @ (mixing @ Y)."""
        mixing = self.bases.mixing
        return ridge.inverse if mixing is None else mixing @ ridge.inverse

    def columns(self, landmarks: slice = slice(None)) -> Array:
        """Return Γ^½ times the columns of these landmarks, (b, p, r), for the regression."""
        return self.weigh(self.bases.columns(self.points[:, landmarks]), landmarks)

    def weigh_columns(self, landmarks: slice = slice(None)) -> Array:
        """Return Γ times the columns of these landmarks, (b, p, r), of which U is made."""
        columns = self.columns(landmarks)  # without weights Γ = Γ^½
        return columns if self.weights is None else self.weigh(columns, landmarks)

    def weigh(self, rows: Array, landmarks: slice = slice(None)) -> Array:
        """Multiply rows (b, p, r) by Γ^½, in place: here weights enter, and missing landmarks drop.

        Γ is zero where a landmark is missing, so that it neither pulls nor is pulled.
        """
        if self.weights is not None:
            rows *= np.sqrt(self.weights[:, landmarks, None])
        elif not self.visible[:, landmarks].all():
            rows *= self.visible[:, landmarks, None].astype(np.float64)
        return rows

    @property
    def total_weights(self) -> Array:
        """(b,): the sum of the weights of every shape; the visible count without weights."""
        return (self.visible if self.weights is None else self.weights).sum(axis=1)


@dataclass(frozen=True, eq=False)
class StackedBases(FactoredBasis):
    """Bases that were made one by one, used as a stack."""

    members: tuple[Basis, ...]
    size: int  # l

    mixing = None

    def columns(self, points: Array) -> Array:
        """Return the features (b, p, l)."""
        pairs = zip(self.members, points, strict=True)
        return np.stack([np.array(b.features(x), dtype=np.float64) for b, x in pairs])

    features = columns

    def column_gradients(self, points: Array) -> Array:
        """Raise: features that are only a function have no known derivatives."""
        raise NotImplementedError

    def penalty(self) -> Array:
        """Return the penalties (b, l, l)."""
        return np.stack([expand_penalty(basis, self.size) for basis in self.members])

    def __getitem__(self, shape: Any) -> Any:
        if isinstance(shape, slice):
            return StackedBases(self.members[shape], self.size)
        return self.members[shape]


def expand_penalty(basis: Basis, size: int) -> Array:
    """Return the penalty of a basis as a matrix (l, l); it may be 0, or a multiple of I."""
    penalty = np.asarray(basis.penalty(), dtype=np.float64)
    if penalty.ndim == 0:
        return float(penalty) * np.eye(size)
    if penalty.shape != (size, size):
        raise ShapeError(
            f"The penalty of {type(basis).__name__} must be ({size}, {size}), one row per feature; "
            f"got size {penalty.shape}."
        )
    return penalty


@dataclass(frozen=True, eq=False)
class Ridge(Stack):
    """The triangular factors of a stack of ridge regressions."""

    inverse: Array  # (b, l, l): Y, zero columns where a direction was dropped
    condition: Array  # (b,): of FᵀF + R with columns of unit length, estimated
    rank_deficiency: Index  # (b,): how many directions the data and the penalty leave free

    def gram(self, penalty: Array) -> Array:
        """Compute Yᵀ FᵀΓF Y = I − YᵀRY (b, l, l) without a pass over landmarks; 0 if dropped."""
        is_used = (np.abs(self.inverse).max(axis=-2) > 0.0).astype(np.float64)
        charged = self.inverse.mT @ penalty @ self.inverse
        return symmetrise(is_used[:, :, None] * np.eye(is_used.shape[-1]) - charged)

    def replace(self, chosen: Mask | Index, other: Ridge) -> Ridge:
        """Return this with the entries ``chosen`` taken from ``other``."""
        inverse, condition = np.array(self.inverse), np.array(self.condition)
        rank_deficiency = np.array(self.rank_deficiency)
        inverse[chosen], condition[chosen] = other.inverse, other.condition
        rank_deficiency[chosen] = other.rank_deficiency
        return Ridge(inverse, condition, rank_deficiency)


def ridge_from_normal_matrix(
    gram: Array, penalty: Array | float = 0.0, rounding: Array | float = 0.0
) -> Ridge:
    """Factor FᵀF + R by Cholesky; ``condition`` is infinite where that fails or rank is in doubt.

    ``rounding`` (b,) is that of the coordinates, of the size of each shape.

    Parameters
    ----------
    gram, penalty : array (b, l, l)
        FᵀF and R.
    rounding : array (b,)
        That of the coordinates, of the size of each shape.
    """
    normal = gram + penalty
    squares = np.maximum(np.einsum("bll->bl", normal), 0.0)
    scale = 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))  # of columns of no length 1
    balanced = normal * scale[:, :, None] * scale[:, None, :]
    try:
        lower: Array = np.linalg.cholesky(balanced)  # type: ignore[assignment]
    except np.linalg.LinAlgError:
        return _factor_one_by_one(gram, penalty, rounding)
    inverse = invert_lower(lower)
    longest = np.einsum("bll->bl", gram).max(axis=1, initial=0.0)
    shortest = squares.min(axis=1, initial=np.inf)
    # rounding of columns of unit length reaches P amplified by Σ_l (Σ_i |Y_il|)² at most: many
    # columns make that a closer estimate, in eighths, than the product of norms is
    amplified = 8.0 * np.square(np.abs(inverse).sum(axis=-1)).sum(axis=-1)
    # ‖·‖² of both is at most ‖·‖₁ ‖·‖∞, and the sum of squares
    both = np.stack([lower, inverse])
    rows, columns = (np.abs(both).sum(axis=axis).max(axis=-1) for axis in (-1, -2))
    bounds = np.minimum(rows * columns, np.einsum("sbij,sbij->sb", both, both))
    condition = np.minimum(bounds[0] * bounds[1], amplified)
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
    """Factor FᵀF + R by the singular values of [F; √R] (b, p + l, l): slow, and accurate.

    Directions whose effect drowns in rounding are dropped: beside that of a feature which is 1 at
    all ``count`` (b,) visible landmarks, however short the column that rounding fills is.
    ``rounding`` (b,) is that of the coordinates, of the size of the shape: more than that of the
    algebra where a shape lies far from the origin.
    """
    lengths = np.sqrt(np.einsum("bpl,bpl->bl", stacked, stacked))
    # of the largest singular value, or of the size of the shape: what is less says nothing
    algebra = max(1e-12, 8 * max(stacked.shape[1:]) * float(np.finfo(np.float64).eps))
    min_values = np.maximum(algebra, rounding * np.ones(len(stacked)))
    ridge = _ridge_from_singular_values(stacked, lengths, min_values)
    # heavy columns shrink, light ones stay light
    beside = np.maximum(lengths, np.sqrt(count * np.ones(len(stacked)))[:, None])
    lightest = (lengths * _invert_lengths(beside)).min(axis=1)
    faint = np.sqrt(ridge.condition) * min_values >= lightest
    doubtful = np.flatnonzero(faint | (ridge.rank_deficiency > 0))
    if not len(doubtful):
        return ridge
    truncated = _ridge_from_singular_values(
        stacked[doubtful], beside[doubtful], min_values[doubtful]
    )
    lacking = truncated.rank_deficiency > 0
    return ridge.replace(doubtful[lacking], truncated[lacking])


def _ridge_from_singular_values(stacked: Array, lengths: Array, min_values: Array) -> Ridge:
    """Compute Y of the columns divided by ``lengths``, without values below ``min_values``."""
    scale = _invert_lengths(lengths)
    _, values, right = np.linalg.svd(stacked * scale[:, None, :], full_matrices=False)
    largest = values[:, :1]
    free = values <= min_values[:, None] * largest
    with np.errstate(divide="ignore"):
        reciprocal = np.where(free, 0.0, 1.0 / values)
    smallest = values.min(axis=1, where=~free, initial=np.inf)
    return Ridge(
        scale[:, :, None] * right.mT * reciprocal[:, None, :],
        (largest[:, 0] / smallest) ** 2,
        free.sum(axis=1),
    )


def _invert_lengths(lengths: Array) -> Array:
    """Return 1 / length; 1 for a column of length zero."""
    return 1.0 / np.where(lengths > 0.0, lengths, 1.0)


def append_penalty_rows(features: Array, penalty: Array) -> Array:
    """Return [F; √R] (b, p + l, l), whose Gram matrix is FᵀF + R.

    What rounding leaves of a zero eigenvalue of R is cut off: under heavy smoothing its root would
    charge what is meant to be free.
    """
    values, vectors = np.linalg.eigh(symmetrise(penalty))
    rounding = values.shape[-1] * np.finfo(np.float64).eps * np.abs(values).max(-1, keepdims=True)
    charges = np.where(values > rounding, values, 0.0)
    roots = np.sqrt(charges)[..., :, None] * vectors.mT
    return np.concatenate([features, roots], axis=-2)


def _factor_one_by_one(gram: Array, penalty: Array | float, rounding: Array | float) -> Ridge:
    """Factor each matrix of a stack alone, so that a singular one does not spoil the others.

    Parameters
    ----------
    gram, penalty, rounding : array (b, l, l), (b, l, l), (b,)
        As in `ridge_from_normal_matrix`.
    """
    b, l, _ = gram.shape
    if b == 1:
        return Ridge(np.zeros((1, l, l)), np.array([np.inf]), np.zeros(1, dtype=int))
    charges = np.broadcast_to(penalty, gram.shape)
    each = zip(gram, charges, np.broadcast_to(rounding, b), strict=True)
    return join_stacks([ridge_from_normal_matrix(g[None], p[None], r) for g, p, r in each])


@dataclass(frozen=True, eq=False)
class Factor(ABC):
    """U of a batch of shapes, in whatever form."""

    batch: Batch
    ridge: Ridge

    @abstractmethod
    def project(self, block: Array) -> Array:
        """Compute Uᵀ X (b, l, k) for X (m, k)."""

    @abstractmethod
    def expand(self, coefficients: Array, onto: Array, landmarks: slice = slice(None)) -> None:
        """Add the rows of these landmarks of Σ U C, for C (b, l, k), onto an image (p, k)."""

    @property
    @abstractmethod
    def landmarks_at_a_time(self) -> int:
        """The number of landmarks that can be expanded at a time within the cache."""

    @abstractmethod
    def stack_rows(self) -> Array:
        """Return Uᵀ of all shapes of the batch below each other, (b·l, m)."""

    def project_each(self, columns: Array) -> Array:
        """Compute UᵀX (b, l, k), every shape with columns X (b, m, k) of its own."""
        projections = [self.restrict_to_shape(i).project(x) for i, x in enumerate(columns)]
        return np.concatenate(projections)

    def feature_rows(self, landmarks: Index) -> Array:
        """Compute the rows of U of these landmarks, transposed (b, l, p)."""
        indicator = np.zeros((self.batch.n_landmarks, len(landmarks)))
        indicator[landmarks, np.arange(len(landmarks))] = 1.0
        return self.project(indicator)

    def restrict_to_shape(self, shape: int) -> Self:
        """Return the factor of one shape of the batch, by its number in the batch."""
        only = slice(shape, shape + 1)
        return type(self)(*[getattr(self, field.name)[only] for field in fields(self)])


@dataclass(frozen=True, eq=False)
class StoredFactor(Factor):
    """Uᵀ itself, (b, l, m)."""

    rows: Array

    def project(self, block: Array) -> Array:
        """Compute Uᵀ X (b, l, k) for X (m, k)."""
        b, l, _ = self.rows.shape
        # (Xᵀ U)ᵀ: BLAS reads U twice as fast from this side; @ would hold up other threads
        return np.dot(block.T, self.stack_rows().T).T.reshape(b, l, -1)

    def project_each(self, columns: Array) -> Array:
        """Compute UᵀX (b, l, k), every shape with columns X (b, m, k) of its own."""
        return self.rows @ columns

    def multiply(self, block: Array) -> Array:
        """Compute Σ U Uᵀ X (m, k), some rows of Uᵀ at a time, to find them in the cache."""
        rows, points = self.stack_rows(), np.ascontiguousarray(block.T)
        image, more = np.zeros(points.shape), np.empty(points.shape)
        n_rows = max(4, self.batch.tuning.row_bytes // (8 * rows.shape[1]))
        for start in range(0, len(rows), n_rows):
            chunk = rows[start : start + n_rows]
            # np.dot, as @ does not let other threads run where the result is small
            image += np.matmul(np.dot(points, chunk.T), chunk, out=more)
        return image.T

    def feature_rows(self, landmarks: Index) -> Array:
        """Return the rows of U of these landmarks, transposed (b, l, p)."""
        return self.rows[:, :, landmarks]

    def expand(self, coefficients: Array, onto: Array, landmarks: slice = slice(None)) -> None:
        """Add the rows of these landmarks of Σ U C onto an image (p, k)."""
        rows = self.stack_rows()[:, landmarks]
        onto += (coefficients.reshape(len(rows), -1).T @ rows).T

    @property
    def landmarks_at_a_time(self) -> int:
        """The landmarks whose rows of U stay in the cache."""
        b, l, _ = self.rows.shape
        return max(1, self.batch.tuning.block_bytes // (8 * b * l))

    def stack_rows(self) -> Array:
        """Return Uᵀ of all shapes below each other (b·l, m), a view."""
        return self.rows.reshape(-1, self.rows.shape[-1])


def store_factor(batch: Batch) -> StoredFactor:
    """Compute Uᵀ = YᵀFᵀΓ of a batch of small shapes."""
    columns, penalty = batch.bases.columns(batch.points), batch.bases.penalty()
    mixing = batch.bases.mixing
    features = batch.weigh(columns if mixing is None else columns @ mixing)
    ridge = ridge_from_normal_matrix(features.mT @ features, penalty, batch.rounding)
    poor = ~(ridge.condition < POOR_CONDITION)
    if poor.any():
        rows = append_penalty_rows(features[poor], penalty[poor])
        accurate = ridge_from_features(rows, batch.total_weights[poor], batch.rounding[poor])
        ridge = ridge.replace(poor, accurate)
    weighted = features if batch.weights is None else batch.weigh(features)  # Γ F of Γ^½ F
    return StoredFactor(batch, ridge, ridge.inverse.mT @ weighted.mT)
