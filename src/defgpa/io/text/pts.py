"""Unrelated formats share the suffix ``.pts``; their first lines tell them apart.

300-W (``version: 1``): the points of one image in pixels counted from 1, kept as they are.
IDAV Landmark (``Version 1.0``): one specimen in 3-D with a label a point, 9999 for missing.
elastix (``point`` or ``index``): a count, then rows of 2 or 3 numbers.
Others are bare rows of 2 or 3 numbers, perhaps below their count, and read as such tables are.
One file is one shape; 2-D shapes are written in the first format, 3-D in the second.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import FormatError
from defgpa.io.atomic import write_text
from defgpa.io.files import make_format_error, mask_missing
from defgpa.io.format import Document, Format, ReadOptions, make_document
from defgpa.io.text.lines import (
    Disagree,
    Line,
    are_numbers,
    collect_disagreements,
    decode_head,
    parse_count,
    parse_numbers,
    parse_numbers_fast,
    parse_points,
    read_text,
    replace_forbidden,
    warn,
    warn_of_lost_labels,
)
from defgpa.io.text.row_tables import read_one_shape
from defgpa.io.text.table import read_table
from defgpa.shapes import Shapes

_FACES = re.compile(r"version\s*:", re.IGNORECASE)
_LANDMARK = re.compile(r"version\s+[0-9]", re.IGNORECASE)
_SIGNATURE = re.compile(
    r"\s*(version(\s*:[^\n]*\n\s*n_points|[ \t]+[0-9.]+[ \t]*\n\s*[0-9]+[ \t]*\n)"
    r"|(point|index)[ \t]*\n\s*[0-9]+[ \t]*\n)",
    re.IGNORECASE,
)
_ELASTIX = ("point", "index")
_MISSING = 9999.0


def read_pts(path: Path, options: ReadOptions) -> Document:
    """Read the one shape of a ``.pts`` file of either kind."""
    lines = [line.strip() for line in read_text(path).split("\n")]
    (at, first), *rows = ((at, line) for at, line in enumerate(lines, start=1) if line)
    labels: tuple[str, ...] | None = None
    with collect_disagreements(path, options) as disagree:
        if _FACES.match(first):
            points = _read_faces(path, lines, disagree)
        elif _LANDMARK.match(first):
            points, labels = _read_landmark(path, rows, disagree)
        elif first.lower() in _ELASTIX:
            points = _read_elastix(path, first, rows, disagree)
        elif _is_bare(first, rows):
            points, labels = _read_bare(path, (at, first), rows, options)
        else:
            expected = "'version: 1', 'Version 1.0', 'point' or rows of 2 or 3 numbers"
            raise make_format_error(path, expected, repr(first), at)
    return make_document(path, [mask_missing(points, options.missing)], labels=labels)


def write_pts(path: Path, shapes: Shapes) -> None:
    """Write one shape, in the kind of file that fits its dimension."""
    write_text(
        path, _format_faces(shapes) if shapes.n_dims == 2 else _format_landmarks(path, shapes)
    )


def _read_faces(path: Path, lines: Sequence[str], disagree: Disagree) -> Array:
    """Read ``n_points: N`` and N rows between braces."""
    count_line = [at for at, line in enumerate(lines) if line.lower().startswith("n_points")]
    if not count_line or "{" not in lines:
        raise FormatError(f"{path}: expected 'n_points: N' and then '{{'; found neither or one.")
    opening, at = lines.index("{"), count_line[0]
    closing = lines.index("}", opening) if "}" in lines[opening:] else len(lines)
    points = parse_points(path, "\n".join(lines[opening + 1 : closing]), opening + 2)
    expected = parse_count(path, at + 1, lines[at].partition(":")[2], "n_points")
    if len(points) != expected:
        disagree(at + 1, f"{expected} rows between braces", str(len(points)))
    return points


def _read_landmark(
    path: Path, lines: Sequence[Line], disagree: Disagree
) -> tuple[Array, tuple[str, ...] | None]:
    """Read a count, then rows ``label x y z``; the label is all before the last three words."""
    if len(lines) < 2:
        raise FormatError(f"{path} has no points: expected a count and rows; found none.")
    (at, count_line), *rows = lines
    expected = parse_count(path, at, count_line, "the number of points")
    if len(rows) != expected:
        disagree(at, f"{expected} rows of points", str(len(rows)))
    words_by_row = [text.rsplit(maxsplit=3) for _, text in rows]
    for (line, text), words in zip(rows, words_by_row, strict=True):
        if len(words) not in (3, 4):
            raise make_format_error(path, "a label and 3 coordinates", repr(text), line)
    numbers = parse_numbers_fast([word for words in words_by_row for word in words[-3:]])
    if not numbers:
        for (line, _), words in zip(rows, words_by_row, strict=True):
            numbers += parse_numbers(path, line, words[-3:])
    points = np.array(numbers).reshape(-1, 3)
    points[(points == _MISSING).all(axis=1)] = np.nan
    labels = tuple(words[0] if len(words) == 4 else "" for words in words_by_row)
    return points, labels if all(labels) else None


def _read_elastix(path: Path, kind: str, lines: Sequence[Line], disagree: Disagree) -> Array:
    """Read ``point`` or ``index``, a count, then rows of 2 or 3 numbers."""
    if len(lines) < 2:
        raise FormatError(f"{path} has no points: expected a count and rows; found none.")
    (at, count_line), *rows = lines
    expected = parse_count(path, at, count_line, "the number of points")
    points = parse_points(path, "\n".join(text for _, text in rows), rows[0][0])
    if len(points) != expected:
        disagree(at, f"{expected} rows of points", str(len(points)))
    if kind.lower() == "index":
        warn(f"{path}: its points are numbers of voxels, not places; voxels may be unequally long.")
    return points


def _is_bare(first: str, rest: Sequence[Line]) -> bool:
    """Return whether rows of 2 or 3 numbers follow, perhaps after their count."""
    widths = {len(line.split()) for _, line in rest}
    return widths in ({2}, {3}) and are_numbers(first.split())


def _read_bare(
    path: Path, first: Line, rest: Sequence[Line], options: ReadOptions
) -> tuple[Array, tuple[str, ...] | None]:
    at, text = first
    if len(text.split()) == 1 and text != str(len(rest)):
        raise make_format_error(path, f"{text} rows of points", str(len(rest)), at)
    (specimen,) = read_one_shape(read_table(path), options).specimens
    return specimen.points, specimen.labels


def _format_faces(shapes: Shapes) -> str:
    warn_of_lost_labels(shapes.landmarks, "300-W .pts")
    rows = [" ".join(map(repr, row)) for row in shapes.points[0].tolist()]
    return "\n".join(["version: 1", f"n_points: {len(rows)}", "{", *rows, "}", ""])


def _format_landmarks(path: Path, shapes: Shapes) -> str:
    points = shapes.points[0]
    if (points == _MISSING).all(axis=1).any():
        raise FormatError(
            f"{path} cannot be written: 9999 means missing in it, and a landmark lies at "
            "(9999, 9999, 9999). Choose another format, such as .csv."
        )
    labels = replace_forbidden(shapes.landmarks, r"[\s\0]", "landmark label")
    filled = np.where(np.isnan(points), _MISSING, points).tolist()
    rows = [
        f"{label} {' '.join(map(repr, row))}" for label, row in zip(labels, filled, strict=True)
    ]
    return "\n".join(["Version 1.0", str(len(rows)), *rows, ""])


FORMATS = (
    Format(
        "pts",
        (".pts",),
        lambda head: bool(_SIGNATURE.match(decode_head(head))),
        read_pts,
        write_pts,
        one_shape_per_file=True,
        holds=(),
    ),
)
