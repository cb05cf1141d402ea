"""Many eigenproblems at once give what LAPACK gives for each of them."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import eigh

from defgpa import ThinPlateSpline
from defgpa.datasets import smooth_family
from defgpa.solve.eigen import solvers as stacked_axes
from defgpa.solve.eigen.solvers import Stacked, lowest_axes
from support import EXACT, cost_of

DIMS = pytest.mark.parametrize("d", [2, 3])
M, N_SHAPES = 60, 8


@dataclass(frozen=True)
class Costs:
    """A stack of matrices, as a solver wants it."""

    matrices: np.ndarray
    n_shapes: int = N_SHAPES

    def dense(self):
        return self.matrices


def cheapest_of_each(costs, d, rounds=5):
    """Values and axes by the stacked solver, which needs no preconditioner."""
    found = Stacked(rounds=rounds).axes(Costs(costs), lambda: pytest.fail("nothing to correct"), d)
    assert found.converged.all()
    return found.values, found.axes


def costs_with(spectra, rng):
    """A stack of matrices with the given lowest eigenvalues; the others are near n."""
    stack = []
    for lowest in spectra:
        turn, _ = np.linalg.qr(rng.normal(size=(M, M)))
        values = np.concatenate([lowest, rng.uniform(6, N_SHAPES, M - len(lowest))])
        stack.append(turn * values @ turn.T)
    return np.array(stack)


def assert_as_lapack(costs, d, values, axes):
    for i, cost in enumerate(costs):
        expected, vectors = eigh(cost, subset_by_index=(0, d))
        np.testing.assert_allclose(values[i, :d], expected[:d], rtol=0, atol=1e-12 * N_SHAPES)
        assert values[i, d] <= expected[d] + 1e-12 * N_SHAPES
        signs = np.sign((vectors[:, :d] * axes[i]).sum(axis=0))
        np.testing.assert_allclose(axes[i] * signs, vectors[:, :d], rtol=0, atol=1e-10)


@pytest.fixture
def lapack_calls(monkeypatch):
    """How often the sure way was taken."""
    calls = []

    def counted(matrix, count):
        calls.append(matrix)
        return lowest_axes(matrix, count)

    monkeypatch.setattr(stacked_axes, "lowest_axes", counted)
    return calls


@DIMS
def test_it_finds_what_lapack_finds(d, rng, lapack_calls):
    costs = costs_with([0.1 * np.arange(d) + rng.uniform(0.01, 0.05, d) for _ in range(9)], rng)
    values, axes = cheapest_of_each(costs, d)
    assert_as_lapack(costs, d, values, axes)
    assert not lapack_calls  # none of them needed it


@DIMS
def test_on_the_costs_of_shapes(d):
    shapes = smooth_family(N_SHAPES, M, d).shapes
    costs = np.array([cost_of(shapes, ThinPlateSpline(k)) + N_SHAPES / M for k in (2, 3, 4, 5)])
    values, axes = cheapest_of_each(costs, d)
    assert_as_lapack(costs, d, values, axes)


def test_eigenvalues_that_nearly_agree_are_left_to_lapack(rng, lapack_calls):
    clear, close = [0.1, 0.2, 0.5], [0.1, 0.1 + 1e-9, 0.5]
    gapless = [0.1, 0.2, 0.2 + 1e-9]
    costs = costs_with([clear, clear, close, gapless, clear], rng)
    values, _ = cheapest_of_each(costs, 2)
    assert len(lapack_calls) == 2
    np.testing.assert_allclose(values[2], close, rtol=0, atol=1e-12)
    np.testing.assert_allclose(values[3], gapless, rtol=0, atol=1e-12)


def test_a_slow_spectrum_is_left_to_lapack(rng, lapack_calls):
    """With eigenvalues packed as closely as this the iteration is not there after its rounds."""
    packed = np.linspace(1.0, 2.0, 40)
    costs = costs_with([packed] * 5, rng)
    values, axes = cheapest_of_each(costs, 2)
    assert len(lapack_calls) == 5
    assert_as_lapack(costs, 2, values, axes)


def test_a_start_that_misses_an_axis_is_found_out(rng, lapack_calls, monkeypatch):
    """The iteration converges, to the wrong axes: only the sum over the spectrum tells."""
    costs = costs_with([[0.1, 0.2, 0.3, 0.4]] * 4, rng)
    costs[:] = costs[0]
    blind = np.linalg.eigh(costs[0])[1][:, 1:7]

    class Start:
        def normal(self, size):
            return blind.copy()

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Start())
    values, axes = cheapest_of_each(costs, 2, rounds=1)  # more, and rounding would bring it back
    assert len(lapack_calls) == 4
    assert_as_lapack(costs, 2, values, axes)


def test_exact_zeros_and_indefinite_matrices_are_no_obstacle(rng):
    costs = costs_with([[0.0, 0.2, 0.5]] * 5, rng)
    values, axes = cheapest_of_each(costs, 2)
    assert_as_lapack(costs, 2, values, axes)
    indefinite = costs_with([[-1.0, 0.2, 0.5]] * 5, rng)
    values, axes = cheapest_of_each(indefinite, 2)
    assert_as_lapack(indefinite, 2, values, axes)


def test_few_or_small_matrices_too(rng):
    costs = costs_with([[0.1, 0.2, 0.5]] * 2, rng)
    assert_as_lapack(costs, 2, *cheapest_of_each(costs, 2))
    small = costs[:, :5, :5]
    values, axes = cheapest_of_each(small, 2)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(small)[:, :3], **EXACT)
    np.testing.assert_allclose(small @ axes, axes * values[:, None, :2], **EXACT)


def test_the_direction_next_to_the_axes_is_there_too(rng):
    """Where the gap is below the one that counts as clear, it is LAPACK's own."""
    costs = costs_with([[0.1, 0.2, 0.5]] * 5, rng)
    found = Stacked(clear_gap=0.75).axes(Costs(costs), lambda: None, 2)
    for cost, value, vector in zip(costs, found.values[:, 2], found.next_vector, strict=True):
        np.testing.assert_allclose(value, 0.5, rtol=1e-12)
        np.testing.assert_allclose(cost @ vector, 0.5 * vector, rtol=0, atol=1e-12)
