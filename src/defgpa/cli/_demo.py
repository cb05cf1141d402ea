"""``defgpa demo``: a whole analysis of a bundled set."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

from defgpa.cli import _options as options
from defgpa.cli._compare import show_comparison
from defgpa.cli._console import Console
from defgpa.cli._fit import (
    MethodOptions,
    collect_results,
    describe_parameters,
    fit_shapes,
    show_choice,
    show_results,
    tabulate_path,
    write_fit_report,
)
from defgpa.cli._output import can_report, check_output_folder, open_results, show_run


@options.command("demo", "defgpa demo --output demo")
@options.output_option("FOLDER", "Folder for the results.", default="demo", show_default=True)
def command(output: str, console: Console) -> None:
    """Run a whole analysis on a bundled set of insect wings.

    Reads 24 wings of two species with a few landmarks missing, compares rigid, affine and
    deformable alignment, chooses the best and its smoothing, fits, and writes results and report.
    The wings are put beside them as wings.tps, to try the other commands on.
    """
    from defgpa.datasets import load_wings
    from defgpa.io.atomic import write_text
    from defgpa.result_folder import write_alignment

    folder = check_output_folder(output)
    with console.note_warnings():
        shapes = load_wings()
        n_missing = int((~shapes.visible).sum())
        console.print_line(
            f"{shapes.n_shapes} insect wings, simulated: {shapes.n_landmarks} landmarks, "
            f"{n_missing} of {shapes.visible.size} missing"
        )
        fit = fit_shapes(console, shapes, MethodOptions())
        alignment = fit.alignment.posed_like(shapes[0])
    results = collect_results(alignment, fit)
    assert fit.comparison is not None
    summary: dict[str, object] = {
        "figures": results,
        "parameters": {**describe_parameters(fit), "pose": shapes.names[0]},
        "smoothing_path": tabulate_path(fit.path),
        "comparison": [row.to_dict() for row in fit.comparison],
    }
    with open_results(console, folder, summary) as new_folder:
        sample = files("defgpa.datasets") / "sample" / "wings.tps"
        write_text(new_folder / "wings.tps", sample.read_text(encoding="utf-8"))
        write_alignment(alignment, new_folder)
        if can_report():
            with console.show_activity("Writing the report"):
                title = "Insect wings, aligned with deformations"
                write_fit_report(alignment, fit, new_folder, title)
        else:
            console.note(
                'There is no report without plotly and jinja2: pip install "defgpa[report]"'
            )
    show_comparison(console, fit.comparison)
    show_results(console, results)
    show_choice(console, fit)
    show_run(console, folder, summary)
    wings, result = folder / "wings.tps", folder / "result.npz"
    console.print_line("\nTry next:")
    for words in (
        f"defgpa info {quote(wings)}",
        f"defgpa fit {quote(wings)} --method rigid -o rigid/",
        f"defgpa test {quote(result)} --allometry",
        "defgpa fit YOUR_FILES -o result/ --report",
    ):
        console.print_line(f"  {words}")
    if can_report():
        console.print_line(f"Open the report in a browser: {folder / 'report.html'}")


def quote(path: Path) -> str:
    """Quote a path for the shell."""
    return shlex.quote(str(path))
