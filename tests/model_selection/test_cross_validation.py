"""Left-out landmarks are predicted by an alignment that has not seen them."""

import json
import threading
import time
import warnings
from dataclasses import dataclass, replace

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from defgpa import (
    Affine,
    AffineGPA,
    DefGPA,
    DefgpaError,
    DefgpaWarning,
    DegenerateShapeError,
    ElasticGPA,
    EuclideanGPA,
    ExactCentering,
    Iterative,
    Polynomial,
    RadialBasis,
    Shapes,
    ThinPlateSpline,
)
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.model_selection import cross_validate
from defgpa.model_selection.cross_validation import refit_fold
from defgpa.model_selection.fold_predictions import MAX_DENSE_FOLDS
from defgpa.threads import count_threads
from support import (
    EXACT,
    ORACLE,
    PARITY,
    WARPS,
    ChargedTranslations,
    every_warp,
    oracle_points,
    rotation,
    smooth_family,
)


class Refitted(DefGPA):
    """The same estimator under another name: its folds are fitted again."""


def assert_same_predictions(actual, expected):
    size = np.linalg.norm(expected.reference - expected.reference.mean(axis=0), axis=1).max()
    np.testing.assert_allclose(actual.predicted / size, expected.predicted / size, **EXACT)
    np.testing.assert_allclose(actual.error, expected.error, **EXACT)


# -- the definition, restated with loops -----------------------------------------------------------


def similarity(source, target):
    """The best x ↦ s x R + t, R orthogonal, as a function."""
    a, b = source.mean(axis=0), target.mean(axis=0)
    left, values, right = np.linalg.svd((source - a).T @ (target - b))
    scale = values.sum() / ((source - a) ** 2).sum()
    return lambda points: scale * (points - a) @ left @ right + b


def plain_prior(points):
    """Algorithm 1: complete by pairs, common direction of the singular values, mean length."""
    is_visible = ~np.isnan(points[..., 0])
    sizes = []
    for target, is_measured in zip(points, is_visible, strict=True):
        total, count = np.zeros_like(target), np.zeros(len(target))
        for shape, visible in zip(points, is_visible, strict=True):
            in_both = is_measured & visible
            total[visible] += similarity(shape[in_both], target[in_both])(shape[visible])
            count += visible
        complete = np.where(is_measured[:, None], target, total / count[:, None])
        sizes.append(np.linalg.svd(complete - complete.mean(axis=0), compute_uv=False))
    lengths = np.linalg.norm(sizes, axis=1)
    left, *_ = np.linalg.svd((np.array(sizes) / lengths[:, None]).T)
    return (lengths.mean() * np.abs(left[:, 0])) ** 2


def plain_alignment(points, warp):
    """The reference and one function per shape, by the formulas."""
    n, m, d = points.shape
    P, factors = np.full((m, m), n / m), []
    for shape in points:
        visible = ~np.isnan(shape[:, 0])
        basis = warp.basis(shape[visible])
        F = basis.features(shape[visible])
        solver = np.linalg.solve(F.T @ F + basis.penalty(), F.T)
        P[np.ix_(visible, visible)] += np.eye(visible.sum()) - F @ solver
        factors.append((basis, solver, visible))
    axes = np.linalg.eigh(P)[1][:, :d]
    reference = axes * np.sqrt(plain_prior(points))
    weights = [solver @ reference[visible] for _, solver, visible in factors]
    pairs = zip(factors, weights, strict=True)
    return reference, [lambda x, b=b, W=W: b.features(x) @ W for (b, _, _), W in pairs]


def plain_predictions(points, warp, fold_size):
    """Every landmark predicted without its fold, in the frame of the full reference."""
    full, _ = plain_alignment(points, warp)
    predicted = np.full(points.shape, np.nan)
    for start in range(0, points.shape[1], fold_size):
        fold = np.arange(points.shape[1])[start : start + fold_size]
        reference, warps = plain_alignment(np.delete(points, fold, axis=1), warp)
        target = np.delete(full, fold, axis=0)
        a, b = reference.mean(axis=0), target.mean(axis=0)
        left, _, right = np.linalg.svd((reference - a).T @ (target - b))
        for i, shape in enumerate(points):
            visible = fold[~np.isnan(shape[fold, 0])]
            if len(visible):
                predicted[i, visible] = (warps[i](shape[visible]) - a) @ left @ right + b
    return full, predicted


