"""Every speed target, measured as a ratio to a floor or to a peer in the same run.

    make bench                                all of it, a quarter of an hour; writes RESULTS.md
    python benchmarks/run.py --quick          a minute or two, without the largest sets; prints only
    python benchmarks/run.py --only tps7      the rows with this in their name; prints only

Each row (rows.py) runs in a process of its own, with the threads it states; what is compared takes
turns in that process (race.py).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
GIB = 2**30

HEAD = """\
# Measured

Written by `make bench`. Each row runs in a process of its own; ours and what it is compared with
take turns in that process, and the best time of several counts. Only ratios mean something:
machines are noisy, and this one may have been busy (its load is stated). The floor of a solve is
n symmetric products FᵀF (dsyrk, l × m) and n triangular solves of the same size (dtrsm), that of
an evaluation one pass of the kernel on one thread, that of reading a file its bytes from the
disk (or its cache). Peers that are *cited* (R's geomorph, ktch, the authors' program with
vectorised kernels) were measured elsewhere on one thread, and not again here. VTK is its filter
alone, on data that lies ready in VTK's own arrays; ours starts from a NumPy array and checks it
(`solve`; *fit* among the peers is the same with the look at the input that no peer takes).
The peak is that of the whole process, interpreter and data included, after our first run and
before anything else, its library too, has been loaded.
"""

Timings = dict[str, Any]


@dataclass(frozen=True)
class AtMost:
    """Ours may take at most ``limit`` times the fastest of some others (names parted by |)."""

    limit: float
    against: str
    text: str

    def compute(self, timings: Timings) -> float:
        return timings["ours"] / min(timings[name] for name in self.against.split("|"))

    def is_met(self, timings: Timings) -> bool:
        return self.compute(timings) <= self.limit


@dataclass(frozen=True)
class AtLeast(AtMost):
    """Ours must be at least ``limit`` times as fast."""

    def compute(self, timings: Timings) -> float:
        return 1.0 / super().compute(timings)

    def is_met(self, timings: Timings) -> bool:
        return self.compute(timings) >= self.limit


@dataclass(frozen=True)
class Exponent:
    """Time may grow at most like this power of the size."""

    limit: float = 1.1

    @property
    def text(self) -> str:
        return f"exponent ≤ {self.limit}"

    def compute(self, timings: Timings) -> float:
        return timings["exponent"]

    def is_met(self, timings: Timings) -> bool:
        return timings["exponent"] <= self.limit


@dataclass(frozen=True)
class Peak:
    """Memory of the whole process."""

    limit: float

    @property
    def text(self) -> str:
        return f"peak ≤ {self.limit:g} GiB"

    def compute(self, timings: Timings) -> float:
        return timings["peak"] / GIB

    def is_met(self, timings: Timings) -> bool:
        return self.compute(timings) <= self.limit


@dataclass(frozen=True)
class Within:
    """Seconds, for what is only ever run once."""

    limit: float

    @property
    def text(self) -> str:
        return f"≤ {self.limit:g} s"

    def compute(self, timings: Timings) -> float:
        return timings["ours"]

    def is_met(self, timings: Timings) -> bool:
        return self.compute(timings) <= self.limit


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str  # of the function in rows.py
    job: str
    targets: tuple[Any, ...] = ()
    threads: int = 2
    large: bool = False  # left out when there is little time


RIGID = AtMost(1.0, "geomorph (cited)", "≤ geomorph's rigid fit")
FULL = AtMost(1.5, "full", "≤ 1.5 × the full case")
FIVE = AtMost(5.0, "DefGPA", "≤ 5 × DefGPA")
FASTEST = AtMost(1.5, "VTK|geomstats", "≤ 1.5 × the fastest of VTK and geomstats")

ROWS = (
    Row(
        "tps7_dense",
        "TPS(7), 10 × 4004 × 3",
        (AtMost(3.0, "floor", "≤ 3 × floor"), AtLeast(60.0, "authors (cited)", "≥ 60 × authors'")),
        threads=1,
    ),
    *(
        Row(
            f"tps7_smoothing_1e{digits}",
            f"TPS(7), 10 × 4004 × 3, smoothing {10.0**-digits:g}",
            (AtMost(3.0, "floor", "≤ 3 × floor"),),
            threads=1,
        )
        for digits in (0, 1, 2, 4, 5, 6)
    ),
    Row("affine_dense", "AFF_r, 10 × 4004 × 3", (AtMost(3.0, "VTK", "≤ 3 × VTK's rigid filter"),)),
    Row("tps5_face", "TPS(5), 10 × 68 × 2", (RIGID,)),
    Row("tps3_thousand", "TPS(3), 1000 × 100 × 3", (RIGID,)),
    Row("tps3_ten_thousand", "TPS(3), 10,000 × 100 × 3", (RIGID,), large=True),
    Row("missing_thousand", "TPS(3), 1000 × 100 × 3, 20 % missing", (FULL,)),
    Row("missing_ten_thousand", "TPS(3), 10,000 × 100 × 3, 20 % missing", (FULL,), large=True),
    Row("similarity_small", "EuclideanGPA(scaling=True), 10 × 68 × 2", (FASTEST,)),
    Row("similarity_dense", "EuclideanGPA(scaling=True), 10 × 4004 × 3", (FASTEST,)),
    Row("similarity_thousand", "EuclideanGPA(scaling=True), 1000 × 100 × 3", (FASTEST,)),
    Row(
        "similarity_ten_thousand",
        "EuclideanGPA(scaling=True), 10,000 × 100 × 3",
        (FASTEST,),
        large=True,
    ),
    Row("elastic_face", "ElasticGPA TPS(5), 10 × 68 × 2", (FIVE,)),
    Row("elastic_thousand", "ElasticGPA TPS(3), 1000 × 100 × 3", (FIVE,)),
    Row("elastic_dense", "ElasticGPA TPS(5), 10 × 4004 × 3", (FIVE,)),
    Row("growth_in_shapes", "TPS(3), n × 100 × 3, n = 500 … 4000", (Exponent(),)),
    Row("growth_in_few_landmarks", "TPS(5), 10 × m × 3, m = 250 … 4000", (Exponent(),)),
    Row("growth_in_landmarks", "TPS(5), 10 × m × 3, m = 4000 … 32,000", (Exponent(),), large=True),
    Row("growth_in_features", "TPS(3 … 7), 10 × 4004 × 3, l = 27 … 343"),
    Row("hundred_thousand", "TPS(5), 10 × 10⁵ × 3", large=True),
    Row(
        "million",
        "TPS(5), 10 × 10⁶ × 3",
        (Peak(6.0), Within(60.0)),
        large=True,
    ),
    Row(
        "evaluation",
        "warp(10⁶ points), 125 centres, 3-D",
        (AtMost(1.0, "scipy", "≤ scipy's RBFInterpolator"),),
        threads=1,
    ),
    Row(
        "evaluation",
        "warp(10⁶ points), 125 centres, 3-D",
        (AtLeast(1.7, "scipy", "≥ 1.7 × scipy's"),),
    ),
    Row(
        "leave_one_out",
        "leave-one-out, 10 × 68 × 2, TPS(5)",
        (
            AtMost(25.0, "one fit", "≤ 25 fits"),
            AtLeast(100.0, "authors (cited)", "≥ 100 × authors'"),
        ),
    ),
    *(
        Row(name, job, (AtMost(1.0, "geomorph (cited)", "≤ geomorph's"),), threads=1)
        for name, job in (
            ("slide_bending", "slide by bending energy, 15 × 25 × 2"),
            ("slide_procrustes", "slide by Procrustes distance, 15 × 25 × 2"),
            ("complete_heads", "complete by splines, 40 × 12 × 2, 16 missing"),
            ("complete_larvae", "complete by splines, 114 × 64 × 2, 44 missing"),
        )
    ),
    Row(
        "permutations_dense",
        "procrustes_anova, 999 permutations, 300 × 1000 × 3",
        (AtLeast(10.0, "base R", "≥ 10 × RRPP's procedure in base R"), Peak(0.5)),
        threads=1,
    ),
    Row(
        "covariation_dense",
        "two_block_pls, 999 permutations, 300 × 1000 × 3",
        (AtLeast(10.0, "decompositions alone", "≥ 10 × its decompositions alone"), Peak(0.5)),
        threads=1,
    ),
    Row("image", "warp_image, 1040 × 800 RGB, 49 centres"),
    Row("reading_text", "read 10,000 × 100 × 2, one TPS file", threads=1),
    Row("reading_arrays", "read 10 × 10⁵ × 3, npz", threads=1),
)


def measure_row(row: Row, quick: bool) -> Timings:
    """Measure a row in a process of its own."""
    limits = {f"{lib}_NUM_THREADS": str(row.threads) for lib in ("OPENBLAS", "OMP", "MKL")}
    command = [sys.executable, str(HERE / "run.py"), "--row", row.name, *["--quick"] * quick]
    completed = subprocess.run(
        command, env=os.environ | limits, capture_output=True, text=True, check=False
    )
    if completed.returncode:
        return {"failure": (completed.stderr.strip().splitlines() or ["failed"])[-1]}
    return json.loads(completed.stdout.splitlines()[-1])


def run_row(name: str, quick: bool) -> Timings:
    """Measure a row in this process."""
    import race
    import rows

    if quick:
        race.SECONDS, race.MIN_RUNS = 0.4, 2
    return getattr(rows, name)()


def format_row(row: Row, timings: Timings) -> list[str]:
    """Format the cells of a row."""
    if "failure" in timings:
        return [row.job, str(row.threads), *["–"] * 4, timings["failure"], "–", "failed"]
    targets = row.targets
    return [
        row.job,
        str(row.threads),
        format_time(timings["ours"]),
        f"{timings['peak'] / GIB:.2f} GiB",
        f"{timings['ours'] / timings['floor']:.3g}" if "floor" in timings else "–",
        format_peers(timings) or "–",
        "; ".join(target.text for target in targets) or "–",
        "; ".join(f"{target.compute(timings):.3g}" for target in targets)
        or format_exponent(timings),
        "; ".join("met" if target.is_met(timings) else "missed" for target in targets) or "–",
    ]


def format_peers(timings: Timings) -> str:
    """Format our time over that of each peer."""
    facts = {"ours", "peak", "floor", "exponent", "times", "storage", "products"}
    return ", ".join(
        f"{timings['ours'] / seconds:.3g} {name}"
        for name, seconds in timings.items()
        if name not in facts
    )


def format_exponent(timings: Timings) -> str:
    return f"exponent {timings['exponent']:.2f}" if "exponent" in timings else "–"


def format_time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"


TITLES = (
    "job", "threads", "time", "peak", "ratio to floor", "ratio to peers", "target", "measured", ""
)  # fmt: skip


def format_table(lines: list[list[str]]) -> str:
    rows = [list(TITLES), ["---"] * len(TITLES), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def format_growth(timings_of: dict[str, Timings]) -> str:
    """Format the times behind every exponent."""
    lines = ["## Growth", "", "| job | exponent | times |", "| --- | --- | --- |"]
    for row in ROWS:
        timings = timings_of.get(row.name, {})
        if "times" in timings:
            times = ", ".join(f"{size}: {format_time(t)}" for size, t in timings["times"].items())
            lines.append(f"| {row.job} | {timings['exponent']:.2f} | {times} |")
    return "\n".join(lines)


def describe_machine() -> str:
    """Describe the machine, one fact a line."""
    import scipy.linalg  # noqa: F401 - loads BLAS
    from threadpoolctl import threadpool_info

    names = ("defgpa", "numpy", "scipy", "scikit-learn", "vtk", "geomstats", "scikit-image")
    blas = sorted(
        {
            f"{x['internal_api']} {x['version']} ({x.get('architecture', '?')})"
            for x in threadpool_info()
            if x["user_api"] == "blas"
        }
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    return "\n".join(
        [
            f"- {os.cpu_count()} cores of {get_processor()}, {memory:.0f} GiB",
            f"- {platform.system()} {platform.machine()}, Python {platform.python_version()}",
            f"- {', '.join(f'{name} {get_version(name)}' for name in names)}",
            f"- BLAS: {', '.join(blas)}; threads as stated in each row",
        ]
    )


def get_processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "an unknown processor")


def get_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def format_load() -> str:
    return ", ".join(f"{average:.1f}" for average in os.getloadavg())


def run_rows(
    chosen: list[Row], quick: bool, report: Callable[[str], None]
) -> tuple[str, dict[str, Timings]]:
    """Measure rows one after the other, each reported as soon as it is measured."""
    timings_of: dict[str, Timings] = {}
    lines = []
    for row in chosen:
        timings = measure_row(row, quick)
        if row.name == "million" and "ours" in timings:
            timings["10⁵"] = timings_of.get("hundred_thousand", {}).get("ours", float("nan"))
        timings_of[row.name] = timings
        lines.append(format_row(row, timings))
        report(" | ".join(lines[-1]))
    return format_table(lines), timings_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--row", help="measure one row in this process and print it as JSON")
    parser.add_argument("--quick", action="store_true", help="briefly, without the largest sets")
    parser.add_argument("--only", help="only the rows with this in their name")
    options = parser.parse_args()
    if options.row:
        print(json.dumps(run_row(options.row, options.quick)))
        return
    chosen = [row for row in ROWS if (options.only or "") in row.name]
    if options.quick:
        chosen = [row for row in chosen if not row.large]
    before = format_load()
    text, timings_of = run_rows(chosen, options.quick, lambda line: print(line, flush=True))
    text += f"\n\n{format_growth(timings_of)}\n\n## Machine\n\n{describe_machine()}\n"
    text += f"- load averages before: {before}; after: {format_load()}\n"
    print(f"\n{text}")
    if not (options.quick or options.only):
        (HERE / "RESULTS.md").write_text(f"{HEAD}\n{text}")
        print(f"Written: {HERE / 'RESULTS.md'}")


if __name__ == "__main__":
    main()
