"""Smoothing and rigidity chosen together: folds, surface, picture, comparison, command line."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

import defgpa
from defgpa import Affine, DefGPA, ElasticGPA, Shapes, ThinPlateSpline
from defgpa.model_selection import DialSurface
from defgpa.model_selection.comparison import default_methods
from defgpa.model_selection.cross_validation import (
    collect_predictions,
    consecutive_folds,
    refit_fold,
)
from defgpa.model_selection.smoothing_path import choose_position
from defgpa.plot import dial_surface
from support import EXACT, assert_same_shape, smooth_family, warned_of

GRID, RIGIDITIES = [1e-4, 1e-2], [0.1, 1.0, np.inf]


@pytest.fixture(scope="module")
def points():
    return smooth_family(seed=2, n=5, m=16, bend=0.4, noise=0.03, missing=0.08)


@pytest.fixture(scope="module")
def surface(points):
    model = ElasticGPA(ThinPlateSpline(3))
    with warned_of("at the largest smoothing tried, 0.01"):
        return defgpa.select_smoothing(model, points, GRID, fold_size=2, rigidities=RIGIDITIES)


@pytest.mark.parametrize("scaling", [True, False])
@pytest.mark.parametrize("d", [2, 3])
def test_folds_are_refits_where_the_anchor_makes_no_difference(scaling, d):
    """Without rigidity there is no anchor; with all of it, affine warps have one anchor."""
    shapes = Shapes(smooth_family(seed=d, n=5, m=15, d=d, bend=0.4, missing=0.08))
    folds = consecutive_folds(15, 2)
    for rigidity in (0.0, np.inf):
        model = ElasticGPA(Affine(), rigidity, scaling)
        cv = defgpa.cross_validate(model, shapes, fold_size=2)
        alone = [refit_fold(model, cv.alignment, fold) for fold in folds]
        assert all(outcome.error is None for outcome in alone)
        refitted = collect_predictions(cv.alignment, alone, folds, len(folds[0]))
        assert_same_shape(cv.predicted, refitted.predicted, rtol=1e-7)


def test_folds_of_a_mirrored_specimen_keep_it_on_its_side():
    points = smooth_family(seed=4, d=3, n=6, m=20)
    points[2, :, 1] *= -1.0
    shapes = Shapes(points)
    model = ElasticGPA(Affine(), np.inf)
    with warned_of("mirrored"):
        cv = defgpa.cross_validate(model, shapes, fold_size=5)
    folds = consecutive_folds(20, 5)
    alone = [refit_fold(model, cv.alignment, fold) for fold in folds]
    refitted = collect_predictions(cv.alignment, alone, folds, len(folds[0]))
    assert_same_shape(cv.predicted, refitted.predicted, rtol=1e-7)


def test_similar_images_are_predicted_exactly():
    base = np.random.default_rng(0).normal(size=(14, 2)) * [2, 1]
    shapes = np.stack([base, 2 * base + 1, base[:, ::-1] * [1, -1]])
    for mu in (0.01, 1.0, np.inf):
        assert defgpa.cross_validate(ElasticGPA(rigidity=mu), shapes).error < 1e-7


def test_the_surface_holds_the_error_of_every_position(surface, points):
    assert surface.surface.shape == (2, 3)
    for i, smoothing in enumerate(GRID):
        for j, rigidity in enumerate(RIGIDITIES):
            model = ElasticGPA(ThinPlateSpline(3, smoothing=smoothing), rigidity)
            cv = defgpa.cross_validate(model, points, fold_size=2)
            np.testing.assert_allclose(surface.surface[i, j], cv.error, rtol=1e-6)
            np.testing.assert_allclose(surface.surface_error[i, j], cv.standard_error, rtol=1e-4)


def test_the_best_position_is_ready_to_be_fitted(surface, points):
    row, column = np.unravel_index(surface.surface.argmin(), (2, 3))
    assert surface.surface_sound[row, column]
    assert not surface.alignment.foldovers.any()
    assert (surface.best_value, surface.best_rigidity) == (GRID[row], RIGIDITIES[column])
    assert surface.best.warp == ThinPlateSpline(3, smoothing=GRID[row])
    assert surface.best.rigidity == RIGIDITIES[column]
    again = surface.best.fit(points).alignment_
    np.testing.assert_array_equal(again.reference, surface.alignment.reference)
    np.testing.assert_allclose(surface.cross_validation.error, surface.surface.min(), **EXACT)
    np.testing.assert_array_equal(surface.cve, surface.surface[:, column])


def test_the_default_grid_is_refined_beside_the_best():
    points = smooth_family(seed=2, n=4, m=10, bend=0.4, noise=0.03)
    ticks = []
    model = ElasticGPA(ThinPlateSpline(2))
    with warned_of("at the largest smoothing tried, 3.16"):
        actual = defgpa.select_smoothing(
            model, points, fold_size=5, progress=lambda *own: ticks.append(own)
        )
    assert actual.surface.shape == (12, 7)
    assert (np.diff(actual.values) > 0).all()
    n_tried = np.isfinite(actual.surface).sum()
    assert ticks[-1][0] == ticks[-1][1] == n_tried * 3
    assert n_tried < 45
    np.testing.assert_allclose(actual.values[-5:], 10.0 ** np.array([-0.5, -0.25, 0, 0.25, 0.5]))
    np.testing.assert_array_equal(actual.rigidities, [0, 1e-3, 1e-2, 0.1, 1, 10, np.inf])
    # no worse than either end of the dial
    with warned_of("at the largest smoothing tried"):
        free = defgpa.select_smoothing(DefGPA(model.warp), points, actual.values, fold_size=5)
    rigid = defgpa.cross_validate(defgpa.EuclideanGPA(scaling=True), points, fold_size=5)
    assert actual.surface[actual.position] < 1.01 * min(free.cve.min(), rigid.error)
    # what was searched is what all positions would have given
    with warned_of("at the largest smoothing tried, 3.16"):
        filled = defgpa.select_smoothing(
            model, points, actual.values, 5, rigidities=actual.rigidities
        )
    assert np.isfinite(filled.surface).all()
    assert filled.position == actual.position


def test_findings_are_those_of_the_chosen_position():
    points = smooth_family(seed=3, n=8, m=16, noise=0.02)
    points[2, [3, 9]] = points[2, [9, 3]]  # two landmarks exchanged
    with warned_of("exchanged"):
        actual = defgpa.select_smoothing(
            ElasticGPA(ThinPlateSpline(2)), points, [1e-2], fold_size=8, rigidities=[1.0]
        )
    findings = actual.best.align(points).findings
    assert findings
    assert actual.alignment.findings == findings


def test_a_position_that_folds_is_passed_over_for_one_as_good():
    cve = np.array([[1.0, 1.04], [1.2, 1.03]])
    sound = np.array([[False, True], [True, True]])
    assert choose_position(cve, sound) == (1, 1)
    assert choose_position(cve, np.ones((2, 2), dtype=bool)) == (0, 0)
    assert choose_position(cve, np.zeros((2, 2), dtype=bool)) == (0, 0)
    assert choose_position(cve, None) == (0, 0)


@pytest.mark.parametrize("rigidities", [[], [-0.1, 1.0], [np.nan], [-1.0]])
def test_rigidities_that_are_none_are_refused(rigidities, points):
    with pytest.raises(ValueError, match="'rigidities' parameter of select_smoothing"):
        defgpa.select_smoothing(ElasticGPA(), points, rigidities=rigidities)


def test_a_warp_without_smoothing_has_none_to_choose(points):
    with pytest.raises(TypeError, match="must have a warp with a 'smoothing'"):
        defgpa.select_smoothing(ElasticGPA(Affine()), points)


def test_beyond_the_dense_size_folds_are_fitted_one_by_one(points, surface):
    from defgpa.tuning import Tuning

    model = ElasticGPA(ThinPlateSpline(3), tuning=Tuning(dense_landmarks=8))
    ticks = []
    actual = defgpa.select_smoothing(
        model, points, [1e-2], 8, rigidities=[1.0], progress=lambda *own: ticks.append(own)
    )
    assert ticks[-1] == (3, 3)  # one fit and two folds
    dense = defgpa.cross_validate(
        ElasticGPA(ThinPlateSpline(3, smoothing=1e-2), 1.0), points, fold_size=8, refit=True
    )
    np.testing.assert_allclose(actual.surface[0, 0], dense.error, rtol=1e-6)


def test_the_picture_shows_every_error_and_frames_the_chosen(surface):
    ax = Figure().subplots()
    drawn = dial_surface(surface, ax)
    assert drawn.cells.get_array().shape == (2, 3)
    texts = [text.get_text() for text in drawn.figures]
    assert f"{surface.surface.min():.3g}" in texts
    row, column = surface.position
    assert drawn.chosen.get_xy() == (column - 0.5, row - 0.5)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.1", "1", "inf"]


def test_the_comparison_has_a_row_for_the_elastic_family(points):
    assert isinstance(default_methods()["ELA(5)"], ElasticGPA)
    table = defgpa.compare(points, [ElasticGPA(), ElasticGPA(Affine()), DefGPA(ThinPlateSpline(5))])
    assert [row.name for row in table] == ["ELA(5)", "ELA(affine)", "TPS_r(5)"]
    assert all(np.isfinite(row.cve) for row in table)


def test_a_surface_says_what_it_is():
    cve = np.array([[3.0, 2.5], [2.0, 2.2]])
    surface = DialSurface(
        np.array([1e-3, 1e-2]),
        cve[:, 0],
        (),
        best=None,
        rigidities=np.array([1.0, np.inf]),
        surface=cve,
    )
    assert repr(surface) == "DialSurface(best_value=0.01, best_rigidity=1, cve=2, 2 × 2)"


def test_the_report_has_the_surface_and_the_lines_that_fit_it_again(surface, points, tmp_path):
    defgpa.report.write_report(surface.alignment, tmp_path / "a.html", smoothing=surface)
    page = (tmp_path / "a.html").read_text()
    assert 'id="dial"' in page
    assert f"<b>{surface.surface.min():.4g}</b>" in page
    assert f"drawn to a pose of the shape with rigidity {surface.best_rigidity:.3g}" in page
    from defgpa.report._tables import write_code

    lines = write_code(surface.alignment, None).replace("import defgpa\n", "")
    namespace = {"defgpa": defgpa, "shapes": points}
    exec(lines, namespace)
    np.testing.assert_array_equal(namespace["model"].reference_, surface.alignment.reference)


class TestCommandLine:
    @pytest.fixture
    def fit(self, run, tmp_path, points):
        """Return a function that fits the points with some options: the summary."""
        np.save(tmp_path / "shapes.npy", points)

        def call(*words):
            run.succeed("fit", tmp_path / "shapes.npy", "-o", tmp_path / "out", *words)
            return json.loads((tmp_path / "out" / "summary.json").read_text())

        return call

    def test_fit_takes_a_rigidity(self, fit, points):
        summary = fit("--rigidity", 0.5, "--smoothing", 1e-3, "--points-per-axis", 3, "-q")
        assert summary["parameters"]["rigidity"] == 0.5
        expected = ElasticGPA(ThinPlateSpline(3), 0.5).fit(points).alignment_
        np.testing.assert_allclose(
            summary["figures"]["rmse_reference"], expected.rmse_reference, **EXACT
        )

    def test_fit_chooses_a_rigidity(self, fit):
        more = ("--points-per-axis", "2", "--fold-size", "8", "--report")
        summary = fit("--rigidity", "auto", *more)
        path = summary["smoothing_path"]
        assert np.shape(path["surface"]) == (len(path["smoothing"]), len(path["rigidity"]))
        assert path["rigidity"][-1] == "inf"
        assert summary["figures"]["chosen_rigidity"] in path["rigidity"]
        assert summary["parameters"]["rigidity"] == summary["figures"]["chosen_rigidity"]

    def test_a_stated_smoothing_or_rigidity_is_kept(self, fit):
        few = ("--points-per-axis", "2", "--fold-size", "8", "-q")
        summary = fit("--rigidity", "auto", "--smoothing", "0.01", *few)
        assert summary["smoothing_path"]["smoothing"] == [0.01]
        assert len(summary["smoothing_path"]["rigidity"]) == 7
        assert summary["figures"]["chosen_smoothing"] is None
        assert summary["figures"]["chosen_rigidity"] is not None
        summary = fit("--rigidity", "inf", "--smoothing", "auto", *few)
        assert summary["smoothing_path"]["rigidity"] == ["inf"]
        assert len(summary["smoothing_path"]["smoothing"]) > 3
        assert summary["figures"]["chosen_smoothing"] is not None
        assert summary["figures"]["chosen_rigidity"] is None


def test_folds_without_rigidity_tell_what_folds_of_the_deformable_method_tell():
    points = smooth_family(n=5, m=12, noise=0.05)
    messages = []
    for model in (
        DefGPA(ThinPlateSpline(3, smoothing=0)),
        ElasticGPA(ThinPlateSpline(3, smoothing=0), 0),
    ):
        with pytest.raises(defgpa.DefgpaError, match="predicts nothing of them") as caught:
            defgpa.cross_validate(model, points, fold_size=4)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
