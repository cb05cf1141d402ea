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


def by_similarity(others: Array, own: Array, seen: NDArray[np.bool_]) -> Array:
    """The mean of the others, brought to what is seen by a similarity."""
    mean = others.mean(axis=0)
    return fit_similarity(mean[seen], own[seen])(mean)


def by_affine_map(others: Array, own: Array, seen: NDArray[np.bool_]) -> Array:
    """The same by an affine map."""
    rows = np.c_[others.mean(axis=0), np.ones(len(own))]
    return rows @ np.linalg.lstsq(rows[seen], own[seen], rcond=None)[0]


def by_spline(others: Array, own: Array, seen: NDArray[np.bool_]) -> Array:
    """The same by the interpolating thin-plate spline, as geomorph."""
    mean = others.mean(axis=0)
    return fit_interpolating_spline(mean[seen], own[seen])(mean)


def by_nearest(others: Array, own: Array, seen: NDArray[np.bool_]) -> Array:
    """The spline of the mean of the nearest three, weights 1/distance, as Morpho."""
    shown, target = scale_to_unit_size(others[:, seen]), scale_to_unit_size(own[seen][None])[0]
    away = np.linalg.norm(shown @ fit_motions(shown, target).rotation - target, axis=(1, 2))
    near = np.argsort(away)[:NEAREST]
    weights = 1.0 / np.maximum(away[near], 1e-12)
    return by_spline(np.tensordot(weights / weights.sum(), others[near], 1)[None], own, seen)


def by_regression(others: Array, own: Array, seen: NDArray[np.bool_]) -> Array:
    """The conditional mean of a Gaussian with a ridge."""
    mean = others.mean(axis=0)
    pose = fit_similarity(own[seen], mean[seen])
    deviations = (others - mean).reshape(len(others), -1)
    C = deviations.T @ deviations / (len(others) - 1)
    known = np.repeat(seen, own.shape[1])
    C_ss = C[np.ix_(known, known)] + RIDGE * np.trace(C) / len(C) * np.eye(known.sum())
    found = mean.ravel().copy()
    y = (pose(own) - mean).ravel()[known]
    found[~known] += C[np.ix_(~known, known)] @ np.linalg.solve(C_ss, y)
    return pose.inverse()(found.reshape(mean.shape))


ESTABLISHED: Mapping[str, Callable[[Array, Array, NDArray[np.bool_]], Array]] = {
    "similarity": by_similarity,
    "affine": by_affine_map,
    "spline": by_spline,
    "3 nearest": by_nearest,
    "ridge": by_regression,
}


def places_to_hide(points: Array, count: int, together: int) -> list[Place]:
    """Scattered places, always the same: a specimen, and so many neighbouring landmarks."""
    n, m, _ = points.shape
    mean = rotate_onto_mean(scale_to_unit_size(points)).mean(axis=0)
    chosen = np.random.default_rng(1).permutation(n * m)[:count]
    near = np.argsort(np.linalg.norm(mean[:, None] - mean, axis=2), axis=1)[:, :together]
    return [(int(k // m), near[k % m]) for k in chosen]


def gaps_of_fossils(points: Array, visible: NDArray[np.bool_], count: int) -> list[Place]:
    """Complete specimens, each with the gaps of one of the incomplete ones."""
    gaps = [np.flatnonzero(~own) for own in visible if not own.all()]
    return [(i, gaps[i % len(gaps)]) for i in range(len(points))][:count]


def errors(points: Array, places: Iterable[Place]) -> tuple[dict[str, float], float, Counter[str]]:
    """RMS over mean centroid size of every way; how far ours knew it; which it used how often."""
    specimens = rotate_onto_mean(scale_to_unit_size(points))
    squares: dict[str, list[Array]] = {name: [] for name in (*ESTABLISHED, "defgpa")}
    promised, used = [], Counter[str]()
    for i, hidden in places:
        own = points[i].copy()
        own[hidden] = np.nan
        seen = ~np.isnan(own[:, 0])
        for name, way in ESTABLISHED.items():
            found = way(np.delete(specimens, i, axis=0), own, seen)
            squares[name].append(((found - points[i])[hidden] ** 2).sum(axis=1))
        holes = points.copy()
        holes[i] = own
        done = defgpa.complete(defgpa.DefGPA().fit(holes).alignment_)
        squares["defgpa"].append(((done.shapes.points[i] - points[i])[hidden] ** 2).sum(axis=1))
        promised.append(done.uncertainty[i, hidden] ** 2)
        used[done.method] += 1
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
    asked = parser.parse_args()
    warnings.simplefilter("ignore", defgpa.DefgpaWarning)
    for file in asked.file:
        shapes = defgpa.read_shapes(file)
        visible = shapes.visible[:, :: asked.every]
        points = np.array(shapes.points[:, :: asked.every][visible.all(axis=1)])
        sizes = centroid_sizes(points)
        points = points[sizes < 10.0 * np.median(sizes)]
        if asked.fossils:
            places = gaps_of_fossils(points, visible, asked.places)
        else:
            places = places_to_hide(points, asked.places, asked.together)
        rms, calibration, used = errors(points, places)
        told = "  ".join(f"{name} {value:.4f}" for name, value in rms.items())
        print(
            f"{file.name} {points.shape}: {told}  actual/promised {calibration:.2f}  {dict(used)}"
        )


if __name__ == "__main__":
    main()
