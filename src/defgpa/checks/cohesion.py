r"""What the visibility pattern does not show: parts of a set that hang together as by a hinge.

The cheapest direction v beyond the reference is a deformation in a sound set: no affine map of the
reference makes it. If the landmarks that link two parts lie on a line or in a plane, it is a
movement of one part against the other, and every shape, seeing one part only, takes it for an
affine map of what it sees:

    cohesion = Σ_i ‖v_i − A_i(S_i)‖² / Σ_i ‖v_i‖²,     A_i the best affine map, over what i sees.
"""

from __future__ import annotations

import numpy as np

from defgpa._arrays import Array, Mask


def cohesion(axes: Array, beyond: Array | None, visible: Mask) -> float:
    """From 0, hinged, to 1: what affine maps of the axes (m, d) leave of v (m,), shape by shape."""
    if beyond is None or visible.all():
        return 1.0  # orthogonal to the axes and to the constant vector: all of it is left
    scatter = _scatters(np.column_stack([axes, beyond]), visible)
    own, shared, whole = scatter[:, :-1, :-1], scatter[:, :-1, -1], scatter[:, -1, -1]
    explained = np.einsum("nd,nde,ne->n", shared, np.linalg.pinv(own, hermitian=True), shared)
    if not whole.sum() > np.finfo(np.float64).eps:
        return 1.0  # v is constant: as many landmarks as an affine map needs, and no more
    return float(1.0 - explained.sum() / whole.sum())


def _scatters(columns: Array, visible: Mask) -> Array:
    """(n, k, k): Σ x xᵀ of the rows (m, k) each shape sees, about their mean."""
    k, weights = columns.shape[1], visible.astype(np.float64)
    count = weights.sum(axis=1)[:, None, None]
    mean = (weights @ columns)[:, :, None] / count
    products = (columns[:, :, None] * columns[:, None, :]).reshape(-1, k * k)
    return (weights @ products).reshape(-1, k, k) - count * mean * np.swapaxes(mean, 1, 2)
