"""Tables of landmarks: a row a shape, a row a landmark, or a file a shape.

Wide: ``id, x1, y1[, z1], x2, …``, or ``ProcCoord1, ProcCoord2, …`` as MorphoJ exports. Long:
columns shape, landmark, x, y[, z] in any order. One file a shape: rows of 2 or 3 numbers, with a
label or without, or a table of 3D Slicer's (``label, l, p, s`` or ``r, a, s``). The header
decides, or, where there is none, the number of columns. Comma, semicolon, tab or blanks separate.
Tables that lie across are in ``across.py``.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from defgpa._arrays import Array
from defgpa.errors import FormatError
from defgpa.io.atomic import write_text
from defgpa.io.files import hidden, wrong
from defgpa.io.format import Document, Format, ReadOptions, Specimen
from defgpa.io.text.across import (
    is_array,
    is_melted,
    named_rows,
    read_array,
    read_melted,
    read_named_rows,
)
from defgpa.io.text.columns import (
    CoordinateColumns,
    coordinate_columns,
    coordinate_names,
    plain_axes,
    serial_columns,
)
from defgpa.io.text.dimension import chosen_dimension
from defgpa.io.text.lines import default_name, is_number, storable, warn
from defgpa.io.text.table import Table, count_up, first_rows, table_of
from defgpa.io.text.variables import (
    LANDMARK_WORDS,
    NAME_WORDS,
    SHAPE_WORDS,
    first_column,
    head_word,
    is_described,
    variables_of,
    written_variables,
)
from defgpa.shapes import Shapes

_UNFIT = r"^\s|\s$|[\r\n\0]"
_ANATOMICAL = {"LPS": ("l", "p", "s"), "RAS": ("r", "a", "s")}
_HOLDS = frozenset({"groups", "variables", "images", "comments"})

Reader = Callable[[Table], Document]


@dataclass(frozen=True)
class _Roles:
    """What the columns of a table with plain x and y columns are."""

    axes: tuple[int, ...]
    shape: int | None
    landmark: int | None


def read_csv(path: Path, options: ReadOptions) -> Document:
    """A table in whatever layout it is."""
    table = table_of(path)
    return _hidden(_layout(table, options)(table), options)


def read_long(path: Path, options: ReadOptions) -> Document:
    """A table with one row a landmark, which names its shape."""
    table = table_of(path)
    if _roles(table) is None:
        raise wrong(path, "columns shape, landmark, x and y", _shown_header(table), 1)
    return _hidden(_long(table), options)


def read_points(path: Path, options: ReadOptions) -> Document:
    """A table that is one shape, with one row a landmark."""
    return _hidden(_points(table_of(path), options.dimension), options)


def write_wide(path: Path, shapes: Shapes) -> None:
    """One row a shape under ``id, x1, y1, …``; what else is known stands between."""
    n, _, d = shapes.points.shape
    labels = storable(shapes.landmarks, _UNFIT, "landmark label")
    names = storable(shapes.names, _UNFIT, "name")
    known = written_variables(shapes)
    described = [[column[k] for column in known.values()] for k in range(n)]
    rows = zip(names, described, shapes.points.reshape(n, -1).tolist(), strict=True)
    header = ["id", *known, *coordinate_names(labels, d)]
    _write(path, header, ([name, *words, *row] for name, words, row in rows))


def write_long(path: Path, shapes: Shapes) -> None:
    """One row a landmark under ``shape, landmark, x, y[, z]``; what else is known stands behind."""
    labels = storable(shapes.landmarks, _UNFIT, "landmark label")
    names = storable(shapes.names, _UNFIT, "name")
    known = written_variables(shapes)
    rows = (
        [name, label, *point, *(column[k] for column in known.values())]
        for k, (name, points) in enumerate(zip(names, shapes.points.tolist(), strict=True))
        for label, point in zip(labels, points, strict=True)
    )
    _write(path, ["shape", "landmark", *"xyz"[: shapes.dim], *known], rows)


def write_points(path: Path, shapes: Shapes) -> None:
    """One shape under ``landmark, x, y[, z]``."""
    labels = storable(shapes.landmarks, _UNFIT, "landmark label")
    pairs = zip(labels, shapes.points[0].tolist(), strict=True)
    _write(path, ["landmark", *"xyz"[: shapes.dim]], ([label, *point] for label, point in pairs))


# The layouts


def _layout(table: Table, options: ReadOptions) -> Reader:
    """How this table is laid out, by its header or else by its columns."""
    if _anatomical(table.header):
        return _control_points
    if plain_axes(table.header) and _is_long(table):
        return _long
    if plain_axes(table.header) or _is_cloud(table):
        return lambda table: _points(table, options.dimension)
    if is_array(table, options.layout):
        return read_array
    columns = table.header and coordinate_columns(table.path, table.header_line, table.header)
    if columns:
        return lambda table: _rows_under_heads(table, columns)
    if named_rows(table):
        return read_named_rows
    if is_melted(table):
        return read_melted
    if serial_columns(table.header):
        return lambda table: _serial(table, options.dimension)
    if _narrow(table):
        return lambda table: _points(table, options.dimension)
    return lambda table: _unnamed_wide(table, options.dimension)


def _is_cloud(table: Table) -> bool:
    """Whether rows are points with normals or colours behind them, as programs of scanners write."""
    numbers = all(map(is_number, table.rows[0]))
    return table.path.suffix.lower() == ".xyz" and table.width > 4 and numbers


def _narrow(table: Table) -> bool:
    """Whether rows are single points: 2 or 3 numbers, or a label before them."""
    words = not all(map(is_number, table.column(0)))
    return table.width - words in (2, 3) or (table.width == 4 and count_up(table.column(0)))


def _roles(table: Table) -> _Roles | None:
    axes = plain_axes(table.header)
    if not axes:
        return None
    heads = _heads(table, axes)
    landmark = first_column(heads, LANDMARK_WORDS)
    shape = first_column(heads, SHAPE_WORDS)
    name = first_column(heads, NAME_WORDS)
    if shape is None and name is not None and (landmark is not None or _repeats(table, name)):
        shape, name = name, None
    if landmark is None:
        landmark = name
    return _Roles(axes, shape, landmark)


def _heads(table: Table, taken: Iterable[int]) -> dict[int, str]:
    """What the other columns are called, in one word each."""
    used = set(taken)
    return {c: head_word(head) for c, head in enumerate(table.header) if c not in used}


def _repeats(table: Table, column: int) -> bool:
    words = table.column(column)
    return len(set(words)) < len(words)


def _is_long(table: Table) -> bool:
    roles = _roles(table)
    return roles is not None and roles.shape is not None


def _long(table: Table) -> Document:
    """Rows gathered by their shape; without a landmark column they are in the landmarks' order."""
    roles = _roles(table)
    if roles is None or roles.shape is None:
        raise wrong(table.path, "a column 'shape'", _shown_header(table), table.header_line or 1)
    points = table.numbers(roles.axes)
    members: dict[str, list[int]] = {}
    for row, name in enumerate(table.column(roles.shape)):
        members.setdefault(name, []).append(row)
    labels = None if roles.landmark is None else table.column(roles.landmark)
    _require_labels_once(table, members, labels)
    taken = {roles.shape, roles.landmark, *roles.axes} - {None}
    known = variables_of(table, (column for column in taken if column is not None))
    return Document(
        tuple(
            Specimen(
                name or default_name(table.path, k, len(members)),
                points[rows],
                None if labels is None else tuple(labels[row] for row in rows),
                known.of(table, rows),
            )
            for k, (name, rows) in enumerate(members.items())
        ),
        metadata={"format": "csv-long"},
    )


