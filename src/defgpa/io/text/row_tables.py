"""Tables in which a row is a shape, or a landmark of a shape.

A row that is a shape is ``id, x1, y1[, z1], x2, …``, whatever calls the columns. A row that is a
landmark names its shape, or the file has only one. Every reader gives None for other tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from defgpa.arrays import Array, Index, RawArray
from defgpa.diagnostics.wording import name_option
from defgpa.io.files import make_format_error
from defgpa.io.format import Document, ReadOptions, Specimen, make_default_name, make_document
from defgpa.io.limits import Budget
from defgpa.io.text.column_names import (
    Columns,
    find_coordinate_columns,
    find_plain_axes,
    find_quality_columns,
    find_serial_columns,
)
from defgpa.io.text.dimension import choose_dimension, has_whole_gaps, measure_mean_misfit
from defgpa.io.text.lines import are_numbers, warn
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
from defgpa.io.weights import (
    VISIBILITY_WORDS,
    is_visibility,
    is_weight_column,
    take_visibility,
)

_SHAPE_HEADS = (*NAME_WORDS, *SHAPE_WORDS)

_MAX_COMPARABLE = 1e100  # coordinates whose squares are still numbers
_CLEARLY_BETTER = 0.5  # of two readings, the misfit of the better in terms of the other's

Roles = tuple[tuple[int, ...], int | None, int | None]  # columns: axes, shape, landmark


# A row is a shape


def read_named_columns(table: Table, options: ReadOptions) -> Document | None:
    """Read rows that are shapes, under heads that name landmarks."""
    columns = find_coordinate_columns(table.path, table.header_line, table.header)
    return None if columns is None else build_shapes_by_name(table, columns, options)


def read_serial_columns(table: Table, options: ReadOptions) -> Document | None:
    """Read rows that are shapes, under a header that counts their coordinates."""
    counted = find_serial_columns(table.header)
    if not counted:
        return None
    columns = _arrange_in_turn(table, counted, options.dimension)
    return build_shapes_by_name(table, columns, options)


def read_bare_rows(table: Table, options: ReadOptions) -> Document:
    """Read rows that are shapes: coordinates in order, with an identifier or words around."""
    start, stop = 0, table.width
    while start < stop and is_descriptive(table.column(start)):
        start += 1
    while stop > start and is_descriptive(table.column(stop - 1)):
        stop -= 1
    if start == 0 and _has_identifiers(table, stop, options.dimension):
        start = 1
    heads = list_other_heads(table, range(start, table.width))
    name = find_column(heads, _SHAPE_HEADS)
    columns = _arrange_in_turn(table, list(range(start, stop)), options.dimension)
    return _build_shapes(table, columns, 0 if name is None and start else name, options)


def _has_identifiers(table: Table, stop: int, dimension: int | None) -> bool:
    """Return whether the first of the columns up to ``stop`` names the specimens.

    Words do. Whole numbers do, if the other columns can be coordinates and the first cannot, or
    is of another kind than they are; where they repeat, they tell individuals or groups. Which
    reading was taken of several is noted; no two of them have the same dimension, so that
    ``dimension`` chooses.
    """
    first = table.column(0)
    if not are_numbers(first):
        return True
    if not all(map(is_whole, first)):
        return False
    after_identifier = _list_dimensions(stop - 1, dimension)
    without_identifier = _list_dimensions(stop, dimension)
    if not after_identifier or not without_identifier:
        return bool(after_identifier)
    numbers = table.numbers(range(stop))
    if is_enumeration(first) or _has_fractions(numbers[:, 1:]):
        return True
    is_identifier = _is_of_another_kind(numbers, after_identifier[0], without_identifier[0])
    readings = {
        True: f"{(stop - 1) // after_identifier[0]} landmarks in {after_identifier[0]}-D behind "
        "an identifier",
        False: f"{stop // without_identifier[0]} landmarks in {without_identifier[0]}-D",
    }
    dimension = (without_identifier if is_identifier else after_identifier)[0]
    warn(
        f"{table.path}: a row of {stop} whole numbers is taken as {readings[is_identifier]}. "
        f"If it is {readings[not is_identifier]}, give {name_option('dimension', dimension)}."
    )
    return is_identifier


def _has_fractions(numbers: Array) -> bool:
    """Return whether most of the numbers that are not missing have decimals."""
    visible = numbers[np.isfinite(numbers)]
    return bool(2 * np.count_nonzero(visible != np.rint(visible)) > visible.size)


def _list_dimensions(n_columns: int, wanted: int | None) -> list[int]:
    return [d for d in (2, 3) if n_columns and n_columns % d == 0 and wanted in (None, d)]


def _is_of_another_kind(numbers: Array, after_identifier: int, with_first: int) -> bool:
    """Return whether the first column of (rows, columns) is no coordinate.

    Without it no landmark is half missing, or the rows make better shapes; or, where that does
    not tell, it lies outside the others or varies more. The last arguments are the dimensions of
    both readings.
    """
    first, others = numbers[:, 0], numbers[:, 1:]
    is_comparable = (np.nan_to_num(np.abs(numbers)) < _MAX_COMPARABLE).all()
    is_whole_without = has_whole_gaps(others, after_identifier)
    if is_whole_without != has_whole_gaps(numbers, with_first):
        return is_whole_without
    if len(first) < 2 or not is_comparable or not np.isfinite(numbers).any(axis=0).all():
        return False
    is_outside = bool(first.min() > np.nanmax(others) or first.max() < np.nanmin(others))
    filled = np.where(np.isfinite(numbers), numbers, np.nanmean(numbers, axis=0))
    sizes = filled[:, 1:].std(axis=1, keepdims=True)  # the same for both readings
    filled /= np.where(sizes > 0, sizes, 1.0)
    misfit_without = measure_mean_misfit(filled[:, 1:].reshape(len(first), -1, after_identifier))
    misfit_with = measure_mean_misfit(filled.reshape(len(first), -1, with_first))
    is_enough = len(first) > 2 or numbers.shape[1] > 9  # two triangles fit, whatever they are
    if is_enough and min(misfit_without, misfit_with) < _CLEARLY_BETTER * max(
        misfit_without, misfit_with
    ):
        return misfit_without < misfit_with
    if is_outside:
        return True
    medians = np.nanmedian(others, axis=0)
    nearest = others[:, np.argsort(np.abs(medians - np.median(first)))[:3]]
    return bool(np.ptp(first) > 3 * (np.nanmax(nearest, axis=0) - np.nanmin(nearest, axis=0)).max())


def _arrange_in_turn(table: Table, columns: list[int], dimension: int | None) -> Columns:
    """Arrange columns that are x, y[, z] of one landmark after another, as (m, d)."""
    dim = choose_dimension(table.path, table.numbers(columns), dimension)
    if dim is None:
        tuples = "twos or threes" if dimension is None else {2: "twos", 3: "threes"}[dimension]
        expected = f"coordinates in {tuples} after the identifier"
        raise make_format_error(table.path, expected, f"{len(columns)} columns", table.lines[0])
    return None, np.array(columns, dtype=np.intp).reshape(-1, dim)


def build_shapes_by_name(table: Table, columns: Columns, options: ReadOptions) -> Document:
    """Build shapes named by a column without coordinates, if there is one."""
    used_columns = columns[1].ravel().tolist()
    heads = list_other_heads(table, [*used_columns, *find_quality_columns(table.header, columns)])
    name = find_column(heads, _SHAPE_HEADS)
    return _build_shapes(table, columns, next(iter(heads), None) if name is None else name, options)


def _build_shapes(
    table: Table, columns: Columns, name: int | None, options: ReadOptions
) -> Document:
    """Build one specimen per row from the columns (m, d) of its landmarks.

    A column of names in which most repeat tells groups: it stays among the variables.
    """
    Budget(table.path).spend_on_specimens(table.n_rows)
    labels, where = columns
    used_columns = where.ravel().tolist()
    points = table.numbers(used_columns).reshape(-1, *where.shape)
    if name is not None and 2 * len(table.encode(name)[1]) <= table.n_rows:
        name = None
    quality = find_quality_columns(table.header, columns)
    weights, points = _apply_quality(table, quality, points, options)
    if where.shape[1] == 3 and not quality and options.dimension is None:
        points = take_visibility(table.path, points)
    variables = find_variables(table, [*used_columns, *quality, name])
    rows = np.arange(len(points))
    return make_document(
        table.path,
        points,
        () if name is None else table.column(name),
        labels,
        collect_metadata(table, rows, rows, variables),
        None if weights is None else list(weights),
    )


def _apply_quality(
    table: Table, quality: Mapping[int, tuple[str, int]], points: Array, options: ReadOptions
) -> tuple[Array | None, Array]:
    """Return the weights (n, m) that columns state, and the points without what is not visible."""
    weights = None
    for kind in dict.fromkeys(kind for kind, _ in quality.values()):
        columns = {
            j: column for column, (quality_kind, j) in quality.items() if quality_kind == kind
        }
        if len(columns) < points.shape[1]:
            continue
        values = table.numbers([columns[j] for j in range(points.shape[1])])
        if kind in VISIBILITY_WORDS and is_visibility(values):
            points = np.where((values == 0)[..., None], np.nan, points)
        elif is_weight_column(kind, options):
            weights = values
    return weights, points


# A row is a landmark of the shape that it names


def find_roles(table: Table) -> Roles | None:
    """Find the columns of axes, shape and landmark by head or repetition; None for other tables."""
    axes = find_plain_axes(table.header)
    if not axes:
        return None if table.header else _infer_roles(table)
    heads = list_other_heads(table, axes)
    landmark = find_column(heads, LANDMARK_WORDS)
    shape = find_column(heads, SHAPE_WORDS)
    name = find_column(heads, NAME_WORDS)
    if shape is None and name is not None and table.repeats(name):
        shape, name = name, None
    is_numbered = landmark is not None and is_enumeration(table.column(landmark))
    if landmark is None or (name is not None and is_numbered):
        landmark = name
    if shape is None:
        shape = _find_shape_column(table, heads, landmark)
        landmark = None if shape == landmark else landmark
    return axes, shape, landmark


def _find_shape_column(table: Table, heads: Mapping[int, str], landmark: int | None) -> int | None:
    """Find the column that tells shapes apart though its head does not say so, as ``slice``."""
    if landmark is not None and not table.repeats(landmark):
        return None
    for column in heads:
        if not _is_grouping(table.column(column)):
            continue
        if landmark is None or column == landmark or _has_unique_pairs(table, column, landmark):
            return column
    return None


def _infer_roles(table: Table) -> Roles | None:
    """Infer shape, landmark and coordinates: shapes repeat, pairs with a landmark do not."""
    first = table.column(0)
    if not 3 <= table.width <= 5 or not _is_grouping(first):
        return None
    numbers = [are_numbers(table.column(k)) for k in range(2)]
    counted = len(set(table.column(1))) * len(set(first)) == len(first)
    if table.width > 3 and counted and _has_unique_pairs(table, 0, 1):
        return tuple(range(2, table.width)), 0, 1
    if numbers[0] or not numbers[1] or table.width > 4:
        return None
    return tuple(range(1, table.width)), 0, None


def _is_grouping(words: Sequence[str]) -> bool:
    """Return whether there are several words, each equally often and more than once."""
    times = set(Counter(words).values())
    return len(times) == 1 and 1 < min(times) < len(words)


def _has_unique_pairs(table: Table, a: int, b: int) -> bool:
    """Return whether no two rows have the same words in both columns."""
    pairs = list(zip(table.column(a), table.column(b), strict=True))
    return len(set(pairs)) == len(pairs)


def read_by_shape(table: Table, options: ReadOptions) -> Document | None:
    """Read rows grouped by shape; without a landmark column they are in the landmarks' order."""
    axes, shape, landmark = find_roles(table) or ((), None, None)
    if shape is None:
        return None
    if table.header and find_column({0: simplify_head(table.header[shape])}, _SHAPE_HEADS) is None:
        warn(f"{table.path}: column {table.header[shape].strip()!r} tells the shapes apart.")
    points, weights, quality = _read_points(table, axes, options)
    codes, names = table.encode(shape)
    Budget(table.path).spend_on_specimens(len(names))
    order = np.arange(len(codes))
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        points, codes = points[order], codes[order]
        weights = None if weights is None else weights[order]
    starts = np.searchsorted(codes, np.arange(len(names)))
    labels = _list_labels(table, landmark, order, starts, names)
    variables = find_variables(table, [*axes, *quality, shape, landmark])
    metadata = collect_metadata(table, order, starts, variables)
    blocks = _split_rows(points, starts)
    weight_blocks = None if weights is None else _split_rows(weights, starts)
    return Document(
        tuple(
            Specimen(
                name or make_default_name(table.path, k, len(names)),
                blocks[k],
                labels[k],
                metadata[k],
                weights=None if weight_blocks is None else weight_blocks[k],
            )
            for k, name in enumerate(names)
        ),
        metadata={"format": "csv-long"},
    )


