"""A picture of a wing, painted once and bent into the place of its landmarks.

The texture is painted on the template; a pixel of the picture takes its colour from where a
thin-plate spline through the landmarks puts it. So the landmarks lie exactly where they should,
and pictures of different wings agree once they are warped onto each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage
from scipy.interpolate import CubicSpline, RBFInterpolator
from scipy.spatial import cKDTree

from defgpa._arrays import Array, Mask
from defgpa.datasets._sample import (
    IMAGE_SIZE,
    WING_LANDMARKS,
    WING_MARGIN,
    WING_VEINS,
    wing_template,
)
from defgpa.errors import ShapeError

_PAPER = np.array([236.0, 238.0, 240.0])
_MEMBRANE = np.array([214.0, 196.0, 150.0])
_VEIN = np.array([74.0, 44.0, 22.0])

_PER_UNIT = 750  # texture pixels per wing length: finer than the pictures of the sample
_CORNER = np.array([-0.58, -0.30])  # of the texture, around the template
_EXTENT = np.array([1.18, 0.58])


def wing_image(points: ArrayLike, size: tuple[int, int] = IMAGE_SIZE) -> NDArray[np.uint8]:
    """A picture of the wing with these landmarks, torn where its margin is missing.

    Parameters
    ----------
    points : array (43, 2)
        One shape of :func:`load_wings`, or a wing like it: x is the column and y the row of the
        picture, counted from the middle of the first pixel. NaN where not seen.
    size : (rows, columns)
        Of the picture.

    Returns
    -------
    array (rows, columns, 3) of uint8
        As y points up in the sample, show it with ``imshow(picture, origin="lower")``.

    Examples
    --------
    >>> from defgpa.datasets import load_wings
    >>> picture = wing_image(load_wings()["bombus_02"])
    >>> picture.shape, picture.dtype
    ((400, 620, 3), dtype('uint8'))
    """
    landmarks = np.asarray(points, dtype=np.float64)
    seen = _require_wing(landmarks, size)
    template = wing_template()
    to_template = RBFInterpolator(landmarks[seen], template[seen])
    rows, columns = np.mgrid[: size[0], : size[1]]
    places = to_template(np.column_stack([columns.ravel(), rows.ravel()]).astype(np.float64))
    paint = _texture()
    cover = paint.cover(places) * _whole(places, template[seen], template[~seen & _on_margin()])
    mixed = _PAPER + cover[:, None] * (paint.colours(places) - _PAPER)
    return np.asarray(mixed.round().clip(0, 255), dtype=np.uint8).reshape(*size, 3)


@dataclass(frozen=True, eq=False)
class _Texture:
    """Colour and opacity on the template's raster, row 0 at its lowest y."""

    colour: Array  # (rows, columns, 3)
    opacity: Array  # (rows, columns)

    def colours(self, places: Array) -> Array:
        return np.stack([_sampled(layer, places) for layer in self.colour.T.swapaxes(1, 2)], axis=1)

    def cover(self, places: Array) -> Array:
        return _sampled(self.opacity, places)


@cache
def _texture() -> _Texture:
    shape = (int(_EXTENT[1] * _PER_UNIT), int(_EXTENT[0] * _PER_UNIT))
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    places = np.stack([columns, rows], axis=-1) / _PER_UNIT + _CORNER
    inside = ndimage.binary_fill_holes(_distance(places, WING_VEINS[:1]) < 1.5 / _PER_UNIT)
    vein = _vein_darkness(places)
    membrane = _membrane(inside & (vein < 0.5))
    colour = membrane + vein[..., None] * (_VEIN - membrane)
    return _Texture(colour, ndimage.gaussian_filter(np.maximum(inside, vein > 0.5) * 1.0, 1.0))


def _vein_darkness(places: Array) -> Array:
    """1 on the veins, thick at the root and thin at the tip, and on the stigma; 0 elsewhere."""
    width = 0.0050 - 0.0025 * (places[..., 0] + 0.45)
    veins = 0.5 + 0.5 * np.tanh((width - _distance(places, WING_VEINS)) / 0.0012)
    corners = wing_template()[[WING_LANDMARKS.index(end) for end in ("stigma_base", "stigma_tip")]]
    along = (places - corners.mean(axis=0) + (0.0, 0.007)) / (0.052, 0.010)
    stigma = 0.9 / (1.0 + (along**2).sum(axis=-1) ** 4)
    return np.asarray(np.maximum(veins, stigma))


def _membrane(inside: Mask) -> Array:
    """Amber, each cell a little different, with slow shimmer and fine hairs."""
    rng = np.random.default_rng(0)
    cells, count = ndimage.label(inside)
    tints = rng.normal(scale=6.0, size=(count + 1, 3))
    shimmer = ndimage.gaussian_filter(rng.normal(size=(*inside.shape, 3)), (40, 40, 0)) * 700.0
    hairs = ndimage.gaussian_filter(rng.normal(size=inside.shape), 2.0) * 70.0
    return np.asarray(_MEMBRANE + tints[cells] + shimmer + hairs[..., None])


def _distance(places: Array, veins: tuple[tuple[str, ...], ...]) -> Array:
    """From each place to the nearest of these veins."""
    curve = np.vstack([_smooth_curve(vein) for vein in veins])
    return np.asarray(cKDTree(curve).query(places)[0])


def _smooth_curve(vein: tuple[str, ...]) -> Array:
    """A dense curve through the template's landmarks of one vein."""
    knots = wing_template()[[WING_LANDMARKS.index(label) for label in vein]]
    length = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(knots, axis=0), axis=1)))
    steps = np.linspace(0.0, length[-1], int(length[-1] * _PER_UNIT))
    return np.asarray(CubicSpline(length, knots, bc_type="natural")(steps))


def _sampled(layer: Array, places: Array) -> Array:
    """The texture at these places of the template; 0 outside of it."""
    columns, rows = (places - _CORNER).T * _PER_UNIT
    return np.asarray(ndimage.map_coordinates(layer, [rows, columns], order=1))


def _whole(places: Array, seen: Array, torn: Array) -> Array:
    """Is 0 where a torn-off landmark is near, and nearer than any that is seen; else 1."""
    if len(torn) == 0:
        return np.ones(len(places))
    to_torn, to_seen = cKDTree(torn).query(places)[0], cKDTree(seen).query(places)[0]
    inwards = np.maximum(to_torn - to_seen + 0.01, to_torn - 0.07)
    return np.asarray(0.5 + 0.5 * np.tanh(inwards / 0.0015))


def _on_margin() -> Mask:
    return np.isin(WING_LANDMARKS, WING_MARGIN)


def _require_wing(landmarks: Array, size: tuple[int, int]) -> Mask:
    """Which landmarks are seen, if they are a wing that lies in the picture."""
    if landmarks.shape != (len(WING_LANDMARKS), 2):
        raise ShapeError(
            f"A wing has {len(WING_LANDMARKS)} landmarks in 2-D; got size {landmarks.shape}."
        )
    seen = ~np.isnan(landmarks[:, 0])
    if seen.sum() < 10:
        raise ShapeError(
            f"A wing needs at least 10 landmarks to be painted; {seen.sum()} are seen."
        )
    outside = seen & ((landmarks < 0) | (landmarks > np.array(size[::-1]) - 1)).any(axis=1)
    if outside.any():
        j = int(np.flatnonzero(outside)[0])
        raise ShapeError(
            f"Landmark {WING_LANDMARKS[j]!r} lies at {landmarks[j].tolist()}, outside of the "
            f"{size[1]} × {size[0]} picture. Move the wing, or give size=(rows, columns)."
        )
    return seen
