"""StereoMorph's shape files: lists, vectors and matrices between tags that look like XML.

One file is one specimen. Landmarks are rows of a name and coordinates between tabs, in pixels
with y downwards and, where the image has a scale, also in its units with y upwards; the latter
are taken. So are the points of curves, a matrix each below its name; control points are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from defgpa.errors import FormatError
from defgpa.io.curves import name_curve_point
from defgpa.io.files import make_format_error, mask_missing
from defgpa.io.format import Document, Format, ReadOptions, Specimen
from defgpa.io.text.lines import decode_head, parse_numbers, parse_numbers_fast, read_text, warn

_UNITS = ("scaled", "pixel")  # the first of them that is there
_TAG = re.compile(r"<(?:([^/\s>][^\s>]*)[^>]*|/[^>]*)>")  # of a curve: opening or closing


def read_stereomorph(path: Path, options: ReadOptions) -> Document:
    """Read the landmarks and the curves of a shape file."""
    text = read_text(path)
    unit = _find_unit(path, text)
    labels, points = [], []
    for line, row in _list_lines(text, f"landmarks.{unit}"):
        label, point = _parse_row(path, line, row)
        labels.append(label)
        points.append(point)
    curves = _parse_curves(path, text, unit)
    names = [
        name_curve_point(curve, k)
        for curve, members in curves.items()
        for k in range(1, len(members) + 1)
    ]
    points += [point for members in curves.values() for point in members]
    if not points or len({len(point) for point in points}) > 1:
        raise FormatError(f"{path}: expected landmarks with as many coordinates each.")
    specimen = Specimen(
        path.stem,
        mask_missing(np.array(points), options.missing),
        (*labels, *names),
        _collect_metadata(text, scaled=unit == "scaled"),
        tuple(names),
    )
    return Document((specimen,))


def _find_unit(path: Path, text: str) -> str:
    """Find the unit in which there are landmarks, or else curves."""
    for kind in ("landmarks", "curves"):
        for unit in _UNITS:
            if next(_list_lines(text, f"{kind}.{unit}"), None):
                return unit
    raise make_format_error(path, "a matrix <landmarks.scaled> or <landmarks.pixel>", "none")


def _list_lines(text: str, kind: str) -> Iterator[tuple[int, str]]:
    """List the lines between the tags of one kind, with their numbers in the file."""
    block = _find_block(text, kind)
    if block:
        content, start = block
        lines = enumerate(content.split("\n"), start=text.count("\n", 0, start) + 1)
        yield from ((line, row.strip()) for line, row in lines if row.strip())


def _parse_curves(path: Path, text: str, unit: str) -> dict[str, list[list[float]]]:
    """Parse the points of each curve, which stand below its tag or, in old files, beside its name.

    Points of one curve have the same name in an old file, or are numbered with four digits.
    """
    curves: dict[str, list[list[float]]] = {}
    tag = ""
    for line, row in _list_lines(text, f"curves.{unit}"):
        if match := _TAG.fullmatch(row):
            tag = match[1] or ""
            continue
        if tag:
            name, point = tag, parse_numbers(path, line, row.split())
        else:
            label, point = _parse_row(path, line, row)
            name = re.sub(r"(?<=.)[0-9]{4}$", "", label)
        if len(point) not in (2, 3):
            raise make_format_error(path, "the 2 or 3 coordinates of a point", repr(row), line)
        curves.setdefault(name, []).append(point)
    if not curves and next(_list_lines(text, "curves.pixel"), None):
        warn(f"{path}: its curves are in pixels and its landmarks are not; curves are left out.")
    return curves


def _collect_metadata(text: str, scaled: bool) -> dict[str, object]:
    """Collect the image, and the scale where it is in the coordinates."""
    blocks = (_find_block(text, key) for key in ("image.name", "scaling"))
    image, scale = (block[0].strip() if block else "" for block in blocks)
    metadata: dict[str, object] = {"images": image} if image else {}
    factors = [value for value in parse_numbers_fast([scale]) if 0 < value < np.inf]
    return {**metadata, "scales": factors[0]} if scaled and factors else metadata


def _find_block(text: str, kind: str) -> tuple[str, int] | None:
    """Find the text between the first tags of one kind, and where it begins."""
    opening = re.search(rf"<{re.escape(kind)}\b", text)
    start = 0 if opening is None else text.find(">", opening.end()) + 1
    end = text.find(f"</{kind}>", start)
    return (text[start:end], start) if start and end >= 0 else None


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
    return text.startswith("<") and bool(
        re.search(r"<(shapes|(landmarks|curves)\.(pixel|scaled))\b", text)
    )


FORMATS = (Format("stereomorph", (".txt",), _looks_like_stereomorph, read_stereomorph, write=None),)
