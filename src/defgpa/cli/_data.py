"""Shapes to be analysed, and what is known about them besides their landmarks, from a table."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli._console import Console
from defgpa.cli._input import read_input

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.shapes import Shapes

_IMAGE = re.compile(r"\.(jpe?g|png|tiff?|bmp|gif)$")


def analysed(source: Sequence[str]) -> tuple[Alignment | Shapes, Shapes]:
    """A saved result or landmark files; and the shapes in either."""
    from defgpa.errors import FormatError
    from defgpa.io import load, read_header

    if len(source) == 1 and source[0].lower().endswith(".npz"):
        try:
            read_header(source[0])
        except FormatError:
            pass  # an archive of points, not a result
        else:
            alignment = load(source[0])
            return alignment, alignment.shapes
    shapes = read_input(source)
    _require_complete(shapes, source[0])
    return shapes, shapes


def _require_complete(shapes: Shapes, source: str) -> None:
    """An error in the words of the command line where landmarks are missing."""
    from defgpa.errors import ShapeError, listed

    partial = [name for name, own in zip(shapes.names, shapes.visible, strict=True) if not all(own)]
    if partial:
        raise ShapeError(
            f"Landmarks are missing in {listed(partial)}. Align the shapes first, which fills them "
            f"in: defgpa fit {source} -o result, then give result/result.npz here."
        )


def columns_for(console: Console, table: str | None, shapes: Shapes) -> dict[str, Any]:
    """What the files say of the shapes, and the columns of a table in the order of the shapes."""
    from defgpa.statistics.design import columns_of, typed

    known = columns_of(shapes)
    if table is None:
        return known
    header, rows = _rows(Path(table))
    own = _names_column(table, header, rows, shapes.names)
    if own is not None:
        place = {_key(row[own]): row for row in rows}
        rows = [place[_key(name)] for name in shapes.names]
    elif len(rows) != shapes.n_shapes:
        raise click.BadParameter(
            f"{table} has {len(rows)} rows for {shapes.n_shapes} shapes, and no column with "
            f"their names (such as {shapes.names[0]!r}).",
            param_hint="--data",
        )
    else:
        console.note(f"No column of {table} has the names of the shapes: rows are taken in order.")
    return known | {name: typed([row[k] for row in rows]) for k, name in enumerate(header)}


def column(columns: dict[str, Any], name: str, option: str) -> Any:
    """One column, or an error that names the option and what there is."""
    if name not in columns:
        there = ", ".join(columns) or "nothing (give --data)"
        raise click.BadParameter(
            f"there is no column {name!r}; there is {there}.", param_hint=option
        )
    return columns[name]


def _rows(path: Path) -> tuple[list[str], list[list[str]]]:
    from defgpa.errors import FormatError
    from defgpa.io.text.lines import text_of
    from defgpa.io.text.table import unguarded

    lines = [line for line in text_of(path).split("\n") if line.strip()]
    if len(lines) < 2:
        raise FormatError(
            f"{path}: expected a header and one row per shape; found {len(lines)} lines."
        )
    mark = max(",;\t", key=lines[0].count)
    header, *rows = (
        [unguarded(cell.strip()) for cell in row] for row in csv.reader(lines, delimiter=mark)
    )
    if all(len(row) == len(header) + 1 for row in rows):  # R writes row names without a title
        header = ["", *header]
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise FormatError(
                f"{path}, line {number}: expected {len(header)} fields; found {len(row)}."
            )
    return [name or "id" for name in header], rows


def _names_column(
    table: str, header: Sequence[str], rows: Sequence[Sequence[str]], names: Sequence[str]
) -> int | None:
    """The column with the names of all shapes; None where there is none.

    One that has most of them was meant, and its rows need not be in order: that is an error, unless
    shapes are only numbered, as much else is.
    """
    from defgpa.errors import listed

    keys = set(map(_key, names))
    known = [len(keys & {_key(row[k]) for row in rows}) for k in range(len(header))]
    best = max(range(len(header)), key=known.__getitem__)
    values = [_key(row[best]) for row in rows]
    twice = [name for name in names if values.count(_key(name)) > 1]
    lacking = [name for name in names if _key(name) not in values]
    numbered = all(name.isdecimal() for name in names)
    if 2 * known[best] <= len(names) or (numbered and (lacking or twice)):
        return None
    if lacking or twice:
        much = f"no row for {listed(lacking)}" if lacking else f"several rows for {listed(twice)}"
        raise click.BadParameter(
            f"{table}: its column {header[best]!r} names the shapes, and has {much}. Add or mend "
            "what is wrong there, or leave shapes out with --drop.",
            param_hint="--data",
        )
    return best


def _key(name: str) -> str:
    """A name as it is compared: capitals and the ending of an image do not matter."""
    return _IMAGE.sub("", name.strip().casefold())
