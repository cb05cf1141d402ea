"""Motion capture and pose estimation: TRC, C3D, COCO, DeepLabCut, SLEAP, and other programs."""

import json
import pickle

import numpy as np
import pytest

import defgpa
from defgpa.errors import DefgpaWarning, FormatError
from defgpa.io import read_shapes, write_shapes
from defgpa.shapes import Shapes

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(1, 5, 2)) * 50 + 100 + RNG.normal(size=(4, 5, 2))
PARTS = ("nose", "left ear", "right ear", "neck", "tail")

TRC = (
    "PathFileType\t4\t(X/Y/Z)\twalk.trc\n"
    "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\t"
    "OrigNumFrames\n100\t100\t3\t2\tmm\t100\t1\t3\n"
    "Frame#\tTime\tRASI\t\t\tLASI\t\t\n\t\tX1\tY1\tZ1\tX2\tY2\tZ2\n\n"
    "1\t0.00\t1\t2\t3\t4\t5\t6\n2\t0.01\t1.5\t2\t3\t\t\t\n3\t0.02\t\t\t\t\t\t\n"
)


def test_frames_of_trc_are_shapes_and_empty_cells_missing(tmp_path):
    (tmp_path / "walk.trc").write_text(TRC)
    with pytest.warns(DefgpaWarning, match="1 frames without any marker"):
        shapes = read_shapes(tmp_path / "walk.trc")
    assert shapes.names == ("frame_1", "frame_2")
    assert shapes.landmarks == ("RASI", "LASI")
    assert shapes.points[1, 0].tolist() == [1.5, 2, 3]
    assert shapes.visible.tolist() == [[True, True], [True, False]]


def test_other_counts_than_trc_announces_are_noted(tmp_path):
    (tmp_path / "walk.trc").write_text(TRC.replace("\t3\t2\tmm", "\t999999999\t2\tmm"))
    with pytest.warns(DefgpaWarning) as caught:
        assert read_shapes(tmp_path / "walk.trc").n_shapes == 2
    assert any("NumFrames says '999999999'; there are 3" in str(w.message) for w in caught)


def test_frames_of_c3d_are_shapes(tmp_path):
    ezc3d = pytest.importorskip("ezc3d")
    points = RNG.normal(size=(3, 4, 6))
    file = ezc3d.c3d()
    file["parameters"]["POINT"]["RATE"]["value"] = [100]
    file["parameters"]["POINT"]["LABELS"]["value"] = ["A", "B", "C", "D"]
    data = np.ones((4, 4, 6))
    data[:3] = points
    data[:3, 1, 2] = np.nan
    file["data"]["points"] = data
    file.write(str(tmp_path / "walk.c3d"))
    shapes = read_shapes(tmp_path / "walk.c3d")
    assert shapes.landmarks == ("A", "B", "C", "D")
    assert shapes.points.shape == (6, 4, 3)
    assert np.argwhere(~shapes.visible).tolist() == [[2, 1]]
    np.testing.assert_allclose(shapes.points[0], points[:, :, 0].T, rtol=1e-6)


def make_coco(flags):
    keypoints = np.dstack([POINTS, flags]).reshape(len(POINTS), -1).tolist()
    return {
        "images": [{"id": 7 + k, "file_name": f"img/bird_{k}.jpg"} for k in range(4)],
        "annotations": [
            {"id": k, "image_id": 7 + k, "category_id": 1, "keypoints": row}
            for k, row in enumerate(keypoints)
        ],
        "categories": [
            {"id": 1, "name": "bird", "keypoints": list(PARTS), "skeleton": [[1, 2], [1, 3]]}
        ],
    }


def test_keypoints_of_coco_have_names_links_and_visibility(tmp_path):
    flags = np.full((4, 5), 2.0)
    flags[1, 2], flags[2, 0] = 0, 1
    (tmp_path / "person.json").write_text(json.dumps(make_coco(flags)))
    shapes = read_shapes(tmp_path / "person.json")
    assert shapes.names == ("bird_0", "bird_1", "bird_2", "bird_3")
    assert shapes.landmarks == PARTS
    assert shapes.links == [(0, 1), (0, 2)]
    assert np.argwhere(~shapes.visible).tolist() == [[1, 2]]
    assert not shapes.has_weights
    np.testing.assert_array_equal(shapes.points[3], POINTS[3])


