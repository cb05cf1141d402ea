r"""How stiff the warps should be: the amount of smoothing that predicts best.

Two signs tell over-fitting, and both need figures that the fit does not minimise: landmarks that
were left out are predicted worse (CVE rises), and the error in the space of the shapes stops
following the one in the space of the reference (RMSE_d rises while RMSE_r falls).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from defgpa._arrays import Array, frozen
from defgpa.errors import DefgpaWarning
from defgpa.estimators import ShapesLike
from defgpa.evaluate._folds import Progress, Steps, consecutive_folds, kind_of
from defgpa.evaluate._sweep import Point, Sweep, smooth_warp
from defgpa.shapes import as_shapes

DEFAULT_GRID = np.logspace(-7.0, 1.0, 9)
REFINED = 3  # further values in each of the two intervals beside the best of the default grid
CLIMB = 1.01  # RMSE_d rises when it is one per cent above its lowest value so far
_TIED = 1.0 + 1e-9  # errors this close are the same


@dataclass(frozen=True, eq=False)
class SmoothingPath:
    """The error figures along amounts of smoothing; immutable.

    Attributes
    ----------
    values : array (k,)
        The relative smoothing τ, ascending.
    cve, rmse_reference, rmse_datum : array (k,)
        The cross-validation error, RMSE_r and RMSE_d at each (RMSE_d is NaN where some warp has
        no inverse).
    best : estimator
        A fresh, unfitted copy of the estimator with the smoothing that has the smallest CVE.

    See Also
    --------
    select_smoothing : makes it.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([1e-3, 1e-2, 1e-1, 1.0])
    >>> cve, datum = np.array([4.0, 2.0, 3.0, 5.0]), np.array([6.0, 1.9, 2.5, 4.5])
    >>> path = SmoothingPath(values, cve, 0.9 * cve, datum, best=None)
    >>> path.best_value, path.at_edge, path.parting
    (0.01, False, 0.01)
    """

    values: Array
    cve: Array
    rmse_reference: Array
    rmse_datum: Array
    best: Any

    @property
    def best_value(self) -> float:
        """The smoothing of the smallest CVE; of several, the stiffest."""
        return float(self.values[self._best])

    @property
    def at_edge(self) -> bool:
        """Whether the smallest CVE is at either end of the values: the best may lie beyond."""
        return self._best in (0, len(self.values) - 1)

    @property
    def parting(self) -> float | None:
        """Where RMSE_r and RMSE_d part ways, the second sign of over-fitting.

        With less and less smoothing RMSE_r falls, and RMSE_d with it at first. This is where
        RMSE_d is lowest before it first climbs more than one per cent above that; None if it
        never does.
        """
        towards_soft = self.rmse_datum[::-1]
        lowest = np.fmin.accumulate(towards_soft)
        climbed = np.flatnonzero(~(towards_soft <= CLIMB * lowest) & ~np.isnan(lowest))
        if not len(climbed):
            return None
        return float(self.values[::-1][np.nanargmin(towards_soft[: climbed[0]])])

    @property
    def _best(self) -> int:
        return _best_index(self.cve)

    def __repr__(self) -> str:
        low, high = self.values[0], self.values[-1]
        return (
            f"SmoothingPath(best_value={self.best_value:.3g}, cve={self.cve[self._best]:.6g}, "
            f"{len(self.values)} values from {low:.3g} to {high:.3g})"
        )


def select_smoothing(
    estimator: Any,
    shapes: ShapesLike,
    grid: ArrayLike | None = None,
    fold_size: int = 1,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> SmoothingPath:
    """The smoothing that predicts left-out landmarks best, and the figures along the way.

    Parameters
    ----------
    estimator : DefGPA
        Its ``warp`` must have a ``smoothing``; an absolute ``theta`` is replaced by it. The
        estimator is copied, never changed.
    shapes : Shapes, array (n, m, d) with NaN, or list of arrays (m, d)
        What to align.
    grid : array (k,), optional
        Amounts of smoothing to try. By default 1e-7, 1e-6, … 10, and then more finely (a quarter
        of a decade) on both sides of the best of them.
    fold_size, n_jobs, progress
        As in ``cross_validate``; ``progress`` counts fits and folds of all values.

    Returns
    -------
    SmoothingPath
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
    folds = consecutive_folds(shapes.n_landmarks, fold_size)
    values = DEFAULT_GRID if grid is None else _checked_grid(grid)
    more = 0 if grid is not None else 2 * REFINED
    steps = Steps((len(values) + more) * (len(folds) + 1), progress)
    sweep = Sweep(estimator, smooth_warp(estimator), shapes, folds, n_jobs, steps)
    points = sweep.at(values)
    if grid is None:
        points += sweep.at(_finer(values, _best_index(np.array([p.cve for p in points])), steps))
    points.sort(key=lambda point: point.value)
    _tell_worries(points)
    return _told_at_edge(_path(sweep, points))


def _path(sweep: Sweep, points: Sequence[Point]) -> SmoothingPath:
    cve = np.array([point.cve for point in points])
    return SmoothingPath(
        frozen(np.array([point.value for point in points])),
        frozen(cve),
        frozen(np.array([point.rmse_reference for point in points])),
        frozen(np.array([point.rmse_datum for point in points])),
        sweep.smoothed(points[_best_index(cve)].value),
    )


def _best_index(cve: Array) -> int:
    """The last, stiffest, of the smallest errors."""
    return int(np.flatnonzero(cve <= _TIED * cve.min())[-1])


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


def _tell_worries(points: Sequence[Point]) -> None:
    """What the full fits warned of, once for all values."""
    first = {kind_of(m): m for point in reversed(points) for m in point.warnings}
    count = Counter(kind for p in points for kind in {kind_of(m) for m in p.warnings})
    for kind, message in first.items():
        told = f"At {count[kind]} of {len(points)} amounts of smoothing: {message}"
        warnings.warn(told, DefgpaWarning, stacklevel=3)


def _told_at_edge(path: SmoothingPath) -> SmoothingPath:
    """The path; with a warning if its minimum is at an end."""
    if not path.at_edge or len(path.values) == 1:
        return path
    soft = path.best_value == path.values[0]
    what = "smallest" if soft else "largest"
    remedy = (
        "Less may be better still: extend the grid downwards."
        if soft
        else "The shapes may not need to bend at all: extend the grid upwards, or compare with "
        "Affine()."
    )
    warnings.warn(
        f"The smallest cross-validation error is at the {what} smoothing tried, "
        f"{path.best_value:.3g}. {remedy}",
        DefgpaWarning,
        stacklevel=3,
    )
    return path
