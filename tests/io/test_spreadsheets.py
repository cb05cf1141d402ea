"""Names that a spreadsheet would run as formulas are written so that it does not."""

import csv

import numpy as np
import pytest

import defgpa
from defgpa import Affine, DefGPA
from defgpa.io import read_shapes, write_shapes
from defgpa.io.covariates import read_covariate_rows
from defgpa.io.text.table import format_csv
from defgpa.result_folder import write_specimens
from defgpa.shapes import Shapes

NAMES = ["=1+1", "+x", "-y", "@SUM(A1)", "'=quoted", "''-z", "-7", "plain", "a=b", "'s"]
LABELS = ["=cmd|' /C calc'!A0", "-tip", "@", "'", "1"]


@pytest.mark.parametrize("format_name", ["csv", "csv-long"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_formulas_in_names_are_guarded_and_come_back(tmp_path, format_name, suffix):
    points = np.random.default_rng(0).normal(size=(len(NAMES), len(LABELS), 2))
    shapes = Shapes.specimens(points, names=NAMES, landmarks=LABELS)
    path = tmp_path / f"set{suffix}"
    write_shapes(shapes, path, format=format_name)
    with path.open(newline="") as file:
        cells = [
            c for row in csv.reader(file, delimiter="\t" if suffix == ".tsv" else ",") for c in row
        ]
    assert not [c for c in cells if c[:1] in ("=", "@")]
    assert all(float(c) < 0 for c in cells if c[:1] in ("+", "-"))  # a number is no formula
    again = read_shapes(path, format=format_name)
    assert (again.names, again.landmarks) == (shapes.names, shapes.landmarks)
    np.testing.assert_array_equal(again.points, points)


def test_formulas_in_labels_of_single_shapes_are_guarded(tmp_path):
    shapes = Shapes.specimens(np.ones((1, 2, 2)), landmarks=["=evil()", "b"])
    write_shapes(shapes, tmp_path / "a.csv", format="csv-points")
    assert "'=evil()" in (tmp_path / "a.csv").read_text()
    assert read_shapes(tmp_path / "a.csv").landmarks == shapes.landmarks


def test_tables_of_results_are_guarded_and_join_the_shapes_again(tmp_path):
    """Results are what people open in a spreadsheet first."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, 2)) * [3, 2] + 0.1 * rng.normal(size=(6, 20, 2))
    names = ("=cmd()", "+a", "-b", "@c", "d", "e")
    alignment = DefGPA(Affine()).align(Shapes.specimens(points, names=names))
    write_specimens(alignment, tmp_path)
    rows = csv.reader((tmp_path / "specimens.csv").read_text().splitlines())
    assert [row[0] for row in rows][1:] == ["'=cmd()", "'+a", "'-b", "'@c", "d", "e"]
    assert read_covariate_rows(tmp_path / "specimens.csv")[1][0][0] == "=cmd()"
    assert format_csv(["term"], [["=1+1"], [-1.5], [float("nan")]]) == 'term\n\'=1+1\n-1.5\n""\n'


def test_a_carriage_return_in_a_name_does_not_split_a_row():
    assert format_csv(["id"], [["a\rb"], ["c"]]) == "id\na b\nc\n"


def test_formulas_in_exports_for_r_are_guarded(tmp_path):
    pytest.importorskip("rdata")
    rng = np.random.default_rng(0)
    points = rng.normal(size=(8, 2)) + 0.05 * rng.normal(size=(3, 8, 2))
    shapes = defgpa.Shapes(points, names=["=1+1", "b", "c"])
    alignment = defgpa.EuclideanGPA().fit(shapes).alignment_
    defgpa.export(alignment, tmp_path, to="r")
    for name in ("shapes.csv", "specimens.csv"):
        assert (tmp_path / name).read_text().split("\n")[1].startswith("'=1+1,")
