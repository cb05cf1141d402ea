"""``defgpa phylo``: shape along a phylogeny."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import collect_columns, find_column, read_sample_source
from defgpa.cli._output import AnalysisFiles, refuse_inputs

if TYPE_CHECKING:
    from defgpa.statistics import Phylogeny, ProcrustesAnova, Sample

_STEMS = ("signal", "components", "ancestors", "anova", "rates")


@options.command("phylo", "defgpa phylo heads.tps --tree salamanders.nwk --species taxon -o phylo/")
@options.input_argument
@options.option(
    "--tree",
    "tree_file",
    metavar="FILE",
    required=True,
    type=click.Path(),
    group=options.ANALYSIS,
    help="Newick or NEXUS file with branch lengths, its tips named as the specimens or species.",
)
@options.option(
    "--species",
    metavar="COLUMN",
    group=options.ANALYSIS,
    help="Column with the species, whose mean shapes belong to the tips.",
)
@options.option(
    "--prune",
    is_flag=True,
    group=options.ANALYSIS,
    help="Leave out tips without a specimen, and specimens without a tip.",
)
@options.option(
    "--components",
    type=click.Choice(["phylomorphospace", "phylogenetic", "aligned"]),
    default="phylomorphospace",
    show_default=True,
    metavar="NAME",
    group=options.ANALYSIS,
    help="Principal components with the tree (phylomorphospace), phylogenetic PCA (phylogenetic), "
    "or phylogenetically aligned components (aligned).",
)
@options.option(
    "--formula",
    "-f",
    metavar="MODEL",
    group=options.ANALYSIS,
    help="Phylogenetic least squares, such as 'shape ~ log(size)'.",
)
@options.option(
    "--rates",
    metavar="COLUMN",
    group=options.ANALYSIS,
    help="Compare the rates of evolution of the groups in COLUMN.",
)
@options.permutations
@options.result_folder
@options.covariates
@options.reading
def command(
    source: tuple[str, ...],
    tree_file: str,
    species: str | None,
    prune: bool,
    components: str,
    formula: str | None,
    rates: str | None,
    permutations: int,
    seed: int,
    output: str | None,
    data: str | None,
    console: Console,
) -> None:
    """Test and draw shape along a phylogeny: signal, ancestors, PGLS, rates.

    INPUT is a saved result or landmark files, one specimen per tip, or several with --species. The
    specimens are analysed in the classical tangent space; missing landmarks are completed.
    """
    from defgpa.statistics import (
        average_species,
        build_sample,
        evolutionary_rates,
        match_tree,
        phylogenetic_components,
        phylogenetic_signal,
        read_tree,
    )
    from defgpa.statistics.design import collect_columns as collect_known

    files = AnalysisFiles(output, False, "phylo.json")
    results: dict[str, Any] = {}
    if files.folder is not None:
        inputs = [*source, tree_file, *filter(None, [data])]
        refuse_inputs(inputs, files.folder, *_STEMS, manifest="phylo.json")
    with files.open(console, results):
        x, shapes = read_sample_source(source)
        columns = collect_columns(console, data, shapes)
        sample = build_sample(x)
        if species is not None:
            labels = [str(value) for value in find_column(columns, species, "--species")]
            sample = average_species(sample, labels, columns)
            columns = collect_known(sample.shapes)
        names = sample.shapes.names
        sample, tree = match_tree(sample, read_tree(tree_file), prune=prune)
        rows = [names.index(tip) for tip in tree.tips]
        columns = {head: [values[row] for row in rows] for head, values in columns.items()}
        results["coordinates"] = sample.provenance.to_dict()
        chance: dict[str, Any] = {"n_permutations": permutations, "seed": seed}
        with console.progress("Permuting") as tick:
            signal = phylogenetic_signal(sample, tree, **chance, progress=tick)
        _add(console, files, "signal", signal, "permuted")
        results["signal"] = {"k": signal.k, "p": signal.p, "z": signal.z, "scaling": signal.scaling}
        found = phylogenetic_components(sample, tree, method=components)
        _add(console, files, "components", found, "phylomorphospace")
        landmarks = sample.shapes.landmarks
        files.write_shapes("ancestors", found.ancestors, found.ancestor_names, landmarks)
        results["components"] = {"method": components, "variances": found.variances}
        if formula is not None:
            anova = _fit_model(console, formula, sample, tree, columns, chance)
            _add(console, files, "anova", anova, "effects")
            results["anova"] = [row.__dict__ for row in anova.table]
        if rates is not None:
            groups = find_column(columns, rates, "--rates")
            with console.progress("Permuting") as tick:
                compared = evolutionary_rates(sample, tree, groups, **chance, progress=tick)
            _add(console, files, "rates", compared, "permuted")
            values = {"groups": compared.names, "rates": compared.rates, "p": compared.p}
            results["rates"] = values
    files.show(console, results)


def _fit_model(
    console: Console,
    formula: str,
    sample: Sample,
    tree: Phylogeny,
    columns: dict[str, Any],
    chance: dict[str, Any],
) -> ProcrustesAnova:
    """Fit a model by phylogenetic generalised least squares."""
    from defgpa.errors import DefgpaError
    from defgpa.statistics import procrustes_anova

    try:
        with console.progress("Permuting") as tick:
            return procrustes_anova(formula, sample, columns, tree=tree, **chance, progress=tick)
    except DefgpaError as error:
        if columns:
            raise
        raise DefgpaError(f"{error} A table with more is given by --data.") from None


def _add(console: Console, files: AnalysisFiles, name: str, result: Any, plot: str) -> None:
    """Show a result, write its table, and draw it by a plot of this name."""
    console.say(f"{result}\n")
    files.write_table(f"{name}.csv", result.to_csv())
    files.write_figure(f"{name}.png", plot, result)
