"""Values as JSON holds them, and points as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from defgpa.arrays import Array


def make_plain(value: Any) -> Any:
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


def pack_points(points: Array) -> bytes:
    """Return coordinates as little-endian 32-bit floats, NaN where missing: enough to draw."""
    return np.ascontiguousarray(points, dtype="<f4").tobytes()
