"""Time cross-validation, the choice of smoothing and the comparison, in units of single fits.

    python benchmarks/bench_cross_validation.py [--all]

T is the time of one fit of the same method on the same set, measured in the same run; of a
comparison it is the sum of its single fits. All times are those of the processor, on one thread.
Without ``--all`` the two rows that take minutes are left out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from defgpa import DefGPA, ElasticGPA, Shapes, ThinPlateSpline
from defgpa.datasets import make_faces, smooth_family
from defgpa.model_selection import compare, cross_validate, select_smoothing
from defgpa.model_selection.comparison import default_methods


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    name: str
    fit: Callable[[], object]
    work: Callable[[], object]
    target: float  # at most this many T


def measure_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the least processor time of several runs."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def make_fold_row(name: str, shapes: Shapes, n_points: int, fold_size: int, target: float) -> Row:
    """Make the row of a cross-validation with thin-plate splines."""
    model = DefGPA(ThinPlateSpline(n_points))
    return Row(
        f"{name}, TPS({n_points})",
        lambda: model.fit(shapes),
        lambda: cross_validate(model, shapes, fold_size),
        target,
    )


def make_thin_shapes() -> Shapes:
    """Make 60 × 51 × 3 shapes so thin that bends are rivals of their third axis."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(51, 3)) * [1.0, 1.0, 0.15]
    return Shapes(base + 0.05 * rng.normal(size=(60, 51, 3)))


def make_rows(include_long: bool) -> list[Row]:
    """Make the rows of the table."""
    face, skulls, thin = (
        make_faces().shapes,
        smooth_family(60, 51, 3, seed=0).shapes,
        make_thin_shapes(),
    )
    deformable, elastic = DefGPA(), ElasticGPA()
    rows = [
        make_fold_row("leave-one-out, 10 × 68 × 2", face, 5, 1, 6.0),
        make_fold_row("leave-one-out, 60 × 51 × 3", skulls, 7, 1, 2.0),
        Row(
            "select_smoothing(DefGPA()), 60 × 51 × 3",
            lambda: deformable.fit(skulls),
            lambda: select_smoothing(deformable, skulls),
            15.0,
        ),
        Row(
            "select_smoothing(ElasticGPA()), 60 × 51 × 3",
            lambda: elastic.fit(skulls),
            lambda: select_smoothing(elastic, skulls),
            40.0,
        ),
        Row(
            "select_smoothing(ElasticGPA()), thin shapes",
            lambda: elastic.fit(thin),
            lambda: select_smoothing(elastic, thin),
            40.0,
        ),
        Row(
            "compare, 60 × 51 × 3",
            lambda: [model.fit(skulls) for model in default_methods().values()],
            lambda: compare(skulls),
            4.0,
        ),
    ]
    if include_long:
        large, dense = (
            smooth_family(*size, seed=0).shapes for size in ((200, 100, 3), (10, 4004, 3))
        )
        rows.append(make_fold_row("leave-one-out, 200 × 100 × 3", large, 5, 1, 3.0))
        rows.append(make_fold_row("folds of 10, 10 × 4004 × 3", dense, 5, 10, 60.0))
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="the rows that take minutes, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':46}{'T, ms':>9}{'in T':>9}{'target':>9}")
    with threadpool_limits(1):
        for row in make_rows(options.all):
            row.fit()
            fit = measure_seconds(row.fit, 5)
            taken = measure_seconds(row.work, 3 if fit < 0.01 else 1)
            print(f"{row.name:46}{1e3 * fit:9.1f}{taken / fit:9.1f}{row.target:9.0f}", flush=True)


if __name__ == "__main__":
    main()
