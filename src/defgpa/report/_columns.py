"""Columns that tell shapes apart: whatever the file, or the caller, says of each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from defgpa._arrays import Index
from defgpa.shapes import PER_SHAPE_METADATA, Shapes
from defgpa.statistics.design import columns_of

MOST_GROUPS = 35  # seven colours with five symbols each


def group_columns(shapes: Shapes) -> dict[str, tuple[str, ...]]:
    """Every column that puts the shapes into at least two groups, fewer than n.

    The groups, the columns of a table, and whatever the caller says of each shape. Measurements,
    of which nearly every shape has another, are no groups.
    """
    said = {key: own for key, own in shapes.metadata.items() if key not in PER_SHAPE_METADATA}
    columns = {
        key: tuple("not stated" if own is None or own == "" else str(own) for own in values)
        for key, values in (columns_of(shapes) | said).items()
        if _is_column(values, shapes.n_shapes) and not _measured(values)
    }
    telling = {key: own for key, own in columns.items() if 2 <= len(set(own)) < len(own)}
    if list(telling.values()).count(telling.get("group", ())) > 1:
        del telling["group"]  # the column it was taken from has a better name
    return telling


def _is_column(values: Any, count: int) -> bool:
    """Whether it holds one word or number for each shape, or nothing for some."""
    listed = isinstance(values, (tuple, list, np.ndarray)) and len(values) == count
    return listed and all(
        isinstance(own, (str, int, float, np.generic, type(None))) for own in values
    )


def _measured(values: Sequence[Any]) -> bool:
    fractions = any(isinstance(own, (float, np.floating)) and own % 1 for own in values)
    return fractions and len(set(values)) > MOST_GROUPS


def drawn_columns(columns: Mapping[str, Sequence[str]], shapes: Index) -> list[dict[str, Any]]:
    """For the page's script: the groups of each column, and the number of each drawn shape's."""
    return [{"name": key, **_numbered([own[i] for i in shapes])} for key, own in columns.items()]


def sentences(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Where there are more groups than looks, for the page."""
    return [
        f"There are {count:,} groups in {key!r}: the {MOST_GROUPS - 1} with most shapes have a "
        "colour and symbol each, the others share one."
        for key, own in columns.items()
        if (count := len(set(own))) > MOST_GROUPS
    ]


def _numbered(own: Sequence[str]) -> dict[str, Any]:
    names = list(dict.fromkeys(own))
    if len(names) <= MOST_GROUPS:
        return {"names": names, "of": [names.index(name) for name in own]}
    kept = [name for name, _ in Counter(own).most_common(MOST_GROUPS - 1)]
    place = {name: k for k, name in enumerate(kept)}
    others = f"{len(names) - len(kept)} other groups"
    return {"names": [*kept, others], "of": [place.get(name, len(kept)) for name in own]}
