"""OBJ, OFF and STL: meshes as lines of text (and STL also as bytes).

OBJ and OFF number their vertices. STL does not: it repeats the three corners of every triangle,
so equal corners are taken for one vertex, numbered where they first occur. Files of the same
triangulation in the same order then give the same numbers, unless two different vertices
coincide in one of them; a set of STL files whose counts differ is therefore refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from defgpa.arrays import Array, Index
from defgpa.errors import FormatError
from defgpa.io.atomic import write_text
from defgpa.io.files import make_format_error, read_bytes
from defgpa.io.mesh.mesh import (
    Colours,
    Mesh,
    Polygons,
    as_colours,
    build_mesh,
    compute_unit_normals,
)
from defgpa.io.text.lines import parse_count as whole_number
from defgpa.io.text.lines import (
    parse_lines_in_bulk,
    parse_numbers,
    parse_numbers_fast,
    parse_rows_in_bulk,
    read_text,
    warn,
)

_STL_TRIANGLES = np.dtype([("normal", "<f4", (3,)), ("corners", "<f4", (3, 3)), ("bytes", "<u2")])
_STL_HEADER = 84

_OBJ_LINE = re.compile(r"\s*[vf](\s|#|$)")
_OTHER_OBJ_LINES = ("vn", "vt", "# ")
_OBJ_NUMBERS = {"v ": re.compile(r"[^#]*"), "f ": re.compile(r"[0-9\s]*", re.ASCII)}
_OFF_HEAD = re.compile(
    r"(?:\s*#[^\n]*\n)*\s*(ST)?(C)?(N)?OFF(?:\s|#[^\n]*\n)+([0-9]+)[ \t]+([0-9]+)([ \t][^\n#]*)?\n",
    re.IGNORECASE | re.ASCII,
)
_AFTER_CORNER = re.compile(r"(?<=[0-9])/[0-9/]*", re.ASCII)

Line = tuple[int, list[str]]  # the number of a line, and its words
Rows = Sequence[Sequence[float]]


# OBJ


def read_obj(path: Path) -> Mesh:
    """Read the ``v`` and ``f`` lines of an OBJ file; skip texture, normals and groups."""
    vertices: list[list[float]] = []
    faces: list[list[int]] = []
    text = read_text(path).replace("\\\n", " ")
    if (in_bulk := _parse_obj_in_bulk(text)) is not None:
        table, faces_in_bulk = in_bulk
        return build_mesh(path, table[:, :3], faces_in_bulk, _parse_colours(table, 3, 3))
    for line, (word, *words) in _split_words(text, comment="#"):
        if word == "v":
            vertices.append(parse_numbers(path, line, words))
            if len(words) < 3:
                raise make_format_error(path, "x, y and z of a vertex", " ".join(words), line)
        elif word == "f":
            faces.append([_parse_corner(path, line, corner, len(vertices)) for corner in words])
    table = np.array([row[:3] for row in vertices]).reshape(-1, 3)
    colours = _parse_colours(vertices, 3, max_channels=3)
    return build_mesh(path, table, [Polygons.of(faces).split_into_fans()], colours)


def _parse_obj_in_bulk(text: str) -> tuple[Array, list[Index]] | None:
    """Parse vertices and faces run by run in C; None if a line of theirs is irregular.

    A ``v`` or ``f`` line that does not begin its line, ends in a comment, has other numbers than
    the lines around it, or counts vertices from the end is irregular.
    """
    vertices: list[Array] = []
    faces: list[Array] = []
    for start, lines in groupby(text.split("\n"), key=lambda line: line[:2]):
        if start in _OBJ_NUMBERS:
            run = [line[2:] for line in lines]
            numbers = "\n".join(run)
            if start == "f ":
                numbers = _AFTER_CORNER.sub("", numbers)
            rows = parse_rows_in_bulk(numbers) if _OBJ_NUMBERS[start].fullmatch(numbers) else None
            if rows is None or len(rows) != len(run):
                return None
            (vertices if start == "v " else faces).append(rows)
        elif start not in _OTHER_OBJ_LINES and any(_OBJ_LINE.match(line) for line in lines):
            return None
    if len({rows.shape[1] for rows in vertices}) != 1 or vertices[0].shape[1] < 3:
        return None
    if any(rows.min() < 1 or rows.max() >= 2**31 for rows in faces):
        return None
    polygons = [Polygons.of_table(rows - 1).split_into_fans() for rows in faces]
    return np.concatenate(vertices), polygons


def write_obj(path: Path, mesh: Mesh) -> None:
    """Write text with every digit; colours follow the coordinates, scalar fields are dropped."""
    _warn_of_loss(path, "OBJ", mesh, [*mesh.scalars])
    rows = mesh.vertices
    if mesh.colours is not None:
        rows = np.hstack([rows, mesh.colours[:, :3] / 255])
    lines = ["# written by defgpa"]
    lines += [f"v {_format_row(row)}" for row in rows.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in (mesh.faces + 1).tolist()]
    write_text(path, "\n".join(lines) + "\n")


def rewrite_obj(source: Path, target: Path, mesh: Mesh) -> None:
    """Rewrite an OBJ file with moved vertices: texture, materials and groups stay, normals go."""
    _warn_of_loss(target, "OBJ", mesh, [])
    vertices, lines = iter(mesh.vertices.tolist()), ["# written by defgpa"]
    for _, (word, *words) in _split_words(read_text(source).replace("\\\n", " "), comment="#"):
        if word == "v":
            words = [_format_row(next(vertices)), *words[3:]]
        elif word in ("f", "l"):
            words = ["/".join(corner.split("/")[:2]).rstrip("/") for corner in words]
        if word != "vn":
            lines.append(" ".join([word, *words]))
    write_text(target, "\n".join(lines) + "\n")


def _parse_corner(path: Path, line: int, corner: str, n_vertices: int) -> int:
    """Parse the vertex of ``7``, ``7/1``, ``7//3`` or ``7/1/3``; negative: from the end."""
    try:
        number = int(corner.partition("/")[0].replace("_", "x"))  # Python's 1_000 is no number
    except ValueError:
        raise make_format_error(path, "a vertex number", repr(corner), line) from None
    if number == 0 or not -n_vertices <= number < 2**31:
        raise make_format_error(path, "a vertex number from 1", repr(corner), line)
    return number - 1 if number > 0 else n_vertices + number


