"""Files, folders and patterns become one set of shapes, whatever their formats and names."""

import os
import random
import re
from pathlib import Path

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError, ShapeError
from defgpa.formatting import make_sort_key
from defgpa.io import FORMATS, Document, Specimen, read_shapes, write_shapes
from defgpa.io.format import ReadOptions
from defgpa.io.landmark_matching import merge_label_orders
from defgpa.io.merge import merge_documents
from defgpa.io.text import lines
from defgpa.shapes import Shapes
from io_support import awkward_shapes, format_markups


def tps(name, *rows):
    body = "\n".join(rows or ("1 2", "3 4"))
    return f"LM={len(rows) or 2}\n{body}\n" + (f"ID={name}\n" if name else "")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to write files into, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_files(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


# What may be named


PTS = "version: 1\nn_points: 1\n{\n1 2\n}\n"
X, Y = tps("x"), tps("y")
UNRELATED = {
    "a.tps": X,
    "README.txt": "Wings, 12 of them.\nVersion 1.2\n",
    ".DS_Store": b"\0\0\0\1Bud1",
    "._a.tps": b"\0\5\26\7\0\2",
    "photo.jpg": b"\xff\xd8\xff\xe0" + bytes(100),
    "list.csv": "wing,species\na,Aedes\n",
    "empty.txt": "",
}
SHOWN = {"README.md": f"A file looks like this:\n\n{Y}", "analysis.R": "cat('\nLM=2\n')\n"}
THREE = {"a/1.tps": tps("1"), "b/2.tps": tps("2"), "c/3.tps": tps("3")}


@pytest.mark.parametrize(
    ("files", "source", "names"),
    [
        ({"a.tps": X}, "a.tps", "x"),
        ({"a.tps": X}, Path("a.tps"), "x"),
        ({"a.tps": X}, "~/a.tps", "x"),
        (THREE, ("a", "b/*", Path("c/3.tps")), "123"),
        ({"wing[1].tps": X}, "wing[1].tps", "x"),  # a file before it is a pattern
        ({"a.tps": tps("s10") + tps("s2")}, "a.tps", ("s10", "s2")),
        ({"f10.tps": X + Y, "f9.tps": tps("q") + tps("p")}, ".", "qpxy"),
        ({"f10.tps": X, "f9.tps": tps("q") + tps("p")}, ".", "qpx"),
        ({"a.csv": X}, "a.csv", "x"),  # content decides where the suffix is wrong
        ({"b.dat": "id,x1,y1\nq,1,2\n"}, "b.dat", "q"),
        ({"c.tps": PTS}, "c.tps", "c"),
        ({"a.digitised": X}, ".", "x"),
        ({"a.tps": X, "b.csv": "id,x1,y1,x2,y2\ny,5,6,7,8\n"}, ["a.tps", "b.csv"], "xy"),
        ({"a.tps": X, **SHOWN}, ".", "x"),
        (UNRELATED, ".", "x"),
        (UNRELATED, "*", "x"),
    ],
)
def test_every_kind_of_source_is_read_in_order(folder, monkeypatch, files, source, names):
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    write_files(folder, files)
    (folder / "inner.tps").mkdir()
    sources = (path for path in source) if isinstance(source, tuple) else source
    assert read_shapes(sources).names == tuple(names)


@pytest.mark.parametrize(
    "source", ["set", "set/*.tps", "set/**/*.tps", ["set/s10.tps", "set/s2.tps", "set/s1.tps"]]
)
def test_many_files_come_in_natural_order(folder, source):
    (folder / "set").mkdir()
    for name in ("s10", "s2", "s1"):
        (folder / "set" / f"{name}.tps").write_text(tps(name))
    shapes = read_shapes(source)
    assert shapes.names == ("s1", "s2", "s10")
    assert shapes.metadata["sources"] == tuple(
        str(Path("set") / f"{name}.tps") for name in shapes.names
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere.tps", "There is no file or folder 'nowhere.tps'"),
        ("*.tps", "The pattern '*.tps' matches no file"),
        ("", "There is no file or folder ''"),
        ([], "There is nothing to read: got an empty list of paths"),
        (["nowhere.tps"], "There is no file or folder 'nowhere.tps'"),
        (7, "Expected a path, a folder, a pattern or a list of paths; got int"),
        ([7], "Expected paths in the list; got int: 7"),
        (b"a.tps", "Expected paths in the list; got int"),
        ("a\0b", "There is no file or folder"),
        ("x" * 5000, f"{'x' * 200!r}"),  # whatever the system says of it
        ("~nobody-of-this-name/a.tps", "cannot be read"),
    ],
)
def test_a_source_that_is_not_there_is_refused_in_one_sentence(folder, source, message):
    with pytest.raises(FormatError, match=re.escape(message)):
        read_shapes(source)


