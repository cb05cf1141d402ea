"""The site builds from nothing without a warning, every example of it runs, no link is dead."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from selenium.webdriver.support.ui import WebDriverWait

import defgpa
from support import ROOT

pytest.importorskip("sphinx", reason='the site is built with: pip install "defgpa[docs]"')
BUILD = ROOT / "docs" / "build.py"
_spec = importlib.util.spec_from_file_location("make_picture", ROOT / "docs" / "make_picture.py")
make_picture = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_picture)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built by the command of `make docs`, in a process of its own."""
    folder = tmp_path_factory.mktemp("site")
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(BUILD), str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "MPLBACKEND": "Agg"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_builds_without_a_warning_and_has_a_first_page(site):
    assert (site / "index.html").stat().st_size > 5_000
    assert (site / "searchindex.js").exists()


def test_every_public_name_is_in_the_reference(site):
    text = "".join(page.read_text() for page in (site / "reference").rglob("*.html"))
    missing = [name for name in defgpa.__all__ if f'id="defgpa.{name}"' not in text]
    assert not missing


def test_notebooks_hold_what_their_pages_ran(site):
    books = [json.loads(path.read_text()) for path in (site / "notebooks").glob("*.ipynb")]
    assert len(books) >= 6
    for book in books:
        code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
        assert any(cell["outputs"] for cell in code)


def test_the_gallery_shows_every_plot_and_every_family(site):
    plots = (site / "gallery" / "plots.html").read_text()
    functions = [name for name in defgpa.plot.__all__ if name.islower()]
    assert len(functions) > 20
    assert not [name for name in functions if f"<h3>{name}<" not in plots]
    families = (site / "gallery" / "warps.html").read_text()
    for name in (
        "Affine",
        "ThinPlateSpline",
        "RadialBasis",
        "FreeForm",
        "Polynomial",
        "landmark_kernel",
    ):
        assert name in families


def test_a_dead_link_a_missing_place_and_a_fetched_script_are_found(tmp_path):
    spec = importlib.util.spec_from_file_location("build_site", BUILD)
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    (tmp_path / "a.html").write_text(
        '<a href="b.html">x</a> <a href="#no">y</a> <a id="yes" href="#yes">z</a>'
        '<script src="https://example.org/x.js"></script>'
    )
    assert sorted(build.wrong_links(tmp_path)) == [
        "a.html loads https://example.org/x.js from the network",
        "a.html: #no: the page has no such place",
        "a.html: b.html leads nowhere",
    ]


def test_the_readme_runs_and_its_links_lead_somewhere(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "README.md", "exec"), {})
    assert "TPS_r(5)" in capsys.readouterr().out
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert len(links) > 10
    assert not [link for link in links if not (ROOT / link).exists()]


@pytest.mark.skipif(
    make_picture.browser_and_driver() is None,
    reason="no chromium with chromedriver here: the site is not opened in a browser",
)
def test_in_a_browser_the_site_fetches_nothing_fits_a_phone_and_finds_words(site):
    with make_picture.chromium(1280) as browser:
        phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        for page in ("index", "start/figures", "tutorials/fish", "theory/derivation"):
            browser.get((site / f"{page}.html").as_uri())
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= 391, page
        browser.get((site / "search.html").as_uri() + "?q=foldover")
        links = "return [...document.querySelectorAll('#search-results li a')].map(a => a.href)"
        WebDriverWait(browser, 60, 0.2).until(lambda b: b.execute_script(links))
        assert any("start/figures" in link for link in browser.execute_script(links))
        log = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [
        m["params"]["request"]["url"] for m in log if m["method"] == "Network.requestWillBeSent"
    ]
    assert requests
    schemes = ("file:", "data:", "chrome:", "chrome-untrusted:")  # the last two: an empty tab
    assert not [url for url in requests if not url.startswith(schemes)]


@pytest.fixture
def executed(monkeypatch):
    """The extension that runs the blocks of a page; what it complains of is in ``.wrong``."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    module = importlib.import_module("executed")
    module.wrong = []
    monkeypatch.setattr(module, "_LOG", SimpleNamespace(error=module.wrong.append))
    return module


def run(executed, folder, *blocks):
    page = executed.Page("tutorials/page", folder, folder / "pictures")
    return executed.run_page("\n".join(blocks), page), page


def test_what_a_page_shows_is_what_was_said_and_drawn_not_what_was_typed(executed, tmp_path):
    text, page = run(
        executed,
        tmp_path,
        "<!-- run\nx = 6\n-->",
        "```python A line\nfrom matplotlib import pyplot as plt\nplt.plot([1, 2])\nx * 7\n```",
        "```console\n$ echo new\nold\n```",
        "<!-- write\nprint('| made |')\n-->\n",
    )
    assert not executed.wrong
    assert "\n42\n" in text
    assert "new" in text
    assert "old" not in text
    assert "| made |" in text
    assert 'alt="A line"' in text
    assert len(list((tmp_path / "pictures").glob("*.png"))) == 1
    assert [cell["cell_type"] for cell in page.cells] == ["code", "code", "markdown"]


@pytest.mark.parametrize(
    ("block", "word"),
    [
        ("```python\n1 / 0\n```", "line 3: division by zero"),
        ("<!-- run\nundefined\n-->\n", "undefined"),
        ("```console\n$ defgpa info nowhere.tps\n```", "ended with 2"),
        ("```console fails\n$ true\n```", "ended with 0"),
        ("```python\nimport warnings\nwarnings.warn('old')\n```", "old"),
        ("```sh\ndefgpa info wings.tps\n```", "neither pip nor make"),
    ],
)
def test_whatever_goes_wrong_in_a_block_is_an_error_with_page_and_line(
    executed, tmp_path, block, word
):
    run(executed, tmp_path, "", "", block)
    assert len(executed.wrong) == 1
    assert "tutorials/page.md" in executed.wrong[0]
    assert word in executed.wrong[0]
