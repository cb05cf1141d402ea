"""Made-up shapes tell the truth about themselves: where they come from, and what was hidden."""

from __future__ import annotations

import pickle
from collections import Counter
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from defgpa import datasets
from defgpa.datasets import AtRandom, Blocks, _sample, _synthetic
from defgpa.datasets._deformations import chain, make_affine, make_bend, make_growth, make_shear
from defgpa.errors import ShapeError
from defgpa.estimators import DefGPA
from defgpa.warps import Affine, ThinPlateSpline
from support import EXACT, PARITY, up_to_affine

MAKERS = {
    "smooth, 2-D": datasets.smooth_family,
    "smooth, 3-D": lambda seed=0: datasets.smooth_family(8, 80, 3, seed=seed),
    "face": datasets.make_faces,
    "liver": lambda seed=0: datasets.make_livers(n=4, m=600, seed=seed),
    "wings": lambda seed=5: datasets.make_wings(seed=seed),
    "skulls": datasets.make_skulls,
    "fish": datasets.make_fish,
    "slices": lambda seed=0: datasets.make_slices(seed=seed).family,
}
every_family = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def radius(points):
    return np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean())


def jacobians(deformation, points):
    """(p, d, d) by central differences."""
    step = 1e-5 * radius(points)
    columns = [
        (deformation(points + step * e) - deformation(points - step * e)) / (2 * step)
        for e in np.eye(points.shape[1])
    ]
    return np.stack(columns, axis=-1)


def orthogonal(source, target):
    """The best rotation or reflection of the centred source onto the centred target."""
    u, _, vt = np.linalg.svd((source - source.mean(axis=0)).T @ (target - target.mean(axis=0)))
    return u @ vt


def turned_onto(target, source):
    """The source under its best rotation (no reflection), scale and shift."""
    a, b = source - source.mean(axis=0), target - target.mean(axis=0)
    u, s, vt = np.linalg.svd(a.T @ b)
    signs = np.append(np.ones(len(s) - 1), np.linalg.det(u @ vt))
    return (s @ signs) / (a**2).sum() * a @ (u * signs) @ vt + target.mean(axis=0)


# the truth


@every_family
def test_the_same_seed_gives_the_same_family_and_another_seed_another(make):
    first, again, changed = make(seed=1), make(seed=1), make(seed=2)
    assert first.shapes == again.shapes
    np.testing.assert_array_equal(first.truth, again.truth)
    assert first.shapes != changed.shapes


@every_family
def test_every_warp_takes_its_clean_shape_to_the_truth_and_back(make):
    family = make()
    size = radius(family.truth)
    np.testing.assert_allclose(family.truth.mean(axis=0) / size, 0, **EXACT)
    for warp, clean in zip(family.warps, family.clean, strict=True):
        np.testing.assert_allclose(warp(clean) / size, family.truth / size, **EXACT)
        np.testing.assert_allclose(warp.inverse()(family.truth), clean, **EXACT)


@every_family
def test_what_is_observed_is_the_clean_shape_and_noise_of_the_stated_size(make):
    family = make()
    residual = (family.shapes.points - family.clean)[family.shapes.visible]
    # a standard deviation of N numbers is known to 1/sqrt(2 N); five times that is allowed
    slack = 5 * family.noise / np.sqrt(2 * residual.size)
    assert abs(np.sqrt((residual**2).mean()) - family.noise) <= slack + 1e-12


@every_family
def test_no_deformation_folds(make):
    """Beside the landmarks too: there the Jacobian is tried on points between them."""
    family = make()
    between = 0.5 * (family.truth + np.roll(family.truth, 7, axis=0))
    for warp, mirrored in zip(family.warps, family.mirrored, strict=True):
        for points in (family.truth, between):
            det = np.linalg.det(jacobians(warp.inverse(), points))
            assert (np.sign(det) == (-1 if mirrored else 1)).all()


