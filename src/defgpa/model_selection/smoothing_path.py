r"""The error figures along amounts of smoothing, and which of them to choose.

Two signs tell over-fitting, and both need figures that the fit does not minimise: landmarks that
were left out are predicted worse (CVE rises), and the error in the space of the shapes stops
following the one in the space of the reference (RMSE_d rises while RMSE_r falls).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Mask, freeze
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.errors import DegenerateShapeError
from defgpa.model_selection.cross_validation import CrossValidation


@dataclass(frozen=True, eq=False)
class SmoothingPath:
    """The error figures along amounts of smoothing; immutable.

    Attributes
    ----------
    values : array (k,)
        The relative smoothing τ, ascending.
    cve : array (k,)
        The cross-validation error at each.
    alignments : tuple of k Alignment
        The alignment of all landmarks at each; None where it was not tried. The other figures are
        computed from them when they are asked for.
    best : estimator
        A fresh, unfitted copy of the estimator with the smoothing that was chosen.
    standard_error : array (k,)
        Of each CVE, over the landmarks.
    cross_validation : CrossValidation
        That of the smoothing that was chosen: nothing needs to be fitted again.
    findings : tuple of Finding
        What was found along the way.
    sound : array (k,) of bool
        Where, as far as it matters for the choice, no warp folds over and RMSE_d is not above that
        of rigid alignment.

    See Also
    --------
    select_smoothing : makes it.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([1e-3, 1e-2, 1e-1, 1.0])
    >>> path = SmoothingPath(values, np.array([4.0, 2.0, 3.0, 5.0]), alignments=(), best=None)
    >>> path.best_value, path.at_edge
    (0.01, False)
    """

    values: Array
    cve: Array
    alignments: Sequence[Alignment | None]
    best: Any
    standard_error: Array | None = None
    cross_validation: CrossValidation | None = None
    findings: tuple[Finding, ...] = ()
    sound: Mask | None = None

    @property
    def alignment(self) -> Alignment:
        """The alignment with the smoothing that was chosen."""
        assert self.cross_validation is not None
        return self.cross_validation.alignment

    @cached_property
    def rmse_reference(self) -> Array:
        """(k,): RMSE_r at each smoothing."""
        return self._tabulate(lambda alignment: alignment.rmse_reference)

    @cached_property
    def rmse_datum(self) -> Array:
        """(k,): RMSE_d at each smoothing, NaN where some warp has no inverse."""
        return self._tabulate(_compute_rmse_datum)

    @cached_property
    def foldovers(self) -> Array:
        """(k,): landmarks of all shapes that lie where their warp folds over."""
        return self._tabulate(_count_foldovers)

    def _tabulate(self, compute: Callable[[Alignment], float]) -> Array:
        figures = [np.nan if a is None else compute(a) for a in self.alignments]
        return freeze(np.array(figures, dtype=np.float64))

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
        return choose_index(self.cve, self.standard_error, self.sound)

    @property
    def least_value(self) -> float:
        """The smoothing of the smallest CVE; of several, the stiffest."""
        return float(self.values[find_least(self.cve)])

    def explain_choice(self) -> str:
        """Return two or three sentences on the rule of the choice and its cost in error.

        Report, plots and command line say it in these words.

        Examples
        --------
        >>> import numpy as np
        >>> cve = np.array([2.5, 2.0, 2.1, 3.0])
        >>> path = SmoothingPath(
        ...     np.array([1e-3, 1e-2, 1e-1, 1.0]), cve, alignments=(), best=None,
        ...     standard_error=np.full(4, 0.15), sound=np.full(4, True))
        >>> print(path.explain_choice())
        A smoothing of 0.1 was chosen by the one-standard-error rule: the stiffest without folded \
