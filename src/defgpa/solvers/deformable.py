r"""Deformable generalised Procrustes analysis: one reference shape and one warp per shape.

Minimise Σ_i ‖Γ_i^½ (F_i W_i − S)‖² + tr W_iᵀ R_i W_i over all warps W_i and the reference S, with
Sᵀ1 = 0 and SᵀS = Λ (Bai & Bartoli, IJCV 2022). The warps are eliminated (``elimination``,
``cost``), the reference is spanned by the bottom eigenvectors of P = Σ P_i (``eigen``), and a small
matrix sets its proportions (``proportions``).

The shapes are whatever can answer the few questions of ``ShapeSet``: arrays on this machine, or
parts of them on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from defgpa.arrays import Array, Index, Mask, Stack
from defgpa.diagnostics.checks import check_solution, compute_cohesion
from defgpa.diagnostics.findings import Finding
from defgpa.diagnostics.solution import SpectralDiagnostics
from defgpa.geometry import Geometry, Moments, compute_moments
from defgpa.solvers.covariance_prior import covariance_prior
from defgpa.solvers.eigen import (
    Cost,
    Method,
    Spectrum,
    WarpCost,
    add_free_axes,
    find_cheapest_axes,
)
from defgpa.solvers.proportions import (
    FLAT,
    Proportions,
    choose_proportions,
    find_sides,
    fit_rigid_proportions,
    measure_agreement,
    turn_to_principal_axes,
)
from defgpa.tuning import Tuning

_SYMMETRIC = 1e-6  # relative: far above rounding, far below the asymmetry of real shapes


class ShapeSet(Protocol):
    """What the fit asks of n shapes on m landmarks, apart from their cost."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the shapes."""
        ...

    @property
    def landmarks(self) -> Sequence[str]:
        """The labels of the landmarks."""
        ...

    @property
    def visible(self) -> Mask:
        """(n, m)."""
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
        """Compute the moments of the shapes with axes (m, k)."""
        ...

    def prior(self) -> Array:
        """Estimate Λ (d,) by Algorithm 1 of the paper, largest first."""
        ...


@dataclass(frozen=True, eq=False)
class LocalShapes:
    """Shapes in the memory of this machine."""

    geometry: Geometry
    names: Sequence[str]
    landmarks: Sequence[str]
    visible: Mask  # (n, m)
    n_dims: int  # d
    rank: int  # d, or less where all shapes are flat

    def moments(self, axes: Array) -> Moments:
        """Compute the moments of the shapes with axes (m, k)."""
        return compute_moments(axes, self.geometry)

    def prior(self) -> Array:
        """Estimate Λ (d,) by Algorithm 1 of the paper, largest first."""
        return covariance_prior(self.geometry, self.names)


@dataclass(frozen=True, eq=False)
class ReferenceFit(Stack):
    """The reference of some shapes, and what it is made of; those of folds have a leading axis."""

    reference: Array  # (…, m, d)
    eigenvalues: Array  # (…, d): Λ
    spectrum: Spectrum
    proportions: Proportions
    votes: Index  # (…, n): +1, −1 for a shape mirrored against the reference, 0 if it cannot tell
    n_agreed: int  # axes that were added since the shapes agree on them


@dataclass(frozen=True, eq=False)
class DeformableFit(ReferenceFit):
    """The result of :func:`fit_deformable`: a reference on the side of the majority, and warps."""

    coefficients: Any  # of the warps, in whatever form the cost holds them
    diagnostics: SpectralDiagnostics
    findings: tuple[Finding, ...]


def fit_deformable(shapes: ShapeSet, cost: WarpCost, method: Method) -> DeformableFit:
    """Align shapes whose warps are eliminated, in closed form.

    Parameters
    ----------
    shapes : ShapeSet
    cost : WarpCost
        P of the shapes.
    method : Method
        Proportions, centring and eigen-solver.

    Returns
    -------
    DeformableFit
        The reference (m, d), Λ, the warps' coefficients, diagnostics and findings.
    """
    fit = fit_reference(shapes, cost, method)
    diagnostics, findings = diagnose_reference(shapes, cost, method, fit, cost)
    return DeformableFit(
        **vars(fit),
        coefficients=cost.fit_warps(fit.reference),
        diagnostics=diagnostics,
        findings=findings,
    )


