"""Landmarks in another order than those of a reference, recognised by matching them by place.

A shape whose landmarks are in another order is far from the reference after the best similarity,
and near it once every landmark is matched with the nearest place. The match is an assignment
problem, solved from several poses, each improved by alternating assignment and similarity.
"""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from defgpa.arrays import Array, Index, rms, rms_radius
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.procrustes import ORTHOGONAL_SIMILARITY, fit_motions
from defgpa.shapes import Shapes

MIN_ERROR = 0.2  # of the size of the reference, in the given order; shapes of one kind have less
MAX_ERROR_RATIO = 0.4  # of the error matched by place to that in the given order
MAX_LANDMARKS = 300  # an assignment takes their number cubed
_N_ROUNDS = 10
_N_ANGLES = 8  # of poses in the plane


def check_landmark_order(reference: Array, shapes: Shapes) -> Finding | None:
    """Report shapes whose landmarks seem to be in another order than those of the reference.

    Parameters
    ----------
    reference : array (m, d)
        NaN where it is not known.
    shapes : Shapes
        In any pose and size, mirrored or not.

    Examples
    --------
    >>> reference = np.random.default_rng(0).normal(size=(20, 2))
    >>> shapes = Shapes([reference, reference[::-1]], names=["a", "b"])
    >>> check_landmark_order(reference, shapes).shapes
    ('b',)
    """
    names, errors, matched_errors = [], [0.0], [0.0]
    for name, points in zip(shapes.names, shapes.points, strict=True):
        shared = ~np.isnan(points[:, 0]) & ~np.isnan(reference[:, 0])
        if not shapes.n_dims + 1 < shared.sum() <= MAX_LANDMARKS:
            continue
        source, target = points[shared], reference[shared]
        if not min(rms_radius(source), rms_radius(target)) > 0.0:
            continue
        error = _measure_error(source, target)
        if error < MIN_ERROR:
            continue
        matched_error = _measure_error(source[match_by_place(source, target)], target)
        if matched_error < MAX_ERROR_RATIO * error:
            names.append(name)
            errors.append(error)
            matched_errors.append(matched_error)
    if not names:
        return None
    values = {"error": max(errors), "matched_error": max(matched_errors)}
    return Finding(Problem.OTHER_LANDMARK_ORDER, tuple(names), values=values)


def match_by_place(source: Array, target: Array) -> Index:
    """Return the order of the source points (p, d) that brings them nearest to the targets (p, d).

    Similarities and reflections of the source are allowed.
    """
    source_points, fixed = _standardize(source), _standardize(target)
    orders = [
        _match_from_pose(source_points @ pose, fixed) for pose in _make_poses(source.shape[1])
    ]
    return min(orders, key=lambda order: _measure_error(source[order], target))


def _match_from_pose(moving: Array, target: Array) -> Index:
    """Alternate assignment and similarity from one pose until the assignment stays."""
    order = np.arange(len(moving))
    posed = moving
    for _ in range(_N_ROUNDS):
        _, columns = linear_sum_assignment(cdist(target, posed, "sqeuclidean"))
        if np.array_equal(columns, order):
            break
        order = columns
        posed = fit_motions(moving[order], target, motions=ORTHOGONAL_SIMILARITY)(moving)
    return np.asarray(order, dtype=np.intp)


def _standardize(points: Array) -> Array:
    """Return points (p, d) about their centroid, along their principal axes, of unit size."""
    centred = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(centred @ axes.T / rms_radius(points))


def _make_poses(n_dims: int) -> list[Array]:
    """Return rotations and reflections (d, d), spread over all of them."""
    if n_dims == 2:
        angles = 2.0 * np.pi * np.arange(_N_ANGLES) / _N_ANGLES
        turns = [np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]) for a in angles]
        return [np.diag([side, 1.0]) @ turn for side in (1.0, -1.0) for turn in turns]
    return [
        np.eye(n_dims)[list(axes)] * np.array(signs)
        for axes in permutations(range(n_dims))
        for signs in product((1.0, -1.0), repeat=n_dims)
    ]


def _measure_error(source: Array, target: Array) -> float:
    """Return the RMS distance after the best similarity, mirrored or not, of the target's size."""
    moved_points = fit_motions(source, target, motions=ORTHOGONAL_SIMILARITY)(source)
    return rms(moved_points - target) / rms_radius(target)
