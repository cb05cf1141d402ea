"""Find the columns by which a page can colour specimens: groups of the files, and given ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from defgpa.errors import ShapeError
from defgpa.io.covariates import collect_columns
from defgpa.palette import MAX_GROUPS, order_groups
from defgpa.shapes import PER_SHAPE_METADATA, Shapes

Columns = dict[str, tuple[str, ...]]


def find_group_columns(shapes: Shapes, data: Mapping[str, ArrayLike] | None = None) -> Columns:
    """Return every column that puts the specimens into at least two groups, fewer than n.

    Parameters
    ----------
    shapes : Shapes
        Their groups, the columns of their table, and metadata with one value a shape.
    data : mapping of str to sequences of n, or DataFrame, optional
        Further columns, which come first: lists, arrays, columns of a table.

    Measurements, of which nearly every specimen has another, are no groups.
    """
    n = shapes.n_shapes
    further = {}
    if data is not None:  # not .items(): a data frame is no mapping
        further = {str(name): _list_column(str(name), data[name], n) for name in data}
    metadata = {
        name: list(values)
        for name, values in shapes.metadata.items()
        if name not in PER_SHAPE_METADATA and _is_column(values, n)
    }
    columns = {
        name: tuple(_name_value(value) for value in values)
        for name, values in (further | collect_columns(shapes) | metadata).items()
        if not _is_measurement(values)
    }
    grouping = {name: labels for name, labels in columns.items() if _is_grouping(labels)}
    if list(grouping.values()).count(grouping.get("group", ())) > 1:
        del grouping["group"]  # the column it was taken from has a better name
    return grouping


def _is_grouping(labels: Sequence[str]) -> bool:
    return 2 <= len(set(labels)) < len(labels)


def _list_column(name: str, values: ArrayLike, n_shapes: int) -> list[Hashable]:
    """Return a given column as a list, or an error message about it."""
    listed = np.asarray(values, dtype=object).ravel().tolist() if np.ndim(values) else []
    if len(listed) != n_shapes:
        raise ShapeError(
            f"The column {name!r} must have one value a specimen, {n_shapes} in all; got "
            f"{len(listed) if np.ndim(values) else repr(values)}."
        )
    return listed


def _is_column(values: object, n_shapes: int) -> bool:
    """Return whether values are one word or number per shape, some of them missing."""
    if not isinstance(values, (tuple, list, np.ndarray)) or len(values) != n_shapes:
        return False
    kinds = (str, int, float, np.generic, type(None))
    return all(isinstance(value, kinds) for value in values)


def _is_measurement(values: Sequence[object]) -> bool:
    fractions = any(isinstance(value, (float, np.floating)) and value % 1 for value in values)
    return fractions and len(set(values)) > MAX_GROUPS


def _name_value(value: object) -> str:
    is_missing = value is None or value == "" or value != value
    return "not stated" if is_missing else str(value)


def number_groups(columns: Columns) -> list[dict[str, object]]:
    """Return the groups of each column, and the number of each specimen's, for the page's script.

    The order of the groups is that of the plots, and so is their look.
    """
    numbered: list[dict[str, object]] = []
    for column, labels in columns.items():
        names = order_groups(labels)
        if len(names) > MAX_GROUPS:
            common = {name for name, _ in Counter(labels).most_common(MAX_GROUPS - 1)}
            others = f"{len(names) - len(common)} other groups"
            names = [*(name for name in names if name in common), others]
        places = {name: k for k, name in enumerate(names)}
        numbers = [places.get(label, len(names) - 1) for label in labels]
        numbered.append({"name": column, "names": names, "of": numbers})
    return numbered


def note_many_groups(columns: Columns) -> list[str]:
    """Return a sentence on every column with more groups than colours and symbols."""
    return [
        f"There are {count:,} groups in {name!r}: the {MAX_GROUPS - 1} with most specimens have a "
        "colour and symbol each, the others share one."
        for name, labels in columns.items()
        if (count := len(set(labels))) > MAX_GROUPS
    ]
