"""The eigenvectors solve the constrained problem, globally."""

import numpy as np
import pytest

from defgpa import DefGPA
from support import EXACT, cheapest_axes, cost_of, every_warp, explicit_cost, min_cost_of


def spent(cost, reference):
    return np.sum(reference * (cost @ reference))


@every_warp
@pytest.mark.parametrize("proportions", ["rigid", "prior"])
def test_the_reference_is_feasible(warp, proportions, shapes):
    result = DefGPA(warp, proportions=proportions).fit(shapes).alignment_
    reference = result.reference
    np.testing.assert_allclose(reference.sum(axis=0), 0, **EXACT)
    np.testing.assert_allclose(reference.T @ reference, np.diag(result.eigenvalues), **EXACT)


@every_warp
def test_the_cost_is_the_eigenvalues_paired_in_opposite_order(warp, shapes):
    result = DefGPA(warp, proportions="prior").fit(shapes).alignment_
    sigma = np.linalg.eigvalsh(cost_of(shapes, warp) + shapes.n_shapes / shapes.n_landmarks)
    expected = np.sum(result.eigenvalues * sigma[: shapes.n_dims])
    np.testing.assert_allclose(explicit_cost(shapes, warp, result.reference), expected, **EXACT)
    np.testing.assert_allclose(
        result.diagnostics.spectrum[: shapes.n_dims + 1], sigma[: shapes.n_dims + 1], **EXACT
    )
    assert (np.diff(result.eigenvalues) < 0).all()


@every_warp
@pytest.mark.parametrize("step", [1e-3, 1e-1])
def test_no_feasible_neighbour_is_cheaper(warp, step, shapes, rng):
    reference = DefGPA(warp, proportions="prior").fit(shapes).reference_
    cost, stretch = cost_of(shapes, warp), np.linalg.norm(reference, axis=0)
    best = spent(cost, reference)
    for _ in range(50):
        push = rng.normal(size=reference.shape) / np.sqrt(len(reference))
        axes, triangle = np.linalg.qr(reference / stretch + step * (push - push.mean(axis=0)))
        rival = axes * np.sign(np.diag(triangle)) * stretch
        assert spent(cost, rival) > best


@every_warp
def test_the_proportions_do_not_enter_the_eigenproblem(warp, shapes):
    estimated = DefGPA(warp, proportions="prior").fit(shapes).alignment_
    scale = np.arange(shapes.n_dims + 1, 1, -1.0)
    alignment = DefGPA(warp, proportions=scale).fit(shapes).alignment_
    np.testing.assert_allclose(
        alignment.reference / np.sqrt(scale),
        estimated.reference / np.sqrt(estimated.eigenvalues),
        **EXACT,
    )
    np.testing.assert_array_equal(alignment.eigenvalues, scale)


def test_stated_eigenvalues_may_come_in_any_order(full_shapes):
    scale = np.arange(1.0, full_shapes.n_dims + 1)
    model = DefGPA(proportions=scale).fit(full_shapes)
    assert model.alignment_.diagnostics.proportions == "given"
    np.testing.assert_array_equal(model.alignment_.eigenvalues, scale[::-1])
    np.testing.assert_allclose(np.sum(model.reference_**2, axis=0), scale[::-1], **EXACT)


@every_warp
def test_by_rigidity_it_costs_a_little_more_and_never_less(warp, shapes):
    """Inside the same eigenspace, with a Λ of its own: what the diagnostics call the excess."""
    result = DefGPA(warp).fit(shapes).alignment_
    sigma, _ = cheapest_axes(shapes, warp)
    min_cost = min_cost_of(shapes, warp, result.reference)
    spends = explicit_cost(shapes, warp, result.reference)
    assert min_cost - 1e-9 <= spends <= min_cost * sigma[shapes.n_dims - 1] / sigma[0]
    np.testing.assert_allclose(spends / min_cost - 1, result.diagnostics.excess, atol=1e-6)
    paired = DefGPA(warp, proportions=result.eigenvalues).fit(shapes).alignment_
    assert abs(paired.diagnostics.excess) < 1e-9
