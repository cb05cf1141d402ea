"""The reference by rigidity and by the published prior, on the real sets beside the project.

    python benchmarks/proportions.py            the table of docs/theory.md
    python benchmarks/proportions.py defaults   the choice of default smoothing and points per axis

Cross-validation errors in per cent of the size of each method's own reference, and the Procrustes
distance of the reference to the mean of rigid alignment with scaling.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import defgpa
from defgpa.evaluate import cross_validate

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SETS = {  # name: (every so many shapes, every so many landmarks, landmarks left out at a time)
    "guenons3d": (10, 1, 5),
    "lizards2d": (3, 1, 2),
    "mosquito2d": (1, 1, 1),
    "cactus3d": (1, 7, 30),
    "tshirt3d": (1, 1, 1),
    "turtles3d_partial": (1, 3, 20),
    "plethodon2d": (1, 1, 1),
    "plethspecies2d": (1, 1, 1),
    "bones3d": (1, 1, 1),
    "larvae2d": (1, 1, 4),
    "histology2d": (1, 1, 4),
    "face2d": (1, 1, 1),
}


def points_of(name: str) -> tuple[np.ndarray, int]:
    shapes, landmarks, fold_size = SETS[name]
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as archive:
        return archive["points"][::shapes, ::landmarks], fold_size


def size_of(reference: np.ndarray) -> float:
    return float(np.sqrt(((reference - reference.mean(axis=0)) ** 2).sum(axis=1).mean()))


def procrustes_distance(a: np.ndarray, b: np.ndarray) -> float:
    a, b = (x - x.mean(axis=0) for x in (a, b))
    total = np.linalg.svd(a.T @ b, compute_uv=False).sum()
    return float(np.sqrt(max(0.0, 1.0 - (total / np.linalg.norm(a) / np.linalg.norm(b)) ** 2)))


def judged(estimator: object, points: np.ndarray, fold_size: int) -> tuple[float, np.ndarray]:
    found = cross_validate(estimator, points, fold_size=fold_size)
    return 100.0 * found.error / size_of(found.reference), found.reference


def table() -> None:
    print("set                 warp    prior  rigid (similarity)   distance: prior  rigid")
    for name in SETS:
        points, fold_size = points_of(name)
        plain, mean = judged(defgpa.EuclideanGPA(scaling=True), points, fold_size)
        for label, warp in {"affine": defgpa.Affine(), "TPS(5)": defgpa.ThinPlateSpline()}.items():
            prior, one = judged(defgpa.DefGPA(warp, proportions="prior"), points, fold_size)
            rigid, other = judged(defgpa.DefGPA(warp), points, fold_size)
            far = procrustes_distance(one, mean), procrustes_distance(other, mean)
            print(
                f"{name:20}{label:7}{prior:6.3g} {rigid:6.3g} ({plain:.3g})".ljust(55)
                + f"{far[0]:8.4f} {far[1]:8.4f}"
            )


def defaults() -> None:
    """The median over the sets of the CVE relative to that of similarities."""
    smoothings = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1]
    counts = [3, 4, 5, 6, 7]
    ratios = np.full((len(SETS), len(counts), len(smoothings)), np.nan)
    for s, name in enumerate(SETS):
        points, fold_size = points_of(name)
        plain, _ = judged(defgpa.EuclideanGPA(scaling=True), points, fold_size)
        for k, count in enumerate(counts):
            for t, smoothing in enumerate(smoothings):
                warp = defgpa.ThinPlateSpline(points_per_axis=count, smoothing=smoothing)
                ratios[s, k, t] = judged(defgpa.DefGPA(warp), points, fold_size)[0] / plain
        print(name, np.round(ratios[s, 2], 3).tolist(), flush=True)
    print("median over the sets; rows: points per axis, columns: smoothing", smoothings)
    for count, row in zip(counts, np.median(ratios, axis=0), strict=True):
        print(count, " ".join(f"{x:.3f}" for x in row))


if __name__ == "__main__":
    warnings.simplefilter("ignore", defgpa.DefgpaWarning)
    defaults() if sys.argv[1:] == ["defaults"] else table()
