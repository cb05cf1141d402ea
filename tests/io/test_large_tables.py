"""Large tables are parsed in bulk, to the same shapes as small ones."""

import numpy as np
import pytest

from defgpa.errors import FormatError
from defgpa.io import read_shapes, write_shapes
from defgpa.io.text import large_tables
from defgpa.shapes import Shapes


def make_shapes(missing=False):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 40, 3))
    if missing:
        points[3, 5] = np.nan
    return Shapes.specimens(
        points,
        names=[f"s{k}" for k in range(30)],
        metadata={"variables": [{"site": f"'{k}" if k % 2 else "=sum"} for k in range(30)]},
        weights=rng.uniform(0.1, 1, size=(30, 40)) if missing else None,
    )


@pytest.fixture
def bulk_reads(monkeypatch):
    """What reading in bulk returned, one entry a file."""
    monkeypatch.setattr(large_tables, "_MIN_BYTES", 0)
    monkeypatch.setattr(large_tables, "_BLOCK", 5000)  # a row of make_shapes in two of them
    results = []
    plain = large_tables.read_bulk_table

    def record(path, options):
        results.append(plain(path, options))
        return results[-1]

    monkeypatch.setattr("defgpa.io.text.csv.read_bulk_table", record)
    return results


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    ("name", "layout"), [("a.csv", "csv"), ("a.tsv", "csv"), ("a.csv", "csv-long")]
)
def test_a_large_table_is_parsed_in_bulk(tmp_path, monkeypatch, bulk_reads, missing, name, layout):
    monkeypatch.setattr("defgpa.io.text.csv.read_table", None)  # cell by cell
    shapes = make_shapes(missing)
    write_shapes(shapes, tmp_path / name, format=layout)
    again = read_shapes(tmp_path / name)
    assert bulk_reads[0] is not None
    np.testing.assert_array_equal(again.points, shapes.points)
    np.testing.assert_array_equal(again.weights, shapes.weights)
    assert (again.names, again.landmarks) == (shapes.names, shapes.landmarks)
    assert again.metadata["variables"] == shapes.metadata["variables"]


