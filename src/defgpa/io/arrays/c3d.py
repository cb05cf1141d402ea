"""C3D, the binary files of motion capture laboratories: every frame is a shape.

A header, parameters (of which the names of the markers count) and frames, in blocks of 512 bytes.
Read here and not by ezc3d, which does not return from some damaged files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from defgpa.arrays import Array
from defgpa.io.files import mask_missing, read_bytes, translate_errors
from defgpa.io.format import Document, Format, ReadOptions
from defgpa.io.text.lines import make_unique
from defgpa.io.video_frames import make_capture_document
from defgpa.shapes import number_labels

_BLOCK = 512
_MAGIC_BYTE = 0x50  # the second byte of the header, and of the parameters
_ORDERS = {84: "<", 86: ">"}  # processors: Intel, MIPS


def read_c3d(path: Path, options: ReadOptions) -> Document:
    """Read a shape for every frame in which a marker is visible; negative residuals are missing."""
    data = read_bytes(path)
    with translate_errors(path, "C3D file"):
        order = _find_byte_order(data)
        stack = _parse_frames(data, order)
        labels = _parse_labels(data, order)
    m = stack.shape[1]
    labels = make_unique([label or str(k + 1) for k, label in enumerate(labels[:m])])
    return make_capture_document(
        path,
        number_labels("frame_", len(stack)),
        mask_missing(stack, options.missing),
        tuple(labels) if len(labels) == m else None,
    )


def _find_byte_order(data: bytes) -> str:
    """Find the byte order, ``<`` or ``>``, by the processor that the parameters state."""
    start = _BLOCK * (data[0] - 1) if data else 0
    if len(data) < _BLOCK or data[1] != _MAGIC_BYTE or start + 4 > len(data) or start < _BLOCK:
        raise ValueError("it has no parameters")
    processor = data[start + 3]
    if processor not in _ORDERS:
        raise ValueError(f"it was written by processor {processor}, which is not known")
    return _ORDERS[processor]


def _parse_frames(data: bytes, order: str) -> Array:
    """Parse (frames, markers, 3) points, NaN where the residual is negative."""
    words = np.frombuffer(data, order + "u2", _BLOCK // 2)
    m, n_analog, first, last, start = (int(words[k]) for k in (1, 2, 3, 4, 8))
    scale = float(np.frombuffer(data, order + "f4", 1, 12)[0])
    kind = np.dtype(order + ("f4" if scale < 0 else "i2"))
    width = 4 * m + n_analog
    begin = _BLOCK * (start - 1)
    available = (len(data) - begin) // (width * kind.itemsize) if m and start else 0
    n = min(last - first + 1, available)
    if last == 0xFFFF:  # more frames than the header can count
        n = available
    if n < 1 or begin < _BLOCK:
        raise ValueError("it has no frames with markers")
    values = np.frombuffer(data, kind, n * width, begin).reshape(n, width)
    frames = values[:, : 4 * m].reshape(n, m, 4).astype(np.float64)
    points = frames[..., :3] if scale < 0 else frames[..., :3] * scale
    missing = (frames[..., 3] < 0) | ~np.isfinite(points).all(axis=2)
    return np.where(missing[..., None], np.nan, points)


def _parse_labels(data: bytes, order: str) -> list[str]:
    """Parse the names of the markers: the parameters LABELS, LABELS2, … of the group POINT."""
    groups: dict[int, str] = {}
    labels: list[str] = []
    for number, name, content in _split_parameters(data, order):
        if number < 0:
            groups[-number] = name
        elif groups.get(number, "POINT") == "POINT" and name.startswith("LABELS"):
            labels += _parse_texts(content)
    return labels


def _split_parameters(data: bytes, order: str) -> Iterator[tuple[int, str, bytes]]:
    """Yield the group's number, the name and the content of every parameter."""
    offset = _BLOCK * (data[0] - 1) + 4
    while offset + 4 < len(data) and data[offset]:
        length = abs(int(np.int8(data[offset] - 256 if data[offset] > 127 else data[offset])))
        number = data[offset + 1] - 256 if data[offset + 1] > 127 else data[offset + 1]
        name = data[offset + 2 : offset + 2 + length].decode("ascii", errors="replace").upper()
        offset += 2 + length
        step = int.from_bytes(data[offset : offset + 2], "little" if order == "<" else "big")
        yield number, name, data[offset + 2 : offset + max(step, 2)]
        if step < 2:
            return
        offset += step


def _parse_texts(content: bytes) -> list[str]:
    """Parse the rows of a parameter of letters: type, sizes, then the letters."""
    if len(content) < 4 or content[0] != 0xFF or content[1] != 2:
        return []
    width, count = content[2], content[3]
    letters = content[4 : 4 + width * count].decode("utf-8", errors="replace")
    return [letters[k * width : (k + 1) * width].strip(" \0") for k in range(count)]


FORMATS = (
    Format(
        name="c3d",
        suffixes=(".c3d",),
        looks_like=lambda head: (
            len(head) > _BLOCK and head[1] == _MAGIC_BYTE and 1 < head[0] < 128 and b"\0" in head
        ),
        read=read_c3d,
        write=None,
    ),
)
