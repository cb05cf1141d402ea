"""Groups tied by landmarks on a line or in a plane come out right, on every route, and it is told.

The parts can be sheared against each other at no cost but noise: more than d directions are free.
The shapes themselves are not sheared, and rigidity holds the parts together.
"""

import numpy as np
import pytest

from defgpa import Affine, DefGPA, Shapes, ThinPlateSpline, cross_validate
from defgpa.diagnostics.checks import check_hinge
from defgpa.diagnostics.findings import Problem
from defgpa.model_selection.cross_validation import align_without_warning
from defgpa.model_selection.fold_predictions import FoldPlan, predict_folds
from defgpa.solvers import eigen
from defgpa.tuning import Tuning
from support import cluster, left_over, rotation, smooth_family

DIMS = pytest.mark.parametrize("d", [2, 3])
SEEDS = pytest.mark.parametrize("seed", range(8))
WARPS = {"affine": Affine(), "spline": ThinPlateSpline()}
every_warp = pytest.mark.parametrize("warp", WARPS.values(), ids=WARPS)


def hinged(seed, d=2, noise=0.01, per_part=15, n=10):
    """Two groups of shapes, each of one part and the links on the plane x = 0; and the truth."""
    rng = np.random.default_rng(seed)
    left, right = rng.uniform(-1, 1, size=(2, per_part, d))
    left[:, 0] -= 1.2
    right[:, 0] += 1.2
    links = rng.uniform(-1, 1, size=(6 if d == 2 else 8, d))
    links[:, 0] = 0.0
    base = np.vstack([left, right, links])
    points = np.empty((n, *base.shape))
    for i in range(n):
        noisy = base + noise * rng.normal(size=base.shape)
        points[i] = noisy @ rotation(rng, d) + rng.normal(size=d)
        hidden = slice(per_part, 2 * per_part) if i < n // 2 else slice(0, per_part)
        points[i, hidden] = np.nan
    return points, base


def error(reference, base):
    """Procrustes distance to the truth; a whole reference has no side of its own."""
    mirrored = reference * np.r_[-1.0, np.ones(reference.shape[1] - 1)]
    return np.sqrt(max(0.0, min(left_over(reference, base), left_over(mirrored, base))))


def kinds(findings):
    return {finding.problem for finding in findings}


@SEEDS
@DIMS
@every_warp
def test_the_reference_is_the_truth_and_free_directions_are_a_finding(seed, d, warp):
    points, base = hinged(seed, d)
    alignment = DefGPA(warp).align(points)
    assert error(alignment.reference, base) < 0.01
    assert kinds(alignment.findings) == {Problem.FREE_DIRECTIONS}
    (findings,) = alignment.findings
    assert findings.values["directions"] > findings.values["dim"] == d
    assert alignment.diagnostics.n_axes == findings.values["directions"]


@DIMS
@every_warp
def test_without_noise_the_truth_is_exact(d, warp):
    points, base = hinged(0, d, noise=0.0)
    alignment = DefGPA(warp).align(points)
    assert error(alignment.reference, base) < 1e-7
    assert kinds(alignment.findings) == {Problem.FREE_DIRECTIONS}
    assert alignment.mirrored == ()


@DIMS
@every_warp
def test_the_error_falls_with_the_noise(d, warp):
    errors = []
    for noise in (1e-2, 1e-3, 1e-4):
        points, base = hinged(1, d, noise)
        errors.append(error(DefGPA(warp).align(points).reference, base))
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


