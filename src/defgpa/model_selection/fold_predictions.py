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

from defgpa._arrays import Array, Index, Mask, one_blas_thread
from defgpa.alignment import Alignment
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
from defgpa.frames import Frames
from defgpa.model_selection.folds import LeftOut, Steps, move_to_full_pose
from defgpa.solvers.anchored_cost import RootInverse
from defgpa.solvers.deformable import (
    LocalShapes,
    compute_looseness,
    find_reference_axes,
    pair_with_axes,
)
from defgpa.solvers.eigen import Preconditioner, Spectrum
from defgpa.solvers.elastic import (
    Anchors,
    Dial,
    elastic_gpa,
    orthonormalise,
    scale_to_mean_size,
    weigh_points,
)
from defgpa.solvers.leave_out import LeftOutCost, LeftOutForms, leave_out
from defgpa.solvers.proportions import (
    Moments,
    Proportions,
    compute_moments,
    find_sides,
    fit_rigid_proportions,
    judge_proportions,
)


@dataclass(frozen=True, eq=False)
class Fold:
    """A fold, by the landmarks of a problem: those that at least two shapes share."""

    number: int
    landmarks: Index  # J
    kept: Index  # K

    @property
    def size(self) -> tuple[int, int]:
        """How many landmarks are left out, and kept."""
        return len(self.landmarks), len(self.kept)


@dataclass(frozen=True, eq=False)
class ReducedFold:
    """A fold whose landmarks are left out of every shape."""

    fold: Fold
    forms: LeftOutForms
    spectrum: Spectrum | None = None  # of the reduced cost


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
        for block in _make_blocks(deformable, shared, folds):
            for fold, predicted, reference, findings in solver.predict(block, outcomes):
                outcomes[fold.number] = LeftOut(predicted, findings)
                references[fold.number] = reference
            steps.advance(len(block))
    return [
        _add_lone_landmarks(outcomes.get(number), references.get(number), full, shared, fold)
        for number, fold in enumerate(folds)
    ]


