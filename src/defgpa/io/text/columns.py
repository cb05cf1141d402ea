"""Which columns of a table are the coordinates of which landmark: ``x1``, ``apex_x``, ``1.X``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from defgpa._arrays import Index
from defgpa.errors import FormatError
from defgpa.io.files import wrong
from defgpa.io.text.lines import numbered

_AXES = "xyz"
_FORMS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<label>.+)[ _.:-](?P<axis>[xyz])",
        r"(?P<axis>[xyz])[ _.:-]?(?P<label>.+)",
        r"(?P<label>.+)(?P<axis>[xyz])",
    )
)

_SERIAL = re.compile(r"([a-z ]*coord)[ _.]?([0-9]{1,9})", re.IGNORECASE)  # ProcCoord1, RawCoord1
_REPEATED = re.compile(r"([xyz])(\.[0-9]+)?", re.IGNORECASE)  # x, then x.1 as pandas writes it

Axes = dict[str, list[int]]  # "x", "y", "z" to the columns that claim it


@dataclass(frozen=True, eq=False)
class CoordinateColumns:
    """The columns of every landmark."""

    labels: tuple[str, ...] | None  # None where they are only numbered
    where: Index  # (m, d)


def coordinate_names(labels: Sequence[str], dim: int) -> list[str]:
    """The heads of the columns of these landmarks: ``x1, y1`` if numbered, else ``apex_x``."""
    axes = _AXES[:dim]
    if tuple(labels) == numbered("", len(labels)):
        return [f"{axis}{label}" for label in labels for axis in axes]
    return [f"{label}_{axis}" for label in labels for axis in axes]


def plain_axes(heads: Sequence[str]) -> tuple[int, ...]:
    """The columns called x, y and perhaps z; () unless there are x and y, each once."""
    places = _repeated(heads)
    names = [axis for axis, _ in places]
    if not {"x", "y"} <= set(names) or len(names) != len(set(names)):
        return ()
    return tuple(column for _, column in sorted(places))


def coordinate_columns(path: Path, line: int, heads: Sequence[str]) -> CoordinateColumns | None:
    """The coordinates among the columns of a table, or None if the heads do not name any."""
    repeated = _repeated_landmarks(heads)
    if repeated is not None:
        return CoordinateColumns(None, repeated)
    claims = max((_claims(form, heads) for form in _FORMS), key=_heads_explained)
    complete = {label: axes for label, axes in claims.items() if {"x", "y"} <= axes.keys()}
    if not complete:
        return None
    _require_sense(path, line, claims, complete)
    labels = tuple(complete)
    where = np.array([[axes[axis][0] for axis in sorted(axes)] for axes in complete.values()])
    return CoordinateColumns(None if labels == numbered("", len(labels)) else labels, where)


def serial_columns(heads: Sequence[str]) -> list[int]:
    """The columns that count all coordinates from 1, as MorphoJ does: the first such series."""
    series: dict[str, list[int]] = {}
    for column, head in enumerate(heads):
        match = _SERIAL.fullmatch(head.strip())
        if match and int(match[2]) == len(series.setdefault(match[1].lower(), [])) + 1:
            series[match[1].lower()].append(column)
    return next((columns for columns in series.values() if len(columns) > 1), [])


def _bare(head: str) -> str:
    """A head without the unit in brackets behind it."""
    text = head.strip()
    if text.endswith((")", "]")):
        text = text[: max(text.rfind("("), text.rfind("["), 0)].rstrip()
    return text


def _repeated(heads: Sequence[str]) -> list[tuple[str, int]]:
    """The columns called just x, y or z, whose repetitions may be numbered."""
    bare = [_bare(head).lower() for head in heads]
    if not {"x", "y"} <= set(bare):
        return []
    return [(head[0], k) for k, head in enumerate(bare) if _REPEATED.fullmatch(head)]


def _repeated_landmarks(heads: Sequence[str]) -> Index | None:
    """(m, d) columns of a header that repeats x, y[, z] for every landmark."""
    places = _repeated(heads)
    names = "".join(axis for axis, _ in places)
    for axes in ("xy", "xyz"):
        times = len(names) // len(axes)
        if times > 1 and names == axes * times:
            return np.array([column for _, column in places]).reshape(times, len(axes))
    return None


def _claims(form: re.Pattern[str], heads: Sequence[str]) -> dict[str, Axes]:
    """Landmark to its columns, in one form of naming."""
    claims: dict[str, Axes] = {}
    for column, head in enumerate(heads):
        match = form.fullmatch(_bare(head))
        if match:
            axes = claims.setdefault(match["label"], {})
            axes.setdefault(match["axis"].lower(), []).append(column)
    return claims


def _heads_explained(claims: dict[str, Axes]) -> int:
    return sum(len(axes) for axes in claims.values() if {"x", "y"} <= axes.keys())


def _require_sense(
    path: Path, line: int, claims: dict[str, Axes], complete: dict[str, Axes]
) -> None:
    """Every coordinate once and in one dimension; ``sex`` is just a column that ends in x."""
    for label, axes in complete.items():
        if any(len(columns) > 1 for columns in axes.values()):
            raise wrong(path, f"one column for each axis of landmark {label!r}", "two", line)
    for label in claims.keys() - complete.keys():
        if label.isdecimal():
            only = ", ".join(claims[label])
            raise wrong(path, f"columns x and y of landmark {label!r}", f"only {only}", line)
    if len({len(axes) for axes in complete.values()}) > 1:
        raise FormatError(
            f"{path}, line {line}: expected x, y and z for every landmark or for none; "
            "found both kinds."
        )
