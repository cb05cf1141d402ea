"""A richer family of warps leaves less over: P_tps ≼ P_affine, with equality as θ → ∞."""

from dataclasses import replace

import numpy as np
import pytest

from defgpa import Affine, ThinPlateSpline
from support import EXACT, cost_of

SPLINE = ThinPlateSpline(points_per_axis=4)


def smallest(matrix):
    return np.linalg.eigvalsh(matrix).min()


@pytest.mark.parametrize("smoothing", [1e12, 1e20, 1e100])
def test_however_stiff_it_is_one_to_the_last_digit(smoothing, shapes):
    stiff = cost_of(shapes, replace(SPLINE, smoothing=smoothing))
    np.testing.assert_allclose(stiff, cost_of(shapes, Affine()), **EXACT)


def test_a_stiff_spline_is_not_an_affine_map_yet(shapes):
    difference = cost_of(shapes, replace(SPLINE, smoothing=1e-2)) - cost_of(shapes, Affine())
    assert np.linalg.norm(difference) > 0.1


def test_splines_on_other_control_points_are_not_nested(shapes):
    """A counter-example: more control points, but not the same ones and more."""
    few, more = (cost_of(shapes, ThinPlateSpline(k, smoothing=1e-6)) for k in (2, 3))
    assert smallest(few - more) < -1e-3
    assert smallest(more - few) < -1e-3


def test_more_of_the_same_control_points_explain_more(shapes, rng):
    """With θ = 0 the splines on a part of the control points are among those on all of them."""
    controls = 2 * rng.normal(size=(14, shapes.n_dims)) + np.nanmean(shapes.points, axis=(0, 1))
    cost, shape_cost = (
        cost_of(shapes, ThinPlateSpline(control_points=c, theta=0.0))
        for c in (controls[:9], controls)
    )
    # far control points make θ = 0 ill-conditioned: the bound is known to 1e-6, not to EXACT
    assert smallest(cost - shape_cost) > -1e-6
