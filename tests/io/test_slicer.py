"""Slicer markups: what a file states is what is read, in the system the file states."""

import json

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes, write_shapes
from defgpa.io.format import ReadOptions
from defgpa.io.text.slicer import FORMATS
from defgpa.shapes import Shapes

MARKUPS, FCSV = FORMATS


def markup(points, **node):
    return {"type": "Fiducial", "coordinateSystem": "LPS", "controlPoints": points, **node}


def point(label, position, **more):
    return {"id": label, "label": label, "position": position, **more}


@pytest.fixture
def read(tmp_path):
    """Read one shape from text or from a JSON-able object."""

    def read_content(content, **options):
        if isinstance(content, str):
            path, reader = tmp_path / "spec 1.fcsv", FCSV.read
            path.write_bytes(content.encode())
        else:
            path, reader = tmp_path / "spec 1.mrk.json", MARKUPS.read
            path.write_text(json.dumps(content))
        document = reader(path, ReadOptions(**options))
        (specimen,) = document.specimens
        return specimen, document.metadata["space"]

    return read_content


THREE = [
    point("nasion", [1.5, -2.25, 3], positionStatus="defined"),
    point("bregma", [4, 5, 6]),
    point("lambda", [0.1, 0.2, 0.3], orientation=[1, 0, 0, 0, 1, 0, 0, 0, 1]),
]


def test_markups_give_labels_positions_and_system(read):
    specimen, space = read({"@schema": "…", "markups": [markup(THREE)]})
    assert specimen.name == "spec 1"
    assert specimen.labels == ("nasion", "bregma", "lambda")
    assert specimen.points.tolist() == [[1.5, -2.25, 3], [4, 5, 6], [0.1, 0.2, 0.3]]
    assert space == "LPS"


@pytest.mark.parametrize(("stated", "space"), [({"coordinateSystem": "RAS"}, "RAS"), ({}, "LPS")])
def test_the_system_of_markups_is_lps_unless_stated(read, stated, space):
    node = {"type": "Fiducial", "controlPoints": THREE, **stated}
    assert read({"markups": [node]})[1] == space


@pytest.mark.parametrize(
    "lost",
    [
        {"position": "", "positionStatus": "undefined"},
        {"position": [9, 9, 9], "positionStatus": "missing"},
        {"position": [9, 9, 9], "positionStatus": "preview"},
        {"positionStatus": "missing"},
        {"position": ""},
        {"position": None},
        {},
    ],
)
def test_a_point_that_is_not_defined_is_missing(read, lost):
    specimen, _ = read({"markups": [markup([*THREE, {"label": "inion", **lost}])]})
    assert np.isnan(specimen.points[3]).all()
    assert np.isfinite(specimen.points[:3]).all()


def test_planes_and_empty_lists_beside_the_points_do_not_count(read):
    nodes = [
        markup([point("o", [0, 0, 0])], type="Plane"),
        markup([]),
        markup(THREE, type="Curve"),
        {"type": "ROI", "center": [0, 0, 0]},
    ]
    assert read({"markups": nodes})[0].labels == ("nasion", "bregma", "lambda")


def test_two_lists_of_points_in_a_file_are_ambiguous(read):
    nodes = [markup(THREE, name="left"), markup(THREE)]
    with pytest.raises(FormatError, match=r"2 lists of points \('left', 'Fiducial'\)"):
        read({"markups": nodes})


def test_curves_stand_behind_the_landmarks_of_the_same_file(read):
    nodes = [markup(THREE, type="Curve"), markup(THREE), markup(THREE, type="ClosedCurve")]
    specimen, _ = read({"markups": nodes})
    assert specimen.labels[3:] == (
        *("curve1_1", "curve1_2", "curve1_3"),
        *("outline1_1", "outline1_2", "outline1_3"),
    )
    assert specimen.curves == specimen.labels[3:]
    np.testing.assert_array_equal(specimen.points[3:6], specimen.points[:3])


