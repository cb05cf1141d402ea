"""Write atomically: write beside the target, then let the new take the place of the old.

One file is renamed over the old one. The files of a run belong together: they are written into
a folder beside, and the two folders change places in one step, so that whoever looks, and
whatever kills the run, finds either all of the old result or all of the new one.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from defgpa.errors import FormatError

_PARTIAL = ".partial"  # the suffix of a folder that is being written
SUMMARY = "summary.json"  # its "files" are what a run wrote, named relative to its folder


@contextlib.contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that takes its place if all goes well.

    The temporary file keeps the suffix, because many writers choose by it, and the mode of the
    file that it replaces; a link stays one, what it points to is replaced. Whatever stops the
    block, Ctrl-C included, leaves the old file (or none) and no temporary one; that of a process
    that was killed is removed by the next that writes the file.

    Raises
    ------
    FormatError
        With the system's reason, where nothing can be written.
    """
    with _resolve_target(path) as target:
        if target.exists() and not target.is_file():
            raise FormatError(f"{path} cannot be written: it is no file.")
        mode = _get_mode(target, 0o666)
        stem, suffix = target.stem[:40], "".join(Path(path).suffixes[-2:])
        is_alone = target.parent.suffix != _PARTIAL  # a folder that is flushed as a whole
        if is_alone:
            _remove_leftovers(
                target.parent, rf"\.{re.escape(stem)}-[0-9a-f]{{8}}{re.escape(suffix)}"
            )
        temporary = _choose_name(target.parent, stem, suffix)
        try:
            temporary.touch(mode, exist_ok=False)
            with _hold_lock(temporary):
                yield temporary
                if target.exists():
                    temporary.chmod(mode)
                if is_alone:
                    _flush(temporary)
                temporary.replace(target)
            if is_alone:
                _flush(target.parent)
        except BaseException:
            try:
                temporary.unlink(missing_ok=True)
            finally:  # again, if Ctrl-C came in between
                temporary.unlink(missing_ok=True)
            raise


def write_text(path: str | os.PathLike[str], text: str, errors: str = "strict") -> None:
    """Write text in UTF-8 with plain newlines, all of it or none of it.

    Names of files may hold bytes that are no character: ``errors="backslashreplace"`` writes
    them as JSON does.
    """
    with replace_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n", errors=errors)


@contextlib.contextmanager
def replace_folder(path: str | os.PathLike[str], manifest: str = SUMMARY) -> Iterator[Path]:
    """Yield a folder for the files of a run, which takes the place of ``path`` at the end.

    What the last run wrote there (the ``"files"`` of its ``manifest``) goes with it; all
    other files stay, and files of the same name keep their mode. If the block raises, or is
    killed, ``path`` is what it was; what a killed run left beside it is removed by the next.

    Where a folder cannot be exchanged for another (the current one, a mount, one whose parent is
    read-only), files are moved in one by one: first the old summary goes, last the new comes.

    Parameters
    ----------
    path : path
        The folder of results; it and the folders above it are made where they are not there.
        Of a link, what it points to.
    manifest : str
        The JSON file that lists what a run wrote; commands with different ones may share a folder.

    Yields
    ------
    Path
        ``.name-XXXXXXXX.partial``, empty, on the same disk.

    Raises
    ------
    FormatError
        With the system's reason, where nothing can be written.
    """
    with _resolve_target(path) as target:
        if target.exists() and not target.is_dir():
            raise FormatError(f"{path} cannot be written: it is a file, not a folder.")
        _restore_folder(target)
        is_exchangeable = not target.exists() or _is_exchangeable(target)
        place, finish = (target.parent, _swap_folders) if is_exchangeable else (target, _move_files)
        mode = _get_mode(target, 0o777) | 0o700
        new_folder = _choose_name(place, target.name, _PARTIAL)
        try:
            new_folder.mkdir(mode)
            with _hold_lock(new_folder):
                yield new_folder
                for folder, _, files in os.walk(new_folder):
                    for name in (*files, "."):
                        _flush(Path(folder, name))
                finish(new_folder, target, manifest)
                _flush(target.parent)
        finally:  # after an exchange this is the old folder
            try:
                shutil.rmtree(new_folder, ignore_errors=True)
            finally:  # again, if Ctrl-C came in between
                shutil.rmtree(new_folder, ignore_errors=True)


def list_folder(folder: Path) -> list[str]:
    """List the files below a folder, relative to it, as a summary lists them."""
    names = []
    for root, folders, files in os.walk(folder, onerror=_raise):
        links = [name for name in folders if Path(root, name).is_symlink()]
        names += [Path(root, name).relative_to(folder).as_posix() for name in (*files, *links)]
    return sorted(names)


def _swap_folders(new_folder: Path, target: Path, manifest: str) -> None:
    """Exchange the new folder with the old one in one step, and move files of others into it."""
    if not target.exists():
        new_folder.rename(target)
        return
    written, owned = set(list_folder(new_folder)), find_files_of_last_run(target, manifest)
    for name in list_folder(target):
        if name not in written | owned:
            _copy_to_new_folder(name, target, new_folder)
    _copy_file_modes(new_folder, target, written)
    _copy_folder_mode(".", target, new_folder)
    _exchange_folders(new_folder, target)


def _move_files(new_folder: Path, target: Path, manifest: str) -> None:
    """Move the files one by one; a folder without a summary is visibly unfinished."""
    written, owned = set(list_folder(new_folder)), find_files_of_last_run(target, manifest)
    _copy_file_modes(new_folder, target, written)
    for name in sorted(owned - written | owned & {manifest}, key=lambda name: name != manifest):
        (target / name).unlink(missing_ok=True)
    for name in sorted(written, key=lambda name: name == manifest):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (new_folder / name).replace(target / name)
    for parent in sorted({PurePosixPath(name).parent for name in owned}, reverse=True):
        if parent.parts and not any((target / parent).iterdir()):
            (target / parent).rmdir()


