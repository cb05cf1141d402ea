"""``defgpa report``: one HTML page about a saved result."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import add_covariates, add_links
from defgpa.cli._output import check_output_file, format_command, mark_written, refuse_input


@options.command("report", "defgpa report result/result.npz -o report.html --data species.csv")
@click.argument("result", type=click.Path())
@options.output_option("FILE", "The HTML file.", default="report.html", show_default=True)
@options.title
@options.links
@options.option("--draw-all", is_flag=True, help="Draw every landmark, however many.")
@options.covariates
def command(
    result: str,
    output: str,
    title: str | None,
    links: str | None,
    draw_all: bool,
    data: str | None,
    console: Console,
) -> None:
    """Write one self-contained HTML page about a saved result.

    The columns of --data colour its plots: species, sex, site.
    """
    from defgpa.io import load
    from defgpa.report import write_report

    refuse_input(check_output_file(output), result, *filter(None, [data]))
    settings: dict[str, Any] = {"max_drawn": None} if draw_all else {}
    with console.note_warnings():
        alignment = load(result)
        shapes = add_links(add_covariates(console, alignment.shapes, data), links)
        provenance = {"command": _find_command(Path(result)), "result": result}
        with console.show_activity("Writing the report"):
            write_report(
                replace(alignment, shapes=shapes),
                output,
                title=title,
                provenance=provenance,
                **settings,
            )
    mark_written(output)
    console.print_line(f"Written: {output}")
    console.print_json({"output": output, "notes": console.notes})


def _find_command(result: Path) -> str:
    """Return the command that made a result, by its summary; else the one that makes this page."""
    try:
        summary = json.loads((result.parent / "summary.json").read_text(encoding="utf-8"))
        if result.name in summary["files"]:
            return format_command(str(summary["command"]), str(summary.get("folder", "")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass  # no summary, or one of another program
    return format_command()
