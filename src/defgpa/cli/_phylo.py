"""``defgpa phylo``: shape along a phylogeny."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from defgpa.cli import _options as options
from defgpa.cli._analysis import (
    Analysis,
    AnalysisSettings,
    analysis_options,
    open_analysis,
    select_values,
)
from defgpa.cli._console import Console

if TYPE_CHECKING:
    from defgpa.statistics import Phylogeny


@options.command("phylo", "defgpa phylo heads.tps --tree salamanders.nwk --species taxon")
@options.input_argument
@options.analysis_option(
    "--tree",
    "tree_file",
    metavar="FILE",
    required=True,
    type=click.Path(),
    help="Newick or NEXUS file with branch lengths, its tips named as the specimens or species.",
)
@options.analysis_option(
    "--species",
    metavar="COLUMN",
    help="Column with the species, whose mean shapes belong to the tips.",
)
@options.analysis_option(
    "--prune", is_flag=True, help="Leave out tips without a specimen, and specimens without a tip."
)
@options.analysis_option(
    "--components",
    type=click.Choice(["phylomorphospace", "phylogenetic", "aligned"]),
    default="phylomorphospace",
    show_default=True,
    metavar="NAME",
    help="Principal components with the tree (phylomorphospace), phylogenetic PCA (phylogenetic), "
    "or phylogenetically aligned components (aligned).",
)
@options.analysis_option(
    "--formula",
    "-f",
    metavar="MODEL",
    help="Phylogenetic least squares, such as 'shape ~ log(size)'.",
)
@options.analysis_option(
    "--rates", metavar="COLUMN", help="Compare the rates of evolution of the groups in COLUMN."
)
@options.analysis_option(
    "--gls",
    type=click.Choice(["exact", "rrpp"]),
    default="exact",
    show_default=True,
    metavar="NAME",
    help="Least squares of --formula: exact, or rrpp (the figures of RRPP 2.1, which depend on the "
    "order of the species).",
)
@analysis_options
def command(
    source: tuple[str, ...],
    tree_file: str,
    species: str | None,
    prune: bool,
    components: str,
    formula: str | None,
    rates: str | None,
    gls: str,
    console: Console,
    **settings: Unpack[AnalysisSettings],
) -> None:
    """Test and draw shape along a phylogeny: signal, ancestors, PGLS, rates.

    INPUT is a saved result or landmark files, one specimen per tip, or several with --species. The
    specimens are analysed in the classical tangent space; missing landmarks are completed.
    """
    from defgpa.statistics import evolutionary_rates, phylogenetic_components, phylogenetic_signal

    with open_analysis(
        console, source, "Phylogeny", "phylo.json", inputs=[tree_file], **settings
    ) as analysis:
        tree = _match_tree(analysis, tree_file, species, prune)
        signal = analysis.permute(phylogenetic_signal, analysis.sample, tree)
        values = select_values(signal, "k", "p", "z", "scaling")
        analysis.add("signal", signal, values, "permuted")
        space = phylogenetic_components(analysis.sample, tree, method=components)
        values = {"method": components, "variances": space.variances}
        analysis.add("components", space, values, "phylomorphospace")
        landmarks = analysis.sample.shapes.landmarks
        analysis.files.write_shapes("ancestors", space.ancestors, space.ancestor_names, landmarks)
        if formula is not None:
            model = analysis.fit_model(formula, tree=tree, gls=gls)
            analysis.add("anova", model, [row.__dict__ for row in model.table], "effects")
        if rates is not None:
            groups = analysis.find_labels(rates, "--rates")
            compared = analysis.permute(evolutionary_rates, analysis.sample, tree, groups)
            values = {
                "groups": compared.names,
                **select_values(compared, "rates", "ratio", "z", "p"),
                "pairs": compared.records(),
            }
            analysis.add("rates", compared, values, "permuted")


def _match_tree(analysis: Analysis, tree_file: str, species: str | None, prune: bool) -> Phylogeny:
    """Replace the specimens of an analysis by the tips of a tree: specimens, or means of species.

    The columns are brought to the order of the tips.
    """
    from defgpa.io.covariates import collect_columns
    from defgpa.statistics import average_species, match_tree, read_tree

    sample, columns = analysis.sample, analysis.columns
    if species is not None:
        labels = analysis.find_labels(species, "--species")
        sample = average_species(sample, labels, columns)
        columns = collect_columns(sample.shapes)
    names = sample.shapes.names
    analysis.sample, tree = match_tree(sample, read_tree(tree_file), prune=prune)
    rows = [names.index(tip) for tip in tree.tips]
    analysis.columns = {head: [cells[row] for row in rows] for head, cells in columns.items()}
    analysis.results["coordinates"] = analysis.sample.provenance.to_dict()
    return tree
