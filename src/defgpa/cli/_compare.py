"""``defgpa compare``: is deformation worth it on these data?"""

from __future__ import annotations

from dataclasses import asdict

import click

from defgpa.cli._console import Console
from defgpa.cli._doubts import fitting_input
from defgpa.cli._input import fold_size_for, read_input
from defgpa.cli._options import folding, input_argument, reading, speaking
from defgpa.cli._output import output_file


@click.command("compare", epilog="Example: defgpa compare wings.tps --fold-size 2 -o table.md")
@input_argument
@folding
@click.option(
    "--output", "-o", type=click.Path(), help="Also write the table: .md, .csv, .tex or .txt."
)
@click.option(
    "--published", is_flag=True, help="The paper's six methods, with the paper's proportions."
)
@click.option("--theta", type=float, help="With --published: the paper's absolute smoothing.")
@reading
@speaking
def command(
    source: tuple[str, ...],
    fold_size: int | None,
    jobs: int | None,
    output: str | None,
    published: bool,
    theta: float | None,
    format_: str | None,
    missing: str,
    layout: str,
    lenient: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Rigid, affine and deformable alignment side by side: is deformation worth it?

    The paper's table on your own files: RMSE_d, RMSE_r and the cross-validation error of rigid,
    affine and thin-plate spline alignment.
    """
    from defgpa.evaluate import compare, published_methods

    writers = {".md": "to_markdown", ".csv": "to_csv", ".tex": "to_latex", ".txt": "__str__"}
    suffix = None if output is None else output[output.rfind(".") :].lower()
    if suffix is not None and suffix not in writers:
        raise click.BadParameter("must end in .md, .csv, .tex or .txt.", param_hint="--output")
    if output is not None:
        output_file(output)
    console = Console(quiet, as_json)
    with console.noting():
        shapes = fitting_input(console, read_input(source, format_, missing, layout, lenient))
        size = fold_size_for(shapes, fold_size)
        with console.progress("Comparing") as tick:
            methods = published_methods(theta) if published else None
            table = compare(shapes, methods, fold_size=size, n_jobs=jobs, progress=tick)
    console.tell(*table.findings)
    if output is not None and suffix is not None:
        from defgpa.io.atomic import write_text

        write_text(output, str(getattr(table, writers[suffix])()))
    console.say(str(table))
    console.say(
        f"CVE: {size} of {shapes.n_landmarks} landmarks left out at a time; in % of the size of "
        "the method's own reference."
    )
    if table.verdict is not None:
        console.say(table.verdict.sentence(_next_step(table.verdict.best)))
    if output is not None:
        console.say(f"Written: {output}")
    console.result(
        {
            "rows": [asdict(row) | {"relative_cve": row.relative_cve} for row in table],
            "verdict": None if table.verdict is None else asdict(table.verdict),
            "fold_size": size,
            "notes": console.notes,
            "findings": [finding.to_dict() for finding in console.findings],
        }
    )


def _next_step(best: str) -> str:
    """The command that goes on from the verdict."""
    if best.startswith("TPS_r"):
        return f"defgpa fit --points-per-axis {best[6:-1]} --smoothing auto --report"
    if best.startswith("ELA"):
        return f"defgpa fit --points-per-axis {best[4:-1]} --rigidity auto --report"
    return "defgpa fit --warp affine --report" if best.startswith("AFF") else "defgpa tune"
