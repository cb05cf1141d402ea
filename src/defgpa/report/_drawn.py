"""Which shapes and landmarks are drawn, and the groups by which shapes are coloured.

Figures and tables are always of everything; only what is drawn is thinned where the page would
become too heavy. The worst shapes and landmarks are kept, and the page says what was left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.alignment import Alignment
from defgpa.shapes import PER_SHAPE_METADATA, Shapes
from defgpa.statistics.design import collect_columns

MOST_PAIRS = 60_000  # of shape and landmark: about 2 MB in the page
MOST_SHAPES = 600  # that anybody scrolls through
WORST_SHARE = 0.1  # of what is drawn is kept for what fits worst
MOST_GROUPS = 35  # seven colours with five symbols each


@dataclass(frozen=True, eq=False)
class Drawn:
    """The shapes and landmarks (0-based, ascending) that are drawn, out of how many."""

    shapes: Index
    landmarks: Index
    n_shapes: int
    n_landmarks: int

    def of(self, stack: Array) -> Array:
        """The drawn part of (n, m, …)."""
        return np.asarray(stack[np.ix_(self.shapes, self.landmarks)])

    @property
    def sentences(self) -> list[str]:
        """What was left out, for the page."""
        counts = [
            (len(self.landmarks), self.n_landmarks, "landmarks"),
            (len(self.shapes), self.n_shapes, "shapes"),
        ]
        return [_left_out(k, total, what) for k, total, what in counts if k < total]


def drawn_part(alignment: Alignment, most: int | None = MOST_PAIRS) -> Drawn:
    """What to draw of an alignment: at most so many landmarks of all shapes together."""
    n, m = alignment.shapes.n_shapes, alignment.shapes.n_landmarks
    if most is None:
        return Drawn(np.arange(n), np.arange(m), n, m)
    most_landmarks = max(500, most // n)  # fewer than 500: shapes are thinned too
    landmarks = _thinned(_root_mean_square(alignment.residuals, 0), most_landmarks)
    most_shapes = min(MOST_SHAPES, max(2, most // len(landmarks)))
    shapes = _thinned(_root_mean_square(alignment.residuals, 1), most_shapes)
    return Drawn(shapes, landmarks, n, m)


def _thinned(errors: Array, most: int) -> Index:
    """The worst tenth of what may be kept, and evenly the rest."""
    count = len(errors)
    if count <= most:
        return np.arange(count)
    worst = np.argsort(-errors, kind="stable")[: round(WORST_SHARE * most)]
    others = np.setdiff1d(np.arange(count), worst)
    evenly = others[np.linspace(0, len(others) - 1, most - len(worst)).round().astype(int)]
    return np.union1d(worst, evenly)


def _root_mean_square(residuals: Array, axis: int) -> Array:
    """Over what is seen; 0 where nothing is."""
    seen = ~np.isnan(residuals)
    squares = np.where(seen, residuals, 0.0) ** 2
    return np.sqrt(squares.sum(axis=axis) / np.maximum(seen.sum(axis=axis), 1))


def _left_out(kept: int, total: int, what: str) -> str:
    worst = round(WORST_SHARE * kept)
    return (
        f"To keep this page light, {kept:,} of the {total:,} {what} are drawn: the {worst:,} with "
        f"the largest residuals and an even choice of the others. All figures are of all {what}; "
        "defgpa report result.npz --draw-all draws them all."
    )


def group_columns(shapes: Shapes) -> dict[str, tuple[str, ...]]:
    """Every column that puts the shapes into at least two groups, fewer than n.

    The groups, the columns of a table, and whatever the caller says of each shape. Measurements,
    of which nearly every shape has another, are no groups.
    """
    said = {key: own for key, own in shapes.metadata.items() if key not in PER_SHAPE_METADATA}
    columns = {
        key: tuple("not stated" if own is None or own == "" else str(own) for own in values)
        for key, values in (collect_columns(shapes) | said).items()
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


def many_groups(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """A sentence on every column with more groups than colours and symbols, for the page."""
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
