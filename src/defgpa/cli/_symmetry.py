"""``defgpa symmetry``: what two sides share, and how they differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console
from defgpa.cli._input import analysed, column, columns_for
from defgpa.cli._output import Written

if TYPE_CHECKING:
    from defgpa.shapes import Shapes
    from defgpa.statistics import Symmetry


@options.command("symmetry", "defgpa symmetry skulls.tps --pairs 4-3,6-5,8-7 -o symmetry/")
@options.input_argument
@options.known_data
@click.option(
    "--pairs",
    metavar="A-B,C-D,…",
    help="Landmarks that mirror each other, by label (numbers from 1 where they have none); found "
    "from the mean shape's own mirror plane by default.",
)
@click.option("--individual", metavar="COLUMN", help="Who each shape is of.")
@click.option("--side", metavar="COLUMN", help="Left or right, where every shape is one side.")
@click.option("--replicate", metavar="COLUMN", help="Which measurement it is.")
@options.permuting
@options.result_folder
@options.reporting
@options.reading
def command(
    source: tuple[str, ...],
    data: str | None,
    pairs: str | None,
    individual: str | None,
    side: str | None,
    replicate: str | None,
    permutations: int,
    seed: int,
    output: str | None,
    report: bool,
    console: Console,
) -> None:
    """What two sides share, how they always differ, and how they differ by chance.

    INPUT is a saved result or landmark files, with both sides in every shape (object symmetry) or,
    with --side, one side in each (matching symmetry).
    """
    from defgpa.statistics import symmetry

    written = Written(output, report)
    with console.noting():
        x, shapes = analysed(source)
        columns = columns_for(console, data, shapes)
        named = {"individual": individual, "side": side, "replicate": replicate}
        factors = {k: column(columns, v, f"--{k}") for k, v in named.items() if v is not None}
        with console.progress("Permuting") as tick:
            found = symmetry(
                x,
                None if pairs is None else _pairs(pairs, shapes),
                **factors,
                n_permutations=permutations,
                seed=seed,
                progress=tick,
            )
    _say_pairs(console, found, shapes)
    console.say(str(found))
    with console.noting():
        written.table("symmetry.csv", found.table.to_csv())
        written.table("asymmetry.csv", found.indices_to_csv())
        for name in ("symmetric", "asymmetric"):
            written.shapes(name, getattr(found, name), found.individuals, shapes.landmarks)
        written.figure("symmetry.png", "symmetry", found, links=shapes.links)
        written.report(x, [found], f"Symmetry of {Path(source[0]).name}")
    written.tell(console, _figures(found, shapes))


def _pairs(words: str, shapes: Shapes) -> list[tuple[str, str]]:
    """``4-3,6-5`` as pairs of labels; a label may have a dash in it."""
    found = []
    for word in filter(None, (part.strip() for part in words.split(","))):
        cuts = [k for k, sign in enumerate(word) if sign == "-"]
        both = [(word[:k].strip(), word[k + 1 :].strip()) for k in cuts]
        known = [pair for pair in both if set(pair) <= set(shapes.landmarks)]
        if len(known) != 1:
            raise click.BadParameter(
                f"{word!r} is not two landmarks joined by a dash, such as "
                f"{shapes.landmarks[0]}-{shapes.landmarks[-1]}.",
                param_hint="--pairs",
            )
        found += known
    return found


def _say_pairs(console: Console, found: Symmetry, shapes: Shapes) -> None:
    if found.found is not None:
        label = shapes.landmarks
        words = ",".join(f"{label[a]}-{label[b]}" for a, b in found.pairs)
        console.say(
            f"Pairs, found from the mean shape (its mirror image is off by "
            f"{found.found.error:.2%} of its radius; {found.found.agreement:.0%} of the shapes "
            f"confirm them): --pairs {words}"
        )
    if found.mirrored_side is not None:
        console.say(f"Side {found.mirrored_side!r} was mirrored.")


def _figures(found: Symmetry, shapes: Shapes) -> dict[str, Any]:
    return {
        "coordinates": found.provenance.to_dict(),
        "kind": found.kind,
        "table": [row.__dict__ for row in found.table],
        "pairs": [[shapes.landmarks[a], shapes.landmarks[b]] for a, b in found.pairs],
        "directional": found.directional_index,
        "fluctuating": found.fluctuating_index,
        "asymmetry": dict(zip(found.individuals, found.index.tolist(), strict=True)),
    }
