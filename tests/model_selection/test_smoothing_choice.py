"""The smoothing that predicts left-out landmarks best, and the signs of over-fitting."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from defgpa import (
    Affine,
    DefGPA,
    DefgpaError,
    DefgpaWarning,
    EuclideanGPA,
    FreeForm,
    Polynomial,
    RadialBasis,
    Shapes,
    ThinPlateSpline,
)
from defgpa.diagnostics.findings import Problem, warn_about
from defgpa.model_selection import cross_validate, select_smoothing
from defgpa.model_selection.smoothing import scales_with_smoothing
from defgpa.model_selection.smoothing_path import find_path_findings
from defgpa.tuning import Tuning
from support import EXACT, make_smoothing_path, shared_points, smooth_family

GRID = np.logspace(-6, 0, 4)

wherever_the_best_is = pytest.mark.filterwarnings(
    "ignore:The smallest cross-validation error is at:defgpa.DefgpaWarning"
)


@dataclass(frozen=True)
class Bumps:
    """A user's own warp: bumps on a fixed lattice, the smoothing charged in its own way."""

    smoothing: float = 1e-3
    centres = np.stack(np.meshgrid([-1.0, 0, 1], [-1.0, 0, 1]), axis=-1).reshape(-1, 2)

    def basis(self, points):
        return BumpBasis(points.mean(axis=0), points.std(), self.centres, self.smoothing**0.5)


@dataclass(frozen=True)
class BumpBasis:
    centre: np.ndarray
    size: float
    lattice: np.ndarray
    price: float

    def features(self, points):
        x = (points - self.centre) / self.size
        bumps = np.exp(-((x[:, None] - self.lattice) ** 2).sum(axis=2))
        return np.column_stack([x, np.ones(len(x)), bumps])

    def penalty(self):
        return self.price * np.diag([0, 0, 0, *np.ones(len(self.lattice))])


@pytest.mark.parametrize(
    "warp",
    [
        ThinPlateSpline(4), ThinPlateSpline(4, theta=3.0), RadialBasis(), FreeForm(),
        Polynomial(), Bumps(),
    ],
    ids=lambda warp: type(warp).__name__,
)  # fmt: skip
@pytest.mark.parametrize("missing", [0.0, 0.15], ids=["full", "partial"])
@wherever_the_best_is
@pytest.mark.filterwarnings("ignore:.*folds of the cross-validation warned:defgpa.DefgpaWarning")
def test_every_figure_is_that_of_an_estimator_with_that_smoothing(warp, missing):
    points = smooth_family(seed=1, m=36, missing=missing)
    path = select_smoothing(DefGPA(warp), points, GRID, fold_size=6)
    np.testing.assert_array_equal(path.values, GRID)
    for value, cve, reference, datum in zip(
        path.values, path.cve, path.rmse_reference, path.rmse_datum, strict=True
    ):
        fields = {"smoothing": value} | ({"theta": None} if hasattr(warp, "theta") else {})
        alone = cross_validate(DefGPA(type(warp)(**(vars(warp) | fields))), points, 6)
        np.testing.assert_allclose(cve, alone.error, **EXACT)
        np.testing.assert_allclose(reference, alone.alignment.rmse_reference, **EXACT)
        np.testing.assert_allclose(datum, alone.alignment.rmse_datum, **EXACT)


def test_amounts_far_apart_and_none_at_all_have_exact_errors():
    points = smooth_family(seed=2, m=36)
    grid = [0.0, 1e-12, 1e-2, 1e8]
    path = select_smoothing(DefGPA(ThinPlateSpline(3)), points, grid, fold_size=6)
    for value, cve in zip(grid, path.cve, strict=True):
        alone = cross_validate(DefGPA(ThinPlateSpline(3, smoothing=value)), points, 6)
        np.testing.assert_allclose(cve, alone.error, **EXACT)
    stiff = cross_validate(DefGPA(Affine()), points, 6)
    np.testing.assert_allclose(path.cve[-1], stiff.error, rtol=1e-6)


