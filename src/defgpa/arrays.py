"""The array types of the package, stacks of them, and small algebra on stacks of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]
RawArray = NDArray[Any]  # of any kind of numbers, or of text, as files and images have them
Progress = Callable[[int, int], None]  # called with (done, total)

_A = TypeVar("_A", bound=RawArray)


def freeze(array: _A) -> _A:
    """Make an array read-only and return it."""
    array.setflags(write=False)
    return array


class Stack:
    """A dataclass whose arrays have one entry per shape; indexing selects shapes.

    Fields that are neither arrays nor stacks are shared by all shapes.
    """

    __dataclass_fields__: ClassVar[dict[str, object]]
    expensive: ClassVar[tuple[str, ...]] = ()  # cached properties that are selected, once computed

    def __getitem__(self, shape: Any) -> Self:
        selected = object.__new__(type(self))
        fields, new_fields = vars(self), vars(selected)
        for name in (*self.__dataclass_fields__, *self.expensive):
            if name in fields:
                value = fields[name]
                new_fields[name] = value[shape] if isinstance(value, (np.ndarray, Stack)) else value
        return selected


_S = TypeVar("_S", bound=Stack)


def join_stacks(stacks: Sequence[_S]) -> _S:
    """Concatenate stacks; fields without a shape axis are those of the first."""
    first = stacks[0]
    if len(stacks) == 1:
        return first
    joined = object.__new__(type(first))
    for name in first.__dataclass_fields__:
        values = [vars(stack)[name] for stack in stacks]
        vars(joined)[name] = (
            np.concatenate(values) if isinstance(values[0], np.ndarray) else values[0]
        )
    return joined


def multiply_thin(wide: Array, tall: Array) -> Array:
    """Multiply two matrices with far more terms to each sum than entries in the result.

    As ``@``, which does not let other threads run meanwhile where the result is small.
    """
    return np.asarray(np.dot(wide, tall), dtype=np.float64)


def rms(vectors: Array) -> float:
    """Return the root mean square length of vectors (p, d)."""
    return float(np.sqrt((vectors**2).sum(axis=1).mean()))


def median_of_finite(values: Array, axis: int) -> Array:
    """Compute medians along an axis, skipping NaN; NaN for slices that are all NaN.

    The same as `numpy.nanmedian`, without its warning and several times faster.

    Examples
    --------
    >>> median_of_finite(np.array([[1.0, 4.0, np.nan], [3.0, 5.0, 8.0]]), 1)
    array([2.5, 5. ])
    """
    ordered = np.sort(values, axis=axis)
    count = np.isfinite(values).sum(axis=axis, keepdims=True)
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, values.shape[axis] - 1)
    middle = np.take_along_axis(ordered, low, axis) + np.take_along_axis(ordered, high, axis)
    return np.asarray(0.5 * middle.squeeze(axis))


def rms_radius(points: Array) -> float:
    """Return the root mean square distance of points (p, d) from their centroid."""
    return float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()))


def sum_arrays(arrays: Sequence[Array]) -> Array:
    """Add arrays of one size, in order, into the first."""
    total, *others = arrays
    for array in others:
        total += array
    return total


def symmetrise(stack: Array) -> Array:
    """Return the symmetric part of every matrix of a stack, to undo what rounding did."""
    return 0.5 * (stack + stack.mT)


def compute_lengths(vectors: Array) -> Array:
    """Return the length (…) of every vector of a stack (…, d), in a third of NumPy's time."""
    return np.asarray(np.sqrt(np.einsum("...d,...d->...", vectors, vectors)))


def compute_norms(stack: Array) -> Array:
    """Return the Frobenius norm (…) of every matrix of a stack (…, i, j)."""
    return np.asarray(np.sqrt(np.einsum("...ij,...ij->...", stack, stack)))


def invert_lower(stack: Array) -> Array:
    """Return L⁻¹ of every lower triangular matrix of a stack (…, l, l)."""
    if stack.shape[-1] < 8:  # the batched general one beats LAPACK's triangular inverse
        return np.asarray(np.linalg.inv(stack), dtype=np.float64)
    from scipy.linalg.lapack import dtrtri  # slow to load, and files are read without it

    inverse = np.empty_like(stack)
    for number in np.ndindex(stack.shape[:-2]):
        # LAPACK reads by columns: the rows of L are the columns of the upper triangular Lᵀ
        inverse[number] = dtrtri(stack[number].T, lower=0)[0].T
    return inverse


def compute_inverse_root(stack: Array, negligible: float) -> Array:
    """Return V Σ^(−1/2) of every E = V Σ Vᵀ of a stack; zero columns where Σ is negligible.

    Such directions have nearly no effect: dropping them changes results by less than rounding,
    dividing by them would amplify it.
    """
    values, vectors = np.linalg.eigh(stack)
    is_relevant = values > negligible * values[..., -1:]
    roots = np.where(is_relevant, 1.0 / np.sqrt(np.where(is_relevant, values, 1.0)), 0.0)
    return np.asarray(vectors * roots[..., None, :])
