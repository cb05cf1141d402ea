"""Limits of memory for reading: a few bytes can claim, or pack, more than a machine has.

A file may take 100 times its own size, but at least 64 MB; ``max_memory`` of ``read_shapes`` and
the environment variable ``DEFGPA_MAX_BYTES`` set another limit. What is counted is what parsing
takes: the bytes of the text, its words and its specimens, as the constants below say. A file that
is not packed stays below the limit whatever it holds; landmarks pack to a third of their text.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError

VARIABLE = "DEFGPA_MAX_BYTES"
TEXT_COST = 10  # bytes of memory that a byte of text takes while it is parsed
WORD_COST = 100  # bytes that a word takes besides, as a Python string in a list
SPECIMEN_COST = 800  # bytes that a specimen takes, its points apart
FILE_COST = 12_000  # bytes that a file of an archive takes: a block of the disk, and its reading
GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ"
LZMA_MEMORY = 2**28  # bytes: what the headers of an .xz file may ask for
_MAX_RATIO = 100  # of the size of a file
_MIN_BYTES = 64_000_000
_SEPARATORS = ",;" + "".join(filter(str.isspace, map(chr, range(0x3001))))

_max_memory: ContextVar[float | None] = ContextVar("max_memory", default=None)


@contextlib.contextmanager
def limit_memory(max_memory: float | None) -> Iterator[None]:
    """Let every file that is read in this block take so many bytes; None: as usual."""
    token = _max_memory.set(max_memory)
    try:
        yield
    finally:
        _max_memory.reset(token)


def get_max_bytes(size: int) -> int:
    """Return how many bytes a file of this size may take."""
    max_memory = _max_memory.get()
    if max_memory is not None:
        return int(max_memory)
    value = os.environ.get(VARIABLE, "")
    try:
        return max(int(float(value)) if value else _MIN_BYTES, _MAX_RATIO * size)
    except (ValueError, OverflowError):
        raise FormatError(f"{VARIABLE} must be a number of bytes. Got {value!r} instead.") from None


def get_max_file_size() -> int:
    """Return the size of the largest text file or upload that is taken, in bytes."""
    return max(2**30, get_max_bytes(0))


class Budget:
    """The bytes of memory that reading one file may still take."""

    def __init__(self, path: Path, size: int | None = None) -> None:
        self._path = path
        self.left = self._total = get_max_bytes(path.stat().st_size if size is None else size)

    def spend(self, n_bytes: int, what: str) -> None:
        """Take so many bytes, or refuse the file."""
        if not 0 <= n_bytes <= self.left:
            raise FormatError(
                f"{self._path}: {what} takes more than {self._total / 1e6:.4g} MB of memory, the "
                "most for a file of its size. If it is meant to, give more bytes: "
                f"{name_option('max_memory', 8e9)}, or set {VARIABLE}."
            )
        self.left -= n_bytes

    def spend_on_specimens(self, n_specimens: int) -> None:
        """Charge the budget for this many specimens, or refuse the file."""
        self.spend(SPECIMEN_COST * n_specimens, "the number of its specimens")

    def unpack_to(self, path: Path, read: Callable[[int], bytes], what: str) -> None:
        """Unpack into a file, some bytes at a time."""
        with path.open("wb") as file:
            while block := read(2**16):
                self.spend(TEXT_COST * len(block), what)
                file.write(block)


def open_zip(path: Path) -> zipfile.ZipFile:
    """Open an archive; a member longer than the archive is refused: memory is taken for it."""
    archive = zipfile.ZipFile(path)
    size = path.stat().st_size
    if any(info.compress_size > size for info in archive.infolist()):
        archive.close()
        raise zipfile.BadZipFile("a member is longer than the archive")
    return archive


def count_words(text: str) -> int:
    """Return an upper bound of the number of words, or cells of a table, in a text."""
    return 1 + sum(map(text.count, _SEPARATORS))


def is_packed(data: bytes) -> bool:
    """Return whether data is gzip, bzip2 or xz."""
    return data.startswith((GZIP, _BZIP2, _XZ))


def decompress(packed: bytes, max_bytes: int) -> bytes:
    """Decompress gzip, bzip2 or xz data up to a limit of bytes; return other data unchanged."""
    if packed.startswith(GZIP):
        return gzip.GzipFile(fileobj=io.BytesIO(packed)).read(max_bytes)
    if packed.startswith(_BZIP2):
        return bz2.BZ2File(io.BytesIO(packed)).read(max_bytes)
    if packed.startswith(_XZ):
        return lzma.LZMADecompressor(memlimit=LZMA_MEMORY).decompress(packed, max_bytes)
    return packed[:max_bytes]


def decompress_head(head: bytes) -> bytes:
    """Decompress the beginning of packed data, as far as the first bytes of a file allow."""
    with contextlib.suppress(zlib.error, OSError, EOFError, lzma.LZMAError):
        if head.startswith(GZIP):
            return zlib.decompressobj(wbits=31).decompress(head, len(head))
        if head.startswith(_BZIP2):
            return bz2.BZ2Decompressor().decompress(head, len(head))
        return decompress(head, len(head))
    return b""
