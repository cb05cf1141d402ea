"""Every format the package reads, in one tuple; the surer ones to recognise come first."""

from __future__ import annotations

from pathlib import Path

from defgpa.errors import FormatError, format_names
from defgpa.io.arrays import c3d, matlab, numpy, r, tracking
from defgpa.io.format import Format
from defgpa.io.mesh import files as meshes
from defgpa.io.packed import make_packed_formats
from defgpa.io.text import (
    amira,
    coco,
    csv,
    morphologika,
    nts,
    picked_points,
    pts,
    scalismo,
    slicer,
    stereomorph,
    tps,
    trc,
)

_UNPACKED: tuple[Format, ...] = (
    *tps.FORMATS,
    *nts.FORMATS,
    *morphologika.FORMATS,
    *pts.FORMATS,
    *slicer.FORMATS,
    *amira.FORMATS,
    *coco.FORMATS,
    *scalismo.FORMATS,
    *trc.FORMATS,
    *stereomorph.FORMATS,
    *picked_points.FORMATS,
    *numpy.FORMATS,
    *matlab.FORMATS,
    *tracking.FORMATS,
    *c3d.FORMATS,
    *r.FORMATS,
    *csv.FORMATS,
    *meshes.FORMATS,
)
FORMATS: tuple[Format, ...] = (*_UNPACKED, *make_packed_formats(_UNPACKED))


def find_format(name: str) -> Format:
    """Find the format of a name, or raise a FormatError that lists the names."""
    for format_ in FORMATS:
        if format_.name == name.lower():
            return format_
    names = format_names([format_.name for format_ in FORMATS], 99)
    raise FormatError(f"There is no format {name!r}. There are: {names}.")


def find_formats_by_suffix(path: Path) -> list[Format]:
    """Find the formats of a file's suffix, those of ``.mrk.json`` before those of ``.json``."""
    name = path.name.lower()
    fitting = [
        (len(suffix), format_)
        for format_ in FORMATS
        for suffix in format_.suffixes
        if name.endswith(suffix)
    ]
    return [format_ for _, format_ in sorted(fitting, key=lambda pair: -pair[0])]


def list_suffixes() -> str:
    """List all suffixes once, for a sentence."""
    suffixes = dict.fromkeys(suffix for f in _UNPACKED for suffix in f.suffixes)
    return f"{', '.join(suffixes)}, all of them also packed (.gz, .zip)"