BYTES = bytes(range(256))
NUMBERS = {"a.tps": "1 2\n3 4\n", "a.txt": "1 2\n3 4\n"}
NOTES = {"README.txt": "nothing here\n"}
FOLDERS = {"set/skulls/inner/.keep": "", "set/wings/.keep": ""}
NO_FILE = r"has no file of a known format \(there is no file in it"
WINGS = {"fore.tps": X + Y, "hind.tps": tps("x", "1 2") + tps("y", "1 2")}
TWO_SETS = r"different sets: .*fore\.tps has 2 landmarks, .*hind\.tps has 1 landmarks"
OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"


@pytest.mark.parametrize(
    ("files", "source", "options", "message"),
    [
        *[({f"a{s}": BYTES * 8}, f"a{s}", {}, "is not a text file: it holds binary data")
          for s in (".tps", ".nts", ".pts", ".csv")],
        *[({name: b""}, name, {}, f"{re.escape(name)} is empty")
          for name in ("a.tps", "b.csv", "c.mrk.json", "d.unknown")],
        ({"e.tps": b"\xef\xbb\xbf \r\n\x1a"}, "e.tps", {}, r"e\.tps is empty"),
        ({"a.tps": X, "b.tps": ""}, ".", {}, r"b\.tps is empty"),
        *[({"readme.txt": content}, "readme.txt", {},
           r"not a landmark file of a known format.*\.tps.*\.csv")
          for content in (b"Dear all,\nplease find the data.\n", BYTES)],
        (NUMBERS, "a.tps", {}, "line 1: expected LM=; found '1 2'"),
        (NUMBERS, "a.txt", {"format": "tps"}, "expected LM="),
        (NUMBERS, "a.txt", {"format": "tpz"}, r"no format 'tpz'\. There are: 'tps', 'nts'"),
        (FOLDERS, "set", {}, NO_FILE + r"\), but folders: 'skulls', 'wings'.*'set/\*/\*\.tps'"),
        (FOLDERS, "set/skulls", {}, NO_FILE),
        (WINGS, ".", {}, TWO_SETS),
        (WINGS, ".", {"incomplete": "drop"}, TWO_SETS),
        (NOTES, ".", {}, r"has no file of a known format \(it has 1 file: 'README.txt'\)"),
        (NOTES, ".", {"format": "tps"}, "has no tps file"),
        ({"a.tps": X, "b.tps": tps("y", "1 2")}, ["a.tps", "b.tps"], {},
         r"'x' \(a\.tps\) has 2, 'y' \(b\.tps\) has 1"),
        ({"a.csv": "landmark,x,y\ntip,1,2\ntip,3,4\n"}, "a.csv", {},
         r"'a' \(a\.csv\) has two landmarks with the label 'tip'"),
        ({"a.tps": tps("x", "1 2 3")}, "a.tps", {"space": "RAS"},
         "does not say whether it is LPS or RAS"),
        ({"a.xlsx": b"PK\x03\x04 whatever"}, "a.xlsx", {}, r"spreadsheet.*\.csv"),
        ({"a.obj": OBJ, "b.obj": f"{OBJ}v 0 0 1\n"}, ".", {}, "vertices of meshes must correspond"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read_are_named_with_the_reason(
    folder, files, source, options, message
):
    write_files(folder, files)
    with pytest.raises(FormatError, match=message):
        read_shapes(source, **options)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(folder):
    os.mkfifo(folder / "pipe.tps")
    with pytest.raises(FormatError, match="neither a file nor a folder"):
        read_shapes("pipe.tps")


def test_enormous_text_is_refused_before_it_is_read(folder):
    with (folder / "a.tps").open("wb") as file:
        file.write(b"LM=1\n1 2\n")
        file.truncate(2**30 + 1)  # sparse: nothing is stored
    with pytest.raises(FormatError, match=r"has 1\.0 GiB; text is read up to 1 GiB"):
        read_shapes("a.tps")


# Which format


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("on_mismatch", "ignore"),
        ("missing", 10**400),
        ("missing", "all"),
        ("missing", True),
        ("layout", "xyz"),
        ("missing", float("nan")),
        ("space", "RSA"),
        ("match", "name"),
        ("dimension", 4),
        ("names", "label"),
        ("incomplete", "keep"),
    ],
)
def test_an_unknown_option_is_named(folder, option, value):
    (folder / "a.tps").write_text(tps("x"))
    with pytest.raises(FormatError, match=f"The '{option}' parameter of read_shapes must be"):
        read_shapes("a.tps", **{option: value})


def test_tables_that_hold_no_landmarks_are_left_out_aloud(folder):
    (folder / "a.csv").write_text("1,2\n3,4\n")
    (folder / "list.csv").write_text("wing,species\na,Aedes\n")
    with pytest.warns(DefgpaWarning, match="tables without coordinates, left out: 'list.csv'"):
        assert read_shapes(folder).names == ("a",)


def test_files_of_a_folder_that_were_not_read_are_named(folder):
    (folder / "a.tps").write_text(tps("x"))
    (folder / "README.txt").write_text("nothing here\n")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(100))
    (folder / ".hidden").write_text("")
    assert read_shapes(folder).metadata["not_read"] == ("README.txt", "photo.jpg")
    assert "not_read" not in read_shapes("a.tps").metadata


