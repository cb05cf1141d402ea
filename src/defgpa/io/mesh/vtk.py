"""VTK's legacy files: a sentence per section, then its numbers as text or big-endian bytes.

Surfaces are POLYDATA (what ParaView and Slicer write) or the flat cells of an UNSTRUCTURED_GRID,
in the layout of version 5 or of all before. Of the point data, scalars and colours are kept;
vectors and normals are dropped, because they are wrong as soon as the vertices move.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from defgpa.arrays import Array, RawArray
from defgpa.errors import FormatError
from defgpa.io.atomic import replace_file
from defgpa.io.files import make_format_error
from defgpa.io.mesh.mesh import Colours, Cursor, Mesh, Polygons, as_colours, as_indices, build_mesh
from defgpa.io.text.lines import parse_count as whole_number
from defgpa.io.text.lines import warn

_KINDS = {
    **{"char": "i1", "short": "i2", "int": "i4", "long": "i8", "float": "f4", "double": "f8"},
    **{"unsigned_char": "u1", "unsigned_short": "u2", "unsigned_int": "u4", "unsigned_long": "u8"},
    **{"bit": "u1", "signed_char": "i1", "vtkidtype": "i4"},
    **{"vtktypeint64": "i8", "vtktypeuint64": "u8"},
}
_CELLS = ("VERTICES", "LINES", "POLYGONS", "TRIANGLE_STRIPS", "CELLS")
_COMPONENTS = {  # of one entry of a field whose line is KEYWORD name type
    "VECTORS": 3,
    "NORMALS": 3,
    "TENSORS": 9,
    "TENSORS6": 6,
    "GLOBAL_IDS": 1,
    "PEDIGREE_IDS": 1,
    "EDGE_FLAGS": 1,
}


def read_vtk(path: Path) -> Mesh:
    """Read the surface of a legacy VTK file."""
    cursor = Cursor(path)
    if not re.match(r"# vtk DataFile Version \d+\.\d+", cursor.read_line() or "", re.IGNORECASE):
        raise make_format_error(path, "'# vtk DataFile Version …'", cursor.data[:30], 1)
    cursor.read_any_line()  # the title, or none
    encoding = (cursor.read_line() or "").upper()
    if encoding not in ("ASCII", "BINARY"):
        raise make_format_error(path, "ASCII or BINARY", encoding or "the end of the file", 3)
    sections = _Sections(cursor, encoding == "BINARY")
    while line := cursor.read_line():
        try:
            sections.read(line.split())
        except FormatError as error:
            if not sections.about:
                raise
            warn(f"The point data of a mesh are incomplete, its surface is not. {error}")
            break
    if sections.points is None:
        raise make_format_error(path, "a section POINTS", "none")
    return build_mesh(path, sections.points, sections.faces(), sections.colours, sections.scalars)


def write_vtk(path: Path, mesh: Mesh) -> None:
    """Write binary POLYDATA in double precision; scalar fields and colours are point data."""
    m, k = len(mesh.vertices), len(mesh.faces)
    parts = [
        b"# vtk DataFile Version 3.0\nwritten by defgpa\nBINARY\nDATASET POLYDATA\n",
        _format_block(f"POINTS {m} double", mesh.vertices, ">f8"),
    ]
    if k:
        cells = np.column_stack([np.full(k, 3), mesh.faces])
        parts.append(_format_block(f"POLYGONS {k} {4 * k}", cells, ">i4"))
    if mesh.scalars or mesh.colours is not None:
        parts.append(f"POINT_DATA {m}\n".encode())
    table = "LOOKUP_TABLE default"
    for name, values in mesh.scalars.items():
        head = f"SCALARS {quote(name, safe='') or '_'} double 1\n{table}"
        parts.append(_format_block(head, values, ">f8"))
    if mesh.colours is not None:
        head = f"SCALARS colours unsigned_char {mesh.colours.shape[1]}\n{table}"
        parts.append(_format_block(head, mesh.colours, "u1"))
    with replace_file(path) as temporary:
        temporary.write_bytes(b"".join(parts))


def _format_block(head: str, values: RawArray, kind: str) -> bytes:
    return head.encode() + b"\n" + values.astype(kind).tobytes() + b"\n"


class _Sections:
    """Reader of the sections of a file, one after another, that keeps what a mesh needs."""

    def __init__(self, cursor: Cursor, binary: bool) -> None:
        self._cursor, self._binary = cursor, binary
        self.points: Array | None = None
        self.about = ""  # POINT_DATA or CELL_DATA, once they begin
        self.colours: Colours | None = None
        self.scalars: dict[str, Array] = {}
        self._cells: dict[str, Polygons] = {}
        self._types: Array | None = None
        self._entries = 0  # of what the data are about

    def read(self, words: Sequence[str]) -> None:
        """Read one section, given the words of its first line."""
        match [words[0].upper(), *words[1:]]:
            case ["DATASET", kind] if kind.upper() in ("POLYDATA", "UNSTRUCTURED_GRID"):
                pass
            case ["DATASET", *kind]:
                raise self._make_error("DATASET POLYDATA or UNSTRUCTURED_GRID", " ".join(kind))
            case ["METADATA", *_]:
                self._skip_to_blank_line()
            case ["POINTS", count, kind]:
                self.points = self._read_values(3 * self._parse_count(count), kind).reshape(-1, 3)
            case [keyword, count, size] if keyword in _CELLS:
                self._cells[keyword] = self._read_polygons(
                    self._parse_count(count), self._parse_count(size)
                )
            case ["CELL_TYPES", count]:
                self._types = self._read_values(self._parse_count(count), "int")
            case ["POINT_DATA" | "CELL_DATA" as about, count]:
                self.about, self._entries = about, self._parse_count(count)
            case ["FIELD", _, count]:
                for _ in range(self._parse_count(count)):
                    self._read_field_array()
            case _ if self.about:
                self._read_attribute(words)
            case _:
                raise self._make_error("a section of VTK polygons", " ".join(words))

    def faces(self) -> list[NDArray[np.intp]]:
        """Return the triangles of all cells that are flat."""
        no_polygons = Polygons.of([])
        triangles = [self._cells.get("POLYGONS", no_polygons).split_into_fans()]
        triangles.append(self._cells.get("TRIANGLE_STRIPS", no_polygons).split_into_strips())
        cells, types = self._cells.get("CELLS", no_polygons), self._types
        if types is not None and len(types) == len(cells.lengths):
            # triangle, polygon, quadrilateral; strip of triangles
            triangles.append(cells.select(np.isin(types, (5, 7, 9))).split_into_fans())
            triangles.append(cells.select(types == 6).split_into_strips())
        return triangles

    def _read_attribute(self, words: Sequence[str]) -> None:
        n = self._entries
        match [words[0].upper(), *words[1:]]:
            case ["SCALARS", name, kind, *components] if len(components) < 2:
                width = self._parse_count(components[0]) if components else 1
                if self._cursor.peek().upper().startswith("LOOKUP_TABLE"):
                    self._cursor.read_line()
                self._read_point_data(name, kind, (n, width))
            case ["COLOR_SCALARS", _, components]:
                kind, width = (
                    "unsigned_char" if self._binary else "float",
                    self._parse_count(components),
                )
                values = self._read_values(n * width, kind).reshape(n, width)
                self._keep_colours(values / 255 if self._binary else values)
            case ["LOOKUP_TABLE", _, size]:
                self._read_values(
                    4 * self._parse_count(size), "unsigned_char" if self._binary else "float"
                )
            case ["TEXTURE_COORDINATES", _, components, kind]:
                self._read_values(n * self._parse_count(components), kind)
            case [keyword, _, kind] if keyword in _COMPONENTS:
                self._read_values(n * _COMPONENTS[keyword], kind)
            case _:
                raise self._make_error("an attribute of the points", " ".join(words))

    def _read_point_data(self, name: str, kind: str, size: tuple[int, int]) -> None:
        """Read point data, and keep one number a point or bytes that are colours."""
        if kind.lower() == "string":
            self._skip_strings(size[0] * size[1])
            return
        values = self._read_values(size[0] * size[1], kind).reshape(size)
        if self._are_of_points(values) and size[1] == 1:
            self.scalars[unquote(name)] = values[:, 0]
        elif kind.lower() == "unsigned_char":
            self._keep_colours(values / 255)

    def _keep_colours(self, fractions: Array) -> None:
        """Keep the first colours of the points, red, green, blue and perhaps opacity up to 1."""
        are_colours = self.colours is None and fractions.shape[1] in (3, 4)
        if are_colours and self._are_of_points(fractions):
            self.colours = as_colours(fractions)

    def _are_of_points(self, values: Array) -> bool:
        m = -1 if self.points is None else len(self.points)
        return self.about == "POINT_DATA" and len(values) == m

    def _read_field_array(self) -> None:
        while self._cursor.peek().upper().startswith("METADATA"):
            self._skip_to_blank_line()
        match (self._cursor.read_line() or "").split():
            case [name, components, entries, kind]:
                self._read_point_data(
                    name, kind, (self._parse_count(entries), self._parse_count(components))
                )
            case words:
                raise self._make_error("an array of a field", " ".join(words))

    def _read_polygons(self, count: int, size: int) -> Polygons:
        """Read polygons: offsets and corners in version 5; before, each length and its corners."""
        if self._cursor.peek().upper().startswith("OFFSETS"):
            offsets = self._read_integers("OFFSETS", count)
            corners = self._read_integers("CONNECTIVITY", size)
            lengths = np.diff(offsets) if count else offsets
            if count and (offsets[0] != 0 or offsets[-1] != size or (lengths < 0).any()):
                raise self._make_error(
                    "OFFSETS that rise from 0 to the number of corners", "others"
                )
            return Polygons(lengths, corners)
        return self._split(count, as_indices(self._read_values(size, "int")))

    def _read_integers(self, keyword: str, count: int) -> NDArray[np.intp]:
        words = (self._cursor.read_line() or "").split()
        if len(words) != 2 or words[0].upper() != keyword:
            raise self._make_error(f"{keyword} and a type", " ".join(words))
        return as_indices(self._read_values(count, words[1]))

    def _split(self, count: int, flat: NDArray[np.intp]) -> Polygons:
        lengths, is_index, offset = [], np.ones(len(flat), dtype=bool), 0
        while offset < len(flat):
            length = int(flat[offset])
            if not 0 <= length < len(flat) - offset:
                raise self._make_error("cells that begin with their length", f"a cell of {length}")
            is_index[offset] = False
            lengths.append(length)
            offset += length + 1
        if len(lengths) != count:
            raise self._make_error(f"{count} cells", f"{len(lengths)}")
        return Polygons(np.array(lengths, dtype=np.intp), flat[is_index])

    def _read_values(self, count: int, kind: str) -> Array:
        code = _KINDS.get(kind.lower())
        if code is None:
            raise self._make_error("a type of numbers", kind)
        if not self._binary:
            return self._cursor.read_numbers(count, "numbers")
        if kind.lower() == "bit":  # eight to a byte
            packed = self._cursor.read_records((count + 7) // 8, np.dtype("u1"), "bytes")
            return np.unpackbits(packed)[:count].astype(np.float64)
        return self._cursor.read_records(count, np.dtype(f">{code}"), "numbers").astype(np.float64)

    def _skip_strings(self, count: int) -> None:
        """Skip strings: lines of text, or bytes behind a length of 1, 2, 4 or 8 bytes."""
        if count > self._cursor.n_left:
            raise self._make_error(f"{count} strings", f"{self._cursor.n_left} bytes")
        for _ in range(count):
            if not self._binary:
                self._cursor.read_any_line()
                continue
            width = 8 >> (self._read_byte_string(1)[0] >> 6)  # the first two bits say how many
            self._cursor.at -= 1
            length = int.from_bytes(self._read_byte_string(width), "big")
            self._read_byte_string(length & ((1 << (8 * width - 2)) - 1))

    def _read_byte_string(self, count: int) -> bytes:
        return self._cursor.read_records(count, np.dtype("u1"), "bytes of a string").tobytes()

    def _skip_to_blank_line(self) -> None:
        end = re.compile(rb"\n[ \t\r]*\n").search(self._cursor.data, self._cursor.at)
        self._cursor.at = end.end() if end else len(self._cursor.data)

    def _parse_count(self, word: str) -> int:
        return whole_number(self._cursor.path, self._cursor.line_number - 1, word, "a count")

    def _make_error(self, expected: str, found: str) -> FormatError:
        line = None if self._binary else self._cursor.line_number - 1
        return make_format_error(self._cursor.path, expected, found or "the end of the file", line)


def looks_like_vtk(head: bytes) -> bool:
    """Return whether a file starts as a legacy VTK file does."""
    return head.lower().startswith(b"# vtk datafile version")
