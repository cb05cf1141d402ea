"""0 ≼ P ≼ nI, and shape by shape 0 ≼ P_i ≼ Γ_i."""

from dataclasses import dataclass

import numpy as np

from defgpa.geometry import measure_geometry
from defgpa.solvers.cost import build_cost
from support import EXACT, ChargedTranslations, cost_of, every_warp


@every_warp
def test_one_shape_costs_at_most_what_it_sees(warp, shapes):
    for i in range(shapes.n_shapes):
        cost = build_cost(
            measure_geometry(shapes.points[i : i + 1], shapes.visible[i : i + 1]), warp
        ).dense()
        assert np.linalg.eigvalsh(cost).min() > -EXACT["atol"]
        left = np.diag(shapes.visible[i].astype(float)) - cost
        assert np.linalg.eigvalsh(left).min() > -EXACT["atol"]
        np.testing.assert_array_equal(cost[~shapes.visible[i]], 0)


def test_a_warp_that_is_charged_everywhere_never_reaches_zero(shapes):
    spectrum = np.linalg.eigvalsh(cost_of(shapes, ChargedTranslations()))
    assert spectrum.min() > 1e-3


@dataclass(frozen=True)
class PaidToBend:
    """A counter-example: a negative penalty is no penalty."""

    def basis(self, points):
        return self

    def features(self, points):
        return np.column_stack([points, np.ones(len(points))])

    def penalty(self):
        return -1.0


def test_a_penalty_that_is_not_positive_breaks_the_bound(shapes):
    assert np.linalg.eigvalsh(cost_of(shapes, PaidToBend())).min() < -1e-2
