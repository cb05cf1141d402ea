"""NTS files (NTSYSpc, Landmark Editor, Checkpoint): one header line, then labels, then numbers.

The header is ``1 rows[L] columns[L] flag [code] DIM=d``. Usually a row is a specimen with all
its coordinates; where the number of columns is d, the rows are the landmarks of one specimen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from defgpa.arrays import Array
from defgpa.dataframes import name_coordinates
from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError
from defgpa.io.atomic import write_text
from defgpa.io.files import make_format_error, mask_missing
from defgpa.io.format import Document, Format, NoLandmarksError, ReadOptions, make_document
from defgpa.io.limits import WORD_COST, Budget
from defgpa.io.text.column_names import find_coordinate_columns
from defgpa.io.text.lines import (
    Disagree,
    Line,
    collect_disagreements,
    decode_head,
    find_end_of_line,
    parse_count,
    parse_number,
    parse_numbers_fast,
    read_blocks,
    read_lines,
    replace_forbidden,
)
from defgpa.shapes import Shapes, number_labels

_QUOTES = "'\""  # they open a comment
_HEADER = "1 rows[L] columns[L] flag [missing code] DIM=d"
_DIM = re.compile(r"\bDIM\s*=\s*(\S+)", re.IGNORECASE)
_SIZE = re.compile(r"([0-9]+)([A-Za-z]?)")
_SIGNATURE = re.compile(r"\s*1\s+[0-9]+[LBE]?\s+[0-9]+L?(\s.*)?\bDIM\s*=", re.IGNORECASE)

_FORBIDDEN = r"[\s\0]|^['\"]"  # a quote would make a comment of the line


@dataclass(frozen=True)
class _Header:
    """What the header line says."""

    line: int
    rows: int
    row_labels: str  # "" none, "L" before the data, "B" and "E" at the begin or end of each row
    columns: int
    column_labels: str  # "" or "L"
    missing: float  # the code, NaN if there is none
    n_dims: int


_Matrix = tuple[_Header, Array, tuple[str, ...], tuple[str, ...]]  # labels of rows and of columns


def read_nts(path: Path, options: ReadOptions) -> Document:
    """Read all specimens of an NTS file."""
    header, values, rows, columns = _read_in_bulk(path, options) or _read_lines(path, options)
    one_specimen = header.columns == header.n_dims  # then its rows are landmarks
    points = values.reshape(1 if one_specimen else len(values), -1, header.n_dims)
    if (points == header.missing).any():
        points[(points == header.missing).any(axis=2)] = np.nan  # in any coordinate
    points = mask_missing(points, options.missing)
    if one_specimen:
        m = len(points[0])
        return make_document(path, points, labels=rows[:m] if len(rows) >= m else None)
    named = find_coordinate_columns(path, header.line, columns)
    column_order = np.arange(header.columns).reshape(-1, header.n_dims)
    labels = named[0] if named and np.array_equal(named[1], column_order) else None
    return make_document(path, points, rows, labels)  # names to spare if it ends early


def write_nts(path: Path, shapes: Shapes) -> None:
    """Write one row per shape; labels of landmarks become labels of their columns."""
    n, m, d = shapes.points.shape
    names = replace_forbidden(shapes.names, _FORBIDDEN, "name")
    has_labels = shapes.landmarks != number_labels("", m)
    code = 9999  # or another number that no coordinate has
    while (shapes.points == code).any():
        code = 10 * code + 9
    flag = "0" if shapes.visible.all() else f"1 {code}"
    lines = [f"1 {n}L {m * d}{'L' * has_labels} {flag} DIM={d}", *names]
    if has_labels:
        labels = replace_forbidden(shapes.landmarks, _FORBIDDEN, "landmark label")
        lines.append(" ".join(name_coordinates(labels, d)))
    rows = np.where(np.isnan(shapes.points), code, shapes.points).reshape(n, -1).tolist()
    lines += (" ".join(map(repr, row)) for row in rows)
    write_text(path, "\n".join(lines) + "\n")


def _read_lines(path: Path, options: ReadOptions) -> _Matrix:
    """Read a file word by word, to say which is wrong."""
    lines = [line for line in read_lines(path) if line[1][0] not in _QUOTES]
    if not lines:
        raise FormatError(f"{path} has no header: expected {_HEADER!r}; found only comments.")
    header = _parse_header(path, *lines[0], options.dimension)
    with collect_disagreements(path, options) as disagree:
        return header, *_parse_matrix(path, header, lines[1:], disagree)


def _read_in_bulk(path: Path, options: ReadOptions) -> _Matrix | None:
    """Read a file whose labels are words and whose numbers are as many as announced, in C.

    None for any other: `_read_lines` knows what to make of it.
    """
    blocks = read_blocks(path)
    text = next(blocks)
    start, line, opening = 0, 0, ""
    while not opening or opening[0] in _QUOTES:
        if start >= len(text):
            return None
        end = find_end_of_line(text, start)
        opening, start, line = text[start:end].strip(), end + 1, line + 1
    header = _parse_header(path, line, opening, options.dimension)
    if header.row_labels in ("B", "E"):
        return None
    n_rows = header.rows * (header.row_labels == "L")
    n_labels = n_rows + header.columns * (header.column_labels == "L")
    labels, budget = list[str](), Budget(path)
    while len(labels) < n_labels and start < len(text):
        end = find_end_of_line(text, start)
        words = text[start:end].split()
        budget.spend(WORD_COST * len(words), "the number of its labels")
        labels += words
        start = end + 1
    if len(labels) != n_labels:
        return None
    values: list[Array] = []
    for block in chain([text[start:]], blocks):
        words = block.split()
        numbers = parse_numbers_fast(words)
        if len(numbers) != len(words):
            return None
        values.append(np.array(numbers))
    matrix = np.concatenate(values)
    if len(matrix) != header.rows * header.columns:
        return None
    matrix = matrix.reshape(header.rows, header.columns)
    return header, matrix, tuple(labels[:n_rows]), tuple(labels[n_rows:])


def _parse_header(path: Path, line: int, text: str, wanted: int | None) -> _Header:
    """Parse the header; without DIM= take the dimension asked for, or what the columns allow."""
    dimension_field = _DIM.search(text)
    words = _DIM.sub(" ", text).split()
    if len(words) < 3 or words[0] != "1":
        raise make_format_error(path, f"a header {_HEADER!r}", repr(text), line)
    rows, row_labels = _parse_size(path, line, words[1], "the number of rows", "LBE")
    columns, column_labels = _parse_size(path, line, words[2], "the number of columns", "L")
    if dimension_field:
        dim = parse_count(path, line, dimension_field[1], "DIM=")
    else:
        dim = wanted or _infer_dimension(path, line, columns)
    if dim not in (2, 3):
        raise make_format_error(path, "DIM=2 or DIM=3", f"DIM={dim}", line)
    if rows == 0 or columns == 0 or columns % dim:
        expected = f"rows, and columns that are a multiple of DIM={dim}"
        raise make_format_error(path, expected, repr(text), line)
    code = _parse_missing_code(path, line, words[3:])
    return _Header(line, rows, row_labels, columns, column_labels, code, dim)


def _parse_size(path: Path, line: int, word: str, what: str, flags: str) -> tuple[int, str]:
    """Parse ``12L`` as 12 and L."""
    match = _SIZE.fullmatch(word)
    if match is None or match[2].upper() not in ("", *flags):
        raise make_format_error(path, f"{what}, with L if labels follow", repr(word), line)
    return parse_count(path, line, match[1], what), match[2].upper()


def _infer_dimension(path: Path, line: int, columns: int) -> int:
    """Infer 2 or 3, where the columns allow only one of them."""
    dimensions = [d for d in (2, 3) if columns == d] or [d for d in (2, 3) if columns % d == 0]
    if columns == 1:
        raise NoLandmarksError(f"{path} has one number a specimen, such as a size: no landmarks.")
    if not dimensions:
        raise make_format_error(path, "coordinates in twos or threes", f"{columns} in a row", line)
    if len(dimensions) > 1:
        problem = make_format_error(path, "DIM=2 or DIM=3 in the header", "neither", line)
        raise FormatError(
            f"{problem} Say it: {name_option('dimension', 2)} or {name_option('dimension', 3)}."
        )
    return dimensions[0]


def _parse_missing_code(path: Path, line: int, words: Sequence[str]) -> float:
    if not words or parse_count(path, line, words[0], "the flag for missing values") == 0:
        return math.nan
    if len(words) < 2:
        raise make_format_error(path, "a code for missing values after the flag", "none", line)
    return parse_number(path, line, words[1])


def _parse_matrix(
    path: Path, header: _Header, lines: Sequence[Line], disagree: Disagree
) -> tuple[Array, tuple[str, ...], tuple[str, ...]]:
    """Parse the numbers, and the labels of rows and of columns, told apart by their counts.

    Labels are words, one after the other; where that does not add up and there are enough
    lines, each label is a line and may hold blanks.
    """
    tokens = [(at, token) for at, line in lines for token in line.split()]
    n_row_labels = header.rows * (header.row_labels == "L")
    titles = header.columns * (header.column_labels == "L")
    n_labels_within = header.rows * (header.row_labels in ("B", "E"))
    needed = n_row_labels + titles + n_labels_within + header.rows * header.columns
    rows = tuple(token for _, token in tokens[:n_row_labels])
    remaining = tokens[n_row_labels:]
    if n_row_labels and len(tokens) != needed:
        by_line = [(at, token) for at, line in lines[n_row_labels:] for token in line.split()]
        if len(by_line) == needed - n_row_labels:
            rows, remaining = tuple(line for _, line in lines[:n_row_labels]), by_line
    columns, data = tuple(token for _, token in remaining[:titles]), remaining[titles:]
    if n_labels_within:
        rows, data = _take_row_labels(header, data)
    return _parse_values(path, header, data, disagree), rows, columns


def _take_row_labels(header: _Header, data: Sequence[Line]) -> tuple[tuple[str, ...], list[Line]]:
    """Take the row labels out of the begin or the end of each row."""
    width = header.columns + 1
    place = 0 if header.row_labels == "B" else width - 1
    labels = tuple(token for _, token in data[place::width])
    return labels, [entry for k, entry in enumerate(data) if k % width != place]


def _parse_values(path: Path, header: _Header, data: Sequence[Line], disagree: Disagree) -> Array:
    """Parse values (rows, columns); where the file ends early, the rows that are complete."""
    expected = header.rows * header.columns
    if len(data) != expected:
        size = f"{header.rows} × {header.columns}"
        disagree(header.line, f"{expected} numbers ({size}) after the labels", str(len(data)))
    complete = min(header.rows, len(data) // header.columns)
    if complete == 0:
        raise make_format_error(
            path, f"{header.columns} numbers a row", str(len(data)), header.line
        )
    used = data[: complete * header.columns]
    quick = parse_numbers_fast([token for _, token in used])
    values = quick or [parse_number(path, at, token) for at, token in used]
    return np.array(values).reshape(complete, header.columns)


def _looks_like_nts(head: bytes) -> bool:
    lines = (line.strip() for line in decode_head(head).split("\n"))
    first = next((line for line in lines if line and line[0] not in _QUOTES), "")
    return _SIGNATURE.match(first) is not None


FORMATS = (Format("nts", (".nts", ".dta"), _looks_like_nts, read_nts, write_nts, holds=()),)
