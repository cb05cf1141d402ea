"""Tests, symmetry and sliding have sections in the report, with their own tables and pictures."""

from __future__ import annotations

import base64
import html
import re

import numpy as np
import pytest
from test_report import NASTY
from test_semilandmarks import passing_points

import defgpa
from defgpa import DefgpaError, Shapes
from defgpa.formatting import format_number
from defgpa.report import write_methods, write_report, write_statistics
from defgpa.semilandmarks import SlidShapes
from defgpa.statistics import (
    allometry,
    classify,
    compare_effect_sizes,
    compare_models,
    disparity,
    eigenvalue_variance,
    evolutionary_rates,
    group_allometry,
    landmark_differences,
    measurement_error,
    modularity,
    phylogenetic_components,
    phylogenetic_signal,
    procrustes_anova,
    repeatability,
    symmetry,
    trajectories,
    two_block_pls,
)
from support import warned_of

MOTH = np.array([[0, 2], [0, -1], [-2, 1], [2, 1], [-1, -2], [1, -2.0], [-0.5, 0.3], [0.5, 0.3]])
KIND = np.repeat(["a", "b"], 6)
HALVES = ["front"] * 4 + ["back"] * 4
TREE = "(((a:1,b:1):1,c:2):1,((d:1,e:1):1,f:2):1);"


def moths():
    x = MOTH + 0.05 * np.random.default_rng(0).normal(size=(12, *MOTH.shape))
    x[6:, 4] += 0.3
    return x


@pytest.mark.filterwarnings("ignore::defgpa.DefgpaWarning")
def test_methods_describe_every_statistic_and_no_other(everything):
    alignment = defgpa.EuclideanGPA().fit(moths()).alignment_
    plain = write_methods(alignment)
    for statistic in everything:
        added = write_methods(alignment, statistics=[statistic])
        assert len(added) > len(plain)
        assert ("slid along" in added) == isinstance(statistic, SlidShapes)


def test_methods_say_which_size_was_used():
    alignment = defgpa.EuclideanGPA().fit(moths()).alignment_
    lengths = np.arange(12) + 10.0

    def describe(statistic):
        return write_methods(alignment, statistics=[statistic])

    model = procrustes_anova("shape ~ log(size)", moths(), n_permutations=99)
    given = procrustes_anova("shape ~ log(size)", moths(), {"size": lengths}, 99)
    kinds = procrustes_anova("shape ~ kind", moths(), {"kind": KIND}, 99)
    classes = procrustes_anova("shape ~ size", moths(), {"size": KIND}, 99)
    assert "et al. 2015), where size is centroid size." in describe(model)
    assert "et al. 2015), where size is a column of the data." in describe(given)
    assert "et al. 2015), where size is a column of the data." in describe(classes)
    assert "et al. 2015). " in describe(kinds)
    assert "on log centroid size." in describe(allometry(moths(), n_permutations=99))
    assert "on log size, as it was given." in describe(allometry(moths(), lengths, 99))


