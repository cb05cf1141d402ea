"""``defgpa classify``: assign specimens to groups by shape."""

from __future__ import annotations

from typing import Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import collect_columns, find_column, read_sample_source
from defgpa.cli._output import AnalysisFiles, refuse_inputs


@options.command("classify", "defgpa classify heads.tps --data heads.csv --groups species")
@options.input_argument
@options.option(
    "--groups",
    metavar="COLUMN",
    required=True,
    group=options.ANALYSIS,
    help="Column of the groups to tell apart.",
)
@options.option(
    "--components",
    metavar="K",
    type=click.IntRange(min=1),
    group=options.ANALYSIS,
    help="Components of shape to use; default: as many as classify best when specimens are left "
    "out.",
)
@options.option(
    "--equal-priors",
    is_flag=True,
    group=options.ANALYSIS,
    help="Take all groups as equally likely beforehand.",
)
@options.permutations
@options.result_folder
@options.covariates
@options.reading
def command(
    source: tuple[str, ...],
    groups: str,
    components: int | None,
    equal_priors: bool,
    permutations: int,
    seed: int,
    output: str | None,
    data: str | None,
    console: Console,
) -> None:
    """Classify specimens by shape: linear discriminants, with every specimen left out in turn.

    INPUT is a saved result or landmark files; the specimens are analysed, missing landmarks
    completed. Distances between groups are tested by permuting the groups.
    """
    from defgpa.statistics import classify

    files = AnalysisFiles(output, False, "classification.json")
    results: dict[str, Any] = {}
    if files.folder is not None:
        inputs = [*source, *filter(None, [data])]
        stems = ("classification", "canonical_variates")
        refuse_inputs(inputs, files.folder, *stems, manifest="classification.json")
    with files.open(console, results):
        x, shapes = read_sample_source(source)
        labels = find_column(collect_columns(console, data, shapes), groups, "--groups")
        with console.progress("Permuting") as tick:
            found = classify(
                *(x, labels, components, permutations, seed),
                equal_priors=equal_priors,
                progress=tick,
            )
        console.say(str(found))
        results |= {
            "coordinates": found.provenance.to_dict(),
            "groups": list(found.groups),
            "components": found.n_components,
            "accuracy": found.accuracy,
            "chance_level": found.chance_level,
            "kappa": found.kappa,
            "confusion": found.confusion.tolist(),
        }
        files.write_table("classification.csv", found.to_csv())
        names = [f"variate {k}" for k in range(1, len(found.axes) + 1)]
        files.write_shapes("canonical_variates", found.axes, names, shapes.landmarks)
        files.write_figure("classification.png", "canonical_variates", found)
    files.show(console, results)
