"""Hidden landmarks found again: the established ways and ours, on the same places of real sets.

Some landmarks of one specimen are hidden at a time, and estimated from the rest and from the other
specimens. The figure is the RMS distance from the truth over the mean centroid size.

    python benchmarks/completion.py ../shared/data/plethodon2d.npz --places 60
    python benchmarks/completion.py ../shared/data/lizards2d.npz --together 12 --places 16
    python benchmarks/completion.py ../shared/data/turtles3d_partial.npz --every 6 --fossils

With --fossils, each complete specimen gets the gaps of an incomplete one. Specimens in other units
(ten times the median size) are left out.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import defgpa
from defgpa.procrustes import fit_motions, fit_similarity
from defgpa.statistics import centroid_sizes
from defgpa.tangent_space import rotate_onto_mean, scale_to_unit_size
from defgpa.warps import fit_interpolating_spline

Array = NDArray[np.float64]
Place = tuple[int, NDArray[np.intp]]
NEAREST = 3
RIDGE = 0.3  # of the mean variance: the best of 0.01, 0.03, 0.1, 0.3, 1 on the first two sets


def estimate_by_similarity(others: Array, shape: Array, visible: NDArray[np.bool_]) -> Array:
    """Bring the mean of the others to the visible landmarks by a similarity."""
    mean = others.mean(axis=0)
    return fit_similarity(mean[visible], shape[visible])(mean)


def estimate_by_affine_map(others: Array, shape: Array, visible: NDArray[np.bool_]) -> Array:
    """Bring it there by an affine map."""
    rows = np.c_[others.mean(axis=0), np.ones(len(shape))]
    return rows @ np.linalg.lstsq(rows[visible], shape[visible], rcond=None)[0]


def estimate_by_spline(others: Array, shape: Array, visible: NDArray[np.bool_]) -> Array:
    """Bring it there by the interpolating thin-plate spline, as geomorph."""
    mean = others.mean(axis=0)
    return fit_interpolating_spline(mean[visible], shape[visible])(mean)


def estimate_by_nearest(others: Array, shape: Array, visible: NDArray[np.bool_]) -> Array:
    """Bring the mean of the nearest three there by the spline, weights 1/distance, as Morpho."""
    shown, target = (
        scale_to_unit_size(others[:, visible]),
        scale_to_unit_size(shape[visible][None])[0],
    )
    distances = np.linalg.norm(shown @ fit_motions(shown, target).rotation - target, axis=(1, 2))
    near = np.argsort(distances)[:NEAREST]
    weights = 1.0 / np.maximum(distances[near], 1e-12)
    return estimate_by_spline(
        np.tensordot(weights / weights.sum(), others[near], 1)[None], shape, visible
    )


def estimate_by_regression(others: Array, shape: Array, visible: NDArray[np.bool_]) -> Array:
    """Return the conditional mean of a Gaussian with a ridge."""
    mean = others.mean(axis=0)
    pose = fit_similarity(shape[visible], mean[visible])
    deviations = (others - mean).reshape(len(others), -1)
    C = deviations.T @ deviations / (len(others) - 1)
    is_known = np.repeat(visible, shape.shape[1])
    C_ss = C[np.ix_(is_known, is_known)] + RIDGE * np.trace(C) / len(C) * np.eye(is_known.sum())
    estimate = mean.ravel().copy()
    y = (pose(shape) - mean).ravel()[is_known]
    estimate[~is_known] += C[np.ix_(~is_known, is_known)] @ np.linalg.solve(C_ss, y)
    return pose.inverse()(estimate.reshape(mean.shape))


ESTABLISHED: Mapping[str, Callable[[Array, Array, NDArray[np.bool_]], Array]] = {
    "similarity": estimate_by_similarity,
    "affine": estimate_by_affine_map,
    "spline": estimate_by_spline,
    "3 nearest": estimate_by_nearest,
    "ridge": estimate_by_regression,
}


def choose_places(points: Array, count: int, together: int) -> list[Place]:
    """Scatter places, always the same: a specimen, and so many neighbouring landmarks."""
    n, m, _ = points.shape
    mean = rotate_onto_mean(scale_to_unit_size(points)).mean(axis=0)
    chosen = np.random.default_rng(1).permutation(n * m)[:count]
    near = np.argsort(np.linalg.norm(mean[:, None] - mean, axis=2), axis=1)[:, :together]
    return [(int(k // m), near[k % m]) for k in chosen]


def copy_gaps(points: Array, visible: NDArray[np.bool_], count: int) -> list[Place]:
    """Give complete specimens the gaps of the incomplete ones in turn."""
    gaps = [np.flatnonzero(~row) for row in visible if not row.all()]
    return [(i, gaps[i % len(gaps)]) for i in range(len(points))][:count]


def measure_errors(
    points: Array, places: Iterable[Place]
) -> tuple[dict[str, float], float, Counter[str]]:
    """Measure RMS errors relative to size, ours relative to what it promised, and its methods."""
    specimens = rotate_onto_mean(scale_to_unit_size(points))
    squares: dict[str, list[Array]] = {name: [] for name in (*ESTABLISHED, "defgpa")}
    promised, used = [], Counter[str]()
    for i, hidden in places:
        shape = points[i].copy()
        shape[hidden] = np.nan
        visible = ~np.isnan(shape[:, 0])
        for name, estimate in ESTABLISHED.items():
            estimated = estimate(np.delete(specimens, i, axis=0), shape, visible)
            squares[name].append(((estimated - points[i])[hidden] ** 2).sum(axis=1))
        holes = points.copy()
        holes[i] = shape
        completed = defgpa.complete(defgpa.DefGPA().fit(holes).alignment_)
        squares["defgpa"].append(
            ((completed.shapes.points[i] - points[i])[hidden] ** 2).sum(axis=1)
        )
        promised.append(completed.uncertainty[i, hidden] ** 2)
        used[completed.method] += 1
    size = centroid_sizes(points).mean()
    rms = {name: float(np.sqrt(np.concatenate(s).mean()) / size) for name, s in squares.items()}
    ratio = np.concatenate(squares["defgpa"]) / np.concatenate(promised)
    return rms, float(np.sqrt(ratio.mean())), used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="+")
    parser.add_argument("--places", type=int, default=60)
    parser.add_argument("--together", type=int, default=1, help="landmarks hidden at a time")
    parser.add_argument("--every", type=int, default=1, help="take one in so many landmarks")
    parser.add_argument("--fossils", action="store_true", help="hide what incomplete ones miss")
    options = parser.parse_args()
    warnings.simplefilter("ignore", defgpa.DefgpaWarning)
    for file in options.file:
        shapes = defgpa.read_shapes(file)
        visible = shapes.visible[:, :: options.every]
        points = np.array(shapes.points[:, :: options.every][visible.all(axis=1)])
        sizes = centroid_sizes(points)
        points = points[sizes < 10.0 * np.median(sizes)]
        if options.fossils:
            places = copy_gaps(points, visible, options.places)
        else:
            places = choose_places(points, options.places, options.together)
        rms, calibration, used = measure_errors(points, places)
        figures = "  ".join(f"{name} {value:.4f}" for name, value in rms.items())
        print(
            f"{file.name} {points.shape}: {figures}  "
            f"actual/promised {calibration:.2f}  {dict(used)}"
        )


if __name__ == "__main__":
    main()