@pytest.fixture(scope="module")
def everything():
    """One result of each kind."""
    model = procrustes_anova("shape ~ kind", moths(), {"kind": KIND}, 99)
    hypotheses = [modularity(moths(), modules, 99) for modules in (HALVES, list("abcabcab"))]
    return [
        model,
        model.pairwise("kind"),
        compare_models(procrustes_anova("shape ~ 1", moths(), n_permutations=99), model),
        allometry(moths(), n_permutations=99),
        landmark_differences(moths(), KIND, 99),
        symmetry(moths(), n_permutations=99),
        repeatability(moths(), np.arange(12) // 2),
        defgpa.slide(moths(), [[2, 6, 7, 3]]),
        disparity(moths(), KIND, n_permutations=99),
        classify(moths(), KIND, 3, 99),
        two_block_pls(moths(), partition=HALVES, n_permutations=99),
        *hypotheses,
        compare_effect_sizes(hypotheses, ["halves", "thirds"]),
        eigenvalue_variance(moths()),
        group_allometry(moths(), KIND, n_permutations=99),
        trajectories(moths(), KIND, np.arange(12) % 3, 99),
        measurement_error(moths(), np.arange(12) // 2, np.arange(12) % 2, 99),
        phylogenetic_signal(moths()[:6], TREE, list("abcdef"), 99),
        phylogenetic_components(moths()[:6], TREE, list("abcdef")),
        evolutionary_rates(moths()[:6], TREE, list("xxxyyy"), list("abcdef"), 99),
    ]


@pytest.fixture(scope="module")
def page(everything, tmp_path_factory):
    target = tmp_path_factory.mktemp("page") / "statistics.html"
    write_statistics(everything, target, title="Moths <1>", provenance={"command": "defgpa test"})
    return target.read_text(encoding="utf-8")


def rows_of(page, heading):
    """The cells of the table under a heading, row by row."""
    item = page[page.index(f">{heading}</h2>") :]
    body = item[item.index("<tbody>") : item.index("</tbody>")]
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.S)
    return [[html.unescape(c) for c in re.findall(r"<t[hd][^>]*>(.*?)</t", row)] for row in rows]


def test_every_result_has_its_heading_its_picture_and_a_link_to_it(page):
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert headings == [
        "What shape depends on", "Groups compared", "Models compared", "Shape and size",
        "Where a and b differ", "Symmetry", "Repeatability", "Semilandmarks",
        "How much groups vary", "Can the groups be told apart?", "How front and back covary",
        "Modularity: front, back", "Modularity: a, b, c", "Effect sizes compared: CR",
        "Integration of all landmarks", "Shape and size by group", "Trajectories",
        "Measurement error", "Phylogenetic signal", "The tree in morphospace",
        "Rates of evolution", "Reproduce",
    ]  # fmt: skip
    for k, heading in enumerate(headings[:-1], start=1):
        assert f'<a href="#test-{k}">{heading}</a>' in page
    pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert len(pictures) == len(headings)  # a classification has two, how to reproduce none
    assert len(set(pictures)) == len(pictures)
    assert all(b"<svg" in base64.b64decode(picture) for picture in pictures)
    assert "<h1>Moths &lt;1&gt;</h1>" in page
    assert "<code>defgpa test</code>" in page


def test_the_tables_are_those_of_the_results(page, everything):
    model, pairs, compared, _, landmarks, sides, measured, slid, *_ = everything
    assert rows_of(page, "Models compared") == [list(line) for line in compared.table.cells()[1:]]
    header, *rows = (list(line) for line in model.table.cells())
    assert header[1:] == ["Df", "SS", "MS", "Rsq", "F", "Z", "Pr(>F)"]
    assert rows_of(page, "What shape depends on") == rows
    (pair,) = rows_of(page, "Groups compared")
    assert pair == ["a – b", *str(pairs).splitlines()[-1].split()[-3:]]
    actual = rows_of(page, "Where a and b differ")
    assert actual == [list(line) for line in landmarks.cells()]
    assert rows_of(page, "Shape and size")[0][0] == "log(size)"
    assert rows_of(page, "Symmetry") == [list(line) for line in sides.table.cells()[1:]]
    assert [float(row[2]) for row in rows_of(page, "Repeatability")] == pytest.approx(
        measured.error, rel=1e-3
    )
    how_far = {name: float(largest) for name, _, largest in rows_of(page, "Semilandmarks")}
    for name, distance in zip(slid.names, slid.distances, strict=True):
        assert how_far[name] == pytest.approx(distance.max(), rel=1e-3)
    assert list(how_far.values()) == sorted(how_far.values(), reverse=True)
    means = {name: float(mean) for name, mean, _ in rows_of(page, "Semilandmarks")}
    assert means[slid.names[3]] == pytest.approx(slid.distances[3, [6, 7]].mean(), rel=1e-3)


def test_tables_of_groups_modules_and_trees_are_those_of_the_results(page, everything):
    spread, classes, pls, halves = everything[8:12]
    signal, space, rates = everything[-3:]
    variances = [float(row[1]) for row in rows_of(page, "How much groups vary")]
    assert variances == pytest.approx(spread.variances, rel=1e-3)
    counts = [list(map(int, row[1:])) for row in rows_of(page, "Can the groups be told apart?")]
    assert counts == classes.confusion.tolist()
    assert f"{classes.accuracy:.1%} are correct, where chance would give" in page
    values = [float(row[1]) for row in rows_of(page, "How front and back covary")]
    assert values == pytest.approx(pls.singular_values[:8], rel=1e-3)
    ratio = float(rows_of(page, "Modularity: front, back")[0][2])
    assert ratio == pytest.approx(halves.observed, rel=1e-3)
    vrel = float(rows_of(page, "Integration of all landmarks")[0][0])
    assert vrel == pytest.approx(everything[14].vrel, rel=1e-3)
    assert float(rows_of(page, "Phylogenetic signal")[0][0]) == pytest.approx(signal.k, rel=1e-3)
    shares = [row[2] for row in rows_of(page, "The tree in morphospace")]
    assert shares == [f"{share:.1%}" for share in space.shares[:8]]
    speeds = [float(row[2]) for row in rows_of(page, "Rates of evolution")]
    assert speeds == pytest.approx(rates.rates, rel=1e-3)


def test_the_words_say_what_was_found(page, everything):
    _, _, _, size, landmarks, _, measured, slid, *_ = everything
    assert "Significant (P ≤ 0.05): kind." in page
    assert "Of 1 pairs, 1 differ significantly" in page
    assert f"Size explains {size.anova['log(size)'].r_squared:.1%} of" in page
    sure = [landmarks.landmarks[j] for j in np.flatnonzero(landmarks.significant())]
    assert f"{len(sure)} of 8 landmarks differ: {', '.join(sure)}." in page
    assert f"{measured.overall:.1%} of the variance is among individuals" in page
    assert f"error is largest at landmark {1 + int(np.argmax(measured.error))} (" in page
    assert f"2 of 8 landmarks slid in {len(slid.criterion)} iterations" in page
    assert "Each shape has both sides" in page
    assert f"The figure shows {slid.names[int(np.argmax(slid.distances.max(axis=1)))]}," in page
    titles = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page)
    assert titles[:8] == ["Term", "Df", "SS", "MS", "Rsq", "F", "Z", "Pr(&gt;F)"]


