"""The sets of the paper are read from folders and archives laid out as their authors do."""

import functools
import hashlib
import http.server
import io
import tarfile
import threading
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

from defgpa.datasets._published import (
    fetch,
    load_face,
    load_handbag,
    load_lits,
    load_liver,
    load_pillow_cover,
    load_stereo_toy_rug,
    load_topacs,
)
from defgpa.errors import DefgpaError, FormatError, ShapeError
from io_support import make_cell
from support import shared_data

RNG = np.random.default_rng(11)


def mat(variables):
    file = io.BytesIO()
    savemat(file, variables)
    return file.getvalue()


def text(rows, separator=" "):
    return "\n".join(separator.join(map(repr, row)) for row in np.asarray(rows).tolist()).encode()


@pytest.fixture(params=["folder", "zip", "tar.gz"])
def packed(request, tmp_path):
    """Store files (path to bytes) as a folder or an archive, in a folder of their own."""

    def pack(files, top="Set"):
        path = tmp_path / f"set.{request.param}"
        if request.param == "folder":
            for name, data in files.items():
                target = path / top / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        elif request.param == "zip":
            with zipfile.ZipFile(path, "w") as archive:
                for name, data in files.items():
                    archive.writestr(f"{top}/{name}", data)
        else:
            with tarfile.open(path, "w:gz") as archive:
                for name, data in files.items():
                    info = tarfile.TarInfo(f"{top}/{name}")
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
        return path

    return pack


def test_face_has_its_frames_and_missing_landmarks(packed):
    points = RNG.normal(size=(3, 5, 2))
    visible = np.ones((3, 5))
    visible[0, 1] = visible[2, 4] = 0
    content = {
        "D": make_cell([p.T for p in points]),
        "V": make_cell([np.diag(v) for v in visible]),
        "framelist": np.array([[3, 17, 28]]),
    }
    shapes = load_face(packed({"ShapeDataFace.mat": mat(content), "readme.txt": b"hello"}))
    expected = np.where(visible[..., None] == 1, points, np.nan)
    assert shapes.names == ("frame_3", "frame_17", "frame_28")
    assert np.array_equal(shapes.points, expected, equal_nan=True)


def test_the_real_face_set_in_its_published_layout_is_itself(packed):
    with np.load(shared_data("face2d.npz"), allow_pickle=False) as archive:
        points, everything = archive["points"], archive["points_all"]
    visible = ~np.isnan(points[..., 0])
    content = {
        "D": make_cell([p.T for p in everything]),
        "V": make_cell([np.diag(v.astype(float)) for v in visible]),
        "framelist": np.arange(1, 11),
    }
    shapes = load_face(packed({"ShapeDataFace.mat": mat(content)}))
    assert np.array_equal(shapes.points, points, equal_nan=True)


@pytest.mark.parametrize("load", [load_handbag, load_pillow_cover])
def test_photographed_sets_know_their_images(packed, load):
    points = RNG.normal(size=(3, 4, 2))
    content = {
        "Corresp": {
            "ptsImg": make_cell([np.vstack([p.T, np.ones(4)]) for p in points]),
            "imNames": make_cell(["img1", "img2", "img10"]),
        }
    }
    files = {
        "correspData2D/GT/Corresp.mat": mat(content),
        **{f"imageData/{name}.bmp": b"BM" for name in ("img1", "img2", "img10")},
    }
    path = packed(files)
    shapes = load(path)
    assert np.array_equal(shapes.points, points)
    assert shapes.names == ("img1", "img2", "img10")
    inside = [f"Set/imageData/{name}.bmp" for name in shapes.names]
    if path.is_dir():
        assert shapes.metadata["images"] == tuple(str(path / image) for image in inside)
        assert all((path / image).exists() for image in inside)
    else:
        assert shapes.metadata["images"] == tuple(inside)


def test_liver_clouds_come_in_natural_order(packed):
    points = RNG.normal(size=(3, 6, 3))
    names = ["liver2", "liver1", "liver10"]
    files = {f"PointClouds/{name}.txt": text(p) for name, p in zip(names, points, strict=True)}
    shapes = load_liver(packed(files))
    assert shapes.names == ("liver1", "liver2", "liver10")
    assert np.array_equal(shapes.points, points[[1, 0, 2]])


def test_liver_clouds_of_unequal_size_are_named(packed):
    files = {
        "PointClouds/a.txt": text(RNG.normal(size=(6, 3))),
        "PointClouds/b.txt": text(RNG.normal(size=(5, 3))),
    }
    with pytest.raises(FormatError, match=r"b\.txt: expected 6 vertices, as in a\.txt; found 5"):
        load_liver(packed(files))


