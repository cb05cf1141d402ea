"""Landmarks of Scalismo: a JSON list of ``{"id": …, "coordinates": [x, y, z]}``, a file a shape."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from defgpa.io.atomic import write_text
from defgpa.io.files import make_format_error, mask_missing
from defgpa.io.format import Document, Format, ReadOptions, make_document, require_3d
from defgpa.io.text.lines import decode_head, parse_json_point, read_json
from defgpa.shapes import Shapes


def read_scalismo(path: Path, options: ReadOptions) -> Document:
    """Read the landmarks of a file by their identifiers."""
    entries = read_json(path)
    if not isinstance(entries, list) or not entries:
        raise make_format_error(path, "a list of landmarks", entries)
    points = np.array([_parse_coordinates(path, k, entry) for k, entry in enumerate(entries, 1)])
    labels = tuple(str(entry.get("id") or "").strip() for entry in entries)
    return make_document(
        path,
        [mask_missing(points, options.missing)],
        labels=labels if all(labels) else None,
    )


def write_scalismo(path: Path, shapes: Shapes) -> None:
    """Write one shape; a missing landmark has no entry, as the format has no way to say it."""
    require_3d(path, shapes, "Scalismo's landmarks are 3-D")
    entries = [
        {"id": label, "coordinates": point}
        for label, point in zip(shapes.landmarks, shapes.points[0].tolist(), strict=True)
        if not math.isnan(point[0])
    ]
    write_text(path, json.dumps(entries, ensure_ascii=False, indent=1) + "\n")


def _parse_coordinates(path: Path, k: int, entry: object) -> list[float]:
    numbers = entry.get("coordinates") if isinstance(entry, dict) else None
    return parse_json_point(path, numbers, f"3 numbers as 'coordinates' of landmark {k}")


def _looks_like_scalismo(head: bytes) -> bool:
    text = decode_head(head).lstrip()
    return text.startswith("[") and '"coordinates"' in text and '"id"' in text


FORMATS = (
    Format(
        name="scalismo",
        suffixes=(".json",),
        looks_like=_looks_like_scalismo,
        read=read_scalismo,
        write=write_scalismo,
        one_shape_per_file=True,
        holds=(),
    ),
)
