"""Plots of covariation and phylogeny: the artists hold the figures of the results."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from defgpa import DefgpaError, Shapes, plot, statistics
from defgpa.statistics import (
    evolutionary_rates,
    modularity,
    phylogenetic_components,
    phylogenetic_signal,
    two_block_pls,
)

TREE = "(((a:1,b:1):1,(c:1,d:1):1):1,((e:1,f:1):1,(g:1,h:1):1):1);"


def make_shapes(d=2):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(8, d)) + 0.05 * rng.normal(size=(8, 8, d))
    return Shapes(points, names=list("abcdefgh"))


@pytest.mark.parametrize("d", [2, 3])
def test_tree_joins_species_and_ancestors(d):
    actual = phylogenetic_components(make_shapes(d), TREE)
    artists = plot.phylomorphospace(actual, Figure().subplots(), which=(2, 3))
    segments = np.array(artists.branches.get_segments())
    assert segments.shape == (14, 2, 2)
    places = actual.node_scores[:, 1:3]
    np.testing.assert_allclose(segments, places[actual.tree.branches])
    assert artists.root.get_xdata()[0] == actual.ancestor_scores[0, 1]
    assert [name.get_text() for name in artists.names] == list("abcdefgh")
    assert artists.shape.get_title().startswith("root")


def test_unknown_components_are_refused():
    actual = phylogenetic_components(make_shapes(), TREE)
    with pytest.raises(DefgpaError, match="two components from 1 to 7"):
        plot.phylomorphospace(actual, Figure().subplots(), which=(1, 9))


@pytest.mark.parametrize("groups", [None, list("xxxxyyyy")])
def test_scores_of_both_blocks_are_drawn(groups):
    pls = two_block_pls(make_shapes(), partition="aaaabbbb", n_permutations=19)
    artists = plot.covariation(pls, Figure().subplots(), axis=2, groups=groups)
    drawn = np.concatenate([np.column_stack(dots.get_data()) for dots in artists.dots])
    np.testing.assert_allclose(drawn, np.column_stack([pls.x_scores[:, 1], pls.y_scores[:, 1]]))
    with pytest.raises(DefgpaError, match="'axis'"):
        plot.covariation(pls, Figure().subplots(), axis=99)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: modularity(x, "aaaabbbb", 19), "CR"),
        (lambda x: two_block_pls(x, partition="aaaabbbb", n_permutations=19), "r-PLS"),
        (lambda x: phylogenetic_signal(x, TREE, n_permutations=19), "K"),
        (lambda x: evolutionary_rates(x, TREE, list("xxxxyyyy"), None, 19), "ratio of rates"),
    ],
)
def test_histogram_holds_all_permutations_and_the_observed_value(make, name):
    result = make(make_shapes())
    artists = plot.permuted(result, Figure().subplots())
    # Z of a signal is that of its likelihood, so it has no place beside K
    assert (f"Z = {result.z:.2f}" in artists.label.get_text()) == (name != "K")
    assert sum(bar.get_height() for bar in artists.bars) == 19
    value = artists.observed.get_xdata()[0]
    assert artists.label.get_text().startswith(f"{name} = {value:.3f}")
    assert f"P = {result.p:.3g}" in artists.label.get_text()


def test_ends_of_pls_axes_are_the_shapes_of_the_blocks():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(14, 8, 2))
    pls = statistics.two_block_pls(x, partition=["a"] * 5 + ["b"] * 3, n_permutations=9)
    ends = plot.covariation(pls, Figure().subplots()).ends
    assert [ax.get_title().split(",")[0:2] for ax in ends] == [
        ["a", " low"], ["a", " high"], ["b", " low"], ["b", " high"]
    ]  # fmt: skip
    numbers = statistics.two_block_pls(x, rng.normal(size=(14, 2)), n_permutations=9)
    assert len(plot.covariation(numbers, Figure().subplots()).ends) == 2


def test_ends_of_canonical_variates_are_bent_from_the_mean():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(8, 2)) + 0.1 * rng.normal(size=(18, 8, 2))
    three = statistics.classify(x, list("abc") * 6, 3, 9)
    artists = plot.canonical_variates(three, Figure().subplots())
    assert len(artists.ends) == 4
    lowest = three.variates[:, 0].min()
    assert artists.ends[0].get_title().startswith(f"CV1 {lowest:+.1f}")
    two = statistics.classify(x, list("ab") * 9, 3, 9)
    assert len(plot.canonical_variates(two, Figure().subplots()).ends) == 2


def test_scores_of_allometry_are_drawn_over_log_size():
    x = np.random.default_rng(5).normal(size=(12, 8, 2))
    result = statistics.group_allometry(x, list("ab") * 6, n_permutations=9)
    drawn = plot.group_allometry(result, Figure().subplots())
    members = result.codes == 0
    for artists, values in zip(
        drawn.scores,
        (result.common_component, result.regression_scores, result.predicted_line),
        strict=True,
    ):
        np.testing.assert_allclose(artists[0].get_xdata(), np.log(result.sizes[members]))
        np.testing.assert_allclose(artists[0].get_ydata(), values[members])


def test_paths_of_trajectories_keep_the_distances_of_the_means():
    x = np.random.default_rng(6).normal(size=(12, 8, 2))
    result = statistics.trajectories(x, list("ab") * 6, np.repeat([1, 2], 6), 9)
    drawn = plot.trajectories(result, Figure().subplots())
    steps = [np.linalg.norm(np.diff(line.get_xydata(), axis=0)) for line in drawn.paths]
    assert all(step <= length + 1e-9 for step, length in zip(steps, result.lengths, strict=True))
    assert [text.get_text() for text in drawn.names] == ["1", "2", "1", "2"]
