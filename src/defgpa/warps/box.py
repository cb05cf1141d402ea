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

from defgpa.arrays import Array, Stack
from defgpa.geometry import Geometry, measure_points
from defgpa.warps.base import FactoredBasis
from defgpa.warps.thin_plate import fit_interpolating_spline
from defgpa.warps.warp import Warp


@dataclass(frozen=True, eq=False)
class Box(Stack):
    """The box of one shape, or of a stack of shapes."""

    middle: Array  # (…, d)
    axes: Array  # (…, d, d): principal axes as columns
    half: Array  # (…, d): half the sides, in the units of the data

    def to_local(self, points: Array) -> Array:
        """Return the (…, p, d) coordinates of points in the box, within ±1 inside."""
        return ((points - self.middle[..., None, :]) @ self.axes) / self.half[..., None, :]

    def to_world(self, local: Array) -> Array:
        """Return the points (…, p, d) with these coordinates in the box."""
        return (local * self.half[..., None, :]) @ self.axes.mT + self.middle[..., None, :]

    def chain_gradients(self, by_local: Array) -> Array:
        """Return derivatives (…, p, d, r) by the point from those by its coordinates in the box."""
        return (self.axes / self.half[..., None, :])[..., None, :, :] @ by_local

    def make_grid(self, counts: tuple[int, ...]) -> Array:
        """Return (…, Π counts, d) points spread evenly over the box, its faces included."""
        ticks = [np.linspace(-1.0, 1.0, count) for count in counts]
        local = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, len(counts))
        return self.to_world(local)

    def approximate_inverse(self, warp: Warp) -> Warp:
        """Return the spline that takes the images of a grid in the box of one shape back to it."""
        dim = self.half.shape[-1]
        nodes = self.make_grid(({1: 16, 2: 9, 3: 6}[dim],) * dim)  # some two hundred at most
        return fit_interpolating_spline(warp(nodes), nodes)


def make_principal_box(geometry: Geometry, padding: float) -> Box:
    """Make the box around the visible points, ``padding`` times each side wider at both ends."""
    low, high = geometry.principal_box
    offset = 0.5 * (low + high)
    half = (0.5 + padding) * (high - low)
    # thinner boxes would make derivatives across them explode
    half = np.maximum(half, 0.1 * half.max(axis=-1, keepdims=True))
    middle = geometry.centre + (offset[:, None, :] @ geometry.axes.mT)[:, 0]
    return Box(middle, geometry.axes, half)


def approximate_inverse_around(warp: Warp, landmarks: Array) -> Warp:
    """Return the inverse over the principal box of the landmarks (m, d), NaN where missing."""
    visible = landmarks[~np.isnan(landmarks).any(axis=1)]
    return make_principal_box(measure_points(visible), padding=0.0)[0].approximate_inverse(warp)


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxedBasis(FactoredBasis):
    """Functions that live in the box of one shape, or in those of a stack of shapes."""

    middle: Array  # (…, d): of the box
    axes: Array  # (…, d, d): its directions, as columns
    half: Array  # (…, d): half its sides
    centre: Array  # (…, d): centroid
    scale: Array  # (…,): RMS radius
    stiffness: Array  # (…,): τ p

    mixing = None

    @property
    def box(self) -> Box:
        """The box the functions live in."""
        return Box(self.middle, self.axes, self.half)

    @property
    def energy_matrix(self) -> Array:
        """(…, l, l): the energy of the coefficients, in the shape's own units."""
        raise NotImplementedError

    def penalty(self) -> Array:
        """Return τ p times the energy, (…, l, l)."""
        return self.stiffness[..., None, None] * self.energy_matrix

    def invert(self, warp: Warp) -> Warp:
        """Return an approximate inverse: the spline that takes the images of a grid back to it."""
        return self.box.approximate_inverse(warp)
