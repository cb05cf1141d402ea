"""Reading a large TPS file and large tables, against C readers on the same numbers.

    python benchmarks/reading.py --megabytes 20

Prints the ratios of time and of peak memory (of what Python allocates); the target of both is 3.
TPS and the wide table are compared with ``numpy.loadtxt``, the long one with ``pandas.read_csv``.
Processor time; measured on two shared cores at 20 MB: TPS 2.36 and 2.23, wide table 1.60 and 2.26,
long table 2.77 and 0.70.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import defgpa

N_LANDMARKS = 500


def write_files(folder: Path, megabytes: float) -> tuple[Path, Path, Path]:
    """Write the same shapes as TPS, a wide and a long table, of about so many megabytes each."""
    n = max(2, round(megabytes * 1e6 / (N_LANDMARKS * 35)))
    points = 100 * np.random.default_rng(0).normal(size=(n, N_LANDMARKS, 2))
    tps, table, long = (folder / name for name in ("set.tps", "set.csv", "long.csv"))
    heads = ",".join(f"x{j},y{j}" for j in range(1, N_LANDMARKS + 1))
    with tps.open("w") as blocks, table.open("w") as rows, long.open("w") as landmarks:
        landmarks.write("shape,landmark,x,y\n")
        rows.write(f"id,species,{heads}\n")
        for k, shape in enumerate(points):
            blocks.write(f"LM={N_LANDMARKS}\n")
            np.savetxt(blocks, shape, fmt="%.15g")
            blocks.write(f"ID=s{k}\n")
            rows.write(f"s{k},a,{','.join(f'{value:.15g}' for value in shape.ravel())}\n")
            for j, (x, y) in enumerate(shape, start=1):
                landmarks.write(f"s{k},{j},{x:.15g},{y:.15g}\n")
    return tps, table, long


def measure(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of the faster of two runs, and the peak of memory of a third in bytes."""
    seconds = []
    for _ in range(2):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return min(seconds), float(peak)


def main() -> None:
    """Print both ratios of both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=20.0)
    megabytes = parser.parse_args().megabytes
    with tempfile.TemporaryDirectory() as folder:
        tps, table, long = write_files(Path(folder), megabytes)
        columns = range(2, 2 + 2 * N_LANDMARKS)
        loadtxt = measure(lambda: np.loadtxt(table, delimiter=",", skiprows=1, usecols=columns))
        pandas = measure(lambda: pd.read_csv(long))
        for path, floor in ((tps, loadtxt), (table, loadtxt), (long, pandas)):
            ours = measure(lambda path=path: defgpa.read_shapes(path))
            print(
                f"{path.name}: {path.stat().st_size / 1e6:.0f} MB, "
                f"time {ours[0] / floor[0]:.2f}, memory {ours[1] / floor[1]:.2f} times the C reader"
            )


if __name__ == "__main__":
    main()
