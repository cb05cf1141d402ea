"""Sliders and curves from files: geomorph's tables, and the curve markups of 3D Slicer.

A slider table has one row (before, sliding, after) a semilandmark, counted from 1, as geomorph's
``define.sliders`` writes it; a table of surface points has one number a row. A curve of Slicer
names its points; its ends stay, a closed one slides everywhere.

Slicer may keep a curve in a file of its own, digitised with as many points as its specimen took.
Resampled at equal distances it has the same number everywhere, under the names that TPS curves
have, so that they slide by themselves.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from defgpa.errors import FormatError, listed
from defgpa.io import read_shapes
from defgpa.io.curves import resample_curve
from defgpa.semilandmarks.sliders import curves_of
from defgpa.shapes import Shapes, number_labels

_SUFFIX = ".mrk.json"
_WORDS = ("before", "slide", "after", "x", "v1", "v2", "v3")


def read_sliders(path: str | os.PathLike[str], shapes: Shapes) -> list[list[int]]:
    """The curves that a file tells, as numbers (from 0) of the landmarks of some shapes.

    Parameters
    ----------
    path : path
        A table of three columns (commas, semicolons, tabs or blanks; a header and row names are
        passed over), or a ``.mrk.json`` file with curves whose points are called like landmarks.
    shapes : Shapes
        Whose landmarks are meant.

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
    place, text = Path(path), _text(path)
    if text.lstrip().startswith("{"):
        return _markup_curves(place, text, shapes)
    return _table(place, text, shapes, 3, "three landmark numbers (before, sliding, after)")


def read_surface(path: str | os.PathLike[str], shapes: Shapes) -> list[int]:
    """The landmarks that slide on a surface, as numbers (from 0).

    Parameters
    ----------
    path : path
        One landmark number (from 1) a row, as the ``surfslide.csv`` of geomorph's
        ``buildtemplate``.
    shapes : Shapes
        Whose landmarks are meant.

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
    rows = _table(Path(path), _text(path), shapes, 1, "a landmark number")
    return [number for (number,) in rows]


def with_slicer_curves(shapes: Shapes, folder: str | os.PathLike[str], count: int) -> Shapes:
    """The shapes with one more curve each, of ``count`` equally spaced points.

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
    files = _files(place, shapes)
    if not files:
        raise FormatError(
            f"No {_SUFFIX} file in {place} is named like a shape, such as "
            f"{shapes.names[0]}{_SUFFIX}."
        )
    closed = {name: _is_closed(path) for name, path in files.items()}
    if len(set(closed.values())) > 1:
        odd = [str(files[name]) for name in files if closed[name]]
        raise FormatError(f"Some curves are closed and others are not: {listed(odd)} are.")
    ring = closed.popitem()[1]
    points = np.full((shapes.n_shapes, count, 3), np.nan)
    for i, name in enumerate(shapes.names):
        if name in files:
            own = read_shapes(files[name], space=shapes.metadata.get("space")).points[0]
            points[i] = resample_curve(own, count, ring)
    return Shapes.specimens(
        np.concatenate([shapes.points, points], axis=1),
        names=shapes.names,
        landmarks=[*shapes.landmarks, *_labels(shapes, count, ring)],
        faces=shapes.faces,
        metadata=shapes.metadata,
    )


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError(f"{path} is not a text file: expected a table of sliders.") from None
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}.") from None


def _table(path: Path, text: str, shapes: Shapes, width: int, what: str) -> list[list[int]]:
    rows: list[list[int]] = []
    for line, fields in enumerate(map(_fields, text.splitlines()), start=1):
        if not fields or _is_header(fields):
            continue
        numbers = [_whole(word) for word in fields[-width:]]
        if len(fields) not in (width, width + 1) or None in numbers:
            raise FormatError(f"{path}, line {line}: expected {what}; found {' '.join(fields)!r}.")
        rows.append([_landmark(path, line, number, shapes) for number in numbers if number])
    if not rows:
        raise FormatError(f"{path} has no sliders: expected rows of {what}.")
    return rows


def _fields(line: str) -> list[str]:
    mark = next((mark for mark in ",;\t" if mark in line), None)
    parts = next(csv.reader([line], delimiter=mark)) if mark and line.strip() else line.split()
    return [part.strip().strip('"') for part in parts]


def _is_header(fields: Sequence[str]) -> bool:
    named = any(word.lower() in _WORDS for word in fields)
    return named and all(_whole(word) is None for word in fields)


def _whole(word: str) -> int | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return int(number) if number.is_integer() and number >= 1 else None


def _landmark(path: Path, line: int, number: int, shapes: Shapes) -> int:
    if number > shapes.n_landmarks:
        raise FormatError(
            f"{path}, line {line}: there is no landmark {number}; the shapes have "
            f"{shapes.n_landmarks}, counted from 1."
        )
    return number - 1


def _markup_curves(path: Path, text: str, shapes: Shapes) -> list[list[int]]:
    try:
        nodes = json.loads(text)["markups"]
        curves = [node for node in nodes if node.get("type") in ("Curve", "ClosedCurve")]
        found = [[str(p.get("label", "")) for p in node["controlPoints"]] for node in curves]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FormatError(f"{path}: expected the markups of 3D Slicer; found other JSON.") from None
    if not curves:
        raise FormatError(f"{path} has no markup of the type Curve or ClosedCurve.")
    numbers = [_numbers(path, labels, shapes) for labels in found]
    return [
        own + own[:2] if node["type"] == "ClosedCurve" and len(own) > 2 else own
        for own, node in zip(numbers, curves, strict=True)
    ]


def _numbers(path: Path, labels: Sequence[str], shapes: Shapes) -> list[int]:
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


def _files(folder: Path, shapes: Shapes) -> dict[str, Path]:
    """The file of each shape; the shortest name that begins with that of the shape."""
    there = sorted(folder.glob(f"*{_SUFFIX}"), key=lambda path: (len(path.name), path.name))
    found: dict[str, Path] = {}
    for name in sorted(shapes.names, key=len, reverse=True):  # skull_10 before skull_1
        own = [p for p in there if _is_of(p, name) and p not in found.values()]
        if own:
            found[name] = own[0]
    return {name: found[name] for name in shapes.names if name in found}


def _is_of(path: Path, name: str) -> bool:
    stem = path.name.removesuffix(_SUFFIX)
    return stem == name or (stem.startswith(name) and not stem[len(name)].isalnum())


def _is_closed(path: Path) -> bool:
    try:
        kinds = {node.get("type") for node in json.loads(path.read_text("utf-8"))["markups"]}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FormatError(f"{path}: expected the markups of 3D Slicer.") from None
    if not kinds & {"Curve", "ClosedCurve"}:
        raise FormatError(f"{path} has no markup of the type Curve or ClosedCurve.")
    return "ClosedCurve" in kinds


def _labels(shapes: Shapes, count: int, ring: bool) -> tuple[str, ...]:
    kind = "outline" if ring else "curve"
    number = 1 + sum(shapes.landmarks[c[0]].startswith(kind) for c in curves_of(shapes))
    return number_labels(f"{kind}{number}_", count)
