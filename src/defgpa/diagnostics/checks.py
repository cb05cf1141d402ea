r"""What is asked of shapes before a fit, and what a solve tells about itself after it.

Before: points that are too few, on a line, or all in one place determine no warp. A landmark seen
once tells nothing about the reference. Shapes hang together when they share at least d + 1
landmarks with what already hangs together; a set that falls apart has no common reference, however
well the algebra would go through.

After: every check takes the facts of a solve and yields findings: the same for a fit on this
machine, for a fold of a cross-validation and on a cluster.

What the visibility pattern does not show are parts of a set that hang together as by a hinge. The
cheapest direction v beyond the axes X of the reference is a deformation in a sound set: what a
shape sees of [X v] has a dimension more than the shape. If the landmarks that link two parts lie on
a line or in a plane, v moves one part against the other, and every shape, seeing one part only,
takes what it sees of [X v] for an affine map of itself, of no more than d dimensions:

    cohesion = (1/(k − d)) Σ_i (λ_{d+1} + … + λ_k)_i  /  (1/k) Σ_i (λ_1 + … + λ_k)_i,

λ_1 ≥ … ≥ λ_k the squared singular values of what shape i sees of the k columns, centred.

Where motions or affine maps are fitted there is no such direction to look at. There two parts hold
together if the landmarks they share are spread enough against the noise: with σ their spread along
the axis that must not vanish, one part may be turned against the other by about noise / σ.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from pathlib import Path

import numpy as np

from defgpa._arrays import Array, Index, Mask
from defgpa.diagnostics.findings import Finding, Problem
from defgpa.diagnostics.solution import DescentDiagnostics, SpectralDiagnostics
from defgpa.errors import DegenerateShapeError, ShapeError, listed
from defgpa.frames import Frames, seen_scatters
from defgpa.shapes import Shapes
from defgpa.tuning import DEFAULT, Tuning

Links = Callable[[Mask], Mask]  # (g, m), what each of g groups shares with one: is it enough?

_MAX_ROUNDING = 0.05  # of the size of a shape, by which its coordinates may be rounded


def shared_landmarks(shapes: Shapes) -> Index:
    """The landmarks that at least two shapes see."""
    return np.flatnonzero(shapes.views >= 2)


def on_shared_landmarks(shapes: Shapes) -> Shapes:
    """The shapes without the landmarks that only one of them sees."""
    lone = np.flatnonzero(shapes.views < 2)
    return shapes.without(lone) if len(lone) else shapes


def require_extended(frames: Frames, names: Sequence[str]) -> None:
    """A DegenerateShapeError that names the shapes whose points are too few or on a line."""
    on_a_line = frames.on_a_line
    one_place = frames.in_one_place if on_a_line.any() else on_a_line
    require_extents(frames.count, on_a_line, one_place, names, frames.points.shape[-1])
    _require_digits(frames, names)


def _require_digits(frames: Frames, names: Sequence[str]) -> None:
    """Raise a DegenerateShapeError that names shapes so far away that rounding distorts them."""
    distorted = np.flatnonzero(frames.rounding > _MAX_ROUNDING)
    if len(distorted):
        first = int(distorted[0])
        distance = float(np.linalg.norm(frames.centre[first]))
        raise DegenerateShapeError(
            f"The coordinates of shape {listed(names[int(i)] for i in distorted)} have no digits "
            f"left: its landmarks spread over {float(frames.size[first]):.2g}, {distance:.2g} away "
            "from the origin. Subtract the common offset where the coordinates still have them."
        )


def require_extents(
    count: Array, on_a_line: Mask, one_place: Mask, names: Sequence[str], dim: int
) -> None:
    """A DegenerateShapeError, if shapes see too few points or only points on a line."""
    few = count < dim + 1
    if few.any():
        i = int(np.flatnonzero(few)[0])
        raise DegenerateShapeError(
            f"Shape {names[i]!r} has {int(count[i])} visible landmarks that another shape sees "
            f"too; a warp in {dim}-D needs at least {dim + 1}. Drop it ({int(few.sum())} of "
            f"{len(count)} shapes have too few)."
        )
    if on_a_line.any():
        culprits = [names[int(i)] for i in np.flatnonzero(on_a_line)]
        what = "coincident" if one_place[on_a_line].all() else "collinear"
        raise DegenerateShapeError(
            f"The visible landmarks of shape {listed(culprits)} are all {what}, which "
            f"determines no warp in {dim}-D. Check the coordinates, or drop such shapes."
        )


def require_linked(shapes: Shapes) -> None:
    """A ShapeError that lists the groups, if the shapes do not hang together."""
    require_linked_pattern(shapes.visible, shapes.names, shapes.n_dims)


def require_linked_pattern(visible: Mask, names: Sequence[str], dim: int) -> None:
    """A ShapeError that lists the groups, if what shapes see (n, m) does not link them all."""
    if visible.shape[1] <= dim:
        raise ShapeError(
            f"The shapes have {visible.shape[1]} common landmarks; aligning in {dim}-D needs at "
            f"least {dim + 1}."
        )
    if visible.all():
        return
    groups = linked_groups(visible, dim + 1)
    if len(groups) > 1:
        described = "; ".join(
            f"({number}) {listed(names[int(i)] for i in group)}"
            for number, group in enumerate(groups[:5], start=1)
        )
        more = f"; and {len(groups) - 5} more groups" if len(groups) > 5 else ""
        raise ShapeError(
            f"The shapes fall into {len(groups)} groups that share fewer than {dim + 1} "
            f"landmarks: {described}{more}. Align each group on its own, or add landmarks that "
            "link them."
        )


def linked_groups(visible: Mask, least: int) -> list[Index]:
    """Groups of shapes: two groups are one if what they see together shares ``least`` landmarks."""
    return groups_by(visible, lambda shared: shared.sum(axis=1) >= least)


def groups_by(visible: Mask, linked: Links) -> list[Index]:
    """Groups of shapes, the largest first: two groups are one if what they share links them."""
    group, seen = np.arange(len(visible)), visible
    while True:
        merged, seen = _merged_once(seen, linked)
        group = merged[group]
        if len(seen) in (1, len(merged)):
            break
    members = [np.flatnonzero(group == number) for number in range(len(seen))]
    return sorted(members, key=len, reverse=True)


def _merged_once(seen: Mask, linked: Links) -> tuple[Index, Mask]:
    """Each group in turn takes in all that are linked to it, until nothing more is.

    Of what g groups see (g, m): for each its new group (g,), and what those see.
    """
    merged, together = np.full(len(seen), -1), list[Mask]()
    for first in range(len(seen)):
        if merged[first] >= 0:
            continue
        merged[first], own = len(together), seen[first]
        while (more := (merged < 0) & linked(seen & own)).any():
            merged[more] = len(together)
            own = own | seen[more].any(axis=0)
        together.append(own)
    return merged, np.array(together)


def require_memory(n_bytes: int, tuning: Tuning = DEFAULT) -> None:
    """A MemoryError in one sentence where so many bytes, and BLAS, cannot be had.

    Within a limit (``ulimit -v``) that is too low BLAS does not fail: it ends the process, or
    waits for memory that never comes.
    """
    limit, least = _left_below_limit(), n_bytes + tuning.workspace_bytes
    if limit is not None and least > limit:
        raise MemoryError(
            f"This fit takes at least {_megabytes(least)}, and the limit of this "
            f"process leaves {_megabytes(limit)}. Raise it (ulimit -v), or take fewer shapes or "
            "landmarks."
        )
    free = _available() if n_bytes > tuning.searched_bytes else None
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"This fit takes at least {_megabytes(n_bytes)}, and {_megabytes(free)} of memory are "
            "free. Free some, or take fewer shapes or landmarks."
        )


def _left_below_limit() -> int | None:
    """Bytes of address space that the process may still take; None: any, or not known."""
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


def _available() -> int | None:
    """Bytes of memory that are free, or would be on demand; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(own.split()[1]) << 10 for own in lines if own.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.0f} MB"


