"""Everything done in a project is written at once, found again, and computed as elsewhere."""

from __future__ import annotations

import io
import json
import runpy
import shlex
import zipfile
from pathlib import Path

import numpy as np
import pytest
from app_support import wait_until

import defgpa
from defgpa.app.project import Project, Workspace
from defgpa.app.queue import list_queue
from defgpa.app.responses import respond
from defgpa.app.server import open_first
from defgpa.app.steps import correct, look
from defgpa.app.thread_warnings import collect_notes
from defgpa.edits import read_edits
from defgpa.errors import warn
from defgpa.io import write_shapes
from defgpa.report import write_methods
from defgpa.statistics import specimens
from defgpa.threads import InterruptedWork

TPS = "".join(
    f"LM=5\n{x} 0\n{10 + x} 1\n{9 + x} {7 + 0.3 * x}\n{1 - 0.1 * x} 8\n5 {4 + 0.2 * x}\nID=w{x}\n"
    for x in range(6)
)


def get_points(page):
    state = page.state()
    size = len(state["names"]), len(state["landmarks"]), state["dims"]
    return np.frombuffer(page.get("/points").content, "<f4").reshape(size)


def test_files_that_are_dropped_are_read_and_described(page):
    page.create("moths")
    page.upload("moths.tps", TPS.encode())
    page.upload("table.csv", b"name,sex,age\n" + b"".join(b"w%d,f,%d\n" % (k, k) for k in range(6)))
    state = page.state()
    assert state["names"] == [f"w{k}" for k in range(6)]
    assert state["info"]["landmarks"] == 5
    assert state["columns"] == {
        "name": [f"w{k}" for k in range(6)],
        "sex": ["f"] * 6,
        "age": list(range(6)),
    }
    assert [file["role"] for file in state["files"]] == ["landmarks", "table"]
    np.testing.assert_allclose(get_points(page)[2, 0], [2, 0])


def test_a_zip_is_a_folder_of_files(page):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("study/moths.tps", TPS)
        archive.writestr(
            "study/covariates.csv", "id,mass\n" + "".join(f"w{k},{k}\n" for k in range(6))
        )
    page.create()
    page.upload("study.zip", packed.getvalue())
    assert page.state()["columns"]["mass"] == list(range(6))


def test_what_cannot_be_read_is_said_and_can_be_mended(page):
    page.create()
    page.upload("moths.tps", (TPS + "LM=2\n0 0\n1 1\nID=unfinished\n").encode())
    state = page.state()
    assert "unfinished" in state["problem"]
    assert str(page.project.folder) not in state["problem"]
    state = page.change(reading={"incomplete": "drop"}).json()
    assert state["problem"] == ""
    assert len(state["names"]) == 6


def test_a_note_about_the_dimension_is_gone_once_it_is_chosen(page):
    page.create()
    rows = [[round(10 * np.sin(3.1 * k) + 0.1 * i * k, 2) for k in range(24)] for i in range(6)]
    page.upload(
        "table.csv",
        "".join(f"s{i}," + ",".join(map(str, row)) + "\n" for i, row in enumerate(rows)).encode(),
    )
    assert any("2-D or" in note for note in page.state()["notes"])
    state = page.change(reading={"dimension": 3}).json()
    assert (state["dims"], len(state["landmarks"])) == (3, 8)
    assert not any("2-D or" in note for note in state["notes"])


def test_covariates_without_landmarks_ask_for_landmarks(page):
    page.create()
    page.upload("table.csv", b"name,sex\na,f\nb,m\n")
    assert "landmark files" in page.state()["problem"]


def test_an_edit_is_written_and_the_answer_has_the_new_alignment(page):
    state = page.open_sample("wings")
    answer = page.edit(action="move", specimen=3, landmarks=[5], to=[360.25, 256.5], reason="slip")
    answer = answer.json()
    assert answer["revision"] != state["revision"]
    assert answer["specimens"][0]["points"][5] == [360.25, 256.5]
    edits = read_edits(page.project.folder / "edits.json")
    assert [(e.specimen, e.to, e.reason) for e in edits] == [("apis_04", (360.25, 256.5), "slip")]
    shapes = defgpa.apply_edits(defgpa.datasets.load_wings(), edits)
    expected = defgpa.EuclideanGPA(scaling=True).fit(shapes).alignment_.reference
    np.testing.assert_array_equal(answer["mean"], expected)


