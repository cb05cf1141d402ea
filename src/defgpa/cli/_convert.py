"""``defgpa convert``: from one landmark format to another."""

from __future__ import annotations

from pathlib import Path

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import read_input
from defgpa.cli._output import HIDDEN_MANIFEST, refuse_input, refuse_inputs, write_shapes_as


@options.command("convert", "defgpa convert skulls/*.mrk.json skulls.tps")
@click.argument("source", nargs=-1, required=True, metavar="IN...", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@options.writing
@options.option(
    "--space",
    type=click.Choice(["LPS", "RAS"]),
    help="Anatomical coordinate system of the output, for files of 3D Slicer.",
)
@options.reading
def command(
    source: tuple[str, ...],
    target: str,
    to_format: str | None,
    space: str | None,
    console: Console,
) -> None:
    """Convert landmark files to another format.

    OUT is a file, or a folder for formats with one shape per file (give --to). A name that is no
    format, such as --to help, lists them all.
    """
    with console.note_warnings():
        shapes = read_input(source, space=space)
        sources = shapes.metadata.get("sources", ())
        refuse_input(Path(target), *sources)
        if Path(target).is_dir():
            refuse_inputs(sources, Path(target), manifest=HIDDEN_MANIFEST)
        write_shapes_as(console, shapes, target, to_format)
    console.print_line(
        f"{shapes.n_shapes} shapes, {shapes.n_landmarks} landmarks, written to {target}"
    )
    console.print_json(
        {
            "shapes": shapes.n_shapes,
            "landmarks": shapes.n_landmarks,
            "output": target,
            "notes": console.notes,
        }
    )
