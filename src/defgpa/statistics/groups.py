"""Groups of specimens: labels by columns, and the number of the group of each specimen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Index
from defgpa.errors import DefgpaError, ShapeError
from defgpa.io.covariates import Columns


def join_labels(groups: str | Sequence[object], columns: Columns) -> Sequence[object]:
    """Return one label per shape: groups as they are, or columns ``"species:site"`` joined."""
    if not isinstance(groups, str):
        return groups
    factors = [name.strip() for name in groups.split(":")]
    for factor in factors:
        if factor not in columns:
            names = ", ".join(columns)
            raise DefgpaError(f"There is no column {factor!r} to group by. There are: {names}.")
    rows = zip(*(columns[factor] for factor in factors), strict=True)
    return [None if None in row else ".".join(map(str, row)) for row in rows]


def encode_groups(
    values: ArrayLike | Sequence[object], n: int, what: str
) -> tuple[tuple[str, ...], Index]:
    """Return the names of groups in order of first appearance, and each shape's group (n,).

    ``what`` is the word for the values in messages.
    """
    labels = np.asarray(values, dtype=object).ravel()
    if len(labels) != n:
        raise ShapeError(f"'{what}' must have one entry per shape, {n}; got {len(labels)}.")
    missing = [i for i, value in enumerate(labels) if value is None or value != value]
    if missing:
        raise ShapeError(f"'{what}' is missing for shape number {missing[0]}. Drop such shapes.")
    words = [str(value) for value in labels]
    names = tuple(dict.fromkeys(words))
    place = {name: k for k, name in enumerate(names)}
    return names, np.array([place[word] for word in words], dtype=np.intp)
