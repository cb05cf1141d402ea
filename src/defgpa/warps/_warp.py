"""A solved warp: a function of points.

warp(x) = features(x) @ weights + offset
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from defgpa._arrays import Array, Mask, blocks, in_blocks
from defgpa.errors import ShapeError
from defgpa.warps._distances import BLOCK_BYTES
from defgpa.warps._inverse import NewtonInverse
from defgpa.warps._protocol import Basis, DifferentiableBasis, FactoredBasis, SparseBasis


@dataclass(frozen=True, eq=False, repr=False)
class Warp:
    """A warp of the plane or of space, callable on any points (p, d).

    Attributes
    ----------
    basis : Basis
        The features it is linear in.
    weights : array (l, d)
        Their weights.
    offset : array (d,)
        Added to every image; zero unless the alignment was posed.
    landmarks : array (m, d), optional
        The points it was fitted to, NaN where not seen: where an inverse starts to look when the
        basis itself does not know where its shape lies.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa import Affine
    >>> points = np.random.default_rng(0).normal(size=(9, 2))
    >>> basis = Affine().basis(points)
    >>> weights, *_ = np.linalg.lstsq(basis.features(points), 2 * points + 1)
    >>> warp = Warp(basis, weights)
    >>> bool(np.allclose(warp(points), 2 * points + 1))
    True
    >>> bool(np.allclose(warp.jacobian(points), 2 * np.eye(2)))
    True
    """

    basis: Basis
    weights: Array
    offset: Array | float = 0.0
    landmarks: Array | None = None

    def __repr__(self) -> str:
        size, dim = self.weights.shape
        return f"Warp({dim}-D, {size} functions of {type(self.basis).__name__})"

    @cached_property
    def coefficients(self) -> Array:
        """(r, d): what the columns of a factored basis are multiplied with."""
        mixing = getattr(self.basis, "mixing", None)
        return self.weights if mixing is None else mixing @ self.weights

    def __call__(self, points: ArrayLike) -> Array:
        """The images (p, d) of points (p, d); NaN stays NaN."""
        array = self._checked(points)
        parts = blocks(len(array), self._block_size)
        images = in_blocks(lambda part: self._images(array[part]) + self.offset, parts)
        return np.concatenate(images) if images else np.empty(array.shape)

    def jacobian(self, points: ArrayLike) -> Array:
        """(p, d, d): row a, column b is the derivative of image coordinate a by coordinate b.

        Exact for the built-in warps and for a basis that offers ``gradients(points)``; by central
        differences for one that offers only features.
        """
        array = self._checked(points)
        parts = blocks(len(array), max(1, self._block_size // array.shape[1]))
        found = in_blocks(lambda part: self._jacobian(array[part]), parts)
        return np.concatenate(found) if found else np.empty((0, *self.weights.shape[1:] * 2))

    def foldovers(self, points: ArrayLike) -> Mask:
        """(p,): where the warp folds over: it is locally mirrored against its bulk, or collapses.

        The Jacobian determinant is compared with its own prevailing sign over these points: a
        warp of a mirrored specimen is reversed everywhere and folds over nowhere.
        """
        determinant = np.linalg.det(self.jacobian(points))
        known = determinant[~np.isnan(determinant)]
        prevailing = -1.0 if len(known) and np.median(known) < 0 else 1.0
        return np.asarray(determinant * prevailing <= 0.0)

    def inverse(self) -> Callable[[ArrayLike], Array]:
        """The (approximate) inverse warp: reference space to the space of this shape.

        An affine warp gives the exact inverse. A spline gives the paper's: the interpolating
        spline that takes the images of the control points back to the control points. The other
        families do the same with a grid over the shape, and so does a basis of one's own where
        the warp knows its landmarks; where it does not, ``exact_inverse()`` is given.
        """
        inverted = getattr(self.basis, "inverted", None)
        if inverted is not None:
            return inverted(self)
        if self.landmarks is None:
            return self.exact_inverse()
        from defgpa.warps._box import inverse_around  # which makes warps itself

        return inverse_around(self, self.landmarks)

    def exact_inverse(self, tolerance: float = 1e-12) -> NewtonInverse:
        """The inverse solved point by point, exact where the warp is one-to-one."""
        return NewtonInverse(self, tolerance)

    def then(self, matrix: Array, offset: Array) -> Warp:
        """This warp followed by y ↦ y @ matrix + offset."""
        moved = np.broadcast_to(self.offset, matrix.shape[:1]) @ matrix + offset
        return replace(self, weights=self.weights @ matrix, offset=moved)

    def _images(self, points: Array) -> Array:
        basis = self.basis
        if isinstance(basis, SparseBasis):
            return np.asarray(basis.sparse_columns(points) @ self.coefficients)
        if isinstance(basis, FactoredBasis):
            return basis.columns(points) @ self.coefficients
        return basis.features(points) @ self.weights

    def _jacobian(self, points: Array) -> Array:
        basis = self.basis
        if isinstance(basis, SparseBasis):
            by_axis = basis.sparse_column_gradients(points)
            return np.stack([columns @ self.coefficients for columns in by_axis], axis=-1)
        if isinstance(basis, FactoredBasis):
            return np.swapaxes(basis.column_gradients(points) @ self.coefficients, -1, -2)
        if isinstance(basis, DifferentiableBasis):
            return np.swapaxes(basis.gradients(points) @ self.weights, -1, -2)
        return self.jacobian_by_differences(points)

    def jacobian_by_differences(self, points: Array) -> Array:
        """(p, d, d): the Jacobian by central differences of the features."""
        size = float(np.nanmax(np.ptp(points, axis=0), initial=0.0)) or 1.0
        step = float(np.cbrt(np.finfo(np.float64).eps)) * size  # truncation and rounding balance
        columns = []
        for axis in np.eye(points.shape[1]):
            forward = self.basis.features(points + step * axis) @ self.weights
            backward = self.basis.features(points - step * axis) @ self.weights
            columns.append((forward - backward) / (2 * step))
        return np.stack(columns, axis=-1)

    @property
    def _block_size(self) -> int:
        if isinstance(self.basis, SparseBasis):
            return 4096  # their few entries stay in cache however many columns there are
        return max(64, BLOCK_BYTES // (8 * max(1, len(self.coefficients))))

    def _checked(self, points: Any) -> Array:
        array = np.asarray(points, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.weights.shape[1]:
            raise ShapeError(
                f"A {self.weights.shape[1]}-D warp takes points (p, {self.weights.shape[1]}); "
                f"got an array of size {array.shape}."
            )
        return array
