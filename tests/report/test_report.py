"""The report is one file that says what was fitted, in figures that are the alignment's own."""

from __future__ import annotations

import base64
import html
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.base import clone

import defgpa
from defgpa.datasets import load_wings
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.errors import DefgpaError, DefgpaWarning, ShapeError
from defgpa.model_selection import Comparison, CrossValidation, MethodFigures, Verdict
from defgpa.palette import GROUP_COLOURS
from defgpa.procrustes import SIMILARITY, fit_motions
from defgpa.report import write_methods, write_report
from defgpa.report._display import MAX_LANDMARKS, choose_display, thin_landmarks
from defgpa.report._encoding import dump_script_json, pack_positions
from defgpa.report._groups import find_group_columns
from defgpa.report._scene import deform_lattice, find_motions, make_lattice
from defgpa.report._sentences import describe_fit, format_code, format_number
from defgpa.warps import (
    Affine,
    FreeForm,
    Gaussian,
    Polynomial,
    RadialBasis,
    ThinPlateSpline,
    WendlandC2,
    fit_interpolating_spline,
)
from support import EXACT, make_smoothing_path, rotation, smooth_family, triangulated_grid

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
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        self.ids.add(attributes.get("id"))
        if tag in {"script", "style"}:
            self._inside = attributes.get("id", tag)
        if "data-result" in attributes:
            self.figures[attributes["data-result"]] = float(attributes["value"])
        if "data-compared" in attributes:
            self.compared.append((attributes["data-compared"], float(attributes["value"])))

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
    actual = page(wings, cross_validation=wings_cv).figures
    assert actual["rmse_reference"] == wings.rmse_reference
    assert actual["rmse_datum"] == wings.rmse_datum
    assert actual["cve"] == wings_cv.error
    assert actual["spectral_gap"] == wings.diagnostics.gap
    assert actual["foldovers"] == wings.foldovers.sum()
    assert actual["visible"] == wings.n_counted
    assert (actual["shapes"], actual["landmarks"]) == (24, 43)


def test_every_figure_has_a_sentence_and_no_cve_is_made_up(page, wings):
    made = page(wings)
    assert "cve" not in made.figures
    assert "There is no cross-validation error here." in made.prose
    assert made.prose.count("RMSE_r") >= 2


def test_the_page_describes_the_fit(page, wings):
    made = page(wings, title="Wings & stings", provenance={"input": "wings.tps"})
    assert "Wings & stings" in made.prose
    assert "24 specimens with 43 landmarks in 2-D (18 of 1,032 (1.7 %) missing)" in made.prose
    assert "thin-plate spline with 5 control points along each axis" in made.prose
    assert "wings.tps" in made.prose
    assert defgpa.__version__ in made.prose


def test_nothing_is_fetched_from_anywhere(page, wings):
    for tag, attributes in page(wings).tags:
        assert attributes.get("src", "data:").startswith("data:")
        assert tag not in {"iframe", "object", "embed"}
        address = attributes.get("href", "#")
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
    assert not set(dump_script_json(value)) & set("<>&\u2028\u2029")
    assert json.loads(dump_script_json(value)) == value


def test_packed_positions_are_exact_to_the_eye(rng):
    points = rng.normal(size=(4, 50, 3)) * [1.0, 1e3, 1e-3] + 1e5
    points[1, :7] = np.nan
    points[2] = np.nan
    points[3, :, 0] = 5.0
    back = positions(pack_positions(points))
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
    pose = distances(drawn["poses"])
    d = alignment.shapes.n_dims
    matrices, shifts = pose[:, : d * d].reshape(-1, d, d), pose[:, d * d :]
    measured = positions(drawn["moved"]) @ matrices + shifts[:, None]
    np.testing.assert_allclose(measured, alignment.shapes.points, atol=1e-3)
    np.testing.assert_allclose(positions(drawn["reference"])[0], alignment.reference, atol=1e-3)
    np.testing.assert_allclose(distances(drawn["residuals"]), alignment.residuals, rtol=1e-6)


def test_similar_copies_coincide_before_they_are_warped(rng):
    """Similar copies are all the same before they are warped."""
    base = rng.normal(size=(30, 2)) * [3, 2]
    copies = [rng.uniform(1, 3) * base @ rotation(rng, 2) + rng.normal(size=2) for _ in range(4)]
    alignment = defgpa.DefGPA().fit(copies).alignment_
    moved = find_motions(alignment)(alignment.shapes.points)
    np.testing.assert_allclose(moved, np.broadcast_to(moved[0], moved.shape))