warps whose cross-validation error (CVE) is within one standard error of the smallest. The \
smallest CVE, 2 ± 0.15, is at 0.01; the chosen smoothing has 2.1, so the rule costs 5 % in CVE.
        """
        smallest, chosen = self.cve[find_least(self.cve)], self.cve[self.best_index]
        if self.best_value == self.least_value:
            folded = self.sound is not None and not self.sound[self.best_index]
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
        assert self.standard_error is not None
        spread = self.standard_error[find_least(self.cve)]
        if chosen > smallest + spread:
            return (
                f"A smoothing of {self.best_value:.3g} was chosen: it has the smallest "
                f"cross-validation error (CVE) without folded warps and with an RMSE_d not above "
                f"that of rigid alignment. The smallest CVE of all, {smallest:.4g}, is at "
                f"{self.least_value:.3g}; this costs {_format_rise(smallest, chosen)} % in CVE."
            )
        return (
            f"A smoothing of {self.best_value:.3g} was chosen by the one-standard-error rule: the "
            f"stiffest without folded warps whose cross-validation error (CVE) is within one "
            f"standard error of the smallest. The smallest CVE, {smallest:.4g} ± {spread:.2g}, is "
            f"at {self.least_value:.3g}; the chosen smoothing has {chosen:.4g}, so the rule costs "
            f"{_format_rise(smallest, chosen)} % in CVE."
        )

    @property
    def unfolded_value(self) -> float | None:
        """The least smoothing above zero at which no warp folds over; None if all do."""
        for value, alignment in zip(self.values, self.alignments, strict=True):
            if value > 0.0 and alignment is not None and not alignment.foldovers.any():
                return float(value)
        return None

    @property
    def at_edge(self) -> bool:
        """Whether the smallest CVE is at either end of the values: the best may lie beyond."""
        return find_least(self.cve) in (0, len(self.values) - 1)

    @property
    def parting(self) -> float | None:
        """Where RMSE_r and RMSE_d part ways, the second sign of over-fitting.

        With less and less smoothing RMSE_r falls, and RMSE_d with it at first. This is where
        RMSE_d is lowest before it first climbs more than one per cent above that; None if it
        never does.
        """
        towards_soft = self.rmse_datum[::-1]
        lowest = np.fmin.accumulate(towards_soft)
        higher = np.flatnonzero(~(towards_soft <= 1.01 * lowest) & ~np.isnan(lowest))
        if not len(higher):
            return None
        return float(self.values[::-1][np.nanargmin(towards_soft[: higher[0]])])

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
        error over the landmarks; NaN where it was not tried.
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
    ...     np.array([1e-3, 1e-2]), cve[:, 0], alignments=(), best=None,
    ...     rigidities=np.array([1.0, 10.0]), surface=cve)
    >>> surface.best_value, surface.best_rigidity
    (0.01, 1.0)
    """

    rigidities: Array = field(default_factory=lambda: np.empty(0))
    surface: Array = field(default_factory=lambda: np.empty((0, 0)))
    surface_error: Array | None = None
    surface_sound: Mask | None = None

    @property
    def position(self) -> tuple[int, int]:
        """Row and column of the surface that were chosen.

        The least error that is sound: no warp folds over, and RMSE_d is not above that of rigid
        alignment; the least of all where none is sound.
        """
        return choose_position(self.surface, self.surface_sound)

    @property
    def best_index(self) -> int:
        """The place of the chosen smoothing among the values."""
        return self.position[0]

    @property
    def best_rigidity(self) -> float:
        """The rigidity that was chosen."""
        return float(self.rigidities[self.position[1]])

    def explain_choice(self) -> str:
        """Return sentences on the rule of the choice and its cost in error."""
        smallest, chosen = float(np.nanmin(self.surface)), float(self.surface[self.position])
        place = f"A smoothing of {self.best_value:.3g} and a rigidity of {self.best_rigidity:g}"
        if chosen == smallest:
            return (
                f"{place} were chosen: they have the smallest cross-validation error (CVE), "
                f"{smallest:.4g}."
            )
        row, column = np.unravel_index(np.nanargmin(self.surface), self.surface.shape)
        return (
            f"{place} were chosen: the smallest cross-validation error (CVE) without folded warps "
            f"and with an RMSE_d not above that of rigid alignment, {chosen:.4g}. The smallest of "
            f"all, {smallest:.4g}, is at a smoothing of {self.values[row]:.3g} and a rigidity of "
            f"{self.rigidities[column]:g}; this costs {_format_rise(smallest, chosen)} % in CVE."
        )

    def __repr__(self) -> str:
        return (
            f"DialSurface(best_value={self.best_value:.3g}, best_rigidity="
            f"{self.best_rigidity:.3g}, cve={self.surface[self.position]:.6g}, "
            f"{len(self.values)} × {len(self.rigidities)})"
        )


def _compute_rmse_datum(alignment: Alignment) -> float:
    try:
        return alignment.rmse_datum
    except DegenerateShapeError:  # a warp has no inverse
        return float("nan")


