"""The odd ones, ranked: specimens far from the mean, landmarks far from where others put them.

A specimen is flagged, as in geomorph, where its distance ‖x_i − mean‖ in the tangent space is
above Q3 + 1.5 (Q3 − Q1), within its group. A landmark of a specimen is compared with its
prediction from all other landmarks of the specimen and all other specimens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index, Mask, frozen
from defgpa.alignment import Alignment
from defgpa.errors import ShapeError
from defgpa.statistics.conditional import Dials, ShapeGaussian, left_out, without_gaps
from defgpa.statistics.specimens import groups_of
from defgpa.statistics.tangent import rotated_onto_mean, tangent_space, unit_size

_FAR_OUT = 3.0  # of a landmark's own, for it to be flagged: there are very many of them
_FEWEST = 4  # specimens that predictions can be made from


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
    fences : array (n,)
        Q3 + 1.5 IQR of the distances in the group of each.
    flagged : array (n,) of bool
        Beyond the fence.
    landmark_distances : array (n, m)
        Of a landmark from its leave-one-out prediction, over centroid size; NaN where not seen.
    landmark_scores : array (n, m)
        The same over what is usual for this landmark (its median over the specimens).
    landmark_flagged : array (n, m) of bool
        Beyond Q3 + 3 IQR of all scores.
    """

    names: tuple[str, ...]
    landmarks: tuple[str, ...]
    groups: tuple[Any, ...]
    distances: Array
    fences: Array
    flagged: Mask
    landmark_distances: Array
    landmark_scores: Array
    landmark_flagged: Mask

    @property
    def ranked(self) -> Index:
        """(n,): specimens, the oddest first."""
        return np.argsort(-self.distances, kind="stable")

    def table(self) -> list[dict[str, Any]]:
        """One row a specimen, the oddest first, with its worst landmark.

        ``name``, ``group``, ``distance``, ``fence``, ``outlier``, ``worst_landmark``,
        ``worst_distance``.
        """
        scores = np.nan_to_num(self.landmark_scores)
        worst = scores.argmax(axis=1)
        return [
            {
                "name": self.names[i],
                "group": self.groups[i],
                "distance": float(self.distances[i]),
                "fence": float(self.fences[i]),
                "outlier": bool(self.flagged[i]),
                "worst_landmark": self.landmarks[worst[i]],
                "worst_distance": float(self.landmark_distances[i, worst[i]]),
            }
            for i in self.ranked
        ]

    def landmark_table(self, most: int = 20) -> list[dict[str, Any]]:
        """The oddest landmarks of specimens: ``name``, ``landmark``, ``distance``, ``score``."""
        scores = np.nan_to_num(self.landmark_scores)
        order = np.argsort(-scores, axis=None, kind="stable")[:most]
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


def outliers(alignment: Alignment, groups: Sequence[Any] | None = None) -> Outliers:
    """Rank specimens, and landmarks of specimens, by how odd they are.

    Parameters
    ----------
    alignment : Alignment
        Any; gaps are filled by what the other specimens say.
    groups : sequence of n, optional
        Specimens are compared with the mean of their own group.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> rng = np.random.default_rng(0)
    >>> shapes = rng.normal(size=(12, 2)) + 0.02 * rng.normal(size=(20, 12, 2))
    >>> shapes[7] += 0.06 * rng.normal(size=(12, 2))  # digitised by a careless hand
    >>> found = defgpa.statistics.outliers(defgpa.EuclideanGPA().fit(shapes).alignment_)
    >>> [found.names[i] for i in np.flatnonzero(found.flagged)]
    ['shape_8']
    """
    shapes = alignment.shapes
    own_groups = tuple([""] * len(shapes) if groups is None else groups_of(alignment, groups) or ())
    whole = without_gaps(alignment.superimposed)
    distances, fences = np.zeros(len(whole)), np.empty(len(whole))
    for group in dict.fromkeys(own_groups):
        members = np.array([own == group for own in own_groups])
        if members.sum() > 1:
            x = tangent_space(whole[members])
            distances[members] = np.linalg.norm(x - x.mean(axis=0), axis=(1, 2))
        fences[members] = _fence(distances[members], 1.5)
    lengths = _from_predictions(whole, shapes.visible)
    scores = lengths / _usual(lengths)
    return Outliers(
        shapes.names,
        shapes.landmarks,
        own_groups,
        frozen(distances),
        frozen(fences),
        frozen(distances > fences),
        frozen(lengths),
        frozen(scores),
        frozen(np.nan_to_num(scores) > _fence(scores[shapes.visible], _FAR_OUT)),
    )


