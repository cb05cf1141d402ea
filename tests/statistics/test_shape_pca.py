"""Principal components of shape: geomorph's numbers, gaps, new specimens, what can be taken out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

from defgpa import Affine, DefGPA, ShapeError, ShapePCA, Shapes, ThinPlateSpline
from defgpa.statistics import tangent_space
from support import EXACT, PARITY, moved, shared_points, smooth_family


def fitted(points, warp=None):
    return DefGPA(warp or ThinPlateSpline(3)).fit(points).alignment_


@pytest.fixture(scope="module")
def shapes():
    return smooth_family(seed=31, n=10, m=20)


@pytest.fixture(scope="module")
def pca(shapes):
    return ShapePCA().fit(fitted(shapes))


@pytest.mark.parametrize("convert", [lambda p: p, Shapes, list, fitted])
def test_plethspecies_has_the_numbers_of_geomorph_whatever_is_given(convert):
    actual = ShapePCA().fit(convert(shared_points("plethspecies2d")))
    eigenvalues = [0.0002720474, 0.0001120524, 0.0001084758, 0.0000568924]
    np.testing.assert_allclose(actual.explained_variance_[:4], eigenvalues, rtol=1e-6)
    shares = [0.4564029, 0.1879858, 0.1819856, 0.0954461]
    np.testing.assert_allclose(actual.explained_variance_ratio_[:4], shares, **PARITY)


def test_scores_have_the_variances_and_do_not_correlate(pca):
    covariance = np.cov(pca.scores_.T)
    np.testing.assert_allclose(covariance, np.diag(pca.explained_variance_), atol=1e-15)
    assert pca.scores_.shape == (10, 9)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1.0)
    flat = pca.components_.reshape(9, -1)
    np.testing.assert_allclose(flat @ flat.T, np.eye(9), atol=1e-12)


def test_signs_are_always_the_same(pca):
    flat = pca.components_.reshape(9, -1)
    largest = np.take_along_axis(flat, np.abs(flat).argmax(axis=1)[:, None], axis=1)
    assert (largest > 0).all()


def test_shapes_of_the_fit_are_scored_as_they_were(pca, shapes):
    np.testing.assert_allclose(pca.transform(shapes), pca.scores_, atol=1e-9)
    np.testing.assert_allclose(
        pca.transform(moved(shapes, scales=(0.2, 5))), pca.scores_, atol=1e-9
    )


def test_scores_go_back_to_the_shapes(pca):
    np.testing.assert_allclose(pca.inverse_transform(pca.scores_), pca.coordinates_, **EXACT)


def test_shapes_along_components_are_so_many_standard_deviations_away(pca):
    moved_by = pca.shape_at({1: 2.0, 3: -1.5}) - pca.mean_
    deviations = np.sqrt(pca.explained_variance_)
    expected = 2 * deviations[0] * pca.components_[0] - 1.5 * deviations[2] * pca.components_[2]
    np.testing.assert_allclose(moved_by, expected, **EXACT)
    np.testing.assert_array_equal(pca.shape_at({}), pca.mean_)


def test_a_component_that_is_taken_out_is_gone_and_the_others_stay(pca, shapes):
    left = pca.without([1, 3])
    scores = (left - pca.mean_).reshape(10, -1) @ pca.components_.reshape(9, -1).T
    np.testing.assert_allclose(scores[:, [0, 2]], 0.0, atol=1e-12)
    np.testing.assert_allclose(
        np.delete(scores, [0, 2], 1), np.delete(pca.scores_, [0, 2], 1), **EXACT
    )
    np.testing.assert_allclose(pca.without([1, 3], shapes), left, atol=1e-9)


def test_what_is_taken_out_need_not_be_kept_to_leave_the_rest(shapes):
    """The variation beyond the components that are kept stays in the shapes."""
    few, many = ShapePCA(2).fit(shapes), ShapePCA().fit(shapes)
    np.testing.assert_allclose(few.without([1]), many.without([1]), **EXACT)


def test_components_of_back_projected_shapes_are_classical_where_warps_fit_exactly():
    """No smoothing, affine shapes: what is carried is what was measured."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(20, 2)) * [3, 2]
    points = np.stack([base @ (np.eye(2) + 0.2 * rng.normal(size=(2, 2))) for _ in range(8)])
    a = fitted(points, Affine())
    smooth = ShapePCA(space="back_projected").fit(a)
    np.testing.assert_allclose(
        smooth.explained_variance_[:2], ShapePCA().fit(a).explained_variance_[:2], rtol=1e-6
    )
    x = tangent_space(points)
    total = ((x - x.mean(axis=0)) ** 2).sum()
    assert smooth.sums_of_squares_.smooth == pytest.approx(total, rel=1e-6)
    assert smooth.sums_of_squares_.residual < 1e-9 * total


