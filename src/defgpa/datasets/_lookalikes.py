"""Stand-ins for the published sets: the same sizes, units and difficulties, and a known truth.

Each has the number of shapes and landmarks of its model, is missing the same landmarks, and is
about as far from rigid, affine and spline-like. The coordinates are ours.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull

from defgpa.arrays import Array, Index, Mask, rms
from defgpa.datasets._deformations import (
    Deformation,
    chain,
    make_affine,
    make_bend,
    make_growth,
    make_shear,
)
from defgpa.datasets._missing import hide_sides
from defgpa.datasets._synthetic import (
    Synthetic,
    centre_points,
    make_observations,
    make_waves,
    require_size,
    sample_amounts,
    sample_rotations,
)


def make_faces(n: int = 10, *, noise: float = 2.7, seed: int = 0) -> Synthetic:
    """Make shapes like Face: a face that turns and speaks, 68 landmarks in pixels, 4 % missing.

    The two frames most turned away do not show the far side.

    Parameters
    ----------
    n : int
        Frames.
    noise : float
        Standard deviation of the marking, in pixels.
    seed : int
        The same seed, the same family.

    Returns
    -------
    Synthetic
        Shapes made from a known truth.

    Examples
    --------
    >>> make_faces().shapes
    Shapes(10 shapes, 68 landmarks, 2-D, 28 of 680 missing)
    """
    rng = np.random.default_rng(seed)
    parts = _make_face()
    truth = centre_points(np.vstack(list(parts.values())))
    amounts = sample_amounts(rng, n, 3)
    expressions, ripples = (
        map(_make_expression, *amounts.T),
        make_waves(rng, n, truth, count=4, height=0.08),
    )
    # upright or nearly so, near the middle of the image, from nearer or farther away
    linear = sample_rotations(rng, n, 2, max_angle=0.15) * rng.uniform(0.94, 1.06, size=(n, 1, 1))
    shifts = np.array([340.0, 300.0]) * (1.0 + rng.uniform(-0.1, 0.1, size=(n, 2)))
    return make_observations(
        truth,
        (expressions, ripples, map(make_affine, linear, shifts)),
        rng,
        noise=noise,
        missing=_hide_far_side(truth, amounts[:, 0]),
        names=_make_names("frame", n),
        landmarks=[
            f"{label}_{k + 1}" for label, points in parts.items() for k in range(len(points))
        ],
    )


def make_livers(n: int = 10, m: int = 4004, *, noise: float = 0.0, seed: int = 0) -> Synthetic:
    """Make shapes like Liver: deformations of one closed surface, 4004 vertices in millimetres.

    Parameters
    ----------
    n, m : int
        Shapes and vertices; ``shapes.faces`` has the 2 m − 4 triangles, turned outwards.
    noise : float
        Standard deviation in millimetres.
    seed : int
        The same seed, the same family.

    Returns
    -------
    Synthetic
        Shapes made from a known truth.

    Examples
    --------
    >>> family = make_livers(n=3, m=500)
    >>> family.shapes, len(family.shapes.faces)
    (Shapes(3 shapes, 500 landmarks, 3-D, none missing), 996)
    """
    require_size(m, 3)
    rng = np.random.default_rng(seed)
    sphere = _sample_sphere(m)
    truth = centre_points(_make_organ(sphere))
    axis, side, _ = np.linalg.svd(truth, full_matrices=False)[2]
    radius = rms(truth)
    # its long axis, bent towards a fixed side or away from it
    bends = [
        make_bend(0.12 / radius * amount, axis, side) for amount in sample_amounts(rng, n, 1)[:, 0]
    ]
    ripples = make_waves(rng, n, truth, count=6, height=0.045, wavelengths=1.5)
    # in the scanner: at its own size, turned moderately, moved by some centimetres
    turns, shifts = sample_rotations(rng, n, 3, max_angle=0.6), rng.normal(scale=20.0, size=(n, 3))
    return make_observations(
        truth,
        (bends, ripples, map(make_affine, turns, shifts)),
        rng,
        noise=noise,
        names=_make_names("liver", n),
        faces=_make_triangles(sphere),
    )


def _make_expression(turn: float, mouth: float, smile: float) -> Deformation:
    """Widen the near side of a turned head, lower the jaw of an open mouth, bow a smile."""
    x, y = np.eye(2)
    return chain(
        make_growth(0.14 * turn, x, past=0.0, softness=15.0),
        make_growth(-0.14 * turn, -x, past=0.0, softness=15.0),
        make_growth(0.14 * mouth, y, past=35.0, softness=10.0),
        make_shear(2.5 * smile * y, 0.03 * x, 0.5 * np.pi),
    )


def _hide_far_side(truth: Array, turns: Array) -> Mask:
    """Return visibility without the far fifth of the face in the two shapes that turn most."""
    most_turned = np.argsort(-np.abs(turns))[:2]
    outwards = {frame: np.array([-turns[frame], 0.0]) for frame in most_turned}
    return hide_sides(truth, len(turns), outwards, round(0.205 * len(truth)))


def _make_face() -> dict[str, Array]:
    """Make the usual 68 points of a face, in pixels around the root of the nose, y down."""
    jaw = np.linspace(np.pi, 0.0, 17)
    brow = np.linspace(-1.0, 1.0, 5)
    lids = np.pi + np.arange(6) * np.pi / 3.0
    lips, inner = (np.pi + 2.0 * np.pi * np.arange(k) / k for k in (12, 8))
    right_brow = np.column_stack([41.0 + 22.0 * brow, -26.0 + 7.0 * (brow + 0.2) ** 2])
    left_brow = right_brow[::-1] * (-1.0, 1.0)
    eye = np.column_stack([14.0 * np.cos(lids), 5.0 * np.sin(lids)])
    nostrils = np.column_stack([15.0 * brow, 59.0 - 7.0 * brow**2])
    return {
        "jaw": np.column_stack([71.0 * np.cos(jaw), 143.0 * np.sin(jaw) ** 0.9]),
        "brow_left": left_brow,
        "brow_right": right_brow,
        "eye_left": eye - (38.0, 3.0),
        "eye_right": eye - (-38.0, 3.0),
        "nose": np.column_stack([np.zeros(4), np.linspace(-8.0, 44.0, 4)]),
        "nostril": nostrils,
        "lip": np.column_stack([26.0 * np.cos(lips), 86.0 + 16.0 * np.sin(lips)]),
        "mouth": np.column_stack([19.0 * np.cos(inner), 86.0 + 6.0 * np.sin(inner)]),
    }


def _make_organ(ball: Array) -> Array:
    """Deform the unit ball to a wedge: a thick lobe, a thin one, hollow below; millimetres."""
    x, y, z = ball.T
    thickness = 0.62 - 0.33 * np.tanh(1.4 * x)
    hollow = 22.0 * np.exp(-((x - 0.25) ** 2) / 0.3 - y**2 / 0.4)
    return np.column_stack(
        [105.0 * x, 78.0 * (0.75 * thickness + 0.35) * y, 80.0 * thickness * z + hollow]
    )


def _sample_sphere(m: int) -> Array:
    """Sample m points evenly on the unit sphere, along a golden spiral."""
    k = np.arange(m) + 0.5
    height, angle = 1.0 - 2.0 * k / m, np.pi * (1.0 + np.sqrt(5.0)) * k
    belt = np.sqrt(1.0 - height**2)
    return np.column_stack([height, belt * np.cos(angle), belt * np.sin(angle)])


def _make_triangles(sphere: Array) -> Index:
    """Return the triangles of the convex hull of points on the sphere, counter-clockwise."""
    faces = np.asarray(ConvexHull(sphere).simplices, dtype=np.intp)
    inwards = np.linalg.det(sphere[faces]) < 0
    faces[inwards] = faces[inwards, ::-1]
    return faces[np.lexsort(faces.T[::-1])]


def _make_names(word: str, n: int) -> list[str]:
    digits = max(2, len(str(n)))
    return [f"{word}_{i + 1:0{digits}d}" for i in range(n)]
