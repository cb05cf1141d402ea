"""Tables that do not say what their numbers are: identifiers, flags, row numbers, curves."""

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes

HANDS = (
    "3142,297,1913,324,1812,434,1902,450,1901\n"
    "3143,301,1900,330,1809,440,1890,455,1893\n"
    "3150,290,1920,320,1822,430,1909,449,1905\n"
)


def test_whole_numbers_of_another_kind_are_identifiers(read):
    shapes, notes = read(HANDS)
    assert shapes.points.shape == (3, 4, 2)
    assert shapes.names == ("3142", "3143", "3150")
    assert "taken as 4 landmarks in 2-D behind an identifier" in notes[0]
    assert "dimension=3" in notes[0]


def test_the_dimension_chooses_between_identifier_and_coordinate(read):
    assert read(HANDS, dimension=3)[0].points.shape == (3, 3, 3)
    assert read(HANDS, dimension=2)[0].points.shape == (3, 4, 2)


def test_whole_numbers_that_move_with_the_specimen_are_coordinates(read):
    rng = np.random.default_rng(0)
    shape, places = (
        rng.integers(0, 500, (1, 3, 3)),
        10 * rng.permuted(np.arange(18)).reshape(6, 1, 3),
    )
    points = shape + places + rng.integers(0, 5, (6, 3, 3))
    text = "\n".join(",".join(map(str, row)) for row in points.reshape(6, 9))
    shapes, notes = read(text)
    np.testing.assert_array_equal(shapes.points, points)
    assert "taken as 3 landmarks in 3-D" in notes[0]


def test_two_specimens_are_enough_to_tell_identifiers_from_coordinates(read):
    shapes, notes = read("3142,297,1913,324,1812,434,1902,450,1901\n" + HANDS.split("\n")[1])
    assert shapes.points.shape == (2, 4, 2)
    assert "behind an identifier" in notes[0]


