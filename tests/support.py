"""What the tests share: named tolerances, generic data, and where the real sets lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

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


def smooth_family(seed=0, n=6, m=40, d=2, bend=0.15, noise=0.01, missing=0.0):
    """n smooth deformations of one random configuration, moved and turned; NaN where missing."""
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
