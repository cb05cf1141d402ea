"""Phylogenies: reading, matching, and the numbers of geomorph 4.1.0 (tests/oracle_geomorph)."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.stats import kstest, multivariate_normal

from defgpa import DefgpaError, Shapes
from defgpa.statistics import (
    average_species,
    build_sample,
    evolutionary_rates,
    phylogenetic_components,
    phylogenetic_signal,
    procrustes_anova,
    read_tree,
)
from defgpa.statistics.permutation import Permutations
from defgpa.statistics.phylogenetic_signal import _permute_likelihood
from r_permutations import use_permutations_of_r
from support import EXACT, geomorph_numbers, shared_data

ORACLE = {"rtol": 2e-5, "atol": 1e-12}  # geomorph stops its superimposition early
SPECIES = (
    "P_cinereus", "P_electromorphus", "P_hoffmani", "P_hubrichti", "P_nettingi",
    "P_richmondi", "P_serratus", "P_shenandoah", "P_virginia",
)  # fmt: skip
NEWICK = re.search(r"\(P_serratus.*;", geomorph_numbers("phylogeny"))[0]
FOUR = "((a:1,b:2):3,(c:4,d:5):6);"
LADDER = "(a:4.5,(b:3,(c:2,((d:1,e:0.5):1,(f:1,(g:0.3,h:1.1):0.2):0.4):0.3):1):0.7);"
NEXUS = """#NEXUS
BEGIN TREES;
  TRANSLATE 1 a, 2 b, 3 c, 4 d;
  TREE one = [&R] ((1:1,2:2):3,(3:4,4:5):6);
