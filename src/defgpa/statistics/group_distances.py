"""Mahalanobis and Procrustes distances between the mean shapes of groups, by permuting these."""

from __future__ import annotations

import numpy as np

from defgpa.arrays import Array, Index
from defgpa.statistics.pairs import fill_pairs
from defgpa.statistics.permutation import Permutations, p_values


def compare_means(
    scores: Array, n_components: int, codes: Index, permutations: Permutations
) -> tuple[Array, Array, Array, Array]:
    """Compute Mahalanobis and Procrustes distances between means (g, g), and P of both.

    Parameters
    ----------
    scores : array (n, k)
        On all components; the first ``n_components`` count for Mahalanobis distances.
    codes : array (n,) of int
        The group of every specimen.
    """
    g, n = int(codes.max()) + 1, len(codes)
    first, second = np.triu_indices(g, 1)
    counts = np.bincount(codes)
    leading = scores[:, :n_components]
    scatter = leading.T @ leading
    membership = np.eye(g)[:, codes] / counts[:, None]

    def measure(orders: Index) -> Array:
        rows = []
        for order in orders:
            means = membership @ scores[order]
            procrustes = np.linalg.norm(means[first] - means[second], axis=1)
            used = means[:, :n_components]
            within = (scatter - (used.T * counts) @ used) / (n - g)
            difference = used[first] - used[second]
            solved = np.linalg.lstsq(within, difference.T, rcond=1e-12)[0].T
            squared = np.maximum((difference * solved).sum(axis=1), 0.0)
            rows.append(np.concatenate([np.sqrt(squared), procrustes]))
        return np.stack(rows)

    observed = measure(np.arange(n)[None])[0]
    chance = permutations.each(n, scores.shape[1], measure)
    mahalanobis, procrustes = (fill_pairs(g, values, 0.0) for values in np.split(observed, 2))
    mahalanobis_p, procrustes_p = (
        fill_pairs(g, values) for values in np.split(p_values(observed, chance), 2)
    )
    return mahalanobis, procrustes, mahalanobis_p, procrustes_p
