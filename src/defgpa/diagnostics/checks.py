r"""Refuse shapes that cannot be fitted, and check the solution of a fit.

Before a fit: points that are too few, on a line, or all in one place determine no warp. A landmark
that is visible in one shape only does not constrain the reference. Two groups of shapes are linked
when they share at least d + 1 landmarks; a set that is not linked has no common reference, although
the equations can be solved.

After a fit: every check takes the diagnostics of a solution and yields findings: the same for a fit
on this machine, for a fold of a cross-validation and on a cluster.

The visibility pattern does not show parts of a set that are linked as by a hinge. The cheapest
direction v beyond the axes X of the reference is a deformation in a sound set: the visible rows of
[X v] have one dimension more than the shape. If the landmarks that link two parts lie on a line or
in a plane, v moves one part against the other, and the visible rows of [X v] in every shape, which
has landmarks of one part only, are an affine map of the shape, of no more than d dimensions:

    cohesion = (1/(k − d)) Σ_i (λ_{d+1} + … + λ_k)_i  /  (1/k) Σ_i (λ_1 + … + λ_k)_i,

λ_1 ≥ … ≥ λ_k the squared singular values of the visible rows of the k columns in shape i, centred.

Where motions or affine maps are fitted there is no such direction. There two parts are firmly
linked if the landmarks they share are spread enough against the noise: with σ their spread along
the axis that must not vanish, one part may be turned against the other by about noise / σ.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from pathlib import Path

import numpy as np

from defgpa.arrays import Array, Index, Mask
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.diagnostics.solution import DescentDiagnostics, SpectralDiagnostics
from defgpa.errors import DegenerateShapeError, ShapeError, format_names
from defgpa.geometry import Geometry, compute_visible_scatters
from defgpa.shapes import Shapes
from defgpa.tuning import DEFAULT, Tuning

LinkTest = Callable[[Mask], Mask]  # (g, m) landmarks shared with g groups -> (g,) whether they link

_MAX_ROUNDING = 0.05  # of the size of a shape, by which its coordinates may be rounded


def find_common_landmarks(shapes: Shapes) -> Index:
    """Return the numbers of the landmarks that are visible in at least two shapes."""
    return np.flatnonzero(shapes.views >= 2)


def drop_lone_landmarks(shapes: Shapes) -> Shapes:
    """Return the shapes without the landmarks that are visible in one of them only."""
    lone = np.flatnonzero(shapes.views < 2)
    return shapes.without(lone) if len(lone) else shapes


def keep_common_landmarks(shapes: Shapes, tuning: Tuning) -> Shapes:
    """Restrict shapes to landmarks that at least two of them have; refuse sets without a reference.

    Raises
    ------
    MemoryError
        If a fit would take more memory than there is.
    ShapeError
        If too few landmarks are shared, or if they do not link all shapes.
    DegenerateShapeError
        If a shape has too few of them, or all on a line.
    """
    # what a fit surely takes: the points centred, and their images
    require_memory(2 * shapes.points.nbytes, tuning)
    n_shared = int((shapes.views >= 2).sum())
    if n_shared < shapes.n_landmarks:
        if n_shared <= shapes.n_dims:
            raise ShapeError(
                f"Only {n_shared} landmarks are seen in more than one shape; aligning in "
                f"{shapes.n_dims}-D needs at least {shapes.n_dims + 1}."
            )
        shapes = drop_lone_landmarks(shapes)
    refuse_degenerate_shapes(shapes.geometry, shapes.names)
    require_linkage(shapes.visible, shapes.names, shapes.n_dims)
    return shapes


def refuse_degenerate_shapes(geometry: Geometry, names: Sequence[str]) -> None:
    """Raise a DegenerateShapeError that names shapes whose points determine no warp.

    They are too few, on a line, or so far from the origin that rounding distorts them.
    """
    count, dim = geometry.count, geometry.points.shape[-1]
    has_few = count < dim + 1
    if has_few.any():
        i = int(np.flatnonzero(has_few)[0])
        raise DegenerateShapeError(
            f"Shape {names[i]!r} has {int(count[i])} visible landmarks that another shape sees "
            f"too; a warp in {dim}-D needs at least {dim + 1}. Drop it ({int(has_few.sum())} of "
            f"{len(count)} shapes have too few)."
        )
    is_collinear = geometry.ranks < 2
    if is_collinear.any():
        culprits = [names[int(i)] for i in np.flatnonzero(is_collinear)]
        position = "coincident" if geometry.is_coincident[is_collinear].all() else "collinear"
        raise DegenerateShapeError(
            f"The visible landmarks of shape {format_names(culprits)} are all {position}, which "
            f"determines no warp in {dim}-D. Check the coordinates, or drop such shapes."
        )
    distorted = np.flatnonzero(geometry.rounding > _MAX_ROUNDING)
    if len(distorted):
        first = int(distorted[0])
        distance = float(np.linalg.norm(geometry.centre[first]))
        raise DegenerateShapeError(
            f"The coordinates of shape {format_names(names[int(i)] for i in distorted)} have no "
            f"digits left: its landmarks spread over {float(geometry.size[first]):.2g}, "
            f"{distance:.2g} away from the origin. Subtract the common offset where the "
            "coordinates still have them."
        )


def require_linkage(visible: Mask, names: Sequence[str], dim: int) -> None:
    """Raise a ShapeError that lists the groups if visible (n, m) does not link all shapes."""
    if visible.shape[1] <= dim:
        raise ShapeError(
            f"The shapes have {visible.shape[1]} common landmarks; aligning in {dim}-D needs at "
            f"least {dim + 1}."
        )
    if visible.all():
        return
    groups = group_shapes(visible, lambda shared: shared.sum(axis=1) > dim)
    if len(groups) > 1:
        described = "; ".join(
            f"({number}) {format_names(names[int(i)] for i in group)}"
            for number, group in enumerate(groups[:5], start=1)
        )
        more = f"; and {len(groups) - 5} more groups" if len(groups) > 5 else ""
        raise ShapeError(
            f"The shapes fall into {len(groups)} groups that share fewer than {dim + 1} "
            f"landmarks: {described}{more}. Align each group on its own, or add landmarks that "
            "link them."
        )


def group_shapes(visible: Mask, is_linked: LinkTest) -> list[Index]:
    """Return groups of linked shapes, the largest first.

    Parameters
    ----------
    visible : ndarray of bool of shape (n_shapes, n_landmarks)
    is_linked : callable
        Takes the landmarks that groups share with one group, (n_groups, n_landmarks), and returns
        which of them are linked with it, (n_groups,).

    Returns
    -------
    list of ndarray
        The numbers of the shapes of each group.
    """
    group, patterns, n_groups = np.arange(len(visible)), visible, 0
    while n_groups != len(patterns):
        n_groups, unions = len(patterns), list[Mask]()
        new_groups = np.full(n_groups, -1)
        for first in range(n_groups):
            if new_groups[first] >= 0:
                continue
            # merge into this group all that are linked to it, directly or by others
            new_groups[first], union = len(unions), patterns[first]
            while (joining := (new_groups < 0) & is_linked(patterns & union)).any():
                new_groups[joining] = len(unions)
                union = union | patterns[joining].any(axis=0)
            unions.append(union)
        group, patterns = new_groups[group], np.array(unions)
    members = [np.flatnonzero(group == number) for number in range(len(patterns))]
    return sorted(members, key=len, reverse=True)


def require_memory(n_bytes: int, tuning: Tuning = DEFAULT) -> None:
    """Raise a MemoryError if this many bytes, and those that BLAS needs, are not available.

    Within a limit (``ulimit -v``) that is too low BLAS does not fail: it ends the process, or
    waits for memory that never comes.
    """
    limit, min_bytes = _get_free_address_space(), n_bytes + tuning.workspace_bytes
    if limit is not None and min_bytes > limit:
        raise MemoryError(
            f"This fit takes at least {_format_megabytes(min_bytes)}, and the limit of this "
            f"process leaves {_format_megabytes(limit)}. Raise it (ulimit -v), or take fewer "
            "shapes or landmarks."
        )
    free = _get_free_memory() if n_bytes > tuning.searched_bytes else None
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"This fit takes at least {_format_megabytes(n_bytes)}, and {_format_megabytes(free)} "
            "of memory are free. Free some, or take fewer shapes or landmarks."
        )


def _get_free_address_space() -> int | None:
    """Return the bytes of address space that the process may still take; None if unlimited."""
    if sys.platform == "win32":  # which knows no such limits
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return None
    return max(0, limit - pages * os.sysconf("SC_PAGE_SIZE"))


def _get_free_memory() -> int | None:
    """Return the bytes of memory that are free or can be freed; None if the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(
            int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")
        )
    except (OSError, ValueError, StopIteration):
        return None


