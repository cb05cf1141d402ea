"""Find the files that a user names (a file, folder, pattern or list), and their formats.

A file named outright must be readable. Of a folder or a pattern, only what is recognised counts:
other people's README and pictures lie there too.
"""

from __future__ import annotations

import difflib
import glob
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError, format_names, format_some
from defgpa.io.atomic import SUMMARY
from defgpa.io.files import read_head
from defgpa.io.format import Format
from defgpa.io.registry import FORMATS, find_format, find_formats_by_suffix, list_suffixes
from defgpa.io.text import csv as _csv
from defgpa.io.text.lines import warn

# Anything may have these suffixes, so there the content decides alone.
_VAGUE_SUFFIXES = (".txt", ".csv", ".tsv", ".json", ".dat")
_TABLES = tuple(format_.name for format_ in _csv.FORMATS)

_MAX_NEIGHBOURS = 1000  # files whose names are compared with one that does not exist

Source = str | os.PathLike[str]
Find = tuple[Path, Format]  # a file and the format to read it in
Found = tuple[list[Find], tuple[str, ...]]  # files to read, names of others that lie beside them


def find_files(source: Source | Iterable[Source], format_name: str | None) -> Found:
    """Find the files that ``source`` names, with their formats, and files without landmarks."""
    requested = None if format_name is None else find_format(format_name)
    if isinstance(source, (str, os.PathLike)):
        return _find_source(source, requested)
    if not isinstance(source, Iterable):
        raise FormatError(
            f"Expected a path, a folder, a pattern or a list of paths; got {type(source).__name__}."
        )
    parts = [_find_source(entry, requested) for entry in source]
    if not parts:
        raise FormatError("There is nothing to read: got an empty list of paths.")
    files = [match for matches, _ in parts for match in matches]
    not_read = dict.fromkeys(name for _, names in parts for name in names)
    return _drop_repeated_files(files), tuple(not_read)


def _drop_repeated_files(matches: Sequence[Find]) -> list[Find]:
    """Drop the files that were named before."""
    by_path: dict[Path, Find] = {}
    repeated = [
        str(match[0])
        for match in matches
        if by_path.setdefault(match[0].absolute(), match) is not match
    ]
    if repeated:
        warn(f"Named more than once, read once: {format_names(dict.fromkeys(repeated))}.")
    return list(by_path.values())


def _find_source(source: object, requested: Format | None) -> Found:
    if not isinstance(source, (str, os.PathLike)):
        kind = type(source).__name__
        raise FormatError(f"Expected paths in the list; got {kind}: {source!r:.60}.")
    name = os.fspath(source)
    if not isinstance(name, str):
        raise FormatError(f"Expected a path as a string; got {type(name).__name__}.")
    try:
        return _find_path(name, Path(name).expanduser(), requested)
    except FormatError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # no permission, a NUL, ~nobody
        reason = getattr(error, "strerror", None) or error
        culprit = str(getattr(error, "filename", None) or name)  # of a folder, the file in it
        raise FormatError(f"{culprit[:200]!r} cannot be read: {reason}.") from None


def _find_path(name: str, path: Path, requested: Format | None) -> Found:
    if not name:
        raise FormatError("There is no file or folder ''.")  # to pathlib it is the current one
    if path.is_file():
        read_head(path)  # a pointer to a file is none, whatever format is wanted
        return [(path, requested or _choose_format(path))], ()
    if path.is_dir():
        _refuse_results(path)
        return _choose_files(sorted(path.iterdir()), f"The folder {path}", requested)
    if path.exists():
        raise FormatError(f"{path} is neither a file nor a folder.")  # a pipe would never end
    if not glob.has_magic(name):
        raise FormatError(f"There is no file or folder {name[:200]!r}.{_suggest_path(path)}")
    matches = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207
    if not matches:
        raise FormatError(f"The pattern {name!r} matches no file.")
    return _choose_files(matches, f"The pattern {name!r}", requested)


def _suggest_path(path: Path) -> str:
    """Return `` Did you mean 'wings.tps'?`` if a file of that folder has nearly this name."""
    if not path.parent.is_dir():
        return ""
    names = [neighbour.name for neighbour in islice(path.parent.iterdir(), _MAX_NEIGHBOURS)]
    close = difflib.get_close_matches(path.name, names, n=1)
    return f" Did you mean {str(path.parent / close[0])!r}?" if close else ""


def _choose_format(path: Path) -> Format:
    """Choose the format of a file that was named outright.

    If only its suffix speaks for one, it is read in that, to hear what is wrong with it.
    """
    head = read_head(path)
    if not head:
        raise FormatError(f"{path} is empty.")
    by_suffix = find_formats_by_suffix(path)
    is_spreadsheet = _has_suffix(path, (".xlsx", ".xls", ".ods", ".numbers"))
    format_ = _recognise_content(head, by_suffix)
    if format_ and not (is_spreadsheet and format_.name == "zip"):
        return format_
    if by_suffix and not _has_suffix(path, ".txt"):
        return by_suffix[0]
    if is_spreadsheet:
        raise FormatError(f"{path} is a spreadsheet, which is not read. Save it as .csv.")
    raise FormatError(
        f"{path} is not a landmark file of a known format. Known suffixes are {list_suffixes()}. "
        f"If it is such a file by another name, name its format ({name_option('format')})."
    )


