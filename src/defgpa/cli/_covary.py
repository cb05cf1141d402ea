"""``defgpa covary``: how parts of a shape, or shape and numbers, vary together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
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
from defgpa.cli._input import make_word_error

if TYPE_CHECKING:
    from defgpa.shapes import Shapes
    from defgpa.statistics import ModuleTest, TwoBlockPLS

Modules = dict[str, list[int]]

_MIN_SPECIMENS = 3  # of a group that is tested on its own


@options.command("covary", "defgpa covary heads.tps --modules jaw=1-5,skull=6-12 -o covary/")
@options.input_argument
@options.analysis_option(
    "--modules",
    metavar="NAME=A-B,…|FILE|links",
    multiple=True,
    help="Modules and their landmarks, such as jaw=1-5+9,skull=6-8, the rest may be *; a table "
    "with a column of landmarks and a column for each hypothesis; or links: the parts that "
    "links join. Repeat to compare hypotheses.",
)
@options.analysis_option(
    "--with",
    "numbers",
    metavar="COLUMN,…",
    help="Two-block PLS of shape with these columns of numbers.",
)
@options.analysis_option(
    "--by",
    metavar="COLUMN[:COLUMN]",
    help="Also test the groups in COLUMN each on its own, and compare how strong the effects are.",
)
@options.analysis_option(
    "--vrel",
    is_flag=True,
    help="Relative variance of the eigenvalues: integration of all landmarks, without modules.",
)
@analysis_options
def command(
    source: tuple[str, ...],
    modules: tuple[str, ...],
    numbers: str | None,
    by: str | None,
    vrel: bool,
    console: Console,
    **settings: Unpack[AnalysisSettings],
) -> None:
    """Test how parts of a shape, or shape and numbers, vary together.

    INPUT is a saved result or landmark files. With --modules: integration (r-PLS) and modularity
    (covariance ratio), and two-block PLS where there are two modules. The specimens are analysed in
    the classical tangent space; missing landmarks are completed.
    """
    from defgpa.statistics import eigenvalue_variance, two_block_pls

    if not modules and numbers is None and (by is not None or not vrel):
        raise click.UsageError("Nothing to compare: give --modules, or --with and --data.")
    with open_analysis(console, source, "Covariation", "covary.json", **settings) as analysis:
        hypotheses = [
            (name, partition)
            for words in modules
            for name, partition in _parse_modules(words, analysis.shapes).items()
        ]
        if by is not None and len(hypotheses) > 1:
            raise click.UsageError("--by compares groups by one hypothesis: give --modules once.")
        rows: list[tuple[float, ...]] = []
        if numbers is not None:
            rows = analysis.find_numbers(numbers, "--with")
            _add_pls(analysis, analysis.permute(two_block_pls, analysis.sample, rows))
        elif hypotheses and len(hypotheses[0][1]) == 2:
            partition = hypotheses[0][1]
            pls = analysis.permute(two_block_pls, analysis.sample, partition=partition)
            _add_pls(analysis, pls)
        if hypotheses:
            _test_modules(analysis, hypotheses)
        if by is not None:
            _compare_groups(analysis, by, rows, hypotheses[0][1] if hypotheses else None)
        if vrel:
            result = eigenvalue_variance(analysis.sample)
            analysis.add("vrel", result, result.records()[0], "scree")


def _add_pls(analysis: Analysis, pls: TwoBlockPLS) -> None:
    values = select_values(pls, "r", "z", "p", "singular_values")
    analysis.add("pls", pls, values, "covariation")
    analysis.files.write_table("scores.csv", pls.scores_to_csv(analysis.shapes.names))


def _test_modules(analysis: Analysis, hypotheses: Sequence[tuple[str, Modules]]) -> None:
    """Test integration and modularity under every hypothesis, and compare several hypotheses."""
    from defgpa.statistics import compare_effect_sizes, integration, modularity

    for name, run_test in {"integration": integration, "modularity": modularity}.items():
        tests: list[ModuleTest] = []
        for k, (_, partition) in enumerate(hypotheses, 1):
            tests.append(analysis.permute(run_test, analysis.sample, partition))
            suffix = "" if len(hypotheses) == 1 else f"_{k}"
            analysis.add(f"{name}{suffix}", tests[-1], plot="permuted")
        analysis.results[name] = [
            select_values(test, "modules", "observed", "z", "p", "interval") for test in tests
        ]
        if len(tests) > 1:
            compared = compare_effect_sizes(tests, [words for words, _ in hypotheses])
            analysis.add(f"hypotheses_{name}", compared, compared.records(), "effect_sizes")


def _compare_groups(
    analysis: Analysis,
    column: str,
    numbers: Sequence[tuple[float, ...]],
    partition: Modules | None,
) -> None:
    """Test every group of specimens on its own, and compare the effect sizes of the groups."""
    from defgpa.statistics import compare_effect_sizes, integration, modularity, two_block_pls

    labels = analysis.find_labels(column, "--by")
    groups = {
        name: [k for k, label in enumerate(labels) if label == name]
        for name in dict.fromkeys(labels)
    }
    if len(groups) < 2 or min(map(len, groups.values())) < _MIN_SPECIMENS:
        counts = ", ".join(f"{len(members)} of {name!r}" for name, members in groups.items())
        raise click.BadParameter(
            f"at least 2 groups of {_MIN_SPECIMENS} specimens are compared; there are {counts}.",
            param_hint="--by",
        )
    samples = [analysis.sample.take(members) for members in groups.values()]
    blocks = [[numbers[k] for k in members] for members in groups.values()] if numbers else []
    results: dict[str, Sequence[TwoBlockPLS | ModuleTest]] = {}
    if blocks:
        pairs = zip(samples, blocks, strict=True)
        results["pls"] = [analysis.permute(two_block_pls, *pair) for pair in pairs]
    if partition is not None:
        for name, run_test in {"integration": integration, "modularity": modularity}.items():
            results[name] = [analysis.permute(run_test, sample, partition) for sample in samples]
    for name, tests in results.items():
        compared = compare_effect_sizes(tests, list(groups))
        figures = [
            {"group": group, "observed": test.observed, "z": test.z, "p": test.p}
            for group, test in zip(groups, tests, strict=True)
        ]
        values = {"groups": figures, "pairs": compared.records()}
        analysis.add(f"groups_{name}", compared, values, "effect_sizes")


def _parse_modules(words: str, shapes: Shapes) -> dict[str, Modules]:
    """Parse ``jaw=1-5+9,skull=*``, a table or ``links`` as hypotheses, each with a name."""
    from defgpa.statistics import partition_by_links, read_partitions

    if words == "links":
        return {words: partition_by_links(shapes)}
    if words.startswith("@") or Path(words).is_file():
        return dict(read_partitions(words.removeprefix("@"), shapes.landmarks))
    return {words: _parse_ranges(words, shapes)}


def _parse_ranges(words: str, shapes: Shapes) -> Modules:
    """Parse ``jaw=1-5+9,skull=*`` as modules and the numbers of their landmarks, from 0."""
    labels = shapes.landmarks
    place = {label: k for k, label in enumerate(labels)}
    modules: Modules = {}
    example = "modules such as jaw=1-5+9,skull=*"
    for item in words.split(","):
        name, sign, members = (word.strip() for word in item.partition("="))
        if not sign or not name or not members or name in modules:
            raise make_word_error("--modules", example, words)
        modules[name] = []
        for member in members.split("+"):
            first, dash, last = (word.strip() for word in member.partition("-"))
            if member in place:
                modules[name].append(place[member])
            elif dash and first in place and last in place and place[first] <= place[last]:
                modules[name] += range(place[first], place[last] + 1)
            elif member != "*":
                raise click.BadParameter(
                    f"{member!r} is no landmark, and no range of landmarks such as "
                    f"{labels[0]}-{labels[-1]}.",
                    param_hint="--modules",
                )
    assigned_numbers = {number for numbers in modules.values() for number in numbers}
    for name in modules:
        if not modules[name]:
            modules[name] = [k for k in range(len(labels)) if k not in assigned_numbers]
    return modules
