"""The report in a real browser: every plot drawn, every switch works, nothing fetched."""

from __future__ import annotations

import base64
import importlib.util
import json
import re

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait
from test_report import NASTY

import defgpa
from defgpa.datasets import load_wings
from defgpa.model_selection import compare, cross_validate, select_smoothing
from defgpa.procrustes import SIMILARITY, fit_motions
from defgpa.report import write_report
from support import ROOT, SHARED, smooth_family, triangulated_grid

_spec = importlib.util.spec_from_file_location("make_picture", ROOT / "docs" / "make_picture.py")
make_picture = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_picture)

pytestmark = pytest.mark.skipif(
    make_picture.browser_and_driver() is None,
    reason="no chromium with chromedriver here: the report is not opened in a browser",
)
PATIENCE = 60  # seconds on a machine that does other things as well


def wings_report(folder):
    """Everything a report can hold, in 2-D, with names that would rather be markup."""
    names = [*NASTY, *(f"wing {k}" for k in range(7))]
    labels = [NASTY[0], NASTY[1], *(f"landmark {j}" for j in range(2, 43))]
    wings = load_wings()
    shapes = defgpa.Shapes(
        wings.points[::2], names=names, landmarks=labels, metadata=wings.take(range(12)).metadata
    )
    model = defgpa.DefGPA()
    write_report(
        model.fit(shapes).alignment_.posed_like(shapes[0]),
        folder / "wings.html",
        cross_validation=cross_validate(model, shapes, fold_size=11),
        smoothing=select_smoothing(model, shapes, grid=[1e-5, 1e-3, 1e-1], fold_size=11),
        comparison=compare(shapes, [defgpa.EuclideanGPA(), model], fold_size=11),
    )


def solid_shapes():
    """3-D, landmarks missing, lines between them."""
    wireframe = [(j, j + 1) for j in range(20)]
    points = smooth_family(seed=7, n=5, m=40, d=3, missing=0.1)
    return defgpa.Shapes(points, metadata={"links": wireframe})


def solid_report(folder):
    write_report(defgpa.DefGPA().fit(solid_shapes()).alignment_, folder / "solid.html")


SIDE = 13  # landmarks along a side of the mesh


def sheets(faces=False):
    """Nine bent sheets, one of them with missing landmarks, with triangles if these are wanted."""
    u, v, triangles = triangulated_grid(SIDE)
    bent = [np.column_stack([u, v, k / 10 * np.sin(u + k) + 0.2 * u * v]) for k in range(9)]
    bent[3][100:140] = np.nan
    return defgpa.Shapes(bent, faces=triangles if faces else None)


def mesh_report(folder):
    alignment = defgpa.DefGPA().fit(sheets(faces=True)).alignment_
    write_report(alignment, folder / "mesh.html")


def numbered_shapes():
    """Specimens and landmarks named by numbers, as most are, but not in their order."""
    points = smooth_family(seed=11, n=9, m=24, missing=0.1)
    names = [str(k) for k in (4, 0, 1, 12, 3, 2, 7, 8, 5)]
    landmarks = [str(k) for k in (*range(7, 19), *range(0, 7), *range(30, 35))]
    return defgpa.Shapes(points, names=names, landmarks=landmarks)


def numbered_report(folder):
    write_report(defgpa.DefGPA().fit(numbered_shapes()).alignment_, folder / "numbered.html")


def cloud_report(folder):
    """More dots than are drawn at once: the limit is lowered, as 15,000 dots take long."""
    points = sheets().points
    alignment = defgpa.DefGPA().fit(points[..., :2] + 0.1 * points[..., 2:]).alignment_
    target = folder / "cloud.html"
    write_report(alignment, target)
    page = target.read_text(encoding="utf-8")
    assert page.count("MAX_DOTS = 15000;") == 1
    target.write_text(page.replace("MAX_DOTS = 15000;", "MAX_DOTS = 1000;"), encoding="utf-8")


def many_report(folder):
    """More specimens than a list holds, in two groups."""
    rng = np.random.default_rng(4)
    points = smooth_family(seed=4, n=1, m=4)[0] + 0.05 * rng.normal(size=(700, 4, 2))
    alignment = defgpa.EuclideanGPA().fit(points).alignment_
    write_report(alignment, folder / "many.html", data={"kind": rng.choice(["a", "b"], 700)})


REPORTS = {
    "cloud": cloud_report,
    "many": many_report,
    "wings": wings_report,
    "solid": solid_report,
    "mesh": mesh_report,
    "numbered": numbered_report,
}
KINDS = ("wings", "solid", "mesh")


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The folder of the reports, each written when it is first asked for."""
    folder = tmp_path_factory.mktemp("reports")

    def path(name):
        target = folder / f"{name}.html"
        if not target.exists():
            REPORTS[name](folder)
        return target

    return path


@pytest.fixture(scope="module")
def chromium():
    with make_picture.chromium(1200) as driver:
        yield driver


@pytest.fixture
def browser(chromium):
    """The browser, in which a test must not leave an error."""
    yield chromium
    assert errors(chromium) == []


@pytest.fixture(scope="module")
def tabs():
    """The tab of each report that is open."""
    return {}


@pytest.fixture
def opened(browser, reports, tabs):
    """A report with all its plots drawn, in a tab that the tests share: opening takes longest.

    So a test finds the switches as the one before it has left them.
    """

    def opened(name):
        if name not in tabs:
            browser.switch_to.new_window("tab")
            make_picture.open_report(browser, reports(name), PATIENCE)
            tabs[name] = browser.current_window_handle
        browser.switch_to.window(tabs[name])
        return browser

    return opened


def emulate(browser, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def errors(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def fetched(browser):
    """The addresses of everything that went over a network."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [
        e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"
    ]
    return [url for url in requests if re.match("(https?|wss?|ftp):", url)]


