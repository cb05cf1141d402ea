"""Find the bottom eigenvectors of the cost: the axes that the reference is made of.

Two solvers: LAPACK on the matrix itself, and block Davidson iterations on products with a large
one. Both return the cheapest axes, the next eigenvalue to judge the gap by, and the residuals
‖Px − σx‖ they reached.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, eigh, lapack

from defgpa.arrays import Array
from defgpa.solvers.davidson import find_bottom_eigenpairs

_SYMMETRIC = 1e-6  # relative: far above rounding, far below the asymmetry of real shapes


class Preconditioner(Protocol):
    """A cheap approximation of the inverse of a cost: where to start, and how to correct."""

    def start(self, width: int) -> Array:
        """Return columns (m, ≥ width) that nearly span the cheapest axes."""
        ...

    def correct(self, residuals: Array) -> Array:
        """Return roughly P⁻¹ times the residuals (m, k)."""
        ...


class Cost(Protocol):
    """P of m landmarks: what an eigen-solver needs to know of it."""

    @property
    def n_landmarks(self) -> int:
        """The number of landmarks, m."""
        ...

    @property
    def n_shapes(self) -> int:
        """The number of shapes, n."""
        ...

    @property
    def norm(self) -> float:
        """A bound of the spectrum: the largest total weight of a landmark, n without weights."""
        ...

    def multiply(self, block: Array) -> Array:
        """Return P X for columns X (m, k)."""
        ...

    def dense(self) -> Array:
        """Return P itself, (m, m), a new array that the caller may change."""
        ...

    def preconditioner(self) -> Preconditioner:
        """Return an approximation of P⁻¹."""
        ...


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The k cheapest axes of a cost."""

    axes: Array  # (m, k): orthonormal columns, cheapest first
    values: Array  # (≥ k + 1,): the smallest eigenvalues, ascending; k of them if there are no more
    residuals: Array  # (k,): ‖Px − σx‖
    next_vector: Array  # (m,): the cheapest direction that is not among the axes
    converged: bool  # whether the residuals reached their tolerance
    method: str
    n_products: int  # with P; 0 for the dense solver
    mixing: Array | None = None  # (k, k): T; axis k of the cost is axes @ T[:, k]; None: T = I

    @property
    def n_axes(self) -> int:
        """The number of axes, k."""
        return int(self.axes.shape[1])

    @property
    def next_value(self) -> float:
        """The eigenvalue after those of the axes; infinite if there is none."""
        return float(self.values[self.n_axes]) if len(self.values) > self.n_axes else np.inf

    @property
    def gap(self) -> float:
        """(σ_{k+1} − σ_k) / σ_{k+1}; 0 if there is no next eigenvalue."""
        if len(self.values) <= self.n_axes or not self.next_value > 0.0:
            return 0.0
        return float(1.0 - self.values[self.n_axes - 1] / self.next_value)

    def truncate(self, count: int) -> Spectrum:
        """Return the spectrum of the first axes, with the next one to judge them by."""
        if count == self.n_axes:
            return self
        return replace(
            self,
            axes=self.axes[:, :count],
            values=self.values[: count + 1],
            residuals=self.residuals[:count],
            next_vector=self.axes[:, count],
            mixing=None if self.mixing is None else self.mixing[:count, :count],
        )


class EigenSolver(Protocol):
    """Anything that finds the cheapest axes of a cost."""

    def find_axes(self, cost: Cost, count: int, start: Array | None = None) -> Spectrum:
        """Find the ``count`` cheapest axes; ``start`` (m, j) nearly spans them, if given."""
        ...


@dataclass(frozen=True)
class Dense:
    """LAPACK on the m × m matrix: exact, and the fastest up to some five hundred landmarks."""

    def find_axes(self, cost: Cost, count: int, start: Array | None = None) -> Spectrum:
        """Find the ``count`` cheapest axes, to all digits."""
        return find_lowest_axes(cost.dense()[None], count)[0]


