"""The whole solve: shapes, a warp model and proportions in, a reference and weights out.

bases → eliminated cost → centred → cheapest axes → side of the majority → weights
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.checks.cohesion import cohesion
from defgpa.errors import DegenerateShapeError, listed
from defgpa.frames import Frames
from defgpa.shapes import Shapes
from defgpa.solve.deformable.centering import Centering
from defgpa.solve.deformable.cost import (
    DENSE_LANDMARKS,
    MODERATE_LANDMARKS,
    Cost,
    EliminatedCost,
    eliminated_cost,
)
from defgpa.solve.eigen.dual import feature_space
from defgpa.solve.eigen.preconditioner import preconditioner, whole_inverse
from defgpa.solve.eigen.signs import TIE, settled_ties, with_settled_signs
from defgpa.solve.eigen.solvers import Dense, EigenSolver, Iterative, Spectrum
from defgpa.solve.handedness import sides
from defgpa.warps import Basis, WarpModel


@dataclass(frozen=True, eq=False)
class Solution:
    """The reference and the weights of every shape's warp onto it."""

    axes: Array  # (m, d): orthonormal, cheapest first, on the side of the majority
    reference: Array  # (m, d): the axes, each stretched by √λ
    bases: tuple[Basis, ...]  # one per shape
    weights: tuple[Array, ...]  # (l, d) per shape
    votes: Index  # (n,): +1, −1 or 0, the side of each shape
    spectrum: Spectrum
    translation_cost: float  # ‖P1‖
    condition: Array  # (n,)
    free_directions: Index  # (n,)
    storage: str
    cohesion: float = 1.0  # near 0: parts of the set hang together as by a hinge


def solve(
    shapes: Shapes,
    frames: Frames,
    model: WarpModel,
    eigenvalues: Array,
    centering: Centering,
    solver: EigenSolver | None,
    budget: int,
) -> Solution:
    """The reference of shapes whose landmarks are each seen at least twice.

    ``frames`` are those of the shapes; ``eigenvalues`` are Λ, largest first. They do not enter
    the eigenproblem.
    """
    cost = eliminated_cost(frames, model, budget)
    spectrum = _cheapest(cost, centering, solver, shapes.dim)
    axes = with_settled_signs(_untied(spectrum, frames))
    found = sides(frames.centred, shapes.visible, axes * np.sqrt(eigenvalues))
    axes[:, 0] *= found.majority
    reference = axes * np.sqrt(eigenvalues)  # the largest extent on the cheapest axis
    stacks, translation = cost.weights_and_translation(reference)
    bases, weights = _per_shape(cost, stacks)
    return Solution(
        axes,
        reference,
        bases,
        weights,
        found.votes * found.majority,
        spectrum,
        float(np.linalg.norm(translation)),
        cost.condition,
        cost.dropped,
        cost.storage,
        cohesion(axes, spectrum.beyond, shapes.visible),
    )


def require_extended(shapes: Shapes) -> Frames:
    """The frames of the shapes, or a DegenerateShapeError.

    It names the shapes whose points are too few or on a line.
    """
    frames = Frames.of(shapes.points, shapes.visible)
    needed = shapes.dim + 1
    few = frames.count < needed
    if few.any():
        i = int(np.flatnonzero(few)[0])
        raise DegenerateShapeError(
            f"Shape {shapes.names[i]!r} has {int(frames.count[i])} visible landmarks that another "
            f"shape sees too; a warp in {shapes.dim}-D needs at least {needed}. Drop it "
            f"({int(few.sum())} of {shapes.n_shapes} shapes have too few)."
        )
    thin = frames.on_a_line
    if thin.any():
        culprits = [shapes.names[i] for i in np.flatnonzero(thin)]
        own = shapes.points[thin]
        what = (
            "collinear" if (np.nanmax(own, axis=1) > np.nanmin(own, axis=1)).any() else "coincident"
        )
        raise DegenerateShapeError(
            f"The visible landmarks of shape {listed(culprits)} are all {what}, which "
            f"determines no warp in {shapes.dim}-D. Check the coordinates, or drop such shapes."
        )
    return frames


def _cheapest(
    cost: EliminatedCost, centering: Centering, solver: EigenSolver | None, dim: int
) -> Spectrum:
    """By the solver asked for; else by size, and LAPACK where the iterations are slow."""
    centred, moderate = centering.applied(cost), cost.n_landmarks <= MODERATE_LANDMARKS
    if solver is None and cost.n_landmarks > DENSE_LANDMARKS:
        return _iterated(cost, centred, Iterative(), dim, Dense() if moderate else None)
    if isinstance(solver, Iterative):
        return _iterated(cost, centred, solver, dim, None)
    return (solver or Dense()).axes(centred, lambda: preconditioner(cost), dim)


def _iterated(
    cost: EliminatedCost, centred: Cost, solver: Iterative, dim: int, sure: Dense | None
) -> Spectrum:
    """The cheapest way that gets there: on the features, with a cheap inverse, with a whole one."""
    smaller = feature_space(cost, centred)
    found = smaller and smaller.axes(solver, dim)
    if found:
        return found
    cheap, whole = lambda: preconditioner(cost), whole_inverse(cost)
    if sure is None and whole is None:
        return solver.axes(centred, cheap, dim)
    found = solver.hasty.axes(centred, cheap, dim)
    return found if found.settled else (sure or solver).axes(centred, whole or cheap, dim)


def _untied(spectrum: Spectrum, frames: Frames) -> Array:
    values = spectrum.values[: spectrum.axes.shape[1]]
    if np.diff(values).min(initial=np.inf) > TIE * len(frames.points):
        return spectrum.axes
    unit = frames.centred / frames.size[:, None, None]
    return settled_ties(spectrum.axes, values, unit, frames.visible)


def _per_shape(
    cost: EliminatedCost, stacks: list[Array]
) -> tuple[tuple[Basis, ...], tuple[Array, ...]]:
    """The bases and weights of the batches, shape by shape."""
    bases: list[Basis] = []
    weights: list[Array] = []
    for factor, stack in zip(cost.factors, stacks, strict=True):
        bases.extend(factor.batch.bases[i] for i in range(len(stack)))
        weights.extend(stack)
    return tuple(bases), tuple(weights)
