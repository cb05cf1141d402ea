"""3D Slicer markups: one file is one shape, in LPS or RAS, and every point has a label.

Two generations: ``.mrk.json``, which can say that a point is missing, and ``.fcsv``, which can
only leave it out. The numbers are given as the file states them, with the file's coordinate
system in the document's ``space``; bringing several files to one system is not done here.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import FormatError
from defgpa.io.anatomical_space import convert_space
from defgpa.io.atomic import write_text
from defgpa.io.files import (
    abbreviate,
    decode_text,
    list_names,
    make_format_error,
    mask_missing,
    read_bytes,
)
from defgpa.io.format import Document, Format, ReadOptions, Specimen, require_3d
from defgpa.io.text.lines import (
    JsonObject,
    normalise_newlines,
    parse_json_point,
    parse_numbers,
    read_json,
    read_text,
    warn,
)
from defgpa.io.text.table import format_csv
from defgpa.shapes import Shapes, number_labels

_SCHEMA = (
    "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/"
    "Resources/Schema/markups-schema-v1.0.3.json#"
)
CURVES = ("Curve", "ClosedCurve")
_STATUSES = ("defined", "undefined", "preview", "missing")
_UNIT_AXES = {
    "LPS": [-1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0],
    "RAS": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
}
_SPACES = {"0": "RAS", "1": "LPS", "RAS": "RAS", "LPS": "LPS"}
_COLUMNS = "id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID"
_SLICER_3_COLUMNS = "label,x,y,z,sel,vis"
_FCSV_MARKS = (b"Markups fiducial file", b"# CoordinateSystem", b"# columns")

_compact = json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode

Point = tuple[float, float, float]
_MISSING: Point = (math.nan, math.nan, math.nan)


# .mrk.json


def read_markups(path: Path, options: ReadOptions) -> Document:
    """Read the landmarks of a ``.mrk.json`` file, and its curves after them.

    SlicerMorph tells fixed landmarks from semilandmarks in their description: the labels of the
    latter are ``metadata["semilandmarks"]``.
    """
    landmark_list, curves = _find_point_lists(path, options)
    space, points, labels = _parse_point_list(path, landmark_list)
    document = _build_document(path, space, points, labels, options)
    if curves:
        document = _append_curves(path, document, curves)
    descriptions = [str(p.get("description", "")) for p in landmark_list.get("controlPoints", ())]
    semi = tuple(
        label or str(k)
        for k, (label, text) in enumerate(zip(labels, descriptions, strict=True), start=1)
        if text.strip().lower() == "semi"
    )
    metadata = {**document.metadata, "semilandmarks": semi} if semi else document.metadata
    return replace(document, metadata=metadata)


def _parse_point_list(path: Path, node: JsonObject) -> tuple[str, list[Point], list[str]]:
    """Parse the space, the points and the labels of one markup."""
    control_points = _accept_previews(path, node.get("controlPoints", []))
    points = [_parse_position(path, k, point) for k, point in enumerate(control_points, start=1)]
    labels = [str(point.get("label") or "").strip() for point in control_points]
    system = str(node.get("coordinateSystem", "LPS"))  # Slicer's default, too
    return _parse_space(path, system, "'coordinateSystem' LPS or RAS", None), points, labels


def _append_curves(path: Path, document: Document, curves: Sequence[JsonObject]) -> Document:
    """Append curves to the landmarks of the only specimen of a document, in its space."""
    (specimen,) = document.specimens
    space = document.metadata["space"]
    blocks, names, counts = [specimen.points], list[str](), Counter[str]()
    for node in curves:
        kind = "outline" if node.get("type") == "ClosedCurve" else "curve"
        counts[kind] += 1
        curve_space, points, _ = _parse_point_list(path, node)
        blocks.append(convert_space(np.array(points), curve_space, space))
        names += number_labels(f"{kind}{counts[kind]}_", len(points))
    labels = specimen.labels and (*specimen.labels, *names)
    specimen = replace(
        specimen,
        points=np.concatenate([block.reshape(-1, 3) for block in blocks]),
        labels=labels,
        curves=tuple(names),
    )
    return replace(document, specimens=(specimen,))


def write_markups(path: Path, shapes: Shapes) -> None:
    """Write one shape as a list of fiducials; a missing landmark has the status ``missing``."""
    require_3d(path, shapes, "Slicer markups hold 3-D points")
    space, points = _get_space(shapes), shapes[0]
    semilandmarks = shapes.metadata.get("semilandmarks")
    node = {
        "type": "Fiducial",
        "coordinateSystem": space,
        "locked": False,
        "fixedNumberOfControlPoints": False,
        "labelFormat": "%N-%d",
        "lastUsedControlPointNumber": len(points),
        "measurements": [],
    }
    control_points = [
        _make_control_point(k, label, point, space, _describe(label, semilandmarks))
        for k, (label, point) in enumerate(zip(shapes.landmarks, points, strict=True), start=1)
    ]
    # one line a point: as readable as indented JSON, and much faster to write
    rows = ",\n".join(_compact(point) for point in control_points)
    opened = f'{{"@schema": {_compact(_SCHEMA)}, "markups": [{_compact(node)[:-1]}'
    write_text(path, f'{opened}, "controlPoints": [\n{rows}\n]}}]}}\n')


def list_point_lists(path: Path) -> list[JsonObject]:
    """List the fiducials and curves of a ``.mrk.json`` file, not planes, lines or angles."""
    content = read_json(path)
    nodes = content.get("markups") if isinstance(content, dict) else None
    if not isinstance(nodes, list) or not all(isinstance(node, dict) for node in nodes):
        raise make_format_error(path, "an object of 3D Slicer with a list 'markups'", content)
    lists = [node for node in nodes if node.get("type", "Fiducial") in ("Fiducial", *CURVES)]
    for points in (node.get("controlPoints") for node in lists):
        if not isinstance(points, list) or not all(isinstance(point, dict) for point in points):
            raise make_format_error(path, "a list of objects 'controlPoints'", points)
    if not lists:
        names = [str(node.get("name") or node.get("type")) for node in nodes]
        raise make_format_error(
            path, "a Fiducial, Curve or ClosedCurve with points", list_names(names) or "none"
        )
    return lists


def _find_point_lists(path: Path, options: ReadOptions) -> tuple[JsonObject, list[JsonObject]]:
    """Find the list of landmarks, and the curves besides.

    A curve alone is a list of landmarks, unless curves are to be resampled.
    """
    lists = list_point_lists(path)
    filled = [node for node in lists if node["controlPoints"]]
    curves = [node for node in filled if node.get("type") in CURVES]
    fiducials = [node for node in filled if node.get("type") not in CURVES]
    if len(filled) == 1 and (fiducials or options.curve_points is None):
        return filled[0], []
    names = [str(node.get("name") or node.get("type", "Fiducial")) for node in fiducials or lists]
    if len(fiducials) > 1:
        raise FormatError(
            f"{path} holds {len(fiducials)} lists of points ({list_names(names)}), and a file is "
            "one shape. Save each list in a file of its own."
        )
    if not filled:
        raise make_format_error(path, "a list with points", list_names(names))
    system = curves[0].get("coordinateSystem", "LPS")
    return (fiducials or [{"coordinateSystem": system, "controlPoints": []}])[0], curves


def _parse_space(path: Path, system: str, expected: str, line: int | None) -> str:
    word = system.strip().upper()
    if word in ("2", "IJK"):  # systems of an image that the file does not hold
        system += " (voxel numbers; save the points in LPS or RAS)"
    if word not in _SPACES:
        raise make_format_error(path, expected, system, line)
    return _SPACES[word]


def _accept_previews(path: Path, control_points: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the points; accept previews where all points are previews at distinct places.

    So do programs write them that detect landmarks; of a template, all lie in the origin.
    """
    places = {str(point.get("position")) for point in control_points}
    if len(places) < 2 or any(point.get("positionStatus") != "preview" for point in control_points):
        return control_points
    warn(f"{path}: all points have the status 'preview'; they are taken as defined.")
    return [{**point, "positionStatus": "defined"} for point in control_points]


