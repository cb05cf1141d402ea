"""``defgpa convert``: from one landmark format to another."""

from __future__ import annotations

from pathlib import Path

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import read_input
from defgpa.cli._output import refuse_input, written_as


@options.command("convert", "defgpa convert skulls/*.mrk.json skulls.tps")
@click.argument("source", nargs=-1, required=True, metavar="IN...", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@options.reading
@options.writing
@click.option("--space", type=click.Choice(["LPS", "RAS"]), help="Bring Slicer files to it.")
def command(
    source: tuple[str, ...],
    target: str,
    to_format: str | None,
    space: str | None,
    console: Console,
) -> None:
    """Write shapes in another format; OUT is a file, or a folder where a file holds one shape."""
    with console.noting():
        shapes = read_input(source, space=space)
        refuse_input(Path(target), *shapes.metadata.get("sources", ()))
        written_as(console, shapes, target, to_format)
    console.say(f"{shapes.n_shapes} shapes, {shapes.n_landmarks} landmarks, written to {target}")
    console.result(
        {
            "shapes": shapes.n_shapes,
            "landmarks": shapes.n_landmarks,
            "output": target,
            "notes": console.notes,
        }
    )
