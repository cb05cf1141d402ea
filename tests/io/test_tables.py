"""Tables as people have them: rows and columns exchanged, no header, commas as decimal points."""

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes
from defgpa.io.text.dimension import measure_dissimilarity
from io_support import specimens

WINGS = specimens(0, 5, 6, 2)
SKULLS = specimens(1, 7, 4, 3)
LABELS = ("nasion", "left eye", "tip", "base")


def across(points, heads, rows=None):
    """An array as R's write.csv has it: a row a landmark, the shapes side by side."""
    body = [list(row) for row in points.transpose(1, 0, 2).reshape(points.shape[1], -1)]
    if rows is None:
        return [heads, *body]
    return [["", *heads], *([name, *row] for name, row in zip(rows, body, strict=True))]


@pytest.mark.parametrize("rows", [None, "123456", "ghijkl"])
@pytest.mark.parametrize("names", ["1234567", ("DRA.1", "DRA.2", "x", "y y", "9", "u", "v")])
@pytest.mark.parametrize(
    ("points", "axes"),
    [(WINGS, "X1 X2"), (WINGS, "V1 V2"), (WINGS, "1 2"), (SKULLS, "X1 X2 X3")],
    ids=["X1", "V1", "1", "3-D"],
)
def test_an_array_of_r_has_its_shapes_side_by_side(read, points, axes, names, rows):
    n, m, _ = points.shape
    heads = [f'"{axis}.{name}"' for name in names[:n] for axis in axes.split()]
    shapes, messages = read(across(points, heads, rows and rows[:m]))
    np.testing.assert_array_equal(shapes.points, points)
    assert shapes.names == tuple(names[:n])
    assert shapes.landmarks == tuple((rows or "123456")[:m])
    assert messages == []


@pytest.mark.parametrize("last", ["Freq", "value"])
@pytest.mark.parametrize("is_numbered", [False, True])
def test_a_row_for_each_coordinate_is_gathered(read, last, is_numbered):
    places = [(i, k, j) for i in range(5) for k in range(2) for j in range(6)]
    cells = [[f"l{j}", "AB"[k], f"s{i}", WINGS[i, j, k]] for i, k, j in places]
    rows = [["Var1", "Var2", "Var3", last], *(cells if is_numbered else cells[::-1])]
    if is_numbered:
        rows = [[number or "", *row] for number, row in enumerate(rows)]
    shapes, _ = read(rows)
    order = [shapes.landmarks.index(f"l{j}") for j in range(6)]
    np.testing.assert_array_equal([shapes[f"s{i}"][order] for i in range(5)], WINGS)


def test_a_file_of_points_whose_first_is_numbered_like_an_array_has_no_header(read):
    assert read("1.1 2.1\n1.2 2.2\n3 4\n", name="set.txt")[0].n_landmarks == 3


@pytest.mark.parametrize("rows", [None, "123456", ("g", "h", "i", "j", "k", "l")])
@pytest.mark.parametrize("names", ["12345", ("fly", "bee", "ant", "bug", "tick")])
def test_of_two_readings_that_which_makes_shapes_of_one_kind_is_taken(read, rows, names):
    """X.a, Y.a: shape a, or landmark a? Superimposed shapes are alike in one reading only."""
    aligned = (WINGS - WINGS.mean(axis=1, keepdims=True)).round(6)
    heads = [f"{axis}.{name}" for name in names for axis in "XY"]
    shapes, messages = read(across(aligned, heads, rows))
    np.testing.assert_array_equal(shapes.points, aligned)
    assert len(messages) == 1
    assert "taken as 5 shapes of 6 landmarks, which makes better shapes" in messages[0]
    assert "If it is 6 shapes of 5 landmarks, give layout='nmd'" in messages[0]
    turned = aligned.transpose(1, 0, 2)  # now the rows are the shapes
    shapes, messages = read(
        across(turned, [f"{axis}.{k}" for k in range(1, 7) for axis in "XY"], rows and "12345")
    )
    np.testing.assert_array_equal(shapes.points, aligned)


