"""Recognise columns of coordinates by name: ``x1``, ``apex_x``, ``1.X``, ``V1``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from defgpa.arrays import Index
from defgpa.errors import FormatError
from defgpa.io.files import make_format_error
from defgpa.io.weights import VISIBILITY_WORDS, WEIGHT_WORDS
from defgpa.shapes import number_labels

_FORMS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<label>.+)[ _.:-](?P<axis>[xyz])([ _.:-]?coord(inate)?s?)?",
        r"(?P<axis>[xyz])[ _.:-]?(?P<label>.+)",
        r"(?P<label>.+)(?P<axis>[xyz])",
    )
)

_QUALITY = "|".join((*WEIGHT_WORDS, *VISIBILITY_WORDS))
_QUALITY_FORMS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?P<label>.+?)[ _.:-]?(?P<kind>{_QUALITY})",
        rf"(?P<kind>{_QUALITY})[ _.:-]?(?P<label>.+)",
    )
)
_POSITION = re.compile(  # Position X, x_coordinate, pos.y
    r"((pos|position|coord|coordinate|location|loc)s?[ _.:-]*)?(?P<axis>[xyz])"
    r"([ _.:-]*(pos|position|coord|coordinate)s?)?",
    re.IGNORECASE,
)
_SERIAL = re.compile(r"(.*?)[ _.]?([0-9]{1,9})", re.DOTALL)  # ProcCoord1, RawCoord1, V1, 1
_PANDAS_AXIS = re.compile(r"([xyz])(\.[0-9]+)?", re.IGNORECASE)  # x, then x.1 as pandas writes it

Axes = dict[str, list[int]]  # "x", "y", "z" to the columns that claim it
Columns = tuple[tuple[str, ...] | None, Index]  # labels, unless only numbered; (m, d) columns


def find_plain_axes(heads: Sequence[str]) -> tuple[int, ...]:
    """Find the columns called x, y and perhaps z; () unless there are x and y, each once."""
    places = _find_axis_columns(heads)
    names = [axis for axis, _ in places]
    if not {"x", "y"} <= set(names) or len(names) != len(set(names)):
        return ()
    return tuple(column for _, column in sorted(places))


def find_coordinate_columns(path: Path, line: int, heads: Sequence[str]) -> Columns | None:
    """Find the coordinates among the columns of a table; None if the heads name none."""
    repeated = _find_repeated_axes(heads)
    if repeated is not None:
        return None, repeated
    names = [_remove_unit(head) for head in heads]
    if len(set(names)) < len({head.strip() for head in heads}):
        names = [head.strip() for head in heads]  # eye (left) and eye (right)
    forms = [_match_form(form, names) for form in _FORMS]
    axes_by_landmark = max(
        forms,
        key=lambda axes_by_landmark: sum(map(len, _select_complete(axes_by_landmark).values())),
    )
    complete = _select_complete(axes_by_landmark)
    if not complete:
        return None
    _require_consistent_axes(path, line, axes_by_landmark, complete)
    labels = tuple(complete)
    where = np.array([[axes[axis][0] for axis in sorted(axes)] for axes in complete.values()])
    return None if labels == number_labels("", len(labels)) else labels, where


def find_serial_columns(heads: Sequence[str]) -> list[int]:
    """Find the columns that count all coordinates from 0 or 1.

    Of several such series the first that is called "coord", as MorphoJ does, else the longest.
    """
    series: dict[tuple[str, int], list[int]] = {}
    for column, head in enumerate(heads):
        match = _SERIAL.fullmatch(head.strip())
        if match is None:
            continue
        for base in (0, 1):
            columns = series.setdefault((match[1].lower(), base), [])
            if int(match[2]) == base + len(columns):
                columns.append(column)
    for (word, _), columns in series.items():
        if word.endswith("coord") and len(columns) > 1:
            return columns
    longest = max(series.values(), key=len, default=[])
    is_unbroken = longest == list(range(longest[0], longest[-1] + 1)) if longest else False
    return longest if is_unbroken and len(longest) >= 4 else []  # two landmarks


def find_quality_columns(heads: Sequence[str], columns: Columns) -> dict[int, tuple[str, int]]:
    """Find the columns that state a weight or the visibility of a landmark.

    Parameters
    ----------
    heads : sequence of str
        All heads of the table.
    columns : tuple
        Labels (None if the landmarks are numbered) and columns (m, d) of the coordinates.

    Returns
    -------
    dict
        From column to what it states (``"likelihood"``, ``"visible"``, …) and the number of its
        landmark, from 0: by its label, or by the coordinates before it.
    """
    labels, where = columns
    number = {label: j for j, label in enumerate(labels or number_labels("", len(where)))}
    before = {int(column) + 1: j for j, column in enumerate(where.max(axis=1))}
    used_columns, quality = set(where.ravel().tolist()), dict[int, tuple[str, int]]()
    for column, head in enumerate(heads):
        if column in used_columns:
            continue
        name = re.sub(r"[.][0-9]+$", "", head.strip().lower())
        if name in (*WEIGHT_WORDS, *VISIBILITY_WORDS) and column in before:
            quality[column] = name, before[column]
            continue
        matches = (form.fullmatch(head.strip()) for form in _QUALITY_FORMS)
        match = next((match for match in matches if match and match["label"] in number), None)
        if match:
            quality[column] = match["kind"].lower(), number[match["label"]]
    return quality


def _remove_unit(head: str) -> str:
    """Remove the unit in brackets from a head; ``tip (x)`` becomes ``tip x``."""
    text = head.strip()
    if not text.endswith((")", "]")):
        return text
    bracket = max(text.rfind("("), text.rfind("["), 0)
    unit, before = text[bracket + 1 : -1].strip(), text[:bracket].rstrip()
    return f"{before} {unit}" if unit.lower() in tuple("xyz") and before else before


def _find_axis_columns(heads: Sequence[str]) -> list[tuple[str, int]]:
    """Find the columns called just x, y or z, or their position; repetitions may be numbered."""
    bare = [_remove_unit(head).lower() for head in heads]
    positions = [_POSITION.fullmatch(head) for head in bare]
    bare = [match["axis"] if match else head for head, match in zip(bare, positions, strict=True)]
    if not {"x", "y"} <= set(bare):
        return []
    return [(head[0], k) for k, head in enumerate(bare) if _PANDAS_AXIS.fullmatch(head)]


def _find_repeated_axes(heads: Sequence[str]) -> Index | None:
    """Find (m, d) columns of a header that repeats x, y[, z] for every landmark."""
    places = _find_axis_columns(heads)
    names = "".join(axis for axis, _ in places)
    for axes in ("xy", "xyz"):
        times = len(names) // len(axes)
        if times > 1 and names == axes * times:
            return np.array([column for _, column in places]).reshape(times, len(axes))
    return None


def _match_form(form: re.Pattern[str], heads: Sequence[str]) -> dict[str, Axes]:
    """Map each landmark to its columns, in one form of naming."""
    axes_by_landmark: dict[str, Axes] = {}
    for column, head in enumerate(heads):
        match = form.fullmatch(head)
        if match:
            axes = axes_by_landmark.setdefault(match["label"], {})
            axes.setdefault(match["axis"].lower(), []).append(column)
    return axes_by_landmark


def _select_complete(axes_by_landmark: dict[str, Axes]) -> dict[str, Axes]:
    """Select the landmarks that have x and y at least."""
    return {label: axes for label, axes in axes_by_landmark.items() if {"x", "y"} <= axes.keys()}


def _require_consistent_axes(
    path: Path, line: int, axes_by_landmark: dict[str, Axes], complete: dict[str, Axes]
) -> None:
    """Require every coordinate once and in one dimension; ``sex`` is a column, not an x."""
    for label, axes in complete.items():
        if any(len(columns) > 1 for columns in axes.values()):
            raise make_format_error(
                path, f"one column for each axis of landmark {label!r}", "two", line
            )
    for label in axes_by_landmark:
        if label not in complete and label.isdecimal():
            only = ", ".join(axes_by_landmark[label])
            raise make_format_error(
                path, f"columns x and y of landmark {label!r}", f"only {only}", line
            )
    if len({len(axes) for axes in complete.values()}) > 1:
        raise FormatError(
            f"{path}, line {line}: expected x, y and z for every landmark or for none; "
            "found both kinds."
        )
