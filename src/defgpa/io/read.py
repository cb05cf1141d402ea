"""One function reads every format: files in, one set of shapes out."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from defgpa.errors import FormatError, format_names
from defgpa.io.discover import Find, find_files
from defgpa.io.format import Document, NoLandmarksError, ReadOptions
from defgpa.io.limits import limit_memory
from defgpa.io.merge import merge_documents
from defgpa.io.text.lines import collect_warnings, warn
from defgpa.shapes import Shapes

_CHOICES = {
    "on_mismatch": ("error", "warn"),
    "layout": ("auto", "nmd", "mdn", "dmn"),
    "space": (None, "LPS", "RAS"),
    "dimension": (None, 2, 3),
    "names": ("auto", "id", "image", "file"),
    "match": ("auto", "label", "position"),
    "incomplete": ("error", "drop"),
}
_DETAILS = re.compile(r"'[^']*'|\"[^\"]*\"|[-+0-9.,]+")  # what differs from file to file


def read_shapes(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: str | None = None,
    on_mismatch: str = "error",
    missing: str | float = "marked",
    layout: str = "auto",
    space: str | None = None,
    match: str = "auto",
    dimension: int | None = None,
    names: str = "auto",
    group: str | None = None,
    incomplete: str = "error",
    curve_points: int | None = None,
    weights: str | None = "likelihood",
    min_likelihood: float | None = None,
    variable: str | None = None,
    max_memory: float | None = None,
) -> Shapes:
    """Read shapes from landmark files of any known format.

    Parameters
    ----------
    source : path, or iterable of paths
        A file, a folder (its files of the most frequent format), a pattern such as
        ``"skulls/*.mrk.json"``, or several of these.
    format : str, optional
        The name of the format (``"tps"``, ``"csv"``, …); by default the content of each file
        decides, and its suffix.
    on_mismatch : {"error", "warn"}
        What to do when a count in a file disagrees with what follows it: refuse the file, or
        take what there is with a warning.
    missing : {"marked", "negative"} or float
        Which landmarks are missing: those the format marks; also those with a negative
        coordinate, as tpsDig writes them; or also those with this number in all coordinates,
        in the system of the file.
    layout : {"auto", "nmd", "mdn", "dmn"}
        The order of the axes in bare arrays (``.npy``, ``.mat``) and in tables that leave it
        open: shapes n, landmarks m, coordinates d.
    space : {"LPS", "RAS"}, optional
        The anatomical system to bring all files to; by default that of the first file.
    match : {"auto", "label", "position"}
        What makes landmarks of several files the same: their label; their position; or their
        label, and the position in files that have as many landmarks in the same order and call
        them otherwise.
    dimension : {2, 3}, optional
        How many coordinates a landmark has, in tables that do not say it; by default what makes
        the shapes look alike.
    names : {"auto", "id", "image", "file"}
        What specimens are called after: their identifier, their image or their file; by default
        the identifier, unless identifiers only count or repeat and the images do not.
    group : str, optional
        The column of a table that says to which group a specimen belongs; by default one called
        group, class, population, species or sex. ``metadata["variables"]`` has all columns.
    incomplete : {"error", "drop"}
        What to do with specimens that have another number of landmarks than most: refuse to
        read, or leave them out with a warning.
    curve_points : int, optional
        Resample every curve to so many points at equal distances; by default curves are read as
        they are, and only where all specimens have the same number of points. Curves are
        ``CURVES`` and ``OUTLINES`` of TPS files, curves of 3D Slicer and StereoMorph, and
        landmarks whose labels number them along curves (``C01_005`` in ``.pts``, ``curve1_5``
        anywhere).
    weights : str, optional
        Which numbers of a file are landmark weights: by default (``"likelihood"``) those that it
        calls weight, likelihood, confidence or score; or those in columns of this name; None
        for none.
    min_likelihood : float, optional
        Landmarks of a smaller weight count as missing; by default those of files of DeepLabCut
        whose likelihood is below 0.6, and none of others. 0 keeps all.
    variable : str, optional
        The variable to read from a file that holds several sets (``.mat``, ``.rda``, ``.npz``,
        ``.h5``).
    max_memory : float, optional
        The most bytes that reading one file may take; by default 100 times its size or what the
        environment variable ``DEFGPA_MAX_BYTES`` says (64 MB unless it is set) if that is more.

    Returns
    -------
    Shapes
        Several files come in natural order of the names of their specimens (``a2`` before
        ``a10``), the specimens of one file in the order of the file. Landmarks are matched by
        label where all specimens have labels, and by position otherwise; a label that a specimen
        lacks is missing. ``metadata["sources"]`` names the file of each shape.

    Raises
    ------
    FormatError
        With the file, the line, what was expected and what was found.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "wings.tps"
    ...     _ = file.write_text("LM=2\\n0 0\\nNA NA\\nID=left\\nLM=2\\n0 1\\n4 1\\nID=right\\n")
    ...     shapes = read_shapes(file)
    >>> shapes
    Shapes(2 shapes, 2 landmarks, 2-D, 1 of 4 missing)
    >>> shapes.names
    ('left', 'right')
    """
    options = ReadOptions(
        *(on_mismatch, missing, layout, space, dimension, names, match, group, incomplete),
        curve_points=curve_points,
        weights=None if weights == "none" else weights,
        min_likelihood=min_likelihood,
        variable=variable,
        max_memory=max_memory,
    )
    _require_choices(options)
    files, not_read = find_files(source, format)
    with limit_memory(max_memory):
        shapes = merge_documents(read_all(files, options), options)
    return shapes.with_metadata(not_read=not_read) if not_read else shapes


def read_all(files: Sequence[Find], options: ReadOptions) -> list[tuple[Path, Document]]:
    """Read the files, reporting once what concerns many of them.

    The set remembers its format, to be written in the same one. A reader that knows more kinds of
    a format than one (tables) says itself which it was.
    """
    read: list[tuple[Path, Document]] = []
    messages_by_kind: dict[str, list[tuple[str, str]]] = {}
    for path, format_ in files:
        with collect_warnings() as messages:
            try:
                document = format_.read(path, options)
                metadata = {"format": format_.name, **document.metadata}
                read.append((path, replace(document, metadata=metadata)))
            except NoLandmarksError as error:
                if path is files[-1][0] and not read:
                    raise
                messages.append(f"Passed over: {error}")
        for message in messages:
            kind = _DETAILS.sub("", message.replace(str(path), ""))
            messages_by_kind.setdefault(kind, []).append((message, path.name))
    for (first, _), *others in messages_by_kind.values():
        warn(
            f"{first} Likewise: {format_names([name for _, name in others], 3)}."
            if others
            else first
        )
    return read


def _require_choices(options: ReadOptions) -> None:
    for name, allowed in _CHOICES.items():
        value = getattr(options, name)
        if value not in allowed:
            choices = ", ".join(map(repr, allowed))
            raise FormatError(
                f"The {name!r} parameter of read_shapes must be one of {choices}. "
                f"Got {value!r} instead."
            )
    curve_points = options.curve_points
    if curve_points is not None and not (isinstance(curve_points, int) and curve_points >= 3):
        raise FormatError(
            "The 'curve_points' parameter of read_shapes must be a whole number of at least 3. "
            f"Got {curve_points!r} instead."
        )
    for name in ("min_likelihood", "max_memory"):
        value = getattr(options, name)
        if value is not None and not (_is_number(value) and value >= 0):
            raise FormatError(
                f"The {name!r} parameter of read_shapes must be a number of at least 0. "
                f"Got {value!r} instead."
            )
    for name in ("weights", "variable"):
        value = getattr(options, name)
        if value is not None and not isinstance(value, str):
            raise FormatError(
                f"The {name!r} parameter of read_shapes must be a name or None. "
                f"Got {value!r:.60} instead."
            )
    missing = options.missing
    if missing not in ("marked", "negative") and not _is_number(missing):
        raise FormatError(
            "The 'missing' parameter of read_shapes must be 'marked', 'negative' or a number. "
            f"Got {missing!r} instead."
        )


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= sys.float_info.max