@pytest.mark.parametrize(
    ("warp", "fold_size"),
    [(WARPS["affine"], 4), (WARPS["spline"], 1), (WARPS["soft spline"], 7)],
    ids=["affine", "spline", "soft spline"],
)
def test_the_error_is_the_one_of_the_definition(warp, fold_size, shapes):
    reference, predicted = plain_predictions(shapes.points, warp, fold_size)
    cv = cross_validate(DefGPA(warp, proportions="prior"), shapes, fold_size, refit=True)
    squares = ((predicted - reference) ** 2).sum(axis=2)[shapes.visible]
    np.testing.assert_allclose(cv.error, np.sqrt(squares.mean()), **EXACT)
    np.testing.assert_allclose(
        cv.distances, np.linalg.norm(predicted - reference, axis=2), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("proportions", ["prior", "rigid"])
def test_as_many_shapes_as_landmarks_far_from_the_origin(proportions):
    """Axes of equal length are not exchanged, and holes are filled about centroids."""
    points = smooth_family(seed=6, n=12, m=12, missing=0.2)
    estimator = DefGPA(Affine(), proportions=proportions)
    folds = cross_validate(estimator, points, 2)
    alone = cross_validate(Refitted(Affine(), proportions=proportions), points, 2)
    np.testing.assert_allclose(folds.error, alone.error, **EXACT)
    moved = cross_validate(estimator, points + 1e6, 2)
    np.testing.assert_allclose(moved.error, folds.error, **PARITY)


@pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning")
def test_folds_of_shapes_as_thick_as_rounding_are_those_of_flat_ones(rng):
    flat = np.zeros((5, 16, 3))
    flat[..., :2] = smooth_family(seed=7, n=5, m=16)
    thin = flat + [0.0, 0.0, 1e-8] * rng.normal(size=flat.shape)
    expected = cross_validate(Refitted(Affine()), flat, 4)
    assert_same_predictions(cross_validate(DefGPA(Affine()), flat, 4), expected)
    cv = cross_validate(DefGPA(Affine()), thin, 4)
    np.testing.assert_allclose(cv.error, expected.error, **PARITY)


# -- the authors' figures --------------------------------------------------------------------------


def oracle_run(name, run):
    return json.loads((ORACLE / name / f"{run}.json").read_text())


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("syn2d_full", "affine"),
        ("syn2d_full", "tps3_theta1"),
        ("syn2d_full", "tps5_theta1"),
        ("syn3d_full", "affine"),
        ("syn3d_full", "tps3_theta0.01"),
        ("syn3d_full", "tps5_theta0.01"),
    ],
)
def test_deformable_errors_equal_the_authors(name, run):
    expected = oracle_run(name, run)
    warp = Affine()
    if run != "affine":
        warp = ThinPlateSpline(int(run[3]), theta=expected["theta"])
    cv = cross_validate(DefGPA(warp, proportions="prior"), oracle_points(name), refit=True)
    np.testing.assert_allclose(cv.error, expected["cve"], **PARITY)


@pytest.mark.parametrize("name", ["syn2d_full", "syn3d_full", "syn2d_partial"])
@pytest.mark.parametrize(
    ("method", "estimator"), [("euc_d", EuclideanGPA()), ("aff_d", AffineGPA())]
)
def test_benchmark_errors_equal_those_of_the_datum_space_optimum(name, method, estimator):
    expected = oracle_run(name, "euc_aff_d_numpy")[method]
    cv = cross_validate(estimator, oracle_points(name))
    np.testing.assert_allclose(cv.error, expected["cve"], **PARITY)


# -- what it must be -------------------------------------------------------------------------------


def images_of_one_shape(rng, d, make, missing):
    """Six maps of one configuration, each drawn by ``make``; NaN where missing."""
    base = rng.normal(size=(30, d)) * np.linspace(2, 1, d)
    shapes = np.stack([base @ make(rng, d) + rng.normal(size=d) for _ in range(6)])
    shapes[rng.random(shapes.shape[:2]) < missing] = np.nan
    return shapes


def some_similarity(rng, d):
    return rng.uniform(0.5, 2.0) * rotation(rng, d)


def some_affinity(rng, d):
    return rotation(rng, d) @ (np.eye(d) + 0.3 * rng.uniform(-1, 1, size=(d, d)))


every_pattern = pytest.mark.parametrize(("d", "missing"), [(2, 0.0), (2, 0.2), (3, 0.0), (3, 0.2)])


