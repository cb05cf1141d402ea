"""Problems that a user should know about, each with its message in one place.

A check returns findings; it never warns, prints or formats. ``str(finding)`` is its message, in the
words of the library or, within ``use_wording``, in those of another audience.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from defgpa.diagnostics.wording import get_wording
from defgpa.errors import format_names, format_some, warn


class Problem(StrEnum):
    """The kinds of problems. The names are stable: scripts read them in summary.json."""

    # of the input
    LONE_LANDMARKS = "lone-landmarks"
    SPARSE_LANDMARKS = "sparse-landmarks"
    EXCHANGED_LANDMARKS = "exchanged-landmarks"
    MISPLACED_LANDMARK = "misplaced-landmark"
    FAR_SHAPE = "far-shape"
    THIN_SHAPE = "thin-shape"
    PLANAR_SHAPES = "planar-shapes"
    OTHER_SIZE = "other-size"
    REPEATED_SHAPE = "repeated-shape"
    FAR_FROM_ORIGIN = "far-from-origin"
    FEW_LANDMARKS = "few-landmarks"
    MIRRORED_IN_SIDE = "mirrored-in-side"
    # of registered shapes
    OTHER_LANDMARK_ORDER = "other-landmark-order"
    # of sliding
    PASSED_NEIGHBOUR = "passed-neighbour"
    # of completed landmarks
    FAR_ESTIMATES = "far-estimates"
    # of statistics
    UNEQUAL_DISPERSION = "unequal-dispersion"
    # of a solve
    MIRRORED = "mirrored"
    UNDETERMINED_WARP = "undetermined-warp"
    CHARGED_TRANSLATIONS = "charged-translations"
    WEAK_CENTERING = "weak-centering"
    NARROW_GAP = "narrow-gap"
    FREE_DIRECTIONS = "free-directions"
    HINGE = "hinge"
    CARRIED_BY_FEW = "carried-by-few"
    ROUNDING = "rounding"
    NOT_CONVERGED = "not-converged"
    DESCENT_NOT_CONVERGED = "descent-not-converged"
    STARTS_DISAGREE = "starts-disagree"
    PROPORTIONS_UNDETERMINED = "proportions-undetermined"
    PROPORTIONS_NOT_CONVERGED = "proportions-not-converged"
    LARGE_DEFORMATION = "large-deformation"
    REJECTED_LANDMARKS = "rejected-landmarks"
    REJECTED_SHAPES = "rejected-shapes"
    ROBUST_BREAKDOWN = "robust-breakdown"
    FOLDOVERS = "foldovers"
    # of what is made of several solves
    IN_FOLDS = "in-folds"
    AT_SMOOTHING = "at-smoothing"
    IN_METHODS = "in-methods"
    BEST_AT_EDGE = "best-at-edge"
    STIFFER_PREFERRED = "stiffer-preferred"

    @property
    def is_remark(self) -> bool:
        """Whether the command line and the report state it, but no warning is issued."""
        return self in _REMARKS


@dataclass(frozen=True)
class Finding:
    """One problem, the shapes and landmarks it concerns, and the numbers behind it.

    Attributes
    ----------
    problem : Problem
        What it is about; a stable name.
    shapes, landmarks : tuple of str
        The shapes and landmarks that it concerns.
    values : mapping of str to number
        The numbers that its message states.
    parts : tuple of Finding
        The findings that it sums up, where it sums up others.
    methods : tuple of str
        The methods it was found with, where several were compared.

    Examples
    --------
    >>> finding = Finding(Problem.LONE_LANDMARKS, landmarks=("7",))
    >>> print(finding)
    Visible in one shape only: landmark '7'. That tells nothing about the reference; it was left out
    of the solve and placed by its shape's warp.
    >>> finding.to_dict()
    {'problem': 'lone-landmarks', 'landmarks': ['7']}
    """

    problem: Problem
    shapes: tuple[str, ...] = ()
    landmarks: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    parts: tuple[Finding, ...] = ()
    methods: tuple[str, ...] = ()

    def __str__(self) -> str:
        message = _MESSAGES[self.problem]
        if not isinstance(message, str):
            return message(self)
        fields = {
            "names": format_names(self.shapes),
            "labels": format_names(self.landmarks),
            "name": next(iter(self.shapes), ""),
            "n_names": len(self.shapes),
            "methods": ", ".join(self.methods),
            "parts": " ".join(map(str, self.parts)),
            "remedy": get_wording().remedies.get(self.problem, ""),
        }
        return message.format_map({**self.values, **fields})

    @property
    def is_remark(self) -> bool:
        """Whether the finding, or every part of it, is a remark rather than a warning."""
        if self.parts:
            return all(subfinding.is_remark for subfinding in self.parts)
        if self.problem is Problem.MISPLACED_LANDMARK:
            return self.values.get("change", 1.0) < MIN_CHANGE
        return self.problem.is_remark

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are not empty, as JSON holds them."""
        fields: dict[str, Any] = {"problem": str(self.problem.value)}
        for name in ("shapes", "landmarks", "methods"):
            if getattr(self, name):
                fields[name] = list(getattr(self, name))
        if self.values:
            fields["values"] = dict(self.values)
        if self.parts:
            fields["parts"] = [subfinding.to_dict() for subfinding in self.parts]
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Finding:
        """Make the finding that ``to_dict`` returned."""
        return cls(
            Problem(fields["problem"]),
            tuple(fields.get("shapes", ())),
            tuple(fields.get("landmarks", ())),
            dict(fields.get("values", {})),
            tuple(cls.from_dict(subfinding) for subfinding in fields.get("parts", ())),
            tuple(fields.get("methods", ())),
        )