def _parse_position(path: Path, k: int, point: JsonObject) -> Point:
    status, position = point.get("positionStatus", "defined"), point.get("position")
    if status not in _STATUSES:
        raise make_format_error(path, f"a 'positionStatus' among {list_names(_STATUSES)}", status)
    if status != "defined" or position in (None, "", []):
        return _MISSING
    x, y, z = parse_json_point(path, position, f"3 numbers as 'position' of control point {k}")
    return x, y, z


def _describe(label: str, semilandmarks: Sequence[str] | None) -> str:
    """Return SlicerMorph's word for a landmark, where it is known which are semilandmarks."""
    if semilandmarks is None:
        return ""
    return "Semi" if label in semilandmarks else "Fixed"


def _make_control_point(
    k: int, label: str, point: Array, space: str, description: str
) -> dict[str, object]:
    visible = not np.isnan(point).any()
    return {
        "id": str(k),
        "label": label,
        "description": description,
        "associatedNodeID": "",
        "position": point.tolist() if visible else "",
        "orientation": _UNIT_AXES[space],
        "selected": True,
        "locked": False,
        "visibility": True,
        "positionStatus": "defined" if visible else "missing",
    }


# .fcsv


def read_fcsv(path: Path, options: ReadOptions) -> Document:
    """Read the points of an ``.fcsv`` file, by the names of its columns."""
    lines = _read_fcsv_lines(path)
    at, system = next(_find_headers(lines, "CoordinateSystem"), (0, "RAS"))
    space = _parse_space(path, system, "CoordinateSystem LPS, RAS, 0 or 1", at)
    columns = _find_fcsv_columns(path, lines)
    points, labels = [], []
    for line, row, defined in _parse_fcsv_rows(path, lines, columns):
        x, y, z = parse_numbers(path, line, [row[axis] for axis in "xyz"])
        points.append((x, y, z) if defined else _MISSING)
        labels.append(row.get("label", "").strip())
    if not points:
        raise make_format_error(path, "at least one row of coordinates", "none")
    return _build_document(path, space, points, labels, options)


