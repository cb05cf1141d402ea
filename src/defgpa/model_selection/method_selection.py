"""Which method to align with: rigid, affine, elastic or deformable, and with how much smoothing.

The methods of :func:`compare` are ranked by how well they predict landmarks that were left out.
The best is taken if it predicts better than rigid alignment by more than chance; its smoothing is
then chosen by cross-validation too. What folds over itself, or is farther from the shapes than
rigid alignment (RMSE_d), is passed over for the next best. Large sets are judged by an even sample
of their shapes and landmarks; what is chosen is then fitted to all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from defgpa.alignment import Alignment
from defgpa.arrays import Index, Progress
from defgpa.diagnostics.findings import warn_about
from defgpa.errors import DefgpaError, DefgpaWarning
from defgpa.estimators import AffineGPA, DefGPA, ElasticGPA, EuclideanGPA
from defgpa.model_selection.comparison import Comparison, MethodFigures, compare, default_methods
from defgpa.model_selection.cross_validation import CrossValidation, cross_validate
from defgpa.model_selection.smoothing import is_sound, select_smoothing
from defgpa.model_selection.smoothing_path import SmoothingPath
from defgpa.shapes import Shapes, ShapesLike, as_shapes
from defgpa.warps import Affine
from defgpa.warps.parameters import stiffen

#: Up to so many coordinates methods are compared on all shapes and landmarks, in seconds.
MAX_COMPARED = 30_000
SAMPLE_LANDMARKS, SAMPLE_COORDINATES = 200, 20_000  # of larger sets
MAX_STIFFENED = 4  # decades of smoothing by which a fit is stiffened until it is sound
# of the elastic family, which iterates, fewer values are tried than select_smoothing would
_ELASTIC_DIAL = {"grid": [1e-4, 1e-3, 1e-2, 1e-1], "rigidities": [0.1, 1.0, 10.0]}


@dataclass(frozen=True, eq=False)
class Selection:
    """The method chosen for a set of shapes, and why.

    Attributes
    ----------
    method : str
        ``"rigid"``, ``"affine"``, ``"elastic"`` or ``"deformable"``.
    estimator : estimator
        Ready to be fitted, its smoothing chosen.
    reason : str
        One sentence: what was chosen and by how much it predicts better.
    alignment : Alignment
        The fit of the estimator.
    comparison : Comparison or None
        All methods compared, of a large set on a sample of it.
    path : SmoothingPath or None
        How the smoothing was chosen, where the method has one; None for large sets.
    cross_validation : CrossValidation or None
        That of the estimator; None for large sets.

    See Also
    --------
    select_method : makes it.
    """

    method: str
    estimator: Any
    reason: str
    alignment: Alignment
    comparison: Comparison | None = None
    path: SmoothingPath | None = None
    cross_validation: CrossValidation | None = None


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A method with its smoothing chosen, fitted."""

    name: str
    estimator: Any
    alignment: Alignment
    path: SmoothingPath | None = None
    cross_validation: CrossValidation | None = None


