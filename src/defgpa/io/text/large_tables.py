"""Large tables: NumPy's C reader parses them, without a string for each cell of numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from defgpa.arrays import Array, Index
from defgpa.errors import FormatError
from defgpa.io.format import ReadOptions
from defgpa.io.text.column_names import (
    find_coordinate_columns,
    find_plain_axes,
    find_quality_columns,
    find_serial_columns,
)
from defgpa.io.text.lines import has_decimal_comma
from defgpa.io.text.table import Table, Words, parse_table, remove_guard
from defgpa.io.text.transposed_tables import find_array_slices
from defgpa.io.weights import is_weight_column

_MIN_BYTES = 1_000_000  # below, the plain reader takes no time either
_N_SAMPLE_LINES = 5  # lines that show how a table is written
_BLOCK = 2**20  # characters that are read at once
_BLOCK_CELLS = 2**16  # cells that are parsed at once
_SPARE_LENGTH = 32  # characters that a word may have more than those of the sample

# Spellings of NaN that C reads and nobody writes: they stand for words that C does not read, and
# are turned back into these where they belong to a word of a column that is not parsed.
_STAND_INS = {"": "-nAN", "NA": "-nAn", "na": "-naN", "N/A": "+nAn", "#N/A": "+naN", "null": "+nAN"}


@dataclass(frozen=True)
class BulkTable(Table):
    """A table whose numbers are parsed; of the other columns, every word is kept once."""

    words: Mapping[int, Words] = field(default_factory=dict)  # of the columns not parsed
    values: Array = field(default_factory=lambda: np.empty((0, 0)))  # (rows, parsed columns)
    places: Mapping[int, int] = field(default_factory=dict)  # column of the file to one of values

    @property
    def n_rows(self) -> int:
        """The number of rows below the header."""
        return len(self.values)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.header)

    def column(self, number: int) -> list[str]:
        """Return the words of one column that is not parsed."""
        codes, words = self.encode(number)
        return np.array(words, dtype=object)[codes].tolist()

    def encode(self, number: int) -> Words:
        """Return the number of each row's word in a column, and the words, each once."""
        if number not in self.words:
            raise FormatError(f"{self.path}: column {number + 1} holds numbers.")
        return self.words[number]

    def numbers(self, columns: Sequence[int]) -> Array:
        """Return (rows, columns) the numbers of these columns, in this order."""
        if not self.places.keys() >= set(columns):
            raise FormatError(f"{self.path}: columns {list(columns)} hold words.")
        places = [self.places[column] for column in columns]
        start = places[0] if places else 0
        if places == list(range(start, start + len(places))):
            return self.values[:, start : start + len(places)]
        return self.values[:, places]


class _Numbering(dict[str, int]):
    """The number of every word of a column, counted from 0 as the words come."""

    def __init__(self, has_commas: bool) -> None:
        super().__init__()
        self.words: dict[str, int] = {}
        self._has_commas = has_commas  # which were replaced by points
        self._originals = {mark: word for word, mark in _STAND_INS.items()}

    def is_cut(self, max_length: int) -> bool:
        """Return whether a word may go on behind its cell, or is quoted in parts."""
        return any(len(cell) >= max_length or '"' in cell for cell in self)

    def __missing__(self, cell: str) -> int:
        word = remove_guard(self._originals.get(cell, cell).strip())
        word = word.replace(".", ",") if self._has_commas else word
        self[cell] = number = self.words.setdefault(word, len(self.words))
        return number


def read_bulk_table(path: Path, options: ReadOptions) -> BulkTable | None:
    """Read a large table whose header names landmarks, or x and y; None for any other.

    None, too, for a table with a mistake: the plain reader knows its line.
    """
    if path.stat().st_size < _MIN_BYTES:
        return None
    sample = _read_sample(path)
    if sample is None:
        return None
    columns = _find_number_columns(path, sample, options)
    if not columns:
        return None
    for has_stand_ins in (False, True):
        try:
            read = _read_columns(path, sample, columns, has_stand_ins)
        except ValueError:  # a word among the numbers, a row that is too short
            continue
        if read is None:
            return None
        places = {column: k for k, column in enumerate(sorted(columns))}
        lines = range(sample.header_line + 1, sample.header_line + 1 + len(read[1]))
        head = (sample.header, sample.header_line, (), lines, sample.delimiter)
        return BulkTable(path, *head, *read, places)
    return None