MIN_CHANGE = 0.01  # of the reference, without a misplaced landmark: nobody would see less

_REMARKS = frozenset(
    {
        Problem.LARGE_DEFORMATION,
        Problem.OTHER_SIZE,
        Problem.REPEATED_SHAPE,
        Problem.STIFFER_PREFERRED,
    }
)
_REPORTED_PER_SHAPE = frozenset(
    {Problem.MISPLACED_LANDMARK, Problem.EXCHANGED_LANDMARKS, Problem.REPEATED_SHAPE}
)


def warn_about(findings: Iterable[Finding]) -> None:
    """Issue a DefgpaWarning for each finding that is more than a remark."""
    for finding in findings:
        if not finding.is_remark:
            warn(str(finding), finding)


def group_by_problem(findings: Iterable[Finding]) -> list[Finding]:
    """Sum up the findings of problems that are found shape by shape, one for each problem.

    The order is kept, and so are the findings of other problems.

    Examples
    --------
    >>> a, b = (Finding(Problem.MISPLACED_LANDMARK, (name,), ("tip",)) for name in "ab")
    >>> [f.shapes for f in group_by_problem([a, Finding(Problem.MIRRORED, ("c",)), b])]
    [('a', 'b'), ('c',)]
    """
    groups: dict[Problem | int, list[Finding]] = {}
    for number, finding in enumerate(findings):
        key = finding.problem if finding.problem in _REPORTED_PER_SHAPE else number
        groups.setdefault(key, []).append(finding)
    return [_sum_up(group) for group in groups.values()]


def _sum_up(findings: list[Finding]) -> Finding:
    """Merge findings of one problem into one, with them as its parts."""
    if len(findings) == 1:
        return findings[0]
    changes = [finding.values["change"] for finding in findings if "change" in finding.values]
    return Finding(
        findings[0].problem,
        shapes=tuple(dict.fromkeys(name for finding in findings for name in finding.shapes)),
        landmarks=tuple(
            dict.fromkeys(label for finding in findings for label in finding.landmarks)
        ),
        values={"change": max(changes)} if changes else {},
        parts=tuple(findings),
    )


def _describe_exchanges(finding: Finding) -> str:
    if finding.parts:
        pairs = (
            f"{a!r} and {b!r} of {subfinding.shapes[0]!r}"
            for subfinding in finding.parts
            for a, b in [subfinding.landmarks]
        )
        return (
            f"Landmarks that look exchanged: {format_some(pairs)}{_describe_change(finding)}. "
            "Check them, and exchange their coordinates if so."
        )
    a, b = finding.landmarks
    return (
        f"Landmarks {a!r} and {b!r} of shape {finding.shapes[0]!r} look exchanged"
        f"{_describe_change(finding)}. Check them, and exchange their coordinates if so."
    )


