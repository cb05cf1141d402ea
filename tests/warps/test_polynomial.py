"""Polynomial maps: degree 1 is affine, more degrees explain more, bending is what is charged."""

import itertools
from math import comb

import numpy as np
import pytest

from defgpa import Affine, DefGPA, Polynomial, Shapes
from support import EXACT, assert_same_shape, cost_of, rotation, up_to_affine

DIMS = pytest.mark.parametrize("d", [2, 3])
DEGREES = pytest.mark.parametrize("degree", [1, 2, 3, 4])


def cloud(d, rng, p=80):
    return (rng.normal(size=(p, d)) * np.linspace(3, 1, d)) @ rotation(rng, d) + 20.0


@DIMS
@DEGREES
def test_there_is_one_feature_per_monomial(degree, d, rng):
    points = cloud(d, rng)
    features = Polynomial(degree).basis(points).features(points)
    assert features.shape == (80, comb(d + degree, d))


@DIMS
@DEGREES
def test_the_features_span_the_monomials(degree, d, rng):
    points = cloud(d, rng)
    x = (points - points.mean(axis=0)) / points.std()
    powers = np.indices((degree + 1,) * d).reshape(d, -1).T
    monomials = np.stack([np.prod(x**e, axis=1) for e in powers if e.sum() <= degree], axis=1)
    features = Polynomial(degree).basis(points).features(points)
    fitted = features @ np.linalg.lstsq(features, monomials, rcond=None)[0]
    np.testing.assert_allclose(fitted, monomials, rtol=0, atol=1e-9 * np.abs(monomials).max())


def test_degree_1_is_affine(shapes):
    for smoothing in (0.0, 1.0):
        linear = Polynomial(1, smoothing=smoothing)
        np.testing.assert_allclose(cost_of(shapes, linear), cost_of(shapes, Affine()), **EXACT)
    expected = DefGPA(Affine()).fit(shapes).reference_
    assert_same_shape(DefGPA(Polynomial(1)).fit(shapes).reference_, expected)


@pytest.mark.parametrize("smoothing", [0.0, 1e-3])
def test_higher_degrees_explain_more(smoothing, full_shapes):
    costs = [cost_of(full_shapes, Polynomial(k, smoothing=smoothing)) for k in (1, 2, 3, 4)]
    for lower, higher in itertools.pairwise(costs):
        assert np.linalg.eigvalsh(lower - higher).min() > -EXACT["atol"]
        assert np.linalg.norm(lower - higher) > 0.1


@DIMS
@DEGREES
def test_the_penalty_is_the_mean_bending_over_the_box(degree, d, rng):
    points = cloud(d, rng)
    basis = Polynomial(degree, smoothing=0.05).basis(points)
    weights = rng.normal(size=(comb(d + degree, d), 2))
    size, step = np.sqrt(points.var(axis=0).sum()), 1e-2
    nodes, shares = np.polynomial.legendre.leggauss(5)
    local = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
    share = np.stack(np.meshgrid(*[shares / 2] * d, indexing="ij"), axis=-1).reshape(-1, d)
    places = basis.box.to_world(local)
    # central differences of the analytic gradient are exact for the quadratics a gradient of
    # degree 3 has in it, and nearly so beyond
    total = 0.0
    for axis in np.eye(d):
        ahead, behind = (
            basis.column_gradients(places + sign * step * size * axis) @ weights * size
            for sign in (1, -1)
        )
        total += share.prod(axis=1) @ np.sum(((ahead - behind) / (2 * step)) ** 2, axis=(1, 2))
    charged = np.sum(weights * (basis.penalty() @ weights))
    np.testing.assert_allclose(charged, 0.05 * len(points) * total, rtol=1e-2, atol=1e-9)


