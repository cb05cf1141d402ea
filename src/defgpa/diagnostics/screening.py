"""Screen the input of a fit for mistakes: mirrored shapes, exchanged landmarks, outliers, units.

All shapes are scaled to the same size and superimposed by similarities that may mirror. Reported
are shapes that fit clearly better mirrored, pairs of landmarks that fit better exchanged, misplaced
landmarks, outlying shapes, shapes of a very different size (other units?) and copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import fdtrc

from defgpa.alignment import Alignment
from defgpa.arrays import Array, Index, Mask, compute_lengths, median_of_finite, rms, rms_radius
from defgpa.diagnostics.checks import drop_lone_landmarks, refuse_degenerate_shapes, require_linkage
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.diagnostics.planarity import check_planarity
from defgpa.diagnostics.wording import name_option
from defgpa.errors import DefgpaError, ShapeError
from defgpa.geometry import compute_moments, measure_geometry
from defgpa.procrustes import ORTHOGONAL_SIMILARITY, fit_motions
from defgpa.shapes import Shapes
from defgpa.solvers.proportions import find_sides
from defgpa.solvers.registration import MotionRegistration
from defgpa.solvers.rigid import fit_rigid
from defgpa.tuning import DEFAULT, Tuning


@dataclass(frozen=True, eq=False)
class Screening:
    """What looks wrong in a set of shapes.

    Attributes
    ----------
    sizes : array (n,)
        Size of each shape, over the landmarks it has, against the median of the shapes.
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
    core = drop_lone_landmarks(shapes)
    require_linkage(core.visible, core.names, core.n_dims)
    geometry = measure_geometry(core.points, core.visible)
    refuse_degenerate_shapes(geometry, core.names)
    # equally large: or one in micrometres would be the mean of those in metres
    points = core.points / geometry.size[:, None, None]
    fit = fit_rigid(points, ORTHOGONAL_SIMILARITY, core.names)
    aligned = (points @ fit.matrices + fit.offsets[:, None]) / rms_radius(fit.reference)
    reference = fit.reference / rms_radius(fit.reference)
    errors = np.sqrt(np.nanmean(((aligned - reference) ** 2).sum(axis=2), axis=1))
    scales = np.abs(np.linalg.det(fit.matrices)) ** (1.0 / core.n_dims)
    sizes = geometry.size / scales / np.median(geometry.size / scales)
    moments = compute_moments(reference, geometry)
    side = find_sides(moments, np.eye(core.n_dims))
    exchanged = _find_exchanges(core, reference, aligned, tuning)
    involved = {(shape, label) for shape, *pair in exchanged for label in pair}
    return Screening(
        sizes=sizes,
        errors=errors,
        mirrored=tuple(compress(core.names, side.votes * side.majority < 0)),
        outliers=tuple(compress(core.names, _find_outliers(errors, core.n_dims, tuning))),
        other_size=tuple(
            compress(core.names, (sizes > tuning.size_ratio) | (sizes < 1.0 / tuning.size_ratio))
        ),
        exchanged=tuple(exchanged),
        misplaced=tuple(
            misplacement
            for misplacement in _find_outlying_landmarks(core, aligned, tuning)
            if misplacement not in involved
        ),
        coincident=tuple(_find_coincident(core)),
        repeated=tuple(_find_copies(shapes)),
    )


def check_handedness(reference: Array, shapes: Shapes) -> tuple[Finding, ...]:
    """Report shapes that are clearly mirrored against most others.

    Parameters
    ----------
    reference : array (m, d)
        NaN where it is not known.
    shapes : Shapes
        In any pose and size.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(20, 2)) + 0.02 * rng.normal(size=(8, 20, 2))
    >>> points[3, :, 0] *= -1
    >>> check_handedness(points[0], Shapes(points))[0].shapes
    ('shape_4',)
    """
    is_known = ~np.isnan(reference[:, 0])
    geometry = measure_geometry(shapes.points, shapes.visible & is_known)
    axes = np.where(is_known[:, None], reference, 0.0)
    side = find_sides(compute_moments(axes, geometry), np.eye(shapes.n_dims))
    names = tuple(compress(shapes.names, side.votes * side.majority < 0))
    return (Finding(Problem.MIRRORED, shapes=names),) if names else ()


