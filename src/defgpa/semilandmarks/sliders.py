"""Which landmarks slide, and between which neighbours.

A curve is a sequence of landmarks: those inside slide, its two ends stay. So a row (before,
sliding, after) of a slider table is a curve of three, and rows that share neighbours join into one.
A sequence that goes on past its own first landmark, 0 1 2 3 0 1, is closed and slides everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from defgpa.arrays import Index, Mask
from defgpa.errors import ShapeError
from defgpa.shapes import Shapes, find_numbers

_CURVE_NAME = re.compile(r"((?:curve|outline)[0-9]+)_[0-9]+")


@dataclass(frozen=True, eq=False)
class Curve:
    """Landmarks along a curve, and which of them slide."""

    members: Index  # landmark numbers in their order
    sliding: Mask  # False for the ends of an open curve
    closed: bool  # whether the first follows the last


def find_curves(shapes: Shapes) -> list[list[int]]:
    """Find the curves of a TPS file, its ``CURVES`` and ``OUTLINES``, as landmark numbers.

    The ends of a curve stay; an outline is closed.

    Parameters
    ----------
    shapes : Shapes
        As read from a TPS file.

    Returns
    -------
    list[list[int]]
        The landmarks along each curve, numbered from 0.

    Examples
    --------
    >>> names = ["1", "curve1_1", "curve1_2", "curve1_3", "outline1_1", "outline1_2", "outline1_3"]
    >>> find_curves(Shapes.specimens([[[0.0, 0.0]] * 7], landmarks=names))
    [[1, 2, 3], [4, 5, 6, 4, 5]]
    """
    matches = [_CURVE_NAME.fullmatch(label) for label in shapes.landmarks]
    numbered = [(match[1], j) for j, match in enumerate(matches) if match]
    curves = []
    for name, pairs in groupby(numbered, key=lambda pair: pair[0]):
        members = [j for _, j in pairs]
        is_outline = name.startswith("outline") and len(members) > 2
        curves.append(members + members[:2] if is_outline else members)
    return curves


def join_curves(curves: Iterable[Sequence[int | str]], landmarks: Sequence[str]) -> list[Curve]:
    """Join curves and rows of slider tables that share neighbours, whichever way they run."""
    between: dict[int, tuple[int, int]] = {}
    for curve in curves:
        members = find_slider_numbers(curve, landmarks)
        for before, slider, after in zip(members, members[1:], members[2:], strict=False):
            if set(between.setdefault(slider, (before, after))) != {before, after}:
                raise ShapeError(
                    f"Landmark {landmarks[slider]!r} slides along two curves; it can be inside one "
                    "only. End one of them there."
                )
            if slider in (before, after):
                raise ShapeError(f"Landmark {landmarks[slider]!r} is its own neighbour on a curve.")
    return _join_sliders(between)


def find_slider_numbers(members: Sequence[int | str], landmarks: Sequence[str]) -> list[int]:
    """Convert landmarks given by number (from 0) or label to numbers."""
    advice = " Slider tables of R count from 1: subtract 1."
    return find_numbers(members, landmarks, "landmark", counts_back=False, advice=advice)


def _join_sliders(between: dict[int, tuple[int, int]]) -> list[Curve]:
    """Join sliders that are neighbours of each other into curves.

    A row may name its neighbours in either order; the first row of a curve sets its direction.
    """
    linked = {
        slider: [n for n in dict.fromkeys(ends) if slider in between.get(n, ())]
        for slider, ends in between.items()
    }
    starts = [s for s, (before, _) in between.items() if before not in linked[s]]
    starts += [s for s, (_, after) in between.items() if after not in linked[s]]
    curves, used = [], set[int]()
    for start in [*starts, *between]:  # what no start leads to runs in a circle
        if start in used:
            continue
        is_closed = len(linked[start]) == 2
        chain = _follow(start, between, linked)
        used.update(chain)
        members = chain
        if not is_closed:
            members = [_find_far_end(chain[0], chain[1:2], between), *chain]
            members.append(_find_far_end(chain[-1], members[-2:-1], between))
        sliding = np.ones(len(members), dtype=bool)
        sliding[[0, -1]] = is_closed
        curves.append(Curve(np.array(members, dtype=np.intp), sliding, is_closed))
    return curves


def _follow(
    start: int, between: dict[int, tuple[int, int]], linked: dict[int, list[int]]
) -> list[int]:
    """Follow sliders from one to the next, away from the start."""
    chain, visited = [start], {start}
    _, after = between[start]
    following = [after, *linked[start]] if after in linked[start] else linked[start]
    while following:
        chain.append(following[0])
        visited.add(following[0])
        following = [n for n in linked[following[0]] if n not in visited]
    return chain


def _find_far_end(slider: int, inside: Sequence[int], between: dict[int, tuple[int, int]]) -> int:
    """Return the neighbour of a slider that is not on the inside of its curve."""
    before, after = between[slider]
    return after if before in inside else before
