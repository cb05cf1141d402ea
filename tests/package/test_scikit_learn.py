"""The estimators work in scikit-learn's pipelines and searches, and show themselves well."""

import copy
import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

import defgpa
from defgpa import (
    Affine,
    AffineGPA,
    DefGPA,
    ElasticGPA,
    EuclideanGPA,
    ShapePCA,
    Shapes,
    ThinPlateSpline,
)
from defgpa.formatting import render_table
from support import smooth_family

ESTIMATORS = [DefGPA(), ElasticGPA(), EuclideanGPA(), AffineGPA()]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)

# What scikit-learn runs for estimators that say (in their tags) that they take three-dimensional
# input, and its other checks that bring no data. The remaining ones pass 2-D arrays to fit.
CHECKS = [
    "check_no_attributes_set_in_init", "check_parameters_default_constructible",
    "check_estimator_repr", "check_get_params_invariance", "check_set_params",
    "check_mixin_order", "check_valid_tag_types", "check_estimator_tags_renamed",
    "check_estimator_cloneable",
]  # fmt: skip


@every_estimator
@pytest.mark.parametrize("check", CHECKS)
def test_checks_of_scikit_learn_pass(estimator, check):
    run = getattr(estimator_checks, check, None)
    if run is None:
        pytest.skip(f"this scikit-learn has no {check}")
    run(type(estimator).__name__, clone(estimator))


@every_estimator
@pytest.mark.filterwarnings("ignore:Can't test estimator")
def test_check_estimator_passes_for_three_dimensional_input(estimator):
    estimator_checks.check_estimator(estimator)


@pytest.fixture(scope="module")
def labelled():
    points = smooth_family(seed=3, n=12, m=20)
    groups = np.arange(12) % 2
    points[groups == 1, :5] *= 1.3
    return points, groups


def flat(**parameters):
    return DefGPA(output="superimposed", **parameters).set_output(transform="flat")


@every_estimator
def test_containers_hold_the_same_numbers_under_the_promised_names(estimator, labelled):
    shapes = Shapes(labelled[0], names=[f"specimen {i}" for i in range(12)])
    model = clone(estimator).fit(shapes)
    points = model.transform(shapes)
    assert points.shape == (12, 20, 2)
    columns = model.set_output(transform="flat").transform(shapes)
    np.testing.assert_array_equal(columns, points.reshape(12, 40))
    table = model.set_output(transform="pandas").fit_transform(shapes)
    assert list(table.columns) == list(model.get_feature_names_out())
    assert list(table.index) == list(shapes.names)
    np.testing.assert_array_equal(table.to_numpy(), columns)
    back_projected = model.transform(shapes, "back_projected")
    assert back_projected.columns[0] == "back_projected: 1_x"
    model.set_output(transform=None)
    assert list(model.transform(shapes).columns) == list(table.columns)
    model.set_output(transform="default")
    np.testing.assert_array_equal(model.transform(shapes), points)


def test_global_configuration_is_respected(labelled):
    model = DefGPA().fit(labelled[0])
    with config_context(transform_output="pandas"):
        assert model.transform(labelled[0]).shape == (12, 40)
    with config_context(transform_output="polars"), pytest.raises(ValueError, match="polars"):
        model.transform(labelled[0])


def test_score_does_not_depend_on_the_container(labelled):
    model = DefGPA().fit(labelled[0])
    expected = model.score(labelled[0])
    assert model.set_output(transform="flat").score(labelled[0]) == expected


