"""What the heads of a table call its columns: ``x1``, ``apex_x``, ``1.X``, ``V1``, ``X1.a``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from defgpa._arrays import Index
from defgpa.errors import FormatError
from defgpa.io.files import wrong
from defgpa.shapes import numbered

_AXES = "xyz"
_FORMS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<label>.+)[ _.:-](?P<axis>[xyz])([ _.:-]?coord(inate)?s?)?",
        r"(?P<axis>[xyz])[ _.:-]?(?P<label>.+)",
        r"(?P<label>.+)(?P<axis>[xyz])",
    )
)

_SERIAL = re.compile(r"(.*?)[ _.]?([0-9]{1,9})", re.DOTALL)  # ProcCoord1, RawCoord1, V1, 1
# X1.a, X2.a, X1.b as R calls the columns of an array, or X.a, Y.a with names for its coordinates
_SLICE = re.compile(r"(?P<axis>[A-Za-z]*[123]|[XYZxyz])\.(?P<name>.+)", re.DOTALL)
_REPEATED = re.compile(r"([xyz])(\.[0-9]+)?", re.IGNORECASE)  # x, then x.1 as pandas writes it

Axes = dict[str, list[int]]  # "x", "y", "z" to the columns that claim it


@dataclass(frozen=True, eq=False)
class CoordinateColumns:
    """The columns of every landmark."""

    labels: tuple[str, ...] | None  # None where they are only numbered
    where: Index  # (m, d)


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
    bare = [_bare(head) for head in heads]
    if len(set(bare)) < len({head.strip() for head in heads}):
        bare = [head.strip() for head in heads]  # eye (left) and eye (right)
    claims = max((_claims(form, bare) for form in _FORMS), key=_heads_explained)
    complete = {label: axes for label, axes in claims.items() if {"x", "y"} <= axes.keys()}
    if not complete:
        return None
    _require_sense(path, line, claims, complete)
    labels = tuple(complete)
    where = np.array([[axes[axis][0] for axis in sorted(axes)] for axes in complete.values()])
    return CoordinateColumns(None if labels == numbered("", len(labels)) else labels, where)


def serial_columns(heads: Sequence[str]) -> list[int]:
    """The columns that count all coordinates from 0 or 1.

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
    together = longest == list(range(longest[0], longest[-1] + 1)) if longest else False
    return longest if together and len(longest) >= 4 else []  # two landmarks


@dataclass(frozen=True)
class Slices:
    """The columns of a table that is an R array: for each shape, one for each coordinate."""

    names: tuple[str, ...]  # of the shapes
    dim: int
    start: int  # the first column of a shape: 1 after the names of the rows, or 0 without them
    certain: bool  # False where the columns could be landmarks, too


def array_slices(heads: Sequence[str]) -> Slices | None:
    """What the columns are, where R made a table of an array p × k × n, with row names or not."""
    matches = [_SLICE.fullmatch(head.strip()) for head in heads]
    start = 0 if matches and matches[0] else 1
    found = [match for match in matches[start:] if match]
    if not found or len(found) != len(heads) - start:
        return None
    axes = [match["axis"] for match in found]
    dim = len(dict.fromkeys(axes))
    names = [match["name"] for match in found[::dim]]
    in_turn = axes == axes[:dim] * len(names)
    together = [match["name"] for match in found] == [name for name in names for _ in range(dim)]
    if dim not in (2, 3) or not in_turn or not together or len(set(names)) < len(names):
        return None
    return Slices(tuple(names), dim, start, certain=axes[0][-1] == "1")


def _bare(head: str) -> str:
    """A head without the unit in brackets behind it; ``tip (x)`` is ``tip x``."""
    text = head.strip()
    if not text.endswith((")", "]")):
        return text
    at = max(text.rfind("("), text.rfind("["), 0)
    inside, before = text[at + 1 : -1].strip(), text[:at].rstrip()
    return f"{before} {inside}" if inside.lower() in tuple(_AXES) and before else before


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
        match = form.fullmatch(head)
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
