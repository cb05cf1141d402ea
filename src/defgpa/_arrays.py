"""The array types of the package, and what is done to them everywhere."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

_A = TypeVar("_A", bound=NDArray[Any])


def frozen(array: _A) -> _A:
    """The same array, no longer writable."""
    array.setflags(write=False)
    return array


def transposed(stack: Array) -> Array:
    """The transpose of every matrix of a stack."""
    return np.swapaxes(stack, -1, -2)


def symmetrised(stack: Array) -> Array:
    """The symmetric part of every matrix of a stack: rounding breaks symmetry, theory does not."""
    return 0.5 * (stack + transposed(stack))