def _describe_misplacements(finding: Finding) -> str:
    if finding.parts:
        places = (
            f"{subfinding.landmarks[0]!r} of {subfinding.shapes[0]!r}"
            for subfinding in finding.parts
        )
        return (
            f"Landmarks far from where the others have them: {format_some(places)}"
            f"{_describe_change(finding)}. Check them; make them missing if they are mistakes."
        )
    return (
        f"Landmark {finding.landmarks[0]!r} of shape {finding.shapes[0]!r} is far from where the "
        f"others have it{_describe_change(finding)}. Check it; make it missing if it is a mistake."
    )


def _describe_change(finding: Finding) -> str:
    """Say how much the reference would change without the landmarks, where that is known."""
    change = finding.values.get("change")
    if change is None:
        return ""
    if finding.parts:
        return f"; without one of them the reference would change by at most {change:.1%}"
    pronoun = "them" if len(finding.landmarks) > 1 else "it"
    return f"; without {pronoun} the reference would change by {change:.1%}"


def _describe_copies(finding: Finding) -> str:
    if finding.parts:
        pairs = ("{!r} of {!r}".format(*subfinding.shapes) for subfinding in finding.parts)
        return (
            f"Shapes with the very coordinates of others: {format_some(pairs)}. Drop those that "
            "are copies."
        )
    copy, original = finding.shapes
    return f"Shape {copy!r} has the very coordinates of {original!r}. Drop it if it is a copy."


def _describe_crossings(finding: Finding) -> str:
    pairs = [
        f"{subfinding.shapes[0]}: {' past '.join(subfinding.landmarks)}"
        for subfinding in finding.parts
    ]
    return (
        f"Semilandmarks that slid past a neighbour: {format_names(pairs)}. Are the points of these "
        "curves in order, and dense enough?"
    )


def _describe_hinge(finding: Finding) -> str:
    where = f" (some visible in {format_names(finding.shapes)} only)" if finding.shapes else ""
    return (
        f"Parts of the reference{where} hang together as by a hinge and may be sheared or turned "
        "against each other: the landmarks that link them lie nearly on a line or in a plane, "
        "or are too few. Add landmarks that link them, or align the parts on their own."
    )


def _describe_disagreeing_starts(finding: Finding) -> str:
    cost, excess = finding.values["cost"], finding.values["excess"]
    return (
        "From the rigid mean and from the deformable reference the descent ends in different "
        f"places, of cost {cost + excess:.4g} and {cost:.4g} (of 1); the cheaper was taken. There "
        "may be further ones: look for shapes that are turned or mirrored against the others."
    )


def _describe_large_deformation(finding: Finding) -> str:
    values = finding.values
    consequence = "the proportions of the reference are an average of very different ones"
    if "chance" in values:
        consequence = (
            f"with so few of them, the chance that their mean is off by more than "
            f"{values['off']:.0%} is {values['chance']:.0%}"
        )
    return (
        f"After the best similarities the shapes still differ by {values['residual']:.0%} "
        f"of their size: {consequence}."
    )


def _describe_foldovers(finding: Finding) -> str:
    wording = get_wording()
    name = next((name for name in ("smoothing", "theta") if name in finding.values), None)
    better = ""
    if name is not None:
        better = f" With {wording.name_option(name, finding.values[name])} none does."
    return (
        f"The warp of {format_names(finding.shapes)} folds over itself at "
        f"{int(finding.values['landmarks']):,} landmarks: there it is no one-to-one map. "
        f"{wording.remedies[finding.problem]}{better}"
    )


def _describe_folds(finding: Finding) -> str:
    parts = " ".join(
        f"({int(subfinding.values['folds'])} ×) without landmark "
        f"{format_names(subfinding.landmarks)}: {subfinding.parts[0]}"
        for subfinding in finding.parts
    )
    return (
        f"{int(finding.values['folds'])} of {int(finding.values['of'])} folds of the "
        f"cross-validation warned of what the full fit did not: {parts}"
    )


def _describe_best_at_edge(finding: Finding) -> str:
    edge = "largest"
    remedy = (
        "The shapes may not need to bend at all: extend the grid upwards, or compare with an "
        "affine or rigid alignment."
    )
    if finding.values["soft"]:
        edge, remedy = "smallest", "Less may be better still: extend the grid downwards."
    return (
        f"The smallest cross-validation error is at the {edge} smoothing tried, "
        f"{finding.values['smoothing']:.3g}. {remedy}"
    )