def test_unlikeness_is_0_for_one_shape_moved_and_large_for_points_at_random():
    rng = np.random.default_rng(3)
    turns = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(6)]
    shape = rng.normal(size=(8, 3))
    moved = np.stack([2.0 * k * shape @ turn + k for k, turn in enumerate(turns, start=1)])
    assert measure_dissimilarity(moved) < 1e-20
    moved[2, 3] = np.nan
    assert measure_dissimilarity(moved) < 0.05  # filled with the mean of all, which are turned
    assert measure_dissimilarity(rng.normal(size=(9, 30, 2))) > 0.5
    assert np.isnan(measure_dissimilarity(moved[:1]))
    assert np.isnan(measure_dissimilarity(np.zeros((3, 4, 2))))


def test_the_axis_may_stand_before_the_landmark_in_a_column_of_its_own(read):
    labels = (*LABELS[:3], "7")
    rows = [["Axis", "Landmark", *"abcdefg"]]
    for k, axis in enumerate("XYZ"):
        rows += [[axis, label, *SKULLS[:, j, k]] for j, label in enumerate(labels)]
    shapes, _ = read(rows)
    assert (shapes.names, shapes.landmarks) == (tuple("abcdefg"), labels)
    np.testing.assert_array_equal(shapes.points, SKULLS)


def test_whole_numbers_first_are_coordinates_where_the_others_are_no_pairs(read):
    shapes, _ = read("17,2.5,3.5,4.5,5.5,6.5,7.5,8.5\n12,2.5,3,4.5,5,6.5,7,8.5\n")
    assert shapes.points[0, 0].tolist() == [17, 2.5]


@pytest.mark.parametrize("mark", ["\t", " ", ";"])
@pytest.mark.parametrize("header", [True, False])
def test_decimal_commas_where_no_comma_separates(read, mark, header):
    heads = [["id", *(f"{axis}{j}" for j in range(1, 7) for axis in "xy")]] if header else []
    body = [
        [f"w{k}", *(str(v).replace(".", ",") for v in row.ravel())] for k, row in enumerate(WINGS)
    ]
    shapes, _ = read([*heads, *body], "set.txt", mark, dimension=2)
    np.testing.assert_array_equal(shapes.points, WINGS)
    assert shapes.names == ("w0", "w1", "w2", "w3", "w4")


def test_decimal_commas_between_commas_are_refused(read):
    with pytest.raises(FormatError, match="expected 5 columns, as above; found 9"):
        read("id,x1,y1,x2,y2\na,1,5,2,5,3,5,4,5\n")


@pytest.mark.parametrize("mark", [",", " ", "\t"])
@pytest.mark.parametrize("behind", [[], ["male"]])
def test_names_and_groups_may_stand_around_coordinates_without_header(read, mark, behind):
    rows = [[f"w{k}", *wing.ravel(), *behind] for k, wing in enumerate(WINGS[:, :5])]
    shapes, messages = read(rows, "set.csv" if behind else "set.txt", mark)
    np.testing.assert_array_equal(shapes.points, WINGS[:, :5])
    assert shapes.names == ("w0", "w1", "w2", "w3", "w4")
    assert messages == []
    if behind:
        assert shapes.metadata["variables"][0] == {"column 12": "male"}


@pytest.mark.parametrize(
    "text",
    [
        "May 12 2020\nJune 13 2021\nJuly 14 2022\n",
        "Wings measured\nMay 12 2020\nby hand, twice\n",  # no table with a short header
    ],
)
def test_dates_in_prose_are_no_points(tmp_path, text):
    (tmp_path / "notes.txt").write_text(text)
    with pytest.raises(FormatError, match="not a landmark file"):
        read_shapes(tmp_path / "notes.txt")


@pytest.mark.parametrize("head", ["Slice", "frame", "Animal", "ind", "Label"])
@pytest.mark.parametrize("landmark", [True, False])
def test_the_column_that_repeats_tells_shapes_apart_whatever_it_is_called(read, head, landmark):
    rows = [[head, *["pt"] * landmark, "x", "y"]]
    for k in range(5):
        rows += [[f"w{k}", *[j + 1] * landmark, *WINGS[k, j]] for j in range(6)]
    shapes, messages = read(rows)
    np.testing.assert_array_equal(shapes.points, WINGS)
    assert shapes.names == ("w0", "w1", "w2", "w3", "w4")
    assert len(messages) == 1
    assert messages[0].endswith(f"set.csv: column {head!r} tells the shapes apart.")


