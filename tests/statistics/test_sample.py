"""Statistics analyse the specimens themselves, whatever warps an alignment has."""

from __future__ import annotations

import numpy as np
import pytest

import defgpa
from defgpa import (
    AffineGPA,
    DefGPA,
    DefgpaError,
    DefgpaWarning,
    EuclideanGPA,
    ShapeError,
    ThinPlateSpline,
)
from defgpa.statistics import (
    ShapePCA,
    allometry,
    build_sample,
    centroid_sizes,
    classify,
    landmark_differences,
    outliers,
    procrustes_anova,
    repeatability,
    symmetry,
    tangent_space,
    trajectories,
)
from support import EXACT, smooth_family

FORMULA = "shape ~ species * site"
KINDS = list("ab") * 8


@pytest.fixture(scope="module")
def family():
    return smooth_family(seed=40, n=16, m=14)


def fit(points, estimator=None):
    return (estimator or DefGPA(ThinPlateSpline(3))).fit(points).alignment_


def weigh(points, weight, *pairs):
    weights = np.ones(points.shape[:2])
    for pair in pairs:
        weights[pair] = weight
    return defgpa.Shapes(points, weights=weights)


@pytest.mark.parametrize("n_missing", [0, 2])
def test_equal_landmark_weights_change_nothing(family, n_missing):
    points = np.array(family)
    points[3, :n_missing] = np.nan
    equal = build_sample(defgpa.Shapes(points, weights=np.full(points.shape[:2], 0.3)))
    np.testing.assert_array_equal(equal.tangents, build_sample(points).tangents)
    assert equal.provenance == build_sample(points).provenance


def test_a_weight_leads_from_measured_to_missing(family):
    slips, slipped = ((3, 5), (7, 2)), np.array(family)
    slipped[3, 5] += 0.2 * np.ptp(family)
    slipped[7, 2] -= 0.1 * np.ptp(family)
    missing = np.array(slipped)
    missing[3, 5] = missing[7, 2] = np.nan
    measured, completed = (build_sample(points).tangents for points in (slipped, missing))
    away = []
    for weight in (1.0, 0.999, 0.7, 0.4, 0.1, 0.01, 1e-4, 1e-9):
        sample = build_sample(weigh(slipped, weight, *slips))
        assert sample.provenance.n_moved == (0 if weight == 1.0 else 2)
        away.append(np.linalg.norm(sample.tangents - completed))
    distance = np.linalg.norm(measured - completed)
    assert away[0] == pytest.approx(distance, rel=1e-12)
    assert away[1] == pytest.approx(distance, rel=0.01)
    assert away == sorted(away, reverse=True)
    assert away[-1] < 1e-4 * distance
    np.testing.assert_array_equal(build_sample(weigh(slipped, 0.0, *slips)).tangents, completed)


def test_only_ratios_of_landmark_weights_matter_to_a_file_and_its_alignment(family):
    weights = np.random.default_rng(0).uniform(0.1, 1.0, family.shape[:2])
    weighted = defgpa.Shapes(family, weights=weights)
    sample = build_sample(weighted)
    assert np.abs(sample.tangents - build_sample(family).tangents).max() > 1e-4
    assert f"; {sample.provenance.n_moved} of little weight moved" in str(sample.provenance)
    for x in (defgpa.Shapes(family, weights=8.0 * weights), fit(weighted)):
        np.testing.assert_allclose(build_sample(x).tangents, sample.tangents, **EXACT)
    pca = defgpa.ShapePCA(3).fit(weighted)
    np.testing.assert_allclose(pca.coordinates_, sample.tangents, **EXACT)
    assert 0 < sample.take([0, 2, 5]).provenance.n_moved < sample.provenance.n_moved
    # what was analysed counts fully, so that it is not moved again
    assert build_sample(sample.shapes).provenance.n_moved == 0
    first, second = sample.completion.draw(2)
    varies = (first != second).any(axis=2)
    np.testing.assert_array_equal(varies, sample.completion.moved)


def test_components_place_a_new_shape_by_its_landmark_weights(family):
    pca = defgpa.ShapePCA().fit(family[2:])
    slipped = np.array(family[:2])
    slipped[0, 5] += 0.2 * np.ptp(family)
    missing = np.array(slipped)
    missing[0, 5] = np.nan
    without, low, high = (
        pca.transform(x) for x in (missing, weigh(slipped, 1e-4, (0, 5)), slipped)
    )
    assert np.linalg.norm(low - without) < 0.01 * np.linalg.norm(high - without)


