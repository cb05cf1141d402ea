"""The report is one file that says what was fitted, in figures that are the alignment's own."""

from __future__ import annotations

import base64
import html
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import defgpa
from defgpa.datasets import load_wings
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.errors import DefgpaError, DefgpaWarning, ShapeError
from defgpa.model_selection import (
    Comparison,
    CrossValidation,
    MethodFigures,
    SmoothingPath,
    Verdict,
)
from defgpa.procrustes import SIMILARITY, fit_motions
from defgpa.report import write_report
from defgpa.report._drawn import MOST_PAIRS, MOST_SHAPES, drawn_part, group_columns
from defgpa.report._packing import packed_positions, script_json
from defgpa.report._scene import (
    deformed_lattice,
    lattice_over,
    motions_onto_reference,
    near_links,
)
from defgpa.report._words import as_code, number, what_was_fitted
from defgpa.warps import (
    Affine,
    FreeForm,
    Gaussian,
    Polynomial,
    RadialBasis,
    ThinPlateSpline,
    WendlandC2,
)
from support import EXACT, rotation, smooth_family

NASTY = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "<!-- <b>bold</b> &lt;not a tag&gt;",
    "{{ 7 * 7 }} %{x} $E=mc^2$ ’\u2028’",
)
TEN_MEGABYTES = 10_000_000


class Page(HTMLParser):
    """A report taken apart again."""

    def __init__(self, path):
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.tags, self.figures, self.compared, self.ids = [], {}, [], set()
        self.words, self.data, self._inside = [], "", ""
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        self.ids.add(given.get("id"))
        if tag in {"script", "style"}:
            self._inside = given.get("id", tag)
        if "data-figure" in given:
            self.figures[given["data-figure"]] = float(given["value"])
        if "data-compared" in given:
            self.compared.append((given["data-compared"], float(given["value"])))

    def handle_endtag(self, tag):
        if tag in {"script", "style"}:
            self._inside = ""

    def handle_data(self, data):
        if self._inside == "page-data":
            self.data += data
        elif not self._inside:
            self.words.append(data)

    @property
    def prose(self):
        return " ".join(" ".join(self.words).split())

    @property
    def drawn(self):
        return json.loads(self.data)


def positions(packed):
    """What the page's script makes of packed positions."""
    codes = np.frombuffer(base64.b64decode(packed["codes"]), dtype="<u2").reshape(packed["size"])
    low, step = (np.array(packed[key])[:, None] for key in ("low", "step"))
    return np.where(codes == 65535, np.nan, low + codes * step)


def distances(packed):
    floats = np.frombuffer(base64.b64decode(packed["floats"]), dtype="<f4")
    return floats.reshape(packed["size"])


@pytest.fixture(scope="module")
def wings():
    return defgpa.DefGPA().fit(load_wings()).alignment_


@pytest.fixture(scope="module")
def wings_cv(wings):
    return defgpa.cross_validate(defgpa.DefGPA(), wings.shapes, fold_size=7)


@pytest.fixture
def page(tmp_path):
    def made(alignment, **more):
        target = tmp_path / "report.html"
        write_report(alignment, target, **more)
        return Page(target)

    return made


def fitted(seed=0, warp=None, names=None, landmarks=None, metadata=None, **family):
    points = smooth_family(seed=seed, **family)
    shapes = defgpa.Shapes(points, names=names, landmarks=landmarks, metadata=metadata)
    return defgpa.DefGPA(warp or ThinPlateSpline(points_per_axis=3)).fit(shapes).alignment_


def test_the_figures_are_those_of_the_alignment_to_the_last_digit(page, wings, wings_cv):
    found = page(wings, cross_validation=wings_cv).figures
    assert found["rmse_reference"] == wings.rmse_reference
    assert found["rmse_datum"] == wings.rmse_datum
    assert found["cve"] == wings_cv.error
    assert found["spectral_gap"] == wings.diagnostics.gap
    assert found["foldovers"] == wings.foldovers.sum()
    assert found["visible"] == wings.n_counted
    assert (found["shapes"], found["landmarks"]) == (24, 43)