def check_solution(
    facts: SpectralDiagnostics,
    axes: Array,
    names: Sequence[str],
    landmarks: Sequence[str],
    tuning: Tuning,
) -> tuple[Finding, ...]:
    """Check the solution of a deformable fit.

    Parameters
    ----------
    facts : SpectralDiagnostics
    axes : ndarray of shape (n_landmarks, k)
        Those of the spectrum.
    names, landmarks : sequence of str
        Of the shapes and of the landmarks.
    tuning : Tuning

    Returns
    -------
    tuple of Finding
    """
    return (
        *_check_sides(facts.votes, names),
        *_check_determinacy(facts, names),
        *_check_centering(facts, len(axes), tuning),
        *_check_gap(facts, tuning),
        *_check_free_directions(facts, tuning),
        *_check_hinge(facts, tuning),
        *_check_carriers(axes, landmarks, tuning),
        *_check_rounding(facts, names, tuning),
        *_check_convergence(facts),
        *_check_proportions(facts, tuning),
    )


def descent_findings(facts: DescentDiagnostics, names: Sequence[str]) -> tuple[Finding, ...]:
    """Check the solution of a fit by descent."""
    return check_descent(facts.votes, facts.converged, facts.iterations, facts.gradient, names)


def check_descent(
    votes: Index, converged: bool, iterations: int, gradient: float, names: Sequence[str]
) -> tuple[Finding, ...]:
    """Check the end of a descent."""
    findings = [*_check_sides(votes, names)]
    if not converged:
        values = {"iterations": iterations, "gradient": gradient}
        findings.append(Finding(Problem.DESCENT_NOT_CONVERGED, values=values))
    return tuple(findings)


