"""Kill commands from outside, at random moments: a result must be all old or all new.

    python tests/cli/kill.py --kills 20
    python tests/cli/kill.py --kills 20 --command slide,report

Every command writes over an older result of its own and is ended by SIGKILL or SIGINT, half the
time at any moment, half the time as soon as it is seen to write. Each place that it writes (a file
or a folder) must then be what it was or what the command makes of it, and running the command
again must succeed and leave nothing else. Printed for each command: kills, how many left the old
result, how many the new one, and how many came while something was being written.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import defgpa
import defgpa.cli._output as output
from defgpa.cli._app import run
from defgpa.datasets import smooth_family
from defgpa.edits import Edit, write_edits

State = dict[str, str]
TREE = "((s0:1,s1:1):1,((s2:1,s3:1):1,((s4:1,s5:1):1,(s6:1,s7:1):1):1):1);"
STATISTICS = ("--permutations", "19", "-o", "out")
COMMANDS = {
    "fit": ("fit", "{k}.npz", "--report", "-o", "out"),
    "test": ("test", "{k}.npz", "--allometry", "--report", *STATISTICS),
    "pca": ("pca", "{k}.npz", "-o", "out"),
    "covary": ("covary", "{k}.npz", "--modules", "a=1-6,b=7-12", *STATISTICS),
    "classify": ("classify", "{k}.npz", "--data", "groups.csv", "--group", "group", "-o", "out"),
    "disparity": ("disparity", "{k}.npz", "--data", "groups.csv", "--group", "group", *STATISTICS),
    "symmetry": ("symmetry", "{k}.npz", "--pairs", "1-7,2-8,3-9,4-10,5-11,6-12", *STATISTICS),
    "phylo": ("phylo", "{k}.npz", "--tree", "tree{k}.nwk", *STATISTICS),
    "complete": ("complete", "gaps{k}.npz", "-o", "out"),
    "register": ("register", "result0.npz", "{k}.npz", "-o", "out"),
    "export": ("export", "result{k}.npz", "--to", "morphoj", "-o", "out"),
    "convert to a folder": ("convert", "{k}.npz", "out", "--to", "pts"),
    "convert to a file": ("convert", "{k}.npz", "out.tps"),
    "slide": ("slide", "{k}.npz", "--curve", "2..9", "-o", "out.tps", "--figures", "out"),
    "apply": ("apply", "result0.npz", "s{k}", "points.csv", "-o", "out.csv"),
    "compare": ("compare", "{k}.npz", "-o", "out.md"),
    "report": ("report", "result{k}.npz", "-o", "out.html"),
    "demo": ("demo", "-o", "out"),
    "edits of the app": (),
}


def write_inputs() -> None:
    """Write two sets of shapes and their fits, with groups, a tree and points."""
    names = [f"s{k}" for k in range(8)]
    for k in range(2):
        points = smooth_family(n=8, m=12, d=2, bend=0.1, noise=0.01, seed=k).shapes.points.copy()
        shapes = defgpa.Shapes(points[: 8 - k], names=names[: 8 - k])
        defgpa.write_shapes(shapes, f"{k}.npz")
        alignment = defgpa.EuclideanGPA(scaling=True).fit(shapes).alignment_
        defgpa.save(alignment, f"result{k}.npz")
        points[2, 3] = points[4, 5] = np.nan
        defgpa.write_shapes(defgpa.Shapes(points[: 8 - k], names=names[: 8 - k]), f"gaps{k}.npz")
    rows = (f"{name},{'ab'[k % 2]}" for k, name in enumerate(names))
    Path("groups.csv").write_text("\n".join(["id,group", *rows, ""]))
    Path("tree0.nwk").write_text(TREE)
    Path("tree1.nwk").write_text(TREE.replace("(s6:1,s7:1)", "s6"))
    Path("points.csv").write_text("x,y\n" + 200 * "0.1,0.2\n0.3,-0.1\n")


def work(name: str, k: int) -> int:
    """Run a command on one of the two sets; return its exit code."""
    if not COMMANDS[name]:
        edits = [Edit("reflect", f"s{j}", reason=f"set {k}") for j in range(1000)]
        write_edits(Path("out.json"), edits)
        return 0
    return run([word.format(k=k) for word in (*COMMANDS[name], "-q")])


def start(name: str, k: int) -> int:
    """Run a command in a process of its own; return its number."""
    with Path("words.txt").open("w") as words:
        # a signal waits until the process can answer it
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.dup2(words.fileno(), 1)
            os.dup2(words.fileno(), 2)
            code = 1
            with contextlib.suppress(KeyboardInterrupt):
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
                code = work(name, k)
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return child


def finish(name: str, k: int) -> float:
    """Run a command to its end; return how many seconds it takes."""
    begin = time.perf_counter()
    _, status = os.waitpid(start(name, k), 0)
    if status:
        raise SystemExit(f"{name}: {Path('words.txt').read_text()}")
    return time.perf_counter() - begin


def list_results() -> Iterator[Path]:
    """List what a command wrote, or was writing."""
    return (path for path in Path().iterdir() if path.name.startswith(("out", ".")))


def hash_results() -> dict[str, State]:
    """Return the hash of every file of each place that a command writes."""
    return {
        place.name: {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in ([place] if place.is_file() else sorted(place.rglob("*")))
            if path.is_file()
        }
        for place in list_results()
    }


def remove_results() -> None:
    """Remove what a command wrote, and what it left."""
    for place in list_results():
        shutil.rmtree(place) if place.is_dir() else place.unlink()


def is_writing(before: set[Path]) -> bool:
    """Return whether something has appeared beside the old result."""
    return any(place not in before for place in list_results())


def is_new(state: State, old: State, new: State, changing: set[str]) -> bool | None:
    """Return whether a place is as the command leaves it, or as it was; None for a mixture."""
    if state == old:
        return False
    if state.keys() != new.keys():
        return None
    is_changed = all(
        state[name] != old.get(name) if name in changing else state[name] == new[name]
        for name in new
    )
    return True if is_changed else None


def kill(name: str, n_kills: int, rng: random.Random) -> tuple[str, list[str]]:
    """Kill a command so many times; return what came of it, and what is wrong."""
    remove_results()
    seconds = max(finish(name, 1), finish(name, 1))
    new = hash_results()
    finish(name, 1)
    again = hash_results()
    changing = {  # such as the time in a page
        path for place in new for path in new[place] if new[place][path] != again[place][path]
    }
    remove_results()
    if name != "demo":  # which has one result alone
        finish(name, 0)
    old = hash_results()
    shutil.rmtree("saved", ignore_errors=True)
    Path("saved").mkdir()
    for place in list_results():
        (shutil.copytree if place.is_dir() else shutil.copy2)(place, Path("saved", place.name))
    faults: list[str] = []
    n_old = n_new = n_writing = 0
    for number in range(n_kills):
        remove_results()
        for place in Path("saved").iterdir():
            (shutil.copytree if place.is_dir() else shutil.copy2)(place, place.name)
        before, end = set(list_results()), time.perf_counter() + rng.uniform(0, seconds)
        waits_for_writing = number % 2 == 1
        child, begun = start(name, 1), False
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if is_writing(before) if waits_for_writing else time.perf_counter() > end:
                break
        else:
            child = 0
        if child:
            time.sleep(rng.uniform(0, 0.02) if waits_for_writing else 0)
            begun = is_writing(before)
            n_writing += begun
            signal_ = rng.choice((signal.SIGKILL, signal.SIGINT))
            os.kill(child, signal_)
            os.waitpid(child, 0)
        else:
            signal_ = signal.SIGCONT
        words = Path("words.txt").read_text()
        state = hash_results()
        outcomes = [
            is_new(state.get(place, {}), old.get(place, {}), new[place], changing) for place in new
        ]
        where = f"{name}, kill {number} by {signal_.name}"
        if None in outcomes:
            faults.append(f"{where}: a mixture of old and new")
        if "Traceback" in words:
            faults.append(f"{where}: {words[-300:]}")
        if signal_ != signal.SIGKILL and state.keys() - new.keys():
            faults.append(f"{where}: left {sorted(state.keys() - new.keys())}")
        n_new, n_old = n_new + (True in outcomes), n_old + (True not in outcomes)
        if not begun:  # nothing that could be in the way
            continue
        finish(name, 1)
        after = hash_results()
        if after.keys() != new.keys() or any(
            is_new(after[place], {}, new[place], changing) is None for place in new
        ):
            faults.append(f"{where}: running it again left {sorted(after)}")
    counts = f"{n_kills} kills: {n_old} old, {n_new} new, {n_writing} while it wrote"
    return f"{name:20} {counts}, {len(faults)} faults\n", faults


def main(say: Callable[[str], object] = sys.stdout.write) -> int:
    """Kill all commands, or some, and return whether a result was mixed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--command", help="names of commands, separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--place", type=Path, help="a folder to work in, such as a full disk")
    options = parser.parse_args()
    names = options.command.split(",") if options.command else list(COMMANDS)
    output.find_spec = lambda name: None if name == "matplotlib" else find_spec(name)  # too slow
    warnings.simplefilter("ignore")
    all_faults: list[str] = []
    with tempfile.TemporaryDirectory(dir=options.place) as folder:
        os.chdir(folder)
        write_inputs()
        for name in names:
            counts, faults = kill(name, options.kills, random.Random(f"{name}-{options.seed}"))
            say(counts)
            sys.stdout.flush()
            all_faults += faults
        os.chdir("/")
    say("".join(f"{fault}\n" for fault in all_faults))
    return min(len(all_faults), 1)


if __name__ == "__main__":
    sys.exit(main())
