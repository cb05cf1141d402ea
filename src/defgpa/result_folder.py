"""Write an alignment into a folder, as ``defgpa fit`` and the app do."""

from __future__ import annotations

import os
from pathlib import Path

from defgpa.alignment import Alignment
from defgpa.errors import FormatError
from defgpa.io import FORMATS, save, write_shapes
from defgpa.io.atomic import write_text
from defgpa.io.format import Format
from defgpa.io.text.lines import warn
from defgpa.io.text.table import format_csv
from defgpa.io.text.variables import get_variable_columns
from defgpa.shapes import Shapes
from defgpa.statistics import specimens


def write_alignment(alignment: Alignment, folder: Path) -> None:
    """Write reference, shapes in both spaces, a table of the specimens, the result with warps."""
    shapes = alignment.shapes
    reference = Shapes.specimens(
        [alignment.reference],
        names=["reference"],
        landmarks=shapes.landmarks,
        faces=shapes.faces,
        metadata={
            key: shapes.metadata[key] for key in ("format", "space") if key in shapes.metadata
        },
    )
    write_shapes_twice(reference, folder, "reference")
    for space in ("aligned", "superimposed"):
        # scales of the files do not hold in the space of the reference
        shapes_in_space = shapes.with_points(getattr(alignment, space)).with_metadata(scales=None)
        write_shapes_twice(shapes_in_space, folder, space)
    write_specimens(alignment, folder)
    save(alignment, folder / "result.npz")


def write_specimens(alignment: Alignment, folder: Path) -> None:
    """Write ``specimens.csv``: one row per specimen, with its covariates."""
    columns = dict(specimens(alignment))
    if not any(columns["group"]):
        del columns["group"]  # no groups are known
    for name, values in get_variable_columns(alignment.shapes).items():
        columns.setdefault(name, values)
    rows = zip(*columns.values(), strict=True)
    write_text(folder / "specimens.csv", format_csv(list(columns), rows, unknown="nan"))


def write_shapes_twice(shapes: Shapes, folder: Path, stem: str) -> None:
    """Write shapes as CSV, and also in the format of the input if that holds many shapes."""
    write_shapes(shapes, folder / f"{stem}.csv", format="csv")
    format_ = next((f for f in FORMATS if f.name == shapes.metadata.get("format")), None)
    if format_ is None or format_.write is None or format_.name == "csv":
        return
    try:
        write_shapes(shapes, folder / _name_result(format_, stem), format=format_.name)
    except FormatError as error:
        if isinstance(error.__context__, OSError):
            raise
        reason = str(error).replace(f"{folder}{os.sep}", "")
        warn(f"{reason} There is {stem}.csv instead.")


def _name_result(format_: Format, stem: str) -> str:
    """Return the file name of results; long tables must not take the place of wide ones."""
    if format_.one_shape_per_file:
        return stem
    return f"{stem}_long.csv" if format_.name == "csv-long" else stem + format_.suffixes[0]