@every_family
def test_no_deformation_is_affine(make):
    family = make()
    left = np.stack([up_to_affine(family.truth, clean) - clean for clean in family.clean])
    assert np.sqrt((left**2).sum(axis=-1).mean()) > 0.01 * radius(family.truth)


@every_family
def test_the_truth_lies_in_the_middle_of_its_family(make):
    """The mean of the shapes, each turned onto the truth, is nearer to it than the shapes are."""
    family = make()
    differences = (
        np.stack([turned_onto(family.truth, clean) for clean in family.clean]) - family.truth
    )
    spread = np.sqrt((differences**2).sum(axis=-1).mean())
    assert np.sqrt((differences.mean(axis=0) ** 2).sum(axis=-1).mean()) < 0.3 * spread


@every_family
def test_warps_travel_to_other_processes(make):
    family = make()
    travelled = pickle.loads(pickle.dumps(family.warps[0]))
    np.testing.assert_array_equal(travelled(family.truth), family.warps[0](family.truth))


@pytest.mark.parametrize("d", [2, 3])
def test_without_bending_all_shapes_are_similar_to_the_truth(d):
    family = datasets.smooth_family(6, 30, d, bend=0.0, noise=0.0, seed=3)
    for shape in family.shapes:
        np.testing.assert_allclose(turned_onto(family.truth, shape), family.truth, **EXACT)


def test_with_bending_shapes_are_not_similar_to_the_truth():
    family = datasets.smooth_family(6, 30, 2, bend=0.15, noise=0.0, seed=3)
    for shape in family.shapes:
        assert np.abs(turned_onto(family.truth, shape) - family.truth).max() > 0.02


@pytest.mark.parametrize("d", [2, 3])
def test_bend_is_how_far_a_landmark_moves(d):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(500, d))
    moved = [
        wave(truth) - truth for wave in _synthetic.make_waves(rng, 60, truth, count=5, height=0.02)
    ]
    travelled = np.sqrt((np.stack(moved) ** 2).sum(axis=-1).mean()) / radius(truth)
    # the mean of sin² over half a wave or so is one half only on average
    assert travelled == pytest.approx(0.02, rel=0.25)


def test_amounts_of_a_mode_have_mean_zero_and_mean_square_one():
    drawn = _synthetic.sample_amounts(np.random.default_rng(0), 7, 4)
    np.testing.assert_allclose(drawn.mean(axis=0), 0, **EXACT)
    np.testing.assert_allclose((drawn**2).mean(axis=0), 1, **EXACT)


# an alignment finds the truth


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("missing", [0.0, AtRandom(0.2)], ids=["full", "partial"])
def test_a_deformable_alignment_recovers_the_truth(d, missing):
    family = datasets.smooth_family(12, 80, d, noise=0.0, missing=missing, seed=1)
    spline = DefGPA(ThinPlateSpline()).fit(family.shapes).alignment_
    stiff = DefGPA(Affine()).fit(family.shapes).alignment_
    single = min(family.compute_error(clean) for clean in family.clean)
    assert family.compute_error(spline.reference) < 0.02 < 0.04 < single
    assert spline.rmse_reference < 0.6 * stiff.rmse_reference


def test_the_bundled_wings_reward_deformation():
    family = datasets.make_wings()
    spline = DefGPA(ThinPlateSpline()).fit(family.shapes).alignment_
    stiff = DefGPA(Affine()).fit(family.shapes).alignment_
    assert spline.rmse_reference < 0.25 * stiff.rmse_reference
    assert family.compute_error(spline.reference) < 0.02


def test_the_error_of_a_reference_is_its_distance_but_for_an_affine_map():
    family = datasets.smooth_family(5, 40, 2, seed=3)
    skewed = family.truth @ np.array([[2.0, 0.3], [0.1, 1.0]]) + 5.0
    assert family.compute_error(skewed) == pytest.approx(0.0, abs=EXACT["atol"])
    design = np.column_stack([family.truth, np.ones(40)])
    noise = np.random.default_rng(0).normal(size=(40, 2))
    noise -= design @ np.linalg.lstsq(design, noise, rcond=None)[0]
    noise *= 1e-5 / np.sqrt((noise**2).sum(axis=1).mean())  # orthogonal to all affine maps
    assert family.compute_error(family.truth + noise) == pytest.approx(1e-5, rel=1e-3)


