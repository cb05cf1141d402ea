"""Deviation of warped images from each other, pixel by pixel.

The pixels are test points that no fit has seen: the better the warps, the smaller the standard
deviation of what they bring to the same place (the paper's image intensity deviation). The
intensities are compared as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index, Mask, RawArray
from defgpa.errors import ShapeError
from defgpa.images._frame import Frame, Placement, common_frame, rows_down
from defgpa.images._inverse_map import TILE
from defgpa.images._picture import TOLERANCE, Picture, warp_image
from defgpa.images._sampling import Image, Sampling, convert_dtype, linear, require_image


@dataclass(frozen=True, eq=False)
class IntensityDeviation:
    """The deviation of warped images at every pixel, with their median and coverage.

    Attributes
    ----------
    deviation : array (rows, columns) or (rows, columns, channels)
        Standard deviation (n − 1) over the shapes that cover a pixel; NaN where fewer than two do.
    median : array like it
        In the dtype of the images; 0 where no shape covers the pixel.
    coverage : array (rows, columns) of int
        How many shapes cover each pixel.
    frame : Frame
        Where the pixels lie in the plane of the reference.
    alignment : Alignment
        The alignment in the pose of the pictures: its reference and warps fit the frame.
    """

    deviation: Array
    median: Image
    coverage: Index
    frame: Frame
    alignment: Alignment

    @property
    def common(self) -> Mask:
        """(rows, columns): the area that all shapes cover."""
        return np.asarray(self.coverage == len(self.alignment.warps))

    @property
    def mean(self) -> float:
        """The mean deviation over the area that all shapes cover."""
        common = self.common
        if not common.any():
            raise ShapeError(
                "No pixel is covered by all images, so their deviation has no mean. Look at "
                "coverage: an image may be placed wrongly (placement=rows_up?)."
            )
        return float(self.deviation[common].mean())

    @property
    def origin(self) -> Array:
        """(2,): reference coordinates of the first pixel."""
        return np.array(self.frame.origin)


def intensity_deviation(
    images: Sequence[ArrayLike],
    alignment: Alignment,
    frame: Frame | None = None,
    *,
    placement: Placement = rows_down,
    sampling: Sampling = linear,
    tolerance: float = TOLERANCE,
    memory_budget: int = 1 << 28,
) -> IntensityDeviation:
    """Compute the standard deviation and median of the warped images, per pixel and channel.

    Parameters
    ----------
    images : sequence of n images
        One per shape of the alignment, of the same dtype and with the same channels.
    alignment : Alignment
        Of the landmarks in these images.
    frame : Frame, optional
        The raster, in the coordinates of this alignment. By default the alignment is posed like
        its first shape, and the raster holds all images.
    placement, sampling, tolerance
        As in ``warp_image``.
    memory_budget : int
        Bytes that the warped images may take together: so many of their rows are made at a time.

    Returns
    -------
    IntensityDeviation
        ``.deviation``, ``.median``, ``.coverage``, ``.mean`` and more.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> rng = np.random.default_rng(0)
    >>> base = rng.uniform(0, 100, size=(30, 2))
    >>> shapes = [base, base + [4, 0], base + [0, 7]]
    >>> first = rng.uniform(size=(100, 100))
    >>> images = [first, np.roll(first, 4, axis=1), np.roll(first, 7, axis=0)]
    >>> a = defgpa.DefGPA(defgpa.Affine()).fit(shapes).alignment_
    >>> spread = intensity_deviation(images, a)
    >>> bool(spread.mean < 0.01), int(spread.coverage.max())
    (True, 3)
    """
    arrays = _check_images(images, alignment)
    if frame is None:
        alignment = alignment.posed_like(alignment.shapes[0])
        frame = common_frame(arrays, alignment.warps, placement=placement)
    size = (*frame.shape, *arrays[0].shape[2:])
    spread = IntensityDeviation(
        np.full(size, np.nan),
        np.zeros(size, dtype=arrays[0].dtype),
        np.zeros(frame.shape, dtype=np.intp),
        frame,
        alignment,
    )
    row = 8 * int(np.prod(arrays[0].shape[2:])) * len(arrays) * frame.shape[1]
    for rows, band in frame.bands(max(1, memory_budget // (row * TILE)) * TILE):  # whole tiles
        pictures = [
            warp_image(
                image, warp, band, placement=placement, sampling=sampling, tolerance=tolerance
            )
            for image, warp in zip(arrays, alignment.warps, strict=True)
        ]
        _fill(spread, rows, pictures)
    return spread


def _check_images(images: Sequence[ArrayLike], alignment: Alignment) -> list[Image]:
    """Return the images as arrays if there is one per shape and they can be compared."""
    names = alignment.shapes.names
    if len(images) != len(names):
        raise ShapeError(f"There must be one image per shape, {len(names)}; got {len(images)}.")
    arrays = [require_image(image) for image in images]
    kind = _describe_channels(arrays[0])
    for name, array in zip(names, arrays, strict=True):
        if _describe_channels(array) != kind:
            raise ShapeError(
                f"The images must be alike: that of shape {names[0]!r} has {kind}, that of "
                f"shape {name!r} {_describe_channels(array)}."
            )
    return arrays


def _describe_channels(image: Image) -> str:
    channels = image.shape[2] if image.ndim == 3 else 1
    return f"{channels} channel{'s' * (channels != 1)} of {image.dtype}"


def _fill(spread: IntensityDeviation, rows: slice, pictures: list[Picture]) -> None:
    """Fill in the statistics of some rows."""
    masks = np.stack([picture.mask for picture in pictures])
    coverage = masks.sum(axis=0)
    is_covered, has_spread = coverage > 0, coverage > 1
    stack = np.stack([picture.pixels for picture in pictures])
    spread.coverage[rows] = coverage
    spread.median[rows][is_covered] = convert_dtype(
        _compute_medians(stack[:, is_covered], masks[:, is_covered]), stack.dtype
    )
    spread.deviation[rows][has_spread] = _compute_deviations(
        stack[:, has_spread], masks[:, has_spread]
    )


def _compute_medians(values: RawArray, mask: Mask) -> Array:
    """Return the median (p, …) of the values (n, p, …) in the mask (n, p)."""
    ranked = np.sort(
        np.where(_expand_mask(mask, values), values.astype(np.float64), np.inf), axis=0
    )
    count = mask.sum(axis=0)
    pixels = np.arange(len(count))
    return np.asarray(0.5 * (ranked[(count - 1) // 2, pixels] + ranked[count // 2, pixels]))


def _compute_deviations(values: RawArray, mask: Mask) -> Array:
    """Return the standard deviation (p, …), by n − 1, of values (n, p, …) in a mask (n, p)."""
    counted = _expand_mask(mask, values).astype(np.float64)
    count = counted.sum(axis=0)
    mean = (counted * values).sum(axis=0) / count
    return np.asarray(np.sqrt((counted * (values - mean) ** 2).sum(axis=0) / (count - 1)))


def _expand_mask(mask: Mask, values: RawArray) -> Mask:
    """Return the mask with an axis of length 1 for the channels, if there are any."""
    return mask.reshape(*mask.shape, *[1] * (values.ndim - mask.ndim))
