"""A warp moves the vertices of a mesh and leaves everything else as it is."""

import numpy as np
import pytest

import defgpa
from defgpa import ShapeError, Shapes
from defgpa.meshes import (
    Mesh,
    add_scalar,
    make_aligned_mesh,
    make_reference_mesh,
    warp_mesh,
    warp_points,
)
from support import EXACT, LIMIT, shared_points, smooth_family, warned_of

FACES = np.array([[0, 1, 2], [2, 3, 4], [4, 5, 0]])


@pytest.fixture(scope="module")
def alignment():
    points = smooth_family(seed=1, m=50, d=3, missing=0.1)
    return defgpa.DefGPA(defgpa.ThinPlateSpline(3)).fit(Shapes(points, faces=FACES)).alignment_


def scan(rng, k=200):
    """A dense mesh around a shape, with colours and a field of its own."""
    return Mesh(
        rng.normal(size=(k, 3)),
        rng.integers(0, k, size=(90, 3)),
        rng.integers(0, 256, size=(k, 4)).astype(np.uint8),
        {"age": rng.uniform(size=k)},
    )


def test_vertices_are_moved_and_all_else_is_kept(alignment, rng):
    mesh, warp = scan(rng), alignment.warps[2]
    moved = warp_mesh(mesh, warp)
    np.testing.assert_allclose(moved.vertices, warp(mesh.vertices), **EXACT)
    np.testing.assert_array_equal(moved.faces, mesh.faces)
    np.testing.assert_array_equal(moved.colours, mesh.colours)
    np.testing.assert_array_equal(moved.scalars["age"], mesh.scalars["age"])
    assert not np.allclose(moved.vertices, mesh.vertices)


def test_a_mesh_through_a_warp_and_back_is_the_mesh(alignment):
    shape = alignment.shapes[2]
    mesh = Mesh(shape[~np.isnan(shape[:, 0])])
    warped = warp_mesh(mesh, alignment.warps[2])
    back = warp_mesh(warped, alignment.warps[2].exact_inverse())
    np.testing.assert_allclose(back.vertices, mesh.vertices, **LIMIT)


def test_points_of_any_leading_axes_are_warped_and_nan_stays(alignment):
    warp = alignment.warps[0]
    stack = np.array(alignment.shapes.points)
    moved = warp_points(stack, warp)
    assert moved.shape == stack.shape
    np.testing.assert_array_equal(np.isnan(moved), np.isnan(stack))
    np.testing.assert_allclose(moved[3], warp(stack[3]), **EXACT)


def test_points_that_an_inverse_does_not_reach_are_counted_in_a_warning():
    with warned_of("2 of 3 points", "folds"):
        moved = warp_points(
            np.zeros((3, 2)), lambda p: np.array([[1.0, 1], [np.nan] * 2, [np.nan] * 2])
        )
    assert np.isnan(moved[1:]).all()


def test_a_point_that_is_partly_nan_is_not_blamed_on_the_warp(alignment):
    points = np.zeros((2, 3))
    points[1, 2] = np.nan
    moved = warp_points(points, alignment.warps[0].exact_inverse())
    assert np.isnan(moved[1]).all()
    assert np.isfinite(moved[0]).all()


def test_the_error_of_the_reference_is_a_scalar_field(alignment):
    mesh = make_reference_mesh(alignment)
    np.testing.assert_array_equal(mesh.vertices, alignment.reference)
    np.testing.assert_array_equal(mesh.faces, FACES)
    j, visible = 7, alignment.shapes.visible[:, 7]
    squares = ((alignment.aligned[visible, j] - alignment.reference[j]) ** 2).sum(axis=1)
    np.testing.assert_allclose(mesh.scalars["error"][j], np.sqrt(squares.mean()), **EXACT)
    assert mesh.scalars["views"][j] == visible.sum() < 6 or visible.all()
    total = (mesh.scalars["error"] ** 2 * mesh.scalars["views"]).sum() / alignment.n_counted
    np.testing.assert_allclose(np.sqrt(total), alignment.rmse_reference, **EXACT)


def test_an_aligned_shape_is_a_mesh_with_the_error_of_each_landmark(alignment):
    name = alignment.shapes.names[1]
    mesh = make_aligned_mesh(alignment, name, faces=[[5, 6, 7]])
    visible = alignment.shapes.visible[1]
    assert 0 < visible.sum() < 50
    np.testing.assert_allclose(mesh.vertices[visible], alignment.aligned[1][visible], **EXACT)
    np.testing.assert_allclose(mesh.vertices[~visible], alignment.reference[~visible], **EXACT)
    distance = np.linalg.norm(mesh.vertices - alignment.reference, axis=1)
    np.testing.assert_allclose(mesh.scalars["error"][visible], distance[visible], **EXACT)
    assert np.isnan(mesh.scalars["error"][~visible]).all()
    assert mesh.faces.tolist() == [[5, 6, 7]]


def test_fields_are_added_without_losing_others(rng):
    mesh = add_scalar(scan(rng), "error", np.arange(200))
    assert set(mesh.scalars) == {"age", "error"}
    with pytest.raises(ShapeError, match="error"):
        add_scalar(mesh, "error", np.arange(7))


def test_flat_shapes_are_no_mesh():
    a = defgpa.DefGPA(defgpa.Affine()).fit(smooth_family()).alignment_
    with pytest.raises(ShapeError, match="2-D"):
        make_reference_mesh(a)


def test_a_mesh_of_thousands_of_vertices_keeps_its_faces():
    points = shared_points("cactus3d")[:3]
    a = defgpa.DefGPA(defgpa.Affine()).fit(Shapes(points)).alignment_
    mesh = make_reference_mesh(a, faces=[[0, 1, 2], [5258, 5259, 5260]])
    assert len(mesh.vertices) == 5261
    assert mesh.scalars["error"].max() > 0
