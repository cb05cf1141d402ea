r"""How stiff the warps should be: the amount of smoothing that predicts best.

Two signs tell over-fitting, and both need figures that the fit does not minimise: landmarks that
were left out are predicted worse (CVE rises), and the error in the space of the shapes stops
following the one in the space of the reference (RMSE_d rises while RMSE_r falls).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from defgpa._arrays import Array, Index, frozen
from defgpa.estimators import ElasticGPA, ShapesLike
from defgpa.evaluate._folds import Progress, Steps, consecutive_folds
from defgpa.evaluate._sweep import Point, Sweep, smooth_warp
from defgpa.findings import Finding, Kind
from defgpa.sentences import warn_of
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
        A fresh, unfitted copy of the estimator with the smoothing that was chosen.
    standard_error : array (k,)
        Of each CVE, over the landmarks.
    foldovers : array (k,)
        Landmarks of all shapes that lie where their warp folds over.
    alignment, cross_validation : Alignment, CrossValidation
        Those of the smoothing that was chosen: nothing needs to be fitted again.
    findings : tuple of Finding
        What was found along the way.

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
    standard_error: Any = None
    foldovers: Any = None
    alignment: Any = None
    cross_validation: Any = None
    findings: tuple[Finding, ...] = ()

    @property
    def best_value(self) -> float:
        """The smoothing that was chosen.

        Of the values whose CVE is within one standard error of the smallest, the stiffest at
        which no warp folds over; the one of the smallest CVE where all of them fold.
        """
        return float(self.values[self.best_index])

    @property
    def best_index(self) -> int:
        """The place of the chosen smoothing among the values."""
        return chosen_index(self.cve, self.standard_error, self.foldovers)

    @property
    def least_value(self) -> float:
        """The smoothing of the smallest CVE; of several, the stiffest."""
        return float(self.values[_least(self.cve)])

    @property
    def at_edge(self) -> bool:
        """Whether the smallest CVE is at either end of the values: the best may lie beyond."""
        return _least(self.cve) in (0, len(self.values) - 1)

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

    def __repr__(self) -> str:
        low, high = self.values[0], self.values[-1]
        return (
            f"SmoothingPath(best_value={self.best_value:.3g}, cve={self.cve[self.best_index]:.6g}, "
            f"{len(self.values)} values from {low:.3g} to {high:.3g})"
        )


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
        from defgpa.evaluate._dial import select_on_dial  # whose surface is a path too

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
        least = _least(np.array([point.cross_validation.error for point in points]))
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


def columns(points: Sequence[Point], chosen: Point) -> dict[str, Any]:
    """The fields of a path along these points, of which one was chosen."""
    validated = [point.cross_validation for point in points]
    return {
        "values": frozen(np.array([point.value for point in points])),
        "cve": frozen(np.array([own.error for own in validated])),
        "rmse_reference": frozen(np.array([point.alignment.rmse_reference for point in points])),
        "rmse_datum": frozen(np.array([point.rmse_datum for point in points])),
        "standard_error": frozen(np.array([own.standard_error for own in validated])),
        "foldovers": frozen(np.array([int(p.alignment.foldovers.sum()) for p in points])),
        "alignment": chosen.alignment,
        "cross_validation": chosen.cross_validation,
    }


def path_findings(path: SmoothingPath, points: Sequence[Point]) -> tuple[Finding, ...]:
    """What was found at the points of a path, and in its course."""
    return (*_along(points), *_at_edge(path), *_stiffer(path))


def chosen_index(cve: Array, spread: Array | None, foldovers: Index | None) -> int:
    """The stiffest without foldovers within one standard error of the least error."""
    least = _least(cve)
    if spread is None or foldovers is None:
        return least
    as_good = (cve <= cve[least] + spread[least]) & (foldovers == 0)
    return int(np.flatnonzero(as_good)[-1]) if as_good.any() else least


def _least(cve: Array) -> int:
    """The last, stiffest, of the smallest errors."""
    return int(np.flatnonzero(cve <= _TIED * np.nanmin(cve))[-1])


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


def _along(points: Sequence[Point]) -> Iterator[Finding]:
    """What the full fits found, once for all values."""
    first: dict[Kind, Finding] = {}
    count: Counter[Kind] = Counter()
    for point in reversed(points):
        count.update({finding.kind for finding in point.alignment.findings})
        first |= {finding.kind: finding for finding in point.alignment.findings}
    for kind, finding in first.items():
        figures = {"count": count[kind], "of": len(points)}
        yield Finding(Kind.AT_SMOOTHING, figures=figures, parts=(finding,))


def _at_edge(path: SmoothingPath) -> Iterator[Finding]:
    if path.at_edge and len(path.values) > 1:
        soft = float(path.least_value == path.values[0])
        yield Finding(Kind.BEST_AT_EDGE, figures={"soft": soft, "smoothing": path.least_value})


def _stiffer(path: SmoothingPath) -> Iterator[Finding]:
    """Said where the value chosen is not that of the least error."""
    if path.best_value == path.least_value:
        return
    least = path.foldovers[path.values == path.least_value]
    figures = {"smoothing": path.best_value, "least": path.least_value}
    yield Finding(
        Kind.STIFFER_PREFERRED, figures=figures | {"foldovers_avoided": float(least.sum())}
    )