def _require_labels_once(
    table: Table, members: dict[str, list[int]], labels: Sequence[str] | None
) -> None:
    if labels is None:
        return
    for name, rows in members.items():
        seen: set[str] = set()
        for row in rows:
            if labels[row] in seen:
                expected = f"each landmark of shape {name!r} once"
                raise wrong(table.path, expected, f"{labels[row]!r} again", table.lines[row])
            seen.add(labels[row])


def _points(table: Table, dimension: int | None) -> Document:
    """All rows are the points of one shape, called like the file."""
    roles = _roles(table)
    if roles is None and _is_cloud(table):
        axes, label = (0, 1, 2), None
    elif roles is None:
        axes, label = _unnamed_axes(table, dimension), None
    else:
        axes, label = roles.axes, roles.landmark
    if label is None and 0 not in axes and not all(map(is_number, table.column(0))):
        label = 0
    labels = () if label is None else tuple(table.column(label))
    own = labels if labels and all(labels) else None
    return _one_shape(table, table.numbers(axes), own, {})


def _one_shape(
    table: Table, points: Array, labels: tuple[str, ...] | None, metadata: dict[str, Any]
) -> Document:
    specimen = Specimen(table.path.stem, points, labels)
    return Document((specimen,), metadata={"format": "csv-points", **metadata})


