"""Outliers: specimens far from the mean, and landmarks far from their predictions.

A specimen is flagged, as in geomorph, where its distance ‖x_i − mean‖ in the tangent space is
above Q3 + 1.5 (Q3 − Q1), within its group; or, as in geomorph 4.1, above what that is after a power
transformation that makes the distances most nearly normal. A landmark of a specimen is compared
with its prediction from all other landmarks of the specimen and all other specimens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import boxcox, inv_boxcox

from defgpa.arrays import Array, Index, Mask, freeze
from defgpa.dataframes import import_pandas
from defgpa.errors import DefgpaError, ShapeError
from defgpa.formatting import align_columns, format_number
from defgpa.shapes import Shapes
from defgpa.statistics.box_cox import fit_box_cox
from defgpa.statistics.left_out_landmarks import (
    FAR_OUT,
    compute_limit,
    compute_medians,
    measure_from_predictions,
)
from defgpa.statistics.provenance import Provenance
from defgpa.statistics.sample import Analysed, build_sample
from defgpa.threads import use_threads

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Outliers:
    """How odd every specimen and every landmark of it is.

    Attributes
    ----------
    names, landmarks : tuple of str
        Of the shapes.
    groups : tuple
        One a specimen; empty strings where none were given.
    distances : array (n,)
        Procrustes distance from the mean shape of the group, in its tangent space.
    limits : array (n,)
        1.5 × IQR above the upper quartile of the distances in its group, transformed or not.
    flagged : array (n,) of bool
        Beyond the limit.
    landmark_distances : array (n, m)
        Of a landmark from its leave-one-out prediction, over centroid size; NaN where missing.
    landmark_scores : array (n, m)
        The same over what is usual for this landmark (its median over the specimens).
    landmark_flagged : array (n, m) of bool
        Beyond Q3 + 3 IQR of all scores.
    provenance : Provenance
        Which coordinates were analysed, and how many landmarks were completed.
    limit : str
        How the limits were computed, see `outliers`.
    """

    names: tuple[str, ...]
    landmarks: tuple[str, ...]
    groups: tuple[object, ...]
    distances: Array
    limits: Array
    flagged: Mask
    landmark_distances: Array
    landmark_scores: Array
    landmark_flagged: Mask
    provenance: Provenance
    limit: str = "quartiles"

    def __str__(self) -> str:
        n_odd, n_landmarks = int(self.flagged.sum()), int(self.landmark_flagged.sum())
        measured = "transformed distances" if self.limit == "power" else "distances"
        head = (
            f"{n_odd} of {len(self.names)} specimens more than 1.5 × IQR above the upper "
            f"quartile of the {measured}, {n_landmarks} landmarks far from their prediction"
        )
        rows = [
            (
                row["name"],
                format_number(row["distance"]),
                format_number(row["limit"]),
                row["worst_landmark"],
            )
            for row in self.table()[:10]
        ]
        table = align_columns([("oddest", "distance", "limit", "worst landmark"), *rows])
        return f"{head}\n{self.provenance}\n\n{table}"

    __repr__ = __str__

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per specimen as a pandas DataFrame, the greatest outlier first."""
        return import_pandas().DataFrame(self.table())

    @property
    def order(self) -> Index:
        """(n,): numbers of the specimens, the greatest outlier first."""
        return np.argsort(-self.distances, kind="stable")

    def table(self) -> list[dict[str, Any]]:
        """Return a row per specimen with its worst landmark, the greatest outlier first.

        ``name``, ``group``, ``distance``, ``limit``, ``outlier``, ``worst_landmark``,
        ``worst_distance``.
        """
        scores = np.nan_to_num(self.landmark_scores)
        worst = scores.argmax(axis=1)
        return [
            {
                "name": self.names[i],
                "group": self.groups[i],
                "distance": float(self.distances[i]),
                "limit": float(self.limits[i]),
                "outlier": bool(self.flagged[i]),
                "worst_landmark": self.landmarks[worst[i]],
                "worst_distance": float(self.landmark_distances[i, worst[i]]),
            }
            for i in self.order
        ]

    def landmark_table(self, max_rows: int = 20) -> list[dict[str, Any]]:
        """Return the oddest landmarks: ``name``, ``landmark``, ``distance``, ``score``."""
        scores = np.nan_to_num(self.landmark_scores)
        order = np.argsort(-scores, axis=None, kind="stable")[:max_rows]
        pairs = zip(*np.unravel_index(order, scores.shape), strict=True)
        return [
            {
                "name": self.names[i],
                "landmark": self.landmarks[j],
                "distance": float(self.landmark_distances[i, j]),
                "score": float(scores[i, j]),
                "outlier": bool(self.landmark_flagged[i, j]),
            }
            for i, j in pairs
        ]


