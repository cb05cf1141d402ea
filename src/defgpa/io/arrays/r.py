"""R's own files (``.rds``, ``.rda``, ``.RData``): the p × k × n arrays of geomorph and Morpho.

Recognised are an array of landmarks, coordinates and specimens, wherever in lists it stands, by
the name of ``land`` or ``coords`` where there are several; a list of p × k matrices; or one such
matrix. Names of the dimensions are those of landmarks and specimens. Vectors, factors and columns
of data frames as long as the specimens are many are columns of that name; ``links`` joins pairs of
landmarks, from 1. Needs ``rdata``, which runs no code that a file may hold.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from defgpa.arrays import RawArray
from defgpa.errors import import_extra
from defgpa.io.arrays.axes import (
    ORDERS,
    arrange_matrix,
    arrange_stack,
    choose_variable,
    infer_layout,
    parse_links,
)
from defgpa.io.files import (
    make_format_error,
    mask_missing,
    read_bytes,
    translate_errors,
)
from defgpa.io.format import Document, Format, ReadOptions, Specimen, make_document
from defgpa.io.limits import Budget, decompress, decompress_head, is_packed

_USUAL_NAMES = ("land", "coords", "landmarks", "points", "A")
_OBJECT_COST = 1000  # bytes that the smallest object takes here, of 4 in the file; and some time
_WIDTHS = {9: 1, 7: 1, 8: 1, 24: 1, 10: 4, 13: 4, 14: 8, 15: 16}  # types of bytes, and of numbers
_N_PARTS = {1: 1, 2: 2, 3: 2, 5: 2, 6: 2, 17: 2, 22: 2, 238: 3}  # types of so many objects
_LISTS, _LIST_PAIRS, _ENVIRONMENT, _PLAIN = (16, 19, 20), (2, 3, 5, 6, 17), 4, (254, 255)
_CODE, _CODE_LENGTH = (21, 239, 240, 243, 244), 40  # types of compiled functions; bytes of a part
_STARTS = (b"RDX", b"RDA", b"X\n\0\0\0", b"B\n", b"A\n2\n", b"A\n3\n")

RValue = Any  # what rdata makes of an object of R
Variables = Mapping[str, RValue]


def read_r(path: Path, options: ReadOptions) -> Document:
    """Read the shapes of an R file."""
    variables = dict(_flatten(_read_content(path), path.stem, 4))  # lists in lists
    value = _find_shapes(path, variables, options.variable)
    if isinstance(value, list):
        return _read_matrices(path, value, options, variables)
    names, labels = None, None
    array = _to_array(value)
    if array.ndim == 3:
        layout = options.layout
        layout = layout if layout != "auto" else infer_layout(path, array.shape, "mdn")
        names, labels = (_get_dimension_names(value, axis) for axis in ORDERS[layout][:2])
        stack = arrange_stack(path, array, layout, preferred=None)
    else:
        stack = arrange_matrix(path, array, options.layout)[None]
        labels = _get_dimension_names(value, 0) if len(stack[0]) == len(array) else None
    stack = mask_missing(stack, options.missing)
    shape_metadata = _collect_metadata(variables, len(stack))
    metadata = _find_links(variables, stack.shape[1]) | _find_factors(variables, len(stack))
    return make_document(path, stack, names or (), labels, shape_metadata, metadata=metadata)


def _collect_metadata(variables: Variables, n: int) -> list[dict[str, object]]:
    """Collect vectors with one entry per specimen as metadata; "" for NA.

    Levels of a factor stay words, whatever they look like: a statistic takes them for groups.
    """
    columns = {
        name: [_format_entry(entry) for entry in np.asarray(value).tolist()]
        for name, value in variables.items()
        if getattr(value, "ndim", 0) == 1 and len(value) == n
    }
    rows = [{name: words[i] for name, words in columns.items()} for i in range(n)]
    return [{"variables": row} if row else {} for row in rows]


def _find_factors(variables: Variables, n: int) -> dict[str, object]:
    """Name the vectors that are factors in R, whose levels may look like numbers."""
    factors = [
        name
        for name, value in variables.items()
        if str(getattr(value, "dtype", "")) == "category" and len(value) == n
    ]
    return {"factors": tuple(factors)} if factors else {}


def _format_entry(entry: RValue) -> str:
    return "" if entry is None or entry != entry else str(entry)


def _find_links(variables: Variables, m: int) -> dict[str, object]:
    """Find the pairs of landmarks that are joined, where ``links`` numbers them."""
    links = variables.get("links")
    return parse_links(_to_array(links), 1, m) if _has_axes(links, 2) else {}


def _read_matrices(
    path: Path, matrices: list[RValue], options: ReadOptions, variables: Variables
) -> Document:
    specimens = []
    shape_metadata = _collect_metadata(variables, len(matrices))
    for (name, value), metadata in zip(matrices, shape_metadata, strict=True):
        points = mask_missing(
            arrange_matrix(path, _to_array(value), options.layout), options.missing
        )
        labels = _get_dimension_names(value, 0)
        landmark_labels = labels if labels and len(labels) == len(points) else None
        specimens.append(Specimen(name, points, landmark_labels, metadata))
    metadata = {
        **_find_links(variables, len(specimens[0].points)),
        **_find_factors(variables, len(specimens)),
    }
    return Document(tuple(specimens), metadata=metadata)


def _read_content(path: Path) -> RValue:
    """Read the values of a file as Python's, within a budget."""
    advice = (
        f'{path} is a file of R, which needs rdata: pip install "defgpa[r]". '
        "Or write it in R with geomorph's writeland.tps."
    )
    rdata = import_extra("rdata", advice)
    packed, budget = read_bytes(path), Budget(path)

    def limit_size(build: Callable[[RValue], RValue]) -> Callable[[RValue], RValue]:
        def build_within_budget(state: RValue) -> RValue:
            # R stores the ends of a sequence, of which an entry may become 1000 bytes here
            budget.spend(1000 * int(state.value[0]), "a sequence in it")
            return build(state)

        return build_within_budget

    sequences = (b"compact_intseq", b"compact_realseq")
    constructors = dict(rdata.parser.DEFAULT_ALTREP_MAP)
    constructors |= {name: limit_size(constructors[name]) for name in sequences}
    with translate_errors(path, "R file"):
        data = decompress(packed, budget.left + 1)
        budget.spend(len(data), "what it packs")
        if is_packed(data):
            raise ValueError("it is packed twice")
        max_objects = budget.left // _OBJECT_COST
        budget.spend(_OBJECT_COST * _count_objects(data, max_objects), "the number of its objects")
        parsed = rdata.parser.parse_data(data, altrep_constructor_dict=constructors)
        return rdata.conversion.convert(parsed)


