"""Findings are values: every problem has a message for both audiences, and a form for scripts."""

import ast
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

import defgpa
from defgpa import Affine, DefGPA, DefgpaWarning, Shapes
from defgpa.app.wording import PAGE_WORDING
from defgpa.cli._wording import CLI_WORDING
from defgpa.diagnostics.findings import Finding, Problem, group_by_problem, warn_about
from defgpa.diagnostics.wording import LIBRARY_WORDING, use_wording
from support import ROOT, smooth_family

SOURCES = sorted((ROOT / "src" / "defgpa").rglob("*.py"))

VALUES = {
    "p": 0.01,
    "smallest": 5,
    "largest": 20,
    "views": 1, "shapes": 5, "landmarks": 7, "of": 9, "times": 10, "ratio": 1e9, "offset": 0.25,
    "enough": 0.5, "value": 0.125, "next_value": 0.126, "directions": 4, "dim": 3, "residual": 0.1,
    "cohesion": 0.05, "axis": 2, "condition": 1e12, "gap": 1e-6, "products": 300,
    "iterations": 80, "gradient": 1e-3, "rounds": 1000, "folds": 2, "count": 3, "soft": 1.0,
    "smoothing": 1e-3, "least": 1e-5, "foldovers_avoided": 4.0, "change": 0.03, "cost": 0.2,
    "excess": 0.1, "share": 30.0, "usual": 0.05, "error": 0.3, "matched_error": 0.02,
    "thickness": 1e-5,
}  # fmt: skip
PARTS = {Problem.IN_FOLDS, Problem.AT_SMOOTHING, Problem.IN_METHODS}
every_problem = pytest.mark.parametrize("problem", Problem, ids=str)


def make_example(problem, shapes=("wing 3", "wing 1"), landmarks=("tip", "base")):
    """Make a finding with all that its message may name."""
    finding = Finding(Problem.MIRRORED, shapes=("wing 3",))
    if problem is Problem.IN_FOLDS:
        finding = Finding(Problem.IN_FOLDS, (), ("tip",), {"folds": 2}, (finding,))
    parts = (finding,) if problem in PARTS else ()
    shapes = shapes if problem is Problem.REPEATED_SHAPE else shapes[:1]
    return Finding(problem, shapes, landmarks, VALUES, parts, ("AFF_r",))


def format_for_shell(finding):
    with use_wording(CLI_WORDING):
        return str(finding)


class TestMessages:
    @pytest.mark.parametrize("wording", [CLI_WORDING, PAGE_WORDING], ids=["shell", "page"])
    def test_all_audiences_have_the_same_remedies(self, wording):
        assert set(wording.remedies) == set(LIBRARY_WORDING.remedies)

    def test_remedies_are_those_of_problems_and_of_tables_that_lack_specimens(self):
        assert set(LIBRARY_WORDING.remedies) <= {*Problem, "unlisted"}

    @every_problem
    def test_messages_are_whole_sentences(self, problem):
        for message in (str(make_example(problem)), format_for_shell(make_example(problem))):
            assert message[0].isupper() or message.startswith(("1", "2", "3", "4", "7", "AFF_r"))
            assert message.endswith((".", "?"))
            assert "{" not in message

    @every_problem
    def test_the_shell_reads_options_and_the_library_names(self, problem):
        """Nobody at a command line can write DefGPA(...), nobody in Python --smoothing."""
        assert "--" not in str(make_example(problem))
        message = format_for_shell(make_example(problem))
        for name in ("DefGPA(", "Iterative(", "Dense()", "shapes.without", "proportions=["):
            assert name not in message

    @every_problem
    def test_messages_name_the_shapes_and_landmarks_of_the_finding(self, problem):
        message = str(make_example(problem))
        renamed = str(make_example(problem, ("bone", "shell"), ("hinge", "joint")))
        if "'wing 3'" in message and problem not in PARTS:
            assert "'bone'" in renamed
        if "'tip'" in message and problem not in PARTS:
            assert "'hinge'" in renamed

    def test_a_smoothing_without_foldovers_is_named_as_an_option(self):
        finding = Finding(Problem.FOLDOVERS, ("a",), values={"landmarks": 2, "smoothing": 0.01})
        assert str(finding).endswith("With smoothing=0.01 none does.")
        assert format_for_shell(finding).endswith("With --smoothing 0.01 none does.")


class TestAsValues:
    @every_problem
    def test_findings_survive_json(self, problem):
        finding = make_example(problem)
        fields = json.loads(json.dumps(finding.to_dict()))
        assert Finding.from_dict(fields) == finding
        assert fields["problem"] == problem.value

    def test_what_is_empty_is_not_written(self):
        assert Finding(Problem.HINGE).to_dict() == {"problem": "hinge"}
        assert Finding.from_dict({"problem": "hinge"}) == Finding(Problem.HINGE)

    def test_an_unknown_problem_is_refused(self):
        with pytest.raises(ValueError, match="not a valid Problem"):
            Finding.from_dict({"problem": "gremlins"})

    def test_their_names_are_stable(self):
        """Scripts read them: a new one may come, none may change."""
        expected = {
            "lone-landmarks", "sparse-landmarks", "exchanged-landmarks", "misplaced-landmark",
            "other-size", "far-from-origin", "few-landmarks", "mirrored", "undetermined-warp",
            "charged-translations", "weak-centering", "narrow-gap", "free-directions", "hinge",
            "carried-by-few", "rounding", "not-converged", "descent-not-converged",
            "proportions-undetermined", "proportions-not-converged", "large-deformation",
            "foldovers", "in-folds", "at-smoothing", "in-methods", "best-at-edge",
            "stiffer-preferred",
        }  # fmt: skip
        assert expected <= {str(problem) for problem in Problem}

    def test_a_stored_alignment_keeps_its_findings(self, tmp_path):
        points = smooth_family()
        points[1:, 3] = np.nan
        before = DefGPA().align(points)
        assert before.findings
        assert pickle.loads(pickle.dumps(before)).findings == before.findings
        defgpa.save(before, tmp_path / "a.npz")
        assert defgpa.load(tmp_path / "a.npz").findings == before.findings


