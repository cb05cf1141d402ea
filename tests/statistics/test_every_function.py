"""What holds for every function of statistics: gaps, weights, an alignment; printed chance."""

from __future__ import annotations

import importlib
import re

import numpy as np
import pytest

import defgpa
from defgpa import DefgpaError, EuclideanGPA, Shapes, plot, statistics
from defgpa.statistics import (
    EffectSizes,
    Sample,
    ShapePCA,
    allometry,
    average_species,
    build_sample,
    centroid_sizes,
    classify,
    compare_effect_sizes,
    compare_models,
    disparity,
    eigenvalue_variance,
    evolutionary_rates,
    find_pairs,
    group_allometry,
    integration,
    landmark_differences,
    match_tree,
    measurement_error,
    modularity,
    outliers,
    phylogenetic_components,
    phylogenetic_signal,
    procrustes_anova,
    repeatability,
    sample,
    symmetry,
    tangent_space,
    trajectories,
    two_block_pls,
)
from support import EXACT, ROOT

N = 16
HALVES, KINDS = ["a"] * 8 + ["b"] * 8, list("uvwx") * 4
TIPS = [f"tip_{k // 2}" for k in range(N)]
TREE = "(((tip_0:1,tip_1:1):1,(tip_2:1,tip_3:1):1):1,((tip_4:1,tip_5:1):1,(tip_6:1,tip_7:1):1):1);"
MODULES = ["front"] * 6 + ["back"] * 6
MOTH = np.array([[0, 2], [0, -1], [-2, 1], [2, 1], [-1, -2], [1, -2.0], [-0.5, 0.3], [0.5, 0.3]])
MOTH = np.concatenate([MOTH, [[-3.0, 0.5], [3, 0.5], [-1.5, 2], [1.5, 2]]])
PAIRS = [(j, j + 1) for j in range(2, 12, 2)]
DATA = {"k": HALVES, "z": np.arange(float(N))}


def models(x):
    return [procrustes_anova(f"shape ~ {terms}", x, DATA, 19) for terms in ("z", "z + k")]


