"""Which shapes and landmarks are drawn: all of them, unless the page would become too heavy.

Figures and tables are always of everything; only what is drawn is thinned, the worst shapes and
landmarks are kept, and the page says what was left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.alignment import Alignment

MOST_PAIRS = 60_000  # of shape and landmark: about 2 MB in the page
FEWEST_LANDMARKS = 500  # before shapes are thinned too
MOST_SHAPES = 600  # that anybody scrolls through
WORST_SHARE = 0.1  # of what is drawn is kept for what fits worst


@dataclass(frozen=True, eq=False)
class Drawn:
    """The shapes and landmarks (0-based, ascending) that are drawn, out of how many."""

    shapes: Index
    landmarks: Index
    n_shapes: int
    n_landmarks: int

    @property
    def all_landmarks(self) -> bool:
        """Whether no landmark was left out, so that faces still fit."""
        return len(self.landmarks) == self.n_landmarks

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
    most_landmarks = max(FEWEST_LANDMARKS, most // n)
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