@every_pattern
@every_warp
def test_similar_shapes_are_predicted_exactly(warp, d, missing, rng):
    shapes = images_of_one_shape(rng, d, some_similarity, missing)
    cv = cross_validate(DefGPA(warp), shapes, fold_size=4)
    assert cv.error < 1e-9 * np.linalg.norm(cv.reference)


@every_pattern
def test_affine_images_are_predicted_exactly_in_the_frame_of_one_of_them(d, missing, rng):
    shapes = images_of_one_shape(rng, d, some_affinity, missing)
    cv = cross_validate(AffineGPA(), shapes, fold_size=4)
    assert cv.error < 1e-9 * np.linalg.norm(cv.reference)


@every_pattern
def test_affine_warps_take_affine_images_to_the_very_same_points(d, missing, rng):
    """What is left of the error is the covariance, which each fold estimates for itself."""
    shapes = images_of_one_shape(rng, d, some_affinity, missing)
    cv = cross_validate(DefGPA(Affine()), shapes, fold_size=4)
    size = np.linalg.norm(cv.reference)
    spread = cv.predicted - np.nanmean(cv.predicted, axis=0)
    assert np.nanmax(np.abs(spread)) < 1e-9 * size
    assert cv.error < 0.02 * size


def test_every_visible_landmark_is_predicted_and_no_other(shapes):
    cv = cross_validate(DefGPA(), shapes, fold_size=3)
    np.testing.assert_array_equal(np.isfinite(cv.predicted).all(axis=2), shapes.visible)
    np.testing.assert_array_equal(np.isnan(cv.distances), ~shapes.visible)


class Recording(DefGPA):
    """Remembers which landmarks each fit was given."""

    given = []  # noqa: RUF012  (shared by all copies on purpose)

    def fit(self, shapes, y=None):
        self.given.append(shapes.landmarks)
        return super().fit(shapes)


def test_every_landmark_is_left_out_exactly_once(full_shapes):
    Recording.given.clear()
    cv = cross_validate(Recording(Affine()), full_shapes, fold_size=7, n_jobs=2)
    all_landmarks, *folds = sorted(Recording.given, key=len, reverse=True)
    assert all_landmarks == full_shapes.landmarks
    left_out = [landmark for fold in folds for landmark in all_landmarks if landmark not in fold]
    assert sorted(left_out, key=int) == list(all_landmarks)
    assert [len(fold) for fold in cv.folds[:-1]] == [7] * (len(cv.folds) - 1)
    np.testing.assert_array_equal(np.concatenate(cv.folds), np.arange(full_shapes.n_landmarks))


@pytest.mark.parametrize("fold_size", [1, 5])
def test_the_order_of_the_folds_does_not_matter(fold_size):
    points = smooth_family(seed=5, m=40, missing=0.15)
    backwards = cross_validate(DefGPA(), points[:, ::-1], fold_size)
    forwards = cross_validate(DefGPA(), points, fold_size)
    np.testing.assert_allclose(backwards.error, forwards.error, **EXACT)
    np.testing.assert_allclose(backwards.per_landmark[::-1], forwards.per_landmark, **EXACT)


def test_a_prediction_does_not_know_the_landmark():
    """Moving it in one shape leaves the predictions of it by the others where they were.

    Only the full reference moves, so their distances from each other stay.
    """
    points = smooth_family(seed=6)
    elsewhere = points.copy()
    elsewhere[0, 11] += 0.5
    before = cross_validate(DefGPA(), points, refit=True).predicted[1:, 11]
    after = cross_validate(DefGPA(), elsewhere, refit=True).predicted[1:, 11]
    gaps = [np.linalg.norm(p[:, None] - p[None], axis=2) for p in (before, after)]
    np.testing.assert_allclose(*gaps, **EXACT)
    assert np.abs(before - after).max() > 1e-6


def test_figures_of_shapes_and_landmarks_make_up_the_error(shapes):
    cv = cross_validate(DefGPA(), shapes, 4)
    counts = cv.alignment.counted
    total = cv.error**2 * counts.sum()
    np.testing.assert_allclose((cv.per_shape**2 * counts.sum(axis=1)).sum(), total, **EXACT)
    np.testing.assert_allclose((cv.per_landmark**2 * counts.sum(axis=0)).sum(), total, **EXACT)
    assert cv.error >= cv.alignment.rmse_reference


