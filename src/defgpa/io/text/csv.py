"""Tables of landmarks: which layout a table has, and how tables are written.

Wide: ``id, x1, y1[, z1], x2, …``, or ``ProcCoord1, ProcCoord2, …`` as MorphoJ exports. Long:
columns shape, landmark, x, y[, z] in any order. One file a shape: rows of 2 or 3 numbers, with a
label or without, or a table of 3D Slicer's (``label, l, p, s`` or ``r, a, s``). The header
decides, or, where there is none, the number of columns. Comma, semicolon, tab or blanks separate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from defgpa.dataframes import name_coordinates
from defgpa.errors import FormatError
from defgpa.io.atomic import write_text
from defgpa.io.files import make_format_error, mask_missing, read_head
from defgpa.io.format import Document, Format, ReadOptions, make_document
from defgpa.io.text.column_names import (
    find_coordinate_columns,
    find_plain_axes,
    find_serial_columns,
)
from defgpa.io.text.deeplabcut import is_tracking_header, read_tracking
from defgpa.io.text.large_tables import read_bulk_table
from defgpa.io.text.lines import (
    are_numbers,
    decode_head,
    is_number,
    parse_numbers,
    read_lines,
    replace_forbidden,
    warn,
)
from defgpa.io.text.row_tables import (
    find_anatomical_axes,
    find_roles,
    read_bare_rows,
    read_by_shape,
    read_control_points,
    read_named_columns,
    read_narrow,
    read_one_shape,
    read_serial_columns,
    read_under_axes,
)
from defgpa.io.text.table import Table, format_csv, parse_first_rows, read_table
from defgpa.io.text.transposed_tables import (
    read_array,
    read_coordinate_rows,
    read_single_coordinates,
)
from defgpa.io.text.variables import format_variables
from defgpa.shapes import Shapes

_FORBIDDEN = r"^\s|\s$|[\r\n\0]"
_HOLDS = ("groups", "variables", "images", "comments", "weights")
_COUNTS = re.compile(r"\s*([0-9]{1,9})[ \t]+([0-9]{1,9})[ \t]+([23])[ \t]*\n[ \t]*\n")
_Layout = Callable[[Table, ReadOptions], Document | None]
_LANDMARK_ROWS = (read_by_shape, read_under_axes)
_SHAPE_ROWS = (read_named_columns, read_serial_columns)
# Readers of all layouts, the surer ones first; the last takes whatever is left.
_LAYOUTS = (
    read_tracking,
    read_control_points,
    read_by_shape,
    read_under_axes,
    read_array,
    read_named_columns,
    read_coordinate_rows,
    read_single_coordinates,
    read_serial_columns,
    read_narrow,
    read_bare_rows,
)


def read_csv(path: Path, options: ReadOptions) -> Document:
    """Read a table in any layout, recognised by its header or else by its columns."""
    document = _read_blocks(path) or _read_large_table(path, options)
    if document is None:
        table = read_table(path)
        document = next(filter(None, (read(table, options) for read in _LAYOUTS)))
    return _mask_missing(document, options)


def read_long(path: Path, options: ReadOptions) -> Document:
    """Read a table with one row a landmark, which names its shape."""
    document = _read_large_table(path, options, read_by_shape)
    if document is None:
        table = read_table(path)
        document = read_by_shape(table, options)
    if document is None:
        header = repr(", ".join(table.header)) if table.header else "no header"
        if find_roles(table) is None:
            raise make_format_error(
                path, "columns shape, landmark, x and y", header, table.header_line or 1
            )
        raise make_format_error(path, "a column 'shape'", header, table.header_line or 1)
    return _mask_missing(document, options)


def read_points(path: Path, options: ReadOptions) -> Document:
    """Read a table that is one shape, with one row a landmark."""
    document = _read_large_table(path, options, read_under_axes)
    return _mask_missing(document or read_one_shape(read_table(path), options), options)


def write_wide(path: Path, shapes: Shapes) -> None:
    """Write one row a shape: ``id``, variables, then ``x1, y1, …``."""
    n, _, d = shapes.points.shape
    labels = replace_forbidden(shapes.landmarks, _FORBIDDEN, "landmark label")
    names = replace_forbidden(shapes.names, _FORBIDDEN, "name")
    columns = format_variables(shapes)
    identifiers = columns.pop("id", names)  # of a table of covariates, mostly the names again
    if list(identifiers) != list(names):
        columns["id_2"] = identifiers
    described = [[column[k] for column in columns.values()] for k in range(n)]
    header = ["id", *columns, *name_coordinates(labels, d)]
    values = shapes.points.reshape(n, -1)
    if shapes.has_weights:
        header += [f"{label}_weight" for label in labels]
        values = np.hstack([values, shapes.weights])
    rows = zip(names, described, values.tolist(), strict=True)
    _write(path, header, ([name, *words, *row] for name, words, row in rows))


def write_long(path: Path, shapes: Shapes) -> None:
    """Write one row a landmark: ``shape, landmark, x, y[, z][, weight]``, then variables."""
    labels = replace_forbidden(shapes.landmarks, _FORBIDDEN, "landmark label")
    names = replace_forbidden(shapes.names, _FORBIDDEN, "name")
    columns = format_variables(shapes)
    values = shapes.points
    if shapes.has_weights:
        values = np.dstack([values, shapes.weights])
    rows = (
        [name, label, *point, *(column[k] for column in columns.values())]
        for k, (name, points) in enumerate(zip(names, values.tolist(), strict=True))
        for label, point in zip(labels, points, strict=True)
    )
    weight = ["weight"] * shapes.has_weights
    _write(path, ["shape", "landmark", *"xyz"[: shapes.n_dims], *weight, *columns], rows)


def write_points(path: Path, shapes: Shapes) -> None:
    """Write one shape under ``landmark, x, y[, z]``."""
    labels = replace_forbidden(shapes.landmarks, _FORBIDDEN, "landmark label")
    pairs = zip(labels, shapes.points[0].tolist(), strict=True)
    _write(path, ["landmark", *"xyz"[: shapes.n_dims]], ([label, *point] for label, point in pairs))


def _read_large_table(path: Path, options: ReadOptions, *layouts: _Layout) -> Document | None:
    """Read a large table, in one of some layouts; None for others, and for one with a mistake."""
    table = read_bulk_table(path, options)
    if table is None:
        return None
    fitting = _LANDMARK_ROWS if find_plain_axes(table.header) else _SHAPE_ROWS
    try:
        documents = (read(table, options) for read in fitting if not layouts or read in layouts)
        return next(filter(None, documents), None)
    except FormatError:  # the plain reader says what is wrong, and where
        return None


def _read_blocks(path: Path) -> Document | None:
    """Read an array as Deformetrica writes it: ``n m d``, then n blocks of m rows.

    None for files that do not hold what their first line counts.
    """
    counts = _COUNTS.match(decode_head(read_head(path)))
    if counts is None:
        return None
    n, m, d = map(int, counts.groups())
    _, *rows = ((at, line.split()) for at, line in read_lines(path))
    if not n * m or len(rows) != n * m or {len(words) for _, words in rows} != {d}:
        return None
    points = np.array([parse_numbers(path, at, words) for at, words in rows]).reshape(n, m, d)
    if "moment" in path.stem.lower():
        warn(f"{path}: momenta are directions at control points, not places of landmarks.")
    return make_document(path, points)


def _mask_missing(document: Document, options: ReadOptions) -> Document:
    if options.missing == "marked":  # as most are: a large table has many specimens
        return document
    space = document.metadata.get("space")
    specimens = (
        replace(specimen, points=mask_missing(specimen.points, options.missing, space))
        for specimen in document.specimens
    )
    return replace(document, specimens=tuple(specimens))


# Writing and recognising


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str | float]]) -> None:
    """Write a table, with tabs in ``.tsv`` files and commas in others."""
    write_text(path, format_csv(header, rows, "NA", "\t" if path.suffix.lower() == ".tsv" else ","))


def _looks_like_csv(head: bytes) -> bool:
    """Return whether there is a row of numbers or a header with coordinates, not prose."""
    rows, delimiter = parse_first_rows(head)
    return bool(rows) and (
        _has_coordinate_header(rows[0])
        or _has_coordinate_rows(rows, delimiter)
        or is_tracking_header(rows)
    )


def _has_coordinate_header(heads: Sequence[str]) -> bool:
    try:
        named = find_plain_axes(heads) or find_serial_columns(heads) or find_anatomical_axes(heads)
        return bool(named or find_coordinate_columns(Path(), 0, heads))
    except FormatError:
        return True


def _has_coordinate_rows(rows: Sequence[Sequence[str]], delimiter: str) -> bool:
    """Return whether a row of numbers comes first, or second below a header.

    Between blanks, where prose has its words too, the header must be R's and all rows numbers.
    """
    if _is_coordinates(rows[0], delimiter):
        return True
    if delimiter:
        return len(rows) > 1 and _is_coordinates(rows[1], ",")
    if _has_labelled_points(rows):
        return True
    if len(rows) < 3:
        return False
    lacks_corner = len(rows[0]) > 1 and {len(row) - len(rows[0]) for row in rows[1:]} == {1}
    return (lacks_corner or not rows[0][0]) and all(_is_coordinates(row, ",") for row in rows[1:])


def _has_labelled_points(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether all rows are a word and equally many numbers, some with decimals."""
    cells = [cell for row in rows for cell in row[1:]]
    # lines of prose may have four numbers
    have_equal_lengths = len(set(map(len, rows))) == 1 and len(rows[0]) > 2 and len(cells) > 4
    return (
        have_equal_lengths and are_numbers(cells) and any(re.search("[.,]", cell) for cell in cells)
    )


def _is_coordinates(row: Sequence[str], delimiter: str) -> bool:
    """Return whether there are two numbers at least, after words about the specimen."""
    start = 0
    while delimiter and start < len(row) and not is_number(row[start]):
        start += 1
    cells = row[start:]
    return len(cells) >= 2 and are_numbers(cells) and any(cell.strip() for cell in cells)


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
