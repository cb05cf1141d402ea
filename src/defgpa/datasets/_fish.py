"""Fish as they come out of the jar: bent, with open mouths, and of two populations.

No fish was measured. What a biologist asks (are stream fish more slender than lake fish?) is a
small difference here; how far the mouth stands open and how the body happens to be bent are large
ones that say nothing about the fish.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from defgpa.arrays import Array
from defgpa.datasets._deformations import Deformation, chain, make_affine, make_bend, make_growth
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

_X, _Y = np.eye(2)

# millimetres; the head is at x = 0, the back is up
_FISH: dict[str, tuple[float, float]] = {
    "snout": (0.0, 0.0),
    "maxilla": (5.5, -1.8),
    "lower_jaw": (0.8, -1.7),
    "chin": (5.0, -5.0),
    "throat": (12.0, -8.2),
    "isthmus": (19.0, -11.2),
    "belly_1": (29.0, -14.0),
    "pelvic_fin": (42.0, -14.8),
    "belly_2": (51.0, -13.6),
    "anal_fin_front": (60.0, -11.3),
    "anal_fin_rear": (72.0, -6.8),
    "peduncle_below": (81.0, -4.4),
    "tail_base_below": (88.0, -5.0),
    "tail_tip_below": (101.0, -13.0),
    "tail_fork": (95.0, 0.3),
    "tail_tip_above": (101.0, 13.5),
    "tail_base_above": (88.0, 5.6),
    "peduncle_above": (81.0, 5.0),
    "back_2": (71.0, 8.3),
    "dorsal_fin_rear": (60.0, 11.6),
    "dorsal_fin_middle": (48.0, 14.6),
    "dorsal_fin_front": (36.0, 15.6),
    "back_1": (26.0, 13.8),
    "nape": (16.0, 9.8),
    "forehead": (7.0, 4.8),
    "eye_front": (8.0, 2.4),
    "eye_above": (10.4, 4.6),
    "eye_rear": (12.8, 2.4),
    "eye_below": (10.4, 0.2),
    "gill_above": (20.5, 5.0),
    "gill_rear": (25.0, -1.6),
    "gill_below": (20.0, -8.6),
    "pectoral_fin": (27.0, -4.8),
    "line_1": (38.0, 3.2),
    "line_2": (54.0, 2.0),
    "line_3": (70.0, 1.0),
}
_LINES = (
    ("maxilla", *tuple(_FISH)[2:25], "snout", "maxilla"),
    ("eye_front", "eye_above", "eye_rear", "eye_below", "eye_front"),
    ("gill_above", "gill_rear", "gill_below"),
    ("gill_rear", "pectoral_fin"),
    ("gill_above", "line_1", "line_2", "line_3", "tail_fork"),
)
_JAW = np.array([10.0, -3.2])  # the joint
# directions from the joint: above the mouth, below it, the chin, the belly
_DIRECTIONS = np.deg2rad([-30.0, 164.5, 169.0, 206.0, 330.0])
_MAX_GAPE = np.deg2rad(36.0)


def make_fish(per_kind: int = 16, *, noise: float = 0.15, seed: int = 0) -> Synthetic:
    """Make lake and stream fish, 36 landmarks in millimetres, bent and with open mouths or not.

    Parameters
    ----------
    per_kind : int, at least 3
        Fish of each population.
    noise : float
        Standard deviation of the marking, in millimetres.
    seed : int
        The same seed, the same fish.

    Returns
    -------
    Synthetic
        ``shapes.metadata`` has ``groups`` ("lake" or "stream"), ``links``, and under
        ``variables`` what was done to each: ``gape`` in degrees and ``make_bend`` per millimetre.

    Examples
    --------
    >>> fish = make_fish()
    >>> fish.shapes
    Shapes(32 shapes, 36 landmarks, 2-D, none missing)
    >>> fish.shapes.names[0], fish.shapes.metadata["groups"][0]
    ('lake_01', 'lake')
    """
    if per_kind < 3:
        raise ShapeError(f"The 'per_kind' parameter must be at least 3. Got {per_kind} instead.")
    rng = np.random.default_rng(seed)
    half_open = _open_mouth(_MAX_GAPE / 2.0)
    open_angles = half_open(np.array(list(_FISH.values())))
    truth, middle = centre_points(open_angles), open_angles.mean(axis=0)
    n, kinds = 2 * per_kind, np.repeat([-1.0, 1.0], per_kind)
    gape, bent = rng.uniform(0.0, _MAX_GAPE, size=n), rng.uniform(-7e-3, 7e-3, size=n)
    closed = chain(make_affine(np.eye(2), middle), half_open.inverse())
    postures = map(_make_posture, kinds, *sample_amounts(rng, n, 2).T, gape, bent, [middle] * n)
    # in the tray: of its own length, turned and moved, all seen from the left
    linear = sample_rotations(rng, n, 2, max_angle=0.4) * rng.uniform(0.75, 1.3, size=(n, 1, 1))
    shifts = np.array([80.0, 60.0]) + rng.normal(scale=4.0, size=(n, 2))
    ripples = make_waves(rng, n, truth, count=4, height=0.01)
    groups = tuple(np.repeat(["lake", "stream"], per_kind).tolist())
    return make_observations(
        truth,
        ([closed] * n, postures, ripples, map(make_affine, linear, shifts)),
        rng,
        noise=noise,
        names=[f"{kind}_{i + 1:02d}" for kind in ("lake", "stream") for i in range(per_kind)],
        landmarks=list(_FISH),
        metadata={
            "groups": groups,
            "links": number_links(_LINES, list(_FISH)),
            "variables": tuple(
                {"gape": f"{np.rad2deg(angle):.1f}", "bend": f"{curvature:.5f}"}
                for angle, curvature in zip(gape, bent, strict=True)
            ),
        },
    )


def _make_posture(
    kind: float, depth: float, head: float, gape: float, curvature: float, middle: Array
) -> Deformation:
    """Deform the template by kind, depth of the body and length of the head, then gape and bend."""
    belly = -0.035 * kind + 0.02 * depth
    return chain(
        make_growth(belly, -_Y, past=4.0, softness=3.0),
        make_growth(belly, _Y, past=5.0, softness=3.0),
        make_growth(0.03 * head, -_X, past=-22.0, softness=5.0),
        _open_mouth(gape),
        make_affine(np.eye(2), -middle),
        make_bend(curvature, _X, _Y),
    )


def _open_mouth(angle: float) -> Deformation:
    """Open the mouth by an angle: directions around the joint are spread like a fan.

    From the first direction to the second nothing moves, from the third to the fourth everything
    turns by ``angle``, in between it is drawn out or pressed together.
    """
    after = _DIRECTIONS + angle * np.array([0.0, 0.0, 1.0, 1.0, 0.0])
    return Deformation(
        partial(_spread_directions, _DIRECTIONS, after),
        partial(_spread_directions, after, _DIRECTIONS),
    )


def _spread_directions(before: Array, after: Array, points: Array) -> Array:
    """Turn points (p, 2) about the jaw, angles interpolated from ``before`` (k,) to ``after``."""
    x, y = (points - _JAW).T
    start = before[0]
    angles = start + (np.arctan2(y, x) - start) % (2.0 * np.pi)
    turned = np.interp(angles, before, after)
    radius = np.hypot(x, y)
    return np.asarray(_JAW + np.column_stack([radius * np.cos(turned), radius * np.sin(turned)]))
