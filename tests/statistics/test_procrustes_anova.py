"""What shape depends on: geomorph's numbers, the definition by brute force, and chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import boxcox, kstest
from scipy.stats import f as f_distribution

from defgpa import DefgpaError, DefgpaWarning, ShapeError, Shapes
from defgpa.statistics import (
    allometry,
    classify,
    disparity,
    eigenvalue_variance,
    landmark_differences,
    procrustes_anova,
    repeatability,
    tangent_space,
)
from defgpa.statistics.box_cox import effect_size
from defgpa.statistics.design import design, make_orthonormal_bases
from defgpa.statistics.differences import discovery_rate
from defgpa.statistics.groups import encode_groups
from defgpa.statistics.permutation import Permutations, p_value
from defgpa.statistics.table import Effect, EffectTable, format_p_values
from defgpa.statistics.variance_ratios import RESIDUAL, permute_ratios
from support import EXACT, PARITY, moved

FORMULA = "shape ~ species * site"


@pytest.fixture(scope="module")
def salamanders(plethodon):
    return procrustes_anova(FORMULA, *plethodon)


def noisy(n=16, m=7, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, 2)) + noise * rng.normal(size=(n, m, 2))


# Established numbers


def test_the_four_groups_of_plethodon_differ_but_the_allopatric_ones_do_not(salamanders):
    actual = salamanders.pairwise("species:site")
    x = salamanders.tangents
    labels = [".".join(row) for row in zip(*_factors(salamanders), strict=True)]
    a, b = (actual.names.index(name) for name in ("Jord.Allo", "Teyah.Allo"))
    means = [
        x[[label == name for label in labels]].mean(axis=0) for name in ("Jord.Allo", "Teyah.Allo")
    ]
    np.testing.assert_allclose(
        actual.distances[a, b], np.linalg.norm(means[0] - means[1]), **PARITY
    )
    assert actual.p[a, b] > 0.2
    others = np.triu(np.ones((4, 4), dtype=bool), 1)
    others[min(a, b), max(a, b)] = False
    assert (actual.p[others] == 0.001).all()
    np.testing.assert_allclose(actual.distances, actual.distances.T)


def _factors(model):
    return [model.design.data[name] for name in ("species", "site")]


# The definition


def naive_rss(Y, columns):
    X = np.column_stack([np.ones(len(Y)), *columns])
    return np.sum((Y - X @ np.linalg.lstsq(X, Y)[0]) ** 2)


def test_sequential_sums_are_differences_of_residual_sums():
    rng = np.random.default_rng(1)
    data = {"a": rng.choice(list("xyz"), 20), "b": rng.normal(size=20)}
    model = procrustes_anova("shape ~ b + a + a:b", noisy(20), data, 9)
    Y = model.tangents.reshape(20, -1)
    A = [(data["a"] == level).astype(float) for level in "yz"]
    steps = [[], [data["b"]], [data["b"], *A], [data["b"], *A, *(data["b"] * first for first in A)]]
    rss = [naive_rss(Y, columns) for columns in steps]
    actual = [row.ss for row in model.table.rows[:3]]
    np.testing.assert_allclose(actual, -np.diff(rss), **EXACT)
    assert [row.df for row in model.table] == [1, 2, 2, 14, 19]


def test_permuted_ratios_are_those_of_permuted_residuals_of_the_reduced_model(make_terms):
    rng = np.random.default_rng(2)
    Y, a, b = rng.normal(size=(14, 5)), rng.normal(size=(14, 2)), rng.normal(size=(14, 1))
    terms = make_terms([a, b])
    order = rng.permutation(14)
    X = np.column_stack([np.ones(14), a])
    fitted = X @ np.linalg.lstsq(X, Y)[0]
    star = fitted + (Y - fitted)[np.argsort(order)]
    reduced, full = naive_rss(star, [a]), naive_rss(star, [a, b])
    sums, _ = terms.sums(terms.compute_residuals(1, Y), order[None])
    np.testing.assert_allclose(sums[0, 1], reduced - full, **EXACT)
    left = np.sum(terms.compute_residuals(1, Y) ** 2) - sums.sum()
    np.testing.assert_allclose(left, full, **EXACT)


def test_more_coordinates_than_shapes_change_nothing(make_terms):
    rng = np.random.default_rng(3)
    Y, a = rng.normal(size=(9, 6)), rng.normal(size=(9, 1))
    wide = Y @ np.linalg.qr(rng.normal(size=(40, 6)))[0].T  # the same rows, turned in 40 dimensions
    terms = make_terms([a])
    results = [permute_ratios(item, terms, [RESIDUAL], Permutations(50)) for item in (Y, wide)]
    np.testing.assert_allclose(results[0].permuted, results[1].permuted, **EXACT)
    np.testing.assert_allclose(results[0].observed, results[1].observed, **EXACT)


def test_a_term_that_others_explain_has_no_degrees_of_freedom():
    kind = np.repeat(["a", "b"], 8)
    model = procrustes_anova("shape ~ kind + again", noisy(), {"kind": kind, "again": kind}, 9)
    assert model["again"].df == 0
    assert np.isnan(model["again"].f)
    assert np.isnan(model["again"].p)
    assert str(model)


def test_fitted_and_residual_shapes_add_up_and_predict_the_same(plethodon, salamanders):
    np.testing.assert_allclose(salamanders.fitted + salamanders.residuals, salamanders.tangents)
    np.testing.assert_allclose(
        np.sum(salamanders.residuals**2), salamanders["Residuals"].ss, **EXACT
    )
    rows = {"species": ["Jord"], "site": ["Symp"], "size": [1.0]}
    item = (plethodon[1]["species"] == "Jord") & (plethodon[1]["site"] == "Symp")
    expected = salamanders.tangents[item].mean(axis=0)
    np.testing.assert_allclose(salamanders.predict(rows)[0], expected, **EXACT)


def test_means_of_groups_are_taken_at_the_same_covariate():
    rng = np.random.default_rng(4)
    dose = np.concatenate([rng.uniform(0, 1, 20), rng.uniform(2, 3, 20)])
    kind = np.repeat(["a", "b"], 20)
    x = noisy(40, noise=1e-3)
    x[:, 2] += 0.05 * dose[:, None]  # all of the difference is the dose
    model = procrustes_anova("shape ~ dose + kind", x, {"dose": dose, "kind": kind})
    actual = model.pairwise("kind")
    raw = procrustes_anova("shape ~ kind", x, {"kind": kind}).pairwise("kind")
    assert actual.distances[0, 1] < 0.1 * raw.distances[0, 1]
    assert raw.p[0, 1] == 0.001
    assert actual.p[0, 1] > 0.05


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            {"kind": ["b", "c"], "year": [1, 1], "dose": [1.0, 1.0]},
            "no 'kind' 'c'; it has 'a', 'b'",
        ),
        ({"kind": ["a"], "year": [3], "dose": [1.0]}, "no 'year' '3'; it has '1', '2'"),
        ({"kind": ["a"], "year": [1], "dose": [np.nan]}, "dose has no value .*1 empty cell"),
        ({"kind": ["a"], "year": [1]}, "dose"),
    ],
)
def test_nothing_is_predicted_for_what_the_model_does_not_have(data, words):
    """An unknown level was the first one of the model to formulaic."""
    columns = {"kind": list("ab") * 8, "year": [1, 1, 2, 2] * 4, "dose": np.arange(16.0)}
    model = procrustes_anova("shape ~ kind + C(year) + dose", noisy(), columns, 9)
    with pytest.raises((DefgpaError, ShapeError), match=words):
        model.predict(data)


def test_a_covariate_of_the_formula_is_held_at_its_mean_as_rrpp_does():
    """Where slopes differ, means of groups do with the size: that of the mean logarithm here."""
    rng = np.random.default_rng(11)
    dose, kind, site = rng.uniform(1, 9, 30), rng.permutation(list("aab") * 10), list("uvvuu") * 6
    x = tangent_space(rng.normal(size=(5, 3)) + 0.1 * rng.normal(size=(30, 5, 3)))
    data = {"dose": dose, "kind": kind, "site": site}
    model = procrustes_anova("shape ~ log(dose) * kind + site", x, data, 9, superimpose=False)
    is_b, is_v, logs = kind == "b", np.array(site) == "v", np.log(dose)
    columns = np.column_stack([np.ones(30), logs, is_b, is_v, logs * is_b])
    at_mean = np.column_stack(
        [np.ones(30), np.full(30, logs.mean()), is_b, is_v, logs.mean() * is_b]
    )
    expected = at_mean @ np.linalg.lstsq(columns, x.reshape(30, -1), rcond=None)[0]
    means = [expected[kind == name].mean(axis=0) for name in "ab"]
    actual = model.pairwise("kind").distances[0, 1]
    assert actual == pytest.approx(np.linalg.norm(means[0] - means[1]), rel=1e-9)


def test_pairs_can_be_tested_against_a_null_model_of_ones_own(salamanders):
    free = salamanders.pairwise("species:site")
    held = salamanders.pairwise("species:site", null="species + site")
    np.testing.assert_allclose(free.distances, held.distances)
    # additive effects stay in the null, so single distances are no surprise any more
    assert np.nanmean(held.p) > np.nanmean(free.p)
    labels = [".".join(row) for row in zip(*_factors(salamanders), strict=True)]
    np.testing.assert_allclose(salamanders.pairwise(labels).distances, free.distances)


def test_numbers_make_groups_as_words_do_and_a_covariate_has_none():
    rng = np.random.default_rng(4)
    words = ["a", "b", "c"] * 6
    numbers = ["abc".index(word) + 1 for word in words]
    x = rng.normal(size=(6, 2)) + 0.1 * rng.normal(size=(18, 6, 2))
    data = {"word": words, "number": numbers}
    expected = procrustes_anova("shape ~ word + size", x, data, 19).pairwise("word")
    actual = procrustes_anova("shape ~ C(number) + size", x, data, 19).pairwise("number")
    assert expected.distances.max() > 0.01
    np.testing.assert_allclose(actual.distances, expected.distances, **EXACT)
    np.testing.assert_allclose(actual.p, expected.p)
    quoted = {"my number": numbers}
    again = procrustes_anova("shape ~ C(`my number`) + size", x, quoted, 19).pairwise("my number")
    np.testing.assert_allclose(again.p, expected.p)
    with pytest.raises(DefgpaError, match=r"Write C\(number\) in the formula"):
        procrustes_anova("shape ~ number + size", x, data, 19).pairwise("number")


# Invariance and chance


def test_order_pose_and_size_do_not_matter(plethodon):
    points, data = plethodon
    order = np.random.default_rng(5).permutation(40)
    reordered = {key: values[order] for key, values in data.items()}
    moved_points = moved(points[order], seed=6, scales=(0.2, 5.0))
    actual = procrustes_anova(FORMULA, moved_points, reordered)
    expected = procrustes_anova(FORMULA, points, data)
    for row, item in zip(expected.table, actual.table, strict=True):
        np.testing.assert_allclose([item.ss, item.f], [row.ss, row.f], rtol=1e-8)


def test_a_mirrored_specimen_is_named_by_every_test():
    x = noisy()
    x[3, :, 0] *= -1
    who = np.arange(16) // 2
    for test in (
        lambda: procrustes_anova("shape ~ kind", x, {"kind": list("ab") * 8}, 9),
        lambda: landmark_differences(x, list("ab") * 8, 9),
        lambda: allometry(x, n_permutations=9),
        lambda: repeatability(x, who),
        lambda: eigenvalue_variance(x),
        lambda: disparity(x, list("ab") * 8, n_permutations=9),
        lambda: classify(x, list("ab") * 8, 2, 9),
    ):
        with pytest.warns(DefgpaWarning, match="Mirrored.*shape_4") as record:
            test()
        where = __file__, test.__code__.co_firstlineno  # the call itself, not who called it
        assert [(first.filename, first.lineno) for first in record] == [where]


def test_the_same_seed_gives_the_same_p_and_another_another():
    data = {"kind": np.repeat(["a", "b"], 8)}
    first, same, second = (
        procrustes_anova("shape ~ kind", noisy(), data, 199, seed).ratios.permuted
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    default = procrustes_anova("shape ~ kind", noisy(), data).permutations
    assert (default.count, default.seed) == (999, 0)
    assert not np.array_equal(first, second)


def test_p_is_uniform_under_the_null_though_another_term_is_strong(make_terms):
    kind, site = np.repeat([0.0, 1.0], 8), np.tile([0.0, 1.0], 8)
    terms = make_terms([kind[:, None], site[:, None]])
    p = []
    for seed in range(300):
        Y = np.random.default_rng(seed).normal(size=(16, 6)) + 3.0 * kind[:, None]
        actual = permute_ratios(Y, terms, [RESIDUAL] * 2, Permutations(99, seed))
        assert actual.p(0) <= 0.05
        p.append(actual.p(1))
    assert kstest(np.array(p) - 0.005, "uniform").pvalue > 0.05
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.03)


def test_p_counts_the_observed_order_and_ties():
    permuted = np.array([1.0, 2.0, 3.0, 2.0 * (1 - 1e-13)])
    assert p_value(2.0, permuted) == pytest.approx(4 / 5)
    assert p_value(4.0, permuted) == pytest.approx(1 / 5)
    assert np.isnan(p_value(float("nan"), permuted))


def test_z_of_normal_values_is_the_standard_score_however_they_are_skewed():
    values = np.random.default_rng(7).normal(size=4000)
    # exp(values) is made normal again by the logarithm, which Box–Cox finds
    assert effect_size(float(np.exp(2.5)), np.exp(values)) == pytest.approx(2.5, abs=0.1)
    assert effect_size(float(np.exp(0.0)), np.exp(values)) == pytest.approx(0.0, abs=0.1)
    assert np.isnan(effect_size(1.0, np.ones(10)))


def test_z_takes_the_exponent_from_the_permuted_values_alone_as_rrpp_does():
    values = np.exp(np.random.default_rng(8).normal(size=99))
    scaled = values / np.exp(np.log(values).mean())
    exponent = boxcox(scaled)[1]
    z = boxcox(np.append(values, 30.0) / np.exp(np.log(values).mean()), exponent)
    assert effect_size(30.0, values) == pytest.approx((z[-1] - z.mean()) / z.std(), rel=1e-3)


def test_z_of_values_that_are_not_positive_is_that_of_shifted_ones():
    """Box and Cox need positive values: log-likelihoods and the like are moved above 0."""
    values = np.append(np.random.default_rng(9).normal(size=200), 2.0)
    shifted = values - values.min() + 1e-4 * np.ptp(values)
    expected = effect_size(shifted[-1], shifted[:-1])
    assert effect_size(values[-1], values[:-1]) == pytest.approx(expected)
    assert expected == pytest.approx((2.0 - values.mean()) / values.std(), abs=0.3)


def test_progress_counts_all_permutations():
    heard = []
    data = {"kind": np.repeat(["a", "b"], 8)}
    procrustes_anova("shape ~ kind", noisy(), data, 120, progress=lambda *told: heard.append(told))
    assert heard[-1] == (120, 120)
    model = procrustes_anova("shape ~ kind", noisy(), data, 120)
    model.pairwise("kind", progress=lambda *told: heard.append(told))
    assert len(heard) > 1
    assert heard[-1] == (120, 120)


def test_entries_of_random_rotations_are_as_often_positive_as_negative():
    frames = Permutations(400).each_rotation(4, 2, lambda frames: frames)
    np.testing.assert_allclose(frames.transpose(0, 2, 1) @ frames, [np.eye(2)] * 400, atol=1e-12)
    assert np.all(np.abs((frames > 0).mean(axis=0) - 0.5) < 0.1)


def test_blocks_of_permutations_hold_each_order_once():
    orders = Permutations(30, 1).each(10, 3, lambda block: block, held=100)
    assert orders.shape == (30, 10)
    assert (np.sort(orders, axis=1) == np.arange(10)).all()
    assert len({tuple(order) for order in orders}) > 25


# Size


def test_allometry_scores_and_predictions_follow_the_regression(plethodon):
    actual = allometry(plethodon[0])
    Y = actual.anova.tangents.reshape(40, -1)
    X = np.column_stack([np.ones(40), np.log(actual.sizes)])
    b = np.linalg.lstsq(X, Y)[0]
    scores = (Y - Y.mean(axis=0)) @ b[1] / np.linalg.norm(b[1])
    np.testing.assert_allclose(actual.scores, scores, **PARITY)
    expected = (np.array([[1.0, np.log(12.0)]]) @ b).reshape(12, 2)
    np.testing.assert_allclose(actual.predict([12.0])[0], expected, **EXACT)
    line = np.polyfit(np.log(actual.sizes), actual.scores, 1)
    np.testing.assert_allclose(
        actual.predict_scores([12.0]), np.polyval(line, np.log(12.0)), **PARITY
    )
    assert actual.to_csv().splitlines()[0] == "name,size,score"
    np.testing.assert_allclose(actual.to_pandas()["score"], actual.scores)


def test_size_in_a_formula_is_the_centroid_size_unless_the_data_say_otherwise(plethodon):
    item = procrustes_anova("shape ~ log(size)", plethodon[0], n_permutations=9)
    assert item["log(size)"].ss == pytest.approx(allometry(plethodon[0]).anova["log(size)"].ss)
    by_column = procrustes_anova("shape ~ size", plethodon[0], {"size": np.arange(40.0)}, 9)
    assert by_column["size"].ss != pytest.approx(item["log(size)"].ss)


@pytest.mark.parametrize("sizes", [[1.0] * 16, [-1.0] * 16, [1.0] * 15, [np.nan] * 16])
def test_sizes_that_tell_nothing_are_refused(sizes):
    with pytest.raises(DefgpaError):
        allometry(noisy(), sizes)


# Landmarks


def test_only_the_landmark_that_differs_is_named():
    x = np.random.default_rng(8).normal(size=(30, 2)) * 3 + 0.01 * np.random.default_rng(9).normal(
        size=(40, 30, 2)
    )
    x[20:, 4] += 0.03
    actual = landmark_differences(x, np.repeat(["a", "b"], 20))
    assert np.flatnonzero(actual.significant()).tolist() == [4]
    assert actual.p[4] == 0.001
    turn = np.linalg.norm(actual.difference[4]) / (0.03 * np.sqrt(2))
    np.testing.assert_allclose(turn * np.linalg.norm(x[0] - x[0].mean(axis=0)), 1.0, rtol=0.1)
    rows = actual.to_csv().splitlines()
    assert rows[0] == "landmark,distance,p,q"
    assert len(rows) == 31


def test_q_is_that_of_benjamini_and_hochberg():
    p = np.array([0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205])
    expected = [0.008, 0.032, 0.0672, 0.0672, 0.0672, 0.08, 0.0845714286, 0.205]
    np.testing.assert_allclose(discovery_rate(p), expected, **PARITY)
    shuffled = np.random.default_rng(0).permutation(8)
    np.testing.assert_allclose(discovery_rate(p[shuffled]), np.array(expected)[shuffled], **PARITY)


def test_p_of_a_landmark_is_that_of_its_own_anova(make_terms):
    """The sum of squares of a landmark is fixed, so distance and F order permutations alike."""
    x = noisy(12, 5)
    groups = np.repeat(["a", "b"], 6)
    actual = landmark_differences(x, groups, 499)
    Y = tangent_space(x)[:, 2]
    terms = make_terms([(groups == "a").astype(float)[:, None]])
    item = permute_ratios(Y, terms, [RESIDUAL], Permutations(499)).p(0)
    assert actual.p[2] == pytest.approx(item, abs=0.08)  # other permutations of the same chance


# Alignments, tables, hostile input


def test_the_table_prints_like_that_of_r_and_goes_to_pandas(salamanders):
    text = str(salamanders)
    lines = text.splitlines()
    assert lines[4].split() == ["Df", "SS", "MS", "Rsq", "F", "Z", "Pr(>F)"]
    assert lines[5].split()[:6] == ["species", "1", "0.029258", "0.0292578", "0.14856", "14.544"]
    assert lines[5].endswith("0.001 ***")
    assert lines[9].split() == ["Total", "39", "0.196940"]
    frame = salamanders.to_pandas()
    assert frame.loc["site", "p"] == 0.001
    assert list(frame.index) == [row.term for row in salamanders.table]
    assert salamanders.to_csv().splitlines()[-1].startswith("Total,39,0.19693")
    assert salamanders.to_csv().splitlines()[-1].endswith(",,,,,")
    assert repr(salamanders) == text
    page = salamanders._repr_html_()
    assert f"<caption>Procrustes analysis of variance: {FORMULA}" in page
    assert "<td>species</td>" in page
    pairs = salamanders.pairwise("site")
    assert list(pairs.to_pandas()) == ["a", "b", "distance", "z", "p"]
    assert pairs.to_pandas().shape == (1, 5)
    line = str(pairs).splitlines()[-1]
    assert line.startswith("Symp – Allo")
    assert line.split()[-1] == f"{pairs.p[0, 1]:.3f}"
    assert line.split()[-2] == f"{pairs.z[0, 1]:.4f}"


def test_figures_of_very_different_size_have_no_more_decimals_than_the_large_ones_bear():
    sums = (123456.0, 0.5, 12.0)
    table = EffectTable(tuple(Effect(name, 1, ss) for name, ss in zip("abc", sums, strict=True)))
    assert [line.split()[2] for line in str(table).splitlines()[1:]] == [
        "123456.00",
        "0.50",
        "12.00",
    ]
    close = EffectTable((Effect("a", 1, 1234.5678), Effect("b", 1, 12.5)))
    assert [line.split()[2] for line in str(close).splitlines()[1:]] == ["1234.568", "12.500"]


def test_a_small_p_is_not_printed_as_zero():
    data = {"kind": np.repeat(["a", "b"], 8)}
    x = noisy()
    x[8:, 1] += 1.0
    actual = procrustes_anova("shape ~ kind", x, data, 9999)
    assert actual["kind"].p < 0.001
    assert f"{actual['kind'].p:.4f} ***" in str(actual)
    assert format_p_values([1e-5, 0.25, float("nan")]) == ["0.00001", "0.25000", ""]
    assert format_p_values([0.001, 0.25]) == ["0.001", "0.250"]


def test_columns_of_tiny_figures_have_exponents():
    rows = (Effect("side", 1, 3.4736e-10, 3.4736e-10, 0.5, 2.0), Effect("Total", 2, 6.9e-10))
    assert "3.4736e-10" in str(EffectTable(rows))
    assert "6.9000e-10" in str(EffectTable(rows))
    assert "e-" not in str(EffectTable((Effect("side", 1, 6.8e-5, 6.8e-5, 0.5, 2.0),)))


def test_numbers_are_slopes_and_c_makes_them_groups():
    data = {"year": np.tile([1, 2, 3, 4], 4)}
    assert procrustes_anova("shape ~ year", noisy(), data, 9)["year"].df == 1
    assert procrustes_anova("shape ~ C(year)", noisy(), data, 9)["C(year)"].df == 3


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("species * site", "shape ~ species"),
        ("shape ~ ", "shape ~ species"),
        ("form ~ species", "shape ~ species"),
        ("shape ~ nonsense", "nonsense"),
        ("shape ~ species +* site", "an operator lacks"),
        ("shape ~ 0 + species", "intercept"),
    ],
)
def test_a_formula_that_cannot_be_used_says_why(plethodon, formula, words):
    with pytest.raises(DefgpaError, match=words.replace("+", r"\+").replace("*", r"\*")):
        procrustes_anova(formula, *plethodon)


def test_data_that_do_not_fit_say_so(plethodon):
    points, data = plethodon
    with pytest.raises(ShapeError, match=r"one row per shape, 40; got 3|different lengths"):
        procrustes_anova("shape ~ a", points, {"a": [1.0, 2.0, 3.0]})
    gaps = data["site"].astype(object)
    gaps[3] = None
    with pytest.raises(ShapeError, match=r"gaps|missing"):
        procrustes_anova("shape ~ site", points, {"site": gaps})
    with pytest.raises(ShapeError, match=r"not finite|gaps|missing"):
        procrustes_anova("shape ~ log(a)", points, {"a": np.full(40, np.nan)})
    with pytest.raises(ShapeError, match="parameters for 40 shapes"):
        procrustes_anova("shape ~ who", points, {"who": [f"w{k}" for k in range(40)]})


@pytest.mark.parametrize("words", [{"n_permutations": 0}, {"n_permutations": 2.5}, {"seed": -1}])
def test_odd_numbers_of_permutations_are_refused(plethodon, words):
    with pytest.raises(DefgpaError, match="whole number"):
        procrustes_anova(FORMULA, *plethodon, **words)


def test_groups_that_are_not_two_or_not_there_are_refused(salamanders):
    with pytest.raises(DefgpaError, match="2 groups"):
        landmark_differences(noisy(), np.repeat(list("abcd"), 4))
    with pytest.raises(DefgpaError, match="no column 'colour'"):
        salamanders.pairwise("colour")
    with pytest.raises(DefgpaError, match="knows nothing of 'size'"):
        salamanders.pairwise("species:size")
    with pytest.raises(DefgpaError, match="only 'x'"):
        salamanders.pairwise(["x"] * 40)
    with pytest.raises(ShapeError, match="one entry per shape, 16; got 3"):
        landmark_differences(noisy(), list("aab"))
    with pytest.raises(ShapeError, match="missing for shape number 1"):
        encode_groups(["a", None, "b"], 3, "groups")


def test_names_that_are_numbers_stay_names():
    names, codes = encode_groups(np.array([2, 1, 2]), 3, "groups")
    assert names == ("2", "1")
    assert codes.tolist() == [0, 1, 0]
    shapes = Shapes(noisy(4), names=["1", "2", "3", "4"])
    assert allometry(shapes, [1.0, 2.0, 3.0, 5.0], 9).names == ("1", "2", "3", "4")


def test_bases_are_orthonormal_even_for_columns_of_very_different_size():
    rng = np.random.default_rng(10)
    big = 1e8 + rng.normal(size=(30, 1))
    bases = make_orthonormal_bases(
        np.full((30, 1), 30**-0.5), [big, 1e-6 * rng.normal(size=(30, 2)), np.ones((30, 1))]
    )
    B = np.hstack(bases)
    assert [b.shape[1] for b in bases] == [1, 2, 0]
    np.testing.assert_allclose(B.T @ B, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(B.sum(axis=0), 0.0, atol=1e-9)


def test_a_design_without_terms_is_the_mean():
    model = procrustes_anova("shape ~ 1", noisy(), n_permutations=5)
    assert [row.term for row in model.table] == ["Residuals", "Total"]
    assert design("shape ~ 1", {"a": [1, 2, 3]}, 3).basis.shape == (3, 1)


# Error terms, factors, dispersion


@pytest.mark.parametrize("ss_type", [1, 2, 3])
def test_an_error_term_is_the_denominator_of_f(plethodon, ss_type):
    points, data = plethodon
    error = {"species": "species:site"}
    plain = procrustes_anova(FORMULA, points, data, 99, ss_type=ss_type)
    model = procrustes_anova(FORMULA, points, data, 99, ss_type=ss_type, error=error)
    assert "F of species is over the mean square of species:site, P by both rotated" in str(model)
    assert model["species"].f == pytest.approx(plain["species"].ms / plain["species:site"].ms)
    assert model["site"].f == pytest.approx(plain["site"].f)


@pytest.mark.parametrize("chance", ["rotations", "residuals"])
def test_kinds_of_families_that_differ_in_one_direction_are_tested_by_rotations(chance):
    """Without a difference of kinds P is uniform; not with permuted specimens, as families vary."""
    family, kind = [number for number in "123456" for _ in range(4)], np.repeat(["a", "b"], 12)
    direction, p = np.random.default_rng(1).normal(size=(10, 2)), []
    for seed in range(40):
        rng = np.random.default_rng([2, seed])
        x = rng.normal(size=6).repeat(4)[:, None, None] * direction
        x += 0.5 * rng.normal(size=(24, 10, 2))
        model = procrustes_anova(
            *("shape ~ kind + kind:family", x, {"kind": kind, "family": family}, 99, seed),
            **{"error": {"kind": "kind:family"}, "chance": chance, "superimpose": False},
        )
        p.append(model["kind"].p)
    assert (kstest(p, "uniform").statistic < 0.2) == (chance == "rotations")


def test_one_term_over_another_has_the_p_of_the_f_distribution_in_one_dimension():
    """Of one coordinate, rotations are the F test: the two are compared on a balanced set."""
    kind = np.repeat(["a", "b"], 12)
    columns = {"kind": kind, "family": sorted("uvwxyz" * 4)}
    x = np.zeros((24, 3, 2))
    rng = np.random.default_rng(3)
    x[:, 0, 0] = rng.normal(size=6)[np.arange(24) // 4] + rng.normal(size=24) + (kind == "b")
    model = procrustes_anova(
        *("shape ~ kind + kind:family", x, columns, 1999),
        **{"error": {"kind": "kind:family"}, "superimpose": False},
    )
    row = model["kind"]
    assert row.p == pytest.approx(f_distribution.sf(row.f, 1, 4), abs=0.03)


def test_wrong_error_terms_and_types_are_refused(plethodon):
    points, data = plethodon
    with pytest.raises(DefgpaError, match=r"no term 'place' for 'error'"):
        procrustes_anova(FORMULA, points, data, 9, error={"species": "place"})
    with pytest.raises(DefgpaError, match="'chance' is 'rotations' or 'residuals'; got 'luck'"):
        procrustes_anova(FORMULA, points, data, 9, chance="luck")
    with pytest.raises(DefgpaError, match="'ss_type' is 1, 2 or 3"):
        procrustes_anova(FORMULA, points, data, 9, ss_type=4)


def test_identity_covariance_changes_nothing_and_a_singular_one_is_refused(plethodon):
    points, data = plethodon
    plain = procrustes_anova(FORMULA, points, data, 9)
    model = procrustes_anova(FORMULA, points, data, 9, covariance=3.0 * np.eye(40))
    for row, expected in zip(model.table, plain.table, strict=True):
        assert row.ss == pytest.approx(expected.ss / 3.0)
        assert row.f == pytest.approx(expected.f, nan_ok=True)
    np.testing.assert_allclose(model.fitted, plain.fitted, **EXACT)
    with pytest.raises(ShapeError, match="singular"):
        procrustes_anova(FORMULA, points, data, 9, covariance=np.ones((40, 40)))
    with pytest.raises(ShapeError, match="symmetric 40 × 40"):
        procrustes_anova(FORMULA, points, data, 9, covariance=np.eye(3))


def test_levels_that_look_like_numbers_are_groups_where_the_column_is_a_factor():
    pandas = pytest.importorskip("pandas")
    x, who = noisy(), [k // 4 for k in range(16)]
    as_numbers = procrustes_anova("shape ~ who", x, {"who": who}, 9)
    assert as_numbers["who"].df == 1
    assert "'who' has 4 different whole numbers" in str(as_numbers)
    assert "C(who)" in str(as_numbers)
    frame = pandas.DataFrame({"who": pandas.Categorical(who)})
    for data in ({"who": list(map(str, who))}, frame):
        model = procrustes_anova("shape ~ who", x, data, 9)
        assert model["who"].df == 3
        assert "whole numbers" not in str(model)
    rows = tuple({"who": str(k)} for k in who)
    marked = Shapes(x, metadata={"variables": rows, "factors": ("who",)})
    assert procrustes_anova("shape ~ who", marked, n_permutations=9)["who"].df == 3
    plain = Shapes(x, metadata={"variables": rows})
    assert procrustes_anova("shape ~ who", plain, n_permutations=9)["who"].df == 1