def test_semilandmarks_of_slicermorph_survive_the_round_trip(tmp_path):
    points = [
        {"label": label, "position": [k, 1, 2], "description": word}
        for k, (label, word) in enumerate(zip("abc", ("Fixed", "Semi", "Semi"), strict=True))
    ]
    for name in ("s1", "s2"):
        content = json.dumps({"markups": [markup(points)]})
        (tmp_path / f"{name}.mrk.json").write_text(content)
    shapes = read_shapes(tmp_path)
    assert shapes.metadata["semilandmarks"] == ("b", "c")
    write_shapes(shapes, tmp_path / "out", format="mrk.json")
    node = json.loads((tmp_path / "out" / "s1.mrk.json").read_text())["markups"][0]
    assert [p["description"] for p in node["controlPoints"]] == ["Fixed", "Semi", "Semi"]


def test_points_without_labels_are_taken_in_order(read):
    bare = [{"position": [k, k, k]} for k in range(3)]
    assert read({"markups": [markup(bare)]})[0].labels is None


def test_labels_on_some_points_only_are_not_trusted(read):
    with pytest.warns(DefgpaWarning, match="1 of 3 points have no label"):
        specimen, _ = read({"markups": [markup([*THREE[:2], {"position": [7, 8, 9]}])]})
    assert specimen.labels is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "expected an object of 3D Slicer with a list 'markups'"),
        ({"markups": 3}, "expected an object of 3D Slicer with a list 'markups'"),
        ({"markups": []}, "expected a Fiducial, Curve or ClosedCurve with points; found none"),
        ({"markups": [{"type": "Line"}]}, "with points; found 'Line'"),
        ({"markups": [{"type": "Fiducial"}]}, "expected a list of objects 'controlPoints'"),
        ({"markups": [markup([[1, 2, 3]])]}, "expected a list of objects 'controlPoints'"),
        ({"markups": [markup([point("a", [1, 2])])]}, "3 numbers as 'position' of control point 1"),
        ({"markups": [markup([point("a", [1, 2, "3"])])]}, "found [1, 2, '3']"),
        ({"markups": [markup([point("a", [1, 2, True])])]}, "found [1, 2, True]"),
        ({"markups": [markup([point("a", [1, 2, 10**400])])]}, "3 numbers as 'position'"),
        ({"markups": [markup(THREE, coordinateSystem="IJK")]}, "LPS or RAS; found IJK"),
        ({"markups": [markup([point("a", [1, 2, 3], positionStatus="lost")])]}, "found lost"),
    ],
)
def test_wrong_markups_are_told_what_is_wrong(read, content, message):
    with pytest.raises(FormatError, match=r"spec 1\.mrk\.json") as caught:
        read(content)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"markups": [\n  {"type": "Fiducial",\n  oops}]}',
            r", line 3: expected JSON; .* at column 3",
        ),
        ("[" * 200_000, "expected JSON"),
    ],
    ids=["a word", "nested beyond reason"],
)
def test_broken_json_is_told_by_line(tmp_path, text, message):
    path = tmp_path / "a.mrk.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=rf"a\.mrk\.json.*{message}"):
        MARKUPS.read(path, ReadOptions())


OLD = """# Markups fiducial file version = 4.11
# CoordinateSystem = {system}
# columns = id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID
0,1.5,-2.25,3,0,0,0,1,1,1,0,nasion,,vtkMRMLScalarVolumeNode1
1,4,5,6,0,0,0,1,1,1,0,"left, upper ""tip\""",a note,
"""


@pytest.mark.parametrize(
    ("system", "space"),
    [("0", "RAS"), ("1", "LPS"), ("LPS", "LPS"), ("RAS", "RAS"), ("lps", "LPS")],
)
def test_fcsv_is_read_by_column_names_in_its_system(read, system, space):
    specimen, actual = read(OLD.format(system=system))
    assert actual == space
    assert specimen.name == "spec 1"
    assert specimen.labels == ("nasion", 'left, upper "tip"')
    assert specimen.points.tolist() == [[1.5, -2.25, 3], [4, 5, 6]]


