"""The deformable fit, told once.

cost of the warps → cheapest axes → proportions → side of the majority → weights → findings

A set of shapes is whatever can be mapped over and summed: arrays on this machine, the folds of a
cross-validation (many sets of the same shapes, in one stack), a cluster. The story below cannot
tell which. Its arrays have an axis of sets in front; a single fit is a stack of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from defgpa._arrays import Array, Index, Mask
from defgpa.diagnostics.checks import cohesion, spectral_findings
from defgpa.diagnostics.findings import Finding
from defgpa.diagnostics.solution import SpectralDiagnostics
from defgpa.frames import Frames
from defgpa.solvers.cost import Centering, Explained
from defgpa.solvers.covariance_prior import covariance_prior
from defgpa.solvers.eigen import (
    Cost,
    Dense,
    EigenSolver,
    Iterative,
    Preconditioner,
    Spectrum,
    reproducible_signs,
)
from defgpa.solvers.proportions import (
    Moments,
    Proportions,
    judged,
    moments,
    rigid_proportions,
    sides,
)
from defgpa.tuning import Tuning

_FLAT = 1e-7  # of the longest extent of the reference: an axis below is rounding


class SetsCost(Cost, Protocol):
    """P of a stack of sets, roughly its inverse, and the warps once the reference is known."""

    @property
    def condition(self) -> Array:
        """(g, n) or (n,): of each shape's regression."""
        ...

    @property
    def dropped(self) -> Index:
        """(g, n) or (n,): directions of each warp that nothing determines."""
        ...

    @property
    def storage(self) -> str:
        """How the features are held."""
        ...

    def preconditioner(self) -> Preconditioner:
        """Roughly P⁻¹."""
        ...

    def explained(self, reference: Array) -> Explained:
        """The warps that best reach a reference (…, m, d), and P1."""
        ...


class Sets(Protocol):
    """A stack of g sets of the same n shapes, each on m landmarks of its own."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the n shapes."""
        ...

    @property
    def landmarks(self) -> Array:
        """(g, m): labels."""
        ...

    @property
    def visible(self) -> Mask:
        """(g, n, m)."""
        ...

    @property
    def n_dims(self) -> int:
        """The dimension of space, d."""
        ...

    @property
    def rank(self) -> int:
        """The dimension d, or less where all shapes are flat."""
        ...

    def moments(self, axes: Array) -> Moments:
        """What the shapes say about axes (g, m, k)."""
        ...

    def prior(self) -> Array:
        """(g, d): Λ by Algorithm 1 of the paper, largest first."""
        ...

    def __getitem__(self, part: Any) -> Any:
        """Some of the sets."""
        ...


@dataclass(frozen=True, eq=False)
class LocalSets:
    """A stack of g sets of n shapes each, on m landmarks; a single fit is a stack of one."""

    frames: Frames  # of all g n shapes
    names: Sequence[str]  # of the n shapes
    landmarks: Array  # (g, m): labels

    @property
    def visible(self) -> Mask:
        """(g, n, m)."""
        return self._by_set(self.frames.visible)

    @property
    def n_dims(self) -> int:
        """The dimension of space, d."""
        return int(self.frames.points.shape[-1])

    @property
    def rank(self) -> int:
        """The dimension d, or less where all shapes are flat."""
        return self.frames.rank

    def moments(self, axes: Array) -> Moments:
        """What the shapes say about axes (g, m, k)."""
        return moments(axes, self._by_set(self.frames.centred), self.visible)

    def prior(self) -> Array:
        """(g, d): Λ by Algorithm 1 of the paper, largest first."""
        n = len(self.names)
        sets = range(len(self.landmarks))
        return np.stack(
            [covariance_prior(self.frames[slice(s * n, (s + 1) * n)], self.names) for s in sets]
        )

    def __getitem__(self, part: Any) -> LocalSets:
        """Some of the sets."""
        chosen = np.zeros(len(self.landmarks), dtype=bool)
        chosen[part] = True
        own = self.frames[np.repeat(chosen, len(self.names))]
        return LocalSets(own, self.names, self.landmarks[part])

    def _by_set(self, stack: Any) -> Any:
        return stack.reshape(len(self.landmarks), len(self.names), *stack.shape[1:])


@dataclass(frozen=True, eq=False)
class Method:
    """How to fit, apart from the warp: what the estimator was told."""

    proportions: Array | str  # "rigid", "prior", or Λ (d,), largest first
    centering: Centering
    solver: EigenSolver | None
    tuning: Tuning


@dataclass(frozen=True, eq=False)
class Solution:
    """The references of a stack of sets, their warps, and what was found on the way."""

    reference: Array  # (g, m, d): in its principal axes, on the side of the majority
    eigenvalues: Array  # (g, d): Λ, largest first
    weights: Any  # of the warps, in whatever form the cost holds them
    diagnostics: SpectralDiagnostics  # of the stack
    findings: list[tuple[Finding, ...]]

    def facts(self, number: int) -> SpectralDiagnostics:
        """The diagnostics of one set of the stack."""
        stacked = vars(self.diagnostics).items()
        return SpectralDiagnostics(**{name: _entry(own, number) for name, own in stacked})


