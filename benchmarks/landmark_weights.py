"""Landmarks of different precision: do weights bring specimens nearer to the truth?

Noise of variance σ²/γ is added to 30 % of the landmarks of complete sets, σ = 0.5 % of centroid
size, γ = 0.5, 0.2, 0.1 or 0.03. The figure is the root mean square over the specimens of their
Procrustes distance to themselves without noise: as measured, with the weights γ (1 for the other
landmarks), and with landmarks of a weight below 0.5 missing.

    python benchmarks/landmark_weights.py DATA
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import defgpa
from defgpa.procrustes import fit_motions
from defgpa.statistics import build_sample, centroid_sizes
from defgpa.tangent_space import scale_to_unit_size

Array = NDArray[np.float64]
SETS = {"plethodon2d": 40, "bones3d": 60, "mosquito2d": 40, "lizards2d": 60, "larvae2d": 60}
SIGMA, SHARE, WEIGHTS = 0.005, 0.3, (0.5, 0.2, 0.1, 0.03)


def measure_distance(shapes: Array, truth: Array) -> float:
    """Measure the RMS of the Procrustes distances between shapes (n, m, d) and the true ones."""
    moved, target = scale_to_unit_size(shapes), scale_to_unit_size(truth)
    motions = [fit_motions(a[None], b).rotation[0] for a, b in zip(moved, target, strict=True)]
    errors = [a @ R - b for a, R, b in zip(moved, motions, target, strict=True)]
    return float(np.sqrt(np.mean([np.sum(error**2) for error in errors])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with the sets, such as plethodon2d.npz")
    folder = parser.parse_args().folder
    warnings.simplefilter("ignore", defgpa.DefgpaWarning)
    print("| | as measured | with weights | weights below 0.5 missing |\n|---|---|---|---|")
    for name, count in SETS.items():
        rng = np.random.default_rng(0)
        truth = np.load(folder / f"{name}.npz")["points"][:count]
        n, m, _ = truth.shape
        weights = np.where(rng.random((n, m)) < SHARE, rng.choice(WEIGHTS, (n, m)), 1.0)
        spread = SIGMA * centroid_sizes(truth)[:, None] / np.sqrt(weights) * (weights < 1)
        points = truth + spread[..., None] * rng.normal(size=truth.shape)
        sparse = np.where((weights < 0.5)[..., None], np.nan, points)
        ways = (points, defgpa.Shapes(points, weights=weights), sparse)
        errors = [measure_distance(build_sample(way).shapes.points, truth) for way in ways]
        figures = [f"**{e:.4f}**" if e == min(errors) else f"{e:.4f}" for e in errors]
        print(f"| {name}, {n} × {m} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
