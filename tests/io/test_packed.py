"""Packed files are what they pack; what would not fit into memory is refused unpacked."""

import bz2
import gzip
import io
import json
import lzma
import struct
import tracemalloc
import warnings
import zipfile
import zlib

import numpy as np
import pytest

import defgpa
from defgpa.errors import FormatError
from defgpa.io import FORMATS, read_shapes, write_shapes
from defgpa.io.covariates import read_covariate_rows
from defgpa.io.limits import get_max_bytes
from defgpa.shapes import Shapes
from support import SHARED, smooth_family, warned_of

TPS = "LM=3\n0 0\n1 0\n0 2\nID=a\nLM=3\n0 1\n1 1\n0 3\nID=b\n"
PTS = "version: 1\nn_points: 3\n{{\n0 0\n1 0\n0 {}\n}}\n"


def zipped(path, files, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


WRITTEN = [f for f in FORMATS if f.write is not None]


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.name)
def test_a_packed_file_is_read_as_the_file(tmp_path, kind):
    points = smooth_family(
        n=1 if kind.one_shape_per_file else 3, m=6, d=2 if kind.name == "coco" else 3
    )
    faces = [[0, 1, 2], [1, 2, 3], [3, 4, 5]] if kind.name == "stl" else None
    shapes = Shapes.specimens(points, faces=faces)
    plain = tmp_path / f"set{kind.suffixes[0]}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind.write(plain, shapes)
        expected = read_shapes(plain, format=kind.name)
        packed = tmp_path / f"set{kind.suffixes[0]}.gz"
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        zipped(tmp_path / "all.zip", {f"sub/{plain.name}": plain.read_bytes()})
        if kind.name in ("csv-long", "csv-points"):
            expected = read_shapes(plain)
        for actual in (read_shapes(packed), read_shapes(tmp_path / "all.zip")):
            assert np.array_equal(actual.points, expected.points, equal_nan=True)
            assert (actual.names, actual.landmarks) == (expected.names, expected.landmarks)
            assert actual.metadata["format"] == expected.metadata["format"]


def test_an_archive_of_files_is_like_their_folder(tmp_path):
    names = {f"set/s{k}.pts": PTS.format(k) for k in (10, 2, 1)}
    junk = {"__MACOSX/set/._s1.pts": "junk", "set/.DS_Store": "junk", "set/README.md": "words"}
    actual = read_shapes(zipped(tmp_path / "set.zip", {**names, **junk}))
    assert actual.names == ("s1", "s2", "s10")
    assert actual.points[:, 2, 1].tolist() == [1, 2, 10]


def test_files_of_one_name_in_two_folders_are_told_apart(tmp_path):
    path = zipped(tmp_path / "set.zip", {"a/x.pts": PTS.format(1), "b/x.pts": PTS.format(2)})
    assert read_shapes(path).names == ("b_x", "x")


def test_files_of_an_archive_come_into_one_anatomical_space(tmp_path):
    text = "# CoordinateSystem = {}\n# columns = label,x,y,z\na,1,2,3\nb,4,5,6\n"
    path = zipped(tmp_path / "s.zip", {f"{s}.fcsv": text.format(s) for s in ("LPS", "RAS")})
    actual = read_shapes(path)
    assert actual.metadata["space"] == "LPS"
    np.testing.assert_array_equal(actual.points[0], -actual.points[1] * [1, 1, -1])


def test_a_file_in_an_archive_cannot_be_put_elsewhere(tmp_path):
    for name in ("../../escaped.tps", "/abs/olute.tps", "..\\escaped.tps", "a/../b.tps"):
        assert read_shapes(zipped(tmp_path / "s.zip", {name: TPS})).n_shapes == 2
    with pytest.raises(FormatError, match="no file of a known format"):
        read_shapes(zipped(tmp_path / "s.zip", {"..": TPS, ".hidden.tps": TPS}))
    assert [p.name for p in tmp_path.iterdir()] == ["s.zip"]