def test_a_change_for_another_revision_is_refused_and_changes_nothing(page):
    old = page.open_sample("wings")["revision"]
    move = {"action": "move", "specimen": 0, "landmarks": [0], "to": [1, 2]}
    assert page.post("/edits", revision=old, edits=[move]).status_code == 200
    for path, body in (
        ("/edits", {"edits": [move]}),
        ("/undo", {}),
        ("/settings", {"settings": {"title": "x"}}),
    ):
        refused = page.post(path, revision=old, **body)
        assert refused.status_code == 409
        assert "another tab" in refused.json()["error"]
    assert len(page.project.log.edits) == 1


def test_undo_and_redo_are_written(page):
    page.open_sample("wings")
    for specimen in range(3):
        page.edit(action="reflect", specimen=specimen)
    for _ in range(2):
        page.post("/undo", revision=page.state()["revision"])
    page.post("/redo", revision=page.state()["revision"])
    reopened = Project(page.project.folder)
    assert [edit.specimen for edit in reopened.log.edits] == ["apis_01", "apis_02"]
    assert [edit.specimen for edit in reopened.log.undone] == ["apis_03"]
    assert page.post("/undo", revision="wrong").status_code == 409


@pytest.mark.parametrize(
    "edit",
    [
        {"action": "move", "specimen": 99, "landmarks": [0], "to": [1, 2]},
        {"action": "move", "specimen": 0, "landmarks": [-1], "to": [1, 2]},
        {"action": "move", "specimen": 0, "landmarks": [0], "to": [1]},
        {"action": "move", "specimen": 0, "landmarks": [0], "to": [1, 2, 3]},
        {"action": "polish", "specimen": 0},
        {"action": "swap", "specimen": True, "landmarks": [0, 1]},
        {"action": "swap", "specimen": 0, "landmarks": "0,1"},
        "reflect",
    ],
)
def test_an_edit_that_cannot_be_is_refused_and_not_written(page, edit):
    state = page.open_sample("wings")
    answer = page.post("/edits", revision=state["revision"], edits=[edit])
    assert answer.status_code == 400
    assert page.state()["revision"] == state["revision"]


def test_excluded_specimens_stay_on_the_list_and_leave_the_analysis(page):
    page.open_sample("wings")
    page.edit(action="exclude specimen", specimen=1)
    page.edit(action="exclude landmark", landmarks=[0])
    state = page.state()
    assert len(state["names"]) == 24
    assert 1 not in state["included"][0]
    assert 0 not in state["included"][1]
    superimposed = np.frombuffer(page.get("/superimposed").content, "<f4")
    assert superimposed.size == 23 * 42 * 2


def test_the_queue_names_the_mistakes_worst_first_and_forgets_what_is_mended_or_accepted(page):
    shapes = defgpa.datasets.load_wings()
    points = np.array(shapes.points)
    points[2, [3, 7]] = points[2, [7, 3]]
    points[5, :, 0] *= -1
    points[8, 4] += [90, 60]
    page.create()
    path = page.project.folder / "files" / "wings.npz"
    defgpa.write_shapes(shapes.with_points(points), path, format="npz")
    items = page.get("/queue").json()["queue"]
    assert [(item["finding"], item["specimen"], item["landmarks"]) for item in items[:3]] == [
        ("mirrored", 5, []),
        ("exchanged-landmarks", 2, [3, 7]),
        ("misplaced-landmark", 8, [4]),
    ]
    assert [item["remedy"] for item in items[:3]] == ["reflect", "swap", "set missing"]
    page.edit(action="reflect", specimen=5)
    page.edit(action="swap", specimen=2, landmarks=[3, 7])
    page.edit(action="accept", specimen=8, landmarks=[4], finding="misplaced-landmark")
    left = page.get("/queue").json()["queue"]
    assert {item["specimen"] for item in left}.isdisjoint({5, 2, 8})


