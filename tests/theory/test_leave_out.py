"""Leaving landmarks out by a Schur complement equals fitting again without them."""

import numpy as np
import pytest

from defgpa import Affine, DefGPA, Shapes, ThinPlateSpline
from defgpa.estimators import prepare_problem
from defgpa.geometry import measure_geometry
from defgpa.procrustes import procrustes_distance
from defgpa.solvers.cost import build_cost
from defgpa.solvers.eigen import ExactCentering, Iterative
from defgpa.solvers.feature_space import FeatureSpace
from defgpa.solvers.leave_out import (
    LeftOutCost,
    LeftOutProducts,
    compute_residual_rows,
    leave_out,
    leave_out_features,
)
from support import EXACT, smooth_family

LEFT_OUT = np.array([2, 7, 11])


def residual_form(features, penalty, weights):
    """P of one shape, by its definition."""
    weighted = weights[:, None] * features
    normal_matrix = features.T @ weighted + penalty
    return np.diag(weights) - weighted @ np.linalg.solve(normal_matrix, weighted.T)


@pytest.fixture(params=[2, 3], ids=["2-D", "3-D"])
def case(request):
    """Shapes with weights and missing landmarks, their cost, and what is kept."""
    rng = np.random.default_rng(request.param)
    points = smooth_family(seed=1, n=4, m=30, d=request.param, missing=0.15)
    shapes = Shapes(points)
    weights = np.where(shapes.visible, rng.uniform(0.2, 1.0, size=shapes.visible.shape), 0.0)
    geometry = measure_geometry(shapes.points, shapes.visible, weights)
    return geometry, build_cost(geometry, ThinPlateSpline(3)), np.delete(np.arange(30), LEFT_OUT)


def test_residual_rows_are_those_of_the_definition(case):
    geometry, cost, _ = case
    rows = compute_residual_rows(cost, np.arange(30))
    for shape, basis in enumerate(ThinPlateSpline(3).bases(geometry)[i] for i in range(4)):
        expected = residual_form(
            basis.features(geometry.points[shape]), basis.penalty(), geometry.weights[shape]
        )
        np.testing.assert_allclose(rows[shape], expected, **EXACT)
    np.testing.assert_allclose(rows.sum(axis=0), cost.dense(), **EXACT)


def test_the_reduced_form_and_the_prediction_are_those_of_a_new_fit(case):
    geometry, cost, remaining = case
    forms = leave_out(cost, geometry.weights, LEFT_OUT[None], remaining[None])[0]
    assert not forms.singular.any()
    reference = np.random.default_rng(1).normal(size=(len(remaining), 2))
    expected = 0.0
    for shape in range(4):
        basis = ThinPlateSpline(3).bases(geometry)[shape]
        features, penalty = basis.features(geometry.points[shape]), basis.penalty()
        weights = geometry.weights[shape, remaining]
        expected = expected + residual_form(features[remaining], penalty, weights)
        weighted = weights[:, None] * features[remaining]
        fitted = np.linalg.solve(features[remaining].T @ weighted + penalty, weighted.T @ reference)
        visible = geometry.visible[shape, LEFT_OUT]
        predicted = forms.predictors[shape] @ reference
        np.testing.assert_allclose(
            predicted[visible], (features[LEFT_OUT] @ fitted)[visible], **EXACT
        )
    reduced = LeftOutCost(cost.totals[remaining], 4, cost, remaining, forms, cost.dense())
    np.testing.assert_allclose(reduced.dense(), expected, **EXACT)
    np.testing.assert_allclose(reduced.multiply(reference), expected @ reference, **EXACT)
    features = leave_out_features(cost, geometry.weights, LEFT_OUT[None], remaining[None])
    assert not features.singular.any()
    np.testing.assert_allclose(
        np.where(geometry.visible[:, LEFT_OUT, None], features.predict(reference[None])[0], 0.0),
        np.where(geometry.visible[:, LEFT_OUT, None], forms.predict(reference), 0.0),
        **EXACT,
    )
    products = LeftOutProducts.of(features, 0, cost.preconditioner())
    np.testing.assert_allclose(products.dense(), expected, **EXACT)


