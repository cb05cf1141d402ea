"""Leaving landmarks out by a Schur complement equals fitting again without them."""

import numpy as np
import pytest

from defgpa import Affine, Shapes, ThinPlateSpline
from defgpa.geometry import measure_geometry
from defgpa.solvers.cost import build_cost
from defgpa.solvers.leave_out import LeftOutCost, leave_out
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
    rows = cost.residual_rows(np.arange(30))
    for shape, basis in enumerate(ThinPlateSpline(3).bases(geometry)[i] for i in range(4)):
        expected = residual_form(
            basis.features(geometry.points[shape]), basis.penalty(), geometry.weights[shape]
        )
        np.testing.assert_allclose(rows[shape], expected, **EXACT)
    np.testing.assert_allclose(rows.sum(axis=0), cost.dense(), **EXACT)


def test_the_reduced_form_and_the_prediction_are_those_of_a_new_fit(case):
    geometry, cost, remaining = case
    rows = cost.residual_rows(LEFT_OUT)
    forms = leave_out(rows, geometry.visible[:, LEFT_OUT], LEFT_OUT, remaining)
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
    reduced = LeftOutCost(cost, remaining, forms)
    np.testing.assert_allclose(reduced.dense(), expected, **EXACT)
    np.testing.assert_allclose(reduced.multiply(reference), expected @ reference, **EXACT)


def test_leverage_lies_between_zero_and_one(case):
    geometry, cost, _ = case
    diagonal = np.einsum("njj->nj", cost.residual_rows(np.arange(30)))
    leverage = 1 - diagonal[geometry.visible] / geometry.weights[geometry.visible]
    assert (leverage > 0).all()
    assert (leverage < 1).all()


def test_a_landmark_that_only_an_interpolating_warp_reaches_is_singular():
    points = smooth_family(seed=1, n=3, m=3)
    geometry = measure_geometry(points, np.ones((3, 3), dtype=bool))
    rows = build_cost(geometry, Affine()).residual_rows(np.array([1]))
    visible, remaining = np.ones((3, 1), dtype=bool), np.array([0, 2])
    assert leave_out(rows, visible, np.array([1]), remaining).singular.all()
