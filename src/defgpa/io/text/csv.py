"""Tables of landmarks: which layout a table has, and how tables are written.

Wide: ``id, x1, y1[, z1], x2, …``, or ``ProcCoord1, ProcCoord2, …`` as MorphoJ exports. Long:
columns shape, landmark, x, y[, z] in any order. One file a shape: rows of 2 or 3 numbers, with a
label or without, or a table of 3D Slicer's (``label, l, p, s`` or ``r, a, s``). The header
decides, or, where there is none, the number of columns. Comma, semicolon, tab or blanks separate.
Each layout is read in a file of its own: ``shape_rows``, ``landmark_rows``, ``across``,
``tracked``, ``blocks``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from defgpa.errors import FormatError
from defgpa.io.atomic import write_text
from defgpa.io.files import hidden, wrong
from defgpa.io.format import Document, Format, ReadOptions
from defgpa.io.text.across import (
    is_array,
    is_melted,
    named_rows,
    read_array,
    read_melted,
    read_named_rows,
)
from defgpa.io.text.blocks import read_blocks
from defgpa.io.text.columns import coordinate_columns, plain_axes, serial_columns
from defgpa.io.text.landmark_rows import (
    anatomical_axes,
    is_cloud,
    is_narrow,
    names_shapes,
    read_by_shape,
    read_control_points,
    read_one_shape,
    roles_of,
)
from defgpa.io.text.lines import is_number, storable
from defgpa.io.text.shape_rows import read_counted, read_under_heads, read_unnamed
from defgpa.io.text.table import Table, csv_text, first_rows, table_of
from defgpa.io.text.tracked import begins_tracked, is_tracked, read_tracked
from defgpa.io.text.variables import written_variables
from defgpa.shapes import Shapes
from defgpa.tables import coordinate_names

_UNFIT = r"^\s|\s$|[\r\n\0]"
_FEW = 4  # numbers that prose may have on its lines
_HOLDS = ("groups", "variables", "images", "comments")


def read_csv(path: Path, options: ReadOptions) -> Document:
    """A table in whatever layout it is."""
    return _hidden(read_blocks(path) or _read(table_of(path), options), options)


def read_long(path: Path, options: ReadOptions) -> Document:
    """A table with one row a landmark, which names its shape."""
    table = table_of(path)
    if roles_of(table) is None:
        raise wrong(path, "columns shape, landmark, x and y", table.shown_header, 1)
    return _hidden(read_by_shape(table), options)


def read_points(path: Path, options: ReadOptions) -> Document:
    """A table that is one shape, with one row a landmark."""
    return _hidden(read_one_shape(table_of(path), options.dimension), options)


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


def _read(table: Table, options: ReadOptions) -> Document:
    """What a table holds: its header tells how it is laid out, or else its columns do."""
    if is_tracked(table):
        return read_tracked(table)
    if anatomical_axes(table.header):
        return read_control_points(table)
    if names_shapes(table):
        return read_by_shape(table)
    if plain_axes(table.header) or is_cloud(table):
        return read_one_shape(table, options.dimension)
    if is_array(table, options.layout):
        return read_array(table)
    if columns := coordinate_columns(table.path, table.header_line, table.header):
        return read_under_heads(table, columns)
    if rows := named_rows(table):
        return read_named_rows(table, rows)
    if is_melted(table):
        return read_melted(table)
    if serial_columns(table.header):
        return read_counted(table, options.dimension)
    if is_narrow(table):
        return read_one_shape(table, options.dimension)
    return read_unnamed(table, options.dimension)


def _hidden(document: Document, options: ReadOptions) -> Document:
    space = document.metadata.get("space")
    return replace(
        document,
        specimens=tuple(
            replace(s, points=hidden(s.points, options.missing, space)) for s in document.specimens
        ),
    )


# Writing and recognising


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str | float]]) -> None:
    """Tabs in ``.tsv`` files, commas in others."""
    write_text(path, csv_text(header, rows, "NA", "\t" if path.suffix.lower() == ".tsv" else ","))


def _looks_like_csv(head: bytes) -> bool:
    """A row of numbers, or a header with coordinates: what cannot be prose."""
    rows, delimiter = first_rows(head)
    return bool(rows) and (
        _coordinate_header(rows[0]) or _coordinate_rows(rows, delimiter) or begins_tracked(rows)
    )


def _coordinate_header(heads: Sequence[str]) -> bool:
    try:
        named = plain_axes(heads) or serial_columns(heads) or anatomical_axes(heads)
        return bool(named or coordinate_columns(Path(), 0, heads))
    except FormatError:
        return True


def _coordinate_rows(rows: Sequence[Sequence[str]], delimiter: str) -> bool:
    """Whether a row of numbers comes first, or second below a header.

    Between blanks, where prose has its words too, the header must be R's and all rows numbers.
    """
    if any(_is_coordinates(row, delimiter) for row in rows[:1]):
        return True
    if delimiter:
        return len(rows) > 1 and _is_coordinates(rows[1], ",")
    if _are_named_points(rows):
        return True
    if len(rows) < 3:
        return False
    short = len(rows[0]) > 1 and {len(row) - len(rows[0]) for row in rows[1:]} == {1}
    return (short or not rows[0][0]) and all(_is_coordinates(row, ",") for row in rows[1:])


def _are_named_points(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all rows are a word and as many numbers, not all of them whole, as dates are."""
    numbers = [cell for row in rows for cell in row[1:]]
    alike = len(set(map(len, rows))) == 1 and len(rows[0]) > 2 and len(numbers) > _FEW
    return alike and all(map(is_number, numbers)) and any(re.search("[.,]", c) for c in numbers)


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
        holds=(),
    ),
)
