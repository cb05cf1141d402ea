"""Landmarks in a plane that have three coordinates, as from photographs in a 3-D format.

A warp of space is not determined across the plane of the landmarks. Such shapes are analysed in the
plane: with the coordinates that vary, or with those along two axes of the plane of each shape.
"""

from __future__ import annotations

import numpy as np

from defgpa.arrays import Array, Mask
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.errors import ShapeError
from defgpa.geometry import measure_geometry
from defgpa.procrustes import RIGID, fit_motions
from defgpa.shapes import Shapes
from defgpa.tuning import DEFAULT, Tuning

_MIN_LANDMARKS = 4  # three points always lie in a plane


def check_planarity(shapes: Shapes, tuning: Tuning = DEFAULT) -> Finding | None:
    """Report shapes with three coordinates whose landmarks all lie in a plane.

    Every shape must be flatter than ``tuning.min_thickness`` of its length, or than its coordinates
    are rounded. Shapes with fewer than four visible landmarks are flat without saying anything.
    """
    if shapes.n_dims != 3:
        return None
    geometry = measure_geometry(shapes.points, shapes.visible)
    is_thin = geometry.find_thin_axes(tuning.min_thickness)
    counted = geometry.count >= _MIN_LANDMARKS
    if not counted.any() or not is_thin[counted, 2].all() or is_thin[counted, 1].all():
        return None
    return Finding(Problem.PLANAR_SHAPES, values={"thickness": tuning.min_thickness})


def project_to_plane(shapes: Shapes, tuning: Tuning = DEFAULT) -> Shapes:
    """Return flat shapes with three coordinates as shapes with two, in the plane of each.

    Where one coordinate is constant in every shape, the others are kept as they are. Where the
    planes lie otherwise, each shape gets coordinates along the axes of its plane, seen from the
    side from which it is most like the most complete one: in space a flat shape can be turned over.

    Raises
    ------
    ShapeError
        If the shapes have two coordinates, or do not lie in a plane each.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(3, 9, 3))
    >>> points[..., 2] = 7.0
    >>> project_to_plane(Shapes(points))
    Shapes(3 shapes, 9 landmarks, 2-D, none missing)
    """
    if check_planarity(shapes, tuning) is None:
        raise ShapeError(
            f"The landmarks of these {shapes.n_dims}-D shapes do not lie in a plane in 3-D; "
            "only such shapes can be analysed in the plane."
        )
    constant = _find_constant_coordinate(shapes, tuning)
    if constant is not None:
        return shapes.with_points(np.delete(shapes.points, constant, axis=2))
    geometry = measure_geometry(shapes.points, shapes.visible)
    coordinates = geometry.centred @ geometry.axes[:, :, :2]
    coordinates[~shapes.visible] = np.nan
    return shapes.with_points(_unify_sides(coordinates, shapes.visible))


def _find_constant_coordinate(shapes: Shapes, tuning: Tuning) -> int | None:
    """Return the coordinate that is constant in every shape, up to rounding, or None."""
    highest = np.fmax.reduce(shapes.points, axis=1)
    extents = highest - np.fmin.reduce(shapes.points, axis=1)
    reach = np.fmax.reduce(np.abs(shapes.points), axis=1).max(axis=1, keepdims=True)
    rounding = 4.0 * np.finfo(np.float64).eps * reach
    limits = np.maximum(tuning.min_thickness * extents.max(axis=1, keepdims=True), rounding)
    is_constant = np.all((extents <= limits) | np.isnan(extents), axis=0)
    return int(np.argmax(is_constant)) if is_constant.any() else None


def _unify_sides(coordinates: Array, visible: Mask) -> Array:
    """Mirror the shapes (n, m, 2) that fit the first most complete one better when mirrored."""
    first = coordinates[int(np.argmax(visible.sum(axis=1)))]
    mirrored = coordinates * np.array([-1.0, 1.0])
    errors = [
        np.nansum((fit_motions(points, first, motions=RIGID)(points) - first) ** 2, axis=(1, 2))
        for points in (coordinates, mirrored)
    ]
    return np.where((errors[1] < errors[0])[:, None, None], mirrored, coordinates)
