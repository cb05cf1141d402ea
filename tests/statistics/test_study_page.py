"""The tutorial that writes the analysis section of a paper: its commands give its numbers."""

from __future__ import annotations

import importlib
import re
from types import SimpleNamespace

import pytest

from support import ROOT, shared_data

pytest.importorskip("sphinx", reason='pages are run with: pip install "defgpa[docs]"')
PAGE = ROOT / "docs" / "tutorials" / "salamanders.md"


@pytest.fixture(scope="module")
def docs():
    """The extensions that run pages and read the tables of the study."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs" / "_ext"))
        names = ("executed", "study_tables", "published_data")
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})


@pytest.fixture(scope="module")
def study(docs, tmp_path_factory):
    """The page as it is shown, and the folder with all that its commands wrote."""
    shared_data("plethspecies2d.npz")
    folder, wrong = tmp_path_factory.mktemp("study"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(docs.executed, "_LOG", SimpleNamespace(error=wrong.append))
        for name in ("COLUMNS", "NO_COLOR", "PYTHONWARNINGS"):
            patch.setenv(name, "")
        page = docs.executed.Page("tutorials/salamanders", folder, folder / "pictures")
        shown = docs.executed.run_page(PAGE.read_text(encoding="utf-8"), page)
    assert not wrong
    return SimpleNamespace(shown=shown, folder=folder, names=page.names)


def test_every_number_of_the_analysis_section_is_one_that_the_commands_wrote(docs, study):
    text = PAGE.read_text(encoding="utf-8")
    assert len(docs.study_tables.read_report(text)[1]) > 40
    assert not docs.study_tables.find_wrong_numbers(text, study.folder)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("R² = 0.149", "R² = 0.148", "the table below it"),
        ("| `anova/anova.csv` | species | `f`", "| `anova/anova.csv` | site | `f`", "14.5 is"),
        ("| 72.5 % |", "| 72.5 |", "the table below it"),
        ("(P = 0.024)", "(P = 0.024, Z = 2)", "the table below it"),
    ],
)  # fmt: skip
def test_a_wrong_number_of_the_analysis_section_is_found(docs, study, right, wrong, message):
    text = PAGE.read_text(encoding="utf-8")
    assert right in text
    found = docs.study_tables.find_wrong_numbers(text.replace(right, wrong), study.folder)
    assert message in " ".join(found)


def test_the_numbers_of_geomorph_on_the_page_are_in_the_record_of_its_output(study):
    """Those of species × site are not in the record, but in `test_procrustes_anova`."""
    record = (ROOT / "tests" / "oracle_geomorph" / "numbers.txt").read_text()
    tables = study.shown.split("| | geomorph | here |\n|---|---|---|\n")[1:]
    rows = [
        re.fullmatch(r"\| (.+) \| (\S+) \| (\S+) \|", line).groups()
        for table in tables[1:]
        for line in table.partition("\n\n")[0].splitlines()
    ]
    assert len(rows) > 35
    for name, theirs, ours in rows:
        assert re.search(rf"(?<![\d.]){re.escape(theirs)}", record), name
        is_random = name.endswith((", P", ", Z"))
        is_average = name == "CR"  # geomorph takes one pose
        tolerance = {"abs": 0.15} if is_random else {"rel": 1e-4 if is_average else 2e-5}
        assert float(ours) == pytest.approx(float(theirs), **tolerance), name


def test_the_page_keeps_the_figures_that_it_shows(study):
    shown = re.findall(r"files/tutorials-salamanders/([\w.-]+)", study.shown)
    assert len(shown) >= 7
    assert shown == study.names["KEEP"]
    assert all((study.folder / name).stat().st_size > 5000 for name in shown)


def test_the_commands_of_a_page_without_its_data_are_shown_and_not_run(docs, tmp_path, monkeypatch):
    monkeypatch.setattr(docs.published_data, "_SHARED", tmp_path)
    for name in ("COLUMNS", "NO_COLOR", "PYTHONWARNINGS"):
        monkeypatch.setenv(name, "")
    page = docs.executed.Page("tutorials/salamanders", tmp_path, tmp_path / "pictures")
    shown = docs.executed.run_page(PAGE.read_text(encoding="utf-8"), page)
    assert "The blocks of this page were not run: the set plethodon2d.npz is not at hand." in shown
    assert "$ defgpa pca aligned/result.npz --groups species:site -o pca\n```" in shown
    assert "<!-- write" not in shown
    assert page.lacks_data