def test_where_the_mean_lies_in_a_specimen_follows_its_pose(page):
    page.open_sample("wings")
    place = page.get("/specimen", number=3).json()
    visible = [point for point in place["points"] if point[0] is not None]
    mean = np.array(place["place"]["mean"])
    assert np.abs(mean.mean(axis=0) - np.mean(visible, axis=0)).max() < 40
    missing = [j for j, point in enumerate(place["points"]) if point[0] is None]
    assert missing
    estimates = page.get("/estimates", number=3).json()["estimates"]
    assert all(estimates["uncertainty"][j] > 0 for j in missing)
    assert np.linalg.norm(np.array(estimates["points"])[missing] - mean[missing]) < 60
    page.edit(action="exclude specimen", specimen=3)
    assert page.get("/estimates", number=3).json()["estimates"] is None


def test_a_change_stops_what_is_computed_in_the_background_for_the_state_before(page):
    """An edit does not share the interpreter with a queue that nobody wants any more."""
    page.open_sample("wings")
    project = page.project
    with project.in_background():
        page.edit(action="set missing", specimen=3, landmarks=[5])
        with pytest.raises(InterruptedWork):
            list_queue(project.study)
    assert page.get("/queue").status_code == 200


@pytest.mark.parametrize("name", ["findings", "sizes"])
def test_a_change_stops_each_slow_step_of_the_background(page, name):
    """Screening specimens, and estimating missing landmarks, take seconds in large sets."""
    page.open_sample("wings")
    project = page.project
    with project.in_background():
        page.edit(action="set missing", specimen=3, landmarks=[5])
        with pytest.raises(InterruptedWork):
            getattr(project.study, name)
    assert page.get("/sizes").json()["sizes"] == page.project.study.sizes


def test_work_for_an_older_state_ends_without_content_and_without_an_error():
    def work():
        raise InterruptedWork

    assert respond(work).status_code == 204


def test_comparing_methods_tells_rows_as_they_come_and_recommends_one(page):
    page.create()
    page.upload("moths.tps", TPS.encode())
    rng = np.random.default_rng(0)
    base = rng.uniform(-2, 2, size=(12, 2))
    shapes = defgpa.Shapes(base + 0.01 * rng.normal(size=(8, 12, 2)))
    (page.project.folder / "files" / "moths.tps").unlink()
    defgpa.write_shapes(shapes, page.project.folder / "files" / "noise.csv", format="csv")
    page.project._study = None
    events = page.run("compare")
    kinds = [event["event"] for event in events]
    assert kinds.count("row") == len(defgpa.model_selection.default_methods())
    assert kinds.index("row") < kinds.index("done")
    stages = [event["text"] for event in events if event["event"] == "stage"]
    assert "Trying deformable, 5 points per axis" in stages
    result = events[-1]["result"]
    assert result["method"]["kind"] == "rigid"
    assert "Rigid alignment" in result["sentence"]


def test_the_numbers_are_those_of_the_library(page):
    page.open_sample("wings")
    method = {"kind": "deformable", "points_per_axis": 4, "smoothing": 0.01}
    page.change(method={**page.state()["settings"]["method"], **method})
    shapes = defgpa.datasets.load_wings()
    warp = defgpa.ThinPlateSpline(points_per_axis=4, smoothing=0.01)
    alignment = defgpa.DefGPA(warp).fit(shapes).alignment_
    shown = page.get("/alignment").json()
    assert shown["rmse_reference"] == alignment.rmse_reference
    pca = defgpa.ShapePCA().fit(alignment)
    np.testing.assert_array_equal(page.get("/morphospace").json()["scores"], pca.scores_[:, :10])
    shape = page.post("/shape", scores={"0": 0.02, "1": -0.01}, magnification=2.0).json()
    scores = np.zeros((1, len(pca.components_)))
    scores[0, :2] = 0.04, -0.02
    np.testing.assert_array_equal(shape["points"], pca.inverse_transform(scores)[0])
    assert len(shape["grid"]) > 10