def test_a_file_of_sizes_among_landmark_files_is_passed_over_aloud(folder):
    (folder / "a.nts").write_text("1 2L 4 0 DIM=2\na b\n1 2 3 4\n5 6 7 9\n")
    (folder / "sizes.nts").write_text('" Centroid size\n1 2L 1 0\na b\n1.5\n2.5\n')
    with pytest.warns(DefgpaWarning, match=r"Passed over: .*sizes\.nts has one number a specimen"):
        assert read_shapes(folder).names == ("a", "b")
    with pytest.raises(FormatError, match="no landmarks"):
        read_shapes("sizes.nts")


def test_what_is_to_be_said_of_many_files_is_said_once(folder):
    for k in range(5):
        points = {"p": [k, 0, 0], "": [0, k, 1]}
        (folder / f"s{k}.mrk.json").write_text(format_markups(points))
    with pytest.warns(DefgpaWarning) as caught:
        read_shapes(folder)
    (only,) = caught
    assert "s0.mrk.json: 1 of 2 points have no label" in str(only.message)
    assert str(only.message).endswith(
        "Likewise: 's1.mrk.json', 's2.mrk.json', 's3.mrk.json' and 1 more."
    )


def test_the_most_frequent_format_of_a_folder_is_read_and_said(folder):
    write_files(folder, {"a.pts": PTS, "b.pts": PTS, "c.tps": X})
    message = r"several formats; the 2 pts files are read, others are not \(1 tps\)"
    with pytest.warns(DefgpaWarning, match=message):
        assert read_shapes(folder).names == ("a", "b")
    assert read_shapes(folder, format="TPS").names == ("x",)


# One set out of many


