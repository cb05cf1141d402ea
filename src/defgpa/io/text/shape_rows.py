"""Tables in which a row is a shape: ``id, x1, y1[, z1], x2, …``, whatever calls the columns."""

from __future__ import annotations

import numpy as np

from defgpa.io.files import wrong
from defgpa.io.format import Document, document
from defgpa.io.text.columns import CoordinateColumns, serial_columns
from defgpa.io.text.dimension import chosen_dimension
from defgpa.io.text.lines import is_number
from defgpa.io.text.table import Table, count_up, is_whole
from defgpa.io.text.variables import (
    NAME_WORDS,
    SHAPE_WORDS,
    first_column,
    head_word,
    is_described,
    other_heads,
    said_of,
    variables_of,
)


def read_counted(table: Table, dimension: int | None) -> Document:
    """Rows are shapes; the header counts their coordinates."""
    return read_under_heads(table, _in_turn(table, serial_columns(table.header), dimension))


def read_under_heads(table: Table, columns: CoordinateColumns) -> Document:
    """Rows are shapes; their name stands in a column without coordinates, if there is one."""
    heads = other_heads(table, columns.where.ravel().tolist())
    name = first_column(heads, (*NAME_WORDS, *SHAPE_WORDS))
    return _rows_as_shapes(table, columns, next(iter(heads), None) if name is None else name)


def read_unnamed(table: Table, dimension: int | None) -> Document:
    """Rows are shapes; an identifier or words about each around coordinates in order."""
    start, stop = 0, table.width
    while start < stop and is_described(table.column(start)):
        start += 1
    while stop > start and is_described(table.column(stop - 1)):
        stop -= 1
    name = 0 if start or _has_identifiers(table) else None
    start = max(start, 0 if name is None else 1)
    heads = {column: head_word(head) for column, head in enumerate(table.header[:start])}
    stated = first_column(heads, (*NAME_WORDS, *SHAPE_WORDS))
    columns = _in_turn(table, list(range(start, stop)), dimension)
    return _rows_as_shapes(table, columns, name if stated is None else stated)


def _has_identifiers(table: Table) -> bool:
    """Words, or whole numbers that differ and leave coordinates that are not whole."""
    first = table.column(0)
    if not all(map(is_number, first)):
        return True
    if not all(map(is_whole, first)) or table.repeats(0) or not _divides(table.width - 1):
        return False
    fractions = any(not all(map(is_whole, row[1:])) for row in table.rows)
    return fractions or count_up(first) or not _divides(table.width)


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
    names = () if name is None else table.column(name)
    known = variables_of(table, where if name is None else [*where, name])
    said = [said_of(table, [k], known) for k in range(len(points))]
    return document(table.path, points, names, columns.labels, said)
