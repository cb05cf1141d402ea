"""Honest figures: cross-validation, the choice of smoothing, methods compared."""

from defgpa.model_selection._comparison import (
    Comparison,
    MethodFigures,
    Verdict,
    compare,
    published_methods,
)
from defgpa.model_selection._cross_validation import CrossValidation, cross_validate
from defgpa.model_selection._path import DialSurface, SmoothingPath
from defgpa.model_selection._smoothing import select_smoothing

__all__ = [
    "Comparison",
    "CrossValidation",
    "DialSurface",
    "MethodFigures",
    "SmoothingPath",
    "Verdict",
    "compare",
    "cross_validate",
    "published_methods",
    "select_smoothing",
]
