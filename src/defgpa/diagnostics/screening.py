"""A look at the shapes before anything is fitted: what seems wrong, and where.

All shapes, made equally large, are brought together by similarities that may mirror. A specimen
that fits clearly better mirrored, two landmarks that would fit better exchanged, one that lies
somewhere else, a shape far from all others, one of quite another size (other units?), and one
that is there twice are named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import fdtrc

from defgpa._arrays import Array, Mask, rms, rms_radius
from defgpa.alignment import Alignment
from defgpa.diagnostics.checks import on_shared_landmarks, require_extended, require_linked
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.diagnostics.planarity import check_planarity
from defgpa.diagnostics.wording import name_option
from defgpa.errors import ShapeError
from defgpa.frames import Frames
from defgpa.procrustes import ORTHOGONAL_SIMILARITY, fit_motions
from defgpa.shapes import Shapes
from defgpa.solvers.proportions import compute_moments, find_sides
from defgpa.solvers.registration import MotionRegistration
from defgpa.solvers.rigid import fit_rigid
from defgpa.tuning import DEFAULT, Tuning


@dataclass(frozen=True, eq=False)
class Screening:
    """What looks wrong in a set of shapes.

    Attributes
    ----------
    sizes : array (n,)
        How large each shape is, all its landmarks seen, against the median of the shapes.
    errors : array (n,)
        RMS distance of each shape from the common mean after similarities, relative to its size.
    mirrored : tuple of str
        Shapes that fit clearly better mirrored than most others do.
    outliers : tuple of str
        Shapes much farther from the mean than the others.
    other_size : tuple of str
        Shapes of quite another size: other units?
    exchanged : tuple of (str, str, str)
        Shape and two landmarks that would fit much better exchanged.
    misplaced : tuple of (str, str)
        Shape and a landmark of it that lies far from where the other shapes have it.
    coincident : tuple of (str, str, str)
        Shape and two of its landmarks with the very same coordinates.
    repeated : tuple of (str, str)
        Shape and an earlier one with the very same coordinates.
    """

    sizes: Array
    errors: Array
    mirrored: tuple[str, ...]
    outliers: tuple[str, ...]
    other_size: tuple[str, ...]
    exchanged: tuple[tuple[str, str, str], ...]
    misplaced: tuple[tuple[str, str], ...]
    coincident: tuple[tuple[str, str, str], ...]
    repeated: tuple[tuple[str, str], ...]


def screen(shapes: Shapes, tuning: Tuning = DEFAULT) -> Screening:
    """Look for mirrored specimens, exchanged landmarks, outliers, other units, repetitions.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa import Shapes
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(20, 2)) + 0.02 * rng.normal(size=(8, 20, 2))
    >>> points[3, :, 0] *= -1
    >>> points[5, [2, 7]] = points[5, [7, 2]]
    >>> found = screen(Shapes(points))
    >>> found.mirrored, found.exchanged
    (('shape_4',), (('shape_6', '3', '8'),))
    """
    shapes.require_alignable()
    if (shapes.views < 2).all():
        raise ShapeError(
            "No landmark is seen in more than one shape. If landmarks are called differently from "
            f"file to file, {name_option('match', 'position')} goes by their order."
        )
    core = on_shared_landmarks(shapes)
    require_linked(core)
    frames = Frames.of(core.points, core.visible)
    require_extended(frames, core.names)
    # equally large: or one in micrometres would be the mean of those in metres
    points = core.points / frames.size[:, None, None]
    fit = fit_rigid(points, ORTHOGONAL_SIMILARITY, core.names)
    aligned = (points @ fit.matrices + fit.offsets[:, None]) / rms_radius(fit.reference)
    reference = fit.reference / rms_radius(fit.reference)
    errors = np.sqrt(np.nanmean(((aligned - reference) ** 2).sum(axis=2), axis=1))
    scales = np.abs(np.linalg.det(fit.matrices)) ** (1.0 / core.n_dims)
    sizes = _divide_by_median(frames.size / scales)
    moments = compute_moments(reference, frames.centred, frames.visible)
    side = find_sides(moments, np.eye(core.n_dims))
    exchanged = _find_exchanged(core, reference, aligned, tuning)
    involved = {(shape, label) for shape, *pair in exchanged for label in pair}
    return Screening(
        sizes=sizes,
        errors=errors,
        mirrored=_select_names(core, side.votes * side.majority < 0),
        outliers=_select_names(core, _find_outliers(errors, core.n_dims, tuning)),
        other_size=_select_names(core, _has_other_size(sizes, tuning)),
        exchanged=tuple(exchanged),
        misplaced=tuple(
            one for one in _find_misplaced(core, aligned, tuning) if one not in involved
        ),
        coincident=tuple(_find_coincident(core)),
        repeated=tuple(_find_repeated(shapes)),
    )


def mirrored_against(reference: Array, shapes: Shapes) -> tuple[Finding, ...]:
    """A finding where shapes lie clearly mirrored against most others.

    Parameters
    ----------
    reference : array (m, d)
        What they have in common, NaN where it is not known.
    shapes : Shapes
        In any pose and size.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(20, 2)) + 0.02 * rng.normal(size=(8, 20, 2))
    >>> points[3, :, 0] *= -1
    >>> mirrored_against(points[0], Shapes(points))[0].shapes
    ('shape_4',)
    """
    known = ~np.isnan(reference[:, 0])
    frames = Frames.of(shapes.points, shapes.visible & known)
    axes = np.where(known[:, None], reference, 0.0)
    side = find_sides(compute_moments(axes, frames.centred, frames.visible), np.eye(shapes.n_dims))
    names = _select_names(shapes, side.votes * side.majority < 0)
    return (Finding(Problem.MIRRORED, shapes=names),) if names else ()


def input_findings(alignment: Alignment, frames: Frames, tuning: Tuning) -> tuple[Finding, ...]:
    """What seems wrong with the shapes of an alignment, as `screen` would name it.

    The sizes are looked at always, the rest only where a landmark is far from its place after the
    best similarities: a fit of sound shapes pays next to nothing for it. Beyond
    ``tuning.screened_landmarks`` landmarks in all shapes together nothing is looked at.
    """
    if alignment.shapes.visible.size > tuning.screened_landmarks:
        return ()
    cheap = tuple(_cheap_findings(alignment, frames, tuning))
    if not _has_outlying_landmark(alignment, tuning):
        return cheap
    try:
        return (*cheap, *_screening_findings(screen(alignment.shapes, tuning), alignment, tuning))
    except ShapeError:  # what cannot be brought together by similarities may still be warped
        return cheap


_EXPLAINS = frozenset({Problem.EXCHANGED_LANDMARKS, Problem.MISPLACED_LANDMARK, Problem.FAR_SHAPE})


def with_deformation(
    findings: tuple[Finding, ...], alignment: Alignment, tuning: Tuning
) -> tuple[Finding, ...]:
    """The findings, with a large deformation among them unless the input explains it.

    Whatever the method: shapes that differ from the reference by more than
    ``tuning.large_deformation`` of its size after the best similarities, mirrored or not; or
    less, where they are so few that their mean may well be off.
    """
    kinds = {finding.problem for finding in findings}
    if Problem.PLANAR_SHAPES in kinds:
        findings = tuple(f for f in findings if f.problem is not Problem.UNDETERMINED_WARP)
    if kinds & _EXPLAINS:
        return tuple(f for f in findings if f.problem is not Problem.LARGE_DEFORMATION)
    too_many = alignment.shapes.visible.size > tuning.screened_landmarks
    if Problem.LARGE_DEFORMATION in kinds or too_many:
        return findings
    points, reference = alignment.shapes.points, alignment.reference
    squares = alignment.squared_distances
    if (alignment.diagnostics.votes <= 0).any():  # the other side may be the nearer one
        away = fit_motions(points, reference, motions=ORTHOGONAL_SIMILARITY)(points) - reference
        squares = np.einsum("nmd,nmd->nm", away, away)
    residual = float(np.sqrt(squares[alignment.counted].mean())) / rms_radius(reference)
    chance = chance_off(residual, len(points), alignment.shapes.n_dims, tuning.off)
    figures = {"residual": residual}
    if chance > tuning.chance_off:
        figures |= {"chance": chance, "off": tuning.off}
    elif residual <= tuning.large_deformation:
        return findings
    return (*findings, Finding(Problem.LARGE_DEFORMATION, values=figures))


def chance_off(residual: float, n: int, dim: int, off: float) -> float:
    """The chance that the mean of n shapes is off by more than ``off`` of its size.

    ``residual`` is the RMS distance of the shapes from it. Let their deformations be normal, of
    variance v in each of q directions: the error ε of the mean has n ‖ε‖² ~ v χ²(q), the distances
    n residual² ~ v χ²(q (n − 1)), both independent. The variance cancels,

        ‖ε‖² (n − 1) / residual²  ~  F(q, q (n − 1)).

    The fewer the directions, the larger the chance. Shapes of one kind differ at least by affine
    maps that are no similarities, so q = d (d + 1) / 2 − 1 of them are assumed.

    Examples
    --------
    >>> [round(chance_off(0.15, n, 2, off=0.15), 2) for n in (2, 3, 5, 10)]
    [0.5, 0.25, 0.06, 0.0]
    """
    if not residual > 0.0:
        return 0.0
    q = _affine_directions(dim)
    return float(fdtrc(q, q * (n - 1), (n - 1) * (off / residual) ** 2))


def _affine_directions(dim: int) -> int:
    """How many ways there are to stretch and shear a shape: symmetric matrices, but for size."""
    return dim * (dim + 1) // 2 - 1


def _cheap_findings(alignment: Alignment, frames: Frames, tuning: Tuning) -> Iterator[Finding]:
    """Other sizes, thin shapes, lost digits and repetitions: what costs next to nothing to see.

    Sizes by the similarities onto the reference: a shape that shows little of itself is not small.
    """
    shapes = alignment.shapes
    odd = _select_names(
        shapes, _has_outlying_size(_divide_by_median(1.0 / alignment.similarities.scale), tuning)
    )
    if odd:
        yield Finding(
            Problem.OTHER_SIZE, odd, values={"times": tuning.other_size, "of": len(shapes)}
        )
    if not isinstance(alignment.registration, MotionRegistration):
        yield from _find_thin_shapes(alignment, frames, tuning)
    away = np.linalg.norm(frames.centre, axis=1) / frames.size
    lost = _select_names(shapes, away > tuning.lost_digits)
    if lost:
        yield Finding(Problem.FAR_FROM_ORIGIN, lost, values={"ratio": float(away.max())})
    if shapes.visible.size <= tuning.compared_landmarks:
        yield from (Finding(Problem.REPEATED_SHAPE, pair) for pair in _find_repeated(shapes))


def _find_thin_shapes(alignment: Alignment, frames: Frames, tuning: Tuning) -> Iterator[Finding]:
    """Report shapes that are as thick as rounding, which a warp takes for a direction."""
    planar = check_planarity(alignment.shapes, tuning)
    if planar is not None:
        yield planar
        return
    is_thin = frames.thin(tuning.flat)[:, -1]
    is_reported = any(
        finding.problem is Problem.UNDETERMINED_WARP for finding in alignment.findings
    )
    if is_thin.any() and not is_reported:
        names = _select_names(alignment.shapes, is_thin)
        yield Finding(Problem.THIN_SHAPE, names, values={"thickness": tuning.flat})


def _has_outlying_landmark(alignment: Alignment, tuning: Tuning) -> bool:
    """Return whether any landmark is an outlier, in absolute terms or relative to medians."""
    seen = alignment.shapes.visible
    off = np.where(seen, alignment.squared_distances / rms_radius(alignment.reference) ** 2, -1.0)
    if off[seen].mean() > tuning.spread**2:
        return True
    farthest = off.max()
    if not tuning.near**2 < farthest <= tuning.far_off**2:
        return bool(farthest > tuning.far_off**2)
    level = np.maximum(_medians(off, seen), _medians(off.T, seen.T).T)
    return bool((off > tuning.stray**2 * level).any())


def _medians(off: Array, seen: Mask) -> Array:
    """(n, 1): the median of what is seen in each row; what is not seen is below zero."""
    count = seen.sum(axis=1)
    middle = off.shape[1] - count + (count - 1) // 2
    sorted_there = np.partition(off, sorted(set(middle.tolist())), axis=1)
    return sorted_there[np.arange(len(off)), middle][:, None]


def _screening_findings(
    found: Screening, alignment: Alignment, tuning: Tuning
) -> Iterator[Finding]:
    if found.mirrored and not alignment.mirrored:
        yield Finding(Problem.MIRRORED, shapes=found.mirrored)
    for name, *pair in found.exchanged[: tuning.most_strays]:
        yield Finding(Problem.EXCHANGED_LANDMARKS, shapes=(name,), landmarks=tuple(pair))
    for name, label in found.misplaced[: tuning.most_strays]:
        yield Finding(Problem.MISPLACED_LANDMARK, shapes=(name,), landmarks=(label,))
    # shapes far from the others for no reason that was found
    explained = {name for name, *_ in (*found.exchanged, *found.misplaced)} | {*found.mirrored}
    usual = float(np.median(found.errors))
    for name in found.outliers[: tuning.most_strays]:
        error = float(found.errors[alignment.shapes.index(name)])
        if error > tuning.least_elsewhere and name not in explained:
            yield Finding(Problem.FAR_SHAPE, (name,), values={"error": error, "usual": usual})


def of_other_size(shapes: Shapes, tuning: Tuning = DEFAULT) -> tuple[str, ...]:
    """Shapes of quite another size by their visible landmarks alone: a quick look.

    Examples
    --------
    >>> import numpy as np
    >>> from defgpa import Shapes
    >>> points = np.random.default_rng(0).normal(size=(4, 9, 2))
    >>> points[2] *= 1000
    >>> of_other_size(Shapes(points))
    ('shape_3',)
    """
    size = Frames.of(shapes.points, shapes.visible).size
    return _select_names(shapes, _has_other_size(_divide_by_median(size), tuning))


def guess_units(shapes: Shapes) -> str:
    """Describe the units that the coordinates probably have, in a few words."""
    points = shapes.points[shapes.visible]
    extent = float(np.nanmax(np.ptp(points, axis=0)))
    if shapes.metadata.get("space"):
        return "millimetres (anatomical coordinates)"
    scales = shapes.metadata.get("scales") or ()
    if None in scales:
        return "mixed: some specimens state a scale, others do not"
    if scales:
        return "real units (the file states a scale)"
    if shapes.n_dims == 2 and points.min() >= 0 and extent > 50:
        return "probably pixels"
    if extent <= 5:
        return "unknown; perhaps already normalised"
    return "unknown"


def _select_names(shapes: Shapes, chosen: Mask) -> tuple[str, ...]:
    return tuple(compress(shapes.names, chosen))


def _find_outliers(errors: Array, dim: int, tuning: Tuning) -> Mask:
    """By the median and the median deviation, which a few outliers cannot move; but not by chance.

    The median deviation of few shapes is sometimes small by chance. A far shape has also moved the
    mean, and with it the errors of all others, by its own error over their number. With that taken
    out, the ratio of the squared errors has an F distribution (as in `chance_off`), and n times
    its tail bounds the chance for the largest of n.
    """
    middle = np.median(errors)
    spread = 1.4826 * np.median(np.abs(errors - middle))
    far = (errors - middle > tuning.far * spread) & (errors > 2 * middle) & (errors > 1e-9)
    n, k, q = len(errors), int(far.sum()), _affine_directions(dim)
    if not 0 < k < n - 1:
        return np.asarray(far)
    squares = errors**2
    moved = squares[far].sum() / (n - k) ** 2
    own = np.maximum(squares[~far] - moved, 0.0).sum() / (n - k - 1)
    ratio = squares * n / (n - 1) / max(own, np.finfo(np.float64).eps * squares.max())
    return np.asarray(far & (n * fdtrc(q, q * (n - k - 1), ratio) < tuning.chance_far))


def _has_outlying_size(sizes: Array, tuning: Tuning) -> Mask:
    """Of other size, and none in between: young and adults share a unit, metres and inches not."""
    odd = _has_other_size(sizes, tuning)
    usual = sizes[~odd]
    if not odd.any() or not len(usual):
        return odd
    large, small = odd & (sizes > 1.0), odd & (sizes < 1.0)
    if large.any() and sizes[large].min() < tuning.none_between * usual.max():
        odd = odd & ~large
    if small.any() and sizes[small].max() * tuning.none_between > usual.min():
        odd = odd & ~small
    return odd


def _has_other_size(sizes: Array, tuning: Tuning) -> Mask:
    return np.asarray((sizes > tuning.other_size) | (sizes < 1.0 / tuning.other_size))


def _divide_by_median(sizes: Array) -> Array:
    return np.asarray(sizes / np.median(sizes))


def _find_exchanged(
    shapes: Shapes, reference: Array, aligned: Array, tuning: Tuning
) -> list[tuple[str, str, str]]:
    """Pairs that lie far off, and at home when exchanged."""
    if shapes.n_landmarks > tuning.exchange_landmarks:
        return []
    found = []
    off = np.linalg.norm(aligned - reference, axis=2)
    doubtful = off > tuning.doubtful * np.nanmedian(off, axis=1)[:, None]
    for i in np.flatnonzero(doubtful.sum(axis=1) > 1):
        seen = np.flatnonzero(shapes.visible[i])
        for a, b in _find_exchanges(shapes.points[i, seen], reference[seen], tuning):
            pair = shapes.landmarks[seen[a]], shapes.landmarks[seen[b]]
            found.append((shapes.names[i], *pair))
    return found


def _find_exchanges(points: Array, reference: Array, tuning: Tuning) -> list[tuple[int, int]]:
    """The exchanges, greedily: the pair that gains most, as long as there is one."""
    points = points.copy()
    found: list[tuple[int, int]] = []
    moved = _superimpose(points, reference)
    while len(found) < tuning.most_strays:
        distance = cdist(moved, reference, "sqeuclidean")
        stay = np.diag(distance)
        # both must be away and come home: one alone far away gains by any exchange
        away = stay > tuning.doubtful**2 * np.median(stay)
        home = away[:, None] & (distance < stay[:, None] / 4)
        gain = np.where(home & home.T, stay[:, None] + stay[None, :] - distance - distance.T, 0.0)
        if not gain.any():
            break
        a, b = sorted(np.unravel_index(int(gain.argmax()), gain.shape))
        points[[a, b]] = points[[b, a]]
        better = _superimpose(points, reference)
        if rms(better - reference) >= rms(moved - reference):
            break
        moved = better
        found.append((int(a), int(b)))
    return found


def _superimpose(points: Array, reference: Array) -> Array:
    return np.asarray(fit_motions(points, reference, motions=ORTHOGONAL_SIMILARITY)(points))


def _find_misplaced(shapes: Shapes, aligned: Array, tuning: Tuning) -> list[tuple[str, str]]:
    """Landmarks that deviate far more than this landmark does elsewhere, and this shape otherwise.

    From the median of the shapes, which one of them cannot move.
    """
    middle = np.nanmedian(aligned, axis=0)
    off = np.linalg.norm(aligned - middle, axis=2)
    usual, worst = np.nanmedian(off, axis=0), np.nanmax(off, axis=1)
    level = np.maximum(tuning.least_elsewhere, tuning.doubtful * np.nanmedian(off, axis=1))
    doubtful = worst > level
    found = []
    for i in np.flatnonzero(doubtful):
        seen = np.flatnonzero(shapes.visible[i])
        strays = _find_strays(aligned[i, seen], middle[seen], usual[seen], tuning)
        found += [(shapes.names[i], shapes.landmarks[seen[j]]) for j in strays]
    return found


def _find_strays(points: Array, middle: Array, usual: Array, tuning: Tuning) -> list[int]:
    """The worst landmark, and the next: each judged by a fit of the others alone."""
    kept = np.ones(len(points), dtype=bool)
    found: list[int] = []
    while len(found) < tuning.most_strays and kept.sum() > 2 * points.shape[1] + 2:
        worst = _find_most_disturbing(points, middle, kept, tuning)
        kept[worst] = False
        off = _measure_distances(points, middle, kept)
        normal = max(float(np.median(off[kept])), float(usual[worst]))
        if off[worst] <= max(tuning.elsewhere * normal, tuning.least_elsewhere):
            break
        found.append(worst)
    return found


def _find_most_disturbing(points: Array, middle: Array, kept: Mask, tuning: Tuning) -> int:
    """The landmark without which the others fit best: one far away pulls the whole shape to it."""
    chosen = np.flatnonzero(kept)
    if len(chosen) > tuning.left_out_landmarks:
        return int(np.argmax(np.where(kept, _measure_distances(points, middle, kept), 0.0)))
    own, target = points[chosen], middle[chosen]
    others = ~np.eye(len(chosen), dtype=bool)
    motions = fit_motions(own[None], target[None], others, ORTHOGONAL_SIMILARITY)
    left = ((motions(own[None]) - target) ** 2).sum(axis=2)
    return int(chosen[np.where(others, left, 0.0).sum(axis=1).argmin()])


def _measure_distances(points: Array, middle: Array, kept: Mask) -> Array:
    """How far each point is from its place when some of them are fitted."""
    motion = fit_motions(points[kept], middle[kept], motions=ORTHOGONAL_SIMILARITY)
    return np.asarray(np.linalg.norm(motion(points) - middle, axis=1))


def _find_repeated(shapes: Shapes) -> list[tuple[str, str]]:
    first: dict[bytes, str] = {}
    points = shapes.points + 0.0  # −0 is 0
    pairs = ((name, own.tobytes()) for name, own in zip(shapes.names, points, strict=True))
    return [(name, first[own]) for name, own in pairs if first.setdefault(own, name) != name]


def _find_coincident(shapes: Shapes) -> list[tuple[str, str, str]]:
    found = []
    ordered = np.sort(shapes.points[..., 0], axis=1)
    for i in np.flatnonzero((np.diff(ordered, axis=1) == 0).any(axis=1)):
        first: dict[tuple[float, ...], int] = {}
        for j, place in enumerate(map(tuple, shapes.points[i].tolist())):
            a = first.setdefault(place, j)
            if a != j and shapes.visible[i, j]:
                found.append((shapes.names[i], shapes.landmarks[a], shapes.landmarks[j]))
    return found