def test_complaints_name_the_archive(tmp_path):
    broken = TPS.replace("LM=3", "LM=4")
    (tmp_path / "w.tps.gz").write_bytes(gzip.compress(broken.encode()))
    with pytest.raises(FormatError, match=rf"^{tmp_path}/w\.tps\.gz, line 1: expected 4 rows"):
        read_shapes(tmp_path / "w.tps.gz")
    with pytest.raises(FormatError, match=rf"^{tmp_path}/w\.zip/w\.tps, line 1: expected 4 rows"):
        read_shapes(zipped(tmp_path / "w.zip", {"w.tps": broken}))
    with warned_of("w.zip/w.tps, line 1"):
        read_shapes(tmp_path / "w.zip", on_mismatch="warn")


def test_an_archive_in_an_archive_is_refused(tmp_path):
    inner = gzip.compress(TPS.encode())
    with pytest.raises(FormatError, match=r"s\.zip holds another archive\. Unpack it"):
        read_shapes(zipped(tmp_path / "s.zip", {"w.tps.gz": inner}))


DAMAGED = {"head": b"\x1f\x8b", "cut": gzip.compress(TPS.encode())[:-9], "zip": b"PK\x03\x04rest"}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_damaged_archives_are_refused_with_a_sentence(tmp_path, data):
    for name in ("w.tps.gz", "w.zip"):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FormatError, match=name):
            read_shapes(tmp_path / name)


def test_packed_files_of_other_kinds_do_not_outnumber_landmarks(tmp_path):
    for k in range(3):
        (tmp_path / f"scan{k}.nii.gz").write_bytes(gzip.compress(bytes(1000)))
    (tmp_path / "wings.tps").write_text(TPS)
    assert read_shapes(tmp_path).n_shapes == 2


def test_spreadsheets_are_still_told_from_archives(tmp_path):
    zipped(tmp_path / "a.xlsx", {"[Content_Types].xml": "<Types/>"})
    with pytest.raises(FormatError, match="is a spreadsheet"):
        read_shapes(tmp_path / "a.xlsx")


def test_git_lfs_pointers_are_named(tmp_path):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n"
    for name in ("a.mat", "a.tps", "a.ply", "a.npz", "a.pts", "a.txt", "a.rds"):
        (tmp_path / name).write_bytes(pointer)
        with pytest.raises(
            FormatError,
            match=rf"{name} is not the file itself but a pointer of Git LFS.*git lfs pull",
        ):
            read_shapes(tmp_path / name)
    with pytest.raises(FormatError, match="a pointer of Git LFS"):
        read_shapes(tmp_path / "a.ply", format="ply")
    with pytest.raises(FormatError, match="a pointer of Git LFS"):
        defgpa.load(tmp_path / "a.npz")


# Bombs


SMALL = 200_000  # bytes that are allowed in these tests


@pytest.fixture
def little_memory(monkeypatch):
    """Almost nothing may be unpacked; and nothing larger is ever asked for."""
    monkeypatch.setattr("defgpa.io.limits._MIN_BYTES", SMALL)
    monkeypatch.setattr("defgpa.io.limits._MAX_RATIO", 1)
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * SMALL


ZEROS = bytes(40 * SMALL)


def element(kind, data):
    """A piece of a MATLAB file."""
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def write_mat(path, content):
    packed = zlib.compress(content)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM"
    path.write_bytes(header + struct.pack("<II", 15, len(packed)) + packed)


