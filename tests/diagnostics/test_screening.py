"""A look at the shapes before anything is fitted names what is wrong, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from defgpa import Shapes
from defgpa.diagnostics.preparation import guess_units
from defgpa.diagnostics.screening import (
    _find_outliers,
    _has_outlying_size,
    compute_mean_error_probability,
    screen,
)
from defgpa.io.missing_codes import find_coded_landmarks, find_missing_code
from defgpa.tuning import DEFAULT
from support import EXACT, shared_data, shared_points, smooth_family


@pytest.fixture(params=[2, 3])
def points(request):
    return smooth_family(seed=request.param, n=12, m=40, d=request.param, bend=0.08)


def nothing_in(screening, *but):
    kinds = ("mirrored", "outliers", "other_size", "exchanged", "misplaced", "coincident")
    return all(not getattr(screening, kind) for kind in (*kinds, "repeated") if kind not in but)


def test_nothing_is_found_where_nothing_is_wrong(points):
    assert nothing_in(screen(Shapes(points)))
    points[1, 3:9] = points[4, 20:30] = np.nan
    assert nothing_in(screen(Shapes(points)))


def test_a_mirrored_shape_is_named_alone(points):
    points[3, :, 0] *= -1
    screening = screen(Shapes(points))
    assert screening.mirrored == ("shape_4",)
    assert nothing_in(screening, "mirrored")


def test_exchanged_landmarks_are_named_and_not_called_misplaced(points):
    far = int(np.argmax(np.linalg.norm(points[5] - points[5, 7], axis=1)))
    points[5, [7, far]] = points[5, [far, 7]]
    screening = screen(Shapes(points))
    assert {frozenset(pair) for _, *pair in screening.exchanged} == {frozenset({"8", str(far + 1)})}
    assert nothing_in(screening, "exchanged", "outliers")


def test_a_landmark_elsewhere_is_named(points):
    size = np.sqrt(((points[2] - points[2].mean(axis=0)) ** 2).sum(axis=1).mean())
    points[2, 9, 0] += 2 * size
    screening = screen(Shapes(points))
    assert screening.misplaced == (("shape_3", "10"),)
    assert nothing_in(screening, "misplaced", "outliers")


@pytest.mark.parametrize(("factor", "is_named"), [(0.75, False), (1.05, True)])
@pytest.mark.parametrize(
    ("noise", "threshold"), [(0.005, DEFAULT.min_misplacement), (0.05, None)], ids=["size", "noise"]
)
def test_the_threshold_of_a_misplaced_landmark(noise, threshold, factor, is_named):
    """0.2 of the size of the shapes, or 8 times what is usual where that is more."""
    rng = np.random.default_rng(3)
    base = rng.normal(size=(40, 2))
    base = (base - base.mean(axis=0)) / np.sqrt(((base - base.mean(axis=0)) ** 2).sum(1).mean())
    points = base + noise * rng.normal(size=(12, 40, 2))
    if threshold is None:  # the median length of noise in the plane
        threshold = DEFAULT.misplaced_ratio * noise * np.sqrt(2 * np.log(2))
        assert threshold > DEFAULT.min_misplacement
    points[4, 11] = base[11] + [factor * threshold, 0.0]
    named = screen(Shapes(points)).misplaced
    assert named == ((("shape_5", "12"),) if is_named else ())


def test_a_landmark_of_one_shape_only_says_nothing(points):
    screening = screen(Shapes(points))
    points = np.concatenate([points, np.full_like(points[:, :1], np.nan)], axis=1)
    points[4, -1] = 1e3
    complete_screening = screen(Shapes(points))
    np.testing.assert_allclose(complete_screening.errors, screening.errors, **EXACT)
    np.testing.assert_allclose(complete_screening.sizes, screening.sizes, **EXACT)
    assert nothing_in(complete_screening)


def test_a_shape_that_is_something_else_is_far_from_all_others(points):
    points[7] = np.random.default_rng(0).normal(size=points[7].shape)
    assert screen(Shapes(points)).outliers == ("shape_8",)


@pytest.mark.parametrize("factor", [1000.0, 1e-3])
def test_other_units_are_named_and_change_nothing_else(points, factor):
    before = screen(Shapes(points))
    scaled = points.copy()
    scaled[[1, 5]] *= factor
    screening = screen(Shapes(scaled))
    assert screening.other_size == ("shape_2", "shape_6")
    np.testing.assert_allclose(screening.sizes[1] / before.sizes[1], factor, rtol=0.1)
    np.testing.assert_allclose(screening.errors, before.errors, rtol=1e-6)
    assert nothing_in(screening, "other_size")


def test_the_size_of_a_part_is_that_of_the_whole():
    """A shape with only one end seen is no smaller than the others."""
    points = smooth_family(seed=4, n=8, m=60, d=2, bend=0.0, noise=0.0)
    all_sizes = screen(Shapes(points)).sizes
    ends = np.argsort(points[3, :, 0])[15:]
    points[3, ends] = np.nan
    np.testing.assert_allclose(screen(Shapes(points)).sizes, all_sizes, **EXACT)


def test_shapes_and_landmarks_that_repeat_are_named(points):
    points[2, 0] = 0.0
    points[6] = points[2]
    points[6, 0] = -0.0
    points[4, 11] = points[4, 30]
    screening = screen(Shapes(points))
    assert screening.repeated == (("shape_7", "shape_3"),)
    assert ("shape_5", "12", "31") in screening.coincident


def test_missing_landmarks_are_no_repetition(points):
    points[:, 5] = points[0, 5]
    points[3:, 5] = np.nan
    points[3:5, 6:9] = np.nan
    screening = screen(Shapes(points))
    assert not screening.coincident
    assert not screening.repeated


@pytest.mark.parametrize("name", ["face2d", "histology2d", "tshirt3d", "guenons3d", "cactus3d"])
def test_real_sets_are_not_accused(name):
    screening = screen(Shapes(shared_points(name)))
    assert nothing_in(screening, "outliers")
    assert len(screening.outliers) <= 2


def test_the_turtles_are_found_to_mix_units():
    """Thirteen of the forty skulls are in micrometres or the like."""
    with np.load(shared_data("turtles3d_partial.npz"), allow_pickle=False) as archive:
        shapes = Shapes(archive["points"], names=archive["names"])
    screening = screen(shapes)
    assert len(screening.other_size) == 13
    assert nothing_in(screening, "other_size", "coincident")


@pytest.mark.parametrize("code", [-1.0, 9999.0, -999.0])
def test_a_code_for_missing_is_guessed_before_the_scale(code):
    points = np.random.default_rng(1).uniform(0, 400, size=(5, 8, 2))
    assert find_missing_code(Shapes(points)) is None
    points[2, 3] = points[4, 3] = code
    assert find_missing_code(Shapes(points)) == code
    scales = (0.0045, 0.0045, 0.0046, None, 0.0045)
    scaled = points * [[[1.0 if scale is None else scale]] for scale in scales]
    assert find_missing_code(Shapes(scaled, metadata={"scales": scales})) == code


@pytest.mark.parametrize("code", [-1.0, -9.0, -99.0, -999.0, -9999.0, 999.0, 9999.0, 99999.0])
def test_the_codes_that_programs_write_are_known_though_not_far_out(code):
    points = np.random.default_rng(1).uniform(-0.6, 0.6, size=(5, 8, 2)) * abs(code)
    points[2, 3] = code
    assert find_missing_code(Shapes(points)) == code


def test_a_code_among_other_coordinates_is_a_coordinate():
    points = np.random.default_rng(1).uniform(-5, 5, size=(5, 8, 2))
    points[2, 3] = -1
    assert find_missing_code(Shapes(points)) is None
    points[2, 3] = -9, 9999
    assert find_missing_code(Shapes(points)) is None


def test_a_code_that_repeats_counts_among_other_coordinates():
    points = np.random.default_rng(1).uniform(-5, 5, size=(5, 8, 2))
    points[2, 3] = points[4, 6] = -1
    assert find_missing_code(Shapes(points)) == -1
    points[0, 0, 1] = -1  # a coordinate that happens to be -1
    assert find_missing_code(Shapes(points)) is None
    points[0, 0, 1] = 0.5
    points[:, 3] = -1  # a corner that all shapes share
    assert find_missing_code(Shapes(points)) is None


def test_units_are_guessed_from_what_the_files_say():
    pixels = np.random.default_rng(1).uniform(0, 400, size=(5, 8, 2))
    assert guess_units(Shapes(pixels)) == "probably pixels"
    pixels[0, 0] = 0
    assert guess_units(Shapes(pixels)) == "probably pixels"
    assert "normalised" in guess_units(Shapes(pixels / 400))
    assert "scale" in guess_units(Shapes(pixels, metadata={"scales": (0.1,) * 5}))
    solid = np.random.default_rng(1).uniform(0, 400, size=(5, 8, 3))
    assert "millimetres" in guess_units(Shapes(solid, metadata={"space": "LPS"}))
    assert guess_units(Shapes(solid)) == "unknown"


@pytest.mark.parametrize("place", [(1998.0, 1998.0, -1998.0), (-1998.0, -1998.0, -1998.0)])
def test_a_place_that_nobody_measured_is_a_code_whatever_its_number(place):
    points = np.random.default_rng(4).uniform(-30, 30, size=(5, 8, 3))
    points[1, 3] = points[4, 0] = place
    shapes = Shapes.specimens(points, metadata={"space": "LPS"})
    assert find_missing_code(shapes) == -1998.0
    assert np.argwhere(find_coded_landmarks(shapes, -1998.0)).tolist() == [[1, 3], [4, 0]]
    points[1, 3] = points[4, 0] = 80.0  # not so far
    assert find_missing_code(Shapes.specimens(points)) is None
    assert find_missing_code(Shapes.specimens(np.full((2, 3, 3), 7.0))) is None


@pytest.mark.parametrize(("n", "d", "q"), [(3, 2, 2), (3, 3, 5), (6, 2, 2), (6, 3, 5)])
def test_the_chance_that_a_mean_is_off_is_that_of_normal_deformations(n, d, q):
    rng = np.random.default_rng([n, d])
    shapes = 0.2 / np.sqrt(q) * rng.normal(size=(40_000, n, q))
    residual = np.sqrt(shapes.var(axis=1).sum(axis=1))
    error = np.linalg.norm(shapes.mean(axis=1), axis=1)
    # a bound that is a multiple of the residual holds with a chance that is the same for all
    expected = compute_mean_error_probability(1.0, n, d, offset=0.9)
    assert np.mean(error > 0.9 * residual) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("n", [4, 6, 12])
def test_few_shapes_are_not_called_far_by_chance(n, d):
    rng = np.random.default_rng([n, d])
    q = d * (d + 1) // 2 - 1
    shapes = rng.normal(size=(2000, n, q))
    errors = np.linalg.norm(shapes - shapes.mean(axis=1, keepdims=True), axis=2)
    named = [_find_outliers(sample, d, DEFAULT).any() for sample in errors]
    assert np.mean(named) <= DEFAULT.far_chance
    shapes[:, 0] += 50.0 / np.sqrt(q)
    errors = np.linalg.norm(shapes - shapes.mean(axis=1, keepdims=True), axis=2)
    named = np.array([_find_outliers(sample, d, DEFAULT) for sample in errors])
    assert named[:, 0].mean() > 0.9
    assert not named[:, 1:].any()


@pytest.mark.parametrize(
    ("sizes", "odd"),
    [
        ([1.0, 1.1, 0.9, 0.1], [3]),
        ([1.0, 1.1, 0.9, 10.0], [3]),
        ([1.0, 1.1, 0.3, 0.15], []),  # grown by twice and twice again
        ([1.0, 1.1, 4.0, 8.0], []),
        ([1.0, 1.1, 0.3, 0.15, 100.0], [4]),
    ],
)
def test_sizes_apart_from_all_others_are_other_units_and_a_series_is_growth(sizes, odd):
    assert np.flatnonzero(_has_outlying_size(np.array(sizes), DEFAULT)).tolist() == odd