def compute_cohesion(axes: Array, direction: Array, visible: Mask, dim: int) -> float:
    """Compute the cohesion, 0 (hinged) to 1, of axes (m, k − 1), v (m,) and visibility (n, m)."""
    if visible.all():
        return 1.0  # centred and orthonormal: all singular values are one
    scatter = seen_scatters(np.column_stack([axes, direction]), visible)
    if not scatter[:, -1, -1].sum() > np.finfo(np.float64).eps:
        return 1.0  # a constant v: as many landmarks as an affine map needs, and no more
    values = np.linalg.eigvalsh(scatter).sum(axis=0)  # ascending, as in each shape
    return max(0.0, float(values[: len(values) - dim].mean() / values.mean()))


def hinge_findings(
    reference: Array,
    visible: Mask,
    rank: int,
    noise: float,
    names: Sequence[str],
    tuning: Tuning,
) -> tuple[Finding, ...]:
    """One finding that names the shapes of the smaller parts; none if all hold together.

    Of a reference (m, d) and visibility (n, m). What links parts must extend along ``rank`` axes:
    d − 1 for motions, which a line leaves open in 3-D, d for affine maps. ``noise`` is the RMS
    distance of the landmarks from the reference.
    """
    if visible.all():
        return ()

    def stiff(shared: Mask) -> Mask:
        spread = np.linalg.eigvalsh(seen_scatters(reference, shared))[:, -rank]
        enough = spread * tuning.loose_angle**2 > noise**2
        return np.asarray(enough & (shared.sum(axis=1) > rank))

    groups = groups_by(visible, stiff)
    if len(groups) == 1:
        return ()
    smaller = np.sort(np.concatenate(groups[1:]))
    parts = {"parts": float(len(groups))}
    return (Finding(Problem.HINGE, shapes=tuple(names[i] for i in smaller), values=parts),)


def _check_sides(votes: Index, names: Sequence[str]) -> Iterator[Finding]:
    if (votes < 0).any():
        yield Finding(Problem.MIRRORED, shapes=tuple(compress(names, votes < 0)))


def _check_determinacy(facts: SpectralDiagnostics, names: Sequence[str]) -> Iterator[Finding]:
    free = facts.free_directions > 0
    if free.any():
        yield Finding(Problem.UNDETERMINED_WARP, shapes=tuple(compress(names, free)))


def _check_centering(facts: SpectralDiagnostics, m: int, tuning: Tuning) -> Iterator[Finding]:
    """Report a reference off the origin: warps that charge translations, or a weak constraint."""
    if not facts.offset > tuning.off_centre * facts.extent:
        return
    n, values = len(facts.votes), {"offset": facts.offset}
    if facts.translation_cost > tuning.charged * n * np.sqrt(m):
        yield Finding(Problem.CHARGED_TRANSLATIONS, values=values)
    elif facts.converged and facts.offset > tuning.not_centred * facts.extent:
        yield Finding(Problem.WEAK_CENTERING, values=values | {"enough": n / m})


