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
from defgpa.shapes import Shapes, find_numbers


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
        Without missing landmarks. Of several shapes, superimposed, the pairs of their mean.

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
    >>> mirror = find_pairs(moth)
    >>> mirror.pairs, mirror.midline
    (((2, 3), (4, 5)), (0, 1))
    """
    points = _read_shapes(shapes)
    each = points - points.mean(axis=1, keepdims=True)
    centred = each.mean(axis=0)
    radius = rms(centred)
    if not (np.isfinite(radius) and radius > 0):
        raise ShapeError("A mirror plane needs a shape without missing landmarks, with some size.")
    fits = [_refine_plane(centred / radius, normal) for normal in _find_starts(centred / radius)]
    planes = sorted((fit for fit in fits if fit is not None), key=lambda plane: plane[0])
    if not planes or planes[0][0] > 0.12:  # beyond, it is not symmetric
        detail = f" (the best plane leaves {planes[0][0]:.0%} of its radius)" if planes else ""
        raise DefgpaError(f"No plane mirrors this shape onto itself{detail}. Give the pairs.")
    error, normal, order = planes[0]
    rival_errors = (e for e, _, matching in planes if not np.array_equal(matching, order))
    next_error = min(rival_errors, default=float("inf"))
    # the best other pairing must be clearly worse; errors below 1e-6 count as none at all
    if next_error < 1.5 * max(error, 1e-6):
        raise DefgpaError(
            f"Two mirror planes pair the landmarks about equally well (errors {error:.3g} "
            f"and {next_error:.3g} of the radius). Give the pairs."
        )
    # whether no other matching brings a shape closer to its image in the plane of these pairs
    is_agreed = [np.array_equal(_match_images(x, _fit_normal(x, order)), order) for x in each]
    if np.mean(is_agreed) < 0.5:
        raise DefgpaError(
            f"The mean shape has a mirror plane, but only {sum(is_agreed)} of "
            f"{len(is_agreed)} shapes pair their landmarks as it does. Give the pairs."
        )
    pairs = tuple((j, int(k)) for j, k in enumerate(order) if j < k)
    midline = tuple(j for j, k in enumerate(order) if j == k)
    return MirrorPairs(pairs, midline, normal, error, next_error, float(np.mean(is_agreed)))


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


def parse_pairs(
    pairs: Sequence[Sequence[int | str]], landmarks: Sequence[str]
) -> tuple[tuple[int, int], ...]:
    """Convert pairs of landmark numbers (from 0) or labels to numbers; each landmark once only."""
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise ShapeError(f"A pair is two landmarks; got {pair!r}.")
    members = [member for pair in pairs for member in pair]
    numbers = find_numbers(members, landmarks, "landmark", counts_back=False)
    if len(set(numbers)) != len(numbers):
        repeated = next(number for number in numbers if numbers.count(number) > 1)
        raise ShapeError(f"Landmark {landmarks[repeated]!r} is in more than one pair.")
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def exchange_pairs(pairs: Sequence[tuple[int, int]], m: int) -> Index:
    """Return the order (m,) of landmarks in which the two of every pair change places."""
    order = np.arange(m)
    for a, b in pairs:
        order[a], order[b] = b, a
    return order


def _find_starts(points: Array) -> list[Array]:
    """Find the directions whose reflection brings most points near to others."""
    tree = cKDTree(points)
    principal = np.linalg.svd(points, full_matrices=False)[2]
    normals = np.vstack([principal, _spread_directions(points.shape[1])])
    costs = [np.minimum(tree.query(_reflect(points, v))[0] ** 2, 0.25).mean() for v in normals]
    chosen: list[Array] = []
    for k in np.argsort(costs, kind="stable"):
        if all(abs(normals[k] @ normal) < 0.985 for normal in chosen):  # 10 degrees apart
            chosen.append(normals[k])
    return chosen[:12]  # the best ones, to be refined with a matching


def _spread_directions(dim: int) -> Array:
    """Spread directions evenly over half a circle or half a sphere."""
    if dim == 2:
        angle = np.pi * (np.arange(90) + 0.5) / 90
        return np.column_stack([np.cos(angle), np.sin(angle)])
    k = np.arange(400) + 0.5
    height, turn = k / 400, np.pi * (1 + np.sqrt(5)) * k
    ring = np.sqrt(1 - height**2)
    return np.column_stack([ring * np.cos(turn), ring * np.sin(turn), height])


def _reflect(points: Array, normal: Array) -> Array:
    """Reflect points in the plane of a unit normal: x − 2 (x·n) n."""
    return points - 2.0 * np.outer(points @ normal, normal)


def _refine_plane(points: Array, normal: Array) -> tuple[float, Array, Index] | None:
    """Improve a mirror plane and the matching of landmarks in turn until neither changes.

    Returns the RMS error, the normal (d,) and the matching (m,); None if it pairs nothing.
    """
    order: Index = np.empty(0, dtype=np.intp)
    for _ in range(20):
        new_order = _match_images(points, normal)
        if np.array_equal(new_order, order):
            break
        order = new_order
        normal = _fit_normal(points, order)
    if not np.array_equal(order[order], np.arange(len(order))):
        return None
    if np.array_equal(order, np.arange(len(order))):
        return None  # flat points lie in their own mirror plane: that pairs nothing
    difference = points - _reflect(points, normal)[order]
    return rms(difference), normal, order


def _match_images(points: Array, normal: Array) -> Index:
    """Match the points one to one with their images in a plane; return the matching (m,)."""
    mirrored = _reflect(points, normal)
    return np.asarray(linear_sum_assignment(cdist(points, mirrored, "sqeuclidean"))[1])


def _fit_normal(points: Array, order: Index) -> Array:
    """Find the plane for which the points come closest to the renumbered mirror image.

    Σ ‖x_j − x_o(j) + 2 (x_o(j)·n) n‖² is least for the lowest eigenvector of Σ x_o(j) x_jᵀ + ….
    """
    cross = points.T @ points[order]
    return np.asarray(np.linalg.eigh(cross + cross.T)[1][:, 0])