def _format_megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.0f} MB"


def check_solution(
    facts: SpectralDiagnostics,
    directions: Array,
    names: Sequence[str],
    landmarks: Sequence[str],
    tuning: Tuning,
) -> Iterator[Finding]:
    """Check the solution of a deformable fit, one paragraph a problem.

    Parameters
    ----------
    facts : SpectralDiagnostics
    directions : ndarray of shape (n_landmarks, k)
        Orthonormal directions that the reference is made of.
    names, landmarks : sequence of str
        Of the shapes and of the landmarks.
    tuning : Tuning

    Yields
    ------
    Finding
    """
    n, m, k = len(facts.votes), len(directions), facts.residuals.shape[-1]
    has_next_value = len(facts.spectrum) > k
    # parts that could move are held together if similarities of the shapes agree well enough
    is_firm = (
        facts.similarity_residual < tuning.settled_residual
        and facts.looseness < tuning.max_looseness
        and facts.proportions_determined
    )

    # shapes on the other side of the reference than most
    if (facts.votes < 0).any():
        yield Finding(Problem.MIRRORED, shapes=tuple(compress(names, facts.votes < 0)))

    # warps that neither data nor penalty determine
    if (facts.free_directions > 0).any():
        undetermined = tuple(compress(names, facts.free_directions > 0))
        yield Finding(Problem.UNDETERMINED_WARP, shapes=undetermined)

    # a reference off the origin: warps that charge translations, or a weak constraint
    if facts.offset > tuning.off_centre * facts.extent:
        offset = {"offset": facts.offset}
        if facts.translation_cost > tuning.translation_cost * n * np.sqrt(m):
            yield Finding(Problem.CHARGED_TRANSLATIONS, values=offset)
        elif facts.converged and facts.offset > tuning.not_centred * facts.extent:
            yield Finding(Problem.WEAK_CENTERING, values=offset | {"enough": n / m})

    # another axis that would do as well
    if has_next_value:
        last, next_value = float(facts.spectrum[k - 1]), float(facts.spectrum[k])
        rounding = 1e3 * float(np.finfo(np.float64).eps) * n
        if not (facts.gap > tuning.narrow_gap and next_value - last > rounding):
            yield Finding(Problem.NARROW_GAP, values={"value": last, "next_value": next_value})

    # more free axes than dimensions: rigidity held parts that could move, or did not
    has_free_directions = k - facts.n_agreed_axes > facts.n_dims
    if has_free_directions and is_firm:
        values = {"directions": k, "dim": facts.n_dims, "residual": facts.similarity_residual}
        yield Finding(Problem.FREE_DIRECTIONS, values=values)
    is_hinged = (
        facts.cohesion < tuning.hinge_cohesion and tuning.narrow_gap < facts.gap < tuning.firm_gap
    )
    if not is_firm if has_free_directions else is_hinged:
        yield Finding(Problem.HINGE, values={"cohesion": facts.cohesion})

    # a direction that is nearly zero but for a few landmarks, which few shapes share
    n_carriers, squares = directions.shape[1] + 1, directions * directions
    if m >= 4 * n_carriers and n_carriers * squares.max() > tuning.carried_share:
        shares = np.partition(squares, -n_carriers, axis=0)[-n_carriers:].sum(axis=0)
        axis = int(np.argmax(shares))
        if shares[axis] > tuning.carried_share:
            carriers = np.argsort(-squares[:, axis], kind="stable")[:n_carriers]
            labels = tuple(str(landmarks[j]) for j in carriers)
            yield Finding(Problem.CARRIED_BY_FEW, landmarks=labels, values={"axis": axis + 1})

    # rounding of nearly dependent features that is not small against the gap
    if has_next_value and not facts.free_directions.any():
        gap, worst = float(facts.spectrum[k] - facts.spectrum[k - 1]), float(facts.condition.max())
        rounding = float(np.finfo(np.float64).eps * np.sqrt(worst))
        if rounding > tuning.gap_rounding * gap and facts.gap > tuning.narrow_gap:
            culprit = names[int(np.argmax(facts.condition))]
            values = {"condition": worst, "gap": gap}
            yield Finding(Problem.ROUNDING, shapes=(culprit,), values=values)

    # iterations that did not end
    if not facts.converged:
        values = {"products": facts.n_products, "residual": float(facts.residuals.max())}
        yield Finding(Problem.NOT_CONVERGED, values=values)

    # proportions of shapes that differ very much, or that leave them open
    if facts.proportions == "rigid" and facts.similarity_residual > tuning.large_deformation:
        residual = {"residual": facts.similarity_residual}
        yield Finding(Problem.LARGE_DEFORMATION, values=residual)
    if not facts.proportions_determined:
        yield Finding(Problem.PROPORTIONS_UNDETERMINED)
    elif not facts.proportions_converged and (not has_free_directions or is_firm):
        # not of a hinge that is reported already
        yield Finding(Problem.PROPORTIONS_NOT_CONVERGED, values={"rounds": facts.rounds})


