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
    geomstats_similarity,
    kernel_pass,
    solve_floor,
    time_base_r,
    vtk_similarity,
)
from race import once, peak_bytes, prepared, race


def points(n: int, m: int, d: int = 3, missing: float = 0.0) -> np.ndarray:
    return np.array(smooth_family(n, m, d, missing=missing).shapes.points)


def fit(estimator, data):
    return lambda: estimator.fit(data)


def solve(estimator, data):
    """The alignment alone, as the peers make it: ``fit`` also looks at what is wrong with it."""
    return lambda: estimator.solve(data)[0]


def tps(per_axis: int) -> DefGPA:
    return DefGPA(ThinPlateSpline(points_per_axis=per_axis))


def tps7_dense() -> dict:
    data = np.array(make_livers(10, 4004).shapes.points)
    found = race(ours=fit(tps(7), data), floor=solve_floor(10, 4004, 343))
    return found | {"authors (cited)": CITED["authors' TPS(7)"]}


def _tps7_smoothed(smoothing: float) -> dict:
    data = np.array(make_livers(10, 4004).shapes.points)
    estimator = DefGPA(ThinPlateSpline(points_per_axis=7, smoothing=smoothing))
    found = race(ours=fit(estimator, data), floor=solve_floor(10, 4004, 343))
    return found | {"products": estimator.alignment_.diagnostics.n_products}


def tps7_smoothing_1e0() -> dict:
    return _tps7_smoothed(1.0)


def tps7_smoothing_1e1() -> dict:
    return _tps7_smoothed(1e-1)


def tps7_smoothing_1e2() -> dict:
    return _tps7_smoothed(1e-2)


def tps7_smoothing_1e4() -> dict:
    return _tps7_smoothed(1e-4)


def tps7_smoothing_1e5() -> dict:
    return _tps7_smoothed(1e-5)


def tps7_smoothing_1e6() -> dict:
    return _tps7_smoothed(1e-6)


def affine_dense() -> dict:
    data = np.array(make_livers(10, 4004).shapes.points)
    found = race(
        ours=solve(DefGPA(Affine()), data),
        floor=solve_floor(10, 4004, 4),
        VTK=vtk_similarity(data),
        fit=fit(DefGPA(Affine()), data),
    )
    return found | {"authors (cited)": CITED["authors' AFF_r"]}


def tps5_face() -> dict:
    data = np.array(make_faces().shapes.points)
    found = race(ours=fit(tps(5), data), floor=solve_floor(10, 68, 25))
    return found | {"geomorph (cited)": CITED["geomorph 10 × 68 × 2"]}


def tps3_thousand() -> dict:
    data = points(1000, 100)
    found = race(ours=fit(tps(3), data), floor=solve_floor(1000, 100, 27))
    return found | {"geomorph (cited)": CITED["geomorph 1000 × 100 × 3"]}


def tps3_ten_thousand() -> dict:
    data = points(10_000, 100)
    found = race(ours=fit(tps(3), data), floor=solve_floor(10_000, 100, 27))
    return found | {"geomorph (cited)": CITED["geomorph 10,000 × 100 × 3"]}


def _missing(n: int) -> dict:
    whole, holes = points(n, 100), points(n, 100, missing=0.2)
    return race(ours=fit(tps(3), holes), full=fit(tps(3), whole))


def missing_thousand() -> dict:
    return _missing(1000)


def missing_ten_thousand() -> dict:
    return _missing(10_000)


def _similarity(n: int, m: int, d: int) -> dict:
    data = points(n, m, d)
    return race(
        ours=solve(EuclideanGPA(scaling=True), data),
        fit=fit(EuclideanGPA(scaling=True), data),
        VTK=vtk_similarity(data),
        geomstats=geomstats_similarity(data),
    )


def similarity_small() -> dict:
    cited = {name: CITED[f"{name} 10 × 68 × 2"] for name in ("geomorph", "ktch")}
    return _similarity(10, 68, 2) | {f"{name} (cited)": taken for name, taken in cited.items()}


def similarity_dense() -> dict:
    cited = {name: CITED[f"{name} 10 × 4004 × 3"] for name in ("geomorph", "ktch")}
    return _similarity(10, 4004, 3) | {f"{name} (cited)": taken for name, taken in cited.items()}


def similarity_thousand() -> dict:
    cited = {name: CITED[f"{name} 1000 × 100 × 3"] for name in ("geomorph", "ktch")}
    return _similarity(1000, 100, 3) | {f"{name} (cited)": taken for name, taken in cited.items()}


def similarity_ten_thousand() -> dict:
    return _similarity(10_000, 100, 3) | {"geomorph (cited)": CITED["geomorph 10,000 × 100 × 3"]}


def _elastic(data: np.ndarray, per_axis: int) -> dict:
    warp = ThinPlateSpline(points_per_axis=per_axis)
    return race(ours=fit(ElasticGPA(warp), data), DefGPA=fit(DefGPA(warp), data))


def elastic_face() -> dict:
    return _elastic(np.array(make_faces().shapes.points), 5)


def elastic_thousand() -> dict:
    return _elastic(points(1000, 100), 3)


def elastic_dense() -> dict:
    return _elastic(np.array(make_livers(10, 4004).shapes.points), 5)


def _growth(sizes: list[int], ways: list) -> dict:
    """The exponent of time in size: the slope of the line through their logarithms."""
    found = race(**{str(size): way for size, way in zip(sizes, ways, strict=True)})
    taken = [found[str(size)] for size in sizes]
    slope = float(np.polyfit(np.log(sizes), np.log(taken), 1)[0])
    times = {f"{size:,}": time for size, time in zip(sizes, taken, strict=True)}
    return {"ours": taken[-1], "peak": peak_bytes(), "exponent": slope, "times": times}


