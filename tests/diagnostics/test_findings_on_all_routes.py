"""A fit, a fold and a cluster are one story: the same references, and the same findings.

For each kind of finding a small set that provokes it.
"""

import contextlib
import logging
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from defgpa.model_selection._fold_sets import FoldSets
from test_degenerate import RawMonomials
from test_hinges import hinged, hinged_like

from defgpa import (
    Affine,
    DefGPA,
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
from defgpa.errors import DefgpaError
from defgpa.model_selection.cross_validation import FoldedModel
from defgpa.model_selection.folds import Steps, consecutive_folds, refit_fold
from defgpa.tuning import Tuning
from defgpa.warps import Gaussian
from support import FAMILIES, smooth_family

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
    return np.stack([own @ (np.eye(2) + 0.8 * rng.normal(size=(2, 2))) for own in points])


CHARGED = RadialBasis(Gaussian(1.5), 2, polynomial_degree=None, smoothing=1e-2)
ORDINARY = {"seed": 2, "n": 5, "m": 30, "missing": 0.2}

PROVOKED = {
    Problem.MIRRORED: (mirrored, DefGPA(Affine())),
    Problem.UNDETERMINED_WARP: (flat, DefGPA(Affine())),
    Problem.CHARGED_TRANSLATIONS: (near, DefGPA(CHARGED)),
    Problem.WEAK_CENTERING: (near, DefGPA(Affine(), centering=SoftCentering(1e-9))),
    Problem.NARROW_GAP: (
        lambda: smooth_family(seed=31, n=4, m=25),
        DefGPA(ThinPlateSpline(4, theta=0.0), tuning=Tuning(narrow_gap=0.9)),
    ),
    Problem.FREE_DIRECTIONS: (lambda: hinged(0)[0], DefGPA(Affine())),
    Problem.HINGE: (sheared, DefGPA(Affine())),
    Problem.CARRIED_BY_FEW: (far_landmarks, DefGPA(ThinPlateSpline(5, theta=0.0))),
    Problem.ROUNDING: (
        lambda: smooth_family(**ORDINARY),
        DefGPA(ThinPlateSpline(4), tuning=Tuning(blurred=1e-16)),
    ),
    Problem.NOT_CONVERGED: (
        lambda: smooth_family(seed=23, n=6, m=80, d=3, missing=0.3),
        DefGPA(ThinPlateSpline(4), solver=Iterative(max_products=1)),
    ),
    Problem.LONE_LANDMARKS: (lonely, DefGPA()),
    Problem.PROPORTIONS_UNDETERMINED: (near, DefGPA(Affine(), centering=SoftCentering(0.0))),
    Problem.PROPORTIONS_NOT_CONVERGED: (
        lambda: smooth_family(**ORDINARY | {"d": 3}),
        DefGPA(tuning=Tuning(most_rounds=1)),
    ),
}
every_kind = pytest.mark.parametrize("kind", PROVOKED, ids=str)


def provoked(kind):
    make, model = PROVOKED[kind]
    return Shapes(make()), model


def of_solve(findings):
    """Without the lone landmarks, which are known before anything is solved."""
    return [found for found in findings if found.problem is not Problem.LONE_LANDMARKS]


def assert_same_findings(found, expected, rtol=1e-4):
    assert [own.problem for own in found] == [own.problem for own in expected]
    for own, other in zip(found, expected, strict=True):
        if own.problem is Problem.ROUNDING:
            continue  # the worst condition is an estimate, of features here and of columns there
        assert (own.shapes, own.landmarks) == (other.shapes, other.landmarks)
        assert set(own.values) == set(other.values)
        for name, value in own.values.items():
            np.testing.assert_allclose(value, other.values[name], rtol=rtol, atol=1e-9)


@contextlib.contextmanager
def cluster():
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=1,
                threads_per_worker=1,
                processes=False,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            ) as made,
            distributed.Client(made) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def client():
    with cluster() as made:
        yield made


@every_kind
def test_a_fit_tells_of_it(kind):
    shapes, model = provoked(kind)
    assert kind in {found.problem for found in model.align(shapes).findings}


