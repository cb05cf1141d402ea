"""Frames of videos and of motion capture: every frame is a shape, or one of each individual in it.

Frames in which nothing is visible are left out. Tables of DeepLabCut have a column for x, y[, z]
and perhaps the likelihood of each body part of each individual, in whatever file they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from defgpa.arrays import Array
from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError
from defgpa.io.files import make_format_error
from defgpa.io.format import Document, ReadOptions, Specimen, make_document
from defgpa.io.limits import Budget
from defgpa.io.text.lines import warn
from defgpa.shapes import Metadata

AXES = ("x", "y", "z")
LIKELIHOOD = "likelihood"
_CUTOFF = 0.6  # pcutoff of DeepLabCut: it neither draws nor uses what is less likely


class TrackedColumn(NamedTuple):
    """What a column of DeepLabCut holds."""

    individual: str  # "" if unnamed
    body_part: str
    axis: str  # or the likelihood


def make_capture_document(
    path: Path, frames: Sequence[str], points: Array, labels: tuple[str, ...] | None
) -> Document:
    """Make a document of the points (frames, markers, 3) of a motion capture, NaN where missing."""
    is_visible = ~np.isnan(points).all(axis=(1, 2))
    if not is_visible.any():
        raise make_format_error(path, "frames with a visible marker", "none")
    if not is_visible.all():
        warn(f"{path}: {(~is_visible).sum()} frames without any marker are left out.")
    names = [frames[k] for k in np.flatnonzero(is_visible).tolist()]
    return make_document(path, points[is_visible], names, labels)


def make_video_document(path: Path, specimens: Sequence[Specimen], note: str = "") -> Document:
    """Make a document of the individuals in the frames of a video that show a body part."""
    visible = tuple(s for s in specimens if not np.isnan(s.points).all())
    if not visible:
        raise make_format_error(path, "frames in which something is visible", "none")
    empty = len(specimens) - len(visible)
    left_out = f", but {empty} in which nothing is visible" if empty else ""
    warn(f"{path}: every frame is a shape{left_out}.{note}")
    return Document(visible)


def make_deeplabcut_document(
    path: Path,
    columns: Sequence[TrackedColumn],
    values: Array,
    frames: Sequence[tuple[str, Metadata]],
    options: ReadOptions,
) -> Document:
    """Make a document of the values (frames, columns) of a table of DeepLabCut.

    Of each frame the name and the metadata are given.
    """
    specimens = list(_build_specimens(path, columns, values, frames, options))
    return make_video_document(path, *_hide_unlikely_points(path, specimens, options))


def _build_specimens(
    path: Path,
    columns: Sequence[TrackedColumn],
    values: Array,
    frames: Sequence[tuple[str, Metadata]],
    options: ReadOptions,
) -> Iterator[Specimen]:
    """Yield each individual, frame by frame, with likelihoods as weights if asked for."""
    if values.shape != (len(frames), len(columns)):
        raise make_format_error(path, f"{len(columns)} columns of numbers", f"size {values.shape}")
    individuals: dict[str, dict[str, dict[str, int]]] = {}
    for number, (name, body_part, axis) in enumerate(columns):
        individuals.setdefault(name, {}).setdefault(body_part, {})[axis] = number
    Budget(path).spend_on_specimens(len(individuals) * len(frames))
    axes = [axis for axis in AXES if any(axis == column.axis for column in columns)]
    for individual, places in individuals.items():
        if axes not in (["x", "y"], [*AXES]) or any(set(axes) - set(p) for p in places.values()):
            raise make_format_error(path, "x and y of every body part, z of all or none", "others")
        points = np.stack([values[:, [p[axis] for axis in axes]] for p in places.values()], axis=1)
        weights: Sequence[Array | None] = [None] * len(points)
        if options.weights == LIKELIHOOD and all(LIKELIHOOD in p for p in places.values()):
            weights = list(values[:, [p[LIKELIHOOD] for p in places.values()]])
        group = {"groups": individual} if individual else {}
        for (frame, metadata), at, weight in zip(frames, points, weights, strict=True):
            name = f"{individual}_{frame}" if individual else frame
            yield Specimen(name, at, tuple(places), {**metadata, **group}, weights=weight)


def _hide_unlikely_points(
    path: Path, specimens: Sequence[Specimen], options: ReadOptions
) -> tuple[list[Specimen], str]:
    """Hide the points of DeepLabCut whose likelihood is below the cutoff.

    A network that does not see a body part places it anywhere, and the small weight of a far point
    still pulls a least-squares fit.

    Returns
    -------
    specimens : list of Specimen
        With NaN in place of such points.
    note : str
        A sentence that counts them, with a blank before it; empty where there are no weights.
    """
    cutoff = _CUTOFF if options.min_likelihood is None else options.min_likelihood
    results, n_points, n_hidden = list[Specimen](), 0, 0
    for specimen in specimens:
        if specimen.weights is None:
            results.append(specimen)
            continue
        is_visible = ~np.isnan(specimen.points).any(axis=1)
        hidden = is_visible & (specimen.weights >= 0) & (specimen.weights < cutoff)
        points = np.where(hidden[:, None], np.nan, specimen.points)
        results.append(replace(specimen, points=points))
        n_points, n_hidden = n_points + int(is_visible.sum()), n_hidden + int(hidden.sum())
    if not n_points:
        return results, ""
    advice = f"{name_option('min_likelihood', 0)}: keep all"
    if n_hidden == n_points:
        raise FormatError(
            f"{path}: no point has a likelihood of at least {cutoff:g} ({advice}; "
            f"{name_option('weights', 'none')}: ignore likelihoods)."
        )
    remark = f" ({advice})" if n_hidden and options.min_likelihood is None else ""
    return results, (
        f" Likelihoods are landmark weights ({name_option('weights', 'none')}: not used); "
        f"{n_hidden:,} of {n_points:,} points are below {cutoff:g} and count as missing{remark}."
    )
