"""One estimator with many amounts of smoothing: what does not depend on them is made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from defgpa._arrays import Array, Index
from defgpa.alignment import Alignment
from defgpa.errors import DegenerateShapeError
from defgpa.evaluate._folds import LeftOut, Steps, require_all_fitted
from defgpa.evaluate._prediction import predicted_by_refits, predicted_by_stacks
from defgpa.evaluate._refit import Trial, gathered, quietly_fitted
from defgpa.evaluate._stacked_folds import StackedFolds, stacked_folds
from defgpa.shapes import Shapes
from defgpa.warps import ThinPlateSpline

_REACH = 1e5  # one decomposition serves smoothing up to this factor away without losing digits


@dataclass(frozen=True)
class Point:
    """The figures at one amount of smoothing."""

    value: float
    cve: float
    rmse_reference: float
    rmse_datum: float
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Sweep:
    """One estimator with many amounts of smoothing, on the same shapes and folds."""

    estimator: Any
    warp: Any
    shapes: Shapes
    folds: tuple[Index, ...]
    n_jobs: int | None
    steps: Steps

    def smoothed(self, value: float) -> Any:
        """A fresh estimator with this smoothing."""
        return clone(self.estimator).set_params(warp=_smoothed(self.warp, value))

    def at(self, values: Array) -> list[Point]:
        """The figures at these amounts of smoothing, ascending."""
        trials, points = [], []
        for value in values:
            full = quietly_fitted(self.smoothed(value), self.shapes)
            trials.append(Trial(self.smoothed(value), full.reference))
            points.append(_figures(value, full))
            self.steps.advance()
        outcomes = self._left_out(values, trials)
        for outcome in outcomes:
            require_all_fitted(outcome, self.folds, self.shapes)
        return [
            replace(point, cve=self._error(trial, outcome))
            for point, trial, outcome in zip(points, trials, outcomes, strict=True)
        ]

    def _error(self, trial: Trial, outcome: Sequence[LeftOut]) -> float:
        """CVE."""
        counted = self.shapes.visible & (self.shapes.views >= 2)
        predicted = gathered(outcome, self.folds, self.shapes.visible)
        squares = ((predicted - trial.reference)[counted] ** 2).sum(axis=1)
        return float(np.sqrt(squares.mean()))

    def _left_out(self, values: Array, trials: list[Trial]) -> list[list[LeftOut]]:
        """Every fold of every value: by stacks where one decomposition reaches, else by fits."""
        common, anchor = self._common(values)
        near = np.zeros(len(values), dtype=bool)
        outcomes: dict[int, list[LeftOut]] = {}
        if common is not None:
            near = (values >= anchor / _REACH) & (values <= anchor * _REACH)
            chosen = np.flatnonzero(near)
            made = predicted_by_stacks(
                common,
                values[chosen] / anchor,
                [trials[t] for t in chosen],
                self.shapes,
                self.folds,
                self.n_jobs,
                self.steps,
            )
            outcomes.update(zip(chosen.tolist(), made, strict=True))
        others = np.flatnonzero(~near)
        made = predicted_by_refits(
            [trials[t] for t in others], self.shapes, self.folds, self.n_jobs, self.steps
        )
        outcomes.update(zip(others.tolist(), made, strict=True))
        return [outcomes[t] for t in range(len(values))]

    def _common(self, values: Array) -> tuple[StackedFolds | None, float]:
        """What the folds share, with the smoothing in the middle of the values."""
        positive = values[values > 0.0]
        if not len(positive):
            return None, 1.0
        anchor = float(np.sqrt(positive[0] * positive[-1]))
        if not _scales_with_smoothing(_smoothed(self.warp, anchor), self.shapes):
            return None, anchor
        return stacked_folds(self.smoothed(anchor), self.shapes), anchor


def _figures(value: float, full: Alignment) -> Point:
    """All figures but the CVE; RMSE_d is NaN where some warp has no inverse."""
    try:
        datum = full.rmse_datum
    except DegenerateShapeError:
        datum = np.nan
    return Point(float(value), np.nan, full.rmse_reference, datum, full.diagnostics.warnings)


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
