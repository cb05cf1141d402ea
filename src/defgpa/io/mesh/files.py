"""Meshes: vertices in correspondence are the landmarks, and their faces come along.

A mesh is read as it is: no vertex is moved, merged, dropped or renumbered (STL, which does not
number its vertices, is the exception: see ``text.py``). Polygons become triangles around
their first corner.

A file may also state the anatomical space of its mesh: 3D Slicer writes ``SPACE=LPS`` or
``SPACE=RAS`` into the header, and into VTP, which has a place for it, a field ``SPACE``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from defgpa.errors import FormatError, format_names
from defgpa.io.atomic import replace_file
from defgpa.io.files import mask_missing, read_bytes, read_head
from defgpa.io.format import Document, Format, ReadOptions, make_document, require_3d
from defgpa.io.mesh import ply, text, vtk, vtp
from defgpa.io.mesh.mesh import Mesh
from defgpa.shapes import Shapes

_TEXTURE = {  # texture coordinates, or an image that they belong to
    ".obj": re.compile(rb"^(vt|usemtl|mtllib)\s", re.MULTILINE),
    ".ply": re.compile(rb"property list \S+ \S+ texcoord|TextureFile"),
    ".vtk": re.compile(rb"^TEXTURE_COORDINATES", re.MULTILINE),
    ".vtp": re.compile(rb"TCoords="),
}
_HEADS = {  # what our own files begin with, and the same with a space
    **dict.fromkeys(
        (".ply", ".vtk", ".obj"), (b"written by defgpa", b"written by defgpa. SPACE=%s")
    ),
    ".stl": (b"solid defgpa", b"solid defgpa SPACE=%s"),
    ".off": (b"OFF\n", b"OFF\n# SPACE=%s\n"),
    ".vtp": (b"<PolyData>\n", b"<PolyData>\n%s\n"),
}
_FIELD = (
    '<FieldData><Array type="String" Name="SPACE" NumberOfTuples="1" format="ascii">'
    "{} 0</Array></FieldData>"
)


# whether it is the format of a file that begins with these bytes; its reader; its writer
Kind = tuple[Callable[[bytes], bool], Callable[[Path], Mesh], Callable[[Path, Mesh], None]]

_KINDS: dict[str, Kind] = {
    ".ply": (ply.looks_like_ply, ply.read_ply, ply.write_ply),
    ".vtk": (vtk.looks_like_vtk, vtk.read_vtk, vtk.write_vtk),
    ".vtp": (vtp.looks_like_vtp, vtp.read_vtp, vtp.write_vtp),
    ".off": (text.looks_like_off, text.read_off, text.write_off),
    ".obj": (text.looks_like_obj, text.read_obj, text.write_obj),
    ".stl": (text.looks_like_stl, text.read_stl, text.write_stl),
}


def _make_format(suffix: str) -> Format:
    """Make a format of shapes from one of meshes: the vertices are the landmarks."""
    looks_like, read, write = _KINDS[suffix]

    def read_document(path: Path, options: ReadOptions) -> Document:
        mesh = read(path)
        faces = mesh.faces if len(mesh.faces) else None
        return make_document(path, [mask_missing(mesh.vertices, options.missing)], faces=faces)

    def write_shape(path: Path, shapes: Shapes) -> None:
        require_3d(path, shapes, "a mesh has 3-D vertices")
        write(path, Mesh(shapes[0]) if shapes.faces is None else Mesh(shapes[0], shapes.faces))

    return Format(
        name=suffix[1:],
        suffixes=(suffix,),
        looks_like=looks_like,
        read=read_document,
        write=write_shape,
        one_shape_per_file=True,
        holds=("faces",),
    )


FORMATS = tuple(map(_make_format, _KINDS))


def read_mesh(path: str | os.PathLike[str]) -> Mesh:
    """Read one mesh, its vertices in the order of the file.

    Parameters
    ----------
    path : str or path
        A PLY, OBJ, STL, OFF, VTK (legacy) or VTP file, recognised by its content, or else by
        its suffix.

    Returns
    -------
    Mesh
        With the colours and scalar fields of the vertices, if the file has them.

    Raises
    ------
    FormatError
        If it is none of these, or damaged.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "triangle.obj"
    ...     _ = path.write_text("v 0 0 0\\nv 1 0 0\\nv 0 1 0\\nf 1 2 3\\n")
    ...     read_mesh(path)
    Mesh(3 vertices, 1 faces)
    """
    place = Path(path)
    head = read_head(place)
    for looks_like, read, _ in _KINDS.values():
        if looks_like(head):
            return read(place)
    _, read, _ = _find_kind(place, "read")
    return read(place)


def write_mesh(path: str | os.PathLike[str], mesh: Mesh) -> None:
    """Write one mesh in the format that its suffix names.

    PLY, VTK and VTP keep everything in double precision: colours, and scalar fields as
    properties or point data that MeshLab and ParaView show. OBJ and OFF keep the colours, STL
    neither; what is left out is said in a ``DefgpaWarning``.

    Parameters
    ----------
    path : str or path
        Where to; the file appears complete or not at all.
    mesh : Mesh
        What to write.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], scalars={"error": [1, 2, 3]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_mesh(Path(folder) / "triangle.ply", mesh)
    ...     read_mesh(Path(folder) / "triangle.ply")
    Mesh(3 vertices, 1 faces, 'error')
    """
    place = Path(path)
    _, _, write = _find_kind(place, "written")
    write(place, mesh)


def _find_kind(path: Path, done: str) -> Kind:
    if path.suffix.lower() not in _KINDS:
        suffixes = format_names(_KINDS)
        raise FormatError(
            f"{path} cannot be {done} as a mesh; its suffix must be one of {suffixes}."
        )
    return _KINDS[path.suffix.lower()]


# What a file says beside the mesh


def read_space(path: Path) -> str | None:
    """Read ``LPS`` or ``RAS`` from the header of a mesh that states it."""
    head = read_head(path)
    if vtp.looks_like_vtp(head):
        return vtp.read_vtp_space(path)
    match = re.search(rb"SPACE=(LPS|RAS)", head)
    return None if match is None else match[1].decode()


def write_space(path: Path, space: str) -> None:
    """Put it into the header of a mesh that ``write_mesh`` wrote."""
    plain, with_space = _HEADS[path.suffix.lower()]
    if path.suffix.lower() == ".vtp":
        space = _FIELD.format(" ".join(str(ord(letter)) for letter in space))
    content = path.read_bytes().replace(plain, with_space % space.encode(), 1)
    with replace_file(path) as temporary:
        temporary.write_bytes(content)


def has_texture(path: Path) -> bool:
    """Return whether a mesh has texture coordinates, which ``read_mesh`` steps over."""
    pattern = _TEXTURE.get(path.suffix.lower())
    return pattern is not None and pattern.search(read_bytes(path)) is not None
