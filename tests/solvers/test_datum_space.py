"""What rigid, similarity and affine alignment have in common, measured where the landmarks were."""

import numpy as np
import pytest
from datum_space_support import carry_back, measure_reference_error, move_into_reference

from defgpa.errors import DegenerateShapeError
from defgpa.procrustes import ORTHOGONAL, RIGID, SIMILARITY
from defgpa.solvers.affine import balance_frame, fit_affine
from defgpa.solvers.datum_space import CentredShapes
from defgpa.solvers.reference_cost import AffineMaps, MotionMaps, ReferencePoint
from defgpa.solvers.rigid import fit_rigid
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


FAMILIES = {
    "rigid": MotionMaps(RIGID),
    "similarity": MotionMaps(SIMILARITY),
    "orthogonal": MotionMaps(ORTHOGONAL),
    "affine": AffineMaps(),
}
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


@every_family
def test_derivatives_of_the_cost_are_those_of_differences(centred, points, family, rng):
    point = ReferencePoint.from_reference(centred, family, rng.normal(size=points.shape[1:]).T)
    step = point.precondition(rng.normal(size=point.gradient.shape))
    assert_derivatives(point, step / np.linalg.norm(step))


@every_family
def test_maps_of_the_family_cost_the_reference_nothing(centred, points, family, rng):
    """So the gradient has no share in these directions, and steps are kept out of them."""
    point = ReferencePoint.from_reference(centred, family, rng.normal(size=points.shape[1:]).T)
    for X in family.list_free_directions(points.shape[2]):
        moved = point.retract(1e-3 * X @ point.reference + 0.7)
        np.testing.assert_allclose(moved.cost, point.cost, rtol=1e-5)
        step = point.precondition(rng.normal(size=point.gradient.shape))
        assert abs(np.vdot(step, X @ point.reference)) < 1e-12 * np.linalg.norm(step)
    np.testing.assert_allclose(point._project(point.gradient), point.gradient, atol=1e-9)


@every_family
def test_relative_gradient_is_that_over_one_of_its_terms(centred, points, family, rng):
    point = ReferencePoint.from_reference(centred, family, rng.normal(size=points.shape[1:]).T)
    n, m, d = points.shape
    weights = np.ones((n, m)) if centred.weights is None else centred.weights
    S = point.reference.T
    centroids = (weights @ S) / weights.sum(axis=1)[:, np.newaxis]
    images = (S - centroids[:, np.newaxis]) @ point.maps
    weighted = weights[..., np.newaxis] * (images - centred.coordinates.mT)
    gradient = 2 * np.einsum("nmb,nab->am", weighted, point.maps)
    term = 2 * np.einsum("nbm,nab->am", centred.rows.reshape(n, d, m), point.maps)
    np.testing.assert_allclose(point.gradient, gradient, atol=1e-9)
    expected = np.linalg.norm(gradient) / np.linalg.norm(term)
    np.testing.assert_allclose(point.relative_gradient, expected, **EXACT)


def assert_derivatives(point, step, h=1e-4):
    """The gradient is the difference of the cost along a step, the Hessian that of the gradient."""
    ahead, behind = point.retract(h * step), point.retract(-h * step)
    first = (ahead.cost - behind.cost) / (2 * h)
    np.testing.assert_allclose(np.vdot(point.gradient, step), first, **PARITY)
    second = point._project((ahead.gradient - behind.gradient) / (2 * h))
    np.testing.assert_allclose(point.hessian_product(step), second, rtol=1e-4, atol=1e-4)


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
