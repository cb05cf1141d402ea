"""COCO keypoints: a JSON file of images, their annotations, and the names of the keypoints.

``keypoints`` of an annotation are x, y and v for each landmark: 0 is missing, 1 hidden but placed,
2 visible. In a list of results, which has annotations alone, v is the confidence of a detector.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import FormatError
from defgpa.io.atomic import write_text
from defgpa.io.files import make_format_error
from defgpa.io.format import Document, Format, ReadOptions, Specimen
from defgpa.io.limits import Budget
from defgpa.io.text.lines import JsonObject, decode_head, parse_json_numbers, read_json
from defgpa.io.weights import is_visibility
from defgpa.shapes import Shapes, number_labels


def read_coco(path: Path, options: ReadOptions) -> Document:
    """Read a shape for every annotation that has keypoints."""
    content = read_json(path)
    annotations = _list_entries(path, content, "annotations")
    images = {image.get("id"): image for image in _list_entries(path, content, "images")}
    categories = {c.get("id"): c for c in _list_entries(path, content, "categories")}
    with_keypoints = [
        (k, entry) for k, entry in enumerate(annotations, 1) if entry.get("keypoints")
    ]
    if not with_keypoints:
        expected = "annotations with 'keypoints' (JSON of COCO, 3D Slicer and Scalismo is read)"
        raise make_format_error(path, expected, f"{len(annotations)} without")
    Budget(path).spend_on_specimens(len(with_keypoints))
    per_image = Counter(str(entry.get("image_id")) for _, entry in with_keypoints)
    specimens = []
    for k, entry in with_keypoints:
        category = categories.get(entry.get("category_id"), {})
        points, weights = _parse_keypoints(path, k, entry["keypoints"], options)
        file_name = str(images.get(entry.get("image_id"), {}).get("file_name") or "")
        image = PureWindowsPath(file_name).stem or f"image_{entry.get('image_id', k)}"
        has_several = per_image[str(entry.get("image_id"))] > 1
        metadata = {"images": file_name} if file_name else {}
        if len(categories) > 1:
            metadata["groups"] = str(category.get("name", entry.get("category_id")))
        specimens.append(
            Specimen(
                f"{image}_{entry.get('id', k)}" if has_several else image,
                points,
                _find_labels(category, len(points)),
                metadata,
                weights=weights,
            )
        )
    return Document(tuple(specimens), metadata=_find_links(categories, len(specimens[0].points)))


def write_coco(path: Path, shapes: Shapes) -> None:
    """Write images, annotations and one category; weights, where there are, as confidences."""
    if shapes.n_dims != 2:
        raise FormatError(
            f"{path} cannot be written: COCO keypoints are 2-D, and these are {shapes.n_dims}-D. "
            "Choose another format, such as .csv."
        )
    files = shapes.metadata.get("images") or shapes.names
    flags = shapes.weights if shapes.has_weights else 2 * shapes.visible
    keypoints = np.dstack([np.nan_to_num(shapes.points), flags]).reshape(len(shapes), -1)
    category: dict[str, object] = {"id": 1, "name": "shape", "keypoints": list(shapes.landmarks)}
    if shapes.links:
        category["skeleton"] = [[a + 1, b + 1] for a, b in shapes.links]
    content = {
        "images": [
            {"id": k, "file_name": str(file or name)}
            for k, (file, name) in enumerate(zip(files, shapes.names, strict=True), 1)
        ],
        "annotations": [
            {"id": k, "image_id": k, "category_id": 1, "keypoints": row, "num_keypoints": count}
            for k, (row, count) in enumerate(
                zip(keypoints.tolist(), shapes.visible.sum(axis=1).tolist(), strict=True), 1
            )
        ],
        "categories": [category],
    }
    write_text(path, json.dumps(content, ensure_ascii=False) + "\n")


def _list_entries(path: Path, content: object, key: str) -> Sequence[JsonObject]:
    """List the objects under a key; a bare list is one of annotations."""
    if isinstance(content, list):
        entries: object = content if key == "annotations" else []
    else:
        entries = content.get(key, []) if isinstance(content, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise make_format_error(path, f"a list of objects {key!r}", entries)
    return [
        {name: value if name != "id" or isinstance(value, (str, int)) else None
         for name, value in entry.items()}
        for entry in entries
    ]  # fmt: skip


def _parse_keypoints(
    path: Path, k: int, numbers: Any, options: ReadOptions
) -> tuple[Array, Array | None]:
    """Return points (m, 2) and, where they are confidences, weights (m,)."""
    expected = f"x, y, v for every keypoint of annotation {k}"
    values = np.array(parse_json_numbers(path, numbers, 3, expected)).reshape(-1, 3)
    points, flags = values[:, :2], values[:, 2]
    points[flags == 0] = np.nan
    if not flags.any() or is_visibility(flags):
        return points, None
    return points, flags if options.weights == "likelihood" else None


def _find_labels(category: JsonObject, m: int) -> tuple[str, ...] | None:
    names = category.get("keypoints")
    if not isinstance(names, list) or len(names) != m:
        return None
    labels = tuple(str(name) for name in names)
    return None if labels == number_labels("", m) else labels


def _find_links(categories: Mapping[object, JsonObject], m: int) -> dict[str, object]:
    """Find the skeleton of the only category, from 1 in the file and from 0 here."""
    skeletons = [category.get("skeleton") for category in categories.values()]
    if len(skeletons) != 1 or not isinstance(skeletons[0], list):
        return {}
    pairs = [tuple(pair) for pair in skeletons[0] if isinstance(pair, list) and len(pair) == 2]
    if not all(isinstance(a, int) and isinstance(b, int) for a, b in pairs):
        return {}
    links = tuple((a - 1, b - 1) for a, b in pairs if 1 <= a <= m and 1 <= b <= m)
    return {"links": links} if links else {}


def _looks_like_coco(head: bytes) -> bool:
    text = decode_head(head).lstrip()
    if text.startswith("["):
        return '"keypoints"' in text and '"image_id"' in text
    return text.startswith("{") and (
        '"annotations"' in text or ('"images"' in text and '"file_name"' in text)
        or ('"categories"' in text and '"keypoints"' in text) or '"num_keypoints"' in text
    )  # fmt: skip


FORMATS = (
    Format(
        name="coco",
        suffixes=(".json",),
        looks_like=_looks_like_coco,
        read=read_coco,
        write=write_coco,
        holds=("images", "links", "weights"),
    ),
)
