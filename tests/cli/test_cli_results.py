"""What a command leaves on disk: all files of one run, whatever stops it, and where to look."""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
import subprocess
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import defgpa
from defgpa import DefgpaWarning, ShapeError, estimators
from defgpa.cli._app import run as run_words
from defgpa.datasets import smooth_family
from defgpa.estimators import DeformableProblem
from defgpa.model_selection import smoothing
from support import EXACT


@pytest.fixture(scope="module")
def made(wings, tmp_path_factory):
    """A result of a fit, as it is."""
    folder = tmp_path_factory.mktemp("made") / "result"
    assert run_words(["fit", str(wings), "-o", str(folder), "--warp", "affine", "--quiet"]) == 0
    return folder


@pytest.fixture
def result(made, tmp_path):
    """A copy of it, which a test may spoil."""
    return Path(shutil.copytree(made, tmp_path / "result"))


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def names_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))


# One run, one set of files


def test_a_fit_writes_both_spaces_and_one_row_a_specimen(result):
    alignment = defgpa.load(result / "result.npz")
    for name in ("superimposed.csv", "superimposed.tps"):
        written = defgpa.read_shapes(result / name)
        np.testing.assert_allclose(written.points, alignment.superimposed, **EXACT)
        assert written.names == alignment.shapes.names
    with (result / "specimens.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == list(alignment.shapes.names)
    expected = defgpa.statistics.specimens(alignment)
    assert list(rows[0]) == [name for name in expected if name != "group"]  # nobody has one
    sizes = [float(row["centroid_size"]) for row in rows]
    np.testing.assert_allclose(sizes, expected["centroid_size"], **EXACT)
    counts = [int(row["landmarks_visible"]) for row in rows]
    assert counts == alignment.shapes.visible.sum(axis=1).tolist()


def test_the_summary_names_the_files_that_are_there_and_the_command(result, wings):
    findings = summary(result)
    assert sorted(findings["files"]) == names_in(result)
    assert findings["command"].startswith(f"defgpa fit {wings} -o ")
    assert findings["command"].endswith("--warp affine --quiet")
    assert Path(findings["folder"]).expanduser() == Path.cwd()


def command_in(page):
    """What a report says to type."""
    text = page.read_text(encoding="utf-8")
    return html.unescape(re.search(r'"Command"><code>(.*?)</code>', text, re.DOTALL)[1])


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash to paste into")
@pytest.mark.parametrize("home", ["", "my home"], ids=["elsewhere", "at home"])
def test_the_command_in_a_report_can_be_pasted_in_any_folder(
    run, wings, tmp_path, monkeypatch, home
):
    """The shell is asked where it would run which words; they are run here, to save a start."""
    place = tmp_path / "my home" / "it's here"
    place.mkdir(parents=True)
    shutil.copy(wings, place / "my wings.tps")
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(tmp_path / home if home else tmp_path / "none"))
    assert run("fit", "my wings.tps", "-o", "out", "--warp", "affine", "--report")[0] == 0
    assert run("report", "out/result.npz", "-o", "later.html")[0] == 0
    typed, later = map(command_in, (place / "out" / "report.html", place / "later.html"))
    assert typed == later
    assert (str(tmp_path) in typed) is not bool(home)
    first = (place / "out" / "reference.csv").read_bytes()
    shutil.rmtree(place / "out")
    pasted = f'defgpa() {{ printf "%s\\0" "$PWD" "$@"; }}\n{typed}\n'
    shell = subprocess.run(
        ["bash", "-ec", pasted], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True
    )
    folder, *words = shell.stdout.split("\0")[:-1]
    monkeypatch.chdir(folder)
    assert run(*words)[0] == 0
    assert (place / "out" / "reference.csv").read_bytes() == first


def test_no_file_of_another_run_stays_beside_the_new_ones(run, wings, tmp_path):
    out = tmp_path / "out"
    assert run("fit", wings, "-o", out, "--warp", "affine", "--report")[0] == 0
    (out / "notes.md").write_text("mine")
    defgpa.write_shapes(defgpa.read_shapes(wings), tmp_path / "wings.csv")
    assert run("fit", tmp_path / "wings.csv", "-o", out, "--warp", "affine")[0] == 0
    assert not (out / "report.html").exists()
    assert not (out / "aligned.tps").exists()
    assert (out / "notes.md").read_text() == "mine"
    assert names_in(out) == sorted([*summary(out)["files"], "notes.md"])