def test_a_mirrored_shape_is_mirrored_back_before_it_is_compared():
    points = smooth_family(seed=4, n=6, bend=0.05)
    points[2, :, 0] *= -1
    with pytest.warns(DefgpaWarning, match="Mirrored"):
        alignment = defgpa.DefGPA().fit(points).alignment_
    onto = find_motions(alignment)
    moved = onto(alignment.shapes.points)
    spread = np.linalg.norm(moved - alignment.reference, axis=2).mean(axis=1)
    assert np.linalg.det(onto.rotation[2]) == pytest.approx(-1)
    assert spread[2] < 2 * np.median(spread)


def test_a_grid_over_an_undeformed_shape_stays_square(rng):
    base = rng.normal(size=(30, 2)) * [3, 2]
    copies = [base @ rotation(rng, 2) + rng.normal(size=2) for _ in range(4)]
    alignment = defgpa.DefGPA().fit(copies).alignment_
    nodes, _, _ = make_lattice(alignment.reference, 4)
    deformed = deform_lattice(alignment, find_motions(alignment), nodes)
    np.testing.assert_allclose(deformed, np.broadcast_to(nodes, deformed.shape), atol=1e-6)


@pytest.mark.parametrize("d", [2, 3])
def test_the_grid_covers_the_landmarks_with_square_cells(rng, d):
    reference = rng.normal(size=(60, d)) * [5, 2, 1][:d]
    nodes, rows, columns = make_lattice(reference, 10)
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
    offsets = positions(drawn["predicted"]) - positions(drawn["reference"])
    expected = wings_cv.distances
    np.testing.assert_allclose(np.linalg.norm(offsets, axis=2), expected, atol=0.05)  # pixels
    np.testing.assert_allclose(distances(drawn["errors"]), expected, rtol=1e-6)


def test_worries_come_first_and_in_plain_words(page):
    points = smooth_family(seed=4, n=6, bend=0.05)
    points[2, :, 0] *= -1
    with pytest.warns(DefgpaWarning):
        alignment = defgpa.DefGPA().fit(defgpa.Shapes(points, names=list("abcdef"))).alignment_
    made = page(alignment).prose
    assert "Mirrored against the majority of the shapes: 'c'" in made
    assert made.index("Check this first") < made.index("Before and after")
    assert "No problems found" not in made


def test_foldovers_and_findings_of_folds_are_listed_as_problems(page, wings, wings_cv):
    foldovers = np.zeros(24, dtype=int)
    foldovers[5] = 3
    alignment = replace(wings)
    vars(alignment)["foldovers"] = foldovers  # as if computed already
    wobbly = Finding(Problem.MIRRORED, ("bee",))
    actual = ((wobbly,), *[()] * (len(wings_cv.folds) - 1))
    made = page(alignment, cross_validation=replace(wings_cv, findings=actual)).prose
    assert f"The warp of '{wings.shapes.names[5]}' folds over itself at 3 landmarks" in made
    assert f"1 of {len(wings_cv.folds)} folds" in made
    assert "'bee'" in made


def test_the_page_says_where_no_problems_were_found(page, wings):
    made = page(wings).prose
    assert "No problems found" in made
    assert "Check this first" not in made


def test_missing_landmarks_are_counted_or_denied(page, wings):
    made = page(wings)
    assert "18 of 1,032 landmarks are missing, in 8 specimens" in made.prose
    assert "plot-missing" in made.ids
    full = page(fitted())
    assert "every landmark is visible in every specimen" in full.prose
    assert "plot-missing" not in full.ids


def test_the_largest_residuals_are_named(page, wings):
    i, j = np.unravel_index(np.nanargmax(wings.residuals), wings.residuals.shape)
    assert f"{wings.shapes.names[i]} at {wings.shapes.landmarks[j]}" in page(wings).prose