def fit_reference(
    shapes: ShapeSet, cost: Cost, method: Method, start: Array | None = None
) -> ReferenceFit:
    """Find the reference of shapes whose warps are eliminated, or of a fold of them.

    Parameters
    ----------
    shapes : ShapeSet
    cost : Cost
        P of the shapes.
    method : Method
        Proportions, centring and eigen-solver.
    start : ndarray of shape (m, k), optional
        Nearly spans the cheapest axes.

    Returns
    -------
    ReferenceFit
    """
    rank = shapes.rank
    spectrum = find_cheapest_axes(cost, method, rank, start)
    if method.by_rigidity and spectrum.values[-1] < method.tuning.free_value * cost.n_shapes:
        spectrum = add_free_axes(spectrum, cost, shapes.visible, rank, method)
    moments = shapes.moments(spectrum.axes)
    proportions, eigenvalues = choose_proportions(moments, method, shapes.prior)
    n_agreed = 0
    if method.by_rigidity and proportions.determined and spectrum.axes.shape[1] == rank:
        counts, wide = count_agreed_axes(
            spectrum[None],
            proportions.matrix[None],
            lambda count: find_cheapest_axes(cost, method, count)[None],
            lambda _, axes: shapes.moments(axes[0])[None],
            rank,
            cost.n_shapes,
            method.tuning,
        )
        n_agreed = int(counts[0]) - rank
    if n_agreed:
        spectrum = wide[0].truncate(rank + n_agreed)
        moments = shapes.moments(spectrum.axes)
        proportions, eigenvalues = choose_proportions(moments, method, shapes.prior)
    reference = spectrum.axes @ proportions.matrix
    signs = choose_signs(reference)
    sides = find_sides(moments, proportions.matrix * signs)
    signs[0] *= sides.majority  # the first column is negated where most shapes are mirrored
    votes = sides.votes * sides.majority
    return ReferenceFit(reference * signs, eigenvalues, spectrum, proportions, votes, n_agreed)


def count_agreed_axes(
    spectrum: Spectrum,
    matrix: Array,
    find_axes: Callable[[int], Spectrum],
    compute_moments: Callable[[Index, Array], Moments],
    rank: int,
    n_shapes: int,
    tuning: Tuning,
) -> tuple[Index, Spectrum]:
    """Count the axes that cost about as much as the dearest of d and that the shapes agree on.

    Where shapes are thin in a direction, noise makes it as dear as a bend of the long ones, and the
    eigenproblem may take the bend, or a mixture of both. If the shapes surely have a part in the
    dearest axis or in one of its rivals, rigidity chooses among all up to the last in which they
    are likely to have one. The thinner the reference, the more a bend may cost and still be a
    rival; where the dearest of d axes costs nothing but rounding, none is.

    Parameters
    ----------
    spectrum : Spectrum
        Of g folds, with ``rank`` axes each; a fit is one of them.
    matrix : ndarray of shape (g, rank, d)
        A of the references made of these axes.
    find_axes : callable
        Takes a number of axes, and returns the spectrum (g, …) with so many.
    compute_moments : callable
        Takes the numbers of h folds and axes (h, m, k) of theirs; returns their moments.
    rank, n_shapes : int
    tuning : Tuning

    Returns
    -------
    ndarray of shape (g,)
        The number of axes of the reference; ``rank`` where the shapes agree on no more.
    Spectrum
        At least so many axes of every fold.
    """
    extents, dearest = np.linalg.svd(matrix, compute_uv=False), spectrum.values[:, rank - 1]
    longest = extents[:, 0]
    thinness = longest / np.maximum(extents[:, rank - 1], FLAT * longest)
    limit = np.minimum(tuning.rival_cost * thinness * dearest, tuning.rival_share * n_shapes)
    is_rounding = dearest <= 1e3 * np.finfo(np.float64).eps * n_shapes
    limit = np.where(is_rounding, -np.inf, limit)

    max_axes, n_wanted = min(tuning.max_axes, spectrum.axes.shape[1] - 2), rank
    while n_wanted < max_axes and (spectrum.values[:, -1] < limit).any():
        n_wanted = min(2 * n_wanted + 1, max_axes)
        spectrum = find_axes(n_wanted)
    n_rivals = (spectrum.values[:, :n_wanted] < limit[:, None]).sum(axis=1)
    counts = np.full(len(limit), rank)
    for n_axes in np.unique(n_rivals[n_rivals > rank]).tolist():
        group = np.flatnonzero(n_rivals == n_axes)
        moments = compute_moments(group, spectrum.axes[group, :, :n_axes])
        proportions = fit_rigid_proportions(moments, tuning.max_rounds)
        agreement = measure_agreement(moments, proportions.matrix)
        numbers = np.arange(1, n_axes + 1)
        count = np.where(agreement > tuning.likely_agreement, numbers, rank).max(axis=1)
        is_sure = agreement[:, rank - 1 :].max(axis=1) > tuning.sure_agreement
        counts[group] = np.where(is_sure, count, rank)
    return counts, spectrum


