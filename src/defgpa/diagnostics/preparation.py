"""Prepare shapes as read for a fit, and guess their units: in commands, scripts and the app."""

from __future__ import annotations

import numpy as np

from defgpa.diagnostics.findings import warn_about
from defgpa.diagnostics.planarity import check_planarity, project_to_plane
from defgpa.diagnostics.wording import name_option
from defgpa.errors import ShapeError, format_names, warn
from defgpa.shapes import Shapes

MAX_SHARE_DROPPED = 0.05  # of the specimens: so few with too few landmarks are left out unasked


def prepare_shapes(shapes: Shapes, incomplete: str = "error") -> Shapes:
    """Return the shapes that a fit can use, with a warning for all that is left out.

    Specimens without landmarks and landmarks that all miss are left out, and so are specimens with
    too few landmarks if they are few. Flat shapes in 3-D are brought into their plane.

    Parameters
    ----------
    shapes : Shapes
        As they were read, with edits applied.
    incomplete : {"error", "drop"}
        Whether more than 5 per cent of specimens with too few landmarks are refused or left out.

    Raises
    ------
    ShapeError
        If too many specimens have too few landmarks.

    Examples
    --------
    >>> import warnings
    >>> points = np.random.default_rng(0).normal(size=(3, 9, 3))
    >>> points[..., 2] = 7.0
    >>> with warnings.catch_warnings(action="ignore"):
    ...     prepare_shapes(Shapes(points))
    Shapes(3 shapes, 9 landmarks, 2-D, none missing)
    """
    return flatten_planar(drop_too_few(drop_empty(shapes), incomplete))


def drop_empty(shapes: Shapes) -> Shapes:
    """Leave out undigitised specimens and landmarks that all of them miss, with a warning."""
    empty = np.flatnonzero(~shapes.visible.any(axis=1))
    if 0 < len(empty) < shapes.n_shapes:
        names = format_names(shapes.names[i] for i in empty)
        warn(f"Left out, all their landmarks are missing: {names}.")
        shapes = shapes.take(np.setdiff1d(np.arange(shapes.n_shapes), empty))
    absent = np.flatnonzero(shapes.views == 0)
    if 0 < len(absent) < shapes.n_landmarks:
        labels = format_names(shapes.landmarks[j] for j in absent)
        warn(f"Left out, missing in every shape: landmark {labels}.")
        shapes = shapes.without(absent)
    return shapes


def drop_too_few(shapes: Shapes, incomplete: str = "error") -> Shapes:
    """Leave out specimens with fewer landmarks than an affine map needs, if they are few.

    With ``incomplete="drop"`` all of them go; otherwise up to 5 per cent of the specimens.
    """
    few = np.flatnonzero(shapes.visible.sum(axis=1) <= shapes.n_dims)
    if not len(few) or shapes.n_landmarks <= shapes.n_dims or len(few) > shapes.n_shapes - 2:
        return shapes
    names = format_names(shapes.names[i] for i in few)
    need = f"{shapes.n_dims + 1} landmarks are needed in {shapes.n_dims}-D"
    if incomplete != "drop" and len(few) > max(1, MAX_SHARE_DROPPED * shapes.n_shapes):
        raise ShapeError(
            f"{len(few)} of {shapes.n_shapes} specimens have too few landmarks ({need}): {names}. "
            f"Leave them out: {name_option('incomplete', 'drop')}."
        )
    warn(f"Left out, too few landmarks ({need}): {names}.")
    return shapes.take(np.setdiff1d(np.arange(shapes.n_shapes), few))


def flatten_planar(shapes: Shapes) -> Shapes:
    """Return shapes that lie in a plane in 3-D with two coordinates, with a warning."""
    finding = check_planarity(shapes)
    if finding is None:
        return shapes
    warn_about([finding])
    return project_to_plane(shapes)


def guess_units(shapes: Shapes) -> str:
    """Describe the units that the coordinates probably have, in a few words."""
    points = shapes.points[shapes.visible]
    extent = float(np.nanmax(np.ptp(points, axis=0)))
    if shapes.metadata.get("space"):
        return "millimetres (anatomical coordinates)"
    scales = shapes.metadata.get("scales") or ()
    if None in scales:
        return "mixed: some specimens state a scale, others do not"
    if scales:
        return "real units (the file states a scale)"
    if shapes.n_dims == 2 and points.min() >= 0 and extent > 50:
        return "probably pixels"
    if extent <= 5:
        return "unknown; perhaps already normalised"
    return "unknown"
