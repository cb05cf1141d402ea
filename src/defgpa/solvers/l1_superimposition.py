"""Superimpose shapes in the L1 norm, so that gross errors cannot bend the result.

Similarities with the least sum of distances, in turn with a reference of spatial medians. Both are
found by iteratively reweighted least squares: a squared distance counts by the inverse of the
distance. A similarity runs from the reference to a shape, so a landmark far from its shape is a
large residual, not a lever.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from defgpa.arrays import Array, compute_lengths, median_of_finite, rms_radius
from defgpa.procrustes import SIMILARITY, Motion, find_nearest_orthogonal, procrustes_distance
from defgpa.solvers.rigid import fit_rigid

_REFERENCE_TOL = 1e-4  # Procrustes distance below which a step of the reference ends the rounds
_REWEIGHTINGS = 8  # of similarities to a reference that stands
_FIRST_REWEIGHTINGS, _FURTHER_REWEIGHTINGS = 4, 2  # to the first of several references, and others
_TINY = np.finfo(np.float64).tiny


class Superimposition(NamedTuple):
    """Shapes in the pose of a reference of spatial medians."""

    reference: Array  # (m, d)
    superimposed: Array  # (n, m, d), NaN where missing

    def measure_distances(self) -> Array:
        """Return the distance (n, m) of each landmark, relative to the size of the reference."""
        distances = compute_lengths(self.superimposed - self.reference)
        return np.asarray(distances / rms_radius(self.reference))

    def refit(self, weights: Array) -> Superimposition:
        """Superimpose by weighted least squares, onto a reference of weighted means."""
        columns = np.ascontiguousarray(self.superimposed.mT)
        motion = _fit_similarities(self.reference, np.nan_to_num(columns), weights)
        superimposed = _superimpose(motion, columns)
        means = _compute_weighted_means(np.nan_to_num(superimposed), weights)
        return Superimposition(means, superimposed.mT)


def superimpose_in_l1(points: Array, weights: Array, max_rounds: int = 20) -> Superimposition:
    """Superimpose shapes by similarities with the least sum of distances to a common reference.

    Parameters
    ----------
    points : array (n, m, d)
        NaN where a landmark is missing.
    weights : array (n, m)
        Of the landmarks; 0 is missing.

    Examples
    --------
    >>> shape = np.random.default_rng(0).normal(size=(20, 2))
    >>> shapes = np.stack([shape, 2 * shape, shape @ [[0, 1], [-1, 0]]])
    >>> shapes[1, 4] += 9.0
    >>> distances = superimpose_in_l1(shapes, np.ones((3, 20))).measure_distances()
    >>> np.argwhere(distances > 0.05).tolist()
    [[1, 4]]
    """
    visible = weights > 0
    scaled = _scale_by_medians(np.where(visible[..., np.newaxis], points, np.nan))
    reference = fit_rigid(scaled, SIMILARITY).reference
    columns = np.ascontiguousarray(scaled.mT)
    reweighted, n_rounds = weights, _FIRST_REWEIGHTINGS
    for _ in range(max_rounds):
        motion, reweighted = _reweight(reference, columns, weights, reweighted, n_rounds)
        n_rounds = _FURTHER_REWEIGHTINGS  # from the weights of the last reference on
        superimposed = _superimpose(motion, columns)
        previous, medians = reference, _compute_spatial_medians(superimposed, weights, reference)
        reference = _scale_by_medians(medians)
        if procrustes_distance(reference, previous) < _REFERENCE_TOL:
            break
    motion, _ = _reweight(reference, columns, weights, reweighted, n_rounds)
    return Superimposition(reference, _superimpose(motion, columns).mT)


def _scale_by_medians(points: Array) -> Array:
    """Centre shapes (…, m, d) on the median of their landmarks, and scale them to median radius 1.

    The median is that along the principal axes of a shape, so that the pose has no effect.
    Landmarks that are missing (NaN) do not count.
    """
    rows = np.nan_to_num(points - np.nanmean(points, axis=-2, keepdims=True))
    axes = np.linalg.eigh(rows.mT @ rows)[1]
    medians = median_of_finite(points @ axes, -2)[..., np.newaxis]
    centred = points - (axes @ medians).mT
    radii = median_of_finite(compute_lengths(centred), -1)
    return np.asarray(centred / np.where(radii > 0, radii, 1.0)[..., np.newaxis, np.newaxis])


def fit_similarities_in_l1(reference: Array, points: Array, weights: Array) -> Motion:
    """Find the similarity in the L1 norm that brings a reference (m, d) to each shape (n, m, d)."""
    columns = np.ascontiguousarray(points.mT)
    return _reweight(reference, columns, weights, weights, _REWEIGHTINGS)[0]


def _reweight(
    reference: Array, columns: Array, weights: Array, reweighted: Array, n_rounds: int
) -> tuple[Motion, Array]:
    """Fit similarities by rounds of least squares, a square divided by its distance.

    Parameters
    ----------
    reference, columns, weights : array (m, d), (n, d, m), (n, m)
        The shapes have one coordinate a row, in which sums over landmarks are fast.
    reweighted : array (n, m)
        Weights over distances to begin with.

    Returns
    -------
    Motion
    array (n, m)
        Weights over distances.
    """
    finite = np.nan_to_num(columns)
    for _ in range(n_rounds):
        motion = _fit_similarities(reference, finite, reweighted)
        images = motion.matrix.mT @ reference.T + motion.translation[..., np.newaxis]
        distances = compute_lengths(np.subtract(columns, images, out=images).mT)
        floors = 0.1 * median_of_finite(distances, 1)[:, np.newaxis] + 1e-12
        reweighted = np.nan_to_num(weights / np.maximum(distances, floors))
    return motion, reweighted


def _fit_similarities(reference: Array, columns: Array, weights: Array) -> Motion:
    """Fit a reference (m, d) to finite shapes (n, d, m) by similarities with weights (n, m).

    As `fit_motions`, in a fraction of its time: one reference for all, of about their size and
    about the origin as they are, and nobody asks whether a rotation is determined.
    """
    n_dims = reference.shape[-1]
    design = np.column_stack([reference, np.ones(len(reference))])
    totals = np.maximum(weights.sum(axis=1), _TINY)
    sums = (weights[:, np.newaxis] * columns) @ design
    means = weights @ reference / totals[:, np.newaxis]
    spreads = weights @ (reference**2).sum(axis=1) - totals * (means**2).sum(axis=1)
    cross = sums[..., :n_dims].mT - means[..., np.newaxis] * sums[:, np.newaxis, :, n_dims]
    rotation, explained = find_nearest_orthogonal(cross, np.ones(len(columns)))
    scale = np.where(explained > 0, explained / np.maximum(spreads, _TINY), 1.0)
    centres = sums[..., n_dims] / totals[:, np.newaxis]
    turned = np.squeeze(means[:, np.newaxis] @ rotation, axis=1)
    translation = centres - scale[:, np.newaxis] * turned
    return Motion(rotation, scale, translation, determined=explained > 0)


def _superimpose(motion: Motion, columns: Array) -> Array:
    """Bring shapes (n, d, m) back to the reference that motions brought to them."""
    back = motion.inverse()
    return np.asarray(back.matrix.mT @ columns + back.translation[..., np.newaxis])


def _compute_spatial_medians(
    superimposed: Array, weights: Array, start: Array, n_rounds: int = 2
) -> Array:
    """Return the point (m, d) of each landmark with the least sum of distances (Weiszfeld).

    Parameters
    ----------
    superimposed, weights : array (n, d, m), (n, m)
    start : array (m, d)
    """
    medians, finite = start, np.nan_to_num(superimposed)
    for _ in range(n_rounds):
        distances = compute_lengths((superimposed - medians.T).mT)
        floors = 0.05 * median_of_finite(distances, 0) + 1e-12
        pulls = np.nan_to_num(weights / np.maximum(distances, floors))
        medians = _compute_weighted_means(finite, pulls)
    return medians


def _compute_weighted_means(columns: Array, weights: Array) -> Array:
    """Return the weighted mean (m, d) of each landmark of finite shapes (n, d, m)."""
    totals = np.maximum(weights.sum(axis=0), _TINY)[:, np.newaxis]
    return np.asarray(np.einsum("nm,ndm->md", weights, columns) / totals)
