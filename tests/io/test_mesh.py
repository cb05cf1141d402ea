"""Meshes: the vertices keep their order and every digit, and their faces come along."""

import base64
import lzma
import re
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError, ShapeError
from defgpa.io.format import ReadOptions
from defgpa.io.mesh.files import FORMATS, read_mesh, write_mesh
from defgpa.io.mesh.mesh import Mesh
from defgpa.shapes import Shapes
from support import shared_data

BY_NAME = {f.name: f for f in FORMATS}
SEEDS = Path(__file__).parent / "seeds"
PLY = (SEEDS / "ply__polygons.ply").read_text()
MESHLAB_PLY = (SEEDS / "ply__meshlab.ply").read_text()
VTK = (SEEDS / "vtk__sections.vtk").read_text()
NUMBERED = ["ply", "vtk", "vtp", "off", "obj"]


def tetrahedron(**more):
    vertices = np.random.default_rng(7).normal(size=(4, 3)) * [1, 1e-7, 1e9]
    faces = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]
    return Mesh(vertices, faces, **more)


def coloured(width=3):
    colours = np.random.default_rng(8).integers(0, 256, size=(4, width))
    scalars = {"error": np.array([0.1, np.pi, -1e-300, 7]), "other one": np.arange(4.0)}
    return tetrahedron(colours=colours, scalars=scalars)


def written_and_read(tmp_path, mesh, suffix):
    write_mesh(tmp_path / f"a.{suffix}", mesh)
    return read_mesh(tmp_path / f"a.{suffix}")


@pytest.fixture
def read(tmp_path):
    def read_content(content, suffix):
        path = tmp_path / f"a.{suffix}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_mesh(path)

    return read_content


# Round trips


@pytest.mark.parametrize("suffix", NUMBERED)
@pytest.mark.parametrize("kind", ["tetrahedron", "cloud", "dense"])
def test_vertices_and_faces_are_read_back_to_the_last_digit(tmp_path, suffix, kind):
    mesh = tetrahedron()
    if kind == "cloud":
        mesh = Mesh(mesh.vertices)
        assert mesh.faces.shape == (0, 3)
    if kind == "dense":
        with np.load(shared_data("cactus3d.npz"), allow_pickle=False) as archive:
            mesh = Mesh(archive["points"][3], archive["faces"])
    again = written_and_read(tmp_path, mesh, suffix)
    assert np.array_equal(again.vertices, mesh.vertices)
    assert np.array_equal(again.faces, mesh.faces)
    assert again.colours is None
    assert not again.scalars


@pytest.mark.parametrize("width", [3, 4])
@pytest.mark.parametrize("suffix", ["ply", "vtk", "vtp"])
def test_colours_and_scalar_fields_are_read_back(tmp_path, suffix, width):
    mesh = coloured(width)
    again = written_and_read(tmp_path, mesh, suffix)
    assert np.array_equal(again.colours, mesh.colours)
    assert np.array_equal(again.scalars["error"], mesh.scalars["error"])
    field = "other_one" if suffix == "ply" else "other one"  # a PLY property is one word
    assert np.array_equal(again.scalars[field], mesh.scalars["other one"])


@pytest.mark.parametrize("suffix", ["obj", "off"])
def test_formats_without_scalar_fields_say_so_and_keep_colours(tmp_path, suffix):
    with pytest.warns(DefgpaWarning, match=f"{suffix.upper()} does not hold error, other one"):
        again = written_and_read(tmp_path, coloured(), suffix)
    assert np.array_equal(again.colours, coloured().colours)


def test_stl_says_that_it_holds_neither_colours_nor_numbers(tmp_path):
    mesh = coloured()
    with pytest.warns(DefgpaWarning) as caught:
        again = written_and_read(tmp_path, mesh, "stl")
    warned = " ".join(str(warning.message) for warning in caught)
    assert "STL does not hold error, other one, colours" in warned
    assert "in another order when it is read again" in warned
    corners, expected = again.vertices[again.faces], mesh.vertices[mesh.faces]
    assert np.array_equal(corners, expected)


def test_stl_keeps_the_order_of_vertices_that_occur_in_order(tmp_path):
    ordered = Mesh(tetrahedron().vertices, [[0, 1, 2], [0, 2, 3], [3, 1, 0]])
    again = written_and_read(tmp_path, ordered, "stl")
    assert np.array_equal(again.vertices, ordered.vertices)
    assert np.array_equal(again.faces, ordered.faces)


def test_two_scalar_fields_never_become_one_property(tmp_path):
    mesh = tetrahedron(scalars={"a b": np.zeros(4), "a_b": np.ones(4), "x": np.full(4, 2.0)})
    again = written_and_read(tmp_path, mesh, "ply")
    assert {name: values[0] for name, values in again.scalars.items()} == {
        "a_b": 0,
        "a_b_": 1,
        "x_": 2,
    }
    assert np.array_equal(again.vertices, mesh.vertices)


@pytest.mark.parametrize("suffix", ["ply", "vtk", "vtp"])
def test_a_missing_vertex_stays_missing_where_the_format_has_nan(tmp_path, suffix):
    vertices = np.array(tetrahedron().vertices)
    vertices[2] = np.nan
    again = written_and_read(tmp_path, Mesh(vertices), suffix)
    assert np.array_equal(again.vertices, vertices, equal_nan=True)