def test_every_figure_has_a_sentence_and_no_cve_is_made_up(page, wings):
    made = page(wings)
    assert "cve" not in made.figures
    assert "There is no cross-validation error here." in made.prose
    assert made.prose.count("RMSE_r") >= 2


def test_it_says_what_was_fitted(page, wings):
    made = page(wings, title="Wings & stings", provenance={"input": "wings.tps"})
    assert "Wings & stings" in made.prose
    assert "24 shapes with 43 landmarks each, in 2-D, 18 of 1,032 (1.7 %) not seen" in made.prose
    assert "thin-plate spline with 5 control points along each axis" in made.prose
    assert "wings.tps" in made.prose
    assert defgpa.__version__ in made.prose


def test_nothing_is_fetched_from_anywhere(page, wings):
    for tag, given in page(wings).tags:
        assert "src" not in given
        assert tag not in {"iframe", "object", "embed"}
        address = given.get("href", "#")
        # only a reader's click may lead away
        assert address.startswith(("#", "data:")) or tag == "a"


def test_names_of_files_are_only_names(page):
    labels = [f"{k} {NASTY[k % len(NASTY)]}" for k in range(40)]
    metadata = {"groups": list(NASTY[:2]) * 2 + [NASTY[2]]}
    nasty = fitted(n=5, names=NASTY, landmarks=labels, metadata=metadata)
    made = page(nasty, title=NASTY[0], provenance={NASTY[1]: NASTY[2]})
    plain = page(fitted(n=5, metadata={"groups": list("aabbc")}), title="t", provenance={"a": "b"})
    assert [tag for tag, _ in made.tags] == [tag for tag, _ in plain.tags]
    assert made.drawn["names"] == list(NASTY)
    assert made.drawn["landmarks"] == labels
    assert "<" not in made.data
    assert NASTY[4] in made.text  # a template within a name is not run


def test_json_within_a_script_has_no_markup_and_loses_nothing():
    value = {"names": list(NASTY), "number": 0.1}
    assert not set(script_json(value)) & set("<>&\u2028\u2029")
    assert json.loads(script_json(value)) == value


def test_packed_positions_are_exact_to_the_eye(rng):
    points = rng.normal(size=(4, 50, 3)) * [1.0, 1e3, 1e-3] + 1e5
    points[1, :7] = np.nan
    points[2] = np.nan
    points[3, :, 0] = 5.0
    back = positions(packed_positions(points))
    np.testing.assert_array_equal(np.isnan(back), np.isnan(points))
    extent = np.ptp(points[[0, 1, 3]][:, 7:], axis=1, keepdims=True)
    worst = np.nanmax(np.abs(back - points)[[0, 1, 3]] / np.maximum(extent, 1e-12))
    assert worst < 2 / 65534  # half a step, and the rounding of coordinates near 1e5


@pytest.mark.parametrize("family", [{"d": 2, "missing": 0.2}, {"d": 3, "m": 50}], ids=["2d", "3d"])
def test_what_is_drawn_is_the_alignment(page, family):
    alignment = fitted(seed=3, **family)
    drawn = page(alignment).drawn
    size = np.abs(alignment.reference).max()
    np.testing.assert_allclose(
        positions(drawn["aligned"]), alignment.aligned, rtol=0, atol=1e-4 * size
    )
    np.testing.assert_allclose(positions(drawn["measured"]), alignment.shapes.points, atol=1e-3)
    np.testing.assert_allclose(positions(drawn["reference"])[0], alignment.reference, atol=1e-3)
    np.testing.assert_allclose(distances(drawn["residuals"]), alignment.residuals, rtol=1e-6)


def test_before_is_all_but_the_deformation(rng):
    """Similar copies are all the same before they are warped."""
    base = rng.normal(size=(30, 2)) * [3, 2]
    copies = [rng.uniform(1, 3) * base @ rotation(rng, 2) + rng.normal(size=2) for _ in range(4)]
    alignment = defgpa.DefGPA().fit(copies).alignment_
    moved = motions_onto_reference(alignment, drawn_part(alignment))(alignment.shapes.points)
    np.testing.assert_allclose(moved, np.broadcast_to(moved[0], moved.shape))


