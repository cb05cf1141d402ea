"""Predict the landmarks of folds by Schur complements: no warp is fitted again.

The basis of every shape is kept, so a fold only withholds where its landmarks belong. Each fold is
a reduced cost and its bottom eigenvectors; the small algebra that follows (moments, proportions,
predictions, pose) is one call for a block of folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index, Mask
from defgpa.diagnostics.checks import (
    check_solution,
    compute_cohesion,
    group_by_overlap,
    refuse_degenerate_shapes,
    require_linkage_by_pattern,
)
from defgpa.diagnostics.findings import Finding
from defgpa.diagnostics.solution import SpectralDiagnostics
from defgpa.errors import DefgpaError, DegenerateShapeError, format_names
from defgpa.estimators import DeformableProblem, ElasticProblem
from defgpa.geometry import measure_geometry
from defgpa.model_selection.folds import LeftOut, Steps, move_to_full_pose
from defgpa.solvers.anchored_cost import RootInverse
from defgpa.solvers.centering import ExactCentering, SoftCentering
from defgpa.solvers.deformable import (
    LocalShapes,
    add_free_axes,
    centre_cost,
    choose_metric,
    compute_looseness,
    find_reference_axes,
    pair_with_axes,
)
from defgpa.solvers.eigen import Dense, Preconditioner, Spectrum, find_lowest_axes_of_all
from defgpa.solvers.elastic import (
    Anchors,
    Dial,
    elastic_gpa,
    orthonormalise,
    scale_to_mean_size,
    weigh_points,
)
from defgpa.solvers.leave_out import LeftOutCost, LeftOutForms, leave_out
from defgpa.solvers.metric import LandmarkMetric
from defgpa.solvers.proportions import (
    Moments,
    Proportions,
    compute_moments,
    find_sides,
    fit_rigid_proportions,
    judge_proportions,
)
from defgpa.threads import one_blas_thread


@dataclass(frozen=True, eq=False)
class ReducedFolds:
    """Folds of one size whose landmarks are left out of every shape.

    Landmarks are those of a problem: at least two shapes share each.
    """

    numbers: Index  # (g,): of each among all folds
    landmarks: Index  # (g, N): J of each
    kept: Index  # (g, m'): K of each
    forms: LeftOutForms  # (g, …)

    def __len__(self) -> int:
        return len(self.numbers)

    def select(self, chosen: Index) -> ReducedFolds:
        """Return some of the folds."""
        return ReducedFolds(
            self.numbers[chosen],
            self.landmarks[chosen],
            self.kept[chosen],
            self.forms.select(chosen),
        )


def predict_folds(
    problem: DeformableProblem | ElasticProblem,
    full: Alignment,
    folds: Sequence[Index],
    steps: Steps,
    dial: Dial | None = None,
) -> list[LeftOut]:
    """Predict the landmarks of every fold.

    Parameters
    ----------
    problem : DeformableProblem or ElasticProblem
        With the warps of all shapes eliminated.
    full : Alignment
        That of all landmarks.
    folds : sequence of ndarray of int
        The landmarks of each fold.
    steps : Steps
        Counts the folds that are done.
    dial : Dial, optional
        Of an elastic problem.

    Returns
    -------
    list of LeftOut
    """
    shared = np.flatnonzero(full.shapes.views >= 2)
    outcomes: dict[int, LeftOut] = {}
    references: dict[int, Array] = {}
    elastic = isinstance(problem, ElasticProblem)
    deformable = problem.deformable if isinstance(problem, ElasticProblem) else problem
    with one_blas_thread:
        reduction = _Reduction(deformable)
        if elastic and dial is not None and dial.firmness > 0.0:
            assert isinstance(problem, ElasticProblem)
            solver: _FoldSolver = _ElasticFolds(problem, reduction, full.reference[shared], dial)
        else:
            solver = _DeformableFolds(reduction, full.reference[shared], at_mean_size=elastic)
        for numbers, landmarks in _make_blocks(deformable, full, folds):
            reduced = reduction.leave_out(numbers, landmarks, outcomes)
            predictions = solver.predict(reduced) if len(reduced) else ()
            for number, predicted, reference, findings in predictions:
                outcomes[number] = LeftOut(predicted, findings)
                references[number] = reference
            steps.advance(len(numbers))
    if len(shared) == full.shapes.n_landmarks:
        return [outcomes[number] for number in range(len(folds))]
    return [
        _add_lone_landmarks(outcomes.get(number), references.get(number), full, shared, fold)
        for number, fold in enumerate(folds)
    ]


def _make_blocks(
    problem: DeformableProblem, full: Alignment, folds: Sequence[Index]
) -> Iterator[tuple[Index, Index]]:
    """Group folds of one size into blocks whose arrays stay in the cache.

    Yields the numbers (g,) of the folds of a block, and their landmarks (g, N) among the shared.
    """
    n, m = problem.shapes.n_shapes, problem.shapes.n_landmarks
    positions = np.full(full.shapes.n_landmarks, -1)
    positions[full.shapes.views >= 2] = np.arange(m)
    by_size: dict[int, list[tuple[int, Index]]] = {}
    for number, fold in enumerate(folds):
        landmarks = positions[fold]
        landmarks = landmarks[landmarks >= 0]
        by_size.setdefault(len(landmarks), []).append((number, landmarks))
    by_size.pop(0, None)  # all of their landmarks are such that only one shape has
    for size, pairs in by_size.items():
        n_bytes = 8 * n * m * (3 * size + 2 * problem.shapes.n_dims)
        if m <= problem.method.tuning.dense_landmarks:
            n_bytes += 8 * m * m
        step = max(1, problem.method.tuning.fold_bytes // n_bytes)
        for first in range(0, len(pairs), step):
            block = pairs[first : first + step]
            numbers = np.array([number for number, _ in block])
            yield numbers, np.stack([landmarks for _, landmarks in block])


def _add_lone_landmarks(
    outcome: LeftOut | None,
    reference: Array | None,
    full: Alignment,
    shared: Index,
    fold: Index,
) -> LeftOut:
    """Add the landmarks of a fold that only one shape has: its warp puts them where they are."""
    if outcome is None:
        outcome = LeftOut(np.empty((len(full.shapes), 0, full.shapes.n_dims)))
    lone = ~np.isin(fold, shared)
    if outcome.error is not None or not lone.any():
        return outcome
    predicted = np.empty((len(full.shapes), len(fold), full.shapes.n_dims))
    predicted[:, ~lone] = outcome.predicted
    predicted[:, lone] = full.reference[fold[lone]]
    if reference is not None:
        complete = np.array(full.reference)
        complete[np.setdiff1d(shared, fold)] = reference
        _predict_lone_landmarks(predicted, complete, full, shared, fold, lone)
    return LeftOut(predicted, outcome.findings)


def _predict_lone_landmarks(
    predicted: Array, complete: Array, full: Alignment, shared: Index, fold: Index, lone: Mask
) -> None:
    """Predict them by the warp onto the reference that has the predictions in its place."""
    shapes = full.shapes
    for shape in np.unique(shapes.visible[:, fold[lone]].argmax(axis=0)):
        reference = np.array(complete)
        reference[fold[~lone]] = predicted[shape, ~lone]
        visible = shared[shapes.visible[shape, shared]]
        warp = full.registration.warp(shapes.points[shape, visible], reference[visible])
        predicted[shape, lone] = warp(shapes.points[shape, fold[lone]])


@dataclass(frozen=True, eq=False)
class _Reduction:
    """What the folds of a problem have in common."""

    problem: DeformableProblem

    @cached_property
    def matrix(self) -> Array | None:
        """P, where it is formed."""
        cost, tuning = self.problem.cost, self.problem.method.tuning
        return cost.dense() if cost.n_landmarks <= tuning.dense_landmarks else None

    @property
    def is_dense(self) -> bool:
        """Whether the axes of all folds come from small matrices."""
        method = self.problem.method
        by_lapack = method.solver is None or type(method.solver) is Dense
        is_stackable = type(method.centering) in (SoftCentering, ExactCentering)
        return self.matrix is not None and by_lapack and is_stackable

    @cached_property
    def inverse(self) -> Preconditioner | None:
        """An approximation of P⁻¹, where P is not formed."""
        return None if self.matrix is not None else self.problem.cost.preconditioner()

    @cached_property
    def max_unlinked(self) -> int:
        """The landmarks that can be left out wherever they are, and the shapes stay linked."""
        visible, d = self.problem.local.visible, self.problem.local.n_dims
        if visible.all():
            return visible.shape[1] - d - 1
        n_spare = 0
        while n_spare < 16 and len(group_by_overlap(visible, d + 2 + n_spare)) == 1:
            n_spare += 1
        return n_spare

    def leave_out(
        self, numbers: Index, landmarks: Index, outcomes: dict[int, LeftOut]
    ) -> ReducedFolds:
        """Leave folds out of every shape; one that cannot be becomes an outcome with its error."""
        visible, cost = self.problem.local.visible, self.problem.cost
        g, size = landmarks.shape
        is_kept = np.ones((g, visible.shape[1]), dtype=bool)
        np.put_along_axis(is_kept, landmarks, False, axis=1)
        kept = np.nonzero(is_kept)[1].reshape(g, -1)
        rows = cost.residual_rows(landmarks.ravel())
        rows = np.moveaxis(rows.reshape(len(visible), g, size, -1), 1, 0)
        forms = leave_out(rows, np.moveaxis(visible[:, landmarks], 1, 0), landmarks, kept)
        folds = ReducedFolds(numbers, landmarks, kept, forms)
        doubtful = forms.singular.any(axis=1) | (size > self.max_unlinked)
        failed = []
        for i in np.flatnonzero(doubtful):
            try:
                self._check(kept[i], forms.singular[i])
            except DefgpaError as error:
                nothing = np.full((len(visible), size, self.problem.local.n_dims), np.nan)
                outcomes[int(numbers[i])] = LeftOut(nothing, error=error)
                failed.append(i)
        return folds.select(np.delete(np.arange(g), failed)) if failed else folds

    def _check(self, kept: Index, singular: Mask) -> None:
        """Raise if the shapes are not linked, or a warp not determined, by what is kept."""
        local = self.problem.local
        if singular.any():
            refuse_degenerate_shapes(self.restrict(kept).geometry, local.names)
        require_linkage_by_pattern(local.visible[:, kept], local.names, local.n_dims)
        if not singular.any():
            return
        names = [local.names[int(i)] for i in np.flatnonzero(singular)]
        raise DegenerateShapeError(
            f"The warp of shape {format_names(names)} passes through the landmarks that are left "
            "out whatever they are, and predicts nothing of them: it has as many functions as the "
            "shape has landmarks. Use more smoothing, or fewer functions"
        )

    def make_costs(self, folds: ReducedFolds) -> Iterator[LeftOutCost]:
        """Make the cost of each fold."""
        for number, kept in enumerate(folds.kept):
            forms = folds.forms.select(number)
            yield LeftOutCost(self.problem.cost, kept, forms, self.matrix, self.inverse)

    def restrict(self, kept: Index) -> LocalShapes:
        """Return the shapes on the landmarks that are kept."""
        local = self.problem.local
        geometry = local.geometry
        points = np.where(geometry.visible[:, kept, None], geometry.points[:, kept], np.nan)
        weights = None if geometry.weights is None else geometry.weights[:, kept]
        cut = measure_geometry(points, geometry.visible[:, kept], weights).project_to_planes()
        return LocalShapes(cut, local.names, [local.landmarks[int(j)] for j in kept])

    def centre(self, folds: ReducedFolds) -> CentredFolds:
        """Centre the shapes of each fold on the landmarks that are kept."""
        geometry, kept = self.problem.local.geometry, folds.kept
        visible = np.moveaxis(geometry.visible[:, kept], 1, 0)
        weights = None if geometry.weights is None else np.moveaxis(geometry.weights[:, kept], 1, 0)
        masses = visible.astype(np.float64) if weights is None else weights
        totals = masses.sum(axis=2)[..., None, None]
        inside = np.moveaxis(geometry.centred[:, kept], 1, 0)
        means = (masses[..., None, :] @ inside) / np.where(totals > 0.0, totals, 1.0)
        outside = np.moveaxis(geometry.centred[:, folds.landmarks], 1, 0) - means
        centred = inside - means
        if not geometry.is_complete:
            centred[~visible] = 0.0
        return CentredFolds(centred, visible, weights, outside)


@dataclass(frozen=True, eq=False)
class CentredFolds:
    """The n shapes of g folds, each about the centroid of its landmarks that are kept."""

    centred: Array  # (g, n, m', d), missing points zero
    visible: Mask  # (g, n, m')
    weights: Array | None  # (g, n, m'), if landmarks have weights
    left_out: Array  # (g, n, N, d): the landmarks of the fold


# the number of a fold, its predictions (n, N, d), its reference (m', d), posed like that of all
# landmarks, and its findings
Prediction = tuple[int, Array, Array, tuple[Finding, ...]]


class _FoldSolver:
    """Predicts the landmarks of folds."""

    reduction: _Reduction
    reference: Array  # (m, d): that of all landmarks

    def predict(self, folds: ReducedFolds) -> Iterator[Prediction]:
        """Yield the predictions of every fold."""
        raise NotImplementedError

    def pose(self, folds: ReducedFolds, references: Array, predictions: Array) -> Array:
        """Move predictions (g, n, N, d) with the references of folds onto that of all landmarks."""
        return move_to_full_pose(self.reference[folds.kept], references, predictions)


@dataclass(frozen=True, eq=False)
class _DeformableFolds(_FoldSolver):
    reduction: _Reduction
    reference: Array
    at_mean_size: bool  # as at the soft end of the elastic dial

    def predict(self, folds: ReducedFolds) -> Iterator[Prediction]:
        """Yield the predictions of every fold."""
        spectra = self._find_axes(folds)
        n_axes = np.array([spectrum.n_axes for spectrum in spectra])
        for count in np.unique(n_axes):
            chosen = np.flatnonzero(n_axes == count)
            yield from self._predict_with_equal_axes(
                folds.select(chosen), [spectra[int(i)] for i in chosen]
            )

    def _find_axes(self, folds: ReducedFolds) -> list[Spectrum]:
        """Find the axes of the reference of every fold; the small matrices of all in one call."""
        problem, reduction = self.reduction.problem, self.reduction
        method, rank, visible = problem.method, problem.local.rank, problem.local.visible
        if not reduction.is_dense:
            start = np.column_stack([problem.fit.spectrum.axes, problem.fit.spectrum.next_vector])
            return [
                find_reference_axes(cost, visible[:, cost.kept], rank, method, start[cost.kept])
                for cost in reduction.make_costs(folds)
            ]
        together = LeftOutCost(problem.cost, folds.kept, folds.forms, reduction.matrix)
        metric = choose_metric(together, method)
        spectra = find_lowest_axes_of_all(centre_cost(together, method, metric).dense(), rank)
        if metric is not None:
            pairs = zip(metric.roots, spectra, strict=True)
            spectra = [LandmarkMetric(roots).restore(spectrum) for roots, spectrum in pairs]
        if visible.all():
            return spectra  # axes are free only where landmarks are missing
        return [
            add_free_axes(spectrum, cost, visible[:, cost.kept], rank, method)
            for spectrum, cost in zip(spectra, reduction.make_costs(folds), strict=True)
        ]

    def _predict_with_equal_axes(
        self, folds: ReducedFolds, spectra: Sequence[Spectrum]
    ) -> Iterator[Prediction]:
        axes = np.stack([spectrum.axes for spectrum in spectra])
        cut = self.reduction.centre(folds)
        centred, visible, weights = cut.centred, cut.visible, cut.weights
        moments = compute_moments(axes, centred, visible, weights)
        proportions, matrices = self._choose_proportions(folds, moments)
        references = axes @ matrices
        votes = find_sides(moments, matrices)
        if self.at_mean_size:
            nothing = np.empty(0)
            anchors = Anchors(centred, visible, votes.votes, nothing, nothing, weights)
            references = scale_to_mean_size(anchors, references)
        posed = self.pose(folds, references, folds.forms.predictors @ references[:, None])
        posed_references = self.pose(folds, references, references[:, None])[:, 0]
        offsets = np.linalg.norm(references.mean(axis=1), axis=1)
        extents = np.abs(references).max(axis=(1, 2))
        counts = centred.shape[-1] * visible.sum(axis=(1, 2))
        looseness = compute_looseness(proportions, counts)
        sides = votes.votes * votes.majority[:, None]
        names, tuning = self.reduction.problem.local.names, self.reduction.problem.method.tuning
        doubtful = self._find_doubtful_folds(spectra, axes, proportions)
        doubtful |= (sides < 0).any(axis=1) | (offsets > tuning.off_centre * extents)
        for number, spectrum in enumerate(spectra):
            findings: tuple[Finding, ...] = ()
            if doubtful[number]:
                facts = self._diagnose(
                    folds,
                    number,
                    spectrum,
                    visible[number],
                    offset=float(offsets[number]),
                    extent=float(extents[number]),
                    votes=sides[number],
                    similarity_residual=float(proportions.residual[number]),
                    looseness=float(looseness[number]),
                    converged=bool(proportions.converged[number]),
                    determined=bool(proportions.determined[number]),
                    rounds=proportions.rounds,
                )
                labels = _Labels(self.reduction.problem.local.landmarks, folds.kept[number])
                findings = check_solution(facts, spectrum.axes, names, labels, tuning)
            yield int(folds.numbers[number]), posed[number], posed_references[number], findings

    def _find_doubtful_folds(
        self, spectra: Sequence[Spectrum], axes: Array, proportions: Proportions
    ) -> Mask:
        """Find the folds (g,) in which ``check_solution`` may have something to report.

        The other folds, nearly always all of them, need no diagnostics of their own.
        """
        problem, tuning = self.reduction.problem, self.reduction.problem.method.tuning
        _, m, k = axes.shape
        values = np.stack([spectrum.values for spectrum in spectra])
        if k > problem.local.n_dims or values.shape[1] <= k or problem.cost.dropped.any():
            return np.ones(len(spectra), dtype=bool)
        eps = np.finfo(np.float64).eps
        steps = values[:, k] - values[:, k - 1]
        is_wide = steps > tuning.narrow_gap * values[:, k]
        if not problem.local.visible.all():  # or parts may hang together by a hinge
            is_wide &= steps >= tuning.firm_gap * values[:, k]
        rounding = max(
            1e3 * eps * problem.cost.n_shapes,
            eps * np.sqrt(problem.cost.condition.max()) / tuning.blurred,
        )
        few = (k + 1) * (axes * axes).max(axis=(1, 2)) > tuning.handful
        sound = is_wide & (steps > rounding) & ~(few & (m >= 4 * (k + 1)))
        sound &= proportions.converged & proportions.determined
        sound &= proportions.residual <= tuning.large_deformation
        sound &= np.array([spectrum.converged for spectrum in spectra])
        return ~sound

    def _choose_proportions(
        self, folds: ReducedFolds, moments: Moments
    ) -> tuple[Proportions, Array]:
        """Choose A (g, k, d) of every fold."""
        method, n_axes = self.reduction.problem.method, moments.cross.shape[-2]
        if method.by_rigidity:
            rigid = fit_rigid_proportions(moments, method.tuning.max_rounds)
            matrices = rigid.matrix
            for number in np.flatnonzero(~rigid.determined):
                prior = self.reduction.restrict(folds.kept[number]).prior()
                matrices[number] = pair_with_axes(prior, n_axes)
            return rigid, matrices
        stated = method.proportions
        matrices = np.stack(
            [
                pair_with_axes(
                    self.reduction.restrict(kept).prior()
                    if isinstance(stated, str)
                    else np.asarray(stated),
                    n_axes,
                )
                for kept in folds.kept
            ]
        )
        return judge_proportions(moments, matrices), matrices

    def _diagnose(
        self,
        folds: ReducedFolds,
        number: int,
        spectrum: Spectrum,
        visible: Mask,
        *,
        offset: float,
        extent: float,
        votes: Index,
        similarity_residual: float,
        looseness: float,
        converged: bool,
        determined: bool,
        rounds: int,
    ) -> SpectralDiagnostics:
        problem = self.reduction.problem
        off_centre = offset > problem.method.tuning.off_centre * extent
        stated = problem.method.proportions
        return SpectralDiagnostics(
            spectrum=spectrum.values,
            gap=spectrum.gap,
            cohesion=compute_cohesion(
                spectrum.axes, spectrum.next_vector, visible, problem.local.rank
            ),
            translation_cost=self._charge_translation(folds, number) if off_centre else 0.0,
            offset=offset,
            extent=extent,
            votes=votes,
            condition=problem.cost.condition,
            free_directions=problem.cost.dropped,
            residuals=spectrum.residuals,
            converged=spectrum.converged,
            excess=0.0,
            similarity_residual=similarity_residual,
            looseness=looseness,
            proportions_converged=converged,
            proportions_determined=determined,
            proportions=stated if isinstance(stated, str) else "given",
            n_dims=problem.local.n_dims,
            rounds=rounds,
            method=spectrum.method,
            storage=problem.cost.storage,
            n_products=spectrum.n_products,
        )

    def _charge_translation(self, folds: ReducedFolds, number: int) -> float:
        """Compute ‖P'1‖ from P1."""
        cross, predictors = folds.forms.cross[number], folds.forms.predictors[number]
        translation = self.reduction.problem.fit.translation[folds.kept[number]]
        translation = translation - cross.sum(axis=(0, 1))
        translation = translation + np.einsum("njk,nj->k", cross, predictors.sum(axis=2))
        return float(np.linalg.norm(translation))