@pytest.mark.parametrize("suffix", ["obj", "off", "stl"])
def test_a_missing_vertex_is_refused_by_formats_without_nan(tmp_path, suffix):
    vertices = np.array(tetrahedron().vertices)
    vertices[2] = np.nan
    with pytest.raises(FormatError, match="some vertices are missing"):
        write_mesh(tmp_path / f"a.{suffix}", Mesh(vertices, tetrahedron().faces))
    with pytest.raises(FormatError, match="STL holds triangles, and there are none"):
        write_mesh(tmp_path / "a.stl", Mesh(tetrahedron().vertices))
    assert not list(tmp_path.iterdir())


# Files of other programs


@pytest.mark.parametrize("suffix", ["ply", "obj", "off", "stl"])
def test_trimesh_reads_what_we_write(tmp_path, suffix):
    trimesh = pytest.importorskip("trimesh")
    mesh = tetrahedron()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_mesh(tmp_path / f"a.{suffix}", mesh)
        theirs = trimesh.load(tmp_path / f"a.{suffix}", process=False, maintain_order=True)
    np.testing.assert_array_equal(theirs.vertices[theirs.faces], mesh.vertices[mesh.faces])
    if suffix != "stl":
        np.testing.assert_array_equal(theirs.vertices, mesh.vertices)


@pytest.mark.parametrize("suffix", ["ply", "obj", "off", "stl"])
def test_we_read_what_trimesh_writes(tmp_path, suffix):
    trimesh = pytest.importorskip("trimesh")
    box = trimesh.creation.box()
    box.export(tmp_path / f"a.{suffix}")
    mesh = read_mesh(tmp_path / f"a.{suffix}")
    np.testing.assert_array_equal(mesh.vertices[mesh.faces], box.vertices[box.faces])
    assert len(mesh.vertices) == 8


@pytest.mark.parametrize("options", [{"binary": True}, {"binary": False}])
@pytest.mark.parametrize("name", ["ply", "vtk", "vtk42", "stl"])
def test_we_read_what_meshio_writes(tmp_path, name, options):
    meshio = pytest.importorskip("meshio")
    ours = tetrahedron()
    field = np.array([0.5, -2.25, 1e-3, 4])
    theirs = meshio.Mesh(ours.vertices, [("triangle", ours.faces)], point_data={"error": field})
    path = tmp_path / f"a.{name[:3]}"
    theirs.write(path, file_format=name, **options)
    again = read_mesh(path)
    tolerance = 1e-6 if name == "stl" else 0  # STL has single precision
    np.testing.assert_allclose(
        again.vertices[again.faces], ours.vertices[ours.faces], rtol=tolerance
    )
    if name != "stl":
        np.testing.assert_array_equal(again.vertices, ours.vertices)
        np.testing.assert_array_equal(again.scalars["error"], field)


def test_meshio_reads_our_scalar_fields_in_ply(tmp_path):
    meshio = pytest.importorskip("meshio")
    write_mesh(tmp_path / "a.ply", coloured())
    theirs = meshio.read(tmp_path / "a.ply")
    np.testing.assert_array_equal(theirs.point_data["error"], coloured().scalars["error"])
    np.testing.assert_array_equal(theirs.points, coloured().vertices)


# PLY by hand

ROWS = [
    (0, 0, 0, 9, 1, 2, 3, 10),
    (1, 0, 0, 9, 4, 5, 6, 11),
    (1, 1, 0, 9, 7, 8, 9, 12),
    (0, 1, 0, 9, 0, 0, 255, 13),
    (0.5, 0.5, 2, 9, 255, 0, 0, 14),
]


def ply_head(encoding):
    return PLY[: PLY.index("end_header\n") + 11].replace("ascii", encoding)


def ply_body(encoding):
    if encoding == "ascii":
        return PLY.removeprefix(ply_head(encoding)).encode()
    order = "<" if "little" in encoding else ">"
    body = b"".join(struct.pack(order + "4f3Bi", *row) for row in ROWS)
    body += struct.pack(order + "B4iB", 4, 0, 1, 2, 3, 7) + struct.pack(
        order + "B3iB", 3, 0, 1, 4, 8
    )
    return body + struct.pack(order + "2i", 0, 1)


@pytest.mark.parametrize("encoding", ["ascii", "binary_little_endian", "binary_big_endian"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_ply_file_of_mixed_polygons_is_read(read, encoding, ends):
    header = ply_head(encoding).replace("\n", ends).encode()
    mesh = read(header + ply_body(encoding), "ply")
    assert mesh.vertices.tolist() == [list(row[:3]) for row in ROWS]
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 4]]
    assert mesh.colours.tolist() == [list(row[4:7]) for row in ROWS]
    assert list(mesh.scalars) == ["age"]
    assert mesh.scalars["age"].tolist() == [10, 11, 12, 13, 14]


