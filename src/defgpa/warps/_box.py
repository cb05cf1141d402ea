"""The padded principal box of a shape, and coordinates in it.

Coordinates run from −1 to 1 along each principal axis. The box turns, moves and grows with the
shape, so whatever is defined in it does not change under similarities. No side is shorter
than a tenth of the longest: a flat shape gets a box with some room above and below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from defgpa._arrays import Array
from defgpa.frames import Frames

_LEAST_SIDE = 0.1  # of the longest: thinner boxes make derivatives across them explode


@dataclass(frozen=True, eq=False)
class Box:
    """The box of one shape, or of a stack of shapes."""

    middle: Array  # (…, d)
    axes: Array  # (…, d, d): principal axes as columns
    half: Array  # (…, d): half the sides, in the units of the data

    def local(self, points: Array) -> Array:
        """(…, p, d): coordinates in the box, within ±1 inside."""
        return ((points - self.middle[..., None, :]) @ self.axes) / self.half[..., None, :]

    def world(self, local: Array) -> Array:
        """(…, p, d): the points with these coordinates in the box."""
        return (local * self.half[..., None, :]) @ self.axes.mT + self.middle[..., None, :]

    def by_point(self, by_local: Array) -> Array:
        """(…, p, d, r): derivatives by the point, from those by its coordinates in the box."""
        return (self.axes / self.half[..., None, :])[..., None, :, :] @ by_local

    def grid(self, counts: tuple[int, ...]) -> Array:
        """(…, Π counts, d): points spread evenly over the box, its faces included."""
        ticks = [np.linspace(-1.0, 1.0, count) for count in counts]
        local = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, len(counts))
        return self.world(local)

    def __getitem__(self, shape: Any) -> Box:
        return Box(self.middle[shape], self.axes[shape], self.half[shape])


def principal_box(frames: Frames, padding: float) -> Box:
    """The box around the visible points, ``padding`` times each side wider at both ends."""
    low, high = frames.box
    offset = 0.5 * (low + high)
    half = (0.5 + padding) * (high - low)
    half = np.maximum(half, _LEAST_SIDE * half.max(axis=-1, keepdims=True))
    middle = frames.centre + (offset[:, None, :] @ frames.axes.mT)[:, 0]
    return Box(middle, frames.axes, half)
