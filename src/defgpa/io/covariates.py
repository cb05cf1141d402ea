"""Covariates of specimens: columns of their files, and of tables beside them."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import RawArray
from defgpa.diagnostics.wording import get_wording
from defgpa.errors import FormatError, format_names, import_extra
from defgpa.io.files import read_head, translate_errors
from defgpa.io.limits import TEXT_COST, Budget, open_zip
from defgpa.io.text.lines import read_blocks, warn
from defgpa.io.text.table import remove_guard
from defgpa.io.text.variables import get_variable_columns
from defgpa.io.xml import scan_xml
from defgpa.shapes import Shapes

_EXCEL = (".xlsx", ".xlsm")
_MAX_ROWS = 2**20  # of a sheet of Excel
_CELLS = "the number of its cells"
_N_SAMPLE_ROWS = 20  # rows that show whether the header lacks a cell
_N_CACHED_WORDS = 2**12  # words of cells that are kept, since tables repeat them

Columns = Mapping[str, Any]  # covariates by name, each with one value per shape


@dataclass
class _Column:
    """The rows in which a column of a table has the name of a specimen."""

    rows: dict[str, list[str]] = field(default_factory=dict)  # the first of each normalised name
    repeated: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Match:
    """What a table of any length says about some specimens."""

    header: Sequence[str]
    best: _Column  # the one with the most names
    best_head: str
    first_rows: list[list[str]]  # as many as there are specimens
    n_rows: int


def read_covariates(path: str | os.PathLike[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Read the columns of a table, one value a specimen, in the order of the specimens.

    Parameters
    ----------
    path : path
        A table with a header: cells between commas, semicolons or tabs, or a spreadsheet.
    names : sequence of n str
        The specimens. The column that has their names says which row is whose (capitals and the
        ending of an image do not matter); without one, rows are taken in order, with a warning.

    Returns
    -------
    dict of str to list of n str
        The columns by their heads.

    Raises
    ------
    FormatError
        Where the rows cannot be told apart or do not fit the specimens.
    """
    match = _match_rows(path, names)
    column = _find_names(path, match, names)
    if column is not None:
        rows = [column.rows[_normalise(name)] for name in names]
    elif match.n_rows != len(names):
        raise FormatError(
            f"{path} has {match.n_rows} rows for {len(names)} shapes, and no column with their "
            f"names (such as {names[0]!r})."
        )
    else:
        warn(f"No column of {path} has the names of the shapes: rows are taken in order.")
        rows = match.first_rows
    return {name: [row[k] for row in rows] for k, name in enumerate(match.header)}


def find_unlisted(path: str | os.PathLike[str], names: Sequence[str]) -> list[str]:
    """Return the specimens that the column of a table with the most of their names lacks."""
    match = _match_rows(path, names)
    return [name for name in names if _normalise(name) not in match.best.rows]


def read_covariate_rows(path: str | os.PathLike[str]) -> tuple[list[str], list[list[str]]]:
    """Read the header and the rows of a table of covariates.

    Parameters
    ----------
    path : path
        Cells between commas, semicolons or tabs, or the first sheet of an ``.xlsx`` file (which
        needs openpyxl). R's row names without a head are called ``id``.

    Returns
    -------
    header : list of str
    rows : list of lists of str
        As long as the header; "" for an empty cell.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "table.tsv"
    ...     _ = file.write_text("id\\tsite\\na\\tnorth\\nb\\tsouth\\n")
    ...     read_covariate_rows(file)
    (['id', 'site'], [['a', 'north'], ['b', 'south']])
    """
    if not isinstance(path, (str, os.PathLike)):
        raise FormatError(f"Expected the path of a table; got {type(path).__name__}.")
    header, *rows = _iterate_table(path)
    return header, rows


def read_covariate_heads(path: str | os.PathLike[str]) -> list[str]:
    """Read the header of a table of covariates."""
    return next(_iterate_table(path))


def _iterate_table(path: str | os.PathLike[str]) -> Iterator[list[str]]:
    """Yield the header and the rows of a table, all of one length."""
    if not isinstance(path, (str, os.PathLike)):
        raise FormatError(f"Expected the path of a table; got {type(path).__name__}.")
    place = Path(path)
    is_excel = place.suffix.lower() in _EXCEL or read_head(place).startswith(b"PK\x03\x04")
    lines = iter(_read_sheet(place)) if is_excel else _read_text_table(place)
    first = list(islice(lines, _N_SAMPLE_ROWS))
    if len(first) < 2:
        raise FormatError(
            f"{path}: expected a header and one row per shape; found {len(first)} lines."
        )
    (_, header), *sample = first
    if all(len(row) == len(header) + 1 for _, row in sample):  # R's row names have no head
        header = ["", *header]
    yield [name or "id" for name in header]
    for number, row in chain(sample, lines):
        if len(row) != len(header):
            raise FormatError(
                f"{path}, line {number}: expected {len(header)} fields; found {len(row)}."
            )
        yield row