CALLS = {
    "allometry": lambda x: allometry(x, n_permutations=19),
    "average_species": lambda x: average_species(x, TIPS),
    "build_sample": build_sample,
    "centroid_sizes": centroid_sizes,
    "classify": lambda x: classify(x, HALVES, 3, 19),
    "compare_effect_sizes": lambda x: compare_effect_sizes([integration(x, MODULES, 19)] * 2),
    "compare_models": lambda x: compare_models(*models(x)),
    "disparity": lambda x: disparity(x, HALVES, n_permutations=19),
    "eigenvalue_variance": eigenvalue_variance,
    "evolutionary_rates": lambda x: evolutionary_rates(x, TREE, HALVES, TIPS, 19),
    "find_pairs": lambda x: find_pairs(tangent_space(x)),
    "group_allometry": lambda x: group_allometry(x, HALVES, n_permutations=19),
    "integration": lambda x: integration(x, MODULES, 19),
    "landmark_differences": lambda x: landmark_differences(x, HALVES, 19),
    "match_tree": lambda x: match_tree(x, TREE, TIPS)[0],
    "measurement_error": lambda x: measurement_error(x, KINDS, np.arange(N) // 4, 19),
    "modularity": lambda x: modularity(x, MODULES, 19),
    "outliers": outliers,
    "phylogenetic_components": lambda x: phylogenetic_components(x, TREE, TIPS),
    "phylogenetic_signal": lambda x: phylogenetic_signal(x, TREE, TIPS, 19),
    "procrustes_anova": lambda x: models(x)[1],
    "repeatability": lambda x: repeatability(x, KINDS),
    "symmetry": lambda x: symmetry(x, PAIRS, n_permutations=19),
    "tangent_space": tangent_space,
    "trajectories": lambda x: trajectories(x, HALVES, KINDS, 19),
    "two_block_pls": lambda x: two_block_pls(x, DATA["z"], n_permutations=19),
    "ShapePCA": lambda x: ShapePCA().fit(x),
}
WITHOUT_SHAPES = {"partition_by_links", "read_partitions", "read_tree"}
OF_ALIGNMENTS = {"specimens"}  # of their warps, too
WITHOUT_CHANCE = {"eigenvalue_variance", "outliers", "phylogenetic_components", "repeatability"}


def made() -> np.ndarray:
    rng = np.random.default_rng(0)
    size = rng.uniform(1.0, 2.0, size=(N, 1, 1))
    return size * (MOTH + 0.05 * rng.normal(size=(N, *MOTH.shape)))


def as_alignment(x):
    return x if isinstance(x, defgpa.Alignment) else EuclideanGPA().fit(x).alignment_


def with_gaps() -> np.ndarray:
    x = made()
    x[2, 3] = x[9, 7] = np.nan
    return x


def with_weights() -> Shapes:
    weights = np.ones((N, 12))
    weights[4, 5] = 0.05
    return Shapes(made(), weights=weights)


@pytest.fixture(autouse=True, scope="module")
def completed_once():
    """Complete equal shapes once, since every call takes a third of a second."""
    made_before, complete = {}, sample.compute_completion

    def complete_once(x):
        points = x.points if isinstance(x, Shapes) else x.shapes.points
        weights = x.weights if isinstance(x, Shapes) else x.shapes.weights
        key = (type(x), points.tobytes(), np.asarray(weights).tobytes())
        if key not in made_before:
            made_before[key] = complete(x)
        return made_before[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "compute_completion", complete_once)
        yield


GIVEN = {"list": list, "Shapes": Shapes, "Alignment": as_alignment}


def list_figures(result: object) -> np.ndarray:
    """Every number of what a function returns."""
    if isinstance(result, np.ndarray):
        return result
    if isinstance(result, Sample):
        return result.tangents
    if isinstance(result, ShapePCA):
        return result.explained_variance_
    values = [value for value in vars(result).values() if isinstance(value, np.ndarray)]
    return np.concatenate([value.astype(float).ravel() for value in values] or [np.zeros(0)])


def find_provenance(result: object) -> statistics.Provenance | None:
    return getattr(result, "provenance", None) or getattr(result, "provenance_", None)


def test_every_public_function_is_among_these():
    functions = {name for name in statistics.__all__ if name.islower()} | {"ShapePCA"}
    assert functions - WITHOUT_SHAPES - OF_ALIGNMENTS == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", GIVEN)
def test_missing_landmarks_are_completed_and_counted_whatever_is_given(name, kind):
    result = CALLS[name](GIVEN[kind](with_gaps()))
    provenance = find_provenance(result)
    if provenance is not None:
        assert provenance.n_completed == 2
        if not isinstance(result, Sample | ShapePCA):
            assert "2 of 192 landmarks (1.0%) completed" in str(result)
    expected = list_figures(CALLS[name](with_gaps()))
    if kind == "Alignment":  # whose warps complete landmarks a little differently
        assert len(list_figures(result)) == len(expected)
    else:
        np.testing.assert_allclose(list_figures(result), expected, **EXACT)


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"compare_effect_sizes", "specimens"}))
def test_a_landmark_of_little_weight_counts_little(name):
    result = CALLS[name](with_weights())
    provenance = find_provenance(result)
    if provenance is not None:
        assert provenance.n_moved == 1
    assert not np.array_equal(list_figures(result), list_figures(CALLS[name](made())))


@pytest.mark.parametrize("name", CALLS)
def test_every_printed_p_states_how_often_chance_was_drawn(name):
    result = CALLS[name](made())
    has_p = any(name == "p" or name.endswith("_p") for name in getattr(result, "__dict__", {}))
    text = str(result)
    if isinstance(result, EffectSizes) or not (has_p or "Pr(>" in text):
        return
    assert name not in WITHOUT_CHANCE
    assert re.search(r"19 (permutations|rotations|assignments)", text)


