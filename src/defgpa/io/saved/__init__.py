"""Alignments saved and loaded."""
