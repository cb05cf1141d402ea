"""Skulls in three dimensions, half of them broken: landmarks of a sketched head, in millimetres.

No skull was measured. Every one is a sketch of a primate's, its face and its braincase grown by
different amounts, a little askew. The second half of the set are fossils: each has lost the face,
the rear, or one side.
"""

from __future__ import annotations

import numpy as np

from defgpa.arrays import Array, Mask
from defgpa.datasets._deformations import Deformation, chain, make_affine, make_bend, make_growth
from defgpa.datasets._missing import hide_sides
from defgpa.datasets._synthetic import (
    Synthetic,
    centre_points,
    make_observations,
    make_waves,
    number_links,
    sample_amounts,
    sample_rotations,
)
from defgpa.errors import ShapeError

_X, _Y, _Z = np.eye(3)  # to its right, forwards, up

_MIDLINE = {
    "prosthion": (0, 95, -35),
    "nasospinale": (0, 98, -15),
    "nasion": (0, 88, 10),
    "glabella": (0, 94, 20),
    "metopion": (0, 80, 55),
    "bregma": (0, 20, 86),
    "vertex": (0, -22, 88),
    "lambda": (0, -76, 60),
    "inion": (0, -92, 14),
    "opisthion": (0, -50, -25),
    "basion": (0, -15, -28),
    "staphylion": (0, 46, -28),
}
_RIGHT = {
    "orbit_upper": (30, 82, 22),
    "orbit_outer": (48, 72, 8),
    "orbit_lower": (32, 84, -10),
    "orbit_inner": (10, 85, 8),
    "aperture": (12, 91, -9),
    "canine": (17, 88, -38),
    "molar": (31, 60, -40),
    "jugal": (54, 66, -9),
    "zygomatic": (63, 50, -12),
    "zygion": (67, 20, -8),
    "porion": (58, -8, -5),
    "mastoid": (52, -16, -34),
    "condyle": (14, -30, -33),
    "asterion": (55, -56, 8),
    "pterion": (56, 46, 26),
    "stephanion": (50, 40, 60),
    "eurion": (71, -25, 42),
    "temporal": (69, -36, 18),
}
_LABELS = [*_MIDLINE, *(f"{name}_{side}" for name in _RIGHT for side in "rl")]
_LINES = (  # each through its landmarks in order; on both sides where they are paired
    ("prosthion", "nasospinale", "nasion", "glabella", "metopion", "bregma", "vertex", "lambda"),
    ("lambda", "inion", "opisthion", "basion", "staphylion", "prosthion"),
    ("orbit_inner", "orbit_upper", "orbit_outer", "orbit_lower", "orbit_inner"),
    ("nasion", "aperture", "nasospinale"),
    ("prosthion", "canine", "molar", "staphylion"),
    ("molar", "jugal", "zygomatic", "zygion", "porion", "mastoid", "condyle", "basion"),
    ("orbit_outer", "jugal", "orbit_lower"),
    ("orbit_outer", "pterion", "stephanion", "bregma"),
    ("pterion", "temporal", "asterion", "lambda"),
    ("stephanion", "eurion", "asterion", "inion"),
    ("porion", "temporal", "eurion", "vertex"),
)


def make_skulls(n: int = 24, *, noise: float = 0.5, seed: int = 0) -> Synthetic:
    """Make skulls with 48 landmarks in millimetres, the later half without face, rear or one side.

    Parameters
    ----------
    n : int, at least 8
        Skulls; of the fossils, the first has lost its face, the next its rear, its right side,
        its left side, and so on.
    noise : float
        Standard deviation of the marking, in millimetres.
    seed : int
        The same seed, the same skulls.

    Returns
    -------
    Synthetic
        ``shapes.metadata`` has ``groups`` ("recent" or "fossil"), ``links`` and ``pairs``
        (landmarks that mirror each other).

    Examples
    --------
    >>> skulls = make_skulls()
    >>> skulls.shapes
    Shapes(24 shapes, 48 landmarks, 3-D, 288 of 1152 missing)
    >>> skulls.shapes.metadata["groups"][11:13]
    ('recent', 'fossil')
    """
    if n < 8:
        raise ShapeError(f"The 'n' parameter must be at least 8 skulls. Got {n} instead.")
    rng = np.random.default_rng(seed)
    paired = [(side * x, y, z) for x, y, z in _RIGHT.values() for side in (1, -1)]
    truth = centre_points(np.array([*_MIDLINE.values(), *paired], dtype=np.float64))
    growths = map(_make_growth, *sample_amounts(rng, n, 4).T)
    ripples = make_waves(rng, n, truth, count=4, height=0.012)
    # on the table: of its own size, turned and moved
    linear = sample_rotations(rng, n, 3, max_angle=0.5) * rng.uniform(0.9, 1.1, size=(n, 1, 1))
    shifts = rng.normal(scale=30.0, size=(n, 3))
    missing = _break_skulls(truth, n)
    return make_observations(
        truth,
        (growths, ripples, map(make_affine, linear, shifts)),
        rng,
        noise=noise,
        missing=missing,
        names=[f"skull_{i + 1:02d}" for i in range(n)],
        landmarks=_LABELS,
        metadata={
            "groups": tuple("recent" if row.all() else "fossil" for row in missing),
            "links": _make_links(),
            "pairs": tuple((j, j + 1) for j in range(len(_MIDLINE), len(_LABELS), 2)),
        },
    )


def _make_links() -> tuple[tuple[int, int], ...]:
    sides = [
        [name if name in _MIDLINE else f"{name}_{side}" for name in line]
        for line in _LINES
        for side in "rl"
    ]
    return tuple(sorted(set(number_links(sides, _LABELS))))


def _make_growth(face: float, vault: float, width: float, flexion: float) -> Deformation:
    """Make the deformation to a longer face, a higher vault, a wider head and a bent base."""
    return chain(
        make_growth(0.07 * face, _Y, past=35.0, softness=15.0),
        make_growth(0.06 * vault, _Z, past=10.0, softness=15.0),
        make_affine(np.diag([1.0 + 0.03 * width, 1.0, 1.0]), np.zeros(3)),
        make_bend(5e-4 * flexion, _Y, _Z),
    )


def _break_skulls(truth: Array, n: int) -> Mask:
    """Return visibility: complete skulls, then skulls without face, rear, right or left side."""
    sides = (_Y, -_Y, _X + 0.3 * _Z, -_X + 0.3 * _Z)
    lost = {skull: sides[k % 4] for k, skull in enumerate(range((n + 1) // 2, n))}
    return hide_sides(truth, n, lost, len(truth) // 2)
