r"""The cost of a reference once every warp is optimal: P, as something that multiplies.

    P = diag(views) − Σ_i U_i U_iᵀ,       0 ≼ P ≼ nI

The reference is kept centred at the origin by a change of P into a cost whose cheapest axes are:

    soft     P + ν 1 1ᵀ             charges ν‖Sᵀ1‖²
    exact    J P J + (n + 1) 1 1ᵀ/m    J = I − 1 1ᵀ/m: forbids it

For warps with free translations, P1 = 0, both give the same axes: P's spectrum is at most n,
so ν = n/m lifts the constant vector out of the way.

Iterations on P are corrected by a cheap approximation of its inverse. With D = diag(views) − σI, σ
just below zero, and Ũ a few columns, it is

    (P − σI)⁻¹ ≈ D^(−1/2) ( I + Ũ (I − ŨᵀŨ)⁻¹ Ũᵀ ) D^(−1/2).

Exactly so with Ũ = D^(−1/2) [U_1 … U_n], which is cheap where all features together are few.
Where they are many, the shapes resemble each other, and one of them stands for all: Ũ = U_1,
at an n-th of the price of a product with P. Soft warps leave many directions of U_1 nearly free,
and one shape cannot tell which of them cost the others something: there a second one is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nsmallest
from typing import Any, Protocol

import numpy as np

from defgpa._arrays import Array, Index, blocks, in_blocks, summed, symmetrised
from defgpa.frames import Frames
from defgpa.solvers.columns import column_factor, streamed_factor
from defgpa.solvers.eigen import Cost, Preconditioner
from defgpa.solvers.elimination import (
    Batch,
    Factor,
    StoredFactor,
    make_batches,
    stored_factor,
)
from defgpa.solvers.sparse_columns import (
    sparse_factor,
    stored_bytes,
    streamed_sparse_factor,
)
from defgpa.tuning import DEFAULT, Tuning
from defgpa.warps import SparseBasis, WarpModel

SHIFT = 1e-4  # times n: keeps the inverse finite on the constant vector
DEFAULT_BUDGET = 3 << 30  # bytes that features may occupy before they are streamed


@dataclass(frozen=True, eq=False)
class Explained:
    """The best warps for a reference, and what they leave of the constant vector."""

    weights: Any  # of every shape, in whatever form the cost holds them
    translation: Array  # (…, m): P1


@dataclass(frozen=True, eq=False)
class EliminatedCost:
    """P as a sum over batches of shapes."""

    views: Array  # (m,): shapes that see each landmark
    factors: tuple[Factor, ...]
    n_shapes: int
    tuning: Tuning = DEFAULT

    @property
    def n_landmarks(self) -> int:
        """m."""
        return len(self.views)

    def multiply(self, block: Array) -> Array:
        """P X = views ∘ X − Σ U (Uᵀ X)."""
        stored = [factor for factor in self.factors if isinstance(factor, StoredFactor)]
        if len(stored) == len(self.factors):
            image = summed(in_blocks(lambda factor: factor.explained(block), stored))
        else:
            image = self.image(self.projections(block))
        image *= -1.0
        image += self.views[:, None] * block
        return image

    def projections(self, block: Array) -> list[Array]:
        """Uᵀ X of every batch; the threads share the landmarks where there are enough of them."""
        if self.n_landmarks >= self.tuning.thread_blocks * self._at_a_time:
            return [factor.project(block) for factor in self.factors]
        return in_blocks(lambda factor: factor.project(block), self.factors)

    def stacked_projections(self, block: Array) -> Array:
        """(nl, k): Uᵀ X, the features of all shapes below each other."""
        return np.concatenate([own.reshape(-1, block.shape[1]) for own in self.projections(block)])

    def stacked_image(self, coefficients: Array) -> Array:
        """(m, k): U C for coefficients (nl, k) of the features of all shapes."""
        sizes = [factor.ridge.inverse.shape for factor in self.factors]
        ends = np.cumsum([b * l for b, _, l in sizes])
        parts = np.split(coefficients, ends[:-1])
        return self.image(
            [part.reshape(b, l, -1) for part, (b, _, l) in zip(parts, sizes, strict=True)]
        )

    @cached_property
    def _at_a_time(self) -> int:
        return min(factor.landmarks_at_a_time for factor in self.factors)

    def image(self, coefficients: Sequence[Array]) -> Array:
        """(m, k): Σ U C, given the C (b, l, k) of every batch.

        The order of the sum does not depend on the threads, which must not change a digit.
        """
        both = list(zip(self.factors, coefficients, strict=True))
        if self.n_landmarks <= max(self.tuning.whole_image_landmarks, self._at_a_time):
            return summed(in_blocks(lambda own: self._image_of(*own), both))
        image = np.zeros((self.n_landmarks, coefficients[0].shape[-1]), order="F")

        def add(landmarks: slice) -> None:
            for factor, own in both:
                factor.expand(own, image[landmarks], landmarks)

        in_blocks(add, blocks(self.n_landmarks, self._at_a_time))
        return image

    def _image_of(self, factor: Factor, coefficients: Array) -> Array:
        image = np.zeros((self.n_landmarks, coefficients.shape[-1]))
        factor.expand(coefficients, image)
        return image

    def dense(self) -> Array:
        """P itself."""
        total = -summed(in_blocks(lambda factor: factor.gram(), self.factors))
        np.einsum("mm->m", total)[...] += self.views
        return symmetrised(total)

    @property
    def storage(self) -> str:
        """How U is held: "StoredFactor", "SparseFactor", "StreamedFactor" …"""
        return type(self.factors[0]).__name__

    @cached_property
    def condition(self) -> Array:
        """(n,): condition of each shape's regression."""
        return np.concatenate([factor.ridge.condition for factor in self.factors])

    @cached_property
    def dropped(self) -> Index:
        """(n,): directions of each warp that nothing determines."""
        return np.concatenate([factor.ridge.dropped for factor in self.factors])

    def preconditioner(self) -> Preconditioner:
        """The exact inverse of few features, that of one shape standing for all elsewhere."""
        shapes_and_features = [factor.ridge.inverse.shape for factor in self.factors]
        if sum(b * l for b, _, l in shapes_and_features) <= self.tuning.exact_inverse_features:
            return _exact_inverse(self)
        return _representative_inverse(self)

    def most_complete(self, count: int) -> list[Factor]:
        """The factors, each of one shape, of those that see the most landmarks."""
        seen = [
            (-int(seen), number, shape)
            for number, factor in enumerate(self.factors)
            for shape, seen in enumerate(factor.batch.visible.sum(axis=1))
        ]
        return [self.factors[own].only(shape) for _, own, shape in nsmallest(count, seen)]

    def of_one(self, factor: Factor) -> EliminatedCost:
        """The cost of one shape alone, with the views of all."""
        return EliminatedCost(self.views, (factor,), self.n_shapes, self.tuning)

    def explained(self, reference: Array) -> Explained:
        """W = Y Uᵀ S of every batch, (b, l, d), and P1, which needs the same pass."""
        ones = np.ones((self.n_landmarks, 1))
        seen = self.projections(np.hstack([reference.reshape(self.n_landmarks, -1), ones]))
        left = self.image([own[..., -1:] for own in seen])
        both = zip(self.factors, seen, strict=True)
        weights = [factor.ridge.inverse @ own[..., :-1] for factor, own in both]
        return Explained(weights, self.views - left[:, 0])


