"""``defgpa tune``: how stiff should the warps be?"""

from __future__ import annotations

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._fit import fitted
from defgpa.cli._input import fitting_input, proportions_value, read_input, warp_model
from defgpa.cli._output import output_file, save_picture


@options.command("tune", "defgpa tune wings.tps --plot path.png")
@options.input_argument
@options.warping
@options.proportioning
@options.folding
@click.option("--plot", type=click.Path(), help="Also draw the path into this picture.")
@options.reading
def command(
    source: tuple[str, ...],
    warp: str,
    points_per_axis: str | None,
    proportions: str,
    fold_size: int | None,
    jobs: int | None,
    plot: str | None,
    console: Console,
) -> None:
    """Choose the smoothing by cross-validation.

    Prints RMSE_r, RMSE_d and the cross-validation error over the smoothing, and the best value.
    """
    from defgpa.estimators import DefGPA

    if warp == "affine":
        raise click.UsageError("--warp affine does not bend: there is no smoothing to choose.")
    model = warp_model(warp, points_per_axis, None, None)
    if plot is not None:
        _require_picture(plot)
    with console.noting():
        shapes = fitting_input(console, read_input(source))
        estimator = DefGPA(model, proportions=proportions_value(proportions))
        done = fitted(console, shapes, estimator, True, fold_size, jobs)
    path = done.path
    console.tell(*path.findings)
    columns = (path.values, path.rmse_reference, path.rmse_datum, path.cve, path.foldovers)
    marks = {path.least_value: "least CVE", path.best_value: "← best"}
    rows = [
        [f"{tau:.3g}", float(r), float(d), float(c), int(over), marks.get(tau, "")]
        for tau, r, d, c, over in zip(*columns, strict=True)
    ]
    console.table("Smoothing", ["smoothing", "RMSE_r", "RMSE_d", "CVE", "foldovers", ""], rows)
    console.say(f"Best: --smoothing {path.best_value:.6g}")
    if plot is not None:
        save_picture(plot, "smoothing_path", path, size=(7, 4.5))
        console.say(f"Written: {plot}")
    console.result(
        {
            "smoothing": path.values,
            "rmse_reference": path.rmse_reference,
            "rmse_datum": path.rmse_datum,
            "cve": path.cve,
            "best": path.best_value,
            "fold_size": done.fold_size,
            "foldovers": path.foldovers,
            **console.told(),
        }
    )


def _require_picture(target: str) -> None:
    """An error before any work is done where the picture cannot be drawn after it."""
    import defgpa.plot  # noqa: F401, I001  (says which extra to install without matplotlib)
    from matplotlib.figure import Figure

    kinds = Figure().canvas.get_supported_filetypes()
    suffix = output_file(target, "--plot").suffix.lower().removeprefix(".")
    if suffix not in kinds:
        raise click.BadParameter(
            f"must end in one of {', '.join(f'.{kind}' for kind in sorted(kinds))}; got {target}.",
            param_hint="--plot",
        )
