"""The cells of a table in a text file, whatever separates them, and its header if it has one."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from defgpa.arrays import Array, Index
from defgpa.errors import FormatError
from defgpa.io.files import make_format_error
from defgpa.io.text.lines import (
    decode_head,
    has_decimal_comma,
    is_number,
    parse_numbers,
    parse_numbers_fast,
    read_text,
)

_DELIMITERS = (";", "\t", ",")
_QUOTED = re.compile(r'"((?:[^"]++|"")*+)"(?=\s|$)|(\S+)')  # a cell between blanks
_FORMULA = re.compile("'*[=+@-]")  # what a spreadsheet runs, guarded or not
_EXCEL_HINT = re.compile(r"sep=(.)", re.IGNORECASE)
_DECIMAL = re.compile(r"[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?")
_CALLS_ROWS = re.compile(
    r"\b(id|name|specimen|individual|shape|sample|index|unnamed|label|class|group|target)s?\b",
    re.IGNORECASE,
)


Words = tuple[Index, Sequence[str]]  # the number of each row's word, and the words, each once


@dataclass(frozen=True)
class Table:
    """The cells of a file, its header apart."""

    path: Path
    header: tuple[str, ...]  # () if there is none
    header_line: int
    rows: Sequence[Sequence[str]]
    lines: Sequence[int]  # the number of each row's line
    delimiter: str = ","  # "" is blanks

    @property
    def n_rows(self) -> int:
        """The number of rows below the header."""
        return len(self.rows)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.rows[0])

    def column(self, number: int) -> list[str]:
        """Return the words of one column."""
        return [row[number].strip() for row in self.rows]

    def encode(self, number: int) -> Words:
        """Return the number of each row's word in a column, and the words as they come."""
        words = self.column(number)
        codes = {word: code for code, word in enumerate(dict.fromkeys(words))}
        return np.array([codes[word] for word in words], dtype=np.intp), tuple(codes)

    def repeats(self, column: int) -> bool:
        """Return whether a word stands in a column more than once."""
        return len(self.encode(column)[1]) < self.n_rows

    def numbers(self, columns: Sequence[int]) -> Array:
        """Return (rows, columns) the numbers of these columns, in this order."""
        cells = self._replace_decimal_commas([[row[k] for k in columns] for row in self.rows])
        values = parse_numbers_fast(list(chain.from_iterable(cells)))
        if values:
            return np.array(values).reshape(len(cells), -1)
        pairs = zip(self.lines, cells, strict=True)
        return np.array([parse_numbers(self.path, at, row) for at, row in pairs])

    def _replace_decimal_commas(self, cells: list[list[str]]) -> list[list[str]]:
        """Replace decimal commas by points, where the comma is no separator."""
        if self.delimiter == "," or not any(map(has_decimal_comma, chain.from_iterable(cells))):
            return cells
        for at, row in zip(self.lines, cells, strict=True):
            for cell in row:
                if "." in cell and is_number(cell):
                    raise make_format_error(
                        self.path, "decimal commas everywhere, or nowhere", repr(cell.strip()), at
                    )
        return [
            [cell.replace(",", ".") if has_decimal_comma(cell) else cell for cell in row]
            for row in cells
        ]


def read_table(path: Path) -> Table:
    """Read rows of equal length, and the header if the first of them is one."""
    return parse_table(path, read_text(path))


def parse_table(path: Path, text: str) -> Table:
    """Parse the text of a file: rows of equal length, and the header if the first is one."""
    lines, rows, delimiter = _split_cells(path, text)
    titles = _count_title_rows(rows)
    lines, rows = lines[titles:], _add_corner_cell(_remove_padding(rows[titles:]))
    for at, row in zip(lines, rows, strict=True):
        if len(row) != len(rows[0]):
            raise make_format_error(path, f"{len(rows[0])} columns, as above", str(len(row)), at)
    if len(rows[0]) < 2:
        raise make_format_error(path, "columns of numbers", repr(", ".join(rows[0])), lines[0])
    if not (_is_header(rows[0]) or _is_column_numbering(rows)):
        return Table(path, (), 0, rows, lines, delimiter)
    if len(rows) == 1:
        raise FormatError(f"{path} has no numbers: expected rows below the header; found none.")
    return Table(path, tuple(rows[0]), lines[0], rows[1:], lines[1:], delimiter)