def test_group_means_lie_at_the_mean_of_their_scores(page):
    page.open_sample("wings")
    drawn = page.post("/shape", column="group", group="apis").json()
    alignment = defgpa.EuclideanGPA(scaling=True).fit(defgpa.datasets.load_wings()).alignment_
    pca = defgpa.ShapePCA().fit(alignment)
    expected = pca.coordinates_[:12].mean(axis=0)
    np.testing.assert_allclose(drawn["points"], expected, atol=1e-9)
    assert page.post("/shape", column="group", group="vespa").status_code == 400
    # from another group: their difference is drawn out, on a grid that is square in the first
    other = page.post("/shape", column="group", group="bombus").json()
    pair = {"column": "group", "from": "apis", "magnification": 3}
    start = page.post("/shape", group="apis", **pair).json()
    np.testing.assert_allclose(start["points"], expected, atol=1e-9)
    apart = np.array(page.post("/shape", group="bombus", **pair).json()["points"])
    np.testing.assert_allclose(apart - expected, 3 * (np.array(other["points"]) - expected))
    assert page.post("/shape", group="apis", **{**pair, "from": "vespa"}).status_code == 400


def test_a_formula_is_tested_as_by_the_library(page):
    page.open_sample("wings")
    test = {"formula": "shape ~ group", "n_permutations": 99, "seed": 3, "pairwise": "group"}
    page.change(test=test)
    result = page.run("test")[-1]["result"]
    alignment = defgpa.EuclideanGPA(scaling=True).fit(defgpa.datasets.load_wings()).alignment_
    model = defgpa.statistics.procrustes_anova("shape ~ group", alignment, None, 99, 3)
    assert result["table"][0]["p"] == model["group"].p
    assert result["table"][0]["ss"] == model["group"].ss
    assert result["pairwise"]["groups"] == ["apis", "bombus"]
    effect = result["effects"][0]
    assert effect["levels"] == ["apis", "bombus"]
    predicted = model.predict({"group": ["apis", "bombus"]})
    np.testing.assert_array_equal(effect["shapes"][1]["points"], predicted[1])


def test_a_formula_with_an_unknown_column_fails_with_its_name(page):
    page.open_sample("wings")
    page.change(test={"formula": "shape ~ colour", "n_permutations": 99, "seed": 0})
    last = page.run("test")[-1]
    assert last["event"] == "failed"
    assert "colour" in last["message"]


def test_allometry_repeatability_and_symmetry_are_run(page):
    page.open_sample("wings")
    page.change(test={"formula": "", "n_permutations": 19, "seed": 0})
    allometry = page.run("allometry")[-1]["result"]
    assert len(allometry["scores"]) == 24
    assert len(allometry["shapes"]) == 2
    page.change(asymmetry={"kind": "repeatability", "individual": "group"})
    repeated = page.run("repeatability")[-1]["result"]
    assert 0 < repeated["overall"] < 1
    page.open_sample("skulls")
    page.change(test={"formula": "", "n_permutations": 19, "seed": 0})
    last = page.run("symmetry")[-1]
    assert "individual" in last["result"]["text"], last


def test_long_work_can_be_cancelled(page):
    page.open_sample("skulls")
    job = page.post("/jobs", kind="compare").json()["job"]
    page.client.post(f"/api/jobs/{job}/cancel")
    text = page.client.get(f"/api/jobs/{job}/events").text
    assert json.loads(text.strip().splitlines()[-1][6:]) == {"event": "cancelled"}


