"""Tables in which a row is a shape, or a landmark of a shape.

A row that is a shape is ``id, x1, y1[, z1], x2, …``, whatever calls the columns. A row that is a
landmark names its shape, or the file has only one. Every reader gives None for other tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from defgpa._arrays import Array
from defgpa.diagnostics.wording import name_option
from defgpa.io.files import make_format_error
from defgpa.io.format import Document, ReadOptions, Specimen, make_default_name, make_document
from defgpa.io.text.columns import (
    Columns,
    find_coordinate_columns,
    find_plain_axes,
    find_serial_columns,
)
from defgpa.io.text.dimension import choose_dimension
from defgpa.io.text.lines import is_number, warn
from defgpa.io.text.table import Table, is_enumeration, is_whole
from defgpa.io.text.variables import (
    LANDMARK_WORDS,
    NAME_WORDS,
    SHAPE_WORDS,
    collect_metadata,
    find_column,
    find_variables,
    is_descriptive,
    list_other_heads,
    simplify_head,
)

_SAY_SHAPE = (*NAME_WORDS, *SHAPE_WORDS)

Roles = tuple[tuple[int, ...], int | None, int | None]  # columns: axes, shape, landmark


# A row is a shape


def read_named_columns(table: Table, _: ReadOptions) -> Document | None:
    """Rows are shapes, and the heads of their columns name landmarks."""
    columns = find_coordinate_columns(table.path, table.header_line, table.header)
    return None if columns is None else _build_shapes_by_name(table, columns)


def read_serial_columns(table: Table, options: ReadOptions) -> Document | None:
    """Rows are shapes; the header counts their coordinates."""
    counted = find_serial_columns(table.header)
    return (
        _build_shapes_by_name(table, _arrange_in_turn(table, counted, options.dimension))
        if counted
        else None
    )


def read_bare_rows(table: Table, options: ReadOptions) -> Document:
    """Rows are shapes; an identifier or words about each around coordinates in order."""
    start, stop = 0, table.width
    while start < stop and is_descriptive(table.column(start)):
        start += 1
    while stop > start and is_descriptive(table.column(stop - 1)):
        stop -= 1
    name = 0 if start or _has_identifiers(table) else None
    start = max(start, 0 if name is None else 1)
    name_column = find_column(list_other_heads(table, range(start, table.width)), _SAY_SHAPE)
    columns = _arrange_in_turn(table, list(range(start, stop)), options.dimension)
    return _build_shapes(table, columns, name if name_column is None else name_column)


def _has_identifiers(table: Table) -> bool:
    """Words, or whole numbers that differ and leave coordinates that are not whole."""
    first = table.column(0)
    if not all(map(is_number, first)):
        return True
    if not all(map(is_whole, first)) or table.repeats(0) or not _is_divisible(table.width - 1):
        return False
    fractions = any(not all(map(is_whole, row[1:])) for row in table.rows)
    return fractions or is_enumeration(first) or not _is_divisible(table.width)


def _is_divisible(columns: int) -> bool:
    return columns % 2 == 0 or columns % 3 == 0


def _arrange_in_turn(table: Table, columns: list[int], dimension: int | None) -> Columns:
    """Columns that are x, y[, z] of one landmark after the other."""
    dim = choose_dimension(table.path, table.numbers(columns), dimension)
    if dim is None:
        several = "twos or threes" if dimension is None else {2: "twos", 3: "threes"}[dimension]
        expected = f"coordinates in {several} after the identifier"
        raise make_format_error(table.path, expected, f"{len(columns)} columns", table.lines[0])
    return None, np.array(columns, dtype=np.intp).reshape(-1, dim)


def _build_shapes_by_name(table: Table, columns: Columns) -> Document:
    """The name of a shape stands in a column without coordinates, if there is one."""
    heads = list_other_heads(table, columns[1].ravel().tolist())
    name = find_column(heads, _SAY_SHAPE)
    return _build_shapes(table, columns, next(iter(heads), None) if name is None else name)


def _build_shapes(table: Table, columns: Columns, name: int | None) -> Document:
    labels, where = columns
    taken = where.ravel().tolist()
    points = table.numbers(taken).reshape(-1, *where.shape)
    names = () if name is None else table.column(name)
    variables = find_variables(table, [*taken, name])
    metadata_per_shape = [collect_metadata(table, [k], variables) for k in range(len(points))]
    return make_document(table.path, points, names, labels, metadata_per_shape)


# A row is a landmark of the shape that it names


def find_roles(table: Table) -> Roles | None:
    """What the columns are, by their heads, or by what repeats in them; None for other tables."""
    axes = find_plain_axes(table.header)
    if not axes:
        return None if table.header else _infer_roles(table)
    heads = list_other_heads(table, axes)
    landmark = find_column(heads, LANDMARK_WORDS)
    shape = find_column(heads, SHAPE_WORDS)
    name = find_column(heads, NAME_WORDS)
    if shape is None and name is not None and (landmark is not None or table.repeats(name)):
        shape, name = name, None
    if landmark is None:
        landmark = name
    if shape is None:
        shape = _find_shape_column(table, heads, landmark)
        landmark = None if shape == landmark else landmark
    return axes, shape, landmark


def _find_shape_column(table: Table, heads: Mapping[int, str], landmark: int | None) -> int | None:
    """The column that tells shapes apart though its head does not say so, such as ``slice``."""
    if landmark is not None and not table.repeats(landmark):
        return None
    for column in heads:
        if not _is_grouping(table.column(column)):
            continue
        if landmark is None or column == landmark or _has_unique_pairs(table, column, landmark):
            return column
    return None


def _infer_roles(table: Table) -> Roles | None:
    """Shape, perhaps landmark, then 2 or 3 coordinates: the shape repeats, their pair does not."""
    first = table.column(0)
    if not 3 <= table.width <= 5 or not _is_grouping(first):
        return None
    numbers = [all(map(is_number, table.column(k))) for k in range(2)]
    counted = len(set(table.column(1))) * len(set(first)) == len(first)
    if table.width > 3 and counted and _has_unique_pairs(table, 0, 1):
        return tuple(range(2, table.width)), 0, 1
    if numbers[0] or not numbers[1] or table.width > 4:
        return None
    return tuple(range(1, table.width)), 0, None


def _is_grouping(words: Sequence[str]) -> bool:
    """Whether there are several words, each as often as the others and more than once."""
    times = set(Counter(words).values())
    return len(times) == 1 and 1 < min(times) < len(words)


def _has_unique_pairs(table: Table, a: int, b: int) -> bool:
    """Whether no two rows have the same words in both columns."""
    pairs = list(zip(table.column(a), table.column(b), strict=True))
    return len(set(pairs)) == len(pairs)


def read_by_shape(table: Table, _: ReadOptions) -> Document | None:
    """Rows gathered by their shape; without a landmark column they are in the landmarks' order."""
    axes, shape, landmark = find_roles(table) or ((), None, None)
    if shape is None:
        return None
    if table.header and find_column({0: simplify_head(table.header[shape])}, _SAY_SHAPE) is None:
        warn(f"{table.path}: column {table.header[shape].strip()!r} tells the shapes apart.")
    points = table.numbers(axes)
    members: dict[str, list[int]] = {}
    for row, name in enumerate(table.column(shape)):
        members.setdefault(name, []).append(row)
    labels = None if landmark is None else table.column(landmark)
    if labels is not None:
        _require_unique_labels(table, members, labels)
    variables = find_variables(table, [*axes, shape, landmark])
    return Document(
        tuple(
            Specimen(
                name or make_default_name(table.path, k, len(members)),
                points[rows],
                None if labels is None else tuple(labels[row] for row in rows),
                collect_metadata(table, rows, variables),
            )
            for k, (name, rows) in enumerate(members.items())
        ),
        metadata={"format": "csv-long"},
    )


