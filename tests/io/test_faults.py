"""Whatever fails while a fit writes its result over an old one, one of them is there, whole."""

import ast
import signal
import subprocess
import sys

import pytest

import defgpa
from support import smooth_family

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork, no limits")

SCRIPT = '''
import errno, hashlib, os, resource, signal, sys
from pathlib import Path
sys.path[:0] = {path!r}
import plotly.offline
from defgpa.cli._app import run

plotly.offline.get_plotlyjs = lambda: ""  # 5 MB that would only take time here
top = Path({top!r})
TOUCHING = ("open", "os.rename", "os.link", "os.mkdir", "os.rmdir", "os.remove", "os.chmod",
            "os.scandir", "shutil.rmtree", "ctypes.dlsym")
left, fault = None, None
def failing(event, arguments):
    """After so many steps that touch the disk, each meets the fault."""
    global left
    if left is None or event not in TOUCHING:
        return
    place = arguments[0]
    if isinstance(place, (str, bytes, Path)) and not os.fsdecode(place).startswith(str(top)):
        return
    left -= 1
    if left < 0:
        fault()
sys.addaudithook(failing)

def full():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

def killed():
    os._exit(9)

NEW = ("polynomial", "--smoothing", "0.01", "--report")  # to choose it takes longer than the rest
def fit(warp, *more):
    return run(["fit", {wings!r}, "-o", str(top / "out"), "-q", "--warp", warp, *more])

def state():
    return {{p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (top / "out").iterdir()}}

def spoiled(prepare):
    """How a run ends, its words, and what it leaves, after ``prepare`` in its process."""
    global left
    if state() != old:
        assert fit("affine") == 0
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 2)
        prepare()
        code = fit(*NEW)
        sys.stderr.flush()
        os._exit(code)
    os.close(writing)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(reading) as words:
        return code, " ".join(words.read().split()), state()

def after(k, met):
    global left, fault
    left, fault = k, met

def no_file_longer_than(k, action):
    signal.signal(signal.SIGXFSZ, action)
    resource.setrlimit(resource.RLIMIT_FSIZE, (k, k))

assert fit(*NEW) == 0
new = state()
longest = max(p.stat().st_size for p in (top / "out").iterdir())
assert fit("affine") == 0
old = state()
assert set(new) - set(old) == {{"report.html"}} and old["result.npz"] != new["result.npz"]

def refused():
    for k in range(10000):
        code, words, found = spoiled(lambda: after(k, full))
        assert found in (old, new), (k, sorted(found))
        if code == 0:
            return k
        assert code == 1, (k, code, words)
        assert words.startswith("Error: ") and words.count(". ") == 0, (k, words)
        assert "No space left on device" in words and ".partial" not in words, (k, words)
        if found == new:  # only that the old one is cleared away was refused
            return k

def dead():
    outcomes = []
    for k in range(10000):
        code, _, found = spoiled(lambda: after(k, killed))
        assert found in (old, new), (k, sorted(found))
        outcomes.append(found == new)
        if code == 0:
            return len(outcomes), sum(outcomes)
        assert code == 9, code

def too_long(action):
    ends = set()
    for k in (0, 1, 1000, longest // 2, longest - 1):
        code, words, found = spoiled(lambda: no_file_longer_than(k, action))
        assert found == old, (k, sorted(found))
        ends.add((code, "cannot be written: File too large." in words))
    return ends

ends = [refused(), too_long(signal.SIG_IGN), too_long(signal.SIG_DFL), dead()]
assert fit("affine") == 0
assert sorted(p.name for p in top.iterdir()) == ["out"]  # what a run left is cleared by the next
print(repr(ends))
'''


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """How runs end that are refused at each step, write too much, or are killed at each step."""
    folder = tmp_path_factory.mktemp("faults")
    top, wings = folder / "top", folder / "wings.tps"
    top.mkdir()
    defgpa.write_shapes(defgpa.Shapes(smooth_family(n=4, m=15, seed=3)), wings)
    path = [p for p in sys.path if p]
    script = SCRIPT.format(path=path, top=str(top), wings=str(wings))
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ast.literal_eval(ran.stdout)


def test_a_disk_that_refuses_from_any_step_on_is_one_sentence(ends):
    assert ends[0] > 30  # steps


def test_a_write_that_ends_anywhere_in_a_file_is_one_sentence(ends):
    assert ends[1] == {(1, True)}


def test_a_run_that_the_system_kills_within_a_write_leaves_the_old_result(ends):
    assert ends[2] == {(-signal.SIGXFSZ, False)}


def test_a_fit_killed_at_any_step_leaves_the_old_or_the_new_result_whole(ends):
    steps, after = ends[3]
    assert steps > 30  # places to be killed at
    assert 1 < after < steps / 2  # some of them after the folders changed places
