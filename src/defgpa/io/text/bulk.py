"""Large wide tables: NumPy's C reader parses their numbers, without a string for each cell."""

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
from defgpa.io.text.across import find_array_slices
from defgpa.io.text.columns import (
    find_coordinate_columns,
    find_plain_axes,
    find_quality_columns,
)
from defgpa.io.text.lines import MISSING_WORDS
from defgpa.io.text.rows import build_shapes_by_name
from defgpa.io.text.table import Table, parse_table, remove_guard

_MIN_BYTES = 1_000_000  # below, the plain reader takes no time either
_SAMPLE = 5  # lines that show how a table is written


@dataclass(frozen=True)
class BulkTable(Table):
    """A table whose numbers are parsed; its rows have the cells of the other columns alone."""

    values: Array = field(default_factory=lambda: np.empty((0, 0)))  # (rows, parsed columns)
    places: Mapping[int, int] = field(default_factory=dict)  # column of the file to one of values

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.header)

    def numbers(self, columns: Sequence[int]) -> Array:
        """Return (rows, columns) the numbers of these columns, in this order."""
        places = [self.places[column] for column in columns]
        if places == list(range(self.values.shape[1])):
            return self.values
        return self.values[:, places]


def read_wide_in_bulk(path: Path, options: ReadOptions) -> Document | None:
    """Read a large table with a shape a row and landmarks in its header; None for any other."""
    if path.stat().st_size < _MIN_BYTES:
        return None
    sample = _read_sample(path)
    if sample is None:
        return None
    columns = find_coordinate_columns(path, sample.header_line, sample.header)
    if columns is None:
        return None
    quality = find_quality_columns(sample.header, columns)
    parsed = [*columns[1].ravel().tolist(), *quality]
    values = _load_numbers(path, sample, parsed)
    rows = None if values is None else _read_other_cells(path, sample, set(parsed))
    if values is None or rows is None or len(rows) != len(values):
        return None
    table = BulkTable(
        path,
        sample.header,
        sample.header_line,
        rows,
        range(sample.header_line + 1, sample.header_line + 1 + len(rows)),
        sample.delimiter,
        values,
        {column: k for k, column in enumerate(parsed)},
    )
    return build_shapes_by_name(table, columns, options)


def _read_sample(path: Path) -> Table | None:
    """Read the first rows, if they are a table under a header that names coordinates."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            text = "".join(islice(stream, _SAMPLE))
        if '"' in text or "\0" in text:
            return None
        table = parse_table(path, text)
        if not table.header or not table.delimiter:
            return None
        is_other = find_plain_axes(table.header) or find_array_slices(table.header)
        return None if is_other or table.header[0].strip() == "scorer" else table
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


def _read_other_cells(path: Path, sample: Table, parsed: set[int]) -> list[Any] | None:
    """Read the cells of each row outside the parsed columns; None if one is quoted."""
    others = [k for k in range(len(sample.header)) if k not in parsed]
    max_split = max(others, default=-1) + 1
    mark, n_marks = sample.delimiter, len(sample.header) - 1
    rows: list[Any] = []
    with path.open(encoding="utf-8-sig") as stream:
        try:
            for line in islice(stream, sample.header_line, None):
                if not line.strip():
                    continue
                if line.count(mark) != n_marks or '"' in line:
                    return None
                cells = line.split(mark, max_split)
                rows.append({k: remove_guard(cells[k].strip()) for k in others})
        except UnicodeDecodeError:
            return None
    return rows
