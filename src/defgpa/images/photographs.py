"""Find the photographs that 2-D landmarks were digitised on, and the landmarks in their pixels."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath
from typing import NamedTuple

import numpy as np

from defgpa.arrays import Array
from defgpa.images._picture import read_image
from defgpa.images._sampling import Image
from defgpa.shapes import Shapes


class Photograph(NamedTuple):
    """A photograph with the landmarks of its specimen."""

    path: Path
    pixels: Image  # (rows, columns) or (rows, columns, channels)
    landmarks: Array  # (n_landmarks, 2): column and row, counted from the top left


def find_photograph_path(shapes: Shapes, shape: int | str) -> Path | None:
    """Return the image file of a shape, if its file names one and it is there.

    It is looked for where the name says, and beside the file that names it: a path from another
    computer is reduced to its last part.
    """
    i = shapes.index(shape)
    images, sources = shapes.metadata.get("images"), shapes.metadata.get("sources")
    if shapes.n_dims != 2 or not images or not images[i]:
        return None
    name = str(images[i])
    folder = Path(str(sources[i])).parent if sources and sources[i] else Path()
    last = PureWindowsPath(name).name
    candidates = (folder / name, folder / last, folder / "images" / last)
    return next((path for path in candidates if path.is_file()), None)


def read_photograph(shapes: Shapes, shape: int | str) -> Photograph | None:
    """Read the photograph of a shape with its landmarks in pixels; None where there is none.

    As in the tps programs, y is counted from the bottom, and a scale is the size of a pixel.
    """
    path = find_photograph_path(shapes, shape)
    if path is None:
        return None
    i = shapes.index(shape)
    pixels = read_image(path)
    scales = shapes.metadata.get("scales")
    scale = float(scales[i]) if scales and scales[i] else 1.0
    x, y = np.array(shapes.points[i]).T / scale
    return Photograph(path, pixels, np.column_stack([x, len(pixels) - y]))