# the deformations


def deformations(d):
    x, y, *_ = np.eye(d)
    rng = np.random.default_rng(d)
    return {
        "shear": make_shear(0.4 * y, 1.7 * x, 0.3),
        "bend": make_bend(0.3, x, y),
        "bend the other way": make_bend(-0.3, x, y),
        "no bend": make_bend(0.0, x, y),
        "growth": make_growth(0.8, x, past=0.2, softness=0.5),
        "shrinkage": make_growth(-0.7, x, past=-0.1, softness=0.2),
        "affine": make_affine(np.eye(d) + 0.2 * rng.normal(size=(d, d)), rng.normal(size=d)),
        "chain": chain(
            make_shear(0.4 * y, 1.7 * x, 0.3), make_growth(0.8, y, 0.0, 0.3), make_bend(0.1, y, x)
        ),
    }


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("name", deformations(2))
def test_a_deformation_and_its_inverse_undo_each_other(name, d):
    points = np.random.default_rng(1).uniform(-1.5, 1.5, size=(200, d))
    deformation = deformations(d)[name]
    np.testing.assert_allclose(deformation.inverse()(deformation(points)), points, **EXACT)
    np.testing.assert_allclose(deformation(deformation.inverse()(points)), points, **EXACT)
    assert (np.linalg.det(jacobians(deformation, points)) > 0).all()


def test_a_shear_keeps_areas():
    points = np.random.default_rng(1).normal(size=(50, 2))
    det = np.linalg.det(jacobians(deformations(2)["shear"], points))
    np.testing.assert_allclose(det, 1, **PARITY)


def test_a_bend_lays_the_line_on_a_circle_and_keeps_its_length():
    line = np.column_stack([np.linspace(-2, 2, 2001), np.zeros(2001)])
    bent = make_bend(0.5, *np.eye(2))(line)
    np.testing.assert_allclose(np.linalg.norm(bent - (0.0, 2.0), axis=1), 2.0, **EXACT)
    length = np.linalg.norm(np.diff(bent, axis=0), axis=1).sum()
    np.testing.assert_allclose(length, 4.0, **PARITY)


def test_growth_lengthens_what_lies_past_the_line_and_nothing_else():
    grown = make_growth(0.5, np.array([1.0, 0.0]), past=1.0, softness=0.01)
    slopes = jacobians(grown, np.array([[-9.0, 0.0], [11.0, 3.0]]))
    np.testing.assert_allclose(slopes, [np.eye(2), np.diag([1.5, 1.0])], rtol=0, atol=1e-5)


# mirror images


@pytest.mark.parametrize("d", [2, 3])
def test_mirrored_shapes_are_as_many_as_asked_and_really_mirrored(d):
    family = datasets.smooth_family(11, 40, d, mirrored=4, seed=5)
    turns = [np.linalg.det(orthogonal(family.truth, shape)) for shape in family.shapes]
    assert family.mirrored.sum() == 4
    np.testing.assert_array_equal(np.array(turns) < 0, family.mirrored)


@pytest.mark.parametrize("mirrored", [-1, 5, 6])
def test_mirror_images_must_be_the_minority(mirrored):
    with pytest.raises(ShapeError, match=rf"fewer than half of the 10 shapes. Got {mirrored}"):
        datasets.smooth_family(n=10, mirrored=mirrored)


# missing landmarks


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("pattern", [AtRandom(0.3), Blocks(0.3), Blocks(0.5)])
def test_a_pattern_hides_the_share_it_states_and_keeps_all_linked(pattern, d):
    family = datasets.smooth_family(10, 60, d, missing=pattern, seed=2)
    shapes = family.shapes
    assert (~shapes.visible).mean() == pytest.approx(pattern.share, abs=1e-12)
    assert shapes.views.min() >= 2
    assert shapes.visible.sum(axis=1).min() >= 2 * (d + 1)


