"""The checks that all families make of the numbers they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from defgpa._arrays import Array
from defgpa.frames import Frames


def require_number(
    value: Any, name: str, owner: str, kind: str, allowed: Callable[[float], bool]
) -> None:
    """A ValueError in one sentence unless ``value`` is a number that is ``allowed``."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not allowed(float(value)):
        raise ValueError(
            f"The '{name}' parameter of {owner} must be {kind}. Got {value!r} instead."
        )


def require_not_negative(value: Any, name: str, owner: str) -> None:
    """The same for parameters that may be zero, but not less and not infinite."""
    kind = "a number of at least 0"
    require_number(value, name, owner, kind, lambda number: 0.0 <= number < np.inf)


def require_positive(value: Any, name: str, owner: str) -> None:
    """A ValueError unless ``value`` is a finite number above zero."""
    require_number(value, name, owner, "a positive number", lambda number: 0.0 < number < np.inf)


def require_degree(value: Any, name: str, owner: str, least: int, most: int) -> None:
    """The same for whole numbers in a range."""
    kind = f"a whole number from {least} to {most}"
    require_number(
        value, name, owner, kind, lambda number: number == int(number) and least <= number <= most
    )


def given_points(
    given: ArrayLike | Callable[[Array], ArrayLike], frames: Frames, name: str, owner: str
) -> Array:
    """(n, k, d): points given once for all shapes, or made from the visible points of each."""
    n, _, d = frames.points.shape
    if not callable(given):
        points = _finite_points(given, d, name, owner)
        return np.broadcast_to(points, (n, *points.shape))
    made = [
        _finite_points(given(points[seen]), d, name, owner)
        for points, seen in zip(frames.points, frames.visible, strict=True)
    ]
    counts = {len(points) for points in made}
    if len(counts) > 1:
        raise ValueError(
            f"The '{name}' function of {owner} must make equally many points for every shape. "
            f"Got between {min(counts)} and {max(counts)} of them."
        )
    return np.stack(made)


def _finite_points(given: ArrayLike, dim: int, name: str, owner: str) -> Array:
    array = np.asarray(given, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != dim or not len(array) or not np.isfinite(array).all():
        raise ValueError(
            f"The '{name}' parameter of {owner} must be finite points (k, {dim}). "
            f"Got an array of size {array.shape} instead."
        )
    return array
