"""No file, however broken, gives anything but shapes or a sentence that names it.

Valid files are damaged at random and read; what once went wrong is kept in ``corpus_binary``.
"""

import gzip
import io
import json
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from defgpa.errors import DefgpaError, DefgpaWarning
from defgpa.io.arrays import matlab as _matlab
from defgpa.io.arrays import numpy as _numpy
from defgpa.io.arrays import r as _r
from defgpa.io.format import Document, ReadOptions
from defgpa.io.mesh import files as _mesh
from defgpa.io.packed import make_packed_formats
from defgpa.io.text import picked_points as _picked_points
from defgpa.io.text import slicer as _slicer
from defgpa.io.text import stereomorph as _stereomorph
from defgpa.io.text import tps as _tps
from defgpa.shapes import Shapes
from io_support import write_anew

MODULES = (_slicer, _numpy, _matlab, _mesh, _r, _stereomorph, _picked_points)
FORMATS = {f.name: f for m in MODULES for f in m.FORMATS}
FORMATS |= {f.name: f for f in make_packed_formats(_tps.FORMATS)}
CORPUS = sorted((Path(__file__).parent / "corpus_binary").iterdir())

PLY_TEXT = b"""ply
format ascii 1.0
element vertex 4
property float x
property float y
property float z
property uchar red
property uchar green
property uchar blue
element face 2
property list uchar int vertex_indices
end_header
0 0 0 1 2 3
1 0 0 4 5 6
1 1 0 7 8 9
0 1 0 1 1 1
3 0 1 2
3 0 2 3
"""
VTK_TEXT = b"""# vtk DataFile Version 5.1
t
ASCII
DATASET POLYDATA
POINTS 4 float
0 0 0 1 0 0 1 1 0 0 1 0
POLYGONS 3 6
OFFSETS vtktypeint64
0 3 6
CONNECTIVITY vtktypeint64
0 1 2 0 2 3
POINT_DATA 4
SCALARS e double 1
LOOKUP_TABLE default
1 2 3 4
FIELD f 1
age 1 4 int
1 2 3 4
"""
VTP_TEXT = b"""<VTKFile type="PolyData"><PolyData><Piece NumberOfPoints="3" NumberOfPolys="1">
<Points><DataArray type="Float32" NumberOfComponents="3">0 0 0 1 0 0 1 1 0</DataArray></Points>
<Polys><DataArray type="Int32" Name="connectivity" format="ascii">0 1 2</DataArray>
<DataArray type="Int32" Name="offsets" format="ascii">3</DataArray></Polys>
</Piece></PolyData></VTKFile>"""
STEREOMORPH = b"""<shapes type=list>
\t<image.name type=vector names=FALSE length=1 as.numeric=FALSE >a.jpg</image.name>
\t<landmarks.pixel type=matrix rownames=TRUE colnames=FALSE nrow=2 ncol=2 as.numeric=TRUE >
\t\tLM1\t1094\t1307
\t\tLM 2\t1855\tNA
\t</landmarks.pixel>
</shapes>
"""
R_TEXT = """A 2 262144 131840 526 6 1 2 3 4 5 6 1026 1 262153 3 dim 13 3 3 2 1
1026 1 262153 8 dimnames
19 3 16 3 262153 1 a 262153 1 b 262153 1 c 254 254 254"""
R_TEXT = "\n".join(R_TEXT.split()).encode() + b"\n"
TPS_TEXT = b"LM=3\n0.1 2\n3 NA\n5 6\nID=a\nLM=3\n1 2\n3 4\n5 6\nID=b\n"


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("sub/a.tps", TPS_TEXT)
        archive.writestr("b.tps", TPS_TEXT)
    return file.getvalue()