def _fence(values: Array, ranges: float) -> float:
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high + ranges * (high - low))


def _from_predictions(whole: Array, visible: Mask) -> Array:
    """(n, m): distance of every landmark from its leave-one-out prediction, at unit size."""
    if len(whole) < _FEWEST:
        raise ShapeError(
            f"Landmarks are predicted from at least {_FEWEST} specimens; there are {len(whole)}."
        )
    specimens = rotated_onto_mean(unit_size(whole))
    if specimens.std(axis=0).max() < 1e-12:  # rounding
        raise ShapeError("The shapes do not differ, so none of their landmarks can be odd.")
    step = -(-specimens.shape[1] // 400)  # landmarks that predict each other
    lengths = np.empty(specimens.shape[:2])
    for start in range(step):  # very many landmarks: each from those of its own share
        part = slice(start, None, step)
        lengths[:, part] = _of_some(specimens[:, part], visible[:, part])
    return lengths


def _of_some(specimens: Array, visible: Mask) -> Array:
    """(n, m): distances from predictions of landmarks few enough to predict each other.

    One that is out of place spoils the predictions of its neighbours. So specimens with an odd
    landmark are looked at again, the oddest landmark taken away until the rest agree.
    """
    lengths = _left_out(specimens, visible)
    scores = lengths / _usual(lengths)
    worst, fence = np.nan_to_num(scores).max(axis=1), _fence(scores[visible], _FAR_OUT)
    # at least three quarters say what is usual: those whose oddest landmark is the least odd
    sound = worst <= max(fence, float(np.quantile(worst, 0.75)))
    if sound.sum() < _FEWEST:
        return lengths
    lengths[sound] = _left_out(specimens[sound], visible[sound])
    usual, others = _usual(lengths[sound]), ShapeGaussian(specimens[sound], Dials())
    for i in np.flatnonzero(~sound):
        own = np.where(visible[i][:, None], specimens[i], np.nan)
        lengths[i] = _trimmed(others, own, usual * fence)
    return lengths


def _left_out(specimens: Array, visible: Mask) -> Array:
    lengths = np.linalg.norm(left_out(specimens, Dials())[0], axis=2)
    return np.where(visible, lengths, np.nan)


def _trimmed(others: ShapeGaussian, own: Array, limits: Array) -> Array:
    """(m,): distances from predictions by the landmarks of a shape (m, d) that agree."""
    agreeing = own.copy()
    residuals = np.linalg.norm(others.left_out(agreeing), axis=1)
    for _ in range(min(10, int((~np.isnan(own[:, 0])).sum()) // 2)):
        odd = np.where(residuals > limits, residuals, 0.0)
        if not odd.any():
            break
        worst = int(odd.argmax())
        agreeing[worst] = np.nan
        residuals = np.linalg.norm(others.left_out(agreeing), axis=1)
    taken = np.isnan(agreeing[:, 0]) & ~np.isnan(own[:, 0])
    if taken.any():
        found = others.completed(agreeing).points
        size = np.linalg.norm(found - found.mean(axis=0))
        residuals[taken] = np.linalg.norm((own - found)[taken], axis=1) / size
    return residuals


def _usual(lengths: Array) -> Array:
    """(m,): the median of each landmark, and no less than a tenth of that of all."""
    return np.maximum(np.nanmedian(lengths, axis=0), 0.1 * np.nanmedian(lengths))
