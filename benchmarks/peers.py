"""Other programs on the same data, and the least that any program must do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

from race import Work, delay

# Measured elsewhere, on one thread, and not again here: R's geomorph and Python's ktch (whose
# requirements would change the environment), and the authors' program, its kernels vectorised.
CITED = {
    "geomorph 10 × 68 × 2": 2.9e-3,
    "geomorph 1000 × 100 × 3": 0.164,
    "geomorph 10,000 × 100 × 3": 1.64,
    "geomorph 10 × 4004 × 3": 3.2,
    "ktch 10 × 68 × 2": 7e-3,
    "ktch 1000 × 100 × 3": 0.539,
    "ktch 10 × 4004 × 3": 1.5,
    "geomorph slide, bending": 0.13,  # its hummingbirds, 25 landmarks in 2-D
    "geomorph slide, Procrustes": 0.086,
    "geomorph estimate.missing 40 × 12 × 2": 0.019,
    "geomorph estimate.missing 114 × 64 × 2": 0.30,
    "base R 300 × 1000 × 3": 4.0,  # rrpp.R with R's reference BLAS, where there is no Rscript
    "authors' TPS(7)": 87.0,
    "authors' AFF_r": 15.0,
    "authors' leave-one-out": 8.0,
}


def time_base_r(n: int, m: int, count: int, tests: list[str]) -> tuple[str, dict[str, float]]:
    """Return R's BLAS and the processor time of permutation tests in base R, by name."""
    program = shutil.which("Rscript")
    if program is None:
        return "none", {"anova": CITED["base R 300 × 1000 × 3"]}
    script = str(Path(__file__).parent / "rrpp.R")
    command = [program, script, str(n), str(m), str(count), ",".join(tests)]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    (_, blas), *times = (line.split() for line in completed.stdout.splitlines())
    return blas, {name: float(seconds) for name, seconds in times}


@delay
def make_solve_floor(n: int, m: int, l: int) -> Work:
    """n symmetric products FᵀF (dsyrk) and n triangular solves (dtrsm), F of m × l."""
    from scipy.linalg import blas

    rng = np.random.default_rng(0)
    features = np.asfortranarray(rng.normal(size=(m, l)))
    lower = np.asfortranarray(np.tril(rng.normal(size=(l, l))) * 0.01 + 10.0 * np.eye(l))

    def work() -> None:
        for _ in range(n):
            blas.dsyrk(1.0, features, trans=1)
            blas.dtrsm(1.0, lower, features, side=1, lower=1, trans_a=1)

    return work


def make_kernel_pass(points: np.ndarray, centres: np.ndarray) -> Work:
    """−r of all points and centres, block by block, on one thread."""
    from scipy.spatial.distance import cdist

    def work() -> None:
        for start in range(0, len(points), 1024):
            squared = cdist(points[start : start + 1024], centres, "sqeuclidean")
            np.negative(np.sqrt(squared, out=squared), out=squared)

    return work


@delay
def make_vtk_similarity(points: np.ndarray) -> Work:
    """vtkProcrustesAlignmentFilter alone: its input is made beforehand."""
    import vtk

    blocks = _make_vtk_blocks(points)

    def work() -> None:
        aligned = vtk.vtkProcrustesAlignmentFilter()
        aligned.SetInputData(blocks)
        aligned.GetLandmarkTransform().SetModeToSimilarity()
        aligned.SetOutputPointsPrecision(vtk.vtkAlgorithm.DOUBLE_PRECISION)
        aligned.Update()

    return work


def _make_vtk_blocks(points: np.ndarray):
    import vtk
    from vtk.util.numpy_support import numpy_to_vtk

    n, m, d = points.shape
    padded = np.zeros((n, m, 3))
    padded[..., :d] = points
    blocks = vtk.vtkMultiBlockDataSet()
    blocks.SetNumberOfBlocks(n)
    for number, shape in enumerate(padded):
        place, data = vtk.vtkPoints(), vtk.vtkPolyData()
        place.SetData(numpy_to_vtk(shape, deep=True))
        data.SetPoints(place)
        blocks.SetBlock(number, data)
    return blocks


@delay
def make_geomstats_similarity(points: np.ndarray) -> Work:
    """The Fréchet mean in Kendall's shape space, and all shapes aligned to it."""
    os.environ.setdefault("GEOMSTATS_BACKEND", "numpy")
    if not hasattr(np, "trapz"):  # geomstats 2.8 still asks for a name that numpy 2.4 dropped
        vars(np)["trapz"] = np.trapezoid
    from geomstats.geometry.pre_shape import PreShapeSpace
    from geomstats.learning.frechet_mean import FrechetMean

    space = PreShapeSpace(*points.shape[1:])
    space.equip_with_group_action("rotations")
    space.equip_with_quotient()

    def work() -> None:
        preshapes = space.projection(points)
        mean = FrechetMean(space.quotient).fit(preshapes).estimate_
        space.fiber_bundle.align(preshapes, mean)

    return work