def _read_sample(path: Path) -> Table | None:
    """Read the first rows, if they are a table under a header that names coordinates."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            text = "".join(islice(stream, _N_SAMPLE_LINES))
        if "\0" in text:
            return None
        table = parse_table(path, text)
        if not table.header or not table.delimiter:
            return None
        is_other = find_array_slices(table.header) or table.header[0].strip() == "scorer"
        return None if is_other else table
    except (OSError, UnicodeDecodeError, FormatError):
        return None


def _find_number_columns(path: Path, sample: Table, options: ReadOptions) -> list[int]:
    """Find the columns of coordinates and of weights; none where the header names none."""
    axes = find_plain_axes(sample.header)
    if axes:
        heads = enumerate(head.strip().lower() for head in sample.header)
        return [
            *axes,
            *(k for k, head in heads if k not in axes and is_weight_column(head, options)),
        ]
    try:
        columns = find_coordinate_columns(path, sample.header_line, sample.header)
    except FormatError:
        return []
    if columns is None:
        return find_serial_columns(sample.header) or []
    quality = find_quality_columns(sample.header, columns)
    return [*columns[1].ravel().tolist(), *quality]


def _read_columns(
    path: Path, sample: Table, parsed: Sequence[int], has_stand_ins: bool
) -> tuple[dict[int, Words], Array] | None:
    """Read the words of all columns that are not parsed, and the numbers (rows, parsed).

    None where a word is longer than expected, or quoted in a way that only the plain reader knows.
    """
    kind = _make_row_type(sample, set(parsed))
    names = [name for name in kind.names or () if kind[name].kind == "U"]
    cells = chain.from_iterable(sample.rows)
    has_commas = sample.delimiter != "," and any(map(has_decimal_comma, cells))
    numberings = {name: _Numbering(has_commas) for name in names}
    codes: dict[str, list[Index]] = {name: [] for name in names}
    values: list[Array] = []
    max_rows = max(1, _BLOCK_CELLS // len(sample.header))
    with path.open(encoding="utf-8-sig") as stream:
        for _ in range(sample.header_line):
            stream.readline()
        lines: Iterable[str] = stream
        if has_stand_ins or has_commas:
            lines = _repair_lines(stream, sample.delimiter, has_commas)
        while len(block := _load_rows(lines, kind, sample.delimiter, max_rows)):
            for name in names:
                codes[name].append(_number_words(block[name], numberings[name]))
            runs = [block[name] for name in kind.names or () if name not in names]
            values.append(np.concatenate(runs, axis=1))
    if not values or any(numberings[name].is_cut(kind[name].itemsize // 4) for name in names):
        return None
    words: dict[int, Words] = {
        int(name): (np.concatenate(codes.pop(name)), tuple(numberings[name].words))
        for name in names
    }
    numbers = np.concatenate(values)
    return None if has_stand_ins and _has_empty_row(words, numbers) else (words, numbers)


def _make_row_type(sample: Table, parsed: set[int]) -> np.dtype[np.void]:
    """Make the type of a row: a word in each column that is not parsed, the others by runs."""
    others = [k for k in range(len(sample.header)) if k not in parsed]
    length = _SPARE_LENGTH + max((len(row[k]) for row in sample.rows for k in others), default=0)
    fields: list[tuple[Any, ...]] = []
    for is_word, run in groupby(range(len(sample.header)), key=set(others).__contains__):
        columns = list(run)
        if is_word:
            fields += [(str(k), f"U{length}") for k in columns]
        else:
            fields.append((str(columns[0]), np.float64, (len(columns),)))
    return np.dtype(fields)


def _repair_lines(stream: TextIO, delimiter: str, has_commas: bool) -> Iterator[str]:
    """Yield the lines, with what C reads in place of decimal commas and of missing numbers."""
    while block := stream.read(_BLOCK) + stream.readline():
        if has_commas:
            if "." in block:  # then a point in a word could not be told from a comma
                raise ValueError
            block = block.replace(",", ".")
        for word, stand_in in _STAND_INS.items():
            if stand_in in block:
                raise ValueError
            if word in block:
                for end in (delimiter, delimiter, "\n"):  # cells that touch, each at one of two
                    block = block.replace(f"{delimiter}{word}{end}", f"{delimiter}{stand_in}{end}")
        yield from block.split("\n")


def _load_rows(
    lines: Iterable[str], kind: np.dtype[np.void], delimiter: str, max_rows: int
) -> NDArray[np.void]:
    """Parse some rows; none at the end of the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the end of the file
        return np.loadtxt(
            lines,
            dtype=kind,
            delimiter=delimiter,
            comments=None,
            quotechar='"',
            max_rows=max_rows,
            ndmin=1,
        )


def _number_words(cells: NDArray[np.str_], numbering: _Numbering) -> Index:
    """Assign a number to each word of a block, looking up once those that repeat the row above."""
    is_new = np.concatenate([[True], cells[1:] != cells[:-1]])
    starts = np.flatnonzero(is_new)
    numbers = [numbering[cell] for cell in cells[starts].tolist()]
    return np.repeat(np.array(numbers, dtype=np.intp), np.diff(starts, append=len(cells)))


def _has_empty_row(words: Mapping[int, Words], numbers: Array) -> bool:
    """Return whether a row has nothing but separators, which the plain reader leaves out."""
    is_empty = np.isnan(numbers).all(axis=1)
    for codes, cells in words.values():
        is_empty &= codes == (cells.index("") if "" in cells else -1)
    return bool(is_empty.any())