def drawn(browser, plot):
    """Of every trace of a plot: type, name, and how many places it has."""
    return browser.execute_script(
        "return document.getElementById('plot-' + arguments[0])._fullData.map(t => [t.type, t.name,"
        " Array.from(t.z && t.z.length && t.type === 'heatmap' ? t.z.flat() : t.x || [])"
        ".filter(x => x !== null).length])",
        plot,
    )


def coordinates(browser, plot):
    """The coordinates of all traces of a plot."""
    return browser.execute_script(
        "return document.getElementById('plot-' + arguments[0])._fullData"
        ".map(t => [t.x, t.y, t.z].filter(Boolean).map(axis => Array.from(axis)))",
        plot,
    )


def labelled_dots(browser, plot):
    """The text and the place of every dot of a plot that has a text."""
    return browser.execute_script(
        "return document.getElementById('plot-' + arguments[0])._fullData.filter(t => t.text?.map)"
        ".flatMap(t => t.text.map((words, k) => [words, t.x[k], t.y[k]]))",
        plot,
    )


def times_drawn(browser, plot):
    return int(browser.find_element(By.ID, f"plot-{plot}").get_attribute("data-drawn"))


def after(browser, plot, act):
    """Do something and wait until the plot has been drawn again."""
    before = times_drawn(browser, plot)
    act()
    WebDriverWait(browser, PATIENCE, 0.05).until(lambda _: times_drawn(browser, plot) > before)


def choose(browser, name, value):
    """Click a radio button as a reader would, on what is over it."""
    choice = browser.find_element(By.CSS_SELECTOR, f"input[name={name}][value={value}]")
    browser.execute_script("arguments[0].click()", choice)


def press(browser, selector):
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


def dots(browser, plot="reference"):
    """How many dots of shapes, beside the reference, a plot has by name."""
    return {
        name: count
        for kind, name, count in drawn(browser, plot)
        if "scatter" in kind and name not in {"reference", "lines"}
    }


def point_at(browser, plot, x, y):
    """Move the mouse to a place of a plot, at once; it takes a movement there to be noticed."""
    for step in (3, 0):
        mouse = ActionChains(browser, duration=0)
        mouse.move_to_element_with_offset(plot, x + step, y).perform()


def hovered_over_map(browser, row, column, plot="residuals"):
    """What a map says when the mouse is over a cell."""
    plot = browser.find_element(By.ID, f"plot-{plot}")
    x, y = browser.execute_script(
        "const { xaxis, yaxis } = arguments[0]._fullLayout;"
        "arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' });"
        "const { width, height } = arguments[0].getBoundingClientRect();"
        "return [xaxis._offset + xaxis.c2p(arguments[2]) - width / 2,"
        " yaxis._offset + yaxis.c2p(arguments[1]) - height / 2].map(Math.round)",
        plot,
        row,
        column,
    )
    point_at(browser, plot, x, y)
    is_hovered = "return String(arguments[0]._hoverdata?.[0].pointNumber) === String(arguments[1])"
    WebDriverWait(browser, PATIENCE, 0.05).until(
        lambda _: browser.execute_script(is_hovered, plot, [row, column])
    )
    return browser.execute_script(
        "return arguments[0].querySelector('.hoverlayer').textContent", plot
    )


def written_at(browser, plot, axis):
    """The labels of an axis as they are drawn: the place of each, in cells, and its text."""
    ticks = browser.execute_script(
        "const plot = document.getElementById('plot-' + arguments[0]);"
        "const axis = plot._fullLayout[arguments[1] + 'axis'];"
        "const area = plot.querySelector('.nsewdrag').getBoundingClientRect();"
        "return [...plot.querySelectorAll(`.${arguments[1]}tick text`)].map(t => {"
        " const box = t.getBoundingClientRect();"
        " const at = arguments[1] === 'x' ? (box.left + box.right) / 2 - area.left"
        "  : (box.top + box.bottom) / 2 - area.top;"
        " return [axis.p2c(at), t.textContent]; })",
        plot,
        axis,
    )
    return {round(at): text for at, text in ticks}


@pytest.mark.parametrize("name", KINDS)
def test_every_plot_is_drawn_without_an_error_or_a_request(opened, name):
    browser = opened(name)
    plots = browser.find_elements(By.CSS_SELECTOR, "div.plot")  # plotly 5 has a g.plot inside
    assert len(plots) == {"wings": 11, "solid": 10, "mesh": 10}[name]
    for plot in plots:
        traces = drawn(browser, plot.get_attribute("id").removeprefix("plot-"))
        assert sum(count for *_, count in traces) > 0
        assert plot.find_elements(By.CSS_SELECTOR, "svg.main-svg, canvas")
        assert plot.size["height"] > 150
    assert fetched(browser) == []


def test_shapes_are_switched_on_and_off_and_found(opened):
    browser = opened("wings")
    everything = dots(browser)
    after(browser, "reference", lambda: press(browser, "#list [data-none]"))
    assert sum(dots(browser).values()) == 0
    assert "0 of 12 specimens shown" in browser.find_element(By.CSS_SELECTOR, "#list .status").text

    after(browser, "reference", lambda: press(browser, "#list li[data-shape='7'] .only"))
    visible = ~np.isnan(load_wings().points[14, :, 0])
    assert visible.sum() == 43
    assert sum(count for name, count in dots(browser).items() if name == "wing 2") == 43
    checked = browser.find_elements(By.CSS_SELECTOR, "#list input[type=checkbox]:checked")
    assert len(checked) == 1

    search = browser.find_element(By.CSS_SELECTOR, "#list input[type=search]")
    search.send_keys("WING")
    shown = [li for li in browser.find_elements(By.CSS_SELECTOR, "#list li") if li.is_displayed()]
    assert len(shown) == 7
    after(browser, "reference", lambda: press(browser, "#list [data-all]"))
    assert "7 of 12 specimens shown" in browser.find_element(By.CSS_SELECTOR, "#list .status").text
    search.clear()
    search.send_keys(Keys.SPACE)
    after(browser, "reference", lambda: press(browser, "#list [data-all]"))
    assert dots(browser) == everything


