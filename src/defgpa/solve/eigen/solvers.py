"""The reference axes are the bottom eigenvectors of the cost.

Two solvers for any cost: LAPACK on the matrix itself, or block Davidson iterations on products
with it. Both return d axes, cheapest first, with the next eigenvalues to judge the gap by, and
the residuals ‖Px − σx‖ they reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import eigh

from defgpa._arrays import Array
from defgpa.solve.deformable.cost import Cost
from defgpa.solve.eigen.davidson import Eigenpairs, bottom_eigenpairs

_PATIENCE = 150  # products, of which some dozens are usual


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The cheapest axes of a cost."""

    axes: Array  # (m, d): orthonormal columns, cheapest first
    values: Array  # (≥ d + 1,): the smallest eigenvalues, ascending
    residuals: Array  # (d,): ‖Px − σx‖
    method: str
    products: int  # with P; 0 for the dense solver
    settled: bool  # whether the residuals reached their tolerance
    beyond: Array | None = None  # (m,): the cheapest direction that is not among the axes


class EigenSolver(Protocol):
    """Anything that finds the cheapest axes of a cost."""

    def axes(self, cost: Cost, idea: Callable[[], Preconditioned], dim: int) -> Spectrum:
        """The ``dim`` cheapest axes."""
        ...


class Multiplying(Protocol):
    """A symmetric matrix with a spectrum between 0 and n."""

    @property
    def n_shapes(self) -> int:
        """n."""
        ...

    def multiply(self, block: Array) -> Array:
        """The matrix times a block of columns."""
        ...


class Preconditioned(Protocol):
    """A cheap idea of the cost: where to start, and how to correct."""

    def start(self, width: int) -> Array:
        """(m, ≥ width): columns that nearly span the cheapest axes."""
        ...

    def correct(self, residuals: Array) -> Array:
        """(m, k): roughly P⁻¹ times the residuals."""
        ...


@dataclass(frozen=True)
class Dense:
    """LAPACK on the m × m matrix: exact, and the fastest up to some five hundred landmarks."""

    def axes(self, cost: Cost, idea: Callable[[], Preconditioned], dim: int) -> Spectrum:
        """All digits at once."""
        matrix = cost.dense()
        last = min(dim, len(matrix) - 1)
        values, vectors = eigh(matrix, subset_by_index=(0, last))
        axes = vectors[:, :dim]
        residuals = np.linalg.norm(matrix @ axes - axes * values[:dim], axis=0)
        return Spectrum(axes, values, residuals, "dense", 0, True, vectors[:, last])


@dataclass(frozen=True)
class Iterative:
    """Block Davidson iterations: the m × m matrix is never formed.

    Parameters
    ----------
    accuracy : float
        Wanted accuracy of the axes: residuals are brought below this times the spectral gap.
    most_products : int
        Products with P after which to give up; the result then says it is not settled.
    """

    accuracy: float = 1e-10
    most_products: int = 1000

    def axes(self, cost: Cost, idea: Callable[[], Preconditioned], dim: int) -> Spectrum:
        """As many products as the accuracy takes."""
        found = self.eigenpairs(cost, idea(), dim)
        return Spectrum(
            found.vectors[:, :dim],
            found.values,
            found.residuals[:dim],
            "iterative",
            found.products,
            found.settled,
            found.vectors[:, min(dim, found.vectors.shape[1] - 1)],
        )

    @property
    def hasty(self) -> Iterative:
        """The same with less patience, where there is another way to go on."""
        return replace(self, most_products=min(_PATIENCE, self.most_products))

    def eigenpairs(self, cost: Multiplying, cheap: Preconditioned, count: int) -> Eigenpairs:
        """The ``count`` smallest of whatever multiplies."""
        likely = cheap.start(count + 2)
        # and one column of chance, so that nothing is missed by symmetry
        chance = np.random.default_rng(0).normal(size=(len(likely), 1))
        return bottom_eigenpairs(
            cost.multiply,
            cheap.correct,
            np.hstack([likely, chance]),
            count=count,
            norm=float(cost.n_shapes),
            accuracy=self.accuracy,
            most_products=self.most_products,
        )