@pytest.mark.parametrize("kind", ["rigid", "deformable"])
def test_the_scripts_give_the_digits_of_the_page(page, kind, monkeypatch, capsys, run):
    page.open_sample("wings")
    page.edit(action="move", specimen=3, landmarks=[5], to=[361.1, 252.2], reason="slipped")
    page.edit(action="set missing", specimen=4, landmarks=[6])
    page.edit(action="exclude specimen", specimen=7)
    page.edit(action="exclude landmark", landmarks=[2])  # the order in memory must not matter
    method = {**page.state()["settings"]["method"], "kind": kind, "scaling": False}
    test = {"formula": "shape ~ size + group", "n_permutations": 49, "seed": 1, "pairwise": "group"}
    page.change(method=method, test=test)
    shown = page.get("/alignment").json()
    scores = np.array(page.get("/morphospace").json()["scores"])
    tested = page.run("test")[-1]["result"]
    scripts = page.get("/scripts").json()
    folder = page.project.folder
    monkeypatch.chdir(folder)
    (folder / "analysis.py").write_text(scripts["python"], encoding="utf-8")
    runpy.run_path("analysis.py")
    output = capsys.readouterr().out
    printed = dict(
        line.split(" ", 1) for line in output.splitlines() if line.startswith(("RMSE_r", "PC1"))
    )
    assert tested["text"] in output
    assert "apis – bombus" in output
    assert float(printed["RMSE_r"]) == shown["rmse_reference"]
    assert [float(word) for word in printed["PC1"].split()] == scores[:, 0].tolist()
    commands = [line for line in scripts["commands"].splitlines() if not line.startswith("#")]
    for command in commands[:2]:
        run.succeed(*shlex.split(command)[1:])
    alignment = defgpa.load(folder / "fit" / "result.npz")
    assert alignment.rmse_reference == shown["rmse_reference"]
    page.run("results", parts=["result"])
    for path in (folder / "results" / "result").iterdir():
        if path.suffix in (".csv", ".tps"):
            assert path.read_bytes() == (folder / "fit" / path.name).read_bytes(), path.name
    assert read_edits(folder / "results" / "result" / "edits.json") == page.project.log.edits
    pca = defgpa.ShapePCA().fit(alignment)
    np.testing.assert_array_equal(pca.scores_[:, : scores.shape[1]], scores)
    written = {
        path.name: path.read_text(encoding="utf-8") for path in (folder / "test").glob("*.csv")
    }
    assert written["anova.csv"] == tested["csv"]
    assert written["pairwise.csv"] == tested["pairwise"]["csv"]


def test_commands_say_that_they_take_one_table(page):
    page.open_sample("wings")
    names = defgpa.datasets.load_wings().names
    for head in ("mass", "age"):
        rows = [f"{name},{k}" for k, name in enumerate(names)]
        page.upload(f"{head}.csv", "\n".join([f"id,{head}", *rows]).encode())
        commands = page.get("/scripts").json()["commands"]
        assert ("put the columns of the others into files/age.csv" in commands) == (head == "age")


def test_covariates_are_read_from_a_spreadsheet(page):
    openpyxl = pytest.importorskip("openpyxl")
    names = defgpa.datasets.load_wings().names
    page.open_sample("wings")
    book = openpyxl.Workbook()
    for row in [("id", "mass"), *((name, k + 0.5) for k, name in enumerate(names))]:
        book.active.append(row)
    content = io.BytesIO()
    book.save(content)
    page.upload("Table of mine.XLSX", content.getvalue())
    state = page.state()
    assert state["columns"]["mass"] == [k + 0.5 for k in range(24)]
    assert [file["role"] for file in state["files"]] == ["landmarks", "table"]
    assert "'files/Table of mine.XLSX'" in page.get("/scripts").json()["python"]


@pytest.mark.parametrize("size", ["centroid size", "a column"])
def test_the_scripts_repeat_the_allometry(page, size, monkeypatch, capsys, run):
    shapes = defgpa.datasets.load_wings()
    page.create("sizes")
    folder = page.project.folder
    write_shapes(shapes, folder / "files" / "wings.npz", format="npz")
    if size == "a column":
        rows = [f"{name},{10 + k % 7}" for k, name in enumerate(shapes.names)]
        page.upload("sizes.csv", "\n".join(["name,size", *rows]).encode())
    page.edit(action="exclude specimen", specimen=7)
    page.change(allometry=True, test={"formula": "", "n_permutations": 19, "seed": 2})
    shown = page.run("allometry")[-1]["result"]
    scripts = page.get("/scripts").json()
    assert "Allometry was tested" in scripts["methods"]
    monkeypatch.chdir(folder)
    (folder / "analysis.py").write_text(scripts["python"], encoding="utf-8")
    runpy.run_path("analysis.py")
    output = capsys.readouterr().out
    printed = next(line for line in output.splitlines() if line.startswith("regression score"))
    assert [float(word) for word in printed.split()[2:]] == shown["scores"]
    assert f"{shown['table'][0]['p']:.3g}" in output
    commands = [line for line in scripts["commands"].splitlines() if not line.startswith("#")]
    for command in commands[:2]:
        run.succeed(*shlex.split(command)[1:])
    written = (folder / "allometry" / "allometry.csv").read_text(encoding="utf-8")
    assert written == shown["csv"]
    page.run("results", parts=["tables"])
    tables = folder / "results" / "tables"
    assert (tables / "allometry.csv").read_text(encoding="utf-8") == shown["csv"]