def test_fcsv_without_a_system_is_ras_and_columns_may_stand_anywhere(read):
    text = "# columns = label,z,y,x,sel,vis\r\nA,3,2,1,1,1\r\n\r\nB,6,5,4,1,1\r\n"
    specimen, space = read(text)
    assert space == "RAS"
    assert specimen.labels == ("A", "B")
    assert specimen.points.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_an_unversioned_fcsv_has_the_columns_of_slicer_3(read):
    specimen, _ = read("# name = list\nA,1,2,3,1,1\nB,4,5,6,1,1\n")
    assert specimen.labels == ("A", "B")
    assert specimen.points.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_versioned_fcsv_without_columns_has_those_of_slicer_4(read):
    text = "\n".join(line for line in OLD.splitlines() if "columns" not in line)
    assert read(text.format(system="LPS"))[0].labels[0] == "nasion"


def test_a_code_for_missing_counts_only_on_request(read):
    text = OLD.format(system="LPS") + "2,-1000,-1000,-1000,0,0,0,1,1,1,0,inion,,\n"
    text += "3,-1000,5,6,0,0,0,1,1,1,0,basion,,\n"
    assert np.isfinite(read(text)[0].points).all()
    coded = read(text, missing=-1000)[0].points
    assert np.isnan(coded[2]).all()
    assert coded[3].tolist() == [-1000, 5, 6]


def test_a_code_for_missing_is_replaced_in_markups(read):
    content = {"markups": [markup([*THREE, point("x", [-1000, -1000, -1000])])]}
    assert np.isnan(read(content, missing=-1000.0)[0].points).all(axis=1).tolist() == [
        False,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-2.25", "-2.2.5", "line 4: expected a number; found '-2.2.5'"),
        ("CoordinateSystem = LPS", "CoordinateSystem = IJK", "line 2: expected CoordinateSystem"),
        ("id,x,y,z", "id,a,b,c", "line 3: expected columns x, y and z"),
        ("1.5,-2.25,3", "1,5,-2,25,3,0", "line 4: expected 14 fields; found 17"),
        ("0,1.5,-2.25,3,0,0,0,1,1,1,0,nasion,,vtkMRMLScalarVolumeNode1", "0,1.5", "line 4"),
        ("1.5", '"1,5"', "decimal commas are not read"),
    ],
)
def test_wrong_fcsv_is_told_by_line(read, old, new, message):
    text = OLD.format(system="LPS")
    assert old in text
    with pytest.raises(FormatError) as caught:
        read(text.replace(old, new))
    assert message in str(caught.value)


def test_fcsv_without_points_is_refused(read):
    with pytest.raises(FormatError, match="expected at least one row of coordinates"):
        read("# CoordinateSystem = LPS\n")


def take_shape(space, missing=False):
    points = np.random.default_rng(3).normal(size=(1, 4, 3)) * 100
    if missing:
        points[0, 2] = np.nan
    labels = ["nasion", "left, upper", 'a "b"', "Wörth"]
    return Shapes.specimens(points, names=["s"], landmarks=labels, metadata={"space": space})


@pytest.mark.parametrize("space", ["LPS", "RAS"])
@pytest.mark.parametrize("kind", [MARKUPS, FCSV], ids=lambda f: f.name)
def test_what_is_written_is_read_to_the_last_digit(tmp_path, kind, space):
    shapes = take_shape(space)
    path = tmp_path / f"s{kind.suffixes[0]}"
    kind.write(path, shapes)
    document = kind.read(path, ReadOptions())
    assert document.metadata["space"] == space
    assert document.specimens[0].name == "s"
    assert document.specimens[0].labels == shapes.landmarks
    assert np.array_equal(document.specimens[0].points, shapes.points[0])


