"""``defgpa fit --method``: the method that is named, or the one that predicts best."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest

import defgpa
from defgpa.datasets import smooth_family
from defgpa.estimators import DefGPA, ElasticGPA, EuclideanGPA
from io_support import format_tps
from support import EXACT


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """Return a file of shapes that differ by noise alone."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-2, 2, size=(20, 2)) + 0.02 * rng.normal(size=(8, 20, 2))
    path = tmp_path_factory.mktemp("noise") / "noise.npz"
    np.savez(path, points=points)
    return path


def read_summary(folder):
    return json.loads((folder / "summary.json").read_text())


@pytest.mark.parametrize(
    ("words", "estimator"),
    [
        (["--method", "rigid"], EuclideanGPA(scaling=True)),
        (["--method", "affine"], DefGPA(defgpa.Affine())),
        (["--method", "deformable", "--smoothing", "0.01"], None),
        (["--method", "elastic", "--smoothing", "0.01", "--rigidity", "2"], None),
    ],
    ids=["rigid", "affine", "deformable", "elastic"],
)
def test_method_named_is_the_method_fitted(run, wings, tmp_path, words, estimator):
    if estimator is None:
        warp = defgpa.ThinPlateSpline(smoothing=0.01)
        estimator = ElasticGPA(warp, 2.0) if "elastic" in words else DefGPA(warp)
    out, _ = run.succeed("fit", wings, "-o", tmp_path, *words)
    assert f"Results of {words[1]} alignment" in out
    expected = estimator.fit(defgpa.read_shapes(wings)).alignment_
    alignment = defgpa.load(tmp_path / "result.npz")
    np.testing.assert_allclose(alignment.reference, expected.reference, **EXACT)
    assert read_summary(tmp_path)["parameters"]["method"] == words[1]


def test_fit_chooses_deformable_alignment_of_wings_and_says_why(run, wings, tmp_path):
    out, _ = run.succeed("fit", wings, "-o", tmp_path, "--fold-size", 11)
    text = " ".join(out.split())
    assert "Deformable alignment (thin-plate splines, " in text
    assert "% below that of rigid alignment" in text
    assert "To choose another: --method NAME." in text
    assert "one-standard-error rule" in text
    summary = read_summary(tmp_path)
    assert summary["parameters"]["method"] == "deformable"
    assert len(summary["comparison"]) == 8


def test_smoothing_chosen_alone_names_rigid_alignment_that_predicts_better(run, noise, tmp_path):
    _, _, notes = run("fit", noise, "-o", tmp_path / "a", "--smoothing", "auto", "--fold-size", 5)
    assert "Rigid alignment predicts left-out landmarks better" in " ".join(notes.split())
    words = ("--method", "deformable", "--smoothing", "auto", "--fold-size", 5)
    _, _, notes = run("fit", noise, "-o", tmp_path / "b", *words)
    assert "Rigid alignment" not in notes


def test_fit_chooses_rigid_alignment_of_noise(run, noise, tmp_path):
    out, _ = run.succeed("fit", noise, "-o", tmp_path)
    assert "Rigid alignment" in out
    assert defgpa.load(tmp_path / "result.npz").foldovers.sum() == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--method", "rigid", "--smoothing", "1"], "has no warps: drop --smoothing"),
        (["--method", "auto", "--warp", "tps"], "chooses the warps: drop --warp"),
        (["--method", "affine", "--warp", "rbf"], "has affine warps: drop --warp rbf"),
        (["--method", "deformable", "--rigidity", "1"], "give --method elastic"),
        (["--method", "deformable", "--warp", "affine"], "does not bend"),
        (["--theta", "1", "--rigidity", "auto"], "drop --theta"),
        (["--warp", "affine", "--rigidity", "auto"], "does not bend"),
        (["--rigidity", "1", "--proportions", "prior"], "drop --proportions"),
        (["--rigidity", "-1"], "must be a number from 0 to inf, or auto"),
        (["--rigidity", "soft"], "must be a number from 0 to inf, or auto"),
        (["--method", "stiff"], "is not one of"),
        (["--title", "Wings"], "give --report too"),
    ],
    ids=" ".join,
)
def test_contradictory_options_are_refused_before_the_work(run, wings, tmp_path, words, sentence):
    err = run.refuse("fit", wings, "-o", tmp_path / "out", *words)
    assert sentence in err
    assert not (tmp_path / "out").exists()