def test_a_mirrored_shape_is_mirrored_back_before_it_is_compared():
    points = smooth_family(seed=4, n=6, bend=0.05)
    points[2, :, 0] *= -1
    with pytest.warns(DefgpaWarning, match="Mirrored"):
        alignment = defgpa.DefGPA().fit(points).alignment_
    onto = motions_onto_reference(alignment, drawn_part(alignment))
    moved = onto(alignment.shapes.points)
    spread = np.linalg.norm(moved - alignment.reference, axis=2).mean(axis=1)
    assert np.linalg.det(onto.rotation[2]) == pytest.approx(-1)
    assert spread[2] < 2 * np.median(spread)


def test_a_grid_over_an_undeformed_shape_stays_square(rng):
    base = rng.normal(size=(30, 2)) * [3, 2]
    copies = [base @ rotation(rng, 2) + rng.normal(size=2) for _ in range(4)]
    alignment = defgpa.DefGPA().fit(copies).alignment_
    drawn, (nodes, _, _) = drawn_part(alignment), lattice_over(alignment.reference, 4)
    onto = motions_onto_reference(alignment, drawn)
    deformed = deformed_lattice(alignment, drawn, onto, nodes)
    np.testing.assert_allclose(deformed, np.broadcast_to(nodes, deformed.shape), atol=1e-6)


@pytest.mark.parametrize("d", [2, 3])
def test_the_grid_covers_the_landmarks_with_square_cells(rng, d):
    reference = rng.normal(size=(60, d)) * [5, 2, 1][:d]
    nodes, rows, columns = lattice_over(reference, 10)
    grid = nodes.reshape(rows, columns, d)
    across = np.linalg.norm(np.diff(grid, axis=1), axis=2)
    along = np.linalg.norm(np.diff(grid, axis=0), axis=2)
    assert rows % 2 == columns % 2 == 1
    assert np.nanmedian(across) == pytest.approx(np.nanmedian(along), rel=0.2)
    if d == 2:
        assert (grid.min(axis=(0, 1)) < reference.min(axis=0)).all()
        assert (grid.max(axis=(0, 1)) > reference.max(axis=0)).all()


def test_predictions_are_shown_in_the_pose_of_the_reference(page, wings, wings_cv):
    """The cross-validation keeps the principal axes; the alignment may have been turned."""
    posed = wings.posed_like(wings.shapes[3])
    drawn = page(posed, cross_validation=wings_cv).drawn
    there = positions(drawn["predicted"]) - positions(drawn["reference"])
    expected = wings_cv.distances
    np.testing.assert_allclose(np.linalg.norm(there, axis=2), expected, atol=0.05)  # pixels
    np.testing.assert_allclose(distances(drawn["errors"]), expected, rtol=1e-6)


def test_worries_come_first_and_in_plain_words(page):
    points = smooth_family(seed=4, n=6, bend=0.05)
    points[2, :, 0] *= -1
    with pytest.warns(DefgpaWarning):
        alignment = defgpa.DefGPA().fit(defgpa.Shapes(points, names=list("abcdef"))).alignment_
    made = page(alignment).prose
    assert "Mirrored against the majority of the shapes: 'c'" in made
    assert made.index("Look at this first") < made.index("Before and after")
    assert "Nothing suspicious" not in made


def test_folds_and_hard_folds_are_worries_too(page, wings, wings_cv):
    foldovers = np.zeros(24, dtype=int)
    foldovers[5] = 3
    alignment = replace(wings)
    vars(alignment)["foldovers"] = foldovers  # as if computed already
    wobbly = Finding(Problem.MIRRORED, ("bee",))
    found = ((wobbly,), *[()] * (len(wings_cv.folds) - 1))
    made = page(alignment, cross_validation=replace(wings_cv, findings=found)).prose
    assert f"The warp of '{wings.shapes.names[5]}' folds over itself at 3 landmarks" in made
    assert f"1 of {len(wings_cv.folds)} folds" in made
    assert "'bee'" in made


