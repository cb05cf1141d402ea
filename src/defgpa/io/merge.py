"""Merge the documents of many files into one set of shapes.

Landmarks are matched by label where every specimen has labels, and by position otherwise; all
shapes come in natural order, in one anatomical space, under unique names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from defgpa.arrays import Array, Index
from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError, format_names, format_some
from defgpa.io.anatomical_space import convert_space
from defgpa.io.curves import equalise_curves
from defgpa.io.files import abbreviate, decode_file_name
from defgpa.io.format import ReadOptions, SeveralSetsError, SourcedSpecimen
from defgpa.io.landmark_matching import list_landmarks, match_landmarks
from defgpa.io.limits import Budget
from defgpa.io.specimen_names import Read, make_unique_names, rename_specimens, sort_documents
from defgpa.io.text.lines import warn
from defgpa.shapes import PER_SHAPE_METADATA, Shapes

_MESHES = frozenset({"ply", "obj", "stl", "off", "vtk", "vtp"})
_MAX_NAMES = 20  # specimens in a sentence about those that are unfinished


def merge_documents(read: Read, options: ReadOptions) -> Shapes:
    """Merge the specimens of all documents into one set of shapes."""
    read = sort_documents(rename_specimens(options.names, read))
    system = _choose_space(read, options.space)
    set_metadata = _merge_set_metadata(read, system)
    specimens = _collect_specimens(read, system)
    specimens = equalise_curves(specimens, options.curve_points)
    specimens, left_out = _drop_incomplete(read, specimens, options)
    specimens = match_landmarks(specimens, options.match)
    landmarks = list_landmarks(specimens)
    points = _stack_points(specimens, landmarks, options.dimension)
    _require_whole_landmarks(specimens, landmarks, points)
    weights = _stack_weights(specimens, landmarks, points, options)
    _warn_of_rare_landmarks(points)
    specimens = _assign_groups(specimens, options.group)
    _warn_of_partial_scales(specimens)
    names, faces = make_unique_names(specimens), _choose_faces(specimens, landmarks)
    metadata = {**set_metadata, **_collect_shape_metadata(specimens), **left_out}
    del read, specimens  # of large files, only the stack is kept beside the copy in Shapes
    return Shapes.specimens(
        points, weights=weights, names=names, landmarks=landmarks, faces=faces, metadata=metadata
    )


# Anatomical space


def _choose_space(read: Read, wanted: str | None) -> str | None:
    """Choose the requested space, else that of the first file that states one."""
    spaces = [(path, document.metadata.get("space")) for path, document in read]
    if wanted is not None:
        for path, space in spaces:
            if space is None:
                raise FormatError(
                    f"{path} does not say whether it is LPS or RAS, so it cannot be brought to "
                    f"{wanted}. Leave out space={wanted!r}."
                )
        return wanted
    return next((space for _, space in spaces if space is not None), None)


def _collect_specimens(read: Read, system: str | None) -> list[SourcedSpecimen]:
    """Collect all specimens in one space, with their files."""
    return [
        SourcedSpecimen(
            decode_file_name(specimen.name),
            convert_space(specimen.points, document.metadata.get("space"), system),
            specimen.labels,
            specimen.metadata,
            specimen.curves,
            specimen.weights,
            path=path,
            faces=document.faces if k == 0 else None,
        )
        for path, document in read
        for k, specimen in enumerate(document.specimens)
    ]


# Which points take part


def _drop_incomplete(
    read: Read, specimens: list[SourcedSpecimen], options: ReadOptions
) -> tuple[list[SourcedSpecimen], dict[str, object]]:
    """Keep the specimens with as many landmarks as most, and note the others.

    Only labels allow for fewer. The others are refused, or dropped where that is asked for.
    """
    present = [specimen for specimen in specimens if len(specimen.points)]
    if options.match != "position" and all(specimen.labels for specimen in present):
        return specimens, {}
    counts = Counter(len(specimen.points) for specimen in present)
    if len(counts) <= 1:
        return specimens, {}
    _require_one_set(present)
    m = counts.most_common(1)[0][0]
    odd = [specimen for specimen in present if len(specimen.points) != m]
    if options.incomplete == "error" or counts[m] < max(2, len(odd)):  # no majority to go on with
        usual = next(specimen for specimen in present if len(specimen.points) == m)
        raise _explain_unequal_counts(read, usual, odd, counts[m])
    counted = [f"{_abbreviate_name(specimen)} ({len(specimen.points)})" for specimen in odd]
    warn(f"Left out as unfinished (most have {m} landmarks): {format_some(counted, _MAX_NAMES)}.")
    complete = [specimen for specimen in specimens if len(specimen.points) in (0, m)]
    return complete, {"incomplete": tuple(specimen.name for specimen in odd)}


def _require_one_set(present: Sequence[SourcedSpecimen]) -> None:
    """Raise an error if groups of files differ in their number of landmarks."""
    sizes: dict[str, list[int]] = {}
    for specimen in present:
        sizes.setdefault(str(specimen.path), []).append(len(specimen.points))
    uniform = all(len(set(counts)) == 1 for counts in sizes.values())
    if len(sizes) > 1 and uniform and max(map(len, sizes.values())) > 1:
        files = [f"{path} has {counts[0]} landmarks" for path, counts in sizes.items()]
        raise SeveralSetsError(
            f"These files are different sets: {format_some(files, 4)}. Read them one by one.",
            {path: (len(counts), counts[0]) for path, counts in sizes.items()},
        )


def _explain_unequal_counts(
    read: Read, first: SourcedSpecimen, odd: Sequence[SourcedSpecimen], usual: int
) -> FormatError:
    """Name all specimens with another number of landmarks than most, in one message."""
    others = "" if usual == 1 else f" (and so do {usual - 1} more)"
    several = len(odd) > 2 and all(specimen.path == first.path for specimen in odd)
    names = [_abbreviate_name(specimen) if several else str(specimen) for specimen in odd]
    counts = [f"{k} has {len(specimen.points)}" for k, specimen in zip(names, odd, strict=True)]
    meshes = any(document.metadata.get("format") in _MESHES for _, document in read)
    remedy = "Put NA where a landmark is missing"
    if meshes:
        remedy = "The vertices of meshes must correspond one by one"
    elif usual >= max(2, len(odd)):
        remedy += f", or leave unfinished specimens out ({name_option('incomplete', 'drop')})"
    return FormatError(
        f"All shapes must have the same landmarks: {first} has {len(first.points)}"
        f"{others}, {format_some(counts, _MAX_NAMES)}. {remedy}."
    )


def _abbreviate_name(specimen: SourcedSpecimen) -> str:
    return abbreviate(repr(specimen.name), max_length=40)


# Points


def _stack_points(
    specimens: Sequence[SourcedSpecimen], landmarks: Sequence[str], dimension: int | None
) -> Array:
    """Stack points (n, m, d); a landmark whose label a specimen lacks is NaN."""
    present = [specimen for specimen in specimens if len(specimen.points)]
    d = present[0].points.shape[1]
    for specimen in present:
        if specimen.points.shape[1] != d:
            raise FormatError(
                f"All shapes must have the same dimension: {present[0]} is {d}-D, {specimen} is "
                f"{specimen.points.shape[1]}-D."
            )
    n, m = len(specimens), len(landmarks)
    size = sum(path.stat().st_size for path in {specimen.path for specimen in present})
    what = f"a set of {n} shapes with {m} landmarks, few of them in each,"
    Budget(present[0].path, size).spend(8 * n * m * d, what)
    points = np.full((n, m, d), np.nan)
    for row, specimen, numbers in zip(
        points, specimens, _number_points(specimens, landmarks), strict=True
    ):
        row[numbers] = specimen.points if len(specimen.points) else np.nan
    if dimension in (None, d):
        return points
    if dimension == 2 and np.nanmax(points[..., 2]) == np.nanmin(points[..., 2]):
        return points[..., :2]  # photographs, digitised in a program for 3-D
    raise FormatError(
        f"{present[0]} is {d}-D and says so. Leave out {name_option('dimension', dimension)}."
    )


def _number_points(
    specimens: Sequence[SourcedSpecimen], landmarks: Sequence[str]
) -> Iterator[slice | list[int]]:
    """Assign the points of each specimen to landmarks, by label if all have labels."""
    by_label = all(specimen.labels for specimen in specimens if len(specimen.points))
    number = {label: j for j, label in enumerate(landmarks)} if by_label else {}
    order = tuple(landmarks)
    for specimen in specimens:
        if not by_label or specimen.labels == order or not len(specimen.points):
            yield slice(None)
        else:
            yield [number[label] for label in specimen.labels or ()]


def _stack_weights(
    specimens: Sequence[SourcedSpecimen],
    landmarks: Sequence[str],
    points: Array,
    options: ReadOptions,
) -> Array | None:
    """Return (n, m) landmark weights if files state some, and hide points below the least one."""
    min_likelihood = options.min_likelihood
    if all(specimen.weights is None for specimen in specimens):
        if options.weights not in (None, "likelihood"):
            raise FormatError(
                f"{specimens[0].path} has no column {options.weights!r} with a weight for every "
                f"landmark. Name another, or take none: {name_option('weights', 'none')}."
            )
        if min_likelihood is not None:
            raise FormatError(
                f"{specimens[0].path} states no likelihoods. "
                f"Leave out {name_option('min_likelihood', min_likelihood)}."
            )
        return None
    weights = np.zeros(points.shape[:2])
    for row, specimen, numbers in zip(
        weights, specimens, _number_points(specimens, landmarks), strict=True
    ):
        row[numbers] = 1.0 if specimen.weights is None else specimen.weights
    weights[np.isnan(points[..., 0])] = 0.0
    is_wrong = ~(weights >= 0) | np.isinf(weights)
    if is_wrong.any():
        i, j = np.argwhere(is_wrong)[0]
        label = abbreviate(repr(landmarks[j]))
        raise FormatError(
            f"The weight of landmark {label} of {specimens[i]} is {weights[i, j]:g}: "
            "weights are 0 or positive. To read the points alone: "
            f"{name_option('weights', 'none')}."
        )
    if min_likelihood is not None:
        weights[weights < min_likelihood] = 0.0
    points[weights == 0] = np.nan
    return weights


def _require_whole_landmarks(
    specimens: Sequence[SourcedSpecimen], landmarks: Sequence[str], points: Array
) -> None:
    """Require that a landmark has all coordinates or none, none of them infinite."""
    unknown = np.isnan(points)
    is_whole = (unknown[..., 1:] == unknown[..., :1]).all()  # ten times as fast as along an axis
    if is_whole and not np.isinf(points).any():
        return
    half = unknown.any(axis=2) & ~unknown.all(axis=2)
    for wrong, problem, remedy in (
        (half, "is half missing", "Give all its coordinates, or NA for all of them."),
        (np.isinf(points).any(axis=2), "has an infinite coordinate", "Use NA if it is missing."),
    ):
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise FormatError(
                f"Landmark {abbreviate(repr(landmarks[j]))} of {specimens[i]} {problem}: "
                f"{points[i, j].tolist()}. {remedy}"
            )


def _warn_of_rare_landmarks(points: Array) -> None:
    """Warn where few shapes have most landmarks, as labels that differ between files make them."""
    n, m, _ = points.shape
    views = np.isfinite(points[..., 0]).sum(axis=0)
    rare = views <= max(1.0, 0.2 * n)
    if n < 3 or 2 * rare.sum() <= m:
        return
    share = 1 - views.sum() / (n * m)
    warn(
        f"{rare.sum()} of {m} landmarks are seen in {int(views[rare].max())} of {n} shapes at most "
        f"({share:.0%} of all is missing). If landmarks are called differently from file to file, "
        f"{name_option('match', 'position')} goes by their order."
    )


# What the files know besides


def _assign_groups(specimens: list[SourcedSpecimen], column: str | None) -> list[SourcedSpecimen]:
    """Assign to each specimen the group that a column of its table states."""
    if column is None:
        return specimens
    heads = dict.fromkeys(
        head for specimen in specimens for head in specimen.metadata.get("variables") or ()
    )
    fitting = [head for head in heads if head.casefold() == column.strip().casefold()]
    if not fitting:
        available = (
            f"there are: {format_names(heads, 20)}" if heads else "the files have no such columns"
        )
        raise FormatError(f"There is no column {column!r} to group by; {available}.")
    head = column.strip() if column.strip() in fitting else fitting[0]
    new_metadata = (
        {**specimen.metadata, "groups": specimen.metadata.get("variables", {}).get(head)}
        for specimen in specimens
    )
    return [
        replace(specimen, metadata=entry)
        for specimen, entry in zip(specimens, new_metadata, strict=True)
    ]


def _warn_of_partial_scales(specimens: Sequence[SourcedSpecimen]) -> None:
    bare = [specimen.name for specimen in specimens if "scales" not in specimen.metadata]
    if 0 < len(bare) < len(specimens):
        files = {str(specimen.path) for specimen in specimens}
        where = f"{files.pop()}: " if len(files) == 1 else ""
        warn(
            f"{where}{len(bare)} of {len(specimens)} specimens have no SCALE "
            f"({format_names(bare, 3)}); their coordinates are taken as they are, so sizes may not "
            "be comparable."
        )


def _choose_faces(specimens: Sequence[SourcedSpecimen], landmarks: Sequence[str]) -> Index | None:
    """Choose the triangles of the first file that has some; warn if other files have others."""
    faces_by_file = [
        (specimen.path, _renumber_faces(specimen, landmarks))
        for specimen in specimens
        if specimen.faces is not None
    ]
    if not faces_by_file:
        return None
    first_path, first = faces_by_file[0]
    for path, faces in faces_by_file[1:]:
        if not np.array_equal(faces, first):
            warn(f"{path} has other faces than {first_path}; those of {first_path} are kept.")
            break
    return first


def _renumber_faces(specimen: SourcedSpecimen, landmarks: Sequence[str]) -> Index:
    """Renumber faces from the points of one file to the landmarks of the set."""
    faces, labels = np.asarray(specimen.faces, dtype=np.intp), specimen.labels
    if labels is None or labels == tuple(landmarks):
        return faces
    place = {label: k for k, label in enumerate(landmarks)}
    return np.array([place[label] for label in labels], dtype=np.intp)[faces]


def _merge_set_metadata(read: Read, system: str | None) -> dict[str, object]:
    """Merge the metadata of the whole set that all files with them agree on."""
    values_by_key: dict[str, list[object]] = {}
    for _, document in read:
        for key, value in document.metadata.items():
            values_by_key.setdefault(key, []).append(value)
    common = {
        key: values[0]
        for key, values in values_by_key.items()
        if key != "space" and all(value == values[0] for value in values)
    }
    return common if system is None else {**common, "space": system}


def _collect_shape_metadata(
    specimens: Sequence[SourcedSpecimen],
) -> Mapping[str, tuple[object, ...]]:
    """Collect one value per shape for each key, None where a shape has none, and its file."""
    keys = {key for specimen in specimens for key in specimen.metadata} & PER_SHAPE_METADATA
    values_by_key = {
        key: tuple(specimen.metadata.get(key) for specimen in specimens) for key in sorted(keys)
    }
    return {**values_by_key, "sources": tuple(str(specimen.path) for specimen in specimens)}