def test_predicted_landmarks_and_distances_are_shown_on_demand(opened):
    browser = opened("wings")
    aligned = coordinates(browser, "reference")
    after(browser, "reference", lambda: choose(browser, "shown", "predicted"))
    predicted = coordinates(browser, "reference")
    assert [len(trace[0]) for trace in predicted] == [len(trace[0]) for trace in aligned]
    assert predicted != aligned
    after(browser, "reference", lambda: choose(browser, "colour", "error"))
    colours = browser.execute_script(
        "return document.getElementById('plot-reference')._fullData"
        ".map(trace => trace.marker?.color).find(Array.isArray)"
    )
    assert len(set(colours)) > 100
    choose(browser, "shown", "aligned")
    after(browser, "reference", lambda: choose(browser, "colour", "shape"))


@pytest.mark.parametrize("name", ["wings", "solid"])
def test_another_shape_another_deformation(opened, name):
    browser = opened(name)
    first = "grid" if name == "wings" else "vectors"
    second = "vectors" if name == "wings" else "grid"
    for how in (first, second):
        if how == second:
            after(browser, "deformation", lambda: choose(browser, "deformation", second))
        before = coordinates(browser, "deformation")
        picker = Select(browser.find_element(By.CSS_SELECTOR, "#pick-deformation select"))
        wanted = len(picker.options) - 1 - picker.options.index(picker.first_selected_option)
        after(browser, "deformation", lambda p=picker, k=wanted: p.select_by_index(k))
        assert coordinates(browser, "deformation") != before
    status = browser.find_element(By.ID, "deformation-status").text
    assert status.startswith(f"{picker.first_selected_option.text}: its warp moves")


@pytest.mark.parametrize("name", KINDS)
def test_before_and_after_follow_the_same_shape(opened, name):
    browser = opened(name)
    all_shapes = [drawn(browser, plot) for plot in ("before", "after")]
    after(browser, "after", lambda: press(browser, "#pick-before-after [data-step='1']"))
    first_shape = [drawn(browser, plot) for plot in ("before", "after")]
    assert first_shape != all_shapes
    assert [kind for kind, *_ in first_shape[0]] == [kind for kind, *_ in first_shape[1]]
    after(browser, "before", lambda: choose(browser, "before", "measured"))
    assert drawn(browser, "before") != first_shape[0]
    choose(browser, "before", "moved")
    after(browser, "after", lambda: press(browser, "#pick-before-after [data-step='-1']"))


def test_many_dots_are_thinned_and_all_are_drawn_on_demand(opened):
    browser = opened("cloud")
    status = browser.find_element(By.CSS_SELECTOR, "#list .status")
    assert "9 of 9 specimens shown. One landmark in 2 is drawn of each" in status.text
    visible = 9 * SIDE**2 - 40
    assert sum(dots(browser).values()) == pytest.approx(visible / 2, abs=9)
    every = browser.find_element(By.CSS_SELECTOR, "#list [data-every]")
    assert every.text == "Draw all landmarks"
    after(browser, "after", lambda: press(browser, "#list [data-every]"))
    assert sum(dots(browser).values()) == sum(dots(browser, "after").values()) == visible
    assert status.text == "9 of 9 specimens shown."
    after(browser, "after", lambda: press(browser, "#list [data-every]"))
    after(browser, "reference", lambda: press(browser, "#list li[data-shape='3'] .only"))
    assert status.text == "1 of 9 specimens shown."
    assert not every.is_displayed()
    after(browser, "reference", lambda: press(browser, "#list [data-all]"))


def test_meshes_are_surfaces_one_by_one_and_over_each_other(opened):
    browser = opened("mesh")
    for plot in ("reference", "before", "after"):
        kinds = [kind for kind, *_ in drawn(browser, plot)]
        assert kinds == ["mesh3d"] * 10  # the reference and nine specimens
    after(browser, "reference", lambda: press(browser, "#list li[data-shape='3'] .only"))
    assert ["mesh3d", SIDE**2] in [[kind, count] for kind, _, count in drawn(browser, "reference")]
    after(browser, "reference", lambda: press(browser, "#list [data-all]"))


def test_of_very_many_specimens_all_are_dots_and_the_search_finds_any(opened):
    browser = opened("many")
    counts = [count for kind, name, count in drawn(browser, "scatter") if name in ("a", "b")]
    assert sum(counts) == 700
    ranked = drawn(browser, "ranking")
    assert sum(count for _, name, count in ranked if name in ("a", "b")) == 700
    assert {"a", "b", "outlier"} == {name for _, name, _ in ranked}
    assert len(browser.find_elements(By.CSS_SELECTOR, "#list li")) == 300
    status = browser.find_element(By.CSS_SELECTOR, "#list .status")
    assert "The first 300 of 700 are listed" in status.text
    browser.find_element(By.CSS_SELECTOR, "#list input[type=search]").send_keys("shape_699")
    (item,) = browser.find_elements(By.CSS_SELECTOR, "#list li")
    assert "shape_699" in item.text
    cells = browser.execute_script("return document.getElementById('plot-residuals').data[0].z")
    assert len(cells) == 350  # two specimens to a cell


def test_groups_have_hulls_or_ellipses_as_in_the_plots(opened):
    browser = opened("many")
    scores = np.array(browser.execute_script("return pca.scores.map((row) => [row[0], row[1]])"))
    groups = np.array(browser.execute_script("return page.columns[0].of"))

    def corners(k):
        outlines = "document.getElementById('plot-scatter').data.filter(t => t.name === 'outline')"
        return np.transpose(browser.execute_script(f"const t = {outlines}[{k}]; return [t.x, t.y]"))

    for k in (0, 1):
        members = scores[groups == k]
        hull = members[ConvexHull(members).vertices]
        assert {tuple(c) for c in corners(k)} == {tuple(c) for c in hull}
    after(browser, "scatter", lambda: choose(browser, "outline", "ellipse"))
    members = scores[groups == 0]
    precision = np.linalg.inv(np.cov(members.T))
    offsets = corners(0) - members.mean(axis=0)
    squares = np.einsum("pa,ab,pb->p", offsets, precision, offsets)
    np.testing.assert_allclose(squares, 5.991, rtol=1e-4)
    after(browser, "scatter", lambda: choose(browser, "outline", "none"))
    assert "outline" not in [name for _, name, _ in drawn(browser, "scatter")]


