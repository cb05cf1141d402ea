"""Folds of the elastic family: one cost for every smoothing, one small solve for every rigidity.

What the rigidity adds to the cost is known beforehand, and how it changes the warps is an affine
map, which needs no features: all positions of the dial share the algebra of the deformable folds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.estimators import ElasticGPA
from defgpa.evaluate._fold_sets import FoldCost, FoldSets
from defgpa.evaluate._folds import LeftOut, in_frame_of
from defgpa.findings import Finding
from defgpa.shapes import Shapes
from defgpa.solve.datum.anchored_cost import RootInverse
from defgpa.solve.datum.elastic import (
    Anchors,
    Dial,
    elastic_gpa,
    orthonormal_rows,
    rigid_start,
    soft_end,
)
from defgpa.solve.deformable.pipeline import LocalSets, solve


@dataclass(frozen=True, eq=False)
class ElasticFolds(FoldSets):
    """What all folds of an elastic estimator have in common; a position of the dial is a pair.

    Where deformable folds take factors on the penalty (k,), these take pairs (k, 2): a factor on
    the penalty, and a rigidity.
    """

    scaling: bool

    @classmethod
    def of(cls, estimator: Any, shapes: Shapes) -> ElasticFolds | None:
        """The folds of an ElasticGPA as stacks; None for what must be fitted one by one."""
        if type(estimator) is not ElasticGPA:
            return None
        common = FoldSets.of(estimator.deformable, shapes)
        if common is None:
            return None
        own = {field.name: getattr(common, field.name) for field in fields(common)}
        return cls(**own, scaling=estimator.dial.scaling)

    def _predicted(self, folds: Index, factors: Array, references: Array) -> list[list[LeftOut]]:
        kept = np.stack([self._kept(fold) for fold in folds])
        sets = self._sets(kept)
        held = np.moveaxis(self.shapes.points[:, folds], 1, 0)  # (g, n, N, d)
        penalties = np.unique(factors[:, 0])
        modes = self._modes(sets, held, penalties)
        views = sets.visible.sum(axis=1).astype(np.float64)
        stack = _Stack(self, sets, held, kept)
        left_out: list[list[LeftOut]] = [[] for _ in factors]
        for penalty in penalties:
            free = _Free(stack, FoldCost(modes, float(penalty), views))
            for k in np.flatnonzero(factors[:, 0] == penalty):
                dial = Dial(float(factors[k, 1]), self.scaling)
                left_out[k] = free.predicted(dial, references[k])
        return left_out


class _Stack:
    """Several folds, and what depends on neither smoothing nor rigidity."""

    def __init__(self, common: ElasticFolds, sets: LocalSets, held: Array, kept: Index) -> None:
        self.common, self.sets, self.kept = common, sets, kept
        g, n, d = len(kept), len(sets.names), sets.dim
        self.rows = orthonormal_rows(sets.frames).reshape(g, n * d, -1)
        self.beyond = held - sets.frames.centre.reshape(g, n, 1, d)
        self._rigid: Array | None = None

    def rigid(self, votes: Index) -> Array:
        """(g, m, d): the rigid means, made once: who is mirrored is told by the first to ask."""
        if self._rigid is None:
            points = np.moveaxis(self.common.shapes.points[:, self.kept], 1, 0)
            both = zip(points, votes, strict=True)
            self._rigid = np.stack([rigid_start(own, votes) for own, votes in both])
        return self._rigid


class _Free:
    """Several folds at one amount of smoothing: the deformable cost and its references."""

    def __init__(self, stack: _Stack, cost: FoldCost) -> None:
        self.stack, self.cost, self.dense = stack, cost, cost.dense()
        common, sets = stack.common, stack.sets
        self.reference = np.empty((*cost.views.shape, sets.dim))
        self.findings: list[tuple[Finding, ...]] = [()] * len(cost.views)
        for part, solution in solve(sets, cost, common.method):
            self.reference[part] = solution.reference
            for number, found in zip(part, solution.findings, strict=True):
                self.findings[number] = found
        votes = Anchors.of(sets, self.reference).votes
        self.starts = self.reference, stack.rigid(votes)

    def predicted(self, dial: Dial, full: Array) -> list[LeftOut]:
        """Every fold at one rigidity; ``full`` (m, d) is the reference of all landmarks."""
        stack, rows = self.stack, self.stack.rows
        if dial.firmness == 0.0:
            reference = soft_end(stack.sets, self.reference)
            return self._moved(full, reference, self._images(reference), self.findings)
        inverse = RootInverse.of(self.dense + dial.firmness * (rows.mT @ rows))
        fit = elastic_gpa(stack.sets, inverse, self.starts, dial, stack.common.method.tuning)
        images = self._images(fit.reference) - dial.firmness * (stack.beyond @ fit.departures)
        found = [fit.findings(number, stack.sets.names) for number in range(len(images))]
        return self._moved(full, fit.reference, images, found)

    def _images(self, reference: Array) -> Array:
        """(g, n, N, d): where the warps onto a reference (g, m, d) put what was left out."""
        return self.cost.images(self.cost.explained(reference).weights)

    def _moved(
        self, full: Array, reference: Array, images: Array, findings: list[tuple[Finding, ...]]
    ) -> list[LeftOut]:
        moved = in_frame_of(full[self.stack.kept], reference, images)
        return [LeftOut(*own) for own in zip(moved, findings, strict=True)]
