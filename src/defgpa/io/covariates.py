"""Covariates of specimens: columns of their files, and of tables beside them."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import RawArray
from defgpa.errors import FormatError, format_names, import_extra
from defgpa.io.files import read_head, translate_errors
from defgpa.io.limits import TEXT_COST, Budget, open_zip
from defgpa.io.text.lines import read_text, warn
from defgpa.io.text.table import remove_guard
from defgpa.io.text.variables import get_variable_columns
from defgpa.shapes import Shapes

_EXCEL = (".xlsx", ".xlsm")

Columns = Mapping[str, Any]  # covariates by name, each with one value per shape


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
    header, rows = read_covariate_rows(path)
    column = _find_names(path, header, rows, names)
    if column is not None:
        by_name = {_normalise(row[column]): row for row in rows}
        rows = [by_name[_normalise(name)] for name in names]
    elif len(rows) != len(names):
        raise FormatError(
            f"{path} has {len(rows)} rows for {len(names)} shapes, and no column with their names "
            f"(such as {names[0]!r})."
        )
    else:
        warn(f"No column of {path} has the names of the shapes: rows are taken in order.")
    return {name: [row[k] for row in rows] for k, name in enumerate(header)}


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
    place = Path(path)
    is_excel = place.suffix.lower() in _EXCEL or read_head(place).startswith(b"PK\x03\x04")
    lines = _read_sheet(place) if is_excel else _read_text_table(place)
    if len(lines) < 2:
        raise FormatError(
            f"{path}: expected a header and one row per shape; found {len(lines)} lines."
        )
    (_, header), *numbered = lines
    if all(len(row) == len(header) + 1 for _, row in numbered):  # R's row names have no head
        header = ["", *header]
    for number, row in numbered:
        if len(row) != len(header):
            raise FormatError(
                f"{path}, line {number}: expected {len(header)} fields; found {len(row)}."
            )
    return [name or "id" for name in header], [row for _, row in numbered]


def _read_text_table(path: Path) -> list[tuple[int, list[str]]]:
    """Read the rows that are not blank, with the numbers of their lines."""
    lines = read_text(path).split("\n")
    first = next(line for line in lines if line.strip())
    reader = csv.reader(lines, delimiter=max(",;\t", key=first.count))
    try:
        rows = [(reader.line_num, [remove_guard(cell.strip()) for cell in row]) for row in reader]
    except csv.Error:
        raise FormatError(
            f"{path}, line {reader.line_num}: expected a table; found a cell without end."
        ) from None
    return [(number, row) for number, row in rows if any(row)]


def _read_sheet(path: Path) -> list[tuple[int, list[str]]]:
    """Read the rows of the first sheet that are not blank, without empty columns at the right."""
    how = f'{path} is a spreadsheet, which needs openpyxl: pip install "defgpa[spreadsheets]".'
    openpyxl = import_extra("openpyxl", how)
    with translate_errors(path, "spreadsheet"):
        with open_zip(path) as archive:
            size = sum(info.file_size for info in archive.infolist())
        Budget(path).spend(TEXT_COST * size, "what it packs")
        workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            cells = [
                [_format_cell(cell) for cell in row]
                for row in workbook.worksheets[0].iter_rows(values_only=True)
            ]
        finally:
            workbook.close()
    width = max((k + 1 for row in cells for k, cell in enumerate(row) if cell), default=0)
    rows = [(row + [""] * width)[:width] for row in cells]
    return [(number, row) for number, row in enumerate(rows, start=1) if any(row)]


def _format_cell(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None else str(cell).strip()


def _find_names(
    path: str | os.PathLike[str],
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    names: Sequence[str],
) -> int | None:
    """Find the column with the names of all specimens; None where there is none.

    A column that has most of them was meant, and its rows need not be in order: a name that lacks
    is an error, unless specimens are only numbered, as much else is.
    """
    expected = set(map(_normalise, names))
    counts = [len(expected & {_normalise(row[k]) for row in rows}) for k in range(len(header))]
    best = max(range(len(header)), key=counts.__getitem__)
    values = [_normalise(row[best]) for row in rows]
    repeated = [name for name in names if values.count(_normalise(name)) > 1]
    absent = [name for name in names if _normalise(name) not in values]
    are_numbers = all(name.isdecimal() for name in names)
    if 2 * counts[best] <= len(names) or (are_numbers and (absent or repeated)):
        return None
    if absent or repeated:
        reason = (
            f"no row for {format_names(absent)}"
            if absent
            else f"several rows for {format_names(repeated)}"
        )
        raise FormatError(
            f"{path}: its column {header[best]!r} names the shapes, and has {reason}. Add or mend "
            "what is wrong there, or leave these shapes out."
        )
    return best


def _normalise(name: str) -> str:
    """Normalise a name for comparison: without capitals and the suffix of an image."""
    return re.sub(r"\.(jpe?g|png|tiff?|bmp|gif)$", "", name.strip().casefold())


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
