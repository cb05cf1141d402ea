"""``defgpa report``: one HTML page about a saved result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._output import output_file, refuse_input, to_paste


@options.command("report", "defgpa report result/result.npz -o report.html")
@click.argument("result", type=click.Path())
@click.option("--output", "-o", default="report.html", show_default=True, type=click.Path())
@click.option("--draw-all", is_flag=True, help="Draw every shape and landmark, however many.")
def command(result: str, output: str, draw_all: bool, console: Console) -> None:
    """One self-contained HTML page about a saved result."""
    from defgpa.io import load
    from defgpa.report import write_report

    refuse_input(output_file(output), result)
    more: dict[str, Any] = {"most_drawn": None} if draw_all else {}
    with console.noting():
        known = {"command": _command_of(Path(result)), "result": result}
        write_report(load(result), output, provenance=known, **more)
    console.say(f"Written: {output}")
    console.result({"output": output, "notes": console.notes})


def _command_of(result: Path) -> str:
    """What was typed to make a result, as the summary beside it knows; else to make this page."""
    try:
        summary = json.loads((result.parent / "summary.json").read_text(encoding="utf-8"))
        known = result.name in summary["files"]
        own = (str(summary["command"]), str(summary.get("folder", ""))) if known else ()
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        own = ()
    return to_paste(*own)
