"""Predict the landmarks of folds by Schur complements: no warp is fitted again.

The basis of every shape is kept, so a fold only withholds where its landmarks belong. Each fold is
a reduced cost and its bottom eigenvectors; the small algebra that follows (moments, proportions,
predictions, pose) is one call for a block of folds, and starts from the fit of all landmarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from defgpa.alignment import Alignment
from defgpa.alignment_problems import DeformableProblem, ElasticProblem
from defgpa.arrays import Array, Index, Mask, Stack, join_stacks
from defgpa.diagnostics.checks import (
    group_shapes,
    refuse_degenerate_shapes,
    require_linkage,
)
from defgpa.diagnostics.findings import Finding
from defgpa.errors import DefgpaError, DegenerateShapeError, format_names
from defgpa.geometry import Geometry, Moments, measure_geometry
from defgpa.model_selection.folds import LeftOut, Steps, move_to_full_pose
from defgpa.shapes import Shapes
from defgpa.solvers.anchored_cost import RootInverse
from defgpa.solvers.centred_sums import CentredSums, FoldSums
from defgpa.solvers.deformable import (
    LocalShapes,
    compute_rival_limit,
    count_agreed_axes,
    diagnose_reference,
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
    judge_proportions,
    measure_stability,
    pair_with_axes,
)
from defgpa.threads import one_blas_thread, split_range
from defgpa.tuning import DEFAULT

BLOCK_BYTES = (
    6 << 20
)  # of the arrays of a block of folds: more leave the cache, fewer are many calls
MAX_LARGE_FOLDS = 16  # of large shapes in a block
MAX_DENSE_FOLDS = 24  # whose P' are formed at a time: more leave the inner cache
FREE = 1e-9  # ‖P1‖ over ‖P‖: below, translations are free
MAX_CACHED_BYTES = 64 << 20  # of arrays that all amounts of smoothing share

# a fold is fitted at a position of the dial (None: by the deformable method), and its reference is
# posed like that of the alignment of all landmarks
Position = tuple[Dial | None, Alignment]


@dataclass(frozen=True, eq=False)
class FoldBlock:
    """Some folds of one size, on the landmarks that at least two shapes share."""

    numbers: Index  # (g,): of each among all folds
    sums: FoldSums


@dataclass(frozen=True, eq=False)
class FoldPlan:
    """The folds of some shapes in blocks whose arrays stay in the cache.

    Nothing in it depends on the warps: one plan serves every smoothing and rigidity.
    """

    sums: CentredSums
    folds: Sequence[Index]
    shared: Index  # of all landmarks, those that at least two shapes have
    members: Sequence[tuple[Index, Index]]  # of each block: the numbers (g,), the landmarks (g, N)
    made: dict[int, FoldBlock]  # the blocks, if they take so little memory that they are kept

    @classmethod
    def of(cls, geometry: Geometry, shapes: Shapes, folds: Sequence[Index]) -> FoldPlan:
        """Plan folds of the landmarks of shapes; the geometry is that of the shared landmarks."""
        n, m, d = geometry.centred.shape
        shared = np.flatnonzero(shapes.views >= 2)
        positions = np.full(shapes.n_landmarks, -1)
        positions[shared] = np.arange(m)
        landmarks = [positions[fold] for fold in folds]
        landmarks = [fold[fold >= 0] for fold in landmarks]
        sizes = np.array([len(fold) for fold in landmarks])
        members = []
        for size in np.unique(sizes[sizes > 0]).tolist():
            step = BLOCK_BYTES // (8 * m * (2 * n * size + min(m, n * d)))
            if m > DEFAULT.dense_landmarks:  # P is not formed: U is large, and read once a block
                step = min(MAX_LARGE_FOLDS, MAX_CACHED_BYTES // (8 * n * size * m))
            numbers = np.flatnonzero(sizes == size)
            for block in split_range(len(numbers), max(1, step)):
                chosen = numbers[block]
                members.append((chosen, np.stack([landmarks[i] for i in chosen])))
        return cls(CentredSums.of(geometry), folds, shared, members, {})

    def iter_blocks(self) -> Iterator[FoldBlock]:
        """Iterate over the blocks; they are made once if what they cache is not too much."""
        m = len(self.shared)
        for key, (numbers, landmarks) in enumerate(self.members):
            block = self.made.get(key)
            if block is None:
                is_remaining = np.ones((len(numbers), m), dtype=bool)
                np.put_along_axis(is_remaining, landmarks, False, axis=1)
                remaining = np.nonzero(is_remaining)[1].reshape(len(numbers), -1)
                block = FoldBlock(numbers, FoldSums.of(self.sums, landmarks, remaining))
                if 8 * len(self.folds) * m**2 <= MAX_CACHED_BYTES:
                    self.made[key] = block
            yield block


@dataclass(frozen=True, eq=False)
class ReducedFolds(Stack):
    """Some folds of one size, and the residual forms of the shapes without their landmarks."""

    numbers: Index  # (g,): of each among all folds
    sums: FoldSums
    remaining: Index  # (g, m'): the landmarks that remain
    forms: LeftOutForms | LeftOutFeatures  # (g, …)


@dataclass(frozen=True, eq=False)
class FoldPredictions:
    """What some folds predict, in the frames of their own references."""

    numbers: Index  # (g,): of each among all folds
    remaining: Index  # (g, m')
    predicted: Array  # (g, n, N, d)
    references: Array  # (g, m', d)
    findings: Sequence[tuple[Finding, ...]]  # of each fold

    def pose(self, full: Array) -> Iterator[tuple[int, LeftOut]]:
        """Yield the folds with their numbers, moved onto the reference (m, d) of all landmarks."""
        g, n, size, d = self.predicted.shape
        points = np.concatenate([self.predicted.reshape(g, n * size, d), self.references], axis=1)
        moved = move_to_full_pose(full[self.remaining], self.references, points[:, None])[:, 0]
        predicted, references = moved[:, : n * size].reshape(g, n, size, d), moved[:, n * size :]
        for i, number in enumerate(self.numbers.tolist()):
            yield number, LeftOut(predicted[i], self.findings[i], None, references[i])


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
    shape = len(plan.sums.geometry.points), 0, plan.sums.geometry.points.shape[-1]
    outcomes = [[LeftOut(np.empty(shape))] * len(plan.folds) for _ in positions]
    with one_blas_thread():
        deformable = problem.deformable if isinstance(problem, ElasticProblem) else problem
        reduction = _Reduction(deformable)
        for block in plan.iter_blocks():
            errors, folds = reduction.leave_out(block)
            for (dial, full), by_fold in zip(positions, outcomes, strict=True):
                for number, error in errors.items():
                    by_fold[number] = error
                reference = full.reference[plan.shared]
                batches: Iterable[FoldPredictions] = []
                if folds is not None and isinstance(problem, ElasticProblem) and dial:
                    batches = predict_elastic(problem, reduction, folds, reference, dial)
                elif folds is not None:
                    batches = predict_deformable(reduction, folds, reference)
                for predictions in batches:
                    for number, fold in predictions.pose(reference):
                        by_fold[number] = fold
                steps.advance(len(block.numbers))
    if len(plan.shared) < positions[0][1].shapes.n_landmarks:
        for (_, full), by_fold in zip(positions, outcomes, strict=True):
            for number, landmarks in enumerate(plan.folds):
                by_fold[number] = _add_lone_landmarks(by_fold[number], full, plan.shared, landmarks)
    return outcomes


def find_impossible_folds(
    problem: DeformableProblem | ElasticProblem, plan: FoldPlan
) -> dict[int, LeftOut]:
    """Return the folds, by number, without which shapes fall apart or a warp is open."""
    deformable = problem.deformable if isinstance(problem, ElasticProblem) else problem
    reduction = _Reduction(deformable)
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
                no_predictions = np.full((len(visible), size, self.problem.local.n_dims), np.nan)
                errors[int(block.numbers[i])] = LeftOut(no_predictions, error=error)
                is_possible[i] = False
        if not is_possible.any():
            return errors, None
        folds = ReducedFolds(block.numbers, block.sums, remaining, forms)
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

    def find_axes(self, folds: ReducedFolds, count: int) -> Spectrum:
        """Find the ``count`` cheapest axes of every fold.

        The small matrices of many folds are one call.
        """
        method, remaining = self.problem.method, folds.remaining
        by_lapack = method.solver is None or type(method.solver) is Dense
        is_stackable = type(method.centering) in (SoftCentering, ExactCentering)
        if self.matrix is not None and by_lapack and is_stackable:
            assert isinstance(folds.forms, LeftOutForms)
            spectra = []
            for chosen in split_range(len(remaining), MAX_DENSE_FOLDS):
                cost, forms = self.problem.cost, folds.forms[chosen]
                reduced = LeftOutCost.of(cost, remaining[chosen], forms, self.matrix)
                axes = find_cheapest_axes(reduced, method, min(count, remaining.shape[1] - 1))
                spectra.append(replace(axes, mixing=None))
            return join_stacks(spectra)
        if self.features is not None:
            assert isinstance(folds.forms, LeftOutFeatures)
            solver = method.solver if isinstance(method.solver, Iterative) else Iterative()
            spectrum, totals = (
                self.features.find_axes(folds.forms, count, solver),
                self.problem.cost.totals,
            )
            if (totals == totals[0]).all():
                return spectrum
            return restore_axes(spectrum, np.sqrt(totals / self.problem.cost.n_shapes)[remaining])
        return stack_spectra(
            [
                find_cheapest_axes(
                    self.make_cost(folds, i), method, count, self.start[remaining[i]]
                )
                for i in range(len(remaining))
            ]
        )

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


def predict_deformable(
    reduction: _Reduction, folds: ReducedFolds, reference: Array, at_mean_size: bool = False
) -> Iterator[FoldPredictions]:
    """Predict the landmarks of folds by the deformable method.

    Those with equally many axes are one call. ``reference`` (m, d) is that of all landmarks.
    """
    for group, spectrum in _find_axes(reduction, folds):
        proportions, votes = _choose_proportions(reduction, group, spectrum, reference)
        for members, spectra in _add_agreed_axes(reduction, group, spectrum, proportions):
            n_agreed = spectra.n_axes - spectrum.n_axes
            if members is not group:
                proportions, votes = _choose_proportions(
                    reduction, members, spectra, reference, n_agreed
                )
            references = spectra.axes @ proportions.matrix
            if at_mean_size:
                references = scale_to_mean_size(Anchors(members.sums, votes), references)
            yield FoldPredictions(
                members.numbers,
                members.remaining,
                members.forms.predict(references),
                references,
                _check_folds(reduction, members, spectra, n_agreed, proportions, references, votes),
            )


def _find_axes(reduction: _Reduction, folds: ReducedFolds) -> list[tuple[ReducedFolds, Spectrum]]:
    """Find the axes of the reference of every fold; folds with equally many are together."""
    problem = reduction.problem
    method, rank, visible = problem.method, problem.local.rank, problem.local.visible
    spectrum = reduction.find_axes(folds, rank)
    # axes are free only where landmarks are missing
    is_free = spectrum.next_value < method.tuning.free_value * problem.cost.n_shapes
    if visible.all() or not is_free.any():
        return [(folds, spectrum)]
    fold_spectra = [spectrum[i] for i in range(len(folds.remaining))]
    for i in np.flatnonzero(is_free).tolist():
        cost = reduction.make_cost(folds, i)
        fold_spectra[i] = add_free_axes(
            fold_spectra[i], cost, visible[:, cost.remaining], rank, method
        )
    counts = np.array([some.n_axes for some in fold_spectra])
    groups = [np.flatnonzero(counts == count) for count in np.unique(counts)]
    return [
        (folds[group], stack_spectra([fold_spectra[i] for i in group.tolist()])) for group in groups
    ]


def _add_agreed_axes(
    reduction: _Reduction, folds: ReducedFolds, spectrum: Spectrum, proportions: Proportions
) -> list[tuple[ReducedFolds, Spectrum]]:
    """Add axes that the shapes agree on, in every fold as in a fit of its own.

    Folds with equally many axes are together.
    """
    problem = reduction.problem
    method, rank, tuning = problem.method, problem.local.rank, problem.method.tuning
    if not method.by_rigidity or spectrum.n_axes > rank or spectrum.values.shape[1] <= rank:
        return [(folds, spectrum)]
    limits = compute_rival_limit(
        spectrum.values, proportions.matrix, rank, problem.cost.n_shapes, tuning
    )
    rivals = np.flatnonzero((spectrum.next_value < limits) & proportions.determined)
    contested, limits, wide = folds[rivals], limits[rivals], spectrum[rivals]
    max_axes, n_wanted = min(tuning.max_axes, folds.remaining.shape[1] - 2), rank
    while n_wanted < max_axes and (wide.next_value < limits).any():
        n_wanted = min(2 * n_wanted + 1, max_axes)
        wide = reduction.find_axes(contested, n_wanted)
    n_rivals = (wide.values[:, : wide.n_axes] < limits[:, None]).sum(axis=1)
    n_axes = np.full(len(folds.remaining), rank)
    for count in np.unique(n_rivals[n_rivals > rank]).tolist():
        group = np.flatnonzero(n_rivals == count)
        moments = contested.sums[group].moments(wide.axes[group, :, :count])
        n_axes[rivals[group]] = count_agreed_axes(moments, rank, tuning)
    if (n_axes == rank).all():
        return [(folds, spectrum)]
    narrow = np.flatnonzero(n_axes == rank)
    groups = [(folds[narrow], spectrum[narrow])] if len(narrow) else []
    for count in np.unique(n_axes[n_axes > rank]).tolist():
        group = np.flatnonzero(n_axes[rivals] == count)
        groups.append((contested[group], wide[group].truncate(count)))
    return groups


def _choose_proportions(
    reduction: _Reduction,
    folds: ReducedFolds,
    spectrum: Spectrum,
    reference: Array,
    n_agreed: int = 0,
) -> tuple[Proportions, Index]:
    """Choose A of every fold, and tell the side (g, n) each shape is on.

    By rigidity, from the A of all landmarks and the sides they tell, where what remains of every
    shape is on the same side; from a closed form elsewhere.
    """
    method, votes = reduction.problem.method, reduction.problem.fit.diagnostics.votes
    moments = folds.sums.moments(spectrum.axes)
    n_axes, n_dims = moments.cross.shape[-2:]
    if not method.by_rigidity:
        setting = method.proportions
        matrices = [
            reduction.restrict(remaining).prior()
            if isinstance(setting, str)
            else np.asarray(setting)
            for remaining in folds.remaining
        ]
        stack = np.stack([pair_with_axes(matrix, n_axes) for matrix in matrices])
        return _turn_to_majority(judge_proportions(moments, stack), moments)
    if n_axes == n_dims:
        side = np.where(votes < 0, -1.0, 1.0)
        start = spectrum.axes.mT @ reference[folds.remaining]
        proportions = fit_proportions_on_sides(
            moments, start, np.broadcast_to(side, moments.square.shape), method.tuning.max_rounds
        )
        determinants = np.linalg.det(moments.cross.mT @ proportions.matrix[..., None, :, :])
        if (determinants * side > 0.0).all() and proportions.determined.all():
            return proportions, np.broadcast_to(votes, moments.square.shape)
    proportions = fit_rigid_proportions(moments, method.tuning.max_rounds)
    if n_axes - n_agreed > n_dims:  # parts may move against each other
        proportions = measure_stability(moments, proportions)
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
    spectrum: Spectrum,
    n_agreed: int,
    proportions: Proportions,
    references: Array,
    votes: Index,
) -> list[tuple[Finding, ...]]:
    """Return the findings of every fold; few need diagnostics of their own."""
    problem = reduction.problem
    local, tuning = problem.local, problem.method.tuning
    offsets = np.linalg.norm(references.mean(axis=1), axis=1)
    is_off_centre = offsets > tuning.off_centre * np.abs(references).max(axis=(1, 2))
    is_doubtful = is_off_centre | (votes < 0).any(axis=1)
    is_doubtful |= _find_doubtful_folds(problem, spectrum, references, n_agreed, proportions)
    findings: list[tuple[Finding, ...]] = [()] * len(references)
    for i in np.flatnonzero(is_doubtful).tolist():
        remaining = folds.remaining[i]
        restricted = replace(
            local,
            landmarks=[local.landmarks[int(j)] for j in remaining],
            visible=local.visible[:, remaining],
        )
        translation = np.zeros(len(remaining))
        if is_off_centre[i]:
            translation = reduction.make_cost(folds, i).multiply(translation[:, None] + 1.0)
        _, findings[i] = diagnose_reference(
            restricted,
            problem.cost,
            problem.method,
            spectrum[i],
            proportions[i],
            references[i],
            votes[i],
            translation,
            0.0,
            n_agreed,
        )
    return findings


def _find_doubtful_folds(
    problem: DeformableProblem,
    spectrum: Spectrum,
    references: Array,
    n_agreed: int,
    proportions: Proportions,
) -> Mask:
    """Find the folds (g,) in which ``check_solution`` may have something to report.

    ``references`` are (g, m, d). The other folds, nearly always all of them, need no diagnostics
    of their own.
    """
    tuning = problem.method.tuning
    values, k = spectrum.values, spectrum.n_axes
    directions = find_reference_directions(spectrum.axes, references, problem.local.rank)
    n_carriers = directions.shape[2] + 1
    if (
        k - n_agreed > problem.local.n_dims
        or values.shape[1] <= k
        or problem.cost.rank_deficiency.any()
    ):
        return np.ones(len(values), dtype=bool)
    eps = np.finfo(np.float64).eps
    steps = values[:, k] - values[:, k - 1]
    is_wide = steps > tuning.narrow_gap * values[:, k]
    if not problem.local.visible.all():  # or parts may hang together by a hinge
        is_wide &= steps >= tuning.firm_gap * values[:, k]
    rounding = max(
        1e3 * eps * problem.cost.n_shapes,
        eps * np.sqrt(problem.cost.condition.max()) / tuning.gap_rounding,
    )
    is_carried_by_few = n_carriers * np.square(directions).max(axis=(1, 2)) > tuning.carried_share
    is_sound = (
        is_wide
        & (steps > rounding)
        & ~(is_carried_by_few & (directions.shape[1] >= 4 * n_carriers))
    )
    is_sound &= proportions.converged & proportions.determined
    is_sound &= proportions.residual <= tuning.large_deformation
    return ~(is_sound & spectrum.converged)


def predict_elastic(
    problem: ElasticProblem,
    reduction: _Reduction,
    folds: ReducedFolds,
    reference: Array,
    dial: Dial,
) -> Iterator[FoldPredictions]:
    """Predict the landmarks of folds by the elastic method.

    Landmarks are left out of the free residual forms P_i; what remains of a shape is anchored
    anew, P_i' + κ Q_KQ_Kᵀ with Q_K of the landmarks K. (The anchor of all landmarks would let a
    left-out one move against the linear part of its shape at no cost but bending.) The free warp
    predicts −P_JJ⁻¹P_JK S_K; κ of its departure T from the pose is taken off, κ D̄_J T. Every shape
    is on the side on which it is as a whole.
    """
    if dial.firmness == 0.0:  # the soft end of the dial has the mean size of all of it
        yield from predict_deformable(reduction, folds, reference, at_mean_size=True)
        return
    votes = np.broadcast_to(problem.anchors.votes, folds.sums.squares.shape)
    assert isinstance(folds.forms, LeftOutForms)
    assert reduction.matrix is not None
    free_cost = LeftOutCost.of(
        problem.deformable.cost, folds.remaining, folds.forms, reduction.matrix
    )
    costs = free_cost.dense() + dial.firmness * folds.sums.projections
    fit = fit_elastic(
        Anchors(folds.sums, votes),
        RootInverse.of(costs),
        (reference[folds.remaining],),
        dial,
        problem.deformable.method.tuning,
        _find_agreed_axes(reduction, free_cost),
    )
    free = folds.forms.predict(fit.reference)
    predicted = free - dial.firmness * folds.sums.left_out @ fit.departures
    names = problem.deformable.local.names
    yield FoldPredictions(
        folds.numbers,
        folds.remaining,
        predicted,
        fit.reference,
        [fit.findings(names, (i,)) for i in range(len(predicted))],
    )


def _find_agreed_axes(reduction: _Reduction, cost: LeftOutCost) -> Array | None:
    """Find axes (g, m, k) of every fold, as many as the full fit has; None if it has d of them."""
    problem = reduction.problem
    if not problem.fit.diagnostics.n_agreed_axes:
        return None
    return find_cheapest_axes(cost, problem.method, problem.fit.spectrum.n_axes).axes


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
        warp = full._registration.warp(shapes.points[shape, visible], complete[visible])
        predicted[shape, lone] = warp(shapes.points[shape, fold[lone]])
    return replace(outcome, predicted=predicted)
