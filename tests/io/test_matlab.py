"""MATLAB files: the cell is the set, in every version and layout that occurs."""

import struct
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.io import loadmat, savemat

from defgpa.errors import FormatError
from defgpa.io.arrays.mat_bytes import Sparse
from defgpa.io.arrays.matlab import FORMATS, read_mat_variables
from defgpa.io.format import ReadOptions
from defgpa.shapes import Shapes
from io_support import make_cell

(MAT,) = FORMATS


def some_points(n=3, m=6, d=2):
    return np.random.default_rng(5).normal(size=(n, m, d))


def save_v5(path, variables):
    savemat(path, variables)


def save_v73(path, variables):
    """As MATLAB does: a text block, arrays transposed, cells as references, text as numbers."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        references = file.create_group("#refs#")

        def store(parent, name, value):
            if isinstance(value, dict):
                group = parent.create_group(name)
                group.attrs["MATLAB_class"] = np.bytes_("struct")
                for key, entry in value.items():
                    store(group, key, entry)
                return group
            if scipy.sparse.issparse(value):
                columns = scipy.sparse.csc_array(value)
                group = parent.create_group(name)
                group.attrs["MATLAB_class"] = np.bytes_("double")
                group.attrs["MATLAB_sparse"] = np.uint64(columns.shape[0])
                group["jc"] = columns.indptr.astype("u8")
                if columns.nnz:
                    group["data"], group["ir"] = columns.data, columns.indices.astype("u8")
                return group
            if isinstance(value, str):
                if not value:
                    dataset = parent.create_dataset(name, data=np.array([0, 0], dtype="u8"))
                    dataset.attrs["MATLAB_empty"] = np.uint8(1)
                else:
                    codes = np.frombuffer(value.encode("utf-16-le"), dtype="<u2")
                    dataset = parent.create_dataset(name, data=codes[:, None])
                dataset.attrs["MATLAB_class"] = np.bytes_("char")
                return dataset
            if value.dtype == object:
                entries = [
                    store(references, f"{len(references)}x", entry).ref
                    for entry in value.ravel(order="F")
                ]
                data = np.array(entries, dtype=h5py.ref_dtype).reshape(value.shape[::-1])
                dataset = parent.create_dataset(name, data=data, dtype=h5py.ref_dtype)
                dataset.attrs["MATLAB_class"] = np.bytes_("cell")
                return dataset
            kind = "logical" if value.dtype == bool else "double"
            dataset = parent.create_dataset(
                name, data=value.T.astype("u1" if kind == "logical" else "f8")
            )
            dataset.attrs["MATLAB_class"] = np.bytes_(kind)
            return dataset

        for name, value in variables.items():
            store(file, name, value)
    with open(path, "r+b") as file:  # noqa: PTH123
        text = b"MATLAB 7.3 MAT-file, Platform: GLNXA64"
        file.write(text.ljust(116) + bytes(8) + b"\0\2IM")


VERSIONS = pytest.mark.parametrize("save", [save_v5, save_v73])


@pytest.fixture
def read(tmp_path):
    def read_variables(save, variables, **options):
        save(tmp_path / "set.mat", variables)
        assert MAT.looks_like((tmp_path / "set.mat").read_bytes()[:4096])
        return MAT.read(tmp_path / "set.mat", ReadOptions(**options))

    return read_variables


def stacked(document):
    return np.array([specimen.points for specimen in document.specimens])


@pytest.mark.parametrize("d", [2, 3])
def test_everything_written_is_read_back(tmp_path, d):
    points = some_points(d=d)
    points[1, 2] = np.nan
    shapes = Shapes(
        points,
        names=["a", "ß 中", "long name"],
        landmarks=["", "b", "c", "d", "e ", "f"],
        faces=[[0, 1, 2], [2, 3, 5]],
    )
    MAT.write(tmp_path / "set.mat", shapes)
    document = MAT.read(tmp_path / "set.mat", ReadOptions())
    assert np.array_equal(stacked(document), points, equal_nan=True)
    assert tuple(s.name for s in document.specimens) == shapes.names
    assert document.specimens[0].labels == shapes.landmarks
    assert np.array_equal(document.faces, shapes.faces)


def test_one_shape_is_read_back(tmp_path):
    first = Shapes.specimens(some_points(n=1), names=["only"])
    MAT.write(tmp_path / "set.mat", first)
    document = MAT.read(tmp_path / "set.mat", ReadOptions())
    assert np.array_equal(stacked(document), first.points)
    assert document.specimens[0].name == "only"


@VERSIONS
def test_a_cell_of_matrices_is_a_set_under_any_name(read, save):
    points = some_points()
    document = read(
        save, {"wings": make_cell([p.T for p in points]), "note": "by hand", "k": np.eye(4)}
    )
    assert np.array_equal(stacked(document), points)
    assert [s.name for s in document.specimens] == ["set_1", "set_2", "set_3"]


@VERSIONS
def test_matrices_may_stand_upright_where_that_is_clear(read, save):
    points = some_points()
    assert np.array_equal(stacked(read(save, {"points": make_cell(list(points))})), points)


def test_square_matrices_are_read_as_documented_unless_told(read):
    points = some_points(m=2)
    across = {"points": make_cell([p.T for p in points])}
    assert np.array_equal(stacked(read(save_v5, across)), points)
    turned = stacked(read(save_v5, across, layout="mdn"))
    assert np.array_equal(turned, points.transpose(0, 2, 1))


VISIBLE = np.array([[1, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]], dtype=float)


@VERSIONS
@pytest.mark.parametrize(
    "stored",
    [
        lambda: make_cell([np.diag(v) for v in VISIBLE]),
        lambda: make_cell([scipy.sparse.csc_matrix(np.diag(v)) for v in VISIBLE]),
        lambda: make_cell([scipy.sparse.csc_matrix(v[None]) for v in VISIBLE]),
        lambda: make_cell([scipy.sparse.csc_matrix(v[:, None]) for v in VISIBLE]),
        lambda: make_cell([v[None] for v in VISIBLE]),
        lambda: make_cell([v[:, None].astype(bool) for v in VISIBLE]),
        lambda: VISIBLE,
        lambda: VISIBLE.T,
    ],
    ids=[
        "diagonal", "sparse", "sparse row", "sparse column", "row", "logical column", "rows",
        "columns",
    ],
)  # fmt: skip
def test_visibility_in_any_form_makes_landmarks_missing(read, save, stored):
    points = some_points()
    document = read(save, {"D": make_cell([p.T for p in points]), "V": stored()})
    expected = np.where(VISIBLE[..., None] == 1, points, np.nan)
    assert np.array_equal(stacked(document), expected, equal_nan=True)


@VERSIONS
def test_image_correspondences_have_their_images(read, save):
    points = some_points()
    homogeneous = [np.vstack([p.T, np.ones(6)]) for p in points]
    names = make_cell(["img1", "img2", "img3"])
    document = read(save, {"Corresp": {"ptsImg": make_cell(homogeneous), "imNames": names}})
    assert np.array_equal(stacked(document), points)
    assert [s.name for s in document.specimens] == ["img1", "img2", "img3"]
    assert [s.metadata["images"] for s in document.specimens] == ["img1", "img2", "img3"]


@VERSIONS
def test_an_array_as_r_users_have_it_is_read_by_its_axes(read, save):
    points = some_points()
    array = points.transpose(1, 2, 0)  # p × k × n
    assert np.array_equal(stacked(read(save, {"A": array}, layout="mdn")), points)
    with pytest.raises(FormatError, match=r"Give layout='nmd' or layout='mdn'"):
        read(save, {"A": array})
    four = some_points(n=4).transpose(1, 2, 0)
    assert np.array_equal(stacked(read(save, {"A": four})), some_points(n=4))


@VERSIONS
def test_names_may_be_the_rows_of_a_character_matrix(read, save, tmp_path):
    points = some_points()
    variables = {"points": make_cell([p.T for p in points]), "names": make_cell(["a", "bb", "ccc"])}
    if save is save_v5:
        variables["names"] = np.array(["a  ", "bb ", "ccc"])
    document = read(save, variables)
    assert [s.name for s in document.specimens] == ["a", "bb", "ccc"]


def assert_same_value(ours, theirs):
    """Our plain value says what SciPy's wrapped one says."""
    if isinstance(ours, dict):
        assert list(ours) == list(theirs.dtype.names)
        for name, value in ours.items():
            assert_same_value(value, theirs.ravel()[0][name])
    elif isinstance(ours, list):
        entries = theirs.ravel(order="F")
        assert len(ours) == len(entries)
        for mine, entry in zip(ours, entries, strict=True):
            assert_same_value(mine, entry)
    elif isinstance(ours, str):
        assert ours == "".join(np.ravel(theirs))
    elif isinstance(ours, Sparse):
        triplets = (ours.values, (ours.rows, ours.columns))
        assert (scipy.sparse.coo_array(triplets, shape=ours.size) != theirs).nnz == 0
    else:
        assert ours.shape == theirs.shape
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("compressed", [True, False])
def test_values_of_every_class_are_read_as_scipy_reads_them(tmp_path, compressed):
    variables = {
        "double": some_points(),
        "single": np.float32([[1.5, 2.5]]),
        "small": np.array([[3]], dtype="i1"),
        "wide": np.array([[2**40, -1]], dtype="i8"),
        "complex": np.array([[1 + 2j, 3 - 1j]]),
        "logical": np.array([[True, False]]),
        "nothing": np.empty((0, 3)),
        "text": "häß 中",
        "nested": make_cell([np.eye(2), make_cell(["a", ""]), make_cell([])]),
        "struct": {"a": np.eye(3), "longer_name": make_cell(["x", np.ones((1, 2))])},
        "sparse": scipy.sparse.csc_matrix([[0, 1.5, 0], [2, 0, 0]]),
    }
    savemat(tmp_path / "a.mat", variables, do_compression=compressed)
    ours = read_mat_variables(tmp_path / "a.mat")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # SciPy 1.18: of what it calls sparse
        theirs = loadmat(tmp_path / "a.mat")
    assert set(ours) == set(variables)
    for name, value in ours.items():
        assert_same_value(value, theirs[name])


