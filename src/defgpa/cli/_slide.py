"""``defgpa slide``: semilandmarks along curves and on surfaces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console, briefly
from defgpa.cli._input import fitting_input, read_input, warp_model
from defgpa.cli._output import Written, output_file, refuse_input, written_as

if TYPE_CHECKING:
    from defgpa.semilandmarks import SlidShapes
    from defgpa.shapes import Shapes

_MOST_ROWS = 20


@options.command("slide", "defgpa slide larvae.tps --sliders curveslide.csv -o slid.tps")
@options.input_argument
@click.option("--output", "-o", required=True, type=click.Path(), help="File for the shapes.")
@click.option(
    "--sliders",
    multiple=True,
    type=click.Path(),
    help="Slider table of geomorph (before, slide, after; from 1), or a curve of 3D Slicer "
    "(.mrk.json); may be given again. By default the CURVES of a TPS file.",
)
@click.option(
    "--curve",
    "curves",
    multiple=True,
    metavar="A,B,C,…",
    help="Labels of the landmarks along a curve, whose ends stay (2..9: 2 to 9); again for more.",
)
@click.option(
    "--slicer-curves",
    "folders",
    multiple=True,
    nargs=2,
    type=(click.Path(), click.IntRange(3)),
    metavar="FOLDER COUNT",
    help="Curves of 3D Slicer (.mrk.json, named like the shapes), each resampled to COUNT points "
    "and joined to its shape; again for more.",
)
@click.option(
    "--surface",
    metavar="A,B,…|FILE",
    help="Labels of landmarks that slide on a surface, or geomorph's table of them.",
)
@click.option(
    "--by",
    type=click.Choice(["bending", "procrustes"]),
    default="bending",
    show_default=True,
    help="What is made least: bending energy, or distance from the reference.",
)
@click.option(
    "--along",
    type=click.Choice(["curve", "tangent"]),
    default="curve",
    show_default=True,
    help="Points stay on the curve as digitised, or leave it along tangents, as in geomorph.",
)
@click.option("--meshes", type=click.Path(), help="Folder of meshes named like the shapes.")
@click.option(
    "--warp",
    type=click.Choice(options.WARPS),
    help="Align with such warps between rounds; by similarities by default.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Of alignment and sliding, at most.",
)
@click.option("--figures", type=click.Path(), help="Folder for how far points slid: CSV and PNG.")
@options.reporting
@options.reading
@options.writing
def command(
    source: tuple[str, ...],
    output: str,
    sliders: tuple[str, ...],
    curves: tuple[str, ...],
    folders: tuple[tuple[str, int], ...],
    surface: str | None,
    by: str,
    along: str,
    meshes: str | None,
    warp: str | None,
    rounds: int,
    figures: str | None,
    report: bool,
    to_format: str | None,
    console: Console,
) -> None:
    """Slide semilandmarks along curves and on surfaces.

    They go where the shapes differ least, by bending energy or distance, and stay on their curves.
    """
    import numpy as np

    from defgpa.estimators import DefGPA
    from defgpa.semilandmarks import curves_of, read_surface, slide, with_slicer_curves

    written = Written(figures, report, "--figures")
    target = output_file(output)
    refuse_input(target, *source)
    with console.noting():
        shapes = read_input(source)
        for folder, count in folders:
            shapes = with_slicer_curves(shapes, folder, count)
        shapes = fitting_input(console, shapes)
        patch: list[Any] = []
        if surface is not None:
            is_file = Path(surface).is_file()
            patch = read_surface(surface, shapes) if is_file else _labels(surface, shapes)
        chosen = _curves(sliders, curves, shapes)
        if not (chosen or patch or curves_of(shapes)):
            raise click.UsageError("Nothing slides: give --sliders, --curve or --surface.")
        surfaces_of = None if meshes is None else _meshes(console, Path(meshes), shapes)
        with console.progress("Sliding") as tick:
            slid = slide(
                shapes,
                chosen,
                patch,
                by,
                along=along,
                meshes=surfaces_of,
                estimator=warp and DefGPA(warp_model(warp, None, None, None)),
                max_rounds=rounds,
                progress=tick,
            )
        written_as(console, slid, target, to_format)
    written.files.append(output)
    _show(console, slid)
    farthest = int(np.nan_to_num(slid.distances).max(axis=1).argmax())
    with console.noting():
        written.table("slid.csv", _distances(slid))
        written.figure("slid.png", "sliding", shapes, slid, farthest, dim=slid.n_dims)
        written.report(shapes, [slid], f"Semilandmarks of {Path(source[0]).name}")
    found = {
        "sliding": [slid.landmarks[j] for j in slid.sliders],
        "criterion": slid.criterion.sum(axis=2),
        "settled": slid.settled,
        "distances": slid.distances,
    }
    written.tell(console, found)


def _curves(
    sliders: Sequence[str], curves: Sequence[str], shapes: Shapes
) -> list[list[Any]] | None:
    """What the options tell; None where they tell nothing."""
    from defgpa.semilandmarks import read_sliders

    found: list[list[Any]] = [curve for path in sliders for curve in read_sliders(path, shapes)]
    found += [_labels(words, shapes, "--curve") for words in curves]
    return found or None


def _labels(words: str, shapes: Shapes, option: str = "--surface") -> list[str]:
    """``A,B,2..5`` as labels."""
    found: list[str] = []
    for word in (part.strip() for part in words.split(",")):
        first, dots, last = word.partition("..")
        if word not in shapes.landmarks and dots and first.isdecimal() and last.isdecimal():
            found += map(str, range(int(first), int(last) + 1))
        else:
            found.append(word)
    unknown = [label for label in found if label not in shapes.landmarks]
    if unknown:
        raise click.BadParameter(f"there is no landmark {unknown[0]!r}.", param_hint=option)
    return found


def _meshes(console: Console, folder: Path, shapes: Shapes) -> dict[str, Any]:
    from defgpa.errors import listed
    from defgpa.meshes import read_mesh

    if not folder.is_dir():
        raise click.BadParameter(f"{folder} is not a folder.", param_hint="--meshes")
    files = {path.stem: path for path in sorted(folder.iterdir()) if path.is_file()}
    found = {name: read_mesh(files[name]) for name in shapes.names if name in files}
    lacking = [name for name in shapes.names if name not in files]
    if not found:
        raise click.BadParameter(
            f"no file of {folder} is named like a shape, such as {shapes.names[0]}.ply.",
            param_hint="--meshes",
        )
    if lacking:
        console.note(f"No mesh is named like {listed(lacking)}.")
    return found


def _show(console: Console, slid: SlidShapes) -> None:
    import numpy as np

    moved = slid.distances[:, slid.sliders]
    rows = [
        [name, float(np.nanmean(own)), float(np.nanmax(own))]
        for name, own in zip(briefly(slid.names[:_MOST_ROWS]), moved, strict=False)
        if not np.isnan(own).all()
    ]
    console.say(f"{len(slid.sliders)} of {slid.n_landmarks} landmarks slide.")
    total = len(rows) + slid.n_shapes - _MOST_ROWS
    console.table("How far", ["shape", "mean", "largest"], rows, total, " shapes")
    first, last = slid.criterion[0, 0].sum(), slid.criterion[-1, 1].sum()
    count = len(slid.criterion)
    rounds = "1 round" if count == 1 else f"{count} rounds"
    console.say(f"Criterion {first:.4g} at first, {last:.4g} after {rounds}.")
    if not slid.settled:
        console.note("The shapes were still gaining when the rounds were over: raise --rounds.")


def _distances(slid: SlidShapes) -> str:
    from defgpa.io.text.table import format_csv

    rows = [
        (name, slid.landmarks[j], float(own[j]))
        for name, own in zip(slid.names, slid.distances, strict=True)
        for j in slid.sliders
    ]
    return format_csv(("shape", "landmark", "slid"), rows)
