"""``defgpa symmetry``: what two sides share, and how they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from defgpa.cli import _options as options
from defgpa.cli._analysis import AnalysisSettings, common_options, open_analysis
from defgpa.cli._console import Console
from defgpa.cli._input import parse_pair

if TYPE_CHECKING:
    from defgpa.shapes import Shapes
    from defgpa.statistics import Symmetry


@options.command("symmetry", "defgpa symmetry skulls.tps --pairs 4-3,6-5,8-7 -o symmetry/")
@options.input_argument
@options.analysis_option(
    "--pairs",
    metavar="A-B,C-D,…",
    help="Landmarks that mirror each other, by label; default: found from the mirror plane of "
    "the mean shape.",
)
@options.analysis_option("--individual", metavar="COLUMN", help="Column with the individual's ID.")
@options.analysis_option(
    "--side",
    metavar="COLUMN",
    help="Column with the side, where every shape is one side (matching symmetry).",
)
@options.analysis_option("--replicate", metavar="COLUMN", help="Column with the replicate.")
@common_options
def command(
    source: tuple[str, ...],
    pairs: str | None,
    individual: str | None,
    side: str | None,
    replicate: str | None,
    console: Console,
    **settings: Unpack[AnalysisSettings],
) -> None:
    """Separate symmetric variation, directional asymmetry and fluctuating asymmetry.

    INPUT is a saved result or landmark files, with both sides in every shape (object symmetry) or,
    with --side, one side in each (matching symmetry).
    """
    from defgpa.statistics import symmetry

    with open_analysis(console, source, "Symmetry", "symmetry.json", **settings) as analysis:
        shapes = analysis.shapes
        words = {"individual": individual, "side": side, "replicate": replicate}
        factors = {
            factor: analysis.find_labels(name, f"--{factor}")
            for factor, name in words.items()
            if name is not None
        }
        result = analysis.permute(
            symmetry,
            analysis.sample,
            None if pairs is None else _parse_pairs(pairs, shapes),
            **factors,
        )
        _show_pairs(console, result, shapes)
        analysis.results |= _collect_results(result, shapes)
        analysis.add("symmetry", result, plot="symmetry", links=shapes.links)
        analysis.files.write_table("asymmetry.csv", result.indices_to_csv())
        if result.size_table is not None:
            analysis.files.write_table("size_symmetry.csv", result.size_table.to_csv())
        for name in ("symmetric", "asymmetric"):
            points = getattr(result, name)
            analysis.files.write_shapes(name, points, result.individuals, shapes.landmarks)


def _parse_pairs(words: str, shapes: Shapes) -> list[tuple[str, str]]:
    """Parse ``4-3,6-5`` as pairs of labels."""
    items = [item.strip() for item in words.split(",")]
    return [parse_pair(item, shapes, "--pairs") for item in items if item]


def _show_pairs(console: Console, result: Symmetry, shapes: Shapes) -> None:
    """Show the pairs that were found, written as the option, and the mirrored specimens."""
    mirror = result.mirror_pairs
    if mirror is not None:
        label = shapes.landmarks
        words = ",".join(f"{label[a]}-{label[b]}" for a, b in result.pairs)
        console.print_paragraph(
            f"Pairs, found from the mean shape (its mirror image is off by "
            f"{mirror.error:.2%} of its radius; {mirror.agreement:.0%} of the shapes "
            "confirm them):"
        )
        console.print_line(f"  --pairs {words}")
    if result.mirrored_side is not None:
        console.print_line(f"Side {result.mirrored_side!r} was mirrored.")


def _collect_results(result: Symmetry, shapes: Shapes) -> dict[str, object]:
    return {
        "kind": result.kind,
        "table": [row.__dict__ for row in result.table],
        "size_table": [row.__dict__ for row in result.size_table or ()],
        "coordinates": result.provenance.to_dict(),
        "pairs": [[shapes.landmarks[a], shapes.landmarks[b]] for a, b in result.pairs],
        "directional": result.directional_index,
        "fluctuating": result.fluctuating_index,
        "asymmetry": dict(zip(result.individuals, result.index.tolist(), strict=True)),
    }
