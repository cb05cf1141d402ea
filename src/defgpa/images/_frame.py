"""Frames: where the pixels of a picture lie, by origin, step and size.

The same object places a datum image in the plane of its landmarks and a warped picture in the
plane of the reference, so that nothing else has to know which way the y axis points.

One raster around several warped images: far from its landmarks a warp may run away or fold, so a
frame reaches only where the warp is upright, and no farther than half an image beyond what its
typical slope would make of the image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array
from defgpa.errors import ShapeError
from defgpa.images._sampling import Image
from defgpa.threads import split_range
from defgpa.warps import Invertible

FLAT = "This warp flattens its image: there is nothing to show."


@dataclass(frozen=True)
class Frame:
    """A raster in the plane: the pixel in column c and row r lies at origin + step · (c, r).

    Parameters
    ----------
    origin : (x, y)
        Coordinates of the middle of the first pixel.
    shape : (rows, columns)
        Size in pixels.
    step : (dx, dy)
        From one column to the next and from one row to the next; dy < 0 where y points up.

    Examples
    --------
    >>> frame = Frame(origin=(10.0, 20.0), shape=(3, 4), step=(0.5, 0.5))
    >>> frame.points([[2, 1]])
    array([[11. , 20.5]])
    >>> frame.pixels([[11.0, 20.5]])
    array([[2., 1.]])
    """

    origin: tuple[float, float]
    shape: tuple[int, int]
    step: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        rows, columns = self.shape
        if min(self.shape) < 1 or rows * columns > 1 << 28:  # beyond, a unit is surely mistaken
            raise ShapeError(
                f"A picture of {columns} × {rows} pixels of size {self.pixel_size:g} cannot be "
                "made. Give another pixel_size, in the units of the reference."
            )
        if not (np.isfinite([*self.origin, *self.step]).all() and all(self.step)):
            raise ShapeError(
                "A frame needs a finite origin and a step other than 0; "
                f"got origin {self.origin} and step {self.step}."
            )

    @property
    def pixel_size(self) -> float:
        """The side of a pixel: the mean of ``|dx|`` and ``|dy|``."""
        return float(np.abs(self.step).mean())

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top edge, as ``imshow(extent=…)`` takes them."""
        rows, columns = self.shape
        (left, top), (right, bottom) = self.points([[-0.5, -0.5], [columns - 0.5, rows - 0.5]])
        return float(left), float(right), float(bottom), float(top)

    def points(self, pixels: ArrayLike) -> Array:
        """Return where pixels (column, row) lie, (p, 2); fractions are allowed."""
        return np.asarray(self.origin) + np.asarray(pixels, dtype=np.float64) * self.step

    def pixels(self, points: ArrayLike) -> Array:
        """Return the column and the row (p, 2), with fractions, of points of the plane."""
        return (np.asarray(points, dtype=np.float64) - self.origin) / self.step

    def bands(self, rows: int) -> Iterator[tuple[slice, Frame]]:
        """Yield consecutive bands of at most this many rows: the rows of each, and its frame."""
        for band in split_range(self.shape[0], rows):
            x, y = map(float, self.points([0, band.start]))
            yield band, Frame((x, y), (band.stop - band.start, self.shape[1]), self.step)


@dataclass(frozen=True, eq=False)
class PixelWarp:
    """``warp``, read in the pixels of ``source`` and written in the pixels of ``frame``."""

    warp: Invertible
    source: Frame
    frame: Frame

    def __call__(self, points: ArrayLike) -> Array:
        """Return the column and the row in the frame (p, 2) of columns and rows in the source."""
        return self.frame.pixels(self.warp(self.source.points(points)))

    def jacobian(self, points: ArrayLike) -> Array:
        """Return frame pixels per source pixel, (p, 2, 2)."""
        slopes = self.warp.jacobian(self.source.points(points))
        return slopes * self.source.step / np.asarray(self.frame.step)[:, None]


Placement = Callable[[Image], Frame]


def rows_down(image: Image) -> Frame:
    """Place an image so that (x, y) is column x and row y, from the middle of the first pixel.

    Parameters
    ----------
    image : ndarray of shape (n_rows, n_columns, …)
        Only its size is used.

    Returns
    -------
    Frame
        A raster in the plane: the pixel in column c and row r lies at origin + step · (c, r).

    Examples
    --------
    >>> import numpy as np
    >>> rows_down(np.zeros((400, 600))).points([[20, 0]])
    array([[20.,  0.]])
    """
    return Frame((0.0, 0.0), (int(image.shape[0]), int(image.shape[1])))


