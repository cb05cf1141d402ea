"""The cheapest axes of a cost, by the way that suits its size."""

from __future__ import annotations

from defgpa.solve.deformable.centering import Centering
from defgpa.solve.deformable.cost import EliminatedCost
from defgpa.solve.deformable.dual import dual_cost
from defgpa.solve.deformable.preconditioner import whole_inverse
from defgpa.solve.eigen.solvers import Cost, Dense, EigenSolver, Iterative, Preconditioned, Spectrum
from defgpa.tuning import Tuning


def cheapest_axes(
    cost: Preconditioned,
    centering: Centering,
    solver: EigenSolver | None,
    count: int,
    tuning: Tuning,
) -> Spectrum:
    """By the solver asked for; else by size, and LAPACK where the iterations are slow."""
    centred = centering.applied(cost)
    if solver is None and cost.n_landmarks > tuning.dense_landmarks:
        sure = Dense() if cost.n_landmarks <= tuning.moderate_landmarks else None
        return _iterated(cost, centred, Iterative(), count, sure, tuning.patience)
    if isinstance(solver, Iterative):
        return _iterated(cost, centred, solver, count, None, tuning.patience)
    return (solver or Dense()).axes(centred, cost.preconditioner, count)


def _iterated(
    cost: Preconditioned,
    centred: Cost,
    solver: Iterative,
    count: int,
    sure: Dense | None,
    patience: int,
) -> Spectrum:
    """The cheapest way that gets there: on the features, with a cheap inverse, with a whole one."""
    dual = dual_cost(cost, centred) if isinstance(cost, EliminatedCost) else None
    found = dual and dual.axes(solver, count)
    if found:
        return found
    whole = whole_inverse(cost) if isinstance(cost, EliminatedCost) else None
    if sure is None and whole is None:
        return solver.axes(centred, cost.preconditioner, count)
    found = solver.with_budget(patience).axes(centred, cost.preconditioner, count)
    if found.converged:
        return found
    return (sure or solver).axes(centred, whole or cost.preconditioner, count)