def _recognise_content(head: bytes, by_suffix: Sequence[Format]) -> Format | None:
    """Recognise the format of some content, asking those of the suffix first.

    Rows of numbers may be anything, so they make a table only of a file without a better suffix.
    """
    others = [f for f in FORMATS if not by_suffix or f.name not in _TABLES]
    return next((f for f in (*by_suffix, *others) if f.looks_like(head)), None)


def _choose_files(paths: Sequence[Path], place: str, requested: Format | None) -> Found:
    """Choose the files of the one format that most of them have."""
    files = [path for path in paths if path.is_file() and not path.name.startswith((".", "~$"))]
    candidates = [
        path for path in files if find_formats_by_suffix(path) or _has_suffix(path, _VAGUE_SUFFIXES)
    ]
    matches = [(path, kind) for path in candidates if (kind := _recognise_file(path, requested))]
    if not matches:  # perhaps under suffixes of their own; but a README that shows a file is none
        matches = [(path, kind) for path in files if (kind := _recognise_file(path, requested))]
    if not matches:
        raise _explain_no_files(paths, files, place, requested)
    counts = Counter(format_.name for _, format_ in matches)
    order = [format_.name for format_ in FORMATS]
    best = max(counts, key=lambda name: (counts[name], -order.index(name)))
    if len(counts) > 1:
        skipped = [path.name for path, format_ in matches if format_.name != best]
        others = ", ".join(f"{k} {name}" for name, k in counts.items() if name != best)
        is_single = counts[best] == 1
        chosen = f"the {best} file is" if is_single else f"the {counts[best]} {best} files are"
        warn(
            f"{place} has files of several formats; {chosen} read, others are not ({others}): "
            f"{format_names(skipped)}. Name the format to choose ({name_option('format')})."
        )
    recognised = {path for path, _ in matches}
    other_files = _warn_of_tables([path for path in files if path not in recognised], best, place)
    read = [(path, format_) for path, format_ in matches if format_.name == best]
    return read, tuple(path.name for path in other_files)


def _explain_no_files(
    paths: Sequence[Path], files: Sequence[Path], place: str, requested: Format | None
) -> FormatError:
    """Explain that there are no landmark files, naming the files or folders there are."""
    kind = "file of a known format" if requested is None else f"{requested.name} file"
    folders = [path.name for path in paths if path.is_dir() and not path.name.startswith(".")]
    names = format_names([path.name for path in files], 3)
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    content = f"it has {count}: {names}" if files else "there is no file in it"
    if not folders:
        return FormatError(f"{place} has no {kind} ({content}).")
    return FormatError(
        f"{place} has no {kind} ({content}), but folders: {format_names(folders)}. Name one of "
        f"them, or files in several by a pattern such as '{paths[0].parent / '*' / '*.tps'}'."
    )


def _recognise_file(path: Path, requested: Format | None) -> Format | None:
    """Recognise the format of a file by its content, or by a suffix of one format only."""
    head, by_suffix = read_head(path), find_formats_by_suffix(path)
    if requested is not None:
        by_suffix = [requested] if _has_suffix(path, requested.suffixes) else []
        format_ = requested if requested.looks_like(head) else None
    else:
        format_ = _recognise_content(head, by_suffix)
    if format_ is None and by_suffix and not _has_suffix(path, _VAGUE_SUFFIXES):
        return by_suffix[0]
    return format_


def _refuse_results(folder: Path) -> None:
    """Refuse a folder of results: its tables are a reference and aligned shapes, not specimens."""
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        is_result = "result.npz" in summary["files"] and "defgpa" in summary["versions"]
        inputs = [str(name) for name in summary.get("input", ())]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return
    if is_result:
        source = f" It was made from {format_some(inputs, 3)}." if inputs else ""
        raise FormatError(
            f"{folder} holds the results of a fit, not specimens.{source} Give the landmark files, "
            f"or one file of the results, such as {folder / 'superimposed.csv'}."
        )


def _has_suffix(path: Path, suffixes: str | tuple[str, ...]) -> bool:
    return path.name.lower().endswith(suffixes)


def _warn_of_tables(files: Sequence[Path], best: str, place: str) -> list[Path]:
    """Warn of the files not read, naming tables without coordinates where tables are read."""
    skipped = [path for path in files if _has_suffix(path, (".csv", ".tsv"))]
    if best not in _TABLES or not skipped:
        return list(files)
    names = [path.name for path in skipped]
    warn(f"{place} also has tables without coordinates, left out: {format_names(names)}.")
    return [path for path in files if path not in skipped]