def test_the_default_values_are_refined_around_the_best():
    path = select_smoothing(DefGPA(ThinPlateSpline(4)), smooth_family(seed=3), fold_size=5)
    decades = np.log10(path.values)
    assert len(path.values) == 15
    np.testing.assert_allclose(decades[[0, -1]], [-7, 1])
    assert (np.diff(decades) > 0).all()
    best = int(np.argmin(path.cve))
    assert path.least_value == path.values[best]
    assert path.best_value >= path.least_value
    np.testing.assert_allclose(np.diff(decades[best - 1 : best + 2]), 0.25)
    assert not path.at_edge


def known_truth(seed, noise):
    """Noisy shapes by known smooth maps, and many further points through the same maps."""
    rng = np.random.default_rng(seed)
    base, further = rng.uniform(-1, 1, size=(60, 2)), rng.uniform(-0.9, 0.9, size=(300, 2))
    shapes, truth = [], []
    for _ in range(8):
        frequency, phase = rng.normal(size=(2, 2)) + 1.5 * np.eye(2), rng.normal(size=2)
        bent = [x + 0.15 * np.sin(x @ frequency + phase) for x in (base, further)]
        shapes.append(bent[0] + noise * rng.normal(size=base.shape))
        truth.append(bent[1])
    return np.array(shapes), np.array(truth)


def disagreement(model, shapes, truth):
    """How far apart the warps take points that are the same in truth, in units of the whole."""
    images = np.stack(
        [w(points) for w, points in zip(model.fit(shapes).warps_, truth, strict=True)]
    )
    spread = images - images.mean(axis=0)
    return np.sqrt((spread**2).sum() / (images.mean(axis=0) ** 2).sum())


@pytest.mark.parametrize(("seed", "noise"), [(0, 0.005), (1, 0.02), (2, 0.05)])
def test_the_chosen_smoothing_is_nearly_the_best_for_the_truth(seed, noise):
    shapes, truth = known_truth(seed, noise)
    path = select_smoothing(DefGPA(), shapes, np.logspace(-6, 0, 13), fold_size=3)
    errors = [
        disagreement(DefGPA(ThinPlateSpline(smoothing=value)), shapes, truth)
        for value in path.values
    ]
    smallest = DefGPA(ThinPlateSpline(smoothing=path.least_value))
    assert disagreement(smallest, shapes, truth) < 1.1 * min(errors)
    chosen = disagreement(path.best, shapes, truth)  # stiffer, within one standard error
    assert chosen < 1.4 * min(errors)
    assert chosen < 0.8 * max(errors)  # it did matter


def test_more_noise_asks_for_more_smoothing():
    chosen = [
        select_smoothing(DefGPA(), known_truth(4, noise)[0], np.logspace(-6, 0, 13), 6).best_value
        for noise in (0.002, 0.05)
    ]
    assert chosen[0] < chosen[1]


# -- the ends of the grid --------------------------------------------------------------------------


def test_a_minimum_at_the_soft_end_is_warned_of():
    points = smooth_family(seed=5, bend=0.4, noise=0.0)
    with pytest.warns(DefgpaWarning, match=r"at the smallest smoothing tried, 0\.01.*downwards"):
        path = select_smoothing(DefGPA(), points, [1e-2, 1e-1, 1.0], fold_size=5)
    assert path.at_edge


def test_a_minimum_at_the_stiff_end_is_warned_of(rng):
    points = rng.normal(size=(40, 2)) * [2, 1] + 0.1 * rng.normal(size=(6, 40, 2))
    with pytest.warns(
        DefgpaWarning, match=r"at the largest smoothing tried, 1\b.*affine"
    ) as record:
        path = select_smoothing(DefGPA(ThinPlateSpline(3)), points, [1e-4, 1e-2, 1], fold_size=5)
    assert path.at_edge
    assert record[0].filename == __file__