def test_a_column_that_says_the_same_of_all_points_tells_nothing(read):
    """ImageJ counts its points and says of each on which frame of the picture it is."""
    rows = [[" ", "Area", "X", "Y", "Frame"], *([j + 1, 0, *WINGS[0, j], 1] for j in range(6))]
    shapes, messages = read(rows)
    np.testing.assert_array_equal(shapes.points, WINGS[:1])
    assert messages == []


@pytest.mark.parametrize(
    ("name", "landmark"),
    [
        ("skull {}", "1234"),
        ("skull {}", LABELS),
        ("skull {}", None),
        ("{}", "1234"),
        ("{}", LABELS),
    ],
)
def test_a_row_a_landmark_without_header_is_gathered_by_its_shape(read, name, landmark):
    rows = [
        [name.format(k), *([landmark[j]] if landmark else []), *SKULLS[k, j]]
        for k in range(7)
        for j in range(4)
    ]
    shapes, messages = read(rows)
    np.testing.assert_array_equal(shapes.points, SKULLS)
    assert shapes.names == tuple(name.format(k) for k in range(7))
    assert messages == []


def test_points_of_a_scan_may_be_counted_first_and_have_an_intensity(read):
    points = "".join(f"{x} {y} {z} 17\n" for x, y, z in SKULLS[0])
    for text in (points, f"4\n{points}"):
        shapes, messages = read(text, name="set.xyz")
        np.testing.assert_array_equal(shapes.points, SKULLS[:1])
        assert messages == []
    with pytest.raises(FormatError, match="line 2: expected 1 columns, as above; found 4"):
        read(f"5\n{points}", name="set.xyz")
    with pytest.raises(FormatError, match="line 2: expected 1 columns, as above; found 4"):
        read(f"{'9' * 5000}\n{points}", name="set.xyz")


@pytest.mark.parametrize("form", ["{axis} {label}", "{label} {axis}", "{label} {axis} coordinate"])
def test_brackets_and_words_around_an_axis_belong_to_the_landmark(read, form):
    labels = ("eye (left)", "eye (right)", "tip", "base")
    heads = [form.format(axis=axis, label=label) for label in labels for axis in "XYZ"]
    flat = SKULLS.reshape(7, -1)
    rows = [["", *"abcdefg"], *([head, *flat[:, k]] for k, head in enumerate(heads))]
    wide = [["id", *heads], *([name, *row] for name, row in zip("abcdefg", flat, strict=True))]
    for table in (rows, wide):
        shapes, messages = read(table)
        assert (shapes.names, shapes.landmarks, messages) == (tuple("abcdefg"), labels, [])
        np.testing.assert_array_equal(shapes.points, SKULLS)


@pytest.mark.parametrize("title", ["Wings of 2020\n", "Wings of 2020,,,\n\nby hand\n", ""])
def test_a_title_above_the_table_is_passed_over(read, title):
    rows = [["id", "x1", "y1", "x2", "y2"], *(["w", *wing[:2].ravel()] for wing in WINGS[:1])]
    shapes, messages = read(title + "\n".join(",".join(map(str, row)) for row in rows))
    np.testing.assert_array_equal(shapes.points, WINGS[:1, :2])
    assert (shapes.names, messages) == (("w",), [])


@pytest.mark.parametrize("first", [None, "Unnamed: 0", "", "index"])
@pytest.mark.parametrize("base", [0, 1])
def test_a_header_may_be_nothing_but_the_numbers_of_the_columns(read, first, base):
    heads = [*([] if first is None else [first]), *range(base, base + 10)]
    body = [[*([] if first is None else [k]), *wing[:5].ravel()] for k, wing in enumerate(WINGS)]
    shapes, messages = read([heads, *body])
    np.testing.assert_array_equal(shapes.points, WINGS[:, :5])
    assert messages == []


def test_whole_numbers_that_count_are_coordinates_among_whole_numbers(read):
    shapes, _ = read("1,2,3,4,5,6,7,8\n5,3,2,4,5,6,1,8\n")
    assert shapes.points.shape == (2, 4, 2)


# Tables without a header


