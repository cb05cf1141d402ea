"""Tables that lie across: R's arrays, and rows of coordinates with a column for each specimen.

R's ``write.csv`` of an array p × k × n has a row a landmark and, for each shape, k columns ``X1.a,
X2.a``; ``as.data.frame.table`` has a row for each single coordinate. Others name their rows
``X nasion, Y nasion, Z nasion``, perhaps in two columns, and have a column a specimen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.errors import FormatError
from defgpa.io.format import Document, document
from defgpa.io.text.columns import CoordinateColumns, Slices, array_slices, coordinate_columns
from defgpa.io.text.dimension import unlikeness
from defgpa.io.text.lines import is_number, warn
from defgpa.io.text.table import Table, count_up
from defgpa.io.text.variables import described
from defgpa.sentences import option

_UNLIKE = 0.15  # of their size between shapes, squared: they are not of one kind
_ALIKE = 0.25  # of what the other reading leaves: they are


def is_array(table: Table, layout: str) -> bool:
    """Whether the table is an R array with a row a landmark; where it may be, it is said."""
    slices = array_slices(table.header)
    if slices is None or layout not in ("auto", "mdn"):
        return False
    if slices.certain or layout == "mdn":
        return True
    across = _looks_across(table, slices)
    by = "which makes better shapes"
    if across is None:
        if slices.start == 0 or table.header[0].strip() or not count_up(table.column(0)):
            return False  # rows with names of their own are shapes
        across = not count_up(slices.names)
        by = f"as its columns are {'named' if across else 'numbered'}"
    n, m = len(slices.names), len(table.rows)
    readings = [f"{m} shapes of {n} landmarks", f"{n} shapes of {m} landmarks"]
    warn(
        f"{table.path}: the table is taken as {readings[across]}, {by}. "
        f"If it is {readings[not across]}, give {option('layout', 'nmd' if across else 'mdn')}."
    )
    return across


def _looks_across(table: Table, slices: Slices) -> bool | None:
    """Whether columns are shapes rather than rows; None where both make shapes of one kind."""
    points = _slices_of(table, slices)
    across, along = unlikeness(points), unlikeness(points.transpose(1, 0, 2))
    worse = max(across, along)
    if worse > _UNLIKE and min(across, along) < _ALIKE * worse:
        return across < along
    return None


def _slices_of(table: Table, slices: Slices) -> Array:
    """(n, m, d) a shape for every d columns."""
    values = table.numbers(range(slices.start, table.width))
    return values.reshape(len(values), len(slices.names), slices.dim).transpose(1, 0, 2)


def read_array(table: Table) -> Document:
    """Rows are landmarks; the columns of a shape stand side by side."""
    slices = array_slices(table.header)
    assert slices is not None  # is_array asked
    rows = table.column(0) if slices.start else []
    labels = None if count_up(rows) or not all(rows) else tuple(rows)
    return _shapes(table, slices.names, _slices_of(table, slices), labels)


@dataclass(frozen=True)
class NamedRows:
    """A table whose rows are coordinates and whose columns are shapes."""

    names: Sequence[str]  # of the shapes
    start: int  # the first column of a shape
    coordinates: CoordinateColumns  # which rows
    others: Mapping[str, int]  # rows that say something else about the shapes


def named_rows(table: Table) -> NamedRows | None:
    """What the first cells of the rows name, if nearly all of them are coordinates."""
    start, heads = _row_heads(table)
    try:
        found = coordinate_columns(table.path, table.lines[0], heads)
    except FormatError:
        return None
    if found is None or found.where.size < max(4, 0.8 * len(heads)):
        return None
    taken = set(found.where.ravel().tolist())
    others = {head: k for k, head in enumerate(heads) if head and k not in taken}
    names: Sequence[str] = table.header
    if not names and 0 not in taken:  # names that are numbers did not look like a header
        names = table.rows[0]
        others = {head: k for head, k in others.items() if k}
    return NamedRows(names[start:], start, found, others)


def read_named_rows(table: Table, rows: NamedRows) -> Document:
    """Rows are coordinates, columns are shapes."""
    m, d = rows.coordinates.where.shape
    where = rows.coordinates.where.ravel().tolist()
    lines = [table.lines[k] for k in where]
    coordinates = replace(table, rows=[table.rows[k] for k in where], lines=lines)
    values = coordinates.numbers(range(rows.start, table.width))
    said = [
        {head: word for head, k in rows.others.items() if (word := table.rows[k][column].strip())}
        for column in range(rows.start, table.width)
    ]
    return _shapes(table, rows.names, values.T.reshape(-1, m, d), rows.coordinates.labels, said)


def _row_heads(table: Table) -> tuple[int, list[str]]:
    """The column after the heads of the rows, and these: ``X tip``, or ``tip`` and ``X`` apart."""
    first, second = table.column(0), table.column(1)
    if table.width > 2 and _are_axes(first) and not all(map(is_number, second)):
        first, second = second, first
    if table.width < 3 or not _are_axes(second):
        return 1, table.column(0)
    filled: Iterator[str] = accumulate(first, lambda above, own: own or above)
    return 2, [f"{label}_{axis}" for label, axis in zip(filled, second, strict=True)]


def _are_axes(words: Sequence[str]) -> bool:
    return {word.lower() for word in words} <= set("xyz")


def is_melted(table: Table) -> bool:
    """Whether rows are single coordinates: landmark, axis, shape, number; each once."""
    start = table.width - 4
    if not table.header or start not in (0, 1) or is_number(table.rows[0][start + 1]):
        return False
    if start and (table.header[0].strip() or not count_up(table.column(0))):
        return False
    levels = [len(set(table.column(start + k))) for k in range(3)]
    numbers = all(is_number(cell) for cell in table.column(start + 3))
    return numbers and levels[1] in (2, 3) and int(np.prod(levels)) == len(table.rows)


def read_melted(table: Table) -> Document:
    """A row for each coordinate of each landmark of each shape, in any order."""
    start = table.width - 4  # after the numbers of the rows
    landmarks, row = _levels(table.column(start))
    axes, axis = _levels(sorted(set(table.column(start + 1))), table.column(start + 1))
    shapes, shape = _levels(table.column(start + 2))
    points = np.full((len(shapes), len(landmarks), len(axes)), np.nan)
    points[shape, row, axis] = table.numbers([start + 3])[:, 0]
    labels = None if count_up(landmarks) else tuple(landmarks)
    return _shapes(table, shapes, points, labels)


def _levels(order: Sequence[str], words: Sequence[str] = ()) -> tuple[list[str], Index]:
    """The different words in an order, by default that of first sight, and which each one is."""
    place = {word: k for k, word in enumerate(dict.fromkeys(order))}
    return list(place), np.array([place[word] for word in words or order], dtype=np.intp)


def _shapes(
    table: Table,
    names: Sequence[str],
    points: Array,
    labels: tuple[str, ...] | None,
    said: Sequence[Mapping[str, str]] = (),
) -> Document:
    own, known = [name.strip() for name in names], [described(words) for words in said]
    return document(table.path, points, own, labels, known, metadata={"format": "csv"})