# OFF


def read_off(path: Path) -> Mesh:
    """Read the vertices and faces of an OFF file, with colours if it is a COFF file.

    Colours may follow on each line, so lines count; unless the file only makes sense without.
    """
    text = read_text(path)
    if (mesh := _parse_off_in_bulk(path, text)) is not None:
        return mesh
    lines = list(_split_words(text, comment="#")) or [(1, ["nothing but comments"])]
    number, first = lines[0]
    header = re.fullmatch(r"(ST)?(C)?(N)?OFF", first[0].upper())
    if header is None:
        raise make_format_error(path, "'OFF'", " ".join(first), number)
    try:
        return _build_off_mesh(path, *_parse_off_lines(path, lines), header)
    except FormatError:
        words = [word for _, line in lines for word in line][1:]
        parsed = _parse_off_words(parse_numbers_fast(words), header)
        if parsed is None:
            raise
        return _build_off_mesh(path, *parsed, header)


def _parse_off_in_bulk(path: Path, text: str) -> Mesh | None:
    """Parse rows of vertices and of faces of equally many corners in C; None of any others."""
    head = _OFF_HEAD.match(text)
    if head is None or "#" in text[head.end() :] or max(len(head[4]), len(head[5])) > 9:
        return None
    n_vertices, n_faces = map(int, head.group(4, 5))
    data = text[head.end() :].encode("ascii", "replace")
    if (read := parse_lines_in_bulk(data, 0, n_vertices)) is None or read[0].shape[1] < 3:
        return None
    rows, end = read
    faces: list[Index] = []
    if n_faces:
        if (read := parse_lines_in_bulk(data, end, n_faces)) is None:
            return None
        lengths, corners = read[0][:, 0], read[0][:, 1:]
        if (lengths != lengths[0]).any() or not 0 <= lengths[0] <= corners.shape[1]:
            return None
        faces.append(Polygons.of_table(corners[:, : int(lengths[0])]).split_into_fans())
    colours = _parse_colours(rows, 3 + 3 * bool(head[3]), max_channels=4) if head[2] else None
    try:
        return build_mesh(path, rows[:, :3], faces, colours)
    except FormatError:  # it may be no file of lines
        return None


def _build_off_mesh(path: Path, rows: Rows, faces: Rows, header: re.Match[str]) -> Mesh:
    """Build the mesh of rows of vertices, with colours and normals as the header says."""
    colours = _parse_colours(rows, 3 + 3 * bool(header[3]), max_channels=4) if header[2] else None
    vertices = np.array([row[:3] for row in rows]).reshape(-1, 3)
    return build_mesh(path, vertices, [Polygons.of(faces).split_into_fans()], colours)