def find_lowest_axes(matrices: Array, count: int) -> list[Spectrum]:
    """Find the ``count`` lowest eigenvectors of each symmetric matrix (g, m, m) by LAPACK."""
    last = min(count, matrices.shape[-1] - 1)
    # without the checks of scipy's eigh, which take as long as a small decomposition
    *sizes, _ = lapack.dsyevr_lwork(matrices.shape[-1], lower=1)
    lwork, liwork = (int(size) for size in sizes)
    pairs = [
        lapack.dsyevr(m, range="I", il=1, iu=last + 1, lower=1, lwork=lwork, liwork=liwork)
        for m in matrices
    ]
    if any(pair[-1] for pair in pairs):
        raise LinAlgError("the eigenvalues of the cost were not found by LAPACK's dsyevr")
    values = np.stack([pair[0][: last + 1] for pair in pairs])
    vectors = np.stack([pair[1] for pair in pairs])
    overlaps = vectors.mT @ vectors - np.eye(last + 1)
    for number in np.flatnonzero(np.abs(overlaps).max(axis=(1, 2)) > 1e-10):
        # of exact ties LAPACK's subsets lose half their digits; divide and conquer does not
        all_values, all_vectors = eigh(matrices[number], driver="evd", check_finite=False)
        values[number], vectors[number] = all_values[: last + 1], all_vectors[:, : last + 1]
    axes = vectors[:, :, :count]
    errors = matrices @ axes - axes * values[:, None, :count]
    residuals = np.sqrt(np.einsum("gmk,gmk->gk", errors, errors))
    return [
        Spectrum(*arrays, True, "dense", 0)
        for arrays in zip(axes, values, residuals, vectors[:, :, last], strict=True)
    ]


@dataclass(frozen=True)
class Iterative:
    """Block Davidson iterations: the m × m matrix is never formed.

    Parameters
    ----------
    accuracy : float
        Wanted accuracy of the axes: residuals are brought below this times the spectral gap.
    max_products : int
        Products with P after which to give up; the result then says that it has not converged.
    """

    accuracy: float = 1e-10
    max_products: int = 3000

    def find_axes(self, cost: Cost, count: int, start: Array | None = None) -> Spectrum:
        """Find the ``count`` cheapest axes, by as many products as the accuracy takes."""
        preconditioner = cost.preconditioner()
        likely = preconditioner.start(count + 2) if start is None else start
        # random columns, so that nothing is missed by symmetry
        n_random = max(1, count + 3 - likely.shape[1])
        chance = np.random.default_rng(0).normal(size=(len(likely), n_random))
        start = np.hstack([likely, chance])
        pairs = find_bottom_eigenpairs(
            cost.multiply,
            preconditioner.correct,
            start,
            count=count,
            norm=cost.norm,
            accuracy=self.accuracy,
            max_products=self.max_products,
        )
        return Spectrum(
            pairs.vectors[:, :count],
            pairs.values,
            pairs.residuals[:count],
            pairs.vectors[:, min(count, pairs.vectors.shape[1] - 1)],
            pairs.converged,
            "iterative",
            pairs.n_products,
        )


def choose_signs(axes: Array) -> Array:
    """Return signs (…, k) that put the heavier tail of each axis (…, m, k) on the positive side.

    A symmetric axis has none: then the first of its largest entries is positive.
    """
    cubes = axes * axes * axes  # ** 3 goes through a logarithm
    skew, size = cubes.sum(axis=-2), np.abs(cubes).sum(axis=-2)
    among_largest = np.abs(axes) >= (1.0 - _SYMMETRIC) * np.abs(axes).max(axis=-2, keepdims=True)
    first = among_largest.argmax(axis=-2)[..., None, :]
    largest = np.take_along_axis(axes, first, axis=-2)[..., 0, :]
    sign = np.where(np.abs(skew) > _SYMMETRIC * size, np.sign(skew), np.sign(largest))
    return np.asarray(np.where(sign == 0, 1.0, sign))
