"""Where Cholesky fails and points fall together: a right answer, a warning, or a clear error."""

import numpy as np
import pytest

from defgpa import (
    Affine,
    AffineGPA,
    DefGPA,
    DegenerateShapeError,
    Dense,
    ElasticGPA,
    EuclideanGPA,
    Iterative,
    Shapes,
    ThinPlateSpline,
)
from defgpa.diagnostics.findings import Problem
from defgpa.geometry import measure_geometry
from defgpa.solvers.cost import build_cost
from defgpa.solvers.elimination import (
    append_penalty_rows,
    ridge_from_features,
    ridge_from_normal_matrix,
)
from defgpa.tuning import Tuning
from support import (
    EXACT,
    LIMIT,
    PARITY,
    assert_same_shape,
    cost_of,
    every_warp,
    moved,
    rotation,
    smooth_family,
    told_among_others,
    warned_of,
)

DIMS = pytest.mark.parametrize("d", [2, 3])


@DIMS
@pytest.mark.parametrize("seed", range(8))
def test_collinear_landmarks_are_refused_and_the_shape_is_named(d, seed):
    rng = np.random.default_rng(seed)
    points = smooth_family(seed=seed, d=d)
    points[2] = np.outer(10 * rng.normal(size=40), rng.normal(size=d)) + 5 * rng.normal(size=d)
    with pytest.raises(DegenerateShapeError, match=f"'shape_3' are all collinear.*{d}-D"):
        DefGPA().fit(points)


@DIMS
@pytest.mark.parametrize("where", [0.0, 1e5])
def test_coincident_landmarks_are_refused_and_the_shape_is_named(d, where):
    points = smooth_family(seed=1, d=d)
    points[1] = where + np.arange(1.0, d + 1) / 3
    with pytest.raises(DegenerateShapeError, match="'shape_2' are all coincident"):
        DefGPA().fit(points)


@DIMS
def test_visible_landmarks_on_a_line_are_refused(d):
    points = smooth_family(seed=2, d=d)
    points[1, d + 2 :] = np.nan
    points[1, : d + 2] = np.outer(np.arange(d + 2), np.arange(1, d + 1))
    with pytest.raises(DegenerateShapeError, match="'shape_2' are all collinear"):
        DefGPA().fit(points)


@DIMS
def test_nearly_collinear_landmarks_are_still_a_shape(d):
    points = smooth_family(seed=3, d=d)
    points[2, :, 1:] *= 1e-3
    fitted = DefGPA(Affine()).align(points)
    assert np.isfinite(fitted.reference).all()
    assert [(f.problem, f.shapes) for f in fitted.findings] == [(Problem.FAR_SHAPE, ("shape_3",))]


@DIMS
def test_registering_a_line_or_a_point_is_refused(d):
    fitted = DefGPA().fit(smooth_family(seed=4, d=d)).alignment_
    line = np.outer(np.linspace(-1, 1, 40), np.arange(1.0, d + 1))
    for points in (line, np.ones((40, d))):
        with pytest.raises(DegenerateShapeError, match="collinear or coincident"):
            fitted.register(points)


@pytest.mark.parametrize("scaling", [False, True])
def test_registering_by_a_motion_refuses_what_leaves_the_motion_open(scaling):
    """About a line in space every turn is as good as any other; about a point, in the plane too."""
    for d in (2, 3):
        fitted = EuclideanGPA(scaling=scaling).fit(smooth_family(seed=4, d=d)).alignment_
        line = np.outer(np.linspace(-1, 1, 40), np.arange(1.0, d + 1))
        for points in (np.ones((40, d)), line)[: d - 1]:
            with pytest.raises(DegenerateShapeError, match="no single motion"):
                fitted.register(points)


@DIMS
def test_registering_a_flat_shape_by_an_affine_map_is_refused(d):
    fitted = AffineGPA().fit(smooth_family(seed=4, d=d)).alignment_
    flat = smooth_family(seed=5, d=d)[0]
    flat[:, -1] = flat[:, 0]
    with pytest.raises(DegenerateShapeError, match="no affine map"):
        fitted.register(flat)


