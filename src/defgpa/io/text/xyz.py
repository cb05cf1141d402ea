"""Clouds of points (``.xyz``): a point a line, with its normal or colour behind it or not.

One file is one shape. Normals are wrong as soon as points move, and colours mean nothing to a
fit, so six columns and more are x, y, z and what is left out. Files with fewer are tables.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from defgpa.io.atomic import write_text
from defgpa.io.files import hidden, wrong
from defgpa.io.format import Document, Format, ReadOptions, Specimen
from defgpa.io.text.csv import read_points
from defgpa.io.text.lines import head_text, is_number, numbered, numbers_at, text_of, warn
from defgpa.shapes import Shapes

_LEAST = 6  # columns: a point, and a normal or a colour
_SEPARATOR = re.compile(r"[\s,;]+")

Row = tuple[int, list[str]]  # the number of a line, and its words


def read_xyz(path: Path, options: ReadOptions) -> Document:
    """The points of a cloud."""
    rows = _rows(text_of(path))
    if not rows or len(rows[0][1]) < _LEAST:
        return read_points(path, options)
    width = len(rows[0][1])
    for line, words in rows:
        if len(words) != width:
            raise wrong(path, f"{width} numbers, as before", " ".join(words), line)
    points = numbers_at(path, [(line, word) for line, words in rows for word in words[:3]])
    array = hidden(np.array(points).reshape(-1, 3), options.missing)
    return Document((Specimen(path.stem, array),))


def write_xyz(path: Path, shapes: Shapes) -> None:
    """Coordinates between blanks; labels have no place."""
    if shapes.landmarks != numbered("", shapes.n_landmarks):
        warn(f"{path}: .xyz does not hold the labels of landmarks. Use .csv to keep them.")
    rows = (" ".join(map(repr, point)) for point in shapes.points[0].tolist())
    write_text(path, "\n".join(rows) + "\n")


def _rows(text: str) -> list[Row]:
    """The rows below comments, a header of words, or the number of points."""
    rows = [
        (number, _SEPARATOR.split(line.strip(" \t,;")))
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip() and not line.lstrip().startswith(("#", "//"))
    ]
    first = rows[0][1] if rows else []
    headed = first == [str(len(rows) - 1)] or not all(map(is_number, first))
    return rows[1:] if headed else rows


def _looks_like_xyz(head: bytes) -> bool:
    rows = _rows(head_text(head))[:-1][:5]
    widths = {len(words) for _, words in rows}
    numeric = all(is_number(word) for _, words in rows for word in words)
    return len(widths) == 1 and min(widths) >= _LEAST and numeric


FORMATS = (Format("xyz", (".xyz",), _looks_like_xyz, read_xyz, write_xyz, one_shape_per_file=True),)
