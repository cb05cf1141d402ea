"""Morphologika files: sections in any case and order, words for missing points, 1-based links."""

import re
from functools import partial

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes, write_shapes
from defgpa.shapes import Shapes

HEAD = "[individuals]\n2\n[landmarks]\n3\n[dimensions]\n2\n"
ROWS = "[rawpoints]\n'#1\n1 2\n3 4\n5 6\n'#2\n7 8\n9 10\n11 12\n"


@pytest.fixture
def morphologika(read_text):
    return partial(read_text, "set.txt")


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "[names]\na\nb\n" + ROWS,
        (HEAD + "[NAMES]\n\na \n b\n\n" + ROWS).replace("\n", "\r\n"),
        HEAD.title() + "[Names]\na\nb\n[Raw Points]\n1 2\n3 4\n5 6\n\n7 8\n9 10\n11 12\n",
        "[individuals] 2\n[landmarks] 3\n[dimensions] 2\n" + ROWS + "[names]\na\nb\n",
        HEAD + ROWS.replace("#1", "a").replace("#2", " b"),
    ],
)
def test_every_way_to_write_the_same_set(morphologika, text):
    shapes = morphologika(text)
    assert shapes.names == ("a", "b")
    np.testing.assert_array_equal(shapes.points.ravel(), np.arange(1, 13))


def test_unnamed_specimens_are_named_after_the_file(morphologika):
    assert morphologika(HEAD + ROWS).names == ("set_1", "set_2")
    first = (HEAD + ROWS.split("'#2")[0]).replace("2\n[landmarks]", "1\n[landmarks]")
    assert morphologika(first).names == ("set",)


@pytest.mark.parametrize("gap", ["NA NA", "missing", "* *", "? ?", "nan nan", "- -", "x y z"])
def test_whatever_is_not_a_number_is_missing(morphologika, gap):
    shapes = morphologika(HEAD + ROWS.replace("3 4", gap))
    assert shapes.visible.tolist() == [[True, False, True], [True, True, True]]


@pytest.mark.parametrize(
    "groups",
    ["male 1\nfemale 1\n", "male\n1\nfemale\n1\n", "male 1 female 1\n", "male, 1\nfemale,1\n"],
)
def test_groups_count_specimens_in_their_order(morphologika, groups):
    shapes = morphologika(HEAD + "[groups]\n" + groups + ROWS)
    assert shapes.metadata["groups"] == ("male", "female")


def test_groups_whose_names_end_in_a_number(morphologika):
    shapes = morphologika(HEAD + "[groups]\nGroup 1 1\nGroup 2 1\n" + ROWS)
    assert shapes.metadata["groups"] == ("Group 1", "Group 2")


def test_a_single_variable_is_the_group(morphologika):
    shapes = morphologika(HEAD + "[labels]\nSex\n[labelvalues]\nF\nM\n" + ROWS)
    assert shapes.metadata["groups"] == ("F", "M")


def test_several_variables_are_comments(morphologika):
    shapes = morphologika(HEAD + "[labels]\nSex Age\n[labelvalues]\nF 3\nM 4\n" + ROWS)
    assert shapes.metadata["comments"] == ("Sex=F, Age=3", "Sex=M, Age=4")
    assert "groups" not in shapes.metadata


def test_wireframe_and_polygons_count_from_one_in_the_file(morphologika):
    shapes = morphologika(HEAD + ROWS + "[wireframe]\n1 2\n2 3\n[polygons]\n1 2 3\n")
    assert shapes.metadata["links"] == ((0, 1), (1, 2))
    assert shapes.faces.tolist() == [[0, 1, 2]]


def test_polygons_that_are_not_triangles_are_kept_aside(morphologika):
    shapes = morphologika(HEAD + ROWS + "[polygons]\n1 2 3\n1 2\n")
    assert shapes.metadata["polygons"] == ((0, 1, 2), (0, 1))
    assert shapes.faces is None