def test_size_asymmetry_intervals_and_pairs_of_rates_are_in_the_report(tmp_path):
    sides = symmetry(moths(), individual=np.arange(12) // 2, side=list("lr") * 6, n_permutations=9)
    modules = modularity(moths(), HALVES, 9)
    rates = evolutionary_rates(moths()[:6], TREE, list("xxyyzz"), list("abcdef"), 9)
    slopes = group_allometry(moths(), KIND, n_permutations=9)
    write_statistics([sides, modules, rates, slopes], tmp_path / "page.html")
    page = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "Asymmetry of size" in page
    assert sides.size_table.cells()[1][2] in page
    low, high = map(format_number, modules.interval)
    assert f"95 % interval {low} to {high}" in page
    for pair, ratio, p in rates.cells():
        assert re.search(rf"{pair}</t.>\s*<td[^>]*>{ratio}</td>\s*<td[^>]*>{p}</td>", page)
    for group, length in zip(slopes.groups, slopes.lengths, strict=True):
        assert re.search(rf">{group}</t.>\s*<td[^>]*>{format_number(length)}</td>", page)


def test_the_page_says_where_nothing_is_significant(tmp_path):
    data = {"kind": list("abab") * 3}
    model = procrustes_anova("shape ~ kind", moths(), data, 99)
    far = landmark_differences(moths(), data["kind"], 99)
    write_statistics([model, far], tmp_path / "none.html")
    text = (tmp_path / "none.html").read_text(encoding="utf-8")
    assert "No term is significant" in text
    assert "0 of 8 landmarks differ." in text


def test_points_that_passed_a_neighbour_are_named_on_the_page(tmp_path):
    points, curves = passing_points()
    with warned_of("shape_6", "past"):
        slid = defgpa.slide(points, curves, by="procrustes")
    write_statistics([slid], tmp_path / "slid.html")
    assert "past" in (tmp_path / "slid.html").read_text(encoding="utf-8")


def test_the_same_results_give_the_same_page_and_names_stay_names(tmp_path):
    shapes = Shapes(moths(), names=[*NASTY, *map(str, range(7))], landmarks=[*NASTY, *"abc"])
    kinds = [NASTY[0], NASTY[4]] * 6
    model = procrustes_anova("shape ~ kind", shapes, {"kind": kinds}, 99)
    actual = [model.pairwise("kind"), landmark_differences(shapes, kinds, 99)]
    for name in ("one", "two"):
        write_statistics(actual, tmp_path / name)
    text = (tmp_path / "one").read_text(encoding="utf-8")
    assert text == (tmp_path / "two").read_text(encoding="utf-8")
    assert not any(nasty in text for nasty in NASTY[:4])


def test_the_report_of_an_alignment_has_the_sections_among_its_own(tmp_path, everything):
    aligned = defgpa.DefGPA(defgpa.Affine()).fit(moths()).alignment_
    write_report(aligned, tmp_path / "plain.html")
    write_report(aligned, tmp_path / "more.html", statistics=everything[:1])
    plain, more = ((tmp_path / f"{n}.html").read_text("utf-8") for n in ("plain", "more"))
    assert 'id="test-1"' not in plain
    assert rows_of(more, "What shape depends on")[0][0] == "kind"
    assert '<a href="#test-1">What shape depends on</a>' in more
    assert 'id="results"' in more


def test_what_is_no_result_is_refused(tmp_path):
    with pytest.raises(DefgpaError, match=r"ProcrustesAnova, .* got str"):
        write_statistics(["anova"], tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_the_commands_write_their_page_beside_the_tables(run, tmp_path):
    shapes = Shapes(moths(), metadata={"groups": list(KIND), "links": ((2, 6, 7, 3),)})
    source = tmp_path / "moths.txt"
    defgpa.write_shapes(shapes, source, format="morphologika")
    few = ("--permutations", 9, "--report", "-q")
    run.succeed("test", source, "-f", "shape ~ group", *few, "-o", tmp_path / "t")
    run.succeed("symmetry", source, *few, "-o", tmp_path / "s")
    slid = ("-o", tmp_path / "slid.tps", "--figures", tmp_path / "f", "--report", "-q")
    run.succeed("slide", source, "--curve", "3,7,8,4", *slid)
    pages = {name: (tmp_path / name / "report.html").read_text(encoding="utf-8") for name in "tsf"}
    assert "<h1>Tests of moths.txt</h1>" in pages["t"]
    assert rows_of(pages["t"], "What shape depends on")[0][0] == "group"
    assert "defgpa test" in pages["t"]
    assert rows_of(pages["s"], "Symmetry")[1][0] == "side"
    assert len(rows_of(pages["f"], "Semilandmarks")) == 12
    assert "give --output too" in run.refuse("test", source, "--allometry", "--report")


def test_the_page_of_a_saved_result_has_its_own_report_around_the_tests(run, tmp_path):
    aligned = defgpa.DefGPA(defgpa.Affine()).fit(moths()).alignment_
    defgpa.save(aligned, tmp_path / "result.npz")
    words = ("--allometry", "--permutations", 9, "-o", tmp_path, "--report", "-q")
    run.succeed("test", tmp_path / "result.npz", *words)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Shape and size" in text
    assert 'id="plot-reference"' in text
