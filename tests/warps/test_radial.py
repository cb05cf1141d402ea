"""Radial bases: kernels that are norms, widths that follow the shape, polynomials that are free."""

from dataclasses import replace

import numpy as np
import pytest

from defgpa import Affine, DefGPA, Polynomial, RadialBasis, Shapes, ThinPlateSpline
from defgpa.geometry import measure_geometry
from defgpa.solvers.cost import build_cost
from defgpa.warps import (
    DistanceQuantile,
    Gaussian,
    InverseMultiquadric,
    Multiquadric,
    NativeNorm,
    Polyharmonic,
    Warp,
    WeightRidge,
    WendlandC2,
    WendlandC4,
)
from defgpa.warps.polynomial import evaluate_polynomials
from support import EXACT, LIMIT, PARITY, cost_of, moved, smooth_family

KERNELS = [
    Gaussian(),
    Multiquadric(),
    InverseMultiquadric(),
    WendlandC2(),
    WendlandC4(),
    *(Polyharmonic(k) for k in (1, 2, 3, 4, 5)),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
DIMS = pytest.mark.parametrize("d", [2, 3])


def squared(points, centres):
    return np.sum((points[:, None] - centres) ** 2, axis=2)


def test_kernels_are_the_functions_they_are_named_after():
    r = np.array([0.1, 0.5, 0.9, 1.7])
    inside = np.maximum(1 - r, 0)
    expected = {
        Gaussian(): np.exp(-(r**2)),
        Multiquadric(): -np.sqrt(1 + r**2),
        InverseMultiquadric(): 1 / np.sqrt(1 + r**2),
        WendlandC2(): inside**4 * (4 * r + 1),
        WendlandC4(): inside**6 * (35 * r**2 + 18 * r + 3) / 3,
        Polyharmonic(1): -r,
        Polyharmonic(2): r**2 * np.log(r),
        Polyharmonic(3): r**3,
        Polyharmonic(4): -(r**4) * np.log(r),
        Polyharmonic(5): -(r**5),
    }
    for kernel, values in expected.items():
        np.testing.assert_allclose(kernel.values(r**2), values, **EXACT)


@every_kernel
def test_the_slope_is_the_derivative(kernel):
    s, step = np.linspace(0.05, 2.0, 40), 1e-6
    expected = (kernel.values(s + step) - kernel.values(s - step)) / (2 * step)
    np.testing.assert_allclose(kernel.slopes(s), expected, **LIMIT)


@every_kernel
def test_values_and_slopes_are_finite_at_the_centre(kernel):
    assert np.isfinite(kernel.values(np.zeros(1))).all()
    assert np.isfinite(kernel.slopes(np.zeros(1))).all()


@DIMS
@every_kernel
def test_the_native_norm_is_a_norm_of_weights_that_no_low_polynomial_sees(kernel, d, rng):
    centres = rng.normal(size=(30, d))
    K = kernel.values(squared(centres, centres))
    weights = rng.normal(size=(30, 200))
    if kernel.order:
        Q, _ = np.linalg.qr(evaluate_polynomials(centres, kernel.order - 1))
        weights -= Q @ (Q.T @ weights)
    norms = np.sum(weights * (K @ weights), axis=0)
    assert norms.min() > 0


@pytest.mark.parametrize(
    "kernel", [Multiquadric(), *(Polyharmonic(k) for k in range(1, 6))], ids=repr
)
def test_the_native_norm_is_negative_for_low_polynomials(kernel, rng):
    centres = rng.normal(size=(30, 2))
    weights = evaluate_polynomials(centres, kernel.order - 1)
    K = kernel.values(squared(centres, centres))
    assert np.linalg.eigvalsh(weights.T @ K @ weights).min() < 0


@pytest.mark.parametrize(("d", "exponent", "constant"), [(2, 2, 4 * np.pi), (3, 1, 8 * np.pi)])
def test_the_thin_plate_spline_is_a_polyharmonic_one(d, exponent, constant):
    shapes = Shapes(smooth_family(seed=5, d=d, missing=0.1))
    for smoothing in (1e-5, 1e-3, 0.1):
        radial = RadialBasis(Polyharmonic(exponent), 4, smoothing=constant * smoothing)
        spline = ThinPlateSpline(4, smoothing=smoothing)
        np.testing.assert_allclose(cost_of(shapes, radial), cost_of(shapes, spline), **EXACT)


@DIMS
@every_kernel
def test_the_charge_is_the_native_norm_of_the_weights(kernel, d, rng):
    points = rng.normal(size=(50, d))
    degree = max(1, kernel.order - 1)
    model = RadialBasis(kernel, 4, polynomial_degree=degree, smoothing=0.02)
    basis = model.basis(points)
    weights = rng.normal(size=(basis.features(points).shape[1], d))
    w = Warp(basis, weights).column_coefficients[: 4**d]
    size = np.sqrt(points.var(axis=0).sum())
    centres = (basis.control_points - points.mean(axis=0)) / size
    K = kernel.values(squared(centres, centres) / basis.width**2)
    charged = np.sum(weights * (basis.penalty() @ weights))
    np.testing.assert_allclose(charged, 0.02 * 50 * np.sum(w * (K @ w)), rtol=1e-6)
    np.testing.assert_allclose(
        evaluate_polynomials(centres, degree).T @ w, 0, atol=1e-6 * np.abs(w).max()
    )


@DIMS
def test_the_ridge_charges_the_weights_themselves(d, rng):
    points = rng.normal(size=(50, d))
    basis = RadialBasis(Gaussian(), 3, penalty=WeightRidge(), smoothing=0.02).basis(points)
    expected = np.zeros(3**d + d + 1)
    expected[: 3**d] = 0.02 * 50
    np.testing.assert_allclose(basis.penalty(), np.diag(expected), **EXACT)


@pytest.mark.parametrize("charge", [NativeNorm(), WeightRidge()], ids=repr)
def test_unmixed_functions_are_the_same_warps_at_the_same_price(charge, rng):
    points = rng.normal(size=(50, 2))
    basis = RadialBasis(Gaussian(), 4, penalty=charge).basis(points)
    weights = rng.normal(size=(basis.features(points).shape[1], 2))
    warp = Warp(basis, weights)
    plain = Warp(basis.unmix(), warp.column_coefficients)
    np.testing.assert_allclose(plain(points), warp(points), **EXACT)
    prices = [np.sum(w.coefficients * (w.basis.penalty() @ w.coefficients)) for w in (warp, plain)]
    # the coefficients of flat kernels are large and cancel
    np.testing.assert_allclose(*prices, rtol=1e-6)


@DIMS
@pytest.mark.parametrize("fraction", [0.1, 0.5, 1.0])
def test_a_width_is_a_quantile_of_the_distances_between_the_centres(d, fraction, rng):
    points = 7 * rng.normal(size=(60, d)) + 100
    basis = RadialBasis(Gaussian(DistanceQuantile(fraction)), 4).basis(points)
    centres = basis.control_points / np.sqrt(points.var(axis=0).sum())
    distances = np.sqrt(squared(centres, centres))[np.triu_indices(4**d, 1)]
    np.testing.assert_allclose(basis.width, np.quantile(distances, fraction), **EXACT)


def test_a_width_is_a_number_in_units_of_the_shape(rng):
    points = 7 * rng.normal(size=(60, 2)) + 100
    size = np.sqrt(points.var(axis=0).sum())
    basis = RadialBasis(
        Gaussian(0.8), control_points=points[:1], polynomial_degree=None, penalty=WeightRidge()
    ).basis(points)
    places = points[0] + size * np.array([[0.0, 0.0], [0.8, 0.0], [0.0, 1.6]])
    np.testing.assert_allclose(basis.features(places)[:, 0], np.exp([0.0, -1.0, -4.0]), **EXACT)


def test_a_single_centre_and_coincident_centres_have_the_width_of_the_shape(rng):
    points = rng.normal(size=(30, 2))
    for centres in (points[:1], points[[0, 0, 0]]):
        model = RadialBasis(Gaussian(), control_points=centres, polynomial_degree=None)
        assert model.basis(points).width == 1.0


@pytest.mark.parametrize("kernel", [WendlandC2(0.7), WendlandC4(0.7)], ids=repr)
def test_compact_kernels_end(kernel, rng):
    points = rng.normal(size=(60, 2))
    basis = RadialBasis(kernel, 5).basis(points)
    far = np.sqrt(squared(points, basis.control_points)) > 0.7 * basis.scale
    columns = basis.columns(points)[:, :25]
    assert far.any()
    assert not far.all()
    assert not columns[far].any()
    assert (columns[~far] > 0).all()


def test_a_stiff_warp_with_polynomials_of_degree_2_is_a_polynomial_of_degree_2(shapes):
    stiff = RadialBasis(Gaussian(), 4, polynomial_degree=2, smoothing=1e9)
    free = Polynomial(2, smoothing=0.0)
    np.testing.assert_allclose(cost_of(shapes, stiff), cost_of(shapes, free), **LIMIT)


def test_centres_may_be_given_or_made_from_the_shape(shapes):
    grid = RadialBasis(Gaussian(1.0), 3)
    made = replace(
        grid, control_points=lambda points: ThinPlateSpline(3).basis(points).control_points
    )
    np.testing.assert_allclose(cost_of(shapes, made), cost_of(shapes, grid), **EXACT)
    explicit = replace(grid, control_points=np.nanmean(shapes.points, axis=0))
    assert explicit.basis(shapes.points[0][shapes.visible[0]]).control_points.shape == (
        shapes.n_landmarks,
        shapes.n_dims,
    )


def test_flat_kernels_lose_no_digits(full_shapes):
    """A very wide Gaussian has a kernel matrix of no rank: P must not feel the rounding of it."""
    wide = RadialBasis(Gaussian(50.0), 4)
    ones = np.ones(full_shapes.n_landmarks)
    np.testing.assert_allclose(cost_of(full_shapes, wide) @ ones, 0, **EXACT)
    turned = full_shapes.with_points(moved(full_shapes.points))
    np.testing.assert_allclose(cost_of(turned, wide), cost_of(full_shapes, wide), **EXACT)
    assert DefGPA(wide).fit(full_shapes).alignment_.rmse_reference < 0.2


def test_the_order_of_equal_centres_does_not_matter(shapes, rng):
    centres = 2 * rng.normal(size=(12, shapes.n_dims)) + np.nanmean(shapes.points, axis=(0, 1))
    model = RadialBasis(Gaussian(1.0), control_points=centres)
    shuffled = replace(model, control_points=centres[rng.permutation(12)])
    np.testing.assert_allclose(cost_of(shapes, shuffled), cost_of(shapes, model), **EXACT)


def test_as_many_centres_as_polynomials_leave_polynomials(full_shapes, rng):
    d = full_shapes.n_dims
    centres = rng.normal(size=(d + 1, d))
    model = RadialBasis(Gaussian(1.0), control_points=centres)
    np.testing.assert_allclose(cost_of(full_shapes, model), cost_of(full_shapes, Affine()), **EXACT)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RadialBasis("gaussian"), "'kernel' parameter of RadialBasis must be a kernel"),
        (RadialBasis(Gaussian), "'kernel' parameter of RadialBasis must be a kernel"),
        (RadialBasis(Gaussian(0.0)), "'width' parameter of Gaussian must be a positive number"),
        (RadialBasis(Gaussian("wide")), "'width' parameter of Gaussian must be a positive number"),
        (RadialBasis(Gaussian(DistanceQuantile(0.0))), "'fraction' parameter of DistanceQuantile"),
        (
            RadialBasis(Polyharmonic(6)),
            "'exponent' parameter of Polyharmonic must be a whole number",
        ),
        (
            RadialBasis(smoothing=-1.0),
            "'smoothing' parameter of RadialBasis must be a number of at",
        ),
        (
            RadialBasis(smoothing=True),
            "'smoothing' parameter of RadialBasis must be a number of at",
        ),
        (RadialBasis(polynomial_degree=9), "'polynomial_degree' parameter of RadialBasis must be"),
        (RadialBasis(points_per_axis=1), "'points_per_axis' parameter of RadialBasis must be"),
        (RadialBasis(control_points=np.zeros((4, 5))), "'control_points' parameter of RadialBasis"),
        (RadialBasis(control_points=np.zeros((2, 2))), "needs at least 3 centres. Got 2 instead"),
        (RadialBasis(Multiquadric(), polynomial_degree=None), "of at least 0 in RadialBasis"),
        (RadialBasis(Polyharmonic(4)), "'polynomial_degree' of at least 2 in RadialBasis"),
    ],
    ids=str,
)
def test_bad_parameters_are_told_in_one_sentence(model, message, rng):
    with pytest.raises(ValueError, match=message):
        model.basis(rng.normal(size=(30, 2)))


def test_centres_that_differ_in_number_are_refused(rng):
    model = RadialBasis(control_points=lambda points: points)
    shapes = Shapes(smooth_family(missing=0.1))
    with pytest.raises(ValueError, match="must make equally many points for every shape"):
        DefGPA(model).fit(shapes)


def test_many_landmarks_have_the_cost_of_their_features(rng):
    """So many that distances are measured shape by shape."""
    points = smooth_family(seed=5, n=2, m=1200)
    model = RadialBasis(Gaussian(), 4, smoothing=1e-2)
    cost = build_cost(measure_geometry(points, ~np.isnan(points[..., 0])), model)
    block = rng.normal(size=(1200, 3))
    left = np.zeros_like(block)
    for shape in points:
        basis = model.basis(shape)
        features, penalty = basis.features(shape), basis.penalty()
        left += block - features @ np.linalg.solve(
            features.T @ features + penalty, features.T @ block
        )
    np.testing.assert_allclose(cost.multiply(block), left, **PARITY)
