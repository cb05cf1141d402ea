"""The reference axes are the bottom eigenvectors of the cost.

Three solvers: LAPACK on the matrix itself, inverse iteration on a stack of small matrices, or block
Davidson iterations on products with a large one. All return the cheapest axes, the next eigenvalue
to judge the gap by, and the residuals ‖Px − σx‖ they reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigh

from defgpa._arrays import Array, Index, Mask, inverse_of_lower
from defgpa.solve.eigen.davidson import bottom_eigenpairs

_ORTHONORMAL = 1e-10  # eigenvectors whose products are farther from 0 and 1 have lost digits
_FEW = 4  # matrices: not worth a stack
_EXTRA = 4  # vectors more than are wanted, for speed: the error falls by σ_k / σ_(k + 5) a step
_SHIFT = 1e-6  # relative to the largest eigenvalue possible: bounds the condition of A + sI
_PRECISION = 1e-11  # residual over gap: the angle by which an axis may be off
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
class Spectrum:
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
        """The same as a stack of one."""
        return self if self.axes.ndim == 3 else self._each(lambda array: array[None])

    def __getitem__(self, part: Mask | Index | slice) -> Spectrum:
        """Some of a stack."""
        return self._each(lambda array: array[part])

    def _each(self, change: Callable[[Any], Any]) -> Spectrum:
        return replace(
            self,
            axes=change(self.axes),
            values=change(self.values),
            residuals=change(self.residuals),
            next_vector=change(self.next_vector),
            converged=change(self.converged),
        )


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


class Preconditioned(Cost, Protocol):
    """A cost that has a cheap approximation of its inverse."""

    def preconditioner(self) -> Preconditioner:
        """Roughly P⁻¹."""
        ...

    def whole_inverse(self) -> Preconditioner | None:
        """A dearer and better one, if there is one."""
        ...


@dataclass(frozen=True)
class Dense:
    """LAPACK on the m × m matrix: exact, and the fastest up to some five hundred landmarks."""

    def axes(
        self, cost: Cost, make_preconditioner: Callable[[], Preconditioner], count: int
    ) -> Spectrum:
        """The ``count`` cheapest axes, to all digits."""
        return lowest_axes(cost.dense(), count)


def lowest_axes(matrix: Array, count: int) -> Spectrum:
    """The ``count`` lowest eigenvectors of a symmetric matrix, by LAPACK."""
    last = min(count, len(matrix) - 1)
    values, vectors = eigh(matrix, subset_by_index=(0, last), check_finite=False)
    if np.abs(vectors.T @ vectors - np.eye(last + 1)).max() > _ORTHONORMAL:
        # of exact ties LAPACK's subsets lose half their digits; divide and conquer does not
        values, vectors = eigh(matrix, driver="evd", check_finite=False)
        values, vectors = values[: last + 1], vectors[:, : last + 1]
    axes = vectors[:, :count]
    residuals = np.linalg.norm(matrix @ axes - axes * values[:count], axis=0)
    return Spectrum(axes, values, residuals, vectors[:, last], np.array(True), "dense", 0)


@dataclass(frozen=True)
class Stacked:
    r"""Block inverse iteration on a stack of dense costs; LAPACK for those that are not sure.

    LAPACK finds the lowest eigenvectors of one matrix at a time, and holds Python's lock while it
    does. Here a whole stack is inverted, A + sI = LLᵀ, B = L⁻ᵀL⁻¹, and a few vectors more than are
    wanted are multiplied by B² until they span the lowest eigenvectors: block inverse iteration,
    all of it batched products that run on several threads.

    An iteration could miss an eigenvector. The sum over the whole spectrum, ‖B²‖² = Σ (σ_i + s)⁻⁴,
    tells: what is left of it after the vectors found bounds the lowest eigenvalue that was not,

        (σ + s)⁻⁴ ≤ ‖B²‖² − Σ_{found} (θ_i + s)⁻⁴.

    Matrices whose axes are not sure by their residual and this bound are left to LAPACK.

    Parameters
    ----------
    clear_gap : float
        Relative gap below which the next eigenvalue and its vector are wanted exactly, as they
        decide what is to be told of the set.
    rounds : int
        Of two steps each.
    """

    clear_gap: float = 0.01
    rounds: int = 5

    def axes(
        self, cost: Cost, make_preconditioner: Callable[[], Preconditioner], count: int
    ) -> Spectrum:
        """The ``count`` cheapest axes of every cost of the stack."""
        matrices = cost.dense()
        g, m, _ = matrices.shape
        found = Spectrum(
            np.empty((g, m, count)),
            np.empty((g, min(count, m - 1) + 1)),
            np.empty((g, count)),
            np.empty((g, m)),
            np.ones(g, dtype=bool),
            "dense",
            0,
        )
        sure = np.zeros(g, dtype=bool)
        if g >= _FEW and m >= 4 * (count + _EXTRA):
            sure = self._by_inverse_iteration(matrices, found, _SHIFT * cost.n_shapes)
        for i in np.flatnonzero(~sure):
            one = lowest_axes(matrices[i], count)
            found.axes[i], found.values[i] = one.axes, one.values
            found.residuals[i], found.next_vector[i] = one.residuals, one.next_vector
        return found

    def _by_inverse_iteration(self, costs: Array, found: Spectrum, shift: float) -> Mask:
        """Fill in what is found, and tell (g,) whether to believe it."""
        (g, m, _), k = costs.shape, found.n_axes
        shifted = costs + shift * np.eye(m)
        try:
            lower: Array = np.linalg.cholesky(shifted)  # type: ignore[assignment]
        except np.linalg.LinAlgError:
            return np.zeros(g, dtype=bool)
        root = inverse_of_lower(lower)
        inverse = root.mT @ root
        twice = inverse @ inverse
        block = np.random.default_rng(0).normal(size=(m, k + _EXTRA))
        for _ in range(self.rounds):
            block = np.linalg.qr(twice @ block)[0]
        image = costs @ block
        values, turn = np.linalg.eigh(block.mT @ image)
        found.axes[...], found.next_vector[...] = (
            block @ turn[..., :k],
            (block @ turn[..., k : k + 1])[..., 0],
        )
        found.residuals[...] = np.linalg.norm(
            image @ turn[..., :k] - found.axes * values[:, None, :k], axis=1
        )
        shares = (values + shift) ** -4.0
        left = np.einsum("gij,gij->g", twice, twice) - shares.sum(axis=1) + shares[:, k]
        next_value = np.maximum(left, np.finfo(np.float64).tiny) ** -0.25 - shift
        found.values[:, :k] = values[:, :k]
        found.values[:, k] = np.minimum(next_value, values[:, k])
        gaps = np.diff(found.values, axis=1)
        precise = found.residuals.max(axis=1) <= _PRECISION * gaps.min(axis=1)
        return np.asarray(precise & (gaps[:, -1] > self.clear_gap * found.values[:, k]))


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
    most_products: int = 1000

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
