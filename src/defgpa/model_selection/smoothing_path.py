r"""The error figures along amounts of smoothing, and which of them to choose.

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

from defgpa.arrays import Array, Mask, freeze
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.model_selection.sweep import Point


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
    sound : array (k,) of bool
        Where no warp folds over and, as far as it matters for the choice, RMSE_d is not above that
        of rigid alignment.

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
    sound: Any = None

    @property
    def best_value(self) -> float:
        """The smoothing that was chosen.

        Of the values whose CVE is within one standard error of the smallest, the stiffest that is
        sound: no warp folds over, and RMSE_d is not above that of rigid alignment. If none of
        these is sound, the sound one of the smallest CVE; if none is sound at all, the smallest.
        """
        return float(self.values[self.best_index])

    @property
    def best_index(self) -> int:
        """The place of the chosen smoothing among the values."""
        return chosen_index(self.cve, self.standard_error, self._sound)

    @property
    def _sound(self) -> Mask | None:
        """Where a choice is sound; by the foldovers alone where nothing else is stated."""
        if self.sound is not None or self.foldovers is None:
            return self.sound
        return np.asarray(self.foldovers == 0)

    @property
    def least_value(self) -> float:
        """The smoothing of the smallest CVE; of several, the stiffest."""
        return float(self.values[least_index(self.cve)])

    def explain_choice(self) -> str:
        """Return two or three sentences that name the rule of the choice and what it costs.

        Report, plots and command line say it in these words.

        Examples
        --------
        >>> import numpy as np
        >>> cve = np.array([2.5, 2.0, 2.1, 3.0])
        >>> path = SmoothingPath(
        ...     np.array([1e-3, 1e-2, 1e-1, 1.0]), cve, cve, cve, best=None,
        ...     standard_error=np.full(4, 0.15), foldovers=np.zeros(4, dtype=int))
        >>> print(path.explain_choice())
        A smoothing of 0.1 was chosen by the one-standard-error rule: the stiffest without folded \
warps whose cross-validation error (CVE) is within one standard error of the smallest. The \
smallest CVE, 2 ± 0.15, is at 0.01; the chosen smoothing has 2.1, so the rule costs 5 % in CVE.
        """
        least, chosen = self.cve[least_index(self.cve)], self.cve[self.best_index]
        if self.best_value == self.least_value:
            folded = self.foldovers is not None and self.foldovers[self.best_index] > 0
            reason = (
                "warps fold at every smoothing within one standard error of it, so the "
                "one-standard-error rule was not applied"
                if folded
                else "by the one-standard-error rule, no stiffer smoothing without folded warps "
                "comes within one standard error of it"
            )
            return (
                f"A smoothing of {self.best_value:.3g} was chosen. It has the smallest "
                f"cross-validation error (CVE), {chosen:.4g}; {reason}."
            )
        spread = self.standard_error[least_index(self.cve)]
        if chosen > least + spread:
            return (
                f"A smoothing of {self.best_value:.3g} was chosen: it has the smallest "
                f"cross-validation error (CVE) without folded warps and with an RMSE_d not above "
                f"that of rigid alignment. The smallest CVE of all, {least:.4g}, is at "
                f"{self.least_value:.3g}; this costs {100 * (chosen / least - 1):.2g} % in CVE."
            )
        return (
            f"A smoothing of {self.best_value:.3g} was chosen by the one-standard-error rule: the "
            f"stiffest without folded warps whose cross-validation error (CVE) is within one "
            f"standard error of the smallest. The smallest CVE, {least:.4g} ± {spread:.2g}, is at "
            f"{self.least_value:.3g}; the chosen smoothing has {chosen:.4g}, so the rule costs "
            f"{100 * (chosen / least - 1):.2g} % in CVE."
        )

    @property
    def unfolded_value(self) -> float | None:
        """The least smoothing above zero at which no warp folds over; None if all do."""
        if self.foldovers is None:
            return None
        sound = self.values[(self.foldovers == 0) & (self.values > 0.0)]
        return float(sound[0]) if len(sound) else None

    @property
    def at_edge(self) -> bool:
        """Whether the smallest CVE is at either end of the values: the best may lie beyond."""
        return least_index(self.cve) in (0, len(self.values) - 1)

    @property
    def parting(self) -> float | None:
        """Where RMSE_r and RMSE_d part ways, the second sign of over-fitting.

        With less and less smoothing RMSE_r falls, and RMSE_d with it at first. This is where
        RMSE_d is lowest before it first climbs more than one per cent above that; None if it
        never does.
        """
        towards_soft = self.rmse_datum[::-1]
        lowest = np.fmin.accumulate(towards_soft)
        climbed = np.flatnonzero(~(towards_soft <= 1.01 * lowest) & ~np.isnan(lowest))
        if not len(climbed):
            return None
        return float(self.values[::-1][np.nanargmin(towards_soft[: climbed[0]])])

    def __repr__(self) -> str:
        low, high = self.values[0], self.values[-1]
        return (
            f"SmoothingPath(best_value={self.best_value:.3g}, cve={self.cve[self.best_index]:.6g}, "
            f"{len(self.values)} values from {low:.3g} to {high:.3g})"
        )


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
    surface_sound : array (k, r) of bool
        As ``sound``.

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
    surface_sound: Any = None

    @property
    def position(self) -> tuple[int, int]:
        """Row and column of the surface that were chosen.

        The least error that is sound: no warp folds over, and RMSE_d is not above that of rigid
        alignment; the least of all where none is sound.
        """
        sound = self.surface_sound
        if sound is None and self.surface_foldovers is not None:
            sound = np.asarray(self.surface_foldovers == 0)
        return chosen_position(self.surface, sound)

    @property
    def best_index(self) -> int:
        """The place of the chosen smoothing among the values."""
        return self.position[0]

    @property
    def best_rigidity(self) -> float:
        """The rigidity that was chosen."""
        return float(self.rigidities[self.position[1]])

    def explain_choice(self) -> str:
        """Return sentences that name the rule of the choice and what it costs."""
        least, chosen = float(np.nanmin(self.surface)), float(self.surface[self.position])
        where = f"A smoothing of {self.best_value:.3g} and a rigidity of {self.best_rigidity:g}"
        if chosen == least:
            return (
                f"{where} were chosen: they have the smallest cross-validation error (CVE), "
                f"{least:.4g}."
            )
        row, column = np.unravel_index(np.nanargmin(self.surface), self.surface.shape)
        return (
            f"{where} were chosen: the smallest cross-validation error (CVE) without folded warps "
            f"and with an RMSE_d not above that of rigid alignment, {chosen:.4g}. The smallest of "
            f"all, {least:.4g}, is at a smoothing of {self.values[row]:.3g} and a rigidity of "
            f"{self.rigidities[column]:g}; this costs {100 * (chosen / least - 1):.2g} % in CVE."
        )

    def __repr__(self) -> str:
        return (
            f"DialSurface(best_value={self.best_value:.3g}, best_rigidity="
            f"{self.best_rigidity:.3g}, cve={self.surface[self.position]:.6g}, "
            f"{len(self.values)} × {len(self.rigidities)})"
        )


def chosen_position(cve: Array, sound: Mask | None) -> tuple[int, int]:
    """Return row and column of the least error that is sound; of all if none is."""
    candidates = cve
    if sound is not None and (sound & np.isfinite(cve)).any():
        candidates = np.where(sound, cve, np.nan)
    row, column = np.unravel_index(np.nanargmin(candidates), cve.shape)
    return int(row), int(column)


def columns(points: Sequence[Point], chosen: Point) -> dict[str, Any]:
    """The figures along points, and what is kept of one, by the names of a path's fields."""
    validated = [point.cross_validation for point in points]
    return {
        "values": freeze(np.array([point.value for point in points])),
        "cve": freeze(np.array([own.error for own in validated])),
        "rmse_reference": freeze(np.array([point.alignment.rmse_reference for point in points])),
        "rmse_datum": freeze(np.array([point.rmse_datum for point in points])),
        "standard_error": freeze(np.array([own.standard_error for own in validated])),
        "foldovers": freeze(np.array([int(p.alignment.foldovers.sum()) for p in points])),
        "alignment": chosen.alignment,
        "cross_validation": chosen.cross_validation,
    }


