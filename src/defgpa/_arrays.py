"""The array types of the package, and what is done to them everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

_A = TypeVar("_A", bound=NDArray[Any])


def frozen(array: _A) -> _A:
    """The same array, no longer writable."""
    array.setflags(write=False)
    return array


def small_product(wide: Array, tall: Array) -> Array:
    """A B of two matrices with far more terms to each sum than entries in the result.

    As ``@``, which does not let other threads run meanwhile where the result is small.
    """
    return np.asarray(np.dot(wide, tall), dtype=np.float64)


def summed(parts: Sequence[Array]) -> Array:
    """The sum of arrays of one size, in order, in the place of the first."""
    total, *rest = parts
    for part in rest:
        total += part
    return total


def symmetrised(stack: Array) -> Array:
    """The symmetric part of every matrix of a stack: rounding breaks symmetry, theory does not."""
    return 0.5 * (stack + stack.mT)


_LARGE = 8  # from this size on LAPACK's triangular inverse beats the batched general one


def inverse_of_lower(stack: Array) -> Array:
    """L⁻¹ of every lower triangular matrix of a stack (b, l, l)."""
    if stack.shape[-1] < _LARGE:
        return np.asarray(np.linalg.inv(stack), dtype=np.float64)
    inverse = np.empty_like(stack)
    for own, result in zip(stack, inverse, strict=True):
        # LAPACK reads by columns: the rows of L are the columns of the upper triangular Lᵀ
        result[...] = dtrtri(own.T, lower=0)[0].T
    return inverse
