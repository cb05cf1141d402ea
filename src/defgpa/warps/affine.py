r"""Affine maps: x ↦ xA + a, the warps that do not bend.

Features [x̂ 1], with x̂ the point in the shape's own units (centroid at 0, RMS radius 1): the
same maps as [x 1], far better conditioned. No penalty. The constant feature makes translations
free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import DegenerateShapeError
from defgpa.geometry import Geometry
from defgpa.warps.base import FactoredBasis, WarpFamily, normalize_points
from defgpa.warps.warp import Warp


def make_affine_columns(normalised: Array) -> Array:
    """Return [x̂ 1], the features of affine maps, of points in the units of their shape."""
    ones = np.ones((*normalised.shape[:-1], 1))
    return np.concatenate([normalised, ones], axis=-1)


def make_affine_column_gradients(points: Array, scale: Array) -> Array:
    """Return the (…, p, d, d + 1) derivatives of [x̂ 1] by x; x̂ = (x − centre) / scale."""
    *batch_shape, p, d = points.shape
    gradient = np.zeros((*batch_shape, p, d, d + 1))
    for axis in range(d):
        gradient[..., axis, axis] = (1.0 / scale)[..., None]
    return gradient


@dataclass(frozen=True, eq=False)
class AffineBasis(FactoredBasis):
    """Features [x̂ 1] with x̂ = (x − centre) / scale; one shape, or a stack of them."""

    centre: Array  # (…, d)
    scale: Array  # (…,)

    mixing = None

    def columns(self, points: Array) -> Array:
        """Return [x̂ 1], (…, p, d + 1)."""
        return make_affine_columns(normalize_points(points, self.centre, self.scale))

    def column_gradients(self, points: Array) -> Array:
        """Return the (…, p, d, d + 1) derivatives of [x̂ 1] by x."""
        return make_affine_column_gradients(points, self.scale)

    def penalty(self) -> Array:
        """Return zero: affine maps are free."""
        size = self.centre.shape[-1] + 1
        return np.zeros((*self.centre.shape[:-1], size, size))

    def invert(self, warp: Warp) -> Warp:
        """Return the exact inverse: y = x̂ A + a gives x = (y − a) A⁻¹ scale + centre."""
        matrix, constant = warp.coefficients[:-1], warp.coefficients[-1] + warp.offset
        if np.linalg.cond(matrix) * np.finfo(np.float64).eps > 1.0:
            raise DegenerateShapeError(
                "This affine warp flattens space and has no inverse: its shape is degenerate."
            )
        inverse = np.linalg.inv(matrix) * self.scale
        unit = AffineBasis(np.zeros_like(self.centre), np.ones_like(self.scale))
        return Warp(unit, np.vstack([inverse, self.centre - constant @ inverse]))


@dataclass(frozen=True, repr=False)
class Affine(WarpFamily[AffineBasis]):
    """Affine warps: the stiffest deformable model, AFF_r in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).normal(size=(7, 2))
    >>> Affine().basis(points).features(points).shape
    (7, 3)
    """

    def bases(self, geometry: Geometry) -> AffineBasis:
        """Return the bases of n shapes as one stack."""
        return AffineBasis(geometry.centre, geometry.size)