def test_a_mistake_in_a_large_table_is_named_with_its_line(tmp_path, bulk_reads):
    write_shapes(make_shapes(), tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().split("\n")
    lines[7] = lines[7].rpartition(",")[0] + ",wrong"
    (tmp_path / "a.csv").write_text("\n".join(lines))
    with pytest.raises(FormatError, match=r"a\.csv, line 8: expected a number; found 'wrong'"):
        read_shapes(tmp_path / "a.csv")
    assert bulk_reads == [None]


@pytest.mark.parametrize("word", ['"s,7"', '"s7"', "s7" + 99 * "x", ' "s, 7"', '"s ""7"""'])
def test_a_quoted_or_long_word_of_a_large_table_is_read_whole(tmp_path, bulk_reads, word):
    write_shapes(make_shapes(), tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_text().replace("s7,", f"{word},")
    (tmp_path / "a.csv").write_text(text)
    expected = word.strip().removeprefix('"').removesuffix('"').replace('""', '"')
    assert read_shapes(tmp_path / "a.csv").names[7] == expected
    assert (bulk_reads != [None]) == (word in ('"s,7"', '"s7"'))


@pytest.mark.parametrize("format", ["csv", "csv-long"])
@pytest.mark.parametrize("word", ["NA", "", "na", "N/A", "#N/A", "null", "nan"])
def test_missing_words_of_a_large_table_leave_those_of_other_columns(
    tmp_path, bulk_reads, format, word
):
    shapes = make_shapes(missing=True)
    columns = [{"site": "NA"} if k % 3 else {"site": "-nan"} for k in range(30)]
    shapes = shapes.with_metadata(variables=columns)
    write_shapes(shapes, tmp_path / "a.csv", format=format)
    text = (tmp_path / "a.csv").read_text().replace("NA,NA,NA", f"{word},{word},{word}")
    (tmp_path / "a.csv").write_text(text)
    again = read_shapes(tmp_path / "a.csv")
    assert bulk_reads[0] is not None
    np.testing.assert_array_equal(again.points, shapes.points)
    assert [v.get("site") for v in again.metadata["variables"] if v] == ["-nan"] * 10


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("label", ["+nAn", "+nAN", "+Nan", '"left,NA,right"', '"left,,right"'])
def test_a_label_that_reads_as_a_missing_word_is_kept(tmp_path, bulk_reads, label, missing):
    shapes = make_shapes(missing).with_metadata(variables=[{"site": "there"}] * 30)
    write_shapes(shapes, tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_text().replace("there", label, 20)
    (tmp_path / "a.csv").write_text(text)
    again = read_shapes(tmp_path / "a.csv")
    np.testing.assert_array_equal(again.points, shapes.points)
    sites = [columns["site"] for columns in again.metadata["variables"]]
    assert sites == [label.strip('"')] * 20 + ["there"] * 10


def test_decimal_commas_of_a_large_table_leave_those_of_other_columns(tmp_path, bulk_reads):
    shapes = make_shapes().with_metadata(variables=[{"site": "left, above"}] * 30)
    write_shapes(shapes, tmp_path / "a.tsv")
    text = (tmp_path / "a.tsv").read_text().replace(".", ",").replace("\t", ";")
    (tmp_path / "a.csv").write_text(text)
    again = read_shapes(tmp_path / "a.csv")
    assert bulk_reads[0] is not None
    np.testing.assert_array_equal(again.points, shapes.points)
    assert again.metadata["variables"][0]["site"] == "left, above"
    (tmp_path / "a.csv").write_text(text.replace(",", ".", 9))
    with pytest.raises(FormatError, match="decimal commas everywhere, or nowhere"):
        read_shapes(tmp_path / "a.csv")


@pytest.mark.parametrize("word", ["NA", ""])
def test_rows_without_a_word_are_left_out_of_a_large_table(tmp_path, bulk_reads, word):
    shapes = make_shapes()
    write_shapes(shapes, tmp_path / "a.csv")
    header, *rows = (tmp_path / "a.csv").read_text().split("\n")
    empty = "," * header.count(",")
    gaps = rows[0].replace("s0", "new", 1).rsplit(",", 3)[0] + 3 * f",{word}"
    (tmp_path / "a.csv").write_text("\n".join([header, *rows[:9], empty, gaps, *rows[9:]]))
    again = read_shapes(tmp_path / "a.csv")
    assert len(again) == 31
    assert np.isnan(again.points[9, -1]).all()
    np.testing.assert_array_equal(np.delete(again.points, 9, axis=0), shapes.points)


def test_a_column_of_visibilities_of_a_large_table_is_heeded(tmp_path, bulk_reads):
    shapes = make_shapes(missing=True).with_weights(None)
    write_shapes(shapes, tmp_path / "a.csv", format="csv-long")
    header, *rows = (tmp_path / "a.csv").read_text().strip().split("\n")
    flagged = [row.replace("NA", "7") + (",0" if "NA" in row else ",1") for row in rows]
    (tmp_path / "a.csv").write_text("\n".join([f"{header},visible", *flagged]))
    np.testing.assert_array_equal(read_shapes(tmp_path / "a.csv").points, shapes.points)


def test_a_large_table_of_one_shape_is_parsed_in_bulk(tmp_path, bulk_reads):
    points = np.random.default_rng(0).normal(size=(3000, 3))
    np.savetxt(tmp_path / "a.csv", points, delimiter=",", header="x,y,z", comments="")
    np.testing.assert_array_equal(read_shapes(tmp_path / "a.csv").points, [points])
    assert bulk_reads[0] is not None


def test_a_repeated_landmark_of_a_large_table_is_named_with_its_line(tmp_path):
    write_shapes(make_shapes(), tmp_path / "a.csv", format="csv-long")
    lines = (tmp_path / "a.csv").read_text().split("\n")
    (tmp_path / "a.csv").write_text("\n".join([*lines[:7], "", lines[6], *lines[7:]]))
    with pytest.raises(
        FormatError, match=r"a\.csv, line 9: expected each landmark of shape 's0' o"
    ):
        read_shapes(tmp_path / "a.csv")
