"""Warps are functions: their derivatives, their inverses, and where they fold."""

import numpy as np
import pytest

from defgpa import Affine, DefGPA, DegenerateShapeError, ShapeError, ThinPlateSpline, Warp
from defgpa.warps import NewtonInverse
from defgpa.warps.distances import compute_squared_distances
from defgpa.warps.thin_plate import (
    compute_thin_plate_kernel,
    compute_thin_plate_slope,
    fit_interpolating_spline,
)
from support import EXACT, LIMIT, ChargedTranslations, every_warp, smooth_family

pytestmark = pytest.mark.filterwarnings("ignore:This warp has no free translations")
DIMS = pytest.mark.parametrize("d", [2, 3])


def fitted(warp, shapes):
    return DefGPA(warp).fit(shapes).alignment_


@every_warp
def test_a_warp_is_its_features_times_its_weights(warp, shapes, rng):
    fitted_warp = fitted(warp, shapes).warps[1]
    points = 3 * rng.normal(size=(50, shapes.n_dims))
    expected = fitted_warp.basis.features(points) @ fitted_warp.coefficients
    np.testing.assert_allclose(fitted_warp(points), expected, **EXACT)


def test_the_jacobian_of_a_basis_of_ones_own_comes_from_differences(full_shapes):
    warp = DefGPA(ChargedTranslations()).fit(full_shapes).warps_[0]
    points = full_shapes.points[0]
    expected = np.broadcast_to(
        warp.coefficients[:-1].T, (len(points), full_shapes.n_dims, full_shapes.n_dims)
    )
    np.testing.assert_allclose(warp.jacobian(points), expected, **LIMIT)


@DIMS
def test_the_jacobian_is_finite_at_the_control_points(d, rng):
    points = rng.normal(size=(40, d))
    basis = ThinPlateSpline(3).basis(points)
    warp = Warp(basis, rng.normal(size=(3**d, d)))
    at_control = warp.jacobian(basis.control_points)
    beside = warp.jacobian(basis.control_points + 1e-7)
    if d == 2:
        np.testing.assert_allclose(at_control, beside, **LIMIT)
    else:  # −r is a cone: its slope depends on the side one comes from, but is bounded
        assert np.abs(at_control - beside).max() < 2 * np.abs(warp.column_coefficients).max()


@DIMS
def test_the_slope_is_the_derivative_of_the_kernel(d, rng):
    """∇φ = ψ(r²) (x − c), so ψ = 2 φ′ as a function of r²."""
    squared, step = rng.uniform(0.1, 4.0, size=50), 1e-6
    rise = compute_thin_plate_kernel(squared + step, d) - compute_thin_plate_kernel(
        squared - step, d
    )
    np.testing.assert_allclose(compute_thin_plate_slope(squared, d), rise / step, **LIMIT)
    assert compute_thin_plate_kernel(np.zeros(3), d).tolist() == [0, 0, 0]


@DIMS
@pytest.mark.parametrize("p", [5, 400, 3000])
def test_distances_of_stacks_are_those_of_their_members(d, p, rng):
    points, centres = rng.normal(size=(3, p, d)), rng.normal(size=(3, 7, d))
    expected = np.sum((points[:, :, None] - centres[:, None]) ** 2, axis=-1)
    np.testing.assert_allclose(compute_squared_distances(points, centres), expected, **EXACT)
    np.testing.assert_allclose(
        compute_squared_distances(points[0], centres[0]), expected[0], **EXACT
    )


def test_the_slope_at_the_tip_is_the_mean_of_all_sides():
    np.testing.assert_array_equal(compute_thin_plate_slope(np.zeros(2), 3), 0)
    assert np.isfinite(compute_thin_plate_slope(np.zeros(2), 2)).all()


def test_the_affine_inverse_is_exact(shapes, rng):
    for warp in fitted(Affine(), shapes).warps:
        points = 5 * rng.normal(size=(40, shapes.n_dims))
        np.testing.assert_allclose(warp.inverse()(warp(points)), points, **EXACT)
        np.testing.assert_allclose(warp(warp.inverse()(points)), points, **EXACT)


@pytest.mark.parametrize("smoothing", [1e-3, 1e-6])
def test_the_inverse_of_a_spline_takes_the_control_points_home(smoothing, shapes):
    for warp in fitted(ThinPlateSpline(3, smoothing=smoothing), shapes).warps:
        controls = warp.basis.control_points
        np.testing.assert_allclose(warp.inverse()(warp(controls)), controls, **EXACT)


