"""A landmark weight multiplies the landmark's share in the cost, in every method."""

import numpy as np
import pytest

from defgpa import AffineGPA, DefGPA, ElasticGPA, EuclideanGPA, Shapes, cross_validate
from defgpa.estimators import prepare_problem
from defgpa.procrustes import procrustes_distance
from defgpa.solvers.leave_out import compute_residual_rows
from support import EXACT, smooth_family

ESTIMATORS = {
    "deformable": DefGPA(),
    "prior": DefGPA(proportions="prior"),
    "elastic": ElasticGPA(),
    "rigid": EuclideanGPA(),
    "similarity": EuclideanGPA(scaling=True),
    "affine": AffineGPA(),
    "balanced affine": AffineGPA("balanced"),
}
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)


@pytest.fixture(params=[2, 3], ids=["2-D", "3-D"])
def points(request):
    return smooth_family(n=8, m=24, d=request.param, seed=3, missing=0.1)


@pytest.fixture
def weights(points):
    drawn = np.random.default_rng(0).uniform(0.2, 2.0, size=points.shape[:2])
    return np.where(np.isnan(points[..., 0]), 0.0, drawn)


def residual_forms(shapes):
    """P of every shape (n, m, m), by the solver."""
    problem = prepare_problem(DefGPA(), shapes)
    return compute_residual_rows(problem.cost, np.arange(shapes.n_landmarks))


def test_residual_form_is_that_of_the_weighted_regression(points, weights):
    shapes = Shapes(points, weights=weights)
    geometry = shapes.geometry
    basis = DefGPA().warp_model.bases(geometry)
    features, penalties = basis.features(geometry.points), basis.penalty()
    for form, rows, penalty, gamma in zip(
        residual_forms(shapes), features, penalties, geometry.weights, strict=True
    ):
        weighted = gamma[:, None] * rows
        explained = weighted @ np.linalg.solve(rows.T @ weighted + penalty, weighted.T)
        np.testing.assert_allclose(form, np.diag(gamma) - explained, rtol=0, atol=1e-9)


@every_estimator
def test_equal_weights_give_the_unweighted_result(estimator, points):
    plain = estimator.fit(points).alignment_
    weighted = estimator.fit(Shapes(points, weights=np.full(points.shape[:2], 3.0))).alignment_
    np.testing.assert_array_equal(weighted.reference, plain.reference)
    assert weighted.rmse_reference == plain.rmse_reference
    assert weighted.rmse_datum == plain.rmse_datum


@every_estimator
def test_common_factor_of_the_weights_has_no_effect(estimator, points, weights):
    once = estimator.fit(Shapes(points, weights=weights)).alignment_
    scaled = estimator.fit(Shapes(points, weights=7.0 * weights)).alignment_
    np.testing.assert_allclose(scaled.reference, once.reference, **EXACT)
    np.testing.assert_allclose(scaled.rmse_reference, once.rmse_reference, **EXACT)


@every_estimator
def test_weight_zero_equals_missing(estimator, points):
    gone = points.copy()
    gone[2, 5] = np.nan
    weights = np.ones(points.shape[:2])
    weights[2, 5] = 0.0
    weighted = estimator.fit(Shapes(points, weights=weights)).alignment_
    np.testing.assert_allclose(
        weighted.reference, estimator.fit(gone).alignment_.reference, **EXACT
    )


@every_estimator
def test_specimen_of_weight_two_is_the_specimen_given_twice(estimator, points):
    weights = np.ones(points.shape[:2])
    weights[2] = 2.0
    twice = np.concatenate([points, points[2:3]])
    weighted, expected = estimator.align(Shapes(points, weights=weights)), estimator.align(twice)
    assert procrustes_distance(weighted.reference, expected.reference) < 1e-7
    np.testing.assert_allclose(weighted.rmse_reference, expected.rmse_reference, rtol=1e-7)
    np.testing.assert_allclose(weighted.rmse_datum, expected.rmse_datum, rtol=1e-7)


@every_estimator
def test_landmark_of_weight_two_is_the_landmark_given_twice(estimator, points):
    """But for the prior: the paper's SᵀS = Λ counts every landmark of the reference once."""
    weights = np.ones(points.shape[:2])
    weights[:, 5] = 2.0
    twice = np.concatenate([points, points[:, 5:6]], axis=1)
    weighted, expected = estimator.align(Shapes(points, weights=weights)), estimator.align(twice)
    distance = procrustes_distance(weighted.reference, expected.reference[:-1])
    if estimator == ESTIMATORS["prior"]:
        assert 1e-4 < distance < 0.1
    else:
        assert distance < 1e-7
        np.testing.assert_allclose(weighted.rmse_datum, expected.rmse_datum, rtol=1e-7)


@every_estimator
def test_wrong_landmark_of_small_weight_hardly_bends_the_reference(estimator, points):
    spoilt = points.copy()
    spoilt[2, 5] = np.nanmean(points[2], axis=0) + 0.7
    weights = np.ones(points.shape[:2])
    weights[2, 5] = 1e-5
    clean = points.copy()
    clean[2, 5] = np.nan
    reference = estimator.align(clean).reference
    trusted = estimator.align(Shapes(spoilt, weights=weights)).reference
    plain = estimator.align(spoilt).reference
    assert np.abs(trusted - reference).max() < 0.05 * np.abs(plain - reference).max()


@pytest.mark.parametrize("rigidity", [0.3, 3.0])
@pytest.mark.parametrize("is_weighted", [False, True], ids=["unweighted", "weighted"])
def test_elastic_folds_equal_fits_from_scratch_where_the_basis_does_not_change(
    points, weights, rigidity, is_weighted
):
    """Affine warps have the same features whatever is left out; only the unit of weights moves."""
    from defgpa import Affine

    shapes = Shapes(points, weights=weights if is_weighted else None)
    estimator = ElasticGPA(Affine(), rigidity=rigidity)
    validation, refitted = (
        cross_validate(estimator, shapes, refit=refit) for refit in (False, True)
    )
    np.testing.assert_allclose(validation.predicted, refitted.predicted, rtol=0, atol=1e-8)
