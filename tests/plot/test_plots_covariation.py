"""Plots of covariation and phylogeny: the artists hold the figures of the results."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from defgpa import DefgpaError, Shapes, plot
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
    found = phylogenetic_components(make_shapes(d), TREE)
    artists = plot.phylomorphospace(found, Figure().subplots(), which=(2, 3))
    segments = np.array(artists.branches.get_segments())
    assert segments.shape == (14, 2, 2)
    places = found.node_scores[:, 1:3]
    np.testing.assert_allclose(segments, places[found.tree.edges])
    assert artists.root.get_xdata()[0] == found.ancestor_scores[0, 1]
    assert [name.get_text() for name in artists.names] == list("abcdefgh")
    assert artists.shape.get_title().startswith("root")


def test_unknown_components_are_refused():
    found = phylogenetic_components(make_shapes(), TREE)
    with pytest.raises(DefgpaError, match="two components from 1 to 7"):
        plot.phylomorphospace(found, Figure().subplots(), which=(1, 9))


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
    assert sum(bar.get_height() for bar in artists.bars) == 19
    value = artists.observed.get_xdata()[0]
    assert artists.label.get_text().startswith(f"{name} = {value:.3f}")
    assert f"P = {result.p:.3g}" in artists.label.get_text()
