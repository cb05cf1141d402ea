"""Tables: a row a shape, a row a landmark or a file a shape, told apart by what they hold."""

import re

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import find_unsupported_metadata, read_shapes, write_shapes
from defgpa.io.text.dimension import infer_dimension
from defgpa.shapes import Shapes
from io_support import awkward_shapes, specimens


@pytest.fixture
def table(read_text):
    def read(text, suffix=".csv", **options):
        return read_text(f"set{suffix}", text, **options)

    return read


TWO_SERIES = "Id," + ",".join(f"{kind}Coord{k}" for kind in ("Raw", "Proc") for k in range(1, 5))
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
        "id,age,c0,c1,c2,c3\na,7,1,2,3,4\nb,8,5,6,7,8.5\n",
        "id,age,c1,c2,c3,c4\na,7,1,2,3,4\nb,8,5,6,7,8.5\n",
        *[
            "\t".join(["Id", *(f"{head}{k}" for k in range(1, 5))])  # of MorphoJ
            + "\na\t1\t2\t3\t4\nb\t5\t6\t7\t8.5\n"
            for head in ("RawCoord", "ProcCoord", "Proc coord ")
        ],
        f"{TWO_SERIES}\na,1,2,3,4,9,9,9,9\nb,5,6,7,8.5,9,9,9,9\n",
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
        *[
            (
                f"1 2 3 {remaining}\n4 5 6.5 {remaining}\n",
                ".xyz",
            )  # normals, colours, weights of a scan
            for remaining in ("0 0 1", "255 128 0", "0 0 1 255 128 0", "0.5 0 0 1")
        ],
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
        ("a 1,5 2,5\nb 3.5 4,5\n", "line 2: expected decimal commas everywhere, or nowhere"),
        ("id,x1,y1\na,1,2\nb,1\n", "line 3: expected 3 columns, as above; found 2"),
        ("id,x1,y1,x2\na,1,2,3\n", "line 1: expected columns x and y of landmark '2'"),
        ("id,x1,y1,x4,x3,x2\na,1,2,3,4,5\n", "line 1: expected columns x and y of landmark '4'"),
        ("id,x1,y1,x1\na,1,2,3\n", "line 1: expected one column for each axis of landmark '1'"),
        ("id,x1,y1,z1,x2,y2\na,1,2,3,4,5\n", "expected x, y and z for every landmark or for none"),
        ("a,1,2,3,4,5,6,7\n", "line 1: expected coordinates in twos or threes"),
        ("id,x1,y1\n", "has no numbers: expected rows below the header; found none"),
        ("# nothing\n", "has no numbers: expected a table; found only comments"),
        ("words\n", "line 1: expected columns of numbers; found"),
        ('a,1,2\n"b,3,4\n' + "x" * 200_000, "is not a table that can be read: field larger"),
        ("shape,x,y\na,1,2\na,3,4\nb,5,6\n", "'a' .* has 2, 'b' .* has 1"),
        ("shape,landmark,x,y\na,tip,1,2\na,tip,3,4\n", "line 3: expected each landmark of shape"),
        ('# one\n\nid,x1,y1\n"a\nb",1,2\nc,x,2\n', "line 6: expected a number; found 'x'"),
    ],
)
def test_a_mistake_is_named_with_its_line(table, text, message):
    refuse(table, text, message)


def refuse(table, text, message, **options):
    pattern = message if ".*" in message else re.escape(message)
    with pytest.raises(FormatError, match=pattern) as error:
        table(text, **options)
    assert "set.csv" in str(error.value)


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


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("id,x1,y1\na,1,2\n", {"format": "csv-long"}, "columns shape, landmark, x and y"),
        ("x,y\n1,2\n", {"format": "csv-long"}, "expected a column 'shape'"),
        ("id,x1,y1,x2,y2\na,1,2,3,4\n", {"format": "csv-points"}, "2 or 3 columns of numbers; f"),
        ("a,1,2,3,4\n", {"dimension": 3}, "coordinates in threes after the identifier; found 4"),
        ("id,x1,y1\na,1,2\n", {"dimension": 3}, "is 2-D and says so. Leave out dimension=3"),
    ],
)
def test_a_layout_or_a_dimension_must_fit_the_table(table, text, options, message):
    refuse(table, text, message, **options)


# Tables of other programs


