"""Every family of warps with cross-validated smoothing, against affine maps, on real landmarks.

    python benchmarks/warp_families.py DATA [--into docs/warps.md]

DATA is a folder with face2d.npz, histology2d.npz and turtles3d_partial.npz, each with an array
``points`` (n, m, d), NaN for a landmark that was not seen. The table is printed, or written
between the two marks in a Markdown file.
"""

from __future__ import annotations

import argparse
import re
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

FOLD_SIZES = {"face2d": 1, "histology2d": 1, "turtles3d_partial": 20}
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
MARKS = ("<!-- table of families -->", "<!-- end of table -->")


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
    error = defgpa.cross_validate(DefGPA(Affine()), points, fold_size).error
    return Entry(error, None, time.perf_counter() - started)


def tuned(model: Any, points: np.ndarray, fold_size: int) -> Entry:
    started = time.perf_counter()
    path = defgpa.select_smoothing(DefGPA(model), points, GRID, fold_size)
    return Entry(float(path.cve.min()), path.best_value, time.perf_counter() - started)


def measured(folder: Path) -> dict[str, dict[str, Entry]]:
    """For each set, each family's entry; affine maps first."""
    table: dict[str, dict[str, Entry]] = {}
    for name, fold_size in FOLD_SIZES.items():
        with np.load(folder / f"{name}.npz", allow_pickle=False) as archive:
            points = archive["points"]
        table[name] = {"`Affine()` (AFF_r)": affine(points, fold_size)}
        for family, model in FAMILIES.items():
            if (name, family) in TOO_LONG:
                continue
            table[name][family] = tuned(model, points, fold_size)
            print(f"{name:20s}{family:52s}{table[name][family]}", flush=True)
    return table


def markdown(table: dict[str, dict[str, Entry]]) -> str:
    heads = [f"{name}, N = {FOLD_SIZES[name]}" for name in table]
    lines = ["| family | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for family in next(iter(table.values())):
        row = [str(entries.get(family, "–")) for entries in table.values()]
        lines.append(f"| {family} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def written(path: Path, text: str) -> None:
    """The file with the table between its marks, replaced at once."""
    pattern = re.compile(re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1]), re.DOTALL)
    old = path.read_text(encoding="utf-8")
    if not pattern.search(old):
        raise SystemExit(f"{path} has no {MARKS[0]} … {MARKS[1]}")
    temporary = path.with_suffix(".tmp")
    new = pattern.sub(lambda _: f"{MARKS[0]}\n{text}\n{MARKS[1]}", old)
    temporary.write_text(new, encoding="utf-8")
    temporary.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the three .npz files")
    parser.add_argument("--into", type=Path, help="Markdown file to write the table into")
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", defgpa.DefgpaWarning)
        table = measured(arguments.data)
    text = markdown(table)
    print(text)
    if arguments.into:
        written(arguments.into, text)


if __name__ == "__main__":
    main()
