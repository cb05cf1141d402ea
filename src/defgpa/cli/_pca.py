"""``defgpa pca``: principal components of shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from defgpa.cli import _options as options
from defgpa.cli._analysis import Analysis, SampleSettings, open_analysis, sample_options
from defgpa.cli._console import Console

if TYPE_CHECKING:
    from defgpa.statistics import ShapePCA

_MAX_PRINTED = 8  # components
_VARIANCES = ("component", "variance", "share", "cumulative")


@options.command("pca", "defgpa pca heads.tps --data heads.csv --groups species -o pca/")
@options.input_argument
@options.groups_option("to colour and outline", required=False)
@options.analysis_option(
    "--axes",
    "which",
    nargs=2,
    type=click.IntRange(1),
    default=(1, 2),
    show_default=True,
    metavar="K L",
    help="The two components of the figure.",
)
@options.coordinates
@sample_options
def command(
    source: tuple[str, ...],
    groups: str | None,
    which: tuple[int, int],
    console: Console,
    **settings: Unpack[SampleSettings],
) -> None:
    """Compute principal components of shape: variances, scores, and the shapes at their ends.

    INPUT is a saved result or landmark files; the specimens are analysed in the classical tangent
    space, missing landmarks completed.
    """
    from defgpa.formatting import align_columns, format_column
    from defgpa.io.text.table import format_csv
    from defgpa.statistics import ShapePCA

    with open_analysis(console, source, "Components", "pca.json", **settings) as analysis:
        labels = None if groups is None else analysis.find_labels(groups, "--groups")
        analysis.sample.warn_of_findings()
        pca = ShapePCA().fit(analysis.sample)
        n_components = len(pca.components_)
        if n_components > 1 and (max(which) > n_components or which[0] == which[1]):
            raise click.BadParameter(
                f"must be two of the {n_components} components; got {which[0]} {which[1]}.",
                param_hint="--axes",
            )
        shares = pca.explained_variance_ratio_
        columns = (pca.explained_variance_.tolist(), shares.tolist(), shares.cumsum().tolist())
        rows = list(zip(range(1, len(shares) + 1), *columns, strict=True))
        variances = format_column(columns[0][:_MAX_PRINTED])
        table = [
            (str(k), variance, f"{share:.1%}", f"{total:.1%}")
            for variance, (k, _, share, total) in zip(variances, rows, strict=False)
        ]
        title = f"Principal components of shape\n{pca.provenance_}"
        console.print_text(f"{title}\n\n{align_columns([_VARIANCES, *table])}\n")
        analysis.files.write_table("variances.csv", format_csv(_VARIANCES, rows))
        _write_components(analysis, pca, labels)
        if n_components > 1:
            looks = {"groups": labels, "which": which, "shapes": analysis.shapes, "size": (8, 6.4)}
            analysis.files.write_figure("components.png", "components", pca, **looks)
        analysis.files.write_figure("scree.png", "scree", pca)
        analysis.results |= {"variances": columns[0], "shares": columns[1]}


def _write_components(analysis: Analysis, pca: ShapePCA, labels: list[str] | None) -> None:
    """Write the scores, the mean, the components, and the shapes at the observed ends of each."""
    import numpy as np

    from defgpa.io.text.table import format_csv

    shapes, files, heads = analysis.shapes, analysis.files, list(pca.get_feature_names_out())
    groups = [()] * len(pca.scores_) if labels is None else [(label,) for label in labels]
    scores = zip(shapes.names, groups, pca.scores_.tolist(), strict=True)
    columns = ("name", *(["group"] if labels is not None else []), *heads)
    files.write_table(
        "scores.csv", format_csv(columns, [(name, *group, *row) for name, group, row in scores])
    )
    files.write_shapes("components", pca.components_, heads, shapes.landmarks)
    names, ends = ["mean"], [pca.mean_]
    for head, component, column in zip(heads, pca.components_, pca.scores_.T, strict=True):
        for word, score in (("min", column.min()), ("max", column.max())):
            names.append(f"{head} {word}")
            ends.append(pca.mean_ + score * component)
    files.write_shapes("shapes_at_ends", np.array(ends), names, shapes.landmarks)
