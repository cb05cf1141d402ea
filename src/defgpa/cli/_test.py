"""``defgpa test``: what shape depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import bad_word, collect_columns, find_column, read_sample_source
from defgpa.cli._output import AnalysisFiles, refuse_inputs

if TYPE_CHECKING:
    from defgpa.shapes import Shapes
    from defgpa.statistics import Sample

_STEMS = ("anova", "pairwise", "allometry", "predicted", "landmarks", "repeatability")


@options.command(
    "test", "defgpa test heads.tps --data heads.csv -f 'shape ~ species * site' -o tests/"
)
@options.input_argument
@options.option(
    "--formula",
    "-f",
    metavar="MODEL",
    group=options.ANALYSIS,
    help="Model as in R, such as 'shape ~ species * site'; size is centroid size.",
)
@options.option(
    "--pairwise",
    metavar="COLUMN[:COLUMN]",
    group=options.ANALYSIS,
    help="Distances between the groups of the model.",
)
@options.option(
    "--landmarks",
    metavar="COLUMN",
    group=options.ANALYSIS,
    help="Compare two groups landmark by landmark.",
)
@options.option(
    "--between",
    metavar="A,B",
    group=options.ANALYSIS,
    help="The two groups of --landmarks, if there are more.",
)
@options.option(
    "--allometry",
    "by_size",
    is_flag=True,
    group=options.ANALYSIS,
    help="Regression of shape on log centroid size.",
)
@options.option(
    "--sizes",
    metavar="S,S,…",
    group=options.ANALYSIS,
    help="Write the shapes that --allometry predicts at these sizes.",
)
@options.option(
    "--repeatability",
    "individual",
    metavar="COLUMN",
    group=options.ANALYSIS,
    help="Repeatability; COLUMN has the individual of each replicate.",
)
@options.option(
    "--space",
    type=click.Choice(["superimposed", "back_projected"]),
    default="superimposed",
    show_default=True,
    metavar="NAME",
    group=options.ANALYSIS,
    help="Coordinates: superimposed (the specimens), or back_projected (of a saved result, only "
    "what its warps follow).",
)
@options.option(
    "--imputations",
    metavar="COUNT",
    type=click.IntRange(min=0),
    default=0,
    group=options.ANALYSIS,
    help="Pool --formula and --allometry over COUNT completions of missing landmarks, drawn from "
    "their uncertainty.",
)
@options.permutations
@options.result_folder
@options.report
@options.covariates
@options.reading
def command(
    source: tuple[str, ...],
    formula: str | None,
    pairwise: str | None,
    landmarks: str | None,
    between: str | None,
    by_size: bool,
    sizes: str | None,
    individual: str | None,
    space: str,
    imputations: int,
    permutations: int,
    seed: int,
    output: str | None,
    report: bool,
    data: str | None,
    console: Console,
) -> None:
    """Test what shape depends on: groups, size, covariates; repeatability.

    INPUT is a saved result or landmark files. Either way the specimens are analysed, in the
    classical tangent space, whatever warps a result has; missing landmarks are completed. P comes
    from permuting the residuals of reduced models.
    """
    from defgpa.statistics import build_sample

    if not (formula or landmarks or by_size or sizes or individual):
        raise click.UsageError(
            "Nothing to test: give --formula, --landmarks, --allometry or --repeatability."
        )
    if pairwise and not formula:
        raise click.UsageError("--pairwise compares the groups of a model: give --formula too.")
    files = AnalysisFiles(output, report, "test.json")
    results: dict[str, Any] = {}
    if files.folder is not None:
        refuse_inputs([*source, *filter(None, [data])], files.folder, *_STEMS, manifest="test.json")
    with files.open(console, results):
        x, shapes = read_sample_source(source)
        chance = {"n_permutations": permutations, "seed": seed}
        columns = collect_columns(console, data, shapes)
        sample = build_sample(x, space=space)
        results["coordinates"] = sample.provenance.to_dict()
        run = _Run(console, files, sample, shapes, columns, chance, imputations, results)
        if formula:
            run.test_model(formula, pairwise)
        if by_size or sizes:
            run.test_allometry(_parse_sizes(sizes))
        if landmarks:
            run.compare_landmarks(landmarks, between)
        if individual:
            run.measure_repeatability(individual)
        files.write_report(x, run.reported, f"Tests of {Path(source[0]).name}")
    files.show(console, results)


@dataclass
class _Run:
    """One command's tests, each shown, written and drawn."""

    console: Console
    files: AnalysisFiles
    sample: Sample
    shapes: Shapes
    columns: dict[str, Any]
    chance: dict[str, int]
    imputations: int
    results: dict[str, Any]
    reported: list[Any] = field(default_factory=list)

    def test_model(self, formula: str, pairwise: str | None) -> None:
        """Test the terms of a formula, and the distances between its groups."""
        from defgpa.errors import DefgpaError
        from defgpa.statistics import procrustes_anova

        try:
            settings = {"n_imputations": self.imputations}
            anova = self._permute(procrustes_anova, formula, self.sample, self.columns, **settings)
        except DefgpaError as error:
            if self.columns:
                raise
            raise DefgpaError(f"{error} A table with more is given by --data.") from None
        self._add("anova", anova, [row.__dict__ for row in anova.table], "effects")
        if pairwise:
            with self.console.progress("Permuting") as tick:
                pairs = anova.pairwise(pairwise, progress=tick)
            values = {"groups": pairs.names, "distances": pairs.distances, "p": pairs.p}
            self._add("pairwise", pairs, values, "pairwise")

    def test_allometry(self, sizes: list[float]) -> None:
        """Regress shape on log size (a column ``size``, or centroid size); predict at sizes."""
        from defgpa.statistics import allometry

        regression = self._permute(
            allometry, self.sample, self.columns.get("size"), n_imputations=self.imputations
        )
        rows = [row.__dict__ for row in regression.anova.table]
        self._add("allometry", regression, rows, "allometry", links=self.shapes.links)
        if sizes:
            names = [f"size {size:g}" for size in sizes]
            points = regression.predict(sizes)
            self.files.write_shapes("predicted", points, names, self.shapes.landmarks)

    def compare_landmarks(self, name: str, between: str | None) -> None:
        """Compare two groups landmark by landmark."""
        from defgpa.statistics import landmark_differences

        groups = [str(value) for value in find_column(self.columns, name, "--landmarks")]
        differences = self._permute(
            landmark_differences, self.sample, groups, between=_two_groups(groups, between)
        )
        values = {"p": differences.p, "q": differences.q, "distance": differences.distances}
        plot = "landmark_differences"
        self._add("landmarks", differences, values, plot, links=self.shapes.links)

    def measure_repeatability(self, name: str) -> None:
        """Compare replicates of the same individuals."""
        from defgpa.statistics import repeatability

        result = repeatability(self.sample, find_column(self.columns, name, "--repeatability"))
        values = {"overall": result.overall, "per_landmark": result.per_landmark}
        self._add("repeatability", result, values, "repeatability", links=self.shapes.links)

    def _permute(self, test: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        """Run a permutation test, with a bar that moves where somebody watches."""
        with self.console.progress("Permuting") as tick:
            return test(*arguments, **settings, **self.chance, progress=tick)

    def _add(self, name: str, result: Any, values: Any, plot: str, **settings: Any) -> None:
        """Show a result, write its table, draw it by a plot of this name, and keep it."""
        self.console.say(f"{result}\n")
        self.files.write_table(f"{name}.csv", result.to_csv())
        self.files.write_figure(f"{name}.png", plot, result, **settings)
        self.results[name] = values
        self.reported.append(result)


def _two_groups(groups: list[str], between: str | None) -> tuple[str, str]:
    """Return the two groups to compare, or an error that says which there are."""
    names = list(dict.fromkeys(groups))
    wanted = names if between is None else [word.strip() for word in between.split(",")]
    unknown = [word for word in wanted if word not in names]
    if unknown or len(wanted) != 2:
        from defgpa.errors import format_names

        raise click.BadParameter(
            f"landmarks are compared between 2 groups, such as --between {','.join(names[:2])}; "
            f"there is {format_names(names)}.",
            param_hint="--between",
        )
    return wanted[0], wanted[1]


def _parse_sizes(words: str | None) -> list[float]:
    try:
        return [float(word) for word in (words or "").split(",") if word.strip()]
    except ValueError:
        raise bad_word("--sizes", "numbers such as 10,20", words) from None
