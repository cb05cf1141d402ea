r"""The eigenproblem of the reference: its metric, its centring, and the axes it gives.

The reference is spanned by the cheapest axes of P. Two changes of P come first.

**The metric.** P is bounded by C = diag(c), c_j = Σ_i γ_ij the total weight of landmark j: where
few shapes have a landmark, displacing it costs little whatever the shapes say. In the metric C that
advantage is gone,

    P x = σ C x,        0 ≤ σ ≤ 1,

and σ is the share of an axis that the warps do not explain. It is solved as an ordinary problem for
y = (C/n)^½ x, of the matrix (C/n)^-½ P (C/n)^-½; a constant x is y = (C/n)^½ 1. For complete shapes
with equal weights C = nI, and both problems are the same.

**Centring** keeps the reference at the origin, by a change of P into a cost whose cheapest axes are
centred:

    soft     P + ν v vᵀ                  charges ν‖Sᵀv‖²
    exact    J P J + (c + 1) v vᵀ/‖v‖²   J = I − v vᵀ/‖v‖²: forbids it; c bounds the spectrum of P

v is the constant vector 1, or what it is in the coordinates of the metric. For warps with free
translations, P v = 0, both give the same axes: P's spectrum is at most n, so ν = n/‖v‖² = n/m lifts
the constant vector out of the way.

**Solvers.** LAPACK on the matrix itself, or block Davidson iterations on products with a large one.
Both return the cheapest axes, the next eigenvalue to judge the gap by, and the residuals ‖Px − σx‖
they reached.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigh, lapack

from defgpa.arrays import Array, Index, Mask, Stack
from defgpa.diagnostics.checks import compute_cohesion
from defgpa.solvers.davidson import find_bottom_eigenpairs
from defgpa.tuning import Tuning

BISECTION_TOL = 1e-7  # of the largest entry: where the bisection of an eigenvalue stops
RESIDUAL_TOL = 1e-12  # of the largest entry: residuals of eigenvectors that have all digits


class Preconditioner(Protocol):
    """A cheap approximation of the inverse of a cost: where to start, and how to correct."""

    def start(self, width: int) -> Array:
        """Return columns (m, ≥ width) that nearly span the cheapest axes."""
        ...

    def correct(self, residuals: Array) -> Array:
        """Return roughly P⁻¹ times the residuals (m, k)."""
        ...


@dataclass(frozen=True, eq=False)
class Cost(ABC):
    """P of m landmarks, known by its products; that of several folds has a leading axis …."""

    totals: Array  # (…, m): c, the total weight of each landmark
    n_shapes: int

    @property
    def n_landmarks(self) -> int:
        """The number of landmarks, m."""
        return int(self.totals.shape[-1])

    @property
    def norm(self) -> float:
        """A bound of the spectrum: the largest total weight of a landmark, n without weights."""
        return max(float(self.n_shapes), float(self.totals.max()))

    @abstractmethod
    def multiply(self, block: Array) -> Array:
        """Return P X for columns X (m, k)."""

    def dense(self) -> Array:
        """Return P itself, (…, m, m), a new array that the caller may change."""
        return self.multiply(np.eye(self.n_landmarks))

    @abstractmethod
    def preconditioner(self) -> Preconditioner:
        """Return an approximation of P⁻¹."""


@dataclass(frozen=True, eq=False)
class WarpCost(Cost):
    """P of some shapes, and their warps once the reference is known."""

    condition: Array  # (n,): of each shape's regression
    rank_deficiency: Index  # (n,): directions of each warp that nothing determines
    storage: str  # how U is stored: "StoredFactor", "SparseFactor", "StreamedFactor" …

    @abstractmethod
    def fit_warps(self, reference: Array) -> Any:
        """Fit the warps that best reach a reference (m, d), in whatever form the cost has them."""


@dataclass(frozen=True, eq=False)
class Spectrum(Stack):
    """The k cheapest axes of a cost; those of several folds have a leading axis …."""

    axes: Array  # (…, m, k): orthonormal columns, cheapest first
    values: Array  # (…, k + 1): the smallest eigenvalues, ascending; the last ∞ if there is none
    residuals: Array  # (…, k): ‖Px − σx‖
    next_vector: Array  # (…, m): the cheapest direction that is not among the axes
    converged: Mask | bool  # (…): whether the residuals reached their tolerance
    method: str
    n_products: Index | int  # (…): with P; 0 for the dense solver
    mixing: Array | None = None  # (…, k, k): T; axis k of the cost is axes @ T[:, k]; None: T = I

    def truncate(self, count: int) -> Spectrum:
        """Return the spectrum of the first axes, with the next one to judge them by."""
        if count == self.axes.shape[-1]:
            return self
        return replace(
            self,
            axes=self.axes[..., :count],
            values=self.values[..., : count + 1],
            residuals=self.residuals[..., :count],
            next_vector=self.axes[..., count],
            mixing=None if self.mixing is None else self.mixing[..., :count, :count],
        )


def stack_spectra(spectra: Sequence[Spectrum]) -> Spectrum:
    """Stack the spectra of folds that have equally many axes."""
    names = ("axes", "values", "residuals", "next_vector", "converged", "n_products")
    arrays = {name: np.stack([getattr(spectrum, name) for spectrum in spectra]) for name in names}
    return Spectrum(**arrays, method=spectra[0].method)


class EigenSolver(Protocol):
    """Anything that finds the cheapest axes of a cost."""

    def find_axes(self, cost: Cost, count: int, start: Array | None = None) -> Spectrum:
        """Find the ``count`` cheapest axes; ``start`` (m, j) nearly spans them, if given."""
        ...


class Centering(Protocol):
    """A rule that keeps the reference centred."""

    def apply(self, cost: Cost, roots: Array | None = None) -> Cost:
        """Return the cost of y = (C/n)^½ x, whose cheapest axes are centred.

        ``roots`` (…, m) are (C/n)^½; None where the metric is I.
        """
        ...


@dataclass(frozen=True)
class SoftCentering:
    """Charge ν‖Sᵀ1‖² for an off-centre reference, the paper's way.

    Parameters
    ----------
    nu : float, optional
        ν; by default n/m, the smallest that is sure to suffice.
    """

    nu: float | None = None

    def apply(self, cost: Cost, roots: Array | None = None) -> Cost:
        """Return P + ν v vᵀ."""
        nu = self.nu
        if nu is not None and not (isinstance(nu, (int, float, np.number)) and 0.0 <= nu < np.inf):
            raise ValueError(
                "The 'nu' parameter of SoftCentering must be a number of at least 0. "
                f"Got {nu!r} instead."
            )
        if nu is not None:
            charge = np.sqrt(nu) * (np.ones_like(cost.totals) if roots is None else roots)
        elif roots is None:
            charge = np.full_like(cost.totals, np.sqrt(cost.norm / cost.totals.shape[-1]))
        else:
            charge = roots * np.sqrt(cost.n_shapes / np.square(roots).sum(axis=-1, keepdims=True))
        return _CentredCost(cost.totals, cost.n_shapes, cost, roots, charge, is_exact=False)


@dataclass(frozen=True)
class ExactCentering:
    """Work in the complement of the constant vector: centred, whatever the warp."""

    def apply(self, cost: Cost, roots: Array | None = None) -> Cost:
        """Return J P J, with the constant vector moved above the whole spectrum."""
        v = np.ones_like(cost.totals) if roots is None else roots
        lift = 1.0 + (cost.norm if roots is None else cost.n_shapes)
        charge = v * np.sqrt(lift / np.square(v).sum(axis=-1, keepdims=True))
        return _CentredCost(cost.totals, cost.n_shapes, cost, roots, charge, is_exact=True)


@dataclass(frozen=True, eq=False)
class Method:
    """The parameters of a fit, apart from the warp."""

    proportions: Array | str  # "rigid", "prior", or Λ (d,), largest first
    centering: Centering
    solver: EigenSolver | None
    tuning: Tuning
    by_rigidity: bool  # whether the shapes themselves set the proportions: "rigid"


def add_free_axes(
    spectrum: Spectrum, cost: Cost, visible: Mask, rank: int, method: Method
) -> Spectrum:
    """Add the directions in which parts of the shapes can move at no cost but noise, if any."""
    tuning, n_shapes = method.tuning, cost.n_shapes
    cohesion = compute_cohesion(spectrum.axes, spectrum.next_vector, visible, rank)
    if not cohesion < tuning.hinge_cohesion:
        return spectrum
    max_axes, n_axes = min(tuning.max_axes, cost.n_landmarks - 2), rank
    while True:
        n_wanted = min(2 * n_axes + 1, max_axes)
        spectrum = find_cheapest_axes(cost, method, n_wanted)
        n_axes = _count_free_axes(spectrum, visible, n_shapes, rank, tuning)
        if n_axes < n_wanted or n_wanted == max_axes:
            return spectrum.truncate(n_axes)


def _count_free_axes(
    spectrum: Spectrum, visible: Mask, n_shapes: int, rank: int, tuning: Tuning
) -> int:
    """Count the axes that are free, beyond the ``rank`` that always are."""
    count = rank
    while count < spectrum.axes.shape[1] and spectrum.values[count] < tuning.free_value * n_shapes:
        axes, direction = spectrum.axes[:, :count], spectrum.axes[:, count]
        if not compute_cohesion(axes, direction, visible, rank) < tuning.hinge_cohesion:
            break
        count += 1
    return count


def find_cheapest_axes(
    cost: Cost, method: Method, count: int, start: Array | None = None
) -> Spectrum:
    """Find the ``count`` cheapest axes in the metric of the method; ``start`` nearly spans them.

    By LAPACK where the landmarks are few, by iterations where they are many. Where no solver was
    asked for, the size decides, and up to moderate sizes how the iterations go. Costs of several
    folds, as one stack of matrices, are for LAPACK only.
    """
    m, tuning, roots = cost.totals.shape[-1], method.tuning, None
    # the metric is C by rigidity; it is I, the paper's, otherwise and where all totals are the same
    if method.by_rigidity and (cost.totals != cost.totals[..., :1]).any():
        roots = np.sqrt(cost.totals / cost.n_shapes)
        start = None if start is None else roots[:, None] * start
    centred = method.centering.apply(cost, roots)
    if method.solver is not None:
        spectrum = method.solver.find_axes(centred, count, start)
    elif m <= tuning.dense_landmarks:
        spectrum = find_lowest_axes(centred.dense(), count)
    elif m > tuning.moderate_landmarks:
        spectrum = Iterative().find_axes(centred, count, start)
    else:
        spectrum = Iterative(max_products=tuning.max_products).find_axes(centred, count, start)
        if not spectrum.converged:
            spectrum = find_lowest_axes(centred.dense(), count)
    return spectrum if roots is None else restore_axes(spectrum, roots)


@dataclass(frozen=True)
class Dense:
    """LAPACK on the m × m matrix: exact, and the fastest up to some five hundred landmarks."""

    def find_axes(self, cost: Cost, count: int, start: Array | None = None) -> Spectrum:
        """Find the ``count`` cheapest axes, to all digits."""
        return find_lowest_axes(cost.dense(), count)


def find_lowest_axes(matrices: Array, count: int) -> Spectrum:
    """Find the ``count`` lowest eigenvectors of a symmetric matrix, or of g (g, m, m), by LAPACK.

    The bisection of eigenvalues stops early, since inverse iteration then finds their vectors to
    all digits. Where a residual or an overlap says that it did not, as in ties, the whole matrix is
    decomposed.
    """
    if matrices.ndim == 2:
        return find_lowest_axes(matrices[None], count)[0]
    last = min(count, matrices.shape[-1] - 1)
    largest = np.abs(np.einsum("gmm->gm", matrices)).max()  # of a cost, the largest entry is there
    # without the checks of scipy's eigh, which take as long as a small decomposition; with the
    # least workspace, since LAPACK's reduction by blocks of columns takes longer here
    settings: dict[str, Any] = {"range": "I", "il": 1, "iu": last + 1, "lower": 1}
    settings |= {"abstol": BISECTION_TOL * largest, "lwork": 8 * matrices.shape[-1]}
    results = [lapack.dsyevx(matrix.T, **settings) for matrix in matrices]
    vectors = np.stack([columns for _, columns, *_ in results])
    images = matrices @ vectors
    values = np.einsum("gmk,gmk->gk", vectors, images)
    is_close = (np.diff(values) < 1e3 * BISECTION_TOL * largest).any(axis=1)
    if is_close.any():  # the bisection hardly told them apart
        _, turns = np.linalg.eigh(vectors[is_close].mT @ images[is_close])
        vectors[is_close], images[is_close] = vectors[is_close] @ turns, images[is_close] @ turns
        values = np.einsum("gmk,gmk->gk", vectors, images)
    errors = (images - vectors * values[:, None])[:, :, :count]
    residuals = np.sqrt(np.einsum("gmk,gmk->gk", errors, errors))
    overlaps = np.abs(vectors.mT @ vectors - np.eye(last + 1)).max(axis=(1, 2))
    is_rough = (overlaps > 1e-10) | (residuals.max(axis=1) > RESIDUAL_TOL * largest)
    is_rough |= np.array([info != 0 for *_, info in results])
    for i in np.flatnonzero(is_rough):
        all_values, all_vectors = eigh(matrices[i], driver="evd", check_finite=False)
        values[i], vectors[i] = all_values[: last + 1], all_vectors[:, : last + 1]
        errors = matrices[i] @ vectors[i, :, :count] - vectors[i, :, :count] * values[i, :count]
        residuals[i] = np.linalg.norm(errors, axis=0)
    axes, following = vectors[:, :, :count], vectors[:, :, last]
    values = np.hstack([values, np.full((len(values), count - last), np.inf)])
    sure, zeros = np.ones(len(values), dtype=bool), np.zeros(len(values), dtype=np.intp)
    return Spectrum(axes, values, residuals, following, sure, "dense", zeros)


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
        start_columns = preconditioner.start(count + 2) if start is None else start
        # random columns, so that nothing is missed by symmetry
        n_random = max(1, count + 3 - start_columns.shape[1])
        chance = np.random.default_rng(0).normal(size=(len(start_columns), n_random))
        start = np.hstack([start_columns, chance])
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
            np.append(pairs.values, np.inf)[: count + 1],
            pairs.residuals[:count],
            pairs.vectors[:, min(count, pairs.vectors.shape[1] - 1)],
            pairs.converged,
            "iterative",
            pairs.n_products,
        )


def restore_axes(spectrum: Spectrum, roots: Array) -> Spectrum:
    """Return a spectrum of y = (C/n)^½ x with the axes x in their place.

    They are given as orthonormal columns whose first k span the k cheapest x, for every k.
    ``roots`` (…, m) are (C/n)^½.
    """
    columns = np.concatenate([spectrum.axes, spectrum.next_vector[..., None]], axis=-1)
    columns /= roots[..., None]
    # moved so that the mean of every x is what its weighted mean was
    weights = roots**2
    means = (weights[..., None, :] @ columns) / weights.sum(axis=-1)[..., None, None]
    columns -= columns.mean(axis=-2, keepdims=True)
    columns += means
    axes, mixing = np.linalg.qr(columns[..., :-1])
    following = columns[..., -1:]
    beyond = following - axes @ (axes.mT @ following)
    lengths = np.linalg.norm(beyond, axis=-2, keepdims=True)
    # of as many axes as there are landmarks the last is also the next one
    is_new = lengths > 1e-8 * np.linalg.norm(following, axis=-2, keepdims=True)
    beyond = np.where(is_new, beyond / np.where(is_new, lengths, 1.0), 0.0)
    return replace(spectrum, axes=axes, next_vector=beyond[..., 0], mixing=mixing)


@dataclass(frozen=True, eq=False)
class _CentredCost(Cost):
    """(C/n)^-½ P (C/n)^-½ + v vᵀ, or J (…) J + v vᵀ with J the projection orthogonal to v."""

    cost: Cost
    roots: Array | None  # (…, m): (C/n)^½; None where the metric is I
    charge: Array  # (…, m): v, along the constant vector
    is_exact: bool

    @property
    def norm(self) -> float:
        """A bound of the spectrum, that of v aside."""
        return self.cost.norm if self.roots is None else float(self.n_shapes)

    def multiply(self, block: Array) -> Array:
        roots = 1.0 if self.roots is None else self.roots[:, None]
        unit = (self.charge / np.linalg.norm(self.charge))[:, None]
        image = block - unit * (unit.T @ block) if self.is_exact else block
        image = self.cost.multiply(image / roots) / roots
        if self.is_exact:
            image -= unit * (unit.T @ image)
        return np.asarray(image + self.charge[:, None] * (self.charge @ block))

    def dense(self) -> Array:
        matrix = self.cost.dense()
        if self.roots is not None:
            inverse = 1.0 / self.roots
            matrix *= inverse[..., :, None]  # in place: new arrays of many folds take longer
            matrix *= inverse[..., None, :]
        column, row = self.charge[..., :, None], self.charge[..., None, :]
        if self.is_exact:
            square = row @ column
            matrix -= column * (row @ matrix) / square
            matrix -= (matrix @ column) * row / square
        matrix += column * row
        return matrix

    def preconditioner(self) -> Preconditioner:
        inverse = self.cost.preconditioner()
        return inverse if self.roots is None else _ScaledInverse(inverse, self.roots[:, None])


@dataclass(frozen=True, eq=False)
class _ScaledInverse:
    """(C/n)^½ P⁻¹ (C/n)^½."""

    inverse: Preconditioner
    roots: Array  # (m, 1)

    def start(self, width: int) -> Array:
        return np.asarray(self.roots * self.inverse.start(width))

    def correct(self, residuals: Array) -> Array:
        return np.asarray(self.roots * self.inverse.correct(self.roots * residuals))
