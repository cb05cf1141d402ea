"""Rigid and similarity alignment of many shapes, measured where the landmarks were."""

import numpy as np
import pytest
from datum_space_support import carry_back, measure_reference_error, move_into_reference
from scipy.stats import special_ortho_group

from defgpa.errors import DegenerateShapeError
from defgpa.procrustes import (
    ORTHOGONAL,
    ORTHOGONAL_SIMILARITY,
    RIGID,
    SIMILARITY,
    Motions,
    fit_motions,
)
from defgpa.solvers.datum_space import CentredShapes
from defgpa.solvers.reference_cost import MotionMaps, ReferencePoint
from defgpa.solvers.rigid import fit_rigid
from defgpa.solvers.rigid_starts import find_further_starts
from defgpa.solvers.trust_region import minimise
from defgpa.threads import interruptible
from support import (
    EXACT,
    PARITY,
    oracle_points,
    read_oracle,
    shared_data,
    shared_points,
    smooth_family,
)

DIMENSION = {"2d": 2, "3d": 3}


@pytest.fixture(params=[RIGID, SIMILARITY], ids=["rigid", "similarity"])
def motions(request):
    return request.param


def moved_at_random(points, rng, sizes=1.0):
    n, _, d = points.shape
    turns = special_ortho_group.rvs(d, size=n, random_state=rng).reshape(n, d, d)
    return np.reshape(sizes, (-1, 1, 1)) * points @ turns + rng.normal(size=(n, 1, d))


def random_poses(points, motions, rng, count):
    """The costs at the end of descents from the means of shapes turned at random."""
    n, _, d = points.shape
    shapes = CentredShapes.from_points(points)
    for _ in range(count):
        turns = special_ortho_group.rvs(d, size=n, random_state=rng).reshape(n, d, d)
        start = np.nan_to_num(shapes.combine(turns)) / n
        yield minimise(ReferencePoint.from_reference(shapes, MotionMaps(motions), start))[0].cost


# the numbers others have found


@pytest.mark.parametrize(
    ("name", "run"),
    [("syn2d_full", "euc_d"), ("syn3d_full", "euc_d"), ("syn2d_partial", "euc_d_visfixed")],
)
def test_reference_equals_that_of_the_published_program(name, run):
    """It stops at a change of 1e-6, so its reference is good to a few of those."""
    published = read_oracle(name, run)
    fit = fit_rigid(oracle_points(name))
    assert fit.rmse_datum <= published["rmse_d"] * (1 + 1e-12)
    np.testing.assert_allclose(fit.rmse_datum, published["rmse_d"], **PARITY)
    np.testing.assert_allclose(fit.reference.T, published["S"], rtol=0, atol=1e-2)


def test_face_with_every_landmark_visible_has_the_printed_error():
    with np.load(shared_data("face2d.npz"), allow_pickle=False) as archive:
        points, everything = archive["points"], archive["points_all"]
    fit = fit_rigid(everything)
    assert round(measure_reference_error(points, fit), 3) == 7.110


# what makes it the optimum


def test_every_rigid_shape_lies_best_on_the_reference(points):
    fit = fit_rigid(points)
    again = fit_motions(points, fit.reference)
    np.testing.assert_allclose(again.rotation, fit.matrices, **EXACT)
    np.testing.assert_allclose(again.translation, fit.offsets, **EXACT)


def test_rigid_reference_is_the_mean_of_the_aligned_shapes(points):
    fit = fit_rigid(points)
    np.testing.assert_allclose(
        np.nanmean(move_into_reference(points, fit), axis=0), fit.reference, **EXACT
    )


def test_reference_lies_best_on_every_shape(points):
    """For similarities in the datum space, the motion from reference to shape is the best one."""
    fit = fit_rigid(points, SIMILARITY)
    back = fit_motions(fit.reference, points, motions=SIMILARITY)
    np.testing.assert_allclose(back.inverse().matrix, fit.matrices, **EXACT)


def test_reference_of_similarities_is_a_mean_weighted_by_squared_size(points):
    fit = fit_rigid(points, SIMILARITY)
    d = points.shape[2]
    weights = np.abs(np.linalg.det(fit.matrices)) ** (-2 / d) * ~np.isnan(points[..., 0]).T
    mean = np.einsum("ji,ijk->jk", weights, np.nan_to_num(move_into_reference(points, fit)))
    np.testing.assert_allclose(mean / weights.sum(axis=1)[:, np.newaxis], fit.reference, **EXACT)


ALL_MOTIONS = {
    "rigid": RIGID,
    "similarity": SIMILARITY,
    "orthogonal": ORTHOGONAL,
    "orthogonal similarity": ORTHOGONAL_SIMILARITY,
}


