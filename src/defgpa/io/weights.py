"""Landmark weights and visibility as files state them: likelihoods, confidences, flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from defgpa.arrays import Array
from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError
from defgpa.io.format import ReadOptions, Specimen
from defgpa.io.text.lines import warn

WEIGHT_WORDS = ("weight", "likelihood", "confidence", "conf", "score", "probability", "prob")
VISIBILITY_WORDS = ("visible", "visibility", "vis", "v")
DEEPLABCUT_CUTOFF = 0.6  # pcutoff of DeepLabCut: it neither draws nor uses what is less likely
_FLAGS = (0.0, 1.0, 2.0)  # missing, (in COCO: hidden but placed,) visible


def is_weight_column(head: str, options: ReadOptions) -> bool:
    """Return whether a column of this name holds the landmark weights that were asked for."""
    word = head.strip().lower()
    if options.weights == "likelihood":
        return word in WEIGHT_WORDS
    return options.weights is not None and word == options.weights.strip().lower()


def hide_unlikely(
    path: object, specimens: Sequence[Specimen], options: ReadOptions
) -> tuple[list[Specimen], str]:
    """Hide the points of DeepLabCut whose likelihood is below the cutoff.

    A network that does not see a body part places it anywhere, and the small weight of a far point
    still pulls a least-squares fit.

    Returns
    -------
    specimens : list of Specimen
        With NaN in place of such points.
    note : str
        A sentence that counts them, with a blank before it; empty where there are no weights.
    """
    cutoff = DEEPLABCUT_CUTOFF if options.min_likelihood is None else options.min_likelihood
    likely, n_points, n_hidden = list[Specimen](), 0, 0
    for specimen in specimens:
        if specimen.weights is None:
            likely.append(specimen)
            continue
        is_visible = ~np.isnan(specimen.points).any(axis=1)
        hidden = is_visible & (specimen.weights >= 0) & (specimen.weights < cutoff)
        points = np.where(hidden[:, None], np.nan, specimen.points)
        likely.append(replace(specimen, points=points))
        n_points, n_hidden = n_points + int(is_visible.sum()), n_hidden + int(hidden.sum())
    if not n_points:
        return likely, ""
    keep = f"{name_option('min_likelihood', 0)}: keep all"
    if n_hidden == n_points:
        raise FormatError(
            f"{path}: no point has a likelihood of at least {cutoff:g} ({keep}; "
            f"{name_option('weights', 'none')}: ignore likelihoods)."
        )
    remark = f" ({keep})" if n_hidden and options.min_likelihood is None else ""
    return likely, (
        f" Likelihoods are landmark weights ({name_option('weights', 'none')}: not used); "
        f"{n_hidden:,} of {n_points:,} points are below {cutoff:g} and count as missing{remark}."
    )


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
