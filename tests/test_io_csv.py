"""Tables: a row a shape, a row a landmark or a file a shape, told apart by what they hold."""

import re

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes, write_shapes
from defgpa.shapes import Shapes
from io_support import awkward_shapes


@pytest.fixture
def table(tmp_path):
    """Reads a text as if it were the content of set.csv."""

    def read(text, suffix=".csv", **options):
        path = tmp_path / f"set{suffix}"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_shapes(path, **options)

    return read


FLAT = [[[1, 2], [3, 4]], [[5, 6], [7, 8.5]]]


@pytest.mark.parametrize(
    "text",
    [
        "id,x1,y1,x2,y2\na,1,2,3,4\nb,5,6,7,8.5\n",
        "ID; X1; Y1; X2; Y2\na; 1; 2; 3; 4\nb; 5; 6; 7; 8.5\n",
        "\tx_1\ty_1\tx_2\ty_2\na\t1\t2\t3\t4\nb\t5\t6\t7\t8.5\n",
        '"","1.X","1.Y","2.X","2.Y"\n"a",1,2,3,4\n"b",5,6,7,8.5\n',
        "id,y1,y2,x1,x2\na,2,4,1,3\nb,6,8.5,5,7\n",
        "id,x1,y1,x2,y2,,\na,1,2,3,4,,\n,,,,,,\nb,5,6,7,8.5,,\n",
        "sep=;\nname;x1;y1;x2;y2\na;1;2;3;4\nb;5;6;7;8.5\n",
        "# made by hand\na,1,2,3,4\nb,5,6,7,8.5\n",
        "specimen,V1,V2,V3,V4\na,1,2,3,4\nb,5,6,7,8.5\n",
        ",0,1,2,3\na,1,2,3,4\nb,5,6,7,8.5\n",
        "id,x1 (mm),y1 (mm),x2 (mm),y2 (mm)\na,1,2,3,4\nb,5,6,7,8.5\n",
        "id,x,y,x,y\na,1,2,3,4\nb,5,6,7,8.5\n",
        "id,X,Y,X.1,Y.1\na,1,2,3,4\nb,5,6,7,8.5\n",
        "shape,landmark,x,y\na,1,1,2\na,2,3,4\nb,1,5,6\nb,2,7,8.5\n",
        "Y,Landmark,X,Specimen ID\n6,1,5,b\n2,1,1,a\n8.5,2,7,b\n4,2,3,a\n",
        "name,lm,x (mm),y (mm)\na,1,1,2\na,2,3,4\nb,1,5,6\nb,2,7,8.5\n",
        ",shape,x,y\n0,a,1,2\n1,a,3,4\n2,b,5,6\n3,b,7,8.5\n",
    ],
)
def test_every_way_to_write_the_same_set(table, text):
    shapes = table(text)
    assert set(shapes.names) == {"a", "b"}
    assert shapes.landmarks == ("1", "2")
    np.testing.assert_array_equal([shapes["a"], shapes["b"]], FLAT)


@pytest.mark.parametrize(
    "encode", [lambda t: t.encode("utf-8-sig"), lambda t: t.replace("\n", "\r\n").encode("utf-16")]
)
def test_encodings_of_spreadsheets(table, encode):
    shapes = table(encode("id\tx1\ty1\tx2\ty2\nä\t1\t2\t3\t4\n"))
    assert shapes.names == ("ä",)


def test_three_dimensions_in_a_wide_table(table):
    shapes = table("id,x1,y1,z1,x2,y2,z2\na,1,2,3,4,5,6\n")
    np.testing.assert_array_equal(shapes.points, [[[1, 2, 3], [4, 5, 6]]])


def test_named_columns_label_the_landmarks(table):
    shapes = table("id,sex,apex_x,apex_y,left eye_x,left eye_y\na,f,1,2,3,4\nb,m,5,6,7,8\n")
    assert shapes.landmarks == ("apex", "left eye")
    assert shapes.metadata["groups"] == ("f", "m")