def check_descent_solution(facts: DescentDiagnostics, names: Sequence[str]) -> tuple[Finding, ...]:
    """Check the solution of a fit by descent."""
    findings = []
    if (facts.votes < 0).any():
        findings.append(Finding(Problem.MIRRORED, shapes=tuple(compress(names, facts.votes < 0))))
    if not facts.converged:
        values = {"iterations": facts.iterations, "gradient": facts.gradient}
        findings.append(Finding(Problem.DESCENT_NOT_CONVERGED, values=values))
    return tuple(findings)


def compute_cohesion(axes: Array, direction: Array, visible: Mask, dim: int) -> float:
    """Compute the cohesion, 0 (hinged) to 1, of axes (m, k − 1), v (m,) and visibility (n, m).

    Parameters
    ----------
    axes, direction : array (m, k − 1), (m,)
        Axes of the reference, and the one in question.
    visible : array (n, m) of bool
    """
    if visible.all():
        return 1.0  # centred and orthonormal: all singular values are one
    scatter = compute_visible_scatters(np.column_stack([axes, direction]), visible)
    if not scatter[:, -1, -1].sum() > np.finfo(np.float64).eps:
        return 1.0  # a constant v: as many landmarks as an affine map needs, and no more
    values = np.linalg.eigvalsh(scatter).sum(axis=0)  # ascending, as in each shape
    return max(0.0, float(values[: len(values) - dim].mean() / values.mean()))