REPLICATES = "".join(
    ",".join(map(str, [7 + k // 2, *row])) + "\n"
    for k, row in enumerate(
        np.random.default_rng(4).integers(0, 900, 14) + np.arange(8)[:, None] * ([5, 9] * 7)
    )
)


def test_identifiers_that_repeat_are_noted_and_chosen_by_the_dimension(read):
    shapes, notes = read(REPLICATES)
    assert shapes.points.shape == (8, 7, 2)
    assert "taken as 7 landmarks in 2-D behind an identifier" in notes[0]
    assert read(REPLICATES, dimension=2)[0].points.shape == (8, 7, 2)
    assert read(REPLICATES, dimension=3)[0].points.shape == (8, 5, 3)


def test_a_negative_coordinate_or_a_gap_makes_no_identifier_of_the_first(read):
    rng = np.random.default_rng(1)
    points = rng.integers(-300, 700, (5, 3)) + rng.integers(-9, 9, (6, 5, 3))
    points[..., 0] += 400
    points += rng.integers(0, 200, (6, 1, 1))
    rows = [list(map(str, row)) for row in points.reshape(6, 15)]
    assert any(cell.startswith("-") for row in rows for cell in row)
    shapes, notes = read("\n".join(map(",".join, rows)))
    assert shapes.points.shape == (6, 5, 3)
    assert "taken as 5 landmarks in 3-D" in notes[0]
    rows[2][3:6] = "NA", "NA", "NA"
    shapes, _ = read("\n".join(map(",".join, rows)))
    assert np.argwhere(~shapes.visible).tolist() == [[2, 1]]


@pytest.mark.parametrize("heads", ['"V1" "V2" "V3"', '"V1" "V2"'])
def test_names_that_write_table_of_r_gives_to_rows_are_no_specimens(read, heads):
    n_dims = heads.count("V")
    points = np.random.default_rng(0).normal(size=(7, n_dims)).round(3)
    rows = (f'"{41 * k % 97}" {" ".join(map(str, point))}' for k, point in enumerate(points))
    shapes, _ = read("\n".join([heads, *rows]), "skull.txt")
    np.testing.assert_array_equal(shapes.points, points[None])


PARTS = "".join(
    f"{i} {j} {10.5 * j + i} {7.25 * j * j - i} 1\n" if (i, j) != (2, 3) else "2 3 0.0 0.0 0\n"
    for i in range(1, 4)
    for j in range(1, 6)
)


def test_a_flag_of_visibility_behind_the_coordinates_is_no_coordinate(read):
    shapes, notes = read(PARTS, "part_locs.txt")
    assert shapes.points.shape == (3, 5, 2)
    assert np.argwhere(~shapes.visible).tolist() == [[1, 2]]
    assert "taken for visibility" in notes[0]


@pytest.mark.parametrize("flag", ["1", "2"])
def test_a_column_called_visible_tells_what_is_missing(read, flag):
    body = PARTS.replace(" 1\n", f" {flag}\n").replace(" ", ",")
    shapes, notes = read("image,part,x,y,visible\n" + body)
    assert shapes.points.shape == (3, 5, 2)
    assert np.argwhere(~shapes.visible).tolist() == [[1, 2]]
    assert notes == []


def test_flags_of_a_wide_table_tell_what_is_missing(read):
    text = "id,x1,y1,v1,x2,y2,v2,x3,y3,v3\na,1,2,2,3,4,1,0,0,0\nb,1,3,2,3,5,2,6,7,2\n"
    shapes, _ = read(text)
    assert shapes.visible.tolist() == [[True, True, False], [True, True, True]]
    assert shapes.n_dims == 2
    assert "variables" not in shapes.metadata


def test_points_of_a_cube_keep_their_third_coordinate(read):
    text = "0 0 0\n1 0 0\n1 1 1\n0 1 1\n"
    assert read(text, "cube.txt")[0].n_dims == 3


def test_likelihoods_become_weights_and_small_ones_missing(read):
    text = (
        "shape,landmark,x,y,likelihood\na,p,1,2,0.9\na,q,3,4,0.2\na,r,5,1,1\n"
        "b,p,1,2,0.5\nb,q,3,4,1\nb,r,5,2,1\n"
    )
    shapes, _ = read(text)
    np.testing.assert_array_equal(shapes.weights, [[0.9, 0.2, 1], [0.5, 1, 1]])
    assert read(text, min_likelihood=0.3)[0].visible.tolist() == [[True, False, True], [True] * 3]
    assert not read(text, weights=None)[0].has_weights
    named = text.replace("likelihood", "certainty")
    assert not read(named)[0].has_weights
    assert read(named, weights="certainty")[0] == shapes


def test_a_least_likelihood_without_likelihoods_is_refused(read):
    with pytest.raises(FormatError, match=r"states no likelihoods.*min_likelihood=0\.5"):
        read("shape,landmark,x,y\na,p,1,2\na,q,3,4\n", min_likelihood=0.5)


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("-1", r"landmark 'q' of 'a' .* is -1: weights are 0 or positive"),
        ("NA", r"landmark 'q' of 'a' .* is nan: weights are 0 or positive"),
        ("good", r"line 3: expected a number; found 'good'"),
    ],
)
def test_a_bad_weight_is_refused_with_its_landmark_or_line(read, word, problem):
    with pytest.raises(FormatError, match=problem):
        read(f"shape,landmark,x,y,weight\na,p,1,2,1\na,q,3,4,{word}\n")


def test_a_column_of_weights_that_is_not_there_is_refused(read):
    with pytest.raises(FormatError, match=r"no column 'quality' with a weight .* weights='none'"):
        read("shape,landmark,x,y\na,p,1,2\na,q,3,4\n", weights="quality")


def test_row_numbers_left_over_from_larger_tables_are_no_labels(tmp_path):
    rng = np.random.default_rng(0)
    shape = rng.normal(size=(9, 3))
    for k in range(5):
        rows = np.sort(rng.choice(400, 9, replace=False))
        lines = [f"{row} {x} {y} {z}" for row, (x, y, z) in zip(rows, shape + k, strict=True)]
        (tmp_path / f"s{k}.pts").write_text("\n".join(["Version 1.0", "9", *lines]))
    with pytest.warns(DefgpaWarning, match="as rows cut out of larger tables are"):
        shapes = read_shapes(tmp_path)
    assert shapes.points.shape == (5, 9, 3)
    assert shapes.visible.all()


@pytest.mark.parametrize("prefix", ["", "V"])
@pytest.mark.parametrize(("head", "sep"), [('"","X","Y","Z"', ","), ('"V1" "V2" "V3"', " ")])
def test_leftover_row_names_of_r_matrices_give_way_to_position_with_a_note(
    tmp_path, head, sep, prefix
):
    rng = np.random.default_rng(0)
    shape = rng.normal(size=(9, 3))
    for k in range(5):
        rows = np.sort(rng.choice(np.arange(1, 40), 9, replace=False))
        lines = [
            sep.join([f'"{prefix}{row}"', *map(str, point)])
            for row, point in zip(rows, shape + k, strict=True)
        ]
        (tmp_path / f"s{k}.txt").write_text("\n".join([head, *lines]) + "\n")
    with pytest.warns(DefgpaWarning, match="as rows cut out of larger tables are"):
        shapes = read_shapes(tmp_path)
    np.testing.assert_array_equal(shapes.points[1], shape + 1)


def test_row_names_of_r_tell_which_landmarks_were_omitted(tmp_path):
    for name, rows in {"a": (1, 2, 3, 4, 5), "b": (1, 2, 4, 5)}.items():
        lines = [f'"{row}",{row},{row * row},0.5' for row in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(['"","X","Y","Z"', *lines]) + "\n")
    shapes = read_shapes(tmp_path)
    assert shapes.landmarks == ("1", "2", "3", "4", "5")
    assert np.argwhere(~shapes.visible).tolist() == [[1, 2]]


def write_pts(path, n_curve, name):
    angles = np.linspace(0, np.pi, n_curve)
    rows = ["S0000 0 0 0", "S0001 5 0 1"]
    rows += [
        f"{name(k)} {x} {y} 0" for k, (x, y) in enumerate(np.c_[np.cos(angles), np.sin(angles)])
    ]
    path.write_text("\n".join(["Version 1.0", str(len(rows)), *rows]) + "\n")


@pytest.mark.parametrize(
    "name", [lambda k: f"C00_{k:03}", lambda k: f"C0001.{k + 1}", lambda k: "C00"]
)
def test_curves_of_unequal_length_in_pts_are_resampled_on_request(tmp_path, name):
    write_pts(tmp_path / "a.pts", 20, name)
    write_pts(tmp_path / "b.pts", 33, name)
    with pytest.warns(DefgpaWarning, match="The curves do not have the same number of points"):
        assert read_shapes(tmp_path).landmarks == ("S0000", "S0001")
    shapes = read_shapes(tmp_path, curve_points=7)
    assert shapes.landmarks[:4] == ("S0000", "S0001", "curve1_1", "curve1_2")
    angles = np.linspace(0, np.pi, 7)
    expected = np.c_[np.cos(angles), np.sin(angles), 0 * angles]
    np.testing.assert_allclose(shapes.points[:, 2:], [expected] * 2, atol=2e-3)


def test_curves_by_name_are_resampled_in_any_format(read):
    curve = [f"a,curve1_{k},{k * k},0" for k in range(1, 6)]
    text = "shape,landmark,x,y\na,tip,0,0\n" + "\n".join(curve)
    shapes, _ = read(text, curve_points=4)
    assert shapes.landmarks == ("tip", "curve1_1", "curve1_2", "curve1_3", "curve1_4")
    np.testing.assert_allclose(shapes.points[0, 1:, 0], [1, 9, 17, 25], atol=1e-9)


def test_a_folder_of_names_and_positions_is_a_shape_a_file(tmp_path):
    for k in range(3):
        (tmp_path / f"s{k}.csv").write_text(
            f"Name,Position X,Position Y,Position Z\nnasion,{k},0,1\ntip,2,3,{k}\nbase,4,5,6\n"
        )
    shapes = read_shapes(tmp_path)
    assert shapes.points.shape == (3, 3, 3)
    assert shapes.landmarks == ("nasion", "tip", "base")


@pytest.mark.parametrize("header", ["", "label,{}\n", "{},label\n"])
def test_tables_of_hands_have_their_label_as_a_group(read, header):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1, 42)) + 0.05 * rng.normal(size=(6, 42))
    cells = [",".join(map(str, row.round(5))) for row in points]
    labels = "AABBCC"
    behind = header.startswith("{}")
    rows = [f"{c},{s}" if behind else f"{s},{c}" for c, s in zip(cells, labels, strict=True)]
    text = header.format(",".join(map(str, range(42)))) + "\n".join(rows)
    shapes, _ = read(text, dimension=2)
    assert shapes.points.shape == (6, 21, 2)
    assert len(set(shapes.names)) == 6
    if header:
        grouped, _ = read(text, dimension=2, group="label")
        assert grouped.metadata["groups"] == tuple(labels)
