"""Landmark weights in the rigid and affine methods: 0 is missing, 2 is counted twice."""

from functools import partial

import numpy as np
import pytest

from defgpa import AffineGPA, EuclideanGPA, Shapes
from defgpa.procrustes import RIGID, SIMILARITY
from defgpa.solvers.affine import fit_affine
from defgpa.solvers.rigid import fit_rigid
from support import EXACT, PARITY, assert_same_shape, smooth_family

ESTIMATORS = [EuclideanGPA(), EuclideanGPA(scaling=True), AffineGPA(), AffineGPA("balanced")]
FITS = {
    "rigid": partial(fit_rigid, motions=RIGID),
    "similarity": partial(fit_rigid, motions=SIMILARITY),
    "affine": fit_affine,
}
every_fit = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


def random_weights(points, seed=0):
    weights = np.random.default_rng(seed).uniform(0.2, 3.0, size=points.shape[:2])
    return np.where(np.isnan(points[..., 0]), 0.0, weights)


@pytest.fixture(params=[(2, 0.0), (3, 0.0), (2, 0.25)], ids=["2d", "3d", "2d-partial"])
def points(request):
    d, missing = request.param
    return smooth_family(seed=7, n=6, m=15, d=d, missing=missing)


@every_fit
def test_reference_of_other_weights_is_a_start_that_changes_nothing(fit, points):
    weights, others = random_weights(points), random_weights(points, seed=1)
    expected = fit(points, weights=weights)
    actual = fit(points, weights=weights, start=fit(points, weights=others).reference)
    assert_same_shape(actual.reference, expected.reference, rtol=1e-7)
    np.testing.assert_allclose(actual.cost, expected.cost, **PARITY)


@every_fit
def test_a_common_factor_changes_nothing(fit, points):
    weights = random_weights(points)
    first, ten = fit(points, weights=weights), fit(points, weights=10 * weights)
    assert_same_shape(ten.reference, first.reference, rtol=1e-7)
    np.testing.assert_allclose(ten.cost, 10 * first.cost, **PARITY)
    np.testing.assert_allclose(ten.rmse_datum, first.rmse_datum, **PARITY)


@pytest.mark.parametrize("fit", [FITS["rigid"], FITS["affine"]], ids=["rigid", "affine"])
def test_weight_two_is_a_landmark_counted_twice(fit, points):
    weights = np.ones(points.shape[:2])
    weights[:, 5] = 2.0
    twice = np.concatenate([points, points[:, 5:6]], axis=1)
    expected, actual = (
        fit(twice),
        fit(points, weights=np.where(np.isnan(points[..., 0]), 0.0, weights)),
    )
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
    np.testing.assert_allclose(fit(points, weights=weights).cost, expected.cost, **PARITY)


@every_fit
def test_cost_is_the_weighted_sum_of_squares_and_its_gradient_vanishes(fit, points):
    weights = random_weights(points)
    fitted = fit(points, weights=weights)
    inverse = np.linalg.inv(fitted.matrices)
    images = (fitted.reference - fitted.offsets[:, None]) @ inverse
    squares = np.nansum((points - images) ** 2, axis=2)
    np.testing.assert_allclose(fitted.cost, (weights * squares).sum(), **EXACT)
    rmse = np.sqrt((weights * squares).sum() / weights.sum())
    np.testing.assert_allclose(fitted.rmse_datum, rmse, **EXACT)
    assert fitted.converged


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
