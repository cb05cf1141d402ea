"""Shapes in the memory of this machine: in sets, and with their bases a batch at a time.

A batch is several shapes whose bases have equally many features, so that their algebra is one
call for all of them. Built-in models make the bases of a batch at once; a user's own model is
asked shape by shape, and its bases are stacked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index, Mask, blocks, in_blocks
from defgpa.errors import ShapeError
from defgpa.frames import Frames
from defgpa.solve.deformable.proportions import Moments, moments
from defgpa.solve.prior.covariance import covariance_prior
from defgpa.tuning import DEFAULT, Tuning
from defgpa.warps import Basis, FactoredBasis, StackedModel, WarpModel

_USUAL_FEATURES = 64  # where so many fit into one batch, nobody is asked how many there are


@dataclass(frozen=True, eq=False)
class LocalSets:
    """A stack of g sets of n shapes each, on m landmarks; a single fit is a stack of one."""

    frames: Frames  # of all g n shapes
    names: Sequence[str]  # of the n shapes
    landmarks: Array  # (g, m): labels

    @property
    def visible(self) -> Mask:
        """(g, n, m)."""
        return self._by_set(self.frames.visible)

    @property
    def dim(self) -> int:
        """The dimension of space, d."""
        return int(self.frames.points.shape[-1])

    @property
    def rank(self) -> int:
        """The dimension d, or less where all shapes are flat."""
        return self.frames.rank

    def moments(self, axes: Array) -> Moments:
        """What the shapes say about axes (g, m, k)."""
        return moments(axes, self._by_set(self.frames.centred), self.visible)

    def prior(self) -> Array:
        """(g, d): Λ by Algorithm 1 of the paper, largest first."""
        n = len(self.names)
        sets = range(len(self.landmarks))
        return np.stack(
            [covariance_prior(self.frames[slice(s * n, (s + 1) * n)], self.names) for s in sets]
        )

    def __getitem__(self, part: Any) -> LocalSets:
        """Some of the sets."""
        chosen = np.zeros(len(self.landmarks), dtype=bool)
        chosen[part] = True
        own = self.frames[np.repeat(chosen, len(self.names))]
        return LocalSets(own, self.names, self.landmarks[part])

    def _by_set(self, stack: Any) -> Any:
        return stack.reshape(len(self.landmarks), len(self.names), *stack.shape[1:])


@dataclass(frozen=True, eq=False)
class Batch:
    """Some shapes and their bases."""

    shapes: Index  # (b,): which ones
    points: Array  # (b, m, d), finite
    visible: Mask  # (b, m)
    bases: FactoredBasis  # a stack of b
    rounding: Array  # (b,): of the coordinates, of the size of each shape
    tuning: Tuning = DEFAULT
    deflation: Any = None  # takes low orders out of the columns

    @property
    def n_landmarks(self) -> int:
        """m."""
        return int(self.points.shape[1])

    def __getitem__(self, part: slice) -> Batch:
        own = self.shapes[part], self.points[part], self.visible[part], self.bases[part]
        return Batch(*own, self.rounding[part], self.tuning, self.deflation)

    def deflated(self) -> Batch:
        """The same, with columns that lose fewer digits in products with each other, if known."""
        return replace(self, deflation=getattr(self.bases, "deflation", None))

    @cached_property
    def mixing(self) -> Array | None:
        """(b, r, l), or None for the identity: features = columns @ mixing."""
        mixing, deflation = self.bases.mixing, self.deflation
        return mixing if deflation is None else deflation.coefficients(mixing)

    def columns(self, landmarks: slice | Index = slice(None)) -> Array:
        """(b, p, r): the columns of these landmarks; rows of hidden ones are zero."""
        rows = self.bases.columns(self.points[:, landmarks])
        if self.deflation is not None:
            rows = self.deflation.columns(rows)
        return self._hidden_zeroed(rows, landmarks)

    def features(self) -> Array:
        """(b, m, l): the features of all landmarks; rows of hidden ones are zero."""
        return self._hidden_zeroed(self.bases.features(self.points), slice(None))

    def _hidden_zeroed(self, rows: Array, landmarks: slice | Index) -> Array:
        """A hidden landmark must neither pull nor be pulled: a zero row does both."""
        visible = self.visible[:, landmarks]
        if not visible.all():
            rows *= visible.astype(np.float64)[..., None]
        return rows


@dataclass(frozen=True, eq=False)
class StackedBases:
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
    if isinstance(model, StackedModel):
        n = len(frames.points)
        parts, numbers = blocks(n, _batch_size(frames, model, tuning)), np.arange(n)
        return in_blocks(lambda p: stacked_batch(frames[p], model, numbers[p], tuning), parts)
    return _looped_batches(frames, model, tuning)


def stacked_batch(
    frames: Frames, model: StackedModel, shapes: Index, tuning: Tuning = DEFAULT
) -> Batch:
    """These shapes as one batch."""
    bases = model.bases(frames)
    return Batch(shapes, frames.points, frames.visible, bases, frames.rounding, tuning)


def _batch_size(frames: Frames, model: StackedModel, tuning: Tuning) -> int:
    """Shapes of a batch; as many as there are, where all their features are few."""
    n, m, _ = frames.points.shape
    if 8 * n * m * _USUAL_FEATURES <= tuning.few_bytes:
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