def test_a_name_in_several_files_gives_way_to_the_names_of_the_files(folder):
    (folder / "left.tps").write_text(tps("0"))
    (folder / "right.tps").write_text(tps("0"))
    with pytest.warns(DefgpaWarning, match="occur in several files: '0'"):
        assert read_shapes(folder).names == ("left", "right")


def test_a_name_in_files_of_several_specimens_is_numbered(folder):
    (folder / "left.tps").write_text(tps("0") + tps("1"))
    (folder / "right.tps").write_text(tps("0") + tps("2"))
    with pytest.warns(DefgpaWarning, match=r"more than once \(in .*left.tps.*right.tps'\): '0'"):
        assert read_shapes(folder).names == ("0", "1", "0_2", "2")


def test_labels_of_some_are_taken_where_they_agree(folder):
    (folder / "a.tps").write_text(tps("a"))
    (folder / "b.csv").write_text("landmark,x,y\ntip,5,6\nbase,7,8\n")
    assert read_shapes(["a.tps", "b.csv"]).landmarks == ("tip", "base")
    (folder / "c.csv").write_text("landmark,x,y\nbase,5,6\ntip,7,8\n")
    with pytest.raises(FormatError, match=r"'a' .* has no landmark labels, and others have"):
        read_shapes(["a.tps", "b.csv", "c.csv"])


def test_landmarks_are_matched_by_label_and_missing_without(folder):
    (folder / "a.mrk.json").write_text(format_markups({"A": [1, 2, 3], "B": [4, 5, 6]}))
    (folder / "b.mrk.json").write_text(format_markups({"C": [7, 8, 9], "A": [1, 1, 1]}))
    shapes = read_shapes(folder)
    assert shapes.landmarks == ("C", "A", "B")
    np.testing.assert_array_equal(shapes["a"], [[np.nan] * 3, [1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(shapes["b"], [[7, 8, 9], [1, 1, 1], [np.nan] * 3])


@pytest.mark.parametrize(
    ("sequences", "order"),
    [
        (["ab", "bc"], "abc"),
        (["ac", "abc"], "abc"),
        (["bc", "abc"], "abc"),
        (["abc", "ad"], "abcd"),
        (["ad", "acd", "abd", "bc"], "abcd"),
        (["abc", "cad"], "abcd"),
        (["ab", "ba", "xa"], "abx"),
    ],
)
def test_labels_keep_the_order_that_files_agree_on_or_that_of_first_sight(sequences, order):
    assert merge_label_orders(sequences) == tuple(order)


def test_lps_and_ras_come_together_in_the_space_of_the_first(folder):
    (folder / "a.mrk.json").write_text(format_markups({"A": [1, 2, 3], "B": [4, 5, 6]}, "LPS"))
    (folder / "b.mrk.json").write_text(format_markups({"A": [-1, -2, 3], "B": [-4, -5, 6]}, "RAS"))
    shapes = read_shapes(folder)
    assert shapes.metadata["space"] == "LPS"
    np.testing.assert_array_equal(shapes["a"], shapes["b"])
    turned = read_shapes(folder, space="RAS")
    assert turned.metadata["space"] == "RAS"
    np.testing.assert_array_equal(turned["a"], [[-1, -2, 3], [-4, -5, 6]])


def test_faces_follow_their_landmarks_when_labels_reorder_them(tmp_path):
    points = np.arange(9.0).reshape(3, 3)
    plain = Document((Specimen("a", points, ("A", "B", "C")),))
    turned = Document((Specimen("b", points, ("C", "B", "A")),), faces=np.array([[0, 1, 2]]))
    shapes = merge_documents([(tmp_path, plain), (tmp_path, turned)], ReadOptions())
    assert shapes.landmarks == ("A", "B", "C")
    assert shapes.faces.tolist() == [[2, 1, 0]]


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["a10", "a2", "A1"], ["A1", "a2", "a10"]),
        (["x2y10", "x2y9", "x10y1"], ["x2y9", "x2y10", "x10y1"]),
        (["b", "2", "10", "a"], ["2", "10", "a", "b"]),
        (["s" + "9" * 5000, "s" + "1" * 5001], ["s" + "9" * 5000, "s" + "1" * 5001]),
    ],
)
def test_natural_order(names, order):
    assert sorted(names, key=make_sort_key) == order


