"""Holdouts: hide visible landmarks, and choose the hyperparameters that predict them best.

One hyperparameter at a time is set to the value with the least error, until none changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice

import numpy as np

from defgpa.arrays import Array, Mask
from defgpa.completion.gaussian import Hyperparameters, ShapeGaussian, predict_left_out

_GRID: dict[str, tuple[float, ...]] = {
    "reach": (0.3, 0.6, 1.2),
    "smooth": (0.0, 0.3, 1.0, 3.0, 10.0),
    "noise": (0.002, 0.01, 0.05, 0.2, 0.6, 2.0),
}
_MAX_HOLDOUTS = 40
_MAX_LARGE_HOLDOUTS = 16  # each tells much where many landmarks are missing together
_MAX_LANDMARKS = 300  # that are left out one by one, or in blocks where there are very many
_MAX_SPECIMENS = 500  # that hyperparameters are chosen on

_Error = Callable[[Hyperparameters], float]


@dataclass(frozen=True, eq=False)
class Holdout:
    """Visible landmarks of one specimen that are hidden, to be estimated."""

    specimen: int
    hidden: Mask  # (m,)

    def hide(self, points: Array) -> Array:
        """Return the specimen (m, d), one of the points (n, m, d), without the hidden landmarks."""
        return np.where(self.hidden[:, None], np.nan, points[self.specimen])


def make_holdouts(visible: Mask, n_dims: int) -> list[Holdout]:
    """Choose landmarks to hide: gaps copied from other specimens, and single landmarks.

    Half of the holdouts copy the gaps of specimens that have some; where these are single
    landmarks, the other half hides any, so that the choice does not depend on one landmark.

    Parameters
    ----------
    visible : array (n, m) of bool
    n_dims : int
    """
    copied = list(islice(_copy_gaps(visible, n_dims), _MAX_HOLDOUTS))
    if copied and np.median([holdout.hidden.sum() for holdout in copied]) > 1:
        return copied[:_MAX_LARGE_HOLDOUTS]
    single = list(islice(_hide_single_landmarks(visible, n_dims), _MAX_HOLDOUTS))
    half = _MAX_HOLDOUTS // 2
    n_copied = max(half, _MAX_HOLDOUTS - len(single))
    n_single = max(half, _MAX_HOLDOUTS - len(copied))
    return copied[:n_copied] + single[:n_single]


def _copy_gaps(visible: Mask, n_dims: int) -> Iterator[Holdout]:
    """Hide every gap in every other specimen, the fullest specimens first, evenly over the gaps."""
    gaps = [~mask for mask in visible if not mask.all()]
    by_completeness = np.argsort(-visible.sum(axis=1), kind="stable")
    for k in range(len(by_completeness)):
        for g, gap in enumerate(gaps):
            i = int(by_completeness[(k + g) % len(by_completeness)])
            hidden = gap & visible[i]
            if hidden.any() and (visible[i] & ~hidden).sum() > n_dims:
                yield Holdout(i, hidden)


def _hide_single_landmarks(visible: Mask, n_dims: int) -> Iterator[Holdout]:
    """Hide landmarks one by one, in a shuffled order that is always the same."""
    for i, j in np.random.default_rng(0).permutation(np.argwhere(visible)):
        hidden = np.zeros(visible.shape[1], dtype=bool)
        hidden[j] = True
        if (visible[i] & ~hidden).sum() > n_dims:
            yield Holdout(int(i), hidden)


def choose_hyperparameters(
    specimens: Array, points: Array, holdouts: Sequence[Holdout]
) -> Hyperparameters:
    """Choose the hyperparameters that predict best.

    Parameters
    ----------
    specimens : array (n, m, d)
        Complete, in one pose and size.
    points : array (n, m, d)
        The same as measured, NaN where missing.
    holdouts : sequence of Holdout
        Gaps like those that are to be filled.
    """
    thinned = _thin_landmarks(specimens, points, holdouts)
    by_blocks = cache(lambda values: sum_holdout_errors(*thinned, values))
    if np.median([holdout.hidden.sum() for holdout in holdouts]) > 1:
        chosen = _search(Hyperparameters(), _GRID, by_blocks)
    else:
        hidden = np.any([holdout.hidden for holdout in holdouts], axis=0)
        by_landmark = cache(_leave_out_error(specimens, points, hidden))
        chosen = _search(Hyperparameters(), _GRID, by_landmark)
    return _search(chosen, {"nearness": (0.3, 1.0, np.inf)}, by_blocks)


def _thin_landmarks(
    specimens: Array, points: Array, holdouts: Sequence[Holdout]
) -> tuple[Array, Array, Sequence[Holdout]]:
    """Keep some of very many landmarks: no more are needed to choose hyperparameters."""
    m, d = specimens.shape[1:]
    if m <= 600:
        return specimens, points, holdouts
    landmarks = np.arange(0, m, -(-m // _MAX_LANDMARKS))
    thinned = [replace(holdout, hidden=holdout.hidden[landmarks]) for holdout in holdouts]
    visible = ~np.isnan(points[:, landmarks, 0])
    usable_masks = [
        holdout
        for holdout in thinned
        if holdout.hidden.any() and (visible[holdout.specimen] & ~holdout.hidden).sum() > 2 * d
    ]
    if not usable_masks:
        return specimens, points, holdouts
    return specimens[:, landmarks], points[:, landmarks], usable_masks


def _search(
    start: Hyperparameters, grid: dict[str, tuple[float, ...]], error: _Error
) -> Hyperparameters:
    """Set each hyperparameter in turn to its best value, until none changes."""
    best = start
    for _ in range(3):
        before = best
        for name, values in grid.items():
            # on a tie the value stays
            rivals = [best, *(replace(best, **{name: value}) for value in values)]
            best = min(rivals, key=error)
        if best == before:
            break
    return best


def sum_holdout_errors(
    specimens: Array, points: Array, holdouts: Sequence[Holdout], values: Hyperparameters
) -> float:
    """Sum the squared relative errors over all landmarks of all holdouts."""
    gaussian = ShapeGaussian(specimens, values)
    errors = [
        compute_squared_errors(
            gaussian.without(holdout.specimen).complete(holdout.hide(points)).points,
            points[holdout.specimen],
            holdout.hidden,
        )
        for holdout in holdouts
    ]
    return float(np.concatenate(errors).sum())


def compute_squared_errors(estimate: Array, truth: Array, hidden: Mask) -> Array:
    """Compute the squared distances (h,) of hidden landmarks from the truth, over squared size."""
    return np.asarray(((estimate - truth)[hidden] ** 2).sum(axis=1) / compute_squared_size(truth))


def compute_squared_size(shape: Array) -> float:
    """Compute the squared centroid size of the visible landmarks of a shape (m, d)."""
    visible = shape[~np.isnan(shape[:, 0])]
    return float(((visible - visible.mean(axis=0)) ** 2).sum())


def _leave_out_error(specimens: Array, points: Array, hidden: Mask) -> _Error:
    """Return the error of landmarks left out one by one; hidden ones have half of the weight."""
    # of very many landmarks some, the hidden ones among them; of very many specimens some
    chosen = np.arange(0, len(hidden), -(-len(hidden) // _MAX_LANDMARKS))
    landmarks = np.union1d(chosen, np.flatnonzero(hidden)[:_MAX_LANDMARKS])
    stride = -(-len(specimens) // _MAX_SPECIMENS)
    specimens, hidden = specimens[::stride, landmarks], hidden[landmarks]
    missing = np.isnan(points[::stride, landmarks, 0])

    def error(values: Hyperparameters) -> float:
        residuals, _ = predict_left_out(specimens, values)
        squares = np.where(missing, 0.0, (residuals**2).sum(axis=2))
        by_landmark = squares.sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
        return float(by_landmark.mean() + by_landmark[hidden].mean())

    return error
