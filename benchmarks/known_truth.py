"""How true the reference and the mean shape are: tables of sets with known truth.

    python benchmarks/known_truth.py [--sets 40] [--into docs/theory/proportions.md]

The first table has complete sets of seven classes: the error of the reference and of the mean shape
over that of classical GPA at unit size, geometric means (above 1: farther from the truth). The
second compares the metric C of the eigenproblem, the total weight of each landmark, with the
paper's I: the error with C over that with I, for proportions by rigidity. Errors are Procrustes
distances to the shape that all others were made from. The generators are in ``tests/truth.py``.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np

import defgpa
from defgpa.solvers import deformable
from defgpa.solvers.eigen import Cost, Method, Spectrum, find_lowest_axes
from proportions import format_table, replace_table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from truth import (
    CLASSES,
    class_set,
    classical_mean,
    geometric_mean,
    hide_landmarks,
    off_by,
)

METHODS = {
    "DefGPA, spline": defgpa.DefGPA(),
    "DefGPA, affine": defgpa.DefGPA(defgpa.Affine()),
    "ElasticGPA": defgpa.ElasticGPA(),
}
PATTERNS = {  # how landmarks are hidden: the shares that are
    "random": (0.0, 0.15, 0.3, 0.45, 0.6),
    "rare": (0.15, 0.3, 0.45, 0.6),
    "side": (0.15, 0.3, 0.45, 0.6),
    "weights": (0.0,),
}


def compare_with_classical_mean(n_sets: int) -> Iterator[list[str]]:
    """Yield the rows of the first table."""
    yield ["class", "error of GPA", *METHODS, "mean shape"]
    for name in CLASSES:
        usual, ratios = [], {method: [] for method in (*METHODS, "mean shape")}
        for seed in range(n_sets):
            sample = class_set(name, seed)
            usual.append(off_by(classical_mean(sample.points), sample.truth))
            for label, method in METHODS.items():
                fitted = method.solve(sample.points)[0]
                ratios[label].append(off_by(fitted.reference, sample.truth) / usual[-1])
            ratios["mean shape"].append(off_by(fitted.mean_shape, sample.truth) / usual[-1])
        means = [f"{geometric_mean(values):.2f}" for values in ratios.values()]
        yield [name, f"{geometric_mean(usual):.3f}", *means]


def compare_metrics(n_sets: int) -> Iterator[list[str]]:
    """Yield the rows of the second table."""
    classes = ("clean", "flat", "elongated", "large")
    yield ["missing", *classes]
    for pattern, shares in PATTERNS.items():
        for share in shares:
            ratios = [_compare_metrics_on(name, pattern, share, n_sets) for name in classes]
            label = "weights 0.01 to 1" if pattern == "weights" else f"{pattern}, {share:.0%}"
            yield [label, *(f"{ratio:.2f}" for ratio in ratios)]


def _compare_metrics_on(name: str, pattern: str, share: float, n_sets: int) -> float:
    ratios = []
    for seed in range(n_sets):
        sample, rng = class_set(name, seed), np.random.default_rng(seed)
        n, m, _ = sample.points.shape
        weights = rng.uniform(0.1, 1, size=m) * rng.uniform(0.1, 1, size=(n, m))
        shapes = defgpa.Shapes(
            hide_landmarks(rng, sample.points, pattern, share),
            weights=weights if pattern == "weights" else None,
        )
        try:
            by_weight = defgpa.DefGPA().solve(shapes)[0].reference
            with patch.object(deformable, "find_cheapest_axes", _find_axes_in_plain_metric):
                unweighted = defgpa.DefGPA().solve(shapes)[0].reference
        except defgpa.DefgpaError:  # too little is left of some shape
            continue
        ratios.append(off_by(by_weight, sample.truth) / off_by(unweighted, sample.truth))
    return geometric_mean(ratios)


def _find_axes_in_plain_metric(
    cost: Cost, method: Method, count: int, start: np.ndarray | None = None
) -> Spectrum:
    return find_lowest_axes(method.centering.apply(cost, None).dense(), count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=40, help="of each class")
    parser.add_argument("--into", type=Path, help="Markdown file to write the tables into")
    arguments = parser.parse_args()
    tables = {"known truth": compare_with_classical_mean, "metrics": compare_metrics}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", defgpa.DefgpaWarning)
        for name, make_rows in tables.items():
            rows = []
            for row in make_rows(arguments.sets):
                rows.append(row)
                print("  ".join(row), flush=True)
            if arguments.into:
                replace_table(arguments.into, name, format_table(rows))


if __name__ == "__main__":
    main()