def test_a_landmark_visible_in_one_shape_is_predicted_but_not_counted():
    points = smooth_family(seed=7, missing=0.1)
    points[1:, 8] = np.nan
    points[0, 8] = points[0, 9] + 0.1
    with pytest.warns(DefgpaWarning, match="'9'"):
        cv = cross_validate(DefGPA(), points)
    with pytest.warns(DefgpaWarning, match="'9'"):
        affine = cross_validate(DefGPA(Affine()), points, 4)
    with pytest.warns(DefgpaWarning, match="'9'"):
        refit = cross_validate(DefGPA(Affine()), points, 4, refit=True)
    assert_same_predictions(affine, refit)
    without = cross_validate(DefGPA(), np.delete(points, 8, axis=1))
    assert np.isfinite(cv.predicted[0, 8]).all()
    assert not cv.alignment.counted[:, 8].any()
    assert np.isnan(cv.per_landmark[8])
    np.testing.assert_allclose(cv.error, without.error, **EXACT)


# -- landmarks left out of the residual forms, against fits of their own ---------------------------


def fixed_warp(points, theta=0.0):
    """A spline whose control points do not depend on the landmarks."""
    size, centre = np.nanstd(points), np.nanmean(points, axis=(0, 1))
    grid = np.stack(np.meshgrid(*[[-1.3, 1.2]] * points.shape[2]), axis=-1)
    controls = np.vstack([grid.reshape(-1, points.shape[2]), np.zeros((1, points.shape[2]))])
    return ThinPlateSpline(control_points=centre + size * controls, theta=theta)


@pytest.mark.parametrize("fold_size", [1, 4])
@pytest.mark.parametrize(("d", "missing"), [(2, 0.0), (2, 0.15), (3, 0.1)])
@pytest.mark.parametrize(
    "settings_",
    [{}, {"proportions": "prior"}, {"centering": ExactCentering()}, {"solver": Iterative()}],
    ids=["default", "prior", "exact centring", "iterative"],
)
def test_folds_with_a_basis_that_is_the_same_are_refits(settings_, d, missing, fold_size):
    points = smooth_family(seed=3, n=8, m=30, d=d, missing=missing)
    model = DefGPA(fixed_warp(points), **settings_)
    default = cross_validate(model, points, fold_size)
    refit = cross_validate(model, points, fold_size, refit=True)
    assert_same_predictions(default, refit)
    assert (default.refitted, refit.refitted) == (False, True)


@pytest.mark.parametrize("missing", [0.0, 0.1], ids=["full", "partial"])
@pytest.mark.parametrize("solver", [None, Iterative()], ids=["dense", "iterative"])
def test_folds_of_thin_shapes_agree_on_further_axes_as_refits_do(solver, missing):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 3)) * [1.0, 1.0, 0.1] + 0.04 * rng.normal(size=(8, 30, 3))
    points[rng.random((8, 30)) < missing] = np.nan
    model = DefGPA(fixed_warp(points), solver=solver)
    default = cross_validate(model, points, 3)
    assert default.alignment.diagnostics.n_agreed_axes > 0
    assert_same_predictions(default, cross_validate(model, points, 3, refit=True))


