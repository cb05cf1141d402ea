"""Tables of body parts followed through a video, as DeepLabCut writes them.

Several rows are the header: ``scorer``, perhaps ``individuals``, ``bodyparts``, ``coords``. Below
them a row is a frame, by its number or its image, with x, y[, z] and perhaps a likelihood for
each body part of each individual.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from defgpa.arrays import Array
from defgpa.io.files import make_format_error
from defgpa.io.format import Document, ReadOptions, Specimen
from defgpa.io.text.lines import warn
from defgpa.io.text.table import Table, is_whole
from defgpa.io.weights import hide_unlikely

_HEADS = ("individuals", "bodyparts", "coords")
_AXES = ("x", "y", "z")
_LIKELIHOOD = "likelihood"

Part = dict[str, int]  # "x", "y", "z", "likelihood" to their columns


def is_tracking_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first rows of a table, perhaps cut off, are a header of DeepLabCut."""
    firsts = [row[0].strip() for row in rows[:2] if row]
    return firsts[:1] == ["scorer"] and len(rows[0]) > 2 and set(firsts[1:]) <= set(_HEADS)


def read_tracking(table: Table, options: ReadOptions) -> Document | None:
    """Read a shape for each individual in each frame with a visible point; None for others."""
    heads = _find_heads(table)
    if not table.header or not {"bodyparts", "coords"} <= heads.keys():
        return None
    frames = replace(table, rows=table.rows[len(heads) :], lines=table.lines[len(heads) :])
    if not frames.rows:
        raise make_format_error(table.path, "frames below 'coords'", "none", table.lines[-1])
    coords = heads["coords"]  # before the first coordinate stands what the frame is called
    start = next((k for k, word in enumerate(coords) if word in _AXES), len(coords))
    specimens = [
        specimen
        for individual, parts in _find_individuals(table, heads).items()
        for specimen in _build_specimens(frames, individual, parts, start, options)
    ]
    specimens, note = hide_unlikely(table.path, specimens, options)
    visible = tuple(s for s in specimens if not np.isnan(s.points).all())
    if not visible:
        raise make_format_error(table.path, "frames in which something is visible", "none")
    empty = len(specimens) - len(visible)
    warn(
        f"{table.path}: a table of DeepLabCut; every frame is a shape"
        + (f", but {empty} in which nothing is visible." if empty else ".")
        + note
    )
    return Document(visible)


def _find_heads(table: Table) -> dict[str, list[str]]:
    """Find the rows of the header below the first, by their names."""
    rows = ([cell.strip() for cell in row] for row in table.rows[: len(_HEADS)])
    return {row[0]: row for row in rows if row[0] in _HEADS}


def _find_individuals(table: Table, heads: dict[str, list[str]]) -> dict[str, dict[str, Part]]:
    """Map each individual ("" if unnamed) to its body parts and their columns."""
    individuals: dict[str, dict[str, Part]] = {}
    names = heads.get("individuals", [""] * table.width)
    cells = zip(names, heads["bodyparts"], heads["coords"], strict=True)
    for column, (name, bodypart, axis) in enumerate(cells):
        if axis in (*_AXES, _LIKELIHOOD):
            individuals.setdefault(name, {}).setdefault(bodypart, {})[axis] = column
    kinds = {
        frozenset(axes) - {_LIKELIHOOD} for parts in individuals.values() for axes in parts.values()
    }
    if kinds not in ({frozenset("xy")}, {frozenset("xyz")}):
        expected = "x and y of every body part, and z of all or none"
        raise make_format_error(table.path, expected, "others", table.lines[0])
    return individuals


def _build_specimens(
    frames: Table, individual: str, parts: dict[str, Part], start: int, options: ReadOptions
) -> Iterator[Specimen]:
    """Build one individual, frame by frame, with likelihoods as weights if asked for."""
    columns = [axes[axis] for axes in parts.values() for axis in _AXES if axis in axes]
    points = frames.numbers(columns).reshape(len(frames.rows), len(parts), -1)
    weights: Sequence[Array | None] = [None] * len(points)
    if options.weights == _LIKELIHOOD and all(_LIKELIHOOD in axes for axes in parts.values()):
        weights = list(frames.numbers([axes[_LIKELIHOOD] for axes in parts.values()]))
    for row, frame_points, likelihoods in zip(frames.rows, points, weights, strict=True):
        frame = "/".join(cell.strip() for cell in row[:start])
        metadata = {"groups": individual} if individual else {}
        if is_whole(frame):
            frame = f"frame_{frame}"
        else:
            metadata["images"] = frame
        name = f"{individual}_{frame}" if individual else frame
        yield Specimen(name, frame_points, tuple(parts), metadata, weights=likelihoods)
