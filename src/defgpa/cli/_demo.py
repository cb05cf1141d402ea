"""``defgpa demo``: the whole thing on a bundled set."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from defgpa.cli._console import Console
from defgpa.cli._fit import fitted
from defgpa.cli._options import speaking
from defgpa.cli._output import (
    figures,
    list_files,
    show_figures,
    versions,
    write_alignment,
    write_summary,
)


@click.command("demo", epilog="Example: defgpa demo --output demo")
@click.option("--output", "-o", default="demo", show_default=True, type=click.Path())
@speaking
def command(output: str, quiet: bool, as_json: bool) -> None:
    """The whole thing on a bundled set of insect wings.

    Reads 24 wings of two species with a few landmarks missing, compares rigid, affine and
    deformable alignment, chooses the smoothing, fits, and writes results and report.
    """
    from defgpa.datasets import load_wings
    from defgpa.evaluate import compare
    from defgpa.report import write_report
    from defgpa.warps import ThinPlateSpline

    console = Console(quiet, as_json)
    folder = Path(output)
    with console.noting():
        shapes = load_wings()
        console.say(f"{shapes!r}: insect wings, made by the package itself")
        with console.progress("Comparing methods") as tick:
            table = compare(shapes, fold_size=1, progress=tick)
        done = fitted(console, shapes, ThinPlateSpline(), True, 1, None)
        alignment = done.alignment.posed_like(shapes[0])
        files = write_alignment(alignment, folder)
        write_report(
            alignment,
            folder / "report.html",
            smoothing=done.path,
            cross_validation=done.cv,
            comparison=table,
            title="Insect wings, aligned with deformations",
            provenance={"input": "the bundled sample wings.tps", "warp": repr(done.model)},
        )
    numbers = figures(alignment, done.cve)
    summary = {
        "figures": numbers,
        "parameters": {"warp": repr(done.model), "fold_size": 1, "pose": shapes.names[0]},
        "smoothing_path": done.path_table,
        "comparison": [asdict(row) for row in table],
        "versions": versions(),
        "notes": console.notes,
    }
    files += [str(folder / "report.html"), write_summary(folder, summary)]
    console.say("")
    console.say(str(table))
    show_figures(console, numbers)
    list_files(console, files)
    console.say(f"\nOpen the report in a browser: {folder / 'report.html'}")
    console.result(summary)
