"""``defgpa tune``: how stiff should the warps be?"""

from __future__ import annotations

import shlex

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._fit import MethodOptions, choose_smoothing
from defgpa.cli._input import list_reading_words, prepare_for_fit, read_input
from defgpa.cli._output import check_output_file, mark_written, save_figure
from defgpa.diagnostics.findings import Problem


@options.command("tune", "defgpa tune wings.tps --plot path.png")
@options.input_argument
@options.cross_validation
@options.robust_errors
@options.warping
@options.proportions
@options.option(
    "--plot", type=click.Path(), metavar="FILE", help="Also draw the errors into this picture."
)
@options.reading
def command(
    source: tuple[str, ...],
    fold_size: int | None,
    jobs: int | None,
    robust: bool,
    warp: str | None,
    points_per_axis: str | None,
    proportions: str,
    plot: str | None,
    console: Console,
) -> None:
    """Choose the smoothing of the warps by cross-validation.

    Prints RMSE_r, RMSE_d and the cross-validation error (CVE) over the smoothing. Of the values
    within one standard error of the least CVE the stiffest that folds nowhere is chosen.
    """
    if warp == "affine":
        raise click.UsageError("--warp affine does not bend: there is no smoothing to choose.")
    choice = MethodOptions(
        "deformable",
        warp,
        points_per_axis,
        smoothing="auto",
        proportions=proportions,
        fold_size=fold_size,
        jobs=jobs,
    )
    estimator = choice.make_estimator().set_params(robust=robust)
    if plot is not None:
        _require_figure_format(plot)
    with console.note_warnings():
        shapes = prepare_for_fit(console, read_input(source))
        fit = choose_smoothing(console, shapes, estimator, choice)
    path = fit.path
    assert path is not None
    # the choice of a stiffer value is said below, with what it costs
    console.note_findings(*(f for f in path.findings if f.problem != Problem.STIFFER_PREFERRED))
    columns = (path.values, path.rmse_reference, path.rmse_datum, path.cve, path.foldovers)
    marks = {path.least_value: "least CVE", path.best_value: "← chosen"}
    rows = [
        [f"{value:.3g}", float(r), float(d), float(c), int(count), marks.get(value, "")]
        for value, r, d, c, count in zip(*columns, strict=True)
    ]
    console.print_table(
        "Smoothing", ["smoothing", "RMSE_r", "RMSE_d", "CVE", "foldovers", ""], rows
    )
    console.print_paragraph(path.explain_choice())
    console.print_line(
        f"Next: {shlex.join(_suggest_command(source, choice, path.best_value, robust))}"
    )
    if plot is not None:
        save_figure(plot, "smoothing_path", path, size=(7, 4.5))
        mark_written(plot)
        console.print_line(f"Written: {plot}")
    console.print_json(
        {
            "smoothing": path.values,
            "rmse_reference": path.rmse_reference,
            "rmse_datum": path.rmse_datum,
            "cve": path.cve,
            "best": path.best_value,
            "least": path.least_value,
            "fold_size": fit.fold_size,
            "foldovers": path.foldovers,
            **console.collect_messages(),
        }
    )


def _suggest_command(
    source: tuple[str, ...], choice: MethodOptions, smoothing: float, robust: bool
) -> list[str]:
    """Return the words of the fit with the smoothing chosen here."""
    words = ["defgpa", "fit", *source, "--smoothing", f"{smoothing:.6g}"]
    if choice.warp is not None:
        words += ["--warp", choice.warp]
    if choice.points_per_axis is not None:
        words += ["--points-per-axis", choice.points_per_axis]
    if choice.proportions != "rigid":
        words += ["--proportions", choice.proportions]
    if robust:
        words.append("--robust")
    return words + list_reading_words()


def _require_figure_format(target: str) -> None:
    """Refuse a picture that could not be drawn, before any work is done."""
    import defgpa.plot  # noqa: F401, I001  (says which extra to install without matplotlib)
    from matplotlib.figure import Figure

    suffixes = Figure().canvas.get_supported_filetypes()
    suffix = check_output_file(target, "--plot").suffix.lower().removeprefix(".")
    if suffix not in suffixes:
        names = ", ".join(f".{name}" for name in sorted(suffixes))
        raise click.BadParameter(f"must end in one of {names}; got {target}.", param_hint="--plot")
