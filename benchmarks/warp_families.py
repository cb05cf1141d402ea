"""The tables of docs/warps.md: every family of warps, and the defaults of the spline.

    python benchmarks/warp_families.py DATA [--only families | defaults] [--into docs/warps.md]

DATA is a folder with the real sets, each an .npz with an array ``points`` (n, m, d), NaN for a
landmark that was not seen. The tables are printed, or written between their marks in a Markdown
file. All errors are cross-validated and in per cent of the size of the reference, or relative to
rigid alignment with scaling, so that sets and methods compare.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import defgpa
from defgpa import Affine, DefGPA, FreeForm, Polynomial, RadialBasis, ThinPlateSpline
from defgpa.warps import (
    Gaussian,
    InverseMultiquadric,
    Laplacian,
    Membrane,
    Multiquadric,
    Polyharmonic,
    WeightRidge,
    WendlandC2,
    WendlandC4,
    landmark_kernel,
)
from proportions import SETS, format_table, get_points, measure_error, measure_size, replace_table

FOLD_SIZES = {"face2d": 1, "histology2d": 1, "turtles3d_partial": 20}
EVERY = {"turtles3d_partial": 3}  # so many landmarks; denser sets would take hours
FAMILIES: dict[str, Any] = {
    "`ThinPlateSpline()`": ThinPlateSpline(),
    "`RadialBasis(Gaussian())`": RadialBasis(Gaussian()),
    "`RadialBasis(Multiquadric())`": RadialBasis(Multiquadric()),
    "`RadialBasis(InverseMultiquadric())`": RadialBasis(InverseMultiquadric()),
    "`RadialBasis(WendlandC2())`": RadialBasis(WendlandC2()),
    "`RadialBasis(WendlandC4())`": RadialBasis(WendlandC4()),
    "`RadialBasis(Polyharmonic(3))`": RadialBasis(Polyharmonic(3)),
    "`RadialBasis(Gaussian(), penalty=WeightRidge())`": RadialBasis(
        Gaussian(), penalty=WeightRidge()
    ),
    "`landmark_kernel()`": landmark_kernel(),
    "`FreeForm()`": FreeForm(),
    "`FreeForm(energy=Membrane())`": FreeForm(energy=Membrane()),
    "`FreeForm(energy=Laplacian())`": FreeForm(energy=Laplacian()),
    "`Polynomial(2)`": Polynomial(2),
    "`Polynomial(3)`": Polynomial(3),
    "`Polynomial(4)`": Polynomial(4),
}
TOO_LONG = {("turtles3d_partial", "`landmark_kernel()`")}  # an hour: 40 shapes of 600 centres
GRID = np.logspace(-8.0, 1.0, 10)
MOST_LANDMARKS = 300  # of the sets that the defaults are chosen on: denser ones are thinned
COUNTS = (3, 4, 5, 6, 7)
SMOOTHINGS = np.logspace(-4.0, -1.0, 7)


@dataclass(frozen=True)
class Entry:
    """What one family reached on one set."""

    error: float
    smoothing: float | None
    seconds: float

    def __str__(self) -> str:
        figure = f"{self.error:.4g}"
        return figure if self.smoothing is None else f"{figure} ({self.smoothing:.0e})"


def affine(points: np.ndarray, fold_size: int) -> Entry:
    started = time.perf_counter()
    error, _ = measure_error(DefGPA(Affine()), points, fold_size)
    return Entry(error, None, time.perf_counter() - started)


def measure_family(model: Any, points: np.ndarray, fold_size: int) -> Entry:
    """Measure the least error along the smoothing."""
    started = time.perf_counter()
    path = defgpa.select_smoothing(DefGPA(model), points, GRID, fold_size)
    size = measure_size(
        DefGPA(model.set_params(smoothing=path.least_value)).align(points).reference
    )
    error = 100.0 * float(np.nanmin(path.cve)) / size
    return Entry(error, path.least_value, time.perf_counter() - started)


def families(folder: Path) -> list[list[str]]:
    """Each family on three sets, its smoothing the best of a grid; affine maps first."""
    table: dict[str, dict[str, Entry]] = {}
    for name, fold_size in FOLD_SIZES.items():
        with np.load(folder / f"{name}.npz", allow_pickle=False) as archive:
            points = archive["points"][:, :: EVERY.get(name, 1)]
        table[name] = {"`Affine()` (AFF_r)": affine(points, fold_size)}
        for family, model in FAMILIES.items():
            if (name, family) in TOO_LONG:
                continue
            table[name][family] = measure_family(model, points, fold_size)
            entry = table[name][family]
            print(f"{name:20s}{family:52s}{entry}  {entry.seconds:.0f} s", flush=True)
    lines = [["family", *(f"{name}, N = {FOLD_SIZES[name]}" for name in table)]]
    families = next(iter(table.values()))
    lines += [[k, *(str(entries.get(k, "–")) for entries in table.values())] for k in families]
    return lines


def ratios(points: np.ndarray, fold_size: int) -> np.ndarray:
    """(count, smoothing): the error of splines over that of rigid alignment with scaling."""
    plain, _ = measure_error(defgpa.EuclideanGPA(scaling=True), points, fold_size)
    ratios_to_rigid = np.empty((len(COUNTS), len(SMOOTHINGS)))
    for k, count in enumerate(COUNTS):
        path = defgpa.select_smoothing(
            DefGPA(ThinPlateSpline(count)), points, SMOOTHINGS, fold_size
        )
        sizes = [
            measure_size(DefGPA(ThinPlateSpline(count, smoothing=tau)).align(points).reference)
            for tau in SMOOTHINGS
        ]
        ratios_to_rigid[k] = 100.0 * path.cve / np.array(sizes) / plain
    return ratios_to_rigid


def defaults(folder: Path) -> list[list[str]]:
    """The median over all sets, for points per axis and smoothing; the least is printed bold."""
    each = []
    for name in SETS:
        points, fold_size = get_points(name, folder)
        step = -(-points.shape[1] // MOST_LANDMARKS)
        each.append(ratios(points[:, ::step], max(1, fold_size // step)))
        print(f"{name:20s}", np.round(each[-1], 3).tolist(), flush=True)
    median = np.median(each, axis=0)
    lines = [["points per axis", *(f"{tau:.0e}" for tau in SMOOTHINGS)]]
    for count, row in zip(COUNTS, median, strict=True):
        cells = [f"{x:.3f}" if x > median.min() else f"**{x:.3f}**" for x in row]
        lines.append([str(count), *cells])
    return lines


def main() -> None:
    tables = {"families": families, "defaults": defaults}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the .npz files")
    parser.add_argument("--only", choices=tables, help="one of the tables")
    parser.add_argument("--into", type=Path, help="Markdown file to write the tables into")
    arguments = parser.parse_args()
    for name in [arguments.only] if arguments.only else tables:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", defgpa.DefgpaWarning)
            text = format_table(tables[name](arguments.data))
        print(text)
        if arguments.into:
            replace_table(arguments.into, name, text)


if __name__ == "__main__":
    main()