@dataclass(frozen=True, eq=False)
class LowRankInverse:
    """D^(−1/2) (I + Ũ (I − ŨᵀŨ)⁻¹ Ũᵀ) D^(−1/2) ≈ (P − σI)⁻¹, by products with Ũ = diag(inner) U."""

    cost: EliminatedCost  # whose U it is: that of all shapes, or of one
    outer: Array  # (m,): D^(−1/2)
    inner: Array  # (m,)
    modes: Array  # eigenvectors of ŨᵀŨ, ascending
    strengths: Array  # its eigenvalues, below 1

    def start(self, width: int) -> Array:
        """The strongest modes."""
        strongest = self.modes[:, ::-1][:, : 2 * width]
        return (self.outer * self.inner)[:, None] * self.cost.stacked_image(strongest)

    def correct(self, residuals: Array) -> Array:
        """The inverse times the residuals."""
        scaled = self.outer[:, None] * residuals
        seen = self.modes.T @ self.cost.stacked_projections(self.inner[:, None] * scaled)
        mixed = self.modes @ (seen / (1.0 - self.strengths)[:, None])
        bent = self.cost.stacked_image(mixed)
        return self.outer[:, None] * (scaled + self.inner[:, None] * bent)


def _exact_inverse(cost: EliminatedCost) -> LowRankInverse:
    outer = 1.0 / np.sqrt(cost.views + SHIFT * cost.n_shapes)
    rows = np.vstack([factor.transposed_rows() for factor in cost.factors]) * outer
    strengths, modes = np.linalg.eigh(symmetrised(rows @ rows.T))
    return LowRankInverse(cost, outer, outer, modes, strengths)


def _representative_inverse(cost: EliminatedCost) -> LowRankInverse:
    """With the shape that sees the most landmarks, and the next one where it is soft."""
    first, *others = cost.most_complete(2)
    alone = inverse_from_one(cost.of_one(first))
    free = int((alone.strengths > 1.0 - cost.tuning.nearly_free).sum())
    soft = free > first.batch.points.shape[-1] + 1  # affine maps are free always
    if soft and others and isinstance(first, StoredFactor):
        return _seen_by(others[0], alone)
    return alone


