"""Landmarks and shapes that a robust fit rejected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from defgpa.arrays import Array, Mask
from defgpa.diagnostics.findings import Finding, Problem

REJECTION_PROBLEMS = {
    Problem.REJECTED_LANDMARKS,
    Problem.REJECTED_SHAPES,
    Problem.ROBUST_BREAKDOWN,
}
_MAX_REJECTED_SHARE = 1 / 3  # of the observations of a landmark or of a shape, or of all shapes


class RejectedLandmark(NamedTuple):
    """A landmark of a shape that a robust fit left out."""

    shape: str
    landmark: str
    score: float  # its leave-one-out residual, in robust standard deviations


@dataclass(frozen=True, eq=False)
class Rejection:
    """What a robust fit rejected.

    Attributes
    ----------
    weights : array (n, m)
        Landmark weights at the end, 0 where rejected or missing.
    scores : array (n, m)
        Leave-one-out residuals, in robust standard deviations.
    landmarks : array (n, m) of bool
        Landmarks rejected one by one.
    shapes : array (n,) of bool
        Shapes rejected as a whole.
    converged : bool
        Whether the rounds came to an end.
    """

    weights: Array
    scores: Array
    landmarks: Mask
    shapes: Mask
    converged: bool


def check_rejection(
    rejection: Rejection,
    visible: Mask,
    names: Sequence[str],
    labels: Sequence[str],
    change: float | None = None,
) -> tuple[Finding, ...]:
    """Report the landmarks and shapes that a robust fit rejected, and whether they are too many.

    Parameters
    ----------
    rejection : Rejection
    visible : array (n, m) of bool
    names, labels : sequence of str
        Of the shapes and of the landmarks.
    change : float, optional
        How far the rejected landmarks would have moved the reference, relative to its size.
    """
    effect = {} if change is None else {"change": change}
    return (
        *_report_landmarks(rejection, names, labels, effect),
        *_report_shapes(rejection, names, effect),
        *_check_breakdown(rejection, visible, names, labels),
    )


def _report_landmarks(
    rejection: Rejection, names: Sequence[str], labels: Sequence[str], effect: dict[str, float]
) -> Iterator[Finding]:
    rejected = np.argwhere(rejection.landmarks)
    if len(rejected):
        pairs = tuple(f"{names[i]}: {labels[j]}" for i, j in rejected)
        largest = float(rejection.scores[rejection.landmarks].max())
        values = {"count": len(rejected), "largest": largest, **effect}
        yield Finding(Problem.REJECTED_LANDMARKS, landmarks=pairs, values=values)


def _report_shapes(
    rejection: Rejection, names: Sequence[str], effect: dict[str, float]
) -> Iterator[Finding]:
    rejected = tuple(names[int(i)] for i in np.flatnonzero(rejection.shapes))
    if rejected:
        yield Finding(Problem.REJECTED_SHAPES, shapes=rejected, values=effect)


def _check_breakdown(
    rejection: Rejection, visible: Mask, names: Sequence[str], labels: Sequence[str]
) -> Iterator[Finding]:
    """Report landmarks and shapes of which more is rejected than can be recovered."""
    rejected = (rejection.landmarks | rejection.shapes[:, np.newaxis]) & visible
    landmark_shares = rejected.sum(axis=0) / np.maximum(visible.sum(axis=0), 1)
    worst = tuple(labels[int(j)] for j in np.flatnonzero(landmark_shares > _MAX_REJECTED_SHARE))
    shape_shares = (rejection.landmarks & visible).sum(axis=1) / np.maximum(visible.sum(axis=1), 1)
    shapes = tuple(names[int(i)] for i in np.flatnonzero(shape_shares > _MAX_REJECTED_SHARE))
    if worst or shapes or rejection.shapes.mean() > _MAX_REJECTED_SHARE:
        share = 100.0 * rejected.sum() / max(int(visible.sum()), 1)
        yield Finding(Problem.ROBUST_BREAKDOWN, shapes, worst, values={"share": share})
