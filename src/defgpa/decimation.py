"""Thin a triangle mesh for display, keeping a subset of its own vertices.

A subset of the vertices, and not new ones, so that one set of triangles serves all shapes of an
alignment: their landmarks are the vertices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from defgpa._arrays import Array, Index


class DecimatedSurface(NamedTuple):
    """The vertices kept, and triangles over them."""

    vertices: Index  # (k,): numbers of the vertices that are kept, ascending
    faces: Index  # (t, 3): triangles, numbered within ``vertices``


def decimate_surface(points: Array, faces: Index, max_vertices: int) -> DecimatedSurface:
    """Choose at most so many vertices of a mesh, evenly over it, and triangles between them.

    Every vertex is merged into the kept vertex that is nearest along the surface, so that sheets
    that lie close to each other do not grow together. A triangle stays where its corners are
    merged into three different vertices.

    Parameters
    ----------
    points : ndarray of shape (n_vertices, n_dims)
        Where the vertices are; NaN where a vertex is missing, which is then left out.
    faces : ndarray of int, shape (n_faces, 3)
    max_vertices : int
        A smaller mesh is returned as it is.

    Returns
    -------
    DecimatedSurface

    Examples
    --------
    >>> x, y = map(np.ravel, np.meshgrid(np.arange(30.0), np.arange(30.0)))
    >>> corner = np.arange(870).reshape(29, 30)[:, :-1].ravel()
    >>> faces = np.column_stack([corner, corner + 1, corner + 30])
    >>> thin = decimate_surface(np.column_stack([x, y, 0 * x]), faces, 100)
    >>> bool(50 < len(thin.vertices) <= 100), bool(thin.faces.max() < len(thin.vertices))
    (True, True)
    """
    if len(points) <= max_vertices:
        return DecimatedSurface(np.arange(len(points)), np.asarray(faces))
    present = np.flatnonzero(~np.isnan(points[:, 0]))
    vertices = present[_choose_by_cells(points[present], max_vertices)]
    owners = _assign_along_edges(points, faces, vertices)
    corners = owners[faces]
    corners = corners[(corners >= 0).all(axis=1)]
    a, b, c = corners.T
    corners = corners[(a != b) & (b != c) & (a != c)]
    _, first = np.unique(np.sort(corners, axis=1), axis=0, return_index=True)
    return DecimatedSurface(vertices, corners[np.sort(first)])


def _choose_by_cells(points: Array, max_points: int) -> Index:
    """Choose one point per cell of a cubic grid: the one nearest to the mean of its cell."""
    low, extent = points.min(axis=0), float(np.ptp(points, axis=0).max()) or 1.0
    fine, coarse = 2.0 * len(points), 1.0  # cells along the longest side: too many, few enough
    for _ in range(24):
        middle = np.sqrt(fine * coarse)
        if len(np.unique(_cell_numbers(points, low, extent / middle))) > max_points:
            fine = middle
        else:
            coarse = middle
    _, cells = np.unique(_cell_numbers(points, low, extent / coarse), return_inverse=True)
    counts = np.bincount(cells)
    means = np.column_stack([np.bincount(cells, axis) / counts for axis in points.T])
    order = np.lexsort((((points - means[cells]) ** 2).sum(axis=1), cells))
    return np.sort(order[np.unique(cells[order], return_index=True)[1]])


def _cell_numbers(points: Array, low: Array, side: float) -> Index:
    """Return the number of the grid cell of every point."""
    cells = np.floor((points - low) / side).astype(np.int64)
    return np.asarray(np.ravel_multi_index(tuple(cells.T), tuple(cells.max(axis=0) + 1)))


def _assign_along_edges(points: Array, faces: Index, vertices: Index) -> Index:
    """Return the number of the nearest kept vertex along the surface, −1 where there is none."""
    starts, ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).T
    lengths = np.linalg.norm(points[starts] - points[ends], axis=1)
    known = np.isfinite(lengths)
    # an edge of length zero would count as no edge
    shortest = 1e-12 * float(np.max(lengths[known], initial=1.0))
    edges = (np.maximum(lengths[known], shortest), (starts[known], ends[known]))
    graph = coo_array(edges, shape=(len(points), len(points))).tocsr()
    nearest = dijkstra(
        graph, directed=False, indices=vertices, min_only=True, return_predecessors=True
    )[2]
    numbers = np.full(len(points) + 1, -1, dtype=np.intp)
    numbers[vertices] = np.arange(len(vertices))
    return numbers[np.where(nearest >= 0, nearest, len(points))]