@pytest.mark.parametrize(
    ("motions", "noise"),
    [
        # mirrored, scaled and mostly noise: then one in twenty ends a little above the lowest
        pytest.param(all_motion, noise, id=f"{name}-{noise}")
        for name, all_motion in ALL_MOTIONS.items()
        for noise in ([0.3] if all_motion == ORTHOGONAL_SIMILARITY else [0.3, 1.0, 2.0])
    ],
)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_no_random_start_ends_lower_on_small_noisy_sets(d, motions, noise, missing):
    """Where the cost has many minima, and every other shape may be mirrored."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(10, d)) + noise * rng.normal(size=(6, 10, d))
        points[rng.random((6, 10)) < missing] = np.nan
        if motions.reflections:
            points[::2, :, 0] *= -1
        best = fit_rigid(points, motions).cost
        assert best <= lowest(points, motions, rng, 12) * (1 + 1e-9)


def lowest(points, motions, rng, count):
    """Of descents from random poses; where mirrors are allowed, from random sides too."""
    costs = []
    for _ in range(count if motions.reflections else 1):
        sides = np.ones((len(points), 1, points.shape[2]))
        if motions.reflections:
            sides[..., 0] = rng.choice([-1, 1], size=(len(points), 1))
        costs += random_poses(points * sides, motions, rng, 1 if motions.reflections else count)
    return min(costs)


@pytest.mark.parametrize(
    ("seed", "d", "n", "m", "noise"), [(58, 2, 6, 8, 0.3), (43, 3, 8, 6, 0.2), (23, 3, 6, 8, 0.5)]
)
def test_the_order_of_mirrored_noisy_shapes_does_not_matter(seed, d, n, m, noise):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(m, d)) + noise * rng.normal(size=(n, m, d))
    points[::2, :, 0] *= -1
    costs = [fit_rigid(np.roll(points, k, axis=0), ORTHOGONAL).cost for k in range(n)]
    np.testing.assert_allclose(costs, costs[0], rtol=1e-9)


def test_large_or_agreeing_sets_start_once(points, monkeypatch):
    tried = []
    starts = "defgpa.solvers.rigid.find_further_starts"
    monkeypatch.setattr(starts, lambda *given: tried.append(given) or [])
    fit_rigid(points)
    assert not tried
    fit_rigid(points + np.random.default_rng(0).normal(size=points.shape))
    assert tried
    many = np.random.default_rng(0).normal(size=(50, 1000, 3))
    assert find_further_starts(CentredShapes.from_points(many), RIGID) == []


def test_whoever_waits_can_stop_the_search_for_other_starts_after_each_round(rng):
    asked = []
    with interruptible(lambda: asked.append(1)):
        find_further_starts(CentredShapes.from_points(rng.normal(size=(5, 6, 2))), RIGID)
    assert len(asked) == 30


@pytest.mark.parametrize("name", ["face2d", "tshirt3d", "turtles3d_partial"])
def test_no_random_start_ends_lower_on_real_shapes(name, motions, rng):
    points = shared_points(name)
    best = fit_rigid(points, motions).cost
    assert best <= min(random_poses(points, motions, rng, 3)) * (1 + 1e-9)


def test_a_certificate_proves_that_no_rigid_alignment_is_better(points):
    """Weak duality: f(R) = tr(RᵀQR) is at its minimum if Q − blockdiag(Q R Rᵀ) ≽ 0."""
    n, _, d = points.shape
    fit = fit_rigid(points)
    shapes = CentredShapes.from_points(points)
    visible = (~np.isnan(points[..., 0])).astype(float)
    L = sum(np.diag(v) - np.outer(v, v) / v.sum() for v in visible)
    Q = -shapes.rows @ np.linalg.pinv(L) @ shapes.rows.T
    R = fit.matrices.reshape(n * d, d)
    np.testing.assert_allclose(
        shapes.squared_sizes.sum() + np.trace(R.T @ Q @ R), fit.cost, **PARITY
    )
    for i in range(n):
        block = slice(i * d, (i + 1) * d)
        multiplier = (Q @ R)[block] @ fit.matrices[i].T
        Q[block, block] -= 0.5 * (multiplier + multiplier.T)
    assert np.linalg.eigvalsh(Q)[0] > -1e-9 * np.linalg.norm(Q)


# what must not matter


@pytest.mark.parametrize(
    "change",
    [moved_at_random, lambda points, rng: points[rng.permutation(len(points))]],
    ids=["motions", "order"],
)
def test_motions_and_order_of_the_shapes_change_nothing_but_the_pose(points, motions, change, rng):
    before, after = fit_rigid(points, motions), fit_rigid(change(points, rng), motions)
    np.testing.assert_allclose(after.cost, before.cost, **EXACT)
    back = fit_motions(after.reference, before.reference)
    np.testing.assert_allclose(back(after.reference), before.reference, **EXACT)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("motions", [ORTHOGONAL, ORTHOGONAL_SIMILARITY])
def test_the_order_of_shapes_that_are_nothing_but_noise_does_not_matter(d, motions, missing):
    """Where there are many minima, the one that is found does not hang on who came first."""
    for seed in range(2):
        rng = np.random.default_rng([d, seed])
        points = rng.normal(size=(8, 12, d))
        points[rng.random((8, 12)) < missing] = np.nan
        actual = [fit_rigid(points[order], motions).rmse_datum for order in _orders(rng, 8)]
        np.testing.assert_allclose(actual, actual[0], **EXACT)


def _orders(rng, n):
    return [np.arange(n), *(rng.permutation(n) for _ in range(3))]


def test_shapes_far_from_the_origin_are_as_good(points, motions):
    """Of 16 digits, 6 are spent on the distance."""
    before, after = fit_rigid(points, motions), fit_rigid(points + 1e6, motions)
    np.testing.assert_allclose(after.rmse_datum, before.rmse_datum, **PARITY)


# what must come back


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_moved_copies_are_recovered(d, missing, rng):
    base = rng.normal(size=(40, d))
    points = moved_at_random(np.broadcast_to(base, (7, 40, d)), rng)
    points[rng.random((7, 40)) < missing] = np.nan
    fit = fit_rigid(points)
    np.testing.assert_allclose(fit.rmse_datum, 0, **EXACT)
    np.testing.assert_allclose(fit_motions(fit.reference, base)(fit.reference), base, **EXACT)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_scaled_copies_come_back_at_their_mean_size(d, missing, rng):
    base = rng.normal(size=(40, d))
    sizes = np.exp(rng.normal(size=7))
    points = moved_at_random(np.broadcast_to(base, (7, 40, d)), rng, sizes)
    points[rng.random((7, 40)) < missing] = np.nan
    fit = fit_rigid(points, SIMILARITY)
    np.testing.assert_allclose(fit.rmse_datum, 0, **EXACT)
    centred = (base - base.mean(axis=0)) * sizes.mean()
    np.testing.assert_allclose(fit_motions(fit.reference, centred)(fit.reference), centred, **EXACT)
    scales = np.abs(np.linalg.det(fit.matrices)) ** (-1 / d)
    np.testing.assert_allclose(scales, sizes / sizes.mean(), **EXACT)


def test_reference_is_centred_and_turned_like_the_first_shape(points, motions):
    fit = fit_rigid(points, motions)
    np.testing.assert_allclose(fit.reference.sum(axis=0), 0, **EXACT)
    turn = fit.matrices[0] / np.linalg.norm(fit.matrices[0], 2)
    np.testing.assert_allclose(turn, np.eye(points.shape[2]), **EXACT)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_size_of_a_reference_is_the_mean_size_of_the_completed_shapes(d, missing):
    points = smooth_family(seed=4, d=d, missing=missing)
    fit = fit_rigid(points, SIMILARITY)
    complete = np.where(np.isnan(points), carry_back(fit), points)
    sizes = np.linalg.norm(complete - complete.mean(axis=1, keepdims=True), axis=(1, 2))
    np.testing.assert_allclose(np.linalg.norm(fit.reference), sizes.mean(), **EXACT)


def test_similarities_in_the_plane_need_no_iteration():
    assert fit_rigid(smooth_family(seed=5, n=9, m=20), SIMILARITY).iterations == 0
    assert fit_rigid(smooth_family(seed=5, n=20, m=9), SIMILARITY).iterations == 0


# mirror images


def with_mirrored_specimen(d, missing=0.0):
    rng = np.random.default_rng(8)
    base = rng.normal(size=(30, d))
    points = moved_at_random(base + 0.01 * rng.normal(size=(6, 30, d)), rng)
    points[4, :, 0] *= -1
    points[rng.random((6, 30)) < missing] = np.nan
    return points


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_mirrored_specimen_is_not_absorbed(d, motions, missing):
    fit = fit_rigid(with_mirrored_specimen(d, missing), motions)
    assert fit.rmse_datum > 0.1
    assert (np.linalg.det(fit.matrices) > 0).all()


@pytest.mark.parametrize("motions", [ORTHOGONAL, ORTHOGONAL_SIMILARITY])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_mirrored_specimen_is_turned_over_where_that_is_allowed(d, motions, missing):
    fit = fit_rigid(with_mirrored_specimen(d, missing), motions)
    assert fit.rmse_datum < 0.03
    assert np.sign(np.linalg.det(fit.matrices)).tolist() == [1, 1, 1, 1, -1, 1]


def test_no_shape_would_fit_better_mirrored_where_that_is_allowed():
    """One frame of the bent cloth aligns better mirrored, which the start does not see."""
    points = shared_points("tshirt3d")
    fit = fit_rigid(points, ORTHOGONAL)
    best = fit_motions(points, fit.reference, motions=ORTHOGONAL)
    np.testing.assert_allclose(best.rotation, fit.matrices, **EXACT)
    assert fit.cost < fit_rigid(points, RIGID).cost


def test_flat_shapes_with_holes_can_be_aligned_with_reflections_allowed(rng):
    """They are their own mirror images: any side will do."""
    sheet = np.column_stack([rng.normal(size=(30, 2)), np.zeros(30)])
    points = moved_at_random(np.broadcast_to(sheet, (5, 30, 3)), rng)
    points[rng.random((5, 30)) < 0.2] = np.nan
    np.testing.assert_allclose(fit_rigid(points, ORTHOGONAL).rmse_datum, 0, **EXACT)


# holes


def test_shapes_are_linked_through_others(d, rng):
    """The first and the last shape share no landmark."""
    base = rng.normal(size=(30, d))
    points = moved_at_random(np.broadcast_to(base, (5, 30, d)), rng)
    for i in range(5):
        points[i, np.r_[: 5 * i, 5 * i + 10 : 30]] = np.nan
    fit = fit_rigid(points)
    np.testing.assert_allclose(fit.rmse_datum, 0, **EXACT)
    np.testing.assert_allclose(fit_motions(fit.reference, base)(fit.reference), base, **EXACT)


def test_shapes_of_wildly_different_units_converge(motions, rng):
    points = smooth_family(seed=7, n=10, m=30, d=3, missing=0.3)
    points *= np.logspace(0, 4, 10).reshape(-1, 1, 1)
    assert fit_rigid(points, motions).gradient_norm < 1e-10


def test_noise_as_large_as_the_shapes_converges(d, motions, rng):
    points = rng.normal(size=(10, 20, d))
    points[rng.random((10, 20)) < 0.3] = np.nan
    assert fit_rigid(points, motions).gradient_norm < 1e-10


@pytest.mark.parametrize("name", ["turtles3d_partial", "guenons3d", "cactus3d"])
def test_large_real_sets_converge_in_a_few_steps(name, motions):
    fit = fit_rigid(shared_points(name), motions)
    assert fit.gradient_norm < 1e-10
    assert fit.iterations <= 8


# what cannot be aligned


def put_on_line(points, rng, noise=0.0):
    points[3] = np.outer(rng.normal(size=40), rng.normal(size=3)) + noise * rng.normal(size=(40, 3))


def share_too_little(points, rng):
    d = points.shape[2]
    points[2, : 41 - d] = points[:2, 35:38] = points[3:, 35:38] = np.nan
    points[2, 35:38] = np.eye(3, d)


def share_nothing(points, rng):
    points[:4, 20:] = points[4:, :20] = np.nan


def put_at(*places):
    """Return a change that puts a value at each (index, value) of the points."""

    def change(points, rng):
        for index, value in places:
            points[index] = value

    return change


@pytest.mark.parametrize(
    ("change", "dims", "message"),
    [
        (put_at((3, 0.3)), (2, 3), "Shape 'shape_4' .* on one point"),
        (put_at((3, 0.3 + 1e5)), (2, 3), "Shape 'shape_4' .* on one point"),
        (put_on_line, (3,), "'shape_4' .* on one line"),
        (lambda points, rng: put_on_line(points, rng, 1e-12), (3,), "'shape_4' .* on one line"),
        (share_too_little, (2,), "'shape_3' .* shares 1 landmarks"),
        (share_too_little, (3,), "'shape_3' .* shares 2 landmarks"),
        (put_at(((2, slice(1, None)), np.nan)), (2, 3), "'shape_3' has one visible landmark only"),
        (share_nothing, (2, 3), "'shape_5', 'shape_6' cannot .* shares 0 landmarks"),
        (put_at((1, np.nan)), (2, 3), "Shape 'shape_2' has no visible landmark"),
    ],
)
@pytest.mark.parametrize("hole", [[], [2]], ids=["full", "partial"])
@pytest.mark.parametrize("size", [1.0, 1e-4])
def test_shapes_that_cannot_be_aligned_are_named(change, dims, message, hole, size, rng):
    for d in dims:
        points = smooth_family(seed=9, d=d)
        change(points, rng)
        points[0, hole] = np.nan
        with pytest.raises(DegenerateShapeError, match=message):
            fit_rigid(size * points)


def test_families_of_motions_are_nested(points):
    costs = [
        fit_rigid(points, Motions(scaling, reflections)).cost
        for scaling, reflections in [(False, False), (True, False), (True, True)]
    ]
    assert costs[0] > costs[1] >= costs[2] * (1 - EXACT["rtol"])
