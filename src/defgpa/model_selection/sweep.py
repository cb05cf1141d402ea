"""One estimator with many amounts of smoothing: the warps of all of them are eliminated once."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index
from defgpa.errors import DegenerateShapeError
from defgpa.estimators import DeformableProblem, ElasticProblem
from defgpa.model_selection.cross_validation import (
    CrossValidation,
    FoldedModel,
    align_problem,
    validate_folds,
)
from defgpa.model_selection.folds import (
    Steps,
    align_without_warning,
    consecutive_folds,
    prepare_leave_out,
)
from defgpa.shapes import Shapes
from defgpa.warps import ThinPlateSpline

MAX_SCALE = 1e5  # of the penalty, up and down, that one decomposition serves to all digits


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
    anchor: float  # the smoothing at which the warps are eliminated
    rigidities: Array | None = None  # of an ElasticGPA

    @cached_property
    def folds(self) -> tuple[Index, ...]:
        """The landmarks of each fold."""
        return consecutive_folds(self.shapes.n_landmarks, self.fold_size)

    def make_estimator(self, smoothing: float, rigidity: float | None = None) -> Any:
        """Make a fresh estimator with this smoothing, and this rigidity if it has one."""
        fresh = clone(self.estimator).set_params(warp=_set_smoothing(self.warp, smoothing))
        return fresh if rigidity is None else fresh.set_params(rigidity=float(rigidity))

    def evaluate(self, values: Array) -> list[list[Point]]:
        """Evaluate every smoothing (row) at every rigidity (column; one without rigidities)."""
        return [self._evaluate_row(float(value)) for value in values]

    def _evaluate_row(self, smoothing: float) -> list[Point]:
        problem = self._find_problem(smoothing)
        row = []
        for rigidity in [None] if self.rigidities is None else self.rigidities:
            estimator = self.make_estimator(smoothing, rigidity)
            if problem is None:
                model = FoldedModel(estimator, self._align(estimator), None)
            else:
                dial = None if rigidity is None else estimator.dial
                full = align_problem(problem, dial, self.shapes)
                if rigidity is None:
                    full = estimator.add_input_findings(full)
                model = FoldedModel(estimator, full, problem, dial)
            self.steps.advance()
            validated = validate_folds(model, self.folds, self.fold_size, self.n_jobs, self.steps)
            row.append(Point(smoothing, validated))
        return row

    def _align(self, estimator: Any) -> Alignment:
        if self.rigidities is None:
            return align_without_warning(estimator, self.shapes)
        alignment: Alignment = estimator.solve(self.shapes)
        return alignment

    def _find_problem(self, smoothing: float) -> DeformableProblem | ElasticProblem | None:
        """Return the shapes with warps eliminated, from the common decomposition if it serves."""
        scale = smoothing / self.anchor if self.anchor > 0.0 else 0.0
        if 1.0 / MAX_SCALE <= scale <= MAX_SCALE and self._common is not None:
            return self._common.scale_penalty(scale)
        return prepare_leave_out(self.make_estimator(smoothing), self.shapes)

    @cached_property
    def _common(self) -> DeformableProblem | ElasticProblem | None:
        """The warps eliminated at the anchor, where all penalties follow from one decomposition."""
        if not _scales_with_smoothing(_set_smoothing(self.warp, self.anchor), self.shapes):
            return None
        problem = prepare_leave_out(self.make_estimator(self.anchor), self.shapes)
        deformable = problem.deformable if isinstance(problem, ElasticProblem) else problem
        if deformable is None or deformable.cost.storage != "StoredFactor":
            return None
        return problem


def find_anchor(values: Array) -> float:
    """Return the amount of smoothing in the middle of the positive values, 0 if there is none."""
    positive = values[values > 0.0]
    return float(np.sqrt(positive.min() * positive.max())) if len(positive) else 0.0


def find_smooth_warp(estimator: Any) -> Any:
    """Return the warp of the estimator; raise if it has no smoothing to choose."""
    warp = getattr(estimator, "warp", type(estimator))
    warp = ThinPlateSpline() if warp is None else warp
    bound = is_dataclass(warp) and not isinstance(warp, type)
    if not bound or "smoothing" not in {field.name for field in fields(warp)}:
        raise TypeError(
            "The 'estimator' parameter of select_smoothing must have a warp with a 'smoothing', "
            f"such as DefGPA(ThinPlateSpline()). Got {estimator!r} instead."
        )
    return warp


def _set_smoothing(warp: Any, value: float) -> Any:
    """Return the warp with another smoothing, relative whatever it was before."""
    absolute = {"theta": None} if any(f.name == "theta" for f in fields(warp)) else {}
    return replace(warp, smoothing=float(value), **absolute)


def _scales_with_smoothing(warp: Any, shapes: Shapes) -> bool:
    """Return whether the penalty is proportional to the smoothing, and all else independent."""
    points = shapes.points[0][shapes.visible[0]]
    basis = warp.basis(points)
    doubled = _set_smoothing(warp, 2.0 * warp.smoothing).basis(points)
    return bool(
        np.array_equal(basis.features(points), doubled.features(points))
        and np.allclose(2.0 * basis.penalty(), doubled.penalty(), rtol=1e-12, atol=0.0)
    )
