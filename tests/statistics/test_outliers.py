"""Outliers: geomorph's example with its numbers, and the landmarks that made them odd."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from defgpa import Affine, DefGPA, DefgpaError, DefgpaWarning, EuclideanGPA, ShapeError, Shapes
from defgpa.diagnostics.findings import Problem
from defgpa.statistics import outliers
from defgpa.threads import interruptible
from support import shared_points, smooth_family

MISTAKES = {Problem.EXCHANGED_LANDMARKS, Problem.MISPLACED_LANDMARK}
EXCHANGED = [("shape_2", ("1", "8")), ("shape_26", ("3", "11"))]


def aligned(points, **known):
    return EuclideanGPA(scaling=True).fit(Shapes(points, **known)).alignment_


def odd(points, *suspects, method=None):
    """An alignment of shapes in which the fit itself finds these, and nothing else, misplaced.

    A finding it is in any case; a warning only where the reference suffers from it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DefgpaWarning)
        alignment = (method or EuclideanGPA(scaling=True)).fit(points).alignment_
    named = {(f.shapes[0], f.landmarks) for f in alignment.findings if f.problem in MISTAKES}
    assert named == set(suspects)
    return alignment


def spoiled_plethodon():
    """geomorph's example: 1 and 8 of specimen 2 exchanged; 3, 11 of 26 are 11, 3 of 2."""
    points = shared_points("plethodon2d")
    spoiled = points.copy()
    spoiled[1, [0, 7]] = points[1, [7, 0]]
    spoiled[25, [2, 10]] = points[1, [10, 2]]
    return spoiled


def test_plethodon_has_no_outliers():
    actual = outliers(aligned(shared_points("plethodon2d")))
    assert not actual.flagged.any()
    np.testing.assert_allclose(actual.limits, 0.1115, atol=6e-5)


@pytest.mark.parametrize("method", [EuclideanGPA(scaling=True), DefGPA(Affine())])
def test_the_example_of_geomorph_has_its_two_outliers_and_numbers(method):
    actual = outliers(odd(spoiled_plethodon(), *EXCHANGED, method=method))
    assert np.flatnonzero(actual.flagged).tolist() == [1, 25]
    np.testing.assert_allclose(actual.distances[[1, 25]], [0.49987, 0.51433], atol=6e-6)
    np.testing.assert_allclose(actual.limits, 0.11017, atol=6e-6)
    assert actual.order[:2].tolist() == [25, 1]
    assert np.flatnonzero(outliers(spoiled_plethodon(), limit="power").flagged).tolist() == [1, 25]


def test_power_limit_is_that_of_boxplots_of_transformed_distances():
    actual = outliers(aligned(shared_points("plethodon2d")), limit="power")
    ranked = np.sort(actual.distances)[::-1]
    exponents = np.linspace(-2, 2, 4001)
    smaller = ranked[1:] / np.exp(np.log(ranked[1:]).mean())
    likelihoods = [-np.log(np.var((smaller**e - 1) / e)) if e else -np.inf for e in exponents]
    exponent = exponents[np.argmax(likelihoods)]
    low, high = np.quantile((ranked**exponent - 1) / exponent, [0.25, 0.75])
    limit = (exponent * (high + 1.5 * (high - low)) + 1) ** (1 / exponent)
    np.testing.assert_allclose(actual.limits, limit, rtol=1e-3)
    assert not np.allclose(actual.limits, 0.1115, rtol=1e-3)
    assert np.flatnonzero(actual.flagged).tolist() == [13]
    assert "transformed distances" in str(actual)


def test_unknown_limit_is_refused():
    with pytest.raises(DefgpaError, match="'quartiles' or 'power'"):
        outliers(shared_points("plethodon2d"), limit="three sigma")


def test_the_landmarks_that_were_spoiled_are_the_ones_named():
    actual = outliers(odd(spoiled_plethodon(), *EXCHANGED))
    *first, fifth = actual.landmark_table(5)
    assert {(row["name"], row["landmark"]) for row in first} == {
        ("shape_2", "1"),
        ("shape_2", "8"),
        ("shape_26", "3"),
        ("shape_26", "11"),
    }
    assert all(row["outlier"] for row in first)
    assert fifth["score"] < 0.5 * min(row["score"] for row in first)
    assert actual.landmark_flagged.sum() <= 6  # of 480: two that are odd in the set itself
    assert [row["score"] for row in first] == sorted((r["score"] for r in first), reverse=True)