@pytest.mark.parametrize("missing", [0.0, 0.1], ids=["full", "partial"])
def test_elastic_folds_agree_on_as_many_further_axes_as_refits_do(missing):
    """On fewer or more than the fit of all landmarks, in some folds."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 3)) * [1.0, 1.0, 0.1] + 0.04 * rng.normal(size=(8, 30, 3))
    points[rng.random((8, 30)) < missing] = np.nan
    model = ElasticGPA(fixed_warp(points))
    default = cross_validate(model, points, 3)
    assert_same_predictions(default, cross_validate(model, points, 3, refit=True))


@pytest.mark.parametrize("landmark", [0, MAX_DENSE_FOLDS])
def test_a_fold_without_the_only_missing_landmark_leaves_the_metric_of_the_others(landmark):
    """The last of these folds is alone in its call, and only there may all weigh the same."""
    points = smooth_family(seed=5, n=8, m=MAX_DENSE_FOLDS + 1)
    points[:4, landmark] = np.nan
    model = DefGPA(Affine())
    default = cross_validate(model, points)
    assert_same_predictions(default, cross_validate(model, points, refit=True))


@pytest.mark.parametrize("is_weighted", [False, True], ids=["alike", "weighted"])
@pytest.mark.parametrize("missing", [0.0, 0.15], ids=["full", "partial"])
@pytest.mark.parametrize("kind", ["spline", "radial", "polynomial", "affine"])
def test_folds_of_every_warp_whose_basis_is_the_same_are_refits(kind, missing, is_weighted):
    points = smooth_family(seed=5, n=8, m=30, missing=missing)
    spline = fixed_warp(points)
    warp = {
        "spline": spline,
        # its width follows from the distances of its centres
        "radial": RadialBasis(control_points=spline.control_points, smoothing=0.0),
        "polynomial": Polynomial(2, smoothing=0.0),
        "affine": Affine(),
    }[kind]
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, size=(8, 30)) if is_weighted else None
    shapes = Shapes(points, weights=weights)
    default = cross_validate(DefGPA(warp), shapes, 3)
    refit = cross_validate(DefGPA(warp), shapes, 3, refit=True)
    assert (default.refitted, refit.refitted) == (False, True)
    assert_same_predictions(default, refit)


@dataclass(frozen=True, repr=False)
class AbsoluteSpline(ThinPlateSpline):
    """A spline that costs the same however many landmarks its shape has."""

    def bases(self, geometry):
        return super().bases(replace(geometry, mass=np.ones_like(geometry.mass)))


@pytest.mark.parametrize("fold_size", [1, 4])
@pytest.mark.parametrize("missing", [0.0, 0.15], ids=["full", "partial"])
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("kind", [DefGPA, ElasticGPA])
def test_folds_with_a_penalty_that_is_the_same_are_refits(kind, d, missing, fold_size):
    points = smooth_family(seed=4, n=8, m=30, d=d, missing=missing)
    spline = fixed_warp(points)
    warp = AbsoluteSpline(control_points=spline.control_points, theta=0.02)
    default = cross_validate(kind(warp), points, fold_size)
    refit = cross_validate(kind(warp), points, fold_size, refit=True)
    assert (default.refitted, refit.refitted) == (False, True)
    assert_same_predictions(default, refit)
    free = cross_validate(kind(spline), points, fold_size)
    assert abs(free.error / default.error - 1.0) > 1e-4  # the penalty is felt


@pytest.mark.parametrize("fold_size", [1, 5])
def test_refits_are_charged_theta_times_the_landmarks_that_remain(fold_size):
    points = smooth_family(seed=4, n=8, m=30)
    cv = cross_validate(DefGPA(fixed_warp(points, theta=1e-3)), points, fold_size)
    same = DefGPA(fixed_warp(points, theta=1e-3 * 30 / (30 - fold_size)))
    for fold in cv.folds:
        expected = refit_fold(same, cv.alignment, fold).predicted
        np.testing.assert_allclose(cv.predicted[:, fold], expected, **EXACT)


@pytest.mark.parametrize(
    "settings_",
    [
        {"proportions": [9.0, 2.0]},
        {"proportions": "prior"},
        {"centering": ExactCentering()},
        {"warp": ThinPlateSpline(control_points=lambda own: own[:8])},
        {"warp": ThinPlateSpline(points_per_axis=(4, 3), theta=0.01)},
        {"memory_budget": 1},
        {"solver": Iterative()},
    ],
    ids=lambda settings_: next(iter(settings_)),
)
def test_every_setting_holds_for_the_folds(settings_):
    points = smooth_family(seed=8, missing=0.1)
    default = cross_validate(DefGPA(**settings_), points, 5)
    refit = cross_validate(DefGPA(**settings_), points, 5, refit=True)
    np.testing.assert_allclose(default.error, refit.error, rtol=0.05)


@pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning")  # of the fit of all landmarks
@pytest.mark.parametrize("kind", [DefGPA, ElasticGPA])
@pytest.mark.parametrize(
    "warp",
    [
        ThinPlateSpline(3, smoothing=0.0),
        ThinPlateSpline(control_points=lambda own: own, smoothing=0.0),
        RadialBasis(smoothing=0.0),
        Polynomial(3, smoothing=0.0),
    ],
    ids=["grid", "landmarks", "radial", "polynomial"],
)
def test_a_warp_that_interpolates_predicts_nothing_and_is_named(kind, warp):
    points = smooth_family(seed=8, n=5, m=12)
    message = r"Without landmark '1', .*: The warp of shape 'shape_1', .* passes through the"
    errors = []
    for refit in (False, True):
        with pytest.raises(DefgpaError, match=message) as caught:
            cross_validate(kind(warp), points, 4, refit=refit)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert errors[0].count("Use more smoothing, or fewer functions") == 1


@given(seed=st.integers(0, 10_000), missing=st.floats(0.0, 0.5), fold_size=st.integers(1, 12))
@settings(max_examples=15, deadline=None)
def test_affine_folds_are_refits_however_much_is_missing(seed, missing, fold_size):
    points = smooth_family(seed=seed, n=5, m=24, missing=missing)
    assert_same_outcome(DefGPA(Affine()), Refitted(Affine()), points, fold_size)


def assert_same_outcome(one, other, points, fold_size):
    """The same predictions, or the same complaint."""
    outcomes = []
    for estimator in (one, other):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DefgpaWarning)
            try:
                outcomes.append(cross_validate(estimator, points, fold_size))
            except DefgpaError as error:
                outcomes.append(str(error))
    if isinstance(outcomes[1], str):
        assert outcomes[0] == outcomes[1]
    else:
        assert_same_predictions(*outcomes)


def test_many_partial_shapes_are_completed_through_one():
    """Beyond 128 shapes the prior takes another way, and so must the folds."""
    points = smooth_family(seed=9, n=140, m=20, missing=0.05)
    assert_same_predictions(
        cross_validate(DefGPA(Affine()), points, 10), cross_validate(Refitted(Affine()), points, 10)
    )


# -- manners ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [DefGPA(), Refitted(), EuclideanGPA()], ids=type)
def test_the_workers_change_no_digit(estimator):
    points = smooth_family(seed=10, m=30, missing=0.1)
    expected = cross_validate(estimator, points, 2, n_jobs=1)
    results = [cross_validate(estimator, points, 2, n_jobs=2)]
    with joblib.parallel_config(backend="loky", n_jobs=2):
        results.append(cross_validate(estimator, points, 2))
    for result in results:
        np.testing.assert_array_equal(result.predicted, expected.predicted)
        assert result.error == expected.error


def test_ray_changes_no_digit():
    """Where Ray is installed; the project does not ask for it."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from ray.util.joblib import register_ray

    points = smooth_family(seed=10, m=30, missing=0.1)
    expected = cross_validate(DefGPA(), points, 2, n_jobs=1)
    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with joblib.parallel_config(backend="ray", n_jobs=2):
            result = cross_validate(DefGPA(), points, 2)
    finally:
        ray.shutdown()
    np.testing.assert_array_equal(result.predicted, expected.predicted)


