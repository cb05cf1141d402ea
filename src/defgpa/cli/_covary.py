"""``defgpa covary``: how parts of a shape, or shape and numbers, vary together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import bad_word, collect_columns, find_column, read_sample_source
from defgpa.cli._output import AnalysisFiles, refuse_inputs

if TYPE_CHECKING:
    from defgpa.shapes import Shapes

_STEMS = ("pls", "scores", "integration", "modularity", "hypotheses")


@options.command("covary", "defgpa covary heads.tps --modules jaw=1-5,skull=6-12 -o covary/")
@options.input_argument
@options.option(
    "--modules",
    metavar="NAME=A-B,…",
    multiple=True,
    group=options.ANALYSIS,
    help="Modules and their landmarks, such as jaw=1-5+9,skull=6-8; the rest may be *. Repeat to "
    "compare hypotheses.",
)
@options.option(
    "--with",
    "numbers",
    metavar="COLUMN,…",
    group=options.ANALYSIS,
    help="Two-block PLS of shape with these columns of numbers.",
)
@options.permutations
@options.result_folder
@options.covariates
@options.reading
def command(
    source: tuple[str, ...],
    modules: tuple[str, ...],
    numbers: str | None,
    permutations: int,
    seed: int,
    output: str | None,
    data: str | None,
    console: Console,
) -> None:
    """Test how parts of a shape, or shape and numbers, vary together.

    INPUT is a saved result or landmark files. With --modules: integration (r-PLS) and modularity
    (covariance ratio), and two-block PLS where there are two modules. The specimens are analysed in
    the classical tangent space; missing landmarks are completed.
    """
    from defgpa.statistics import build_sample, two_block_pls

    if not modules and numbers is None:
        raise click.UsageError("Nothing to compare: give --modules, or --with and --data.")
    files = AnalysisFiles(output, False, "covary.json")
    results: dict[str, Any] = {}
    if files.folder is not None:
        inputs = [*source, *filter(None, [data])]
        refuse_inputs(inputs, files.folder, *_STEMS, manifest="covary.json")
    with files.open(console, results):
        x, shapes = read_sample_source(source)
        partitions = [_parse_modules(words, shapes) for words in modules]
        columns = collect_columns(console, data, shapes)
        sample = build_sample(x)
        results["coordinates"] = sample.provenance.to_dict()
        chance: dict[str, Any] = {"n_permutations": permutations, "seed": seed}
        if numbers is not None:
            heads = [word.strip() for word in numbers.split(",")]
            block = [find_column(columns, head, "--with") for head in heads]
            with console.progress("Permuting") as tick:
                pls = two_block_pls(sample, list(zip(*block, strict=True)), **chance, progress=tick)
            _add_pls(console, files, results, pls, sample.shapes.names, ("shape", numbers))
        elif len(partitions[0]) == 2:
            with console.progress("Permuting") as tick:
                pls = two_block_pls(sample, partition=partitions[0], **chance, progress=tick)
            _add_pls(console, files, results, pls, sample.shapes.names, tuple(partitions[0]))
        if partitions:
            _test_modules(console, files, results, sample, modules, partitions, chance)
    files.show(console, results)


def _add_pls(
    console: Console,
    files: AnalysisFiles,
    results: dict[str, Any],
    pls: Any,
    names: tuple[str, ...],
    blocks: tuple[str, ...],
) -> None:
    console.say(f"{pls}\n")
    files.write_table("pls.csv", pls.to_csv())
    files.write_table("scores.csv", pls.scores_to_csv(names))
    files.write_figure("pls.png", "covariation", pls, names=blocks)
    results["pls"] = {"r": pls.r, "z": pls.z, "p": pls.p, "singular_values": pls.singular_values}


def _test_modules(
    console: Console,
    files: AnalysisFiles,
    results: dict[str, Any],
    sample: Any,
    words: tuple[str, ...],
    partitions: list[dict[str, list[int]]],
    chance: dict[str, Any],
) -> None:
    """Test integration and modularity of every hypothesis, and compare them where several are."""
    from defgpa.statistics import compare_effect_sizes, integration, modularity

    tests_by_name: dict[str, Any] = {"integration": integration, "modularity": modularity}
    for name, test in tests_by_name.items():
        tests = []
        for partition in partitions:
            with console.progress("Permuting") as tick:
                tests.append(test(sample, partition, **chance, progress=tick))
            console.say(f"{tests[-1]}\n")
        results[name] = [
            {"modules": t.modules, "observed": t.observed, "z": t.z, "p": t.p} for t in tests
        ]
        for k, result in enumerate(tests, 1):
            suffix = "" if len(tests) == 1 else f"_{k}"
            files.write_table(f"{name}{suffix}.csv", result.to_csv())
            files.write_figure(f"{name}{suffix}.png", "permuted", result)
        if len(tests) > 1:
            compared = compare_effect_sizes(tests, words)
            console.say(f"Hypotheses compared by the Z of {tests[0].statistic}\n{compared}\n")
            files.write_table(f"hypotheses_{name}.csv", compared.to_csv())


def _parse_modules(words: str, shapes: Shapes) -> dict[str, list[int]]:
    """Parse ``jaw=1-5+9,skull=*`` as modules and the numbers of their landmarks, from 0."""
    labels = shapes.landmarks
    place = {label: k for k, label in enumerate(labels)}
    modules: dict[str, list[int]] = {}
    example = "modules such as jaw=1-5+9,skull=*"
    for item in words.split(","):
        name, sign, members = (part.strip() for part in item.partition("="))
        if not sign or not name or not members or name in modules:
            raise bad_word("--modules", example, words)
        modules[name] = []
        for member in members.split("+"):
            first, dash, last = (part.strip() for part in member.partition("-"))
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
    taken = {number for numbers in modules.values() for number in numbers}
    for name in modules:
        if not modules[name]:
            modules[name] = [k for k in range(len(labels)) if k not in taken]
    return modules