def test_confidences_of_a_coco_result_are_weights(tmp_path):
    content = make_coco(RNG.uniform(0.1, 1, size=(4, 5)).round(3))["annotations"]
    (tmp_path / "results.json").write_text(json.dumps(content))
    shapes = read_shapes(tmp_path / "results.json")
    expected = [annotation["keypoints"][2::3] for annotation in content]
    np.testing.assert_array_equal(shapes.weights, expected)
    assert not read_shapes(tmp_path / "results.json", weights=None).has_weights


WEIGHTED = Shapes(
    POINTS, names=["a", "b", "c", "d"], landmarks=PARTS, weights=RNG.uniform(0.1, 1, size=(4, 5))
)


@pytest.mark.parametrize(
    ("name", "format_name"),
    [("a.json", "coco"), ("a.csv", None), ("a.csv", "csv-long"), ("a.npz", None)],
)
def test_weights_survive_the_round_trip(tmp_path, name, format_name):
    write_shapes(WEIGHTED, tmp_path / name, format=format_name)
    again = read_shapes(tmp_path / name)
    np.testing.assert_array_equal(again.points, WEIGHTED.points)
    np.testing.assert_array_equal(again.weights, WEIGHTED.weights)
    assert again.landmarks == PARTS


def test_weights_are_kept_by_saved_results(tmp_path):
    alignment = defgpa.EuclideanGPA().fit(WEIGHTED).alignment_
    defgpa.save(alignment, tmp_path / "r.npz")
    again = defgpa.load(tmp_path / "r.npz")
    np.testing.assert_array_equal(again.shapes.weights, WEIGHTED.weights)


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        (np.ones((5, 4)), "(4, 5); found numbers of size (5, 4). To read the points alone"),
        (np.full((4, 5), "good"), "(4, 5); found 'good'. To read the points alone"),
        (np.full((4, 5), -1.0), "is -1: weights are 0 or positive. To read the points alone"),
        (np.full((4, 5), np.nan), "is nan: weights are 0 or positive. To read the points alone"),
    ],
    ids=["size", "words", "negative", "nan"],
)
def test_bad_weights_of_an_archive_are_refused_with_a_remedy(tmp_path, weights, problem):
    path = tmp_path / "set.npz"
    np.savez(path, points=WEIGHTED.points, weights=weights)
    with pytest.raises(FormatError) as caught:
        read_shapes(path)
    assert str(path) in str(caught.value)
    assert problem in str(caught.value)
    assert not read_shapes(path, weights=None).has_weights


def test_weights_are_listed_among_what_a_format_cannot_hold():
    assert "landmark weights" in defgpa.io.find_unsupported_metadata(WEIGHTED, "a.tps")
    assert defgpa.io.find_unsupported_metadata(WEIGHTED, "a.csv") == ()


def write_deeplabcut(path, heads):
    h5py = pytest.importorskip("h5py")
    values = RNG.uniform(0.2, 1, size=(6, len(heads)))
    table = np.empty(6, dtype=[("index", "i8"), ("values_block_0", "f8", (len(heads),))])
    table["index"], table["values_block_0"] = np.arange(6), values
    with h5py.File(path, "w") as file:
        group = file.create_group("df_with_missing")
        dataset = group.create_dataset("table", data=table)
        dataset.attrs["values_block_0_kind"] = np.void(pickle.dumps(heads, protocol=0))
    return values


def test_likelihoods_of_deeplabcut_files_are_weights(tmp_path):
    heads = [("net", piece, c) for piece in PARTS for c in ("x", "y", "likelihood")]
    values = write_deeplabcut(tmp_path / "video.h5", heads)
    with pytest.warns(DefgpaWarning, match="every frame is a shape"):
        shapes = read_shapes(tmp_path / "video.h5", min_likelihood=0)
    assert shapes.landmarks == PARTS
    assert shapes.names[:2] == ("frame_0", "frame_1")
    np.testing.assert_array_equal(shapes.weights, values[:, 2::3])
    np.testing.assert_array_equal(shapes.points[..., 0], values[:, ::3])


def test_unlikely_points_of_deeplabcut_files_are_missing(tmp_path):
    heads = [("net", piece, c) for piece in PARTS for c in ("x", "y", "likelihood")]
    likelihoods = write_deeplabcut(tmp_path / "video.h5", heads)[:, 2::3]
    n_cut = (likelihoods < 0.6).sum()
    assert 0 < n_cut < likelihoods.size
    note = rf"{n_cut} of 30 points are below 0.6 and count as missing \(min_likelihood=0: keep all"
    with pytest.warns(DefgpaWarning, match=note):
        shapes = read_shapes(tmp_path / "video.h5")
    np.testing.assert_array_equal(shapes.weights, np.where(likelihoods < 0.6, 0, likelihoods))
    with pytest.warns(DefgpaWarning, match="points are below 0.3 and count"):
        shapes = read_shapes(tmp_path / "video.h5", min_likelihood=0.3)
    np.testing.assert_array_equal(shapes.visible, likelihoods >= 0.3)
    with pytest.raises(FormatError, match=r"no point has a likelihood of at least 2 \(min_like"):
        read_shapes(tmp_path / "video.h5", min_likelihood=2)