def test_shapes_of_an_earlier_run_are_removed_and_files_of_others_are_noted(run, tmp_path):
    family = smooth_family(n=5, m=20, d=3, bend=0.1, seed=4).shapes
    defgpa.write_shapes(family, tmp_path / "in", format="pts")
    out, words = tmp_path / "out", ("--warp", "affine")
    assert run("fit", tmp_path / "in", "-o", out, *words)[0] == 0
    files = sorted((tmp_path / "in").iterdir())
    code, printed, err = run("fit", *files[:4], "-o", out, *words)
    assert (code, err) == (0, "")
    assert f"{out / 'aligned'}/ (4 files)" in printed
    assert len(list((out / "aligned").iterdir())) == 4
    shutil.copy(files[4], out / "aligned")
    _, err = run.succeed("fit", *files[:4], "-o", out, *words)
    assert err.count("also holds 1 files of before") == 1


def test_an_input_is_never_what_a_new_run_clears_away(run, wings, result, tmp_path):
    """The files of the last run go, so none of them may be what this one reads."""
    before = names_in(result)
    for words in (
        ("register", result / "result.npz", wings, "-o", result),
        ("fit", result / "superimposed.tps", "-o", result),
    ):
        err = run.refuse(*words)
        assert "would overwrite the input" in " ".join(err.split())
    assert names_in(result) == before
    demo = tmp_path / "demo"
    demo.mkdir()
    shutil.copy(wings, demo / "wings.tps")
    (demo / "summary.json").write_text(json.dumps({"files": ["wings.tps"]}))
    assert run("fit", demo / "wings.tps", "-o", demo)[0] == 2
    assert (demo / "wings.tps").exists()
    (demo / "summary.json").write_text(json.dumps({"files": []}))
    assert run("fit", demo / "wings.tps", "-o", demo, "--warp", "affine")[0] == 0
    assert (demo / "wings.tps").read_bytes() == wings.read_bytes()