def test_big_endian_files_are_read(tmp_path):
    def element(kind, data):
        return struct.pack(">II", kind, len(data)) + data + bytes(-len(data) % 8)

    def matrix(name, kind, size, content):
        parts = element(6, struct.pack(">II", kind, 0)) + element(5, struct.pack(">ii", *size))
        return element(14, parts + element(1, name) + content)

    points = some_points()
    matrices = [matrix(b"", 6, (2, 6), element(9, p.astype(">f8").tobytes())) for p in points]
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\1\0MI"
    content = matrix(b"points", 1, (1, 3), b"".join(matrices))
    (tmp_path / "set.mat").write_bytes(header + content)
    assert np.array_equal(stacked(MAT.read(tmp_path / "set.mat", ReadOptions())), points)


def test_version_4_holds_one_shape(tmp_path):
    savemat(tmp_path / "a.mat", {"points": some_points()[0]}, format="4")
    (specimen,) = MAT.read(tmp_path / "a.mat", ReadOptions()).specimens
    assert np.array_equal(specimen.points, some_points()[0])
    assert specimen.name == "a"


@VERSIONS
@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"x": np.ones((4, 4))}, "expected an array of shapes, landmarks and coord"),
        (
            {"a": make_cell([np.ones((2, 4))]), "b": make_cell([np.ones((2, 4))])},
            "'a', 'b' can each be a set of shapes. Choose one: variable='a'",
        ),
        ({"points": make_cell([np.ones((4, 5))])}, "2 or 3 coordinates; found size (4, 5)"),
        ({"points": make_cell(["text"])}, "'points' must be a cell of d × m matrices"),
        (
            {"points": make_cell([np.ones((2, 4))]), "names": make_cell(["a", "b"])},
            "a cell of 1 names",
        ),
        (
            {"points": make_cell([np.ones((2, 4))]), "names": make_cell([np.eye(2)])},
            "some entries are not text",
        ),
        (
            {"points": make_cell([np.ones((2, 4))]), "visible": make_cell([np.ones((1, 3))])},
            "must be 4 zeros and ones",
        ),
        (
            {"points": make_cell([np.ones((2, 4))]), "visible": make_cell([np.full((4, 4), 1.0)])},
            "must be 4 zeros and ones, or a diagonal matrix",
        ),
        (
            {"points": make_cell([np.ones((2, 4))]), "visible": make_cell([np.ones(4)] * 2)},
            "must be a cell of 1 vectors",
        ),
        (
            {"points": make_cell([np.ones((2, 4))]), "faces": np.array([[0.0, 1, 2]])},
            "found -1 (the first is 0)",
        ),
        ({"Corresp": {"ptsImg": make_cell([np.ones((1, 4))])}}, "with 2 rows or more"),
    ],
)
def test_wrong_files_are_told_what_is_wrong(read, save, variables, message):
    with pytest.raises(FormatError, match=r"set\.mat") as caught:
        read(save, variables)
    assert message in str(caught.value)


