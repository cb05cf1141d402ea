"""The command line: from a file to a result without writing code."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import click
import numpy as np
import pytest

import defgpa
from defgpa import DefGPA, ThinPlateSpline, cross_validate
from defgpa.cli import main
from defgpa.cli._app import run as run_words
from defgpa.cli._compare import show_comparison
from defgpa.cli._console import Console
from defgpa.datasets import load_wings, smooth_family
from defgpa.model_selection import select_method
from defgpa.model_selection.comparison import Comparison, MethodFigures
from support import EXACT


@pytest.fixture(scope="module")
def result(wings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("result")
    assert run_words(["fit", str(wings), "-o", str(folder), "--smoothing", "1e-3", "-q"]) == 0
    return folder


def test_help_names_every_command_with_an_example(run):
    out, _ = run.succeed("--help")
    reading = ("info", "fit", "compare", "tune", "register", "apply", "convert", "demo")
    for command in (*reading, "test", "symmetry", "slide"):
        assert command in out
        text, _ = run.succeed(command, "--help")
        assert "Example: defgpa" in text


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from defgpa.cli._app import app, run; run(['--help']); "
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'matplotlib', 'plotly') "
        "if m in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip().endswith("[]")


def test_a_reader_that_leaves_does_not_keep_results_from_being_written(wings, tmp_path):
    """As ``head`` does: what is printed is lost, what is saved is whole."""
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [sys.executable, "-m", "defgpa", "pca", str(wings), "-o", str(tmp_path / "pca")],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    assert (process.returncode, process.stderr) == (0, "")
    assert (tmp_path / "pca/variances.csv").is_file()
    assert (tmp_path / "pca/pca.json").is_file()


def test_info_tells_what_is_in_a_file(run, wings):
    out, _ = run.succeed("info", wings)
    assert "43" in out
    assert "missing landmarks" in out
    summary = run.json("info", wings)
    assert (summary["shapes"], summary["landmarks"], summary["dimension"]) == (8, 43, 2)
    assert summary["format"] == "tps"
    assert summary["alignable"] is True


def test_info_names_mirrored_exchanged_and_far_specimens(run, tmp_path):
    points = smooth_family(n=10, m=30, bend=0.05, noise=0.005, seed=3).shapes.points.copy()
    points[2, :, 0] *= -1
    points[4, [3, 9]] = points[4, [9, 3]]
    points[6] *= 1000
    file = tmp_path / "set.npz"
    np.savez(file, points=points)
    summary = run.json("info", file)["suspicious"]
    assert summary["mirrored"] == ["set_3"]
    assert ["set_5", "4", "10"] in summary["exchanged_landmarks"]
    assert summary["other_size"] == ["set_7"]


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
    summary = run.json(*words, "--fold-size", 11, "--points-per-axis", 4)
    path = summary["smoothing_path"]
    assert path["chosen"] in path["smoothing"]
    assert path["chosen"] >= path["smoothing"][int(np.argmin(path["cve"]))]
    assert summary["figures"]["chosen_smoothing"] == path["chosen"]
    assert f"smoothing={path['chosen']!r}"[:20] in summary["parameters"]["warp"]
    alignment = defgpa.load(tmp_path / "result.npz")
    shape = alignment.shapes[0]
    visible = ~np.isnan(shape[:, 0])
    off = np.linalg.norm(alignment.reference[visible].mean(0) - shape[visible].mean(0))
    assert off < 1e-6 * np.ptp(shape[visible])


def test_compare_prints_the_papers_table_by_rank_and_writes_it(run, wings, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out, _ = run.succeed("compare", wings, "--fold-size", 15, "-o", tmp_path / "table.md")
    for method in ("EUC_d", "EUC_d(scaling)", "AFF_d", "AFF_r", "TPS_r(3)", "TPS_r(5)", "ELA(5)"):
        assert method in out
    written = (tmp_path / "table.md").read_text()
    assert "| TPS_r(3) |" in written
    (best,) = re.findall(r"▸1 thin-plate spline \(\d\) +(\S+)", out)
    message = " ".join(out.split())
    assert f"{best} predicts best, with an error" in message
    assert f"Next: defgpa fit {wings} --method deformable --points-per-axis" in message
    assert f"{best} predicts best, with an error" in written
    assert f"| **{best}** |" in written
    table, _, _ = out.partition("Next:")
    assert max(map(len, table.splitlines())) <= 80
    ranks = [int(rank) for rank in re.findall(r"^[▸ ](\d) ", table, flags=re.MULTILINE)]
    assert ranks == list(range(1, 9))
    assert "rigid, scaled" in table
    assert "units of the coordinates" in " ".join(table.split())


def test_compare_tells_machines_all_figures(run, wings):
    summary = run.json("compare", wings, "--fold-size", 15)
    assert summary["ranking"][0] == summary["verdict"]["best"]
    assert summary["verdict"]["probability"] < 0.05
    rows = {row["name"]: row for row in summary["rows"]}
    for name in ("rmse_reference", "cve"):
        row = rows["TPS_r(5)"]
        assert row[f"relative_{name}"] == pytest.approx(row[name] / row["size"])


def test_compare_published_is_the_papers_six_methods_with_its_settings(run, wings):
    out, _ = run.succeed("compare", wings, "--fold-size", 15, "--published", "--theta", 10)
    names = [re.split("  +", line)[1] for line in out.splitlines()[2:8]]
    assert sorted(names) == ["AFF_d", "AFF_r", "EUC_d", "TPS_r(3)", "TPS_r(5)", "TPS_r(7)"]
    assert "--theta 10 --proportions prior --report" in out
    estimator = DefGPA(ThinPlateSpline(5, theta=10.0), proportions="prior")
    expected = cross_validate(estimator, defgpa.read_shapes(wings), 15, refit=True)
    row = next(line for line in out.splitlines() if "TPS_r(5)" in line)
    assert float(re.split("  +", row)[3]) == pytest.approx(expected.error, rel=1e-3)


def test_theta_belongs_to_the_published_methods(run, wings):
    err = run.refuse("compare", wings, "--theta", 10)
    assert "--published" in err


@pytest.mark.parametrize(
    ("n", "m", "why"), [(1, 20, "2 shapes"), (5, 2, "at least 3"), (5, 3, "at least 3")]
)
def test_compare_says_why_nothing_can_be_compared(run, tmp_path, n, m, why):
    np.savez(tmp_path / "set.npz", points=np.random.default_rng(0).normal(size=(n, m, 2)))
    err = run.refuse("compare", tmp_path / "set.npz")
    assert why in err


def test_tune_prints_the_path_and_draws_it(run, wings, tmp_path):
    out, _ = run.succeed(
        "tune", wings, "--points-per-axis", 3, "--fold-size", 15, "--plot", tmp_path / "path.png"
    )
    assert "← chosen" in out
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")


def test_register_brings_new_specimens_onto_the_reference(run, result, wings, tmp_path):
    out, _ = run.succeed("register", result / "result.npz", wings, "-o", tmp_path, "--json")
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
        (["apply", "WINGS", "x", "WINGS"], "Missing option"),
        (["apply", "WINGS", "x", "WINGS", "-o", "OUT"], "not a result saved by defgpa"),
        (["nonsense"], "No such command"),
        (["disparity", "WINGS"], "Missing option '--groups'"),
        (["disparity", "WINGS", "--permutations", "many"], "'many' is not a whole number"),
        (["info", "WINGS", "--missing", "often"], "marked, negative or a number"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_bad_input_gets_one_sentence_and_code_two(run, wings, tmp_path, words, sentence):
    places = {"WINGS": str(wings), "OUT": str(tmp_path / "out")}
    err = run.refuse(*[places.get(word, word) for word in words])
    assert sentence in err
    assert "Traceback" not in err


def test_undigitised_specimens_are_left_out_with_a_note(run, tmp_path):
    points = smooth_family(n=5, m=20, seed=2).shapes.points.copy()
    points[3] = np.nan
    np.savez(tmp_path / "set.npz", points=points)
    _, err = run.succeed("fit", tmp_path / "set.npz", "-o", tmp_path / "out")
    assert "'set_4'" in err
    assert defgpa.load(tmp_path / "out" / "result.npz").shapes.n_shapes == 4


def test_completion_scripts_are_printed(run):
    for shell in ("bash", "zsh", "fish"):
        out, _ = run.succeed("completion", shell)
        assert "_DEFGPA_COMPLETE" in out


def test_ctrl_c_while_writing_leaves_no_half_written_file(run, wings, tmp_path, monkeypatch):
    def interrupted(stream, **arrays):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    code, _, err = run("fit", wings, "-o", tmp_path / "out")
    assert code == 1
    assert "Stopped. Nothing was written." in err
    assert not list(tmp_path.iterdir())


def test_the_demo_leaves_a_report_and_figures(run, tmp_path):
    out, _ = run.succeed("demo", "--output", tmp_path / "demo")
    assert str(tmp_path / "demo" / "report.html") in out
    page = (tmp_path / "demo" / "report.html").read_text()
    summary = json.loads((tmp_path / "demo" / "summary.json").read_text())
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    assert summary["figures"]["cve"] < summary["comparison"][2]["cve"]
    wings = defgpa.read_shapes(tmp_path / "demo" / "wings.tps")
    np.testing.assert_array_equal(wings.points, load_wings().points)
    chosen = select_method(wings)  # as fit does with this file
    assert summary["figures"]["cve"] == pytest.approx(chosen.cross_validation.error)
    assert chosen.path.explain_choice() in " ".join(out.split())


# Files of all kinds in, results of the same kind out


def skulls(n=5, m=20, names="skull {} é"):
    """Three-dimensional shapes with names and labels that need care."""
    points = 100 * smooth_family(n=n, m=m, d=3, bend=0.1, noise=0.01, seed=4).shapes.points
    return defgpa.Shapes.specimens(
        points,
        names=[names.format(k) for k in range(n)],
        landmarks=[f"lm-{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"[:m]],
        metadata={"space": "RAS"},
    )


ONE_FILE_EACH = ("mrk.json", "fcsv", "pts", "csv-points", "ply", "obj")
ALL_IN_ONE = {"nts": ".nts", "csv-long": ".csv", "npz": ".npz", "mat": ".mat"}


@pytest.fixture(scope="module")
def folder_of_markups(tmp_path_factory):
    folder = tmp_path_factory.mktemp("markups")
    defgpa.write_shapes(skulls(), folder, format="mrk.json")
    return folder


@pytest.fixture(scope="module")
def markup_result(folder_of_markups, tmp_path_factory):
    folder = tmp_path_factory.mktemp("markup_result")
    words = ["fit", str(folder_of_markups), "-o", str(folder), "-q", "--warp", "affine"]
    assert run_words(words) == 0
    return folder / "result.npz"


@pytest.mark.parametrize("format_", [*ONE_FILE_EACH, *ALL_IN_ONE])
def test_aligned_shapes_in_the_format_of_the_input_read_back(run, tmp_path, format_):
    shapes = skulls(names="skull_{}")
    source = tmp_path / ("in" + ALL_IN_ONE.get(format_, ""))
    defgpa.write_shapes(shapes, source, format=format_)
    out = tmp_path / "out"
    assert run("fit", source, "-o", out, "--warp", "affine")[0] == 0
    alignment = defgpa.load(out / "result.npz")
    item = "aligned_long.csv" if format_ == "csv-long" else "aligned" + ALL_IN_ONE.get(format_, "")
    for place in (out / "aligned.csv", out / item):
        again = defgpa.read_shapes(place)
        assert again.names == alignment.shapes.names
        np.testing.assert_allclose(again.points, alignment.aligned, **EXACT)


def test_results_that_the_format_of_the_input_cannot_hold_are_tables_alone(run, tmp_path):
    """New specimens without some landmarks, in OBJ, which cannot say so."""
    shapes = skulls(names="skull_{}")
    defgpa.write_shapes(defgpa.Shapes(shapes.points), tmp_path / "in", format="obj")
    assert run("fit", tmp_path / "in", "-o", tmp_path / "out", "--warp", "affine")[0] == 0
    few = defgpa.Shapes.specimens(shapes.points[:1, :15])
    defgpa.write_shapes(few, tmp_path / "new.obj")
    words = ("register", tmp_path / "out" / "result.npz", tmp_path / "new.obj", "-o", tmp_path)
    _, err = run.succeed(*words)
    assert "OBJ has no way to say so" in err
    assert (tmp_path / "registered.csv").exists()


def test_new_specimens_are_matched_by_label_in_any_order(
    run, folder_of_markups, markup_result, tmp_path
):
    shapes = skulls()
    order = np.random.default_rng(1).permutation(20)[:14]
    new = defgpa.Shapes.specimens(
        shapes.points[:2, order],
        names=["one", "two"],
        landmarks=[shapes.landmarks[j] for j in order],
        metadata={"space": "RAS"},
    )
    defgpa.write_shapes(new, tmp_path / "new", format="mrk.json")
    out, _ = run.succeed("register", markup_result, tmp_path / "new", "-o", tmp_path, "--json")
    moved = defgpa.read_shapes(tmp_path / "registered.csv")
    alignment = defgpa.load(markup_result)
    assert moved.landmarks == alignment.shapes.landmarks
    for k, name in enumerate(moved.names):
        visible = np.sort(order)
        partly = np.full((20, 3), np.nan)
        partly[visible] = shapes.points[k, visible]
        np.testing.assert_allclose(
            moved[name][visible], alignment.register(partly)(shapes.points[k, visible]), **EXACT
        )
    assert np.isnan(moved.points[0]).all(axis=1).sum() == 6
    assert "so missing: landmark" in json.loads(out)["notes"][0]


def test_points_in_lps_go_through_a_warp_in_ras(run, folder_of_markups, markup_result, tmp_path):
    """The same anatomical points give the same image, whichever system their file states."""
    shapes = skulls().take([0])
    flipped = shapes.points * [-1, -1, 1]
    for name, points, space in (("ras", shapes.points, "RAS"), ("lps", flipped, "LPS")):
        item = defgpa.Shapes.specimens(
            points, names=[name], landmarks=shapes.landmarks, metadata={"space": space}
        )
        defgpa.write_shapes(item, tmp_path / f"{name}.mrk.json")
        header = f"comment 3D Slicer output. SPACE={space}"
        defgpa.write_shapes(item, tmp_path / f"{name}.ply")
        page = (tmp_path / f"{name}.ply").read_bytes()
        at = page.index(b"\n", page.index(b"format")) + 1
        (tmp_path / f"{name}.ply").write_bytes(page[:at] + header.encode() + b"\n" + page[at:])
    for suffix in (".mrk.json", ".ply"):
        moved = []
        for name in ("ras", "lps"):
            source, target = tmp_path / f"{name}{suffix}", tmp_path / f"moved_{name}{suffix}"
            assert run("apply", markup_result, 1, source, "-o", target)[0] == 0
            moved.append(defgpa.read_shapes(target).points)
        np.testing.assert_allclose(moved[0], moved[1], **EXACT)
        np.testing.assert_allclose(moved[0][0], defgpa.load(markup_result).aligned[0], **EXACT)


def test_new_specimens_in_lps_are_brought_to_the_space_of_the_fit(run, markup_result, tmp_path):
    shapes = skulls().take([1])
    item = defgpa.Shapes.specimens(
        shapes.points * [-1, -1, 1],
        names=["new"],
        landmarks=shapes.landmarks,
        metadata={"space": "LPS"},
    )
    defgpa.write_shapes(item, tmp_path / "new.mrk.json")
    assert run("register", markup_result, tmp_path / "new.mrk.json", "-o", tmp_path)[0] == 0
    moved = defgpa.read_shapes(tmp_path / "registered")
    assert moved.metadata["space"] == "RAS"
    np.testing.assert_allclose(moved[0], defgpa.load(markup_result).aligned[1], **EXACT)


def relabelled(shapes, labels):
    return defgpa.Shapes.specimens(shapes.points[:, : len(labels)], landmarks=labels)


@pytest.mark.parametrize(
    ("labels", "code", "sentence"),
    [
        ([f"{k}" for k in range(1, 21)], 0, "matched by their order"),
        ([f"{k}" for k in range(1, 16)], 2, "15 landmarks in the new shapes and 20"),
        ([f"LM-{c}" for c in "abcdefghijklmnopqrst"], 2, "has no landmark 'LM-a'"),
    ],
)
def test_labels_that_do_not_match_are_told(run, markup_result, tmp_path, labels, code, sentence):
    defgpa.write_shapes(relabelled(skulls().take([0]), labels), tmp_path / "new.csv")
    words = ("register", markup_result, tmp_path / "new.csv", "-o", tmp_path / "out")
    stopped, _, err = run(*words)
    assert stopped == code
    assert sentence in err


def test_lists_of_slicer_are_matched_by_number_whatever_their_names(run, tmp_path):
    shapes = skulls()
    fitted = relabelled(shapes, [f"F-{k}" for k in range(1, 21)])
    defgpa.write_shapes(fitted, tmp_path / "in.csv")
    assert run("fit", tmp_path / "in.csv", "-o", tmp_path / "out", "--warp", "affine")[0] == 0
    new = relabelled(shapes.take([2]).without([4]), [f"new_{k}" for k in range(1, 21) if k != 5])
    defgpa.write_shapes(new, tmp_path / "new.csv")
    words = ("register", tmp_path / "out" / "result.npz", tmp_path / "new.csv", "-o", tmp_path)
    assert run(*words)[0] == 0
    moved = defgpa.read_shapes(tmp_path / "registered.csv")
    assert np.flatnonzero(~moved.visible[0]).tolist() == [4]


def test_a_specimen_that_cannot_be_registered_is_named(run, markup_result, tmp_path):
    shapes = skulls(names="new {}").take([0, 1])
    points = shapes.points.copy()
    points[1, 3:] = np.nan
    defgpa.write_shapes(shapes.with_points(points), tmp_path / "new.npz")
    words = ("register", markup_result, tmp_path / "new.npz", "-o", tmp_path / "out")
    err = run.refuse(*words)
    assert "'new 1' cannot be registered. The shape has 3 visible landmarks" in err


# What people do by mistake


def test_a_place_for_results_that_cannot_be_is_refused_before_the_work(run, wings, tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        err = run.refuse("fit", wings, "-o", place)
        assert "is a file, not a folder" in err
    err = run.refuse("tune", wings, "--plot", tmp_path / "path.docx")
    assert ".png" in err
    err = run.refuse("compare", wings, "-o", tmp_path / "file" / "table.md")
    assert (tmp_path / "file").read_text() == "mine"


def test_the_option_whose_place_is_not_writable_is_named(run, wings, tmp_path, monkeypatch):
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK and real(path, mode))
    for words in (
        ("fit", wings, "--output", tmp_path),
        ("tune", wings, "--plot", tmp_path / "p.png"),
    ):
        err = run.refuse(*words)
        assert f"Invalid value for {words[2]}: Nothing can be written to" in err


def test_results_never_take_the_place_of_the_input(run, wings, result, tmp_path):
    before = wings.read_bytes()
    source = tmp_path / "aligned.tps"
    source.write_bytes(before)
    for words in (
        ("fit", source, "-o", tmp_path),
        ("convert", source, source),
        ("apply", result / "result.npz", 1, source, "-o", source),
    ):
        err = run.refuse(*words)
        assert "would overwrite the input" in " ".join(err.split())
    assert source.read_bytes() == before


def test_a_full_disk_is_a_failure_and_not_bad_input(run, wings, tmp_path, monkeypatch):
    import errno

    import defgpa.io.atomic as atomic

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.Path, "write_text", full)
    code, _, err = run("convert", wings, tmp_path / "out.csv")
    assert code == 1
    assert "No space left on device" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["convert", "WINGS", "OUT.pts"], "Give a folder and --to NAME"),
        (["convert", "WINGS", "OUT.docx"], "name the format (--to NAME)"),
        (["info", "ODD"], "(--lenient takes what there is.)"),
        (["info", "ARRAY"], "Give --layout nmd or --layout mdn."),
        (["info", "RESULT"], "not a landmark file but a result"),
        (["apply", "RESULT", "99", "WINGS", "-o", "OUT"], "no shape number 99"),
        (["apply", "RESULT", "0", "WINGS", "-o", "OUT"], "no shape number 0"),
        (["fit", "WINGS", "-o", "OUT", "--jobs", "0"], "got 0"),
        (["info", "WINGS", "--format", "bad"], "'bad' is not one of"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_remedies_are_in_the_words_of_the_command_line(
    run, wings, result, tmp_path, words, sentence
):
    from scipy.io import savemat

    (tmp_path / "odd.tps").write_text("LM=3\n1 2\n3 4\nID=a\n")
    savemat(tmp_path / "array.mat", {"A": np.zeros((10, 2, 3))})
    places = {
        "WINGS": wings,
        "ODD": tmp_path / "odd.tps",
        "ARRAY": tmp_path / "array.mat",
        "RESULT": result / "result.npz",
        "OUT": tmp_path / "out",
    }
    err = run.refuse(*[places.get(w, w.replace("OUT", str(tmp_path / "o"))) for w in words])
    assert sentence in err


def test_a_code_for_missing_is_suggested_and_then_heeded(run, tmp_path):
    points = smooth_family(n=6, m=12, seed=5).shapes.points.copy()
    points -= points.min()
    points[2, 3] = points[4, 3] = -1
    np.save(tmp_path / "set.npy", points)
    _, err = run.succeed("info", tmp_path / "set.npy")
    assert "--missing -1" in err
    out, _ = run.succeed("info", tmp_path / "set.npy", "--missing", "-1", "--json")
    assert json.loads(out)["missing"] == 2
    assert not json.loads(out)["notes"]


def test_other_units_and_folds_are_noted_by_fit(run, wings, tmp_path):
    points = smooth_family(n=6, m=30, seed=5).shapes.points.copy()
    points[3] *= 1000
    np.savez(tmp_path / "set.npz", points=points)
    _, _, err = run("fit", tmp_path / "set.npz", "-o", tmp_path / "out", "--warp", "affine")
    assert "'set_4'. Other units?" in err
    _, _, err = run("fit", wings, "-o", tmp_path / "out", "--smoothing", "0")
    assert "folds over itself at" in err
    assert "--smoothing" in err


def test_info_leaves_out_what_fit_leaves_out(run, tmp_path):
    points = smooth_family(n=5, m=20, seed=2).shapes.points.copy()
    points[3] = np.nan
    points[:, 7] = np.nan
    np.savez(tmp_path / "set.npz", points=points)
    summary = run.json("info", tmp_path / "set.npz")
    assert summary["alignable"] is True
    assert any("'set_4'" in note for note in summary["notes"])
    assert any("landmark '8'" in note for note in summary["notes"])


# What it looks like


def test_tables_keep_to_the_width_of_the_terminal(run, tmp_path, monkeypatch):
    points = smooth_family(n=6, m=200, seed=2).shapes.points.copy()
    points[:, 50:90] = np.where(np.arange(6)[:, None, None] % 2, np.nan, points[:, 50:90])
    points[2] *= 50
    names = [f"A very long name of a specimen in the museum, number {k:06d}" for k in range(6)]
    np.savez(tmp_path / "set.npz", points=points, names=names)
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        out, _ = run.succeed("info", tmp_path / "set.npz")
        assert max(map(len, out.splitlines())) <= columns
        assert "um, number 000003" in out
        assert "·" in out
        assert "times the usual size: other" in out
    assert run.json("info", tmp_path / "set.npz")["suspicious"]["other_size"]


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["words", "json"])
@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_output_fits_the_encoding_of_the_terminal(encoding, more, wings, tmp_path, monkeypatch):
    """Windows pipes are not in UTF-8, and have no blocks."""
    shapes = defgpa.read_shapes(wings)
    named = defgpa.Shapes.specimens(shapes.points, names=[f"翅 {k}" for k in range(8)])
    defgpa.write_shapes(named, tmp_path / "set.npz")
    out, err = io.BytesIO(), io.BytesIO()
    # streams as an interpreter opens them for a pipe: what does not fit is an error
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding, write_through=True))
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(err, encoding, write_through=True))
    with pytest.raises(SystemExit) as stop:
        main(["info", str(tmp_path / "set.npz"), *more])
    assert stop.value.code == 0
    assert not err.getvalue()
    message = out.getvalue().decode(encoding)
    assert json.loads(message)["landmarks"] == 43 if more else "43" in message


def test_every_command_speaks_json_or_not_at_all(run, wings, result, tmp_path):
    commands = [
        ("info", wings),
        ("fit", wings, "-o", tmp_path / "fit"),
        ("compare", wings, "--fold-size", 15),
        ("tune", wings, "--fold-size", 15, "--points-per-axis", 3),
        ("register", result / "result.npz", wings, "-o", tmp_path / "new"),
        ("apply", result / "result.npz", 1, wings, "-o", tmp_path / "moved.csv"),
        ("convert", wings, tmp_path / "wings.nts"),
    ]
    for words in commands:
        out, err = run.succeed(*words, "--json")
        summary = json.loads(out)["notes"]
        assert err == "".join(f"Note: {note}\n" for note in summary)
        assert run(*words, "--quiet") == (0, "", "")


def test_completion_offers_files_formats_and_warps():
    from click.shell_completion import ShellComplete

    from defgpa.cli._app import app

    complete = ShellComplete(app, {}, "defgpa", "_DEFGPA_COMPLETE")
    offered = {item.value for item in complete.get_completions([], "co")}
    assert offered == {"compare", "complete", "convert", "covary", "completion"}
    for command in ("info", "fit", "convert", "compare", "tune"):
        assert [item.type for item in complete.get_completions([command], "wi")] == ["file"]
    offered = complete.get_completions(["fit", "--format"], "mr")
    assert [item.value for item in offered] == ["mrk.json"]


def test_mistakes_that_spoil_a_fit_are_noted_with_it(run, wings, tmp_path):
    """One exchanged pair in one shape can give the reference other proportions."""
    shapes = defgpa.read_shapes(wings)
    points = shapes.points.copy()
    points[6, [24, 33]] = points[6, [33, 24]]
    points[2] = points[3]
    np.savez(tmp_path / "set.npz", points=points)
    commands = (
        ("fit", tmp_path / "set.npz", "-o", tmp_path / "out", "--warp", "affine"),
        ("compare", tmp_path / "set.npz", "--fold-size", 15),
        ("tune", tmp_path / "set.npz", "--fold-size", 15, "--points-per-axis", 3),
    )
    for words in commands:
        _, err = run.succeed(*words)
        notes = " ".join(err.replace("'", "").split())
        assert re.search("set_7: landmarks 25 and 34|Landmarks 25 and 34 of shape set_7", notes)
        assert re.search("set_4:? has the very coordinates of set_3", notes)


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["fot", "WINGS"], "'fit'"),
        (["fit", "WINGS", "--smothing", "1"], "'--smoothing'"),
        (["fit", "WINGS", "--method", "rigit"], "'rigid'"),
        (["info", "WINGZ"], "'WINGS'"),
    ],
)
def test_the_nearest_name_is_suggested_for_a_typo(run, wings, words, nearest):
    def place(text):
        return text.replace("WINGZ", f"{wings}x").replace("WINGS", str(wings))

    err = run.refuse(*map(place, words))
    assert err.rstrip().endswith(f"Did you mean {place(nearest)}?")


def test_the_table_of_methods_fits_in_80_columns(capsys):
    """However long the numbers are."""
    figures = MethodFigures("EUC_d(scaling)", 1.234e-05, 1.234e-05, 1.234e-05, 1.234, 0.1)
    rows = [replace(figures, name=name) for name in ("EUC_d(scaling)", "TPS_r(7)", "AFF_d")]
    show_comparison(Console(), Comparison(tuple(rows), 1))
    table = capsys.readouterr().out.split("CVE:")[0]
    assert "thin-plate spline (7)" in table
    assert max(map(len, table.splitlines())) <= 80


def test_notes_are_broken_at_the_width_of_a_terminal_only(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    text = "A sentence that is a good deal longer than forty columns, so that it has lines."
    for is_terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda shown=is_terminal: shown, raising=False)
        Console().note(text)
        lines = click.unstyle(capsys.readouterr().err).splitlines()
        assert " ".join(lines) == f"Note: {text}"
        assert (max(map(len, lines)) <= 40) is is_terminal


def test_work_of_unknown_length_is_shown_at_a_terminal_only(monkeypatch, capsys):
    for is_terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda shown=is_terminal: shown, raising=False)
        with Console().show_activity("Writing the report"):
            pass
        assert ("Writing the report …" in capsys.readouterr().err) is is_terminal
    with Console(quiet=True).show_activity("Writing the report"):
        assert not capsys.readouterr().err