def test_whole_numbers_before_coordinates_are_names_though_some_coordinates_are_whole(read):
    rows = [[12, 5, *SKULLS[0].ravel()[:7]], [7, 6, *SKULLS[1].ravel()[:7]]]
    shapes, _ = read(rows)
    assert shapes.names == ("12", "7")
    assert shapes.points.shape == (2, 4, 2)
    assert shapes.points[:, 0, 0].tolist() == [5, 6]


def test_names_may_begin_with_a_number(read):
    shapes, _ = read(
        [[name, *wing.ravel()] for name, wing in zip(["12a", "7"], WINGS, strict=False)]
    )
    assert shapes.names == ("12a", "7")
    np.testing.assert_array_equal(shapes.points, WINGS[:2])


@pytest.mark.parametrize("labels", [("tip", "eye", "base", "rim"), ("11", "12", "13", "14")])
@pytest.mark.parametrize("dim", [2, 3])
def test_shape_and_landmark_before_coordinates_need_no_header(read, labels, dim):
    points = SKULLS[:, :, :dim]
    pairs = [(f"skull {k}", label) for k in range(7) for label in labels]
    rows = [[*pair, *point] for pair, point in zip(pairs, points.reshape(-1, dim), strict=True)]
    shapes, _ = read(rows)
    np.testing.assert_array_equal(shapes.points, points)
    assert shapes.landmarks == labels
    assert shapes.names[3] == "skull 3"


def test_coordinates_that_are_one_number_for_each_shape_are_no_landmarks(read):
    points = SKULLS[:4].copy()
    points[:, :, 0] = np.arange(4)[:, None]  # each slice lies in a plane
    rows = [[f"slice {k}", *point] for k, shape in enumerate(points) for point in shape]
    shapes, _ = read(rows)
    np.testing.assert_array_equal(shapes.points, points)


@pytest.mark.parametrize(
    ("before", "labels"), [("CHNO", tuple("CHNO")), ("1234", tuple("1234")), ([""] * 4, None)]
)
@pytest.mark.parametrize("dim", [2, 3])
def test_points_of_an_xyz_file_may_be_named_or_numbered(read, before, labels, dim):
    points = SKULLS[0, :, :dim]
    rows = [
        " ".join([w, *map(repr, item)]) for w, item in zip(before, points.tolist(), strict=True)
    ]
    shapes, _ = read("\n".join(rows), name="set.xyz")
    np.testing.assert_array_equal(shapes.points, [points])
    assert shapes.landmarks == (labels or tuple("1234"))


# Tables of other programs


