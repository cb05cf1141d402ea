"""Predict the landmarks of folds by Schur complements: no warp is fitted again.

The basis of every shape is kept, so a fold only withholds where its landmarks belong. Each fold is
a reduced cost and its bottom eigenvectors; the small algebra that follows (moments, proportions,
predictions, pose) is one call for a block of folds, and starts from the fit of all landmarks. The
few folds in which parts of the shapes may move, or whose proportions the shapes leave open, are
fitted one by one by ``fit_reference``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from defgpa.alignment import Alignment
from defgpa.alignment_problems import DeformableProblem, ElasticProblem
from defgpa.arrays import Array, Index, Mask, Progress, join_stacks
from defgpa.diagnostics.checks import (
    compute_cohesion,
    group_shapes,
    refuse_degenerate_shapes,
    require_linkage,
)
from defgpa.diagnostics.findings import Finding
from defgpa.errors import DefgpaError, DegenerateShapeError, format_names
from defgpa.geometry import Geometry, Moments, measure_geometry
from defgpa.shapes import Shapes
from defgpa.solvers.anchored_cost import RootInverse
from defgpa.solvers.centred_sums import CentredSums
from defgpa.solvers.deformable import (
    LocalShapes,
    ReferenceFit,
    count_agreed_axes,
    diagnose_reference,
    fit_reference,
)
from defgpa.solvers.eigen import (
    Dense,
    Iterative,
    Preconditioner,
    Spectrum,
    find_cheapest_axes,
    restore_axes,
    stack_spectra,
)
from defgpa.solvers.elastic import Anchors, Dial, fit_elastic, scale_to_mean_size
from defgpa.solvers.feature_space import FeatureSpace
from defgpa.solvers.leave_out import (
    LeftOutCost,
    LeftOutFeatures,
    LeftOutForms,
    LeftOutProducts,
    leave_out,
    leave_out_features,
)
from defgpa.solvers.proportions import (
    Proportions,
    find_sides,
    fit_proportions_on_sides,
    fit_rigid_proportions,
)
from defgpa.threads import use_threads
from defgpa.tuning import DEFAULT

BLOCK_BYTES = (
    6 << 20
)  # of the arrays of a block of folds: more leave the cache, fewer are many calls
MAX_LARGE_FOLDS = 16  # of large shapes in a block
MAX_DENSE_FOLDS = 24  # whose P' are formed at a time: more leave the inner cache
MAX_LARGE_BYTES = 64 << 20  # of the rows of a block of large shapes
N_CACHED_BLOCKS = 4  # whose sums all amounts of smoothing share
FREE = 1e-9  # ‖P1‖ over ‖P‖: below, translations are free

# a fold is fitted at a position of the dial (None: by the deformable method), and its reference is
# posed like that of the alignment of all landmarks
Position = tuple[Dial | None, Alignment]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Predictions of the landmarks of a fold by a fit without them; or why there are none."""

    predicted: Array  # (n, N, d), in the frame of the full reference
    findings: tuple[Finding, ...] = ()
    error: Exception | None = None
    reference: Array | None = None  # (m', d): that of the fold, in the same frame


