"""Files of a few kilobytes that would take minutes or gigabytes are refused in a sentence.

Each is small here, and so is the memory that it may take: what is refused at 12 MB with these is
refused at the usual limit with more of them.
"""

import gzip
import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes
from defgpa.io.covariates import read_covariate_rows

MAX_MEMORY = 12e6
MAX_PEAK = 50e6  # the text itself, and what a library takes for it
TOO_MUCH = r"takes more than 12 MB of memory.*max_memory="
MORPHOLOGIKA = "[individuals]\n1\n[landmarks]\n1\n[dimensions]\n2\n"
VTP = '<VTKFile type="PolyData"><PolyData>{}</PolyData></VTKFile>'
DOCTYPE = '<?xml version="1.0" encoding="{}"?><!DOCTYPE a [{}]>'
ENTITY = f'<!ENTITY e "{"1 " * 1000}">'
PICKED = '<PickedPoints>{}<point x="1" y="2" z="3"/></PickedPoints>'


def make_npy(size):
    file = io.BytesIO()
    np.save(file, np.ones(size, "i1"))
    return file.getvalue()


def make_c3d(n_frames):
    head, parameters = bytearray(512), bytearray(512)
    head[:2], parameters[:4] = b"\x02\x50", b"\x01\x50\x01\x54"
    struct.pack_into("<HHHHHfH", head, 2, 1, 0, 1, 0xFFFF, 0, 1.0, 3)
    return bytes(head + parameters) + n_frames * struct.pack("<hhhh", 1, 2, 3, 0)


def make_ply(n_lists):
    """Make a mesh with lists of no number, but for the first."""
    head = f"ply\nformat binary_little_endian 1.0\nelement a {n_lists}\n"
    return head.encode() + b"property list uchar uchar b\nend_header\n\1\1" + bytes(n_lists)


TEXTS = {
    "names.txt": MORPHOLOGIKA + "[names]\n" + 400_000 * "a\n" + "[rawpoints]\n1 2\n",
    "links.txt": MORPHOLOGIKA + "[rawpoints]\n1 2\n[wireframe]\n" + 400_000 * "1\n",
    "titles.txt": MORPHOLOGIKA + "[rawpoints]\n" + 700_000 * "'\n",
    "keys.tps": "LM=1\n1 2\n" + 200_000 * "ID=\n",
    "irregular.tps": "LM=200000\n" + 200_000 * "1D0 2\n",
    "objects.json": '{"annotations":[{"keypoints":[1,2,2]}' + 150_000 * ",{}" + "]}",
    "breaks.nts": "1 1 400000 0 DIM=2\n" + 400_000 * "1\x0c",
    "long word.csv": "id,x1,y1\n" + 3000 * "a" + ",1,2\n" + 170_000 * "a,1,2\n",
    "frames.trc": "PathFileType\t4\nFrame#\tTime" + 2000 * "\tm" + "\n" + 2000 * "1\n",
    "elements.vtp": VTP.format(200_000 * "<a/>"),
    "attributes.pp": PICKED.format("<a " + " ".join(f'a{k}=""' for k in range(60_000)) + "/>"),
    "lists.ply": make_ply(100_000),
    "specimens.npy": make_npy((300_000, 1, 3)),
    "landmarks.npy": make_npy((1, 300_000, 3)),
    "frames.c3d": make_c3d(100_000),
}
DECLARATIONS = {
    "entities.vtp": DOCTYPE.format("utf-8", ENTITY) + VTP.format(2000 * "&e;"),
    "entities.pp": DOCTYPE.format("utf-16", ENTITY) + PICKED.format(2000 * "&e;"),
    "attribute.pp": DOCTYPE.format("utf-8", f'<!ATTLIST a b CDATA "{1000 * "1"}">')
    + PICKED.format(20_000 * "<a/>"),
}


@pytest.fixture
def little_memory():
    import h5py  # noqa: F401  # what readers import on use does not count
    import openpyxl  # noqa: F401

    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MAX_PEAK


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.usefixtures("little_memory")
def test_many_small_parts_are_refused_before_they_are_made(tmp_path, name, packed):
    path = write(tmp_path / name, TEXTS[name])
    if packed:
        path = write(tmp_path / f"{name}.gz", gzip.compress(path.read_bytes()))
    with pytest.raises(FormatError, match=rf"{path.name}: .*{TOO_MUCH}"):
        read_shapes(path, max_memory=MAX_MEMORY)


@pytest.mark.parametrize("name", DECLARATIONS)
@pytest.mark.usefixtures("little_memory")
def test_entities_and_default_attributes_are_refused(tmp_path, name):
    """An entity of a line can stand for gigabytes; so can an attribute that all elements have."""
    encoding = "utf-16" if "utf-16" in DECLARATIONS[name] else "utf-8"
    path = write(tmp_path / name, DECLARATIONS[name].encode(encoding))
    with pytest.raises(FormatError, match="found definitions of entities"):
        read_shapes(path)


