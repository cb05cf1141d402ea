"""What the tests share: named tolerances, generic data, and where the real sets lie."""

from __future__ import annotations

import json
import logging
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import eigh, lstsq

from defgpa import Affine, DefgpaWarning, ThinPlateSpline
from defgpa.geometry import measure_geometry
from defgpa.model_selection import SmoothingPath
from defgpa.solvers.cost import build_cost

EXACT = {"rtol": 1e-9, "atol": 1e-9}
PARITY = {"rtol": 1e-6, "atol": 1e-6}
LIMIT = {"rtol": 1e-4, "atol": 1e-4}

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


def shared_data(name: str) -> Path:
    """The path of a real set beside the project, or a visible skip."""
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"real data set {name} is not beside the project")
    return path


def shared_points(name: str) -> np.ndarray:
    """The (n, m, d) points of a real set beside the project, or a visible skip."""
    with np.load(shared_data(f"{name}.npz"), allow_pickle=False) as archive:
        return archive["points"]


def geomorph_numbers(title: str) -> str:
    """What geomorph 4.1.0 printed under a title of tests/oracle_geomorph/numbers.txt."""
    text = (ROOT / "tests" / "oracle_geomorph" / "numbers.txt").read_text()
    return text.split(f"## {title}", 1)[1].split("\n##", 1)[0]


def smooth_family(seed=0, n=6, m=40, d=2, bend=0.15, noise=0.01, missing=0.0):
    """n smooth deformations of one random configuration, moved and turned; NaN where missing."""
    return _smooth_family(seed, n, m, d, bend, noise, missing).copy()


@lru_cache(maxsize=64)  # most tests take one of a few
def _smooth_family(seed, n, m, d, bend, noise, missing):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(m, d)) * np.linspace(2.0, 1.0, d)
    shapes = np.empty((n, m, d))
    for i in range(n):
        frequency = rng.normal(size=(d, d)) * 0.5
        bent = base + bend * np.sin(base @ frequency + rng.normal(size=d))
        turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
        turn[:, 0] *= np.sign(np.linalg.det(turn))
        shapes[i] = (bent + noise * rng.normal(size=(m, d))) @ turn + 3 * rng.normal(size=d)
    shapes[rng.random((n, m)) < missing] = np.nan
    return shapes


FAMILIES = {
    "2d": {"seed": 0, "m": 40, "d": 2},
    "3d": {"seed": 1, "m": 50, "d": 3},
    "2d-partial": {"seed": 2, "m": 40, "d": 2, "missing": 0.25},
    "3d-partial": {"seed": 3, "m": 50, "d": 3, "missing": 0.2},
}

WARPS = {
    "affine": Affine(),
    "spline": ThinPlateSpline(points_per_axis=3),
    "soft spline": ThinPlateSpline(points_per_axis=4, smoothing=1e-5),
}

every_warp = pytest.mark.parametrize("warp", WARPS.values(), ids=WARPS)


@dataclass(frozen=True)
class LinearOnly:
    """A counter-example: x ↦ xA, without a constant feature and hence without translations."""

    def basis(self, points):
        return self

    def features(self, points):
        return points

    def penalty(self):
        return 0.0


@dataclass(frozen=True)
class ChargedTranslations:
    """Another: the constant feature is there, but it is not free."""

    def basis(self, points):
        return self

    def features(self, points):
        return np.column_stack([points, np.ones(len(points))])

    def penalty(self):
        return 1.0


def cost_of(shapes, warp):
    """P, as a matrix."""
    return build_cost(measure_geometry(shapes.points, shapes.visible), warp).dense()


def form_gram(factor):
    """Σ UUᵀ (m, m) of the shapes of a factor."""
    rows = factor.stack_rows()
    return rows.T @ rows


def cheapest_axes(shapes, warp):
    """σ and x of P x = σ C x, C = diag(views) / n, for warps with free translations; x centred."""
    metric = np.diag(shapes.visible.mean(axis=0))
    values, axes = eigh(cost_of(shapes, warp), metric)
    axes = axes[:, 1:]  # the constant vector costs nothing
    return values[1:], axes - axes.mean(axis=0)


def min_cost_of(shapes, warp, reference):
    """The least tr SᵀPS of all S with the same eigenvalues of SᵀCS, about the weighted mean."""
    shares = shapes.visible.mean(axis=0)
    centred = reference - shares @ reference / shares.sum()
    extents = np.linalg.eigvalsh(centred.T @ (shares[:, None] * centred))[::-1]
    return extents @ cheapest_axes(shapes, warp)[0][: len(extents)]


def full_penalty(basis, size):
    """R as a matrix; a basis may state a multiple of the identity as one number."""
    penalty = np.asarray(basis.penalty())
    return penalty if penalty.ndim == 2 else float(penalty) * np.eye(size)


def best_weights(basis, points, targets):
    """The ridge regression of one shape by least squares on [F; √R], apart from the package's."""
    features = basis.features(points)
    penalty = full_penalty(basis, features.shape[1])
    values, vectors = np.linalg.eigh(penalty)
    root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    stacked = np.vstack([features, root])
    zeros = np.zeros((len(root), targets.shape[1]))
    return lstsq(stacked, np.vstack([targets, zeros]))[0], penalty