TREE_OF_OTHERS = TREE.replace("tip_", "leaf_")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: procrustes_anova("shape ~ age", x, DATA), "no column 'age'"),
        (
            lambda x: procrustes_anova("shape ~ z", x, {"z": [np.nan] * N}),
            "z has no value for some shapes",
        ),
        (lambda x: procrustes_anova("shape ~ z", x, {"z": [np.inf, *[1.0] * 15]}), "not finite"),
        (lambda x: procrustes_anova("shape ~ z", x, {"z": [1.0] * N}), "'z' is '1.0' for all"),
        (lambda x: procrustes_anova("shape ~ k", x, {"k": ["a"] * N}), "'k' is 'a' for all"),
        (lambda x: disparity(x, HALVES, "shape ~ k", {"k": ["a"] * N}), "'k' is 'a' for all"),
        (lambda x: procrustes_anova("shape ~ k", x, {"k": ["a"] * 3}), "different lengths"),
        (lambda x: models(x)[1].pairwise("age"), "no column 'age'"),
        (lambda x: models(x)[1].pairwise(["a"] * N), "at least 2 groups"),
        (lambda x: allometry(x, [np.inf] * N), "positive numbers"),
        (lambda x: disparity(x, "age", data=DATA), "no column 'age'"),
        (lambda x: disparity(x, HALVES, "shape ~ age", DATA), "no column 'age'"),
        (lambda x: classify(x, ["a"] * 15 + ["b"]), "'b' has one specimen"),
        (lambda x: classify(x, HALVES[:-1]), "one.*per shape, 16"),
        (lambda x: landmark_differences(x, KINDS), "between 2 groups; got 4"),
        (lambda x: group_allometry(x, ["a"] * 14 + ["b"] * 2), "groups of 3 specimens"),
        (lambda x: trajectories(x, HALVES, HALVES), "every group at every stage"),
        (lambda x: two_block_pls(x, np.full(N, np.nan)), "finite numbers"),
        (lambda x: two_block_pls(x, np.ones(N)), "does not vary"),
        (lambda x: integration(x, ["one"] * 12), "at least 2 modules"),
        (lambda x: modularity(x, ["one"] * 12), "at least 2 modules"),
        (lambda x: modularity(x, ["one"] * 11 + ["two"]), "'two' has one landmark"),
        (lambda x: phylogenetic_signal(x, TREE_OF_OTHERS, TIPS), "no tip called 'tip_0'"),
        (lambda x: phylogenetic_components(x, TREE_OF_OTHERS, TIPS), "no tip called 'tip_0'"),
        (lambda x: evolutionary_rates(x, TREE_OF_OTHERS, HALVES, TIPS), "no tip called 'tip_0'"),
        (lambda x: evolutionary_rates(x, TREE, ["a"] * N, TIPS), "at least 2 groups"),
        (lambda x: procrustes_anova("shape ~ z", x, DATA, tree=TREE), "no tip called 'shape_1'"),
        (lambda x: measurement_error(x, HALVES, KINDS), "every subject once"),
        (lambda x: repeatability(x, range(N)), "replicate"),
        (lambda x: symmetry(x, PAIRS, individual=HALVES, side=KINDS), "not both"),
        (lambda x: symmetry(x, individual=np.arange(N) // 2, side=["L"] * N), "2 sides; got 1"),
        (lambda x: outliers(x, HALVES[:3]), "one group a shape, 16"),
    ],
)
def test_unusable_input_is_refused_in_a_sentence(call, words):
    with pytest.raises(DefgpaError, match=words) as caught:
        call(made())
    assert str(caught.value).rstrip().endswith((".", "?"))


def test_every_statistic_of_the_documented_table_is_where_it_says():
    """The table of docs/coming-from.md: function, command with its option, plot."""
    page = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    rows = page.split("### Statistics at a glance")[1].split("###")[0].splitlines()
    rows = [row.split(" | ") for row in rows if row.startswith("| ")][1:]
    assert len(rows) >= 20
    for _, _, function, command, figure in rows:
        word = re.match(r"`(\w+)", function)[1]
        assert hasattr(statistics, word)
        name, option = re.fullmatch(r"`(\w+) (--[\w-]+)`", command).groups()
        module = importlib.import_module(f"defgpa.cli._{name}")
        assert any(option in parameter.opts for parameter in module.command.params), command
        assert figure.strip("`| ") in plot.__all__
    tested = {re.match(r"`(\w+)", row[2])[1] for row in rows}
    others = {"average_species", "build_sample", "centroid_sizes", "find_pairs", "match_tree"}
    assert set(CALLS) - tested == others | {"outliers", "tangent_space"}