class FoldPlan:
    """The folds of some shapes, in blocks of equal size whose arrays stay in the cache.

    Nothing in it depends on the warps: one plan serves every smoothing and rigidity.

    Parameters
    ----------
    geometry : Geometry
        Of the shapes on the landmarks that at least two of them share.
    shapes : Shapes
        On all landmarks.
    folds : sequence of ndarray
        The landmarks of each fold.
    """

    def __init__(self, geometry: Geometry, shapes: Shapes, folds: Sequence[Index]) -> None:
        n, m, d = geometry.centred.shape
        self.folds = folds
        self.shared = np.flatnonzero(shapes.views >= 2)
        positions = np.full(shapes.n_landmarks, -1)
        positions[self.shared] = np.arange(m)
        landmarks = [places[places >= 0] for places in (positions[fold] for fold in folds)]
        sizes = np.array([len(fold) for fold in landmarks])
        self.blocks: list[Index] = []  # the numbers of the folds of each
        for size in np.unique(sizes[sizes > 0]).tolist():
            step = BLOCK_BYTES // (8 * m * (2 * n * size + min(m, n * d)))
            if m > DEFAULT.dense_landmarks:  # P is not formed: U is large, and read once a block
                step = min(MAX_LARGE_FOLDS, MAX_LARGE_BYTES // (8 * n * size * m))
            numbers = np.flatnonzero(sizes == size)
            self.blocks += np.array_split(numbers, -(-len(numbers) // max(1, step)))
        self.make_sums = lru_cache(N_CACHED_BLOCKS)(  # of a block, by its place
            lambda i: CentredSums(geometry, np.stack([landmarks[j] for j in self.blocks[i]]))
        )


@dataclass(frozen=True, eq=False)
class Folds:
    """Some folds of one size, and the residual forms of the shapes without their landmarks."""

    numbers: Index  # (g,): of each among all folds
    sums: CentredSums
    forms: LeftOutForms | LeftOutFeatures  # (g, …)

    def take(self, chosen: Index) -> Folds:
        """Return some of the folds."""
        if len(chosen) == len(self.numbers):
            return self
        sums = CentredSums(self.sums.geometry, self.sums.left_out[chosen])
        return Folds(self.numbers[chosen], sums, self.forms[chosen])


def predict_folds(
    problem: DeformableProblem,
    positions: Sequence[Position],
    plan: FoldPlan,
    progress: Progress | None = None,
) -> list[list[LeftOut]]:
    """Predict the landmarks of every fold, at every position of the dial.

    Parameters
    ----------
    problem : DeformableProblem
        With the warps of all shapes eliminated.
    positions : sequence of (Dial or None, Alignment)
        Where on the dial, and the alignment of all landmarks there.
    plan : FoldPlan
        The folds.
    progress : callable, optional
        Called with (folds done, folds in all).

    Returns
    -------
    list of list of LeftOut
        Of every position, one for each fold.
    """
    shapes, n_folds = positions[0][1].shapes, len(plan.folds)
    # of landmarks that only one shape has there is nothing to predict
    nothing = LeftOut(np.empty((shapes.n_shapes, 0, shapes.n_dims)))
    outcomes = [dict.fromkeys(range(n_folds), nothing) for _ in positions]
    n_done = len(positions) * (n_folds - sum(map(len, plan.blocks)))
    with use_threads(1):
        solver = FoldSolver(problem)
        for i, numbers in enumerate(plan.blocks):
            errors, folds = solver.leave_out(plan, i)
            groups = [] if folds is None else list(_fit_references(solver, folds))
            for (dial, full), by_fold in zip(positions, outcomes, strict=True):
                by_fold.update(errors)
                full_reference = full.reference[plan.shared]
                for group, fit in groups:
                    is_elastic = dial is not None and dial.firmness > 0.0
                    predict = predict_elastic if is_elastic else predict_deformable
                    by_fold.update(predict(solver, group, fit, dial, full_reference))
                n_done += len(numbers)
                if progress is not None:
                    progress(n_done, len(positions) * n_folds)
    if len(plan.shared) < shapes.n_landmarks:
        for (_, full), by_fold in zip(positions, outcomes, strict=True):
            for number, landmarks in enumerate(plan.folds):
                by_fold[number] = _add_lone_landmarks(by_fold[number], full, plan.shared, landmarks)
    return [list(by_fold.values()) for by_fold in outcomes]


def find_impossible_folds(problem: DeformableProblem, plan: FoldPlan) -> dict[int, LeftOut]:
    """Return the folds, by number, without which shapes fall apart or a warp is open."""
    solver, impossible = FoldSolver(problem), dict[int, LeftOut]()
    with use_threads(1):
        for i in range(len(plan.blocks)):
            impossible |= solver.leave_out(plan, i)[0]
    return impossible


class FoldSolver:
    """What the folds of a problem have in common.

    Attributes
    ----------
    matrix : ndarray of shape (m, m) or None
        P, where it is formed.
    weights : ndarray of shape (n, m)
        Γ.
    """

    def __init__(self, problem: DeformableProblem) -> None:
        cost, geometry = problem.cost, problem.local.geometry
        is_formed = len(cost.totals) <= problem.method.tuning.dense_landmarks
        weights = geometry.visible if geometry.weights is None else geometry.weights
        self.problem = problem
        self.matrix = cost.dense() if is_formed else None
        self.weights: Array = np.asarray(weights, dtype=np.float64)

    @cached_property
    def inverse(self) -> Preconditioner:
        """An approximation of P⁻¹."""
        return self.problem.cost.preconditioner()

    @cached_property
    def features(self) -> FeatureSpace | None:
        """The coordinates of the features, where they are fewer than the landmarks.

        Only where they can say the same as the iterations: in the metric of the total weights, and
        with free translations.
        """
        cost, method = self.problem.cost, self.problem.method
        if self.matrix is not None or type(method.solver) not in (type(None), Iterative):
            return None
        has_metric = method.by_rigidity or (cost.totals == cost.totals[0]).all()
        is_free = self.problem.fit.diagnostics.translation_cost < FREE * cost.norm
        can_hold = has_metric and is_free and FeatureSpace.can_hold(cost)
        return FeatureSpace(cost, self.weights) if can_hold else None

    def leave_out(self, plan: FoldPlan, block: int) -> tuple[dict[int, LeftOut], Folds | None]:
        """Leave the folds of a block out of every shape.

        Returns
        -------
        dict
            Those that cannot be left out, by number, with the reason.
        Folds or None
            The others; None where there are none.
        """
        numbers, sums = plan.blocks[block], plan.make_sums(block)
        left_out, remaining, local = sums.left_out, sums.remaining, self.problem.local
        (n, _), size = local.visible.shape, left_out.shape[1]
        leave = leave_out_features if self.matrix is None else leave_out
        forms = leave(self.problem.cost, self.weights, left_out, remaining)
        # whichever landmarks are left out, shapes that share so many more stay linked
        groups = group_shapes(
            local.visible, lambda shared: shared.sum(axis=1) > local.n_dims + size
        )
        errors: dict[int, LeftOut] = {}
        is_possible = np.ones(len(left_out), dtype=bool)
        for i in np.flatnonzero(forms.singular.any(axis=1) | (len(groups) > 1)):
            try:
                self._check(remaining[i], forms.singular[i])
            except DefgpaError as error:
                no_predictions = np.full((n, size, local.n_dims), np.nan)
                errors[int(numbers[i])] = LeftOut(no_predictions, error=error)
                is_possible[i] = False
        if not is_possible.any():
            return errors, None
        folds = Folds(numbers, sums, forms)
        return errors, folds if is_possible.all() else folds.take(np.flatnonzero(is_possible))

    def _check(self, remaining: Index, singular: Mask) -> None:
        """Raise if the shapes are not linked, or a warp not determined, by what remains."""
        local = self.problem.local
        if singular.any():
            refuse_degenerate_shapes(self.restrict(remaining).geometry, local.names)
        require_linkage(local.visible[:, remaining], local.names, local.n_dims)
        if not singular.any():
            return
        names = [local.names[int(i)] for i in np.flatnonzero(singular)]
        raise DegenerateShapeError(
            f"The warp of shape {format_names(names)} passes through the landmarks that are left "
            "out wherever they are, and predicts nothing of them: it has too many functions for "
            "the landmarks that remain. Use more smoothing, or fewer functions"
        )

    def restrict(self, remaining: Index) -> LocalShapes:
        """Return the shapes on the landmarks that remain."""
        local = self.problem.local
        geometry = local.geometry
        visible = geometry.visible[:, remaining]
        points = np.where(visible[..., None], geometry.points[:, remaining], np.nan)
        weights = None if geometry.weights is None else geometry.weights[:, remaining]
        restricted = measure_geometry(points, visible, weights).project_to_planes()
        return replace(
            local,
            geometry=restricted,
            landmarks=[local.landmarks[int(j)] for j in remaining],
            visible=visible,
            rank=int(restricted.ranks.max()),
        )

    def make_cost(self, folds: Folds, chosen: int | slice) -> LeftOutCost | LeftOutProducts:
        """Make the cost of one fold, or of several where P is formed."""
        if isinstance(folds.forms, LeftOutFeatures):
            assert isinstance(chosen, int)
            return LeftOutProducts.of(folds.forms, chosen, self.inverse)
        assert self.matrix is not None
        cost, remaining = self.problem.cost, folds.sums.remaining[chosen]
        totals, forms = cost.totals[remaining], folds.forms[chosen]
        return LeftOutCost(totals, cost.n_shapes, cost, remaining, forms, self.matrix)

    def find_axes(self, folds: Folds, count: int) -> Spectrum:
        """Find the ``count`` cheapest axes of every fold.

        The small matrices of many folds are one call.
        """
        method, cost, remaining = self.problem.method, self.problem.cost, folds.sums.remaining
        is_dense = method.solver is None or type(method.solver) is Dense
        if self.matrix is not None and is_dense:
            spectra = []
            for first in range(0, len(remaining), MAX_DENSE_FOLDS):
                reduced = self.make_cost(folds, slice(first, first + MAX_DENSE_FOLDS))
                axes = find_cheapest_axes(reduced, method, min(count, remaining.shape[1] - 1))
                spectra.append(replace(axes, mixing=None))
            return join_stacks(spectra)
        if self.features is not None:
            assert isinstance(folds.forms, LeftOutFeatures)
            solver = method.solver if isinstance(method.solver, Iterative) else Iterative()
            spectrum = self.features.find_axes(folds.forms, count, solver)
            if (cost.totals == cost.totals[0]).all():
                return spectrum
            return restore_axes(spectrum, np.sqrt(cost.totals / cost.n_shapes)[remaining])
        full = self.problem.fit.spectrum  # its axes and the next one are near those of every fold
        start = np.column_stack([full.axes, full.next_vector])
        costs = [self.make_cost(folds, i) for i in range(len(remaining))]
        spectra = [find_cheapest_axes(c, method, count, start[c.remaining]) for c in costs]
        return stack_spectra(spectra)

    def fit_fold(self, folds: Folds, chosen: int) -> tuple[Folds, ReferenceFit]:
        """Find the reference of one fold by ``fit_reference``, on its shapes and cost."""
        problem, remaining = self.problem, folds.sums.remaining[chosen]
        shapes, cost = self.restrict(remaining), self.make_cost(folds, chosen)
        start = problem.fit.spectrum.axes[remaining]
        fit = fit_reference(shapes, cost, problem.method, start)
        return folds.take(np.array([chosen])), fit[None]


def predict_deformable(
    solver: FoldSolver,
    folds: Folds,
    fit: ReferenceFit,
    dial: Dial | None,
    full_reference: Array,
) -> Iterator[tuple[int, LeftOut]]:
    """Predict the landmarks of folds by the deformable method.

    Parameters
    ----------
    solver : FoldSolver
    folds : Folds
    fit : ReferenceFit
        Of the folds, with equally many axes.
    dial : Dial or None
        The soft end of the dial, where references have the mean size of the shapes.
    full_reference : ndarray of shape (m, d)
        Of all landmarks.

    Yields
    ------
    tuple of int and LeftOut
        A fold, by its number among all.
    """
    references, findings = fit.reference, _check_folds(solver, folds, fit)
    if dial is not None:
        anchors = Anchors(folds.sums, np.where(fit.votes < 0, -1.0, 1.0))
        references = scale_to_mean_size(anchors, references)
    predicted = folds.forms.predict(references)
    return _pose(folds, predicted, references, findings, full_reference)


def _fit_references(solver: FoldSolver, folds: Folds) -> Iterator[tuple[Folds, ReferenceFit]]:
    """Find the reference of every fold, as ``fit_reference`` does.

    Those with equally many axes are one call, those whose axes or proportions are open one each.
    """
    problem, remaining = solver.problem, folds.sums.remaining
    rank, method, n_shapes = problem.local.rank, problem.method, problem.cost.n_shapes
    if not method.by_rigidity:
        yield from (solver.fit_fold(folds, i) for i in range(len(remaining)))
        return
    spectrum = solver.find_axes(folds, rank)
    moments = folds.sums.moments(spectrum.axes)
    proportions, votes = _fit_proportions(solver, folds, spectrum, moments)
    is_open = ~proportions.determined
    if not problem.local.visible.all():  # parts may move against each other
        may_be_free = spectrum.values[:, -1] < method.tuning.free_value * n_shapes
        for i in np.flatnonzero(may_be_free & ~is_open).tolist():
            visible = problem.local.visible[:, remaining[i]]
            cohesion = compute_cohesion(spectrum.axes[i], spectrum.next_vector[i], visible, rank)
            is_open[i] = cohesion < method.tuning.hinge_cohesion
    yield from (solver.fit_fold(folds, i) for i in np.flatnonzero(is_open).tolist())
    if is_open.all():
        return
    counts, wide = count_agreed_axes(
        spectrum,
        proportions.matrix,
        lambda count: solver.find_axes(folds, count),
        lambda group, axes: folds.take(group).sums.moments(axes),
        rank,
        n_shapes,
        method.tuning,
    )
    for count in np.unique(counts[~is_open]).tolist():
        chosen = np.flatnonzero((counts == count) & ~is_open)
        group = folds.take(chosen)
        group_spectrum, group_proportions = spectrum[chosen], proportions[chosen]
        group_votes = votes[chosen]
        if count > rank:
            group_spectrum = wide[chosen].truncate(count)
            moments = group.sums.moments(group_spectrum.axes)
            group_proportions, group_votes = _fit_proportions(
                solver, group, group_spectrum, moments
            )
        matrix = group_proportions.matrix
        yield (
            group,
            ReferenceFit(
                group_spectrum.axes @ matrix,
                np.square(matrix).sum(axis=1),
                group_spectrum,
                group_proportions,
                group_votes,
                count - rank,
            ),
        )


def _fit_proportions(
    solver: FoldSolver, folds: Folds, spectrum: Spectrum, moments: Moments
) -> tuple[Proportions, Index]:
    """Fit A of every fold by rigidity, and find the side (g, n) each shape is on.

    From the A of all landmarks, where what remains of every shape stays on the side it is on; from
    a closed form elsewhere.
    """
    full, max_rounds = solver.problem.fit, solver.problem.method.tuning.max_rounds
    start = spectrum.axes.mT @ full.reference[folds.sums.remaining]
    if start.shape[1] == start.shape[2]:
        votes = np.broadcast_to(full.diagnostics.votes, moments.square.shape)
        side = np.where(votes < 0, -1.0, 1.0)
        proportions = fit_proportions_on_sides(moments, start, side, max_rounds)
        handedness = np.linalg.det(moments.cross.mT @ proportions.matrix[:, None])
        if proportions.determined.all() and (handedness * side > 0.0).all():
            return proportions, votes
    proportions = fit_rigid_proportions(moments, max_rounds)
    sides = find_sides(moments, proportions.matrix)
    matrix = np.array(proportions.matrix)
    matrix[..., 0] *= sides.majority[:, None]
    return replace(proportions, matrix=matrix), sides.votes * sides.majority[:, None]


def _check_folds(solver: FoldSolver, folds: Folds, fit: ReferenceFit) -> list[tuple[Finding, ...]]:
    """Return the findings of every fold; few need diagnostics of their own."""
    problem, remaining, references = solver.problem, folds.sums.remaining, fit.reference
    local, tuning = problem.local, problem.method.tuning
    offsets = np.linalg.norm(references.mean(axis=1), axis=1)
    is_off_centre = offsets > tuning.off_centre * np.abs(references).max(axis=(1, 2))
    findings: list[tuple[Finding, ...]] = [()] * len(references)
    for i in np.flatnonzero(is_off_centre | _find_doubtful_folds(problem, fit)).tolist():
        landmarks = [local.landmarks[int(j)] for j in remaining[i]]
        shapes = replace(local, landmarks=landmarks, visible=local.visible[:, remaining[i]])
        cost = solver.make_cost(folds, i)
        _, findings[i] = diagnose_reference(shapes, cost, problem.method, fit[i], problem.cost)
    return findings


def _find_doubtful_folds(problem: DeformableProblem, fit: ReferenceFit) -> Mask:
    """Find the folds (g,) in which ``check_solution`` may have something to report.

    The other folds, nearly always all of them, need no diagnostics of their own.
    """
    tuning, cost, proportions = problem.method.tuning, problem.cost, fit.proportions
    n_axes, eps = fit.spectrum.axes.shape[2], np.finfo(np.float64).eps
    if n_axes - fit.n_agreed > problem.local.n_dims or cost.rank_deficiency.any():
        return np.ones(len(fit.reference), dtype=bool)
    last, following = fit.spectrum.values[:, -2], fit.spectrum.values[:, -1]
    # where landmarks are missing, parts may hang together by a hinge
    min_gap = tuning.narrow_gap if problem.local.visible.all() else tuning.firm_gap
    rounding = eps * max(1e3 * cost.n_shapes, np.sqrt(cost.condition.max()) / tuning.gap_rounding)
    is_wide = following - last > np.maximum(min_gap * following, rounding)
    directions = fit.spectrum.axes
    if fit.n_agreed:
        directions = np.linalg.svd(fit.reference, full_matrices=False)[0][
            ..., : n_axes - fit.n_agreed
        ]
    n_carriers = directions.shape[2] + 1
    is_carried_by_few = n_carriers * np.square(directions).max(axis=(1, 2)) > tuning.carried_share
    is_carried_by_few &= directions.shape[1] >= 4 * n_carriers
    is_sound = is_wide & np.isfinite(following) & ~is_carried_by_few & (fit.votes >= 0).all(axis=1)
    is_sound &= proportions.converged & proportions.determined & fit.spectrum.converged
    return np.asarray(~is_sound | (proportions.residual > tuning.large_deformation))


def predict_elastic(
    solver: FoldSolver,
    folds: Folds,
    free_fit: ReferenceFit,
    dial: Dial | None,
    full_reference: Array,
) -> Iterator[tuple[int, LeftOut]]:
    """Predict the landmarks of folds by the elastic method.

    Landmarks are left out of the free residual forms P_i; what remains of a shape is anchored
    anew, P_i' + κ Q_KQ_Kᵀ with Q_K of the landmarks K. (The anchor of all landmarks would let a
    left-out one move against the linear part of its shape at no cost but bending.) The free warp
    predicts −P_JJ⁻¹P_JK S_K; κ of its departure T from the pose is taken off, κ D̄_J T. Every shape
    is on the side on which it is as a whole. Parameters and result are those of
    ``predict_deformable``, whose ``free_fit`` tells on how many axes the shapes agree.
    """
    problem, sums, forms = solver.problem, folds.sums, folds.forms
    assert isinstance(problem, ElasticProblem)
    assert isinstance(forms, LeftOutForms)
    assert dial is not None
    cost = solver.make_cost(folds, slice(None))
    inverse = RootInverse.of(cost.dense() + dial.firmness * sums.projections)
    axes = free_fit.spectrum.axes if free_fit.n_agreed else None
    anchors, starts = Anchors(sums, problem.anchors.side), (full_reference[sums.remaining],)
    fit = fit_elastic(anchors, inverse, starts, dial, problem.method.tuning, axes)
    free = forms.predict(fit.reference)
    predicted = free - dial.firmness * sums.points_left_out @ fit.departures
    findings: list[tuple[Finding, ...]] = [()] * len(predicted)
    for i in np.flatnonzero(~fit.converged).tolist():
        votes, names = problem.fit.diagnostics.votes, problem.local.names
        _, findings[i] = fit.diagnose(i, dial, votes, names)
    return _pose(folds, predicted, fit.reference, findings, full_reference)


def _pose(
    folds: Folds,
    predicted: Array,
    references: Array,
    findings: Sequence[tuple[Finding, ...]],
    full_reference: Array,
) -> Iterator[tuple[int, LeftOut]]:
    """Yield the folds with their numbers, moved onto the reference (m, d) of all landmarks.

    ``predicted`` (g, n, N, d) are in the frames of the folds' ``references`` (g, m', d).
    """
    g, n, size, d = predicted.shape
    points = np.concatenate([predicted.reshape(g, n * size, d), references], axis=1)
    target = full_reference[folds.sums.remaining]
    moved = move_to_full_pose(target, references, points[:, None])[:, 0]
    posed, posed_references = np.split(moved, [n * size], axis=1)
    for i, number in enumerate(folds.numbers.tolist()):
        yield number, LeftOut(posed[i].reshape(n, size, d), findings[i], None, posed_references[i])


def move_to_full_pose(full: Array, reference: Array, images: Array) -> Array:
    """Move predictions with a fold's reference onto the full one.

    By R ∈ O(d) and a translation, no scale, on the landmarks of the fold: both references are
    (…, m, d), ``images`` are (…, n, N, d): one fold, or a stack of them.
    """
    centre, full_centre = (x.mean(axis=-2, keepdims=True) for x in (reference, full))
    left, _, right = np.linalg.svd((reference - centre).mT @ (full - full_centre))
    turn = (left @ right)[..., None, :, :]
    return np.asarray((images - centre[..., None, :, :]) @ turn + full_centre[..., None, :, :])


def _add_lone_landmarks(outcome: LeftOut, full: Alignment, shared: Index, fold: Index) -> LeftOut:
    """Add the landmarks of a fold that only one shape has: its warp puts them where they are."""
    lone = ~np.isin(fold, shared)
    if outcome.error is not None or not lone.any():
        return outcome
    predicted = np.empty((len(full.shapes), len(fold), full.shapes.n_dims))
    predicted[:, ~lone] = outcome.predicted
    predicted[:, lone] = full.reference[fold[lone]]
    if outcome.reference is None:
        return replace(outcome, predicted=predicted)
    complete = np.array(full.reference)
    complete[np.setdiff1d(shared, fold)] = outcome.reference
    shapes = full.shapes
    for shape in np.unique(shapes.visible[:, fold[lone]].argmax(axis=0)):
        # the warp onto the reference that has the predictions in its place
        complete[fold[~lone]] = predicted[shape, ~lone]
        visible = shared[shapes.visible[shape, shared]]
        warp = full.registration.warp(shapes.points[shape, visible], complete[visible])
        predicted[shape, lone] = warp(shapes.points[shape, fold[lone]])
    return replace(outcome, predicted=predicted)
