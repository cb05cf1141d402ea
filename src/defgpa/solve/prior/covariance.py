r"""How large, and in what proportions: the covariance of the reference, from the shapes.

The shape constraint SᵀS = Λ needs a Λ. Algorithm 1 of the paper takes it from rigidity: the
singular values √λ_i of each (completed, centred) shape, scaled to unit length, have a common
direction, the leading left singular vector of the d × n matrix of them; times their mean length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from defgpa._arrays import Array, transposed
from defgpa._threads import blocks, in_blocks
from defgpa.errors import DegenerateShapeError, listed
from defgpa.frames import Frames
from defgpa.solve.prior.completion import SHAPES_AT_A_TIME, completed


def covariance_prior(frames: Frames, names: Sequence[str]) -> Array:
    """(d,): Λ, the eigenvalues of the reference covariance, largest first."""
    if frames.whole:
        return common_eigenvalues(frames.extents)
    whole = completed(frames)
    stuck = np.isnan(whole[..., 0]).any(axis=1)
    if stuck.any():
        culprits = [names[int(i)] for i in np.flatnonzero(stuck)]
        raise DegenerateShapeError(
            f"Shape {listed(culprits)} shares only collinear or coincident landmarks with the "
            "others, so its missing landmarks cannot be estimated. Drop it, or state the "
            "proportions of the reference yourself: DefGPA(warp, scale=[...])."
        )
    everything = np.ones(whole.shape[:2], dtype=bool)
    parts = blocks(len(whole), SHAPES_AT_A_TIME)
    extents = in_blocks(lambda part: Frames(whole[part], everything[part]).extents, parts)
    return common_eigenvalues(np.concatenate(extents))


def common_eigenvalues(extents: Array) -> Array:
    """Λ from the singular values (…, n, d) of the shapes, largest first; for stacks of sets too."""
    lengths = np.linalg.norm(extents, axis=-1)
    directions = extents / lengths[..., None]
    _, vectors = np.linalg.eigh(transposed(directions) @ directions)
    leading = np.abs(vectors[..., -1])  # all entries of the matrix are ≥ 0, so the vector is too
    return np.asarray((lengths.mean(axis=-1, keepdims=True) * leading) ** 2)