def test_a_number_hides_at_random():
    share = datasets.smooth_family(missing=0.25, seed=4).shapes
    pattern = datasets.smooth_family(missing=AtRandom(0.25), seed=4).shapes
    assert share == pattern


def test_hidden_at_random_means_anywhere():
    hidden = ~datasets.smooth_family(50, 50, missing=0.3, seed=1).shapes.visible
    assert hidden.sum(axis=1).std() > 1
    assert hidden.sum(axis=0).std() > 1


@pytest.mark.parametrize("d", [2, 3])
def test_a_block_is_one_side_of_the_shape(d):
    """Some plane has all hidden landmarks on one side, all seen ones on the other."""
    family = datasets.smooth_family(6, 50, d, missing=Blocks(0.3), seed=7)
    for visible in family.shapes.visible:
        side = np.where(visible, 1.0, -1.0)[:, None]
        rows = side * np.column_stack([family.truth, np.ones(50)])
        result = linprog(np.zeros(d + 1), A_ub=rows, b_ub=-np.ones(50), bounds=(None, None))
        assert result.status == 0


def test_blocks_may_spare_most_shapes():
    family = datasets.smooth_family(10, 50, missing=Blocks(0.4, shapes=2))
    assert (~family.shapes.visible).sum(axis=1).tolist() == [20, 20] + [0] * 8


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        (AtRandom(0.9), "can be at most 0.7"),
        (AtRandom(1.0), "must be at least 0 and below 1. Got 1.0"),
        (AtRandom(-0.1), "must be at least 0 and below 1. Got -0.1"),
        (Blocks(0.6), "must be at most 0.5. Got 0.6"),
        (Blocks(0.3, shapes=11), "must be 0 to 10, the number of shapes. Got 11"),
    ],
)
def test_a_pattern_that_would_hide_too_much_is_refused(pattern, complaint):
    with pytest.raises(ShapeError, match=complaint):
        datasets.smooth_family(10, 60, missing=pattern)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"n": 1}, "'n' parameter must be at least 2 shapes. Got 1"),
        ({"m": 4}, "'m' parameter must be at least 6 landmarks in 2-D. Got 4"),
        ({"d": 4}, "'d' parameter must be 2 or 3. Got 4"),
        ({"bend": -0.1}, "'bend' parameter must be a number, 0 or more. Got -0.1"),
        ({"noise": float("nan")}, "'noise' parameter must be a number, 0 or more. Got nan"),
    ],
)
def test_a_family_that_cannot_be_is_refused(arguments, complaint):
    with pytest.raises(ShapeError, match=complaint):
        datasets.smooth_family(**arguments)


# sizes


@pytest.mark.parametrize(
    ("make", "size", "missing"),
    [(datasets.make_faces, (10, 68, 2), 0.04), (datasets.make_livers, (10, 4004, 3), 0.0)],
)
def test_an_imitation_has_the_size_of_its_model(make, size, missing):
    shapes = make().shapes
    assert shapes.points.shape == size
    assert (~shapes.visible).mean() == pytest.approx(missing, abs=0.005)


@pytest.mark.parametrize("size", [(3000, 20, 3), (3, 100_000, 2)])
def test_families_may_be_many_or_dense(size):
    family = datasets.smooth_family(*size, missing=0.2)
    assert family.shapes.points.shape == size
    assert (~family.shapes.visible).mean() == pytest.approx(0.2, abs=1e-5)


