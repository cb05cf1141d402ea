"""``defgpa export``: a saved result for other programs."""

from __future__ import annotations

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._output import list_files, output_folder

_NEXT = {
    "slicermorph": "In 3D Slicer: module GPA, Load previous analysis, this folder.",
    "r": 'In R: x <- readRDS("superimposed.rds"), landmarks x coordinates x specimens.',
    "morphoj": "In MorphoJ: File, Create New Project, morphoj.txt.",
    "meshes": "Any mesh viewer opens them; all are in the space of the reference.",
}


@options.command("export", "defgpa export result/result.npz -o for_R/ --to r")
@click.argument("result", type=click.Path())
@click.option("--output", "-o", required=True, type=click.Path(), help="Folder for the files.")
@click.option("--to", "target", required=True, type=click.Choice(list(_NEXT)), help="For whom.")
@click.option(
    "--space",
    type=click.Choice(["superimposed", "back_projected"]),
    default="superimposed",
    show_default=True,
    help="Of the components that meshes show: as measured, or the smooth part.",
)
@click.option(
    "--mesh", type=click.Path(), help="A mesh in the space of the reference, to be moved."
)
@click.option(
    "--components", type=click.IntRange(1), default=2, show_default=True, help="How many, meshes."
)
@click.option(
    "--sd", type=float, default=2.0, show_default=True, help="Standard deviations to either side."
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
    """Write a saved result for SlicerMorph, R or MorphoJ, or meshes along components."""
    from defgpa.exports import export, write_component_meshes
    from defgpa.io import load
    from defgpa.meshes import read_mesh

    if mesh is not None and target != "meshes":
        raise click.UsageError("--mesh goes with --to meshes.")
    folder = output_folder(output)
    with console.noting():
        alignment = load(result)
        if target == "meshes":
            files = write_component_meshes(
                alignment,
                folder,
                mesh=None if mesh is None else read_mesh(mesh),
                components=range(1, components + 1),
                deviations=(-sd, sd),
                space=space,
            )
        else:
            files = export(alignment, folder, target)
    written = [str(file) for file in files]
    list_files(console, written)
    console.say(_NEXT[target])
    console.result({"files": written, "notes": console.notes})