def test_noise_is_in_the_residual_sum_and_bending_in_the_smooth_one():
    calm = ShapePCA().fit(fitted(smooth_family(seed=32, noise=0.0), ThinPlateSpline(5)))
    noisy = ShapePCA().fit(fitted(smooth_family(seed=32, noise=0.1), ThinPlateSpline(5)))
    assert noisy.sums_of_squares_.residual > 3 * calm.sums_of_squares_.residual
    assert noisy.sums_of_squares_.smooth == pytest.approx(calm.sums_of_squares_.smooth, rel=0.5)
    assert ShapePCA().fit(smooth_family(seed=32)).sums_of_squares_ is None


def test_the_residual_sum_is_over_visible_landmarks_at_unit_size():
    a = fitted(smooth_family(seed=33, missing=0.2))
    sizes = np.linalg.norm(
        np.where(np.isnan(a.superimposed), a.back_projected, a.superimposed)
        - np.where(np.isnan(a.superimposed), a.back_projected, a.superimposed).mean(
            axis=1, keepdims=True
        ),
        axis=(1, 2),
    )
    expected = (np.nansum((a.superimposed - a.back_projected) ** 2, axis=(1, 2)) / sizes**2).sum()
    assert ShapePCA().fit(a).sums_of_squares_.residual == pytest.approx(expected)


@pytest.mark.parametrize("space", ["superimposed", "back_projected"])
def test_gaps_hardly_change_the_components(space):
    complete = smooth_family(seed=34, n=15, m=30)
    holes = complete.copy()
    rng = np.random.default_rng(1)
    holes[rng.random((15, 30)) < 0.1] = np.nan
    expected = ShapePCA(2, space=space).fit(fitted(complete))
    alignment = fitted(holes)
    actual = ShapePCA(2, space=space).fit(alignment)
    np.testing.assert_allclose(
        actual.explained_variance_ratio_, expected.explained_variance_ratio_, atol=0.1
    )
    for k in range(2):
        assert abs(np.corrcoef(actual.scores_[:, k], expected.scores_[:, k])[0, 1]) > 0.9


def test_gaps_in_arrays_are_filled_without_an_alignment():
    complete = moved(smooth_family(seed=34, n=15, m=30), scales=(0.5, 2.0))
    holes = complete.copy()
    holes[2, 4:8] = holes[9, 1] = np.nan
    expected = ShapePCA(2).fit(complete)
    actual = ShapePCA(2).fit(holes)
    np.testing.assert_allclose(actual.scores_, expected.scores_, atol=0.01)


@pytest.mark.parametrize("space", ["superimposed", "back_projected"])
def test_new_specimens_with_gaps_are_scored_near_where_they_belong(space):
    points = smooth_family(seed=35, n=16, m=30)
    pca = ShapePCA(2, space=space).fit(fitted(points[:14]))
    holes = points[14:].copy()
    holes[:, :3] = np.nan
    spread = np.sqrt(pca.explained_variance_)
    np.testing.assert_allclose(
        pca.transform(holes) / spread, pca.transform(points[14:]) / spread, atol=0.5
    )


