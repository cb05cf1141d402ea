"""Tables of landmarks in three layouts: a row a shape, a row a landmark, or a file a shape.

Wide: ``id, x1, y1[, z1], x2, …``. Long: columns shape, landmark, x, y[, z] in any order. One
file a shape: rows of 2 or 3 numbers, with a label or without. The header decides, or, where
there is none, the number of columns. Comma, semicolon, tab, or blanks between bare numbers.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from defgpa._arrays import Array
from defgpa.errors import FormatError
from defgpa.io._atomic import write_text
from defgpa.io._columns import CoordinateColumns, coordinate_columns, coordinate_names
from defgpa.io._files import hidden, wrong
from defgpa.io._format import Document, Format, ReadOptions, Specimen
from defgpa.io._text import (
    default_name,
    head_text,
    is_number,
    number,
    numbers,
    quick_numbers,
    storable,
    text_of,
    warn,
)
from defgpa.shapes import Shapes

_DELIMITERS = (";", "\t", ",")
_EXCEL_HINT = re.compile(r"sep=(.)", re.IGNORECASE)
_AXIS = re.compile(r"([xyz])\s*([\[(].*[\])])?", re.IGNORECASE)
# What columns are called, the surer words first.
_SHAPE_WORDS = ("shape", "specimen", "individual", "sample", "subject", "case", "image", "file")
_LANDMARK_WORDS = ("landmark", "lm", "point", "marker", "vertex", "label", "index")
_GROUP_WORDS = ("group", "class", "population", "species", "sex")
_NAME_WORDS = ("id", "name")
_FILLERS = ("id", "name", "no", "nr", "number", "label")
_UNFIT = r"^\s+|\s+$|[\r\n\0]"


@dataclass(frozen=True)
class _Table:
    """The cells of a file, its header apart."""

    path: Path
    header: tuple[str, ...]  # () if there is none
    header_line: int
    rows: Sequence[Sequence[str]]
    lines: Sequence[int]  # the number of each row's line

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.rows[0])

    def column(self, number: int) -> list[str]:
        """The words of one column."""
        return [row[number].strip() for row in self.rows]

    def numbers(self, columns: Sequence[int]) -> Array:
        """(rows, columns) the numbers of these columns, in this order."""
        cells = [[row[k] for k in columns] for row in self.rows]
        values = quick_numbers(list(chain.from_iterable(cells)))
        if values:
            return np.array(values).reshape(len(cells), -1)
        pairs = zip(self.lines, cells, strict=True)
        return np.array([numbers(self.path, at, row) for at, row in pairs])


@dataclass(frozen=True)
class _Roles:
    """What the columns of a table with plain x and y columns are."""

    axes: tuple[int, ...]
    shape: int | None
    landmark: int | None
    group: int | None


def read_csv(path: Path, options: ReadOptions) -> Document:
    """A table in whatever layout it is."""
    table = _table(path)
    return _hidden(_layout(table)(table), options)


def read_long(path: Path, options: ReadOptions) -> Document:
    """A table with one row a landmark, which names its shape."""
    table = _table(path)
    if _roles(table) is None:
        raise wrong(path, "columns shape, landmark, x and y", _shown_header(table), 1)
    return _hidden(_long(table), options)


def read_points(path: Path, options: ReadOptions) -> Document:
    """A table that is one shape, with one row a landmark."""
    return _hidden(_points(_table(path)), options)


def write_wide(path: Path, shapes: Shapes) -> None:
    """One row a shape under ``id, x1, y1, …``."""
    n, _, d = shapes.points.shape
    labels = storable(shapes.landmarks, _UNFIT, "landmark label")
    names = storable(shapes.names, _UNFIT, "name")
    rows = zip(names, shapes.points.reshape(n, -1).tolist(), strict=True)
    _write(path, ["id", *coordinate_names(labels, d)], ([name, *row] for name, row in rows))


def write_long(path: Path, shapes: Shapes) -> None:
    """One row a landmark under ``shape, landmark, x, y[, z]``."""
    labels = storable(shapes.landmarks, _UNFIT, "landmark label")
    names = storable(shapes.names, _UNFIT, "name")
    rows = (
        [name, label, *point]
        for name, points in zip(names, shapes.points.tolist(), strict=True)
        for label, point in zip(labels, points, strict=True)
    )
    _write(path, ["shape", "landmark", *"xyz"[: shapes.dim]], rows)


def write_points(path: Path, shapes: Shapes) -> None:
    """One shape under ``landmark, x, y[, z]``."""
    labels = storable(shapes.landmarks, _UNFIT, "landmark label")
    pairs = zip(labels, shapes.points[0].tolist(), strict=True)
    _write(path, ["landmark", *"xyz"[: shapes.dim]], ([label, *point] for label, point in pairs))


# The cells


def _table(path: Path) -> _Table:
    """Rows of equal length, and the header if the first of them is one."""
    lines, rows = _cells(path, text_of(path))
    rows = _without_padding(rows)
    for at, row in zip(lines, rows, strict=True):
        if len(row) != len(rows[0]):
            raise wrong(path, f"{len(rows[0])} columns, as above", str(len(row)), at)
    if len(rows[0]) < 2:
        raise wrong(path, "columns of numbers", repr(", ".join(rows[0])), lines[0])
    if not _is_header(rows[0]):
        return _Table(path, (), 0, rows, lines)
    if len(rows) == 1:
        raise FormatError(f"{path} has no numbers: expected rows below the header; found none.")
    return _Table(path, tuple(rows[0]), lines[0], rows[1:], lines[1:])


def _cells(path: Path, text: str) -> tuple[list[int], list[list[str]]]:
    """The rows that are not blank, with their lines; comments may only stand on top."""
    lines = text.split("\n")
    start, hint = _start(lines)
    delimiter = hint or _delimiter(lines[start : start + 20])
    _refuse_decimal_commas(path, lines, start)
    at, rows = [], []
    try:
        for line, row in _split(lines[start:], delimiter):
            if row and (row[0].strip() or any(cell.strip() for cell in row)):
                at.append(line + start)
                rows.append(row)
    except csv.Error as error:
        raise FormatError(f"{path} is not a table that can be read: {error}.") from None
    if not rows:
        raise FormatError(f"{path} has no numbers: expected a table; found only comments.")
    return at, rows


def _start(lines: Sequence[str]) -> tuple[int, str]:
    """Where the table begins, and the delimiter that Excel's ``sep=;`` line names."""
    start, hint = 0, ""
    while start < len(lines) and (not lines[start].strip() or lines[start].startswith("#")):
        start += 1
    match = _EXCEL_HINT.fullmatch(lines[start].strip(" ")) if start < len(lines) else None
    if match:
        start, hint = start + 1, match[1]
    return start, hint if hint in _DELIMITERS else ""


