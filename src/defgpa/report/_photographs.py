"""Photographs under landmarks, small enough for the page."""

from __future__ import annotations

import base64
import io
from importlib.util import find_spec

import numpy as np

from defgpa.errors import DefgpaError
from defgpa.images.photographs import Photograph, find_photograph_path, read_photograph
from defgpa.shapes import Shapes

MAX_PHOTOGRAPHS = 12
_WIDTH = 480  # pixels


def find_photographs(shapes: Shapes) -> dict[str, object] | None:
    """Return photographs with their landmarks for the template; None where there are none.

    An even choice where there are many. What cannot be read is left out: an image is no reason for
    a report to fail.
    """
    if not all(map(find_spec, ("PIL", "imageio"))):
        return None
    available = [i for i in range(len(shapes)) if find_photograph_path(shapes, i) is not None]
    chosen = available[:: max(1, -(-len(available) // MAX_PHOTOGRAPHS))]
    pictures = [picture for i in chosen if (picture := _show(shapes, i)) is not None]
    if not pictures:
        return None
    return {"pictures": pictures, "total": f"{len(available):,}"}


def _show(shapes: Shapes, i: int) -> dict[str, object] | None:
    try:
        photograph = read_photograph(shapes, i)
    except DefgpaError:
        return None
    if photograph is None:
        return None
    encoded, factor = _encode_small(photograph)
    rows, columns = photograph.pixels.shape[:2]
    points = factor * photograph.landmarks
    return {
        "name": shapes.names[i],
        "width": round(factor * columns),
        "height": round(factor * rows),
        "address": encoded,
        "landmarks": [
            (f"{x:.1f}", f"{y:.1f}", shapes.landmarks[j])
            for j, (x, y) in enumerate(points)
            if np.isfinite(x)
        ],
    }


def _encode_small(photograph: Photograph) -> tuple[str, float]:
    """Return a JPEG of at most 480 pixels across as an address, and by how much it was reduced."""
    from PIL import Image

    pixels = photograph.pixels
    if pixels.dtype != np.uint8:
        peak = np.iinfo(pixels.dtype).max if pixels.dtype.kind in "iu" else 1.0
        pixels = (255.0 * np.clip(pixels / peak, 0.0, 1.0)).astype(np.uint8)
    image = Image.fromarray(np.squeeze(pixels)).convert("RGB")
    factor = min(1.0, _WIDTH / image.width)
    image = image.resize((round(factor * image.width), max(1, round(factor * image.height))))
    stream = io.BytesIO()
    image.save(stream, format="JPEG", quality=80)
    address = "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
    return address, factor
