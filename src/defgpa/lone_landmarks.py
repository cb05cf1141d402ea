"""Landmarks that one shape alone has: set aside before a fit, and placed by its warp after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index, Mask, freeze
from defgpa.diagnostics.checks import (
    drop_lone_landmarks,
    find_common_landmarks,
    refuse_degenerate_shapes,
    require_linkage,
)
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.errors import ShapeError
from defgpa.geometry import Geometry
from defgpa.shapes import Shapes
from defgpa.warps import Warp


def keep_common_landmarks(shapes: Shapes, geometry: Geometry) -> tuple[Shapes, Geometry]:
    """Restrict shapes to the landmarks that two of them have; refuse what has no reference.

    Raises
    ------
    ShapeError
        If too few landmarks are shared, or if they do not link all shapes.
    DegenerateShapeError
        If a shape has too few of them, or all on a line.
    """
    n_shared = int((shapes.views >= 2).sum())
    if n_shared < shapes.n_landmarks:
        if n_shared <= shapes.n_dims:
            raise ShapeError(
                f"Only {n_shared} landmarks are seen in more than one shape; aligning in "
                f"{shapes.n_dims}-D needs at least {shapes.n_dims + 1}."
            )
        shapes = drop_lone_landmarks(shapes)
        geometry = shapes.measure()
    refuse_degenerate_shapes(geometry, shapes.names)
    require_linkage(shapes.visible, shapes.names, shapes.n_dims)
    return shapes, geometry


def place_lone_landmarks(core: Alignment, shapes: Shapes) -> Alignment:
    """Return the alignment of all landmarks, one of a single shape where its warp puts it."""
    if core.shapes.n_landmarks == shapes.n_landmarks:
        return core
    shared = find_common_landmarks(shapes)
    reference = extend_reference(
        core.reference, core.warps, shared, shapes.visible, lambda shape: shapes.points[shape]
    )
    findings = (*report_lone_landmarks(shapes.landmarks, shared), *core.findings)
    return replace(core, shapes=shapes, reference=freeze(reference), findings=findings)


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