def _split_rows(rows: RawArray, starts: Index) -> list[RawArray]:
    """Split rows at the first of each shape (``np.split`` takes ten times as long)."""
    return [rows[start:stop] for start, stop in pairwise([*starts.tolist(), len(rows)])]


def _list_labels(
    table: Table, landmark: int | None, order: Index, starts: Index, names: Sequence[str]
) -> list[tuple[str, ...] | None]:
    """List the labels of each shape, which must have each landmark once.

    The rows of a shape are those of ``order`` from one of ``starts`` to the next.
    """
    if landmark is None:
        return [None] * len(names)
    codes, words = table.encode(landmark)
    labels: list[tuple[str, ...] | None] = []
    before: list[int] = []
    for name, rows in zip(names, _split_rows(order, starts), strict=True):
        numbers = codes[rows].tolist()
        if labels and numbers == before:
            labels.append(labels[-1])
            continue
        before = numbers
        used: set[int] = set()
        for row, number in zip(rows.tolist(), numbers, strict=True):
            if number in used:
                expected = f"each landmark of shape {name!r} once"
                raise make_format_error(
                    table.path, expected, f"{words[number]!r} again", table.lines[row]
                )
            used.add(number)
        labels.append(tuple(words[number] for number in numbers))
    return labels


def _read_points(
    table: Table, axes: Sequence[int], options: ReadOptions
) -> tuple[Array, Array | None, list[int]]:
    """Return the points (rows, d), their weights (rows,) if stated, and the columns of quality.

    A column called visible, or a third coordinate that is only 0, 1 or 2, tells what is missing.
    """
    points, weights, quality = table.numbers(axes), None, list[int]()
    for column, head in enumerate(table.header):
        word = head.strip().lower()
        if column not in axes and is_weight_column(word, options):
            weights = table.numbers([column])[:, 0]
            quality.append(column)
        elif word in VISIBILITY_WORDS and are_numbers(table.column(column)):
            flags = table.numbers([column])[:, 0]
            if is_visibility(flags):
                points[flags == 0] = np.nan
                quality.append(column)
    if len(axes) == 3 and not quality and not table.header and options.dimension is None:
        points = take_visibility(table.path, points)
    return points, weights, quality


