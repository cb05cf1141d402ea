"""Encode numbers for the page: small, exact enough for the eye, and never markup.

Positions are only drawn, so 16 bits per coordinate do, each shape in its own box; distances are
read as well, so they keep 32-bit floats. Both travel as base64 within JSON.
"""

from __future__ import annotations

import base64
import json

import numpy as np
from numpy.typing import NDArray

from defgpa.arrays import Array, RawArray

# what could end a script element or start a tag, and line ends that old scripts stumble over
_ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def pack_positions(points: Array) -> dict[str, object]:
    """Pack points (k, p, d) in 16 bits per coordinate, within the box of each shape."""
    with np.errstate(invalid="ignore"):
        low = np.fmin.reduce(points, axis=1, keepdims=True, initial=np.inf)
        high = np.fmax.reduce(points, axis=1, keepdims=True, initial=-np.inf)
        low = np.where(np.isfinite(low), low, 0.0)
        step = np.where(high > low, (high - low) / 65534, 1.0)
        levels = np.rint((points - low) / step)
    codes = np.where(np.isnan(levels), 65535, levels).astype("<u2")  # which means missing
    return {
        "size": list(points.shape),
        "codes": _encode_base64(codes),
        "low": low[:, 0].tolist(),
        "step": step[:, 0].tolist(),
    }


def pack_distances(distances: Array) -> dict[str, object]:
    """Pack distances (n, m) as 32-bit floats, NaN included."""
    return {"size": list(distances.shape), "floats": _encode_base64(distances.astype("<f4"))}


def pack_integers(numbers: NDArray[np.integer]) -> dict[str, object]:
    """Pack whole numbers (k, w), such as the corners of triangles, as 32-bit integers."""
    return {"size": list(numbers.shape), "whole": _encode_base64(numbers.astype("<i4"))}


def list_finite(numbers: Array) -> list[object]:
    """Return numbers for JSON, None for those that are not finite."""
    return [float(x) if np.isfinite(x) else None for x in numbers]


def dump_script_json(value: object) -> str:
    """Return JSON that may stand within a script element, whatever names it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPED)


def _encode_base64(array: RawArray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
