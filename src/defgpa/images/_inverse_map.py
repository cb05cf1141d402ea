r"""The inverse of a warp at every pixel of a frame, to a tolerance in pixels.

Solving warp(x) = y by Newton's method at every pixel would be exact and slow. The frame is cut
into square tiles; in a tile the inverse is solved at a few Chebyshev nodes and interpolated by
the polynomial through them. The interpolation is checked by the warp itself, between the nodes:

    ‖warp(x̃(y)) − y‖ ≤ 0.4 · tolerance.

A tile that fails is cut in four, and at last solved pixel by pixel: near a control point, where a
spline is less smooth, tiles are small, elsewhere large. A pixel without a source (outside of the
image, or where the warp folds) is NaN.

Where an inverse is to be sought, and from which start, follows from the image of a coarse lattice
over the source image and a little beyond. A target that is farther from every lattice image than
lattice neighbours are from each other has no source in the image; one nearer gets its start by one
Newton step from the nearest lattice point. Where the lattice is turned over against its bulk the
warp folds, and there is nothing to seek.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.interpolate import BarycentricInterpolator
from scipy.spatial import cKDTree

from defgpa.arrays import Array, Index, Mask, freeze
from defgpa.errors import ShapeError
from defgpa.images._frame import FLAT, PixelWarp
from defgpa.warps import NewtonInverse

TILE = 64  # side of the largest tiles, in pixels
_MIN_TILE = 8  # side of the smallest that are interpolated; below, pixel by pixel
_NODES = 6  # along each side of a tile


class InverseMap:
    """For every pixel of a frame, the place in the source image that is warped onto it."""

    def __init__(self, warp: PixelWarp, tolerance: float) -> None:
        self._warp, self._tolerance = warp, tolerance
        rows, columns = warp.source.shape
        grid = np.stack(
            np.meshgrid(_place_lattice_lines(columns), _place_lattice_lines(rows)), axis=-1
        )
        sources = grid.reshape(-1, 2)
        images, slopes = warp(sources), warp.jacobian(sources)
        determinants = np.linalg.det(slopes)
        self._side = -1.0 if np.nanmedian(determinants) < 0 else 1.0  # −1 where the warp mirrors
        is_upright = determinants * self._side > 0.0
        if not is_upright.any():
            raise ShapeError(FLAT)
        self._places, self._images = sources[is_upright], images[is_upright]
        self._inverse_slopes = np.linalg.inv(slopes[is_upright])
        # how far from its image a lattice point answers
        self._reach = np.maximum(
            _compute_reach(images.reshape(grid.shape)).ravel()[is_upright], TILE / 3
        )
        self._tree = cKDTree(self._images)

    def map_rows(self, band: slice) -> Array:
        """Return the source column and row (2, rows, columns) of each pixel; NaN where none."""
        height, width = band.stop - band.start, self._warp.frame.shape[1]
        sources = np.full((2, _extend_to_tiles(height), _extend_to_tiles(width)), np.nan)
        first, side = np.array([0, band.start]), TILE
        x, y = (np.arange(0, length, TILE) for length in sources.shape[:0:-1])
        corners = first + np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        while side >= _MIN_TILE and len(corners):
            nodes = self._find_sources(_place_targets(corners, _place_nodes(side)))
            within = self._may_lie_within(nodes)
            corners, nodes = corners[within], nodes[within]
            checks = _apply_interpolation(_build_interpolation(side, _place_checks), nodes)
            is_faithful = self._is_faithful(checks, _place_targets(corners, _place_checks(side)))
            pixels = _apply_interpolation(
                _build_interpolation(side, _place_pixels), nodes[is_faithful]
            )
            _write(sources, corners[is_faithful] - first, pixels)
            corners, side = _split_tiles(corners[~is_faithful], side), side // 2
        if len(corners):
            _write(
                sources,
                corners - first,
                self._find_sources(_place_targets(corners, _place_pixels(side))),
            )
        return sources[:, :height, :width]

    def _find_sources(self, targets: Array) -> Array:
        """Find the exact sources (tiles, 2, k, k) of targets; NaN where there is none."""
        flat = _ravel_points(targets)
        # from so near, what has not converged soon has no solution on this side of a fold
        newton = NewtonInverse(self._warp, tolerance=1e-9, max_steps=8, max_halvings=3)
        sources = newton.find_near(flat, self._find_starts(flat))
        converged = np.flatnonzero(~np.isnan(sources[:, 0]))
        upright = np.linalg.det(self._warp.jacobian(sources[converged])) * self._side > 0.0
        sources[converged[~upright]] = np.nan  # turned over against its bulk, the warp folds
        tiles, _, *grid = targets.shape
        return np.moveaxis(sources.reshape(tiles, *grid, 2), -1, 1)

    def _find_starts(self, targets: Array) -> Array:
        """Find where to start for each target (p, 2); NaN where it has no source in the image."""
        distance, near = self._tree.query(targets)
        step = np.einsum("pij,pj->pi", self._inverse_slopes[near], targets - self._images[near])
        start = self._places[near] + step
        start[distance > self._reach[near]] = np.nan
        return start

    def _may_lie_within(self, nodes: Array) -> Mask:
        """Return which tiles (tiles,) may lie in the source image in part."""
        rows, columns = self._warp.source.shape
        low, high = np.fmin.reduce(nodes, axis=(2, 3)), np.fmax.reduce(nodes, axis=(2, 3))
        slack = 0.5 * (high - low) + 1.0
        return np.asarray(((low - slack <= [columns, rows]) & (high + slack >= -1.0)).all(axis=1))

    def _is_faithful(self, predicted: Array, targets: Array) -> Mask:
        """Return whether the warp takes predicted sources to their targets, (tiles,)."""
        errors = np.linalg.norm(
            self._warp(_ravel_points(predicted)) - _ravel_points(targets), axis=1
        )
        # errors elsewhere may be a little larger than at the points of the check
        small = errors.reshape(targets[:, 0].shape) <= 0.4 * self._tolerance
        return np.asarray(small.all(axis=(1, 2)))


# Tiles: each is known by the column and row of its corner


def _place_targets(corners: Index, ticks: Array) -> Array:
    """Return frame pixels (tiles, 2, k, k) at distances from the corners of tiles."""
    columns, rows = corners.T[..., None, None]
    k = len(ticks)
    targets = np.empty((len(corners), 2, k, k))
    targets[:, 0] = columns + ticks
    targets[:, 1] = rows + ticks[:, None]
    return targets


def _ravel_points(targets: Array) -> Array:
    """Reshape points (tiles, 2, k, k) to (p, 2)."""
    return np.moveaxis(targets, 1, -1).reshape(-1, 2)


def _write(raster: Array, corners: Index, sources: Array) -> None:
    """Put the sources (tiles, 2, side, side) into their tiles of (2, height, width).

    Parameters
    ----------
    raster : array (2, height, width)
        Written to.
    corners : array (tiles, 2) of int
        Column and row of the first pixel of each tile.
    sources : array (tiles, 2, side, side)
    """
    side = sources.shape[-1]
    _, height, width = raster.shape
    tiles = raster.reshape(2, height // side, side, width // side, side)
    columns, rows = corners.T // side
    tiles.transpose(1, 3, 0, 2, 4)[rows, columns] = sources


def _extend_to_tiles(length: int) -> int:
    return -(-length // TILE) * TILE


def _split_tiles(corners: Index, side: int) -> Index:
    """Return the corners of the four quarters of each tile."""
    half = side // 2
    shifts = np.array([[0, 0], [half, 0], [0, half], [half, half]])
    return (corners[:, None, :] + shifts).reshape(-1, 2)


def _apply_interpolation(matrix: Array, nodes: Array) -> Array:
    """Evaluate the polynomials through nodes (tiles, 2, k, k) at the places of the matrix."""
    return np.asarray(matrix @ nodes @ matrix.T)


def _place_nodes(side: int) -> Array:
    """Return Chebyshev's nodes (k,) from the first pixel of a tile to its last."""
    return _place_chebyshev(side, np.arange(_NODES, dtype=np.float64))