def _read_text_table(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with the numbers of their lines."""
    lines = chain.from_iterable(block.removesuffix("\n").split("\n") for block in read_blocks(path))
    n_blank = 0
    for header in lines:
        if header.strip():
            break
        n_blank += 1
    delimiter = max(",;\t", key=header.count)
    reader = csv.reader(chain([""] * n_blank, [header], lines), delimiter=delimiter)
    clean_cell = lru_cache(_N_CACHED_WORDS)(_clean_cell)
    try:
        for row in reader:
            cells = list(map(clean_cell, row))
            if any(cells):
                yield reader.line_num, cells
    except csv.Error:
        raise FormatError(
            f"{path}, line {reader.line_num}: expected a table; found a cell without end."
        ) from None


def _clean_cell(cell: str) -> str:
    word = cell.strip()
    return remove_guard(word) if word.startswith("'") else word


def _read_sheet(path: Path) -> list[tuple[int, list[str]]]:
    """Read the rows of the first sheet that are not blank, without empty columns at the right."""
    advice = f'{path} is a spreadsheet, which needs openpyxl: pip install "defgpa[spreadsheets]".'
    openpyxl = import_extra("openpyxl", advice)
    with translate_errors(path, "spreadsheet"):
        _check_parts(path)
        workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            rows = list(_read_cells(path, workbook.worksheets[0]))
        finally:
            workbook.close()
    width = max((len(cells) for _, cells in rows), default=0)
    Budget(path).spend(8 * width * len(rows), _CELLS)
    return [(number, cells + [""] * (width - len(cells))) for number, cells in rows]


def _check_parts(path: Path) -> None:
    """Refuse a spreadsheet whose parts would take too much time or memory to parse."""
    with open_zip(path) as archive:
        parts = archive.infolist()
        Budget(path).spend(TEXT_COST * sum(part.file_size for part in parts), "what it packs")
        budget = Budget(path)
        for part in parts:
            if part.filename.lower().endswith((".xml", ".rels")):
                with archive.open(part) as stream:
                    scan_xml(path, stream, "a spreadsheet", budget)


def _read_cells(path: Path, sheet: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells up to the last filled one of each row that is not blank."""
    budget = Budget(path)
    sheet.reset_dimensions()  # what it states may be any size
    rows = sheet.iter_rows(max_row=_MAX_ROWS, values_only=True)
    for number, row in enumerate(rows, start=1):
        budget.spend(8 * len(row), _CELLS)
        cells = [_format_cell(cell) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield number, cells


def _format_cell(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None else str(cell).strip()


def _match_rows(path: str | os.PathLike[str], names: Sequence[str]) -> _Match:
    """Find the rows of specimens by each column of a table, and keep no others."""
    expected = set(map(_normalise, names))
    normalise = lru_cache(_N_CACHED_WORDS)(_normalise)
    table = _iterate_table(path)
    header, first_rows, n_rows = next(table), list[list[str]](), 0
    columns = [_Column() for _ in header]
    for n_rows, row in enumerate(table, start=1):
        if n_rows <= len(names):
            first_rows.append(row)
        for column, cell in zip(columns, row, strict=True):
            name = normalise(cell)
            if name in expected and column.rows.setdefault(name, row) is not row:
                column.repeated.add(name)
    best = max(range(len(header)), key=lambda k: len(columns[k].rows))
    return _Match(header, columns[best], header[best], first_rows, n_rows)


def _find_names(
    path: str | os.PathLike[str], match: _Match, names: Sequence[str]
) -> _Column | None:
    """Find the column with the names of all specimens; None where there is none.

    A column that has most of them was meant, and its rows need not be in order: a name that lacks
    is an error, unless specimens are only numbered, as much else is.
    """
    best = match.best
    repeated = [name for name in names if _normalise(name) in best.repeated]
    absent = [name for name in names if _normalise(name) not in best.rows]
    are_numbers = all(name.isdecimal() for name in names)
    if 2 * len(best.rows) <= len(names) or (are_numbers and (absent or repeated)):
        return None
    if absent or repeated:
        reason = (
            f"no row for {format_names(absent)} ({len(absent)} of {len(names)})"
            if absent
            else f"several rows for {format_names(repeated)}"
        )
        raise FormatError(
            f"{path}: its column {match.best_head!r} names the specimens, and has "
            f"{reason}. Mend the table, or {get_wording().remedies['unlisted']}."
        )
    return best


def _normalise(name: str) -> str:
    """Normalise a name for comparison: without capitals and the suffix of an image."""
    word = name.strip().casefold()
    return re.sub(r"\.(jpe?g|png|tiff?|bmp|gif)$", "", word) if "." in word else word


def collect_columns(shapes: Shapes, data: Columns | None = None) -> dict[str, Any]:
    """Collect what files and user know of every shape: ``group`` and the columns of tables.

    Columns of text files are numbers where all their cells are; those that a file knows as factors
    (``metadata["factors"]``), and categorical columns of a DataFrame, are groups whatever their
    levels look like.

    Examples
    --------
    >>> cells = ({"sex": "f", "age": "3"}, {"sex": "m", "age": ""})
    >>> shapes = Shapes.specimens([[[0.0, 0.0]]] * 2, metadata={"variables": cells})
    >>> collect_columns(shapes)
    {'sex': ['f', 'm'], 'age': [3, None]}
    """
    groups = shapes.metadata.get("groups")
    columns: dict[str, Any] = {} if groups is None else {"group": list(groups)}
    factors = set(shapes.metadata.get("factors") or ())
    for head, values in get_variable_columns(shapes).items():
        words = list(map(str, values))
        is_factor = head in factors
        columns[str(head)] = [w or None for w in words] if is_factor else parse_column(words)
    for head in () if data is None else data:
        columns[str(head)] = _to_column(data[head]) if data is not None else []
    return columns


def _to_column(values: ArrayLike) -> RawArray:
    """Return values as an array; a categorical of any library as words, None where missing."""
    if str(getattr(values, "dtype", "")) == "category":
        return np.array(
            [None if v != v else str(v) for v in np.asarray(values, dtype=object)], dtype=object
        )
    return np.asarray(values)


def parse_column(words: Sequence[str]) -> list[int | float | str | None]:
    """Parse a column: int or float if all cells are numbers, else str; None where empty or NA."""
    cells = [None if word in ("", "NA", "NaN", "nan") else word for word in words]
    for kind in (int, float):
        try:
            return [None if cell is None else kind(cell) for cell in cells]
        except ValueError:
            continue
    return list(cells)
