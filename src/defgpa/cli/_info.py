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
from defgpa.cli._input import note_likely_code, read_input
from defgpa.errors import format_names, format_some

if TYPE_CHECKING:
    from defgpa.arrays import Array, Mask
    from defgpa.diagnostics.screening import Screening
    from defgpa.diagnostics.suspects import Suspect
    from defgpa.shapes import Shapes

_MAX_ROWS = 40
_MAX_SINGLE_ROWS = 5  # shapes with the same trouble: more of them are one row
_MAX_MIRRORED = 3  # shapes to name one by one
_MAX_FITTED = 2_000_000  # coordinates; more would take minutes
_MAX_SUSPECTS = 8  # landmarks to list in full: where more do not fit, the worst of each kind
_MAX_WORST = 5  # of a kind
_MAX_SHIFTED = 3  # labels of a block of shifted landmarks
_FAR_PHRASE = "is far from all the others"
_MAX_WORDS = 12  # groups, columns or landmarks in a line


@options.command("info", "defgpa info wings.tps")
@options.input_argument
@options.reading
def command(source: tuple[str, ...], console: Console) -> None:
    """Show what is in these files: shapes, landmarks, what is missing, what looks wrong.

    Nothing is written. Mirrored specimens, exchanged or misplaced landmarks, copies, other units
    and codes for missing landmarks are pointed out, with the option that mends them.
    """
    from defgpa.diagnostics.preparation import drop_empty, flatten_planar
    from defgpa.io.format import SeveralSetsError

    try:
        with console.note_warnings():
            shapes = read_input(source, incomplete="drop")
    except SeveralSetsError as error:
        _show_sets(console, error.sets)
        return
    summary = _summarise(shapes)
    _show_summary(console, shapes, summary)
    _show_missing(console, shapes)
    with console.note_warnings():
        code = note_likely_code(console, shapes)
        if code is not None:
            shapes, summary["likely_missing"] = _show_coded_landmarks(console, shapes, code)
        summary |= _show_screening(console, flatten_planar(drop_empty(shapes)))
    summary["notes"] = console.notes
    console.print_json(summary)


def _show_sets(console: Console, sets: Mapping[str, tuple[int, int]]) -> None:
    """Show the files of a folder that are different sets."""
    rows = [[Path(file).name, *counts] for file, counts in sets.items()]
    header = ["file", "shapes", "landmarks"]
    console.print_table("Different sets", header, rows[:_MAX_ROWS], len(rows))
    console.note(
        f"These files are different sets: read them one by one, such as {next(iter(sets))}."
    )
    listed_sets = [{"file": file, "shapes": n, "landmarks": m} for file, (n, m) in sets.items()]
    console.print_json({"sets": listed_sets, "notes": console.notes})


