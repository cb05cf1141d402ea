"""Choose the landmarks that a page draws: of all specimens, as many as there is room for.

Numbers and tables are always of everything. Where the page would become too heavy, landmarks are
thinned, the worst ones kept; of a mesh, vertices are merged and the surface stays a surface. The
page says what was left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index
from defgpa.decimation import decimate_surface
from defgpa.shapes import Shapes

MAX_PAIRS = 150_000  # of specimen and landmark: about 2 MB in the page
MIN_LANDMARKS = 60  # of each specimen, however many there are
MAX_LANDMARKS = 4_000  # of each specimen; a shape of more is not redrawn in a tenth of a second
MAX_LINKS = 4_000  # more are not redrawn at once
WORST_SHARE = 0.1  # of what is drawn is kept for what fits worst


@dataclass(frozen=True, eq=False)
class Display:
    """The landmarks (0-based, ascending) that a page draws, and what joins them."""

    landmarks: Index
    n_landmarks: int
    faces: Index | None  # (t, 3), numbered within ``landmarks``
    links: Index | None  # (k, 2), numbered within ``landmarks``
    n_links: int  # before thinning

    def select(self, stack: Array) -> Array:
        """Return the drawn landmarks of a stack (n_shapes, n_landmarks, …)."""
        return np.asarray(stack[:, self.landmarks])

    @property
    def notes(self) -> list[str]:
        """What was left out, for the page."""
        notes = []
        drawn, total = len(self.landmarks), self.n_landmarks
        advice = "All numbers are of all landmarks; defgpa report result.npz --draw-all draws all."
        if drawn < total and self.faces is not None:
            notes.append(
                f"To keep this page light, surfaces are drawn with {drawn:,} of the {total:,} "
                f"vertices, evenly chosen, and triangles between them. {advice}"
            )
        elif drawn < total:
            notes.append(
                f"To keep this page light, {drawn:,} of the {total:,} landmarks are drawn: the "
                f"{round(WORST_SHARE * drawn):,} with the largest residuals and an even choice of "
                f"the others. {advice}"
            )
        if self.n_links > MAX_LINKS:
            notes.append(f"There are {self.n_links:,} links, too many to be drawn.")
        return notes


def choose_display(
    alignment: Alignment,
    links: Iterable[tuple[int, int]] | None = None,
    max_pairs: int | None = MAX_PAIRS,
) -> Display:
    """Choose what to draw of an alignment, at most about so many landmarks of all shapes together.

    Parameters
    ----------
    alignment : Alignment
    links : iterable of (int, int), optional
        Landmarks joined by lines; by default those of the shapes. None are invented.
    max_pairs : int, optional
        None draws everything.
    """
    shapes = alignment.shapes
    n, m = shapes.n_shapes, shapes.n_landmarks
    max_landmarks = m
    if max_pairs is not None:
        max_landmarks = min(MAX_LANDMARKS, max(MIN_LANDMARKS, max_pairs // n))
    faces = None
    if shapes.n_dims == 3 and shapes.faces is not None and len(shapes.faces):
        landmarks, faces = decimate_surface(alignment.reference, shapes.faces, max_landmarks)
    else:
        landmarks = thin_landmarks(alignment.residuals, max_landmarks)
    pairs = _find_links(shapes, links)
    numbers = np.full(m, -1, dtype=np.intp)
    numbers[landmarks] = np.arange(len(landmarks))
    drawn = numbers[pairs]
    drawn = drawn[(drawn >= 0).all(axis=1)]
    shown = drawn if 0 < len(drawn) <= MAX_LINKS else None
    return Display(landmarks, m, faces, shown, len(drawn))


def thin_landmarks(residuals: Array, max_landmarks: int) -> Index:
    """Return at most so many landmarks: a tenth with the largest residuals, the others evenly."""
    count = residuals.shape[1]
    if count <= max_landmarks:
        return np.arange(count)
    visible = ~np.isnan(residuals)
    squares = np.where(visible, residuals, 0.0) ** 2
    errors = squares.sum(axis=0) / np.maximum(visible.sum(axis=0), 1)
    farthest = np.argsort(-errors, kind="stable")[: round(WORST_SHARE * max_landmarks)]
    others = np.setdiff1d(np.arange(count), farthest)
    positions = np.linspace(0, len(others) - 1, max_landmarks - len(farthest)).round().astype(int)
    return np.union1d(farthest, others[positions])


def _find_links(shapes: Shapes, links: Iterable[tuple[int, int]] | None) -> Index:
    """Return the links given or those of the shapes; of plane triangles, their edges."""
    pairs = np.array(list(shapes.links if links is None else links), dtype=np.intp).reshape(-1, 2)
    pairs = pairs[((pairs >= 0) & (pairs < shapes.n_landmarks)).all(axis=1)]
    if not len(pairs) and shapes.n_dims == 2 and shapes.faces is not None:
        edges = np.concatenate([shapes.faces[:, ends] for ends in ([0, 1], [1, 2], [0, 2])])
        pairs = np.unique(np.sort(edges, axis=1), axis=0)
    return pairs
