"""A solved warp: a function of points.

warp(x) = features(x) @ coefficients + offset
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from defgpa.arrays import Array, Mask
from defgpa.errors import ShapeError
from defgpa.threads import map_blocks, split_range
from defgpa.warps.base import Basis, FactoredBasis, SparseBasis
from defgpa.warps.distances import BLOCK_BYTES
from defgpa.warps.inverse import NewtonInverse


@dataclass(frozen=True, eq=False, repr=False)
class Warp:
    """A warp of the plane or of space, callable on any points (p, d).

    Attributes
    ----------
    basis : Basis
        The features it is linear in.
    coefficients : array (l, d)
        The coefficients of the features.
    offset : array (d,)
        Added to every image; zero unless the alignment was posed.
    landmarks : array (m, d), optional
        The points it was fitted to, NaN where missing: where the search for an inverse starts if
        the basis does not know where its shape lies.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa import Affine
    >>> points = np.random.default_rng(0).normal(size=(9, 2))
    >>> basis = Affine().basis(points)
    >>> coefficients, *_ = np.linalg.lstsq(basis.features(points), 2 * points + 1)
    >>> warp = Warp(basis, coefficients)
    >>> bool(np.allclose(warp(points), 2 * points + 1))
    True
    >>> bool(np.allclose(warp.jacobian(points), 2 * np.eye(2)))
    True
    """

    basis: Basis
    coefficients: Array
    offset: Array | float = 0.0
    landmarks: Array | None = None

    def __repr__(self) -> str:
        size, dim = self.coefficients.shape
        return f"Warp({dim}-D, {size} functions of {type(self.basis).__name__})"

    @cached_property
    def column_coefficients(self) -> Array:
        """(r, d): the coefficients of the columns of a factored basis."""
        mixing = getattr(self.basis, "mixing", None)
        return self.coefficients if mixing is None else mixing @ self.coefficients

    def __call__(self, points: ArrayLike) -> Array:
        """Return the images (p, d) of points (p, d); NaN stays NaN."""
        images = map_blocks(self._compute_images, self._split_points(points))
        return np.concatenate([np.empty((0, self.coefficients.shape[1])), *images])

    def jacobian(self, points: ArrayLike) -> Array:
        """Return the (p, d, d) Jacobians: row a, column b is ∂ image coordinate a / ∂ coordinate b.

        Exact for the built-in warps and for a basis that offers ``gradients(points)``; by central
        differences for one that offers only features.
        """
        n_dims = self.coefficients.shape[1]
        jacobians = map_blocks(self._compute_jacobian, self._split_points(points, n_dims))
        return np.concatenate([np.empty((0, n_dims, n_dims)), *jacobians])

    def foldovers(self, points: ArrayLike) -> Mask:
        """Find the points (p,) where the warp folds over: locally mirrored, or collapsed.

        The Jacobian determinant is compared with its prevailing sign over these points: the warp of
        a mirrored specimen is reversed everywhere and folds over nowhere.
        """
        determinants = np.linalg.det(self.jacobian(points))
        finite = determinants[~np.isnan(determinants)]
        sign = -1.0 if len(finite) and np.median(finite) < 0 else 1.0
        return np.asarray(determinants * sign <= 0.0)

    def inverse(self) -> Callable[[ArrayLike], Array]:
        """Return the (approximate) inverse warp: reference space to the space of this shape.

        An affine warp gives the exact inverse. A spline gives the paper's: the interpolating
        spline that takes the images of the control points back to the control points. The other
        families do the same with a grid over the shape, and so does a basis of one's own where
        the warp knows its landmarks; where it does not, ``exact_inverse()`` is given.
        """
        invert = getattr(self.basis, "invert", None)
        if invert is not None:
            return cast("Warp", invert(self))
        if self.landmarks is None:
            return self.exact_inverse()
        from defgpa.warps.box import approximate_inverse_around  # which makes warps itself

        return approximate_inverse_around(self, self.landmarks)

    def exact_inverse(self, tolerance: float = 1e-12) -> NewtonInverse:
        """Return the exact inverse, solved point by point, where the warp is one-to-one."""
        return NewtonInverse(self, tolerance)

    def compose_affine(self, matrix: Array, offset: Array) -> Warp:
        """Return this warp followed by y ↦ y @ matrix + offset."""
        moved = np.broadcast_to(self.offset, matrix.shape[:1]) @ matrix + offset
        return replace(self, coefficients=self.coefficients @ matrix, offset=moved)

    def _compute_images(self, points: Array) -> Array:
        basis = self.basis
        if isinstance(basis, SparseBasis):
            return basis.sparse_columns(points) @ self.column_coefficients + self.offset
        if isinstance(basis, FactoredBasis):
            return basis.columns(points) @ self.column_coefficients + self.offset
        return basis.features(points) @ self.coefficients + self.offset

    def _compute_jacobian(self, points: Array) -> Array:
        basis = self.basis
        if isinstance(basis, SparseBasis):
            by_axis = basis.sparse_column_gradients(points)
            return np.stack([columns @ self.column_coefficients for columns in by_axis], axis=-1)
        if isinstance(basis, FactoredBasis):
            return np.swapaxes(basis.column_gradients(points) @ self.column_coefficients, -1, -2)
        gradients = getattr(basis, "gradients", None)
        if gradients is not None:
            return np.swapaxes(gradients(points) @ self.coefficients, -1, -2)
        return self.estimate_jacobian(points)

    def estimate_jacobian(self, points: Array) -> Array:
        """Return the (p, d, d) Jacobians by central differences of the features."""
        size = float(np.nanmax(np.ptp(points, axis=0), initial=0.0)) or 1.0
        step = float(np.cbrt(np.finfo(np.float64).eps)) * size  # truncation and rounding balance
        columns = []
        for axis in np.eye(points.shape[1]):
            forward = self.basis.features(points + step * axis) @ self.coefficients
            backward = self.basis.features(points - step * axis) @ self.coefficients
            columns.append((forward - backward) / (2 * step))
        return np.stack(columns, axis=-1)

    def _split_points(self, points: ArrayLike, n_values: int = 1) -> list[Array]:
        """Split points (p, d) into blocks whose columns, of so many values each, stay in cache."""
        array = np.asarray(points, dtype=np.float64)
        n_dims = self.coefficients.shape[1]
        if array.ndim != 2 or array.shape[1] != n_dims:
            raise ShapeError(
                f"A {n_dims}-D warp takes points (p, {n_dims}); got an array of size {array.shape}."
            )
        if isinstance(self.basis, SparseBasis):
            size = 4096  # the few entries stay in cache however many columns there are
        else:
            size = max(64, BLOCK_BYTES // (8 * max(1, len(self.column_coefficients))))
        return [array[block] for block in split_range(len(array), size // n_values)]
