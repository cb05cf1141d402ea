"""``defgpa register``: new specimens onto a saved reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from defgpa.cli._console import Console, briefly
from defgpa.cli._doubts import note_likely_code
from defgpa.cli._input import in_space_of, matches_by_position, read_input
from defgpa.cli._options import reading, speaking
from defgpa.cli._output import list_files, output_folder, refuse_inputs, write_shapes_twice

if TYPE_CHECKING:
    from defgpa._arrays import Array
    from defgpa.alignment import Alignment
    from defgpa.shapes import Shapes


@click.command(
    "register", epilog="Example: defgpa register result/result.npz new/*.tps -o registered/"
)
@click.argument("result", type=click.Path())
@click.argument("source", nargs=-1, required=True, metavar="NEW...", type=click.Path())
@click.option("--output", "-o", required=True, type=click.Path(), help="Folder for the results.")
@reading
@speaking
def command(
    result: str,
    source: tuple[str, ...],
    output: str,
    format_: str | None,
    missing: str,
    layout: str,
    lenient: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Bring new specimens onto a saved reference, in closed form.

    Landmarks are matched by label where the files carry labels, by position otherwise.
    """
    import numpy as np

    from defgpa.io import load

    console = Console(quiet, as_json)
    folder = output_folder(output)
    with console.noting():
        alignment = load(result)
        shapes = read_input(source, format_, missing, layout, lenient)
        refuse_inputs(shapes, folder, "registered")
        note_likely_code(console, shapes)
        shapes = matched(console, in_space_of(shapes, alignment.shapes), alignment)
        images = np.stack([_registered(alignment, name, shapes[name]) for name in shapes.names])
        files = write_shapes_twice(shapes.with_points(images), folder, "registered")
    distances = np.linalg.norm(images - alignment.reference, axis=2)
    errors = np.sqrt(np.nanmean(distances**2, axis=1)).tolist()
    rows = list(zip(briefly(shapes.names), errors, strict=True))
    console.table("Registered", ["shape", "RMSE_r"], rows)
    console.say(f"The shapes of the fit were left with an RMSE_r of {alignment.rmse_reference:.4g}")
    list_files(console, files)
    console.result(
        {
            "rmse_reference": dict(zip(shapes.names, errors, strict=True)),
            "rmse_reference_of_fit": alignment.rmse_reference,
            "files": files,
            "notes": console.notes,
        }
    )


def _registered(alignment: Alignment, name: str, points: Array) -> Array:
    """The image of one shape, which an error names."""
    from defgpa.errors import ShapeError

    try:
        return alignment.register(points)(points)
    except ShapeError as error:
        raise ShapeError(f"{name!r} cannot be registered. {error}") from None


def matched(console: Console, shapes: Shapes, alignment: Alignment) -> Shapes:
    """The shapes with the landmarks of the reference, in its order."""
    import numpy as np

    from defgpa.errors import ShapeError, listed
    from defgpa.shapes import Shapes as _Shapes

    wanted = alignment.shapes.landmarks
    if shapes.dim != alignment.shapes.dim:
        raise ShapeError(
            f"The new shapes are {shapes.dim}-D, the reference is {alignment.shapes.dim}-D."
        )
    labels = _labels_in(console, shapes.landmarks, wanted)
    strange = [label for label in labels if label not in set(wanted)]
    if strange:
        same = len(labels) == len(wanted)
        raise ShapeError(
            f"The reference has no landmark {listed(strange)}; it has {len(wanted)} landmarks: "
            f"{listed(wanted)}."
            + " If they are the same in the same order: --match position"
            * same
        )
    absent = [label for label in wanted if label not in set(labels)]
    if absent:
        console.note(f"In none of the new files, so not seen: landmark {listed(absent)}.")
    place = {label: k for k, label in enumerate(wanted)}
    points = np.full((shapes.n_shapes, len(wanted), shapes.dim), np.nan)
    points[:, [place[label] for label in labels]] = shapes.points
    return _Shapes.specimens(
        points,
        names=shapes.names,
        landmarks=wanted,
        faces=alignment.shapes.faces,
        metadata=shapes.metadata,
    )


def _labels_in(console: Console, own: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The landmarks of the reference that the labels of new shapes mean, one each."""
    from defgpa.errors import ShapeError
    from defgpa.io.labels import numbers_behind

    if matches_by_position() and len(own) == len(wanted):
        return wanted
    if set(own) <= set(wanted):
        return own
    new, known = numbers_behind(own), numbers_behind(wanted)
    if new and known and set(new[1]) <= set(known[1]):
        place = dict(zip(known[1], wanted, strict=True))
        return tuple(place[k] for k in new[1])
    sides = {"the new shapes": own, "the reference": wanted}
    whose = [side for side, labels in sides.items() if _are_counted(labels)]
    if not whose:
        return own
    if len(own) != len(wanted):
        raise ShapeError(
            f"There are {len(own)} landmarks in the new shapes and {len(wanted)} in the "
            f"reference, and no labels in {whose[0]} to match them by."
        )
    console.note(f"There are no labels in {whose[0]}: landmarks are matched by their order.")
    return wanted


def _are_counted(labels: tuple[str, ...]) -> bool:
    """Whether labels are what landmarks without labels are called."""
    return labels == tuple(str(k) for k in range(1, len(labels) + 1))
