"""Landmark weights and visibility as files state them: likelihoods, confidences, flags."""

from __future__ import annotations

import numpy as np

from defgpa.arrays import Array
from defgpa.diagnostics.wording import name_option
from defgpa.io.format import ReadOptions
from defgpa.io.text.lines import warn

WEIGHT_WORDS = ("weight", "likelihood", "confidence", "conf", "score", "probability", "prob")
VISIBILITY_WORDS = ("visible", "visibility", "vis", "v")
_FLAGS = (0.0, 1.0, 2.0)  # missing, (in COCO: hidden but placed,) visible


def is_weight_column(head: str, options: ReadOptions) -> bool:
    """Return whether a column of this name holds the landmark weights that were asked for."""
    word = head.strip().lower()
    if options.weights == "likelihood":
        return word in WEIGHT_WORDS
    return options.weights is not None and word == options.weights.strip().lower()


def is_visibility(values: Array) -> bool:
    """Return whether numbers are flags of visibility: 0 or 1, or COCO's 0, 1 and 2."""
    return bool(np.isin(values, _FLAGS).all() and values.any())


def take_visibility(path: object, points: Array) -> Array:
    """Take a third coordinate that is only 0, 1 or 2 for a flag of visibility.

    Parameters
    ----------
    path : path
        Named in the note that says so.
    points : array (..., 3)
        Coordinates as they stand in a file that does not say what they are.

    Returns
    -------
    array (..., 2) or (..., 3)
        In 2-D with NaN where the flag is 0; or the points as they are.
    """
    if points.size == 0 or not is_visibility(points[..., 2]) or is_visibility(points[..., :2]):
        return points
    warn(
        f"{path}: the third number of a landmark is only 0, 1 or 2, so it is taken for visibility "
        f"(0: missing). If it is a coordinate, give {name_option('dimension', 3)}."
    )
    return np.where(points[..., 2:] == 0, np.nan, points[..., :2])
