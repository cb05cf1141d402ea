"""Build the 3-D scene: the reference, every shape before and after, its deformation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import ConvexHull

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Mask
from defgpa.procrustes import ORTHOGONAL, ORTHOGONAL_SIMILARITY, Motion, fit_motions
from defgpa.report._display import Display
from defgpa.report._encoding import pack_distances, pack_integers, pack_positions
from defgpa.report._groups import Columns, number_groups

if TYPE_CHECKING:
    from defgpa.model_selection import CrossValidation

MAX_NODES = 900  # of the grid over one shape
MIN_NODES = 99  # however many shapes there are


def build_scene(
    alignment: Alignment, display: Display, columns: Columns, cv: CrossValidation | None
) -> dict[str, object]:
    """Return everything that the page's script draws in space."""
    shapes, reference = alignment.shapes, alignment.reference
    motions = find_motions(alignment)
    nodes, n_rows, n_columns = make_lattice(reference, shapes.n_shapes)
    deformed = deform_lattice(alignment, motions, nodes)
    back = motions.inverse()
    poses = np.concatenate([back.matrix.reshape(shapes.n_shapes, -1), back.translation], axis=1)
    return {
        "dim": shapes.n_dims,
        "names": list(shapes.names),
        "missing": (~shapes.visible).sum(axis=1).tolist(),
        "n_landmarks": shapes.n_landmarks,
        "landmarks": [shapes.landmarks[j] for j in display.landmarks],
        "columns": number_groups(columns),
        "reference": pack_positions(reference[None, display.landmarks]),
        "poses": pack_distances(poses),
        "moved": pack_positions(motions(display.select(shapes.points))),
        "aligned": pack_positions(display.select(alignment.aligned)),
        "residuals": pack_distances(display.select(alignment.residuals)),
        "weights": pack_distances(display.select(alignment.weights))
        if alignment.has_weights
        else None,
        **_pack_predictions(alignment, display, cv),
        "lattice": {"rows": n_rows, "columns": n_columns, "nodes": pack_positions(deformed)},
        "links": None if display.links is None else pack_integers(display.links),
        "faces": None if display.faces is None else pack_integers(display.faces),
        "camera": _choose_camera(reference),
    }


def find_motions(alignment: Alignment) -> Motion:
    """Return the similarity of every shape onto the reference: all but its deformation.

    A shape known to be mirrored is mirrored back, or nothing else could be seen of it.
    """
    points = alignment.shapes.points
    proper = alignment.similarities
    mirrored = alignment.diagnostics.votes < 0
    if not mirrored.any():
        return proper
    with_reflections = fit_motions(points, alignment.reference, motions=ORTHOGONAL_SIMILARITY)
    return Motion(
        np.where(mirrored[:, None, None], with_reflections.rotation, proper.rotation),
        np.where(mirrored, with_reflections.scale, proper.scale),
        np.where(mirrored[:, None], with_reflections.translation, proper.translation),
        proper.determined,
    )


def deform_lattice(alignment: Alignment, motions: Motion, nodes: Array) -> Array:
    """Return the grid (n_shapes, n_nodes, d), laid over every shape, as its warp maps it."""
    back = motions.inverse()
    return np.stack([warp(back[i](nodes)) for i, warp in enumerate(alignment.warps)])


def _pack_predictions(
    alignment: Alignment, display: Display, cv: CrossValidation | None
) -> dict[str, object]:
    """Pack the cross-validated landmarks in the pose of this reference, and their distances."""
    if cv is None:
        return {"predicted": None, "errors": None}
    pose = fit_motions(cv.reference, alignment.reference, motions=ORTHOGONAL)
    return {
        "predicted": pack_positions(display.select(pose(cv.predicted))),
        "errors": pack_distances(display.select(cv.distances)),
    }


def make_lattice(reference: Array, n_shapes: int) -> tuple[Array, int, int]:
    """Return nodes (rows · columns, d) of a square grid, row by row, and the two numbers.

    It lies over the landmarks of a reference, in 3-D along its two longest principal axes; nodes
    of a slice that leave the shape are NaN. Every second row and column is drawn as a line: the
    numbers are odd, with two pieces of line to a cell, so that lines look bent.
    """
    centre, axes = _choose_plane(reference)
    local = (reference - centre) @ axes.T
    low, high = local.min(axis=0), local.max(axis=0)
    margin = 0.06 * (high - low).max()
    low, high = low - margin, high + margin
    # nodes of all shapes together take about 1 MB in the page
    max_nodes = min(MAX_NODES, max(MIN_NODES, 120_000 // n_shapes))
    columns, rows = _count_nodes(high - low, max_nodes)
    x, y = np.linspace(low[0], high[0], columns), np.linspace(low[1], high[1], rows)
    plane = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    nodes = plane @ axes + centre
    if reference.shape[1] == 3:
        nodes[~_is_within(plane, local)] = np.nan
    return nodes, rows, columns


def _is_within(plane: Array, local: Array) -> Mask:
    """Return which nodes of a slice lie within the outline of the landmarks, seen across it.

    Beyond it a warp only continues what it does elsewhere, which in space would hide the rest.
    """
    corners = ConvexHull(local, qhull_options="QJ").equations
    return np.asarray((plane @ corners[:, :2].T + corners[:, 2] <= 1e-9).all(axis=1))


def _choose_plane(reference: Array) -> tuple[Array, Array]:
    """Return a centre and two orthonormal rows: the plane itself, or the principal one in space."""
    if reference.shape[1] == 2:
        return np.zeros(2), np.eye(2)
    centre = reference.mean(axis=0)
    return centre, np.linalg.svd(reference - centre, full_matrices=False)[2][:2]


def _count_nodes(sides: Array, max_nodes: int) -> tuple[int, int]:
    """Return odd numbers of nodes along the sides, in proportion, about ``max_nodes`` in all."""
    spacing = np.sqrt(sides.prod() / max_nodes)
    counts = 2 * np.floor((sides / spacing - 1) / 2).astype(int) + 1
    columns, rows = np.maximum(counts, 5)  # nodes on the shorter side
    return int(columns), int(rows)


def _choose_camera(reference: Array) -> dict[str, list[float]] | None:
    """Look at the broadest side of the reference, a little from above."""
    if reference.shape[1] == 2:
        return None
    axes = np.linalg.svd(reference - reference.mean(axis=0), full_matrices=False)[2]
    axes *= np.sign(axes[np.arange(3), np.abs(axes).argmax(axis=1)])[:, None]
    if np.linalg.det(axes) < 0:
        axes[2] *= -1
    eye = np.array([0.35, -0.45, 1.0]) @ axes
    return {"eye": (eye / np.linalg.norm(eye)).tolist(), "up": axes[1].tolist()}
