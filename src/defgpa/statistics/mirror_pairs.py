"""The mirror plane of a shape, and the landmarks that it pairs.

A shape is nearly symmetric if some reflection brings it nearly onto itself with its landmarks
renumbered. Planes through the centroid are tried; each gives a one-to-one matching of landmarks
with reflected ones, the matching a better plane, until both settle. Such a matching pairs landmarks
only if it undoes itself: what is matched with itself lies on the midline. Pairs of a mean shape are
confirmed by the shapes it is of: in most of them the same matching must be the best one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from defgpa.arrays import Array, Index, rms
from defgpa.errors import DefgpaError, ShapeError
from defgpa.shapes import Shapes, find_landmark_numbers


@dataclass(frozen=True, eq=False)
class MirrorPairs:
    """The pairs of a nearly symmetric shape.

    Attributes
    ----------
    pairs : tuple of (int, int)
        Landmarks (from 0) that change places in the mirror.
    midline : tuple of int
        Landmarks on the mirror plane.
    normal : array (d,)
        Of the plane, through the centroid.
    error : float
        RMS distance of the shape from its renumbered mirror image, relative to its RMS radius.
    next_error : float
        The same of the best other pairing that was met.
    agreement : float
        The share of the shapes that have the same pairs by themselves.
    """

    pairs: tuple[tuple[int, int], ...]
    midline: tuple[int, ...]
    normal: Array
    error: float
    next_error: float
    agreement: float


def find_pairs(shapes: Array) -> MirrorPairs:
    """Find the pairs of landmarks of a nearly symmetric shape, such as a reference, or of many.

    Parameters
    ----------
    shapes : array (m, d) or (n, m, d)
        All landmarks seen. Of several shapes, superimposed, the pairs of their mean.

    Returns
    -------
    MirrorPairs
        The pairs of a nearly symmetric shape.

    Raises
    ------
    DefgpaError
        When no plane mirrors the shape onto itself, or two do it equally well, or when most of
        the shapes would pair other landmarks than their mean.

    Examples
    --------
    >>> import numpy as np
    >>> moth = np.array([[0, 2], [0, -1], [-2, 1], [2.1, 1], [-1, -2], [1, -2.0]])
    >>> found = find_pairs(moth)
    >>> found.pairs, found.midline
    (((2, 3), (4, 5)), (0, 1))
    """
    points = _read_shapes(shapes)
    each = points - points.mean(axis=1, keepdims=True)
    centred = each.mean(axis=0)
    radius = rms(centred)
    if not (np.isfinite(radius) and radius > 0):
        raise ShapeError("A mirror plane needs a shape without missing landmarks, with some size.")
    settled = [_settled(centred / radius, normal) for normal in _best_starts(centred / radius)]
    found = sorted((one for one in settled if one is not None), key=lambda one: one[0])
    if not found or found[0][0] > 0.12:  # beyond, it is not symmetric
        much = f" (the best plane leaves {found[0][0]:.0%} of its radius)" if found else ""
        raise DefgpaError(f"No plane mirrors this shape onto itself{much}. Give the pairs.")
    error, normal, order = found[0]
    others = (one for one, _, another in found if not np.array_equal(another, order))
    next_error = min(others, default=float("inf"))
    # the best other pairing must be clearly worse; errors below 1e-6 count as none at all
    if next_error < 1.5 * max(error, 1e-6):
        raise DefgpaError(
            f"Two mirror planes pair the landmarks about equally well (errors {error:.3g} "
            f"and {next_error:.3g} of the radius). Give the pairs."
        )
    # whether no other matching brings a shape closer to its image in the plane of these pairs
    own = [np.array_equal(_matched(x, _best_normal(x, order)), order) for x in each]
    if np.mean(own) < 0.5:
        raise DefgpaError(
            f"The mean shape has a mirror plane, but only {sum(own)} of {len(own)} shapes pair "
            "their landmarks as it does. Give the pairs."
        )
    pairs = tuple((j, int(k)) for j, k in enumerate(order) if j < k)
    midline = tuple(j for j, k in enumerate(order) if j == k)
    return MirrorPairs(pairs, midline, normal, error, next_error, float(np.mean(own)))


def _read_shapes(shapes: Array) -> Array:
    """Return one shape (m, d) or several as (n, m, d), or raise a ShapeError."""
    try:
        points = np.asarray(shapes, dtype=np.float64)
    except (TypeError, ValueError):
        points = np.empty(0)
    points = points[None] if points.ndim == 2 else points
    if points.ndim != 3 or points.shape[2] not in (2, 3) or not points.size:
        raise ShapeError(
            f"Pairs are found in a shape (m, d), or several (n, m, d), in 2-D or 3-D; got size "
            f"{np.shape(shapes)}."
        )
    return Shapes.specimens(points).require_computable().points


def pairs_from(
    pairs: Sequence[Sequence[int | str]], landmarks: Sequence[str]
) -> tuple[tuple[int, int], ...]:
    """Pairs of landmark numbers (from 0) or labels as numbers, each landmark at most once."""
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise ShapeError(f"A pair is two landmarks; got {pair!r}.")
    named = find_landmark_numbers((one for pair in pairs for one in pair), landmarks)
    if len(set(named)) != len(named):
        twice = next(one for one in named if named.count(one) > 1)
        raise ShapeError(f"Landmark {landmarks[twice]!r} is in more than one pair.")
    return tuple(zip(named[::2], named[1::2], strict=True))


def renumbering(pairs: Sequence[tuple[int, int]], m: int) -> Index:
    """(m,): where each landmark of the mirrored shape comes from."""
    order = np.arange(m)
    for a, b in pairs:
        order[a], order[b] = b, a
    return order


def _best_starts(points: Array) -> list[Array]:
    """Find the directions whose reflection brings most points near to others."""
    tree = cKDTree(points)
    principal = np.linalg.svd(points, full_matrices=False)[2]
    normals = np.vstack([principal, _directions(points.shape[1])])
    costs = [np.minimum(tree.query(_reflected(points, v))[0] ** 2, 0.25).mean() for v in normals]
    chosen: list[Array] = []
    for k in np.argsort(costs, kind="stable"):
        if all(abs(normals[k] @ other) < 0.985 for other in chosen):  # 10 degrees apart
            chosen.append(normals[k])
    return chosen[:12]  # the best ones, to be refined with a matching


def _directions(dim: int) -> Array:
    """Directions spread evenly over half a circle or half a sphere."""
    if dim == 2:
        angle = np.pi * (np.arange(90) + 0.5) / 90
        return np.column_stack([np.cos(angle), np.sin(angle)])
    k = np.arange(400) + 0.5
    height, turn = k / 400, np.pi * (1 + np.sqrt(5)) * k
    ring = np.sqrt(1 - height**2)
    return np.column_stack([ring * np.cos(turn), ring * np.sin(turn), height])


def _reflected(points: Array, normal: Array) -> Array:
    """x − 2 (x·n) n."""
    return points - 2.0 * np.outer(points @ normal, normal)


def _settled(points: Array, normal: Array) -> tuple[float, Array, Index] | None:
    """Plane and matching in turn until neither changes, their RMS error first.

    None if the matching pairs nothing.
    """
    order: Index = np.empty(0, dtype=np.intp)
    for _ in range(20):
        matched = _matched(points, normal)
        if np.array_equal(matched, order):
            break
        order = matched
        normal = _best_normal(points, order)
    if not np.array_equal(order[order], np.arange(len(order))):
        return None
    if np.array_equal(order, np.arange(len(order))):
        return None  # flat points lie in their own mirror plane: that pairs nothing
    distance = points - _reflected(points, normal)[order]
    return rms(distance), normal, order


def _matched(points: Array, normal: Array) -> Index:
    """(m,): the one-to-one matching of the points with their images in a plane."""
    mirrored = _reflected(points, normal)
    return np.asarray(linear_sum_assignment(cdist(points, mirrored, "sqeuclidean"))[1])


def _best_normal(points: Array, order: Index) -> Array:
    """Find the plane for which the points come closest to the renumbered mirror image.

    Σ ‖x_j − x_o(j) + 2 (x_o(j)·n) n‖² is least for the lowest eigenvector of Σ x_o(j) x_jᵀ + ….
    """
    cross = points.T @ points[order]
    return np.asarray(np.linalg.eigh(cross + cross.T)[1][:, 0])
