"""The README's picture: the top of a report, as a browser shows it.

python docs/make_picture.py demo/report.html docs/report.png
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

WIDTH, SHARPNESS = 1120, 1.5  # of the picture, in CSS pixels and device pixels per CSS pixel
LAST = "#before-after"  # the section that the picture ends with
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def browser_and_driver() -> tuple[str, str] | None:
    """The programs of a Chromium and its driver, if both are installed."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


@contextmanager
def chromium(width: int = WIDTH, flags: Sequence[str] = ()) -> Iterator[webdriver.Chrome]:
    """A headless Chromium with a profile of its own."""
    programs = browser_and_driver()
    if programs is None:
        sys.exit("No chromium with chromedriver here. On Debian: apt install chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*_QUIET, f"--user-data-dir={profile}", f"--window-size={width},1000", *flags):
            options.add_argument(flag)
        driver = webdriver.Chrome(options, Service(programs[1]))
        try:
            yield driver
        finally:
            driver.quit()


def open_report(driver: webdriver.Chrome, report: Path, patience: float = 120.0) -> None:
    """Open a report and wait until all its plots are drawn."""
    driver.get(report.resolve().as_uri())
    done = "return document.documentElement.dataset.ready === 'yes'"
    WebDriverWait(driver, patience, 0.1).until(lambda _: driver.execute_script(done))


def picture(driver: webdriver.Chrome) -> bytes:
    """A PNG of the open report, from its top to the end of its first pictures."""
    # a headless browser has no mouse to keep away from the toolbars
    driver.execute_script(
        "document.head.append(Object.assign(document.createElement('style'),"
        "{textContent: '.modebar-container, nav { display: none }'}))"
    )
    bottom = driver.execute_script(
        "return document.querySelector(arguments[0]).getBoundingClientRect().bottom + scrollY", LAST
    )
    clip: dict[str, Any] = {"x": 0, "y": 0, "width": WIDTH, "height": bottom + 32}
    shot = driver.execute_cdp_cmd(
        "Page.captureScreenshot",
        {"captureBeyondViewport": True, "clip": {**clip, "scale": 1}},
    )
    return base64.b64decode(shot["data"])


def make_picture(report: Path, target: Path) -> None:
    """Write the picture of a report, all of it or none."""
    with chromium() as driver:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": WIDTH, "height": 1000, "deviceScaleFactor": SHARPNESS, "mobile": False},
        )
        open_report(driver, report)
        shot = picture(driver)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}")
    beside.write_bytes(shot)
    beside.replace(target)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    make_picture(Path(sys.argv[1]), Path(sys.argv[2]))