def write_fcsv(path: Path, shapes: Shapes) -> None:
    """Write one shape; a missing landmark has no row, as the format has no other way."""
    require_3d(path, shapes, "Slicer markups hold 3-D points")
    space, points = _get_space(shapes), shapes[0]
    head = f"# Markups fiducial file version = 4.11\n# CoordinateSystem = {space}\n"
    rows = (
        [k, *point.tolist(), 0, 0, 0, 1, 1, 1, 0, " ".join(label.split()), "", ""]
        for k, (label, point) in enumerate(zip(shapes.landmarks, points, strict=True), start=1)
        if not np.isnan(point).any()
    )
    table = format_csv([], rows, written=str)
    write_text(path, f"{head}# columns = {_COLUMNS}\n{table}")


def _read_fcsv_lines(path: Path) -> list[str]:
    """Read the lines of a file; a CR inside lines that end otherwise is a blank."""
    text = read_text(path)
    stored = decode_text(read_bytes(path)).replace("\r\n", "\n").strip()
    if "\n" in stored and "\r" in stored:
        text = normalise_newlines(stored.replace("\r", " "))
    return text.split("\n")


def _find_headers(lines: Sequence[str], key: str) -> Iterator[tuple[int, str]]:
    """Find the values of ``# key = value``, with their line numbers."""
    pattern = re.compile(rf"#\s*{key}\s*=\s*(.*)", re.IGNORECASE)
    for at, line in enumerate(lines, start=1):
        if line.startswith("#") and (match := pattern.match(line)):
            yield at, match[1].strip().rstrip(",")  # spreadsheets pad short rows with commas


