"""What the page draws in space: the reference, every shape before and after, its deformation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import Delaunay
from scipy.spatial.distance import cdist

from defgpa._arrays import Array, Index
from defgpa.alignment import Alignment
from defgpa.procrustes import ORTHOGONAL, ORTHOGONAL_SIMILARITY, SIMILARITY, Motion, stacked
from defgpa.report._columns import drawn_columns, group_columns
from defgpa.report._drawn import Drawn
from defgpa.report._lattice import Lattice, lattice_over
from defgpa.report._packing import packed_distances, packed_numbers, packed_positions

if TYPE_CHECKING:
    from defgpa.evaluate import CrossValidation

_MOST_EDGES = 4000  # lines of one shape that a browser redraws at once
_MOST_LINKED = 1000  # landmarks that are joined to near ones: a moment's work
_TILT = (0.35, -0.45, 1.0)  # where one looks from, along the principal axes of the reference


@dataclass(frozen=True, eq=False)
class Scene:
    """An alignment, and the part of it that is drawn."""

    alignment: Alignment
    drawn: Drawn
    cross_validation: CrossValidation | None

    @cached_property
    def motion(self) -> Motion:
        """The similarity of every drawn shape onto the reference: all but its deformation.

        A shape known to be mirrored is mirrored back, or nothing else could be seen of it.
        """
        points = self.alignment.shapes.points[self.drawn.shapes]
        proper = stacked(points, self.alignment.reference, motions=SIMILARITY)
        mirrored = self.alignment.diagnostics.votes[self.drawn.shapes] < 0
        either = stacked(points, self.alignment.reference, motions=ORTHOGONAL_SIMILARITY)
        return Motion(
            np.where(mirrored[:, None, None], either.rotation, proper.rotation),
            np.where(mirrored, either.scale, proper.scale),
            np.where(mirrored[:, None], either.translation, proper.translation),
            proper.determined,
        )

    @cached_property
    def moved(self) -> Array:
        """(n, m, d): the drawn shapes only moved, turned and scaled onto the reference."""
        return self.motion(self.drawn.of(self.alignment.shapes.points))

    @cached_property
    def lattice(self) -> Lattice:
        """The grid, or the slice in 3-D, whose deformation is drawn."""
        return lattice_over(self.alignment.reference, len(self.drawn.shapes))

    @property
    def deformed(self) -> Array:
        """(n, nodes, d): the lattice, laid over every shape, as its warp carries it."""
        back = self.motion.inverse()
        return np.stack(
            [
                self.alignment.warps[i](back[k](self.lattice.nodes))
                for k, i in enumerate(self.drawn.shapes)
            ]
        )

    def as_data(self) -> dict[str, Any]:
        """All of it for the page's script."""
        a, drawn = self.alignment, self.drawn
        reference = a.reference[drawn.landmarks]
        return {
            "dim": a.shapes.dim,
            "names": [a.shapes.names[i] for i in drawn.shapes],
            "landmarks": [a.shapes.landmarks[j] for j in drawn.landmarks],
            "columns": drawn_columns(group_columns(a.shapes), drawn.shapes),
            "reference": packed_positions(reference[None]),
            "measured": packed_positions(drawn.of(a.shapes.points)),
            "moved": packed_positions(self.moved),
            "aligned": packed_positions(drawn.of(a.aligned)),
            "residuals": packed_distances(drawn.of(a.residuals)),
            **self._predictions(),
            "lattice": {
                "rows": self.lattice.rows,
                "columns": self.lattice.columns,
                "nodes": packed_positions(self.deformed),
            },
            **self._links(),
            "faces": _optional(self._faces()),
            "camera": _camera(a.reference),
        }

    def _predictions(self) -> dict[str, Any]:
        """The cross-validated landmarks in the pose of this reference, and how far off they are."""
        cv = self.cross_validation
        if cv is None:
            return {"predicted": None, "errors": None}
        pose = stacked(cv.reference, self.alignment.reference, motions=ORTHOGONAL)
        return {
            "predicted": packed_positions(self.drawn.of(pose(cv.predicted))),
            "errors": packed_distances(self.drawn.of(cv.distances)),
        }

    def _links(self) -> dict[str, Any]:
        """Lines between landmarks, and whether the file gave them; near ones else, on request."""
        given = self._edges()
        reference = self.alignment.reference[self.drawn.landmarks]
        edges = near_links(reference) if given is None and self._faces() is None else given
        return {"wireframe": given is not None, "edges": _optional(edges)}

    def _edges(self) -> Index | None:
        """The wireframe of the file, or the sides of plane triangles."""
        shapes = self.alignment.shapes
        edges = np.array(shapes.links, dtype=np.intp).reshape(-1, 2)
        if not len(edges) and shapes.dim == 2 and shapes.faces is not None:
            edges = _sides(shapes.faces)
        edges = _renumbered(edges, self.drawn)
        return edges if 0 < len(edges) <= _MOST_EDGES else None

    def _faces(self) -> Index | None:
        shapes = self.alignment.shapes
        whole = shapes.dim == 3 and self.drawn.all_landmarks
        return shapes.faces if whole and shapes.faces is not None and len(shapes.faces) else None


def near_links(points: Array) -> Index | None:
    """(k, 2): landmarks to which no third one is nearer than they are to each other.

    The relative neighbourhood graph: what the eye would join. None for too few or too many.
    """
    if not points.shape[1] + 2 <= len(points) <= _MOST_LINKED:
        return None
    # none of them is lost among the sides of a Delaunay triangulation
    pairs = _sides(Delaunay(points, qhull_options="QJ").simplices)
    far, (i, j) = cdist(points, points), pairs.T
    nearer = np.maximum(far[i], far[j]) < far[i, j][:, None]
    return np.asarray(pairs[~nearer.any(axis=1)])


def _sides(faces: Index) -> Index:
    """(k, 2): every side of the triangles (or tetrahedra) once."""
    sides = [faces[:, list(ends)] for ends in combinations(range(faces.shape[1]), 2)]
    return np.unique(np.sort(np.concatenate(sides), axis=1), axis=0)


def _renumbered(edges: Index, drawn: Drawn) -> Index:
    """The edges between drawn landmarks, by their number among those."""
    number = np.full(drawn.n_landmarks, -1, dtype=np.intp)
    number[drawn.landmarks] = np.arange(len(drawn.landmarks))
    moved = number[edges]
    return moved[(moved >= 0).all(axis=1)]


def _optional(numbers: Index | None) -> dict[str, Any] | None:
    return None if numbers is None else packed_numbers(numbers)


def _camera(reference: Array) -> dict[str, list[float]] | None:
    """From where to look: at the broadest side of the reference, a little from above."""
    if reference.shape[1] == 2:
        return None
    axes = np.linalg.svd(reference - reference.mean(axis=0), full_matrices=False)[2]
    if np.linalg.det(axes) < 0:
        axes[2] *= -1
    eye = np.array(_TILT) @ axes
    return {"eye": (eye / np.linalg.norm(eye)).tolist(), "up": axes[1].tolist()}
