"""Shape space on the page: where specimens lie along the components, and which are odd."""

from __future__ import annotations

from collections import Counter
from typing import Any

from defgpa.alignment import Alignment
from defgpa.errors import DefgpaError
from defgpa.procrustes import SIMILARITY, fit_motions
from defgpa.report._drawn import Drawn, group_columns
from defgpa.report._packing import finite, packed_distances, packed_positions
from defgpa.report._words import number, percent
from defgpa.statistics import Outliers, ShapePCA, outliers

MOST_COMPONENTS = 10
_LISTED = 10  # specimens and landmarks in the tables


def shape_space(alignment: Alignment, drawn: Drawn) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The shape space of an alignment in words for the template, in numbers for the script.

    None, and no numbers, where shapes are too few, or none differ.
    """
    found = _analysed(alignment)
    if found is None:
        return None, {"space": None, "outliers": None}
    pca, odd = found
    return (
        {"words": _words(alignment, pca), "odd": _odd(odd)},
        {"space": _space(alignment, pca, drawn), "outliers": _distances(odd, drawn)},
    )


def _analysed(alignment: Alignment) -> tuple[ShapePCA, Outliers] | None:
    if alignment.shapes.n_shapes < 4:  # fewer make no cloud, and no fence
        return None
    try:
        pca = ShapePCA().fit(alignment)
        if not len(pca.components_):
            return None
        return pca, outliers(alignment, _fenced(alignment))
    except DefgpaError:  # a landmark too many is missing: the alignment stands without it
        return None


def _fenced(alignment: Alignment) -> tuple[str, ...] | None:
    """The first column of groups that are all large enough for a fence of their own."""
    columns = group_columns(alignment.shapes).values()
    return next((own for own in columns if min(Counter(own).values()) >= 5), None)


def _space(alignment: Alignment, pca: ShapePCA, drawn: Drawn) -> dict[str, Any]:
    """Scores, and mean and components in the pose and the unit of the reference.

    With the similarity x ↦ s x R + t of the mean onto the reference, a component c is s c R.
    """
    pose = fit_motions(pca.mean_, alignment.reference, motions=SIMILARITY)
    components = pca.components_[:MOST_COMPONENTS] @ pose.matrix
    return {
        "shares": finite(pca.explained_variance_ratio_[:MOST_COMPONENTS]),
        "scores": packed_distances(pca.scores_[drawn.shapes, :MOST_COMPONENTS]),
        "mean": packed_positions(pose(pca.mean_)[None, drawn.landmarks]),
        "components": packed_positions(components[:, drawn.landmarks]),
    }


def _distances(found: Outliers, drawn: Drawn) -> dict[str, Any]:
    """How far each drawn shape is from the mean, and the fence of every group."""
    fences = dict(zip(found.groups, found.fences, strict=True))
    return {
        "distance": finite(found.distances[drawn.shapes]),
        "fences": [{"group": str(group), "at": float(at)} for group, at in fences.items()],
        "odd": found.flagged[drawn.shapes].tolist(),
    }


def _words(alignment: Alignment, pca: ShapePCA) -> str:
    """What was analysed, and how much of it the warps follow."""
    whole = alignment.shapes.visible.all()
    filled = "" if whole else ", missing landmarks as the other specimens have them"
    said = f"Shapes are compared after pose and size, as they were measured{filled}."
    sums = pca.sums_of_squares_
    if sums is None or not sums.smooth > 0:
        return said
    share = percent(sums.smooth / (sums.smooth + sums.rest))
    return f"{said} {share} of what they differ by is smooth: the warps follow it."


def _odd(found: Outliers) -> dict[str, Any]:
    """The specimens farthest from the mean, landmarks far from their prediction, in words."""
    grouped, count = any(found.groups), int(found.flagged.sum())
    table = [
        {**row, "distance": number(row["distance"]), "fence": number(row["fence"])}
        for row in found.table()[: min(max(_LISTED, count), 40)]
    ]
    cells = [
        {**row, "distance": number(row["distance"], 3), "score": number(row["score"], 2)}
        for row in found.landmark_table(_LISTED)
        if row["outlier"]
    ]
    return {"words": _fence(count, grouped), "rows": table, "cells": cells, "grouped": grouped}


def _fence(count: int, grouped: bool) -> str:
    """How many specimens lie beyond the fence, and what that means."""
    found = "No specimen lies" if not count else f"{count:,} specimen{'s' * (count > 1)} lie"
    found += "s" * (count == 1)
    mean = "the mean shape of the group" if grouped else "the mean shape"
    said = (
        f"{found} beyond the fence: farther from {mean} than the third quartile and one and a "
        "half times the range between the quartiles."
    )
    advice = "That is no proof of a mistake; look at such a specimen before you leave it out."
    return f"{said} {advice}" if count else said