def test_the_smoothing_path_is_drawn_where_it_has_a_logarithm(page, wings):
    values, rising = np.array([0.0, 1e-4, 1e-2]), np.array([3.0, 1.0, 2.0])
    path = make_smoothing_path(values, rising, 0.5 * rising, np.array([9.0, np.nan, 0.8]))
    made = page(wings, smoothing=path)
    assert made.drawn["smoothing"] == {
        "values": [1e-4, 1e-2],
        "cve": [1.0, 2.0],
        "rmse_reference": [0.5, 1.0],
        "rmse_datum": [None, 0.8],
        "chosen": 1e-4,
        "minimum": 1e-4,
    }
    assert "A smoothing of 0.0001 was chosen" in made.prose
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
    methods = [
        attributes["data-method"] for _, attributes in made.tags if "data-method" in attributes
    ]
    assert methods == ["mine", "EUC_d", "tiny", "<other>"]  # by rank
    assert made.compared[5:10] == [
        ("rmse_datum", 22.375),
        ("rmse_reference", 22.376),
        ("cve", 23.0625),
        ("relative_cve", 0.230625),
        ("seconds", 0.02),
    ]
    best = [
        attributes["data-method"]
        for _, attributes in made.tags
        if attributes.get("class") == "best"
    ]
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
def test_methods_without_a_spectrum_have_a_report(page, estimator, words):
    call = repr(estimator)
    made = page(clone(estimator).fit(smooth_family()).alignment_)
    assert words in made.prose
    assert "plot-spectrum" not in made.ids
    assert "spectral_gap" not in made.figures
    assert f"defgpa.{call}.fit(shapes)" in made.prose


