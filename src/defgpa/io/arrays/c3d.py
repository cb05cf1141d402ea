"""C3D, the binary files of motion capture laboratories: every frame is a shape. Needs ezc3d."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from defgpa.errors import needed
from defgpa.io.files import make_format_error, mask_missing, translate_errors
from defgpa.io.format import Document, Format, ReadOptions, make_document
from defgpa.io.limits import Budget
from defgpa.io.text.lines import make_unique, warn

_BLOCK = 512
_PARAMETERS = b"\x50"  # the second byte of every file


def read_c3d(path: Path, options: ReadOptions) -> Document:
    """Read a shape for every frame in which a marker is visible; negative residuals are missing."""
    how = f'{path} is a C3D file, which needs ezc3d: pip install "defgpa[motion]".'
    ezc3d = needed("ezc3d", how)
    _require_size(path)
    with translate_errors(path, "C3D file"):
        file = ezc3d.c3d(str(path))
        points = np.asarray(file["data"]["points"], dtype=np.float64)  # (4, markers, frames)
        residuals = np.asarray(file["data"]["meta_points"]["residuals"])[0]
        labels = [str(label) for label in file["parameters"]["POINT"]["LABELS"]["value"]]
    if points.size == 0:
        raise make_format_error(path, "frames with markers", "none")
    stack = np.ascontiguousarray(points[:3].transpose(2, 1, 0))
    stack[(residuals.T < 0) | np.isnan(stack).any(axis=2)] = np.nan
    stack = mask_missing(stack, options.missing)
    visible = ~np.isnan(stack).all(axis=(1, 2))
    if not visible.any():
        raise make_format_error(path, "frames with a visible marker", "none")
    if not visible.all():
        warn(f"{path}: {(~visible).sum()} frames without any marker are left out.")
    names = [f"frame_{k + 1}" for k in np.flatnonzero(visible)]
    m = stack.shape[1]
    return make_document(
        path, stack[visible], names, tuple(make_unique(labels)) if len(labels) == m else None
    )


def _require_size(path: Path) -> None:
    """Refuse a file that announces more frames than it has bytes for."""
    with path.open("rb") as stream:
        header = stream.read(_BLOCK)
    if len(header) < _BLOCK:
        raise make_format_error(path, "a header of 512 bytes", f"{len(header)} bytes")
    n_markers = int.from_bytes(header[2:4], "little")
    first, last = (int.from_bytes(header[at : at + 2], "little") for at in (6, 8))
    n_frames = max(last - first + 1, 0)
    Budget(path).spend(100 * n_markers * n_frames, "what it announces")


FORMATS = (
    Format(
        name="c3d",
        suffixes=(".c3d",),
        looks_like=lambda head: head[1:2] == _PARAMETERS and 1 < head[0] < 128 and b"\0" in head,
        read=read_c3d,
        write=None,
    ),
)