def _require_unique_labels(
    table: Table, members: dict[str, list[int]], labels: Sequence[str]
) -> None:
    for name, rows in members.items():
        used: set[str] = set()
        for row in rows:
            if labels[row] in used:
                expected = f"each landmark of shape {name!r} once"
                raise make_format_error(
                    table.path, expected, f"{labels[row]!r} again", table.lines[row]
                )
            used.add(labels[row])


# A row is a landmark of the only shape


def read_under_axes(table: Table, options: ReadOptions) -> Document | None:
    """Rows are points under x, y[, z], or points of a scan."""
    plain = find_plain_axes(table.header) or _is_cloud(table)
    return read_one_shape(table, options) if plain else None


def read_narrow(table: Table, options: ReadOptions) -> Document | None:
    """Rows are 2 or 3 numbers, perhaps with a label before them."""
    words = not all(map(is_number, table.column(0)))
    narrow = table.width - words in (2, 3) or (table.width == 4 and is_enumeration(table.column(0)))
    return read_one_shape(table, options) if narrow else None


def read_one_shape(table: Table, options: ReadOptions) -> Document:
    """All rows are the points of one shape, called like the file."""
    axes, _, label = find_roles(table) or (
        _find_axes_by_width(table, options.dimension),
        None,
        None,
    )
    if label is None and 0 not in axes and not all(map(is_number, table.column(0))):
        label = 0
    return _build_one_shape(table, table.numbers(axes), label)


