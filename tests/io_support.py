"""Shapes that are hard to write, and files that are written again and again."""

from __future__ import annotations

import json

import numpy as np

from defgpa.shapes import Shapes


def awkward_shapes(dim, landmarks=None):
    """4 shapes of 5 landmarks whose numbers need all 17 digits, far from 1 and with gaps."""
    rng = np.random.default_rng(dim)
    points = rng.normal(size=(4, 5, dim)) * 10.0 ** rng.integers(-300, 300, size=(4, 5, dim))
    points[0] = np.array([[0.1], [1 / 3], [np.pi], [-0.0], [9999.0]]) * np.arange(1, dim + 1)
    points[1, 2] = np.nan
    points[2] = np.nan
    return Shapes.specimens(
        points,
        names=["a 1", "b-ü", "c", "10"],
        landmarks=landmarks,
        metadata={
            "images": ("a.jpg", None, "dir/c d.png", None),
            "comments": (None, "x = 1", None, "y"),
        },
    )


def specimens(seed, n, m, d, spread=1.0, noise=0.05):
    """(n, m, d) one shape again and again, a little different and somewhere else each time."""
    rng = np.random.default_rng(seed)
    shape, places = rng.normal(size=(1, m, d)), spread * rng.normal(size=(n, 1, d))
    return (shape + places + noise * rng.normal(size=(n, m, d))).round(6)


def make_cell(values):
    """Make a cell of MATLAB, as SciPy writes it."""
    cell = np.empty((1, len(values)), dtype=object)
    for i, value in enumerate(values):
        cell[0, i] = value
    return cell


def format_tps(shapes, **fields):
    """Format a TPS file of (m, d) shapes; every field has a value for each of them."""
    lines = []
    for k, shape in enumerate(shapes):
        rows = (" ".join(map(repr, row)) for row in np.asarray(shape).tolist())
        values = (f"{key}={value[k]}" for key, value in fields.items())
        lines += [f"LM={len(shape)}", *rows, *values]
    return "\n".join([*lines, ""])


def format_markups(points, space="LPS", kind="Fiducial"):
    """Format a file of 3D Slicer: points by their labels, or pairs of both."""
    pairs = points.items() if isinstance(points, dict) else points
    nodes = [{"label": s, "position": np.asarray(place).tolist()} for s, place in pairs]
    content = {"type": kind, "coordinateSystem": space, "controlPoints": nodes}
    return json.dumps({"markups": [content]})
