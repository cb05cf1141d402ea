"""Landmarks as StereoMorph, MeshLab and Amira save them: one file is one shape, by its labels."""

from pathlib import Path

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes, write_shapes
from defgpa.shapes import Shapes

SEEDS = Path(__file__).parent / "seeds"
STEREOMORPH = (SEEDS / "stereomorph__scaled.txt").read_text()
PICKED = (SEEDS / "pp__picked.pp").read_text()
AMIRA = (SEEDS / "amira__a.landmarkAscii").read_text()


class TestStereoMorph:
    def test_scaled_landmarks_are_read_by_name(self, tmp_path):
        (tmp_path / "fish1.txt").write_text(STEREOMORPH)
        shapes = read_shapes(tmp_path / "fish1.txt")
        expected = [[[547, -653.5], [927.5, -458], [np.nan, np.nan]]]
        np.testing.assert_array_equal(shapes.points, expected)
        assert shapes.landmarks == ("LM1", "left eye", "LM3")
        assert shapes.names == ("fish1",)
        assert shapes.metadata["images"] == ("fish1.jpg",)
        assert shapes.metadata["format"] == "stereomorph"

    def test_pixels_are_taken_where_there_is_no_scale(self, tmp_path):
        (tmp_path / "a.txt").write_text(STEREOMORPH.replace("landmarks.scaled", "other"))
        assert read_shapes(tmp_path / "a.txt").points[0, 0].tolist() == [1094, 1307]

    def test_an_empty_matrix_counts_for_nothing_and_a_set_half_in_pixels_is_noted(self, tmp_path):
        start = STEREOMORPH.index("\t\tLM1\t547")
        empty = STEREOMORPH[:start] + STEREOMORPH[STEREOMORPH.index("\t</landmarks.scaled") :]
        (tmp_path / "a.txt").write_text(f"<image.id>7</image.id>\n{empty}")
        (tmp_path / "b.txt").write_text(STEREOMORPH)
        with pytest.warns(DefgpaWarning, match=r"1 of 2 specimens have no SCALE \('a'\)"):
            shapes = read_shapes(tmp_path)
        assert shapes.points[:, 0].tolist() == [[1094, 1307], [547, -653.5]]
        assert shapes.metadata["scales"] == (None, 0.5)

    @pytest.mark.parametrize("scale", ["", "NA", "0,5", "0", "-1", "inf", "mm"])
    def test_a_scale_that_is_none_is_passed_over(self, tmp_path, scale):
        (tmp_path / "a.txt").write_text(STEREOMORPH.replace(">0.5<", f">{scale}<"))
        shapes = read_shapes(tmp_path / "a.txt")
        assert shapes.points[0, 0].tolist() == [547, -653.5]
        assert "scales" not in shapes.metadata

    def test_older_files_and_3d_ones_are_read(self, tmp_path):
        text = "<landmarks.pixel type=matrix rownames=TRUE as.numeric=TRUE>\n\t\tA\t1\t2\t3\n"
        (tmp_path / "a.txt").write_text(f"{text}\t\tB\t4\t5\t6\n\t</landmarks.pixel>\n")
        assert read_shapes(tmp_path / "a.txt").points.tolist() == [[[1, 2, 3], [4, 5, 6]]]

    def test_a_folder_of_them_is_a_set(self, tmp_path):
        for k in range(3):
            (tmp_path / f"fish{k}.txt").write_text(STEREOMORPH)
        assert read_shapes(tmp_path).names == ("fish0", "fish1", "fish2")

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("547\t", "5x7\t", r"line 10: expected a number; found '5x7'"),
            ("547\t", "", r"line 10: expected a landmark and its 2 or 3 coordinates"),
            ("LM1\t547\t", "LM1\t547\t0\t", r"landmarks with as many coordinates each"),
            ("landmarks.", "points.", r"a matrix <landmarks.scaled> or <landmarks.pixel>"),
        ],
    )
    def test_wrong_files_are_told_what_is_wrong(self, tmp_path, old, new, message):
        (tmp_path / "a.txt").write_text(STEREOMORPH.replace(old, new))
        with pytest.raises(FormatError, match=rf"a\.txt.*{message}"):
            read_shapes(tmp_path / "a.txt")


