"""What a warp consists of, and what a warp of one's own needs.

Three lifetimes, three types: a model (hyper-parameters) makes a basis (of one shape), and a basis
with its coefficients is a warp.

A model of one's own needs only ``basis(points)``, and its basis only ``features(points)`` and
``penalty()``; nothing of this module has to be imported for that. A basis may also have
``gradients(points)``, (p, d) points to (p, d, l), for exact Jacobians.

The families of this package are subclasses of `WarpFamily` and `FactoredBasis`: they make the bases
of many shapes at once, as the same arrays with one more axis in front, and compute features as

    features(x) = columns(x) @ mixing      cheap columns, small dense algebra.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

import numpy as np

from defgpa.arrays import Array, Stack
from defgpa.geometry import Geometry, measure_points
from defgpa.warps.parameters import format_model, get_parameters, replace_parameters

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Basis(Protocol):
    """Features of points, bound to one shape: warp(x) = features(x) @ coefficients."""

    def features(self, points: Array) -> Array:
        """Return the (p, l) features of points (p, d)."""
        ...

    def penalty(self) -> Array:
        """Return R, (l, l) positive semi-definite: coefficients W cost tr(WᵀRW)."""
        ...


class WarpModel(Protocol):
    """Hyper-parameters of a family of warps."""

    def basis(self, points: Array) -> Basis:
        """Return the basis for a shape whose visible points are ``points`` (p, d)."""
        ...


class FactoredBasis(Stack):
    """A basis whose features are cheap columns times a small matrix.

    All arrays may have leading axes, one entry per shape: then it is a stack of bases, and an
    index takes the basis of one shape, or a part of the stack.
    """

    if TYPE_CHECKING:  # a field, a property or a constant of the subclass

        @property
        def mixing(self) -> Array | None:
            """(…, r, l), or None for the identity: features = columns @ mixing."""

    def columns(self, points: Array) -> Array:
        """Return the (…, p, r) columns of points (…, p, d)."""
        raise NotImplementedError

    def column_gradients(self, points: Array) -> Array:
        """Return the (…, p, d, r) derivatives of each column by each coordinate of the points."""
        raise NotImplementedError

    def penalty(self) -> Array:
        """Return the (…, l, l) penalties of the coefficients of each shape."""
        raise NotImplementedError

    def features(self, points: Array) -> Array:
        """Return the (…, p, l) features of points (…, p, d)."""
        columns = self.columns(points)
        return columns if self.mixing is None else columns @ self.mixing

    def deflate(self) -> FactoredBasis | None:
        """Return the same warps by columns that keep more digits in products, if there are any."""
        return None

    def unmix(self) -> FactoredBasis:
        """Return the same warps with the columns as features."""
        return self


class SparseBasis(FactoredBasis):
    """A factored basis of one shape whose columns are mostly zero."""

    def sparse_columns(self, points: Array) -> csr_array:
        """Return the (p, r) columns of points (p, d) in compressed rows."""
        raise NotImplementedError

    def sparse_column_gradients(self, points: Array) -> Sequence[csr_array]:
        """Return the derivatives of the columns by each coordinate, (p, r) in compressed rows."""
        raise NotImplementedError


_B = TypeVar("_B", bound=FactoredBasis)


class WarpFamily(Generic[_B]):
    """A model that makes the bases of many shapes at once: a frozen dataclass of parameters.

    It has the methods that scikit-learn's tools expect. A model is a value: ``set_params`` returns
    another one, so that what was made with the first stays what it was.
    """

    def basis(self, points: Array) -> _B:
        """Return the basis of one shape with visible points (p, d)."""
        return self.bases(measure_points(np.asarray(points, dtype=np.float64)))[0]

    def bases(self, geometry: Geometry) -> _B:
        """Return the bases of n shapes as one stack."""
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the parameters by name; with ``deep`` also those of its parts: kernel__width."""
        return get_parameters(self, deep)

    def set_params(self, **params: object) -> Self:
        """Return a model with these parameters; those of its parts as kernel__width."""
        model: Self = replace_parameters(self, params)
        return model

    __repr__ = format_model


def normalize_points(points: Array, centre: Array, scale: Array) -> Array:
    """Return x̂ = (x − centre) / scale, the points in the units of their shape.

    Parameters
    ----------
    points : array (…, p, d)
    centre : array (…, d)
        The centroid of the shape.
    scale : array (…,)
        Its RMS radius.
    """
    return (points - centre[..., None, :]) / scale[..., None, None]
