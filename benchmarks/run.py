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

Found = dict[str, Any]


@dataclass(frozen=True)
class AtMost:
    """Ours may take at most ``limit`` times the fastest of some others (names parted by |)."""

    limit: float
    against: str
    text: str

    def measured(self, found: Found) -> float:
        return found["ours"] / min(found[name] for name in self.against.split("|"))

    def met(self, found: Found) -> bool:
        return self.measured(found) <= self.limit


@dataclass(frozen=True)
class AtLeast(AtMost):
    """Ours must be at least ``limit`` times as fast."""

    def measured(self, found: Found) -> float:
        return 1.0 / super().measured(found)

    def met(self, found: Found) -> bool:
        return self.measured(found) >= self.limit


@dataclass(frozen=True)
class Exponent:
    """Time may grow at most like this power of the size."""

    limit: float = 1.1

    @property
    def text(self) -> str:
        return f"exponent ≤ {self.limit}"

    def measured(self, found: Found) -> float:
        return found["exponent"]

    def met(self, found: Found) -> bool:
        return found["exponent"] <= self.limit


@dataclass(frozen=True)
class Peak:
    """Memory of the whole process."""

    limit: float

    @property
    def text(self) -> str:
        return f"peak ≤ {self.limit:g} GiB"

    def measured(self, found: Found) -> float:
        return found["peak"] / GIB

    def met(self, found: Found) -> bool:
        return self.measured(found) <= self.limit


@dataclass(frozen=True)
class Within:
    """Seconds, for what is only ever run once."""

    limit: float

    @property
    def text(self) -> str:
        return f"≤ {self.limit:g} s"

    def measured(self, found: Found) -> float:
        return found["ours"]

    def met(self, found: Found) -> bool:
        return self.measured(found) <= self.limit


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


def measured(row: Row, quick: bool) -> Found:
    """The row, in a process of its own."""
    limits = {f"{lib}_NUM_THREADS": str(row.threads) for lib in ("OPENBLAS", "OMP", "MKL")}
    command = [sys.executable, str(HERE / "run.py"), "--row", row.name, *["--quick"] * quick]
    said = subprocess.run(
        command, env=os.environ | limits, capture_output=True, text=True, check=False
    )
    if said.returncode:
        return {"failure": (said.stderr.strip().splitlines() or ["failed"])[-1]}
    return json.loads(said.stdout.splitlines()[-1])


def here(name: str, quick: bool) -> Found:
    """The row, in this process."""
    import race
    import rows

    if quick:
        race.SECONDS, race.LEAST = 0.4, 2
    return getattr(rows, name)()


def cells(row: Row, found: Found) -> list[str]:
    """The row as text."""
    if "failure" in found:
        return [row.job, str(row.threads), *["–"] * 4, found["failure"], "–", "failed"]
    targets = row.targets
    return [
        row.job,
        str(row.threads),
        as_time(found["ours"]),
        f"{found['peak'] / GIB:.2f} GiB",
        f"{found['ours'] / found['floor']:.3g}" if "floor" in found else "–",
        others(found) or "–",
        "; ".join(target.text for target in targets) or "–",
        "; ".join(f"{target.measured(found):.3g}" for target in targets) or stated(found),
        "; ".join("met" if target.met(found) else "missed" for target in targets) or "–",
    ]


def others(found: Found) -> str:
    """Ours over each peer's time."""
    facts = {"ours", "peak", "floor", "exponent", "times", "storage", "products"}
    return ", ".join(
        f"{found['ours'] / taken:.3g} {name}" for name, taken in found.items() if name not in facts
    )


def stated(found: Found) -> str:
    return f"exponent {found['exponent']:.2f}" if "exponent" in found else "–"


def as_time(taken: float) -> str:
    return f"{1e3 * taken:.3g} ms" if taken < 1.0 else f"{taken:.3g} s"


TITLES = (
    "job", "threads", "time", "peak", "ratio to floor", "ratio to peers", "target", "measured", ""
)  # fmt: skip


def table(lines: list[list[str]]) -> str:
    rows = [list(TITLES), ["---"] * len(TITLES), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def growth(known: dict[str, Found]) -> str:
    """The times behind every exponent."""
    lines = ["## Growth", "", "| job | exponent | times |", "| --- | --- | --- |"]
    for row in ROWS:
        found = known.get(row.name, {})
        if "times" in found:
            times = ", ".join(f"{size}: {as_time(t)}" for size, t in found["times"].items())
            lines.append(f"| {row.job} | {found['exponent']:.2f} | {times} |")
    return "\n".join(lines)


def machine() -> str:
    """What it runs on, one fact a line."""
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
            f"- {os.cpu_count()} cores of {processor()}, {memory:.0f} GiB",
            f"- {platform.system()} {platform.machine()}, Python {platform.python_version()}",
            f"- {', '.join(f'{name} {version(name)}' for name in names)}",
            f"- BLAS: {', '.join(blas)}; threads as stated in each row",
        ]
    )


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "an unknown processor")


def version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def load() -> str:
    return ", ".join(f"{average:.1f}" for average in os.getloadavg())


def run(chosen: list[Row], quick: bool, say: Callable[[str], None]) -> tuple[str, dict[str, Found]]:
    """All rows, one after the other, each said as soon as it is known."""
    known: dict[str, Found] = {}
    lines = []
    for row in chosen:
        found = measured(row, quick)
        if row.name == "million" and "ours" in found:
            found["10⁵"] = known.get("hundred_thousand", {}).get("ours", float("nan"))
        known[row.name] = found
        lines.append(cells(row, found))
        say(" | ".join(lines[-1]))
    return table(lines), known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--row", help="measure one row in this process and print it as JSON")
    parser.add_argument("--quick", action="store_true", help="briefly, without the largest sets")
    parser.add_argument("--only", help="only the rows with this in their name")
    given = parser.parse_args()
    if given.row:
        print(json.dumps(here(given.row, given.quick)))
        return
    chosen = [row for row in ROWS if (given.only or "") in row.name]
    if given.quick:
        chosen = [row for row in chosen if not row.large]
    before = load()
    text, known = run(chosen, given.quick, lambda line: print(line, flush=True))
    text += f"\n\n{growth(known)}\n\n## Machine\n\n{machine()}\n"
    text += f"- load averages before: {before}; after: {load()}\n"
    print(f"\n{text}")
    if not (given.quick or given.only):
        (HERE / "RESULTS.md").write_text(f"{HEAD}\n{text}")
        print(f"Written: {HERE / 'RESULTS.md'}")


if __name__ == "__main__":
    main()
