"""TRC, the markers of a motion capture (Motion Analysis, OpenSim): every frame is a shape.

Three lines say what the file is, the fourth names the markers, the fifth their axes (``X1, Y1, Z1,
X2, …``); then a row a frame: its number, its time, and the coordinates. Empty cells are missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from defgpa.io.files import abbreviate, make_format_error, mask_missing
from defgpa.io.format import Document, Format, ReadOptions
from defgpa.io.limits import Budget
from defgpa.io.text.lines import decode_head, make_unique, parse_numbers, read_text, warn
from defgpa.io.video_frames import make_capture_document


def read_trc(path: Path, options: ReadOptions) -> Document:
    """Read a shape for every frame in which a marker is visible."""
    lines = read_text(path).split("\n")
    at = next((k for k, line in enumerate(lines) if line.lower().startswith("frame#")), None)
    if at is None:
        raise make_format_error(path, "a line 'Frame#, Time, …' with the names of markers", "none")
    names = [word.strip() for word in lines[at].split("\t")]
    labels = tuple(make_unique([name for name in names[2:] if name]))
    width = 3 * len(labels)
    if not labels:
        raise make_format_error(path, "names of markers behind 'Time'", "none", at + 1)
    frames, rows = list[str](), list[list[float]]()
    for line, text in enumerate(lines[at + 1 :], start=at + 2):
        cells = [cell.strip() for cell in text.split("\t")]
        if not any(cells) or not cells[0]:  # the line of the axes, and blank ones
            continue
        frames.append(f"frame_{cells[0]}")
        rows.append(parse_numbers(path, line, cells[2 : width + 2]))
    if not frames:
        raise make_format_error(path, "frames below the names of the markers", "none")
    Budget(path).spend(8 * width * len(rows), "its frames")
    points = np.full((len(rows), width), np.nan)  # a row may lack cells at its end
    for numbers, row in zip(points, rows, strict=True):
        numbers[: len(row)] = row
    stack = mask_missing(points.reshape(-1, len(labels), 3), options.missing)
    stack[np.isnan(stack).any(axis=2)] = np.nan
    _compare_counts(path, lines[:at], len(frames), len(labels))
    return make_capture_document(path, frames, stack, labels)


def _compare_counts(path: Path, top: Sequence[str], n_frames: int, n_markers: int) -> None:
    """Warn if the lines on top announce other numbers of frames and markers than there are."""
    heads, words = (line.split("\t") for line in (*top, "", "")[1:3])
    announced = dict(zip(heads, words, strict=False))
    for head, count in (("NumFrames", n_frames), ("NumMarkers", n_markers)):
        word = announced.get(head, "").strip() or str(count)
        if word != str(count):
            warn(f"{path}: {head} says {abbreviate(word)!r}; there are {count}, which are taken.")


FORMATS = (
    Format(
        name="trc",
        suffixes=(".trc",),
        looks_like=lambda head: bool(re.match(r"\s*PathFileType\t", decode_head(head))),
        read=read_trc,
        write=None,
    ),
)
