r"""How well landmarks are predicted by those around them: the honest figure.

A fold of landmarks is left out of every shape and everything is estimated without it; each
shape's warp then predicts where its own left-out landmarks belong in the reference. Fitting
more closely lowers the residuals always, this error only while it is signal that is fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index, Mask, Progress, frozen
from defgpa.alignment import Alignment
from defgpa.diagnostics.findings import Finding, warn_about
from defgpa.model_selection._fold_sets import FoldSets
from defgpa.model_selection.folds import (
    LeftOut,
    Steps,
    consecutive_folds,
    gathered,
    looked_at,
    news_of_folds,
    refitted,
    require_all_fitted,
)
from defgpa.model_selection.parallel import in_parallel
from defgpa.shapes import ShapesLike, as_shapes


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Every landmark predicted by an alignment that has not seen it; immutable.

    Attributes
    ----------
    predicted : array (n, m, d)
        Where each shape's warp puts each of its landmarks when the fold of that landmark is left
        out, in the frame of ``reference``; NaN where a shape does not see it.
    alignment : Alignment
        That of all landmarks.
    folds : tuple of arrays
        The landmarks (0-based) of each fold.
    fold_size : int
        Landmarks in a fold (the last may have fewer).
    findings : tuple of tuples of Finding
        For each fold, what its fit found and the full fit did not.

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
    >>> bool(np.isclose(cv.error, np.sqrt(np.mean(cv.per_shape**2))))  # all is seen
    True
    """

    predicted: Array
    alignment: Alignment
    folds: tuple[Index, ...]
    fold_size: int
    findings: tuple[tuple[Finding, ...], ...]

    @property
    def reference(self) -> Array:
        """(m, d): the reference of all landmarks, the truth the predictions are held against."""
        return self.alignment.reference

    @property
    def counted(self) -> Mask:
        """(n, m): the predictions the errors count: of landmarks that two shapes see at least."""
        return self.alignment.counted

    @cached_property
    def distances(self) -> Array:
        """(n, m): from each prediction to the reference; NaN where a landmark is not seen."""
        return frozen(np.linalg.norm(self.predicted - self.reference, axis=2))

    @cached_property
    def error(self) -> float:
        """CVE = √(Σ ‖predicted − S‖² / κ), κ the number of counted landmarks of all shapes."""
        return float(np.sqrt(np.mean(self.distances[self.counted] ** 2)))

    @cached_property
    def per_shape(self) -> Array:
        """(n,): the same over the landmarks of each shape."""
        return self._root_mean_square(axis=1)

    @cached_property
    def per_landmark(self) -> Array:
        """(m,): the same over the shapes that see a landmark; NaN if only one does."""
        return self._root_mean_square(axis=0)

    @property
    def news(self) -> Finding | None:
        """What folds found and the full fit did not, in one finding; None if nothing."""
        return news_of_folds(self.findings, self.folds, self.alignment.shapes)

    @cached_property
    def standard_error(self) -> float:
        """Of the CVE: its spread over the landmarks, as if they were a sample of many."""
        squares = self.per_landmark[~np.isnan(self.per_landmark)] ** 2
        # d√x = dx / 2√x
        spread = np.std(squares, ddof=1) / np.sqrt(len(squares)) if len(squares) > 1 else 0.0
        return float(spread / (2.0 * self.error)) if self.error > 0.0 else 0.0

    def _root_mean_square(self, axis: int) -> Array:
        squares = np.where(self.counted, self.distances, 0.0) ** 2
        with np.errstate(invalid="ignore"):
            return frozen(np.sqrt(squares.sum(axis=axis) / self.counted.sum(axis=axis)))

    def __repr__(self) -> str:
        return f"CrossValidation(error={self.error:.6g}, {len(self.folds)} folds)"