@every_warp
@DIMS
def test_landmarks_that_coincide_count_twice(warp, d):
    """Two landmarks in one place in every shape come out in one place."""
    points = smooth_family(seed=5, d=d)
    doubled = np.concatenate([points, points[:, :3]], axis=1)
    reference = DefGPA(warp).fit(doubled).reference_
    assert_same_shape(reference[40:], reference[:3])


@every_warp
@DIMS
def test_landmarks_that_coincide_in_one_shape_only_do_no_harm(warp, d):
    points = smooth_family(seed=6, d=d)
    points[0, 1] = points[0, 0]
    fitted = DefGPA(warp).solve(points)[0]
    np.testing.assert_array_equal(fitted.aligned[0, 1], fitted.aligned[0, 0])
    # that the shapes of this family bend a lot is told, and is no warning
    assert {finding.problem for finding in fitted.findings} <= {Problem.LARGE_DEFORMATION}


@every_warp
@DIMS
def test_whole_shapes_that_occur_twice_weigh_twice_and_change_nothing_else(warp, d):
    points = smooth_family(seed=7, d=d, missing=0.15, m=45)
    once, twice = DefGPA(warp).fit(points), DefGPA(warp).fit(np.concatenate([points, points]))
    assert_same_shape(twice.reference_, once.reference_)
    assert_same_shape(twice.alignment_.aligned[6:], twice.alignment_.aligned[:6])


@every_warp
@DIMS
def test_two_shapes_are_enough(warp, d):
    fitted = DefGPA(warp).solve(smooth_family(seed=8, n=2, d=d))[0]
    assert 0 < fitted.rmse_reference < 0.1
    assert fitted.findings == ()


@every_warp
@DIMS
@pytest.mark.parametrize("n", [2, 5])
def test_landmarks_as_few_as_an_affine_map_needs_are_matched_exactly(warp, d, n):
    points = smooth_family(seed=9, n=n, m=d + 1, d=d)
    fitted = DefGPA(warp).fit(points).alignment_
    assert fitted.rmse_reference < 1e-9
    assert_same_shape(fitted.aligned, np.broadcast_to(fitted.reference, points.shape))


@every_warp
@DIMS
def test_a_shape_with_d_plus_1_landmarks_does_not_change_the_reference(warp, d):
    """Any reference is an affine image of d + 1 landmarks: that shape costs nothing."""
    points = smooth_family(seed=10, n=6, d=d)
    with_few = points.copy()
    with_few[0, d + 1 :] = np.nan
    few = DefGPA(warp, proportions=np.arange(d, 0, -1.0)).fit(with_few)
    without = DefGPA(warp, proportions=np.arange(d, 0, -1.0)).fit(points[1:])
    assert_same_shape(few.reference_, without.reference_)
    assert_same_shape(few.alignment_.aligned[0, : d + 1], few.reference_[: d + 1])


@DIMS
@pytest.mark.parametrize("visible", [5, 8, 12])
def test_fewer_landmarks_than_control_points_are_fine_with_smoothing(d, visible):
    points = smooth_family(seed=11, m=60, d=d)
    rng = np.random.default_rng(0)
    for shape in points[2:]:
        shape[rng.permutation(60)[visible:]] = np.nan
    fitted = DefGPA().fit(points).alignment_
    assert fitted.findings == ()
    assert fitted.rmse_reference < 0.1


@DIMS
def test_smoothing_that_vanishes_tends_to_none(d):
    """θ → 0 is a limit that is reached, not a cliff."""
    shapes = Shapes(smooth_family(seed=12, m=80, d=d))
    warp = ThinPlateSpline(3, theta=0.0)
    expected = cost_of(shapes, warp)
    for theta in (1e-12, 1e-14):
        actual = cost_of(shapes, ThinPlateSpline(3, theta=theta))
        np.testing.assert_allclose(actual, expected, **PARITY)
    assert_same_shape(
        DefGPA(ThinPlateSpline(3, theta=1e-14)).fit(shapes).reference_,
        DefGPA(warp).fit(shapes).reference_,
        rtol=LIMIT["rtol"],
    )