def test_morphoj_puts_classifiers_and_sizes_before_the_coordinates(table):
    head = "Id\tSpecies\tCentroid Size\tProcCoord1\tProcCoord2\tProcCoord3\tProcCoord4"
    shapes = table(f"{head}\na\tHomo\t2.5\t1\t2\t3\t4\nb\tPan\t2.7\t5\t6\t7\t8.5\n", ".txt")
    assert shapes.points.tolist() == FLAT
    assert shapes.metadata["groups"] == ("Homo", "Pan")


def test_the_table_of_slicer_states_its_space_and_what_is_defined(tmp_path):
    flags = "defined,selected,visible,locked,description"
    (tmp_path / "a.csv").write_text(
        f"label,l,p,s,{flags}\nF-1,1,2,3,1,1,1,0,\nF-2,0,0,0,0,1,1,0,\n"
    )
    (tmp_path / "b.csv").write_text("label,r,a,s\nF-2,-4,-5,6\nF-1,-1,-2,3\n")
    shapes = read_shapes(tmp_path)
    assert shapes.landmarks == ("F-1", "F-2")
    assert shapes.metadata["space"] == "LPS"
    np.testing.assert_array_equal(
        shapes.points, [[[1, 2, 3], [np.nan] * 3], [[1, 2, 3], [4, 5, 6]]]
    )


def test_numbers_of_landmarks_are_no_coordinates(table):
    text = "1,2.5,3.5\n2,4.5,1.5\n3,1,1\n"
    with pytest.warns(DefgpaWarning, match="the first column counts the landmarks"):
        shapes = table(text)
    assert shapes.points.tolist() == [[[2.5, 3.5], [4.5, 1.5], [1, 1]]]
    assert table(text, dimension=3).points.tolist() == [[[1, 2.5, 3.5], [2, 4.5, 1.5], [3, 1, 1]]]
    assert table(text, dimension=2) == shapes
    assert table("1 2 3\n2 4 5\n3 1 7\n").n_dims == 3, "whole numbers may be anything"


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


# Tables that R writes, and tables that lie across

WINGS, SKULLS = specimens(3, 5, 6, 2, noise=0.01), specimens(7, 5, 4, 3, noise=0.01)


def rows_of(points, names=None, mark=",", quote='"'):
    """A row a shape, as R's write.csv and write.table have them."""
    names = names or [str(k + 1) for k in range(len(points))]
    flat = points.reshape(len(points), -1)
    return [
        mark.join([f"{quote}{name}{quote}", *map(repr, row)])
        for name, row in zip(names, flat.tolist(), strict=True)
    ]


def heads(count, prefix="V", mark=",", quote='"'):
    return mark.join(f"{quote}{prefix}{k}{quote}" for k in range(1, count + 1))


def test_a_table_that_can_be_read_in_two_ways_says_which_was_taken(table):
    """X.a, Y.a, X.b are the coordinates of landmarks a and b, or of shapes a and b."""
    wings = WINGS + 3 * np.arange(5).reshape(5, 1, 1) ** [1, 2]  # so far apart that both are alike
    body = [
        f"{j + 1},{','.join(map(repr, row))}" for j, row in enumerate(wings.reshape(5, -1).tolist())
    ]
    numbered = "\n".join([",".join(["", *(f"{a}.{k}" for k in range(1, 7) for a in "XY")]), *body])
    with pytest.warns(DefgpaWarning, match=r"taken as 5 shapes of 6 landmarks.*layout='mdn'"):
        np.testing.assert_array_equal(table(numbered).points, wings)
    across = table(numbered, layout="mdn")
    np.testing.assert_array_equal(across.points, wings.transpose(1, 0, 2))
    np.testing.assert_array_equal(table(numbered, layout="nmd").points, wings)
    named = numbered
    for k, name in enumerate(("fly", "bee", "ant", "bug", "tick", "moth"), start=1):
        named = named.replace(f"X.{k}", f"X.{name}").replace(f"Y.{k}", f"Y.{name}")
    with pytest.warns(DefgpaWarning, match=r"taken as 6 shapes of 5 landmarks.*layout='nmd'"):
        assert table(named).names == ("fly", "bee", "ant", "bug", "tick", "moth")
    assert table(named, layout="nmd").landmarks == ("fly", "bee", "ant", "bug", "tick", "moth")


