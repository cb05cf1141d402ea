"""Semilandmarks: points whose place along a curve or on a surface is nobody's measurement.

They may slide there until they say as little as possible about where they happened to be put.
"""

from defgpa.io.curves import resample_curve
from defgpa.semilandmarks.read import read_sliders, read_surface, with_slicer_curves
from defgpa.semilandmarks.sliders import curves_of
from defgpa.semilandmarks.sliding import SlidShapes, slide

__all__ = [
    "SlidShapes",
    "curves_of",
    "read_sliders",
    "read_surface",
    "resample_curve",
    "slide",
    "with_slicer_curves",
]
