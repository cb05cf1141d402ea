"""Coordinates in which the bending of a spline is a sum of squares, on grids and elsewhere."""

import numpy as np
import pytest

from defgpa import ThinPlateSpline
from defgpa.geometry import measure_geometry
from defgpa.warps import thin_plate as bending
from defgpa.warps.control_points import make_principal_grid
from defgpa.warps.distances import compute_squared_distances
from support import EXACT

GRIDS = pytest.mark.parametrize("counts", [(2, 2), (5, 5), (4, 2), (3, 3, 3), (4, 3, 2)])


def grids(counts, rng, n=6):
    """Grids of differently stretched and turned shapes, one of them rather flat."""
    d = len(counts)
    points = rng.normal(size=(n, 40, d)) * rng.uniform(0.2, 3, size=(n, 1, d))
    points[0, :, -1] *= 0.05
    geometry = measure_geometry(points, np.ones((n, 40), dtype=bool))
    grid = make_principal_grid(geometry, counts)
    within = np.stack(np.unravel_index(np.arange(np.prod(counts)), counts), axis=-1) + 1.0
    low, high = (end[:, None, :] for end in geometry.principal_box)
    along = low + (high - low) * within / (np.array(counts) + 1)
    local = along @ np.swapaxes(geometry.axes, 1, 2) / geometry.size[:, None, None]
    np.testing.assert_allclose(grid.points, local, **EXACT)
    return grid


def kernel_of(controls):
    """r² log r² in 2-D and −r in 3-D, written down."""
    r = np.linalg.norm(controls[:, :, None] - controls[:, None], axis=-1)
    if controls.shape[-1] == 3:
        return -r
    return np.where(r > 0, r**2 * np.log(np.where(r > 0, r, 1) ** 2), 0)


@GRIDS
def test_entries_looked_up_on_a_grid_are_those_of_the_kernel(counts, rng):
    grid = grids(counts, rng)
    expected = kernel_of(grid.points)
    np.testing.assert_allclose(bending._compute_grid_kernel(grid), expected, **EXACT)


@GRIDS
def test_distances_to_a_grid_are_sums_over_its_axes(counts, rng):
    grid = grids(counts, rng)
    k, d = grid.points.shape[1:]
    points = np.concatenate([rng.normal(size=(6, 30, d)), grid.points], axis=1)
    expected = compute_squared_distances(points, grid.points)
    result = np.empty((6, k, 30 + k))
    grid.fill_squared_distances(np.swapaxes(points, 1, 2), out=result)
    np.testing.assert_allclose(np.swapaxes(result, 1, 2), expected, rtol=1e-12, atol=1e-15)
    alone = np.empty((k, 30 + k))
    grid[2].fill_squared_distances(points[2].T, out=alone)
    np.testing.assert_allclose(alone, result[2], rtol=1e-12, atol=1e-15)
    at_the_points = np.diagonal(result[:, :, 30:], axis1=1, axis2=2)
    assert at_the_points.max() < 1e-29  # nothing cancels: zero but for the rounding of the points


@GRIDS
def test_all_grids_share_what_is_orthogonal_to_affine_functions(counts, rng):
    k, d = int(np.prod(counts)), len(counts)
    complement = bending._make_grid_complement(counts).reflect(np.eye(k))[:, d + 1 :]
    assert complement.shape == (k, k - d - 1)
    np.testing.assert_allclose(complement.T @ complement, np.eye(k - d - 1), **EXACT)
    for controls in grids(counts, rng).points:
        np.testing.assert_allclose(complement.T @ controls, 0, **EXACT)
        np.testing.assert_allclose(complement.sum(axis=0), 0, **EXACT)


@GRIDS
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_in_these_coordinates_the_bending_is_a_sum_of_squares(counts, ridge, rng):
    grid = grids(counts, rng)
    controls = grid.points
    k, d = controls.shape[1:]
    kernel = kernel_of(controls) + ridge * np.eye(k)
    units = np.zeros((len(controls), d)), np.ones(len(controls))
    on_grid = bending.ThinPlateBasis(controls, *units, ridge, stiffness=units[1], grid=grid)
    for mixing in (bending.compute_spline_mixing(controls, ridge), on_grid.mixing):
        weights = mixing[:, :k, : k - d - 1]
        energy = np.swapaxes(weights, 1, 2) @ kernel @ weights
        np.testing.assert_allclose(
            energy, np.broadcast_to(np.eye(k - d - 1), energy.shape), **EXACT
        )
        np.testing.assert_array_equal(mixing[:, :k, k - d - 1 :], 0)
        np.testing.assert_array_equal(mixing[:, k:, : k - d - 1], 0)


@pytest.mark.parametrize("counts", [(6, 6), (34, 30)], ids=["with tables", "too many for them"])
def test_a_grid_is_control_points_like_others(counts, rng):
    points = rng.normal(size=(50, 2))
    grid = ThinPlateSpline(counts).basis(points)
    explicit = ThinPlateSpline(control_points=grid.control_points).basis(points)
    grid_gram, explicit_gram = (
        basis.features(points) @ basis.features(points).T for basis in (grid, explicit)
    )
    np.testing.assert_allclose(grid_gram, explicit_gram, **EXACT)  # N is known up to a rotation
    tables = bending._make_grid_complement.cache_info().currsize
    ThinPlateSpline(counts).basis(points)
    assert bending._make_grid_complement.cache_info().currsize == tables
    assert (np.prod(counts) > bending.MANY_CONTROLS) == (grid.deflate() is None)


def test_geometry_of_a_subset_equals_that_of_its_shapes_alone(rng):
    points, visible = rng.normal(size=(7, 20, 3)), rng.random((7, 20)) < 0.8
    geometry = measure_geometry(np.where(visible[..., None], points, np.nan), visible)
    for subset in (slice(2, 5), np.arange(7) % 2 == 0):
        some, fresh = geometry[subset], measure_geometry(points[subset], visible[subset])
        for name in ("centre", "count", "centred", "size", "extents"):
            np.testing.assert_allclose(getattr(some, name), getattr(fresh, name), **EXACT)
        np.testing.assert_allclose(some.principal_box, fresh.principal_box, **EXACT)
        np.testing.assert_array_equal(some.points[some.visible], points[subset][visible[subset]])
