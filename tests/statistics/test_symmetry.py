"""Symmetry and repeatability: established numbers, the definitions by hand, invariance."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import kstest

import defgpa
from defgpa import DefgpaError, ShapeError, Shapes
from defgpa.statistics import find_pairs, repeatability, symmetry, tangent_space
from defgpa.statistics.permutation import Permutations, p_value
from defgpa.statistics.two_sides import _permute_asymmetric, _permute_sides
from defgpa.statistics.two_way import TwoWay
from defgpa.statistics.variance_ratios import RESIDUAL, permute_ratios
from support import EXACT, PARITY, moved, rotation, shared_data, shared_points, warned_of

BONE_PAIRS = [(3, 2), (5, 4), (7, 6)]
MOTH = np.array([[0, 2], [0, -1], [-2, 1], [2, 1], [-1, -2], [1, -2.0], [-0.5, 0.3], [0.5, 0.3]])
MOTH_PAIRS = [(2, 3), (4, 5), (6, 7)]


def archive(name):
    with np.load(shared_data(f"{name}.npz"), allow_pickle=False) as actual:
        return dict(actual)


@pytest.fixture(scope="module")
def mosquito():
    return archive("mosquito2d")


@pytest.fixture(scope="module")
def lizards():
    return archive("lizards2d")


def wings(data):
    return {key: data[key] for key in ("individual", "side", "replicate")}


def moths(n=12, seed=0, noise=0.02):
    return MOTH + noise * np.random.default_rng(seed).normal(size=(n, *MOTH.shape))


# Established numbers


def test_mosquito_wings_have_the_matching_symmetry_of_geomorph(mosquito):
    actual = symmetry(mosquito["points"], **wings(mosquito))
    rows = [actual[term] for term in ("individual", "side", "individual:side", "Residuals")]
    expected = [0.104888, 0.003221, 0.038990, 0.083259]
    np.testing.assert_allclose([row.ss for row in rows], expected, atol=1e-6)
    np.testing.assert_allclose([row.f for row in rows[:3]], [2.690, 0.743, 1.041], atol=1e-3)
    assert [row.df for row in rows] == [9, 1, 9, 20]
    assert actual.kind == "matching"
    assert actual.mirrored_side is None
    assert rows[0].p < 0.05 < rows[1].p


def test_bones_have_the_object_symmetry_of_bilat_symmetry():
    actual = symmetry(shared_points("bones3d"), pairs=BONE_PAIRS)
    rows = [actual[term].ss for term in ("individual", "side", "individual:side")]
    np.testing.assert_allclose(rows, [0.39040, 0.00321, 0.04476], atol=1e-5)
    np.testing.assert_allclose(
        [
            np.sum((actual.symmetric - actual.mean) ** 2),
            80 * actual.directional_index**2,
            80 * actual.fluctuating_index**2,
        ],
        rows,
        **EXACT,
    )
    assert np.isnan(actual["individual:side"].f)  # nothing to measure it against
    assert "Residuals" not in [row.term for row in actual.table]


def test_pairs_of_bones_are_found():
    actual = symmetry(shared_points("bones3d"), n_permutations=1)
    assert actual.pairs == ((2, 3), (4, 5), (6, 7))
    assert actual.mirror_pairs.midline == (0, 1, 8, 9)
    assert actual.mirror_pairs.error < 0.02


def test_pairs_of_lizards_are_found(lizards):
    actual = find_pairs(tangent_space(lizards["points"]).mean(axis=0))
    assert sorted(actual.pairs) == sorted(tuple(sorted(pair)) for pair in lizards["pairs"].tolist())
    assert actual.next_error > 5 * actual.error


# Definitions


def test_the_components_of_object_symmetry_by_hand():
    x = moths()
    actual = symmetry(x, pairs=MOTH_PAIRS, n_permutations=1)
    order = [0, 1, 3, 2, 5, 4, 7, 6]
    tangent = tangent_space(np.concatenate([x, (x * [-1, 1])[:, order]]))
    a, b = tangent[:12], tangent[12:]
    np.testing.assert_allclose(actual.symmetric, (a + b) / 2, **EXACT)
    np.testing.assert_allclose(actual.asymmetric, (a - b) / 2, **EXACT)
    np.testing.assert_allclose(actual.index, np.linalg.norm((a - b) / 2, axis=(1, 2)), **EXACT)
    da = ((a - b) / 2).mean(axis=0)
    np.testing.assert_allclose(actual.directional, da, **EXACT)
    signed = np.tensordot((a - b) / 2, da, axes=2) / np.linalg.norm(da)
    np.testing.assert_allclose(actual.signed_index, signed, **EXACT)
    np.testing.assert_allclose(actual.signed_index.mean(), actual.directional_index, **EXACT)
    np.testing.assert_allclose(actual.fluctuating.mean(axis=0), 0.0, atol=1e-12)


def test_a_symmetric_set_has_no_asymmetry_at_all():
    rng = np.random.default_rng(1)
    half = MOTH + 0.1 * rng.normal(size=(10, *MOTH.shape))
    order = [0, 1, 3, 2, 5, 4, 7, 6]
    exact = (half + (half * [-1, 1])[:, order]) / 2
    actual = symmetry(moved(exact, seed=2, scales=(0.5, 2.0)), pairs=MOTH_PAIRS, n_permutations=9)
    assert actual.index.max() < 1e-9
    assert actual.directional_index < 1e-9
    assert actual.fluctuating_index < 1e-9
    assert actual["individual"].r_squared == pytest.approx(1.0)
    assert actual["side"].ss < 1e-18
    assert str(actual)


def test_a_constant_difference_of_sides_is_directional_asymmetry():
    rng = np.random.default_rng(3)
    who = np.repeat(np.arange(10), 2)
    base = rng.normal(size=(9, 2)) + 0.05 * rng.normal(size=(10, 9, 2))
    shift = 0.02 * rng.normal(size=(9, 2))
    side = np.tile(["left", "right"], 10)
    x = base[who] + np.where((side == "left")[:, None, None], shift, -shift)
    x += 1e-4 * rng.normal(size=x.shape)
    actual = symmetry(x, individual=who, side=side)
    assert actual["side"].p == 0.001
    assert actual.directional_index > 20 * actual.fluctuating_index
    swapped = symmetry(x, individual=who, side=np.tile(["right", "left"], 10), n_permutations=1)
    np.testing.assert_allclose(swapped.directional, actual.directional, **EXACT)  # order of sight
    order = np.arange(20).reshape(10, 2)[:, ::-1].ravel()
    reordered = symmetry(x[order], individual=who[order], side=side[order], n_permutations=1)
    assert reordered.directional_index == pytest.approx(actual.directional_index)


def test_group_sums_are_the_projections_of_dense_columns_though_cells_are_uneven(make_terms):
    rng = np.random.default_rng(4)
    codes = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3])
    sides = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0])
    who, which = (np.eye(k)[item] for k, item in ((4, codes), (2, sides)))
    cells = (who[:, :, None] * which[:, None]).reshape(12, -1)
    dense = make_terms([who, which, cells])
    fast = TwoWay(codes, sides)
    assert fast.df == dense.df
    E, order = rng.normal(size=(12, 3)), rng.permutation(12)
    np.testing.assert_allclose(
        fast.sums(E, np.argsort(order)[None])[0], dense.sums(E - 0, order[None])[0], **EXACT
    )
    for before in range(3):
        np.testing.assert_allclose(
            fast.compute_residuals(before, E), dense.compute_residuals(before, E), **EXACT
        )


def test_replicates_become_the_residual(lizards):
    actual = symmetry(lizards["points"], lizards["pairs"], lizards["individual"])
    assert actual["individual:side"].p == 0.001
    assert actual["Residuals"].df == 98
    assert len(actual.individuals) == 49
    once = symmetry(lizards["points"][::2], lizards["pairs"], n_permutations=1)
    assert len(once.individuals) == 49


def test_turning_no_individual_around_gives_the_observed_ratio():
    who, side = np.repeat(np.arange(8), 4), np.tile([0, 1], 16)
    actual = symmetry(moths(32, seed=5), individual=who, side=side, n_permutations=9)
    k, total = 8, np.sum(actual.asymmetric**2)
    between = k * np.sum(actual.directional**2)
    np.testing.assert_allclose(actual["side"].f, (k - 1) * between / (total - between), **EXACT)
    chance = _permute_sides(actual.asymmetric.reshape(8, -1), actual["side"].f, Permutations(200))
    exact = [
        np.sum(np.mean(np.array(signs)[:, None, None] * actual.asymmetric, axis=0) ** 2) * k
        for signs in product([1, -1], repeat=8)
    ]
    ratios = np.array([(k - 1) * item / (total - item) for item in exact])
    assert np.isclose(chance[:, None], ratios).any(axis=1).all()  # each is one of the 2⁸
    assert len(np.unique(chance.round(9))) > 60


def test_p_of_directional_asymmetry_is_the_share_of_turned_sets():
    """By brute force: the sides of individuals change places, and F is computed anew."""
    who, side = np.repeat(np.arange(9), 2), np.tile(["l", "r"], 9)
    points = moths(18, seed=7)
    actual = symmetry(points, individual=who, side=side, seed=2, n_permutations=49)
    left, right = tangent_space(points).reshape(9, 2, -1).swapaxes(0, 1)
    ratios = []
    for signs in np.vstack([np.ones(9), Permutations(49, 2).signs(9)]):
        asymmetric = signs[:, None] * (left - right) / 2
        between = 9 * np.sum(asymmetric.mean(axis=0) ** 2)
        ratios.append(8 * between / (np.sum(asymmetric**2) - between))
    assert actual["side"].f == pytest.approx(ratios[0])
    p = np.mean(np.array(ratios) >= ratios[0] * (1 - 1e-9))
    assert 0.02 < p < 1
    assert actual["side"].p == pytest.approx(p)
    assert "Asymmetry of size" in str(actual)
    assert "size" not in str(symmetry(points, MOTH_PAIRS, n_permutations=1))


def test_p_of_both_asymmetries_is_uniform_where_there_is_none():
    who, side = np.repeat(np.arange(12), 4), np.tile([0, 1], 24)
    terms, p = TwoWay(who, side), []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        Y = 2 * rng.normal(size=(12, 4))[who] + rng.normal(size=(48, 4))
        actual = permute_ratios(Y, terms, (2, 2, RESIDUAL), Permutations(99, seed))
        asymmetric = (Y[0::2] - Y[1::2]).reshape(12, 2, 4).mean(axis=1) / 2
        turned = _permute_sides(asymmetric, actual.observed[1], Permutations(99, seed))
        p.append((p_value(actual.observed[1], turned), actual.p(2)))
    for item in np.array(p).T:
        assert kstest(item - 0.005, "uniform").pvalue > 0.05
        assert 0.02 < np.mean(item <= 0.1) < 0.2


def test_errors_of_replicates_are_no_fluctuating_asymmetry():
    """Symmetric parts of errors, which are larger here, say nothing of asymmetry."""
    who, p = np.arange(24) // 2, []
    for seed in range(60):
        rng = np.random.default_rng([8, seed])
        left = [0.5, 0.0] + 0.2 * np.random.default_rng(0).normal(size=(5, 2))
        left = left + 0.05 * rng.normal(size=(12, 5, 2))[who] + 0.02 * rng.normal(size=(24, 5, 2))
        x = np.concatenate([left, left * [-1.0, 1.0]], axis=1) + 0.002 * rng.normal(
            size=(24, 10, 2)
        )
        pairs = [(j, j + 5) for j in range(5)]
        p.append(symmetry(x, pairs, who, n_permutations=39, seed=seed)["individual:side"].p)
    assert kstest(p, "uniform").statistic < 0.18
    assert np.mean(np.array(p) <= 0.1) <= 0.2


def test_permuted_asymmetric_parts_give_the_ratios_of_permuted_configurations():
    """By brute force: configurations whose asymmetric parts have changed places."""
    who = np.arange(12) // 3
    rng = np.random.default_rng(4)
    symmetric, asymmetric = rng.normal(size=(2, 12, 6))
    terms = TwoWay(np.tile(who, 2), np.repeat([0, 1], 12))
    flat = np.concatenate([symmetric + asymmetric, symmetric - asymmetric])
    ratios = permute_ratios(flat, terms, (2, 2, RESIDUAL), Permutations(1))
    orders = []
    permutations = Permutations(5, 3)
    actual = _permute_asymmetric(flat, terms, ratios, permutations)
    permutations.each(12, 6, lambda order: orders.extend(order) or order)
    for order, ratio in zip(orders, actual, strict=True):
        moved_parts = asymmetric[order]
        other = np.concatenate([symmetric + moved_parts, symmetric - moved_parts])
        expected = permute_ratios(other, terms, (2, 2, RESIDUAL), Permutations(1)).observed[2]
        assert ratio == pytest.approx(expected)


# Invariance


def test_order_and_pose_do_not_matter(mosquito):
    order = np.random.default_rng(5).permutation(40)
    points = moved(mosquito["points"][order], seed=6, scales=(0.5, 3.0))
    actual = symmetry(points, **{key: values[order] for key, values in wings(mosquito).items()})
    expected = symmetry(mosquito["points"], **wings(mosquito))
    for row, item in zip(expected.table, actual.table, strict=True):
        np.testing.assert_allclose([item.ss], [row.ss], rtol=1e-8)
    assert actual.index[actual.individuals.index("7")] == pytest.approx(
        expected.index[expected.individuals.index("7")]
    )


def test_a_side_that_is_mirrored_in_space_is_noticed(mosquito):
    points = mosquito["points"].copy()
    points[mosquito["side"] == "2", :, 1] *= -1
    actual = symmetry(points, **wings(mosquito))
    assert actual.mirrored_side == "2"
    expected = symmetry(mosquito["points"], **wings(mosquito))
    for row, item in zip(expected.table, actual.table, strict=True):
        np.testing.assert_allclose([item.ss], [row.ss], rtol=1e-8)


def test_one_specimen_mirrored_against_its_side_is_named(mosquito):
    points = mosquito["points"].copy()
    points[3, :, 1] *= -1
    with warned_of("shape_4", "side"):
        symmetry(points, **wings(mosquito), n_permutations=1)


def test_a_whole_specimen_that_is_mirrored_is_named():
    x = moths(20)
    x[3, :, 0] *= -1
    with warned_of("Mirrored", "shape_4"):
        symmetry(x, pairs=MOTH_PAIRS, n_permutations=1)


@pytest.mark.parametrize("dim", [2, 3])
def test_pairs_are_found_in_any_pose_and_order(dim):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        flip = np.ones(dim)
        flip[0] = -1.0
        half = rng.normal(size=(14, dim)) + 0.75 * (1 - flip)
        middle = rng.normal(size=(5, dim)) * (flip > 0)
        complete = np.vstack([half, half * flip, middle]) + 0.01 * rng.normal(size=(33, dim))
        order = rng.permutation(33)
        actual = find_pairs(complete[order] @ rotation(rng, dim) * 7 + rng.normal(size=dim))
        place = np.argsort(order)
        expected = {tuple(sorted((int(place[k]), int(place[k + 14])))) for k in range(14)}
        assert set(actual.pairs) == expected
        assert set(actual.midline) == set(place[28:].tolist())


def test_pairs_of_a_mean_are_confirmed_by_the_shapes_it_is_of():
    x = moths(40)
    assert find_pairs(x).agreement == 1.0
    x[:2, [4, 6]] = x[:2, [6, 4]]  # exchanged on one side only
    actual = find_pairs(x)
    assert actual.pairs == tuple(MOTH_PAIRS)
    assert actual.agreement == 0.95
    wild = MOTH + 0.7 * np.random.default_rng(3).normal(size=(400, *MOTH.shape))
    assert find_pairs(wild.mean(axis=0)).pairs == tuple(MOTH_PAIRS)
    with pytest.raises(DefgpaError, match=r"only \d+ of 400 shapes pair"):
        find_pairs(wild)


def test_a_shape_without_a_mirror_plane_or_with_two_is_refused():
    with pytest.raises(DefgpaError, match="No plane mirrors"):
        find_pairs(np.random.default_rng(0).normal(size=(20, 2)))
    rectangle = np.array([[2, 1], [-2, 1], [2, -1], [-2, -1], [1.5, 0.2], [-1.5, 0.2],
                          [1.5, -0.2], [-1.5, -0.2]])  # fmt: skip
    with pytest.raises(DefgpaError, match="Two mirror planes"):
        find_pairs(rectangle)
    with pytest.raises(ShapeError, match="some size"):
        find_pairs(np.zeros((5, 2)))
    with pytest.raises(DefgpaError, match="No plane"):
        find_pairs(np.column_stack([np.random.default_rng(1).normal(size=(9, 2)), np.zeros(9)]))


# Input


def test_pairs_may_be_labels_even_where_labels_are_numbers():
    shapes = Shapes(moths())  # labels 1 … 8
    by_label = symmetry(shapes, pairs=[("3", "4"), ("5", "6"), ("7", "8")], n_permutations=1)
    by_number = symmetry(shapes, pairs=MOTH_PAIRS, n_permutations=1)
    assert by_label.pairs == by_number.pairs == tuple(MOTH_PAIRS)
    as_array = symmetry(shapes, pairs=np.array(MOTH_PAIRS), n_permutations=1)
    assert as_array["side"].ss == by_label["side"].ss


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"pairs": [(0, 1, 2)]}, "two landmarks"),
        ({"pairs": [(0, 9)]}, "number 9"),
        ({"pairs": [("1", "head")]}, "'head'"),
        ({"pairs": [(0, 1), (1, 2)]}, "more than one pair"),
        ({"pairs": []}, "no pair"),
        ({"pairs": MOTH_PAIRS, "side": list("lr") * 6}, "not both"),
        ({"side": list("lr") * 6}, "individual"),
        ({"side": list("lrx") * 4, "individual": range(12)}, "2 sides; got 3"),
        ({"side": list("lr") * 6, "individual": [*"aabbccddeefg"]}, "'f', 'g' has no|'g'|'f'"),
        (
            {"side": list("lr") * 6, "individual": list("aaaabbccddee"), "replicate": [1] * 12},
            "same replicate twice",
        ),
        ({"pairs": MOTH_PAIRS, "individual": ["a"] * 3}, "one entry per shape, 12; got 3"),
    ],
)
def test_what_does_not_fit_is_named(words, sentence):
    with pytest.raises(DefgpaError, match=sentence):
        symmetry(moths(), **words)


def test_missing_landmarks_are_completed_and_counted():
    x = moths()
    x[4, 2] = np.nan
    assert symmetry(x, pairs=MOTH_PAIRS, n_permutations=9).provenance.n_completed == 1
    aligned = defgpa.DefGPA(defgpa.Affine()).fit(x).alignment_
    assert symmetry(aligned, pairs=MOTH_PAIRS, n_permutations=9).kind == "object"


def test_indices_of_asymmetry_go_to_tables():
    actual = symmetry(moths(), pairs=MOTH_PAIRS, n_permutations=9)
    frame = actual.indices_to_pandas()
    np.testing.assert_allclose(frame["asymmetry"], actual.index)
    assert actual.indices_to_csv().splitlines()[0] == "individual,asymmetry,signed,fluctuating"
    assert actual.to_pandas().loc["side", "df"] == 1


# Repeatability


def test_repeatability_by_its_definition(lizards):
    actual = repeatability(lizards["points"], lizards["individual"])
    x = tangent_space(lizards["points"])
    who = lizards["individual"]
    among, within = np.zeros(28), np.zeros(28)
    for first in np.unique(who):
        item = x[who == first]
        among += len(item) * ((item.mean(axis=0) - x.mean(axis=0)) ** 2).sum(axis=1)
        within += ((item - item.mean(axis=0)) ** 2).sum(axis=(0, 2))
    ms, error = among / 48, within / 49
    s2 = (ms - error) / 2
    np.testing.assert_allclose(actual.per_landmark, s2 / (s2 + error), **EXACT)
    s2, error = s2.sum(), error.sum()
    np.testing.assert_allclose(actual.overall, s2 / (s2 + error), **EXACT)
    assert actual.overall > 0.9  # two photographs of the same lizard
    np.testing.assert_allclose(actual.error**2, within / 49, **EXACT)
    assert actual.table["individual"].f == pytest.approx(ms.sum() / error)
    assert actual.table["individual"].ms == pytest.approx(ms.sum())
    assert actual.table["Residuals"].ms == pytest.approx(error)
    assert [row.df for row in actual.table] == [48, 49, 97]
    shares = [actual.table[term].r_squared for term in ("individual", "Residuals")]
    assert shares == pytest.approx(np.array([among.sum(), within.sum()]) / (among + within).sum())
    np.testing.assert_allclose(actual.deviations.sum(axis=0), 0.0, atol=1e-9)


def test_repeatability_is_that_of_the_simulated_variances():
    rng = np.random.default_rng(7)
    who = np.repeat(np.arange(400), 3)
    base = 5 * rng.normal(size=(12, 2))
    x = base + 0.10 * rng.normal(size=(400, 12, 2))[who] + 0.05 * rng.normal(size=(1200, 12, 2))
    actual = repeatability(x, who)
    assert actual.overall == pytest.approx(0.8, abs=0.02)  # 0.10² / (0.10² + 0.05²)
    assert actual.replicates == 3.0


def test_shapes_that_do_not_vary_are_refused():
    with pytest.raises(ShapeError, match="do not vary"):
        repeatability(np.stack([MOTH] * 4), [0, 0, 1, 1])


def test_uneven_replicates_have_their_mean_number():
    who = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    actual = repeatability(moths(9), who)
    assert actual.replicates == pytest.approx((9 - (9 + 4 + 16) / 9) / 2)


def test_equal_replicates_are_perfectly_repeatable_and_order_does_not_matter(mosquito):
    who = np.repeat(np.arange(6), 2)
    x = moths(6)[who]
    assert repeatability(x, who).overall == pytest.approx(1.0)
    order = np.random.default_rng(8).permutation(40)
    first = repeatability(mosquito["points"], mosquito["individual"])
    reordered = repeatability(moved(mosquito["points"][order]), mosquito["individual"][order])
    np.testing.assert_allclose(first.per_landmark, reordered.per_landmark, **PARITY)
    assert "0.3087" in str(first)
    assert first.to_csv().splitlines()[0] == "landmark,repeatability,error"
    np.testing.assert_allclose(first.to_pandas()["error"], first.error)


@pytest.mark.parametrize("who", [range(9), [1] * 9, list("abc")])
def test_individuals_without_replicates_are_refused(who):
    with pytest.raises(ShapeError, match=r"more than once|one entry per shape"):
        repeatability(moths(9), who)


@pytest.mark.parametrize("shapes", [5, [1.0, 2.0], "moth", [[["a"]]], np.zeros((3, 4, 5))])
def test_pairs_of_what_is_no_shape_are_refused(shapes):
    with pytest.raises(ShapeError, match="Pairs are found in a shape"):
        find_pairs(shapes)
