"""Corrections of landmarks as a log: what was changed, why and when; the files stay as they are.

Each edit applies to the result of the edits before it. Coordinates are those of `read_shapes`, and
are written with all their digits, so that a log applied again gives the same shapes, bit for bit.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from defgpa.arrays import Array
from defgpa.errors import FormatError, ShapeError, format_names
from defgpa.io.atomic import write_text
from defgpa.io.files import abbreviate, list_names
from defgpa.io.text.lines import read_json
from defgpa.shapes import Shapes

FORMAT = "defgpa edits"
VERSION = 1


class Action(StrEnum):
    """What an edit does. The names are stable: they are written to ``edits.json``."""

    MOVE = "move"
    SET_MISSING = "set missing"
    SWAP = "swap"
    REFLECT = "reflect"
    EXCLUDE_SPECIMEN = "exclude specimen"
    INCLUDE_SPECIMEN = "include specimen"
    EXCLUDE_LANDMARK = "exclude landmark"
    INCLUDE_LANDMARK = "include landmark"
    LINK = "link"
    UNLINK = "unlink"
    ACCEPT = "accept"


# whether an action names a specimen, and how many landmarks (None: any number)
_SUBJECTS: dict[Action, tuple[bool, int | None]] = {
    Action.MOVE: (True, 1),
    Action.SET_MISSING: (True, 1),
    Action.SWAP: (True, 2),
    Action.REFLECT: (True, 0),
    Action.EXCLUDE_SPECIMEN: (True, 0),
    Action.INCLUDE_SPECIMEN: (True, 0),
    Action.EXCLUDE_LANDMARK: (False, 1),
    Action.INCLUDE_LANDMARK: (False, 1),
    Action.LINK: (False, 2),
    Action.UNLINK: (False, 2),
    Action.ACCEPT: (True, None),
}
_TEXTS = ("finding", "reason", "time")
_FIELDS = ("action", "specimen", "landmarks", "to", *_TEXTS)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Edit:
    """One correction.

    Attributes
    ----------
    action : Action
        What is done.
    specimen : str or None
        The specimen concerned; None for edits of a landmark or a link, which concern all.
    landmarks : tuple of str
        The landmarks concerned.
    to : tuple of float or None
        Where a landmark is moved, in the coordinates of `read_shapes`.
    finding : str
        The finding that led to the edit (``"misplaced-landmark"``), or that is accepted.
    reason, time : str
        Why, in the words of whoever made the edit, and when (ISO 8601, UTC).

    Examples
    --------
    >>> edit = Edit("move", "wing_07", ("tip",), to=(1.5, 2.0), reason="slipped", time="")
    >>> str(edit)
    "move landmark 'tip' of specimen 'wing_07' to (1.5, 2): slipped"
    """

    action: Action
    specimen: str | None = None
    landmarks: tuple[str, ...] = ()
    to: tuple[float, ...] | None = None
    finding: str = ""
    reason: str = ""
    time: str = field(default_factory=_now)

    def __post_init__(self) -> None:
        try:
            action = Action(self.action)
        except ValueError:
            raise ShapeError(
                f"An edit's action must be one of {format_names(Action, len(Action))}; "
                f"got {self.action!r:.80}."
            ) from None
        vars(self)["action"] = action  # a frozen value cannot set its attributes
        vars(self)["landmarks"] = _check_landmarks(action, self.landmarks)
        vars(self)["to"] = _check_target(action, self.to)
        if _SUBJECTS[action][0] != isinstance(self.specimen, str):
            names = "must name a specimen" if _SUBJECTS[action][0] else "concerns all specimens"
            raise ShapeError(f"The edit '{action}' {names}; got {self.specimen!r:.80}.")
        for name in _TEXTS:
            if not isinstance(getattr(self, name), str):
                value = f"{getattr(self, name)!r:.80}"
                raise ShapeError(f"The {name} of the edit '{action}' must be text; got {value}.")

    def __str__(self) -> str:
        text = {
            Action.SET_MISSING: "set {landmarks} missing",
            Action.SWAP: "swap {landmarks}",
            Action.LINK: "link {landmarks}",
            Action.UNLINK: "remove the link of {landmarks}",
            Action.EXCLUDE_LANDMARK: "exclude {landmarks}",
            Action.INCLUDE_LANDMARK: "include {landmarks} again",
            Action.EXCLUDE_SPECIMEN: "exclude",
            Action.INCLUDE_SPECIMEN: "include again",
        }.get(self.action, f"{self.action} {{landmarks}}")
        plural = "s" * (len(self.landmarks) != 1)
        labels = " and ".join(map(repr, self.landmarks))
        text = text.format(landmarks=f"landmark{plural} {labels}" if labels else "").strip()
        if self.specimen is not None:
            text += f" of specimen {self.specimen!r}" if labels else f" specimen {self.specimen!r}"
        if self.to is not None:
            text += f" to ({', '.join(f'{x:.6g}' for x in self.to)})"
        return text + (f": {self.reason}" if self.reason else "")

    def to_dict(self) -> dict[str, object]:
        """Return the fields that are set, as values that JSON can hold."""
        fields: dict[str, object] = {"action": str(self.action)}
        if self.specimen is not None:
            fields["specimen"] = self.specimen
        if self.landmarks:
            fields["landmarks"] = list(self.landmarks)
        if self.to is not None:
            fields["to"] = list(self.to)
        return fields | {name: text for name in _TEXTS if (text := getattr(self, name))}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Edit:
        """Make the edit that `to_dict` described.

        Raises
        ------
        ShapeError
            Where a field is unknown, missing or of the wrong kind.
        """
        if not isinstance(fields, Mapping) or "action" not in fields:
            raise ShapeError(f"An edit must be an object with an 'action'; got {fields!r:.80}.")
        unknown = [name for name in fields if name not in _FIELDS]
        if unknown:
            raise ShapeError(
                f"An edit has no field {list_names(unknown)}; it has {format_names(_FIELDS)}."
            )
        return cls(**{"time": "", **fields})


def _check_landmarks(action: Action, landmarks: object) -> tuple[str, ...]:
    if isinstance(landmarks, str) or not isinstance(landmarks, Iterable):
        raise ShapeError(
            f"The landmarks of an edit must be a list of labels; got {landmarks!r:.80}."
        )
    labels = tuple(landmarks)
    count = _SUBJECTS[action][1]
    if not all(isinstance(label, str) for label in labels) or count not in (None, len(labels)):
        raise ShapeError(
            f"The edit '{action}' takes {count if count is not None else 'any'} "
            f"landmark label{'s' * (count != 1)}; got {list(labels)!r:.80}."
        )
    if count == 2 and labels[0] == labels[1]:
        raise ShapeError(
            f"The edit '{action}' takes two different landmarks; got {labels[0]!r:.80}."
        )
    return labels


def _check_target(action: Action, target: object) -> tuple[float, ...] | None:
    if action is not Action.MOVE:
        if target is not None:
            raise ShapeError(f"The edit '{action}' takes no coordinates; got {target!r:.80}.")
        return None
    numbers = target if isinstance(target, Sequence | np.ndarray) else ()
    is_point = len(numbers) in (2, 3) and all(
        isinstance(x, int | float | np.number) and not isinstance(x, bool) and math.isfinite(x)
        for x in numbers
    )
    if not is_point:
        raise ShapeError(f"The edit 'move' needs 2 or 3 finite coordinates; got {target!r:.80}.")
    return tuple(float(x) for x in numbers)


@dataclass(frozen=True)
class EditLog:
    """Edits in their order, and undone edits that can be redone.

    Examples
    --------
    >>> log = EditLog().add(Edit("reflect", "a")).add(Edit("reflect", "b")).undo()
    >>> [edit.specimen for edit in log.edits], [edit.specimen for edit in log.undone]
    (['a'], ['b'])
    >>> log.redo().edits[-1].specimen
    'b'
    """

    edits: tuple[Edit, ...] = ()
    undone: tuple[Edit, ...] = ()  # the last one is redone first

    def add(self, edit: Edit) -> EditLog:
        """Return the log with one more edit, and without undone ones to redo."""
        return EditLog((*self.edits, edit))

    def undo(self) -> EditLog:
        """Return the log without its last edit, which can be redone."""
        if not self.edits:
            raise ShapeError("There is no edit to undo.")
        return EditLog(self.edits[:-1], (*self.undone, self.edits[-1]))

    def redo(self) -> EditLog:
        """Return the log with the edit that was undone last."""
        if not self.undone:
            raise ShapeError("There is no edit to redo.")
        return EditLog((*self.edits, self.undone[-1]), self.undone[:-1])


def read_edits(path: str | os.PathLike[str]) -> tuple[Edit, ...]:
    """Read the edits of an ``edits.json``, in the order in which they apply.

    Raises
    ------
    FormatError
        Where the file is no log of edits, naming the edit that cannot be read.
    """
    return read_log(path).edits


def write_edits(path: str | os.PathLike[str], edits: Sequence[Edit]) -> None:
    """Write edits to a file, all of it or none of it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "edits.json"
    >>> edits = (Edit("set missing", "skull_3", ("nasion",), reason="broken off"),)
    >>> write_edits(path, edits)
    >>> read_edits(path) == edits
    True
    """
    write_log(path, EditLog(tuple(edits)))


def read_log(path: str | os.PathLike[str]) -> EditLog:
    """Read the edits of a file, and those that were undone."""
    content = read_json(Path(path))
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FormatError(f'{path} is no log of edits: it lacks "format": "{FORMAT}".')
    version = content.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise FormatError(
            f"{path} is version {version!r:.80} of the log of edits; this program reads version "
            f"{VERSION}. Install a newer defgpa."
        )
    edits, undone = (_parse_edits(path, content, key) for key in ("edits", "undone"))
    return EditLog(edits, undone)


def _parse_edits(
    path: str | os.PathLike[str], content: Mapping[str, object], key: str
) -> tuple[Edit, ...]:
    entries = content.get(key, [])
    if not isinstance(entries, list):
        raise FormatError(f"{path}: {key!r} must be a list of edits.")
    edits = []
    for number, entry in enumerate(entries, start=1):
        try:
            edits.append(Edit.from_dict(entry))
        except ShapeError as error:
            raise FormatError(f"{path}, edit {number} of {key!r}: {error}") from None
    return tuple(edits)


def write_log(path: str | os.PathLike[str], log: EditLog) -> None:
    """Write a log with what was undone, one line an edit, all of it or none of it."""
    parts = [f'  "format": "{FORMAT}"', f'  "version": {VERSION}']
    for name, edits in (("edits", log.edits), ("undone", log.undone)):
        lines = [
            "    " + json.dumps(edit.to_dict(), ensure_ascii=False, allow_nan=False)
            for edit in edits
        ]
        if lines or name == "edits":
            parts.append(f'  "{name}": [' + ",".join(f"\n{line}" for line in lines) + "\n  ]")
    # lone surrogates come from file names that are not UTF-8
    write_text(path, "{\n" + ",\n".join(parts) + "\n}\n", errors="backslashreplace")


def apply_edits(shapes: Shapes, edits: Sequence[Edit] | str | os.PathLike[str]) -> Shapes:
    """Apply edits to shapes, in their order.

    Parameters
    ----------
    shapes : Shapes
        As read from the files that the edits were made for.
    edits : sequence of Edit, or path
        The edits, or the ``edits.json`` that holds them.

    Returns
    -------
    Shapes
        Corrected, without the excluded specimens and landmarks. An accepted finding changes
        nothing.

    Raises
    ------
    ShapeError
        Where an edit names a specimen or landmark that is not there, or moves a landmark by
        coordinates of another dimension, or nothing is left.

    Examples
    --------
    >>> shapes = Shapes.specimens([[[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]], names=["a"])
    >>> edits = [Edit("swap", "a", ("1", "2")), Edit("move", "a", ("3",), to=(5.0, 6.0))]
    >>> apply_edits(shapes, edits)["a"].tolist()
    [[1.0, 0.0], [0.0, 0.0], [5.0, 6.0]]
    """
    place = ""
    if isinstance(edits, str | os.PathLike):
        place, edits = f"{os.fspath(edits)}: ", read_edits(edits)
    state = _State.start(shapes)
    for number, edit in enumerate(edits, start=1):
        try:
            state.apply(edit)
        except ShapeError as error:
            raise ShapeError(
                f"{place}Edit {number} ({abbreviate(str(edit), 100)}) cannot be applied. {error}"
            ) from None
    return state.finish()


@dataclass
class _State:
    """Shapes while edits are applied: points that change, and what is excluded at the end."""

    shapes: Shapes
    points: Array
    specimen_numbers: dict[str, int]
    landmark_numbers: dict[str, int]
    links: dict[frozenset[int], tuple[int, int]]
    excluded_specimens: set[int] = field(default_factory=set)
    excluded_landmarks: set[int] = field(default_factory=set)

    @classmethod
    def start(cls, shapes: Shapes) -> _State:
        return cls(
            shapes,
            np.array(shapes.points),
            {name: i for i, name in enumerate(shapes.names)},
            {label: j for j, label in enumerate(shapes.landmarks)},
            {frozenset(link): link for link in shapes.links},
        )

    def apply(self, edit: Edit) -> None:
        """Change the state by one edit."""
        landmarks = [self._find_landmark(label) for label in edit.landmarks]
        specimen = -1 if edit.specimen is None else self._find_specimen(edit.specimen)
        match edit.action:
            case Action.MOVE:
                self._move(specimen, landmarks[0], edit.to or ())
            case Action.SET_MISSING:
                self.points[specimen, landmarks[0]] = np.nan
            case Action.SWAP:
                self.points[specimen, landmarks] = self.points[specimen, landmarks[::-1]]
            case Action.REFLECT:
                self.points[specimen, :, 0] *= -1.0
            case Action.EXCLUDE_SPECIMEN:
                self.excluded_specimens.add(specimen)
            case Action.INCLUDE_SPECIMEN:
                self.excluded_specimens.discard(specimen)
            case Action.EXCLUDE_LANDMARK:
                self.excluded_landmarks.add(landmarks[0])
            case Action.INCLUDE_LANDMARK:
                self.excluded_landmarks.discard(landmarks[0])
            case Action.LINK:
                self.links[frozenset(landmarks)] = (landmarks[0], landmarks[1])
            case Action.UNLINK:
                self.links.pop(frozenset(landmarks), None)
            case Action.ACCEPT:
                pass

    def finish(self) -> Shapes:
        """Return the shapes without excluded specimens and landmarks; raise if nothing is left."""
        shapes = self.shapes.with_points(self.points)
        specimens = [i for i in range(shapes.n_shapes) if i not in self.excluded_specimens]
        landmarks = [j for j in range(shapes.n_landmarks) if j not in self.excluded_landmarks]
        for numbers, subject in ((specimens, "specimen"), (landmarks, "landmark")):
            if not numbers:
                raise ShapeError(f"The edits exclude every {subject}. Include some again.")
        if self.excluded_specimens:
            shapes = shapes.take(specimens)
        if self.excluded_landmarks:
            shapes = shapes.without(sorted(self.excluded_landmarks))
        renumbered = {j: k for k, j in enumerate(landmarks)}
        links = [
            (renumbered[a], renumbered[b])
            for a, b in self.links.values()
            if a in renumbered and b in renumbered
        ]
        if links == self.shapes.links and not self.excluded_landmarks:
            return shapes
        return shapes.with_metadata(links=tuple(links))

    def _move(self, specimen: int, landmark: int, target: Sequence[float]) -> None:
        if len(target) != self.shapes.n_dims:
            raise ShapeError(
                f"It has {len(target)} coordinates; the shapes have {self.shapes.n_dims}."
            )
        self.points[specimen, landmark] = target

    def _find_specimen(self, name: str) -> int:
        if name not in self.specimen_numbers:
            raise ShapeError(
                f"There is no specimen called {name!r:.80}. There are: "
                f"{format_names(self.shapes.names)}."
            )
        return self.specimen_numbers[name]

    def _find_landmark(self, label: str) -> int:
        if label not in self.landmark_numbers:
            raise ShapeError(
                f"There is no landmark called {label!r:.80}. There are: "
                f"{format_names(self.shapes.landmarks)}."
            )
        return self.landmark_numbers[label]