def test_individuals_of_deeplabcut_files_are_groups(tmp_path):
    heads = [("net", who, piece, c) for who in "AB" for piece in PARTS for c in ("x", "y")]
    write_deeplabcut(tmp_path / "video.h5", heads)
    with pytest.warns(DefgpaWarning, match="every frame is a shape"):
        shapes = read_shapes(tmp_path / "video.h5")
    assert shapes.n_shapes == 12
    assert set(shapes.metadata["groups"]) == {"A", "B"}


def write_labelled_images(path, index, breaks=""):
    """Write labels of images as pandas does in its fixed format: words and their numbers."""
    h5py = pytest.importorskip("h5py")
    parts = sorted(PARTS)
    words = {"level0": ["me"], "level1": parts, "level2": ["x", "y"]}
    numbers = [[0] * 10, [parts.index(piece) for piece in PARTS for _ in "xy"], [0, 1] * 5]
    with h5py.File(path, "w") as file:
        group = file.create_group("df_with_missing")
        for name in ("axis0", "block0_items"):
            for level, row in zip(words, numbers, strict=True):
                group[f"{name}_{level}"] = [word.encode() for word in words[level]]
                group[f"{name}_{level.replace('level', 'label')}"] = np.array(row, "i1")
        group["block0_values"] = POINTS.reshape(4, -1)[:, : 9 if breaks == "values" else None]
        for name, values in index.items():
            group[name] = values
        if breaks == "labels":
            group["block0_items_label1"][0] = 99


IMAGES = [f"img{k}.png".encode() for k in range(4)]
FOLDERS = {
    "axis1_level0": [b"labeled-data"], "axis1_label0": [0] * 4,
    "axis1_level1": IMAGES, "axis1_label1": [0, 1, 3, 2],
}  # fmt: skip


@pytest.mark.parametrize(
    ("index", "second", "last"),
    [
        (FOLDERS, "labeled-data/img1.png", "labeled-data/img2.png"),
        ({"axis1": IMAGES}, "img1.png", "img3.png"),
        ({"axis1": [3, 5, 7, 9]}, "frame_5", "frame_9"),
    ],
    ids=["folders", "images", "numbers"],
)
def test_labelled_images_of_deeplabcut_are_shapes(tmp_path, index, second, last):
    write_labelled_images(tmp_path / "CollectedData_me.h5", index)
    with pytest.warns(DefgpaWarning, match="every frame is a shape"):
        shapes = read_shapes(tmp_path / "CollectedData_me.h5")
    assert shapes.landmarks == PARTS
    assert (shapes.names[1], shapes.names[-1]) == (second, last)
    np.testing.assert_array_equal(shapes.points, POINTS)


@pytest.mark.parametrize("breaks", ["values", "labels"])
def test_damaged_labels_of_deeplabcut_are_refused(tmp_path, breaks):
    write_labelled_images(tmp_path / "a.h5", {"axis1": IMAGES}, breaks)
    with pytest.raises(FormatError, match=r"a\.h5"):
        read_shapes(tmp_path / "a.h5")


class Evil:
    def __reduce__(self):
        return (print, ("this ran",))


def test_a_pickle_in_a_table_runs_nothing(tmp_path, capsys):
    write_deeplabcut(tmp_path / "video.h5", [Evil()])
    with pytest.raises(FormatError, match="the names of its columns cannot be read"):
        read_shapes(tmp_path / "video.h5")
    assert capsys.readouterr().out == ""


