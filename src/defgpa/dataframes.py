"""Shapes as tables and labelled arrays of other libraries, and back.

A table of shapes has one row a shape and one column a coordinate, called ``x1, y1, x2, …`` where
landmarks are only numbered and ``apex_x, apex_y, …`` where they have names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import ShapeError, format_names, import_extra

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_AXES = "xyz"
_NAMED = re.compile(r"(?P<label>.+)[ _.:-](?P<axis>[xyz])", re.IGNORECASE)
_NUMBERED = re.compile(r"(?P<axis>[xyz])[ _.:-]?(?P<label>[0-9]+)", re.IGNORECASE)


def make_data_frame(points: Array, names: Sequence[str], landmarks: Sequence[str]) -> pd.DataFrame:
    """Make a pandas.DataFrame (n, m·d) of points: a row a shape, a column a coordinate."""
    pandas = import_extra("pandas", 'This needs pandas: pip install "defgpa[tables]".')
    heads = name_coordinates(landmarks, points.shape[2])
    index = pandas.Index(list(names), name="shape")
    return pandas.DataFrame(points.reshape(len(points), -1), index=index, columns=heads)


def make_data_array(points: Array, names: Sequence[str], landmarks: Sequence[str]) -> xr.DataArray:
    """Make an xarray.DataArray of points (n, m, d) with dimensions specimen, landmark and space."""
    xarray = import_extra("xarray", 'This needs xarray: pip install "defgpa[tables]".')
    coords = {
        "specimen": list(names),
        "landmark": list(landmarks),
        "space": list(_AXES[: points.shape[2]]),
    }
    return xarray.DataArray(np.array(points), coords=coords, dims=tuple(coords))


def read_data_frame(table: pd.DataFrame) -> tuple[Array, list[str], list[str]]:
    """Read points (n, m, d), names and landmark labels from a table; ignore other columns."""
    columns_by_landmark = _find_columns(table.columns)
    axes = {tuple(sorted(columns)) for columns in columns_by_landmark.values()}
    if axes not in ({("x", "y")}, {("x", "y", "z")}):
        raise ShapeError(
            "A table of shapes needs columns x and y (and z) for every landmark, such as x1, y1, "
            f"x2, … or apex_x, apex_y, …; got {format_names(table.columns)}."
        )
    numbers = [
        columns[axis] for columns in columns_by_landmark.values() for axis in sorted(columns)
    ]
    flat = table.iloc[:, numbers].to_numpy(dtype=np.float64, na_value=np.nan)
    points = flat.reshape(len(table), len(columns_by_landmark), -1)
    return points, [str(name) for name in table.index], list(columns_by_landmark)


def _find_columns(heads: Sequence[object]) -> dict[str, dict[str, int]]:
    """Return landmark → axis → number of the column; a head of two levels is (landmark, axis)."""
    columns: dict[str, dict[str, int]] = {}
    for column, name in enumerate(heads):
        head = "_".join(map(str, name)) if isinstance(name, tuple) else str(name)
        match = _NUMBERED.fullmatch(head) or _NAMED.fullmatch(head)
        if match:
            columns.setdefault(match["label"], {})[match["axis"].lower()] = column
    return columns


def name_coordinates(landmarks: Sequence[str], dim: int) -> list[str]:
    """Name the coordinates of these landmarks: ``x1, y1`` if numbered, else ``apex_x, apex_y``."""
    is_numbered = list(landmarks) == [str(k + 1) for k in range(len(landmarks))]
    form = "{1}{0}" if is_numbered else "{0}_{1}"
    return [form.format(label, axis) for label in landmarks for axis in _AXES[:dim]]


def import_pandas() -> ModuleType:
    """Import pandas, or raise an error that says how to install it."""
    return import_extra("pandas", 'A DataFrame needs pandas: pip install "defgpa[tables]".')
