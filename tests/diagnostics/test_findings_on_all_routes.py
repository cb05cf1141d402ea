"""A fit, a fold and a cluster are one story: the same references, and the same findings.

For each kind of finding a small set that provokes it.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from test_degenerate import RawMonomials
from test_hinges import hinged, hinged_like

from defgpa import (
    Affine,
    DefGPA,
    ElasticGPA,
    FreeForm,
    Iterative,
    Polynomial,
    RadialBasis,
    Shapes,
    SoftCentering,
    ThinPlateSpline,
    cross_validate,
)
from defgpa.diagnostics.findings import Problem
from defgpa.model_selection.cross_validation import (
    align_without_warning,
    consecutive_folds,
    refit_fold,
)
from defgpa.model_selection.fold_predictions import FoldPlan, predict_folds
from defgpa.tuning import Tuning
from defgpa.warps import Gaussian
from support import EXACT, FAMILIES, cluster, shared_points, smooth_family

pytestmark = [
    pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning"),
    pytest.mark.filterwarnings("ignore:.*large graph.*"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def mirrored():
    points = smooth_family(seed=1, n=6, m=30)
    points[2, :, 0] *= -1
    return points


def flat():
    points = np.zeros((5, 30, 3))
    points[..., :2] = smooth_family(seed=1, n=5, m=30)
    points[0, :, 2] = 0.1 * points[0, :, 0] ** 2  # all flat would be another problem
    return points


def near():
    points = smooth_family(seed=1, n=5, m=24)
    return points - points.mean(axis=1, keepdims=True) + 0.3


def far_landmarks():
    points = smooth_family(n=8, m=60)
    points[2:, :3] = np.nan
    points[:2, :3] += 20 * np.random.default_rng(0).normal(size=(2, 3, 2))
    return points


def lonely():
    points = smooth_family(seed=1, n=5, m=30, missing=0.1)
    points[1:, 4] = np.nan
    return points


def sheared():
    points, _ = hinged(0)
    rng = np.random.default_rng(1)
    return np.stack([shape @ (np.eye(2) + 0.8 * rng.normal(size=(2, 2))) for shape in points])


CHARGED = RadialBasis(Gaussian(1.5), 2, polynomial_degree=None, smoothing=1e-2)
ORDINARY = {"seed": 2, "n": 5, "m": 30, "missing": 0.2}

PROVOKED = {
    Problem.MIRRORED: (mirrored, DefGPA(Affine())),
    Problem.UNDETERMINED_WARP: (flat, DefGPA(Affine())),
    Problem.CHARGED_TRANSLATIONS: (near, DefGPA(CHARGED)),
    Problem.WEAK_CENTERING: (near, DefGPA(Affine(), centering=SoftCentering(1e-9))),
    Problem.NARROW_GAP: (
        lambda: smooth_family(seed=31, n=4, m=25),
        DefGPA(ThinPlateSpline(4, theta=0.0), tuning=Tuning(narrow_gap=0.95, rival_cost=0.0)),
    ),
    Problem.FREE_DIRECTIONS: (lambda: hinged(0)[0], DefGPA(Affine())),
    Problem.HINGE: (sheared, DefGPA(Affine())),
    Problem.CARRIED_BY_FEW: (far_landmarks, DefGPA(ThinPlateSpline(5, theta=0.0))),
    Problem.ROUNDING: (
        lambda: smooth_family(**ORDINARY),
        DefGPA(ThinPlateSpline(4), tuning=Tuning(gap_rounding=1e-16)),
    ),
    Problem.NOT_CONVERGED: (
        lambda: smooth_family(seed=23, n=6, m=80, d=3, missing=0.3),
        DefGPA(ThinPlateSpline(4), solver=Iterative(max_products=1)),
    ),
    Problem.LONE_LANDMARKS: (lonely, DefGPA()),
    Problem.PROPORTIONS_UNDETERMINED: (near, DefGPA(Affine(), centering=SoftCentering(0.0))),
    Problem.PROPORTIONS_NOT_CONVERGED: (
        lambda: smooth_family(**ORDINARY | {"d": 3}),
        DefGPA(tuning=Tuning(max_rounds=1)),
    ),
}
every_kind = pytest.mark.parametrize("kind", PROVOKED, ids=str)


def provoked(kind):
    make, model = PROVOKED[kind]
    return Shapes(make()), model


def of_solve(findings):
    """Without the lone landmarks, which are known before anything is solved."""
    return [finding for finding in findings if finding.problem is not Problem.LONE_LANDMARKS]


def assert_same_findings(findings, expected, rtol=1e-4):
    assert [finding.problem for finding in findings] == [finding.problem for finding in expected]
    for finding, expected_finding in zip(findings, expected, strict=True):
        if finding.problem is Problem.ROUNDING:
            continue  # the worst condition is an estimate, of features here and of columns there
        assert (finding.shapes, finding.landmarks) == (
            expected_finding.shapes,
            expected_finding.landmarks,
        )
        assert set(finding.values) == set(expected_finding.values)
        for name, value in finding.values.items():
            np.testing.assert_allclose(value, expected_finding.values[name], rtol=rtol, atol=1e-9)


@pytest.fixture(scope="module")
def client():
    with cluster() as made:
        yield made


@every_kind
def test_a_fit_finds_each_problem(kind):
    shapes, model = provoked(kind)
    assert kind in {finding.problem for finding in model.align(shapes).findings}


@every_kind
def test_a_fold_finds_the_problems_of_a_refit(kind):
    """The same problems; their figures are those of another basis."""
    shapes, model = provoked(kind)
    folds = [np.array([7, 8]), np.array([12, 13]), np.array([1, 20])]
    outcomes = leave_out(model, shapes, folds)
    for fold, left_out in zip(folds, outcomes, strict=True):
        assert left_out.error is None
        # the input is looked at once, with all landmarks: a fold tells of its solve
        refit = model.solve(shapes.without(fold))[0].findings
        problems = {finding.problem for finding in of_solve(left_out.findings)}
        assert problems == {finding.problem for finding in of_solve(refit)}


def leave_out(model, shapes, folds):
    """The outcome of every fold, by the default way."""
    full, problem = align_without_warning(model, shapes)
    plan = FoldPlan(problem.local.geometry, shapes, folds)
    (outcomes,) = predict_folds(problem, [(None, full)], plan)
    return outcomes


@every_kind
def test_a_cluster_finds_the_problems_of_one_machine(kind, client):
    from defgpa.distributed import align

    shapes, model = provoked(kind)
    alignment = model.align(shapes)
    images = align(shapes, model, client)
    assert_same_findings(images.findings, alignment.findings)
    assert_same_findings(images.gather().findings, alignment.findings)


@every_kind
def test_every_finding_but_remarks_is_a_warning_that_holds_it(kind):
    shapes, model = provoked(kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        findings = model.fit(shapes).alignment_.findings
    reported = tuple(finding for finding in findings if not finding.is_remark)
    assert tuple(warning.message.finding for warning in caught) == reported


MODELS = {
    "affine": Affine(),
    "spline": ThinPlateSpline(points_per_axis=3),
    "radial": RadialBasis(),
    "free form": FreeForm(),
    "polynomial": Polynomial(),
}


every_model = pytest.mark.parametrize("warp", MODELS.values(), ids=MODELS)
every_choice = pytest.mark.parametrize("proportions", ["rigid", "prior"])


@every_choice
@pytest.mark.parametrize("name", FAMILIES)
def test_affine_folds_are_refits(proportions, name):
    """What a basis is made of does not matter where it spans the same maps at no charge."""
    points = smooth_family(**FAMILIES[name])
    model = DefGPA(Affine(), proportions=proportions)
    default, refit = (cross_validate(model, points, 10, refit=refit) for refit in (False, True))
    np.testing.assert_allclose(default.predicted, refit.predicted, **EXACT)
    assert (default.refitted, refit.refitted) == (False, True)
    for findings, expected in zip(default.findings, refit.findings, strict=True):
        assert_same_findings(findings, expected)


@every_model
@pytest.mark.parametrize("name", FAMILIES)
def test_most_predictions_of_folds_are_about_those_of_refits(warp, name):
    """Most: a refit spans its grid anew, so it extrapolates to the outermost landmarks."""
    points = smooth_family(**FAMILIES[name])
    folds = [cross_validate(DefGPA(warp), points, 4, refit=refit) for refit in (False, True)]
    default, refit = (np.nanmedian(cv.distances) for cv in folds)
    np.testing.assert_allclose(default, refit, rtol=0.07)


@pytest.mark.parametrize("model", [DefGPA(), ElasticGPA()], ids=["deformable", "elastic"])
@pytest.mark.parametrize(
    ("name", "rtol"), [("face2d", 0.005), ("lizards2d", 0.005), ("plethodon2d", 0.05)]
)
def test_the_error_of_real_sets_is_that_of_refits(name, rtol, model):
    points = shared_points(name)
    default, refit = (cross_validate(model, points, refit=refit) for refit in (False, True))
    np.testing.assert_allclose(default.error, refit.error, rtol=rtol)


def test_a_hinged_fold_is_found_among_sound_ones():
    """One link is off the line of the others: without it, and only then, they are a hinge."""
    base = hinged(0)[1]
    base[30, 0] = 0.8
    shapes = Shapes(hinged_like(base, 2)[0])
    model = DefGPA(Affine())
    full = model.solve(shapes)[0]
    folds = [np.array([j]) for j in (3, 30, 31, 12, 20, 35)]
    outcomes = leave_out(model, shapes, folds)
    free = [
        Problem.FREE_DIRECTIONS in {finding.problem for finding in outcome.findings}
        for outcome in outcomes
    ]
    assert free == [False, True, False, False, False, False]
    for fold, outcome in zip(folds, outcomes, strict=True):
        expected = refit_fold(model, full, fold)
        visible = shapes.visible[:, fold]
        np.testing.assert_allclose(
            outcome.predicted[visible], expected.predicted[visible], atol=1e-8
        )
        assert_same_findings(outcome.findings, expected.findings)


@pytest.mark.parametrize(
    "model",
    [
        DefGPA(solver=Iterative()),
        DefGPA(memory_budget=0),
        DefGPA(tuning=Tuning(dense_landmarks=39)),
    ],
    ids=["iterative", "no memory", "many landmarks"],
)
def test_folds_of_every_storage_and_solver_are_the_same(model):
    points = smooth_family(**FAMILIES["2d-partial"])
    validation, expected = (cross_validate(estimator, points, 4) for estimator in (model, DefGPA()))
    assert not validation.refitted
    np.testing.assert_allclose(validation.predicted, expected.predicted, rtol=0, atol=1e-8)


@dataclass(frozen=True)
class MyWarp:
    """A warp of one's own: one shape at a time, x, y and xy."""

    def basis(self, points):
        return MyBasis(points.mean(axis=0))


