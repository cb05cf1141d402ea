r"""The inverse of a warp at every pixel of a frame, to a tolerance in pixels.

Solving warp(x) = y by Newton's method at every pixel would be exact and slow. The frame is cut
into square tiles; in a tile the inverse is solved at a few Chebyshev nodes and interpolated by
the polynomial through them. The interpolation is checked by the warp itself, between the nodes:

    ‖warp(x̃(y)) − y‖ ≤ 0.4 · tolerance.

A tile that fails is cut in four, and at last solved pixel by pixel: near a control point, where a
spline is less smooth, tiles are small, elsewhere large. A pixel without a source (outside of the
image, or where the warp folds) is NaN.

Where an inverse is to be sought, and from which start, is told by the image of a coarse lattice
over the source image and a little beyond. A target that is farther from every lattice image than
lattice neighbours are from each other has no source in the image; one nearer gets its start by one
Newton step from the nearest lattice point. Where the lattice is turned over against its bulk the
warp folds, and there is nothing to seek.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.interpolate import BarycentricInterpolator
from scipy.spatial import cKDTree

from defgpa._arrays import Array, Index, Mask, frozen
from defgpa.errors import ShapeError
from defgpa.images._frame import FLAT, PixelWarp
from defgpa.warps import NewtonInverse

TILE = 64  # side of the largest tiles, in pixels
_SMALLEST = 8  # side of the smallest that are interpolated; below, pixel by pixel
_NODES = 6  # along each side of a tile
_CHECKS = 2 * (_NODES - 1)  # along each side, two between neighbouring nodes
_CELLS = 48  # of the lattice across the image in either direction
_DIAGONALS = ((-1, -1), (-1, 1), (1, -1), (1, 1))
_SAFETY = 0.4  # errors elsewhere may be a little larger than at the points of the check


@dataclass(frozen=True, eq=False)
class InverseMap:
    """For every pixel of a frame, the place in the source image that is warped onto it."""

    warp: PixelWarp
    tolerance: float

    def rows(self, part: slice) -> Array:
        """(2, rows, columns): source column and row of each pixel; NaN where it has none."""
        height, width = part.stop - part.start, self.warp.frame.shape[1]
        found = np.full((2, _whole_tiles(height), _whole_tiles(width)), np.nan)
        band = _Band(found, part.start)
        corners, side = band.corners(), TILE
        while side >= _SMALLEST and len(corners):
            corners = self._interpolate(band, corners, side)
            side //= 2
        if len(corners):
            band.write(corners, self._sources(band.targets(corners, _pixels(side))))
        return found[:, :height, :width]

    def _interpolate(self, band: _Band, corners: Index, side: int) -> Index:
        """Write the tiles that can be interpolated; return the quarters of the others."""
        nodes = self._sources(band.targets(corners, _nodes(side)))
        within = self._may_lie_within(nodes)
        corners, nodes = corners[within], nodes[within]
        checks = _between(_matrix(side, _checks), nodes)
        faithful = self._faithful(checks, band.targets(corners, _checks(side)))
        band.write(corners[faithful], _between(_matrix(side, _pixels), nodes[faithful]))
        return _quarters(corners[~faithful], side)

    @cached_property
    def _lattice(self) -> Lattice:
        return lattice(self.warp, least_reach=TILE / 3)

    def _sources(self, targets: Array) -> Array:
        """(tiles, 2, k, k): the exact sources of targets; NaN where there is none."""
        flat = np.moveaxis(targets, 1, -1).reshape(-1, 2)
        # from so near, what has not converged soon has no solution on this side of a fold
        newton = NewtonInverse(self.warp, tolerance=1e-9, most_steps=8, most_halvings=3)
        sources = newton.near(flat, self._lattice.starts(flat))
        known = np.flatnonzero(~np.isnan(sources[:, 0]))
        sources[known[self._lattice.folded(self.warp.jacobian(sources[known]))]] = np.nan
        tiles, _, *grid = targets.shape
        return np.moveaxis(sources.reshape(tiles, *grid, 2), -1, 1)

    def _may_lie_within(self, nodes: Array) -> Mask:
        """(tiles,): tiles of which some part may lie in the source image."""
        rows, columns = self.warp.source.shape
        low, high = np.fmin.reduce(nodes, axis=(2, 3)), np.fmax.reduce(nodes, axis=(2, 3))
        slack = 0.5 * (high - low) + 1.0
        return np.asarray(((low - slack <= [columns, rows]) & (high + slack >= -1.0)).all(axis=1))

    def _faithful(self, predicted: Array, targets: Array) -> Mask:
        """(tiles,): whether the warp takes every predicted source to its target."""
        images = self.warp(np.moveaxis(predicted, 1, -1).reshape(-1, 2))
        goal = np.moveaxis(targets, 1, -1).reshape(-1, 2)
        errors = np.linalg.norm(images - goal, axis=1).reshape(len(targets), _CHECKS**2)
        return np.asarray((errors <= _SAFETY * self.tolerance).all(axis=1))


@dataclass(frozen=True, eq=False)
class _Band:
    """Rows of a frame, in whole tiles; a tile is known by the column and row of its corner."""

    found: Array  # (2, height, width)
    start: int  # the first row

    def corners(self) -> Index:
        """(tiles, 2): of the largest tiles."""
        _, height, width = self.found.shape
        columns, rows = np.meshgrid(np.arange(0, width, TILE), np.arange(0, height, TILE))
        return np.column_stack([columns.ravel(), rows.ravel()])

    def targets(self, corners: Index, ticks: Array) -> Array:
        """(tiles, 2, k, k): frame pixels at these distances from the corners of tiles."""
        columns, rows = corners.T[..., None, None]
        k = len(ticks)
        targets = np.empty((len(corners), 2, k, k))
        targets[:, 0] = columns + ticks
        targets[:, 1] = self.start + rows + ticks[:, None]
        return targets

    def write(self, corners: Index, sources: Array) -> None:
        """Put the sources (tiles, 2, side, side) into their tiles."""
        side = sources.shape[-1]
        _, height, width = self.found.shape
        tiles = self.found.reshape(2, height // side, side, width // side, side)
        columns, rows = corners.T // side
        tiles.transpose(1, 3, 0, 2, 4)[rows, columns] = sources


def _whole_tiles(length: int) -> int:
    return -(-length // TILE) * TILE


def _quarters(corners: Index, side: int) -> Index:
    """The corners of the four halves-by-halves of each tile."""
    half = side // 2
    shifts = np.array([[0, 0], [half, 0], [0, half], [half, half]])
    return (corners[:, None, :] + shifts).reshape(-1, 2)


def _between(matrix: Array, nodes: Array) -> Array:
    """The polynomials through nodes (tiles, 2, k, k), at the places of the matrix."""
    return np.asarray(matrix @ nodes @ matrix.T)


def _nodes(side: int) -> Array:
    """(k,): Chebyshev's nodes from the first pixel of a tile to its last."""
    return _chebyshev(side, np.arange(_NODES, dtype=np.float64))


