"""Detect problems of shapes and of alignments, and put them into words."""

from defgpa.diagnostics.findings import Finding, Problem
from defgpa.diagnostics.solution import DescentDiagnostics, Diagnostics, SpectralDiagnostics

__all__ = ["DescentDiagnostics", "Diagnostics", "Finding", "Problem", "SpectralDiagnostics"]