@pytest.mark.parametrize("seed", range(3))
@DIMS
@every_warp
def test_folds_of_hinges_are_settled_and_reported_like_refits(seed, d, warp):
    points, base = hinged(seed, d)
    shapes, model = Shapes(points), DefGPA(warp)
    full, problem = align_without_warning(model, shapes)
    folds = [np.array([j, j + 1]) for j in range(0, 24, 4)]
    plan = FoldPlan(problem.local.geometry, shapes, folds)
    (outcomes,) = predict_folds(problem, [(None, full)], plan)
    for fold, left_out in zip(folds, outcomes, strict=True):
        refit = model.align(shapes.without(fold))
        assert left_out.error is None
        assert kinds(left_out.findings) == kinds(refit.findings) == {Problem.FREE_DIRECTIONS}
        assert error(refit.reference, np.delete(base, fold, axis=0)) < 0.01
        visible = shapes.visible[:, fold]
        differences = np.linalg.norm(left_out.predicted - full.reference[fold], axis=-1)[visible]
        assert differences.max() < 0.15  # the parts hold together: a few times the noise


@DIMS
def test_cross_validation_has_nothing_new_to_tell(d):
    points, _ = hinged(2, d)
    with pytest.warns(match="directions are free") as caught:
        validation = cross_validate(DefGPA(Affine()), points, fold_size=3)
    assert len(caught) == 1  # by the full fit; the folds say the same
    assert not any(validation.findings)
    assert validation.error < 0.05