@pytest.mark.parametrize("corner", ["", "landmark", "coordinate"])
@pytest.mark.parametrize(
    "form",
    [
        "{axis} {label}",
        "{label}_{axis}",
        "{axis}{label}",
        "{axis}-{label}",
        "{label} ({axis})",
        "{label} [{axis}]",
    ],
)
@pytest.mark.parametrize("names", [list("abcde"), ["101", "102", "103", "104", "105"]])
def test_rows_that_name_coordinates_have_a_column_a_specimen(table, corner, form, names):
    labels = ["nasion", "tip", "left eye", "7"]
    lines = [",".join([corner, *names])]
    for j, label in enumerate(labels):
        for k, axis in enumerate("XYZ"):
            values = map(repr, SKULLS[:, j, k].tolist())
            lines.append(",".join([form.format(axis=axis, label=label), *values]))
    shapes = table("\n".join(lines))
    assert shapes.names == tuple(names)
    assert shapes.landmarks == tuple(labels)
    np.testing.assert_array_equal(shapes.points, SKULLS)


@pytest.mark.parametrize("repeat", [True, False])
def test_rows_may_name_landmark_and_axis_apart_and_say_more_about_specimens(table, repeat):
    lines = ["Landmark,Axis,a,b,c,d,e"]
    for j, label in enumerate(["nasion", "tip", "left eye", "7"]):
        for k, axis in enumerate("xyz"):
            values = map(repr, SKULLS[:, j, k].tolist())
            lines.append(",".join([label if repeat or k == 0 else "", axis, *values]))
    shapes = table("\n".join(lines))
    assert shapes.names == tuple("abcde")
    assert shapes.landmarks == ("nasion", "tip", "left eye", "7")
    np.testing.assert_array_equal(shapes.points, SKULLS)
    lines = [",a,b,c,d,e", "Sex,f,m,f,m,"]
    for j in range(4):
        rows = (map(repr, SKULLS[:, j, k].tolist()) for k in range(3))
        lines += [",".join([f"{axis}{j + 1}", *row]) for axis, row in zip("XYZ", rows, strict=True)]
    shapes = table("\n".join(lines))
    assert shapes.metadata["groups"] == ("f", "m", "f", "m", None)
    np.testing.assert_array_equal(shapes.points, SKULLS)
    bare = table("\n".join(lines[2:]))
    assert bare.names == tuple(f"set_{k}" for k in range(1, 6))
    np.testing.assert_array_equal(bare.points, SKULLS)


@pytest.mark.parametrize("mark", [" ", "\t"])
@pytest.mark.parametrize("quote", ['"', ""])
def test_the_header_of_write_table_is_one_field_short(table, mark, quote):
    lines = [heads(10, mark=mark, quote=quote), *rows_of(WINGS[:, :5], None, mark, quote)]
    shapes = table("\n".join(lines), ".txt")
    assert shapes.names == ("1", "2", "3", "4", "5")
    np.testing.assert_array_equal(shapes.points, WINGS[:, :5])


def test_names_with_blanks_are_quoted_between_blanks(table):
    names = ["a b", "c  d", "e", 'f"g', "h"]
    quoted = [name.replace('"', '""') for name in names]
    shapes = table("\n".join([heads(10, mark=" "), *rows_of(WINGS[:, :5], quoted, " ")]), ".txt")
    assert shapes.names == tuple(names)


@pytest.mark.parametrize("header", ['"V1" "V2"', "V1 V2", '"x" "y"'])
def test_one_shape_of_write_table(table, header):
    body = [f'"{j + 1}" {x!r} {y!r}' for j, (x, y) in enumerate(WINGS[0].tolist())]
    shapes = table("\n".join([header, *body]), ".txt")
    assert shapes.names == ("set",)
    np.testing.assert_array_equal(shapes.points, WINGS[:1])


@pytest.mark.parametrize("quote", ['"', ""])
def test_decimal_commas_between_semicolons(table, quote):
    """write.csv2, and Excel where the comma is the decimal sign."""
    body = [row.replace(".", ",") for row in rows_of(WINGS[:, :5], None, ";", quote)]
    shapes = table("\n".join([f"{quote}{quote};" + heads(10, mark=";", quote=quote), *body]))
    np.testing.assert_array_equal(shapes.points, WINGS[:, :5])
    assert table("id;x1;y1\na;1,5E-03;-2,\nb;NA;NA\n").points[0].tolist() == [[0.0015, -2.0]]


