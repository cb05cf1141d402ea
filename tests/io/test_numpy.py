"""NumPy files: the array is the set, whatever the order of its axes."""

import zipfile

import numpy as np
import pytest

from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes
from defgpa.io.arrays.numpy import FORMATS
from defgpa.io.format import ReadOptions
from defgpa.shapes import Shapes
from support import shared_data

NPZ, NPY = FORMATS


def some_points(n=4, m=7, d=3):
    points = np.random.default_rng(1).normal(size=(n, m, d))
    points[1, 2] = np.nan
    return points


def stacked(document):
    return np.array([specimen.points for specimen in document.specimens])


def read_npz(tmp_path, arrays, **options):
    np.savez(tmp_path / "set.npz", **arrays)
    return NPZ.read(tmp_path / "set.npz", ReadOptions(**options))


def read_npy(tmp_path, array, **options):
    np.save(tmp_path / "set.npy", array)
    return NPY.read(tmp_path / "set.npy", ReadOptions(**options))


def same(a, b):
    return np.array_equal(a, b, equal_nan=True)


def test_everything_written_is_read_back(tmp_path):
    shapes = Shapes(
        some_points(),
        names=["a", "ß", "c c", "d"],
        landmarks=[f"L{k}" for k in range(7)],
        faces=[[0, 1, 2], [2, 3, 6]],
        metadata={"groups": ("x", "y", "x", "y"), "scales": (0.5, 1, 2, 3), "space": "RAS"},
    )
    NPZ.write(tmp_path / "set.npz", shapes)
    document = NPZ.read(tmp_path / "set.npz", ReadOptions())
    assert same(stacked(document), shapes.points)
    assert tuple(s.name for s in document.specimens) == shapes.names
    assert {s.labels for s in document.specimens} == {shapes.landmarks}
    assert np.array_equal(document.faces, shapes.faces)
    assert document.metadata == {"space": "RAS"}
    assert [s.metadata["groups"] for s in document.specimens] == ["x", "y", "x", "y"]
    assert [s.metadata["scales"] for s in document.specimens] == [0.5, 1, 2, 3]


def test_lists_as_long_as_the_shapes_are_columns_and_pairs_are_links(tmp_path):
    arrays = {
        "points": some_points(),
        "species": np.array(["a", "a", "b", "ß"]),
        "weight": np.array([1.5, 2.0, np.nan, 3.0]),
        "of_landmarks": np.arange(7),
        "links": np.array([[0, 1], [1, 6]]),
        "anything": np.array([object()] * 4, dtype=object),
    }
    document = read_npz(tmp_path, arrays)
    variables = [s.metadata["variables"] for s in document.specimens]
    assert variables[3] == {"species": "ß", "weight": "3.0"}
    assert variables[2]["weight"] == "nan"
    assert document.metadata["links"] == ((0, 1), (1, 6))
    arrays["links"] = np.array([[0, 7]])  # a landmark that is not there
    assert "links" not in read_npz(tmp_path, arrays).metadata


def test_columns_and_links_come_back(tmp_path):
    variables = ({"site": "x", "age": "3"}, {"site": "y"}, None, {"site": "x", "age": "4"})
    metadata = {"variables": variables, "links": ((0, 1, 2), (5, 6), (3, 99))}
    NPZ.write(tmp_path / "set.npz", Shapes(some_points(), metadata=metadata))
    document = NPZ.read(tmp_path / "set.npz", ReadOptions())
    back = [s.metadata["variables"] for s in document.specimens]
    assert [item["site"] for item in back] == ["x", "y", "", "x"]
    assert [item["age"] for item in back] == ["3", "", "", "4"]
    assert document.metadata["links"] == ((0, 1), (1, 2), (5, 6))


def test_metadata_that_would_need_pickle_are_left_out(tmp_path):
    shapes = Shapes(some_points(), metadata={"images": (None, "a", "b", 3)})
    NPZ.write(tmp_path / "set.npz", shapes)
    assert NPZ.read(tmp_path / "set.npz", ReadOptions()).specimens[0].metadata == {}


def test_points_alone_are_enough(tmp_path):
    document = read_npz(tmp_path, {"points": some_points()})
    assert [s.name for s in document.specimens] == ["set_1", "set_2", "set_3", "set_4"]
    assert document.specimens[0].labels is None
    assert document.faces is None