def test_a_refined_path_ends_where_the_grid_does(rng):
    points = rng.normal(size=(40, 2)) * [2, 1] + 0.1 * rng.normal(size=(6, 40, 2))
    steps = []
    with pytest.warns(DefgpaWarning, match="largest smoothing tried, 10"):
        path = select_smoothing(
            DefGPA(ThinPlateSpline(3)),
            points,
            fold_size=10,
            progress=lambda *step: steps.append(step),
        )
    assert len(path.values) == 9 + 3
    assert steps[-1] == (12 * 5, 12 * 5)


# -- where the errors part ways --------------------------------------------------------------------


def path_with(rmse_datum):
    values = np.logspace(-len(rmse_datum) + 1, 0, len(rmse_datum))
    figures = np.array(rmse_datum, dtype=float)
    return make_smoothing_path(values, np.arange(len(values)) + 1.0, figures, figures)


@pytest.mark.parametrize(
    ("rmse_datum", "parting"),
    [
        ([9.0, 3.0, 2.0, 4.0, 5.0], 1e-2),  # falls, then climbs towards soft
        ([1.0, 2.0, 3.0, 4.0, 5.0], None),  # falls all the way
        ([9.0, 8.0, 7.0, 6.0, 5.0], 1e0),  # climbs at once
        ([2.015, 2.0, 2.0, 4.0, 5.0], None),  # less than one per cent is no climb
        ([1.0, 4.0, 2.0, 4.0, 5.0], 1e-2),  # the first climb counts
        ([np.nan, 3.0, 2.0, 4.0, 5.0], 1e-2),
    ],
)
def test_the_parting_is_the_lowest_datum_error_before_it_climbs(rmse_datum, parting):
    actual = path_with(rmse_datum).parting
    assert actual == parting if parting is None else np.isclose(actual, parting)


def test_of_equal_errors_the_stiffest_is_best():
    values = np.logspace(-3, 0, 4)
    path = make_smoothing_path(values, np.array([2.0, 1.0, 1.0, 2.0]), values, values)
    assert path.best_value == values[2]


def test_face_is_best_where_its_errors_part():
    path = select_smoothing(DefGPA(), shared_points("face2d"))
    assert 1e-5 < path.least_value < path.best_value < 1e-3
    assert 1e-5 < path.parting < 1e-3
    assert (np.diff(path.rmse_reference) > 0).all()
    assert repr(path).startswith("SmoothingPath(best_value=0.000")


# -- manners ---------------------------------------------------------------------------------------


@wherever_the_best_is
def test_the_best_estimator_is_new_and_the_given_one_unchanged():
    points = smooth_family(seed=6)
    warp = ThinPlateSpline(3, theta=2.0)
    estimator = DefGPA(warp, proportions=[5.0, 2.0]).fit(points)
    alignment = estimator.alignment_
    path = select_smoothing(estimator, points, np.logspace(-5, 0, 6), fold_size=8)
    assert estimator.alignment_ is alignment
    assert estimator.warp is warp
    assert not hasattr(path.best, "alignment_")
    assert path.best.proportions == [5.0, 2.0]
    assert path.best.warp == ThinPlateSpline(3, smoothing=path.best_value)


@pytest.mark.parametrize("warp", [ThinPlateSpline(3), Bumps()], ids=["stacked", "refitted"])
def test_workers_change_no_digit_and_progress_is_reported(warp):
    points = smooth_family(seed=7, missing=0.1)
    findings = []
    alone = select_smoothing(DefGPA(warp), points, GRID, 8, n_jobs=1)
    together = select_smoothing(
        DefGPA(warp), points, GRID, 8, n_jobs=2, progress=lambda *step: findings.append(step)
    )
    np.testing.assert_array_equal(alone.cve, together.cve)
    assert [done for done, _ in findings] == sorted(done for done, _ in findings)
    assert findings[-1] == (4 * (5 + 1),) * 2
    assert {total for _, total in findings} == {24}