def _format_rise(smallest: float, chosen: float) -> str:
    """Format the rise of an error in per cent: two digits, and no power of ten.

    Examples
    --------
    >>> _format_rise(2.0, 6.41), _format_rise(2.0, 2.05)
    ('220', '2.5')
    """
    return f"{float(f'{100 * (chosen / smallest - 1):.2g}'):g}"


def _count_foldovers(alignment: Alignment) -> float:
    return float(alignment.foldovers.sum())


def choose_position(cve: Array, is_sound: Mask | None) -> tuple[int, int]:
    """Return row and column of the least error that is sound; of all if none is."""
    candidates = cve
    if is_sound is not None and (is_sound & np.isfinite(cve)).any():
        candidates = np.where(is_sound, cve, np.nan)
    row, column = np.unravel_index(np.nanargmin(candidates), cve.shape)
    return int(row), int(column)


def choose_index(cve: Array, spread: Array | None, is_sound: Mask | None) -> int:
    """Return the stiffest that is sound within one standard error of the least error.

    If none is, the least error that is sound; if none is sound at all, the least error.

    Parameters
    ----------
    cve, spread, is_sound : array (k,)
        From soft to stiff: the error, its standard error, and whether no warp folds.
    """
    smallest = find_least(cve)
    if spread is None or is_sound is None:
        return smallest
    is_close = (cve <= cve[smallest] + spread[smallest]) & is_sound
    if is_close.any():
        return int(np.flatnonzero(is_close)[-1])
    is_sound = is_sound & np.isfinite(cve)
    return find_least(np.where(is_sound, cve, np.nan)) if is_sound.any() else smallest


def find_least(cve: Array) -> int:
    """Find the last, stiffest, of the smallest errors, which are the same up to 1e-9."""
    return int(np.flatnonzero(cve <= (1.0 + 1e-9) * np.nanmin(cve))[-1])


def find_path_findings(path: SmoothingPath) -> tuple[Finding, ...]:
    """Return the findings of the fits along a path, of its course, and of the choice."""
    return (*_list_common(path), *_list_edge(path), *_list_stiffer(path), *_list_folds(path))


def _list_common(path: SmoothingPath) -> Iterator[Finding]:
    """Yield the findings of all fits, each problem once, and those of the chosen fit alone."""
    first: dict[Problem, Finding] = {}
    count: Counter[Problem] = Counter()
    tried = [a for a in path.alignments if a is not None and a is not path.alignment]
    for alignment in reversed(tried):
        count.update({finding.problem for finding in alignment.findings})
        first |= {finding.problem: finding for finding in alignment.findings}
    for finding in path.alignment.findings:
        if finding.problem not in first and len(tried):
            yield finding
        else:
            count[finding.problem] += 1
            first.setdefault(finding.problem, finding)
    for problem, finding in first.items():
        figures = {"count": count[problem], "of": len(tried) + 1}
        yield Finding(Problem.AT_SMOOTHING, values=figures, parts=(finding,))


def _list_edge(path: SmoothingPath) -> Iterator[Finding]:
    if path.at_edge and len(path.values) > 1:
        is_soft = float(path.least_value == path.values[0])
        yield Finding(Problem.BEST_AT_EDGE, values={"soft": is_soft, "smoothing": path.least_value})


def _list_stiffer(path: SmoothingPath) -> Iterator[Finding]:
    """Yield a finding where the value chosen is not that of the least error."""
    if path.best_value == path.least_value:
        return
    smallest = find_least(path.cve)
    softer = path.alignments[smallest]
    assert softer is not None
    assert path.standard_error is not None
    cost = path.cve[path.best_index] - path.cve[smallest]
    values = {
        "smoothing": path.best_value,
        "least": path.least_value,
        "foldovers_avoided": _count_foldovers(softer),
        "as_good": float(cost <= path.standard_error[smallest]),
    }
    yield Finding(Problem.STIFFER_PREFERRED, values=values)


def _list_folds(path: SmoothingPath) -> Iterator[Finding]:
    """Yield the finding that warps fold over at the chosen value, with a value where none does."""
    for finding in path.alignment.foldover_findings:
        better = {} if path.unfolded_value is None else {"smoothing": path.unfolded_value}
        yield replace(finding, values={**finding.values, **better})
