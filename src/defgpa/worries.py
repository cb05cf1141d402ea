"""What a user should be told about an alignment, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from defgpa._arrays import Index, frozen
from defgpa.alignment import Alignment
from defgpa.errors import listed
from defgpa.shapes import Shapes

AMBIGUOUS_GAP = 1e-3  # relative spectral gap below which another reference would do as well
CHARGED = 1e-7  # ‖P1‖ / (n √m) above which a translation is not free
OFF_CENTRE = 1e-6  # of the extent of the reference
NOT_CENTRED = 1e-3  # of it: no rounding, an axis has the constant vector in it
HINGED = 0.1  # cohesion below which the next cheapest direction is a movement of parts
FIRM_GAP = 0.75  # relative gap above which such a movement costs enough to be held
BLURRED = 1e-3  # of the gap: rounding above shows in the sixth digit of the reference, or sooner
HANDFUL = 0.9  # share of an axis that a handful of landmarks must not carry


def with_lone_landmarks(core: Alignment, shapes: Shapes, shared: Index) -> Alignment:
    """The alignment of all landmarks: one seen once stands where its shape's warp puts it."""
    if len(shared) == shapes.n_landmarks:
        return core
    lone = np.setdiff1d(np.arange(shapes.n_landmarks), shared)
    reference = np.empty((shapes.n_landmarks, shapes.dim))
    reference[shared] = core.reference
    for j in lone:
        seer = int(np.argmax(shapes.visible[:, j]))
        reference[j] = core.warps[seer](shapes.points[seer, j][None])[0]
    diagnostics = replace(
        core.diagnostics,
        views=shapes.views,
        lone_landmarks=tuple(shapes.landmarks[j] for j in lone),
        points=shapes.points,
    )
    return replace(core, shapes=shapes, reference=frozen(reference), diagnostics=diagnostics)


def with_worries(alignment: Alignment) -> Alignment:
    """The same alignment, its diagnostics saying what to worry about."""
    found = tuple(worries(alignment))
    if found == alignment.diagnostics.warnings:
        return alignment
    return replace(alignment, diagnostics=replace(alignment.diagnostics, warnings=found))


def worries(alignment: Alignment) -> Iterator[str]:
    """Everything worth a warning, one sentence each."""
    about_shapes = _lone, _mirrored, _free
    about_axes = _off_centre, _gap, _hinged, _handful, _blurred, _unsettled
    for check in about_shapes + about_axes:
        yield from check(alignment)


def _lone(alignment: Alignment) -> Iterator[str]:
    names = alignment.diagnostics.lone_landmarks
    if names:
        yield (
            f"Seen in one shape only: landmark {listed(names)}. That tells nothing about the "
            "reference; it was left out of the solve and placed by its shape's warp."
        )


def _mirrored(alignment: Alignment) -> Iterator[str]:
    names = alignment.diagnostics.mirrored
    if names:
        yield (
            f"Mirrored against the majority of the shapes: {listed(names)}. If that is not meant, "
            "negate one coordinate there, or check for swapped left and right landmarks."
        )


def _free(alignment: Alignment) -> Iterator[str]:
    free = np.flatnonzero(alignment.diagnostics.free_directions)
    if len(free):
        names = listed(alignment.shapes.names[i] for i in free)
        yield (
            f"Warps with directions that neither landmarks nor penalty determine: {names} "
            "(flat or coincident points, or no smoothing). The smallest solution was taken; more "
            "smoothing or fewer control points would settle it."
        )


def _off_centre(alignment: Alignment) -> Iterator[str]:
    """The soft constraint centres exactly only what translates for nothing, and if it is strong."""
    shapes, found = alignment.shapes, alignment.diagnostics
    if not len(found.spectrum):
        return  # not a method that centres its reference
    reference = alignment.reference[shapes.views >= 2]
    offset = float(np.linalg.norm(reference.mean(axis=0)))
    extent = float(np.abs(reference).max())
    if not offset > OFF_CENTRE * extent:
        return
    if found.translation_cost > CHARGED * shapes.n_shapes * np.sqrt(len(reference)):
        yield (
            "This warp has no free translations: the reference is centred by the soft constraint, "
            f"which leaves it off centre by {offset:.3g}. ExactCentering() centres it exactly."
        )
    elif found.settled and offset > NOT_CENTRED * extent:
        yield (
            f"The reference is off centre by {offset:.3g}, because the weight of SoftCentering is "
            f"too small. Leave it out: n/m, here {shapes.n_shapes / len(reference):.3g}, suffices."
        )