def test_all_is_well_is_said_as_well(page, wings):
    made = page(wings).prose
    assert "Nothing suspicious was found" in made
    assert "Look at this first" not in made


def test_missing_landmarks_are_counted_or_denied(page, wings):
    made = page(wings)
    assert "18 of 1,032 landmarks were not seen, in 8 shapes" in made.prose
    assert "plot-missing" in made.ids
    full = page(fitted())
    assert "every landmark was seen in every shape" in full.prose
    assert "plot-missing" not in full.ids


def test_the_largest_residuals_are_named(page, wings):
    i, j = np.unravel_index(np.nanargmax(wings.residuals), wings.residuals.shape)
    assert f"{wings.shapes.names[i]} at {wings.shapes.landmarks[j]}" in page(wings).prose


def test_the_smoothing_path_is_drawn_where_it_has_a_logarithm(page, wings):
    values, rising = np.array([0.0, 1e-4, 1e-2]), np.array([3.0, 1.0, 2.0])
    path = SmoothingPath(values, rising, 0.5 * rising, np.array([9.0, np.nan, 0.8]), None)
    made = page(wings, smoothing=path)
    assert made.drawn["smoothing"] == {
        "values": [1e-4, 1e-2],
        "cve": [1.0, 2.0],
        "rmse_reference": [0.5, 1.0],
        "rmse_datum": [None, 0.8],
        "best": 1e-4,
    }
    assert "a relative smoothing of 0.0001 , was chosen" in made.prose
    assert "plot-smoothing" not in page(wings).ids


def test_methods_are_compared_and_the_best_predictor_is_marked(page, wings):
    rows = (
        MethodFigures("EUC_d", 22.375, 22.376, 23.0625, 100.0, 0.02),
        MethodFigures("mine", 1.5, 1.625, 2.125, 100.0, 0.03),
        MethodFigures("tiny", 1.5, 0.5, 0.75, 1.0, 0.03),  # 75 % of its reference
        MethodFigures("<other>", *[float("nan")] * 5, failure="<it> failed."),
    )
    verdict = Verdict("mine", "EUC_d", False, 0.91, 0.001, "on and on")
    made = page(wings, comparison=Comparison(rows, 1, verdict))
    assert verdict.conclusion in made.prose
    assert made.compared[:5] == [
        ("rmse_datum", 22.375),
        ("rmse_reference", 22.376),
        ("cve", 23.0625),
        ("relative_cve", 0.230625),
        ("seconds", 0.02),
    ]
    best = [given["data-method"] for _, given in made.tags if given.get("class") == "best"]
    assert best == ["mine"]
    assert "<other> failed: <it> failed." in made.prose


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (defgpa.EuclideanGPA(), "it is moved and turned, and not deformed"),
        (defgpa.EuclideanGPA(scaling=True), "it is moved, turned and scaled, and not deformed"),
        (defgpa.AffineGPA(), "an affine map"),
    ],
    ids=["rigid", "similarity", "affine"],
)
def test_methods_without_a_spectrum_have_a_report_too(page, estimator, words):
    made = page(estimator.fit(smooth_family()).alignment_)
    assert words in made.prose
    assert "plot-spectrum" not in made.ids
    assert "spectral_gap" not in made.figures
    assert f"defgpa.{estimator!r}.fit(shapes)" in made.prose


@pytest.mark.parametrize(
    ("sources", "title"),
    [
        (["data/wings.tps"] * 5, "wings.tps: 5 shapes aligned"),
        ([f"data/bees/{k}.pts" for k in range(5)], "bees: 5 shapes aligned"),
        (["a/1.pts", "b/1.pts"] * 2 + ["a/3.pts"], "Alignment of 5 shapes"),
        (None, "Alignment of 5 shapes"),
    ],
    ids=["file", "folder", "folders", "array"],
)
def test_the_title_names_the_file(page, sources, title):
    metadata = {} if sources is None else {"sources": sources}
    made = page(fitted(n=5, metadata=metadata))
    assert f"<title>{title}</title>" in made.text
    assert f"<h1>{title}</h1>" in made.text


