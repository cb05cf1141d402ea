"""StereoMorph's shape files: lists, vectors and matrices between tags that look like XML.

One file is one specimen. Landmarks are rows of a name and coordinates between tabs, in pixels
with y downwards and, where the image has a scale, also in its units with y upwards; the latter
are taken. Points on curves (Bézier curves through control points) are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from defgpa.errors import FormatError
from defgpa.io.files import make_format_error, mask_missing
from defgpa.io.format import Document, Format, ReadOptions, make_document
from defgpa.io.text.lines import decode_head, parse_numbers, parse_numbers_fast, read_text

_KINDS = ("landmarks.scaled", "landmarks.pixel")  # the first of them that is there


def read_stereomorph(path: Path, options: ReadOptions) -> Document:
    """Read the landmarks of a shape file."""
    text = read_text(path)
    blocks = (match for kind in _KINDS if (match := _find_block(text, kind)))
    block = next((match for match in blocks if match[1].strip()), None)
    if block is None:
        raise make_format_error(path, "a matrix <landmarks.scaled> or <landmarks.pixel>", "none")
    labels, points = [], []
    for line, row in enumerate(block[1].split("\n"), start=text.count("\n", 0, block.start(1)) + 1):
        if row.strip():
            label, point = _parse_row(path, line, row)
            labels.append(label)
            points.append(point)
    if not points or len({len(point) for point in points}) > 1:
        raise FormatError(f"{path}: expected landmarks with as many coordinates each.")
    stack = mask_missing(np.array(points), options.missing)
    metadata = _collect_metadata(text, scaled=block[0].startswith(f"<{_KINDS[0]}"))
    return make_document(path, [stack], labels=tuple(labels), shape_metadata=[metadata])


def _collect_metadata(text: str, scaled: bool) -> dict[str, Any]:
    """Collect the image, and the scale where it is in the coordinates."""
    words = {key: _find_block(text, key) for key in ("image.name", "scaling")}
    image, scale = (match[1].strip() if match else "" for match in words.values())
    metadata: dict[str, Any] = {"images": image} if image else {}
    factors = [value for value in parse_numbers_fast([scale]) if 0 < value < np.inf]
    return {**metadata, "scales": factors[0]} if scaled and factors else metadata


def _find_block(text: str, kind: str) -> re.Match[str] | None:
    """Find the text between the tags of one kind."""
    return re.search(rf"<{re.escape(kind)}\b[^>]*>(.*?)</{re.escape(kind)}>", text, re.DOTALL)


def _parse_row(path: Path, line: int, row: str) -> tuple[str, list[float]]:
    """Parse a name, which may hold blanks, and two or three numbers."""
    label, *coordinates = row.strip().split("\t") if "\t" in row.strip() else row.split()
    if len(coordinates) not in (2, 3):
        raise make_format_error(
            path, "a landmark and its 2 or 3 coordinates", repr(row.strip()), line
        )
    return label.strip(), parse_numbers(path, line, coordinates)


def _looks_like_stereomorph(head: bytes) -> bool:
    text = decode_head(head).lstrip()
    return text.startswith("<") and bool(re.search(r"<(shapes|landmarks\.(pixel|scaled))\b", text))


FORMATS = (Format("stereomorph", (".txt",), _looks_like_stereomorph, read_stereomorph, write=None),)