def test_landmarks_may_be_called_landmark_names(tmp_path):
    labels = np.array(list("abcdefg"))
    document = read_npz(tmp_path, {"points": some_points(), "landmark_names": labels})
    assert document.specimens[0].labels == tuple("abcdefg")


def test_names_may_be_bytes_or_numbers(tmp_path):
    arrays = {
        "points": some_points(),
        "names": np.array([b"a", b"b", b"c", "é".encode()]),
        "landmarks": np.arange(7),
    }
    document = read_npz(tmp_path, arrays)
    assert [s.name for s in document.specimens] == ["a", "b", "c", "é"]
    assert document.specimens[0].labels == tuple("0123456")


@pytest.mark.parametrize("dtype", ["f4", "i8", ">f8", "f2"])
def test_any_type_of_real_numbers_becomes_double(tmp_path, dtype):
    points = np.arange(24).reshape(2, 4, 3).astype(dtype)
    document = read_npy(tmp_path, points)
    assert stacked(document).dtype == np.float64
    assert np.array_equal(stacked(document), points)


@pytest.mark.parametrize(
    ("layout", "axes"), [("nmd", (0, 1, 2)), ("mdn", (1, 2, 0)), ("dmn", (2, 1, 0))]
)
@pytest.mark.parametrize("stated", [True, False], ids=["stated", "guessed"])
def test_axes_in_any_order_give_the_same_shapes(tmp_path, layout, axes, stated):
    points = some_points()
    options = {"layout": layout} if stated else {}
    document = read_npy(tmp_path, points.transpose(axes), **options)
    assert same(stacked(document), points)


def test_a_last_axis_of_coordinates_is_taken_as_documented(tmp_path):
    points = np.random.default_rng(0).normal(size=(3, 2, 3))
    assert same(stacked(read_npy(tmp_path, points)), points)
    turned = stacked(read_npy(tmp_path, points, layout="mdn"))
    assert same(turned, points.transpose(2, 0, 1))


def test_axes_that_could_be_either_are_asked_about(tmp_path):
    with pytest.raises(FormatError, match=r"\(3, 2, 9\).*Give layout='mdn' or layout='dmn'"):
        read_npy(tmp_path, np.zeros((3, 2, 9)))


@pytest.mark.parametrize("size", [(8, 2), (2, 8), (8, 3)])
def test_a_matrix_is_one_shape(tmp_path, size):
    points = np.random.default_rng(0).normal(size=size)
    document = read_npy(tmp_path, points)
    expected = points if size[1] in (2, 3) else points.T
    assert [s.name for s in document.specimens] == ["set"]
    assert np.array_equal(document.specimens[0].points, expected)


def test_a_code_for_missing_counts_on_request(tmp_path):
    points = np.ones((2, 3, 2))
    points[0, 1] = 9999
    assert np.isnan(stacked(read_npy(tmp_path, points, missing=9999))[0, 1]).all()
    points[0, 1] = -1, 4
    assert np.isnan(stacked(read_npy(tmp_path, points, missing="negative"))[0, 1]).all()
    assert np.isfinite(stacked(read_npy(tmp_path, points))).all()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.ones(3), "b": np.ones(3)}, "has no array 'points'; it holds 'a', 'b'"),
        ({"points": np.ones((2, 3, 3)), "names": np.array(["a"])}, "'names' must hold 2 names"),
        ({"points": np.ones((2, 3, 3)), "landmarks": np.array(["a"])}, "must hold 3 names"),
        ({"points": np.ones((2, 3, 3)), "groups": np.array(["a"])}, "one entry per shape, 2"),
        ({"points": np.ones((2, 3, 3)), "faces": np.ones((2, 4))}, "faces of size (k, 3)"),
        ({"points": np.ones((2, 3, 3)), "faces": [[0, 1, 3]]}, "number 3 landmarks; found 3"),
        ({"points": np.ones((2, 3, 3)), "faces": [[0, 1, 1.5]]}, "found 1.5"),
        ({"points": np.ones((2, 3, 3)), "faces": [[0, 1, np.inf]]}, "found inf"),
        ({"points": np.ones((2, 3, 3, 3))}, "3 axes (shapes, landmarks, coordinates)"),
        ({"points": np.ones((7, 5, 4))}, "an axis of 2 or 3 coordinates; found size (7, 5, 4)"),
        ({"points": np.ones((0, 5, 2))}, "found size (0, 5, 2)"),
        ({"points": np.array(["a", "b"])}, "array of real numbers; found '<U1'"),
        ({"points": np.ones((2, 3, 3), dtype=complex)}, "found complex numbers"),
    ],
)
def test_wrong_archives_are_told_what_is_wrong(tmp_path, arrays, message):
    with pytest.raises(FormatError, match=r"set\.npz") as caught:
        read_npz(tmp_path, arrays)
    assert message in str(caught.value)