@pytest.mark.parametrize("gap", [",", "NA,NA", "nan,NaN", " , ", "#N/A,n/a"])
def test_empty_cells_and_words_are_missing(table, gap):
    shapes = table(f"id,x1,y1,x2,y2\na,1,2,{gap}\nb,5,6,7,8\n")
    assert shapes.visible.tolist() == [[True, False], [True, True]]


def test_a_landmark_without_a_row_is_missing_in_a_long_table(table):
    shapes = table("shape,landmark,x,y\na,tip,1,2\na,base,3,4\nb,tip,5,6\nb,mid,0,0\nb,base,7,8\n")
    assert shapes.landmarks == ("tip", "mid", "base")
    assert shapes.visible.tolist() == [[True, False, True], [True, True, True]]


def test_a_landmark_twice_in_a_long_table_is_refused(table):
    with pytest.raises(FormatError, match="line 3: expected each landmark of shape 'a' once"):
        table("shape,landmark,x,y\na,tip,1,2\na,tip,3,4\n")


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("1,2,3\n4,5,6.5\n", ".csv"),
        ("x,y,z\n1,2,3\n4,5,6.5\n", ".csv"),
        ("z;y;x\n3;2;1\n6.5;5;4\n", ".csv"),
        ("1 2 3\n4 5 6.5\n", ".txt"),
        ("# x y z\n1.000e+00 2.000e+00 3.000e+00\n4 5 6.5\n", ".txt"),
        ("x y z\n1 2 3\n4 5 6.5\n", ".txt"),
        ("  1   2   3\n\n  4   5   6.5\n", ".xyz"),
        ("1,1,2,3\n2,4,5,6.5\n", ".csv"),
        (",x,y,z\n0,1,2,3\n1,4,5,6.5\n", ".csv"),
        ("score,x,y,z\n0.5,1,2,3\n0.7,4,5,6.5\n", ".csv"),
    ],
)
def test_a_table_of_points_is_one_shape(table, text, suffix):
    shapes = table(text, suffix)
    assert shapes.names == ("set",)
    assert shapes.landmarks == ("1", "2")
    np.testing.assert_array_equal(shapes.points, [[[1, 2, 3], [4, 5, 6.5]]])


@pytest.mark.parametrize(
    "text",
    [
        "a,1,2\nb,4,5\n",
        "label,x,y\na,1,2\nb,4,5\n",
        "x,y,name\n1,2,a\n4,5,b\n",
        '"","x","y"\n"a",1,2\n"b",4,5\n',
    ],
)
def test_a_label_column_names_the_landmarks(table, text):
    shapes = table(text)
    assert shapes.landmarks == ("a", "b")
    np.testing.assert_array_equal(shapes.points, [[[1, 2], [4, 5]]])


def test_tables_of_points_are_matched_by_label(tmp_path):
    (tmp_path / "s2.csv").write_text("landmark,x,y\nb,1,2\na,3,4\n")
    (tmp_path / "s10.csv").write_text("landmark,x,y\na,5,6\n")
    shapes = read_shapes(tmp_path)
    assert shapes.names == ("s2", "s10")
    assert shapes.landmarks == ("b", "a")
    np.testing.assert_array_equal(shapes["s10"], [[np.nan, np.nan], [5, 6]])


def test_a_table_without_header_may_start_with_numbers_for_names(table):
    shapes = table("101,0.5,2,3,4\n205,5,6,7,8\n")
    assert shapes.names == ("101", "205")
    assert shapes.points.shape == (2, 2, 2)


def test_a_table_without_header_and_names_is_named_after_the_file(table):
    shapes = table("0.5,2,3,4\n5,6,7,8\n0.5,1,1,1\n")
    assert shapes.names == ("set_1", "set_2", "set_3")
    assert shapes.points.shape == (3, 2, 2)


def test_two_dimensions_are_assumed_aloud_where_three_are_possible(table):
    with pytest.warns(DefgpaWarning, match="3 landmarks in 2-D or 2 in 3-D; 2-D is assumed"):
        shapes = table("a,1,2,3,4,5,6\n")
    assert shapes.points.shape == (1, 3, 2)