def test_results_go_by_default_to_a_folder_called_after_the_input(
    run, wings, made, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    out, _ = run.succeed("fit", wings, "--warp", "affine")
    assert "wings-defgpa/result.npz" in out
    assert run("register", made / "result.npz", wings)[0] == 0
    assert (tmp_path / "wings-registered" / "registered.npz").exists()
    folder = tmp_path / "several"
    points = smooth_family(n=3, m=20, d=3, seed=4).shapes
    defgpa.write_shapes(points, folder, format="pts")
    for source in ([folder], sorted(folder.iterdir()), [folder / "*.pts"]):
        shutil.rmtree("several-defgpa", ignore_errors=True)
        assert run("fit", *source, "--warp", "affine")[0] == 0
        assert (tmp_path / "several-defgpa" / "result.npz").exists()


# Notes


def test_a_note_of_all_methods_is_printed_once(run, tmp_path):
    points = smooth_family(n=8, m=30, bend=0.05, noise=0.005, seed=3).shapes.points.copy()
    points[2, :, 0] *= -1
    np.savez(tmp_path / "set.npz", points=points)
    _, _, err = run("compare", tmp_path / "set.npz", "--fold-size", 15)
    assert err.count("Mirrored against the majority of the shapes: 'set_3'") == 1


def test_notes_are_told_where_an_error_ends_the_work(capsys):
    from defgpa.cli._console import Console

    def odd_and_hopeless():
        warnings.warn(DefgpaWarning("the file is odd"), stacklevel=1)
        raise ShapeError("and cannot be aligned")

    with pytest.raises(ShapeError), Console().note_warnings():
        odd_and_hopeless()
    assert "Note: the file is odd" in capsys.readouterr().err


def test_notes_that_differ_in_their_file_only_become_one():
    from defgpa.cli._console import merge_messages

    findings = ["a/x 1.pts: is odd: 7.", "b.pts: is odd: 7.", "b.pts: is odd: 7.", "a: is odd: 8."]
    lists = ["Left out, not seen: 'a'.", "Mirrored, it seems: 'a'."]
    assert merge_messages([*findings, *lists, "Alone"]) == [
        "a/x 1.pts and 1 more: is odd: 7.",
        "a: is odd: 8.",
        *lists,
        "Alone",
    ]


# The report of a run


def test_a_report_gives_its_command_and_its_python(run, wings, made, tmp_path):
    out = tmp_path / "out"
    words = ("fit", wings, "-o", out, "--warp", "affine", "--report")
    assert run(*words)[0] == 0
    page = (out / "report.html").read_text()
    assert "<title>wings.tps: 8 specimens aligned</title>" in page
    command = " ".join(map(str, ("defgpa", *words)))
    assert command in page
    assert "defgpa.load(&#39;result.npz&#39;).shapes" in page
    assert run("report", out / "result.npz", "-o", tmp_path / "later.html")[0] == 0
    later = (tmp_path / "later.html").read_text()
    assert command in later
    (out / "summary.json").write_text("{}")
    assert run("report", out / "result.npz", "-o", tmp_path / "later.html", "--draw-all")[0] == 0
    assert f"defgpa report {out / 'result.npz'} -o" in (tmp_path / "later.html").read_text()


def test_a_report_does_not_take_the_place_of_its_result(run, made):
    err = run.refuse("report", made / "result.npz", "-o", made / "result.npz")
    assert "would overwrite the input" in err


# New specimens


def test_registered_specimens_keep_their_warps_which_apply_takes(run, wings, made, tmp_path):
    out = tmp_path / "out"
    assert run("register", made / "result.npz", wings, "-o", out)[0] == 0
    alignment, actual = defgpa.load(made / "result.npz"), defgpa.load(out / "registered.npz")
    assert actual.shapes.names == alignment.shapes.names
    np.testing.assert_allclose(actual.aligned, alignment.aligned, **EXACT)
    np.testing.assert_array_equal(actual.reference, alignment.reference)
    name, moved = actual.shapes.names[3], tmp_path / "moved.csv"
    assert run("apply", out / "registered.npz", name, wings, "-o", moved)[0] == 0
    expected = alignment.warps[3](alignment.shapes[3])
    np.testing.assert_allclose(defgpa.read_shapes(moved)[3], expected, **EXACT)
    assert sorted(summary(out)["files"]) == names_in(out)


def test_a_thousand_registered_specimens_are_summed_up(run, wings, made, tmp_path):
    shapes = defgpa.read_shapes(wings)
    many = np.concatenate([shapes.points] * 30) + np.random.default_rng(0).normal(size=(240, 43, 2))
    np.savez(tmp_path / "many.npz", points=many)
    out, _ = run.succeed(
        "register", made / "result.npz", tmp_path / "many.npz", "-o", tmp_path / "o"
    )
    assert len(out.splitlines()) < 30
    assert "RMSE_r of 240 registered specimens: median" in out
    rows = [line.split() for line in out.splitlines() if line.strip().startswith("many_")]
    findings = summary(tmp_path / "o")["rmse_reference"]
    worst = sorted(findings, key=findings.get, reverse=True)[:10]
    assert [row[0] for row in rows] == worst


def test_specimens_unlike_those_of_the_fit_are_pointed_out(run, wings, made, tmp_path):
    shapes = defgpa.read_shapes(wings)
    points = np.repeat(shapes.points[:1], 4, axis=0)
    points[1] = points[1][np.random.default_rng(0).permutation(43)]
    points[2] *= 25.4
    points[3, :, 0] *= -1
    names = ["sound", "mixed up", "in mm", "left"]
    np.savez(tmp_path / "new.npz", points=points, names=names)
    _, _, err = run("register", made / "result.npz", tmp_path / "new.npz", "-o", tmp_path / "o")
    notes = [note for note in err.split("Note: ") if note]
    assert len(notes) == 4
    assert "in another order" in notes[1]
    for name, words in zip(
        names[1:], ("far from the reference", "Other units?", "Mirrored"), strict=True
    ):
        [note] = [note for note in notes if words in note]
        assert repr(name) in note
        assert "sound" not in note
    assert notes[0].count("'") == 2
    _, _, err = run("register", made / "result.npz", wings, "-o", tmp_path / "o")
    assert err == ""


# Meshes


@pytest.fixture(scope="module")
def solid(tmp_path_factory):
    """A fit in 3-D, in RAS."""
    folder = tmp_path_factory.mktemp("solid")
    family = smooth_family(n=4, m=40, d=3, bend=0.1, seed=1).shapes
    shapes = defgpa.Shapes(family.points, metadata={"space": "RAS"})
    defgpa.write_shapes(shapes, folder / "in", format="mrk.json")
    words = ["fit", str(folder / "in"), "-o", str(folder / "out"), "-q", "--warp", "affine"]
    assert run_words(words) == 0
    return folder / "out" / "result.npz"


def mesh_at(offset=0.0, scale=1.0, space=""):
    """An OBJ file of a tetrahedron."""
    corners = scale * np.eye(4, 3) + offset
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in corners.tolist()]
    return "\n".join([f"# SPACE={space}", *lines, "f 1 2 3", "f 2 3 4", ""])


