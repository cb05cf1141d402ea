"""Small sets with known truth, of the kinds that people bring: generated, seeded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from support import rotation


@dataclass(frozen=True)
class Known:
    """Shapes, the shape they are images of, and what was done to them."""

    kind: str
    points: np.ndarray  # (n, m, d)
    truth: np.ndarray  # (m, d)


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
        shapes.append(rng.uniform(0.7, 1.4) * noisy @ rotation(rng, d) + rng.normal(size=d))
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
    moved = rng.normal(size=points.shape[2])
    points[i, j] += rng.uniform(2, 20) * _size(points[i]) * moved / np.linalg.norm(moved)
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
    first, second = order[shared : shared + (m - shared) // 2], order[shared + (m - shared) // 2 :]
    half = len(points) // 2
    points[:half, first], points[half:, second] = np.nan, np.nan
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


CLASSES = ("clean", "affine", "flat", "elongated", "hinge 0.25", "hinge 0.6", "large")


def class_set(name: str, seed: int, *, noise=0.015, bend=0.04) -> Known:
    """A complete set of a class: quadratic bends of random sign about the truth, and noise.

    Flat sets are 20 times as wide as thick, elongated ones 8 times as long as wide; the half of a
    hinged shape turns by a normal angle of that many radians.
    """
    rng = np.random.default_rng([seed, *name.encode()])
    d = 3 if name == "flat" else int(rng.integers(2, 4))
    m, n = int(rng.integers(15, 60)), int(rng.integers(8, 30))
    truth = rng.uniform(-1, 1, size=(m, d)) * np.linspace(1.5, 1.0, d)
    affine = {"affine": 0.15, "large": 0.1}.get(name, 0.0)
    bend = 0.3 if name == "large" else bend
    if name == "flat":
        truth[:, 2] /= 20
    if name == "elongated":
        truth = rng.uniform(-1, 1, size=(m, d)) * np.r_[1.0, np.full(d - 1, 1 / 8)]
    products = np.stack([truth[:, i] * truth[:, j] for i in range(d) for j in range(i, d)], axis=1)
    shapes = []
    for _ in range(n):
        shape = truth.copy()
        if name.startswith("hinge"):
            angle = float(name.split()[1]) * rng.normal()
            cosine, sine = np.cos(angle), np.sin(angle)
            half = truth[:, 0] > 0
            shape[half, :2] = truth[half, :2] @ np.array([[cosine, sine], [-sine, cosine]])
        shape = shape @ (np.eye(d) + affine * rng.normal(size=(d, d)))
        shape += (
            bend * products @ rng.normal(size=(products.shape[1], d)) / products.shape[1] ** 0.5
        )
        shape += noise * rng.normal(size=shape.shape)
        shapes.append(rng.uniform(0.7, 1.4) * shape @ rotation(rng, d) + rng.normal(size=d))
    return Known(name, np.array(shapes), truth)


def classical_mean(points):
    """The mean of classical GPA: complete shapes at unit size, rotated onto it until it stays."""
    shapes = points - points.mean(axis=1, keepdims=True)
    shapes /= np.linalg.norm(shapes, axis=(1, 2))[:, None, None]
    mean, change = shapes[0], 1.0
    while change > 1e-12:
        left, _, right = np.linalg.svd(shapes.mT @ mean)
        rotated = (shapes @ (left @ right)).mean(axis=0)
        rotated /= np.linalg.norm(rotated)
        mean, change = rotated, np.linalg.norm(rotated - mean)
    return mean


def hide_landmarks(rng, points, pattern, share):
    """Hide about a share of the landmarks; every landmark stays in two shapes at least.

    ``random``: any; ``rare``: some landmarks are in two or three shapes only; ``side``: each shape
    lacks a side.
    """
    n, m, d = points.shape
    hidden = np.zeros((n, m), dtype=bool)
    if pattern == "random":
        hidden = rng.random((n, m)) < share
    if pattern == "rare":
        hidden[:, rng.permutation(m)[: int(min(0.9, 1.2 * share) * m)]] = True
        for j in np.flatnonzero(hidden[0]):
            hidden[rng.permutation(n)[: int(rng.integers(2, 4))], j] = False
    if pattern == "side":
        heights = (points @ rng.normal(size=(n, d, 1)))[..., 0]
        hidden = heights < np.quantile(heights, share, axis=1)[:, None]
    for j in np.flatnonzero((~hidden).sum(axis=0) < 2):
        hidden[rng.permutation(n)[:2], j] = False
    return np.where(hidden[..., None], np.nan, points)


def geometric_mean(values):
    return float(np.exp(np.mean(np.log(values))))