class Watched(DefGPA):
    """Notes on which other threads it is fitted, and how many BLAS may use there."""

    threads = {}  # noqa: RUF012

    def fit(self, shapes, y=None):
        if threading.current_thread() is not threading.main_thread():
            blas = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
            self.threads[threading.get_ident()] = max(blas)
        time.sleep(0.01)  # so that each of them gets a fold
        return super().fit(shapes)


def test_by_default_there_are_as_many_workers_as_blas_had_threads():
    points = smooth_family(seed=15, m=30)
    for allowed in (1, 2):
        Watched.threads.clear()
        with threadpool_limits(allowed, user_api="blas"):
            cores = count_threads()
            cross_validate(Watched(Affine()), points, 2)
            assert len(Watched.threads) == (cores if cores > 1 else 0)
            assert set(Watched.threads.values()) <= {1}
            assert count_threads() == cores


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interruption_stops_the_workers(workers):
    """Ctrl-C after the first fold: those under way are finished, the others never begun."""

    class Counted(DefGPA):
        fits = 0

        def fit(self, shapes, y=None):
            Counted.fits += 1
            time.sleep(0.01)
            return super().fit(shapes)

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cross_validate(
            Counted(Affine()), smooth_family(seed=15, m=60), n_jobs=workers, progress=interrupt
        )
    assert Counted.fits < 10  # of 61
    assert count_threads() >= 1


def test_a_backend_that_returns_everything_at_once_will_do(full_shapes):
    expected = cross_validate(DefGPA(Affine()), full_shapes, 5)
    with joblib.parallel_config(backend="multiprocessing", n_jobs=1):
        result = cross_validate(DefGPA(Affine()), full_shapes, 5)
    np.testing.assert_array_equal(result.predicted, expected.predicted)


def test_the_estimator_is_left_as_it_was(full_shapes):
    warp = ThinPlateSpline(points_per_axis=4)
    fresh = DefGPA(warp)
    cross_validate(fresh, full_shapes, 10)
    assert not hasattr(fresh, "alignment_")
    assert fresh.warp is warp
    used = DefGPA(warp).fit(full_shapes.points[:, 5:])
    alignment = used.alignment_
    cross_validate(used, full_shapes, 10)
    assert used.alignment_ is alignment