def tracked(likelihoods=True, individuals=(), dim=2):
    """Rows as DeepLabCut writes them, of SKULLS' first landmarks, and these as (n, m, d)."""
    several = individuals or ("",)
    columns = [
        (name, label, axis)
        for name in several
        for label in LABELS
        for axis in [*"xyz"[:dim], *["likelihood"] * likelihoods]
    ]
    heads = [["scorer", *["DLC_me"] * len(columns)]]
    heads += [["individuals", *(name for name, _, _ in columns)]] if individuals else []
    heads += [["bodyparts", *(p for _, p, _ in columns)], ["coords", *(a for _, _, a in columns)]]
    frames = SKULLS[:6, :, :dim].reshape(6 // len(several), len(several), 4, dim)
    rows = [
        [k, *(c for item in frame for point in item for c in [*point, *[0.75] * likelihoods])]
        for k, frame in enumerate(frames.tolist())
    ]
    return [*heads, *rows], frames.transpose(1, 0, 2, 3).reshape(6, 4, dim)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("likelihoods", [True, False])
def test_frames_of_deeplabcut_are_shapes(read, likelihoods, dim):
    rows, points = tracked(likelihoods, dim=dim)
    shapes, notes = read(rows)
    np.testing.assert_array_equal(shapes.points, points)
    assert shapes.landmarks == LABELS
    assert shapes.names == tuple(f"frame_{k}" for k in range(6))
    assert len(notes) == 1
    assert "every frame is a shape" in notes[0]
    assert ("Likelihoods are landmark weights" in notes[0]) is likelihoods


def test_individuals_of_deeplabcut_are_groups_and_frames_without_them_are_left_out(read):
    rows, points = tracked(individuals=("rat", "mouse"))
    rows[4][13:] = [""] * 12  # no mouse in the first frame
    rows[5][1:4] = [""] * 3  # and no nasion of the rat in the second
    shapes, notes = read(rows)
    points[1, 0] = np.nan
    np.testing.assert_array_equal(shapes.points, np.delete(points, 3, axis=0))
    assert shapes.names[2:4] == ("rat_frame_2", "mouse_frame_1")
    assert shapes.metadata["groups"] == ("rat",) * 3 + ("mouse",) * 2
    assert "but 1 in which nothing is visible" in notes[0]


@pytest.mark.parametrize("apart", [True, False])
def test_images_labelled_in_deeplabcut_are_named_by_their_paths(read, apart):
    rows, points = tracked(likelihoods=False)
    for row in rows:
        place = f"labeled-data/day 1/img{row[0]}.png" if isinstance(row[0], int) else row[0]
        cells = place.split("/") if isinstance(row[0], int) else [place, "", ""]
        row[:1] = cells if apart else [place]
    shapes, _ = read(rows)
    np.testing.assert_array_equal(shapes.points, points)
    assert shapes.names[5] == shapes.metadata["images"][5] == "labeled-data/day 1/img5.png"


@pytest.mark.parametrize("scorer", ["me", "a_network_with_a_name_that_is_as_long_as_they_are" * 9])
def test_a_folder_of_tables_of_deeplabcut(tmp_path, scorer):
    rows, points = tracked()
    rows[0][1:] = [scorer] * 12
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("\n".join(",".join(map(str, row)) for row in rows))
    with pytest.warns(DefgpaWarning):
        shapes = read_shapes(tmp_path)
    np.testing.assert_array_equal(shapes.points, [*points, *points])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: [row[:-3] + row[-2:] for row in rows], "x and y of every body part"),
        (lambda rows: rows[:3], "expected frames below 'coords'; found none"),
        (lambda rows: [*rows[:3], [0, *[""] * 12]], "in which something is visible; found none"),
        (lambda rows: [*rows[:4], [1, "left", *rows[4][2:]]], "line 5: expected a number; found"),
    ],
    ids=["no x", "no frames", "nothing seen", "a word"],
)
def test_a_damaged_table_of_deeplabcut_is_refused(read, change, words):
    with pytest.raises(FormatError, match=words):
        read(change(tracked()[0]))


def blocks(points, first=None):
    """An array as Deformetrica writes it."""
    first = first or " ".join(map(str, points.shape))
    rows = ["\n".join(" ".join(map(repr, row)) for row in block) for block in points.tolist()]
    return "\n\n".join([first, *rows]) + "\n"


@pytest.mark.parametrize("points", [WINGS, SKULLS, SKULLS[:1]])
def test_blocks_below_their_counts_are_shapes(read, points):
    shapes, notes = read(blocks(points), name="set.txt")
    np.testing.assert_array_equal(shapes.points, points)
    assert notes == []


def test_momenta_are_told_from_places(tmp_path):
    (tmp_path / "Atlas__Momenta.txt").write_text(blocks(SKULLS))
    with pytest.warns(DefgpaWarning, match="momenta are directions"):
        assert read_shapes(tmp_path / "Atlas__Momenta.txt").n_shapes == 7


@pytest.mark.parametrize("first", ["7 5 3", "0 28 3", "7.5 4 3", "7 4 2"])
def test_numbers_that_count_nothing_are_a_point(read, first):
    shapes, _ = read(blocks(SKULLS, first), name="set.txt")
    assert shapes.points.shape == (1, 29, 3)
    assert shapes.points[0, 0].tolist() == [float(word) for word in first.split()]


def test_one_shape_whose_landmarks_have_a_number_and_a_name_is_one_shape(tmp_path):
    (tmp_path / "a.csv").write_text("Point,Name,X,Y,Z\n1,ear,0,1,2\n2,eye,3,4,6\n3,nose,7,8,9\n")
    shapes = read_shapes(tmp_path / "a.csv")
    assert shapes.names == ("a",)
    assert shapes.landmarks == ("ear", "eye", "nose")
    assert shapes.points[0].tolist() == [[0, 1, 2], [3, 4, 6], [7, 8, 9]]
