"""Missing landmarks estimated, each with an uncertainty, by whichever way errs least on this set.

Three ways. By the warp: the reference brought back into the specimen, and what it misses there
of the seen landmarks carried along smoothly. By statistics: the conditional mean given what is
seen (`defgpa.statistics.conditional`). By a spline: the mean of the complete specimens through the
thin-plate spline that takes what is seen to where it lies, as geomorph. Which one is used is
decided by hiding landmarks that are known, in holes like those that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from defgpa._arrays import Array, Index, Mask, frozen, own_threads, rms, rms_radius
from defgpa.alignment import Alignment, brought_back
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.diagnostics.wording import warn_of
from defgpa.errors import DefgpaError, DegenerateShapeError, listed
from defgpa.shapes import Shapes
from defgpa.statistics.conditional import (
    Dials,
    Estimate,
    ShapeGaussian,
    asked_landmarks,
    gaussian_kernel,
    refilled,
)
from defgpa.statistics.dials import Trial, chosen_dials, hidden_for_once, squared_errors
from defgpa.statistics.tangent import centroid_sizes, rotated_onto_mean, tangent_space, unit_size
from defgpa.warps import interpolating_spline

METHODS = ("statistics", "warp", "spline")

_FEWEST = 3  # specimens besides one that statistics can be made of

# specimen i, of which only ``own`` (m, d) is known now, NaN where hidden -> the shape completed
Way = Callable[[int, Array], Estimate]


@dataclass(frozen=True, eq=False)
class Completion:
    """Shapes without gaps, and how far to trust what filled them.

    Attributes
    ----------
    shapes : Shapes
        Nothing missing; what was seen is untouched. The column ``estimated`` of
        ``metadata["variables"]``, and ``comments``, name the landmarks that were estimated.
    estimated : array (n, m) of bool
        Which landmarks were estimated.
    uncertainty : array (n, m)
        Expected distance (RMS) of an estimate from the truth, in the units of the shape; 0 where
        seen.
    far : array (n, m) of bool
        Estimates farther from everything the specimen shows than what it shows is wide.
    method : str
        ``"statistics"``, ``"warp"`` or ``"spline"``; empty where nothing was missing.
    errors : mapping of str to float
        Method → RMS error over centroid size, of hidden landmarks that are known.
    findings : tuple of Finding
        What a user should be told: of estimates that are far.
    """

    shapes: Shapes
    estimated: Mask
    uncertainty: Array
    far: Mask
    method: str
    errors: Mapping[str, float]
    findings: tuple[Finding, ...] = ()


def complete(alignment: Alignment, method: str | None = None) -> Completion:
    """Estimate every missing landmark.

    Parameters
    ----------
    alignment : Alignment
        Of shapes some of whose landmarks are missing.
    method : {"statistics", "warp", "spline"}, optional
        By default the one that errs least on landmarks of this set that are known.

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
    if method not in (None, *METHODS):
        raise ValueError(
            f"The 'method' parameter of complete must be one of {listed(METHODS)}, or None. "
            f"Got {method!r} instead."
        )
    shapes = alignment.shapes
    if shapes.visible.all():
        none = frozen(np.zeros(shapes.visible.shape, dtype=bool))
        zero = frozen(np.zeros(none.shape))
        return Completion(shapes, none, zero, none, "", MappingProxyType({}))
    with own_threads():
        done = _completed(alignment, method)
    warn_of(done.findings)
    return done


def _completed(alignment: Alignment, method: str | None) -> Completion:
    shapes, flip = alignment.shapes, _flips(alignment)
    points = shapes.points * flip
    trials = _possible(alignment, points)
    ways = _ways(alignment, points, flip, trials)
    tried = {name: _tried(way, points, trials) for name, way in ways.items()}
    errors = {name: error for name, (error, _) in tried.items()}
    used = method or min(errors, key=errors.__getitem__)
    if used not in ways:
        raise DefgpaError(
            f"Statistics need at least {_FEWEST + 1} shapes; there are {len(points)}. "
            "Use method='warp'."
        )
    _, calibration = tried[used]
    whole, deviation = np.array(shapes.points), np.zeros(shapes.visible.shape)
    for i in np.flatnonzero(~shapes.visible.all(axis=1)):
        missing, found = ~shapes.visible[i], ways[used](int(i), points[i])
        whole[i, missing] = (found.points * flip[i])[missing]
        deviation[i] = found.deviation * calibration
    far = _far(alignment)
    return Completion(
        shapes.with_points(whole).with_metadata(**_marked(shapes)),
        frozen(~shapes.visible),
        frozen(deviation),
        frozen(far),
        used,
        MappingProxyType(errors),
        _far_findings(shapes, far),
    )


