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

from defgpa.errors import FormatError
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


TEXTS = {
    "names.txt": MORPHOLOGIKA + "[names]\n" + 400_000 * "a\n" + "[rawpoints]\n1 2\n",
    "links.txt": MORPHOLOGIKA + "[rawpoints]\n1 2\n[wireframe]\n" + 400_000 * "1\n",
    "titles.txt": MORPHOLOGIKA + "[rawpoints]\n" + 700_000 * "'\n",
    "breaks.nts": "1 1 400000 0 DIM=2\n" + 400_000 * "1\x0c",
    "long word.csv": "id,x1,y1\n" + 3000 * "a" + ",1,2\n" + 170_000 * "a,1,2\n",
    "frames.trc": "PathFileType\t4\nFrame#\tTime" + 2000 * "\tm" + "\n" + 2000 * "1\n",
    "elements.vtp": VTP.format(200_000 * "<a/>"),
    "attributes.pp": PICKED.format("<a " + " ".join(f'a{k}=""' for k in range(60_000)) + "/>"),
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
