"""Left or right: the reference takes the side of the majority of the shapes.

An eigenvector may be negated at will, and a mirrored reference fits as well as the right one. A
shape prefers the side of the orthogonal Procrustes rotation onto the reference, the sign of
the determinant of their cross-covariance; how strongly, is how much worse the other side fits.
With singular values s₁ ≥ … ≥ s_d of the cross-covariance, the best similarity leaves

    1 − (s₁ + … + s_d)² / (‖D‖² ‖S‖²)   on the preferred side,   1 − (s₁ + … − s_d)² / (‖D‖² ‖S‖²)

on the other. A sheet that bends both ways prefers a side by chance and slightly; a mirrored
specimen does so clearly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array, Index, Mask, transposed
from defgpa.polar import on_both_sides

_CLEARLY = 4.0  # the other side must leave four times the squared error: twice the RMS
_FLAT = 1e-12  # twice the smallest singular value over their sum: below, a shape has no side


@dataclass(frozen=True, eq=False)
class Sides:
    """Which side each shape is on."""

    preferred: Index  # (n,): +1 the side of the axes, −1 the other, 0 if both are the same
    clear: Mask  # (n,): whether it can tell

    @property
    def votes(self) -> Index:
        """(n,): +1, −1, or 0 for a shape that cannot tell."""
        return np.where(self.clear, self.preferred, 0)

    @property
    def majority(self) -> int:
        """+1 or −1: the side of most shapes that can tell, or failing those, of most shapes."""
        for votes in (self.votes, self.preferred):
            if votes.sum() != 0:
                return int(np.sign(votes.sum()))
        return 1


def sides(centred: Array, visible: Mask, axes: Array) -> Sides:
    """The sides of shapes (n, m, d), about their centroids with hidden points zero."""
    target = axes - axes.mean(axis=0)
    # the points are about their means: so are the cross-covariances
    same, mirrored = on_both_sides(transposed(centred) @ target)
    size = np.einsum("nmd,nmd->n", centred, centred) * _scatter(target, visible)
    better, worse = np.maximum(same, mirrored), np.minimum(same, mirrored)
    left = np.maximum(1.0 - better**2 / size, np.finfo(np.float64).eps)
    # of a flat shape both sides are the same but for rounding, which prefers nothing
    preferred = (same - mirrored > _FLAT * better).astype(np.intp)
    preferred -= mirrored - same > _FLAT * better
    return Sides(preferred, 1.0 - worse**2 / size > _CLEARLY * left)


def _scatter(axes: Array, visible: Mask) -> Array:
    """(n,) or one for all: Σ ‖x − mean‖² of the axes over what each shape sees."""
    if visible.all():
        return np.asarray(np.vdot(axes, axes))
    seen = visible.astype(np.float64)
    total = seen @ axes
    return np.asarray(
        seen @ (axes * axes).sum(axis=1) - (total * total).sum(axis=1) / seen.sum(axis=1)
    )
