"""Honest figures: cross-validation, the choice of smoothing, methods compared."""

from defgpa.evaluate._comparison import (
    Comparison,
    MethodFigures,
    Verdict,
    compare,
    published_methods,
)
from defgpa.evaluate._cross_validation import CrossValidation, cross_validate
from defgpa.evaluate._path import DialSurface, SmoothingPath
from defgpa.evaluate._smoothing import select_smoothing

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
