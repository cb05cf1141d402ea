"""Tables of body parts followed through a video, as DeepLabCut writes them.

Several rows are the header: ``scorer``, perhaps ``individuals``, ``bodyparts``, ``coords``. Below
them a row is a frame, by its number or its image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from defgpa.io.files import make_format_error
from defgpa.io.format import Document, ReadOptions
from defgpa.io.text.table import Table, is_whole
from defgpa.io.video_frames import AXES, LIKELIHOOD, TrackedColumn, make_deeplabcut_document
from defgpa.shapes import Metadata

_HEADS = ("individuals", "bodyparts", "coords")


def is_tracking_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first rows of a table, perhaps cut off, are a header of DeepLabCut."""
    first_cells = [row[0].strip() for row in rows[:2] if row]
    return (
        first_cells[:1] == ["scorer"] and len(rows[0]) > 2 and set(first_cells[1:]) <= set(_HEADS)
    )


def read_tracking(table: Table, options: ReadOptions) -> Document | None:
    """Read a shape for each individual in each frame with a visible point; None for others."""
    first_rows = ([cell.strip() for cell in row] for row in table.rows[: len(_HEADS)])
    heads = {row[0]: row for row in first_rows if row[0] in _HEADS}
    if not table.header or not {"bodyparts", "coords"} <= heads.keys():
        return None
    frames = replace(table, rows=table.rows[len(heads) :], lines=table.lines[len(heads) :])
    if not frames.rows:
        raise make_format_error(table.path, "frames below 'coords'", "none", table.lines[-1])
    coords, names = heads["coords"], heads.get("individuals", [""] * table.width)
    is_read = (*AXES, *[LIKELIHOOD] * (options.weights == LIKELIHOOD))
    numbers = [k for k, word in enumerate(coords) if word in is_read]
    columns = [TrackedColumn(names[k], heads["bodyparts"][k], coords[k]) for k in numbers]
    # before the first coordinate stands what the frame is called
    start = next((k for k, word in enumerate(coords) if word in AXES), len(coords))
    named = [_name_frame("/".join(cell.strip() for cell in row[:start])) for row in frames.rows]
    return make_deeplabcut_document(table.path, columns, frames.numbers(numbers), named, options)


def _name_frame(word: str) -> tuple[str, Metadata]:
    """Return the name and the metadata of a frame that is known by a number or an image."""
    return (f"frame_{word}", {}) if is_whole(word) else (word, {"images": word})
