r"""What the visibility pattern does not show: parts of a set that hang together as by a hinge.

The cheapest direction v beyond the axes X of the reference is a deformation in a sound set: what a
shape sees of [X v] has a dimension more than the shape. If the landmarks that link two parts lie on
a line or in a plane, v moves one part against the other, and every shape, seeing one part only,
takes what it sees of [X v] for an affine map of itself, of no more than d dimensions:

    cohesion = (1/(k − d)) Σ_i (λ_{d+1} + … + λ_k)_i  /  (1/k) Σ_i (λ_1 + … + λ_k)_i,

λ_1 ≥ … ≥ λ_k the squared singular values of what shape i sees of the k columns, centred.
"""

from __future__ import annotations

import numpy as np

from defgpa._arrays import Array, Mask


def cohesion(axes: Array, direction: Array, visible: Mask, dim: int) -> Array:
    """(…): from 0, hinged, to 1. Of axes (…, m, k − 1), v (…, m) and visibility (…, n, m)."""
    if visible.all():
        # centred and orthonormal: all singular values are one
        return np.ones(visible.shape[:-2])
    scatter = _scatters(np.concatenate([axes, direction[..., None]], axis=-1), visible)
    k = scatter.shape[-1]
    values = np.linalg.eigvalsh(scatter).sum(axis=-2)  # ascending, as in each shape
    share = values[..., : k - dim].mean(axis=-1) / values.mean(axis=-1)
    # a constant v: as many landmarks as an affine map needs, and no more
    constant = ~(scatter[..., -1, -1].sum(axis=-1) > np.finfo(np.float64).eps)
    return np.asarray(np.where(constant, 1.0, np.maximum(share, 0.0)))


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