# A row is a landmark of the only shape


def read_under_axes(table: Table, options: ReadOptions) -> Document | None:
    """Read rows that are points under x, y[, z], or points of a scan."""
    plain = find_plain_axes(table.header) or _is_cloud(table)
    return read_one_shape(table, options) if plain else None


def read_narrow(table: Table, options: ReadOptions) -> Document | None:
    """Read rows of 2 or 3 numbers, perhaps with a label or R's name of the row before them."""
    named = _has_row_names(table) or not are_numbers(table.column(0))
    narrow = table.width - named in (2, 3) or (table.width == 4 and is_enumeration(table.column(0)))
    return read_one_shape(table, options) if narrow else None


def read_one_shape(table: Table, options: ReadOptions) -> Document:
    """Read all rows as the points of one shape, named after the file."""
    axes, _, label = find_roles(table) or (
        _find_axes_by_width(table, options.dimension),
        None,
        None,
    )
    if label is None and 0 not in axes:
        is_named = _has_row_names(table) and table.column(0)[0] != "0"  # pandas counts from 0
        label = 0 if is_named or not are_numbers(table.column(0)) else None
    points, weights, _ = _read_points(table, axes, options)
    return _build_one_shape(table, points, label, weights)


def _build_one_shape(
    table: Table, points: Array, label: int | None, weights: Array | None = None, **metadata: str
) -> Document:
    """Build one shape from its rows, with labels if every landmark has one."""
    labels = () if label is None else tuple(table.column(label))
    return make_document(
        table.path,
        [points],
        labels=labels if labels and all(labels) else None,
        weights=[weights],
        metadata={"format": "csv-points", **metadata},
    )


