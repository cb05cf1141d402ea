"""The reference by rigidity and by the published prior, on the real sets beside the project.

    python benchmarks/proportions.py [DATA] [--also FILE ...] [--into docs/theory/proportions.md]
    python benchmarks/proportions.py --smoothing 3e-4        the same with softer splines

DATA is a folder of .npz files with an array ``points`` (n, m, d), NaN for a landmark that was not
seen; by default ../shared/data. Mosquito wings come with ktch, where that is installed. ``--also``
takes further landmark files of any format that defgpa reads.

Cross-validation errors are in per cent of the size of each method's own reference; distances are
Procrustes distances of the reference to the mean of rigid alignment with scaling. The table is
printed, or written between its marks in a Markdown file.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import defgpa
from defgpa.model_selection import cross_validate
from defgpa.procrustes import procrustes_distance

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


@dataclass(frozen=True)
class Row:
    """One set and one warp, by the prior and by rigidity."""

    name: str
    warp: str
    prior: float
    rigid: float
    similar: float
    prior_distance: float
    rigid_distance: float

    @property
    def cells(self) -> list[str]:
        return [
            self.name,
            self.warp,
            f"{self.prior:.3g} → {self.rigid:.3g} ({self.similar:.3g})",
            f"{self.prior_distance:.3f} → {self.rigid_distance:.4f}",
        ]


def get_points(name: str, folder: Path = DATA) -> tuple[np.ndarray, int]:
    """Return a set of the folder, thinned, and the landmarks to leave out at a time."""
    shapes, landmarks, fold_size = SETS[name]
    with np.load(folder / f"{name}.npz", allow_pickle=False) as archive:
        return archive["points"][::shapes, ::landmarks], fold_size


def iter_sets(folder: Path, also: list[str]) -> Iterator[tuple[str, np.ndarray, int]]:
    for name in SETS:
        points, fold_size = get_points(name, folder)
        every = "".join(
            f", every {_format_ordinal(step)} {axis}"
            for step, axis in zip(SETS[name], ("shape", "landmark"), strict=False)
            if step > 1
        )
        yield f"{name}{every}, N = {fold_size}", points, fold_size
    try:
        from ktch.datasets import load_landmark_mosquito_wings
    except ImportError:
        print("(mosquito wings: pip install ktch)")
    else:
        yield (
            "mosquito wings of ktch, every 3rd, N = 1",
            load_landmark_mosquito_wings().coords[::3],
            1,
        )
    for path in also:
        shapes = defgpa.read_shapes(path)
        fold_size = max(1, shapes.n_landmarks // 20)
        yield f"{Path(path).name}, N = {fold_size}", shapes.points, fold_size


def _format_ordinal(step: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(step, f"{step}th")


def measure_size(reference: np.ndarray) -> float:
    """Return the RMS distance of the landmarks from their centroid."""
    return float(np.sqrt(((reference - reference.mean(axis=0)) ** 2).sum(axis=1).mean()))


def measure_error(estimator: Any, points: np.ndarray, fold_size: int) -> tuple[float, np.ndarray]:
    """Return the cross-validation error in per cent of the size of the reference, and that."""
    cv = cross_validate(estimator, points, fold_size=fold_size)
    return 100.0 * cv.error / measure_size(cv.reference), cv.reference


def measure_rows(folder: Path, also: list[str], smoothing: float) -> Iterator[Row]:
    spline = defgpa.ThinPlateSpline(5, smoothing=smoothing)
    for name, points, fold_size in iter_sets(folder, also):
        similar, mean = measure_error(defgpa.EuclideanGPA(scaling=True), points, fold_size)
        for label, warp in {"affine": defgpa.Affine(), "TPS(5)": spline}.items():
            prior, prior_reference = measure_error(
                defgpa.DefGPA(warp, proportions="prior"), points, fold_size
            )
            rigid, rigid_reference = measure_error(defgpa.DefGPA(warp), points, fold_size)
            references = (prior_reference, rigid_reference)
            distances = [procrustes_distance(reference, mean) for reference in references]
            yield Row(name, label, prior, rigid, similar, *distances)


def format_table(table: list[list[str]]) -> str:
    """Format a Markdown table; the first row is its head."""
    head, *body = table
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def replace_table(path: Path, name: str, text: str) -> None:
    """Replace the text between the marks of this name in a file, at once."""
    first, last = f"<!-- table of {name} -->", "<!-- end of table -->"
    pattern = re.compile(re.escape(first) + ".*?" + re.escape(last), re.DOTALL)
    old = path.read_text(encoding="utf-8")
    if not pattern.search(old):
        raise SystemExit(f"{path} has no {first} … {last}")
    temporary = path.with_suffix(".tmp")
    new = pattern.sub(lambda _: f"{first}\n{text}\n{last}", old, count=1)
    temporary.write_text(new, encoding="utf-8")
    temporary.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=DATA, help="folder of .npz files")
    parser.add_argument("--also", nargs="+", default=[], help="further landmark files")
    parser.add_argument("--smoothing", type=float, default=1e-3, help="of the splines")
    parser.add_argument("--into", type=Path, help="Markdown file to write the table into")
    arguments = parser.parse_args()
    table = [["set", "warp", "CVE, % of size: prior → rigid (similarities)", "distance"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", defgpa.DefgpaWarning)
        for row in measure_rows(arguments.data, arguments.also, arguments.smoothing):
            table.append(row.cells)
            print("  ".join(row.cells), flush=True)
    if arguments.into:
        replace_table(arguments.into, "proportions", format_table(table))


if __name__ == "__main__":
    main()
