"""``defgpa demo``: the whole thing on a bundled set."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._fit import (
    Fitted,
    figures,
    fitted,
    path_table,
    show_figures,
    write_alignment,
)
from defgpa.cli._output import can_report, command_line, output_folder, results, tell_run

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.evaluate import Comparison


@options.command("demo", "defgpa demo --output demo")
@click.option("--output", "-o", default="demo", show_default=True, type=click.Path())
def command(output: str, console: Console) -> None:
    """The whole thing on a bundled set of insect wings.

    Reads 24 wings of two species with a few landmarks missing, compares rigid, affine and
    deformable alignment, chooses the smoothing, fits, and writes results and report. The wings
    are put beside them as wings.tps, to try the other commands on.
    """
    from defgpa.datasets import load_wings
    from defgpa.estimators import DefGPA
    from defgpa.evaluate import compare
    from defgpa.warps import ThinPlateSpline

    folder = output_folder(output)
    with console.noting():
        shapes = load_wings()
        unseen = int((~shapes.visible).sum())
        console.say(
            f"{shapes.n_shapes} insect wings, made by the package itself: {shapes.n_landmarks} "
            f"landmarks, {unseen} of {shapes.visible.size} not seen"
        )
        with console.progress("Comparing methods") as tick:
            table = compare(shapes, fold_size=1, progress=tick)
        done = fitted(console, shapes, DefGPA(ThinPlateSpline()), True, 1, None)
        alignment = done.alignment.posed_like(shapes[0])
    numbers = figures(alignment, done)
    summary: dict[str, Any] = {
        "figures": numbers,
        "parameters": {"warp": repr(done.estimator.model), "fold_size": 1, "pose": shapes.names[0]},
        "smoothing_path": path_table(done.path),
        "comparison": [asdict(row) for row in table],
    }
    with results(console, folder, summary) as partial:
        _sample(partial)
        write_alignment(alignment, partial)
        _reported(console, done, alignment, table, partial)
    console.say(f"\n{table}\n")
    show_figures(console, numbers)
    tell_run(console, folder, summary)
    if can_report():
        console.say(f"\nOpen the report in a browser: {folder / 'report.html'}")


def _sample(folder: Path) -> None:
    """The bundled file, put where it can be read and changed."""
    from importlib.resources import files

    from defgpa.io.atomic import write_text

    text = (files("defgpa.datasets") / "sample" / "wings.tps").read_text(encoding="utf-8")
    write_text(folder / "wings.tps", text)


def _reported(
    console: Console, done: Fitted, alignment: Alignment, table: Comparison, folder: Path
) -> None:
    """The report, or a note on what to install for it."""
    if not can_report():
        console.note("There is no report without plotly and jinja2: pip install 'defgpa[report]'")
        return
    from defgpa.report import write_report

    write_report(
        alignment,
        folder / "report.html",
        smoothing=done.path,
        cross_validation=done.cv,
        comparison=table,
        title="Insect wings, aligned with deformations",
        provenance={"command": command_line(), "result": "result.npz"},
    )
