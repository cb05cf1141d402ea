"""A project: a folder with the landmark files (or where they are), the edits and the settings.

Everything is written when it happens, each file in one piece. What is asked of a project carries
its revision, a digest of edits and settings: a change made for another revision is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypedDict

from defgpa.app.methods import Method
from defgpa.app.settings import (
    SETTINGS,
    Settings,
    check_setting,
    make_settings,
    read_settings,
    write_settings,
)
from defgpa.edits import EditLog, read_log, write_log
from defgpa.errors import DefgpaError, FormatError
from defgpa.io.limits import open_zip
from defgpa.io.packed import unpack_zip
from defgpa.threads import InterruptedWork, interruptible

if TYPE_CHECKING:
    from defgpa.app.study import Study

EDITS, FILES, RESULTS = "edits.json", "files", "results"
_MAX_NAME = 120  # bytes of a file's name


class ConflictError(DefgpaError):
    """A change that was made for an older state of the project."""


class Project:
    """One project; its methods may be called from several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self._background = threading.Lock()  # held by the work in the background, one at a time
        self._n_changes = 0  # that were begun
        self._study: Study | None = None
        self.settings: Settings = read_settings(folder)
        self.log: EditLog = read_log(folder / EDITS)
        self._stamps = self._read_stamps()

    @property
    def id(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def title(self) -> str:
        """What the project is called on the page."""
        return str(self.settings["title"] or self.folder.name)

    @property
    def revision(self) -> str:
        """A digest of edits, settings and names of files."""
        with self.lock:
            self._refresh()
            edits = [edit.to_dict() for edit in self.log.edits]
            undone_edits = [edit.to_dict() for edit in self.log.undone]
            state = [edits, undone_edits, self.settings, self._list_files()]
            text = json.dumps(state, sort_keys=True)
            return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]

    @property
    def study(self) -> Study:
        """The shapes of the files with the edits applied, and what is computed of them."""
        with self.lock:
            self._refresh()
            if self._study is None:
                from defgpa.app.study import read_study  # loaded while the page is opened

                files = [self.folder / FILES / name for name in self._list_files()]
                links = [Path(link) for link in self.settings["links"]]
                self._study = read_study([*files, *links], self.settings["reading"])
            if self._study.edits != self.log.edits:
                self._study = self._study.with_edits(self.log.edits)
            return self._study

    @property
    def method(self) -> Method:
        """The method of alignment that was chosen."""
        return Method.from_dict(self.settings["method"])

    @contextmanager
    def changing(self, revision: str) -> Iterator[None]:
        """Hold the project for a change of this revision; refuse if somebody changed it since."""
        self._n_changes += 1  # work in the background stops now, not once the change is made
        with self.lock:
            if revision != self.revision:
                raise ConflictError(
                    "The project was changed elsewhere, in another tab or window. This page shows "
                    "its new state now; repeat what you did if it is still wanted."
                )
            yield

    @contextmanager
    def in_background(self) -> Iterator[None]:
        """Do work that a change of the project makes useless, and stops, when its turn has come."""
        n_changes = self._n_changes

        def check() -> None:
            if self._n_changes != n_changes:
                raise InterruptedWork

        with self._background, interruptible(check):
            check()
            yield

    def change_log(self, change: Callable[[EditLog], EditLog]) -> None:
        """Replace the log of edits by the result of a function, check it, and write it."""
        with self.lock:
            log = change(self.log)
            study = self.study.with_edits(log.edits)
            _ = study.corrected  # an edit that cannot be applied is refused before it is written
            write_log(self.folder / EDITS, log)
            self.log, self._study = log, study
            self._stamps = self._read_stamps()

    def change_settings(self, **values: object) -> None:
        """Change settings and write them."""
        changes = {key: check_setting(key, value) for key, value in values.items()}
        with self.lock:
            self._refresh()
            settings = self.settings.copy()
            settings.update(changes)  # type: ignore[typeddict-item]
            write_settings(self.folder, settings)
            if settings["reading"] != self.settings["reading"]:
                self._study = None
            self.settings = settings
            self._stamps = self._read_stamps()

    def store(self, name: str, source: Path) -> list[str]:
        """Move a file into the project; of an archive, the files in it. Return their names."""
        folder = self.folder / FILES
        with self.lock:
            if zipfile.is_zipfile(source) and name.lower().endswith(".zip"):
                stored = self._store_archive(source)
            else:
                stored = [choose_name(name, folder, source)]
                os.replace(source, folder / stored[0])  # noqa: PTH105 - the same file system
            self._study = None
            return stored

    def remove(self, name: str) -> None:
        """Delete one of the files that were put into the project."""
        with self.lock:
            if name not in self._list_files():
                raise DefgpaError(f"There is no file {name!r} in this project.")
            (self.folder / FILES / name).unlink()
            self._study = None

    def find_result(self, name: str) -> Path | None:
        """Return the path of a result by its name relative to the folder of results."""
        root = (self.folder / RESULTS).resolve()
        names = {path.relative_to(root).as_posix(): path for path in root.rglob("*")}
        path = names.get(name)  # looked up, never joined: a name cannot lead out of the folder
        return path if path is not None and path.is_file() and not path.is_symlink() else None

    def _store_archive(self, source: Path) -> list[str]:
        folder = self.folder / FILES
        with TemporaryDirectory(dir=folder.parent) as place:
            try:
                with open_zip(source) as archive:
                    unpack_zip(source, archive, Path(place))
            except (zipfile.BadZipFile, OSError, EOFError, RuntimeError) as error:
                raise FormatError(f"The archive cannot be unpacked: {error}.") from None
            stored = []
            for path in sorted(Path(place).iterdir()):
                stored.append(choose_name(path.name, folder, path))
                path.replace(folder / stored[-1])
        return stored

    def _list_files(self) -> list[str]:
        with os.scandir(self.folder / FILES) as entries:
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        return sorted(name for name in names if not name.startswith("."))

    def _read_stamps(self) -> tuple[tuple[int, int, int], ...]:
        stats = [(self.folder / name).stat() for name in (SETTINGS, EDITS)]
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats)

    def _refresh(self) -> None:
        """Read edits and settings again if their files have changed."""
        stamps = self._read_stamps()
        if stamps == self._stamps:
            return
        settings = read_settings(self.folder)
        if settings["reading"] != self.settings["reading"]:
            self._study = None
        self.settings, self.log = settings, read_log(self.folder / EDITS)
        self._stamps = stamps


