"""Frames of shapes: their centroids, sizes, principal axes and boxes, of many shapes at once.

Missing points have weight zero; the others have the weights of their
landmarks, or one each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from defgpa._arrays import Array, Mask
from defgpa.tuning import DEFAULT

_THIN = 1e-7  # of the longest extent: a scatter matrix knows the others to about 1e-8 of it
_CUBE = 10.0  # more than λ₁λ₂λ₃ / mean³ ÷ λ₃/λ₁ can be: 4 for thin shapes, in the plane too


@dataclass(frozen=True, eq=False)
class Frames:
    """The frames of n shapes.

    Parameters
    ----------
    points : array (n, m, d)
        Finite everywhere, missing points too.
    visible : array (n, m) of bool
    weights : array (n, m), optional
        Landmark weights, 0 where missing; None means 1 for every visible landmark.
    """

    points: Array
    visible: Mask
    weights: Array | None = None

    @classmethod
    def of(cls, points: Array, visible: Mask, weights: Array | None = None) -> Frames:
        """Make the frames of shapes whose missing points are NaN: they are put at the centroid.

        There they are finite, and have no effect once their rows are zeroed. Weights that are all
        equal are left out, so that they give the results without weights to the last digit.
        """
        if weights is not None and _has_equal_weights(weights, visible):
            weights = None
        if visible.all():
            return cls(points, visible, weights)
        masses = visible.astype(np.float64) if weights is None else weights
        total = masses.sum(axis=-1)
        finite = np.where(visible[..., None], points, 0.0)
        divisor = np.maximum(total, 1.0) if weights is None else np.where(total > 0.0, total, 1.0)
        centre = (masses[:, None, :] @ finite)[:, 0] / divisor[:, None]
        np.copyto(finite, centre[:, None, :], where=~visible[..., None])
        frames = cls(finite, visible, weights)
        # missing points are zero about the centroid without being made so
        frames.__dict__.update(mass=total, centre=centre, centred=finite - centre[:, None, :])
        if weights is None:
            frames.__dict__.update(count=total)
        return frames

    def __getitem__(self, shapes: slice | Mask) -> Frames:
        """Return the frames of some of the shapes, with the values that are computed already."""
        frames = object.__new__(Frames)
        for name, value in self.__dict__.items():
            frames.__dict__[name] = _restrict_value(value, shapes)
        return frames

    @cached_property
    def is_complete(self) -> bool:
        """Whether no landmark is missing."""
        return bool(self.visible.all())

    @cached_property
    def count(self) -> Array:
        """(n,): the number of visible points."""
        if self.is_complete:
            return np.full(len(self.points), float(self.points.shape[-2]))
        return self.visible.sum(axis=-1).astype(np.float64)

    @cached_property
    def mass(self) -> Array:
        """(n,): the sum of the weights; the number of visible points where there are none."""
        return self.count if self.weights is None else self.weights.sum(axis=-1)

    @cached_property
    def centre(self) -> Array:
        """(n, d): weighted centroid of the visible points."""
        # sums over landmarks as products: far faster than a reduction along a middle axis
        if self.weights is not None:
            return (self.weights[:, None, :] @ self.points)[:, 0] / self.mass[:, None]
        if self.is_complete:
            return np.ones(self.points.shape[-2]) @ self.points / self.points.shape[-2]
        total = (self.visible.astype(np.float64)[:, None, :] @ self.points)[:, 0]
        return total / self.count[:, None]

    @cached_property
    def centred(self) -> Array:
        """(n, m, d): relative to the centroid, missing points zero (they must not count)."""
        centred = self.points - self.centre[:, None, :]
        if not self.is_complete:
            centred[~self.visible] = 0.0
        return centred

    @cached_property
    def scatter(self) -> Array:
        """(n, d, d): Σ γ x xᵀ of the centred visible points with their weights γ."""
        if self.weights is None:
            return self.centred.mT @ self.centred
        return self.centred.mT @ (self.weights[..., None] * self.centred)

    @cached_property
    def size(self) -> Array:
        """(n,): L, the weighted RMS distance of the visible points from their centroid."""
        trace = np.einsum("ndd->n", self.scatter)
        if self.weights is None:
            return np.sqrt(trace / np.maximum(self.count, 1.0))
        return np.sqrt(trace / np.where(self.mass > 0.0, self.mass, 1.0))

    @cached_property
    def _principal(self) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(self.scatter)
        values[values <= _THIN**2 * values[..., -1:]] = 0.0
        # BLAS takes no reversed view: contiguous, so that a saved copy gives the same digits
        return values[..., ::-1], np.ascontiguousarray(vectors[..., ::-1])

    @property
    def extents(self) -> Array:
        """(n, d): singular values of the centred visible points (rows times √γ), largest first."""
        return np.sqrt(self._principal[0])

    @property
    def on_a_line(self) -> Mask:
        """(n,): whether the visible points are all collinear, or all in one place."""
        if "_principal" not in self.__dict__ and self._clearly_wide:
            return np.zeros(len(self.points), dtype=bool)
        return ~(self._principal[0][:, 1] > 0.0)

    @property
    def in_one_place(self) -> Mask:
        """(n,): whether the visible points all coincide, as far as rounding lets one see."""
        reach = np.linalg.norm(self.centre, axis=1)
        return np.asarray(self.size <= 1e-14 * np.maximum(reach, self.size))

    @property
    def rank(self) -> int:
        """The dimension of the widest shape: less than d where all of them are flat."""
        if (self._volume > _CUBE * _THIN**2).any():
            return int(self.points.shape[-1])
        return int((self._principal[0] > 0.0).sum(axis=-1).max())

    @cached_property
    def rounding(self) -> Array:
        """(n,): what rounding makes of the coordinates of a shape, of its size."""
        reach = np.linalg.norm(self.centre, axis=1)
        ratio = reach / np.where(self.size > 0.0, self.size, 1.0)
        # four is what a few roundings add up to, of the farthest coordinate
        return np.asarray(4.0 * np.finfo(np.float64).eps * (1.0 + ratio))

    def find_thin_axes(self, min_extent: float = DEFAULT.flat) -> Mask:
        """Return along which principal axes shapes extend less than this share of their length.

        Rounding counts as no extent, which matters for shapes very far from the origin.

        Returns
        -------
        ndarray of bool of shape (n_shapes, n_dims)
        """
        limit = np.maximum(min_extent, self.rounding)
        if (self._volume > _CUBE * limit**2).all():
            return np.zeros((len(self.points), self.points.shape[-1]), dtype=bool)
        values = self._principal[0]
        return np.asarray(values < limit[:, None] ** 2 * values[:, :1])

    def find_planar(self, min_extent: float = DEFAULT.flat) -> Mask:
        """Return which shapes (n,) in space are planar, but for this share of their length."""
        is_thin = self.find_thin_axes(min_extent)
        return np.asarray(is_thin[:, -1] & ~is_thin[:, 1])  # a line has no plane

    def project_to_planes(self, min_extent: float = DEFAULT.flat) -> Frames:
        """Project the shapes that are planar but for rounding onto their planes.

        A thickness that is nothing but rounding of coordinates determines no warp across a plane.
        Far from the origin rounding moves the points off the plane again, but not the centred ones.
        """
        is_planar = self.find_planar(min_extent)
        if not is_planar.any():
            return self
        normal = self.axes[is_planar][:, :, -1:]
        points, centred = np.array(self.points), np.array(self.centred)
        distances = centred[is_planar] @ normal @ normal.mT
        centred[is_planar] -= distances
        points[is_planar] -= distances
        projected = Frames(points, self.visible, self.weights)
        projected.__dict__.update(count=self.count, centre=self.centre, centred=centred)
        return projected

    @cached_property
    def _volume(self) -> Array:
        """(n,): det / (tr/d)^d of the scatter, the product of its eigenvalues over their mean's.

        It is less than `_CUBE` ε² where a shape is thinner than ε, so most shapes are known not to
        be thin without their eigenvalues.
        """
        mean = np.einsum("ndd->n", self.scatter) / self.points.shape[-1]
        return np.asarray(
            np.linalg.det(self.scatter / np.where(mean > 0.0, mean, 1.0)[:, None, None])
        )

    @property
    def _clearly_wide(self) -> bool:
        """Whether no shape is a line, by (tr² − ‖·‖²) / 2 = Σ λ_j λ_k ≤ 3 λ₁ λ₂."""
        entries = self.scatter.reshape(len(self.points), -1)
        squares = np.einsum("nk,nk->n", entries, entries)
        traces = np.einsum("ndd->n", self.scatter)
        # then λ₂ > 1e-6 λ₁
        return bool((traces**2 * (1.0 - 6e-6) > squares).all())

    @property
    def axes(self) -> Array:
        """(n, d, d): principal axes as columns, the longest first."""
        return self._principal[1]

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """(n, d) low and (n, d) high ends of the visible points along the principal axes."""
        local = self.axes.mT @ self.centred.mT
        # hidden points count too: they are at the centroid, inside the box of the others
        return local.min(axis=-1), local.max(axis=-1)


def make_frame(points: Array) -> Frames:
    """Make the frame of one shape (p, d), all visible."""
    return Frames(points[None], np.ones((1, len(points)), dtype=bool))


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


def _restrict_value(value: Any, shapes: slice | Mask) -> Any:
    """Return the entries of some shapes of an array or of a tuple of arrays; other values as is."""
    if value is None or isinstance(value, bool):
        return value
    return tuple(array[shapes] for array in value) if isinstance(value, tuple) else value[shapes]