BY_HAND = {
    "stereomorph": [STEREOMORPH],
    "r": [R_TEXT, gzip.compress(R_TEXT)],
    "gz": [gzip.compress(TPS_TEXT), gzip.compress(TPS_TEXT, 0)],
    "zip": [zipped()],
    "ply": [PLY_TEXT],
    "vtk": [VTK_TEXT],
    "vtp": [VTP_TEXT],
    "obj": [b"v 0 0 0 1 0 0\nv 1 0 0 0 0 1\nv 1 1 0 1 1 1\nf 1/1 2//2 -1\n"],
    "stl": [bytes(80) + struct.pack("<I12fH", 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0)],
    "mrk.json": [json.dumps({"markups": [{"controlPoints": [{"position": [1, 2, 3]}]}]}).encode()],
    "fcsv": [b"# CoordinateSystem = 0\n# columns = label,x,y,z\na,1,2,3\n"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def valid(folder):
    """The bytes of some valid files of every format."""
    points = np.random.default_rng(0).normal(size=(3, 5, 3))
    first = Shapes.specimens(points[:1], faces=[[0, 1, 2], [2, 3, 4]])
    points[1, 2] = np.nan
    many = Shapes(points, names=["a", "b", "c"], faces=first.faces, landmarks=list("vwxyz"))
    files = {name: list(BY_HAND.get(name, [])) for name in FORMATS}
    for name, kind in FORMATS.items():
        path = folder / f"valid{kind.suffixes[0]}"
        if name == "npy":
            np.save(path, points)
        elif kind.write is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DefgpaWarning)
                kind.write(path, first if kind.one_shape_per_file else many)
        if kind.write is not None or name == "npy":
            files[name].append(path.read_bytes())
    files["mat"].append(matlab_7_3(folder / "valid.mat"))
    return files


def needs(name):
    if name == "r":
        pytest.importorskip("rdata")


def matlab_7_3(path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        entries = [file.create_dataset(f"#refs#/{k}", data=np.eye(5, 2) * k).ref for k in (1, 2)]
        file.create_dataset("points", data=np.array(entries, dtype=h5py.ref_dtype)[None])
        names = np.array([[97, 98]], dtype="u2").T
        file.create_dataset("note", data=names).attrs["MATLAB_class"] = np.bytes_("char")
    return path.read_bytes()


SIZES = [0, 1, 2, 255, 10**6, 2**31 - 1, 2**31, 2**32 - 1]
PIECES = [b"0", b"-1", b"nan", b"inf", b"1e308", b"99999999999", b"9" * 5000, b"\0", b"\n", b'"']
PIECES += [b",", b"[", b"{", b"}", b"<", b"1_0", b"\xc3\x28", b""]
PIECES += [struct.pack(order, size) for order in ("<I", ">I") for size in SIZES]
EDITS = st.tuples(
    st.floats(0, 1),
    st.sampled_from([0, 0, 1, 1, 4, 8, 50]),
    st.sampled_from(PIECES) | st.binary(max_size=4),
)


def damaged(data, edits):
    """Some bytes replaced by others, at places given as fractions of the file."""
    for place, length, piece in edits:
        at = int(place * len(data))
        data = data[:at] + piece + data[at + length :]
    return data


def outcome(kind, path, options):
    """The document of a file, or the sentence that refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DefgpaWarning)
        try:
            return kind.read(path, options)
        except DefgpaError as error:
            return str(error)


def assert_shapes_or_a_sentence(kind, path, options):
    actual = outcome(kind, path, options)
    if isinstance(actual, str):
        assert path.name in actual
        assert len(actual) < 700 + len(str(path))
        return
    assert isinstance(actual, Document)
    for specimen in actual.specimens:
        assert specimen.points.dtype == np.float64
        assert specimen.points.shape[1] in (2, 3)
        assert specimen.labels is None or len(specimen.labels) == len(specimen.points)


OPTIONS = st.builds(
    ReadOptions,
    missing=st.sampled_from(["marked", "negative", 0.0]),
    layout=st.sampled_from(["auto", "nmd", "mdn", "dmn"]),
)
FUZZING = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("name", list(FORMATS))
@FUZZING
@given(which=st.integers(0, 9), edits=st.lists(EDITS, min_size=1, max_size=4), options=OPTIONS)
def test_damaged_files_give_shapes_or_a_sentence(folder, valid, name, which, edits, options):
    kind = FORMATS[name]
    path = folder / f"damaged{kind.suffixes[0]}"
    needs(name)
    write_anew(path, damaged(valid[name][which % len(valid[name])], edits))
    assert_shapes_or_a_sentence(kind, path, options)


@pytest.mark.parametrize("name", list(FORMATS))
@FUZZING
@given(data=st.binary(max_size=300))
def test_arbitrary_bytes_give_a_sentence(folder, name, data):
    needs(name)
    kind = FORMATS[name]
    path = folder / f"arbitrary{kind.suffixes[0]}"
    write_anew(path, data)
    assert_shapes_or_a_sentence(kind, path, ReadOptions())


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_once_went_wrong_does_not_again(path):
    kind = next(f for f in FORMATS.values() if path.name.endswith(f.suffixes[0]))
    assert_shapes_or_a_sentence(kind, path, ReadOptions())


@pytest.mark.parametrize("name", list(FORMATS))
def test_valid_files_are_read(folder, valid, name):
    needs(name)
    kind = FORMATS[name]
    path = folder / f"again{kind.suffixes[0]}"
    for data in valid[name]:
        path.write_bytes(data)
        assert kind.read(path, ReadOptions()).specimens
        assert kind.looks_like(data[:4096])


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_truncation_gives_shapes_or_a_sentence(folder, valid, name):
    needs(name)
    kind = FORMATS[name]
    path = folder / f"cut{kind.suffixes[0]}"
    for data in valid[name]:
        for cut in range(0, len(data), max(1, len(data) // 200)):
            write_anew(path, data[:cut])
            assert_shapes_or_a_sentence(kind, path, ReadOptions())