def _summarise(shapes: Shapes) -> dict[str, object]:
    """Return what is in the files, for machines."""
    from defgpa.diagnostics.preparation import guess_units
    from defgpa.io.text.variables import get_variable_columns

    metadata = shapes.metadata
    return {
        "shapes": shapes.n_shapes,
        "landmarks": shapes.n_landmarks,
        "dimension": shapes.n_dims,
        "missing": int((~shapes.visible).sum()),
        "units": guess_units(shapes) if shapes.visible.any() else "unknown",
        **{key: metadata[key] for key in ("format", "space") if key in metadata},
        "incomplete": list(metadata.get("incomplete", ())),
        "groups": dict(Counter(str(g) for g in metadata.get("groups", ()) if g is not None)),
        "columns": list(get_variable_columns(shapes)),
        "not_read": list(metadata.get("not_read", ())),
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
        rows.append(["groups", format_some(sizes, _MAX_WORDS)])
    if summary["columns"]:
        rows.append(
            ["columns", f"{format_some(summary['columns'], _MAX_WORDS)} (one of them: --group)"]
        )
    if summary["incomplete"]:
        n = len(summary["incomplete"])
        rows.append(["unfinished", f"{n}, left out, as a fit does with --drop-incomplete"])
    console.print_table("Contents", ["", ""], rows)


def _show_coded_landmarks(
    console: Console, shapes: Shapes, code: float
) -> tuple[Shapes, dict[str, object]]:
    """Show which landmarks have a code for missing, and return the shapes without them."""
    import numpy as np

    from defgpa.io.missing_codes import find_coded_landmarks

    coded = find_coded_landmarks(shapes, code)
    by_shape = {
        shapes.names[i]: [shapes.landmarks[j] for j in row.nonzero()[0]]
        for i, row in enumerate(coded)
        if row.any()
    }
    names = abbreviate(list(by_shape)[:_MAX_ROWS])
    rows = [
        [name, format_some(labels, _MAX_WORDS)]
        for name, labels in zip(names, by_shape.values(), strict=False)
    ]
    title = f"All coordinates {code:g}: missing? The rest was checked as if they were"
    console.print_table(title, ["shape", "landmarks"], rows, len(by_shape), " shapes")
    points = np.where(coded[..., None], np.nan, shapes.points)
    return shapes.with_points(points), {"code": code, "landmarks": by_shape}


def _show_missing(console: Console, shapes: Shapes) -> None:
    """Show for each shape a bar of its landmarks: present and missing."""
    from rich.console import Console as RichConsole

    gaps = [i for i, visible in enumerate(shapes.visible) if not visible.all()]
    if not gaps:
        return
    names = abbreviate([shapes.names[i] for i in gaps[:_MAX_ROWS]])
    taken = min(max(map(len, names)), 40) + len("missing") + 10  # and the blanks between columns
    width = max(10, min(60, RichConsole().width - taken))  # characters of the bar
    rows = [
        [name, int((~shapes.visible[i]).sum()), _draw_bar(shapes.visible[i], width)]
        for name, i in zip(names, gaps, strict=False)
    ]
    shown = "1 shape" if len(gaps) == 1 else f"{len(gaps)} shapes"
    title = f"Missing landmarks ({shown}; █ present, · missing, ▒ some missing)"
    header, more = ["shape", "missing", "landmarks"], " shapes with missing landmarks"
    console.print_table(title, header, rows, len(gaps), more)


def _draw_bar(visible: Mask, width: int) -> str:
    import numpy as np

    cells = np.array_split(visible, min(width, len(visible)))
    return "".join("█" if cell.all() else "·" if not cell.any() else "▒" for cell in cells)


def _show_screening(console: Console, shapes: Shapes) -> dict[str, object]:
    """Show what looks wrong, or why the shapes cannot be aligned at all."""
    from defgpa.diagnostics.screening import screen
    from defgpa.errors import ShapeError

    try:
        screening = screen(shapes)
    except ShapeError as error:
        console.note(f"These shapes cannot be aligned as they are. {error}")
        return {"alignable": False, "reason": str(error)}
    suspects = _find_suspects(console, shapes)
    _show_suspicions(console, list(_describe_suspicions(screening, suspects, shapes)))
    if unlisted := _count_unlisted(suspects, shapes):
        console.print_paragraph(unlisted)
    if screening.mirrored:
        names = [f"--mirror {shlex.quote(name)}" for name in screening.mirrored]
        words = " ".join(names) if len(names) <= _MAX_MIRRORED else "--mirror auto"
        console.print_line(f"If they were digitised on the other side: {words}")
    return {"alignable": True, "suspicious": _list_suspicions(screening, suspects, shapes)}


def _find_suspects(console: Console, shapes: Shapes) -> tuple[Suspect, ...]:
    """Find landmarks that a robust fit rejects; none where the shapes cannot be fitted."""
    from defgpa.diagnostics.suspects import explain_rejection
    from defgpa.errors import DefgpaError
    from defgpa.estimators import DefGPA

    if shapes.points.size > _MAX_FITTED:
        console.note("The set is large: its landmarks were not checked one by one.")
        return ()
    try:
        with console.show_activity("Looking for gross errors"):
            return explain_rejection(DefGPA(robust=True).align(shapes))
    except DefgpaError:  # shapes of which a fit would say what is wrong
        return ()


def _list_suspicions(
    screening: Screening, suspects: Sequence[Suspect], shapes: Shapes
) -> dict[str, object]:
    """Return what looks wrong, for machines."""

    def select(reason: str) -> list[list[str]]:
        return [[s.shape, *s.landmarks] for s in suspects if s.reason == reason]

    return {
        "mirrored": list(screening.mirrored),
        "outliers": list(screening.outliers),
        "other_size": list(screening.other_size),
        "relative_sizes": {
            name: screening.sizes[shapes.index(name)] for name in screening.other_size
        },
        "exchanged_landmarks": select("exchanged"),
        "shifted_landmarks": select("shifted"),
        "misplaced_landmarks": select("misplaced"),
        "reversed": [name for (name,) in select("reversed")],
        "expected": [
            {"shape": s.shape, "landmark": label, "at": at, "expected": expected, "score": s.score}
            for s in suspects
            for label, at, expected in zip(
                s.landmarks, s.points.tolist(), s.expected.tolist(), strict=True
            )
        ],
        "coincident_landmarks": [list(entry) for entry in screening.coincident],
        "repeated": [list(entry) for entry in screening.repeated],
    }


def _show_suspicions(console: Console, sentences: Sequence[tuple[str, str]]) -> None:
    if not sentences:
        console.print_line("Nothing looks wrong: no mirrored, far or exchanged specimens.")
        return
    names = abbreviate([name for name, _ in sentences[:_MAX_ROWS]])
    rows = [[name, phrase] for name, (_, phrase) in zip(names, sentences, strict=False)]
    console.print_table("To check", ["shape", "problem"], rows, len(sentences))


def _describe_suspicions(
    screening: Screening, suspects: Sequence[Suspect], shapes: Shapes
) -> Iterator[tuple[str, str]]:
    """Yield each suspicious shape with a phrase about it."""
    rejected = {suspect.shape: suspect.reason for suspect in suspects if not suspect.landmarks}
    explained = {suspect.shape for suspect in suspects} - rejected.keys()
    for name in dict.fromkeys((*screening.outliers, *rejected)):
        if name in explained:
            continue
        is_reversed = rejected.get(name) == "reversed"
        yield name, "has its landmarks in reverse order" if is_reversed else _FAR_PHRASE
    yield from _describe_sizes(
        {name: screening.sizes[shapes.index(name)] for name in screening.other_size}
    )
    for name in screening.mirrored:
        yield name, "fits clearly better mirrored"
    for suspect in _select_worst(suspects):
        yield suspect.shape, _describe_suspect(suspect)
    yield from _describe_copies(screening.repeated)
    yield from _describe_coincident(screening.coincident)


def _select_worst(suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the landmarks to list: all of a few; of many the worst, exchanged ones first."""
    listed = [suspect for suspect in suspects if suspect.landmarks]
    if len(listed) <= _MAX_SUSPECTS:
        return listed
    listed.sort(key=lambda suspect: -suspect.score)
    exchanged = [suspect for suspect in listed if suspect.reason == "exchanged"]
    others = [suspect for suspect in listed if suspect.reason != "exchanged"]
    return exchanged[:_MAX_WORST] + others[:_MAX_WORST]


def _count_unlisted(suspects: Sequence[Suspect], shapes: Shapes) -> str:
    """Say how many landmarks do not fit where not all are listed; nothing where all are."""
    fitted = [suspect for suspect in suspects if suspect.landmarks]
    if len(fitted) <= _MAX_SUSPECTS:
        return ""
    n_landmarks = sum(len(suspect.landmarks) for suspect in fitted)
    n_shapes = len({suspect.shape for suspect in fitted})
    share = f"{n_landmarks / int(shapes.visible.sum()):.1%}"
    return (
        f"{n_landmarks:,} landmarks ({share}) in {n_shapes} of {shapes.n_shapes} shapes are not "
        "where the others have them; the worst are listed. So many are seldom all mistakes: they "
        "may be real differences. All of them: --json; to look at them: defgpa app."
    )


def _describe_suspect(suspect: Suspect) -> str:
    """Describe landmarks that do not fit, and where the first of them is expected."""
    labels = format_some(suspect.landmarks, _MAX_SHIFTED)
    if suspect.reason == "exchanged":
        return f"landmarks {' and '.join(suspect.landmarks)} look exchanged"
    place, expected = _format_points(suspect.points[0], suspect.expected[0])
    if suspect.reason == "shifted":
        return f"landmarks {labels} are shifted together: the first is at {place}, not {expected}"
    return f"landmark {labels} is at {place}; the others have it at {expected}"


def _format_points(*points: Array) -> list[str]:
    """Format points to four digits of the largest coordinate among them."""
    import numpy as np

    largest = float(np.abs(points).max())
    digits = 3 - int(np.floor(np.log10(largest))) if largest > 0 else 0
    rounded = [np.round(point, digits) + 0.0 for point in points]  # + 0.0: no negative zero
    return ["(" + ", ".join(f"{value:.4g}" for value in point) + ")" for point in rounded]


def _describe_sizes(sizes: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Yield shapes of outlying size with a phrase, many of them in one."""
    if len(sizes) <= _MAX_SINGLE_ROWS:
        for name, size in sizes.items():
            yield name, f"{_format_ratio(size)} the usual size: other units?"
        return
    low, high = min(sizes.values()), max(sizes.values())
    span = f"{_format_ratio(low)} to {_format_ratio(high)} the usual size"
    yield f"{len(sizes)} shapes", f"{span}, such as {format_names(sizes, 3)}: other units?"


def _describe_copies(pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield shapes that are copies of others with a phrase, many of them in one."""
    if len(pairs) <= _MAX_SINGLE_ROWS:
        for name, first in pairs:
            yield name, f"has the very coordinates of {first}"
        return
    names = format_names([name for name, _ in pairs], 3)
    yield f"{len(pairs)} shapes", f"have the very coordinates of others, such as {names}"


def _describe_coincident(pairs: Sequence[tuple[str, str, str]]) -> Iterator[tuple[str, str]]:
    """Yield shapes with landmarks at the same place with a phrase, many of them in one."""
    by_shape = {name: list(group) for name, group in groupby(pairs, key=lambda pair: pair[0])}
    if len(by_shape) > _MAX_SINGLE_ROWS:
        name, a, b = pairs[0]
        words = f"have pairs of landmarks at the same place, such as {a} and {b} of {name}"
        yield f"{len(by_shape)} shapes", words
        return
    for name, ((_, a, b), *others) in by_shape.items():
        more = f" (and {len(others)} more pair{'s' * (len(others) > 1)})" if others else ""
        yield name, f"landmarks {a} and {b} have the same place{more}"


def _format_ratio(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio > 1 else f"1/{1 / ratio:,.0f} of"
