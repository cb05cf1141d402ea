"""A look at the shapes before anything is fitted: what seems wrong, and where.

All shapes are brought together by similarities that may mirror. A specimen that fits clearly
better mirrored, two landmarks that would fit better exchanged, a shape far from all others, or
one of quite another size (other units?) are named.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from defgpa._arrays import Array, Mask
from defgpa.procrustes import ORTHOGONAL_SIMILARITY, stacked
from defgpa.shapes import Shapes
from defgpa.solve.align import require_extended
from defgpa.solve.handedness import sides
from defgpa.solve.linkage import require_linked, shared_landmarks
from defgpa.solve.rigid import rigid_gpa
from defgpa.warps._frames import Frames, filled

_FAR = 6.0  # robust standard deviations above the median error of a shape
_OTHER_SIZE = 5.0  # times larger or smaller than the median
_EXCHANGE_LANDMARKS_UP_TO = 2000
_MOST_EXCHANGES = 5


@dataclass(frozen=True, eq=False)
class Screening:
    """What looks wrong in a set of shapes.

    Attributes
    ----------
    sizes : array (n,)
        RMS distance of the visible landmarks of each shape from their centroid.
    errors : array (n,)
        RMS distance of each shape from the common mean after similarities, relative to its size.
    mirrored : tuple of str
        Shapes that fit clearly better mirrored than most others do.
    outliers : tuple of str
        Shapes much farther from the mean than the others.
    other_size : tuple of str
        Shapes of quite another size: other units?
    exchanged : tuple of (str, str, str)
        Shape and two landmarks that would fit much better exchanged.
    coincident : tuple of (str, str, str)
        Shape and two of its landmarks with the very same coordinates.
    """

    sizes: Array
    errors: Array
    mirrored: tuple[str, ...]
    outliers: tuple[str, ...]
    other_size: tuple[str, ...]
    exchanged: tuple[tuple[str, str, str], ...]
    coincident: tuple[tuple[str, str, str], ...]


def screen(shapes: Shapes) -> Screening:
    """Look for mirrored specimens, exchanged landmarks, outliers, other units, coincidences.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa import Shapes
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(20, 2)) + 0.02 * rng.normal(size=(8, 20, 2))
    >>> points[3, :, 0] *= -1
    >>> points[5, [2, 7]] = points[5, [7, 2]]
    >>> found = screen(Shapes(points))
    >>> found.mirrored, found.exchanged
    (('shape_4',), (('shape_6', '3', '8'),))
    """
    shapes.require_alignable()
    lone = np.setdiff1d(np.arange(shapes.n_landmarks), shared_landmarks(shapes))
    core = shapes.without(lone) if len(lone) else shapes
    require_linked(core)
    require_extended(core)
    frames = Frames(filled(core.points, core.visible), core.visible)
    fit = rigid_gpa(core.points, ORTHOGONAL_SIMILARITY)
    aligned = core.points @ fit.matrices + fit.offsets[:, None]
    distances = np.linalg.norm(aligned - fit.reference, axis=2)
    errors = np.sqrt(np.nanmean(distances**2, axis=1)) / _size(fit.reference)
    side = sides(frames.centred, core.visible, fit.reference)
    return Screening(
        frames.size,
        errors,
        _named(core, side.votes * side.majority < 0),
        _named(core, _far_above(errors)),
        _named(core, _of_other_size(frames.size)),
        tuple(_exchanged(core, fit.reference, errors)),
        tuple(_coincident(core)),
    )


def guessed_units(shapes: Shapes) -> str:
    """What the coordinates probably are, in a few words; a guess, and said so."""
    points = shapes.points[shapes.visible]
    extent = float(np.nanmax(np.ptp(points, axis=0)))
    if shapes.metadata.get("space"):
        return "millimetres (anatomical coordinates)"
    if shapes.metadata.get("scales"):
        return "real units (the file states a scale)"
    if shapes.dim == 2 and points.min() >= 0 and extent > 50:
        return "probably pixels"
    if extent <= 5:
        return "unknown; perhaps already normalised"
    return "unknown"


def _size(reference: Array) -> float:
    centred = reference - reference.mean(axis=0)
    return float(np.sqrt((centred**2).sum(axis=1).mean()))


def _named(shapes: Shapes, chosen: Mask) -> tuple[str, ...]:
    return tuple(shapes.names[i] for i in np.flatnonzero(chosen))


def _far_above(errors: Array) -> Mask:
    """By the median and the median deviation, which a few outliers cannot move."""
    middle = np.median(errors)
    spread = 1.4826 * np.median(np.abs(errors - middle))
    far = errors - middle > _FAR * spread
    return np.asarray(far & (errors > 2 * middle) & (errors > 1e-9))


def _of_other_size(sizes: Array) -> Mask:
    ratio = sizes / np.median(sizes)
    return np.asarray((ratio > _OTHER_SIZE) | (ratio < 1.0 / _OTHER_SIZE))


def _exchanged(shapes: Shapes, reference: Array, errors: Array) -> list[tuple[str, str, str]]:
    """Pairs whose exchange makes a badly fitting shape fit well."""
    if shapes.n_landmarks > _EXCHANGE_LANDMARKS_UP_TO:
        return []
    found = []
    for i in np.flatnonzero(errors > 1.3 * np.median(errors)):
        seen = np.flatnonzero(shapes.visible[i])
        for a, b in _exchanges(shapes.points[i, seen], reference[seen]):
            pair = shapes.landmarks[seen[a]], shapes.landmarks[seen[b]]
            found.append((shapes.names[i], *pair))
    return found


def _exchanges(points: Array, reference: Array) -> list[tuple[int, int]]:
    """The exchanges, greedily: the pair that gains most, as long as it gains a lot."""
    points = points.copy()
    found: list[tuple[int, int]] = []
    error = _misfit(points, reference)
    while len(found) < _MOST_EXCHANGES:
        moved = stacked(points, reference, motions=ORTHOGONAL_SIMILARITY)(points)
        distance = cdist(moved, reference, "sqeuclidean")
        stay = np.diag(distance)
        gain = stay[:, None] + stay[None, :] - distance - distance.T
        a, b = sorted(np.unravel_index(int(gain.argmax()), gain.shape))
        points[[a, b]] = points[[b, a]]
        better = _misfit(points, reference)
        if better > 0.7 * error:
            break
        error = better
        found.append((int(a), int(b)))
    return found


def _misfit(points: Array, reference: Array) -> float:
    moved = stacked(points, reference, motions=ORTHOGONAL_SIMILARITY)(points)
    return float(np.sqrt(((moved - reference) ** 2).sum(axis=1).mean()))


def _coincident(shapes: Shapes) -> list[tuple[str, str, str]]:
    found = []
    for i, own in enumerate(shapes.points):
        seen = np.flatnonzero(shapes.visible[i])
        _, first, inverse, counts = np.unique(
            own[seen], axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        for b in np.flatnonzero(counts[inverse.ravel()] > 1):
            a = first[inverse.ravel()[b]]
            if a != b:
                pair = shapes.landmarks[seen[a]], shapes.landmarks[seen[b]]
                found.append((shapes.names[i], *pair))
    return found