WRONG_PLY = [
    ("ply\n", "plx\n", "line 1: expected 'ply'"),
    ("format ascii", "format utf", "line 2: expected a line of a PLY header"),
    ("format ascii 1.0\n", "", "expected a line 'format'"),
    ("end_header\n", "", "a line of a PLY header; found 0 0 0 9"),
    ("element vertex 5", "element vertex five", "line 5: expected a whole number"),
    ("element vertex 5", "element vertex 999999999", "expected 999999999 rows of 'vertex'"),
    ("property float z", "property quad z", "line 8: expected a property with a type"),
    ("property float z", "property float w", "with properties x, y and z"),
    ("1 0 0 9 4 5 6 11", "1 0 0 9 4 5 6", "line 22: expected 8 numbers; found 1 0 0 9 4 5 6"),
    ("1 0 0 9 4 5 6 11", "1 0 zero 9 4 5 6 11", "line 22: expected a number; found 'zero'"),
    ("4 0 1 2 3 7", "5 0 1 2 3 7", "line 26: expected 7 numbers"),
    ("4 0 1 2 3 7", "-1 0 1 2 3 7", "line 26: expected the length of a list; found -1"),
    ("4 0 1 2 3 7", "4 0 1 2 9 7", "faces that number 5 landmarks; found 9"),
    ("4 0 1 2 3 7", "4 0 1 2 1.5 7", "faces that number 5 landmarks; found -1"),
    ("\n0 1\n", "\n", "expected 1 rows of 'edge'; found 0"),
]


def test_ply_bytes_that_end_too_soon_are_refused(read):
    header = ply_head("binary_little_endian").encode()
    body = ply_body("binary_little_endian")
    for cut in range(len(body)):
        with pytest.raises(FormatError, match=r"a\.ply: expected"):
            read(header + body[:cut], "ply")


def test_ply_text_keeps_digits_beyond_its_type(read):
    text = "ply\nformat ascii 1.0\nelement vertex 1\n"
    text += "".join(f"property float {axis}\n" for axis in "xyz") + "end_header\n"
    assert read(text + "0.1234567890123456 1 2\n", "ply").vertices[0, 0] == 0.1234567890123456


# OBJ by hand


def test_obj_corners_in_every_notation_mean_vertices(read):
    mesh = read(
        "# a comment\nmtllib a.mtl\no thing\nv 0 0 0\nv 1 0 0 # tip\nv 1 1 0\nv 0 1 0\n"
        "vt 0 0\nvt 1 1\nvn 0 0 1\ng part\nusemtl red\ns off\n"
        "f 1/1 2/2 3/1\nf 1//1 3//1 4//1\nf -4 -3 -2 \\\n -1\nf 2/1/1 3/2/1 4/1/1\nl 1 2\n",
        "obj",
    )
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 2], [0, 2, 3], [1, 2, 3]]


def test_obj_vertices_that_no_face_uses_are_kept(read):
    mesh = read("v 9 9 9\nv 0 0 0\nv 1 0 0\nv 1 1 0\nf 2 3 4\n", "obj")
    assert len(mesh.vertices) == 4
    assert mesh.faces.tolist() == [[1, 2, 3]]


WRONG_OBJ = [
    ("v 0 0\n", "line 1: expected x, y and z of a vertex; found 0 0"),
    ("v 0 0 0\nv 0 a 0\n", "line 2: expected a number; found 'a'"),
    ("v 0 0 0\nv 0,5 0 0\n", "decimal commas are not read"),
    ("v 0 0 0\nf 1 2 3\n", "faces that number 1 landmarks; found 1"),
    ("v 0 0 0\nf 0 1 1\n", "line 2: expected a vertex number from 1; found '0'"),
    ("v 0 0 0\nf -2 1 1\n", "line 2: expected a vertex number from 1; found '-2'"),
    ("v 0 0 0\nf a b c\n", "line 2: expected a vertex number; found 'a'"),
    ("v 0 0 0\nf 99999999999999999999 1 1\n", "expected a vertex number from 1"),
    ("g empty\n", "expected a mesh with vertices; found none"),
    ("", "is empty"),
    ("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0_1 2 3\n", "expected a vertex number; found '0_1'"),
]


# OFF by hand

OFF = """# a comment
OFF
4 2 0
0 0 0
1 0 0
1 1 0  # another

0 1 0
3 0 1 2
3 0 2 3 0.5 0.5 0.5
"""

OFF_SQUARE = "4 2 0 0 0 0 1 0 0 1 1 0 0 1 0 3 0 1 2 3 0 2 3"


@pytest.mark.parametrize(
    "text",
    [
        OFF,
        OFF.replace("OFF\n4", "OFF 4"),
        f"OFF {OFF_SQUARE}",
        f"OFF\n{OFF_SQUARE}",
        "OFF\n" + OFF_SQUARE.replace(" ", "\n"),
        "OFF\n4\n2\n0\n0 0 0 1 0 0\n1 1 0 0 1 0\n3 0 1 2 3 0 2 3",
        "OFF 4 2 0\n0 0\n0 1 0 0 1\n1 0 0 1 0 # half\n3 0\n1 2\n3 0 2 3",
    ],
)
def test_off_may_break_its_lines_anywhere(read, text):
    mesh = read(text, "off")
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert mesh.colours is None


@pytest.mark.parametrize("text", [f"OFF {OFF_SQUARE} 1", f"OFF {OFF_SQUARE[:-2]}", "OFF 1e9 1 0 3"])
def test_off_whose_numbers_do_not_add_up_is_refused(read, text):
    with pytest.raises(FormatError, match=r"a\.off"):
        read(text, "off")


@pytest.mark.parametrize(
    ("text", "colours"),
    [
        ("CNOFF\n1 0 0\n1 2 3 0 0 1 255 128 0 64\n", [[255, 128, 0, 64]]),
        ("COFF\n1 0 0\n1 2 3 1 0.5 0 1\n", [[255, 128, 0]]),
        ("COFF 1 0 0 0 0 0 10 20 30 40", [[10, 20, 30, 40]]),
    ],
)
def test_off_colours_are_fractions_or_bytes_after_the_normals(read, text, colours):
    assert read(text, "off").colours.tolist() == colours