def test_images_are_kept(morphologika):
    assert morphologika(HEAD + ROWS + "[images]\na.jpg\nb.jpg\n").metadata["images"] == (
        "a.jpg",
        "b.jpg",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[landmarks]\n3\n", "expected a section [individuals] with a number; found none"),
        (HEAD.replace("3", "x"), "line 4: expected a whole number as [landmarks]; found 'x'"),
        (HEAD.replace("3", "0"), "line 4: expected at least one in [landmarks]; found 0"),
        (HEAD.replace("dimensions]\n2", "dimensions]\n4"), "line 6: expected 2 or 3 [dimensions]"),
        (HEAD, "expected a section [rawpoints] with coordinates; found none"),
        (HEAD + ROWS.replace("3 4", "3 4 5"), "line 10: expected 2 coordinates; found '3 4 5'"),
        (HEAD + ROWS.replace("3 4", "3,1 4,2"), "line 10: expected a number with a decimal point"),
        (HEAD + ROWS.replace("3 4\n", ""), "line 8: expected 3 rows of coordinates; found 2"),
        (HEAD + ROWS + "[wireframe]\n1 4\n", "line 17: expected landmarks 1 to 3 in [wireframe]"),
    ],
)
def test_a_mistake_is_named_with_its_line(morphologika, text, message):
    with pytest.raises(FormatError, match=re.escape(message)) as error:
        morphologika(text)
    assert "set.txt" in str(error.value)


def test_a_row_too_few_here_and_too_many_there_is_refused(morphologika):
    moved = ROWS.replace("5 6\n'#2\n", "'#2\n5 6\n")
    with pytest.raises(FormatError, match="line 8: expected 3 rows of coordinates; found 2"):
        morphologika(HEAD + moved)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + ROWS.replace("'#2\n", "") + "13 14\n", "expected 6 rows (2 × 3)"),
        (HEAD + "[names]\na\n" + ROWS, "line 8: expected 2 lines in [names]; found 1"),
        (HEAD + "[groups]\nm 3\n" + ROWS, "line 8: expected [groups] of 2 specimens in all"),
        (HEAD + "[labelvalues]\nm\n" + ROWS, "line 8: expected 2 lines in [labelvalues]; found 1"),
    ],
)
def test_a_wrong_count_is_an_error_or_a_warning(morphologika, text, message):
    with pytest.raises(FormatError, match=re.escape(message)):
        morphologika(text)
    with pytest.warns(DefgpaWarning, match=re.escape(message)):
        shapes = morphologika(text, on_mismatch="warn")
    np.testing.assert_array_equal(shapes.points.ravel(), np.arange(1, 13))


def test_groups_links_and_faces_survive_a_round_trip(tmp_path):
    shapes = Shapes.specimens(
        np.arange(24.0).reshape(3, 4, 2),
        names=["a", "b", "c"],
        faces=[[0, 1, 2], [1, 2, 3]],
        metadata={"groups": ("red 1", "red 1", "blue"), "links": ((0, 3), (1, 2))},
    )
    write_shapes(shapes, tmp_path / "set.txt")
    again = read_shapes(tmp_path / "set.txt")
    assert again == shapes
    assert again.faces.tolist() == shapes.faces.tolist()
    assert again.metadata["groups"] == shapes.metadata["groups"]
    assert again.metadata["links"] == shapes.metadata["links"]


def test_a_note_names_what_the_format_cannot_hold(tmp_path):
    shapes = Shapes.specimens([[[1.0, 2.0]], [[3.0, 4.0]]], names=["[a]", "b"], landmarks=["tip"])
    with pytest.warns(DefgpaWarning) as caught:
        write_shapes(shapes, tmp_path / "set.txt")
    assert [str(w.message).split(";")[0] for w in caught] == [
        "A morphologika file has no landmark labels",
        "This format cannot hold the name '[a]' as it is",
    ]
    assert read_shapes(tmp_path / "set.txt").names == ("_a]", "b")


def test_a_column_that_r_printed_whole_is_taken_apart(tmp_path):
    """write.morphologika of a factor leaves one line c(1, 2, 1) where there should be three."""
    (tmp_path / "set.txt").write_text(
        "[individuals]\n3\n[landmarks]\n1\n[dimensions]\n2\n[labels]\nsex\n"
        '[labelvalues]\nc("f", "m", "f")\n[rawpoints]\n\'#1\n1 2\n\'#2\n3 4\n\'#3\n5 6\n'
    )
    shapes = read_shapes(tmp_path / "set.txt")
    assert shapes.metadata["groups"] == ("f", "m", "f")
    assert shapes.metadata["variables"][1] == {"sex": "m"}
