"""What the statistics commands share: read, test with a progress bar, show, write, report."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict, TypeVar

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import collect_columns, drop_unlisted_shapes, find_column, read_sample_source
from defgpa.cli._output import AnalysisFiles

if TYPE_CHECKING:
    from defgpa.io.covariates import Columns
    from defgpa.report import TabularStatistic
    from defgpa.shapes import Shapes
    from defgpa.statistics import ProcrustesAnova, Sample

_Result = TypeVar("_Result")


class SampleSettings(TypedDict):
    """The options of what is analysed and written, which go on to `open_analysis`."""

    data: str | None
    drop_unlisted: bool
    output: str | None
    space: NotRequired[str]
    as_given: NotRequired[bool]


class AnalysisSettings(SampleSettings):
    """The options of all commands with tests, which go on to `open_analysis`."""

    report: bool
    permutations: int
    seed: int


def sample_options(function: Callable[..., None]) -> Callable[..., None]:
    """Declare the options of what is read and where results are written."""
    return options.reading(
        options.covariates(options.drop_unlisted(options.result_folder(function)))
    )


def common_options(function: Callable[..., None]) -> Callable[..., None]:
    """Declare the options that all commands with tests have."""
    return sample_options(options.report(options.permutations(function)))


def analysis_options(function: Callable[..., None]) -> Callable[..., None]:
    """Declare these options, and which coordinates are analysed."""
    return options.coordinates(common_options(function))


@dataclass
class Analysis:
    """The specimens that a command analyses, and the results it has collected.

    Attributes
    ----------
    console : Console
    files : AnalysisFiles
        Where tables and figures go.
    shapes : Shapes
        As read.
    columns : dict of str to sequence of n
        What the files and the table state of each specimen.
    sample : Sample
        The coordinates that are analysed.
    chance : dict
        Number of permutations, and their seed.
    results : dict
        What is printed as JSON.
    reported : list
        Results with a section in the report.
    statements : set of str
        Of coordinates, which have been printed.
    """

    console: Console
    files: AnalysisFiles
    shapes: Shapes
    columns: Columns
    sample: Sample
    chance: dict[str, int]
    results: dict[str, object]
    reported: list[TabularStatistic] = field(default_factory=list)
    statements: set[str] = field(default_factory=set)

    def find_column(self, name: str, option: str) -> Sequence[object]:
        """Return one column, or raise an error that names its option and all columns."""
        return find_column(self.columns, name, option)

    def find_labels(self, names: str, option: str) -> list[str]:
        """Return one label per specimen, of a column or of several joined by colons."""
        columns = []
        for name in names.split(":"):
            column = self.find_column(name.strip(), option)
            self._require_filled(column, f"column {name.strip()!r}", option)
            columns.append(column)
        return [".".join(map(str, row)) for row in zip(*columns, strict=True)]

    def find_numbers(self, names: str, option: str) -> list[tuple[float, ...]]:
        """Return a row of numbers per specimen, of columns joined by commas."""
        columns = []
        for name in (word.strip() for word in names.split(",")):
            column = self.find_column(name, option)
            self._require_filled(column, f"column {name!r}", option)
            words = [value for value in column if isinstance(value, str)]
            if words:
                raise click.BadParameter(
                    f"column {name!r} has {words[0]!r}, which is no number.",
                    param_hint=option,
                )
            columns.append(column)
        return list(zip(*columns, strict=True))

    def _require_filled(self, column: Sequence[object], what: str, option: str) -> None:
        """Refuse a column with empty cells, which would be a group or number of their own."""
        from defgpa.errors import format_names

        rows = zip(self.sample.shapes.names, column, strict=True)
        gaps = [name for name, value in rows if value is None or value != value or value == ""]
        if gaps:
            raise click.BadParameter(
                f"{what} is empty for {format_names(gaps)}. Fill it, or --drop these specimens.",
                param_hint=option,
            )

    def permute(
        self, test: Callable[..., _Result], *arguments: object, **settings: object
    ) -> _Result:
        """Run a permutation test, with a bar that moves where somebody watches."""
        with self.console.show_progress("Permuting") as tick:
            return test(*arguments, **settings, **self.chance, progress=tick)

    def fit_model(self, formula: str, **settings: object) -> ProcrustesAnova:
        """Test the terms of a formula; if a column is absent, say how to give one."""
        from defgpa.errors import DefgpaError
        from defgpa.statistics import procrustes_anova

        try:
            return self.permute(procrustes_anova, formula, self.sample, self.columns, **settings)
        except DefgpaError as error:
            if self.columns:
                raise
            raise DefgpaError(f"{error} A table with more is given by --data.") from None

    def add(
        self,
        name: str,
        result: TabularStatistic,
        values: object = None,
        plot: str | None = None,
        **settings: object,
    ) -> None:
        """Show a result, write its table, draw it by a plot, and keep it for JSON and report."""
        from defgpa.io.text.table import format_csv

        self.console.print_text(self._omit_repeated(result))
        self.files.write_table(f"{name}.csv", result.to_csv())
        for suffix, table in result.further_tables().items():
            self.files.write_table(f"{name}_{suffix}.csv", format_csv(*table))
        if plot is not None:
            self.files.write_figure(f"{name}.png", plot, result, **settings)
        if values is not None:
            self.results[name] = values
        self.reported.append(result)

    def _omit_repeated(self, result: TabularStatistic) -> str:
        """Return a result as text, without the statement of its coordinates after the first."""
        text, provenance = f"{result}\n", getattr(result, "provenance", None)
        if provenance is None:  # a comparison of results that have stated theirs
            return text
        statement = f"{provenance}\n"
        if statement in self.statements:
            return text.replace(statement, "")
        self.statements.add(statement)
        return text


def select_values(result: object, *names: str) -> dict[str, object]:
    """Return some attributes of a result by their names, for JSON."""
    return {name: getattr(result, name) for name in names}


@contextlib.contextmanager
def open_analysis(
    console: Console,
    source: Sequence[str],
    title: str,
    manifest: str,
    *,
    data: str | None,
    drop_unlisted: bool,
    output: str | None,
    report: bool = False,
    permutations: int = 0,
    seed: int = 0,
    space: str = "superimposed",
    as_given: bool = False,
    rejected: str = "measured",
    inputs: Sequence[str] = (),
) -> Iterator[Analysis]:
    """Read the specimens, yield their analysis, and write all its results at the end, or none.

    Parameters
    ----------
    console : Console
    source : sequence of str
        A saved result or landmark files.
    title, manifest : str
        Of the report, and the file that lists the results.
    data, drop_unlisted, output, report, permutations, seed, space, as_given, rejected
        As the options say.
    inputs : sequence of str
        Other files that are read, and must not be overwritten.
    """
    from defgpa.statistics import build_sample

    read = [*source, *inputs, *filter(None, [data])]
    files = AnalysisFiles(output, report, manifest, read)
    results: dict[str, object] = {}
    with files.open(console, results):
        x, shapes = read_sample_source(source)
        files.inputs += shapes.metadata.get("sources", ())
        if drop_unlisted:
            x = shapes = drop_unlisted_shapes(console, shapes, data, is_result=x is not shapes)
        columns = collect_columns(console, data, shapes)
        sample = build_sample(x, space=space, superimpose=not as_given, rejected=rejected)
        results["coordinates"] = sample.provenance.to_dict()
        chance = {"n_permutations": permutations, "seed": seed}
        if permutations:
            results |= chance
        analysis = Analysis(console, files, shapes, columns, sample, chance, results)
        yield analysis
        files.write_report(x, analysis.reported, f"{title} of {Path(source[0]).name}")
    files.show(console, results)