def test_the_table_ranks_specimens_with_their_worst_landmark():
    table = outliers(odd(spoiled_plethodon(), *EXCHANGED)).table()
    assert [row["name"] for row in table[:2]] == ["shape_26", "shape_2"]
    assert table[1]["worst_landmark"] in {"1", "8"}
    assert [row["outlier"] for row in table] == [True, True] + [False] * 38
    assert [row["distance"] for row in table] == sorted(
        (r["distance"] for r in table), reverse=True
    )


def test_a_group_has_its_own_mean_and_limit():
    small = smooth_family(seed=41, n=12, m=20, bend=0.02, noise=0.005)
    large = smooth_family(seed=42, n=12, m=20, bend=0.02, noise=0.005)
    points = np.concatenate([small, large])
    groups = ["a"] * 12 + ["b"] * 12
    item = outliers(aligned(points), groups)
    np.testing.assert_allclose(item.distances[:12], outliers(aligned(small)).distances, atol=1e-9)
    np.testing.assert_allclose(item.limits[12:], outliers(aligned(large)).limits, atol=1e-9)
    assert item.groups == tuple(groups)
    assert (outliers(aligned(points)).distances > item.distances).all()


def test_a_stray_landmark_is_found_among_gaps():
    points = smooth_family(seed=43, n=15, m=25, bend=0.05)
    points[3, 7] += [0.8, -0.8]
    points[3, 2] = points[5, 9] = np.nan
    actual = outliers(odd(points, ("shape_4", ("8",))))
    assert np.isnan(actual.landmark_distances[3, 2])
    assert np.isfinite(actual.landmark_distances[3, 7])
    row = actual.landmark_table(1)[0]
    assert (row["name"], row["landmark"]) == ("shape_4", "8")
    assert np.argwhere(actual.landmark_flagged[3]).ravel().tolist() == [7]


def test_distances_of_landmarks_are_over_centroid_size():
    points = smooth_family(seed=44, n=15, m=25, bend=0.02, noise=0.002)
    size = np.linalg.norm(points[3] - points[3].mean(axis=0))
    points[3, 7] += [0.6, 0.0]
    actual = outliers(odd(points, ("shape_4", ("8",)))).landmark_distances[3, 7]
    assert actual == pytest.approx(0.6 / size, rel=0.1)


def test_very_many_landmarks_are_predicted_in_shares():
    points = smooth_family(seed=45, n=8, m=900, bend=0.05, noise=0.002)
    points[2, 100] += 0.8
    actual = outliers(odd(points, ("shape_3", ("101",))))
    assert actual.landmark_distances.shape == (8, 900)
    row = actual.landmark_table(1)[0]
    assert (row["name"], row["landmark"]) == ("shape_3", "101")


def test_too_few_specimens_are_refused():
    with pytest.raises(ShapeError, match=r"at least 4 specimens; there are 3"):
        outliers(aligned(smooth_family(seed=46, n=3)))


def test_shapes_that_do_not_differ_have_no_odd_one(rng):
    same = np.repeat(rng.normal(size=(1, 12, 2)), 5, axis=0)
    with pytest.raises(ShapeError, match="do not differ"):
        outliers(EuclideanGPA().align(same))


def test_outliers_print_briefly_and_go_to_pandas():
    actual = outliers(aligned(smooth_family(seed=5, n=30)))
    assert repr(actual) == str(actual)
    assert "of 30 specimens more than 1.5 × IQR above" in str(actual)
    assert len(str(actual)) < 1500
    assert actual.to_pandas()["name"][0] == actual.names[actual.order[0]]


def test_blas_takes_one_thread():
    """Its second thread spins between the small products: ten times the processor time."""
    counts = set()

    def count_threads():
        counts.update(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")

    with threadpool_limits(limits=2, user_api="blas"), interruptible(count_threads):
        outliers(aligned(smooth_family(n=9, m=8)))
    assert counts == {1}
