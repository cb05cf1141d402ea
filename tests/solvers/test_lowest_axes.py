"""The lowest axes of a cost are those of LAPACK, and keep their digits where eigenvalues tie."""

import numpy as np
import pytest
from scipy.linalg import eigh

from defgpa import ThinPlateSpline
from defgpa.datasets import smooth_family
from defgpa.solvers.deformable import choose_signs
from defgpa.solvers.eigen import find_lowest_axes
from support import EXACT, cost_of

N_SHAPES = 8


def make_cost(lowest, m, rng):
    """Make a matrix with the given lowest eigenvalues; the others are near n."""
    turn, _ = np.linalg.qr(rng.normal(size=(m, m)))
    values = np.concatenate([lowest, rng.uniform(6, N_SHAPES, m - len(lowest))])
    return turn * values @ turn.T


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("m", [60, 160])
def test_axes_of_the_costs_of_shapes_are_those_of_lapack(d, m):
    shapes = smooth_family(N_SHAPES, m, d).shapes
    for k in (2, 3, 4):
        cost = cost_of(shapes, ThinPlateSpline(k)) + N_SHAPES / m
        (spectrum,) = find_lowest_axes(cost[None], d)
        expected, vectors = eigh(cost)
        np.testing.assert_allclose(spectrum.values, expected[: d + 1], rtol=0, atol=1e-11)
        columns = np.column_stack([spectrum.axes, spectrum.next_vector])
        signs = np.sign((vectors[:, : d + 1] * columns).sum(axis=0))
        np.testing.assert_allclose(columns * signs, vectors[:, : d + 1], rtol=0, atol=1e-9)
        assert spectrum.residuals.shape == (d,)
        assert spectrum.residuals.max() < 1e-12 * N_SHAPES


@pytest.mark.parametrize("lowest", [[0.1, 0.1, 0.5], [0.1, 0.2, 0.2], [0.0, 0.2, 0.5], [-1, 0, 1]])
def test_ties_zeros_and_indefinite_matrices_keep_their_digits(lowest, rng):
    (spectrum,) = find_lowest_axes(make_cost(lowest, 60, rng)[None], 2)
    np.testing.assert_allclose(spectrum.values, lowest, rtol=0, atol=1e-12)
    np.testing.assert_allclose(spectrum.axes.T @ spectrum.axes, np.eye(2), rtol=0, atol=1e-12)
    assert spectrum.residuals.max() < 1e-12


def test_of_as_many_axes_as_landmarks_there_is_no_next(rng):
    small = make_cost([0.1, 0.2, 0.5], 60, rng)[:3, :3]
    (spectrum,) = find_lowest_axes(small[None], 3)
    *values, following = spectrum.values
    assert following == np.inf
    np.testing.assert_allclose(small @ spectrum.axes, spectrum.axes * values, **EXACT)


def test_the_heavier_tail_of_an_axis_is_positive_and_of_a_symmetric_one_its_first_largest_entry():
    lopsided, symmetric = [-0.9, 0.4, 0.5], [0.1, -0.1, -0.5, 0.5]
    for axis in (lopsided, symmetric):
        for turned in (axis, np.negative(axis)):
            (sign,) = choose_signs(np.array(turned)[:, None])
            np.testing.assert_array_equal(sign * np.array(turned), np.negative(axis))
    np.testing.assert_array_equal(choose_signs(np.zeros((3, 2))), 1.0)