WRONG_OFF = [
    ("OFF\n4 2 0", "4OFF\n4 2 0", "line 2: expected 'OFF'; found 4OFF"),
    ("4 2 0", "4", "line 3: expected the numbers of vertices and faces"),
    ("4 2 0", "four 2 0", "line 3: expected a whole number"),
    ("4 2 0", "4 9 0", "expected 4 vertices and 9 faces; found 6 lines"),
    ("1 0 0\n", "1 0\n", "line 5: expected x, y and z of a vertex"),
    ("3 0 1 2", "3 0 1", "expected the number of corners, and the corners"),
    ("3 0 1 2", "3 0 1 4", "faces that number 4 landmarks; found 4"),
]


# STL by hand


def stl_bytes(triangles, header=b"solid but binary"):
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *np.ravel(t), 0) for t in triangles)
    return header.ljust(80) + struct.pack("<I", len(triangles)) + body


TRIANGLES = [[[0, 0, 0], [1, 0, 0], [1, 1, 0]], [[0, 0, 0], [1, 1, 0], [0, 1, 0.5]]]


def test_stl_corners_that_are_equal_are_one_vertex_numbered_as_they_occur(read):
    mesh = read(stl_bytes(TRIANGLES), "stl")
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.5]]
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]


def test_stl_text_of_several_solids_is_one_mesh(read):
    text = ""
    for triangle in TRIANGLES:
        corners = "\n".join("  VERTEX " + " ".join(map(str, corner)) for corner in triangle)
        text += (
            f"solid a\n facet normal 0 0 1\n outer loop\n{corners}\nendloop\nendfacet\nendsolid\n"
        )
    assert read(text, "stl").faces.tolist() == [[0, 1, 2], [0, 2, 3]]


WRONG_STL = [
    (stl_bytes(TRIANGLES)[:-3], "expected 184 bytes, for the 2 triangles it announces"),
    (b"facet normal 0 0 0\n", "expected 'solid'"),
    ("solid\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nendloop\n", "line 5: expected triangles"),
    ("solid\nvertex 0 0 0\nvertex 1 0 0\n", "three corners a triangle; found 2 corners"),
    ("solid\nvertex 0 0\n", "line 2: expected x, y and z of a vertex"),
    ("solid\nvertex 0 0 inf\nvertex 0 0 0\nvertex 1 0 0\n", "expected finite corners"),
    ("solid\nendsolid\n", "expected a mesh with vertices"),
]


# VTK by hand


def test_vtk_polygons_strips_and_point_data_are_read(read):
    mesh = read(VTK, "vtk")
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 2]]
    strips = [[0, 1, 3], [3, 1, 2]]
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 4], *strips]
    assert {name: values.tolist() for name, values in mesh.scalars.items()} == {
        "my error": [0.5, 1.5, 2.5, 3.5, 4.5],
        "age": [1, 2, 3, 4, 5],
    }
    assert mesh.colours.tolist() == [[0, 0, 255], [0, 255, 0], [255, 0, 0], [0, 0, 0], [255] * 3]


def test_vtk_files_of_version_5_give_offsets(read):
    old = "POLYGONS 2 9\n4 0 1 2 3\n3 0 1 4\n"
    new = "POLYGONS 3 7\nOFFSETS vtktypeint64\n0 4 7\nCONNECTIVITY vtktypeint64\n0 1 2 3\n0 1 4\n"
    assert old in VTK
    assert np.array_equal(read(VTK.replace(old, new), "vtk").faces, read(VTK, "vtk").faces)


def test_flat_cells_of_an_unstructured_grid_are_faces(read):
    text = (
        "# vtk DataFile Version 3.0\n\nASCII\nDATASET UNSTRUCTURED_GRID\n"
        "POINTS 5 double\n0 0 0 1 0 0 1 1 0 0 1 0 0 0 1\n"
        "CELLS 3 14\n4 0 1 2 3\n4 0 1 2 4\n3 0 1 4\nCELL_TYPES 3\n9\n10\n5\n"
    )
    assert read(text, "vtk").faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 4]]


def test_vtk_point_data_that_break_off_cost_only_themselves(read):
    with pytest.warns(DefgpaWarning, match=r"its surface is not\. .*line 34: expected 15 numbers"):
        mesh = read(VTK[: -len("0 0 0\n")], "vtk")
    assert "my error" in mesh.scalars
    assert len(mesh.faces) == 5


WRONG_VTK = [
    ("# vtk DataFile Version 4.2", "# vtk", "line 1: expected '# vtk DataFile Version"),
    ("ASCII", "UTF8", "line 3: expected ASCII or BINARY; found UTF8"),
    ("DATASET POLYDATA", "DATASET RECTILINEAR_GRID", "line 4: expected DATASET POLYDATA or"),
    ("POINTS 5 float", "POINTS 5 quad", "line 5: expected a type of numbers; found quad"),
    ("POINTS 5 float", "POINTS many float", "line 5: expected a whole number"),
    ("POINTS 5 float", "POINTS 999999999 float", "expected 2999999997 numbers"),
    ("POINTS 5 float", "POINTS 6 float", "line 8: expected a number; found 'METADATA'"),
    ("1 1 0 0 1 0 0.5", "1 1 0 0 x 0 0.5", "line 7: expected a number; found 'x'"),
    ("4 0 1 2 3", "8 0 1 2 3", "expected 2 cells; found 1"),
    ("4 0 1 2 3", "9 0 1 2 3", "cells that begin with their length; found a cell of 9"),
    ("3 0 1 4", "3 0 1 5", "faces that number 5 landmarks; found 5"),
    ("VERTICES 1 2", "VORTICES 1 2", "expected a section of VTK polygons"),
    (VTK[VTK.index("POINTS") :], "", "expected a section POINTS; found none"),
]


