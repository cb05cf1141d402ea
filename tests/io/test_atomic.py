"""Whatever kills a run, its folder holds all of the old result or all of the new one."""

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from defgpa.errors import FormatError
from defgpa.io import atomic
from defgpa.io.atomic import list_folder, replace_file, replace_folder, write_text


def written(folder, files):
    """A run that writes these files and lists them."""
    with replace_folder(folder) as partial:
        for name, text in files.items():
            write_text(partial / name, text)
        listed = json.dumps({"files": [*list_folder(partial), "summary.json"]})
        write_text(partial / "summary.json", listed)
    return partial


def texts(folder):
    """All files of a folder but the summary, hidden ones too."""
    return {
        name: (folder / name).read_text() for name in list_folder(folder) if "summary" not in name
    }


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupted(context, error):
    """Some writing, then an error."""
    with context as place:
        write_text(place / "half" if place.is_dir() else place, "half")
        raise error


OLD = {"result.npz": "old", "aligned/a.pts": "old a", "report.html": "old page"}
NEW = {"result.npz": "new", "aligned/b.pts": "new b"}


class TestRunFolder:
    def test_a_new_folder_is_made_with_those_above_it(self, tmp_path):
        written(tmp_path / "deep" / "down" / "out", NEW)
        assert texts(tmp_path / "deep" / "down" / "out") == NEW

    def test_what_the_last_run_wrote_goes_and_what_others_keep_there_stays(self, tmp_path):
        written(tmp_path / "out", OLD)
        (tmp_path / "out" / "aligned" / "notes.txt").write_text("mine")
        (tmp_path / "out" / "link").symlink_to("nowhere")
        written(tmp_path / "out", NEW)
        (tmp_path / "out" / "link").unlink()
        assert texts(tmp_path / "out") == {**NEW, "aligned/notes.txt": "mine"}
        assert [p.name for p in tmp_path.iterdir()] == ["out"]

    def test_a_folder_that_only_the_last_run_used_goes(self, tmp_path):
        written(tmp_path / "out", OLD)
        written(tmp_path / "out", {"a.csv": "1"})
        assert not (tmp_path / "out" / "aligned").exists()

    def test_summaries_that_name_files_with_their_folder_are_understood(self, tmp_path):
        (tmp_path / "out").mkdir()
        for name in ("report.html", "notes.txt"):
            (tmp_path / "out" / name).write_text(name)
        listed = json.dumps({"files": ["some/out/report.html", "out\\gone.csv"]})
        (tmp_path / "out" / "summary.json").write_text(listed)
        written(tmp_path / "out", NEW)
        assert texts(tmp_path / "out") == {**NEW, "notes.txt": "notes.txt"}

    @pytest.mark.parametrize("summary", ["", "[]", '{"files": 3}', '{"files": [3]}', "\xff", "{}"])
    def test_a_summary_that_is_not_ours_removes_nothing(self, tmp_path, summary):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine").write_text("mine")
        (tmp_path / "out" / "summary.json").write_bytes(summary.encode("latin-1"))
        written(tmp_path / "out", NEW)
        assert texts(tmp_path / "out") == {**NEW, "mine": "mine"}

    def test_an_error_leaves_everything_as_it_was(self, tmp_path):
        written(tmp_path / "out", OLD)
        with pytest.raises(KeyboardInterrupt):
            interrupted(replace_folder(tmp_path / "out"), KeyboardInterrupt())
        assert texts(tmp_path / "out") == OLD
        assert [p.name for p in tmp_path.iterdir()] == ["out"]

    def test_an_error_in_a_first_run_leaves_nothing(self, tmp_path):
        with pytest.raises(ZeroDivisionError), replace_folder(tmp_path / "out"):
            1 / 0  # noqa: B018
        assert list(tmp_path.iterdir()) == []

    def test_leftovers_are_removed_but_not_those_of_a_run_that_goes_on(self, tmp_path):
        leftover = tmp_path / ".out-0123abcd.partial"
        leftover.mkdir()
        (leftover / "half").write_text("")
        another = tmp_path / ".out-2-0123abcd.partial"  # of a folder out-2
        another.mkdir()
        with replace_folder(tmp_path / "out") as first:
            (first / "a").write_text("1")
            written(tmp_path / "out", NEW)
            assert first.is_dir()
        assert texts(tmp_path / "out") == {"a": "1"}
        assert sorted(p.name for p in tmp_path.iterdir()) == [another.name, "out"]

    def test_a_link_stays_one(self, tmp_path):
        written(tmp_path / "real", OLD)
        (tmp_path / "out").symlink_to("real")
        written(tmp_path / "out", NEW)
        assert (tmp_path / "out").is_symlink()
        assert texts(tmp_path / "real") == NEW

    def test_modes_are_kept(self, tmp_path):
        written(tmp_path / "out", OLD)
        (tmp_path / "out" / "result.npz").chmod(0o600)
        (tmp_path / "out" / "sub").mkdir(mode=0o750)
        (tmp_path / "out" / "sub" / "mine").write_text("")
        (tmp_path / "out").chmod(0o2770)
        partial = written(tmp_path / "out", NEW)
        modes = {name: mode_of(tmp_path / "out" / name) for name in (".", "result.npz", "sub")}
        assert modes == {".": 0o2770, "result.npz": 0o600, "sub": 0o750}
        assert not partial.exists()

    def test_groups_of_folders_are_kept(self, tmp_path):
        written(tmp_path / "out", OLD)
        (tmp_path / "out" / "sub").mkdir()
        (tmp_path / "out" / "sub" / "mine").write_text("")
        groups = [12345] if os.geteuid() == 0 else os.getgroups()
        group = next((g for g in groups if g != tmp_path.stat().st_gid), None)
        if group is None:
            pytest.skip("there is one group only")
        for folder in (tmp_path / "out", tmp_path / "out" / "sub"):
            os.chown(folder, -1, group)
        written(tmp_path / "out", NEW)
        assert (tmp_path / "out").stat().st_gid == group
        assert (tmp_path / "out" / "sub").stat().st_gid == group

    def test_files_of_others_are_not_copied(self, tmp_path):
        written(tmp_path / "out", OLD)
        mine = tmp_path / "out" / "huge.nii"
        mine.write_text("")
        before = mine.stat().st_ino
        written(tmp_path / "out", NEW)
        assert mine.stat().st_ino == before

    def test_files_of_others_are_copied_where_a_disk_has_no_links(self, tmp_path, monkeypatch):
        def refused(*_, **__):
            raise PermissionError(errno.EPERM, "no links here")

        monkeypatch.setattr(os, "link", refused)
        self.test_what_the_last_run_wrote_goes_and_what_others_keep_there_stays(tmp_path)

    def test_the_folder_one_stands_in_is_filled_in_place(self, tmp_path, monkeypatch):
        written(tmp_path / "out", OLD)
        (tmp_path / "out" / "mine").write_text("mine")
        monkeypatch.chdir(tmp_path / "out")
        ground = Path.cwd().stat().st_ino
        written(".", NEW)
        assert texts(tmp_path / "out") == {**NEW, "mine": "mine"}
        assert Path.cwd().stat().st_ino == ground
        assert sorted(os.listdir()) == ["aligned", "mine", "result.npz", "summary.json"]  # noqa: PTH208

    def test_a_folder_in_a_read_only_one_is_filled_in_place(self, tmp_path, monkeypatch):
        written(tmp_path / "top" / "out", OLD)
        allowed = os.access
        monkeypatch.setattr(
            os, "access", lambda p, mode: Path(p).name != "top" and allowed(p, mode)
        )
        ground = (tmp_path / "top" / "out").stat().st_ino
        written(tmp_path / "top" / "out", NEW)
        assert texts(tmp_path / "top" / "out") == NEW
        assert (tmp_path / "top" / "out").stat().st_ino == ground

    def test_a_hostile_summary_reaches_nothing_outside(self, tmp_path, monkeypatch):
        (tmp_path / "out").mkdir()
        (tmp_path / "secret").write_text("precious")
        (tmp_path / "out" / "way").symlink_to("..")
        hostile = {"files": ["../secret", "way/secret", str(tmp_path / "secret")]}
        (tmp_path / "out" / "summary.json").write_text(json.dumps(hostile))
        written(tmp_path / "out", NEW)
        (tmp_path / "out" / "summary.json").write_text(json.dumps(hostile))
        monkeypatch.chdir(tmp_path / "out")
        written(tmp_path / "out", NEW)
        assert (tmp_path / "secret").read_text() == "precious"

    def test_where_nothing_can_be_written_it_says_so(self, tmp_path, monkeypatch):
        def refused(*_, **__):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        monkeypatch.setattr(os, "mkdir", refused)
        with pytest.raises(FormatError, match=r"out cannot be written: Read-only file system\.$"):
            written(tmp_path / "out", NEW)

    def test_a_file_in_its_place_is_named(self, tmp_path):
        (tmp_path / "out").write_text("")
        with pytest.raises(FormatError, match="out cannot be written: it is a file, not a folder"):
            written(tmp_path / "out", NEW)

    def test_a_full_disk_is_one_sentence(self, tmp_path):
        written(tmp_path / "out", OLD)
        with pytest.raises(FormatError, match=r"out cannot be written: No space left on device\."):
            interrupted(replace_folder(tmp_path / "out"), FULL)
        assert texts(tmp_path / "out") == OLD


