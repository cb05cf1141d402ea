r"""How well landmarks are predicted by those around them: the honest figure.

A fold of landmarks is left out of every shape and everything is estimated without it; each
shape's warp then predicts where its own left-out landmarks belong in the reference. Fitting
more closely lowers the residuals always, this error only while it is signal that is fitted.
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from defgpa.alignment import Alignment, apply_warps, average
from defgpa.alignment_problems import DeformableProblem
from defgpa.arrays import Array, Index, Progress, freeze
from defgpa.diagnostics.findings import Finding, Problem, warn_about
from defgpa.diagnostics.rejection import REJECTION_PROBLEMS
from defgpa.errors import DefgpaError, DefgpaWarning, format_names
from defgpa.estimators import AlignmentEstimator, DefGPA, ElasticGPA, weigh_shapes
from defgpa.model_selection.fold_predictions import (
    FoldPlan,
    LeftOut,
    find_impossible_folds,
    move_to_full_pose,
    predict_folds,
)
from defgpa.model_selection.parallel import run_in_parallel
from defgpa.shapes import Shapes, ShapesLike, as_shapes
from defgpa.tuning import DEFAULT
from defgpa.warps import WarpFamily

_S = TypeVar("_S", bound=ShapesLike)


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Predictions of every landmark by an alignment that was fitted without it; immutable.

    Attributes
    ----------
    predicted : array (n, m, d)
        Where each shape's warp puts each of its landmarks when the fold of that landmark is left
        out, in the frame of ``reference``; NaN where a shape lacks it.
    alignment : Alignment
        That of all landmarks.
    folds : tuple of arrays
        The landmarks (0-based) of each fold.
    fold_size : int
        Landmarks in a fold (the last may have fewer).
    findings : tuple of tuples of Finding
        For each fold, what its fit found and the full fit did not.
    refitted : bool
        Whether every fold was fitted from scratch; otherwise each shape kept its basis, and the
        landmarks were left out of its residual form.

    See Also
    --------
    cross_validate : makes it.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> base = np.random.default_rng(0).normal(size=(30, 2)) * [3, 2]
    >>> shapes = [base + 0.1 * np.sin(base[:, ::-1] + phase) for phase in range(6)]
    >>> cv = defgpa.cross_validate(defgpa.DefGPA(defgpa.Affine()), shapes, fold_size=5)
    >>> cv.per_shape.shape, cv.per_landmark.shape, len(cv.folds)
    ((6,), (30,), 6)
    >>> bool(np.isclose(cv.error, np.sqrt(np.mean(cv.per_shape**2))))  # nothing is missing
    True
    """

    predicted: Array
    alignment: Alignment
    folds: tuple[Index, ...]
    fold_size: int
    findings: tuple[tuple[Finding, ...], ...]
    refitted: bool = False

    @property
    def reference(self) -> Array:
        """(m, d): the reference of all landmarks, the truth the predictions are held against."""
        return self.alignment.reference

    @cached_property
    def distances(self) -> Array:
        """(n, m): from each prediction to the reference; NaN where a landmark is missing."""
        return freeze(np.linalg.norm(self.predicted - self.alignment.reference, axis=2))

    @cached_property
    def error(self) -> float:
        """CVE = √(Σ γ ‖predicted − S‖² / Σ γ) over the counted landmarks of all shapes."""
        counted = self.alignment.counted  # landmarks that at least two shapes have
        weights = self.alignment.shapes.unequal_weights
        return float(np.sqrt(average(self.distances[counted] ** 2, weights, counted)))

    @cached_property
    def per_shape(self) -> Array:
        """(n,): the same over the landmarks of each shape."""
        return self._compute_rms(axis=1)

    @cached_property
    def per_landmark(self) -> Array:
        """(m,): the same over the shapes that have a landmark; NaN if only one does."""
        return self._compute_rms(axis=0)

    @property
    def fold_finding(self) -> Finding | None:
        """Findings of folds, not of the full fit: how often, and the first of each problem.

        None if they found nothing.
        """
        first: dict[Problem, Finding] = {}
        count: Counter[Problem] = Counter()
        for fold, findings in zip(self.folds, self.findings, strict=True):
            labels = tuple(self.alignment.shapes.landmarks[j] for j in fold)
            for finding in findings:
                count[finding.problem] += 1
                in_fold = Finding(Problem.IN_FOLDS, landmarks=labels, parts=(finding,))
                first.setdefault(finding.problem, in_fold)
        if not first:
            return None
        parts = tuple(replace(f, values={"folds": count[kind]}) for kind, f in first.items())
        figures = {"folds": sum(map(bool, self.findings)), "of": len(self.folds)}
        return Finding(Problem.IN_FOLDS, values=figures, parts=parts)

    @cached_property
    def standard_error(self) -> float:
        """The standard error of the CVE, as if the landmarks were a random sample of many."""
        squares = self.per_landmark[~np.isnan(self.per_landmark)] ** 2
        # d√x = dx / 2√x
        spread = np.std(squares, ddof=1) / np.sqrt(len(squares)) if len(squares) > 1 else 0.0
        return float(spread / (2.0 * self.error)) if self.error > 0.0 else 0.0

    def _compute_rms(self, axis: int) -> Array:
        weights = self.alignment.shapes.unequal_weights
        counted = self.alignment.counted
        masses = counted if weights is None else np.where(counted, weights, 0.0)
        squares = np.where(counted, self.distances, 0.0) ** 2
        with np.errstate(invalid="ignore"):
            return freeze(np.sqrt((masses * squares).sum(axis=axis) / masses.sum(axis=axis)))

    def __repr__(self) -> str:
        return f"CrossValidation(error={self.error:.6g}, {len(self.folds)} folds)"


