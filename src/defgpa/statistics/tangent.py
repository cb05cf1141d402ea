"""Sizes, and the classical shape space: rigid Procrustes analysis at unit size, a tangent plane.

The centroid size of a shape is the distance of its landmarks from their centroid, all together.
Every shape is centred, brought to centroid size 1 and rotated (never mirrored) onto the mean,
again and again until the mean settles. With c the mean at unit size, shapes lie on a sphere
around the origin and are projected onto the plane that touches it in c:

    x ← x − (x·c) c + c

Statistics are made of complete shapes. An alignment carries every landmark of its reference into
each shape, ĝ_i = warp_i⁻¹(S): complete where landmarks are missing, and the smooth part of the
variation. Shapes without an alignment are taken as measured.
"""

from __future__ import annotations

from itertools import compress

import numpy as np

from defgpa._arrays import Array
from defgpa.alignment import Alignment
from defgpa.diagnostics.screening import mirrored_against
from defgpa.diagnostics.wording import warn_of
from defgpa.errors import DegenerateShapeError, NotConvergedError, ShapeError, listed
from defgpa.procrustes import stacked
from defgpa.shapes import Shapes, ShapesLike

_MOST_ROUNDS = 10_000

Analysed = Alignment | ShapesLike


def centroid_sizes(shapes: Analysed) -> Array:
    """(n,): the centroid size of every shape, √Σ ‖x − centroid‖² over its landmarks.

    Parameters
    ----------
    shapes : Shapes, array (n, m, d), list of arrays (m, d), or Alignment
        Without missing landmarks, which would make a shape smaller than it is; those of an
        alignment are taken from the reference carried into the shape.

    Examples
    --------
    >>> square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    >>> centroid_sizes([square]).round(6)
    array([1.414214])
    """
    if isinstance(shapes, Alignment):
        return np.asarray(_sizes(filled(shapes)) / shapes.similarities.scale)
    return _sizes(require_complete(shapes, "Centroid sizes").points)


def tangent_space(shapes: ShapesLike) -> Array:
    """(n, m, d): the shapes in the tangent space at their Procrustes mean, as geomorph's gpagen.

    Pose and size are removed, deformation is kept; the pose is that of the first shape.

    Parameters
    ----------
    shapes : Shapes, array (n, m, d) or list of arrays (m, d)
        Without missing landmarks; complete them first with ``defgpa.complete``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> shapes = 7.0 * (rng.normal(size=(12, 2)) + 0.1 * rng.normal(size=(5, 12, 2)))
    >>> x = tangent_space(shapes)
    >>> x.shape, float(np.linalg.norm(x.mean(axis=0)).round(9))
    ((5, 12, 2), 1.0)
    """
    given = require_complete(shapes, "Tangent coordinates")
    flat = _sizes(given.points) <= 1e-12 * np.abs(given.points).max(axis=(1, 2))
    if flat.any():
        raise DegenerateShapeError(
            f"All landmarks of shape {listed(compress(given.names, flat))} are in one place: it "
            "has no size, and no shape. Drop it."
        )
    return projected(rotated_onto_mean(unit_size(given.points)))


def as_specimens(shapes: ShapesLike) -> Shapes:
    """Shapes as they are, arrays as specimens."""
    return shapes if isinstance(shapes, Shapes) else Shapes.specimens(shapes)


def require_complete(shapes: ShapesLike, what: str) -> Shapes:
    """The shapes, if no landmark is missing; otherwise a ShapeError that says what helps."""
    given = as_specimens(shapes)
    partial = np.asarray(~given.visible.all(axis=1))
    if partial.any():
        raise ShapeError(
            f"{what} need every landmark of every shape; some are missing in "
            f"{listed(compress(given.names, partial))}. Estimate them first: "
            "defgpa.complete(alignment).shapes."
        )
    return given


def filled(alignment: Alignment) -> Array:
    """(n, m, d): superimposed where a landmark was seen, the carried reference where not."""
    found = alignment.superimposed
    if alignment.shapes.visible.all():
        return found
    return np.where(alignment.shapes.visible[..., None], found, alignment.back_projected)


def complete_shapes(x: Analysed) -> Shapes:
    """The shapes that an analysis is made of; those of an alignment lie on its reference."""
    return x.shapes.with_points(x.back_projected) if isinstance(x, Alignment) else as_specimens(x)


def tangents_of(shapes: Shapes) -> Array:
    """(n, m, d): tangent coordinates, with a warning where shapes are mirrored against most."""
    x = tangent_space(shapes)
    warn_of(mirrored_against(x.mean(axis=0), shapes))
    return x


def rotated_onto_mean(shapes: Array) -> Array:
    """Centred shapes (n, m, d) rotated onto their mean until it settles, in the first one's pose.

    Hidden landmarks must not be among them.
    """
    mean = _unit(shapes[0])
    for _ in range(_MOST_ROUNDS):
        turned = shapes @ stacked(shapes, mean).rotation
        settled = _unit(turned.mean(axis=0))
        if np.linalg.norm(settled - mean) <= 1e-13 * len(mean):
            return np.asarray(turned @ stacked(turned[0], shapes[0]).rotation)
        mean = settled
    raise NotConvergedError(
        f"The mean shape had not settled after {_MOST_ROUNDS} rounds of rotation onto it. "
        "The shapes have hardly anything in common; check the order of their landmarks."
    )


def projected(shapes: Array) -> Array:
    """x − (x·c) c + c for every shape, c their mean at unit size."""
    c = _unit(shapes.mean(axis=0))
    along = np.einsum("nmd,md->n", shapes, c)
    return np.asarray(shapes + (1.0 - along)[:, None, None] * c)


def _sizes(points: Array) -> Array:
    centred = points - points.mean(axis=1, keepdims=True)
    return np.asarray(np.linalg.norm(centred, axis=(1, 2)))


def unit_size(points: Array) -> Array:
    """Complete shapes (n, m, d) about their centroids, at centroid size 1."""
    centred = points - points.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.linalg.norm(centred, axis=(1, 2))[:, None, None])


def _unit(shape: Array) -> Array:
    return np.asarray(shape / np.linalg.norm(shape))
