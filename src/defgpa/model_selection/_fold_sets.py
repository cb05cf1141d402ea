"""Folds as sets of shapes: the pipeline's own algebra on several of them at once.

A landmark that is left out is one that a set does not have, so a fold is a set of the same shapes
on fewer landmarks, and the shapes of several folds are one larger batch. Everything the landmarks
decide (control points, penalty, centring, proportions) is made anew for every fold.

Of the elastic family there is one cost for every smoothing, one small solve for every rigidity:
what the rigidity adds to the cost is known beforehand, and how it changes the warps is an affine
map, which needs no features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.diagnostics.checks import linked_groups, require_extended, require_linked_pattern
from defgpa.diagnostics.findings import Finding
from defgpa.estimators import DefGPA, ElasticGPA
from defgpa.frames import Frames
from defgpa.model_selection._demmler_reinsch import Modes, modes_of
from defgpa.model_selection.folds import LeftOut, in_frame_of
from defgpa.shapes import Shapes
from defgpa.solvers.anchored_cost import RootInverse
from defgpa.solvers.cost import Explained
from defgpa.solvers.deformable import LocalSets, Method, solve
from defgpa.solvers.eigen import Dense, Preconditioner
from defgpa.solvers.elastic import (
    Anchors,
    Dial,
    elastic_gpa,
    orthonormal_rows,
    rigid_start,
    soft_end,
)
from defgpa.solvers.elimination import make_batches, stacked_batch
from defgpa.warps import WarpFamily


@dataclass(frozen=True, eq=False)
class FoldSets:
    """What all folds of an estimator on some shapes have in common.

    Deformable folds take factors on the penalty (k,), elastic ones pairs (k, 2): a factor on the
    penalty, and a rigidity.
    """

    shapes: Shapes
    model: WarpFamily[Any]
    method: Method
    width: int  # l, the features of each shape
    scaling: bool | None = None  # of an ElasticGPA

    @classmethod
    def of(cls, estimator: Any, shapes: Shapes) -> FoldSets | None:
        """The folds of an estimator as stacks; None for what must be fitted one by one."""
        if type(estimator) is ElasticGPA:
            common = cls.of(estimator.deformable, shapes)
            return common and replace(common, scaling=estimator.dial.scaling)
        if type(estimator) is not DefGPA or not isinstance(estimator.model, WarpFamily):
            return None
        method = estimator.method(shapes.n_dims)
        dense = method.solver is None or type(method.solver) is Dense
        if not dense or shapes.n_landmarks > method.tuning.dense_landmarks:
            return None
        frames = Frames.of(shapes.points, shapes.visible)
        width = estimator.model.bases(frames[:1]).penalty().shape[-1]
        # two folds at a time, with their temporary copies
        if 8 * shapes.visible.size * width * 8 > estimator.memory_budget:
            return None
        return cls(shapes, estimator.model, replace(method, solver=Dense()), width)

    def groups(self, folds: Sequence[Index]) -> list[list[int]]:
        """Numbers of folds that are solved as one stack: of one size, in the cache.

        How many workers there are does not enter: it must not change a digit.
        """
        sizes = [(len(fold), len(self._kept(fold))) for fold in folds]
        groups: list[list[int]] = []
        for size in dict.fromkeys(sizes):
            equal = [i for i, own in enumerate(sizes) if own == size]
            n_bytes = len(equal) * 8 * self.shapes.visible.size * self.width
            parts = -(-n_bytes // self.method.tuning.fold_bytes)
            parts += parts % 2  # two threads then have equally much to do
            step = -(-len(equal) // parts)
            groups += [equal[i : i + step] for i in range(0, len(equal), step)]
        return groups

    def predicted(
        self, folds: Sequence[Index], factors: Array, references: Array
    ) -> list[list[LeftOut]]:
        """[factor][fold]: the landmarks of folds, for penalties times ``factors`` (k,).

        ``references`` (k, m, d) are those of the full fits. One fold that cannot be solved does
        not spoil the others: they are then solved on their own. If each of them can, it is the
        stack that is broken, and that is an error.
        """
        try:
            return self._predicted(np.stack(folds), factors, references)
        except Exception as error:  # control points of one's own may raise anything
            if len(folds) == 1:
                nothing = np.full((len(self.shapes), len(folds[0]), self.shapes.n_dims), np.nan)
                return [[LeftOut(nothing, error=error)] for _ in factors]
            alone = [self.predicted([fold], factors, references) for fold in folds]
            if not any(own[0].error for one in alone for own in one):
                raise
        return [[own[c][0] for own in alone] for c in range(len(factors))]

    def _predicted(self, folds: Index, factors: Array, references: Array) -> list[list[LeftOut]]:
        kept = np.stack([self._kept(fold) for fold in folds])  # (g, m')
        sets = self._sets(kept)
        held = np.moveaxis(self.shapes.points[:, folds], 1, 0)  # (g, n, N, d)
        penalties = factors if self.scaling is None else np.unique(factors[:, 0])
        modes = self._modes(sets, held, penalties)
        views = sets.visible.sum(axis=1).astype(np.float64)

        def cost_of(factor: float) -> FoldCost:
            return FoldCost(modes, float(factor), views)

        if self.scaling is not None:
            return self._elastic(sets, cost_of, kept, held, factors, references)
        return [
            self._one_factor(sets, cost_of(c), kept, reference)
            for c, reference in zip(factors, references, strict=True)
        ]

    def _one_factor(
        self, sets: LocalSets, cost: FoldCost, kept: Index, reference: Array
    ) -> list[LeftOut]:
        """Every fold at one amount of smoothing, through the pipeline."""
        left_out: list[LeftOut] = [LeftOut(np.empty(0))] * len(kept)
        for part, solution in solve(sets, cost, self.method):
            images = cost[part].images(solution.weights)
            moved = in_frame_of(reference[kept[part]], solution.reference, images)
            for number, own, found in zip(part, moved, solution.findings, strict=True):
                left_out[number] = LeftOut(own, found)
        return left_out

    def _elastic(
        self,
        sets: LocalSets,
        cost_of: Callable[[float], FoldCost],
        kept: Index,
        held: Array,
        positions: Array,
        references: Array,
    ) -> list[list[LeftOut]]:
        """Every fold at every position (k, 2) of the dial."""
        g, n, d = len(kept), len(sets.names), sets.n_dims
        rows = orthonormal_rows(sets.frames).reshape(g, n * d, -1)
        anchored, beyond = rows.mT @ rows, held - sets.frames.centre.reshape(g, n, 1, d)
        rigid: Array | None = None
        left_out: list[list[LeftOut]] = [[] for _ in positions]
        for penalty in np.unique(positions[:, 0]):
            cost = cost_of(penalty)
            dense, (free, found) = cost.dense(), self._deformable(sets, cost)
            if rigid is None:  # who is mirrored is told by the first
                rigid = self._rigid_means(kept, Anchors.of(sets, free).votes)
            for k in np.flatnonzero(positions[:, 0] == penalty):
                dial = Dial(float(positions[k, 1]), bool(self.scaling))
                if dial.firmness == 0.0:
                    reference, departure, findings = soft_end(sets, free), np.zeros(1), found
                else:
                    inverse = RootInverse.of(dense + dial.firmness * anchored)
                    fit = elastic_gpa(sets, inverse, (free, rigid), dial, self.method.tuning)
                    reference, departure = fit.reference, dial.firmness * (beyond @ fit.departures)
                    findings = [fit.findings(number, sets.names) for number in range(g)]
                images = cost.images(cost.explained(reference).weights) - departure
                moved = in_frame_of(references[k][kept], reference, images)
                left_out[k] = [LeftOut(*own) for own in zip(moved, findings, strict=True)]
        return left_out

    def _deformable(
        self, sets: LocalSets, cost: FoldCost
    ) -> tuple[Array, list[tuple[Finding, ...]]]:
        """(g, m, d): the deformable references of all folds, and what each fold found."""
        reference = np.empty((*cost.views.shape, sets.n_dims))
        findings: list[tuple[Finding, ...]] = [()] * len(cost.views)
        for part, solution in solve(sets, cost, self.method):
            reference[part] = solution.reference
            for number, found in zip(part, solution.findings, strict=True):
                findings[number] = found
        return reference, findings

    def _rigid_means(self, kept: Index, votes: Index) -> Array:
        """(g, m, d): the rigid mean of every fold."""
        points = np.moveaxis(self.shapes.points[:, kept], 1, 0)
        both = zip(points, votes, strict=True)
        return np.stack([rigid_start(own, sides) for own, sides in both])

    def _kept(self, fold: Index) -> Index:
        """The landmarks that at least two shapes see, without those of a fold."""
        kept = self.shapes.views >= 2
        kept[fold] = False
        return np.flatnonzero(kept)

    def _sets(self, kept: Index) -> LocalSets:
        """The shapes on the landmarks (g, m') of each fold; an error where they are too few."""
        g, m = kept.shape
        shapes = self.shapes
        points = np.moveaxis(shapes.points[:, kept], 1, 0).reshape(-1, m, shapes.n_dims)
        visible = np.moveaxis(shapes.visible[:, kept], 1, 0)
        frames = Frames.of(points, visible.reshape(-1, m)).flattened()
        require_extended(frames, shapes.names * g)
        if not self._surely_linked(len(kept[0])):
            for own in visible:
                require_linked_pattern(own, shapes.names, shapes.n_dims)
        return LocalSets(frames, shapes.names, np.asarray(shapes.landmarks)[kept])

    def _surely_linked(self, n_kept: int) -> bool:
        """Whether shapes hang together whichever landmarks are left out.

        They do if they would with as many landmarks more asked for as a fold takes away.
        """
        shared = self.shapes.visible[:, self.shapes.views >= 2]
        if n_kept <= self.shapes.n_dims:
            return False
        least = self.shapes.n_dims + 1 + shared.shape[1] - n_kept
        return bool(shared.all()) or len(linked_groups(shared, least)) == 1

    def _modes(self, sets: LocalSets, held: Array, factors: Array) -> Modes:
        g, n, _, d = held.shape
        if g == 1:  # which may be large
            batches = make_batches(sets.frames, self.model, self.method.tuning)
        else:
            shapes = np.arange(g * n)
            batches = [stacked_batch(sets.frames, self.model, shapes, self.method.tuning)]
        return modes_of(batches, held.reshape(g * n, -1, d), factors)


@dataclass(frozen=True, eq=False)
class FoldCost:
    """P of every fold of a stack, for one factor on the penalty."""

    modes: Modes  # of the g n shapes
    factor: float
    views: Array  # (g, m): shapes that see each landmark

    storage = "stacked"

    @property
    def n_landmarks(self) -> int:
        """The number of landmarks of each fold, m."""
        return int(self.views.shape[1])

    @property
    def n_shapes(self) -> int:
        """The number of shapes, n."""
        return len(self.modes.rows) // len(self.views)

    @property
    def condition(self) -> Array:
        """(g, n): of each shape's regression."""
        return self.modes.condition.reshape(len(self.views), -1)

    @property
    def dropped(self) -> Index:
        """(g, n): directions of each warp that nothing determines."""
        return self.modes.dropped.reshape(len(self.views), -1)

    def dense(self) -> Array:
        """(g, m, m): diag(views) − Σ V diag(g) Vᵀ of every fold."""
        costs = -self.modes.grams(self.factor, len(self.views))
        np.einsum("gmm->gm", costs)[...] += self.views
        return costs

    def multiply(self, block: Array) -> Array:
        """(g, m, k): P X of every fold."""
        return self.dense() @ block

    def preconditioner(self) -> Preconditioner:
        """None is needed: the costs are small and dense."""
        raise NotImplementedError

    def explained(self, reference: Array) -> Explained:
        """The weights of the warps in their modes, and P1."""
        g, m, _ = reference.shape
        block = np.concatenate([reference, np.ones((g, m, 1))], axis=2)
        found = self.modes.coefficients(self.factor, block)
        rows = self.modes.rows.reshape(g, -1, m)
        ones = found[..., -1].reshape(g, 1, -1) @ rows
        return Explained(found[..., :-1], self.views - ones[:, 0])

    def images(self, weights: Array) -> Array:
        """(g, n, N, d): where the warps put the landmarks that were left out."""
        images = self.modes.elsewhere @ weights
        return images.reshape(len(self.views), -1, *images.shape[1:])

    def __getitem__(self, part: Index) -> FoldCost:
        """Some of the folds."""
        if len(part) == len(self.views):
            return self
        chosen = np.zeros(len(self.views), dtype=bool)
        chosen[part] = True
        own = self.modes[np.repeat(chosen, self.n_shapes)]
        return FoldCost(own, self.factor, self.views[part])