@use_threads(1)  # many small products: a second thread spins between them and gains nothing
def outliers(
    x: Analysed,
    groups: Sequence[object] | None = None,
    *,
    limit: str = "quartiles",
    space: str = "superimposed",
    superimpose: bool = True,
) -> Outliers:
    """Rank specimens, and landmarks of specimens, by how odd they are.

    Parameters
    ----------
    x : Alignment, Shapes, array (n, m, d) with NaN, or Sample
        The specimens. Missing landmarks are completed.
    groups : sequence of n, optional
        Specimens are compared with the mean of their own group.
    limit : {"quartiles", "power"}
        Specimens are flagged beyond Q3 + 1.5 IQR of the distances; or beyond the distance that this
        is after a Box–Cox transformation, with the exponent in [−2, 2] that is most likely for all
        but the largest distance (``plotOutliers`` of geomorph up to 4.0, and of geomorph 4.1).
    space, superimpose
        As in `procrustes_anova`.

    Returns
    -------
    Outliers
        How odd every specimen and every landmark of it is.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> rng = np.random.default_rng(0)
    >>> shapes = rng.normal(size=(12, 2)) + 0.02 * rng.normal(size=(20, 12, 2))
    >>> shapes[7] += 0.06 * rng.normal(size=(12, 2))  # digitised by a careless hand
    >>> odd = defgpa.statistics.outliers(shapes)
    >>> [odd.names[i] for i in np.flatnonzero(odd.flagged)]
    ['shape_8']
    """
    if limit not in _LIMITS:
        raise DefgpaError(f"'limit' is 'quartiles' or 'power'; got {limit!r}.")
    sample = build_sample(x, space=space, superimpose=superimpose)
    shapes = sample.shapes
    labels = _label_groups(groups, shapes)
    distances, limits = np.zeros(len(shapes)), np.empty(len(shapes))
    for label in dict.fromkeys(labels):
        members = np.array([group == label for group in labels])
        if members.sum() > 1:
            tangents = sample.compute_tangents(shapes.points, members)
            distances[members] = np.linalg.norm(tangents - tangents.mean(axis=0), axis=(1, 2))
        limits[members] = _LIMITS[limit](distances[members], 1.5)
    visible = np.ones(shapes.visible.shape, dtype=bool)
    if sample.completion is not None:
        visible = ~sample.completion.estimated
    lengths = measure_from_predictions(shapes.points, visible)
    scores = lengths / compute_medians(lengths)
    return Outliers(
        shapes.names,
        shapes.landmarks,
        labels,
        freeze(distances),
        freeze(limits),
        freeze(distances > limits),
        freeze(lengths),
        freeze(scores),
        freeze(np.nan_to_num(scores) > compute_limit(scores[visible], FAR_OUT)),
        sample.provenance,
        limit,
    )


def _label_groups(groups: Sequence[object] | None, shapes: Shapes) -> tuple[object, ...]:
    """Return one group label per specimen, empty if no groups are given."""
    if groups is None:
        return ("",) * len(shapes)
    if len(groups) != len(shapes):
        raise ShapeError(
            f"There must be one group a shape, {len(shapes)} in all; got {len(groups)}."
        )
    return tuple("" if group is None else group for group in groups)


def _compute_power_limit(values: Array, ranges: float) -> float:
    """Return the value whose Box–Cox transform is the limit of the transformed ones."""
    smaller = np.delete(values, np.argmax(values))
    exponent = fit_box_cox(smaller, 2.0) if len(smaller) > 1 and smaller.min() > 0 else None
    if exponent is None:
        return compute_limit(values, ranges)
    return float(inv_boxcox(compute_limit(boxcox(values, exponent), ranges), exponent))


_LIMITS: dict[str, Callable[[Array, float], float]] = {
    "quartiles": compute_limit,
    "power": _compute_power_limit,
}