def test_the_slider_bends_a_grid(opened):
    browser = opened("numbered")
    straight = trace(browser, "shape", "grid")
    after(browser, "shape", lambda: slide(browser, 0, slider_ends(browser, 0)[1]))
    assert trace(browser, "shape", "grid") != straight
    after(browser, "shape", lambda: choose(browser, "change", "lines"))
    assert trace(browser, "shape", "grid") is None
    after(browser, "shape", lambda: choose(browser, "change", "grid"))
    after(browser, "shape", lambda: press(browser, "#to-the-mean"))
    assert trace(browser, "shape", "grid") == straight


def test_every_figure_is_saved_as_svg_and_png(opened):
    browser = opened("numbered")
    plots = browser.find_elements(By.CSS_SELECTOR, ".plot")
    for kind in ("svg", "png"):
        buttons = browser.find_elements(By.CSS_SELECTOR, f"[data-format={kind}]")
        saved = {button.get_attribute("data-save") for button in buttons}
        assert saved == {plot.get_attribute("id").removeprefix("plot-") for plot in plots}
    browser.execute_script(
        "window.saved = []; Plotly.downloadImage = (plot, how) => saved.push([plot.id, how.format])"
    )
    press(browser, "[data-save=scatter][data-format=svg]")
    press(browser, "[data-save=residuals][data-format=png]")
    assert browser.execute_script("return saved") == [
        ["plot-scatter", "svg"],
        ["plot-residuals", "png"],
    ]


def test_names_are_only_names(opened):
    browser = opened("wings")
    with pytest.raises(NoAlertPresentException):
        browser.switch_to.alert.dismiss()
    listed = browser.find_elements(By.CSS_SELECTOR, "#list li label")
    assert [item.get_attribute("title") for item in listed[:5]] == list(NASTY)
    for item, name in zip(listed, NASTY, strict=False):
        words = item.find_elements(By.TAG_NAME, "span")[1].get_attribute("textContent")
        begin, _, end = words.partition("…")
        assert name.startswith(begin)
        assert name.endswith(end)
    picks = browser.find_elements(By.CSS_SELECTOR, "#pick-deformation option")
    assert [item.get_attribute("textContent") for item in picks[:5]] == list(NASTY)
    assert hovered_over_map(browser, 0, 1).startswith(f"{NASTY[0]}landmark {NASTY[1]}")
    assert not browser.find_elements(By.CSS_SELECTOR, "img, svg b, svg a")


def test_numbers_as_names_stand_where_their_cells_are(opened):
    browser = opened("numbered")
    alignment = defgpa.DefGPA().fit(numbered_shapes()).alignment_
    shapes = alignment.shapes
    for plot in ("residuals", "missing"):
        assert written_at(browser, plot, "y") == dict(enumerate(shapes.names))
        assert written_at(browser, plot, "x") == dict(enumerate(shapes.landmarks))
    for i, j in np.argwhere(shapes.visible)[::31]:
        tooltip = hovered_over_map(browser, int(i), int(j))
        assert tooltip.startswith(f"{shapes.names[i]}landmark {shapes.landmarks[j]}")
        assert f"{alignment.residuals[i, j]:.3g}" in tooltip
    i, j = np.argwhere(~shapes.visible)[-1]
    tooltip = hovered_over_map(browser, int(i), int(j), "missing")
    assert tooltip == f"{shapes.names[i]}landmark {shapes.landmarks[j]}missing"
    after(browser, "residuals", lambda: choose(browser, "order", "worst"))
    squares = np.where(shapes.visible, alignment.residuals, 0.0) ** 2
    worst = np.argsort(-squares.sum(axis=1) / shapes.visible.sum(axis=1), kind="stable")
    assert list(written_at(browser, "residuals", "y").values()) == [shapes.names[i] for i in worst]
    assert hovered_over_map(browser, 0, 5).startswith(shapes.names[worst[0]])


def test_every_dot_says_whose_it_is(opened):
    browser = opened("numbered")
    alignment = defgpa.DefGPA().fit(numbered_shapes()).alignment_
    shapes = alignment.shapes
    counted = 0
    for text, x, y in labelled_dots(browser, "reference"):
        name, label = re.match(r"<b>(\w+)</b><br>landmark (\d+)", text).groups()
        j = shapes.landmarks.index(label)
        at = (
            alignment.reference[j]
            if name == "reference"
            else alignment.aligned[shapes.names.index(name), j]
        )
        np.testing.assert_allclose([x, y], at, atol=1e-3)
        counted += 1
    assert counted == shapes.visible.sum() + shapes.n_landmarks


def test_a_file_of_dragonflies_is_labelled_as_it_is(browser, tmp_path):
    source = SHARED / "files" / "orthetrum" / "orthetrum_forewing.tps"
    if not source.exists():
        pytest.skip(f"{source.name} is not beside the project")
    shapes = defgpa.read_shapes(source).take(range(9))
    assert shapes.landmarks[6] == "7"
    alignment = defgpa.DefGPA(defgpa.Affine()).fit(shapes).alignment_
    write_report(alignment, tmp_path / "report.html")
    browser.switch_to.new_window("tab")
    make_picture.open_report(browser, tmp_path / "report.html", PATIENCE)
    assert written_at(browser, "residuals", "x") == dict(enumerate(shapes.landmarks))
    for k, text in written_at(browser, "residuals", "y").items():
        assert text == shapes.names[k]
    assert f"{shapes.names[3]}landmark 7" in hovered_over_map(browser, 3, 6)


def looks(browser, plot):
    """Colour and symbol of every trace of dots, by name."""
    return browser.execute_script(
        "return Object.fromEntries(document.getElementById('plot-' + arguments[0])._fullData"
        ".filter(t => t.mode === 'markers' && t.x.length)"
        ".map(t => [t.name, `${t.marker.color} ${t.marker.symbol}`]))",
        plot,
    )


