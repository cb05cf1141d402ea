"""Transposed tables: R's arrays, and rows of coordinates with a column for each specimen.

R's ``write.csv`` of an array p × k × n has a row a landmark and, for each shape, k columns ``X1.a,
X2.a``; ``as.data.frame.table`` has a row for each single coordinate. Others name their rows
``X nasion, Y nasion, Z nasion``, perhaps in two columns, and have a column a specimen.
Every reader gives None for tables of another layout.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from defgpa.arrays import Array, Index
from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError
from defgpa.io.format import Document, ReadOptions, make_document
from defgpa.io.text.column_names import find_coordinate_columns
from defgpa.io.text.dimension import measure_dissimilarity
from defgpa.io.text.lines import are_numbers, is_number, warn
from defgpa.io.text.table import Table, is_enumeration
from defgpa.io.text.variables import build_metadata

# X1.a, X2.a, X1.b as R calls the columns of an array, or X.a, Y.a with names for its coordinates
_SLICE = re.compile(r"(?P<axis>[A-Za-z]*[123]|[XYZxyz])\.(?P<name>.+)", re.DOTALL)


def read_array(table: Table, options: ReadOptions) -> Document | None:
    """Read an R array: rows are landmarks, and the columns of a shape stand side by side."""
    slices = find_array_slices(table.header)
    if slices is None or options.layout not in ("auto", "mdn"):
        return None
    names, axes, start = slices
    values = table.numbers(range(start, table.width))
    points = values.reshape(len(values), len(names), len(axes)).transpose(1, 0, 2)
    is_certain = axes[0].endswith("1") or options.layout == "mdn"  # X.a may be a landmark's, too
    if not is_certain and not _is_transposed(table, points, names, start):
        return None
    rows = table.column(0) if start else []
    return _build_shapes(
        table, names, points, None if is_enumeration(rows) or not all(rows) else tuple(rows)
    )


def find_array_slices(heads: Sequence[str]) -> tuple[list[str], list[str], int] | None:
    """Find the shapes, their axes and the first column of a shape (1 after row names)."""
    matches = [_SLICE.fullmatch(head.strip()) for head in heads]
    start = 0 if matches and matches[0] else 1
    present = [match for match in matches[start:] if match]
    if not present or len(present) != len(heads) - start:
        return None
    axes = list(dict.fromkeys(match["axis"] for match in present))
    names = [match["name"] for match in present[:: len(axes)]]
    expected = [(name, axis) for name in names for axis in axes]
    if [(match["name"], match["axis"]) for match in present] != expected:
        return None
    return (names, axes, start) if len(axes) in (2, 3) and len(set(names)) == len(names) else None


def _is_transposed(table: Table, points: Array, names: Sequence[str], start: int) -> bool:
    """Return whether columns rather than rows are shapes; warn where both may be."""
    columns, rows = measure_dissimilarity(points), measure_dissimilarity(points.transpose(1, 0, 2))
    larger = max(columns, rows)
    if larger > 0.15 and min(columns, rows) < 0.25 * larger:  # these are not of one kind, those are
        is_transposed, reason = columns < rows, "which makes better shapes"
    elif start == 0 or table.header[0].strip() or not is_enumeration(table.column(0)):
        return False  # rows with names of their own are shapes
    else:
        is_transposed = not is_enumeration(names)
        reason = f"as its columns are {'named' if is_transposed else 'numbered'}"
    n, m = len(names), len(table.rows)
    readings = [f"{m} shapes of {n} landmarks", f"{n} shapes of {m} landmarks"]
    warn(
        f"{table.path}: the table is taken as {readings[is_transposed]}, {reason}. "
        f"If it is {readings[not is_transposed]}, "
        f"give {name_option('layout', 'nmd' if is_transposed else 'mdn')}."
    )
    return is_transposed


def read_coordinate_rows(table: Table, _: ReadOptions) -> Document | None:
    """Read rows that are coordinates, nearly all of them, and say which in their first cells."""
    start, heads = _find_row_heads(table)
    try:
        columns = find_coordinate_columns(table.path, table.lines[0], heads)
    except FormatError:
        return None
    if columns is None or columns[1].size < max(4, 0.8 * len(heads)):
        return None
    labels, where = columns
    used_columns = where.ravel().tolist()
    others = {head: k for k, head in enumerate(heads) if head and k not in set(used_columns)}
    names: Sequence[str] = table.header
    if not names and 0 not in used_columns:  # names that are numbers did not look like a header
        names = table.rows[0]
        others = {head: k for head, k in others.items() if k}
    lines = [table.lines[k] for k in used_columns]
    coordinates = replace(table, rows=[table.rows[k] for k in used_columns], lines=lines)
    values = coordinates.numbers(range(start, table.width))
    texts_per_shape = [
        {head: word for head, k in others.items() if (word := table.rows[k][column].strip())}
        for column in range(start, table.width)
    ]
    return _build_shapes(
        table, names[start:], values.T.reshape(-1, *where.shape), labels, texts_per_shape
    )


def _find_row_heads(table: Table) -> tuple[int, list[str]]:
    """Find the heads of rows (``X tip``, or ``tip`` and ``X``) and the column after them."""
    first, second = table.column(0), table.column(1)
    if table.width > 2 and _is_axis_column(first) and not are_numbers(second):
        first, second = second, first
    if table.width < 3 or not _is_axis_column(second):
        return 1, table.column(0)
    filled: Iterator[str] = accumulate(first, lambda above, word: word or above)
    return 2, [f"{label}_{axis}" for label, axis in zip(filled, second, strict=True)]


def _is_axis_column(words: Sequence[str]) -> bool:
    return {word.lower() for word in words} <= set("xyz")


def read_single_coordinates(table: Table, _: ReadOptions) -> Document | None:
    """Read rows of single coordinates in any order: landmark, axis, shape, number; each once."""
    start = table.width - 4  # after the numbers of the rows
    if not table.header or start not in (0, 1) or is_number(table.rows[0][start + 1]):
        return None
    if start and (table.header[0].strip() or not is_enumeration(table.column(0))):
        return None
    landmarks, row = _find_levels(table.column(start))
    axes, axis = np.unique(table.column(start + 1), return_inverse=True)
    shapes, shape = _find_levels(table.column(start + 2))
    size = len(shapes), len(landmarks), len(axes)
    numbers = are_numbers(table.column(start + 3))
    if not numbers or len(axes) not in (2, 3) or math.prod(size) != len(table.rows):
        return None
    points = np.full(size, np.nan)
    points[shape, row, axis] = table.numbers([start + 3])[:, 0]
    return _build_shapes(
        table, shapes, points, None if is_enumeration(landmarks) else tuple(landmarks)
    )


def _find_levels(words: Sequence[str]) -> tuple[list[str], Index]:
    """Find the distinct words in order of first appearance, and the number of each word."""
    place = {word: k for k, word in enumerate(dict.fromkeys(words))}
    return list(place), np.array([place[word] for word in words], dtype=np.intp)


def _build_shapes(
    table: Table,
    names: Sequence[str],
    points: Array,
    labels: tuple[str, ...] | None,
    rows: Sequence[Mapping[str, str]] = (),
) -> Document:
    clean_names, metadata = (
        [name.strip() for name in names],
        [build_metadata(row) for row in rows],
    )
    return make_document(table.path, points, clean_names, labels, metadata)