def cross_validate(
    estimator: Any,
    shapes: ShapesLike,
    fold_size: int = 1,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    refit: bool = False,
) -> CrossValidation:
    r"""Compute the cross-validation error (CVE) of an estimator on shapes.

    The landmarks are split into folds of ``fold_size`` consecutive ones. Each fold in turn is
    left out of all shapes, and the warp of each shape predicts the landmarks of the fold that are
    visible in it. The predictions are moved with the fold's reference onto the full one
    (R ∈ O(d) and t, no scale).

    Parameters
    ----------
    estimator : DefGPA, EuclideanGPA, AffineGPA or any other
        Anything with ``fit(shapes)`` whose result has an ``alignment_``. It is copied, never
        changed.
    shapes : Shapes, array (n, m, d) with NaN, or list of arrays (m, d)
        What to align.
    fold_size : int
        Landmarks left out at a time; 1 is leave-one-out.
    n_jobs : int, optional
        Workers for folds that are fitted again. By default as many threads as there are cores.
        Other workers (processes, a Dask or Ray cluster) come with
        ``joblib.parallel_config(backend=...)``. The result does not depend on it.
    progress : callable, optional
        Called with (folds done, folds in all).
    refit : bool
        Whether to fit every fold from scratch, as the paper does: control points and the amount
        of smoothing are then made anew from the landmarks that remain.

    Returns
    -------
    CrossValidation
        ``error`` is the CVE; ``predicted``, ``per_shape`` and ``per_landmark`` tell where it
        comes from.

    Raises
    ------
    DefgpaError
        If the shapes cannot be aligned without some fold; it names the landmarks and the reason.

    Notes
    -----
    A landmark that only one shape has is predicted too, but cannot be judged: the reference has
    it where that one shape puts it. It is not counted in any error.

    By default ``DefGPA`` and ``ElasticGPA`` with a built-in warp keep the basis of each shape
    (control points, penalty): only the correspondence of the left-out landmarks is withheld, and
    they are left out by a Schur complement of each shape's residual form, without fitting again.
    The error differs from that of ``refit=True`` by some tenths of a per cent, by a few per cent on
    sets of a dozen landmarks. Other estimators, and warps of one's own, are always fitted again.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> from defgpa.model_selection import cross_validate
    >>> base = np.random.default_rng(0).normal(size=(30, 2)) * [3, 2]
    >>> shapes = [base + 0.1 * np.sin(base[:, ::-1] + phase) for phase in range(6)]
    >>> stiff = cross_validate(defgpa.DefGPA(defgpa.Affine()), shapes)
    >>> bending = cross_validate(defgpa.DefGPA(defgpa.ThinPlateSpline()), shapes)
    >>> bending.error < stiff.error
    True
    >>> bending.predicted.shape
    (6, 30, 2)
    """
    unweighted, weighted, rejections = fix_robust_weights(estimator, shapes)
    full, problem = align_without_warning(unweighted, weighted)
    full = replace(full, findings=(*rejections, *full.findings))
    if full.findings:
        warn_about(full.findings)
    result = leave_folds_out(unweighted, full, problem, fold_size, n_jobs, progress, refit)
    if (fold_finding := result.fold_finding) is not None:
        warn_about([fold_finding])
    return result


