"""Make responses: values as JSON, points and meshes as bytes, pictures, errors as sentences."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from starlette.responses import FileResponse, JSONResponse, Response

from defgpa.app.project import ConflictError
from defgpa.app.wording import use_page_wording
from defgpa.errors import DefgpaError, import_extra
from defgpa.threads import InterruptedWork

_BROWSER_IMAGES = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}


def respond(answer: Callable[[], object]) -> Response:
    """Turn an answer, or an error of the package, into a response."""
    try:
        with use_page_wording():
            value = answer()
    except InterruptedWork:  # nobody's fault: browsers log answers above 400 as errors
        return Response(status_code=204)
    except ConflictError as error:
        return JSONResponse({"error": str(error)}, 409)
    except (DefgpaError, ValueError) as error:
        return JSONResponse({"error": make_plain(str(error))}, 400)
    except MemoryError:
        return JSONResponse({"error": "There is not enough memory for that."}, 507)
    if isinstance(value, Response):
        return value
    text = json.dumps(make_plain(value), allow_nan=False, separators=(",", ":"))
    return Response(text, media_type="application/json")


def make_plain(value: object) -> object:
    """Return a value that JSON can hold: arrays as lists, NaN and infinities as null."""
    if isinstance(value, Mapping):
        return {str(key): make_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return make_plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [make_plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, str):  # lone surrogates, from names of files, are no UTF-8
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value


def send_points(points: ArrayLike) -> Response:
    """Send coordinates as little-endian 32-bit floats, NaN where missing: enough to draw."""
    return _send_bytes(_pack_points(points))


def send_mesh(vertices: ArrayLike, faces: ArrayLike) -> Response:
    """Send a mesh: two counts, the vertices (n, 3) and the faces (f, 3) as 32-bit numbers."""
    corners = np.ascontiguousarray(faces, dtype="<u4")
    places = np.asarray(vertices)
    header = struct.pack("<II", len(places), len(corners))
    return _send_bytes(header + _pack_points(places) + corners.tobytes())


def send_image(path: Path) -> Response:
    """Send a photograph as a browser can show it; TIFF becomes PNG."""
    kind = _BROWSER_IMAGES.get(path.suffix.lower())
    if kind is not None:
        return FileResponse(path, media_type=kind)
    image = import_extra("PIL.Image", 'TIFF images need pillow: pip install "defgpa[images]".')
    target = BytesIO()
    with image.open(path) as picture:
        picture.convert("RGB").save(target, "PNG")
    return Response(target.getvalue(), media_type="image/png")


def _pack_points(points: ArrayLike) -> bytes:
    return np.ascontiguousarray(points, dtype="<f4").tobytes()


def _send_bytes(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")