class Summary(TypedDict):
    """A project as the list of projects shows it."""

    id: str
    title: str
    changed: float


class Workspace:
    """The folder of a user's projects."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._open: dict[str, Project] = {}
        self._lock = threading.Lock()

    def list(self) -> list[Summary]:
        """Return the projects, the one that was changed last first."""
        rows = []
        for folder in self._list_folders().values():
            try:
                settings = read_settings(folder)
                changed = max((folder / name).stat().st_mtime for name in (SETTINGS, EDITS))
            except (DefgpaError, OSError):
                continue  # not a project, or one that is being made
            title = settings["title"] or folder.name
            rows.append(Summary(id=folder.name, title=title, changed=changed))
        return sorted(rows, key=lambda row: -row["changed"])

    def get(self, name: str) -> Project:
        """Return the project of this id; the id is looked up, never taken as a path."""
        with self._lock:
            if name not in self._open:
                folder = self._list_folders().get(name)
                if folder is None or not (folder / SETTINGS).is_file():
                    raise DefgpaError(f"There is no project {name!r}.")
                self._open[name] = Project(folder)
            return self._open[name]

    def create(self, title: str, links: Sequence[Path] = ()) -> Project:
        """Make a new, empty project; with links, the landmark files stay where they are."""
        stem = re.sub(r"[^\w-]+", "-", _make_printable(title))[:60].strip("-") or "project"
        with self._lock:
            used_names = {name.casefold() for name in self._list_folders()}
            number = 1
            while (f"{stem}-{number}" if number > 1 else stem).casefold() in used_names:
                number += 1
            folder = self.folder / (f"{stem}-{number}" if number > 1 else stem)
            folder.mkdir(mode=0o700)
            for name in (FILES, RESULTS):
                (folder / name).mkdir()
            write_log(folder / EDITS, EditLog())
            paths = [str(link.absolute()) for link in links]
            write_settings(folder, make_settings(title[:200], paths))
            self._open[folder.name] = Project(folder)
            return self._open[folder.name]

    def add(self, folder: Path) -> Project:
        """Open a project that lies elsewhere, named when the server was started."""
        project = Project(folder.resolve())
        with self._lock:
            self._open[project.id] = project
        return project

    def _list_folders(self) -> dict[str, Path]:
        with os.scandir(self.folder) as entries:
            return {e.name: Path(e.path) for e in entries if e.is_dir(follow_symlinks=False)}


def is_project(path: Path) -> bool:
    """Return whether a folder is a project."""
    return (path / SETTINGS).is_file() and (path / EDITS).is_file()


def _make_printable(name: str) -> str:
    plain = unicodedata.normalize("NFC", name)
    return "".join(c for c in plain if unicodedata.category(c)[0] != "C")


def choose_name(name: str, folder: Path, source: Path) -> str:
    """Return the name under which a file is stored: the last part of its path, made harmless.

    A file of the same name and content takes the place of the old one; another content gets a
    name with the folder in it, or a number.
    """
    parts = [p for p in re.split(r"[\\/]+", _make_printable(name)) if p.strip(". ")]
    if not parts:
        raise DefgpaError(f"A file cannot be called {name!r}.")
    clean = [_shorten(re.sub(r'[<>:"|?*]', "_", word).lstrip(".").strip()) for word in parts]
    candidates = [clean[-1], _shorten("_".join(clean[-2:]))]
    stem, dot, suffix = clean[-1].partition(".")
    candidates += [f"{stem}-{number}{dot}{suffix}" for number in range(2, 1000)]
    content = _compute_digest(source)
    for candidate in candidates:
        target = folder / candidate
        if not target.exists() or (target.is_file() and _compute_digest(target) == content):
            return candidate
    raise DefgpaError(f"There are too many files called {clean[-1]!r}.")


def _shorten(name: str) -> str:
    while len(name.encode("utf-8", "backslashreplace")) > _MAX_NAME:
        stem, dot, suffix = name.rpartition(".")
        name = f"{stem[:-1]}{dot}{suffix}" if len(stem) > 1 and len(suffix) < 20 else name[:-1]
    return name


def _compute_digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


@contextmanager
def receive_file(folder: Path) -> Iterator[Path]:
    """Make a temporary file in a folder, gone at the end unless it was moved."""
    with TemporaryDirectory(dir=folder) as place:
        yield Path(place) / "upload"
