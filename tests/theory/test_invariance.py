"""What must not matter does not: pose, order, units, names, and what was never seen."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defgpa import Affine, DefGPA, ElasticGPA, Shapes, ThinPlateSpline
from support import EXACT, assert_same_shape, every_warp, moved, smooth_family, warned_of

SEEDS = pytest.mark.parametrize("seed", [0, 1, 2])


@every_warp
@SEEDS
def test_rigid_motion_of_each_shape_leaves_the_reference(warp, seed, shapes):
    expected = DefGPA(warp).fit(shapes).alignment_
    result = DefGPA(warp).fit(moved(shapes.points, seed)).alignment_
    assert_same_shape(result.reference, expected.reference)
    assert_same_shape(result.aligned, expected.aligned)
    np.testing.assert_allclose(result.rmse_datum, expected.rmse_datum, **EXACT)


@every_warp
@SEEDS
def test_similarities_of_each_shape_leave_the_reference_but_for_its_size(warp, seed, shapes):
    expected = DefGPA(warp).fit(shapes).reference_
    result = DefGPA(warp).fit(moved(shapes.points, seed, scales=(0.3, 3.0))).reference_
    ratio = np.linalg.norm(result) / np.linalg.norm(expected)
    assert not np.isclose(ratio, 1.0, rtol=1e-3)
    assert_same_shape(result / ratio, expected)


def test_absolute_smoothing_is_rigidly_invariant(shapes):
    warp = ThinPlateSpline(4, theta=0.01)
    expected = DefGPA(warp).fit(shapes).reference_
    assert_same_shape(DefGPA(warp).fit(moved(shapes.points)).reference_, expected)


def test_absolute_smoothing_depends_on_the_scale_of_each_shape(shapes):
    """The counter-example, and the reason why smoothing is relative."""
    warp = ThinPlateSpline(4, theta=0.01)
    expected = DefGPA(warp).fit(shapes).reference_
    result = DefGPA(warp).fit(moved(shapes.points, scales=(0.3, 3.0))).reference_
    result = result * np.linalg.norm(expected) / np.linalg.norm(result)
    assert np.abs(result - expected).max() > 1e-4 * np.abs(expected).max()


def test_control_points_that_move_with_the_shapes_keep_the_reference(full_shapes):
    warp = ThinPlateSpline(control_points=lambda points: 1.2 * points[:12] - 0.2 * points[12])
    expected = DefGPA(warp).fit(full_shapes).reference_
    assert_same_shape(DefGPA(warp).fit(moved(full_shapes.points)).reference_, expected)


def test_control_points_that_stay_behind_change_the_reference(full_shapes, rng):
    controls = 3 * rng.normal(size=(12, full_shapes.n_dims))
    warp = ThinPlateSpline(control_points=controls)
    expected = DefGPA(warp).fit(full_shapes).reference_
    result = DefGPA(warp).fit(moved(full_shapes.points)).reference_
    assert np.abs(result - expected).max() > 1e-4 * np.abs(expected).max()


@every_warp
def test_shapes_far_from_the_origin_align_as_shapes_near_it(warp, shapes):
    """At 10⁶ times their size only ten digits of the shapes are left, and ten come back."""
    expected = DefGPA(warp).fit(shapes).reference_
    far = DefGPA(warp).fit(moved(shapes.points, far=1e6)).reference_
    assert_same_shape(far, expected, rtol=1e-8)


@every_warp
@pytest.mark.parametrize("unit", [1e-6, 25.4, 1e9])
def test_other_units_scale_the_reference(warp, unit, shapes):
    expected = DefGPA(warp).fit(shapes).alignment_
    result = DefGPA(warp).fit(unit * shapes.points).alignment_
    assert_same_shape(result.reference, unit * expected.reference)
    np.testing.assert_allclose(result.rmse_reference, unit * expected.rmse_reference, rtol=1e-9)
    np.testing.assert_allclose(result.rmse_datum, unit * expected.rmse_datum, rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-3, 25.4])
def test_theta_has_the_unit_length_to_the_four_minus_d(unit, shapes):
    warp = ThinPlateSpline(4, theta=0.01)
    converted = replace(warp, theta=0.01 * unit ** (4 - shapes.n_dims))
    expected = DefGPA(warp).fit(shapes).reference_
    result = DefGPA(converted).fit(unit * shapes.points).reference_
    assert_same_shape(result, unit * expected)
    unconverted = DefGPA(warp).fit(unit * shapes.points).reference_
    assert np.abs(unconverted - unit * expected).max() > 1e-4 * unit * np.abs(expected).max()


PARTIAL = Shapes(smooth_family(seed=8, n=7, m=35, d=3, missing=0.2))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.permutations(range(PARTIAL.n_shapes)))
def test_the_order_of_the_shapes_does_not_matter(order):
    warp = ThinPlateSpline(3)
    expected = DefGPA(warp).fit(PARTIAL).alignment_
    result = DefGPA(warp).fit(PARTIAL.take(order)).alignment_
    assert_same_shape(result.reference, expected.reference)
    assert_same_shape(result.aligned, expected.aligned[order])


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.permutations(range(PARTIAL.n_landmarks)))
def test_the_order_of_the_landmarks_does_not_matter(order):
    warp = ThinPlateSpline(3)
    expected = DefGPA(warp).fit(PARTIAL).reference_
    result = DefGPA(warp).fit(PARTIAL.points[:, order]).reference_
    assert_same_shape(result, expected[order])


@pytest.mark.parametrize("estimator", [DefGPA(), ElasticGPA()], ids=["deformable", "elastic"])
@pytest.mark.parametrize("garbage", [0.0, 1e6, np.inf, np.nan])
def test_coordinates_of_missing_landmarks_do_not_count(garbage, estimator, shapes):
    hidden = shapes.points.copy()
    hidden[~shapes.visible] = garbage
    hidden[0, ~shapes.visible[0], 0] = -1e9  # half of it something else
    result = estimator.align(Shapes(hidden, visible=shapes.visible)).reference
    np.testing.assert_array_equal(result, estimator.align(shapes).reference)


def test_names_do_not_change_the_reference(shapes):
    named = Shapes(
        shapes.points,
        names=[f"specimen {i}" for i in range(shapes.n_shapes)],
        landmarks=[f"mark {j}" for j in range(shapes.n_landmarks)],
    )
    np.testing.assert_array_equal(DefGPA().fit(named).reference_, DefGPA().fit(shapes).reference_)


@every_warp
@SEEDS
def test_symmetric_shapes_come_back_in_one_pose(warp, seed):
    """A bilateral shape has no heavier side; rounding must not choose one."""
    rng = np.random.default_rng(3)
    half = rng.normal(size=(25, 2)) * [1, 2]
    half[:, 0] += 2
    base = np.vstack([half, half * [-1, 1]])
    shapes = base * rng.uniform(0.8, 1.2, size=(6, 1, 2))
    expected = DefGPA(warp).fit(shapes).reference_
    assert_same_shape(DefGPA(warp).fit(moved(shapes, seed)).reference_, expected)


@SEEDS
def test_flat_shapes_in_space_come_back_in_one_pose(seed):
    """Exactly flat shapes are not mirrored and not unmirrored; rounding must not choose."""
    flat = np.zeros((6, 45, 3))
    flat[..., :2] = smooth_family(seed=5, m=45)
    with warned_of("lie in a plane"):
        expected = DefGPA(Affine()).fit(flat).reference_
    with warned_of("lie in a plane"):
        result = DefGPA(Affine()).fit(moved(flat, seed)).reference_
    assert_same_shape(result, expected)
    np.testing.assert_array_equal(result[:, 2], 0)


def test_the_same_fit_twice_is_the_same_bit_for_bit(shapes):
    first, second = (DefGPA().fit(shapes.points.copy()).alignment_ for _ in range(2))
    np.testing.assert_array_equal(first.reference, second.reference)
    np.testing.assert_array_equal(first.aligned, second.aligned)
