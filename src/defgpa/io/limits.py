"""What a file unpacks to is bounded: a few bytes can claim, or pack, more than a machine has.

A file may unpack to 20 times its size, or to ``DEFGPA_MAX_BYTES`` (an environment variable; 1 GiB
unless it is set) if that is more. Landmarks pack to a third at best, their text to a tenth.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable
from pathlib import Path

from defgpa.errors import FormatError

VARIABLE = "DEFGPA_MAX_BYTES"
GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ"
LZMA_MEMORY = 2**28  # bytes: what the headers of an .xz file may ask for


def get_max_bytes() -> int:
    """The most that is unpacked from a small file, or allocated for what it announces."""
    value = os.environ.get(VARIABLE, "")
    try:
        return int(float(value)) if value else 2**30
    except (ValueError, OverflowError):
        raise FormatError(f"{VARIABLE} must be a number of bytes. Got {value!r} instead.") from None


class Budget:
    """The bytes that one file may still unpack to."""

    def __init__(self, path: Path, size: int | None = None) -> None:
        self._path = path
        packed = path.stat().st_size if size is None else size
        self.left = self._most = max(get_max_bytes(), 20 * packed)

    def spend(self, n_bytes: int, what: str) -> None:
        """Take so many bytes, or refuse the file."""
        if not 0 <= n_bytes <= self.left:
            raise FormatError(
                f"{self._path}: {what} takes more than {self._most / 1e9:.3g} GB, the most that is "
                f"read from such a file. If it is meant to, set {VARIABLE} to more."
            )
        self.left -= n_bytes

    def unpack_to(self, path: Path, read: Callable[[int], bytes], what: str) -> None:
        """Unpack into a file, some bytes at a time."""
        with path.open("wb") as file:
            while block := read(2**16):
                self.spend(len(block), what)
                file.write(block)


def decompress(packed: bytes, most: int) -> bytes:
    """At most so many bytes of what gzip, bzip2 or xz packed; of other data, as they are."""
    if packed.startswith(GZIP):
        return gzip.GzipFile(fileobj=io.BytesIO(packed)).read(most)
    if packed.startswith(_BZIP2):
        return bz2.BZ2File(io.BytesIO(packed)).read(most)
    if packed.startswith(_XZ):
        return lzma.LZMADecompressor(memlimit=LZMA_MEMORY).decompress(packed, most)
    return packed[:most]


def decompress_head(head: bytes) -> bytes:
    """The first bytes of what is packed, as far as the first bytes of a file tell."""
    with contextlib.suppress(zlib.error, OSError, EOFError, lzma.LZMAError):
        if head.startswith(GZIP):
            return zlib.decompressobj(wbits=31).decompress(head, len(head))
        if head.startswith(_BZIP2):
            return bz2.BZ2Decompressor().decompress(head, len(head))
        return decompress(head, len(head))
    return b""
