"""Common parts of readers: opening, naming, decoding and error messages."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import DefgpaError, FormatError, format_names
from defgpa.io.anatomical_space import express_missing_code


def read_head(path: str | os.PathLike[str]) -> bytes:
    """Read the first 4 KiB of a file: enough to tell what it is."""
    return read_bytes(path, 4096)


def read_bytes(path: str | os.PathLike[str], max_bytes: int = -1) -> bytes:
    """Read a file, or at most ``max_bytes`` of it; raise a FormatError with the system's reason."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(max_bytes)
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}.") from None
    if data.startswith(b"version https://git-lfs"):
        raise FormatError(
            f"{path} is not the file itself but a pointer of Git LFS to it. "
            "Fetch the file with 'git lfs pull'."
        )
    return data


def decode_text(data: bytes) -> str:
    """Decode UTF-8, UTF-16 with a byte order mark, or else Latin-1."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def decode_file_name(name: str) -> str:
    """Decode a file name; bytes that are not UTF-8 are taken for Latin-1.

    >>> decode_file_name("caf\\udce9")
    'café'
    """
    if name.isascii():
        return name
    undecodable = "[\udc80-\udcff]"  # as Python keeps such bytes
    return re.sub(undecodable, lambda byte: chr(ord(byte[0]) - 0xDC00), name)


def make_format_error(
    path: str | os.PathLike[str], expected: str, found: object, line: int | None = None
) -> FormatError:
    """Make the error about a place in a file: what was expected there, and what was found.

    Names that ``expected`` quotes come from the file, so long ones are cut as well.
    """
    place = f"{path}" if line is None else f"{path}, line {line}"
    expected = re.sub(r"'[^']{80,}'", lambda name: f"{abbreviate(name[0])}'", expected)
    expected = re.sub(r"\S{80,}", lambda word: abbreviate(word[0]), expected)
    return FormatError(f"{place}: expected {expected}; found {abbreviate(found).rstrip('.')}.")


def abbreviate(value: object, max_length: int = 60) -> str:
    """Shorten a value to one line of limited length, to quote it in a message."""
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= max_length else f"{text[:max_length]}…"


def list_names(names: Iterable[object]) -> str:
    """Join the first names for a message, each abbreviated."""
    return format_names([abbreviate(str(name), max_length=40) for name in names])


@contextlib.contextmanager
def translate_errors(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Raise one clear FormatError for whatever a library raises about a broken file.

    The libraries that read binary formats do not say which exceptions a damaged file causes,
    and it can be any: IndexError, struct.error, MemoryError… Their warnings are about the
    same damage, so they are not passed on either.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except DefgpaError:
        raise
    except Exception as error:
        reason = (
            abbreviate(f"{error}", 80).rstrip(".") if _is_package_error(error) else "it is damaged"
        )
        raise FormatError(f"{path} is not a {what} that can be read: {reason}.") from error


def _is_package_error(error: Exception) -> bool:
    """Return whether this package raised an error, rather than a library that it calls."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return isinstance(error, ValueError) and module.startswith("defgpa.")


def mask_missing(points: Array, missing: str | float, space: str | None = None) -> Array:
    """Replace coordinates that mean "missing" by NaN.

    ``missing`` is that of ``ReadOptions``: nothing more than the format marks, any negative
    coordinate, or a number that stands in all the coordinates of a missing landmark, in the
    anatomical ``space`` of the file or in the one that its program showed.
    """
    if missing == "marked":
        return points
    if missing == "negative":
        coded = (points < 0).any(axis=-1)
    else:
        places = express_missing_code(float(missing), points.shape[-1], space)
        coded = (points[..., None, :] == places).all(axis=-1).any(axis=-1)
    return np.where(np.expand_dims(coded, -1), np.nan, points)