def rug(n_frames):
    return RNG.normal(size=(n_frames, 30, 3))


def rug_file(points):
    return {"X.txt": text(points.transpose(0, 2, 1).reshape(-1, points.shape[1]))}


def test_toy_rug_gives_the_frames_of_the_paper_in_its_units(packed):
    points = rug(601)
    shapes = load_stereo_toy_rug(packed(rug_file(points)))
    assert shapes.names[:2] == ("frame_1", "frame_4")
    assert shapes.names[-1] == "frame_598"
    assert len(shapes) == 200
    assert np.array_equal(shapes.points, 100 * points[0:598:3])


def test_toy_rug_gives_the_frames_asked_for(packed):
    points = rug(8)
    path = packed(rug_file(points))
    shapes = load_stereo_toy_rug(path, frames=[8, 2])
    assert shapes.names == ("frame_8", "frame_2")
    assert np.array_equal(shapes.points, 100 * points[[7, 1]])
    with pytest.raises(FormatError, match="has frames 1 to 8; there is no frame 9"):
        load_stereo_toy_rug(path, frames=[1, 9])


def test_toy_rug_with_a_row_too_many_is_refused(packed):
    table = rug(2).reshape(-1, 30)[:5]
    with pytest.raises(FormatError, match="expected three rows a frame; found 5 rows"):
        load_stereo_toy_rug(packed({"X.txt": text(table)}))


def fcsv(points, system):
    rows = "".join(
        f"{k},{x!r},{y!r},{z!r},0,0,0,1,1,1,0,L{k},,\n"
        for k, (x, y, z) in enumerate(points.tolist())
    )
    columns = "id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID"
    return f"# CoordinateSystem = {system}\n# columns = {columns}\n{rows}".encode()


def test_lits_scans_come_into_one_system_from_wherever_they_lie(packed):
    points = RNG.normal(size=(3, 6, 3))
    flipped = points[2] * [-1, -1, 1]
    files = {
        "scan2.fcsv": fcsv(points[1], "LPS"),
        "more/scan10.fcsv": fcsv(flipped, "RAS"),
        "scan1.fcsv": fcsv(points[0], "1"),
    }
    shapes = load_lits(packed(files))
    assert shapes.names == ("scan1", "scan2", "scan10")
    assert np.array_equal(shapes.points, points)
    assert shapes.landmarks == ("L0", "L1", "L2", "L3", "L4", "L5")
    assert shapes.metadata["space"] == "LPS"
    assert shapes.metadata["sources"] == (
        "Set/scan1.fcsv",
        "Set/scan2.fcsv",
        "Set/more/scan10.fcsv",
    )


def topacs(matches, clouds, header=b""):
    files = {f"points{k}.csv": header + text(cloud, ",") for k, cloud in enumerate(clouds)}
    return {**files, "CorrespondenceMatrix.txt": text(matches)}


def test_topacs_landmarks_are_found_through_the_matrix(packed):
    clouds = [RNG.normal(size=(m, 3)) for m in (4, 5, 6)]
    matches = [[1, 5, 0], [0, 2, 6], [0, 0, 0], [3, 1, 1]]
    shapes = load_topacs(packed(topacs(matches, clouds, header=b"x,y,z\n")))
    nan = [np.nan] * 3
    assert shapes.names == ("points0", "points1", "points2")
    assert shapes.landmarks == ("1", "2", "4")  # the third row matches nothing
    expected = [
        [clouds[0][0], nan, clouds[0][2]],
        [clouds[1][4], clouds[1][1], clouds[1][0]],
        [nan, clouds[2][5], clouds[2][0]],
    ]
    assert np.array_equal(shapes.points, expected, equal_nan=True)


@pytest.mark.parametrize(
    ("matches", "message"),
    [
        ([[1, 6, 0]], "numbers of the 5 points in points1.csv, or 0; found 6"),
        ([[1, 1.5, 0]], "numbers of the 5 points in points1.csv"),
        ([[1, 2]], "line 1: expected 3 numbers; found 1 2"),
    ],
)
def test_topacs_matches_that_cannot_be_are_refused(packed, matches, message):
    clouds = [RNG.normal(size=(m, 3)) for m in (4, 5, 6)]
    with pytest.raises(FormatError) as caught:
        load_topacs(packed(topacs(matches, clouds)))
    assert message in str(caught.value)


