"""Meshes in correspondence."""