def test_words_about_a_specimen_stand_before_numbered_coordinates(table):
    lines = ['"specimen.id","species","sex",' + heads(10, "")]
    about = ['"001","b","f"', '"002","a","m"', '"003","b","m"', '"004","a","f"', '"005","a",""']
    flat = WINGS[:, :5].reshape(5, -1).tolist()
    lines += [",".join([words, *map(repr, row)]) for words, row in zip(about, flat, strict=True)]
    shapes = table("\n".join(lines))
    assert shapes.names == ("001", "002", "003", "004", "005")
    assert shapes.metadata["groups"] == ("b", "a", "b", "a", "a")
    assert shapes.metadata["variables"][1] == {"species": "a", "sex": "m"}
    np.testing.assert_array_equal(shapes.points, WINGS[:, :5])
    assert table("\n".join(lines), group="Sex").metadata["groups"] == ("f", "m", "m", "f", None)
    with pytest.raises(
        FormatError, match="no column 'age' to group by; there are: 'species', 'sex'"
    ):
        table("\n".join(lines), group="age")


def test_words_about_a_specimen_may_stand_without_a_header(table):
    flat = WINGS[:, :5].reshape(5, -1).tolist()
    lines = [",".join([f"s{k}", "Aedes", *map(repr, row)]) for k, row in enumerate(flat)]
    shapes = table("\n".join(lines))
    assert shapes.names[0] == "s0"
    assert shapes.metadata["variables"][0] == {"column 2": "Aedes"}
    np.testing.assert_array_equal(shapes.points, WINGS[:, :5])


def test_numbers_about_a_specimen_are_no_coordinates_where_these_are_counted(table):
    flat = WINGS[:, :5].reshape(5, -1).tolist()
    lines = [f"id,age,{heads(10, quote='')}"]
    lines += [",".join([f"s{k}", "7.5", *map(repr, row)]) for k, row in enumerate(flat)]
    shapes = table("\n".join(lines))
    np.testing.assert_array_equal(shapes.points, WINGS[:, :5])
    assert shapes.metadata["variables"][0] == {"age": "7.5"}


# 2-D or 3-D


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(("points", "dim"), [(WINGS, 2), (SKULLS, 3)])
def test_the_dimension_is_that_in_which_shapes_look_alike(table, points, dim, header):
    lines = [f",{heads(12)}"] * header + rows_of(points, list("abcde"))
    other_dim = 5 - dim
    with pytest.warns(DefgpaWarning, match=f"; {dim}-D is taken.*dimension={other_dim}"):
        shapes = table("\n".join(lines))
    np.testing.assert_array_equal(shapes.points, points)
    np.testing.assert_array_equal(table("\n".join(lines), dimension=dim).points, points)
    assert table("\n".join(lines), dimension=other_dim).n_dims == other_dim


def rows_with(rows, *changes):
    """Copy rows of coordinates and set the cells of each (index, value)."""
    rows = np.array(rows, dtype=float)
    for index, value in changes:
        rows[index] = value
    return rows


def aligned_curves(dim):
    turn = np.linspace(0, 6, 24)
    curve = np.column_stack([np.cos(turn), np.sin(turn), turn])[:, :dim]
    return (curve + 0.05 * RNG.normal(size=(6, 24, dim)) + 0.3).reshape(6, -1)