# Writing


# STL stores triangles only, and these shapes have none.
WRITABLE = [f for f in FORMATS if f.write and f.name != "stl"]


MESHES = ("ply", "vtk", "vtp", "off", "obj")
SOLID = (*MESHES, "mrk.json", "fcsv", "pp", "scalismo")


@pytest.mark.parametrize(
    ("format_", "dim"),
    [(f, dim) for f in WRITABLE for dim in (2, 3) if f.name not in {2: SOLID, 3: ("coco",)}[dim]],
    ids=lambda value: getattr(value, "name", value),
)
def test_the_same_set_through_every_format_is_the_same_to_the_last_digit(folder, format_, dim):
    points = np.array(awkward_shapes(dim).points)
    if format_.name in (*MESHES, "coco"):
        points = np.nan_to_num(points, nan=0.7)
    if format_.name in ("fcsv", "scalismo"):
        points[2] = points[3]  # they list what is visible, and here nothing is
    shapes = Shapes.specimens(points, names=["s1", "s2", "s9", "s10"])
    target = folder / "set" if format_.one_shape_per_file else folder / f"set{format_.suffixes[0]}"
    write_shapes(shapes, target, format=format_.name)
    assert read_shapes(target) == shapes


@pytest.mark.parametrize("name", [*SOLID, "stl"])
def test_flat_shapes_are_refused_by_formats_of_points_in_space(folder, name):
    with pytest.raises(FormatError, match=r"3-D.*, and these are 2-D"):
        write_shapes(Shapes.specimens(np.ones((1, 4, 2))), folder / "flat", format=name)
    assert list(folder.iterdir()) == []


LABELLED = ("nts", "mrk.json", "fcsv", "pts", "npz", "csv", "csv-long", "csv-points")


@pytest.mark.parametrize("name", LABELLED)
def test_labels_and_their_order_survive_formats_that_have_them(folder, name):
    rng = np.random.default_rng(2)
    points = rng.normal(size=(5, 8, 3))
    points[rng.random((5, 8)) < 0.3] = np.nan
    names, landmarks = [f"s{k}" for k in range(5)], list("hgfedcba")
    shapes = Shapes.specimens(points, names=names, landmarks=landmarks)
    format_ = next(f for f in FORMATS if f.name == name)
    target = folder / "set" if format_.one_shape_per_file else folder / f"set{format_.suffixes[0]}"
    write_shapes(shapes, target, format=name)
    assert read_shapes(target) == shapes


@pytest.mark.parametrize("name", ["syn2d_full", "syn2d_partial", "syn3d_full"])
def test_bare_tables_of_another_program_are_read_digit_by_digit(name):
    folder = Path(__file__).parents[1] / "oracle" / name / "data"
    shapes = read_shapes(folder)
    files = sorted(folder.glob("*.csv"))
    assert shapes.names == tuple(file.stem for file in files)
    expected = [np.loadtxt(file, delimiter=",") for file in files]
    np.testing.assert_array_equal(shapes.points, expected)


def test_a_suffix_chooses_the_format_and_one_shape_may_be_a_file(folder):
    shapes = awkward_shapes(3).take([0])
    for name in ("a 1.tps", "a 1.pts", "a 1.mrk.json"):
        write_shapes(shapes, folder / "new" / name)
        np.testing.assert_array_equal(read_shapes(folder / "new" / name).points, shapes.points)


