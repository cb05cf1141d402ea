"""What the file of a mesh says beside it: its anatomical space, and texture that is not read.

3D Slicer writes ``SPACE=LPS`` or ``SPACE=RAS`` into the header of a mesh, and into VTP, which has
a place for it, a field ``SPACE``.
"""

from __future__ import annotations

import re
from pathlib import Path

from defgpa.io.atomic import replacing
from defgpa.io.files import file_bytes, file_head
from defgpa.io.mesh.vtp import looks_like_vtp, vtp_space

_SPACE = re.compile(rb"SPACE=(LPS|RAS)")
_TEXTURE = {  # texture coordinates, or an image that they belong to
    ".obj": re.compile(rb"^(vt|usemtl|mtllib)\s", re.MULTILINE),
    ".ply": re.compile(rb"property list \S+ \S+ texcoord|TextureFile"),
    ".vtk": re.compile(rb"^TEXTURE_COORDINATES", re.MULTILINE),
    ".vtp": re.compile(rb"TCoords="),
}
_HEADS = {  # what our own files begin with, and the same with a space
    ".ply": (b"written by defgpa", b"written by defgpa. SPACE=%s"),
    ".vtk": (b"written by defgpa", b"written by defgpa. SPACE=%s"),
    ".obj": (b"written by defgpa", b"written by defgpa. SPACE=%s"),
    ".stl": (b"solid defgpa", b"solid defgpa SPACE=%s"),
    ".off": (b"OFF\n", b"OFF\n# SPACE=%s\n"),
    ".vtp": (b"<PolyData>\n", b"<PolyData>\n%s\n"),
}
_FIELD = (
    '<FieldData><Array type="String" Name="SPACE" NumberOfTuples="1" format="ascii">'
    "{} 0</Array></FieldData>"
)


def stated_space(path: Path) -> str | None:
    """``LPS`` or ``RAS``, where the header of a mesh says so."""
    head = file_head(path)
    if looks_like_vtp(head):
        return vtp_space(path)
    found = _SPACE.search(head)
    return None if found is None else found[1].decode()


def state_space(path: Path, space: str) -> None:
    """Put it into the header of a mesh that ``write_mesh`` wrote."""
    plain, stated = _HEADS[path.suffix.lower()]
    if path.suffix.lower() == ".vtp":
        space = _FIELD.format(" ".join(str(ord(letter)) for letter in space))
    content = path.read_bytes().replace(plain, stated % space.encode(), 1)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def has_texture(path: Path) -> bool:
    """Whether a mesh has texture coordinates, which ``read_mesh`` steps over."""
    pattern = _TEXTURE.get(path.suffix.lower())
    return pattern is not None and pattern.search(file_bytes(path)) is not None
