"""Open a data set on disk: a folder, or an archive unpacked to a temporary one.

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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from defgpa.errors import FormatError
from defgpa.formatting import make_sort_key
from defgpa.io.files import list_names, translate_errors

_DATA = frozenset({".mat", ".txt", ".csv", ".fcsv"})  # pictures stay where they are

Member = tuple[str, int, bool, Callable[[], IO[bytes] | None]]  # name, size, is a link, how to open


@contextlib.contextmanager
def open_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the folder itself, or a temporary folder with the data files of an archive."""
    place = Path(path)
    if place.is_dir():
        yield place
        return
    if not place.exists():
        raise FormatError(f"There is no folder or archive {place}.")
    with tempfile.TemporaryDirectory(prefix="defgpa-") as folder:
        _unpack(place, Path(folder))
        yield Path(folder)


def find_file(folder: Path, name: str, source: str | os.PathLike[str]) -> Path:
    """Return the file of this name anywhere in the folder; the least deep if there are several.

    ``name`` may be several parts of a path. ``source`` is what the user gave, for complaints.
    """
    return min(find_files(folder, name, source), key=lambda file: (len(file.parts), file))


def find_files(folder: Path, pattern: str, source: str | os.PathLike[str]) -> list[Path]:
    """Return all files anywhere in the folder that match a pattern, in natural order."""
    files = [
        file
        for file in folder.rglob(pattern)
        if file.is_file() and not file.name.startswith(".") and "__MACOSX" not in file.parts
    ]
    if not files:
        names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))
        raise FormatError(f"{source} has no {pattern}; it holds {list_names(names) or 'nothing'}.")
    return sorted(files, key=lambda file: make_sort_key(str(file)))


def _unpack(archive: Path, folder: Path) -> None:
    with translate_errors(archive, "zip or tar archive"):
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                _store(
                    archive,
                    folder,
                    [_read_zip_member(zipped, member) for member in zipped.infolist()],
                )
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tarred:
                _store(
                    archive,
                    folder,
                    [_read_tar_member(tarred, member) for member in tarred.getmembers()],
                )
        else:
            raise FormatError(
                f"{archive} is not a folder, a zip archive or a tar archive (.tar, .tar.gz, …)."
            )


def _read_zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Member:
    is_link = stat.S_ISLNK(member.external_attr >> 16)
    return (
        member.filename,
        member.file_size,
        is_link,
        lambda: None if member.is_dir() else archive.open(member),
    )


def _read_tar_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Member:
    is_link = not (member.isfile() or member.isdir())
    return member.name, member.size, is_link, lambda: archive.extractfile(member)


def _store(archive: Path, folder: Path, members: Sequence[Member]) -> None:
    """Write the data files of an archive to a folder, if all its members are harmless."""
    _require_harmless(archive, members)
    for name, n_bytes, _, unpacked in members:
        source = unpacked() if PurePosixPath(name).suffix.lower() in _DATA else None
        if source is None:
            continue
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with source, target.open("wb") as file:
            shutil.copyfileobj(source, file)
        if target.stat().st_size != n_bytes:
            raise ValueError(f"{target.name} should have {n_bytes} bytes")


def _require_harmless(archive: Path, members: Sequence[Member]) -> None:
    """Refuse members that are links, lead elsewhere or are too large."""
    for name, _, is_link, _ in members:
        posix, windows = PurePosixPath(name), PureWindowsPath(name)  # on any system
        outside = posix.is_absolute() or windows.drive or windows.root or ".." in windows.parts
        if outside or ".." in posix.parts:
            raise FormatError(
                f"{archive} is refused: its member {name!r} would be written outside its folder."
            )
        if is_link:
            raise FormatError(f"{archive} is refused: its member {name!r} is a link.")
    n_bytes = sum(size for _, size, _, _ in members)
    if n_bytes > 8 * 2**30:  # the largest published set has less than a tenth
        raise FormatError(
            f"{archive} is refused: it unpacks to {n_bytes / 2**30:.1f} GiB. Unpack it yourself "
            "and give the folder, if that is right."
        )
