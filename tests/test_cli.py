"""The command line: from a file to a result without writing code."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import defgpa
from defgpa.cli import main
from defgpa.datasets import load_wings, smooth_family
from support import EXACT


@pytest.fixture(scope="module")
def wings(tmp_path_factory):
    path = tmp_path_factory.mktemp("wings") / "wings.tps"
    few = load_wings().take(range(8))
    # the format holds no landmark labels
    defgpa.write_shapes(defgpa.Shapes.specimens(few.points, names=few.names), path)
    return path


@pytest.fixture(scope="module")
def result(wings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("result")
    with pytest.raises(SystemExit) as stop:
        main(["fit", str(wings), "-o", str(folder), "--quiet"])
    assert stop.value.code == 0
    return folder


@pytest.fixture
def run(capsys):
    def call(*words):
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        said = capsys.readouterr()
        return stop.value.code, said.out, said.err

    return call


def test_help_names_every_command_with_an_example(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in ("info", "fit", "compare", "tune", "register", "apply", "convert", "demo"):
        assert command in out
        code, text, _ = run(command, "--help")
        assert code == 0
        assert "Example: defgpa" in text


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from defgpa.cli._app import app, _run; _run(['--help']); "
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'matplotlib', 'plotly') "
        "if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip().endswith("[]")


def test_info_tells_what_is_in_a_file(run, wings):
    code, out, _ = run("info", wings)
    assert code == 0
    assert "43" in out
    assert "missing landmarks" in out
    code, out, _ = run("info", wings, "--json")
    found = json.loads(out)
    assert (found["shapes"], found["landmarks"], found["dimension"]) == (8, 43, 2)
    assert found["format"] == "tps"
    assert found["alignable"] is True


def test_info_names_mirrored_exchanged_and_far_specimens(run, tmp_path):
    points = smooth_family(n=10, m=30, bend=0.05, noise=0.005, seed=3).shapes.points.copy()
    points[2, :, 0] *= -1
    points[4, [3, 9]] = points[4, [9, 3]]
    points[6] *= 1000
    file = tmp_path / "set.npz"
    np.savez(file, points=points)
    found = json.loads(run("info", file, "--json")[1])["suspicious"]
    assert found["mirrored"] == ["set_3"]
    assert ["set_5", "4", "10"] in found["exchanged_landmarks"]
    assert found["other_size"] == ["set_7"]


def test_fit_writes_everything_and_the_library_reads_it_back(result, wings):
    alignment = defgpa.load(result / "result.npz")
    model = defgpa.DefGPA().fit(defgpa.read_shapes(wings))
    np.testing.assert_allclose(alignment.reference, model.reference_, **EXACT)
    summary = json.loads((result / "summary.json").read_text())
    np.testing.assert_allclose(
        summary["figures"]["rmse_datum"], model.alignment_.rmse_datum, **EXACT
    )
    for name in ("aligned.csv", "aligned.tps"):
        written = defgpa.read_shapes(result / name)
        np.testing.assert_allclose(written.points, alignment.aligned, **EXACT)
        assert written.names == alignment.shapes.names
    reference = defgpa.read_shapes(result / "reference.csv")
    np.testing.assert_allclose(reference.points[0], alignment.reference, **EXACT)


def test_fit_chooses_the_smoothing_and_poses_like_the_first_shape(run, wings, tmp_path):
    words = ("fit", wings, "-o", tmp_path, "--smoothing", "auto", "--pose", "first")
    code, out, _ = run(*words, "--fold-size", 11, "--points-per-axis", 4, "--json")
    assert code == 0
    summary = json.loads(out)
    path = summary["smoothing_path"]
    assert path["chosen"] == path["smoothing"][int(np.argmin(path["cve"]))]
    assert f"smoothing={path['chosen']!r}"[:20] in summary["parameters"]["warp"]
    alignment = defgpa.load(tmp_path / "result.npz")
    shape = alignment.shapes[0]
    seen = ~np.isnan(shape[:, 0])
    off = np.linalg.norm(alignment.reference[seen].mean(0) - shape[seen].mean(0))
    assert off < 1e-6 * np.ptp(shape[seen])


def test_compare_prints_the_papers_table_and_writes_it(run, wings, tmp_path):
    code, out, _ = run("compare", wings, "--fold-size", 15, "-o", tmp_path / "table.md")
    assert code == 0
    for method in ("EUC_d", "AFF_d", "AFF_r", "TPS_r(3)", "TPS_r(5)", "TPS_r(7)"):
        assert method in out
    assert "| TPS_r(7) |" in (tmp_path / "table.md").read_text()


def test_tune_prints_the_path_and_draws_it(run, wings, tmp_path):
    code, out, _ = run(
        "tune", wings, "--points-per-axis", 3, "--fold-size", 15, "--plot", tmp_path / "path.png"
    )
    assert code == 0
    assert "← best" in out
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")


def test_register_brings_new_specimens_onto_the_reference(run, result, wings, tmp_path):
    code, out, _ = run("register", result / "result.npz", wings, "-o", tmp_path, "--json")
    assert code == 0
    alignment = defgpa.load(result / "result.npz")
    moved = defgpa.read_shapes(tmp_path / "registered.csv")
    np.testing.assert_allclose(moved.points, alignment.aligned, **EXACT)
    assert len(json.loads(out)["rmse_reference"]) == 8


def test_apply_moves_points_there_and_back(run, result, wings, tmp_path):
    alignment = defgpa.load(result / "result.npz")
    name = alignment.shapes.names[1]
    there, back = tmp_path / "there.csv", tmp_path / "back.csv"
    assert run("apply", result / "result.npz", name, wings, "-o", there)[0] == 0
    moved = defgpa.read_shapes(there)
    np.testing.assert_allclose(moved[1], alignment.aligned[1], **EXACT)
    words = ("apply", result / "result.npz", 2, there, "-o", back, "--direction", "exact")
    assert run(*words)[0] == 0
    returned = defgpa.read_shapes(back)[1]
    np.testing.assert_allclose(returned, alignment.shapes[1], rtol=1e-6, atol=1e-6)


def test_apply_keeps_the_faces_of_a_mesh(run, tmp_path):
    family = smooth_family(n=4, m=40, d=3, bend=0.1, seed=1)
    np.savez(tmp_path / "set.npz", points=family.shapes.points)
    assert run("fit", tmp_path / "set.npz", "-o", tmp_path / "out", "--warp", "affine")[0] == 0
    off = "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
    (tmp_path / "triangle.off").write_text(off)
    words = ("apply", tmp_path / "out" / "result.npz", 1, tmp_path / "triangle.off")
    assert run(*words, "-o", tmp_path / "moved.ply")[0] == 0
    moved = defgpa.read_shapes(tmp_path / "moved.ply")
    warp = defgpa.load(tmp_path / "out" / "result.npz").warps[0]
    np.testing.assert_allclose(moved[0], warp(np.eye(3)[[2, 0, 1]] * [[0], [1], [1]]), **EXACT)
    assert moved.faces.tolist() == [[0, 1, 2]]


def test_convert_keeps_every_digit(run, wings, tmp_path):
    assert run("convert", wings, tmp_path / "wings.csv")[0] == 0
    before, after = defgpa.read_shapes(wings), defgpa.read_shapes(tmp_path / "wings.csv")
    np.testing.assert_array_equal(after.points, before.points)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["info", "nothing.tps"], "no file or folder"),
        (["fit", "WINGS", "-o", "OUT", "--smoothing", "much"], "must be a number"),
        (["fit", "WINGS", "-o", "OUT", "--smoothing", "1", "--theta", "1"], "give one"),
        (["fit", "WINGS", "-o", "OUT", "--warp", "affine", "--smoothing", "1"], "does not bend"),
        (["fit", "WINGS", "-o", "OUT", "--points-per-axis", "five"], "whole number"),
        (["fit", "WINGS", "-o", "OUT", "--pose", "nobody"], "no shape called"),
        (["fit", "WINGS"], "Missing option"),
        (["apply", "WINGS", "x", "WINGS", "-o", "OUT"], "not a result saved by defgpa"),
        (["nonsense"], "No such command"),
        (["info", "WINGS", "--missing", "often"], "marked, negative or a number"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_bad_input_gets_one_sentence_and_code_two(run, wings, tmp_path, words, sentence):
    places = {"WINGS": str(wings), "OUT": str(tmp_path / "out")}
    code, _, err = run(*[places.get(word, word) for word in words])
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err


def test_undigitised_specimens_are_left_out_with_a_note(run, tmp_path):
    points = smooth_family(n=5, m=20, seed=2).shapes.points.copy()
    points[3] = np.nan
    np.savez(tmp_path / "set.npz", points=points)
    code, _, err = run("fit", tmp_path / "set.npz", "-o", tmp_path / "out")
    assert code == 0
    assert "'set_4'" in err
    assert defgpa.load(tmp_path / "out" / "result.npz").shapes.n_shapes == 4


def test_completion_scripts_are_printed(run):
    for shell in ("bash", "zsh", "fish"):
        code, out, _ = run("completion", shell)
        assert code == 0
        assert "_DEFGPA_COMPLETE" in out


def test_ctrl_c_while_writing_leaves_no_half_written_file(run, wings, tmp_path, monkeypatch):
    def interrupted(stream, **arrays):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    code, _, err = run("fit", wings, "-o", tmp_path / "out")
    assert code == 1
    assert "Nothing was left half-written" in err
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert left == {"reference.csv", "reference.tps", "aligned.csv", "aligned.tps"}


def test_the_demo_leaves_a_report_and_figures(run, tmp_path):
    code, out, _ = run("demo", "--output", tmp_path / "demo")
    assert code == 0
    assert str(tmp_path / "demo" / "report.html") in out
    page = (tmp_path / "demo" / "report.html").read_text()
    summary = json.loads((tmp_path / "demo" / "summary.json").read_text())
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    assert summary["figures"]["cve"] < summary["comparison"][2]["cve"]
