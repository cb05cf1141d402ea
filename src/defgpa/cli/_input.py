"""Words of the command line to shapes, to what a table knows about them, and to estimators."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli._console import Console
from defgpa.cli._options import READING

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.shapes import Shapes


def read_input(
    source: Sequence[str], space: str | None = None, incomplete: str = "error"
) -> Shapes:
    """The shapes of the files named on the command line, as its options want them."""
    from defgpa.io import read_shapes

    wishes = dict(click.get_current_context().meta[READING])
    mirrored, dropped = wishes.pop("mirror"), wishes.pop("drop")
    if wishes.pop("drop_incomplete"):
        incomplete = "drop"
    wishes["on_mismatch"] = "warn" if wishes.pop("lenient") else "error"
    wishes["missing"] = missing_code(wishes["missing"])
    wishes["dimension"] = wishes["dimension"] and int(wishes["dimension"])
    place = source[0] if len(source) == 1 else list(source)
    shapes = read_shapes(place, space=space, incomplete=incomplete, **wishes)
    _note_not_read(shapes)
    return shapes.mirror(mirrored).drop(dropped)


def matches_by_position() -> bool:
    """Whether the command was told to go by the order of landmarks alone."""
    return bool(click.get_current_context().meta[READING]["match"] == "position")


def _note_not_read(shapes: Shapes) -> None:
    """Say which files of a folder hold no landmarks: they may have been meant."""
    from defgpa.errors import listed
    from defgpa.io.text.lines import warn

    names = shapes.metadata.get("not_read", ())
    if names:
        count = "1 file was" if len(names) == 1 else f"{len(names)} files were"
        warn(f"{count} passed over, without landmarks: {listed(names)}.")


def in_space_of(shapes: Shapes, model: Shapes) -> Shapes:
    """The shapes in the anatomical space of others, where both state one."""
    from defgpa.io.space import convert_space

    own, wanted = shapes.metadata.get("space"), model.metadata.get("space")
    if own is None or wanted is None or own == wanted or shapes.n_dims != 3:
        return shapes
    moved = shapes.with_points(convert_space(shapes.points, own, wanted))
    return moved.with_metadata(space=wanted)


def fitting_input(console: Console, shapes: Shapes) -> Shapes:
    """The shapes that a fit can use, with notes on what it will not use and what looks odd."""
    note_likely_code(console, shapes)
    return without_empty(console, shapes)


def note_likely_code(console: Console, shapes: Shapes) -> None:
    """Say so where a number seems to stand for a landmark that was not seen."""
    from defgpa.io.missing_codes import find_missing_code

    code = find_missing_code(shapes)
    if code is not None:
        place = ", ".join([f"{code:g}"] * shapes.n_dims)
        console.note(
            f"Some landmarks lie at ({place}), away from all others. If that means missing, "
            f"say so: --missing {code:g}"
        )


def without_empty(console: Console, shapes: Shapes) -> Shapes:
    """The shapes without undigitised specimens and landmarks seen nowhere, saying so."""
    import numpy as np

    from defgpa.errors import listed

    empty = np.flatnonzero(~shapes.visible.any(axis=1))
    if 0 < len(empty) < shapes.n_shapes:
        console.note(f"Left out, no landmark is seen: {listed(shapes.names[i] for i in empty)}.")
        shapes = shapes.take(np.setdiff1d(np.arange(shapes.n_shapes), empty))
    unseen = np.flatnonzero(shapes.views == 0)
    if 0 < len(unseen) < shapes.n_landmarks:
        labels = listed(shapes.landmarks[j] for j in unseen)
        console.note(f"Left out, seen in no shape: landmark {labels}.")
        shapes = shapes.without(unseen)
    return shapes


def refused(option: str, what: str, got: str | None) -> click.BadParameter:
    """The error of a word that is not what an option takes."""
    return click.BadParameter(f"must be {what}; got {got!r}.", param_hint=option)


def missing_code(word: str) -> str | float:
    """``marked``, ``negative`` or a number."""
    if word in ("marked", "negative"):
        return word
    try:
        return float(word)
    except ValueError:
        raise refused("--missing", "marked, negative or a number", word) from None


def warp_model(
    family: str, points_per_axis: str | None, smoothing: float | None, theta: float | None
) -> Any:
    """The warp model the options describe."""
    from defgpa.warps import (
        Affine,
        FreeForm,
        Polynomial,
        RadialBasis,
        ThinPlateSpline,
        landmark_kernel,
    )

    if smoothing is not None and theta is not None:
        raise click.UsageError("--smoothing and --theta say the same thing in two units: give one.")
    if theta is not None and family != "tps":
        raise click.UsageError("--theta is the spline's (--warp tps); use --smoothing.")
    counts = _counts(points_per_axis)
    given: dict[str, Any] = {} if smoothing is None else {"smoothing": smoothing}
    if family in ("affine", "polynomial", "kernel") and counts is not None:
        raise click.UsageError(f"--warp {family} has no grid of points: drop --points-per-axis")
    if family == "affine" and given:
        raise click.UsageError("--warp affine does not bend: drop --smoothing.")
    if counts is not None:
        given["points_per_axis"] = counts
    if theta is not None:
        given["theta"] = theta
    families: dict[str, Any] = {
        "affine": Affine,
        "tps": ThinPlateSpline,
        "rbf": RadialBasis,
        "kernel": landmark_kernel,
        "ffd": FreeForm,
        "polynomial": Polynomial,
    }
    return families[family](**given)


def proportions_value(text: str) -> Any:
    """``rigid``, ``prior`` or eigenvalues with commas, as DefGPA takes them."""
    if text in ("rigid", "prior"):
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        what = "rigid, prior or eigenvalues such as 900,400"
        raise refused("--proportions", what, text) from None


def rigidity_value(word: str) -> float:
    """A number from 0 to infinity; 1 for ``auto``, which will choose."""
    value = 1.0 if word == "auto" else _number(word)
    if not value >= 0.0:
        raise refused("--rigidity", "a number from 0 to inf, or auto", word)
    return value


def smoothing_value(word: str | None) -> float | None:
    """A number, or None where none is given or ``auto`` is."""
    if word is None or word == "auto":
        return None
    value = _number(word)
    if not 0.0 <= value < float("inf"):
        raise refused("--smoothing", "a number of at least 0, or auto", word)
    return value


def _number(word: str) -> float:
    """A number; NaN for what is none."""
    try:
        return float(word)
    except ValueError:
        return float("nan")


def fold_size_for(shapes: Shapes, given: int | None) -> int:
    """As given, or such that there are about twenty folds (one landmark each if there are few)."""
    return given if given is not None else max(1, round(shapes.n_landmarks / 20))


def _counts(word: str | None) -> int | tuple[int, ...] | None:
    if word is None:
        return None
    try:
        counts = tuple(int(part) for part in word.split(","))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1:
        what = "a whole number such as 5, or one per axis such as 5,5,2"
        raise refused("--points-per-axis", what, word)
    return counts[0] if len(counts) == 1 else counts


def analysed(source: Sequence[str]) -> tuple[Alignment | Shapes, Shapes]:
    """A saved result or landmark files; and the shapes in either."""
    from defgpa.errors import FormatError
    from defgpa.io import load, read_header

    if len(source) == 1 and source[0].lower().endswith(".npz"):
        try:
            read_header(source[0])
        except FormatError:
            pass  # an archive of points, not a result
        else:
            alignment = load(source[0])
            return alignment, alignment.shapes
    shapes = read_input(source)
    return shapes, shapes


def columns_for(console: Console, table: str | None, shapes: Shapes) -> dict[str, Any]:
    """What the files say of the shapes, and the columns of a table in the order of the shapes."""
    from defgpa.statistics.design import columns_of, typed

    known = columns_of(shapes)
    if table is None:
        return known
    header, rows = _rows(Path(table))
    own = _names_column(table, header, rows, shapes.names)
    if own is not None:
        place = {_key(row[own]): row for row in rows}
        rows = [place[_key(name)] for name in shapes.names]
    elif len(rows) != shapes.n_shapes:
        raise click.BadParameter(
            f"{table} has {len(rows)} rows for {shapes.n_shapes} shapes, and no column with "
            f"their names (such as {shapes.names[0]!r}).",
            param_hint="--data",
        )
    else:
        console.note(f"No column of {table} has the names of the shapes: rows are taken in order.")
    return known | {name: typed([row[k] for row in rows]) for k, name in enumerate(header)}


def column(columns: dict[str, Any], name: str, option: str) -> Any:
    """One column, or an error that names the option and what there is."""
    if name not in columns:
        there = ", ".join(columns) or "nothing (give --data)"
        raise click.BadParameter(
            f"there is no column {name!r}; there is {there}.", param_hint=option
        )
    return columns[name]


def _rows(path: Path) -> tuple[list[str], list[list[str]]]:
    from defgpa.errors import FormatError
    from defgpa.io.text.lines import read_text
    from defgpa.io.text.table import remove_guard

    lines = [line for line in read_text(path).split("\n") if line.strip()]
    if len(lines) < 2:
        raise FormatError(
            f"{path}: expected a header and one row per shape; found {len(lines)} lines."
        )
    mark = max(",;\t", key=lines[0].count)
    header, *rows = (
        [remove_guard(cell.strip()) for cell in row] for row in csv.reader(lines, delimiter=mark)
    )
    if all(len(row) == len(header) + 1 for row in rows):  # R writes row names without a title
        header = ["", *header]
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise FormatError(
                f"{path}, line {number}: expected {len(header)} fields; found {len(row)}."
            )
    return [name or "id" for name in header], rows


def _names_column(
    table: str, header: Sequence[str], rows: Sequence[Sequence[str]], names: Sequence[str]
) -> int | None:
    """The column with the names of all shapes; None where there is none.

    One that has most of them was meant, and its rows need not be in order: that is an error, unless
    shapes are only numbered, as much else is.
    """
    from defgpa.errors import listed

    keys = set(map(_key, names))
    known = [len(keys & {_key(row[k]) for row in rows}) for k in range(len(header))]
    best = max(range(len(header)), key=known.__getitem__)
    values = [_key(row[best]) for row in rows]
    twice = [name for name in names if values.count(_key(name)) > 1]
    lacking = [name for name in names if _key(name) not in values]
    numbered = all(name.isdecimal() for name in names)
    if 2 * known[best] <= len(names) or (numbered and (lacking or twice)):
        return None
    if lacking or twice:
        much = f"no row for {listed(lacking)}" if lacking else f"several rows for {listed(twice)}"
        raise click.BadParameter(
            f"{table}: its column {header[best]!r} names the shapes, and has {much}. Add or mend "
            "what is wrong there, or leave shapes out with --drop.",
            param_hint="--data",
        )
    return best


def _key(name: str) -> str:
    """A name as it is compared: capitals and the ending of an image do not matter."""
    return re.sub(r"\.(jpe?g|png|tiff?|bmp|gif)$", "", name.strip().casefold())