END;
"""
EIGHT = "(((a:1,b:1):1,(c:1,d:1):1):1,((e:1,f:1):1,(g:1,h:1):1):1);"


@pytest.fixture(scope="module")
def salamanders():
    with np.load(shared_data("plethspecies2d.npz"), allow_pickle=False) as archive:
        return build_sample(Shapes(archive["points"], names=SPECIES))


def read_rows(title: str, n_columns: int) -> np.ndarray:
    """The rows of figures after a line of the phylogeny block, up to the next line of words."""
    rows = []
    for line in geomorph_numbers("phylogeny").split(f"\n{title}\n")[1].splitlines():
        words = line.split()
        if not words or words[0].startswith("Comp"):
            continue
        figures = words[-n_columns:]
        if not all(re.fullmatch(r"-?[\d.e-]+", figure) for figure in figures):
            break
        rows.append([float(figure) for figure in figures])
    return np.array(rows)


def assert_equal_up_to_sign(actual: np.ndarray, expected: np.ndarray) -> None:
    signs = np.sign((actual * expected).sum(axis=0))
    np.testing.assert_allclose(actual * signs, expected, rtol=1e-4, atol=2e-7)


class TestReadTree:
    def test_covariance_is_the_length_of_shared_paths(self):
        tree = read_tree(FOUR)
        expected = [[4, 3, 0, 0], [3, 5, 0, 0], [0, 0, 10, 6], [0, 0, 6, 11]]
        np.testing.assert_allclose(tree.covariance, expected, **EXACT)

    @pytest.mark.parametrize("name", ["t.nwk", "t.nex"])
    def test_newick_and_nexus_files_give_the_same_tree(self, tmp_path, name):
        text = FOUR
        if name.endswith("nex"):
            text = f"#NEXUS\nBEGIN TREES;\n  TREE one = [&R] {FOUR}\nEND;\n"
        (tmp_path / name).write_text(text)
        tree = read_tree(tmp_path / name)
        assert tree.tips == ("a", "b", "c", "d")
        np.testing.assert_allclose(tree.covariance, read_tree(FOUR).covariance, **EXACT)

    def test_underscores_of_names_stay(self):
        assert "P_serratus" in read_tree(NEWICK).tips

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("((a:1,b:1):1,(c:1,d):1);", "length of at least 0 for every branch"),
            ("((a:1,a:1):1,(c:1,d:1):1);", "tree"),
            ("((a:1,b:1:1,(c:1,d:1):1);", "Newick"),
        ],
    )
    def test_malformed_trees_are_refused_in_one_sentence(self, text, message):
        with pytest.raises(DefgpaError, match=message):
            read_tree(text)

    @pytest.mark.parametrize("head", ["", "#NEXUS\nbegin trees;\ntree one = "])
    def test_trees_with_more_tips_than_memory_holds_are_refused_unread(self, tmp_path, head):
        path = tmp_path / "star.nwk"
        path.write_text(head + "(" + ",".join(f"t{k}:1" for k in range(20_001)) + ");")
        with pytest.raises(
            DefgpaError, match=r"star\.nwk: the tree has about 20,001 tips; at most"
        ):
            read_tree(path)

    def test_missing_file_is_named(self, tmp_path):
        with pytest.raises(DefgpaError, match=r"absent\.nwk"):
            read_tree(tmp_path / "absent.nwk")

    def test_tree_of_some_tips_keeps_their_covariance(self):
        tree = read_tree(EIGHT).take(list("hca"))
        full = read_tree(EIGHT).covariance
        tips = np.array([7, 2, 0])
        np.testing.assert_allclose(tree.covariance, full[np.ix_(tips, tips)], **EXACT)

    def test_pruned_tree_starts_at_the_last_common_ancestor(self):
        tree = read_tree(EIGHT).take(list("abcd"))
        np.testing.assert_allclose(np.diag(tree.covariance), 2.0, **EXACT)

    @pytest.mark.parametrize("text", [FOUR, NEXUS], ids=["newick", "nexus"])
    def test_a_byte_order_mark_is_no_part_of_a_tree(self, text, tmp_path):
        """Windows puts one before what its editors save."""
        (tmp_path / "tree.tre").write_text(text.replace("\n", "\r\n"), encoding="utf-8-sig")
        assert read_tree(tmp_path / "tree.tre").covariance[0].tolist() == [4.0, 3.0, 0.0, 0.0]

    def test_tips_that_are_not_apart_are_refused(self):
        with pytest.raises(DefgpaError, match="singular"):
            _ = read_tree("((a:0,b:0):1,(c:1,d:1):1);").covariance


class TestMatching:
    shapes = Shapes(np.random.default_rng(0).normal(size=(8, 6, 2)), names=list("abcdefgh"))

    def test_order_of_specimens_does_not_matter(self):
        order = [5, 2, 7, 0, 1, 3, 6, 4]
        straight = phylogenetic_signal(self.shapes, EIGHT, n_permutations=9)
        turned = phylogenetic_signal(self.shapes.take(order), EIGHT, n_permutations=9)
        assert straight.k == pytest.approx(turned.k, rel=1e-6)

    def test_specimen_without_a_tip_is_named(self):
        renamed = Shapes(self.shapes.points, names=[*"abcdefg", "zebra"])
        with pytest.raises(
            DefgpaError,
            match=r"no tip called 'zebra'; its tips without a specimen are 'h'\. .*prune",
        ):
            phylogenetic_signal(renamed, EIGHT)

    def test_tip_without_a_specimen_is_named(self):
        with pytest.raises(DefgpaError, match="no specimen called 'h'"):
            phylogenetic_signal(self.shapes.take(range(7)), EIGHT)

    def test_blanks_and_underscores_of_names_are_the_same(self):
        """Newick has underscores where specimens and species have blanks, and quotes of blanks."""
        tree = "((Homo_sapiens:1,'Pan paniscus':2):3,(Pan_troglodytes:4,d_:5):6);"
        names = ["Homo sapiens", "Pan_paniscus", "Pan_troglodytes", "d "]
        shapes = Shapes(self.shapes.points[:4], names=names)
        expected = phylogenetic_signal(
            Shapes(shapes.points, names=list("abcd")), FOUR, n_permutations=9
        )
        for x, species in ((shapes, None), (shapes.points, names)):
            actual = phylogenetic_signal(x, tree, species, n_permutations=9)
            assert actual.k == pytest.approx(expected.k)
            assert actual.species == tuple(names)
        model = procrustes_anova("shape ~ z", shapes, {"z": [1.0, 2, 4, 3]}, 9, tree=tree)
        assert model["z"].df == 1

    def test_names_that_differ_in_underscores_only_are_told_apart(self):
        tree = "((a_1:1,'a 1':2):3,(c:4,d:5):6);"
        shapes = Shapes(self.shapes.points[:4], names=["a_1", "a 1", "c", "d"])
        assert phylogenetic_signal(shapes, tree, n_permutations=9).species == shapes.names
        doubtful = Shapes(self.shapes.points[:4], names=["a_b_1", "a b_1", "c", "d"])
        with pytest.raises(DefgpaError, match="no tip called 'a_b_1', 'a b_1'"):
            phylogenetic_signal(doubtful, "(('a b 1':1,b:2):3,(c:4,d:5):6);")

    def test_prune_leaves_out_both(self):
        renamed = Shapes(self.shapes.points, names=[*"abcdefg", "zebra"])
        assert phylogenetic_signal(renamed, EIGHT, prune=True).species == tuple("abcdefg")

    def test_means_of_species_are_analysed(self):
        doubled = np.repeat(self.shapes.points, 2, axis=0)
        species = [name for name in "abcdefgh" for _ in range(2)]
        means = phylogenetic_signal(doubled, EIGHT, species, n_permutations=9)
        single = phylogenetic_signal(self.shapes, EIGHT, n_permutations=9)
        assert means.k == pytest.approx(single.k, rel=1e-6)
        assert "16 specimens, averaged to 8 species" in str(means)

    def test_columns_of_species_are_averaged(self):
        data = {"mass": [1.0, 3.0, 2.0, 2.0], "sex": list("fffm"), "home": list("xxyy")}
        sample = average_species(self.shapes.points[:4], list("aabb"), data)
        assert sample.shapes.metadata["variables"] == (
            {"mass": "2.0", "home": "x"},
            {"mass": "2.0", "home": "y"},
        )


class TestSignal:
    def test_k_equals_geomorph(self, salamanders, monkeypatch):
        use_permutations_of_r(monkeypatch, 9)
        signal = phylogenetic_signal(salamanders, NEWICK)
        assert signal.k == pytest.approx(0.9572990836, rel=2e-5)
        assert signal.p == 0.008

    @pytest.mark.parametrize("text", [EIGHT, LADDER])
    def test_permuted_k_equals_that_of_permuted_shapes(self, text):
        from defgpa.statistics.phylogenetic_signal import permute_signal

        tree = read_tree(text)
        Y = np.random.default_rng(1).normal(size=(8, 5))
        Y -= Y.mean(axis=0)
        _, permuted = permute_signal(Y, tree, Permutations(4, seed=3))
        orders = []
        Permutations(4, seed=3).each(8, 8, lambda block: orders.append(block) or block)
        for k, order in zip(permuted, orders[0], strict=True):
            E = Y[order] - tree.root_weights @ Y[order]
            precision = np.linalg.inv(tree.covariance)
            expected = (np.trace(tree.covariance) - 8 / precision.sum()) / 7
            by_definition = (E**2).sum() / np.trace(E.T @ precision @ E) / expected
            assert k == pytest.approx(by_definition, rel=1e-9)

    def test_likelihood_of_all_components_says_nothing(self):
        """With n − 1 components every permutation has the same likelihood: they are left out."""
        signal = phylogenetic_signal(TestMatching.shapes, EIGHT, n_permutations=19)
        assert signal.n_components == 6
        assert np.ptp(signal.permuted) > 1e-3

    @pytest.mark.parametrize("n_components", [1, 3, 4, 7])
    @pytest.mark.parametrize("text", [EIGHT, LADDER])
    def test_likelihood_by_its_definition(self, n_components, text):
        """Many components are permuted as the few directions that they lack."""
        tree = read_tree(text)
        Y = np.random.default_rng(3).normal(size=(8, n_components))
        Y -= Y.mean(axis=0)
        C = 0.6 * tree.covariance + 0.4 * np.diag(np.diag(tree.covariance))
        precision = np.linalg.inv(C)
        orders = []
        permutations = Permutations(6, 1)
        actual, permuted = _permute_likelihood(Y, tree, 0.6, permutations)
        permutations.each(8, 1, lambda order: orders.extend(order) or order)
        for order, value in zip([np.arange(8), *orders], [actual, *permuted], strict=True):
            E = Y[order] - precision.sum(axis=0) @ Y[order] / precision.sum()
            R = E.T @ precision @ E / 8
            expected = multivariate_normal(np.zeros(8 * n_components), np.kron(R, C)).logpdf(
                E.T.ravel()
            )
            assert value == pytest.approx(expected)

    def test_likelihood_is_of_aligned_components_but_for_the_last(self):
        shapes = TestMatching.shapes
        signal = phylogenetic_signal(shapes, LADDER, n_permutations=19, scaling=0.7, n_components=2)
        aligned = phylogenetic_components(shapes, LADDER, method="aligned").scores[:, :2]
        tree = read_tree(LADDER).take(shapes.names)
        expected, _ = _permute_likelihood(aligned, tree, 0.7, Permutations(1))
        assert signal.observed == pytest.approx(expected)

    def test_the_scaling_with_the_largest_effect_is_chosen(self):
        """By a spline through the effects of a tenth, two tenths and so on, as geomorph does."""
        inner = []
        for seed in range(5):
            tree = read_tree(LADDER)
            C = 0.5 * tree.covariance + 0.5 * np.diag(np.diag(tree.covariance))
            noise = np.random.default_rng(seed).normal(size=(8, 12))
            states = (np.linalg.cholesky(C) @ noise).reshape(8, 6, 2)
            shapes = np.random.default_rng(9).normal(size=(6, 2)) + 0.02 * states
            chosen = phylogenetic_signal(Shapes(shapes, names=tree.tips), tree, n_permutations=100)
            scalings = np.arange(1, 11) / 10
            sizes = [
                phylogenetic_signal(
                    Shapes(shapes, names=tree.tips), tree, n_permutations=100, scaling=scaling
                ).z
                for scaling in scalings
            ]
            between = np.linspace(0.1, 1, 1000)
            expected = between[np.argmax(CubicSpline(scalings, sizes)(between))]
            assert chosen.scaling == pytest.approx(expected, abs=0.006)
            inner.append(0.1 < chosen.scaling < 1)
        assert any(inner)

    def test_fixed_scaling_of_one_component_follows_the_likelihood(self):
        signal = phylogenetic_signal(
            TestMatching.shapes, EIGHT, n_permutations=19, scaling=0.5, n_components=1
        )
        assert signal.scaling == 0.5
        assert signal.n_components == 1

    def test_p_is_uniform_without_signal(self):
        p = []
        for seed in range(80):
            rng = np.random.default_rng([5, seed])
            shapes = rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(8, 8, 2))
            signal = phylogenetic_signal(shapes, EIGHT, list("abcdefgh"), 39, seed, scaling=1.0)
            p.append(signal.p)
        assert kstest(p, "uniform").statistic < 0.15


class TestComponents:
    def test_phylomorphospace_equals_geomorph(self, salamanders):
        actual = phylogenetic_components(salamanders, NEWICK)
        rows = read_rows("phylomorphospace ancestors PC1-2", 2)
        assert rows.shape == (17, 2)
        assert_equal_up_to_sign(
            np.concatenate([actual.ancestor_scores, actual.scores])[:, :2], rows
        )

    @pytest.mark.parametrize(
        ("method", "title"), [("phylogenetic", "phylo PCA"), ("aligned", "PaCA")]
    )
    def test_other_components_equal_geomorph(self, salamanders, method, title):
        actual = phylogenetic_components(salamanders, NEWICK, method=method)
        variances = read_rows(title, 4)[0]
        np.testing.assert_allclose(actual.variances[:4], variances, **ORACLE)
        text = geomorph_numbers("phylogeny").split(f"\n{title}\n")[1].split("Comp2\n", 2)[1]
        scores = [list(map(float, line.split()[1:])) for line in text.splitlines()[:9]]
        assert_equal_up_to_sign(actual.scores[:, :2], np.array(scores))

    def test_ancestors_lie_where_their_scores_are(self, salamanders):
        actual = phylogenetic_components(salamanders, NEWICK)
        rebuilt = actual.center + np.tensordot(actual.ancestor_scores, actual.components, 1)
        np.testing.assert_allclose(rebuilt, actual.ancestors, atol=1e-9)

    def test_ancestor_between_two_equal_branches_weighs_them_equally(self):
        tree = read_tree("((a:1,b:1):0.0000001,(c:1,d:1):100);")
        states = np.array([[0.0], [2.0], [5.0], [5.0]])
        assert tree.estimate_ancestors(states)[1, 0] == pytest.approx(1.0, abs=0.1)

    def test_ancestors_minimise_squared_change_over_branch_length(self):
        tree = read_tree("((a:1,b:2):2,(c:2,(d:1,e:1.5):1):1);")
        Y = np.random.default_rng(0).normal(size=(5, 3))
        states = np.vstack([Y, tree.estimate_ancestors(Y)])

        def cost(nodes):
            parent, child = tree.branches.T
            return (((nodes[parent] - nodes[child]) ** 2).sum(axis=1) / tree.lengths[child]).sum()

        rng = np.random.default_rng(1)
        for _ in range(50):
            moved = states.copy()
            moved[5:] += 0.01 * rng.normal(size=moved[5:].shape)
            assert cost(moved) > cost(states)

    def test_table_names_tips_and_nodes(self, salamanders):
        actual = phylogenetic_components(salamanders, NEWICK)
        lines = actual.to_csv().splitlines()
        assert lines[0].startswith("node,component_1")
        assert lines[10].startswith("root,")
        assert len(lines) == 18


class TestRates:
    def test_rates_equal_geomorph(self, salamanders):
        groups = [int(name in ("P_hoffmani", "P_richmondi", "P_virginia")) for name in SPECIES]
        actual = evolutionary_rates(salamanders, NEWICK, groups)
        np.testing.assert_allclose(actual.rates, [2.318568946e-06, 2.256108004e-06], **ORACLE)
        assert actual.ratio == pytest.approx(1.027685262, rel=2e-5)
        assert actual.p == pytest.approx(0.9655, abs=0.04)

    def test_faster_group_is_found(self):
        rng = np.random.default_rng(2)
        shapes = rng.normal(size=(6, 2)) + 0.01 * rng.normal(size=(8, 6, 2))
        shapes[4:] += 0.1 * rng.normal(size=(4, 6, 2))
        actual = evolutionary_rates(shapes, EIGHT, list("ssssffff"), list("abcdefgh"))
        assert actual.p < 0.05

    def test_species_in_two_groups_is_refused(self):
        doubled = np.repeat(TestMatching.shapes.points, 2, axis=0)
        species = [name for name in "abcdefgh" for _ in range(2)]
        with pytest.raises(DefgpaError, match="'a' are in different groups"):
            evolutionary_rates(doubled, EIGHT, list("xyxxxxxxyyyyyyyy"), species)


class TestGeneralisedLeastSquares:
    def test_effects_equal_generalised_least_squares(self, salamanders):
        """F and SS by (XᵀC⁻¹X)⁻¹XᵀC⁻¹Y, whatever the factor of C."""
        model = procrustes_anova("shape ~ log(size)", salamanders, tree=NEWICK)
        C = read_tree(NEWICK).take(SPECIES).covariance
        precision, Y = np.linalg.inv(C), salamanders.tangents.reshape(9, -1)
        left = []
        for X in (np.ones((9, 1)), np.column_stack([np.ones(9), np.log(salamanders.sizes)])):
            E = Y - X @ np.linalg.solve(X.T @ precision @ X, X.T @ precision @ Y)
            left.append(np.trace(E.T @ precision @ E))
        assert model["Total"].ss == pytest.approx(left[0], rel=1e-9)
        assert model["log(size)"].ss == pytest.approx(left[0] - left[1], rel=1e-9)
        assert model["log(size)"].p == pytest.approx(0.299, abs=0.1)  # geomorph

    def test_permuted_f_equals_that_of_permuted_residuals(self, salamanders):
        """By definition: whiten, permute what the whitened intercept leaves, and fit again."""
        model = procrustes_anova("shape ~ log(size)", salamanders, None, 5, seed=4, tree=NEWICK)
        W = read_tree(NEWICK).take(SPECIES).whitening
        X = W @ np.column_stack([np.ones(9), np.log(salamanders.sizes)])
        Y = W @ salamanders.tangents.reshape(9, -1)

        def residuals(columns, values):
            return values - columns @ np.linalg.lstsq(columns, values, rcond=None)[0]

        orders = []
        Permutations(5, 4).each(9, 2, lambda block: orders.append(block) or block)
        left = residuals(X[:, :1], Y)
        for order, f in zip(orders[0].argsort(axis=1), model.ratios.permuted[:, 0], strict=True):
            reduced = (residuals(X[:, :1], left[order]) ** 2).sum()
            full = (residuals(X, left[order]) ** 2).sum()
            assert f == pytest.approx((reduced - full) / (full / 7), rel=1e-9)

    def test_tree_models_of_rrpp_equal_geomorph(self, salamanders, monkeypatch):
        """geomorph's table, whose shapes are centred after whitening by a triangular factor."""
        table = geomorph_numbers("phylogeny").split("\nlog(Csize)")[1].splitlines()
        _, ss, _, r_squared, f, z, p = map(float, table[0].split())
        total = float(table[2].split()[2])
        use_permutations_of_r(monkeypatch, 9, inverse=True)
        model = procrustes_anova("shape ~ log(size)", salamanders, tree=NEWICK, gls="rrpp")
        effect = model["log(size)"]
        np.testing.assert_allclose([effect.ss, model["Total"].ss], [ss, total], **ORACLE)
        np.testing.assert_allclose([effect.r_squared, effect.f], [r_squared, f], **ORACLE)
        assert effect.p == pytest.approx(p, abs=1e-9)
        assert effect.z == pytest.approx(z, rel=2e-4)
        assert "as RRPP 2.1 does" in str(model)

    def test_table_of_rrpp_depends_on_the_order_of_species(self, salamanders):
        """The reason why it is no default: the exact one does not."""
        turned = salamanders.take(list(range(9))[::-1])
        ss = {
            (name, gls): procrustes_anova("shape ~ log(size)", x, None, 1, tree=NEWICK, gls=gls)[
                "log(size)"
            ].ss
            for name, x in (("straight", salamanders), ("turned", turned))
            for gls in ("exact", "rrpp")
        }
        assert ss["straight", "exact"] == pytest.approx(ss["turned", "exact"], rel=1e-6)
        assert ss["straight", "rrpp"] != pytest.approx(ss["turned", "rrpp"], rel=0.01)

    def test_rrpp_without_a_covariance_is_refused(self):
        with pytest.raises(DefgpaError, match="needs a 'tree'"):
            procrustes_anova("shape ~ 1", TestMatching.shapes, gls="rrpp")
        with pytest.raises(DefgpaError, match="'exact' or 'rrpp'"):
            procrustes_anova("shape ~ 1", TestMatching.shapes, tree=EIGHT, gls="ols")

    def test_rows_of_data_follow_their_specimens(self):
        data = {"dose": np.arange(8.0)}
        straight = procrustes_anova("shape ~ dose", TestMatching.shapes, data, 9, tree=EIGHT)
        names = [*"abcdefg", "zebra"]
        renamed = Shapes(TestMatching.shapes.points, names=names)
        pruned = procrustes_anova("shape ~ dose", renamed, data, 9, tree=EIGHT, prune=True)
        assert straight["Total"].df == 7
        assert pruned["Total"].df == 6
        assert pruned.design.data["dose"].tolist() == [0, 1, 2, 3, 4, 5, 6]

    def test_means_of_species_take_their_data_along(self):
        doubled = np.repeat(TestMatching.shapes.points, 2, axis=0)
        species = [name for name in "abcdefgh" for _ in range(2)]
        means = average_species(doubled, species, {"dose": np.repeat(np.arange(8.0), 2)})
        model = procrustes_anova("shape ~ dose", means, n_permutations=9, tree=EIGHT)
        assert model["dose"].df == 1
        assert model["Total"].df == 7

    def test_tree_and_covariance_exclude_each_other(self):
        with pytest.raises(DefgpaError, match="either a 'tree' or a 'covariance'"):
            procrustes_anova("shape ~ 1", TestMatching.shapes, tree=EIGHT, covariance=np.eye(8))
