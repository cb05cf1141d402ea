"""What the page draws in space: the reference, every shape before and after, its deformation."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import ConvexHull, Delaunay
from scipy.spatial.distance import cdist

from defgpa._arrays import Array, Index, Mask
from defgpa.alignment import Alignment
from defgpa.procrustes import ORTHOGONAL, ORTHOGONAL_SIMILARITY, Motion, fit_motions
from defgpa.report._drawn import Drawn, drawn_columns, group_columns
from defgpa.report._packing import packed_distances, packed_numbers, packed_positions
from defgpa.shapes import Shapes

if TYPE_CHECKING:
    from defgpa.model_selection import CrossValidation


def scene(alignment: Alignment, drawn: Drawn, cv: CrossValidation | None) -> dict[str, Any]:
    """Everything that the page's script draws in space."""
    shapes, reference = alignment.shapes, alignment.reference
    onto = motions_onto_reference(alignment, drawn)
    nodes, rows, columns = lattice_over(reference, len(drawn.shapes))
    deformed = deformed_lattice(alignment, drawn, onto, nodes)
    return {
        "dim": shapes.n_dims,
        "names": [shapes.names[i] for i in drawn.shapes],
        "landmarks": [shapes.landmarks[j] for j in drawn.landmarks],
        "columns": drawn_columns(group_columns(shapes), drawn.shapes),
        "reference": packed_positions(reference[None, drawn.landmarks]),
        "measured": packed_positions(drawn.of(shapes.points)),
        "moved": packed_positions(onto(drawn.of(shapes.points))),
        "aligned": packed_positions(drawn.of(alignment.aligned)),
        "residuals": packed_distances(drawn.of(alignment.residuals)),
        **_predictions(alignment, drawn, cv),
        "lattice": {"rows": rows, "columns": columns, "nodes": packed_positions(deformed)},
        **_links(alignment, drawn),
        "camera": _camera(reference),
    }


def motions_onto_reference(alignment: Alignment, drawn: Drawn) -> Motion:
    """The similarity of every drawn shape onto the reference: all but its deformation.

    A shape known to be mirrored is mirrored back, or nothing else could be seen of it.
    """
    points = alignment.shapes.points[drawn.shapes]
    proper = alignment.similarities[drawn.shapes]
    mirrored = alignment.diagnostics.votes[drawn.shapes] < 0
    either = fit_motions(points, alignment.reference, motions=ORTHOGONAL_SIMILARITY)
    return Motion(
        np.where(mirrored[:, None, None], either.rotation, proper.rotation),
        np.where(mirrored, either.scale, proper.scale),
        np.where(mirrored[:, None], either.translation, proper.translation),
        proper.determined,
    )


def deformed_lattice(alignment: Alignment, drawn: Drawn, onto: Motion, nodes: Array) -> Array:
    """(n, nodes, d): the grid, laid over every drawn shape, as its warp carries it."""
    back = onto.inverse()
    warps = [alignment.warps[i] for i in drawn.shapes]
    return np.stack([warp(back[k](nodes)) for k, warp in enumerate(warps)])


def _predictions(alignment: Alignment, drawn: Drawn, cv: CrossValidation | None) -> dict[str, Any]:
    """The cross-validated landmarks in the pose of this reference, and how far off they are."""
    if cv is None:
        return {"predicted": None, "errors": None}
    pose = fit_motions(cv.reference, alignment.reference, motions=ORTHOGONAL)
    return {
        "predicted": packed_positions(drawn.of(pose(cv.predicted))),
        "errors": packed_distances(drawn.of(cv.distances)),
    }


def _links(alignment: Alignment, drawn: Drawn) -> dict[str, Any]:
    """Triangles and lines between landmarks; where the file gave none, near ones on request."""
    shapes = alignment.shapes
    whole = shapes.n_dims == 3 and len(drawn.landmarks) == drawn.n_landmarks
    faces = shapes.faces if whole and shapes.faces is not None and len(shapes.faces) else None
    edges = given = _edges(shapes, drawn)
    if given is None and faces is None:
        edges = near_links(alignment.reference[drawn.landmarks])
    return {
        "wireframe": given is not None,
        "edges": None if edges is None else packed_numbers(edges),
        "faces": None if faces is None else packed_numbers(faces),
    }


