"""``defgpa disparity``: how much groups vary."""

from __future__ import annotations

from typing import Unpack

import click

from defgpa.cli import _options as options
from defgpa.cli._analysis import (
    AnalysisSettings,
    analysis_options,
    open_analysis,
    select_values,
)
from defgpa.cli._console import Console


@options.command("disparity", "defgpa disparity heads.tps --data heads.csv --groups species")
@options.input_argument
@options.groups_option("to compare")
@options.analysis_option(
    "--formula",
    "-f",
    metavar="MODEL",
    default="shape ~ 1",
    show_default=True,
    help="Model that variances are about, such as 'shape ~ species'.",
)
@options.analysis_option(
    "--partial", is_flag=True, help="Share out the variance of all specimens (partial disparities)."
)
@options.analysis_option(
    "--imputations",
    metavar="COUNT",
    type=click.IntRange(min=0),
    default=0,
    help="Pool over COUNT completions of missing landmarks, drawn from their uncertainty.",
)
@analysis_options
def command(
    source: tuple[str, ...],
    groups: str,
    formula: str,
    partial: bool,
    imputations: int,
    console: Console,
    **settings: Unpack[AnalysisSettings],
) -> None:
    """Compare how much groups vary: Procrustes variances about a model.

    INPUT is a saved result or landmark files; the specimens are analysed, missing landmarks
    completed. P comes from permuting residuals between groups.
    """
    from defgpa.statistics import disparity

    with open_analysis(console, source, "Disparity", "disparity.json", **settings) as analysis:
        labels = analysis.find_labels(groups, "--groups")
        result = analysis.permute(
            *(disparity, analysis.sample, labels, formula, analysis.columns),
            partial=partial,
            n_imputations=imputations,
        )
        analysis.results |= select_values(result, "groups", "variances", "intervals")
        analysis.results["pairs"] = result.records()
        analysis.add("disparity", result, plot="disparity")
