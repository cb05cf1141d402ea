"""Findings in words: one sentence for each kind, in the words of the one who listens.

Python names for the library, options for the command line. Where both would say the same, it
stands once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from defgpa.errors import DefgpaWarning, and_more, listed
from defgpa.findings import Finding, Kind, is_remark

_at_the_shell = ContextVar("at_the_shell", default=False)
_SWITCHES = {"on_mismatch": "--lenient", "incomplete": "--drop-incomplete"}

Words = Mapping[Kind, Callable[[Finding], str]]


def in_python(finding: Finding) -> str:
    """The sentence for someone who calls the library.

    Examples
    --------
    >>> print(in_python(Finding(Kind.LONE_LANDMARKS, landmarks=("7",))))
    Seen in one shape only: landmark '7'. That tells nothing about the reference; it was left out
    of the solve and placed by its shape's warp.
    """
    return _PYTHON[finding.kind](finding)


def in_shell(finding: Finding) -> str:
    """The sentence for someone at the command line."""
    return _SHELL[finding.kind](finding)


@contextmanager
def in_the_words_of_the_shell() -> Iterator[None]:
    """Options are called as on the command line while this lasts."""
    token = _at_the_shell.set(True)
    try:
        yield
    finally:
        _at_the_shell.reset(token)


def option(name: str, value: object = "…", shell: str | None = None) -> str:
    """How the one who listens calls an option of reading or writing.

    Examples
    --------
    >>> option("match", "position"), option("dimension", 3)
    ("match='position'", 'dimension=3')
    >>> with in_the_words_of_the_shell():
    ...     option("match", "position"), option("format"), option("on_mismatch", "warn")
    ('--match position', '--format NAME', '--lenient')
    """
    if not _at_the_shell.get():
        return f"{name}={value!r}"
    return shell or _SWITCHES.get(name, f"--{name} {'NAME' if value == '…' else value}")


def warn_of(findings: Iterable[Finding], stacklevel: int = 2) -> None:
    """A DefgpaWarning for each finding but mere remarks; as from the caller's caller."""
    for finding in findings:
        if is_remark(finding):
            continue
        told = DefgpaWarning(in_python(finding), finding)
        warnings.warn(told, stacklevel=stacklevel + 1)


def _lone_landmarks(found: Finding) -> str:
    return (
        f"Seen in one shape only: landmark {listed(found.landmarks)}. That tells nothing about "
        "the reference; it was left out of the solve and placed by its shape's warp."
    )


def _sparse_landmarks(found: Finding) -> str:
    seen, shapes = int(found.figures["views"]), int(found.figures["shapes"])
    return (
        f"{int(found.figures['landmarks'])} of {int(found.figures['of'])} landmarks are seen in "
        f"at most {seen} of {shapes} shapes. Are their labels the same in all files? Landmarks "
        "that mean the same must have the same name, or the same place in the order."
    )


def _exchanged_landmarks(found: Finding) -> str:
    if found.parts:
        each = (
            f"{a!r} and {b!r} of {own.shapes[0]!r}"
            for own in found.parts
            for a, b in [own.landmarks]
        )
        return (
            f"Landmarks that look exchanged: {and_more(each)}{_if_without(found)}. Check them, and "
            "exchange their coordinates if so."
        )
    a, b = found.landmarks
    return (
        f"Landmarks {a!r} and {b!r} of shape {found.shapes[0]!r} look exchanged"
        f"{_if_without(found)}. Check them, and exchange their coordinates if so."
    )


def _misplaced_landmark(found: Finding) -> str:
    if found.parts:
        each = (f"{own.landmarks[0]!r} of {own.shapes[0]!r}" for own in found.parts)
        return (
            f"Landmarks far from where the others have them: {and_more(each)}{_if_without(found)}. "
            "Check them; make them missing if they are mistakes."
        )
    return (
        f"Landmark {found.landmarks[0]!r} of shape {found.shapes[0]!r} is far from where the "
        f"others have it{_if_without(found)}. Check it; make it missing if it is a mistake."
    )


def _far_shape(found: Finding) -> str:
    return (
        f"Shape {found.shapes[0]!r} is far from all the others: they differ from their mean by "
        f"{found.figures['usual']:.0%} of their size, it by {found.figures['error']:.0%}. Check "
        "its landmarks, their order and those that few others have; drop it if they are wrong."
    )