@DIMS
def test_no_smoothing_is_least_squares(d):
    """θ = 0 is the plain regression on the features, by an orthogonal basis of them."""
    shapes = Shapes(smooth_family(seed=13, m=80, d=d, missing=0.1))
    warp = ThinPlateSpline(3, theta=0.0)
    expected = np.diag(shapes.views.astype(float))
    for shape, visible in zip(shapes.points, shapes.visible, strict=True):
        basis, _ = np.linalg.qr(warp.basis(shape[visible]).features(shape[visible]))
        expected[np.ix_(visible, visible)] -= basis @ basis.T
    np.testing.assert_allclose(cost_of(shapes, warp), expected, **PARITY)


@DIMS
def test_more_control_points_than_landmarks_without_smoothing_is_reported(d):
    """The warps are then not determined; the smallest are taken, and that is said."""
    points = smooth_family(seed=14, m=20, n=4, d=d)
    with told_among_others("determine", "'shape_1', 'shape_2', 'shape_3', 'shape_4'"):
        fitted = DefGPA(ThinPlateSpline(5, theta=0.0)).fit(points).alignment_
    assert Problem.NARROW_GAP in {finding.problem for finding in fitted.findings}
    np.testing.assert_array_equal(fitted.diagnostics.free_directions, 5**d - 20)
    assert np.isfinite(fitted.aligned).all()


def flat_in_space(n=6, m=60, seed=15):
    points = np.zeros((n, m, 3))
    points[..., :2] = smooth_family(seed=seed, n=n, m=m)
    return points


@pytest.mark.parametrize("warp", [Affine(), ThinPlateSpline((4, 4, 2)), ThinPlateSpline(4)])
@pytest.mark.parametrize("seed", [0, 1])
def test_flat_shapes_in_space_align_as_they_do_in_the_plane(warp, seed):
    flat = flat_in_space()
    with warned_of("every shape lie in a plane", "project_to_plane"):
        fitted = DefGPA(warp).fit(moved(flat, seed)).alignment_
    np.testing.assert_array_equal(fitted.diagnostics.free_directions, 1)
    np.testing.assert_array_equal(fitted.reference[:, 2], 0)
    assert fitted.eigenvalues[2] == 0
    if isinstance(warp, Affine):
        plane = DefGPA(Affine()).fit(flat[..., :2]).alignment_
        # in space a flat shape may be turned over, so the plane's side is not known
        side = np.sign(np.sum(plane.reference * fitted.reference[:, :2], axis=0))
        assert_same_shape(fitted.reference[:, :2] * side, plane.reference)
        np.testing.assert_allclose(fitted.rmse_reference, plane.rmse_reference, **EXACT)


@pytest.mark.parametrize("tuning", [Tuning(), Tuning(dense_landmarks=1, few_features=0)])
def test_one_flat_shape_among_others_is_taken_with_care_and_named(tuning):
    """Whatever its batch: the others do not hide it, and it does not touch them."""
    points = smooth_family(seed=5, d=3)
    points[2, :, 2] = 0.0
    actual = DefGPA(Affine(), tuning=tuning, solver=Dense()).solve(points)[0]
    assert actual.diagnostics.free_directions.tolist() == [0, 0, 1, 0, 0, 0]
    findings = [
        finding for finding in actual.findings if finding.problem is Problem.UNDETERMINED_WARP
    ]
    assert [finding.shapes for finding in findings] == [("shape_3",)]
    shapes = Shapes(points)
    geometry = measure_geometry(shapes.points, shapes.visible)
    alone = sum(build_cost(geometry[i : i + 1], Affine()).dense() for i in range(6))
    np.testing.assert_allclose(
        build_cost(geometry, Affine(), tuning=tuning).dense(), alone, rtol=0, atol=1e-12
    )


class RawMonomials:
    """Of degree five, measured from wherever the origin is."""

    def basis(self, points):
        return self

    def features(self, points):
        x, y = points.T
        return np.column_stack([x**i * y**j for i in range(6) for j in range(6 - i)])

    def penalty(self):
        return 0.0


