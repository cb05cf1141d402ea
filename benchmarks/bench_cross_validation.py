"""Leave-one-out, twenty folds and a smoothing sweep, in units of single fits.

    python benchmarks/bench_cross_validation.py [--data FOLDER] [--quick]

FOLDER holds face2d.npz and guenons3d.npz (arrays ``points``); without it sets of the same size are
made. Three figures stand beside the time of a run: how many single fits it costs, how long the
same folds take when each is fitted on its own (on the same workers), and the floor: the arithmetic
that no exact method can leave out, at the speed of a matrix product on all cores. That is, for
every shape of every fold, the spline's coordinates, its features, their normal matrix and its
factor, U and U Uᵀ, and for every fold the reduction of P to tridiagonal form. Control points move
with the landmarks that remain, so none of it can be carried over from fold to fold.

The single fit is timed with BLAS on one thread, which is faster for sizes as small as Face. Beside
the time on the clock stands the time of the processors, which a busy machine distorts less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from defgpa import DefGPA, Shapes, ThinPlateSpline
from defgpa._arrays import count_threads
from defgpa.datasets import make_faces, smooth_family
from defgpa.model_selection import cross_validate, select_smoothing

MOST_SECONDS = 30.0  # longer ways round are not tried


class Refitted(DefGPA):
    """The same estimator, by the general way: a fit for every fold."""


@dataclass(frozen=True)
class Run:
    """One row of the table."""

    name: str
    work: Callable[[], object]
    by_refits: Callable[[], object]
    fits: int  # that the general way needs
    flops: float


@dataclass(frozen=True)
class Time:
    """Seconds on the clock, and of all processors together."""

    clock: float
    processors: float


def timed(work: Callable[[], object], repeats: int) -> Time:
    """The least of several runs."""
    clock, processors = [], []
    for _ in range(repeats):
        start, busy = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - start)
        processors.append(time.process_time() - busy)
    return Time(min(clock), min(processors))


def speed() -> float:
    """Flops per second of matrix products, one on each core."""
    a = np.random.default_rng(0).normal(size=(1000, 1000))
    with threadpool_limits(1):
        one = 2 * len(a) ** 3 / timed(lambda: a @ a, 9).processors
    return count_threads() * one


def flops(shapes: Shapes, controls: int, folds: int, values: int = 1) -> float:
    """What every fold must do at least; only UUᵀ and the eigenvectors again for every value."""
    n, m, l = shapes.n_shapes, shapes.n_landmarks, controls
    spline = 4 * l**3 + l**3 / 3 + 2 * l**3  # NᵀKN, its Cholesky factor, N L⁻ᵀ
    regression = 2 * m * l**2 + m * l**2 + 2 * l**3 / 3 + m * l**2
    per_value = n * m**2 * l + 4 * m**3 / 3
    return folds * (n * (spline + regression) + values * per_value)


def points_of(folder: Path | None, name: str, otherwise: Callable[[], object]) -> Shapes:
    """A real set, or one of its size."""
    if folder is None:
        return otherwise()
    with np.load(folder / f"{name}.npz", allow_pickle=False) as archive:
        return Shapes(archive["points"])


def runs(shapes: Shapes, points_per_axis: int, fold_size: int, grid: np.ndarray) -> list[Run]:
    """Cross-validation, and a sweep, of one spline model."""
    warp = ThinPlateSpline(points_per_axis)
    controls, folds = points_per_axis**shapes.n_dims, -(-shapes.n_landmarks // fold_size)
    what = f"{shapes.n_shapes} × {shapes.n_landmarks}, {shapes.n_dims}-D, TPS({points_per_axis})"
    return [
        Run(
            f"{what}, {folds} folds",
            lambda: cross_validate(DefGPA(warp), shapes, fold_size),
            lambda: cross_validate(Refitted(warp), shapes, fold_size),
            folds,
            flops(shapes, controls, folds),
        ),
        Run(
            f"{what}, {folds} folds, {len(grid)} amounts of smoothing",
            lambda: select_smoothing(DefGPA(warp), shapes, grid, fold_size),
            lambda: select_smoothing(Refitted(warp), shapes, grid, fold_size),
            folds * len(grid),
            flops(shapes, controls, folds, len(grid)),
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with face2d.npz and guenons3d.npz")
    parser.add_argument("--quick", action="store_true", help="only the small set")
    options = parser.parse_args()
    grid = np.logspace(-6, -0.5, 12)
    face = points_of(options.data, "face2d", lambda: make_faces().shapes)
    sets = [(face, 5, 1, 9), (face, 7, 1, 5)]
    if not options.quick:
        skulls = points_of(
            options.data, "guenons3d", lambda: smooth_family(300, 155, 3, seed=0).shapes
        )
        sets.append((skulls, 5, 8, 1))
    rate = speed()
    print(f"{count_threads()} workers; matrix products: {rate / 1e9:.1f} Gflop/s together\n")
    for shapes, points_per_axis, fold_size, repeats in sets:
        with threadpool_limits(1):
            model = DefGPA(ThinPlateSpline(points_per_axis))
            fit = timed(lambda model=model, shapes=shapes: model.fit(shapes), 3 * repeats)
        for run in runs(shapes, points_per_axis, fold_size, grid):
            report(run, fit, run.flops / rate, repeats)


def report(run: Run, fit: Time, floor: float, repeats: int) -> None:
    """One run: its time, in fits, beside the floor and beside fits of every fold."""
    taken = timed(run.work, repeats)
    print(f"{run.name}\n  one fit {1e3 * fit.clock:9.1f} ms")
    print(
        f"  all     {1e3 * taken.clock:9.1f} ms = {taken.clock / fit.clock:.1f} fits on the clock, "
        f"{taken.processors / fit.processors:.1f} of processor time"
    )
    print(
        f"  floor   {1e3 * floor:9.1f} ms, ratio {taken.clock / floor:.1f} on the clock, "
        f"{taken.processors / (count_threads() * floor):.1f} of processor time"
    )
    if run.fits * fit.clock < MOST_SECONDS:
        refits = timed(run.by_refits, 1)
        ratio = refits.processors / taken.processors
        print(f"  refits  {1e3 * refits.clock:9.1f} ms: {ratio:.1f} times the processor time")
    print()


if __name__ == "__main__":
    main()
