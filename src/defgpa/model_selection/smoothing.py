"""How stiff the warps should be: the amount of smoothing that predicts best.

Of the elastic family also how rigid: smoothing and rigidity are chosen together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from defgpa.alignment import Alignment
from defgpa.alignment_problems import DeformableProblem
from defgpa.arrays import Array, Index, Mask, Progress, freeze
from defgpa.diagnostics.checks import drop_lone_landmarks, refuse_degenerate_shapes
from defgpa.diagnostics.findings import warn_about
from defgpa.errors import DefgpaError, DegenerateShapeError
from defgpa.estimators import ElasticGPA, EuclideanGPA, prepare_problem
from defgpa.geometry import measure_geometry
from defgpa.lone_landmarks import place_lone_landmarks
from defgpa.model_selection.cross_validation import (
    CrossValidation,
    align_without_warning,
    can_keep_bases,
    collect_predictions,
    consecutive_folds,
    fix_robust_weights,
    leave_folds_out,
)
from defgpa.model_selection.fold_predictions import FoldPlan, predict_folds
from defgpa.model_selection.smoothing_path import (
    DialSurface,
    SmoothingPath,
    choose_index,
    choose_position,
    find_least,
    find_path_findings,
)
from defgpa.shapes import Shapes, ShapesLike, as_shapes
from defgpa.warps import ThinPlateSpline

DEFAULT_GRID = np.logspace(-7.0, 1.0, 9)
N_REFINED = 3  # further values in each of the two intervals beside the best of the default grid
DIAL_SMOOTHING = np.logspace(-7.0, 0.0, 8)
DIAL_RIGIDITY = np.array([0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0, np.inf])
FINER_FACTORS = 10.0 ** np.array([-0.5, -0.25, 0.25, 0.5])  # of the best of the dial's smoothings
MAX_SCALE = 1e5  # of the penalty, up and down, that one decomposition serves to all digits


def select_smoothing(
    estimator: Any,
    shapes: ShapesLike,
    grid: ArrayLike | None = None,
    fold_size: int = 1,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    rigidities: ArrayLike | None = None,
) -> SmoothingPath:
    """Choose the smoothing that predicts left-out landmarks best, with the figures along the way.

    Parameters
    ----------
    estimator : DefGPA or ElasticGPA
        Its ``warp`` must have a ``smoothing``; an absolute ``theta`` is replaced by it. The
        estimator is copied, never changed.
    shapes : Shapes, array (n, m, d) with NaN, or list of arrays (m, d)
        What to align.
    grid : array (k,), optional
        Amounts of smoothing to try. By default 1e-7, 1e-6, … 10, and then more finely (a quarter
        of a decade) on both sides of the best of them.
    fold_size, n_jobs, progress
        As in ``cross_validate``; ``progress`` counts fits and folds of all values.
    rigidities : array (r,), optional
        Of an ElasticGPA: the rigidities to try with every smoothing.

    Returns
    -------
    SmoothingPath
        Of an ElasticGPA a ``DialSurface``, which is one too: smoothing and rigidity are chosen
        together, and ``surface`` has the error at all of them.
        ``best`` is an estimator ready to be fitted; ``at_edge`` tells whether the minimum is at
        an end of the values (a DefgpaWarning says so too), ``parting`` where RMSE_r and RMSE_d
        part ways.

    Notes
    -----
    What the shapes are made of (control points, features, their products) does not depend on the
    smoothing and is shared by all values; folds are left out as in ``cross_validate``.

    Of an ElasticGPA without ``grid`` and ``rigidities``, the dial of smoothing 1e-7, 1e-6, … 1 and
    rigidity 0 (DefGPA), 1e-3, 1e-2, … 10 and infinity is searched: every second of both, then the
    neighbours of the best until none of them is better, all smoothings at its rigidity, and finer
    ones beside it. What was not tried is NaN in ``surface``.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> from defgpa.model_selection import select_smoothing
    >>> rng = np.random.default_rng(0)
    >>> base = rng.uniform(-2, 2, size=(40, 2))
    >>> shapes = [base + 0.3 * np.sin(base[:, ::-1] + phase) for phase in range(6)]
    >>> shapes = np.array(shapes) + 0.02 * rng.normal(size=(6, 40, 2))
    >>> path = select_smoothing(defgpa.DefGPA(), shapes, grid=[1e-6, 1e-4, 1e-2, 1.0])
    >>> path.best_value
    0.0001
    >>> path.best.fit(shapes).reference_.shape
    (40, 2)
    """
    shapes = as_shapes(shapes)
    refuse_degenerate_shapes(measure_geometry(shapes.points, shapes.visible), shapes.names)
    values = None if grid is None else _validate_grid(grid)
    is_elastic = isinstance(estimator, ElasticGPA)
    if rigidities is not None and not is_elastic:
        raise TypeError(
            "The 'rigidities' parameter of select_smoothing is for an ElasticGPA. "
            f"Got {estimator!r} instead."
        )
    columns = _validate_rigidities(rigidities) if is_elastic else None
    folds = consecutive_folds(shapes.n_landmarks, fold_size)
    warp = find_smooth_warp(estimator)
    unweighted, weighted, rejections = fix_robust_weights(estimator, shapes)
    anchor = find_anchor(DEFAULT_GRID if values is None else values)
    steps = Steps(progress)
    sweep = Sweep(unweighted, warp, weighted, folds, fold_size, n_jobs, steps, anchor)
    if columns is None:
        path = _make_path(sweep, sweep.search_line(values))
    else:
        is_searched = grid is None and rigidities is None
        points = sweep.search_dial(columns) if is_searched else sweep.fill_dial(values, columns)
        path = _make_surface(sweep, points, columns)
    if unweighted is not estimator:
        path.best.set_params(robust=estimator.robust)
        path = replace(path, findings=(*rejections, *path.findings))
    warn_about(path.findings)
    return path


class Steps:
    """How much is done of how much, reported to a listener."""

    def __init__(self, listener: Progress | None) -> None:
        self.total, self.done, self._listener = 0, 0, listener

    def report(self, n_done: int, total: int) -> None:
        """Report that ``n_done`` of the next ``total`` steps are done; if all are, begin anew."""
        if self._listener is not None:
            self._listener(self.done + n_done, self.total)
        if n_done == total:
            self.done += total


@dataclass(frozen=True, eq=False)
class Point:
    """What one smoothing (and rigidity) gave: the alignment of all landmarks, and every fold."""

    smoothing: float
    rigidity: float | None
    cross_validation: CrossValidation

    @property
    def alignment(self) -> Alignment:
        """The alignment of all landmarks."""
        return self.cross_validation.alignment

    @property
    def error(self) -> float:
        """The cross-validation error."""
        return self.cross_validation.error


@dataclass(frozen=True, eq=False)
class Sweep:
    """One estimator with many amounts of smoothing and rigidity, on the same shapes and folds."""

    estimator: Any
    warp: Any
    shapes: Shapes
    folds: tuple[Index, ...]
    fold_size: int
    n_jobs: int | None
    steps: Steps
    anchor: float  # the smoothing at which the warps are eliminated

    def search_line(self, values: Array | None) -> list[Point]:
        """Evaluate every smoothing; by default those of the grid, then more beside the best."""
        if values is not None:
            self.expect(len(values))
            return [self.evaluate(value)[0] for value in values]
        self.expect(len(DEFAULT_GRID) + 2 * N_REFINED)
        points = [self.evaluate(value)[0] for value in DEFAULT_GRID]
        best = find_least(np.array([point.error for point in points]))
        sides = [i for i in (best - 1, best + 1) if 0 <= i < len(DEFAULT_GRID)]
        self.expect((len(sides) - 2) * N_REFINED)
        for side in sides:
            finer = np.geomspace(DEFAULT_GRID[best], DEFAULT_GRID[side], N_REFINED + 2)[1:-1]
            points += [self.evaluate(value)[0] for value in finer]
        return sorted(points, key=lambda point: point.smoothing)

    def fill_dial(self, values: Array | None, rigidities: Array) -> list[Point]:
        """Evaluate every smoothing at every rigidity; by default of the dial, and finer."""
        smoothings = DIAL_SMOOTHING if values is None else values
        self.expect(len(smoothings) * len(rigidities))
        points = [p for value in smoothings for p in self.evaluate(value, rigidities)]
        if values is None:
            best = min(points, key=lambda point: point.error)
            self.expect(len(FINER_FACTORS) * len(rigidities))
            for value in best.smoothing * FINER_FACTORS:
                points += self.evaluate(value, rigidities)
        return points

    def search_dial(self, rigidities: Array) -> list[Point]:
        """Search the dial: every second position, then neighbours of the best, then finer ones."""
        shape = len(DIAL_SMOOTHING), len(rigidities)
        points: dict[tuple[int, int], Point] = {}
        coarse = [(i, j) for i in range(1, shape[0], 2) for j in range(0, shape[1], 2)]
        while coarse:
            self.expect(len(coarse))
            for row in sorted({i for i, _ in coarse}):
                columns = [j for i, j in coarse if i == row]
                row_points = self.evaluate(DIAL_SMOOTHING[row], rigidities[columns])
                points |= {(row, j): point for j, point in zip(columns, row_points, strict=True)}
            best = min(points, key=lambda position: points[position].error)
            column = [(i, best[1]) for i in range(shape[0])]  # is drawn as a curve
            coarse = [p for p in _list_neighbours(best, shape) if p not in points]
            coarse = coarse or [p for p in column if p not in points]
        columns = [j for j in range(best[1] - 1, best[1] + 2) if 0 <= j < shape[1]]
        self.expect(len(FINER_FACTORS) * len(columns))
        finer = DIAL_SMOOTHING[best[0]] * FINER_FACTORS
        fine = [p for value in finer for p in self.evaluate(value, rigidities[columns])]
        return [*points.values(), *fine]

    def expect(self, n_points: int) -> None:
        """Announce that so many further points are evaluated: a fit, and every fold."""
        self.steps.total += n_points * (len(self.folds) + 1)

    def make_estimator(self, smoothing: float, rigidity: float | None = None) -> Any:
        """Make a new estimator with this smoothing and, if it has one, this rigidity."""
        fresh = clone(self.estimator).set_params(warp=set_smoothing(self.warp, smoothing))
        return fresh if rigidity is None else fresh.set_params(rigidity=float(rigidity))

    def evaluate(
        self, smoothing: float, rigidities: Iterable[float | None] = (None,)
    ) -> list[Point]:
        """Fit and cross-validate one smoothing at several rigidities (None: there is none)."""
        smoothing = float(smoothing)
        pairs = [(rigidity, self.make_estimator(smoothing, rigidity)) for rigidity in rigidities]
        problem = self._find_problem(smoothing)
        if problem is None:
            return [self._refit(smoothing, *pair) for pair in pairs]
        positions = []
        for _, estimator in pairs:
            alignment = place_lone_landmarks(problem.align(estimator.dial), self.shapes)
            positions.append((estimator.dial, alignment))
            self.steps.report(1, 1)
        left_out = predict_folds(problem, positions, self._plan, self.steps.report)
        points = []
        for (rigidity, _), (_, full), folds in zip(pairs, positions, left_out, strict=True):
            validated = collect_predictions(full, folds, self.folds, self.fold_size)
            points.append(Point(smoothing, rigidity, validated))
        return points

    def _refit(self, smoothing: float, rigidity: float | None, estimator: Any) -> Point:
        """Fit every fold from scratch."""
        full, _ = align_without_warning(estimator, self.shapes, screening=False)
        self.steps.report(1, 1)
        fold_size, n_jobs, report = self.fold_size, self.n_jobs, self.steps.report
        validated = leave_folds_out(estimator, full, None, fold_size, n_jobs, report, refit=True)
        return Point(smoothing, rigidity, validated)

    @cached_property
    def _plan(self) -> FoldPlan:
        geometry = drop_lone_landmarks(self.shapes).geometry.project_to_planes()
        return FoldPlan(geometry, self.shapes, self.folds)

    def _find_problem(self, smoothing: float) -> DeformableProblem | None:
        """Return the shapes with warps eliminated, from the common decomposition if it serves.

        None where each fold must be fitted again.
        """
        scale = smoothing / self.anchor if self.anchor > 0.0 else 0.0
        if 1.0 / MAX_SCALE <= scale <= MAX_SCALE and self._common is not None:
            return self._common.scale_penalty(scale)
        estimator = self.make_estimator(smoothing)
        keeps_bases = can_keep_bases(estimator, self.shapes)
        return prepare_problem(estimator, self.shapes) if keeps_bases else None

    @cached_property
    def _common(self) -> DeformableProblem | None:
        """The warps eliminated at the anchor, where all penalties follow from one decomposition."""
        warp = set_smoothing(self.warp, self.anchor)
        keeps_bases = can_keep_bases(self.estimator, self.shapes)
        if not (keeps_bases and scales_with_smoothing(warp, self.shapes)):
            return None
        problem = prepare_problem(self.make_estimator(self.anchor), self.shapes)
        return problem if problem.cost.storage == "StoredFactor" else None


def _list_neighbours(position: tuple[int, int], shape: tuple[int, int]) -> list[tuple[int, int]]:
    """List the positions of a grid at most one row and one column away."""
    rows, columns = (
        range(max(i - 1, 0), min(i + 2, n)) for i, n in zip(position, shape, strict=True)
    )
    return [(i, j) for i in rows for j in columns]


def find_anchor(values: Array) -> float:
    """Return the amount of smoothing in the middle of the positive values, 0 if there is none."""
    positive = values[values > 0.0]
    return float(np.sqrt(positive.min() * positive.max())) if len(positive) else 0.0


def find_smooth_warp(estimator: Any) -> Any:
    """Return the warp of the estimator; raise if it has no smoothing to choose."""
    warp = getattr(estimator, "warp", type(estimator))
    warp = ThinPlateSpline() if warp is None else warp
    is_instance = is_dataclass(warp) and not isinstance(warp, type)
    if not is_instance or "smoothing" not in {field.name for field in fields(warp)}:
        raise TypeError(
            "The 'estimator' parameter of select_smoothing must have a warp with a 'smoothing', "
            f"such as DefGPA(ThinPlateSpline()). Got {estimator!r} instead."
        )
    return warp


def set_smoothing(warp: Any, value: float) -> Any:
    """Return the warp with another smoothing, relative whatever it was before."""
    absolute = {"theta": None} if any(f.name == "theta" for f in fields(warp)) else {}
    return replace(warp, smoothing=float(value), **absolute)


def scales_with_smoothing(warp: Any, shapes: Shapes) -> bool:
    """Return whether the penalty is proportional to the smoothing, and all else independent."""
    points = shapes.points[0][shapes.visible[0]]
    basis = warp.basis(points)
    doubled_basis = set_smoothing(warp, 2.0 * warp.smoothing).basis(points)
    return bool(
        np.array_equal(basis.features(points), doubled_basis.features(points))
        and np.allclose(2.0 * basis.penalty(), doubled_basis.penalty(), rtol=1e-12, atol=0.0)
    )


def _make_path(sweep: Sweep, points: Sequence[Point]) -> SmoothingPath:
    """Make the path of a deformable estimator, and choose its smoothing."""
    cve = np.array([point.error for point in points])
    spread = np.array([point.cross_validation.standard_error for point in points])
    is_sound = _find_sound(
        sweep.shapes, [point.alignment for point in points], lambda s: choose_index(cve, spread, s)
    )
    index = choose_index(cve, spread, is_sound)
    best = sweep.make_estimator(points[index].smoothing)
    validated = _refit_point(points[index], best)
    alignments = [point.alignment for point in points]
    alignments[index] = validated.alignment
    path = SmoothingPath(
        freeze(np.array([point.smoothing for point in points])),
        freeze(cve),
        tuple(alignments),
        best=best,
        standard_error=freeze(spread),
        cross_validation=validated,
        sound=freeze(is_sound),
    )
    return replace(path, findings=find_path_findings(path))


def _make_surface(sweep: Sweep, points: Sequence[Point], rigidities: Array) -> DialSurface:
    """Make the surface of an elastic estimator, and choose smoothing and rigidity together."""
    values = np.unique([point.smoothing for point in points])
    shape = len(values), len(rigidities)
    cve, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    table: dict[tuple[int, int], Point] = {}
    for point in points:
        position = (
            int(np.searchsorted(values, point.smoothing)),
            rigidities.tolist().index(point.rigidity),
        )
        table[position] = point
        cve[position], spread[position] = point.error, point.cross_validation.standard_error
    alignments = [table[p].alignment if p in table else None for p in np.ndindex(shape)]

    def choose_flat(is_sound: Mask) -> int:
        return int(np.ravel_multi_index(choose_position(cve, is_sound.reshape(shape)), shape))

    is_sound = _find_sound(sweep.shapes, alignments, choose_flat).reshape(shape)
    row, column = choose_position(cve, is_sound)
    best = sweep.make_estimator(values[row], rigidities[column])
    validated = _refit_point(table[row, column], best)
    best_column = alignments[column :: shape[1]]
    best_column[row] = validated.alignment
    surface = DialSurface(
        freeze(values),
        freeze(cve[:, column]),
        tuple(best_column),
        best=best,
        standard_error=freeze(spread[:, column]),
        cross_validation=validated,
        rigidities=freeze(np.array(rigidities)),
        surface=freeze(cve),
        surface_error=freeze(spread),
        surface_sound=freeze(is_sound),
    )
    return replace(surface, findings=find_path_findings(surface))


def _find_sound(
    shapes: Shapes, alignments: Sequence[Alignment | None], choose: Callable[[Mask], int]
) -> Mask:
    """Return which alignments may be chosen: ``is_sound``, as far as that matters for the choice.

    It takes as long as a fit, so only what would be chosen is asked. Where nothing is left, folds
    alone decide.
    """
    limit = measure_rigid(shapes)
    sound = np.ones(len(alignments), dtype=bool)
    while sound.any():
        index = choose(sound)
        alignment = alignments[index]
        if not sound[index]:
            break
        if alignment is not None and is_sound(alignment, limit):
            return sound
        sound[index] = False
    return np.array([a is not None and not a.foldovers.any() for a in alignments])


def measure_rigid(shapes: Shapes) -> float:
    """Return RMSE_d of rigid alignment, which no automatic choice may exceed."""
    try:
        return float(EuclideanGPA(scaling=True).solve(shapes)[0].rmse_datum)
    except DefgpaError:  # shapes that only warps can link
        return float("inf")


def is_sound(alignment: Alignment, rigid_rmse_datum: float) -> bool:
    """Return whether no warp folds over and RMSE_d is not above that of rigid alignment."""
    if alignment.foldovers.any():
        return False
    try:
        return bool(alignment.rmse_datum <= rigid_rmse_datum * (1.0 + 1e-6))
    except DegenerateShapeError:  # a warp has no inverse
        return False


def _refit_point(point: Point, estimator: Any) -> CrossValidation:
    """Return the folds of a point by a separate fit, whose bases have its smoothing."""
    validated = point.cross_validation
    alignment, _ = align_without_warning(estimator, validated.alignment.shapes)
    return replace(validated, alignment=alignment)


def _validate_grid(grid: ArrayLike) -> Array:
    values = np.unique(np.asarray(grid, dtype=np.float64))
    if not len(values) or not (np.isfinite(values).all() and (values >= 0.0).all()):
        raise ValueError(
            "The 'grid' parameter of select_smoothing must hold numbers of at least 0. "
            f"Got {grid!r} instead."
        )
    return values


def _validate_rigidities(rigidities: ArrayLike | None) -> Array:
    """Return the rigidities in ascending order; raise a ValueError if one is not a rigidity."""
    if rigidities is None:
        return DIAL_RIGIDITY
    values = np.unique(np.asarray(rigidities, dtype=np.float64))
    if not len(values) or not (values >= 0.0).all():
        raise ValueError(
            "The 'rigidities' parameter of select_smoothing must hold numbers from 0 to infinity. "
            f"Got {rigidities!r} instead."
        )
    return values
