"""The best motion between two shapes: closed form, one pair or many."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from defgpa.errors import DegenerateShapeError, ShapeError
from defgpa.procrustes import (
    ORTHOGONAL,
    ORTHOGONAL_SIMILARITY,
    RIGID,
    SIMILARITY,
    Motions,
    find_nearest_orthogonal,
    fit_motions,
    fit_rigid,
    fit_similarity,
)
from support import EXACT

FAMILIES = {
    "rigid": RIGID,
    "similarity": SIMILARITY,
    "orthogonal": ORTHOGONAL,
    "orthogonal-similarity": ORTHOGONAL_SIMILARITY,
}


@pytest.fixture(params=FAMILIES.values(), ids=FAMILIES)
def motions(request):
    return request.param


def random_orthogonal(rng, d, sign):
    Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    Q[:, 0] *= sign * np.sign(np.linalg.det(Q))
    return Q


def misfit(source, target, rotation, scale=1.0):
    """Sum of squares after the best translation."""
    residual = target - scale * source @ rotation
    residual = residual[~np.isnan(residual[:, 0])]
    return np.sum((residual - residual.mean(axis=0)) ** 2)


def test_a_known_motion_is_recovered(d, rng):
    points = rng.normal(size=(30, d))
    turn, shift = random_orthogonal(rng, d, 1), rng.normal(size=d)
    actual = fit_rigid(points, points @ turn + shift)
    np.testing.assert_allclose(actual.rotation, turn, **EXACT)
    np.testing.assert_allclose(actual.translation, shift, **EXACT)
    assert actual.scale == 1


def test_a_known_similarity_is_recovered(d, rng):
    points = rng.normal(size=(30, d))
    turn, shift = random_orthogonal(rng, d, 1), rng.normal(size=d)
    actual = fit_similarity(points, 2.5 * points @ turn + shift)
    np.testing.assert_allclose(actual.scale, 2.5, **EXACT)
    np.testing.assert_allclose(actual(points), 2.5 * points @ turn + shift, **EXACT)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_do_not_matter(d, motions, unit, rng):
    source, target = rng.normal(size=(2, 20, d))
    plain = fit_motions(source, target, motions=motions)
    small = fit_motions(unit * source, unit * target, motions=motions)
    np.testing.assert_allclose(small.matrix, plain.matrix, **EXACT)
    np.testing.assert_allclose(small.translation, unit * plain.translation, rtol=1e-9)
    assert small.determined


def test_a_reflection_is_recovered_where_it_is_allowed(d, rng):
    points = rng.normal(size=(30, d))
    mirror = random_orthogonal(rng, d, -1)
    actual = fit_motions(points, points @ mirror, motions=ORTHOGONAL)
    np.testing.assert_allclose(actual.rotation, mirror, **EXACT)


def test_a_rotation_stays_a_rotation_although_a_mirror_fits_better(d, rng):
    points = rng.normal(size=(30, d))
    mirrored = points @ random_orthogonal(rng, d, -1)
    for actual in (fit_rigid(points, mirrored), fit_similarity(points, mirrored)):
        np.testing.assert_allclose(np.linalg.det(actual.rotation), 1, **EXACT)


def test_no_other_motion_fits_better(d, motions, rng):
    source, target = rng.normal(size=(2, 30, d))
    best = fit_motions(source, target, motions=motions)
    spent = misfit(source, target, best.rotation, best.scale)
    for _ in range(200):
        sign = rng.choice([-1, 1]) if motions.reflections else 1
        scale = rng.uniform(0.0, 2.0) if motions.scaling else 1.0
        assert misfit(source, target, random_orthogonal(rng, d, sign), scale) >= spent
    for nearby in (0.999, 1.001):
        if motions.scaling:
            assert misfit(source, target, best.rotation, nearby * best.scale) > spent


def test_rotations_agree_with_scipy(rng):
    source, target = rng.normal(size=(2, 30, 3))
    theirs, _ = Rotation.align_vectors(target - target.mean(axis=0), source - source.mean(axis=0))
    np.testing.assert_allclose(fit_rigid(source, target).rotation, theirs.as_matrix().T, **EXACT)


def test_a_hidden_landmark_does_not_count(d, rng):
    source, target = rng.normal(size=(2, 30, d))
    holed, holed_target = source.copy(), target.copy()
    holed[3], holed_target[7] = np.nan, np.nan
    in_both = np.delete(np.arange(30), [3, 7])
    visible, without = fit_rigid(holed, holed_target), fit_rigid(source[in_both], target[in_both])
    np.testing.assert_allclose(visible.rotation, without.rotation, **EXACT)
    np.testing.assert_allclose(visible.translation, without.translation, **EXACT)


def test_a_weight_of_three_is_a_point_given_three_times(d, motions, rng):
    source, target = rng.normal(size=(2, 12, d))
    weights = np.ones(12)
    weights[4] = 3
    often = np.append(np.arange(12), [4, 4])
    weighted = fit_motions(source, target, weights, motions)
    repeated = fit_motions(source[often], target[often], motions=motions)
    np.testing.assert_allclose(weighted.matrix, repeated.matrix, **EXACT)
    np.testing.assert_allclose(weighted.translation, repeated.translation, **EXACT)


def test_the_inverse_undoes_the_motion(d, motions, rng):
    source, target = rng.normal(size=(2, 4, 20, d))
    motion = fit_motions(source, target, motions=motions)
    np.testing.assert_allclose(motion.inverse()(motion(source)), source, **EXACT)


def test_a_stack_is_every_pair_on_its_own(d, motions, rng):
    source, target = rng.normal(size=(2, 5, 20, d))
    source[1, :4] = target[2, 6:9] = np.nan
    together = fit_motions(source, target, motions=motions)
    for i in range(5):
        alone = fit_motions(source[i], target[i], motions=motions)
        np.testing.assert_allclose(together[i].matrix, alone.matrix, **EXACT)
        np.testing.assert_allclose(together[i].translation, alone.translation, **EXACT)


def test_too_few_shared_landmarks_are_an_error(d, rng):
    source, target = rng.normal(size=(2, 8, d))
    source[d - 1 :] = np.nan
    with pytest.raises(DegenerateShapeError, match=f"needs at least {d} shared .* share {d - 1}"):
        fit_rigid(source, target)


@pytest.mark.parametrize("distance", [0.0, 1e6])
def test_coincident_landmarks_are_an_error(d, distance, rng):
    target = rng.normal(size=(8, d))
    with pytest.raises(DegenerateShapeError, match="more than one best motion"):
        fit_similarity(np.full((8, d), 0.1) + distance, target)


@pytest.mark.parametrize("distance", [0.0, 1e6])
def test_landmarks_on_a_line_leave_a_rotation_open_in_space(distance, rng):
    line = np.outer(rng.normal(size=9), rng.normal(size=3)) + distance
    with pytest.raises(DegenerateShapeError, match="on one line"):
        fit_rigid(line, rng.normal(size=(9, 3)))


def test_landmarks_on_a_line_determine_a_rotation_in_the_plane(rng):
    line = np.outer(rng.normal(size=9), rng.normal(size=2))
    turn = random_orthogonal(rng, 2, 1)
    np.testing.assert_allclose(fit_rigid(line, line @ turn).rotation, turn, **EXACT)


def test_landmarks_in_a_plane_determine_a_rotation_but_not_a_reflection(rng):
    sheet = rng.normal(size=(9, 2)) @ rng.normal(size=(2, 3))
    turn = random_orthogonal(rng, 3, 1)
    np.testing.assert_allclose(fit_rigid(sheet, sheet @ turn).rotation, turn, **EXACT)
    assert not fit_motions(sheet, sheet @ turn, motions=ORTHOGONAL).determined


def test_points_that_fit_in_every_direction_leave_the_motion_open():
    """Full rank is not enough: a regular triangle against its mirror image turns freely."""
    angles = np.array([0.0, 2.0, 4.0]) * np.pi / 3
    triangle = np.column_stack([np.cos(angles), np.sin(angles)])
    with pytest.raises(DegenerateShapeError):
        fit_rigid(triangle, triangle * [1, -1])


def test_a_stack_says_which_pairs_are_determined(motions, rng):
    shapes = rng.normal(size=(4, 10, 3))
    shapes[1, 2:] = np.nan
    shapes[2] = np.outer(rng.normal(size=10), rng.normal(size=3))
    actual = fit_motions(shapes, rng.normal(size=(10, 3)), motions=motions)
    assert actual.determined.tolist() == [True, False, False, True]
    assert np.isfinite(actual.matrix).all()


def test_nothing_shared_gives_the_identity():
    nothing = np.full((3, 2), np.nan)
    actual = fit_motions(nothing, np.zeros((3, 2)), motions=Motions(scaling=True))
    np.testing.assert_array_equal(actual.matrix, np.eye(2))
    assert not actual.determined


def test_shapes_of_different_size_are_an_error():
    with pytest.raises(ShapeError, match=r"got \(3, 2\) and \(4, 2\)"):
        fit_rigid(np.zeros((3, 2)), np.zeros((4, 2)))


def test_many_nearest_rotations_are_those_of_the_singular_vectors() -> None:
    rng = np.random.default_rng(0)
    stack = np.diag([3.0, 2.0, 0.5]) + 0.3 * rng.normal(size=(2000, 3, 3))
    stack[0], stack[1] = 0.0, np.diag([1.0, 1e-9, 0.0])
    stack[2], stack[3] = 1e-150 * np.eye(3), np.diag([1.0, 1.0, -1.0])
    side = np.where(rng.random(2000) < 0.9, 1.0, -1.0)
    turns, totals = find_nearest_orthogonal(stack.reshape(40, 50, 3, 3), side.reshape(40, 50))
    for turn, total, matrix, sign in zip(
        turns.reshape(-1, 3, 3), totals.ravel(), stack, side, strict=True
    ):
        left, values, right = np.linalg.svd(matrix)
        last = sign * np.sign(np.linalg.det(left @ right))
        np.testing.assert_allclose(turn @ turn.T, np.eye(3), **EXACT)
        assert np.isclose(np.linalg.det(turn), sign)
        np.testing.assert_allclose(total, values[:2].sum() + last * values[2], **EXACT)