def write_curves(path, **curves):
    """Write landmarks in pixels, and curves below their tags."""
    rows = {name: "".join(f"\t\t\t{x}\t{y}\n" for x, y in c) for name, c in curves.items()}
    blocks = "".join(
        f"\t\t<{name} type=matrix rownames=FALSE nrow=9 ncol=2 as.numeric=TRUE >\n{row}"
        f"\t\t</{name}>\n"
        for name, row in rows.items()
    )
    path.write_text(
        "<shapes type=list>\n\t<landmarks.pixel type=matrix rownames=TRUE >\n\t\tA\t1\t2\n"
        "\t\tB\t4\t5\n\t</landmarks.pixel>\n\t<curves.control type=list >\n\t\t<top type=matrix >\n"
        "\t\t\t0\t0\n\t\t</top>\n\t</curves.control>\n"
        f"\t<curves.pixel type=list >\n{blocks}\t</curves.pixel>\n</shapes>\n"
    )


TOP = [(0, 0), (1, 0), (4, 0), (10, 0)]
SIDE = [(0, 0), (0, 3), (0, 6)]


class TestCurvesOfStereoMorph:
    def test_curves_stand_behind_landmarks(self, tmp_path):
        write_curves(tmp_path / "a.txt", top=TOP, side=SIDE)
        shapes = read_shapes(tmp_path / "a.txt")
        assert shapes.landmarks[:3] == ("A", "B", "curve1_1")
        assert shapes.landmarks[-1] == "curve2_3"
        assert shapes.points[0].tolist() == [[1, 2], [4, 5], *map(list, TOP + SIDE)]

    def test_curves_are_matched_by_name_and_resampled(self, tmp_path):
        write_curves(tmp_path / "a.txt", top=TOP, side=SIDE)
        write_curves(tmp_path / "b.txt", side=[(0, 0), (0, 12)], top=[(1, 0), (21, 0)])
        shapes = read_shapes(tmp_path, curve_points=5)
        assert shapes.n_landmarks == 12
        top, side = np.linspace(0, 10, 5), np.linspace(0, 12, 5)
        np.testing.assert_allclose(shapes.points[0, 2:7, 0], top, atol=1e-9)
        np.testing.assert_allclose(shapes.points[1, 7:, 1], side, atol=1e-9)

    def test_unequal_curves_and_a_curve_that_lacks_are_left_out(self, tmp_path):
        write_curves(tmp_path / "a.txt", top=TOP, side=SIDE)
        write_curves(tmp_path / "b.txt", side=SIDE)
        for count in (None, 5):
            with pytest.warns(DefgpaWarning, match="curves do not have the same number of points"):
                shapes = read_shapes(tmp_path, curve_points=count)
            assert shapes.landmarks == ("A", "B")

    def test_older_files_name_the_curve_in_every_row(self, tmp_path):
        rows = "".join(f"\tedge{k:04d}\t{x}\t{y}\n" for k, (x, y) in enumerate(TOP, 1))
        text = f"<curves.scaled>\n{rows}</curves.scaled>\n"
        (tmp_path / "a.txt").write_text(text)
        assert read_shapes(tmp_path / "a.txt").points[0].tolist() == [list(p) for p in TOP]
        (tmp_path / "a.txt").write_text(STEREOMORPH + text.replace("scaled", "pixel"))
        with pytest.warns(DefgpaWarning, match="its curves are in pixels and its landmarks are"):
            assert read_shapes(tmp_path / "a.txt").n_landmarks == 3

    def test_a_wrong_point_is_named_with_its_line(self, tmp_path):
        write_curves(tmp_path / "a.txt", top=[(0, 0), (1, "2\t3\t4")])
        with pytest.raises(FormatError, match=r"a\.txt, line 14: expected the 2 or 3 coordinates"):
            read_shapes(tmp_path / "a.txt")


