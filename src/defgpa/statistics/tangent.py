"""The classical shape space: rigid Procrustes analysis at unit size, then a tangent plane.

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
from defgpa.errors import DegenerateShapeError, NotConvergedError, listed
from defgpa.procrustes import stacked
from defgpa.screening import mirrored_against
from defgpa.sentences import warn_of
from defgpa.shapes import Shapes
from defgpa.statistics.sizes import ShapesLike, as_shapes, centroid_sizes, require_complete

_MOST_ROUNDS = 10_000

Analysed = Alignment | ShapesLike


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
    flat = centroid_sizes(given) <= 1e-12 * np.abs(given.points).max(axis=(1, 2))
    if flat.any():
        raise DegenerateShapeError(
            f"All landmarks of shape {listed(compress(given.names, flat))} are in one place: it "
            "has no size, and no shape. Drop it."
        )
    return projected(rotated_onto_mean(unit_size(given.points)))


def complete_shapes(x: Analysed) -> Shapes:
    """The shapes that an analysis is made of; those of an alignment lie on its reference."""
    return x.shapes.with_points(x.carried) if isinstance(x, Alignment) else as_shapes(x)


def tangents_of(shapes: Shapes) -> Array:
    """(n, m, d): tangent coordinates, with a warning where shapes are mirrored against most."""
    x = tangent_space(shapes)
    warn_of(mirrored_against(x.mean(axis=0), shapes), stacklevel=4)
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


def unit_size(points: Array) -> Array:
    """Complete shapes (n, m, d) about their centroids, at centroid size 1."""
    centred = points - points.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.linalg.norm(centred, axis=(1, 2))[:, None, None])


def _unit(shape: Array) -> Array:
    return np.asarray(shape / np.linalg.norm(shape))
