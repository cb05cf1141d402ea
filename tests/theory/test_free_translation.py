"""Free translations ⇔ P1 = 0 ⇔ the reference is centred."""

import numpy as np
import pytest

from defgpa import DefGPA
from support import EXACT, ChargedTranslations, LinearOnly, cost_of, every_warp

pytestmark = pytest.mark.filterwarnings("ignore:This warp has no free translations")
WITHOUT = pytest.mark.parametrize("warp", [LinearOnly(), ChargedTranslations()])


@every_warp
def test_the_reference_is_centred(warp, shapes):
    result = DefGPA(warp).fit(shapes).alignment_
    np.testing.assert_allclose(result.reference.mean(axis=0), 0, **EXACT)
    assert result.diagnostics.translation_cost < EXACT["atol"]


@WITHOUT
def test_without_free_translations_the_reference_is_off_centre_as_diagnostics_say(
    warp, nearby_shapes
):
    result = DefGPA(warp).fit(nearby_shapes).alignment_
    assert np.linalg.norm(result.reference.mean(axis=0)) > 1e-3
    ones = np.ones(nearby_shapes.n_landmarks)
    expected = result.diagnostics.translation_cost
    np.testing.assert_allclose(
        expected, np.linalg.norm(cost_of(nearby_shapes, warp) @ ones), **EXACT
    )
    assert expected > 0.1