def path_findings(path: SmoothingPath, points: Sequence[Point]) -> tuple[Finding, ...]:
    """What was found at the points of a path, and in its course."""
    return (*_along(points), *_at_edge(path), *_stiffer(path), *_folding(path))


def chosen_index(cve: Array, spread: Array | None, sound: Mask | None) -> int:
    """Return the stiffest that is sound within one standard error of the least error.

    If none is, the least error that is sound; if none is sound at all, the least error.
    """
    least = least_index(cve)
    if spread is None or sound is None:
        return least
    as_good = (cve <= cve[least] + spread[least]) & sound
    if as_good.any():
        return int(np.flatnonzero(as_good)[-1])
    sound = sound & np.isfinite(cve)
    return least_index(np.where(sound, cve, np.nan)) if sound.any() else least


def least_index(cve: Array) -> int:
    """The last, stiffest, of the smallest errors, which are the same up to 1e-9."""
    return int(np.flatnonzero(cve <= (1.0 + 1e-9) * np.nanmin(cve))[-1])


def _along(points: Sequence[Point]) -> Iterator[Finding]:
    """What the full fits found, once for all values."""
    first: dict[Problem, Finding] = {}
    count: Counter[Problem] = Counter()
    for point in reversed(points):
        count.update({finding.problem for finding in point.alignment.findings})
        first |= {finding.problem: finding for finding in point.alignment.findings}
    for kind, finding in first.items():
        figures = {"count": count[kind], "of": len(points)}
        yield Finding(Problem.AT_SMOOTHING, values=figures, parts=(finding,))


def _at_edge(path: SmoothingPath) -> Iterator[Finding]:
    if path.at_edge and len(path.values) > 1:
        soft = float(path.least_value == path.values[0])
        yield Finding(Problem.BEST_AT_EDGE, values={"soft": soft, "smoothing": path.least_value})


def _folding(path: SmoothingPath) -> Iterator[Finding]:
    """Said where warps fold over at the value chosen, with one at which none does."""
    better = {} if path.unfolded_value is None else {"smoothing": path.unfolded_value}
    for finding in path.alignment.foldover_findings:
        yield replace(finding, values={**finding.values, **better})


def _stiffer(path: SmoothingPath) -> Iterator[Finding]:
    """Said where the value chosen is not that of the least error."""
    if path.best_value == path.least_value:
        return
    least = path.foldovers[path.values == path.least_value]
    figures = {"smoothing": path.best_value, "least": path.least_value}
    cost = path.cve[path.best_index] - path.cve[least_index(path.cve)]
    as_good = cost <= path.standard_error[least_index(path.cve)]
    values = {"foldovers_avoided": float(least.sum()), "as_good": float(as_good)}
    yield Finding(Problem.STIFFER_PREFERRED, values=figures | values)
