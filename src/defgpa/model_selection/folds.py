"""Make folds of consecutive landmarks, and leave them out of any estimator by fitting it again."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index
from defgpa.diagnostics.findings import Finding
from defgpa.errors import DefgpaError, DefgpaWarning, format_names
from defgpa.estimators import AlignmentEstimator, DefGPA, ElasticGPA
from defgpa.shapes import Shapes
from defgpa.tuning import DEFAULT
from defgpa.warps import WarpFamily


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Predictions of the landmarks of a fold by a fit without them; or why there are none."""

    predicted: Array  # (n, N, d), in the frame of the full reference
    findings: tuple[Finding, ...] = ()
    error: Exception | None = None
    reference: Array | None = None  # (m', d): that of the fold, in the same frame


def consecutive_folds(n_landmarks: int, fold_size: int) -> tuple[Index, ...]:
    """Make folds of ``fold_size`` consecutive landmarks; the last may be shorter.

    >>> [fold.tolist() for fold in consecutive_folds(7, 3)]
    [[0, 1, 2], [3, 4, 5], [6]]
    """
    is_integer = isinstance(fold_size, (int, np.integer)) and not isinstance(fold_size, bool)
    if not is_integer or not 1 <= fold_size < n_landmarks:
        raise ValueError(
            "The 'fold_size' parameter must be a whole number from 1 to one less than the "
            f"{n_landmarks} landmarks. Got {fold_size!r} instead."
        )
    cuts = np.arange(fold_size, n_landmarks, fold_size)
    return tuple(np.split(np.arange(n_landmarks), cuts))


def align_without_warning(estimator: Any, shapes: Shapes, screening: bool = True) -> Alignment:
    """Align shapes by a copy of the estimator; findings are in the result, none is a warning.

    ``screening`` tells whether estimators of this package look for mistakes in their input.
    """
    copy = clone(estimator, safe=False)
    if getattr(type(copy), "fit", None) is AlignmentEstimator.fit:
        return copy.align(shapes) if screening else copy._solve(shapes)
    with warnings.catch_warnings(action="ignore", category=DefgpaWarning):
        alignment = copy.fit(shapes).alignment_
    assert isinstance(alignment, Alignment)
    return alignment


def can_keep_bases(estimator: DefGPA | ElasticGPA, shapes: Shapes) -> bool:
    """Return whether folds can be left out with the basis of every shape kept.

    Not for warps of one's own, nor for elastic sets too large to form P.
    """
    if not isinstance(estimator._model, WarpFamily):
        return False
    max_landmarks = (estimator.tuning or DEFAULT).dense_landmarks
    return isinstance(estimator, DefGPA) or shapes.n_landmarks <= max_landmarks


def refit_fold(estimator: Any, full: Alignment, fold: Index) -> LeftOut:
    """Predict the landmarks of a fold by a fit without them."""
    shapes = full.shapes
    no_predictions = np.full((shapes.n_shapes, len(fold), shapes.n_dims), np.nan)
    try:
        alignment = align_without_warning(estimator, shapes.without(fold), screening=False)
        images = np.stack([warp(x[fold]) for warp, x in zip(alignment.warps, shapes, strict=True)])
    except Exception as error:  # a warp or an estimator of one's own may raise anything
        return LeftOut(no_predictions, error=error)
    is_lost = shapes.visible[:, fold] & ~np.isfinite(images).all(axis=2)
    if is_lost.any():
        names = format_names(shapes.names[i] for i in np.flatnonzero(is_lost.any(axis=1)))
        reason = f"the warp of shape {names} gives no finite prediction"
        return LeftOut(no_predictions, error=DefgpaError(reason))
    remaining = np.delete(full.reference, fold, axis=0)
    is_shared = alignment.shapes.views >= 2
    posed = move_to_full_pose(remaining[is_shared], alignment.reference[is_shared], images)
    return LeftOut(posed, alignment.findings)


def move_to_full_pose(full: Array, reference: Array, images: Array) -> Array:
    """Move predictions with a fold's reference onto the full one.

    By R ∈ O(d) and a translation, no scale, on the landmarks of the fold: both references are
    (…, m, d), ``images`` are (…, n, N, d): one fold, or a stack of them.
    """
    centre, full_centre = (x.mean(axis=-2, keepdims=True) for x in (reference, full))
    left, _, right = np.linalg.svd((reference - centre).mT @ (full - full_centre))
    turn = (left @ right)[..., None, :, :]
    return np.asarray((images - centre[..., None, :, :]) @ turn + full_centre[..., None, :, :])


def refuse_failed_folds(
    left_out: Sequence[LeftOut], folds: Sequence[Index], shapes: Shapes
) -> None:
    """Raise a DefgpaError that names the landmarks of every fold that could not be fitted."""
    failed = [
        (f, outcome.error) for f, outcome in zip(folds, left_out, strict=True) if outcome.error
    ]
    landmarks: dict[str, list[str]] = {}  # by reason, each of which is told once
    for fold, error in failed:
        labels = format_names(shapes.landmarks[j] for j in fold)
        landmarks.setdefault(str(error).rstrip("."), []).append(labels)
    clauses, n_described = [], 0
    for reason, names in list(landmarks.items())[:3]:
        others = [f"{len(names) - 3} others"] if len(names) > 3 else []
        clauses.append(f"{' or '.join([*names[:3], *others])}: {reason}")
        n_described += len(names)
    if n_described < len(failed):
        clauses.append(f"and {len(failed) - n_described} more folds")
    raise DefgpaError(
        f"{len(failed)} of {len(folds)} folds cannot be fitted, so there is no cross-validation "
        f"error. Without landmark {'; '.join(clauses)}. Use smaller folds, or drop the shapes or "
        "landmarks that hang on so few points."
    ) from failed[0][1]
