"""A square grid to watch a deformation by: over the plane, or in 3-D through the middle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

from defgpa._arrays import Array, Mask

MOST_NODES = 900  # per shape
MOST_NODES_OF_ALL = 120_000  # about 1 MB in the page


@dataclass(frozen=True, eq=False)
class Lattice:
    """Nodes (rows · columns, d), row by row; every second row and column is drawn as a line.

    NaN where a slice leaves the shape.
    """

    nodes: Array
    rows: int
    columns: int


def lattice_over(reference: Array, n_shapes: int) -> Lattice:
    """Square cells over the landmarks of a reference, in its two longest principal axes if 3-D.

    Both numbers of nodes are odd: there are two pieces of line to a cell, so that lines look bent.
    """
    centre, axes = _plane(reference)
    local = (reference - centre) @ axes.T
    low, high = local.min(axis=0), local.max(axis=0)
    beyond = 0.06 * (high - low).max()
    low, high = low - beyond, high + beyond
    columns, rows = _counts(high - low, min(MOST_NODES, MOST_NODES_OF_ALL // n_shapes))
    x, y = np.linspace(low[0], high[0], columns), np.linspace(low[1], high[1], rows)
    plane = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    nodes = plane @ axes + centre
    if reference.shape[1] == 3:
        nodes[~_within(plane, local)] = np.nan
    return Lattice(nodes, rows, columns)


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