def _parse_off_lines(path: Path, lines: Sequence[Line]) -> tuple[Rows, Rows]:
    """Parse the vertices and the faces, one a line."""
    (line, (_, *words)), *body = lines
    if not words and body:
        (line, words), *body = body
    if len(words) < 2:
        raise make_format_error(
            path, "the numbers of vertices and faces", " ".join(words) or "none", line
        )
    n_vertices, n_faces = (whole_number(path, line, word, "a count") for word in words[:2])
    if len(body) < n_vertices + n_faces:
        raise make_format_error(
            path, f"{n_vertices} vertices and {n_faces} faces", f"{len(body)} lines"
        )
    rows = [parse_numbers(path, line, words) for line, words in body[:n_vertices]]
    for (line, words), row in zip(body, rows, strict=False):
        if len(row) < 3:
            raise make_format_error(path, "x, y and z of a vertex", " ".join(words), line)
    return rows, [_parse_off_face(path, *line) for line in body[n_vertices : n_vertices + n_faces]]


def _parse_off_words(values: Sequence[float], header: re.Match[str]) -> tuple[Rows, Rows] | None:
    """Parse vertices and faces word by word, if the counts use up all numbers."""
    if len(values) < 3 or min(values[:2]) < 0:
        return None
    width = 3 + 3 * bool(header[3]) + 4 * bool(header[2])
    at, faces = 3 + values[0] * width, list[Sequence[float]]()
    while at < len(values) and at == int(at):
        start, length = int(at) + 1, values[int(at)]
        at = start + length
        if not 0 <= length <= len(values) - start or length != int(length):
            return None
        faces.append(values[start : int(at)])
    if at != len(values) or len(faces) != values[1]:
        return None
    return [values[k : k + width] for k in range(3, 3 + int(values[0]) * width, width)], faces


def write_off(path: Path, mesh: Mesh) -> None:
    """Write text with every digit; colours make it a COFF file, scalar fields are dropped."""
    _warn_of_loss(path, "OFF", mesh, [*mesh.scalars])
    rows = mesh.vertices.tolist()
    if mesh.colours is not None:
        opaque = np.full((len(mesh.vertices), 4), 255, dtype=np.uint8)
        opaque[:, : mesh.colours.shape[1]] = mesh.colours
        rows = [[*row, *colour] for row, colour in zip(rows, opaque.tolist(), strict=True)]
    lines = ["OFF" if mesh.colours is None else "COFF", f"{len(rows)} {len(mesh.faces)} 0"]
    lines += [_format_row(row) for row in rows]
    lines += [f"3 {a} {b} {c}" for a, b, c in mesh.faces.tolist()]
    write_text(path, "\n".join(lines) + "\n")


def _parse_off_face(path: Path, line: int, words: Sequence[str]) -> list[float]:
    length, *corners = parse_numbers(path, line, words)  # a colour may follow the corners
    if not 0 <= length <= len(corners):
        raise make_format_error(
            path, "the number of corners, and the corners", " ".join(words), line
        )
    return corners[: int(length)]


# STL


def read_stl(path: Path) -> Mesh:
    """Read the triangles of an STL file; merge equal corners into one vertex."""
    data = read_bytes(path)
    if _is_binary_stl(data):
        table = np.frombuffer(data, dtype=_STL_TRIANGLES, offset=_STL_HEADER)
        corners = np.asarray(table["corners"].reshape(-1, 3), dtype=np.float64)
    elif b"\0" in data:
        count = int.from_bytes(data[80:84], "little")
        expected = f"{_STL_HEADER + 50 * count} bytes, for the {count} triangles it announces"
        raise make_format_error(path, expected, f"{len(data)} bytes")
    else:
        corners = _parse_stl_text(path)
    if not np.isfinite(corners).all():
        raise make_format_error(path, "finite corners", "others")
    vertices, faces = merge_vertices(corners)
    return build_mesh(path, vertices, [faces])