def scattered(seed, d, spread=1.0, m=20, n=10, links=6, noise=0.01):
    """Two groups whose parts lie all over the place, tied by a few links on a line or a plane."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(2 * m + links, d)) * np.linspace(2, 1, d)
    plane = np.linalg.qr(rng.normal(size=(d, d - 1)))[0]
    base[2 * m :] = spread * rng.uniform(-1, 1, size=(links, d - 1)) @ plane.T
    points = np.stack(
        [
            rng.uniform(0.5, 2.0) * (base + noise * rng.normal(size=base.shape)) @ rotation(rng, d)
            for _ in range(n)
        ]
    )
    points[: n // 2, m : 2 * m] = points[n // 2 :, :m] = np.nan
    return points, base


@pytest.mark.parametrize("seed", range(4))
@DIMS
@every_warp
def test_parts_that_overlap_are_held_together(seed, d, warp):
    """Noise picks axes on which a part may be flat: what hangs together must be told without."""
    points, base = scattered(seed, d)
    alignment = DefGPA(warp).align(points)
    assert error(alignment.reference, base) < 0.015
    assert kinds(alignment.findings) == {Problem.FREE_DIRECTIONS}
    assert alignment.diagnostics.looseness < 0.01
    assert alignment.diagnostics.proportions_converged


@every_warp
def test_short_links_are_enough(warp):
    """The parts are held loosely: the descent must not stop half way."""
    for seed in (0, 1, 4):
        points, base = scattered(seed, 2, spread=0.3)
        alignment = DefGPA(warp).align(points)
        assert error(alignment.reference, base) < 0.02
        assert kinds(alignment.findings) == {Problem.FREE_DIRECTIONS}


@pytest.mark.parametrize("seed", range(3))
@every_warp
def test_in_space_links_on_a_line_are_a_hinge_that_rigidity_cannot_settle(seed, warp):
    points, _ = scattered(seed, 3)
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(46, 3)) * [2, 1.5, 1]
    base[40:] = np.outer(np.linspace(-1, 1, 6), [1.0, 0.3, 0.2])
    noisy = base + 0.01 * rng.normal(size=(10, 46, 3))
    points = np.where(np.isnan(points), np.nan, noisy)
    alignment = DefGPA(warp).align(points)
    assert Problem.HINGE in kinds(alignment.findings)
    assert Problem.FREE_DIRECTIONS not in kinds(alignment.findings)
    assert alignment.diagnostics.looseness > 0.05
    folds = [np.array([0, 1]), np.array([20, 21])]
    full, problem = align_without_warning(DefGPA(warp), Shapes(points))
    plan = FoldPlan(problem.local.geometry, full.shapes, folds)
    (outcomes,) = predict_folds(problem, [(None, full)], plan)
    for left_out in outcomes:
        assert Problem.HINGE in kinds(left_out.findings)
        assert Problem.FREE_DIRECTIONS not in kinds(left_out.findings)


def test_without_free_directions_the_parts_come_out_sheared():
    """With the threshold at zero only d axes are taken, of which noise picks some."""
    points, base = hinged(0)
    alignment = DefGPA(Affine(), tuning=Tuning(free_value=0.0, rival_cost=0.0)).align(points)
    assert error(alignment.reference, base) > 0.05


def test_a_hinge_is_a_finding_where_rigidity_cannot_settle_it():
    """Shapes that differ by large affine maps do not agree on how the parts are held."""
    points, _ = hinged(0)
    rng = np.random.default_rng(1)
    for i, shape in enumerate(points):
        points[i] = shape @ (np.eye(2) + 0.8 * rng.normal(size=(2, 2)))
    alignment = DefGPA(Affine()).align(points)
    assert Problem.HINGE in kinds(alignment.findings)
    assert Problem.FREE_DIRECTIONS not in kinds(alignment.findings)


@DIMS
def test_one_link_off_the_line_is_still_settled(d):
    for off in (0.01, 0.1):
        points, base = hinged(3, d)
        base[-1, 0] += off
        points, base = hinged_like(base, d)
        alignment = DefGPA(Affine()).align(points)
        assert error(alignment.reference, base) < 0.02 or Problem.HINGE in kinds(alignment.findings)


def hinged_like(base, d, noise=0.01, per_part=15, n=10):
    rng = np.random.default_rng(7)
    points = np.stack(
        [(base + noise * rng.normal(size=base.shape)) @ rotation(rng, d) for _ in range(n)]
    )
    points[: n // 2, per_part : 2 * per_part] = np.nan
    points[n // 2 :, :per_part] = np.nan
    return points, base


@pytest.fixture(scope="module")
def client():
    with cluster() as made:
        yield made


@DIMS
@every_warp
@pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning")
def test_hinges_are_found_on_a_cluster(d, warp, client):
    from defgpa.distributed import align

    points, base = hinged(4, d)
    alignment, on_cluster = DefGPA(warp).align(points), align(Shapes(points), DefGPA(warp), client)
    assert kinds(on_cluster.findings) == kinds(alignment.findings) == {Problem.FREE_DIRECTIONS}
    assert error(on_cluster.reference, base) < 0.01
    assert np.abs(on_cluster.reference - alignment.reference).max() < 1e-8


def test_links_that_hardly_leave_their_line_do_not_hold_parts():
    """How far they extend is judged by the noise, at the angle that would matter."""
    rng = np.random.default_rng(0)
    left, right = rng.normal([[[-3.0, 0.0]], [[3.0, 0.0]]], size=(2, 10, 2))
    visible = np.ones((2, 25), dtype=bool)
    visible[0, 10:20] = visible[1, :10] = False
    for across, is_hinge in ((0.1, True), (1.0, False)):
        links = np.column_stack([across * np.tile([1.0, -1.0, 0.0], 2)[:5], np.linspace(-2, 2, 5)])
        reference = np.vstack([left, right, links])
        result = check_hinge(reference, visible, 2, 0.1, ("a", "b"), Tuning())
        assert [item.shapes for item in result] == ([("b",)] if is_hinge else [])


@pytest.mark.parametrize("seed", [0, 1])
def test_a_soft_warp_frees_no_direction(seed, monkeypatch):
    """Where deformations cost next to nothing their cohesion tells them from hinges."""
    points = smooth_family(seed=seed, n=6, m=40, missing=0.15)
    monkeypatch.setattr(eigen, "_count_free_axes", lambda *_: pytest.fail("it is no hinge"))
    facts = DefGPA(ThinPlateSpline(5, smoothing=1e-8)).align(points).spectral
    assert facts.spectrum[-1] < Tuning().free_value * len(points)
    assert facts.cohesion > Tuning().hinge_cohesion
    assert facts.n_axes - facts.n_agreed_axes == 2
