"""Honest figures: cross-validation, the choice of smoothing, methods compared."""

from defgpa.model_selection.comparison import (
    Comparison,
    MethodFigures,
    Verdict,
    compare,
    default_methods,
    published_methods,
)
from defgpa.model_selection.cross_validation import CrossValidation, cross_validate
from defgpa.model_selection.method_selection import Selection, select_method
from defgpa.model_selection.smoothing import select_smoothing
from defgpa.model_selection.smoothing_path import DialSurface, SmoothingPath

__all__ = [
    "Comparison",
    "CrossValidation",
    "DialSurface",
    "MethodFigures",
    "Selection",
    "SmoothingPath",
    "Verdict",
    "compare",
    "cross_validate",
    "default_methods",
    "published_methods",
    "select_method",
    "select_smoothing",
]
