"""``defgpa info``: what is in these files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from defgpa.cli._console import Console
from defgpa.cli._input import read_input
from defgpa.cli._options import input_argument, reading, speaking

if TYPE_CHECKING:
    from defgpa.screening import Screening
    from defgpa.shapes import Shapes

_MOST_ROWS = 40


@click.command("info", epilog="Example: defgpa info wings.tps")
@input_argument
@reading
@speaking
def command(
    source: tuple[str, ...],
    format_: str | None,
    missing: str,
    layout: str,
    lenient: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """What is in these files: shapes, landmarks, what is missing, what looks wrong."""
    from defgpa.errors import ShapeError
    from defgpa.screening import guessed_units, screen

    console = Console(quiet, as_json)
    with console.noting():
        shapes = read_input(source, format_, missing, layout, lenient)
    summary: dict[str, Any] = {
        "shapes": shapes.n_shapes,
        "landmarks": shapes.n_landmarks,
        "dimension": shapes.dim,
        "missing": int((~shapes.visible).sum()),
        "units": guessed_units(shapes) if shapes.visible.any() else "unknown",
    }
    for key in ("format", "space"):
        if shapes.metadata.get(key):
            summary[key] = shapes.metadata[key]
    total = shapes.n_shapes * shapes.n_landmarks
    console.table(
        "What is in it",
        ["", ""],
        [
            ["shapes", summary["shapes"]],
            ["landmarks", summary["landmarks"]],
            ["dimension", summary["dimension"]],
            ["missing landmarks", f"{summary['missing']} of {total}"],
            *[[key, summary[key]] for key in ("units", "format", "space") if key in summary],
        ],
    )
    _show_missing(console, shapes)
    try:
        found = screen(shapes)
    except ShapeError as error:
        console.note(f"These shapes cannot be aligned as they are. {error}")
        summary["alignable"] = False
        summary["reason"] = str(error)
    else:
        summary["alignable"] = True
        summary["suspicious"] = _suspicions(found)
        _show_suspicions(console, found)
    summary["notes"] = console.notes
    console.result(summary)


def _show_missing(console: Console, shapes: Shapes) -> None:
    """Per shape, a bar of landmarks: seen and not seen."""
    gaps = [i for i, seen in enumerate(shapes.visible) if not seen.all()]
    if not gaps:
        return
    rows = []
    for i in gaps[:_MOST_ROWS]:
        seen = shapes.visible[i]
        rows.append([shapes.names[i], int((~seen).sum()), _bar(seen)])
    title = f"Missing landmarks ({len(gaps)} shapes; █ seen, · not)"
    console.table(title, ["shape", "missing", "landmarks"], rows)
    if len(gaps) > _MOST_ROWS:
        console.say(f"  … and {len(gaps) - _MOST_ROWS} more shapes with missing landmarks")


def _bar(seen: Any, width: int = 60) -> str:
    import numpy as np

    parts = np.array_split(np.asarray(seen), min(width, len(seen)))
    return "".join("█" if part.all() else "·" if not part.any() else "▒" for part in parts)


def _suspicions(found: Screening) -> dict[str, Any]:
    return {
        "mirrored": list(found.mirrored),
        "outliers": list(found.outliers),
        "other_size": list(found.other_size),
        "exchanged_landmarks": [list(entry) for entry in found.exchanged],
        "coincident_landmarks": [list(entry) for entry in found.coincident],
    }


def _show_suspicions(console: Console, found: Screening) -> None:
    rows = [
        *[[name, "fits clearly better mirrored"] for name in found.mirrored],
        *[[name, "is far from all the others"] for name in found.outliers],
        *[[name, "is of quite another size: other units?"] for name in found.other_size],
        *[[s, f"landmarks {a} and {b} look exchanged"] for s, a, b in found.exchanged],
        *[[s, f"landmarks {a} and {b} have the same place"] for s, a, b in found.coincident],
    ]
    if not rows:
        console.say("Nothing looks wrong: no mirrored, far or exchanged specimens.")
        return
    console.table("Worth a look", ["shape", "what"], rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        console.say(f"  … and {len(rows) - _MOST_ROWS} more")
