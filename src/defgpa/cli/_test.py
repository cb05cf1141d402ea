"""``defgpa test``: what shape depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from defgpa.cli._console import Console
from defgpa.cli._data import (
    Written,
    analysed,
    column,
    columns_for,
    known_data,
    links_of,
    permuting,
    result_folder,
    told,
)
from defgpa.cli._options import input_argument, reading, speaking
from defgpa.cli._output import list_files

if TYPE_CHECKING:
    from defgpa.shapes import Shapes


@click.command(
    "test",
    epilog="Example: defgpa test heads.tps --data heads.csv -f 'shape ~ species * site' -o tests/",
)
@input_argument
@known_data
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
@permuting
@result_folder
@reading
@speaking
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
    permutations: int,
    seed: int,
    output: str | None,
    format_: str | None,
    missing: str,
    layout: str,
    lenient: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """What shape depends on: groups, size, regression, repeatability.

    INPUT is a saved result (its reference carried into every shape, complete where landmarks are
    missing) or landmark files without missing landmarks (the classical tangent space). P comes
    from permuting the residuals of reduced models.
    """
    if not (formula or landmarks or by_size or sizes or repeated):
        raise click.UsageError(
            "Nothing to test: give --formula, --landmarks, --allometry or --repeatability."
        )
    if pairwise and not formula:
        raise click.UsageError("--pairwise compares the groups of a model: give --formula too.")
    console, written = Console(quiet, as_json), Written(output)
    with console.noting():
        x, shapes = analysed(source, format_, missing, layout, lenient)
        run = _Run(console, written, x, shapes, columns_for(console, data, shapes))
        run.chance = {"n_permutations": permutations, "seed": seed}
        if formula:
            run.model(formula, pairwise)
        if by_size or sizes:
            run.allometry(_numbers(sizes))
        if landmarks:
            run.landmarks(landmarks, between)
        if repeated:
            run.repeatability(repeated)
    if written.files:
        list_files(console, written.files)
    console.result(run.figures | told(console, written.files))


class _Run:
    """One command's tests, each said, written and drawn."""

    def __init__(
        self, console: Console, written: Written, x: Any, shapes: Shapes, columns: dict[str, Any]
    ) -> None:
        self.console, self.written, self.x = console, written, x
        self.shapes, self.columns = shapes, columns
        self.links = links_of(shapes)
        self.chance: dict[str, Any] = {}
        self.figures: dict[str, Any] = {}

    def model(self, formula: str, pairwise: str | None) -> None:
        """The table of a formula, and distances between its groups."""
        from defgpa.statistics import procrustes_anova

        with self.console.progress("Permuting") as tick:
            found = procrustes_anova(formula, self.x, self.columns, **self.chance, progress=tick)
        self._told("anova", found, [row.__dict__ for row in found.table])
        self.written.figure("anova.png", lambda ax: _plot().effects(found, ax))
        if pairwise:
            pairs = found.pairwise(pairwise)
            self._told(
                "pairwise",
                pairs,
                {"groups": pairs.names, "distances": pairs.distances, "p": pairs.p},
            )
            self.written.figure("pairwise.png", lambda ax: _plot().pairwise(pairs, ax))

    def allometry(self, sizes: list[float]) -> None:
        """Shape on log size (a column ``size``, or centroid sizes); shapes expected at sizes."""
        from defgpa.statistics import allometry

        found = allometry(self.x, self.columns.get("size"), **self.chance)
        self._told("allometry", found, [row.__dict__ for row in found.anova.table])
        self.written.figure(
            "allometry.png", lambda ax: _plot().allometry(found, ax, links=self.links)
        )
        if sizes:
            names = [f"size {size:g}" for size in sizes]
            self.written.shapes("predicted", found.predict(sizes), names, self.shapes.landmarks)

    def landmarks(self, name: str, between: str | None) -> None:
        """Two groups landmark by landmark."""
        from defgpa.statistics import landmark_differences

        groups = [str(value) for value in column(self.columns, name, "--landmarks")]
        chosen = list(range(len(groups)))
        if between:
            wanted = [word.strip() for word in between.split(",")]
            chosen = [i for i, group in enumerate(groups) if group in wanted]
        x = self._complete().take(chosen)
        found = landmark_differences(x, [groups[i] for i in chosen], **self.chance)
        self._told("landmarks", found, {"p": found.p, "q": found.q, "distance": found.distances})
        self.written.figure(
            "landmarks.png", lambda ax: _plot().landmark_differences(found, ax, links=self.links)
        )

    def repeatability(self, name: str) -> None:
        """Individuals and replicates."""
        from defgpa.statistics import repeatability

        found = repeatability(self.x, column(self.columns, name, "--repeatability"))
        figures = {"overall": found.overall, "per_landmark": found.per_landmark}
        self._told("repeatability", found, figures)
        self.written.figure(
            "repeatability.png", lambda ax: _plot().repeatability(found, ax, links=self.links)
        )

    def _complete(self) -> Shapes:
        from defgpa.statistics.space import complete_shapes

        return complete_shapes(self.x)

    def _told(self, name: str, found: Any, figures: Any) -> None:
        self.console.say(f"{found}\n")
        self.written.table(f"{name}.csv", found.to_csv())
        self.figures[name] = figures


def _numbers(words: str | None) -> list[float]:
    try:
        return [float(word) for word in (words or "").split(",") if word.strip()]
    except ValueError:
        raise click.BadParameter(
            f"must be numbers such as 10,20; got {words!r}.", param_hint="--sizes"
        ) from None


def _plot() -> Any:
    from defgpa import plot

    return plot