def test_any_object_that_fits_and_has_an_alignment_will_do(full_shapes):
    class OfOnesOwn:
        def fit(self, shapes):
            self.alignment_ = DefGPA(Affine()).fit(shapes).alignment_
            return self

    folds = cross_validate(OfOnesOwn(), full_shapes, 5)
    np.testing.assert_array_equal(
        folds.predicted, cross_validate(DefGPA(Affine()), full_shapes, 5, refit=True).predicted
    )


@pytest.mark.parametrize("kind", [DefGPA, Refitted])
def test_progress_is_told_fold_by_fold(kind, full_shapes):
    findings = []
    cv = cross_validate(
        kind(Affine()), full_shapes, 3, progress=lambda *step: findings.append(step)
    )
    done, total = zip(*findings, strict=True)
    assert set(total) == {len(cv.folds)}
    assert list(done) == sorted(set(done))
    assert done[-1] == len(cv.folds)


def test_a_listener_that_fails_leaves_nothing_behind(full_shapes):
    filters = list(warnings.filters)

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cross_validate(DefGPA(), full_shapes, progress=interrupt)
    assert warnings.filters == filters


def test_the_result_cannot_be_changed(full_shapes):
    cv = cross_validate(DefGPA(Affine()), full_shapes, 10)
    with pytest.raises(ValueError, match="read-only"):
        cv.predicted[0] = 0
    with pytest.raises(AttributeError):
        cv.fold_size = 2
    assert repr(cv).startswith("CrossValidation(error=")


@pytest.mark.parametrize("fold_size", [0, -1, 40, 1.5, True, None, "1"])
def test_a_wrong_fold_size_is_refused(fold_size):
    with pytest.raises(ValueError, match="The 'fold_size' parameter must be a whole number"):
        cross_validate(DefGPA(), smooth_family(m=40), fold_size)


# -- what goes wrong in a fold ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DefGPA, Refitted])
def test_a_fold_that_cannot_be_fitted_is_named(kind):
    points = smooth_family(seed=11)
    points[2, 4:] = np.nan  # four landmarks left: leaving two of them out is too much
    shapes = Shapes(points, landmarks=[f"L{j}" for j in range(40)])
    with pytest.raises(DefgpaError) as caught:
        cross_validate(kind(Affine()), shapes, fold_size=2)
    message = str(caught.value)
    assert "2 of 20 folds cannot be fitted" in message
    told_once = "'L0', 'L1' or 'L2', 'L3': Shape 'shape_3' has 2 visible landmarks"
    assert f"Without landmark {told_once}" in message
    assert isinstance(caught.value.__cause__, DegenerateShapeError)


@pytest.mark.parametrize("kind", [ValueError, IndexError])
def test_a_fold_whose_control_points_fail_is_named(kind):
    """The spline is laid by a function that cannot do without the first landmark."""

    def around_the_first(points):
        if not np.isclose(points[0], first).all(axis=1).any():
            raise kind("the first landmark is gone")
        return points[0] + np.array([[0, 0], [1, 0], [0, 1], [1, 1]])

    points = smooth_family(seed=14)
    first = points[:, 0]
    warp = ThinPlateSpline(control_points=around_the_first)
    with pytest.raises(DefgpaError, match="Without landmark '1': the first landmark is gone"):
        cross_validate(DefGPA(warp), points, refit=True)
    assert cross_validate(DefGPA(warp), points).error > 0.0


class Own(ChargedTranslations):
    """Affine features of one's own, by a class that is not careful."""

    def __init__(self, fails=lambda points: None, spoilt=lambda features, points: features):
        self._fails, self._spoilt = fails, spoilt

    def basis(self, points):
        self._fails(points)
        return self

    def features(self, points):
        return self._spoilt(super().features(points), points)

    def penalty(self):
        return 0.0


def test_any_error_of_a_users_warp_in_a_fold_is_named():
    def needs_forty(points):
        if len(points) < 40:
            raise IndexError("too few points for my warp")

    with pytest.raises(DefgpaError, match="'1' or '2' or '3' or 37 others: too few points for my"):
        cross_validate(DefGPA(Own(needs_forty)), smooth_family(seed=14))


def test_a_prediction_that_is_not_finite_is_a_failed_fold():
    points = smooth_family(seed=14)
    corner = points[2, 7]

    def nothing_there(features, points):
        is_predicted = len(points) == 1  # asked for on its own
        gone = (points == corner).all(axis=1) & is_predicted
        return np.where(gone[:, None], np.nan, features)

    with pytest.raises(
        DefgpaError, match="Without landmark '8': the warp of shape 'shape_3' gives no finite"
    ):
        cross_validate(DefGPA(Own(spoilt=nothing_there)), points)


