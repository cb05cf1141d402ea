"""``defgpa disparity``: how much groups vary."""

from __future__ import annotations

from typing import Any

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import collect_columns, read_sample_source
from defgpa.cli._output import AnalysisFiles, refuse_inputs


@options.command("disparity", "defgpa disparity heads.tps --data heads.csv --groups species")
@options.input_argument
@options.option(
    "--groups",
    metavar="COLUMN[:COLUMN]",
    required=True,
    group=options.ANALYSIS,
    help="Column of the groups to compare.",
)
@options.option(
    "--formula",
    "-f",
    metavar="MODEL",
    default="shape ~ 1",
    show_default=True,
    group=options.ANALYSIS,
    help="Model that variances are about, such as 'shape ~ species'.",
)
@options.option(
    "--partial",
    is_flag=True,
    group=options.ANALYSIS,
    help="Share out the variance of all specimens (partial disparities).",
)
@options.permutations
@options.result_folder
@options.covariates
@options.reading
def command(
    source: tuple[str, ...],
    groups: str,
    formula: str,
    partial: bool,
    permutations: int,
    seed: int,
    output: str | None,
    data: str | None,
    console: Console,
) -> None:
    """Compare how much groups vary: Procrustes variances about a model.

    INPUT is a saved result or landmark files; the specimens are analysed, missing landmarks
    completed. P comes from permuting residuals between groups.
    """
    from defgpa.statistics import disparity

    files = AnalysisFiles(output, False, "disparity.json")
    results: dict[str, Any] = {}
    if files.folder is not None:
        inputs = [*source, *filter(None, [data])]
        refuse_inputs(inputs, files.folder, "disparity", manifest="disparity.json")
    with files.open(console, results):
        x, shapes = read_sample_source(source)
        columns = collect_columns(console, data, shapes)
        with console.progress("Permuting") as tick:
            found = disparity(
                x, groups, formula, columns, permutations, seed, partial=partial, progress=tick
            )
        console.say(str(found))
        results |= {
            "coordinates": found.provenance.to_dict(),
            "groups": list(found.groups),
            "variances": found.variances.tolist(),
            "intervals": found.intervals.tolist(),
            "pairs": [dict(zip(found._columns, row, strict=True)) for row in found._rows()],
        }
        files.write_table("disparity.csv", found.to_csv())
        files.write_figure("disparity.png", "disparity", found)
    files.show(console, results)
