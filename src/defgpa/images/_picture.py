"""Warp an image into the plane of the reference, by the inverse of its warp; write it.

Every pixel of the picture asks the inverse where it comes from; nothing is scattered, so nothing
is left out. What a picture does not cover is transparent in its file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array, Mask
from defgpa.errors import FormatError, ShapeError, import_extra
from defgpa.images._frame import Frame, PixelWarp, Placement, common_frame, rows_down
from defgpa.images._inverse_map import TILE, InverseMap
from defgpa.images._sampling import Image, Sampling, linear, require_image
from defgpa.io.atomic import replace_file
from defgpa.threads import split_range
from defgpa.warps import Invertible

TOLERANCE = 0.01  # pixels of the picture
_IMAGEIO = (
    "imageio.v3",
    'Image files are read and written with imageio: pip install "defgpa[images]".',
)
_TRANSPARENT = (".png", ".tif", ".tiff", ".webp")


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
    """Warp the image of a datum shape into the plane of the reference.

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
    for band in split_range(rows, max(1, (1 << 20) // (columns * TILE)) * TILE):
        sources = inverse.map_rows(band)
        covered = _is_within(sources, array.shape)
        picture.mask[band] = covered
        picture.pixels[band][covered] = sampler(sources[:, covered].T).reshape(-1, *array.shape[2:])
    return picture


def _is_within(sources: Array, size: tuple[int, ...]) -> Mask:
    """Return whether a source lies on a pixel of an image of this size, (rows, columns)."""
    rows, columns = size[:2]
    column, row = sources
    return np.asarray(
        (column >= -0.5) & (column < columns - 0.5) & (row >= -0.5) & (row < rows - 0.5)
    )


def read_image(path: str | os.PathLike[str]) -> Image:
    """Read the pixels of an image file, (rows, columns) or (rows, columns, channels).

    Needs imageio: ``pip install "defgpa[images]"``.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Image
        The pixels, and where they lie.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import defgpa
    >>> grey = np.full((4, 5), 7, dtype=np.uint8)
    >>> picture = defgpa.images.Picture(grey, grey > 0, defgpa.images.rows_down(grey))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "grey.png")
    ...     defgpa.images.write_picture(picture, path)
    ...     defgpa.images.read_image(path)[0, 0].tolist()  # grey and opacity
    [7, 255]
    """
    if not Path(path).is_file():
        raise FormatError(f"There is no image file {os.fspath(path)}.")
    try:
        return np.asarray(import_extra(*_IMAGEIO).imread(path, plugin="pillow"))
    except (OSError, ValueError, SyntaxError) as error:
        raise FormatError(f"{os.fspath(path)} cannot be read as an image: {error}") from error


def write_picture(picture: Picture, path: str | os.PathLike[str]) -> None:
    """Write a picture with 8 bits per channel as PNG, TIFF or WebP, transparent where masked.

    Parameters
    ----------
    picture : Picture
        The pixels and their mask.
    path : str or path
        A file that ends with ``.png``, ``.tif``, ``.tiff`` or ``.webp``.
    """
    target = Path(path)
    if target.suffix.lower() not in _TRANSPARENT:
        raise FormatError(
            f"A picture has masked pixels, which a file '{target.suffix}' cannot hold. "
            f"Use one of {', '.join(_TRANSPARENT)}."
        )
    pixels = _add_opacity(picture)
    with replace_file(target) as temporary:
        import_extra(*_IMAGEIO).imwrite(temporary, pixels, plugin="pillow")


def _add_opacity(picture: Picture) -> Image:
    """Return uint8 (rows, columns, 2 or 4): grey or colour, with opacity 0 where masked."""
    if picture.pixels.dtype != np.uint8:
        raise ShapeError(
            f"Only pictures of 8 bits per channel can be written; got {picture.pixels.dtype}. "
            "Scale the pixels to 0 … 255 and make them uint8, or use numpy.save."
        )
    layers = picture.pixels.reshape(*picture.mask.shape, -1)
    if layers.shape[2] not in (1, 3, 4):
        raise ShapeError(f"A picture has 1, 3 or 4 channels; got {layers.shape[2]}.")
    alpha = layers[..., 3] if layers.shape[2] == 4 else np.uint8(255)
    opacity = np.where(picture.mask, alpha, np.uint8(0))
    return np.dstack([layers[..., :3], opacity])