def _count_objects(data: bytes, max_count: int) -> int:
    """Count the objects of an unpacked file, or as many as a file of text has lines.

    Counting ends above ``max_count``, and with compiled functions, of which none is as small.
    """
    data = data[5:] if data.startswith((b"RDX", b"RDA", b"RDB")) else data
    if data.startswith(b"A"):
        return data.count(b"\n") // 2
    order = "<" if data[2:6] in (b"\2\0\0\0", b"\3\0\0\0") else ">"
    read = struct.Struct(order + "I").unpack_from
    at = 14  # behind the versions
    if read(data, 2)[0] == 3:
        at += 4 + read(data, at)[0]  # and the encoding
    n_open, count = 1, 0
    while n_open and count <= max_count and at + 8 <= len(data):
        flags, length = *read(data, at), *read(data, at + 4)
        kind = flags & 0xFF
        count, at = count + 1, at + 4
        n_open += _N_PARTS.get(kind, 0) - 1
        if kind in _PLAIN:
            continue
        n_open += bool(flags & 0x200)  # attributes
        if kind in _WIDTHS:
            at += 4 + _WIDTHS[kind] * (length if length < 2**31 else 0)
        elif kind in _LISTS:
            at, n_open = at + 4, n_open + length
        elif kind in _LIST_PAIRS:
            n_open += bool(flags & 0x400)  # a tag
        elif kind == _ENVIRONMENT:
            at, n_open = at + 4, n_open + 4
        elif kind in _CODE:
            return count + (len(data) - at) // _CODE_LENGTH
    return count