def pasted(made):
    """What the Python of the page leaves, when it is run as it stands."""
    blocks = re.findall(r'aria-label="Python code"><code>(.*?)</code>', made.text, re.DOTALL)
    found = {}
    exec(html.unescape(blocks[0]), found)
    return found


@pytest.mark.parametrize("proportions", ["rigid", "prior", [50.0, 20.0]], ids=str)
@pytest.mark.parametrize("saved", [False, True])
def test_to_do_it_again_is_complete_enough_to_paste(page, tmp_path, saved, proportions):
    points = smooth_family(seed=3)
    if saved:
        points[2, 5] = -9.0
    defgpa.write_shapes(defgpa.Shapes(points), tmp_path / "it's.csv")
    # only a saved result knows how the file was read
    shapes = defgpa.read_shapes(tmp_path / "it's.csv", missing=-9.0 if saved else "marked")
    estimator = defgpa.DefGPA(ThinPlateSpline(4, smoothing=0.1), proportions=proportions)
    alignment = estimator.fit(shapes).alignment_
    defgpa.save(alignment, tmp_path / "result.npz")
    result = {"result": str(tmp_path / "result.npz")} if saved else {}
    model = pasted(page(alignment, provenance=result))["model"]
    np.testing.assert_array_equal(model.reference_, alignment.reference)
    np.testing.assert_array_equal(model.alignment_.aligned, alignment.aligned)


def test_the_command_is_there_to_be_typed_again(page):
    made = page(fitted(), provenance={"command": "defgpa fit 'my wings.tps'", "operator": "me"})
    assert "defgpa fit 'my wings.tps'" in made.prose
    assert "operator me" in made.prose


