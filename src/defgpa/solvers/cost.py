r"""The cost of a reference once every warp is optimal: P, known by its products with columns.

    P = diag(c) − Σ_i U_i U_iᵀ,       0 ≼ P ≼ diag(c),     c_j = Σ_i γ_ij

with c_j the number of shapes in which landmark j is visible, where there are no weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nsmallest

import numpy as np

from defgpa.arrays import Array, sum_arrays
from defgpa.geometry import Geometry
from defgpa.solvers.columns import store_column_factor, stream_factor
from defgpa.solvers.eigen import WarpCost
from defgpa.solvers.elimination import (
    Batch,
    Factor,
    StackedBases,
    StoredFactor,
    store_factor,
)
from defgpa.solvers.preconditioner import LowRankInverse, make_preconditioner
from defgpa.solvers.sparse_columns import (
    count_storage_bytes,
    store_sparse_factor,
    stream_sparse_factor,
)
from defgpa.threads import USUAL_FEATURES, map_blocks, split_range
from defgpa.tuning import DEFAULT, Tuning
from defgpa.warps import SparseBasis, Warp, WarpFamily, WarpModel
from defgpa.warps.thin_plate import DeflatedSplines

DEFAULT_BUDGET = 3 << 30  # bytes that features may occupy before they are streamed


@dataclass(frozen=True, eq=False)
class ResidualCost(WarpCost):
    """P as a sum over batches of shapes."""

    factors: tuple[Factor, ...]
    tuning: Tuning = DEFAULT

    def multiply(self, block: Array) -> Array:
        """Compute P X = c ∘ X − Σ U (Uᵀ X) for X (m, k)."""
        stored = [factor for factor in self.factors if isinstance(factor, StoredFactor)]
        if len(stored) == len(self.factors):
            image, *others = map_blocks(lambda factor: factor.multiply(block), stored)
            for addend in others:
                image += addend
        else:
            image = self.expand(self.project(block))
        image *= -1.0
        image += self.totals[:, None] * block
        return image

    def project(self, block: Array) -> list[Array]:
        """Compute Uᵀ X of every batch; threads share the landmarks where there are enough."""
        n_factors, min_blocks = len(self.factors), self.tuning.thread_blocks
        if n_factors == 1 or self.n_landmarks >= min_blocks * self._landmarks_at_a_time:
            return [factor.project(block) for factor in self.factors]
        return map_blocks(lambda factor: factor.project(block), self.factors)

    def project_onto_features(self, block: Array) -> Array:
        """Compute Uᵀ X (nl, k), the features of all shapes below each other."""
        return np.concatenate([u.reshape(-1, block.shape[1]) for u in self.project(block)])

    def expand_features(self, coefficients: Array) -> Array:
        """Compute U C (m, k) for coefficients C (nl, k) of the features of all shapes."""
        sizes = [factor.ridge.inverse.shape for factor in self.factors]
        ends = np.cumsum([b * l for b, _, l in sizes])
        by_factor = np.split(coefficients, ends[:-1])
        return self.expand(
            [values.reshape(b, l, -1) for values, (b, _, l) in zip(by_factor, sizes, strict=True)]
        )

    @cached_property
    def _landmarks_at_a_time(self) -> int:
        return min(factor.landmarks_at_a_time for factor in self.factors)

    def expand(self, coefficients: Sequence[Array]) -> Array:
        """Compute Σ U C (m, k), given the C (b, l, k) of every batch.

        The order of the sum does not depend on the threads, which must not change a digit.
        """
        pairs = list(zip(self.factors, coefficients, strict=True))
        m, max_whole = self.n_landmarks, self.tuning.whole_image_landmarks
        if m <= max_whole or m <= self._landmarks_at_a_time:
            images = [np.zeros((m, coefficients[0].shape[-1])) for _ in pairs]
            expansions = zip(self.factors, coefficients, images, strict=True)
            map_blocks(lambda expansion: expansion[0].expand(*expansion[1:]), expansions)
            return sum_arrays(images)
        image = np.zeros((self.n_landmarks, coefficients[0].shape[-1]), order="F")

        def add(landmarks: slice) -> None:
            for factor, values in pairs:
                factor.expand(values, image[landmarks], landmarks)

        map_blocks(add, split_range(self.n_landmarks, self._landmarks_at_a_time))
        return image

    def dense(self) -> Array:
        """Return P itself, (m, m)."""
        grams = map_blocks(lambda factor: (rows := factor.stack_rows()).T @ rows, self.factors)
        total = -sum(grams[1:], start=grams[0])
        np.einsum("mm->m", total)[...] += self.totals
        return np.asarray(0.5 * (total + total.T))

    def preconditioner(self) -> LowRankInverse:
        """Return a cheap approximation of P⁻¹."""
        return make_preconditioner(self)

    @cached_property
    def _modes(self) -> list[tuple[Factor, Array, Array, Array]]:
        """Every factor in its modes: the share that the data have in each of them, Y and Uᵀ."""
        modes: list[tuple[Factor, Array, Array, Array]] = []
        for factor in self.factors:
            assert isinstance(factor, StoredFactor)
            shares, turn = np.linalg.eigh(factor.ridge.gram(factor.batch.bases.penalty()))
            # rounding may leave [0, 1], and a share above 1 would reward bending
            shares = np.clip(shares, 0.0, 1.0)
            # of more modes than landmarks the data tell nothing of the others: their rows are zero
            shares, turn = shares[:, -self.n_landmarks :], turn[:, :, -self.n_landmarks :]
            modes.append((factor, shares, factor.ridge.inverse @ turn, turn.mT @ factor.rows))
        return modes

    def scale_penalty(self, scale: float) -> ResidualCost:
        r"""Return the cost whose penalties are ``scale`` times as large, from one decomposition.

        With Yᵀ(FᵀΓF + R)Y = I, the shares YᵀFᵀΓFY = Q diag(λ) Qᵀ of the data, and V = UQ,

            ΓF(FᵀΓF + cR)⁻¹FᵀΓ = V diag(1 / (λ + c (1 − λ))) Vᵀ .

        For stored factors only.
        """
        if scale == 1.0:
            return self
        factors = []
        for factor, shares, inverse, rows in self._modes:
            roots = 1.0 / np.sqrt(shares + scale * (1.0 - shares))
            ridge = replace(factor.ridge, inverse=inverse * roots[:, None, :])
            factors.append(StoredFactor(factor.batch, ridge, roots[..., None] * rows))
        return replace(self, factors=tuple(factors))

    def find_most_complete(self, count: int) -> list[Factor]:
        """Return the factors, each of one shape, of those with the most visible landmarks."""
        ranked = [
            (-int(visible), batch, shape)
            for batch, factor in enumerate(self.factors)
            for shape, visible in enumerate(factor.batch.visible.sum(axis=1))
        ]
        return [
            self.factors[batch].restrict_to_shape(shape)
            for _, batch, shape in nsmallest(count, ranked)
        ]

    def restrict_to_shape(self, factor: Factor) -> ResidualCost:
        """Return the cost of one shape alone, with the totals of all."""
        return replace(self, factors=(factor,))

    def fit_warps(self, reference: Array) -> list[Array]:
        """Compute W = Y Uᵀ S of every batch, (b, l, d), for a reference (m, d)."""
        return map_blocks(lambda f: f.ridge.inverse @ f.project(reference), self.factors)

    def make_warps(self, coefficients: Sequence[Array], points: Array) -> tuple[Warp, ...]:
        """Make one warp per shape from the coefficients (b, l, d) of every batch.

        Each knows its landmarks, ``points`` (n, m, d).
        """
        warps: list[Warp] = []
        for factor, values in zip(self.factors, coefficients, strict=True):
            bases = factor.batch.bases
            if isinstance(bases, DeflatedSplines):
                bases, values = bases.express_in_columns(values)
            pairs = zip(values, points[factor.batch.shapes], strict=True)
            warps += [Warp(bases[i], w, landmarks=x) for i, (w, x) in enumerate(pairs)]
        return tuple(warps)


def build_cost(
    geometry: Geometry, model: WarpModel, budget: int = DEFAULT_BUDGET, tuning: Tuning = DEFAULT
) -> ResidualCost:
    """Eliminate the warps of shapes: build P, with U stored in the way that fits its size.

    Stored up to ``tuning.dense_landmarks`` landmarks (or for ``tuning.few_features``), and as
    columns beyond; columns that are mostly zero in compressed rows. Where the features would take
    more than ``budget`` bytes they are streamed.
    """
    n, m, _ = geometry.points.shape
    batches = make_batches(geometry, model, tuning)
    bases = batches[0].bases
    n_features = bases.penalty().shape[-1]
    fits = 8 * n * m * n_features <= budget
    factorise: Callable[[Batch], Factor]
    if fits and (m <= tuning.dense_landmarks or n_features <= tuning.few_features):
        factorise = store_factor
    elif isinstance(bases, SparseBasis):
        is_stored = n * count_storage_bytes(batches[0]) <= budget
        factorise = store_sparse_factor if is_stored else stream_sparse_factor
    else:
        factorise = store_column_factor if fits else stream_factor
    factors = map_blocks(factorise, batches)
    weights = geometry.visible if geometry.weights is None else geometry.weights
    return ResidualCost(
        weights.sum(axis=0).astype(np.float64),
        n,
        np.concatenate([factor.ridge.condition for factor in factors]),
        np.concatenate([factor.ridge.rank_deficiency for factor in factors]),
        type(factors[0]).__name__,
        tuple(factors),
        tuning,
    )


def make_batches(geometry: Geometry, model: WarpModel, tuning: Tuning = DEFAULT) -> list[Batch]:
    """Put all shapes into batches, in order, each shape with its basis."""
    if not isinstance(model, WarpFamily):
        return _make_batches_one_by_one(geometry, model, tuning)
    n, m, _ = geometry.points.shape

    blocks = [slice(0, n)]  # one batch of few landmarks, whatever the model
    if 8 * n * m * USUAL_FEATURES > tuning.few_bytes:
        n_features = model.bases(geometry[:1]).penalty().shape[-1]
        blocks = split_range(n, _choose_batch_size(n, m, n_features, tuning))
    parts = [geometry] if len(blocks) == 1 else [geometry[block] for block in blocks]
    return [
        Batch(
            np.arange(n)[block],
            some.points,
            some.visible,
            some.weights,
            bases,
            some.rounding,
            tuning,
        )
        for block, some, bases in zip(blocks, parts, map_blocks(model.bases, parts), strict=True)
    ]


def _choose_batch_size(n: int, m: int, n_features: int, tuning: Tuning) -> int:
    """Return how many shapes a batch has; all of them where their features are few."""
    size = 8 * n * m * n_features
    if size <= tuning.few_bytes:
        return n
    # two or four threads then have equally much to do
    return -(-n // (4 * -(-size // (4 * tuning.batch_bytes))))


def _make_batches_one_by_one(geometry: Geometry, model: WarpModel, tuning: Tuning) -> list[Batch]:
    """Make a basis for each shape; consecutive shapes with equally many features share a batch."""
    points, visible, weights = geometry.points, geometry.visible, geometry.weights
    members = [model.basis(shape[mask]) for shape, mask in zip(points, visible, strict=True)]
    sizes = [
        np.shape(basis.features(shape[mask]))[1]
        for basis, shape, mask in zip(members, points, visible, strict=True)
    ]
    starts = np.flatnonzero(np.diff(sizes, prepend=-1))
    batches = []
    for equal in np.split(np.arange(len(sizes)), starts[1:]):
        size = sizes[equal[0]]
        for chunk in split_range(
            len(equal), _choose_batch_size(len(equal), points.shape[1], size, tuning)
        ):
            numbers = equal[chunk]
            batch = Batch(
                numbers,
                points[numbers],
                visible[numbers],
                None if weights is None else weights[numbers],
                StackedBases(tuple(members[i] for i in numbers), size),
                geometry.rounding[numbers],
                tuning,
            )
            batches.append(batch)
    return batches