_EXPLANATIONS = frozenset(
    {Problem.EXCHANGED_LANDMARKS, Problem.MISPLACED_LANDMARK, Problem.FAR_SHAPE}
)


def add_input_findings(
    alignment: Alignment, tuning: Tuning, measure_influence: Callable[[int, Index], float]
) -> Alignment:
    """Check the shapes of an alignment, and add what is found to its findings.

    ``measure_influence`` takes the number of a shape and those of doubtful landmarks of it, and
    returns by how much the reference would change without them. It may raise a DefgpaError.
    Beyond ``tuning.screened_landmarks`` landmarks in all shapes together nothing is checked.
    """
    shapes, reference = alignment.shapes, alignment.reference
    if shapes.visible.size > tuning.screened_landmarks:
        return alignment
    # from the reference after the best similarities, relative to its size
    distances = compute_lengths(alignment.superimposed - reference) / rms_radius(reference)
    nearest = distances
    if (alignment.diagnostics.votes <= 0).any():  # the other side may be the nearer one
        mirrored = _superimpose(shapes.points, reference)
        nearest = compute_lengths(mirrored - reference) / rms_radius(reference)
    deformation = _check_deformation(alignment.compute_rmse(nearest), shapes, tuning)
    mistakes = []
    for finding in check_input(alignment, distances, tuning):
        values = finding.values
        if finding.landmarks and finding.shapes and shapes.visible.size < tuning.refitted_landmarks:
            doubtful = np.array([shapes.landmarks.index(label) for label in finding.landmarks])
            with suppress(DefgpaError):  # the others may not be linked without them
                change = measure_influence(shapes.index(finding.shapes[0]), doubtful)
                values = {**values, "change": change}
        mistakes.append(replace(finding, values=values))
    kinds, explained = {finding.problem for finding in mistakes}, set()
    if Problem.PLANAR_SHAPES in kinds:
        explained.add(Problem.UNDETERMINED_WARP)
    if kinds & _EXPLANATIONS:
        explained.add(Problem.LARGE_DEFORMATION)
    findings = [*alignment.findings, *mistakes]
    if all(finding.problem is not Problem.LARGE_DEFORMATION for finding in findings):
        findings += deformation
    return replace(alignment, findings=tuple(f for f in findings if f.problem not in explained))


def check_input(alignment: Alignment, distances: Array, tuning: Tuning) -> Iterator[Finding]:
    """Report mistakes in the shapes of an alignment.

    Other sizes, thin shapes, lost digits and copies are cheap to find. The shapes are screened only
    if a landmark is far from its place after the best similarities, so that a fit of sound shapes
    takes hardly longer. ``distances`` (n, m) from there are relative to the size of the reference.
    """
    shapes = alignment.shapes
    geometry = shapes.geometry

    # by the similarities onto the reference: a shape with few visible landmarks is not small
    sizes = 1.0 / alignment.similarities.scale
    names = tuple(compress(shapes.names, _has_outlying_size(sizes / np.median(sizes), tuning)))
    if names:
        factors = {"times": tuning.size_ratio, "of": len(shapes)}
        yield Finding(Problem.OTHER_SIZE, names, values=factors)

    # shapes no thicker than rounding errors, which a warp would follow
    if not isinstance(alignment.registration, MotionRegistration):
        problems = {finding.problem for finding in alignment.findings}
        is_thin = geometry.find_thin_axes(tuning.min_thickness)[:, -1]
        planar = check_planarity(shapes, tuning) if is_thin.any() else None
        if planar is not None:
            yield planar
        elif is_thin.any() and Problem.UNDETERMINED_WARP not in problems:
            names = tuple(compress(shapes.names, is_thin))
            yield Finding(Problem.THIN_SHAPE, names, values={"thickness": tuning.min_thickness})

    offsets = np.linalg.norm(geometry.centre, axis=1) / geometry.size
    names = tuple(compress(shapes.names, offsets > tuning.origin_distance))
    if names:
        yield Finding(Problem.FAR_FROM_ORIGIN, names, values={"ratio": float(offsets.max())})

    if shapes.visible.size <= tuning.compared_landmarks:
        yield from (Finding(Problem.REPEATED_SHAPE, pair) for pair in _find_copies(shapes))

    if _has_outlying_landmark(distances**2, tuning):
        try:
            screening = screen(shapes, tuning)
        except ShapeError:  # what cannot be brought together by similarities may still be warped
            return
        yield from _report_screening(screening, alignment, tuning)