# VTP by hand

POINTS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.5]])
CORNERS, ENDS = np.array([0, 1, 2, 3, 0, 1, 3]), np.array([4, 7])


def vtp(array, attributes="", appended=""):
    """A VTP file whose arrays are encoded by ``array(name, values)``."""
    return (
        f'<?xml version="1.0"?>\n<VTKFile type="PolyData" version="1.0" {attributes}>\n<PolyData>'
        '<Piece NumberOfPoints="4" NumberOfPolys="2" NumberOfStrips="0"><PointData>'
        f"{array('error', np.arange(4.0))}</PointData><Points>{array('p', POINTS)}</Points>"
        f"<Polys>{array('connectivity', CORNERS)}{array('offsets', ENDS)}</Polys>"
        f"</Piece></PolyData>{appended}</VTKFile>"
    ).encode("latin-1")


def element(name, values, form, text="", offset=None):
    kind = "Float64" if values.dtype.kind == "f" else "Int64"
    width = values.shape[1] if values.ndim == 2 else 1
    place = "" if offset is None else f'offset="{offset}"'
    return (
        f'<DataArray type="{kind}" Name="{name}" NumberOfComponents="{width}" '
        f'format="{form}" {place}>{text}</DataArray>'
    )


def packed(values, word, order, compress):
    """Header and data as VTK lays them out."""
    data = values.astype(values.dtype.newbyteorder(order)).tobytes()
    if compress is None:
        return np.array([len(data)], dtype=order + word).tobytes(), data
    blocks = [data[i : i + 24] for i in range(0, len(data), 24)]
    last = len(data) % 24
    squeezed = [compress(block) for block in blocks]
    head = [len(blocks), 24, last, *map(len, squeezed)]
    return np.array(head, dtype=order + word).tobytes(), b"".join(squeezed)


