"""How quick the report is, in a headless Chromium: python benchmarks/report.py

Targets: a report of 500 × 500 × 2 is open, with all its figures drawn, within 3 s; a step of the
component slider of 10 × 20,000 × 3 is on the screen within 100 ms.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import defgpa
from defgpa.datasets import smooth_family
from defgpa.report import write_report

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
from make_picture import chromium  # noqa: E402

_STEP = """
const done = arguments[arguments.length - 1], slider = document.getElementById('slider-0');
const plot = document.getElementById('plot-shape'), start = performance.now();
plot.once('plotly_afterplot', () => requestAnimationFrame(() => done(performance.now() - start)));
slider.value = Number(slider.min) + arguments[0] * (slider.max - slider.min);
slider.dispatchEvent(new Event('input'));
"""


def write(folder: Path, n: int, m: int, d: int) -> Path:
    """Write the report of a rigid fit of made-up shapes."""
    shapes = smooth_family(n=n, m=m, d=d, noise=0.02).shapes
    alignment = defgpa.EuclideanGPA(scaling=True).fit(shapes).alignment_
    path = folder / f"{n}x{m}.html"
    write_report(alignment, path)
    return path


def read_processor_time(driver: Any) -> float:
    """Return the processor time of the page in seconds, without that of software rendering."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "ProcessTime")


def measure_opening(driver: Any, path: Path) -> float:
    """Return the seconds until all figures are drawn."""
    start = time.perf_counter()
    driver.get(path.as_uri())
    while not driver.execute_script("return document.documentElement.dataset.ready === 'yes'"):
        time.sleep(0.02)
    return time.perf_counter() - start


def measure_slider(driver: Any, steps: int = 15) -> np.ndarray:
    """Return the milliseconds of each of so many steps of the first slider."""
    driver.execute_script("document.getElementById('plot-shape').scrollIntoView()")
    while not driver.execute_script("return !!document.getElementById('plot-shape')._fullLayout"):
        time.sleep(0.05)
    time.sleep(1.0)
    places = np.linspace(0.1, 0.9, steps + 3)
    return np.array([driver.execute_async_script(_STEP, float(place)) for place in places])[3:]


def main() -> None:
    """Print one line for each target."""
    with tempfile.TemporaryDirectory() as folder, chromium(1400) as driver:
        driver.set_script_timeout(60)
        driver.execute_cdp_cmd("Performance.enable", {})
        wide = write(Path(folder), 500, 500, 2)
        seconds, busy = [], []
        for _ in range(3):
            driver.get("about:blank")
            before = read_processor_time(driver)
            seconds.append(measure_opening(driver, wide))
            after = read_processor_time(driver)  # of another process, if the page has one
            busy.append(after - before if after > before else after)
        print(
            f"500 × 500 × 2 opens in {min(seconds):.2f} s ({wide.stat().st_size / 1e6:.1f} MB); "
            f"processor time of the page {min(busy):.2f} s"
        )
        measure_opening(driver, write(Path(folder), 10, 20_000, 3))
        measure_slider(driver, 1)
        before = read_processor_time(driver)
        steps = measure_slider(driver)
        busy = (read_processor_time(driver) - before) / (len(steps) + 3)
        print(
            f"slider of 10 × 20,000 × 3: median {np.median(steps):.0f} ms, "
            f"95th percentile {np.percentile(steps, 95):.0f} ms; processor time of the page "
            f"{1000 * busy:.0f} ms a step"
        )


if __name__ == "__main__":
    main()
