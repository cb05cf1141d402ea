"""Honest figures: cross-validation, the choice of smoothing, methods compared."""

from defgpa.evaluate._cross_validation import CrossValidation, cross_validate

__all__ = ["CrossValidation", "cross_validate"]
