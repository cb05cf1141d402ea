"""``defgpa report``: one HTML page about a saved result."""

from __future__ import annotations

import click

from defgpa.cli._console import Console
from defgpa.cli._options import speaking
from defgpa.cli._output import output_file


@click.command("report", epilog="Example: defgpa report result/result.npz -o report.html")
@click.argument("result", type=click.Path())
@click.option("--output", "-o", default="report.html", show_default=True, type=click.Path())
@speaking
def command(result: str, output: str, quiet: bool, as_json: bool) -> None:
    """One self-contained HTML page about a saved result."""
    from defgpa.io import load
    from defgpa.report import write_report

    console = Console(quiet, as_json)
    output_file(output)
    with console.noting():
        write_report(load(result), output)
    console.say(f"Written: {output}")
    console.result({"output": output, "notes": console.notes})