def test_groups_of_any_column_are_kept_and_too_many_share_the_last(page):
    n = 80
    metadata = {
        "groups": [f"site {k % 9}" for k in range(n)],
        "sex": ["f", "m"] * (n // 2),
        "species": [f"species {k % 40 if k < 79 else 3}" for k in range(n)],
        "names": [f"n{k}" for k in range(n)],  # tells nothing apart
        "collector": ["me"] * n,
        "comments": ["a", "b"] * (n // 2),
        "wireframe": [(0, 1)],
    }
    made = page(fitted(n=n, m=10, warp=Affine(), metadata=metadata))
    columns = {column.pop("name"): column for column in made.drawn["columns"]}
    assert list(columns) == ["group", "sex", "species"]
    assert columns["group"]["names"] == [f"site {k}" for k in range(9)]
    assert columns["group"]["of"] == [k % 9 for k in range(n)]
    assert len(columns["species"]["names"]) == 35
    assert columns["species"]["names"][-1] == "6 other groups"
    assert max(columns["species"]["of"]) == 34
    assert columns["species"]["names"][columns["species"]["of"][79]] == "species 3"
    assert "There are 40 groups in 'species': the 34 with most shapes have" in made.prose


def test_columns_of_a_table_are_offered_and_measurements_are_not():
    said = tuple({"stage": str(k // 30), "weight": str(k / 7), "age": ""} for k in range(60))
    said[4]["stage"] = ""
    metadata = {"groups": ["a", None] * 30, "variables": (*said[:-1], None)}
    shapes = defgpa.Shapes(smooth_family(seed=3, n=60, m=5), metadata=metadata)
    found = group_columns(shapes)
    assert list(found) == ["group", "stage"]
    assert found["group"][:2] == ("a", "not stated")
    assert found["stage"][3:5] == ("0", "not stated")
    assert found["stage"][-2:] == ("1", "not stated")
    chosen = tuple(own and own["stage"] for own in metadata["variables"])
    assert list(group_columns(shapes.with_metadata(groups=chosen))) == ["stage"]


def test_landmarks_that_no_third_one_is_nearer_to_are_linked(rng):
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [3, 1.1]])
    assert near_links(square).tolist() == [[0, 1], [0, 3], [1, 2], [2, 3], [2, 4]]
    points = rng.normal(size=(80, 3))
    far = np.linalg.norm(points[:, None] - points, axis=2)
    links = {
        (i, j)
        for i in range(80)
        for j in range(i + 1, 80)
        if not (np.maximum(far[i], far[j]) < far[i, j]).any()
    }
    assert set(map(tuple, near_links(points).tolist())) == links
    flat = points * [1, 1, 0]
    flat[3] = flat[4]
    assert len(near_links(flat))
    assert near_links(points[:4]) is None


def floats(packed):
    return distances(packed).astype(float)


@pytest.mark.parametrize("family", [{"d": 2, "missing": 0.1}, {"d": 3, "m": 50}], ids=["2d", "3d"])
def test_the_sliders_give_the_shapes_of_the_components(page, family):
    """Mean + Σ score · component, in the pose and the unit of the reference."""
    alignment = fitted(seed=3, n=8, **family)
    drawn = page(alignment).drawn["space"]
    pca = defgpa.ShapePCA().fit(alignment)
    k = len(pca.components_)
    np.testing.assert_allclose(drawn["shares"], pca.explained_variance_ratio_, **EXACT)
    np.testing.assert_allclose(floats(drawn["scores"]), pca.scores_, rtol=1e-6, atol=1e-9)
    mean, components = positions(drawn["mean"])[0], positions(drawn["components"])
    pose = fit_motions(pca.mean_, alignment.reference, motions=SIMILARITY)
    expected = pose(pca.inverse_transform(pca.scores_))
    found = mean + np.tensordot(pca.scores_, components, 1)
    size = np.linalg.norm(alignment.reference - alignment.reference.mean(axis=0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * size)
    assert np.linalg.norm(mean - alignment.reference) < 0.3 * size
    assert k == 7


def test_the_odd_specimen_and_its_landmarks_are_named(page):
    points = smooth_family(seed=2, n=20, m=24, bend=0.05)
    points[7, [3, 9]] = points[7, [9, 3]]
    names = [f"specimen <{k}>" for k in range(20)]
    shapes = defgpa.Shapes(points, names=names)
    with pytest.warns(DefgpaWarning, match="look exchanged"):
        alignment = defgpa.EuclideanGPA(scaling=True).fit(shapes).alignment_
    made = page(alignment)
    assert "1 specimen lies beyond the fence" in made.prose
    assert "no proof of a mistake" in made.prose
    assert "take the coordinates called superimposed" in made.prose
    marks = [given["data-mark"] for tag, given in made.tags if "data-mark" in given]
    assert marks[0] == names[7]
    assert marks.count(names[7]) == 3  # in the list of specimens, and for both landmarks
    told = made.drawn["outliers"]
    found = defgpa.statistics.outliers(alignment)
    np.testing.assert_allclose(told["distance"], found.distances, **EXACT)
    assert told["fences"] == [{"group": "", "at": found.fences[0]}]
    assert np.flatnonzero(told["odd"]).tolist() == [7]


def test_groups_that_are_large_enough_have_fences_of_their_own(page):
    small = ["a"] * 4 + ["b"] * 8
    large = ["x"] * 5 + ["y"] * 7
    alignment = fitted(n=12, metadata={"groups": small, "site": large})
    told = page(alignment).drawn["outliers"]
    found = defgpa.statistics.outliers(alignment, large)
    np.testing.assert_allclose(told["distance"], found.distances, **EXACT)
    assert [fence["group"] for fence in told["fences"]] == ["x", "y"]
    assert told["fences"][1]["at"] == found.fences[-1]
    assert "the mean shape of the group" in page(alignment).prose
    assert "No specimen lies beyond the fence" in page(alignment).prose
    assert "no proof of a mistake" not in page(alignment).prose
    alone = page(fitted(n=12, metadata={"groups": small})).drawn["outliers"]
    assert [fence["group"] for fence in alone["fences"]] == [""]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_few_shapes_make_no_space(page, n):
    made = page(fitted(n=n))
    assert (made.drawn["space"] is None) == (n < 4)
    assert ("shape-space" in made.ids) == (n >= 4)
    assert ("plot-ranking" in made.ids) == (n >= 4)


def test_shapes_that_do_not_differ_make_no_space(page, rng):
    base = rng.normal(size=(12, 2))
    alignment = defgpa.EuclideanGPA().fit(np.repeat(base[None], 5, axis=0)).alignment_
    made = page(alignment)
    assert made.drawn["space"] is None
    assert "shape-space" not in made.ids


MODELS = [
    Affine(),
    ThinPlateSpline(),
    ThinPlateSpline(points_per_axis=(5, 3), theta=10.0),
    RadialBasis(Gaussian(width=0.5), points_per_axis=4),
    RadialBasis(WendlandC2(), smoothing=0.25),
    FreeForm(points_per_axis=7, smoothing=1e-2),
    Polynomial(degree=3),
]


@pytest.mark.parametrize("model", MODELS, ids=as_code)
def test_the_code_to_do_it_again_makes_the_same_model(model):
    assert eval(as_code(model), vars(defgpa.warps)) == model


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (MODELS[0], "stretches and shears but does not bend"),
        (MODELS[2], "5 × 3 control points and smoothing θ = 10"),
        (MODELS[3], "radial functions (Gaussian) around 4 centres along each axis"),
        (MODELS[5], "lattice of 7 points along each axis, with relative smoothing 0.01"),
        (MODELS[6], "polynomial of degree 3"),
    ],
    ids=["affine", "spline", "radial", "lattice", "polynomial"],
)
def test_every_family_is_said_in_words(model, words):
    assert words in what_was_fitted(fitted(warp=model))


def test_a_warp_of_ones_own_is_reported_by_its_name(page):
    class Mine(ThinPlateSpline):
        pass

    Mine.__module__ = "somewhere.else"
    made = page(fitted(warp=Mine(points_per_axis=3))).prose
    assert "import defgpa" not in made  # nobody knows how to import it
    assert "Mine(points_per_axis=3)" in made


def test_a_wireframe_is_kept_and_what_does_not_fit_is_dropped(page):
    wireframe = [(0, 1), [1, 2, 3], (7, 99), "ab", (2, "x"), 5]
    packed = page(fitted(metadata={"wireframe": wireframe})).drawn["edges"]
    edges = np.frombuffer(base64.b64decode(packed["whole"]), dtype="<i4").reshape(packed["size"])
    assert edges.tolist() == [[0, 1], [1, 2], [2, 3]]


def test_a_small_set_is_drawn_completely(wings):
    drawn = drawn_part(wings)
    assert len(drawn.shapes) == 24
    assert len(drawn.landmarks) == 43
    assert drawn.sentences == []


@pytest.mark.parametrize(("n", "m"), [(3, 40_000), (5000, 25), (700, 600)])
def test_a_large_set_is_thinned_the_worst_kept_and_the_page_says_so(n, m, rng):
    class Large:
        shapes = type("Sizes", (), {"n_shapes": n, "n_landmarks": m})
        residuals = rng.uniform(0.5, 1.0, size=(n, m))

    Large.residuals[n // 3] *= 3
    Large.residuals[:, m // 3] *= 3
    drawn = drawn_part(Large)
    assert len(drawn.shapes) * len(drawn.landmarks) <= MOST_PAIRS
    assert len(drawn.shapes) <= MOST_SHAPES
    assert n // 3 in drawn.shapes
    assert m // 3 in drawn.landmarks
    assert np.all(np.diff(drawn.shapes) > 0)
    kept = [f"{len(drawn.landmarks):,} of the {m:,} landmarks"] * (len(drawn.landmarks) < m)
    kept += [f"{len(drawn.shapes):,} of the {n:,} shapes"] * (len(drawn.shapes) < n)
    assert kept
    assert all(words in " ".join(drawn.sentences) for words in kept)
    everything = drawn_part(Large, None)
    assert (len(everything.shapes), len(everything.landmarks)) == (n, m)
    assert everything.sentences == []


def own_prediction(alignment):
    """A cross-validation of the right size, for reports that are about size."""
    return CrossValidation(alignment.aligned, alignment, (), 1, ())


@pytest.mark.parametrize(
    ("n", "m", "faces"),
    [(300, 155, None), (10, 5261, np.arange(15_780).reshape(-1, 3) % 5261), (320, 200, None)],
    ids=["many shapes", "mesh", "both"],
)
def test_the_page_stays_below_ten_megabytes(tmp_path, n, m, faces):
    points = smooth_family(seed=5, n=n, m=m, d=3)
    names = [f"{'Genus species subspecies':-<60}{i}" for i in range(n)]
    shapes = defgpa.Shapes(points, names=names, faces=faces)
    alignment = defgpa.DefGPA(Affine()).fit(shapes).alignment_
    target = tmp_path / "large.html"
    write_report(alignment, target, cross_validation=own_prediction(alignment))
    assert target.stat().st_size < TEN_MEGABYTES
    packed = Page(target).drawn["faces"]
    assert (packed is None) == (faces is None)


def test_the_same_alignment_gives_the_same_page_saved_or_not(tmp_path, wings):
    defgpa.save(wings, tmp_path / "result.npz")
    for name, alignment in (("a", wings), ("b", defgpa.load(tmp_path / "result.npz"))):
        write_report(alignment, tmp_path / f"{name}.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_the_cross_validation_must_be_of_the_same_shapes(tmp_path, wings):
    other = fitted()
    with pytest.raises(ShapeError, match=r"\(6, 40, 2\), the alignment of \(24, 43, 2\)"):
        write_report(wings, tmp_path / "r.html", cross_validation=own_prediction(other))
    assert not list(tmp_path.iterdir())


def test_only_an_alignment_has_a_report(tmp_path):
    with pytest.raises(DefgpaError, match=r"model\.alignment_\); got DefGPA"):
        write_report(defgpa.DefGPA(), tmp_path / "r.html")


@pytest.mark.parametrize("absent", ["jinja2", "plotly.offline"])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, wings, absent):
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(DefgpaError, match=r"pip install 'defgpa\[report\]'"):
        write_report(wings, tmp_path / "r.html")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.75, "3.750"),
        (0, "0"),
        (0.0, "0"),
        (1032, "1,032"),
        (123456.7, "123,457"),
        (1.5e12, "1.500e+12"),
        (1.5e-7, "1.500e-07"),
        (1234.4, "1234"),
        (float("nan"), "–"),
    ],
)
def test_numbers_are_for_the_eye(value, text):
    assert number(value) == text


def test_tables_are_titled_headings_in_order_and_controls_named(page, wings, wings_cv):
    made = page(wings, cross_validation=wings_cv)
    tags = [tag for tag, _ in made.tags]
    assert tags.count("table") == tags.count("caption")
    assert tags.count("h1") == 1
    assert next(tag for tag in tags if tag in {"h1", "h2", "h3"}) == "h1"
    assert ("html", {"lang": "en"}) in made.tags
    for _, given in made.tags:
        if given.get("role") in {"img", "region"}:
            assert given["aria-label"]
    targets = {g["href"][1:] for t, g in made.tags if t == "a" and g["href"].startswith("#")}
    assert targets <= made.ids


def test_the_size_of_the_error_is_told_in_shares_of_the_shape(page, wings):
    centred = wings.reference - wings.reference.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=1).mean())
    share = f"{100 * wings.rmse_reference / size:.2g} % of the size of the reference"
    assert share in page(wings).prose
    np.testing.assert_allclose(size**2 * len(centred), wings.eigenvalues.sum(), **EXACT)