@pytest.mark.parametrize("suffix", [".ply", ".obj", ".vtk", ".vtp", ".off", ".stl"])
def test_the_space_of_a_mesh_is_kept_in_its_file(run, solid, tmp_path, suffix):
    from defgpa.io.mesh.files import read_space
    from defgpa.meshes import read_mesh

    target = tmp_path / f"moved{suffix}"
    warp = defgpa.load(solid).warps[0]
    for space, signs in (("RAS", [1, 1, 1]), ("LPS", [-1, -1, 1])):
        (tmp_path / "mesh.obj").write_text(mesh_at(space=space))
        assert run("apply", solid, 1, tmp_path / "mesh.obj", "-o", target)[2] == ""
        assert read_space(target) == "RAS"
        corners = {tuple(row) for row in read_mesh(target).vertices.round(9).tolist()}
        assert corners == {tuple(row) for row in warp(np.eye(4, 3) * signs).round(9).tolist()}


@pytest.mark.parametrize("mode", ["Ascii", "Binary", "Appended"])
@pytest.mark.parametrize("compressor", ["None", "ZLib"])
def test_the_space_of_a_vtp_file_is_a_field_as_in_3d_slicer(run, solid, tmp_path, mode, compressor):
    vtk = pytest.importorskip("vtk")
    points, space, mesh = vtk.vtkPoints(), vtk.vtkStringArray(), vtk.vtkPolyData()
    for corner in np.eye(4, 3):
        points.InsertNextPoint(corner)
    mesh.SetPoints(points)
    space.SetName("SPACE")
    space.InsertNextValue("LPS")
    mesh.GetFieldData().AddArray(space)
    writer = vtk.vtkXMLPolyDataWriter()
    writer.SetFileName(str(tmp_path / "mesh.vtp"))
    writer.SetInputData(mesh)
    getattr(writer, f"SetDataModeTo{mode}")()
    getattr(writer, f"SetCompressorTypeTo{compressor}")()
    writer.Write()
    call = ("apply", solid, 1, tmp_path / "mesh.vtp", "-o", tmp_path / "moved.vtp")
    assert run(*call)[2] == ""
    reader = vtk.vtkXMLPolyDataReader()
    reader.SetFileName(str(tmp_path / "moved.vtp"))
    reader.Update()
    moved = reader.GetOutput()
    assert moved.GetFieldData().GetAbstractArray("SPACE").GetValue(0) == "RAS"
    expected = defgpa.load(solid).warps[0](np.eye(4, 3) * [-1, -1, 1])
    actual = [moved.GetPoint(k) for k in range(4)]
    np.testing.assert_allclose(actual, expected, atol=1e-6)  # the corners were exact


def test_a_mesh_keeps_its_space_where_the_fit_has_none(run, tmp_path):
    from defgpa.io.mesh.files import read_space

    np.savez(tmp_path / "set.npz", points=smooth_family(n=4, m=40, d=3, seed=1).shapes.points)
    run("fit", tmp_path / "set.npz", "-o", tmp_path / "out", "--warp", "affine")
    for space in ("LPS", ""):
        (tmp_path / "mesh.obj").write_text(mesh_at(space=space))
        words = ("apply", tmp_path / "out" / "result.npz", 1, tmp_path / "mesh.obj")
        code, _, err = run(*words, "-o", tmp_path / "moved.ply")
        assert (code, err) == (0, "")
        assert read_space(tmp_path / "moved.ply") == (space or None)


