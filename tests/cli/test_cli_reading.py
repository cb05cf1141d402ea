"""What the command line lets a person say about files, on every command that reads them."""

import json

import numpy as np
import pytest

import defgpa
from defgpa.datasets import smooth_family
from io_support import format_markups, format_tps

POINTS = smooth_family(n=6, m=14, d=2, seed=3).shapes.points
NAMES = [f"wing {letter}" for letter in "abcdef"]


@pytest.fixture
def table(tmp_path):
    """Six wings with two columns about them."""
    lines = ["id,species,site," + ",".join(f"x{j},y{j}" for j in range(1, 15))]
    for k, (name, shape) in enumerate(zip(NAMES, POINTS, strict=True)):
        numbers = ",".join(map(repr, shape.ravel().tolist()))
        lines.append(f"{name},{'pq'[k % 2]},{'north' if k < 4 else 'south'},{numbers}")
    path = tmp_path / "wings.csv"
    path.write_text("\n".join(lines))
    return path


def read_result(folder):
    return defgpa.load(folder / "result.npz").shapes


def test_specimens_are_dropped_and_mirrored_by_name(run, table, tmp_path):
    words = ("--drop", "wing b", "--drop", "wing c", "--mirror", "wing e")
    code, *_ = run("fit", table, "-o", tmp_path / "out", "--warp", "affine", *words)
    assert code == 0
    shapes = read_result(tmp_path / "out")
    assert shapes.names == ("wing a", "wing d", "wing e", "wing f")
    np.testing.assert_array_equal(shapes["wing e"], POINTS[4] * [-1, 1])
    np.testing.assert_array_equal(shapes["wing a"], POINTS[0])


@pytest.mark.parametrize("option", ["--drop", "--mirror"])
def test_a_name_that_no_specimen_has_is_refused(run, table, option):
    err = run.refuse("info", table, option, "wing z")
    assert "no shape called 'wing z'" in err


def test_the_groups_are_those_of_a_column(run, table, tmp_path):
    assert run("fit", table, "-o", tmp_path / "a", "--warp", "affine")[0] == 0
    assert read_result(tmp_path / "a").metadata["groups"] == ("p", "q") * 3
    assert run("fit", table, "-o", tmp_path / "b", "--warp", "affine", "--group", "site")[0] == 0
    shapes = read_result(tmp_path / "b")
    assert shapes.metadata["groups"] == ("north",) * 4 + ("south",) * 2
    assert shapes.metadata["variables"][0] == {"species": "p", "site": "north"}
    err = run.refuse("info", table, "--group", "age")
    assert "no column 'age' to group by; there are: 'species', 'site'" in err


def test_info_tells_groups_and_columns(run, table):
    code, out, err = run("info", table, "--json")
    summary = json.loads(out)
    assert summary["groups"] == {"p": 3, "q": 3}
    assert summary["columns"] == ["species", "site"]
    assert (code, err, summary["notes"]) == (0, "", [])
    assert "species, site (one of them: --group)" in run("info", table)[1]


@pytest.fixture
def unfinished(tmp_path):
    """A TPS file in which two specimens lack landmarks at the end."""
    digitised = [shape[: {1: 13, 4: 11}.get(k, 14)] for k, shape in enumerate(POINTS)]
    path = tmp_path / "wings.tps"
    path.write_text(format_tps(digitised, ID=NAMES))
    return path


def test_info_shows_unfinished_specimens_and_a_fit_names_all_of_them(run, unfinished, tmp_path):
    out, err = run.succeed("info", unfinished)
    assert "most have 14 landmarks): 'wing b' (13), 'wing e' (11)" in err
    assert "2, left out, as a fit does with --drop-incomplete" in out
    assert run.json("info", unfinished)["incomplete"] == ["wing b", "wing e"]
    for words in ((), ("--lenient",)):
        err = run.refuse("fit", unfinished, "-o", tmp_path / "out", *words)
        assert "'wing b'" in err
        assert "'wing e'" in err
        assert "(--drop-incomplete)" in err
    assert not (tmp_path / "out").exists()


def test_a_fit_goes_on_without_unfinished_specimens_on_request(run, unfinished, tmp_path):
    words = ("-o", tmp_path / "out", "--warp", "affine", "--drop-incomplete")
    _, err = run.succeed("fit", unfinished, *words)
    assert "Left out as unfinished" in err
    assert read_result(tmp_path / "out").n_shapes == 4


def markups(folder, name, labels, points, space="LPS"):
    folder.mkdir(exist_ok=True)
    text = format_markups(zip(labels, points, strict=True), space)
    (folder / f"{name}.mrk.json").write_text(text)