def test_the_inverse_of_a_spline_is_the_interpolating_one_without_smoothing(full_shapes):
    """[[K, C̃], [C̃ᵀ, 0]] with λ = 0, from the images to the control points."""
    warp = fitted(ThinPlateSpline(3), full_shapes).warps[0]
    controls = warp.basis.control_points
    images, d = warp(controls), full_shapes.n_dims
    squared = np.sum((images[:, None] - images) ** 2, axis=2)
    kernel = -np.sqrt(squared)
    if d == 2:
        kernel = squared * np.log(np.where(squared > 0, squared, 1.0))
    border = np.column_stack([images, np.ones(len(images))])
    system = np.block([[kernel, border], [border.T, np.zeros((d + 1, d + 1))]])
    solved = np.linalg.solve(system, np.vstack([controls, np.zeros((d + 1, d))]))
    points = full_shapes.points[0][:20]
    distances = np.sum((points[:, None] - images) ** 2, axis=2)
    columns = -np.sqrt(distances) if d == 3 else distances * np.log(distances)
    expected = np.column_stack([columns, points, np.ones(len(points))]) @ solved
    np.testing.assert_allclose(warp.inverse()(points), expected, **EXACT)


def test_the_approximate_inverse_of_a_bent_warp_is_not_exact(full_shapes):
    """The counter-example: the paper's inverse is exact at the control points only."""
    warp = fitted(ThinPlateSpline(3, smoothing=1e-6), full_shapes).warps[0]
    points = full_shapes.points[0]
    error = np.linalg.norm(warp.inverse()(warp(points)) - points, axis=1)
    assert error.max() > 1e-4


def test_a_basis_of_ones_own_is_inverted_point_by_point(full_shapes):
    warp = DefGPA(ChargedTranslations()).fit(full_shapes).warps_[0]
    points = full_shapes.points[0]
    np.testing.assert_allclose(warp.inverse()(warp(points)), points, **LIMIT)


@DIMS
def test_an_interpolating_spline_interpolates(d, rng):
    sources, targets = rng.normal(size=(2, 30, d))
    np.testing.assert_allclose(
        fit_interpolating_spline(sources, targets)(sources), targets, **EXACT
    )


@DIMS
def test_coincident_sources_with_one_target_are_interpolated_too(d, rng):
    sources, targets = rng.normal(size=(2, 20, d))
    sources, targets = np.vstack([sources, sources[:4]]), np.vstack([targets, targets[:4]])
    np.testing.assert_allclose(
        fit_interpolating_spline(sources, targets)(sources), targets, **LIMIT
    )  # a singular system is solved by least squares


def test_missing_landmarks_stay_missing_through_warps(shapes):
    alignment = fitted(ThinPlateSpline(3), shapes)
    for warp, shape, visible in zip(alignment.warps, shapes.points, shapes.visible, strict=True):
        for function in (warp, warp.inverse(), warp.exact_inverse()):
            np.testing.assert_array_equal(np.isnan(function(shape)).any(axis=1), ~visible)


