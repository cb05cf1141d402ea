"""One function writes every format; nothing is half-written."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from defgpa.diagnostics.wording import name_option
from defgpa.errors import FormatError, ShapeError, format_names
from defgpa.io.format import Format
from defgpa.io.registry import find_format, find_formats_by_suffix, list_suffixes
from defgpa.io.text.lines import warn
from defgpa.io.text.variables import get_variable_columns
from defgpa.shapes import Shapes

_UNSAFE = re.compile(r"[^\w .()+,=@-]|^\.+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_WORDS = {  # metadata that users miss, as a sentence calls them
    "groups": "groups",
    "variables": "columns",
    "images": "names of images",
    "comments": "comments",
    "links": "the links",
    "polygons": "polygons",
    "faces": "faces",
    "space": "the anatomical space",
    "weights": "landmark weights",
}


def write_shapes(
    shapes: Shapes, path: str | os.PathLike[str], *, format: str | None = None
) -> None:
    """Write shapes into a file, or into a folder where a format holds one shape per file.

    Parameters
    ----------
    shapes : Shapes
        What to write. Landmark labels that a format cannot hold (``.tps``) are left out with a
        warning; `find_unsupported_metadata` names what else has no place. Coordinates keep
        every digit.
    path : path
        The file. For a format with one shape a file (``.pts``, ``.mrk.json``, meshes, …) the
        folder to put the files in, named after the shapes; for a single shape a file as well.
    format : str, optional
        The name of the format; by default the suffix of the file decides.

    Raises
    ------
    FormatError
        If the format cannot be told, cannot hold these shapes, or the file cannot be written.
        An existing file is then left as it was.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from defgpa.io import read_shapes
    >>> shapes = Shapes(np.random.default_rng(0).normal(size=(3, 5, 2)))
    >>> with TemporaryDirectory() as folder:
    ...     write_shapes(shapes, Path(folder) / "set.tps")
    ...     read_shapes(Path(folder) / "set.tps") == shapes
    True
    """
    if not isinstance(shapes, Shapes):
        raise ShapeError(
            f"write_shapes takes Shapes; got {type(shapes).__name__}. "
            "Make them with defgpa.Shapes(points)."
        )
    target = Path(path)
    chosen = _choose_format(target, format)
    try:
        _write_files(shapes, target, chosen)
    except OSError as error:
        raise FormatError(f"{target} cannot be written: {error.strerror or error}.") from None
    except UnicodeEncodeError as error:  # half a character, from the name of a file
        raise FormatError(
            f"{target} cannot be written: a name or label holds {error.object[error.start]!r}, "
            "which is no character. Rename it."
        ) from None


def find_unsupported_metadata(
    shapes: Shapes, path: str | os.PathLike[str], *, format: str | None = None
) -> tuple[str, ...]:
    """Find the metadata that `write_shapes` would leave out, in words.

    Landmark labels and names that a format cannot hold
    are pointed out while they are written.

    Parameters
    ----------
    shapes, path, format
        As in `write_shapes`.

    Returns
    -------
    tuple[str, ...]
        What the format cannot hold, as a sentence calls it.

    Examples
    --------
    >>> shapes = Shapes.specimens([[[0.0, 1.0]]], metadata={"groups": ["a"]})
    >>> find_unsupported_metadata(shapes, "set.tps"), find_unsupported_metadata(shapes, "set.csv")
    (('groups',), ())
    """
    chosen = _choose_format(Path(path), format)
    if chosen.holds is None:
        return ()
    present = {key for key, value in shapes.metadata.items() if value is not None}
    if shapes.faces is not None:
        present.add("faces")
    if shapes.has_weights:
        present.add("weights")
    unsupported = {
        key: words for key, words in _WORDS.items() if key in present.difference(chosen.holds)
    }
    if "variables" in unsupported:
        unsupported["variables"] = f"the columns {format_names(get_variable_columns(shapes), 4)}"
    return tuple(unsupported.values())


def _choose_format(target: Path, name: str | None) -> Format:
    if name is not None:
        chosen = find_format(name)
        if chosen.write is None:
            raise FormatError(f"The format {name!r} can be read, not written. Choose another.")
        return chosen
    fitting = find_formats_by_suffix(target)
    for format_ in fitting:
        if format_.write is not None:
            return format_
    if fitting:
        raise FormatError(f"{target}: files with this suffix can be read, not written.")
    raise FormatError(
        f"{target} has no suffix of a known format ({list_suffixes()}). "
        f"Give it one, or name the format ({name_option('write.format')})."
    )


def _write_files(shapes: Shapes, target: Path, chosen: Format) -> None:
    """Write one file of all shapes, or of a single one, or a file for each in a folder."""
    assert chosen.write is not None  # _choose_format gives no other
    folder = target.is_dir()
    if folder and not chosen.one_shape_per_file:
        raise FormatError(
            f"{target} is a folder, and {chosen.name} holds all shapes in one file. "
            f"Name the file, such as {target / ('shapes' + chosen.suffixes[0])}."
        )
    names_file = not folder and target.name.lower().endswith(chosen.suffixes)
    if not chosen.one_shape_per_file or (names_file and len(shapes) == 1):
        chosen.write(target, shapes)
        return
    if names_file:
        raise FormatError(
            f"{target} cannot hold {len(shapes)} shapes: {chosen.name} has one shape a file. "
            f"Give a folder and {name_option('write.format')}, or choose another format."
        )
    for k, name in enumerate(_make_file_names(shapes.names)):
        chosen.write(target / f"{name}{chosen.suffixes[0]}", shapes.take([k]))


def _make_file_names(names: Sequence[str]) -> list[str]:
    """Make file names that every file system accepts and distinguishes without case."""
    file_names, used_names = [], set[str]()
    for name in names:
        # 120 characters, of 255 bytes that file systems give to a name and its suffix
        base_name = _UNSAFE.sub("_", name).rstrip(" .")[:120].strip() or "_"
        base_name = f"{base_name}_" if _RESERVED.fullmatch(base_name) else base_name
        new_name, k = base_name, 1
        while new_name.casefold() in used_names:
            k += 1
            new_name = f"{base_name}_{k}"
        used_names.add(new_name.casefold())
        file_names.append(new_name)
    changed = [name for name, safe_name in zip(names, file_names, strict=True) if name != safe_name]
    if changed:
        warn(
            f"The name {format_names(changed)} cannot name a file as it is; '_' takes its place "
            "there."
        )
    return file_names