class TestWithoutExchange:
    """On Windows and on some network disks two folders change places in three steps."""

    @pytest.fixture(autouse=True)
    def _no_exchange(self, monkeypatch):
        def refused(*_):
            raise NotImplementedError

        monkeypatch.setattr(atomic, "_exchange_atomically", refused)

    def test_runs_without_exchange_leave_the_same_result(self, tmp_path):
        written(tmp_path / "out", OLD)
        written(tmp_path / "out", NEW)
        assert texts(tmp_path / "out") == NEW
        assert [p.name for p in tmp_path.iterdir()] == ["out"]

    def test_an_error_between_the_steps_puts_the_old_one_back(self, tmp_path, monkeypatch):
        written(tmp_path / "out", OLD)
        rename = Path.rename

        def failing(self, goal):
            if self.suffix == ".partial":
                raise PermissionError(errno.EACCES, "in use")
            return rename(self, goal)

        monkeypatch.setattr(Path, "rename", failing)
        with pytest.raises(FormatError, match="in use"):
            written(tmp_path / "out", NEW)
        assert texts(tmp_path / "out") == OLD

    def test_the_next_run_brings_back_what_was_aside(self, tmp_path):
        written(tmp_path / "out", OLD)
        (tmp_path / "out").rename(tmp_path / ".out-0123abcd.old")
        with pytest.raises(ZeroDivisionError), replace_folder(tmp_path / "out"):
            1 / 0  # noqa: B018
        assert texts(tmp_path / "out") == OLD


