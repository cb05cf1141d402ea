"""Every speed target, measured: ours against a floor or a peer, in one process, as a ratio.

    make bench                            all of it, minutes; writes benchmarks/RESULTS.md
    python benchmarks/run.py --quick      without the huge sets, prints only
    python benchmarks/run.py --row NAME   one row, as JSON

Each row runs in a process of its own with the BLAS threads it states, so that its peak memory is
its own. Times are the best of several; machines are noisy, so only ratios are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
GEOMORPH = {"10x68x2": 2.9e-3, "1000x100x3": 0.164, "10000x100x3": 1.64}  # cited, one thread
AUTHORS = {"TPS(7) 10x4004x3": 87.0, "leave-one-out Face TPS(5)": 8.0}  # cited, vectorised kernels


def shapes(n, m, d=3, missing=0.0, seed=0):
    """Smooth deformations of one random configuration."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(-1, 1, (m, d)) * np.linspace(3, 1.5, d)
    points = np.empty((n, m, d))
    for own in points:
        wave = np.sin(base @ rng.normal(size=(d, d)) * 0.8 + rng.normal(size=d))
        own[:] = base + 0.15 * wave + 0.01 * rng.normal(size=(m, d))
    points[rng.random((n, m)) < missing] = np.nan
    return points


def best(work: Callable[[], object], seconds: float = 2.0, least: int = 3) -> float:
    """The best time of several runs, after one to warm up."""
    work()
    times: list[float] = []
    stop = time.perf_counter() + seconds
    while len(times) < least or (time.perf_counter() < stop and len(times) < 500):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def fit(points, warp):
    import defgpa

    return defgpa.DefGPA(warp).fit(points)


def solve_floor(n, m, l):
    """n symmetric products FᵀF and n triangular solves of the same size."""
    from scipy.linalg import blas

    rng = np.random.default_rng(0)
    features = np.asfortranarray(rng.normal(size=(m, l)))
    lower = np.asfortranarray(np.tril(rng.normal(size=(l, l))) * 0.01 + 10 * np.eye(l))

    def work():
        for _ in range(n):
            blas.dsyrk(1.0, features, trans=1)
            blas.dtrsm(1.0, lower, features, side=1, lower=1)

    return best(work)


def vtk_rigid(points):
    """VTK's similarity GPA, its filter alone (the blocks are built beforehand)."""
    import vtk
    from vtk.util.numpy_support import numpy_to_vtk

    n, m, d = points.shape
    whole = points if d == 3 else np.concatenate([points, np.zeros((n, m, 1))], axis=2)
    group = vtk.vtkMultiBlockDataGroupFilter()
    kept = []
    for own in whole:
        data, array = vtk.vtkPolyData(), np.ascontiguousarray(own)
        place = vtk.vtkPoints()
        place.SetData(numpy_to_vtk(array, deep=0))
        data.SetPoints(place)
        group.AddInputData(data)
        kept.append(array)
    group.Update()

    def work():
        aligned = vtk.vtkProcrustesAlignmentFilter()
        aligned.SetInputConnection(group.GetOutputPort())
        aligned.GetLandmarkTransform().SetModeToSimilarity()
        aligned.Update()

    return best(work)


def geomstats_rigid(points):
    """geomstats: projection to pre-shapes, Fréchet mean of the quotient, alignment."""
    os.environ.setdefault("GEOMSTATS_BACKEND", "numpy")
    if not hasattr(np, "trapz"):  # geomstats 2.8 still asks for the name numpy 2.4 dropped
        np.trapz = np.trapezoid  # noqa: NPY201
    from geomstats.geometry.pre_shape import PreShapeSpace
    from geomstats.learning.frechet_mean import FrechetMean

    _, m, d = points.shape
    space = PreShapeSpace(m, d)
    space.equip_with_group_action("rotations")
    space.equip_with_quotient()

    def work():
        preshapes = space.projection(points)
        mean = FrechetMean(space.quotient)
        mean.fit(preshapes)
        space.fiber_bundle.align(preshapes, mean.estimate_)

    return best(work)