def test_a_warning_of_all_fits_is_given_once():
    points = smooth_family(seed=8)
    points[2] *= [-1, 1]
    with pytest.warns(DefgpaWarning) as record:
        select_smoothing(DefGPA(), points, [1e-6, 1e-3, 1.0], fold_size=8)
    messages = [str(w.message) for w in record if "shape_3" in str(w.message)]
    assert len(messages) == 1
    assert messages[0].startswith("At 3 of 3 amounts of smoothing: ")


def test_a_fold_that_cannot_be_fitted_is_named():
    points = smooth_family(seed=9)
    points[2, 3:] = np.nan
    with pytest.raises(DefgpaError, match=r"3 of 40 folds cannot be fitted.*'1'.*'shape_3'"):
        select_smoothing(DefGPA(), points, GRID)


def test_rigidities_for_an_estimator_without_one_are_refused():
    with pytest.raises(TypeError, match="'rigidities' parameter of select_smoothing is for an Ela"):
        select_smoothing(DefGPA(), smooth_family(), GRID, rigidities=[1.0])


@pytest.mark.parametrize(
    "estimator",
    [DefGPA(Affine()), EuclideanGPA(), ThinPlateSpline(), DefGPA(ThinPlateSpline)],
    ids=["no smoothing", "no warp", "only a warp", "a class"],
)
def test_a_warp_without_smoothing_is_refused(estimator):
    with pytest.raises(TypeError, match="must have a warp with a 'smoothing'"):
        select_smoothing(estimator, smooth_family())


def test_a_single_value_is_no_search_and_has_no_edge_to_tell_of():
    path = select_smoothing(DefGPA(), smooth_family(seed=6), [1e-3], fold_size=8)
    assert path.best_value == 1e-3


@pytest.mark.parametrize("grid", [[], [-1.0, 1.0], [np.nan], [np.inf]])
def test_a_wrong_grid_is_refused(grid):
    with pytest.raises(ValueError, match="The 'grid' parameter of select_smoothing"):
        select_smoothing(DefGPA(), smooth_family(), grid)


def test_a_stiff_end_without_a_figure_is_passed_over():
    values = np.logspace(-4, 0, 5)
    datum = np.array([9.0, 3.0, 1.0, 2.0, np.nan])
    path = make_smoothing_path(values, np.ones(5), np.ones(5), datum)
    assert path.parting == pytest.approx(1e-2)
    assert make_smoothing_path(values, np.ones(5), np.ones(5), datum * np.nan).parting is None