@pytest.mark.parametrize(
    ("mesh", "direction", "words"),
    [
        (mesh_at(offset=60.0, space="RAS"), "forward", "100% of the points lie far from the land"),
        (mesh_at(scale=1e-3, space="RAS"), "forward", "tiny beside the landmarks of 'in_1'"),
        (mesh_at(offset=60.0, space="RAS"), "inverse", "far from the landmarks of the reference"),
        (mesh_at(), "forward", "does not say whether it is LPS or RAS"),
        (mesh_at(space="RAS") + "vt 0 0\n", "forward", "The texture of"),
    ],
    ids=["far", "tiny", "far back", "no space", "texture"],
)
def test_a_mesh_that_cannot_be_meant_is_pointed_out(run, solid, tmp_path, mesh, direction, words):
    (tmp_path / "mesh.obj").write_text(mesh)
    call = ("apply", solid, 1, tmp_path / "mesh.obj", "-o", tmp_path / "m.ply")
    _, err = run.succeed(*call, "--direction", direction)
    whose = defgpa.load(solid).shapes.names[0]
    assert words.replace("in_1", whose) in err
    assert err.count("Note: ") == 1


def test_texture_survives_from_obj_to_obj(run, solid, tmp_path):
    from defgpa.meshes import read_mesh

    v = mesh_at(space="LPS").split("f 1")[0]
    texture = "mtllib my.mtl\nvt 0 0.5\nvt 1 0.25\nvn 0 0 1\nusemtl skin\n"
    (tmp_path / "mesh.obj").write_text(
        f"{v}{texture}f 1/1/1 2/2/1 3/1/1 # a\nf 2//1 3//1 \\\n4//1\n"
    )
    target = tmp_path / "moved.obj"
    assert run("apply", solid, 1, tmp_path / "mesh.obj", "-o", target)[::2] == (0, "")
    moved, lines = read_mesh(target), target.read_text().splitlines()
    expected = defgpa.load(solid).warps[0](np.eye(4, 3) * [-1, -1, 1])
    np.testing.assert_allclose(moved.vertices, expected, **EXACT)
    np.testing.assert_array_equal(moved.faces, [[0, 1, 2], [1, 2, 3]])
    assert lines[0] == "# written by defgpa. SPACE=RAS"
    assert lines[5:] == [
        *("mtllib my.mtl", "vt 0 0.5", "vt 1 0.25", "usemtl skin"),
        *("f 1/1 2/2 3/1", "f 2 3 4"),
    ]
    _, _, err = run("apply", solid, 1, tmp_path / "mesh.obj", "-o", tmp_path / "x" / "m.obj")
    assert "put its materials and images beside" in err


def test_a_note_names_what_the_file_of_moved_points_cannot_hold(run, solid, tmp_path):
    (tmp_path / "mesh.obj").write_text(mesh_at())
    _, err = run.succeed("apply", solid, 1, tmp_path / "mesh.obj", "-o", tmp_path / "m.csv")
    assert err.count("Left out, as") == err.count("has no place for it: faces") == 1


def test_a_landmark_file_far_from_the_landmarks_is_pointed_out(run, wings, made, tmp_path):
    shapes = defgpa.read_shapes(wings)
    np.savez(tmp_path / "far.npz", points=shapes.points + 1e5)
    call = ("apply", made / "result.npz", 1)
    assert "lie far from" in run(*call, tmp_path / "far.npz", "-o", tmp_path / "m.csv")[2]
    assert run(*call, wings, "-o", tmp_path / "m.csv")[2] == ""


@pytest.mark.parametrize("direction", ["forward", "exact"])
def test_a_vertex_that_is_nan_stays_so_and_no_fold_is_blamed(run, solid, tmp_path, direction):
    from defgpa.meshes import Mesh, read_mesh, write_mesh

    corners = np.vstack([np.eye(3), [[np.nan, 0.0, 0.0]]])
    write_mesh(tmp_path / "mesh.ply", Mesh(corners, [[0, 1, 2]]))
    call = ("apply", solid, 1, tmp_path / "mesh.ply", "-o", tmp_path / "m.ply", "--json")
    out, _ = run.succeed(*call, "--direction", direction)
    summary = json.loads(out)
    assert (summary["points"], summary["without_image"]) == (3, 0)
    assert any("NaN, and stay so: 1." in note for note in summary["notes"])
    assert not any("fold" in note for note in summary["notes"])
    moved = read_mesh(tmp_path / "m.ply").vertices
    assert np.isnan(moved[3]).all()
    assert np.isfinite(moved[:3]).all()


