"""``defgpa complete``: missing landmarks estimated, each with an uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from defgpa.cli._console import Console
from defgpa.cli._doubts import fitting_input
from defgpa.cli._input import read_input, smoothing_value, warp_model
from defgpa.cli._options import input_argument, reading, smoothing, speaking, warping
from defgpa.cli._output import (
    list_run,
    output_folder,
    refuse_inputs,
    results,
    write_shapes_twice,
    write_summary,
)

if TYPE_CHECKING:
    from defgpa.completion import Completion

_MOST_ROWS = 15


@click.command("complete", epilog="Example: defgpa complete skulls.tps -o completed/")
@input_argument
@click.option(
    "--output", "-o", type=click.Path(), help="Folder for the results; INPUT-completed by default."
)
@click.option(
    "--method",
    type=click.Choice(["statistics", "warp", "spline"]),
    help="By default the one that errs least on landmarks of this set that are known.",
)
@warping
@smoothing
@reading
@speaking
def command(
    source: tuple[str, ...],
    output: str | None,
    method: str | None,
    warp: str,
    points_per_axis: str | None,
    smoothing: str | None,
    theta: float | None,
    format_: str | None,
    missing: str,
    layout: str,
    lenient: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Estimate every missing landmark.

    Writes the completed shapes (as CSV with a column that names what was estimated, and in the
    input's own format) and estimated.csv: shape, landmark, uncertainty (expected distance from
    the truth), and whether it lies far outside what the specimen shows. Methods: the statistics
    of the other specimens, the inverse warp, the thin-plate spline of the mean.
    """
    from defgpa.completion import complete
    from defgpa.estimators import DefGPA
    from defgpa.exports import write_completed, write_estimates

    console = Console(quiet, as_json)
    if smoothing == "auto":
        raise click.UsageError("Choose the smoothing first: defgpa tune.")
    model = warp_model(warp, points_per_axis, smoothing_value(smoothing), theta)
    folder = output_folder(output, source, "completed")
    with console.noting():
        shapes = fitting_input(console, read_input(source, format_, missing, layout, lenient))
        refuse_inputs(shapes.metadata.get("sources", ()), folder, "completed", "estimated")
        done = complete(DefGPA(model).fit(shapes).alignment_, method)
    summary: dict[str, Any] = {
        "estimated": int(done.estimated.sum()),
        "method": done.method,
        "errors": dict(done.errors),
        "far": int(done.far.sum()),
        "input": list(source),
    }
    with results(folder) as partial:
        with console.noting():
            write_shapes_twice(done.shapes, partial, "completed")
            write_completed(done, partial / "completed.csv")
            write_estimates(done, partial / "estimated.csv")
        summary = write_summary(console, partial, summary)
    _show(console, done)
    list_run(console, folder, summary["files"])
    console.result(summary)


def _show(console: Console, done: Completion) -> None:
    """What was estimated how well."""
    import numpy as np

    if not done.estimated.any():
        console.say("Nothing is missing.")
        return
    rows = [
        [name, error, "used" if name == done.method else ""] for name, error in done.errors.items()
    ]
    console.table("Tried on known landmarks", ["method", "error / size", ""], rows)
    places = np.argwhere(done.estimated)
    order = np.argsort([-done.uncertainty[i, j] for i, j in places], kind="stable")
    shown = [
        [
            done.shapes.names[i],
            done.shapes.landmarks[j],
            float(done.uncertainty[i, j]),
            "far outside what is seen" if done.far[i, j] else "",
        ]
        for i, j in places[order[:_MOST_ROWS]]
    ]
    title = f"{len(places)} estimated, the least certain first"
    console.table(title, ["shape", "landmark", "uncertainty", ""], shown)
