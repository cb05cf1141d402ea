"""One estimator with many amounts of smoothing: what does not depend on them is made once."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from defgpa._arrays import Array, Index, Mask
from defgpa.alignment import Alignment
from defgpa.errors import DegenerateShapeError
from defgpa.model_selection._fold_sets import FoldSets
from defgpa.model_selection.cross_validation import (
    CrossValidation,
    gathered_folds,
    left_out_by_refits,
    left_out_by_stacks,
)
from defgpa.model_selection.folds import LeftOut, Steps, consecutive_folds, looked_at
from defgpa.shapes import Shapes
from defgpa.warps import ThinPlateSpline


@dataclass(frozen=True, eq=False)
class Point:
    """What one amount of smoothing gave: the alignment of all landmarks, and every fold."""

    value: float
    cross_validation: CrossValidation

    @property
    def alignment(self) -> Alignment:
        """The alignment of all landmarks."""
        return self.cross_validation.alignment

    @cached_property
    def rmse_datum(self) -> float:
        """RMSE_d, or NaN where some warp has no inverse."""
        try:
            return self.alignment.rmse_datum
        except DegenerateShapeError:
            return float("nan")


@dataclass(frozen=True, eq=False)
class Sweep:
    """One estimator with many amounts of smoothing, on the same shapes and folds.

    An elastic one at many rigidities, too: a position is then an amount of both.
    """

    estimator: Any
    warp: Any
    shapes: Shapes
    fold_size: int
    n_jobs: int | None
    steps: Steps
    rigidities: Array | None = None  # of an ElasticGPA

    @cached_property
    def folds(self) -> tuple[Index, ...]:
        """The landmarks of each fold."""
        return consecutive_folds(self.shapes.n_landmarks, self.fold_size)

    def position(self, smoothing: float, rigidity: float | None = None) -> Any:
        """A fresh estimator with this smoothing, and this rigidity if it has one."""
        fresh = clone(self.estimator).set_params(warp=_smoothed(self.warp, smoothing))
        return fresh if rigidity is None else fresh.set_params(rigidity=float(rigidity))

    def rows(self, values: Array) -> list[list[Point]]:
        """[smoothing][rigidity]: what the positions give; one in a row without rigidities."""
        full = [own for value in values for own in self._aligned(value)]
        width = len(full) // len(values)
        smoothings = np.repeat(values, width)
        left_out = self._left_out(smoothings, full)
        made = [
            Point(float(value), gathered_folds(whole, self.folds, self.fold_size, own))
            for value, whole, own in zip(smoothings, full, left_out, strict=True)
        ]
        return [made[i : i + width] for i in range(0, len(made), width)]

    def _aligned(self, smoothing: float) -> list[Alignment]:
        """The alignments of all landmarks with this smoothing, at every rigidity."""
        estimator = self.position(smoothing)
        if self.rigidities is None:
            made = [looked_at(estimator, self.shapes)]
        else:
            made = estimator.along(self.shapes, self.rigidities)
        self.steps.advance(len(made))
        return made

    def _left_out(self, smoothings: Array, full: list[Alignment]) -> list[list[LeftOut]]:
        """Every fold of every position: by stacks where one decomposition reaches, else by fits."""
        rigidities = self.rigidities if self.rigidities is not None else [None]
        own = [*rigidities] * (len(smoothings) // len(rigidities))
        sets, anchor = self._common(np.unique(smoothings))
        near = within_reach(smoothings, anchor) & (sets is not None)
        outcomes: dict[int, list[LeftOut]] = {}
        if sets is not None and near.any():
            chosen = np.flatnonzero(near)
            factors = smoothings[chosen] / anchor
            if self.rigidities is not None:
                factors = np.column_stack([factors, [own[t] for t in chosen]])
            whole = [full[t] for t in chosen]
            made = left_out_by_stacks(sets, factors, whole, self.folds, self.n_jobs, self.steps)
            outcomes.update(zip(chosen.tolist(), made, strict=True))
        for t in np.flatnonzero(~near).tolist():
            outcomes[t] = left_out_by_refits(
                self.position(smoothings[t], own[t]), full[t], self.folds, self.n_jobs, self.steps
            )
        return [outcomes[t] for t in range(len(smoothings))]

    def _common(self, values: Array) -> tuple[FoldSets | None, float]:
        """What the folds share, with the smoothing in the middle of the values, ascending."""
        positive = values[values > 0.0]
        if not len(positive):
            return None, 1.0
        anchor = float(np.sqrt(positive[0] * positive[-1]))
        if not _scales_with_smoothing(_smoothed(self.warp, anchor), self.shapes):
            return None, anchor
        return FoldSets.of(self.position(anchor), self.shapes), anchor


def within_reach(values: Array, anchor: float) -> Mask:
    """Which amounts of smoothing one decomposition, made at the anchor, serves: to all digits."""
    return np.asarray((values >= anchor / 1e5) & (values <= anchor * 1e5))


def smooth_warp(estimator: Any) -> Any:
    """The warp of the estimator, if it has a smoothing to choose."""
    warp = getattr(estimator, "warp", type(estimator))
    warp = ThinPlateSpline() if warp is None else warp
    bound = is_dataclass(warp) and not isinstance(warp, type)
    if not bound or "smoothing" not in {field.name for field in fields(warp)}:
        raise TypeError(
            "The 'estimator' parameter of select_smoothing must have a warp with a 'smoothing', "
            f"such as DefGPA(ThinPlateSpline()). Got {estimator!r} instead."
        )
    return warp


def _smoothed(warp: Any, value: float) -> Any:
    """The same warp with another smoothing, relative whatever it was before."""
    absolute = {"theta": None} if any(f.name == "theta" for f in fields(warp)) else {}
    return replace(warp, smoothing=float(value), **absolute)


def _scales_with_smoothing(warp: Any, shapes: Shapes) -> bool:
    """Whether the penalty is proportional to the smoothing, and nothing else depends on it."""
    own = shapes.points[0][shapes.visible[0]]
    one, two = warp.basis(own), _smoothed(warp, 2.0 * warp.smoothing).basis(own)
    return bool(
        np.array_equal(one.features(own), two.features(own))
        and np.allclose(2.0 * one.penalty(), two.penalty(), rtol=1e-12, atol=0.0)
    )