@pytest.mark.parametrize(
    "option", [("--smoothing", "1e-8"), ("--theta", "1e-8")], ids=["relative", "absolute"]
)
def test_where_a_fit_folds_over_the_note_names_a_smoothing_that_does_not(run, tmp_path, option):
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, size=(40, 2)) + 0.05 * rng.normal(size=(6, 40, 2))
    np.savez(tmp_path / "set.npz", points=points)
    _, err = run.succeed("fit", tmp_path / "set.npz", *option, "-o", tmp_path / "soft")
    (note,) = [line for line in err.splitlines() if "folds over" in line]
    assert f"With {option[0]} " in note
    value = note.split(f"With {option[0]} ")[1].split()[0]
    run("fit", tmp_path / "set.npz", option[0], value, "-o", tmp_path / "stiff")
    figures = json.loads((tmp_path / "stiff" / "summary.json").read_text())["figures"]
    assert figures["foldovers"] == 0


def test_choosing_the_smoothing_and_reporting_fits_nothing_twice(wings, run, tmp_path, monkeypatch):
    fitted, folded = Counter(), Counter()
    align, predict = DeformableProblem.align, smoothing.predict_folds

    def count_fit(self, dial=None):
        fitted[id(self.cost)] += 1
        problems.append(self)
        return align(self, dial)

    def count_folds(problem, *rest):
        folded[id(problem)] += 1
        problems.append(problem)
        return predict(problem, *rest)

    problems = []  # kept, so that no number is used twice
    monkeypatch.setattr(DeformableProblem, "align", count_fit)
    monkeypatch.setattr(smoothing, "predict_folds", count_folds)
    words = ("--smoothing", "auto", "--report", "--fold-size", 15, "--quiet")
    run.succeed("fit", wings, "-o", tmp_path / "out", *words)
    assert len(fitted) == 15 + 1  # the smoothing that was chosen is fitted from its own bases
    assert len(folded) == 15
    assert max(fitted.values()) == max(folded.values()) == 1


@pytest.fixture
def displaced(tmp_path):
    """A file of shapes and their points; landmark 8 of shape 5 is in another place."""
    points = np.array(smooth_family(12, 20, 2, bend=0.05, noise=0.01, seed=2).shapes.points)
    points[4, 7] += 0.8
    defgpa.write_shapes(defgpa.Shapes(points), tmp_path / "in.tps")
    return tmp_path / "in.tps", points


def test_automatic_fit_is_robust_where_a_landmark_is_named_and_can_decline(
    run, displaced, tmp_path
):
    points = displaced[1]
    points[4, 7] -= 0.8
    defgpa.write_shapes(defgpa.Shapes(points), tmp_path / "clean.tps")

    def fit(name, *options):
        out = tmp_path / "out"
        *_, err = run("fit", str(tmp_path / name), "-o", str(out), "--fold-size", "5", *options)
        summary = json.loads((out / "summary.json").read_text())
        return summary["figures"], summary["parameters"]["estimator"], err

    figures, estimator, notes = fit("in.tps")
    assert [landmark[:2] for landmark in figures["rejected_landmarks"]] == [["shape_5", "8"]]
    assert figures["left_out"] == 1
    assert figures["visible"] == points[..., 0].size - 1
    assert "robust=True" in estimator
    assert "without 1 landmark that did not fit the others; --no-robust keeps" in notes
    figures, estimator, notes = fit("in.tps", "--no-robust")
    assert (figures["rejected_landmarks"], figures["left_out"]) == ([], 0)
    assert "robust" not in estimator
    assert "robust" not in fit("clean.tps")[1]


def test_robust_weights_are_estimated_once(run, displaced, tmp_path, monkeypatch):
    calls, estimate = [], estimators.estimate_weights
    monkeypatch.setattr(
        estimators, "estimate_weights", lambda *args: calls.append(1) or estimate(*args)
    )
    run("fit", displaced[0], "-o", tmp_path / "out", "--robust", "--fold-size", 5)
    assert calls == [1]
    figures = json.loads((tmp_path / "out" / "summary.json").read_text())["figures"]
    assert ("shape_5", "8") in [tuple(landmark[:2]) for landmark in figures["rejected_landmarks"]]


