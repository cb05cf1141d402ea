"""``defgpa compare``: is deformation worth it on these data?"""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import fitting_input, fold_size_for, read_input
from defgpa.cli._output import output_file
from defgpa.errors import DefgpaError

if TYPE_CHECKING:
    from defgpa.model_selection import Comparison


@options.command("compare", "defgpa compare wings.tps --fold-size 2 -o table.md")
@options.input_argument
@options.folding
@click.option(
    "--output", "-o", type=click.Path(), help="Also write the table: .md, .csv, .tex or .txt."
)
@click.option(
    "--published", is_flag=True, help="The paper's six methods, with the paper's settings."
)
@click.option("--theta", type=float, help="With --published: the paper's absolute smoothing.")
@options.reading
def command(
    source: tuple[str, ...],
    fold_size: int | None,
    jobs: int | None,
    output: str | None,
    published: bool,
    theta: float | None,
    console: Console,
) -> None:
    """Rigid, affine and deformable alignment side by side: is deformation worth it?

    The paper's table on your own files: RMSE_d, RMSE_r and the cross-validation error of rigid,
    affine and thin-plate spline alignment, each also in per cent of the size of its reference.
    The methods are ranked by the last, and a sentence says what follows from it.
    """
    from defgpa.model_selection import compare, published_methods

    if theta is not None and not published:
        raise click.UsageError("--theta is a setting of the paper: add --published.")
    writers = {".md": "to_markdown", ".csv": "to_csv", ".tex": "to_latex", ".txt": "__str__"}
    suffix = None if output is None else output[output.rfind(".") :].lower()
    if suffix is not None and suffix not in writers:
        raise click.BadParameter("must end in .md, .csv, .tex or .txt.", param_hint="--output")
    if output is not None:
        output_file(output)
    with console.noting():
        shapes = fitting_input(console, read_input(source))
        size = fold_size_for(shapes, fold_size)
        with console.progress("Comparing") as tick:
            methods = published_methods(theta) if published else None
            table = compare(shapes, methods, fold_size=size, n_jobs=jobs, progress=tick)
    if table.best is None:
        raise DefgpaError(f"No method can be judged on these shapes. {table.rows[0].failure}")
    console.tell(*table.findings)
    table = _concluded(table, source, published, theta)
    if output is not None and suffix is not None:
        from defgpa.io.atomic import write_text

        write_text(output, str(getattr(table, writers[suffix])()))
    console.say(str(table))
    if output is not None:
        console.say(f"Written: {output}")
    console.result(
        {
            "rows": [row.to_dict() for row in table],
            "ranking": table.ranking,
            "verdict": None if table.verdict is None else asdict(table.verdict),
            "fold_size": size,
            **console.told(),
        }
    )


def _concluded(
    table: Comparison, source: tuple[str, ...], published: bool, theta: float | None
) -> Comparison:
    """The table with a verdict that names the command to go on with."""
    verdict = table.verdict
    if verdict is None:
        return table
    # where rigid and deformable predict alike, what lies between them is the next to try
    words = _fit_options(verdict.best, theta) if verdict.clear else ["--rigidity", "auto"]
    if published and "--rigidity" not in words:
        words += ["--proportions", "prior"]
    step = shlex.join(["defgpa", "fit", *source, *words, "--report"])
    return replace(table, verdict=replace(verdict, next_step=step))


def _fit_options(best: str, theta: float | None) -> list[str]:
    """What makes ``defgpa fit`` fit the best method, its smoothing chosen if it has one."""
    if best.startswith("TPS_r"):
        smoothing = ["--smoothing", "auto"] if theta is None else ["--theta", f"{theta:g}"]
        return ["--points-per-axis", best[6:-1], *smoothing]
    if best.startswith("ELA"):
        return ["--points-per-axis", best[4:-1], "--rigidity", "auto"]
    return ["--warp", "affine", *([] if best.startswith("AFF") else ["--rigidity", "inf"])]
