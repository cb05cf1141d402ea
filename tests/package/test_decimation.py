"""A mesh is thinned to some of its own vertices, and stays the same surface."""

import numpy as np
import pytest

from defgpa.decimation import decimate_surface


def sheet(side, height=0.0):
    """Vertices and triangles of a square sheet."""
    x, y = map(np.ravel, np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side)))
    corner = np.arange(side * (side - 1)).reshape(side - 1, side)[:, :-1].ravel()
    faces = np.vstack(
        [
            np.column_stack([corner, corner + 1, corner + side]),
            np.column_stack([corner + 1, corner + side + 1, corner + side]),
        ]
    )
    return np.column_stack([x, y, np.full(len(x), height)]), faces


def area(points, faces):
    a, b, c = np.moveaxis(points[faces], 1, 0)
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()


@pytest.mark.parametrize("max_vertices", [60, 400])
def test_decimated_sheet_covers_the_same_area(max_vertices):
    points, faces = sheet(60)
    vertices, triangles = decimate_surface(points, faces, max_vertices)
    assert 0.5 * max_vertices <= len(vertices) <= max_vertices
    assert 0.7 < area(points[vertices], triangles) < 1.1


def test_sheets_close_to_each_other_do_not_grow_together():
    (low, faces), (high, more) = sheet(40), sheet(40, height=0.01)
    points = np.concatenate([low, high])
    vertices, triangles = decimate_surface(points, np.vstack([faces, more + len(low)]), 300)
    upper = vertices[triangles] >= len(low)
    assert (upper.all(axis=1) | (~upper).all(axis=1)).all()
    assert upper.any()
    assert not upper.all()


def test_small_mesh_is_left_as_it_is():
    points, faces = sheet(5)
    vertices, triangles = decimate_surface(points, faces, 100)
    np.testing.assert_array_equal(vertices, np.arange(25))
    np.testing.assert_array_equal(triangles, faces)


def test_missing_vertices_are_left_out():
    points, faces = sheet(30)
    points[:200] = np.nan
    vertices, triangles = decimate_surface(points, faces, 100)
    assert vertices.min() >= 200
    assert triangles.max() < len(vertices)
