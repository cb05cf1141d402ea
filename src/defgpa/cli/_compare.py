"""``defgpa compare``: is deformation worth it on these data?"""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import list_reading_words, prepare_for_fit, read_input
from defgpa.cli._output import check_output_file, mark_written
from defgpa.errors import DefgpaError

if TYPE_CHECKING:
    from defgpa.model_selection import Comparison, MethodFigures

MAX_WIDTH = 80  # of the table, where it can be
_WRITERS = {".md": "to_markdown", ".csv": "to_csv", ".tex": "to_latex", ".txt": "__str__"}


@options.command("compare", "defgpa compare wings.tps --fold-size 2 -o table.md")
@options.input_argument
@options.cross_validation
@options.robust_errors
@options.method_option(
    "--published", is_flag=True, help="Only the paper's six methods, with the paper's settings."
)
@options.method_option(
    "--theta",
    type=float,
    metavar="NUMBER",
    help="With --published: absolute smoothing, as in the paper.",
)
@options.output_option("FILE", "Also write the table: .md, .csv, .tex or .txt.")
@options.reading
def command(
    source: tuple[str, ...],
    fold_size: int | None,
    jobs: int | None,
    robust: bool,
    published: bool,
    theta: float | None,
    output: str | None,
    console: Console,
) -> None:
    """Compare rigid, affine and deformable alignment: is deformation worth it?

    Methods are ranked by their cross-validation error (CVE), the error on landmarks that were
    left out, in per cent of the size of the reference. A sentence says what follows, and gives
    the command to go on with. The paper's table on your own files.
    """
    from defgpa.model_selection import compare, default_methods, published_methods
    from defgpa.model_selection.method_selection import choose_fold_size

    if theta is not None and not published:
        raise click.UsageError("--theta is a setting of the paper: add --published.")
    suffix = None if output is None else output[output.rfind(".") :].lower()
    if suffix is not None and suffix not in _WRITERS:
        raise click.BadParameter("must end in .md, .csv, .tex or .txt.", param_hint="--output")
    if output is not None:
        check_output_file(output)
    with console.note_warnings():
        shapes = prepare_for_fit(console, read_input(source))
        size = choose_fold_size(shapes) if fold_size is None else fold_size
        with console.show_progress("Comparing methods") as tick:
            methods = published_methods(theta) if published else default_methods()
            for method in methods.values():
                method.set_params(robust=robust)
            table = compare(
                shapes, methods, fold_size=size, n_jobs=jobs, progress=tick, refit=published
            )
    if table.best is None:
        raise DefgpaError(f"No method can be judged on these shapes. {table.rows[0].failure}")
    console.note_findings(*table.findings)
    table = _add_next_command(table, source, published, theta, fold_size, robust)
    if output is not None and suffix is not None:
        from defgpa.io.atomic import write_text

        write_text(output, str(getattr(table, _WRITERS[suffix])()))
        mark_written(output)
    show_comparison(console, table)
    if table.verdict is not None and table.verdict.next_step:
        console.print_line(f"Next: {table.verdict.next_step}")
    if output is not None:
        console.print_line(f"Written: {output}")
    console.print_json(
        {
            "rows": [row.to_dict() for row in table],
            "ranking": table.ranking,
            "verdict": None if table.verdict is None else asdict(table.verdict),
            "fold_size": size,
            **console.collect_messages(),
        }
    )


def show_comparison(console: Console, table: Comparison) -> None:
    """Show the methods by rank with their errors, why some failed, and the verdict."""
    from defgpa.formatting import align_columns

    ranks = {name: str(k) for k, name in enumerate(table.ranking, start=1)}
    rows = sorted(table, key=lambda row: int(ranks.get(row.name, len(table) + 1)))
    head = ("   method", "code", "CVE %", "CVE", "RMSE_d", "RMSE_r")
    lines = [head, *(_format_row(row, ranks.get(row.name, "")) for row in rows)]
    width = max(len(line[1]) for line in lines)
    lines = [(line[0], line[1].ljust(width), *line[2:]) for line in lines]
    title, *body = align_columns(lines, between="  ").split("\n")
    if len(title) > MAX_WIDTH:
        title, *body = align_columns(lines, between=" ").split("\n")
    console.print_line("\n".join([title, "─" * len(title), *body]))
    count = "1 landmark" if table.fold_size == 1 else f"{table.fold_size} landmarks"
    console.print_paragraph(
        f"CVE: error on landmarks left out, {count} at a time; CVE %: of the size of the method's "
        "reference; in brackets: control points along each axis. RMSE_d: error projected back into "
        "the shapes; RMSE_r: error in the space of the reference. All but % are in the units of "
        "the coordinates."
    )
    failures: dict[str, list[str]] = {}  # each is told once, with the methods it is about
    for row in rows:
        if row.failure:
            failures.setdefault(" ".join(row.failure.split()), []).append(row.name)
    for reason, names in failures.items():
        console.print_paragraph(f"{', '.join(names)}: {reason}")
    if table.verdict is not None:
        console.print_paragraph(table.verdict.conclusion)


def _format_row(row: MethodFigures, rank: str) -> tuple[str, ...]:
    """Return the cells of one method: its rank and name, its code, its errors."""
    from defgpa.formatting import format_number
    from defgpa.model_selection.method_selection import describe_briefly

    errors = (100.0 * row.relative_cve, row.cve, row.rmse_datum, row.rmse_reference)
    numbers = [format_number(error, unknown="–") for error in errors]
    name = f"{'▸' if rank == '1' else ' '}{rank:>1} {describe_briefly(row.name)}"
    return (name, row.name, *numbers)


def _add_next_command(
    table: Comparison,
    source: tuple[str, ...],
    published: bool,
    theta: float | None,
    fold_size: int | None,
    robust: bool,
) -> Comparison:
    """Return the table with a verdict that gives the whole command to go on with."""
    verdict = table.verdict
    if verdict is None:
        return table
    # where rigid and deformable predict alike, the simpler one does
    best = verdict.best if verdict.clear or verdict.rigid else verdict.against
    words = _list_method_words(best, theta)
    if published and "--method" in words and words[1] in ("deformable", "affine"):
        words += ["--proportions", "prior"]
    if fold_size is not None and "--points-per-axis" in words and "--theta" not in words:
        words += ["--fold-size", str(fold_size)]  # the smoothing is chosen by these folds, too
    if robust:
        words.append("--robust")
    step = shlex.join(["defgpa", "fit", *source, *words, "--report", *list_reading_words()])
    return replace(table, verdict=replace(verdict, next_step=step))


def _list_method_words(best: str, theta: float | None) -> list[str]:
    """Return the options that make ``defgpa fit`` fit a method, its smoothing chosen."""
    if best.startswith("TPS_r"):
        smoothing = [] if theta is None else ["--theta", f"{theta:g}"]
        return ["--method", "deformable", "--points-per-axis", best[6:-1], *smoothing]
    if best.startswith("ELA"):
        return ["--method", "elastic", "--points-per-axis", best[4:-1]]
    return ["--method", "affine" if best.startswith("AFF") else "rigid"]
