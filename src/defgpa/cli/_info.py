"""``defgpa info``: what is in these files."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from defgpa.cli import _options as options
from defgpa.cli._console import Console, abbreviate
from defgpa.cli._input import drop_empty, flatten_planar, note_likely_code, read_input
from defgpa.errors import and_more, listed

if TYPE_CHECKING:
    from defgpa.diagnostics.screening import Screening
    from defgpa.shapes import Shapes

_MAX_ROWS = 40
_MANY = 5  # shapes with the same trouble: more of them are one row
_FEW_MIRRORED = 3  # shapes to name one by one
_MAX_WORDS = 12  # groups, columns or landmarks in a line


@options.command("info", "defgpa info wings.tps")
@options.input_argument
@options.reading
def command(source: tuple[str, ...], console: Console) -> None:
    """Show what is in these files: shapes, landmarks, what is missing, what looks wrong.

    Nothing is written. Mirrored specimens, exchanged or misplaced landmarks, copies, other units
    and codes for missing landmarks are pointed out, with the option that mends them.
    """
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
        summary |= _screened(console, flatten_planar(console, drop_empty(console, shapes)))
    summary["notes"] = console.notes
    console.result(summary)


def _show_sets(console: Console, sets: Mapping[str, tuple[int, int]]) -> None:
    """The files of a folder that are different sets."""
    rows = [[Path(file).name, *counts] for file, counts in sets.items()]
    header = ["file", "shapes", "landmarks"]
    console.table("Different sets", header, rows[:_MAX_ROWS], len(rows))
    console.note(
        f"These files are different sets: read them one by one, such as {next(iter(sets))}."
    )
    found = [{"file": file, "shapes": n, "landmarks": m} for file, (n, m) in sets.items()]
    console.result({"sets": found, "notes": console.notes})


def _summary(shapes: Shapes) -> dict[str, Any]:
    from defgpa.diagnostics.screening import guess_units
    from defgpa.io.text.variables import get_variable_columns

    said = shapes.metadata
    return {
        "shapes": shapes.n_shapes,
        "landmarks": shapes.n_landmarks,
        "dimension": shapes.n_dims,
        "missing": int((~shapes.visible).sum()),
        "units": guess_units(shapes) if shapes.visible.any() else "unknown",
        **{key: said[key] for key in ("format", "space") if key in said},
        "incomplete": list(said.get("incomplete", ())),
        "groups": dict(Counter(str(g) for g in said.get("groups", ()) if g is not None)),
        "columns": list(get_variable_columns(shapes)),
        "not_read": list(said.get("not_read", ())),
    }


def _show_summary(console: Console, shapes: Shapes, summary: dict[str, Any]) -> None:
    total = shapes.n_shapes * shapes.n_landmarks
    rows = [
        ["shapes", str(shapes.n_shapes)],
        ["landmarks", str(shapes.n_landmarks)],
        ["dimension", str(shapes.n_dims)],
        ["missing landmarks", f"{summary['missing']} of {total}"],
        *[[key, str(summary[key])] for key in ("units", "format", "space") if key in summary],
    ]
    if summary["groups"]:
        sizes = [f"{group} {count}" for group, count in summary["groups"].items()]
        rows.append(["groups", and_more(sizes, _MAX_WORDS)])
    if summary["columns"]:
        rows.append(
            ["columns", f"{and_more(summary['columns'], _MAX_WORDS)} (one of them: --group)"]
        )
    if summary["incomplete"]:
        n = len(summary["incomplete"])
        rows.append(["unfinished", f"{n}, left out here; a fit needs --drop-incomplete"])
    console.table("What is in it", ["", ""], rows)


def _shown_codes(console: Console, shapes: Shapes) -> dict[str, Any]:
    """Which landmarks lie where a number seems to stand for missing."""
    from defgpa.io.missing_codes import find_coded_landmarks, find_missing_code

    code = find_missing_code(shapes)
    if code is None:
        return {}
    coded = find_coded_landmarks(shapes, code)
    found = {
        shapes.names[i]: [shapes.landmarks[j] for j in row.nonzero()[0]]
        for i, row in enumerate(coded)
        if row.any()
    }
    names = abbreviate(list(found)[:_MAX_ROWS])
    rows = [
        [name, and_more(labels, _MAX_WORDS)]
        for name, labels in zip(names, found.values(), strict=False)
    ]
    title = f"All coordinates {code:g}: missing?"
    console.table(title, ["shape", "landmarks"], rows, len(found), " shapes")
    return {"likely_missing": {"code": code, "landmarks": found}}


def _show_missing(console: Console, shapes: Shapes) -> None:
    """Per shape, a bar of landmarks: seen and not seen."""
    from rich.console import Console as RichConsole

    gaps = [i for i, seen in enumerate(shapes.visible) if not seen.all()]
    if not gaps:
        return
    names = abbreviate([shapes.names[i] for i in gaps[:_MAX_ROWS]])
    beside = min(max(map(len, names)), 40) + len("missing") + 10  # and the blanks between columns
    width = max(10, min(60, RichConsole().width - beside))  # characters of the bar
    rows = [
        [name, int((~shapes.visible[i]).sum()), _bar(shapes.visible[i], width)]
        for name, i in zip(names, gaps, strict=False)
    ]
    shown = "1 shape" if len(gaps) == 1 else f"{len(gaps)} shapes"
    title = f"Missing landmarks ({shown}; █ seen, · not, ▒ some)"
    header, more = ["shape", "missing", "landmarks"], " shapes with missing landmarks"
    console.table(title, header, rows, len(gaps), more)


def _bar(seen: Any, width: int) -> str:
    import numpy as np

    parts = np.array_split(np.asarray(seen), min(width, len(seen)))
    return "".join("█" if part.all() else "·" if not part.any() else "▒" for part in parts)


def _screened(console: Console, shapes: Shapes) -> dict[str, Any]:
    """What looks wrong, or why the shapes cannot be aligned at all."""
    from defgpa.diagnostics.screening import screen
    from defgpa.errors import ShapeError

    try:
        found = screen(shapes)
    except ShapeError as error:
        console.note(f"These shapes cannot be aligned as they are. {error}")
        return {"alignable": False, "reason": str(error)}
    _show_suspicions(console, list(_sentences(found, shapes)))
    if found.mirrored:
        names = [f"--mirror {shlex.quote(name)}" for name in found.mirrored]
        words = " ".join(names) if len(names) <= _FEW_MIRRORED else "--mirror auto"
        console.say(f"If they were digitised on the other side: {words}")
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
    names = abbreviate([name for name, _ in sentences[:_MAX_ROWS]])
    rows = [[name, what] for name, (_, what) in zip(names, sentences, strict=False)]
    console.table("Worth a look", ["shape", "what"], rows, len(sentences))


def _sentences(found: Screening, shapes: Shapes) -> Iterator[tuple[str, str]]:
    """Shape and what is odd about it, one sentence each."""
    for name in found.outliers:
        yield name, "is far from all the others"
    yield from _other_sizes({name: found.sizes[shapes.index(name)] for name in found.other_size})
    for name in found.mirrored:
        yield name, "fits clearly better mirrored"
    for name, a, b in found.exchanged:
        yield name, f"landmarks {a} and {b} look exchanged"
    for name, label in found.misplaced:
        yield name, f"landmark {label} is far from where the others have it"
    yield from _repeated(found.repeated)
    for name, pairs in groupby(found.coincident, key=lambda entry: entry[0]):
        (_, a, b), *rest = pairs
        more = f" (and {len(rest)} more pair{'s' * (len(rest) > 1)})" if rest else ""
        yield name, f"landmarks {a} and {b} have the same place{more}"


def _other_sizes(sizes: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Shapes of another size, many of them in one sentence."""
    if len(sizes) <= _MANY:
        for name, size in sizes.items():
            yield name, f"{_times(size)} the usual size: other units?"
        return
    low, high = min(sizes.values()), max(sizes.values())
    span = f"{_times(low)} to {_times(high)} the usual size"
    yield f"{len(sizes)} shapes", f"{span}, such as {listed(sizes, 3)}: other units?"


def _repeated(pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Shapes that are copies of others, likewise."""
    if len(pairs) <= _MANY:
        for name, first in pairs:
            yield name, f"has the very coordinates of {first}"
        return
    names = listed([name for name, _ in pairs], 3)
    yield f"{len(pairs)} shapes", f"have the very coordinates of others, such as {names}"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio > 1 else f"1/{1 / ratio:,.0f} of"
