"""MeshLab's picked points (``.pp``): named points on a mesh, as XML. One file is one shape.

A point that is not active was named in a template and not picked: it is missing.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np

from defgpa.io.atomic import write_text
from defgpa.io.files import make_format_error, mask_missing, read_bytes, translate_errors
from defgpa.io.format import Document, Format, ReadOptions, make_document, require_3d
from defgpa.io.text.lines import parse_number
from defgpa.io.xml import parse_xml
from defgpa.shapes import Shapes


def read_pp(path: Path, options: ReadOptions) -> Document:
    """Read the points of a file, by their names."""
    data = read_bytes(path)
    with translate_errors(path, "file of picked points"):
        points = parse_xml(path, data, "picked points").findall("point")
    if not points:
        raise make_format_error(path, "picked points", "none")
    array = np.array([_parse_coordinates(path, point) for point in points])
    labels = tuple(point.get("name", "") for point in points)
    stack = [mask_missing(array, options.missing)]
    return make_document(path, stack, labels=labels if all(labels) else None)


def write_pp(path: Path, shapes: Shapes) -> None:
    """Write one point per landmark, not active where it is missing."""
    require_3d(path, shapes, "picked points are 3-D")
    lines = ["<!DOCTYPE PickedPoints>", "<PickedPoints>"]
    for label, point in zip(shapes.landmarks, shapes.points[0].tolist(), strict=True):
        visible = not np.isnan(point).any()
        x, y, z = point if visible else (0, 0, 0)
        place = f'active="{int(visible)}" x="{x!r}" y="{y!r}" z="{z!r}"'
        lines.append(f" <point {place} name={quoteattr(label)}/>")
    write_text(path, "\n".join([*lines, "</PickedPoints>"]) + "\n")


def _parse_coordinates(path: Path, point: ElementTree.Element) -> list[float]:
    if point.get("active", "1") == "0":
        return [np.nan] * 3
    missing = [axis for axis in "xyz" if axis not in point.attrib]
    if missing:
        raise make_format_error(path, "x, y and z of every point", f"no {missing[0]}")
    return [parse_number(path, 1, point.attrib[axis]) for axis in "xyz"]


FORMATS = (
    Format(
        name="pp",
        suffixes=(".pp",),
        looks_like=lambda head: b"<PickedPoints" in head,
        read=read_pp,
        write=write_pp,
        one_shape_per_file=True,
        holds=(),
    ),
)
