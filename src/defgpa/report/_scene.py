"""What the page draws in space: the reference, every shape before and after, its deformation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.alignment import Alignment
from defgpa.procrustes import ORTHOGONAL, ORTHOGONAL_SIMILARITY, SIMILARITY, Motion, stacked
from defgpa.report._drawn import Drawn
from defgpa.report._lattice import Lattice, lattice_over
from defgpa.report._packing import packed_distances, packed_numbers, packed_positions

if TYPE_CHECKING:
    from defgpa.evaluate import CrossValidation

MOST_GROUPS = 7  # colours that can be told apart
_MOST_EDGES = 4000  # lines of one shape that a browser redraws at once
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

    @property
    def predicted(self) -> Array | None:
        """(n, m, d): the cross-validated landmarks in the pose of this reference."""
        if self.cross_validation is None:
            return None
        pose = stacked(
            self.cross_validation.reference, self.alignment.reference, motions=ORTHOGONAL
        )
        return self.drawn.of(pose(self.cross_validation.predicted))

    def as_data(self) -> dict[str, Any]:
        """All of it for the page's script."""
        a, drawn = self.alignment, self.drawn
        reference = a.reference[drawn.landmarks]
        return {
            "dim": a.shapes.dim,
            "names": [a.shapes.names[i] for i in drawn.shapes],
            "landmarks": [a.shapes.landmarks[j] for j in drawn.landmarks],
            "groups": _groups(a.shapes.metadata.get("groups"), drawn.shapes),
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
            "edges": _optional(self._edges()),
            "faces": _optional(self._faces()),
            "camera": _camera(a.reference),
        }

    def _predictions(self) -> dict[str, Any]:
        cv, predicted = self.cross_validation, self.predicted
        if cv is None or predicted is None:
            return {"predicted": None, "errors": None}
        return {
            "predicted": packed_positions(predicted),
            "errors": packed_distances(self.drawn.of(cv.distances)),
        }

    def _edges(self) -> Index | None:
        """Lines between landmarks: the wireframe of the file, or the sides of plane triangles."""
        shapes = self.alignment.shapes
        edges = _wireframe(shapes.metadata.get("wireframe"), shapes.n_landmarks)
        if not len(edges) and shapes.dim == 2 and shapes.faces is not None:
            edges = _sides(shapes.faces)
        edges = _renumbered(edges, self.drawn)
        return edges if 0 < len(edges) <= _MOST_EDGES else None

    def _faces(self) -> Index | None:
        shapes = self.alignment.shapes
        whole = shapes.dim == 3 and self.drawn.all_landmarks
        return shapes.faces if whole and shapes.faces is not None and len(shapes.faces) else None


def _groups(groups: Sequence[Any] | None, shapes: Index) -> dict[str, Any] | None:
    """The group of every drawn shape and their names, where colours can tell them apart."""
    if groups is None:
        return None
    own = [str(groups[i]) for i in shapes]
    names = list(dict.fromkeys(own))
    if not 2 <= len(names) <= MOST_GROUPS:
        return None
    return {"names": names, "of": [names.index(name) for name in own]}


def _wireframe(links: Any, m: int) -> Index:
    """(k, 2): the pairs of a wireframe whose entries may be chains; what does not fit is dropped.

    It comes from files and from users, and a picture is no place to fail.
    """
    chains = [link for link in links or () if isinstance(link, (tuple, list, np.ndarray))]
    pairs = [pair for chain in chains for pair in pairwise(chain) if _numbers(pair, m)]
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def _numbers(pair: tuple[Any, Any], m: int) -> bool:
    return all(isinstance(j, (int, np.integer)) and 0 <= j < m for j in pair)


def _sides(faces: Index) -> Index:
    """(k, 2): every side of the triangles once."""
    sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    return np.unique(np.sort(sides, axis=1), axis=0)


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
