"""Procrustes analysis with deformations."""

__version__ = "0.1.0"
