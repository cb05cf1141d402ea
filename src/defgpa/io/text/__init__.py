"""Landmark files that are text."""