def test_deviating_labels_are_noted_once_and_matched_as_chosen(run, tmp_path):
    points = smooth_family(n=5, m=14, d=3, seed=2).shapes.points
    for k, shape in enumerate(points):
        labels = [f"point {letter}" for letter in "abcdefghijklmn"]
        if k == 3:
            labels = [f"LM_{letter}" for letter in "ABCDEFGHIJKLMN"]
        markups(tmp_path / "set", f"s{k}", labels, shape)
    code, out, _ = run("info", tmp_path / "set", "--json")
    summary = json.loads(out)
    assert (code, summary["landmarks"], summary["missing"]) == (0, 14, 0)
    (note,) = summary["notes"]
    assert "matched by position" in note
    assert "--match label" in note
    separate = run.json("info", tmp_path / "set", "--match", "label")
    assert separate["landmarks"] == 28
    together = run.json("info", tmp_path / "set", "--match", "position")
    assert (together["landmarks"], together["notes"]) == (14, [])


def test_a_set_without_a_common_landmark_is_told_so_in_words(run, tmp_path):
    points = smooth_family(n=4, m=9, d=3, seed=2).shapes.points
    for k, shape in enumerate(points):
        letters = "abcdefghi"[: 9 - k]
        markups(tmp_path / "set", f"s{k}", [f"{s}{'wxyz'[k]}" for s in letters], shape[: 9 - k])
    out, err = run.succeed("info", tmp_path / "set")
    assert "No landmark is seen in more than one shape." in err
    assert "--match position" in err
    assert "size (" not in out + err


def test_landmarks_at_a_code_are_all_named(run, tmp_path):
    points = smooth_family(n=5, m=9, d=3, seed=2).shapes.points.copy()
    points[1, [3, 5]] = points[4, 8] = [1000, 1000, -1000]
    for k, shape in enumerate(points):
        markups(tmp_path / "set", f"s{k}", list("abcdefghi"), shape)
    out, err = run.succeed("info", tmp_path / "set")
    assert "--missing -1000" in err
    assert "All coordinates -1000: missing?" in out
    summary = run.json("info", tmp_path / "set")
    likely_missing = {"code": -1000.0, "landmarks": {"s1": ["d", "f"], "s4": ["i"]}}
    assert summary["likely_missing"] == likely_missing
    assert not any(summary["suspicious"].values())  # the rest is judged without them
    heeded = run.json("info", tmp_path / "set", "--missing", "-1000")
    assert (heeded["missing"], heeded["notes"]) == (3, [])


def test_the_dimension_can_be_given(run, tmp_path):
    rng = np.random.default_rng(0)
    flat = (
        rng.normal(size=(1, 6, 2)) + rng.normal(size=(4, 1, 2)) + 0.01 * rng.normal(size=(4, 6, 2))
    )
    lines = [
        ",".join([f"s{k}", *map(repr, row)]) for k, row in enumerate(flat.reshape(4, 12).tolist())
    ]
    (tmp_path / "set.csv").write_text("\n".join(lines))
    summary = run.json("info", tmp_path / "set.csv")
    assert summary["dimension"] == 2
    assert "--dimension 3" in summary["notes"][0]
    stated = run.json("info", tmp_path / "set.csv", "--dimension", "2")
    assert (stated["dimension"], stated["notes"]) == (2, [])


def test_names_can_be_chosen(run, tmp_path):
    images = [f"p{k}.jpg" for k in range(6)]
    (tmp_path / "wings.tps").write_text(format_tps(POINTS, IMAGE=images, ID=range(6)))
    for choice, first in (("auto", "p0"), ("id", "0"), ("image", "p0"), ("file", "wings_1")):
        words = ("-o", tmp_path / choice, "--warp", "affine", "--names", choice)
        assert run("fit", tmp_path / "wings.tps", *words)[0] == 0
        assert read_result(tmp_path / choice).names[0] == first


def test_files_of_a_folder_that_were_not_read_are_noted(run, tmp_path, unfinished):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "wings.tps").write_text(unfinished.read_text().split("LM=13")[0] * 2)
    (folder / "README.md").write_text("Wings.")
    (folder / "w.jpg").write_bytes(b"\xff\xd8")
    summary = run.json("info", folder, "--names", "file")
    assert summary["not_read"] == ["README.md", "w.jpg"]
    assert "2 files were passed over, without landmarks: 'README.md', 'w.jpg'." in summary["notes"]


def test_convert_notes_what_is_left_out_and_keeps_what_it_can(run, table, tmp_path):
    _, err = run.succeed("convert", table, tmp_path / "out.tps")
    assert "has no place for it: groups, the columns 'species', 'site'." in err
    code, _, err = run("convert", table, tmp_path / "out.csv", "--group", "site")
    assert (code, err) == (0, "")
    again = defgpa.read_shapes(tmp_path / "out.csv", group="site")
    assert again.metadata["groups"] == ("north",) * 4 + ("south",) * 2
    assert again.metadata["variables"][1] == {"species": "q", "site": "north"}
    np.testing.assert_array_equal(again.points, POINTS)


