"""What statistics analyse, by itself: superimposed coordinates of specimens, and their sizes."""

from __future__ import annotations

from defgpa.arrays import Array
from defgpa.statistics.sample import Analysed, build_sample


def tangent_space(x: Analysed) -> Array:
    """Project specimens onto the tangent space at their Procrustes mean, as geomorph's ``gpagen``.

    Pose and size are removed, deformation is kept; the pose is that of the first specimen.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or list of arrays (m, d)
        Missing landmarks are completed; `build_sample` also says how many.

    Returns
    -------
    array (n, m, d)
        The projected shapes; the size of their mean is 1.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> shapes = 7.0 * (rng.normal(size=(12, 2)) + 0.1 * rng.normal(size=(5, 12, 2)))
    >>> x = tangent_space(shapes)
    >>> x.shape, float(np.linalg.norm(x.mean(axis=0)).round(9))
    ((5, 12, 2), 1.0)
    """
    sample = build_sample(x)
    return sample.compute_tangents(sample.shapes.points)


def centroid_sizes(x: Analysed) -> Array:
    """Compute the centroid size of every specimen, √Σ ‖x − centroid‖² over its landmarks.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or list of arrays (m, d)
        Missing landmarks, which would make a specimen smaller than it is, are completed first.

    Returns
    -------
    array (n,)
        In the units of the specimens.

    Examples
    --------
    >>> square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    >>> centroid_sizes([square]).round(6)
    array([1.414214])
    """
    return build_sample(x).sizes