def _make_blocks(
    problem: DeformableProblem, shared: Index, folds: Sequence[Index]
) -> Iterator[list[Fold]]:
    """Group folds of one size into blocks whose arrays stay in the cache."""
    n, m = problem.shapes.n_shapes, len(shared)
    everything = np.arange(m)
    by_size: dict[tuple[int, int], list[Fold]] = {}
    for number, landmarks in enumerate(folds):
        left_out = np.flatnonzero(np.isin(shared, landmarks))
        fold = Fold(number, left_out, np.delete(everything, left_out))
        by_size.setdefault(fold.size, []).append(fold)
    for (size, _), equal in by_size.items():
        if not size:  # all of them are landmarks that only one shape has
            continue
        n_bytes = 8 * n * m * (3 * size + 2 * problem.shapes.n_dims)
        step = max(1, problem.method.tuning.fold_bytes // n_bytes)
        yield from (equal[start : start + step] for start in range(0, len(equal), step))


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

    def check(self, fold: Fold, singular: Mask) -> None:
        """Raise if the shapes are not linked, or a warp not determined, without a fold."""
        local = self.problem.local
        if singular.any():
            refuse_degenerate_shapes(self.restrict(fold).frames, local.names)
        if len(fold.landmarks) > self.max_unlinked:
            require_linkage_by_pattern(local.visible[:, fold.kept], local.names, local.n_dims)
        if not singular.any():
            return
        names = [local.names[int(i)] for i in np.flatnonzero(singular)]
        raise DegenerateShapeError(
            f"The warp of shape {format_names(names)} passes through the landmarks that are left "
            "out whatever they are, and predicts nothing of them: it has as many functions as the "
            "shape has landmarks. Use more smoothing, or fewer functions"
        )

    def restrict(self, fold: Fold) -> LocalShapes:
        """Return the shapes on the landmarks that are kept."""
        local = self.problem.local
        frames, kept = local.frames, fold.kept
        points = np.where(frames.visible[:, kept, None], frames.points[:, kept], np.nan)
        weights = None if frames.weights is None else frames.weights[:, kept]
        cut = Frames.of(points, frames.visible[:, kept], weights).project_to_planes()
        return LocalShapes(cut, local.names, [local.landmarks[int(j)] for j in kept])

    def centre(self, block: Sequence[ReducedFold]) -> CentredFolds:
        """Centre the shapes of each fold on the landmarks that are kept."""
        frames = self.problem.local.frames
        kept = np.stack([reduced.fold.kept for reduced in block])
        landmarks = np.stack([reduced.fold.landmarks for reduced in block])
        visible = np.moveaxis(frames.visible[:, kept], 1, 0)
        weights = None if frames.weights is None else np.moveaxis(frames.weights[:, kept], 1, 0)
        masses = visible.astype(np.float64) if weights is None else weights
        totals = masses.sum(axis=2)[..., None, None]
        inside = np.moveaxis(frames.centred[:, kept], 1, 0)
        means = (masses[..., None, :] @ inside) / np.where(totals > 0.0, totals, 1.0)
        outside = np.moveaxis(frames.centred[:, landmarks], 1, 0) - means
        centred = inside - means
        if not frames.is_complete:
            centred[~visible] = 0.0
        return CentredFolds(centred, visible, weights, outside)


@dataclass(frozen=True, eq=False)
class CentredFolds:
    """The n shapes of g folds, each about the centroid of its landmarks that are kept."""

    centred: Array  # (g, n, m', d), missing points zero
    visible: Mask  # (g, n, m')
    weights: Array | None  # (g, n, m'), if landmarks have weights
    left_out: Array  # (g, n, N, d): the landmarks of the fold


# a fold, its predictions (n, N, d) and reference (m', d), posed like that of all landmarks
Prediction = tuple[Fold, Array, Array, tuple[Finding, ...]]


class _FoldSolver:
    """Predicts blocks of folds."""

    reduction: _Reduction
    reference: Array  # (m, d): that of all landmarks

    def predict(self, block: Sequence[Fold], outcomes: dict[int, LeftOut]) -> Iterator[Prediction]:
        """Yield the predictions of every fold that can be left out."""
        raise NotImplementedError

    def reduce(
        self, block: Sequence[Fold], outcomes: dict[int, LeftOut]
    ) -> Iterator[tuple[Fold, LeftOutForms]]:
        """Leave each fold out; a fold that cannot be left out becomes an outcome with its error."""
        problem = self.reduction.problem
        visible = problem.local.visible
        landmarks = np.concatenate([fold.landmarks for fold in block])
        rows = problem.cost.residual_rows(landmarks)
        size = len(block[0].landmarks)
        for number, fold in enumerate(block):
            part = rows[:, number * size : (number + 1) * size]
            forms = leave_out(part, visible[:, fold.landmarks], fold.landmarks, fold.kept)
            try:
                self.reduction.check(fold, forms.singular)
            except DefgpaError as error:
                nothing = np.full((len(visible), size, problem.local.n_dims), np.nan)
                outcomes[fold.number] = LeftOut(nothing, error=error)
            else:
                yield fold, forms

    def pose(self, block: Sequence[ReducedFold], references: Array, predictions: Array) -> Array:
        """Move predictions (g, n, N, d) with the references of folds onto that of all landmarks."""
        kept = np.stack([reduced.fold.kept for reduced in block])
        return move_to_full_pose(self.reference[kept], references, predictions)


@dataclass(frozen=True, eq=False)
class _DeformableFolds(_FoldSolver):
    reduction: _Reduction
    reference: Array
    at_mean_size: bool  # as at the soft end of the elastic dial

    def predict(self, block: Sequence[Fold], outcomes: dict[int, LeftOut]) -> Iterator[Prediction]:
        """Yield the predictions of every fold that can be left out."""
        problem = self.reduction.problem
        start = np.column_stack([problem.fit.spectrum.axes, problem.fit.spectrum.next_vector])
        by_axes: dict[int, list[ReducedFold]] = {}
        for fold, forms in self.reduce(block, outcomes):
            cost = LeftOutCost(
                problem.cost, fold.kept, forms, self.reduction.matrix, self.reduction.inverse
            )
            spectrum = find_reference_axes(
                cost,
                problem.local.visible[:, fold.kept],
                problem.local.rank,
                problem.method,
                start[fold.kept],
            )
            by_axes.setdefault(spectrum.n_axes, []).append(ReducedFold(fold, forms, spectrum))
        for equal in by_axes.values():
            yield from self._predict_with_equal_axes(equal)

    def _predict_with_equal_axes(self, block: Sequence[ReducedFold]) -> Iterator[Prediction]:
        axes = np.stack([_spectrum(reduced).axes for reduced in block])
        folds = self.reduction.centre(block)
        centred, visible, weights = folds.centred, folds.visible, folds.weights
        moments = compute_moments(axes, centred, visible, weights)
        proportions, matrices = self._choose_proportions(block, moments)
        references = axes @ matrices
        votes = find_sides(moments, matrices)
        if self.at_mean_size:
            nothing = np.empty(0)
            anchors = Anchors(centred, visible, votes.votes, nothing, nothing, weights)
            references = scale_to_mean_size(anchors, references)
        predictors = np.stack([reduced.forms.predictors for reduced in block])
        posed = self.pose(block, references, predictors @ references[:, None])
        posed_references = self.pose(block, references, references[:, None])[:, 0]
        offsets = np.linalg.norm(references.mean(axis=1), axis=1)
        extents = np.abs(references).max(axis=(1, 2))
        counts = centred.shape[-1] * visible.sum(axis=(1, 2))
        looseness = compute_looseness(proportions, counts)
        sides = votes.votes * votes.majority[:, None]
        for number, reduced in enumerate(block):
            facts = self._diagnose(
                reduced,
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
            findings = self._check(facts, reduced)
            yield reduced.fold, posed[number], posed_references[number], findings

    def _choose_proportions(
        self, block: Sequence[ReducedFold], moments: Moments
    ) -> tuple[Proportions, Array]:
        """Choose A (g, k, d) of every fold."""
        method, n_axes = self.reduction.problem.method, moments.cross.shape[-2]
        if method.by_rigidity:
            rigid = fit_rigid_proportions(moments, method.tuning.most_rounds)
            matrices = rigid.matrix
            for number in np.flatnonzero(~rigid.determined):
                prior = self.reduction.restrict(block[int(number)].fold).prior()
                matrices[number] = pair_with_axes(prior, n_axes)
            return rigid, matrices
        stated = method.proportions
        matrices = np.stack(
            [
                pair_with_axes(
                    self.reduction.restrict(reduced.fold).prior()
                    if isinstance(stated, str)
                    else np.asarray(stated),
                    n_axes,
                )
                for reduced in block
            ]
        )
        return judge_proportions(moments, matrices), matrices

    def _diagnose(
        self,
        reduced: ReducedFold,
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
        problem, spectrum = self.reduction.problem, _spectrum(reduced)
        off_centre = offset > problem.method.tuning.off_centre * extent
        stated = problem.method.proportions
        return SpectralDiagnostics(
            spectrum=spectrum.values,
            gap=spectrum.gap,
            cohesion=compute_cohesion(
                spectrum.axes, spectrum.next_vector, visible, problem.local.rank
            ),
            translation_cost=self._charge_translation(reduced) if off_centre else 0.0,
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

    def _charge_translation(self, reduced: ReducedFold) -> float:
        """Compute ‖P'1‖ from P1."""
        cross, predictors = reduced.forms.cross, reduced.forms.predictors
        translation = self.reduction.problem.fit.translation[reduced.fold.kept]
        translation = translation - cross.sum(axis=(0, 1))
        translation = translation + np.einsum("njk,nj->k", cross, predictors.sum(axis=2))
        return float(np.linalg.norm(translation))

    def _check(self, facts: SpectralDiagnostics, reduced: ReducedFold) -> tuple[Finding, ...]:
        local, tuning = self.reduction.problem.local, self.reduction.problem.method.tuning
        labels = _Labels(local.landmarks, reduced.fold.kept)
        return check_solution(facts, _spectrum(reduced).axes, local.names, labels, tuning)


class _Labels(Sequence[str]):
    """The labels of the landmarks that are kept, looked up only where one is named."""

    def __init__(self, labels: Sequence[str], kept: Index) -> None:
        self._labels, self._kept = labels, kept

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        return self._labels[self._kept[index]]

    def __len__(self) -> int:
        return len(self._kept)


def _spectrum(reduced: ReducedFold) -> Spectrum:
    assert reduced.spectrum is not None
    return reduced.spectrum


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

    def predict(self, block: Sequence[Fold], outcomes: dict[int, LeftOut]) -> Iterator[Prediction]:
        """Yield the predictions of every fold that can be left out."""
        kappa, tuning = self.dial.firmness, self.reduction.problem.method.tuning
        solved = [ReducedFold(*pair) for pair in self.reduce(block, outcomes)]
        if not solved:
            return
        folds = self.reduction.centre(solved)
        fit = elastic_gpa(
            self._anchor(folds),
            RootInverse.of(self._sum_anchored_forms(solved, folds)),
            (self.reference[np.stack([reduced.fold.kept for reduced in solved])],),
            self.dial,
            tuning,
        )
        predictors = np.stack([reduced.forms.predictors for reduced in solved])
        free = predictors @ fit.reference[:, None]
        posed = self.pose(solved, fit.reference, free - kappa * folds.left_out @ fit.departures)
        posed_references = self.pose(solved, fit.reference, fit.reference[:, None])[:, 0]
        names = self.reduction.problem.local.names
        for number, reduced in enumerate(solved):
            findings = fit.findings(names, (number,))
            yield reduced.fold, posed[number], posed_references[number], findings

    def _anchor(self, folds: CentredFolds) -> Anchors:
        """Return the anchors of folds; every shape is on the side on which it is as a whole."""
        weighted = weigh_points(folds.centred, folds.weights)
        g, n, m, d = weighted.shape
        pull = np.ascontiguousarray(weighted.mT).reshape(g, n * d, m)
        squares = np.einsum("gnmd,gnmd->gn", weighted, folds.centred)
        votes = np.broadcast_to(self.problem.anchors.votes, (g, n))
        return Anchors(folds.centred, folds.visible, votes, pull, squares, folds.weights)

    def _sum_anchored_forms(self, block: Sequence[ReducedFold], folds: CentredFolds) -> Array:
        """Compute Σ P_i' + κ Σ (ΓQ_K)(ΓQ_K)ᵀ (g, m', m')."""
        matrix = self.reduction.matrix
        assert matrix is not None
        rows = orthonormalise(folds.centred, folds.weights)
        flat = weigh_points(rows.mT, folds.weights).mT.reshape(len(block), -1, rows.shape[-1])
        anchored = self.dial.firmness * (flat.mT @ flat)
        for number, reduced in enumerate(block):
            kept = reduced.fold.kept
            anchored[number] += matrix.take(kept, axis=0).take(kept, axis=1) + reduced.forms.change
        return anchored
