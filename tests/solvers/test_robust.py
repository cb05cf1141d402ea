"""A robust fit leaves gross errors out, names them, and costs nothing where there are none."""

import numpy as np
import pytest

import defgpa
from defgpa import AffineGPA, DefGPA, ElasticGPA, EuclideanGPA, Robust, Shapes
from defgpa.datasets import smooth_family
from defgpa.diagnostics.findings import Problem
from defgpa.procrustes import procrustes_distance
from defgpa.solvers.l1_superimposition import Superimposition
from defgpa.solvers.leverage import (
    compute_map_leverage,
    invert_for_affine_maps,
    invert_for_similarities,
    predict_landmarks,
)
from defgpa.solvers.residual_scores import find_exchanged, score_residuals, weigh_gradually
from defgpa.solvers.robust import cut_weights, weigh_finally
from support import EXACT, moved

ESTIMATORS = {
    "deformable": DefGPA,
    "elastic": ElasticGPA,
    "affine": AffineGPA,
    "rigid": lambda **options: EuclideanGPA(scaling=True, **options),
}
every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)


def displaced(points, fraction, seed):
    """Displace landmarks by 0.3 to 2 sizes; return the points and which are wrong."""
    rng, points = np.random.default_rng(seed), np.array(points)
    wrong = rng.random(points.shape[:2]) < fraction
    directions = rng.normal(size=(int(wrong.sum()), points.shape[2]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    points[wrong] += rng.uniform(0.3, 2.0, size=(len(directions), 1)) * directions
    return points, wrong


@pytest.fixture(params=[2, 3], ids=["2-D", "3-D"])
def family(request):
    return smooth_family(20, 30, request.param, bend=0.05, noise=0.01, seed=4)


@every_estimator
def test_displaced_landmarks_are_named_and_left_out(make, family):
    points, wrong = displaced(family.shapes.points, 0.05, seed=1)
    robust = make(robust=True).align(points)
    rejected = robust.rejection.landmarks | robust.rejection.shapes[:, None]
    assert (rejected & wrong).sum() >= 0.9 * wrong.sum()
    assert (rejected & ~wrong).sum() <= 0.02 * wrong.size
    errors = [
        procrustes_distance(alignment.reference, make().align(family.shapes).reference)
        for alignment in (robust, make().align(points))
    ]
    assert errors[0] < 0.35 * errors[1]


@every_estimator
def test_poses_of_the_shapes_do_not_matter(make):
    shapes = smooth_family(8, 20, 2, bend=0.1, noise=0.1, seed=1).shapes.points
    weights = [make(robust=True).align(moved(shapes, seed)).weights for seed in (0, 1)]
    assert ((weights[0] > 0.01) & (weights[0] < 0.99)).any()
    np.testing.assert_allclose(*weights, **EXACT)


def test_half_of_a_shape_that_is_labelled_as_the_other_side_does_not_excuse_itself():
    rng = np.random.default_rng(0)
    reference = np.column_stack([np.tile(np.arange(10.0), 2), np.repeat([0.0, 1.0], 10)])
    shapes = reference + 0.1 * rng.normal(size=(12, 20, 2))
    wrong = np.r_[0:6, 10:16]
    shapes[3, wrong] = shapes[3, np.roll(wrong, 6)]
    superimposition = Superimposition(reference, shapes)
    exchanged = find_exchanged(superimposition)
    assert np.flatnonzero(exchanged[3]).tolist() == wrong.tolist()
    assert exchanged.sum() == 12
    distances, nobody = superimposition.measure_distances(), np.zeros_like(exchanged)
    assert (score_residuals(distances, 2, nobody).scores[3, wrong] < 5).all()
    assert (score_residuals(distances, 2, exchanged).scores[3, wrong] > 5).all()


def test_exchanged_pair_is_recognised_though_each_lies_off_the_place_of_the_other():
    """Their squared distances decide together; a landmark in its place is no pair of its own."""
    reference = np.column_stack([np.tile(np.arange(6.0), 2), np.repeat([0.0, 1.0], 6)])
    shapes = np.stack([reference] * 5) + 0.01
    shapes[2] = reference + 0.02
    shapes[2, [1, 8]] = reference[[8, 1]] + [[0.75, 0.0], [0.0, 0.2]]
    shapes[2, 4] = reference[4]
    exchanged = find_exchanged(Superimposition(reference, shapes))
    assert np.argwhere(exchanged).tolist() == [[2, 1], [2, 8]]


def test_pairs_exchanged_over_four_standard_deviations_are_rejected():
    """Each is too near its own place to be rejected, but lies in the place of the other."""
    rng = np.random.default_rng(0)
    reference = np.column_stack([np.tile(np.arange(10.0), 2), np.repeat([0.0, 1.0], 10)])
    shapes = reference + 0.18 * rng.normal(size=(20, 20, 2))
    wrong = np.r_[0:4, 10:14]
    shapes[3, wrong] = shapes[3, np.roll(wrong, 4)]
    rejected = DefGPA(robust=True).align(shapes).rejection.landmarks
    assert np.flatnonzero(rejected[3]).tolist() == wrong.tolist()
    assert rejected.sum() == len(wrong)


def test_exchanged_landmarks_are_named(family):
    points = np.array(family.shapes.points)
    points[3, [4, 20]] = points[3, [20, 4]]
    robust = DefGPA(robust=True).align(points)
    named = {(actual.shape, actual.landmark) for actual in robust.rejected}
    assert {("shape_4", "5"), ("shape_4", "21")} <= named
    assert robust.findings[0].problem == "rejected-landmarks"
    assert "shape_4: 5" in str(robust.findings[0])


def test_clean_shapes_keep_their_reference(family):
    plain, robust = (DefGPA(robust=robust).align(family.shapes) for robust in (False, True))
    errors = [procrustes_distance(a.reference, family.truth) for a in (plain, robust)]
    assert errors[1] < 1.02 * errors[0]
    assert (robust.weights < 0.25).mean() <= 0.003


def test_shape_in_reverse_order_is_rejected_as_a_whole(family):
    points = np.array(family.shapes.points)
    points[7] = points[7, ::-1]
    robust = DefGPA(robust=True).align(points)
    assert robust.rejected_shapes == ("shape_8",)
    assert np.isfinite(robust.aligned[7]).all()  # it still has a warp
    clean = DefGPA().align(np.delete(points, 7, axis=0)).reference
    assert procrustes_distance(robust.reference, clean) < 0.01


def test_errors_count_what_was_kept(family):
    points, wrong = displaced(family.shapes.points, 0.05, seed=2)
    robust, plain = (DefGPA(robust=robust).align(points) for robust in (True, False))
    clean = DefGPA().align(np.where(wrong[..., None], np.nan, points))
    assert robust.rmse_reference == pytest.approx(clean.rmse_reference, rel=0.1)
    assert plain.rmse_reference > 1.5 * robust.rmse_reference
    assert not robust.counted[robust.rejection.landmarks].any()


@pytest.mark.filterwarnings("ignore:The robust fit left out:defgpa.DefgpaWarning")
def test_robust_weights_are_estimated_once_and_kept_in_cross_validation(family):
    points, wrong = displaced(family.shapes.points, 0.05, seed=2)
    estimator = DefGPA(robust=True)
    robust = defgpa.cross_validate(estimator, points)
    clean = defgpa.cross_validate(DefGPA(), np.where(wrong[..., None], np.nan, points))
    assert robust.error == pytest.approx(clean.error, rel=0.1)
    path = defgpa.select_smoothing(estimator, points, grid=[1e-6, 1e-4, 1e-2, 1.0], fold_size=5)
    for findings in (robust.alignment.findings, path.findings):
        assert findings[0].problem == Problem.REJECTED_LANDMARKS  # so much was not counted
        assert findings[0].values["count"] >= 0.9 * wrong.sum()
    assert path.best.robust is True
    assert estimator.robust is True


@pytest.mark.filterwarnings("ignore:The robust fit left out:defgpa.DefgpaWarning")
def test_robust_methods_are_compared_on_what_one_robust_fit_kept(family):
    points, wrong = displaced(family.shapes.points, 0.05, seed=2)
    hidden = np.where(wrong[..., None], np.nan, points)
    robust = defgpa.compare(points, [make(robust=True) for make in ESTIMATORS.values()], 5)
    clean = defgpa.compare(hidden, [make() for make in ESTIMATORS.values()], 5)
    for row, expected in zip(robust, clean, strict=True):
        assert row.cve == pytest.approx(expected.cve, rel=0.1)
        assert row.rmse_reference == pytest.approx(expected.rmse_reference, rel=0.1)
    assert "robust=True" in robust.verdict.sentence
    assert robust.findings[0].problem == Problem.REJECTED_LANDMARKS
    assert robust.findings[0].values["count"] >= 0.9 * wrong.sum()


@pytest.mark.filterwarnings("ignore:The robust fit left out:defgpa.DefgpaWarning")
def test_rejected_shape_has_no_say_in_the_smoothing():
    """The warp of a shape in reverse order folds unless it is stiff."""
    family = smooth_family(16, 30, 2, bend=0.05, noise=0.003, seed=4)
    points = np.array(family.shapes.points)
    points[7] = points[7, ::-1]
    grid = [1e-4, 1e-3, 1e-2, 0.1, 1.0]
    robust = defgpa.select_smoothing(DefGPA(robust=True), points, grid=grid, fold_size=5)
    clean = defgpa.select_smoothing(DefGPA(), np.delete(points, 7, axis=0), grid=grid, fold_size=5)
    assert robust.best_value == clean.best_value
    assert not robust.foldovers[robust.best_index]


def test_result_is_saved_with_its_rejection(family, tmp_path):
    points, _ = displaced(family.shapes.points, 0.05, seed=3)
    alignment = DefGPA(robust=True).align(points)
    defgpa.save(alignment, tmp_path / "result.npz")
    loaded = defgpa.load(tmp_path / "result.npz")
    np.testing.assert_array_equal(loaded.weights, alignment.weights)
    assert loaded.rejected == alignment.rejected
    assert loaded.rmse_reference == alignment.rmse_reference


def test_breakdown_is_a_finding(family):
    points = np.array(family.shapes.points)
    rng = np.random.default_rng(0)
    points[:9, 6] += rng.normal(size=(9, points.shape[2]))
    problems = [finding.problem for finding in DefGPA(robust=True).align(points).findings]
    assert "robust-breakdown" in problems


def test_first_rounds_of_the_default_warp_are_stiff(family):
    """A stiffer warp bends less, so it is farther from the shapes."""
    shapes = family.shapes
    distances = []
    for stiffness in (1.0, 100.0):
        fitted = DefGPA()._fit_with_weights(shapes, shapes.weights, stiffness, shapes.points[0])
        distances.append(np.abs(fitted.predicted - fitted.reference).mean())
    assert distances[1] > 1.2 * distances[0]


def test_settings_are_taken_and_wrong_ones_refused(family):
    points, _ = displaced(family.shapes.points, 0.05, seed=1)
    strict = DefGPA(robust=Robust(rejection=3.0)).align(points)
    lenient = DefGPA(robust=Robust(rejection=30.0)).align(points)
    assert strict.rejection.landmarks.sum() > lenient.rejection.landmarks.sum()
    with pytest.raises(ValueError, match=r"'robust' parameter of DefGPA.*'yes'"):
        DefGPA(robust="yes").fit(points)


def test_weights_of_the_user_are_a_start(family):
    points, wrong = displaced(family.shapes.points, 0.05, seed=1)
    likelihood = np.where(wrong, 0.2, 0.9)
    robust = DefGPA(robust=True).align(Shapes(points, weights=likelihood))
    assert robust.weights[~wrong].mean() > 4 * max(robust.weights[wrong].mean(), 1e-9)


def test_weight_functions():
    assert weigh_gradually(np.array([0.0, 3.0])).tolist() == [1.0, 0.25]
    weights = weigh_finally(np.array([[0.0, 0.8, 0.9, 1.0, 2.0]]), full_weight=0.8)
    np.testing.assert_allclose(weights, [[1.0, 1.0, 0.5, 0.0, 0.0]], atol=1e-12)


def make_sequence(seed):
    """Make 60 frames of 12 points as of a tracker: 8 % are wrong, three in some frames.

    Returns
    -------
    array (60, 12, 2), array (60, 12) of bool, array (60, 12), array (12, 2)
        The points, which are wrong, their likelihoods, and the truth.
    """
    family = smooth_family(60, 12, 2, bend=0.08, noise=0.02, seed=seed)
    rng, points = np.random.default_rng(seed), np.array(family.shapes.points)
    wrong = rng.random(points.shape[:2]) < 0.08
    points[wrong] += rng.normal(size=(wrong.sum(), 2))
    likelihood = np.where(wrong, rng.uniform(0, 0.5, wrong.shape), rng.uniform(0.7, 1, wrong.shape))
    return points, wrong, likelihood, family.truth


def write_deeplabcut(path, points, likelihood):
    """Write frames (n, m, 2) with likelihoods (n, m) as DeepLabCut does."""
    n_frames, n_parts = likelihood.shape
    parts = np.repeat([f"part{part}" for part in range(n_parts)], 3)
    heads = [["scorer"] + ["net"] * (3 * n_parts), ["bodyparts", *parts]]
    heads.append(["coords"] + ["x", "y", "likelihood"] * n_parts)
    table = np.concatenate([points, likelihood[..., None]], axis=2).reshape(n_frames, -1)
    rows = [[str(frame), *map(repr, row)] for frame, row in enumerate(table.tolist())]
    path.write_text("\n".join(",".join(row) for row in [*heads, *rows]) + "\n")


@pytest.mark.parametrize("seed", [4, 5, 6])
@pytest.mark.parametrize("make", [DefGPA, ElasticGPA])
def test_a_deeplabcut_file_is_fitted_as_its_good_points_alone(make, seed, tmp_path):
    points, wrong, likelihood, truth = make_sequence(seed)
    write_deeplabcut(tmp_path / "video.csv", points, likelihood)
    note = f"{wrong.sum()} of 720 points are below 0.6 and count as missing"
    with pytest.warns(defgpa.DefgpaWarning, match=note):
        shapes = defgpa.read_shapes(tmp_path / "video.csv")
    np.testing.assert_array_equal(shapes.weights, np.where(wrong, 0.0, likelihood))
    hidden = Shapes(np.where(wrong[..., None], np.nan, points))
    fits = [make().solve(shapes)[0] for shapes in (shapes, hidden, points)]
    cut, good, plain = (procrustes_distance(fit.reference, truth) for fit in fits)
    assert cut < 1.1 * good
    assert plain > 5 * good


@pytest.mark.parametrize("make", [DefGPA, ElasticGPA])
def test_many_frames_with_a_dozen_points_are_rid_of_their_gross_errors(make):
    points, wrong, likelihood, truth = make_sequence(4)

    def measure_error(estimator, shapes):
        return procrustes_distance(estimator.align(shapes).reference, truth)

    good = measure_error(make(), np.where(wrong[..., None], np.nan, points))
    assert measure_error(make(robust=True), Shapes(points, weights=likelihood)) < 1.1 * good
    assert measure_error(make(robust=True), points) < 1.15 * good


def test_every_shape_keeps_enough_landmarks():
    weights = np.full((5, 10), 0.01)
    weights[:, 0] = 1.0
    cut = cut_weights(weights, np.ones((5, 10)), np.arange(50.0).reshape(5, 10), 2)
    assert ((cut > 0).sum(axis=1) >= 6).all()


def test_leverage_is_the_derivative_of_the_prediction(family):
    """Moving the target of a landmark moves its prediction by its leverage."""
    shapes = family.shapes
    problem = DefGPA().eliminate_warps(shapes)
    reference = problem.fit.reference
    cost, points = problem.cost, shapes.points
    leverage = predict_landmarks(cost, problem.fit.coefficients, points, points).leverage
    moved = np.array(reference)
    moved[5, 0] += 1.0
    before, after = (
        predict_landmarks(cost, cost.fit_warps(target), points, points).predicted
        for target in (reference, moved)
    )
    np.testing.assert_allclose((after - before)[:, 5, 0], leverage[:, 5], rtol=1e-6)


def test_leverages_of_maps_add_up_to_their_parameters(family):
    """Σ q is the number of parameters per coordinate."""
    points, weights = family.shapes.points, np.ones(family.shapes.visible.shape)
    d = points.shape[2]
    parameters = {invert_for_affine_maps: d + 1, invert_for_similarities: {2: 2.0, 3: 7 / 3}[d]}
    for invert_scatter, n_parameters in parameters.items():
        leverage = compute_map_leverage(points, points, weights, invert_scatter)
        np.testing.assert_allclose(leverage.sum(axis=1), n_parameters)


def test_neighbours_shifted_together_are_rejected_though_the_warp_follows_them():
    family = smooth_family(20, 12, 2, bend=0.0, noise=0.04, seed=0)
    points = np.array(family.shapes.points)
    block = np.argsort(np.linalg.norm(family.truth - family.truth[0], axis=1))[:3]
    points[4, block] += [0.7, 0.0]
    points[9, block] += [0.0, 0.7]
    rejected = DefGPA(robust=True).align(points).rejection.landmarks
    assert rejected[[4, 9]][:, block].all()
    assert rejected.sum() == 6