class _Labels(Sequence[str]):
    """The labels of the landmarks that are kept, looked up only where one is named."""

    def __init__(self, labels: Sequence[str], kept: Index) -> None:
        self._labels, self._kept = labels, kept

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        return self._labels[self._kept[index]]

    def __len__(self) -> int:
        return len(self._kept)


@dataclass(frozen=True, eq=False)
class _ElasticFolds(_FoldSolver):
    """The folds of an elastic problem.

    Landmarks are left out of the free residual forms P_i; what is kept of a shape is anchored
    anew, P_i' + κ Q_KQ_Kᵀ with Q_K of the landmarks K. (The anchor of all landmarks would let a
    left-out one move against the linear part of its shape at no cost but bending.) The free warp
    predicts −P_JJ⁻¹P_JK S_K; κ of its departure T from the pose is taken off, κ D̄_J T.
    """

    problem: ElasticProblem
    reduction: _Reduction
    reference: Array
    dial: Dial

    def predict(self, folds: ReducedFolds) -> Iterator[Prediction]:
        """Yield the predictions of every fold."""
        kappa, tuning = self.dial.firmness, self.reduction.problem.method.tuning
        cut = self.reduction.centre(folds)
        fit = elastic_gpa(
            self._anchor(cut),
            RootInverse.of(self._sum_anchored_forms(folds, cut)),
            (self.reference[folds.kept],),
            self.dial,
            tuning,
        )
        free = folds.forms.predictors @ fit.reference[:, None]
        posed = self.pose(folds, fit.reference, free - kappa * cut.left_out @ fit.departures)
        posed_references = self.pose(folds, fit.reference, fit.reference[:, None])[:, 0]
        names = self.reduction.problem.local.names
        for number in range(len(folds)):
            findings = fit.findings(names, (number,))
            yield int(folds.numbers[number]), posed[number], posed_references[number], findings

    def _anchor(self, cut: CentredFolds) -> Anchors:
        """Return the anchors of folds; every shape is on the side on which it is as a whole."""
        weighted = weigh_points(cut.centred, cut.weights)
        g, n, m, d = weighted.shape
        pull = np.ascontiguousarray(weighted.mT).reshape(g, n * d, m)
        squares = np.einsum("gnmd,gnmd->gn", weighted, cut.centred)
        votes = np.broadcast_to(self.problem.anchors.votes, (g, n))
        return Anchors(cut.centred, cut.visible, votes, pull, squares, cut.weights)

    def _sum_anchored_forms(self, folds: ReducedFolds, cut: CentredFolds) -> Array:
        """Compute Σ P_i' + κ Σ (ΓQ_K)(ΓQ_K)ᵀ (g, m', m')."""
        problem, matrix = self.reduction.problem, self.reduction.matrix
        rows = orthonormalise(cut.centred, cut.weights)
        flat = weigh_points(rows.mT, cut.weights).mT.reshape(len(folds), -1, rows.shape[-1])
        anchored = LeftOutCost(problem.cost, folds.kept, folds.forms, matrix).dense()
        anchored += self.dial.firmness * (flat.mT @ flat)
        return anchored
