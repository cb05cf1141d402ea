"""The queue of suspicions, the worst first, each with its remedies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from defgpa.app.study import Study
from defgpa.app.thread_warnings import collect_notes
from defgpa.diagnostics import Finding, Problem
from defgpa.edits import Action, Edit
from defgpa.errors import DefgpaError
from defgpa.statistics import outliers

_MAX_OUTLIERS = 30  # flagged landmarks that are listed; the oddest come first

# the worst first: what is wrong for certain, then what is odd
_ORDER = (
    Problem.MIRRORED,
    Problem.EXCHANGED_LANDMARKS,
    Problem.MISPLACED_LANDMARK,
    Problem.FAR_SHAPE,
    Problem.OTHER_SIZE,
    Problem.REPEATED_SHAPE,
)
_REMEDY = {
    Problem.MIRRORED: Action.REFLECT,
    Problem.EXCHANGED_LANDMARKS: Action.SWAP,
    Problem.MISPLACED_LANDMARK: Action.SET_MISSING,
    Problem.FAR_SHAPE: Action.EXCLUDE_SPECIMEN,
    Problem.OTHER_SIZE: Action.EXCLUDE_SPECIMEN,
    Problem.REPEATED_SHAPE: Action.EXCLUDE_SPECIMEN,
}
_TEXT = {
    Problem.MIRRORED: "fits clearly better mirrored",
    Problem.EXCHANGED_LANDMARKS: "landmarks {0} and {1} look swapped",
    Problem.MISPLACED_LANDMARK: "landmark {0} is far from where the others have it",
    Problem.FAR_SHAPE: "is far from all the others",
    Problem.OTHER_SIZE: "is of quite another size: other units?",
    Problem.REPEATED_SHAPE: "has the very coordinates of another specimen",
}
UNUSUAL_LANDMARK, UNUSUAL_SPECIMEN = "unusual-landmark", "unusual-specimen"


@dataclass(frozen=True)
class Item:
    """One entry of the queue."""

    finding: str
    specimen: str
    landmarks: tuple[str, ...]
    text: str
    remedy: Action | None = None
    score: float = 0.0

    @property
    def subject(self) -> tuple[str, str, frozenset[str]]:
        """What it is about: an accepted finding is not listed again."""
        return self.finding, self.specimen, frozenset(self.landmarks)

    def to_dict(self, study: Study) -> dict[str, object]:
        """Return the entry with numbers of specimen and landmarks in the files."""
        names, labels = study.all_shapes.names, study.all_shapes.landmarks
        return {
            "finding": self.finding,
            "specimen": names.index(self.specimen),
            "landmarks": [labels.index(label) for label in self.landmarks],
            "text": self.text,
            "remedy": None if self.remedy is None else str(self.remedy),
            "score": self.score,
        }


def list_queue(study: Study) -> list[dict[str, object]]:
    """Return the suspicions about specimens, the most doubtful first, without accepted ones."""
    items = list(_list_findings(study))
    queued = {item.specimen for item in items}
    items += [item for item in _list_outliers(study) if item.specimen not in queued]
    accepted = {_find_subject(edit) for edit in study.edits if edit.action is Action.ACCEPT}
    return [item.to_dict(study) for item in items if item.subject not in accepted]


def _find_subject(edit: Edit) -> tuple[str, str, frozenset[str]]:
    return edit.finding, edit.specimen or "", frozenset(edit.landmarks)


def _list_findings(study: Study) -> Iterator[Item]:
    findings = [single for finding in study.findings for single in _split(finding)]
    findings = [finding for finding in findings if finding.problem in _ORDER]
    for finding in sorted(findings, key=lambda finding: _ORDER.index(finding.problem)):
        problem = finding.problem
        names = finding.shapes[:1] if problem is Problem.REPEATED_SHAPE else finding.shapes
        text = _TEXT[problem].format(*finding.landmarks)
        for name in names:
            yield Item(str(problem), name, finding.landmarks, text, _REMEDY[problem])


def _split(finding: Finding) -> Iterator[Finding]:
    """Yield the parts of a finding that sums up others, or the finding itself."""
    if not finding.parts:
        yield finding
    for single in finding.parts:
        yield from _split(single)


def _list_outliers(study: Study) -> Iterator[Item]:
    """Yield what is unusual for this set without being clearly wrong."""
    try:
        with collect_notes():
            ranked = outliers(study.superimposition)
    except DefgpaError:
        return  # too few specimens to say what is usual
    for row in ranked.landmark_table(_MAX_OUTLIERS):
        if row["outlier"]:
            label = (row["landmark"],)
            times = f"{row['score']:.1f} times as far from its place as usual"
            text = f"landmark {row['landmark']} is {times}"
            yield Item(UNUSUAL_LANDMARK, row["name"], label, text, None, row["score"])
    for row in ranked.table():
        if row["outlier"]:
            text = "is farther from the mean shape than the others"
            yield Item(UNUSUAL_SPECIMEN, row["name"], (), text, None, row["distance"])
