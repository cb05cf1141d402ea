"""The same landmark under several labels is one landmark, and it is said; never two in one."""

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes
from defgpa.io.landmark_matching import _is_respelling
from io_support import format_markups

RNG = np.random.default_rng(5)
PLACES = RNG.normal(size=(12, 3)).round(3)


@pytest.fixture
def slicer(tmp_path):
    """Writes one file of Slicer's: labels to places, all moved a little by the file."""

    def write(name, labels, places=PLACES, space="LPS"):
        places = places + len(list(tmp_path.iterdir()))
        text = format_markups(zip(labels, places, strict=False), space)
        (tmp_path / f"{name}.mrk.json").write_text(text)
        return tmp_path

    return write


def numbered(prefix, count=12):
    return [f"{prefix}{k}" for k in range(1, count + 1)]


def said(caught):
    return [str(warning.message) for warning in caught]


def test_prefixes_are_stripped_file_by_file(slicer):
    """2 of 8 files say LM1, the others carry a prefix of their own: 12 landmarks, not 84."""
    for k in range(6):
        folder = slicer(f"skull{k}", numbered(f"ID_{k}00-"))
    slicer("odd1", numbered("LM"))
    slicer("odd2", numbered("LM0")[:9] + numbered("LM")[9:])
    with pytest.warns(DefgpaWarning, match="matched by that number.*match='label'") as caught:
        shapes = read_shapes(folder)
    assert shapes.landmarks == tuple(numbered(""))
    assert shapes.visible.all()
    assert len(said(caught)) == 1


def test_a_prefix_with_a_typo_in_one_label_is_matched_by_position(slicer):
    for k in range(5):
        folder = slicer(f"skull_{k}", numbered(f"skull_{k}-"))
    slicer("skull_5", [*numbered("skull_5-", 6), "skul_5-7", *numbered("skull_5-")[7:]])
    with pytest.warns(DefgpaWarning, match=r"1 shape differ.*'skull_5'.*match='label'") as caught:
        shapes = read_shapes(folder)
    assert shapes.points.shape == (6, 12, 3)
    assert shapes.visible.all()
    assert len(said(caught)) == 1


def test_a_file_that_lacks_a_landmark_is_matched_by_its_numbers(slicer):
    for k in range(3):
        folder = slicer(f"s{k}", numbered(f"s{k}-"))
    slicer("s9", numbered("s9-")[1:], PLACES[1:])
    shapes = read_shapes(folder)
    assert shapes.visible[-1].tolist() == [False] + [True] * 11
    assert shapes.visible[:-1].all()


def test_other_words_for_all_landmarks_are_matched_by_position_with_one_note(slicer):
    words = [f"word {letter}" for letter in "abcdefghijkl"]
    folder = slicer("a", words)
    slicer("b", words)
    slicer("c", [word.upper().replace("WORD", "place") for word in words])
    with pytest.warns(DefgpaWarning, match=r"labels of 1 shape differ.*'place A' for") as caught:
        shapes = read_shapes(folder)
    assert shapes.landmarks == tuple(words)
    assert len(said(caught)) == 1


def test_capitals_of_forty_labels_are_one_note(slicer):
    places = RNG.normal(size=(41, 3))
    words = [f"{a}{b} point" for a in "abcdefg" for b in "uvwxyz"][:41]
    folder = slicer("a", words, places)
    slicer("b", [word.capitalize() for word in words], places)
    with pytest.warns(DefgpaWarning) as caught:
        assert read_shapes(folder).points.shape == (2, 41, 3)
    assert len(said(caught)) == 1


def test_match_label_keeps_them_apart_and_match_position_joins_anything(slicer):
    folder = slicer("a", list("pqrs"))
    slicer("b", list("pqrs"))
    slicer("c", list("spqr"))
    by_label = read_shapes(folder, match="label")
    assert by_label.landmarks == tuple("pqrs")
    np.testing.assert_array_equal(by_label["c"][1], PLACES[2] + 2)
    by_position = read_shapes(folder, match="position")
    np.testing.assert_array_equal(by_position["c"][1], PLACES[1] + 2)
    slicer("d", list("wxyz"))
    with pytest.warns(DefgpaWarning):
        assert read_shapes(folder, match="label").n_landmarks == 8
    assert read_shapes(folder, match="position").landmarks == tuple("pqrs")


