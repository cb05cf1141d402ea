"""Landmarks in another order than the reference's are recognised by their places."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from defgpa import DefGPA, Shapes, save, write_shapes
from defgpa.diagnostics.findings import Problem
from defgpa.diagnostics.landmark_order import check_landmark_order, match_by_place
from support import smooth_family

SETS = {2: smooth_family(seed=7, n=8, m=25), 3: smooth_family(seed=8, n=8, m=25, d=3)}


def turn(points, seed=0):
    """Return points in another pose and size."""
    rotation = Rotation.random(random_state=seed).as_matrix()
    if points.shape[-1] == 2:
        angle = 2.1 + seed
        rotation = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return 3.0 * points @ rotation + 7.0


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_shape_in_another_order_is_named(d, seed):
    points = np.array(SETS[d])
    points[2] = turn(points[2][np.random.default_rng(seed).permutation(25)], seed)
    finding = check_landmark_order(points[0], Shapes(points))
    assert finding.problem is Problem.OTHER_LANDMARK_ORDER
    assert finding.shapes == ("shape_3",)
    assert finding.values["matched_error"] < 0.4 * finding.values["error"]


@pytest.mark.parametrize("d", [2, 3])
def test_shapes_in_order_are_not_named_mirrored_turned_or_partial(d):
    points = np.array(SETS[d])
    points[1] = turn(points[1])
    points[2, :, 0] *= -1
    points[3, :9] = np.nan
    assert check_landmark_order(points[0], Shapes(points)) is None


def test_a_shape_of_another_kind_is_not_named():
    points = np.array(SETS[2])
    points[2] = np.random.default_rng(0).normal(size=(25, 2)) ** 3
    assert check_landmark_order(points[0], Shapes(points)) is None


def test_missing_landmarks_of_a_shuffled_shape_are_left_out():
    points = np.array(SETS[2])
    points[2] = points[2][::-1]
    points[2, [3, 21]] = np.nan
    reference = points[0].copy()
    reference[4] = np.nan
    assert check_landmark_order(reference, Shapes(points)).shapes == ("shape_3",)


@pytest.mark.parametrize("d", [2, 3])
def test_the_order_is_found(d):
    target = SETS[d][0]
    order = np.random.default_rng(1).permutation(25)
    source = turn(target * ([-1.0] + [1.0] * (d - 1)))[order]
    np.testing.assert_array_equal(order[match_by_place(source, target)], np.arange(25))


def test_register_names_another_order_and_no_other_units(run, tmp_path):
    points = SETS[2]
    new = np.stack([points[6], points[6][::-1], points[7] * [-1.0, 1.0]])
    save(DefGPA().align(points[:6]), tmp_path / "result.npz")
    write_shapes(Shapes(new, names=["same", "reversed", "mirrored"]), tmp_path / "new.csv")
    words = ("register", tmp_path / "result.npz", tmp_path / "new.csv", "-o", tmp_path / "out")
    output = " ".join(run.succeed(*words)[1].split())
    assert "The landmarks of 'reversed' seem to be in another order" in output
    assert "Mirrored against the reference: 'mirrored'." in output
    assert "Other units?" not in output
