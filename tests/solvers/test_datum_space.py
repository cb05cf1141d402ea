"""What rigid, similarity and affine alignment have in common, measured where the landmarks were."""

import numpy as np
import pytest
from datum_space_support import carry_back, measure_reference_error, move_into_reference
from scipy.stats import special_ortho_group

from defgpa.errors import DegenerateShapeError
from defgpa.procrustes import RIGID, SIMILARITY
from defgpa.solvers.affine import balance_frame, fit_affine
from defgpa.solvers.affine_cost import AffinePoint
from defgpa.solvers.datum_space import CentredShapes
from defgpa.solvers.rigid import fit_rigid
from defgpa.solvers.rigid_cost import MotionAlgebra, RigidPoint
from support import EXACT, PARITY, oracle_points, read_oracle, smooth_family

METHODS = {
    "rigid": fit_rigid,
    "similarity": lambda points: fit_rigid(points, SIMILARITY),
    "affine": fit_affine,
    "balanced affine": lambda points: balance_frame(fit_affine(points)),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


@pytest.mark.parametrize("name", ["syn2d_full", "syn3d_full", "syn2d_partial"])
@pytest.mark.parametrize(("run", "method"), [("euc_d", fit_rigid), ("aff_d", fit_affine)])
def test_errors_equal_the_optimum_found_by_others(name, run, method):
    published = read_oracle(name, "euc_aff_d_numpy")[run]
    points = oracle_points(name)
    fit = method(points)
    tolerance = EXACT if run == "euc_d" else PARITY
    np.testing.assert_allclose(fit.rmse_datum, published["rmse_d"], **EXACT)
    error = measure_reference_error(points, fit)
    np.testing.assert_allclose(error, published["rmse_r"], **tolerance)


@every_method
def test_cost_is_the_distance_in_the_datum_space(points, method):
    fit = method(points)
    np.testing.assert_allclose(fit.cost, np.nansum((points - carry_back(fit)) ** 2), **EXACT)
    visible = np.count_nonzero(~np.isnan(points[..., 0]))
    np.testing.assert_allclose(fit.rmse_datum, np.sqrt(fit.cost / visible), **EXACT)


@pytest.fixture(params=[False, True], ids=["alike", "weighted"])
def centred(points, request, rng):
    weights = rng.uniform(0.2, 3.0, size=points.shape[:2]) * ~np.isnan(points[..., 0])
    return CentredShapes.from_points(points, weights=weights if request.param else None)


@pytest.mark.parametrize("motions", [RIGID, SIMILARITY], ids=["rigid", "similarity"])
def test_derivatives_of_the_rigid_cost_are_those_of_differences(centred, points, motions, rng):
    n, _, d = points.shape
    turns = special_ortho_group.rvs(d, size=n, random_state=rng).reshape(n, d, d)
    pose = RigidPoint.from_motions(centred, MotionAlgebra.from_motions(motions, d), turns)
    assert_derivatives(pose, rng.normal(size=pose.gradient.shape))


def test_derivatives_of_the_affine_cost_are_those_of_differences(centred, points, rng):
    span = AffinePoint.from_reference(centred, rng.normal(size=points.shape[1:]).T)
    step = span.precondition(rng.normal(size=span.gradient.shape))
    assert_derivatives(span, step / np.linalg.norm(step))


def assert_derivatives(point, step, h=1e-4):
    """The gradient and the Hessian along a step are the differences of the cost."""
    ahead, behind = point.retract(h * step).cost, point.retract(-h * step).cost
    first, second = (ahead - behind) / (2 * h), (ahead - 2 * point.cost + behind) / h**2
    np.testing.assert_allclose(np.vdot(point.gradient, step), first, **PARITY)
    np.testing.assert_allclose(np.vdot(point.hessian_product(step), step), second, rtol=1e-4)


def test_affine_maps_never_fit_worse_than_rigid_ones(points):
    assert fit_affine(points).cost < fit_rigid(points).cost


@every_method
def test_gradient_vanishes(points, method):
    assert method(points).gradient_norm < 1e-10


@every_method
def test_order_of_landmarks_orders_the_reference(points, method, rng):
    order = rng.permutation(points.shape[1])
    tolerance = PARITY if method in (METHODS["affine"], METHODS["balanced affine"]) else EXACT
    before, after = method(points), method(points[:, order])
    np.testing.assert_allclose(after.reference, before.reference[order], **tolerance)


@every_method
def test_units_scale_the_reference(points, method):
    tolerance = PARITY if method is METHODS["balanced affine"] else EXACT
    before, after = method(points), method(1e3 * points)
    np.testing.assert_allclose(after.reference, 1e3 * before.reference, **tolerance)


@every_method
def test_same_input_gives_the_same_bits_and_is_not_touched(points, method):
    copied = points.copy()
    np.testing.assert_array_equal(method(copied).reference, method(points).reference)
    np.testing.assert_array_equal(copied, points)


@every_method
def test_a_landmark_visible_in_one_shape_is_put_where_that_shape_has_it(points, method):
    for i in (0, 2):
        lone = int(np.argmax(~np.isnan(points[i, :, 0])))
        holed = points.copy()
        holed[np.arange(len(points)) != i, lone] = np.nan
        fit = method(holed)
        place = move_into_reference(holed, fit)[i, lone]
        np.testing.assert_allclose(fit.reference[lone], place, **PARITY)


@every_method
@pytest.mark.parametrize("d", [2, 3])
def test_a_landmark_missing_everywhere_is_named(d, method):
    points = smooth_family(seed=9, d=d)
    points[:, 5] = np.nan
    with pytest.raises(DegenerateShapeError, match="Landmark '6' is missing in every shape"):
        method(points)