def test_settings_of_an_older_project_get_the_defaults_of_what_they_lack(page, workspace):
    page.open_sample("wings")
    path = page.project.folder / "settings.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["test"] = {"formula": "shape ~ size", "n_permutations": 99, "seed": 5}
    path.write_text(json.dumps(settings), encoding="utf-8")
    test = Project(path.parent).settings["test"]
    assert (test["formula"], test["seed"], test["pairwise"]) == ("shape ~ size", 5, "")


def test_distances_from_the_mean_do_not_depend_on_units(page):
    shapes = defgpa.datasets.load_wings()
    distances = []
    for factor in (1.0, 1000.0):
        page.create()
        path = page.project.folder / "files" / "wings.npz"
        write_shapes(shapes.with_points(shapes.points * factor), path, format="npz")
        distances.append(page.get("/superimposition").json()["distances"])
    np.testing.assert_allclose(*distances, rtol=1e-9)
    assert 0.001 < max(distances[0]) < 0.5


@pytest.mark.parametrize("kind", ["repeatability", "symmetry"])
def test_the_scripts_repeat_the_analysis_of_asymmetry(page, kind, monkeypatch, capsys, run):
    shapes = defgpa.datasets.load_wings()
    page.create("sides")
    folder = page.project.folder
    write_shapes(shapes, folder / "files" / "wings.npz", format="npz")
    rows = [f"{name},i{k // 4},{'LR'[k % 2]}" for k, name in enumerate(shapes.names)]
    page.upload("sides.csv", "\n".join(["name,animal,wing", *rows]).encode())
    columns = {"individual": "animal", "side": "wing"}
    page.change(
        asymmetry={"kind": kind, **columns}, test={"formula": "", "n_permutations": 19, "seed": 2}
    )
    shown = page.run(kind)[-1]["result"]
    scripts = page.get("/scripts").json()
    monkeypatch.chdir(folder)
    (folder / "analysis.py").write_text(scripts["python"], encoding="utf-8")
    runpy.run_path("analysis.py")
    assert shown["text"] in capsys.readouterr().out
    commands = [line for line in scripts["commands"].splitlines() if not line.startswith("#")]
    for command in commands[:2]:
        run.succeed(*shlex.split(command)[1:])
    tables = [path.read_text(encoding="utf-8") for path in (folder / kind).glob("*.csv")]
    assert shown["csv"] in tables


def test_what_no_fit_can_use_is_left_out_as_by_the_commands(page, monkeypatch, run):
    """Flat shapes in space, one of them not digitised, one landmark missing in all."""
    rng = np.random.default_rng(0)
    points = np.zeros((9, 8, 3))
    points[..., :2] = rng.normal(size=(8, 2)) + 0.05 * rng.normal(size=(9, 8, 2))
    points[4] = points[:, 6] = np.nan
    page.create("flat")
    write_shapes(
        defgpa.Shapes.specimens(points), page.project.folder / "files/flat.csv", format="csv"
    )
    state = page.state()
    assert state["dims"] == 2
    notes = " ".join(state["notes"])
    assert "analysed in the plane" in notes
    assert "all their landmarks are missing: 'shape_5'" in notes
    assert "--" not in notes
    assert page.edit(action="move", specimen=1, landmarks=[2], to=[0.3, 0.4]).status_code == 200
    assert len(page.state()["included"][0]) == 8
    shown = page.get("/alignment").json()
    scripts = page.get("/scripts").json()
    monkeypatch.chdir(page.project.folder)
    run.succeed(*shlex.split(scripts["commands"].splitlines()[1])[1:])
    assert defgpa.load("fit/result.npz").rmse_reference == shown["rmse_reference"]
    Path("analysis.py").write_text(scripts["python"], encoding="utf-8")
    with pytest.warns(defgpa.DefgpaWarning):
        variables = runpy.run_path("analysis.py")
    assert variables["alignment"].rmse_reference == shown["rmse_reference"]