def select_method(
    shapes: ShapesLike,
    fold_size: int | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Selection:
    """Choose rigid, affine, elastic or deformable alignment and its smoothing.

    Parameters
    ----------
    shapes : Shapes, array (n, m, d) with NaN, or list of arrays (m, d)
        What to align.
    fold_size : int, optional
        Landmarks left out at a time; by default such that there are about 20 folds.
    n_jobs, progress
        As in ``cross_validate``; ``progress`` counts anew for the smoothing.

    Returns
    -------
    Selection
        A sound one: no warp folds over at a landmark, and RMSE_d is not above that of rigid
        alignment.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa.model_selection import select_method
    >>> rng = np.random.default_rng(0)
    >>> base = rng.uniform(-2, 2, size=(30, 2))
    >>> shapes = base + 0.01 * rng.normal(size=(8, 30, 2))
    >>> select_method(shapes, fold_size=5).method
    'rigid'
    """
    shapes = as_shapes(shapes)
    sample = take_sample(shapes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DefgpaWarning)  # of methods that are only tried
        if sample is shapes:
            selection = _select_by_comparing(shapes, fold_size, n_jobs, progress)
        else:
            selection = _select_by_sample(shapes, sample, fold_size, n_jobs, progress)
    path = selection.path
    warn_about(selection.alignment.findings if path is None else path.findings)
    return selection


def take_sample(shapes: Shapes) -> Shapes:
    """Return the shapes, or of a large set an even sample of shapes and landmarks."""
    if is_ordinary_size(shapes):
        return shapes
    shared = np.flatnonzero(shapes.views >= 2)
    landmarks = shared[_spread_evenly(len(shared), SAMPLE_LANDMARKS)]
    n_shapes = max(3, SAMPLE_COORDINATES // (len(landmarks) * shapes.n_dims))
    thinned = shapes.without(np.setdiff1d(np.arange(shapes.n_landmarks), landmarks))
    return thinned.take(_spread_evenly(len(shapes), n_shapes))


def _spread_evenly(size: int, count: int) -> Index:
    """Return at most ``count`` of the first ``size`` numbers, spread evenly."""
    return np.unique(np.linspace(0, size - 1, min(size, count)).astype(np.intp))


def _select_by_comparing(
    shapes: Shapes, fold_size: int | None, n_jobs: int | None, progress: Progress | None
) -> Selection:
    """Take the best method of the comparison that is sound, with its smoothing chosen."""
    size = choose_fold_size(shapes) if fold_size is None else fold_size
    methods = default_methods()
    comparison = compare(shapes, methods, fold_size=size, n_jobs=n_jobs, progress=progress)
    rigid_row = _find_best_rigid(comparison, methods)
    rigid = methods[rigid_row.name].fit(shapes).alignment_
    passed_over = []
    for name in _list_candidates(comparison, rigid_row):
        if name == rigid_row.name:
            break
        candidate = _choose_smoothing(name, methods[name], shapes, size, n_jobs, progress)
        if is_sound(candidate.alignment, rigid.rmse_datum):
            break
        passed_over.append(name)
    else:
        name = rigid_row.name
    if name == rigid_row.name:
        candidate = _cross_validate(name, methods[name], shapes, size, n_jobs, rigid)
    return Selection(
        classify_estimator(candidate.estimator),
        candidate.estimator,
        _explain(candidate, comparison, rigid_row, passed_over),
        candidate.alignment,
        comparison,
        candidate.path,
        candidate.cross_validation,
    )


def is_ordinary_size(shapes: Shapes) -> bool:
    """Return whether methods and smoothings are compared on all shapes in seconds."""
    return shapes.points.size <= MAX_COMPARED


def choose_fold_size(shapes: Shapes) -> int:
    """Return how many landmarks to leave out at a time so that there are about 20 folds."""
    return max(1, round(shapes.n_landmarks / 20))


def classify_estimator(estimator: Any) -> str:
    """Return the kind of method an estimator is: rigid, affine, elastic or deformable."""
    if isinstance(estimator, EuclideanGPA):
        return "rigid"
    if isinstance(estimator, AffineGPA) or isinstance(getattr(estimator, "warp", None), Affine):
        return "affine"
    return "elastic" if isinstance(estimator, ElasticGPA) else "deformable"


def _find_best_rigid(comparison: Comparison, methods: Mapping[str, Any]) -> MethodFigures:
    """Return the row of the rigid method that predicts best, or aligns best if none could."""
    rows = [row for row in comparison if isinstance(methods[row.name], EuclideanGPA)]
    rows = [row for row in rows if np.isfinite(row.rmse_datum)]
    if not rows:
        raise DefgpaError(f"These shapes cannot be aligned rigidly. {comparison.rows[0].failure}")
    ranked = [row for row in rows if np.isfinite(row.relative_cve)]
    return min(ranked or rows, key=lambda row: row.relative_cve if ranked else row.rmse_datum)


def _list_candidates(comparison: Comparison, rigid: MethodFigures) -> Iterator[str]:
    """Yield the methods to try, the best first: a rigid one if none is better beyond chance."""
    verdict = comparison.verdict
    if verdict is not None and verdict.clear and not verdict.rigid:
        for name in comparison.ranking:
            if name == rigid.name:
                break
            yield name
    yield rigid.name


def _choose_smoothing(
    name: str,
    estimator: Any,
    shapes: Shapes,
    fold_size: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> _Candidate:
    """Fit a method of the comparison with the smoothing that predicts best, if it has one."""
    if not hasattr(getattr(estimator, "warp_model", None), "smoothing"):
        return _cross_validate(name, estimator, shapes, fold_size, n_jobs)
    dial = _ELASTIC_DIAL if isinstance(estimator, ElasticGPA) else {}
    path = select_smoothing(
        estimator, shapes, fold_size=fold_size, n_jobs=n_jobs, progress=progress, **dial
    )
    return _Candidate(name, path.best, path.alignment, path, path.cross_validation)


def _cross_validate(
    name: str,
    estimator: Any,
    shapes: Shapes,
    fold_size: int,
    n_jobs: int | None,
    alignment: Alignment | None = None,
) -> _Candidate:
    """Cross-validate a method without smoothing; keep its fit where that is impossible."""
    try:
        validated = cross_validate(estimator, shapes, fold_size=fold_size, n_jobs=n_jobs)
    except DefgpaError:
        if alignment is None:
            raise
        return _Candidate(name, estimator, alignment)
    return _Candidate(name, estimator, validated.alignment, None, validated)


def _explain(
    candidate: _Candidate,
    comparison: Comparison,
    rigid: MethodFigures,
    passed_over: list[str],
) -> str:
    """Explain which method was chosen, how much better it predicts, and which were passed over."""
    described = describe_method(candidate.name, candidate.path)
    reason = _compare_with_rigid(candidate, comparison, rigid)
    if not passed_over:
        return f"{described[0].upper()}{described[1:]} was chosen: {reason}."
    names = ", ".join(describe_method(name) for name in passed_over)
    return (
        f"{described[0].upper()}{described[1:]} was chosen: {reason}. Passed over, since warps "
        f"fold over or are farther from the shapes (RMSE_d) than rigid alignment: {names}."
    )


def _compare_with_rigid(candidate: _Candidate, comparison: Comparison, rigid: MethodFigures) -> str:
    """Return the clause that gives the gain in cross-validation error over rigid alignment."""
    validated = candidate.cross_validation
    if validated is None:
        return "there are too few landmarks for cross-validation"
    if candidate.name != rigid.name:
        size = comparison[candidate.name].size
        gain = 1.0 - (validated.error / size) / rigid.relative_cve
        return f"its cross-validation error is {100.0 * gain:.2g} % below that of rigid alignment"
    verdict = comparison.verdict
    if verdict is not None and not verdict.rigid:
        best = describe_method(verdict.best)
        if verdict.clear:
            return "no sound method predicts better"
        if verdict.few_decide:
            return f"{best} predicts better at a few landmarks only"
        return (
            f"{best} predicts left-out landmarks only {100.0 * verdict.gain:.2g} % better, which "
            "may be chance"
        )
    return "no other method predicts left-out landmarks better"


def describe_method(name: str, path: SmoothingPath | None = None) -> str:
    """Spell out a method of the comparison, such as ``TPS_r(5)``.

    Examples
    --------
    >>> describe_method("TPS_r(5)")
    'deformable alignment (thin-plate splines, 5 points per axis)'
    """
    points = name.partition("(")[2].removesuffix(")")
    smoothing = "" if path is None else f", smoothing {path.best_value:.2g}"
    if name.startswith("EUC_d"):
        return f"rigid alignment ({'with' if 'scaling' in points else 'without'} scaling)"
    if name.startswith("AFF"):
        return "affine alignment"
    if name.startswith("ELA"):
        rigidity = getattr(path, "best_rigidity", None)
        stiffness = "" if rigidity is None else f", rigidity {rigidity:.2g}"
        return f"elastic alignment ({points} points per axis{smoothing}{stiffness})"
    if name.startswith("TPS_r"):
        return f"deformable alignment (thin-plate splines, {points} points per axis{smoothing})"
    return name


def describe_briefly(name: str) -> str:
    """Describe a method in a few words, for a table that also has its code.

    Examples
    --------
    >>> describe_briefly("EUC_d(scaling)"), describe_briefly("TPS_r(5)")
    ('rigid, scaled', 'thin-plate spline (5)')
    """
    points = name.partition("(")[2].removesuffix(")")
    names = {"EUC_d": "rigid", "EUC_d(scaling)": "rigid, scaled", "AFF_r": "affine, closed form"}
    if name in names:
        return names[name]
    if name.startswith("AFF_d"):
        return "affine, by iteration"
    if name.startswith("TPS_r"):
        return f"thin-plate spline ({points})"
    return f"elastic ({points})" if name.startswith("ELA") else name


def _select_by_sample(
    shapes: Shapes,
    sample: Shapes,
    fold_size: int | None,
    n_jobs: int | None,
    progress: Progress | None,
) -> Selection:
    """Fit all shapes by the method that is best for a sample, stiffened until it is sound."""
    rigid_estimator = EuclideanGPA(scaling=True)
    rigid = rigid_estimator.fit(shapes).alignment_
    size = (
        None if fold_size is None else max(1, fold_size * sample.n_landmarks // shapes.n_landmarks)
    )
    try:
        chosen = _select_by_comparing(sample, size, n_jobs, progress)
        estimator, comparison, reason = chosen.estimator, chosen.comparison, chosen.reason
    except DefgpaError as error:  # the sample does not hang together
        estimator, comparison, reason = DefGPA(), None, f"The default was taken: {error}"
    reason += (
        f" Methods were compared on {sample.n_landmarks:,} of {shapes.n_landmarks:,} landmarks and "
        f"{sample.n_shapes:,} of {shapes.n_shapes:,} shapes, spread evenly."
    )
    for decades in range(MAX_STIFFENED + 1):
        stiffer = estimator
        if decades:
            warp = stiffen(getattr(estimator, "warp_model", None), 10.0**decades)
            if not hasattr(warp, "smoothing"):
                break
            stiffer = clone(estimator).set_params(warp=warp)
        alignment = stiffer.fit(shapes).alignment_
        if isinstance(stiffer, EuclideanGPA) or is_sound(alignment, rigid.rmse_datum):
            if decades:
                smoothing = stiffer.warp_model.smoothing
                reason += (
                    f" On all of them its smoothing was raised to {smoothing:.2g}: "
                    "with less, warps fold over or are farther from the shapes (RMSE_d) than rigid "
                    "alignment."
                )
            return Selection(classify_estimator(stiffer), stiffer, reason, alignment, comparison)
    reason = (
        "Rigid alignment was chosen: at every smoothing tried, warps fold over or are farther from "
        "the shapes (RMSE_d) than rigid alignment."
    )
    return Selection("rigid", rigid_estimator, reason, rigid, comparison)
