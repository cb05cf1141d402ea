"""A study from the drop of a file to the exported script, in a real browser, server and all."""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from app_support import wait_until
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import defgpa
from defgpa.edits import read_edits
from io_support import format_tps

DOCS = Path(__file__).resolve().parents[2] / "docs"
spec = spec_from_file_location("make_picture", DOCS / "make_picture.py")
make_picture = module_from_spec(spec)
spec.loader.exec_module(make_picture)

pytestmark = pytest.mark.skipif(
    make_picture.browser_and_driver() is None,
    reason="no chromium with chromedriver here: the app is not opened in a browser",
)
HARMLESS = ("GPU stall", "WebGL", "favicon", "was preloaded")  # notes of a browser without a GPU
HOSTILE = "<img src=x onerror=\"document.title='taken'\">"


class Run:
    """A server in a process of its own, and a browser that has its page open."""

    def __init__(self, driver, projects):
        self.driver, self.projects, self.process, self.port = driver, projects, None, 0
        self.outages: list[tuple[float, float]] = []  # when no server answered

    def start(self):
        """Start the server, on the same port as before if it ran already, and open its page."""
        source = str(Path(defgpa.__file__).parents[1])
        command = [sys.executable, "-m", "defgpa", "app", "--no-browser", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, "--projects", str(self.projects)],
            env={**os.environ, "PYTHONPATH": source},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.address = re.search(r"http\S+", self.process.stdout.readline())[0]
        self.port = int(self.address.split(":")[2].split("/")[0])
        self.driver.get(self.address)
        self.wait_for("document.documentElement.dataset.ready")

    def kill(self):
        self.killed = time.time()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def restart(self):
        """Start the server again; until its page is there, requests may fail in the network."""
        self.start()
        self.outages.append((self.killed, time.time()))

    def list_errors(self):
        """Return what went wrong in the browser, but for requests that a killed server cut off."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if not any(word in entry["message"] for word in HARMLESS)
            and not (
                "Failed to load resource: net::ERR_" in entry["message"]
                and any(low <= entry["timestamp"] / 1000 <= high for low, high in self.outages)
            )
        ]

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait_for(self, condition, seconds=60.0):
        return wait_until(lambda: self.js(f"return Boolean({condition})"), seconds)

    def click(self, selector):
        self.wait_for(f"document.querySelector('{selector}:not(:disabled)')")
        self.js(f"document.querySelector('{selector}').click()")

    def go(self, step):
        self.click(f"#step-{step}")
        self.wait_for(f"document.documentElement.dataset.ready === '{step}'")

    def drop(self, name, text):
        """Drop a file onto the page."""
        self.js(
            "const data = new DataTransfer();"
            "data.items.add(new File([arguments[1]], arguments[0]));"
            "document.querySelector('.drop').dispatchEvent(new DragEvent('drop',"
            "{dataTransfer: data, bubbles: true, cancelable: true}))",
            name,
            text,
        )

    def go_home(self):
        """Show the page of all projects."""
        root = "document.documentElement.dataset"
        self.js(f"if (location.hash) {{ {root}.ready = ''; location.hash = ''; }}")
        self.wait_for("document.documentElement.dataset.ready === 'open'")

    def drop_paths(self, *paths):
        """Drag files or folders of the disk onto the page, as from a file manager."""
        self.go_home()
        x, y = self.js(
            "const box = document.querySelector('.drop').getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]"
        )
        data = {"items": [], "files": list(map(str, paths)), "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            event = {"type": kind, "x": x, "y": y, "data": data}
            self.driver.execute_cdp_cmd("Input.dispatchDragEvent", event)

    def open_files(self, paths):
        """Open files as a new project, from the page of all projects."""
        self.go_home()
        chooser = self.driver.find_element(By.ID, "choose-files")
        with suppress(StaleElementReferenceException):  # the project may be open before it returns
            chooser.send_keys("\n".join(map(str, paths)))

    def press(self, key):
        self.driver.find_element(By.TAG_NAME, "body").send_keys(key)

    def type(self, *keys, held=None):
        """Press keys where the focus is, one after the other."""
        actions = ActionChains(self.driver, duration=0)
        if held:
            actions.key_down(held)
        actions.send_keys(*keys)
        if held:
            actions.key_up(held)
        actions.perform()

    def tab_to(self, selector):
        """Press Tab, with Shift where it lies before, until something has the focus."""
        count = self.js(COUNT_CONTROLS, selector)
        held = Keys.SHIFT if count <= 0 else None
        self.type(*[Keys.TAB] * abs(count), held=held)
        for _ in range(5):  # what can be scrolled has the focus on the way, too
            if self.js(f"return document.activeElement.matches('{selector}')"):
                return
            self.type(Keys.TAB, held=held)
        raise AssertionError(f"{selector} is not reached by Tab.")

    def go_by_key(self, step):
        self.tab_to(f"#step-{step}")
        self.type(Keys.ENTER)
        self.wait_for(f"document.documentElement.dataset.ready === '{step}'")

    def place_of(self, landmark):
        """Where a landmark is drawn, from the middle of the canvas."""
        return self.js(
            "const view = window.defgpaView, [x, y] = view.project(view.place(arguments[0]));"
            "return [x - view.canvas.clientWidth / 2, y - view.canvas.clientHeight / 2]",
            landmark,
        )

    def drag(self, landmark, dx, dy):
        canvas = self.driver.find_element(By.CSS_SELECTOR, "canvas.view")
        x, y = (round(value) for value in self.place_of(landmark))
        actions = ActionChains(self.driver, duration=20)
        actions.move_to_element_with_offset(canvas, x, y).click_and_hold()
        actions.move_by_offset(dx // 2, dy // 2).move_by_offset(dx - dx // 2, dy - dy // 2)
        actions.release().perform()

    def wait_for_rest(self, landmark):
        """Wait until a landmark has stayed in its place for a while: the view may turn to it."""

        def rests():
            before = self.place_of(landmark)
            time.sleep(0.4)
            return self.place_of(landmark) == before

        wait_until(rests)

    def count_edits(self):
        heading = self.js("return document.querySelector('.log')?.parentElement.textContent ?? ''")
        return int(re.search(r"Edits \((\d+)\)", heading)[1]) if heading else 0

    def wait_for_edits(self, count):
        wait_until(lambda: self.count_edits() == count)
        self.wait_for_queue()

    def wait_for_queue(self):
        self.wait_for(
            "!document.querySelector('.side.left small')?.textContent.includes('Looking')"
        )

    @property
    def folder(self):
        return next(path for path in self.projects.iterdir() if path.name == "moths")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    flags = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with make_picture.chromium(1400, flags) as driver:
        running = Run(driver, tmp_path_factory.mktemp("app") / "projects")
        running.start()
        try:
            yield running
        finally:
            running.kill()


def write_wings():
    """The bundled wings as a TPS file with two landmarks swapped and one misplaced."""
    shapes = defgpa.datasets.load_wings()
    points = np.array(shapes.points)
    points[2, [3, 7]] = points[2, [7, 3]]
    points[8, 4] += [90, 60]
    rows = []
    for name, shape in zip(shapes.names, points, strict=True):
        title = HOSTILE if name == "apis_02" else name
        lines = [" ".join("NA" if np.isnan(x) else f"{x:.2f}" for x in point) for point in shape]
        rows += [f"LM={len(lines)}", *lines, f"ID={title}"]
    return "\n".join(rows) + "\n"


def test_a_study_from_the_file_to_the_script(run, monkeypatch, capsys):
    # open
    run.drop("moths.tps", write_wings())
    run.wait_for("document.querySelector('h1')?.textContent === 'moths'")
    run.drop(
        "table.csv",
        "id,kind,mass\n"
        + "".join(
            f'"{(HOSTILE if k == 1 else name).replace(chr(34), chr(34) * 2)}",{name[:4]},{k}\n'
            for k, name in enumerate(defgpa.datasets.load_wings().names)
        ),
    )
    run.wait_for("document.body.textContent.includes('id, kind, mass')")

    # look
    run.go("look")
    run.wait_for("document.querySelectorAll('.item').length > 5")
    assert run.js("return document.querySelectorAll('.item img').length") == 0
    assert HOSTILE in run.js("return document.querySelector('.rows').textContent")

    # correct: the worst finding is shown first; one is swapped, one accepted
    run.go("correct")
    run.wait_for("document.querySelectorAll('.queue button').length > 1")
    run.wait_for("document.querySelector('[data-action=swap].suggested')")
    run.press("s")
    run.wait_for_edits(1)
    run.press("j")
    run.wait_for("document.querySelector('.worry')?.textContent.includes('far from')")
    run.press("a")
    run.wait_for_edits(2)

    # drag a landmark, undo, redo, mark one missing
    run.js("const s = document.getElementById('specimen'); s.value = 4; s.onchange?.();"
           "s.dispatchEvent(new Event('change'))")  # fmt: skip
    run.wait_for("document.querySelector('.stage h2').textContent === 'apis_05'")
    time.sleep(0.3)
    before = run.js("return window.defgpaView.place(10)")
    run.drag(10, 60, -30)
    run.wait_for_edits(3)
    after = run.js("return window.defgpaView.place(10)")
    assert after[0] > before[0] + 5
    assert after[1] > before[1] + 2
    stored = read_edits(run.folder / "edits.json")[-1]
    assert (stored.action, stored.specimen) == ("move", "apis_05")
    np.testing.assert_allclose(stored.to, after, rtol=1e-6)
    run.click("#undo")
    run.wait_for_edits(2)
    np.testing.assert_allclose(run.js("return window.defgpaView.place(10)"), before, rtol=1e-6)
    run.click("#redo")
    run.wait_for_edits(3)
    run.press("m")
    run.wait_for_edits(4)
    assert read_edits(run.folder / "edits.json")[-1].action == "set missing"

    # align
    run.go("align")
    run.wait_for("document.querySelector('#compare')")
    run.js(  # cancelled before the server has answered
        "document.getElementById('compare').click();"
        "[...document.querySelectorAll('[data-action=cancel]')].at(-1).click()"
    )
    run.wait_for("document.getElementById('messages').textContent.includes('Cancelled')")
    run.js("document.getElementById('compare').focus()")
    run.click("#compare")
    run.wait_for("document.querySelectorAll('#methods tbody tr').length > 2")
    run.wait_for("document.querySelector('#use-recommended')")
    assert run.js("return document.activeElement.id") == "compare"  # kept for the keyboard
    run.click("#use-recommended")
    run.wait_for("document.getElementById('kind').value === 'deformable'")
    run.wait_for("document.querySelector('#figures')")

    # explore
    run.go("explore")
    run.wait_for("document.querySelector('#morphospace .dot')")
    run.wait_for("document.querySelector('.shape canvas')")
    time.sleep(0.5)
    mean = run.driver.find_element(By.CSS_SELECTOR, ".shape canvas").screenshot_as_base64
    chart = run.driver.find_element(By.CSS_SELECTOR, "#morphospace svg")
    ActionChains(run.driver).move_to_element_with_offset(chart, 210, -120).click().perform()
    wait_until(
        lambda: (
            run.driver.find_element(By.CSS_SELECTOR, ".shape canvas").screenshot_as_base64 != mean
        )
    )

    # figures are kept as they look
    run.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "deny"})
    chart, shape, bitmap = (
        run.driver.execute_async_script(KEEP_FIGURE, name)
        for name in ("morphospace.svg", "shape.svg", "morphospace.png")
    )
    assert chart.count("<path") > 24  # a marker for each wing
    assert "PC1" in chart
    assert shape.count("<path") > 30  # landmarks, links, the lines of the grid
    assert bitmap[1:4] == "PNG"

    # test, with completion
    run.go("test")
    formula = run.driver.find_element(By.ID, "formula")
    formula.clear()
    formula.send_keys("shape ~ ki")
    run.wait_for("!document.querySelector('.suggest ul').hidden")
    formula.send_keys("\t")
    assert formula.get_attribute("value") == "shape ~ kind"
    run.click("#run-test")
    run.wait_for("document.querySelector('#anova')")
    assert "kind" in run.js("return document.querySelector('#anova').textContent")

    # take away
    run.go("take-away")
    run.js(
        "for (const box of document.querySelectorAll('[data-part]')) {"
        "  const isWanted = ['scripts', 'tables'].includes(box.dataset.part);"
        "  if (box.checked !== isWanted) box.click(); }"
    )
    run.click("#write")
    run.wait_for("document.querySelector('#files')?.textContent.includes('analysis.py')")
    shown = run.js(
        "return (await fetch(location.pathname + 'api/projects/moths/alignment')).json()"
    )
    monkeypatch.chdir(run.folder)
    runpy.run_path("results/scripts/analysis.py")
    printed = capsys.readouterr().out
    assert float(re.search(r"RMSE_r (\S+)", printed)[1]) == shown["rmse_reference"]
    anova = (run.folder / "results" / "tables" / "anova.csv").read_text().splitlines()[1]
    p_value = float(anova.split(",")[-1])
    assert re.search(rf"kind .*{p_value:.3f}", printed), printed
    assert run.driver.title != "taken"


def select_option(run, box, value):
    run.js(
        "const box = document.getElementById(arguments[0]); box.value = arguments[1];"
        "box.dispatchEvent(new Event('change'))",
        box,
        value,
    )


def test_columns_of_numbers_are_a_scale_and_groups_have_markers(run):
    run.go("explore")
    run.wait_for("document.querySelectorAll('#morphospace .hull').length === 2")  # of column kind
    dots = "[...document.querySelectorAll('#morphospace .dot')]"
    count_colours = f"return new Set({dots}.map((dot) => dot.getAttribute('fill'))).size"
    assert run.js(count_colours) == 2
    select_option(run, "colour", "mass")
    run.wait_for("document.querySelector('.legend .ramp')")
    assert run.js(count_colours) > 12
    assert run.js("return document.querySelectorAll('#morphospace .hull').length") == 0
    select_option(run, "marker", "kind")
    run.wait_for("document.querySelectorAll('.legend svg').length === 2")
    assert "mass" not in run.js(
        "return [...document.getElementById('marker').options].map(({ value }) => value)"
    )
    select_option(run, "colour", ":size")
    run.wait_for("document.querySelector('.legend')?.textContent.includes('centroid size')")
    select_option(run, "colour", "kind")
    factors = run.driver.execute_async_script(
        "const done = arguments[0]; import('/static/columns.js')"
        ".then(({ nameFactor }) => done(['kind', 'mass'].map(nameFactor)))"
    )
    assert factors == ["kind", "C(mass)"]  # numbers alone would be a covariate


def test_figures_follow_edits_that_are_undone_and_tests_the_method(run):
    dots = "document.querySelectorAll('#morphospace .dot').length"
    count = run.js(f"return {dots}")
    edits = len(read_edits(run.folder / "edits.json"))
    run.go("correct")
    run.wait_for_edits(edits)
    run.press("x")
    run.wait_for_edits(edits + 1)
    run.go("explore")
    run.wait_for(f"{dots} === {count - 1}")
    run.click("#undo")
    run.wait_for(f"{dots} === {count}")
    run.go("test")
    run.click("#run-test")
    run.wait_for("document.querySelector('#anova')")
    select_option(run, "column-individual", "kind")
    run.click("#repeatability")  # of no consequence for the table of the formula
    run.wait_for("document.querySelector('#asymmetry')?.textContent.includes('epeatability')")
    run.go("align")
    run.go("test")
    run.wait_for("document.querySelector('#anova')")
    run.go("align")
    select_option(run, "kind", "affine")
    run.wait_for("document.querySelector('.card .soft')?.textContent.includes('affine')")
    run.go("test")
    assert run.js("return document.querySelector('#anova')") is None


def read_settings(run):
    return json.loads((run.folder / "settings.json").read_text(encoding="utf-8"))


def test_the_allometry_that_is_shown_is_in_the_study_and_can_be_left_out(run):
    run.go("explore")
    run.click("#allometry")
    run.wait_for("document.querySelector('#remove-allometry')")
    assert read_settings(run)["allometry"]
    run.go("align")
    run.go("explore")  # shown again
    run.click("#remove-allometry")
    run.wait_for("!document.querySelector('#remove-allometry')")
    assert not read_settings(run)["allometry"]


def test_a_formula_that_cannot_be_tested_does_not_enter_the_scripts(run):
    before = read_settings(run)["test"]
    run.go("test")
    formula = run.driver.find_element(By.ID, "formula")
    formula.clear()
    formula.send_keys("shape ~ colour ")
    run.click("#run-test")
    run.wait_for("document.querySelector('.message.error')?.textContent.includes('colour')")
    wait_until(lambda: read_settings(run)["test"] == before)


def test_a_killed_server_loses_nothing(run):
    count = len(read_edits(run.folder / "edits.json"))
    run.go("correct")
    run.wait_for_edits(count)
    for k in range(3):
        run.press("]")
        run.press("m")
        run.wait_for_edits(count + k + 1)
    run.kill()
    run.press("r")
    run.wait_for("document.querySelector('.message.error')?.textContent.includes('still running')")
    run.restart()
    run.wait_for("document.documentElement.dataset.ready === 'correct'")  # where it was
    run.wait_for_edits(count + 3)
    assert len(read_edits(run.folder / "edits.json")) == count + 3


def test_two_tabs_do_not_overwrite_each_other(run):
    run.go("correct")
    count = len(read_edits(run.folder / "edits.json"))
    run.wait_for_edits(count)
    first = run.driver.current_window_handle
    address = run.driver.current_url
    run.driver.switch_to.new_window("tab")
    run.driver.get(address)
    run.wait_for("document.documentElement.dataset.ready === 'correct'")
    run.wait_for_edits(count)
    run.press("r")
    run.wait_for_edits(count + 1)
    run.driver.close()
    run.driver.switch_to.window(first)
    # as if the tab had not noticed: its revision is the old one
    run.js("window.dispatchEvent(new Event('focus'))")
    run.wait_for_edits(count + 1)
    assert len(read_edits(run.folder / "edits.json")) == count + 1


def test_an_older_answer_of_the_server_does_not_replace_a_newer_project(run):
    run.go("correct")
    count = len(read_edits(run.folder / "edits.json"))
    run.wait_for_edits(count)
    revision, number = run.driver.execute_async_script(EDIT_WHILE_OPENING)
    assert number == count + 1
    state = "return fetch(location.pathname + 'api/projects/moths').then((a) => a.json())"
    assert revision == run.js(state)["revision"]
    run.click("#undo")
    run.wait_for_edits(count)


def test_landmarks_in_space_are_drawn_turned_and_dragged(run):
    run.driver.get(run.address)
    run.wait_for("document.documentElement.dataset.ready")
    run.js("location.hash = ''")
    run.click("[data-sample=skulls]")
    run.wait_for("document.documentElement.dataset.ready === 'look'")
    run.go("correct")
    run.wait_for("window.defgpaView?.frames > 1")
    run.wait_for_queue()
    run.wait_for_rest(0)
    assert run.js(COUNT_PIXELS) > 3000
    before = run.place_of(0)
    run.js("window.defgpaView.rotate(60, 20)")
    assert np.linalg.norm(np.subtract(run.place_of(0), before)) > 10
    edits = run.count_edits()
    run.js("window.defgpaView.handlers.onpick(1)")
    run.wait_for_rest(1)
    run.drag(1, 30, 24)
    run.wait_for_edits(edits + 1)
    moved = read_edits(next(p for p in run.projects.iterdir() if p.name == "skulls") / "edits.json")
    assert len(moved[-1].to) == 3


def test_the_finding_that_is_shown_is_in_sight_in_the_queue(run):
    run.go("correct")
    run.wait_for_queue()
    run.js("document.querySelector('.side.left').style.maxHeight = '260px'")
    count = run.js("return document.querySelectorAll('.queue button').length")
    assert count > 1
    for _ in range(count):
        run.press("j")
        assert run.js(
            "const list = document.querySelector('.queue').getBoundingClientRect();"
            "const item = document.querySelector('.queue [aria-current]').getBoundingClientRect();"
            "return list.height > 50 && item.top < list.bottom - 20 && item.bottom > list.top"
        )


def test_specimens_are_corrected_with_the_keyboard_alone(run):
    focused = "document.activeElement"
    run.go_home()
    run.driver.get(run.address)
    run.wait_for("document.documentElement.dataset.ready === 'open'")
    run.tab_to(".skip")
    run.type(Keys.ENTER)
    assert run.js(f"return {focused}.id") == "main"
    run.tab_to("[data-sample=wings]")
    run.type(Keys.ENTER)
    run.wait_for("document.documentElement.dataset.ready === 'look'")
    assert run.js(f"return {focused}.id") == "main"  # of the new page, not the bar again
    run.go_by_key("correct")
    run.wait_for("document.querySelector('.queue button')")
    run.type("a")
    run.wait_for_edits(1)
    run.tab_to("canvas.view")
    run.type("]")
    run.type(Keys.ARROW_RIGHT)
    run.wait_for_edits(2)
    run.type("m")
    run.wait_for_edits(3)
    run.type("z", held=Keys.CONTROL)
    run.wait_for_edits(2)
    folder = next(path for path in run.projects.iterdir() if path.name == "wings")
    assert [edit.action for edit in read_edits(folder / "edits.json")] == ["accept", "move"]
    run.tab_to("[data-action=link]")
    run.type(Keys.SPACE)
    assert run.js(f"return {focused}.textContent") == "Stop drawing links"
    run.type(Keys.SPACE)
    assert run.js(f"return {focused}.textContent") == "Draw links"


def write_shells(folder):
    """Landmarks of round shells as FCSV, their meshes as PLY, and a table of sexes."""
    grid = np.meshgrid(np.linspace(0.05, np.pi - 0.05, 60), np.arange(60) * np.pi / 30)
    u, v = (angle.T.ravel() for angle in grid)
    corners = np.arange(59)[:, None] * 60 + np.arange(60)
    beside = np.arange(59)[:, None] * 60 + (np.arange(60) + 1) % 60
    faces = np.concatenate(
        [
            np.stack([corners, corners + 60, beside], -1).reshape(-1, 3),
            np.stack([beside, corners + 60, beside + 60], -1).reshape(-1, 3),
        ]
    )
    rng = np.random.default_rng(0)
    for k in range(8):
        radii = np.array([30.0, 22.0 + 4 * (k % 2), 26.0]) + rng.normal(size=3)
        sphere = np.stack([np.sin(u) * np.cos(v), np.sin(u) * np.sin(v), np.cos(u)], 1)
        vertices = sphere * radii
        path = folder / f"shell_{k}.ply"
        defgpa.meshes.write_mesh(path, defgpa.meshes.Mesh(vertices, faces))
        points = vertices[[100, 400, 1310, 1325, 1340, 2000, 2730, 3300]]
        rows = [f"{j},{x},{y},{z},0,0,0,1,1,1,0,L{j},," for j, (x, y, z) in enumerate(points)]
        head = "# Markups fiducial file version = 4.11\n# CoordinateSystem = LPS\n"
        (folder / f"shell_{k}.fcsv").write_text(head + "\n".join(rows) + "\n")
    sexes = "".join(f"shell_{k},{'fm'[k % 2]}\n" for k in range(8))
    (folder / "sexes.csv").write_text("name,sex\n" + sexes)
    return sorted(folder.iterdir())


def test_meshes_are_shown_turned_coarsely_and_warped_in_morphospace(run, tmp_path):
    folder = tmp_path / "shells"
    (folder / "meshes").mkdir(parents=True)
    for path in write_shells(folder):
        if path.suffix == ".ply":
            path.rename(folder / "meshes" / path.name)
    run.drop_paths(folder)
    run.wait_for("document.body.textContent.includes('8 meshes shown with their landmarks')")
    assert run.js("return document.querySelector('h1').textContent") == "shells"
    run.go("look")
    run.wait_for("window.defgpaView?.surfaces.children.length === 2")
    run.wait_for("window.defgpaView.frames > 1")
    assert run.js(COUNT_PIXELS) > 30_000
    # a mesh of 7,080 triangles is small enough to be drawn whole while it turns
    turned = "const view = window.defgpaView; view.rotate(9, 3); view.paint(); return view"
    assert run.js(f"{turned}.note.hidden")
    larger = (
        "const view = window.defgpaView, [mesh] = view.scene.meshes;"
        "view.show({ ...view.scene, meshes: Array(8).fill(0).map(() => ({ ...mesh })) }, true);"
    )
    note = run.js(larger + "view.rotate(9, 3); view.paint(); return view.note.textContent")
    drawn, total = (int(word.replace(",", "")) for word in re.findall(r"[\d,]{3,}", note))
    assert total == 8 * 7080
    assert drawn < 30_000
    assert note.endswith("while turning.")
    run.wait_for("window.defgpaView.note.hidden")  # at rest, all of it
    run.go("explore")
    run.wait_for("document.querySelectorAll('#morphospace .hull').length === 2")
    run.js(
        "const box = document.getElementById('outline'); box.value = 'ellipse';"
        "box.dispatchEvent(new Event('change'))"
    )
    corners = "document.querySelector('#morphospace .hull')?.points.length"
    run.wait_for(f"{corners} === 72")


def test_a_landmark_that_is_dragged_in_space_snaps_to_its_mesh(run):
    run.js("location.hash = 'shells/correct'")
    run.wait_for("document.documentElement.dataset.ready === 'correct'")
    run.wait_for("window.defgpaView?.surfaces.children.length === 2")
    run.wait_for_queue()
    run.js("const view = window.defgpaView; view.handlers.onpick(3); view.face(3)")
    run.wait_for_rest(3)
    edits = run.count_edits()
    run.drag(3, 50, -36)
    run.wait_for_edits(edits + 1)
    folder = next(path for path in run.projects.iterdir() if path.name == "shells")
    moved = read_edits(folder / "edits.json")[-1]
    mesh = defgpa.meshes.read_mesh(folder / "files" / f"{moved.specimen}.ply")
    corners = mesh.vertices[mesh.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    heights = np.einsum("fk,fk->f", moved.to - corners[:, 0], normals)
    is_near = np.linalg.norm(corners.mean(axis=1) - moved.to, axis=1) < 2.0
    assert np.abs(heights[is_near]).min() < 1e-3  # in a triangle, not in the plane of the view
    assert np.linalg.norm(mesh.vertices[1325] - moved.to) > 2.0


def test_a_link_is_drawn_and_removed_by_clicking_two_landmarks(run):
    run.click("[data-action=link]")
    links = "window.defgpaView.scene.links"
    run.wait_for(f"{links}.length === 0")
    run.js("window.defgpaView.reset()")
    time.sleep(0.2)
    canvas = run.driver.find_element(By.CSS_SELECTOR, "canvas.view")
    for count, ends in ((1, (2, 4)), (2, (4, 3)), (1, (4, 2))):
        for landmark in ends:
            x, y = (round(value) for value in run.place_of(landmark))
            actions = ActionChains(run.driver, duration=20)
            actions.move_to_element_with_offset(canvas, x, y).click().perform()
        run.wait_for(f"{links}.length === {count}")
    assert run.js(f"return {links}[0]") == [4, 3]
    run.click("[data-action=link]")
    assert run.js(COUNT_PIXELS_OF_LINKS) > 50  # though a line between two places lies inside


def test_a_photograph_lies_under_its_landmarks(run, tmp_path):
    image = pytest.importorskip("PIL.Image")
    width, height, scale = 300, 200, 0.05
    points = np.array([[60, 50], [240, 60], [150, 150], [90, 120]])  # pixels, from below
    for k in range(4):
        picture = image.new("RGB", (width, height), (255, 255, 255))
        for x, y in points + np.array([0, 3 * k]):
            picture.paste((200, 0, 0), (x - 6, height - y - 6, x + 7, height - y + 7))
        picture.save(tmp_path / f"leaf {k}.png")
    images, names = ([form.format(k) for k in range(4)] for form in ("leaf {}.png", "leaf{}"))
    moved = [points + np.array([0, 3 * k]) for k in range(4)]
    text = format_tps(moved, IMAGE=images, ID=names, SCALE=[scale] * 4)
    (tmp_path / "leaves.tps").write_text(text)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for path in sorted(tmp_path.glob("*[gs]")):
            archive.write(path, f"leaves/{path.name}")
    run.drop_paths(tmp_path / "all.zip")
    run.wait_for("document.body.textContent.includes('4 photographs shown')")
    run.go("look")
    run.wait_for("window.defgpaView?.scene.photograph")
    time.sleep(0.3)
    # beside each landmark, outside its dot, is the red of the photograph; farther away is not
    colours = run.js(
        "const view = window.defgpaView, { canvas } = view;"
        "const context = canvas.getContext('2d');"
        "const { data } = context.getImageData(0, 0, canvas.width, canvas.height);"
        "const start = (x, y) => 4 * (Math.round(y) * canvas.width + Math.round(x));"
        "const colour = (x, y) => [...data.slice(start(x, y), start(x, y) + 3)];"
        "return [0, 1, 2, 3].map((j) => { const [x, y] = view.project(view.place(j));"
        "return [colour(x + 9, y + 9), colour(x + 40, y)]; })"
    )
    for beside, moved in colours:
        assert beside == [200, 0, 0]
        assert moved == [255, 255, 255]


def test_every_control_has_a_name_and_texts_have_contrast(run):
    run.js("location.hash = 'moths/correct'")
    run.wait_for("document.documentElement.dataset.ready === 'correct'")
    for theme in ("light", "dark"):
        run.js(f"document.documentElement.dataset.theme = '{theme}'")
        for step in ("open", "look", "correct", "align", "explore", "test", "take-away"):
            run.go(step)
            assert run.js(UNNAMED) == [], step
            assert run.js(PALE) == [], (step, theme)


EDIT_WHILE_OPENING = """
const [done] = arguments, ask = window.fetch;
import("/static/store.js").then(async ({ edit, openProject, store }) => {
  window.fetch = async (address, options) => {  // the first answer is on its way for long
    window.fetch = ask;
    const answer = await ask(address, options);
    await new Promise((resolve) => setTimeout(resolve, 800));
    return answer;
  };
  const opened = openProject(store.project.id);
  await edit({ action: "set missing", specimen: 0, landmarks: [5] });
  await opened;
  done([store.project.revision, store.project.log.edits.length]);
});
"""

KEEP_FIGURE = """
const [name, done] = arguments, make = URL.createObjectURL;
URL.createObjectURL = (blob) => {
  URL.createObjectURL = make;
  blob.text().then(done);
  return make.call(URL, blob);
};
document.querySelector(`[data-save="${name}"]`).click();
"""

COUNT_CONTROLS = """
const names = "button, input, select, textarea, summary, a[href], [tabindex]";
const controls = [...document.querySelectorAll(names)].filter((control) => control.tabIndex >= 0
  && !control.disabled && control.getClientRects().length);