def test_folds_whose_descent_does_not_end_are_named(monkeypatch):
    """What a datum-space fit confesses is heard in every fold."""
    monkeypatch.setattr("defgpa.solvers.datum_space.GRADIENT_TOLERANCE", -1.0)
    points = smooth_family(seed=14, missing=0.1)
    with pytest.warns(DefgpaWarning, match="with a relative gradient"):
        alignment = EuclideanGPA().fit(points).alignment_
    assert not alignment.diagnostics.converged
    assert [finding.problem for finding in alignment.findings] == [Problem.DESCENT_NOT_CONVERGED]
    with pytest.warns(DefgpaWarning, match="with a relative gradient"):
        cross_validate(EuclideanGPA(), points, 10)


def test_flat_shapes_in_space_are_validated_without_a_word():
    flat = np.zeros((6, 40, 3))
    flat[..., :2] = smooth_family(seed=14)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", DefgpaWarning)
        assert cross_validate(DefGPA(), flat, 10).error > 0.0


@pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning")
@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("kind", [DefGPA, ElasticGPA, Refitted])
def test_a_fold_without_which_the_shapes_fall_apart_is_named(kind, refit):
    """Two groups that share three landmarks: in the plane none of them can be spared."""
    points = smooth_family(seed=12)
    points[:3, 23:] = np.nan
    points[3:, :20] = np.nan
    findings = r"3 of 40 folds .*'21' or '22' or '23': The shapes fall into 2 groups"
    with pytest.raises(DefgpaError, match=findings):
        cross_validate(kind(Affine()), points, refit=refit)


def test_a_long_list_of_failures_is_cut_short():
    """Each reason is told once, the first three of them."""
    points = smooth_family(seed=12)
    for shape, first in ((2, 0), (3, 5), (4, 10), (5, 37)):
        visible = points[shape, first : first + 3].copy()
        points[shape] = np.nan
        points[shape, first : first + 3] = visible
    findings = r"12 of 40 folds .*'1' or '2' or '3': Shape 'shape_3' .*; and 3 more folds\. Use"
    with pytest.raises(DefgpaError, match=findings):
        cross_validate(DefGPA(Affine()), points)


def carried_by_four():
    """Landmarks near a line but for four; without one of those, three carry an axis."""
    rng = np.random.default_rng(13)
    base = np.column_stack([np.linspace(-3, 3, 20), 0.02 * rng.normal(size=20)])
    base[[2, 7, 12, 17], 1] = [1, -1, 1, -1]
    return base + 0.005 * rng.normal(size=(6, 20, 2))


@pytest.mark.parametrize("kind", [DefGPA, Refitted])
def test_a_warning_of_folds_only_is_given_once(kind):
    with pytest.warns(DefgpaWarning) as record:
        cv = cross_validate(kind(Affine()), carried_by_four())
    assert not cv.alignment.findings
    (message,) = [str(w.message) for w in record]
    assert message.startswith("4 of 20 folds of the cross-validation warned of what the full fit")
    assert "(4 ×) without landmark '3': " in message
    assert record[0].filename == __file__
    assert [j for j, finding in enumerate(cv.findings) if finding] == [2, 7, 12, 17]


class Grumbling(DefGPA):
    """Warns of its first shape and of a number, always."""

    def fit(self, shapes, y=None):
        super().fit(shapes)
        text = f"Shape 'x{len(shapes.landmarks)}' is odd by {shapes.points[0, 0, 0]:.5g}."
        odd = Finding(Problem.OTHER_SIZE, shapes=(text,), values={"times": 9.0, "of": 5})
        self.alignment_ = replace(self.alignment_, findings=(odd,))
        warnings.warn(text, DefgpaWarning, stacklevel=2)
        warnings.warn("an odd number", RuntimeWarning, stacklevel=2)
        return self


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_folds_do_not_repeat_a_warning_of_the_full_fit(n_jobs, full_shapes):
    with pytest.warns() as record:
        cv = cross_validate(Grumbling(Affine()), full_shapes, 5, n_jobs=n_jobs)
    kinds = [w.category for w in record]
    assert kinds.count(RuntimeWarning) == 2  # once for the full fit, once for all folds
    assert not any(cv.findings)