def assert_is_the_surface(mesh):
    assert np.array_equal(mesh.vertices, POINTS)
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 3]]
    assert mesh.scalars["error"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("compressor", "compress"), [("", None), ("ZLib", zlib.compress), ("LZMA", lzma.compress)]
)
@pytest.mark.parametrize("word", ["u4", "u8"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("where", ["inline", "appended base64", "appended raw"])
def test_vtp_bytes_are_read_wherever_they_stand(read, where, order, word, compressor, compress):
    attributes = f'byte_order="{"LittleEndian" if order == "<" else "BigEndian"}" '
    attributes += f'header_type="{"UInt32" if word == "u4" else "UInt64"}"'
    attributes += f' compressor="vtk{compressor}DataCompressor"' if compressor else ""
    tail = b""

    def encoded(values):
        header, data = packed(values, word, order, compress)
        if where == "appended raw":
            return header + data
        if compress:
            return base64.b64encode(header) + base64.b64encode(data)
        return base64.b64encode(header + data)

    def array(name, values):
        nonlocal tail
        if where == "inline":
            return element(name, values, "binary", encoded(values).decode())
        offset, tail = len(tail), tail + encoded(values)
        return element(name, values, "appended", offset=offset)

    content = vtp(array, attributes)
    if tail:
        encoding = where.split()[1].encode()
        block = b'<AppendedData encoding="' + encoding + b'">\n_' + tail + b"\n</AppendedData>"
        content = content.replace(b"</VTKFile>", block + b"</VTKFile>")
    assert_is_the_surface(read(content, "vtp"))


WRONG_VTP = [
    ("</Points>", "", "is not a VTK PolyData file that can be read: it is damaged"),
    ('type="PolyData"', 'type="ImageData"', "expected a VTKFile of type PolyData"),
    ("<Piece ", "<Place ", "it is damaged"),
    ('NumberOfPoints="4"', 'NumberOfPoints="0"', "expected a Piece of PolyData with points"),
    ('NumberOfPoints="4"', 'NumberOfPoints="999999999"', "999999999 points in a Piece; found 4"),
    ('"connectivity"', '"connection"', "expected an element DataArray[@Name='connectivity']"),
    ("4 7", "4 8", "offsets that rise to the number of corners"),
    ("4 7", "7 4", "offsets that rise to the number of corners"),
    ("0 1 2 3 0 1 3", "0 1 2 3 0 1 4", "faces that number 4 landmarks; found 4"),
    ("0.0 1.0 2.0 3.0", "0.0 1.0 2.0", "4 values of 'error', one a vertex; found 3"),
    ("0.0 1.0 2.0 3.0", "0.0 1.0 2.0 x", "expected numbers; found x"),
    ("0.0 1.0 2.0 3.0", "0.0 1.0 2.0 1_000", "expected numbers; found 1_000"),
    ('type="Int64"', 'type="String"', "expected a type of numbers; found String"),
    ('format="ascii"', 'format="binary"', "is not a VTK PolyData file that can be read"),
]


VTP = vtp(lambda n, v: element(n, v, "ascii", " ".join(map(str, v.ravel().tolist())))).decode()


@pytest.mark.parametrize(
    ("suffix", "text", "old", "new", "message"),
    [
        *[("ply", PLY, *wrong) for wrong in WRONG_PLY],
        *[("off", OFF, *wrong) for wrong in WRONG_OFF],
        *[("vtk", VTK, *wrong) for wrong in WRONG_VTK],
        *[("vtp", VTP, *wrong) for wrong in WRONG_VTP],
        *[("obj", "", "", *wrong) for wrong in WRONG_OBJ],
        *[("stl", "", "", *wrong) for wrong in WRONG_STL],
    ],
)
def test_what_is_wrong_is_told_where_and_why(read, suffix, text, old, new, message):
    assert old in text
    with pytest.raises(FormatError, match=rf"a\.{suffix}") as caught:
        read(text.replace(old, new, 1) if old else new, suffix)
    assert message in str(caught.value)


def test_vtp_text_is_read(read):
    assert_is_the_surface(read(VTP, "vtp"))


def test_a_compressor_we_do_not_have_is_named(read):
    header, data = packed(POINTS, "u4", "<", zlib.compress)
    text = (base64.b64encode(header) + base64.b64encode(data)).decode()
    content = vtp(lambda n, v: element(n, v, "binary", text), 'compressor="vtkOwnDataCompressor"')
    with pytest.raises(
        FormatError, match=r"compressed with vtkOwnDataCompressor\. Save it in ParaView"
    ):
        read(content, "vtp")


# All of them


@pytest.mark.parametrize("name", NUMBERED)
def test_a_mesh_is_one_shape_with_faces(tmp_path, name):
    mesh = tetrahedron()
    kind = BY_NAME[name]
    path = tmp_path / f"skull{kind.suffixes[0]}"
    kind.write(path, Shapes.specimens(mesh.vertices[None], faces=mesh.faces))
    document = kind.read(path, ReadOptions())
    (specimen,) = document.specimens
    assert specimen.name == "skull"
    assert specimen.labels is None
    assert np.array_equal(specimen.points, mesh.vertices)
    assert np.array_equal(document.faces, mesh.faces)
    assert kind.one_shape_per_file


def test_unknown_files_and_suffixes_are_told_the_known_ones(tmp_path):
    with pytest.raises(FormatError, match=r"cannot be written as a mesh; .*'\.ply', '\.vtk'"):
        write_mesh(tmp_path / "a.glb", tetrahedron())
    (tmp_path / "a.glb").write_bytes(b"glTF")
    with pytest.raises(FormatError, match="cannot be read as a mesh"):
        read_mesh(tmp_path / "a.glb")
    with pytest.raises(FormatError, match=r"none\.ply cannot be read: No such file"):
        read_mesh(tmp_path / "none.ply")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vertices": np.zeros((4, 2))}, r"must be \(m, 3\); got size \(4, 2\)"),
        ({"faces": [[0, 1, 4]]}, "number its 4 vertices from 0; got 0 to 4"),
        ({"faces": [[0, 1]]}, r"must be \(k, 3\) vertex numbers"),
        ({"colours": np.zeros((4, 2))}, r"\(m, 3\) or \(m, 4\); got size \(4, 2\)"),
        ({"colours": np.zeros((3, 3))}, r"colours must have size \(4, 3\); got \(3, 3\)"),
        ({"scalars": {"a": np.zeros(3)}}, r"field 'a' must have size \(4,\); got \(3,\)"),
    ],
)
def test_a_mesh_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(ShapeError, match=message):
        Mesh(**{"vertices": np.zeros((4, 3)), **arguments})


