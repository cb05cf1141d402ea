"""Warp meshes and clouds of points, and colour meshes by error.

A warp moves vertices and nothing else: faces, colours and scalar fields stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index
from defgpa.errors import ShapeError, warn
from defgpa.io.mesh.files import read_mesh, write_mesh
from defgpa.io.mesh.mesh import Mesh

__all__ = [
    "Mesh",
    "add_scalar",
    "make_aligned_mesh",
    "make_reference_mesh",
    "read_mesh",
    "warp_mesh",
    "warp_points",
    "write_mesh",
]

Mapping = Callable[[ArrayLike], Array]


def warp_points(points: ArrayLike, warp: Mapping) -> Array:
    """Warp points (…, d), whatever their leading axes; NaN stays NaN.

    Parameters
    ----------
    points : array (…, d)
        A cloud (p, d), a stack of shapes (n, m, d), a volume of points (a, b, c, d).
    warp : callable
        ``alignment.warps[i]``, its ``inverse()`` or ``exact_inverse()``, or any function from
        (p, d) to (p, d).

    Returns
    -------
    ndarray (…, d)
        The warped points, with the same leading axes.

    Examples
    --------
    >>> import numpy as np
    >>> warp_points(np.zeros((4, 5, 3)), lambda points: points + 1.0).shape
    (4, 5, 3)
    """
    array = np.asarray(points, dtype=np.float64)
    if array.ndim < 1:
        raise ShapeError("Points to warp must be an array (…, d); got a single number.")
    flat = array.reshape(-1, array.shape[-1])
    unknown = np.asarray(np.isnan(flat).any(axis=1))
    moved = warp(np.where(unknown[:, None], np.nan, flat))
    n_lost = int((np.isnan(moved[:, 0]) & ~unknown).sum())
    if n_lost > 0:
        warn(
            f"{n_lost} of {len(moved)} points have no image under this inverse and are NaN: the "
            "warp folds, or never reaches them. warp.inverse() gives an approximate image."
        )
    return moved.reshape(array.shape)


def warp_mesh(mesh: Mesh, warp: Mapping) -> Mesh:
    """Warp the vertices of a mesh; faces, colours and scalar fields stay.

    Parameters
    ----------
    mesh : Mesh
        In the space of a shape (or of the reference, for an inverse).
    warp : callable
        As in ``warp_points``.

    Returns
    -------
    Mesh
        Vertices in a fixed order, with triangles, colours and scalar fields.

    Examples
    --------
    >>> corner = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> moved = warp_mesh(corner, lambda points: points + [0, 0, 5])
    >>> moved, moved.vertices[0].tolist()
    (Mesh(3 vertices, 1 faces), [0.0, 0.0, 5.0])
    """
    return replace(mesh, vertices=warp_points(mesh.vertices, warp))


def add_scalar(mesh: Mesh, name: str, values: ArrayLike) -> Mesh:
    """Add a scalar field, one number per vertex under a name, to a mesh.

    Examples
    --------
    >>> add_scalar(Mesh([[0, 0, 0], [1, 0, 0]]), "error", [0.1, 0.2])
    Mesh(2 vertices, 0 faces, 'error')
    """
    return replace(mesh, scalars={**mesh.scalars, name: np.asarray(values, dtype=np.float64)})


def make_reference_mesh(alignment: Alignment, faces: ArrayLike | None = None) -> Mesh:
    """Make a mesh of the reference, with the error of the shapes at each landmark.

    The scalar field ``error`` is √(mean ‖warp_i(D_i) − S‖²) of each landmark, over the shapes that
    have it; ``views`` is their number.

    Parameters
    ----------
    alignment : Alignment
        Of shapes in 3-D.
    faces : array (k, 3) of int, optional
        Triangles over the landmarks; by default those of the shapes, if they have any.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> shapes = np.random.default_rng(0).normal(size=(1, 30, 3)) * [3, 2, 1]
    >>> shapes = shapes + 0.1 * np.sin(2 * shapes + np.arange(5)[:, None, None])
    >>> make_reference_mesh(defgpa.DefGPA(defgpa.Affine()).fit(shapes).alignment_)
    Mesh(30 vertices, 0 faces, 'error', 'views')
    """
    error = np.sqrt(np.nanmean(alignment.residuals**2, axis=0))
    mesh = _make_landmark_mesh(alignment, alignment.reference, faces)
    views = alignment.shapes.views.astype(np.float64)
    return replace(mesh, scalars={"error": error, "views": views})


def make_aligned_mesh(
    alignment: Alignment, shape: int | str, faces: ArrayLike | None = None
) -> Mesh:
    """Make a mesh of one shape, warped onto the reference, with its ``error`` at each landmark.

    A landmark that the shape lacks stands where the reference has it, with error NaN.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> shapes = np.random.default_rng(0).normal(size=(1, 30, 3)) * [3, 2, 1]
    >>> shapes = shapes + 0.1 * np.sin(2 * shapes + np.arange(5)[:, None, None])
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(shapes).alignment_
    >>> make_aligned_mesh(a, "shape_2", faces=[[0, 1, 2]])
    Mesh(30 vertices, 1 faces, 'error')
    """
    i = alignment.shapes.index(shape)
    visible = alignment.shapes.visible[i]
    vertices = np.where(visible[:, None], alignment.aligned[i], alignment.reference)
    return add_scalar(
        _make_landmark_mesh(alignment, vertices, faces), "error", alignment.residuals[i]
    )


def _make_landmark_mesh(alignment: Alignment, vertices: Array, faces: ArrayLike | None) -> Mesh:
    if alignment.shapes.n_dims != 3:
        raise ShapeError(
            f"A mesh has vertices in 3-D, and these shapes are {alignment.shapes.n_dims}-D."
        )
    triangles: ArrayLike | Index | None = alignment.shapes.faces if faces is None else faces
    return Mesh(vertices) if triangles is None else Mesh(vertices, np.asarray(triangles))
