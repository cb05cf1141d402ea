"""Patterns of missing landmarks: at random, a whole side, all but a slab.

Whatever the pattern, what is left is linked: every landmark is visible in at least two shapes,
and every shape has enough landmarks to be placed among the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from defgpa.arrays import Array, Mask
from defgpa.errors import ShapeError


class Missing(Protocol):
    """A pattern of missing landmarks."""

    def visible(self, truth: Array, n: int, rng: np.random.Generator) -> Mask:
        """Draw which landmarks of ``truth`` (m, d) are visible in each shape, as a mask (n, m)."""
        ...


@dataclass(frozen=True)
class AtRandom:
    """A share of all landmarks of all shapes, anywhere.

    Examples
    --------
    >>> import numpy as np
    >>> truth, rng = np.zeros((50, 2)), np.random.default_rng(0)
    >>> float(AtRandom(0.2).visible(truth, 10, rng).mean())
    0.8
    """

    share: float

    def visible(self, truth: Array, n: int, rng: np.random.Generator) -> Mask:
        """Hide a share of the landmarks at random, but none that links shapes or landmarks."""
        m = len(truth)
        hidden = _count(self.share, n * m)
        visible = np.ones((n, m), dtype=np.bool_)
        if hidden:
            priority = _protect_links(rng.random((n, m)), get_min_landmarks(truth))
            if hidden > (free := int((priority > 0).sum())):
                raise ShapeError(
                    f"{self!r} would hide so much that the shapes are no longer linked; with these "
                    f"sizes the share can be at most {free / (n * m):.2f}."
                )
            visible.flat[np.argpartition(priority, -hidden, axis=None)[-hidden:]] = False
        return visible


@dataclass(frozen=True)
class Blocks:
    """In each shape the landmarks of one side, as when a part is broken off or out of view.

    Shapes come in pairs that lose opposite sides, so that a landmark hidden in one of a pair is
    seen in the other.

    Parameters
    ----------
    share : float, at most 0.5
        Of the landmarks, in each shape that loses some.
    shapes : int, optional
        How many shapes lose some (the first ones); by default all of them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> visible = Blocks(0.3).visible(rng.normal(size=(50, 2)), 4, rng)
    >>> visible.sum(axis=1).tolist()
    [35, 35, 35, 35]
    """

    share: float
    shapes: int | None = None

    def visible(self, truth: Array, n: int, rng: np.random.Generator) -> Mask:
        """Hide one side of each shape."""
        if self.share > 0.5:
            raise ShapeError(
                f"The 'share' parameter of Blocks must be at most 0.5. Got {self.share} instead."
            )
        losing = n if self.shapes is None else self.shapes
        if not 0 <= losing <= n:
            raise ShapeError(
                f"The 'shapes' parameter of Blocks must be 0 to {n}, the number of shapes. "
                f"Got {losing} instead."
            )
        count = _count(self.share, len(truth))
        outwards = rng.normal(size=(n, truth.shape[1]))
        outwards[1::2] = -outwards[: 2 * (n // 2) : 2]
        visible = hide_sides(truth, n, dict(enumerate(outwards[:losing])), count)
        needed = get_min_landmarks(truth)
        if visible.sum(axis=0).min() < 2 or visible.sum(axis=1).min() < needed:
            raise ShapeError(
                f"{self!r} of {n} shapes with {len(truth)} landmarks leaves a landmark that fewer "
                f"than 2 shapes show, or a shape with fewer than {needed} landmarks. "
                "Hide a smaller share, or make more shapes or landmarks."
            )
        return visible


def get_min_landmarks(truth: Array) -> int:
    """Return twice the number of landmarks that an affine map needs, 2 (d + 1)."""
    return 2 * (int(truth.shape[1]) + 1)


def hide_sides(truth: Array, n: int, outwards: Mapping[int, Array], count: int) -> Mask:
    """Return visibility (n, m) without ``count`` landmarks of shapes, farthest in a direction."""
    visible = np.ones((n, len(truth)), dtype=np.bool_)
    for shape, direction in outwards.items():
        visible[shape, np.argsort(truth @ direction)[len(truth) - count :]] = False
    return visible


def _count(share: float, total: int) -> int:
    if not 0.0 <= share < 1.0:
        raise ShapeError(
            f"The share of missing landmarks must be at least 0 and below 1. Got {share} instead."
        )
    return round(share * total)


def _protect_links(priority: Array, per_shape: int) -> Array:
    """Set 0 where a landmark must stay: two shapes need it, or its shape needs it."""
    n, m = priority.shape
    landmarks_first = np.argpartition(priority, min(2, n) - 1, axis=0)[:2]
    shapes_first = np.argpartition(priority, min(per_shape, m) - 1, axis=1)[:, :per_shape]
    np.put_along_axis(priority, landmarks_first, 0.0, axis=0)
    np.put_along_axis(priority, shapes_first, 0.0, axis=1)
    return priority
