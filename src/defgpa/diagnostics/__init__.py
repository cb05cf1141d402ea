"""Detect problems of shapes and of alignments, and put them into words."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from defgpa.diagnostics.findings import Finding, Problem

if TYPE_CHECKING:
    from defgpa.diagnostics.solution import DescentDiagnostics, Diagnostics, SpectralDiagnostics

__all__ = ["DescentDiagnostics", "Diagnostics", "Finding", "Problem", "SpectralDiagnostics"]


def __getattr__(name: str) -> Any:
    """Import modules that need numpy on first use, so that ``defgpa --help`` answers at once."""
    if name in __all__:
        return getattr(import_module("defgpa.diagnostics.solution"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
