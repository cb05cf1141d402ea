"""From the documents of many files to one set of shapes.

Landmarks are matched by label where every specimen has labels, and by position otherwise; all
shapes come in natural order, in one anatomical space, under unique names.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.errors import FormatError, listed
from defgpa.io.anatomical import in_space
from defgpa.io.files import readable, shown
from defgpa.io.format import Document, Specimen
from defgpa.io.limits import Budget
from defgpa.io.text.lines import made_unique, numbered, warn
from defgpa.shapes import PER_SHAPE_METADATA, Shapes

_NUMBERED = re.compile(r"(.+)([-_ ])([0-9]{1,9})", re.DOTALL)  # a list and a number in it


@dataclass(frozen=True, eq=False)
class Sourced:
    """A specimen and the file it is from."""

    path: Path
    specimen: Specimen

    def __str__(self) -> str:
        return f"{shown(repr(self.specimen.name))} ({self.path})"


def gathered(read: Sequence[tuple[Path, Document]], space: str | None) -> Shapes:
    """All specimens of all documents as one set of shapes."""
    read = _in_natural_order(read)
    system = _common_space(read, space)
    found = [
        Sourced(path, replace(specimen, name=readable(specimen.name)))
        for path, document in read
        for specimen in _specimens_in(document, system)
    ]
    found = _without_list_names(_with_equal_curves(found))
    landmarks = _landmarks(found)
    points = _stacked(found, landmarks)
    _require_whole_landmarks(found, landmarks, points)
    return Shapes.specimens(
        points,
        names=_names(found),
        landmarks=landmarks,
        faces=_faces(read, landmarks),
        metadata={**_set_metadata(read, system), **_shape_metadata(found)},
    )


# Order and names


def _in_natural_order(read: Sequence[tuple[Path, Document]]) -> list[tuple[Path, Document]]:
    """Files by the name of their specimen if each has one, else by their own; a2 before a10."""
    single = all(len(document.specimens) == 1 for _, document in read)

    def key(one: tuple[Path, Document]) -> tuple[object, ...]:
        path, document = one
        return natural(document.specimens[0].name if single else str(path)), natural(str(path))

    return sorted(read, key=key)


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts numbers in names by their value, whatever their length."""
    parts = re.split(r"([0-9]+)", text.casefold())
    return tuple(
        (0, len(part.lstrip("0")), part.lstrip("0")) if part.isdecimal() else (1, 0, part)
        for part in parts
        if part
    )


def _names(found: Sequence[Sourced]) -> list[str]:
    """Unique names: after the files where each holds one specimen, else with a number."""
    names = [one.specimen.name for one in found]
    repeated = {name for name, times in Counter(names).items() if times > 1}
    if not repeated:
        return names
    stems = [readable(one.path.stem) for one in found]
    which = listed(dict.fromkeys(name for name in names if name in repeated))
    if len(set(stems)) == len(stems):
        warn(f"Names that occur in several files: {which}. Shapes are named after the files.")
        return stems
    files = dict.fromkeys(str(one.path) for one in found if one.specimen.name in repeated)
    warn(
        f"Names that occur more than once (in {listed(files, 2)}): {which}. "
        "A number is added to all but the first."
    )
    return made_unique(names)


# Anatomical space


def _common_space(read: Sequence[tuple[Path, Document]], wanted: str | None) -> str | None:
    """The space asked for, else that of the first file that states one."""
    stated = [(path, document.metadata.get("space")) for path, document in read]
    if wanted is not None:
        for path, space in stated:
            if space is None:
                raise FormatError(
                    f"{path} does not say whether it is LPS or RAS, so it cannot be brought to "
                    f"{wanted}. Leave out space={wanted!r}."
                )
        return wanted
    return next((space for _, space in stated if space is not None), None)


def _specimens_in(document: Document, system: str | None) -> Iterable[Specimen]:
    """The specimens in the space of the set."""
    own = document.metadata.get("space")
    return [replace(s, points=in_space(s.points, own, system)) for s in document.specimens]


# Landmarks


def _with_equal_curves(found: Sequence[Sourced]) -> list[Sourced]:
    """Points of curves stay where all specimens have the same; else they are left out."""
    kinds = {one.specimen.curves for one in found if len(one.specimen.points)}
    if len(kinds) <= 1:
        return list(found)
    bare = [replace(one, specimen=_without_curves(one.specimen)) for one in found]
    if not any(len(one.specimen.points) for one in bare):
        raise FormatError(
            f"{found[0].path}: expected curves with the same number of points in every specimen, "
            "as there are no landmarks besides; found different ones. Resample the curves."
        )
    warn(
        f"{found[0].path}: the curves do not have the same number of points in every specimen, "
        "so they are left out; only landmarks are read."
    )
    return bare


