"""``defgpa symmetry``: what two sides share, and how they differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import collect_columns, find_column, parse_pair, read_sample_source
from defgpa.cli._output import AnalysisFiles, refuse_inputs

if TYPE_CHECKING:
    from defgpa.shapes import Shapes
    from defgpa.statistics import Symmetry

_STEMS = ("symmetry", "asymmetry", "symmetric", "asymmetric")


@options.command("symmetry", "defgpa symmetry skulls.tps --pairs 4-3,6-5,8-7 -o symmetry/")
@options.input_argument
@options.option(
    "--pairs",
    metavar="A-B,C-D,…",
    group=options.ANALYSIS,
    help="Landmarks that mirror each other, by label; default: found from the mirror plane of "
    "the mean shape.",
)
@options.option(
    "--individual",
    metavar="COLUMN",
    group=options.ANALYSIS,
    help="Column with the individual's ID.",
)
@options.option(
    "--side",
    metavar="COLUMN",
    group=options.ANALYSIS,
    help="Column with the side, where every shape is one side (matching symmetry).",
)
@options.option(
    "--replicate", metavar="COLUMN", group=options.ANALYSIS, help="Column with the replicate."
)
@options.permutations
@options.result_folder
@options.report
@options.covariates
@options.reading
def command(
    source: tuple[str, ...],
    pairs: str | None,
    individual: str | None,
    side: str | None,
    replicate: str | None,
    permutations: int,
    seed: int,
    output: str | None,
    report: bool,
    data: str | None,
    console: Console,
) -> None:
    """Separate symmetric variation, directional asymmetry and fluctuating asymmetry.

    INPUT is a saved result or landmark files, with both sides in every shape (object symmetry) or,
    with --side, one side in each (matching symmetry).
    """
    from defgpa.statistics import symmetry

    files = AnalysisFiles(output, report, "symmetry.json")
    results: dict[str, Any] = {}
    if files.folder is not None:
        inputs = [*source, *filter(None, [data])]
        refuse_inputs(inputs, files.folder, *_STEMS, manifest="symmetry.json")
    with files.open(console, results):
        x, shapes = read_sample_source(source)
        columns = collect_columns(console, data, shapes)
        named = {"individual": individual, "side": side, "replicate": replicate}
        factors = {
            factor: find_column(columns, name, f"--{factor}")
            for factor, name in named.items()
            if name is not None
        }
        with console.progress("Permuting") as tick:
            result = symmetry(
                x,
                None if pairs is None else _parse_pairs(pairs, shapes),
                **factors,
                n_permutations=permutations,
                seed=seed,
                progress=tick,
            )
        _show_pairs(console, result, shapes)
        console.say(str(result))
        results |= _collect_results(result, shapes)
        files.write_table("symmetry.csv", result.table.to_csv())
        files.write_table("asymmetry.csv", result.indices_to_csv())
        for name in ("symmetric", "asymmetric"):
            points = getattr(result, name)
            files.write_shapes(name, points, result.individuals, shapes.landmarks)
        files.write_figure("symmetry.png", "symmetry", result, links=shapes.links)
        files.write_report(x, [result], f"Symmetry of {Path(source[0]).name}")
    files.show(console, results)


def _parse_pairs(words: str, shapes: Shapes) -> list[tuple[str, str]]:
    """Parse ``4-3,6-5`` as pairs of labels."""
    items = [item.strip() for item in words.split(",")]
    return [parse_pair(item, shapes, "--pairs") for item in items if item]


def _show_pairs(console: Console, result: Symmetry, shapes: Shapes) -> None:
    """Show the pairs that were found, as the option that would give them, and what was mirrored."""
    if result.found is not None:
        label = shapes.landmarks
        words = ",".join(f"{label[a]}-{label[b]}" for a, b in result.pairs)
        console.say_paragraph(
            f"Pairs, found from the mean shape (its mirror image is off by "
            f"{result.found.error:.2%} of its radius; {result.found.agreement:.0%} of the shapes "
            "confirm them):"
        )
        console.say(f"  --pairs {words}")
    if result.mirrored_side is not None:
        console.say(f"Side {result.mirrored_side!r} was mirrored.")


def _collect_results(result: Symmetry, shapes: Shapes) -> dict[str, Any]:
    return {
        "kind": result.kind,
        "table": [row.__dict__ for row in result.table],
        "coordinates": result.provenance.to_dict(),
        "pairs": [[shapes.landmarks[a], shapes.landmarks[b]] for a, b in result.pairs],
        "directional": result.directional_index,
        "fluctuating": result.fluctuating_index,
        "asymmetry": dict(zip(result.individuals, result.index.tolist(), strict=True)),
    }