def test_command_that_compare_suggests_runs_with_all_reading_options(run, tmp_path, monkeypatch):
    """Without --missing and --drop the suggested fit would be of other data."""
    monkeypatch.chdir(tmp_path)
    points = smooth_family(n=8, m=14, seed=5).shapes.points.copy()
    points -= points.min() - 1.0
    points[2, 3] = points[4, 3] = -9
    points[:, :, 0] *= [[-1]] + [[1]] * 7
    file = tmp_path / "my set.npy"
    np.save(file, points)
    options = ["--missing", "-9", "--drop", "my set_2", "--mirror", "my set_1", "--layout", "nmd"]
    out, _ = run.succeed("compare", "my set.npy", *options)
    (line,) = [line for line in out.splitlines() if line.startswith("Next: ")]
    words = shlex.split(line.removeprefix("Next: "))
    assert words[:3] == ["defgpa", "fit", "my set.npy"]
    run.succeed(*words[1:], "-o", "result", "--quiet")
    fitted = defgpa.load(tmp_path / "result" / "result.npz").shapes
    assert fitted.n_shapes == 7
    assert (~fitted.visible).sum() == 2
    assert np.nanmax(fitted["my set_1"][:, 0]) > 0


def test_covariates_and_links_of_the_command_line_are_in_the_result(run, wings, tmp_path):
    names = defgpa.read_shapes(wings).names
    table = "name,sex\n" + "".join(f"{name},{'fm'[k % 2]}\n" for k, name in enumerate(names[::-1]))
    (tmp_path / "sex.csv").write_text(table)
    (tmp_path / "links.txt").write_text("1 2\n2,3\n")
    words = ("fit", wings, "-o", tmp_path / "out", "--method", "rigid")
    more = ("--data", tmp_path / "sex.csv", "--links", f"@{tmp_path / 'links.txt'}")
    assert run(*words, *more, "--report", "--title", "My wings")[0] == 0
    shapes = defgpa.load(tmp_path / "out" / "result.npz").shapes
    assert [row["sex"] for row in shapes.metadata["variables"]] == list("mfmfmfmf")
    assert shapes.links == [(0, 1), (1, 2)]
    assert "<h1>My wings</h1>" in (tmp_path / "out" / "report.html").read_text()
    assert "sex" in (tmp_path / "out" / "specimens.csv").read_text().splitlines()[0]


def test_report_takes_covariates_links_and_a_title(run, wings, tmp_path):
    shapes = defgpa.read_shapes(wings)
    run("fit", wings, "-o", tmp_path / "out", "--method", "rigid", "--quiet")
    table = "name,caste\n" + "".join(
        f"{name},{'QW'[k % 2]}\n" for k, name in enumerate(shapes.names)
    )
    (tmp_path / "caste.csv").write_text(table)
    words = ("report", tmp_path / "out" / "result.npz", "-o", tmp_path / "page.html")
    run.succeed(
        *words, "--data", tmp_path / "caste.csv", "--links", "1-2", "--title", "Bees & wasps"
    )
    page = (tmp_path / "page.html").read_text()
    assert "caste" in page
    assert "Bees &amp; wasps" in page
    assert run(*words, "--links", "1-99")[0] == 2


def test_specimens_without_a_row_are_left_out_when_asked(run, wings, tmp_path):
    names = defgpa.read_shapes(wings).names
    table = "name,sex\n" + "".join(f"{name},f\n" for name in names[:6])
    (tmp_path / "sex.csv").write_text(table)
    words = ("fit", wings, "-o", tmp_path / "out", "--method", "rigid", "--data")
    err = run.refuse(*words, tmp_path / "sex.csv")
    assert "(2 of 8)" in err
    assert "--drop-unlisted" in err
    _, err = run.succeed(*words, tmp_path / "sex.csv", "--drop-unlisted")
    assert "Left out, 2 of 8 specimens without a row" in err
    assert defgpa.load(tmp_path / "out" / "result.npz").shapes.n_shapes == 6


