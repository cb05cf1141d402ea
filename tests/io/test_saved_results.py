"""A saved result comes back bit for bit, or a sentence says why not."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from dataclasses import dataclass

import numpy as np
import pytest

import defgpa
from support import smooth_family

ESTIMATORS = {
    "affine": defgpa.DefGPA(defgpa.Affine()),
    "spline": defgpa.DefGPA(defgpa.ThinPlateSpline(4)),
    "spline theta": defgpa.DefGPA(defgpa.ThinPlateSpline((4, 3), theta=0.5)),
    "radial": defgpa.DefGPA(defgpa.RadialBasis()),
    "free form": defgpa.DefGPA(defgpa.FreeForm()),
    "polynomial": defgpa.DefGPA(defgpa.Polynomial()),
    "rigid": defgpa.EuclideanGPA(),
    "similarity": defgpa.EuclideanGPA(scaling=True),
    "datum affine": defgpa.AffineGPA(),
    "elastic": defgpa.ElasticGPA(rigidity=np.inf),
}


def points(missing=0.1):
    return smooth_family(seed=1, n=5, m=40, d=2, missing=missing)


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_every_built_in_warp_comes_back_bit_for_bit(estimator, tmp_path):
    before = estimator.fit(points()).alignment_.posed_like(points()[0])
    defgpa.save(before, tmp_path / "result.npz")
    after = defgpa.load(tmp_path / "result.npz")
    np.testing.assert_array_equal(after.reference, before.reference)
    np.testing.assert_array_equal(after.aligned, before.aligned)
    np.testing.assert_array_equal(after.eigenvalues, before.eigenvalues)
    assert after.rmse_datum == before.rmse_datum
    assert after.shapes == before.shapes
    assert after.findings == before.findings
    np.testing.assert_array_equal(after.foldovers, before.foldovers)
    for field in dataclasses.fields(before.diagnostics):
        saved, loaded = (getattr(a.diagnostics, field.name) for a in (before, after))
        np.testing.assert_array_equal(loaded, saved)
    new_shape = smooth_family(seed=2, n=2, m=40, d=2)[0]
    np.testing.assert_array_equal(
        after.register(new_shape)(new_shape), before.register(new_shape)(new_shape)
    )


def test_names_labels_faces_and_what_a_file_knew_are_kept(tmp_path):
    shapes = defgpa.Shapes(
        points(0.0),
        names=["ä", "<b>", "c", "d", "e"],
        landmarks=[f"L{j}" for j in range(40)],
        faces=[[0, 1, 2]],
        metadata={"groups": ("x", "y", "x", "y", "x"), "space": "LPS"},
    )
    defgpa.save(defgpa.DefGPA().fit(shapes).alignment_, tmp_path / "r.npz")
    back = defgpa.load(tmp_path / "r.npz").shapes
    assert back == shapes
    assert back.faces.tolist() == [[0, 1, 2]]
    assert back.metadata["groups"] == ("x", "y", "x", "y", "x")


def test_the_header_tells_where_a_result_comes_from(tmp_path):
    defgpa.save(defgpa.DefGPA().fit(points()).alignment_, tmp_path / "r.npz")
    header = defgpa.io.read_header(tmp_path / "r.npz")
    assert header["provenance"]["package"] == f"defgpa {defgpa.__version__}"
    assert len(header["provenance"]["sha256_of_points"]) == 64


def test_a_newer_file_is_refused_with_the_remedy(tmp_path):
    text = np.frombuffer(json.dumps({"format": "defgpa-alignment", "version": 99}).encode(), "u1")
    np.savez(tmp_path / "new.npz", header=text)
    with pytest.raises(defgpa.FormatError, match=r"newer defgpa .*99.*[Uu]pgrade"):
        defgpa.load(tmp_path / "new.npz")


def test_damaged_and_foreign_files_are_refused_with_a_sentence(tmp_path):
    path = tmp_path / "r.npz"
    defgpa.save(defgpa.DefGPA(defgpa.Affine()).fit(points()).alignment_, path)
    complete = path.read_bytes()
    for cut in (0, 1, 10, len(complete) // 2, len(complete) - 30):
        path.write_bytes(complete[:cut])
        with pytest.raises(defgpa.FormatError, match=r"r\.npz"):
            defgpa.load(path)
    np.savez(tmp_path / "other.npz", points=np.zeros(3))
    with pytest.raises(defgpa.FormatError, match="no header"):
        defgpa.load(tmp_path / "other.npz")
    with pytest.raises(defgpa.FormatError, match="no such file"):
        defgpa.load(tmp_path / "absent.npz")
    with pytest.raises(
        defgpa.FormatError, match=r"is a folder: name the result in it, .*result\.npz"
    ):
        defgpa.load(tmp_path)


def with_header(path, change, **arrays):
    """The same file with its header changed, or other arrays."""
    with np.load(path) as archive:
        stored = {key: archive[key] for key in archive.files}
    header = json.loads(stored.pop("header").tobytes())
    change(header["content"])
    text = np.frombuffer(json.dumps(header).encode(), "u1")
    np.savez(path, header=text, **{**stored, **arrays})


@pytest.mark.parametrize("key", ["reference", "eigenvalues", "turn", "points", "weights", "bases"])
@pytest.mark.parametrize("value", [None, 3, "x", [], {}, {"array": "nothing"}, {"list": [1]}])
def test_a_header_that_makes_no_sense_is_refused(tmp_path, key, value):
    path = tmp_path / "r.npz"
    defgpa.save(defgpa.DefGPA(defgpa.Affine()).fit(points()).alignment_, path)
    with_header(path, lambda content: content.update({key: value}))
    with pytest.raises(defgpa.FormatError, match=r"r\.npz"):
        defgpa.load(path)


def test_a_reference_of_another_size_than_the_shapes_is_refused(tmp_path):
    path = tmp_path / "r.npz"
    alignment = defgpa.DefGPA(defgpa.Affine()).fit(points()).alignment_
    defgpa.save(alignment, path)
    with_header(path, lambda content: content.update(reference={"array": "other"}), other=np.eye(2))
    with pytest.raises(
        defgpa.FormatError, match=r"'reference' should be .* numbers, and is \(2, 2"
    ):
        defgpa.load(path)


def test_what_is_no_archive_is_not_blamed_on_pickle(tmp_path):
    (tmp_path / "wings.tps").write_text("LM=1\n1 2\n")
    with pytest.raises(defgpa.FormatError, match=r"not a result saved by defgpa \(such as"):
        defgpa.load(tmp_path / "wings.tps")


@dataclass(frozen=True)
class Rows:
    """A basis of one's own: affine, with a ridge."""

    ridge: float

    def features(self, points):
        return np.column_stack([points, np.ones(len(points))])

    def penalty(self):
        return self.ridge * np.diag([1.0, 1.0, 0.0])


