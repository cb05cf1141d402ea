"""Predict the landmarks of folds by Schur complements: no warp is fitted again.

The basis of every shape is kept, so a fold only withholds where its landmarks belong. Each fold is
a reduced cost and its bottom eigenvectors; the small algebra that follows (moments, proportions,
predictions, pose) is one call for a block of folds, and starts from the fit of all landmarks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from defgpa.alignment import Alignment
from defgpa.alignment_problems import DeformableProblem, ElasticProblem
from defgpa.arrays import Array, Index, Mask, Stack
from defgpa.diagnostics.checks import (
    check_solution,
    compute_cohesion,
    group_shapes,
    refuse_degenerate_shapes,
    require_linkage,
)
from defgpa.diagnostics.findings import Finding
from defgpa.diagnostics.solution import SpectralDiagnostics
from defgpa.errors import DefgpaError, DegenerateShapeError, format_names
from defgpa.geometry import Geometry, Moments, measure_geometry
from defgpa.model_selection.folds import LeftOut, Steps, move_to_full_pose
from defgpa.shapes import Shapes
from defgpa.solvers.anchored_cost import RootInverse
from defgpa.solvers.centred_sums import CentredSums, FoldSums
from defgpa.solvers.deformable import (
    LocalShapes,
    add_agreed_axes,
    compute_looseness,
    compute_rival_limit,
    find_reference_directions,
)
from defgpa.solvers.eigen import (
    Dense,
    ExactCentering,
    Iterative,
    Preconditioner,
    SoftCentering,
    Spectrum,
    add_free_axes,
    find_dense_axes,
    find_reference_axes,
    restore_axes,
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
    judge_proportions,
    measure_firmness,
    pair_with_axes,
)
from defgpa.threads import one_blas_thread
from defgpa.tuning import DEFAULT

BLOCK_BYTES = (
    6 << 20
)  # of the arrays of a block of folds: more leave the cache, fewer are many calls
MAX_LARGE_FOLDS = 16  # of large shapes in a block
MAX_DENSE_FOLDS = 12  # whose P' are formed at a time: more leave the inner cache
FREE = 1e-9  # ‖P1‖ over ‖P‖: below, translations are free
MAX_CACHED_BYTES = 64 << 20  # of arrays that all amounts of smoothing share

# a fold is fitted at a position of the dial (None: by the deformable method), and its reference is
# posed like that of the alignment of all landmarks
Position = tuple[Dial | None, Alignment]


@dataclass(frozen=True, eq=False)
class FoldBlock(Stack):
    """Some folds of one size, on the landmarks of a problem: at least two shapes share each."""

    numbers: Index  # (g,): of each among all folds
    sums: FoldSums

    @cached_property
    def projections(self) -> Array:
        """(g, m', m'): Σ (ΓQ)(ΓQ)ᵀ, what anchors an elastic fold."""
        return self.sums.sum_projections()


@dataclass(frozen=True, eq=False)
class FoldPlan:
    """The folds of some shapes in blocks whose arrays stay in the cache.

    Nothing in it depends on the warps: one plan serves every smoothing and rigidity.
    """

    sums: CentredSums
    folds: Sequence[Index]
    shared: Index  # of all landmarks, those that at least two shapes have
    n_landmarks: int  # of all

    @classmethod
    def of(cls, geometry: Geometry, shapes: Shapes, folds: Sequence[Index]) -> FoldPlan:
        """Plan folds of the landmarks of shapes; the geometry are those of the shared landmarks."""
        shared = np.flatnonzero(shapes.views >= 2)
        return cls(CentredSums.of(geometry), folds, shared, shapes.n_landmarks)

    def iter_blocks(self) -> Iterator[FoldBlock]:
        """Iterate over the blocks; they are made once if what they cache is not too much."""
        if 8 * len(self.folds) * len(self.shared) ** 2 > MAX_CACHED_BYTES:
            return self._make_blocks()
        return iter(self._blocks)

    @cached_property
    def _blocks(self) -> list[FoldBlock]:
        return list(self._make_blocks())

    def _make_blocks(self) -> Iterator[FoldBlock]:
        n, m, d = self.sums.geometry.centred.shape
        positions = np.full(self.n_landmarks, -1)
        positions[self.shared] = np.arange(m)
        by_size: dict[int, list[tuple[int, Index]]] = {}
        for number, fold in enumerate(self.folds):
            landmarks = positions[fold]
            landmarks = landmarks[landmarks >= 0]
            by_size.setdefault(len(landmarks), []).append((number, landmarks))
        by_size.pop(0, None)  # all of their landmarks are such that only one shape has
        for size, pairs in by_size.items():
            n_bytes = 8 * m * (2 * n * size + min(m, n * d))
            step = max(1, BLOCK_BYTES // n_bytes)
            if (
                m > DEFAULT.dense_landmarks
            ):  # P is not formed: what is large is U, read once a block
                step = max(1, min(MAX_LARGE_FOLDS, MAX_CACHED_BYTES // (8 * n * size * m)))
            for first in range(0, len(pairs), step):
                block = pairs[first : first + step]
                landmarks = np.stack([landmarks for _, landmarks in block])
                is_remaining = np.ones((len(block), m), dtype=bool)
                np.put_along_axis(is_remaining, landmarks, False, axis=1)
                remaining = np.nonzero(is_remaining)[1].reshape(len(block), -1)
                numbers = np.array([number for number, _ in block])
                yield FoldBlock(numbers, FoldSums.of(self.sums, landmarks, remaining))


@dataclass(frozen=True, eq=False)
class ReducedFolds(Stack):
    """A block of folds, and the residual forms of the shapes without their landmarks."""

    block: FoldBlock
    forms: LeftOutForms | LeftOutFeatures  # (g, …)

    @property
    def remaining(self) -> Index:
        """(g, m'): the landmarks that remain."""
        return self.block.sums.remaining

    def pose(self, full: Array, references: Array, predicted: Array) -> tuple[Array, Array]:
        """Move predictions (g, n, N, d) and the references of the folds onto the full one."""
        g, n, size, d = predicted.shape
        points = np.concatenate([predicted.reshape(g, n * size, d), references], axis=1)
        moved = move_to_full_pose(full[self.remaining], references, points[:, None])[:, 0]
        return moved[:, : n * size].reshape(predicted.shape), moved[:, n * size :]


@dataclass(frozen=True, eq=False)
class FoldPredictions:
    """What the folds of a block predict, posed like the alignment of all landmarks."""

    predicted: Array  # (g, n, N, d)
    references: Array  # (g, m', d)
    findings: Sequence[tuple[Finding, ...]]  # of each fold


def get_deformable(problem: DeformableProblem | ElasticProblem) -> DeformableProblem:
    """Return the deformable part of a problem: shapes with warps eliminated, without anchors."""
    return problem.deformable if isinstance(problem, ElasticProblem) else problem


def predict_folds(
    problem: DeformableProblem | ElasticProblem,
    positions: Sequence[Position],
    plan: FoldPlan,
    steps: Steps,
) -> list[list[LeftOut]]:
    """Predict the landmarks of every fold, at every position of the dial.

    Parameters
    ----------
    problem : DeformableProblem or ElasticProblem
        With the warps of all shapes eliminated.
    positions : sequence of (Dial or None, Alignment)
        Where on the dial, and the alignment of all landmarks there.
    plan : FoldPlan
        The folds.
    steps : Steps
        Counts the folds that are done.

    Returns
    -------
    list of list of LeftOut
        Of every position, one for each fold.
    """
    outcomes: list[dict[int, LeftOut]] = [{} for _ in positions]
    references: list[dict[int, Array]] = [{} for _ in positions]
    with one_blas_thread():
        reduction = _Reduction(get_deformable(problem))
        for block in plan.iter_blocks():
            errors, folds = reduction.leave_out(block)
            for number, (dial, full) in enumerate(positions):
                outcomes[number] |= errors
                if folds is not None:
                    reference = full.reference[plan.shared]
                    if isinstance(problem, ElasticProblem) and dial and dial.firmness > 0.0:
                        made = predict_elastic(problem, reduction, folds, reference, dial)
                    else:  # the soft end of the dial has the mean size of all of it
                        spectra = _find_axes(reduction, folds)
                        is_elastic = isinstance(problem, ElasticProblem)
                        made = _predict_with_axes(
                            reduction, folds, spectra, None, reference, at_mean_size=is_elastic
                        )
                    for i, fold in enumerate(folds.block.numbers.tolist()):
                        outcomes[number][fold] = LeftOut(made.predicted[i], made.findings[i])
                        references[number][fold] = made.references[i]
                steps.advance(len(block.numbers))
    return [
        [
            _add_lone_landmarks(own_outcomes.get(i), own_references.get(i), full, plan.shared, fold)
            for i, fold in enumerate(plan.folds)
        ]
        for (_, full), own_outcomes, own_references in zip(
            positions, outcomes, references, strict=True
        )
    ]


def find_impossible_folds(
    problem: DeformableProblem | ElasticProblem, plan: FoldPlan
) -> dict[int, LeftOut]:
    """Return the folds, by number, without which shapes fall apart or a warp is open."""
    reduction = _Reduction(get_deformable(problem))
    impossible: dict[int, LeftOut] = {}
    with one_blas_thread():
        for block in plan.iter_blocks():
            impossible |= reduction.leave_out(block)[0]
    return impossible


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
    def inverse(self) -> Preconditioner:
        """An approximation of P⁻¹."""
        return self.problem.cost.preconditioner()

    @property
    def weights(self) -> Array:
        """(n, m): Γ."""
        geometry = self.problem.local.geometry
        return np.asarray(
            geometry.visible if geometry.weights is None else geometry.weights, dtype=np.float64
        )

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
        lifts = method.centering in (SoftCentering(), ExactCentering())
        is_free = np.abs(self.problem.fit.translation).max() < FREE * cost.norm
        can_hold = has_metric and lifts and is_free and FeatureSpace.can_hold(cost)
        return FeatureSpace(cost, self.weights) if can_hold else None

    @cached_property
    def start(self) -> Array:
        """(m, k + 1): the axes of all landmarks and the next one, near those of every fold."""
        spectrum = self.problem.fit.spectrum
        return np.column_stack([spectrum.axes, spectrum.next_vector])

    def leave_out(self, block: FoldBlock) -> tuple[dict[int, LeftOut], ReducedFolds | None]:
        """Leave folds out of every shape; return those that cannot be with the reason, by number.

        The others are None where there are none.
        """
        landmarks, remaining = block.sums.landmarks, block.sums.remaining
        visible, cost = self.problem.local.visible, self.problem.cost
        size = landmarks.shape[1]
        forms: LeftOutForms | LeftOutFeatures
        if self.matrix is None:
            forms = leave_out_features(cost, self.weights, landmarks, remaining)
        else:
            rows = cost.residual_rows(landmarks.ravel()).reshape(len(visible), *landmarks.shape, -1)
            is_visible = np.moveaxis(visible[:, landmarks], 1, 0)
            forms = leave_out(np.moveaxis(rows, 1, 0), is_visible, landmarks, remaining)
        errors: dict[int, LeftOut] = {}
        is_possible = np.ones(len(landmarks), dtype=bool)
        # whichever landmarks are left out, shapes that share so many more stay linked
        n_needed = self.problem.local.n_dims + 1 + size
        groups = group_shapes(visible, lambda shared: shared.sum(axis=1) >= n_needed)
        may_fall_apart = len(groups) > 1
        for i in np.flatnonzero(forms.singular.any(axis=1) | may_fall_apart):
            try:
                self._check(remaining[i], forms.singular[i])
            except DefgpaError as error:
                nothing = np.full((len(visible), size, self.problem.local.n_dims), np.nan)
                errors[int(block.numbers[i])] = LeftOut(nothing, error=error)
                is_possible[i] = False
        if not is_possible.any():
            return errors, None
        folds = ReducedFolds(block, forms)
        return errors, folds if is_possible.all() else folds[is_possible]

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

    def make_cost(self, folds: ReducedFolds, number: int) -> LeftOutCost | LeftOutProducts:
        """Make the cost of one fold."""
        if isinstance(folds.forms, LeftOutFeatures):
            return LeftOutProducts.of(folds.forms, number, self.inverse)
        assert self.matrix is not None
        remaining, forms = folds.remaining[number], folds.forms[number]
        return LeftOutCost.of(self.problem.cost, remaining, forms, self.matrix)

    def restrict(self, remaining: Index) -> LocalShapes:
        """Return the shapes on the landmarks that remain."""
        local = self.problem.local
        geometry = local.geometry
        points = np.where(
            geometry.visible[:, remaining, None], geometry.points[:, remaining], np.nan
        )
        weights = None if geometry.weights is None else geometry.weights[:, remaining]
        restricted = measure_geometry(points, geometry.visible[:, remaining], weights)
        restricted = restricted.project_to_planes()
        return replace(
            local,
            geometry=restricted,
            landmarks=[local.landmarks[int(j)] for j in remaining],
            visible=restricted.visible,
            rank=int(restricted.ranks.max()),
        )


def _predict_with_axes(
    reduction: _Reduction,
    folds: ReducedFolds,
    spectra: Sequence[Spectrum],
    n_agreed: Index | None,
    reference: Array,
    at_mean_size: bool,
) -> FoldPredictions:
    """Predict the landmarks of folds whose axes are found, those with equally many in one call.

    ``n_agreed`` (g,) is how many of them were added by agreement; None: none yet, but some may be.
    """
    n_axes = np.array([spectrum.n_axes for spectrum in spectra])
    kinds = np.column_stack([n_axes, np.zeros_like(n_axes) if n_agreed is None else n_agreed])
    if (kinds == kinds[0]).all():
        count = None if n_agreed is None else int(n_agreed[0])
        return _predict_with_equal_axes(reduction, folds, spectra, count, reference, at_mean_size)
    is_kind = (kinds == np.unique(kinds, axis=0)[:, None]).all(axis=2)
    groups = [np.flatnonzero(row) for row in is_kind]
    made = [
        _predict_with_axes(
            reduction,
            folds[group],
            [spectra[i] for i in group.tolist()],
            None if n_agreed is None else n_agreed[group],
            reference,
            at_mean_size,
        )
        for group in groups
    ]
    order = np.argsort(np.concatenate(groups), kind="stable")
    findings = [finding for predictions in made for finding in predictions.findings]
    return FoldPredictions(
        np.concatenate([predictions.predicted for predictions in made])[order],
        np.concatenate([predictions.references for predictions in made])[order],
        [findings[i] for i in order],
    )


def _find_axes(reduction: _Reduction, folds: ReducedFolds) -> list[Spectrum]:
    """Find the axes of the reference of every fold; the small matrices of all in one call."""
    problem = reduction.problem
    method, rank, visible = problem.method, problem.local.rank, problem.local.visible
    by_lapack = method.solver is None or type(method.solver) is Dense
    is_stackable = type(method.centering) in (SoftCentering, ExactCentering)
    if reduction.matrix is not None and by_lapack and is_stackable:
        assert isinstance(folds.forms, LeftOutForms)
        spectra = []
        for first in range(0, len(folds.remaining), MAX_DENSE_FOLDS):
            chosen = slice(first, first + MAX_DENSE_FOLDS)
            remaining, forms = folds.remaining[chosen], folds.forms[chosen]
            reduced = LeftOutCost.of(problem.cost, remaining, forms, reduction.matrix)
            spectra += find_dense_axes(reduced, method, min(rank, remaining.shape[1] - 1))
    elif reduction.features is not None:
        assert isinstance(folds.forms, LeftOutFeatures)
        solver = method.solver if isinstance(method.solver, Iterative) else Iterative()
        spectra = reduction.features.find_axes(folds.forms, rank, solver)
        totals = problem.cost.totals
        if (totals != totals[0]).any():
            spectra = restore_axes(
                spectra, np.sqrt(totals / problem.cost.n_shapes)[folds.remaining]
            )
    else:
        costs = (reduction.make_cost(folds, i) for i in range(len(folds.remaining)))
        return [
            find_reference_axes(
                cost, visible[:, cost.remaining], rank, method, reduction.start[cost.remaining]
            )
            for cost in costs
        ]
    if visible.all():
        return spectra  # axes are free only where landmarks are missing
    limit = method.tuning.free_value * problem.cost.n_shapes
    for i, spectrum in enumerate(spectra):
        if spectrum.next_value < limit:
            cost = reduction.make_cost(folds, i)
            spectra[i] = add_free_axes(spectrum, cost, visible[:, cost.remaining], rank, method)
    return spectra


def _predict_with_equal_axes(
    reduction: _Reduction,
    folds: ReducedFolds,
    spectra: Sequence[Spectrum],
    n_agreed: int | None,
    reference: Array,
    at_mean_size: bool,
) -> FoldPredictions:
    """Predict the landmarks of folds whose references are made of equally many axes."""
    axes = np.stack([spectrum.axes for spectrum in spectra])
    moments = folds.block.sums.moments(axes)
    proportions, votes = _choose_proportions(reduction, folds, axes, moments, reference)
    if n_agreed is None:
        wider = _add_agreed_axes(reduction, folds, spectra, proportions)
        counts = np.array([spectrum.n_axes for spectrum in wider]) - axes.shape[-1]
        if counts.any():
            return _predict_with_axes(reduction, folds, wider, counts, reference, at_mean_size)
    references = axes @ proportions.matrix
    if at_mean_size:
        references = scale_to_mean_size(Anchors(folds.block.sums, votes), references)
    return FoldPredictions(
        *folds.pose(reference, references, folds.forms.predict(references)),
        _check_folds(reduction, folds, spectra, n_agreed or 0, proportions, references, votes),
    )


def _add_agreed_axes(
    reduction: _Reduction,
    folds: ReducedFolds,
    spectra: Sequence[Spectrum],
    proportions: Proportions,
) -> Sequence[Spectrum]:
    """Add axes that the shapes agree on, in every fold as in a fit of its own."""
    method, rank = reduction.problem.method, reduction.problem.local.rank
    if not method.by_rigidity or spectra[0].n_axes > rank:
        return spectra
    values = np.stack([spectrum.values for spectrum in spectra])
    if values.shape[1] <= rank:
        return spectra
    n_shapes = reduction.problem.cost.n_shapes
    limits = compute_rival_limit(values, proportions.matrix, rank, n_shapes, method.tuning)
    wider = list(spectra)
    has_rivals = (values[:, rank] < limits) & proportions.determined
    for i in np.flatnonzero(has_rivals).tolist():
        remaining, cost = folds.remaining[i], reduction.make_cost(folds, i)
        wider[i] = add_agreed_axes(
            spectra[i],
            proportions.matrix[i],
            reduction.restrict(remaining),
            cost,
            method,
            reduction.start[remaining],
        )
    return wider


def _choose_proportions(
    reduction: _Reduction, folds: ReducedFolds, axes: Array, moments: Moments, reference: Array
) -> tuple[Proportions, Index]:
    """Choose A of every fold, and tell the side (g, n) each shape is on.

    By rigidity, from the A of all landmarks and the sides they tell, where what remains of every
    shape is on the same side; from a closed form elsewhere.
    """
    method, votes = reduction.problem.method, reduction.problem.fit.diagnostics.votes
    n_axes, n_dims = moments.cross.shape[-2:]
    if not method.by_rigidity:
        made = method.proportions
        matrices = [
            reduction.restrict(remaining).prior() if isinstance(made, str) else np.asarray(made)
            for remaining in folds.remaining
        ]
        stack = np.stack([pair_with_axes(matrix, n_axes) for matrix in matrices])
        return _turn_to_majority(judge_proportions(moments, stack), moments)
    if n_axes == n_dims:
        side = np.where(votes < 0, -1.0, 1.0)
        start = axes.mT @ reference[folds.remaining]
        proportions = fit_proportions_on_sides(
            moments, start, np.broadcast_to(side, moments.square.shape), method.tuning.max_rounds
        )
        towards = np.linalg.det(moments.cross.mT @ proportions.matrix[..., None, :, :])
        if (towards * side > 0.0).all() and proportions.determined.all():
            return proportions, np.broadcast_to(votes, moments.square.shape)
    proportions = fit_rigid_proportions(moments, method.tuning.max_rounds)
    if n_axes > n_dims:
        proportions = measure_firmness(moments, proportions)
    for number in np.flatnonzero(~proportions.determined):
        prior = reduction.restrict(folds.remaining[number]).prior()
        proportions.matrix[number] = pair_with_axes(prior, n_axes)
    return _turn_to_majority(proportions, moments)


def _turn_to_majority(proportions: Proportions, moments: Moments) -> tuple[Proportions, Index]:
    """Mirror A where most shapes are on its other side, and tell the side (g, n) of each."""
    sides = find_sides(moments, proportions.matrix)
    matrix = np.array(proportions.matrix)
    matrix[..., 0] *= sides.majority[:, None]
    return replace(proportions, matrix=matrix), sides.votes * sides.majority[:, None]


def _check_folds(
    reduction: _Reduction,
    folds: ReducedFolds,
    spectra: Sequence[Spectrum],
    n_agreed: int,
    proportions: Proportions,
    references: Array,
    votes: Index,
) -> list[tuple[Finding, ...]]:
    """Return the findings of every fold; few need diagnostics of their own."""
    problem = reduction.problem
    tuning, rule = problem.method.tuning, problem.method.proportions
    offsets = np.linalg.norm(references.mean(axis=1), axis=1)
    extents = np.abs(references).max(axis=(1, 2))
    is_off_centre = offsets > tuning.off_centre * extents
    doubtful = is_off_centre | (votes < 0).any(axis=1)
    axes = np.stack([spectrum.axes for spectrum in spectra])
    directions = find_reference_directions(axes, references, problem.local.rank)
    doubtful |= _find_doubtful_folds(problem, spectra, directions, n_agreed, proportions)
    findings: list[tuple[Finding, ...]] = [()] * len(spectra)
    for i in np.flatnonzero(doubtful).tolist():
        spectrum, remaining = spectra[i], folds.remaining[i]
        visible = problem.local.visible[:, remaining]
        count = problem.local.n_dims * visible.sum()
        ones = np.ones((len(remaining), 1))
        charge = reduction.make_cost(folds, i).multiply(ones) if is_off_centre[i] else 0.0
        facts = SpectralDiagnostics(
            spectrum=spectrum.values,
            gap=spectrum.gap,
            cohesion=compute_cohesion(
                spectrum.axes, spectrum.next_vector, visible, problem.local.rank
            ),
            translation_cost=float(np.linalg.norm(charge)),
            offset=float(offsets[i]),
            extent=float(extents[i]),
            votes=votes[i],
            condition=problem.cost.condition,
            free_directions=problem.cost.rank_deficiency,
            residuals=spectrum.residuals,
            converged=spectrum.converged,
            excess=0.0,
            similarity_residual=float(proportions.residual[i]),
            looseness=float(compute_looseness(proportions, count)[i]),
            proportions_converged=bool(proportions.converged[i]),
            proportions_determined=bool(proportions.determined[i]),
            proportions=rule if isinstance(rule, str) else "given",
            n_dims=problem.local.n_dims,
            rounds=proportions.rounds,
            method=spectrum.method,
            storage=problem.cost.storage,
            n_products=spectrum.n_products,
            n_agreed_axes=n_agreed,
        )
        labels = [problem.local.landmarks[int(j)] for j in remaining]
        findings[i] = tuple(
            check_solution(facts, directions[i], problem.local.names, labels, tuning)
        )
    return findings


def _find_doubtful_folds(
    problem: DeformableProblem,
    spectra: Sequence[Spectrum],
    directions: Array,
    n_agreed: int,
    proportions: Proportions,
) -> Mask:
    """Find the folds (g,) in which ``check_solution`` may have something to report.

    ``directions`` (g, m, d) are those that the references are made of.
    The other folds, nearly always all of them, need no diagnostics of their own.
    """
    tuning = problem.method.tuning
    values = np.stack([spectrum.values for spectrum in spectra])
    k, n_carriers = spectra[0].n_axes, directions.shape[2] + 1
    if (
        k - n_agreed > problem.local.n_dims
        or values.shape[1] <= k
        or problem.cost.rank_deficiency.any()
    ):
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
    few = n_carriers * np.square(directions).max(axis=(1, 2)) > tuning.handful
    sound = is_wide & (steps > rounding) & ~(few & (directions.shape[1] >= 4 * n_carriers))
    sound &= proportions.converged & proportions.determined
    sound &= proportions.residual <= tuning.large_deformation
    sound &= np.array([spectrum.converged for spectrum in spectra])
    return ~sound


def predict_elastic(
    problem: ElasticProblem,
    reduction: _Reduction,
    folds: ReducedFolds,
    reference: Array,
    dial: Dial,
) -> FoldPredictions:
    """Predict the landmarks of folds by the elastic method.

    Landmarks are left out of the free residual forms P_i; what remains of a shape is anchored
    anew, P_i' + κ Q_KQ_Kᵀ with Q_K of the landmarks K. (The anchor of all landmarks would let a
    left-out one move against the linear part of its shape at no cost but bending.) The free warp
    predicts −P_JJ⁻¹P_JK S_K; κ of its departure T from the pose is taken off, κ D̄_J T. Every shape
    is on the side on which it is as a whole.
    """
    votes = np.broadcast_to(problem.anchors.votes, folds.block.sums.squares.shape)
    assert isinstance(folds.forms, LeftOutForms)
    assert reduction.matrix is not None
    free_cost = LeftOutCost.of(
        problem.deformable.cost, folds.remaining, folds.forms, reduction.matrix
    )
    costs = free_cost.dense() + dial.firmness * folds.block.projections
    fit = fit_elastic(
        Anchors(folds.block.sums, votes),
        RootInverse.of(costs),
        (reference[folds.remaining],),
        dial,
        problem.deformable.method.tuning,
        _find_agreed_axes(reduction, free_cost),
    )
    free = folds.forms.predict(fit.reference)
    predicted = free - dial.firmness * folds.block.sums.left_out @ fit.departures
    names = problem.deformable.local.names
    return FoldPredictions(
        *folds.pose(reference, fit.reference, predicted),
        [fit.findings(names, (i,)) for i in range(len(predicted))],
    )


def _find_agreed_axes(reduction: _Reduction, cost: LeftOutCost) -> Array | None:
    """Find as many axes (g, m, k) of every fold as rigidity chose among; None if d of them."""
    problem = reduction.problem
    if not problem.fit.diagnostics.n_agreed_axes:
        return None
    spectra = find_dense_axes(cost, problem.method, problem.fit.spectrum.n_axes)
    return np.stack([spectrum.axes for spectrum in spectra])


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
    if len(shared) == full.shapes.n_landmarks:
        return outcome
    lone = ~np.isin(fold, shared)
    if outcome.error is not None or not lone.any():
        return outcome
    predicted = np.empty((len(full.shapes), len(fold), full.shapes.n_dims))
    predicted[:, ~lone] = outcome.predicted
    predicted[:, lone] = full.reference[fold[lone]]
    if reference is None:
        return LeftOut(predicted, outcome.findings)
    complete = np.array(full.reference)
    complete[np.setdiff1d(shared, fold)] = reference
    shapes = full.shapes
    for shape in np.unique(shapes.visible[:, fold[lone]].argmax(axis=0)):
        # the warp onto the reference that has the predictions in its place
        complete[fold[~lone]] = predicted[shape, ~lone]
        visible = shared[shapes.visible[shape, shared]]
        warp = full._registration.warp(shapes.points[shape, visible], complete[visible])
        predicted[shape, lone] = warp(shapes.points[shape, fold[lone]])
    return LeftOut(predicted, outcome.findings)
