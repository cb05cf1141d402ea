"""The nearest point of a triangle mesh.

No triangle whose centroid is farther than the nearest vertex plus the largest triangle's radius can
have it, so only the others are searched: the answer is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from defgpa.arrays import Array, Index, Mask
from defgpa.errors import ShapeError
from defgpa.io.mesh.mesh import compute_unit_normals


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles (k, 3) over vertices (p, 3)."""

    vertices: Array
    faces: Index

    def __post_init__(self) -> None:
        if not len(self.faces):
            raise ShapeError("The mesh has no faces: points cannot return to a cloud of points.")

    @cached_property
    def _corners(self) -> Array:
        return np.asarray(self.vertices[self.faces])

    @cached_property
    def _trees(self) -> tuple[cKDTree, cKDTree, float]:
        """Search trees of vertices and of centroids, and the largest distance between the two."""
        centroids = self._corners.mean(axis=1)
        radii = np.linalg.norm(self._corners - centroids[:, None], axis=2)
        used = self.vertices[np.unique(self.faces)]
        return cKDTree(used), cKDTree(centroids), float(radii.max())

    @cached_property
    def normals(self) -> Array:
        """(k, 3): unit normals of the triangles; zero where one has no area."""
        return compute_unit_normals(self._corners)

    def find_nearest(self, points: Array) -> tuple[Array, Index]:
        """Find the nearest points (p, 3) of the mesh, and the triangles (p,) they lie in.

        Examples
        --------
        >>> square = Surface(np.eye(3), np.array([[0, 1, 2]]))
        >>> square.find_nearest(np.array([[1.0, 1.0, 1.0]]))[0].round(6)
        array([[0.333333, 0.333333, 0.333333]])
        """
        vertices, centroids, radii = self._trees
        bound = vertices.query(points)[0] + radii
        candidates = centroids.query_ball_point(points, bound * (1 + 1e-9))
        counts = np.array([len(faces) for faces in candidates])
        faces = np.concatenate([np.asarray(numbers, dtype=np.intp) for numbers in candidates])
        rows = np.repeat(np.arange(len(points)), counts)
        projected = _project_to_triangles(points[rows], self._corners[faces])
        squared = ((projected - points[rows]) ** 2).sum(axis=1)
        order = np.lexsort((squared, rows))
        best = order[np.concatenate([[0], np.cumsum(counts)[:-1]])]
        return projected[best], faces[best]

    def project(self, points: Array) -> Array:
        """Return the nearest points (p, 3) of the mesh."""
        return self.find_nearest(points)[0]


def _project_to_triangles(points: Array, corners: Array) -> Array:
    """Return the point (q, 3) of each triangle (q, 3, 3) that is nearest to each point (q, 3)."""
    a, b, c = np.moveaxis(corners, 1, 0)
    edges = [_project_to_segments(points, *ends) for ends in ((a, b), (b, c), (c, a))]
    on_planes, is_within = _project_to_planes(points, a, b - a, c - a)
    candidates = np.stack([*edges, on_planes])
    squared = ((candidates - points) ** 2).sum(axis=2)
    squared[3, ~is_within] = np.inf
    return np.asarray(candidates[np.argmin(squared, axis=0), np.arange(len(points))])


def _project_to_segments(points: Array, a: Array, b: Array) -> Array:
    """Project points (p, d) onto the segments from a to b (p, d), one each."""
    edge = b - a
    squared = (edge**2).sum(axis=1)
    share = ((points - a) * edge).sum(axis=1) / np.where(squared > 0, squared, 1.0)
    return np.asarray(a + np.clip(share, 0.0, 1.0)[:, None] * edge)


def _project_to_planes(points: Array, a: Array, u: Array, v: Array) -> tuple[Array, Mask]:
    """Project points onto the planes a + su + tv, and tell which feet are in the triangles.

    Parameters
    ----------
    points, a, u, v : array (p, d)
        A point each, a corner of its triangle, and the edges from that corner.
    """
    w = points - a
    uu, uv, vv = (u * u).sum(axis=1), (u * v).sum(axis=1), (v * v).sum(axis=1)
    wu, wv = (w * u).sum(axis=1), (w * v).sum(axis=1)
    area = uu * vv - uv**2
    flat = area <= 1e-14 * uu * vv
    area = np.where(flat, 1.0, area)
    s, t = (vv * wu - uv * wv) / area, (uu * wv - uv * wu) / area
    is_within = (s >= 0) & (t >= 0) & (s + t <= 1) & ~flat
    return a + s[:, None] * u + t[:, None] * v, is_within
