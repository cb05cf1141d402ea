"""Warping a 1040 × 800 RGB image through a thin-plate spline with 49 control points.

Beside ``skimage.transform.warp``, which asks a spline at every pixel. It needs the inverse as a
function; a spline has none in closed form, so it is given the spline that takes the warped control
points back: once scikit-image's own (``ThinPlateSplineTransform``), once ours. The error of each
is the distance between a pixel and the warp of the place it was taken from.

    python benchmarks/bench_images.py
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

import defgpa
from defgpa.images import Frame, rows_down, warp_image
from defgpa.images._frame import PixelWarp
from defgpa.images._inverse_map import InverseMap
from defgpa.warps.thin_plate import ThinPlateBasis

SIZE = (800, 1040)
Work = Callable[[], object]


def image_and_warp(seed: int = 0) -> tuple[np.ndarray, defgpa.Warp]:
    """An image, and the warp of one of six shapes of 80 landmarks in it."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.0, 1.0, size=(80, 2)) * SIZE[::-1]
    shapes = [
        base + 15.0 * np.sin(base[:, ::-1] / 150.0 + rng.normal(size=2)) + rng.normal(size=(80, 2))
        for _ in range(6)
    ]
    model = defgpa.DefGPA(defgpa.ThinPlateSpline(points_per_axis=7)).fit(shapes)
    image = rng.integers(0, 256, size=(*SIZE, 3), dtype=np.uint8)
    return image, model.alignment_.posed_like(shapes[0]).warps[1]


def seconds(work: Work, repeats: int) -> float:
    """The fastest of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def megabytes(work: Work) -> float:
    """The most memory that numpy held at once."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def worst_error(warp: defgpa.Warp, sources: np.ndarray, pixels: np.ndarray) -> float:
    """In pixels, over those whose source lies in the image."""
    inside = ((sources > -0.5) & (sources < np.array(SIZE[::-1]) - 0.5)).all(axis=1)
    return float(np.linalg.norm(warp(sources[inside]) - pixels[inside], axis=1).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    image, warp = image_and_warp()
    frame = Frame((0.0, 0.0), SIZE)
    columns, rows = np.meshgrid(*map(np.arange, SIZE[::-1]))
    pixels = np.column_stack([columns.ravel(), rows.ravel()])

    print(f"{SIZE[1]} × {SIZE[0]} RGB, 49 control points, best of {repeats}")
    first = None
    for name, sources, work in (*ours(image, warp, frame), *theirs(image, warp, pixels)):
        taken = seconds(work, repeats)
        first = first or taken
        error = worst_error(warp, sources, pixels)
        print(
            f"  {name:40s} {taken:7.3f} s  {taken / first:6.1f} ×  "
            f"peak {megabytes(work):7.1f} MB  error {error:.2g} px"
        )


def ours(image: np.ndarray, warp: defgpa.Warp, frame: Frame):
    """Name, where each pixel comes from, and the work, for several tolerances."""
    for tolerance in (0.01, 0.05, 0.001):
        inverse = InverseMap(PixelWarp(warp, rows_down(image), frame), tolerance)
        sources = inverse.map_rows(slice(0, SIZE[0])).reshape(2, -1).T
        yield (
            f"defgpa.warp_image, tolerance {tolerance:g} px",
            sources,
            lambda tolerance=tolerance: warp_image(image, warp, frame, tolerance=tolerance),
        )


def theirs(image: np.ndarray, warp: defgpa.Warp, pixels: np.ndarray):
    """The same for scikit-image, with its own spline and with ours."""
    try:
        from skimage import transform
    except ImportError:
        print("  scikit-image is not installed: nothing to compare with")
        return
    assert isinstance(warp.basis, ThinPlateBasis)
    controls = warp.basis.control_points
    fitted = transform.ThinPlateSplineTransform.from_estimate(warp(controls), controls)
    for name, inverse in (("its own spline", fitted), ("our spline", warp.inverse())):
        yield (
            f"skimage.transform.warp, {name}",
            inverse(pixels),
            lambda inverse=inverse: transform.warp(image, inverse, output_shape=SIZE),
        )


if __name__ == "__main__":
    main()