def _thin_shape(found: Finding) -> str:
    return (
        f"Nearly flat, less than {found.figures['thickness']:.0e} of their length thick: "
        f"{listed(found.shapes)}. That is rounding of coordinates, and the warps follow it: send "
        "no points through them that lie off the plane or line of the landmarks, or align in fewer "
        "dimensions."
    )


def _if_without(found: Finding) -> str:
    change = found.figures.get("change")
    if change is None:
        return ""
    without = "without one of them" if found.parts else "without it"
    most = "at most " if found.parts else ""
    return f"; {without} the reference would change by {most}{change:.1%}"


def _other_size(found: Finding) -> str:
    return (
        f"More than {found.figures['times']:g} times larger or smaller than most "
        f"({len(found.shapes)} of {int(found.figures['of'])} shapes): {listed(found.shapes)}. "
        "Other units? Errors of large shapes outweigh those of small."
    )


def _far_estimates(found: Finding, where: str) -> str:
    return (
        f"Estimated landmarks far outside what the specimen shows: {int(found.figures['count']):,},"
        f" in {listed(found.shapes)}. They are little more than a guess by the other specimens; "
        f"{where} says of each how little is known."
    )


def _repeated_shape(found: Finding) -> str:
    if found.parts:
        pairs = ("{!r} of {!r}".format(*own.shapes) for own in found.parts)
        return (
            f"Shapes with the very coordinates of others: {and_more(pairs)}. Drop those that are "
            "copies."
        )
    one, first = found.shapes
    return f"Shape {one!r} has the very coordinates of {first!r}. Drop one of them if it is a copy."


def _far_from_origin(found: Finding) -> str:
    return (
        f"The coordinates of {listed(found.shapes)} are so far from the origin "
        f"({found.figures['ratio']:.0e} times their extent) that they have lost digits. Subtract "
        "the offset before rounding."
    )


def _few_landmarks(found: Finding) -> str:
    return (
        f"There are {int(found.figures['landmarks'])} landmarks in {int(found.figures['shapes'])} "
        "shapes: so few that a deformable reference is hardly determined. Compare with a rigid "
        "alignment."
    )


def _mirrored_in_side(found: Finding) -> str:
    return f"Mirrored against the others of their side: {listed(found.shapes)}. Check them."


def _passed_neighbour(found: Finding) -> str:
    pairs = [f"{p.shapes[0]}: {p.landmarks[0]} past {p.landmarks[1]}" for p in found.parts]
    return (
        f"Semilandmarks that slid past a neighbour: {listed(pairs)}. Are the points of these "
        "curves in order, and dense enough?"
    )


def _mirrored(found: Finding, remedy: str) -> str:
    return (
        f"Mirrored against the majority of the shapes: {listed(found.shapes)}. If that is not "
        f"meant, {remedy}, or check for swapped left and right landmarks."
    )


def _undetermined_warp(found: Finding) -> str:
    return (
        f"Warps with directions that neither landmarks nor penalty determine: "
        f"{listed(found.shapes)} (flat or coincident points, or no smoothing). The smallest "
        "solution was taken; more smoothing or fewer control points would settle it."
    )


def _charged_translations(found: Finding) -> str:
    return (
        "This warp has no free translations: the reference is centred by the soft constraint, "
        f"which leaves it off centre by {found.figures['offset']:.3g}. ExactCentering() centres "
        "it exactly."
    )


def _weak_centering(found: Finding) -> str:
    return (
        f"The reference is off centre by {found.figures['offset']:.3g}, because the weight of "
        f"SoftCentering is too small. Leave it out: n/m, here {found.figures['enough']:.3g}, "
        "suffices."
    )


def _gap(found: Finding, remedy: str) -> str:
    return (
        f"The spectral gap is nearly zero ({found.figures['value']:.3g} against "
        f"{found.figures['next_value']:.3g}): another reference would do as well. {remedy}"
    )


def _free_directions(found: Finding) -> str:
    return (
        f"{int(found.figures['directions'])} directions are free where {int(found.figures['dim'])}"
        " are usual: parts of the reference could be sheared or turned against each other, as the "
        "landmarks that link them lie nearly on a line or in a plane, or are too few. The "
        "reference was settled by rigidity."
    )


def _hinge(found: Finding) -> str:
    seen = f" (some seen by {listed(found.shapes)} alone)" if found.shapes else ""
    return (
        f"Parts of the reference{seen} hang together as by a hinge and may be sheared or turned "
        "against each other: the landmarks that link them lie nearly on a line or in a plane, "
        "or are too few. Add landmarks that link them, or align the parts on their own."
    )