def everywhere(browser, name, value):
    """Change a choice that stands in several places, in the first of them."""
    browser.execute_script(
        "const box = document.querySelector(`[data-everywhere=${arguments[0]}]`);"
        "if (box.type === 'checkbox') box.checked = arguments[1]; else box.value = arguments[1];"
        "box.dispatchEvent(new Event('change'))",
        name,
        value,
    )


def grouped_report(folder):
    """More groups than colours, in two columns, and specimens enough to lose sight of one."""
    n = 44
    metadata = {"groups": [f"site {k % 11}" for k in range(n)], "sex": ["f", "m"] * (n // 2)}
    points = smooth_family(seed=5, n=n, m=12)
    names = [f"Genus species subspecies {k}" for k in range(n)]
    shapes = defgpa.Shapes(points, names=names, metadata=metadata)
    write_report(defgpa.DefGPA(defgpa.Affine()).fit(shapes).alignment_, folder / "grouped.html")


REPORTS["grouped"] = grouped_report


def test_more_groups_than_colours_have_symbols_and_any_column_can_be_chosen(opened):
    browser = opened("grouped")
    sites = {k: look for k, look in looks(browser, "reference").items() if k.startswith("site")}
    assert len(sites) == len(set(sites.values())) == 11
    assert len({look.split()[0] for look in sites.values()}) == 7
    after(browser, "after", lambda: everywhere(browser, "column", 1))
    for plot in ("reference", "before", "after"):
        assert set(looks(browser, plot)) == {"f", "m", "reference"}
    assert {"f", "m"} <= set(looks(browser, "scatter"))
    values = [s.get_attribute("value") for s in columns_of(browser)]
    assert len(values) >= 2
    assert set(values) == {"1"}  # the same everywhere
    after(browser, "after", lambda: everywhere(browser, "column", -1))
    assert set(looks(browser, "after")) == {"shapes", "reference"}
    after(browser, "after", lambda: everywhere(browser, "column", 0))


def columns_of(browser):
    return browser.find_elements(By.CSS_SELECTOR, "[data-everywhere=column]")


def long_report(folder):
    """Shapes in space whose specimens and groups have long names."""
    points = smooth_family(seed=9, n=12, m=20, d=3)
    names = [f"Osteological-Collection_{1000 + k}_femur_left" for k in range(12)]
    shapes = defgpa.Shapes(points, names=names)
    periods = [f"Upper Palaeolithic hunter-gatherers {'abcdef'[k % 6]}" for k in range(12)]
    alignment = defgpa.EuclideanGPA().fit(shapes).alignment_
    write_report(alignment, folder / "long.html", data={"period": periods})


REPORTS["long"] = long_report


def test_legends_of_long_names_leave_room_for_the_buttons_and_the_data(opened):
    browser = opened("long")
    corners = """
const boxes = selector => [...document.querySelectorAll(selector)].map(e => {
  const { left, right, top, bottom } = e.getBoundingClientRect();
  return [left, right, top, bottom]; });
return [boxes('.plot.scene .modebar-group'), boxes('.plot.scene .legendtext')]"""
    buttons, texts = browser.execute_script(corners)
    assert len(buttons) >= 3
    assert len(texts) >= 6
    for left, right, top, bottom in buttons:
        assert not any(l < right and left < r and t < bottom and top < b for l, r, t, b in texts)
    script = """return ['scatter', 'shape'].map(id => {
  const plot = document.getElementById(`plot-${id}`);
  return [plot.clientHeight, plot._fullLayout._size.h]; })"""
    (scatter, free), (shape, _) = browser.execute_script(script)
    assert scatter == shape
    assert free > 200


def test_long_names_of_specimens_are_told_apart(opened):
    browser = opened("long")
    items = browser.find_elements(By.CSS_SELECTOR, "#list li label span:last-child")
    assert [item.text for item in items] == [f"…{1000 + k}_femur_left" for k in range(12)]
    assert set(written_at(browser, "residuals", "y").values()) == {item.text for item in items}


def test_specimens_are_told_apart_without_groups(opened):
    """While looks last, every specimen has its own, which it keeps, and the list shows it."""
    browser = opened("numbered")
    look_of = looks(browser, "reference")
    del look_of["reference"]
    assert len(look_of) == len(set(look_of.values())) == 9
    glyphs = [
        (item.text, item.value_of_css_property("color"))
        for item in browser.find_elements(By.CSS_SELECTOR, "#list .swatch")
    ]
    assert len(set(glyphs)) == 9
    after(browser, "reference", lambda: press(browser, "#list li[data-shape='8'] .only"))
    assert looks(browser, "reference")["5"] == look_of["5"]
    after(browser, "reference", lambda: press(browser, "#list [data-all]"))


def test_a_specimen_is_marked_in_every_picture(opened):
    browser = opened("grouped")
    name = "Genus species subspecies 17"
    after(browser, "after", lambda: press(browser, "#list li[data-shape='17'] .mark"))
    for plot in ("reference", "before", "after"):
        assert dots(browser, plot)[name] == 12
    # a click on a dot of another one marks that
    target = browser.execute_script(
        "const plot = document.getElementById('plot-after');"
        "const trace = plot._fullData.find(t => t.name === 'site 3');"
        "plot.emit('plotly_click', { points: [{ customdata: trace.customdata[0] }] });"
        "return trace.customdata[0]"
    )
    WebDriverWait(browser, PATIENCE, 0.05).until(
        lambda _: f"Genus species subspecies {target}" in dots(browser, "after")
    )
    assert target % 11 == 3
    assert name not in dots(browser, "after")
    marked = browser.find_elements(By.CSS_SELECTOR, "#list li.marked")
    assert [item.get_attribute("data-shape") for item in marked] == [str(target)]
    after(browser, "after", lambda: press(browser, f"#list li[data-shape='{target}'] .mark"))
    assert not any(name.startswith("Genus") for name in dots(browser, "after"))


@pytest.mark.parametrize("name", ["numbered", "solid", "mesh"])
def test_names_and_links_of_landmarks_are_shown_on_request(opened, name):
    browser = opened(name)
    texts = (
        "return document.getElementById('plot-reference')._fullData"
        ".filter(t => t.mode === 'text').flatMap(t => Array.from(t.text))"
    )
    assert browser.execute_script(texts) == []
    after(browser, "reference", lambda: everywhere(browser, "labels", True))
    labels = browser.execute_script(texts)
    expected = {"numbered": numbered_shapes().landmarks, "solid": [str(k) for k in range(1, 41)]}
    evenly = map(str, range(1, SIDE**2 + 1, 2))  # in space letters are slow
    assert labels == list(expected.get(name, evenly))
    after(browser, "reference", lambda: everywhere(browser, "labels", False))
    lines = [kind for kind in drawn(browser, "reference") if kind[1] == "lines"]
    has_wireframe = name == "solid"  # its file has a wireframe
    assert bool(lines) == has_wireframe
    box = browser.find_element(By.CSS_SELECTOR, "#reference [data-everywhere=links]")
    assert box.is_displayed() == has_wireframe  # none are invented
    if has_wireframe:
        after(browser, "reference", lambda: everywhere(browser, "links", not has_wireframe))
        lines = [kind for kind in drawn(browser, "reference") if kind[1] == "lines"]
        assert bool(lines) != has_wireframe
        after(browser, "reference", lambda: everywhere(browser, "links", has_wireframe))


def trace(browser, plot, meta):
    """The places of the trace that means something: the marked one, the moved shape, the cross."""
    return browser.execute_script(
        "const t = document.getElementById('plot-' + arguments[0])._fullData"
        ".find(t => t.meta === arguments[1]);"
        "return t ? [t.x, t.y, t.z].filter(Boolean).map(axis => Array.from(axis)) : null",
        plot,
        meta,
    )


def slide(browser, slot, value):
    """Move a slider as a hand would; where it then stands."""
    return browser.execute_script(
        "const slider = document.getElementById('slider-' + arguments[0]);"
        "slider.value = arguments[1]; slider.dispatchEvent(new Event('input'));"
        "return Number(slider.value)",
        slot,
        value,
    )


def slider_ends(browser, slot):
    slider = browser.find_element(By.ID, f"slider-{slot}")
    return [float(slider.get_attribute(end)) for end in ("min", "max")]


def spread_out(pca, alignment, scores):
    """The shape at scores along the first components, in the pose of the reference."""
    all_scores = np.zeros((1, len(pca.components_)))
    all_scores[0, : len(scores)] = scores
    pose = fit_motions(pca.mean_, alignment.reference, motions=SIMILARITY)
    return pose(pca.inverse_transform(all_scores)[0])


SPACES = {
    "numbered": lambda: defgpa.DefGPA().fit(numbered_shapes()).alignment_,
    "solid": lambda: defgpa.DefGPA().fit(solid_shapes()).alignment_,
}


@pytest.mark.parametrize("name", SPACES)
def test_sliders_move_the_shape_between_the_observed_scores(opened, name):
    browser, alignment = opened(name), SPACES[name]()
    pca = defgpa.ShapePCA().fit(alignment)
    size = np.ptp(alignment.reference)
    for slot in (0, 1):
        ends = [pca.scores_[:, slot].min(), pca.scores_[:, slot].max()]
        np.testing.assert_allclose(slider_ends(browser, slot), ends, rtol=1e-5)
    mean = np.transpose(trace(browser, "shape", "moved"))
    np.testing.assert_allclose(mean, spread_out(pca, alignment, [0, 0]), atol=1e-3 * size)
    at = []
    for slot, end in ((0, 1), (1, 0)):
        wanted = slider_ends(browser, slot)[end]
        after(browser, "shape", lambda s=slot, w=wanted: at.append(slide(browser, s, w)))
    moved = np.transpose(trace(browser, "shape", "moved"))
    np.testing.assert_allclose(moved, spread_out(pca, alignment, at), atol=1e-3 * size)
    assert np.abs(moved - mean).max() > 1e-2 * size
    np.testing.assert_allclose(np.ravel(trace(browser, "scatter", "shown")), at, rtol=1e-5)

    after(browser, "shape", lambda: choose(browser, "times", "'3'"))
    magnified = np.transpose(trace(browser, "shape", "moved"))
    np.testing.assert_allclose(magnified - mean, 3 * (moved - mean), atol=2e-3 * size)
    status = browser.find_element(By.ID, "shape-status").text
    j = int(np.linalg.norm(magnified - mean, axis=1).argmax())
    assert "magnified 3 times" in status
    assert f"most at landmark {alignment.shapes.landmarks[j]}." in status
    after(browser, "shape", lambda: choose(browser, "times", "'1'"))
    after(browser, "shape", lambda: press(browser, "#to-the-mean"))
    np.testing.assert_allclose(np.transpose(trace(browser, "shape", "moved")), mean)


def test_the_scatter_shows_the_scores_of_any_two_components(opened):
    browser, alignment = opened("numbered"), SPACES["numbered"]()
    pca, names = defgpa.ShapePCA().fit(alignment), alignment.shapes.names
    for across, up in ((0, 1), (3, 1), (3, 3)):
        for slot, component in enumerate((across, up)):
            picker = Select(browser.find_element(By.ID, f"component-{slot}"))
            if picker.first_selected_option.get_attribute("value") != str(component):
                after(browser, "shape", lambda p=picker, c=component: p.select_by_value(str(c)))
        labelled = labelled_dots(browser, "scatter")
        places = {re.match(r"<b>(\w+)</b>", words)[1]: (x, y) for words, x, y in labelled}
        assert sorted(places) == sorted(names)
        for i, name in enumerate(names):
            np.testing.assert_allclose(places[name], pca.scores_[i, [across, up]], rtol=1e-5)
        titles = browser.execute_script(
            "const { xaxis, yaxis } = document.getElementById('plot-scatter')._fullLayout;"
            "return [xaxis.title.text, yaxis.title.text]"
        )
        shares = 100 * pca.explained_variance_ratio_
        for title, k in zip(titles, (across, up), strict=True):
            assert re.fullmatch(rf"component {k + 1} \(([\d.]+) %\)", title)
            assert float(re.search(r"([\d.]+) %", title)[1]) == pytest.approx(shares[k], rel=0.01)
    for slot, component in enumerate((0, 1)):
        picker = Select(browser.find_element(By.ID, f"component-{slot}"))
        after(browser, "shape", lambda p=picker, c=component: p.select_by_value(str(c)))


def test_a_specimen_that_is_clicked_is_the_shape_that_is_drawn(opened):
    browser, alignment = opened("numbered"), SPACES["numbered"]()
    pca = defgpa.ShapePCA().fit(alignment)
    plot = browser.find_element(By.ID, "plot-scatter")
    i = int(pca.scores_[:, 0].argmax())
    x, y = browser.execute_script(
        "const [plot, x, y] = arguments; const { xaxis, yaxis } = plot._fullLayout;"
        "plot.scrollIntoView({ block: 'center', behavior: 'instant' });"
        "const { width, height } = plot.getBoundingClientRect();"
        "return [xaxis._offset + xaxis.d2p(x) - width / 2,"
        " yaxis._offset + yaxis.d2p(y) - height / 2].map(Math.round)",
        plot,
        *pca.scores_[i, :2].tolist(),
    )

    def click():
        point_at(browser, plot, x, y)
        tooltip = "return arguments[0].querySelector('.hoverlayer').textContent"
        WebDriverWait(browser, PATIENCE, 0.05).until(
            lambda _: browser.execute_script(tooltip, plot)
        )
        assert browser.execute_script(tooltip, plot).startswith(alignment.shapes.names[i])
        ActionChains(browser).click().perform()

    after(browser, "shape", click)
    marked = Select(browser.find_element(By.ID, "pick-marked")).first_selected_option.text
    assert marked == alignment.shapes.names[i]
    shown = np.ravel(trace(browser, "scatter", "shown"))
    np.testing.assert_allclose(shown, pca.scores_[i, :2], rtol=1e-5)
    moved = np.transpose(trace(browser, "shape", "moved"))
    expected = spread_out(pca, alignment, pca.scores_[i, :2])
    np.testing.assert_allclose(moved, expected, atol=1e-3 * np.ptp(alignment.reference))
    for plot in ("reference", "before", "after"):
        assert len(trace(browser, plot, "marked")[0]) == alignment.shapes.visible[i].sum()
    # and the table of odd specimens marks as well
    buttons = browser.find_elements(By.CSS_SELECTOR, "#outliers [data-mark]")
    button = next(b for b in buttons if b.get_attribute("data-mark") != marked)
    after(browser, "ranking", lambda: browser.execute_script("arguments[0].click()", button))
    picker = Select(browser.find_element(By.ID, "pick-marked"))
    assert picker.first_selected_option.text == button.get_attribute("data-mark")
    after(browser, "ranking", lambda: picker.select_by_value("-1"))
    assert trace(browser, "scatter", "marked") is None
    after(browser, "shape", lambda: press(browser, "#to-the-mean"))


def test_the_ranking_names_every_specimen_at_its_distance(opened):
    browser, alignment = opened("numbered"), SPACES["numbered"]()
    outliers = defgpa.statistics.outliers(alignment)
    dots_with_text = labelled_dots(browser, "ranking")
    assert len(dots_with_text) == 9
    for words, rank, distance in dots_with_text:
        i = alignment.shapes.names.index(re.match(r"<b>(\w+)</b>", words)[1])
        assert distance == pytest.approx(outliers.distances[i])
        assert rank == 1 + outliers.order.tolist().index(i)


def test_a_mesh_follows_the_sliders(opened):
    browser = opened("mesh")
    before = trace(browser, "shape", "moved")
    after(browser, "shape", lambda: slide(browser, 0, slider_ends(browser, 0)[1]))
    [kind] = [t for t in drawn(browser, "shape") if t[0] == "mesh3d"]
    assert kind[2] == SIDE**2
    assert trace(browser, "shape", "moved") != before
    after(browser, "shape", lambda: press(browser, "#to-the-mean"))


def test_dense_shapes_in_space_are_squares_without_the_dots_of_the_mean(opened):
    browser = opened("solid")
    looks = (
        "return document.getElementById('plot-shape')._fullData"
        ".filter(t => t.mode === 'markers').map(t => [t.name, t.marker.symbol])"
    )
    assert browser.execute_script(looks) == [["mean", "circle"], ["shape", "circle"]]
    browser.execute_script("window.isSparse = isDense; isDense = () => true")
    after(browser, "shape", lambda: slide(browser, 0, slider_ends(browser, 0)[1]))
    assert browser.execute_script(looks) == [["shape", "square"]]
    browser.execute_script("isDense = window.isSparse")
    after(browser, "shape", lambda: press(browser, "#to-the-mean"))
    assert errors(browser) == []


def test_the_reference_stands_out_in_space(opened):
    """It is larger than the dots around it, and has a rim in the colour of the page."""
    browser = opened("solid")
    markers = browser.execute_script(
        "return document.getElementById('plot-reference')._fullData"
        ".filter(t => t.mode === 'markers').map(t => [t.name, t.marker.size, t.marker.line.width])"
    )
    [reference] = [trace for trace in markers if trace[0] == "reference"]
    others = [trace for trace in markers if trace[0] != "reference"]
    assert reference[1] > max(size for _, size, _ in others)
    assert reference[2] > 0


def test_residuals_can_be_ordered_and_judged_when_left_out(opened):
    browser = opened("wings")
    [rows] = coordinates(browser, "residuals")[0]
    after(browser, "residuals", lambda: choose(browser, "order", "worst"))
    [worst] = coordinates(browser, "residuals")[0]
    assert worst != rows
    assert sorted(map(str, worst)) == sorted(map(str, rows))
    squares = [np.mean([x * x for x in row if x is not None]) for row in worst]
    assert squares == sorted(squares, reverse=True)
    after(browser, "residuals", lambda: choose(browser, "distances", "errors"))
    assert coordinates(browser, "residuals")[0] != [worst]
    choose(browser, "distances", "residuals")
    after(browser, "residuals", lambda: choose(browser, "order", "given"))


def test_the_table_has_the_figures_of_the_summary(browser, run, tmp_path):
    few = load_wings().take(range(6))
    source = tmp_path / "wings.tps"
    defgpa.write_shapes(defgpa.Shapes.specimens(few.points, names=few.names), source)
    words = ["fit", str(source), "-o", str(tmp_path), "--fold-size", "11", "--report", "--quiet"]
    run.succeed(*words)
    summary = json.loads((tmp_path / "summary.json").read_text())["figures"]
    browser.switch_to.new_window("tab")
    browser.get((tmp_path / "report.html").as_uri())
    cells = browser.find_elements(By.CSS_SELECTOR, "#results [data-result]")
    cell_of = {cell.get_attribute("data-result"): cell for cell in cells}
    for key in ("rmse_reference", "rmse_datum", "cve", "spectral_gap", "foldovers", "visible"):
        assert float(cell_of[key].get_attribute("value")) == summary[key]
        assert float(cell_of[key].text.replace(",", "")) == pytest.approx(summary[key], rel=1e-3)
    browser.get("about:blank")  # its plots are not drawn


def test_plots_follow_the_colour_scheme_and_paper_is_light(opened):
    browser = opened("numbered")
    ink = "return document.getElementById('plot-spectrum')._fullLayout.font.color"
    light = browser.execute_script(ink)
    after(browser, "spectrum", lambda: emulate(browser, "dark"))
    dark = browser.execute_script(ink)
    assert dark != light
    page = "return getComputedStyle(document.body).backgroundColor"
    assert sum(map(int, re.findall(r"\d+", browser.execute_script(page)))) < 150
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script(ink) == light
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(ink) == dark
    after(browser, "spectrum", lambda: emulate(browser, "light"))


def test_paper_holds_everything_within_its_width(opened):
    browser = opened("solid")
    browser.execute_script(
        "addEventListener('beforeprint', () => { window.printed ="
        " [...document.querySelectorAll('div.plot')].map(p => p._fullLayout.width); })"
    )
    made = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    assert base64.b64decode(made["data"]).startswith(b"%PDF")
    widths = browser.execute_script("return window.printed")
    paper = (8.27 - 2 * 14 / 25.4) * 96
    assert max(widths) < paper


def test_a_phone_needs_no_sideways_scrolling(browser, reports):
    browser.switch_to.new_window("tab")
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    make_picture.open_report(browser, reports("wings"), PATIENCE)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    assert "left" not in browser.find_element(By.ID, "before-after").text  # it is above
    wide = browser.execute_script(
        "return [...document.querySelectorAll('.plot, .controls *, .sliders *, .list *, h1, h2')]"
        ".filter(e => e.getBoundingClientRect().right > 391).map(e => e.className)"
    )
    assert wide == []


def test_shapes_in_space_are_whole_in_pictures_of_any_width(browser, reports):
    browser.switch_to.new_window("tab")
    outside = """
        const { scene } = document.getElementById("plot-reference")._fullLayout;
        const { view, projection } = scene._scene.glplot.cameraParams;
        const times = (m, v) =>
          [0, 1, 2, 3].map((row) => v.reduce((sum, x, k) => sum + m[4 * k + row] * x, 0));
        const place = (at, k) => {
          const [low, high] = scene["xyz"[k] + "axis"].range;
          return ((at - low) / (high - low) - 0.5) * scene.aspectratio["xyz"[k]];
        };
        return shapes.landmarks.filter((_, j) => {
          const at = [...shapes.reference.subarray(3 * j, 3 * j + 3)].map(place);
          const [across, up, , depth] = times(projection, times(view, [...at, 1]));
          return !(Math.max(Math.abs(across), Math.abs(up)) < depth);
        });
    """
    for width in (1400, 900, 420):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        make_picture.open_report(browser, reports("solid"), PATIENCE)
        assert browser.execute_script(outside) == []


def test_every_control_has_a_name_and_the_keyboard_turns_a_scene(opened):
    browser = opened("solid")
    for control in browser.find_elements(By.CSS_SELECTOR, "button, select, main input"):
        if control.is_displayed() and not control.get_attribute("data-title"):
            assert control.accessible_name
    scene = browser.find_element(By.ID, "plot-before")
    eye = "return JSON.stringify(document.getElementById(arguments[0]).layout.scene.camera.eye)"
    start = browser.execute_script(eye, "plot-before")
    scene.send_keys(Keys.ARROW_LEFT)
    WebDriverWait(browser, PATIENCE, 0.05).until(
        lambda _: browser.execute_script(eye, "plot-after") != start
    )
    turned = browser.execute_script(eye, "plot-before")
    assert browser.execute_script(eye, "plot-after") == turned  # seen from the same side


def test_without_webgl_the_shapes_are_shown_from_one_side(reports):
    with make_picture.chromium(1200, ["--disable-3d-apis"]) as browser:
        make_picture.open_report(browser, reports("solid"), PATIENCE)
        kinds = {kind for kind, *_ in drawn(browser, "reference")}
        assert kinds == {"scatter"}
        assert "cannot draw in 3-D" in browser.find_element(By.CLASS_NAME, "if-flattened").text
        assert errors(browser) == []


def test_the_picture_of_the_readme_is_made_by_a_script(reports, tmp_path):
    target = tmp_path / "report.png"
    make_picture.make_picture(reports("numbered"), target)
    head = target.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, height = (int.from_bytes(head[k : k + 4], "big") for k in (16, 20))
    assert width == round(make_picture.WIDTH * make_picture.SHARPNESS)
    assert 0.5 < height / width < 1.5
