"""Commands that write several files leave all of the old ones or all of the new."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import defgpa
from defgpa.datasets import smooth_family

SCRIPT = '''
import hashlib, os, sys
from pathlib import Path
sys.path[:0] = {path!r}
import defgpa.cli._output as output
from defgpa.cli._app import run

output.find_spec = lambda name: None  # no pictures: they would only take time
top, out = Path({top!r}), Path({top!r}) / "out"
TOUCHING = ("open", "os.rename", "os.link", "os.mkdir", "os.rmdir", "os.remove", "os.chmod",
            "os.scandir", "shutil.rmtree", "ctypes.dlsym")
left = None
def kill_later(event, arguments):
    """End the process after so many steps that touch the folder of the results."""
    global left
    if left is None or event not in TOUCHING:
        return
    place = arguments[0]
    if isinstance(place, (str, bytes, Path)) and not os.fsdecode(place).startswith(str(top)):
        return
    left -= 1
    if left < 0:
        os._exit(9)
sys.addaudithook(kill_later)

def state():
    return {{str(p.relative_to(out)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in out.rglob("*") if p.is_file()}}

old_words, new_words = {old!r}, {new!r}
assert run(new_words) == 0
new = state()
assert run(old_words) == 0
old = state()
assert old != new
outcomes = []
for k in range(1000):
    if state() != old:
        assert run(old_words) == 0 and state() == old
    child = os.fork()
    if child == 0:
        left = k
        os._exit(run(new_words))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert state() in (old, new), (k, sorted(state()))
    outcomes.append(state() == new)
    if code == 0:
        break
    assert code == 9, code
print((len(outcomes), outcomes[0], outcomes[-1]))
'''


@pytest.fixture
def family(tmp_path):
    """Return files of six and of four shapes, and the fit of the six."""
    points = smooth_family(n=6, m=12, d=2, bend=0.1, seed=1).shapes.points
    names = [f"s{k}" for k in range(6)]
    for count in (6, 4):
        shapes = defgpa.Shapes(points[:count], names=names[:count])
        defgpa.write_shapes(shapes, tmp_path / f"{count}.npz")
        alignment = defgpa.EuclideanGPA(scaling=True).fit(shapes).alignment_
        defgpa.save(alignment, tmp_path / f"result{count}.npz")
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            ["test", "6.npz", "--allometry", "--sizes", "1,2", "--permutations", "9", "-q"],
            ["test", "4.npz", "--allometry", "--permutations", "9", "-q"],
        ),
        (
            ["export", "result6.npz", "--to", "morphoj", "-q"],
            ["export", "result4.npz", "--to", "morphoj", "-q"],
        ),
        (
            ["convert", "6.npz", "OUT", "--to", "pts", "-q"],
            ["convert", "4.npz", "OUT", "--to", "pts", "-q"],
        ),
    ],
    ids=["test", "export", "convert"],
)
def test_killed_command_leaves_one_result_whole(family, old, new):
    def place(words):
        placed = [str(family / w) if w.endswith(".npz") else w for w in words]
        placed = [str(family / "work" / "out") if w == "OUT" else w for w in placed]
        return placed if "OUT" in words else [*placed, "-o", str(family / "work" / "out")]

    (family / "work").mkdir()
    script = SCRIPT.format(path=sys.path, top=str(family / "work"), old=place(old), new=place(new))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    n_steps, first_is_new, last_is_new = ast.literal_eval(done.stdout.splitlines()[-1])
    assert n_steps > 5
    assert (first_is_new, last_is_new) == (False, True)
    left = [path.name for path in (family / "work").iterdir()]
    assert left == ["out"]


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_commands_killed_from_outside_leave_one_result_whole():
    script = Path(__file__).with_name("kill.py")
    words = ("--kills", "2", "--command", "convert to a folder,edits of the app")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, script, *words],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.count("2 kills") == 2


def test_test_leaves_the_files_of_the_fit_in_the_same_folder(run, family):
    folder = family / "shared"
    assert run("fit", family / "6.npz", "-o", folder, "--method", "rigid", "-q")[0] == 0
    words = ("test", folder / "result.npz", "--allometry", "--permutations", 9, "-o", folder, "-q")
    assert run(*words, "--sizes", "1,2")[0] == 0
    assert (folder / "predicted.csv").exists()
    assert run(*words)[0] == 0
    assert not (folder / "predicted.csv").exists()  # of the last test alone
    assert (folder / "result.npz").exists()
    assert "anova" not in json.loads((folder / "test.json").read_text())
    assert json.loads((folder / "summary.json").read_text())["figures"]["method"] == "rigid"


def test_converted_folder_reads_back_without_its_manifest(run, family):
    assert run("convert", family / "6.npz", family / "pts", "--to", "pts")[0] == 0
    out, err = run.succeed("info", family / "pts", "--json")
    assert json.loads(out)["shapes"] == 6
    assert "passed over" not in err
    err = run.refuse("convert", family / "pts", family / "pts", "--to", "fcsv")
    assert "would overwrite the input" in " ".join(err.split())


def test_interruption_names_the_outputs_that_are_complete(run, tmp_path, monkeypatch):
    import defgpa.cli._slide as slide_command

    angles = np.linspace(0, 3, 13) + 0.05 * np.random.default_rng(0).normal(size=(6, 13))
    points = np.stack([np.cos(angles), np.sin(angles)], axis=2)
    np.savez(tmp_path / "arcs.npz", points=points)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(slide_command, "_format_distances", interrupt)
    words = ("slide", tmp_path / "arcs.npz", "--curve", "2..12", "-o", tmp_path / "slid.tps")
    code, _, err = run(*words, "--figures", tmp_path / "figures")
    assert code == 1
    assert f"Stopped. Complete before that: {tmp_path / 'slid.tps'}." in err
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize("command", ["info", "convert", "fit", "register", "slide"])
def test_control_characters_never_reach_the_terminal(run, tmp_path, command):
    points = smooth_family(n=6, m=14, d=2, bend=0.05, noise=0.01, seed=1).shapes.points.copy()
    points[2, :, 0] *= -1
    points[3, 5] = points[3, 5] + 30
    points[4, :3] = np.nan
    names = [f"s{k}\x1b[2J\x9b31m\u202e" for k in range(6)]
    shapes = defgpa.Shapes(points, names=names)
    file = tmp_path / "odd\x1b]0;x\x07.npz"
    defgpa.write_shapes(shapes, file)
    with pytest.warns(defgpa.DefgpaWarning):
        defgpa.save(defgpa.EuclideanGPA().fit(shapes).alignment_, tmp_path / "result.npz")
    words = {
        "info": ["info", file],
        "convert": ["convert", file, tmp_path / "out\x1b[1m.tps"],
        "fit": ["fit", file, "-o", tmp_path / "out\x1b[1m", "--method", "rigid"],
        "register": ["register", tmp_path / "result.npz", file, "-o", tmp_path / "new"],
        "slide": ["slide", file, "--curve", "1..9", "-o", tmp_path / "slid.npz"],
    }[command]
    out, err = run.succeed(*words)
    shown = out + err
    assert "\\x1b" in shown
    for words in (["info", "no\x1b[2Jfile"], ["fit", file, "--pose", "\x1b[2J"], ["\x1b[2J"]):
        code, out, err = run(*words)
        assert code == 2
        shown += out + err
    assert not set(shown) & {"\x1b", "\x07", "\x9b", "\u202e"}
