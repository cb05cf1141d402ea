"""Several formats share the suffix .pts: the first line tells which one it is."""

import re
from functools import partial

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes, write_shapes
from defgpa.shapes import Shapes

FACE = "version: 1\nn_points:  3\n{\n30.5 204.25\n29 240\nnan nan\n}\n"
SKULL = "Version 1.0\n3\nS0000 1 2 3\nS0001 9999 9999 9999\nS0002 7.5 8.5 9999\n"


@pytest.fixture
def pts(read_text):
    return partial(read_text, "one.pts")


@pytest.mark.parametrize("text", [FACE, FACE.replace("\n", "\r\n"), FACE.replace("{\n", "{\n\n")])
def test_pixels_of_a_face_are_taken_as_they_are(pts, text):
    shapes = pts(text)
    assert shapes.names == ("one",)
    np.testing.assert_array_equal(shapes.points[0], [[30.5, 204.25], [29, 240], [np.nan] * 2])


@pytest.mark.parametrize("count", ["", "3\n", "\n 3 \n"])
@pytest.mark.parametrize("dim", [2, 3])
def test_bare_rows_of_numbers_are_points(pts, count, dim):
    points = np.array([[30.5, 204.25, -1], [29, 240, 7], [1, 2, 3.5]])[:, :dim]
    text = "\n".join(" ".join(map(repr, row)) for row in points.tolist())
    shapes = pts(f"{count}{text}\n")
    np.testing.assert_array_equal(shapes.points, [points])
    assert shapes.landmarks == ("1", "2", "3")


def test_idav_points_have_labels_and_9999_is_missing(pts):
    shapes = pts(SKULL)
    assert shapes.landmarks == ("S0000", "S0001", "S0002")
    assert shapes.visible.tolist() == [[True, False, True]]
    np.testing.assert_array_equal(shapes.points[0, 2], [7.5, 8.5, 9999])


def test_labels_may_hold_blanks_or_be_absent(pts):
    assert pts("Version 1.0\n2\nleft eye 1 2 3\ntip 4 5 6\n").landmarks == ("left eye", "tip")
    assert pts("Version 1.0\n2\n1 2 3\n4 5 6\n").landmarks == ("1", "2")


def test_files_are_matched_by_label(tmp_path):
    (tmp_path / "a.pts").write_text("Version 1.0\n2\nS0 1 2 3\nS2 7 8 9\n")
    (tmp_path / "b.pts").write_text("Version 1.0\n3\nS0 1 2 3\nS1 4 5 6\nS2 7 8 9\n")
    shapes = read_shapes(tmp_path)
    assert shapes.landmarks == ("S0", "S1", "S2")
    assert shapes.visible.tolist() == [[True, False, True], [True, True, True]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PTS\n1 2 3\n", "line 1: expected 'version: 1', 'Version 1.0', 'point' or rows of"),
        ("2\n1 2 3 0 9 9 9\n4 5 6 0 9 9 9\n", "or rows of 2 or 3 numbers; found '2'"),
        ("\n3\n1 2.5 3\n4 5 6\n", "line 2: expected 3 rows of points; found 2"),
        ("1 2.5 3\n4 5 six\n", "line 2: expected a number; found 'six'"),
        ("version: 1\nn_points: 3\n", "expected 'n_points: N' and then '{'; found neither or one"),
        ("version: 1\n{\n1 2\n}\n", "expected 'n_points: N' and then '{'"),
        (FACE.replace("3\n", "many\n", 1), "line 2: expected a whole number as n_points"),
        (FACE.replace("29 240", "29 abc"), "line 5: expected a number; found 'abc'"),
        (FACE.replace("29 240", "29,5 240"), "line 5: expected a number with a decimal point"),
        ("Version 1.0\n", "has no points: expected a count and rows; found none"),
        ("Version 1.0\nS0 1 2 3\n1 2 3\n", "line 2: expected a whole number as the number of po"),
        ("Version 1.0\n1\nS0 1\n", "line 3: expected a label and 3 coordinates; found 'S0 1'"),
        ("Version 1.0\n1\nS0 1 2 x\n", "line 3: expected a number; found 'x'"),
    ],
)
def test_a_mistake_is_named_with_its_line(pts, text, message):
    with pytest.raises(FormatError, match=re.escape(message)) as error:
        pts(text)
    assert "one.pts" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FACE.replace("3\n", "4\n", 1), "line 2: expected 4 rows between braces; found 3"),
        (SKULL.replace("3\n", "4\n", 1), "line 2: expected 4 rows of points; found 3"),
    ],
)
def test_a_wrong_count_is_an_error_or_a_warning(pts, text, message):
    with pytest.raises(FormatError, match=re.escape(message)):
        pts(text)
    with pytest.warns(DefgpaWarning, match=re.escape(message)):
        assert pts(text, on_mismatch="warn").n_landmarks == 3


def test_a_label_twice_is_refused(pts):
    with pytest.raises(FormatError, match=r"two landmarks with the label 'S0'\. Rename"):
        pts("Version 1.0\n2\nS0 1 2 3\nS0 4 5 6\n")


def test_own_labels_are_kept_in_three_dimensions_only(tmp_path):
    labels = ["apex", "tip"]
    solid = Shapes.specimens([[[1.0, 2, 3], [4, 5, 6]]], names=["a"], landmarks=labels)
    write_shapes(solid, tmp_path / "a.pts")
    assert read_shapes(tmp_path / "a.pts") == solid
    flat = Shapes.specimens([[[1.0, 2], [4, 5]]], names=["a"], landmarks=labels)
    with pytest.warns(DefgpaWarning, match=r"A 300-W \.pts file has no landmark labels"):
        write_shapes(flat, tmp_path / "a.pts")


def test_a_landmark_at_the_missing_code_cannot_be_written(tmp_path):
    shapes = Shapes.specimens([[[9999.0, 9999, 9999], [4, 5, 6]]])
    with pytest.raises(FormatError, match="9999 means missing in it"):
        write_shapes(shapes, tmp_path / "a.pts")
    assert not (tmp_path / "a.pts").exists()