def check_hinge(
    reference: Array,
    visible: Mask,
    rank: int,
    noise: float,
    names: Sequence[str],
    tuning: Tuning,
) -> tuple[Finding, ...]:
    """Report parts of a rigid or affine fit that are linked as by a hinge, by the smaller parts.

    Parameters
    ----------
    reference : ndarray of shape (n_landmarks, n_dims)
    visible : ndarray of bool of shape (n_shapes, n_landmarks)
    rank : int
        Number of axes along which the landmarks that link parts must extend: d − 1 for motions, d
        for affine maps.
    noise : float
        RMS distance of the landmarks from the reference.
    names : sequence of str
    tuning : Tuning
    """
    if visible.all():
        return ()

    def is_stiff(shared: Mask) -> Mask:
        spread = np.linalg.eigvalsh(compute_visible_scatters(reference, shared))[:, -rank]
        is_enough = spread * tuning.loose_angle**2 > noise**2
        return np.asarray(is_enough & (shared.sum(axis=1) > rank))

    groups = group_shapes(visible, is_stiff)
    if len(groups) == 1:
        return ()
    smaller = np.sort(np.concatenate(groups[1:]))
    parts = {"parts": float(len(groups))}
    return (Finding(Problem.HINGE, shapes=tuple(names[i] for i in smaller), values=parts),)