@pytest.mark.parametrize("m", [300, 900], ids=["dense", "iterative"])
def test_features_that_rounding_makes_dependent_are_reported(m):
    """The answer must not depend on the origin; where rounding makes it so, that is said."""
    points = smooth_family(seed=9, n=3, m=m)
    points -= points.mean(axis=1, keepdims=True)
    expected = DefGPA(RawMonomials()).fit(points).reference_
    with warned_of("Rounding blurs the reference", "condition"):
        actual = DefGPA(RawMonomials()).fit(points + 100.0)
    assert (
        np.abs(np.abs(actual.reference_) - np.abs(expected)).max() > 1e-6 * np.abs(expected).max()
    )


def test_nearly_flat_shapes_need_no_warning():
    points = flat_in_space()
    points[..., 2] = 0.02 * np.sin(points[..., 0])
    fitted = DefGPA(ThinPlateSpline((4, 4, 2))).fit(moved(points)).alignment_
    assert fitted.findings == ()
    assert not fitted.diagnostics.free_directions.any()


@DIMS
def test_control_points_that_coincide_add_nothing(d, rng):
    shapes = Shapes(smooth_family(seed=16, d=d))
    controls = 2 * rng.normal(size=(12, d)) + np.nanmean(shapes.points, axis=(0, 1))
    controls[11] = controls[10] + 1e-5  # close is not the same: this pair must not be lost
    doubled = np.vstack([controls, controls[:4]])
    merged, once, twice = (
        cost_of(shapes, ThinPlateSpline(control_points=c, theta=1e-4))
        for c in (controls[:11], controls, doubled)
    )
    # the close pair costs as many digits as its distance is small
    np.testing.assert_allclose(twice, once, **PARITY)
    if d == 2:
        assert np.abs(merged - once).max() > 1e-3


@DIMS
def test_control_points_on_a_line_or_in_a_plane_are_refused(d, rng):
    points = smooth_family(seed=17, d=d)
    flat = rng.normal(size=(12, d)) @ np.diag([1.0, 1.0, 0.0][-d:]) @ rotation(rng, d) + 0.3
    with pytest.raises(ValueError, match=r"must hold at least .* do not lie on a"):
        DefGPA(ThinPlateSpline(control_points=flat)).fit(points)
    with pytest.raises(ValueError, match=f"at least {d + 1} points in {d}-D"):
        DefGPA(ThinPlateSpline(control_points=rng.normal(size=(d, d)))).fit(points)


