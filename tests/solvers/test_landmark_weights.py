"""Landmark weights in the rigid and affine methods: 0 is missing, 2 is counted twice."""

import numpy as np
import pytest

from defgpa import AffineGPA, EuclideanGPA, Shapes
from defgpa.procrustes import RIGID, SIMILARITY
from defgpa.solvers.affine import fit_affine
from defgpa.solvers.affine_cost import AffinePoint
from defgpa.solvers.datum_space import CentredShapes
from defgpa.solvers.rigid import fit_rigid
from defgpa.solvers.rigid_cost import MotionAlgebra, RigidPoint
from support import EXACT, PARITY, assert_same_shape, smooth_family

ESTIMATORS = [EuclideanGPA(), EuclideanGPA(scaling=True), AffineGPA(), AffineGPA("balanced")]
FITS = {
    "rigid": lambda points, weights=None: fit_rigid(points, RIGID, weights=weights),
    "similarity": lambda points, weights=None: fit_rigid(points, SIMILARITY, weights=weights),
    "affine": lambda points, weights=None: fit_affine(points, weights=weights),
}
every_fit = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


def random_weights(points, seed=0):
    weights = np.random.default_rng(seed).uniform(0.2, 3.0, size=points.shape[:2])
    return np.where(np.isnan(points[..., 0]), 0.0, weights)


@pytest.fixture(params=[(2, 0.0), (3, 0.0), (2, 0.25)], ids=["2d", "3d", "2d-partial"])
def points(request):
    d, missing = request.param
    return smooth_family(seed=7, n=6, m=15, d=d, missing=missing)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_equal_weights_change_nothing(estimator, points):
    weighted = Shapes(points, weights=np.full(points.shape[:2], 0.3))
    expected, actual = estimator.align(points), estimator.align(weighted)
    np.testing.assert_array_equal(actual.reference, expected.reference)
    assert actual.rmse_datum == expected.rmse_datum


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_weight_zero_is_a_missing_landmark(estimator, points):
    weights = np.ones(points.shape[:2])
    weights[2, 3] = weights[4, 1] = 0.0
    hidden = points.copy()
    hidden[2, 3] = hidden[4, 1] = np.nan
    expected, actual = estimator.align(hidden), estimator.align(Shapes(points, weights=weights))
    np.testing.assert_array_equal(actual.reference, expected.reference)


@every_fit
def test_a_common_factor_changes_nothing(fit, points):
    weights = random_weights(points)
    first, ten = fit(points, weights), fit(points, 10 * weights)
    assert_same_shape(ten.reference, first.reference, rtol=1e-7)
    np.testing.assert_allclose(ten.cost, 10 * first.cost, **PARITY)
    np.testing.assert_allclose(ten.rmse_datum, first.rmse_datum, **PARITY)


@pytest.mark.parametrize("fit", [FITS["rigid"], FITS["affine"]], ids=["rigid", "affine"])
def test_weight_two_is_a_landmark_counted_twice(fit, points):
    weights = np.ones(points.shape[:2])
    weights[:, 5] = 2.0
    twice = np.concatenate([points, points[:, 5:6]], axis=1)
    expected, actual = fit(twice), fit(points, np.where(np.isnan(points[..., 0]), 0.0, weights))
    np.testing.assert_allclose(actual.cost, expected.cost, **PARITY)
    aligned = [
        np.nan_to_num(points @ fitted.matrices + fitted.offsets[:, None] - fitted.reference[:15])
        for fitted in (actual, expected)
    ]
    np.testing.assert_allclose(*aligned, **PARITY)


@every_fit
def test_weight_two_of_a_shape_is_the_shape_given_twice(fit, points):
    weights = np.where(np.isnan(points[..., 0]), 0.0, 1.0)
    weights[3] *= 2.0
    expected = fit(np.concatenate([points, points[3:4]]))
    np.testing.assert_allclose(fit(points, weights).cost, expected.cost, **PARITY)


@every_fit
def test_cost_is_the_weighted_sum_of_squares_and_its_gradient_vanishes(fit, points):
    weights = random_weights(points)
    fitted = fit(points, weights)
    inverse = np.linalg.inv(fitted.matrices)
    images = (fitted.reference - fitted.offsets[:, None]) @ inverse
    squares = np.nansum((points - images) ** 2, axis=2)
    np.testing.assert_allclose(fitted.cost, (weights * squares).sum(), **EXACT)
    rmse = np.sqrt((weights * squares).sum() / weights.sum())
    np.testing.assert_allclose(fitted.rmse_datum, rmse, **EXACT)
    assert fitted.converged


@pytest.mark.parametrize("motions", [RIGID, SIMILARITY])
def test_derivatives_of_the_weighted_rigid_cost(motions, points):
    rng, (n, _, d) = np.random.default_rng(1), points.shape
    shapes = CentredShapes.from_points(points, weights=random_weights(points))
    algebra = MotionAlgebra.from_motions(motions, d)
    point = RigidPoint.from_motions(shapes, algebra, np.tile(np.eye(d), (n, 1, 1)))
    check_derivatives(point, rng.normal(size=(n, algebra.size)))


def test_derivatives_of_the_weighted_affine_cost(points):
    rng, (_, m, d) = np.random.default_rng(1), points.shape
    shapes = CentredShapes.from_points(points, weights=random_weights(points))
    point = AffinePoint.from_reference(shapes, rng.normal(size=(d, m)))
    check_derivatives(point, point._project_out_span(rng.normal(size=(d, m))))


def check_derivatives(point, step):
    h = 1e-4
    ahead, behind = point.retract(h * step).cost, point.retract(-h * step).cost
    first, second = (ahead - behind) / (2 * h), (ahead - 2 * point.cost + behind) / h**2
    np.testing.assert_allclose(np.vdot(point.gradient, step), first, rtol=1e-5)
    np.testing.assert_allclose(np.vdot(point.hessian_product(step), step), second, rtol=1e-4)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_errors_are_weighted(estimator):
    points = smooth_family(seed=8, n=6, m=15)
    points[0, 0] += 1.0
    weights = np.ones((6, 15))
    weights[0, 0] = 1e-6
    shapes = Shapes(points, weights=weights)
    alignment = estimator.align(shapes)
    residuals = alignment.residuals
    expected = np.sqrt((weights * residuals**2).sum() / weights.sum())
    np.testing.assert_allclose(alignment.rmse_reference, expected, **EXACT)
    assert alignment.rmse_datum < 0.9 * estimator.align(points).rmse_datum
    np.testing.assert_allclose(estimator.fit(shapes).score(shapes), -expected, **EXACT)
