"""The three spaces of an alignment, each a function of points, warps and the reference.

Aligned: through the warps, deformation removed. Superimposed: by similarity alone, deformation
kept. Carried: the reference brought into each shape by the inverse of its warp, ĝ = warp⁻¹(S),
then moved by the same similarity: complete, and as smooth as the warp.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from defgpa._arrays import Array, own_threads
from defgpa.procrustes import SIMILARITY, Motion, stacked
from defgpa.warps import Warp

OUTPUTS = ("aligned", "superimposed", "carried")


def warped(points: Array, warps: Sequence[Warp]) -> Array:
    """(n, m, d): every shape through its warp; NaN where a landmark was not seen."""
    return np.stack([warp(own) for warp, own in zip(warps, points, strict=True)])


def similarities(points: Array, reference: Array) -> Motion:
    """Of every shape (n, m, d) onto the reference, over what it sees.

    Nothing is mirrored: a specimen of the other side keeps its own.
    """
    return stacked(points, reference, motions=SIMILARITY)


def superimposed(points: Array, reference: Array) -> Array:
    """(n, m, d): every shape by its similarity onto the reference, deformation kept."""
    return np.asarray(similarities(points, reference)(points))


def brought_back(warps: Sequence[Warp], reference: Array) -> Array:
    """(n, m, d): ĝ_i = warp_i⁻¹(S), where each shape lies."""
    with own_threads():
        return np.stack([warp.inverse()(reference) for warp in warps])


def carried(points: Array, warps: Sequence[Warp], reference: Array) -> Array:
    """(n, m, d): ĝ_i in the pose that superimposes shape i; nothing is missing."""
    pose = similarities(points, reference)
    return np.asarray(pose(brought_back(warps, reference)))


def in_space(output: str, points: Array, warps: Sequence[Warp], reference: Array) -> Array:
    """(n, m, d): the shapes in one of the spaces, by its name."""
    if output == "superimposed":
        return superimposed(points, reference)
    if output == "carried":
        return carried(points, warps, reference)
    if output == "aligned":
        return warped(points, warps)
    raise ValueError(
        f"The 'output' parameter must be 'aligned' (through the warps, deformation removed), "
        f"'superimposed' (by similarity, deformation kept) or 'carried' (the reference carried "
        f"into each shape). Got {output!r} instead."
    )
