"""Parse the command line into shapes, covariates and estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli._console import Console, suggest_name
from defgpa.cli._options import READING
from defgpa.io.covariates import Columns

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.edits import Edit
    from defgpa.shapes import Shapes
    from defgpa.warps import WarpModel

_EDITS = "defgpa.edits"  # where a command keeps the corrections it made


def read_input(
    source: Sequence[str], space: str | None = None, incomplete: str = "error"
) -> Shapes:
    """Read the shapes of the files on the command line, with the reading options given there."""
    from defgpa.edits import Action, Edit
    from defgpa.io import read_shapes

    options = dict(click.get_current_context().meta[READING])
    mirrored, dropped = options.pop("mirror"), options.pop("drop")
    swaps, removals = options.pop("swap"), options.pop("set_missing")
    log = options.pop("edits")
    if options.pop("drop_incomplete"):
        incomplete = "drop"
    options["on_mismatch"] = "warn" if options.pop("lenient") else "error"
    options["missing"] = parse_missing(options["missing"])
    options["dimension"] = options["dimension"] and int(options["dimension"])
    if _find_group_column(click.get_current_context().params.get("data")) is not None:
        options["group"] = None  # `add_covariates` has it
    place = source[0] if len(source) == 1 else list(source)
    shapes = read_shapes(place, space=space, incomplete=incomplete, **options)
    _note_unread_files(shapes)
    shapes, edits = _apply_corrections(shapes, log, swaps, removals)
    left_out = expand_lists(dropped, "--drop")
    to_mirror = [n for n in expand_lists(mirrored, "--mirror") if n not in left_out]
    shapes, reflected = _mirror(shapes.drop(left_out), to_mirror)
    edits += [Edit(Action.EXCLUDE_SPECIMEN, name, reason="--drop") for name in left_out]
    edits += [Edit(Action.REFLECT, name, reason="--mirror") for name in reflected]
    click.get_current_context().meta[_EDITS] = edits
    return shapes


def list_edits() -> list[Edit]:
    """Return all corrections made by `read_input`, as entries of an edit log."""
    return list(click.get_current_context().meta.get(_EDITS, ()))


def list_reading_words() -> list[str]:
    """Return the reading options that were typed, to be typed again with another command."""
    context = click.get_current_context()
    words: list[str] = []
    for parameter in context.command.params:
        value = context.meta.get(READING, {}).get(parameter.name)
        if parameter.name not in context.meta.get(READING, {}) or value == parameter.default:
            continue
        flag = max(parameter.opts, key=len)
        if isinstance(value, bool):
            words += [flag] * value
        else:
            values = value if isinstance(value, tuple) else (value,)
            words += [word for item in values if item is not None for word in (flag, str(item))]
    return words


def expand_lists(words: Sequence[str], option: str) -> list[str]:
    """Replace every ``@names.txt`` by the names in that file, one per line."""
    names: list[str] = []
    for word in words:
        if not word.startswith("@"):
            names.append(word)
            continue
        try:
            text = Path(word[1:]).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
            raise click.BadParameter(
                f"the list {word[1:]} cannot be read: {reason}.", param_hint=option
            ) from None
        names += [line.strip() for line in text.splitlines() if line.strip()]
    return names


def _apply_corrections(
    shapes: Shapes, log: str | None, swaps: Sequence[str], removals: Sequence[str]
) -> tuple[Shapes, list[Edit]]:
    """Apply a log of edits, then the corrections that were typed, and note how many.

    The app shows flat shapes in their plane: a log that moves landmarks there is applied there.
    """
    from defgpa.diagnostics.preparation import flatten_planar
    from defgpa.edits import Action, Edit, apply_edits, read_edits
    from defgpa.io.text.lines import warn

    edits = [] if log is None else list(read_edits(log))
    if edits and all(edit.to is None or len(edit.to) == 2 for edit in edits):
        shapes = flatten_planar(shapes)
    for words in swaps:
        name, labels = _parse_correction(words, "--swap", 2)
        edits.append(Edit(Action.SWAP, name, labels, reason="--swap"))
    for words in removals:
        name, labels = _parse_correction(words, "--set-missing")
        edits += [Edit(Action.SET_MISSING, name, (x,), reason="--set-missing") for x in labels]
    if not edits:
        return shapes, edits
    corrected = apply_edits(shapes, edits)
    warn(f"{len(edits)} correction{'s' * (len(edits) > 1)} applied; the files stay as they are.")
    return corrected, edits


def _parse_correction(
    words: str, option: str, count: int | None = None
) -> tuple[str, tuple[str, ...]]:
    """Parse ``NAME:4,5`` as a specimen and labels of landmarks; a name may have colons in it."""
    name, colon, list_of_labels = words.rpartition(":")
    labels = tuple(label.strip() for label in list_of_labels.split(","))
    if not colon or not all(labels) or (count is not None and len(labels) != count):
        expected = "specimen:landmark,landmark" if count == 2 else "specimen:landmark[,landmark…]"
        raise make_word_error(option, f"{expected}, such as wing_07:4,5", words)
    return name, labels


def _mirror(shapes: Shapes, names: Sequence[str]) -> tuple[Shapes, list[str]]:
    """Mirror the shapes named, and with ``auto`` all that fit clearly better mirrored.

    Also return the names of those that were mirrored, in turn.
    """
    from defgpa.diagnostics.screening import screen
    from defgpa.errors import format_names
    from defgpa.io.text.lines import warn

    if "auto" not in names or "auto" in shapes.names:
        return shapes.mirror(names), list(dict.fromkeys(names))
    names = [name for name in dict.fromkeys(names) if name != "auto"]
    shapes = shapes.mirror(names)
    mirrored = screen(shapes).mirrored
    if mirrored:
        warn(f"Mirrored, {len(mirrored)} of {shapes.n_shapes} specimens: {format_names(mirrored)}.")
    return shapes.mirror(mirrored), [*names, *mirrored]


def matches_by_position() -> bool:
    """Return whether the command was told to go by the order of landmarks alone."""
    return bool(click.get_current_context().meta[READING]["match"] == "position")


def _note_unread_files(shapes: Shapes) -> None:
    """Say which files of a folder hold no landmarks: they may have been meant."""
    from defgpa.errors import format_names
    from defgpa.io.text.lines import warn

    names = shapes.metadata.get("not_read", ())
    if names:
        count = "1 file was" if len(names) == 1 else f"{len(names)} files were"
        warn(f"{count} passed over, without landmarks: {format_names(names)}.")


def match_space(shapes: Shapes, model: Shapes) -> Shapes:
    """Convert shapes to the anatomical space (LPS or RAS) of others, if both state one."""
    from defgpa.io.anatomical_space import convert_space

    space, wanted = shapes.metadata.get("space"), model.metadata.get("space")
    if space is None or wanted is None or space == wanted or shapes.n_dims != 3:
        return shapes
    converted = shapes.with_points(convert_space(shapes.points, space, wanted))
    return converted.with_metadata(space=wanted)


def prepare_for_fit(console: Console, shapes: Shapes) -> Shapes:
    """Return the shapes that a fit can use, noting what it leaves out and what looks wrong."""
    from defgpa.diagnostics.preparation import prepare_shapes

    note_likely_code(console, shapes)
    drop_incomplete = click.get_current_context().meta[READING]["drop_incomplete"]
    return prepare_shapes(shapes, "drop" if drop_incomplete else "error")


def note_likely_code(console: Console, shapes: Shapes) -> float | None:
    """Say so where a number seems to stand for a missing landmark, and return it."""
    from defgpa.io.missing_codes import find_missing_code

    code = find_missing_code(shapes)
    if code is not None:
        place = ", ".join([f"{code:g}"] * shapes.n_dims)
        console.note(
            f"Some landmarks lie at ({place}), as programs write missing ones. If that is meant, "
            f"say so: --missing {code:g}"
        )
    return code


def add_covariates(
    console: Console, shapes: Shapes, table: str | None, unlisted: bool = False
) -> Shapes:
    """Add the columns of a table to what is stated about each specimen.

    With ``unlisted``, specimens that the table lacks are left out.
    """
    if unlisted:
        shapes = drop_unlisted_shapes(console, shapes, table)
    if table is None:
        return shapes
    columns = read_covariates(console, table, shapes)
    variables: Sequence[dict[str, str] | None]
    variables = shapes.metadata.get("variables") or (None,) * shapes.n_shapes
    rows = zip(*columns.values(), strict=True)
    added = [dict(zip(columns, map(str, row), strict=True)) for row in rows]
    merged = tuple({**(old or {}), **new} for old, new in zip(variables, added, strict=True))
    group = _find_group_column(table)
    groups = {} if group is None else {"groups": tuple(map(str, columns[group]))}
    return shapes.with_metadata(variables=merged, **groups)


def _find_group_column(table: str | None) -> str | None:
    """Return the column that ``--group`` names, None if the table has none."""
    from defgpa.io.covariates import read_covariate_heads

    name = click.get_current_context().meta.get(READING, {}).get("group")
    if table is None or name is None:
        return None
    return name if name in read_covariate_heads(table) else None


def drop_unlisted_shapes(
    console: Console, shapes: Shapes, table: str | None, is_result: bool = False
) -> Shapes:
    """Leave out the specimens that a table of covariates lacks, and say how many.

    The shapes of a saved result stay together.
    """
    from defgpa.errors import format_names
    from defgpa.io.covariates import find_unlisted

    if table is None:
        raise click.UsageError("--drop-unlisted goes with --data.")
    if is_result:
        raise click.UsageError(
            "--drop-unlisted goes with landmark files: a saved result keeps its specimens. Give "
            "the files, or fit them again with --drop-unlisted."
        )
    absent = find_unlisted(table, shapes.names)
    if len(absent) == shapes.n_shapes:
        raise click.BadParameter(
            f"{table} has none of the {shapes.n_shapes} specimens, such as {shapes.names[0]!r}.",
            param_hint="--data",
        )
    if absent:
        console.note(
            f"Left out, {len(absent)} of {shapes.n_shapes} specimens without a row in {table}: "
            f"{format_names(absent)}."
        )
    return shapes.drop(absent)


def add_links(shapes: Shapes, words: str | None) -> Shapes:
    """Add lines between landmarks, given as ``1-2,2-3`` or as ``@links.txt``."""
    if words is None:
        return shapes
    items = words.split(",")
    if words.startswith("@"):
        lines = expand_lists([words], "--links")
        items = ["-".join(line.replace(",", " ").split()) for line in lines]
    number = {label: k for k, label in enumerate(shapes.landmarks)}
    pairs = [parse_pair(item.strip(), shapes, "--links") for item in items if item.strip()]
    return shapes.with_metadata(links=tuple((number[a], number[b]) for a, b in pairs))


def parse_pair(word: str, shapes: Shapes, option: str) -> tuple[str, str]:
    """Split ``4-3`` into two labels of landmarks; a label may have a dash in it."""
    dashes = [k for k, sign in enumerate(word) if sign == "-"]
    splits = [(word[:k].strip(), word[k + 1 :].strip()) for k in dashes]
    pairs = [pair for pair in splits if set(pair) <= set(shapes.landmarks)]
    if len(pairs) != 1:
        raise click.BadParameter(
            f"{word!r} is not two landmarks joined by a dash, such as "
            f"{shapes.landmarks[0]}-{shapes.landmarks[-1]}.",
            param_hint=option,
        )
    return pairs[0]


def make_word_error(option: str, expected: str, word: str | None) -> click.BadParameter:
    """Return the error for a value that an option does not take."""
    return click.BadParameter(f"must be {expected}; got {word!r}.", param_hint=option)


def parse_missing(word: str) -> str | float:
    """Parse the code of missing landmarks: ``marked``, ``negative`` or a number."""
    if word in ("marked", "negative"):
        return word
    try:
        return float(word)
    except ValueError:
        raise make_word_error("--missing", "marked, negative or a number", word) from None


def warp_model(
    family: str, points_per_axis: str | None, smoothing: float | None, theta: float | None
) -> WarpModel:
    """Return the warp model that the options describe."""
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
    counts = _parse_counts(points_per_axis)
    settings: dict[str, object] = {} if smoothing is None else {"smoothing": smoothing}
    if family in ("affine", "polynomial", "kernel") and counts is not None:
        raise click.UsageError(f"--warp {family} has no grid of points: drop --points-per-axis")
    if family == "affine" and settings:
        raise click.UsageError("--warp affine does not bend: drop --smoothing.")
    if counts is not None:
        settings["points_per_axis"] = counts
    if theta is not None:
        settings["theta"] = theta
    families: dict[str, Callable[..., WarpModel]] = {
        "affine": Affine,
        "tps": ThinPlateSpline,
        "rbf": RadialBasis,
        "kernel": landmark_kernel,
        "ffd": FreeForm,
        "polynomial": Polynomial,
    }
    return families[family](**settings)


def parse_proportions(text: str) -> str | list[float]:
    """Parse ``rigid``, ``prior`` or eigenvalues with commas, as DefGPA takes them."""
    if text in ("rigid", "prior"):
        return text
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        expected = "rigid, prior or eigenvalues such as 900,400"
        raise make_word_error("--proportions", expected, text) from None


def parse_rigidity(word: str) -> float:
    """Parse a number from 0 to infinity; 1 for ``auto``, which will choose."""
    value = 1.0 if word == "auto" else _parse_number(word)
    if not value >= 0.0:
        raise make_word_error("--rigidity", "a number from 0 to inf, or auto", word)
    return value


def parse_smoothing(word: str | None) -> float | None:
    """Parse a number; None where none is given or ``auto`` is."""
    if word is None or word == "auto":
        return None
    value = _parse_number(word)
    if not 0.0 <= value < float("inf"):
        raise make_word_error("--smoothing", "a number of at least 0, or auto", word)
    return value


def _parse_number(word: str) -> float:
    """Parse a number; NaN for what is none."""
    try:
        return float(word)
    except ValueError:
        return float("nan")


def _parse_counts(word: str | None) -> int | tuple[int, ...] | None:
    if word is None:
        return None
    try:
        counts = tuple(int(number) for number in word.split(","))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1:
        expected = "a whole number such as 5, or one per axis such as 5,5,2"
        raise make_word_error("--points-per-axis", expected, word)
    return counts[0] if len(counts) == 1 else counts


def read_sample_source(source: Sequence[str]) -> tuple[Alignment | Shapes, Shapes]:
    """Read a saved result or landmark files; return it and the shapes in it."""
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


def collect_columns(console: Console, table: str | None, shapes: Shapes) -> dict[str, Any]:
    """Return what the files state of the shapes, and the columns of a table in their order."""
    from defgpa.io.covariates import collect_columns

    columns = collect_columns(shapes)
    return columns if table is None else columns | read_covariates(console, table, shapes)


def read_covariates(console: Console, table: str, shapes: Shapes) -> dict[str, Any]:
    """Read a table with one row per shape; return its columns in the order of the shapes."""
    from defgpa.errors import FormatError
    from defgpa.io import covariates

    try:
        with console.note_warnings():
            columns = covariates.read_covariates(table, shapes.names)
    except FormatError as error:
        raise click.BadParameter(str(error), param_hint="--data") from None
    return {head: covariates.parse_column(words) for head, words in columns.items()}


def find_column(columns: Columns, name: str, option: str) -> Sequence[object]:
    """Return one column, or raise an error that names its option and all columns."""
    if name not in columns:
        names = ", ".join(columns) or "nothing (give --data)"
        raise click.BadParameter(
            f"there is no column {name!r}; there is {names}.{suggest_name(name, columns)}",
            param_hint=option,
        )
    return columns[name]