def solve(sets: Sets, cost: Any, method: Method) -> Iterator[tuple[Index, Solution]]:
    """The solutions of all sets, in groups of those whose references have equally many axes."""
    for part, spectrum in _cheapest(sets, cost, method):
        if len(part) == len(sets.visible):
            yield part, _solved(sets, cost, spectrum, method)
        else:
            yield part, _solved(sets[part], cost[part], spectrum, method)


def solve_one(sets: Sets, cost: SetsCost, method: Method) -> Solution:
    """The solution of a stack of one set."""
    ((_, solution),) = solve(sets, cost, method)
    return solution


def _solved(sets: Sets, cost: SetsCost, spectrum: Spectrum, method: Method) -> Solution:
    seen = sets.moments(spectrum.axes)
    chosen, eigenvalues = _proportions(sets, spectrum, seen, method)
    matrix = chosen.matrix
    reference = spectrum.axes @ matrix
    signs = reproducible_signs(reference)
    found = sides(seen, matrix * signs[:, None, :])
    signs[:, 0] *= found.majority  # the first column is negated where most shapes are mirrored
    reference *= signs[:, None, :]
    explained = cost.explained(reference)
    offset = np.linalg.norm(reference.mean(axis=1), axis=1)
    facts = SpectralDiagnostics(
        spectrum=spectrum.values,
        gap=spectrum.gap,
        cohesion=_cohesion(sets, spectrum),
        translation_cost=np.linalg.norm(np.atleast_2d(explained.translation), axis=1),
        offset=offset,
        extent=np.abs(reference).max(axis=(1, 2)),
        votes=found.votes * found.majority[:, None],
        condition=np.atleast_2d(cost.condition),
        free_directions=np.atleast_2d(cost.dropped),
        residuals=spectrum.residuals,
        converged=spectrum.converged,
        excess=_excess(spectrum, matrix),
        similarity_residual=chosen.residual,
        looseness=_looseness(chosen, sets),
        proportions_converged=chosen.converged,
        proportions_determined=chosen.determined,
        proportions=method.proportions if isinstance(method.proportions, str) else "given",
        n_dims=sets.n_dims,
        rounds=chosen.rounds,
        method=spectrum.method,
        storage=cost.storage,
        n_products=spectrum.n_products,
    )
    told = spectral_findings(facts, spectrum.axes, sets.names, sets.landmarks, method.tuning)
    return Solution(reference, eigenvalues, explained.weights, facts, told)


def _cheapest(sets: Sets, cost: Any, method: Method) -> Iterator[tuple[Index, Spectrum]]:
    """The cheapest axes of all sets: as many as there are dimensions, or as directions are free."""
    n, tuning = cost.n_shapes, method.tuning
    spectrum = _axes(cost, method, sets.rank)
    everything = np.arange(len(sets.visible))
    if not _by_rigidity(method):
        yield everything, spectrum
        return
    free = _next_value(spectrum) < tuning.free_value * n
    if free.any() and not sets.visible.all():
        free &= _cohesion(sets, spectrum) < tuning.hinged
    else:
        free[:] = False
    if not free.all():
        yield everything[~free], spectrum if not free.any() else spectrum[~free]
    for number in np.flatnonzero(free):
        one = everything[[number]]
        own = cost if len(everything) == 1 else cost[one]
        yield one, _all_free(sets.visible[one], own, method, sets.rank)


def _cohesion(sets: Sets, spectrum: Spectrum) -> Array:
    return cohesion(spectrum.axes, spectrum.next_vector, sets.visible, sets.rank)


def _next_value(spectrum: Spectrum) -> Array:
    """(g,): the eigenvalue after those of the axes; infinite where there is none."""
    beyond = spectrum.values[:, spectrum.n_axes :]
    return beyond[:, 0] if beyond.shape[1] else np.full(len(beyond), np.inf)


def _axes(cost: SetsCost, method: Method, count: int) -> Spectrum:
    """The cheapest axes: by LAPACK where the landmarks are few, by iterations where they are many.

    Where no solver was asked for, the size decides, and up to moderate sizes how the iterations go.
    """
    centred, m, tuning = method.centering.applied(cost), cost.n_landmarks, method.tuning
    solver = method.solver or (Dense() if m <= tuning.dense_landmarks else Iterative())
    by_lapack_after_all = method.solver is None and m <= tuning.moderate_landmarks
    if by_lapack_after_all and isinstance(solver, Iterative):
        solver = replace(solver, most_products=tuning.patience)
    found = solver.axes(centred, cost.preconditioner, count)
    if by_lapack_after_all and not found.converged.all():
        found = Dense().axes(centred, cost.preconditioner, count)
    return found.stacked