def _gap(alignment: Alignment) -> Iterator[str]:
    # a flat reference has as many axes as it has extents
    values, d = alignment.diagnostics.spectrum, int((alignment.eigenvalues > 0).sum())
    if len(values) <= d:
        return
    rounding = 1e3 * np.finfo(np.float64).eps * alignment.shapes.n_shapes
    if alignment.diagnostics.gap > AMBIGUOUS_GAP and values[d] - values[d - 1] > rounding:
        return
    yield (
        f"The spectral gap is nearly zero ({values[d - 1]:.3g} against {values[d]:.3g}): another "
        "reference would do as well. Use a stiffer warp, or check how the shapes are linked."
    )


def _hinged(alignment: Alignment) -> Iterator[str]:
    """The gap may be wide in numbers and still be that of two noises."""
    found = alignment.diagnostics
    if found.cohesion < HINGED and AMBIGUOUS_GAP < found.gap < FIRM_GAP:
        yield (
            "Parts of the reference hang together as by a hinge and may be sheared or turned "
            "against each other: the landmarks that link them lie nearly on a line or in a plane, "
            "or are too few. Add landmarks that link them, or align the parts on their own."
        )


def _handful(alignment: Alignment) -> Iterator[str]:
    """An axis that lives on a few landmarks is an artefact of how they are seen."""
    shapes, few = alignment.shapes, alignment.shapes.dim + 1
    shared = np.flatnonzero(shapes.views >= 2)
    if len(shared) < 4 * few or not len(alignment.diagnostics.spectrum):
        return
    axes = alignment.reference[shared] @ alignment.turn.T
    axes = axes / np.maximum(np.linalg.norm(axes, axis=0), np.finfo(np.float64).tiny)  # or flat
    shares = np.partition(axes**2, -few, axis=0)[-few:].sum(axis=0)
    if not (shares > HANDFUL).any():
        return
    axis = int(np.argmax(shares))
    carriers = shared[np.argsort(-np.abs(axes[:, axis]))[:few]]
    yield (
        f"Axis {axis + 1} of the reference is carried by landmarks "
        f"{listed(shapes.landmarks[j] for j in carriers)} alone: they are weakly tied to the "
        "others. Check them, or leave them out."
    )


def _blurred(alignment: Alignment) -> Iterator[str]:
    """What rounding makes of nearly dependent features, against the gap it must not fill."""
    found, d = alignment.diagnostics, int((alignment.eigenvalues > 0).sum())
    if len(found.spectrum) <= d or found.free_directions.any():
        return
    gap = found.spectrum[d] - found.spectrum[d - 1]
    worst = int(np.argmax(found.condition))
    rounding = np.finfo(np.float64).eps * np.sqrt(found.condition[worst])
    if rounding > BLURRED * gap and found.gap > AMBIGUOUS_GAP:
        yield (
            "Rounding blurs the reference: the features of shape "
            f"{alignment.shapes.names[worst]!r} are nearly dependent (condition "
            f"{found.condition[worst]:.0e}), and the spectral gap of {gap:.0e} is narrow. Use more "
            "smoothing or fewer features, and measure them from the centre of the shape."
        )


def _unsettled(alignment: Alignment) -> Iterator[str]:
    found = alignment.diagnostics
    if found.settled:
        return
    if found.method == "iterative":
        yield (
            f"The iterative solver stopped after {found.products} products with a residual of "
            f"{found.residuals.max():.3g}: the reference may be inaccurate. Use "
            "Iterative(most_products=...) or Dense()."
        )
    else:
        yield (
            f"The descent ({found.method}) ended with a relative gradient of "
            f"{found.residuals.max():.1e}, not zero: the shapes hardly determine the answer. Look "
            "for shapes or landmarks that few others share."
        )
