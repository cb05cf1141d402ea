"""``defgpa complete``: missing landmarks estimated, each with an uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import parse_smoothing, prepare_for_fit, read_input, warp_model
from defgpa.cli._output import (
    check_output_folder,
    open_results,
    refuse_inputs,
    show_run,
)

if TYPE_CHECKING:
    from defgpa.arrays import Array
    from defgpa.completion import Completion

_MAX_ROWS = 15
_FAR_LABEL = "far outside"


@options.command("complete", "defgpa complete skulls.tps -o completed/")
@options.input_argument
@options.method_option(
    "--method",
    type=click.Choice(["statistics", "warp", "spline"]),
    help="Default: the one with the least error on landmarks that are not missing.",
)
@options.warping
@options.smoothing
@options.output_option("FOLDER", "Folder for the results; INPUT-completed by default.")
@options.reading
def command(
    source: tuple[str, ...],
    method: str | None,
    warp: str | None,
    points_per_axis: str | None,
    smoothing: str | None,
    theta: float | None,
    output: str | None,
    console: Console,
) -> None:
    """Estimate missing landmarks, each with an uncertainty.

    Writes the completed shapes (as CSV with a column that names what was estimated, and in the
    input's own format) and estimated.csv: shape, landmark, uncertainty (expected distance from
    the truth), and whether it lies far outside what the specimen shows. Methods: the statistics
    of the other specimens, the inverse of the warp, the thin-plate spline of the mean shape.
    """
    from defgpa.completion import complete
    from defgpa.estimators import DefGPA
    from defgpa.exports import write_estimates
    from defgpa.io import write_shapes
    from defgpa.result_folder import write_shapes_twice

    if smoothing == "auto":
        raise click.UsageError("Choose the smoothing first: defgpa tune.")
    model = warp_model(warp or "tps", points_per_axis, parse_smoothing(smoothing), theta)
    folder = check_output_folder(output, source, "completed")
    with console.note_warnings():
        shapes = prepare_for_fit(console, read_input(source))
        refuse_inputs(shapes.metadata.get("sources", ()), folder, "completed", "estimated")
        result = complete(DefGPA(model).fit(shapes).alignment_, method)
    summary: dict[str, object] = {
        "estimated": int(result.estimated.sum()),
        "method": result.method,
        "errors": dict(result.errors),
        "far": int(result.far.sum()),
        "input": list(source),
    }
    with open_results(console, folder, summary) as new_folder:
        write_shapes_twice(result.shapes, new_folder, "completed")
        # a column has the marks: no need of the comments, which a .tps must do with
        comments = shapes.metadata.get("comments") or (None,) * len(shapes)
        table = result.shapes.with_metadata(comments=comments)
        write_shapes(table, new_folder / "completed.csv", format="csv")
        write_estimates(result, new_folder / "estimated.csv")
    _show(console, result)
    show_run(console, folder, summary)


def _show(console: Console, result: Completion) -> None:
    """Show what was estimated, and how well."""
    import numpy as np

    from defgpa.statistics import centroid_sizes

    if not result.estimated.any():
        console.print_line("Nothing is missing.")
        return
    rows = [
        [name, error, "used" if name == result.method else ""]
        for name, error in result.errors.items()
    ]
    console.print_table(
        "Errors on landmarks that are not missing", ["method", "error / size", ""], rows
    )
    places = np.argwhere(result.estimated)
    shapes, relative = result.shapes, result.uncertainty / centroid_sizes(result.shapes)[:, None]
    if len(places) > _MAX_ROWS:
        _show_by_shape(console, result, relative)
        return
    order = np.argsort(-relative[result.estimated], kind="stable")
    shown = [
        [
            shapes.names[i],
            shapes.landmarks[j],
            float(result.uncertainty[i, j]),
            _FAR_LABEL * int(result.far[i, j]),
        ]
        for i, j in places[order]
    ]
    title = f"{len(places)} landmarks estimated, the least certain first"
    console.print_table(title, ["shape", "landmark", "uncertainty", ""], shown)


def _show_by_shape(console: Console, result: Completion, relative: Array) -> None:
    """Show how many landmarks of each shape were estimated, and how uncertain they are."""
    import numpy as np

    names, count, n_far = result.shapes.names, result.estimated.sum(axis=1), result.far.sum(axis=1)
    typical = np.sqrt((relative**2).sum(axis=1) / np.maximum(count, 1))
    order = [i for i in np.argsort(-typical, kind="stable") if count[i]]
    rows = [
        [names[i], f"{count[i]:,}", float(typical[i]), f"{n_far[i]:,}" * bool(n_far[i])]
        for i in order[:_MAX_ROWS]
    ]
    title = (
        f"{int(count.sum()):,} landmarks estimated in {len(order)} shapes, the least certain first"
    )
    header = ["shape", "estimated", "uncertainty / size", _FAR_LABEL]
    console.print_table(title, header, rows, total=len(order), subject=": estimated.csv has all")
