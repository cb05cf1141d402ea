r"""What is asked of shapes before a fit, and what a solve tells about itself after it.

Before: points that are too few, on a line, or all in one place determine no warp. A landmark seen
once tells nothing about the reference. Shapes hang together when they share at least d + 1
landmarks with what already hangs together; a set that falls apart has no common reference, however
well the algebra would go through.

After: every check takes the facts of a stack of sets and yields (set, finding): the same for a fit
on this machine, for the folds of a cross-validation and on a cluster.

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
Found = Iterator[tuple[int, Finding]]

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


def spectral_findings(
    facts: SpectralDiagnostics,
    axes: Array,
    names: Sequence[str],
    landmarks: Array,
    tuning: Tuning,
) -> list[tuple[Finding, ...]]:
    """For each set of a stack, what its solve should be told of.

    ``axes`` (g, m, k) are those of the spectrum; ``landmarks`` (g, m) the labels of each set.
    """
    n_shapes, (n_landmarks, k) = facts.votes.shape[-1], axes.shape[-2:]
    found: list[list[Finding]] = [[] for _ in axes]
    for check in (
        _mirrored(facts.votes, names),
        _undetermined(facts, names),
        _off_centre(facts, n_shapes, n_landmarks, tuning),
        _narrow_gap(facts, k, n_shapes, tuning),
        _free_directions(facts, k, tuning),
        _hinged(facts, k, tuning),
        _carried_by_few(axes, landmarks, tuning),
        _rounding(facts, k, names, tuning),
        _not_converged(facts),
        _proportions(facts, k, tuning),
    ):
        for number, finding in check:
            found[number].append(finding)
    return [tuple(own) for own in found]


def descent_findings(facts: DescentDiagnostics, names: Sequence[str]) -> tuple[Finding, ...]:
    """What a fit by descent should be told of."""
    found = [finding for _, finding in _mirrored(facts.votes[None], names)]
    if not facts.converged:
        figures = {"iterations": facts.iterations, "gradient": facts.gradient}
        found.append(Finding(Problem.DESCENT_NOT_CONVERGED, values=figures))
    return tuple(found)


def cohesion(axes: Array, direction: Array, visible: Mask, dim: int) -> Array:
    """(…): from 0, hinged, to 1. Of axes (…, m, k − 1), v (…, m) and visibility (…, n, m)."""
    if visible.all():
        # centred and orthonormal: all singular values are one
        return np.ones(visible.shape[:-2])
    scatter = seen_scatters(np.concatenate([axes, direction[..., None]], axis=-1), visible)
    k = scatter.shape[-1]
    values = np.linalg.eigvalsh(scatter).sum(axis=-2)  # ascending, as in each shape
    share = values[..., : k - dim].mean(axis=-1) / values.mean(axis=-1)
    # a constant v: as many landmarks as an affine map needs, and no more
    constant = ~(scatter[..., -1, -1].sum(axis=-1) > np.finfo(np.float64).eps)
    return np.asarray(np.where(constant, 1.0, np.maximum(share, 0.0)))


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


def _mirrored(votes: Index, names: Sequence[str]) -> Found:
    for s in np.flatnonzero((votes < 0).any(axis=1)):
        yield int(s), Finding(Problem.MIRRORED, shapes=tuple(compress(names, votes[s] < 0)))


def _undetermined(facts: SpectralDiagnostics, names: Sequence[str]) -> Found:
    free = facts.free_directions > 0
    for s in np.flatnonzero(free.any(axis=1)):
        yield int(s), Finding(Problem.UNDETERMINED_WARP, shapes=tuple(compress(names, free[s])))


def _off_centre(facts: SpectralDiagnostics, n: int, m: int, tuning: Tuning) -> Found:
    """The soft constraint centres exactly only what translates for nothing, and if it is strong."""
    off = facts.offset > tuning.off_centre * facts.extent
    charged = facts.translation_cost > tuning.charged * n * np.sqrt(m)
    weak = facts.converged & (facts.offset > tuning.not_centred * facts.extent)
    for s in np.flatnonzero(off & (charged | weak)):
        figures = {"offset": float(facts.offset[s])}
        if charged[s]:
            yield int(s), Finding(Problem.CHARGED_TRANSLATIONS, values=figures)
        else:
            yield int(s), Finding(Problem.WEAK_CENTERING, values=figures | {"enough": n / m})


def _narrow_gap(facts: SpectralDiagnostics, k: int, n: int, tuning: Tuning) -> Found:
    values = facts.spectrum
    if values.shape[-1] <= k:
        return
    rounding = 1e3 * np.finfo(np.float64).eps * n
    clear = (facts.gap > tuning.narrow_gap) & (values[:, k] - values[:, k - 1] > rounding)
    for s in np.flatnonzero(~clear):
        figures = {"value": float(values[s, k - 1]), "next_value": float(values[s, k])}
        yield int(s), Finding(Problem.NARROW_GAP, values=figures)


def _free_directions(facts: SpectralDiagnostics, k: int, tuning: Tuning) -> Found:
    """Where more axes than dimensions are free, parts that could move were held by rigidity."""
    if k <= facts.n_dims:
        return
    figures = {"directions": k, "dim": facts.n_dims}
    for s in np.flatnonzero(_settled(facts, tuning)):
        residual = {"residual": float(facts.similarity_residual[s])}
        yield int(s), Finding(Problem.FREE_DIRECTIONS, values=figures | residual)


def _hinged(facts: SpectralDiagnostics, k: int, tuning: Tuning) -> Found:
    """The gap may be wide in numbers and still be that of two noises."""
    loose = (facts.cohesion < tuning.hinged) & (facts.gap < tuning.firm_gap)
    loose &= facts.gap > tuning.narrow_gap
    if k > facts.n_dims:
        loose = ~_settled(facts, tuning)
    for s in np.flatnonzero(loose):
        yield int(s), Finding(Problem.HINGE, values={"cohesion": float(facts.cohesion[s])})


def _settled(facts: SpectralDiagnostics, tuning: Tuning) -> Mask:
    """(g,): whether similarities of the shapes agree well enough to hold the parts together."""
    agreed = facts.similarity_residual < tuning.settled_residual
    return np.asarray(agreed & (facts.looseness < tuning.loose) & facts.proportions_determined)


def _carried_by_few(axes: Array, landmarks: Array, tuning: Tuning) -> Found:
    """An axis that lives on a few landmarks is an artefact of how they are seen."""
    few = axes.shape[-1] + 1
    if axes.shape[-2] < 4 * few:
        return
    squares = axes * axes
    shares = np.partition(squares, -few, axis=-2)[..., -few:, :].sum(axis=-2)
    for s in np.flatnonzero((shares > tuning.handful).any(axis=-1)):
        axis = int(np.argmax(shares[s]))
        carriers = np.argsort(-squares[s, :, axis], kind="stable")[:few]
        labels = tuple(str(landmarks[s, j]) for j in carriers)
        yield int(s), Finding(Problem.CARRIED_BY_FEW, landmarks=labels, values={"axis": axis + 1})


def _rounding(facts: SpectralDiagnostics, k: int, names: Sequence[str], tuning: Tuning) -> Found:
    """What rounding makes of nearly dependent features, against the gap it must not fill."""
    values = facts.spectrum
    if values.shape[-1] <= k:
        return
    gap, worst = values[:, k] - values[:, k - 1], facts.condition.max(axis=1)
    blur = np.finfo(np.float64).eps * np.sqrt(worst)
    blurred = (blur > tuning.blurred * gap) & (facts.gap > tuning.narrow_gap)
    for s in np.flatnonzero(blurred & ~facts.free_directions.any(axis=1)):
        culprit = names[int(np.argmax(facts.condition[s]))]
        figures = {"condition": float(worst[s]), "gap": float(gap[s])}
        yield int(s), Finding(Problem.ROUNDING, shapes=(culprit,), values=figures)


def _not_converged(facts: SpectralDiagnostics) -> Found:
    for s in np.flatnonzero(~facts.converged):
        residual = float(facts.residuals[s].max())
        figures = {"products": facts.n_products, "residual": residual}
        yield int(s), Finding(Problem.NOT_CONVERGED, values=figures)


def _proportions(facts: SpectralDiagnostics, k: int, tuning: Tuning) -> Found:
    by_rigidity = facts.proportions == "rigid"
    for s in np.flatnonzero(by_rigidity & (facts.similarity_residual > tuning.large_deformation)):
        figures = {"residual": float(facts.similarity_residual[s])}
        yield int(s), Finding(Problem.LARGE_DEFORMATION, values=figures)
    for s in np.flatnonzero(~facts.proportions_determined):
        yield int(s), Finding(Problem.PROPORTIONS_UNDETERMINED)
    unsettled = np.full(facts.looseness.shape, k > facts.n_dims) & ~_settled(facts, tuning)
    stopped = facts.proportions_determined & ~facts.proportions_converged
    for s in np.flatnonzero(stopped & ~unsettled):  # of a hinge that is told already
        figures = {"rounds": facts.rounds}
        yield int(s), Finding(Problem.PROPORTIONS_NOT_CONVERGED, values=figures)