def tps7_liver():
    import defgpa

    points = shapes(10, 4004)
    ours = best(lambda: fit(points, defgpa.ThinPlateSpline(7)))
    floor = solve_floor(10, 4004, 343)
    return {"ours": ours, "floor": floor, "authors (cited)": AUTHORS["TPS(7) 10x4004x3"]}


def affine_liver():
    import defgpa

    points = shapes(10, 4004)
    return {"ours": best(lambda: fit(points, defgpa.Affine())), "VTK rigid": vtk_rigid(points)}


def tps5_face():
    import defgpa

    points = shapes(10, 68, 2, missing=0.04)
    ours = best(lambda: fit(points, defgpa.ThinPlateSpline(5)))
    return {"ours": ours, "geomorph rigid (cited)": GEOMORPH["10x68x2"]}


def tps3_thousand():
    import defgpa

    points = shapes(1000, 100)
    ours = best(lambda: fit(points, defgpa.ThinPlateSpline(3)))
    return {"ours": ours, "geomorph rigid (cited)": GEOMORPH["1000x100x3"]}


def tps3_ten_thousand():
    import defgpa

    points = shapes(10_000, 100)
    ours = best(lambda: fit(points, defgpa.ThinPlateSpline(3)))
    return {"ours": ours, "geomorph rigid (cited)": GEOMORPH["10000x100x3"]}


def tps3_missing():
    import defgpa

    whole, holes = shapes(10_000, 100), shapes(10_000, 100, missing=0.2)
    full = best(lambda: fit(whole, defgpa.ThinPlateSpline(3)))
    return {"ours": best(lambda: fit(holes, defgpa.ThinPlateSpline(3))), "full": full}


def _similarity(n, m, d):
    import defgpa

    points = shapes(n, m, d)
    ours = best(lambda: defgpa.EuclideanGPA(scaling=True).fit(points))
    return {"ours": ours, "VTK": vtk_rigid(points), "geomstats": geomstats_rigid(points)}


def similarity_small():
    return _similarity(10, 68, 2)


def similarity_dense():
    return _similarity(10, 4004, 3)


def similarity_thousand():
    return _similarity(1000, 100, 3)


def similarity_ten_thousand():
    return _similarity(10_000, 100, 3)


def _spline_time(points, per_axis):
    import defgpa

    return best(lambda: fit(points, defgpa.ThinPlateSpline(per_axis)), 1.0)


def growth_in_shapes():
    sizes = np.array([500, 1000, 2000, 4000])
    times = [_spline_time(shapes(n, 100), 3) for n in sizes]
    return {"ours": times[-1], "exponent": float(np.polyfit(np.log(sizes), np.log(times), 1)[0])}


def growth_in_landmarks():
    sizes = np.array([4000, 8000, 16000, 32000])
    times = [_spline_time(shapes(10, m), 5) for m in sizes]
    return {"ours": times[-1], "exponent": float(np.polyfit(np.log(sizes), np.log(times), 1)[0])}


def growth_in_features():
    counts, points = np.array([3, 4, 5, 6, 7]), shapes(10, 4004)
    times = [_spline_time(points, int(k)) for k in counts]
    return {
        "ours": times[-1],
        "exponent": float(np.polyfit(np.log(counts**3.0), np.log(times), 1)[0]),
    }


def _once(m):
    import defgpa

    points = shapes(10, m)
    start = time.perf_counter()
    alignment = fit(points, defgpa.ThinPlateSpline(5)).alignment_
    return time.perf_counter() - start, alignment.diagnostics


def hundred_thousand():
    seconds, found = _once(100_000)
    return {"ours": seconds, "products": found.products, "storage": found.storage}


def million():
    seconds, found = _once(1_000_000)
    return {"ours": seconds, "products": found.products, "storage": found.storage}


