"""Measure shapes: their centroids, sizes and principal axes, and their moments with other axes.

A missing landmark has weight zero; the others have their landmark weights, or one each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from defgpa.arrays import Array, Index, Mask, Stack
from defgpa.tuning import DEFAULT

_THIN = 1e-7  # of the longest extent: a scatter matrix knows the others to about 1e-8 of it


@dataclass(frozen=True, eq=False)
class Geometry(Stack):
    """The centroids, sizes and principal axes of n shapes; made by `measure_geometry`."""

    points: Array  # (n, m, d): finite; a missing point stands at the centroid of its shape
    visible: Mask  # (n, m)
    weights: Array | None  # (n, m): landmark weights, 0 where missing; None: 1 for all visible
    count: Array  # (n,): the number of visible points
    mass: Array  # (n,): the sum of the weights; the count where there are none
    centre: Array  # (n, d): weighted centroid of the visible points
    centred: Array  # (n, m, d): points about the centroid, zero where missing
    scatter: Array  # (n, d, d): Σ γ x xᵀ of the centred points with their weights γ
    size: Array  # (n,): L, the weighted RMS distance of the visible points from their centroid
    rounding: Array  # (n,): of the coordinates of a shape, as a share of its size
    squared_extents: Array  # (n, d): eigenvalues of the scatter, largest first; 0 for rounding
    axes: Array  # (n, d, d): principal axes as columns, the longest first
    ranks: Index  # (n,): dimension of each shape: 0 in one place, 1 on a line, 2 in a plane

    @property
    def extents(self) -> Array:
        """(n, d): singular values of the centred visible points (rows times √γ), largest first."""
        return np.sqrt(self.squared_extents)

    @property
    def mean_weights(self) -> Array:
        """(n,): mean weight of the visible points, by which a shape counts among the others."""
        return np.asarray(self.mass / np.maximum(self.count, 1.0))

    @property
    def is_coincident(self) -> Mask:
        """(n,): whether the visible points all coincide, as far as rounding lets one see."""
        distances = np.linalg.norm(self.centre, axis=1)
        return np.asarray(self.size <= 1e-14 * np.maximum(distances, self.size))

    @cached_property
    def principal_box(self) -> tuple[Array, Array]:
        """(n, d) each: the low and the high ends of the centred points along the principal axes."""
        # missing points count too: they are at the centroid, inside the box of the others
        local = self.axes.mT @ self.centred.mT
        return local.min(axis=-1), local.max(axis=-1)

    def find_thin_axes(self, min_extent: float = DEFAULT.min_thickness) -> Mask:
        """Return along which principal axes shapes extend less than this share of their length.

        Rounding counts as no extent, which matters for shapes very far from the origin.

        Returns
        -------
        ndarray of bool of shape (n_shapes, n_dims)
        """
        limits = np.maximum(min_extent, self.rounding)[:, None]
        return np.asarray(self.squared_extents < limits**2 * self.squared_extents[:, :1])

    def project_to_planes(self, min_extent: float = DEFAULT.min_thickness) -> Geometry:
        """Project the shapes that are planar but for rounding onto their planes.

        A thickness that is nothing but rounding of coordinates determines no warp across a plane.
        Far from the origin rounding moves the points off the plane again, but not the centred ones.
        """
        is_thin = self.find_thin_axes(min_extent)
        is_planar = is_thin[:, -1] & ~is_thin[:, 1]  # a line has no plane
        if not is_planar.any():
            return self
        normal = self.axes[is_planar][:, :, -1:]
        points, centred = np.array(self.points), np.array(self.centred)
        distances = centred[is_planar] @ normal @ normal.mT
        centred[is_planar] -= distances
        points[is_planar] -= distances
        return _measure_spread(
            points, self.visible, self.weights, self.count, self.mass, self.centre, centred
        )


def measure_geometry(points: Array, visible: Mask, weights: Array | None = None) -> Geometry:
    """Measure shapes, with missing points put at their centroids.

    There they are finite, and have no effect once their rows are zeroed. Weights that are all equal
    are left out, so that they give the results without weights to the last digit.

    Parameters
    ----------
    points : ndarray of shape (n_shapes, n_landmarks, n_dims)
        Anything where not visible, NaN for example.
    visible : ndarray of bool of shape (n_shapes, n_landmarks)
    weights : ndarray of shape (n_shapes, n_landmarks), optional
        Landmark weights, 0 where missing.
    """
    if weights is not None and _has_equal_weights(weights, visible):
        weights = None
    return measure_subset(points, visible, weights)


def measure_subset(points: Array, visible: Mask, weights: Array | None = None) -> Geometry:
    """Measure some shapes of a set; weights that are all equal still count against the others'.

    Parameters and result are those of `measure_geometry`.
    """
    n, m, _ = points.shape
    # sums over landmarks as products: far faster than a reduction along a middle axis
    if visible.all():
        count = np.full(n, float(m))
        if weights is None:
            mass, centre = count, np.ones(m) @ points / m
        else:
            mass = weights.sum(axis=-1)
            centre = (weights[:, None, :] @ points)[:, 0] / mass[:, None]
        return _measure_spread(
            points, visible, weights, count, mass, centre, points - centre[:, None, :]
        )
    masses = visible.astype(np.float64) if weights is None else weights
    mass = masses.sum(axis=-1)
    count = mass if weights is None else visible.sum(axis=-1).astype(np.float64)
    divisor = np.maximum(mass, 1.0) if weights is None else np.where(mass > 0.0, mass, 1.0)
    finite = np.where(visible[..., None], points, 0.0)
    centre = (masses[:, None, :] @ finite)[:, 0] / divisor[:, None]
    np.copyto(finite, centre[:, None, :], where=~visible[..., None])
    return _measure_spread(
        finite, visible, weights, count, mass, centre, finite - centre[:, None, :]
    )


def _measure_spread(
    points: Array,
    visible: Mask,
    weights: Array | None,
    count: Array,
    mass: Array,
    centre: Array,
    centred: Array,
) -> Geometry:
    """Complete the geometry of centred shapes by scatter, size, rounding and principal axes.

    Parameters
    ----------
    points, centred : array (n, m, d)
        As given, and about the centres; missing ones zero.
    visible, weights : array (n, m)
    count, mass, centre : array (n,), (n,), (n, d)
        Visible landmarks of each shape, their total weight, and their centroid.
    """
    scatter = centred.mT @ (centred if weights is None else weights[..., None] * centred)
    trace = np.einsum("ndd->n", scatter)
    divisor = np.maximum(mass, 1.0) if weights is None else np.where(mass > 0.0, mass, 1.0)
    size = np.sqrt(trace / divisor)
    distances = np.linalg.norm(centre, axis=1) / np.where(size > 0.0, size, 1.0)
    # four is what a few roundings add up to, of the farthest coordinate
    rounding = 4.0 * np.finfo(np.float64).eps * (1.0 + distances)
    squares, axes = np.linalg.eigh(scatter)
    squares[squares <= _THIN**2 * squares[..., -1:]] = 0.0
    return Geometry(
        points,
        visible,
        weights,
        count,
        mass,
        centre,
        centred,
        scatter,
        size,
        rounding,
        squares[..., ::-1],
        # BLAS takes no reversed view: contiguous, so that a saved copy gives the same digits
        np.ascontiguousarray(axes[..., ::-1]),
        (squares > 0.0).sum(axis=-1),
    )


def measure_points(points: Array) -> Geometry:
    """Measure one shape (p, d), all of it visible."""
    return measure_geometry(points[None], np.ones((1, len(points)), dtype=bool))


def _has_equal_weights(weights: Array, visible: Mask) -> bool:
    """Return whether the weights of all visible landmarks of all shapes are the same."""
    positive = weights[visible]
    return not len(positive) or bool(positive.min() == positive.max())


def compute_visible_scatters(columns: Array, masses: Array | Mask) -> Array:
    """(…, n, k, k): Σ γ x xᵀ of the rows of columns (…, m, k), about the mean of each shape.

    ``masses`` (…, n, m) are the weights γ of the landmarks, or which of them are visible.
    """
    k, weights = columns.shape[-1], masses.astype(np.float64)
    total = (weights @ columns)[..., None, :]
    products = columns[..., :, None] * columns[..., None, :]
    squares = weights @ products.reshape(*columns.shape[:-1], k * k)
    sums = weights.sum(axis=-1)
    means = total.mT @ total / np.where(sums > 0.0, sums, 1.0)[..., None, None]
    return np.asarray(squares.reshape(*squares.shape[:-1], k, k) - means)


@dataclass(frozen=True, eq=False)
class Moments(Stack):
    """The moments of every shape with axes X; those of parts of the shapes concatenate.

    A fit has no leading axes …; the folds of a cross-validation, solved in one call, have one.
    """

    axes: Array  # (…, n, k, k), or (…, 1, k, k) where all have the same landmarks: G
    cross: Array  # (…, n, k, d): C
    square: Array  # (…, n): q
    mass: Array | None = None  # (…, n): mean landmark weight of each shape; None: all alike


def compute_moments(axes: Array, geometry: Geometry) -> Moments:
    """Compute the moments of shapes with axes (…, m, k).

    The points are about their means, so the axes need not be for C. With landmark weights all sums
    are weighted; without, every visible landmark counts once.
    """
    centred, visible, weights = geometry.centred, geometry.visible, geometry.weights
    weighted = centred if weights is None else weights[..., None] * centred
    cross = axes.mT[..., None, :, :] @ weighted
    square = np.einsum("...md,...md->...", weighted, centred)
    if weights is not None:
        return Moments(
            compute_visible_scatters(axes, weights), cross, square, geometry.mean_weights
        )
    if not visible.all():
        return Moments(compute_visible_scatters(axes, visible), cross, square)
    about_mean = axes - axes.mean(axis=-2, keepdims=True)  # one G for all shapes
    return Moments((about_mean.mT @ about_mean)[..., None, :, :], cross, square)
