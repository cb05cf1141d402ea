"""A mesh: numbered vertices, triangles over them, and what every vertex carries.

The readers of mesh formats are our own because a vertex number is a landmark here: the common
libraries renumber vertices at texture seams, merge them, drop those without a face, store them
in single precision, or do not return from a truncated header.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from defgpa.arrays import Array, Index, Mask, RawArray, freeze
from defgpa.errors import FormatError, ShapeError
from defgpa.io.arrays.axes import parse_triangles
from defgpa.io.files import make_format_error, read_bytes
from defgpa.io.limits import Budget
from defgpa.io.text.lines import parse_numbers

_NUMBER_LENGTH = 32  # bytes of a number as text, and of the blanks around it, mostly

Colours = NDArray[np.uint8]


def _make_no_faces() -> Index:
    return np.empty((0, 3), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Mesh:
    """Vertices in a fixed order, with triangles, colours and scalar fields.

    Parameters
    ----------
    vertices : array (m, 3)
        Coordinates; their order is that of the file and never changes.
    faces : array (k, 3) of int
        Triangles, as vertex numbers from 0. A mesh without faces is a cloud of points.
    colours : array (m, 3) or (m, 4) of uint8, optional
        Red, green, blue and perhaps opacity of every vertex.
    scalars : mapping of str to array (m,)
        Named fields with one number per vertex.

    Examples
    --------
    >>> square = Mesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]])
    >>> square
    Mesh(4 vertices, 2 faces)
    """

    vertices: Array
    faces: Index = field(default_factory=_make_no_faces)
    colours: Colours | None = None
    scalars: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        vertices = np.array(self.vertices, dtype=np.float64)
        if vertices.ndim != 2 or vertices.shape[1] != 3:
            raise ShapeError(f"The vertices of a mesh must be (m, 3); got size {vertices.shape}.")
        m = len(vertices)
        scalars = {
            str(name): _check_vertex_values(f"The scalar field {name!r}", values, (m,), np.float64)
            for name, values in self.scalars.items()
        }
        object.__setattr__(self, "vertices", freeze(vertices))
        object.__setattr__(self, "faces", freeze(_check_faces(self.faces, m)))
        object.__setattr__(self, "scalars", MappingProxyType(scalars))
        if self.colours is not None:
            width = np.shape(self.colours)[-1:]
            if width not in ((3,), (4,)):
                raise ShapeError(
                    "The colours of a mesh must be (m, 3) or (m, 4); "
                    f"got size {np.shape(self.colours)}."
                )
            colours = _check_vertex_values("The colours", self.colours, (m, *width), np.uint8)
            object.__setattr__(self, "colours", colours)

    def __repr__(self) -> str:
        parts = [f"{len(self.vertices)} vertices", f"{len(self.faces)} faces"]
        parts += ["colours"] * (self.colours is not None)
        parts += [f"{name!r}" for name in self.scalars]
        return f"Mesh({', '.join(parts)})"


def _check_vertex_values(
    what: str, values: ArrayLike, size: tuple[int, ...], kind: DTypeLike
) -> RawArray:
    array = np.array(values, dtype=kind)
    if array.shape != size:
        raise ShapeError(f"{what} must have size {size}; got {array.shape}.")
    return freeze(array)


def _check_faces(faces: ArrayLike, m: int) -> Index:
    array = np.array(faces)
    if array.size == 0:
        return _make_no_faces()
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iu":
        raise ShapeError(
            f"The faces of a mesh must be (k, 3) vertex numbers; got size {array.shape}."
        )
    if array.min() < 0 or array.max() >= m:
        raise ShapeError(
            f"The faces of a mesh must number its {m} vertices from 0; "
            f"got {array.min()} to {array.max()}."
        )
    return array.astype(np.intp)


# Polygons


@dataclass(frozen=True, eq=False)
class Polygons:
    """Rows of vertex numbers of any length, end to end."""

    lengths: Index
    corners: Index

    @classmethod
    def of(cls, rows: Sequence[Sequence[float] | RawArray]) -> Polygons:
        """Build polygons from a sequence of corners each."""
        lengths = np.array([len(row) for row in rows], dtype=np.intp)
        return cls(lengths, as_indices(np.array(list(chain.from_iterable(rows)))))

    @classmethod
    def of_table(cls, rows: Array) -> Polygons:
        """Build polygons of equally many corners each from an array (rows, corners)."""
        return cls(np.full(len(rows), rows.shape[1], dtype=np.intp), as_indices(rows.ravel()))

    def select(self, wanted: Mask) -> Polygons:
        """Select some of the rows."""
        return Polygons(self.lengths[wanted], self.corners[np.repeat(wanted, self.lengths)])

    def split_into_fans(self) -> Index:
        """Split polygons into triangles (k, 3) around their first corner; drop lines and points."""
        start, step = self._find_triangles()
        return self._take_corners(start, start + step + 1, start + step + 2)

    def split_into_strips(self) -> Index:
        """Split rows into strips of triangles (k, 3), every second one reversed."""
        start, step = self._find_triangles()
        at, is_odd = start + step, step % 2
        return self._take_corners(at + is_odd, at + 1 - is_odd, at + 2)

    def _find_triangles(self) -> tuple[Index, Index]:
        """Return the start of the row of every triangle, and its number within the row."""
        per_row = np.maximum(self.lengths - 2, 0)
        start = np.repeat(np.cumsum(self.lengths) - self.lengths, per_row)
        first = np.repeat(np.cumsum(per_row) - per_row, per_row)
        return start, np.arange(len(start)) - first

    def _take_corners(self, *places: Index) -> Index:
        return np.stack([self.corners[place] for place in places], axis=1)


def as_indices(values: RawArray) -> Index:
    """Convert numbers to vertex indices, −1 for what is none."""
    if values.dtype.kind == "f":
        is_whole = (values == np.floor(values)) & (np.abs(values) < 2**53)
        values = np.where(is_whole, values, -1)
    elif values.dtype.kind == "u":
        values = np.minimum(values.astype(np.uint64), np.uint64(2**31))
    return values.astype(np.intp)


def build_mesh(
    path: Path,
    vertices: RawArray,
    faces: Sequence[Index],
    colours: Colours | None = None,
    scalars: Mapping[str, Array] = MappingProxyType({}),
) -> Mesh:
    """Build a mesh, with its faces (one array or several) checked against its vertices."""
    m = len(vertices)
    if m == 0:
        raise make_format_error(path, "a mesh with vertices", "none")
    for name, values in scalars.items():
        if len(values) != m:
            raise make_format_error(path, f"{m} values of {name!r}, one a vertex", f"{len(values)}")
    if colours is not None and len(colours) != m:
        raise make_format_error(path, f"{m} colours, one a vertex", f"{len(colours)}")
    all_faces = np.concatenate([_make_no_faces(), *faces])
    return Mesh(vertices, parse_triangles(path, all_faces, m), colours, scalars)


def as_colours(values: RawArray) -> Colours:
    """Convert the colours of a file (bytes, 16-bit numbers, fractions of one) to 8 bits."""
    if values.dtype.kind == "f":
        return np.round(255 * np.clip(np.nan_to_num(values), 0, 1)).astype(np.uint8)
    if values.dtype.itemsize == 2:
        return (values >> 8).astype(np.uint8)
    return np.clip(values, 0, 255).astype(np.uint8)


def compute_unit_normals(corners: Array) -> Array:
    """Compute the unit normals (k, 3) of triangles (k, 3, 3); zero for those without an area."""
    with np.errstate(all="ignore"):
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        return np.where((length > 0) & np.isfinite(length), normals / length, 0.0)


# Bytes


class Cursor:
    """A place in the bytes of a file; it moves forward as they are read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.data, self.at = Path(path), read_bytes(path), 0
        self.budget = Budget(self.path)
        self._counted = 0, 1  # a place, and the number of its line

    @property
    def line_number(self) -> int:
        """The line of the place, counted from 1: for complaints."""
        place, number = self._counted if self._counted[0] <= self.at else (0, 1)
        self._counted = self.at, number + self.data.count(b"\n", place, self.at)
        return self._counted[1]

    @property
    def n_left(self) -> int:
        """How many bytes follow."""
        return len(self.data) - self.at

    def read_line(self) -> str | None:
        """Read the next line that is not blank, without its end; None at the end of the file."""
        while self.n_left:
            if text := self.read_any_line():
                return text
        return None

    def read_any_line(self) -> str:
        """Read the next line, even a blank one."""
        end = self.data.find(b"\n", self.at)
        end = len(self.data) if end < 0 else end
        text = self.data[self.at : end].decode("latin-1").strip()
        self.at = min(end + 1, len(self.data))
        return text

    def read_lines(self, count: int, what: str) -> list[tuple[int, str]]:
        """Read the next ``count`` lines that are not blank, with their numbers."""
        number, lines = self.line_number, list[tuple[int, str]]()
        while len(lines) < count:
            if not self.n_left:
                raise make_format_error(self.path, f"{count} {what}", len(lines))
            if text := self.read_any_line():
                lines.append((number, text))
            number += 1
        return lines

    def peek(self) -> str:
        """Return the next line that is not blank without advancing; "" at the end of the file."""
        before = self.at
        text = self.read_line()
        self.at = before
        return text or ""

    def read_records(self, count: int, dtype: np.dtype[np.generic], what: str) -> RawArray:
        """Read the next ``count`` binary records, if the file holds as many."""
        n_bytes = count * dtype.itemsize
        if not 0 <= n_bytes <= self.n_left:
            raise make_format_error(
                self.path, f"{count} {what} ({n_bytes} bytes)", f"{self.n_left} bytes"
            )
        values = np.frombuffer(self.data, dtype=dtype, count=count, offset=self.at)
        self.at += n_bytes
        return values

    def read_numbers(self, count: int, what: str) -> Array:
        """Read the next ``count`` numbers written as text, wherever the lines end."""
        if not 0 <= count <= self.n_left:
            raise make_format_error(
                self.path, f"{count} {what}", f"{self.n_left} bytes", self.line_number
            )
        words, end, size = list[str](), 0, _NUMBER_LENGTH * (count + 1)
        while len(words) <= count and end < len(self.data):
            end = min(self.at + size, len(self.data))
            words = self.data[self.at : end].decode("latin-1").split(None, count)
            size *= 2
        if len(words) < count:
            raise make_format_error(self.path, f"{count} {what}", f"{len(words)}", self.line_number)
        try:
            values = parse_numbers(self.path, 0, words[:count])
        except FormatError:
            values = self._parse_numbers_by_line()
        self.at = end - sum(map(len, words[count:]))
        return np.array(values, dtype=np.float64)

    def _parse_numbers_by_line(self) -> list[float]:
        """Parse numbers line by line to name the line of the first word that is none."""
        lines = self.data[self.at :].decode("latin-1").split("\n")
        values: list[float] = []
        for line, text in enumerate(lines, start=self.line_number):
            values += parse_numbers(self.path, line, text.split())
        return values