@every_kind
def test_a_fold_tells_what_a_refit_does(kind):
    """A fold is told through the stack where there is one, else by the refit itself."""
    shapes, model = provoked(kind)
    folds = [np.array([7, 8]), np.array([12, 13]), np.array([1, 20])]
    full = model.align(shapes)
    sets = FoldSets.of(model, shapes)
    if sets is None:
        outcome = [refitted(model, full, fold) for fold in folds]
        assert kind is Problem.NOT_CONVERGED
    else:
        (outcome,) = sets.predicted(folds, np.ones(1), full.reference[None])
    for fold, left_out in zip(folds, outcome, strict=True):
        assert left_out.error is None
        # the input is looked at once, with all landmarks: a fold tells of its solve
        refit = model.solve(shapes.without(fold)).findings
        assert_same_findings(of_solve(left_out.findings), of_solve(refit))


@every_kind
def test_a_cluster_tells_what_one_machine_does(kind, client):
    from defgpa.distributed import align

    shapes, model = provoked(kind)
    here = model.align(shapes)
    there = align(shapes, model, client)
    assert_same_findings(there.findings, here.findings)
    assert_same_findings(there.gather().findings, here.findings)


@every_kind
def test_it_is_told_as_a_warning_that_carries_it(kind):
    shapes, model = provoked(kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        findings = model.fit(shapes).alignment_.findings
    told = tuple(finding for finding in findings if not finding.is_remark)
    assert tuple(one.message.finding for one in caught) == told


MODELS = {
    "affine": Affine(),
    "spline": ThinPlateSpline(points_per_axis=3),
    "radial": RadialBasis(),
    "free form": FreeForm(),
    "polynomial": Polynomial(),
}


def digits(warp):
    """Relative; Gaussians, many of them over one shape, know two digits fewer than splines."""
    return 1e-9 if isinstance(warp, RadialBasis) else 1e-10


every_model = pytest.mark.parametrize("warp", MODELS.values(), ids=MODELS)
every_choice = pytest.mark.parametrize("proportions", ["rigid", "prior"])


@every_model
@every_choice
@pytest.mark.parametrize("name", FAMILIES)
def test_folds_are_refits(warp, proportions, name, monkeypatch):
    points = smooth_family(**FAMILIES[name])
    model = DefGPA(warp, proportions=proportions)
    stacked = cross_validate(model, points, fold_size=10)
    monkeypatch.setattr(FoldSets, "of", classmethod(lambda cls, estimator, shapes: None))
    one_by_one = cross_validate(model, points, fold_size=10)
    away = np.linalg.norm(np.nan_to_num(stacked.predicted - one_by_one.predicted))
    assert away < digits(warp) * np.linalg.norm(np.nan_to_num(one_by_one.predicted))
    for found, expected in zip(stacked.findings, one_by_one.findings, strict=True):
        assert_same_findings(found, expected)


@every_model
@every_choice
@pytest.mark.parametrize("name", FAMILIES)
def test_references_of_folds_are_those_of_refits(warp, proportions, name):
    shapes = Shapes(smooth_family(**FAMILIES[name]))
    model = DefGPA(warp, proportions=proportions)
    sets = FoldSets.of(model, shapes)
    folds = np.stack([np.array([3, 4]), np.array([10, 30]), np.array([0, 39]), np.array([5, 6])])
    references = references_of(sets, folds)
    for fold, reference in zip(folds, references, strict=True):
        expected = model.align(shapes.without(fold)).reference
        away = np.linalg.norm(reference - expected)
        assert away < digits(warp) * np.linalg.norm(expected)


def references_of(sets, folds):
    """The references of stacked folds, on their way through the pipeline."""
    from defgpa.model_selection import _fold_sets as module

    seen = {}
    solve = module.solve

    def watched(*given):
        for part, solution in solve(*given):
            seen.update(zip(part.tolist(), solution.reference, strict=True))
            yield part, solution

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "solve", watched)
        full = np.zeros((1, sets.shapes.n_landmarks, sets.shapes.n_dims))
        sets.predicted(list(folds), np.ones(1), full + sets.shapes.points[:1] * 0.0 + 1.0)
    return [seen[i] for i in range(len(folds))]