def _place_checks(side: int) -> Array:
    """Return two places between each pair of nodes (2k − 2,), where polynomials err."""
    return _place_chebyshev(side, np.arange(0.25, _NODES - 1, 0.5))


def _place_pixels(side: int) -> Array:
    return np.arange(side, dtype=np.float64)


def _place_chebyshev(side: int, steps: Array) -> Array:
    return np.asarray((side - 1) / 2 * (1 - np.cos(np.pi * steps / (_NODES - 1))))


@cache
def _build_interpolation(side: int, places: Callable[[int], Array]) -> Array:
    """Build the matrix (p, k) from values at the nodes to those at other places."""
    polynomials = BarycentricInterpolator(_place_nodes(side), np.eye(_NODES))
    return freeze(np.asarray(polynomials(places(side))))


def _place_lattice_lines(length: int) -> Array:
    """Return the edges (51,) of 48 cells over this many pixels, and one more cell at each end."""
    ticks = np.linspace(-0.5, length - 0.5, 48 + 1)
    spacing = ticks[1] - ticks[0]
    return np.concatenate([[ticks[0] - spacing], ticks, [ticks[-1] + spacing]])


def _compute_reach(images: Array) -> Array:
    """Compute the distance (rows, columns) of each image to its farthest diagonal neighbour."""
    padded = np.pad(images, ((1, 1), (1, 1), (0, 0)), constant_values=np.nan)
    diagonals = ((-1, -1), (-1, 1), (1, -1), (1, 1))
    around = [padded[1 + i : -1 + i or None, 1 + j : -1 + j or None] for i, j in diagonals]
    return np.asarray(np.fmax.reduce(np.linalg.norm(np.stack(around) - images, axis=-1)))