def _split_cells(path: Path, text: str) -> tuple[list[int], list[list[str]], str]:
    """Split rows that are not blank into cells, with their lines and the separator.

    Comments may only stand on top.
    """
    lines = text.split("\n")
    start, hint = _find_start(lines)
    delimiter = hint or _detect_delimiter(lines[start : start + 20])
    at, rows = [], []
    try:
        for line, row in _split_rows(lines[start:], delimiter):
            if row and (row[0].strip() or any(cell.strip() for cell in row)):
                at.append(line + start)
                rows.append(row)
    except csv.Error as error:
        raise FormatError(f"{path} is not a table that can be read: {error}.") from None
    if not rows:
        raise FormatError(f"{path} has no numbers: expected a table; found only comments.")
    return at, rows, delimiter


def _find_start(lines: Sequence[str]) -> tuple[int, str]:
    """Find where the table begins, and the delimiter that Excel's ``sep=;`` line names."""
    start, hint = 0, ""
    while start < len(lines) and (not lines[start].strip() or lines[start].startswith("#")):
        start += 1
    match = _EXCEL_HINT.fullmatch(lines[start].strip(" ")) if start < len(lines) else None
    if match:
        start, hint = start + 1, match[1]
    elif start < len(lines) and is_whole(lines[start]):
        n_following = sum(bool(line.strip()) for line in lines[start + 1 :])
        start += lines[start].strip() == str(
            n_following
        )  # scanners say first how many points follow
    return start, hint if hint in _DELIMITERS else ""


def _detect_delimiter(lines: Sequence[str]) -> str:
    """Detect the delimiter that is in every line, or else in most; "" is blanks."""
    filled = [line for line in lines if line.strip()]
    marks = _DELIMITERS[:-1] if _has_decimals_between_blanks(filled) else _DELIMITERS
    shares = {mark: sum(mark in line for line in filled) for mark in marks}
    best = max(marks, key=shares.__getitem__)
    return best if shares[best] * 2 >= max(len(filled), 1) else ""


def _has_decimals_between_blanks(lines: Sequence[str]) -> bool:
    """Return whether all commas are decimal: ``1,5 2,5`` is no table of three columns."""
    rows = [line.split() for line in lines if "," in line]
    return bool(rows) and all(
        len(row) > 1 and all(_DECIMAL.fullmatch(word) for word in row if "," in word)
        for row in rows
    )