def _marked(shapes: Shapes) -> dict[str, Any]:
    """Which landmarks were estimated, after what the shapes knew: a column, and the comments."""
    labels = np.array(shapes.landmarks, dtype=object)
    marks = ["; ".join(labels[~own]) for own in shapes.visible]
    nothing = [None] * len(shapes)
    rows = zip(shapes.metadata.get("variables") or nothing, marks, strict=True)
    said = zip(shapes.metadata.get("comments") or nothing, marks, strict=True)
    return {
        "variables": tuple({**(row or {}), "estimated": mark} for row, mark in rows),
        "comments": tuple(
            "; ".join(filter(None, (words, mark and f"estimated: {mark}"))) or None
            for words, mark in said
        ),
    }


# The ways


def _ways(
    alignment: Alignment, points: Array, flip: Array, trials: Sequence[Trial]
) -> dict[str, Way]:
    visible = alignment.shapes.visible
    back = brought_back(alignment.warps, alignment.reference) * flip
    whole = np.where(visible[..., None], points, back)
    ways = {
        "warp": _by_warp(alignment, points, trials),
        "spline": _by_spline(whole, np.asarray(visible.all(axis=1))),
    }
    if len(points) > _FEWEST:
        ways["statistics"] = _by_statistics(whole, points, trials)
    return ways


def _by_statistics(whole: Array, points: Array, trials: Sequence[Trial]) -> Way:
    """The conditional mean of the Gaussian of all other specimens that show enough.

    With the best dials; small gaps of the specimens it is made of are estimated the same way.
    """
    numbers = _showing_enough(points)
    place = {int(number): k for k, number in enumerate(numbers)}
    own, filled = points[numbers], whole[numbers]
    mapped = [replace(t, specimen=place[t.specimen]) for t in trials if t.specimen in place]
    dials = chosen_dials(rotated_onto_mean(unit_size(filled)), own, mapped)
    specimens = rotated_onto_mean(unit_size(refilled(filled, own, dials, rounds=2)))
    return lambda i, own: ShapeGaussian(specimens[numbers != i], dials).completed(own)