def test_match_position_needs_equal_counts(slicer):
    folder = slicer("a", list("pqr"))
    slicer("b", list("pq"))
    with pytest.raises(FormatError, match=r"'a' .* has 3, 'b' .* has 2"):
        read_shapes(folder, match="position")


def test_labels_that_two_files_have_in_other_places_are_left_as_they_are(slicer):
    folder = slicer("a", ["A", "B", "C"])
    slicer("b", ["B", "C", "D"])
    assert read_shapes(folder).landmarks == ("A", "B", "C", "D")


@pytest.mark.parametrize(
    ("labels", "same"),
    [
        ("nasion tip base", False),  # equal sets need no help
        ("Nasion tip base", True),
        ("nasoin tip base", True),
        ("apex tip base", False),  # one word for another may be another landmark
        ("nasion tip", False),
        ("a b c", True),
        ("tip a b", False),  # a word at another place is that landmark
        ("nasion1 tip base", False),
    ],
)
def test_when_labels_are_two_spellings_of_the_same(labels, same):
    assert _is_respelling(tuple(labels.split()), ("nasion", "tip", "base")) is same


def test_a_number_is_never_another_number():
    assert not _is_respelling(("1", "2", "4"), ("1", "2", "3"))
    assert not _is_respelling(("4", "5", "6"), ("1", "2", "3"))


def test_a_set_that_hardly_overlaps_is_pointed_out(slicer):
    for k, count in enumerate((9, 10, 11, 12)):
        words = [f"{letter}{'xyzw'[k] * 3}" for letter in "abcdefghijkl"[:count]]
        folder = slicer(f"s{k}", words)
    with pytest.warns(DefgpaWarning) as caught:
        read_shapes(folder)
    first, last = said(caught)
    assert "match none of the others" in first
    assert "42 of 42 landmarks are seen in 1 of 4 shapes at most (75% of all is missing)" in last


def test_a_set_with_holes_is_not(slicer):
    for k in range(6):
        folder = slicer(f"s{k}", list("abcdefghijkl")[k : k + 6], PLACES[k:])
    assert read_shapes(folder).n_landmarks == 11


def test_a_code_is_meant_in_the_system_of_the_file_or_of_its_program(slicer):
    places = np.array([[0.5, 1, 2], [3, 4, 5], [6, 7, 9]])
    codes = np.full((1, 3), -1000.0)
    folder = slicer("a", "pqrs", np.vstack([places, codes]), "LPS")
    moved = np.vstack([places, codes * [-1, -1, 1] - 1])
    slicer("b", "pqrs", moved, "LPS")
    slicer("c", "pqrs", np.vstack([places, codes - 2]), "RAS")
    shapes = read_shapes(folder, missing=-1000)
    assert shapes.visible.tolist() == [[True, True, True, False]] * 3
    assert read_shapes(folder).visible.all()


@pytest.mark.parametrize("prefix", ["F-", "LM", ""])
def test_a_file_that_counts_from_zero_is_not_shifted(slicer, prefix):
    for k in range(4):
        folder = slicer(f"s{k}", [f"{prefix}{j + (k != 2)}" for j in range(12)])
    with pytest.warns(DefgpaWarning, match=f"'{prefix}0' for '{prefix}1'.*matched by position"):
        shapes = read_shapes(folder)
    assert shapes.landmarks == tuple(numbered(prefix))
    assert shapes.visible.all()


def test_a_prefix_that_ends_in_a_digit_is_not_read_into_the_numbers(slicer):
    """skull_71 … skull_712 are landmarks 1 to 12 of skull 7."""
    for k in range(5):
        folder = slicer(f"skull_{k}", numbered(f"skull_{k}-"))
    slicer("skull_7", numbered("skull_7"))
    with pytest.warns(DefgpaWarning, match=r"'skull_71' for '1'.*matched by position") as caught:
        shapes = read_shapes(folder)
    assert shapes.landmarks == tuple(numbered(""))
    assert shapes.visible.all()
    assert len(said(caught)) == 1


