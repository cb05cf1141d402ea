"""NTS files: the header says how many, the rest follows from it."""

import re
from functools import partial

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes, write_shapes
from defgpa.shapes import Shapes


@pytest.fixture
def nts(read_text):
    return partial(read_text, "set.nts")


POINTS = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]


@pytest.mark.parametrize(
    "text",
    [
        "\"a comment\n'another\n1 2L 4 0 DIM=2\na b\n1 2 3 4\n5 6 7 8\n",
        "1 2l 4 1 9999 dim = 2\r\na\r\nb\r\n\r\n1 2\r\n3 4\r\n5 6\r\n7 8\r\n",
        "1 2L 4L 0 DIM=2\na b x1 y1 x2 y2\n1 2 3 4 5 6\n7 8\n",
        "1 2B 4 0 DIM=2\na 1 2 3 4\nb 5 6 7 8\n",
        "1 2E 4 0 DIM=2\n1 2 3 4 a\n5 6 7 8 b\n",
        "1 2L 4\na b\n1 2 3 4 5 6 7 8\n",
    ],
)
def test_every_way_to_lay_out_the_same_matrix(nts, text):
    shapes = nts(text)
    assert shapes.names == ("a", "b")
    assert shapes.landmarks == ("1", "2")
    np.testing.assert_array_equal(shapes.points, POINTS)


def test_labels_with_blanks_have_a_line_each(nts):
    shapes = nts("1 2L 4 0 DIM=2\nHomo sapiens\nPan t. verus 3\n1 2 3 4\n5 6 7 8\n")
    assert shapes.names == ("Homo sapiens", "Pan t. verus 3")
    np.testing.assert_array_equal(shapes.points, POINTS)


def test_columns_that_name_landmarks_label_them(nts):
    text = "1 1L 4L 0 DIM=2\na\napex_x apex_y base_x base_y\n1 2 3 4\n"
    assert nts(text).landmarks == ("apex", "base")
    unordered = text.replace("apex_y base_x", "base_x apex_y")
    assert nts(unordered).landmarks == ("1", "2")


def test_unnamed_specimens_are_named_after_the_file(nts):
    assert nts("1 2 4 0 DIM=2\n1 2 3 4\n5 6 7 8\n").names == ("set_1", "set_2")


def test_columns_as_many_as_dimensions_are_one_specimen(nts):
    shapes = nts("1 4L 3 0 DIM=3\na b c d\n1 2 3\n4 5 6\n7 8 9\n0 0 0\n")
    assert shapes.names == ("set",)
    assert shapes.landmarks == ("a", "b", "c", "d")
    assert shapes.points.shape == (1, 4, 3)
    assert nts("1 4 3 0\n1 2 3\n4 5 6\n7 8 9\n0 0 0\n").points.shape == (1, 4, 3)


@pytest.mark.parametrize("code", ["9999", "-999", "9999.0"])
def test_the_code_of_the_header_is_missing(nts, code):
    shapes = nts(f"1 2 4 1 {code} DIM=2\n1 2 {code} {code}\n{code} 6 7 8\n")
    assert shapes.visible.tolist() == [[True, False], [False, True]]


def test_the_word_na_is_missing_without_a_code(nts):
    assert nts("1 1 4 0 DIM=2\n1 2 NA NA\n").visible.tolist() == [[True, False]]


def test_9999_is_a_number_where_the_flag_is_zero(nts):
    assert nts("1 1 4 0 DIM=2\n1 2 9999 9999\n").visible.all()
    assert not nts("1 1 4 0 DIM=2\n1 2 9999 9999\n", missing=9999).visible.all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'only a comment\n", "has no header: expected '1 rows[L]"),
        ("2 2 4 0 DIM=2\n", "line 1: expected a header '1 rows[L] columns[L] flag"),
        ("1 2Q 4 0 DIM=2\n", "line 1: expected the number of rows, with L if labels follow"),
        ("1 2 4L4 0 DIM=2\n", "line 1: expected the number of columns, with L"),
        ("1 2 5 0 DIM=2\n", "line 1: expected rows, and columns that are a multiple of DIM=2"),
        ("1 2 4 0 DIM=4\n", "line 1: expected DIM=2 or DIM=3; found DIM=4"),
        ("1 2 6 0\n", "line 1: expected DIM=2 or DIM=3 in the header; found neither"),
        ("1 2 4 1 DIM=2\n", "line 1: expected a code for missing values after the flag"),
        ("1 1 4 0 DIM=2\n1 2\n3 x\n", "line 3: expected a number; found 'x'"),
        ("1 1 4 0 DIM=2\n1 2\n3,5 4\n", "line 3: expected a number with a decimal point"),
        ("1 1 4 0 DIM=2\n1 2\n", "line 1: expected 4 numbers (1 × 4) after the labels; found 2"),
    ],
)
def test_a_mistake_is_named_with_its_line(nts, text, message):
    with pytest.raises(FormatError, match=re.escape(message)) as error:
        nts(text)
    assert "set.nts" in str(error.value)


def test_a_file_that_ends_early_gives_its_complete_rows_on_demand(nts):
    text = "1 3L 4 0 DIM=2\na b c\n1 2 3 4\n5 6 7 8\n9 9\n"
    with pytest.raises(FormatError, match=re.escape("expected 12 numbers (3 × 4)")):
        nts(text)
    with pytest.warns(DefgpaWarning, match="found 10"):
        shapes = nts(text, on_mismatch="warn")
    assert shapes.names == ("a", "b")


def test_the_header_alone_tells_the_format(tmp_path):
    path = tmp_path / "unknown"
    path.write_text("'x\n1 2L 4 0 DIM=2\na b\n1 2 3 4 5 6 7 8\n")
    assert read_shapes(path).names == ("a", "b")


def test_the_missing_code_is_not_a_coordinate(tmp_path):
    shapes = Shapes.specimens([[[9999.0, 99999.0], [np.nan, np.nan]]], names=["a"])
    write_shapes(shapes, tmp_path / "set.nts")
    assert read_shapes(tmp_path / "set.nts") == shapes


def test_a_name_that_would_be_a_comment_is_written_without_its_quote(tmp_path):
    shapes = Shapes.specimens(np.ones((2, 3, 2)), names=["'a", "_a"])
    with pytest.warns(DefgpaWarning, match="cannot hold the name"):
        write_shapes(shapes, tmp_path / "set.nts")
    assert read_shapes(tmp_path / "set.nts").names == ("_a", "_a_2")


def test_a_dimension_may_be_said_where_the_header_does_not(nts):
    text = "1 2L 6 0\na b\n1 2 3 4 5 6\n7 8 9 1 2 3\n"
    with pytest.raises(
        FormatError, match=r"DIM=2 or DIM=3 in the header; found neither\..*dimension=2"
    ):
        nts(text)
    assert nts(text, dimension=3).points.shape == (2, 2, 3)
    assert nts(text, dimension=2).points.shape == (2, 3, 2)
