"""Soft and exact centring are the same for warps with free translations, if ν ≥ n/m."""

import numpy as np
import pytest

from defgpa import Affine, DefGPA, ExactCentering, Iterative, Shapes, SoftCentering
from defgpa.diagnostics.findings import Problem
from defgpa.geometry import measure_geometry
from defgpa.solvers.cost import build_cost
from support import (
    EXACT,
    LIMIT,
    ChargedTranslations,
    LinearOnly,
    assert_same_shape,
    cost_of,
    every_warp,
    smooth_family,
)

pytestmark = pytest.mark.filterwarnings("ignore:This warp has no free translations")
WITHOUT = pytest.mark.parametrize("warp", [LinearOnly(), ChargedTranslations()])


@every_warp
@pytest.mark.parametrize("nu", [None, 1.0, 100.0])
def test_soft_centering_is_exact_when_translations_are_free(warp, nu, shapes):
    soft = DefGPA(warp, centering=SoftCentering(nu)).fit(shapes)
    exact = DefGPA(warp, centering=ExactCentering()).fit(shapes)
    # rounding grows with the norm of P + ν 1 1ᵀ, which is νm once that exceeds n
    grown = 1.0 if nu is None else nu * shapes.n_landmarks / shapes.n_shapes
    assert_same_shape(soft.reference_, exact.reference_, rtol=1e-9 * max(1.0, grown))
    np.testing.assert_allclose(soft.reference_.mean(axis=0), 0, **EXACT)


def noisy_crowd():
    """Few landmarks, many shapes, and noise that makes even the cheapest axes dear."""
    return Shapes(smooth_family(seed=6, n=200, m=30, noise=0.5))


def test_the_printed_weight_m_over_n_lets_the_constant_vector_in():
    """Erratum 1: with m = 30 and n = 200, m/n = 0.15 < n/m = 6.67."""
    shapes = noisy_crowd()
    cost = build_cost(measure_geometry(shapes.points, shapes.visible), Affine())
    for nu, share in ((30 / 200, 1.0), (200 / 30, 0.0)):
        _, vectors = np.linalg.eigh(SoftCentering(nu).apply(cost).dense())
        constant = vectors[:, :2].T @ np.ones(30) / np.sqrt(30)
        np.testing.assert_allclose(np.sum(constant**2), share, **EXACT)


def test_the_right_weight_keeps_the_crowd_centred():
    reference = DefGPA(Affine()).fit(noisy_crowd()).reference_
    np.testing.assert_allclose(reference.mean(axis=0), 0, **EXACT)


@WITHOUT
def test_soft_centering_tends_to_exact_centering(warp, nearby_shapes):
    soft = DefGPA(warp, centering=SoftCentering(1e8)).fit(nearby_shapes)
    exact = DefGPA(warp, centering=ExactCentering()).fit(nearby_shapes)
    assert_same_shape(soft.reference_, exact.reference_, rtol=LIMIT["rtol"])


@WITHOUT
def test_exact_centering_is_optimal_among_the_centred(warp, nearby_shapes, rng):
    reference = DefGPA(warp, centering=ExactCentering()).fit(nearby_shapes).reference_
    cost, stretch = cost_of(nearby_shapes, warp), np.linalg.norm(reference, axis=0)
    best = np.sum(reference * (cost @ reference))
    for step in (1e-2, 1.0, 100.0):
        for _ in range(20):
            push = step * rng.normal(size=reference.shape)
            axes, _ = np.linalg.qr(reference / stretch + push - push.mean(axis=0))
            rival = axes * stretch
            assert np.sum(rival * (cost @ rival)) > best


@pytest.mark.parametrize("centering", [SoftCentering(), SoftCentering(2.0), ExactCentering()])
def test_products_with_the_centred_cost_are_those_with_its_matrix(centering, shapes, rng):
    centred = centering.apply(
        build_cost(measure_geometry(shapes.points, shapes.visible), LinearOnly())
    )
    block = rng.normal(size=(shapes.n_landmarks, 4))
    np.testing.assert_allclose(centred.multiply(block), centred.dense() @ block, **EXACT)


@WITHOUT
def test_the_iterative_solver_centres_as_the_dense_one_does(warp, nearby_shapes):
    for centering in (SoftCentering(), ExactCentering()):
        dense = DefGPA(warp, centering=centering).fit(nearby_shapes).reference_
        iterative = (
            DefGPA(warp, centering=centering, solver=Iterative()).fit(nearby_shapes).reference_
        )
        assert_same_shape(iterative, dense, rtol=1e-8)  # the iterative solver aims at 1e-10 · gap


def test_a_negative_weight_is_refused(full_shapes):
    with pytest.raises(ValueError, match="'nu' parameter of SoftCentering must be a number of at"):
        DefGPA(centering=SoftCentering(-1.0)).fit(full_shapes)


def test_too_small_a_nu_is_a_finding_that_names_one_large_enough():
    points = smooth_family(seed=1, n=5, m=24)
    points += 0.3 - points.mean(axis=1, keepdims=True)

    def told(nu):
        findings = DefGPA(Affine(), centering=SoftCentering(nu)).solve(points)[0].findings
        return [finding for finding in findings if finding.problem is Problem.WEAK_CENTERING]

    (weak,) = told(1e-9)
    assert weak.values["enough"] == 5 / 24
    assert not told(weak.values["enough"])
