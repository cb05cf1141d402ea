"""Estimate missing landmarks, each with an uncertainty, by the method that errs least on this set.

The methods (`defgpa.completion.methods`): the reference projected back by the warp, and its
residuals at visible landmarks smoothly extended; the conditional mean of shape statistics; the
thin-plate spline from the mean of the complete specimens, as geomorph. Each is judged by hiding
visible landmarks, in gaps like those that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from types import MappingProxyType

import numpy as np
from scipy.spatial.distance import cdist

from defgpa.alignment import Alignment, project_reference_back
from defgpa.arrays import Array, Mask, freeze, rms_radius
from defgpa.completion.gaussian import blend, compute_trust, fill_with_mean
from defgpa.completion.holdouts import (
    Holdout,
    compute_squared_errors,
    compute_squared_size,
    make_holdouts,
)
from defgpa.completion.methods import (
    MIN_OTHERS,
    Method,
    estimate_by_spline,
    estimate_by_statistics,
    estimate_by_warp,
    hide_doubtful,
)
from defgpa.diagnostics.findings import Finding, Problem, warn_about
from defgpa.errors import DefgpaError, DegenerateShapeError, format_names
from defgpa.formatting import render_table
from defgpa.procrustes import SIMILARITY, fit_motions
from defgpa.shapes import Shapes, ShapesLike, as_specimens
from defgpa.threads import use_threads

METHODS = ("statistics", "warp", "spline")


@dataclass(frozen=True, eq=False)
class Completion:
    """Completed shapes, with the uncertainty of every estimated landmark.

    Attributes
    ----------
    shapes : Shapes
        Nothing missing; what was visible is untouched. The column ``estimated`` of
        ``metadata["variables"]``, and ``comments``, name the landmarks that were estimated.
    expected : array (n, m, d)
        The same, but that visible landmarks of little weight are moved towards where the others
        predict them, to what a measurement of full weight is expected to show.
    estimated : array (n, m) of bool
        Which landmarks were estimated.
    uncertainty : array (n, m)
        Expected distance (RMS) of what is estimated or moved from the truth, in the units of the
        shape; 0 where it was measured with full weight.
    far : array (n, m) of bool
        Estimates farther from everything the specimen shows than what it shows is wide.
    method : str
        ``"statistics"``, ``"warp"`` or ``"spline"``; empty where nothing was missing.
    errors : mapping of str to float
        Method → RMS error over centroid size, of visible landmarks that were held out.
    findings : tuple of Finding
        What a user should be told: of estimates that are far.
    """

    shapes: Shapes
    expected: Array
    estimated: Mask
    uncertainty: Array
    far: Mask
    method: str
    errors: Mapping[str, float]
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        method = f" by {self.method}" if self.method else ""
        count = int(self.estimated.sum())
        landmarks = "landmark" if count == 1 else "landmarks"
        return f"Completion({count} {landmarks} estimated{method}, {self.shapes!r})"

    def _repr_html_(self) -> str:
        rows = [
            (name, int(estimated.sum()), f"{uncertainty.max(initial=0.0):.4g}")
            for name, estimated, uncertainty in zip(
                self.shapes.names, self.estimated, self.uncertainty, strict=True
            )
            if estimated.any()
        ]
        return render_table(repr(self), rows, ("shape", "estimated", "largest uncertainty"))

    @property
    def moved(self) -> Mask:
        """(n, m): which visible landmarks are expected elsewhere, by their weights."""
        return np.asarray(~self.estimated & (self.expected != self.shapes.points).any(axis=2))

    def draw(self, n_draws: int, seed: int = 0) -> list[Array]:
        """Draw completions from the stated uncertainty, for multiple imputation.

        Every landmark that is estimated or moved lies at its expected place plus an isotropic
        normal deviate of the stated RMS length, independently of the others.

        Parameters
        ----------
        n_draws : int
        seed : int
            The same seed gives the same draws.

        Returns
        -------
        list of n_draws arrays (n, m, d)
        """
        rng = np.random.default_rng(seed)
        points = self.expected
        deviation = (self.uncertainty / np.sqrt(points.shape[2]))[..., None]
        return [points + deviation * rng.normal(size=points.shape) for _ in range(n_draws)]


def complete(shapes: Alignment | ShapesLike, method: str | None = None) -> Completion:
    """Estimate every missing landmark.

    Landmark weights that differ say how precise a measurement is: predictions follow precise ones
    more. The statistics of shape take them as variances, so they are the default method then.

    Parameters
    ----------
    shapes : Alignment, Shapes, array (n, m, d) with NaN, or list of arrays (m, d)
        Some of whose landmarks are missing. Only an alignment has warps to estimate by.
    method : {"statistics", "warp", "spline"}, optional
        By default the one that errs least on visible landmarks of this set that are held out.

    Returns
    -------
    Completion
        The shapes without gaps, and the uncertainty of each estimated landmark.

    Examples
    --------
    >>> import numpy as np
    >>> import defgpa
    >>> rng = np.random.default_rng(0)
    >>> base = rng.normal(size=(20, 2)) * [3, 2]
    >>> shapes = np.stack([base + 0.2 * np.sin(base + rng.normal(size=2)) for _ in range(9)])
    >>> truth = shapes[2, 5].copy()
    >>> shapes[2, 5] = np.nan
    >>> done = defgpa.complete(defgpa.DefGPA(defgpa.Affine()).fit(shapes).alignment_)
    >>> bool(np.linalg.norm(done.shapes[2][5] - truth) < 0.1), int(done.estimated.sum())
    (True, 1)
    """
    completion = compute_completion(shapes, method)
    warn_about(completion.findings)
    return completion


def compute_completion(shapes: Alignment | ShapesLike, method: str | None = None) -> Completion:
    """Estimate every missing landmark as `complete` does, without a warning of its findings.

    Parameters
    ----------
    shapes, method
        As in `complete`.

    Returns
    -------
    Completion
        Shapes without gaps, and how far to trust what filled them.
    """
    if method not in (None, *METHODS):
        raise ValueError(
            f"The 'method' parameter of complete must be one of {format_names(METHODS)}, or None. "
            f"Got {method!r} instead."
        )
    alignment = shapes if isinstance(shapes, Alignment) else None
    specimens = shapes.trusted_shapes if isinstance(shapes, Alignment) else as_specimens(shapes)
    trust = None
    if method in (None, "statistics") and len(specimens) > MIN_OTHERS:
        trust = compute_trust(shapes.shapes if isinstance(shapes, Alignment) else specimens)
    if specimens.visible.all() and trust is None:
        none = freeze(np.zeros(specimens.visible.shape, dtype=bool))
        zero = freeze(np.zeros(none.shape))
        return Completion(specimens, specimens.points, none, zero, none, "", MappingProxyType({}))
    if method == "warp" and alignment is None:
        raise DefgpaError(
            "Only an alignment has warps to estimate missing landmarks by: give one, or use "
            "method='statistics' or 'spline'."
        )
    if alignment is None:
        specimens.require_alignable()
    if trust is not None:
        method = "statistics"  # the method that knows how precise a measurement is
    with use_threads():
        return _complete(specimens, trust, alignment, method)


def _complete(
    shapes: Shapes, trust: Array | None, alignment: Alignment | None, method: str | None
) -> Completion:
    flip = _make_reflections(shapes, alignment)
    points = shapes.points * flip
    counted = hide_doubtful(points, trust)
    first, reference = _fill_first(points, trust, alignment, flip)
    holdouts = _choose_feasible_holdouts(counted, alignment, reference)
    builders = _list_methods(alignment, points, first, holdouts, trust)
    if method is not None and method not in builders:
        raise DefgpaError(
            f"Statistics need at least {MIN_OTHERS + 1} shapes; there are {len(points)}. "
            "Use method='warp'."
        )
    methods = {name: build() for name, build in builders.items() if method in (None, name)}
    scores = {name: _score(estimate, counted, holdouts) for name, estimate in methods.items()}
    errors = {name: error for name, (error, _) in scores.items()}
    best = min(errors, key=errors.__getitem__)
    _, calibration = scores[best]
    estimated = ~shapes.visible
    is_doubtful = estimated if trust is None else trust < 1.0
    expected, deviation = np.array(shapes.points), np.zeros(estimated.shape)
    for i in np.flatnonzero(is_doubtful.any(axis=1)):
        doubtful, estimate = is_doubtful[i], methods[best](int(i), points[i])
        expected[i, doubtful] = (estimate.points * flip[i])[doubtful]
        deviation[i] = estimate.deviation * calibration
    filled = np.where(estimated[..., None], expected, shapes.points)
    is_far = _find_far_estimates(reference, shapes.visible)
    names = tuple(compress(shapes.names, np.asarray(is_far.any(axis=1))))
    values = {"count": int(is_far.sum())}
    return Completion(
        shapes.with_points(filled).with_metadata(**_mark_estimates(shapes)),
        freeze(expected),
        freeze(estimated),
        freeze(deviation),
        freeze(is_far),
        best,
        MappingProxyType(errors),
        (Finding(Problem.FAR_ESTIMATES, names, values=values),) if names else (),
    )


def _fill_first(
    points: Array, trust: Array | None, alignment: Alignment | None, flip: Array
) -> tuple[Array, Array]:
    """Fill gaps with a first estimate (n, m, d), and return it with the mean shape (m, d)."""
    if alignment is not None:
        projected = project_reference_back(alignment.warps, alignment.reference) * flip
        return blend(points, projected, trust), alignment.reference
    filled = fill_with_mean(points, trust)
    most_complete = filled[int((~np.isnan(points[..., 0])).sum(axis=1).argmax())]
    return filled, fit_motions(filled, most_complete, motions=SIMILARITY)(filled).mean(axis=0)


def _list_methods(
    alignment: Alignment | None,
    points: Array,
    first: Array,
    holdouts: Sequence[Holdout],
    trust: Array | None,
) -> dict[str, Callable[[], Method]]:
    """Return how to build each method that this set allows."""
    is_complete = ~np.isnan(points[..., 0]).any(axis=1)
    builders: dict[str, Callable[[], Method]] = {
        "spline": lambda: estimate_by_spline(first, np.asarray(is_complete))
    }
    if alignment is not None:
        builders["warp"] = lambda: estimate_by_warp(alignment, points, holdouts)
    if len(points) > MIN_OTHERS:
        builders["statistics"] = lambda: estimate_by_statistics(first, points, holdouts, trust)
    return builders


def _score(estimate: Method, points: Array, holdouts: Sequence[Holdout]) -> tuple[float, float]:
    """Compute the error of a method on the holdouts, and the calibration of its deviations.

    The error is RMS over centroid size; deviations times the calibration are as large as errors.
    """
    squared, expected = [], []
    for holdout in holdouts:
        truth = points[holdout.specimen]
        estimated = estimate(holdout.specimen, holdout.hide(points))
        squared.append(compute_squared_errors(estimated.points, truth, holdout.hidden))
        expected.append(estimated.deviation[holdout.hidden] ** 2 / compute_squared_size(truth))
    mean_square = np.concatenate(squared).mean()
    calibration = np.sqrt(mean_square / np.concatenate(expected).mean())
    return float(np.sqrt(mean_square)), float(calibration)


def _choose_feasible_holdouts(
    points: Array, alignment: Alignment | None, reference: Array
) -> list[Holdout]:
    """Keep the holdouts that leave enough of a specimen to bring it onto the reference."""
    feasible = []
    for holdout in make_holdouts(~np.isnan(points[..., 0]), points.shape[2]):
        shape = holdout.hide(points)
        visible = ~np.isnan(shape[:, 0])
        try:
            if alignment is not None:
                alignment.register(shape)
            elif not fit_motions(shape[visible], reference[visible], motions=SIMILARITY).determined:
                continue
        except DegenerateShapeError:  # what is left lies on a line
            continue
        feasible.append(holdout)
    if not feasible:
        raise DegenerateShapeError(
            "The shapes show too few landmarks to hide one and find it again, so no estimate of a "
            "missing one, or of one with little weight, could be trusted. Drop such shapes."
        )
    return feasible


def _mark_estimates(shapes: Shapes) -> dict[str, object]:
    """Add the estimated landmarks to a variable and to the comments of each shape."""
    labels = np.array(shapes.landmarks, dtype=object)
    marks = ["; ".join(labels[~visible]) for visible in shapes.visible]
    no_rows = [None] * len(shapes)
    rows = zip(shapes.metadata.get("variables") or no_rows, marks, strict=True)
    comments = zip(shapes.metadata.get("comments") or no_rows, marks, strict=True)
    return {
        "variables": tuple({**(row or {}), "estimated": mark} for row, mark in rows),
        "comments": tuple(
            "; ".join(filter(None, (words, mark and f"estimated: {mark}"))) or None
            for words, mark in comments
        ),
    }


def _find_far_estimates(reference: Array, visible: Mask) -> Mask:
    """Find estimates (n, m) farther from the nearest visible landmark than the radius of these."""
    is_far = np.zeros(visible.shape, dtype=bool)
    for i in np.flatnonzero(~visible.all(axis=1)):
        present, filled = reference[visible[i]], reference[~visible[i]]
        is_far[i, ~visible[i]] = cdist(filled, present).min(axis=1) > rms_radius(present)
    return is_far


def _make_reflections(shapes: Shapes, alignment: Alignment | None) -> Array:
    """Return factors (n, 1, d): −1 on the first axis of mirrored specimens, 1 elsewhere.

    Mirror images have no place in a mean.
    """
    flip = np.ones((len(shapes), 1, shapes.n_dims))
    if alignment is not None:
        flip[alignment.diagnostics.votes < 0, 0, 0] = -1.0
    return flip
