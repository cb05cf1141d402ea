r"""What the visibility pattern does not show: parts of a set that hang together as by a hinge.

The cheapest direction v beyond the reference is a deformation in a sound set: no affine map of the
reference makes it. If the landmarks that link two parts lie on a line or in a plane, it is a
movement of one part against the other, and every shape, seeing one part only, takes it for an
affine map of what it sees:

    cohesion = Σ_i ‖v_i − A_i(X_i)‖² / Σ_i ‖v_i‖²,     A_i the best affine map, over what i sees.
"""

from __future__ import annotations

import numpy as np

from defgpa._arrays import Array, Mask


def cohesion(axes: Array, direction: Array, visible: Mask) -> Array:
    """(…): from 0, hinged, to 1. Of axes (…, m, k), v (…, m) and visibility (…, n, m)."""
    if visible.all():
        # orthogonal to the axes and to the constant vector: all of v is left
        return np.ones(visible.shape[:-2])
    scatter = _scatters(np.concatenate([axes, direction[..., None]], axis=-1), visible)
    own, shared, whole = scatter[..., :-1, :-1], scatter[..., :-1, -1], scatter[..., -1, -1]
    inverse = np.linalg.pinv(own, hermitian=True)
    explained = np.einsum("...d,...de,...e->...", shared, inverse, shared).sum(axis=-1)
    total = whole.sum(axis=-1)
    # a constant v: as many landmarks as an affine map needs, and no more
    constant = ~(total > np.finfo(np.float64).eps)
    return np.asarray(np.where(constant, 1.0, 1.0 - explained / np.where(constant, 1.0, total)))


def _scatters(columns: Array, visible: Mask) -> Array:
    """(…, n, k, k): Σ x xᵀ of the rows of columns (…, m, k) each shape sees, about their mean."""
    k, weights = columns.shape[-1], visible.astype(np.float64)
    count = weights.sum(axis=-1)[..., None, None]
    mean = (weights @ columns)[..., :, None] / count
    products = columns[..., :, None] * columns[..., None, :]
    squares = weights @ products.reshape(*columns.shape[:-1], k * k)
    return np.asarray(
        squares.reshape(*squares.shape[:-1], k, k) - count * mean * np.swapaxes(mean, -1, -2)
    )
