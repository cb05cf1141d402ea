"""The commands test, symmetry and slide: from files to tables and figures."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from test_semilandmarks import varied_tps

import defgpa
from defgpa import DefGPA, ShapePCA, Shapes, ThinPlateSpline
from defgpa.meshes import Mesh, write_mesh
from defgpa.statistics import (
    allometry,
    disparity,
    group_allometry,
    modularity,
    procrustes_anova,
    symmetry,
    tangent_space,
)
from io_support import format_markups
from support import PARITY

MOTH = np.array([[0, 2], [0, -1], [-2, 1], [2, 1], [-1, -2], [1, -2.0], [-0.5, 0.3], [0.5, 0.3]])


def moths(n=12, seed=0):
    x = MOTH + 0.05 * np.random.default_rng(seed).normal(size=(n, *MOTH.shape))
    x[n // 2 :, 4] += 0.3
    return x


@pytest.fixture
def folder(tmp_path):
    """Twelve moths, and a table about them in another order."""
    shapes = Shapes(moths(), names=[f"moth{k}" for k in range(12)])
    defgpa.write_shapes(shapes, tmp_path / "moths.tps")
    rows = [f"moth{k};{'ab'[k >= 6]};{k % 3 + 1};{k // 2}\n" for k in range(12)]
    order = np.random.default_rng(1).permutation(12)
    text = "name;kind;site;who\n" + "".join(rows[k] for k in order)
    (tmp_path / "moths.csv").write_text(text)
    return tmp_path


def table(path):
    with path.open() as stream:
        return list(csv.DictReader(stream))


def test_a_model_with_everything_around_it_is_said_written_and_drawn(run, folder):
    code, out, err = run(
        *("test", folder / "moths.tps", "--data", folder / "moths.csv"),
        *("-f", "shape ~ kind + C(site)", "--pairwise", "kind", "--landmarks", "kind"),
        *("--sizes", "3, 6", "--repeatability", "who", "--permutations", 99, "-o", folder / "out"),
    )
    assert (code, err) == (0, "")
    names = ("anova", "pairwise", "landmarks", "allometry", "repeatability")
    assert out.count("Superimposed coordinates of 12 specimens") == 1  # of five results
    for name in names:
        assert (folder / "out" / f"{name}.csv").stat().st_size > 20
        assert (folder / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"{name}.csv" in out
    predicted = defgpa.read_shapes(folder / "out" / "predicted.csv")
    assert predicted.names == ("size 3", "size 6")
    np.testing.assert_allclose(predicted.points, allometry(moths()).predict([3, 6]), **PARITY)
    kind = np.repeat(["a", "b"], 6)
    site = np.arange(12) % 3 + 1
    expected = procrustes_anova("shape ~ kind + C(site)", moths(), {"kind": kind, "site": site}, 99)
    rows = table(folder / "out" / "anova.csv")
    assert [row["term"] for row in rows] == ["kind", "C(site)", "Residuals", "Total"]
    np.testing.assert_allclose(float(rows[0]["f"]), expected["kind"].f, **PARITY)
    assert float(rows[0]["p"]) == expected["kind"].p
    assert "Pr(>F)" in out
    assert "a – b" in out


def test_figures_come_as_json(run, folder):
    out, _ = run.succeed(
        *("test", folder / "moths.tps", "--data", folder / "moths.csv", "-f", "shape ~ kind"),
        *("--landmarks", "site", "--between", "1,3", "--json", "--seed", 3),
    )
    summary = json.loads(out)
    assert summary["anova"][0]["term"] == "kind"
    assert summary["anova"][-1]["p"] is None
    assert len(summary["landmarks"]["q"]) == 8


def test_a_saved_result_and_an_archive_of_points_are_analysed(run, folder):
    holes = moths()
    holes[2, 3] = np.nan
    shapes = Shapes(holes, names=[f"moth{k}" for k in range(12)])
    defgpa.save(defgpa.DefGPA(defgpa.Affine()).fit(shapes).alignment_, folder / "result.npz")
    words = ("--data", folder / "moths.csv", "-f", "shape ~ kind", "--permutations", 9)
    out, _ = run.succeed("test", folder / "result.npz", *words)
    assert "kind" in out
    np.savez(folder / "points.npz", points=moths())
    _, err = run.succeed("test", folder / "points.npz", *words)
    assert "taken in order" in err


def test_groups_of_the_file_are_a_column_when_no_table_is_given(run, tmp_path):
    shapes = Shapes(moths(), metadata={"groups": ["x"] * 6 + ["y"] * 6})
    defgpa.write_shapes(shapes, tmp_path / "moths.txt", format="morphologika")
    out, _ = run.succeed("test", tmp_path / "moths.txt", "-f", "shape ~ group", "--permutations", 9)
    assert "group" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Nothing to test"),
        (["--pairwise", "kind", "--allometry"], "give --formula"),
        (["-f", "shape ~ colour"], "colour"),
        (["--landmarks", "colour"], "there is name, kind, site, who"),
        (["--landmarks", "site"], "between 2 groups, such as --between 1,2"),
        (["--landmarks", "kind", "--between", "a,c"], "there is 'a', 'b'"),
        (["-f", "shape ~ kind", "--pairwise", "site"], "knows nothing of 'site'"),
        (["--sizes", "3;6"], "numbers such as 10,20"),
        (["--sizes", "-1"], "positive"),
        (["-f", "shape ~ kind", "--permutations", "0"], "0"),
    ],
)
def test_what_cannot_be_tested_is_one_sentence(run, folder, words, sentence):
    err = run.refuse("test", folder / "moths.tps", "--data", folder / "moths.csv", *words)
    assert sentence in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name,kind\nmoth,a\n", "1 rows for 12 shapes"),
        (
            "name,kind\n" + "".join(f"moth{k + (k == 3) * 90},a\n" for k in range(12)),
            "column 'name' names the specimens, and has no row for 'moth3'",
        ),
        (
            "name,kind\n" + "".join(f"moth{k},a\n" for k in [*range(12), 7]),
            "several rows for 'moth7'",
        ),
        ("name,kind\nmoth0,a,b\nmoth1\n", "line 2: expected 2 fields; found 3"),
        ("name,kind\n", "expected a header"),
    ],
)
def test_a_table_that_does_not_fit_is_told(run, folder, text, sentence):
    (folder / "bad.csv").write_text(text)
    err = run.refuse(
        "test", folder / "moths.tps", "--data", folder / "bad.csv", "-f", "shape ~ kind"
    )
    assert sentence in err


@pytest.mark.parametrize(
    ("head", "row"),
    [('"kind","number"', '"moth{k}","{kind}",{k}'), ("image,kind", "MOTH{k}.JPG,{kind}")],
    ids=["names of rows, as R writes them", "capitals and endings of images"],
)
def test_rows_are_matched_by_the_names_of_the_specimens(run, folder, head, row):
    rows = [row.format(k=k, kind="ab"[k >= 6]) for k in reversed(range(12))]
    (folder / "more.csv").write_text("\n".join([head, *rows]))
    words = ("test", folder / "moths.tps", "--data", folder / "more.csv", "-f", "shape ~ kind")
    code, out, err = run(*words, "--permutations", 9, "--json")
    assert (code, err) == (0, "")
    expected = procrustes_anova("shape ~ kind", moths(), {"kind": np.repeat(["a", "b"], 6)}, 9)
    np.testing.assert_allclose(json.loads(out)["anova"][0]["f"], expected["kind"].f, **PARITY)


def test_numbered_shapes_are_not_looked_for_in_a_column_of_numbers(run, tmp_path):
    """Names 1 to 12, and a column that counts individuals."""
    defgpa.write_shapes(Shapes(moths(), names=[str(k) for k in range(1, 13)]), tmp_path / "m.tps")
    rows = "".join(f"{k // 2 + 1},{'ab'[k >= 6]},{2 * k}\n" for k in range(12))
    (tmp_path / "m.csv").write_text(f"who,kind,dose\n{rows}")
    words = ("test", tmp_path / "m.tps", "--data", tmp_path / "m.csv", "-f", "shape ~ kind")
    _, err = run.succeed(*words, "--permutations", 9)
    assert "rows are taken in order" in err


def test_columns_beside_the_landmarks_are_known_without_a_table(run, tmp_path):
    head = "id,sex,dose," + ",".join(f"x{j},y{j}" for j in range(1, 9))
    rows = [
        ",".join([f"m{k}", "fm"[k >= 6], str(k % 4), *map(repr, item.ravel().tolist())])
        for k, item in enumerate(moths())
    ]
    (tmp_path / "m.csv").write_text("\n".join([head, *rows]))
    words = ("test", tmp_path / "m.csv", "--permutations", 9)
    table = run.json(*words, "-f", "shape ~ sex + dose")["anova"]
    assert [row["df"] for row in table] == [1, 1, 9, 11]  # doses are numbers: one slope
    data = {"sex": np.repeat(["f", "m"], 6), "dose": np.arange(12) % 4}
    expected = procrustes_anova("shape ~ sex + dose", moths(), data, 9)
    np.testing.assert_allclose(table[1]["f"], expected["dose"].f, **PARITY)
    shapes = defgpa.read_shapes(tmp_path / "m.csv")
    assert procrustes_anova("shape ~ sex", shapes, n_permutations=9)["sex"].df == 1
    err = run.refuse(*words, "-f", "shape ~ age")
    assert "no column 'age'" in err


def test_without_a_table_the_remedy_is_one(run, folder):
    err = run.refuse("test", folder / "moths.tps", "-f", "shape ~ kind")
    assert "There are: size. A table with more is given by --data." in err


def test_missing_landmarks_are_completed_and_counted(run, tmp_path):
    holes = moths()
    holes[2, 3] = np.nan
    defgpa.write_shapes(Shapes(holes), tmp_path / "holes.tps")
    for words in (["test", "--allometry"], ["symmetry"]):
        out, _ = run.succeed(words[0], tmp_path / "holes.tps", *words[1:])
        assert "1 of 96 landmarks (1.0%) completed" in " ".join(out.split())


def test_a_saved_result_has_the_table_of_its_file_unless_another_space_is_chosen(run, folder):
    result = DefGPA(ThinPlateSpline(3)).fit(defgpa.read_shapes(folder / "moths.tps")).alignment_
    defgpa.save(result, folder / "result.npz")
    words = ["--data", folder / "moths.csv", "-f", "shape ~ kind", "--permutations", 9]
    tables, spaces = {}, {}
    for name, source, *more in (
        ("file", "moths.tps"),
        ("result", "result.npz"),
        ("warps", "result.npz", "--space", "back_projected"),
    ):
        out, _ = run.succeed("test", folder / source, *words, *more, "-o", folder / name)
        tables[name] = table(folder / name / "anova.csv")[0]
        _, printed, _ = run("test", folder / source, *words, *more, "--json")
        spaces[name] = json.loads(printed)["coordinates"]
    assert float(tables["result"]["ss"]) == pytest.approx(float(tables["file"]["ss"]), rel=1e-9)
    assert float(tables["warps"]["ss"]) != pytest.approx(float(tables["file"]["ss"]), rel=1e-3)
    assert spaces["result"]["space"] == "superimposed"
    assert spaces["result"]["landmarks_completed"] == 0
    assert spaces["warps"]["space"] == "back_projected"
    assert "only what the warps follow" in out


def test_imputations_are_pooled_and_stated(run, tmp_path):
    holes = moths()
    holes[2, 3] = holes[7, 1] = np.nan
    defgpa.write_shapes(Shapes(holes), tmp_path / "holes.tps")
    out, _ = run.succeed("test", tmp_path / "holes.tps", "--allometry", "--imputations", 5)
    assert "5 draws pooled" in " ".join(out.split())


def test_empty_cells_are_missing_data(run, folder):
    (folder / "gaps.csv").write_text(
        "name,kind,dose\n" + "".join(f"moth{k},a,{'' if k == 3 else k}\n" for k in range(12))
    )
    words = ("test", folder / "moths.tps", "--data", folder / "gaps.csv")
    err = run.refuse(*words, "-f", "shape ~ dose")
    assert "gaps" in err or "finite" in err
    err = run.refuse(*words, "--repeatability", "dose")
    assert "column 'dose' is empty for 'moth3'" in " ".join(err.split())


# Symmetry


def test_pairs_are_found_said_and_given_back(run, folder):
    out, _ = run.succeed(
        "symmetry", folder / "moths.tps", "-o", folder / "sym", "--permutations", 99
    )
    assert "100% of the shapes confirm them): --pairs 3-4,5-6,7-8" in " ".join(out.split())
    assert "individual:side" in out
    for name in (
        "symmetry.csv",
        "asymmetry.csv",
        "symmetric.csv",
        "asymmetric.csv",
        "symmetry.png",
    ):
        assert (folder / "sym" / name).exists()
    again, findings, _ = run(
        "symmetry", folder / "moths.tps", "--pairs", "4-3, 5-6,7-8", "--json", "--permutations", 99
    )
    assert again == 0
    figures = json.loads(findings)
    expected = symmetry(moths(), [(3, 2), (4, 5), (6, 7)], n_permutations=9)
    np.testing.assert_allclose(figures["table"][1]["ss"], expected["side"].ss, **PARITY)
    assert figures["pairs"] == [["4", "3"], ["5", "6"], ["7", "8"]]
    rows = table(folder / "sym" / "asymmetry.csv")
    np.testing.assert_allclose([float(r["asymmetry"]) for r in rows], expected.index, **PARITY)


def test_sides_and_replicates_come_from_the_table(run, folder):
    rows = [f"moth{k},{k // 4},{'lr'[k % 2]},{k // 2 % 2}\n" for k in range(12)]
    (folder / "sides.csv").write_text("name,who,side,time\n" + "".join(rows))
    words = ("--individual", "who", "--side", "side", "--replicate", "time")
    out, _ = run.succeed(
        "symmetry",
        folder / "moths.tps",
        "--data",
        folder / "sides.csv",
        *words,
        *("--permutations", 9, "-o", folder / "sides"),
    )
    assert "Matching symmetry, 3 individuals" in out
    assert "Residuals" in out
    assert "Asymmetry of size" in out
    rows = table(folder / "sides" / "size_symmetry.csv")
    shapes, who = defgpa.read_shapes(folder / "moths.tps"), [k // 4 for k in range(12)]
    actual = symmetry(shapes, individual=who, side=list("lr") * 6, n_permutations=9)
    expected = actual.size_table
    assert [float(row["ss"]) for row in rows] == pytest.approx([row.ss for row in expected])
    summary = json.loads((folder / "sides" / "symmetry.json").read_text(encoding="utf-8"))
    assert summary["size_table"][0]["ss"] == pytest.approx(expected["individual"].ss)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--pairs", "3-99"], "two landmarks joined by a dash"),
        (["--pairs", "34"], "two landmarks joined by a dash"),
        (["--side", "hand"], "no column 'hand'"),
        (["--pairs", "3-4", "--side", "kind", "--individual", "who"], "not both"),
    ],
)
def test_symmetry_that_cannot_be_is_one_sentence(run, folder, words, sentence):
    err = run.refuse("symmetry", folder / "moths.tps", "--data", folder / "moths.csv", *words)
    assert sentence in err


# Sliding


def arcs(n=6, count=9, seed=0):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, np.pi, count + 2)
    points = []
    for _ in range(n):
        item = t.copy()
        item[1:-1] += 0.08 * rng.uniform(-1, 1, count)
        points.append(
            np.vstack([[[0, -1], [0.4, -0.5]], np.column_stack([-np.cos(item), np.sin(item)])])
        )
    return np.stack(points)


@pytest.fixture
def curved(tmp_path):
    defgpa.write_shapes(Shapes(arcs()), tmp_path / "arcs.tps")
    rows = "".join(f"{k},{k + 1},{k + 2}\n" for k in range(3, 12))
    (tmp_path / "curveslide.csv").write_text(f'"before","slide","after"\n{rows}')
    return tmp_path


def test_a_slider_table_and_a_curve_by_labels_slide_alike(run, curved):
    out, _ = run.succeed(
        *("slide", curved / "arcs.tps", "--sliders", curved / "curveslide.csv"),
        *("-o", curved / "slid.tps", "--figures", curved / "figures"),
    )
    assert "9 of 13 landmarks slide" in out
    expected = defgpa.slide(arcs(), [range(2, 13)])
    np.testing.assert_allclose(
        defgpa.read_shapes(curved / "slid.tps").points, expected.points, **PARITY
    )
    rows = table(curved / "figures" / "slid.csv")
    assert len(rows) == 6 * 9
    np.testing.assert_allclose(float(rows[0]["slid"]), expected.distances[0, 3], **PARITY)
    assert (curved / "figures" / "slid.png").exists()
    findings, _ = run.succeed(
        "slide", curved / "arcs.tps", "--curve", "3..13", "-o", curved / "other.tps", "--json"
    )
    assert json.loads(findings)["sliding"] == [str(k) for k in range(4, 13)]
    assert (curved / "other.tps").read_text() == (curved / "slid.tps").read_text()


@pytest.mark.parametrize(
    "words", [["--warp", "affine"], ["--by", "procrustes"], ["--along", "tangent"]]
)
def test_other_ways_to_slide_give_other_shapes(run, curved, words):
    plain = defgpa.slide(arcs(), [range(2, 13)]).points
    run.succeed(
        *("slide", curved / "arcs.tps", "--curve", "3..13", "-o", curved / "slid.tps"), *words
    )
    actual = defgpa.read_shapes(curved / "slid.tps").points
    assert not np.allclose(actual, plain, atol=1e-9)
    assert not np.allclose(actual, arcs(), atol=1e-3)


def test_points_return_to_the_meshes_of_a_folder(run, tmp_path):
    rng = np.random.default_rng(3)
    grid = np.array([(a, b) for a in (-1.0, -0.3, 0.3, 1.0) for b in (-1.0, -0.3, 0.3, 1.0)])
    points = [
        np.column_stack([grid + 0.05 * rng.normal(size=(16, 2)), np.zeros(16)]) for _ in range(4)
    ]
    points = np.concatenate([np.stack(points), np.tile([[[0.0, 0.0, 1.0]]], (4, 1, 1))], axis=1)
    defgpa.write_shapes(Shapes(points, names=list("abcd")), tmp_path / "plates.tps")
    (tmp_path / "meshes").mkdir()
    plate = Mesh([[-3, -3, 0], [3, -3, 0], [3, 3, 0], [-3, 3, 0]], [[0, 1, 2], [0, 2, 3]])
    for name in "abc":
        write_mesh(tmp_path / "meshes" / f"{name}.ply", plate)
    _, err = run.succeed(
        *("slide", tmp_path / "plates.tps", "--surface", "6,7,10,11", "-o", tmp_path / "slid.tps"),
        *("--meshes", tmp_path / "meshes"),
    )
    assert "No mesh is named like 'd'" in err
    slid = defgpa.read_shapes(tmp_path / "slid.tps")
    np.testing.assert_allclose(slid.points[:3, [5, 6, 9, 10], 2], 0.0, atol=1e-12)
    (tmp_path / "surfslide.csv").write_text('"x"\n6\n7\n10\n11\n')
    run.succeed(
        *("slide", tmp_path / "plates.tps", "--surface", tmp_path / "surfslide.csv"),
        *("-o", tmp_path / "again.tps", "--meshes", tmp_path / "meshes"),
    )
    assert (tmp_path / "again.tps").read_text() == (tmp_path / "slid.tps").read_text()
    err = run.refuse(
        *("slide", tmp_path / "plates.tps", "--surface", "6,7", "-o", tmp_path / "s.tps"),
        *("--meshes", tmp_path),
    )
    assert "named like a shape" in err


def test_curves_of_slicer_are_joined_and_slide(run, tmp_path):
    rng = np.random.default_rng(4)
    (tmp_path / "curves").mkdir()
    landmarks = rng.normal(size=(6, 3)) + 0.02 * rng.normal(size=(4, 6, 3))
    for k, landmark in enumerate(landmarks):
        shape = Shapes.specimens([landmark], metadata={"space": "LPS"})
        defgpa.write_shapes(shape, tmp_path / f"s{k}.mrk.json")
        t = np.linspace(0, 2, 8 + k)
        line = np.column_stack([np.cos(t), np.sin(t), 0.2 * t])
        text = format_markups(((f"C-{j}", p) for j, p in enumerate(line)), kind="Curve")
        (tmp_path / "curves" / f"s{k}_rim.mrk.json").write_text(text)
    out, _ = run.succeed(
        *(
            "slide",
            *sorted(tmp_path.glob("s?.mrk.json")),
            "--slicer-curves",
            tmp_path / "curves",
            7,
        ),
        *("-o", tmp_path / "slid.npz"),
    )
    assert "5 of 13 landmarks slide" in out
    assert defgpa.read_shapes(tmp_path / "slid.npz").n_landmarks == 13


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "give --sliders, --curve or --surface"),
        (["--curve", "3,99,5"], "no landmark '99'"),
        (["--sliders", "nowhere.csv"], "nowhere.csv"),
        (["--surface", "3,4"], "3-D"),
        (["--curve", "3..13", "--meshes", "nowhere"], "not a folder"),
    ],
)
def test_sliding_that_cannot_be_is_one_sentence(run, curved, words, sentence):
    err = run.refuse("slide", curved / "arcs.tps", "-o", curved / "slid.tps", *words)
    assert sentence in err
    assert not (curved / "slid.tps").exists()


def test_curves_of_different_numbers_of_points_are_resampled_on_request(run, tmp_path):
    varied_tps(tmp_path / "varied.tps")
    words = ("slide", tmp_path / "varied.tps", "-o", tmp_path / "slid.tps")
    err = run.refuse(*words)
    assert "To have them resampled: --curve-points 30." in err
    assert "Nothing slides" in err
    code, out, err = run(*words, "--curve-points", 12)
    assert (code, err) == (0, "")
    assert "22 of 27 landmarks slide" in out


def test_rounds_that_were_too_few_are_told(run, curved):
    words = ("slide", curved / "arcs.tps", "--curve", "3..13", "-o", curved / "slid.tps")
    out, err = run.succeed(*words, "--rounds", 1)
    assert "after 1 iteration." in out
    assert "raise --rounds" in err
    assert "--rounds" not in run(*words, "--rounds", 60)[2]


def test_the_input_is_not_overwritten(run, curved):
    err = run.refuse("slide", curved / "arcs.tps", "--curve", "3..13", "-o", curved / "arcs.tps")
    assert "overwrite" in err


def test_components_are_said_written_and_drawn(run, folder):
    words = ["pca", folder / "moths.tps", "--data", folder / "moths.csv", "--groups", "kind"]
    out, _ = run.succeed(*words, "-o", folder / "pca")
    pca = ShapePCA().fit(moths())
    first, *_ = table(folder / "pca" / "variances.csv")
    assert float(first["variance"]) == pytest.approx(pca.explained_variance_[0], rel=1e-6)
    assert f"{pca.explained_variance_ratio_[:2].sum():.1%}" in out
    scores = table(folder / "pca" / "scores.csv")
    assert [row["group"] for row in scores] == ["a"] * 6 + ["b"] * 6
    assert [float(row["PC2"]) for row in scores] == pytest.approx(
        pca.scores_[:, 1].tolist(), abs=1e-6
    )
    ends = {row["id"]: row for row in table(folder / "pca" / "shapes_at_ends.csv")}
    expected = pca.mean_ + pca.scores_[:, 1].max() * pca.components_[1]
    actual = [[float(ends["PC2 max"][f"{axis}{j + 1}"]) for axis in "xy"] for j in range(8)]
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    for name in ("components.png", "scree.png"):
        assert (folder / "pca" / name).stat().st_size > 5000
    mirrored = moths()
    mirrored[3, :, 0] *= -1
    defgpa.write_shapes(Shapes(mirrored), folder / "mirrored.tps")
    _, _, err = run("pca", folder / "mirrored.tps")
    assert "Mirrored against the majority" in err
    _, out, _ = run(*words[:-2], "--json")
    assert json.loads(out)["shares"] == pytest.approx(pca.explained_variance_ratio_.tolist())
    err = run.refuse(*words, "--axes", 1, 99)
    assert f"two of the {len(pca.components_)} components; got 1 99" in " ".join(err.split())
    assert "got 2 2" in run.refuse(*words, "--axes", 2, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["disparity", "--groups", "gap"], "column 'gap' is empty for 'moth4'"),
        (["classify", "--groups", "gap"], "column 'gap' is empty for 'moth4'"),
        (["pca", "--groups", "gap"], "column 'gap' is empty for 'moth4'"),
        (["test", "--slopes", "gap"], "column 'gap' is empty for 'moth4'"),
        (["test", "--landmarks", "gap"], "column 'gap' is empty for 'moth4'"),
        (["test", "--repeatability", "gap"], "column 'gap' is empty for 'moth4'"),
        (["symmetry", "--individual", "gap"], "column 'gap' is empty for 'moth4'"),
        (["covary", "--with", "gap"], "column 'gap' is empty for 'moth4'"),
        (["covary", "--with", "kind"], "column 'kind' has 'a', which is no number"),
        (["disparity", "--groups", "single"], "Group 'z' has one specimen"),
        (["disparity", "--groups", "kind", "-f", "shape ~ C(number)"], "12 parameters for 12"),
        (["test", "--landmarks", "same"], "there is only 'x'"),
        (["phylo", "--tree", "others.nwk", "--prune"], "have no name in common"),
        (["phylo", "--tree", "broken.nwk"], "check its parentheses"),
    ],
)
def test_unusable_columns_and_trees_are_refused_in_a_sentence(
    run, folder, words, message, monkeypatch
):
    """An empty cell would be a group of its own, called None."""
    monkeypatch.chdir(folder)
    rows = [
        f"moth{k},{'ab'[k > 5]},{'' if k == 4 else k % 3},{'yz'[k == 3]},{k},x\n" for k in range(12)
    ]
    (folder / "odd.csv").write_text("name,kind,gap,single,number,same\n" + "".join(rows))
    (folder / "others.nwk").write_text("((a:1,b:1):1,(c:1,d:1):1);")
    (folder / "broken.nwk").write_text("((moth0:1,moth1:1;")
    err = run.refuse(words[0], "moths.tps", "--data", "odd.csv", *words[1:])
    assert message in " ".join(err.split())


def test_every_comparison_of_hypotheses_is_printed_in_lines(run, folder):
    modules = ("--modules", "a=1-4,b=5-8", "--modules", "a=1-2+5-6,b=*")
    out, _ = run.succeed("covary", folder / "moths.tps", *modules, "--permutations", 9)
    assert out.count("Superimposed coordinates") == 1
    for title in ("Effect sizes compared: r-PLS", "Effect sizes compared: CR"):
        assert re.search(rf"^{title}\n\s+observed +Z$", out, re.MULTILINE)


def test_disparity_and_classification_are_said_written_and_drawn(run, folder):
    words = [folder / "moths.tps", "--data", folder / "moths.csv", "--groups", "kind"]
    out, _ = run.succeed("disparity", *words, "--permutations", 99, "-o", folder / "spread")
    assert "Procrustes variances of groups" in out
    assert "Superimposed coordinates of 12 specimens" in " ".join(out.split())
    message = out.partition("Written:")[0]
    assert max(map(len, message.splitlines())) <= 80
    assert table(folder / "spread" / "disparity.csv")[0]["a"] == "a"
    assert (folder / "spread" / "disparity.png").stat().st_size > 5000
    out, _ = run.succeed("classify", *words, "--permutations", 99, "-o", folder / "classes")
    assert "100.0% correct (chance level 50.0%)" in " ".join(out.split())
    assert len(table(folder / "classes" / "classification.csv")) == 12
    assert (folder / "classes" / "classification.png").stat().st_size > 5000
    _, out, _ = run("classify", *words, "--permutations", 9, "--json")
    assert json.loads(out)["confusion"] == [[6, 0], [0, 6]]
    err = run.refuse("classify", folder / "moths.tps", "--groups", "sex")
    assert "sex" in err


def test_reports_of_all_statistics_have_their_sections(run, folder):
    words = [folder / "moths.tps", "--data", folder / "moths.csv", "--permutations", 9, "--report"]
    for command, options, heading in (
        ("disparity", ["--groups", "kind"], "How much groups vary"),
        ("classify", ["--groups", "kind"], "Can the groups be told apart?"),
        ("covary", ["--modules", "front=1-4,back=*"], "How front and back covary"),
        ("test", ["--slopes", "kind"], "Shape and size by group"),
    ):
        run.succeed(command, *words, *options, "-o", folder / command)
        page = (folder / command / "report.html").read_text(encoding="utf-8")
        assert f">{heading}</h2>" in page
        assert "Superimposed coordinates of 12 specimens" in page


def test_figures_printed_beside_a_table_have_a_table_of_their_own(run, folder):
    words = [folder / "moths.tps", "--data", folder / "moths.csv", "--permutations", 9, "-q"]
    out, sample, kinds = folder / "out", moths(), np.repeat(["a", "b"], 6)
    for command, *options in (
        ("disparity", "--group", "kind"),
        ("classify", "--groups", "kind"),
        ("covary", "--modules", "front=1-4,back=*", "--by", "kind"),
        ("test", "--slopes", "kind", "--trajectories", "kind,site", "--allometry"),
    ):
        run.succeed(command, *words, *options, "-o", out / command)

    def read_column(name, column):
        return [float(row[column]) for row in table(out / name)]

    varied = disparity(sample, kinds, n_permutations=9)
    assert read_column("disparity/disparity_groups.csv", "lower") == pytest.approx(
        varied.intervals[:, 0].tolist(), rel=1e-6
    )
    assert read_column("classify/classification_confusion.csv", "as_b") == [0, 6]
    assert read_column("classify/classification_accuracy.csv", "accuracy") == [1.0]
    parts = modularity(sample, ["front"] * 4 + ["back"] * 4, 9)
    assert read_column("covary/modularity_test.csv", "z") == pytest.approx([parts.z], rel=1e-5)
    assert len(table(out / "covary" / "groups_integration_effects.csv")) == 2
    slopes = group_allometry(sample, kinds, n_permutations=9).lengths
    assert read_column("test/slopes_groups.csv", "slope_length") == pytest.approx(slopes, rel=1e-5)
    assert table(out / "test" / "slopes_anova.csv")[2]["term"] == "log(size):kind"
    assert table(out / "test" / "allometry_anova.csv")[0]["term"] == "log(size)"
    assert len(table(out / "test" / "trajectories_groups.csv")) == 2


@pytest.mark.parametrize("name", ["anova.csv", "groups_pls.csv", "integration_1.csv"])
def test_a_table_that_was_read_is_not_replaced_by_a_result_of_its_name(run, folder, name):
    covariates = (folder / "moths.csv").rename(folder / name).read_text()
    words = ("--data", folder / name, "--permutations", 9, "-o", folder)
    if name == "anova.csv":
        refused = run.refuse("test", folder / "moths.tps", "-f", "shape ~ kind", *words)
    else:
        groups = ("--with", "site", "--by", "kind") if name == "groups_pls.csv" else ()
        modules = ("--modules", "a=1-4,b=5-8", "--modules", "a=1-5,b=6-8")
        how = groups or modules
        refused = run.refuse("covary", folder / "moths.tps", *how, *words)
    assert "would overwrite the input" in " ".join(refused.split())
    assert (folder / name).read_text() == covariates


def test_report_without_a_folder_is_refused(run, folder):
    err = run.refuse("classify", folder / "moths.tps", "--groups", "kind", "--report")
    assert "give --output too" in err


def test_types_error_terms_and_smaller_models_are_options(run, folder):
    words = ["test", folder / "moths.tps", "--data", folder / "moths.csv", "--permutations", 9]
    words += ["-f", "shape ~ kind * C(site)", "--json"]
    out, _ = run.succeed(*words, "--ss-type", "III", "--error", "kind=kind:C(site)")
    data = {"kind": np.repeat(["a", "b"], 6), "site": np.arange(12) % 3 + 1}
    expected = procrustes_anova(
        "shape ~ kind * C(site)", moths(), data, 9, ss_type=3, error={"kind": "kind:C(site)"}
    )
    assert json.loads(out)["anova"][0]["f"] == pytest.approx(expected["kind"].f, rel=1e-6)
    out, _ = run.succeed(*words, "--against", "shape ~ kind")
    assert [row["df"] for row in json.loads(out)["models"]] == [4, 6, 11]
    err = run.refuse(*words, "--error", "kind")
    assert "terms such as species=species:site" in err


def test_slopes_trajectories_and_measurement_error_are_written(run, folder):
    code, out, err = run(
        *("test", folder / "moths.tps", "--data", folder / "moths.csv", "--slopes", "kind"),
        *("--trajectories", "kind,site", "--measurement-error", "who,half", "-o", folder / "all"),
        *("--permutations", 9),
    )
    assert code == 2
    assert "there is no column 'half'" in err
    rows = (folder / "moths.csv").read_text().splitlines()
    halves = [int(row.split(";")[0].removeprefix("moth")) % 2 for row in rows[1:]]
    lines = [
        f"{rows[0]};half",
        *(f"{row};{half}" for row, half in zip(rows[1:], halves, strict=True)),
    ]
    (folder / "moths.csv").write_text("\n".join(lines) + "\n")
    out, err = run.succeed(
        *("test", folder / "moths.tps", "--data", folder / "moths.csv", "--slopes", "kind"),
        *("--trajectories", "kind,site", "--measurement-error", "who,half", "-o", folder / "all"),
        *("--permutations", 9),
    )
    assert "log(size):kind" in out
    assert "Trajectories through 3 stages: 1, 2, 3" in out
    words = ("test", folder / "moths.tps", "--data", folder / "moths.csv", "--permutations", 9)
    words = (*words, "--trajectories", "kind,site", "--stages")
    assert "Trajectories through 3 stages: 3, 1, 2" in run(*words, "3, 1,2")[1]
    assert "must name each of '1', '2', '3' once" in run(*words, "1,2")[2]
    assert "Measurement error of 2 replicates" in out
    assert len(table(folder / "all" / "allometric_scores.csv")) == 12
    assert defgpa.read_shapes(folder / "all" / "size_corrected.csv").points.shape == (12, 8, 2)
    for name in ("slopes", "trajectories"):
        assert (folder / "all" / f"{name}.png").stat().st_size > 5000


def test_coordinates_superimposed_before_are_taken_as_given(run, folder):
    superimposed = tangent_space(moths())
    superimposed[:, 0] += 0.01  # not centred: superimposing again would change it
    defgpa.write_shapes(
        Shapes(superimposed, names=[f"moth{k}" for k in range(12)]), folder / "given.csv"
    )
    words = ["test", folder / "given.csv", "--data", folder / "moths.csv", "-f", "shape ~ kind"]
    out, _ = run.succeed(*words, "--as-given", "--permutations", 9, "--json")
    data = {"kind": np.repeat(["a", "b"], 6)}
    expected = procrustes_anova("shape ~ kind", superimposed, data, 9, superimpose=False)
    assert json.loads(out)["anova"][0]["ss"] == pytest.approx(expected["kind"].ss, rel=1e-6)
    assert json.loads(out)["coordinates"]["space"] == "given"


def test_modules_come_from_a_table_or_from_the_parts_that_links_join(run, folder):
    lines = [f"{k + 1},{'front' if k < 4 else 'back'},{k % 2}" for k in range(8)]
    (folder / "modules.csv").write_text("landmark,halves,odd\n" + "\n".join(lines) + "\n")
    words = ["covary", folder / "moths.tps", "--permutations", 9, "--json"]
    out, _ = run.succeed(*words, "--modules", folder / "modules.csv")
    modules = [each["modules"] for each in json.loads(out)["modularity"]]
    assert modules == [["front", "back"], ["0", "1"]]
    expected = modularity(moths(), ["front"] * 4 + ["back"] * 4, 9).observed
    assert json.loads(out)["modularity"][0]["observed"] == pytest.approx(expected, rel=1e-6)
    err = run.refuse(*words, "--modules", "links")
    assert "has no link" in err


def test_fit_takes_the_groups_from_a_column_of_the_table_of_covariates(run, folder):
    words = ["--method", "rigid", "--data", folder / "moths.csv", "--group", "kind", "-q"]
    assert run("fit", folder / "moths.tps", *words, "-o", folder / "result")[0] == 0
    groups = [row["group"] for row in table(folder / "result" / "specimens.csv")]
    assert groups == ["a"] * 6 + ["b"] * 6
