"""Landmarks that one shape alone has: left out of a fit, and placed by its warp after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index, Mask
from defgpa.diagnostics.checks import find_common_landmarks
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.shapes import Shapes
from defgpa.warps import Warp


def place_lone_landmarks(core: Alignment, shapes: Shapes) -> Alignment:
    """Return the alignment of all landmarks, one of a single shape where its warp puts it."""
    if core.shapes.n_landmarks == shapes.n_landmarks:
        return core
    shared = find_common_landmarks(shapes)
    reference = extend_reference(
        core.reference, core.warps, shared, shapes.visible, lambda shape: shapes.points[shape]
    )
    findings = (*report_lone_landmarks(shapes.landmarks, shared), *core.findings)
    return replace(core, shapes=shapes, reference=reference, findings=findings)


def extend_reference(
    core: Array,
    warps: Sequence[Warp],
    shared: Index,
    visible: Mask,
    get_points: Callable[[int], Array],
) -> Array:
    """Add the landmarks of single shapes to a reference, where the warps of these put them.

    Parameters
    ----------
    core : ndarray of shape (n_shared, n_dims)
        The reference of the shared landmarks.
    warps : sequence of Warp
    shared : ndarray of shape (n_shared,)
        The numbers of the shared landmarks.
    visible : ndarray of bool of shape (n_shapes, n_landmarks)
    get_points : callable
        Returns the points (n_landmarks, n_dims) of a shape.

    Returns
    -------
    ndarray of shape (n_landmarks, n_dims)
    """
    reference = np.empty((visible.shape[1], core.shape[1]))
    reference[shared] = core
    lone = np.setdiff1d(np.arange(len(reference)), shared)
    shape_of_lone = visible[:, lone].argmax(axis=0)
    for shape in np.unique(shape_of_lone).tolist():
        landmarks = lone[shape_of_lone == shape]
        reference[landmarks] = warps[shape](get_points(shape)[landmarks])
    return reference


def report_lone_landmarks(landmarks: Sequence[str], shared: Index) -> tuple[Finding, ...]:
    """Report the landmarks that are not ``shared`` by two shapes, in one finding."""
    lone = np.setdiff1d(np.arange(len(landmarks)), shared)
    labels = tuple(landmarks[j] for j in lone)
    return (Finding(Problem.LONE_LANDMARKS, landmarks=labels),) if labels else ()
