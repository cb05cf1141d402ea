"""Landmarks of Amira and Avizo (``.landmarkAscii``): a header, then rows of three numbers.

``define Markers n`` counts the landmarks, ``Markers { float[3] Coordinates } @1`` names the block
that holds them. A file is one shape, and its landmarks have no labels.
"""

from __future__ import annotations

import re
from pathlib import Path

from defgpa.errors import FormatError
from defgpa.io.files import make_format_error, mask_missing
from defgpa.io.format import Document, Format, ReadOptions, make_document
from defgpa.io.text.lines import (
    collect_disagreements,
    decode_head,
    parse_count,
    parse_points,
    read_text,
)

_SIGNATURE = re.compile(r"\s*#[ \t]*(AmiraMesh|Avizo)\b[^\n]*\n", re.IGNORECASE)
_COUNT = re.compile(r"^[ \t]*define[ \t]+Markers[ \t]+(\S+)", re.IGNORECASE | re.MULTILINE)
_BLOCK = re.compile(
    r"^[ \t]*Markers\s*\{\s*(?:float|double)\[3\]\s+Coordinates[0-9]*\s*\}\s*=?\s*(@[0-9]+)",
    re.IGNORECASE | re.MULTILINE,
)


def read_amira(path: Path, options: ReadOptions) -> Document:
    """Read the one shape of a file."""
    text = read_text(path)
    counts, blocks = list(_COUNT.finditer(text)), _BLOCK.findall(text)
    if not counts or not blocks:
        expected = "'define Markers n' and 'Markers { float[3] Coordinates } @1'"
        raise make_format_error(path, expected, "neither or one")
    if len(blocks) > 1:
        raise FormatError(
            f"{path} holds {len(blocks)} sets of landmarks, and a file is one shape. Save each "
            "set in a file of its own."
        )
    at = text.count("\n", 0, counts[0].start(1)) + 1
    announced = parse_count(path, at, counts[0][1], "the number of Markers")
    lines = [line.strip() for line in text.split("\n")]
    if blocks[0] not in lines:
        raise make_format_error(path, f"a line {blocks[0]} above the coordinates", "none")
    start = lines.index(blocks[0]) + 1
    following = (k for k in range(start, len(lines)) if lines[k].startswith("@"))
    rows = "\n".join(lines[start : next(following, len(lines))])
    points = parse_points(path, rows, start + 1)
    if len(points) and points.shape[1] != 3:
        raise make_format_error(path, "3 coordinates", repr(rows.split("\n")[0]), start + 1)
    with collect_disagreements(path, options) as disagree:
        if len(points) != announced:
            disagree(at, f"{announced} rows below {blocks[0]}", str(len(points)))
    return make_document(path, [mask_missing(points, options.missing)])


def _looks_like_amira(head: bytes) -> bool:
    text = decode_head(head)
    return bool(_SIGNATURE.match(text) and _COUNT.search(text))


FORMATS = (Format("amira", (".landmarkascii",), _looks_like_amira, read_amira, write=None),)
