"""What is measured: one function a row, each against its floor and its peers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import defgpa
from defgpa import Affine, DefGPA, ElasticGPA, EuclideanGPA, Shapes, ThinPlateSpline
from defgpa.datasets import make_faces, make_livers, smooth_family
from defgpa.warps.thin_plate import ThinPlateBasis
from peers import (
    CITED,
    make_geomstats_similarity,
    make_kernel_pass,
    make_solve_floor,
    make_vtk_similarity,
    time_base_r,
)
from race import delay, get_peak_bytes, race, run_once


def make_points(n: int, m: int, d: int = 3, missing: float = 0.0) -> np.ndarray:
    return np.array(smooth_family(n, m, d, missing=missing).shapes.points)


def prepare_fit(estimator, data):
    return lambda: estimator.fit(data)


def prepare_solve(estimator, data):
    """Return the alignment alone, as the peers make it: ``fit`` also looks for mistakes."""
    return lambda: estimator.solve(data)[0]


def make_gpa(per_axis: int) -> DefGPA:
    return DefGPA(ThinPlateSpline(points_per_axis=per_axis))


def tps7_dense() -> dict:
    data = np.array(make_livers(10, 4004).shapes.points)
    timings = race(ours=prepare_fit(make_gpa(7), data), floor=make_solve_floor(10, 4004, 343))
    return timings | {"authors (cited)": CITED["authors' TPS(7)"]}


def _race_smoothing(smoothing: float) -> dict:
    data = np.array(make_livers(10, 4004).shapes.points)
    estimator = DefGPA(ThinPlateSpline(points_per_axis=7, smoothing=smoothing))
    timings = race(ours=prepare_fit(estimator, data), floor=make_solve_floor(10, 4004, 343))
    return timings | {"products": estimator.alignment_.diagnostics.n_products}


def tps7_smoothing_1e0() -> dict:
    return _race_smoothing(1.0)


def tps7_smoothing_1e1() -> dict:
    return _race_smoothing(1e-1)


def tps7_smoothing_1e2() -> dict:
    return _race_smoothing(1e-2)


def tps7_smoothing_1e4() -> dict:
    return _race_smoothing(1e-4)


def tps7_smoothing_1e5() -> dict:
    return _race_smoothing(1e-5)


def tps7_smoothing_1e6() -> dict:
    return _race_smoothing(1e-6)


def affine_dense() -> dict:
    data = np.array(make_livers(10, 4004).shapes.points)
    timings = race(
        ours=prepare_solve(DefGPA(Affine()), data),
        floor=make_solve_floor(10, 4004, 4),
        VTK=make_vtk_similarity(data),
        fit=prepare_fit(DefGPA(Affine()), data),
    )
    return timings | {"authors (cited)": CITED["authors' AFF_r"]}


def tps5_face() -> dict:
    data = np.array(make_faces().shapes.points)
    timings = race(ours=prepare_fit(make_gpa(5), data), floor=make_solve_floor(10, 68, 25))
    return timings | {"geomorph (cited)": CITED["geomorph 10 × 68 × 2"]}


def tps3_thousand() -> dict:
    data = make_points(1000, 100)
    timings = race(ours=prepare_fit(make_gpa(3), data), floor=make_solve_floor(1000, 100, 27))
    return timings | {"geomorph (cited)": CITED["geomorph 1000 × 100 × 3"]}


def tps3_ten_thousand() -> dict:
    data = make_points(10_000, 100)
    timings = race(ours=prepare_fit(make_gpa(3), data), floor=make_solve_floor(10_000, 100, 27))
    return timings | {"geomorph (cited)": CITED["geomorph 10,000 × 100 × 3"]}


def _race_missing(n: int) -> dict:
    complete, holes = make_points(n, 100), make_points(n, 100, missing=0.2)
    return race(
        ours=prepare_fit(make_gpa(3), holes),
        full=prepare_fit(make_gpa(3), complete),
    )


def missing_thousand() -> dict:
    return _race_missing(1000)


def missing_ten_thousand() -> dict:
    return _race_missing(10_000)


def _race_similarity(n: int, m: int, d: int) -> dict:
    data = make_points(n, m, d)
    return race(
        ours=prepare_solve(EuclideanGPA(scaling=True), data),
        fit=prepare_fit(EuclideanGPA(scaling=True), data),
        VTK=make_vtk_similarity(data),
        geomstats=make_geomstats_similarity(data),
    )


def similarity_small() -> dict:
    cited = {name: CITED[f"{name} 10 × 68 × 2"] for name in ("geomorph", "ktch")}
    return _race_similarity(10, 68, 2) | {
        f"{name} (cited)": seconds for name, seconds in cited.items()
    }


def similarity_dense() -> dict:
    cited = {name: CITED[f"{name} 10 × 4004 × 3"] for name in ("geomorph", "ktch")}
    return _race_similarity(10, 4004, 3) | {
        f"{name} (cited)": seconds for name, seconds in cited.items()
    }


def similarity_thousand() -> dict:
    cited = {name: CITED[f"{name} 1000 × 100 × 3"] for name in ("geomorph", "ktch")}
    return _race_similarity(1000, 100, 3) | {
        f"{name} (cited)": seconds for name, seconds in cited.items()
    }


def similarity_ten_thousand() -> dict:
    return _race_similarity(10_000, 100, 3) | {
        "geomorph (cited)": CITED["geomorph 10,000 × 100 × 3"]
    }


def _race_elastic(data: np.ndarray, per_axis: int) -> dict:
    warp = ThinPlateSpline(points_per_axis=per_axis)
    return race(ours=prepare_fit(ElasticGPA(warp), data), DefGPA=prepare_fit(DefGPA(warp), data))


def elastic_face() -> dict:
    return _race_elastic(np.array(make_faces().shapes.points), 5)


def elastic_thousand() -> dict:
    return _race_elastic(make_points(1000, 100), 3)


def elastic_dense() -> dict:
    return _race_elastic(np.array(make_livers(10, 4004).shapes.points), 5)


def _measure_growth(sizes: list[int], tasks: list) -> dict:
    """Measure the exponent of time in size: the slope of the line through their logarithms."""
    timings = race(**{str(size): task for size, task in zip(sizes, tasks, strict=True)})
    seconds = [timings[str(size)] for size in sizes]
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    times = {f"{size:,}": time for size, time in zip(sizes, seconds, strict=True)}
    return {"ours": seconds[-1], "peak": get_peak_bytes(), "exponent": slope, "times": times}


def growth_in_shapes() -> dict:
    sizes = [500, 1000, 2000, 4000]
    return _measure_growth(sizes, [prepare_fit(make_gpa(3), make_points(n, 100)) for n in sizes])


def growth_in_few_landmarks() -> dict:
    sizes = [250, 500, 1000, 2000, 4000]
    return _measure_growth(sizes, [prepare_fit(make_gpa(5), make_points(10, m)) for m in sizes])


def growth_in_landmarks() -> dict:
    sizes = [4000, 8000, 16000, 32000]
    return _measure_growth(sizes, [prepare_fit(make_gpa(5), make_points(10, m)) for m in sizes])


def growth_in_features() -> dict:
    data, per_axis = make_points(10, 4004), [3, 4, 5, 6, 7]
    return _measure_growth(
        [k**3 for k in per_axis], [prepare_fit(make_gpa(k), data) for k in per_axis]
    )


def hundred_thousand() -> dict:
    return _measure_huge(100_000)


def million() -> dict:
    return _measure_huge(1_000_000)


def _measure_huge(m: int) -> dict:
    data, estimator = make_points(10, m), make_gpa(5)
    timings = run_once(prepare_fit(estimator, data))
    facts = estimator.alignment_.diagnostics
    return timings | {"storage": facts.storage, "products": facts.n_products}


def evaluation() -> dict:
    from scipy.interpolate import RBFInterpolator

    warp = make_gpa(5).fit(make_points(4, 300)).warps_[0]
    assert isinstance(warp.basis, ThinPlateBasis)
    controls = warp.basis.control_points
    places = np.random.default_rng(0).normal(size=(1_000_000, 3))
    peer = RBFInterpolator(controls, warp(controls), kernel="linear", degree=1)
    return race(
        ours=lambda: warp(places),
        floor=make_kernel_pass(places, controls),
        scipy=lambda: peer(places),
    )


def leave_one_out() -> dict:
    data, estimator = make_faces().shapes, make_gpa(5)
    tasks = {
        "ours": lambda: defgpa.cross_validate(estimator, data),
        "one fit": prepare_fit(estimator, data),
    }
    timings = race(**tasks)
    return timings | {"authors (cited)": CITED["authors' leave-one-out"]}


def image() -> dict:
    from bench_images import SIZE, image_and_warp, ours, theirs
    from defgpa.images import Frame

    picture, warp = image_and_warp()
    *_, our_work = next(iter(ours(picture, warp, Frame((0.0, 0.0), SIZE))))

    @delay
    def peer():
        rows, columns = np.indices(SIZE)
        pixels = np.column_stack([columns.ravel(), rows.ravel()])
        return list(next(iter(theirs(picture, warp, pixels))))[-1]

    return race(ours=our_work, skimage=peer())


def make_beaks(n: int = 15, m: int = 25) -> tuple[np.ndarray, list[int]]:
    """Return outlines (n, m, 2) of semilandmarks with three landmarks, and the curve."""
    rng = np.random.default_rng(0)
    places = np.linspace(0, 1, m - 3)
    beaks = np.empty((n, m, 2))
    for beak in beaks:
        at = np.sort(np.concatenate([[0, 1], places[1:-1] + 0.01 * rng.normal(size=m - 5)]))
        arch = np.sin(np.pi * at) * (0.3 + 0.1 * rng.normal())
        beak[:-3] = np.column_stack([4 * at, arch]) + 0.01 * rng.normal(size=(m - 3, 2))
        beak[-3:] = [[0, -1], [2, -0.8], [4, -1]] + 0.03 * rng.normal(size=(3, 2))
    return beaks, list(range(m - 3))


def slide_bending() -> dict:
    beaks, curve = make_beaks()
    timings = race(ours=lambda: defgpa.slide(beaks, [curve]))
    return timings | {"geomorph (cited)": CITED["geomorph slide, bending"]}


def slide_procrustes() -> dict:
    beaks, curve = make_beaks()
    timings = race(ours=lambda: defgpa.slide(beaks, [curve], by="procrustes"))
    return timings | {"geomorph (cited)": CITED["geomorph slide, Procrustes"]}


def _race_completion(n: int, m: int) -> dict:
    data, rng = make_points(n, m, 2), np.random.default_rng(0)
    for i in rng.choice(n, n // 5, replace=False):
        data[i, rng.choice(m, 2, replace=False)] = np.nan
    timings = race(
        ours=lambda: defgpa.complete(data, method="spline"), chosen=lambda: defgpa.complete(data)
    )
    return timings | {"geomorph (cited)": CITED[f"geomorph estimate.missing {n} × {m} × 2"]}


def complete_heads() -> dict:
    return _race_completion(40, 12)


def complete_larvae() -> dict:
    return _race_completion(114, 64)


def permutations_dense() -> dict:
    """The test alone, of superimposed coordinates, as procD.lm takes them."""
    statistics, data = defgpa.statistics, make_points(300, 1000)
    coordinates = statistics.build_sample(statistics.tangent_space(data), superimpose=False)
    groups = {"a": np.repeat(list("xyz"), 100), "b": np.tile(list("uv"), 150)}
    timings = race(
        ours=lambda: statistics.procrustes_anova("shape ~ a * b", coordinates, groups, 999),
        superimposed=lambda: statistics.procrustes_anova("shape ~ a * b", data, groups, 999),
    )
    with_superimposition = timings.pop("superimposed")
    base_r = time_base_r(300, 1000, 999, ["anova"])[1]["anova"]
    return timings | {"base R": base_r, "with superimposition": with_superimposition}


def covariation_dense() -> dict:
    """Two-block PLS, and nothing but the decompositions that R makes for it."""
    data, rng = make_points(300, 1000), np.random.default_rng(0)
    crosses = rng.normal(size=(20, 299, 299))
    halves = ["front"] * 500 + ["back"] * 500
    timings = race(
        ours=lambda: defgpa.statistics.two_block_pls(data, partition=halves),
        twenty=lambda: [np.linalg.svd(cross, full_matrices=False) for cross in crosses],
    )
    return timings | {"decompositions alone": timings.pop("twenty") * 999 / 20}


def _race_reading(name: str, data: np.ndarray) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        defgpa.write_shapes(Shapes(data), path)
        return race(ours=lambda: defgpa.read_shapes(path), floor=path.read_bytes)


def reading_text() -> dict:
    return _race_reading("many.tps", make_points(10_000, 100, 2))


def reading_arrays() -> dict:
    return _race_reading("dense.npz", make_points(10, 100_000))
