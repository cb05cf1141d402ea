"""Large tables are parsed in bulk, to the same shapes as small ones."""

import numpy as np
import pytest

from defgpa.errors import FormatError
from defgpa.io import read_shapes, write_shapes
from defgpa.io.text import large_tables
from defgpa.shapes import Shapes


def make_shapes(missing=False):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 1000, 3))
    if missing:
        points[3, 5] = np.nan
    return Shapes.specimens(
        points,
        names=[f"s{k}" for k in range(30)],
        metadata={"variables": [{"site": f"'{k}" if k % 2 else "=sum"} for k in range(30)]},
        weights=rng.uniform(0.1, 1, size=(30, 1000)) if missing else None,
    )


@pytest.fixture
def bulk_reads(monkeypatch):
    """What reading in bulk returned, one entry a file."""
    results = []
    plain = large_tables.read_in_bulk

    def record(path, options):
        results.append(plain(path, options))
        return results[-1]

    monkeypatch.setattr("defgpa.io.text.csv.read_in_bulk", record)
    return results


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_large_table_is_parsed_in_bulk(tmp_path, bulk_reads, missing, suffix):
    shapes = make_shapes(missing)
    write_shapes(shapes, tmp_path / f"a{suffix}")
    again = read_shapes(tmp_path / f"a{suffix}")
    assert bulk_reads[0] is not None
    np.testing.assert_array_equal(again.points, shapes.points)
    np.testing.assert_array_equal(again.weights, shapes.weights)
    assert again.names == shapes.names
    assert again.metadata["variables"] == shapes.metadata["variables"]


def test_a_mistake_in_a_large_table_is_named_with_its_line(tmp_path, bulk_reads):
    write_shapes(make_shapes(), tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().split("\n")
    lines[7] = lines[7].rpartition(",")[0] + ",wrong"
    (tmp_path / "a.csv").write_text("\n".join(lines))
    with pytest.raises(FormatError, match=r"a\.csv, line 8: expected a number; found 'wrong'"):
        read_shapes(tmp_path / "a.csv")
    assert bulk_reads == [None]


def test_quoted_cells_are_left_to_the_plain_reader(tmp_path, bulk_reads):
    write_shapes(make_shapes(), tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_text().replace("s7,", '"s,7",')
    (tmp_path / "a.csv").write_text(text)
    assert read_shapes(tmp_path / "a.csv").names[7] == "s,7"
    assert bulk_reads == [None]


@pytest.mark.parametrize("missing", [False, True])
def test_a_large_table_of_landmarks_is_parsed_in_bulk(tmp_path, bulk_reads, missing):
    shapes = make_shapes(missing)
    write_shapes(shapes, tmp_path / "a.csv", format="csv-long")
    again = read_shapes(tmp_path / "a.csv")
    assert bulk_reads[0] is not None
    np.testing.assert_array_equal(again.points, shapes.points)
    np.testing.assert_array_equal(again.weights, shapes.weights)
    assert (again.names, again.landmarks) == (shapes.names, shapes.landmarks)
    assert again.metadata["variables"] == shapes.metadata["variables"]


def test_a_large_table_of_one_shape_is_parsed_in_bulk(tmp_path, bulk_reads):
    points = np.random.default_rng(0).normal(size=(30_000, 3))
    np.savetxt(tmp_path / "a.csv", points, delimiter=",", header="x,y,z", comments="")
    np.testing.assert_array_equal(read_shapes(tmp_path / "a.csv").points, [points])
    assert bulk_reads[0] is not None


def test_a_repeated_landmark_of_a_large_table_is_named_with_its_line(tmp_path, bulk_reads):
    write_shapes(make_shapes(), tmp_path / "a.csv", format="csv-long")
    lines = (tmp_path / "a.csv").read_text().split("\n")
    (tmp_path / "a.csv").write_text("\n".join([*lines[:7], "", lines[6], *lines[7:]]))
    with pytest.raises(
        FormatError, match=r"a\.csv, line 9: expected each landmark of shape 's0' o"
    ):
        read_shapes(tmp_path / "a.csv")
    assert bulk_reads == [None]