def _check_gap(facts: SpectralDiagnostics, tuning: Tuning) -> Iterator[Finding]:
    k = facts.n_axes
    if len(facts.spectrum) <= k:
        return
    last, following = float(facts.spectrum[k - 1]), float(facts.spectrum[k])
    rounding = 1e3 * np.finfo(np.float64).eps * len(facts.votes)
    if not (facts.gap > tuning.narrow_gap and following - last > rounding):
        yield Finding(Problem.NARROW_GAP, values={"value": last, "next_value": following})


def _check_free_directions(facts: SpectralDiagnostics, tuning: Tuning) -> Iterator[Finding]:
    """Report more free axes than dimensions: rigidity held parts that could move."""
    if facts.n_axes > facts.n_dims and _is_settled(facts, tuning):
        values = {"directions": facts.n_axes, "dim": facts.n_dims}
        residual = {"residual": facts.similarity_residual}
        yield Finding(Problem.FREE_DIRECTIONS, values=values | residual)


def _check_hinge(facts: SpectralDiagnostics, tuning: Tuning) -> Iterator[Finding]:
    """Report parts that hang together as by a hinge: the gap may be that of two noises."""
    if facts.n_axes > facts.n_dims:
        loose = not _is_settled(facts, tuning)
    else:
        loose = facts.cohesion < tuning.hinged and tuning.narrow_gap < facts.gap < tuning.firm_gap
    if loose:
        yield Finding(Problem.HINGE, values={"cohesion": facts.cohesion})


def _is_settled(facts: SpectralDiagnostics, tuning: Tuning) -> bool:
    """Return whether similarities of the shapes agree well enough to hold the parts together."""
    agreed = facts.similarity_residual < tuning.settled_residual
    return agreed and facts.looseness < tuning.loose and facts.proportions_determined


def _check_carriers(axes: Array, landmarks: Sequence[str], tuning: Tuning) -> Iterator[Finding]:
    """Report an axis that lives on a few landmarks: an artefact of which are missing."""
    few = axes.shape[1] + 1
    squares = axes * axes
    if len(axes) < 4 * few or few * squares.max() <= tuning.handful:
        return
    shares = np.partition(squares, -few, axis=0)[-few:].sum(axis=0)
    if (shares > tuning.handful).any():
        axis = int(np.argmax(shares))
        carriers = np.argsort(-squares[:, axis], kind="stable")[:few]
        labels = tuple(str(landmarks[j]) for j in carriers)
        yield Finding(Problem.CARRIED_BY_FEW, landmarks=labels, values={"axis": axis + 1})


def _check_rounding(
    facts: SpectralDiagnostics, names: Sequence[str], tuning: Tuning
) -> Iterator[Finding]:
    """Report rounding of nearly dependent features that is not small against the gap."""
    k = facts.n_axes
    if len(facts.spectrum) <= k or facts.free_directions.any():
        return
    gap, worst = float(facts.spectrum[k] - facts.spectrum[k - 1]), float(facts.condition.max())
    rounding = float(np.finfo(np.float64).eps * np.sqrt(worst))
    if rounding > tuning.blurred * gap and facts.gap > tuning.narrow_gap:
        culprit = names[int(np.argmax(facts.condition))]
        values = {"condition": worst, "gap": gap}
        yield Finding(Problem.ROUNDING, shapes=(culprit,), values=values)


def _check_convergence(facts: SpectralDiagnostics) -> Iterator[Finding]:
    if not facts.converged:
        values = {"products": facts.n_products, "residual": float(facts.residuals.max())}
        yield Finding(Problem.NOT_CONVERGED, values=values)


def _check_proportions(facts: SpectralDiagnostics, tuning: Tuning) -> Iterator[Finding]:
    if facts.proportions == "rigid" and facts.similarity_residual > tuning.large_deformation:
        values = {"residual": facts.similarity_residual}
        yield Finding(Problem.LARGE_DEFORMATION, values=values)
    if not facts.proportions_determined:
        yield Finding(Problem.PROPORTIONS_UNDETERMINED)
    elif not facts.proportions_converged and (
        # not of a hinge that is reported already
        facts.n_axes <= facts.n_dims or _is_settled(facts, tuning)
    ):
        yield Finding(Problem.PROPORTIONS_NOT_CONVERGED, values={"rounds": facts.rounds})
