"""The spaces of an alignment: what similarity leaves, what warps carry, what a pipeline gets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import defgpa
from defgpa import AffineGPA, DefGPA, EuclideanGPA, ShapeError, Shapes, ThinPlateSpline
from support import EXACT, left_over, moved, shared_points, smooth_family


@pytest.fixture(scope="module")
def shapes():
    return Shapes(smooth_family(seed=8, n=8, m=40, missing=0.2))


@pytest.fixture(scope="module")
def alignment(shapes):
    return DefGPA(ThinPlateSpline(4, smoothing=1e-4)).fit(shapes).alignment_


def test_superimposed_shapes_are_similar_to_what_was_measured(alignment, shapes):
    for shape, actual in zip(shapes, alignment.superimposed, strict=True):
        visible = ~np.isnan(shape[:, 0])
        assert np.array_equal(visible, ~np.isnan(actual[:, 0]))
        before = np.linalg.norm(shape[visible][:, None] - shape[visible], axis=2)
        after = np.linalg.norm(actual[visible][:, None] - actual[visible], axis=2)
        np.testing.assert_allclose(after, before * after[0, 1] / before[0, 1], **EXACT)


def test_no_turn_or_scaling_brings_a_superimposed_shape_nearer(alignment):
    reference = alignment.reference
    distances = np.nansum((alignment.superimposed - reference) ** 2, axis=(1, 2))
    for factor, angle in ((1.001, 0.0), (0.999, 0.0), (1.0, 0.001), (1.0, -0.001)):
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        visible = ~np.isnan(alignment.superimposed[..., :1])
        middle = np.nanmean(alignment.superimposed, axis=1, keepdims=True)
        turned = (alignment.superimposed - middle) @ turn * factor + middle
        assert (np.where(visible, turned - reference, 0) ** 2).sum(axis=(1, 2)).min() > 0
        assert (np.nansum((turned - reference) ** 2, axis=(1, 2)) > distances).all()


def test_back_projected_shapes_are_complete_and_near_the_visible_landmarks(alignment):
    assert np.isfinite(alignment.back_projected).all()
    error = np.nanmean((alignment.back_projected - alignment.superimposed) ** 2)
    assert error < 0.25 * np.nanmean((alignment.reference - alignment.superimposed) ** 2)


def test_back_projected_and_superimposed_shapes_share_the_pose(alignment):
    """Their difference is the datum-space residual, in the size of the reference."""
    distances = np.linalg.norm(alignment.back_projected - alignment.superimposed, axis=2)
    ratio = distances / alignment.datum_residuals
    spread = np.nanmax(ratio, axis=1) - np.nanmin(ratio, axis=1)
    np.testing.assert_allclose(spread, 0.0, atol=1e-6)


def test_a_mirrored_specimen_keeps_its_side():
    points = shared_points("plethodon2d").copy()
    points[4] *= [-1.0, 1.0]
    with pytest.warns(defgpa.DefgpaWarning):
        a = DefGPA(ThinPlateSpline(3)).fit(points).alignment_
    centred = points[4] - points[4].mean(axis=0)
    actual = a.superimposed[4] - a.superimposed[4].mean(axis=0)
    turn, *_ = np.linalg.lstsq(centred, actual, rcond=None)
    assert np.linalg.det(turn) > 0


def test_rigid_motions_project_the_reference_back_as_it_is():
    a = EuclideanGPA(scaling=True).fit(smooth_family(seed=9)).alignment_
    assert max(left_over(shape, a.reference) for shape in a.back_projected) < 1e-12


@pytest.mark.parametrize("estimator", [DefGPA(ThinPlateSpline(3)), EuclideanGPA(), AffineGPA()])
@pytest.mark.parametrize("output", ["aligned", "superimposed", "back_projected"])
def test_transform_hands_on_the_space_that_is_asked_for(estimator, output):
    shapes = smooth_family(seed=10)
    model = clone(estimator).set_params(output=output)
    actual = model.fit_transform(shapes)
    np.testing.assert_array_equal(actual, getattr(model.alignment_, output))
    np.testing.assert_array_equal(
        model.transform(shapes, output="aligned"), model.alignment_.aligned
    )
    assert model.get_feature_names_out()[:2].tolist() == [f"{output}: 1_x", f"{output}: 1_y"]
    assert model.score(shapes) == pytest.approx(-model.alignment_.rmse_reference)


def test_new_shapes_are_back_projected_like_those_of_the_fit():
    """A new shape whose coordinates are those of the fit, but for a motion, ends as they do."""
    shapes = smooth_family(seed=11)
    model = DefGPA(ThinPlateSpline(3), output="back_projected").fit(shapes)
    np.testing.assert_allclose(
        model.transform(moved(shapes[:2], seed=3)),
        model.alignment_.back_projected[:2],
        rtol=0,
        atol=1e-6,
    )


def test_an_unknown_space_is_named(alignment, shapes):
    model = DefGPA(ThinPlateSpline(3), output="tangent").fit(shapes)
    with pytest.raises(ValueError, match=r"'output'.*'back_projected'.*'tangent'"):
        model.transform(shapes)


def test_several_shapes_are_registered_at_once(alignment, shapes):
    for several in (shapes[0:3], shapes.points[:3]):
        warps = alignment.register(several)
        assert len(warps) == 3
        warp = alignment.register(shapes[1])
        np.testing.assert_allclose(warps[1](shapes[1]), warp(shapes[1]), **EXACT)


def test_a_shape_that_cannot_be_registered_is_named(alignment, shapes):
    lost = np.array(shapes.points[:2])
    lost[1, 2:] = np.nan
    with pytest.raises(ShapeError, match="Shape 'b' cannot be registered"):
        alignment.register(Shapes.specimens(lost, names=["a", "b"]))


def test_shapes_go_to_a_table_and_back(shapes):
    frame = shapes.to_pandas()
    assert list(frame.columns[:4]) == ["x1", "y1", "x2", "y2"]
    assert Shapes(frame) == shapes
    named = Shapes(shapes.points, landmarks=[f"lm{'abc'[j % 3]}{j}" for j in range(40)])
    assert Shapes(named.to_pandas()) == named


def test_a_table_with_other_columns_can_be_fitted(shapes):
    frame = shapes.to_pandas()
    frame.insert(0, "sex", "f")
    model = DefGPA(ThinPlateSpline(3)).fit(frame)
    assert model.alignment_.shapes == shapes
    assert model.transform(frame[:2]).shape == (2, 40, 2)


def test_a_table_that_lacks_a_coordinate_says_what_it_needs(shapes):
    with pytest.raises(ShapeError, match="x and y"):
        Shapes(shapes.to_pandas().drop(columns="y7"))


def test_labelled_arrays_name_their_dimensions(alignment):
    actual = alignment.to_xarray("back_projected")
    assert actual.dims == ("specimen", "landmark", "space")
    np.testing.assert_array_equal(
        actual.sel(specimen="shape_3").values, alignment.back_projected[2]
    )
    table = alignment.to_pandas()
    np.testing.assert_array_equal(table.to_numpy(), alignment.superimposed.reshape(8, -1))
