"""How stiff the warps should be: the amount of smoothing that predicts best.

Of the elastic family also how rigid: smoothing and rigidity are chosen together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array, Mask, Progress, freeze
from defgpa.diagnostics.findings import warn_about
from defgpa.errors import DefgpaError
from defgpa.estimators import ElasticGPA, EuclideanGPA, fix_robust_weights
from defgpa.model_selection.folds import Steps, align_without_warning, consecutive_folds
from defgpa.model_selection.smoothing_path import (
    DialSurface,
    SmoothingPath,
    chosen_index,
    chosen_position,
    columns,
    least_index,
    path_findings,
)
from defgpa.model_selection.sweep import Point, Sweep, find_anchor, find_smooth_warp
from defgpa.shapes import Shapes, ShapesLike, as_shapes

DEFAULT_GRID = np.logspace(-7.0, 1.0, 9)
REFINED = 3  # further values in each of the two intervals beside the best of the default grid
DIAL_SMOOTHING = np.logspace(-7.0, 0.0, 8)
DIAL_RIGIDITY = np.array([0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0, np.inf])
_FINER = 10.0 ** np.array([-0.5, -0.25, 0.25, 0.5])  # of the best of the dial's smoothings


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
        Of an ElasticGPA: the rigidities to try with every smoothing, by default 0 (DefGPA), 1e-3,
        1e-2, … 10 and infinity (and smoothing 1e-7, 1e-6, … 1, then finer beside the best).

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
    given = as_shapes(shapes)
    values = None if grid is None else _validate_grid(grid)
    elastic = isinstance(estimator, ElasticGPA)
    if rigidities is not None and not elastic:
        raise TypeError(
            "The 'rigidities' parameter of select_smoothing is for an ElasticGPA. "
            f"Got {estimator!r} instead."
        )
    tried = _validate_rigidities(rigidities) if elastic else None
    more = 0
    if values is None:
        values, more = (DIAL_SMOOTHING, len(_FINER)) if elastic else (DEFAULT_GRID, 2 * REFINED)
    positions = (len(values) + more) * (1 if tried is None else len(tried))
    folds = len(consecutive_folds(given.n_landmarks, fold_size))
    steps = Steps(positions * (folds + 1), progress)
    warp = find_smooth_warp(estimator)
    anchor = find_anchor(values)
    plain, weighted = fix_robust_weights(estimator, given)
    sweep = Sweep(plain, warp, weighted, fold_size, n_jobs, steps, anchor, tried)
    rows = sweep.evaluate(values)
    if grid is None:
        rows += sweep.evaluate(
            _refine_grid(rows, steps) if tried is None else _find_best_smoothing(rows) * _FINER
        )
    rows.sort(key=lambda row: row[0].value)
    found = _make_path(sweep, rows) if tried is None else _make_surface(sweep, rows, tried)
    if plain is not estimator:
        found.best.set_params(robust=estimator.robust)
    warn_about(found.findings)
    return found


def _make_path(sweep: Sweep, rows: Sequence[Sequence[Point]]) -> SmoothingPath:
    """Choose the smoothing of a deformable estimator among rows of one point each."""
    points = [point for (point,) in rows]
    cve, spread, foldovers = (table[:, 0] for table in _tabulate(rows))
    limit = _measure_rigid(sweep.shapes)
    sound = _find_sound(points, foldovers == 0, lambda s: chosen_index(cve, spread, s), limit)
    at = points[chosen_index(cve, spread, sound)]
    best = sweep.make_estimator(at.value)
    chosen = _refit_point(at, best)
    path = SmoothingPath(**columns(points, chosen), best=best, sound=freeze(sound))
    return replace(path, findings=path_findings(path, points))


def _make_surface(sweep: Sweep, rows: Sequence[Sequence[Point]], rigidities: Array) -> DialSurface:
    """Choose smoothing and rigidity of an elastic estimator together."""
    cve, spread, foldovers = _tabulate(rows)
    flat_points = [point for row_of_points in rows for point in row_of_points]

    def choose_flat(sound: Mask) -> int:
        row, column = chosen_position(cve, sound.reshape(cve.shape))
        return row * cve.shape[1] + column

    limit = _measure_rigid(sweep.shapes)
    unfolded = (foldovers == 0).ravel()
    sound = _find_sound(flat_points, unfolded, choose_flat, limit).reshape(cve.shape)
    row, column = chosen_position(cve, sound)
    along, at = [own[column] for own in rows], rows[row][column]
    chosen_estimator = sweep.make_estimator(at.value, rigidities[column])
    chosen = _refit_point(at, chosen_estimator)
    found = DialSurface(
        **columns(along, chosen),
        best=chosen_estimator,
        rigidities=freeze(np.array(rigidities)),
        surface=freeze(cve),
        surface_error=freeze(spread),
        surface_foldovers=freeze(foldovers),
        surface_sound=freeze(sound),
    )
    seen = [own for own in chosen.alignment.findings if own not in at.alignment.findings]
    return replace(found, findings=(*seen, *path_findings(found, along)))


def _measure_rigid(shapes: Shapes) -> float:
    """Return RMSE_d of rigid alignment, which no automatic choice may exceed."""
    try:
        return float(EuclideanGPA(scaling=True).solve(shapes).rmse_datum)
    except DefgpaError:  # shapes that only warps can link
        return float("inf")


def _find_sound(
    points: Sequence[Point], unfolded: Mask, choose: Callable[[Mask], int], limit: float
) -> Mask:
    """Return where a choice is sound: no folds, and RMSE_d at most that of rigid alignment.

    RMSE_d takes as long as a fit, so only points that would be chosen are asked for theirs. Where
    no point is left, folds alone decide.
    """
    sound = unfolded.copy()
    while sound.any():
        index = choose(sound)
        if not sound[index] or points[index].rmse_datum <= limit * (1.0 + 1e-6):
            return sound
        sound[index] = False
    return unfolded


def _refit_point(point: Point, estimator: Any) -> Point:
    """Return a point with the alignment of a fit of its own, whose bases have its smoothing."""
    validated = point.cross_validation
    alignment = align_without_warning(estimator, validated.alignment.shapes)
    return replace(point, cross_validation=replace(validated, alignment=alignment))


def _error(point: Point) -> float:
    return point.cross_validation.error


def _tabulate(rows: Sequence[Sequence[Point]]) -> tuple[Array, Array, Array]:
    """Tabulate CVE, its standard error, and how many landmarks fold over, (k, r) each."""
    cve = [[_error(point) for point in row] for row in rows]
    spread = [[point.cross_validation.standard_error for point in row] for row in rows]
    foldovers = [[float(point.alignment.foldovers.sum()) for point in row] for row in rows]
    return np.array(cve), np.array(spread), np.array(foldovers)


def _find_best_smoothing(rows: Sequence[Sequence[Point]]) -> float:
    """Find the smoothing of the row with the least error."""
    return min(rows, key=lambda row: min(map(_error, row)))[0].value


def _refine_grid(rows: Sequence[Sequence[Point]], steps: Steps) -> Array:
    """Return values between the best and its neighbours, evenly in the logarithm."""
    values = [point.value for (point,) in rows]
    best = least_index(np.array([_error(point) for (point,) in rows]))
    beside = [values[i] for i in (best - 1, best + 1) if 0 <= i < len(values)]
    steps.total -= (2 - len(beside)) * REFINED * steps.total // (len(values) + 2 * REFINED)
    between = [np.geomspace(values[best], other, REFINED + 2)[1:-1] for other in beside]
    return np.sort(np.concatenate(between))


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
