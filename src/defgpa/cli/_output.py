"""What a fit leaves on disk, and the figures it prints."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli._console import Console, plain

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.io import Format
    from defgpa.shapes import Shapes


def output_folder(name: str) -> Path:
    """The folder for results; one that cannot be is refused before any work is done."""
    folder = Path(name)
    place = _existing(folder)
    if not place.is_dir():
        raise click.BadParameter(f"{place} is a file, not a folder.", param_hint="--output")
    _require_writable(place)
    return folder


def output_file(name: str, option: str = "--output") -> Path:
    """The file for results, likewise."""
    file = Path(name)
    if file.is_dir():
        raise click.BadParameter(f"{file} is a folder; name a file.", param_hint=option)
    place = _existing(file.parent)
    if not place.is_dir():
        raise click.BadParameter(f"{place} is a file, not a folder.", param_hint=option)
    _require_writable(place)
    return file


def refuse_inputs(shapes: Shapes, folder: Path, *stems: str) -> None:
    """An error where results of these names would take the place of the input."""
    targets = [folder.absolute() / name for stem in stems for name in (stem, f"{stem}_long")]
    for source in shapes.metadata.get("sources", ()):
        place = Path(source).absolute()
        if place.parent in targets or place.parent / place.name.split(".")[0] in targets:
            raise click.BadParameter(
                f"the results would overwrite the input {source}; choose another folder.",
                param_hint="--output",
            )


def refuse_input(target: Path, *sources: str) -> None:
    """An error where a result would take the place of the input."""
    if target.absolute() in [Path(source).absolute() for source in sources]:
        raise click.UsageError(f"The output would overwrite the input {target}. Name another file.")


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there."""
    try:
        return next(place for place in (path, *path.parents) if place.exists())
    except OSError as error:  # a name too long for the file system
        raise click.BadParameter(
            f"{error.strerror}: {str(path)[:60]}…", param_hint="--output"
        ) from None


def _require_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise click.BadParameter(f"Nothing can be written to {folder}.", param_hint="--output")


def require_report() -> None:
    """An error before any work is done where a report cannot be written after it."""
    from defgpa.errors import DefgpaError

    if not can_report():
        raise DefgpaError("A report needs plotly and jinja2: pip install 'defgpa[report]'.")


def can_report() -> bool:
    """Whether what the report is made with is installed."""
    return all(map(find_spec, ("plotly", "jinja2")))


def write_shapes_twice(shapes: Shapes, folder: Path, stem: str) -> list[str]:
    """As CSV, and in the format the input came in where that is another one that can hold them."""
    from defgpa.errors import FormatError
    from defgpa.io import FORMATS, write_shapes
    from defgpa.io.text.lines import warn

    written = [folder / f"{stem}.csv"]
    write_shapes(shapes, written[0], format="csv")
    own = next((f for f in FORMATS if f.name == shapes.metadata.get("format")), None)
    if own is None or own.write is None or own.name == "csv":
        return [str(written[0])]
    target = folder / _own_name(own, stem)
    try:
        write_shapes(shapes, target, format=own.name)
    except FormatError as error:
        if isinstance(error.__context__, OSError):
            raise
        warn(f"{error} There is {written[0]} instead.")
        return [str(written[0])]
    _warn_of_others(target, own.suffixes[0], shapes.n_shapes)
    written.append(target)
    return [f"{path}{os.sep}" if path.is_dir() else str(path) for path in written]


def _own_name(own: Format, stem: str) -> str:
    """What results in a format are called; long tables must not take the place of wide ones."""
    if own.one_shape_per_file:
        return stem
    return f"{stem}_long.csv" if own.name == "csv-long" else stem + own.suffixes[0]


def _warn_of_others(target: Path, suffix: str, written: int) -> None:
    """Say so where a folder of shapes holds more than were written now."""
    from defgpa.io.text.lines import warn

    others = len(list(target.glob(f"*{suffix}"))) - written if target.is_dir() else 0
    if others > 0:
        warn(f"{target} also holds {others} files of before; they are no part of this result.")


