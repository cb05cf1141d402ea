"""Methods side by side, by the same figures."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import wilcoxon

import defgpa
from defgpa import (
    Affine,
    AffineGPA,
    DefGPA,
    DefgpaError,
    DefgpaWarning,
    ElasticGPA,
    EuclideanGPA,
    FreeForm,
    ThinPlateSpline,
)
from defgpa.model_selection import Comparison, MethodFigures, Verdict, compare, cross_validate
from defgpa.model_selection.comparison import published_methods
from support import EXACT, moved, shared_points, smooth_family


class Refusing(DefGPA):
    """Always fails."""

    def fit(self, shapes, y=None):
        raise DefgpaError("There is | nothing\nto align & 50 % is_wrong.")


@pytest.fixture(scope="module")
def table():
    """One method that works and one that does not."""
    return compare(
        smooth_family(m=30), {"stiff_one": DefGPA(Affine()), "<none>": Refusing()}, fold_size=5
    )


def test_the_default_is_the_table_of_the_paper_with_similarities_and_the_elastic_family():
    points = smooth_family(m=30)
    table = compare(points, fold_size=6)
    assert [row.name for row in table] == [
        "EUC_d", "EUC_d(scaling)", "AFF_d", "AFF_r", "TPS_r(3)", "TPS_r(5)", "TPS_r(7)", "ELA(5)",
    ]  # fmt: skip
    for name, estimator in (
        ("EUC_d", EuclideanGPA()),
        ("EUC_d(scaling)", EuclideanGPA(scaling=True)),
        ("AFF_d", AffineGPA()),
        ("AFF_r", DefGPA(Affine())),
        ("TPS_r(7)", DefGPA(ThinPlateSpline(7))),
        ("ELA(5)", ElasticGPA()),
    ):
        cv = cross_validate(estimator, points, 6)
        row = table[name]
        np.testing.assert_allclose(row.cve, cv.error, **EXACT)
        np.testing.assert_allclose(row.rmse_reference, cv.alignment.rmse_reference, **EXACT)
        np.testing.assert_allclose(row.rmse_datum, cv.alignment.rmse_datum, **EXACT)
        assert row.seconds > 0
        assert not row.failure
    assert table["TPS_r(5)"].cve < table["AFF_r"].cve < table["EUC_d"].cve


def test_face_has_the_published_row():
    """Its RMSE_r and CVE are those of the formulas: 1.020 times less than printed."""
    table = compare(shared_points("face2d"), published_methods(theta=10), refit=True)
    figures = [(row.rmse_datum, row.rmse_reference, row.cve) for row in table]
    expected = [
        (6.842, 6.842, 7.008),
        (6.517, 6.644, 7.074),
        (6.727, 6.541, 6.911),
        (4.355, 4.645, 5.167),
        (3.602, 3.885, 4.525),
        (3.354, 3.649, 4.330),
    ]
    np.testing.assert_allclose(figures, expected, rtol=0, atol=5.1e-4)


def test_a_list_is_named_after_what_it_holds():
    points = smooth_family(m=30)
    estimators = [
        DefGPA(Affine()), DefGPA(), DefGPA(ThinPlateSpline(smoothing=1e-2)),
        DefGPA(ThinPlateSpline((4, 3))), DefGPA(FreeForm()), EuclideanGPA(), AffineGPA(),
    ]  # fmt: skip
    names = [row.name for row in compare(points, estimators, fold_size=10)]
    assert names == [
        "AFF_r", "TPS_r(5)", "TPS_r(5) #2", "TPS_r((4, 3))", "DefGPA(FreeForm)", "EUC_d", "AFF_d",
    ]  # fmt: skip


def test_a_method_that_fails_tells_why_and_stops_no_other(table):
    good, bad = table.rows
    assert np.isfinite([good.cve, good.rmse_datum, good.rmse_reference]).all()
    assert np.isnan([bad.cve, bad.rmse_datum, bad.rmse_reference, bad.seconds]).all()
    assert "nothing" in bad.failure
    assert len(table) == 2


def test_a_failed_fold_leaves_the_other_figures():
    points = smooth_family(m=30)
    points[1, 3:] = np.nan
    (row,) = compare(points, [DefGPA(Affine())])
    assert np.isfinite([row.rmse_datum, row.rmse_reference]).all()
    assert np.isnan(row.cve)
    assert "3 of 30 folds cannot be fitted" in row.failure


def test_what_all_methods_find_is_said_once():
    points = smooth_family(m=30)
    points[2] *= [-1, 1]
    methods = {"mine": DefGPA(Affine()), "yours": DefGPA()}
    with pytest.warns(DefgpaWarning, match="'shape_3'") as record:
        table = compare(points, methods, fold_size=10)
    assert len(record) == len(table.findings) == 1


def test_warnings_say_which_method_they_are_about():
    points = smooth_family(m=30)
    points[1:, 7] = np.nan  # seen once, which all are told of
    soft = DefGPA(ThinPlateSpline(6, theta=0.0))
    with pytest.warns(DefgpaWarning) as record:
        compare(points, {"mine": soft, "yours": DefGPA(Affine())}, fold_size=10)
    about = [str(first.message) for first in record if "one shape only" not in str(first.message)]
    assert about
    assert all(message.startswith("mine: ") for message in about)


def test_columns_of_the_printed_table_are_aligned(table):
    head, rule, *rows, note, legend = str(table).splitlines()
    assert " ".join(head.split()) == ("method RMSE_d RMSE_r CVE RMSE_d % RMSE_r % CVE % time [s]")
    assert {len(line) for line in (head, rule, *rows)} == {len(head)}
    assert rows[0].startswith("▸1 stiff_one ")
    assert rows[1].split() == ["<none>", *["–"] * 7]
    assert note == "<none>: There is | nothing to align & 50 % is_wrong."
    assert legend.startswith("CVE: 5 landmarks left out at a time. In %: of the size of")


def test_figures_have_four_digits():
    row = MethodFigures("x", 12.3, 0.001234567, 98765.4, 2e5, 0.12345, shape_size=100.0)
    relative = ("12.30", "6.173e-07", "49.38")
    assert row.cells == ("x", "12.30", "0.001235", "9.877e+04", *relative, "0.12")
    assert MethodFigures("x", 1234.4, 1.0, 1.0, 2.0, 31.0).cells[1::6] == ("1234", "31")


def test_relative_errors_are_shares_of_the_size_of_the_reference():
    """A reference 500 times smaller has errors 500 times smaller, and predicts no better."""
    points = smooth_family(m=30, missing=0.1)
    plain, small = (compare(s * points, [EuclideanGPA()], 5).rows[0] for s in (1.0, 0.002))
    np.testing.assert_allclose(small.cve, 0.002 * plain.cve, rtol=1e-9)
    for name in ("relative_cve", "relative_rmse_reference", "relative_rmse_datum"):
        np.testing.assert_allclose(getattr(small, name), getattr(plain, name), rtol=1e-9)
    reference = EuclideanGPA().fit(points).reference_
    spread = np.sqrt(np.sum((reference - reference.mean(axis=0)) ** 2) / len(reference))
    np.testing.assert_allclose(plain.size, spread, **EXACT)
    np.testing.assert_allclose(plain.relative_rmse_reference, plain.rmse_reference / spread)
    shifted = [shape[~np.isnan(shape[:, 0])] for shape in points]
    shifted = np.vstack([shape - shape.mean(axis=0) for shape in shifted])
    np.testing.assert_allclose(plain.shape_size, np.sqrt(np.mean(np.sum(shifted**2, axis=1))))
    np.testing.assert_allclose(plain.relative_rmse_datum, plain.rmse_datum / plain.shape_size)


def test_a_small_reference_does_not_win_by_being_small():
    """The first of these shapes is 500 times smaller, and affine GPA sits in its frame."""
    points = smooth_family(m=30)
    points[0] *= 0.002
    table = compare(points, fold_size=6)
    assert min(table, key=lambda row: row.cve).name == "AFF_d"
    assert table.best.name != "AFF_d"
    pointed = [line for line in str(table).splitlines() if line.startswith("▸")]
    assert [line.split()[1] for line in pointed] == [table.best.name]


def test_the_ranks_are_those_of_the_relative_error(judged):
    relative = [judged[name].relative_cve for name in judged.ranking]
    assert relative == sorted(relative)
    assert len(relative) == len(judged)
    ranks = {line.split()[1]: line.split()[0] for line in str(judged).splitlines()[2:10]}
    assert ranks == {
        name: f"▸{place}" if place == 1 else str(place)
        for place, name in enumerate(judged.ranking, start=1)
    }


@pytest.fixture(scope="module")
def judged():
    """All methods on shapes that bend."""
    return compare(smooth_family(m=30), fold_size=5)


class TestVerdict:
    def test_the_best_method_is_compared_with_the_better_rigid_one(self, judged):
        verdict = judged.verdict
        assert verdict.best == judged.best.name == judged.ranking[0]
        assert judged.best.relative_cve == min(row.relative_cve for row in judged)
        rigid = [judged[name] for name in ("EUC_d", "EUC_d(scaling)")]
        assert judged[verdict.against] is min(rigid, key=lambda row: row.relative_cve)
        gain = 1 - judged.best.relative_cve / judged[verdict.against].relative_cve
        np.testing.assert_allclose(verdict.gain, gain, **EXACT)
        assert not verdict.rigid

    def test_the_probability_of_a_verdict_is_paired_over_landmarks(self):
        points = smooth_family(m=30)
        methods = {"bends": DefGPA(), "rigid": EuclideanGPA(scaling=True)}
        verdict = compare(points, methods, fold_size=5).verdict
        errors = [
            cv.per_landmark / np.sqrt(np.mean(np.sum(cv.reference**2, axis=1)))
            for cv in (cross_validate(method, points, 5) for method in methods.values())
        ]
        np.testing.assert_allclose(verdict.probability, wilcoxon(*errors).pvalue, rtol=1e-9)
        assert verdict.clear

    def test_the_table_ends_with_what_to_run_next(self, judged):
        last = str(judged).splitlines()[-1]
        assert last == judged.verdict.sentence
        assert "paired over landmarks" in last
        assert last.endswith(".best.fit(shapes)")
        assert judged.verdict.sentence in judged.to_markdown()

    def test_a_comparison_is_shown_in_one_line(self, judged):
        best = judged.ranking[0]
        assert repr(judged) == f"Comparison({len(judged)} methods, {best} predicts best)"

    def test_the_next_step_of_a_verdict_runs(self, judged):
        shapes = smooth_family(m=30)
        names = vars(defgpa) | {"defgpa": defgpa, "shapes": shapes}
        assert eval(judged.verdict.next_step, names).reference_.shape == (30, 2)

    def test_rigid_shapes_need_not_be_deformed(self, rng):
        points = moved(rng.normal(size=(30, 2)) + 0.02 * rng.normal(size=(5, 30, 2)))
        verdict = compare(points, fold_size=5).verdict
        assert verdict.rigid
        assert verdict.best.startswith("EUC_d")
        assert not verdict.against.startswith("EUC_d")
        assert "need not be deformed" in verdict.sentence
        assert verdict.next_step.startswith("EuclideanGPA(")

    @pytest.mark.parametrize(
        ("rigid", "gain", "probability", "sentence"),
        [
            (False, 0.234, 0.001, "with an error 23 % below that of b: more than chance (p = 0.00"),
            (False, 0.0038, 0.4, "only 0.38 % below that of b, which may be chance (p = 0.4"),
            (False, 0.05, np.nan, "with too few landmarks to tell that from chance"),
            (True, 0.2, 0.01, "b, has an error 25 % above: more than chance (p = 0.01"),
            (True, 0.2, 0.6, "b, has an error 25 % above, which may be chance (p = 0.6"),
        ],
    )
    def test_a_verdict_says_how_much_better_and_whether_by_chance(
        self, rigid, gain, probability, sentence
    ):
        verdict = Verdict("a", "b", rigid, gain, probability, "go on")
        assert sentence in verdict.sentence
        assert verdict.sentence == f"{verdict.conclusion} Next: go on"
        assert verdict.conclusion.startswith("a predicts best")

    @pytest.mark.parametrize(
        ("rigid", "margin"),
        [(True, "b, has an error 207 % above"), (False, "with an error 67 % below that of b")],
    )
    def test_a_large_difference_at_a_few_landmarks_is_not_called_chance(self, rigid, margin):
        verdict = Verdict("a", "b", rigid, 1.0 - 1.0 / 3.07, 1.0, better_share=0.4)
        assert verdict.conclusion.endswith(
            f"{margin}, but a few landmarks decide that: b predicts 60 % of the landmarks better "
            "(p = 1, paired over landmarks)."
        )
        assert not replace(verdict, probability=np.nan).few_decide
        assert not replace(verdict, probability=0.01).few_decide

    def test_the_share_of_landmarks_predicted_better_is_counted(self, judged):
        assert 0.5 < judged.verdict.better_share <= 1.0

    def test_a_few_landmarks_cannot_tell(self):
        table = compare(smooth_family(m=5), [DefGPA(Affine()), EuclideanGPA()])
        assert np.isnan(table.verdict.probability)
        assert not table.verdict.clear

    def test_there_is_no_verdict_without_a_rigid_method(self, table):
        assert table.verdict is None

    def test_a_rigid_method_alone_is_held_against_nothing(self):
        verdict = compare(smooth_family(m=30), [EuclideanGPA()], 10).verdict
        assert verdict.conclusion == "EUC_d predicts best."


def test_the_reason_is_given_where_no_method_can_align():
    with pytest.raises(DefgpaError, match=r"No method can align these shapes\. .*at least 3"):
        compare(smooth_family(m=30)[:, :2], fold_size=1)


def test_why_folds_fail_is_told_once_for_all_folds_and_methods():
    table = compare(smooth_family(m=30)[:, :3], [EuclideanGPA(), DefGPA(Affine())])
    (why,) = [line for line in str(table).splitlines() if "cannot be fitted" in line]
    assert why.startswith("EUC_d, AFF_r: 3 of 3 folds")
    assert "Without landmark '1' or '2' or '3': Shape 'shape_1' has 2 visible landmarks" in why
    assert why.count("shape_1") == 1


def test_markdown(table):
    lines = table.to_markdown().splitlines()
    assert lines[0] == "| method | RMSE_d | RMSE_r | CVE | RMSE_d % | RMSE_r % | CVE % | time [s] |"
    assert lines[1] == "| --- |" + " ---: |" * 7
    assert lines[2].startswith("| **stiff_one** | ")
    assert lines[3] == "| <none> |" + " – |" * 7
    assert lines[5].startswith("<none>: There is")


def test_latex_is_escaped(table):
    lines = table.to_latex().splitlines()
    assert lines[0] == r"\begin{tabular}{lrrrrrrr}"
    assert lines[2] == (
        r"method & RMSE\_d & RMSE\_r & CVE & RMSE\_d \% & RMSE\_r \% & CVE \% & time [s] \\"
    )
    assert lines[4].startswith(r"\textbf{stiff\_one} & ")
    assert lines[5] == "<none> & " + "-- & " * 6 + r"-- \\"
    assert lines[-2].startswith("% <none>: There is")


def test_csv_keeps_every_digit(table):
    first, *rows = csv.reader(io.StringIO(table.to_csv()))
    assert first == list(table.rows[0].to_dict())
    assert {"size", "relative_cve", "relative_rmse_reference", "relative_rmse_datum"} < set(first)
    name, *figures, failure = rows[0]
    assert [name, *map(float, figures), failure] == list(table.rows[0].to_dict().values())
    assert rows[1][-1] == table.rows[1].failure


def test_frame(table):
    frame = table.to_frame()
    assert list(frame.index) == ["stiff_one", "<none>"]
    assert frame.loc["stiff_one", "cve"] == table["stiff_one"].cve


def test_html_is_escaped(table):
    page = table._repr_html_()
    assert "<td>&lt;none&gt;</td>" in page
    assert "50 % is_wrong." in page
    assert "<td><strong>stiff_one</strong></td>" in page
    assert page.count("<tr>") == 3


def test_an_unknown_method_is_named(table):
    with pytest.raises(KeyError, match="no method 'TPS'"):
        table["TPS"]


def test_a_table_without_failures_only_says_what_its_figures_are():
    table = Comparison((MethodFigures("x", 1.0, 1.0, 1.0, 1.0, 1.0),), fold_size=1)
    assert len(str(table).splitlines()) == 4
    assert table.to_markdown().splitlines()[-1].startswith("CVE: 1 landmark left out at a time.")


def test_progress_counts_the_folds_of_all_methods():
    findings = []
    methods = [DefGPA(Affine()), EuclideanGPA()]
    compare(smooth_family(m=30), methods, 10, progress=lambda *step: findings.append(step))
    assert findings[-1] == (6, 6)
    assert {total for _, total in findings} == {6}
    assert [done for done, _ in findings] == sorted(done for done, _ in findings)


def test_progress_ends_even_if_the_last_method_fails():
    findings = []
    methods = [EuclideanGPA(), DefGPA(Affine(), proportions=[1.0])]
    compare(smooth_family(m=30), methods, 10, progress=lambda *step: findings.append(step))
    assert findings[-1] == (6, 6)


def test_variants_of_the_benchmarks_have_names_of_their_own():
    methods = [
        EuclideanGPA(),
        EuclideanGPA(scaling=True),
        EuclideanGPA(scaling=True, reflections=True),
        AffineGPA(),
        AffineGPA("balanced"),
    ]
    assert [row.name for row in compare(smooth_family(m=30), methods, 10)] == [
        "EUC_d",
        "EUC_d(scaling)",
        "EUC_d(scaling, reflections)",
        "AFF_d",
        "AFF_d(balanced)",
    ]


def test_every_special_character_of_latex_is_escaped():
    row = MethodFigures(r"x^2 a~b \mu", 1.0, 1.0, 1.0, 1.0, 1.0)
    assert (
        r"\textbf{x\textasciicircum{}2 a\textasciitilde{}b \textbackslash{}mu} &"
        in Comparison((row,), fold_size=1).to_latex()
    )


def test_any_error_of_a_users_method_is_a_failed_row():
    class Broken(EuclideanGPA):
        def fit(self, shapes, y=None):
            raise RuntimeError

    good, bad = compare(smooth_family(m=30), {"good": EuclideanGPA(), "bad": Broken()}, 10)
    assert np.isfinite(good.cve)
    assert bad.failure == "RuntimeError"


def test_the_methods_are_left_as_they_were():
    estimator = DefGPA(Affine())
    compare(smooth_family(m=30), {"it": estimator}, 10)
    assert not hasattr(estimator, "alignment_")