def superimposed_points(dim):
    points = RNG.normal(size=(60 // dim, dim)) + 0.2 * RNG.normal(size=(7, 60 // dim, dim))
    return (points - points.mean(axis=1, keepdims=True)).reshape(7, -1).round(8)


RNG = np.random.default_rng(0)
FLAT_WINGS, FLAT_SKULLS = WINGS.reshape(5, 12), SKULLS.reshape(5, 12)
GAP_OF_2, GAP_OF_3 = ((1, slice(2, 4)), np.nan), ((1, slice(3, 6)), np.nan)
NOISE = rows_with(RNG.normal(size=(6, 24)), ((2, slice(12, 18)), np.nan))  # a gap in either
SOLID = specimens(1, 5, 8, 3, noise=0.01).reshape(5, 24)


@pytest.mark.parametrize(
    ("rows", "dim"),
    [
        (FLAT_WINGS, 2),
        (FLAT_SKULLS, 3),
        *[(rows_with(rows, GAP_OF_2), 2) for rows in (FLAT_WINGS, FLAT_SKULLS, NOISE)],
        *[(rows_with(rows, GAP_OF_3), 3) for rows in (FLAT_WINGS, FLAT_SKULLS, NOISE)],
        *[(aligned_curves(dim), dim) for dim in (2, 3)],
        *[(superimposed_points(dim), dim) for dim in (2, 3)],
        (SOLID, 3),
        (rows_with(SOLID, (np.s_[:, :6], np.nan)), None),  # a landmark missing everywhere
        (rows_with(SOLID, (0, 1.0)), None),  # a row of one point
        (RNG.normal(size=(4, 600)), None),
        (np.zeros((3, 6)), None),
        (np.full((2, 6), np.nan), None),
        (np.ones((1, 6)), None),
    ],
)
def test_gaps_places_and_likeness_tell_the_dimension(rows, dim):
    assert infer_dimension(rows) == dim


# From table to table


@pytest.mark.parametrize("format_", ["csv", "csv-long"])
def test_what_is_known_about_specimens_survives_from_table_to_table(tmp_path, format_):
    metadata = {
        "groups": ("b", None, "a"),
        "images": ("p 1.jpg", None, "q.jpg"),
        "comments": (None, "x, y", None),
        "variables": ({"site": "N", "age": "3"}, {"site": "S"}, None),
    }
    shapes = Shapes.specimens(WINGS[:3], names=list("abc"), metadata=metadata)
    write_shapes(shapes, tmp_path / "a.csv", format=format_)
    again = read_shapes(tmp_path / "a.csv")
    assert again == shapes
    assert {key: again.metadata[key] for key in ("groups", "images", "comments")} == {
        key: metadata[key] for key in ("groups", "images", "comments")
    }
    assert again.metadata["variables"][0] == {"site": "N", "age": "3", "group": "b"}
    write_shapes(again, tmp_path / "b.csv", format=format_)
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_metadata_without_a_place_in_a_format_are_named():
    metadata = {"variables": ({"site": "N"},), "space": "LPS", "groups": ("a",), "links": ((0, 1),)}
    shapes = Shapes.specimens(SKULLS[:1], faces=[[0, 1, 2]], metadata=metadata)
    assert find_unsupported_metadata(shapes, "a.csv") == (
        "the links",
        "faces",
        "the anatomical space",
    )
    assert find_unsupported_metadata(shapes, "a.fcsv") == (
        "groups",
        "the columns 'site'",
        "the links",
        "faces",
    )
    assert find_unsupported_metadata(shapes, "a", format="ply")[-1] == "the anatomical space"
    assert (
        find_unsupported_metadata(shapes, "a.txt", format="morphologika")[0] == "the columns 'site'"
    )


def test_names_of_rows_beside_names_of_specimens_say_nothing(table):
    text = '"id" "sex" "X1" "Y1" "X2" "Y2"\n"1" "a" "f" 1 2 3 4\n"2" "b" "m" 5 6 7 8.5\n'
    shapes = table(text, ".txt")
    assert shapes.points.tolist() == FLAT
    assert shapes.metadata["variables"] == ({"sex": "f"}, {"sex": "m"})


@pytest.mark.parametrize(
    ("identifiers", "heads"),
    [(["a", "b"], ["id", "site", "x1"]), (["7", "8"], ["id", "site", "id_2", "x1"])],
    ids=["names", "others"],
)
def test_no_column_is_written_twice(tmp_path, identifiers, heads):
    sites = ("north", "south")
    variables = [{"id": i, "site": site} for i, site in zip(identifiers, sites, strict=True)]
    shapes = Shapes(
        np.arange(24.0).reshape(2, 6, 2) ** 1.1, names=["a", "b"], metadata={"variables": variables}
    )
    write_shapes(shapes, tmp_path / "shapes.csv")
    header = (tmp_path / "shapes.csv").read_text().splitlines()[0].split(",")
    assert header[: len(heads)] == heads
    again = read_shapes(tmp_path / "shapes.csv")
    assert again.names == ("a", "b")
    np.testing.assert_array_equal(again.points, shapes.points)


def test_a_long_label_is_abbreviated_in_messages(read_text):
    with pytest.raises(FormatError) as error:
        read_text("a.csv", f"shape,landmark,x,y\na,{'X ' * 500},1,\na,b,1,2\n")
    assert "half missing" in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.pts", f"{'9' * 500}\n1 2\n3 4\n"), ("a.obj", f"v 1,{'0' * 500} 2 3\nv 1 2 3\n")],
)
def test_a_long_number_is_abbreviated_in_messages(read_text, name, text):
    with pytest.raises(FormatError) as error:
        read_text(name, text)
    assert len(str(error.value)) < 500