def _seen_by(other: Factor, alone: LowRankInverse) -> LowRankInverse:
    """With the mean cost of two shapes, I − (EᵀU_1U_1ᵀE + EᵀU_2U_2ᵀE) / 2, in directions E of one.

    E is an orthonormal basis of the columns of U_1.
    """
    clear = alone.strengths > 1e-8  # below, a direction hardly moves the landmarks
    shares = alone.strengths[clear]
    directions = alone.modes[:, clear] / np.sqrt(shares)
    seen = other.project(alone.cost.stacked_image(directions))[0]
    strengths, turn = np.linalg.eigh(symmetrised(0.5 * (np.diag(shares) + seen.T @ seen)))
    strengths = np.clip(strengths, 0.0, 1.0) / (1.0 + SHIFT)
    # 1/(1 − λ) − 1 = λ/(1 − λ), as E is orthonormal and U_1 is not
    return replace(alone, modes=directions @ turn * np.sqrt(strengths), strengths=strengths)


def inverse_from_one(alone: EliminatedCost) -> LowRankInverse:
    """One shape, the only factor, stands for all n."""
    (factor,), n = alone.factors, alone.n_shapes
    strengths, modes = np.linalg.eigh(factor.ridge.gram(factor.batch.bases.penalty())[0])
    outer = 1.0 / np.sqrt(alone.views + SHIFT * n)
    return LowRankInverse(alone, outer, np.ones_like(outer), modes, strengths / (1.0 + SHIFT))


def eliminated_cost(
    frames: Frames, model: WarpModel, budget: int = DEFAULT_BUDGET, tuning: Tuning = DEFAULT
) -> EliminatedCost:
    """P of shapes; U held in the way that fits its size.

    Stored up to ``tuning.dense_landmarks`` landmarks (or for ``tuning.few_features``), and as
    columns beyond; columns that are mostly zero in compressed rows. Where the features would take
    more than ``budget`` bytes they are streamed.
    """
    n, m, _ = frames.points.shape
    batches = make_batches(frames, model, tuning)
    factors = in_blocks(_way_to_hold(batches[0], n, m, budget, tuning), batches)
    views = frames.visible.sum(axis=0).astype(np.float64)
    return EliminatedCost(views, tuple(factors), n, tuning)


def _way_to_hold(
    first: Batch, n: int, m: int, budget: int, tuning: Tuning
) -> Callable[[Batch], Factor]:
    features = first.bases.penalty().shape[-1]
    fits = 8 * n * m * features <= budget
    if fits and (m <= tuning.dense_landmarks or features <= tuning.few_features):
        return stored_factor
    if isinstance(first.bases, SparseBasis):
        return sparse_factor if n * stored_bytes(first) <= budget else streamed_sparse_factor
    return column_factor if fits else streamed_factor


class Centering(Protocol):
    """A rule that keeps the reference centred."""

    def applied(self, cost: Cost) -> Cost:
        """The cost whose cheapest axes are centred."""
        ...


@dataclass(frozen=True)
class SoftCentering:
    """Charge ν‖Sᵀ1‖² for an off-centre reference, the paper's way.

    Parameters
    ----------
    nu : float, optional
        ν; by default n/m, the smallest that is sure to suffice.
    """

    nu: float | None = None

    def applied(self, cost: Cost) -> Cost:
        """P + ν 1 1ᵀ."""
        nu = cost.n_shapes / cost.n_landmarks if self.nu is None else self.nu
        if not (isinstance(nu, (int, float, np.number)) and 0.0 <= nu < np.inf):
            raise ValueError(
                "The 'nu' parameter of SoftCentering must be a number of at least 0. "
                f"Got {nu!r} instead."
            )
        return _Softened(cost, float(nu))


@dataclass(frozen=True)
class ExactCentering:
    """Work in the complement of the constant vector: centred, whatever the warp."""

    def applied(self, cost: Cost) -> Cost:
        """J P J, with the constant vector moved above the whole spectrum."""
        return _Projected(cost)


@dataclass(frozen=True, eq=False)
class _Centred:
    """A cost that is changed, of as many shapes and landmarks as before."""

    cost: Cost

    @property
    def n_landmarks(self) -> int:
        return self.cost.n_landmarks

    @property
    def n_shapes(self) -> int:
        return self.cost.n_shapes


@dataclass(frozen=True, eq=False)
class _Softened(_Centred):
    nu: float

    def multiply(self, block: Array) -> Array:
        image = self.cost.multiply(block)
        image += self.nu * block.sum(axis=0)
        return image

    def dense(self) -> Array:
        return self.cost.dense() + self.nu


@dataclass(frozen=True, eq=False)
class _Projected(_Centred):
    @property
    def lift(self) -> float:
        """What the constant vector costs: more than any other."""
        return self.n_shapes + 1.0

    def multiply(self, block: Array) -> Array:
        mean = block.mean(axis=0)
        image = self.cost.multiply(block - mean)
        return image - image.mean(axis=0) + self.lift * mean

    def dense(self) -> Array:
        matrix = self.cost.dense()
        matrix = matrix - matrix.mean(axis=-2, keepdims=True)
        matrix = matrix - matrix.mean(axis=-1, keepdims=True)
        return matrix + self.lift / self.n_landmarks