class TestWarnings:
    def test_a_warning_carries_its_finding(self):
        findings = [
            Finding(Problem.HINGE, values={"cohesion": 0.1}),
            Finding(Problem.MIRRORED, ("a",)),
        ]
        with pytest.warns(DefgpaWarning) as caught:
            warn_about(findings)
        assert [warning.message.finding for warning in caught] == findings
        assert [str(warning.message) for warning in caught] == list(map(str, findings))

    def test_a_warning_points_at_the_caller(self):
        points = smooth_family(n=5)
        points[2, :, 0] *= -1
        with pytest.warns(DefgpaWarning, match="Mirrored") as caught:
            DefGPA(Affine()).fit(points)
        assert Path(caught[0].filename).name == Path(__file__).name

    def test_to_align_is_silent_and_to_fit_is_not(self):
        points = smooth_family(n=5)
        points[2, :, 0] *= -1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            alignment = DefGPA(Affine()).align(points)
        assert [finding.problem for finding in alignment.findings] == [Problem.MIRRORED]


class TestAtTheCommandLine:
    @pytest.fixture
    def odd(self, tmp_path):
        """A file with a mirrored specimen."""
        points = smooth_family(n=6, m=20)
        points[2, :, 0] *= -1
        path = tmp_path / "odd.csv"
        names = [f"wing {i}" for i in range(6)]
        defgpa.write_shapes(Shapes(points, names=names), path)
        return path

    def test_fit_writes_kinds_and_fields(self, run, odd, tmp_path):
        out, _ = run.succeed("fit", odd, "-o", tmp_path / "out", "--json")
        written = json.loads((tmp_path / "out" / "summary.json").read_text())
        for finding in (json.loads(out)["findings"], written["findings"]):
            (mirrored,) = [fields for fields in finding if fields["problem"] == "mirrored"]
            assert mirrored["shapes"] == ["wing 2"]
            assert all(Finding.from_dict(fields).to_dict() == fields for fields in finding)

    def test_people_are_told_in_the_words_of_the_shell(self, run, odd, tmp_path):
        _, err = run.succeed("fit", odd, "-o", tmp_path / "out")
        assert "--mirror" in " ".join(err.split())

    @pytest.mark.parametrize("command", ["compare", "tune"])
    def test_compare_and_tune_write_findings(self, run, odd, command):
        out, _ = run.succeed(command, odd, "--json")
        findings = [Finding.from_dict(finding) for finding in json.loads(out)["findings"]]
        deep = [nested for finding in findings for nested in (finding, *finding.parts)]
        assert Problem.MIRRORED in {finding.problem for finding in deep}


def imports_of(path):
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_nothing_in_the_package_looks_for_patterns_in_sentences():
    """Regular expressions read files and their names; what is told is never parsed."""
    readers = (
        *(
            "app/", "io", "datasets", "semilandmarks/read.py", "semilandmarks/sliders.py",
            "dataframes.py", "formatting.py",
        ),
        *("cli/", "report/_tables.py", "statistics/design.py", "statistics/formula.py"),
    )  # fmt: skip
    root = ROOT / "src" / "defgpa"
    users = [p.relative_to(root).as_posix() for p in SOURCES if "re" in imports_of(p)]
    assert [path for path in users if not path.startswith(readers)] == []


def test_only_sentences_are_turned_into_warnings():
    """Every DefgpaWarning is made in one place; of a solve only findings are told.

    What is left out before a fit is a warning: there is no result yet that could keep a finding.
    """
    assert [p.name for p in SOURCES if "DefgpaWarning(" in p.read_text()] == ["errors.py"]
    speaks = {"findings", "preparation"}
    for path in SOURCES:
        if {"solvers", "diagnostics"} & {*path.parts} and path.stem not in speaks:
            assert " warn(" not in path.read_text(), path


def test_what_is_found_shape_by_shape_is_told_in_one_sentence():
    kinds = [Problem.MISPLACED_LANDMARK, Problem.EXCHANGED_LANDMARKS, Problem.REPEATED_SHAPE]
    findings = [
        Finding(kind, (f"wing {k}", "wing 0"), ("tip", "base"), {"change": k / 1000})
        for k in range(1, 10)
        for kind in kinds
    ]
    mirrored = [Finding(Problem.MIRRORED, shapes=(name,)) for name in "ab"]
    groups = group_by_problem([*findings, *mirrored])
    assert [finding.problem for finding in groups] == [*kinds, Problem.MIRRORED, Problem.MIRRORED]
    assert all(
        finding.is_remark == all(subfinding.is_remark for subfinding in finding.parts)
        for finding in groups[:3]
    )
    assert sum(len(finding.parts) for finding in groups) == 27
    misplaced, exchanged, repeated = map(str, groups[:3])
    assert "'tip' of 'wing 1', 'tip' of 'wing 2'" in misplaced
    assert "and 3 more; without one of them the reference would change by at most 0.9%" in misplaced
    assert "'tip' and 'base' of 'wing 6' and 3 more;" in exchanged
    assert "'wing 6' of 'wing 0' and 3 more. Drop" in repeated
    assert group_by_problem(findings[:3]) == findings[:3]