def test_a_warp_that_folds_is_caught_where_it_folds():
    """Control points swapped across the middle turn the plane over there, and only there."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, size=(400, 2))
    controls = np.array([[x, y] for x in (-1.0, -0.2, 0.2, 1.0) for y in (-1.0, 0.0, 1.0)])
    images = controls.copy()
    images[4], images[7] = controls[7], controls[4]
    folded = fit_interpolating_spline(controls, images).foldovers(points)
    middle = np.abs(points).max(axis=1) < 0.15
    edge = np.abs(points).max(axis=1) > 0.9
    assert folded[middle].mean() > 0.8
    assert not folded[edge].any()
    determinant = np.linalg.det(fit_interpolating_spline(controls, images).jacobian(points))
    np.testing.assert_array_equal(folded, determinant <= 0)


@DIMS
def test_a_mirrored_warp_folds_nowhere(d, rng):
    points = rng.normal(size=(40, d))
    mirror = points * np.array([-1.0, 1.0, 1.0])[:d]
    assert not fit_interpolating_spline(points, mirror).foldovers(points).any()


@DIMS
def test_a_collapsed_warp_folds_everywhere(d, rng):
    points = rng.normal(size=(40, d))
    weights = np.zeros((d + 1, d))
    weights[0, 0] = 1.0
    assert Warp(Affine().basis(points), weights).foldovers(points).all()


def test_the_diagnostics_count_the_landmarks_that_fold(rng):
    points = smooth_family(seed=0, m=60)
    points[2, [0, 1]] = points[2, [1, 0]]  # two landmarks swapped in one shape
    far = np.argsort(np.linalg.norm(points[2] - points[2].mean(axis=0), axis=1))[:2]
    points[2, far] = points[2, far[::-1]]
    alignment = DefGPA(ThinPlateSpline(9, smoothing=1e-9)).solve(points)[0]
    expected = [
        int((np.linalg.det(w.jacobian(shape)) <= 0).sum())
        for w, shape in zip(alignment.warps, points, strict=True)
    ]
    np.testing.assert_array_equal(alignment.foldovers, expected)
    assert alignment.foldovers[2] > 0
    smooth = DefGPA().fit(smooth_family(seed=0, m=60)).alignment_
    np.testing.assert_array_equal(smooth.foldovers, 0)


def test_a_flat_affine_warp_has_no_inverse(rng):
    points = rng.normal(size=(40, 3))
    weights = np.vstack([rng.normal(size=(2, 3)), np.zeros((2, 3))])
    with pytest.raises(DegenerateShapeError, match="flattens space and has no inverse"):
        Warp(Affine().basis(points), weights).inverse()


def test_an_affine_warp_that_is_flat_to_rounding_has_no_inverse(rng):
    points = rng.normal(size=(40, 3))
    rows = rng.normal(size=(2, 3))
    weights = np.vstack([rows, 0.3 * rows[0] - 1.7 * rows[1], np.zeros(3)])
    with pytest.raises(DegenerateShapeError, match="flattens space and has no inverse"):
        Warp(Affine().basis(points), weights).inverse()


class Valley:
    """(x, y) ↦ ((x³ − 3x) / 5, y), and a rough inverse that knows the outer branches."""

    def __call__(self, points):
        x, y = np.asarray(points).T
        return np.column_stack([(x**3 - 3 * x) / 5, y])

    def jacobian(self, points):
        result = np.tile(np.eye(2), (len(points), 1, 1))
        result[:, 0, 0] = (3 * points[:, 0] ** 2 - 3) / 5
        return result

    def inverse(self):
        return lambda targets: np.column_stack(
            [np.sign(targets[:, 0]) * 2.5, np.asarray(targets)[:, 1]]
        )


def test_only_the_points_that_were_lost_are_sought_again():
    """One point is found where it is looked for first, the other is at the turn of the valley."""
    targets = np.array([[-3.0, 0.5], [1.0, 0.2], [np.nan, 1.0]])
    inverse = NewtonInverse(Valley())
    stuck = inverse.find_near(targets, targets)
    np.testing.assert_array_equal(np.isnan(stuck[:, 0]), [False, True, True])
    sources = inverse(targets)
    np.testing.assert_allclose(Valley()(sources[:2]), targets[:2], **EXACT)
    np.testing.assert_array_equal(sources[0], stuck[0])
    assert np.isnan(sources[2]).all()


def test_a_point_without_a_preimage_is_not_invented():
    """x ↦ x² reaches nothing below zero."""

    class Squares:
        def features(self, points):
            return np.column_stack([points[:, 0] ** 2, points[:, 1]])

        def penalty(self):
            return 0.0

    warp = Warp(Squares(), np.eye(2))
    sources = warp.exact_inverse()(np.array([[4.0, 1.0], [-4.0, 1.0], [9.0, -2.0]]))
    np.testing.assert_array_equal(np.isnan(sources).any(axis=1), [False, True, False])
    np.testing.assert_allclose(warp(sources[[0, 2]]), [[4.0, 1.0], [9.0, -2.0]], **EXACT)


@every_warp
def test_a_warp_followed_by_an_affine_map(warp, full_shapes, rng):
    fitted_warp = fitted(warp, full_shapes).warps[0]
    d = full_shapes.n_dims
    matrix, offset = rng.normal(size=(d, d)), rng.normal(size=d)
    points = full_shapes.points[0]
    expected = fitted_warp(points) @ matrix + offset
    np.testing.assert_allclose(
        fitted_warp.compose_affine(matrix, offset)(points), expected, **EXACT
    )
    twice = fitted_warp.compose_affine(matrix, offset).compose_affine(matrix, offset)
    np.testing.assert_allclose(twice(points), expected @ matrix + offset, **EXACT)
    back = fitted_warp.compose_affine(matrix, offset).inverse()
    np.testing.assert_allclose(
        back(fitted_warp.compose_affine(matrix, offset)(points)),
        fitted_warp.inverse()(fitted_warp(points)),
        rtol=0.2,
        atol=0.2,
    )  # only near: an approximate inverse is one in its own frame


def test_many_points_go_through_in_blocks(full_shapes, rng):
    warp = fitted(ThinPlateSpline(5), full_shapes).warps[0]
    points = rng.normal(size=(30_000, full_shapes.n_dims))
    together = warp(points)
    np.testing.assert_allclose(together[::5000], warp(points[::5000]), **EXACT)
    np.testing.assert_allclose(
        warp.jacobian(points)[::5000], warp.jacobian(points[::5000]), **EXACT
    )


@pytest.mark.parametrize("points", [[1.0, 2.0], np.zeros((4, 3)), np.zeros((1, 4, 2))])
def test_points_of_the_wrong_size_are_refused(points):
    warp = DefGPA().fit(smooth_family()).warps_[0]
    with pytest.raises(ShapeError, match=r"A 2-D warp takes points \(p, 2\); got an array of size"):
        warp(points)