ENDED_ANYWHERE = """
import json, os, sys
from pathlib import Path
sys.path[:0] = {path!r}
from test_atomic import NEW, OLD, texts, written
from defgpa.io.atomic import list_folder

TOUCHING = ("open", "os.rename", "os.link", "os.mkdir", "os.rmdir", "os.remove", "os.chmod",
            "os.chown", "os.scandir", "shutil.rmtree", "ctypes.dlsym")
left = None
def end_run(event, _):
    global left
    if left is not None and event in TOUCHING:
        if left == 0:
            left = None
            {ending}
        left -= 1
sys.addaudithook(end_run)

def run_and_die(top, k):
    global left
    left = k
    try:
        written(top / "out", NEW)
    except KeyboardInterrupt:
        left = None
        os._exit(9)
    os._exit(0)

outcomes = []
for k in range(10000):
    top = Path({top!r}) / str(k)
    written(top / "out", OLD)
    (top / "out" / "aligned" / "mine").write_text("mine")
    child = os.fork()
    if child == 0:
        run_and_die(top, k)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = texts(top / "out")
    mine = found.pop("aligned/mine")
    assert mine == "mine" and found in (OLD, NEW), (k, found)
    listed = json.loads((top / "out" / "summary.json").read_text())["files"]
    assert {{*listed, "aligned/mine"}} == set(list_folder(top / "out")), k
    assert {is_killed} or [p.name for p in top.iterdir()] == ["out"], (k, list(top.iterdir()))
    outcomes.append((code, found == NEW))
    written(top / "out", NEW)
    assert [p.name for p in top.iterdir()] == ["out"], k
    if code == 0:
        break
print(len(outcomes), sum(new for code, new in outcomes if code == 9))
"""