def _checks(side: int) -> Array:
    """(2k − 2,): two between each pair of nodes, where polynomials err."""
    return _chebyshev(side, np.arange(0.25, _NODES - 1, 0.5))


def _pixels(side: int) -> Array:
    return np.arange(side, dtype=np.float64)


def _chebyshev(side: int, steps: Array) -> Array:
    return np.asarray((side - 1) / 2 * (1 - np.cos(np.pi * steps / (_NODES - 1))))


@cache
def _matrix(side: int, places: Callable[[int], Array]) -> Array:
    """(p, k): from the values at the nodes to those of the polynomial at other places."""
    polynomials = BarycentricInterpolator(_nodes(side), np.eye(_NODES))
    return frozen(np.asarray(polynomials(places(side))))


@dataclass(frozen=True, eq=False)
class Lattice:
    """Source pixels (k, 2) with their images, the inverse slopes there, and their reach."""

    sources: Array  # (k, 2)
    images: Array  # (k, 2)
    inverse_slopes: Array  # (k, 2, 2)
    reach: Array  # (k,): how far from its image a lattice point answers
    side: float  # +1, or −1 where the warp mirrors
    tree: cKDTree

    def starts(self, targets: Array) -> Array:
        """(p, 2): where to start for each target; NaN where it has no source in the image."""
        distance, near = self.tree.query(targets)
        step = np.einsum("pij,pj->pi", self.inverse_slopes[near], targets - self.images[near])
        start = self.sources[near] + step
        start[distance > self.reach[near]] = np.nan
        return start

    def folded(self, slopes: Array) -> Mask:
        """(p,): where the warp, with these Jacobians, is turned over against its bulk."""
        return np.asarray(~(np.linalg.det(slopes) * self.side > 0.0))


def lattice(warp: PixelWarp, least_reach: float) -> Lattice:
    """The lattice over the source of a warp, one cell beyond it on every side."""
    rows, columns = warp.source.shape
    x = np.linspace(-0.5, columns - 0.5, _CELLS + 1)
    y = np.linspace(-0.5, rows - 0.5, _CELLS + 1)
    grid = np.stack(np.meshgrid(_widened(x), _widened(y)), axis=-1)
    sources = grid.reshape(-1, 2)
    images, slopes = warp(sources), warp.jacobian(sources)
    determinants = np.linalg.det(slopes)
    side = -1.0 if np.nanmedian(determinants) < 0 else 1.0
    kept = determinants * side > 0.0
    if not kept.any():
        raise ShapeError(FLAT)
    return Lattice(
        sources[kept],
        images[kept],
        np.linalg.inv(slopes[kept]),
        np.maximum(_reach(images.reshape(grid.shape)).ravel()[kept], least_reach),
        side,
        cKDTree(images[kept]),
    )


def _widened(ticks: Array) -> Array:
    spacing = ticks[1] - ticks[0]
    return np.concatenate([[ticks[0] - spacing], ticks, [ticks[-1] + spacing]])


def _reach(images: Array) -> Array:
    """(rows, columns): the distance from each image to the farthest of its diagonal neighbours."""
    padded = np.pad(images, ((1, 1), (1, 1), (0, 0)), constant_values=np.nan)
    around = [padded[1 + i : -1 + i or None, 1 + j : -1 + j or None] for i, j in _DIAGONALS]
    return np.asarray(np.fmax.reduce(np.linalg.norm(np.stack(around) - images, axis=-1)))
