"""Estimate missing landmarks from the visible ones and from the other specimens."""

from defgpa.completion.completion import METHODS, Completion, complete, compute_completion

__all__ = ["METHODS", "Completion", "complete", "compute_completion"]