def _anatomical(header: Sequence[str]) -> tuple[str, tuple[int, ...]] | None:
    """The space and the columns of its axes, where the header names them, each once."""
    heads = [head.strip().lower() for head in header]
    for space, axes in _ANATOMICAL.items():
        if all(heads.count(axis) == 1 for axis in axes):
            return space, tuple(map(heads.index, axes))
    return None


def _control_points(table: Table) -> Document:
    """One shape as 3D Slicer exports it; ``defined`` is 0 for a point that was not placed."""
    found = _anatomical(table.header)
    assert found is not None  # _layout asked
    space, axes = found
    heads = {column: head.strip().lower() for column, head in enumerate(table.header)}
    label, defined = first_column(heads, ("label",)), first_column(heads, ("defined",))
    labels = () if label is None else tuple(table.column(label))
    points = table.numbers(axes)
    if defined is not None:
        points[[word == "0" for word in table.column(defined)]] = np.nan
    own = labels if labels and all(labels) else None
    return _one_shape(table, points, own, {"space": space})


def _unnamed_axes(table: Table, dimension: int | None) -> tuple[int, ...]:
    """The last 2 or 3 columns, after a label or a number of the landmark if there is one."""
    if dimension in (table.width, table.width - 1):
        return tuple(range(table.width - dimension, table.width))
    labelled = table.width == 4 or not all(map(is_number, table.column(0))) or _numbered(table)
    axes = tuple(range(labelled, table.width))
    if len(axes) not in (2, 3):
        raise wrong(table.path, "2 or 3 columns of numbers", str(table.width), table.lines[0])
    return axes


def _numbered(table: Table) -> bool:
    """Whether x and y stand behind 1, 2, 3, … as the number of the landmark."""
    if table.width != 3 or not count_up(table.column(0)):
        return False
    if table.header and not table.header[0].strip():
        return True  # the names that R gives to rows have no head
    whole = all(_whole(cell) for row in table.rows for cell in row[1:])
    if len(table.rows) < 3 or whole:
        return False
    warn(
        f"{table.path}: the first column counts the landmarks, so the others are x and y. "
        "If that is wrong, give dimension=3."
    )
    return True


def _serial(table: Table, dimension: int | None) -> Document:
    """Rows are shapes; the header counts their coordinates."""
    return _rows_under_heads(table, _in_turn(table, serial_columns(table.header), dimension))


def _rows_under_heads(table: Table, columns: CoordinateColumns) -> Document:
    """Rows are shapes; their name stands in a column without coordinates, if there is one."""
    heads = _heads(table, columns.where.ravel().tolist())
    name = first_column(heads, (*NAME_WORDS, *SHAPE_WORDS))
    return _rows_as_shapes(table, columns, next(iter(heads), None) if name is None else name)


def _unnamed_wide(table: Table, dimension: int | None) -> Document:
    """Rows are shapes; words about each first, or an identifier, then coordinates in order."""
    start = 0
    while start < table.width and is_described(table.column(start)):
        start += 1
    name = 0 if start or _has_identifiers(table) else None
    start = max(start, 0 if name is None else 1)
    heads = {column: head_word(head) for column, head in enumerate(table.header[:start])}
    stated = first_column(heads, (*NAME_WORDS, *SHAPE_WORDS))
    columns = _in_turn(table, list(range(start, table.width)), dimension)
    return _rows_as_shapes(table, columns, name if stated is None else stated)


def _has_identifiers(table: Table) -> bool:
    """Words, or whole numbers that differ and leave coordinates that are not whole."""
    first = table.column(0)
    if not all(map(is_number, first)):
        return True
    if not all(map(_whole, first)) or _repeats(table, 0) or not _divides(table.width - 1):
        return False
    fractions = any(not all(map(_whole, row[1:])) for row in table.rows)
    return fractions or count_up(first) or not _divides(table.width)


