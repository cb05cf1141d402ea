"""Left or right: the reference takes the side of the majority of the shapes.

An eigenvector may be negated at will, and a mirrored reference fits as well as the right one. The
sign of det of the orthogonal Procrustes rotation between a shape and the reference is
that of the determinant of their cross-covariance.
"""

from __future__ import annotations

import numpy as np

from defgpa._arrays import Array, Index, Mask

_FLAT = 1e-6  # relative: below, the sign of the determinant is rounding or noise, not a side


def handedness(centred: Array, visible: Mask, axes: Array) -> Index:
    """(n,): +1 where a shape has the side of the axes, −1 where it is mirrored, 0 where flat.

    ``centred`` (n, m, d) are the shapes about their centroids, hidden points zero.
    """
    cross = np.swapaxes(centred, -1, -2) @ _recentred(axes, visible)
    determinant = np.linalg.det(cross)
    size = np.linalg.norm(cross, axis=(-2, -1)) ** cross.shape[-1]
    votes = np.where(np.abs(determinant) > _FLAT * size, np.sign(determinant), 0.0)
    return np.asarray(votes, dtype=np.intp)


def faces_the_majority(votes: Index) -> bool:
    """Whether at least half of the shapes that can tell lie on the side of the axes."""
    return int(votes.sum()) >= 0


def _recentred(axes: Array, visible: Mask) -> Array:
    """The axes about the centroid of what each shape sees: (m, d), or (n, m, d)."""
    if visible.all():
        return axes - axes.mean(axis=0)
    means = visible.astype(np.float64) @ axes / visible.sum(axis=1)[:, None]
    return np.asarray(axes - means[:, None, :])
