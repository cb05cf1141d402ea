"""Without free translations: the soft and the exact solution, against a brute-force optimiser.

The optimiser knows nothing of eigenvectors: it moves a reference S, keeps SᵀS = Λ (and, if
asked, the centroid) by construction, and fits every warp by least squares at every step.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from defgpa import DefGPA, ExactCentering, RadialBasis, Shapes, SoftCentering
from defgpa.diagnostics.findings import Problem
from defgpa.errors import DefgpaWarning
from defgpa.warps import Gaussian, WeightRidge, WendlandC2
from support import (
    EXACT,
    PARITY,
    explicit_cost,
    full_penalty,
    smooth_family,
    told_among_others,
    visible_parts,
    warned_of,
)

MODELS = {
    "Gaussians": RadialBasis(Gaussian(1.5), 2, polynomial_degree=None, smoothing=1e-2),
    "ridge": RadialBasis(
        Gaussian(1.0), 2, polynomial_degree=None, penalty=WeightRidge(), smoothing=1e-2
    ),
    "Wendland": RadialBasis(WendlandC2(3.0), 2, polynomial_degree=None, smoothing=1e-3),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
quiet = pytest.mark.filterwarnings("ignore:This warp has no free translations")


def small(missing=False):
    points = smooth_family(seed=21, n=3, m=8, bend=0.3)
    if missing:
        points[0, 1] = points[2, 5] = np.nan
    return Shapes(points)


def best_fits(shapes, model):
    """For each shape its visible landmarks and an orthonormal basis of what [F; √R] can reach."""
    fits = []
    for points, visible in visible_parts(shapes):
        basis = model.basis(points)
        features = basis.features(points)
        values, vectors = np.linalg.eigh(full_penalty(basis, features.shape[1]))
        root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
        fits.append((visible, np.linalg.qr(np.vstack([features, root]))[0]))
    return fits


def spent(fits, reference):
    """Σ ‖warp_i(D_i) − S‖² + tr(WᵀRW), each warp fitted by least squares."""
    total = 0.0
    for fit, reach in fits:
        targets = np.zeros((len(reach), reference.shape[1]))
        targets[: fit.sum()] = reference[fit]
        total += np.sum((targets - reach @ (reach.T @ targets)) ** 2)
    return total


def off_centre(reference):
    return np.sum(reference.sum(axis=0) ** 2)


def reference_of(numbers, shape, stretch, centred):
    """A feasible reference: orthogonal columns of the right lengths, from any numbers."""
    free = numbers.reshape(shape)
    if centred:
        free = free - free.mean(axis=0)
    left, _, right = np.linalg.svd(free, full_matrices=False)
    return left @ right * stretch


def brute_force(cost, shape, stretch, centred, starts=3):
    """The smallest cost found from several random starts."""
    rng = np.random.default_rng(3)

    def objective(numbers):
        return cost(reference_of(numbers, shape, stretch, centred))

    results = [
        minimize(objective, rng.normal(size=np.prod(shape)), options={"gtol": 1e-4}).fun
        for _ in range(starts)
    ]
    return min(results)


@quiet
@every_model
@pytest.mark.parametrize("missing", [False, True], ids=["full", "partial"])
def test_the_soft_solution_is_the_cheapest_of_all(model, missing):
    shapes = small(missing)
    fitted = DefGPA(model, proportions="prior").fit(shapes).alignment_
    nu, fits = shapes.n_shapes / shapes.n_landmarks, best_fits(shapes, model)
    reference = fitted.reference
    ours = explicit_cost(shapes, model, reference) + nu * off_centre(reference)
    theirs = brute_force(
        lambda s: spent(fits, s) + nu * off_centre(s),
        fitted.reference.shape,
        np.sqrt(fitted.eigenvalues),
        centred=False,
    )
    np.testing.assert_allclose(ours, theirs, **PARITY)


@every_model
@pytest.mark.parametrize("missing", [False, True], ids=["full", "partial"])
def test_the_exact_solution_is_the_cheapest_of_the_centred(model, missing):
    shapes = small(missing)
    fitted = DefGPA(model, centering=ExactCentering(), proportions="prior").fit(shapes).alignment_
    np.testing.assert_allclose(fitted.reference.mean(axis=0), 0, **EXACT)
    ours, fits = explicit_cost(shapes, model, fitted.reference), best_fits(shapes, model)
    theirs = brute_force(
        lambda s: spent(fits, s), fitted.reference.shape, np.sqrt(fitted.eigenvalues), centred=True
    )
    np.testing.assert_allclose(ours, theirs, **PARITY)


@quiet
@every_model
def test_the_price_of_being_exactly_centred(model):
    """The soft one is cheaper and off its centre; the heavier the constraint, the less of both."""
    shapes = small()
    exact = DefGPA(model, centering=ExactCentering()).fit(shapes).reference_
    softs = [
        DefGPA(model, centering=SoftCentering(nu)).fit(shapes).reference_ for nu in (0.5, 5, 50)
    ]
    costs = [explicit_cost(shapes, model, s) for s in (*softs, exact)]
    offsets = [np.linalg.norm(s.mean(axis=0)) for s in (*softs, exact)]
    assert np.all(np.diff(costs) > 0)
    assert np.all(np.diff(offsets) < 0)


@every_model
def test_soft_centring_of_charged_translations_is_warned_of(model):
    with pytest.warns(DefgpaWarning, match="no free translations: the reference is centred by the"):
        fitted = DefGPA(model).fit(small()).alignment_
    (charged,) = [
        finding for finding in fitted.findings if finding.problem is Problem.CHARGED_TRANSLATIONS
    ]
    offset = np.linalg.norm(fitted.reference.mean(axis=0))
    np.testing.assert_allclose(charged.values["offset"], offset, **EXACT)
    assert "ExactCentering() centres it exactly" in str(charged)
    assert f"{offset:.3g}" in str(charged)
    assert fitted.diagnostics.translation_cost > 1e-3


@every_model
def test_nothing_is_said_of_an_exactly_centred_one(model):
    fitted = DefGPA(model, centering=ExactCentering()).fit(small()).alignment_
    assert Problem.CHARGED_TRANSLATIONS not in {finding.problem for finding in fitted.findings}


def test_a_nu_too_small_to_centre_is_warned_of():
    """Translations are free, but dearer noise comes in their place only if they are charged."""
    words = ("off centre by", "SoftCentering", "n/m, here 0.375")
    with warned_of(*words):
        DefGPA(centering=SoftCentering(nu=1e-9), proportions="prior").fit(small())
    with told_among_others(*words):  # and that a constant axis tells no proportions
        DefGPA(centering=SoftCentering(nu=1e-9)).fit(small())