def _all_free(visible: Mask, cost: SetsCost, method: Method, rank: int) -> Spectrum:
    """All axes that cost nothing but noise and move parts against each other."""
    most = min(method.tuning.most_axes, cost.n_landmarks - 2)
    count = rank
    while True:
        asked = min(2 * count + 1, most)
        spectrum = _axes(cost, method, asked)
        count = _n_free(spectrum, visible, cost.n_shapes, rank, method.tuning)
        if count < asked or asked == most:
            return _first(spectrum, count)


def _n_free(spectrum: Spectrum, visible: Mask, n: int, rank: int, tuning: Tuning) -> int:
    """How many of the axes of one set are free, beyond the ``rank`` that always are."""
    count = rank
    while count < spectrum.n_axes and spectrum.values[0, count] < tuning.free_value * n:
        axes, direction = spectrum.axes[..., :count], spectrum.axes[..., count]
        if not cohesion(axes, direction, visible, rank)[0] < tuning.hinged:
            break
        count += 1
    return count


def _first(spectrum: Spectrum, count: int) -> Spectrum:
    """The first axes of a spectrum, with the next one to judge them by."""
    if count == spectrum.n_axes:
        return spectrum
    return replace(
        spectrum,
        axes=spectrum.axes[..., :count],
        values=spectrum.values[..., : count + 1],
        residuals=spectrum.residuals[..., :count],
        next_vector=spectrum.axes[..., count],
    )


def _proportions(
    sets: Sets, spectrum: Spectrum, seen: Moments, method: Method
) -> tuple[Proportions, Array]:
    """S = X A: by rigidity, or √Λ on the axes as they come, the largest on the cheapest; and Λ."""
    if not _by_rigidity(method):
        stated = method.proportions
        eigenvalues = sets.prior() if isinstance(stated, str) else stated
        eigenvalues = np.broadcast_to(eigenvalues, (len(spectrum.axes), sets.n_dims))
        return judged(seen, _paired(eigenvalues, spectrum)), np.array(eigenvalues)
    rigid = rigid_proportions(seen, method.tuning.most_rounds)
    matrix = _principal(rigid.matrix)
    if not rigid.determined.all():
        told = rigid.determined[:, None, None]
        matrix = np.where(told, matrix, _paired(sets.prior(), spectrum))
    return replace(rigid, matrix=matrix), np.einsum("gkd,gkd->gd", matrix, matrix)


def _looseness(chosen: Proportions, sets: Sets) -> Array:
    """(g,): standard error of the loosest direction of A, relative: residuals over what is felt."""
    count = sets.n_dims * sets.visible.sum(axis=(1, 2))
    return np.asarray(chosen.residual / np.sqrt(count * np.maximum(chosen.firmness, _FLAT**2)))


def _entry(value: Any, number: int) -> Any:
    """One of a stack, as a plain number where it is one; facts of all sets as they are."""
    if not isinstance(value, np.ndarray):
        return value
    own = value[number]
    return own if isinstance(own, np.ndarray) else own.item()


def _by_rigidity(method: Method) -> bool:
    return isinstance(method.proportions, str) and method.proportions == "rigid"


def _paired(eigenvalues: Array, spectrum: Spectrum) -> Array:
    """(g, k, d): the paper's pairing, √λ of the largest extent on the cheapest axis."""
    stretch = np.sqrt(eigenvalues)[:, :, None] * np.eye(eigenvalues.shape[1])
    matrix = np.zeros((len(stretch), spectrum.n_axes, eigenvalues.shape[1]))
    count = min(matrix.shape[1:])
    matrix[:, :count] = stretch[:, :count]
    return matrix


def _principal(matrix: Array) -> Array:
    """(g, k, d): V √Λ of A = V √Λ Wᵀ: the same reference in its principal axes."""
    left, extents, _ = np.linalg.svd(matrix, full_matrices=False)
    extents = np.where(extents > _FLAT * extents[:, :1], extents, 0.0)
    turned = np.zeros_like(matrix)
    turned[..., : extents.shape[-1]] = left * extents[:, None, :]
    return turned


def _excess(spectrum: Spectrum, matrix: Array) -> Array:
    """(g,): tr SᵀPS = Σ σ_k ‖A_k‖² over its least for the same Λ, Σ λ_k σ_k, less one."""
    values = np.maximum(spectrum.values[:, : spectrum.n_axes], 0.0)
    cost = np.einsum("gk,gkd,gkd->g", values, matrix, matrix)
    extents = -np.sort(-np.einsum("gkd,gkd->gd", matrix, matrix), axis=-1)
    count = min(extents.shape[-1], values.shape[-1])
    least = np.einsum("gk,gk->g", values[:, :count], extents[:, :count])
    return np.asarray(np.where(least > 0.0, cost / np.where(least > 0.0, least, 1.0) - 1.0, 0.0))
