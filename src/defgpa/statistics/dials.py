"""Trials, which hide what is known, and the dials of a Gaussian of shapes chosen by them.

A dial is turned while the others stand, again and again, to where the error is least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice

import numpy as np

from defgpa._arrays import Array, Mask
from defgpa.statistics.conditional import Dials, ShapeGaussian, left_out

_CHOICES: dict[str, tuple[float, ...]] = {
    "reach": (0.3, 0.6, 1.2),
    "smooth": (0.0, 0.3, 1.0, 3.0, 10.0),
    "noise": (0.002, 0.01, 0.05, 0.2, 0.6, 2.0),
}
_MOST_LANDMARKS = 300  # that are left out one by one, or in blocks where there are very many

_Error = Callable[[Dials], float]


@dataclass(frozen=True, eq=False)
class Trial:
    """A specimen of the set, and landmarks it shows that are hidden for once."""

    specimen: int
    hidden: Mask  # (m,)

    def shown(self, points: Array) -> Array:
        """(m, d): what is left of the specimen, one of the points (n, m, d)."""
        return np.where(self.hidden[:, None], np.nan, points[self.specimen])


def hidden_for_once(visible: Mask, dim: int) -> list[Trial]:
    """Landmarks to hide in specimens that show them: in the holes of others, and one by one.

    Half of the trials take the holes of the specimens that have some; where these are single
    landmarks, the other half hides any, so that the choice does not hang on one.
    """
    most = 40
    real = list(islice(_holes_of_others(visible, dim), most))
    if real and np.median([trial.hidden.sum() for trial in real]) > 1:
        return real[:16]  # each tells much where many are missing together
    single = list(islice(_single(visible, dim), most))
    of_real, of_single = max(most // 2, most - len(single)), max(most // 2, most - len(real))
    return real[:of_real] + single[:of_single]


def _holes_of_others(visible: Mask, dim: int) -> Iterator[Trial]:
    """Every hole in every other specimen, the fullest specimens first, evenly over the holes."""
    holes = [~own for own in visible if not own.all()]
    fullest = np.argsort(-visible.sum(axis=1), kind="stable")
    for k in range(len(fullest)):
        for h, hole in enumerate(holes):
            i = int(fullest[(k + h) % len(fullest)])
            hidden = hole & visible[i]
            if hidden.any() and (visible[i] & ~hidden).sum() > dim:
                yield Trial(i, hidden)


def _single(visible: Mask, dim: int) -> Iterator[Trial]:
    """Landmarks one by one, in a scattered order that is always the same."""
    places = np.argwhere(visible)
    for i, j in np.random.default_rng(0).permutation(places):
        hidden = np.zeros(visible.shape[1], dtype=bool)
        hidden[j] = True
        if (visible[i] & ~hidden).sum() > dim:
            yield Trial(int(i), hidden)


def chosen_dials(specimens: Array, points: Array, trials: Sequence[Trial]) -> Dials:
    """The dials that predict best.

    Parameters
    ----------
    specimens : array (n, m, d)
        Complete, in one pose and size.
    points : array (n, m, d)
        The same as measured, NaN where not seen.
    trials : sequence of Trial
        Holes like those that are to be filled.
    """
    fewer = _thinned(specimens, points, trials)
    by_blocks = cache(lambda dials: _errors_of(*fewer, dials))
    if np.median([trial.hidden.sum() for trial in trials]) > 1:
        found = _searched(Dials(), _CHOICES, by_blocks)
    else:
        hidden = np.any([trial.hidden for trial in trials], axis=0)
        found = _searched(Dials(), _CHOICES, cache(_one_by_one(specimens, points, hidden)))
    return _searched(found, {"nearness": (0.3, 1.0, np.inf)}, by_blocks)


def _thinned(
    specimens: Array, points: Array, trials: Sequence[Trial]
) -> tuple[Array, Array, Sequence[Trial]]:
    """All of it with some of very many landmarks only: dials need no more to be told apart."""
    m, d = specimens.shape[1:]
    kept = np.arange(0, m, -(-m // _MOST_LANDMARKS))
    if m <= 600:
        return specimens, points, trials
    fewer = [replace(trial, hidden=trial.hidden[kept]) for trial in trials]
    shown = ~np.isnan(points[:, kept, 0])
    able = [t for t in fewer if t.hidden.any() and (shown[t.specimen] & ~t.hidden).sum() > 2 * d]
    return (specimens[:, kept], points[:, kept], able) if able else (specimens, points, trials)


def _searched(start: Dials, choices: dict[str, tuple[float, ...]], error: _Error) -> Dials:
    """Coordinate search: each dial in turn is set to its best value, as long as one changes."""
    best = start
    for _ in range(3):  # turns of each dial
        before = best
        for name, values in choices.items():
            # on a tie the dial stays
            rivals = [best, *(replace(best, **{name: value}) for value in values)]
            best = min(rivals, key=error)
        if best == before:
            break
    return best


def _errors_of(specimens: Array, points: Array, trials: Sequence[Trial], dials: Dials) -> float:
    """Σ of squared relative errors over holes."""
    total = 0.0
    for trial in trials:
        others = ShapeGaussian(np.delete(specimens, trial.specimen, axis=0), dials)
        found = others.completed(trial.shown(points)).points
        total += squared_errors(found, points[trial.specimen], trial.hidden).sum()
    return total


def squared_errors(found: Array, own: Array, hidden: Mask) -> Array:
    """(h,): squared distance from the truth over the squared centroid size."""
    seen = own[~np.isnan(own[:, 0])]
    size = ((seen - seen.mean(axis=0)) ** 2).sum()
    return np.asarray(((found - own)[hidden] ** 2).sum(axis=1) / size)


def _one_by_one(specimens: Array, points: Array, hidden: Mask) -> _Error:
    """The error of landmarks left out one by one; half of the weight is on those asked for."""
    # of very many landmarks some, those asked for among them
    some = np.arange(0, len(hidden), -(-len(hidden) // _MOST_LANDMARKS))
    asked = np.union1d(some, np.flatnonzero(hidden)[:_MOST_LANDMARKS])
    specimens, unseen, hidden = specimens[:, asked], np.isnan(points[:, asked, 0]), hidden[asked]

    def error(dials: Dials) -> float:
        residuals, _ = left_out(specimens, dials)
        squares = np.where(unseen, 0.0, (residuals**2).sum(axis=2))
        by_landmark = squares.sum(axis=0) / np.maximum((~unseen).sum(axis=0), 1)
        return float(by_landmark.mean() + by_landmark[hidden].mean())

    return error
