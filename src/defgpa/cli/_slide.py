"""``defgpa slide``: semilandmarks along curves and on surfaces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console, abbreviate, suggest_name
from defgpa.cli._input import prepare_for_fit, read_input, warp_model
from defgpa.cli._output import AnalysisFiles, check_output_file, refuse_input, write_shapes_as

if TYPE_CHECKING:
    from defgpa.meshes import Mesh
    from defgpa.semilandmarks import SlidShapes
    from defgpa.shapes import Shapes

_MAX_ROWS = 20


@options.command("slide", "defgpa slide larvae.tps --sliders curveslide.csv -o slid.tps")
@options.input_argument
@options.method_option(
    "--sliders",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="Slider table of geomorph (before, slide, after; from 1), or a curve of 3D Slicer "
    "(.mrk.json); repeatable. Default: the CURVES of a TPS file.",
)
@options.method_option(
    "--curve",
    "curves",
    multiple=True,
    metavar="A,B,C,…",
    help="Labels of the landmarks along a curve, whose ends stay (2..9: 2 to 9); repeatable.",
)
@options.method_option(
    "--slicer-curves",
    "folders",
    multiple=True,
    nargs=2,
    type=(click.Path(), click.IntRange(3)),
    metavar="FOLDER COUNT",
    help="Curves of 3D Slicer (.mrk.json, named like the shapes), resampled to COUNT points and "
    "added to the shapes; repeatable.",
)
@options.method_option(
    "--surface",
    metavar="A,B,…|FILE",
    help="Labels of landmarks that slide on a surface, or geomorph's table of them.",
)
@options.method_option(
    "--meshes",
    type=click.Path(),
    metavar="FOLDER",
    help="Meshes to slide on, named like the shapes.",
)
@options.method_option(
    "--by",
    type=click.Choice(["bending", "procrustes"]),
    default="bending",
    show_default=True,
    help="Minimise bending energy or Procrustes distance.",
)
@options.method_option(
    "--along",
    type=click.Choice(["curve", "tangent"]),
    default="curve",
    show_default=True,
    help="Stay on the curve as digitised, or move along tangents, as geomorph does.",
)
@options.method_option(
    "--warp",
    type=click.Choice(options.WARPS),
    metavar="FAMILY",
    help="Align with such warps between iterations; default: by similarities.",
)
@options.method_option(
    "--rounds",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    metavar="COUNT",
    help="Maximum number of iterations.",
)
@options.output_option("FILE", "File for the slid shapes.", required=True)
@options.option(
    "--figures",
    type=click.Path(),
    metavar="FOLDER",
    help="Folder for a table (CSV) and a picture (PNG) of how far points slid.",
)
@options.report
@options.writing
@options.reading
def command(
    source: tuple[str, ...],
    sliders: tuple[str, ...],
    curves: tuple[str, ...],
    folders: tuple[tuple[str, int], ...],
    surface: str | None,
    meshes: str | None,
    by: str,
    along: str,
    warp: str | None,
    rounds: int,
    output: str,
    figures: str | None,
    report: bool,
    to_format: str | None,
    console: Console,
) -> None:
    """Slide semilandmarks along curves and on surfaces.

    They move to where the shapes differ least, by bending energy or Procrustes distance, and stay
    on their curves.
    """
    import numpy as np

    from defgpa.estimators import DefGPA
    from defgpa.semilandmarks import add_slicer_curves, find_curves, read_surface, slide

    files = AnalysisFiles(figures, report, "slide.json", source, "--figures")
    target = check_output_file(output)
    refuse_input(target, *source)
    with console.note_warnings():
        shapes = read_input(source)
        for folder, count in folders:
            shapes = add_slicer_curves(shapes, folder, count)
        shapes = prepare_for_fit(console, shapes)
        patch: list[int] | list[str] = []
        if surface is not None:
            is_file = Path(surface).is_file()
            patch = read_surface(surface, shapes) if is_file else parse_labels(surface, shapes)
        chosen = _read_curves(sliders, curves, shapes)
        if not (chosen or patch or find_curves(shapes)):
            raise click.UsageError("Nothing slides: give --sliders, --curve or --surface.")
        surfaces = None if meshes is None else _read_meshes(console, Path(meshes), shapes)
        with console.show_progress("Sliding") as tick:
            slid = slide(
                shapes,
                chosen,
                patch,
                by,
                along=along,
                meshes=surfaces,
                estimator=warp and DefGPA(warp_model(warp, None, None, None)),
                max_rounds=rounds,
                progress=tick,
            )
        write_shapes_as(console, slid, target, to_format)
    _show(console, slid)
    farthest = int(np.nan_to_num(slid.distances).max(axis=1).argmax())
    results: dict[str, object] = {
        "sliding": [slid.landmarks[j] for j in slid.sliders],
        "criterion": slid.criterion.sum(axis=2),
        "settled": slid.settled,
        "distances": slid.distances,
    }
    with files.open(console, results):
        files.write_table("slid.csv", _format_distances(slid))
        files.write_figure("slid.png", "sliding", shapes, slid, farthest, n_dims=slid.n_dims)
        files.write_report(shapes, [slid], f"Semilandmarks of {Path(source[0]).name}")
    files.files.insert(0, output)
    files.show(console, results)


def _read_curves(
    sliders: Sequence[str], curves: Sequence[str], shapes: Shapes
) -> list[list[int | str]] | None:
    """Return the curves that the options describe; None where they describe none."""
    from defgpa.semilandmarks import read_sliders

    chains: list[list[int | str]] = [
        [*curve] for path in sliders for curve in read_sliders(path, shapes)
    ]
    chains += [[*parse_labels(words, shapes, "--curve")] for words in curves]
    return chains or None


def parse_labels(words: str, shapes: Shapes, option: str = "--surface") -> list[str]:
    """Parse ``A,B,2..5`` as labels of landmarks, refusing unknown ones at once."""
    existing, labels = set(shapes.landmarks), list[str]()
    for word in (item.strip() for item in words.split(",")):
        first, dots, last = word.partition("..")
        is_range = word not in existing and dots and first.isdecimal() and last.isdecimal()
        for label in map(str, range(int(first), int(last) + 1)) if is_range else (word,):
            if label not in existing:
                raise click.BadParameter(
                    f"there is no landmark {label!r}.{suggest_name(label, existing)}",
                    param_hint=option,
                )
            labels.append(label)
    return labels


def _read_meshes(console: Console, folder: Path, shapes: Shapes) -> dict[str, Mesh]:
    """Read the meshes of a folder that are named like the shapes."""
    from defgpa.errors import format_names
    from defgpa.meshes import read_mesh

    if not folder.is_dir():
        raise click.BadParameter(f"{folder} is not a folder.", param_hint="--meshes")
    files = {path.stem: path for path in sorted(folder.iterdir()) if path.is_file()}
    meshes = {name: read_mesh(files[name]) for name in shapes.names if name in files}
    absent = [name for name in shapes.names if name not in files]
    if not meshes:
        raise click.BadParameter(
            f"no file of {folder} is named like a shape, such as {shapes.names[0]}.ply.",
            param_hint="--meshes",
        )
    if absent:
        console.note(f"No mesh is named like {format_names(absent)}.")
    return meshes


def _show(console: Console, slid: SlidShapes) -> None:
    """Show how far the points of each shape slid, and how much was gained."""
    import numpy as np

    moved = slid.distances[:, slid.sliders]
    rows = [
        [name, float(np.nanmean(distances)), float(np.nanmax(distances))]
        for name, distances in zip(abbreviate(slid.names[:_MAX_ROWS]), moved, strict=False)
        if not np.isnan(distances).all()
    ]
    console.print_line(f"{len(slid.sliders)} of {slid.n_landmarks} landmarks slide.")
    total = len(rows) + slid.n_shapes - _MAX_ROWS
    header = ["shape", "mean", "maximum"]
    console.print_table(
        "Distances slid, in units of the coordinates", header, rows, total, " shapes"
    )
    first, last = slid.criterion[0, 0].sum(), slid.criterion[-1, 1].sum()
    count = len(slid.criterion)
    iterations = "1 iteration" if count == 1 else f"{count} iterations"
    console.print_line(f"Criterion: {first:.4g} before, {last:.4g} after {iterations}.")
    if not slid.settled:
        console.note("The criterion was still falling at the last iteration: raise --rounds.")


def _format_distances(slid: SlidShapes) -> str:
    """Return the table of how far each semilandmark slid, as CSV."""
    from defgpa.io.text.table import format_csv

    rows = [
        (name, slid.landmarks[j], float(distances[j]))
        for name, distances in zip(slid.names, slid.distances, strict=True)
        for j in slid.sliders
    ]
    return format_csv(("id", "landmark", "slid"), rows)