def _check_deformation(residual: float, shapes: Shapes, tuning: Tuning) -> tuple[Finding, ...]:
    """Report a large deformation: shapes that differ much from the reference after similarities.

    By more than ``tuning.large_deformation`` of its size; or by less, if they are so few that their
    mean may well be off. ``residual`` is their RMS distance from it, relative to its size.
    """
    chance = compute_mean_error_probability(
        residual, shapes.n_shapes, shapes.n_dims, tuning.mean_error
    )
    figures = {"residual": residual}
    if chance > tuning.mean_error_chance:
        figures |= {"chance": chance, "off": tuning.mean_error}
    elif residual <= tuning.large_deformation:
        return ()
    return (Finding(Problem.LARGE_DEFORMATION, values=figures),)


def compute_mean_error_probability(residual: float, n: int, dim: int, offset: float) -> float:
    """Return the probability that the mean of n shapes is off by more than ``offset`` of its size.

    ``residual`` is the RMS distance of the shapes from it. Let their deformations be normal, of
    variance v in each of q directions: the error ε of the mean has n ‖ε‖² ~ v χ²(q), the distances
    n residual² ~ v χ²(q (n − 1)), both independent. The variance cancels,

        ‖ε‖² (n − 1) / residual²  ~  F(q, q (n − 1)).

    The fewer the directions, the larger the chance. Shapes of one kind differ at least by affine
    maps that are no similarities, so q = d (d + 1) / 2 − 1 of them are assumed.

    Examples
    --------
    >>> [round(compute_mean_error_probability(0.15, n, 2, offset=0.15), 2) for n in (2, 3, 5, 10)]
    [0.5, 0.25, 0.06, 0.0]
    """
    if not residual > 0.0:
        return 0.0
    q = dim * (dim + 1) // 2 - 1
    return float(fdtrc(q, q * (n - 1), (n - 1) * (offset / residual) ** 2))


def _has_outlying_landmark(squares: Array, tuning: Tuning) -> bool:
    """Return whether any landmark is an outlier, in absolute terms or relative to medians.

    ``squares`` (n, m) are squared distances of the landmarks from their places, NaN where missing.
    """
    visible = squares[~np.isnan(squares)]
    farthest = visible.max()
    if farthest > tuning.far_distance**2 or visible.mean() > tuning.rms_distance**2:
        return True
    if farthest <= tuning.near_distance**2:
        return False
    by_shape, by_landmark = median_of_finite(squares, 1), median_of_finite(squares, 0)
    usual = np.maximum(by_shape[:, None], by_landmark)
    return bool((squares > tuning.stray_ratio**2 * usual).any())


def _report_screening(
    screening: Screening, alignment: Alignment, tuning: Tuning
) -> Iterator[Finding]:
    if screening.mirrored and not alignment.mirrored:
        yield Finding(Problem.MIRRORED, shapes=screening.mirrored)
    for name, *pair in screening.exchanged[: tuning.max_strays]:
        yield Finding(Problem.EXCHANGED_LANDMARKS, shapes=(name,), landmarks=tuple(pair))
    for name, label in screening.misplaced[: tuning.max_strays]:
        yield Finding(Problem.MISPLACED_LANDMARK, shapes=(name,), landmarks=(label,))
    # shapes far from the others for no reason that was found
    is_faint = alignment.shapes.relative_weights.max(axis=1) < tuning.faint_weight
    explained = {
        *(name for name, *_ in (*screening.exchanged, *screening.misplaced)),
        *screening.mirrored,
        *compress(alignment.shapes.names, is_faint),  # no effect on the fit
    }
    median = float(np.median(screening.errors))
    for name in screening.outliers[: tuning.max_strays]:
        error = float(screening.errors[alignment.shapes.index(name)])
        if error > tuning.min_misplacement and name not in explained:
            yield Finding(Problem.FAR_SHAPE, (name,), values={"error": error, "usual": median})