@pytest.mark.usefixtures("little_memory")
def test_quotes_without_end_take_no_memory_but_theirs(tmp_path):
    path = write(tmp_path / "quotes.csv", 1_000_000 * '"')
    with pytest.raises(FormatError, match="expected columns of numbers"):
        read_shapes(path)


@pytest.mark.usefixtures("little_memory")
def test_a_pickle_cannot_ask_for_memory(tmp_path):
    """Its list of objects is as long as the largest number that it gives one."""
    h5py = pytest.importorskip("h5py")
    pickled = b"\x80\x02]r" + (2**24).to_bytes(4, "little") + b"."
    with h5py.File(tmp_path / "a.h5", "w") as file:
        kind = [("index", "i8"), ("values_block_0", "f8", (2,))]
        table = file.create_dataset("df/table", data=np.zeros(1, kind))
        table.attrs["values_block_0_kind"] = np.void(pickled)
    with pytest.raises(FormatError, match=r"a\.h5"):
        read_shapes(tmp_path / "a.h5")


VTK = "# vtk DataFile Version 3.0\na\nASCII\nDATASET POLYDATA\nPOINTS 1 float\n1 2 3\n"
TAGS = {
    "open.txt": ("<landmarks.scaled>", "none"),
    "unclosed.txt": ("<curves.pixel ", "none"),
    "cells.vtk": ("CELL_TYPES 0\n", ""),
    "scalars.vtk": ("POINT_DATA 1\nSCALARS a int\n1\n", ""),
    "elements.ply": ("element a 0\n", "expected 'end_header'"),
}
HEADS = {".txt": "<shapes>\n", ".vtk": VTK, ".ply": "ply\nformat ascii 1.0\n"}