def cross_validate(
    estimator: Any,
    shapes: ShapesLike,
    fold_size: int = 1,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> CrossValidation:
    r"""The cross-validation error (CVE) of an estimator on shapes.

    The landmarks are split into folds of ``fold_size`` consecutive ones. Each fold in turn is
    taken out of all shapes, the estimator is fitted to the rest from scratch, and the warp of
    each shape predicts the landmarks of the fold that the shape sees. The predictions are moved
    with the fold's reference onto the full one (R ∈ O(d) and t, no scale).

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
        Workers. By default as many threads as there are cores. Other workers (processes, a Dask
        or Ray cluster) come with ``joblib.parallel_config(backend=...)``. The result does not
        depend on it.
    progress : callable, optional
        Called with (folds done, folds in all).

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
    A landmark that only one shape sees is predicted too, but cannot be judged: the reference has
    it where that one shape puts it. It is not counted in any error.

    For ``DefGPA`` and ``ElasticGPA`` with a built-in warp and at most 500 landmarks all shapes of
    several folds are solved as one stack; the result is the same.

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
    full = looked_at(estimator, as_shapes(shapes))
    if full.findings:
        warn_about(full.findings)
    result = cross_validated(estimator, full, fold_size, n_jobs, progress)
    if (news := result.news) is not None:
        warn_about([news])
    return result


def cross_validated(
    estimator: Any,
    full: Alignment,
    fold_size: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> CrossValidation:
    """The cross-validation of an estimator that has made ``full`` of all landmarks."""
    folds = consecutive_folds(full.shapes.n_landmarks, fold_size)
    steps = Steps(len(folds), progress)
    sets = FoldSets.of(estimator, full.shapes)
    if sets is None:
        left_out = left_out_by_refits(estimator, full, folds, n_jobs, steps)
    else:
        elastic = sets.scaling is not None
        factors = np.array([[1.0, estimator.dial.rigidity]]) if elastic else np.ones(1)
        (left_out,) = left_out_by_stacks(sets, factors, [full], folds, n_jobs, steps)
    return gathered_folds(full, folds, fold_size, left_out)


def left_out_by_stacks(
    sets: FoldSets,
    factors: Array,
    full: Sequence[Alignment],
    folds: Sequence[Index],
    n_jobs: int | None,
    steps: Steps,
) -> list[list[LeftOut]]:
    """[factor][fold]: every fold left out once, several at a time, for factors on the penalty."""
    references = np.stack([own.reference for own in full])
    groups = sets.groups(folds)
    tasks = [(sets, [folds[i] for i in group], factors, references) for group in groups]
    done = in_parallel(
        FoldSets.predicted, tasks, n_jobs, lambda own: steps.advance(sum(map(len, own)))
    )
    outcomes: list[list[LeftOut]] = [[LeftOut(np.empty(0))] * len(folds) for _ in factors]
    for group, made in zip(groups, done, strict=True):
        for outcome, own in zip(outcomes, made, strict=True):
            for number, left_out in zip(group, own, strict=True):
                outcome[number] = left_out
    return outcomes


def left_out_by_refits(
    estimator: Any, full: Alignment, folds: Sequence[Index], n_jobs: int | None, steps: Steps
) -> list[LeftOut]:
    """Every fold left out once, by a fit of its own."""
    tasks = [(estimator, full, fold) for fold in folds]
    return in_parallel(refitted, tasks, n_jobs, lambda _: steps.advance())


def gathered_folds(
    full: Alignment, folds: tuple[Index, ...], fold_size: int, left_out: Sequence[LeftOut]
) -> CrossValidation:
    """The cross-validation made of folds that were left out; an error if one could not be."""
    require_all_fitted(left_out, folds, full.shapes)
    known = {finding.problem for finding in full.findings}
    found = tuple(tuple(f for f in own.findings if f.problem not in known) for own in left_out)
    predicted = gathered(left_out, folds, full.shapes.visible)
    return CrossValidation(predicted, full, folds, fold_size, found)
