"""Exports: what other programs open gives the same numbers back."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess

import numpy as np
import pytest

import defgpa
from defgpa import Affine, DefGPA, ShapeError, ShapePCA, Shapes
from defgpa.exports import build_component_meshes, export, write_component_meshes
from defgpa.meshes import Mesh, read_mesh
from defgpa.statistics import centroid_sizes, tangent_space
from support import EXACT, shared_points, smooth_family

NAMES = ["1", "2", 'O\'Hara, "x"', "é", "5", "6"]


def fitted(points, warp=None, **known):
    return DefGPA(warp or Affine()).fit(Shapes(points, **known)).alignment_


@pytest.fixture(scope="module")
def alignment():
    return fitted(smooth_family(seed=51, d=3, m=20), names=NAMES)


@pytest.fixture(scope="module")
def partial():
    points = smooth_family(seed=51, d=3, m=20)
    points[2, 4] = np.nan
    return fitted(points, names=NAMES)


def rows(path, between=","):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter=between))


def numbers(table, skip=1):
    return np.array([[float(cell) for cell in row[skip:]] for row in table])


def test_the_folder_of_slicermorph_has_its_files_and_heads(alignment, tmp_path):
    files = export(alignment, tmp_path / "gpa", to="slicermorph")
    assert [path.name for path in files] == [
        "outputData.csv", "meanShape.csv", "eigenvector.csv", "eigenvalues.csv", "pcScores.csv",
        "analysis.json",
    ]  # fmt: skip
    actual = {path.name: rows(path) for path in files[:5]}
    assert actual["outputData.csv"][0][:5] == [
        "Sample_name",
        "proc_dist",
        "centroid",
        "LM 1_X",
        "LM 1_Y",
    ]
    assert [row[0] for row in actual["outputData.csv"][1:]] == NAMES
    assert actual["meanShape.csv"][0] == ["", "X", "Y", "Z"]
    assert actual["meanShape.csv"][1][0] == "LM 1"
    assert actual["eigenvector.csv"][0][:2] == ["", "PC 1"]
    assert [row[0] for row in actual["eigenvector.csv"][1:4]] == ["LM 1_X", "LM 1_Y", "LM 1_Z"]
    assert actual["eigenvalues.csv"][0][0] == "PC 1"
    assert actual["pcScores.csv"][0][:2] == ["Sample_name", "PC 1"]
    log = json.loads(files[5].read_text(encoding="utf-8"))["GPALog"][0]
    assert (log["NumberLM"], log["Files"]) == (20, NAMES)
    assert all((tmp_path / "gpa" / log[key]).exists() for key in ("MeanShape", "Eigenvectors"))


def test_the_numbers_of_slicermorph_fit_together(alignment, tmp_path):
    """Scores are (coordinates − mean) · vectors, eigenvalues their variances over n."""
    files = {path.name: rows(path) for path in export(alignment, tmp_path, to="slicermorph")[:5]}
    data = numbers(files["outputData.csv"][1:])
    mean = numbers(files["meanShape.csv"][1:]).ravel()
    vectors = numbers(files["eigenvector.csv"][1:])
    scores = numbers(files["pcScores.csv"][1:])
    values = numbers(files["eigenvalues.csv"])[:, 0]
    np.testing.assert_allclose(data[:, 2:], tangent_space(alignment.shapes).reshape(6, -1), **EXACT)
    np.testing.assert_allclose((data[:, 2:] - mean) @ vectors, scores, **EXACT)
    np.testing.assert_allclose(values, scores.var(axis=0), rtol=1e-9)
    np.testing.assert_allclose(data[:, 1], centroid_sizes(alignment.shapes), **EXACT)
    np.testing.assert_allclose(data[:, 0], np.linalg.norm(data[:, 2:] - mean, axis=1), **EXACT)


def test_what_had_to_be_estimated_is_listed(partial, tmp_path):
    for to in ("slicermorph", "morphoj"):
        files = export(partial, tmp_path / to, to=to)
        assert files[-1].name == "estimated.csv"
        table = rows(files[-1])
        assert table[0] == ["id", "landmark", "uncertainty", "far"]
        assert table[1][:2] == [NAMES[2], "5"]
        assert float(table[1][2]) > 0
        assert len(table) == 2


def test_2d_shapes_do_not_go_to_slicermorph(tmp_path):
    with pytest.raises(ShapeError, match=r"3-D.*2-D.*to='r'"):
        export(fitted(smooth_family(seed=52)), tmp_path, to="slicermorph")


def test_an_unknown_program_is_refused_with_the_known_ones(alignment, tmp_path):
    with pytest.raises(ValueError, match=r"'slicermorph', 'r', 'morphoj'.*'excel'"):
        export(alignment, tmp_path, to="excel")


def test_arrays_of_r_come_back_with_their_names(partial, tmp_path):
    rdata = pytest.importorskip("rdata")
    export(partial, tmp_path, to="r")
    for name in ("superimposed", "back_projected", "aligned"):
        actual = rdata.read_rds(tmp_path / f"{name}.rds")
        assert (tmp_path / f"{name}.rds").read_bytes()[4:8] == bytes(4)  # no time: same bytes
        expected = getattr(partial, name).transpose(1, 2, 0)
        np.testing.assert_array_equal(np.asarray(actual), expected)
        assert [list(map(str, coord.values)) for coord in actual.coords.values()] == [
            list(partial.shapes.landmarks),
            ["X", "Y", "Z"],
            NAMES,
        ]


def test_tables_for_arrayspecs_are_in_its_order(partial, tmp_path):
    export(partial, tmp_path, to="r")
    table = rows(tmp_path / "superimposed.csv")
    assert table[0][:5] == ["id", "x1", "y1", "z1", "x2"]
    assert [row[0] for row in table[1:]] == NAMES
    assert table[3][13:16] == ["NA", "NA", "NA"]
    back = defgpa.read_shapes(tmp_path / "superimposed.csv")
    np.testing.assert_array_equal(back.points, partial.superimposed)


def test_morphoj_reads_tabs_and_so_do_we(alignment, tmp_path):
    files = export(alignment, tmp_path, to="morphoj")
    assert [path.name for path in files] == ["morphoj.txt", "classifiers.txt"]
    table = rows(files[0], "\t")
    assert table[0][:4] == ["id", "x1", "y1", "z1"]
    np.testing.assert_array_equal(numbers(table[1:]).reshape(6, 20, 3), alignment.shapes.points)


def said_by_r(code, folder):
    """What R prints when it runs this code in a folder."""
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed here: its own reading and writing is not tested")
    pytest.importorskip("rdata")
    return subprocess.run(
        ["Rscript", "--vanilla", "-e", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "LC_ALL": "C.UTF-8"},
    ).stdout


def test_r_itself_reads_the_arrays_and_the_tables(partial, tmp_path):
    export(partial, tmp_path, to="r")
    code = """
    x <- readRDS("superimposed.rds")
    y <- as.matrix(read.csv("superimposed.csv", row.names = 1))
    # what geomorph's arrayspecs(y, p, k) does
    z <- aperm(array(t(y), dim = c(3, 20, 6)), c(2, 1, 3))
    s <- read.csv("specimens.csv")
    same <- identical(unname(x[, , 1]), unname(z[, , 1]))
    cat(dim(x), "|", same, "|", sum(is.na(x)), sum(is.na(z)), "|")
    cat(sprintf("%.17g", x[7, 2, 4]), "|", dimnames(x)[[3]][4], "|")
    cat(ncol(s), nrow(s), s$landmarks_visible[3])
    """
    answers = said_by_r(code, tmp_path).split("|")
    assert answers[0].split() == ["20", "3", "6"]
    assert answers[1].strip() == "TRUE"
    assert answers[2].split() == ["3", "3"]
    assert float(answers[3]) == partial.superimposed[3, 6, 1]
    assert answers[4].strip() == "é"
    assert answers[5].split() == ["10", "6", "19"]


def test_what_r_itself_wrote_is_read_with_its_factors_and_links(tmp_path):
    code = """
    land <- array(1:72 / 7, c(12, 2, 3), list(NULL, c("X", "Y"), c("s1", "s2", "é")))
    land[3, , 2] <- NA
    species <- factor(c("b", NA, "a"))
    links <- rbind(c(1, 2), c(2, 12))
    plethodon <- list(land = land, links = links, species = species, age = c(3L, 2L, 1L))
    save(plethodon, file = "list.rda")
    more <- data.frame(site = c("x", "y", "x"), size = c(1.5, NA, 3))
    saveRDS(list(coords = land, more = more), "frame.rds", compress = "xz")
    """
    said_by_r(code, tmp_path)
    expected = np.arange(1, 73).reshape(3, 2, 12).transpose(0, 2, 1) / 7
    expected[1, 2] = np.nan
    listed, framed = (defgpa.read_shapes(tmp_path / name) for name in ("list.rda", "frame.rds"))
    for actual in (listed, framed):
        np.testing.assert_array_equal(actual.points, expected)
        assert actual.names == ("s1", "s2", "é")
    assert listed.metadata["variables"] == (
        {"species": "b", "age": "3"},
        {"species": "", "age": "2"},
        {"species": "a", "age": "1"},
    )
    assert listed.metadata["links"] == ((0, 1), (1, 11))
    assert framed.metadata["variables"][1] == {"site": "y", "size": ""}


def test_meshes_along_a_component_are_the_shapes_there_in_the_place_of_the_reference(alignment):
    pca = ShapePCA().fit(alignment)
    meshes = build_component_meshes(alignment, components=[1, 3], deviations=(-1.5, 0.0))
    assert list(meshes) == ["PC1_-1.5SD", "PC1_+0SD", "PC3_-1.5SD", "PC3_+0SD"]
    vertices, S = meshes["PC1_-1.5SD"].vertices, alignment.reference
    ratio = np.linalg.norm(vertices - vertices.mean(axis=0)) / np.linalg.norm(S - S.mean(axis=0))
    assert ratio == pytest.approx(1.0, abs=0.02)
    expected = pca.shape_at({1: -1.5})
    lengths = np.linalg.norm(vertices[:, None] - vertices, axis=2)
    wanted = np.linalg.norm(expected[:, None] - expected, axis=2)
    factor = lengths.max() / wanted.max()
    np.testing.assert_allclose(lengths, wanted * factor, **EXACT)
    np.testing.assert_allclose(meshes["PC1_+0SD"].vertices, meshes["PC3_+0SD"].vertices, **EXACT)


def test_a_mesh_follows_the_landmarks_it_carries(alignment):
    S = alignment.reference
    mesh = Mesh(np.vstack([S, S[:3].mean(axis=0)]), [[0, 1, 20], [1, 2, 20]])
    moved = build_component_meshes(alignment, mesh=mesh, components=[2], deviations=[2.0])[
        "PC2_+2SD"
    ]
    plain = build_component_meshes(alignment, components=[2], deviations=[2.0])["PC2_+2SD"]
    np.testing.assert_allclose(moved.vertices[:20], plain.vertices, atol=1e-8)
    np.testing.assert_array_equal(moved.faces, mesh.faces)


def test_meshes_are_written_and_read_back(alignment, tmp_path):
    files = write_component_meshes(alignment, tmp_path / "meshes", components=[1])
    assert [path.name for path in files] == ["PC1_-2SD.ply", "PC1_+2SD.ply"]
    expected = build_component_meshes(alignment, components=[1])["PC1_+2SD"].vertices
    np.testing.assert_allclose(read_mesh(files[1]).vertices, expected, rtol=1e-6)


def test_2d_shapes_have_no_meshes():
    with pytest.raises(ShapeError, match="3-D"):
        build_component_meshes(fitted(smooth_family(seed=52)))


# The command line


@pytest.mark.parametrize("to", ["slicermorph", "r", "morphoj", "meshes"])
def test_a_saved_result_is_exported_with_advice_what_to_do_next(to, partial, run, tmp_path):
    defgpa.save(partial, tmp_path / "result.npz")
    out, _ = run.succeed("export", tmp_path / "result.npz", "-o", tmp_path / to, "--to", to)
    assert {"slicermorph": "Slicer", "r": "readRDS", "morphoj": "MorphoJ", "meshes": "viewer"}[
        to
    ] in out
    assert len(list((tmp_path / to).iterdir())) >= 3


def test_a_mesh_goes_with_meshes_only(partial, run, tmp_path):
    defgpa.save(partial, tmp_path / "result.npz")
    err = run.refuse(
        "export", tmp_path / "result.npz", "-o", tmp_path, "--to", "r", "--mesh", "x.ply"
    )
    assert "--to meshes" in err


def test_files_are_completed_and_the_estimates_are_marked(run, tmp_path):
    points = shared_points("plethodon2d").copy()
    truth = points[3, 2].copy()
    points[3, 2] = np.nan
    defgpa.write_shapes(Shapes(points), tmp_path / "pleth.tps")
    summary = run.json("complete", tmp_path / "pleth.tps", "-o", tmp_path / "done")
    assert summary["estimated"] == 1
    assert set(summary["errors"]) == {"statistics", "warp", "spline"}
    for name in ("completed.csv", "completed.tps"):
        back = defgpa.read_shapes(tmp_path / "done" / name)
        assert back.visible.all()
        assert np.linalg.norm(back.points[3, 2] - truth) < 1.0
    marked = rows(tmp_path / "done" / "completed.csv")
    assert marked[0][:3] == ["id", "estimated", "x1"]
    assert [row[1] for row in marked[1:6]] == ["", "", "", "3", ""]
    assert "COMMENT=estimated: 3" in (tmp_path / "done" / "completed.tps").read_text()
    assert rows(tmp_path / "done" / "estimated.csv")[1][:2] == ["shape_4", "3"]


def test_columns_and_groups_of_the_input_stay_beside_the_marks(run, tmp_path):
    points = smooth_family(seed=53, n=8, m=20)
    points[:6, 3:7] = np.nan
    variables = tuple({"sex": "fm"[k % 2]} for k in range(8))
    shapes = Shapes(points, metadata={"variables": variables, "comments": ("late",) * 8})
    defgpa.write_shapes(shapes, tmp_path / "set.csv")
    run.succeed("complete", tmp_path / "set.csv", "-o", tmp_path / "done")
    table = rows(tmp_path / "done" / "completed.csv")
    assert table[0][:4] == ["id", "sex", "estimated", "comment"]
    assert table[2][:4] == ["shape_2", "m", "4; 5; 6; 7", "late"]
    assert table[8][:4] == ["shape_8", "m", "", "late"]


def test_complete_says_that_nothing_is_missing(run, tmp_path):
    defgpa.write_shapes(Shapes(smooth_family(seed=53)), tmp_path / "whole.tps")
    out, _ = run.succeed("complete", tmp_path / "whole.tps", "-o", tmp_path / "done")
    assert "Nothing is missing" in out


def test_the_smoothing_is_not_chosen_on_the_way(run, tmp_path):
    err = run.refuse("complete", "x.tps", "-o", tmp_path, "--smoothing", "auto")
    assert "defgpa tune" in err


def test_warp_and_method_can_be_chosen(run, tmp_path):
    points = smooth_family(seed=54)
    points[1, 2] = np.nan
    defgpa.write_shapes(Shapes(points), tmp_path / "set.csv")
    out, _ = run.succeed(
        "complete",
        tmp_path / "set.csv",
        "-o",
        tmp_path / "done",
        "--warp",
        "affine",
        "--method",
        "warp",
    )
    assert "used" in out


def test_identifiers_of_the_files_are_in_the_table_of_specimens(tmp_path):
    from defgpa.io import read_shapes

    rng = np.random.default_rng(0)
    points = rng.normal(size=(8, 2)) + 0.05 * rng.normal(size=(4, 8, 2))
    heads = [f"{axis}{j}" for j in range(1, 9) for axis in "xy"]
    rows = [
        [f"s{k}", f"urn:catalog:{k}", "CC0", *map(repr, map(float, shape.ravel()))]
        for k, shape in enumerate(points)
    ]
    lines = [",".join(["id", "specimen URI", "licence", *heads]), *(",".join(row) for row in rows)]
    (tmp_path / "set.csv").write_text("\n".join(lines))
    alignment = defgpa.EuclideanGPA().fit(read_shapes(tmp_path / "set.csv")).alignment_
    table = defgpa.statistics.specimens(alignment)
    assert table["specimen URI"] == [f"urn:catalog:{k}" for k in range(4)]
    assert table["licence"] == ["CC0"] * 4