const start = document.activeElement;
const isBefore = (control) => control === start || control.compareDocumentPosition(start) & 4;
const place = controls.indexOf(document.querySelector(arguments[0]));
return place + 1 - controls.filter(isBefore).length;
"""

COUNT_PIXELS = """
window.defgpaView.paint();  // what was drawn is gone after the frame
const canvas = document.querySelector("canvas.view"), copy = document.createElement("canvas");
copy.width = canvas.width;
copy.height = canvas.height;
const context = copy.getContext("2d");
context.drawImage(canvas, 0, 0);
const data = context.getImageData(0, 0, copy.width, copy.height).data;
let count = 0;
for (let k = 3; k < data.length; k += 4) count += data[k] > 0;
return count;
"""

COUNT_PIXELS_OF_LINKS = """
const view = window.defgpaView, { width, height } = view.canvas;
const read = (links) => {
  view.show({ ...view.scene, links }, true);
  view.paint();
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(view.canvas, 0, 0);
  return new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
};
const [drawn, empty] = [view.scene.links, []].map(read);
return drawn.filter((pixel, k) => pixel !== empty[k]).length;
"""

UNNAMED = """
const controls = "button, input:not([hidden]), select, a[href], canvas[tabindex]";
return [...document.querySelectorAll(controls)]
  .filter((element) => element.offsetParent !== null)
  .filter((element) => !(element.textContent.trim() || element.getAttribute("aria-label")
    || element.labels?.length || element.title)).map((element) => element.outerHTML.slice(0, 120));
"""

PALE = """
const luminance = (rgb) => {
  const [r, g, b] = rgb.map((x) => x / 255)
    .map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const behind = (element) => {
  for (; element; element = element.parentElement) {
    const colour = parse(getComputedStyle(element).backgroundColor);
    if (colour.length === 3 || colour[3] > 0.5) return colour.slice(0, 3);
  }
  return [255, 255, 255];
};
const hasText = (element) =>
  [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
const pale = [];
for (const element of document.querySelectorAll("main *, #bar *")) {
  if (!hasText(element) || element.offsetParent === null) continue;
  if (element.closest(":disabled, canvas, svg, option")) continue;
  const a = luminance(parse(getComputedStyle(element).color).slice(0, 3));
  const b = luminance(behind(element));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const text = element.textContent.slice(0, 40);
  if (ratio < 4.5) pale.push(`${element.tagName} ${element.className} ${text} ${ratio}`);
}
return pale.slice(0, 5);
"""


def test_nothing_went_wrong_in_the_browser(run):
    assert run.list_errors() == []
