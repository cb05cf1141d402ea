"""Pictures in files; what a picture does not cover is transparent there."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from defgpa.errors import FormatError, ShapeError, needed
from defgpa.images._frame import Image
from defgpa.images._picture import Picture
from defgpa.io.atomic import replacing

PathLike = str | os.PathLike[str]

_IMAGEIO = (
    "imageio.v3",
    "Image files are read and written with imageio: pip install 'defgpa[images]'.",
)
_TRANSPARENT = (".png", ".tif", ".tiff", ".webp")


def read_image(path: PathLike) -> Image:
    """The pixels of an image file, (rows, columns) or (rows, columns, channels).

    Needs imageio: ``pip install 'defgpa[images]'``.

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
        return np.asarray(needed(*_IMAGEIO).imread(path, plugin="pillow"))
    except (OSError, ValueError, SyntaxError) as error:
        raise FormatError(f"{os.fspath(path)} cannot be read as an image: {error}") from error


def write_picture(picture: Picture, path: PathLike) -> None:
    """A picture with 8 bits per channel as PNG, TIFF or WebP, transparent where it is masked."""
    target = Path(path)
    if target.suffix.lower() not in _TRANSPARENT:
        raise FormatError(
            f"A picture has masked pixels, which a file '{target.suffix}' cannot hold. "
            f"Use one of {', '.join(_TRANSPARENT)}."
        )
    pixels = with_opacity(picture)
    with replacing(target) as temporary:
        needed(*_IMAGEIO).imwrite(temporary, pixels, plugin="pillow")


def with_opacity(picture: Picture) -> Image:
    """(rows, columns, 2 or 4) of uint8: grey or colour, and an opacity of 0 where masked."""
    if picture.pixels.dtype != np.uint8:
        raise ShapeError(
            f"Only pictures of 8 bits per channel can be written; got {picture.pixels.dtype}. "
            "Scale the pixels to 0 … 255 and make them uint8, or use numpy.save."
        )
    layers = picture.pixels.reshape(*picture.mask.shape, -1)
    if layers.shape[2] not in (1, 3, 4):
        raise ShapeError(f"A picture has 1, 3 or 4 channels; got {layers.shape[2]}.")
    own = layers[..., 3] if layers.shape[2] == 4 else np.uint8(255)
    opacity = np.where(picture.mask, own, np.uint8(0))
    return np.dstack([layers[..., :3], opacity])
