r"""What the visibility pattern does not show: parts of a set that hang together as by a hinge.

The cheapest direction v beyond the reference is a deformation in a sound set: no affine map of the
reference makes it. If the landmarks that link two parts lie on a line or in a plane, it is a
movement of one part against the other, and every shape, seeing one part only, takes it for an
affine map of what it sees:

    cohesion = Σ_i ‖v_i − A_i(X_i)‖² / Σ_i ‖v_i‖²,     A_i the best affine map, over what i sees.

Where motions or affine maps are fitted there is no such direction to look at. There two parts hold
together if the landmarks they share are spread enough against the noise: with σ their spread along
the axis that must not vanish, one part may be turned against the other by about noise / σ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from defgpa._arrays import Array, Mask
from defgpa.checks.shapes import groups_by
from defgpa.findings import Finding, Kind
from defgpa.tuning import Tuning


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
    count = np.maximum(weights.sum(axis=-1), 1.0)[..., None, None]
    mean = (weights @ columns)[..., :, None] / count
    products = columns[..., :, None] * columns[..., None, :]
    squares = weights @ products.reshape(*columns.shape[:-1], k * k)
    return np.asarray(
        squares.reshape(*squares.shape[:-1], k, k) - count * mean * np.swapaxes(mean, -1, -2)
    )


def hinge_findings(
    reference: Array,
    visible: Mask,
    rank: int,
    noise: float,
    names: Sequence[str],
    tuning: Tuning,
) -> tuple[Finding, ...]:
    """One finding that names the shapes of the smaller parts; none if all hold together.

    Of a reference (m, d) and visibility (n, m). What links parts must extend along ``rank`` axes:
    d − 1 for motions, which a line leaves open in 3-D, d for affine maps. ``noise`` is the RMS
    distance of the landmarks from the reference.
    """
    if visible.all():
        return ()

    def stiff(shared: Mask) -> Mask:
        spread = np.linalg.eigvalsh(_scatters(reference, shared))[:, -rank]
        enough = spread * tuning.loose_angle**2 > noise**2
        return np.asarray(enough & (shared.sum(axis=1) > rank))

    groups = groups_by(visible, stiff)
    if len(groups) == 1:
        return ()
    smaller = np.sort(np.concatenate(groups[1:]))
    parts = {"parts": float(len(groups))}
    return (Finding(Kind.HINGE, shapes=tuple(names[i] for i in smaller), figures=parts),)