def visible_parts(shapes):
    """The visible points of each shape with the mask that chose them."""
    return [
        (shape[visible], visible)
        for shape, visible in zip(shapes.points, shapes.visible, strict=True)
    ]


def explicit_cost(shapes, warp, reference):
    """Σ ‖warp_i(D_i) − S‖² + tr(WᵀRW), each warp fitted on its own."""
    spent = 0.0
    for points, visible in visible_parts(shapes):
        basis = warp.basis(points)
        weights, penalty = best_weights(basis, points, reference[visible])
        residual = basis.features(points) @ weights - reference[visible]
        spent += np.sum(residual**2) + np.sum(weights * (penalty @ weights))
    return spent


def rotation(rng, d):
    """A random proper rotation."""
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    turn[:, 0] *= np.sign(np.linalg.det(turn))
    return turn


def moved(points, seed=0, far=5.0, scales=(1.0, 1.0)):
    """Every shape turned, moved and (if asked) scaled on its own."""
    rng = np.random.default_rng(seed)
    d = points.shape[2]
    return np.stack(
        [
            rng.uniform(*scales) * shape @ rotation(rng, d) + far * rng.normal(size=d)
            for shape in points
        ]
    )


def assert_same_shape(actual, expected, rtol=1e-9):
    """Equal relative to the size of the whole, which is what a reference is known to."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * np.nanmax(np.abs(expected)))


def assert_same_alignment(actual, expected, rtol):
    """Settled, and the same shapes, costs and gap."""
    assert actual.diagnostics.converged
    assert_same_shape(actual.reference, expected.reference, rtol=rtol)
    assert_same_shape(actual.aligned, expected.aligned, rtol=rtol)
    d = actual.shapes.n_dims
    np.testing.assert_allclose(
        actual.diagnostics.spectrum[:d], expected.diagnostics.spectrum[:d], rtol=1e-6
    )
    # the guard vectors that show the gap are only made as good as showing it takes
    np.testing.assert_allclose(actual.diagnostics.gap, expected.diagnostics.gap, rtol=0.02)


def up_to_affine(points, target):
    """``points`` through the affine map that takes them closest to ``target``."""
    design = np.column_stack([points, np.ones(len(points))])
    return design @ lstsq(design, target)[0]


def up_to_rigid(points, target):
    """``points`` through the proper rigid motion that takes them closest to ``target``."""
    centre, goal = points.mean(axis=0), target.mean(axis=0)
    left, _, right = np.linalg.svd((points - centre).T @ (target - goal))
    side = np.ones(points.shape[1])
    side[-1] = np.sign(np.linalg.det(left @ right))
    return (points - centre) @ (left * side) @ right + goal


def triangulated_grid(side):
    """x from 0 to 3 and y from 0 to 2 of side² places, and the triangles between them."""
    x, y = map(np.ravel, np.meshgrid(np.linspace(0, 3, side), np.linspace(0, 2, side)))
    corner = np.arange(side * (side - 1)).reshape(side - 1, side)[:, :-1].ravel()
    lower = np.column_stack([corner, corner + 1, corner + side])
    upper = np.column_stack([corner + 1, corner + side + 1, corner + side])
    return x, y, np.vstack([lower, upper])


ORACLE = Path(__file__).parent / "oracle"


def oracle_points(name):
    """The (n, m, d) points of a set the authors' program was run on."""
    if name == "face2d":
        return shared_points(name)
    files = sorted((ORACLE / name / "data").glob("*.csv"))
    return np.stack([np.loadtxt(path, delimiter=",") for path in files])


def read_oracle(name, run):
    """Return what the authors' program, or another one, found for a set."""
    return json.loads((ORACLE / name / f"{run}.json").read_text())


@contextmanager
def warned_of(*words):
    """One DefgpaWarning, no other, that says all these words."""
    with told_among_others(*words) as messages:
        yield
    assert len(messages) == 1, messages


@contextmanager
def told_among_others(*words):
    """Only DefgpaWarnings, and among them one that says all these words."""
    messages = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    messages.extend(str(warning.message) for warning in caught)
    assert {warning.category for warning in caught} <= {DefgpaWarning}, messages
    assert any(all(word.lower() in message.lower() for word in words) for message in messages), (
        messages
    )


def left_over(points, goal):
    """What the best similarity without a mirror leaves, relative to the size of the goal."""
    points, goal = points - points.mean(axis=0), goal - goal.mean(axis=0)
    turned = up_to_rigid(points, goal)
    scale = np.sum(turned * goal) / np.sum(points**2)
    return np.sum((scale * turned - goal) ** 2) / np.sum(goal**2)


def make_smoothing_path(values, cve, reference, datum, standard_error=None, foldovers=None):
    """Return a path with these figures; nothing was fitted."""
    counts = np.zeros(len(values), dtype=int) if foldovers is None else np.asarray(foldovers)
    alignments = [
        SimpleNamespace(rmse_reference=r, rmse_datum=d, foldovers=np.array([count]))
        for r, d, count in zip(reference, datum, counts, strict=True)
    ]
    sound = None if foldovers is None else counts == 0
    return SmoothingPath(values, cve, alignments, None, standard_error, sound=sound)


@contextmanager
def cluster(n_workers=1, processes=False):
    """A small Dask cluster on this machine, without a dashboard and without noise."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=processes,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
            ) as made,
            distributed.Client(made) as client,
        ):
            yield client