@pytest.mark.parametrize(
    "words",
    [
        ("test", "-f", "shape ~ sex"),
        ("disparity", "--groups", "sex"),
        ("classify", "--groups", "sex"),
    ],
)
def test_statistics_leave_out_specimens_without_a_row_when_asked(run, wings, tmp_path, words):
    names = defgpa.read_shapes(wings).names
    table = "name,sex\n" + "".join(f"{name},{'fm'[k % 2]}\n" for k, name in enumerate(names[:6]))
    (tmp_path / "sex.csv").write_text(table)
    command, *more = words
    more += ["--data", tmp_path / "sex.csv", "--drop-unlisted", "--permutations", "9"]
    out, err = run.succeed(command, wings, *more)
    assert "Left out, 2 of 8 specimens without a row" in err
    assert "6 specimens" in out
    run("fit", wings, "-o", tmp_path / "out", "--method", "rigid", "--quiet")
    err = run.refuse(command, tmp_path / "out" / "result.npz", *more)
    assert "a saved result keeps its specimens" in err


def test_results_folder_is_refused_as_input(run, wings, tmp_path):
    run("fit", wings, "-o", tmp_path / "out", "--method", "rigid", "--quiet")
    for command in ("info", "fit"):
        err = run.refuse(command, tmp_path / "out")
        assert "holds the results of a fit, not specimens" in err
        assert "wings.tps" in err
    assert run("info", tmp_path / "out" / "superimposed.csv")[0] == 0


def test_many_mirrored_specimens_are_mirrored_at_once(run, tmp_path):
    points = smooth_family(n=12, m=20, bend=0.05, noise=0.01, seed=3).shapes.points.copy()
    expected = points.copy()
    points[[1, 4, 6, 9], :, 0] *= -1
    np.savez(tmp_path / "set.npz", points=points)
    _, out, _ = run("info", tmp_path / "set.npz")
    assert "--mirror auto" in out
    target = tmp_path / "mirrored.npz"
    _, err = run.succeed("convert", tmp_path / "set.npz", target, "--mirror", "auto")
    assert "Mirrored, 4 of 12 specimens" in err
    np.testing.assert_allclose(defgpa.read_shapes(target).points, expected, **EXACT)


def test_names_are_listed_in_a_file(run, wings, tmp_path):
    names = defgpa.read_shapes(wings).names
    (tmp_path / "names.txt").write_text(f"{names[0]}\n\n{names[3]}\n")
    target = tmp_path / "few.csv"
    run.succeed("convert", wings, target, "--drop", f"@{tmp_path / 'names.txt'}")
    assert defgpa.read_shapes(target).names == (*names[1:3], *names[4:])
    err = run.refuse("convert", wings, target, "--drop", "@nowhere.txt")
    assert "the list nowhere.txt cannot be read" in err


def test_corrections_are_typed_or_read_from_a_log(run, wings, tmp_path):
    from defgpa.edits import Edit, write_edits

    shapes = defgpa.read_shapes(wings)
    swapped, partial = shapes.names[2], shapes.names[5]
    write_edits(tmp_path / "edits.json", [Edit("exclude specimen", shapes.names[0])])
    target = tmp_path / "out.csv"
    corrections = ("--swap", f"{swapped}:4,5", "--set-missing", f"{partial}:3,7")
    _, err = run.succeed("convert", wings, target, *corrections, "--edits", tmp_path / "edits.json")
    assert "4 corrections applied" in err
    corrected = defgpa.read_shapes(target)
    assert shapes.names[0] not in corrected.names
    np.testing.assert_array_equal(corrected[swapped][[3, 4]], shapes[swapped][[4, 3]])
    assert np.isnan(corrected[partial][[2, 6]]).all()
    for words in (("--swap", "nobody:4,5"), ("--swap", f"{swapped}:4"), ("--set-missing", swapped)):
        assert run("convert", wings, target, *words)[0] == 2


