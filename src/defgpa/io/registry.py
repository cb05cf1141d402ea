"""Every format the package reads, in one tuple; the surer ones to recognise come first."""

from __future__ import annotations

from pathlib import Path

from defgpa.errors import FormatError, listed
from defgpa.io.arrays import matlab as _matlab
from defgpa.io.arrays import numpy as _numpy
from defgpa.io.arrays import r as _r
from defgpa.io.format import Format
from defgpa.io.mesh import files as _mesh
from defgpa.io.packed import packed_formats
from defgpa.io.text import csv as _csv
from defgpa.io.text import morphologika as _morphologika
from defgpa.io.text import nts as _nts
from defgpa.io.text import picked_points as _picked_points
from defgpa.io.text import pts as _pts
from defgpa.io.text import slicer as _slicer
from defgpa.io.text import stereomorph as _stereomorph
from defgpa.io.text import tps as _tps

_PLAIN: tuple[Format, ...] = (
    *_tps.FORMATS,
    *_nts.FORMATS,
    *_morphologika.FORMATS,
    *_pts.FORMATS,
    *_slicer.FORMATS,
    *_stereomorph.FORMATS,
    *_picked_points.FORMATS,
    *_numpy.FORMATS,
    *_matlab.FORMATS,
    *_r.FORMATS,
    *_csv.FORMATS,
    *_mesh.FORMATS,
)
FORMATS: tuple[Format, ...] = (*_PLAIN, *packed_formats(_PLAIN))


def format_named(name: str) -> Format:
    """The format of this name, or a FormatError that lists the names there are."""
    for format_ in FORMATS:
        if format_.name == name.lower():
            return format_
    names = listed([format_.name for format_ in FORMATS], 99)
    raise FormatError(f"There is no format {name!r}. There are: {names}.")


def formats_with_suffix(path: Path) -> list[Format]:
    """The formats whose suffix a file has; with ``.mrk.json``, before those with ``.json``."""
    name = path.name.lower()
    fitting = [
        (len(suffix), format_)
        for format_ in FORMATS
        for suffix in format_.suffixes
        if name.endswith(suffix)
    ]
    return [format_ for _, format_ in sorted(fitting, key=lambda pair: -pair[0])]


def known_suffixes() -> str:
    """All suffixes once, for a sentence."""
    plain = dict.fromkeys(suffix for f in _PLAIN for suffix in f.suffixes)
    return f"{', '.join(plain)}, all of them also packed (.gz, .zip)"
