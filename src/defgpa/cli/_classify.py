"""``defgpa classify``: assign specimens to groups by shape."""

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


@options.command("classify", "defgpa classify heads.tps --data heads.csv --groups species")
@options.input_argument
@options.groups_option("to tell apart")
@options.analysis_option(
    "--components",
    metavar="K",
    type=click.IntRange(min=1),
    help="Components of shape to use; default: as many as classify best when specimens are left "
    "out.",
)
@options.analysis_option(
    "--equal-priors", is_flag=True, help="Take all groups as equally likely beforehand."
)
@analysis_options
def command(
    source: tuple[str, ...],
    groups: str,
    components: int | None,
    equal_priors: bool,
    console: Console,
    **settings: Unpack[AnalysisSettings],
) -> None:
    """Classify specimens by shape: linear discriminants, with every specimen left out in turn.

    INPUT is a saved result or landmark files; the specimens are analysed, missing landmarks
    completed. Distances between groups are tested by permuting the groups.
    """
    from defgpa.statistics import classify

    with open_analysis(
        console, source, "Classification", "classification.json", **settings
    ) as analysis:
        labels = analysis.find_labels(groups, "--groups")
        result = analysis.permute(
            classify, analysis.sample, labels, components, equal_priors=equal_priors
        )
        analysis.results |= {
            "components": result.n_components,
            **select_values(result, "groups", "accuracy", "chance_level", "kappa", "confusion"),
            **select_values(result, "mahalanobis", "mahalanobis_p", "procrustes", "procrustes_p"),
        }
        links = analysis.shapes.links
        analysis.add("classification", result, plot="canonical_variates", links=links)
        analysis.files.write_figure("between_groups.png", "between_groups", result)
        names = [f"variate {k}" for k in range(1, len(result.axes) + 1)]
        landmarks = analysis.shapes.landmarks
        analysis.files.write_shapes("canonical_variates", result.axes, names, landmarks)
        analysis.files.write_table("scores.csv", result.scores_to_csv())
        analysis.files.write_table("distances.csv", result.distances_to_csv())