def _describe_stiffer_choice(finding: Finding) -> str:
    if not finding.values.get("as_good", 1.0):
        return (
            f"Smoothing {finding.values['smoothing']:.3g} was taken instead of "
            f"{finding.values['least']:.3g}, the least cross-validation error, where warps fold "
            "over or lie farther from the shapes (RMSE_d) than rigid alignment."
        )
    reason = (
        " and does not fold over"
        if finding.values.get("foldovers_avoided")
        else ", and is the stiffest that does"
    )
    return (
        f"Smoothing {finding.values['smoothing']:.3g} was preferred to "
        f"{finding.values['least']:.3g}, the least cross-validation error: it predicts as well, "
        f"within one standard error{reason}."
    )


def _describe_robust_breakdown(finding: Finding) -> str:
    places = [
        f"{word} {format_names(names)}"
        for word, names in (("landmarks", finding.landmarks), ("shapes", finding.shapes))
        if names
    ]
    where = f", of {' and '.join(places)} more than a third" if places else ""
    return (
        f"The robust fit left out {finding.values['share']:.0f} % of all landmarks{where}: more "
        "than can be recovered. Do not trust this result; correct the landmarks first."
    )


def _describe_effect(finding: Finding) -> str:
    """Say how much the reference would change with the rejected landmarks, where that is known."""
    change = finding.values.get("change")
    return "" if change is None else f"; with them the reference would change by {change:.1%}"


def _describe_rejected_landmarks(finding: Finding) -> str:
    count, largest = finding.values["count"], finding.values["largest"]
    words = "1 landmark that does" if count == 1 else f"{count:.0f} landmarks that do"
    return (
        f"The robust fit left out {words} not fit the others (scores up to {largest:.0f} standard "
        f"deviations): {format_names(finding.landmarks)}{_describe_effect(finding)}. Check them; "
        "correct them, or make them missing."
    )


def _describe_rejected_shapes(finding: Finding) -> str:
    return (
        "The robust fit left out whole shapes, since too many of their landmarks do not fit the "
        f"others: {format_names(finding.shapes)}{_describe_effect(finding)}. Check the order of "
        "their landmarks, and whether they are mirrored."
    )


# Fields of a template: the values of the finding by their names, the names of its shapes, the
# labels of its landmarks, the messages of its parts, and the remedy in the words of the audience.
_MESSAGES: Mapping[Problem, str | Callable[[Finding], str]] = {
    Problem.REJECTED_LANDMARKS: _describe_rejected_landmarks,
    Problem.REJECTED_SHAPES: _describe_rejected_shapes,
    Problem.ROBUST_BREAKDOWN: _describe_robust_breakdown,
    Problem.LONE_LANDMARKS: (
        "Visible in one shape only: landmark {labels}. That tells nothing about the reference; it "
        "was left out of the solve and placed by its shape's warp."
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
    Problem.UNEQUAL_DISPERSION: (
        "The groups differ in dispersion (P {p:.3g}) and in size ({smallest:g} to {largest:g} "
        "specimens): P of their means is too small where the smaller groups vary more, and too "
        "large where they vary less. Compare groups of equal size, or report the dispersions too."
    ),
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
    Problem.PLANAR_SHAPES: (
        "The landmarks of every shape lie in a plane, to {thickness:.0e} of its length, though "
        "they have 3 coordinates. {remedy}"
    ),
    Problem.OTHER_LANDMARK_ORDER: (
        "The landmarks of {names} seem to be in another order than those of the reference: in "
        "their order they are off by {error:.0%} of its size, matched by place by "
        "{matched_error:.0%}. Check the order of the landmarks."
    ),
    Problem.AT_SMOOTHING: "At {count:.0f} of {of:.0f} amounts of smoothing: {parts}",
    Problem.IN_METHODS: "{methods}: {parts}",
    Problem.EXCHANGED_LANDMARKS: _describe_exchanges,
    Problem.MISPLACED_LANDMARK: _describe_misplacements,
    Problem.REPEATED_SHAPE: _describe_copies,
    Problem.PASSED_NEIGHBOUR: _describe_crossings,
    Problem.HINGE: _describe_hinge,
    Problem.STARTS_DISAGREE: _describe_disagreeing_starts,
    Problem.LARGE_DEFORMATION: _describe_large_deformation,
    Problem.FOLDOVERS: _describe_foldovers,
    Problem.IN_FOLDS: _describe_folds,
    Problem.BEST_AT_EDGE: _describe_best_at_edge,
    Problem.STIFFER_PREFERRED: _describe_stiffer_choice,
}