def _flatten(value: RValue, name: str, levels: int) -> Iterator[tuple[str, RValue]]:
    """Return arrays by name, out of the lists that hold them; a list of matrices is one array."""
    if _is_list_of_matrices(value):
        yield name, [(str(key), entry) for key, entry in _iterate_entries(value, name)]
    elif isinstance(value, (Mapping, list, tuple)) and levels:
        for key, entry in _iterate_entries(value, name):
            yield from _flatten(entry, key, levels - 1)
    elif hasattr(value, "columns") and levels:  # a data frame
        for key, column in value.items():
            yield str(key), column
    elif hasattr(value, "ndim") and hasattr(value, "dtype"):
        yield name, value


def _iterate_entries(value: RValue, name: str) -> Iterator[tuple[str, RValue]]:
    if isinstance(value, Mapping):
        return ((str(key), entry) for key, entry in value.items())
    return ((f"{name}_{k}", entry) for k, entry in enumerate(value, start=1))


def _is_list_of_matrices(value: RValue) -> bool:
    entries = list(value.values()) if isinstance(value, Mapping) else value
    return (
        isinstance(entries, (list, tuple))
        and len(entries) > 1
        and all(_is_matrix(entry) for entry in entries)
        and len({entry.shape for entry in entries}) == 1
    )


def _is_matrix(value: RValue) -> bool:
    return _has_axes(value, 2) and value.shape[1] in (2, 3)


def _has_axes(value: RValue, count: int) -> bool:
    numeric = getattr(getattr(value, "dtype", None), "kind", "") in "fiu"
    return numeric and getattr(value, "ndim", 0) == count


def _find_shapes(path: Path, variables: Variables, requested: str | None) -> RValue:
    """Find the variable asked for, else the best: three axes, a list of matrices, a matrix."""
    kinds: tuple[Callable[[RValue], bool], ...] = (
        lambda value: _has_axes(value, 3) and bool({2, 3} & set(value.shape)),
        lambda value: isinstance(value, list),
        _is_matrix,
    )
    groups = [[name for name, value in variables.items() if fits(value)] for fits in kinds]
    if (
        requested is not None
        and requested in variables
        and not any(requested in able for able in groups)
    ):
        raise make_format_error(path, "landmarks", f"something else in {requested!r}")
    able = next((able for able in groups if able), [])
    return variables[choose_variable(path, variables, able, _USUAL_NAMES, requested)]


def _to_array(value: RValue) -> RawArray:
    """Convert an array with or without names; R's NA of integers is masked."""
    array = getattr(value, "values", value)
    if isinstance(array, np.ma.MaskedArray):
        return np.ma.filled(array.astype(np.float64), np.nan)
    return np.asarray(array)


def _get_dimension_names(value: RValue, axis: int) -> tuple[str, ...] | None:
    """Return the names along an axis, if it has any."""
    axes: Sequence[RValue] = getattr(value, "dims", ())
    if axis >= len(axes) or axes[axis] not in getattr(value, "coords", {}):
        return None
    return tuple(str(name) for name in value.coords[axes[axis]].values)


FORMATS = (
    Format(
        name="r",
        suffixes=(".rds", ".rda", ".rdata"),
        looks_like=lambda head: decompress_head(head).startswith(_STARTS),
        read=read_r,
        write=None,
    ),
)