@dataclass(frozen=True, eq=False)
class MyBasis:
    centre: np.ndarray

    def features(self, points):
        x = points - self.centre
        return np.column_stack([x, x[:, :1] * x[:, 1:2], np.ones(len(points))])

    def penalty(self):
        return np.diag([0.0, 0.0, 1e-3, 0.0])


class TestAWarpOfOnesOwn:
    """Without stacked bases it goes one by one, and the routes agree all the same."""

    points = smooth_family(**FAMILIES["2d-partial"])

    def test_its_folds_are_refits(self):
        shapes, model = Shapes(self.points), DefGPA(MyWarp())
        validation = cross_validate(model, shapes, fold_size=8)
        assert validation.refitted
        full = model.align(shapes)
        for fold in consecutive_folds(40, 8):
            expected = refit_fold(model, full, fold).predicted
            visible = shapes.visible[:, fold]
            np.testing.assert_array_equal(validation.predicted[:, fold][visible], expected[visible])

    def test_on_a_cluster_it_gives_the_same(self, client):
        from defgpa.distributed import align

        alignment = DefGPA(MyWarp()).align(self.points)
        images = align(Shapes(self.points), DefGPA(MyWarp()), client)
        np.testing.assert_allclose(images.reference, alignment.reference, rtol=0, atol=1e-8)
        assert_same_findings(images.findings, alignment.findings)

    def test_what_it_provokes_is_told_on_every_route(self, client):
        from defgpa.distributed import align

        points = smooth_family(seed=9, n=3, m=120)
        points += 100.0 - points.mean(axis=1, keepdims=True)
        model, shapes = DefGPA(RawMonomials()), Shapes(points)
        alignment = model.align(shapes)
        assert Problem.ROUNDING in {finding.problem for finding in alignment.findings}
        # and rounding, of which it tells, is in the figures of the others too
        assert_same_findings(align(shapes, model, client).findings, alignment.findings, rtol=1e-2)