def test_objects_are_never_unpickled(tmp_path):
    ragged = np.empty(2, dtype=object)
    ragged[:] = [np.ones((3, 2)), np.ones((4, 2))]
    np.savez(tmp_path / "set.npz", points=ragged)
    with pytest.raises(FormatError, match="'points' holds Python objects, which are not read"):
        NPZ.read(tmp_path / "set.npz", ReadOptions())
    np.save(tmp_path / "set.npy", ragged)
    with pytest.raises(FormatError, match="holds Python objects"):
        NPY.read(tmp_path / "set.npy", ReadOptions())


def test_an_object_array_that_is_not_ours_does_no_harm(tmp_path):
    notes = np.array([{"a": 1}], dtype=object)
    document = read_npz(tmp_path, {"points": some_points(), "notes": notes})
    assert len(document.specimens) == 4


def test_a_header_that_promises_terabytes_is_refused(tmp_path):
    path = tmp_path / "set.npy"
    np.save(path, np.zeros((2, 4, 3)))
    header, data = b"(2, 4, 3), }       ", path.read_bytes()
    assert header in data
    path.write_bytes(data.replace(header, b"(99999999, 4, 3), }"))
    with pytest.raises(FormatError, match=r"size \(99999999, 4, 3\), but the file is too short"):
        NPY.read(path, ReadOptions())


def test_damaged_archives_give_one_sentence(tmp_path):
    path = tmp_path / "set.npz"
    NPZ.write(path, Shapes(some_points()))
    data = path.read_bytes()
    for cut in (0, 10, len(data) // 2, len(data) - 5):
        path.write_bytes(data[:cut])
        with pytest.raises(FormatError, match="is not a NumPy archive that can be read"):
            NPZ.read(path, ReadOptions())
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("points.npy", b"not an array")
    with pytest.raises(
        FormatError, match=r"is not a NumPy archive that can be read: it is damaged"
    ):
        NPZ.read(path, ReadOptions())


def test_a_real_archive_reads_as_it_is():
    path = shared_data("turtles3d_partial.npz")
    document = NPZ.read(path, ReadOptions())
    with np.load(path, allow_pickle=False) as archive:
        assert same(stacked(document), archive["points"])


def test_two_or_three_landmarks_are_doubted_where_the_axes_allow_more(tmp_path):
    array = np.random.default_rng(1).normal(size=(10, 2, 3))
    with pytest.warns(DefgpaWarning, match=r"3 shapes with 10 landmarks in 2-D, give layout='mdn'"):
        read_npy(tmp_path, array)
    assert stacked(read_npy(tmp_path, array, layout="mdn")).shape == (3, 10, 2)


def test_a_saved_result_is_not_taken_for_landmarks(tmp_path):
    with pytest.raises(FormatError, match="not a landmark file but a result"):
        read_npz(tmp_path, {"header": np.zeros(3, dtype=np.uint8), "array_0": np.zeros(2)})


@pytest.mark.parametrize("key", ["names", "landmarks", "groups", "species", "space"])
def test_letters_beyond_unicode_are_refused(tmp_path, key):
    count = {"landmarks": 4, "space": 1}.get(key, 2)
    letters = np.full(2 * count, 0x7FFFFFFF, dtype="<u4").view("<U2")
    np.savez(tmp_path / "a.npz", points=np.zeros((2, 4, 2)), **{key: letters})
    with pytest.raises(FormatError, match=f"'{key}' holds letters that no text has"):
        read_shapes(tmp_path / "a.npz")


def test_a_small_archive_of_very_many_specimens_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", points=np.zeros((200_000, 1, 2)))
    with pytest.raises(FormatError, match="number of its specimens takes more than 64 MB"):
        read_shapes(tmp_path / "bomb.npz")