def _split_rows(lines: Sequence[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    if not delimiter:
        yield from ((at, _split_at_blanks(line)) for at, line in enumerate(lines, start=1))
        return
    lines_with_ends = (f"{line}\n" for line in lines)  # so that a quoted cell may go over several
    reader = csv.reader(lines_with_ends, delimiter=delimiter, skipinitialspace=True)
    before = 0
    for row in reader:
        yield before + 1, list(map(remove_guard, row)) if any("'" in cell for cell in row) else row
        before = reader.line_num


def guard_formula(cell: str) -> str:
    """Put an apostrophe before a word that a spreadsheet would run as a formula.

    >>> [guard_formula(word) for word in ("=1+1", "@apex", "-7", "wing")]
    ["'=1+1", "'@apex", '-7', 'wing']
    """
    return f"'{cell}" if _FORMULA.match(cell) and not is_number(cell) else cell


def remove_guard(cell: str) -> str:
    """Remove the apostrophe of a guarded word."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def format_csv(
    header: Sequence[str],
    rows: Iterable[Iterable[object]],
    unknown: str = "",
    delimiter: str = ",",
    written: Callable[[str], str] = guard_formula,
) -> str:
    """Format a table as CSV, floats with every digit.

    ``unknown`` stands for NaN. A carriage return, which readers take for the end of a row, becomes
    a blank.
    """
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")

    def format_cell(cell: object) -> object:
        if isinstance(cell, str):
            return written(cell.replace("\r", " "))
        return unknown if cell != cell else cell

    writer.writerows(map(format_cell, row) for row in chain([header] if header else [], rows))
    return text.getvalue()


def _split_at_blanks(line: str) -> list[str]:
    """Split a line at blanks into cells; a cell with blanks inside is quoted."""
    if '"' not in line:
        return line.split()
    return [quoted.replace('""', '"') or bare for quoted, bare in _QUOTED.findall(line)]


def _count_title_rows(rows: Sequence[Sequence[str]]) -> int:
    """Count the rows on top that are a title: one cell of words above rows of three or more."""
    filled = [[cell for cell in row if cell.strip()] for row in rows[:6]]
    titles = (len(cells) == 1 and not is_number(cells[0]) for cells in filled)
    count = next((k for k, is_title in enumerate(titles) if not is_title), len(filled))
    return count if count < len(filled) and len(filled[count]) > 2 else 0


def _is_column_numbering(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row is 0, 1, 2, … or 1, 2, 3, … and the others are not whole.

    One word may stand behind the numbers: ``0, 1, …, 41, label``.
    """
    heads = [cell.strip() for cell in rows[0]]
    if heads and heads[0] and not is_number(heads[-1]):
        heads = heads[:-1]
    if len(heads) < 6 or len(rows) < 2:
        return False
    return is_enumeration(heads) and not all(map(is_whole, rows[1][: len(heads)]))


def _add_corner_cell(rows: list[list[str]]) -> list[list[str]]:
    """Add a corner cell, so that the header has one for every column.

    R's ``write.table`` has none for the names of the rows.
    """
    if len(rows) < 2 or {len(row) - len(rows[0]) for row in rows[1:]} != {1}:
        return rows
    header = ["", *rows[0]]
    return [header, *rows[1:]] if _is_header(header) else rows


def _remove_padding(rows: list[list[str]]) -> list[list[str]]:
    """Remove the empty cells that spreadsheets add at the right of all rows."""
    used = max(map(_count_used_cells, rows))
    padded = min(map(len, rows)) >= used and max(map(len, rows)) > used
    return [row[:used] for row in rows] if padded else rows


def _count_used_cells(row: Sequence[str]) -> int:
    """Count the cells up to the last that is not empty."""
    used = len(row)
    while used and not row[used - 1].strip():
        used -= 1
    return used


def _is_header(row: Sequence[str]) -> bool:
    """Return whether most entries after the first are words: one alone is a mistake.

    Programs that number the columns write 0, 1, 2, … after an empty cell, or 1, 2, 3, … after
    the words for what else they know; R numbers those of an array 1.1, 2.1, 1.2, ….
    """
    first, *cells = (cell.strip() for cell in row)
    if _is_array_header(cells if not first else [first, *cells]):
        return True
    if first and is_number(first):
        return False
    words = sum(not is_number(cell) for cell in cells)
    if 2 * words >= len(cells) or (not first and is_enumeration(cells)):
        return True
    return bool(words or _CALLS_ROWS.search(first)) and is_enumeration(cells[words:])


def _is_array_header(cells: Sequence[str]) -> bool:
    """Return whether these are columns of an array without names: 1.1, 2.1, 1.2, 2.2, …"""
    return any(
        len(cells) >= 2 * d
        and list(cells) == [f"{k % d + 1}.{k // d + 1}" for k in range(len(cells))]
        for d in (2, 3)
    )


def is_whole(cell: str) -> bool:
    """Return whether a cell is an integer without a sign."""
    return re.fullmatch(r"[0-9]+", cell.strip()) is not None


def is_enumeration(words: Sequence[str]) -> bool:
    """Return whether these are 0, 1, 2, … or 1, 2, 3, …"""
    return any(all(word == str(k) for k, word in enumerate(words, start=base)) for base in (0, 1))


def parse_first_rows(head: bytes) -> tuple[list[list[str]], str]:
    """Parse the first rows of a table from the first bytes of its file, and find the separator."""
    lines = decode_head(head).split("\n")
    start, hint = _find_start(lines)
    filled = [line for line in lines[start : start + 20] if line.strip()]
    if len(head) >= 4096:  # then the last line may end anywhere
        filled = filled[:-1] or filled
    delimiter = hint or _detect_delimiter(filled)
    try:
        return [row for _, row in _split_rows(filled, delimiter)], delimiter
    except csv.Error:
        return [], delimiter