def test_fit_writes_its_corrections_as_a_log_that_repeats_them(run, wings, tmp_path):
    from defgpa.edits import read_edits

    names = defgpa.read_shapes(wings).names
    defgpa.write_shapes(defgpa.read_shapes(wings).mirror([names[3]]), tmp_path / "odd.tps")
    words = ["--drop", names[0], "--mirror", "auto", "--swap", f"{names[2]}:4,5"]
    words += ["--set-missing", f"{names[5]}:3"]
    rigid = ("--method", "rigid", "--no-robust", "-q")
    assert run("fit", tmp_path / "odd.tps", "-o", tmp_path / "a", *words, *rigid)[0] == 0
    log = tmp_path / "a" / "edits.json"
    assert [edit.action for edit in read_edits(log)] == [
        *("swap", "set missing", "exclude specimen", "reflect")
    ]
    again = ("fit", tmp_path / "odd.tps", "-o", tmp_path / "b", "--edits", log, *rigid)
    assert run(*again)[0] == 0
    first, second = (tmp_path / folder / "aligned.csv" for folder in "ab")
    assert first.read_bytes() == second.read_bytes()
    assert run("fit", tmp_path / "odd.tps", "-o", tmp_path / "a", *rigid)[0] == 0
    assert not log.exists()


def test_few_frames_with_too_few_landmarks_are_left_out_with_a_note(run, tmp_path):
    points = smooth_family(n=30, m=12, noise=0.02, seed=1).shapes.points.copy()
    points[4, 2:] = np.nan
    np.savez(tmp_path / "video.npz", points=points)
    _, err = run.succeed("fit", tmp_path / "video.npz", "-o", tmp_path / "o", "--method", "rigid")
    assert "Left out, too few landmarks (3 landmarks are needed in 2-D): 'video_5'" in err
    points[5:12, 2:] = np.nan
    np.savez(tmp_path / "video.npz", points=points)
    words = ("fit", tmp_path / "video.npz", "-o", tmp_path / "o", "--method", "rigid")
    err = run.refuse(*words)
    assert "8 of 30 specimens have too few landmarks" in err
    assert "--drop-incomplete" in err
    assert run(*words, "--drop-incomplete")[0] == 0


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_image_goes_through_a_warp_with_its_landmarks(run, tmp_path, scale):
    """A dark square around a landmark is around its aligned place afterwards."""
    imageio = pytest.importorskip("imageio.v3")
    points = np.random.default_rng(0).uniform(20, 80, size=(20, 2))
    moved = [points, points + np.array([3.0, 2.0]), points * 1.02]
    images = [f"{name}.png" for name in "abc"]
    text = format_tps(moved, IMAGE=images, ID="abc", SCALE=[scale] * 3)
    (tmp_path / "set.tps").write_text(text)
    words = ("fit", tmp_path / "set.tps", "-o", tmp_path / "out", "--method", "affine")
    assert run(*words, "--pose", "first")[0] == 0
    alignment = defgpa.load(tmp_path / "out" / "result.npz")
    image = np.full((100, 110, 3), 200, dtype=np.uint8)
    column, row = np.round([moved[1][4, 0], 100 - moved[1][4, 1]]).astype(int)
    image[row - 2 : row + 3, column - 2 : column + 3] = 0
    imageio.imwrite(tmp_path / "b.png", image)
    words = ("apply", tmp_path / "out" / "result.npz", "b", tmp_path / "b.png")
    out, err = run.succeed(*words, "-o", tmp_path / "moved.png", "--json")
    assert not err
    placed = json.loads(out)
    pixels = imageio.imread(tmp_path / "moved.png")
    dark = np.argwhere((pixels[..., 0] < 100) & (pixels[..., -1] > 0))[:, ::-1].mean(axis=0)
    place = np.array(placed["origin"]) + dark * placed["step"]
    np.testing.assert_allclose(place, alignment.aligned[1, 4], atol=1.0 * scale)
    assert run(*words, "-o", tmp_path / "moved.tps")[0] == 2
    _, _, err = run(*words, "-o", tmp_path / "moved.png", "--rows", "down")
    assert not err  # these landmarks lie in the image either way


def test_smoothing_and_rigidity_chosen_together_are_explained(run, noise, tmp_path):
    out, _ = run.succeed("fit", noise, "-o", tmp_path, "--rigidity", "auto", "--fold-size", "10")
    said = " ".join(out.split())
    chosen = read_summary(tmp_path)["figures"]["chosen_rigidity"]
    assert re.search(rf"A smoothing of \S+ and a rigidity of {float(chosen):g} were chosen", said)
