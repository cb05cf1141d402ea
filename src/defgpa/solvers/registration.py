"""One more shape onto a reference that stands: closed form, whatever the family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import DegenerateShapeError
from defgpa.geometry import Geometry, measure_geometry
from defgpa.procrustes import Motions, fit_motions
from defgpa.solvers.cost import build_cost
from defgpa.warps import AffineBasis, Warp, WarpModel


class Registration(Protocol):
    """How a shape is brought onto a reference."""

    def warp(self, points: Array, reference: Array, weights: Array | None = None) -> Warp:
        """Fit the warp that best takes visible ``points`` (p, d) to ``reference`` (p, d).

        ``weights`` (p,) are those of the landmarks; None: all count the same.
        """
        ...


@dataclass(frozen=True)
class RidgeRegistration:
    """The ridge regression of a linear basis warp: the same that made the reference."""

    model: WarpModel

    def warp(self, points: Array, reference: Array, weights: Array | None = None) -> Warp:
        """Fit W = (FᵀΓF + R)⁻¹ FᵀΓ S."""
        cost = build_cost(measure_new_shape(points, weights), self.model)
        return cost.make_warps(cost.fit_warps(reference), points[None])[0]


@dataclass(frozen=True)
class MotionRegistration:
    """Rigid motions or similarities, on the datum-space cost."""

    motions: Motions

    def warp(self, points: Array, reference: Array, weights: Array | None = None) -> Warp:
        """Fit the motion of the reference onto the points, and invert it."""
        motion = fit_motions(reference, points, weights, self.motions).inverse()
        if not motion.determined:
            raise DegenerateShapeError(
                "The visible landmarks of the shape are coincident or collinear: no single motion "
                "takes them to the reference."
            )
        return make_affine_warp(motion.matrix, motion.translation)


@dataclass(frozen=True)
class AffineRegistration:
    """Affine maps on the datum-space cost: the regression of the points on the reference."""

    def warp(self, points: Array, reference: Array, weights: Array | None = None) -> Warp:
        """Fit D ≈ S A + a, and invert it: x ↦ (x − a) A⁻¹."""
        roots = np.ones(len(points)) if weights is None else np.sqrt(weights)
        design = np.column_stack([reference, np.ones(len(reference))])
        affine, *_ = np.linalg.lstsq(roots[:, None] * design, roots[:, None] * points, rcond=None)
        if not np.linalg.cond(affine[:-1]) < 1e12:
            raise DegenerateShapeError(
                "The visible landmarks of the shape are coplanar or collinear: no affine map "
                "takes them to the reference."
            )
        back = np.linalg.inv(affine[:-1])
        return make_affine_warp(back, -affine[-1] @ back)


def measure_new_shape(points: Array, weights: Array | None = None) -> Geometry:
    """Make the frame of one more shape (p, d), in its plane if it is flat; refuse a line."""
    visible = np.ones((1, len(points)), dtype=bool)
    rows = None if weights is None else np.asarray(weights, dtype=np.float64)[None]
    geometry = measure_geometry(points[None], visible, rows).project_to_planes()
    if geometry.ranks[0] < 2:
        raise DegenerateShapeError(
            "The visible landmarks of the shape are all collinear or coincident, which "
            f"determines no warp in {points.shape[1]}-D. Check the coordinates."
        )
    return geometry


def make_affine_warp(matrix: Array, offset: Array) -> Warp:
    """Make a warp of the map x ↦ x @ matrix + offset."""
    return make_affine_warps(matrix[None], offset[None])[0]


def make_affine_warps(matrices: Array, offsets: Array) -> tuple[Warp, ...]:
    """Make warps of the maps of many shapes, (n, d, d) and (n, d)."""
    plain = AffineBasis(np.zeros(offsets.shape[-1]), np.ones(()))
    weights = np.concatenate([matrices, offsets[:, None, :]], axis=1)
    return tuple([Warp(plain, coefficients) for coefficients in weights])
