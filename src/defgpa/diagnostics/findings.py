"""What a user should be told about shapes or an alignment: facts first, words last.

A check yields findings; it never warns, prints or formats. ``defgpa.diagnostics.wording`` puts
them into words, once for each listener.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Problem(StrEnum):
    """What a finding is about. The names are stable: scripts read them in summary.json."""

    # of the input
    LONE_LANDMARKS = "lone-landmarks"
    SPARSE_LANDMARKS = "sparse-landmarks"
    EXCHANGED_LANDMARKS = "exchanged-landmarks"
    MISPLACED_LANDMARK = "misplaced-landmark"
    FAR_SHAPE = "far-shape"
    THIN_SHAPE = "thin-shape"
    OTHER_SIZE = "other-size"
    REPEATED_SHAPE = "repeated-shape"
    FAR_FROM_ORIGIN = "far-from-origin"
    FEW_LANDMARKS = "few-landmarks"
    MIRRORED_IN_SIDE = "mirrored-in-side"
    # of sliding
    PASSED_NEIGHBOUR = "passed-neighbour"
    # of completed landmarks
    FAR_ESTIMATES = "far-estimates"
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
    FOLDOVERS = "foldovers"
    # of what is made of several solves
    IN_FOLDS = "in-folds"
    AT_SMOOTHING = "at-smoothing"
    IN_METHODS = "in-methods"
    BEST_AT_EDGE = "best-at-edge"
    STIFFER_PREFERRED = "stiffer-preferred"


@dataclass(frozen=True)
class Finding:
    """One thing worth telling.

    Attributes
    ----------
    problem : Problem
        What it is about; a stable name.
    shapes, landmarks : tuple of str
        Whom it is about.
    values : mapping of str to number
        How much.
    parts : tuple of Finding
        What it is made of, where it sums up others.
    methods : tuple of str
        The methods it was found with, where several were compared.

    Examples
    --------
    >>> Finding(Problem.MIRRORED, shapes=("wing 3",)).to_dict()
    {'problem': 'mirrored', 'shapes': ['wing 3']}
    """

    problem: Problem
    shapes: tuple[str, ...] = ()
    landmarks: tuple[str, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    parts: tuple[Finding, ...] = ()
    methods: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields that say something, as JSON holds them."""
        fields: dict[str, Any] = {"problem": str(self.problem)}
        for name in ("shapes", "landmarks", "methods"):
            if getattr(self, name):
                fields[name] = list(getattr(self, name))
        if self.values:
            fields["values"] = dict(self.values)
        if self.parts:
            fields["parts"] = [part.to_dict() for part in self.parts]
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Finding:
        """The finding that ``to_dict`` told."""
        return cls(
            Problem(fields["problem"]),
            tuple(fields.get("shapes", ())),
            tuple(fields.get("landmarks", ())),
            dict(fields.get("values", {})),
            tuple(cls.from_dict(part) for part in fields.get("parts", ())),
            tuple(fields.get("methods", ())),
        )


#: What is told at the command line and in the report, and is no warning to a program.
REMARKS = frozenset(
    {
        Problem.LARGE_DEFORMATION,
        Problem.OTHER_SIZE,
        Problem.REPEATED_SHAPE,
        Problem.STIFFER_PREFERRED,
    }
)
#: Found shape by shape; several of a kind are told in one sentence.
_ONE_BY_ONE = (Problem.MISPLACED_LANDMARK, Problem.EXCHANGED_LANDMARKS, Problem.REPEATED_SHAPE)


def is_remark(finding: Finding) -> bool:
    """Whether a finding, or all that it sums up, is no warning."""
    if finding.parts:
        return all(is_remark(part) for part in finding.parts)
    if finding.problem is Problem.MISPLACED_LANDMARK:  # a change below 1 % nobody would see
        return finding.values.get("change", 1.0) < 0.01
    return finding.problem in REMARKS


def joined(found: Iterable[Finding]) -> list[Finding]:
    """The findings in their order, those that are found shape by shape as one with its parts.

    Examples
    --------
    >>> one, other = (Finding(Problem.MISPLACED_LANDMARK, (name,), ("tip",)) for name in "ab")
    >>> [finding.shapes for finding in joined([one, Finding(Problem.MIRRORED, ("c",)), other])]
    [('a', 'b'), ('c',)]
    """
    findings = list(found)
    told: dict[Problem | int, list[Finding]] = {}
    for k, finding in enumerate(findings):
        told.setdefault(finding.problem if finding.problem in _ONE_BY_ONE else k, []).append(
            finding
        )
    return [_one_of(parts) for parts in told.values()]


def _one_of(parts: list[Finding]) -> Finding:
    if len(parts) == 1:
        return parts[0]
    changes = [part.values["change"] for part in parts if "change" in part.values]
    return Finding(
        parts[0].problem,
        shapes=tuple(dict.fromkeys(name for part in parts for name in part.shapes)),
        landmarks=tuple(dict.fromkeys(label for part in parts for label in part.landmarks)),
        values={"change": max(changes)} if changes else {},
        parts=tuple(parts),
    )
