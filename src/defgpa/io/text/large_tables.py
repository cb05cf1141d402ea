"""Large tables: NumPy's C reader parses them, without a string for each cell of numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from defgpa.arrays import Array, Index
from defgpa.errors import FormatError
from defgpa.io.format import ReadOptions
from defgpa.io.limits import WORD_COST, Budget, count_words
from defgpa.io.text.column_names import (
    find_coordinate_columns,
    find_plain_axes,
    find_quality_columns,
    find_serial_columns,
)
from defgpa.io.text.lines import NumberStore, count_lines, has_decimal_comma
from defgpa.io.text.table import Table, Words, parse_table, remove_guard
from defgpa.io.text.transposed_tables import find_array_slices
from defgpa.io.weights import is_weight_column

_MIN_BYTES = 1_000_000  # below, the plain reader takes no time either
_N_SAMPLE_LINES = 5  # lines that show how a table is written
_BLOCK = 2**18  # characters that are parsed at once
_SPARE_LENGTH = 16  # characters that a word may have more than those of the sample
_MAX_LENGTH = 256  # of a word of the sample: every row takes memory for as many characters

# Spellings of NaN that C reads and nobody writes: they stand for words that C does not read, and
# are turned back into these where they belong to a word of a column that is not parsed.
_STAND_INS = {"NA": "+nAn", "": "+nAN", "na": "+naN", "N/A": "+Nan", "#N/A": "+NaN", "null": "+NAn"}


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


class _Numbering(dict[str | bytes, int]):
    """The number of every word of a column, counted from 0 as the words come."""

    def __init__(self, has_commas: bool) -> None:
        super().__init__()
        self.words: dict[str, int] = {}
        self._has_commas = has_commas  # which were replaced by points

    def is_cut(self, max_length: int) -> bool:
        """Return whether a word may go on behind its cell, or is quoted in parts."""
        return any(len(cell) >= max_length for cell in self) or any('"' in w for w in self.words)

    def __missing__(self, cell: str | bytes) -> int:
        word = cell.decode("ascii") if isinstance(cell, bytes) else cell
        for original, stand_in in _STAND_INS.items() if "+" in word else ():
            word = word.replace(stand_in, original)  # quoted cells may hold several
        word = remove_guard(word.strip())
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
    try:
        read = _read_columns(path, sample, columns)
    except ValueError:  # a word among the numbers, a row that is too short
        return None
    if read is None:
        return None
    places = {column: k for k, column in enumerate(sorted(columns))}
    lines = range(len(read[1]))  # of no use: the plain reader names the line of a mistake
    head = (sample.header, sample.header_line, (), lines, sample.delimiter)
    return BulkTable(path, *head, *read, places)


def _read_sample(path: Path) -> Table | None:
    """Read the first rows, if they are a table under a header that names coordinates."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            text = "".join(islice(stream, _N_SAMPLE_LINES))
        if "\0" in text:
            return None
        Budget(path).spend(WORD_COST * count_words(text), "its text")
        table = parse_table(path, text)
        if not table.header or not table.delimiter:
            return None
        if any(len(cell) > _MAX_LENGTH for row in table.rows for cell in row):
            return None
        return None if find_array_slices(table.header) else table
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
    path: Path, sample: Table, parsed: Sequence[int]
) -> tuple[dict[int, Words], Array] | None:
    """Read the words of all columns that are not parsed, and the numbers (rows, parsed).

    None where a word is longer than expected, or quoted in a way that only the plain reader knows.
    """
    ascii_rows, unicode_rows = (_make_row_type(sample, set(parsed), letter) for letter in "SU")
    fields = ascii_rows.names or ()
    names = [name for name in fields if ascii_rows[name].kind == "S"]
    runs_of_numbers = [name for name in fields if ascii_rows[name].kind != "S"]
    cells = chain.from_iterable(sample.rows)
    has_commas = sample.delimiter != "," and any(map(has_decimal_comma, cells))
    numberings = {name: _Numbering(has_commas) for name in names}
    n_lines = count_lines(path)
    codes = {name: NumberStore(n_lines, np.intp) for name in names}
    values = NumberStore(n_lines * len(parsed))
    usual_words = set[str]()
    with path.open(encoding="utf-8-sig") as stream:
        for _ in range(sample.header_line):
            stream.readline()
        while text := stream.read(_BLOCK) + stream.readline():
            if "+" in text and any(stand_in in text for stand_in in _STAND_INS.values()):
                return None  # a word of the file would be taken for the one it stands for
            if has_commas:
                if "." in text:  # then a point in a word could not be told from a comma
                    return None
                text = text.replace(",", ".")
            kind = ascii_rows if text.isascii() else unicode_rows  # a byte a letter, or four
            rows = _parse_rows(text, kind, sample.delimiter, usual_words)
            for name in names:
                codes[name].append(_number_words(rows[name], numberings[name]))
            values.append(np.hstack([rows[name] for name in runs_of_numbers]))
    numbers = values.numbers.reshape(-1, len(parsed))
    if not len(numbers) or any(
        numberings[name].is_cut(ascii_rows[name].itemsize) for name in names
    ):
        return None
    words: dict[int, Words] = {
        int(name): (codes[name].numbers, tuple(numberings[name].words)) for name in names
    }
    return None if usual_words and _has_empty_row(words, numbers) else (words, numbers)