@pytest.mark.parametrize("ending", ["os._exit(9)", "raise KeyboardInterrupt"])
def test_a_run_ended_at_any_step_leaves_the_old_or_the_new_result_whole(tmp_path, ending):
    """Ctrl-C leaves nothing else, either."""
    paths, is_killed = [p for p in sys.path if p], ending == "os._exit(9)"
    words = {"path": paths, "top": str(tmp_path), "ending": ending, "is_killed": is_killed}
    run = subprocess.run(
        [sys.executable, "-c", ENDED_ANYWHERE.format(**words)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    steps, after = map(int, run.stdout.split())
    assert steps > 40  # places to be ended at
    assert 0 < after < steps  # some of them after the folders changed places


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


class TestReplacing:
    def test_a_link_is_followed_and_the_mode_kept(self, tmp_path):
        (tmp_path / "real.txt").write_text("old")
        (tmp_path / "real.txt").chmod(0o600)
        (tmp_path / "link.txt").symlink_to("real.txt")
        with replace_file(tmp_path / "link.txt") as temporary:
            assert mode_of(temporary) == 0o600  # from its birth
            temporary.write_text("new")
        assert (tmp_path / "link.txt").is_symlink()
        assert (tmp_path / "real.txt").read_text() == "new"
        assert mode_of(tmp_path / "real.txt") == 0o600
        assert len(list(tmp_path.iterdir())) == 2

    def test_a_mode_that_the_umask_would_not_give_is_kept(self, tmp_path):
        (tmp_path / "a.txt").write_text("old")
        (tmp_path / "a.txt").chmod(0o666)
        write_text(tmp_path / "a.txt", "new")
        assert mode_of(tmp_path / "a.txt") == 0o666

    def test_the_umask_is_obeyed_and_never_touched(self, tmp_path, monkeypatch):
        before = os.umask(0o027)
        try:
            with monkeypatch.context() as patched:
                patched.setattr(os, "umask", None)
                write_text(tmp_path / "a.txt", "x")
        finally:
            os.umask(before)
        assert mode_of(tmp_path / "a.txt") == 0o640

    def test_a_device_is_not_replaced(self):
        with pytest.raises(FormatError, match="/dev/null cannot be written: it is no file"):
            write_text("/dev/null", "x")

    def test_a_full_disk_is_one_sentence_and_the_old_file_stays(self, tmp_path):
        write_text(tmp_path / "a.txt", "old")
        with pytest.raises(FormatError, match=r"a.txt cannot be written: No space left"):
            interrupted(replace_file(tmp_path / "a.txt"), FULL)
        assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]

    def test_names_as_long_as_they_may_be_can_be_written(self, tmp_path):
        write_text(tmp_path / ("ü" * 120 + ".txt"), "x")
        assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", ["a\0b.npz", "\ud800.npz"])
@pytest.mark.parametrize("writer", [replace_file, replace_folder])
def test_a_name_that_no_file_can_have_is_one_sentence(writer, name, tmp_path):
    for path in (tmp_path / name, str(tmp_path / name)):
        with pytest.raises(FormatError, match=r"' cannot be written: no file can .* name"):
            writer(path).__enter__()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "not enough memory"),
        (MemoryError("This fit takes at least 9 MB"), "Error: This fit takes at least 9 MB\n"),
        (ImportError("a.so: failed to map segment"), "not enough memory"),
        (ImportError("no module named 'x'"), "no module named 'x'"),
    ],
)
def test_errors_of_memory_are_told_in_words(error, sentence, monkeypatch, capsys):
    from defgpa.cli import _app

    def hungry(*arguments, **options):
        raise error

    monkeypatch.setattr(_app.app, "main", hungry)
    assert _app.run(["fit", "wings.tps"]) == 1
    assert sentence in capsys.readouterr().err


def test_files_are_flushed_before_they_take_their_place(tmp_path, monkeypatch):
    flushed = []
    plain = os.fsync

    def record(handle):
        flushed.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        plain(handle)

    if not Path("/proc/self/fd").exists():
        pytest.skip("no way to name what was flushed")
    monkeypatch.setattr(os, "fsync", record)
    write_text(tmp_path / "a.txt", "a")
    assert flushed[0].startswith(".a-")
    assert flushed[1:] == [tmp_path.name]
    flushed.clear()
    with replace_folder(tmp_path / "run") as partial:
        write_text(partial / "b.txt", "b")
        assert flushed == []
    assert flushed[0] == "b.txt"
    assert flushed[-1] == tmp_path.name