@pytest.mark.parametrize(
    ("sources", "title"),
    [
        (["data/wings.tps"] * 5, "wings.tps: 5 specimens aligned"),
        ([f"data/bees/{k}.pts" for k in range(5)], "bees: 5 specimens aligned"),
        (["a/1.pts", "b/1.pts"] * 2 + ["a/3.pts"], "Alignment of 5 specimens"),
        (None, "Alignment of 5 specimens"),
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
    actual = {}
    exec(html.unescape(blocks[0]), actual)
    return actual


@pytest.mark.parametrize("proportions", ["rigid", "prior", [50.0, 20.0]], ids=str)
@pytest.mark.parametrize("saved", [False, True])
def test_the_python_of_the_page_repeats_the_fit(page, tmp_path, saved, proportions):
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


def test_the_page_shows_its_command(page):
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
        "links": [(0, 1)],
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
    assert "There are 40 groups in 'species': the 34 with most specimens have" in made.prose


def test_columns_of_a_table_are_offered_and_measurements_are_not():
    message = tuple({"stage": str(k // 30), "weight": str(k / 7), "age": ""} for k in range(60))
    message[4]["stage"] = ""
    metadata = {"groups": ["a", None] * 30, "variables": (*message[:-1], None)}
    shapes = defgpa.Shapes(smooth_family(seed=3, n=60, m=5), metadata=metadata)
    actual = find_group_columns(shapes)
    assert list(actual) == ["group", "stage"]
    assert actual["group"][:2] == ("a", "not stated")
    assert actual["stage"][3:5] == ("0", "not stated")
    assert actual["stage"][-2:] == ("1", "not stated")
    chosen = tuple(item and item["stage"] for item in metadata["variables"])
    assert list(find_group_columns(shapes.with_metadata(groups=chosen))) == ["stage"]


def test_columns_given_as_lists_arrays_and_tables_colour_the_page(page):
    alignment = fitted(n=6)
    kind = ["b", "a"] * 3
    for values in (kind, tuple(kind), np.array(kind), pandas.Series(kind, index=range(5, 11))):
        (column,) = page(alignment, data={"kind": values}).drawn["columns"]
        assert column == {"name": "kind", "names": ["a", "b"], "of": [1, 0] * 3}
    (column,) = page(alignment, data=pandas.DataFrame({"kind": kind})).drawn["columns"]
    assert column["names"] == ["a", "b"]


def test_a_column_of_another_length_is_refused_by_name(tmp_path):
    with pytest.raises(ShapeError, match=r"'kind' must have one value a specimen, 6 in all; got 2"):
        write_report(fitted(n=6), tmp_path / "r.html", data={"kind": ["a", "b"]})
    with pytest.raises(ShapeError, match=r"got 'apis'"):
        write_report(fitted(n=6), tmp_path / "r.html", data={"kind": "apis"})


def test_colours_of_groups_are_those_of_the_plots():
    style = (Path(write_report.__code__.co_filename).parent / "templates/style.css").read_text()
    light = dict(reversed(re.findall(r"--group-(\d): (#\w+);", style)))
    assert tuple(light[str(k)] for k in range(7)) == GROUP_COLOURS


def test_links_are_drawn_as_given_and_none_are_invented(page):
    alignment = fitted(n=5)
    assert page(alignment).drawn["links"] is None
    packed = page(alignment, links=[(0, 3), (4, 2)]).drawn["links"]
    links = np.frombuffer(base64.b64decode(packed["whole"]), dtype="<i4").reshape(packed["size"])
    assert links.tolist() == [[0, 3], [4, 2]]


def test_the_choice_of_the_smoothing_names_the_rule_and_its_cost(page, wings):
    cve = np.array([3.0, 2.0, 2.1])
    path = make_smoothing_path(
        np.array([1e-4, 1e-3, 1e-2]), cve, cve, cve, np.full(3, 0.2), np.zeros(3, dtype=int)
    )
    made = page(wings, smoothing=path)
    assert "one-standard-error rule" in made.prose
    assert "the rule costs 5 % in CVE" in made.prose
    assert (made.drawn["smoothing"]["chosen"], made.drawn["smoothing"]["minimum"]) == (1e-2, 1e-3)


def test_methods_are_there_to_be_copied(page, wings, wings_cv):
    made = page(wings, cross_validation=wings_cv)
    text = write_methods(wings, cross_validation=wings_cv)
    assert " ".join(text.split()) in made.prose
    assert "24 specimens with 43 landmarks in 2 dimensions (18 of 1,032 landmarks, 1.7 %," in text
    assert "Bai, F., & Bartoli, A. (2022)" in text
    assert "Bookstein, F. L. (1989)" in text
    assert "Gower" not in text
    rigid = write_methods(defgpa.EuclideanGPA().fit(wings.shapes).alignment_)
    assert "Gower, J. C. (1975)" in rigid
    assert "Bartoli" not in rigid
    with pytest.raises(DefgpaError, match=r"model\.alignment_\); got DefGPA"):
        write_methods(defgpa.DefGPA())


def test_the_grid_of_a_component_follows_its_spline(page):
    alignment = fitted(seed=3, n=8)
    space = page(alignment).drawn["space"]
    grid = space["grid"]
    nodes, bent = positions(grid["nodes"])[0], positions(grid["components"])
    assert len(nodes) == grid["rows"] * grid["columns"]
    mean, components = positions(space["mean"])[0], positions(space["components"])
    for k in (0, 3):
        warp = fit_interpolating_spline(mean, mean + components[k])
        expected = np.asarray(warp(nodes)) - nodes
        size = np.abs(components[k]).max()
        np.testing.assert_allclose(bent[k], expected, atol=0.01 * size)


def test_specimens_that_are_largely_estimated_are_remarked(page):
    points = smooth_family(seed=3, n=8)
    points[2, :15] = np.nan
    points[3, 0] = np.nan
    made = page(defgpa.DefGPA(Affine()).fit(points).alignment_)
    assert made.prose.count("largely estimated") == 2  # one specimen, and the explanation
    assert made.drawn["missing"][2:4] == [15, 1]


def test_tables_have_no_empty_columns(page):
    complete = page(fitted(n=6)).text
    table = complete[complete.index('id="specimens"') :]
    headings = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table[: table.index("</thead>")])
    assert headings == ["Specimen", "RMSE_r", "RMSE_d"]


def test_photographs_are_shown_with_their_landmarks(page, tmp_path):
    from PIL import Image

    points = smooth_family(seed=3, n=5, m=12)
    points = 100.0 + 10.0 * points
    for k in range(4):
        Image.new("L", (300, 200), 40 * k).save(tmp_path / f"wing_{k}.png")
    metadata = {
        "images": [f"C:\\photos\\wing_{k}.png" for k in range(5)],  # of the fifth there is no file
        "sources": [str(tmp_path / "wings.tps")] * 5,
        "scales": [0.5] * 5,
    }
    shapes = defgpa.Shapes(points, metadata=metadata)
    made = page(defgpa.DefGPA(Affine()).fit(shapes).alignment_)
    assert "photographs" in made.ids
    assert sum(tag == "image" for tag, _ in made.tags) == 4
    circles = [attributes for tag, attributes in made.tags if tag == "circle"]
    assert len(circles) == 4 * 12
    assert float(circles[0]["cx"]) == pytest.approx(points[0, 0, 0] / 0.5, abs=0.06)
    assert float(circles[0]["cy"]) == pytest.approx(200 - points[0, 0, 1] / 0.5, abs=0.06)
    assert "photographs" not in page(fitted(n=5)).ids


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
    actual = mean + np.tensordot(pca.scores_, components, 1)
    size = np.linalg.norm(alignment.reference - alignment.reference.mean(axis=0))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-4 * size)
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
    assert "1 specimen is an outlier: it lies farther from the mean shape than 1.5" in made.prose
    assert "no proof of a mistake" in made.prose
    assert "use the coordinates called superimposed" in made.prose
    marks = [attributes["data-mark"] for tag, attributes in made.tags if "data-mark" in attributes]
    assert marks[0] == names[7]
    assert marks.count(names[7]) == 3  # in the list of specimens, and for both landmarks
    drawn_outliers = made.drawn["outliers"]
    actual = defgpa.statistics.outliers(alignment)
    np.testing.assert_allclose(drawn_outliers["distance"], actual.distances, **EXACT)
    assert drawn_outliers["limits"] == [{"group": "", "at": actual.limits[0]}]
    assert np.flatnonzero(drawn_outliers["odd"]).tolist() == [7]


def test_groups_that_are_large_enough_have_limits_of_their_own(page):
    small = ["a"] * 4 + ["b"] * 8
    large = ["x"] * 5 + ["y"] * 7
    alignment = fitted(n=12, metadata={"groups": small, "site": large})
    drawn_outliers = page(alignment).drawn["outliers"]
    actual = defgpa.statistics.outliers(alignment, large)
    np.testing.assert_allclose(drawn_outliers["distance"], actual.distances, **EXACT)
    assert [limit["group"] for limit in drawn_outliers["limits"]] == ["x", "y"]
    assert drawn_outliers["limits"][1]["at"] == actual.limits[-1]
    assert "the mean shape of their group" in page(alignment).prose
    assert "No specimen is an outlier" in page(alignment).prose
    assert "no proof of a mistake" not in page(alignment).prose
    alone = page(fitted(n=12, metadata={"groups": small})).drawn["outliers"]
    assert [limit["group"] for limit in alone["limits"]] == [""]


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


@pytest.mark.parametrize("model", MODELS, ids=format_code)
def test_the_code_of_a_model_makes_an_equal_model(model):
    assert eval(format_code(model), vars(defgpa.warps)) == model


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
    assert words in describe_fit(fitted(warp=model))


def test_a_warp_of_ones_own_is_reported_by_its_name(page):
    class Mine(ThinPlateSpline):
        pass

    Mine.__module__ = "somewhere.else"
    made = page(fitted(warp=Mine(points_per_axis=3))).prose
    assert "import defgpa" not in made  # nobody knows how to import it
    assert "Mine(points_per_axis=3)" in made


def test_a_wireframe_is_kept_and_what_does_not_fit_is_dropped(page):
    wireframe = [(0, 1), [1, 2, 3], (7, 99), "ab", (2, "x"), 5]
    packed = page(fitted(metadata={"links": wireframe})).drawn["links"]
    edges = np.frombuffer(base64.b64decode(packed["whole"]), dtype="<i4").reshape(packed["size"])
    assert edges.tolist() == [[0, 1], [1, 2], [2, 3]]


def test_a_small_set_is_drawn_completely(wings):
    display = choose_display(wings)
    np.testing.assert_array_equal(display.landmarks, np.arange(43))
    assert display.notes == []


@pytest.mark.parametrize(("n", "m"), [(3, 40_000), (700, 600)])
def test_many_landmarks_are_thinned_and_the_worst_kept(n, m, rng):
    residuals = rng.uniform(0.5, 1.0, size=(n, m))
    residuals[:, m // 3] *= 3
    thinned = thin_landmarks(residuals, 200)
    assert len(thinned) == 200
    assert m // 3 in thinned
    assert np.all(np.diff(thinned) > 0)
    np.testing.assert_array_equal(thin_landmarks(residuals, m), np.arange(m))


def test_five_thousand_specimens_are_all_on_the_page(page):
    points = np.random.default_rng(0).normal(size=(5_000, 1, 2)) * 0.02
    points = smooth_family(seed=5, n=1, m=80)[0] + points * np.sin(np.arange(160)).reshape(80, 2)
    points[4_321] += 0.5 * np.random.default_rng(1).normal(size=(80, 2))
    with pytest.warns(DefgpaWarning, match="far from all the others"):
        alignment = defgpa.EuclideanGPA().fit(points).alignment_
    made = page(alignment)
    drawn = made.drawn
    assert len(drawn["names"]) == 5_000
    assert drawn["space"]["scores"]["size"][0] == 5_000
    assert len(drawn["outliers"]["distance"]) == 5_000
    assert drawn["outliers"]["odd"][4_321]
    assert drawn["aligned"]["size"] == [5_000, 60, 2]
    assert "60 of the 80 landmarks are drawn" in made.prose


def test_a_large_mesh_is_decimated_and_stays_a_surface(page):
    x, y, faces = triangulated_grid(100)
    points = [np.column_stack([x, y, 0.1 * k * x * y + np.sin(x)]) for k in range(1, 5)]
    shapes = defgpa.Shapes(points, faces=faces)
    made = page(defgpa.EuclideanGPA().fit(shapes).alignment_)
    n_vertices = len(made.drawn["landmarks"])
    assert 1_000 < n_vertices <= MAX_LANDMARKS
    assert made.drawn["faces"]["size"][0] > n_vertices / 2
    assert f"surfaces are drawn with {n_vertices:,} of the 10,000 vertices" in made.prose


def own_prediction(alignment):
    """A cross-validation of the right size, for reports that are about size."""
    return CrossValidation(alignment.aligned, alignment, (), 1, ())


@pytest.mark.parametrize(
    ("n", "m", "faces"),
    [(600, 155, None), (10, 5261, np.arange(15_780).reshape(-1, 3) % 5261)],
    ids=["many shapes", "mesh"],
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
    new_fit = fitted()
    with pytest.raises(ShapeError, match=r"\(6, 40, 2\), the alignment of \(24, 43, 2\)"):
        write_report(wings, tmp_path / "r.html", cross_validation=own_prediction(new_fit))
    assert not list(tmp_path.iterdir())


def test_only_an_alignment_has_a_report(tmp_path):
    with pytest.raises(DefgpaError, match=r"model\.alignment_\); got DefGPA"):
        write_report(defgpa.DefGPA(), tmp_path / "r.html")


@pytest.mark.parametrize("absent", ["jinja2", "plotly.offline"])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, wings, absent):
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(DefgpaError, match=r"pip install \"defgpa\[report\]\""):
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
    assert format_number(value) == text


def test_tables_are_titled_headings_in_order_and_controls_named(page, wings, wings_cv):
    made = page(wings, cross_validation=wings_cv)
    tags = [tag for tag, _ in made.tags]
    assert tags.count("table") == tags.count("caption")
    assert tags.count("h1") == 1
    assert next(tag for tag in tags if tag in {"h1", "h2", "h3"}) == "h1"
    assert ("html", {"lang": "en"}) in made.tags
    for _, attributes in made.tags:
        if attributes.get("role") in {"img", "region"}:
            assert attributes["aria-label"]
    targets = {g["href"][1:] for t, g in made.tags if t == "a" and g["href"].startswith("#")}
    assert targets <= made.ids


def test_the_size_of_the_error_is_told_in_shares_of_the_shape(page, wings):
    centred = wings.reference - wings.reference.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=1).mean())
    share = f"{100 * wings.rmse_reference / size:.2g} % of the size of the reference"
    assert share in page(wings).prose
    np.testing.assert_allclose(size**2 * len(centred), wings.eigenvalues.sum(), **EXACT)


def test_report_of_a_rigid_alignment_has_no_section_about_deformation(tmp_path):
    wings = load_wings().take(range(4))
    for model, mentions in ((defgpa.EuclideanGPA(), False), (defgpa.DefGPA(), True)):
        write_report(model.fit(wings).alignment_, tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert ('id="deformation"' in page) == ('href="#deformation"' in page) == mentions
