"""Curves that 3D Slicer keeps in files of their own, joined to the landmarks of their specimens.

A curve is digitised with as many points as its specimen took; resampled at equal distances it has
the same number everywhere, under the names that TPS curves have, so that they slide by themselves.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from defgpa.errors import FormatError, listed
from defgpa.io import read_shapes
from defgpa.io.curves import evenly
from defgpa.semilandmarks.sliders import curves_of
from defgpa.shapes import Shapes, numbered

_SUFFIX = ".mrk.json"


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
            points[i] = evenly(own, count, ring)
    return Shapes.specimens(
        np.concatenate([shapes.points, points], axis=1),
        names=shapes.names,
        landmarks=[*shapes.landmarks, *_labels(shapes, count, ring)],
        faces=shapes.faces,
        metadata=shapes.metadata,
    )


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
    return numbered(f"{kind}{number}_", count)