def mat_bomb(path):
    size = struct.pack("<ii", 3, len(ZEROS) // 24)
    parts = element(6, struct.pack("<II", 6, 0)) + element(5, size) + element(1, b"points")
    write_mat(path, element(14, parts + element(9, ZEROS)))


def mat_of_empty_cells(path):
    """Each takes 8 bytes unpacked, and would take hundreds in memory."""
    count = 20 * SMALL // 256
    cells = struct.pack("<II", 14, 0) * count

    parts = element(6, struct.pack("<II", 1, 0)) + element(5, struct.pack("<ii", 1, count))
    write_mat(path, element(14, parts + element(1, b"points") + cells))


def hdf_bomb(path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("points", shape=(10**4, 10**4, 3), chunks=(100, 100, 3), dtype="f8")


def npz_bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        head = io.BytesIO()
        shape = (len(ZEROS) // 24, 1, 3)
        np.lib.format.write_array_header_1_0(
            head, {"descr": "<f8", "fortran_order": False, "shape": shape}
        )
        archive.writestr("points.npy", head.getvalue() + ZEROS)


def vtp_bomb(path):
    import base64

    block = zlib.compress(ZEROS)
    head = base64.b64encode(struct.pack("<4I", 1, len(ZEROS), 0, len(block)))
    text = (head + base64.b64encode(block)).decode()
    path.write_text(
        '<VTKFile type="PolyData" byte_order="LittleEndian" compressor="vtkZLibDataCompressor">'
        f'<PolyData><Piece NumberOfPoints="{len(ZEROS) // 24}"><Points><DataArray type="Float64" '
        f'NumberOfComponents="3" format="binary">{text}</DataArray></Points></Piece></PolyData>'
        "</VTKFile>"
    )


def gz_bomb(path):
    path.write_bytes(gzip.compress(b"LM=3\n" + ZEROS))


def zip_bomb(path):
    zipped(path, {"a.tps": ZEROS})


def zip_of_many(path):
    zipped(path, {f"{k}.tps": "" for k in range(100)})


def long_csv(path):
    """Every row a shape and a landmark of its own: rows² points, all but a few missing."""
    rows = "\n".join(f"s{k},l{k},{k},{k}\ns{k},all,0,0" for k in range(300))
    path.write_text(f"shape,landmark,x,y\n{rows}\n")


def gz_of_words(path):
    labels, numbers = b"ab\n" * 2500, b"1 2\n" * 2500
    path.write_bytes(gzip.compress(b"1 2500L 2 0 DIM=2\n" + labels + numbers))


def gz_of_specimens(path):
    path.write_bytes(gzip.compress(b"LM=1\n1 2\n" * 300))


def gz_of_annotations(path):
    path.write_bytes(gzip.compress(b'{"annotations":[' + b'{"keypoints":[1,2,2]},' * 300 + b"{}]}"))


BOMBS = {
    "words.nts.gz": gz_of_words,
    "specimens.tps.gz": gz_of_specimens,
    "annotations.json.gz": gz_of_annotations,
    "a.mat": mat_bomb,
    "cells.mat": mat_of_empty_cells,
    "hdf.mat": hdf_bomb,
    "a.npz": npz_bomb,
    "a.vtp": vtp_bomb,
    "a.tps.gz": gz_bomb,
    "a.zip": zip_bomb,
    "many.zip": zip_of_many,
    "a.csv": long_csv,
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_too_much_is_refused_before_it_does(tmp_path, name, request):
    BOMBS[name](tmp_path / name)
    assert (tmp_path / name).stat().st_size < SMALL
    read = pytest.raises(FormatError, match=rf"{name}: .*takes more than .* MB.*max_memory=")
    read_shapes_of_known_modules()
    request.getfixturevalue("little_memory")
    with read:
        read_shapes(tmp_path / name)


def read_shapes_of_known_modules():
    """Import what readers import on use, so that it does not count as memory."""
    import h5py  # noqa: F401


def test_the_limit_can_be_raised(tmp_path, monkeypatch):
    long_csv(tmp_path / "a.csv")
    with pytest.raises(FormatError, match=r"a\.csv: its text takes more than 0\.2 MB"):
        read_shapes(tmp_path / "a.csv", max_memory=SMALL)
    with pytest.raises(FormatError, match=r"a set of 300 shapes .* takes more than 0\.6 MB"):
        read_shapes(tmp_path / "a.csv", max_memory=3 * SMALL)
    monkeypatch.setenv("DEFGPA_MAX_BYTES", "1.5e6")
    with warned_of("300 of 301 landmarks are seen in 1 of 300 shapes"):
        assert read_shapes(tmp_path / "a.csv").n_landmarks == 301
    monkeypatch.setenv("DEFGPA_MAX_BYTES", "much")
    with pytest.raises(
        FormatError, match=r"DEFGPA_MAX_BYTES must be a number of bytes\. Got 'much'"
    ):
        read_shapes(tmp_path / "a.csv")


def test_a_label_that_all_points_share_is_refused(tmp_path):
    """Name it: so many points make a count of each among all a matter of minutes."""
    points = '{"label":"a","position":[1,2,3]},' * 100_000
    (tmp_path / "a.mrk.json").write_text(
        f'{{"markups":[{{"type":"Fiducial","controlPoints":[{points[:-1]}]}}]}}'
    )
    with pytest.raises(FormatError, match="two landmarks with the label 'a'"):
        read_shapes(tmp_path / "a.mrk.json")


def test_the_limit_is_64_megabytes_or_100_times_the_file_unless_set(monkeypatch):
    monkeypatch.delenv("DEFGPA_MAX_BYTES", raising=False)
    assert get_max_bytes(1000) == 64_000_000
    assert get_max_bytes(1_000_000) == 100_000_000


def test_what_a_large_file_holds_is_read_whatever_the_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("DEFGPA_MAX_BYTES", "10")
    points = smooth_family(n=5, m=100)
    np.savez(tmp_path / "a.npz", points=points)
    write_shapes(Shapes(points), tmp_path / "a.mat")
    for name in ("a.npz", "a.mat"):
        np.testing.assert_array_equal(read_shapes(tmp_path / name).points, points)


def saved(path):
    defgpa.save(defgpa.DefGPA(defgpa.Affine()).fit(smooth_family(n=4, m=20)).alignment_, path)
    with np.load(path) as archive:
        stored = {key: archive[key] for key in archive.files}
    return json.loads(stored.pop("header").tobytes()), stored


@pytest.mark.parametrize("count", [10**9, -1, 0])
def test_a_result_that_announces_more_warps_than_shapes_is_refused(tmp_path, count):
    header, stored = saved(tmp_path / "r.npz")
    header["content"]["bases"]["runs"][0]["count"] = count
    stored["header"] = np.frombuffer(json.dumps(header).encode(), "u1")
    np.savez(tmp_path / "r.npz", **stored)
    with pytest.raises(FormatError, match=rf"r\.npz: {count} warps for 4 shapes"):
        defgpa.load(tmp_path / "r.npz")


def test_a_result_that_unpacks_to_too_much_is_refused(tmp_path, request):
    _, stored = saved(tmp_path / "r.npz")
    np.savez_compressed(tmp_path / "r.npz", **stored, array_99=np.zeros(len(ZEROS) // 8))
    request.getfixturevalue("little_memory")
    with pytest.raises(FormatError, match=r"r\.npz: 'array_99' takes more than"):
        defgpa.load(tmp_path / "r.npz")


def test_a_header_of_a_result_that_would_become_too_much_is_refused(tmp_path, monkeypatch):
    _, stored = saved(tmp_path / "r.npz")
    text = b"[" + b"{}," * 20_000 + b"{}]"
    monkeypatch.setattr("defgpa.io.limits._MAX_RATIO", 1)
    np.savez_compressed(tmp_path / "r.npz", **stored, header=np.frombuffer(text, "u1"))
    monkeypatch.setenv("DEFGPA_MAX_BYTES", str(5 * SMALL))
    with pytest.raises(FormatError, match=r"r\.npz: its header takes more than"):
        defgpa.load(tmp_path / "r.npz")


# R


R_FILES = SHARED / "files" / "written_by_R"


@pytest.mark.parametrize("name", ["plethodon.rds", "plethodon.rda"])
def test_arrays_of_r_are_read_to_the_last_digit(name):
    pytest.importorskip("rdata")
    if not R_FILES.exists():
        pytest.skip("files written by R are not beside the project")
    words = (R_FILES / "ref_pleth.flat").read_text().split()
    p, k, n = map(int, words[:3])
    expected = np.array(words[3:], dtype=float).reshape((p, k, n), order="F").transpose(2, 0, 1)
    np.testing.assert_array_equal(read_shapes(R_FILES / name).points, expected)


def r_file(path, value, **options):
    """A file as saveRDS or save writes it."""
    rdata = pytest.importorskip("rdata")
    if path.suffix == ".rds":
        rdata.write_rds(path, value, **options)
    else:
        rdata.write_rda(path, value, **options)
    return path


def text_of_array(array, *names):
    """A named array as saveRDS(ascii=TRUE) writes it; None stands for no names of a dimension."""

    def word(text):
        return ["262153", str(len(text)), text]

    def words(texts):
        return (
            ["254"]
            if texts is None
            else ["16", str(len(texts)), *(line for text in texts for line in word(text))]
        )

    values = ["NA" if np.isnan(x) else repr(x) for x in array.ravel(order="F").tolist()]
    lines = ["A", "2", "262144", "131840", "526", str(array.size), *values]
    lines += ["1026", "1", *word("dim"), "13", "3", *map(str, array.shape)]
    lines += [
        "1026",
        "1",
        *word("dimnames"),
        "19",
        "3",
        *(w for name in names for w in words(name)),
    ]
    return ("\n".join([*lines, "254"]) + "\n").encode()


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress, bytes])
def test_names_of_dimensions_are_those_of_landmarks_and_specimens(tmp_path, packed):
    pytest.importorskip("rdata")
    points = smooth_family(n=3, m=5)
    points[1, 2] = np.nan
    data = text_of_array(points.transpose(1, 2, 0), list("vwxyz"), None, ["a", "b", "c"])
    (tmp_path / "a.rds").write_bytes(packed(data))
    actual = read_shapes(tmp_path / "a.rds")
    np.testing.assert_array_equal(actual.points, points)
    assert (actual.names, actual.landmarks) == (("a", "b", "c"), tuple("vwxyz"))


@pytest.mark.parametrize(
    ("layout", "axes"), [("nmd", (0, 1, 2)), ("mdn", (1, 2, 0)), ("dmn", (2, 1, 0))]
)
def test_names_of_dimensions_follow_the_layout(tmp_path, layout, axes):
    pytest.importorskip("rdata")
    points = smooth_family(n=3, m=5)
    names = [("a", "b", "c"), tuple("vwxyz"), None]
    data = text_of_array(points.transpose(axes), *(names[axis] for axis in axes))
    (tmp_path / "a.rds").write_bytes(data)
    actual = read_shapes(tmp_path / "a.rds", layout=layout)
    np.testing.assert_array_equal(actual.points, points)
    assert (actual.names, actual.landmarks) == (("a", "b", "c"), tuple("vwxyz"))


def test_the_array_is_found_in_a_list(tmp_path):
    points = smooth_family(n=4, m=6)
    array = np.asfortranarray(points.transpose(1, 2, 0))
    others = {"links": np.ones((3, 2)), "species": ["a", "b"], "size": np.ones(4)}
    actual = read_shapes(r_file(tmp_path / "a.rda", {"plethodon": {"land": array, **others}}))
    np.testing.assert_array_equal(actual.points, points)
    assert actual.metadata["variables"] == ({"size": "1.0"},) * 4
    assert actual.metadata["links"] == ((0, 0),) * 3
    others["links"][2, 1] = 7  # of six landmarks
    wrong = read_shapes(r_file(tmp_path / "b.rda", {"plethodon": {"land": array, **others}}))
    assert "links" not in wrong.metadata


def test_of_several_arrays_the_usual_names_decide(tmp_path):
    points = smooth_family(n=4, m=6)
    array = np.asfortranarray(points.transpose(1, 2, 0))
    actual = read_shapes(r_file(tmp_path / "a.rda", {"coords": array, "other": array + 1}))
    np.testing.assert_array_equal(actual.points, points)
    with pytest.raises(FormatError, match=r"'one', 'two' can each be a set of shapes"):
        read_shapes(r_file(tmp_path / "b.rda", {"one": array, "two": array}))


def test_a_list_of_matrices_is_a_set(tmp_path):
    points = smooth_family(n=3, m=6, d=3)
    matrices = {f"s{k}": np.asfortranarray(shape) for k, shape in enumerate(points)}
    actual = read_shapes(r_file(tmp_path / "a.rds", matrices))
    np.testing.assert_array_equal(actual.points, points)
    assert actual.names == ("s0", "s1", "s2")


def test_one_matrix_is_one_shape(tmp_path):
    points = smooth_family(n=1, m=6)[0]
    actual = read_shapes(r_file(tmp_path / "skull.rds", np.asfortranarray(points)))
    np.testing.assert_array_equal(actual.points[0], points)
    assert actual.names == ("skull",)


def test_files_of_r_without_landmarks_say_what_they_hold(tmp_path):
    path = r_file(tmp_path / "a.rda", {"size": np.ones(4), "word": ["x"]})
    with pytest.raises(FormatError, match=r"a\.rda: expected an array of shapes.*found 'size'"):
        read_shapes(path)


def test_a_sequence_of_r_that_would_fill_memory_is_refused(tmp_path):
    pytest.importorskip("rdata")
    text = "A\n3\n262144\n197888\n5\nUTF-8\n238\n2\n1\n262153\n14\ncompact_intseq\n2\n1\n262153\n"
    text += "4\nbase\n2\n13\n1\n13\n254\n14\n3\n1e12\n1\n1\n254\n"
    (tmp_path / "a.rds").write_text(text)
    with pytest.raises(FormatError, match=r"a\.rds: a sequence in it takes more than"):
        read_shapes(tmp_path / "a.rds")


def test_without_rdata_the_remedy_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.rds").write_bytes(gzip.compress(b"X\n\0\0\0\3"))
    monkeypatch.setitem(__import__("sys").modules, "rdata", None)
    with pytest.raises(defgpa.DefgpaError, match=r"pip install \"defgpa\[r\]\""):
        read_shapes(tmp_path / "a.rds")


def test_named_vectors_of_r_are_columns_of_words():
    xarray = pytest.importorskip("xarray")
    from defgpa.io.arrays.r import _collect_metadata

    sizes = xarray.DataArray([1.5, np.nan], dims=["specimen"], coords={"specimen": ["a", "b"]})
    rows = _collect_metadata({"size": sizes}, 2)
    assert rows == [{"variables": {"size": "1.5"}}, {"variables": {"size": ""}}]


@pytest.mark.parametrize("suffix", [".zip", ".npz", ".xlsx"])
def test_a_member_that_claims_to_be_longer_than_its_archive_takes_no_memory(tmp_path, suffix):
    """Python takes as much memory as the directory says that a member has."""
    path = tmp_path / f"claim{suffix}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("points.npy" if suffix == ".npz" else "a.tps", "LM=1\n1 2\n" * 50)
    data = bytearray(path.read_bytes())
    claim = data.rindex(b"PK\x01\x02") + 20
    data[claim : claim + 4] = (2**30).to_bytes(4, "little")
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError):
            (read_covariate_rows if suffix == ".xlsx" else read_shapes)(path)
        assert tracemalloc.get_traced_memory()[1] < 64e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("unit", ["a,1,2\n", "a,1,NA\n", ",x1"])
def test_a_packed_large_table_is_refused_before_its_shapes_are_made(tmp_path, unit):
    content = gzip.compress(b"id,x1,y1\n" + 1_000_000 // len(unit) * unit.encode())
    (tmp_path / "a.csv.gz").write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=r"a\.csv\.gz: its text takes more than 12 MB"):
            read_shapes(tmp_path / "a.csv.gz", max_memory=12e6)
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()


def test_many_curves_of_a_specimen_take_no_labels_but_theirs(tmp_path):
    (tmp_path / "a.tps").write_text("LM=1\n1 2\n" + 3000 * "CURVES=1\nPOINTS=1\n1 1\n")
    tracemalloc.start()
    try:
        assert read_shapes(tmp_path / "a.tps").n_landmarks == 3001
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_packed_points_of_many_elements_are_refused_before_they_are_parsed(tmp_path):
    content = b"<PickedPoints>" + 300_000 * b"<a>"
    (tmp_path / "a.pp.gz").write_bytes(gzip.compress(content))
    with pytest.raises(FormatError, match=r"a\.pp\.gz: the number of its elements takes more"):
        read_shapes(tmp_path / "a.pp.gz", max_memory=12e6)
