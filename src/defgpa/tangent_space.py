"""Measure sizes, and bring complete shapes into the classical tangent space of shape.

The centroid size of a shape is the norm of its landmarks about their centroid. Every shape is
centred, scaled to centroid size 1 and rotated (never mirrored) onto the mean, again and again until
the mean settles. With c the mean at unit size, shapes lie on a sphere around the origin and are
projected onto the plane that touches it in c (Dryden and Mardia, as in geomorph's ``gpagen``):

    x ← x − (x·c) c + c
"""

from __future__ import annotations

from itertools import compress

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import DegenerateShapeError, NotConvergedError, ShapeError, format_names
from defgpa.procrustes import fit_motions
from defgpa.shapes import Shapes, ShapesLike, as_specimens

_MAX_ROUNDS = 10_000


def project_complete_shapes(shapes: ShapesLike) -> Array:
    """Project shapes without missing landmarks onto the tangent space at their Procrustes mean.

    The steps of `statistics.tangent_space`, which completes shapes first.

    Parameters
    ----------
    shapes : Shapes, array (n, m, d) or list of arrays (m, d)

    Returns
    -------
    array (n, m, d)
        The projected shapes, in the pose of the first; the size of their mean is 1.
    """
    complete = require_complete(shapes, "Tangent coordinates")
    largest = np.abs(complete.points).max(axis=(1, 2), initial=0.0)
    has_no_size = measure_sizes(complete.points) <= 1e-12 * largest
    if has_no_size.any():
        raise DegenerateShapeError(
            f"All landmarks of shape {format_names(compress(complete.names, has_no_size))} are in "
            "one place: it has no size, and no shape. Drop it."
        )
    return project_onto_tangent_plane(rotate_onto_mean(scale_to_unit_size(complete.points)))


def measure_sizes(points: Array) -> Array:
    """Compute the centroid sizes (n,) of complete shapes (n, m, d)."""
    centred, units = _center_in_safe_units(points)
    return np.asarray(np.linalg.norm(centred, axis=(1, 2)) * units)


def scale_to_unit_size(points: Array) -> Array:
    """Center complete shapes (n, m, d) and scale them to centroid size 1."""
    centred, _ = _center_in_safe_units(points)
    return np.asarray(centred / np.linalg.norm(centred, axis=(1, 2))[:, None, None])


def rotate_onto_mean(shapes: Array) -> Array:
    """Rotate centred, complete shapes (n, m, d) onto their mean until it settles.

    The result has the pose of the first shape.
    """
    mean = shapes[0] / np.linalg.norm(shapes[0])
    for _ in range(_MAX_ROUNDS):
        rotated = shapes @ fit_motions(shapes, mean).rotation
        new_mean = rotated.mean(axis=0)
        new_mean /= np.linalg.norm(new_mean)
        if np.linalg.norm(new_mean - mean) <= 1e-13 * len(mean):
            return np.asarray(rotated @ fit_motions(rotated[0], shapes[0]).rotation)
        mean = new_mean
    raise NotConvergedError(
        f"The mean shape had not settled after {_MAX_ROUNDS} rounds of rotation onto it. "
        "The shapes have hardly anything in common; check the order of their landmarks."
    )


def project_onto_tangent_plane(shapes: Array) -> Array:
    """Compute x − (x·c) c + c for every shape of (n, m, d), c their mean at unit size."""
    mean = shapes.mean(axis=0)
    c = mean / np.linalg.norm(mean)
    along = np.einsum("nmd,md->n", shapes, c)
    return np.asarray(shapes + (1.0 - along)[:, None, None] * c)


def require_complete(shapes: ShapesLike, what: str) -> Shapes:
    """Return the shapes, or raise a ShapeError with the remedy if landmarks are missing."""
    specimens = as_specimens(shapes)
    partial = np.asarray(~specimens.visible.all(axis=1))
    if partial.any():
        raise ShapeError(
            f"{what} need every landmark of every shape; some are missing in "
            f"{format_names(compress(specimens.names, partial))}. Estimate them first: "
            "defgpa.complete(alignment).shapes."
        )
    return specimens


def _center_in_safe_units(points: Array) -> tuple[Array, Array]:
    """Return centred shapes (n, m, d) in units (n,) whose squares neither over- nor underflow."""
    units = np.abs(points).max(axis=(1, 2), initial=0.0)
    units = np.where((units > 1e100) | ((units < 1e-100) & (units > 0)), units, 1.0)
    scaled = points / units[:, None, None]
    return scaled - scaled.mean(axis=1, keepdims=True), units