def _carried_by_few(found: Finding) -> str:
    return (
        f"Axis {int(found.figures['axis'])} of the reference is carried by landmarks "
        f"{listed(found.landmarks)} alone: they are weakly tied to the others. Check them, or "
        "leave them out."
    )


def _rounding(found: Finding) -> str:
    return (
        f"Rounding blurs the reference: the features of shape {found.shapes[0]!r} are nearly "
        f"dependent (condition {found.figures['condition']:.0e}), and the spectral gap of "
        f"{found.figures['gap']:.0e} is narrow. Use more smoothing or fewer features, and measure "
        "them from the centre of the shape."
    )


def _not_converged(found: Finding, remedy: str) -> str:
    return (
        f"The iterative solver stopped after {int(found.figures['products'])} products with a "
        f"residual of {found.figures['residual']:.3g}: the reference may be inaccurate. {remedy}"
    )


def _descent_not_converged(found: Finding) -> str:
    return (
        f"The descent ended after {int(found.figures['iterations'])} steps with a relative "
        f"gradient of {found.figures['gradient']:.1e}, not zero: the shapes hardly determine the "
        "answer. Look for shapes or landmarks that few others share."
    )


def _starts_disagree(found: Finding) -> str:
    return (
        "From the rigid mean and from the deformable reference the descent ends in different "
        f"places, of cost {found.figures['cost'] + found.figures['excess']:.4g} and "
        f"{found.figures['cost']:.4g} (of 1); the cheaper was taken. There may be further ones: "
        "look for shapes that are turned or mirrored against the others."
    )


def _proportions_undetermined(written: str) -> str:
    """``written`` is how proportions are stated."""
    return (
        "The shapes see too little to tell the proportions of the reference by rigidity; those of "
        f"the covariance prior were taken. Add landmarks, or state them: {written}."
    )


def _proportions_not_converged(found: Finding) -> str:
    return (
        f"The proportions of the reference still changed after {int(found.figures['rounds'])} "
        "rounds: the shapes hardly agree on them. Look for outliers and mirrored shapes."
    )


def _large_deformation(found: Finding) -> str:
    figures = found.figures
    follows = "the proportions of the reference are an average of very different ones"
    if "chance" in figures:
        follows = (
            f"with so few of them, the chance that their mean is off by more than "
            f"{figures['off']:.0%} is {figures['chance']:.0%}"
        )
    return (
        f"After the best similarities the shapes still differ by {figures['residual']:.0%} "
        f"of their size: {follows}."
    )


def _foldovers(found: Finding, remedy: str, written: str) -> str:
    """``written`` is how a name and a value of the smoothing are given."""
    count = int(found.figures["landmarks"])
    tried = [(own, found.figures[own]) for own in ("smoothing", "theta") if own in found.figures]
    better = "".join(f" With {written.format(*own)} none does." for own in tried[:1])
    return (
        f"The warp of {listed(found.shapes)} folds over itself at {count:,} landmarks: there it is "
        f"no one-to-one map. {remedy}{better}"
    )


def _in_folds(found: Finding, words: Callable[[Finding], str]) -> str:
    told = " ".join(
        f"({int(part.figures['folds'])} ×) without landmark {listed(part.landmarks)}: "
        f"{words(part.parts[0])}"
        for part in found.parts
    )
    return (
        f"{int(found.figures['folds'])} of {int(found.figures['of'])} folds of the "
        f"cross-validation warned of what the full fit did not: {told}"
    )


def _at_smoothing(found: Finding, words: Callable[[Finding], str]) -> str:
    return (
        f"At {int(found.figures['count'])} of {int(found.figures['of'])} amounts of smoothing: "
        f"{words(found.parts[0])}"
    )


def _in_methods(found: Finding, words: Callable[[Finding], str]) -> str:
    return f"{', '.join(found.methods)}: {words(found.parts[0])}"


def _best_at_edge(found: Finding) -> str:
    remedy = (
        "Less may be better still: extend the grid downwards."
        if found.figures["soft"]
        else "The shapes may not need to bend at all: extend the grid upwards, or compare with "
        "an affine or rigid alignment."
    )
    what = "smallest" if found.figures["soft"] else "largest"
    return (
        f"The smallest cross-validation error is at the {what} smoothing tried, "
        f"{found.figures['smoothing']:.3g}. {remedy}"
    )


