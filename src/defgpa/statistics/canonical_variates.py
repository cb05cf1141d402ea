"""Axes on which groups differ most: canonical variates, and components of the group means.

Canonical variates part the means by most of the variance within groups (Fisher 1936); components
of the means part them in units of shape. Both are fitted to the groups, so that scores on them show
groups even in noise unless specimens are left out (Cardini et al. 2019).
"""

from __future__ import annotations

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from defgpa.arrays import Array, Index
from defgpa.errors import DegenerateShapeError

_ROUNDING = 1e-10  # of the size of all scores: smaller differences are rounding


def compute_variates(scores: Array, codes: Index, priors: Array | None) -> Array:
    """Compute canonical variates (n, k) about the mean shape, at unit variance within groups."""
    _require_variances(scores, codes)
    variates = LinearDiscriminantAnalysis(priors=priors).fit_transform(scores, codes)
    counts = np.bincount(codes)
    means = np.stack([variates[codes == k].mean(axis=0) for k in range(len(counts))])
    within = np.sum((variates - means[codes]) ** 2, axis=0) / (len(codes) - len(counts))
    return np.asarray((variates - variates.mean(axis=0)) / np.sqrt(within))


def _require_variances(scores: Array, codes: Index) -> None:
    """Raise a DegenerateShapeError unless specimens differ within groups, and groups in means."""
    means = np.stack([scores[codes == k].mean(axis=0) for k in range(codes.max() + 1)])
    rounding = _ROUNDING * np.linalg.norm(scores)
    for deviations, same in (
        (scores - means[codes], "All specimens of each group have the same shape"),
        (means - means.mean(axis=0), "All groups have the same mean shape"),
    ):
        if np.linalg.norm(deviations) <= rounding:
            raise DegenerateShapeError(
                f"{same}, but for rounding: no variate parts the groups. Check the specimens for "
                "copies."
            )


def compute_singular_values(variates: Array, codes: Index) -> Array:
    """Compute √ of the between over the within variance of every canonical variate (k,)."""
    counts = np.bincount(codes)
    means = np.stack([variates[codes == k].mean(axis=0) for k in range(len(counts))])
    between = (counts[:, None] * (means - variates.mean(axis=0)) ** 2).sum(axis=0)
    within = ((variates - means[codes]) ** 2).sum(axis=0)
    df_between, df_within = len(counts) - 1, len(codes) - len(counts)
    return np.sqrt((between / df_between) / (within / df_within))


def compute_between_group_scores(tangents: Array, codes: Index) -> tuple[Array, Array]:
    """Compute scores on the components of group means, and those of specimens left out (n, k)."""
    flat = (tangents - tangents.mean(axis=0)).reshape(len(tangents), -1)
    counts = np.bincount(codes).astype(np.float64)
    means = np.stack([flat[codes == k].mean(axis=0) for k in range(len(counts))])
    axes = _mean_axes(means)
    left_out = np.empty((len(flat), len(axes)))
    for i, group in enumerate(codes):
        others = means.copy()
        others[group] += (means[group] - flat[i]) / (counts[group] - 1)
        rotated = _mean_axes(others)
        signs = np.sign((rotated * axes).sum(axis=1))
        left_out[i] = (flat[i] - others.mean(axis=0)) @ (rotated * signs[:, None]).T
    return (flat - means.mean(axis=0)) @ axes.T, left_out


def _mean_axes(means: Array) -> Array:
    return np.linalg.svd(means - means.mean(axis=0), full_matrices=False)[2][: len(means) - 1]
