"""``defgpa complete``: missing landmarks estimated, each with an uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import fitting_input, read_input, smoothing_value, warp_model
from defgpa.cli._output import (
    output_folder,
    refuse_inputs,
    results,
    tell_run,
    write_shapes_twice,
)

if TYPE_CHECKING:
    from defgpa.completion import Completion

_MOST_ROWS = 15
_FAR = "far outside what is seen"


@options.command("complete", "defgpa complete skulls.tps -o completed/")
@options.input_argument
@click.option(
    "--output", "-o", type=click.Path(), help="Folder for the results; INPUT-completed by default."
)
@click.option(
    "--method",
    type=click.Choice(["statistics", "warp", "spline"]),
    help="By default the one that errs least on landmarks of this set that are known.",
)
@options.warping
@options.smoothing
@options.reading
def command(
    source: tuple[str, ...],
    output: str | None,
    method: str | None,
    warp: str,
    points_per_axis: str | None,
    smoothing: str | None,
    theta: float | None,
    console: Console,
) -> None:
    """Estimate every missing landmark.

    Writes the completed shapes (as CSV with a column that names what was estimated, and in the
    input's own format) and estimated.csv: shape, landmark, uncertainty (expected distance from
    the truth), and whether it lies far outside what the specimen shows. Methods: the statistics
    of the other specimens, the inverse warp, the thin-plate spline of the mean.
    """
    from defgpa.completion import complete
    from defgpa.estimators import DefGPA
    from defgpa.exports import write_estimates
    from defgpa.io import write_shapes

    if smoothing == "auto":
        raise click.UsageError("Choose the smoothing first: defgpa tune.")
    model = warp_model(warp, points_per_axis, smoothing_value(smoothing), theta)
    folder = output_folder(output, source, "completed")
    with console.noting():
        shapes = fitting_input(console, read_input(source))
        refuse_inputs(shapes.metadata.get("sources", ()), folder, "completed", "estimated")
        done = complete(DefGPA(model).fit(shapes).alignment_, method)
    summary: dict[str, Any] = {
        "estimated": int(done.estimated.sum()),
        "method": done.method,
        "errors": dict(done.errors),
        "far": int(done.far.sum()),
        "input": list(source),
    }
    with results(console, folder, summary) as partial:
        write_shapes_twice(done.shapes, partial, "completed")
        # a column has the marks: no need of the comments, which a .tps must do with
        said = shapes.metadata.get("comments") or (None,) * len(shapes)
        plain = done.shapes.with_metadata(comments=said)
        write_shapes(plain, partial / "completed.csv", format="csv")
        write_estimates(done, partial / "estimated.csv")
    _show(console, done)
    tell_run(console, folder, summary)


def _show(console: Console, done: Completion) -> None:
    """What was estimated how well."""
    import numpy as np

    from defgpa.statistics import centroid_sizes

    if not done.estimated.any():
        console.say("Nothing is missing.")
        return
    rows = [
        [name, error, "used" if name == done.method else ""] for name, error in done.errors.items()
    ]
    console.table("Tried on known landmarks", ["method", "error / size", ""], rows)
    places = np.argwhere(done.estimated)
    shapes, doubt = done.shapes, done.uncertainty / centroid_sizes(done.shapes)[:, None]
    if len(places) > _MOST_ROWS:
        _show_shapes(console, done, doubt)
        return
    order = np.argsort(-doubt[done.estimated], kind="stable")
    shown = [
        [
            shapes.names[i],
            shapes.landmarks[j],
            float(done.uncertainty[i, j]),
            _FAR * int(done.far[i, j]),
        ]
        for i, j in places[order]
    ]
    title = f"{len(places)} estimated, the least certain first"
    console.table(title, ["shape", "landmark", "uncertainty", ""], shown)


def _show_shapes(console: Console, done: Completion, doubt: Any) -> None:
    """Too many landmarks to name: how many of each shape, and how uncertain they are."""
    import numpy as np

    count, far = done.estimated.sum(axis=1), done.far.sum(axis=1)
    relative = np.sqrt((doubt**2).sum(axis=1) / np.maximum(count, 1))
    order = [i for i in np.argsort(-relative, kind="stable") if count[i]]
    shown = [
        [done.shapes.names[i], f"{count[i]:,}", float(relative[i]), f"{far[i]:,}" * bool(far[i])]
        for i in order[:_MOST_ROWS]
    ]
    title = f"{int(count.sum()):,} estimated in {len(order)} shapes, the least certain first"
    console.table(title, ["shape", "estimated", "uncertainty / size", _FAR], shown)