def diagnose_reference(
    shapes: ShapeSet, cost: Cost, method: Method, fit: ReferenceFit, warp_cost: WarpCost
) -> tuple[SpectralDiagnostics, tuple[Finding, ...]]:
    """Collect the diagnostics of a reference, and what they find.

    Parameters
    ----------
    shapes : ShapeSet
    cost : Cost
        P of the shapes, or of a fold.
    method : Method
    fit : ReferenceFit
    warp_cost : WarpCost
        P of all landmarks: how well its warps are determined, also for a fold.
    """
    spectrum, proportions, reference = fit.spectrum, fit.proportions, fit.reference
    translation = cost.multiply(np.ones((len(reference), 1)))
    visible, rank, last = shapes.visible, shapes.rank, spectrum.axes.shape[1] - 1
    # tr SᵀPS = Σ σ_k ‖A_k‖², and its least for the same Λ, Σ λ_k σ_k: in the metric of the axes
    matrix, costs = proportions.matrix, np.maximum(spectrum.values[:-1], 0.0)
    if spectrum.mixing is not None:
        matrix = turn_to_principal_axes(np.linalg.inv(spectrum.mixing) @ matrix)
    extents = np.sort(np.square(matrix).sum(axis=0))[::-1][: len(costs)]
    optimum = costs[: len(extents)] @ extents
    ratio = costs @ np.square(matrix).sum(axis=1) / optimum if optimum > 0.0 else 1.0
    # its axes, or where rigidity chose among more of them its principal directions
    directions = spectrum.axes
    if spectrum.axes.shape[1] > rank:
        directions = np.linalg.svd(reference, full_matrices=False)[0][:, :rank]
    # the relative standard error of the loosest direction of A
    firmness = np.maximum(proportions.firmness, FLAT**2)
    looseness = proportions.residual / np.sqrt(shapes.n_dims * visible.sum() * firmness)
    values = spectrum.values[np.isfinite(spectrum.values)]
    has_gap = len(values) > last + 1 and values[-1] > 0.0
    diagnostics = SpectralDiagnostics(
        spectrum=values,
        gap=float(1.0 - values[last] / values[-1]) if has_gap else 0.0,
        cohesion=compute_cohesion(spectrum.axes, spectrum.next_vector, visible, rank),
        translation_cost=float(np.linalg.norm(translation)),
        offset=float(np.linalg.norm(reference.mean(axis=0))),
        extent=float(np.abs(reference).max()),
        votes=fit.votes,
        condition=warp_cost.condition,
        free_directions=warp_cost.rank_deficiency,
        residuals=spectrum.residuals,
        converged=bool(spectrum.converged),
        excess=float(ratio - 1.0),
        similarity_residual=float(proportions.residual),
        looseness=float(looseness),
        proportions_converged=bool(proportions.converged),
        proportions_determined=bool(proportions.determined),
        proportions=method.proportions if isinstance(method.proportions, str) else "given",
        n_dims=shapes.n_dims,
        rounds=proportions.rounds,
        method=spectrum.method,
        storage=warp_cost.storage,
        n_products=int(spectrum.n_products),
        n_agreed_axes=fit.n_agreed,
    )
    names, landmarks = shapes.names, shapes.landmarks
    findings = check_solution(diagnostics, directions, names, landmarks, method.tuning)
    return diagnostics, tuple(findings)


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