def written_as(shapes: Shapes, target: Path, format_name: str | None) -> None:
    """The shapes in a format of the user's choice, whose option is named where it is missing."""
    from defgpa.errors import FormatError
    from defgpa.io import write_shapes

    try:
        write_shapes(shapes, target, format=format_name)
    except FormatError as error:
        raise FormatError(str(error).replace("format='…'", "--to NAME")) from None


def write_alignment(alignment: Alignment, folder: Path) -> list[str]:
    """Reference, aligned shapes and the result with its warps."""
    from defgpa.io import save
    from defgpa.shapes import Shapes

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
    files = write_shapes_twice(reference, folder, "reference")
    files += write_shapes_twice(in_reference_space(alignment), folder, "aligned")
    save(alignment, folder / "result.npz")
    return [*files, str(folder / "result.npz")]


def in_reference_space(alignment: Alignment) -> Shapes:
    """The aligned shapes under their names; scales of the files do not hold there."""
    from defgpa.shapes import Shapes

    shapes = alignment.shapes
    return Shapes.specimens(
        alignment.aligned,
        names=shapes.names,
        landmarks=shapes.landmarks,
        faces=shapes.faces,
        metadata={key: value for key, value in shapes.metadata.items() if key != "scales"},
    )


def figures(alignment: Alignment, cve: float | None, smoothing: float | None) -> dict[str, Any]:
    """The numbers of a fit, by name; the smoothing where it was chosen by the way."""
    found = alignment.spectral
    return {
        "shapes": alignment.shapes.n_shapes,
        "landmarks": alignment.shapes.n_landmarks,
        "dimension": alignment.shapes.dim,
        "visible": alignment.n_counted,
        "rmse_reference": alignment.rmse_reference,
        "rmse_datum": alignment.rmse_datum,
        "cve": cve,
        "chosen_smoothing": smoothing,
        "eigenvalues": alignment.eigenvalues,
        "spectral_gap": None if found is None else found.gap,
        "excess_cost": None if found is None else found.excess,
        "similarity_residual": None if found is None else found.similarity_residual,
        "foldovers": int(alignment.foldovers.sum()),
        "mirrored": list(alignment.mirrored),
        "lone_landmarks": list(alignment.lone_landmarks),
    }


def show_figures(console: Console, numbers: dict[str, Any]) -> None:
    """The figures with one sentence each."""
    rows = [
        ["RMSE_r", numbers["rmse_reference"], "left between warped shapes and reference"],
        ["RMSE_d", numbers["rmse_datum"], "the same, carried back to each shape"],
        ["CVE", numbers["cve"], "error on landmarks the fit had not seen"],
        ["smoothing", numbers["chosen_smoothing"], "chosen by cross-validation"],
        ["rigidity", numbers.get("chosen_rigidity"), "chosen by cross-validation"],
        ["spectral gap", numbers["spectral_gap"], "near 0: the reference is ambiguous"],
        ["foldovers", numbers["foldovers"], "landmarks where a warp folds over (want 0)"],
    ]
    console.table(
        "Figures", ["figure", "value", "what it says"], [r for r in rows if r[1] is not None]
    )


def write_summary(folder: Path, summary: dict[str, Any]) -> str:
    """``summary.json``, all of it or none."""
    from defgpa.io.atomic import write_text

    text = json.dumps(plain(summary), indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / "summary.json", text + "\n")
    return str(folder / "summary.json")


def versions() -> dict[str, str]:
    """What it takes to do this again."""
    import platform

    import numpy
    import scipy

    from defgpa import __version__

    return {
        "defgpa": __version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }


def list_files(console: Console, files: Sequence[str]) -> None:
    """Where everything is."""
    console.say("Written:")
    for file in files:
        console.say(f"  {file}")
