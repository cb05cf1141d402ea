"""One more shape onto a reference that stands: closed form, whatever the family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from defgpa._arrays import Array
from defgpa.errors import DegenerateShapeError
from defgpa.solve.cost import eliminated_cost
from defgpa.warps import Warp, WarpModel
from defgpa.warps._frames import frames_of


class Registration(Protocol):
    """How a shape is brought onto a reference."""

    def warp(self, points: Array, reference: Array) -> Warp:
        """The warp that best takes visible ``points`` (p, d) to ``reference`` (p, d)."""
        ...


@dataclass(frozen=True)
class RidgeRegistration:
    """The ridge regression of a linear basis warp: the same that made the reference."""

    model: WarpModel

    def warp(self, points: Array, reference: Array) -> Warp:
        """W = (FᵀF + R)⁻¹ Fᵀ S."""
        if frames_of(points).on_a_line[0]:
            raise DegenerateShapeError(
                "The visible landmarks of the shape are all collinear or coincident, which "
                f"determines no warp in {points.shape[1]}-D. Check the coordinates."
            )
        visible = np.ones((1, len(points)), dtype=bool)
        cost = eliminated_cost(points[None], visible, self.model)
        weights = cost.weights(reference)[0][0]
        return Warp(cost.factors[0].batch.bases[0], weights)