def test_a_missing_code_on_demand(table):
    shapes = table("id,x1,y1,x2,y2\na,0,0,0,4\n", missing=0)
    assert shapes.visible.tolist() == [[False, True]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,x1,y1\na,1,2\nb,1,oops\n", "line 3: expected a number; found 'oops'"),
        ("1,oops\n3,4\n", "line 1: expected a number; found 'oops'"),
        ("a,1,2,3,oops\nb,1,2,3,4\n", "line 1: expected a number; found 'oops'"),
        ("id;x1;y1\na;1,5;2.5\n", "line 2: expected decimal commas everywhere, or nowhere"),
        ("id;x1;y1\na;1.234,5;2,5\n", "line 2: expected a number; found '1.234,5'"),
        ('id,x1,y1\na,"1,5","2,5"\n', "line 2: expected a number with a decimal point"),
        ("1,5 2,5\n3,5 4,5\n", "line 1: expected a number with a decimal point; found '1,5'"),
        ("1,5\t2,5\n3,5\t4,5\n", "line 1: expected a number with a decimal point; found '1,5'"),
        ("id,x1,y1\na,1,2\nb,1\n", "line 3: expected 3 columns, as above; found 2"),
        (
            "id,x1,y1,x2\na,1,2,3\n",
            "line 1: expected columns x and y of landmark '2'",
        ),
        ("id,x1,y1,x1\na,1,2,3\n", "line 1: expected one column for each axis of landmark '1'"),
        ("id,x1,y1,z1,x2,y2\na,1,2,3,4,5\n", "expected x, y and z for every landmark or for none"),
        ("a,1,2,3,4,5,6,7\n", "line 1: expected coordinates in twos or threes"),
        ("id,x1,y1\n", "has no numbers: expected rows below the header; found none"),
        ("# nothing\n", "has no numbers: expected a table; found only comments"),
        ("words\n", "line 1: expected columns of numbers; found"),
        ('a,1,2\n"b,3,4\n' + "x" * 200_000, "is not a table that can be read: field larger"),
        ("shape,x,y\na,1,2\na,3,4\nb,5,6\n", "'a' .* has 2, 'b' .* has 1"),
    ],
)
def test_a_mistake_is_named_with_its_line(table, text, message):
    pattern = message if ".*" in message else re.escape(message)
    with pytest.raises(FormatError, match=pattern) as error:
        table(text)
    assert "set.csv" in str(error.value)


def test_lines_are_counted_through_comments_and_quoted_line_breaks(table):
    with pytest.raises(FormatError, match="line 6: expected a number; found 'x'"):
        table('# one\n\nid,x1,y1\n"a\nb",1,2\nc,x,2\n')


