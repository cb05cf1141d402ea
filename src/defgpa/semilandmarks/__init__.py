"""Semilandmarks: points whose place along a curve or on a surface is estimated, not measured.

They may slide there until they say as little as possible about where they happened to be put.
"""

from defgpa.io.curves import resample_curve
from defgpa.semilandmarks.read import add_slicer_curves, read_sliders, read_surface
from defgpa.semilandmarks.sliders import find_curves
from defgpa.semilandmarks.sliding import SlidShapes, slide

__all__ = [
    "SlidShapes",
    "add_slicer_curves",
    "find_curves",
    "read_sliders",
    "read_surface",
    "resample_curve",
    "slide",
]
