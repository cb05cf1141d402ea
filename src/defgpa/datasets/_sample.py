"""A small sample to start with: the fore-wings of two kinds of bee, drawn and grown here.

No insect was measured. The wing below is a sketch of the veins of a bee's wing; two kinds differ
in its proportions, and every wing is then grown, bowed, folded at the rear lobe, laid under the
camera at some angle, marked with a small error, and a few are torn at the margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import as_file, files
from itertools import pairwise
from typing import Any

import numpy as np

from defgpa.arrays import Array, Mask
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
from defgpa.shapes import Shapes

_SIZES = {"apis": 400.0, "bombus": 560.0}  # pixels per unit of the template, before its parts grow

# label: (x, y) with the root of the wing near 0, its tip near 1, the leading edge up
_WING: dict[str, tuple[float, float]] = {
    "root": (0.000, 0.010),
    # leading edge, from the root to the tip
    "edge_1": (0.100, 0.050),
    "edge_2": (0.220, 0.078),
    "edge_3": (0.340, 0.096),
    "stigma_base": (0.455, 0.108),
    "stigma_tip": (0.565, 0.110),
    "edge_4": (0.680, 0.103),
    "edge_5": (0.790, 0.084),
    "marginal_tip": (0.885, 0.050),
    "edge_6": (0.945, 0.008),
    "tip": (0.985, -0.052),
    # rear edge, from the tip back to the root
    "rear_1": (0.992, -0.115),
    "rear_2": (0.966, -0.180),
    "rear_3": (0.908, -0.235),
    "rear_4": (0.828, -0.274),
    "rear_5": (0.733, -0.298),
    "rear_6": (0.633, -0.302),
    "rear_7": (0.533, -0.288),
    "rear_8": (0.445, -0.258),
    "notch": (0.385, -0.212),
    "lobe_1": (0.300, -0.190),
    "lobe_2": (0.200, -0.150),
    "lobe_3": (0.100, -0.090),
    "lobe_4": (0.025, -0.030),
    # radius, below the leading edge
    "radius_1": (0.170, 0.048),
    "radius_2": (0.335, 0.072),
    # media and cubitus, one vein at first
    "media_1": (0.140, -0.008),
    "media_2": (0.275, -0.030),
    "basal": (0.318, 0.018),
    # the row of cells below the stigma
    "fork": (0.455, 0.022),
    "radial_1": (0.540, 0.058),
    "radial_2": (0.645, 0.050),
    "radial_3": (0.770, 0.053),
    "medial_1": (0.520, -0.020),
    "medial_2": (0.600, -0.034),
    "medial_3": (0.705, -0.040),
    "medial_4": (0.790, -0.062),
    # cubitus and the cells behind it
    "cubital_1": (0.325, -0.085),
    "cubital_2": (0.470, -0.118),
    "cubital_3": (0.645, -0.150),
    "cubital_4": (0.735, -0.205),
    "anal_1": (0.150, -0.062),
    "anal_2": (0.300, -0.132),
}

_MARGIN = tuple(_WING)[:24]  # once around, from the root

# veins, each through its landmarks in order
_VEINS = (
    (*_MARGIN, "root"),
    ("root", "radius_1", "radius_2", "stigma_base"),
    ("root", "media_1", "media_2", "cubital_1"),
    ("radius_2", "basal", "media_2"),
    ("basal", "fork", "medial_1", "medial_2", "medial_3", "medial_4"),
    ("fork", "radial_1", "stigma_tip"),
    ("radial_1", "radial_2", "radial_3", "marginal_tip"),
    ("radial_2", "medial_2"),
    ("radial_3", "medial_3"),
    ("cubital_1", "cubital_2", "cubital_3", "cubital_4"),
    ("medial_1", "cubital_2"),
    ("medial_3", "cubital_3"),
    ("root", "anal_1", "anal_2", "notch"),
    ("cubital_1", "anal_2"),
)

WING_LANDMARKS = tuple(_WING)
WING_LINKS = tuple(pair for vein in _VEINS for pair in pairwise(vein))


def load_wings() -> Shapes:
    """Load the bundled sample: 24 wings of two kinds of bee, 43 landmarks in pixels, some missing.

    The wings are drawn, not measured (:func:`make_wings`). y points up, as TPS files have it.

    Returns
    -------
    Shapes
        With the landmarks' labels; ``metadata["groups"]`` has the kind of each wing, and
        ``metadata["links"]`` the veins as pairs of landmark numbers (``WING_LINKS`` has
        them as pairs of labels).

    Examples
    --------
    >>> wings = load_wings()
    >>> wings
    Shapes(24 shapes, 43 landmarks, 2-D, 18 of 1032 missing)
    >>> wings.names[0], wings.metadata["groups"][0], wings.landmarks[4]
    ('apis_01', 'apis', 'stigma_base')
    """
    from defgpa.io import read_shapes

    with as_file(files("defgpa.datasets") / "sample" / "wings.tps") as path:
        wings = read_shapes(path)
    return Shapes(wings.points, **_make_labels(wings.names))


def make_wings(per_kind: int = 12, *, noise: float = 0.6, seed: int = 5) -> Synthetic:
    """Make wings of two kinds of bee, with their truth; the bundled sample is the default.

    The two kinds are deformations of one wing, in opposite directions, so that the truth lies
    half-way between them.

    Parameters
    ----------
    per_kind : int, at least 6
        Wings of each kind.
    noise : float
        Standard deviation of the marking, in pixels; positions are then rounded to 0.01 pixel.
    seed : int
        The same seed, the same wings.

    Returns
    -------
    Synthetic
        Shapes made from a known truth.

    Examples
    --------
    >>> make_wings(per_kind=20).shapes.n_shapes
    40
    """
    if per_kind < 6:
        raise ShapeError(f"The 'per_kind' parameter must be at least 6. Got {per_kind} instead.")
    rng = np.random.default_rng(seed)
    n, truth = 2 * per_kind, make_wing_template() * np.mean(list(_SIZES.values()))
    kinds = np.repeat([-1.0, 1.0], per_kind)
    growths = map(_make_proportions, kinds, *sample_amounts(rng, n, 3).T)
    ripples = make_waves(rng, n, truth, count=4, height=0.015)
    # under the camera: at its own size, turned and moved, and all within the image
    sizes = np.repeat(list(_SIZES.values()), per_kind)
    scales = sizes / np.mean(sizes) * rng.uniform(0.95, 1.05, size=n)
    linear = sample_rotations(rng, n, 2, max_angle=0.22) * scales[:, None, None]
    shifts = np.array([328.0, 212.0]) + rng.uniform(-12.0, 12.0, size=(n, 2))
    steps = (growths, ripples, map(make_affine, linear, shifts))
    names = [f"{kind}_{i + 1:02d}" for kind in _SIZES for i in range(per_kind)]
    family = make_observations(
        truth, steps, rng, noise=noise, missing=_tear_wings(rng, n), **_make_labels(names)
    )
    rounded = family.shapes.with_points(family.shapes.points.round(2))
    return Synthetic(rounded, family.truth, family.warps, noise)


def make_wing_template() -> Array:
    """Return the (43, 2) template of all wings, of length about 1, centred."""
    return centre_points(np.array(list(_WING.values())))


def _make_labels(names: Sequence[str]) -> dict[str, Any]:
    """Make the labels, kinds and veins of wings with these names."""
    groups = tuple(name.rpartition("_")[0] for name in names)
    metadata = {"groups": groups, "links": number_links(_VEINS, WING_LANDMARKS)}
    return {"names": names, "landmarks": WING_LANDMARKS, "metadata": metadata}


def _make_proportions(kind: float, length: float, bow: float, fold: float) -> Deformation:
    """Make the deformation of one wing from the template, in pixels of the mean wing.

    One kind has a longer outer half and a narrower wing; every wing has grown a little
    differently there, is bowed, and has its rear lobe folded under by some amount.
    """
    x, y = np.eye(2)
    return chain(
        make_growth(0.04 * length - 0.14 * kind, x, past=20.0, softness=40.0),
        make_affine(np.diag([1.0, 1.0 + 0.06 * kind]), np.zeros(2)),
        make_growth(0.12 * fold, -y, past=25.0, softness=15.0),
        make_bend(7e-4 * bow, x, y),
    )


def _tear_wings(rng: np.random.Generator, n: int) -> Mask:
    """Return visibility with three tears of 3 to 6 landmarks in the margin, and five dim joints."""
    visible = np.ones((n, len(WING_LANDMARKS)), dtype=np.bool_)
    damaged = rng.permutation(n)[:8]
    for wing, start, length in zip(damaged[:3], (9, 15, 12), (4, 3, 6), strict=True):
        visible[wing, start : start + length] = False
    inner = np.arange(len(_MARGIN), len(WING_LANDMARKS))
    visible[damaged[3:], rng.choice(inner, size=5, replace=False)] = False
    return visible