def test_a_set_that_lacks_its_file_is_told_what_it_holds(packed):
    with pytest.raises(FormatError, match=r"has no X\.txt; it holds .*'Set/notes\.txt'"):
        load_stereo_toy_rug(packed({"notes.txt": b"1 2 3"}))


def test_what_a_mac_adds_to_an_archive_does_not_count(packed):
    files = {**rug_file(rug(8)), "__MACOSX/X.txt": b"junk", "._X.txt": b"junk"}
    assert len(load_stereo_toy_rug(packed(files))) == 3


def test_one_frame_is_no_set(packed):
    with pytest.raises(ShapeError, match="At least 2 shapes"):
        load_stereo_toy_rug(packed(rug_file(rug(3))))


# Archives that are not to be trusted


@pytest.mark.parametrize(
    "name", ["/etc/X.txt", "../X.txt", "a/../../X.txt", "C:\\X.txt", "a\\..\\..\\X.txt"]
)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_members_that_lead_outside_are_refused(tmp_path, kind, name):
    path = tmp_path / f"set.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(zipfile.ZipInfo(name), b"1 2 3")
    else:
        with tarfile.open(path, "w") as archive:
            info = tarfile.TarInfo(name)
            info.size = 5
            archive.addfile(info, io.BytesIO(b"1 2 3"))
    with pytest.raises(FormatError, match="would be written outside its folder"):
        load_stereo_toy_rug(path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_in_a_tar_archive_are_refused(tmp_path, kind):
    with tarfile.open(tmp_path / "set.tar", "w") as archive:
        info = tarfile.TarInfo("X.txt")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(FormatError, match=r"its member 'X\.txt' is a link"):
        load_stereo_toy_rug(tmp_path / "set.tar")


def test_links_in_a_zip_archive_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        info = zipfile.ZipInfo("X.txt")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(FormatError, match=r"its member 'X\.txt' is a link"):
        load_stereo_toy_rug(tmp_path / "set.zip")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "set.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.txt", b"0 " * 1000)
        archive.filelist[0].file_size = 9 * 2**30  # as the directory will say
    with pytest.raises(FormatError, match="is refused: it unpacks to"):
        load_stereo_toy_rug(tmp_path / "set.zip")


def test_damaged_archives_give_one_sentence(tmp_path):
    path = tmp_path / "set.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.txt", text(rug(3).reshape(-1, 30)))
    data = bytearray(path.read_bytes())
    data[60:200] = bytes(140)
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"set\.zip is not a zip or tar archive that can be read"):
        load_stereo_toy_rug(path)
    path.write_bytes(b"neither")
    with pytest.raises(FormatError, match="not a folder, a zip archive or a tar archive"):
        load_stereo_toy_rug(path)
    with pytest.raises(FormatError, match="There is no folder or archive"):
        load_stereo_toy_rug(tmp_path / "nowhere")


# Downloads


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on a server of this machine, and its address."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "site"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_archive_is_fetched_once(site, tmp_path):
    pytest.importorskip("pooch")
    folder, address = site
    with zipfile.ZipFile(folder / "rug.zip", "w") as archive:
        archive.writestr("X.txt", rug_file(rug(8))["X.txt"])
    expected = hashlib.sha256((folder / "rug.zip").read_bytes()).hexdigest()
    url = f"{address}/rug.zip?version=2"
    path = fetch("toy_rug", url, known_hash=expected, cache=tmp_path / "cache")
    assert path == tmp_path / "cache" / "toy_rug.zip"
    assert len(load_stereo_toy_rug(path)) == 3
    (folder / "rug.zip").unlink()
    assert fetch("toy_rug", url, known_hash=expected, cache=tmp_path / "cache") == path


def test_another_file_than_the_known_one_is_refused(site, tmp_path):
    pytest.importorskip("pooch")
    folder, address = site
    (folder / "a.tar.gz").write_bytes(b"something else")
    with pytest.raises(DefgpaError, match=r"a\.tar\.gz could not be fetched: SHA256 hash"):
        fetch("a", f"{address}/a.tar.gz", known_hash="0" * 64, cache=tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_a_download_that_fails_says_so(site, tmp_path):
    pytest.importorskip("pooch")
    with pytest.raises(DefgpaError, match=r"nothing\.zip could not be fetched: 404"):
        fetch("a", f"{site[1]}/nothing.zip", cache=tmp_path / "cache")


def test_a_name_that_is_a_path_is_refused(tmp_path):
    with pytest.raises(DefgpaError, match="must be a word, such as 'liver'"):
        fetch("../a", "http://127.0.0.1/a.zip", cache=tmp_path)