def _whole(cell: str) -> bool:
    return re.fullmatch(r"[0-9]+", cell.strip()) is not None


def _divides(columns: int) -> bool:
    return columns % 2 == 0 or columns % 3 == 0


def _in_turn(table: Table, columns: list[int], dimension: int | None) -> CoordinateColumns:
    """Columns that are x, y[, z] of one landmark after the other."""
    dim = chosen_dimension(table.path, table.numbers(columns), dimension)
    if dim is None:
        several = "twos or threes" if dimension is None else {2: "twos", 3: "threes"}[dimension]
        expected = f"coordinates in {several} after the identifier"
        raise wrong(table.path, expected, f"{len(columns)} columns", table.lines[0])
    return CoordinateColumns(None, np.array(columns, dtype=np.intp).reshape(-1, dim))


def _rows_as_shapes(table: Table, columns: CoordinateColumns, name: int | None) -> Document:
    m, d = columns.where.shape
    where = columns.where.ravel().tolist()
    points = table.numbers(where).reshape(-1, m, d)
    names = [""] * len(points) if name is None else table.column(name)
    known = variables_of(table, where if name is None else [*where, name])
    return Document(
        tuple(
            Specimen(
                names[k] or default_name(table.path, k, len(points)),
                points[k],
                columns.labels,
                known.of(table, [k]),
            )
            for k in range(len(points))
        )
    )


def _hidden(document: Document, options: ReadOptions) -> Document:
    if options.missing == "marked":
        return document
    space = document.metadata.get("space")
    return replace(
        document,
        specimens=tuple(
            replace(s, points=hidden(s.points, options.missing, space)) for s in document.specimens
        ),
    )


def _shown_header(table: Table) -> str:
    return repr(", ".join(table.header)) if table.header else "no header"


# Writing and recognising


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str | float]]) -> None:
    """Tabs in ``.tsv`` files, commas in others; floats in their shortest exact form."""
    text = io.StringIO()
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(
        ["NA" if isinstance(cell, float) and math.isnan(cell) else cell for cell in row]
        for row in rows
    )
    write_text(path, text.getvalue())


def _looks_like_csv(head: bytes) -> bool:
    """A row of numbers, or a header with coordinates: what cannot be prose."""
    rows, delimiter = first_rows(head)
    return bool(rows) and (_coordinate_header(rows[0]) or _coordinate_rows(rows, delimiter))


def _coordinate_header(heads: Sequence[str]) -> bool:
    try:
        named = plain_axes(heads) or serial_columns(heads) or _anatomical(heads)
        return bool(named or coordinate_columns(Path(), 0, heads))
    except FormatError:
        return True


def _coordinate_rows(rows: Sequence[Sequence[str]], delimiter: str) -> bool:
    """Whether a row of numbers comes first, or second below a header.

    Between blanks, where prose has its words too, the header must be R's and all rows numbers.
    """
    if any(_is_coordinates(row, delimiter) for row in rows[:1]):
        return True
    if delimiter or len(rows) < 3:
        return bool(delimiter) and len(rows) > 1 and _is_coordinates(rows[1], ",")
    short = len(rows[0]) > 1 and {len(row) - len(rows[0]) for row in rows[1:]} == {1}
    return (short or not rows[0][0]) and all(_is_coordinates(row, ",") for row in rows[1:])


def _is_coordinates(row: Sequence[str], delimiter: str) -> bool:
    """Whether there are two numbers at least, after words about the specimen."""
    start = 0
    while delimiter and start < len(row) and not is_number(row[start]):
        start += 1
    cells = row[start:]
    return len(cells) >= 2 and all(map(is_number, cells)) and any(cell.strip() for cell in cells)


FORMATS = (
    Format("csv", (".csv", ".tsv", ".txt"), _looks_like_csv, read_csv, write_wide, holds=_HOLDS),
    Format(
        "csv-long", (".csv", ".tsv", ".txt"), _looks_like_csv, read_long, write_long, holds=_HOLDS
    ),
    Format(
        "csv-points",
        (".csv", ".tsv", ".txt", ".xyz"),
        _looks_like_csv,
        read_points,
        write_points,
        one_shape_per_file=True,
        holds=frozenset(),
    ),
)