@pytest.mark.parametrize("space", ["superimposed", "back_projected", "aligned"])
def test_an_alignment_is_scored_in_its_own_space(space, shapes):
    a = fitted(shapes)
    pca = ShapePCA(3, space=space).fit(a)
    assert pca.space_ == space
    np.testing.assert_allclose(pca.transform(a), pca.scores_, atol=1e-9)
    np.testing.assert_allclose(pca.transform(shapes), pca.scores_, atol=1e-9)


@pytest.mark.parametrize("space", ["superimposed", "back_projected"])
def test_shapes_of_the_fit_with_gaps_are_scored_as_they_were(space):
    holes = smooth_family(seed=36, n=10, m=20, missing=0.3)
    pca = ShapePCA(2, space=space).fit(fitted(holes, Affine()))
    np.testing.assert_allclose(pca.transform(holes[[4, 1]]), pca.scores_[[4, 1]], atol=1e-15)
    plain = ShapePCA(3).fit(holes)
    np.testing.assert_allclose(plain.transform(holes), plain.scores_, atol=1e-15)


def test_components_of_aligned_shapes_say_that_they_are_of_the_residuals(shapes):
    a = fitted(shapes)
    assert ShapePCA(2, space="aligned").fit(a).get_feature_names_out()[0] == "residual PC1"
    assert ShapePCA(2).fit(a).get_feature_names_out().tolist() == ["PC1", "PC2"]
    for output, word in (("aligned", "residual PC1"), ("back_projected", "PC1")):
        pipe = make_pipeline(DefGPA(Affine(), output=output), ShapePCA(2)).fit(shapes)
        assert pipe.get_feature_names_out()[0] == word


def test_manners_of_scikit_learn(shapes):
    pca = ShapePCA(3, space="back_projected")
    expected = {
        "n_components": 3,
        "space": "back_projected",
        "n_imputations": 0,
        "superimpose": True,
    }
    assert clone(pca).get_params() == expected
    np.testing.assert_array_equal(
        ShapePCA(3).fit_transform(shapes), ShapePCA(3).fit(shapes).transform(shapes)
    )
    for ask in (
        lambda: pca.transform(shapes),
        lambda: pca.shape_at({1: 1.0}),
        lambda: pca.without([1]),
    ):
        with pytest.raises(NotFittedError, match="fit"):
            ask()


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (lambda s: ShapePCA(10).fit(s), r"'n_components'.*1 to 9.*Got 10"),
        (lambda s: ShapePCA(0).fit(s), r"'n_components'.*Got 0"),
        (lambda s: ShapePCA(space="tangent").fit(s), r"'space'.*'back_projected'.*'tangent'"),
        (lambda s: ShapePCA().fit(s).shape_at({0: 1.0}), r"counted from 1 to 9.*'0'"),
        (lambda s: ShapePCA().fit(s).without([1, 11]), r"counted from 1 to 9.*'11'"),
        (lambda s: ShapePCA().fit(s).inverse_transform(np.zeros((2, 4))), r"\(n, 9\).*\(2, 4\)"),
        (lambda s: ShapePCA().fit(s).transform(s[:, :5]), r"20 landmarks.*\(5, 2\)"),
        (lambda s: ShapePCA().fit(s[:1]), "at least 2 shapes"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(do, words, shapes):
    with pytest.raises((ValueError, ShapeError), match=words):
        do(shapes)


def test_smoothing_and_components_are_searched_together(plethodon):
    points, data = plethodon
    pipe = make_pipeline(
        DefGPA(ThinPlateSpline(3), output="back_projected"),
        ShapePCA(4),
        LinearDiscriminantAnalysis(),
    )
    grid = {"defgpa__warp__smoothing": [1e-4, 1e-1], "shapepca__n_components": [2, 4]}
    actual = GridSearchCV(pipe, grid, cv=StratifiedKFold(2)).fit(points, data["species"])
    assert actual.best_score_ > 0.7
    assert len(set(actual.cv_results_["mean_test_score"])) > 1
    chosen = actual.best_estimator_.named_steps
    assert chosen["defgpa"].warp.smoothing == actual.best_params_["defgpa__warp__smoothing"]
    assert chosen["shapepca"].n_components == actual.best_params_["shapepca__n_components"]