def test_axes_of_folds_in_the_space_of_features_are_those_of_the_reduced_cost(case):
    geometry, cost, _ = case
    folds = np.array([[3, 4, 5], [20, 21, 22]])
    remaining = np.stack([np.setdiff1d(np.arange(30), fold) for fold in folds])
    features = leave_out_features(cost, geometry.weights, folds, remaining)
    spectra = FeatureSpace(cost, geometry.weights).find_axes(features, 2, Iterative())
    for number, spectrum in enumerate(spectra):
        reduced = LeftOutProducts.of(features, number, cost.preconditioner())
        roots = np.sqrt(reduced.totals / reduced.n_shapes)
        expected = ExactCentering().apply(reduced, roots).dense()
        values, vectors = np.linalg.eigh(expected)
        np.testing.assert_allclose(spectrum.values[:3], values[:3], rtol=1e-6, atol=1e-12)
        overlaps = np.abs(np.einsum("mk,mk->k", spectrum.axes, vectors[:, :2]))
        np.testing.assert_allclose(overlaps, 1.0, **EXACT)


def test_leverage_lies_between_zero_and_one(case):
    geometry, cost, _ = case
    diagonal = np.einsum("njj->nj", compute_residual_rows(cost, np.arange(30)))
    leverage = 1 - diagonal[geometry.visible] / geometry.weights[geometry.visible]
    assert (leverage > 0).all()
    assert (leverage < 1).all()


def test_a_landmark_that_only_an_interpolating_warp_reaches_is_singular():
    points = smooth_family(seed=1, n=3, m=3)
    geometry = measure_geometry(points, np.ones((3, 3), dtype=bool))
    cost, fold, remaining = build_cost(geometry, Affine()), np.array([[1]]), np.array([[0, 2]])
    assert leave_out(cost, np.ones((3, 3)), fold, remaining).singular.all()


@pytest.mark.parametrize("solver", [None, Iterative()], ids=["dense", "iterative"])
@pytest.mark.parametrize("proportions", ["rigid", "prior"])
@pytest.mark.parametrize(("d", "missing"), [(2, 0.0), (2, 0.15), (3, 0.1)])
@pytest.mark.parametrize("is_weighted", [False, True], ids=["alike", "weighted"])
def test_influence_of_landmarks_is_that_of_a_new_fit(solver, proportions, d, missing, is_weighted):
    points = smooth_family(seed=2, n=7, m=30, d=d, missing=missing)
    rng = np.random.default_rng(d)
    weights = rng.uniform(0.5, 2.0, size=(7, 30)) if is_weighted else None
    controls = 0.8 * np.nanstd(points) * rng.normal(size=(6, d)) + np.nanmean(points, axis=(0, 1))
    warp = ThinPlateSpline(control_points=controls, theta=0.0)  # is the same without landmarks
    model = DefGPA(warp, proportions=proportions, solver=solver)
    shapes = Shapes(points, weights=weights)
    problem = prepare_problem(model, shapes)
    shape, landmarks = 3, np.flatnonzero(shapes.visible[3])[[4, 9]]
    points = np.array(points)
    points[shape, landmarks] = np.nan
    refit = model.solve(Shapes(points, weights=weights))[0]
    expected = procrustes_distance(refit.reference, problem.fit.reference)
    assert expected > 1e-5
    influence = problem.measure_influence(shape, landmarks, shapes)
    np.testing.assert_allclose(influence, expected, rtol=1e-7)


def test_influence_is_open_where_what_remains_does_not_tell_the_warp():
    points = smooth_family(seed=2, n=4, m=10)
    problem = prepare_problem(DefGPA(ThinPlateSpline(4, smoothing=0.0)), points)
    assert problem.measure_influence(1, np.array([2]), Shapes(points)) is None
