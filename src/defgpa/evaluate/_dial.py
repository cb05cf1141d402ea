"""How stiff and how rigid: smoothing and rigidity that predict best, chosen together.

All positions share their folds, and those of one smoothing share its cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from defgpa._arrays import Array, frozen
from defgpa.alignment import Alignment
from defgpa.estimators import ElasticGPA
from defgpa.evaluate._cross_validation import (
    gathered_folds,
    left_out_by_refits,
    left_out_by_stacks,
)
from defgpa.evaluate._elastic_folds import ElasticFolds
from defgpa.evaluate._folds import LeftOut, Progress, Steps, consecutive_folds
from defgpa.evaluate._path import SmoothingPath, columns, path_findings
from defgpa.evaluate._sweep import Point, Sweep, smooth_warp, within_reach
from defgpa.findings import Finding
from defgpa.shapes import Shapes

DEFAULT_SMOOTHING = np.logspace(-7.0, 0.0, 8)
DEFAULT_RIGIDITY = np.array([0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0, np.inf])
_FINER = 10.0 ** np.array([-0.5, -0.25, 0.25, 0.5])  # of the best of the default smoothings


@dataclass(frozen=True, eq=False)
class DialSurface(SmoothingPath):
    """The cross-validation error over smoothing and rigidity; immutable.

    It is also the path along the smoothing at the rigidity that was chosen.

    Attributes
    ----------
    rigidities : array (r,)
        The rigidities μ, ascending; the first may be 0 (DefGPA itself), the last infinite.
    surface, surface_error : array (k, r)
        The cross-validation error at every smoothing (row) and rigidity (column), and its standard
        error over the landmarks.
    surface_foldovers : array (k, r)
        Landmarks of all shapes that lie where their warp folds over.

    See Also
    --------
    select_smoothing : makes it of an ElasticGPA.

    Examples
    --------
    >>> import numpy as np
    >>> cve = np.array([[3.0, 2.5], [2.0, 2.2]])
    >>> surface = DialSurface(
    ...     np.array([1e-3, 1e-2]), cve[:, 0], cve[:, 0], cve[:, 0], best=None,
    ...     rigidities=np.array([1.0, 10.0]), surface=cve)
    >>> surface.best_value, surface.best_rigidity
    (0.01, 1.0)
    """

    rigidities: Any = None
    surface: Any = None
    surface_error: Any = None
    surface_foldovers: Any = None

    @property
    def position(self) -> tuple[int, int]:
        """Row and column of the surface that were chosen.

        The least error; or where warps fold over there, the least within one standard error of it
        at which none does.
        """
        return chosen_position(self.surface, self.surface_error, self.surface_foldovers)

    @property
    def best_index(self) -> int:
        """The place of the chosen smoothing among the values."""
        return self.position[0]

    @property
    def best_rigidity(self) -> float:
        """The rigidity that was chosen."""
        return float(self.rigidities[self.position[1]])

    def __repr__(self) -> str:
        return (
            f"DialSurface(best_value={self.best_value:.3g}, best_rigidity="
            f"{self.best_rigidity:.3g}, cve={self.surface[self.position]:.6g}, "
            f"{len(self.values)} × {len(self.rigidities)})"
        )


def chosen_position(cve: Array, spread: Array | None, foldovers: Array | None) -> tuple[int, int]:
    """The least error, or the least without foldovers within one standard error of it."""
    least = np.unravel_index(np.nanargmin(cve), cve.shape)
    if spread is not None and foldovers is not None:
        sound = (foldovers == 0) & (cve <= cve[least] + spread[least])
        if sound.any():
            least = np.unravel_index(np.nanargmin(np.where(sound, cve, np.nan)), cve.shape)
    return int(least[0]), int(least[1])


@dataclass(frozen=True, eq=False)
class DialSweep(Sweep):
    """One elastic estimator at many positions of the dial, on the same shapes and folds."""

    rigidities: Array

    def at_position(self, smoothing: float, rigidity: float) -> Any:
        """A fresh estimator with this smoothing and rigidity."""
        return clone(self.smoothed(smoothing)).set_params(rigidity=float(rigidity))

    def rows(self, values: Array) -> list[list[Point]]:
        """[smoothing][rigidity]: what the positions give."""
        positions = [(float(value), float(mu)) for value in values for mu in self.rigidities]
        full: list[Alignment] = []
        for value in values:
            full += self.smoothed(float(value)).along(self.shapes, self.rigidities)
            self.steps.advance(len(self.rigidities))
        made = [
            Point(own[0], gathered_folds(whole, self.folds, self.fold_size, left_out))
            for own, whole, left_out in zip(
                positions, full, self._positions_left_out(positions, full), strict=True
            )
        ]
        width = len(self.rigidities)
        return [made[i : i + width] for i in range(0, len(made), width)]

    def _positions_left_out(
        self, positions: Sequence[tuple[float, float]], full: Sequence[Any]
    ) -> list[list[LeftOut]]:
        values = np.array([value for value, _ in positions])
        sets, anchor = self._common(np.unique(values))
        if sets is not None and within_reach(values, anchor).all():
            pairs = np.array([(value / anchor, mu) for value, mu in positions])
            return left_out_by_stacks(sets, pairs, full, self.folds, self.n_jobs, self.steps)
        estimators = [self.at_position(*own) for own in positions]
        return [
            left_out_by_refits(estimator, whole, self.folds, self.n_jobs, self.steps)
            for estimator, whole in zip(estimators, full, strict=True)
        ]

    def _stacked(self, estimator: Any) -> ElasticFolds | None:
        return ElasticFolds.of(estimator, self.shapes)


def select_on_dial(
    estimator: ElasticGPA,
    shapes: Shapes,
    grid: Array | None,
    rigidities: ArrayLike | None,
    fold_size: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> DialSurface:
    """Smoothing and rigidity of an elastic estimator, chosen together on a grid."""
    tried = checked_rigidities(rigidities)
    values, more = (DEFAULT_SMOOTHING, len(_FINER)) if grid is None else (grid, 0)
    folds = len(consecutive_folds(shapes.n_landmarks, fold_size))
    steps = Steps((len(values) + more) * len(tried) * (folds + 1), progress)
    sweep = DialSweep(estimator, smooth_warp(estimator), shapes, fold_size, n_jobs, steps, tried)
    rows = sweep.rows(values)
    if grid is None:
        best = min(rows, key=lambda row: min(map(_error, row)))[0].value
        rows += sweep.rows(best * _FINER)
    rows.sort(key=lambda row: row[0].value)
    return _surface(sweep, rows)


def _surface(sweep: DialSweep, rows: Sequence[Sequence[Point]]) -> DialSurface:
    cve, spread, foldovers = _tables(rows)
    row, column = chosen_position(cve, spread, foldovers)
    best = sweep.at_position(rows[row][column].value, sweep.rigidities[column])
    chosen = _looked_at(rows[row][column], best)
    found = DialSurface(
        **columns([own[column] for own in rows], chosen),
        best=best,
        rigidities=frozen(np.array(sweep.rigidities)),
        surface=frozen(cve),
        surface_error=frozen(spread),
        surface_foldovers=frozen(foldovers),
    )
    along = path_findings(found, [own[column] for own in rows])
    return replace(found, findings=(*_new_in(chosen, rows[row][column]), *along))


def _new_in(looked_at: Point, point: Point) -> Iterator[Finding]:
    """What a look at the shapes has found."""
    known = point.alignment.findings
    return (own for own in looked_at.alignment.findings if own not in known)


def _looked_at(point: Point, estimator: ElasticGPA) -> Point:
    """The same with what its shapes themselves show, which one look tells."""
    validated = point.cross_validation
    return replace(
        point,
        cross_validation=replace(validated, alignment=estimator.looked_at(validated.alignment)),
    )


def _error(point: Point) -> float:
    return point.cross_validation.error


def _tables(rows: Sequence[Sequence[Point]]) -> tuple[Array, Array, Array]:
    """(k, r) each: CVE, its standard error, and the landmarks where warps fold over."""
    cve = [[point.cross_validation.error for point in row] for row in rows]
    spread = [[point.cross_validation.standard_error for point in row] for row in rows]
    foldovers = [[float(point.alignment.foldovers.sum()) for point in row] for row in rows]
    return np.array(cve), np.array(spread), np.array(foldovers)


def checked_rigidities(rigidities: ArrayLike | None) -> Array:
    """Ascending, or a ValueError."""
    if rigidities is None:
        return DEFAULT_RIGIDITY
    values = np.unique(np.asarray(rigidities, dtype=np.float64))
    if not len(values) or not (values >= 0.0).all():
        raise ValueError(
            "The 'rigidities' parameter of select_smoothing must hold numbers from 0 to infinity. "
            f"Got {rigidities!r} instead."
        )
    return values