def write_sleap(path):
    h5py = pytest.importorskip("h5py")
    frame_type = [("frame_id", "u8"), ("video", "u4"), ("frame_idx", "u8")]
    frame_type += [("instance_id_start", "u8"), ("instance_id_end", "u8")]
    instance_type = [("instance_id", "i8"), ("instance_type", "u1"), ("frame_id", "u8")]
    instance_type += [("skeleton", "u4"), ("track", "i4"), ("from_predicted", "i8")]
    instance_type += [("score", "f4"), ("point_id_start", "u8"), ("point_id_end", "u8")]
    points = [("x", "f8"), ("y", "f8"), ("visible", "?"), ("complete", "?")]
    flat = POINTS[:2].reshape(-1, 2)
    with h5py.File(path, "w") as file:
        file["frames"] = np.array([(0, 0, 3, 0, 1), (1, 0, 9, 1, 2)], frame_type)
        file["instances"] = np.array(
            [(0, 1, 0, 0, -1, -1, 0.9, 0, 5), (1, 0, 1, 0, -1, -1, 0.0, 0, 5)], instance_type
        )
        file["pred_points"] = np.array(
            [(x, y, True, True, 0.5) for x, y in flat[:5]], [*points, ("score", "f8")]
        )
        file["points"] = np.array(
            [(x, y, k != 2, True) for k, (x, y) in enumerate(flat[5:])], points
        )
        nodes = [{"name": piece} for piece in PARTS]
        metadata = {"nodes": nodes, "skeletons": [{"nodes": [{"id": k} for k in range(5)]}]}
        file.create_group("metadata").attrs["json"] = np.bytes_(json.dumps(metadata))


def test_instances_of_sleap_are_shapes(tmp_path):
    write_sleap(tmp_path / "labels.slp")
    with pytest.warns(DefgpaWarning, match="every frame is a shape"):
        shapes = read_shapes(tmp_path / "labels.slp")
    assert shapes.names == ("frame_3", "frame_9")
    assert shapes.landmarks == PARTS
    assert shapes.visible[1].tolist() == [True, True, False, True, True]
    np.testing.assert_array_equal(shapes.weights[0], [0.5] * 5)
    np.testing.assert_array_equal(shapes.points[0], POINTS[0])


def test_tracks_of_a_sleap_analysis_are_shapes(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.analysis.h5", "w") as file:
        file["tracks"] = POINTS.transpose(2, 1, 0)[None]
        file["node_names"] = [piece.encode() for piece in PARTS]
        file["track_names"] = [b"one"]
    with pytest.warns(DefgpaWarning, match="every frame is a shape"):
        shapes = read_shapes(tmp_path / "a.analysis.h5")
    np.testing.assert_array_equal(shapes.points, POINTS)


def test_other_hdf5_files_give_their_array_or_ask_for_a_variable(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["left"], file["right"] = POINTS, POINTS + 1
    with pytest.raises(FormatError, match=r"'left', 'right' can each .* Choose one: variable="):
        read_shapes(tmp_path / "a.h5")
    shapes = read_shapes(tmp_path / "a.h5", variable="right")
    np.testing.assert_array_equal(shapes.points, POINTS + 1)


@pytest.mark.parametrize("suffix", ["mat", "npz"])
def test_a_variable_of_several_is_chosen_by_name(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    if suffix == "npz":
        np.savez(path, first=POINTS, second=POINTS + 1)
    else:
        from scipy.io import savemat

        savemat(path, {"first": POINTS.transpose(1, 2, 0), "second": POINTS.transpose(1, 2, 0) + 1})
    np.testing.assert_array_equal(
        read_shapes(path, variable="second", layout="auto" if suffix == "npz" else "mdn").points,
        POINTS + 1,
    )
    with pytest.raises(FormatError, match=r"has no variable 'third'; it holds 'first', 'second'"):
        read_shapes(path, variable="third")


def test_landmarks_of_elastix_are_read(tmp_path):
    (tmp_path / "a.pts").write_text("point\n3\n102.8 -33.4 57.0\n178.1 -10.9 14.5\n1 2 3\n")
    assert read_shapes(tmp_path / "a.pts").points[0, 0].tolist() == [102.8, -33.4, 57.0]
    (tmp_path / "a.pts").write_text("index\n2\n1 2\n3 4\n5 6\n")
    with pytest.raises(FormatError, match=r"line 2: expected 2 rows of points; found 3"):
        read_shapes(tmp_path / "a.pts")


def test_landmarks_of_scalismo_survive_the_round_trip(tmp_path):
    content = [
        {"id": "nasion", "coordinates": [1.5, 2, 3], "uncertainty": {"stddevs": [1, 1, 1]}},
        {"id": "tip", "coordinates": [4, 5, 6]},
    ]
    (tmp_path / "face.json").write_text(json.dumps(content))
    shapes = read_shapes(tmp_path / "face.json")
    assert shapes.landmarks == ("nasion", "tip")
    write_shapes(shapes, tmp_path / "again.json", format="scalismo")
    assert read_shapes(tmp_path / "again.json").points.tolist() == shapes.points.tolist()
