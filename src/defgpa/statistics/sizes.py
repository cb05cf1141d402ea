"""How large a shape is: the distance of its landmarks from their centroid, all together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
from numpy.typing import ArrayLike

from defgpa._arrays import Array
from defgpa.alignment import Alignment
from defgpa.errors import ShapeError, listed
from defgpa.procrustes import SIMILARITY, stacked
from defgpa.shapes import Shapes

ShapesLike = Shapes | ArrayLike | Sequence[ArrayLike]


def centroid_sizes(shapes: ShapesLike | Alignment) -> Array:
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
        own = shapes.shapes.points
        scale = stacked(own, shapes.reference, motions=SIMILARITY).scale
        return np.asarray(_sizes(filled(shapes)) / scale)
    return _sizes(require_complete(shapes, "Centroid sizes").points)


def filled(alignment: Alignment) -> Array:
    """(n, m, d): superimposed where a landmark was seen, the carried reference where not."""
    found = alignment.superimposed
    if alignment.shapes.visible.all():
        return found
    return np.where(alignment.shapes.visible[..., None], found, alignment.carried)


def _sizes(points: Array) -> Array:
    centred = points - points.mean(axis=1, keepdims=True)
    return np.asarray(np.linalg.norm(centred, axis=(1, 2)))


def as_shapes(shapes: ShapesLike) -> Shapes:
    """Shapes as they are, arrays as specimens."""
    return shapes if isinstance(shapes, Shapes) else Shapes.specimens(shapes)


def require_complete(shapes: ShapesLike, what: str) -> Shapes:
    """The shapes, if no landmark is missing; otherwise a ShapeError that says what helps."""
    given = as_shapes(shapes)
    partial = np.asarray(~given.visible.all(axis=1))
    if partial.any():
        raise ShapeError(
            f"{what} need every landmark of every shape; some are missing in "
            f"{listed(compress(given.names, partial))}. Estimate them first: "
            "defgpa.complete(alignment).shapes."
        )
    return given
