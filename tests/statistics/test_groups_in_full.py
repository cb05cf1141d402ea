"""Allometry of groups, nested models, trajectories, measurement error, asymmetry of size."""

from __future__ import annotations

import re

import numpy as np
import pytest

from defgpa import DefgpaError, ShapeError, statistics
from defgpa.statistics import (
    centroid_sizes,
    compare_models,
    group_allometry,
    measurement_error,
    procrustes_anova,
    symmetry,
    tangent_space,
    trajectories,
)
from defgpa.statistics.permutation import Permutations
from support import EXACT, PARITY, geomorph_numbers


def grown(n=40, angle=0.0, seed=0, noise=0.01):
    """Two groups that change with size: the second along an axis at an angle to the first's."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(10, 2)) * 2
    axes = np.linalg.qr(rng.normal(size=(20, 2)))[0].T.reshape(2, 10, 2)
    size = rng.uniform(1, 3, n)
    in_second = np.arange(n) % 2 == 1
    axis = np.where(
        in_second[:, None, None], np.cos(angle) * axes[0] + np.sin(angle) * axes[1], axes[0]
    )
    x = base + 0.8 * np.log(size)[:, None, None] * axis + noise * rng.normal(size=(n, 10, 2))
    return x * size[:, None, None], np.where(in_second, "b", "a"), size


def test_components_of_allometry_are_those_of_geomorph(plethodon):
    points, data = plethodon
    actual = group_allometry(points, data["species"], n_permutations=99)
    text = geomorph_numbers("allometry plethodon").split("\nCAC\n")[1]
    numbers = [float(word) for word in re.findall(r"-?\d\.\d{5,}", text)]
    scores = (actual.common_component, actual.regression_scores, actual.predicted_line)
    for values, expected in zip(scores, np.reshape(numbers, (3, 6)), strict=True):
        sign = np.sign(values[0] * expected[0])
        np.testing.assert_allclose(sign * values[:6], expected, rtol=2e-5)


def test_slopes_at_an_angle_are_told_apart():
    x, groups, size = grown(angle=0.9)
    actual = group_allometry(x, groups, size, 199)
    assert actual.angles[0, 1] == pytest.approx(np.degrees(0.9), abs=12)
    assert actual.angle_p[0, 1] < 0.02
    assert "angle" in str(actual)


def test_slopes_of_groups_by_their_definition():
    """With P by brute force: residuals of the model of one common slope, in the same orders."""
    x, groups, size = grown(30, angle=0.4, noise=0.1)
    groups[:4] = "a"  # of unequal size
    actual = group_allometry(x, groups, size, 19, seed=3, chance="residuals")
    logs, Y = np.log(size), tangent_space(x).reshape(30, -1)

    def fit_slopes(shapes):
        return np.stack([np.polyfit(logs[groups == g], shapes[groups == g], 1)[0] for g in "ab"])

    def compare(slopes):
        lengths = np.linalg.norm(slopes, axis=1)
        return abs(lengths[0] - lengths[1]), np.arccos(slopes[0] @ slopes[1] / lengths.prod())

    slopes = fit_slopes(Y)
    np.testing.assert_allclose(actual.slopes.reshape(2, -1), slopes, **PARITY)
    difference, angle = compare(slopes)
    common = np.column_stack([groups == "a", groups == "b", logs]).astype(float)
    coefficients = np.linalg.lstsq(common, Y, rcond=None)[0]
    np.testing.assert_allclose(actual.pooled_slope.ravel(), coefficients[2], **PARITY)
    expected = common @ coefficients
    orders = Permutations(19, 3).each(30, 2, lambda order: order).argsort(axis=1)
    chance = [compare(fit_slopes(expected + (Y - expected)[order])) for order in orders]
    p = (1 + np.sum(np.array(chance) >= [difference, angle], axis=0)) / 20
    (row,) = actual.records()
    assert row == pytest.approx(
        {"a": actual.groups[0], "b": actual.groups[1], "length_difference": difference,
         "length_p": p[0], "angle": np.degrees(angle), "angle_p": p[1]}
    )  # fmt: skip
    assert 0.05 < p[0] < 1 or 0.05 < p[1] < 1  # some of the orders reach what is observed


def test_size_corrected_shapes_have_no_allometry_within_groups():
    x, groups, size = grown()
    actual = group_allometry(x, groups, size, 9)
    corrected = actual.correct_size()
    again = procrustes_anova(
        "shape ~ group + log(size)",
        corrected,
        {"group": groups, "size": size},
        9,
        superimpose=False,
    )
    assert again["log(size)"].r_squared < 1e-9
    np.testing.assert_allclose(
        corrected.points.mean(axis=0), actual.anova.tangents.mean(axis=0), **EXACT
    )


def test_groups_without_slopes_are_refused():
    x, groups, size = grown()
    with pytest.raises(DefgpaError, match="at least 2 groups of 3"):
        group_allometry(x, ["a"] * 40, size)
    with pytest.raises(DefgpaError, match="at least 2 groups of 3"):
        group_allometry(x, ["a"] * 38 + ["b"] * 2, size)
    with pytest.raises(ShapeError, match="one positive size per shape"):
        group_allometry(x, groups, [-1.0, *size[1:]])
    size[groups == "b"] = 2.0
    with pytest.raises(ShapeError, match="same size"):
        group_allometry(x, groups, size)


def test_added_terms_are_those_of_the_sequential_table(plethodon):
    points, data = plethodon
    small = procrustes_anova("shape ~ species + site", points, data, 99)
    large = procrustes_anova("shape ~ species * site", points, data, 99)
    table = compare_models(small, large).table
    assert table["added terms"].ss == pytest.approx(large["species:site"].ss)
    assert table["added terms"].f == pytest.approx(large["species:site"].f)
    assert table["added terms"].p == large["species:site"].p
    assert [row.df for row in table] == [1, 36, 39]
    with pytest.raises(DefgpaError, match="is not part of"):
        compare_models(procrustes_anova("shape ~ log(size)", points, data, 9), large)
    with pytest.raises(DefgpaError, match="same columns"):
        compare_models(large, large)


def test_trajectories_differ_in_the_way_they_were_made():
    rng = np.random.default_rng(0)
    base, axes = rng.normal(size=(8, 2)) * 2, rng.normal(size=(2, 8, 2))
    groups, stages = np.repeat(["a", "b"], 30), np.tile(["1", "2", "3"], 20)
    way = np.where((groups == "a")[:, None, None], axes[0], axes[1])
    steps = stages.astype(float)[:, None, None]
    x = base + 0.1 * steps * way + 0.01 * rng.normal(size=(60, 8, 2))
    actual = trajectories(x, groups, stages, 99)
    assert actual.means.shape == (2, 3, 8, 2)
    assert actual.angle_p[0, 1] == 0.01
    assert "Trajectories through 3 stages" in str(actual)
    y = tangent_space(x)
    first = y[(groups == "a") & (stages == "1")].mean(axis=0)
    np.testing.assert_allclose(actual.means[0, 0], first, **EXACT)
    same = trajectories(
        base + 0.1 * steps * axes[0] + 0.05 * rng.normal(size=(60, 8, 2)), groups, stages, 99
    )
    assert same.angle_p[0, 1] > 0.03
    assert 0 <= same.form_distances[0, 1] <= np.sqrt(2)
    assert "form" in str(actual).splitlines()[-2]
    two = stages != "3"  # two points have no form
    assert "form" not in str(trajectories(x[two], groups[two], stages[two], 9)).splitlines()[-2]
    with pytest.raises(DefgpaError, match="every group at every stage"):
        trajectories(x[:30], groups[:30], stages[:30])


def test_trajectories_by_their_definition():
    """With P by brute force: residuals of the model without an interaction, in the same orders."""
    rng = np.random.default_rng(8)
    groups, stages = np.repeat([0, 1], [11, 13]), np.arange(24) % 4
    x = rng.normal(size=(6, 2)) + 0.05 * stages[:, None, None] * rng.normal(size=(6, 2))
    x = tangent_space(x + 0.05 * rng.normal(size=(24, 6, 2)))
    actual = trajectories(x, groups, stages, 19, chance="residuals", superimpose=False)
    Y, cells = x.reshape(24, -1), [(groups == g) & (stages == s) for g in (0, 1) for s in range(4)]

    def compare(shapes):
        paths = np.stack([shapes[cell].mean(axis=0) for cell in cells]).reshape(2, 4, -1)
        lengths = np.linalg.norm(np.diff(paths, axis=1), axis=2).sum(axis=1)
        forms = [path - path.mean(axis=0) for path in paths]
        forms = [form / np.linalg.norm(form) for form in forms]
        axes = [np.linalg.svd(form)[2][0] for form in forms]
        axes = [v * np.sign(v @ (form[-1] - form[0])) for v, form in zip(axes, forms, strict=True)]
        U, _, Vt = np.linalg.svd(forms[0].T @ forms[1])
        form = np.linalg.norm(forms[0] @ U @ Vt - forms[1])
        return abs(lengths[0] - lengths[1]), np.degrees(np.arccos(axes[0] @ axes[1])), form

    observed = compare(Y)
    columns = np.column_stack([groups == 0, groups == 1, *(stages == s for s in (1, 2, 3))])
    expected = columns @ np.linalg.lstsq(columns.astype(float), Y, rcond=None)[0]
    orders = Permutations(19).each(24, 8, lambda order: order).argsort(axis=1)
    chance = [compare(expected + (Y - expected)[order]) for order in orders]
    p = (1 + np.sum(np.array(chance) >= observed, axis=0)) / 20
    (row,) = actual.records()
    figures = ("length_difference", "length_p", "angle", "angle_p", "form", "form_p")
    np.testing.assert_allclose(
        [row[name] for name in figures], np.column_stack([observed, p]).ravel(), rtol=1e-6
    )
    assert (p > 0.05).sum() > 1  # some of the orders reach what is observed
    assert len(actual.cells()[0]) == 7


def test_a_group_without_specimens_at_one_stage_is_refused():
    groups, stages = [0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 0, 1, 0, 2]
    with pytest.raises(DefgpaError, match="every group at every stage"):
        trajectories(np.random.default_rng(0).normal(size=(7, 5, 2)), groups, stages, 9)


def test_stages_that_are_numbers_follow_each_other_in_their_order():
    """An unsorted file must not make the path go back and forth."""
    rng = np.random.default_rng(2)
    groups, stages = np.repeat(["a", "b"], 18), np.tile([10, 2, 1], 12)
    steps = np.log(stages)[:, None, None]
    x = rng.normal(size=(8, 2)) + 0.1 * steps * rng.normal(size=(8, 2))
    x = x + 0.01 * rng.normal(size=(36, 8, 2))
    order = np.argsort(stages, kind="stable")
    actual = trajectories(x, groups, stages, 9)
    ordered = trajectories(x[order], groups[order], stages[order], 9)
    assert actual.stages == ordered.stages == ("1", "2", "10")
    np.testing.assert_allclose(actual.lengths, ordered.lengths, **PARITY)
    names = ["late", "early"]
    words = trajectories(x[stages > 1], groups[stages > 1], np.tile(names, 12), 9)
    assert list(words.stages) == names
    turned = trajectories(
        x[stages > 1], groups[stages > 1], np.tile(names, 12), 9, order=["early", "late"]
    )
    assert turned.stages == ("early", "late")
    np.testing.assert_allclose(turned.means, words.means[:, ::-1], **EXACT)
    with pytest.raises(DefgpaError, match="must name each of 'late', 'early' once; got early"):
        trajectories(x[stages > 1], groups[stages > 1], np.tile(names, 12), 9, order=["early"])


def test_the_form_of_a_path_does_not_depend_on_where_and_how_it_lies():
    rng = np.random.default_rng(3)
    path = rng.normal(size=(4, 6))
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    from defgpa.statistics.trajectories import _compare_paths

    values = _compare_paths(np.stack([path, 3.0 * path @ turn + 1.0]), np.array([0]), np.array([1]))
    assert values[2] == pytest.approx(0.0, abs=1e-6)


def measured(offset, seed=0, subjects=20):
    rng = np.random.default_rng(seed)
    who = rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(subjects, 8, 2))
    x = np.concatenate([who, who]) + 0.02 * rng.normal(size=(2 * subjects, 8, 2))
    x[subjects:, 2] += offset
    return x, np.tile(np.arange(subjects), 2), np.repeat(["ann", "bob"], subjects)


def test_a_biased_observer_is_found():
    biased = measurement_error(*measured(0.05), 199)
    assert biased.table["replicate"].p < 0.02
    assert np.abs(biased.offsets[1]).max(axis=1).argmax() == 2
    assert "systematic share" in str(biased)
    with pytest.raises(DefgpaError, match="every subject once"):
        measurement_error(measured(0.0)[0], np.arange(40), np.repeat(["a", "b"], 20))


def test_replicates_that_are_copies_have_no_error_to_measure():
    x, who, observer = measured(0.0)
    x[20:] = x[:20]
    with pytest.raises(ShapeError, match="no random error to measure"):
        measurement_error(x, who, observer, 9)


def test_replicates_change_places_within_their_subject():
    """With two replicates F under chance is one of the 2^s of exchanged pairs, each as likely."""
    x, who, observer = measured(0.05, subjects=4)
    actual = measurement_error(x, who, observer, 400)
    values, counts = np.unique(actual.permuted.round(9), return_counts=True)
    assert len(values) == 8  # exchanging all pairs changes nothing
    assert counts.min() > 25


def test_sums_of_squares_of_error_are_those_of_the_model():
    x, who, observer = measured(0.03)
    actual = measurement_error(x, who, observer, 9)
    data = {"who": list(map(str, who)), "observer": list(observer)}
    model = procrustes_anova("shape ~ who + observer", x, data, 9)
    for mine, term in (("subject", "who"), ("replicate", "observer"), ("Residuals", "Residuals")):
        assert actual.table[mine].ss == pytest.approx(model[term].ss)
    assert actual.table["replicate"].f == pytest.approx(model["observer"].f)
    subject, systematic, error = (
        actual.table[name].ss for name in ("subject", "replicate", "Residuals")
    )
    assert actual.signal_to_noise == pytest.approx(subject / error)
    assert actual.eta_squared == pytest.approx(systematic / (systematic + error))
    assert [row.df for row in actual.table] == [19, 1, 19, 39]


def test_size_differs_between_sides_where_it_was_made_to():
    x, who, side = measured(0.0)
    x[20:] *= 1.1
    actual = symmetry(x, individual=who, side=side, n_permutations=99)
    assert actual.size_table["side"].p < 0.05
    logs = np.log(centroid_sizes(x)).reshape(2, 20)  # of both sides
    individual = 2 * np.sum((logs.mean(axis=0) - logs.mean()) ** 2)
    between = 20 * np.sum((logs.mean(axis=1) - logs.mean()) ** 2)
    rows = [actual.size_table[term].ss for term in ("individual", "side", "Total")]
    np.testing.assert_allclose(rows, [individual, between, 40 * logs.var()], rtol=1e-9)
    assert "Asymmetry of size" in str(actual)


def test_printed_tables_of_long_group_names_keep_to_eighty_columns():
    periods = ["Neolithic farmers, Central Europe", "Upper Palaeolithic hunter-gatherers"]
    names = [f"{period} ({sex})" for period in periods for sex in ("female", "male")]
    points = np.random.default_rng(0).normal(size=(8, 2)) + 0.1 * np.random.default_rng(1).normal(
        size=(24, 8, 2)
    )
    groups = names * 6
    for result in (
        statistics.classify(points, groups, 3, 9),
        statistics.disparity(points, groups, n_permutations=9),
    ):
        text = str(result)
        tables = text.split("\n\n", 1)[1]  # the sentences above them are wrapped by the terminal
        assert max(map(len, tables.splitlines())) <= 80
        words = " ".join(text.split())
        for a in range(4):
            for b in range(a):
                pairs = (f"{names[a]} – {names[b]}", f"{names[b]} – {names[a]}")
                assert any(pair in words for pair in pairs)


@pytest.mark.parametrize(
    ("order", "what"),
    [([0, 1, 0, 1], "specimens of each group"), ([0, 1, 1, 0], "groups have the same mean")],
)
def test_groups_that_no_variate_parts_are_refused(order, what):
    shapes = np.random.default_rng(0).normal(size=(2, 6, 2))
    with pytest.raises(ShapeError, match=what):
        statistics.classify(shapes[order], ["a", "b", "a", "b"])


def test_numbers_of_a_printed_column_have_one_number_of_decimals(plethodon):
    points, data = plethodon
    model = procrustes_anova("shape ~ species * site", points, data, 9)
    text = str(model.pairwise("species:site"))
    rows = [line.split()[-3:] for line in text.splitlines() if " – " in line]
    assert len(rows) == 6
    for column in zip(*rows, strict=True):
        assert len({len(cell.rpartition(".")[2]) for cell in column}) == 1
