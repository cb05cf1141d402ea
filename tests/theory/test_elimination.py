"""Given the reference, every warp is a ridge regression, and P is what all of them leave over."""

from dataclasses import dataclass

import numpy as np
import pytest

from defgpa import DefGPA, Shapes, ThinPlateSpline
from defgpa.geometry import measure_geometry
from defgpa.solvers.cost import build_cost
from defgpa.tuning import Tuning
from support import (
    EXACT,
    ChargedTranslations,
    LinearOnly,
    best_weights,
    cost_of,
    every_warp,
    explicit_cost,
    smooth_family,
    visible_parts,
)


@pytest.mark.parametrize("warp", [LinearOnly(), ChargedTranslations()])
def test_the_quadratic_form_is_the_cost_of_the_best_warps(warp, shapes, rng):
    reference = rng.normal(size=(shapes.n_landmarks, shapes.n_dims))
    eliminated = np.sum(reference * (cost_of(shapes, warp) @ reference))
    np.testing.assert_allclose(eliminated, explicit_cost(shapes, warp, reference), **EXACT)


@every_warp
def test_the_warps_of_an_alignment_are_ridge_regressions_onto_the_reference(warp, shapes):
    result = DefGPA(warp).fit(shapes).alignment_
    for fitted, (points, visible) in zip(result.warps, visible_parts(shapes), strict=True):
        basis = warp.basis(points)
        weights, _ = best_weights(basis, points, result.reference[visible])
        np.testing.assert_allclose(fitted(points), basis.features(points) @ weights, **EXACT)


@dataclass(frozen=True)
class Recombined:
    """The same family of warps in other features: F → FH, R → HᵀRH."""

    warp: ThinPlateSpline

    def basis(self, points):
        basis = self.warp.basis(points)
        size = basis.features(points).shape[1]
        mixed = np.random.default_rng(5).normal(size=(size, size)) + 3 * np.eye(size)
        return RecombinedBasis(basis, mixed)


@dataclass(frozen=True, eq=False)
class RecombinedBasis:
    basis: object
    mixed: np.ndarray

    def features(self, points):
        return self.basis.features(points) @ self.mixed

    def penalty(self):
        return self.mixed.T @ self.basis.penalty() @ self.mixed


@every_warp
def test_the_cost_does_not_see_which_features_span_the_warps(warp, shapes):
    np.testing.assert_allclose(cost_of(shapes, Recombined(warp)), cost_of(shapes, warp), **EXACT)


@pytest.mark.parametrize("smoothing", [1e4, 1e8])
def test_heavy_smoothing_charges_nothing_that_is_meant_to_be_free(smoothing, shapes):
    """In mixed features the null space of a heavy penalty is known only to rounding times it."""
    stiff = cost_of(shapes, Recombined(ThinPlateSpline(3, smoothing=smoothing)))
    np.testing.assert_allclose(stiff @ np.ones(shapes.n_landmarks), 0, rtol=0, atol=1e-8)
    assert np.abs(stiff - cost_of(shapes, ThinPlateSpline(3, smoothing=smoothing))).max() < 1e-8


def test_shapes_in_many_batches_cost_what_they_cost_in_one():
    shapes = Shapes(smooth_family(seed=4, n=11, missing=0.2))
    together = cost_of(shapes, ThinPlateSpline(3))
    small = Tuning(batch_bytes=8 * 40 * 9 * 3, few_bytes=0)
    geometry = measure_geometry(shapes.points, shapes.visible)
    in_batches = build_cost(geometry, ThinPlateSpline(3), tuning=small)
    assert len(in_batches.factors) == 4
    np.testing.assert_allclose(in_batches.dense(), together, **EXACT)


def test_bases_of_different_sizes_stand_side_by_side(rng):
    """A warp of one's own may give each shape as many features as it likes."""
    shapes = Shapes(smooth_family(seed=5, n=7, missing=0.2))

    @dataclass(frozen=True)
    class SizedByShape:
        def basis(self, points):
            return ThinPlateSpline(2 + len(points) % 2, smoothing=1e-2).basis(points)

    reference = rng.normal(size=(shapes.n_landmarks, 2))
    eliminated = np.sum(reference * (cost_of(shapes, SizedByShape()) @ reference))
    expected = explicit_cost(shapes, SizedByShape(), reference)
    assert len({SizedByShape().basis(p).penalty().shape for p, _ in visible_parts(shapes)}) == 2
    np.testing.assert_allclose(eliminated, expected, **EXACT)
