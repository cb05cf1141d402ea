"""PLY, the polygon file format: elements with properties, in text or in either byte order.

Only ``vertex`` and ``face`` mean something here; other elements are stepped over. Normals are
dropped, because they are wrong as soon as the vertices move; every other number that a vertex
carries is kept as a scalar field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from defgpa.arrays import Array, RawArray
from defgpa.io.atomic import replace_file
from defgpa.io.files import make_format_error
from defgpa.io.mesh.mesh import Cursor, Mesh, Polygons, as_colours, as_indices, build_mesh
from defgpa.io.text.lines import parse_count as whole_number
from defgpa.io.text.lines import parse_lines_in_bulk, parse_numbers

_KINDS = {
    **{"char": "i1", "short": "i2", "int": "i4", "float": "f4", "double": "f8"},
    **{"uchar": "u1", "ushort": "u2", "uint": "u4", "float32": "f4", "float64": "f8"},
    **{"int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8"},
    **{"uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8"},
}
_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_COLOURS = ("red", "green", "blue", "alpha")
_NOT_SCALARS = frozenset({"x", "y", "z", "nx", "ny", "nz", *_COLOURS})
_CORNERS = ("vertex_indices", "vertex_index")
_ROW_COST = 400  # bytes that a row with a list takes, where lists are not equally long


class Property(NamedTuple):
    """A number, or a list of numbers preceded by its length."""

    name: str
    kind: str
    length_kind: str | None = None


class Element(NamedTuple):
    """``n_rows`` rows of the same properties."""

    name: str
    n_rows: int
    properties: list[Property]


Columns = Mapping[str, RawArray | Polygons]  # Polygons for a list property


def read_ply(path: Path) -> Mesh:
    """Read the vertices and faces of a PLY file."""
    cursor = Cursor(path)
    order, elements = _parse_header(cursor)
    rows_by_element: dict[str, Columns] = {}
    for element in elements:
        rows = (
            _read_binary_rows(cursor, element, order) if order else _read_text_rows(cursor, element)
        )
        rows_by_element.setdefault(element.name, rows)
    vertex = {
        name: values
        for name, values in rows_by_element.get("vertex", {}).items()
        if not isinstance(values, Polygons)
    }
    if not {"x", "y", "z"} <= vertex.keys():
        raise make_format_error(
            path, "an element 'vertex' with properties x, y and z", list(vertex)
        )
    channels = [vertex[name] for name in _COLOURS if name in vertex]
    face = rows_by_element.get("face", {})
    lists = (face.get(name) for name in _CORNERS)
    polygons = [corners for corners in lists if isinstance(corners, Polygons)]
    return build_mesh(
        path,
        np.column_stack([vertex[axis] for axis in "xyz"]),
        [corners.split_into_fans() for corners in polygons[:1]],
        as_colours(np.column_stack(channels)) if len(channels) >= 3 else None,
        {name: values for name, values in vertex.items() if name not in _NOT_SCALARS},
    )


def write_ply(path: Path, mesh: Mesh) -> None:
    """Write binary numbers in double precision; scalar fields are properties of the vertices."""
    fields = [(axis, "<f8", mesh.vertices[:, k]) for k, axis in enumerate("xyz")]
    if mesh.colours is not None:
        fields += [(name, "|u1", c) for name, c in zip(_COLOURS, mesh.colours.T, strict=False)]
    used_names = {name for name, _, _ in fields}
    for name, values in mesh.scalars.items():
        used_names.add(new_name := _make_property_name(name, used_names))
        fields.append((new_name, "<f8", values))
    vertices = np.empty(len(mesh.vertices), dtype=[(name, kind) for name, kind, _ in fields])
    for name, _, values in fields:
        vertices[name] = values
    faces = np.empty(len(mesh.faces), dtype=[("length", "u1"), ("corners", "<i4", (3,))])
    faces["length"], faces["corners"] = 3, mesh.faces
    header = [
        "ply",
        "format binary_little_endian 1.0",
        "comment written by defgpa",
        f"element vertex {len(vertices)}",
        *(f"property {'uchar' if kind == '|u1' else 'double'} {name}" for name, kind, _ in fields),
        f"element face {len(faces)}",
        "property list uchar int vertex_indices",
        "end_header",
        "",
    ]
    with replace_file(path) as temporary:
        content = "\n".join(header).encode("ascii", "replace")
        temporary.write_bytes(content + vertices.tobytes() + faces.tobytes())


def _make_property_name(name: str, used_names: set[str]) -> str:
    """Make a property name of one ASCII word that is not used yet."""
    word = "".join(c if c.isascii() and c.isprintable() and c != " " else "_" for c in name) or "_"
    while word in used_names:
        word += "_"
    return word


# The header


def _parse_header(cursor: Cursor) -> tuple[str, list[Element]]:
    """Parse the byte order ("" for text) and the elements in the order of their data."""
    if (cursor.read_line() or "").lower() != "ply":
        raise make_format_error(cursor.path, "'ply'", cursor.data[:20], 1)
    order, elements = None, list[Element]()
    while (line := cursor.read_line()) != "end_header":
        match (line or "").split():
            case []:
                raise make_format_error(cursor.path, "'end_header'", "the end of the file")
            case ["format", encoding, *_] if encoding in _ORDERS:
                order = _ORDERS[encoding]
            case ["comment" | "obj_info", *_]:
                pass
            case ["element", name, count]:
                length = whole_number(cursor.path, cursor.line_number - 1, count, "a count")
                elements.append(Element(name, length, []))
            case ["property", *words] if elements:
                elements[-1].properties.append(_parse_property(cursor, words))
            case _:
                raise make_format_error(
                    cursor.path, "a line of a PLY header", line, cursor.line_number - 1
                )
    if order is None:
        raise make_format_error(
            cursor.path, f"a line 'format' with one of {', '.join(_ORDERS)}", "none"
        )
    return order, elements


def _parse_property(cursor: Cursor, words: Sequence[str]) -> Property:
    match words:
        case [kind, name] if kind in _KINDS:
            return Property(name, _KINDS[kind])
        case ["list", length, kind, name] if kind in _KINDS and length in _KINDS:
            return Property(name, _KINDS[kind], _KINDS[length])
    raise make_format_error(
        cursor.path, "a property with a type and a name", " ".join(words), cursor.line_number - 1
    )


# The rows


def _read_text_rows(cursor: Cursor, element: Element) -> Columns:
    """Read rows of text, one per line."""
    if (in_bulk := _read_text_rows_in_bulk(cursor, element)) is not None:
        return in_bulk
    properties = _select_reliable_properties(element)
    columns: list[list[Sequence[float]]] = [[] for _ in properties]
    for line, text in cursor.read_lines(
        element.n_rows if properties else 0, f"rows of {element.name!r}"
    ):
        row = parse_numbers(cursor.path, line, text.split())
        at = 0
        for p, column in zip(properties, columns, strict=True):
            length = 1
            if p.length_kind:
                length = _parse_length(cursor.path, row[at : at + 1], line)
                at += 1
            column.append(row[at : at + length])
            at += length
        if at > len(row) or (at < len(row) and properties == element.properties):
            raise make_format_error(cursor.path, f"{at} numbers", text, line)
    return {p.name: _build_column(p, column) for p, column in zip(properties, columns, strict=True)}


def _read_text_rows_in_bulk(cursor: Cursor, element: Element) -> Columns | None:
    """Read rows of text whose lists are as long as in the first row; None where they are not."""
    if not element.properties or _select_reliable_properties(element) != element.properties:
        return None
    read = parse_lines_in_bulk(cursor.data, cursor.at, element.n_rows)
    if read is None:
        return None
    table, end = read
    columns: dict[str, RawArray | Polygons] = {}
    at = 0
    for p in element.properties:
        length = 1
        if p.length_kind:
            if at >= table.shape[1] or (table[:, at] != table[0, at]).any():
                return None
            if table[0, at] not in range(table.shape[1]):
                return None
            length = int(table[0, at])
            at += 1
        rows = table[:, at : at + length]
        at += length
        if at > table.shape[1]:
            return None
        columns[p.name] = _build_column(p, rows) if p.length_kind else _cast_text(p, rows[:, 0])
    if at != table.shape[1]:
        return None
    cursor.at = end
    return columns


def _select_reliable_properties(element: Element) -> list[Property]:
    """Select all properties, or those up to the corners where other lists follow.

    MeshLab announces two kinds of colour of a face, and writes one of them.
    """
    names = [p.name for p in element.properties]
    after = next((k for k, name in enumerate(names, start=1) if name in _CORNERS), 0)
    lists_follow = after and any(p.length_kind for p in element.properties[after:])
    return element.properties[:after] if lists_follow else element.properties


def _read_binary_rows(cursor: Cursor, element: Element, order: str) -> Columns:
    """Read all rows at once, if every list is as long as in the first row, else one by one."""
    if not element.properties:
        return {}
    n, description, start = element.n_rows, f"rows of {element.name!r}", cursor.at
    lists = [k for k, p in enumerate(element.properties) if p.length_kind]
    if lists and n > cursor.n_left:
        raise make_format_error(cursor.path, f"{n} {description}", f"{cursor.n_left} bytes")
    lengths = [1] * len(element.properties)
    if lists and n:
        lengths = [len(values) for values in _read_binary_row(cursor, element, order)]
        cursor.at = start
    fields: list[tuple[str, str] | tuple[str, str, tuple[int]]] = []
    for k, (p, length) in enumerate(zip(element.properties, lengths, strict=True)):
        if p.length_kind:
            fields.append((f"n{k}", order + p.length_kind))
        fields.append((f"f{k}", order + p.kind, (length,)))
    dtype = np.dtype(fields)
    if not lists or n * dtype.itemsize <= cursor.n_left:
        table = cursor.read_records(n, dtype, description)
        if all((table[f"n{k}"] == lengths[k]).all() for k in lists):
            return {
                p.name: _build_column(p, table[f"f{k}"]) for k, p in enumerate(element.properties)
            }
        cursor.at = start
    cursor.budget.spend(_ROW_COST * n, "the number of its unequal rows")
    rows = [list(_read_binary_row(cursor, element, order)) for _ in range(n)]
    return {
        p.name: _build_column(p, [row[k] for row in rows]) for k, p in enumerate(element.properties)
    }


def _read_binary_row(cursor: Cursor, element: Element, order: str) -> Iterator[RawArray]:
    for p in element.properties:
        length = 1
        if p.length_kind:
            lengths = cursor.read_records(1, np.dtype(order + p.length_kind), "lengths of a list")
            length = _parse_length(cursor.path, lengths)
        yield cursor.read_records(length, np.dtype(order + p.kind), f"numbers in {p.name!r}")


def _parse_length(path: Path, numbers: Sequence[float] | RawArray, line: int | None = None) -> int:
    if len(numbers) == 0 or not 0 <= numbers[0] < 2**31 or numbers[0] != int(numbers[0]):
        description = f"{numbers[0]}" if len(numbers) else "the end of the line"
        raise make_format_error(path, "the length of a list", description, line)
    return int(numbers[0])


def _build_column(
    p: Property, rows: RawArray | Sequence[Sequence[float] | RawArray]
) -> RawArray | Polygons:
    """Build the numbers of a property, or the polygons; text keeps more digits than its type."""
    if isinstance(rows, np.ndarray):
        if not p.length_kind:
            return rows[:, 0]
        lengths = np.full(len(rows), rows.shape[1], dtype=np.intp)
        return Polygons(lengths, as_indices(rows.ravel()))
    if p.length_kind:
        return Polygons.of(rows)
    return _cast_text(p, np.array(rows).reshape(len(rows)))


def _cast_text(p: Property, values: Array) -> RawArray:
    with np.errstate(invalid="ignore"):  # 300 or nan as a colour: damage, not an exception
        return values if p.kind.startswith("f") else values.astype(p.kind)


def looks_like_ply(head: bytes) -> bool:
    """Return whether a file starts as a PLY file does."""
    return head[:4].lower() in (b"ply\n", b"ply\r") or head[:4] == b"ply "