@pytest.mark.parametrize(
    ("path", "format_", "message"),
    [
        ("a.jpg", None, "has no suffix of a known format (.tps"),
        ("folder", None, "has no suffix of a known format"),
        ("a.pts", None, "cannot hold 4 shapes: pts has one shape a file"),
        ("a.tps", "tpz", "There is no format 'tpz'"),
        (".", "tps", "is a folder, and tps holds all shapes in one file"),
    ],
)
def test_what_cannot_be_written_is_refused_with_the_reason(folder, path, format_, message):
    with pytest.raises(FormatError, match=re.escape(message)):
        write_shapes(awkward_shapes(2), path, format=format_)
    assert list(folder.iterdir()) == []


def test_only_shapes_are_written(folder):
    with pytest.raises(ShapeError, match=r"takes Shapes; got ndarray\. Make them with"):
        write_shapes(np.zeros((2, 3, 2)), "a.tps")


def test_a_place_that_cannot_be_written_is_an_error_of_ours(folder):
    (folder / "file").write_text("")
    with pytest.raises(FormatError, match="cannot be written"):
        write_shapes(awkward_shapes(2), folder / "file" / "a.tps")


def test_half_a_character_in_a_name_is_an_error_of_ours(folder):
    shapes = Shapes.specimens(np.ones((2, 3, 2)), names=["a\udcff", "b"])
    with pytest.raises(FormatError, match=r"a name or label holds '\\udcff'"):
        write_shapes(shapes, folder / "a.tps")
    assert list(folder.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(folder, monkeypatch):
    (folder / "a.tps").write_text("old")
    monkeypatch.setattr(Path, "write_text", lambda *_, **__: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(FormatError, match=r"a\.tps cannot be written: full"):
        write_shapes(awkward_shapes(2), folder / "a.tps")
    assert [path.name for path in folder.iterdir()] == ["a.tps"]
    assert (folder / "a.tps").read_bytes() == b"old"


def test_names_become_names_of_files_that_every_system_takes(folder):
    names = ["a/b", "A\\B", "con", "..", "x" * 300, "é ü.1", "a_b"]
    shapes = Shapes.specimens(np.ones((7, 2, 2)), names=names)
    with pytest.warns(DefgpaWarning, match="cannot name a file as it is"):
        write_shapes(shapes, folder / "set", format="pts")
    assert sorted(path.stem for path in (folder / "set").iterdir()) == sorted(
        ["a_b", "A_B_2", "con_", "_", "x" * 120, "é ü.1", "a_b_3"]
    )


@pytest.mark.parametrize("mark", ["_", " ", "-"])
def test_labels_that_begin_with_the_name_of_their_file_are_matched_by_number(folder, mark):
    for name in ("skull_1", "skull_2"):
        points = {f"{name}{mark}{k}": [k, k * k, 3 * k % 7] for k in range(1, 7)}
        (folder / f"{name}.mrk.json").write_text(format_markups(points))
    shapes = read_shapes(folder)
    assert shapes.landmarks == ("1", "2", "3", "4", "5", "6")
    assert shapes.visible.all()
    assert read_shapes("skull_1.mrk.json").landmarks[0] == f"skull_1{mark}1"


def test_labels_with_a_number_that_is_no_list_are_left_as_they_are(folder):
    for side in ("left", "right"):
        points = {f"{side}_{k}": [k, k * k, 3] for k in range(1, 4)}
        (folder / f"of {side}.mrk.json").write_text(format_markups({"nasion": [0, 0, 0], **points}))
    assert read_shapes(folder).n_landmarks == 7


def test_labels_that_match_nothing_are_pointed_out(folder):
    for name, letters in (("a", "pqr"), ("b", "pqr"), ("c", "xyzw")):
        (folder / f"{name}.mrk.json").write_text(format_markups({s: [1, 2, 3] for s in letters}))
    with pytest.warns(DefgpaWarning) as caught:
        shapes = read_shapes(folder)
    assert shapes.n_landmarks == 7
    messages = [str(warning.message) for warning in caught]
    assert "labels of 'c' (" in messages[0]
    assert "match none of the others: 'x', 'y', 'z' and 1 more" in messages[0]
    assert "4 of 7 landmarks are seen in 1 of 3 shapes at most" in messages[1]
    assert len(messages) == 2


def test_labels_that_differ_in_capitals_alone_are_one_note(folder):
    """Of unequal counts only labels can tell which landmark is which."""
    (folder / "a.mrk.json").write_text(format_markups({"Nasion": [1, 2, 3], "Tip": [1, 2, 4]}))
    more = {"nasion ": [1, 2, 3], "tip": [1, 2, 4], "base": [0, 0, 1]}
    (folder / "b.mrk.json").write_text(format_markups(more))
    with pytest.warns(DefgpaWarning) as caught:
        assert read_shapes(folder).n_landmarks == 5
    messages = [str(warning.message) for warning in caught]
    assert messages[-1].startswith(
        "Labels 'Nasion', 'nasion', and 1 more such are taken as different"
    )
    assert len(messages) == 2


def test_a_file_named_twice_is_read_once(folder):
    (folder / "a.tps").write_text(tps("x"))
    (folder / "b.tps").write_text(tps("y"))
    with pytest.warns(DefgpaWarning, match=r"Named more than once, read once: 'a\.tps'"):
        assert read_shapes(["a.tps", "*.tps"]).names == ("x", "y")


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize(("format_", "name"), [("nts", "a.nts"), ("morphologika", "a.txt")])
def test_what_is_regular_is_parsed_at_once_as_line_by_line(
    tmp_path, monkeypatch, format_, name, gap
):
    points = np.random.default_rng(0).normal(size=(30, 7, 3))
    points[4, 2] = np.nan if gap else 0.0
    shapes = Shapes.specimens(points, names=[f"s{k}" for k in range(30)])
    write_shapes(shapes, tmp_path / name, format=format_)
    monkeypatch.setattr("defgpa.io.text.lines._BLOCK", 3000)
    with monkeypatch.context() as bulk:
        bulk.setattr(f"defgpa.io.text.{format_}.read_lines", None)
        again = read_shapes(tmp_path / name)
    monkeypatch.setattr(f"defgpa.io.text.{format_}._read_in_bulk", lambda *_: None)
    plain = read_shapes(tmp_path / name)
    np.testing.assert_array_equal(again.points, points)
    assert again == plain
    assert again.names == plain.names == shapes.names


ODD_WORDS = (
    *("NA", "nan", "NAN", "NANA", "-nan", "-Infinity", "1e999", "1_0", "0x10", "1d5", "1,5", "−5"),
    *("١", "\xa0", "\x0b", "\x1c", "\u2028", "#", '"1"', "1+2j", "", "null", "#N/A", "1.", ".5"),
    *("++5", "1e5.5", "nan(1)", "\ufeff1", "9" * 400, "1;2"),
)


@pytest.mark.parametrize("block", [1, 2**20])
def test_rows_parsed_in_bulk_are_those_parsed_line_by_line(monkeypatch, block):
    monkeypatch.setattr(lines, "_BLOCK", block)
    rng = random.Random(0)
    n_parsed = 0
    for _ in range(1000):
        d = rng.choice((2, 3, 3, 4))
        rows = []
        for _ in range(rng.randint(1, 4)):
            words = [
                rng.choice(ODD_WORDS) if rng.random() < 0.1 else f"{rng.gauss(0, 9):.6g}"
                for _ in range(d + (rng.random() < 0.05))
            ]
            rows += [rng.choice(("", " ", "\t")) + rng.choice((" ", "\t")).join(words)]
            rows += [""] * (rng.random() < 0.1)
        text = "\n".join(rows)
        in_bulk = lines.parse_rows_in_bulk(text, (2, 3))
        if in_bulk is not None:
            n_parsed += 1
            by_line = lines._parse_points_by_line(Path("a.tps"), text.split("\n"), 1)
            np.testing.assert_array_equal(in_bulk, by_line)
    assert 300 < n_parsed < 900
