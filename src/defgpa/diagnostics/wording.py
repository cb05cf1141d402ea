"""Findings in words: one sentence for each kind, in the words of the one who listens.

A sentence has fields: the figures of the finding by their names, the ``names`` of the ``n_names``
shapes and the ``labels`` of the landmarks it is about, the ``name`` of the first shape, the
``methods`` it was found with, the sentence of the ``part`` it sums up, and the ``remedy``, which
each listener calls differently: Python names for the library, options for the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from defgpa.diagnostics.findings import Finding, Problem, is_remark
from defgpa.errors import and_more, listed, warn

_at_the_shell = ContextVar("at_the_shell", default=False)
_SWITCHES = {"on_mismatch": "--lenient", "incomplete": "--drop-incomplete"}

Remedies = Mapping[str, str]


def in_python(finding: Finding) -> str:
    """The sentence for someone who calls the library.

    Examples
    --------
    >>> print(in_python(Finding(Problem.LONE_LANDMARKS, landmarks=("7",))))
    Seen in one shape only: landmark '7'. That tells nothing about the reference; it was left out
    of the solve and placed by its shape's warp.
    """
    return _said(finding, _PYTHON)


def in_shell(finding: Finding) -> str:
    """The sentence for someone at the command line."""
    return _said(finding, _SHELL)


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


def warn_of(findings: Iterable[Finding]) -> None:
    """A DefgpaWarning for each finding but mere remarks."""
    for finding in findings:
        if not is_remark(finding):
            warn(in_python(finding), finding)


def _said(found: Finding, remedies: Remedies) -> str:
    if found.problem in _COMPOSED:
        return _COMPOSED[found.problem](found, remedies)
    fields = {
        "names": listed(found.shapes),
        "labels": listed(found.landmarks),
        "name": next(iter(found.shapes), ""),
        "n_names": len(found.shapes),
        "methods": ", ".join(found.methods),
        "part": _said(found.parts[0], remedies) if found.parts else "",
        "remedy": remedies.get(found.problem, ""),
    }
    return _SENTENCES[found.problem].format_map({**found.values, **fields})


_SENTENCES: Mapping[Problem, str] = {
    Problem.LONE_LANDMARKS: (
        "Seen in one shape only: landmark {labels}. That tells nothing about the reference; it was "
        "left out of the solve and placed by its shape's warp."
    ),
    Problem.SPARSE_LANDMARKS: (
        "{landmarks:.0f} of {of:.0f} landmarks are seen in at most {views:.0f} of {shapes:.0f} "
        "shapes. Are their labels the same in all files? Landmarks that mean the same must have "
        "the same name, or the same place in the order."
    ),
    Problem.FAR_SHAPE: (
        "Shape {name!r} is far from all the others: they differ from their mean by {usual:.0%} of "
        "their size, it by {error:.0%}. Check its landmarks, their order and those that few others "
        "have; drop it if they are wrong."
    ),
    Problem.THIN_SHAPE: (
        "Nearly flat, less than {thickness:.0e} of their length thick: {names}. That is rounding "
        "of coordinates, and the warps follow it: send no points through them that lie off the "
        "plane or line of the landmarks, or align in fewer dimensions."
    ),
    Problem.OTHER_SIZE: (
        "More than {times:g} times larger or smaller than most ({n_names} of {of:.0f} shapes): "
        "{names}. Other units? Errors of large shapes outweigh those of small."
    ),
    Problem.FAR_FROM_ORIGIN: (
        "The coordinates of {names} are so far from the origin ({ratio:.0e} times their extent) "
        "that they have lost digits. Subtract the offset before rounding."
    ),
    Problem.FEW_LANDMARKS: (
        "There are {landmarks:.0f} landmarks in {shapes:.0f} shapes: so few that a deformable "
        "reference is hardly determined. Compare with a rigid alignment."
    ),
    Problem.MIRRORED_IN_SIDE: "Mirrored against the others of their side: {names}. Check them.",
    Problem.FAR_ESTIMATES: (
        "Estimated landmarks far outside what the specimen shows: {count:,.0f}, in {names}. They "
        "are little more than a guess by the other specimens; {remedy} says of each how little is "
        "known."
    ),
    Problem.MIRRORED: (
        "Mirrored against the majority of the shapes: {names}. If that is not meant, {remedy}, or "
        "check for swapped left and right landmarks."
    ),
    Problem.UNDETERMINED_WARP: (
        "Warps with directions that neither landmarks nor penalty determine: {names} (flat or "
        "coincident points, or no smoothing). The smallest solution was taken; more smoothing or "
        "fewer control points would settle it."
    ),
    Problem.CHARGED_TRANSLATIONS: (
        "This warp has no free translations: the reference is centred by the soft constraint, "
        "which leaves it off centre by {offset:.3g}. ExactCentering() centres it exactly."
    ),
    Problem.WEAK_CENTERING: (
        "The reference is off centre by {offset:.3g}, because the weight of SoftCentering is too "
        "small. Leave it out: n/m, here {enough:.3g}, suffices."
    ),
    Problem.NARROW_GAP: (
        "The spectral gap is nearly zero ({value:.3g} against {next_value:.3g}): another reference "
        "would do as well. {remedy}, or check how the shapes are linked."
    ),
    Problem.FREE_DIRECTIONS: (
        "{directions:.0f} directions are free where {dim:.0f} are usual: parts of the reference "
        "could be sheared or turned against each other, as the landmarks that link them lie nearly "
        "on a line or in a plane, or are too few. The reference was settled by rigidity."
    ),
    Problem.CARRIED_BY_FEW: (
        "Axis {axis:.0f} of the reference is carried by landmarks {labels} alone: they are weakly "
        "tied to the others. Check them, or leave them out."
    ),
    Problem.ROUNDING: (
        "Rounding blurs the reference: the features of shape {name!r} are nearly dependent "
        "(condition {condition:.0e}), and the spectral gap of {gap:.0e} is narrow. Use more "
        "smoothing or fewer features, and measure them from the centre of the shape."
    ),
    Problem.NOT_CONVERGED: (
        "The iterative solver stopped after {products:.0f} products with a residual of "
        "{residual:.3g}: the reference may be inaccurate. {remedy}"
    ),
    Problem.DESCENT_NOT_CONVERGED: (
        "The descent ended after {iterations:.0f} steps with a relative gradient of "
        "{gradient:.1e}, not zero: the shapes hardly determine the answer. Look for shapes or "
        "landmarks that few others share."
    ),
    Problem.PROPORTIONS_UNDETERMINED: (
        "The shapes see too little to tell the proportions of the reference by rigidity; those of "
        "the covariance prior were taken. Add landmarks, or state them: {remedy}."
    ),
    Problem.PROPORTIONS_NOT_CONVERGED: (
        "The proportions of the reference still changed after {rounds:.0f} rounds: the shapes "
        "hardly agree on them. Look for outliers and mirrored shapes."
    ),
    Problem.AT_SMOOTHING: "At {count:.0f} of {of:.0f} amounts of smoothing: {part}",
    Problem.IN_METHODS: "{methods}: {part}",
}
_PYTHON: Remedies = {
    Problem.MIRRORED: "negate one coordinate there",
    Problem.NARROW_GAP: "Use a stiffer warp",
    Problem.NOT_CONVERGED: "Use Iterative(most_products=...) or Dense().",
    Problem.PROPORTIONS_UNDETERMINED: "DefGPA(warp, proportions=[...])",
    Problem.FOLDOVERS: "More smoothing would straighten it.",
    Problem.FAR_ESTIMATES: "the uncertainty",
    "given": "{}={:.3g}",
}
_SHELL: Remedies = {
    Problem.MIRRORED: "use --mirror NAME",
    Problem.NARROW_GAP: "Try a larger --smoothing",
    Problem.NOT_CONVERGED: "A larger --smoothing or fewer --points-per-axis help.",
    Problem.PROPORTIONS_UNDETERMINED: "--proportions L1,L2[,L3]",
    Problem.FOLDOVERS: "A larger --smoothing would straighten it.",
    Problem.FAR_ESTIMATES: "estimated.csv",
    "given": "--{} {:.3g}",
}


def _exchanged_landmarks(found: Finding, _: Remedies) -> str:
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


def _misplaced_landmark(found: Finding, _: Remedies) -> str:
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


def _if_without(found: Finding) -> str:
    change = found.values.get("change")
    if change is None:
        return ""
    several = "without them" if len(found.landmarks) > 1 else "without it"
    without = "without one of them" if found.parts else several
    most = "at most " if found.parts else ""
    return f"; {without} the reference would change by {most}{change:.1%}"


def _repeated_shape(found: Finding, _: Remedies) -> str:
    if found.parts:
        pairs = ("{!r} of {!r}".format(*own.shapes) for own in found.parts)
        return (
            f"Shapes with the very coordinates of others: {and_more(pairs)}. Drop those that are "
            "copies."
        )
    one, first = found.shapes
    return f"Shape {one!r} has the very coordinates of {first!r}. Drop one of them if it is a copy."


def _passed_neighbour(found: Finding, _: Remedies) -> str:
    pairs = [f"{p.shapes[0]}: {p.landmarks[0]} past {p.landmarks[1]}" for p in found.parts]
    return (
        f"Semilandmarks that slid past a neighbour: {listed(pairs)}. Are the points of these "
        "curves in order, and dense enough?"
    )


def _hinge(found: Finding, _: Remedies) -> str:
    seen = f" (some seen by {listed(found.shapes)} alone)" if found.shapes else ""
    return (
        f"Parts of the reference{seen} hang together as by a hinge and may be sheared or turned "
        "against each other: the landmarks that link them lie nearly on a line or in a plane, "
        "or are too few. Add landmarks that link them, or align the parts on their own."
    )


def _starts_disagree(found: Finding, _: Remedies) -> str:
    return (
        "From the rigid mean and from the deformable reference the descent ends in different "
        f"places, of cost {found.values['cost'] + found.values['excess']:.4g} and "
        f"{found.values['cost']:.4g} (of 1); the cheaper was taken. There may be further ones: "
        "look for shapes that are turned or mirrored against the others."
    )


def _large_deformation(found: Finding, _: Remedies) -> str:
    figures = found.values
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


def _foldovers(found: Finding, remedies: Remedies) -> str:
    tried = [(own, found.values[own]) for own in ("smoothing", "theta") if own in found.values]
    better = "".join(f" With {remedies['given'].format(*own)} none does." for own in tried[:1])
    return (
        f"The warp of {listed(found.shapes)} folds over itself at "
        f"{int(found.values['landmarks']):,} landmarks: there it is no one-to-one map. "
        f"{remedies[found.problem]}{better}"
    )


def _in_folds(found: Finding, remedies: Remedies) -> str:
    told = " ".join(
        f"({int(part.values['folds'])} ×) without landmark {listed(part.landmarks)}: "
        f"{_said(part.parts[0], remedies)}"
        for part in found.parts
    )
    return (
        f"{int(found.values['folds'])} of {int(found.values['of'])} folds of the "
        f"cross-validation warned of what the full fit did not: {told}"
    )


def _best_at_edge(found: Finding, _: Remedies) -> str:
    remedy = (
        "Less may be better still: extend the grid downwards."
        if found.values["soft"]
        else "The shapes may not need to bend at all: extend the grid upwards, or compare with "
        "an affine or rigid alignment."
    )
    what = "smallest" if found.values["soft"] else "largest"
    return (
        f"The smallest cross-validation error is at the {what} smoothing tried, "
        f"{found.values['smoothing']:.3g}. {remedy}"
    )


def _stiffer_preferred(found: Finding, _: Remedies) -> str:
    why = (
        " and does not fold over"
        if found.values.get("foldovers_avoided")
        else ", and is the stiffest that does"
    )
    return (
        f"Smoothing {found.values['smoothing']:.3g} was preferred to "
        f"{found.values['least']:.3g}, the least cross-validation error: it predicts as well, "
        f"within one standard error{why}."
    )


_COMPOSED: Mapping[Problem, Callable[[Finding, Remedies], str]] = {
    Problem.EXCHANGED_LANDMARKS: _exchanged_landmarks,
    Problem.MISPLACED_LANDMARK: _misplaced_landmark,
    Problem.REPEATED_SHAPE: _repeated_shape,
    Problem.PASSED_NEIGHBOUR: _passed_neighbour,
    Problem.HINGE: _hinge,
    Problem.STARTS_DISAGREE: _starts_disagree,
    Problem.LARGE_DEFORMATION: _large_deformation,
    Problem.FOLDOVERS: _foldovers,
    Problem.IN_FOLDS: _in_folds,
    Problem.BEST_AT_EDGE: _best_at_edge,
    Problem.STIFFER_PREFERRED: _stiffer_preferred,
}
