"""Sample an image between its pixels.

Each way takes an image, prepares it once, and returns a function of positions (column, row) that
keeps the dtype of the image.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from defgpa.arrays import Array, RawArray
from defgpa.errors import ShapeError
from defgpa.threads import map_blocks, split_range

Image = RawArray
Sampler = Callable[[Array], Image]  # (p, 2) positions to (p, channels)
Sampling = Callable[[Image], Sampler]


def linear(image: Image) -> Sampler:
    """Interpolate linearly between the four pixels around a position.

    Parameters
    ----------
    image : ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_channels)
        Pixels of any type of real numbers.

    Returns
    -------
    callable
        From positions (p, 2), column and row, to values (p, n_channels).

    Examples
    --------
    >>> import numpy as np
    >>> linear(np.array([[0, 10], [20, 30]], dtype=np.uint8))(np.array([[0.5, 0.5]]))
    array([[15]], dtype=uint8)
    """
    # (channels, rows · columns): one flat array per channel
    planes = np.ascontiguousarray(image.reshape(image.shape[0] * image.shape[1], -1).T)

    def sample_at(positions: Array) -> Image:
        values = np.empty((len(positions), len(planes)), dtype=image.dtype)

        def fill(block: slice) -> None:
            _sample_linearly(planes, positions[block], image.shape, values[block])

        map_blocks(
            fill, split_range(len(positions), 1 << 14)
        )  # so few that their numbers stay in cache
        return values

    return sample_at


def nearest(image: Image) -> Sampler:
    """Take the value of the nearest pixel, for images of labels.

    Parameters
    ----------
    image : ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_channels)
        Pixels of any type of real numbers.

    Returns
    -------
    callable
        From positions (p, 2), column and row, to values (p, n_channels).

    Examples
    --------
    >>> import numpy as np
    >>> nearest(np.array([[3, 7], [9, 4]]))(np.array([[0.8, 0.3]]))
    array([[7]])
    """

    def sample_at(positions: Array) -> Image:
        columns, rows = np.rint(positions).astype(np.intp).T
        columns = columns.clip(0, image.shape[1] - 1)
        rows = rows.clip(0, image.shape[0] - 1)
        return np.asarray(image[rows, columns]).reshape(len(positions), -1)

    return sample_at


def cubic(image: Image) -> Sampler:
    """Evaluate the cubic spline through the pixels: sharper and slower than linear, more memory.

    Parameters
    ----------
    image : ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_channels)
        Pixels of any type of real numbers.

    Returns
    -------
    callable
        From positions (p, 2), column and row, to values (p, n_channels).

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.sin(np.arange(32.0) / 3) * np.ones((16, 1))
    >>> bool(np.allclose(cubic(wave)(np.array([[14.5, 8.0]])), np.sin(14.5 / 3), atol=1e-3))
    True
    """
    layers = image.reshape(*image.shape[:2], -1)
    splines = [
        ndimage.spline_filter(layers[..., k].astype(np.float64), order=3, mode="mirror")
        for k in range(layers.shape[2])
    ]

    def sample_at(positions: Array) -> Image:
        values = np.empty((len(positions), len(splines)), dtype=image.dtype)

        def fill(channel: int) -> None:
            between = ndimage.map_coordinates(
                splines[channel], positions.T[::-1], order=3, mode="mirror", prefilter=False
            )
            values[:, channel] = convert_dtype(between, image.dtype)

        map_blocks(fill, range(len(splines)))
        return values

    return sample_at


def require_image(image: object) -> Image:
    """Return an image as an array (rows, columns[, channels]) of reals, or raise a ShapeError."""
    array = np.asarray(image)
    if array.dtype.kind not in "biuf" or array.ndim not in (2, 3) or 0 in array.shape:
        raise ShapeError(
            "An image must be an array (rows, columns) or (rows, columns, channels) of real "
            f"numbers; got {array.dtype} of size {array.shape}."
        )
    return array


def _sample_linearly(planes: Image, positions: Array, size: tuple[int, ...], out: Image) -> None:
    """Sum the four neighbours, each weighted by the area opposite to it."""
    # single precision holds 16-bit pixels and their mixtures; anything finer takes double
    small = planes.dtype.itemsize <= 2 or planes.dtype == np.float32
    real = np.float32 if small else np.float64
    column, u = _split(positions[:, 0], size[1], real)
    row, v = _split(positions[:, 1], size[0], real)
    right, below = int(size[1] > 1), int(size[0] > 1) * size[1]
    corner = row * size[1] + column
    neighbours = (
        (corner, (1 - u) * (1 - v)),
        (corner + right, u * (1 - v)),
        (corner + below, (1 - u) * v),
        (corner + right + below, u * v),
    )
    for plane, values in zip(planes, out.T, strict=True):
        values[:] = convert_dtype(
            sum(plane.take(indices) * weight for indices, weight in neighbours), out.dtype
        )


def _split(
    position: Array, length: int, real: type[np.floating]
) -> tuple[NDArray[np.intp], RawArray]:
    """Split positions into the pixel before and the fraction to the next; ends repeat."""
    before = position.astype(np.intp).clip(0, max(length - 2, 0))
    return before, (position - before).clip(0.0, 1.0).astype(real)


def convert_dtype(values: RawArray, kind: np.dtype[Any]) -> RawArray:
    """Convert numbers to a dtype: integers rounded and clipped, booleans by majority."""
    if kind.kind == "f":
        return values.astype(kind)
    if kind.kind == "b":
        return np.asarray(values > 0.5)
    limits = np.iinfo(kind)
    return np.rint(values).clip(limits.min, limits.max).astype(kind)