@VERSIONS
def test_truncated_files_give_one_sentence(tmp_path, save):
    path = tmp_path / "set.mat"
    save(path, {"points": make_cell([p.T for p in some_points()])})
    data = path.read_bytes()
    for cut in (0, 60, 130, 600, len(data) // 2, len(data) - 9):
        path.write_bytes(data[:cut])
        with pytest.raises(FormatError, match=r"set\.mat"):
            MAT.read(path, ReadOptions())


def test_octave_text_is_named_for_what_it_is(tmp_path):
    path = tmp_path / "set.mat"
    path.write_text("# Created by Octave 8.4.0\n# name: points\n# type: matrix\n")
    with pytest.raises(FormatError, match=r"Octave's text format\. Save it with -v7"):
        MAT.read(path, ReadOptions())


def test_a_cell_that_contains_itself_is_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "set.mat"
    with h5py.File(path, "w") as file:
        loop = file.create_dataset("points", shape=(1, 1), dtype=h5py.ref_dtype)
        loop.attrs["MATLAB_class"] = np.bytes_("cell")
        loop[0, 0] = loop.ref
    with pytest.raises(FormatError, match="'points' must be a cell"):
        MAT.read(path, ReadOptions())


def test_an_array_that_claims_more_than_the_file_holds_is_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "set.mat"
    with h5py.File(path, "w") as file:
        file.create_dataset("points", shape=(10**6, 10**6, 3), chunks=(100, 100, 3), dtype="f8")
    with pytest.raises(FormatError, match=r"'/points' takes more than 64 MB.*DEFGPA_MAX_BYTES"):
        MAT.read(path, ReadOptions())


def test_links_to_other_files_are_not_followed(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "other.mat", "w") as target:
        target["points"] = np.ones((4, 6, 2))
    with h5py.File(tmp_path / "set.mat", "w") as file:
        file["points"] = h5py.ExternalLink("other.mat", "/points")
    with pytest.raises(FormatError, match="found no variables"):
        MAT.read(tmp_path / "set.mat", ReadOptions())


def test_without_h5py_the_remedy_is_named(tmp_path, monkeypatch):
    save_v73(tmp_path / "set.mat", {"points": some_points()})
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(Exception, match=r"pip install \"defgpa\[matlab\]\""):
        MAT.read(tmp_path / "set.mat", ReadOptions())


def version_4(order, kind, name, matrix, imaginary=0):
    head = struct.pack(f"{order}5i", kind, *matrix.shape, imaginary, len(name) + 1)
    return head + name + b"\0" + matrix.tobytes(order="F") * (1 + imaginary)


@pytest.mark.parametrize(("order", "machine"), [("<", 0), (">", 1000)])
@pytest.mark.parametrize(("precision", "dtype"), [(0, "f8"), (10, "f4"), (20, "i4"), (50, "u1")])
def test_version_4_is_read_in_both_byte_orders_and_every_precision(
    tmp_path, order, machine, precision, dtype
):
    points = np.arange(12).reshape(6, 2).astype(order + dtype)
    text = version_4(order, machine + precision + 1, b"note", points)  # text is passed over
    complete = version_4(order, machine + precision, b"complex", points, imaginary=1)
    data = text + complete + version_4(order, machine + precision, b"points", points)
    (tmp_path / "a.mat").write_bytes(data)
    assert list(read_mat_variables(tmp_path / "a.mat")) == ["points"]
    (specimen,) = MAT.read(tmp_path / "a.mat", ReadOptions()).specimens
    assert np.array_equal(specimen.points, points)


def test_version_4_that_is_damaged_is_refused_with_a_sentence(tmp_path):
    complete = version_4("<", 0, b"points", some_points()[0])
    huge = struct.pack("<5i", 0, 2**30, 2**30, 0, 7) + b"points\0"
    negative = struct.pack("<5i", 0, -1, 2, 0, 7) + b"points\0"
    for data in (complete[:-1], complete[:23], huge, negative, complete + b"\0\0", b"\0" * 19):
        (tmp_path / "a.mat").write_bytes(data)
        with pytest.raises(FormatError, match=r"a\.mat is not a MATLAB file that can be read"):
            MAT.read(tmp_path / "a.mat", ReadOptions())