def _delimiter(lines: Sequence[str]) -> str:
    """What stands in every line, or else in most; "" is blanks."""
    full = [line for line in lines if line.strip()]
    shares = {mark: sum(mark in line for line in full) for mark in _DELIMITERS}
    best = max(_DELIMITERS, key=shares.__getitem__)
    return best if shares[best] * 2 >= max(len(full), 1) else ""


def _refuse_decimal_commas(path: Path, lines: Sequence[str], start: int) -> None:
    """``1,5 2,5`` must not pass for a table of three columns."""
    words = lines[start].split() if start < len(lines) else []
    if len(words) > 1 and all(re.fullmatch(r"[+-]?[0-9]+,[0-9]+", word) for word in words):
        number(path, start + 1, words[0])


def _split(lines: Sequence[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    if not delimiter:
        yield from ((at, line.split()) for at, line in enumerate(lines, start=1))
        return
    ended = (f"{line}\n" for line in lines)  # so that a quoted cell may go over several
    reader = csv.reader(ended, delimiter=delimiter, skipinitialspace=True)
    before = 0
    for row in reader:
        yield before + 1, row
        before = reader.line_num


def _without_padding(rows: list[list[str]]) -> list[list[str]]:
    """Without the empty cells that spreadsheets add at the right of all rows."""
    used = max(map(_used, rows))
    padded = min(map(len, rows)) >= used and max(map(len, rows)) > used
    return [row[:used] for row in rows] if padded else rows


def _used(row: Sequence[str]) -> int:
    """The number of cells up to the last that is not empty."""
    used = len(row)
    while used and not row[used - 1].strip():
        used -= 1
    return used


def _is_header(row: Sequence[str]) -> bool:
    """Whether the entries after the first are words, mostly: one alone is a mistake.

    Programs that number the columns write 0, 1, 2, … after an empty cell.
    """
    first, *rest = (cell.strip() for cell in row)
    words = sum(not is_number(cell) for cell in rest)
    return 2 * words >= len(rest) or (not first and _count_up(rest))


def _count_up(words: Sequence[str]) -> bool:
    """Whether these are 0, 1, 2, … or 1, 2, 3, …"""
    return any(list(words) == [str(k + base) for k in range(len(words))] for base in (0, 1))


# The layouts


def _layout(table: _Table) -> Callable[[_Table], Document]:
    """How this table is laid out, by its header or else by its columns."""
    if _axes(table.header):
        return _long if _is_long(table) else _points
    if table.header and coordinate_columns(table.path, table.header_line, table.header):
        return _wide
    return _points if _narrow(table) else _unnamed_wide


def _narrow(table: _Table) -> bool:
    """Whether rows are single points: 2 or 3 numbers, or a label before them."""
    words = not all(map(is_number, table.column(0)))
    return table.width - words in (2, 3) or (table.width == 4 and _count_up(table.column(0)))


def _axes(header: Sequence[str]) -> tuple[int, ...]:
    """The columns called x, y and perhaps z; () unless there are x and y."""
    found: dict[str, int] = {}
    for column, head in enumerate(header):
        match = _AXIS.fullmatch(head.strip())
        if match:
            found.setdefault(match[1].lower(), column)
    axes = tuple(found[axis] for axis in "xyz" if axis in found)
    return axes if {"x", "y"} <= found.keys() else ()


def _roles(table: _Table) -> _Roles | None:
    axes = _axes(table.header)
    if not axes:
        return None
    heads = {column: _head(head) for column, head in enumerate(table.header) if column not in axes}
    landmark = _first(heads, _LANDMARK_WORDS)
    shape = _first(heads, _SHAPE_WORDS)
    name = _first(heads, _NAME_WORDS)
    if shape is None and name is not None and (landmark is not None or _repeats(table, name)):
        shape, name = name, None
    if landmark is None:
        landmark = name
    return _Roles(axes, shape, landmark, _first(heads, _GROUP_WORDS))


def _head(text: str) -> str:
    """``Specimen ID`` as ``specimen``, ``id`` as it is."""
    words = re.findall(r"[a-z]+", text.lower())
    return " ".join(word for word in words if word not in _FILLERS) or " ".join(words)


def _first(heads: dict[int, str], words: Sequence[str]) -> int | None:
    """The column that has the first of these words, or its plural, as its head."""
    columns = ((c for c, head in heads.items() if head in (word, f"{word}s")) for word in words)
    return next(chain.from_iterable(columns), None)


def _repeats(table: _Table, column: int) -> bool:
    words = table.column(column)
    return len(set(words)) < len(words)


def _is_long(table: _Table) -> bool:
    roles = _roles(table)
    return roles is not None and roles.shape is not None


def _long(table: _Table) -> Document:
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
    return Document(
        tuple(
            Specimen(
                name or default_name(table.path, k, len(members)),
                points[rows],
                None if labels is None else tuple(labels[row] for row in rows),
                _groups(table, roles.group, rows[0]),
            )
            for k, (name, rows) in enumerate(members.items())
        )
    )


def _require_labels_once(
    table: _Table, members: dict[str, list[int]], labels: Sequence[str] | None
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


def _points(table: _Table) -> Document:
    """All rows are the points of one shape, called like the file."""
    roles = _roles(table)
    if roles is None:
        axes, label = _unnamed_axes(table), None
    else:
        axes, label = roles.axes, roles.landmark
    if label is None and 0 not in axes and not all(map(is_number, table.column(0))):
        label = 0
    labels = () if label is None else tuple(table.column(label))
    own = labels if labels and all(labels) else None
    return Document((Specimen(table.path.stem, table.numbers(axes), own),))


def _unnamed_axes(table: _Table) -> tuple[int, ...]:
    """The last 2 or 3 columns, after a label if there is one."""
    labelled = table.width == 4 or not all(map(is_number, table.column(0)))
    axes = tuple(range(labelled, table.width))
    if len(axes) not in (2, 3):
        raise wrong(table.path, "2 or 3 columns of numbers", str(table.width), table.lines[0])
    return axes


def _wide(table: _Table) -> Document:
    """Rows are shapes; the header names the coordinates."""
    columns = coordinate_columns(table.path, table.header_line, table.header)
    if columns is None:
        raise wrong(table.path, "columns x1, y1, …", _shown_header(table), table.header_line)
    taken = set(columns.where.ravel().tolist())
    heads = {column: _head(head) for column, head in enumerate(table.header) if column not in taken}
    group = _first(heads, _GROUP_WORDS)
    name = _first(heads, (*_NAME_WORDS, *_SHAPE_WORDS))
    if name is None:
        name = next((column for column in heads if column != group), None)
    return _rows_as_shapes(table, columns, name, group)


def _unnamed_wide(table: _Table) -> Document:
    """Rows are shapes; an identifier first, if it looks like one, then coordinates in order."""
    name = 0 if _has_identifiers(table) else None
    start = 0 if name is None else 1
    dim = _assumed_dim(table, table.width - start)
    where = np.arange(start, table.width, dtype=np.intp).reshape(-1, dim)
    return _rows_as_shapes(table, CoordinateColumns(None, where), name, None)


def _has_identifiers(table: _Table) -> bool:
    """Words, or whole numbers that differ and leave coordinates that are not whole."""
    first = table.column(0)
    if not all(map(is_number, first)):
        return True
    if not all(map(_whole, first)) or _repeats(table, 0) or not _divides(table.width - 1):
        return False
    fractions = any(not all(map(_whole, row[1:])) for row in table.rows)
    return fractions or _count_up(first) or not _divides(table.width)


def _whole(cell: str) -> bool:
    return re.fullmatch(r"[0-9]+", cell.strip()) is not None


def _divides(columns: int) -> bool:
    return columns % 2 == 0 or columns % 3 == 0


def _assumed_dim(table: _Table, columns: int) -> int:
    if not _divides(columns):
        expected = "coordinates in twos or threes after the identifier"
        raise wrong(table.path, expected, f"{columns} columns", table.lines[0])
    if columns % 6 == 0:
        warn(
            f"{table.path}: {columns} columns are {columns // 2} landmarks in 2-D or "
            f"{columns // 3} in 3-D; 2-D is assumed. A header x1,y1,z1,… would say it."
        )
    return 2 if columns % 2 == 0 else 3


def _rows_as_shapes(
    table: _Table, columns: CoordinateColumns, name: int | None, group: int | None
) -> Document:
    m, d = columns.where.shape
    points = table.numbers(columns.where.ravel().tolist()).reshape(-1, m, d)
    names = [""] * len(points) if name is None else table.column(name)
    return Document(
        tuple(
            Specimen(
                names[k] or default_name(table.path, k, len(points)),
                points[k],
                columns.labels,
                _groups(table, group, k),
            )
            for k in range(len(points))
        )
    )


def _groups(table: _Table, column: int | None, row: int) -> dict[str, Any]:
    return {} if column is None else {"groups": table.rows[row][column].strip()}


def _hidden(document: Document, options: ReadOptions) -> Document:
    if options.missing == "marked":
        return document
    return Document(
        tuple(
            Specimen(s.name, hidden(s.points, options.missing), s.labels, s.metadata)
            for s in document.specimens
        )
    )


def _shown_header(table: _Table) -> str:
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
    lines = head_text(head).split("\n")
    start, hint = _start(lines)
    rest = [line for line in lines[start : start + 20] if line.strip()]
    cut = len(head) >= 4096  # then the last line may end anywhere
    complete = rest[:-1] or rest if cut else rest
    delimiter = hint or _delimiter(complete)
    try:
        rows = [row for _, row in _split(complete, delimiter)]
    except csv.Error:
        return False
    return bool(rows) and (_coordinate_header(rows[0]) or _coordinate_rows(rows, delimiter))


def _coordinate_header(heads: Sequence[str]) -> bool:
    try:
        return bool(_axes(heads) or coordinate_columns(Path(), 0, heads))
    except FormatError:
        return True


def _coordinate_rows(rows: Sequence[Sequence[str]], delimiter: str) -> bool:
    """Whether a row of numbers comes first, or second below a header; between blanks, first."""
    candidates = rows[:2] if delimiter else rows[:1]
    for row in candidates:
        cells = row[1:] if delimiter and row and not is_number(row[0]) else row
        if len(cells) >= 2 and all(map(is_number, cells)) and any(cell.strip() for cell in cells):
            return True
    return False


FORMATS = (
    Format("csv", (".csv", ".tsv", ".txt"), _looks_like_csv, read_csv, write_wide),
    Format("csv-long", (".csv", ".tsv", ".txt"), _looks_like_csv, read_long, write_long),
    Format(
        "csv-points",
        (".csv", ".tsv", ".txt", ".xyz"),
        _looks_like_csv,
        read_points,
        write_points,
        one_shape_per_file=True,
    ),
)
