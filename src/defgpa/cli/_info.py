"""``defgpa info``: what is in these files."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli._console import Console, briefly
from defgpa.cli._doubts import note_likely_code, sentences
from defgpa.cli._input import read_input, without_empty
from defgpa.cli._options import input_argument, reading, speaking

if TYPE_CHECKING:
    from defgpa.screening import Screening
    from defgpa.shapes import Shapes

_MOST_ROWS = 40
_MOST_WORDS = 12  # groups, columns or landmarks in a line


@click.command("info", epilog="Example: defgpa info wings.tps")
@input_argument
@reading
@speaking
def command(
    source: tuple[str, ...],
    console: Console,
) -> None:
    """What is in these files: shapes, landmarks, what is missing, what looks wrong."""
    from defgpa.io.format import SeveralSetsError

    try:
        with console.noting():
            shapes = read_input(source, incomplete="drop")
    except SeveralSetsError as error:
        _show_sets(console, error.sets)
        return
    summary = _summary(shapes)
    _show_summary(console, shapes, summary)
    _show_missing(console, shapes)
    with console.noting():
        note_likely_code(console, shapes)
        summary |= _shown_codes(console, shapes)
        summary |= _screened(console, without_empty(console, shapes))
    summary["notes"] = console.notes
    console.result(summary)


def _show_sets(console: Console, sets: Mapping[str, tuple[int, int]]) -> None:
    """The files of a folder that are different sets."""
    rows = [[Path(file).name, *counts] for file, counts in sets.items()]
    console.table("Different sets", ["file", "shapes", "landmarks"], rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        console.say(f"  … and {len(rows) - _MOST_ROWS} more")
    console.note(
        f"These files are different sets: read them one by one, such as {next(iter(sets))}."
    )
    found = [{"file": file, "shapes": n, "landmarks": m} for file, (n, m) in sets.items()]
    console.result({"sets": found, "notes": console.notes})


def _summary(shapes: Shapes) -> dict[str, Any]:
    from defgpa.screening import guessed_units

    known = {key: shapes.metadata[key] for key in ("format", "space") if key in shapes.metadata}
    return {
        "shapes": shapes.n_shapes,
        "landmarks": shapes.n_landmarks,
        "dimension": shapes.dim,
        "missing": int((~shapes.visible).sum()),
        "units": guessed_units(shapes) if shapes.visible.any() else "unknown",
        **known,
        "incomplete": list(shapes.metadata.get("incomplete", ())),
        "groups": dict(Counter(str(g) for g in shapes.metadata.get("groups", ()) if g is not None)),
        "columns": list(
            dict.fromkeys(
                head for own in shapes.metadata.get("variables", ()) for head in own or ()
            )
        ),
        "not_read": list(shapes.metadata.get("not_read", ())),
    }


def _show_summary(console: Console, shapes: Shapes, summary: dict[str, Any]) -> None:
    total = shapes.n_shapes * shapes.n_landmarks
    rows = [
        ["shapes", str(shapes.n_shapes)],
        ["landmarks", str(shapes.n_landmarks)],
        ["dimension", str(shapes.dim)],
        ["missing landmarks", f"{summary['missing']} of {total}"],
        *[[key, str(summary[key])] for key in ("units", "format", "space") if key in summary],
    ]
    if summary["groups"]:
        rows.append(["groups", _counted(summary["groups"])])
    if summary["columns"]:
        rows.append(["columns", f"{_some(summary['columns'])} (one of them: --group)"])
    if summary["incomplete"]:
        n = len(summary["incomplete"])
        rows.append(["unfinished", f"{n}, left out here; a fit needs --drop-incomplete"])
    console.facts("What is in it", rows)


def _shapes(count: int) -> str:
    return "1 shape" if count == 1 else f"{count} shapes"


def _counted(groups: dict[str, int]) -> str:
    """How large the groups are, or how many there are."""
    return _some([f"{group} {count}" for group, count in groups.items()])


def _some(words: Sequence[str]) -> str:
    shown = ", ".join(words[:_MOST_WORDS])
    return shown if len(words) <= _MOST_WORDS else f"{shown} and {len(words) - _MOST_WORDS} more"


def _shown_codes(console: Console, shapes: Shapes) -> dict[str, Any]:
    """Which landmarks lie where a number seems to stand for missing."""
    from defgpa.screening import landmarks_at, missing_code

    code = missing_code(shapes)
    if code is None:
        return {}
    coded = landmarks_at(shapes, code)
    found = {
        shapes.names[i]: [shapes.landmarks[j] for j in row.nonzero()[0]]
        for i, row in enumerate(coded)
        if row.any()
    }
    names = briefly(list(found)[:_MOST_ROWS])
    rows = [[name, _some(labels)] for name, labels in zip(names, found.values(), strict=False)]
    console.table(f"All coordinates {code:g}: missing?", ["shape", "landmarks"], rows)
    if len(found) > _MOST_ROWS:
        console.say(f"  … and {len(found) - _MOST_ROWS} more shapes")
    return {"likely_missing": {"code": code, "landmarks": found}}


def _show_missing(console: Console, shapes: Shapes) -> None:
    """Per shape, a bar of landmarks: seen and not seen."""
    gaps = [i for i, seen in enumerate(shapes.visible) if not seen.all()]
    if not gaps:
        return
    names = briefly([shapes.names[i] for i in gaps[:_MOST_ROWS]])
    beside = min(max(map(len, names)), 40) + len("missing") + 10  # and the blanks between columns
    width = max(10, min(60, console.width - beside))  # characters of the bar
    rows = [
        [name, int((~shapes.visible[i]).sum()), _bar(shapes.visible[i], width)]
        for name, i in zip(names, gaps, strict=False)
    ]
    title = f"Missing landmarks ({_shapes(len(gaps))}; █ seen, · not, ▒ some)"
    console.table(title, ["shape", "missing", "landmarks"], rows)
    if len(gaps) > _MOST_ROWS:
        console.say(f"  … and {len(gaps) - _MOST_ROWS} more shapes with missing landmarks")


def _bar(seen: Any, width: int) -> str:
    import numpy as np

    parts = np.array_split(np.asarray(seen), min(width, len(seen)))
    return "".join("█" if part.all() else "·" if not part.any() else "▒" for part in parts)


def _screened(console: Console, shapes: Shapes) -> dict[str, Any]:
    """What looks wrong, or why the shapes cannot be aligned at all."""
    from defgpa.errors import ShapeError
    from defgpa.screening import screen

    try:
        found = screen(shapes)
    except ShapeError as error:
        console.note(f"These shapes cannot be aligned as they are. {error}")
        return {"alignable": False, "reason": str(error)}
    _show_suspicions(console, list(sentences(found, shapes)))
    if found.mirrored:
        options = " ".join(f"--mirror {shlex.quote(name)}" for name in found.mirrored[:_MOST_WORDS])
        more = " …" if len(found.mirrored) > _MOST_WORDS else ""
        console.say(f"If they were digitised on the other side: {options}{more}")
    return {"alignable": True, "suspicious": _suspicions(found, shapes)}


def _suspicions(found: Screening, shapes: Shapes) -> dict[str, Any]:
    return {
        "mirrored": list(found.mirrored),
        "outliers": list(found.outliers),
        "other_size": list(found.other_size),
        "relative_sizes": {name: found.sizes[shapes.index(name)] for name in found.other_size},
        "exchanged_landmarks": [list(entry) for entry in found.exchanged],
        "misplaced_landmarks": [list(entry) for entry in found.misplaced],
        "coincident_landmarks": [list(entry) for entry in found.coincident],
        "repeated": [list(entry) for entry in found.repeated],
    }


def _show_suspicions(console: Console, sentences: Sequence[tuple[str, str]]) -> None:
    if not sentences:
        console.say("Nothing looks wrong: no mirrored, far or exchanged specimens.")
        return
    names = briefly([name for name, _ in sentences[:_MOST_ROWS]])
    rows = [[name, what] for name, (_, what) in zip(names, sentences, strict=False)]
    console.table("Worth a look", ["shape", "what"], rows)
    if len(sentences) > _MOST_ROWS:
        console.say(f"  … and {len(sentences) - _MOST_ROWS} more")
