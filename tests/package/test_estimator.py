"""DefGPA has scikit-learn's manners, and its result does what it says."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline, make_pipeline

from defgpa import (
    Affine,
    DefGPA,
    Dense,
    ExactCentering,
    Iterative,
    ShapeError,
    Shapes,
    SoftCentering,
    ThinPlateSpline,
)
from support import (
    EXACT,
    LinearOnly,
    assert_same_shape,
    every_warp,
    rotation,
    smooth_family,
    up_to_rigid,
    warned_of,
)


class TestManners:
    def test_parameters_are_stored_untouched(self):
        warp, scale, centering, solver = Affine(), [2.0, 1.0], ExactCentering(), Dense()
        model = DefGPA(warp, proportions=scale, centering=centering, solver=solver, memory_budget=5)
        assert model.get_params() == {
            "warp": warp,
            "proportions": scale,
            "centering": centering,
            "solver": solver,
            "memory_budget": 5,
            "output": "aligned",
            "robust": False,
            "tuning": None,
        }
        assert model.proportions is scale
        assert DefGPA().warp is None

    def test_a_clone_has_the_parameters_but_not_the_result(self, full_shapes):
        model = DefGPA(ThinPlateSpline(3, theta=2.0), centering=SoftCentering(1.0))
        again = clone(model.fit(full_shapes))
        assert again.get_params() == model.get_params()
        assert not hasattr(again, "alignment_")
        np.testing.assert_array_equal(again.fit(full_shapes).reference_, model.reference_)

    def test_parameters_are_not_checked_before_fit(self):
        DefGPA("nonsense", solver="nonsense")  # checked in fit, not here

    def test_fit_returns_itself(self, full_shapes):
        model = DefGPA(Affine())
        assert model.fit(full_shapes) is model
        assert model.fit(full_shapes, None) is model

    def test_an_estimator_works_in_a_pipeline(self, shapes):
        class Centred(TransformerMixin, BaseEstimator):
            def fit(self, points, y=None):
                return self

            def transform(self, points):
                return points - np.nanmean(points, axis=1, keepdims=True)

        pipeline = make_pipeline(Centred(), DefGPA(ThinPlateSpline(3)))
        result = pipeline.fit_transform(shapes.points)
        centred = Centred().transform(shapes.points)
        np.testing.assert_array_equal(result, DefGPA(ThinPlateSpline(3)).fit_transform(centred))
        assert isinstance(clone(pipeline), Pipeline)
        assert pipeline.score(shapes.points) < 0
        pipeline.set_params(defgpa__warp=Affine())
        assert pipeline.named_steps["defgpa"].warp == Affine()

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
    def test_a_fitted_model_can_be_copied_and_pickled(self, copied, shapes):
        model = DefGPA().fit(shapes)
        again = copied(model)
        np.testing.assert_array_equal(again.reference_, model.reference_)
        np.testing.assert_array_equal(again.transform(shapes), model.transform(shapes))

    def test_the_input_is_not_touched(self, shapes):
        points = shapes.points.copy()
        DefGPA().fit(points)
        np.testing.assert_array_equal(points, shapes.points)

    def test_a_second_fit_does_not_depend_on_the_first(self, full_shapes):
        model = DefGPA(Affine()).fit(full_shapes)
        new_shapes = smooth_family(seed=9, d=full_shapes.n_dims)
        fresh = DefGPA(Affine()).fit(new_shapes).reference_
        np.testing.assert_array_equal(model.fit(new_shapes).reference_, fresh)


BAD = {
    "warp that is none": ({"warp": "tps"}, TypeError, "'warp'"),
    "warp class": ({"warp": Affine}, TypeError, "'warp'"),
    "solver that is none": ({"solver": "dense"}, TypeError, "'solver'"),
    "solver class": ({"solver": Dense}, TypeError, "'solver'"),
    "centering that is none": ({"centering": "soft"}, TypeError, "'centering'"),
    "eigenvalues of another space": (
        {"proportions": [1.0, 2.0, 3.0]},
        ValueError,
        "2 positive numbers",
    ),
    "negative eigenvalues": ({"proportions": [1.0, -2.0]}, ValueError, "2 positive numbers"),
    "proportions in other words": ({"proportions": "large"}, ValueError, "'rigid', 'prior'"),
    "infinite eigenvalues": ({"proportions": [np.inf, 1.0]}, ValueError, "2 positive numbers"),
    "budget of words": ({"memory_budget": "2GB"}, ValueError, "'memory_budget'"),
    "negative budget": ({"memory_budget": -1}, ValueError, "'memory_budget'"),
    "nu of words": ({"centering": SoftCentering("n/m")}, ValueError, "'nu'"),
    "no control points": ({"warp": ThinPlateSpline(0)}, ValueError, "'points_per_axis'"),
    "one control point": ({"warp": ThinPlateSpline(1)}, ValueError, "'points_per_axis'"),
    "one layer": ({"warp": ThinPlateSpline((5, 1))}, ValueError, "'points_per_axis'"),
    "half a control point": ({"warp": ThinPlateSpline(2.5)}, ValueError, "'points_per_axis'"),
    "fractions in a tuple": ({"warp": ThinPlateSpline((5, 2.7))}, ValueError, "'points_per_axis'"),
    "too many axes": ({"warp": ThinPlateSpline((5, 5, 2))}, ValueError, "'points_per_axis'"),
    "negative smoothing": ({"warp": ThinPlateSpline(smoothing=-1)}, ValueError, "'smoothing'"),
    "smoothing of words": ({"warp": ThinPlateSpline(smoothing="a")}, ValueError, "'smoothing'"),
    "smoothing that is nan": ({"warp": ThinPlateSpline(theta=np.nan)}, ValueError, "'theta'"),
    "infinite theta": ({"warp": ThinPlateSpline(theta=np.inf)}, ValueError, "'theta'"),
    "negative ridge": ({"warp": ThinPlateSpline(ridge=-1.0)}, ValueError, "'ridge'"),
    "smoothing and theta": (
        {"warp": ThinPlateSpline(smoothing=1.0, theta=1.0)},
        ValueError,
        "not both",
    ),
    "control points in space": (
        {"warp": ThinPlateSpline(control_points=np.zeros((9, 3)))},
        ValueError,
        "'control_points'",
    ),
    "control points that differ in number": (
        {"warp": ThinPlateSpline(control_points=lambda p: p[: 5 + int(p[0, 0] > p[:, 0].mean())])},
        ValueError,
        "equally many",
    ),
}


@pytest.mark.parametrize(("parameters", "error", "words"), BAD.values(), ids=BAD)
def test_a_bad_parameter_is_refused_in_one_sentence(parameters, error, words):
    with pytest.raises(error) as caught:
        DefGPA(**parameters).fit(smooth_family(seed=3))
    assert words in str(caught.value)
    assert "Got" in str(caught.value)


class TestTransform:
    @every_warp
    def test_a_shape_of_the_fit_goes_through_its_own_warp_bit_for_bit(self, warp, shapes):
        model = DefGPA(warp).fit(shapes)
        result = model.transform(shapes)
        for shape, fitted, actual in zip(shapes.points, model.warps_, result, strict=True):
            np.testing.assert_array_equal(actual, fitted(shape))
        np.testing.assert_array_equal(result, model.alignment_.aligned)

    @every_warp
    def test_fit_transform_is_fit_and_transform(self, warp, shapes):
        once = DefGPA(warp).fit_transform(shapes)
        np.testing.assert_array_equal(once, DefGPA(warp).fit(shapes).transform(shapes))

    def test_a_part_of_the_fit_goes_through_the_same_warps(self, shapes):
        model = DefGPA().fit(shapes)
        some = shapes.take([4, 1])
        np.testing.assert_array_equal(model.transform(some), model.transform(shapes)[[4, 1]])

    def test_shapes_that_occur_twice_go_each_through_its_own(self, shapes):
        twice = np.concatenate([shapes.points, shapes.points, shapes.points])
        model = DefGPA().fit(twice)
        np.testing.assert_array_equal(model.transform(twice), model.alignment_.aligned)

    def test_nan_of_either_sign_is_missing(self, shapes):
        """A NaN of the other sign is still the same shape."""
        model = DefGPA().fit(shapes)
        negative_nan = np.where(shapes.visible[..., None], shapes.points, -np.nan)
        np.testing.assert_array_equal(model.transform(negative_nan), model.transform(shapes))

    @every_warp
    def test_a_shape_that_was_not_there_is_registered(self, warp, full_shapes):
        model = DefGPA(warp).fit(full_shapes.take(range(5)))
        new = full_shapes.points[5].copy()
        new[::7] = np.nan
        expected = model.alignment_.register(new)(new)
        np.testing.assert_array_equal(model.transform(new[None])[0], expected)
        np.testing.assert_array_equal(np.isnan(expected), np.isnan(new))
        assert np.nanmax(np.abs(expected - model.reference_)) < 0.5

    @every_warp
    def test_registering_a_shape_of_the_fit_anew_gives_its_warp(self, warp, shapes):
        fitted = DefGPA(warp).fit(shapes).alignment_
        for shape, actual in zip(shapes.points, fitted.warps, strict=True):
            again = fitted.register(shape)
            visible = shape[~np.isnan(shape[:, 0])]
            np.testing.assert_allclose(again(visible), actual(visible), **EXACT)

    @pytest.mark.parametrize("solver", [Dense(), Iterative()])
    @pytest.mark.parametrize("memory_budget", [0, 1 << 30])
    def test_warps_of_a_fit_are_used_whatever_solver_found_them(
        self, solver, memory_budget, shapes
    ):
        model = DefGPA(solver=solver, memory_budget=memory_budget).fit(shapes)
        np.testing.assert_array_equal(model.transform(shapes), model.alignment_.aligned)

    def test_shapes_for_another_reference_are_refused(self, full_shapes):
        model = DefGPA().fit(full_shapes)
        with pytest.raises(ShapeError, match=r"landmarks in .*got size"):
            model.transform(full_shapes.points[:, :10])
        few = full_shapes.points[:1].copy()
        few[:, full_shapes.n_dims :] = np.nan
        with pytest.raises(ShapeError, match=f"{full_shapes.n_dims} visible landmarks"):
            model.transform(few)

    def test_the_shape_that_cannot_be_registered_is_named(self, full_shapes):
        model = DefGPA().fit(full_shapes)
        new = full_shapes.points[:2] * 1.01
        new[1, full_shapes.n_dims :] = np.nan
        with pytest.raises(ShapeError, match=r"Shape 'late' cannot be registered\. "):
            model.transform(Shapes.specimens(new, names=["early", "late"]))


class TestScore:
    def test_the_score_of_the_fitted_shapes_is_minus_their_error(self, shapes):
        model = DefGPA().fit(shapes)
        np.testing.assert_allclose(model.score(shapes), -model.alignment_.rmse_reference, **EXACT)

    def test_a_landmark_visible_in_one_shape_is_not_counted(self, full_shapes):
        points = full_shapes.points.copy()
        points[1:, 3] = np.nan
        with warned_of("visible in one shape only"):
            model = DefGPA().fit(points)
        np.testing.assert_allclose(model.score(points), -model.alignment_.rmse_reference, **EXACT)

    def test_a_better_warp_scores_better(self, shapes):
        affine, spline = (DefGPA(w).fit(shapes) for w in (Affine(), ThinPlateSpline(4)))
        assert spline.score(shapes) > affine.score(shapes)

    def test_noise_scores_worse(self, full_shapes, rng):
        model = DefGPA().fit(full_shapes)
        noisy = full_shapes.points + 0.2 * rng.normal(size=full_shapes.points.shape)
        assert model.score(noisy) < model.score(full_shapes)


class TestPose:
    @every_warp
    def test_the_pose_is_that_of_the_given_shape(self, warp, shapes):
        posed = DefGPA(warp).fit(shapes).alignment_.posed_like(shapes.points[2])
        visible = shapes.visible[2]
        reference, target = posed.reference[visible], shapes.points[2][visible]
        assert_same_shape(up_to_rigid(reference, target), reference)
        np.testing.assert_allclose(reference.mean(axis=0), target.mean(axis=0), **EXACT)

    @every_warp
    def test_a_pose_changes_no_error_and_no_size(self, warp, shapes):
        alignment = DefGPA(warp).fit(shapes).alignment_
        posed = alignment.posed_like(shapes.points[2])
        np.testing.assert_allclose(posed.rmse_reference, alignment.rmse_reference, **EXACT)
        np.testing.assert_allclose(posed.residuals, alignment.residuals, **EXACT)
        np.testing.assert_array_equal(posed.eigenvalues, alignment.eigenvalues)
        assert_same_shape(up_to_rigid(alignment.reference, posed.reference), posed.reference)
        np.testing.assert_allclose(posed.rmse_datum, alignment.rmse_datum, **EXACT)
        np.testing.assert_array_equal(posed.foldovers, alignment.foldovers)

    def test_a_pose_replaces_the_one_before(self, shapes, rng):
        fitted = DefGPA().fit(shapes).alignment_
        once = fitted.posed_like(shapes.points[2])
        twice = fitted.posed_like(shapes.points[0]).posed_like(shapes.points[2])
        assert_same_shape(twice.reference, once.reference)
        assert_same_shape(twice.aligned, once.aligned)
        turn = rotation(rng, shapes.n_dims)
        np.testing.assert_allclose(once.turn @ once.turn.T, np.eye(shapes.n_dims), **EXACT)
        assert np.linalg.det(once.turn) > 0
        moved = fitted.posed_like(shapes.points[2] @ turn)
        assert_same_shape(moved.reference, once.reference @ turn)

    def test_new_shapes_are_registered_in_that_pose(self, full_shapes):
        fitted = DefGPA().fit(full_shapes.take(range(5))).alignment_
        posed, new = fitted.posed_like(full_shapes.points[0]), full_shapes.points[5]
        registered, in_pose = fitted.register(new)(new), posed.register(new)(new)
        assert_same_shape(up_to_rigid(registered, in_pose), in_pose)

    def test_a_point_has_no_pose_and_in_space_neither_has_a_line(self, full_shapes):
        fitted, d = DefGPA().fit(full_shapes).alignment_, full_shapes.n_dims
        line = np.outer(np.arange(full_shapes.n_landmarks), np.ones(d))
        with pytest.raises(ShapeError, match="no pose"):
            fitted.posed_like(np.zeros_like(line))
        if d == 3:
            with pytest.raises(ShapeError, match="collinear"):
                fitted.posed_like(line)
        else:
            assert np.linalg.det(fitted.posed_like(line).turn) > 0


class TestRescaled:
    @pytest.mark.filterwarnings("ignore:This warp has no free translations:defgpa.DefgpaWarning")
    @pytest.mark.parametrize("warp", [Affine(), ThinPlateSpline(3), LinearOnly()])
    def test_rescaling_a_fit_of_the_prior_gives_the_fit_with_those_eigenvalues(
        self, warp, nearby_shapes
    ):
        scale = np.linspace(9.0, 2.0, nearby_shapes.n_dims)
        expected = DefGPA(warp, proportions=scale).fit(nearby_shapes).alignment_
        result = DefGPA(warp, proportions="prior").fit(nearby_shapes).alignment_.rescaled(scale)
        assert_same_shape(result.reference, expected.reference)
        assert_same_shape(result.aligned, expected.aligned)
        np.testing.assert_array_equal(result.eigenvalues, scale)
        np.testing.assert_allclose(result.rmse_datum, expected.rmse_datum, **EXACT)

    def test_an_alignment_is_rescaled_in_any_pose(self, shapes):
        scale = np.linspace(9.0, 2.0, shapes.n_dims)
        fitted = DefGPA().fit(shapes).alignment_
        posed = fitted.posed_like(shapes.points[1])
        origin = posed.reference.mean(axis=0)
        expected = fitted.rescaled(scale).reference @ posed.turn + origin
        assert_same_shape(posed.rescaled(scale).reference, expected)
        back = posed.rescaled(scale).rescaled(fitted.eigenvalues)
        assert_same_shape(back.reference, posed.reference)
        assert_same_shape(back.aligned, posed.aligned)

    def test_lone_landmarks_are_rescaled_with_the_others(self):
        points = smooth_family(seed=4)
        points[1:, 3] = np.nan
        points[0, 3] += 9.0
        with warned_of("one shape only"):
            fitted = DefGPA(proportions="prior").fit(points).alignment_
        with warned_of("one shape only"):
            expected = DefGPA(proportions=[7.0, 3.0]).fit(points).alignment_
        assert_same_shape(fitted.rescaled([7.0, 3.0]).reference, expected.reference)
        assert_same_shape(fitted.rescaled([7.0, 3.0]).aligned, expected.aligned)

    @pytest.mark.parametrize("scale", [[1.0], [1.0, -1.0], [1.0, np.nan], "ab", 3.0])
    def test_a_bad_scale_is_refused(self, scale):
        fitted = DefGPA().fit(smooth_family()).alignment_
        with pytest.raises(ValueError, match="must be 2 positive numbers"):
            fitted.rescaled(scale)


class TestAlignment:
    def test_it_does_not_change(self, shapes):
        fitted = DefGPA().fit(shapes).alignment_
        with pytest.raises(FrozenInstanceError):
            fitted.reference = 0
        for array in (fitted.reference, fitted.aligned, fitted.eigenvalues, fitted.residuals):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0

    def test_residuals_are_distances_and_nan_where_missing(self, shapes):
        fitted = DefGPA().fit(shapes).alignment_
        expected = np.linalg.norm(fitted.aligned - fitted.reference, axis=2)
        np.testing.assert_array_equal(fitted.residuals, expected)
        np.testing.assert_array_equal(np.isnan(fitted.residuals), ~shapes.visible)
        np.testing.assert_array_equal(np.isnan(fitted.datum_residuals), ~shapes.visible)

    def test_an_alignment_holds_its_shapes_and_warps(self, shapes):
        model = DefGPA().fit(shapes)
        assert model.alignment_.shapes == shapes
        assert len(model.warps_) == shapes.n_shapes
        assert model.reference_ is model.alignment_.reference
        assert model.warps_ is model.alignment_.warps

    def test_diagnostics_name_the_solver_and_its_figures(self, shapes):
        dense = DefGPA().fit(shapes).alignment_.diagnostics
        assert dense.method == "dense"
        assert dense.storage == "StoredFactor"
        assert dense.n_products == 0
        assert dense.converged
        iterative = DefGPA(solver=Iterative(), memory_budget=0).fit(shapes).alignment_.diagnostics
        assert iterative.method == "iterative"
        assert iterative.storage == "StreamedFactor"
        assert iterative.n_products > 0
        assert (dense.residuals < 1e-9).all()
        assert (iterative.residuals < 1e-9).all()
        assert dense.condition.shape == (shapes.n_shapes,)
        assert (dense.condition >= 1).all()


class TestShapesClasses:
    """Shapes given as Shapes keep their names in what is said of them."""

    def test_a_new_specimen_need_not_make_a_set(self, full_shapes):
        model = DefGPA().fit(full_shapes)
        first = Shapes.specimens(full_shapes.points[:1], names=["again"])
        np.testing.assert_array_equal(model.transform(first)[0], model.alignment_.aligned[0])
