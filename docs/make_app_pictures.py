"""Make the pictures of the page about the app: python docs/make_app_pictures.py [FOLDER]

A server is started on a copy of the bundled wings with two mistakes in it, and driven by Chromium.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import defgpa
from make_picture import chromium

ROOT = Path(__file__).resolve().parents[1]
FLAGS = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
WIDTH, HEIGHT = 1360, 860


def write_wings(folder: Path) -> Path:
    """Write the bundled wings with two landmarks swapped and one misplaced."""
    shapes = defgpa.datasets.load_wings()
    points = np.array(shapes.points)
    points[2, [3, 7]] = points[2, [7, 3]]
    points[8, 4] += [70, 50]
    path = folder / "wings.npz"
    defgpa.write_shapes(shapes.with_points(points), path, format="npz")
    return path


def wait_for(driver: Any, condition: str, seconds: float = 120.0) -> None:
    """Wait until something is true on the page."""
    end = time.monotonic() + seconds
    while not driver.execute_script(f"return {condition}"):
        if time.monotonic() > end:
            sys.exit(f"This did not happen: {condition}")
        time.sleep(0.05)


def click(driver: Any, selector: str) -> None:
    """Click the first element of a selector once it is there."""
    wait_for(driver, f'document.querySelector("{selector}:not(:disabled)")')
    driver.execute_script(f'document.querySelector("{selector}").click()')


def show(driver: Any, step: str) -> None:
    """Open a step of the study."""
    click(driver, f"#step-{step}")
    wait_for(driver, f"document.documentElement.dataset.ready === '{step}'")


def save(driver: Any, folder: Path, name: str) -> None:
    """Write what the browser shows."""
    time.sleep(1.0)  # the last frame
    driver.execute_script("document.getElementById('messages').replaceChildren()")
    (folder / f"app-{name}.png").write_bytes(driver.get_screenshot_as_png())


def correct_all(driver: Any) -> None:
    """Do what is suggested about the worst finding, until nothing is suggested."""
    for count in range(1, 6):
        if not driver.execute_script("return document.querySelector('.actions .suggested')"):
            return
        click(driver, ".actions .suggested")
        wait_for(driver, f"document.querySelectorAll('.log li').length >= {count}")
        time.sleep(2.0)  # the queue is looked through again
        driver.execute_script("document.querySelector('.queue button')?.click()")
        time.sleep(0.5)


def make_pictures(folder: Path) -> None:
    """Write the pictures of a study of wings, and of a skull."""
    with tempfile.TemporaryDirectory() as place, chromium(WIDTH, FLAGS) as driver:
        driver.set_window_size(WIDTH, HEIGHT + 140)
        command = [sys.executable, "-m", "defgpa", "app", str(write_wings(Path(place)))]
        server = subprocess.Popen(
            [*command, "--no-browser", "--projects", f"{place}/projects"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert server.stdout is not None
            match = re.search(r"http\S+", server.stdout.readline())
            assert match is not None
            driver.get(match[0])
            wait_for(driver, "document.documentElement.dataset.ready === 'look'")
            wait_for(driver, "document.querySelector('#step-correct .count')")
            show(driver, "correct")
            wait_for(driver, "document.querySelector('.suggested')")
            save(driver, folder, "correct")
            correct_all(driver)
            show(driver, "align")
            click(driver, "#compare")
            click(driver, "#use-recommended")
            wait_for(driver, "document.getElementById('kind').value === 'deformable'")
            wait_for(driver, "!document.querySelector('.progress')")
            save(driver, folder, "align")
            show(driver, "explore")
            wait_for(driver, "document.querySelectorAll('#morphospace .dot').length > 5")
            dots = "document.querySelectorAll('#morphospace .dot')"
            driver.execute_script(f"{dots}[3].dispatchEvent(new Event('click', {{bubbles: true}}))")
            save(driver, folder, "explore")
            driver.execute_script("location.hash = ''")
            click(driver, "[data-sample=skulls]")
            wait_for(driver, "window.defgpaView?.frames > 1")
            wait_for(driver, "document.querySelector('#step-correct .count')")
            click(driver, "[aria-label='Light or dark']")
            click(driver, "[data-specimen='12']")
            wait_for(driver, "window.defgpaView.scene.estimates")
            driver.execute_script("window.defgpaView.rotate(40, 10)")
            save(driver, folder, "look")
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    make_pictures(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
