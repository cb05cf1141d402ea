"""Tables in which a row is a landmark: of a shape that it names, or of the file's only one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from defgpa._arrays import Array
from defgpa.io.files import wrong
from defgpa.io.format import Document, Specimen, default_name
from defgpa.io.text.columns import plain_axes
from defgpa.io.text.lines import is_number, warn
from defgpa.io.text.table import Table, count_up, is_whole
from defgpa.io.text.variables import (
    LANDMARK_WORDS,
    NAME_WORDS,
    SHAPE_WORDS,
    first_column,
    head_word,
    other_heads,
    said_of,
    variables_of,
)
from defgpa.sentences import option

_SAY_SHAPE = {f"{word}{s}" for word in (*SHAPE_WORDS, *NAME_WORDS) for s in ("", "s")}
_ANATOMICAL = {"LPS": ("l", "p", "s"), "RAS": ("r", "a", "s")}


@dataclass(frozen=True)
class Roles:
    """What the columns of a table with plain x and y columns are."""

    axes: tuple[int, ...]
    shape: int | None
    landmark: int | None


def is_narrow(table: Table) -> bool:
    """Whether rows are single points: 2 or 3 numbers, or a label before them."""
    words = not all(map(is_number, table.column(0)))
    return table.width - words in (2, 3) or (table.width == 4 and count_up(table.column(0)))


def is_cloud(table: Table) -> bool:
    """Whether rows are points of a scan, with normals or colours behind them."""
    if table.path.suffix.lower() != ".xyz" or not all(map(is_number, table.rows[0])):
        return False
    return table.width > 4 or (table.width == 4 and not count_up(table.column(0)))


def roles_of(table: Table) -> Roles | None:
    """What the columns are, by their heads, or by what repeats in them; None for other tables."""
    axes = plain_axes(table.header)
    if not axes:
        return None if table.header else _roles_without_heads(table)
    heads = other_heads(table, axes)
    landmark = first_column(heads, LANDMARK_WORDS)
    shape = first_column(heads, SHAPE_WORDS)
    name = first_column(heads, NAME_WORDS)
    if shape is None and name is not None and (landmark is not None or table.repeats(name)):
        shape, name = name, None
    if landmark is None:
        landmark = name
    if shape is None:
        shape = _shapes_by_repetition(table, heads, landmark)
        landmark = None if shape == landmark else landmark
    return Roles(axes, shape, landmark)


def _shapes_by_repetition(
    table: Table, heads: Mapping[int, str], landmark: int | None
) -> int | None:
    """The column that tells shapes apart though its head does not say so, such as ``slice``."""
    if landmark is not None and not table.repeats(landmark):
        return None
    for column in heads:
        if not _are_groups(table.column(column)):
            continue
        if landmark is None or column == landmark or _differ(table, column, landmark):
            return column
    return None


def _roles_without_heads(table: Table) -> Roles | None:
    """Shape, perhaps landmark, then 2 or 3 coordinates: the shape repeats, their pair does not."""
    first = table.column(0)
    if not 3 <= table.width <= 5 or not _are_groups(first):
        return None
    numbers = [all(map(is_number, table.column(k))) for k in range(2)]
    counted = len(set(table.column(1))) * len(set(first)) == len(first)
    if table.width > 3 and counted and _differ(table, 0, 1):
        return Roles(tuple(range(2, table.width)), 0, 1)
    if numbers[0] or not numbers[1] or table.width > 4:
        return None
    return Roles(tuple(range(1, table.width)), 0, None)


def _are_groups(words: Sequence[str]) -> bool:
    """Whether there are several words, each as often as the others and more than once."""
    times = set(Counter(words).values())
    return len(times) == 1 and 1 < min(times) < len(words)


def _differ(table: Table, a: int, b: int) -> bool:
    """Whether no two rows have the same words in both columns."""
    pairs = list(zip(table.column(a), table.column(b), strict=True))
    return len(set(pairs)) == len(pairs)


def names_shapes(table: Table) -> bool:
    """Whether a column says of which shape a row is."""
    roles = roles_of(table)
    return roles is not None and roles.shape is not None


def read_by_shape(table: Table) -> Document:
    """Rows gathered by their shape; without a landmark column they are in the landmarks' order."""
    roles = roles_of(table)
    if roles is None or roles.shape is None:
        raise wrong(table.path, "a column 'shape'", table.shown_header, table.header_line or 1)
    if table.header and head_word(table.header[roles.shape]) not in _SAY_SHAPE:
        warn(f"{table.path}: column {table.header[roles.shape].strip()!r} tells the shapes apart.")
    points = table.numbers(roles.axes)
    members: dict[str, list[int]] = {}
    for row, name in enumerate(table.column(roles.shape)):
        members.setdefault(name, []).append(row)
    labels = None if roles.landmark is None else table.column(roles.landmark)
    _require_labels_once(table, members, labels)
    taken = {roles.shape, roles.landmark, *roles.axes} - {None}
    known = variables_of(table, (column for column in taken if column is not None))
    return Document(
        tuple(
            Specimen(
                name or default_name(table.path, k, len(members)),
                points[rows],
                None if labels is None else tuple(labels[row] for row in rows),
                said_of(table, rows, known),
            )
            for k, (name, rows) in enumerate(members.items())
        ),
        metadata={"format": "csv-long"},
    )


