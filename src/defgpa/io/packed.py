"""Files packed with gzip or zip: unpacked within a budget, then read by their content.

A ``.zip`` stands for a folder of its files; an archive in an archive is refused.
"""

from __future__ import annotations

import contextlib
import gzip
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from defgpa.errors import FormatError
from defgpa.formatting import make_sort_key
from defgpa.io.anatomical_space import convert_space
from defgpa.io.files import translate_errors
from defgpa.io.format import Document, Format, ReadOptions
from defgpa.io.limits import (
    FILE_COST,
    GZIP,
    TEXT_COST,
    Budget,
    decompress_head,
    limit_memory,
    open_zip,
)
from defgpa.io.text.lines import collect_warnings, warn

_NO_LANDMARKS = (b".npy", b"[Content_Types].xml", b"mimetype", b"META-INF")  # other uses of zip
_PACKED_NAME = "what it packs"


def make_packed_formats(formats: Sequence[Format]) -> tuple[Format, ...]:
    """Make the formats of packed files of these formats."""

    def holds_one(head: bytes) -> bool:
        unpacked = decompress_head(head) if head.startswith(GZIP) else b""
        return bool(unpacked) and any(format_.looks_like(unpacked) for format_ in formats)

    def is_zip(head: bytes) -> bool:
        return head.startswith(b"PK\x03\x04") and not any(mark in head for mark in _NO_LANDMARKS)

    suffixes = dict.fromkeys(f"{suffix}.gz" for f in formats for suffix in f.suffixes)
    return (
        Format("gz", tuple(suffixes), holds_one, read_gz, write=None),
        Format("zip", (".zip",), is_zip, read_zip, write=None),
    )


def read_gz(path: Path, options: ReadOptions) -> Document:
    """Read the document of the one file that is packed."""
    with TemporaryDirectory() as folder:
        unpacked = Path(folder, path.stem if path.suffix.lower() == ".gz" else path.name)
        with translate_errors(path, "gzip file"), gzip.open(path) as packed:
            Budget(path).unpack_to(unpacked, packed.read, _PACKED_NAME)
        return _read_unpacked(unpacked, path, options)


def read_zip(path: Path, options: ReadOptions) -> Document:
    """Read all specimens of the files of an archive, in the natural order of their names."""
    with TemporaryDirectory() as folder:
        with translate_errors(path, "zip archive"), open_zip(path) as archive:
            unpack_zip(path, archive, Path(folder))
        return _read_unpacked(Path(folder), path, options)


def unpack_zip(path: Path, archive: zipfile.ZipFile, folder: Path) -> None:
    """Unpack all files but hidden ones into a folder, under names of their own, within a budget."""
    members = [info for info in archive.infolist() if not info.is_dir()]
    budget = Budget(path)
    sizes = [FILE_COST + TEXT_COST * info.file_size for info in members]
    budget.spend(sum(sizes), _PACKED_NAME)
    budget = Budget(path)  # what the directory says may not be so
    for info in members:
        parts = [p for p in info.filename.replace("\\", "/").split("/") if p.strip(".")]
        if not parts or any(piece.startswith((".", "__MACOSX")) for piece in parts):
            continue
        target = folder / parts[-1]
        if target.exists():
            target = folder / "_".join(parts)
        with archive.open(info) as packed:
            budget.unpack_to(target, packed.read, _PACKED_NAME)


def _read_unpacked(place: Path, path: Path, options: ReadOptions) -> Document:
    """Read unpacked files within the limits of the packed file."""
    from defgpa.io.discover import find_files
    from defgpa.io.read import read_all

    members = [place] if place.is_file() else list(place.iterdir())
    if any(file.name.lower().endswith((".gz", ".zip")) for file in members):
        raise FormatError(f"{path} holds another archive. Unpack it.")
    budget = Budget(path)
    with _rename_place_in_messages(path, place), limit_memory(budget.left):
        matches, _ = find_files(place, None)
        matches.sort(key=lambda match: make_sort_key(match[0].name))
        documents = [document for _, document in read_all(matches, options)]
    budget.spend_on_specimens(sum(len(document.specimens) for document in documents))
    return _join_documents(documents)


def _join_documents(documents: Sequence[Document]) -> Document:
    """Join documents into one, with the set's metadata and anatomical space of the first."""
    first = documents[0]
    space = first.metadata.get("space")
    specimens = (
        replace(
            specimen, points=convert_space(specimen.points, document.metadata.get("space"), space)
        )
        for document in documents
        for specimen in document.specimens
    )
    return replace(first, specimens=tuple(specimens))


@contextlib.contextmanager
def _rename_place_in_messages(path: Path, place: Path) -> Iterator[None]:
    """Rewrite errors and warnings to name the archive, not the folder it was unpacked to."""
    try:
        with collect_warnings() as messages:
            yield
    except FormatError as error:
        raise type(error)(str(error).replace(str(place), str(path))) from None
    for message in messages:
        warn(message.replace(str(place), str(path)))
