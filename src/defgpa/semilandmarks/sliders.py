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
from typing import Any

import numpy as np

from defgpa._arrays import Index, Mask
from defgpa.errors import ShapeError
from defgpa.shapes import Shapes, landmark_numbers

_CURVE_NAME = re.compile(r"((?:curve|outline)[0-9]+)_[0-9]+")


@dataclass(frozen=True, eq=False)
class Curve:
    """Landmarks along a curve, and which of them slide."""

    members: Index  # landmark numbers in their order
    sliding: Mask  # False for the ends of an open curve
    closed: bool  # whether the first follows the last


def curves_of(shapes: Shapes) -> list[list[int]]:
    """The curves that a TPS file has told by ``CURVES`` and ``OUTLINES``, as landmark numbers.

    The ends of a curve stay; an outline is closed.

    Examples
    --------
    >>> names = ["1", "curve1_1", "curve1_2", "curve1_3", "outline1_1", "outline1_2", "outline1_3"]
    >>> curves_of(Shapes.specimens([[[0.0, 0.0]] * 7], landmarks=names))
    [[1, 2, 3], [4, 5, 6, 4, 5]]
    """
    found = [_CURVE_NAME.fullmatch(label) for label in shapes.landmarks]
    numbered = [(match[1], j) for j, match in enumerate(found) if match]
    curves = []
    for name, members in groupby(numbered, key=lambda one: one[0]):
        own = [j for _, j in members]
        curves.append(own + own[:2] if name.startswith("outline") and len(own) > 2 else own)
    return curves


def chains(curves: Iterable[Sequence[Any]], landmarks: Sequence[str]) -> list[Curve]:
    """The curves with rows of slider tables joined, as numbers."""
    between: dict[int, tuple[int, int]] = {}
    for curve in curves:
        members = numbers_of(curve, landmarks)
        for before, own, after in zip(members, members[1:], members[2:], strict=False):
            if between.setdefault(own, (before, after)) != (before, after):
                raise ShapeError(
                    f"Landmark {landmarks[own]!r} slides along two curves; it can be inside one "
                    "only. End one of them there."
                )
            if own in (before, after):
                raise ShapeError(f"Landmark {landmarks[own]!r} is its own neighbour on a curve.")
    return _joined(between)


def numbers_of(members: Sequence[Any], landmarks: Sequence[str]) -> list[int]:
    """Landmarks given by number (from 0) or label as numbers."""
    return landmark_numbers(members, landmarks, " Slider tables of R count from 1: subtract 1.")


def _joined(between: dict[int, tuple[int, int]]) -> list[Curve]:
    """Sliders that are each other's neighbours, one curve each."""
    follows = {
        own: after
        for own, (_, after) in between.items()
        if after in between and between[after][0] == own
    }
    led_to = set(follows.values())
    starts = [own for own in between if own not in led_to]
    found, used = [], set[int]()
    for start in [*starts, *between]:  # what no start leads to runs in a circle
        if start in used:
            continue
        run = [start]
        while run[-1] in follows and follows[run[-1]] != start:
            run.append(follows[run[-1]])
        used.update(run)
        closed = start in led_to
        members = run if closed else [between[run[0]][0], *run, between[run[-1]][1]]
        sliding = np.ones(len(members), dtype=bool)
        sliding[[0, -1]] = closed
        found.append(Curve(np.array(members, dtype=np.intp), sliding, closed))
    return found
