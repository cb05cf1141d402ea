"""Infer the dimension of rows of numbers: 2-D or 3-D, whichever makes better shapes.

Read in the wrong dimension, coordinates of different axes make up a landmark: what moves or turns
a specimen then tears its landmarks apart, no rigid motion brings the shapes together again, and
from one landmark to the next it is far.
"""

from __future__ import annotations

import numpy as np

from defgpa.arrays import Array
from defgpa.diagnostics.wording import name_option
from defgpa.io.text.lines import warn
from defgpa.procrustes import ORTHOGONAL


def choose_dimension(path: object, rows: Array, wanted: int | None) -> int | None:
    """Choose 2 or 3 for rows (n, c) of coordinates; None where c does not allow it.

    Where both are possible, it is said which was taken, and why.
    """
    columns = rows.shape[1]
    possible = [d for d in (2, 3) if columns and columns % d == 0 and wanted in (None, d)]
    if len(possible) < 2:
        return possible[0] if possible else None
    inferred = infer_dimension(rows)
    dim = inferred or 2
    reason = "is assumed" if inferred is None else "is taken, as it makes better shapes"
    warn(
        f"{path}: {columns} columns are {columns // 2} landmarks in 2-D or {columns // 3} in 3-D; "
        f"{dim}-D {reason}. If that is wrong, give {name_option('dimension', 5 - dim)}."
    )
    return dim


def infer_dimension(rows: Array) -> int | None:
    """Infer 2 or 3 from rows (n, 6k); None where they do not decide.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shape = rng.normal(size=(8, 3))
    >>> shapes = shape + rng.normal(size=(5, 1, 3)) + 0.01 * rng.normal(size=(5, 8, 3))
    >>> infer_dimension(shapes.reshape(5, 24))
    3
    """
    possible = [d for d in (2, 3) if has_whole_gaps(rows, d)]
    if len(possible) == 1 and np.isnan(rows).any():
        return possible[0]
    filled = _normalise_rows(rows)
    if filled is None:
        return None
    for measure in (_measure_offset, measure_misfit, _measure_step):
        in_2d, in_3d = (measure(filled.reshape(len(rows), -1, d)) for d in (2, 3))
        if min(in_2d, in_3d) < 0.5 * max(in_2d, in_3d):
            return 2 if in_2d < in_3d else 3
    return None


def has_whole_gaps(rows: Array, dim: int) -> bool:
    """Return whether no landmark is half missing."""
    gaps = np.isnan(rows).reshape(len(rows), -1, dim)
    return bool((gaps.any(axis=2) == gaps.all(axis=2)).all())


def _normalise_rows(rows: Array) -> Array | None:
    """Scale rows to equal size, gaps filled by column means; None if there is too little.

    The size is that about the means of every sixth column, which is the same in both readings.
    """
    if len(rows) < 2 or not np.isfinite(rows).any(axis=0).all() or np.isinf(rows).any():
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        filled = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
        sixths = filled.reshape(len(rows), -1, 6)
        sizes = np.linalg.norm(sixths - sixths.mean(axis=1, keepdims=True), axis=(1, 2))
    if not (np.isfinite(sizes).all() and (sizes > 0).all()):
        return None
    return np.asarray(filled / sizes[:, None])


def _measure_offset(points: Array) -> float:
    """Measure how far shapes are from being centred, as superimposed ones are."""
    offset = float(np.abs(points.mean(axis=1)).max() / np.abs(points).max())
    return offset if offset < 1e-3 else 1.0  # files of superimposed shapes may have few digits


def measure_dissimilarity(points: Array) -> float:
    """Measure the share of shapes (n, m, d) of equal size that rigid motions do not remove.

    Near 0 for one shape again and again, near 1 for points at random; NaN where too little is
    seen to tell.
    """
    visible = np.isfinite(points)
    if len(points) < 2 or points.shape[1] < 3 or not visible.any(axis=0).all():
        return float("nan")
    centred = points - np.nanmean(points, axis=1, keepdims=True)
    filled = np.where(visible, centred, np.nanmean(centred, axis=0))
    sizes = np.linalg.norm(filled, axis=(1, 2), keepdims=True)
    if not (sizes > 0).all():
        return float("nan")
    return measure_misfit(filled / sizes) / len(points)


def measure_misfit(points: Array) -> float:
    """Measure the sum of squares between shapes (n, m, d) and their mean after rigid motions."""
    points = points - points.mean(axis=1, keepdims=True)
    mean = points[0]
    placed = points
    for _ in range(4):  # passes of fitting all shapes to their mean
        turns, _margin = ORTHOGONAL.find_nearest(points.transpose(0, 2, 1) @ mean)
        placed = points @ turns
        mean = placed.mean(axis=0)
    return float(((placed - mean) ** 2).sum())


def measure_mean_misfit(points: Array) -> float:
    """Measure the misfit of shapes (n, m, d) per degree of freedom that rigid motions leave.

    A few landmarks fit onto each other whatever they are; counted this way, that is no merit.
    """
    n, m, dim = points.shape
    free = (n - 1) * (m * dim - dim * (dim + 1) // 2)
    return measure_misfit(points) / free if free > 0 else float("inf")


def _measure_step(points: Array) -> float:
    """Measure the mean squared distance between consecutive landmarks."""
    return float((np.diff(points.mean(axis=0), axis=0) ** 2).mean())
