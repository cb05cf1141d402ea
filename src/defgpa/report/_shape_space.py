"""Shape space on the page: where specimens lie along the components, and which are odd."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from defgpa._arrays import Array
from defgpa.alignment import Alignment
from defgpa.errors import DefgpaError
from defgpa.procrustes import SIMILARITY, stacked
from defgpa.report._columns import group_columns
from defgpa.report._drawn import Drawn
from defgpa.report._packing import finite, packed_distances, packed_positions
from defgpa.report._words import number, percent
from defgpa.statistics import Outliers, ShapePCA, outliers

MOST_COMPONENTS = 10
_LISTED = 10  # specimens and landmarks in the tables
_MOST_ODD = 40  # specimens in the table where so many are beyond the fence


@dataclass(frozen=True, eq=False)
class ShapeSpace:
    """The components of the shapes of an alignment, and how far each is from the mean."""

    alignment: Alignment
    drawn: Drawn
    pca: ShapePCA
    outliers: Outliers

    @property
    def _figures(self) -> tuple[Array, Array]:
        """The mean (m, d) and the components (k, m, d) in the pose and the unit of the reference.

        With the similarity x ↦ s x R + t of the mean onto the reference, a component c is s c R.
        """
        pose = stacked(self.pca.mean_, self.alignment.reference, motions=SIMILARITY)
        components = self.pca.components_[:MOST_COMPONENTS] @ pose.matrix
        return pose(self.pca.mean_), components

    def as_data(self) -> dict[str, Any]:
        """All of it for the page's script."""
        shapes, landmarks = self.drawn.shapes, self.drawn.landmarks
        mean, components = self._figures
        return {
            "space": {
                "shares": finite(self.pca.explained_variance_ratio_[:MOST_COMPONENTS]),
                "scores": packed_distances(self.pca.scores_[shapes, :MOST_COMPONENTS]),
                "mean": packed_positions(mean[None, landmarks]),
                "components": packed_positions(components[:, landmarks]),
            },
            "outliers": {
                "distance": finite(self.outliers.distances[shapes]),
                "fences": [
                    {"group": str(group), "at": float(at)}
                    for group, at in dict(
                        zip(self.outliers.groups, self.outliers.fences, strict=True)
                    ).items()
                ],
                "odd": self.outliers.flagged[shapes].tolist(),
            },
        }

    @property
    def words(self) -> str:
        """What was analysed, and how much of it the warps follow."""
        whole = self.alignment.shapes.visible.all()
        filled = "" if whole else ", missing landmarks as the other specimens have them"
        said = f"Shapes are compared after pose and size, as they were measured{filled}."
        sums = self.pca.sums_of_squares_
        if sums is None or not sums.smooth > 0:
            return said
        share = percent(sums.smooth / (sums.smooth + sums.rest))
        return f"{said} {share} of what they differ by is smooth: the warps follow it."

    @property
    def odd(self) -> dict[str, Any]:
        """The specimens farthest from the mean, landmarks far from their prediction, in words."""
        found = self.outliers
        grouped = any(found.groups)
        table = [
            {**row, "distance": number(row["distance"]), "fence": number(row["fence"])}
            for row in found.table()[: min(max(_LISTED, int(found.flagged.sum())), _MOST_ODD)]
        ]
        cells = [
            {**row, "distance": number(row["distance"], 3), "score": number(row["score"], 2)}
            for row in found.landmark_table(_LISTED)
            if row["outlier"]
        ]
        return {"words": self._count(grouped), "rows": table, "cells": cells, "grouped": grouped}

    def _count(self, grouped: bool) -> str:
        count = int(self.outliers.flagged.sum())
        found = "No specimen lies" if not count else f"{count:,} specimen{'s' * (count > 1)} lie"
        found += "s" * (count == 1)
        mean = "the mean shape of the group" if grouped else "the mean shape"
        said = (
            f"{found} beyond the fence: farther from {mean} than the third quartile and one and a "
            "half times the range between the quartiles."
        )
        advice = "That is no proof of a mistake; look at such a specimen before you leave it out."
        return f"{said} {advice}" if count else said


def shape_space(alignment: Alignment, drawn: Drawn) -> ShapeSpace | None:
    """The shape space of an alignment; None where shapes are too few, or none differ."""
    if alignment.shapes.n_shapes < 4:  # fewer make no cloud, and no fence
        return None
    try:
        pca = ShapePCA().fit(alignment)
        if not len(pca.components_):
            return None
        return ShapeSpace(alignment, drawn, pca, outliers(alignment, _fenced(alignment)))
    except DefgpaError:  # a landmark too many is missing: the alignment stands without it
        return None


def _fenced(alignment: Alignment) -> tuple[str, ...] | None:
    """The first column of groups that are all large enough for a fence of their own."""
    columns = group_columns(alignment.shapes).values()
    large = (own for own in columns if min(Counter(own).values()) >= 5)  # for a fence of its own
    return next(large, None)