def find_files_of_last_run(folder: Path, manifest: str = SUMMARY) -> set[str]:
    """Find the files that the last run lists as written and that still exist."""
    try:
        summary = json.loads((folder / manifest).read_text(encoding="utf-8"))
        entries = [*summary["files"], manifest]
        names = {entry.replace("\\", "/").rpartition(f"{folder.name}/")[2] for entry in entries}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return set()
    files = {name for name in names if name and (folder / name).is_file()}
    return {name for name in files if (folder / name).resolve().is_relative_to(folder)}


def _copy_to_new_folder(name: str, target: Path, new_folder: Path) -> None:
    """Link a file into the new folder, or copy it where the disk has no hard links."""
    for parent in reversed(PurePosixPath(name).parents[:-1]):
        (new_folder / parent).mkdir(exist_ok=True)
        _copy_folder_mode(parent, target, new_folder)
    try:
        os.link(target / name, new_folder / name, follow_symlinks=False)
    except (OSError, NotImplementedError):
        shutil.copy2(target / name, new_folder / name, follow_symlinks=False)


def _copy_folder_mode(name: PurePosixPath | str, target: Path, new_folder: Path) -> None:
    """Copy the group and mode of a folder."""
    group = (target / name).stat().st_gid
    if (new_folder / name).stat().st_gid != group:
        os.chown(new_folder / name, -1, group)
    shutil.copymode(target / name, new_folder / name)


def _copy_file_modes(new_folder: Path, target: Path, names: set[str]) -> None:
    for name in names:
        if (target / name).is_file():
            shutil.copymode(target / name, new_folder / name)


def _is_exchangeable(target: Path) -> bool:
    """Return whether a folder can be replaced: ours, writable, no mount point, not in use."""
    status, parent_status = target.stat(), target.parent.stat()
    return (
        not Path.cwd().is_relative_to(target)
        and status.st_dev == parent_status.st_dev
        and status.st_uid == (status.st_uid if sys.platform == "win32" else os.geteuid())
        and os.access(target.parent, os.W_OK | os.X_OK)
    )


def _exchange_folders(first: Path, second: Path) -> None:
    """Exchange the names of two folders, in one step where the system can, else in two."""
    try:
        _exchange_atomically(os.fsencode(first), os.fsencode(second))
    except (AttributeError, TypeError, NotImplementedError):
        backup = first.with_suffix(".old")
        second.rename(backup)
        try:
            first.rename(second)
        except BaseException:
            backup.rename(second)
            raise
        backup.rename(first)


def _exchange_atomically(first: bytes, second: bytes) -> None:
    system = ctypes.CDLL(None, use_errno=True)  # TypeError on Windows
    if sys.platform == "darwin":
        failed = system.renamex_np(first, second, 2)  # RENAME_SWAP
    else:
        current_directory, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        failed = system.renameat2(
            current_directory, first, current_directory, second, ctypes.c_uint(exchange)
        )
    if failed:
        code = ctypes.get_errno()
        if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise NotImplementedError
        raise OSError(code, os.strerror(code))


def _restore_folder(target: Path) -> None:
    """Restore the old folder if a run was killed in between, and remove what such runs left."""
    name = rf"\.{re.escape(target.name)}-[0-9a-f]{{8}}"
    for old in _list_matching(target.parent, rf"{name}\.old"):
        if not target.exists():
            old.rename(target)
    for place in (target.parent, target):
        _remove_leftovers(place, rf"{name}\.(partial|old)")


def _remove_leftovers(place: Path, pattern: str) -> None:
    """Remove the files and folders of killed runs; those of a run that goes on are locked."""
    for leftover in _list_matching(place, pattern):
        with contextlib.suppress(BlockingIOError, FileNotFoundError), _hold_lock(leftover):
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink()


def _list_matching(place: Path, pattern: str) -> list[Path]:
    paths = place.iterdir() if os.access(place, os.R_OK) else ()
    return [path for path in paths if re.fullmatch(pattern, path.name) and not path.is_symlink()]


@contextlib.contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process; BlockingIOError if another holds it."""
    if sys.platform == "win32":  # no locks on folders there
        yield
        return
    import fcntl

    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:  # a disk without locks has none to hold
            if isinstance(error, BlockingIOError):
                raise
        yield
    finally:
        os.close(handle)


def _choose_name(place: Path, stem: str, suffix: str) -> Path:
    """Choose a new name, which is known before anything is made and can thus be removed.

    What gets it is made with the mode it is to have, as the system's umask allows: asking for the
    umask would mean setting it, for the files of all threads.
    """
    while (path := place / f".{stem}-{secrets.token_hex(4)}{suffix}").exists():
        pass
    return path


def _flush(path: Path) -> None:
    """Wait until a file or folder is on the disk, so that a power cut cannot undo its writing."""
    if sys.platform == "win32" and path.is_dir():
        return
    with contextlib.suppress(OSError):  # a disk that cannot flush, a link to nowhere
        handle = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _get_mode(path: Path, default: int) -> int:
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else default


def _raise(error: OSError) -> None:
    raise error


@contextlib.contextmanager
def _resolve_target(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Resolve a path to a place in an existing folder; raise the system's reason if it fails."""
    try:
        name = os.fsencode(path)
    except UnicodeEncodeError:
        name = b"\0"
    if b"\0" in name:
        raise FormatError(f"{os.fspath(path)!r} cannot be written: no file can have such a name.")
    try:
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        yield target
    except OSError as error:
        raise FormatError(f"{path} cannot be written: {error.strerror or error}.") from None