@pytest.mark.parametrize("name", TAGS)
def test_nothing_is_searched_to_the_end_for_every_tag(tmp_path, name):
    """A search to the end for each takes minutes: of so many, the square counts."""
    tag, what = TAGS[name]
    path = tmp_path / name
    path.write_text(HEADS[path.suffix] + 1_000_000 // len(tag) * tag)
    if what:
        with pytest.raises(FormatError, match=what):
            read_shapes(path)
    else:
        assert read_shapes(path).n_landmarks == 1


def test_long_labels_are_not_compared_letter_by_letter(tmp_path):
    """Two of 40,000 letters took minutes."""
    rng = np.random.default_rng(0)
    long = "".join(map(chr, 0x4E00 + rng.integers(0, 200, 100_000)))
    shapes = zip("pqr", (long, long, f"{long[::2]}{long[1::2]}"), strict=True)
    rows = (f"{k},{label},0,1\n{k},u,1,2\n{k},v,3,1\n" for k, label in shapes)
    path = write(tmp_path / "a.csv", "shape,landmark,x,y\n" + "".join(rows))
    with pytest.warns(DefgpaWarning, match="They are matched by position") as caught:
        assert read_shapes(path).n_landmarks == 3
    assert len(str(caught[0].message)) < 500


# Files of R


def make_rds(body):
    return b"X\n" + struct.pack(">iii", 2, 262144, 131840) + body


NULL, WORD = struct.pack(">i", 254), struct.pack(">ii", 262153, 1) + b"a"
R_FILES = {
    "nulls": make_rds(struct.pack(">ii", 19, 20_000) + 20_000 * NULL),
    "words": make_rds(struct.pack(">ii", 16, 20_000) + 20_000 * WORD),
    "pairs": make_rds(20_000 * (struct.pack(">i", 2) + NULL) + NULL),
    "attributes": make_rds(20_000 * struct.pack(">iii", 512 + 13, 1, 7) + NULL),
    "environments": make_rds(20_000 * struct.pack(">ii", 4, 0) + 60_000 * NULL),
    "of newer R": b"X\n" + struct.pack(">iiii", 3, 0, 0, 5) + b"UTF-8" + 20_000 * b"\0\0\0\2",
    "compiled": make_rds(struct.pack(">iii", 21, 1, 1) + 130_000 * NULL),
    "native": b"B\n" + struct.pack("<iiiii", 2, 0, 0, 19, 20_000) + 20_000 * b"\xfe\0\0\0",
    "text": b"A\n2\n262144\n131840\n19\n30000\n" + 30_000 * b"254\n",
}


@pytest.mark.parametrize("name", R_FILES)
@pytest.mark.usefixtures("little_memory")
def test_many_objects_of_r_are_refused_before_they_are_made(tmp_path, name):
    pytest.importorskip("rdata")
    path = write(tmp_path / "a.rds", gzip.compress(R_FILES[name]))
    with pytest.raises(FormatError, match=rf"a\.rds: the number of its objects {TOO_MUCH}"):
        read_shapes(path, max_memory=MAX_MEMORY)


@pytest.mark.usefixtures("little_memory")
def test_a_file_of_r_that_is_packed_twice_is_refused(tmp_path):
    """The package that reads it would unpack the second as far as it goes."""
    pytest.importorskip("rdata")
    inner = gzip.compress(make_rds(bytes(10_000_000)))
    path = write(tmp_path / "a.rds", gzip.compress(inner))
    with pytest.raises(FormatError, match=r"a\.rds is not a R file.*: it is packed twice"):
        read_shapes(path, format="r", max_memory=MAX_MEMORY)


# HDF5


def write_cells(path, count):
    """Write a cell of MATLAB 7.3 whose entries are all one matrix."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        matrix = file.create_dataset("#refs#/a", data=np.zeros((2, 2)))
        references = np.array(count * [matrix.ref], dtype=h5py.ref_dtype)
        file.create_dataset("points", data=references, compression="gzip")


def write_instances(path, count):
    """Write a project of SLEAP whose frames all have the same instances."""
    h5py = pytest.importorskip("h5py")
    kinds = {
        "frames": [("frame_idx", "u8"), ("instance_id_start", "u8"), ("instance_id_end", "u8")],
        "instances": [
            *(("instance_type", "u1"), ("point_id_start", "u8"), ("point_id_end", "u8")),
            ("track", "i4"),
        ],
        "points": [("x", "f8"), ("y", "f8"), ("visible", "?")],
    }
    with h5py.File(path, "w") as file:
        for name, kind in kinds.items():
            rows = np.zeros(count if name == "frames" else 5, kind)
            if name == "frames":
                rows["instance_id_end"] = 5
            file.create_dataset(name, data=rows, compression="gzip")


def write_tracks(path, count):
    """Write an analysis of SLEAP."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("tracks", data=np.zeros((1, 2, 1, count)), compression="gzip")
        file["node_names"] = [b"a"]


@pytest.mark.parametrize(
    ("write_file", "suffix"),
    [(write_cells, ".mat"), (write_instances, ".slp"), (write_tracks, ".h5")],
)
def test_one_object_of_hdf5_that_stands_for_many_is_refused(tmp_path, write_file, suffix, request):
    path = tmp_path / f"a{suffix}"
    write_file(path, 16_000)
    request.getfixturevalue("little_memory")
    with pytest.raises(FormatError, match=rf"a\{suffix}: the number of its .* {TOO_MUCH}"):
        read_shapes(path, max_memory=MAX_MEMORY)


# Spreadsheets

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
ROW = '<row r="1"><c><v>1</v></c><c><v>2</v></c></row>'
SHEETS = {
    "wide": "".join(f'<row r="{k}"><c r="XFD{k}"><v>1</v></c></row>' for k in range(1, 400)),
    "one wide": '<row r="1"><c r="XFD1"><v>1</v></c></row>' + 300 * "<row><c><v>1</v></c></row>",
    "rows": 150_000 * "<row/>",
}


def write_sheet(path, rows, head=""):
    openpyxl = pytest.importorskip("openpyxl")
    openpyxl.Workbook().save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = f'{head}<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'
    parts["xl/worksheets/sheet1.xml"] = sheet.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet_of_too_many_cells_is_refused(tmp_path, name, monkeypatch, request):
    path = write_sheet(tmp_path / "a.xlsx", SHEETS[name])
    monkeypatch.setattr("defgpa.io.limits._MIN_BYTES", int(MAX_MEMORY))
    request.getfixturevalue("little_memory")
    with pytest.raises(FormatError, match=r"a\.xlsx: .*takes more than 12 MB"):
        read_covariate_rows(path)


def test_a_sheet_whose_entities_would_be_large_is_refused(tmp_path):
    cell = '<row><c t="inlineStr"><is><t>&e;</t></is></c></row>'
    path = write_sheet(tmp_path / "a.xlsx", cell, DOCTYPE.format("utf-8", ENTITY))
    with pytest.raises(FormatError, match=r"a\.xlsx: expected a spreadsheet; found definitions"):
        read_covariate_rows(path)


@pytest.mark.parametrize("last", ["", '<row r="999999999"><c r="XFD1"><v>1</v></c></row>'])
def test_rows_and_columns_that_a_sheet_only_states_are_not_made(tmp_path, last):
    dimension = '</sheetData><dimension ref="A1:XFD1048576"/><sheetData>'
    rows = dimension + ROW + '<row r="7"><c r="B7"><v>3</v></c></row>' + last
    path = write_sheet(tmp_path / "a.xlsx", rows)
    assert read_covariate_rows(path) == (["1", "2"], [["", "3"]])