def test_zeros_before_a_number_make_no_other_landmark(slicer):
    folder = slicer("a", numbered("LM"))
    slicer("b", [f"LM{k:02d}" for k in range(1, 13)])
    slicer("c", [f"LM{k:03d}" for k in range(3, 13)], PLACES[2:])
    shapes = read_shapes(folder)
    assert shapes.landmarks == tuple(numbered("LM"))
    assert shapes.visible.sum(axis=1).tolist() == [12, 12, 10]


WORDS = ("nasion", "nasal tip", "left eye", "right eye")


@pytest.mark.parametrize("prefix", ["skull_{}_", "{}. ", "my skull {}: "])
def test_words_before_the_name_of_a_landmark_are_stripped_file_by_file(slicer, prefix):
    for k in range(4):
        folder = slicer(f"s{k}", [prefix.format(k) + word for word in WORDS])
    slicer("bare", WORDS)
    slicer("fewer", [prefix.format(7) + word for word in WORDS[:3]])
    shapes = read_shapes(folder)
    assert shapes.landmarks == WORDS
    assert shapes.visible.sum() == 23


def test_what_all_files_begin_with_stays(slicer):
    folder = slicer("a", [f"skull_{word}" for word in WORDS])
    slicer("b", [f"skull_{word}" for word in WORDS])
    slicer("c", [f"skull_{word}" for word in WORDS[:3]])
    assert read_shapes(folder).landmarks == tuple(f"skull_{word}" for word in WORDS)


@pytest.mark.parametrize("odd", ["N", "F-11"])
def test_one_label_of_its_own_in_a_set_of_equal_counts_is_matched_by_position(slicer, odd):
    for k in range(4):
        folder = slicer(f"s{k}", [*numbered("F-", 11), "F-99"])
    slicer("odd", [*numbered("F-", 10), f"{odd}0", "F-99"])
    with pytest.warns(DefgpaWarning, match=f"'{odd}0' for 'F-11'.*by position.*match='label'"):
        shapes = read_shapes(folder)
    assert shapes.n_landmarks == 12
    assert shapes.visible.all()


def test_without_a_majority_another_word_is_another_landmark_and_pointed_out(slicer):
    folder = slicer("a", WORDS)
    slicer("b", ["bregma", *WORDS[1:]])
    with pytest.warns(DefgpaWarning, match=r"'b' .* 'bregma' where others have 'nasion'.*position"):
        shapes = read_shapes(folder)
    assert shapes.n_landmarks == 5
    assert read_shapes(folder, match="position").n_landmarks == 4


def test_where_a_file_lacks_a_landmark_another_word_is_another_landmark(slicer):
    """Files that leave out what was not seen: one that has 'd' for the usual 'c' saw it."""
    for k in range(4):
        folder = slicer(f"s{k}", ["a", "b", "c", "e"])
    slicer("d", ["a", "b", "d", "e"])
    slicer("all", ["a", "b", "c", "d", "e"])
    assert read_shapes(folder).landmarks == ("a", "b", "c", "d", "e")


def test_a_label_said_twice_is_matched_by_position(slicer):
    for k in range(3):
        folder = slicer(f"s{k}", WORDS)
    slicer("odd", [WORDS[0], WORDS[0], *WORDS[2:]])
    with pytest.warns(DefgpaWarning, match="'nasion' for 'nasal tip'"):
        shapes = read_shapes(folder)
    assert shapes.landmarks == WORDS
    assert shapes.visible.all()
    with pytest.raises(FormatError, match=r"two landmarks with the label 'nasion'.*match='posi"):
        read_shapes(folder, match="label")


def test_the_note_says_whose_labels_are_taken_where_no_two_files_agree(slicer):
    for k in range(4):
        folder = slicer(f"s{k}", [f"{word}{'abcd'[k]}" for word in ("tip", "base", "eye")])
    with pytest.warns(DefgpaWarning, match=r"labels of 3 shapes differ from those of 's0' \("):
        assert read_shapes(folder).n_landmarks == 3


def test_files_of_which_no_two_agree_get_one_note(slicer):
    for k in range(5):
        folder = slicer(f"s{k}", [*WORDS[:3], f"own {'abcde'[k] * 9}"])
    with pytest.warns(DefgpaWarning) as caught:
        assert read_shapes(folder).n_landmarks == 8
    assert [note[:53] for note in said(caught)] == [
        "5 of 8 landmarks are seen in 1 of 5 shapes at most (5"
    ]