def _stiffer_preferred(found: Finding) -> str:
    why = (
        " and does not fold over"
        if found.figures.get("foldovers_avoided")
        else ", and is the stiffest that does"
    )
    return (
        f"Smoothing {found.figures['smoothing']:.3g} was preferred to "
        f"{found.figures['least']:.3g}, the least cross-validation error: it predicts as well, "
        f"within one standard error{why}."
    )


_COMMON: Words = {
    Kind.LONE_LANDMARKS: _lone_landmarks,
    Kind.SPARSE_LANDMARKS: _sparse_landmarks,
    Kind.EXCHANGED_LANDMARKS: _exchanged_landmarks,
    Kind.MISPLACED_LANDMARK: _misplaced_landmark,
    Kind.FAR_SHAPE: _far_shape,
    Kind.THIN_SHAPE: _thin_shape,
    Kind.OTHER_SIZE: _other_size,
    Kind.REPEATED_SHAPE: _repeated_shape,
    Kind.FAR_FROM_ORIGIN: _far_from_origin,
    Kind.FEW_LANDMARKS: _few_landmarks,
    Kind.MIRRORED_IN_SIDE: _mirrored_in_side,
    Kind.PASSED_NEIGHBOUR: _passed_neighbour,
    Kind.UNDETERMINED_WARP: _undetermined_warp,
    Kind.CHARGED_TRANSLATIONS: _charged_translations,
    Kind.WEAK_CENTERING: _weak_centering,
    Kind.FREE_DIRECTIONS: _free_directions,
    Kind.HINGE: _hinge,
    Kind.CARRIED_BY_FEW: _carried_by_few,
    Kind.ROUNDING: _rounding,
    Kind.DESCENT_NOT_CONVERGED: _descent_not_converged,
    Kind.STARTS_DISAGREE: _starts_disagree,
    Kind.PROPORTIONS_NOT_CONVERGED: _proportions_not_converged,
    Kind.LARGE_DEFORMATION: _large_deformation,
    Kind.BEST_AT_EDGE: _best_at_edge,
    Kind.STIFFER_PREFERRED: _stiffer_preferred,
}
_PYTHON: Words = {
    **_COMMON,
    Kind.MIRRORED: lambda f: _mirrored(f, "negate one coordinate there"),
    Kind.NARROW_GAP: lambda f: _gap(f, "Use a stiffer warp, or check how the shapes are linked."),
    Kind.NOT_CONVERGED: lambda f: _not_converged(f, "Use Iterative(most_products=...) or Dense()."),
    Kind.PROPORTIONS_UNDETERMINED: lambda _: _proportions_undetermined(
        "DefGPA(warp, proportions=[...])"
    ),
    Kind.FOLDOVERS: lambda f: _foldovers(f, "More smoothing would straighten it.", "{}={:.3g}"),
    Kind.FAR_ESTIMATES: lambda f: _far_estimates(f, "the uncertainty"),
    Kind.IN_FOLDS: lambda f: _in_folds(f, in_python),
    Kind.AT_SMOOTHING: lambda f: _at_smoothing(f, in_python),
    Kind.IN_METHODS: lambda f: _in_methods(f, in_python),
}
_SHELL: Words = {
    **_COMMON,
    Kind.MIRRORED: lambda f: _mirrored(f, "use --mirror NAME"),
    Kind.NARROW_GAP: lambda f: _gap(
        f, "Try a larger --smoothing, or check how the shapes are linked."
    ),
    Kind.NOT_CONVERGED: lambda f: _not_converged(
        f, "A larger --smoothing or fewer --points-per-axis help."
    ),
    Kind.PROPORTIONS_UNDETERMINED: lambda _: _proportions_undetermined("--proportions L1,L2[,L3]"),
    Kind.FOLDOVERS: lambda f: _foldovers(
        f, "A larger --smoothing would straighten it.", "--{} {:.3g}"
    ),
    Kind.FAR_ESTIMATES: lambda f: _far_estimates(f, "estimated.csv"),
    Kind.IN_FOLDS: lambda f: _in_folds(f, in_shell),
    Kind.AT_SMOOTHING: lambda f: _at_smoothing(f, in_shell),
    Kind.IN_METHODS: lambda f: _in_methods(f, in_shell),
}
