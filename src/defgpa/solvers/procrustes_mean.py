r"""The Procrustes mean: the average of shapes of unit size, rotated onto it.

Classical generalised Procrustes analysis brings every shape to centroid size 1 and minimises

.. math:: \sum_i \lVert D_i R_i - S \rVert^2

over rotations and the mean S (Gower 1975; Rohlf & Slice 1990; geomorph's ``gpagen``): the rigid
problem of the datum space for shapes of one size.

A missing landmark is left out of the sum. The visible part of a shape is then brought to the size
of the same part of the mean, by turns with the mean: unit size is the size the shape would have if
it were complete.
"""

from __future__ import annotations

import numpy as np

from defgpa.arrays import Array
from defgpa.procrustes import RIGID, fit_motions
from defgpa.solvers.datum_space import CentredShapes
from defgpa.solvers.reference_cost import MotionMaps, ReferencePoint
from defgpa.solvers.trust_region import minimise
from defgpa.threads import use_threads

_MAX_ROUNDS = 200
_MEAN_TOLERANCE = 1e-11  # change of the mean in a round, at unit size


def fit_procrustes_mean(points: Array, start: Array) -> Array:
    """Compute the Procrustes mean of shapes that lie near a start, in its pose.

    Parameters
    ----------
    points : ndarray of shape (n_shapes, n_landmarks, n_dims)
        Shapes superimposed on the start, NaN for missing landmarks.
    start : ndarray of shape (n_landmarks, n_dims)
        Where the rotations start, and the pose of the result.

    Returns
    -------
    ndarray of shape (n_landmarks, n_dims)
        Its centroid size is the mean of those of the shapes, each as large as if it were complete.
    """
    shapes = CentredShapes.from_points(points)
    sizes, mean = np.sqrt(shapes.squared_sizes), _to_unit_size(start.T)
    with use_threads(1):  # products this thin gain nothing from a second thread
        for _ in range(_MAX_ROUNDS):
            resized = shapes.resize(_measure_visible_sizes(shapes, mean))
            pose, _ = minimise(ReferencePoint.from_reference(resized, MotionMaps(RIGID), mean))
            previous, mean = mean, _to_unit_size(pose.reference)
            if shapes.weights is None or np.linalg.norm(mean - previous) <= _MEAN_TOLERANCE:
                break
    sized = np.mean(sizes / _measure_visible_sizes(shapes, mean)) * mean.T
    return fit_motions(sized, start)(sized)


def _measure_visible_sizes(shapes: CentredShapes, mean: Array) -> Array:
    """Compute the size (n,) of the part of a mean (d, m) that each shape has."""
    squares = np.einsum("naa->n", shapes.compute_moments(mean, mean))
    squares = np.broadcast_to(squares, shapes.totals.shape)
    return np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))


def _to_unit_size(rows: Array) -> Array:
    """Centre a shape (d, m) and bring it to centroid size 1."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    return np.ascontiguousarray(centred / np.linalg.norm(centred))
