"""Thin a triangle mesh for display, keeping a subset of its own vertices.

A subset of the vertices, and not new ones, so that one set of triangles serves all shapes of an
alignment: their landmarks are the vertices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from defgpa.arrays import Array, Index


class DecimatedSurface(NamedTuple):
    """The vertices kept, and triangles over them."""

    vertices: Index  # (k,): numbers of the vertices that are kept, ascending
    faces: Index  # (t, 3): triangles, numbered within ``vertices``


def decimate_surface(points: Array, faces: Index, max_vertices: int) -> DecimatedSurface:
    """Choose at most this many vertices of a mesh, evenly spread, and triangles between them.

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
    edges = _measure_edges(points, faces)
    present = np.flatnonzero(~np.isnan(points[:, 0]))
    budget = max_vertices
    while True:
        side = _choose_cell_side(points[present], budget)
        vertices = present[_choose_by_cells(points[present], side)]
        owners, distances = _assign_along_edges(edges, vertices)
        # a second sheet in the same cells has no vertex of its own yet
        uncovered = present[distances[present] > 3.0 * side]
        if len(uncovered):
            vertices = np.union1d(vertices, uncovered[_choose_by_cells(points[uncovered], side)])
            owners, _ = _assign_along_edges(edges, vertices)
        if len(vertices) <= max_vertices or budget <= 1:
            break
        budget = max(1, int(0.9 * budget * max_vertices / len(vertices)))
    corners = owners[faces]
    corners = corners[(corners >= 0).all(axis=1)]
    a, b, c = corners.T
    corners = corners[(a != b) & (b != c) & (a != c)]
    _, first = np.unique(np.sort(corners, axis=1), axis=0, return_index=True)
    return DecimatedSurface(vertices, corners[np.sort(first)])


def _choose_cell_side(points: Array, max_cells: int) -> float:
    """Return the smallest side of cubes of which at most so many hold a point."""
    low, extent = points.min(axis=0), float(np.ptp(points, axis=0).max()) or 1.0
    fine, coarse = 2.0 * len(points), 1.0  # cells along the longest side: too many, few enough
    for _ in range(24):
        middle = np.sqrt(fine * coarse)
        if len(np.unique(_number_cells(points, low, extent / middle))) > max_cells:
            fine = middle
        else:
            coarse = middle
    return extent / coarse


def _choose_by_cells(points: Array, side: float) -> Index:
    """Choose one point per cubic cell: the one nearest to the mean of its cell."""
    numbers = _number_cells(points, points.min(axis=0), side)
    _, cells = np.unique(numbers, return_inverse=True)
    counts = np.bincount(cells)
    means = np.column_stack([np.bincount(cells, axis) / counts for axis in points.T])
    order = np.lexsort((((points - means[cells]) ** 2).sum(axis=1), cells))
    return np.sort(order[np.unique(cells[order], return_index=True)[1]])


def _number_cells(points: Array, low: Array, side: float) -> Index:
    """Return the number of the grid cell of every point."""
    cells = np.floor((points - low) / side).astype(np.int64)
    return np.asarray(np.ravel_multi_index(tuple(cells.T), tuple(cells.max(axis=0) + 1)))


def _measure_edges(points: Array, faces: Index) -> csr_array:
    """Return the lengths of all edges as a sparse matrix (n_vertices, n_vertices)."""
    starts, ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).T
    lengths = np.linalg.norm(points[starts] - points[ends], axis=1)
    is_finite = np.isfinite(lengths)
    # an edge of length zero would count as no edge
    shortest = 1e-12 * float(np.max(lengths[is_finite], initial=1.0))
    edges = np.unique(np.sort(np.column_stack([starts, ends])[is_finite], axis=1), axis=0)
    lengths = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
    return csr_array((np.maximum(lengths, shortest), tuple(edges.T)), shape=2 * (len(points),))


def _assign_along_edges(edges: csr_array, vertices: Index) -> tuple[Index, Array]:
    """Return the number of the nearest kept vertex along the surface and its distance.

    The number is −1, and the distance infinite, where no kept vertex can be reached.
    """
    distances, _, nearest = dijkstra(
        edges, directed=False, indices=vertices, min_only=True, return_predecessors=True
    )
    numbers = np.full(edges.shape[0] + 1, -1, dtype=np.intp)
    numbers[vertices] = np.arange(len(vertices))
    return numbers[np.where(nearest >= 0, nearest, edges.shape[0])], distances