class TestPickedPoints:
    def test_points_are_read_by_name_and_those_not_picked_are_missing(self, tmp_path):
        (tmp_path / "skull.pp").write_text(PICKED)
        shapes = read_shapes(tmp_path / "skull.pp")
        expected = [[0.044259, 0.467733, -0.060032], [0.017893, 1.335375, 0.01839], [np.nan] * 3]
        np.testing.assert_array_equal(shapes.points[0], expected)
        assert shapes.landmarks == ("nasion", "left & up", "bregma")

    def test_what_is_written_is_read_back(self, tmp_path):
        points = np.random.default_rng(0).normal(size=(1, 3, 3))
        points[0, 1] = np.nan
        shapes = Shapes.specimens(points, names=["a"], landmarks=['"x" <1>', "ü", "3"])
        write_shapes(shapes, tmp_path / "a.pp")
        again = read_shapes(tmp_path / "a.pp")
        np.testing.assert_array_equal(again.points, points)
        assert again.landmarks == shapes.landmarks

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ('x="0.044259"', 'x="1_000"', "expected a number; found '1_000'"),
            ('x="0.044259"', "", "expected x, y and z of every point; found no x"),
            ("</PickedPoints>", "", "is not a file of picked points that can be read"),
            ("<point", "<spot", "expected picked points; found none"),
            ("PickedPoints>", 'PickedPoints [<!ENTITY a "b">]>', "definitions of entities"),
        ],
    )
    def test_wrong_files_are_told_what_is_wrong(self, tmp_path, old, new, message):
        (tmp_path / "a.pp").write_text(PICKED.replace(old, new, -1 if old == "<point" else 1))
        with pytest.raises(FormatError, match=rf"a\.pp.*{message}"):
            read_shapes(tmp_path / "a.pp")


class TestAmira:
    @pytest.mark.parametrize("head", ["AmiraMesh 3D ASCII 2.0", "Avizo 3D ASCII 3.0"])
    def test_the_rows_below_the_block_of_coordinates_are_the_landmarks(self, tmp_path, head):
        text = AMIRA.replace("AmiraMesh 3D ASCII 2.0", head)
        more = "Markers { int MarkerTypes } @2\n"
        text = text.replace("# Data", f"{more}# Data") + "@2\n" + "1\n" * 6
        for name in ("a.landmarkAscii", "b.txt"):
            (tmp_path / name).write_text(text)
            shapes = read_shapes(tmp_path / name)
            assert shapes.metadata["format"] == "amira"
            assert shapes.points.shape == (1, 6, 3)
            expected = [[float(word) for word in row.split()] for row in AMIRA.split("\n")[-7:-1]]
            assert shapes.points[0].tolist() == expected

    def test_a_code_is_missing_and_a_wrong_count_is_allowed_where_it_is_asked_for(self, tmp_path):
        lines = AMIRA.split("\n")
        (tmp_path / "a.landmarkAscii").write_text("\n".join([*lines[:-2], "0 0 0", "7 8 9", ""]))
        with pytest.warns(DefgpaWarning, match=r"line 3: expected 6 rows below @1; found 7"):
            shapes = read_shapes(tmp_path / "a.landmarkAscii", on_mismatch="warn", missing=0)
        assert shapes.visible[0].tolist() == [True] * 5 + [False, True]

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("define Markers 6", "define Markers 7", "line 3: expected 7 rows below @1; found 6"),
            ("define Markers 6", "define Markers x", "line 3: expected a whole number"),
            ("define Markers 6", "define Points 6", "expected 'define Markers n' and"),
            ("Coordinates }", "Places }", "expected 'define Markers n' and"),
            ("\n@1\n", "\n@3\n", "expected a line @1 above the coordinates; found none"),
            ("\n@1\n", "\n@1\n1 2\n", "expected 2 coordinates"),
            ("# Data", "Markers { float[3] Coordinates2 } @2\n# Data", "holds 2 sets of landmarks"),
        ],
    )
    def test_a_damaged_file_is_refused(self, tmp_path, old, new, message):
        (tmp_path / "a.landmarkAscii").write_text(AMIRA.replace(old, new, 1))
        with pytest.raises(FormatError, match=rf"a\.landmarkAscii.*{message}"):
            read_shapes(tmp_path / "a.landmarkAscii")

    def test_rows_of_two_numbers_are_refused(self, tmp_path):
        start = AMIRA.index("@1\n", AMIRA.index("# Data")) + 3
        (tmp_path / "a.landmarkAscii").write_text(AMIRA[:start] + "1 2\n" * 6)
        with pytest.raises(FormatError, match="expected 3 coordinates; found '1 2'"):
            read_shapes(tmp_path / "a.landmarkAscii")
