"""Shapes as tables and labelled arrays of other libraries, and back; tables as text in columns.

A table of shapes has one row a shape and one column a coordinate, called ``x1, y1, x2, …`` where
landmarks are only numbered and ``apex_x, apex_y, …`` where they have names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from defgpa._arrays import Array
from defgpa.errors import ShapeError, format_names, import_extra

_AXES = "xyz"
_NAMED = re.compile(r"(?P<label>.+)[ _.:-](?P<axis>[xyz])", re.IGNORECASE)
_NUMBERED = re.compile(r"(?P<axis>[xyz])[ _.:-]?(?P<label>[0-9]+)", re.IGNORECASE)


def frame_of(points: Array, names: Sequence[str], landmarks: Sequence[str]) -> Any:
    """A pandas.DataFrame (n, m·d): a row a shape, a column a coordinate."""
    pandas = import_extra("pandas", "This needs pandas: pip install 'defgpa[tables]'.")
    heads = coordinate_names(landmarks, points.shape[2])
    index = pandas.Index(list(names), name="shape")
    return pandas.DataFrame(points.reshape(len(points), -1), index=index, columns=heads)


def labelled(points: Array, names: Sequence[str], landmarks: Sequence[str]) -> Any:
    """An xarray.DataArray with dimensions specimen, landmark and space."""
    xarray = import_extra("xarray", "This needs xarray: pip install 'defgpa[tables]'.")
    coords = {
        "specimen": list(names),
        "landmark": list(landmarks),
        "space": list(_AXES[: points.shape[2]]),
    }
    return xarray.DataArray(np.array(points), coords=coords, dims=tuple(coords))


def read_frame(table: Any) -> tuple[Array, list[str], list[str]]:
    """Points (n, m, d), names and landmark labels of a table; other columns are left alone."""
    places = _places(table.columns)
    axes = {tuple(sorted(axes)) for axes in places.values()}
    if axes not in ({("x", "y")}, {("x", "y", "z")}):
        raise ShapeError(
            "A table of shapes needs columns x and y (and z) for every landmark, such as x1, y1, "
            f"x2, … or apex_x, apex_y, …; got {format_names(table.columns)}."
        )
    columns = [own[axis] for own in places.values() for axis in sorted(own)]
    flat = table.iloc[:, columns].to_numpy(dtype=np.float64, na_value=np.nan)
    points = flat.reshape(len(table), len(places), -1)
    return points, [str(name) for name in table.index], list(places)


def _places(columns: Sequence[Any]) -> dict[str, dict[str, int]]:
    """Landmark → axis → number of the column; a head of two levels is (landmark, axis)."""
    places: dict[str, dict[str, int]] = {}
    for column, name in enumerate(columns):
        head = "_".join(map(str, name)) if isinstance(name, tuple) else str(name)
        match = _NUMBERED.fullmatch(head) or _NAMED.fullmatch(head)
        if match:
            places.setdefault(match["label"], {})[match["axis"].lower()] = column
    return places


def coordinate_names(landmarks: Sequence[str], dim: int) -> list[str]:
    """The heads of the columns of these landmarks: ``x1, y1`` if numbered, else ``apex_x``."""
    numbered = list(landmarks) == [str(k + 1) for k in range(len(landmarks))]
    form = "{1}{0}" if numbered else "{0}_{1}"
    return [form.format(label, axis) for label in landmarks for axis in _AXES[:dim]]


def pandas_for_tables() -> Any:
    """The package pandas, or a sentence on how to get it."""
    return import_extra("pandas", "A DataFrame needs pandas: pip install 'defgpa[tables]'.")


def figure(value: float, digits: int = 4, unknown: str = "") -> str:
    """A number with this many significant digits, zeros at the end too; ``unknown`` for NaN."""
    return unknown if value != value else f"{value:#.{digits}g}".removesuffix(".")


def lined_up(lines: Sequence[Sequence[str]], marks: Sequence[str] = (), between: str = " ") -> str:
    """Text in columns, the header first: names to the left, figures to the right, then marks."""
    first, *others = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        [name.ljust(first), *(cell.rjust(w) for cell, w in zip(cells, others, strict=True))]
        for name, *cells in lines
    ]
    ends = ["", *(marks or [""] * (len(lines) - 1))]
    both = zip(rows, ends, strict=True)
    return "\n".join(between.join([*row, mark]).rstrip() for row, mark in both)