def test_a_missing_landmark_stays_missing_in_markups(tmp_path):
    path = tmp_path / "s.mrk.json"
    MARKUPS.write(path, take_shape("LPS", missing=True))
    (specimen,) = MARKUPS.read(path, ReadOptions()).specimens
    assert np.isnan(specimen.points).all(axis=1).tolist() == [False, False, True, False]
    written = json.loads(path.read_text(encoding="utf-8"))["markups"][0]["controlPoints"][2]
    assert (written["position"], written["positionStatus"]) == ("", "missing")


def test_a_missing_landmark_has_no_row_in_fcsv(tmp_path):
    path = tmp_path / "s.fcsv"
    FCSV.write(path, take_shape("LPS", missing=True))
    assert FCSV.read(path, ReadOptions()).specimens[0].labels == ("nasion", "left, upper", "Wörth")


# Files as versions of Slicer and other programs write them


def test_rows_of_slicer_5_end_with_a_status_that_no_column_names(read):
    """Two fields more than columns: a status, of which 2 is defined, and a flag."""
    columns = "id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID"
    specimen, space = read(
        "# Markups fiducial file version = 5.2\n# CoordinateSystem = LPS\n"
        f"# columns = {columns}\n"
        "1,1.5,2,3,0,0,0,1,1,1,0,F-1,,,2,0\n"
        "2,0,0,0,0,0,0,1,1,1,0,F-2,,,0,0\n"
        "3,4,5,6,0,0,0,1,1,1,0,F-3,,vtkMRMLModelNode4,2,0\n"
    )
    assert space == "LPS"
    assert specimen.labels == ("F-1", "F-2", "F-3")
    np.testing.assert_array_equal(specimen.points, [[1.5, 2, 3], [np.nan] * 3, [4, 5, 6]])


@pytest.mark.parametrize("extra", [",a,0", ",2,0,1", ",7,0"])
def test_other_fields_too_many_are_refused(read, extra):
    with pytest.raises(FormatError, match="line 2: expected 14 fields"):
        read("# Markups fiducial file version = 5.2\n1,1.5,2,3,0,0,0,1,1,1,0,F-1,," + extra + "\n")


def test_rows_without_any_header_are_told_by_their_number_of_fields(read):
    specimen, space = read(" ,1,2,3,0,1,0,1,1,1,0,F_1,,\n ,4,5,6,0,1,0,1,1,1,0,F_2,,\n")
    assert specimen.labels == ("F_1", "F_2")
    assert specimen.points.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert space == "RAS"


def test_voxel_numbers_are_refused_with_the_way_out(read):
    with pytest.raises(FormatError, match="save the points in LPS or RAS"):
        read({"markups": [markup(THREE, coordinateSystem="IJK")]})
    with pytest.raises(FormatError, match=r"line 1: .* found 2 \(voxel numbers; save the points"):
        read("# CoordinateSystem = 2\nF-1,1,2,3,1,1\n")


def test_a_list_of_previews_alone_is_meant(read):
    """Programs that detect landmarks write them so; a template has them all in the origin."""
    previews = [{**first, "positionStatus": "preview"} for first in THREE]
    with pytest.warns(DefgpaWarning, match="taken as defined"):
        specimen, _ = read({"markups": [markup(previews)]})
    assert specimen.points.tolist() == [p["position"] for p in THREE]
    template = [point(label, [0, 0, 0], positionStatus="preview") for label in "abc"]
    assert np.isnan(read({"markups": [markup(template)]})[0].points).all()


def test_a_cr_inside_the_lines_of_an_fcsv_is_a_blank(tmp_path):
    (tmp_path / "a.fcsv").write_bytes(
        b"# Markups fiducial file version = 4.11\r\r\n# CoordinateSystem = 0\n"
        b"# columns = id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID\n"
        b"1,1.5,2,3,0,0,0,1,1,1,0,left\reye,,\r\n2,4,5,6,0,0,0,1,1,1,0,tip,,\n"
    )
    shapes = read_shapes(tmp_path / "a.fcsv")
    assert shapes.landmarks == ("left eye", "tip")
    assert shapes.points.tolist() == [[[1.5, 2, 3], [4, 5, 6]]]