def _find_outliers(errors: Array, dim: int, tuning: Tuning) -> Mask:
    """Return which shapes are outliers by the median deviation of the errors and an F test.

    The median and the median deviation do not depend on a few outliers, but the deviation of few
    shapes is sometimes small by chance. An outlier has also moved the mean, and with it the errors
    of all others, by its error over their number. Without that, the ratio of the squared errors has
    an F distribution (as in `compute_mean_error_probability`), and n times its tail bounds the
    probability for the largest of n.
    """
    middle = np.median(errors)
    spread = 1.4826 * np.median(np.abs(errors - middle))
    is_far = (
        (errors - middle > tuning.far_deviations * spread) & (errors > 2 * middle) & (errors > 1e-9)
    )
    n, k, q = len(errors), int(is_far.sum()), dim * (dim + 1) // 2 - 1
    if not 0 < k < n - 1:
        return np.asarray(is_far)
    squares = errors**2
    moved = squares[is_far].sum() / (n - k) ** 2
    variance = np.maximum(squares[~is_far] - moved, 0.0).sum() / (n - k - 1)
    ratio = squares * n / (n - 1) / max(variance, np.finfo(np.float64).eps * squares.max())
    return np.asarray(is_far & (n * fdtrc(q, q * (n - k - 1), ratio) < tuning.far_chance))


def _has_outlying_size(sizes: Array, tuning: Tuning) -> Mask:
    """Return which shapes (n,) differ in size from the others by a gap, which growth has not."""
    is_other_size = (sizes > tuning.size_ratio) | (sizes < 1.0 / tuning.size_ratio)
    usual_sizes = sizes[~is_other_size]
    if not is_other_size.any() or not len(usual_sizes):
        return is_other_size
    large, small = is_other_size & (sizes > 1.0), is_other_size & (sizes < 1.0)
    if large.any() and sizes[large].min() < tuning.size_gap * usual_sizes.max():
        is_other_size = is_other_size & ~large
    if small.any() and sizes[small].max() * tuning.size_gap > usual_sizes.min():
        is_other_size = is_other_size & ~small
    return is_other_size


def _find_exchanges(
    shapes: Shapes, reference: Array, aligned: Array, tuning: Tuning
) -> list[tuple[str, str, str]]:
    """Return pairs of landmarks far from their places that are near them once exchanged."""
    if shapes.n_landmarks > tuning.exchange_landmarks:
        return []
    exchanges = []
    distances = np.linalg.norm(aligned - reference, axis=2)
    doubtful = distances > tuning.doubtful_ratio * np.nanmedian(distances, axis=1)[:, None]
    for i in np.flatnonzero(doubtful.sum(axis=1) > 1):
        visible = np.flatnonzero(shapes.visible[i])
        for a, b in _find_exchanges_of_shape(shapes.points[i, visible], reference[visible], tuning):
            pair = shapes.landmarks[visible[a]], shapes.landmarks[visible[b]]
            exchanges.append((shapes.names[i], *pair))
    return exchanges


def _find_exchanges_of_shape(
    points: Array, reference: Array, tuning: Tuning
) -> list[tuple[int, int]]:
    """Find exchanged landmarks of one shape greedily: the pair that gains most, and so on."""
    points = points.copy()
    exchanges: list[tuple[int, int]] = []
    superimposed = _superimpose(points, reference)
    while len(exchanges) < tuning.max_strays:
        distance = cdist(superimposed, reference, "sqeuclidean")
        in_place = np.diag(distance)
        # both must be away and come home: one alone far away gains by any exchange
        is_far = in_place > tuning.doubtful_ratio**2 * np.median(in_place)
        is_home = is_far[:, None] & (distance < in_place[:, None] / 4)
        gain = np.where(
            is_home & is_home.T, in_place[:, None] + in_place[None, :] - distance - distance.T, 0.0
        )
        if not gain.any():
            break
        a, b = sorted(np.unravel_index(int(gain.argmax()), gain.shape))
        points[[a, b]] = points[[b, a]]
        better = _superimpose(points, reference)
        if rms(better - reference) >= rms(superimposed - reference):
            break
        superimposed = better
        exchanges.append((int(a), int(b)))
    return exchanges


def _superimpose(points: Array, reference: Array) -> Array:
    return np.asarray(fit_motions(points, reference, motions=ORTHOGONAL_SIMILARITY)(points))