@DIMS
def test_the_bending_of_a_known_map_is_charged_by_value(d, rng):
    """f = (x̂₁²,): ∂₁₁f = 2 everywhere, so the mean bending is 4."""
    points = cloud(d, rng)
    basis = Polynomial(2, smoothing=0.05).basis(points)
    size = np.sqrt(points.var(axis=0).sum())
    squares = ((points[:, :1] - points.mean(axis=0)[:1]) / size) ** 2
    weights = np.linalg.lstsq(basis.features(points), squares, rcond=None)[0]
    charged = np.sum(weights * (basis.penalty() @ weights))
    np.testing.assert_allclose(charged, 4 * 0.05 * len(points), **EXACT)


@DIMS
@pytest.mark.parametrize("degree", [2, 3, 4])
def test_only_affine_maps_are_free(degree, d, rng):
    values = np.linalg.eigvalsh(Polynomial(degree).basis(cloud(d, rng)).penalty())
    assert np.sum(values > 1e-12 * values[-1]) == comb(d + degree, d) - d - 1


@DIMS
def test_the_features_are_well_conditioned_far_from_the_origin(d, rng):
    points = cloud(d, rng) * 1e3 + 1e6
    features = Polynomial(4).basis(points).features(points)
    x = np.column_stack([points**k for k in range(5)])
    assert np.linalg.cond(features) < 1e4
    assert np.linalg.cond(x) > 1e12  # plain powers would be hopeless


def test_images_under_quadratic_maps_are_aligned_exactly(rng):
    """(x, y) ↦ (x, y + a x²) is undone by a quadratic map, whatever affine map follows."""
    base = rng.normal(size=(40, 2)) * [2, 1]
    shapes = []
    for bend in (-0.3, 0.0, 0.2, 0.4):
        bent = base + np.column_stack([np.zeros(40), bend * base[:, 0] ** 2])
        shapes.append(bent @ rng.normal(size=(2, 2)) + rng.normal(size=2))
    shapes = Shapes(shapes)
    values = np.linalg.eigvalsh(cost_of(shapes, Polynomial(2, smoothing=0.0)))
    np.testing.assert_allclose(values[:3], 0, **EXACT)  # the constant, x and y
    assert np.linalg.eigvalsh(cost_of(shapes, Affine()))[2] > 1e-3
    # x² is as cheap as y here (the maps can make either), so the span is what must come back
    _, vectors = np.linalg.eigh(cost_of(shapes, Polynomial(2, smoothing=0.0)))
    span = vectors[:, :4]
    np.testing.assert_allclose(span @ (span.T @ base), base, **EXACT)


def test_smoothing_finds_the_simplest_of_the_exact_references(rng):
    base = rng.normal(size=(40, 2)) * [2, 1.5]
    shapes = []
    for bend in (0.0, 0.05, 0.1, 0.15):
        bent = base + np.column_stack([np.zeros(40), bend * base[:, 0] ** 2])
        shapes.append(bent @ rotation(rng, 2) + rng.normal(size=2))
    alignment = DefGPA(Polynomial(2, smoothing=1e-4)).fit(shapes).alignment_
    middle = base + np.column_stack([np.zeros(40), 0.075 * base[:, 0] ** 2])
    error = np.linalg.norm(up_to_affine(alignment.reference, middle) - middle)
    assert error < 0.02 * np.linalg.norm(middle)
    assert alignment.rmse_reference < 0.1 * DefGPA(Affine()).fit(shapes).alignment_.rmse_reference


@pytest.mark.parametrize("degree", [0, 5, 2.5, "2", True])
def test_other_degrees_are_refused(degree, rng):
    with pytest.raises(ValueError, match="'degree' parameter of Polynomial must be a whole number"):
        Polynomial(degree).basis(rng.normal(size=(30, 2)))


def test_negative_smoothing_is_refused(rng):
    with pytest.raises(ValueError, match="'smoothing' parameter of Polynomial must be a number"):
        Polynomial(2, smoothing=-1e-3).basis(rng.normal(size=(30, 2)))