def write_stl(path: Path, mesh: Mesh) -> None:
    """Write text with every digit (binary STL has single precision); colours are dropped."""
    _warn_of_loss(path, "STL", mesh, [*mesh.scalars, *["colours"] * (mesh.colours is not None)])
    if not len(mesh.faces):
        raise FormatError(
            f"{path} cannot be written: STL holds triangles, and there are none. Use PLY."
        )
    corners = mesh.vertices[mesh.faces]
    if not np.array_equal(merge_vertices(corners.reshape(-1, 3))[1], mesh.faces):
        warn(
            f"{path}: STL does not number vertices, and those of this mesh will be in another "
            "order when it is read again. Use PLY to keep them."
        )
    lines = ["solid defgpa"]
    for normal, (a, b, c) in zip(
        compute_unit_normals(corners).tolist(), corners.tolist(), strict=True
    ):
        lines += [f"facet normal {_format_row(normal)}", "outer loop"]
        lines += [f"vertex {_format_row(corner)}" for corner in (a, b, c)]
        lines += ["endloop", "endfacet"]
    lines.append("endsolid defgpa")
    write_text(path, "\n".join(lines) + "\n")


def merge_vertices(corners: Array) -> tuple[Array, Index]:
    """Return equal rows once, in order of first appearance, and their numbers by threes."""
    _, first, vertex_of_corner = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return corners[first[order]], rank[vertex_of_corner.ravel()].reshape(-1, 3)


def _is_binary_stl(data: bytes) -> bool:
    """Return whether the size is that of a binary file, whose first word may be ``solid``, too."""
    count = int.from_bytes(data[80:84], "little")
    return len(data) >= _STL_HEADER and len(data) == _STL_HEADER + count * 50


def _parse_stl_text(path: Path) -> Array:
    text = read_text(path)
    if not text.lstrip().lower().startswith("solid"):
        raise make_format_error(
            path, "'solid', or a binary STL file of the size it announces", text[:20], 1
        )
    corners: list[list[float]] = []
    for line, words in _split_words(text):
        if words[0].lower() == "vertex":
            if len(words) != 4:
                raise make_format_error(path, "x, y and z of a vertex", " ".join(words), line)
            corners.append(parse_numbers(path, line, words[1:]))
        elif words[0].lower() == "endloop" and len(corners) % 3:
            raise make_format_error(path, "triangles", f"{len(corners) % 3} more corners", line)
    if len(corners) % 3:
        raise make_format_error(path, "three corners a triangle", f"{len(corners)} corners")
    return np.array(corners).reshape(-1, 3)


# All of them


def _split_words(text: str, comment: str | None = None) -> Iterator[Line]:
    """Split every line that is not blank into words."""
    for number, line in enumerate(text.split("\n"), start=1):
        words = (line if comment is None else line.split(comment, 1)[0]).split()
        if words:
            yield number, words


def _parse_colours(rows: Rows | Array, skipped: int, max_channels: int) -> Colours | None:
    """Parse red, green, blue and perhaps opacity after other numbers, if every row has them."""
    if len(rows) == 0 or any(len(row) < skipped + 3 for row in rows):
        return None
    width = min(max_channels, min(map(len, rows)) - skipped)
    channels = np.nan_to_num(np.array([row[skipped : skipped + width] for row in rows]))
    # up to 1 or up to 255: files in the wild have both
    colours = as_colours(channels if channels.max() <= 1 else channels / 255)
    opaque = width == 4 and (colours[:, 3] == 255).all()  # COFF demands it; it says nothing
    return colours[:, :3] if opaque else colours


def _format_row(row: Sequence[object]) -> str:
    return " ".join(map(repr, row))


def _warn_of_loss(path: Path, kind: str, mesh: Mesh, losses: Sequence[str]) -> None:
    """Warn of the parts of a mesh that a format leaves out, and refuse vertices it cannot write."""
    if not np.isfinite(mesh.vertices).all():
        raise FormatError(
            f"{path} cannot be written: some vertices are missing, and {kind} has no way to say "
            "so. Use PLY, VTK or .npz."
        )
    if losses:
        warn(f"{path}: {kind} does not hold {', '.join(losses)}. Use PLY, VTK or VTP to keep them.")


def looks_like_obj(head: bytes) -> bool:
    """Return whether a file starts with what occurs in OBJ files only."""
    return bool(re.search(rb"^v[ \t]+[-+.\d]\S*[ \t]+[-+.\d]\S*[ \t]+[-+.\d]", head, re.MULTILINE))


def looks_like_off(head: bytes) -> bool:
    """Return whether a file starts as an OFF file does."""
    return bool(re.match(rb"\s*(ST)?C?N?OFF\s", head))


def looks_like_stl(head: bytes) -> bool:
    """Return whether a file starts as an STL file of text does, or is a short binary one."""
    is_text = head.lstrip().lower().startswith(b"solid") and b"facet" in head.lower()
    return is_text or (len(head) < 4096 and _is_binary_stl(head))
