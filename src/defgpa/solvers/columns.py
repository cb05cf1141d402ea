r"""U of large shapes, from their cheap columns and one small matrix: U = columns @ combine.

U takes the place of the columns; or the columns are made again block by block whenever they are
needed (huge shapes). The regressions come from the Gram matrix of the columns; where that would
lose digits, a second Cholesky factor of UᵀU + YᵀRY, which is nearly the identity, gives them back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from defgpa.arrays import Array, multiply_thin, sum_arrays, symmetrise
from defgpa.solvers.elimination import (
    POOR_CONDITION,
    Batch,
    Factor,
    Ridge,
    StoredFactor,
    append_penalty_rows,
    ridge_from_features,
    ridge_from_normal_matrix,
)
from defgpa.threads import map_blocks, split_range


@dataclass(frozen=True, eq=False)
class StreamedFactor(Factor):
    """U = columns @ combine, the columns made again, block by block, whenever they are needed."""

    combine: Array  # (b, r, l): mixing @ Y

    @property
    def landmarks_at_a_time(self) -> int:
        """The landmarks whose columns stay in the cache."""
        return _count_landmarks(self.batch, self.batch.tuning.block_bytes)

    def project(self, block: Array) -> Array:
        """Compute Uᵀ X = combineᵀ (columnsᵀ X)."""

        def sums(rows: slice) -> Array:
            # Xᵀ columns, not columnsᵀ X: BLAS reads tall columns twice as fast from this side
            return np.stack(
                [_multiply(block[rows].T, columns) for columns in self.batch.weigh_columns(rows)]
            )

        total = sum_arrays(map_blocks(sums, _split_landmarks(self.batch)))
        return self.combine.mT @ total.mT

    def expand(self, coefficients: Array, onto: Array, landmarks: slice = slice(None)) -> None:
        """Add the rows of these landmarks of Σ U C = Σ columns (combine C) onto an image."""
        # the few columns first: BLAS is faster from this side here too
        mixed = (self.combine @ coefficients).mT
        images = mixed @ self.batch.weigh_columns(landmarks).mT
        onto += (images[0] if len(images) == 1 else images.sum(axis=0)).T

    def stack_rows(self) -> Array:
        """Compute Uᵀ of all shapes below each other, block by block."""
        b, _, l = self.combine.shape
        rows = np.empty((b, l, self.batch.n_landmarks))
        for landmarks in _split_landmarks(self.batch):
            rows[:, :, landmarks] = (self.batch.weigh_columns(landmarks) @ self.combine).mT
        return rows.reshape(b * l, -1)


def store_column_factor(batch: Batch) -> StoredFactor:
    """Compute Uᵀ of large shapes from columnsᵀ columns, in the place of the columns."""
    batch = batch.deflate()
    columns = _make_columns(batch)
    gram = _sum_grams(lambda part: columns[:, part], _split_landmarks(batch))
    ridge, combine = fit_ridge(batch, gram, lambda part: columns[:, part])
    weighted = columns if batch.weights is None else batch.weigh(columns)
    rows = np.ascontiguousarray(weighted.mT)
    return StoredFactor(batch, ridge, _combine_rows(rows, combine, _split_landmarks(batch)))


def _make_columns(batch: Batch) -> Array:
    """Make the columns (b, m, r), at once where they stay in the cache, else block by block."""
    parts = split_range(batch.n_landmarks, _count_landmarks(batch, batch.tuning.cache_bytes))
    if len(parts) == 1:
        return batch.columns()
    # the landmarks side by side: BLAS is faster with such columns
    columns = (np.empty((len(batch.shapes), _count_columns(batch), batch.n_landmarks))).mT
    for landmarks in _split_landmarks(batch):
        columns[:, landmarks] = batch.columns(landmarks)
    return columns


def _combine_rows(rows: Array, combine: Array, parts: list[slice]) -> Array:
    """Compute Uᵀ = combineᵀ columnsᵀ (b, l, m), in place where combine is triangular.

    One block of landmarks after the other, so that it stays in the cache.
    """
    size = combine.shape[-1]
    if combine.shape[-2] > size or np.tril(combine, -1).any():
        return combine.mT @ rows
    for columns, upper in zip(rows, combine, strict=True):
        for landmarks in parts:
            for new in reversed(split_range(size, -(-size // 8))):  # those before are still needed
                before = columns[: new.stop, landmarks]
                columns[new, landmarks] = upper[: new.stop, new].T @ before
    return rows


def stream_factor(batch: Batch) -> StreamedFactor:
    """Compute U of shapes too large to store, from a block of landmarks at a time."""
    gram = _sum_grams(batch.columns, _split_landmarks(batch))
    return StreamedFactor(batch, *fit_ridge(batch, gram, batch.columns))


def _multiply(wide: Array, tall: Array) -> Array:
    """Compute A B as ``multiply_thin``, which would copy a part of some columns first."""
    return multiply_thin(wide, tall) if tall.flags.forc else np.asarray(wide @ tall)


def _split_landmarks(batch: Batch) -> list[slice]:
    return split_range(batch.n_landmarks, _count_landmarks(batch, batch.tuning.block_bytes))


def _count_landmarks(batch: Batch, n_bytes: int) -> int:
    """Return how many landmarks have so many bytes of columns."""
    return max(1, n_bytes // (8 * _count_columns(batch) * len(batch.shapes)))


def _count_columns(batch: Batch) -> int:
    """Return the number of columns, r."""
    mixing = batch.bases.mixing
    return int(batch.bases.penalty().shape[-1] if mixing is None else mixing.shape[-2])


def fit_ridge(
    batch: Batch, gram: Array, columns_of: Callable[[slice], Array]
) -> tuple[Ridge, Array]:
    """Fit the ridge of columns with this Gram matrix, refined where needed; and mixing @ Y."""
    ridge, combine = ridge_from_gram(
        gram, batch.bases.mixing, batch.bases.penalty(), batch.rounding
    )
    if (ridge.condition < POOR_CONDITION).all():
        return ridge, combine
    ridge = refine_ridge(batch, columns_of, ridge)
    return ridge, batch.mix(ridge)


def refine_ridge(batch: Batch, columns_of: Callable[[slice], Array], ridge: Ridge) -> Ridge:
    """Compute the poor entries of a ridge again, with the digits that Cholesky lost.

    What loses digits is the Gram matrix of the columns *before* they are mixed: the features are
    tame. So first from the Gram matrix of the features, then from a second one of U; only where
    Cholesky fails on them too are they taken apart by QR.
    """
    chosen = ~(ridge.condition < POOR_CONDITION)
    penalty, parts = batch.bases.penalty()[chosen], _split_landmarks(batch)
    mixing, rounding = batch.bases.mixing, batch.rounding[chosen]

    def compute_features(landmarks: slice) -> Array:
        columns = columns_of(landmarks)[chosen]
        return columns if mixing is None else columns @ mixing[chosen]

    first = ridge[chosen]
    if mixing is not None:
        first = ridge_from_normal_matrix(_sum_grams(compute_features, parts), penalty, rounding)
    poor = ~(first.condition < POOR_CONDITION)
    if poor.any():
        gram = _sum_grams(lambda part: compute_features(part) @ first.inverse, parts)
        first = first.replace(poor, correct_ridge(first, gram, penalty)[poor])
    is_bad = np.isinf(first.condition)
    if is_bad.any():
        triangles = _reduce_to_triangles(lambda part: compute_features(part)[is_bad], parts)
        count = batch.total_weights[chosen][is_bad]
        stacked = append_penalty_rows(triangles, penalty[is_bad])
        first = first.replace(is_bad, ridge_from_features(stacked, count, rounding[is_bad]))
    return ridge.replace(chosen, first)


def _sum_grams(rows_of: Callable[[slice], Array], blocks: list[slice]) -> Array:
    """Sum rowsᵀ rows (b, k, k) over blocks of landmarks."""
    return sum_arrays([np.stack([x.T @ x for x in rows_of(block)]) for block in blocks])


def _reduce_to_triangles(compute_features: Callable[[slice], Array], blocks: list[slice]) -> Array:
    """Compute R (b, l, l) of the QR of the features, block after block, so that it stays small."""
    rows = compute_features(blocks[0])
    for block in blocks[1:]:
        triangles = np.asarray(np.linalg.qr(rows, mode="r"))
        rows = np.concatenate([triangles, compute_features(block)], axis=-2)
    return np.asarray(np.linalg.qr(rows, mode="r"))


def ridge_from_gram(
    gram: Array, mixing: Array | None, penalty: Array, rounding: Array | float = 0.0
) -> tuple[Ridge, Array]:
    """Factor mixingᵀ G mixing + R by Cholesky, G = columnsᵀ columns; and Z = mixing @ Y.

    The columns may be larger than the features made of them, and what cancels in the mixing has
    lost digits before. Rounding of G is off by Σ_ij ‖c_i‖ ‖c_j‖ |Z_i| |Z_j| at most: the condition
    counts that too.
    """
    if mixing is None:
        ridge = ridge_from_normal_matrix(gram, penalty, rounding)
        return ridge, ridge.inverse
    ridge = ridge_from_normal_matrix(mixing.mT @ gram @ mixing, penalty, rounding)
    combine = mixing @ ridge.inverse
    lengths = np.sqrt(np.maximum(np.einsum("bii->bi", gram), 0.0))
    amplified = lengths[:, None, :] @ np.abs(combine)
    size = np.einsum("bil,bil->b", amplified, amplified)
    return replace(ridge, condition=np.maximum(ridge.condition, size)), combine


def correct_ridge(first: Ridge, gram: Array, penalty: Array) -> Ridge:
    """Recover the digits that Cholesky lost, from the Gram matrix UᵀU of U = F Y.

    UᵀU + YᵀRY = I + E, E what was lost; its own Cholesky factor corrects Y. ``condition`` stays
    that of FᵀF + R, or is infinite where Y was too far off to be corrected.
    """
    charged = first.inverse.mT @ penalty @ first.inverse
    normal = gram + symmetrise(charged)
    second = ridge_from_normal_matrix(normal)
    far_off = np.abs(np.einsum("bll->bl", normal) - 1.0).max(axis=1, initial=0.0) > 0.5
    # beyond, a direction may be free, and only rounding in R charges it
    is_hopeless = ~(first.condition < 1e13)
    is_unsound = is_hopeless | far_off | ~(second.condition < POOR_CONDITION)
    return Ridge(
        first.inverse @ second.inverse,
        np.where(is_unsound, np.inf, first.condition),
        second.rank_deficiency,
    )