def _edges(shapes: Shapes, drawn: Drawn) -> Index | None:
    """The wireframe of the file, or the sides of plane triangles, between drawn landmarks."""
    edges = np.array(shapes.links, dtype=np.intp).reshape(-1, 2)
    if not len(edges) and shapes.n_dims == 2 and shapes.faces is not None:
        edges = _sides(shapes.faces)
    number = np.full(drawn.n_landmarks, -1, dtype=np.intp)
    number[drawn.landmarks] = np.arange(len(drawn.landmarks))
    edges = number[edges]
    edges = edges[(edges >= 0).all(axis=1)]
    return edges if 0 < len(edges) <= 4000 else None  # more are not redrawn at once


def near_links(points: Array) -> Index | None:
    """(k, 2): landmarks to which no third one is nearer than they are to each other.

    The relative neighbourhood graph: what the eye would join. None for too few or too many.
    """
    if not points.shape[1] + 2 <= len(points) <= 1000:  # more would take longer than a moment
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


def lattice_over(reference: Array, n_shapes: int) -> tuple[Array, int, int]:
    """Nodes (rows · columns, d) of a square grid, row by row, and the two numbers.

    It lies over the landmarks of a reference, in 3-D along its two longest principal axes; nodes
    of a slice that leave the shape are NaN. Every second row and column is drawn as a line: the
    numbers are odd, with two pieces of line to a cell, so that lines look bent.
    """
    centre, axes = _plane(reference)
    local = (reference - centre) @ axes.T
    low, high = local.min(axis=0), local.max(axis=0)
    beyond = 0.06 * (high - low).max()
    low, high = low - beyond, high + beyond
    # nodes of all shapes together take about 1 MB in the page
    columns, rows = _counts(high - low, min(900, 120_000 // n_shapes))
    x, y = np.linspace(low[0], high[0], columns), np.linspace(low[1], high[1], rows)
    plane = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    nodes = plane @ axes + centre
    if reference.shape[1] == 3:
        nodes[~_within(plane, local)] = np.nan
    return nodes, rows, columns


def _within(plane: Array, local: Array) -> Mask:
    """Which nodes of a slice lie within the outline of the landmarks, seen across it.

    Beyond it a warp only continues what it does elsewhere, which in space would hide the rest.
    """
    corners = ConvexHull(local, qhull_options="QJ").equations
    return np.asarray((plane @ corners[:, :2].T + corners[:, 2] <= 1e-9).all(axis=1))


def _plane(reference: Array) -> tuple[Array, Array]:
    """A centre and two orthonormal rows: the plane itself, or the principal one in space."""
    if reference.shape[1] == 2:
        return np.zeros(2), np.eye(2)
    centre = reference.mean(axis=0)
    return centre, np.linalg.svd(reference - centre, full_matrices=False)[2][:2]


def _counts(sides: Array, most: int) -> tuple[int, int]:
    """Odd numbers of nodes along sides, in proportion, with at most about ``most`` nodes."""
    spacing = np.sqrt(sides.prod() / most)
    counts = 2 * np.floor((sides / spacing - 1) / 2).astype(int) + 1
    columns, rows = np.maximum(counts, 5)  # nodes on the shorter side
    return int(columns), int(rows)


def _camera(reference: Array) -> dict[str, list[float]] | None:
    """From where to look: at the broadest side of the reference, a little from above."""
    if reference.shape[1] == 2:
        return None
    axes = np.linalg.svd(reference - reference.mean(axis=0), full_matrices=False)[2]
    if np.linalg.det(axes) < 0:
        axes[2] *= -1
    eye = np.array([0.35, -0.45, 1.0]) @ axes
    return {"eye": (eye / np.linalg.norm(eye)).tolist(), "up": axes[1].tolist()}