class TestTheRegressions:
    """Cholesky where it is good, singular values where it is not, and the count of what is free."""

    def stack(self, rng, scale):
        """A stack of feature matrices, with one direction of small or no effect."""
        features = rng.normal(size=(3, 30, 8))
        features[..., 7] = features[..., 6] + scale * features[..., 7]
        return features

    @pytest.mark.parametrize("scale", [1.0, 1e-3])
    def test_both_ways_agree_where_both_work(self, scale, rng):
        features = self.stack(rng, scale)
        normal = np.swapaxes(features, 1, 2) @ features
        quick, sure = ridge_from_normal_matrix(normal), ridge_from_features(features)
        for first, second, feature in zip(quick.inverse, sure.inverse, features, strict=True):
            np.testing.assert_allclose(
                feature @ first @ first.T @ feature.T,
                feature @ second @ second.T @ feature.T,
                **PARITY,
            )
        np.testing.assert_array_equal(sure.rank_deficiency, 0)

    def test_the_condition_is_that_of_the_normal_matrix(self, rng):
        """Of columns of unit length, whatever theirs is."""
        features = self.stack(rng, 1e-4) * 10.0 ** np.arange(8)
        exact = np.linalg.cond(features / np.linalg.norm(features, axis=1, keepdims=True)) ** 2
        sure = ridge_from_features(features)
        np.testing.assert_allclose(sure.condition, exact, rtol=1e-3)
        quick = ridge_from_normal_matrix(np.swapaxes(features, 1, 2) @ features)
        assert (quick.condition >= 0.99 * exact).all()
        assert (quick.condition <= 64 * exact).all()  # Frobenius norms: at most l² times more

    def test_a_free_direction_is_dropped_and_counted(self, rng):
        features = self.stack(rng, 0.0)
        ridge = ridge_from_features(features)
        np.testing.assert_array_equal(ridge.rank_deficiency, 1)
        for feature, inverse in zip(features, ridge.inverse, strict=True):
            basis, _ = np.linalg.qr(feature[:, :7])
            np.testing.assert_allclose(
                feature @ inverse @ inverse.T @ feature.T, basis @ basis.T, **EXACT
            )

    def test_a_penalty_settles_a_free_direction(self, rng):
        features = self.stack(rng, 0.0)
        penalty = np.broadcast_to(0.1 * np.eye(8), (3, 8, 8))
        ridge = ridge_from_features(append_penalty_rows(features, penalty))
        np.testing.assert_array_equal(ridge.rank_deficiency, 0)
        expected = np.linalg.inv(np.swapaxes(features, 1, 2) @ features + penalty)
        actual = ridge.inverse @ np.swapaxes(ridge.inverse, 1, 2)
        np.testing.assert_allclose(actual, expected, **EXACT)

    def test_one_singular_matrix_does_not_spoil_the_others(self, rng):
        features = self.stack(rng, 1.0)
        features[1, :, 7] = 0.0
        ridge = ridge_from_normal_matrix(np.swapaxes(features, 1, 2) @ features)
        assert np.isinf(ridge.condition[1])
        assert np.isfinite(ridge.condition[[0, 2]]).all()
        alone = ridge_from_normal_matrix((features[2].T @ features[2])[None])
        np.testing.assert_allclose(ridge.inverse[2], alone.inverse[0], **EXACT)

    @DIMS
    def test_a_poor_shape_among_good_ones_takes_the_sure_way_alone(self, d):
        """Five shapes see enough; the last sees so little that Cholesky would lose digits."""
        points = smooth_family(seed=18, m=60, d=d)
        points[5, d + 2 :] = np.nan
        shapes = Shapes(points)
        warp = ThinPlateSpline(3, smoothing=1e-9)
        cost = build_cost(measure_geometry(shapes.points, shapes.visible), warp)
        last = build_cost(measure_geometry(shapes.points[5:], shapes.visible[5:]), warp)
        good = build_cost(measure_geometry(shapes.points[:5], shapes.visible[:5]), warp)
        np.testing.assert_allclose(cost.dense(), last.dense() + good.dense(), **EXACT)
        np.testing.assert_allclose(cost.dense() @ np.ones(60), 0, **EXACT)


def test_flat_shapes_are_projected_to_their_planes_and_others_kept():
    points = np.random.default_rng(0).normal(size=(3, 20, 3))
    points[1, :, 2] *= 1e-6
    geometry = measure_geometry(points, np.ones((3, 20), dtype=bool))
    assert geometry.find_thin_axes()[:, 2].tolist() == [False, True, False]
    laid = geometry.project_to_planes()
    np.testing.assert_array_equal(laid.points[[0, 2]], points[[0, 2]])
    assert (laid.extents[:, 2] > 0.0).tolist() == [True, False, True]
    assert geometry.project_to_planes(min_extent=1e-7) is geometry


def test_hidden_points_do_not_count_however_the_frames_are_made():
    points, visible = np.random.default_rng(0).normal(size=(2, 9, 2)), np.ones((2, 9), dtype=bool)
    visible[1, :4] = False
    ways = (
        measure_geometry(points, visible),
        measure_geometry(np.where(visible[..., None], points, np.nan), visible),
    )
    for geometry in ways:
        assert geometry.count.tolist() == [9, 5]
        np.testing.assert_allclose(geometry.centre[1], points[1, 4:].mean(axis=0))
        assert not geometry.centred[1, :4].any()


def test_shapes_that_hardly_agree_do_not_shrink_to_nothing():
    points = np.random.default_rng(24).normal(size=(8, 20, 2))
    alignment = ElasticGPA().align(points)
    assert np.isfinite(alignment.reference).all()
    assert alignment.diagnostics.converged


@pytest.mark.parametrize("offset", [1e15, 1e16])
@pytest.mark.parametrize("n_dims", [2, 3])
@pytest.mark.parametrize("solver", [Dense(), Iterative()])
def test_shapes_too_far_away_to_have_digits_are_refused(offset, n_dims, solver):
    points = smooth_family(d=n_dims) + offset
    with pytest.raises(DegenerateShapeError, match="no digits left: its landmarks spread over"):
        DefGPA(solver=solver).fit(points)
