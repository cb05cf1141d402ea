"""``defgpa export``: a saved result for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._output import (
    HIDDEN_MANIFEST,
    check_output_folder,
    list_files,
    open_plain_folder,
    refuse_inputs,
)

_NEXT_STEPS = {
    "slicermorph": "In 3D Slicer: module GPA, Load previous analysis, this folder.",
    "r": 'In R: x <- readRDS("superimposed.rds"), landmarks x coordinates x specimens.',
    "morphoj": "In MorphoJ: File, Create New Project, morphoj.txt.",
    "meshes": "Any mesh viewer opens them; all are in the space of the reference.",
}


@options.command("export", "defgpa export result/result.npz -o for_R/ --to r")
@click.argument("result", type=click.Path())
@options.output_option(
    "FOLDER", "Folder for the files; what an earlier export left there is replaced.", required=True
)
@options.option(
    "--to", "target", required=True, type=click.Choice(list(_NEXT_STEPS)), help="Target program."
)
@options.option(
    "--space",
    type=click.Choice(["superimposed", "back_projected"]),
    default="superimposed",
    show_default=True,
    metavar="NAME",
    group=options.MESHES,
    help="Shapes whose components are shown: superimposed (as measured) or back_projected (only "
    "what the warps follow).",
)
@options.option(
    "--mesh",
    type=click.Path(),
    metavar="FILE",
    group=options.MESHES,
    help="Mesh in the space of the reference to deform; default: the faces of the shapes.",
)
@options.option(
    "--components",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    metavar="COUNT",
    group=options.MESHES,
    help="Number of principal components.",
)
@options.option(
    "--sd",
    type=float,
    default=2.0,
    show_default=True,
    metavar="NUMBER",
    group=options.MESHES,
    help="Standard deviations from the mean, in both directions.",
)
def command(
    result: str,
    output: str,
    target: str,
    space: str,
    mesh: str | None,
    components: int,
    sd: float,
    console: Console,
) -> None:
    """Export a saved result to SlicerMorph, R or MorphoJ, or as meshes along components."""
    from defgpa.exports import export, write_component_meshes
    from defgpa.io import load
    from defgpa.meshes import read_mesh

    if mesh is not None and target != "meshes":
        raise click.UsageError("--mesh goes with --to meshes.")
    folder = check_output_folder(output)
    refuse_inputs([result, *filter(None, [mesh])], folder, manifest=HIDDEN_MANIFEST)
    with console.note_warnings():
        alignment = load(result)
        surface = None if mesh is None else read_mesh(mesh)
        with open_plain_folder(folder) as new_folder:
            if target == "meshes":
                files = write_component_meshes(
                    alignment,
                    new_folder,
                    mesh=surface,
                    components=range(1, components + 1),
                    deviations=(-sd, sd),
                    space=space,
                )
            else:
                files = export(alignment, new_folder, target)
            names = [Path(file).relative_to(new_folder) for file in files]
    written = [str(folder / name) for name in names]
    list_files(console, written)
    console.print_line(_NEXT_STEPS[target])
    console.print_json({"files": written, "notes": console.notes})
