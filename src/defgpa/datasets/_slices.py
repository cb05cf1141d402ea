"""Slices of one piece of tissue in several stains, as a microscope shows them.

No tissue was cut. A field of glands is painted once, coloured for every stain, and each slice is
stretched and bent as a knife and a water bath would do it; the landmarks are glands that all
slices show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree

from defgpa.arrays import Array
from defgpa.datasets._deformations import make_affine
from defgpa.datasets._synthetic import (
    Synthetic,
    centre_points,
    make_observations,
    make_waves,
    sample_amounts,
    sample_rotations,
)
from defgpa.shapes import Shapes

_SIZE = (260, 340)  # rows and columns of a picture
_OVERSAMPLING = 2  # texture pixels per picture pixel
_PAPER = np.array([244.0, 242.0, 243.0])
_STAINS = {  # tissue, nuclei
    "HE": ((232, 160, 190), (110, 60, 140)),
    "CD31": ((205, 205, 222), (120, 72, 40)),
    "Ki67": ((214, 210, 200), (96, 62, 30)),
    "PAS": ((226, 186, 214), (150, 40, 110)),
    "Gomori": ((196, 210, 186), (58, 84, 110)),
}


@dataclass(frozen=True, eq=False)
class Slices:
    """Pictures of slices and their landmarks.

    Attributes
    ----------
    shapes : Shapes
        Landmarks in pixels: x is the column, y the row, from the middle of the first pixel.
    images : tuple of arrays (rows, columns, 3) of uint8
        One for each shape.
    family : Synthetic
        The same landmarks with their truth.
    """

    shapes: Shapes
    images: tuple[NDArray[np.uint8], ...]
    family: Synthetic


def make_slices(n: int = 5, *, noise: float = 0.7, seed: int = 0) -> Slices:
    """Make pictures of consecutive slices in different stains, with 36 landmarks each.

    Parameters
    ----------
    n : int
        Slices; the five stains are taken in turn.
    noise : float
        Standard deviation of the marking, in pixels.
    seed : int
        The same seed, the same slices.

    Returns
    -------
    Slices
        Pictures of slices and their landmarks.

    Examples
    --------
    >>> slices = make_slices(3)
    >>> slices.shapes
    Shapes(3 shapes, 36 landmarks, 2-D, none missing)
    >>> slices.images[0].shape, slices.shapes.names[0]
    ((260, 340, 3), 'slice_1_HE')
    """
    rng = np.random.default_rng(seed)
    landmarks, layers = _make_tissue()
    truth, middle = centre_points(landmarks), landmarks.mean(axis=0)
    linear = sample_rotations(rng, n, 2, max_angle=0.2)
    linear *= 1.0 + 0.05 * sample_amounts(rng, n, 2)[:, None, :]
    shifts = middle + rng.uniform(-6.0, 6.0, size=(n, 2))
    ripples = make_waves(rng, n, truth, count=5, height=0.055)
    stains = [list(_STAINS)[i % len(_STAINS)] for i in range(n)]
    names = [f"slice_{i + 1}_{stain}" for i, stain in enumerate(stains)]
    steps = (ripples, map(make_affine, linear, shifts))
    family = make_observations(truth, steps, rng, noise=noise, names=names)
    rows, columns = np.mgrid[: _SIZE[0], : _SIZE[1]]
    pixels = np.column_stack([columns.ravel(), rows.ravel()]).astype(np.float64)
    images = tuple(
        _paint_slice(layers, warp(pixels) + middle, stain)
        for warp, stain in zip(family.warps, stains, strict=True)
    )
    return Slices(family.shapes, images, family)


@cache
def _make_tissue() -> tuple[Array, tuple[Array, Array, Array]]:
    """Make the tissue that all slices are cut from: landmarks, outline, nuclei and fibres.

    The density of tissue and of nuclei at each place of the texture is between 0 and 1.

    Returns
    -------
    landmarks : array (36, 2)
    texture : three arrays (height, width)
        The density of tissue and of nuclei, and fibres.
    """
    rng = np.random.default_rng(11)
    rows, columns = (_OVERSAMPLING * size for size in _SIZE)
    y, x = np.mgrid[:rows, :columns] / _OVERSAMPLING
    u, v = (x - 170.0) / 140.0, (y - 130.0) / 105.0
    lumps = ndimage.gaussian_filter(rng.normal(size=(rows, columns)), 45.0, mode="wrap")
    edge = u**2 + v**2 + 0.12 * lumps / lumps.std()
    tissue = 1.0 / (1.0 + np.exp((edge - 0.88) / 0.025))
    centres, radii = _place_glands(rng)
    distance, nearest = cKDTree(centres).query(np.stack([x, y], axis=-1))
    around = np.arctan2(y - centres[nearest, 1], x - centres[nearest, 0])
    lobes = 0.16 * np.sin(2.0 * around + nearest) + 0.1 * np.sin(3.0 * around + 2.0 * nearest)
    depth = distance - radii[nearest] * (1.0 + lobes)
    ring = np.exp(-((depth / 2.6) ** 2))
    lumen = 1.0 / (1.0 + np.exp((depth + 3.0) / 0.8))
    specks = ndimage.gaussian_filter(rng.normal(size=(rows, columns)), 2.0)
    specks = np.clip(specks / specks.std() - 1.2, 0.0, 1.0)
    fibres = ndimage.gaussian_filter(rng.normal(size=(rows, columns)), (1.5, 9.0))
    u, v = ((centres - (170.0, 130.0)) / (122.0, 88.0)).T
    inside = centres[u**2 + v**2 < 0.92]
    nuclei = np.clip(ring + 0.6 * specks * (1.0 - lumen), 0.0, 1.0)
    return inside[:36], (tissue * (1.0 - 0.9 * lumen), nuclei, fibres / fibres.std())


def _place_glands(rng: np.random.Generator) -> tuple[Array, Array]:
    """Place glands on a jittered grid, from the middle outwards: centres and radii."""
    x, y = np.meshgrid(np.arange(20.0, 340.0, 30.0), np.arange(15.0, 260.0, 28.0))
    x[::2] += 15.0
    centres = np.column_stack([x.ravel(), y.ravel()]) + rng.uniform(-6.0, 6.0, size=(x.size, 2))
    order = np.argsort(((centres - (170.0, 130.0)) ** 2).sum(axis=1))
    return centres[order], rng.uniform(4.5, 9.5, size=x.size)


def _paint_slice(layers: Sequence[Array], places: Array, stain: str) -> NDArray[np.uint8]:
    """Paint the picture whose pixels show these places of the tissue."""
    at = _OVERSAMPLING * places[:, ::-1].T
    tissue, nuclei, fibres = (
        ndimage.map_coordinates(layer, at, order=1, mode="nearest")[:, None] for layer in layers
    )
    background, dark = (np.array(colour, dtype=np.float64) for colour in _STAINS[stain])
    tissue_colour = background + nuclei * (dark - background) + 6.0 * fibres
    mixed = _PAPER + tissue * (tissue_colour - _PAPER)
    return np.asarray(mixed.round().clip(0, 255), dtype=np.uint8).reshape(*_SIZE, 3)
