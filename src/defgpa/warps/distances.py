"""Squared distances by differences.

Not by ‖x‖² + ‖c‖² − 2x·c: near a control point a kernel has a logarithm or a square root, and what
cancellation leaves there would be wrong in the leading digits.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from defgpa.arrays import Array
from defgpa.threads import split_range

BLOCK_BYTES = 512 << 10  # of distances or columns: what is read again is still in the cache
TINY = float(np.finfo(np.float64).tiny)  # 0 · log(TINY) is exactly 0


def compute_squared_distances(points: Array, centres: Array) -> Array:
    """Compute ‖x − c‖² (…, p, k) of every point (…, p, d) and centre (…, k, d)."""
    if points.ndim == 2:
        return np.asarray(cdist(points, centres, "sqeuclidean"))
    # of more pairs, one compiled pass per shape beats broadcasting over shapes
    if points.shape[-2] * centres.shape[-2] < 16384:
        return _compute_by_broadcasting(points, centres)
    total = np.empty((*points.shape[:-1], centres.shape[-2]))
    for shape in np.ndindex(points.shape[:-2]):
        cdist(points[shape], centres[shape], "sqeuclidean", out=total[shape])
    return total


def _compute_by_broadcasting(points: Array, centres: Array) -> Array:
    """Compute distances (n, p, k) of many small shapes (n, p, d), several of them in one pass.

    In memory the points of a shape lie side by side, (n, k, p): runs as long as they can be.
    """
    x, c = np.ascontiguousarray(points.mT)[:, :, None], np.ascontiguousarray(centres.mT)[..., None]
    total = np.empty((len(points), centres.shape[-2], points.shape[-2]))
    size = max(1, BLOCK_BYTES // total[:1].nbytes)
    step = np.empty((min(size, len(total)), *total.shape[1:]))
    for block in split_range(len(total), size):
        sums, along = total[block], step[: len(total[block])]
        np.square(np.subtract(x[block, 0], c[block, 0], out=sums), out=sums)
        for axis in range(1, points.shape[-1]):
            np.square(np.subtract(x[block, axis], c[block, axis], out=along), out=along)
            sums += along
    return total.mT
