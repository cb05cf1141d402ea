"""The reference axes are the bottom eigenvectors of the cost.

Two solvers: LAPACK on the matrix itself, or on each matrix of a stack; block Davidson iterations on
products with a large one. Both return the cheapest axes, the next eigenvalue to judge the gap by,
and the residuals ‖Px − σx‖ they reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import eigh

from defgpa._arrays import Array, Mask, Stack
from defgpa.solvers.davidson import bottom_eigenpairs

_SYMMETRIC = 1e-6  # relative: far above rounding, far below the asymmetry of real shapes


class Cost(Protocol):
    """P of m landmarks: what an eigen-solver needs to know of it."""

    @property
    def n_landmarks(self) -> int:
        """m."""
        ...

    @property
    def n_shapes(self) -> int:
        """n, which bounds the spectrum."""
        ...

    def multiply(self, block: Array) -> Array:
        """(m, k): P X."""
        ...

    def dense(self) -> Array:
        """(m, m): P itself."""
        ...


@dataclass(frozen=True, eq=False)
class Spectrum(Stack):
    """The k cheapest axes of a cost, or of a stack of costs (one more axis in front)."""

    axes: Array  # (…, m, k): orthonormal columns, cheapest first
    values: Array  # (…, ≥ k + 1): the smallest eigenvalues, ascending
    residuals: Array  # (…, k): ‖Px − σx‖
    next_vector: Array  # (…, m): the cheapest direction that is not among the axes
    converged: Mask  # (…): whether the residuals reached their tolerance
    method: str
    n_products: int  # with P; 0 for the dense solver

    @property
    def n_axes(self) -> int:
        """The number of axes, k."""
        return int(self.axes.shape[-1])

    @property
    def gap(self) -> Array:
        """(…): (σ_{k+1} − σ_k) / σ_{k+1}; 0 where there is no next eigenvalue."""
        values, k = self.values, self.n_axes
        if values.shape[-1] <= k:
            return np.zeros(values.shape[:-1])
        last, beyond = values[..., k - 1], values[..., k]
        positive = np.where(beyond > 0.0, beyond, 1.0)
        return np.asarray(np.where(beyond > 0.0, (beyond - last) / positive, 0.0))

    @property
    def stacked(self) -> Spectrum:
        """The spectrum as a stack: a single one becomes a stack of one."""
        return self if self.axes.ndim == 3 else self[None]


class EigenSolver(Protocol):
    """Anything that finds the cheapest axes of a cost."""

    def axes(
        self, cost: Cost, make_preconditioner: Callable[[], Preconditioner], count: int
    ) -> Spectrum:
        """The ``count`` cheapest axes."""
        ...


class Preconditioner(Protocol):
    """A cheap approximation of the inverse of a cost: where to start, and how to correct."""

    def start(self, width: int) -> Array:
        """(m, ≥ width): columns that nearly span the cheapest axes."""
        ...

    def correct(self, residuals: Array) -> Array:
        """(m, k): roughly P⁻¹ times the residuals."""
        ...


@dataclass(frozen=True)
class Dense:
    """LAPACK on the m × m matrix: exact, and the fastest up to some five hundred landmarks."""

    def axes(
        self, cost: Cost, make_preconditioner: Callable[[], Preconditioner], count: int
    ) -> Spectrum:
        """The ``count`` cheapest axes, to all digits; of a stack of costs, those of each."""
        return lowest_axes(cost.dense(), count)


def lowest_axes(matrix: Array, count: int) -> Spectrum:
    """The ``count`` lowest eigenvectors of a symmetric matrix, or of each of a stack, by LAPACK."""
    last = min(count, matrix.shape[-1] - 1)
    if matrix.ndim == 2:
        values, vectors = _lowest(matrix, last)
    elif matrix.shape[-1] <= 150:  # all of a stack in one call are found sooner than a few of each
        values, vectors = np.linalg.eigh(matrix)
    else:
        each = [_lowest(own, last) for own in matrix]
        values, vectors = (np.stack(own) for own in zip(*each, strict=True))
    axes, values = vectors[..., :count], values[..., : last + 1]
    residuals = np.linalg.norm(matrix @ axes - axes * values[..., None, :count], axis=-2)
    sure = np.ones(matrix.shape[:-2], dtype=bool)
    return Spectrum(axes, values, residuals, vectors[..., last], sure, "dense", 0)


def _lowest(matrix: Array, last: int) -> tuple[Array, Array]:
    """The eigenvalues and eigenvectors of a matrix (m, m) up to the one numbered ``last``."""
    values, vectors = eigh(matrix, subset_by_index=(0, last), check_finite=False)
    if np.abs(vectors.T @ vectors - np.eye(last + 1)).max() > 1e-10:
        # of exact ties LAPACK's subsets lose half their digits; divide and conquer does not
        values, vectors = eigh(matrix, driver="evd", check_finite=False)
    return values[: last + 1], vectors[:, : last + 1]


@dataclass(frozen=True)
class Iterative:
    """Block Davidson iterations: the m × m matrix is never formed.

    Parameters
    ----------
    accuracy : float
        Wanted accuracy of the axes: residuals are brought below this times the spectral gap.
    most_products : int
        Products with P after which to give up; the result then says that it has not converged.
    """

    accuracy: float = 1e-10
    most_products: int = 3000

    def axes(
        self, cost: Cost, make_preconditioner: Callable[[], Preconditioner], count: int
    ) -> Spectrum:
        """The ``count`` cheapest axes, by as many products as the accuracy takes."""
        preconditioner = make_preconditioner()
        likely = preconditioner.start(count + 2)
        # and one column of chance, so that nothing is missed by symmetry
        chance = np.random.default_rng(0).normal(size=(len(likely), 1))
        found = bottom_eigenpairs(
            cost.multiply,
            preconditioner.correct,
            np.hstack([likely, chance]),
            count=count,
            norm=float(cost.n_shapes),
            accuracy=self.accuracy,
            most_products=self.most_products,
        )
        return Spectrum(
            found.vectors[:, :count],
            found.values,
            found.residuals[:count],
            found.vectors[:, min(count, found.vectors.shape[1] - 1)],
            np.array(found.converged),
            "iterative",
            found.n_products,
        )


def reproducible_signs(axes: Array) -> Array:
    """(…, k): the sign that puts the heavier tail of each axis (…, m, k) on the positive side.

    A symmetric axis has none: then the first of its largest entries is positive.
    """
    cubes = axes * axes * axes  # ** 3 goes through a logarithm
    skew, size = cubes.sum(axis=-2), np.abs(cubes).sum(axis=-2)
    among_largest = np.abs(axes) >= (1.0 - _SYMMETRIC) * np.abs(axes).max(axis=-2, keepdims=True)
    first = among_largest.argmax(axis=-2)[..., None, :]
    largest = np.take_along_axis(axes, first, axis=-2)[..., 0, :]
    sign = np.where(np.abs(skew) > _SYMMETRIC * size, np.sign(skew), np.sign(largest))
    return np.asarray(np.where(sign == 0, 1.0, sign))