def test_comparison_and_choice_of_smoothing_leave_gross_errors_out_if_asked(
    run, displaced, tmp_path
):
    points = displaced[1]
    points[4, 7] = np.nan
    defgpa.write_shapes(defgpa.Shapes(points), tmp_path / "right.tps")

    def judge(command, name, *options):
        words = (command, tmp_path / name, "--fold-size", "5", *options)
        out, err = run.succeed(*words, "--json")
        return json.loads(out), err, run.succeed(*words)[0].splitlines()

    right, _, _ = judge("compare", "right.tps")
    table, notes, lines = judge("compare", "in.tps", "--robust")
    errors, expected = ([row["relative_cve"] for row in t["rows"]] for t in (table, right))
    np.testing.assert_allclose(errors, expected, rtol=0.02)
    assert "left out 1 landmark" in notes
    assert "methods" not in notes  # what is said of all of them is said once
    assert any(line.startswith("Next: ") and "--robust" in line for line in lines)

    right, _, _ = judge("tune", "right.tps")
    path, notes, lines = judge("tune", "in.tps", "--robust")
    assert path["best"] == right["best"]
    np.testing.assert_allclose(min(path["cve"]), min(right["cve"]), rtol=0.02)
    assert "left out 1 landmark" in notes
    assert any(line.startswith("Next: ") and "--robust" in line for line in lines)


def test_info_shows_where_the_others_have_a_landmark(run, displaced):
    file, points = displaced
    points[9] = points[9, ::-1]
    defgpa.write_shapes(defgpa.Shapes(points), file)
    suspicious = run.json("info", file)["suspicious"]
    assert suspicious["misplaced_landmarks"] == [["shape_5", "8"]]
    assert suspicious["reversed"] == ["shape_10"]
    (entry,) = suspicious["expected"]
    assert np.linalg.norm(np.subtract(entry["expected"], points[4, 7] - 0.8)) < 0.1
    shown = run("info", file)[1]
    assert "landmark 8 is at" in shown
    assert "has its landmarks in reverse order" in shown


def test_info_lists_the_worst_of_many_landmarks_and_says_how_many_there_are(run, tmp_path):
    points = np.array(smooth_family(30, 40, 2, bend=0.05, noise=0.01, seed=2).shapes.points)
    moved = [(shape, shape + 1) for shape in range(12)]
    for distance, (shape, landmark) in enumerate(moved, start=5):
        points[shape, landmark, 0] += 0.1 * distance
    points[20, [3, 30]] = points[20, [30, 3]]
    defgpa.write_shapes(defgpa.Shapes(points), tmp_path / "in.tps")
    assert len(run.json("info", tmp_path / "in.tps")["suspicious"]["misplaced_landmarks"]) == 12
    shown = run("info", tmp_path / "in.tps")[1]
    assert "landmarks 4 and 31 look exchanged" in shown
    assert shown.count("the others") == 5 + 1  # and the sentence below the table
    assert "shape_12" in shown  # the farthest
    assert "shape_1 " not in shown
    assert "14 landmarks (1.2%) in 13 of 30 shapes are not where the others" in shown


def test_shapes_with_landmarks_at_the_same_place_are_one_row_where_there_are_many(run, tmp_path):
    points = np.array(smooth_family(12, 20, 2, bend=0.05, noise=0.01, seed=2).shapes.points)
    points[:7, 3] = points[:7, 9]
    defgpa.write_shapes(defgpa.Shapes(points), tmp_path / "in.tps")
    shown = " ".join(run("info", tmp_path / "in.tps")[1].split())
    assert "7 shapes have pairs of landmarks at the same place, such as 4 and 10 of" in shown


@pytest.mark.parametrize(("method", "has_row"), [("rigid", False), ("deformable", True)])
def test_foldovers_are_results_only_of_warps_that_can_fold(
    run, displaced, tmp_path, method, has_row
):
    words = ("-o", tmp_path / "out", "--method", method, "--report")
    out, _ = run.succeed("fit", displaced[0], *words)
    assert ("where a warp folds over" in out) is has_row
    figures = json.loads((tmp_path / "out" / "summary.json").read_text())["figures"]
    assert figures["foldovers"] == (0 if has_row else None)
    page = (tmp_path / "out" / "report.html").read_text()
    assert ("Landmarks at which a warp folds" in page) is has_row