@pytest.mark.parametrize("command", ["info", "fit", "compare", "tune", "register", "convert"])
def test_every_command_that_reads_takes_the_same_options(run, command):
    out = run(command, "--help")[1]
    for option in ("match", "dimension", "names", "group", "drop-incomplete", "drop", "mirror"):
        assert f"--{option} " in out


def test_register_goes_by_position_on_request(run, tmp_path):
    points = smooth_family(n=6, m=14, d=3, seed=2).shapes.points
    for k, shape in enumerate(points):
        labels = [f"{'pq'[k > 4]} {letter}" for letter in "abcdefghijklmn"]
        markups(tmp_path / ("new" if k > 4 else "set"), f"s{k}", labels, shape)
    assert run("fit", tmp_path / "set", "-o", tmp_path / "fit", "--warp", "affine")[0] == 0
    words = ("register", tmp_path / "fit" / "result.npz", tmp_path / "new", "-o", tmp_path / "out")
    err = run.refuse(*words)
    assert "in the same order: --match position" in err
    code, _, err = run(*words, "--match", "position")
    assert (code, err) == (0, "")
    registered = defgpa.read_shapes(tmp_path / "out" / "registered.csv")
    assert registered.landmarks == defgpa.load(tmp_path / "fit" / "result.npz").shapes.landmarks


def written_tps(path, points):
    path.write_text(format_tps(points, ID=[f"w{k}" for k in range(len(points))]))


def test_info_shows_the_sets_of_a_folder_that_holds_several(run, tmp_path):
    (tmp_path / "wings").mkdir()
    for side, m in (("fore", 12), ("hind", 14)):
        written_tps(tmp_path / "wings" / f"{side}.tps", POINTS[:, :m])
    out, err = run.succeed("info", tmp_path / "wings")
    assert [line.split()[-2:] for line in out.splitlines() if ".tps" in line] == [
        ["6", "12"],
        ["6", "14"],
    ]
    assert "read them one by one" in err
    sets = run.json("info", tmp_path / "wings")["sets"]
    assert [(file["shapes"], file["landmarks"]) for file in sets] == [(6, 12), (6, 14)]
    err = run.refuse("fit", tmp_path / "wings", "-o", tmp_path / "out")
    assert "fore.tps has 12 landmarks" in err


def test_info_says_once_what_many_specimens_have_in_common(run, tmp_path):
    points = np.concatenate([POINTS, POINTS + 1.0, 1000 * POINTS, POINTS])
    written_tps(tmp_path / "wings.tps", np.concatenate([points, POINTS * 1.01, POINTS * 1.02]))
    _, out, _ = run("info", tmp_path / "wings.tps")
    assert out.count("usual size") == 1
    assert "6 shapes   737 times to 1,145 times the usual size, such as 'w12'" in out
    assert out.count("the very coordinates") == 1
    summary = run.json("info", tmp_path / "wings.tps")["suspicious"]
    assert len(summary["other_size"]) == len(summary["repeated"]) == 6


def test_landmarks_of_several_specimens_that_went_wrong_are_one_note(run, tmp_path):
    family = smooth_family(n=12, m=30, d=2, seed=5).shapes.points.copy()
    for k, j in ((1, 4), (5, 9), (8, 20)):
        family[k, j] += 5 * np.ptp(family[k], axis=0)
    written_tps(tmp_path / "wings.tps", family)
    words = ("-o", tmp_path / "out", "--no-robust", "--smoothing", "1e-3")
    _, err = run.succeed("fit", tmp_path / "wings.tps", *words)
    notes = [line for line in err.splitlines() if "far from where" in line]
    assert len(notes) == 1
    assert "'5' of 'w1', '10' of 'w5', '21' of 'w8'" in notes[0]
    findings = json.loads((tmp_path / "out" / "summary.json").read_text())["findings"]
    misplaced = next(item for item in findings if item["problem"] == "misplaced-landmark")
    assert [piece["shapes"] for piece in misplaced["parts"]] == [["w1"], ["w5"], ["w8"]]


@pytest.mark.parametrize(
    ("weight", "options", "problem"),
    [
        ("-1", (), "The weight of landmark 'q' of 'a' ({path}) is -1: weights are 0 or positive."),
        ("good", (), "{path}, line 3: expected a number; found 'good'."),
        ("1", ("--weights", "quality"), "{path} has no column 'quality' with a weight"),
    ],
)
def test_bad_weights_are_one_sentence(run, tmp_path, weight, options, problem):
    path = tmp_path / "set.csv"
    path.write_text(f"shape,landmark,x,y,weight\na,p,1,2,1\na,q,3,4,{weight}\na,r,5,1,1\n")
    err = run.refuse("info", path, *options)
    assert problem.format(path=path) in err
    assert err.count("Error") == 1
