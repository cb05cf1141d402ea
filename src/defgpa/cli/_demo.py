"""``defgpa demo``: the whole thing on a bundled set."""

from __future__ import annotations

from dataclasses import asdict
from importlib.resources import files
from typing import Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._fit import figures, fitted, path_table, show_figures, write_alignment
from defgpa.cli._output import can_report, command_line, output_folder, results, tell_run


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
    from defgpa.io.atomic import write_text
    from defgpa.model_selection import compare
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
        sample = files("defgpa.datasets") / "sample" / "wings.tps"
        write_text(partial / "wings.tps", sample.read_text(encoding="utf-8"))
        write_alignment(alignment, partial)
        if can_report():
            from defgpa.report import write_report

            write_report(
                alignment,
                partial / "report.html",
                smoothing=done.path,
                cross_validation=done.cv,
                comparison=table,
                title="Insect wings, aligned with deformations",
                provenance={"command": command_line(), "result": "result.npz"},
            )
        else:
            console.note(
                "There is no report without plotly and jinja2: pip install 'defgpa[report]'"
            )
    console.say(f"\n{table}\n")
    show_figures(console, numbers)
    tell_run(console, folder, summary)
    if can_report():
        console.say(f"\nOpen the report in a browser: {folder / 'report.html'}")