@pytest.mark.parametrize("format_", ["csv", "csv-long"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("landmarks", [None, ["a,b", 'q"q', "x", "1.x", "z_y"]])
@pytest.mark.parametrize("dim", [2, 3])
def test_a_round_trip_keeps_every_digit(tmp_path, format_, suffix, landmarks, dim):
    shapes = awkward_shapes(dim, landmarks)
    write_shapes(shapes, tmp_path / f"set{suffix}", format=format_)
    assert read_shapes(tmp_path / f"set{suffix}") == shapes


@pytest.mark.parametrize("dim", [2, 3])
def test_a_folder_of_tables_keeps_every_digit(tmp_path, dim):
    shapes = awkward_shapes(dim, ["a,b", "c", "d", "10", "2"]).take([3, 0, 1, 2])
    write_shapes(shapes, tmp_path / "set", format="csv-points")
    assert sorted(p.name for p in (tmp_path / "set").iterdir()) == [
        "10.csv",
        "a 1.csv",
        "b-ü.csv",
        "c.csv",
    ]
    assert read_shapes(tmp_path / "set") == shapes


def test_the_suffix_writes_the_wide_layout(tmp_path):
    shapes = Shapes.specimens([[[1.0, 2.0], [np.nan, np.nan]]], names=["a"])
    write_shapes(shapes, tmp_path / "set.csv")
    assert (tmp_path / "set.csv").read_text() == "id,x1,y1,x2,y2\na,1.0,2.0,NA,NA\n"


def test_a_named_layout_must_fit_the_table(table):
    with pytest.raises(FormatError, match="expected columns shape, landmark, x and y"):
        table("id,x1,y1\na,1,2\n", format="csv-long")
    with pytest.raises(FormatError, match="expected a column 'shape'"):
        table("x,y\n1,2\n", format="csv-long")
    with pytest.raises(FormatError, match="expected 2 or 3 columns of numbers; found 5"):
        table("id,x1,y1,x2,y2\na,1,2,3,4\n", format="csv-points")


# Tables of other programs


@pytest.mark.parametrize(
    "head",
    [
        "Id\tRawCoord1\tRawCoord2\tRawCoord3\tRawCoord4",
        "Id\tProcCoord1\tProcCoord2\tProcCoord3\tProcCoord4",
        "ID\tProc coord 1\tProc coord 2\tProc coord 3\tProc coord 4",
    ],
)
def test_morphoj_counts_the_coordinates(table, head):
    shapes = table(f"{head}\na\t1\t2\t3\t4\nb\t5\t6\t7\t8.5\n", ".txt")
    assert shapes.names == ("a", "b")
    assert shapes.points.tolist() == FLAT


def test_morphoj_puts_classifiers_and_sizes_before_the_coordinates(table):
    head = "Id\tSpecies\tCentroid Size\tProcCoord1\tProcCoord2\tProcCoord3\tProcCoord4"
    shapes = table(f"{head}\na\tHomo\t2.5\t1\t2\t3\t4\nb\tPan\t2.7\t5\t6\t7\t8.5\n", ".txt")
    assert shapes.points.tolist() == FLAT
    assert shapes.metadata["groups"] == ("Homo", "Pan")


def test_of_two_series_of_coordinates_the_first_is_read(table):
    head = "Id,RawCoord1,RawCoord2,RawCoord3,RawCoord4,ProcCoord1,ProcCoord2,ProcCoord3,ProcCoord4"
    shapes = table(f"{head}\na,1,2,3,4,9,9,9,9\nb,5,6,7,8.5,9,9,9,9\n")
    assert shapes.points.tolist() == FLAT


def test_the_table_of_slicer_states_its_space_and_what_is_defined(tmp_path):
    rest = "defined,selected,visible,locked,description"
    (tmp_path / "a.csv").write_text(f"label,l,p,s,{rest}\nF-1,1,2,3,1,1,1,0,\nF-2,0,0,0,0,1,1,0,\n")
    (tmp_path / "b.csv").write_text("label,r,a,s\nF-2,-4,-5,6\nF-1,-1,-2,3\n")
    shapes = read_shapes(tmp_path)
    assert shapes.landmarks == ("F-1", "F-2")
    assert shapes.metadata["space"] == "LPS"
    np.testing.assert_array_equal(
        shapes.points, [[[1, 2, 3], [np.nan] * 3], [[1, 2, 3], [4, 5, 6]]]
    )


def test_numbers_of_landmarks_are_no_coordinates(table):
    with pytest.warns(DefgpaWarning, match="the first column counts the landmarks"):
        shapes = table("1,2.5,3.5\n2,4.5,1.5\n3,1,1\n")
    assert shapes.points.tolist() == [[[2.5, 3.5], [4.5, 1.5], [1, 1]]]
    assert table("1 2 3\n2 4 5\n3 1 7\n").dim == 3, "whole numbers may be anything"


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("id,x1,y1\na,1,2\n", "csv"),
        ("shape,landmark,x,y\na,1,1,2\n", "csv-long"),
        ("landmark,x,y\n1,1,2\n", "csv-points"),
        ("1.5 2\n3 4\n", "csv-points"),
    ],
)
def test_a_table_remembers_its_layout_to_be_written_in(table, text, layout):
    assert table(text).metadata["format"] == layout
