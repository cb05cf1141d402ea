"""By rigidity, the axes are those of P x = σ C x, C the total weight of each landmark."""

import numpy as np
import pytest
from scipy.linalg import eigh

from defgpa import Affine, DefGPA, ExactCentering, Iterative, Shapes, SoftCentering, ThinPlateSpline
from defgpa.geometry import measure_geometry
from defgpa.solvers import eigen
from defgpa.solvers.cost import build_cost
from defgpa.solvers.eigen import find_cheapest_axes
from defgpa.tuning import Tuning
from support import EXACT, LinearOnly, assert_same_shape, every_warp
from truth import base, images, off_by


@pytest.fixture
def weighted_shapes(nearby_shapes, rng):
    """Partial shapes whose landmarks have weights from 0.1 to 1."""
    weights = np.where(nearby_shapes.visible, rng.uniform(0.1, 1, nearby_shapes.visible.shape), 0)
    return Shapes(nearby_shapes.points, weights=weights)


def weighted_cost(shapes, warp):
    return build_cost(measure_geometry(shapes.points, shapes.visible, shapes.weights), warp)


@every_warp
def test_the_axes_solve_the_generalised_problem(warp, weighted_shapes):
    alignment = DefGPA(warp).fit(weighted_shapes).alignment_
    cost = weighted_cost(weighted_shapes, warp)
    values, axes = eigh(cost.dense(), np.diag(cost.totals) / cost.n_shapes)
    n_axes = weighted_shapes.n_dims
    span = axes[:, : n_axes + 1]  # the constant vector is the first
    fitted = span @ np.linalg.lstsq(span, alignment.reference)[0]
    assert_same_shape(fitted, alignment.reference, rtol=1e-8)
    spectrum = alignment.diagnostics.spectrum
    np.testing.assert_allclose(spectrum[:n_axes], values[1 : n_axes + 1], **EXACT)


@every_warp
def test_no_share_exceeds_one(warp, weighted_shapes):
    """0 ≼ P ≼ C: σ is the share of an axis that the warps leave."""
    cost = weighted_cost(weighted_shapes, warp)
    scaled = SoftCentering(nu=0.0).apply(cost, np.sqrt(cost.totals / cost.n_shapes))
    shares = np.linalg.eigvalsh(scaled.dense()) / cost.n_shapes
    assert shares.min() > -EXACT["atol"]
    assert shares.max() < 1 + EXACT["atol"]


@every_warp
def test_landmarks_of_equal_weight_need_no_metric(warp, full_shapes):
    spectrum = find_cheapest_axes(weighted_cost(full_shapes, warp), DefGPA().make_method(2), 2)
    assert spectrum.mixing is None  # nothing to bring back


@pytest.mark.parametrize("centering", [SoftCentering(), ExactCentering()])
def test_products_with_the_scaled_cost_are_those_with_its_matrix(centering, weighted_shapes, rng):
    cost = weighted_cost(weighted_shapes, LinearOnly())
    scaled = centering.apply(cost, np.sqrt(cost.totals / cost.n_shapes))
    block = rng.normal(size=(cost.n_landmarks, 3))
    np.testing.assert_allclose(scaled.multiply(block), scaled.dense() @ block, **EXACT)


@pytest.mark.parametrize("warp", [Affine(), ThinPlateSpline(3)], ids=["affine", "spline"])
def test_the_iterative_solver_has_the_same_metric(warp, weighted_shapes):
    dense = DefGPA(warp).fit(weighted_shapes).reference_
    iterative = DefGPA(warp, solver=Iterative()).fit(weighted_shapes).reference_
    assert_same_shape(iterative, dense, rtol=1e-8)


def test_the_reference_is_centred(weighted_shapes):
    reference = DefGPA().fit(weighted_shapes).reference_
    np.testing.assert_allclose(reference.mean(axis=0), 0, **EXACT)


@pytest.mark.parametrize("proportions", ["prior", [2.0, 1.0]])
def test_the_published_method_keeps_its_metric(proportions, rng):
    points = images(rng, base(rng, 20, 2), 6)
    points[1:4, 3:9] = np.nan
    alignment = DefGPA(Affine(), proportions=proportions).fit(points).alignment_
    cost = weighted_cost(Shapes(points), Affine())
    sigma = np.linalg.eigvalsh(cost.dense() + cost.n_shapes / cost.n_landmarks)
    np.testing.assert_allclose(alignment.diagnostics.spectrum[:2], sigma[:2], **EXACT)


def test_landmarks_of_little_weight_do_not_carry_the_reference(monkeypatch):
    """In the metric I the cheapest axes are displacements of what few shapes have."""
    method, errors = DefGPA(tuning=Tuning(rival_cost=0.0)), []
    centre = SoftCentering.apply
    for seed in range(8):
        rng = np.random.default_rng(seed)
        truth = base(rng, 30, 3) * [1.0, 1.0, 0.1]
        points = images(rng, truth, 12, affine=0.0, noise=0.02)
        weights = rng.uniform(0.1, 1, size=30) ** 2 * rng.uniform(0.1, 1, size=(12, 30))
        shapes = Shapes(points, weights=weights)
        with monkeypatch.context() as patch:
            by_weight = method.solve(shapes)[0].reference
            patch.setattr(SoftCentering, "apply", lambda rule, cost, _: centre(rule, cost))
            patch.setattr(eigen, "restore_axes", lambda spectrum, roots: spectrum)
            alike = method.solve(shapes)[0].reference
        errors.append([off_by(by_weight, truth), off_by(alike, truth)])
    by_weight, alike = np.median(errors, axis=0)
    assert by_weight < 0.03 < 0.5 * alike
