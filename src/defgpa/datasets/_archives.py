"""A set on disk is a folder, or an archive that is opened as one for a moment.

Nothing of an archive is trusted: a member that would land outside the folder, a link, or more
data than any of the published sets has is refused before anything is written.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from defgpa.errors import FormatError
from defgpa.io.files import named, refusing
from defgpa.io.names import natural

_DATA = frozenset({".mat", ".txt", ".csv", ".fcsv"})  # pictures stay where they are


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The folder itself, or the data files of an archive in a folder that is gone afterwards."""
    place = Path(path)
    if place.is_dir():
        yield place
        return
    if not place.exists():
        raise FormatError(f"There is no folder or archive {place}.")
    with tempfile.TemporaryDirectory(prefix="defgpa-") as folder:
        _unpack(place, Path(folder))
        yield Path(folder)


def found(folder: Path, name: str, source: str | os.PathLike[str]) -> Path:
    """The file of this name, wherever in the folder; the one least deep if there are several.

    ``name`` may be several parts of a path. ``source`` is what the user gave, for complaints.
    """
    return min(all_found(folder, name, source), key=lambda file: (len(file.parts), file))


def all_found(folder: Path, pattern: str, source: str | os.PathLike[str]) -> list[Path]:
    """All files that fit a pattern, wherever in the folder, in natural order."""
    files = [
        file
        for file in folder.rglob(pattern)
        if file.is_file() and not file.name.startswith(".") and "__MACOSX" not in file.parts
    ]
    if not files:
        there = sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))
        raise FormatError(f"{source} has no {pattern}; it holds {named(there) or 'nothing'}.")
    return sorted(files, key=lambda file: natural(str(file)))


def _unpack(archive: Path, folder: Path) -> None:
    with refusing(archive, "zip or tar archive"):
        if zipfile.is_zipfile(archive):
            _unzip(archive, folder)
        elif tarfile.is_tarfile(archive):
            _untar(archive, folder)
        else:
            raise FormatError(
                f"{archive} is not a folder, a zip archive or a tar archive (.tar, .tar.gz, …)."
            )


def _unzip(path: Path, folder: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        _require_harmless(
            path, [(m.filename, m.file_size, stat.S_ISLNK(m.external_attr >> 16)) for m in members]
        )
        for member in members:
            if not member.is_dir() and _is_data(member.filename):
                with archive.open(member) as source:
                    _store(source, folder / member.filename, member.file_size)


def _untar(path: Path, folder: Path) -> None:
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        _require_harmless(path, [(m.name, m.size, not (m.isfile() or m.isdir())) for m in members])
        for member in members:
            source = archive.extractfile(member) if _is_data(member.name) else None
            if source is not None:
                with source:
                    _store(source, folder / member.name, member.size)


def _is_data(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in _DATA


def _require_harmless(archive: Path, members: Sequence[tuple[str, int, bool]]) -> None:
    """Refuse members (name, bytes, is a link) that are links, lead elsewhere or are too large."""
    for name, _, is_link in members:
        posix, windows = PurePosixPath(name), PureWindowsPath(name)  # on any system
        outside = posix.is_absolute() or windows.drive or windows.root or ".." in windows.parts
        if outside or ".." in posix.parts:
            raise FormatError(
                f"{archive} is refused: its member {name!r} would be written outside its folder."
            )
        if is_link:
            raise FormatError(f"{archive} is refused: its member {name!r} is a link.")
    n_bytes = sum(size for _, size, _ in members)
    if n_bytes > 8 * 2**30:  # the largest published set has less than a tenth
        raise FormatError(
            f"{archive} is refused: it unpacks to {n_bytes / 2**30:.1f} GiB. Unpack it yourself "
            "and give the folder, if that is right."
        )


def _store(source: IO[bytes], target: Path, n_bytes: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(source, file)
    if target.stat().st_size != n_bytes:
        raise ValueError(f"{target.name} should have {n_bytes} bytes")
