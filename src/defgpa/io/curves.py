"""Curves among landmarks: recognised by the labels of their points, resampled.

The points of a curve stand behind the landmarks of their specimen and are called ``curve1_1``,
``curve1_2``, … (``outline1_1``, … where the curve is closed). Other programs call them ``C00_01``,
or give all points of a curve the same label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array
from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError, ShapeError
from defgpa.io.format import SourcedSpecimen
from defgpa.io.text.lines import warn
from defgpa.shapes import number_labels

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

_NAME_MARK = "curve:"  # before the name of a curve, until it has a number
_OWN_NAME = re.compile(r"(curve|outline)([1-9][0-9]*)_([1-9][0-9]*)")
_OTHER_NAME = re.compile(r"(c|curve|crv)[ _.-]?([0-9]+)[ _.:-]([0-9]+)", re.IGNORECASE)
_SHORT_NAME = re.compile(r"(c|curve|crv)[ _.-]?([0-9]+)", re.IGNORECASE)


def equalise_curves(
    specimens: Sequence[SourcedSpecimen], count: int | None
) -> list[SourcedSpecimen]:
    """Give every specimen the same points on its curves.

    Parameters
    ----------
    specimens : sequence of SourcedSpecimen
    count : int, optional
        Resample each curve to so many points. Without it curves stay where all specimens have
        as many points on them; otherwise they are left out with a warning.
    """
    specimens = _number_curves(specimens)
    specimens = [_recognise_curves(specimen, _OWN_NAME) for specimen in specimens]
    if count is not None or _has_unequal_labels(specimens):
        specimens = [_recognise_curves(specimen, _OTHER_NAME) for specimen in specimens]
    if count is not None:
        specimens = [_resample_curves(specimen, count) for specimen in specimens]
    return _drop_unequal_curves(specimens)


def name_curve_point(curve: str, number: int) -> str:
    """Name a point of a curve that its file names; `equalise_curves` numbers the curves of all."""
    return f"{_NAME_MARK}{curve}_{number}"


def _number_curves(specimens: Sequence[SourcedSpecimen]) -> list[SourcedSpecimen]:
    """Replace the names of curves by numbers, the same one for the same name in all specimens."""
    names = (name for specimen in specimens for name in specimen.curves)
    prefixes = dict.fromkeys(n.rpartition("_")[0] for n in names if n.startswith(_NAME_MARK))
    numbers = {prefix: f"curve{k}" for k, prefix in enumerate(prefixes, 1)}
    return [
        _rename_curves(specimen, numbers) if numbers and specimen.curves else specimen
        for specimen in specimens
    ]


def _rename_curves(specimen: SourcedSpecimen, numbers: Mapping[str, str]) -> SourcedSpecimen:
    """Rename the points of curves, and order the curves by their numbers."""
    order = {prefix: k for k, prefix in enumerate(numbers)}
    places = [name.rpartition("_") for name in specimen.curves]
    if any(prefix not in order for prefix, _, _ in places):
        return specimen
    n_landmarks = len(specimen.points) - len(places)
    point_order = sorted(range(len(places)), key=lambda k: order[places[k][0]])
    names = tuple(f"{numbers[places[k][0]]}_{places[k][2]}" for k in point_order)
    points = specimen.points[n_landmarks:][point_order]
    return replace(
        specimen,
        points=np.concatenate([specimen.points[:n_landmarks], points]),
        labels=specimen.labels and (*specimen.labels[:n_landmarks], *names),
        curves=names,
    )


def _has_unequal_labels(specimens: Sequence[SourcedSpecimen]) -> bool:
    sequences = {specimen.labels for specimen in specimens if specimen.labels}
    return len(sequences) > 1 or any(len(set(labels)) < len(labels) for labels in sequences)


def _recognise_curves(specimen: SourcedSpecimen, name: re.Pattern[str]) -> SourcedSpecimen:
    """Recognise points of curves by their labels, and move them after the landmarks.

    The labels of at least three points of a curve count from 0 or 1, or are all the same.
    """
    if specimen.curves or not specimen.labels or specimen.faces is not None:
        return specimen
    order, names, n_landmarks = _arrange_labels(specimen.labels, name)
    if n_landmarks == len(names):
        return specimen
    return replace(
        specimen,
        points=specimen.points[order],
        labels=names,
        curves=names[n_landmarks:],
        weights=None if specimen.weights is None else specimen.weights[order],
    )


@lru_cache(maxsize=1)  # most specimens have the labels of the one before
def _arrange_labels(
    labels: tuple[str, ...], name: re.Pattern[str]
) -> tuple[list[int], tuple[str, ...], int]:
    """Arrange landmarks before the points of curves; return how many landmarks there are, too."""
    members: dict[tuple[str, str], list[int]] = {}
    times = Counter(labels) if name is _OTHER_NAME else Counter[str]()
    for k, label in enumerate(labels):
        match = name.fullmatch(label) or (times[label] >= 3 and _SHORT_NAME.fullmatch(label))
        if match:
            members.setdefault((match[1].lower(), match[2]), []).append(k)
    curves = [
        ("outline" if kind == "outline" else "curve", points)
        for (kind, _), points in members.items()
        if len(points) >= 3 and _is_numbered([labels[k] for k in points], name)
    ]
    on_curves = {k for _, points in curves for k in points}
    order = [k for k in range(len(labels)) if k not in on_curves]
    names, counts = [labels[k] for k in order], Counter[str]()
    n_landmarks = len(order)
    for kind, points in curves:
        counts[kind] += 1
        order += points
        names += number_labels(f"{kind}{counts[kind]}_", len(points))
    return order, tuple(names), n_landmarks


def _is_numbered(labels: Sequence[str], name: re.Pattern[str]) -> bool:
    """Return whether labels of a curve count from 0 or 1, or are all the same."""
    if len(set(labels)) == 1:
        return True
    numbers = [int(match[3]) for label in labels if (match := name.fullmatch(label))]
    return any(numbers == list(range(base, base + len(labels))) for base in (0, 1))


def _resample_curves(specimen: SourcedSpecimen, count: int) -> SourcedSpecimen:
    """Resample each curve of a specimen to a number of points."""
    start = len(specimen.points) - len(specimen.curves)
    blocks, names = [specimen.points[:start]], list[str]()
    weights = [] if specimen.weights is None else [specimen.weights[:start]]
    for prefix, members in groupby(specimen.curves, key=lambda name: name.rpartition("_")[0]):
        numbers = slice(start, start := start + len(list(members)))
        try:
            blocks.append(
                resample_curve(specimen.points[numbers], count, prefix.startswith("outline"))
            )
        except ShapeError:
            raise FormatError(f"{specimen}: {prefix} has too few points to be resampled.") from None
        if specimen.weights is not None:
            weights.append(np.full(count, specimen.weights[numbers].mean()))
        names += number_labels(f"{prefix}_", count)
    n_landmarks = len(blocks[0])
    return replace(
        specimen,
        points=np.concatenate(blocks),
        labels=specimen.labels and (*specimen.labels[:n_landmarks], *names),
        curves=tuple(names),
        weights=np.concatenate(weights) if weights else None,
    )


def _drop_unequal_curves(specimens: list[SourcedSpecimen]) -> list[SourcedSpecimen]:
    """Drop all curves if their numbers of points differ between specimens."""
    present = [specimen for specimen in specimens if len(specimen.points)]
    kinds = Counter(specimen.curves for specimen in present)
    if len(kinds) <= 1:
        return specimens
    majority = kinds.most_common(1)[0][0]
    exception = next(specimen for specimen in present if specimen.curves != majority)
    without_curves = [_drop_curves(specimen) for specimen in specimens]
    resampling = name_option("curve_points", 30)
    if not any(len(specimen.points) for specimen in without_curves):
        raise FormatError(
            f"{exception}: expected curves with the same number of points in every specimen, "
            "as there are no landmarks besides; found different ones. Resample the curves: "
            f"{resampling}."
        )
    warn(
        "The curves do not have the same number of points in every specimen "
        f"({len(majority)} in most, {len(exception.curves)} in {exception}), so they are left out; "
        f"only landmarks are read. To have them resampled: {resampling}."
    )
    return without_curves


def _drop_curves(specimen: SourcedSpecimen) -> SourcedSpecimen:
    n_landmarks = len(specimen.points) - len(specimen.curves)
    return replace(
        specimen,
        points=specimen.points[:n_landmarks],
        labels=specimen.labels and specimen.labels[:n_landmarks],
        curves=(),
        weights=None if specimen.weights is None else specimen.weights[:n_landmarks],
    )


def resample_curve(curve: ArrayLike, count: int, closed: bool = False) -> Array:
    """Place points at equal arc lengths on the spline through a curve.

    Parameters
    ----------
    curve : array (p, d)
        Points along the curve in their order; rows of NaN are passed over.
    count : int
        How many points to place.
    closed : bool
        Whether the curve returns to its first point, which is then placed once. The ends of an
        open curve are kept.

    Returns
    -------
    array (count, d)
        Points at equal distances along the curve, its ends among them unless it is closed.

    Examples
    --------
    >>> import numpy as np
    >>> turns = np.sort(np.random.default_rng(0).uniform(0, np.pi, 40))
    >>> turns[[0, -1]] = 0, np.pi
    >>> half = resample_curve(np.column_stack([np.cos(turns), np.sin(turns)]), 5)
    >>> np.degrees(np.arctan2(half[:, 1], half[:, 0])).round(1) + 0.0
    array([  0.,  45.,  90., 135., 180.])
    """
    if closed:
        points = np.asarray(curve, dtype=np.float64)
        return resample_curve(np.vstack([points, points[:1]]), count + 1)[:-1]
    points = np.asarray(curve, dtype=np.float64)
    points = points[~np.isnan(points[:, 0])]
    chords = np.linalg.norm(np.diff(points, axis=0), axis=1)
    points = points[np.concatenate([[True], chords > 0])]
    if len(points) < 2 or count < 2:
        raise ShapeError(
            f"A curve is resampled with at least 2 points through at least 2; got {count} through "
            f"{len(points)}."
        )
    knots = np.concatenate([[0.0], np.cumsum(chords[chords > 0])])
    spline = fit_spline(knots, points)
    samples = np.concatenate(  # 64 samples of the spline between two points, to measure its length
        [np.linspace(a, b, 64, endpoint=False) for a, b in pairwise(knots)] + [knots[-1:]]
    )
    steps = np.linalg.norm(np.diff(spline(samples), axis=0), axis=1)
    length = np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(spline(np.interp(np.linspace(0.0, length[-1], count), length, samples)))


def fit_spline(knots: Array, points: Array, kind: str = "not-a-knot") -> CubicSpline:
    """Fit the cubic spline through points (p, d) at knots (p,), in whatever units they are.

    The equations are solved for knots up to about 1, since they mix lengths with pure numbers;
    a power of two changes no digit.
    """
    from scipy.interpolate import CubicSpline  # slow to load, and few files have curves

    scale = 2.0 ** np.frexp(knots[-1])[1]
    spline = CubicSpline(knots / scale, points, bc_type=kind)
    powers = np.arange(len(spline.c))[::-1].reshape(-1, 1, 1)
    spline.x, spline.c = knots, spline.c / scale**powers
    return spline
