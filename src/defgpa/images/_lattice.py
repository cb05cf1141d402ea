"""The image of a coarse lattice: where an inverse is to be sought, and from which start.

A lattice over the source image (a little beyond its border) is warped forward. A target that is
farther from every lattice image than lattice neighbours are from each other has no source in the
image; one nearer gets its start by one Newton step from the nearest lattice point. Where the
lattice is turned over against its bulk the warp folds, and there is nothing to seek.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from defgpa._arrays import Array, Mask
from defgpa.errors import ShapeError
from defgpa.images._common_frame import FLAT
from defgpa.images._pixel_warp import PixelWarp

_CELLS = 48  # across the image in either direction
_DIAGONALS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


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