def fix_robust_weights(estimator: Any, shapes: _S) -> tuple[Any, _S | Shapes, tuple[Finding, ...]]:
    """Estimate the landmark weights of a robust estimator once, and keep them.

    Returns
    -------
    estimator
        The same estimator by least squares; any other estimator as it is.
    Shapes
        The shapes with these weights, so that outliers neither choose a method nor dominate its
        error.
    tuple of Finding
        What the robust fit rejected: no error counts it.
    """
    if not getattr(estimator, "robust", False):
        return estimator, shapes, ()
    alignment = estimator.align(shapes)
    unweighted = clone(estimator).set_params(robust=False)
    rejections = tuple(f for f in alignment.findings if f.problem in REJECTION_PROBLEMS)
    return unweighted, weigh_shapes(alignment.shapes, alignment.rejection), rejections


def align_without_warning(
    estimator: Any, shapes: ShapesLike, screening: bool = True
) -> tuple[Alignment, DeformableProblem | None]:
    """Align shapes by an estimator, unchanged; findings are in the result, none is a warning.

    ``screening`` tells whether estimators of this package look for mistakes in their input. The
    warps as they were eliminated are returned, too, where they were.
    """
    if getattr(type(estimator), "fit", None) is AlignmentEstimator.fit:
        align: Callable[[ShapesLike], tuple[Alignment, DeformableProblem | None]]
        align = estimator.align_with_problem if screening else estimator.solve
        return align(shapes)
    with warnings.catch_warnings(action="ignore", category=DefgpaWarning):
        alignment = clone(estimator, safe=False).fit(as_shapes(shapes)).alignment_
    assert isinstance(alignment, Alignment)
    return alignment, None


def leave_folds_out(
    estimator: Any,
    full: Alignment,
    problem: DeformableProblem | None,
    fold_size: int,
    n_jobs: int | None,
    progress: Progress | None,
    refit: bool,
) -> CrossValidation:
    """Leave every fold of landmarks out of a fit, and collect what is predicted of it.

    Parameters
    ----------
    estimator : DefGPA, EuclideanGPA, AffineGPA or any other
    full : Alignment
        By the estimator.
    problem : DeformableProblem or None
        The warps as the fit eliminated them; None to fit every fold from scratch.
    fold_size, n_jobs, progress, refit
        As in ``cross_validate``.
    """
    folds = consecutive_folds(full.shapes.n_landmarks, fold_size)
    impossible: dict[int, LeftOut] = {}
    refit = refit or problem is None or not can_keep_bases(estimator, full.shapes)
    if problem is not None:
        plan = FoldPlan(problem.local.geometry, full.shapes, folds)
        if not refit:
            (left_out,) = predict_folds(problem, [(estimator.dial, full)], plan, progress)
            return collect_predictions(full, left_out, folds, fold_size)
        impossible = find_impossible_folds(problem, plan)
    possible = [number for number in range(len(folds)) if number not in impossible]
    tasks = [(estimator, full, folds[number]) for number in possible]
    n_done = itertools.count(len(impossible) + 1)
    refitted = run_in_parallel(
        refit_fold, tasks, n_jobs, lambda _: progress and progress(next(n_done), len(folds))
    )
    outcomes = impossible | dict(zip(possible, refitted, strict=True))
    left_out = [outcomes[number] for number in range(len(folds))]
    return collect_predictions(full, left_out, folds, fold_size, refitted=True)


def consecutive_folds(n_landmarks: int, fold_size: int) -> tuple[Index, ...]:
    """Make folds of ``fold_size`` consecutive landmarks; the last may be shorter.

    >>> [fold.tolist() for fold in consecutive_folds(7, 3)]
    [[0, 1, 2], [3, 4, 5], [6]]
    """
    is_integer = isinstance(fold_size, (int, np.integer)) and not isinstance(fold_size, bool)
    if not is_integer or not 1 <= fold_size < n_landmarks:
        raise ValueError(
            "The 'fold_size' parameter must be a whole number from 1 to one less than the "
            f"{n_landmarks} landmarks. Got {fold_size!r} instead."
        )
    cuts = np.arange(fold_size, n_landmarks, fold_size)
    return tuple(np.split(np.arange(n_landmarks), cuts))