def test_the_face_hides_its_far_and_narrow_side_in_two_frames():
    family = datasets.make_faces()
    hidden = ~family.shapes.visible
    assert sorted(Counter(hidden.sum(axis=1)).items()) == [(0, 8), (14, 2)]
    left, right, nose = (family.shapes.landmarks.index(k) for k in ("jaw_1", "jaw_17", "nose_1"))
    for row, clean in zip(hidden, family.clean, strict=True):
        if row.any():
            side = np.sign(family.truth[row, 0])
            assert abs(side.sum()) == 14
            far, near = (left, right) if side[0] < 0 else (right, left)
            width = np.linalg.norm(clean - clean[nose], axis=1)
            assert width[far] < 0.9 * width[near]


def test_the_liver_is_a_closed_surface_turned_outwards():
    shapes = datasets.make_livers().shapes
    edges = Counter(
        (int(face[a]), int(face[b])) for face in shapes.faces for a, b in ((0, 1), (1, 2), (2, 0))
    )
    assert set(edges.values()) == {1}
    assert all((b, a) in edges for a, b in edges)
    assert 4004 - len(edges) // 2 + len(shapes.faces) == 2
    for points in shapes:
        assert np.linalg.det((points - points.mean(axis=0))[shapes.faces]).sum() > 0


def test_the_bundled_file_is_what_the_generator_makes():
    shapes, lines = datasets.make_wings().shapes, []
    for name, points in zip(shapes.names, shapes, strict=True):
        lines.append(f"LM={len(points)}")
        lines += ["NA NA" if np.isnan(x) else f"{x:.2f} {y:.2f}" for x, y in points]
        lines.append(f"ID={name}")
    bundled = files("defgpa.datasets") / "sample" / "wings.tps"
    assert bundled.read_bytes() == ("\n".join(lines) + "\n").encode()


def test_the_loaded_wings_are_what_the_generator_makes():
    loaded, made = datasets.load_wings(), datasets.make_wings().shapes
    assert loaded == made
    assert loaded.metadata["groups"] == made.metadata["groups"]


def test_the_wings_are_two_kinds_of_different_size_and_proportions():
    wings = datasets.load_wings()
    assert Counter(wings.metadata["groups"]) == {"apis": 12, "bombus": 12}
    root, tip, stigma = (wings.landmarks.index(k) for k in ("root", "tip", "stigma_base"))
    length = np.linalg.norm(wings.points[:, tip] - wings.points[:, root], axis=1)
    inner = np.linalg.norm(wings.points[:, stigma] - wings.points[:, root], axis=1)
    assert np.nanmean(length[12:]) > 1.15 * np.nanmean(length[:12])
    assert np.nanmin((inner / length)[12:]) > np.nanmax((inner / length)[:12])


def test_the_veins_join_landmarks_that_exist_and_leave_none_alone():
    wings = datasets.load_wings()
    named = [(wings.landmarks[a], wings.landmarks[b]) for a, b in wings.metadata["links"]]
    assert tuple(named) == datasets.WING_LINKS
    assert {label for pair in named for label in pair} == set(wings.landmarks)


def test_no_two_veins_of_the_template_cross():
    """Wherever veins meet there is a landmark."""
    at = dict(zip(datasets.WING_LANDMARKS, _sample.make_wing_template(), strict=True))

    def left_of(p, q, r):
        return np.linalg.det([at[q] - at[p], at[r] - at[p]]) > 0

    for (a, b), (c, d) in combinations(datasets.WING_LINKS, 2):
        if len({a, b, c, d}) == 4:
            crossed = left_of(a, b, c) != left_of(a, b, d) and left_of(c, d, a) != left_of(c, d, b)
            assert not crossed, (a, b, c, d)


def test_wings_may_be_more():
    shapes = datasets.make_wings(per_kind=30, seed=1).shapes
    assert shapes.n_shapes == 60
    with pytest.raises(ShapeError, match=r"'per_kind' parameter must be at least 6\. Got 2"):
        datasets.make_wings(per_kind=2)


def test_every_wing_of_the_sample_lies_within_a_picture_of_400_by_620():
    rows, columns = 400, 620
    points = datasets.load_wings().points
    assert np.nanmin(points) > 0
    assert (np.nanmax(points, axis=(0, 1)) < (columns - 1, rows - 1)).all()
