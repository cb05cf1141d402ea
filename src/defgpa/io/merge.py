"""From the documents of many files to one set of shapes.

Landmarks are matched by label where every specimen has labels, and by position otherwise; all
shapes come in natural order, in one anatomical space, under unique names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from defgpa._arrays import Array, Index
from defgpa.errors import FormatError, ShapeError, and_more, listed
from defgpa.io.curves import resample_curve
from defgpa.io.files import abbreviate, decode_file_name
from defgpa.io.format import ReadOptions, SeveralSetsError, Sourced
from defgpa.io.labels import list_landmarks, match_landmarks
from defgpa.io.limits import Budget
from defgpa.io.names import Read, make_unique_names, rename_specimens, sort_documents
from defgpa.io.space import convert_space
from defgpa.io.text.lines import warn
from defgpa.sentences import option
from defgpa.shapes import PER_SHAPE_METADATA, Shapes, number_labels

_MESHES = frozenset({"ply", "obj", "stl", "off", "vtk", "vtp"})
_MOST_NAMED = 20  # specimens in a sentence about those that are unfinished


def merge_documents(read: Read, options: ReadOptions) -> Shapes:
    """All specimens of all documents as one set of shapes."""
    read = sort_documents(rename_specimens(options.names, read))
    system = _choose_space(read, options.space)
    found = _collect_specimens(read, system)
    if options.curve_points is not None:
        found = [_resample_curves(one, options.curve_points) for one in found]
    found = _drop_unequal_curves(found)
    found, left_out = _drop_incomplete(read, found, options)
    found = match_landmarks(found, options.match)
    landmarks = list_landmarks(found)
    points = _stack_points(found, landmarks, options.dimension)
    _require_whole_landmarks(found, landmarks, points)
    _warn_of_rare_landmarks(points)
    found = _assign_groups(found, options.group)
    _warn_of_partial_scales(found)
    return Shapes.specimens(
        points,
        names=make_unique_names(found),
        landmarks=landmarks,
        faces=_choose_faces(found, landmarks),
        metadata={
            **_merge_set_metadata(read, system),
            **_collect_shape_metadata(found),
            **left_out,
        },
    )


# Anatomical space


def _choose_space(read: Read, wanted: str | None) -> str | None:
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


def _collect_specimens(read: Read, system: str | None) -> list[Sourced]:
    """All specimens in one space, with their files."""
    return [
        Sourced(
            decode_file_name(specimen.name),
            convert_space(specimen.points, document.metadata.get("space"), system),
            specimen.labels,
            specimen.metadata,
            specimen.curves,
            path=path,
            faces=document.faces if k == 0 else None,
        )
        for path, document in read
        for k, specimen in enumerate(document.specimens)
    ]


# Which points take part


def _resample_curves(one: Sourced, count: int) -> Sourced:
    """A specimen with so many points on each of its curves."""
    start = len(one.points) - len(one.curves)
    blocks, names = [one.points[:start]], list[str]()
    for prefix, members in groupby(one.curves, key=lambda name: name.rpartition("_")[0]):
        own = one.points[start : (start := start + len(list(members)))]
        try:
            blocks.append(resample_curve(own, count, prefix.startswith("outline")))
        except ShapeError:
            raise FormatError(f"{one}: {prefix} has too few points to be resampled.") from None
        names += number_labels(f"{prefix}_", count)
    return replace(one, points=np.concatenate(blocks), curves=tuple(names))


def _drop_unequal_curves(found: list[Sourced]) -> list[Sourced]:
    """Points of curves stay where all specimens have the same; else they are left out."""
    some = [one for one in found if len(one.points)]
    kinds = Counter(one.curves for one in some)
    if len(kinds) <= 1:
        return found
    usual = kinds.most_common(1)[0][0]
    odd = next(one for one in some if one.curves != usual)
    bare = [
        replace(one, points=one.points[: len(one.points) - len(one.curves)], curves=())
        for one in found
    ]
    resampling = option("curve_points", 30, shell="--curve-points 30")
    if not any(len(one.points) for one in bare):
        raise FormatError(
            f"{odd}: expected curves with the same number of points in every specimen, "
            "as there are no landmarks besides; found different ones. Resample the curves: "
            f"{resampling}."
        )
    warn(
        "The curves do not have the same number of points in every specimen "
        f"({len(usual)} in most, {len(odd.curves)} in {odd}), so they are left out; "
        f"only landmarks are read. To have them resampled: {resampling}."
    )
    return bare


def _drop_incomplete(
    read: Read, found: list[Sourced], options: ReadOptions
) -> tuple[list[Sourced], dict[str, Any]]:
    """The specimens with as many landmarks as most, and a note on the others.

    Only labels allow for fewer. The others are refused, or dropped where that is asked for.
    """
    some = [one for one in found if len(one.points)]
    if options.match != "position" and all(one.labels for one in some):
        return found, {}
    counts = Counter(len(one.points) for one in some)
    if len(counts) <= 1:
        return found, {}
    _require_one_set(some)
    m = counts.most_common(1)[0][0]
    odd = [one for one in some if len(one.points) != m]
    if options.incomplete == "error" or counts[m] < max(2, len(odd)):  # no majority to go on with
        usual = next(one for one in some if len(one.points) == m)
        raise _explain_unequal_counts(read, usual, odd, counts[m])
    counted = [f"{_abbreviate_name(one)} ({len(one.points)})" for one in odd]
    warn(f"Left out as unfinished (most have {m} landmarks): {and_more(counted, _MOST_NAMED)}.")
    kept = [one for one in found if len(one.points) in (0, m)]
    return kept, {"incomplete": tuple(one.name for one in odd)}


def _require_one_set(some: Sequence[Sourced]) -> None:
    """Files whose specimens have as many landmarks each, but others than other files."""
    sizes: dict[str, list[int]] = {}
    for one in some:
        sizes.setdefault(str(one.path), []).append(len(one.points))
    uniform = all(len(set(counts)) == 1 for counts in sizes.values())
    if len(sizes) > 1 and uniform and max(map(len, sizes.values())) > 1:
        files = [f"{path} has {counts[0]} landmarks" for path, counts in sizes.items()]
        raise SeveralSetsError(
            f"These files are different sets: {and_more(files, 4)}. Read them one by one.",
            {path: (len(counts), counts[0]) for path, counts in sizes.items()},
        )


def _explain_unequal_counts(
    read: Read, first: Sourced, odd: Sequence[Sourced], usual: int
) -> FormatError:
    """All the specimens that have another number of landmarks than most, in one message."""
    others = "" if usual == 1 else f" (and so do {usual - 1} more)"
    several = len(odd) > 2 and all(one.path == first.path for one in odd)
    names = [_abbreviate_name(one) if several else str(one) for one in odd]
    counts = [f"{k} has {len(one.points)}" for k, one in zip(names, odd, strict=True)]
    meshes = any(document.metadata.get("format") in _MESHES for _, document in read)
    remedy = "Put NA where a landmark was not seen"
    if meshes:
        remedy = "The vertices of meshes must correspond one by one"
    elif usual >= max(2, len(odd)):
        remedy += f", or leave unfinished specimens out ({option('incomplete', 'drop')})"
    return FormatError(
        f"All shapes must have the same landmarks: {first} has {len(first.points)}"
        f"{others}, {and_more(counts, _MOST_NAMED)}. {remedy}."
    )


def _abbreviate_name(one: Sourced) -> str:
    return abbreviate(repr(one.name), most=40)


# Points


def _stack_points(
    found: Sequence[Sourced], landmarks: Sequence[str], dimension: int | None
) -> Array:
    """(n, m, d) points; a landmark whose label a specimen does not have is NaN."""
    some = [one for one in found if len(one.points)]
    d = some[0].points.shape[1]
    for one in some:
        if one.points.shape[1] != d:
            raise FormatError(
                f"All shapes must have the same dimension: {some[0]} is {d}-D, {one} is "
                f"{one.points.shape[1]}-D."
            )
    if dimension not in (None, d):
        raise FormatError(
            f"{some[0]} is {d}-D and says so. Leave out {option('dimension', dimension)}."
        )
    n, m = len(found), len(landmarks)
    room = Budget(some[0].path, sum(one.points.nbytes for one in some))
    room.spend(8 * n * m * d, f"a set of {n} shapes with {m} landmarks, few of them in each,")
    points = np.full((n, m, d), np.nan)
    by_label = all(one.labels for one in some)
    place = {label: k for k, label in enumerate(landmarks)}
    order = tuple(landmarks)
    for row, one in zip(points, found, strict=True):
        if not len(one.points):
            continue
        if not by_label or one.labels == order:
            row[:] = one.points
        else:
            row[[place[label] for label in one.labels or ()]] = one.points
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


def _warn_of_rare_landmarks(points: Array) -> None:
    """Say so where few shapes see most landmarks: labels that differ make such sets."""
    n, m, _ = points.shape
    views = np.isfinite(points[..., 0]).sum(axis=0)
    rare = views <= max(1.0, 0.2 * n)
    if n < 3 or 2 * rare.sum() <= m:
        return
    share = 1 - views.sum() / (n * m)
    warn(
        f"{rare.sum()} of {m} landmarks are seen in {int(views[rare].max())} of {n} shapes at most "
        f"({share:.0%} of all is missing). If landmarks are called differently from file to file, "
        f"{option('match', 'position')} goes by their order."
    )


# What the files know besides


def _assign_groups(found: list[Sourced], column: str | None) -> list[Sourced]:
    """The specimens with the group that a column of their table says."""
    if column is None:
        return found
    known = dict.fromkeys(head for one in found for head in one.metadata.get("variables") or ())
    fitting = [head for head in known if head.casefold() == column.strip().casefold()]
    if not fitting:
        there = f"there are: {listed(known, 20)}" if known else "the files have no such columns"
        raise FormatError(f"There is no column {column!r} to group by; {there}.")
    head = column.strip() if column.strip() in fitting else fitting[0]
    own = ({**one.metadata, "groups": one.metadata.get("variables", {}).get(head)} for one in found)
    return [replace(one, metadata=known) for one, known in zip(found, own, strict=True)]


def _warn_of_partial_scales(found: Sequence[Sourced]) -> None:
    bare = [one.name for one in found if "scales" not in one.metadata]
    if 0 < len(bare) < len(found):
        files = {str(one.path) for one in found}
        where = f"{files.pop()}: " if len(files) == 1 else ""
        warn(
            f"{where}{len(bare)} of {len(found)} specimens have no SCALE "
            f"({listed(bare, 3)}); their coordinates are taken as they are, so sizes may not be "
            "comparable."
        )


def _choose_faces(found: Sequence[Sourced], landmarks: Sequence[str]) -> Index | None:
    """The triangles of the first file that has some; other ones in other files are reported."""
    stated = [(one.path, _renumber_faces(one, landmarks)) for one in found if one.faces is not None]
    if not stated:
        return None
    first_path, first = stated[0]
    for path, faces in stated[1:]:
        if not np.array_equal(faces, first):
            warn(f"{path} has other faces than {first_path}; those of {first_path} are kept.")
            break
    return first


def _renumber_faces(one: Sourced, landmarks: Sequence[str]) -> Index:
    """Faces that number the landmarks of the set, not the points of one file."""
    faces, labels = np.asarray(one.faces, dtype=np.intp), one.labels
    if labels is None or labels == tuple(landmarks):
        return faces
    place = {label: k for k, label in enumerate(landmarks)}
    return np.array([place[label] for label in labels], dtype=np.intp)[faces]


def _merge_set_metadata(read: Read, system: str | None) -> dict[str, Any]:
    """What files say about the whole set, where those that say it agree."""
    stated: dict[str, list[Any]] = {}
    for _, document in read:
        for key, value in document.metadata.items():
            stated.setdefault(key, []).append(value)
    agreed = {
        key: values[0]
        for key, values in stated.items()
        if key != "space" and all(value == values[0] for value in values)
    }
    return agreed if system is None else {**agreed, "space": system}


def _collect_shape_metadata(found: Sequence[Sourced]) -> Mapping[str, tuple[Any, ...]]:
    """One value a shape for whatever any specimen says, None where one does not, and its file."""
    keys = {key for one in found for key in one.metadata} & PER_SHAPE_METADATA
    said = {key: tuple(one.metadata.get(key) for one in found) for key in sorted(keys)}
    return {**said, "sources": tuple(str(one.path) for one in found)}
