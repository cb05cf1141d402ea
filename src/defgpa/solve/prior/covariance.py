r"""How large, and in what proportions: the covariance of the reference, from the shapes.

The shape constraint SᵀS = Λ needs a Λ. Algorithm 1 of the paper takes it from rigidity: the
singular values √λ_i of each (completed, centred) shape, scaled to unit length, have a common
direction, the leading left singular vector of the d × n matrix of them; times their mean length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from defgpa._arrays import Array, blocks
from defgpa.errors import DegenerateShapeError, listed
from defgpa.frames import Frames
from defgpa.solve.prior.completion import (
    LocalParts,
    Parts,
    completed_by_pairs,
    completed_through_one,
    extents_of_blocks,
    extents_of_groups,
)

_PAIRED = 128  # shapes: 16,384 pairs


def covariance_prior(
    frames: Frames, names: Sequence[str], paired: int = _PAIRED, at_a_time: int = 512
) -> Array:
    """(d,): Λ, the eigenvalues of the reference covariance, largest first.

    Up to ``paired`` shapes complete each other in pairs; more of them, ``at_a_time`` so that what
    they become stays in the cache, through one.
    """
    if frames.whole:
        return common_eigenvalues(frames.extents)
    points = np.where(frames.visible[..., None], frames.points, np.nan)
    parts = blocks(len(points), at_a_time)
    return prior_of_parts(
        lambda: LocalParts([points]),
        lambda: LocalParts([points[part] for part in parts]),
        names,
        paired,
    )


def prior_of_parts(
    landmark_blocks: Callable[[], Parts],
    groups: Callable[[], Parts],
    names: Sequence[str],
    paired: int = _PAIRED,
) -> Array:
    """(d,): the same of shapes that come in blocks of landmarks, or in groups of whole shapes."""
    if len(names) <= paired:
        extents = extents_of_blocks(completed_by_pairs(landmark_blocks()))
    else:
        extents = extents_of_groups(completed_through_one(groups()))
    stuck = np.flatnonzero(np.isnan(extents).any(axis=1))
    if len(stuck):
        raise DegenerateShapeError(
            f"Shape {listed(names[int(i)] for i in stuck)} shares only collinear or coincident "
            "landmarks with the others, so its missing landmarks cannot be estimated. Drop it, or "
            "state the proportions of the reference yourself: DefGPA(warp, proportions=[...])."
        )
    return common_eigenvalues(extents)


def common_eigenvalues(extents: Array) -> Array:
    """Λ from the singular values (…, n, d) of the shapes, largest first; for stacks of sets too."""
    lengths = np.linalg.norm(extents, axis=-1)
    directions = extents / lengths[..., None]
    _, vectors = np.linalg.eigh(directions.mT @ directions)
    leading = np.abs(vectors[..., -1])  # all entries of the matrix are ≥ 0, so the vector is too
    return np.asarray((lengths.mean(axis=-1, keepdims=True) * leading) ** 2)
