"""The automatic choice of method and smoothing is sound: no folds, no worse than rigid."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from defgpa import DefGPA, DefgpaWarning, EuclideanGPA, ThinPlateSpline, select_smoothing
from defgpa.datasets import load_wings
from defgpa.errors import DefgpaError
from defgpa.model_selection import method_selection, select_method
from defgpa.model_selection.comparison import (
    MethodFigures,
    Verdict,
    _find_cautions,
    _test_difference,
    _Trial,
)
from defgpa.model_selection.method_selection import classify_estimator
from defgpa.model_selection.smoothing import is_sound
from defgpa.model_selection.smoothing_path import choose_index
from defgpa.warps import DEFAULT_SMOOTHING
from support import make_smoothing_path


@pytest.fixture(scope="module")
def wings():
    return load_wings().take(range(8))


@pytest.fixture(scope="module")
def noise():
    rng = np.random.default_rng(0)
    return rng.uniform(-2, 2, size=(20, 2)) + 0.02 * rng.normal(size=(8, 20, 2))


def test_wings_are_aligned_deformably_with_the_smoothing_that_predicts_best(wings):
    selection = select_method(wings, fold_size=11)
    assert selection.method == "deformable"
    assert selection.estimator.warp.smoothing == selection.path.best_value
    assert selection.cross_validation is selection.path.cross_validation
    rigid = EuclideanGPA(scaling=True).fit(wings).alignment_
    assert is_sound(selection.alignment, rigid.rmse_datum)
    assert "below that of rigid alignment" in selection.reason
    fitted = selection.estimator.fit(wings).alignment_
    np.testing.assert_allclose(fitted.reference, selection.alignment.reference, atol=1e-8)


def test_noise_is_aligned_rigidly(noise):
    selection = select_method(noise, fold_size=4)
    assert selection.method == "rigid"
    assert isinstance(selection.estimator, EuclideanGPA)
    assert selection.comparison.verdict.rigid or not selection.comparison.verdict.clear


def test_a_method_that_is_better_at_a_few_landmarks_only_is_said_to_be(noise):
    comparison = select_method(noise, fold_size=4).comparison
    rigid = comparison["EUC_d(scaling)"]
    chosen = SimpleNamespace(name=rigid.name, cross_validation=object())
    verdict = Verdict("AFF_r", rigid.name, False, 0.6, 1.0, better_share=0.3)
    reason = method_selection._compare_with_rigid(
        chosen, replace(comparison, verdict=verdict), rigid
    )
    assert reason == "affine alignment predicts better at a few landmarks only"


def test_method_that_is_not_sound_is_passed_over_and_named(wings, monkeypatch):
    """As if every thin-plate spline folded."""
    monkeypatch.setattr(
        method_selection,
        "is_sound",
        lambda alignment, _: getattr(alignment.warps[0], "basis", None) is None,
    )
    monkeypatch.setattr(
        method_selection, "_list_candidates", lambda comparison, rigid: ["TPS_r(3)", rigid.name]
    )
    selection = select_method(wings, fold_size=22)
    assert selection.method == "rigid"
    assert "Passed over, since warps fold over or are farther" in selection.reason
    assert "3 points per axis" in selection.reason


class TestLargeSets:
    """Compared on a sample, fitted to all."""

    @pytest.fixture(autouse=True)
    def limits(self, monkeypatch):
        monkeypatch.setattr(method_selection, "MAX_COMPARED", 100)
        monkeypatch.setattr(method_selection, "SAMPLE_LANDMARKS", 20)
        monkeypatch.setattr(method_selection, "SAMPLE_COORDINATES", 200)

    def test_methods_are_compared_on_an_even_sample(self, wings):
        sample = method_selection.take_sample(wings)
        assert (sample.n_shapes, sample.n_landmarks) == (5, 20)
        assert sample.landmarks[0] == wings.landmarks[0]
        assert sample.landmarks[-1] == wings.landmarks[-1]
        selection = select_method(wings)
        assert selection.method == "deformable"
        assert "compared on 20 of 43 landmarks and 5 of 8 shapes" in selection.reason
        assert selection.alignment.shapes.n_shapes == 8
        assert selection.alignment.shapes.n_landmarks == 43
        assert selection.cross_validation is None

    def test_smoothing_that_folds_on_all_landmarks_is_raised_with_a_note(self, wings, monkeypatch):
        limit = 1e-2
        monkeypatch.setattr(
            method_selection,
            "is_sound",
            lambda alignment, _: (
                alignment.shapes.n_landmarks < 43 or alignment.registration.model.smoothing > limit
            ),
        )
        selection = select_method(wings)
        assert selection.estimator.warp.smoothing > limit
        assert f"raised to {selection.estimator.warp.smoothing:.2g}" in selection.reason

    def test_default_is_stiffened_where_methods_cannot_be_compared(self, wings, monkeypatch):
        def refuse(*_):
            raise DefgpaError("The sample does not hang together.")

        monkeypatch.setattr(method_selection, "_select_by_comparing", refuse)
        monkeypatch.setattr(
            method_selection,
            "is_sound",
            lambda alignment, _: alignment.registration.model.smoothing is not None,
        )
        selection = select_method(wings)
        assert selection.estimator.warp.smoothing == 10 * DEFAULT_SMOOTHING

    def test_nothing_sound_is_rigid(self, wings, monkeypatch):
        monkeypatch.setattr(
            method_selection, "is_sound", lambda alignment, _: alignment.shapes.n_landmarks < 43
        )
        selection = select_method(wings)
        assert selection.method == "rigid"
        assert "at every smoothing tried" in selection.reason


def test_choice_skips_what_is_not_sound():
    cve, spread = np.array([1.0, 1.2, 1.5, 1.6]), np.full(4, 0.1)
    everywhere = np.ones(4, dtype=bool)
    assert choose_index(cve, spread, everywhere) == 0
    assert choose_index(cve, 3 * spread, everywhere) == 1
    assert choose_index(cve, spread, np.array([False, False, True, True])) == 2
    assert choose_index(cve, spread, ~everywhere) == 0


def test_choice_outside_one_standard_error_says_what_it_costs():
    cve = np.array([1.0, 1.2, 1.5])
    path = make_smoothing_path(
        np.array([1e-3, 1e-2, 1e-1]),
        *(cve, cve, cve),
        standard_error=np.full(3, 0.1),
        foldovers=np.array([4, 0, 0]),
    )
    assert path.best_value == 1e-2
    assert "RMSE_d not above that of rigid alignment" in path.explain_choice()
    assert "costs 20 % in CVE" in path.explain_choice()


def test_smoothing_worse_than_rigid_in_the_space_of_the_shapes_is_not_chosen(noise, monkeypatch):
    from defgpa.model_selection import smoothing

    grid = [1e-3, 1e-2, 1e-1, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DefgpaWarning)  # noise is predicted best by the stiffest
        free = select_smoothing(DefGPA(ThinPlateSpline(4)), noise, grid, fold_size=4)
    limit = float(np.sort(free.rmse_datum)[1])  # as if rigid alignment were as close as that
    assert free.rmse_datum[free.best_index] > limit
    monkeypatch.setattr(smoothing, "measure_rigid", lambda shapes: limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DefgpaWarning)
        path = select_smoothing(DefGPA(ThinPlateSpline(4)), noise, grid, fold_size=4)
    assert path.rmse_datum[path.best_index] <= limit * (1 + 1e-6)
    assert path.alignment.rmse_datum == pytest.approx(path.rmse_datum[path.best_index], rel=0.05)
    assert not path.alignment.foldovers.any()


def test_estimators_are_classified():
    from defgpa import Affine, AffineGPA, ElasticGPA

    assert classify_estimator(EuclideanGPA()) == "rigid"
    assert classify_estimator(AffineGPA()) == "affine"
    assert classify_estimator(DefGPA(Affine())) == "affine"
    assert classify_estimator(ElasticGPA()) == "elastic"
    assert classify_estimator(DefGPA()) == "deformable"


def make_row(name, rmse_datum, cve):
    return MethodFigures(name, rmse_datum, 1.0, cve, 10.0, 0.1, shape_size=10.0)


@pytest.mark.parametrize(
    ("rmse_datum", "cve", "phrases"),
    [
        (0.5, 1.0, []),
        (56.8, 1.0, ["(RMSE_d) is 568 % of the size of the shapes", "do not use it"]),
        (np.nan, 1.0, ["cannot be computed"]),
        (0.5, 52.5, ["No method predicts these landmarks: an error of 525 %"]),
    ],
)
def test_verdict_says_what_the_best_method_does_badly(rmse_datum, cve, phrases):
    cautions = _find_cautions(make_row("AFF_r", rmse_datum, cve), make_row("EUC_d", 2.0, 60.0))
    assert len(cautions) == bool(phrases)
    sentence = Verdict("AFF_r", "EUC_d", False, 0.2, 0.01, cautions=cautions).sentence
    assert all(phrase in sentence for phrase in phrases)


def test_probability_of_dense_landmarks_is_that_of_an_even_hundred():
    """1,500 neighbours that agree are not 1,500 witnesses."""
    rng = np.random.default_rng(0)
    better, worse = np.full(1500, 1.0), 1.05 + 0.2 * rng.normal(size=1500)
    trials = [_Trial(make_row(n, 1, 1), None, e) for n, e in (("a", better), ("b", worse))]
    even_rows = np.linspace(0, 1499, 100).astype(int)
    thinned = [_Trial(t.row, None, t.per_landmark[even_rows]) for t in trials]
    probability, share = _test_difference(*trials)
    assert (probability, share) == _test_difference(*thinned)
    assert 0.2 < probability < 0.3  # 3e-19 if all of them counted
    np.testing.assert_allclose(100 * share, round(100 * share), rtol=1e-12)  # of a hundred
    verdict = Verdict("a", "b", False, 0.05, 5e-254)
    assert "p < 0.001" in verdict.sentence
