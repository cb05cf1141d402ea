"""Tables that lie across: R's arrays, and rows of coordinates with a column for each specimen.

R's ``write.csv`` of an array p × k × n has a row a landmark and, for each shape, k columns ``X1.a,
X2.a``; ``as.data.frame.table`` has a row for each single coordinate. Others name their rows
``X nasion, Y nasion, Z nasion`` and have a column a specimen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.errors import FormatError
from defgpa.io.files import wrong
from defgpa.io.format import Document, Specimen
from defgpa.io.text.columns import CoordinateColumns, array_slices, coordinate_columns
from defgpa.io.text.lines import default_name, is_number, warn
from defgpa.io.text.table import Table, count_up


def is_array(table: Table, layout: str) -> bool:
    """Whether the table is an R array with a row a landmark; where it may be, it is said."""
    slices = array_slices(table.header)
    if slices is None or layout not in ("auto", "mdn"):
        return False
    if slices.certain or layout == "mdn":
        return True
    if table.header[0].strip() or not count_up(table.column(0)):
        return False  # rows with names of their own are shapes
    n, m = len(slices.names), len(table.rows)
    across = not count_up(slices.names)
    readings = [f"{m} shapes of {n} landmarks", f"{n} shapes of {m} landmarks"]
    other = "nmd" if across else "mdn"
    warn(
        f"{table.path}: the table is taken as {readings[across]}, as its columns are "
        f"{'named' if across else 'numbered'}. If it is {readings[not across]}, give "
        f"layout={other!r}."
    )
    return across


def read_array(table: Table) -> Document:
    """Rows are landmarks; the columns of a shape stand side by side."""
    slices = array_slices(table.header)
    assert slices is not None  # is_array asked
    values = table.numbers(range(1, table.width))
    points = values.reshape(len(values), len(slices.names), slices.dim).transpose(1, 0, 2)
    rows = table.column(0)
    labels = None if count_up(rows) or not all(rows) else tuple(rows)
    return _shapes(table, slices.names, points, labels)


def named_rows(table: Table) -> CoordinateColumns | None:
    """The coordinates that the first cells of all rows name, if they do."""
    first = table.column(0)
    heads = first[1:] if _starts_with_names(table) else first
    try:
        found = coordinate_columns(table.path, table.lines[0], heads)
    except FormatError:
        return None
    return found if found is not None and found.where.size == len(heads) else None


def read_named_rows(table: Table) -> Document:
    """Rows are coordinates, columns are shapes."""
    columns = named_rows(table)
    if columns is None:
        raise wrong(table.path, "rows 'X name', 'Y name', …", table.rows[0][0], table.lines[0])
    names: Sequence[str] = table.header[1:]
    if _starts_with_names(table):
        names, table = table.rows[0][1:], _without_first_row(table)
    values = table.numbers(range(1, table.width))
    return _shapes(table, names, values.T[:, columns.where], columns.labels)


def is_melted(table: Table) -> bool:
    """Whether rows are single coordinates: landmark, axis, shape, number; each once."""
    if not table.header or table.width != 4 or is_number(table.rows[0][1]):
        return False
    levels = [len(set(table.column(k))) for k in range(3)]
    numbers = all(is_number(cell) for cell in table.column(3))
    return numbers and levels[1] in (2, 3) and int(np.prod(levels)) == len(table.rows)


def read_melted(table: Table) -> Document:
    """A row for each coordinate of each landmark of each shape, in any order."""
    landmarks, row = _levels(table.column(0))
    axes, axis = _levels(sorted(set(table.column(1))), table.column(1))
    shapes, shape = _levels(table.column(2))
    points = np.full((len(shapes), len(landmarks), len(axes)), np.nan)
    points[shape, row, axis] = table.numbers([3])[:, 0]
    labels = None if count_up(landmarks) else tuple(landmarks)
    return _shapes(table, shapes, points, labels)


def _levels(order: Sequence[str], words: Sequence[str] = ()) -> tuple[list[str], Index]:
    """The different words in an order, by default that of first sight, and which each one is."""
    place = {word: k for k, word in enumerate(dict.fromkeys(order))}
    return list(place), np.array([place[word] for word in words or order], dtype=np.intp)


def _starts_with_names(table: Table) -> bool:
    """Whether the first row has the names of the shapes, which are numbers."""
    first = table.column(0)
    if table.header or len(first) < 2:
        return False
    try:
        return coordinate_columns(table.path, table.lines[0], first[:1] + first[1:2]) is None
    except FormatError:
        return False


def _without_first_row(table: Table) -> Table:
    rows, lines = table.rows[1:], table.lines[1:]
    return Table(table.path, tuple(table.rows[0]), table.lines[0], rows, lines, table.delimiter)


def _shapes(
    table: Table, names: Sequence[str], points: Array, labels: tuple[str, ...] | None
) -> Document:
    n = len(points)
    own = [name.strip() for name in names] or [""] * n
    return Document(
        tuple(
            Specimen(own[k] or default_name(table.path, k, n), points[k], labels) for k in range(n)
        ),
        metadata={"format": "csv"},
    )