def _find_fcsv_columns(path: Path, lines: Sequence[str]) -> list[str]:
    """Find the names of the columns; without them, those of Slicer 4 or, with few, of 3."""
    version = next(_find_headers(lines, "Markups fiducial file version"), None)
    first = next((line for line in lines if line.strip(" \t,") and line[0] != "#"), "")
    has_many = first.count(",") > _SLICER_3_COLUMNS.count(",")
    default = (0, _COLUMNS if version or has_many else _SLICER_3_COLUMNS)
    at, column_names = next(_find_headers(lines, "columns"), default)
    columns = [name.strip().lower() for name in column_names.split(",")]
    if not {"x", "y", "z"} <= set(columns):
        raise make_format_error(path, "columns x, y and z", column_names, at)
    return columns


def _parse_fcsv_rows(
    path: Path, lines: Sequence[str], columns: Sequence[str]
) -> Iterator[tuple[int, dict[str, str], bool]]:
    """Parse every row: its line, its fields by column, and whether its point is defined.

    Slicer 5 adds a status, of which 2 is "defined", and a flag to every row, without columns.
    """
    needed = 1 + max(columns.index(name) for name in "xyz")
    for at, line in enumerate(lines, start=1):
        if not line.strip(" \t,") or line.startswith("#"):
            continue
        try:
            (fields,) = csv.reader([line]) if '"' in line else [line.split(",")]
        except csv.Error as error:
            raise make_format_error(path, "fields separated by commas", str(error), at) from None
        if len(fields) < needed:
            raise make_format_error(
                path, f"{len(columns)} fields ({abbreviate(','.join(columns), 80)})", line, at
            )
        extra = [field.strip() for field in fields[len(columns) :]]
        if any(extra) and not (len(extra) == 2 and extra[0] in ("0", "1", "2", "3")):
            raise FormatError(
                f"{path}, line {at}: expected {len(columns)} fields; found {len(fields)}. "
                "Labels with commas must be quoted, and numbers must have a decimal point."
            )
        yield at, dict(zip(columns, fields, strict=False)), not any(extra) or extra[0] == "2"


# both


def _build_document(
    path: Path, space: str, points: Sequence[Point], labels: Sequence[str], options: ReadOptions
) -> Document:
    """Build one specimen, matched by label if every point has one, else by order."""
    name = re.sub(r"((\.mrk)?\.json|\.fcsv)\Z", "", path.name, flags=re.IGNORECASE)
    array = np.array(points, dtype=np.float64).reshape(-1, 3)
    array = mask_missing(array, options.missing, space)
    if any(labels) and not all(labels):
        warn(
            f"{path}: {sum(not label for label in labels)} of {len(labels)} points have no label; "
            "its points are taken in their order, not by label."
        )
    specimen = Specimen(name, array, tuple(labels) if all(labels) else None)
    return Document((specimen,), metadata={"space": space})


def _get_space(shapes: Shapes) -> str:
    return _SPACES.get(str(shapes.metadata.get("space", "LPS")).upper(), "LPS")


def _looks_like(head: bytes, first: bytes, marks: Sequence[bytes]) -> bool:
    begin = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return begin.startswith(first) and any(mark in head for mark in marks)


FORMATS = (
    Format(
        name="mrk.json",
        suffixes=(".mrk.json",),
        looks_like=lambda head: _looks_like(head, b"{", (b'"markups"', b"markups-schema")),
        read=read_markups,
        write=write_markups,
        one_shape_per_file=True,
        holds=("space", "semilandmarks"),
    ),
    Format(
        name="fcsv",
        suffixes=(".fcsv",),
        looks_like=lambda head: _looks_like(head, b"#", _FCSV_MARKS),
        read=read_fcsv,
        write=write_fcsv,
        one_shape_per_file=True,
        holds=("space",),
    ),
)
