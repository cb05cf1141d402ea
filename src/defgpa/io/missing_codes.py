"""Codes of missing landmarks: numbers such as -1 or 9999 in place of coordinates."""

from __future__ import annotations

import numpy as np

from defgpa.arrays import Array, Mask
from defgpa.io.anatomical_space import express_missing_code
from defgpa.shapes import Shapes
from defgpa.tuning import DEFAULT, Tuning

COMMON_CODES = (-1.0, -9.0, -99.0, -999.0, -1000.0, -9999.0, 999.0, 1000.0, 9999.0, 99999.0)


def find_missing_code(shapes: Shapes, tuning: Tuning = DEFAULT) -> float | None:
    """Find a number that all coordinates of some landmarks equal, and no others do.

    Programs without another way to say "missing" write -1 or 9999. The coordinates are compared as
    they are in the file, before its scale. A number among the other coordinates counts if at least
    two landmarks have it, and no coordinate of another landmark.

    Examples
    --------
    >>> points = np.random.default_rng(0).uniform(0, 500, size=(4, 9, 2))
    >>> points[2, 5] = -1
    >>> find_missing_code(Shapes(points))
    -1.0
    """
    points = _remove_scales(shapes)
    for code in (*COMMON_CODES, *_find_remote_codes(points, tuning)):
        is_coded = find_coded_landmarks(shapes, code)
        others = points[shapes.visible & ~is_coded]
        if not is_coded.any() or not len(others):
            continue
        is_outside = not others.min() <= code <= others.max()
        is_fixed = is_coded.all(axis=0).any()  # a corner of normalised coordinates
        is_repeated = is_coded.sum() > 1 and not np.isclose(others, code, rtol=1e-12).any()
        if is_outside or (is_repeated and not is_fixed):
            return code
    return None


def _find_remote_codes(points: Array, tuning: Tuning) -> list[float]:
    """Return the coordinates of landmarks far from all others with all coordinates equal.

    Signs aside; z has the sign of the code in either anatomical system.
    """
    finite = points[np.isfinite(points[..., 0])]
    sizes = np.abs(finite)
    is_uniform = (sizes == sizes[:, :1]).all(axis=1)
    if not is_uniform.any() or is_uniform.all():
        return []
    is_remote = is_uniform & (sizes[:, 0] > tuning.code_ratio * sizes[~is_uniform].max())
    return sorted(set(finite[is_remote, -1].tolist()))


def find_coded_landmarks(shapes: Shapes, code: float) -> Mask:
    """Find the landmarks whose coordinates in the file all are ``code``.

    Before the scale of the file; in the other anatomical system, x and y have the other sign.

    Returns
    -------
    array (n, m) of bool

    Examples
    --------
    >>> shapes = Shapes.specimens([[[0.0, 3.0], [-1.0, -1.0]]])
    >>> find_coded_landmarks(shapes, -1).tolist()
    [[False, True]]
    """
    points = _remove_scales(shapes)
    # the scale was multiplied in and is divided out: the last digit may differ
    is_coded = np.isclose(np.abs(points[..., 0]), abs(code), rtol=1e-12, atol=0.0)
    places = express_missing_code(code, shapes.n_dims, shapes.metadata.get("space"))
    is_near = np.isclose(points[is_coded][:, None], places, rtol=1e-12, atol=0.0)
    is_coded[is_coded] = np.any(np.all(is_near, axis=2), axis=1)
    return np.asarray(is_coded)


def _remove_scales(shapes: Shapes) -> Array:
    """Return the coordinates (n, m, d) as the files have them, without their scales."""
    scales = [1.0 if scale is None else scale for scale in shapes.metadata.get("scales") or [1.0]]
    return np.asarray(shapes.points / np.asarray(scales)[:, None, None])
