"""``defgpa test``: what shape depends on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import analysed, column, columns_for, refused
from defgpa.cli._output import Written

if TYPE_CHECKING:
    from defgpa.shapes import Shapes
    from defgpa.statistics import Sample


@options.command(
    "test", "defgpa test heads.tps --data heads.csv -f 'shape ~ species * site' -o tests/"
)
@options.input_argument
@options.known_data
@click.option(
    "--formula", "-f", help="The model, as in R: 'shape ~ species * site', size included."
)
@click.option(
    "--pairwise", metavar="COLUMN[:COLUMN]", help="Distances between groups of the model."
)
@click.option("--landmarks", metavar="COLUMN", help="Which landmarks differ between two groups.")
@click.option("--between", metavar="A,B", help="The two groups of --landmarks, if there are more.")
@click.option("--allometry", "by_size", is_flag=True, help="The regression of shape on log size.")
@click.option("--sizes", metavar="S,S,…", help="Write the shapes that --allometry expects there.")
@click.option("--repeatability", "repeated", metavar="COLUMN", help="Individuals with replicates.")
@click.option(
    "--space",
    type=click.Choice(["superimposed", "back_projected"]),
    default="superimposed",
    show_default=True,
    help="The specimens themselves, or the reference projected back by the warps of a saved result "
    "(only what the warps follow).",
)
@click.option(
    "--imputations",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Pool --formula and --allometry over N completions of missing landmarks, drawn from their "
    "uncertainty.",
)
@options.permuting
@options.result_folder
@options.reporting
@options.reading
def command(
    source: tuple[str, ...],
    data: str | None,
    formula: str | None,
    pairwise: str | None,
    landmarks: str | None,
    between: str | None,
    by_size: bool,
    sizes: str | None,
    repeated: str | None,
    space: str,
    imputations: int,
    permutations: int,
    seed: int,
    output: str | None,
    report: bool,
    console: Console,
) -> None:
    """Test what shape depends on: groups, size, regression, repeatability.

    INPUT is a saved result or landmark files. Either way the specimens are analysed, in the
    classical tangent space, whatever warps a result has; missing landmarks are completed. P comes
    from permuting the residuals of reduced models.
    """
    from defgpa.statistics import build_sample

    if not (formula or landmarks or by_size or sizes or repeated):
        raise click.UsageError(
            "Nothing to test: give --formula, --landmarks, --allometry or --repeatability."
        )
    if pairwise and not formula:
        raise click.UsageError("--pairwise compares the groups of a model: give --formula too.")
    written = Written(output, report)
    with console.noting():
        x, shapes = analysed(source)
        chance = {"n_permutations": permutations, "seed": seed}
        sample = build_sample(x, space=space)
        columns = columns_for(console, data, shapes)
        run = _Run(console, written, sample, shapes, columns, chance, imputations)
        run.figures["coordinates"] = sample.provenance.to_dict()
        if formula:
            run.model(formula, pairwise)
        if by_size or sizes:
            run.allometry(_numbers(sizes))
        if landmarks:
            run.landmarks(landmarks, between)
        if repeated:
            run.repeatability(repeated)
        written.report(x, run.found, f"Tests of {Path(source[0]).name}")
    written.tell(console, run.figures)


@dataclass
class _Run:
    """One command's tests, each said, written and drawn."""

    console: Console
    written: Written
    sample: Sample
    shapes: Shapes
    columns: dict[str, Any]
    chance: dict[str, Any]
    imputations: int
    figures: dict[str, Any] = field(default_factory=dict)
    found: list[Any] = field(default_factory=list)

    def model(self, formula: str, pairwise: str | None) -> None:
        """The table of a formula, and distances between its groups."""
        from defgpa.errors import DefgpaError
        from defgpa.statistics import procrustes_anova

        try:
            found = self._permuting(
                procrustes_anova,
                formula,
                self.sample,
                self.columns,
                n_imputations=self.imputations,
            )
        except DefgpaError as error:
            if self.columns:
                raise
            raise DefgpaError(f"{error} A table with more is given by --data.") from None
        self._told("anova", found, [row.__dict__ for row in found.table], "effects")
        if pairwise:
            with self.console.progress("Permuting") as tick:
                pairs = found.pairwise(pairwise, progress=tick)
            figures = {"groups": pairs.names, "distances": pairs.distances, "p": pairs.p}
            self._told("pairwise", pairs, figures, "pairwise")

    def allometry(self, sizes: list[float]) -> None:
        """Shape on log size (a column ``size``, or centroid sizes); shapes expected at sizes."""
        from defgpa.statistics import allometry

        sizes_given = self.columns.get("size")
        found = self._permuting(allometry, self.sample, sizes_given, n_imputations=self.imputations)
        rows = [row.__dict__ for row in found.anova.table]
        self._told("allometry", found, rows, "allometry", links=self.shapes.links)
        if sizes:
            names = [f"size {size:g}" for size in sizes]
            self.written.shapes("predicted", found.predict(sizes), names, self.shapes.landmarks)

    def landmarks(self, name: str, between: str | None) -> None:
        """Two groups landmark by landmark."""
        from defgpa.statistics import landmark_differences

        groups = [str(value) for value in column(self.columns, name, "--landmarks")]
        found = self._permuting(
            landmark_differences, self.sample, groups, between=_two_groups(groups, between)
        )
        figures = {"p": found.p, "q": found.q, "distance": found.distances}
        self._told("landmarks", found, figures, "landmark_differences", links=self.shapes.links)

    def repeatability(self, name: str) -> None:
        """Individuals and replicates."""
        from defgpa.statistics import repeatability

        found = repeatability(self.sample, column(self.columns, name, "--repeatability"))
        figures = {"overall": found.overall, "per_landmark": found.per_landmark}
        self._told("repeatability", found, figures, "repeatability", links=self.shapes.links)

    def _permuting(self, test: Any, *words: Any, **options: Any) -> Any:
        """A test by permutations, with a bar that moves where somebody watches."""
        with self.console.progress("Permuting") as tick:
            return test(*words, **options, **self.chance, progress=tick)

    def _told(self, name: str, found: Any, figures: Any, drawn: str, **how: Any) -> None:
        """A result said, written as a table, drawn by a plot of this name, and kept."""
        self.console.say(f"{found}\n")
        self.written.table(f"{name}.csv", found.to_csv())
        self.written.figure(f"{name}.png", drawn, found, **how)
        self.figures[name] = figures
        self.found.append(found)


def _two_groups(groups: list[str], between: str | None) -> tuple[str, str]:
    """The two groups to compare, or an error that says which there are."""
    there = list(dict.fromkeys(groups))
    wanted = there if between is None else [word.strip() for word in between.split(",")]
    unknown = [word for word in wanted if word not in there]
    if unknown or len(wanted) != 2:
        from defgpa.errors import listed

        raise click.BadParameter(
            f"landmarks are compared between 2 groups, such as --between {','.join(there[:2])}; "
            f"there is {listed(there)}.",
            param_hint="--between",
        )
    return wanted[0], wanted[1]


def _numbers(words: str | None) -> list[float]:
    try:
        return [float(word) for word in (words or "").split(",") if word.strip()]
    except ValueError:
        raise refused("--sizes", "numbers such as 10,20", words) from None