def test_messages_speak_of_the_choices_of_the_page(page):
    page.create("unequal")
    page.upload("unequal.tps", b"LM=3\n0 0\n1 0\n0 1\nID=a\nLM=3\n0 0\n1 0\nID=b\n")
    problem = page.state()["problem"]
    assert (
        "'Wrong counts: taken as they are'" in problem
        or "'Unfinished specimens: left out'" in problem
    )
    assert "--" not in problem
    reading = {"variable": "landmarks", "curve_points": 30, "match": "position"}
    assert page.change(reading=reading).status_code == 200
    for refused in ({"variable": 3}, {"curve_points": 1}, {"layout": "xyz"}, {"max_memory": 1}):
        assert page.change(reading=refused).status_code == 400


def test_notes_inside_notes_are_kept_apart():
    with collect_notes() as outer:
        with collect_notes() as inner:
            pass
        warn("kept")
    assert (outer, inner) == (["kept"], [])


def test_everything_can_be_taken_away(page):
    page.open_sample("skulls")
    page.change(test={"formula": "shape ~ group", "n_permutations": 19, "seed": 0})
    parts = page.get("/results").json()["parts"]
    events = page.run("results", parts=list(parts))
    assert events[-1]["event"] == "done", events[-1]
    names = events[-1]["result"]
    for expected in (
        "result/result.npz",
        "result/specimens.csv",
        "corrected/skulls.npz",
        "tables/scores.csv",
        "tables/anova.csv",
        "figures/morphospace.svg",
        "figures/aligned.png",
        "report/report.html",
        "scripts/analysis.py",
        "scripts/commands.sh",
        "scripts/edits.json",
        "methods/methods.txt",
    ):
        assert expected in names
    assert any(name.startswith("r/") for name in names)
    assert any(name.startswith("slicermorph/") for name in names)
    with zipfile.ZipFile(io.BytesIO(page.get("/archive").content)) as archive:
        assert archive.namelist() == [f"{page.id}/{name}" for name in names]
    # other programs' files are read by our own readers
    for file in ("morphoj/morphoj.txt", "r/superimposed.rds", "r/superimposed.csv"):
        read = defgpa.read_shapes(page.project.folder / "results" / file)
        assert (read.n_shapes, read.n_landmarks) == (24, 48)
    methods = page.get("/results/methods/methods.txt").text
    assert "24 specimens with 48 landmarks in 3 dimensions (288 of 1,152 landmarks" in methods
    assert "Corrections" not in methods
    assert "Procrustes ANOVA (shape ~ group; Goodall 1991)" in methods
    assert "Rohlf" in methods
    report = page.get("/results/report/report.html", show="1")
    assert "sandbox" in report.headers["content-security-policy"]
    assert report.headers["content-disposition"].startswith("inline")
    alignment = defgpa.load(page.project.folder / "results" / "result" / "result.npz")
    assert alignment.rmse_reference == page.get("/alignment").json()["rmse_reference"]


def test_the_methods_paragraph_is_that_of_the_library_and_counts_the_corrections(page):
    page.open_sample("wings")
    page.edit(action="move", specimen=3, landmarks=[5], to=[361.1, 252.2], reason="slipped")
    page.edit(action="accept", specimen=3, landmarks=[5], finding="misplaced-landmark")
    shown = page.get("/scripts").json()["methods"]
    edits = page.project.log.edits
    shapes = defgpa.apply_edits(defgpa.datasets.load_wings(), edits)
    alignment = defgpa.EuclideanGPA(scaling=True).fit(shapes).alignment_
    assert shown == write_methods(alignment, edits=edits)
    assert "listed in edits.json: move (1)." in shown


