"""``defgpa register``: new specimens onto a saved reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from defgpa.cli import _options as options
from defgpa.cli._console import Console, abbreviate
from defgpa.cli._input import match_space, matches_by_position, note_likely_code, read_input
from defgpa.cli._output import (
    check_output_folder,
    open_results,
    refuse_inputs,
    show_run,
)

_MAX_ROWS = 10  # shapes in the table: those that fit worst
_FAR_RATIO = 3  # times the largest error of the fit: a note is due
_SIZE_RATIO = 5  # times the usual size: likewise

if TYPE_CHECKING:
    from defgpa.alignment import Alignment
    from defgpa.arrays import Array
    from defgpa.shapes import Shapes


@options.command("register", "defgpa register result/result.npz new/*.tps -o registered/")
@click.argument("result", type=click.Path())
@click.argument("source", nargs=-1, required=True, metavar="NEW...", type=click.Path())
@options.output_option("FOLDER", "Folder for the results; NEW-registered by default.")
@options.reading
def command(result: str, source: tuple[str, ...], output: str | None, console: Console) -> None:
    """Register new specimens onto a saved reference.

    Landmarks are matched by label where the files carry labels, by position otherwise. Writes the
    registered shapes (as CSV and in the format of the files) and registered.npz, which holds their
    warps: defgpa apply takes it like the result of a fit.
    """
    from defgpa.io import load, save
    from defgpa.result_folder import write_shapes_twice

    folder = check_output_folder(output, source, "registered")
    with console.note_warnings():
        alignment = load(result)
        shapes = read_input(source)
        refuse_inputs([*shapes.metadata.get("sources", ()), result], folder, "registered")
        note_likely_code(console, shapes)
        shapes = match_landmarks(console, match_space(shapes, alignment.shapes), alignment)
        registered = register_shapes(alignment, shapes)
        errors, errors_of_fit = _measure_errors(registered), _measure_errors(alignment)
        note_unlike(console, registered, alignment)
    summary: dict[str, object] = {
        "rmse_reference": dict(zip(shapes.names, errors, strict=True)),
        "rmse_reference_of_fit": alignment.rmse_reference,
        "input": [result, *source],
    }
    with open_results(console, folder, summary) as new_folder:
        write_shapes_twice(shapes.with_points(registered.aligned), new_folder, "registered")
        save(registered, new_folder / "registered.npz")
    _show(console, shapes.names, errors, errors_of_fit)
    show_run(console, folder, summary)


def register_shapes(alignment: Alignment, shapes: Shapes) -> Alignment:
    """Register new shapes onto the reference of an alignment; return them as an alignment."""
    import numpy as np

    warps = alignment.register(shapes)
    values: dict[str, Any] = {
        "votes": _vote_handedness(shapes.points, alignment.reference),
        "condition": np.full(shapes.n_shapes, np.nan),
    }
    if alignment.spectral is not None:
        values["free_directions"] = np.zeros(shapes.n_shapes, dtype=np.intp)
    diagnostics = replace(alignment.diagnostics, **values)
    return replace(alignment, shapes=shapes, warps=warps, diagnostics=diagnostics, findings=())


def _vote_handedness(points: Array, reference: Array) -> Array:
    """Return −1 for shapes whose residual is halved by a mirrored similarity, 1 for others."""
    import numpy as np

    from defgpa.procrustes import ORTHOGONAL_SIMILARITY, SIMILARITY, fit_motions

    proper_error, best_error = (
        np.nansum((fit_motions(points, reference, motions=kind)(points) - reference) ** 2, (1, 2))
        for kind in (SIMILARITY, ORTHOGONAL_SIMILARITY)
    )
    return np.where(4 * best_error < proper_error, -1, 1)


def _measure_errors(alignment: Alignment) -> list[float]:
    """Return RMSE_r shape by shape."""
    import numpy as np

    errors: list[float] = np.sqrt(np.nanmean(alignment.residuals**2, axis=1)).tolist()
    return errors


def note_unlike(console: Console, registered: Alignment, alignment: Alignment) -> None:
    """Note new specimens that are far off, mirrored or in other units than those of the fit."""
    import numpy as np

    from defgpa.diagnostics.landmark_order import check_landmark_order
    from defgpa.errors import format_names

    names = np.array(registered.shapes.names)
    worst = max(_measure_errors(alignment))
    is_far = np.array(_measure_errors(registered)) > _FAR_RATIO * worst
    if is_far.any():
        console.note(
            f"Left far from the reference, at more than {_FAR_RATIO} times the RMSE_r of any shape "
            f"of the fit ({worst:.3g}): {format_names(names[is_far])}."
        )
    finding = check_landmark_order(alignment.mean_shape, registered.shapes)
    if finding is not None:
        console.note_findings(finding)
    if registered.mirrored:
        console.note(f"Mirrored against the reference: {format_names(registered.mirrored)}.")
    # how large each shape is beside the reference, over the landmarks it has
    new_sizes, sizes = (1.0 / fit.similarities.scale for fit in (registered, alignment))
    ratio = new_sizes / np.median(sizes)
    # a similarity onto a reference in another order or mirrored says nothing about size
    unlike = {*registered.mirrored, *(finding.shapes if finding is not None else ())}
    is_odd = ((ratio > _SIZE_RATIO) | (ratio < 1 / _SIZE_RATIO)) & ~np.isin(names, list(unlike))
    if is_odd.any():
        console.note(
            f"More than {_SIZE_RATIO} times larger or smaller than the shapes of the fit: "
            f"{format_names(names[is_odd])}. Other units?"
        )


def _show(
    console: Console,
    names: Sequence[str],
    errors: Sequence[float],
    errors_of_fit: Sequence[float],
) -> None:
    """Show the specimens that fit worst, and how well all do."""
    from statistics import median

    order = sorted(range(len(names)), key=lambda i: -errors[i])[:_MAX_ROWS]
    short = abbreviate([names[i] for i in order])
    rows = list(zip(short, [errors[i] for i in order], strict=True))
    title = (
        "Registered" if len(rows) == len(names) else f"Registered, the {_MAX_ROWS} that fit worst"
    )
    console.print_table(title, ["shape", "RMSE_r"], rows)
    console.print_paragraph(
        f"RMSE_r of {len(names)} registered specimens: median {median(errors):.4g}, maximum "
        f"{max(errors):.4g}; of those of the fit: median {median(errors_of_fit):.4g}, maximum "
        f"{max(errors_of_fit):.4g}"
    )


def match_landmarks(console: Console, shapes: Shapes, alignment: Alignment) -> Shapes:
    """Return the shapes with the landmarks of the reference, in its order."""
    import numpy as np

    from defgpa.errors import ShapeError, format_names
    from defgpa.shapes import Shapes as _Shapes

    targets = alignment.shapes.landmarks
    if shapes.n_dims != alignment.shapes.n_dims:
        raise ShapeError(
            f"The new shapes are {shapes.n_dims}-D, the reference is {alignment.shapes.n_dims}-D."
        )
    labels = _match_labels(console, shapes.landmarks, targets)
    unknown_labels = [label for label in labels if label not in set(targets)]
    if unknown_labels:
        is_as_long = len(labels) == len(targets)
        raise ShapeError(
            f"The reference has no landmark {format_names(unknown_labels)}; it has {len(targets)} "
            f"landmarks: {format_names(targets)}."
            + " If they are the same in the same order: --match position"
            * is_as_long
        )
    absent = [label for label in targets if label not in set(labels)]
    if absent:
        console.note(f"In none of the new files, so missing: landmark {format_names(absent)}.")
    place = {label: k for k, label in enumerate(targets)}
    points = np.full((shapes.n_shapes, len(targets), shapes.n_dims), np.nan)
    points[:, [place[label] for label in labels]] = shapes.points
    return _Shapes.specimens(
        points,
        names=shapes.names,
        landmarks=targets,
        faces=alignment.shapes.faces,
        metadata=shapes.metadata,
    )


def _match_labels(
    console: Console, labels: tuple[str, ...], targets: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the landmarks of the reference that the labels of new shapes mean, one each."""
    from defgpa.errors import ShapeError
    from defgpa.io.landmark_matching import split_numbered_labels
    from defgpa.shapes import number_labels

    if matches_by_position() and len(labels) == len(targets):
        return targets
    if set(labels) <= set(targets):
        return labels
    numbered, target_numbers = split_numbered_labels(labels), split_numbered_labels(targets)
    if numbered and target_numbers and set(numbered[1]) <= set(target_numbers[1]):
        place = dict(zip(target_numbers[1], targets, strict=True))
        return tuple(place[k] for k in numbered[1])
    sides = {"the new shapes": labels, "the reference": targets}
    unlabelled = [side for side, names in sides.items() if names == number_labels("", len(names))]
    if not unlabelled:
        return labels
    if len(labels) != len(targets):
        raise ShapeError(
            f"There are {len(labels)} landmarks in the new shapes and {len(targets)} in the "
            f"reference, and no labels in {unlabelled[0]} to match them by."
        )
    console.note(f"There are no labels in {unlabelled[0]}: landmarks are matched by their order.")
    return targets