def _without_curves(specimen: Specimen) -> Specimen:
    kept = len(specimen.points) - len(specimen.curves)
    return replace(specimen, points=specimen.points[:kept], curves=())


def _without_list_names(found: Sequence[Sourced]) -> list[Sourced]:
    """Labels such as ``skull_07-1``, where the part before the number is each file's own.

    3D Slicer calls points after their list: lists with different names would share no landmark.
    """
    if len({one.specimen.labels for one in found}) < 2:
        return list(found)
    lists = [_list_name(one.specimen) for one in found]
    if None in lists or len(set(lists)) < 2:
        return list(found)
    return [replace(one, specimen=_with_bare_labels(one.specimen)) for one in found]


def _list_name(specimen: Specimen) -> str | None:
    """What all labels have before their number: Slicer's dash, or the specimen's own name."""
    found = [match for s in specimen.labels or () if (match := _NUMBERED.fullmatch(s))]
    names, marks = {match[1] for match in found}, {match[2] for match in found}
    whole = len(names) == 1 and len(found) == len(specimen.labels or ())
    return names.pop() if whole and (marks == {"-"} or names == {specimen.name}) else None


def _with_bare_labels(specimen: Specimen) -> Specimen:
    labels = [_NUMBERED.sub(r"\3", label) for label in specimen.labels or ()]
    return replace(specimen, labels=tuple(labels))


def _landmarks(found: Sequence[Sourced]) -> tuple[str, ...]:
    """What the landmarks are called."""
    some = [one for one in found if len(one.specimen.points)]
    if not some:
        raise FormatError(f"There are no landmarks in {listed({str(one.path) for one in found})}.")
    holders: dict[tuple[str, ...], Sourced] = {}
    for one in some:
        if one.specimen.labels:
            holders.setdefault(one.specimen.labels, one)
    for one in holders.values():
        _require_labels_once(one)
    sequences = list(holders)
    if sequences and all(one.specimen.labels for one in some):
        _warn_of_doubtful_labels(some, sequences)
        return merged(sequences)
    _require_equal_counts(some)
    if len(sequences) > 1:
        bare = next(one for one in some if not one.specimen.labels)
        raise FormatError(
            f"{bare} has no landmark labels, and others have them in different orders. "
            "Give all of them labels, or none."
        )
    if sequences:
        return sequences[0]
    curves = some[0].specimen.curves
    return (*numbered("", len(some[0].specimen.points) - len(curves)), *curves)


def _require_labels_once(one: Sourced) -> None:
    labels = one.specimen.labels
    if labels is not None and len(set(labels)) < len(labels):
        twice = next(label for label, times in Counter(labels).items() if times > 1)
        raise FormatError(f"{one} has two landmarks with the label {twice!r}. Rename one of them.")


def _warn_of_doubtful_labels(some: Sequence[Sourced], sequences: Sequence[Sequence[str]]) -> None:
    """Say so where labels match nothing, or would but for capitals and blanks."""
    if len(sequences) == 1:
        return
    lists = Counter(label for labels in sequences for label in labels)
    alone = [labels for labels in sequences if all(lists[label] == 1 for label in labels)]
    if alone:
        holders = Counter(one.specimen.labels for one in some)
        rarest = min(alone, key=lambda labels: holders[tuple(labels)])
        one = next(one for one in some if one.specimen.labels == rarest)
        warn(
            f"The landmark labels of {one} match none of the others: {listed(rarest, 3)}. "
            "Check how they are written."
        )
    spellings: dict[str, list[str]] = {}
    for label in lists:
        spellings.setdefault("".join(label.casefold().split()), []).append(label)
    for alike in spellings.values():
        if len(alike) > 1 and not any(set(alike) <= set(labels) for labels in sequences):
            warn(f"The labels {listed(alike)} are taken as different landmarks. Rename one if not.")


def _require_equal_counts(some: Sequence[Sourced]) -> None:
    first, m = some[0], len(some[0].specimen.points)
    for one in some:
        if len(one.specimen.points) != m:
            raise FormatError(
                f"All shapes must have the same landmarks: {first} has {m}, {one} has "
                f"{len(one.specimen.points)}. Put NA where a landmark was not seen; the vertices "
                "of meshes must correspond one by one."
            )