def _is_cloud(table: Table) -> bool:
    """Return whether rows are points of a scan, with normals or colours behind them."""
    if table.path.suffix.lower() != ".xyz" or not are_numbers(table.rows[0]):
        return False
    return table.width > 4 or (table.width == 4 and not is_enumeration(table.column(0)))


def _find_axes_by_width(table: Table, dimension: int | None) -> tuple[int, ...]:
    """Find the last 2 or 3 columns, after a label or a number of the landmark if there is one."""
    if _is_cloud(table):
        return 0, 1, 2
    if dimension in (table.width, table.width - 1):
        return tuple(range(table.width - dimension, table.width))
    labelled = table.width == 4 or not are_numbers(table.column(0)) or _has_landmark_numbers(table)
    axes = tuple(range(labelled, table.width))
    if len(axes) not in (2, 3):
        raise make_format_error(
            table.path, "2 or 3 columns of numbers", str(table.width), table.lines[0]
        )
    return axes


def _has_row_names(table: Table) -> bool:
    """Return whether the first column is what R calls the rows: each once, without a head."""
    return bool(table.header) and not table.header[0].strip() and not table.repeats(0)


def _has_landmark_numbers(table: Table) -> bool:
    """Return whether x and y stand behind 1, 2, 3, … as the number of the landmark."""
    if table.width != 3:
        return False
    if _has_row_names(table):
        return True
    if not is_enumeration(table.column(0)):
        return False
    is_whole_numbers = all(is_whole(cell) for row in table.rows for cell in row[1:])
    if len(table.rows) < 3 or is_whole_numbers:
        return False
    warn(
        f"{table.path}: the first column counts the landmarks, so the others are x and y. "
        f"If that is wrong, give {name_option('dimension', 3)}."
    )
    return True


def find_anatomical_axes(header: Sequence[str]) -> tuple[str, tuple[int, ...]] | None:
    """Find the space and the columns of its axes, where the header names each once."""
    heads = [head.strip().lower() for head in header]
    for space in ("LPS", "RAS"):
        if all(heads.count(axis) == 1 for axis in space.lower()):
            return space, tuple(map(heads.index, space.lower()))
    return None


def read_control_points(table: Table, _: ReadOptions) -> Document | None:
    """Read one shape as 3D Slicer exports it; ``defined`` is 0 for a point that was not placed."""
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
