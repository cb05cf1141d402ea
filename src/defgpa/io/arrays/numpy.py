"""NumPy archives: ``points`` (n, m, d) with NaN where missing, and their names.

``.npz`` holds ``points`` and, if it likes, ``names``, ``landmarks`` (or ``landmark_names``),
``faces``, ``links`` (pairs of landmarks, from 0) and what else is known of every shape: any other
list of n words or numbers is a column of that name (``species``, ``site``). ``.npy`` is the bare
array. Nothing is ever unpickled.
"""

from __future__ import annotations

import io
import math
import sys
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from defgpa.arrays import Array, RawArray
from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError
from defgpa.io.arrays.axes import (
    arrange_stack,
    choose_variable,
    parse_links,
    parse_triangles,
    to_real_numbers,
)
from defgpa.io.atomic import replace_file
from defgpa.io.files import list_names, mask_missing, translate_errors
from defgpa.io.format import Document, Format, ReadOptions, make_document
from defgpa.io.limits import Budget, open_zip
from defgpa.io.text.variables import get_variable_columns
from defgpa.shapes import PER_SHAPE_METADATA, Shapes

Arrays = Mapping[str, RawArray]
_LIST_METADATA = PER_SHAPE_METADATA - {"variables"}
_MEMBER_NAMES = _LIST_METADATA | {
    "points",
    "names",
    "landmarks",
    "landmark_names",
    "faces",
    "space",
    "links",
}
_MEMBER_NAMES |= {"weights"}
_MAX_HEADER = 2**16  # bytes: as much as version 1 of the format can have


def read_npz(path: Path, options: ReadOptions) -> Document:
    """Read the shapes of an ``.npz`` archive."""
    arrays = _read_members(path, options.variable)
    stack = arrange_stack(path, arrays["points"], options.layout, preferred="nmd")
    stack = mask_missing(stack, options.missing)
    n, m = stack.shape[:2]
    names = _parse_texts(path, arrays, "names", n) or ()
    labels = _parse_texts(path, arrays, "landmarks", m) or _parse_texts(
        path, arrays, "landmark_names", m
    )
    columns = _collect_metadata(path, arrays, n)
    shape_metadata = [{key: values[i] for key, values in columns.items()} for i in range(n)]
    faces = parse_triangles(path, arrays["faces"], m) if "faces" in arrays else None
    space = str(arrays.get("space", ""))
    metadata: dict[str, object] = {"space": space} if space in ("LPS", "RAS") else {}
    links = arrays.get("links", np.empty(0))
    if links.size and links.dtype.kind in "iu":
        metadata |= parse_links(links, 0, m)
    weights = _find_weights(path, arrays, (n, m), options)
    return make_document(path, stack, names, labels, shape_metadata, weights, faces, metadata)


def _find_weights(
    path: Path, arrays: Arrays, size: tuple[int, int], options: ReadOptions
) -> list[Array] | None:
    """Find the landmark weights (n, m) of an archive, if they are asked for."""
    if options.weights is None or "weights" not in arrays:
        return None
    stored = arrays["weights"]
    if stored.dtype.kind not in "fiub" or stored.shape != size:
        remedy = f"To read the points alone: {name_option('weights', 'none')}."
        expected = f"'weights' with one number per shape and landmark, {size}"
        actual = f"numbers of size {stored.shape}"
        if stored.dtype.kind not in "fiub":
            actual = repr(str(stored.flat[0]))[:40] if stored.size else "nothing"
        raise FormatError(f"{path}: expected {expected}; found {actual}. {remedy}")
    return list(to_real_numbers(path, stored))


def read_npy(path: Path, options: ReadOptions) -> Document:
    """Read the shapes of a bare array."""
    with translate_errors(path, "NumPy array"):
        array = _read_array(
            path, "the array", lambda: path.open("rb"), path.stat().st_size, Budget(path)
        )
    stack = mask_missing(
        arrange_stack(path, array, options.layout, preferred="nmd"), options.missing
    )
    return make_document(path, stack)


def write_npz(path: Path, shapes: Shapes) -> None:
    """Write a set: points, names, landmarks, faces, and metadata that are text or numbers."""
    arrays: dict[str, Any] = {
        "points": shapes.points,
        "names": np.array(shapes.names),
        "landmarks": np.array(shapes.landmarks),
    }
    if shapes.has_weights:
        arrays["weights"] = shapes.weights
    if shapes.faces is not None:
        arrays["faces"] = shapes.faces
    if "space" in shapes.metadata:
        arrays["space"] = np.array(str(shapes.metadata["space"]))
    if shapes.links:
        arrays["links"] = np.array(shapes.links, dtype=np.int64)
    columns = {
        key: value
        for key, value in get_variable_columns(shapes).items()
        if key not in _MEMBER_NAMES
    }
    columns |= {key: shapes.metadata[key] for key in _LIST_METADATA & shapes.metadata.keys()}
    for key, values in sorted(columns.items()):
        for kind in (str, (int, float, np.integer, np.floating)):
            if all(isinstance(value, kind) for value in values):
                arrays[key] = np.array(values)
    with replace_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)


