"""The fast way: all shapes of several folds as one stack, the core's own batched algebra on it.

A landmark that is left out is one that no shape sees, so a fold is a set of shapes with more
holes, and the shapes of several folds are one larger batch. Everything the landmarks decide
(control points, penalty, centring, covariance) is made anew for every fold. Folds that are
not ordinary are left to a fit of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index, Mask
from defgpa.alignment import Alignment, checked_eigenvalues
from defgpa.estimators import DefGPA
from defgpa.evaluate._fold_priors import fold_eigenvalues
from defgpa.evaluate._modes import Modes, modes_of
from defgpa.evaluate._ordinary import (
    fold_frames,
    is_unremarkable,
    linked,
    unremarkable,
    untied,
    well_posed,
)
from defgpa.evaluate._refit import in_frame_of
from defgpa.frames import Frames
from defgpa.shapes import Shapes
from defgpa.solve.deformable.batches import make_batches, stacked_batch
from defgpa.solve.deformable.centering import Centering, SoftCentering
from defgpa.solve.deformable.cost import DENSE_LANDMARKS
from defgpa.solve.eigen.solvers import Dense
from defgpa.solve.eigen.stacked import cheapest_of_each
from defgpa.warps import StackedModel, ThinPlateSpline

_GROUP_BYTES = 6 << 20  # of features: larger stacks leave the cache, smaller ones are many calls


@dataclass(frozen=True, eq=False)
class StackedFolds:
    """What all folds have in common."""

    points: Array  # (n, m, d), finite
    visible: Mask  # (n, m)
    shared: Mask  # (m,): landmarks that at least two shapes see; only they are aligned
    model: StackedModel
    width: int  # l, the features of each shape
    centering: Centering
    eigenvalues: Array | None  # Λ, if it was given
    watched: bool  # whether a small gap would be news

    @property
    def n_shapes(self) -> int:
        """The number of shapes, n."""
        return len(self.points)

    def groups(self, folds: Sequence[Index]) -> list[Index]:
        """(g, N) each: consecutive folds of one size, few enough to stay in the cache.

        How many workers there are does not enter: it must not change a digit.
        """
        n, m, _ = self.points.shape
        equal = [fold for fold in folds if len(fold) == len(folds[0])]
        parts = -(-len(equal) * 8 * n * m * self.width // _GROUP_BYTES)
        parts += parts % 2  # two threads then have equally much to do
        size = -(-len(equal) // parts)
        rest = folds[len(equal) :]  # at most the last, shorter one
        groups = [np.stack(equal[i : i + size]) for i in range(0, len(equal), size)]
        return groups + [np.stack([fold]) for fold in rest]


@dataclass(frozen=True, eq=False)
class GroupPrediction:
    """Predictions of a group of folds, for each amount of smoothing."""

    predicted: Array  # (k, g, n, N, d), in the frames of the k references
    sure: Mask  # (k, g): false where the fold wants a fit of its own


def stacked_folds(
    estimator: Any, shapes: Shapes, full: Alignment | None = None
) -> StackedFolds | None:
    """What the folds of this estimator have in common; None if they need fits of their own.

    With the full alignment, folds that would warn of what it did not are fitted on their own too.
    """
    if type(estimator) is not DefGPA or not _is_dense(estimator.solver, shapes):
        return None
    model = ThinPlateSpline() if estimator.warp is None else estimator.warp
    if not isinstance(model, StackedModel):
        return None
    frames = Frames.of(shapes.points, shapes.visible)
    width = model.bases(frames[:1]).penalty().shape[-1]
    # two folds at a time, with their temporary copies
    if 8 * shapes.visible.size * width * 8 > estimator.memory_budget:
        return None
    return StackedFolds(
        frames.points,
        shapes.visible,
        shapes.views >= 2,
        model,
        width,
        SoftCentering() if estimator.centering is None else estimator.centering,
        None if estimator.scale is None else checked_eigenvalues(estimator.scale, shapes.dim),
        full is not None and is_unremarkable(full),
    )


def predicted_group(
    common: StackedFolds, folds: Index, factors: Array, references: Array
) -> GroupPrediction:
    """Predict the landmarks of folds (g, N) for penalties times ``factors`` (k,).

    ``references`` (k, m, d) are those of the full fits.
    """
    training = np.repeat(common.shared[None], len(folds), axis=0)
    np.put_along_axis(training, folds, False, axis=1)
    seen = common.visible & training[:, None]
    frames = fold_frames(common.points, seen)
    extents = frames.extents.reshape(*seen.shape[:2], -1)
    sure = well_posed(extents, seen)
    sure &= linked(common.visible, folds, training, common.points.shape[2])
    shape = (len(factors), len(folds), common.n_shapes, folds.shape[1], common.points.shape[2])
    predicted, fine = np.full(shape, np.nan), np.zeros(shape[:2], dtype=bool)
    kept = slice(None) if sure.all() else np.repeat(sure, common.n_shapes)
    group = _Group(common, folds[sure], training[sure], frames[kept])
    # what goes wrong here goes wrong again in fits of their own, which can tell in which fold
    with suppress(Exception):
        if sure.any():
            predicted[:, sure], fine[:, sure] = group.predict(factors, references)
    return GroupPrediction(predicted, fine)


@dataclass(frozen=True, eq=False)
class _Group:
    """Some well-posed folds: g of them, of N landmarks each."""

    common: StackedFolds
    folds: Index  # (g, N)
    training: Mask  # (g, m)
    frames: Frames  # of all shapes of all folds: g n of them

    def predict(self, factors: Array, references: Array) -> tuple[Array, Mask]:
        """(k, g, n, N, d) predictions and (k, g) whether they can be trusted."""
        modes = self._modes(factors)
        eigenvalues = self._eigenvalues()
        settled = np.isfinite(eigenvalues).all(axis=1)
        settled &= ~modes.dropped.reshape(len(self.folds), -1).any(axis=1)
        made = [
            self._predict_one(modes, c, np.sqrt(eigenvalues), reference)
            for c, reference in zip(factors, references, strict=True)
        ]
        return np.stack([p for p, _ in made]), np.stack([fine & settled for _, fine in made])

    def _predict_one(
        self, modes: Modes, factor: float, stretch: Array, reference: Array
    ) -> tuple[Array, Mask]:
        """The same for one amount of smoothing: W = Y UᵀS, so warp(x) = (f(x) Y) (UᵀS)."""
        g, N = self.folds.shape
        n, (m, d) = self.common.n_shapes, reference.shape
        axes, fine = self._axes(modes.grams(factor, g))
        own = axes * stretch[:, None, :]
        projected = (modes.rows.reshape(g, -1, m) @ own).reshape(g * n, -1, d)
        images = modes.images(factor, projected).reshape(g, n, N, d)
        return in_frame_of(reference, own, self.training, images), fine

    def _axes(self, grams: Array) -> tuple[Array, Mask]:
        """(g, m, d) cheapest axes of every fold, zero where it has no landmark, from Σ UUᵀ."""
        g, m, _ = grams.shape
        d, n = self.common.points.shape[2], self.common.n_shapes
        views = self.frames.visible.reshape(g, n, m).sum(axis=1).astype(np.float64)
        axes, values = np.zeros((g, m, d)), np.empty((g, d + 1))
        sizes = self.training.sum(axis=1)
        for size in np.unique(sizes):
            chosen = np.flatnonzero(sizes == size)
            costs = np.stack([self._cost(int(i), views[i], grams[i]) for i in chosen])
            values[chosen], found = cheapest_of_each(costs, d, n)
            axes[self.training & (sizes == size)[:, None]] = found.reshape(-1, d)
        return axes, self._are_fine(values, axes)

    def _cost(self, fold: int, views: Array, gram: Array) -> Array:
        """The centred cost of the landmarks a fold keeps."""
        kept = self.training[fold]
        own = np.diag(views[kept]) - gram.compress(kept, 0).compress(kept, 1)
        return self.common.centering.applied(_DenseCost(own, self.common.n_shapes)).dense()

    def _are_fine(self, values: Array, axes: Array) -> Mask:
        """(g,): whether the axes are the only ones, and the core would not warn of them."""
        n, d = self.common.n_shapes, axes.shape[2]
        fine = untied(values[:, :d], n)
        if self.common.watched:
            fine &= unremarkable(values, axes, n, int(self.training.sum(axis=1).min()))
        return fine

    def _modes(self, factors: Array) -> Modes:
        (n, _, d), g = self.common.points.shape, len(self.folds)
        held = np.moveaxis(self.common.points[:, self.folds], 1, 0)  # (g, n, N, d)
        if g == 1:  # which may be large
            batches = make_batches(self.frames, self.common.model)
        else:
            batches = [stacked_batch(self.frames, self.common.model, np.arange(g * n))]
        return modes_of(batches, held.reshape(g * n, -1, d), factors)

    def _eigenvalues(self) -> Array:
        """(g, d): Λ of every fold."""
        g, d = len(self.folds), self.common.points.shape[2]
        if self.common.eigenvalues is not None:
            return np.broadcast_to(self.common.eigenvalues, (g, d))
        visible = self.common.visible & self.common.shared
        extents = self.frames.extents.reshape(g, -1, d)
        return fold_eigenvalues(self.common.points, visible, self.folds, self.training, extents)


@dataclass(frozen=True, eq=False)
class _DenseCost:
    """P as the matrix it is."""

    matrix: Array
    n_shapes: int

    @property
    def n_landmarks(self) -> int:
        return len(self.matrix)

    def multiply(self, block: Array) -> Array:
        return np.asarray(self.matrix @ block)

    def dense(self) -> Array:
        return self.matrix


def _is_dense(solver: Any, shapes: Shapes) -> bool:
    return (solver is None or type(solver) is Dense) and shapes.n_landmarks <= DENSE_LANDMARKS
