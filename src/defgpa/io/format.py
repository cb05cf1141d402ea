"""File formats: each recognises its files, reads specimens, and writes shapes.

A reader knows one file and nothing about the others; matching landmarks by label, ordering
and naming across files happen once, in ``merge.py``. A writer gets the whole set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from defgpa.arrays import Array, Index
from defgpa.errors import FormatError
from defgpa.io.files import abbreviate
from defgpa.io.limits import Budget
from defgpa.shapes import Metadata, Shapes


class SeveralSetsError(FormatError):
    """Files that hold different sets of landmarks; for each set its name, shapes and landmarks."""

    def __init__(self, message: str, sets: Mapping[str, tuple[int, int]]) -> None:
        super().__init__(message)
        self.sets = dict(sets)


class NoLandmarksError(FormatError):
    """A file of a known format that holds no landmarks."""


@dataclass(frozen=True, eq=False)
class Specimen:
    """One configuration as a file states it."""

    name: str
    points: Array  # (m, d), NaN where missing
    labels: tuple[str, ...] | None = None  # landmark labels, if the file carries them
    metadata: Metadata = field(default_factory=dict)  # keys of PER_SHAPE_METADATA
    # names of the last points, where these are points of curves, not landmarks
    curves: tuple[str, ...] = ()
    weights: Array | None = None  # (m,) landmark weights, if the file carries them


@dataclass(frozen=True, eq=False, kw_only=True)
class SourcedSpecimen(Specimen):
    """A specimen with its file, and the triangles of the file if it is the first there."""

    path: Path
    faces: Index | None = None

    def __str__(self) -> str:
        return f"{abbreviate(repr(self.name))} ({self.path})"


@dataclass(frozen=True, eq=False)
class Document:
    """The content of one file: its specimens, and metadata of all of them."""

    specimens: tuple[Specimen, ...]
    faces: Index | None = None
    metadata: Metadata = field(default_factory=dict)  # space, links, polygons, …


def make_document(
    path: Path,
    points: Sequence[Array] | Array,
    names: Sequence[str] = (),
    labels: tuple[str, ...] | None = None,
    shape_metadata: Sequence[Metadata] = (),
    weights: Sequence[Array | None] | None = None,
    faces: Index | None = None,
    metadata: Metadata = MappingProxyType({}),
) -> Document:
    """Build a document from points (m, d) of each specimen; one without a name gets the file's."""
    n, given_names = len(points), dict(enumerate(names))
    Budget(path).spend_on_specimens(n)  # numbers pack to nothing, specimens do not
    specimens = (
        Specimen(
            given_names.get(k) or make_default_name(path, k, n),
            points[k],
            labels,
            shape_metadata[k] if shape_metadata else {},
            weights=None if weights is None else weights[k],
        )
        for k in range(n)
    )
    return Document(tuple(specimens), faces, metadata)


def require_3d(path: Path, shapes: Shapes, what: str) -> None:
    """Require shapes in space; the error says ``what`` is true of the format."""
    if shapes.n_dims != 3:
        raise FormatError(
            f"{path} cannot be written: {what}, and these are {shapes.n_dims}-D. "
            "Choose another format, such as .tps or .csv."
        )


def make_default_name(path: Path, position: int, total: int) -> str:
    """Name an unnamed specimen after its file, with a number where the file holds several."""
    return path.stem if total == 1 else f"{path.stem}_{position + 1}"


@dataclass(frozen=True)
class ReadOptions:
    """Options of reading: the parameters of `read_shapes`, described there."""

    on_mismatch: str = "error"
    missing: str | float = "marked"
    layout: str = "auto"
    space: str | None = None
    dimension: int | None = None
    names: str = "auto"
    match: str = "auto"
    group: str | None = None
    incomplete: str = "error"
    curve_points: int | None = None
    weights: str | None = "likelihood"
    min_likelihood: float | None = None
    variable: str | None = None
    max_memory: float | None = None


@dataclass(frozen=True)
class Format:
    """One file format."""

    name: str  # "tps", "nts", …: what the command line calls it
    suffixes: tuple[str, ...]  # lower case, with the dot; the first is written
    looks_like: Callable[[bytes], bool]  # by the first 4 KiB of a file
    read: Callable[[Path, ReadOptions], Document]
    write: Callable[[Path, Shapes], None] | None  # of a set, or of one shape (below)
    one_shape_per_file: bool = False  # then write is called once a shape, with a set of one
    # keys of Shapes.metadata (and "faces") that its files keep; None: nothing is said about losses
    holds: tuple[str, ...] | None = None
