"""Families of shapes whose truth is known: one configuration, n known deformations of it.

However a family deforms, the amounts of each of its modes add up to zero over the shapes: so
the truth lies in the middle of its family, and a good alignment finds it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from defgpa.arrays import Array, Mask, freeze, rms, rms_radius
from defgpa.datasets._deformations import Deformation, chain, make_affine, make_shear
from defgpa.datasets._missing import AtRandom, Missing, get_min_landmarks
from defgpa.errors import ShapeError
from defgpa.shapes import Shapes

_Generator = np.random.Generator


@dataclass(frozen=True, eq=False)
class Synthetic:
    """Shapes made from a known truth.

    Parameters
    ----------
    shapes : Shapes
        What is observed: deformed, moved, noisy, with landmarks missing.
    truth : array (m, d)
        The configuration all shapes are deformations of, centred.
    warps : tuple of n deformations
        ``warps[i](shapes[i])`` is the truth, but for the noise; ``warps[i].inverse()`` exactly
        undoes it.
    noise : float
        The standard deviation of what was added to every coordinate, in the shapes' units.

    Examples
    --------
    >>> import numpy as np
    >>> family = smooth_family(n=5, m=30, d=3, noise=0.0, seed=1)
    >>> family.shapes
    Shapes(5 shapes, 30 landmarks, 3-D, none missing)
    >>> bool(np.allclose(family.warps[2](family.shapes[2]), family.truth))
    True
    >>> round(family.compute_error(2.0 * family.truth + 1.0), 9)
    0.0
    """

    shapes: Shapes
    truth: Array
    warps: tuple[Deformation, ...]
    noise: float

    @property
    def clean(self) -> Array:
        """(n, m, d): the shapes without noise and with nothing missing."""
        return np.stack([warp.inverse()(self.truth) for warp in self.warps])

    def compute_error(self, reference: Array) -> float:
        """Return the RMS distance of a reference (m, d) from the truth, relative to its radius.

        The reference is first moved by its best affine map: the shapes do not tell the lengths
        and angles of its axes, a prior does.
        """
        design = np.column_stack([reference, np.ones(len(reference))])
        fitted = design @ np.linalg.lstsq(design, self.truth, rcond=None)[0]
        error = rms(fitted - self.truth)
        return error / rms_radius(self.truth)

    @property
    def mirrored(self) -> Mask:
        """(n,): which shapes are mirror images, by the sign of their warp's Jacobian."""
        centre = self.truth.mean(axis=0)
        corner = centre + 1e-3 * rms_radius(self.truth) * np.eye(len(centre))
        tripods = [warp.inverse()(np.vstack([centre, corner])) for warp in self.warps]
        edges = np.stack([tripod[1:] - tripod[0] for tripod in tripods])
        return np.asarray(np.linalg.det(edges) < 0)


def smooth_family(
    n: int = 10,
    m: int = 60,
    d: int = 2,
    *,
    bend: float = 0.15,
    noise: float = 0.01,
    missing: float | Missing = 0.0,
    mirrored: int = 0,
    seed: int = 0,
) -> Synthetic:
    """Make random landmarks under smooth deformations, of any size: n = 10,000 or m = 10⁶ will do.

    The truth fills an ellipsoid and has root-mean-square radius 1; every shape is sheared in
    waves, turned any way, resized by up to a fifth and moved.

    Parameters
    ----------
    n, m, d : int
        Shapes, landmarks, coordinates (2 or 3).
    bend : float
        How far the deformations move a landmark, root mean square.
    noise : float
        Standard deviation added to every coordinate.
    missing : float, or a pattern such as ``AtRandom(0.1)``, ``Blocks(0.3)``
        The missing landmarks; a number is a share at random.
    mirrored : int
        How many shapes are mirror images, fewer than half.
    seed : int
        The same seed, the same family.

    Returns
    -------
    Synthetic
        Shapes made from a known truth.

    Examples
    --------
    >>> from defgpa.datasets import Blocks
    >>> family = smooth_family(n=8, m=50, d=3, missing=Blocks(0.3), mirrored=2)
    >>> family.shapes
    Shapes(8 shapes, 50 landmarks, 3-D, 120 of 400 missing)
    >>> int(family.mirrored.sum())
    2
    """
    require_size(m, d)
    _require_amounts(bend=bend)
    rng = np.random.default_rng(seed)
    truth = centre_points(_sample_ellipsoid(rng, m, np.array([1.0, 0.7, 0.5])[:d]))
    truth /= rms_radius(truth)
    steps = make_waves(rng, n, truth, count=d + 2, height=bend)
    poses = _sample_similarities(rng, n, d, mirrored)
    return make_observations(truth, (steps, poses), rng, noise=noise, missing=missing)


