"""The classical tangent space: geomorph's numbers, and what must not change it."""

from __future__ import annotations

import numpy as np
import pytest

from defgpa import DegenerateShapeError, ShapeError, Shapes
from defgpa.statistics import centroid_sizes, tangent_space
from defgpa.tangent_space import project_complete_shapes
from support import EXACT, moved, smooth_family


@pytest.mark.parametrize("d", [2, 3])
def test_pose_and_size_of_each_shape_do_not_matter(d):
    shapes = smooth_family(seed=d, d=d)
    moved_shapes = moved(shapes, seed=4, scales=(0.1, 9.0))
    expected, actual = tangent_space(shapes), tangent_space(moved_shapes)
    np.testing.assert_allclose(_distances(actual), _distances(expected), **EXACT)


def _distances(x):
    return np.linalg.norm(x[:, None] - x[None], axis=(2, 3))


def test_the_mean_has_unit_size_and_every_difference_from_it_is_at_right_angles_to_it():
    x = tangent_space(smooth_family(seed=1))
    mean = x.mean(axis=0)
    np.testing.assert_allclose(np.linalg.norm(mean), 1.0, **EXACT)
    np.testing.assert_allclose(np.einsum("nmd,md->n", x - mean, mean), 0.0, atol=1e-12)
    np.testing.assert_allclose(x.mean(axis=1), 0.0, atol=1e-12)


def test_the_pose_is_that_of_the_first_shape():
    shapes = moved(smooth_family(seed=2), far=0.0)
    x = tangent_space(shapes)
    cross = (shapes[0] - shapes[0].mean(axis=0)).T @ x[0]
    np.testing.assert_allclose(cross, cross.T, atol=1e-9 * np.abs(cross).max())
    assert np.linalg.eigvalsh(cross).min() > 0


def test_a_mirror_image_is_not_turned_over():
    shapes = smooth_family(seed=3, bend=0.05)
    shapes[1] = shapes[1] * [-1, 1]
    assert _distances(tangent_space(shapes))[1, 2:].min() > 0.3


def test_the_order_of_shapes_changes_nothing_but_the_order():
    shapes = smooth_family(seed=5)
    expected = _distances(tangent_space(shapes))
    np.testing.assert_allclose(
        _distances(tangent_space(shapes[::-1])), expected[::-1, ::-1], **EXACT
    )


def test_centroid_sizes_of_squares_are_their_sides_times_root_two():
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    sizes = centroid_sizes([square, 3 * square + 100.0])
    np.testing.assert_allclose(sizes, np.sqrt(2) * np.array([1.0, 3.0]), **EXACT)


def test_missing_landmarks_are_completed_though_the_superimposition_refuses_them():
    shapes = smooth_family(seed=6)
    partial = shapes.copy()
    partial[2, 4] = np.nan
    np.testing.assert_allclose(tangent_space(partial), tangent_space(shapes), atol=0.02)
    with pytest.raises(ShapeError, match=r"'beetle 3'.*defgpa\.complete"):
        project_complete_shapes(Shapes(partial, names=[f"beetle {i + 1}" for i in range(6)]))


def test_sizes_with_missing_landmarks_are_those_of_the_completed_shapes():
    complete = smooth_family(seed=6, n=8, bend=0.05)
    partial = complete.copy()
    partial[2, 4] = np.nan
    np.testing.assert_allclose(centroid_sizes(partial), centroid_sizes(complete), rtol=5e-3)


@pytest.mark.parametrize("unit", [1e-160, 1e150, 1e160])
def test_sizes_and_tangent_coordinates_survive_extreme_units(unit):
    shapes = smooth_family(seed=6)
    np.testing.assert_allclose(centroid_sizes(shapes * unit) / unit, centroid_sizes(shapes))
    np.testing.assert_allclose(tangent_space(shapes * unit), tangent_space(shapes), **EXACT)


def test_a_shape_in_one_place_is_refused_by_name():
    shapes = smooth_family(seed=7)
    shapes[1] = 5.0
    with pytest.raises(DegenerateShapeError, match="'shape_2'"):
        tangent_space(shapes)