def _require_labels_once(
    table: Table, members: dict[str, list[int]], labels: Sequence[str] | None
) -> None:
    if labels is None:
        return
    for name, rows in members.items():
        seen: set[str] = set()
        for row in rows:
            if labels[row] in seen:
                expected = f"each landmark of shape {name!r} once"
                raise wrong(table.path, expected, f"{labels[row]!r} again", table.lines[row])
            seen.add(labels[row])


def read_one_shape(table: Table, dimension: int | None) -> Document:
    """All rows are the points of one shape, called like the file."""
    roles = roles_of(table) or Roles(_unnamed_axes(table, dimension), None, None)
    axes, label = roles.axes, roles.landmark
    if label is None and 0 not in axes and not all(map(is_number, table.column(0))):
        label = 0
    return _one_shape(table, table.numbers(axes), label)


def _one_shape(table: Table, points: Array, label: int | None, **metadata: str) -> Document:
    """Labels, in the column ``label``, count where every landmark has one."""
    labels = () if label is None else tuple(table.column(label))
    specimen = Specimen(table.path.stem, points, labels if labels and all(labels) else None)
    return Document((specimen,), metadata={"format": "csv-points", **metadata})


def anatomical_axes(header: Sequence[str]) -> tuple[str, tuple[int, ...]] | None:
    """The space and the columns of its axes, where the header names them, each once."""
    heads = [head.strip().lower() for head in header]
    for space, axes in _ANATOMICAL.items():
        if all(heads.count(axis) == 1 for axis in axes):
            return space, tuple(map(heads.index, axes))
    return None


def read_control_points(table: Table) -> Document:
    """One shape as 3D Slicer exports it; ``defined`` is 0 for a point that was not placed."""
    found = anatomical_axes(table.header)
    assert found is not None  # _layout asked
    space, axes = found
    heads = {column: head.strip().lower() for column, head in enumerate(table.header)}
    label, defined = first_column(heads, ("label",)), first_column(heads, ("defined",))
    points = table.numbers(axes)
    if defined is not None:
        points[[word == "0" for word in table.column(defined)]] = np.nan
    return _one_shape(table, points, label, space=space)


def _unnamed_axes(table: Table, dimension: int | None) -> tuple[int, ...]:
    """The last 2 or 3 columns, after a label or a number of the landmark if there is one."""
    if is_cloud(table):
        return 0, 1, 2
    if dimension in (table.width, table.width - 1):
        return tuple(range(table.width - dimension, table.width))
    labelled = table.width == 4 or not all(map(is_number, table.column(0))) or _numbered(table)
    axes = tuple(range(labelled, table.width))
    if len(axes) not in (2, 3):
        raise wrong(table.path, "2 or 3 columns of numbers", str(table.width), table.lines[0])
    return axes


def _numbered(table: Table) -> bool:
    """Whether x and y stand behind 1, 2, 3, … as the number of the landmark."""
    if table.width != 3 or not count_up(table.column(0)):
        return False
    if table.header and not table.header[0].strip():
        return True  # the names that R gives to rows have no head
    whole = all(is_whole(cell) for row in table.rows for cell in row[1:])
    if len(table.rows) < 3 or whole:
        return False
    warn(
        f"{table.path}: the first column counts the landmarks, so the others are x and y. "
        f"If that is wrong, give {option('dimension', 3)}."
    )
    return True
