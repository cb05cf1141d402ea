"""Large tables: NumPy's C reader parses their numbers, without a string for each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import FormatError
from defgpa.io.format import Document, ReadOptions
from defgpa.io.text.column_names import (
    find_coordinate_columns,
    find_plain_axes,
    find_quality_columns,
)
from defgpa.io.text.lines import MISSING_WORDS
from defgpa.io.text.row_tables import build_shapes_by_name, read_by_shape, read_under_axes
from defgpa.io.text.table import Table, parse_table, remove_guard
from defgpa.io.text.transposed_tables import find_array_slices

_MIN_BYTES = 1_000_000  # below, the plain reader takes no time either
_N_SAMPLE_LINES = 5  # lines that show how a table is written


class _Rows(Sequence[Any]):
    """Rows of a table that is kept by column: the words of each by the number of their column."""

    def __init__(self, words: Mapping[int, Sequence[str]], count: int) -> None:
        self._words, self._count = words, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: Any) -> Any:
        return {column: words[row] for column, words in self._words.items()}


class _CleanWords(dict[str, str]):
    """The word of every cell, computed once: tables repeat names and labels."""

    def __missing__(self, cell: str) -> str:
        self[cell] = word = remove_guard(cell.strip())
        return word


@dataclass(frozen=True)
class BulkTable(Table):
    """A table whose numbers are parsed; its rows have the cells of the other columns alone."""

    words: Mapping[int, list[str]] = field(default_factory=dict)  # of the columns not parsed
    values: Array = field(default_factory=lambda: np.empty((0, 0)))  # (rows, parsed columns)
    places: Mapping[int, int] = field(default_factory=dict)  # column of the file to one of values

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.header)

    def column(self, number: int) -> list[str]:
        """Return the words of one column that is not parsed."""
        return self.words[number]

    def numbers(self, columns: Sequence[int]) -> Array:
        """Return (rows, columns) the numbers of these columns, in this order."""
        if not self.places.keys() >= set(columns):
            return super().numbers(columns)
        places = [self.places[column] for column in columns]
        if places == list(range(self.values.shape[1])):
            return self.values
        return self.values[:, places]


def read_in_bulk(path: Path, options: ReadOptions) -> Document | None:
    """Read a large table whose header names landmarks, or x and y; None for any other.

    None, too, for a table with a mistake: the plain reader knows its line.
    """
    if path.stat().st_size < _MIN_BYTES:
        return None
    sample = _read_sample(path)
    if sample is None:
        return None
    axes = find_plain_axes(sample.header)
    columns = None if axes else find_coordinate_columns(path, sample.header_line, sample.header)
    if columns is not None:
        quality = find_quality_columns(sample.header, columns)
        parsed = [*columns[1].ravel().tolist(), *quality]
    elif axes:
        parsed = list(axes)
    else:
        return None
    values = _load_numbers(path, sample, parsed)
    words = None if values is None else _read_words(path, sample, set(parsed), len(values))
    if values is None or words is None:
        return None
    table = BulkTable(
        path,
        sample.header,
        sample.header_line,
        _Rows(words, len(values)),
        range(sample.header_line + 1, sample.header_line + 1 + len(values)),
        sample.delimiter,
        words,
        values,
        {column: k for k, column in enumerate(parsed)},
    )
    if columns is not None:
        return build_shapes_by_name(table, columns, options)
    try:
        return read_by_shape(table, options) or read_under_axes(table, options)
    except FormatError:
        return None


def _read_sample(path: Path) -> Table | None:
    """Read the first rows, if they are a table under a header that names coordinates."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            text = "".join(islice(stream, _N_SAMPLE_LINES))
        if '"' in text or "\0" in text:
            return None
        table = parse_table(path, text)
        if not table.header or not table.delimiter:
            return None
        is_other = find_array_slices(table.header) or table.header[0].strip() == "scorer"
        return None if is_other else table
    except (OSError, UnicodeDecodeError, FormatError):
        return None


def _load_numbers(path: Path, sample: Table, columns: Sequence[int]) -> Array | None:
    """Load the numbers (rows, columns), cell by cell where some are missing; None for a word."""
    settings: dict[str, Any] = {
        "delimiter": sample.delimiter,
        "skiprows": sample.header_line,
        "usecols": columns,
        "comments": None,
        "ndmin": 2,
        "encoding": "utf-8-sig",
    }
    for converters in (None, _parse_cell):
        try:
            return np.asarray(np.loadtxt(path, converters=converters, **settings))
        except (ValueError, IndexError):
            continue
    return None


def _parse_cell(cell: str) -> float:
    word = cell.strip()
    if "_" in word:  # a digit separator to Python, and to nobody else
        raise ValueError(word)
    return float("nan") if word.lower() in MISSING_WORDS else float(word)


def _read_words(
    path: Path, sample: Table, parsed: set[int], count: int
) -> dict[int, list[str]] | None:
    """Read the columns that are not parsed; None if a cell is quoted, or rows are not as many."""
    others = [k for k in range(len(sample.header)) if k not in parsed]
    max_split = max(others, default=-1) + 1
    mark, n_marks = sample.delimiter, len(sample.header) - 1
    words: dict[int, list[str]] = {k: [] for k in others}
    clean, n_rows = _CleanWords(), 0
    with path.open(encoding="utf-8-sig") as stream:
        try:
            for line in islice(stream, sample.header_line, None):
                if line.count(mark) != n_marks or '"' in line:
                    if line.strip():
                        return None
                    continue
                cells = line.split(mark, max_split)
                for k, column in words.items():
                    column.append(clean[cells[k]])
                n_rows += 1
        except UnicodeDecodeError:
            return None
    return words if n_rows == count else None