def can_keep_bases(estimator: Any, shapes: Shapes) -> bool:
    """Return whether folds can be left out with the basis of every shape kept.

    Not for estimators and warps of one's own, nor for elastic sets too large to form P.
    """
    is_ours = type(estimator) in (DefGPA, ElasticGPA)
    if not (is_ours and isinstance(estimator.warp_model, WarpFamily)):
        return False
    max_landmarks = (estimator.tuning or DEFAULT).dense_landmarks
    return isinstance(estimator, DefGPA) or shapes.n_landmarks <= max_landmarks


def refit_fold(estimator: Any, full: Alignment, fold: Index) -> LeftOut:
    """Predict the landmarks of a fold by a fit without them."""
    shapes = full.shapes
    no_predictions = np.full((shapes.n_shapes, len(fold), shapes.n_dims), np.nan)
    try:
        alignment, _ = align_without_warning(estimator, shapes.without(fold), screening=False)
        images = apply_warps(shapes.points[:, fold], alignment.warps)
    except Exception as error:  # a warp or an estimator of one's own may raise anything
        return LeftOut(no_predictions, error=error)
    is_lost = shapes.visible[:, fold] & ~np.isfinite(images).all(axis=2)
    if is_lost.any():
        names = format_names(shapes.names[i] for i in np.flatnonzero(is_lost.any(axis=1)))
        reason = f"the warp of shape {names} gives no finite prediction"
        return LeftOut(no_predictions, error=DefgpaError(reason))
    remaining = np.delete(full.reference, fold, axis=0)
    is_shared = alignment.shapes.views >= 2
    posed = move_to_full_pose(remaining[is_shared], alignment.reference[is_shared], images)
    return LeftOut(posed, alignment.findings)


def collect_predictions(
    full: Alignment,
    left_out: Sequence[LeftOut],
    folds: tuple[Index, ...],
    fold_size: int,
    refitted: bool = False,
) -> CrossValidation:
    """Collect what the folds predict; raise an error that names those which could not be fitted."""
    if any(fold.error for fold in left_out):
        refuse_failed_folds(left_out, folds, full.shapes)
    problems = {finding.problem for finding in full.findings}
    findings = tuple(
        tuple(finding for finding in fold.findings if finding.problem not in problems)
        for fold in left_out
    )
    predicted = np.empty(full.shapes.points.shape)
    predicted[:, np.concatenate(folds)] = np.concatenate(
        [fold.predicted for fold in left_out], axis=1
    )
    predicted[~full.shapes.visible] = np.nan
    return CrossValidation(freeze(predicted), full, folds, fold_size, findings, refitted)


def refuse_failed_folds(
    left_out: Sequence[LeftOut], folds: Sequence[Index], shapes: Shapes
) -> None:
    """Raise a DefgpaError that names the landmarks of every fold that could not be fitted."""
    failed = [
        (f, outcome.error) for f, outcome in zip(folds, left_out, strict=True) if outcome.error
    ]
    landmarks: dict[str, list[str]] = {}  # by reason, each of which is told once
    for fold, error in failed:
        labels = format_names(shapes.landmarks[j] for j in fold)
        landmarks.setdefault(str(error).rstrip("."), []).append(labels)
    clauses, n_described = [], 0
    for reason, names in list(landmarks.items())[:3]:
        others = [f"{len(names) - 3} others"] if len(names) > 3 else []
        clauses.append(f"{' or '.join([*names[:3], *others])}: {reason}")
        n_described += len(names)
    if n_described < len(failed):
        clauses.append(f"and {len(failed) - n_described} more folds")
    raise DefgpaError(
        f"{len(failed)} of {len(folds)} folds cannot be fitted, so there is no cross-validation "
        f"error. Without landmark {'; '.join(clauses)}. Use smaller folds, or drop the shapes or "
        "landmarks that hang on so few points."
    ) from failed[0][1]