def _make_row_type(sample: Table, parsed: set[int], letter: str) -> np.dtype[np.void]:
    """Make the type of a row: a word in each column that is not parsed, the others by runs."""
    others = [k for k in range(len(sample.header)) if k not in parsed]
    length = _SPARE_LENGTH + max((len(row[k]) for row in sample.rows for k in others), default=0)
    fields: list[tuple[Any, ...]] = []
    for is_word, run in groupby(range(len(sample.header)), key=set(others).__contains__):
        columns = list(run)
        if is_word:
            fields += [(str(k), f"{letter}{length}") for k in columns]
        else:
            fields.append((str(columns[0]), np.float64, (len(columns),)))
    return np.dtype(fields)


def _parse_rows(
    text: str, kind: np.dtype[np.void], delimiter: str, usual_words: set[str]
) -> NDArray[np.void]:
    """Parse whole lines, with NaN for missing words; ``usual_words`` are those of the file so far.

    Every word that is looked for takes time, so that all are only where those do not suffice.
    """
    try:
        return _load_rows(_replace_words(text, usual_words, delimiter), kind, delimiter)
    except ValueError:
        for word in _STAND_INS.keys() - usual_words:
            if _replace_words(text, {word}, delimiter) != text:
                usual_words.add(word)
    return _load_rows(_replace_words(text, usual_words, delimiter), kind, delimiter)


def _replace_words(text: str, words: Iterable[str], delimiter: str) -> str:
    """Replace cells that are missing words and follow another cell."""
    for word in words:
        stand_in = _STAND_INS[word]
        if not word:
            for end in (delimiter, delimiter, "\n"):  # every second of cells that touch
                text = text.replace(f"{delimiter}{end}", f"{delimiter}{stand_in}{end}")
            continue
        first, *others = text.split(word)
        pieces = [first]
        for before, after in pairwise([first, *others]):
            is_cell = before.endswith(delimiter) and after.startswith((delimiter, "\n"))
            pieces += [stand_in if is_cell else word, after]
        text = "".join(pieces)
    return text


def _load_rows(text: str, kind: np.dtype[np.void], delimiter: str) -> NDArray[np.void]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of blank lines alone
        return np.loadtxt(
            text.split("\n"), dtype=kind, delimiter=delimiter, comments=None, quotechar='"', ndmin=1
        )


def _number_words(cells: NDArray[np.str_ | np.bytes_], numbering: _Numbering) -> Index:
    """Assign a number to each word of a block; look up once what repeats in runs or in turn."""
    if len(cells) > 1 and cells[0] != cells[1]:
        period = 1 + int(np.argmax(cells[1:] == cells[0]))  # 1 where it does not come again
        if period > 1 and (cells[period:] == cells[:-period]).all():
            return np.resize(_number_words(cells[:period], numbering), len(cells))
    is_start = np.concatenate([[True], cells[1:] != cells[:-1]])
    numbers = [numbering[cell] for cell in cells[is_start].tolist()]
    lengths = np.diff(np.flatnonzero(is_start), append=len(cells))
    return np.repeat(np.array(numbers, dtype=np.intp), lengths)


def _has_empty_row(words: Mapping[int, Words], numbers: Array) -> bool:
    """Return whether a row has nothing but separators, which the plain reader leaves out."""
    is_empty = np.isnan(numbers).all(axis=1)
    for codes, cells in words.values():
        is_empty &= codes == (cells.index("") if "" in cells else -1)
    return bool(is_empty.any())
