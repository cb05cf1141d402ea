"""The general way: leave a fold out, fit again, predict it. For any estimator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from defgpa._arrays import Array, Index, Mask, frozen
from defgpa.alignment import Alignment
from defgpa.errors import DefgpaError, DefgpaWarning, listed
from defgpa.estimators import AlignmentEstimator
from defgpa.evaluate._folds import LeftOut
from defgpa.procrustes import ORTHOGONAL, stacked
from defgpa.shapes import Shapes


def looked_at(estimator: Any, shapes: Shapes) -> Alignment:
    """The alignment a copy of the estimator makes; what it found is in it, nothing is warned of."""
    copy = clone(estimator, safe=False)
    return copy.align(shapes) if isinstance(copy, AlignmentEstimator) else _fitted(copy, shapes)


def fitted(estimator: Any, shapes: Shapes) -> Alignment:
    """The same without a look at the shapes themselves, which the full fit has had."""
    copy = clone(estimator, safe=False)
    return copy.solve(shapes) if isinstance(copy, AlignmentEstimator) else _fitted(copy, shapes)


def _fitted(copy: Any, shapes: Shapes) -> Alignment:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DefgpaWarning)
        alignment = copy.fit(shapes).alignment_
    assert isinstance(alignment, Alignment)
    return alignment


def refitted(estimator: Any, full: Alignment, fold: Index) -> LeftOut:
    """The landmarks of a fold as predicted by a fit without them."""
    shapes = full.shapes
    nothing = np.full((shapes.n_shapes, len(fold), shapes.dim), np.nan)
    try:
        alignment = fitted(estimator, shapes.without(fold))
        images = np.stack([w(own[fold]) for w, own in zip(alignment.warps, shapes, strict=True)])
    except Exception as error:  # a warp or an estimator of one's own may raise anything
        return LeftOut(nothing, error=error)
    lost = shapes.visible[:, fold] & ~np.isfinite(images).all(axis=2)
    if lost.any():
        return LeftOut(nothing, error=_not_finite(lost, shapes))
    whole = np.delete(full.reference, fold, axis=0)
    judged = alignment.shapes.views >= 2
    moved = in_frame_of(whole[judged], alignment.reference[judged], images)
    return LeftOut(moved, alignment.findings)


def _not_finite(lost: Mask, shapes: Shapes) -> DefgpaError:
    names = listed(shapes.names[i] for i in np.flatnonzero(lost.any(axis=1)))
    return DefgpaError(f"the warp of shape {names} gives no finite prediction")


def in_frame_of(full: Array, reference: Array, images: Array) -> Array:
    """Predictions moved with a fold's reference onto the full one.

    By R ∈ O(d) and a translation, no scale, on the landmarks of the fold: both references are
    (…, m, d), ``images`` are (…, n, N, d): one fold, or a stack of them.
    """
    gauge = stacked(reference, full, motions=ORTHOGONAL)
    return np.asarray(
        images @ gauge.rotation[..., None, :, :] + gauge.translation[..., None, None, :]
    )


def gathered(left_out: Sequence[LeftOut], folds: Sequence[Index], visible: Mask) -> Array:
    """(n, m, d): the predictions of all folds in one array, NaN where a landmark is not seen."""
    together = np.concatenate([out.predicted for out in left_out], axis=1)
    predicted = np.empty_like(together)
    predicted[:, np.concatenate(folds)] = together
    predicted[~visible] = np.nan
    return frozen(predicted)
