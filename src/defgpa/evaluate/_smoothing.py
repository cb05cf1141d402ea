"""How stiff the warps should be: the amount of smoothing that predicts best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from defgpa._arrays import Array
from defgpa.estimators import ElasticGPA, ShapesLike
from defgpa.evaluate._dial import select_on_dial
from defgpa.evaluate._folds import Progress, Steps, consecutive_folds
from defgpa.evaluate._path import SmoothingPath, chosen_index, columns, least_index, path_findings
from defgpa.evaluate._sweep import Point, Sweep, smooth_warp
from defgpa.sentences import warn_of
from defgpa.shapes import as_shapes

DEFAULT_GRID = np.logspace(-7.0, 1.0, 9)
REFINED = 3  # further values in each of the two intervals beside the best of the default grid


def select_smoothing(
    estimator: Any,
    shapes: ShapesLike,
    grid: ArrayLike | None = None,
    fold_size: int = 1,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    rigidities: ArrayLike | None = None,
) -> SmoothingPath:
    """The smoothing that predicts left-out landmarks best, and the figures along the way.

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
    What a fold's shapes are made of (control points, features, their products) does not depend
    on the smoothing and is shared by all values.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> from defgpa.evaluate import select_smoothing
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
    if isinstance(estimator, ElasticGPA):
        values = None if grid is None else _checked_grid(grid)
        found = select_on_dial(estimator, shapes, values, rigidities, fold_size, n_jobs, progress)
        warn_of(found.findings)
        return found
    n_folds = len(consecutive_folds(shapes.n_landmarks, fold_size))
    values = DEFAULT_GRID if grid is None else _checked_grid(grid)
    more = 0 if grid is not None else 2 * REFINED
    steps = Steps((len(values) + more) * (n_folds + 1), progress)
    sweep = Sweep(estimator, smooth_warp(estimator), shapes, fold_size, n_jobs, steps)
    points = sweep.at(values)
    if grid is None:
        least = least_index(np.array([point.cross_validation.error for point in points]))
        points += sweep.at(_finer(values, least, steps))
    points.sort(key=lambda point: point.value)
    path = _path(sweep, points)
    warn_of(path.findings)
    return path


def _path(sweep: Sweep, points: Sequence[Point]) -> SmoothingPath:
    cve = np.array([point.cross_validation.error for point in points])
    spread = np.array([point.cross_validation.standard_error for point in points])
    foldovers = np.array([int(point.alignment.foldovers.sum()) for point in points])
    chosen = points[chosen_index(cve, spread, foldovers)]
    path = SmoothingPath(**columns(points, chosen), best=sweep.smoothed(chosen.value))
    return replace(path, findings=path_findings(path, points))


def _finer(values: Array, best: int, steps: Steps) -> Array:
    """Values between the best and its neighbours, evenly in the logarithm."""
    beside = [values[i] for i in (best - 1, best + 1) if 0 <= i < len(values)]
    steps.total -= (2 - len(beside)) * REFINED * steps.total // (len(values) + 2 * REFINED)
    between = [np.geomspace(values[best], other, REFINED + 2)[1:-1] for other in beside]
    return np.sort(np.concatenate(between))


def _checked_grid(grid: ArrayLike) -> Array:
    values = np.unique(np.asarray(grid, dtype=np.float64))
    if not len(values) or not (np.isfinite(values).all() and (values >= 0.0).all()):
        raise ValueError(
            "The 'grid' parameter of select_smoothing must hold numbers of at least 0. "
            f"Got {grid!r} instead."
        )
    return values
