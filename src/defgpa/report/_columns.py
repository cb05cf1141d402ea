"""Columns that tell shapes apart: whatever the file, or the caller, says of each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from defgpa._arrays import Index
from defgpa.shapes import PER_SHAPE_METADATA, Shapes

MOST_GROUPS = 35  # seven colours with five symbols each
_NOT_GROUPS = PER_SHAPE_METADATA - {"groups"}


def group_columns(shapes: Shapes) -> dict[str, tuple[str, ...]]:
    """Every entry of the metadata that puts the shapes into at least two groups, fewer than n."""
    known = {key: value for key, value in shapes.metadata.items() if key not in _NOT_GROUPS}
    columns = {
        "group" if key == "groups" else key: tuple(map(str, value))
        for key, value in known.items()
        if _is_column(value, shapes.n_shapes)
    }
    return {key: own for key, own in columns.items() if 2 <= len(set(own)) < len(own)}


def _is_column(value: Any, count: int) -> bool:
    """Whether it holds one word or number for each shape."""
    listed = isinstance(value, (tuple, list, np.ndarray)) and len(value) == count
    return listed and all(isinstance(own, (str, int, float, np.generic)) for own in value)


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