def test_groups_have_hulls_and_ellipses_in_morphospace(page):
    page.open_sample("wings")
    scores = np.array(page.get("/morphospace").json()["scores"])
    query = {"x": 1, "y": 2, "column": "group"}
    hulls = page.get("/outlines", kind="hull", **query).json()["outlines"]
    ellipses = page.get("/outlines", kind="ellipse", **query).json()["outlines"]
    assert sorted(hulls) == sorted(ellipses) == ["apis", "bombus"]
    members = scores[:12, 1:3]  # apis comes first
    corners = np.array(hulls["apis"])
    assert all((corner == members).all(axis=1).any() for corner in corners)
    np.testing.assert_array_equal(corners.min(axis=0), members.min(axis=0))
    # every point of the ellipse is √5.991 standard deviations from the mean of the group
    moved = np.array(ellipses["apis"]) - members.mean(axis=0)
    inverse = np.linalg.inv(np.cov(members, rowvar=False))
    np.testing.assert_allclose(np.einsum("ki,ij,kj->k", moved, inverse, moved), 5.991, rtol=1e-9)
    assert page.get("/outlines", kind="star", **query).status_code == 400
    assert page.get("/outlines", kind="hull", **{**query, "x": 99}).status_code == 400


def test_specimens_can_be_sorted_by_every_column_of_specimens_csv(page):
    page.open_sample("wings")
    page.edit(action="exclude specimen", specimen=1)
    columns = page.get("/specimens").json()["columns"]
    shapes = defgpa.datasets.load_wings().take([0, *range(2, 24)])
    table = specimens(defgpa.EuclideanGPA(scaling=True).fit(shapes).alignment_)
    assert list(columns) == list(table)
    sizes = columns["procrustes_distance"]
    assert sizes[1] is None
    assert [sizes[0], *sizes[2:]] == table["procrustes_distance"]


def test_steps_answer_without_a_server(page):
    page.open_sample("wings")
    project = page.project
    state = look.describe_project(project, {})
    edit = {"action": "set missing", "specimen": 2, "landmarks": [4], "reason": "torn"}
    answer = correct.add_edits(project, {"revision": state["revision"], "edits": [edit]})
    assert np.isnan(answer["specimens"][0]["points"][4]).all()
    assert correct.undo(project, {"revision": answer["revision"]})["log"]["edits"] == []


def test_files_of_the_command_line_stay_where_they_are(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "moths.tps").write_text(TPS)
    (folder / "table.csv").write_text("id,sex\n" + "".join(f"w{k},f\n" for k in range(6)))
    workspace = Workspace(tmp_path / "projects")
    project = open_first(workspace, [str(folder / "moths.tps")], str(folder / "table.csv"))
    assert project.study.original.n_shapes == 6
    assert project.study.columns["sex"] == ["f"] * 6
    assert list((project.folder / "files").iterdir()) == []
    again = open_first(Workspace(tmp_path / "elsewhere"), [str(project.folder)], None)
    assert again.study.original.n_shapes == 6


def test_photographs_and_meshes_beside_the_files_are_found(page):
    page.create()
    tps = TPS.replace("ID=w0", "IMAGE=Photo_0.PNG\nID=w0\nSCALE=0.5")
    page.upload("moths.tps", tps.encode())
    page.upload("photo_0.png", b"\x89PNG\r\n\x1a\nnot really")
    state = page.state()
    assert state["photographs"] == [True] + [False] * 5
    assert state["scales"][0] == 0.5
    answer = page.get("/photograph", number=0)
    assert answer.headers["content-type"] == "image/png"
    assert page.get("/photograph", number=1).status_code == 404


def test_two_servers_of_one_project_see_each_other(page):
    page.open_sample("wings")
    reopened = Project(page.project.folder)
    page.edit(action="reflect", specimen=0)
    assert len(reopened.study.edits) == 1
    assert reopened.revision == page.state()["revision"]


def test_the_list_of_projects_has_the_last_one_first(page):
    page.create("first")
    page.create("second")
    wait_until(lambda: True)
    page.change(title="Second study")
    projects = page.client.get("/api/start").json()["projects"]
    assert [project["title"] for project in projects] == ["Second study", "first"]


def test_swapped_landmarks_do_not_tilt_the_mean_shape(page):
    page.open_sample("wings")
    before = page.get("/specimen", number=2).json()["place"]["mean"]
    page.edit(action="swap", specimen=2, landmarks=[3, 7])
    after = page.get("/specimen", number=2).json()["place"]["mean"]
    points = defgpa.datasets.load_wings().points[2]
    moved = np.linalg.norm(np.subtract(after, before), axis=1).max()
    assert moved < 0.03 * np.linalg.norm(points[3] - points[7])