SPLINES = [ThinPlateSpline(5, smoothing=smoothing) for smoothing in (1e-6, 1e-3, 10.0, 1e6)]


@pytest.mark.parametrize(
    ("estimator", "rel"),
    [
        *((DefGPA(s), 1e-9) for s in SPLINES),
        (EuclideanGPA(scaling=True), 1e-6),
        (AffineGPA(), 1e-6),
    ],
)
def test_the_table_of_every_fit_is_that_of_the_file(plethodon, estimator, rel):
    points, data = plethodon
    table = procrustes_anova(FORMULA, fit(points, estimator), data, 9).table
    for row, expected in zip(table, procrustes_anova(FORMULA, points, data, 9).table, strict=True):
        assert row.ss == pytest.approx(expected.ss, rel=rel)


STATISTICS = {
    "anova": lambda x: procrustes_anova("shape ~ k", x, {"k": KINDS}, 9).table["k"].ss,
    "pairwise": lambda x: (
        procrustes_anova("shape ~ k", x, {"k": KINDS}, 9).pairwise("k").distances[0, 1]
    ),
    "allometry": lambda x: allometry(x, n_permutations=9).scores,
    "differences": lambda x: landmark_differences(x, KINDS, 9).distances,
    "repeatability": lambda x: repeatability(x, np.arange(16) // 2).per_landmark,
    "symmetry": lambda x: symmetry(x, [(0, 1), (2, 3)], n_permutations=9).index,
    "outliers": lambda x: outliers(x).distances,
    "components": lambda x: ShapePCA().fit(x).explained_variance_,
    "sizes": centroid_sizes,
}


@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_of_an_alignment_is_that_of_its_specimens(name, family):
    compute = STATISTICS[name]
    np.testing.assert_allclose(compute(fit(family)), compute(family), **EXACT)


def test_the_back_projected_space_is_an_explicit_choice_that_the_result_states(family):
    alignment = fit(family)
    model = procrustes_anova("shape ~ k", alignment, {"k": KINDS}, 9, space="back_projected")
    assert model.provenance.space == "back_projected"
    assert "only what the warps follow" in str(model)
    x = tangent_space(alignment.back_projected)
    assert model["Total"].ss == pytest.approx(((x - x.mean(axis=0)) ** 2).sum())
    with pytest.raises(DefgpaError, match="Only an alignment"):
        procrustes_anova("shape ~ k", family, {"k": KINDS}, 9, space="back_projected")
    with pytest.raises(DefgpaError, match=r"'superimposed'.*'carried'"):
        procrustes_anova("shape ~ k", family, {"k": KINDS}, 9, space="carried")


def test_copies_of_the_reference_are_refused_in_a_sentence(family):
    rigid = fit(family, EuclideanGPA(scaling=True))
    with pytest.raises(ShapeError, match=r"do not vary.*rigid.*space='superimposed'"):
        procrustes_anova("shape ~ k", rigid, {"k": KINDS}, 9, space="back_projected")
    with pytest.raises(ShapeError, match="do not vary"):
        procrustes_anova("shape ~ k", np.stack([family[0]] * 16), {"k": KINDS}, 9)


def test_missing_landmarks_are_completed_as_complete_does_and_counted(family):
    partial = family.copy()
    partial[2, 3] = partial[5, 7] = partial[5, 8] = np.nan
    alignment = fit(partial)
    sample = build_sample(alignment)
    expected = defgpa.complete(alignment).shapes
    np.testing.assert_allclose(sample.shapes.points, expected.points, **EXACT)
    model = procrustes_anova("shape ~ k", alignment, {"k": KINDS}, 9)
    assert model.provenance.n_completed == 3
    assert "3 of 224 landmarks (1.3%) completed" in str(model)
    assert model.provenance.to_dict()["landmarks_completed"] == 3
    assert allometry(alignment, n_permutations=9).provenance.n_completed == 3
    assert ShapePCA().fit(alignment).provenance_.n_completed == 3


def test_shapes_without_an_alignment_are_completed(family):
    partial = family.copy()
    partial[2, 3] = np.nan
    sample = build_sample(partial)
    assert sample.provenance.n_completed == 1
    misfit = np.linalg.norm(sample.shapes.points[2, 3] - family[2, 3])
    assert misfit < 0.05 * centroid_sizes(family)[2]
    with pytest.raises(DefgpaError, match="Only an alignment has warps"):
        defgpa.complete(partial, "warp")


def test_an_alignment_is_completed_once_for_all_statistics(family, monkeypatch):
    partial = family.copy()
    partial[2, 3] = np.nan
    alignment = fit(partial)
    first = build_sample(alignment).completion
    monkeypatch.setattr("defgpa.statistics.sample.compute_completion", None)
    assert build_sample(alignment).completion is first


def test_coordinates_declared_superimposed_are_analysed_as_they_are(family):
    x = tangent_space(family)
    x[:, 0] += 0.1  # a superimposition by other landmarks
    model = procrustes_anova("shape ~ k", x, {"k": KINDS}, 9, superimpose=False)
    assert model["Total"].ss == pytest.approx(((x - x.mean(axis=0)) ** 2).sum())
    assert model.provenance.space == "given"
    np.testing.assert_allclose(model.tangents, x, **EXACT)
    pca = ShapePCA(superimpose=False).fit(x)
    np.testing.assert_allclose(pca.transform(x + 1e-12), pca.scores_, atol=1e-9)
    assert pca.explained_variance_.sum() == pytest.approx(model["Total"].ss / 15)


def test_groups_of_more_than_two_are_compared_by_name(family):
    three = list("abc") * 5 + ["a"]
    actual = landmark_differences(family, three, 9, between=("b", "a"))
    members = np.flatnonzero(np.array(three) != "c")
    expected = landmark_differences(family[members], [three[i] for i in members], 9)
    assert actual.groups == ("b", "a")
    np.testing.assert_allclose(actual.distances, expected.distances, **EXACT)
    with pytest.raises(DefgpaError, match=r"'between'.*'a', 'b', 'c'"):
        landmark_differences(family, three, 9, between=("a", "z"))


# Multiple imputation


@pytest.fixture(scope="module")
def partial_alignment(family):
    points = np.random.default_rng(3).normal(scale=0.02, size=family.shape) + family
    points[np.random.default_rng(4).random(points.shape[:2]) < 0.15] = np.nan
    return fit(points, EuclideanGPA(scaling=True))


@pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning")
def test_draws_differ_by_the_stated_uncertainty(partial_alignment):
    completion = defgpa.complete(partial_alignment)
    draws = np.stack(completion.draw(400, seed=1))
    deviations = np.linalg.norm(draws - completion.shapes.points, axis=3)
    spread = np.sqrt((deviations**2).mean(axis=0))
    np.testing.assert_allclose(spread, completion.uncertainty, rtol=0.25)
    assert (spread[~completion.estimated] == 0).all()
    np.testing.assert_array_equal(completion.draw(2, seed=1), draws[:2])


@pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning")
def test_imputations_restore_variance_and_are_stated(partial_alignment):
    single = procrustes_anova("shape ~ k", partial_alignment, {"k": KINDS}, 99)
    pooled = procrustes_anova("shape ~ k", partial_alignment, {"k": KINDS}, 99, n_imputations=20)
    assert pooled["Total"].ss > single["Total"].ss
    assert pooled.provenance.n_imputations == 20
    assert "20 draws pooled" in str(pooled)
    assert 0 < pooled["k"].p <= 1
    r_squared = pooled["k"].ss / pooled["Total"].ss
    assert pooled["k"].r_squared == pytest.approx(r_squared)
    components = ShapePCA(n_imputations=20).fit(partial_alignment)
    plain = ShapePCA().fit(partial_alignment)
    assert components.explained_variance_.sum() > plain.explained_variance_.sum()
    assert components.explained_variance_.sum() == pytest.approx(pooled["Total"].ss / 15, rel=0.02)


@pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning")
def test_pairwise_distances_are_pooled_over_the_draws_of_the_model(partial_alignment):
    pooled = procrustes_anova("shape ~ k", partial_alignment, {"k": KINDS}, 99, n_imputations=5)
    pairs = pooled.pairwise("k")
    assert "5 draws pooled" in str(pairs)
    kinds = np.asarray(KINDS)
    first, second = pairs.names[:2]
    expected = [
        np.linalg.norm(draw[kinds == first].mean(axis=0) - draw[kinds == second].mean(axis=0))
        for draw in pooled.sample.impute(5, 0)
    ]
    assert pairs.distances[0, 1] == pytest.approx(np.mean(expected), rel=1e-9)
    assert 0 < pairs.p[0, 1] <= 1


def test_imputing_complete_shapes_changes_nothing(family):
    expected = procrustes_anova("shape ~ k", family, {"k": KINDS}, 99)
    actual = procrustes_anova("shape ~ k", family, {"k": KINDS}, 99, n_imputations=5)
    assert str(actual.table) == str(expected.table)
    with pytest.raises(DefgpaError, match=r"pooled over at least 2, or 0 for none; got 1"):
        procrustes_anova("shape ~ k", family, {"k": KINDS}, 99, n_imputations=1)


@pytest.fixture(scope="module")
def robust():
    made = defgpa.datasets.make_wings(per_kind=6)
    points = np.array(made.clean)
    points[2, 5] += 0.5 * np.ptp(points[2], axis=0)
    with pytest.warns(DefgpaWarning, match="robust fit left out"):
        return fit(made.shapes.with_points(points), DefGPA(robust=True))


class TestLandmarksThatARobustFitRejects:
    def test_rejected_landmarks_are_analysed_as_measured_and_counted(self, robust):
        measured = build_sample(robust)
        np.testing.assert_allclose(measured.tangents, tangent_space(robust.shapes.points))
        assert measured.provenance.n_completed == 0
        assert measured.provenance.n_rejected == len(robust.rejected) > 0
        assert "that the robust fit rejected" in str(measured.provenance)
        assert measured.take([0, 1]).provenance.n_rejected < len(robust.rejected)

    def test_rejected_landmarks_are_completed_on_request(self, robust):
        completed = build_sample(robust, rejected="completed")
        assert completed.provenance.n_completed == len(robust.rejected)
        assert "among these" in str(completed.provenance)
        error = np.linalg.norm(completed.shapes.points[2, 5] - robust.shapes.points[2, 5])
        assert error > 0.3 * np.linalg.norm(np.ptp(robust.shapes.points[2], axis=0))

    def test_missing_landmarks_are_completed_without_rejected_ones(self, robust):
        points = np.array(robust.shapes.points)
        points[4, 7] = np.nan
        with pytest.warns(DefgpaWarning, match="robust fit left out"):
            alignment = fit(robust.shapes.with_points(points), DefGPA(robust=True))
        sample = build_sample(alignment)
        assert sample.provenance.n_completed == 1
        assert np.array_equal(sample.shapes.points[2], points[2])
        draw = next(sample.impute(2, 0))
        assert draw.shape == points.shape
        assert sample.completion.uncertainty[2, 5] == 0
        np.testing.assert_array_equal(
            sample.shapes.points[4, 7], defgpa.complete(alignment).shapes.points[4, 7]
        )

    def test_another_word_is_refused(self, robust):
        with pytest.raises(DefgpaError, match="'measured' or 'completed'"):
            build_sample(robust, rejected="dropped")


@pytest.mark.parametrize(
    ("test", "sizes"),
    [
        (lambda x, groups: landmark_differences(x, groups, 9), "9 to 24"),
        (lambda x, groups: classify(x, groups, 2, n_permutations=9), "9 to 24"),
        (lambda x, groups: trajectories(x, groups, list("uvw") * 11, 9), "3 to 8"),
        (lambda x, groups: procrustes_anova("shape ~ k", x, {"k": groups}, 9), "9 to 24"),
    ],
)
def test_unequal_dispersion_of_unequal_groups_is_warned_of_by_every_test_of_means(test, sizes):
    rng = np.random.default_rng(2)
    groups = ["a"] * 24 + ["b"] * 9
    spread = np.where(np.array(groups) == "a", 0.02, 0.15)[:, None, None]
    mean, noise = rng.normal(size=(8, 2)), rng.normal(size=(33, 8, 2))
    with pytest.warns(DefgpaWarning, match=rf"differ in dispersion.*\({sizes} specimens\)"):
        test(mean + spread * noise, groups)
    test(mean + 0.02 * noise, groups)
