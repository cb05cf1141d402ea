"""``defgpa convert``: from one landmark format to another."""

from __future__ import annotations

import click

from defgpa.cli._console import Console
from defgpa.cli._input import read_input
from defgpa.cli._options import reading, speaking


@click.command("convert", epilog="Example: defgpa convert skulls/*.mrk.json skulls.tps")
@click.argument("source", nargs=-1, required=True, metavar="IN...")
@click.argument("target", metavar="OUT")
@reading
@click.option("--to", "to_format", metavar="NAME", help="Output format, if the suffix is silent.")
@click.option("--space", type=click.Choice(["LPS", "RAS"]), help="Bring Slicer files to it.")
@speaking
def command(
    source: tuple[str, ...],
    target: str,
    format_: str | None,
    missing: str,
    layout: str,
    lenient: bool,
    to_format: str | None,
    space: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write shapes in another format; OUT is a file, or a folder where a file holds one shape."""
    from defgpa.io import write_shapes

    console = Console(quiet, as_json)
    with console.noting():
        shapes = read_input(source, format_, missing, layout, lenient, space)
        write_shapes(shapes, target, format=to_format)
    console.say(f"{shapes!r} written to {target}")
    console.result({"shapes": shapes.n_shapes, "landmarks": shapes.n_landmarks, "output": target})