def _read_members(path: Path, variable: str | None) -> dict[str, RawArray]:
    """Read the arrays of an archive that this format knows; others may be anything."""
    with translate_errors(path, "NumPy archive"), open_zip(path) as archive:
        members = list_archive(archive)
        if variable is not None:
            name = choose_variable(path, members, (), (), variable)
            members = {"points": members[name]} | {
                k: v for k, v in members.items() if k != "points"
            }
        if "points" not in members and "header" in members:
            raise FormatError(
                f"{path} is not a landmark file but a result; defgpa.load reads it, and the "
                "commands register, apply and report take it."
            )
        if "points" not in members:
            raise FormatError(
                f"{path} has no array 'points'; "
                f"it holds {list_names(sorted(members)) or 'nothing'}. "
                f"Name the one to read: {name_option('variable')}."
            )
        wanted = {key: member for key, member in members.items() if key in _MEMBER_NAMES}
        arrays = read_archive(path, archive, wanted, (budget := Budget(path)))
        columns = {
            key: member
            for key, member in members.items()
            if key not in _MEMBER_NAMES and _may_be_column(archive, member, arrays["points"].shape)
        }
        return arrays | read_archive(path, archive, columns, budget)


def _may_be_column(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, points: tuple[int, ...]
) -> bool:
    """Return whether a member is a plain list, as long as one of the axes of the points."""
    if not member.filename.endswith(".npy"):
        return False
    try:
        with archive.open(member) as file:
            size, _, dtype = _read_header(file)
    except ValueError:  # whatever it is, nobody asked for it
        return False
    return len(size) == 1 and size[0] in points and dtype.kind in "USbiuf"


def list_archive(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """List the members of an archive by the names of their arrays."""
    return {info.filename.removesuffix(".npy"): info for info in archive.infolist()}


def read_archive(
    path: Path, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], budget: Budget
) -> dict[str, RawArray]:
    """Read the arrays of these members, within a budget."""
    return {
        key: _read_array(path, repr(key), partial(archive.open, info), info.file_size, budget)
        for key, info in members.items()
    }


def _read_array(
    path: Path, what: str, opened: Callable[[], IO[bytes]], n_bytes: int, budget: Budget
) -> RawArray:
    """Read one array, checked before it is read: a header can promise more than memory holds."""
    with opened() as file:
        size, _, dtype = _read_header(file)
        end = file.tell() + math.prod(size) * dtype.itemsize
    if dtype.hasobject:
        raise FormatError(
            f"{path}: {what} holds Python objects, which are not read because they can run code. "
            "Save numbers and text instead (a list of unequal arrays becomes objects)."
        )
    if end > n_bytes:
        raise FormatError(f"{path}: {what} should have size {size}, but the file is too short.")
    budget.spend(math.prod(size) * max(dtype.itemsize, 8), what)  # numbers become doubles
    with opened() as file:
        array = np.asarray(npy.read_array(file, allow_pickle=False))
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        letters = np.ascontiguousarray(array).reshape(-1).view(array.dtype.str[0] + "u4")
        if letters.max() > sys.maxunicode:
            raise FormatError(f"{path}: {what} holds letters that no text has.")
    return array


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    version = npy.read_magic(file)
    if version == (1, 0):
        return npy.read_array_header_1_0(file)
    length = file.read(4)
    n_bytes = int.from_bytes(length, "little")
    if n_bytes > _MAX_HEADER:
        raise ValueError(f"expected the header of an array; found one of {n_bytes} bytes")
    return npy.read_array_header_2_0(io.BytesIO(length + file.read(n_bytes)))


def _parse_texts(path: Path, arrays: Arrays, key: str, count: int) -> tuple[str, ...] | None:
    """Parse the names under a key, one for each of ``count``."""
    if key not in arrays:
        return None
    values = arrays[key]
    if values.shape != (count,):
        raise FormatError(
            f"{path}: {key!r} must hold {count} names, as 'points' asks; found size {values.shape}."
        )
    if values.dtype.kind == "S":
        return tuple(value.decode("utf-8", errors="replace") for value in values.tolist())
    return tuple(str(value) for value in values.tolist())


def _collect_metadata(path: Path, arrays: Arrays, count: int) -> dict[str, list[object]]:
    """Collect images, groups, scales …: what the archive says of each shape."""
    metadata: dict[str, list[object]] = {}
    for key in sorted(_LIST_METADATA & arrays.keys()):
        if arrays[key].shape != (count,):
            raise FormatError(
                f"{path}: {key!r} must have one entry per shape, {count}; "
                f"found size {arrays[key].shape}."
            )
        metadata[key] = arrays[key].tolist()
    heads = [key for key in arrays if key not in _MEMBER_NAMES and arrays[key].shape == (count,)]
    columns = [_parse_texts(path, arrays, head, count) or () for head in heads]
    if columns:
        metadata["variables"] = [
            dict(zip(heads, row, strict=True)) for row in zip(*columns, strict=True)
        ]
    return metadata


FORMATS = (
    Format(
        name="npz",
        suffixes=(".npz",),
        looks_like=lambda head: head.startswith(b"PK\x03\x04") and b".npy" in head,
        read=read_npz,
        write=write_npz,
        holds=(
            "groups",
            "images",
            "comments",
            "variables",
            "space",
            "faces",
            "links",
            "weights",
        ),
    ),
    Format(
        name="npy",
        suffixes=(".npy",),
        looks_like=lambda head: head.startswith(b"\x93NUMPY"),
        read=read_npy,
        write=None,
    ),
)
