"""TPS files: every convention of tpsDig and geomorph reads right, and mistakes are located."""

import re
from functools import partial

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes, write_shapes
from defgpa.io.text import tps as tps_reader
from defgpa.shapes import Shapes


@pytest.fixture
def tps(read_text):
    return partial(read_text, "wings.tps")


def test_names_images_and_comments_are_kept(tps, tmp_path):
    shapes = tps(
        "LM=2\n1 2\n3 4\nIMAGE=C:\\pics\\a.jpg\nID=first\nCOMMENT=old\nLM=2\n5 6\n7 8\nID=b\n"
    )
    assert shapes.names == ("first", "b")
    assert shapes.metadata["images"] == ("C:\\pics\\a.jpg", None)
    assert shapes.metadata["comments"] == ("old", None)
    np.testing.assert_array_equal(shapes.points, [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    write_shapes(shapes, tmp_path / "again.tps")
    assert read_shapes(tmp_path / "again.tps").metadata["images"] == shapes.metadata["images"]
    assert read_shapes(tmp_path / "again.tps").metadata["comments"] == ("old", None)


def test_scale_multiplies_the_coordinates(tps):
    shapes = tps("LM=2\n1 2\n3 4\nSCALE=0.5\nLM=2\n1 2\n3 4\nSCALE=2\n")
    np.testing.assert_array_equal(shapes.points[:, 1], [[1.5, 2], [6, 8]])
    assert shapes.metadata["scales"] == (0.5, 2.0)


def test_a_scale_that_some_specimens_lack_is_pointed_out(tps):
    with pytest.warns(DefgpaWarning, match="1 of 2 specimens have no SCALE \\('b'\\)"):
        shapes = tps("LM=2\n1 2\n3 4\nSCALE=0.5\nID=a\nLM=2\n1 2\n3 4\nID=b\n")
    np.testing.assert_array_equal(shapes["b"], [[1, 2], [3, 4]])


def test_three_dimensions_with_either_key(tps):
    assert tps("LM3=2\n1 2 3\n4 5 6\n").points.shape == (1, 2, 3)
    assert tps("LM=2\n1 2 3\n4 5 6\n").points.shape == (1, 2, 3)


@pytest.mark.parametrize("gap", ["NA NA", "nan\tNaN", "N/A n/a"])
def test_words_for_missing_landmarks(tps, gap):
    shapes = tps(f"LM=3\n1 2\n{gap}\n3 4\n")
    assert shapes.visible.tolist() == [[True, False, True]]


def test_negative_coordinates_are_missing_only_on_demand(tps):
    text = "LM=3\n1 2\n-1 -1\n3 -4\nSCALE=0.5\n"
    assert tps(text).visible.all()
    assert tps(text, missing="negative").visible.tolist() == [[True, False, False]]


def test_a_missing_code_is_compared_before_scaling(tps):
    shapes = tps("LM=3\n1 2\n-1 -1\n-2 -2\nSCALE=0.5\n", missing=-1)
    assert shapes.visible.tolist() == [[True, False, True]]


def test_a_name_is_the_id_or_the_image_or_the_file(tps):
    with_image = tps("LM=1\n1 2\nIMAGE=pics/w 1.v2.JPG\nLM=1\n3 4\n")
    assert with_image.names == ("w 1.v2", "wings_2")
    assert tps("LM=1\n1 2\n").names == ("wings",)


def test_repeated_ids_are_numbered_and_pointed_out(tps):
    with pytest.warns(DefgpaWarning, match="occur more than once .*: '0'"):
        shapes = tps("LM=1\n1 2\nID=0\nLM=1\n1 2\nID=0\nLM=1\n1 2\nID=0_2\nLM=1\n1 2\nID=0\n")
    assert shapes.names == ("0", "0_3", "0_2", "0_4")


def test_keys_in_any_case_and_unknown_ones_with_their_rows(tps):
    shapes = tps("comment=made by hand\nlm = 2\n1 2\n3 4\nRADII=2\n9\n9\nVARIABLES=x\nid= a \n")
    assert shapes.names == ("a",)
    np.testing.assert_array_equal(shapes.points[0], [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    "encoded",
    [
        "LM=2\r\n1 2\r\n3 4\r\nID=é\r\n".encode("utf-8-sig"),
        "LM=2\r1 2\r3 4\rID=é\r".encode("utf-16"),
        "LM=2\n1 2\n\n3 4\nID=é\n\x1a".encode("latin-1"),
        b"\xfe\xff" + "LM=2\n1\xa02\n\t3 4  \nID=é".encode("utf-16-be"),
    ],
)
def test_encodings_and_line_ends_of_every_age(tps, encoded):
    shapes = tps(encoded)
    assert shapes.names == ("é",)
    np.testing.assert_array_equal(shapes.points[0], [[1, 2], [3, 4]])


def test_a_specimen_without_landmarks_sees_none(tps):
    shapes = tps("LM=0\nIMAGE=a.jpg\nLM=2\n1 2\n3 4\nIMAGE=b.jpg\n")
    assert shapes.names == ("a", "b")
    assert shapes.visible.tolist() == [[False, False], [True, True]]


CURVES = (
    "LM=1\n1 2\nCURVES=2\nPOINTS=2\n3 4\n5 6\nPOINTS=1\n7 8\nOUTLINES=1\nPOINTS=1\n9 9\nID={}\n"
)


def test_points_of_curves_follow_the_landmarks(tps):
    shapes = tps(CURVES.format("a") + CURVES.format("b"))
    assert shapes.landmarks == ("1", "curve1_1", "curve1_2", "curve2_1", "outline1_1")
    np.testing.assert_array_equal(shapes["b"], [[1, 2], [3, 4], [5, 6], [7, 8], [9, 9]])


def test_curves_without_landmarks_are_shapes(tps):
    first = "LM=0\nOUTLINES=1\nPOINTS=3\n1 2\n3 4\n5 6\n"
    assert tps(first * 2).landmarks == ("outline1_1", "outline1_2", "outline1_3")


def test_unequal_curves_are_left_out_with_a_warning(tps):
    text = CURVES.format("a") + "LM=1\n1 2\nCURVES=1\nPOINTS=1\n3 4\nID=b\n"
    with pytest.warns(DefgpaWarning, match="curves do not have the same number of points"):
        shapes = tps(text)
    assert shapes.points.shape == (2, 1, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LM=3\n1 2\n3 4\nID=a\n", "line 1: expected 3 rows after LM=3; found 2"),
        ("LM=1\n1 2\n3 4\nID=a\n", "line 1: expected 1 rows after LM=1; found 2"),
        (
            "LM=1\n1 2\nCURVES=2\nPOINTS=1\n3 4\n",
            "expected 2 times POINTS= after CURVES=2; found 1",
        ),
        ("LM=1\n1 2\nID=a\n3 4\n", "line 4: expected another KEY=value; found '3 4'"),
    ],
)
def test_a_wrong_count_is_an_error_or_a_warning(tps, text, message):
    with pytest.raises(FormatError, match=re.escape(message)):
        tps(text)
    with pytest.warns(DefgpaWarning, match=re.escape(message)):
        shapes = tps(text, on_mismatch="warn")
    np.testing.assert_array_equal(shapes.points[0, 0], [1, 2])


def test_many_wrong_counts_are_one_warning(tps):
    with pytest.warns(DefgpaWarning, match=r"Likewise lines \d+, \d+\.") as caught:
        tps("LM=3\n1 2\n3 4\nLM=3\n1 2\n3 4\nLM=1\n1 2\n3 4\n", on_mismatch="warn")
    assert len(caught) == 1


UNFINISHED = (
    "LM=2\n1 2\n3 4\nID=a\nLM=1\n1 2\nID=b\nLM=2\n1 2\n3 5\nID=c\nLM=3\n1 2\n3 4\n5 6\nID=d\n"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LM=2\n1 2\n3 oops\n", "line 3: expected a number; found 'oops'"),
        ("LM=2\n1,5 2,5\n3 4\n", "line 2: expected a number with a decimal point; found '1,5'"),
        ("LM=2\n1 2\n3\n", "line 3: expected 2 coordinates; found '3'"),
        ("LM=2\n1 2\n3 4 5\n", "line 3: expected 2 coordinates; found '3 4 5'"),
        ("LM=1\n1 2 3 4\n", "line 2: expected 2 or 3 coordinates"),
        ("LM=2\n1 2\n1_0 4\n", "line 3: expected a number; found '1_0'"),
        ("LM=two\n1 2\n3 4\n", "line 1: expected a whole number as LM=; found 'two'"),
        ("LM=99999999999999999999\n1 2\n", "line 1: expected a whole number as LM="),
        ("LM=2\n1 2\n3 = 4\n", "line 3: expected KEY=value or coordinates; found '3 = 4'"),
        ("ID=a\nLM=1\n1 2\nLM=1\n1 2\n", "line 1: expected LM= first; found ID="),
        ("ID=a\nLM=1\n1 2\nID=b\n", "line 1: expected LM= first; found ID="),
        ("1 2\nLM=1\n1 2\n", "line 1: expected LM=; found '1 2'"),
        ("LM3=1\n1 2 3\nCURVES=1\nPOINTS=1\n1 2\n", "expected landmarks and curves in one dim"),
        ("ID=a\n", "has no specimen: expected a line LM=n"),
        ("IMG=a\n", "has no specimen: expected a line LM=n"),
        *[
            (f"LM=2\n1 2\n3 4\nSCALE={scale}\n", "line 4: expected a positive SCALE")
            for scale in ("0", "-1", "inf", "NA")
        ],
        ("LM3=2\n1 2\n3 4\n", "line 1: expected 3 coordinates a row after LM3="),
        ("LM=2 x\n1 2\n3 4\n", "a whole number as LM=; found '2 x'"),
        ("LM=0\nID=a\nLM=0\nID=b\n", "no landmarks in "),
        (
            "LM=0\nCURVES=1\nPOINTS=1\n3 4\nLM=0\nCURVES=1\nPOINTS=2\n3 4\n5 6\n",
            "Resample the curves",
        ),
        ("LM=2\n1 2\n3 NA\n", "Landmark '2' of 'wings' (.*wings.tps) is half missing"),
        ("LM=2\n1 2\n3 1e999\n", "Landmark '2' of 'wings' (.*wings.tps) has an infinite"),
        ("LM=2\n1 2\n3 1e300\nSCALE=1e300\n", "Landmark '2' of 'wings' .* infinite"),
        ("LM=1\n1 2\nID=a\nLM=2\n1 2\n3 4\nID=b\n", "'a' .* has 1, 'b' .* has 2. Put NA"),
        ("LM=1\n1 2\nID=a\nLM3=1\n1 2 3\nID=b\n", "'a' .* is 2-D, 'b' .* is 3-D"),
        (
            UNFINISHED,
            "'a' .* has 2 (and so do 1 more), 'b' .* has 1, 'd' .* has 3.*incomplete='drop'",
        ),
        ("LM=2\n1 2\nID=a\nLM=1\n1 2\nID=b\n", "1. (on_mismatch='warn' takes what there is.)"),
    ],
)
def test_a_mistake_is_named_with_its_line(tps, text, message):
    with pytest.raises(FormatError, match=re.escape(message).replace(r"\.\*", ".*")) as error:
        tps(text)
    assert "wings.tps" in str(error.value)


def test_scaled_shapes_are_read_back_equal(tps, tmp_path):
    shapes = tps("LM=2\n1.1 2.7\n3.3 4.9\nSCALE=0.0123456789\nID=a\n")
    write_shapes(shapes, tmp_path / "again.tps")
    assert read_shapes(tmp_path / "again.tps") == shapes


def test_curves_are_written_as_curves(tps, tmp_path):
    shapes = tps(CURVES.format("a") + CURVES.format("b"))
    write_shapes(shapes, tmp_path / "again.tps")
    assert read_shapes(tmp_path / "again.tps") == shapes
    written = (tmp_path / "again.tps").read_text()
    assert written.startswith("LM=1\n1.0 2.0\nCURVES=2\nPOINTS=2\n3.0 4.0\n5.0 6.0\nPOINTS=1\n")


@pytest.mark.parametrize(
    "labels", [("apex", "base"), ("curve1_1", "2"), ("curve2_1", "curve2_2"), ("1", "curve1_2")]
)
def test_labels_that_tps_cannot_hold_are_left_out_with_a_warning(tmp_path, labels):
    shapes = Shapes.specimens([[[1.0, 2.0], [3.0, 4.0]]], landmarks=labels)
    with pytest.warns(DefgpaWarning, match="no landmark labels"):
        write_shapes(shapes, tmp_path / "set.tps")
    assert read_shapes(tmp_path / "set.tps").landmarks == ("1", "2")


def test_names_with_line_breaks_are_written_on_one_line(tmp_path):
    shapes = Shapes.specimens([[[1.0, 2.0]], [[3.0, 4.0]]], names=["a\nLM=3", " b"])
    with pytest.warns(DefgpaWarning, match="cannot hold the name"):
        write_shapes(shapes, tmp_path / "set.tps")
    assert read_shapes(tmp_path / "set.tps").names == ("a_LM=3", "_b")


def test_names_are_taken_from_what_is_chosen(tps):
    text = "LM=1\n1 2\nIMAGE=p.jpg\nID=0\nLM=1\n3 4\nIMAGE=q.jpg\nID=1\n"
    assert tps(text).names == tps(text, names="image").names == ("p", "q")
    assert tps(text, names="id").names == ("0", "1")
    assert tps(text, names="file").names == ("wings_1", "wings_2")
    with pytest.raises(FormatError, match=r"wings\.tps names no images"):
        tps("LM=1\n1 2\nID=a\n", names="image")


def test_unfinished_specimens_are_left_out_on_request_with_a_note(tps):
    with pytest.warns(DefgpaWarning, match=r"most have 2 landmarks\): 'b' \(1\), 'd' \(3\)\."):
        shapes = tps(UNFINISHED, incomplete="drop")
    assert shapes.names == ("a", "c")
    assert shapes.metadata["incomplete"] == ("b", "d")


def test_leniency_is_offered_only_where_it_helps(tps):
    text = "LM=2\n1 2\n3 4\nID=a\nLM=2\n1 2\nID=b\nLM=2\n1 2\n3 5\nID=c\n"
    with pytest.raises(FormatError, match=r"line 5: .*\(Finish it.*incomplete='drop'\.\)") as error:
        tps(text)
    assert "on_mismatch" not in str(error.value)
    with pytest.warns(DefgpaWarning) as caught:
        assert tps(text, incomplete="drop").names == ("a", "c")
    assert len(caught) == 2


def test_specimens_without_landmarks_are_not_unfinished(tps):
    assert tps("LM=0\nID=a\nLM=1\n1 2\nID=b\n").n_shapes == 2


def test_the_specimen_whose_curves_differ_is_named(tmp_path):
    """The right file: the first one is like all the others."""
    for name in "abcd":
        text = CURVES.format(name) if name != "c" else "LM=1\n1 2\nCURVES=1\nPOINTS=1\n3 4\nID=c\n"
        (tmp_path / f"{name}.tps").write_text(text)
    with pytest.warns(DefgpaWarning, match=r"\(4 in most, 1 in 'c' \(.*c\.tps\)\)"):
        read_shapes(tmp_path)


def test_a_name_may_follow_the_count_after_a_tab(tps):
    """Modan writes LM=2<TAB>name."""
    shapes = tps("LM=2\tAcaste downingiae\n1 2\n3 4\nLM=2\tother\n5 6\n7 8\nID=own\n")
    assert shapes.names == ("Acaste downingiae", "own")


def test_without_a_majority_nobody_is_left_out(tps):
    text = "".join(f"LM={k}\n" + "1 2\n" * k + f"ID={k}\n" for k in (1, 2, 3))
    with pytest.raises(FormatError, match=r"'1' .* has 1, '2' .* has 2, '3' .* has 3"):
        tps(text, incomplete="drop")


def test_names_and_scales_may_stand_before_their_landmarks(tps):
    shapes = tps("ID=a\nSCALE=2\nLM=2\n1 2\n3 4\nIMAGE=b.jpg\nSCALE=1\nLM=2\n5 6\n7 8\n")
    assert shapes.names == ("a", "b")
    np.testing.assert_array_equal(shapes.points, [[[2, 4], [6, 8]], [[5, 6], [7, 8]]])


@pytest.mark.parametrize(
    ("ids", "images", "names"),
    [
        ("0 1 2 3", "pqrs", "pqrs"),
        ("1 2 3 4", "pqrs", "pqrs"),
        ("000 001 002 003", "pqrs", "pqrs"),
        ("0 1 3 7", "pqrs", "pqrs"),  # some were deleted
        ("0 1 0 1", "pqrs", "pqrs"),  # appended by tpsUtil
        ("0 1 2 0 1 2 0 1 2", "abcdefghi", "abcdefghi"),
        ("0 1 2 3", "ppqq", ["0", "1", "2", "3"]),
        ("0 1 3 9", "pqrs", ["0", "1", "3", "9"]),  # numbers that somebody gave
        ("2 3 4 5", "pqrs", ["2", "3", "4", "5"]),
        ("1 3 2 4", "pqrs", ["1", "3", "2", "4"]),
        (f"0 1 2 {'9' * 5000}", "pqrs", ["0", "1", "2", "9" * 5000]),
        ("7a 8 9 10", "pqrs", ["7a", "8", "9", "10"]),
    ],
)
def test_identifiers_that_only_count_give_way_to_images(tps, ids, images, names):
    text = "".join(
        f"LM=3\n0 {k}\n1 0\n{k} 3\nIMAGE=C:\\photos\\{image}.JPG\nID={word}\n"
        for k, (word, image) in enumerate(zip(ids.split(), images, strict=True))
    )
    assert tps(text).names == tuple(names)
    if len(set(images)) == len(images):
        assert tps(text, names="image").names == tuple(images)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_file_is_the_same_however_it_is_cut_into_blocks(tmp_path, monkeypatch, encoding, newline):
    rows = newline.join(f"{k} {k / 7!r}" for k in range(2000))
    text = f"LM=2000\n{rows}\nID=Käfer\nCOMMENT=a=b\nSCALE=1\nLM=2000\n{rows}\nSCALE=2\n\x1a"
    path = tmp_path / "a.tps"
    path.write_bytes(text.replace("\n", newline).encode(encoding))
    complete = read_shapes(path)
    monkeypatch.setattr("defgpa.io.text.lines._BLOCK", 100)
    in_blocks = read_shapes(path)
    assert complete == in_blocks
    assert complete.names == ("Käfer", "a_2")
    assert complete.metadata["comments"] == ("a=b", None)
    np.testing.assert_array_equal(2 * complete.points[0], complete.points[1])


@pytest.mark.parametrize("indent", ["", "  ", "\t"])
@pytest.mark.parametrize("gap", ["NA NA NA", "nan nan nan"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_many_specimens_are_parsed_at_once_as_each_alone(
    tmp_path, monkeypatch, indent, gap, ending
):
    points = np.random.default_rng(0).normal(size=(30, 7, 3))
    points[4, 2] = np.nan
    lines = []
    for k, shape in enumerate(points):
        lines += ["LM3=7", *(f"{indent}{a!r}  {b!r} {c!r} " for a, b, c in shape.tolist())]
        lines += [f"ID=s{k}", *[""] * (k == 9)]
    text = ending.join(lines).replace("nan  nan nan", gap)
    (tmp_path / "a.tps").write_text(text, newline="")
    calls = []
    parse = tps_reader.parse_points
    record = lambda *words: calls.append(words) or parse(*words)  # noqa: E731
    monkeypatch.setattr(tps_reader, "parse_points", record)
    monkeypatch.setattr(tps_reader, "_BATCH", 2000)
    np.testing.assert_array_equal(read_shapes(tmp_path / "a.tps").points, points)
    assert calls == []
    (tmp_path / "a.tps").write_text(text.replace(gap, f"{gap}\n \n"))
    np.testing.assert_array_equal(read_shapes(tmp_path / "a.tps").points, points)
    assert 0 < len(calls) < 15  # of one batch alone
    (tmp_path / "a.tps").write_text(text.replace(gap, "1 2"))
    with pytest.raises(FormatError, match="line 40: expected 3 coordinates; found '1 2'"):
        read_shapes(tmp_path / "a.tps")
