"""Guess the units of the coordinates of a file."""

from __future__ import annotations

import numpy as np

from defgpa.shapes import Shapes


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