def merged(sequences: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """All labels in an order that agrees with every sequence; else in that of first sight.

    A specimen that lacks landmarks lists fewer labels, so the order of the whole set is in
    none of them alone: it is a topological order of "stands before", the labels seen first
    going first where that leaves a choice.
    """
    if len(sequences) == 1:
        return tuple(sequences[0])
    seen = {label: k for k, label in enumerate(dict.fromkeys(l for s in sequences for l in s))}
    followers: dict[str, set[str]] = {label: set() for label in seen}
    for sequence in sequences:
        for before, after in pairwise(sequence):
            followers[before].add(after)
    waiting = Counter(after for after_all in followers.values() for after in after_all)
    ready = [(k, label) for label, k in seen.items() if not waiting[label]]
    order: list[str] = []
    while ready:
        _, label = heapq.heappop(ready)
        order.append(label)
        for after in followers[label]:
            waiting[after] -= 1
            if not waiting[after]:
                heapq.heappush(ready, (seen[after], after))
    return tuple(order if len(order) == len(seen) else seen)


def _stacked(found: Sequence[Sourced], landmarks: Sequence[str]) -> Array:
    """(n, m, d) points; a landmark whose label a specimen does not have is NaN."""
    some = [one for one in found if len(one.specimen.points)]
    d = some[0].specimen.points.shape[1]
    for one in some:
        if one.specimen.points.shape[1] != d:
            raise FormatError(
                f"All shapes must have the same dimension: {some[0]} is {d}-D, {one} is "
                f"{one.specimen.points.shape[1]}-D."
            )
    n, m = len(found), len(landmarks)
    room = Budget(some[0].path, sum(one.specimen.points.nbytes for one in some))
    room.spend(8 * n * m * d, f"a set of {n} shapes with {m} landmarks, few of them in each,")
    points = np.full((n, m, d), np.nan)
    by_label = all(one.specimen.labels for one in some)
    place = {label: k for k, label in enumerate(landmarks)}
    order = tuple(landmarks)
    for row, one in zip(points, found, strict=True):
        specimen = one.specimen
        if not len(specimen.points):
            continue
        if not by_label or specimen.labels == order:
            row[:] = specimen.points
        else:
            row[[place[label] for label in specimen.labels or ()]] = specimen.points
    return points


def _require_whole_landmarks(
    found: Sequence[Sourced], landmarks: Sequence[str], points: Array
) -> None:
    """A landmark has all its coordinates or none, and none of them is infinite."""
    unknown = np.isnan(points)
    half = unknown.any(axis=2) & ~unknown.all(axis=2)
    for wrong, what, remedy in (
        (half, "is half missing", "Give all its coordinates, or NA for all of them."),
        (np.isinf(points).any(axis=2), "has an infinite coordinate", "Use NA if it was not seen."),
    ):
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise FormatError(
                f"Landmark {landmarks[j]!r} of {found[i]} {what}: {points[i, j].tolist()}. {remedy}"
            )


# What the files know besides


def _faces(read: Sequence[tuple[Path, Document]], landmarks: Sequence[str]) -> Index | None:
    """The triangles of the first file that has some; other ones in other files are reported."""
    stated = [
        (path, _renumbered(document, landmarks))
        for path, document in read
        if document.faces is not None
    ]
    if not stated:
        return None
    first_path, first = stated[0]
    for path, faces in stated[1:]:
        if not np.array_equal(faces, first):
            warn(f"{path} has other faces than {first_path}; those of {first_path} are kept.")
            break
    return first


def _renumbered(document: Document, landmarks: Sequence[str]) -> Index:
    """Faces that number the landmarks of the set, not the points of one file."""
    faces = np.asarray(document.faces, dtype=np.intp)
    labels = document.specimens[0].labels
    if labels is None or tuple(labels) == tuple(landmarks):
        return faces
    place = {label: k for k, label in enumerate(landmarks)}
    return np.array([place[label] for label in labels], dtype=np.intp)[faces]


def _set_metadata(read: Sequence[tuple[Path, Document]], system: str | None) -> dict[str, Any]:
    """What files say about the whole set, where those that say it agree."""
    stated: dict[str, list[Any]] = {}
    for _, document in read:
        for key, value in document.metadata.items():
            stated.setdefault(key, []).append(value)
    agreed = {
        key: values[0]
        for key, values in stated.items()
        if key != "space" and all(_same(value, values[0]) for value in values)
    }
    return agreed if system is None else {**agreed, "space": system}


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def _shape_metadata(found: Sequence[Sourced]) -> Mapping[str, tuple[Any, ...]]:
    """One value a shape for whatever any specimen says, None where one does not, and its file."""
    keys = {key for one in found for key in one.specimen.metadata} & PER_SHAPE_METADATA
    said = {key: tuple(one.specimen.metadata.get(key) for one in found) for key in sorted(keys)}
    return {**said, "sources": tuple(str(one.path) for one in found)}
