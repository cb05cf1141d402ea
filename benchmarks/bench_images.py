"""Warping a 1040 × 800 RGB image through a thin-plate spline with 49 control points.

Beside ``skimage.transform.warp``, which asks the same spline at every pixel. Theirs needs an
inverse that can be evaluated, so it is given the interpolating spline of the paper; to compare
equal work, the accuracy of each is measured against Newton's solution at every pixel.

    python benchmarks/bench_images.py            prints a table
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

import defgpa
from defgpa.images import Frame, rows_down, warp_image
from defgpa.images._inverse_map import InverseMap
from defgpa.images._pixel_warp import PixelWarp

SIZE = (800, 1040)


def warped_pair(seed: int = 0) -> tuple[np.ndarray, defgpa.Warp]:
    """An image with texture, and the warp of one of six shapes of 80 landmarks."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.0, 1.0, size=(80, 2)) * SIZE[::-1]
    shapes = [
        base + 15.0 * np.sin(base[:, ::-1] / 150.0 + rng.normal(size=2)) + rng.normal(size=(80, 2))
        for _ in range(6)
    ]
    model = defgpa.DefGPA(defgpa.ThinPlateSpline(points_per_axis=7)).fit(shapes)
    image = rng.integers(0, 256, size=(*SIZE, 3), dtype=np.uint8)
    return image, model.alignment_.posed_like(shapes[0]).warps[1]


def best_time(work: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_megabytes(work: Callable[[], object]) -> float:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def worst_error(warp: PixelWarp, tolerance: float) -> float:
    """Largest distance, in pixels, of warp(source) from the pixel that asked for it."""
    columns, rows = np.meshgrid(np.arange(warp.frame.shape[1]), np.arange(warp.frame.shape[0]))
    sources = InverseMap(warp, tolerance).rows(slice(0, warp.frame.shape[0]))
    height, width = warp.source.shape
    inside = (sources[0] > -0.5) & (sources[0] < width - 0.5)
    inside &= (sources[1] > -0.5) & (sources[1] < height - 0.5)
    images = warp(sources[:, inside].T)
    return float(np.abs(images - np.column_stack([columns[inside], rows[inside]])).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats

    image, warp = warped_pair()
    frame = Frame((0.0, 0.0), SIZE)
    pixel_warp = PixelWarp(warp, rows_down(image), frame)

    def ours() -> object:
        return warp_image(image, warp, frame)

    rows = [("defgpa.warp_image", best_time(ours, repeats), peak_megabytes(ours))]
    rows += theirs(image, warp, repeats)
    print(f"{SIZE[1]} × {SIZE[0]} RGB, 49 control points, best of {repeats}")
    for name, seconds, megabytes in rows:
        ratio = seconds / rows[0][1]
        print(f"  {name:44s} {seconds:8.3f} s  {ratio:6.1f} ×  peak {megabytes:7.1f} MB")
    for tolerance in (0.05, 0.01, 0.001):
        print(f"  tolerance {tolerance:g} px: error {worst_error(pixel_warp, tolerance):.2g} px")


def theirs(image: np.ndarray, warp: defgpa.Warp, repeats: int) -> list[tuple[str, float, float]]:
    """The same image through scikit-image, with our spline and with its own."""
    try:
        from skimage.transform import ThinPlateSplineTransform, warp as skimage_warp
    except ImportError:
        print("scikit-image is not installed: nothing to compare with")
        return []
    inverse = warp.inverse()
    controls = warp.basis.control_points
    own = ThinPlateSplineTransform.from_estimate(warp(controls), controls)

    def with_our_spline() -> object:
        return skimage_warp(image, inverse, output_shape=SIZE, preserve_range=True)

    def with_their_spline() -> object:
        return skimage_warp(image, own, output_shape=SIZE, preserve_range=True)

    repeats = min(repeats, 3)
    return [
        (name, best_time(work, repeats), peak_megabytes(work))
        for name, work in (
            ("skimage.transform.warp, our spline", with_our_spline),
            ("skimage.transform.warp, its own spline", with_their_spline),
        )
    ]


if __name__ == "__main__":
    main()
