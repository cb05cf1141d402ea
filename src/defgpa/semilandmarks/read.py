"""Sliders and curves from files: geomorph's tables, and the curve markups of 3D Slicer.

A slider table has one row (before, sliding, after) a semilandmark, counted from 1, as geomorph's
``define.sliders`` writes it; a table of surface points has one number a row. A curve of Slicer
names its points; its ends stay, a closed one slides everywhere.

Slicer may keep a curve in a file of its own, digitised with as many points as its specimen took.
Resampled at equal distances it has the same number everywhere, under the names that TPS curves
have, so that they slide by themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from defgpa.errors import FormatError, format_names
from defgpa.io import read_shapes
from defgpa.io.curves import resample_curve
from defgpa.io.files import make_format_error, read_head
from defgpa.io.text.lines import JsonObject, decode_head, read_lines
from defgpa.io.text.slicer import CURVES, list_point_lists
from defgpa.semilandmarks.sliders import find_curves
from defgpa.shapes import Shapes, number_labels

_SUFFIX = ".mrk.json"
_WORDS = ("before", "slide", "after", "x", "v1", "v2", "v3")


def read_sliders(path: str | os.PathLike[str], shapes: Shapes) -> list[list[int]]:
    """Read curves from a file, as numbers (from 0) of the landmarks of some shapes.

    Parameters
    ----------
    path : path
        A table of three columns (commas, semicolons, tabs or blanks; a header and row names are
        passed over), the slider file of tpsUtil (the same below a title and a header), or a
        ``.mrk.json`` file with curves whose points are called like landmarks.
    shapes : Shapes
        Whose landmarks are meant.

    Returns
    -------
    list[list[int]]
        The landmarks along each curve, numbered from 0.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> shapes = Shapes.specimens([[[0.0, 0.0]] * 4])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "curveslide.csv"
    ...     _ = file.write_text('"before","slide","after"\\n1,2,3\\n2,3,4\\n')
    ...     read_sliders(file, shapes)
    [[0, 1, 2], [1, 2, 3]]
    """
    place = Path(path)
    if decode_head(read_head(place)).lstrip().startswith("{"):
        return _read_markup_curves(place, shapes)
    return _parse_table(place, shapes, 3, "three landmark numbers (before, sliding, after)")


def read_surface(path: str | os.PathLike[str], shapes: Shapes) -> list[int]:
    """Read which landmarks slide on a surface, as numbers (from 0).

    Parameters
    ----------
    path : path
        One landmark number (from 1) a row, as the ``surfslide.csv`` of geomorph's
        ``buildtemplate``.
    shapes : Shapes
        Whose landmarks are meant.

    Returns
    -------
    list[int]
        The landmarks on the surface, numbered from 0.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> shapes = Shapes.specimens([[[0.0, 0.0, 0.0]] * 4])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "surfslide.csv"
    ...     _ = file.write_text('"x"\\n3\\n4\\n')
    ...     read_surface(file, shapes)
    [2, 3]
    """
    rows = _parse_table(Path(path), shapes, 1, "a landmark number")
    return [number for (number,) in rows]


def add_slicer_curves(shapes: Shapes, folder: str | os.PathLike[str], count: int) -> Shapes:
    """Add one more curve to each shape, of ``count`` equally spaced points.

    Parameters
    ----------
    shapes : Shapes
        Landmarks in 3-D.
    folder : path
        With one ``.mrk.json`` file a specimen, of the type Curve or ClosedCurve, whose name is that
        of the shape or begins with it (``skull_07.mrk.json``, ``skull_07_orbit.mrk.json``).
    count : int
        How many points each curve gets. A specimen without a file has none of them.

    Returns
    -------
    Shapes
        With landmarks ``curve1_1``, ``curve1_2``, … at the end (``outline1_1``, … of closed ones;
        the next free number), which `slide` knows as a curve.
    """
    place = Path(folder)
    files = _find_files(place, shapes)
    if not files:
        raise FormatError(
            f"No {_SUFFIX} file in {place} is named like a shape, such as "
            f"{shapes.names[0]}{_SUFFIX}."
        )
    closed = {
        name: any(node["type"] == "ClosedCurve" for node in _list_curves(path))
        for name, path in files.items()
    }
    if len(set(closed.values())) > 1:
        odd = [str(files[name]) for name in files if closed[name]]
        raise FormatError(f"Some curves are closed and others are not: {format_names(odd)} are.")
    is_ring = closed.popitem()[1]
    points = np.full((shapes.n_shapes, count, 3), np.nan)
    for i, name in enumerate(shapes.names):
        if name in files:
            curve = read_shapes(files[name], space=shapes.metadata.get("space")).points[0]
            points[i] = resample_curve(curve, count, is_ring)
    return Shapes.specimens(
        np.concatenate([shapes.points, points], axis=1),
        names=shapes.names,
        landmarks=[*shapes.landmarks, *_make_labels(shapes, count, is_ring)],
        faces=shapes.faces,
        metadata=shapes.metadata,
    )


def _parse_table(path: Path, shapes: Shapes, width: int, what: str) -> list[list[int]]:
    """Parse rows of landmark numbers, from 1 in the file and from 0 here.

    tpsUtil writes a title in quotes, and a header ``1 rows columns 0``, above them.
    """
    rows: list[list[int]] = []
    for line, text in read_lines(path):
        delimiter = next((mark for mark in ",;\t" if mark in text), None)
        fields = [field.strip().strip('"') for field in text.split(delimiter)]
        is_title = text[0] in "\"'" and _parse_whole(fields[0]) is None and not _is_header(fields)
        is_nts_header = not rows and re.fullmatch(rf"1\s+[0-9]+L?\s+{width}\s+0.*", text)
        if not any(fields) or is_title or is_nts_header or _is_header(fields):
            continue
        numbers = [_parse_whole(word) for word in fields[-width:]]
        if len(fields) not in (width, width + 1) or None in numbers:
            raise make_format_error(path, what, repr(" ".join(fields)), line)
        rows.append([_check_landmark(path, line, number, shapes) for number in numbers if number])
    if not rows:
        raise FormatError(f"{path} has no sliders: expected rows of {what}.")
    return rows


def _is_header(fields: Sequence[str]) -> bool:
    has_words = any(word.lower() in _WORDS for word in fields)
    return has_words and all(_parse_whole(word) is None for word in fields)


def _parse_whole(word: str) -> int | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return int(number) if 1 <= number < 2**31 and number.is_integer() else None


def _check_landmark(path: Path, line: int, number: int, shapes: Shapes) -> int:
    if number > shapes.n_landmarks:
        raise FormatError(
            f"{path}, line {line}: there is no landmark {number}; the shapes have "
            f"{shapes.n_landmarks}, counted from 1."
        )
    return number - 1


def _read_markup_curves(path: Path, shapes: Shapes) -> list[list[int]]:
    """Read curves of 3D Slicer whose points are called like landmarks."""
    curves = []
    for node in _list_curves(path):
        labels = [str(point.get("label", "")) for point in node["controlPoints"]]
        curve = _match_labels(path, labels, shapes)
        is_ring = node["type"] == "ClosedCurve" and len(curve) > 2
        curves.append(curve + curve[:2] if is_ring else curve)
    return curves


def _list_curves(path: Path) -> list[JsonObject]:
    """Return the markups of a file that are curves."""
    curves = [node for node in list_point_lists(path) if node.get("type") in CURVES]
    if not curves:
        raise FormatError(f"{path} has no markup of the type Curve or ClosedCurve.")
    return curves


def _match_labels(path: Path, labels: Sequence[str], shapes: Shapes) -> list[int]:
    place = {label: k for k, label in enumerate(shapes.landmarks)}
    numbers = []
    for label in labels:
        number = place.get(label, place.get(label.rpartition("-")[2]))
        if number is None:
            raise FormatError(
                f"{path}: the curve has a point {label!r}, and no landmark of the shapes is called "
                "so."
            )
        numbers.append(number)
    return numbers


def _find_files(folder: Path, shapes: Shapes) -> dict[str, Path]:
    """Find the file of each shape: the shortest name that begins with that of the shape."""
    paths = sorted(folder.glob(f"*{_SUFFIX}"), key=lambda path: (len(path.name), path.name))
    files: dict[str, Path] = {}
    for name in sorted(shapes.names, key=len, reverse=True):  # skull_10 before skull_1
        free = [p for p in paths if _is_named_after(p, name) and p not in files.values()]
        if free:
            files[name] = free[0]
    return {name: files[name] for name in shapes.names if name in files}


def _is_named_after(path: Path, name: str) -> bool:
    stem = path.name.removesuffix(_SUFFIX)
    return stem == name or (stem.startswith(name) and not stem[len(name)].isalnum())


def _make_labels(shapes: Shapes, count: int, is_ring: bool) -> tuple[str, ...]:
    kind = "outline" if is_ring else "curve"
    number = 1 + sum(shapes.landmarks[c[0]].startswith(kind) for c in find_curves(shapes))
    return number_labels(f"{kind}{number}_", count)
