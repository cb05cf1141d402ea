"""Explain what a robust fit rejected: exchanged labels, blocks that moved, order reversed.

Everything is judged in the space of the reference, where the warp of each shape puts its landmarks:
a rejected landmark has no part in that warp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index, Mask
from defgpa.procrustes import ORTHOGONAL_SIMILARITY, fit_motions

_EXCHANGED_RATIO = 1 / 3  # of its distance from its own place: so near is a landmark to the other's
_SHIFT_RATIO = 1 / 3  # of their shifts: so alike are those of landmarks that moved together
_REVERSED_RATIO = 1 / 3  # of the residual as it is: so well fits a shape whose order was reversed


@dataclass(frozen=True, eq=False)
class Suspect:
    """Landmarks of a shape that do not fit the others, for one reason.

    Attributes
    ----------
    shape : str
    landmarks : tuple of str
        Empty for a shape as a whole.
    reason : {"exchanged", "shifted", "misplaced", "reversed", "far"}
    score : float
        The largest leave-one-out residual among them, in robust standard deviations.
    points, expected : array (k, d)
        Where the landmarks are, and where the other shapes have them, in the coordinates of the
        shape.
    """

    shape: str
    landmarks: tuple[str, ...]
    reason: str
    score: float
    points: Array
    expected: Array


def explain_rejection(alignment: Alignment) -> tuple[Suspect, ...]:
    """Explain what the robust fit of an alignment rejected, the largest score of a shape first.

    Examples
    --------
    >>> import defgpa
    >>> points = np.array(defgpa.datasets.smooth_family(12, 30, 2, bend=0.05, seed=1).shapes.points)
    >>> points[3, [4, 20]] = points[3, [20, 4]]
    >>> points[7] = points[7, ::-1]
    >>> suspects = explain_rejection(defgpa.DefGPA(robust=True).align(points))
    >>> [(suspect.shape, suspect.reason, suspect.landmarks) for suspect in suspects]
    [('shape_4', 'exchanged', ('5', '21')), ('shape_8', 'reversed', ())]
    """
    rejection = alignment.rejection
    if rejection is None:
        return ()
    suspects: list[Suspect] = []
    for shape in np.flatnonzero(rejection.landmarks.any(axis=1) | rejection.shapes):
        if rejection.shapes[shape]:
            suspects.append(_explain_shape(alignment, int(shape)))
            continue
        groups = _group_landmarks(alignment, int(shape))
        suspects += [
            _make_suspect(alignment, int(shape), group, reason) for group, reason in groups
        ]
    return tuple(suspects)


def _make_suspect(alignment: Alignment, shape: int, landmarks: Index, reason: str) -> Suspect:
    assert alignment.rejection is not None
    shapes, scores = alignment.shapes, alignment.rejection.scores[shape]
    numbers = landmarks if len(landmarks) else np.arange(shapes.n_landmarks)
    return Suspect(
        shapes.names[shape],
        tuple(shapes.landmarks[j] for j in landmarks),
        reason,
        float(scores[numbers].max()),
        shapes.points[shape, landmarks],
        alignment.warps[shape].inverse()(alignment.reference[landmarks]),
    )


def _explain_shape(alignment: Alignment, shape: int) -> Suspect:
    """Explain why a shape does not fit as a whole: its order may be reversed."""
    points, reference = alignment.shapes.points[shape], alignment.reference
    residuals = [_measure_residual(order, reference) for order in (points, points[::-1])]
    is_reversed = residuals[1] < _REVERSED_RATIO * residuals[0]
    no_landmarks = np.arange(0)
    return _make_suspect(alignment, shape, no_landmarks, "reversed" if is_reversed else "far")


def _measure_residual(points: Array, reference: Array) -> float:
    """Return the RMS distance of a shape from the reference after the best similarity."""
    motion = fit_motions(points, reference, motions=ORTHOGONAL_SIMILARITY)
    return float(np.sqrt(np.nanmean(((motion(points) - reference) ** 2).sum(axis=1))))


def _group_landmarks(alignment: Alignment, shape: int) -> Iterator[tuple[Index, str]]:
    """Yield rejected landmarks of a shape: exchanged pairs, blocks that moved together, others."""
    assert alignment.rejection is not None
    rejected = np.flatnonzero(alignment.rejection.landmarks[shape])
    images, places = alignment.aligned[shape, rejected], alignment.reference[rejected]
    is_free = np.ones(len(rejected), dtype=bool)
    for a, b in _find_exchanged(images, places):
        is_free[[a, b]] = False
        yield rejected[[a, b]], "exchanged"
    shifts = images[is_free] - places[is_free]
    for block in _find_blocks(shifts):
        members = rejected[is_free][block]
        yield members, "shifted" if len(members) > 1 else "misplaced"


def _find_exchanged(images: Array, places: Array) -> Iterator[tuple[int, int]]:
    """Yield pairs of landmarks each of which lies near the place of the other."""
    distances = cdist(images, places)
    is_near = distances < _EXCHANGED_RATIO * np.diag(distances)[:, np.newaxis]
    pairs = np.argwhere(np.triu(is_near & is_near.T, k=1))
    paired: set[int] = set()
    for a, b in pairs[np.argsort([distances[a, b] + distances[b, a] for a, b in pairs])]:
        if not paired & {int(a), int(b)}:
            paired |= {int(a), int(b)}
            yield int(a), int(b)


def _find_blocks(shifts: Array) -> list[Mask]:
    """Return groups of landmarks whose shifts (k, d) are alike."""
    if not len(shifts):
        return []
    lengths = np.linalg.norm(shifts, axis=1)
    is_alike = cdist(shifts, shifts) < _SHIFT_RATIO * np.minimum(lengths[:, np.newaxis], lengths)
    count, labels = connected_components(is_alike, directed=False)
    return [labels == number for number in range(count)]