class TestTheBatchedRoute:
    def test_is_taken_by_groups_of_folds(self, monkeypatch):
        taken = []
        predicted = FoldSets._predicted

        def counted(self, folds, *rest):
            taken.append(len(folds))
            return predicted(self, folds, *rest)

        monkeypatch.setattr(FoldSets, "_predicted", counted)
        monkeypatch.setattr(
            _cross_validation, "refitted", lambda *_: pytest.fail("a fold was fitted alone")
        )
        points = smooth_family(**FAMILIES["2d-partial"])
        found = cross_validate(DefGPA(), points, fold_size=4)
        assert sum(taken) == len(found.folds) == 10
        assert max(taken) > 1

    def test_takes_a_hinged_fold_among_sound_ones(self):
        """One link is off the line of the others: without it, and only then, they are a hinge."""
        base = hinged(0)[1]
        base[30, 0] = 0.8
        shapes = Shapes(hinged_like(base, 2)[0])
        model = DefGPA(Affine())
        full = model.solve(shapes)
        folds = [np.array([j]) for j in (3, 30, 31, 12, 20, 35)]
        (outcome,) = FoldSets.of(model, shapes).predicted(folds, np.ones(1), full.reference[None])
        told = [Problem.FREE_DIRECTIONS in {own.problem for own in out.findings} for out in outcome]
        assert told == [False, True, False, False, False, False]
        for fold, out in zip(folds, outcome, strict=True):
            expected = refitted(model, full, fold)
            seen = shapes.visible[:, fold]
            np.testing.assert_allclose(out.predicted[seen], expected.predicted[seen], atol=1e-8)
            assert_same_findings(out.findings, expected.findings)

    def test_breaks_when_only_stacks_of_several_are_broken(self, monkeypatch):
        """Folds that can be fitted alone do not hide it."""
        predicted = FoldSets._predicted
        monkeypatch.setattr(
            FoldSets,
            "_predicted",
            lambda self, folds, *rest: predicted(self, folds, *rest) if len(folds) == 1 else 1 / 0,
        )
        with pytest.raises(ZeroDivisionError):
            cross_validate(DefGPA(), smooth_family(), fold_size=4)

    def test_breaks_when_it_is_broken(self, monkeypatch):
        monkeypatch.setattr(FoldSets, "_predicted", lambda *_: 1 / 0)
        with pytest.raises(DefgpaError, match=r"folds cannot be fitted.*division"):
            cross_validate(DefGPA(), smooth_family(), fold_size=4)

    @pytest.mark.parametrize(
        "model",
        [
            DefGPA(solver=Iterative()),
            DefGPA(memory_budget=0),
            DefGPA(tuning=Tuning(dense_landmarks=39)),
        ],
        ids=["iterative", "no memory", "many landmarks"],
    )
    def test_is_left_to_refits_where_a_fit_would_go_another_way(self, model):
        shapes = Shapes(smooth_family())
        assert FoldSets.of(model, shapes) is None
        assert FoldSets.of(DefGPA(), shapes) is not None


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
        assert FoldSets.of(model, shapes) is None
        found = cross_validate(model, shapes, fold_size=8)
        full = model.align(shapes)
        for fold in consecutive_folds(40, 8):
            expected = refitted(model, full, fold).predicted
            seen = shapes.visible[:, fold]
            np.testing.assert_array_equal(found.predicted[:, fold][seen], expected[seen])

    def test_on_a_cluster_it_gives_the_same(self, client):
        from defgpa.distributed import align

        here = DefGPA(MyWarp()).align(self.points)
        there = align(Shapes(self.points), DefGPA(MyWarp()), client)
        np.testing.assert_allclose(there.reference, here.reference, rtol=0, atol=1e-8)
        assert_same_findings(there.findings, here.findings)

    def test_what_it_provokes_is_told_on_every_route(self, client):
        from defgpa.distributed import align

        points = smooth_family(seed=9, n=3, m=120)
        points += 100.0 - points.mean(axis=1, keepdims=True)
        model, shapes = DefGPA(RawMonomials()), Shapes(points)
        here = model.align(shapes)
        assert Problem.ROUNDING in {found.problem for found in here.findings}
        # and rounding, of which it tells, is in the figures of the others too
        assert_same_findings(align(shapes, model, client).findings, here.findings, rtol=1e-2)