def rows_up(image: Image) -> Frame:
    """Place an image so that (x, y) is column x and row height − y, as in TPS files.

    Parameters
    ----------
    image : ndarray of shape (n_rows, n_columns, …)
        Only its size is used.

    Returns
    -------
    Frame
        A raster in the plane: the pixel in column c and row r lies at origin + step · (c, r).

    Examples
    --------
    >>> import numpy as np
    >>> rows_up(np.zeros((400, 600))).points([[20, 0]])
    array([[ 20., 400.]])
    """
    height, width = image.shape[:2]
    return Frame((0.0, float(height)), (int(height), int(width)), (1.0, -1.0))


def common_frame(
    images: Iterable[Image],
    warps: Sequence[Invertible],
    *,
    pixel_size: float | None = None,
    placement: Placement = rows_down,
) -> Frame:
    """Make a raster that holds all images, each through its warp.

    Parameters
    ----------
    images : n images
        Only their sizes matter.
    warps : sequence of n Warp
        As in ``alignment.warps``.
    pixel_size : float, optional
        Side of a pixel in the units of the reference; by default as in the first image.
    placement : callable
        Where the images lie in the planes of their landmarks; see ``warp_image``.

    Returns
    -------
    Frame
        A raster in the plane: the pixel in column c and row r lies at origin + step · (c, r).

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> base = np.random.default_rng(0).uniform(0, 100, size=(30, 2))
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit([base, base + 5]).alignment_.posed_like(base)
    >>> common_frame([np.zeros((100, 120))] * 2, a.warps).shape  # 5 pixels apart
    (105, 125)
    """
    sources = [placement(image) for image in images]
    if len(sources) != len(warps) or not sources:
        raise ShapeError(f"There must be one image per warp, {len(warps)}; got {len(sources)}.")
    boxes = [_find_image_box(warp, source) for warp, source in zip(warps, sources, strict=True)]
    low = np.min([low for low, _ in boxes], axis=0)
    high = np.max([high for _, high in boxes], axis=0)
    size = sources[0].pixel_size if pixel_size is None else float(pixel_size)
    if not (np.isfinite(size) and size > 0):
        raise ShapeError(f"The 'pixel_size' parameter must be positive. Got {pixel_size!r}.")
    return _make_frame(low, high, size * np.sign(sources[0].step))


def _make_frame(low: Array, high: Array, step: Array) -> Frame:
    """Make a frame of pixels at whole multiples of the step whose squares cover the box.

    Parameters
    ----------
    low, high, step : array (2,)
        Corners of the box, and the signed size of a pixel along x and y.
    """
    start, stop = np.sort([low / step, high / step], axis=0)
    # less than a millionth of a pixel is no reason for another row
    first, last = np.floor(start + 0.5 + 1e-6), np.ceil(stop - 0.5 - 1e-6)
    columns, rows = np.maximum(last - first, 0.0) + 1.0
    x, y = first * step
    return Frame((float(x), float(y)), (int(rows), int(columns)), (float(step[0]), float(step[1])))


def _find_image_box(warp: Invertible, source: Frame) -> tuple[Array, Array]:
    """Return the lower and the upper corner of the box around a warped image."""
    rows, columns = source.shape
    x, y = (np.linspace(-0.5, length - 0.5, 33) for length in (columns, rows))  # edges included
    points = source.points(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2))
    images, slopes = warp(points), warp.jacobian(points)
    determinants = np.linalg.det(slopes)
    upright = determinants * np.sign(np.nanmedian(determinants)) > 0.0
    if not upright.any():
        raise ShapeError(FLAT)
    points, images = points[upright], images[upright]
    slope = np.median(slopes[upright], axis=0)
    affine_images = points @ slope.T + np.median(images - points @ slope.T, axis=0)
    low, high = affine_images.min(axis=0), affine_images.max(axis=0)
    slack = 0.5 * (high - low)
    return (
        np.maximum(images.min(axis=0), low - slack),
        np.minimum(images.max(axis=0), high + slack),
    )
