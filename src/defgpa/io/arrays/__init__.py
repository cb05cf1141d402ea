"""Landmark files that are arrays."""