@pytest.mark.parametrize("copied", [clone, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_keep_the_container(copied, labelled):
    assert copied(flat()).fit_transform(labelled[0]).shape == (12, 40)


def test_grid_search_over_warps_and_their_parameters(labelled):
    points, groups = labelled
    model = make_pipeline(flat(warp=ThinPlateSpline()), PCA(3), LinearDiscriminantAnalysis())
    grid = {"defgpa__warp__smoothing": [1e-3, 1e-1]}
    assert GridSearchCV(model, grid, cv=2).fit(points, groups).best_score_ > 0.5
    grid = {"defgpa__warp": [Affine(), ThinPlateSpline()]}
    assert GridSearchCV(model, grid, cv=2).fit(Shapes(points), groups).best_score_ > 0.5


def test_a_container_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"'default', 'flat' or 'pandas'. Got 'wide'"):
        DefGPA().set_output(transform="wide")


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, points: model.alignment_,
        lambda model, points: model.reference_,
        lambda model, points: model.warps_,
        lambda model, points: model.transform(points),
        lambda model, points: model.score(points),
    ],
)
def test_results_before_a_fit_are_refused(ask, labelled):
    with pytest.raises(NotFittedError, match="This DefGPA has not been fitted yet: call fit"):
        ask(DefGPA(), labelled[0])
    with pytest.raises(AttributeError, match="no attribute 'mean_'"):
        _ = DefGPA().mean_


def test_unknown_parameters_are_refused_with_their_place():
    with pytest.raises(TypeError, match=r"Write DefGPA\(ThinPlateSpline\(smoothing=...\)\)"):
        DefGPA(smoothing=1e-3)
    with pytest.raises(
        TypeError, match=r"Its parameters are: scaling, reflections, robust, output"
    ):
        EuclideanGPA(smoothing=1e-3)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'wrap'"):
        DefGPA(wrap=Affine())


def test_estimators_show_whether_they_are_fitted(labelled):
    model = DefGPA(Affine())
    assert repr(model) == "DefGPA(warp=Affine())"
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    model.fit(labelled[0])
    assert repr(model) == "DefGPA(warp=Affine()) fitted to 12 shapes, 20 landmarks, 2-D"
    check_is_fitted(model)
    pca = ShapePCA(2)
    assert repr(pca) == "ShapePCA(n_components=2)"
    pca.fit(model.alignment_)
    fitted = "fitted to 12 shapes, 20 landmarks, 2-D: 2 components"
    assert repr(pca) == f"ShapePCA(n_components=2) {fitted}"


def test_an_alignment_is_shown_in_one_line(labelled):
    alignment = DefGPA(Affine()).fit(labelled[0]).alignment_
    shapes = "Shapes(12 shapes, 20 landmarks, 2-D, none missing)"
    assert repr(alignment) == f"Alignment of {shapes} by Affine()"
    assert len(repr(EuclideanGPA().fit(labelled[0]).alignment_)) < 200
    assert len(repr(alignment.diagnostics)) < 200  # without its arrays


@pytest.mark.filterwarnings("ignore:Estimated landmarks far:defgpa.DefgpaWarning")
def test_notebooks_show_escaped_tables(labelled):
    shapes = Shapes(labelled[0], names=["<script>", *(f"s{i}" for i in range(11))])
    points = np.array(shapes.points)
    points[0, :3] = np.nan
    alignment = DefGPA().align(shapes.with_points(points))
    shown = [shapes, alignment, defgpa.complete(alignment)]
    for value in shown:
        page = value._repr_html_()
        assert page.startswith("<table>")
        assert "<script>" not in page
    assert "&lt;script&gt;" in shown[0]._repr_html_()
    assert "&lt;script&gt;" in shown[2]._repr_html_()
    assert f"{alignment.rmse_datum:.4g}" in shown[1]._repr_html_()
    assert "<th>" in render_table("t", [(1,)], ("<a>",))


def test_notebooks_list_some_of_many_shapes():
    shapes = Shapes(np.random.default_rng(0).normal(size=(50, 5, 2)))
    assert "and 30 more" in shapes._repr_html_()


def test_an_array_of_r_is_refused_with_the_remedy():
    points = np.random.default_rng(0).normal(size=(12, 2, 40))
    with pytest.raises(defgpa.ShapeError, match=r"points.transpose\(2, 0, 1\)"):
        Shapes(points)
