"""One raster around several warped images.

Far from its landmarks a warp may run away or fold. So a frame reaches only where the warp is
upright, and no farther than half an image beyond what its typical slope would make of the image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from defgpa._arrays import Array
from defgpa.errors import ShapeError
from defgpa.images._frame import Frame, Image, Placement, rows_down
from defgpa.warps import Invertible

FLAT = "This warp flattens its image: there is nothing to show."
_SAMPLES = 33  # along each side of an image
_ROUNDING = 1e-6  # pixels: less than this is no reason for another row


def common_frame(
    images: Iterable[Image],
    warps: Sequence[Invertible],
    *,
    pixel_size: float | None = None,
    placement: Placement = rows_down,
) -> Frame:
    """A raster that holds all images, each through its warp.

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
    boxes = [_warped_box(warp, source) for warp, source in zip(warps, sources, strict=True)]
    low = np.min([low for low, _ in boxes], axis=0)
    high = np.max([high for _, high in boxes], axis=0)
    size = sources[0].pixel_size if pixel_size is None else float(pixel_size)
    if not (np.isfinite(size) and size > 0):
        raise ShapeError(f"The 'pixel_size' parameter must be positive. Got {pixel_size!r}.")
    return _raster(low, high, size * np.sign(sources[0].step))


def _raster(low: Array, high: Array, step: Array) -> Frame:
    """Pixels at whole multiples of the step whose squares cover the box."""
    start, stop = np.sort([low / step, high / step], axis=0)
    first, last = np.floor(start + 0.5 + _ROUNDING), np.ceil(stop - 0.5 - _ROUNDING)
    columns, rows = np.maximum(last - first, 0.0) + 1.0
    x, y = first * step
    return Frame((float(x), float(y)), (int(rows), int(columns)), (float(step[0]), float(step[1])))


def _warped_box(warp: Invertible, source: Frame) -> tuple[Array, Array]:
    """The lower and the upper corner of the box around a warped image."""
    points = _samples(source)
    images, slopes = warp(points), warp.jacobian(points)
    determinants = np.linalg.det(slopes)
    upright = determinants * np.sign(np.nanmedian(determinants)) > 0.0
    if not upright.any():
        raise ShapeError(FLAT)
    points, images = points[upright], images[upright]
    slope = np.median(slopes[upright], axis=0)
    typical = points @ slope.T + np.median(images - points @ slope.T, axis=0)
    low, high = typical.min(axis=0), typical.max(axis=0)
    slack = 0.5 * (high - low)
    return (
        np.maximum(images.min(axis=0), low - slack),
        np.minimum(images.max(axis=0), high + slack),
    )


def _samples(source: Frame) -> Array:
    """(k, 2): points all over an image, its edges included."""
    rows, columns = source.shape
    x = np.linspace(-0.5, columns - 0.5, _SAMPLES)
    y = np.linspace(-0.5, rows - 0.5, _SAMPLES)
    return source.points(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2))