def growth_in_shapes() -> dict:
    sizes = [500, 1000, 2000, 4000]
    return _growth(sizes, [fit(tps(3), points(n, 100)) for n in sizes])


def growth_in_few_landmarks() -> dict:
    sizes = [250, 500, 1000, 2000, 4000]
    return _growth(sizes, [fit(tps(5), points(10, m)) for m in sizes])


def growth_in_landmarks() -> dict:
    sizes = [4000, 8000, 16000, 32000]
    return _growth(sizes, [fit(tps(5), points(10, m)) for m in sizes])


def growth_in_features() -> dict:
    data, per_axis = points(10, 4004), [3, 4, 5, 6, 7]
    return _growth([k**3 for k in per_axis], [fit(tps(k), data) for k in per_axis])


def hundred_thousand() -> dict:
    return _huge(100_000)


def million() -> dict:
    return _huge(1_000_000)


def _huge(m: int) -> dict:
    data, estimator = points(10, m), tps(5)
    found = once(fit(estimator, data))
    facts = estimator.alignment_.diagnostics
    return found | {"storage": facts.storage, "products": facts.n_products}


def evaluation() -> dict:
    from scipy.interpolate import RBFInterpolator

    warp = tps(5).fit(points(4, 300)).warps_[0]
    assert isinstance(warp.basis, ThinPlateBasis)
    controls = warp.basis.control_points
    places = np.random.default_rng(0).normal(size=(1_000_000, 3))
    peer = RBFInterpolator(controls, warp(controls), kernel="linear", degree=1)
    return race(
        ours=lambda: warp(places),
        floor=kernel_pass(places, controls),
        scipy=lambda: peer(places),
    )


def leave_one_out() -> dict:
    data, estimator = make_faces().shapes, tps(5)
    ways = {
        "ours": lambda: defgpa.cross_validate(estimator, data),
        "one fit": fit(estimator, data),
    }
    found = race(**ways)
    return found | {"authors (cited)": CITED["authors' leave-one-out"]}


def image() -> dict:
    from bench_images import SIZE, image_and_warp, ours, theirs
    from defgpa.images import Frame

    picture, warp = image_and_warp()
    *_, mine = next(iter(ours(picture, warp, Frame((0.0, 0.0), SIZE))))

    @prepared
    def peer():
        rows, columns = np.indices(SIZE)
        pixels = np.column_stack([columns.ravel(), rows.ravel()])
        return list(next(iter(theirs(picture, warp, pixels))))[-1]

    return race(ours=mine, skimage=peer())


def curved_beaks(n: int = 15, m: int = 25) -> tuple[np.ndarray, list[int]]:
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
    beaks, curve = curved_beaks()
    found = race(ours=lambda: defgpa.slide(beaks, [curve]))
    return found | {"geomorph (cited)": CITED["geomorph slide, bending"]}


def slide_procrustes() -> dict:
    beaks, curve = curved_beaks()
    found = race(ours=lambda: defgpa.slide(beaks, [curve], by="procrustes"))
    return found | {"geomorph (cited)": CITED["geomorph slide, Procrustes"]}


def _complete(n: int, m: int) -> dict:
    data, rng = points(n, m, 2), np.random.default_rng(0)
    for i in rng.choice(n, n // 5, replace=False):
        data[i, rng.choice(m, 2, replace=False)] = np.nan
    found = race(
        ours=lambda: defgpa.complete(data, method="spline"), chosen=lambda: defgpa.complete(data)
    )
    return found | {"geomorph (cited)": CITED[f"geomorph estimate.missing {n} × {m} × 2"]}


def complete_heads() -> dict:
    return _complete(40, 12)


def complete_larvae() -> dict:
    return _complete(114, 64)


def permutations_dense() -> dict:
    """The test alone, of superimposed coordinates, as procD.lm takes them."""
    statistics, data = defgpa.statistics, points(300, 1000)
    coordinates = statistics.build_sample(statistics.tangent_space(data), superimpose=False)
    groups = {"a": np.repeat(list("xyz"), 100), "b": np.tile(list("uv"), 150)}
    found = race(
        ours=lambda: statistics.procrustes_anova("shape ~ a * b", coordinates, groups, 999),
        superimposed=lambda: statistics.procrustes_anova("shape ~ a * b", data, groups, 999),
    )
    with_superimposition = found.pop("superimposed")
    base_r = time_base_r(300, 1000, 999, ["anova"])[1]["anova"]
    return found | {"base R": base_r, "with superimposition": with_superimposition}


def covariation_dense() -> dict:
    """Two-block PLS, and nothing but the decompositions that R makes for it."""
    data, rng = points(300, 1000), np.random.default_rng(0)
    crosses = rng.normal(size=(20, 299, 299))
    halves = ["front"] * 500 + ["back"] * 500
    found = race(
        ours=lambda: defgpa.statistics.two_block_pls(data, partition=halves),
        twenty=lambda: [np.linalg.svd(cross, full_matrices=False) for cross in crosses],
    )
    return found | {"decompositions alone": found.pop("twenty") * 999 / 20}


def _reading(name: str, data: np.ndarray) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        defgpa.write_shapes(Shapes(data), path)
        return race(ours=lambda: defgpa.read_shapes(path), floor=path.read_bytes)


def reading_text() -> dict:
    return _reading("many.tps", points(10_000, 100, 2))


def reading_arrays() -> dict:
    return _reading("dense.npz", points(10, 100_000))