def _build_one_shape(table: Table, points: Array, label: int | None, **metadata: str) -> Document:
    """Labels, in the column ``label``, count where every landmark has one."""
    labels = () if label is None else tuple(table.column(label))
    complete_labels = labels if labels and all(labels) else None
    set_metadata = {"format": "csv-points", **metadata}
    return make_document(table.path, [points], labels=complete_labels, metadata=set_metadata)


def _is_cloud(table: Table) -> bool:
    """Whether rows are points of a scan, with normals or colours behind them."""
    if table.path.suffix.lower() != ".xyz" or not all(map(is_number, table.rows[0])):
        return False
    return table.width > 4 or (table.width == 4 and not is_enumeration(table.column(0)))


def _find_axes_by_width(table: Table, dimension: int | None) -> tuple[int, ...]:
    """The last 2 or 3 columns, after a label or a number of the landmark if there is one."""
    if _is_cloud(table):
        return 0, 1, 2
    if dimension in (table.width, table.width - 1):
        return tuple(range(table.width - dimension, table.width))
    labelled = (
        table.width == 4 or not all(map(is_number, table.column(0))) or _has_landmark_numbers(table)
    )
    axes = tuple(range(labelled, table.width))
    if len(axes) not in (2, 3):
        raise make_format_error(
            table.path, "2 or 3 columns of numbers", str(table.width), table.lines[0]
        )
    return axes


def _has_landmark_numbers(table: Table) -> bool:
    """Whether x and y stand behind 1, 2, 3, … as the number of the landmark."""
    if table.width != 3 or not is_enumeration(table.column(0)):
        return False
    if table.header and not table.header[0].strip():
        return True  # the names that R gives to rows have no head
    is_whole_numbers = all(is_whole(cell) for row in table.rows for cell in row[1:])
    if len(table.rows) < 3 or is_whole_numbers:
        return False
    warn(
        f"{table.path}: the first column counts the landmarks, so the others are x and y. "
        f"If that is wrong, give {name_option('dimension', 3)}."
    )
    return True


def find_anatomical_axes(header: Sequence[str]) -> tuple[str, tuple[int, ...]] | None:
    """The space and the columns of its axes, where the header names them, each once."""
    heads = [head.strip().lower() for head in header]
    for space in ("LPS", "RAS"):
        if all(heads.count(axis) == 1 for axis in space.lower()):
            return space, tuple(map(heads.index, space.lower()))
    return None


def read_control_points(table: Table, _: ReadOptions) -> Document | None:
    """One shape as 3D Slicer exports it; ``defined`` is 0 for a point that was not placed."""
    space_and_axes = find_anatomical_axes(table.header)
    if space_and_axes is None:
        return None
    space, axes = space_and_axes
    heads = {column: head.strip().lower() for column, head in enumerate(table.header)}
    label, defined = find_column(heads, ("label",)), find_column(heads, ("defined",))
    points = table.numbers(axes)
    if defined is not None:
        points[[word == "0" for word in table.column(defined)]] = np.nan
    return _build_one_shape(table, points, label, space=space)
