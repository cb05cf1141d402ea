"""Free translations ⇔ P1 = 0 ⇔ the reference is centred."""

import numpy as np
import pytest

from defgpa import DefGPA
from defgpa.geometry import measure_geometry
from defgpa.solvers.cost import build_cost
from support import EXACT, ChargedTranslations, LinearOnly, cost_of, every_warp

pytestmark = pytest.mark.filterwarnings("ignore:This warp has no free translations")
WITHOUT = pytest.mark.parametrize("warp", [LinearOnly(), ChargedTranslations()])


@every_warp
def test_the_constant_vector_costs_nothing(warp, shapes):
    ones = np.ones(shapes.n_landmarks)
    np.testing.assert_allclose(cost_of(shapes, warp) @ ones, 0, **EXACT)


@every_warp
def test_it_costs_nothing_in_any_single_shape(warp, shapes):
    for i in range(shapes.n_shapes):
        cost = build_cost(
            measure_geometry(shapes.points[i : i + 1], shapes.visible[i : i + 1]), warp
        )
        constant = cost.multiply(np.ones((shapes.n_landmarks, 1)))
        np.testing.assert_allclose(constant, 0, **EXACT)


@every_warp
def test_a_translated_reference_costs_the_same(warp, shapes, rng):
    cost = cost_of(shapes, warp)
    reference = rng.normal(size=(shapes.n_landmarks, shapes.n_dims))
    translated = reference + 10 * rng.normal(size=shapes.n_dims)
    np.testing.assert_allclose(
        np.sum(translated * (cost @ translated)), np.sum(reference * (cost @ reference)), **EXACT
    )


@every_warp
def test_the_reference_is_centred(warp, shapes):
    result = DefGPA(warp).fit(shapes).alignment_
    np.testing.assert_allclose(result.reference.mean(axis=0), 0, **EXACT)
    assert result.diagnostics.translation_cost < EXACT["atol"]


@WITHOUT
def test_without_free_translations_the_constant_vector_costs_something(warp, nearby_shapes):
    ones = np.ones(nearby_shapes.n_landmarks)
    assert np.linalg.norm(cost_of(nearby_shapes, warp) @ ones) > 0.1


@WITHOUT
def test_and_the_reference_is_off_centre_and_the_diagnostics_say_so(warp, nearby_shapes):
    result = DefGPA(warp).fit(nearby_shapes).alignment_
    assert np.linalg.norm(result.reference.mean(axis=0)) > 1e-3
    ones = np.ones(nearby_shapes.n_landmarks)
    expected = result.diagnostics.translation_cost
    np.testing.assert_allclose(
        expected, np.linalg.norm(cost_of(nearby_shapes, warp) @ ones), **EXACT
    )
    assert expected > 0.1
