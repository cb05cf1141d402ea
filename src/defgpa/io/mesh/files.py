"""Meshes: vertices in correspondence are the landmarks, and their faces come along.

A mesh is read as it is: no vertex is moved, merged, dropped or renumbered (STL, which does not
number its vertices, is the exception: see ``_mesh_text``). Polygons become triangles around
their first corner.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from defgpa.errors import FormatError, listed
from defgpa.io.files import file_head, hidden
from defgpa.io.format import Document, Format, ReadOptions, Specimen, require_3d
from defgpa.io.mesh.mesh import Mesh
from defgpa.io.mesh.ply import looks_like_ply, read_ply, write_ply
from defgpa.io.mesh.text import (
    looks_like_obj,
    looks_like_off,
    looks_like_stl,
    read_obj,
    read_off,
    read_stl,
    write_obj,
    write_off,
    write_stl,
)
from defgpa.io.mesh.vtk import looks_like_vtk, read_vtk, write_vtk
from defgpa.io.mesh.vtp import looks_like_vtp, read_vtp, write_vtp
from defgpa.shapes import Shapes

__all__ = ["FORMATS", "Mesh", "read_mesh", "write_mesh"]


@dataclass(frozen=True)
class MeshFormat:
    """A file format for one mesh."""

    name: str
    looks_like: Callable[[bytes], bool]
    read: Callable[[Path], Mesh]
    write: Callable[[Path, Mesh], None]

    @property
    def suffix(self) -> str:
        """How its files are called."""
        return f".{self.name}"

    def read_document(self, path: Path, options: ReadOptions) -> Document:
        """The vertices of a mesh as one shape."""
        mesh = self.read(path)
        specimen = Specimen(path.stem, hidden(mesh.vertices, options.missing))
        return Document((specimen,), faces=mesh.faces if len(mesh.faces) else None)

    def write_shape(self, path: Path, shapes: Shapes) -> None:
        """One shape as a mesh, with the faces of its set."""
        require_3d(path, shapes, "a mesh has 3-D vertices")
        mesh = Mesh(shapes[0]) if shapes.faces is None else Mesh(shapes[0], shapes.faces)
        self.write(path, mesh)

    def as_format(self) -> Format:
        """The same, as a format for shapes."""
        return Format(
            name=self.name,
            suffixes=(self.suffix,),
            looks_like=self.looks_like,
            read=self.read_document,
            write=self.write_shape,
            one_shape_per_file=True,
            holds=frozenset({"faces"}),
        )


_MESH_FORMATS = (
    MeshFormat("ply", looks_like_ply, read_ply, write_ply),
    MeshFormat("vtk", looks_like_vtk, read_vtk, write_vtk),
    MeshFormat("vtp", looks_like_vtp, read_vtp, write_vtp),
    MeshFormat("off", looks_like_off, read_off, write_off),
    MeshFormat("obj", looks_like_obj, read_obj, write_obj),
    MeshFormat("stl", looks_like_stl, read_stl, write_stl),
)

FORMATS = tuple(mesh_format.as_format() for mesh_format in _MESH_FORMATS)


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
    head = file_head(place)
    for mesh_format in _MESH_FORMATS:
        if mesh_format.looks_like(head):
            return mesh_format.read(place)
    return _by_suffix(place, "read").read(place)


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
    _by_suffix(place, "written").write(place, mesh)


def _by_suffix(path: Path, done: str) -> MeshFormat:
    for mesh_format in _MESH_FORMATS:
        if path.suffix.lower() == mesh_format.suffix:
            return mesh_format
    known = listed([mesh_format.suffix for mesh_format in _MESH_FORMATS])
    raise FormatError(f"{path} cannot be {done} as a mesh; its suffix must be one of {known}.")
