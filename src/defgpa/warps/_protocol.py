"""Three lifetimes, three types: model (hyper-parameters) → basis (one shape) → warp (solved).

A model of one's own needs only ``basis(points)``, a basis of one's own only ``features`` and
``penalty``; nothing here has to be imported for that. The built-in bases offer more, and are
used through it where it helps:

    features(x) = columns(x) @ mixing      cheap columns, small dense algebra
    column_gradients(x)                    exact Jacobians (gradients(x) in a basis of one's own)
    sparse_columns(x)                      the same columns, where they are mostly zero
    bases(frames)                          all shapes at once: the same arrays with one more axis
    deflated(), in_columns(w), unmixed()   the same warps in other coordinates, for the solve
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from defgpa._arrays import Array
from defgpa.frames import Frames


class Basis(Protocol):
    """Features of points, bound to one shape: warp(x) = features(x) @ weights."""

    def features(self, points: Array) -> Array:
        """(p, d) points to (p, l) features."""
        ...

    def penalty(self) -> Array:
        """(l, l) positive semi-definite R: a warp is charged tr(WᵀRW)."""
        ...


class WarpModel(Protocol):
    """Hyper-parameters of a family of warps."""

    def basis(self, points: Array) -> Basis:
        """The basis for a shape whose visible points are ``points`` (p, d)."""
        ...


@runtime_checkable
class FactoredBasis(Protocol):
    """A basis whose features are cheap columns times a small matrix.

    All arrays may have leading axes, one entry per shape: then it is a stack of bases.
    """

    @property
    def mixing(self) -> Array | None:
        """(…, r, l), or None for the identity: features = columns @ mixing."""
        ...

    def columns(self, points: Array) -> Array:
        """(…, p, d) points to (…, p, r) columns."""
        ...

    def column_gradients(self, points: Array) -> Array:
        """(…, p, d) points to (…, p, d, r): the derivative of each column by each coordinate."""
        ...

    def features(self, points: Array) -> Array:
        """(…, p, l): ``columns(points) @ mixing``."""
        ...

    def penalty(self) -> Array:
        """(…, l, l): what the weights of each shape are charged."""
        ...

    def __getitem__(self, shape: Any) -> FactoredBasis:
        """The basis of one shape of a stack, or a part of the stack."""
        ...


@runtime_checkable
class SparseBasis(Protocol):
    """A basis of one shape whose columns are mostly zero."""

    def sparse_columns(self, points: Array) -> Any:
        """(p, d) points to (p, r) columns in compressed rows."""
        ...

    def sparse_column_gradients(self, points: Array) -> Sequence[Any]:
        """The columns' derivatives by each of the d coordinates, each (p, r) in compressed rows."""
        ...


@runtime_checkable
class DifferentiableBasis(Protocol):
    """A basis of one's own that also knows its derivatives."""

    def gradients(self, points: Array) -> Array:
        """(p, d) points to (p, d, l): the derivative of each feature by each coordinate."""
        ...


@runtime_checkable
class StackedModel(Protocol):
    """A model that makes the bases of many shapes at once."""

    def basis(self, points: Array) -> FactoredBasis:
        """The basis of one shape."""
        ...

    def bases(self, frames: Frames) -> FactoredBasis:
        """The bases of n shapes as one stack, from their points, visibility and where they lie."""
        ...


@runtime_checkable
class Recombinable(Protocol):
    """A factored basis that knows its warps in other coordinates, which keep more digits."""

    def deflated(self) -> FactoredBasis | None:
        """The same warps by columns that keep their digits in products; None if unknown."""
        ...

    def in_columns(self, weights: Array) -> tuple[FactoredBasis, Array]:
        """The basis a warp is told in, and the weights (…, r, j) there of those (…, l, j) here."""
        ...

    def unmixed(self) -> FactoredBasis:
        """The same warps by the coefficients of their columns: features(x) = columns(x)."""
        ...
