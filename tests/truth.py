"""Small sets with known truth, of the kinds that people bring: generated, seeded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Known:
    """Shapes, the shape they are images of, and what was done to them."""

    kind: str
    points: np.ndarray  # (n, m, d)
    truth: np.ndarray  # (m, d)


def turn(rng, d):
    matrix, _ = np.linalg.qr(rng.normal(size=(d, d)))
    matrix[:, 0] *= np.sign(np.linalg.det(matrix))
    return matrix


def images(rng, truth, n, *, affine=0.05, bend=0.05, noise=0.01):
    """n images of one shape: stretched, bent, noisy, in any pose and size."""
    d = truth.shape[1]
    shapes = []
    for _ in range(n):
        stretched = truth @ (np.eye(d) + affine * rng.normal(size=(d, d)))
        bent = stretched + bend * np.sin(
            truth @ (0.7 * rng.normal(size=(d, d))) + rng.normal(size=d)
        )
        noisy = bent + noise * rng.normal(size=truth.shape)
        shapes.append(rng.uniform(0.7, 1.4) * noisy @ turn(rng, d) + rng.normal(size=d))
    return np.array(shapes)


def base(rng, m, d):
    return rng.uniform(-1, 1, size=(m, d)) * np.linspace(1.8, 1.0, d)


def known_set(kind: str, seed: int, landmarks=(12, 45), shapes=(5, 13)) -> Known:
    """One set of a kind, so many landmarks and shapes; the seed decides everything else."""
    rng = np.random.default_rng([seed, *kind.encode()])
    d = int(rng.integers(2, 4))
    m, n = int(rng.integers(*landmarks)), int(rng.integers(*shapes))
    if kind.startswith("few"):
        m, n = int(rng.integers(d + 2, 9)), int(rng.integers(3, 6))
    truth = base(rng, m, d)
    if kind == "coplanar":
        d = 3
        truth = base(rng, m, 3)
        truth[:, 2] = 0.0
    points = images(rng, truth, n, affine=AFFINE.get(kind, 0.05))
    return Known(kind, SPOILERS.get(kind, _as_it_is)(rng, points), truth)


def _as_it_is(rng, points):
    return points


def _holes(rng, points):
    points = points.copy()
    points[rng.random(points.shape[:2]) < 0.15] = np.nan
    return points


def _size(points):
    return float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()))


def _outlier(rng, points):
    points = points.copy()
    i, j = rng.integers(len(points)), rng.integers(points.shape[1])
    away = rng.normal(size=points.shape[2])
    points[i, j] += rng.uniform(2, 20) * _size(points[i]) * away / np.linalg.norm(away)
    return points


def _exchanged(rng, points):
    points = points.copy()
    i = rng.integers(len(points))
    for _ in range(int(rng.integers(1, 3))):
        a, b = rng.choice(points.shape[1], 2, replace=False)
        points[i, [a, b]] = points[i, [b, a]]
    return points


def _mirrored(rng, points):
    points = points.copy()
    points[rng.choice(len(points), max(1, len(points) // 5), replace=False), :, 0] *= -1
    return points


def _bytes(rng, points):
    """Pixels of a small picture: whole numbers from 0 to 255."""
    low, high = points.min(axis=(1, 2), keepdims=True), points.max(axis=(1, 2), keepdims=True)
    return np.round(255 * (points - low) / (high - low)).astype(np.uint8)


def _tiny(rng, points):
    return 1e-9 * points


def _other_units(rng, points):
    points = points.copy()
    points[rng.integers(len(points))] *= 1000.0
    return points


def _linked(rng, points):
    """Two groups that share few landmarks."""
    points, m = points.copy(), points.shape[1]
    shared = int(rng.integers(points.shape[2] + 2, points.shape[2] + 5))
    order = rng.permutation(m)
    one, other = order[shared : shared + (m - shared) // 2], order[shared + (m - shared) // 2 :]
    half = len(points) // 2
    points[:half, one], points[half:, other] = np.nan, np.nan
    return points


SPOILERS = {
    "holes": _holes,
    "outlier": _outlier,
    "few, one outlier": _outlier,
    "few, exchanged": _exchanged,
    "exchanged": _exchanged,
    "mirrored": _mirrored,
    "bytes": _bytes,
    "tiny": _tiny,
    "other units": _other_units,
    "weak links": _linked,
}
AFFINE = {"affine": 0.15, "strongly affine": 0.3}
KINDS = ("plain", "few", "affine", "strongly affine", "coplanar", *SPOILERS)


def off_by(reference, truth):
    """Procrustes distance of a reference to the truth, reflections allowed."""
    a, b = reference - reference.mean(axis=0), truth - truth.mean(axis=0)
    total = np.linalg.svd(a.T @ b, compute_uv=False).sum()
    return float(np.sqrt(max(0.0, 1 - (total / np.linalg.norm(a) / np.linalg.norm(b)) ** 2)))