def evaluation():
    from scipy.interpolate import RBFInterpolator
    from scipy.spatial.distance import cdist

    import defgpa

    rng = np.random.default_rng(0)
    warp = defgpa.DefGPA(defgpa.ThinPlateSpline(5)).fit(shapes(4, 300)).warps_[0]
    points = rng.normal(size=(1_000_000, 3))
    controls = warp.basis.control_points
    peer = RBFInterpolator(controls, warp(controls), kernel="linear", degree=1)
    one_pass = best(lambda: [cdist(points[i : i + 4096], controls) for i in range(0, 10**6, 4096)])
    return {
        "ours": best(lambda: warp(points)),
        "kernel pass": one_pass,
        "scipy": best(lambda: peer(points)),
    }


def leave_one_out():
    import defgpa

    points = shapes(10, 68, 2, missing=0.04)
    estimator = defgpa.DefGPA(defgpa.ThinPlateSpline(5))
    return {
        "ours": best(lambda: defgpa.cross_validate(estimator, points)),
        "one fit": best(lambda: estimator.fit(points)),
        "authors (cited)": AUTHORS["leave-one-out Face TPS(5)"],
    }


def reading():
    import defgpa

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.tps"
        defgpa.write_shapes(defgpa.Shapes(shapes(10_000, 100, 2)), path)
        return {
            "ours": best(lambda: defgpa.read_shapes(path)),
            "disk": best(lambda: path.read_bytes()),
        }


@dataclass(frozen=True)
class Row:
    """One line of the table: what is measured, against what, and what it may cost."""

    work: Callable[[], dict]
    job: str
    target: str
    against: str | None = None  # the entry that ours is divided by; the smallest of several
    limit: float | None = None  # of that ratio, or of the entry itself for exponents
    threads: int = 2
    huge: bool = False


ROWS = [
    Row(tps7_liver, "TPS(7), 10 × 4004 × 3", "≤ 3 × floor n·(dsyrk + dtrsm)", "floor", 3, 1),
    Row(tps7_liver, "TPS(7), 10 × 4004 × 3", "≤ authors' / 60", "authors (cited)", 1 / 60, 1),
    Row(affine_liver, "AFF_r, 10 × 4004 × 3", "≤ 3 × VTK's rigid filter", "VTK rigid", 3),
    Row(tps5_face, "TPS(5), 10 × 68 × 2", "≤ geomorph's rigid fit", "geomorph rigid (cited)", 1),
    Row(tps3_thousand, "TPS(3), 1000 × 100 × 3", "≤ geomorph rigid", "geomorph rigid (cited)", 1),
    Row(
        tps3_ten_thousand, "TPS(3), 10,000 × 100 × 3", "≤ geomorph rigid",
        "geomorph rigid (cited)", 1,
    ),
    Row(tps3_missing, "the same, 20 % missing", "≤ 1.5 × full", "full", 1.5),
    Row(similarity_small, "EuclideanGPA(scaling), 10 × 68 × 2", "≤ 1.5 × fastest peer",
        "VTK|geomstats", 1.5),
    Row(similarity_dense, "EuclideanGPA(scaling), 10 × 4004 × 3", "≤ 1.5 × fastest peer",
        "VTK|geomstats", 1.5),
    Row(similarity_thousand, "EuclideanGPA(scaling), 1000 × 100 × 3", "≤ 1.5 × fastest peer",
        "VTK|geomstats", 1.5),
    Row(similarity_ten_thousand, "EuclideanGPA(scaling), 10,000 × 100 × 3", "≤ 1.5 × fastest peer",
        "VTK|geomstats", 1.5),
    Row(growth_in_shapes, "growth of time with n (500 … 4000)", "exponent ≤ 1.1", "exponent", 1.1),
    Row(growth_in_landmarks, "growth of time with m (4,000 … 32,000)", "exponent ≤ 1.1",
        "exponent", 1.1),
    Row(growth_in_features, "growth of time with l (27 … 343)", "stated", "exponent"),
    Row(evaluation, "warp(10⁶ points), 125 centres", "≤ scipy's", "scipy", 1, 1),
    Row(evaluation, "warp(10⁶ points), 125 centres", "≤ scipy's / 1.7", "scipy", 1 / 1.7),
    Row(leave_one_out, "leave-one-out, 10 × 68 × 2, TPS(5)", "≤ 25 fits", "one fit", 25),
    Row(leave_one_out, "leave-one-out, 10 × 68 × 2, TPS(5)", "≤ 1/100 of the authors'",
        "authors (cited)", 1 / 100),
    Row(reading, "read 10,000 × 100 TPS", "a few seconds; floor: the disk", "disk", None, 1),
    Row(hundred_thousand, "TPS(5), 10 × 10⁵ × 3", "–", huge=True),
    Row(million, "TPS(5), 10 × 10⁶ × 3", "peak ≤ 6 GiB; ≤ 12 × the time of 10⁵", huge=True),
]  # fmt: skip