def _find_outlying_landmarks(
    shapes: Shapes, aligned: Array, tuning: Tuning
) -> list[tuple[str, str]]:
    """Return landmarks that deviate far more than usual for the landmark and for the shape.

    Deviations are from the median of the shapes, which does not depend on a single one.
    """
    middle = np.nanmedian(aligned, axis=0)
    distances = np.linalg.norm(aligned - middle, axis=2)
    usual, worst = np.nanmedian(distances, axis=0), np.nanmax(distances, axis=1)
    level = np.maximum(
        tuning.min_misplacement, tuning.doubtful_ratio * np.nanmedian(distances, axis=1)
    )
    doubtful = worst > level
    misplaced = []
    for i in np.flatnonzero(doubtful):
        visible = np.flatnonzero(shapes.visible[i])
        strays = _find_outlying_points(aligned[i, visible], middle[visible], usual[visible], tuning)
        misplaced += [(shapes.names[i], shapes.landmarks[visible[j]]) for j in strays]
    return misplaced


def _find_outlying_points(points: Array, middle: Array, usual: Array, tuning: Tuning) -> list[int]:
    """Return misplaced landmarks of one shape, the worst first, each judged by a fit without it.

    Parameters
    ----------
    points, middle : array (p, d)
        The visible landmarks of the shape, and the median of them over shapes.
    usual : array (p,)
        The median distance of each landmark from its place.
    """
    is_fitted = np.ones(len(points), dtype=bool)
    outlying: list[int] = []
    while len(outlying) < tuning.max_strays and is_fitted.sum() > 2 * points.shape[1] + 2:
        worst = _find_most_disturbing(points, middle, is_fitted, tuning)
        is_fitted[worst] = False
        distances = _measure_distances(points, middle, is_fitted)
        normal = max(float(np.median(distances[is_fitted])), float(usual[worst]))
        if distances[worst] <= max(tuning.misplaced_ratio * normal, tuning.min_misplacement):
            break
        outlying.append(worst)
    return outlying


def _find_most_disturbing(points: Array, middle: Array, is_fitted: Mask, tuning: Tuning) -> int:
    """Return the landmark without which the others fit best, since an outlier moves the fit.

    Parameters
    ----------
    points, middle : array (p, d)
        Landmarks of a shape, and their places.
    is_fitted : array (p,) of bool
        The landmarks among which to search.
    """
    chosen = np.flatnonzero(is_fitted)
    if len(chosen) > tuning.left_out_landmarks:
        return int(
            np.argmax(np.where(is_fitted, _measure_distances(points, middle, is_fitted), 0.0))
        )
    source, target = points[chosen], middle[chosen]
    others = ~np.eye(len(chosen), dtype=bool)
    motions = fit_motions(source[None], target[None], others, ORTHOGONAL_SIMILARITY)
    squares = ((motions(source[None]) - target) ** 2).sum(axis=2)
    return int(chosen[np.where(others, squares, 0.0).sum(axis=1).argmin()])


def _measure_distances(points: Array, middle: Array, is_fitted: Mask) -> Array:
    """Return how far (p,) each point is from its place after a fit of some of them.

    Parameters
    ----------
    points, middle : array (p, d)
        Landmarks of a shape, and their places.
    is_fitted : array (p,) of bool
        The landmarks that the motion is fitted to.
    """
    motion = fit_motions(points[is_fitted], middle[is_fitted], motions=ORTHOGONAL_SIMILARITY)
    return np.asarray(np.linalg.norm(motion(points) - middle, axis=1))


def _find_copies(shapes: Shapes) -> list[tuple[str, str]]:
    first: dict[bytes, str] = {}
    points = shapes.points + 0.0  # −0 is 0
    pairs = (
        (name, coordinates.tobytes())
        for name, coordinates in zip(shapes.names, points, strict=True)
    )
    return [
        (name, first[coordinates])
        for name, coordinates in pairs
        if first.setdefault(coordinates, name) != name
    ]


def _find_coincident(shapes: Shapes) -> list[tuple[str, str, str]]:
    coincident = []
    ordered = np.sort(shapes.points[..., 0], axis=1)
    for i in np.flatnonzero((np.diff(ordered, axis=1) == 0).any(axis=1)):
        first: dict[tuple[float, ...], int] = {}
        for j, place in enumerate(map(tuple, shapes.points[i].tolist())):
            a = first.setdefault(place, j)
            if a != j and shapes.visible[i, j]:
                coincident.append((shapes.names[i], shapes.landmarks[a], shapes.landmarks[j]))
    return coincident
