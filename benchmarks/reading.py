"""Reading large and many landmark files, against C readers on the same numbers.

    python benchmarks/reading.py --megabytes 20 200

Each row is one set of shapes as TPS, a wide or a long table. Every measurement is a process of
its own: processor seconds of the fastest of some runs, and the peak of memory of the first above
what the imports take. The rivals are ``numpy.loadtxt`` of the bare rows of coordinates (NaN where
we read NA) and, for tables, ``pandas.read_csv`` of the file itself; the target is 3 times either
of them. One file a shape is measured with 1000 small files and with a large one of ``.pts``,
``.fcsv`` and ``.csv``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from defgpa.arrays import Array

N_RUNS = 3
# landmarks, dimension and share of gaps of each set
SETS = {
    "TPS 500 × 2": (500, 2, 0.0),
    "TPS 100 × 3": (100, 3, 0.0),
    "TPS 100 × 2 with NA": (100, 2, 0.05),
    "wide 500 × 2": (500, 2, 0.0),
    "wide 68 × 3": (68, 3, 0.0),
    "wide 68 × 3 with NA": (68, 3, 0.05),
    "long 500 × 2": (500, 2, 0.0),
    "long 68 × 3": (68, 3, 0.0),
    "long 68 × 3 with NA": (68, 3, 0.05),
}
N_FILES, N_LANDMARKS, N_POINTS = 1000, 68, 400_000


def write_set(path: Path, bare: Path, name: str, megabytes: float) -> None:
    """Write one of the sets, and its bare rows of coordinates."""
    m, d, gaps = SETS[name]
    rng = np.random.default_rng(0)
    axes = "xyz"[:d]
    heads = {
        "wide": "id,species," + ",".join(f"{axis}{j}" for j in range(m) for axis in axes) + "\n",
        "long": f"shape,landmark,{','.join(axes)}\n",
    }
    with path.open("w") as file, bare.open("w") as rows_only:
        file.write(heads.get(name.split()[0], ""))
        for k in range(max(2, round(megabytes * 1e6 / (m * d * 18)))):
            points = 100 * rng.normal(size=(m, d))
            points[rng.random(m) < gaps] = np.nan
            rows_only.writelines(f"{' '.join(row)}\n" for row in format_rows(points, "nan"))
            write_specimen(file, name.split()[0], f"s{k}", list(format_rows(points, "NA")))


def write_specimen(file: TextIO, layout: str, name: str, rows: Sequence[Sequence[str]]) -> None:
    """Write one specimen as TPS, or as the rows of a wide or a long table."""
    if layout == "TPS":
        lines = [f"LM{'3' * (len(rows[0]) == 3)}={len(rows)}", *map(" ".join, rows), f"ID={name}"]
    elif layout == "wide":
        lines = [f"{name},a,{','.join(','.join(row) for row in rows)}"]
    else:
        lines = [f"{name},{j},{','.join(row)}" for j, row in enumerate(rows, start=1)]
    file.write("\n".join(lines) + "\n")


def format_rows(points: Array, gap: str) -> Iterator[list[str]]:
    """Format the coordinates of each point in 15 digits."""
    for row in points.tolist():
        yield [gap if value != value else f"{value:.15g}" for value in row]


def write_pts(points: Array) -> str:
    """Format a shape as 300-W does."""
    rows = (" ".join(row) for row in format_rows(points[:, :2], "NA"))
    return join_lines("version: 1", f"n_points: {len(points)}", "{", *rows, "}")


def write_labelled_pts(points: Array) -> str:
    """Format a shape as IDAV Landmark does."""
    rows = (f"S{k:03} {' '.join(row)}" for k, row in enumerate(format_rows(points, "NA")))
    return join_lines("Version 1.0", f"{len(points)}", *rows)


def write_fcsv(points: Array) -> str:
    """Format a shape as 3D Slicer does."""
    columns = "id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID"
    rows = (
        f"{k},{','.join(row)},0,0,0,1,1,1,0,F-{k},,,2,0"
        for k, row in enumerate(format_rows(points, "NA"), start=1)
    )
    head = ("# Markups fiducial file version = 4.11", "# CoordinateSystem = LPS")
    return join_lines(*head, f"# columns = {columns}", *rows)


def write_table(points: Array) -> str:
    """Format a shape as a table of labels and coordinates."""
    rows = (f"L{k},{','.join(row)}" for k, row in enumerate(format_rows(points, "NA")))
    return join_lines("landmark,x,y,z", *rows)


def join_lines(*lines: str) -> str:
    """Join the lines of a file."""
    return "\n".join(lines) + "\n"


FILES: dict[str, tuple[str, Callable[[Array], str]]] = {
    "300-W .pts": (".pts", write_pts),
    "IDAV .pts": (".pts", write_labelled_pts),
    ".fcsv": (".fcsv", write_fcsv),
    "points .csv": (".csv", write_table),
}


def measure(reader: str, path: Path) -> tuple[float, float]:
    """Return the processor seconds and the bytes that a reader takes in a process of its own."""
    words = [sys.executable, __file__, "--reader", reader, "--path", str(path)]
    output = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    seconds, peak = map(float, output.split())
    return seconds, peak


def run_reader(reader: str, path: str) -> None:
    """Read a file some times, and print the seconds and the bytes it took."""
    import pandas as pd

    from defgpa.io import read_shapes

    readers: dict[str, Callable[[str], object]] = {
        "defgpa": read_shapes,
        "loadtxt": np.loadtxt,
        "pandas": pd.read_csv,
    }
    Path("/proc/self/clear_refs").write_text("5")  # since a process inherits the peak
    before, seconds, peak = get_peak_bytes(), list[float](), 0
    for _ in range(N_RUNS):
        start = time.process_time()
        shapes = readers[reader](path)
        seconds.append(time.process_time() - start)
        peak = peak or get_peak_bytes() - before
        del shapes
    sys.stdout.write(f"{min(seconds)} {peak}")


def get_peak_bytes() -> int:
    """Return the most memory that this process has held, on Linux."""
    status = Path("/proc/self/status").read_text().split()
    return 1024 * int(status[status.index("VmHWM:") + 1])


def compare_sets(folder: Path, megabytes: float) -> None:
    """Print both ratios of every set of about so many megabytes."""
    print(f"{megabytes:g} MB, times the C reader: {'loadtxt':>22} {'pandas':>18}")
    for name in SETS:
        path, bare = folder / f"set.{'tps' if 'TPS' in name else 'csv'}", folder / "bare.txt"
        write_set(path, bare, name, megabytes)
        seconds, peak = measure("defgpa", path)
        rivals = [("loadtxt", bare), ("pandas", path)][: 1 + ("TPS" not in name)]
        ratios = [(seconds / t, peak / b) for t, b in (measure(*rival) for rival in rivals)]
        texts = [f"time {t:.2f}, memory {b:.2f}" for t, b in ratios]
        print(f"  {name:21} {seconds:5.2f} s {peak / 1e6:5.0f} MB  {'   '.join(texts)}")


def time_files(folder: Path) -> None:
    """Print the time of many small files and of a large one, of formats of one shape a file."""
    rng = np.random.default_rng(0)
    print(f"one file a shape: {N_FILES} of {N_LANDMARKS} points, and one of {N_POINTS}")
    for name, (suffix, write) in FILES.items():
        many, large = folder / name.split()[0].strip("."), folder / f"large{suffix}"
        many.mkdir()
        for k in range(N_FILES):
            (many / f"s{k}{suffix}").write_text(write(rng.normal(size=(N_LANDMARKS, 3))))
        large.write_text(write(rng.normal(size=(N_POINTS, 3))))
        seconds, speed = measure("defgpa", many)[0], large.stat().st_size / 1e6
        speed /= measure("defgpa", large)[0]
        print(f"  {name:21} {1000 * seconds / N_FILES:.2f} ms a small file, {speed:.0f} MB/s")


def main() -> None:
    """Print all ratios, or run one reader."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[20.0])
    parser.add_argument("--reader")
    parser.add_argument("--path")
    words = parser.parse_args()
    if words.reader is not None:
        run_reader(words.reader, words.path)
        return
    with tempfile.TemporaryDirectory() as folder:
        time_files(Path(folder))
        for megabytes in words.megabytes:
            compare_sets(Path(folder), megabytes)


if __name__ == "__main__":
    main()
