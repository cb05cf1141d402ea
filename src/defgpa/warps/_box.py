"""The padded principal box of a shape, coordinates in it, and the inverse of a warp over it.

Coordinates run from −1 to 1 along each principal axis. The box turns, moves and grows with the
shape, so whatever is defined in it does not change under similarities. No side is shorter
than a tenth of the longest: a flat shape gets a box with some room above and below it.

The paper's inverse of a warp swaps the roles of points and images and fits again: the thin-plate
spline through warp(node) ↦ node, for nodes on a grid in the box, exact there, smooth between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array, Stack
from defgpa.frames import Frames, frames_of
from defgpa.warps._family import BuiltInBasis
from defgpa.warps._thin_plate import interpolating_spline
from defgpa.warps._warp import Warp


@dataclass(frozen=True, eq=False)
class Box(Stack):
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

    def inverse_of(self, warp: Warp) -> Warp:
        """The spline that takes the images of a grid in the box of one shape back to the grid."""
        dim = self.half.shape[-1]
        nodes = self.grid(({1: 16, 2: 9, 3: 6}[dim],) * dim)  # some two hundred at most
        return interpolating_spline(warp(nodes), nodes)


def principal_box(frames: Frames, padding: float) -> Box:
    """The box around the visible points, ``padding`` times each side wider at both ends."""
    low, high = frames.box
    offset = 0.5 * (low + high)
    half = (0.5 + padding) * (high - low)
    # thinner boxes would make derivatives across them explode
    half = np.maximum(half, 0.1 * half.max(axis=-1, keepdims=True))
    middle = frames.centre + (offset[:, None, :] @ frames.axes.mT)[:, 0]
    return Box(middle, frames.axes, half)


def inverse_around(warp: Warp, landmarks: Array) -> Warp:
    """The inverse over the principal box of the landmarks (m, d), NaN where not seen."""
    seen = landmarks[~np.isnan(landmarks).any(axis=1)]
    return principal_box(frames_of(seen), padding=0.0)[0].inverse_of(warp)


class BoxedBasis(BuiltInBasis):
    """Functions that live in the box of one shape, or in those of a stack of shapes."""

    middle: Array  # (…, d): of the box
    axes: Array  # (…, d, d): its directions, as columns
    half: Array  # (…, d): half its sides

    mixing = None

    @property
    def box(self) -> Box:
        """The box the functions live in."""
        return Box(self.middle, self.axes, self.half)

    def inverted(self, warp: Warp) -> Warp:
        """An approximate inverse: the spline that takes the images of a grid in the box back."""
        return self.box.inverse_of(warp)
