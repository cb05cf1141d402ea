"""A table of what is known about the specimens, brought into their order."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from pathlib import Path

from defgpa.errors import FormatError, listed
from defgpa.io.text.lines import read_text, warn
from defgpa.io.text.table import remove_guard


def read_covariates(path: str | os.PathLike[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Read the columns of a table, one value a specimen, in the order of the specimens.

    Parameters
    ----------
    path : path
        A table with a header, its cells separated by commas, semicolons or tabs.
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
    header, rows = _read_rows(Path(path))
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


def _read_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    lines = [line for line in read_text(path).split("\n") if line.strip()]
    if len(lines) < 2:
        raise FormatError(
            f"{path}: expected a header and one row per shape; found {len(lines)} lines."
        )
    delimiter = max(",;\t", key=lines[0].count)
    header, *rows = (
        [remove_guard(cell.strip()) for cell in row]
        for row in csv.reader(lines, delimiter=delimiter)
    )
    if all(len(row) == len(header) + 1 for row in rows):  # R writes row names without a title
        header = ["", *header]
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise FormatError(
                f"{path}, line {number}: expected {len(header)} fields; found {len(row)}."
            )
    return [name or "id" for name in header], rows


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
    wanted = set(map(_normalise, names))
    counts = [len(wanted & {_normalise(row[k]) for row in rows}) for k in range(len(header))]
    best = max(range(len(header)), key=counts.__getitem__)
    values = [_normalise(row[best]) for row in rows]
    repeated = [name for name in names if values.count(_normalise(name)) > 1]
    lacking = [name for name in names if _normalise(name) not in values]
    are_numbers = all(name.isdecimal() for name in names)
    if 2 * counts[best] <= len(names) or (are_numbers and (lacking or repeated)):
        return None
    if lacking or repeated:
        reason = (
            f"no row for {listed(lacking)}" if lacking else f"several rows for {listed(repeated)}"
        )
        raise FormatError(
            f"{path}: its column {header[best]!r} names the shapes, and has {reason}. Add or mend "
            "what is wrong there, or leave these shapes out."
        )
    return best


def _normalise(name: str) -> str:
    """Return a name as it is compared: without capitals and the ending of an image."""
    return re.sub(r"\.(jpe?g|png|tiff?|bmp|gif)$", "", name.strip().casefold())
