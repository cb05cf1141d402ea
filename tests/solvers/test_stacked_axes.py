"""Many eigenproblems at once give what LAPACK gives for each of them."""

import numpy as np
import pytest
from scipy.linalg import eigh

from defgpa import ThinPlateSpline
from defgpa.datasets import smooth_family
from defgpa.solvers.eigen import lowest_axes, reproducible_signs
from support import EXACT, cost_of

DIMS = pytest.mark.parametrize("d", [2, 3])
SIZES = pytest.mark.parametrize("m", [60, 160], ids=["in one call", "one by one"])
N_SHAPES = 8


def costs_with(spectra, m, rng):
    """A stack of matrices with the given lowest eigenvalues; the others are near n."""
    stack = []
    for lowest in spectra:
        turn, _ = np.linalg.qr(rng.normal(size=(m, m)))
        values = np.concatenate([lowest, rng.uniform(6, N_SHAPES, m - len(lowest))])
        stack.append(turn * values @ turn.T)
    return np.array(stack)


def assert_as_lapack(costs, d):
    found = lowest_axes(costs, d)
    assert found.converged.all()
    for cost, values, axes, beyond in zip(
        costs, found.values, found.axes, found.next_vector, strict=True
    ):
        expected, vectors = eigh(cost, subset_by_index=(0, d))
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12 * N_SHAPES)
        both = np.column_stack([axes, beyond])
        signs = np.sign((vectors * both).sum(axis=0))
        np.testing.assert_allclose(both * signs, vectors, rtol=0, atol=1e-10)
    assert found.residuals.shape == (len(costs), d)
    assert found.residuals.max() < 1e-12 * N_SHAPES


@DIMS
@SIZES
def test_it_finds_what_lapack_finds_one_by_one(d, m, rng):
    lowest = [0.1 * np.arange(d + 1) + rng.uniform(0.01, 0.05, d + 1) for _ in range(5)]
    assert_as_lapack(costs_with(lowest, m, rng), d)


@DIMS
@SIZES
def test_on_the_costs_of_shapes(d, m):
    shapes = smooth_family(N_SHAPES, m, d).shapes
    costs = [cost_of(shapes, ThinPlateSpline(k)) + N_SHAPES / m for k in (2, 3, 4, 5)]
    assert_as_lapack(np.array(costs), d)


@SIZES
@pytest.mark.parametrize("lowest", [[0.1, 0.1, 0.5], [0.1, 0.2, 0.2]], ids=["tie", "no gap"])
def test_exact_ties_keep_their_digits(lowest, m, rng):
    costs = costs_with([lowest] * 3, m, rng)
    found = lowest_axes(costs, 2)
    np.testing.assert_allclose(found.values, np.tile(lowest, (3, 1)), rtol=0, atol=1e-12)
    products = found.axes.mT @ found.axes
    np.testing.assert_allclose(products, np.tile(np.eye(2), (3, 1, 1)), rtol=0, atol=1e-12)
    assert found.residuals.max() < 1e-12


@SIZES
def test_exact_zeros_and_indefinite_matrices_are_no_obstacle(m, rng):
    assert_as_lapack(costs_with([[0.0, 0.2, 0.5], [-1.0, 0.2, 0.5]], m, rng), 2)


def test_of_as_many_axes_as_landmarks_there_is_no_next(rng):
    small = costs_with([[0.1, 0.2, 0.5]] * 2, 60, rng)[:, :3, :3]
    found = lowest_axes(small, 3)
    assert found.values.shape == (2, 3)
    np.testing.assert_array_equal(found.gap, 0.0)
    np.testing.assert_allclose(small @ found.axes, found.axes * found.values[:, None], **EXACT)


def test_the_heavier_tail_of_an_axis_is_positive_and_of_a_symmetric_one_its_first_largest_entry():
    lopsided, symmetric = [-0.9, 0.4, 0.5], [0.1, -0.1, -0.5, 0.5]
    for axis in (lopsided, symmetric):
        for turned in (axis, np.negative(axis)):
            (sign,) = reproducible_signs(np.array(turned)[:, None])
            np.testing.assert_array_equal(sign * np.array(turned), np.negative(axis))
    np.testing.assert_array_equal(reproducible_signs(np.zeros((3, 2))), 1.0)
