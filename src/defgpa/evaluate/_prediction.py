"""Every fold left out once, for one or several trials: stacked where possible, else refitted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.evaluate._folds import LeftOut, Steps
from defgpa.evaluate._parallel import in_parallel
from defgpa.evaluate._refit import Trial, refitted
from defgpa.evaluate._stacked_folds import StackedFolds, predicted_group
from defgpa.shapes import Shapes

Outcomes = list[list[LeftOut]]  # [trial][fold]


def predicted_by_stacks(
    common: StackedFolds,
    factors: Array,
    trials: Sequence[Trial],
    shapes: Shapes,
    folds: Sequence[Index],
    n_jobs: int | None,
    steps: Steps,
) -> Outcomes:
    """Trials that differ by a factor on the penalty; folds out of the ordinary are refitted."""
    references = np.stack([trial.reference for trial in trials])
    tasks = [(common, group, factors, references) for group in common.groups(folds)]
    outcomes: list[list[LeftOut | None]] = [[] for _ in trials]
    for group in in_parallel(
        predicted_group, tasks, n_jobs, lambda group: steps.advance(int(group.sure.sum()))
    ):
        for outcome, predicted, sure in zip(outcomes, group.predicted, group.sure, strict=True):
            outcome += [LeftOut(p) if s else None for p, s in zip(predicted, sure, strict=True)]
    return _refit_the_rest(outcomes, trials, shapes, folds, n_jobs, steps)


def predicted_by_refits(
    trials: Sequence[Trial],
    shapes: Shapes,
    folds: Sequence[Index],
    n_jobs: int | None,
    steps: Steps,
) -> Outcomes:
    """A fit of its own for every trial and fold."""
    nothing: list[list[LeftOut | None]] = [[None] * len(folds) for _ in trials]
    return _refit_the_rest(nothing, trials, shapes, folds, n_jobs, steps)


def _refit_the_rest(
    outcomes: Sequence[Sequence[LeftOut | None]],
    trials: Sequence[Trial],
    shapes: Shapes,
    folds: Sequence[Index],
    n_jobs: int | None,
    steps: Steps,
) -> Outcomes:
    """The outcomes with those that are missing made by fits."""
    missing = [(t, f) for t, own in enumerate(outcomes) for f, o in enumerate(own) if o is None]
    tasks = [(trials[t], shapes, folds[f]) for t, f in missing]
    results = in_parallel(refitted, tasks, n_jobs, lambda _: steps.advance()) if tasks else []
    made = dict(zip(missing, results, strict=True))
    return [
        [made[t, f] if o is None else o for f, o in enumerate(own)]
        for t, own in enumerate(outcomes)
    ]
