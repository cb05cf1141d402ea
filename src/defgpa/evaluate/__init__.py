"""Honest figures: cross-validation, the choice of smoothing, methods compared."""

from defgpa.evaluate._comparison import Comparison, MethodFigures, compare
from defgpa.evaluate._cross_validation import CrossValidation, cross_validate
from defgpa.evaluate._smoothing import SmoothingPath, select_smoothing

__all__ = [
    "Comparison",
    "CrossValidation",
    "MethodFigures",
    "SmoothingPath",
    "compare",
    "cross_validate",
    "select_smoothing",
]