def test_a_mesh_does_not_change():
    mesh = coloured()
    for array in (mesh.vertices, mesh.faces, mesh.colours, mesh.scalars["error"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_ply_with_texture_and_colours_of_faces_as_meshlab_writes_it(read):
    """It announces colours of the faces and of their corners, and writes the former only."""
    mesh = read(MESHLAB_PLY, "ply")
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert mesh.colours.tolist() == [[255, 0, 0, 255]] * 4
    colours = "255 255 255 255"
    complete = MESHLAB_PLY.replace(colours, f"{colours} 9 1 1 1 1 1 1 1 1 1")
    assert read(complete, "ply").faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    cut = MESHLAB_PLY[: MESHLAB_PLY.rindex(" 3 0 6")]
    with pytest.raises(FormatError, match=r"line 29: expected 4 numbers; found 3 0 2"):
        read(cut, "ply")


class TestWhatVtkWrites:
    """Every file that the ``vtk`` wheel writes is read as it is read there."""

    vtk = None

    @pytest.fixture(autouse=True)
    def _with_vtk(self):
        type(self).vtk = pytest.importorskip("vtk")

    def surface(self, strips, seed=0):
        """A sphere, with data of every kind at its points."""
        vtk = self.vtk
        source = vtk.vtkSphereSource()
        source.SetOutputPointsPrecision(vtk.vtkAlgorithm.DOUBLE_PRECISION)
        stripper = vtk.vtkStripper()
        stripper.SetInputConnection(source.GetOutputPort())
        last = stripper if strips else source
        last.Update()
        surface = last.GetOutput()
        m, rng = surface.GetNumberOfPoints(), np.random.default_rng(seed)
        data = surface.GetPointData()
        data.SetScalars(self.array("rgb", rng.integers(0, 256, size=(m, 3)).astype("u1")))
        data.SetTCoords(self.array("tc", rng.random((m, 2))))
        for name, values in (
            ("an error", rng.normal(size=m)),
            ("count", rng.integers(0, 1000, size=m).astype("i4")),
            ("small", rng.integers(-100, 100, size=m).astype("i1")),
            ("vector", rng.normal(size=(m, 3))),
            ("tensor", rng.normal(size=(m, 9))),
        ):
            data.AddArray(self.array(name, values))
        surface.GetCellData().AddArray(self.array("cell", np.ones(surface.GetNumberOfCells())))
        for length in (0, 3, 70, 20_000):  # their lengths take 1, 2 and 4 bytes
            words = vtk.vtkStringArray()
            words.SetName(f"words{length}")
            words.InsertNextValue("a" * length)
            surface.GetFieldData().AddArray(words)
        bits = vtk.vtkBitArray()
        bits.SetName("bits")
        for k in range(m):
            bits.InsertNextValue(k % 2)
        data.AddArray(bits)
        return surface

    def array(self, name, values):
        from vtk.util.numpy_support import numpy_to_vtk

        array = numpy_to_vtk(values, deep=True)
        array.SetName(name)
        return array

    def as_vtk_reads_it(self, reader, path):
        from vtk.util.numpy_support import vtk_to_numpy

        reader.SetFileName(str(path))
        triangles = self.vtk.vtkTriangleFilter()
        triangles.SetInputConnection(reader.GetOutputPort())
        triangles.PassVertsOff()
        triangles.PassLinesOff()
        triangles.Update()
        surface, data = triangles.GetOutput(), triangles.GetOutput().GetPointData()
        faces = vtk_to_numpy(surface.GetPolys().GetConnectivityArray()).reshape(-1, 3)
        names = ("rgb", "an error", "count", "small")
        fields = {name: vtk_to_numpy(data.GetArray(name)) for name in names}
        return vtk_to_numpy(surface.GetPoints().GetData()), faces, fields

    def assert_the_same(self, path, reader):
        vertices, faces, fields = self.as_vtk_reads_it(reader, path)
        mesh = read_mesh(path)
        np.testing.assert_array_equal(mesh.vertices, vertices)
        assert sorted(map(turned, mesh.faces.tolist())) == sorted(map(turned, faces.tolist()))
        np.testing.assert_array_equal(mesh.colours, fields.pop("rgb"))
        for name, values in fields.items():
            np.testing.assert_array_equal(mesh.scalars[name], values)

    @pytest.mark.parametrize("strips", [False, True])
    @pytest.mark.parametrize("version", [42, 51])
    @pytest.mark.parametrize("binary", [False, True])
    def test_legacy_files_of_vtk_are_read_as_vtk_reads_them(
        self, tmp_path, strips, version, binary
    ):
        writer = self.vtk.vtkPolyDataWriter()
        writer.SetInputData(self.surface(strips))
        writer.SetFileVersion(version)
        writer.SetFileType(2 if binary else 1)
        writer.SetFileName(str(tmp_path / "a.vtk"))
        writer.Write()
        reader = self.vtk.vtkPolyDataReader()
        reader.ReadAllScalarsOn()
        self.assert_the_same(tmp_path / "a.vtk", reader)

    @pytest.mark.parametrize("compressor", ["NONE", "ZLIB", "LZ4", "LZMA"])
    @pytest.mark.parametrize("mode", ["Ascii", "Binary", "Appended raw", "Appended base64"])
    @pytest.mark.parametrize("big", [False, True])
    def test_xml_files_of_vtk_are_read_as_vtk_reads_them(self, tmp_path, compressor, mode, big):
        if compressor == "LZ4":
            pytest.importorskip("lz4")
        writer = self.vtk.vtkXMLPolyDataWriter()
        writer.SetInputData(self.surface(strips=big))
        getattr(writer, f"SetDataModeTo{mode.split()[0]}")()
        writer.SetEncodeAppendedData(mode.endswith("base64"))
        writer.SetCompressorType(getattr(writer, compressor))
        writer.SetByteOrder(0 if big else 1)
        writer.SetHeaderType(64 if big else 32)
        writer.SetBlockSize(1024)  # so that there are several
        writer.SetFileName(str(tmp_path / "a.vtp"))
        writer.Write()
        self.assert_the_same(tmp_path / "a.vtp", self.vtk.vtkXMLPolyDataReader())

    def test_xml_files_in_pieces_are_read_as_vtk_reads_them(self, tmp_path):
        writer = self.vtk.vtkXMLPolyDataWriter()
        writer.SetInputData(self.surface(strips=False))
        writer.SetNumberOfPieces(3)
        writer.SetFileName(str(tmp_path / "a.vtp"))
        writer.Write()
        self.assert_the_same(tmp_path / "a.vtp", self.vtk.vtkXMLPolyDataReader())


def turned(face):
    """The corners of a triangle, the least first; a turned triangle is the same."""
    at = face.index(min(face))
    return (*face[at:], *face[:at])


@pytest.mark.parametrize("attribute", ["NumberOfComponents", "offset"])
def test_numbers_with_underscores_are_refused_in_vtp(read, attribute):
    raw = np.array(POINTS, dtype="<f8").tobytes()
    text = (
        b'<VTKFile type="PolyData" byte_order="LittleEndian"><PolyData><Piece NumberOfPoints="4">'
        b'<PointData><DataArray type="UInt8" Name="c" NumberOfComponents="3" format="ascii">'
        b"0 0 0 0 0 0 0 0 0 0 0 0</DataArray></PointData><Points><DataArray "
        b'type="Float64" NumberOfComponents="3" format="appended" offset="0"/></Points></Piece>'
        b'</PolyData><AppendedData encoding="raw">_'
    )
    content = text + struct.pack("<I", len(raw)) + raw + b"</AppendedData></VTKFile>"
    assert len(read(content, "vtp").vertices) == len(POINTS)
    old = re.search(rf'{attribute}="(\d)"'.encode(), content)
    with pytest.raises(FormatError, match="expected a whole number; found 0_"):
        read(content.replace(old[0], attribute.encode() + b'="0_' + old[1] + b'"', 1), "vtp")


def test_a_message_does_not_quote_a_long_name_of_an_element(tmp_path):
    (tmp_path / "long.ply").write_bytes(
        b"ply\nformat binary_little_endian 1.0\nelement " + b"v" * 900 + b" 5\n"
        b"property double x\nend_header\n"
    )
    with pytest.raises(FormatError) as error:
        read_mesh(tmp_path / "long.ply")
    assert len(str(error.value).replace(str(tmp_path), "")) < 200


REGULAR = {
    "obj": "# top\n" + "".join(f"v {k} {k * k} 0.{k}\n" for k in range(9)) + "vn 0 0 1\ng a\n"
    "f 1 2 3\nf 2/1 3/1 4/1\nf 5/1/1 6//1 7/1\n",
    "off": "# top\nOFF\n9 2 0\n" + "".join(f"{k} {k * k} 0.{k}\n" for k in range(9)) + "3 0 1 2\n"
    "3 4 5 6\n",
    "ply": "ply\nformat ascii 1.0\nelement vertex 9\nproperty float x\nproperty float y\n"
    "property float z\nproperty int flag\nelement face 2\nproperty list uchar int vertex_indices\n"
    "property uchar side\nend_header\n"
    + "".join(f"{k} {k * k} 0.{k} 7\n" for k in range(9))
    + "3 0 1 2 8\n3 4 5 6 9\n",
}
READERS = ("defgpa.io.mesh.text", "defgpa.io.mesh.ply")


def refuse_bulk(*_):
    return None


def read_line_by_line(monkeypatch, read, text, suffix):
    """Read a mesh, or its error, without parsing in bulk."""
    with monkeypatch.context() as patched:
        for module in READERS:
            patched.setattr(f"{module}.parse_lines_in_bulk", refuse_bulk)
        patched.setattr("defgpa.io.mesh.text.parse_rows_in_bulk", refuse_bulk)
        return read_or_error(read, text, suffix)


def read_or_error(read, text, suffix):
    try:
        mesh = read(text, suffix)
    except FormatError as error:
        return str(error)
    colours = None if mesh.colours is None else mesh.colours.tolist()
    scalars = {name: values.tolist() for name, values in mesh.scalars.items()}
    return repr((mesh.vertices.tolist(), mesh.faces.tolist(), colours, scalars))


@pytest.mark.parametrize("suffix", REGULAR)
def test_regular_lines_of_a_mesh_are_parsed_in_bulk(read, suffix, monkeypatch):
    expected = read_line_by_line(monkeypatch, read, REGULAR[suffix], suffix)
    for module in READERS:
        monkeypatch.setattr(f"{module}.parse_numbers", None)
    assert read_or_error(read, REGULAR[suffix], suffix) == expected
    assert len(read(REGULAR[suffix], suffix).faces) in (2, 3)


@pytest.mark.parametrize("suffix", REGULAR)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("5 25 0.5", "5 25"),
        ("5 25 0.5", "5 25 0.5 1"),
        ("5 25 0.5", "5 25 1,5"),
        ("5 25 0.5", "5 25 NA"),
        ("5 25 0.5", "5 2_5 0.5"),
        ("5 25 0.5", "5 25 0.5 # tip"),
        ("5 25 0.5", "5 25 0/5"),
        ("5 25 0.5", " \n5 25 0.5"),
        ("5 25 0.5", "\t5  25 1d0"),
        ("v 5", " v 5"),
        ("v 5", "v\t5"),
        ("v 5", "v\nv 5"),
        ("f 1 2 3", "f 1 2 3 4"),
        ("f 1 2 3", "f -1 2 3"),
        ("f 1 2 3", "f 1.0 2 3"),
        ("f 1 2 3", "f 0 2 3"),
        ("f 1 2 3", "f 1 2 3\nf"),
        ("f 1 2 3", "f 1 \\\n2 3"),
        ("f 5/1/1", "f 5/x"),
        ("f 5/1/1", "f 99"),
        ("3 4 5 6", "4 4 5 6 7"),
        ("3 4 5 6", "3 4 5 99"),
        ("3 4 5 6", "3 4 5 1e50"),
        ("3 4 5 6", "2.5 4 5 6"),
        ("3 4 5 6", "nan 4 5 6"),
        ("3 0 1 2", "99 0 1 2"),
        ("9 2 0", "9 2.5 0"),
        ("9 2 0", "8 2 0"),
        ("9 2 0", "9 3 0"),
        ("vertex 9", "vertex 10"),
        ("face 2", "face 3"),
        ("face 2", "face 0"),
        ("property uchar side\n", ""),
        ("property uchar side\n", "property list uchar int more\n"),
        ("property int flag\n", "property uchar red\n"),
    ],
)
def test_a_mesh_is_the_same_line_by_line_and_in_bulk(read, monkeypatch, suffix, old, new):
    text = REGULAR[suffix].replace(old, new)
    in_bulk = read_or_error(read, text, suffix)
    assert in_bulk == read_line_by_line(monkeypatch, read, text, suffix)
