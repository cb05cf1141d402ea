"""Covariation, modules, classes, disparity: by definition, on made data, with bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest, norm, special_ortho_group

from defgpa import DefgpaError, ShapeError, Shapes
from defgpa.statistics import (
    classify,
    compare_effect_sizes,
    cross_covariance,
    disparity,
    eigenvalue_variance,
    integration,
    modularity,
    partition_by_links,
    read_partitions,
    tangent_space,
    two_block_pls,
)
from defgpa.statistics.box_cox import fit_box_cox
from defgpa.statistics.cross_covariance import find_first_scores
from defgpa.statistics.leave_one_out import choose_components, leave_one_out
from defgpa.statistics.permutation import Permutations
from support import EXACT

RESULTS = {
    "disparity": lambda x: disparity(x, list("ab") * 12, n_permutations=19),
    "two_block_pls": lambda x: two_block_pls(x, np.arange(24.0), n_permutations=19),
    "integration": lambda x: integration(x, "aaaabbbb", n_permutations=19),
    "modularity": lambda x: modularity(x, "aaaabbbb", n_permutations=19),
    "classify": lambda x: classify(x, list("ab") * 12, 3, n_permutations=19),
}
TITLES = {
    "disparity": "Procrustes variances of groups",
    "two_block_pls": "Two-block PLS: r ",
    "integration": "Integration: r-PLS ",
    "modularity": "Modularity: CR ",
    "classify": "Classification by 3 components",
}


def made(seed=0, n=24, m=8, d=2, noise=0.05):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, d)) + noise * rng.normal(size=(n, m, d))


def with_modules(seed=1, n=60):
    """Landmarks 0–5 move with one factor, 6–11 with another."""
    rng = np.random.default_rng(seed)
    x = made(seed, n, m=12, noise=0.01)
    for members in (slice(0, 6), slice(6, 12)):
        x[:, members] += 0.05 * rng.normal(size=(n, 1, 1)) * rng.normal(size=(6, 2))
    return x


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_prints_briefly_and_becomes_a_table(name):
    x = made()
    x[3, 2] = np.nan
    actual = RESULTS[name](x)
    text = str(actual)
    assert text.startswith(TITLES[name])
    assert "1 of 192 landmarks (0.5%) completed" in text
    assert len(text) < 2000
    assert len(actual.to_pandas()) == len(actual.to_csv().splitlines()) - 1
    for heads, rows in actual.further_tables().values():
        assert rows
        assert {len(row) for row in rows} == {len(heads)}


def test_interval_of_the_covariance_ratio_is_that_of_resampled_specimens():
    x = with_modules(n=20)
    actual = modularity(x, "aaaaaabbbbbb", 9, seed=4)
    rng, y = np.random.default_rng([4, 3]), tangent_space(x)
    ratios = [
        modularity(y[rng.integers(20, size=20)], "aaaaaabbbbbb", 1, interval=False,
                   superimpose=False).observed
        for _ in range(999)
    ]  # fmt: skip
    np.testing.assert_allclose(actual.interval, np.quantile(ratios, [0.025, 0.975]), rtol=1e-9)


@pytest.mark.parametrize("block", ["x", "y"])
def test_shapes_along_an_axis_have_its_score(block):
    x = made(6)
    actual = two_block_pls(x, partition="aaaabbbb", n_permutations=1)
    shape = actual.predict(0.3, axis=2, block=block)
    axes, center = getattr(actual, f"{block}_axes"), getattr(actual, f"{block}_center")
    assert shape.shape == (4, 2)
    np.testing.assert_allclose(axes @ (shape.ravel() - center), 0.3 * np.eye(8)[1], atol=1e-12)
    with pytest.raises(DefgpaError, match="'axis' is 1 to 8"):
        actual.predict(0.3, axis=9)


def test_differences_of_effect_sizes_by_their_definition():
    """With the exponent of the permuted values, all of them are (yᵏ − 1) / k."""
    results = [integration(made(seed, 20 + seed), "aaaabbbb", 199) for seed in (1, 2)]
    deviations, variances = [], []
    for result in results:
        values = np.append(result.permuted, result.observed)
        exponent = fit_box_cox(result.permuted)
        transformed = (values**exponent - 1) / exponent
        deviations.append(transformed[-1] - transformed.mean())
        variances.append(transformed.var())
    expected = (deviations[0] - deviations[1]) / np.sqrt(sum(variances))
    actual = compare_effect_sizes(results)
    assert actual.z[0, 1] == pytest.approx(expected)
    assert actual.z[1, 0] == pytest.approx(-expected)
    assert actual.p[0, 1] == pytest.approx(2 * norm.sf(abs(expected)))
    assert abs(expected) > 0.05
    assert compare_effect_sizes(results, ["wild", "reared"]).names == ("wild", "reared")
    with pytest.raises(DefgpaError, match="must be 2 names"):
        compare_effect_sizes(results, ["wild"])


def test_shares_of_axes_and_shapes_of_unequal_modules_by_their_definition():
    x = made(4)
    actual = two_block_pls(x, partition="aaabbbbb", n_permutations=9)
    flat = [tangent_space(x)[:, rows].reshape(24, -1) for rows in (slice(0, 3), slice(3, 8))]
    X, Y = (block - block.mean(axis=0) for block in flat)
    D = np.linalg.svd(X.T @ Y / 23, compute_uv=False)[: len(actual.singular_values)]
    np.testing.assert_allclose(actual.singular_values, D, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(actual.shares, D**2 / np.sum(D**2), rtol=1e-6, atol=1e-12)
    assert actual.predict(0.1, 1, "x").shape == (3, 2)
    assert actual.predict(0.1, 1, "y").shape == (5, 2)
    assert f"{actual.shares[0]:.1%}" in str(actual)


def test_second_block_may_be_other_shapes():
    x, y = made(6), made(7, m=5)
    actual = two_block_pls(x, y, n_permutations=1)
    assert actual.predict(0.1, block="y").shape == (5, 2)


NULL_TESTS = {
    "two_block_pls": lambda x, s: two_block_pls(x, np.random.default_rng(s).normal(size=(24, 2)),
                                                None, 39, s).p,
    "integration": lambda x, s: integration(x, "aaaabbbb", 39, s, superimpose=False).p,
    "modularity": lambda x, s: modularity(x, "aaaabbbb", 39, s, interval=False).p,
}  # fmt: skip


@pytest.mark.parametrize("name", NULL_TESTS)
def test_p_is_uniform_without_an_effect(name):
    p = [NULL_TESTS[name](made([9, seed]), seed) for seed in range(80)]
    assert kstest(p, "uniform").statistic < 0.16


def test_vrel_and_its_z_by_their_definitions():
    x = made(3, 40)
    actual = eigenvalue_variance(x)
    flat = tangent_space(x).reshape(40, -1)
    values = np.linalg.eigvalsh(np.cov(flat.T))
    values = values[values > 1e-12 * values.max()]
    k = len(values)
    vrel = np.var(values, ddof=1) / (values.mean() ** 2 * k)
    null = (k + 2) / (k * 39 + 2)
    assert actual.vrel == pytest.approx(vrel)
    assert actual.z == pytest.approx(np.arctanh(2 * vrel - 1) + abs(np.arctanh(2 * null - 1)))
    assert actual.z_variance == pytest.approx(1 / 37)
    assert "standard error 0.1644" in str(actual)


def test_r_pls_is_the_correlation_along_the_axes_of_largest_covariance():
    x, y = made(2, d=3), np.random.default_rng(3).normal(size=(24, 4))
    actual = two_block_pls(x, y, n_permutations=9)
    X = tangent_space(x).reshape(24, -1)
    X, Y = X - X.mean(axis=0), y - y.mean(axis=0)
    assert actual.r == pytest.approx(
        np.corrcoef(actual.x_scores[:, 0], actual.y_scores[:, 0])[0, 1]
    )
    covariance = (X @ actual.x_axes[0]) @ (Y @ actual.y_axes[0]) / 23
    assert actual.singular_values[0] == pytest.approx(covariance)
    rng = np.random.default_rng(4)
    for _ in range(200):  # no other pair of axes covaries more
        u, v = rng.normal(size=X.shape[1]), rng.normal(size=4)
        by_chance = (X @ u) @ (Y @ v) / 23 / np.linalg.norm(u) / np.linalg.norm(v)
        assert abs(by_chance) < covariance


def test_permuted_r_pls_is_that_of_the_shuffled_block():
    x, y = made(2), np.random.default_rng(3).normal(size=(24, 2))
    actual = two_block_pls(x, y, n_permutations=1, seed=5)
    sequence = np.random.SeedSequence(5).spawn(1)[0]
    order = np.random.default_rng(sequence).permuted(np.arange(24)[None], axis=1)[0]
    again = two_block_pls(x, y[order], n_permutations=1)
    assert actual.permuted[0] == pytest.approx(again.r)


def test_modules_are_found_and_one_module_is_not():
    x = with_modules()
    right = modularity(x, "aaaaaabbbbbb", n_permutations=199)
    wrong = modularity(x, "abababababab", n_permutations=199)
    assert right.observed < 1 < wrong.observed
    assert right.p < 0.05 < wrong.p
    assert right.interval[0] <= right.observed <= right.interval[1] + 0.1
    compared = compare_effect_sizes([right, wrong], ["right", "wrong"])
    assert compared.z[0, 1] == -compared.z[1, 0] < -1.5
    assert compared.p[0, 1] == pytest.approx(2 * norm.sf(-compared.z[0, 1]))
    assert "right – wrong" in str(compared)


@pytest.mark.parametrize("d", [2, 3])
def test_the_covariance_ratio_by_its_definition_does_not_depend_on_the_pose(d):
    x = made(7, 30, 6, d)
    x[:, :3] *= 1 + 0.2 * np.random.default_rng(8).normal(size=(30, 1, 1))
    x[..., 0] *= 2
    values = [
        modularity(x @ turn, "aaabbb", 9, interval=False).observed for turn in draw_rotations(d, 3)
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-6)
    # as geomorph: a quarter turn of the first two principal axes of the mean shape
    y = tangent_space(x)
    y = y @ np.linalg.svd(y.mean(axis=0))[2].T
    ratios = []
    for theta in np.linspace(0, np.pi / 2, 200, endpoint=False):
        rotation = np.eye(d)
        rotation[:2, :2] = [[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]]
        C = np.cov((y @ rotation).reshape(30, -1).T)
        C -= np.diag(np.diag(C))
        a, b = slice(0, 3 * d), slice(3 * d, None)
        within = np.sqrt((C[a, a] ** 2).sum() * (C[b, b] ** 2).sum())
        ratios.append(np.sqrt((C[a, b] ** 2).sum() / within))
    assert values[0] == pytest.approx(np.mean(ratios), rel=1e-6)


def draw_rotations(d, count):
    """Rotations (count, d, d) at random, all as likely."""
    matrices = special_ortho_group.rvs(d, count, random_state=1)
    return matrices.reshape(count, d, d)


def test_three_modules_are_integrated_in_pairs():
    x = made(9, 40, 9)
    x[:, ::3] += 0.2 * np.random.default_rng(1).normal(size=(40, 1, 2))
    actual = integration(x, list("abc") * 3, n_permutations=19)
    assert actual.pairs.shape == (3, 3)
    assert actual.observed == pytest.approx(actual.pairs[np.triu_indices(3, 1)].mean())
    by_name = integration(
        x, {"a": ["1", "4", "7"], "b": ["2", "5", "8"], "c": [2, 5, 8]}, n_permutations=19
    )
    np.testing.assert_allclose(by_name.pairs, actual.pairs, **EXACT)


def test_vrel_lies_between_noise_and_one_axis():
    noise = eigenvalue_variance(made(3, 400)).vrel
    rng = np.random.default_rng(4)
    axis = rng.normal(size=(8, 2))
    moved = made(3, 400, noise=1e-4) + 0.1 * axis * rng.normal(size=(400, 1, 1))
    first = eigenvalue_variance(moved).vrel
    assert 0 <= noise < 0.2 < 0.9 < first <= 1


@pytest.mark.parametrize("equal_priors", [False, True])
def test_canonical_variates_have_unit_variance_within_groups_about_the_mean_shape(equal_priors):
    x = made(5, 27)
    groups = np.repeat(["a", "b", "c"], [5, 9, 13])
    x[groups == "a", 1] += 0.2
    actual = classify(x, groups, 5, 9, equal_priors=equal_priors)
    deviations = np.concatenate(
        [rows - rows.mean(axis=0) for rows in (actual.variates[groups == g] for g in "abc")]
    )
    np.testing.assert_allclose(deviations.T @ deviations / (27 - 3), np.eye(2), atol=1e-9)
    np.testing.assert_allclose(actual.variates.mean(axis=0), 0.0, atol=1e-9)
    # the change per unit of a variate is the slope of shape on it, within the five components
    y = tangent_space(x)
    U, lengths, axes = np.linalg.svd((y - y.mean(axis=0)).reshape(27, -1), full_matrices=False)
    used = (U * lengths)[:, :5] @ axes[:5]
    slopes = np.stack([v @ used / (v @ v) for v in actual.variates.T])
    np.testing.assert_allclose(actual.axes.reshape(2, -1), slopes, atol=1e-9)


def test_equal_priors_are_equal_also_where_groups_are():
    """Without a specimen its group is smaller, which must count by default only."""
    x, groups = made(4, 24), ["a"] * 12 + ["b"] * 12
    by_size, equal = (classify(x, groups, 4, 9, equal_priors=flag) for flag in (False, True))
    true, rows = np.repeat([0, 1], 12), np.arange(24)

    def odds(result):
        return result.posterior[rows, true] / result.posterior[rows, 1 - true]

    np.testing.assert_allclose(odds(equal) / odds(by_size), 12 / 11)


def test_posteriors_are_those_of_models_without_the_specimen():
    rng = np.random.default_rng(6)
    codes = np.repeat([0, 1, 2], [7, 9, 8])
    scores = rng.normal(size=(24, 4)) + 0.8 * rng.normal(size=(3, 4))[codes]
    priors = np.full(3, 1 / 3)
    actual = leave_one_out(scores, codes, priors)
    for i in (0, 8, 20):
        training, labels = np.delete(scores, i, axis=0), np.delete(codes, i)
        means = np.stack([training[labels == k].mean(axis=0) for k in range(3)])
        deviations = training - means[labels]
        pooled = deviations.T @ deviations / 20  # n − g, as MASS
        moved = scores[i] - means
        logs = -0.5 * np.einsum("gp,pq,gq->g", moved, np.linalg.inv(pooled), moved)
        expected = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
        np.testing.assert_allclose(actual[i], expected, rtol=1e-6)


def test_distances_between_groups_are_those_of_their_definition():
    x = made(6, 26)
    groups = np.repeat(["a", "b", "c"], [6, 9, 11])
    x[groups == "b", 2] += 0.1
    actual = classify(x, groups, 4, 9)
    y = tangent_space(x).reshape(26, -1)
    scores = (y - y.mean(axis=0)) @ np.linalg.svd(y - y.mean(axis=0))[2][:4].T
    within = sum((np.sum(groups == g) - 1) * np.cov(scores[groups == g].T) for g in "abc") / 23
    for i, j in ((0, 1), (0, 2), (1, 2)):
        first, second = groups == "abc"[i], groups == "abc"[j]
        difference = scores[first].mean(axis=0) - scores[second].mean(axis=0)
        expected = np.sqrt(difference @ np.linalg.solve(within, difference))
        assert actual.mahalanobis[i, j] == pytest.approx(expected, rel=1e-9)
        expected = np.linalg.norm(y[first].mean(axis=0) - y[second].mean(axis=0))
        assert actual.procrustes[j, i] == pytest.approx(expected, rel=1e-9)


def test_no_more_components_are_chosen_than_leave_a_covariance_within_groups():
    """Of n − 1 specimens beside the one left out, groups take g: what is left is the most."""
    codes = np.repeat([0, 1, 2], [3, 3, 4])
    chosen = [
        choose_components(np.random.default_rng(seed).normal(size=(10, 9)), codes, None, 40)
        for seed in range(40)
    ]
    assert max(chosen) == 10 - 1 - 3
    assert min(chosen) == 1


@pytest.mark.parametrize("n_components", [4, None])
def test_random_groups_are_classified_no_better_than_by_chance(n_components):
    """Also where the number of components is chosen, which specimens must not flatter."""
    groups = list("ab") * 12
    accuracies = [classify(made(s), groups, n_components, 2).accuracy for s in range(16)]
    assert 0.35 < np.mean(accuracies) < 0.55


def test_components_are_chosen_where_a_group_has_two_specimens():
    x = made(8, 20, noise=0.02)
    x[18:, 3, 0] += 0.5
    actual = classify(x, ["a"] * 18 + ["b"] * 2, n_permutations=2)
    assert np.isfinite(actual.posterior).all()


def test_between_group_scores_show_groups_in_noise_unless_left_out():
    x, groups = made(5, 24, 30), np.arange(24) % 3
    actual = classify(x, groups, 3, 2)
    naive, honest = actual.between_scores, actual.between_scores_left_out

    def separation(scores):
        means = np.stack([scores[groups == k].mean(axis=0) for k in range(3)])
        return means.var(axis=0).sum() / (scores - means[groups]).var(axis=0).sum()

    assert separation(naive) > 1.0 > 2 * separation(honest)


def test_a_canonical_axis_is_the_change_of_shape_that_separates():
    x = made(8, 40, noise=0.02)
    x[20:, 3, 0] += 0.3
    actual = classify(x, ["a"] * 20 + ["b"] * 20, 3, 19)
    assert actual.accuracy > 0.95
    assert np.abs(actual.axes[0]).max(axis=1).argmax() == 3
    assert actual.mahalanobis_p[0, 1] == actual.procrustes_p[0, 1] == 0.05


def test_disparity_differs_where_dispersion_does():
    rng = np.random.default_rng(0)
    spread = np.repeat([0.02, 0.08], 12)[:, None, None]
    x = rng.normal(size=(8, 2)) + spread * rng.normal(size=(24, 8, 2))
    actual = disparity(x, ["a"] * 12 + ["b"] * 12)
    assert actual.p[0, 1] < 0.01
    assert actual.intervals[0, 1] < actual.intervals[1, 0]


@pytest.mark.parametrize("partial", [False, True])
def test_intervals_of_disparities_are_those_of_resampled_specimens(partial):
    """Of many specimens they are those of a normal mean."""
    y = tangent_space(made(1, 500))
    groups = np.repeat(["a", "b"], [200, 300])
    actual = disparity(y, groups, n_permutations=1, partial=partial, superimpose=False)
    squares = ((y - y.mean(axis=0)) ** 2).sum(axis=(1, 2))
    for k, n in enumerate((200, 300)):
        share = n / 499 if partial else 1.0
        members = squares[groups == "ab"[k]]
        error = 1.96 * share * members.std() / np.sqrt(n)
        assert actual.variances[k] == pytest.approx(share * members.mean())
        expected = share * members.mean() + [-error, error]
        np.testing.assert_allclose(actual.intervals[k], expected, atol=0.15 * error)
    heads, rows = actual.further_tables()["groups"]
    assert heads == ("group", "variance", "lower", "upper")
    assert rows[1] == ("b", actual.variances[1], *actual.intervals[1])


def test_disparity_about_a_model_by_its_definition():
    """Unequal groups about a covariate, with P by brute force in the same orders."""
    rng = np.random.default_rng(6)
    z, groups = rng.normal(size=21), np.repeat(list("abc"), [10, 7, 4])
    y = tangent_space(made(5, 21))
    actual = disparity(y, groups, "shape ~ z", {"z": z}, 39, superimpose=False)
    X = np.column_stack([np.ones(21), z])
    flat = y.reshape(21, -1)
    squares = ((flat - X @ np.linalg.lstsq(X, flat, rcond=None)[0]) ** 2).sum(axis=1)

    def compare(values):
        means = np.array([values[groups == name].mean() for name in "abc"])
        return np.abs(means[:, None] - means)

    np.testing.assert_allclose(actual.differences, compare(squares), rtol=1e-9, atol=1e-12)
    orders = Permutations(39).each(21, 3, lambda order: order)
    counts = sum(compare(squares[order]) >= compare(squares) for order in orders)
    expected = (1 + counts) / 40
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(actual.p[off], expected[off])
    assert len(set(actual.p[off])) > 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: two_block_pls(x), "either a second block 'y' or a 'partition'"),
        (lambda x: two_block_pls(x, np.ones((3, 2))), "24 rows"),
        (lambda x: two_block_pls(x, np.ones((24, 2))), "does not vary"),
        (lambda x: two_block_pls(x, ["a"] * 24), "table of numbers"),
        (lambda x: integration(x, "aaab"), "one module per landmark, 8; got 4"),
        (lambda x: modularity(x, "aaaaaaaa"), "at least 2 modules"),
        (lambda x: modularity(x, {"a": [0, 1], "b": [1, 2]}), "'2' is in two modules"),
        (lambda x: modularity(x, {"a": [0, 1], "b": [2]}), "in no module"),
        (lambda x: classify(x, ["a"] * 24), "there is one group"),
        (lambda x: classify(x, ["a"] * 23 + ["b"]), "'b' has one specimen"),
        (lambda x: classify(x, list("ab") * 12, 99), "number of components is 1 to"),
        (lambda x: disparity(x, ["a"] * 24), "at least 2 groups"),
        (lambda x: disparity(x, "kind"), "no column 'kind'"),
        (lambda x: compare_effect_sizes([]), "at least 2 results"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, words):
    with pytest.raises(DefgpaError, match=words):
        call(made())


class TestPartitions:
    def test_parts_that_links_join_are_modules(self):
        links = ((0, 1), (1, 2), (3, 4), (4, 5))
        shapes = Shapes(np.random.default_rng(0).normal(size=(4, 6, 2))).with_metadata(links=links)
        assert partition_by_links(shapes) == {"part_1": [0, 1, 2], "part_2": [3, 4, 5]}
        with pytest.raises(ShapeError, match="links join all landmarks"):
            partition_by_links(shapes.with_metadata(links=(*links, (2, 3))))

    def test_table_of_modules_may_list_landmarks_in_any_order(self, tmp_path):
        (tmp_path / "m.csv").write_text("point,jaw\nb,x\na,y\nc,x\n")
        assert read_partitions(tmp_path / "m.csv", ["a", "b", "c"]) == {
            "jaw": {"x": [1, 2], "y": [0]}
        }

    @pytest.mark.parametrize(
        ("text", "message"),
        [("point,jaw\na,x\nb,y\n", "a row for each landmark, 3"), ("jaw\nx\nx\nx\n", "no column")],
    )
    def test_table_that_is_none_of_modules_is_refused(self, tmp_path, text, message):
        (tmp_path / "m.csv").write_text(text)
        with pytest.raises(DefgpaError, match=message):
            read_partitions(tmp_path / "m.csv", ["a", "b", "c"])


@pytest.mark.parametrize("spectrum", ["equal", "graded", "steep", "of rank 3"])
@pytest.mark.parametrize("size", [(3, 5), (30, 35), (60, 75), (75, 60)])
def test_first_scores_are_those_of_the_first_singular_vectors(size, spectrum):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, size[0])), rng.normal(size=(80, size[1]))
    if spectrum in ("graded", "steep"):
        rate = 0.2 if spectrum == "graded" else 1.0
        X, Y = (block * np.exp(-rate * np.arange(block.shape[1])) for block in (X, Y))
    if spectrum == "of rank 3":
        X = X[:, :3] @ rng.normal(size=(3, size[0]))
    orders = rng.permuted(np.tile(np.arange(80), (40, 1)), axis=1)
    compare_with_singular_vectors(X, Y, orders)


def compare_with_singular_vectors(X, Y, orders):
    U, _, Vt = np.linalg.svd(X.T @ Y[orders], full_matrices=False)
    expected = (X @ U[:, :, 0].T).T, np.vecdot(Y[orders], Vt[:, :1])
    actual = find_first_scores(X, Y, orders)
    (x, y), (expected_x, expected_y) = (
        [block / np.linalg.norm(block, axis=1, keepdims=True) for block in pair]
        for pair in (actual, expected)
    )
    np.testing.assert_allclose(np.vecdot(x, y), np.vecdot(expected_x, expected_y), **EXACT)
    np.testing.assert_allclose(np.abs(np.vecdot(x, expected_x)), 1.0, **EXACT)
    np.testing.assert_allclose(np.abs(np.vecdot(y, expected_y)), 1.0, **EXACT)


def test_axes_that_have_not_settled_are_decomposed(monkeypatch):
    monkeypatch.setattr(cross_covariance, "_MAX_STEPS", 6)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 80, 60))
    compare_with_singular_vectors(X, Y, rng.permuted(np.tile(np.arange(80), (4, 1)), axis=1))