class TestTheStiffestThatPredictsAsWell:
    """Among values within one standard error of the least error, without foldovers."""

    def path(self, cve, spread, foldovers):
        values = np.logspace(-3, 0, len(cve))
        figures = np.array(cve), values, values, np.array(spread), np.array(foldovers)
        return values, make_smoothing_path(values, *figures)

    @pytest.mark.parametrize(
        ("cve", "spread", "foldovers", "chosen"),
        [
            ([2.0, 1.0, 1.1, 3.0], [0.2] * 4, [0, 0, 0, 0], 2),
            ([2.0, 1.0, 1.3, 3.0], [0.2] * 4, [0, 0, 0, 0], 1),
            ([1.0, 1.1, 1.15, 3.0], [0.2] * 4, [9, 9, 0, 0], 2),
            ([1.0, 1.1, 1.15, 1.1], [0.2] * 4, [0, 0, 0, 5], 2),
            ([1.0, 1.1, 3.0, 3.0], [0.2] * 4, [9, 9, 0, 0], 3),
            ([1.0, 1.1, 3.0, 3.0], [0.2] * 4, [9, 9, 9, 9], 0),
        ],
        ids=[
            "stiffer", "too far", "folds avoided", "stiff one folds", "none as good",
            "none to be had",
        ],
    )  # fmt: skip
    def test_is_chosen(self, cve, spread, foldovers, chosen):
        values, path = self.path(cve, spread, foldovers)
        assert path.best_value == values[chosen]
        assert path.least_value == values[int(np.argmin(cve))]

    @wherever_the_best_is
    def test_the_chosen_alignment_and_its_cross_validation_are_kept(self):
        points = smooth_family(seed=3)
        path = select_smoothing(DefGPA(ThinPlateSpline(4)), points, GRID, fold_size=8)
        again = cross_validate(path.best, points, 8)
        assert_array = np.testing.assert_allclose
        assert_array(path.alignment.reference, again.alignment.reference, **EXACT)
        assert_array(path.cross_validation.error, again.error, **EXACT)
        assert path.cross_validation.alignment is path.alignment
        assert path.foldovers[path.best_index] == path.alignment.foldovers.sum()

    def test_is_told_as_a_remark_that_warns_no_program(self):
        shapes, _ = known_truth(2, 0.05)
        path = select_smoothing(DefGPA(), shapes, np.logspace(-6, 0, 13), fold_size=6)
        (findings,) = [
            finding for finding in path.findings if finding.problem is Problem.STIFFER_PREFERRED
        ]
        assert path.least_value < path.best_value
        assert findings.values["smoothing"] == path.best_value
        assert findings.values["least"] == path.least_value
        assert "within one standard error" in str(findings)

    @wherever_the_best_is
    def test_where_it_folds_over_a_value_that_does_not_is_named(self):
        shapes, _ = known_truth(4, 0.05)
        path = select_smoothing(DefGPA(), shapes, [1e-8, 1e-7, 1e-2], fold_size=12)
        path = path_choosing(path, 0)
        with pytest.warns(DefgpaWarning, match=r"folds over.*With smoothing=0\.01 none does"):
            warn_about(find_path_findings(path))
        assert path.unfolded_value == 1e-2


def path_choosing(path, index):
    """The path, had the least error been at another value."""
    cve = np.where(np.arange(len(path.values)) == index, 0.0, path.cve + 100.0)
    soft = DefGPA(ThinPlateSpline(smoothing=path.values[index])).align(path.alignment.shapes)
    alignments = [soft if i == index else a for i, a in enumerate(path.alignments)]
    validated = replace(path.cross_validation, alignment=soft)
    return replace(
        path, cve=cve, alignments=alignments, cross_validation=validated, sound=cve == 0.0
    )


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_fold_whose_shapes_are_many_batches_is_like_any_other(missing):
    """The last fold is the only one of its size, and solved alone: its shapes may be large."""
    points = smooth_family(seed=8, n=6, m=25, missing=missing)
    split = Tuning(batch_bytes=1 << 12, few_bytes=0)
    first, many = (
        select_smoothing(DefGPA(tuning=tuning), points, [1e-7, 1e-4, 1.0], fold_size=8)
        for tuning in (None, split)
    )
    np.testing.assert_allclose(many.cve, first.cve, **EXACT)
    alone, together = (
        cross_validate(DefGPA(tuning=tuning), points, fold_size=8).predicted
        for tuning in (split, None)
    )
    np.testing.assert_allclose(alone, together, **EXACT)


@dataclass(frozen=True)
class Powers:
    """Features and penalty that grow with powers of the smoothing."""

    features_by: float
    penalty_by: float
    smoothing: float = 1e-3

    def basis(self, points):
        return SimpleNamespace(
            features=lambda own: own * self.smoothing**self.features_by,
            penalty=lambda: np.eye(2) * self.smoothing**self.penalty_by,
        )


@pytest.mark.parametrize(
    ("features_by", "penalty_by", "shared"), [(0, 1, True), (1, 1, False), (0, 2, False)]
)
def test_one_decomposition_serves_where_only_the_penalty_is_proportional(
    features_by, penalty_by, shared
):
    shapes = Shapes(smooth_family(seed=9))
    assert scales_with_smoothing(Powers(features_by, penalty_by), shapes) is shared
