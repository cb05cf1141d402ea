"""An image moved into the plane of the reference by the inverse of its warp.

Every pixel of the picture asks the inverse where it comes from; nothing is scattered, so nothing
is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from defgpa._arrays import Array, Mask, blocks
from defgpa.errors import ShapeError
from defgpa.images._frame import Frame, Image, PixelWarp, Placement, common_frame, rows_down
from defgpa.images._inverse_map import TILE, InverseMap
from defgpa.images._sampling import Sampler, Sampling, linear, require_image
from defgpa.warps import Invertible

TOLERANCE = 0.01  # pixels of the picture


@dataclass(frozen=True, eq=False)
class Picture:
    """A warped image.

    Attributes
    ----------
    pixels : array (rows, columns) or (rows, columns, channels)
        In the dtype of the image; 0 where masked.
    mask : array (rows, columns) of bool
        True where the picture shows the image; False outside of it, and where the warp folds.
    frame : Frame
        Where the pixels lie in the plane of the reference.
    """

    pixels: Image
    mask: Mask
    frame: Frame

    @property
    def origin(self) -> Array:
        """(2,): reference coordinates of the first pixel."""
        return np.array(self.frame.origin)


def warp_image(
    image: ArrayLike,
    warp: Invertible,
    frame: Frame | None = None,
    *,
    placement: Placement = rows_down,
    sampling: Sampling = linear,
    tolerance: float = TOLERANCE,
) -> Picture:
    """The image of a datum shape, moved into the plane of the reference.

    Parameters
    ----------
    image : array (rows, columns) or (rows, columns, channels)
        Grey, RGB, RGBA or any other channels, of any real dtype.
    warp : Warp
        From the plane of the image to that of the reference (``alignment.warps[i]``), or anything
        else that is called with points and has a ``jacobian``.
    frame : Frame, optional
        The raster of the picture; by default one around the warped image, with pixels of the
        image's own size. ``common_frame`` makes one for several images.
    placement : callable
        Where the image lies in the plane of its landmarks: ``rows_down`` (landmarks are columns
        and rows), ``rows_up`` (TPS files), or a function from the image to a ``Frame``.
    sampling : callable
        ``linear``, ``nearest`` (labels) or ``cubic``; or a function that takes the image and
        returns a function of positions (p, 2), column and row.
    tolerance : float
        How far, in pixels of the picture, the warp of a pixel's source may be from the pixel.

    Returns
    -------
    Picture
        ``.pixels``, ``.mask``, ``.frame`` and ``.origin``.

    Notes
    -----
    To have the picture the way round of the image, pose the alignment first:
    ``alignment.posed_like(alignment.shapes[0])``.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> rng = np.random.default_rng(0)
    >>> base = rng.uniform(0, 100, size=(30, 2))
    >>> shapes = [base + 3 * np.sin(base[:, ::-1] / 30 + k) for k in range(4)]
    >>> a = defgpa.DefGPA().fit(shapes).alignment_.posed_like(shapes[0])
    >>> image = rng.integers(0, 255, size=(100, 100, 3), dtype=np.uint8)
    >>> picture = defgpa.images.warp_image(image, a.warps[0])
    >>> picture.pixels.dtype, picture.pixels.ndim, bool(picture.mask.any())
    (dtype('uint8'), 3, True)
    """
    array = require_image(image)
    if not (np.isfinite(tolerance) and tolerance > 0):
        raise ShapeError(
            f"The 'tolerance' parameter must be a positive number of pixels. Got {tolerance!r}."
        )
    if frame is None:
        frame = common_frame([array], [warp], placement=placement)
    inverse = InverseMap(PixelWarp(warp, placement(array), frame), tolerance)
    rows, columns = frame.shape
    picture = Picture(
        np.zeros((rows, columns, *array.shape[2:]), dtype=array.dtype),
        np.zeros((rows, columns), dtype=np.bool_),
        frame,
    )
    sampler = sampling(array)
    # about a million pixels at a time; whole tiles, so that none is solved twice
    for part in blocks(rows, max(1, (1 << 20) // (columns * TILE)) * TILE):
        _fill(picture, part, array.shape, inverse.rows(part), sampler)
    return picture


def _fill(
    picture: Picture, part: slice, size: tuple[int, ...], sources: Array, sampler: Sampler
) -> None:
    """Rows of the picture from the places they come from."""
    covered = _within(sources, size)
    picture.mask[part] = covered
    picture.pixels[part][covered] = sampler(sources[:, covered].T).reshape(-1, *size[2:])


def _within(sources: Array, size: tuple[int, ...]) -> Mask:
    """(rows, columns): whether a source lies on a pixel of an image of this size."""
    rows, columns = size[:2]
    column, row = sources
    return np.asarray(
        (column >= -0.5) & (column < columns - 0.5) & (row >= -0.5) & (row < rows - 0.5)
    )
