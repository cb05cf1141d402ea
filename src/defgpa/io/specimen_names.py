"""Names and order of the specimens of many files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PureWindowsPath

from defgpa.errors import FormatError, format_names
from defgpa.formatting import make_sort_key
from defgpa.io.files import decode_file_name
from defgpa.io.format import Document, SourcedSpecimen, Specimen, make_default_name
from defgpa.io.text.lines import make_unique, warn
from defgpa.io.text.table import is_whole
from defgpa.shapes import Metadata

IDENTIFIER = "ID"  # the variable that keeps an identifier where specimens are named otherwise

Read = Sequence[tuple[Path, Document]]  # files and what they hold


def rename_specimens(choice: str, read: Read) -> list[tuple[Path, Document]]:
    """Rename the specimens of documents as ``ReadOptions.names`` says."""
    if choice == "image" and not any(any(_list_image_names(document)) for _, document in read):
        raise FormatError(f"{read[0][0]} names no images to call specimens after.")
    return [(path, _rename_document(path, document, choice)) for path, document in read]


def sort_documents(read: Read) -> list[tuple[Path, Document]]:
    """Sort files by the name of their only specimen, or else by their own; a2 before a10."""
    single = all(len(document.specimens) == 1 for _, document in read)

    def key(specimen: tuple[Path, Document]) -> tuple[object, ...]:
        path, document = specimen
        return make_sort_key(document.specimens[0].name if single else str(path)), make_sort_key(
            str(path)
        )

    return sorted(read, key=key)


def make_unique_names(specimens: Sequence[SourcedSpecimen]) -> list[str]:
    """Make unique names: those of the files if each holds one specimen, else numbered ones."""
    names = [specimen.name for specimen in specimens]
    repeated = {name for name, times in Counter(names).items() if times > 1}
    if not repeated:
        return names
    stems = [decode_file_name(specimen.path.stem) for specimen in specimens]
    culprits = format_names(dict.fromkeys(name for name in names if name in repeated))
    if len(set(stems)) == len(stems):
        warn(f"Names that occur in several files: {culprits}. Shapes are named after the files.")
        return stems
    files = dict.fromkeys(str(specimen.path) for specimen in specimens if specimen.name in repeated)
    warn(
        f"Names that occur more than once (in {format_names(files, 2)}): {culprits}. "
        "A number is added to all but the first."
    )
    return make_unique(names)


def _rename_document(path: Path, document: Document, choice: str) -> Document:
    """Rename the specimens of one document after identifiers, images or the file.

    An identifier that gives way stays among the variables.
    """
    specimens, images = document.specimens, _list_image_names(document)
    if choice == "file":
        names = [make_default_name(path, k, len(specimens)) for k in range(len(specimens))]
    elif choice == "image" or (choice == "auto" and _has_better_image_names(specimens, images)):
        names = [image or specimen.name for image, specimen in zip(images, specimens, strict=True)]
    else:
        return document
    renamed = (
        replace(specimen, name=name, metadata=_keep_identifier(specimen, name))
        for specimen, name in zip(specimens, names, strict=True)
    )
    return replace(document, specimens=tuple(renamed))


def _keep_identifier(specimen: Specimen, name: str) -> Metadata:
    metadata = specimen.metadata
    if name == specimen.name or "images" not in metadata:
        return metadata
    variables = {**metadata.get("variables", {}), IDENTIFIER: specimen.name}
    return {**metadata, "variables": variables}


def _list_image_names(document: Document) -> list[str]:
    """List the names of the images without folder and suffix, "" for a specimen that has none."""
    images = (str(specimen.metadata.get("images") or "") for specimen in document.specimens)
    return [PureWindowsPath(image).stem if image else "" for image in images]


def _has_better_image_names(specimens: Sequence[Specimen], images: Sequence[str]) -> bool:
    """Return whether identifiers only count or repeat while each specimen has its image.

    tpsDig counts from 0 in every file, and files are appended to each other.
    """
    if "" in images or len(set(images)) < len(images):
        return False
    names = [specimen.name for specimen in specimens]
    return len(set(names)) < len(names) or _is_enumeration(names)


def _is_enumeration(names: Sequence[str]) -> bool:
    """Return whether names are 0, 1, 2, … or 1, 2, 3, …, with gaps or leading zeros allowed."""
    if not all(is_whole(name) and len(name) <= 9 for name in names):
        return False
    numbers = [int(name) for name in names]
    is_ascending = all(a < b for a, b in pairwise(numbers))
    return is_ascending and numbers[0] <= 1 and numbers[-1] <= 2 * len(numbers)
