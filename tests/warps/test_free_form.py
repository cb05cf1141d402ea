"""Free-form lattices: a partition of unity, exact energies, and few functions at every point."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.interpolate import NdBSpline
from scipy.sparse import csr_array

from defgpa import Affine, DefGPA, FreeForm, Shapes, Warp
from defgpa.geometry import measure_geometry
from defgpa.solvers.columns import store_column_factor
from defgpa.solvers.cost import ResidualCost, build_cost, make_batches
from defgpa.solvers.elimination import store_factor
from defgpa.solvers.sparse_columns import (
    multiply_by_transpose,
    store_sparse_factor,
    stream_sparse_factor,
)
from defgpa.tuning import DEFAULT, Tuning
from defgpa.warps import BendingEnergy, Laplacian, Membrane
from support import EXACT, cost_of, form_gram, smooth_family

DIMS = pytest.mark.parametrize("d", [2, 3])
LATTICES = pytest.mark.parametrize(
    "counts", [(4, 4), (5, 7), (9, 6), (4, 4, 4), (6, 5, 4)], ids=str
)


def shape(d, rng, p=60):
    return (rng.normal(size=(p, d)) * np.linspace(3, 1, d)) @ np.linalg.qr(rng.normal(size=(d, d)))[
        0
    ] + 10 * rng.normal(size=d)


def sum_factors(shapes, factors, tuning=DEFAULT):
    """Make the cost of the factors of four well-conditioned shapes."""
    totals, sound = shapes.views.astype(float), np.zeros(4, dtype=int)
    return ResidualCost(totals, 4, np.ones(4), sound, "", tuple(factors), tuning)


def outside(points):
    """The same points blown up around their centroid, far beyond their box."""
    return 5.0 * points - 4.0 * points.mean(axis=0)


def scipy_spline(basis, weights):
    """The same lattice by scipy, a function of the coordinates in the cells."""
    knots = [np.r_[[0.0] * 3, np.arange(c + 1.0), [float(c)] * 3] for c in basis.cells]
    return NdBSpline(tuple(knots), weights.reshape(*basis.counts, -1), 3)


def in_cells(basis, points):
    return 0.5 * (basis.box.to_local(points) + 1) * np.array(basis.cells)


@LATTICES
def test_the_functions_sum_to_one_inside_and_outside(counts, rng):
    points = shape(len(counts), rng)
    basis = FreeForm(counts).basis(points)
    for places in (points, outside(points)):
        np.testing.assert_allclose(basis.features(places).sum(axis=1), 1, **EXACT)


@LATTICES
def test_the_lattice_points_as_weights_give_the_identity(counts, rng):
    points = shape(len(counts), rng)
    basis = FreeForm(counts).basis(points)
    identity = Warp(basis, basis.control_points)
    for places in (points, outside(points)):
        np.testing.assert_allclose(identity(places), places, **EXACT)


@LATTICES
def test_inside_they_are_the_splines_of_scipy(counts, rng):
    points = shape(len(counts), rng)
    basis = FreeForm(counts).basis(points)
    weights = rng.normal(size=(int(np.prod(counts)), 2))
    expected = scipy_spline(basis, weights)(in_cells(basis, points))
    np.testing.assert_allclose(basis.features(points) @ weights, expected, **EXACT)


@DIMS
def test_beyond_the_lattice_they_go_on_along_their_tangents(d, rng):
    points = shape(d, rng)
    basis = FreeForm(5).basis(points)
    warp = Warp(basis, rng.normal(size=(5**d, d)))
    face = np.zeros(d)
    face[0] = 1.0  # the middle of one face of the box, and places straight outside of it
    steps = np.array([0.0, 0.5, 1.0, 7.0])
    places = basis.box.to_world(face + steps[:, None] * face)
    images = warp(places)
    slope = warp.jacobian(places[:1])[0] @ (places[1] - places[0])
    np.testing.assert_allclose(images, images[0] + 2 * steps[:, None] * slope, **EXACT)


@DIMS
def test_the_visible_points_lie_inside_the_lattice(d, rng):
    points = shape(d, rng)
    local = FreeForm(6, padding=0.1).basis(points).box.to_local(points)
    np.testing.assert_allclose(np.abs(local).max(axis=0), 1 / 1.2, **EXACT)


@DIMS
def test_the_lattice_is_principal(d, rng):
    points = shape(d, rng)
    local = FreeForm(6).basis(points).box.to_local(points)
    covariance = np.cov(local.T)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), **EXACT)


def gauss_grid(cells):
    """Nodes and weights of a quadrature on every cell, exact to degree 11."""
    nodes, weights = np.polynomial.legendre.leggauss(6)
    ticks = [(np.arange(c)[:, None] + 0.5 * (nodes + 1)).ravel() for c in cells]
    shares = [np.tile(0.5 * weights, c) / c for c in cells]
    places = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, len(cells))
    return places, np.stack(np.meshgrid(*shares, indexing="ij"), axis=-1).reshape(
        -1, len(cells)
    ).prod(axis=1)


def derivative(spline, places, orders, spacing):
    return spline(places, nu=tuple(orders)) / np.prod(spacing ** np.array(orders))


def hessian(spline, places, spacing):
    d = places.shape[1]
    units = np.eye(d, dtype=int)
    return {
        (a, b): derivative(spline, places, units[a] + units[b], spacing)
        for a, b in product(range(d), repeat=2)
    }


def mean_bending(spline, places, shares, spacing):
    derivatives = hessian(spline, places, spacing)
    return sum(shares @ np.sum(derivatives[ab] ** 2, axis=1) for ab in derivatives)


def mean_laplacian(spline, places, shares, spacing):
    derivatives = hessian(spline, places, spacing)
    return shares @ np.sum(sum(derivatives[a, a] for a in range(len(spacing))) ** 2, axis=1)


def mean_stretching(spline, places, shares, spacing):
    total = 0.0
    for unit in np.eye(len(spacing), dtype=int):
        first = derivative(spline, places, unit, spacing)
        total += shares @ np.sum((first - shares @ first) ** 2, axis=1)
    return total


ENERGIES = {
    "bending": (BendingEnergy(), mean_bending),
    "membrane": (Membrane(), mean_stretching),
    "Laplacian": (Laplacian(bending_share=0.0), mean_laplacian),
    "Laplacian and bending": (
        Laplacian(bending_share=0.25),
        lambda *args: 0.75 * mean_laplacian(*args) + 0.25 * mean_bending(*args),
    ),
}


@LATTICES
@pytest.mark.parametrize(("energy", "integral"), ENERGIES.values(), ids=ENERGIES)
def test_the_penalty_is_the_integral(energy, integral, counts, rng):
    points = shape(len(counts), rng)
    basis = FreeForm(counts, energy=energy, smoothing=0.03).basis(points)
    weights = rng.normal(size=(int(np.prod(counts)), 2))
    size = np.sqrt(points.var(axis=0).sum())
    spacing = 2 * basis.box.half / np.array(basis.cells) / size
    places, shares = gauss_grid(basis.cells)
    expected = integral(scipy_spline(basis, weights), places, shares, spacing)
    charged = np.sum(weights * (basis.penalty() @ weights))
    np.testing.assert_allclose(charged, 0.03 * len(points) * expected, **EXACT)


@DIMS
@pytest.mark.parametrize(
    "energy", [BendingEnergy(), Membrane(), Laplacian(), Laplacian(0.0)], ids=repr
)
def test_affine_maps_and_nothing_else_are_free(energy, d, rng):
    points = shape(d, rng)
    basis = FreeForm(5, energy=energy, smoothing=1.0).basis(points)
    penalty = basis.penalty()
    affine = np.column_stack([basis.control_points, np.ones(5**d)])
    values = np.linalg.eigvalsh(penalty)
    np.testing.assert_allclose(penalty @ affine, 0, atol=1e-9 * values[-1])
    harmonic = isinstance(energy, Laplacian) and energy.bending_share == 0.0
    # x² − y², xy, … in 2-D; with z more of them
    assert (np.sum(values < 1e-11 * values[-1]) > d + 1) == harmonic


def test_under_the_pure_laplacian_more_than_affine_maps_stay_cheap_for_ever(full_shapes):
    """The counter-example: the share of the bending is what makes stiff lattices affine."""
    pure = FreeForm(5, energy=Laplacian(bending_share=0.0), smoothing=1e9)
    left = cost_of(full_shapes, Affine()) - cost_of(full_shapes, pure)
    assert np.linalg.eigvalsh(left).max() > 0.5


@LATTICES
def test_a_finer_lattice_over_the_same_box_explains_more(counts):
    """2K − 3 points halve the cells of K points; the energy is the same integral."""
    shapes = Shapes(smooth_family(seed=8, m=50, d=len(counts), missing=0.1))
    finer = tuple(2 * k - 3 for k in counts)
    for energy in (BendingEnergy(), Membrane()):
        coarse = FreeForm(counts, energy=energy, smoothing=1e-3)
        left = cost_of(shapes, coarse) - cost_of(shapes, replace(coarse, points_per_axis=finer))
        assert np.linalg.eigvalsh(left).min() > -EXACT["atol"]
        assert np.linalg.norm(left) > 1e-3


def test_a_lattice_that_does_not_refine_is_not_nested():
    """The counter-example: four cells are not three cells divided."""
    shapes = Shapes(smooth_family(seed=8, m=50))
    few, more = (cost_of(shapes, FreeForm(k, smoothing=1e-6)) for k in (6, 7))
    assert np.linalg.eigvalsh(few - more).min() < -1e-6


@LATTICES
def test_sparse_columns_are_the_columns(counts, rng):
    points = shape(len(counts), rng)
    basis = FreeForm(counts).basis(points)
    for places in (points, outside(points)):
        sparse = basis.sparse_columns(places)
        assert sparse.nnz == len(places) * 4 ** len(counts)
        np.testing.assert_allclose(sparse.toarray(), basis.columns(places), **EXACT)
        gradients = np.stack(
            [
                points_of_shape.toarray()
                for points_of_shape in basis.sparse_column_gradients(places)
            ],
            axis=1,
        )
        np.testing.assert_allclose(gradients, basis.column_gradients(places), **EXACT)


@DIMS
@pytest.mark.parametrize("hold", [store_column_factor, store_sparse_factor, stream_sparse_factor])
def test_sparse_features_solve_the_same_problem(hold, d, rng):
    shapes = Shapes(smooth_family(seed=4, n=4, m=150, d=d, missing=0.05))
    block = rng.normal(size=(150, 3))
    batches = make_batches(measure_geometry(shapes.points, shapes.visible), FreeForm(5))
    made = tuple(hold(batch) for batch in batches)
    cost = sum_factors(shapes, made)
    expected = sum_factors(shapes, map(store_factor, batches))
    np.testing.assert_allclose(cost.multiply(block), expected.multiply(block), **EXACT)
    np.testing.assert_allclose(cost.dense(), expected.dense(), **EXACT)
    for ours, theirs in zip(cost.fit_warps(block), expected.fit_warps(block), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-7 * np.abs(theirs).max())
    factor, stored_factor = (
        made[0].restrict_to_shape(2),
        store_factor(batches[0]).restrict_to_shape(2),
    )
    np.testing.assert_allclose(factor.stack_rows(), stored_factor.stack_rows(), atol=1e-8)


@pytest.mark.parametrize("hold", [store_sparse_factor, stream_sparse_factor])
def test_sparse_products_add_up_block_by_block_of_landmarks(hold, rng):
    shapes = Shapes(smooth_family(seed=4, n=4, m=150, missing=0.05))
    block = rng.normal(size=(150, 3))
    geometry = measure_geometry(shapes.points, shapes.visible)
    blocks = Tuning(sparse_block_bytes=12 * 16 * 20, whole_image_landmarks=0)
    uncut, cut = (
        sum_factors(shapes, map(hold, make_batches(geometry, FreeForm(5), tuning)), tuning)
        for tuning in (Tuning(), blocks)
    )
    assert cut._landmarks_at_a_time == 20
    np.testing.assert_allclose(cut.multiply(block), uncut.multiply(block), **EXACT)


def test_sparse_features_without_smoothing_drop_functions_without_points(rng):
    """Functions that no point sees and nothing charges are dropped, as for dense features."""
    shapes = Shapes(smooth_family(seed=4, n=4, m=150))
    (batch,) = make_batches(
        measure_geometry(shapes.points, shapes.visible), FreeForm(9, smoothing=0.0)
    )
    sparse, dense = store_sparse_factor(batch), store_factor(batch)
    np.testing.assert_array_equal(sparse.ridge.rank_deficiency, dense.ridge.rank_deficiency)
    assert sparse.ridge.rank_deficiency.min() > 0
    np.testing.assert_allclose(form_gram(sparse), form_gram(dense), **EXACT)


def test_many_landmarks_are_solved_with_sparse_features(rng):
    shapes = Shapes(smooth_family(seed=4, n=3, m=1200))
    cost = build_cost(measure_geometry(shapes.points, shapes.visible), FreeForm(8))
    assert cost.storage == "SparseFactor"
    fitted = DefGPA(FreeForm(8)).fit(shapes).alignment_
    assert fitted.diagnostics.storage == "SparseFactor"
    assert fitted.diagnostics.converged
    assert fitted.rmse_reference < 0.02
    little = build_cost(measure_geometry(shapes.points, shapes.visible), FreeForm(8), budget=1000)
    assert little.storage == "StreamedSparseFactor"


def test_the_normal_matrix_of_any_sparse_columns_is_right(rng):
    dense = rng.normal(size=(40, 12)) * (rng.random((40, 12)) < 0.3)
    shifted = np.zeros((40, 12))
    for row, start in zip(shifted, rng.integers(0, 7, size=40), strict=True):
        row[start + np.array([0, 1, 5])] = rng.normal(size=3)
    for matrix in (dense, shifted, np.zeros((3, 12)), shifted[:0]):
        product = multiply_by_transpose(csr_array(matrix))
        np.testing.assert_allclose(product, matrix.T @ matrix, **EXACT)


def test_a_flat_shape_gets_a_lattice_with_some_room(rng):
    flat = np.column_stack([rng.normal(size=(80, 2)) * [3, 2], np.zeros(80)])
    basis = FreeForm((5, 5, 4)).basis(flat)
    assert basis.box.half.min() >= 0.1 * basis.box.half.max() - 1e-12
    bent = flat + np.column_stack([np.zeros((80, 2)), 0.1 * np.sin(flat[:, 0])])
    shapes = np.stack([flat, bent, bent + 0.02 * rng.normal(size=(80, 3))])
    result = DefGPA(FreeForm((5, 5, 4))).fit(shapes + 0.001 * rng.normal(size=shapes.shape))
    assert np.isfinite(result.reference_).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (FreeForm(3), "'points_per_axis' parameter of FreeForm must be at least 4 on every axis"),
        (FreeForm((5, 5, 5)), "'points_per_axis' parameter of FreeForm must be a whole number"),
        (FreeForm(padding=-0.1), "'padding' parameter of FreeForm must be a number of at least 0"),
        (FreeForm(smoothing=np.nan), "'smoothing' parameter of FreeForm must be a number of at"),
    ],
    ids=str,
)
def test_bad_parameters_are_told_in_one_sentence(model, message, rng):
    with pytest.raises(ValueError, match=message):
        model.basis(rng.normal(size=(30, 2)))


def test_a_bending_share_beyond_one_is_refused(rng):
    with pytest.raises(ValueError, match="'bending_share' parameter of Laplacian must be a number"):
        FreeForm(energy=Laplacian(1.5)).basis(rng.normal(size=(30, 2))).penalty()