def measured(row: Row) -> dict:
    """The row in a process of its own."""
    threads = str(row.threads)
    limits = {f"{lib}_NUM_THREADS": threads for lib in ("OPENBLAS", "OMP", "MKL")}
    said = subprocess.run(
        [sys.executable, __file__, "--row", row.work.__name__],
        env={**os.environ, **limits},
        capture_output=True,
        text=True,
        check=False,
    )
    if said.returncode:
        return {"failure": said.stderr.strip().splitlines()[-1]}
    return json.loads(said.stdout.splitlines()[-1])


def cells(row: Row, found: dict, before: dict[str, dict]) -> list[str]:
    """The row as text: job, threads, time, peak, compared with, ratio, target, verdict."""
    if "failure" in found:
        return [row.job, str(row.threads), "–", "–", found["failure"], "–", row.target, "failed"]
    ours, peak = f"{found['ours']:.4g} s", f"{found['peak'] / 2**30:.2f} GiB"
    if row.work is million:
        ratio = found["ours"] / before["hundred_thousand"]["ours"]
        met = ratio <= 12 and found["peak"] <= 6 * 2**30
        text = [f"10⁵: {before['hundred_thousand']['ours']:.4g} s", f"{ratio:.3g}"]
        return [
            row.job,
            str(row.threads),
            ours,
            peak,
            *text,
            row.target,
            "met" if met else "missed",
        ]
    if row.against is None:
        return [row.job, str(row.threads), ours, peak, "–", "–", row.target, "–"]
    if row.against == "exponent":
        ratio, text = found["exponent"], "fitted exponent"
    else:
        name = min(row.against.split("|"), key=lambda key: found[key])
        ratio, text = found["ours"] / found[name], f"{name}: {found[name]:.4g} s"
    verdict = "–" if row.limit is None else "met" if ratio <= row.limit else "missed"
    return [row.job, str(row.threads), ours, peak, text, f"{ratio:.3g}", row.target, verdict]


def table(rows: list[list[str]]) -> str:
    head = ["job", "BLAS threads", "ours", "peak", "against", "ratio", "target", ""]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def versions() -> str:
    import scipy
    from threadpoolctl import threadpool_info

    import defgpa

    blas = next((x for x in threadpool_info() if x["user_api"] == "blas"), {})
    model = "unknown"
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((s.split(":")[1].strip() for s in lines if s.startswith("model name")), model)
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    return (
        f"defgpa {defgpa.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"Python {platform.python_version()}, {blas.get('internal_api', 'BLAS')} "
        f"{blas.get('version', '')}; {os.cpu_count()} cores of {model}; load before: {load}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--row", help="measure one row in this process and print JSON")
    parser.add_argument("--quick", action="store_true", help="without the huge sets; print only")
    given = parser.parse_args()
    if given.row:
        found = globals()[given.row]()
        found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(found))
        return
    about, known, rows = versions(), {}, []
    for row in ROWS:
        if given.quick and row.huge:
            continue
        key = f"{row.work.__name__}/{row.threads}"
        known[key] = known.get(key) or measured(row)
        known[row.work.__name__] = known[key]
        rows.append(cells(row, known[key], known))
        print(" | ".join(rows[-1]), flush=True)
    if not given.quick:
        text = (HERE / "RESULTS_head.md").read_text() + f"\n{about}\n\n{table(rows)}\n"
        (HERE / "RESULTS.md").write_text(text)
        print(f"Written: {HERE / 'RESULTS.md'}")


if __name__ == "__main__":
    main()