def make_observations(
    truth: Array,
    steps: Sequence[Iterable[Deformation]],
    rng: _Generator,
    *,
    noise: float,
    missing: float | Missing | Mask = 0.0,
    **described: Any,
) -> Synthetic:
    """Make shapes by deformations of the truth, with noise and with landmarks missing.

    Each of ``steps``, in order, has one deformation a shape. ``described`` goes to
    :class:`~defgpa.Shapes`: names, landmarks, faces, metadata.
    """
    _require_amounts(noise=noise)
    deformations = [chain(*shape_steps) for shape_steps in zip(*steps, strict=True)]
    points = np.stack([deformation(truth) for deformation in deformations])
    pattern = AtRandom(missing) if isinstance(missing, (int, float)) else missing
    if not isinstance(pattern, np.ndarray):
        pattern = pattern.visible(truth, len(points), rng)
    if noise:
        points += noise * rng.normal(size=points.shape)
    shapes = Shapes(points, visible=pattern, **described)
    warps = tuple(deformation.inverse() for deformation in deformations)
    return Synthetic(shapes, freeze(truth), warps, noise)


def number_links(
    lines: Iterable[Sequence[str]], landmarks: Sequence[str]
) -> tuple[tuple[int, int], ...]:
    """Return the links along lines of labels, as pairs of landmark numbers."""
    number = {label: j for j, label in enumerate(landmarks)}
    return tuple((number[a], number[b]) for line in lines for a, b in pairwise(line))


def sample_amounts(rng: _Generator, n: int, modes: int) -> Array:
    """Sample how much of each mode a shape has, (n, modes); mean 0 and mean square 1."""
    if n < 2:
        raise ShapeError(f"The 'n' parameter must be at least 2 shapes. Got {n} instead.")
    drawn = rng.uniform(-1.0, 1.0, size=(n, modes))
    drawn -= drawn.mean(axis=0)
    return np.asarray(drawn / np.sqrt((drawn**2).mean(axis=0)))


def make_waves(
    rng: _Generator, n: int, truth: Array, *, count: int, height: float, wavelengths: float = 1.0
) -> list[Deformation]:
    """Make ``count`` shears of each shape, in random directions shared by the family.

    Together they move a landmark by ``height`` times the radius of the truth; from end to end
    the truth is about one wave long, times ``wavelengths``.
    """
    d, radius = truth.shape[1], rms_radius(truth)
    axes = sample_rotations(rng, count, d, max_angle=np.pi)
    across = axes[:, 1] * rng.uniform(1.6, 2.6, size=(count, 1)) * wavelengths / radius
    # a quarter wave apart: about the middle half of them bow, half of them skew
    phases = rng.uniform(0.0, 2.0 * np.pi) + 0.5 * np.pi * np.arange(count)
    heights = sample_amounts(rng, n, count) * height * radius * np.sqrt(2.0 / count)
    modes = list(zip(axes[:, 0], across, phases, strict=True))
    return [
        chain(*(make_shear(h * a, x, p) for h, (a, x, p) in zip(row, modes, strict=True)))
        for row in heights
    ]


def _sample_similarities(rng: _Generator, n: int, d: int, mirrored: int) -> Iterator[Deformation]:
    """Sample similarities: any rotation, sizes within a fifth, shifts of a few radii."""
    if not 0 <= 2 * mirrored < max(n, 1):
        raise ShapeError(
            f"The 'mirrored' parameter must be at least 0 and fewer than half of the {n} shapes. "
            f"Got {mirrored} instead."
        )
    linear = sample_rotations(rng, n, d, max_angle=np.pi)
    linear[rng.permutation(n)[:mirrored], :, 0] *= -1.0
    linear *= np.exp(rng.uniform(-0.18, 0.18, size=(n, 1, 1)))
    return map(make_affine, linear, 3.0 * rng.normal(size=(n, d)))


def sample_rotations(rng: _Generator, n: int, d: int, *, max_angle: float) -> Array:
    """Sample (n, d, d) rotations by at most this angle, around any axis."""
    axes = np.array([0.0, 0.0, 1.0]) if d == 2 else rng.normal(size=(n, 3))
    axes = axes / np.linalg.norm(axes, axis=-1, keepdims=True)
    turns = Rotation.from_rotvec(rng.uniform(-max_angle, max_angle, size=(n, 1)) * axes).as_matrix()
    return np.array(turns[:, :d, :d])


def centre_points(points: Array) -> Array:
    """Move points so that their mean is 0."""
    return np.asarray(points - points.mean(axis=0))


def _sample_ellipsoid(rng: _Generator, m: int, semi_axes: Array) -> Array:
    d = len(semi_axes)
    directions = rng.normal(size=(m, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(directions * rng.random((m, 1)) ** (1.0 / d) * semi_axes)


def require_size(m: int, d: int) -> None:
    """Raise a ShapeError if a shape of m landmarks in d dimensions is degenerate."""
    if d not in (2, 3):
        raise ShapeError(f"The 'd' parameter must be 2 or 3. Got {d} instead.")
    needed = get_min_landmarks(np.empty((0, d)))
    if m < needed:
        raise ShapeError(
            f"The 'm' parameter must be at least {needed} landmarks in {d}-D. Got {m} instead."
        )


def _require_amounts(**parameters: float) -> None:
    for name, value in parameters.items():
        if not 0.0 <= value < np.inf:
            raise ShapeError(
                f"The {name!r} parameter must be a number, 0 or more. Got {value} instead."
            )