@dataclass(frozen=True)
class OwnWarp:
    """A model of one's own."""

    ridge: float = 1e-3

    def basis(self, points):
        return Rows(self.ridge)


def test_a_warp_of_ones_own_is_saved_once_it_is_told_how(tmp_path):
    alignment = defgpa.DefGPA(OwnWarp()).fit(points()).alignment_
    with pytest.raises(defgpa.DefgpaError, match="register_saved"):
        defgpa.save(alignment, tmp_path / "own.npz")
    assert not list(tmp_path.iterdir())
    defgpa.register_saved(OwnWarp, name="test.OwnWarp")
    defgpa.register_saved(Rows, name="test.Rows")
    defgpa.save(alignment, tmp_path / "own.npz")
    np.testing.assert_array_equal(defgpa.load(tmp_path / "own.npz").aligned, alignment.aligned)


def test_only_an_alignment_is_saved(tmp_path):
    with pytest.raises(defgpa.DefgpaError, match="alignment_"):
        defgpa.save(defgpa.DefGPA().fit(points()), tmp_path / "r.npz")


@pytest.fixture
def named_in_latin(tmp_path):
    """A folder of files whose names are no UTF-8."""
    rows = points(missing=0)[:4]
    for k, row in enumerate(rows):
        text = "\n".join(f"{x!r} {y!r}" for x, y in row.tolist())
        name = os.fsdecode(b"caf\xe9%d.pts" % k)
        (tmp_path / name).write_text(f"version: 1\nn_points: {len(row)}\n{{\n{text}\n}}\n")
    return tmp_path


def test_files_whose_names_are_not_utf8_read_and_save_in_every_format(named_in_latin, tmp_path):
    shapes = defgpa.read_shapes(named_in_latin)
    assert shapes.names == ("café0", "café1", "café2", "café3")
    alignment = defgpa.DefGPA(defgpa.Affine()).fit(shapes).alignment_
    defgpa.save(alignment, tmp_path / "r.npz")
    again = defgpa.load(tmp_path / "r.npz").shapes
    assert again.names == shapes.names
    assert again.metadata["sources"] == shapes.metadata["sources"]  # the true names
    assert os.fsencode(again.metadata["sources"][0]).endswith(b"caf\xe90.pts")
    for suffix in (".csv", ".npz", ".tps", ".mat"):
        defgpa.write_shapes(shapes, tmp_path / f"all{suffix}")
        assert defgpa.read_shapes(tmp_path / f"all{suffix}").names == shapes.names


def test_a_fit_of_files_whose_names_are_not_utf8_writes_everything(run, named_in_latin, tmp_path):
    out = tmp_path / os.fsdecode(b"r\xe9sultat")
    run.succeed("fit", named_in_latin, "-o", out, "--report")
    assert {p.name for p in out.iterdir()} >= {"result.npz", "report.html", "summary.json"}
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["input"] == [str(named_in_latin)]
    assert "café0" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", ["ENOSPC", "EROFS", "EACCES"])
def test_a_disk_that_refuses_is_one_sentence_and_the_old_result_stays(tmp_path, monkeypatch, code):
    alignment = defgpa.DefGPA(defgpa.Affine()).fit(points()).alignment_
    defgpa.save(alignment, tmp_path / "r.npz")
    before = (tmp_path / "r.npz").read_bytes()
    number = getattr(errno, code)

    def refused(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(np, "savez_compressed", refused)
    with pytest.raises(
        defgpa.FormatError, match=rf"r\.npz cannot be written: {os.strerror(number)}\.$"
    ):
        defgpa.save(alignment, tmp_path / "r.npz")
    assert (tmp_path / "r.npz").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["r.npz"]


def test_a_result_in_a_folder_that_is_a_file_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    alignment = defgpa.DefGPA(defgpa.Affine()).fit(points()).alignment_
    with pytest.raises(defgpa.FormatError, match=r"r\.npz cannot be written: "):
        defgpa.save(alignment, tmp_path / "file" / "r.npz")


def test_an_error_about_a_damaged_archive_is_short(tmp_path):
    defgpa.save(defgpa.DefGPA(defgpa.Affine()).align(points()), tmp_path / "r.npz")
    damaged = bytearray((tmp_path / "r.npz").read_bytes())
    damaged[26:28] = (2000).to_bytes(2, "little")  # the length of the first name
    (tmp_path / "r.npz").write_bytes(damaged)
    with pytest.raises(defgpa.FormatError, match=r"or damaged\. Make it again") as findings:
        defgpa.load(tmp_path / "r.npz")
    assert len(str(findings.value)) < len(str(tmp_path)) + 200
