"""Shape space on the page: where specimens lie along the components, and which are outliers."""

from __future__ import annotations

from collections import Counter

import numpy as np

from defgpa.alignment import Alignment
from defgpa.errors import DefgpaError
from defgpa.procrustes import SIMILARITY, fit_motions
from defgpa.report._display import Display
from defgpa.report._encoding import list_finite, pack_distances, pack_positions
from defgpa.report._groups import Columns
from defgpa.report._scene import make_lattice
from defgpa.report._sentences import format_number, format_percent
from defgpa.statistics import Outliers, ShapePCA, outliers
from defgpa.warps import fit_interpolating_spline

MAX_COMPONENTS = 10
LARGELY_ESTIMATED = 1 / 3  # share of missing landmarks from which a specimen is marked
_MIN_SPECIMENS = 4  # fewer make no cloud, and no quartiles
_MAX_KNOTS = 300  # of the spline that bends the grid
_MAX_ROWS = 40  # of the tables
_MAX_LISTED = 10


def build_shape_space(
    alignment: Alignment, display: Display, columns: Columns
) -> tuple[dict[str, object] | None, dict[str, object]]:
    """Return the shape space in words for the template, and in numbers for the script.

    None, and no numbers, where specimens are too few or do not differ.
    """
    empty: dict[str, object] = {"space": None, "outliers": None}
    if alignment.shapes.n_shapes < _MIN_SPECIMENS:
        return None, empty
    try:
        pca = ShapePCA().fit(alignment)
        if not len(pca.components_):
            return None, empty
        ranking = outliers(alignment, _choose_groups(columns))
    except DefgpaError:  # a landmark too many is missing: the alignment stands without it
        return None, empty
    return (
        {"words": _describe(alignment, pca), "odd": _tabulate_outliers(ranking)},
        {
            "space": _pack_components(alignment, pca, display),
            "outliers": _pack_distances(ranking),
        },
    )


def _choose_groups(columns: Columns) -> tuple[str, ...] | None:
    """Return the first column of groups that are all large enough for quartiles of their own."""
    large = (labels for labels in columns.values() if min(Counter(labels).values()) >= 5)
    return next(large, None)


def _pack_components(alignment: Alignment, pca: ShapePCA, display: Display) -> dict[str, object]:
    """Pack scores, and mean, components and their grid in the pose and unit of the reference.

    With the similarity x ↦ s x R + t of the mean onto the reference, a component c is s c R. The
    spline that takes the mean to a shape is linear in the shape, so the grid of a shape is that of
    the mean plus the scores times the spline through each component.
    """
    pose = fit_motions(pca.mean_, alignment.reference, motions=SIMILARITY)
    mean = pose(pca.mean_)
    components = pca.components_[:MAX_COMPONENTS] @ pose.matrix
    nodes, n_rows, n_columns = make_lattice(mean, 1)
    knots = np.arange(0, len(mean), -(-len(mean) // _MAX_KNOTS))
    is_drawn = ~np.isnan(nodes[:, 0])
    bent = np.full((len(components), *nodes.shape), np.nan)
    for k, component in enumerate(components):
        bent[k, is_drawn] = fit_interpolating_spline(mean[knots], component[knots])(nodes[is_drawn])
    return {
        "shares": list_finite(pca.explained_variance_ratio_[:MAX_COMPONENTS]),
        "scores": pack_distances(pca.scores_[:, :MAX_COMPONENTS]),
        "mean": pack_positions(mean[None, display.landmarks]),
        "components": pack_positions(components[:, display.landmarks]),
        "grid": {
            "rows": n_rows,
            "columns": n_columns,
            "nodes": pack_positions(nodes[None]),
            "components": pack_positions(bent),
        },
        "estimated": LARGELY_ESTIMATED,
    }


def _pack_distances(ranking: Outliers) -> dict[str, object]:
    """Pack how far each specimen is from the mean, and the limit of every group."""
    limits = dict(zip(ranking.groups, ranking.limits, strict=True))
    return {
        "distance": list_finite(ranking.distances),
        "limits": [{"group": str(group), "at": float(at)} for group, at in limits.items()],
        "odd": ranking.flagged.tolist(),
    }


def _describe(alignment: Alignment, pca: ShapePCA) -> str:
    """Describe the analysed shapes, and how much of their variation the warps follow."""
    complete = alignment.shapes.visible.all()
    filled = "" if complete else ", missing landmarks estimated from the other specimens"
    sentence = f"Specimens are compared after superimposition (pose and size removed){filled}."
    sums = pca.sums_of_squares_
    share = (
        0.0 if sums is None or not sums.smooth > 0 else sums.smooth / (sums.smooth + sums.residual)
    )
    if share < 0.001:  # rigid motions follow nothing but rounding
        return sentence
    return f"{sentence} {format_percent(share)} of their variation is smooth: the warps follow it."


def _tabulate_outliers(ranking: Outliers) -> dict[str, object]:
    """Tabulate the specimens farthest from the mean, and landmarks far from their prediction."""
    grouped, count = any(ranking.groups), int(ranking.flagged.sum())
    rows = [
        {**row, "distance": format_number(row["distance"]), "limit": format_number(row["limit"])}
        for row in ranking.table()[: min(max(_MAX_LISTED, count), _MAX_ROWS)]
    ]
    cells = [
        {
            **row,
            "distance": format_number(row["distance"], 3),
            "score": format_number(row["score"], 2),
        }
        for row in ranking.landmark_table(_MAX_LISTED)
        if row["outlier"]
    ]
    return {
        "words": _count_outliers(count, grouped),
        "rows": rows,
        "cells": cells,
        "grouped": grouped,
        "any": count > 0,
    }


def _count_outliers(count: int, grouped: bool) -> str:
    """Say how many specimens are outliers, and what that means."""
    mean = "the mean shape of their group" if grouped else "the mean shape"
    rule = (
        f"lie farther from {mean} than 1.5 × the interquartile range (IQR) above the upper "
        "quartile of these distances"
    )
    if not count:
        return f"No specimen is an outlier: none {rule.replace('lie', 'lies', 1)}."
    subject = "1 specimen is an outlier: it" if count == 1 else f"{count:,} specimens are outliers:"
    verb = rule.replace("lie", "lies", 1).replace("their", "its") if count == 1 else f"they {rule}"
    advice = "That is no proof of a mistake; look at such a specimen before you leave it out."
    return f"{subject} {verb}. {advice}"