def _showing_enough(points: Array) -> Index:
    """Specimens with most of their landmarks; all of them where such are few.

    What is filled into a broken one is made of the others: it tells nothing new, and would
    whisper to a trial what was hidden from it.
    """
    shown = np.flatnonzero((~np.isnan(points[..., 0])).mean(axis=1) > 0.5)
    return shown if len(shown) > max(_FEWEST, len(points) // 4) else np.arange(len(points))


def _by_warp(alignment: Alignment, points: Array, trials: Sequence[Trial]) -> Way:
    """warp⁻¹(S), and its misses of what is seen carried along by a smooth field.

    The field is the conditional mean K_hs (K_ss + ρI)⁻¹ of the misses, K Gaussian over the
    reference; of several, the one that carries the misses of the trials best.
    """
    S = alignment.reference
    tried = []
    for trial in trials:
        own = trial.shown(points)
        asked = asked_landmarks(S, ~np.isnan(own[:, 0]))
        tried.append((trial, own, _returned(alignment, trial.specimen, own), asked))

    def error(dials: Dials) -> float:
        total = 0.0
        for trial, own, returned, asked in tried:
            found = _with_misses(S, own, returned, asked, dials)
            total += squared_errors(found, points[trial.specimen], trial.hidden).sum()
        return total

    fields = [Dials(noise, reach=r) for r in (0.15, 0.3, 0.6) for noise in (0.03, 0.3, 3.0)]
    dials = min(fields, key=error)

    def estimate(i: int, own: Array) -> Estimate:
        hidden, returned = np.isnan(own[:, 0]), _returned(alignment, i, own)
        asked = asked_landmarks(S, ~hidden)
        K, factor = _kernels(S, hidden, asked, dials)
        unknown = 1.0 - np.einsum("hs,sh->h", K, cho_solve(factor, K.T))
        spread = np.sqrt(np.maximum(unknown, 0.0) + dials.noise)
        deviation = np.zeros(len(own))
        deviation[hidden] = spread * rms((own - returned)[asked])
        return Estimate(_with_misses(S, own, returned, asked, dials), deviation)

    return estimate


def _returned(alignment: Alignment, i: int, own: Array) -> Array:
    """(m, d): the reference in specimen i.

    Where the specimen shows a landmark that is hidden for once, its share in the reference S_j,
    about the mean of v images, is taken out: S_j + (S_j − image) / (v − 1).
    """
    shapes = alignment.shapes
    shown = shapes.visible[i] & np.isnan(own[:, 0]) & (shapes.views > 1)
    S = np.array(alignment.reference)
    S[shown] += (S - alignment.aligned[i])[shown] / (shapes.views[shown, None] - 1)
    return np.asarray(alignment.register(own).inverse()(S))


def _with_misses(S: Array, own: Array, returned: Array, asked: Index, dials: Dials) -> Array:
    """(m, d): the reference in the specimen, its misses of those asked carried along."""
    hidden, points = np.isnan(own[:, 0]), np.array(own)
    K, factor = _kernels(S, hidden, asked, dials)
    points[hidden] = returned[hidden] + K @ cho_solve(factor, (own - returned)[asked])
    return points


def _kernels(
    S: Array, hidden: Mask, asked: Index, dials: Dials
) -> tuple[Array, tuple[Array, bool]]:
    """K_hs, and the factor of K_ss + ρI."""
    width = dials.reach * rms_radius(S)
    K_hs, K_ss = (gaussian_kernel(S[rows], S[asked], width) for rows in (hidden, asked))
    return K_hs, cho_factor(K_ss + dials.noise * np.eye(len(asked)))


def _by_spline(points: Array, whole: Mask) -> Way:
    """The mean of the complete specimens through the interpolating thin-plate spline.

    The mean is geomorph's: of tangent coordinates, each specimen at its own size again; of the
    shapes (n, m, d) that are whole, or of all where hardly any is.
    """
    numbers = np.flatnonzero(whole if whole.sum() > 1 else np.ones_like(whole))
    specimens = tangent_space(points[numbers])
    specimens *= centroid_sizes(points[numbers])[:, None, None]

    def estimate(i: int, own: Array) -> Estimate:
        mean = specimens[numbers != i].mean(axis=0)
        seen = ~np.isnan(own[:, 0])
        asked = asked_landmarks(mean, seen)
        points, distance = np.array(own), np.zeros(len(own))
        points[~seen] = interpolating_spline(mean[asked], own[asked])(mean[~seen])
        width = rms_radius(own[seen])
        distance[~seen] = cdist(mean[~seen], mean[asked]).min(axis=1) * width
        return Estimate(points, distance)

    return estimate


# The trials


def _tried(way: Way, points: Array, trials: Sequence[Trial]) -> tuple[float, float]:
    """How far a way is from what was hidden, and what to multiply its deviations with.

    The error is RMS over centroid size; deviations are then as large as errors.
    """
    squared, promised = [], []
    for trial in trials:
        own = points[trial.specimen]
        found = way(trial.specimen, trial.shown(points))
        squared.append(squared_errors(found.points, own, trial.hidden))
        seen = own[~np.isnan(own[:, 0])]
        size = ((seen - seen.mean(axis=0)) ** 2).sum()
        promised.append(found.deviation[trial.hidden] ** 2 / size)
    mean_square = np.concatenate(squared).mean()
    calibration = np.sqrt(mean_square / np.concatenate(promised).mean())
    return float(np.sqrt(mean_square)), float(calibration)


def _possible(alignment: Alignment, points: Array) -> list[Trial]:
    """The trials that leave enough of a specimen to bring it onto the reference."""
    found = []
    for trial in hidden_for_once(alignment.shapes.visible, alignment.shapes.n_dims):
        try:
            alignment.register(trial.shown(points))
        except DegenerateShapeError:  # what is left lies on a line
            continue
        found.append(trial)
    if not found:
        raise DegenerateShapeError(
            "The shapes show too few landmarks to hide one and find it again, so no estimate of a "
            "missing one could be trusted. Drop the shapes with missing landmarks."
        )
    return found


# What is told


def _far(alignment: Alignment) -> Mask:
    """(n, m): missing, and farther from the nearest seen landmark than these are wide (RMS)."""
    S, visible = alignment.reference, alignment.shapes.visible
    far = np.zeros(visible.shape, dtype=bool)
    for i, seen in enumerate(visible):
        if not seen.all():
            width = rms_radius(S[seen])
            far[i, ~seen] = cdist(S[~seen], S[seen]).min(axis=1) > width
    return far


def _far_findings(shapes: Shapes, far: Mask) -> tuple[Finding, ...]:
    names, count = tuple(compress(shapes.names, np.asarray(far.any(axis=1)))), int(far.sum())
    return (Finding(Problem.FAR_ESTIMATES, names, values={"count": count}),) if names else ()


def _flips(alignment: Alignment) -> Array:
    """(n, 1, d): −1 on the first axis of mirrored specimens, which have no place in a mean."""
    flip = np.ones((len(alignment.shapes), 1, alignment.shapes.n_dims))
    flip[alignment.diagnostics.votes < 0, 0, 0] = -1.0
    return flip
